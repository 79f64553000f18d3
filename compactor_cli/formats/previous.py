"""Summaries of earlier compactions, ours and those of other clients, known by how their text begins.

Sources of the openings: the clients' own files and sources as listed in the formats' documentation
(Claude Code 2.1, Codex CLI 0.169, pi 0.73, Gemini CLI 0.61, Qwen Code 0.24, kimi-cli 1.51, Kimi Code 2.1,
hermes-agent and its trajectory compressor).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from compactor_cli.model.marker import text_before_marker, without_marker
from compactor_cli.model.transcript import Part, PreviousSummary, Role, Text


class _Frame(NamedTuple):
    """What stands around a summary: its opening, the mark after which the body starts, those where it ends."""

    origin: str
    opening: str
    body_after: str = ""
    ends: tuple[str, ...] = ()


# Where the transcript lies, and to go on without a question: the client's words, not the user's.
_CLAUDE_ENDS = (
    "\nIf you need specific details from before compaction",
    "\nPlease continue the conversation from where we left",
    "\nContinue the conversation from where it left off",
)
_FRAMES = (
    _Frame("hermes", "[CONTEXT SUMMARY]:", "[CONTEXT SUMMARY]:"),
    _Frame("hermes", "[CONTEXT COMPACTION", "]"),
    _Frame("kimi", "Previous context has been compacted", "</system>"),
    _Frame("kimi", "The conversation so far has been compacted", "already addressed.", ("\n## Context Recovery",)),
    _Frame("gemini", "<state_snapshot>", "<state_snapshot>", ("</state_snapshot>",)),
    _Frame("claude-code", "This session is being continued from a previous conversation", "Summary:\n", _CLAUDE_ENDS),
    _Frame("codex", "Another language model started to solve this problem and produced a summary", "analysis:"),
    _Frame(
        "pi",
        "The conversation history before this point was compacted into the following summary",
        "<summary>",
        ("</summary>",),
    ),
    _Frame("l06", "[Conversation compressed. Transcript:", "]"),
)
_OPENINGS = tuple(frame.opening for frame in _FRAMES)
# How the prefaces of this program's own templates begin; between one of them and the marker is nothing else.
_OWN_OPENINGS = (
    *("Reference only: ", "[CONTEXT SUMMARY]: ", "Previous context has been compacted. ", "[Conversation compressed. "),
    *("[Start of the summary of the conversation ", "What follows is a snapshot of the conversation "),
    *("Messages between those before and behind this one ", "Excerpts from the conversation before this point"),
    "===== Start of the summary of the conversation ",
    *("仅供参考:", "[此前对话摘要开始", "以下是此前对话的快照", "此前的上下文已被压缩", "[对话已压缩"),
    *("为节省空间", "以下是为后面的消息", "===== 此前对话的摘要开始"),
    *("参考情報のみ:", "[これまでの会話の要約の始まり", "以下はこれまでの会話のスナップショット"),
    *(
        "これまでのコンテキストは圧縮",
        "[会話は圧縮",
        "前後のメッセージの間",
        "これまでの会話から",
        "===== これまでの会話の要約",
    ),
)
_PREFACE_CHARS = 700
_TAG = "<system>"
_SPEAKERS = (Role.USER, Role.SYSTEM)
# A frame's opening line is short; a mark further on belongs to the summary itself.
_FRAME_CHARS = 2_000


def summary_of(role: Role, parts: Iterable[Part]) -> PreviousSummary | None:
    """The summary that a message of these parts carries, if it is one."""
    if role not in _SPEAKERS:
        return None
    texts = [part.text for part in parts if isinstance(part, Text)]
    return previous_summary(role, "\n".join(texts)) if texts else None


def previous_summary(role: Role, text: str) -> PreviousSummary | None:
    """The summary, if a user or system message is one.

    Ours is known by one of its prefaces and the marker right after it, the others by their opening words, all at
    the very start (white space and a ``<system>`` tag before them aside). A marker elsewhere is text like any other:
    what a tool printed, or what somebody pasted. Tool results never are summaries.
    """
    if role not in _SPEAKERS:
        return None
    start = text[:200].lstrip().removeprefix(_TAG).lstrip()
    before = text_before_marker(text)
    if before is not None and _leads_to_marker(before, start):
        return PreviousSummary(origin="compact", text=without_marker(text))
    if not start.startswith(_OPENINGS):
        return None
    frame = next(frame for frame in _FRAMES if start.startswith(frame.opening))
    return PreviousSummary(origin=frame.origin, text=_body(text, frame))


def _leads_to_marker(before: str, start: str) -> bool:
    """Whether a marker is believed after this: a preface written by compact, or a client's frame around one."""
    return (
        not before.strip()
        or start.startswith(_OPENINGS)
        or (start.startswith(_OWN_OPENINGS) and len(before) <= _PREFACE_CHARS)
    )


def _body(text: str, frame: _Frame) -> str:
    """The summary without its frame; the whole text where the frame is not as expected."""
    at = text.find(frame.body_after, 0, _FRAME_CHARS) if frame.body_after else -1
    start = at + len(frame.body_after) if at >= 0 else 0
    ends = [end for mark in frame.ends if (end := text.rfind(mark, start)) >= 0]
    return text[start : min(ends, default=None)].strip()
