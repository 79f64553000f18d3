"""What earlier summaries say about a transcript: how large it once was, and whether anything was added."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from compactor_cli.model.marker import Marker, find_marker
from compactor_cli.model.transcript import Transcript


def previous_marker(transcript: Transcript) -> Marker | None:
    """The marker of the newest summary of ours that is still in force."""
    for message in reversed(transcript.messages):
        if message.summary and not message.superseded and (found := find_marker(message.text)):
            return found
    return None


def end_hash(transcript: Transcript) -> str:
    """16 hex digits of the SHA-256 of the last record that is no bookkeeping and no summary; empty if there is none."""
    last = next(_conversation_backwards(transcript), None)
    return "" if last is None else _hash(transcript, last)


def base_tokens(transcript: Transcript, tokens: Sequence[int]) -> int:
    """The size of the transcript with everything that summaries of ours stand for.

    ``tokens``: of each record. Behind the record that the marker calls the end, everything is new and comes
    on top of the marker's size; where no message stayed,
    all of them are new; where that record is not found, the larger of the two sizes is taken. A share of
    this size is thus the same before and after a compaction. Linear in the records behind the end.
    """
    marker = previous_marker(transcript)
    if marker is None:
        return sum(tokens)
    added = 0
    for index in _conversation_backwards(transcript):
        if _hash(transcript, index) == marker.end:
            return marker.tokens + added
        added += tokens[index]
    return max(marker.tokens, sum(tokens)) if marker.end else marker.tokens + added


def _conversation_backwards(transcript: Transcript) -> Iterator[int]:
    for index in range(len(transcript.records) - 1, -1, -1):
        message = transcript.messages[index]
        if not message.is_meta and message.summary is None:
            yield index


def _hash(transcript: Transcript, index: int) -> str:
    return hashlib.sha256(transcript.records[index].raw).hexdigest()[:16]
