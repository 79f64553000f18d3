"""Values to transcripts, as a file of them is opened."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.registry import Insertion, InsertionPoint, get
from compactor_cli.model.transcript import Message, Role, Transcript
from compactor_cli.read.jsonl import OnInvalid, read_records


def open_bytes(data: bytes, dialect: str = "") -> list[Transcript]:
    records = read_records(data.splitlines(keepends=True), "file.jsonl", OnInvalid.KEEP)
    return list(open_transcripts(records, dialect=dialect, prefix=records.prefix))


def open_values(*values: Any, dialect: str = "") -> list[Transcript]:
    return open_bytes(b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values), dialect)


def open_one(*values: Any, dialect: str = "") -> Transcript:
    (transcript,) = open_values(*values, dialect=dialect)
    return transcript


def message(dialect: str, value: Any) -> Message:
    (found,) = open_one(value, dialect=dialect).messages
    return found


def shortened(dialect: str, value: Any, texts: dict[int, str]) -> Any:
    """The value after `shorten`, written without spaces and read again."""
    record = open_one(value, dialect=dialect).records[0]
    return json.loads(get(dialect).shorten(record, texts))


def inserted(transcript: Transcript, before: int, *texts: str) -> list[Any]:
    """A summary (and acknowledgements after it) set before this record."""
    roles = [Role.USER] + [Role.ASSISTANT] * len(texts)
    items = [
        Insertion(role=role, text=text, is_summary=role is Role.USER) for role, text in zip(roles, texts, strict=False)
    ]
    cut = InsertionPoint(before=tuple(range(before)), after=tuple(range(before, len(transcript.records))))
    return [json.loads(raw) for raw in get(transcript.dialect).insert(transcript, cut, items)]


def joined(transcripts: Iterable[Transcript]) -> bytes:
    return b"".join(transcript.source() for transcript in transcripts)
