"""Archives of conversations written for these tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from compactor_cli.archive.store import Archive, ManifestEntry, Part


def said(*texts: str, time: str = "") -> list[dict[str, Any]]:
    """User and assistant in turns."""
    roles = ("user", "assistant")
    more = {"timestamp": time} if time else {}
    return [{"role": roles[i % 2], "content": text, **more} for i, text in enumerate(texts)]


def session(messages: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(message, ensure_ascii=False).encode() + b"\n" for message in messages)


def add(archive: Archive, data: bytes) -> ManifestEntry:
    """Store an original that is at hand."""
    with archive.writer() as writer:
        writer(data)
        return writer.commit()


def store(folder: Path, *messages: dict[str, Any], source: str = "/s/a.jsonl", at: str = "2026-01-02T03:04:05Z") -> str:
    """Archive a session; its hash."""
    archive = Archive(folder)
    blob = add(archive, session(messages))
    archive.record(replace(blob, records=len(messages), dialect="openai-chat", source=source, compacted_at=at))
    return blob.sha256


def store_rows(folder: Path, *rows: bytes, listed: Sequence[int]) -> ManifestEntry:
    """Archive rows as one original in which only some were compacted."""
    import hashlib

    archive, offset = Archive(folder), 0
    with archive.writer() as writer:
        for number, row in enumerate(rows):
            writer(row)
            if number in listed:
                writer.add_part(Part(sha256=hashlib.sha256(row).hexdigest(), offset=offset, length=len(row)))
            offset += len(row)
        blob = writer.commit()
    archive.record(replace(blob, records=len(rows), dialect="openai-chat", source="/s/rows.jsonl"))
    return blob


def remove(folder: Path, sha256: str) -> None:
    """Delete an original from the archive."""
    for path in (folder / sha256[:2]).glob(f"{sha256}*"):
        path.unlink()
