"""Sessions made by hand, and what becomes of them, for the tests of the session dialects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from compactor_cli.formats.registry import Dialect, Insertion, InsertionPoint
from compactor_cli.model.errors import Place
from compactor_cli.model.transcript import Record, Role, Transcript
from compactor_cli.read.jsonl import OnInvalid, read_records

SUMMARY = Insertion(role=Role.USER, text="What was done: S-U-M.", is_summary=True)
ACKNOWLEDGEMENT = Insertion(role=Role.ASSISTANT, text="Understood.")


def line(value: Any) -> Record:
    raw = json.dumps(value, ensure_ascii=False).encode()
    return Record(raw=raw, ending=b"\n", value=value, place=Place(path="made.jsonl", line=1))


def made(dialect: Dialect, values: Iterable[Any]) -> Transcript:
    return opened(dialect, [line(value) for value in values])


def opened(dialect: Dialect, records: Sequence[Record]) -> Transcript:
    return Transcript(
        dialect=dialect.name,
        records=tuple(records),
        messages=dialect.read(records),
        sha256="0" * 64,
        model=dialect.model(records),
    )


def from_file(dialect: Dialect, path: Path) -> Transcript:
    lines = path.read_bytes().splitlines(keepends=True)
    return opened(dialect, list(read_records(lines, str(path), OnInvalid.KEEP)))


def compacted(
    dialect: Dialect, transcript: Transcript, start: int, stop: int, insertions: Sequence[Insertion] = (SUMMARY,)
) -> Transcript:
    """With the records from ``start`` to ``stop`` replaced by the insertions."""
    cut = InsertionPoint(before=tuple(range(start)), after=tuple(range(stop, len(transcript.records))))
    new = [
        Record(raw=raw, ending=b"\n", value=json.loads(raw), place=Place(path="made.jsonl", line=0))
        for raw in dialect.insert(transcript, cut, insertions)
    ]
    records = (*transcript.records[:start], *new, *transcript.records[stop:])
    return replace(transcript, records=records, messages=dialect.read(records), sha256="1" * 64)


def shown(transcript: Transcript) -> list[str]:
    """The words, calls and results that a model is shown, in the order of the file."""
    messages = (message for message in transcript.messages if not message.is_meta and not message.superseded)
    return [
        word
        for message in messages
        for word in (
            *([message.text] if message.text else []),
            *(f"{call.name}({call.arguments})" for call in message.calls),
            *(f"= {result.text}" for result in message.results),
        )
    ]
