"""What a client makes of its session: which messages it sends, in which order; what it would ignore without a word.

Observed with the clients themselves; the formats' documentation lists the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from compactor_cli.formats.base import objects
from compactor_cli.formats.contents import string
from compactor_cli.formats.located import at
from compactor_cli.formats.sessions import Value, is_shown
from compactor_cli.model.errors import Place
from compactor_cli.model.marker import find_marker
from compactor_cli.model.transcript import Container, Media, Message, Part, Role, Text, Thinking, Transcript
from compactor_cli.model.value import dataclass

# These clients send a summary before everything else, wherever it stands.
_SUMMARY_FIRST = ("pi", "opencode")
# A summary of this client's own stands after what it keeps before it.
_IN_ORDER = "codex"
# This client sends the last version of a record where the first one stood, and the thinking of one model only.
_VERSIONED = _ONE_MIND = "claude-code"
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
        if transcript.dialect == _ONE_MIND and message.role is Role.ASSISTANT:
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
    shown = _in_place(transcript, [i for i, one in enumerate(messages) if is_shown(one) and one.parts])
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


def _in_place(transcript: Transcript, shown: list[int]) -> list[int]:
    """Other versions of earlier records at the place of these."""
    if transcript.dialect != _VERSIONED:
        return shown
    from compactor_cli.formats.claude_tree import Tree

    again = Tree(objects(transcript.records)).again
    return sorted(shown, key=lambda i: (again.get(i, i), i)) if again else shown


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
    """The doubts about a session; none for formats without a client."""
    look = _LOOKS.get(transcript.dialect) if transcript.frame.container is Container.LINES else None
    if not look:
        return ()
    glued = (i for i, record in enumerate(transcript.records[:-1]) if not record.ending)
    note = "another record follows it on its line: the client reads at most the first"
    found = (*look(objects(transcript.records)), *((i, note) for i in glued))
    return tuple(Problem(place=transcript.records[i].place, what=what) for i, what in found)


def _claude(values: Sequence[Value]) -> Iterator[tuple[int, str]]:
    from compactor_cli.formats.claude_tree import Tree, is_boundary, last_boundary, left_out, named_uuids, outdone

    tree = Tree(values)
    in_force = last_boundary(tree)
    for i, value in enumerate(values):
        if is_boundary(value) and (in_force is None or i > in_force):
            yield i, "this compaction is ignored: nothing that follows links to it"
    if in_force is not None:
        missing = [uuid for uuid in named_uuids(values[in_force]) if uuid not in tree.index]
        if missing:
            yield in_force, f"{len(missing)} of the records that it says are preserved are not there: none is sent"
    end = None if tree.newest is None else tree.breaks_off(tree.newest)
    if end is not None and end in tree.is_main:
        yield end, "the record that it links to is not there: older clients send nothing before it"
    if left := left_out(tree):
        yield min(left), f"{len(left)} records from here on link to another root or branch: they are not sent"
    for i in sorted(outdone(tree)):
        yield i, "a later record has its uuid and says something else: that one is sent in its place"


def _codex(values: Sequence[Value]) -> Iterator[tuple[int, str]]:
    from compactor_cli.formats.codex import History, payload_of

    history = History(values)
    for i, value in enumerate(values):
        if value.get("type") == "compacted" and i not in history.boundaries:
            yield i, "this compaction is ignored: it lacks a timestamp, a message or a content that is a list"
    first = payload_of(values[0]) if values else {}
    if first.get("history_mode") == "paginated" and "ordinal" not in values[-1]:
        yield len(values) - 1, "the last record has no ordinal: the client refuses the session"


def _pi(values: Sequence[Value]) -> Iterator[tuple[int, str]]:
    from compactor_cli.formats.pi import Path

    path = Path(values)
    on_path = path.sent()
    for i, value in enumerate(values):
        if value.get("type") != "compaction" or not path.has_ids:
            continue
        first = string(value.get("firstKeptEntryId"))
        if i not in on_path:
            yield i, "this compaction is ignored: the last entry does not link to it"
        elif first not in path.index and i == on_path[-1]:
            yield i, "its first kept entry is not there: nothing before it is sent"
    if path.has_ids and path.entries and (end := path.breaks_off(path.entries[-1])) is not None:
        yield end, "the entry that it links to is not there: nothing before it is sent"


def _gemini(values: Sequence[Value]) -> Iterator[tuple[int, str]]:
    ids = {string(value.get("id")) for value in values}
    for i, value in enumerate(values):
        if "$rewindTo" in value and value["$rewindTo"] not in ids:
            yield i, "the message that it takes back is not there"
    headers = (value for value in values if "sessionId" in value and "projectHash" in value)
    if values and next(headers, None) is None and any(value.get("type") == "gemini" for value in values):
        yield 0, "no line names session and project: the client does not find the session"


def _qwen(values: Sequence[Value]) -> Iterator[tuple[int, str]]:
    from compactor_cli.formats.qwen_code import Chain, is_compression

    chain = Chain(values)
    for i, value in enumerate(values):
        if is_compression(value) and i not in chain.sent:
            yield i, "this compression is ignored: the last record does not link to it"
        elif value.get("subtype") == "chat_compression" and not is_compression(value):
            yield i, "this compression is ignored: it has no history"
    if chain.sent and (end := chain.breaks_off(chain.sent[-1])) is not None:
        yield end, "the record that it links to is not there: nothing before it is sent"


def _kimi(values: Sequence[Value]) -> Iterator[tuple[int, str]]:
    from compactor_cli.formats.kimi import COMPACTION, compacted_count

    for i, value in enumerate(values):
        if value.get("type") == COMPACTION and compacted_count(value) is None:
            yield i, "this compaction is ignored: it lacks a summary or a number of messages"


_LOOKS: dict[str, Callable[[Sequence[Value]], Iterator[tuple[int, str]]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "pi": _pi,
    "gemini-cli": _gemini,
    "qwen-code": _qwen,
    "kimi-wire": _kimi,
}
