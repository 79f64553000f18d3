"""Prune: old originals taken out of an archive, but none that a compacted file still depends on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from compactor_cli.archive.atomic import output_error
from compactor_cli.archive.known import Listed, listed, markers_in
from compactor_cli.archive.layout import SIDECAR_ENDING, read_parts, stored_name
from compactor_cli.archive.manifest import MANIFEST
from compactor_cli.model.errors import CompactError
from compactor_cli.read.streams import STDIN

# May be deleted at any time; the next search makes it anew.
_INDEX = "INDEX.sqlite3"
_HASH_CHARS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An original that is old enough. ``used_by``: the file that still depends on it; empty: none that is known."""

    item: Listed
    stored_bytes: int
    used_by: str = ""


def candidates(archives: Sequence[Path], before: str) -> list[Candidate]:
    """The originals last compacted before this moment (UTC, ISO 8601), the oldest first, each once.

    One is in use as long as a summary in the file it was archived from names it, or one in another original that is
    in use itself.
    """
    newest = _newest(listed(archives))
    used = _in_use(newest)
    old = [item for item in newest.values() if item.entry.compacted_at < before]
    return [
        Candidate(item=item, stored_bytes=_size(item.path), used_by=used.get(item.entry.sha256, ""))
        for item in sorted(old, key=lambda item: item.entry.compacted_at)
    ]


def remove(items: Iterable[Listed]) -> None:
    """Take these originals out of their archives, the manifest first. Raises `OutputError`."""
    by_archive: dict[Path, set[str]] = {}
    for item in items:
        by_archive.setdefault(item.archive, set()).add(item.entry.sha256)
    for archive, hashes in by_archive.items():
        try:
            _unlist(archive / MANIFEST, hashes)
            for sha256 in hashes:
                for path in (archive / sha256[:2]).glob(f"{sha256}.*"):
                    path.unlink()
                with suppress(OSError):
                    (archive / sha256[:2]).rmdir()
            (archive / _INDEX).unlink(missing_ok=True)
        except OSError as error:
            raise output_error(error, str(archive)) from error


def _newest(items: Iterable[Listed]) -> dict[tuple[Path, str], Listed]:
    """The last compaction of each original in each archive."""
    newest: dict[tuple[Path, str], Listed] = {}
    for item in items:
        key = (item.archive, item.entry.sha256)
        if key not in newest or item.entry.compacted_at >= newest[key].entry.compacted_at:
            newest[key] = item
    return newest


def _in_use(items: dict[tuple[Path, str], Listed]) -> dict[str, str]:
    """The originals that are in use, with the file each is used by."""
    by_name: dict[str, str] = {}
    for (archive, sha256), _ in items.items():
        by_name[sha256[:_HASH_CHARS]] = sha256
        by_name |= {name[:_HASH_CHARS]: sha256 for name in _parts(archive, sha256)}
    paths = {sha256: item.path for (_, sha256), item in items.items()}
    used: dict[str, str] = {}
    for source in sorted({item.entry.source for item in items.values()} - {STDIN, ""}):
        waiting = [by_name[name] for name in markers_in(source) if name in by_name] if Path(source).is_file() else []
        while waiting:
            sha256 = waiting.pop()
            if sha256 not in used:
                used[sha256] = source
                waiting += [by_name[name] for name in markers_in(paths[sha256]) if name in by_name]
    return used


def _parts(archive: Path, sha256: str) -> Iterator[str]:
    """The hashes of the transcripts inside an original that holds several."""
    sidecar = archive / stored_name(sha256, SIDECAR_ENDING)
    if sidecar.exists():
        with suppress(CompactError):
            yield from (part.sha256 for part in read_parts(sidecar))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _unlist(manifest: Path, hashes: set[str]) -> None:
    """Write the manifest without these originals, under the lock by which others add to it.

    It is written where it lies: who waits for the lock has this file open.
    """
    import fcntl

    with manifest.open("r+b") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        lines = file.readlines()
        kept = b"".join(line for line in lines if not any(f'"{sha256}"'.encode() in line for sha256 in hashes))
        file.seek(0)
        file.write(kept)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
