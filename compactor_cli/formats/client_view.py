"""What a client makes of a session: which messages it sends, in which order, what it would ignore without a word.

Observed with the clients themselves; the formats' documentation lists the runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from compactor_cli.formats.base import objects
from compactor_cli.formats.claude_tree import Tree
from compactor_cli.formats.contents import string
from compactor_cli.formats.located import Value, at, is_shown
from compactor_cli.formats.registry import find
from compactor_cli.model.errors import Place
from compactor_cli.model.marker import find_marker
from compactor_cli.model.transcript import Container, Media, Message, Part, Role, Text, Thinking, Transcript
from compactor_cli.model.value import dataclass

# These clients send a summary before everything else, wherever it stands.
_SUMMARY_FIRST = ("pi", "opencode")
# A summary of this client's own stands after what it keeps before it.
_IN_ORDER = "codex"
# This client sends the last version of a record where the first one stood, and the thinking of one model only.
_VERSIONED = _THINKING_OF_ONE_MODEL = "claude-code"
# Reasoning and summaries that only their provider can read, as the dialects name them: no images or files.
OPAQUE_KINDS = frozenset(
    {"encrypted_reasoning", "reasoning", "reasoning_details", "redacted_thinking", "compaction", "compaction_summary"}
    | {"context_compaction", "cachePoint"}
)


def sent_messages(transcript: Transcript) -> Iterator[tuple[int, Message]]:
    """What is sent, in that order: the index of each record, and of its message what the client sends.

    Claude Code leaves out the thinking of every model but the one that answered last: no other can use it.
    """
    for i in sent(transcript):
        message = transcript.messages[i]
        if transcript.dialect == _THINKING_OF_ONE_MODEL and message.role is Role.ASSISTANT:
            model = string(at(transcript.records[i].value, ("message", "model")))
            if model and transcript.model and model != transcript.model:
                message = replace(message, parts=tuple(part for part in message.parts if not _is_thinking(part)))
        if message.parts:
            yield i, message


def sent(transcript: Transcript) -> tuple[int, ...]:
    """The records that a model is shown, in the order in which it is shown them.

    That is the order of the file, except for a summary that was appended after the tail: it and an acknowledgement
    come before what it did not replace.
    """
    messages = transcript.messages
    shown = [i for i, one in enumerate(messages) if is_shown(one) and one.parts]
    if transcript.dialect == _VERSIONED:
        # Other versions of earlier records at the place of these.
        again = Tree(objects(transcript.records)).again
        shown.sort(key=lambda i: (again.get(i, i), i))
    summaries = [i for i in shown if messages[i].summary]
    if not summaries:
        return tuple(shown)
    last = summaries[-1]
    start = _tail_start(transcript, last)
    # What this client sends before everything else is the summary alone.
    following = () if transcript.dialect in _SUMMARY_FIRST else tuple(i for i in shown if i > last)
    stop = next((i for i in following if not _is_answer(messages[i])), len(messages) if following else last + 1)
    head = [i for i in shown if i < start]
    tail = [i for i in shown if start <= i < last]
    return (*head, *(i for i in shown if last <= i < stop), *tail, *(i for i in shown if i >= stop))


def _tail_start(transcript: Transcript, summary: int) -> int:
    """The first record that is sent after the summary though it stands before it."""
    messages = transcript.messages
    if transcript.dialect in _SUMMARY_FIRST:
        return 0
    found = messages[summary].summary
    if found and found.origin == _IN_ORDER:
        return summary
    marker = find_marker(messages[summary].text)
    if marker and marker.records <= summary:
        return marker.last
    replaced = (i for i in range(summary - 1, -1, -1) if messages[i].superseded and not messages[i].is_meta)
    return next(replaced, summary - 1) + 1


def _is_thinking(part: Part) -> bool:
    return isinstance(part, Thinking) or (isinstance(part, Media) and part.kind == "redacted_thinking")


def _is_answer(message: Message) -> bool:
    return message.role is Role.ASSISTANT and all(isinstance(part, Text) for part in message.parts)


@runtime_checkable
class Resumed(Protocol):
    """A dialect whose client goes on with its sessions, and ignores some records without a word."""

    def problems(self, values: Sequence[Value]) -> Iterator[tuple[int, str]]:
        """The records that do not work as they were meant, and what the client makes of each."""


# The clients that were seen to resume a session with a turn that was interrupted while a tool ran: they leave the
# call out, or answer it themselves.
RESUMED_WHEN_INTERRUPTED = frozenset(
    {"claude-code", "codex", "pi", "gemini-cli", "qwen-code", "kimi-wire", "kimi-cli", "opencode"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that does not work as it was meant: where, and what the client makes of it."""

    place: Place
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


def find_problems(transcript: Transcript) -> tuple[Problem, ...]:
    """What does not work in a session; nothing for formats without a client."""
    dialect = find(transcript.dialect)
    if transcript.frame.container is not Container.LINES or not isinstance(dialect, Resumed):
        return ()
    glued = (i for i, record in enumerate(transcript.records[:-1]) if not record.ending)
    note = "another record follows it on its line: the client reads at most the first"
    found = (*dialect.problems(objects(transcript.records)), *((i, note) for i in glued))
    return tuple(Problem(place=transcript.records[i].place, what=what) for i, what in found)
