"""What a client would send of a transcript: which messages, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compactor_cli.formats.contents import string
from compactor_cli.formats.located_parts import at
from compactor_cli.model.marker import find_marker
from compactor_cli.model.transcript import Media, Message, Part, Role, Text, Thinking, Transcript

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
    shown = _in_place(transcript, [i for i, message in enumerate(messages) if _is_shown(message)])
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
    from compactor_cli.formats.claude_code import tree_of

    again = tree_of(transcript.records).again
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


def _is_shown(message: Message) -> bool:
    return not message.is_meta and not message.superseded and bool(message.parts)


def _is_thinking(part: Part) -> bool:
    return isinstance(part, Thinking) or (isinstance(part, Media) and part.kind == "redacted_thinking")


def _is_answer(message: Message) -> bool:
    return message.role is Role.ASSISTANT and _all_text(message.parts)


def _all_text(parts: Sequence[object]) -> bool:
    return all(isinstance(part, Text) for part in parts)
