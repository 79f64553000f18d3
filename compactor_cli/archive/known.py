"""Known archives: where this user's originals are, over all folders; and which original a file came from.

The list is in the state folder, a path a line. It is only a help to find archives: what it names and is gone is left
out, and an archive that it does not name is found by its folder as before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from compactor_cli.archive.atomic import PRIVATE_FILE_MODE, PRIVATE_FOLDER_MODE, make_folders
from compactor_cli.archive.layout import default_archive_dir, stored_blobs
from compactor_cli.archive.manifest import MANIFEST, ManifestEntry, read_entries
from compactor_cli.archive.restore import FoundOriginal, find
from compactor_cli.model.errors import CompactError, InputError
from compactor_cli.read.streams import BUFFER_BYTES, STDIN, open_stream

# The marker line of a summary, in any format: it is ASCII, and JSON leaves it as it is.
_MARKER = re.compile(rb"\[compact/1 transcript=([0-9a-f]{16}) ")
_MARKER_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A line of the manifest of one of several archives."""

    archive: Path
    entry: ManifestEntry

    @property
    def path(self) -> Path:
        """The stored file."""
        return self.archive / self.entry.stored


def list_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The list of archives: below ``$XDG_STATE_HOME``."""
    folder = Path(environ.get("XDG_STATE_HOME") or "")
    return (folder if folder.is_absolute() else Path.home() / ".local/state") / "compact" / "archives"


def remember(archive: Path) -> None:
    """Add an archive to the list, if it is not in it. Where the list cannot be written, nothing happens."""
    line = os.fsencode(archive.absolute())
    if b"\n" in line:
        return
    path = list_file()
    with suppress(OSError, CompactError):
        if path.exists() and line in path.read_bytes().split(b"\n"):
            return
        make_folders(path.parent, PRIVATE_FOLDER_MODE)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE_MODE)
        try:
            os.write(descriptor, line + b"\n")
        finally:
            os.close(descriptor)


def known_archives() -> tuple[Path, ...]:
    """The archives in the list that are there, each once, and the one in the data folder."""
    try:
        lines = list_file().read_bytes().split(b"\n")
    except OSError:
        lines = []
    folders = [Path(os.fsdecode(line)) for line in lines if line]
    return each_once([*folders, default_archive_dir(STDIN, in_place=False)])


def each_once(folders: Iterable[Path]) -> tuple[Path, ...]:
    """The folders that are there, in their order, each once however it is named."""
    found: dict[str, Path] = {}
    for folder in folders:
        if folder.is_dir():
            found.setdefault(os.path.realpath(folder), folder)
    return tuple(found.values())


def listed(archives: Iterable[Path]) -> Iterator[Listed]:
    """What the manifests of these archives name. One that cannot be read is left out."""
    for archive in archives:
        with suppress(OSError, CompactError):
            yield from (Listed(archive=archive, entry=entry) for _, entry in read_entries(archive) if entry)


def original_of(path: str, archives: Iterable[Path]) -> FoundOriginal:
    """What was archived when this file was last compacted in its place; else what its newest summary was made from.

    Raises `InputError` if these archives do not know.
    """
    folders = tuple(archives)
    names = {str(Path(path).absolute()), os.path.realpath(path)}
    of_path = [item for item in listed(folders) if item.entry.source in names and item.path.exists()]
    if of_path:
        newest = max(of_path, key=lambda item: item.entry.compacted_at)
        return FoundOriginal(sha256=newest.entry.sha256, path=newest.path)
    for name in reversed(tuple(markers_in(path)) if Path(path).is_file() else ()):
        return find(folders, name)
    advice = "compactor archive list shows what there is; name another archive with --archive-dir"
    raise InputError("no archive holds an original of it", place=path, next_step=advice)


def markers_in(path: str | Path) -> dict[str, None]:
    """The hashes (16 digits) that summaries in this file name, in their order. Empty where it cannot be read."""
    found: dict[str, None] = {}
    tail = b""
    with suppress(CompactError, OSError), open_stream(str(path)) as stream:
        while piece := stream.reader.read1(BUFFER_BYTES):
            window = tail + piece
            found.update(dict.fromkeys(name.decode() for name in _MARKER.findall(window)))
            tail = window[-_MARKER_BYTES:]
    return found


def is_archive(folder: Path) -> bool:
    """Whether a folder holds an archive."""
    return (folder / MANIFEST).exists() or any(stored_blobs(folder))


def stored_size(archive: Path) -> int:
    """Bytes that the originals of an archive take."""
    return sum(path.stat().st_size for _, path in stored_blobs(archive))
