"""Manifest: the list of what an archive holds, one JSON line for each compaction."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson

from compactor_cli.archive.atomic import PRIVATE_FILE_MODE, output_error, sync_folder
from compactor_cli.archive.folder import open_inside

MANIFEST = "MANIFEST.jsonl"
_NUMBERS = frozenset(("bytes", "records", "written_bytes"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One archived original.

    ``sha256`` and ``bytes`` are of the unpacked original, ``stored`` is its file inside the archive,
    ``source`` the path it was read from (bytes that are not UTF-8 as ``\\xff``), ``compacted_at`` UTC in ISO 8601.
    ``written_*`` are of the file as it stood after the compaction, where that took the original's place.
    """

    sha256: str
    bytes: int
    stored: str
    records: int = 0
    dialect: str = ""
    source: str = ""
    compacted_at: str = ""
    written_sha256: str = ""
    written_bytes: int = 0


def now() -> str:
    """The time for `ManifestEntry.compacted_at`, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def append_entry(folder: Path, entry: ManifestEntry) -> None:
    """Add a line, durably; whoever else adds one at the same time waits.

    On an error the manifest is as it was. Raises `OutputError`, and `Unreadable` for a manifest that is a link.
    """
    import fcntl

    path = folder / MANIFEST
    try:
        descriptor = open_inside(folder, MANIFEST, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE_FILE_MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            _append(descriptor, _line(entry))
        finally:
            os.close(descriptor)
        sync_folder(folder)
    except OSError as error:
        raise output_error(error, str(path)) from error


def _line(entry: ManifestEntry) -> bytes:
    source = os.fsencode(entry.source).decode("utf-8", "backslashreplace")
    value = dataclasses.asdict(entry) | {"source": source}
    if not entry.written_sha256:
        del value["written_sha256"], value["written_bytes"]
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def _append(descriptor: int, line: bytes) -> None:
    size = os.fstat(descriptor).st_size
    # A line torn by a power cut ends here, so that it does not spoil the new one.
    data = line if not size or os.pread(descriptor, 1, size - 1) == b"\n" else b"\n" + line
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    except BaseException:
        os.ftruncate(descriptor, size)
        raise


def read_entries(folder: Path) -> Iterator[tuple[int, ManifestEntry | None]]:
    """(line number, entry) of each line that is not blank; None for a line that is no entry.

    Unknown keys are ignored. A missing manifest has no entries. Raises `OSError` if it cannot be read, `Unreadable`
    if it is a link.
    """
    try:
        descriptor = open_inside(folder, MANIFEST)
    except FileNotFoundError:
        return
    with os.fdopen(descriptor, "rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, _entry(line)


def _entry(line: bytes) -> ManifestEntry | None:
    try:
        value = orjson.loads(line)
        known = {field.name: value[field.name] for field in dataclasses.fields(ManifestEntry) if field.name in value}
        entry = ManifestEntry(**known)
    except (ValueError, TypeError, KeyError):
        return None
    values = dataclasses.asdict(entry)
    are_right = all(type(value) is (int if name in _NUMBERS else str) for name, value in values.items())
    return entry if are_right else None
