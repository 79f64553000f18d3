"""Expand: the records that an id names, a summary's reference or a marker line, as they were."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from compactor_cli.archive.stored_transcripts import load_transcript
from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.model.marker import Reference, find_marker, parse_id, parse_ranges, record_id
from compactor_cli.model.transcript import Message, Record, Transcript

_MARKER = re.compile(r"\[compact/1 [^\]]*\]")
_FORMS = "write HASH:12, HASH:4-9, HASH and then [12], or a summary's marker line"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedRecord:
    """One archived record and what it says; ``sha256`` is of its transcript, ``number`` counts from 1."""

    sha256: str
    number: int
    record: Record
    message: Message

    @property
    def id(self) -> str:
        """The id by which it is found again."""
        return record_id(self.sha256, self.number - 1)


def expand(folders: Sequence[str | Path], names: Iterable[str]) -> Iterator[ExpandedRecord]:
    """The records that ``names`` stand for, in the order given.

    A name is an id (``54453b50:12``, ``54453b50:4-9``, also in brackets), a hash (all records), or a marker line (the
    records its summary stands for). After a hash or marker line, references as summaries print them (``[12]``) mean
    records of that transcript, and these alone. Raises UsageError for what is none of these, InputError where the
    archive has no such transcript, more than one, or not that many records.
    """
    load = lru_cache(maxsize=4)(lambda prefix: load_transcript(folders, prefix))
    for reference in references(names):
        transcript = load(reference.transcript)
        for first, last in reference.ranges or ((1, len(transcript.records)),):
            yield from _records(transcript, first, last)


def references(names: Iterable[str]) -> tuple[Reference, ...]:
    """What the names mean, each reference with the transcript it belongs to. Raises UsageError."""
    found: list[Reference] = []
    base, is_waiting = "", False
    for name in (name.strip() for name in names):
        marked, ranges = _marked(name) or parse_id(name.strip("[]")), parse_ranges(name)
        if marked:
            found.append(marked)
            base, is_waiting = marked.transcript, ":" not in name
        elif ranges and base:
            if is_waiting:
                found.pop()
            found.append(Reference(transcript=base, ranges=ranges.ranges))
            is_waiting = False
        elif ranges:
            advice = f"write HASH:{name.strip('[]')}, with the hash in the summary's marker line"
            raise UsageError(f"{name} does not say of which transcript", next_step=advice)
        else:
            raise UsageError(f"“{name}” names no record", next_step=_FORMS)
    return tuple(found)


def _marked(text: str) -> Reference | None:
    """What the marker line in a text stands for; None: there is none."""
    line = _MARKER.search(text)
    marker = find_marker(line[0]) if line else None
    return Reference(transcript=marker.transcript, ranges=((marker.first, marker.last),)) if marker else None


def _records(transcript: Transcript, first: int, last: int) -> Iterator[ExpandedRecord]:
    count = len(transcript.records)
    if not 1 <= first <= last <= count:
        what = f"{transcript.sha256[:16]} has the records 1-{count}, not {first}{f'-{last}' if last != first else ''}"
        raise InputError(what, next_step="give numbers within")
    for number in range(first, last + 1):
        i = number - 1
        yield ExpandedRecord(
            sha256=transcript.sha256, number=number, record=transcript.records[i], message=transcript.messages[i]
        )
