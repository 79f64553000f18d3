"""Store: the layout of an archive, the one way to open its files, and the storing of originals.

MANIFEST.jsonl                          one line for each archived original
ab/ab12….jsonl.zst                      an original
ab/ab12….transcripts.jsonl.zst          its sidecar: where the compacted transcripts lie in it, if it holds several
state/0123456789abcdef.zst              a digest's counter table, under the start of its hash
INDEX.sqlite3                           the full-text index, made by the first search; may be deleted
append-0123456789abcdef                 what is being appended to a file, until that is done

With `zstd -d` and `sha256sum`, originals can be read and checked without this program. Files are 0600 and folders 0700;
a file under its final name is complete and on the disk.

An archive may lie in a tree that somebody else made (a repository, an unpacked file). A link in it would let that
person choose what is read, appended to or replaced, with the rights of the user who runs the program. So no path below
the archive folder may contain a link, every file must be a regular one, and all must belong to the user.
``.transcripts``, which is found rather than named by the user, must not be a link itself either.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Self

import orjson

from compactor_cli.archive import atomic
from compactor_cli.archive.atomic import PRIVATE_FILE_MODE, PRIVATE_FOLDER_MODE, followed, sync_opened, system_errors
from compactor_cli.model.errors import OutputError, Unreadable
from compactor_cli.model.value import dataclass
from compactor_cli.read import streams
from compactor_cli.read.jsonl import OnInvalid, records_in
from compactor_cli.read.sources import MANIFEST, data_folder
from compactor_cli.read.streams import BUFFER_BYTES, DEFAULT_LIMITS, Compression, ContentHash, ReadLimits, open_stream

LOCAL_ARCHIVE = ".transcripts"
INDEX = "INDEX.sqlite3"

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe in the place of a file must not wait; it is refused once it is open.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ADVICE = "look at it, and remove it; or name another archive with --archive-dir"
SHA256_CHARS = 64
STATE_HASH_CHARS = 16
STATE_FOLDER = "state"
# A state is read as a whole; those of the longest sessions have a few MB.
STATE_LIMITS = ReadLimits(unpacked_bytes=DEFAULT_LIMITS.line_bytes)
BLOB_ENDING = f".jsonl{Compression.ZSTD.suffix}"
SIDECAR_ENDING = f".transcripts.jsonl{Compression.ZSTD.suffix}"
_MOST_LINE_BYTES = 1 << 20  # of the manifest: longer lines are not this program's, as a path has a few KB
# `\xff`, as `backslashreplace` writes a byte that is not UTF-8
_ESCAPED = re.compile(rb"\\x([89a-f][0-9a-f])")
_NUMBERS = frozenset(("bytes", "records", "written_bytes"))


@contextlib.contextmanager
def opened_folder(root: Path, name: str = "", *, make: bool = False) -> Iterator[int]:
    """A descriptor of the archive folder, or of the folder ``name`` in it, for opening files relative to it.

    With ``make``, the folder ``name`` is made first, private. Raises `Unreadable` for a link and for a folder that is
    not the user's, `OSError` for everything else.
    """
    with contextlib.ExitStack() as stack:
        is_found = root.name == LOCAL_ARCHIVE
        folder = _open(str(root), _FOLDER | (os.O_NOFOLLOW if is_found else 0), None, root)
        stack.callback(os.close, folder)
        if is_found:
            _check_own(os.fstat(folder), root)
        if name:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, PRIVATE_FOLDER_MODE, dir_fd=folder)
                    sync_opened(folder)
            folder = _open(name, _FOLDER | os.O_NOFOLLOW, folder, root / name)
            stack.callback(os.close, folder)
            _check_own(os.fstat(folder), root / name)
        yield folder


def open_inside(root: Path, name: str, flags: int = os.O_RDONLY) -> int:
    """Open ``name`` (``file`` or ``folder/file``) in the archive folder ``root``; returns the descriptor.

    Raises `Unreadable` for a link, a file that is not regular, a file of another user and, if it is opened for writing,
    a file with several names; `OSError` for everything else, as `os.open` does.
    """
    folder, _, last = name.rpartition("/")
    path = root / name
    with opened_folder(root, folder) as parent:
        descriptor = _open(last, flags | _FILE, parent, path)
    try:
        check_plain(os.fstat(descriptor), path, is_written=flags & (os.O_WRONLY | os.O_RDWR) != 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def stored_opener(path: str, flags: int) -> int:
    """An opener for `open_stream` that opens a stored file, ``ROOT/folder/file``, by `open_inside`."""
    file = Path(path)
    return open_inside(file.parent.parent, f"{file.parent.name}/{file.name}", flags)


def check_plain(status: os.stat_result, path: Path, *, is_written: bool) -> None:
    """Raise `Unreadable` unless it is a regular file of the user's, and has only one name if it is written to."""
    if stat.S_ISLNK(status.st_mode):
        raise Unreadable("is a link, and nothing in an archive is one", place=str(path), next_step=_ADVICE)
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("is not a regular file, and it lies in an archive", place=str(path), next_step=_ADVICE)
    # Only for writing: backups by hard links give files a second name, and those may be read.
    if is_written and status.st_nlink > 1:
        raise Unreadable("has a second name elsewhere (a hard link)", place=str(path), next_step=_ADVICE)
    _check_own(status, path)


def _check_own(status: os.stat_result, path: Path) -> None:
    if status.st_uid != os.geteuid():
        raise Unreadable(f"belongs to another user (uid {status.st_uid})", place=str(path), next_step=_ADVICE)


def _open(name: str, flags: int, parent: int | None, path: Path) -> int:
    try:
        return os.open(name, flags, PRIVATE_FILE_MODE, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.ENXIO):
            with contextlib.suppress(OSError):
                status = os.stat(name, dir_fd=parent, follow_symlinks=False)
                if not stat.S_ISDIR(status.st_mode):
                    check_plain(status, path, is_written=False)
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A transcript inside an original: its hash, and where its bytes lie in the unpacked original."""

    sha256: str
    offset: int
    length: int
    on_invalid: OnInvalid = OnInvalid.KEEP  # DROP: the offset counts without lines that are not JSON

    def line(self) -> bytes:
        """Its line in a sidecar."""
        value: dict[str, object] = {"sha256": self.sha256, "offset": self.offset, "length": self.length}
        if self.on_invalid is OnInvalid.DROP:
            value["on_invalid"] = self.on_invalid.value
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


WHEN_ARCHIVED = (
    "-i and --append archive what they change; -o, --output-dir and a pipe leave the input as it is, and archive with"
    " --archive"
)
"""The reason why there may be no original, as a text for people."""


def default_archive_dir(path: str, *, in_place: bool) -> Path:
    """``.transcripts/`` next to a file that is changed in place; otherwise ``$XDG_DATA_HOME/compact/archive``."""
    if in_place and path != streams.STDIN:
        return followed(path).parent / LOCAL_ARCHIVE
    return data_folder() / "archive"


def stored_name(sha256: str, ending: str) -> str:
    """The path of a file of this original, relative to the archive folder."""
    return f"{sha256[:2]}/{sha256}{ending}"


def stored_sha256(file_name: str) -> str:
    """The hash in the file name of a stored original; empty for any other name."""
    sha256 = file_name.partition(".")[0]
    is_hash = len(sha256) == SHA256_CHARS and is_hex(sha256)
    return sha256 if is_hash and file_name[SHA256_CHARS:] == BLOB_ENDING else ""


def is_hex(text: str) -> bool:
    """Whether the text consists of lower-case hexadecimal digits only, and is not empty."""
    return bool(text) and all(letter in "0123456789abcdef" for letter in text)


def stored_blobs(folder: Path, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """The (sha256, path) of the originals whose hash begins with ``prefix``, in the order of their hashes."""
    for shard in sorted(folder.glob(f"{prefix[:2]}*" if len(prefix) >= 2 else "??")):
        for path in sorted(shard.glob(f"{prefix}*")):
            if sha256 := stored_sha256(path.name):
                yield sha256, path


def stored_sidecars(folder: Path) -> Iterator[tuple[str, Path]]:
    """The (sha256 of the original, path) of the sidecars, in the order of their hashes."""
    for path in sorted(folder.glob(f"??/*{SIDECAR_ENDING}")):
        yield path.name.partition(".")[0], path


def open_stored(path: Path, limits: ReadLimits | None = None) -> streams.Stream:
    """Open a stored file, ``ARCHIVE/folder/file``. Raises `Unreadable`, for a link too, and as `open_stream` does."""
    return open_stream(str(path), opener=stored_opener, limits=limits)


def content(path: Path, on_invalid: OnInvalid = OnInvalid.KEEP, limits: ReadLimits | None = None) -> Iterator[bytes]:
    """The unpacked bytes of a stored file; with DROP, without the lines that are not JSON. Raises as `open_stored`."""
    with open_stored(path, limits) as stream:
        if on_invalid is OnInvalid.DROP:
            records = records_in(stream, on_invalid)
            yield records.prefix
            for record in records:
                yield record.raw + record.ending
            return
        while piece := stream.reader.read1(BUFFER_BYTES):
            yield piece


def read_parts(path: Path) -> Iterator[Part]:
    """The transcripts that a sidecar lists. Raises `Unreadable`."""
    with open_stored(path) as stream:
        for line in stream.lines():
            yield parse_part(line, path)


def parse_part(line: bytes, path: Path) -> Part:
    """Parse one line of a sidecar; ``path`` is for the message. Raises `Unreadable`."""
    try:
        value = orjson.loads(line)
        return Part(
            sha256=str(value["sha256"]),
            offset=int(value["offset"]),
            length=int(value["length"]),
            on_invalid=OnInvalid(value.get("on_invalid", OnInvalid.KEEP)),
        )
    except (ValueError, TypeError, KeyError) as error:
        advice = "the originals are not affected: restore by their own hash"
        raise Unreadable("the list of transcripts is broken", place=str(path), next_step=advice) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One line of the manifest: an archived original."""

    sha256: str  # of the unpacked original
    bytes: int  # the size of the unpacked original
    stored: str  # its file, relative to the archive folder
    records: int = 0  # how many it has
    dialect: str = ""
    source: str = ""  # the path it was read from; bytes that are not UTF-8 are written as `\xff`
    compacted_at: str = ""  # UTC, ISO 8601
    written_sha256: str = ""  # of the file after the compaction, if that took the original's place
    written_bytes: int = 0  # the size of that file


def source_path(source: str) -> str:
    """The path that an entry's ``source`` stands for."""
    if "\\x" not in source or os.path.lexists(source):
        return source  # if it has a backslash, that is part of its name
    return os.fsdecode(_ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), os.fsencode(source)))


def moment(seconds: float | None = None, timespec: str = "seconds") -> str:
    """A time (in Unix seconds; None: now) as ISO 8601 in UTC, as manifests, reports and events have it."""
    at = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return at.isoformat(timespec=timespec).replace("+00:00", "Z")


def append_entry(folder: Path, entry: ManifestEntry) -> None:
    """Add an entry to the manifest, durably; other processes that add one at the same time wait.

    On an error the manifest is as it was. Raises `OutputError`, and `Unreadable` for a manifest that is a link.
    """
    import fcntl

    value = dataclasses.asdict(entry) | {"source": os.fsencode(entry.source).decode("utf-8", "backslashreplace")}
    if not entry.written_sha256:
        del value["written_sha256"], value["written_bytes"]
    data = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    with system_errors(folder / MANIFEST):
        descriptor = open_inside(folder, MANIFEST, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data  # ends a line that was torn by a power cut, which would spoil the new one
            try:
                while data:
                    data = data[os.write(descriptor, data) :]
                os.fsync(descriptor)
            except BaseException:
                os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)
        atomic.sync_folder(folder)


def read_entries(folder: Path) -> Iterator[tuple[int, ManifestEntry | None]]:
    """The (line number, entry) of each line that is not blank; the entry is None if the line is not a valid one.

    Unknown keys are ignored. A missing manifest has no entries. Raises `OSError` if it cannot be read, `Unreadable`
    if it is a link.
    """
    try:
        descriptor = open_inside(folder, MANIFEST)
    except FileNotFoundError:
        return
    with os.fdopen(descriptor, "rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(_MOST_LINE_BYTES), b""), 1):
            if line.strip():
                yield number, parse_entry(line)


def parse_entry(line: bytes) -> ManifestEntry | None:
    """Parse a line of the manifest; returns None if it is not a valid entry."""
    try:
        value = orjson.loads(line)
        known = {field.name: value[field.name] for field in dataclasses.fields(ManifestEntry) if field.name in value}
        entry = ManifestEntry(**known)
    except (ValueError, TypeError, KeyError):
        return None
    values = dataclasses.asdict(entry)
    are_right = all(type(value) is (int if name in _NUMBERS else str) for name, value in values.items())
    # Files are read, restored and removed by these two fields, so that they must name a stored original.
    is_named = are_right and entry.sha256 != "" and entry.sha256 == stored_sha256(entry.stored[3:])
    return entry if is_named and entry.stored.startswith(f"{entry.sha256[:2]}/") else None


class Archive:
    """An archive folder, which is made when something is first stored. Originals are compressed with zstd.

    The methods that store something are durable on return, or raise `OutputError` and leave the archive as it was.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def writer(self) -> ArchiveWriter:
        """A writer that stores an original while it is read."""
        return ArchiveWriter(self)

    def record(self, entry: ManifestEntry) -> None:
        """Add a stored original to the manifest, as compacted now unless the entry has a time."""
        append_entry(self.folder, dataclasses.replace(entry, compacted_at=entry.compacted_at or moment()))

    def store_state(self, data: bytes) -> str:
        """Store a digest's counter table; returns its name, the first 16 digits of its hash."""
        name = hashlib.sha256(data).hexdigest()[:STATE_HASH_CHARS]
        if self.load_state(name) is None:
            with PartialFile(self.folder) as draft:
                draft.write(data)
                draft.take_name(self._state(name))
        return name

    def load_state(self, name: str) -> bytes | None:
        """The counter table of this name; None if it is missing or damaged."""
        if len(name) != STATE_HASH_CHARS or not is_hex(name):
            return None
        with contextlib.suppress(Unreadable):
            data = b"".join(content(self._state(name), limits=STATE_LIMITS))
            return data if hashlib.sha256(data).hexdigest().startswith(name) else None
        return None

    def _state(self, name: str) -> Path:
        return self.folder / STATE_FOLDER / f"{name}{Compression.ZSTD.suffix}"


class ArchiveWriter:
    """Stores one original piece by piece, as an observer of its stream; ``content`` has hash and size so far.

    Used as a context manager: if it is not committed when the block ends, nothing is left in the archive.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.content = ContentHash()
        self._original = PartialFile(archive.folder)
        self._sidecar: PartialFile | None = None

    def __enter__(self) -> Self:
        self._original.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            if self._sidecar:
                self._sidecar.discard()
        finally:
            self._original.discard()

    def __call__(self, piece: memoryview | bytes) -> None:
        """Write the next piece."""
        self.content(piece)
        self._original.write(piece)

    def add_part(self, part: Part) -> None:
        """Enter a compacted transcript in the sidecar of this original; for originals that hold several."""
        if self._sidecar is None:
            self._sidecar = PartialFile(self._archive.folder)  # known before there is a file that has to be removed
            self._sidecar.__enter__()
        self._sidecar.write(part.line())

    def commit(self) -> ManifestEntry:
        """Give the original, which is complete, its final name, and the sidecar too. Call once.

        Returns what is known here of its entry in the manifest, which `Archive.record` makes.
        """
        sha256 = self.content.sha256
        stored = stored_name(sha256, BLOB_ENDING)
        self._original.take_name(self._archive.folder / stored)
        if draft := self._sidecar:
            root = self._archive.folder
            path = root / stored_name(sha256, SIDECAR_ENDING)
            draft.finish()
            listed = _lines(draft.path, lambda _, flags: open_inside(root, draft.path.name, flags))
            # The entries of an earlier compaction of the same original are kept.
            if not (earlier := _lines(path)):
                draft.take_name(path)
            elif not listed <= earlier:
                with PartialFile(root) as merged:
                    for line in sorted(earlier | listed, key=lambda line: (parse_part(line, path).offset, line)):
                        merged.write(line)
                    merged.take_name(path)
        return ManifestEntry(sha256=sha256, bytes=self.content.size_bytes, stored=stored)


def _lines(path: Path, opener: streams.Opener = stored_opener) -> set[bytes]:
    """The lines of a sidecar; none if it is missing or damaged, so that it is written again."""
    with contextlib.suppress(Unreadable), open_stream(str(path), opener=opener) as stream:
        return {line for line in stream.lines() if parse_part(line, path)}
    return set()


class PartialFile:
    """A file of the archive under a temporary name, until it is complete and on the disk."""

    def __init__(self, folder: Path, compression: Compression = Compression.ZSTD) -> None:
        self.path = atomic.temporary_name(folder)
        self._compression = compression
        self._stack = contextlib.ExitStack()
        self._folders = contextlib.ExitStack()
        self._root = -1
        self._made_folder = not folder.exists()

    def __enter__(self) -> Self:
        try:
            atomic.make_folders(self.path.parent, PRIVATE_FOLDER_MODE)
            with system_errors(self.path):
                self._root = self._folders.enter_context(opened_folder(self.path.parent))
                file = self._stack.enter_context(_synced(self.path.name, self._root))
                self._packer = self._stack.enter_context(streams.packing(file, self._compression))
        except BaseException:
            self.discard()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        self.discard()

    def write(self, data: memoryview | bytes) -> None:
        """Write the next piece."""
        with system_errors(self.path):
            self._packer.write(data)

    def finish(self) -> None:
        """Write what is left, and bring the file to the disk."""
        with system_errors(self.path):
            self._stack.close()

    def take_name(self, path: Path) -> None:
        """Finish, and move the file to ``path``, unless a file with the same bytes is there already."""
        self.finish()
        root = self.path.parent
        folder = path.parent.relative_to(root).as_posix()
        with system_errors(path), opened_folder(root, "" if folder == "." else folder, make=True) as parent:
            if not _are_equal(root, self.path.name, path.relative_to(root).as_posix()):
                os.replace(self.path.name, path.name, src_dir_fd=self._root, dst_dir_fd=parent)
            sync_opened(parent)

    def discard(self) -> None:
        """Remove the file unless it has its final name, and the folder if it was made for it and is empty."""
        if self._root >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self.path.name, dir_fd=self._root)
            self._root = -1
        with contextlib.suppress(OSError, OutputError):
            self._stack.__exit__(OutputError, OutputError("discarded"), None)
        self._folders.close()
        if self._made_folder:
            with contextlib.suppress(OSError):
                self.path.parent.rmdir()


@contextlib.contextmanager
def _synced(name: str, folder: int) -> Iterator[IO[bytes]]:
    """A new private file, which is on the disk when the block ends without an exception."""
    with os.fdopen(atomic.new_temporary(name, folder=folder), "wb", BUFFER_BYTES) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _are_equal(root: Path, one: str, other: str) -> bool:
    """Whether two files of the archive hold the same bytes; False if either cannot be read."""
    try:
        with os.fdopen(open_inside(root, one), "rb") as first, os.fdopen(open_inside(root, other), "rb") as second:
            while piece := first.read(BUFFER_BYTES):
                if piece != second.read(len(piece)):
                    return False
            return not second.read(1)
    except (OSError, Unreadable):
        return False
