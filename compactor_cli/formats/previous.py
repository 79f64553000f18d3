"""Summaries of earlier compactions, ours and those of other clients, known by how their text begins.

Sources of the openings: the clients' own files and sources as listed in the formats' documentation
(Claude Code 2.1, Codex CLI 0.169, pi 0.73, Gemini CLI 0.61, Qwen Code 0.24, kimi-cli 1.51, Kimi Code 2.1,
hermes-agent and its trajectory compressor).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from compactor_cli.model.marker import find_marker, without_marker
from compactor_cli.model.transcript import Part, PreviousSummary, Role, Text


class _Frame(NamedTuple):
    """What stands around a summary: its opening, the mark behind which the body starts, those where it ends."""

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

    Ours is known by its marker near the start, the others by their opening words at the very start
    (white space and a ``<system>`` tag before them aside). Tool results never are summaries.
    """
    if role not in _SPEAKERS:
        return None
    if find_marker(text):
        return PreviousSummary(origin="compact", text=without_marker(text))
    start = text[:200].lstrip().removeprefix(_TAG).lstrip()
    if not start.startswith(_OPENINGS):
        return None
    frame = next(frame for frame in _FRAMES if start.startswith(frame.opening))
    return PreviousSummary(origin=frame.origin, text=_body(text, frame))


def _body(text: str, frame: _Frame) -> str:
    """The summary without its frame; the whole text where the frame is not as expected."""
    at = text.find(frame.body_after, 0, _FRAME_CHARS) if frame.body_after else -1
    start = at + len(frame.body_after) if at >= 0 else 0
    ends = [end for mark in frame.ends if (end := text.rfind(mark, start)) >= 0]
    return text[start : min(ends, default=None)].strip()
