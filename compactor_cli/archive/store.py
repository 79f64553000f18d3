"""Archive: the originals, stored under the SHA-256 of their bytes before anything else is touched.

Files are 0600 and folders 0700. A file that has its name is complete and on the disk. See `folder`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

from compactor_cli.archive.atomic import (
    PRIVATE_FOLDER_MODE,
    make_folders,
    new_temporary,
    output_error,
    sync_opened,
    temporary_name,
)
from compactor_cli.archive.folder import (
    SIDECAR_ENDING,
    STATE_FOLDER,
    STATE_HASH_CHARS,
    STATE_LIMITS,
    Blob,
    ManifestEntry,
    Part,
    append_entry,
    is_hex,
    moment,
    open_inside,
    opened_folder,
    parse_part,
    stored_name,
    stored_opener,
    unpacked,
)
from compactor_cli.model.errors import OutputError, Unreadable
from compactor_cli.read.streams import BUFFER_BYTES, Compression, ContentHash, Opener, open_stream, packing


class Archive:
    """An archive folder; it is made when the first thing is stored. Originals are packed with zstd or gzip.

    What stores is durable on return, or raises `OutputError` and leaves the archive as it was.
    """

    def __init__(self, folder: str | Path, compression: Compression = Compression.ZSTD) -> None:
        self.folder = Path(folder)
        self.compression = Compression.GZIP if compression is Compression.GZIP else Compression.ZSTD

    def writer(self) -> ArchiveWriter:
        """Store an original while it is read."""
        return ArchiveWriter(self)

    def record(
        self,
        blob: Blob,
        *,
        records: int,
        dialect: str,
        source: str,
        compacted_at: str = "",
        written: tuple[str, int] = ("", 0),
    ) -> ManifestEntry:
        """Add a stored original to the manifest; ``written``: SHA-256 and size of what takes its place, if any."""
        entry = ManifestEntry(
            sha256=blob.sha256,
            bytes=blob.size_bytes,
            stored=blob.stored,
            records=records,
            dialect=dialect,
            source=source,
            compacted_at=compacted_at or moment(),
            written_sha256=written[0],
            written_bytes=written[1],
        )
        append_entry(self.folder, entry)
        return entry

    def store_state(self, data: bytes) -> str:
        """Store a digest's counter table; returns the 16 hex digits it is found by."""
        name = hashlib.sha256(data).hexdigest()[:STATE_HASH_CHARS]
        if self.load_state(name) is None:
            with PartialFile(self.folder, Compression.ZSTD) as draft:
                draft.write(data)
                draft.take_name(self._state(name))
        return name

    def load_state(self, name: str) -> bytes | None:
        """The counter table with this hash; None if it is not here, or damaged."""
        if len(name) != STATE_HASH_CHARS or not is_hex(name):
            return None
        try:
            data = b"".join(unpacked(self._state(name), STATE_LIMITS))
        except Unreadable:
            return None
        return data if hashlib.sha256(data).hexdigest().startswith(name) else None

    def _state(self, name: str) -> Path:
        return self.folder / STATE_FOLDER / f"{name}{Compression.ZSTD.suffix}"


class ArchiveWriter:
    """Stores one original piece by piece, as an observer of its stream; its hash is known at the end.

    Used as a context manager: what is not committed when the block ends is gone without a trace.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._content = ContentHash()
        self._original = PartialFile(archive.folder, archive.compression)
        self._sidecar: PartialFile | None = None

    def __enter__(self) -> Self:
        self._original.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._sidecar:
            self._sidecar.discard()
        self._original.discard()

    @property
    def sha256(self) -> str:
        """64 hex digits, of everything seen so far."""
        return self._content.sha256

    @property
    def size_bytes(self) -> int:
        """The number of bytes seen so far."""
        return self._content.size_bytes

    def __call__(self, piece: memoryview | bytes) -> None:
        """Take the next piece in."""
        self._content(piece)
        self._original.write(piece)

    def add_part(self, part: Part) -> None:
        """List a compacted transcript of this original; for originals that hold several."""
        if self._sidecar is None:
            self._sidecar = PartialFile(self._archive.folder, Compression.ZSTD).__enter__()
        self._sidecar.write(part.line())

    def commit(self) -> Blob:
        """The whole original was seen: give it its name. Call once."""
        stored = stored_name(self.sha256, f".jsonl{self._archive.compression.suffix}")
        self._original.take_name(self._archive.folder / stored)
        if self._sidecar:
            _add_sidecar(self._sidecar, self._archive.folder / stored_name(self.sha256, SIDECAR_ENDING))
        return Blob(sha256=self.sha256, size_bytes=self.size_bytes, stored=stored)


def _add_sidecar(draft: PartialFile, path: Path) -> None:
    """Give the list its name, with all that an earlier compaction of the same original listed."""
    earlier = _lines(path)
    if not earlier:
        draft.take_name(path)
        return
    draft.finish()
    root = draft.path.parent
    found = _lines(draft.path, lambda path, flags: open_inside(root, draft.path.name, flags))
    if found <= earlier:
        return
    with PartialFile(root, Compression.ZSTD) as merged:
        for line in sorted(earlier | found, key=lambda line: (parse_part(line, path).offset, line)):
            merged.write(line)
        merged.take_name(path)


def _lines(path: Path, opener: Opener = stored_opener) -> set[bytes]:
    """The lines of a sidecar; none if it is missing or damaged, so that it is written anew."""
    try:
        with open_stream(str(path), opener=opener) as stream:
            return {line for line in stream.lines() if parse_part(line, path)}
    except Unreadable:
        return set()


class PartialFile:
    """A file of the archive without its name yet: complete and on the disk before it takes it."""

    def __init__(self, folder: Path, compression: Compression) -> None:
        self.path = temporary_name(folder)
        self._compression = compression
        self._stack = contextlib.ExitStack()
        self._folders = contextlib.ExitStack()
        self._root = -1
        self._made_folder = not folder.exists()

    def __enter__(self) -> Self:
        try:
            make_folders(self.path.parent, PRIVATE_FOLDER_MODE)
            with _errors(self.path):
                self._root = self._folders.enter_context(opened_folder(self.path.parent))
                file = self._stack.enter_context(_synced(self.path.name, self._root))
                self._packer = self._stack.enter_context(packing(file, self._compression))
        except BaseException:
            self.discard()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        self.discard()

    def write(self, data: memoryview | bytes) -> None:
        """Take the next piece in."""
        with _errors(self.path):
            self._packer.write(data)

    def finish(self) -> None:
        """Everything is written and on the disk."""
        with _errors(self.path):
            self._stack.close()

    def take_name(self, path: Path) -> None:
        """Finish, and be ``path``; a file that is there already stays if it has the same bytes."""
        self.finish()
        root = self.path.parent
        folder = path.parent.relative_to(root).as_posix()
        with _errors(path), opened_folder(root, "" if folder == "." else folder, make=True) as parent:
            if not _are_equal(root, self.path.name, path.relative_to(root).as_posix()):
                os.replace(self.path.name, path.name, src_dir_fd=self._root, dst_dir_fd=parent)
            sync_opened(parent)

    def discard(self) -> None:
        """Leave nothing, unless the name was taken."""
        discarded = OutputError("discarded")
        with contextlib.suppress(OSError, OutputError):
            self._stack.__exit__(OutputError, discarded, None)
        if self._root >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self.path.name, dir_fd=self._root)
            self._root = -1
        self._folders.close()
        if self._made_folder:
            with contextlib.suppress(OSError):
                self.path.parent.rmdir()


@contextlib.contextmanager
def _synced(name: str, folder: int) -> Iterator[IO[bytes]]:
    """A new private file that is on the disk when the block ends well."""
    with os.fdopen(new_temporary(name, folder=folder), "wb", BUFFER_BYTES) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise output_error(error, str(path)) from error


def _are_equal(root: Path, one: str, other: str) -> bool:
    """Whether two files of the archive hold the same bytes; not, if either cannot be read."""
    try:
        with os.fdopen(open_inside(root, one), "rb") as first, os.fdopen(open_inside(root, other), "rb") as second:
            while piece := first.read(BUFFER_BYTES):
                if piece != second.read(len(piece)):
                    return False
            return not second.read(1)
    except (OSError, Unreadable):
        return False
