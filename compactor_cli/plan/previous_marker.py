"""What earlier summaries say about a transcript: how large it once was, and whether anything was added."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from compactor_cli.model.marker import Marker, find_marker
from compactor_cli.model.transcript import Message, Role, Text, Transcript


def previous_marker(transcript: Transcript) -> Marker | None:
    """The marker of the newest summary written by compact that is still in force."""
    for message in reversed(transcript.messages):
        if message.summary and not message.superseded and (found := find_marker(message.text)):
            return found
    return None


def end_hash(transcript: Transcript) -> str:
    """16 hex digits for the last record that is no bookkeeping and no summary; empty if there is none.

    The SHA-256 of its bytes; of its text alone where it is an answer right after a summary: an acknowledgement's ids
    are made from the summary's text, in which this hash stands.
    """
    last = next(_conversation_backwards(transcript), None)
    return "" if last is None else _hash(transcript, last)


def is_settled(transcript: Transcript) -> bool:
    """Whether nothing was added since the newest summary written by compact."""
    marker = previous_marker(transcript)
    return marker is not None and marker.end == end_hash(transcript)


def base_tokens(transcript: Transcript, tokens: Sequence[int]) -> int:
    """The size that a share as target is a share of: the transcript with everything that its summaries stand for.

    ``tokens``: of each record. Where the archived original is known (``original_tokens``), what stands after the
    record that the marker calls the end comes on top of it; where that record is not found, the larger of the two
    sizes is taken. Without the original, it is what is counted now: the marker's own number is only a text. Linear
    in the records after the end.
    """
    marker = previous_marker(transcript) if transcript.original_tokens else None
    if marker is None:
        return sum(tokens)
    added = 0
    for index in _conversation_backwards(transcript):
        if _hash(transcript, index) == marker.end:
            return transcript.original_tokens + added
        added += tokens[index]
    return max(transcript.original_tokens, sum(tokens)) if marker.end else transcript.original_tokens + added


def _conversation_backwards(transcript: Transcript) -> Iterator[int]:
    for index in range(len(transcript.records) - 1, -1, -1):
        message = transcript.messages[index]
        if not message.is_meta and message.summary is None:
            yield index


def _hash(transcript: Transcript, index: int) -> str:
    raw = transcript.records[index].raw
    if _answers_summary(transcript.messages, index):
        raw = transcript.messages[index].text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()[:16]


def _answers_summary(messages: Sequence[Message], index: int) -> bool:
    """Whether this is an assistant's text, and what stands before it a summary."""
    message = messages[index]
    if message.role is not Role.ASSISTANT or not all(isinstance(part, Text) for part in message.parts):
        return False
    before = next((messages[i] for i in range(index - 1, -1, -1) if not messages[i].is_meta), None)
    return before is not None and before.summary is not None
