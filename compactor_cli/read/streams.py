"""Streams: inputs opened and unpacked within limits, with observers that see every byte.

An observer is called with each piece of the unpacked bytes, in order, while they are read, so that hashing and
archiving need no second pass. It must not keep the piece, whose memory is used again.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import re
import select
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Self, cast

from compactor_cli.model.errors import Place, Unreadable
from compactor_cli.model.value import dataclass

STDIN = "-"
# Measured: 4.0 GB/s against 1.9 with Python's default of 8 KiB.
BUFFER_BYTES = 1 << 20

Observer = Callable[[memoryview], object]
# As the ``opener`` of `open`: path and flags to a file descriptor.
Opener = Callable[[str, int], int]

# The level at which zstd packs transcripts about five-fold at hundreds of MB/s.
ZSTD_LEVEL = 3
GZIP_LEVEL = 6

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# RFC 8878, 3.1.2: a skippable frame starts with 0x184D2A50 … 0x184D2A5F, little-endian.
_ZSTD_SKIPPABLE_MAGIC = b"\x2a\x4d\x18"

MAGIC_BYTES = 4
# Below this unpacked size the ratio is not checked: some hundred MB of one repeated line are packed a thousandfold.
_RATIO_FROM_BYTES = 256 << 20
# A byte-order mark between values comes from files that were joined.
_BLANKS = re.compile(rb"(?:[ \t\r\n]|\xef\xbb\xbf)*")
_PIECE_BYTES = 1 << 16
# A byte-order mark, which counts as blank, may be split between two pieces.
_MARK_BYTES = 3


class Compression(StrEnum):
    """How a file is packed."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"

    @property
    def suffix(self) -> str:
        """The suffix of file names, ``.gz`` or ``.zst``; empty for NONE."""
        return {Compression.GZIP: ".gz", Compression.ZSTD: ".zst"}.get(self, "")


def compression_of(head: bytes) -> Compression:
    """The compression of a file, by its first `MAGIC_BYTES`."""
    if head.startswith(_GZIP_MAGIC):
        return Compression.GZIP
    if head.startswith(_ZSTD_MAGIC):
        return Compression.ZSTD
    is_skippable = len(head) >= MAGIC_BYTES and head[0] & 0xF0 == 0x50 and head[1:4] == _ZSTD_SKIPPABLE_MAGIC
    return Compression.ZSTD if is_skippable else Compression.NONE


def compression_named(name: str) -> Compression:
    """The compression of a file, by its name: ``.gz`` or ``.zst`` at the end, in upper or lower case."""
    found = (item for item in (Compression.GZIP, Compression.ZSTD) if name.lower().endswith(item.suffix))
    return next(found, Compression.NONE)


def zstd() -> Any:
    """The zstd module, imported on first use: the standard library's where there is one, else the backport."""
    if sys.version_info >= (3, 14):
        from compression import zstd as module
    else:
        from backports import zstd as module
    return module


def unpacking(file: io.BufferedIOBase, compression: Compression) -> io.BufferedIOBase:
    """A reader of the unpacked bytes of a packed file; several gzip members or zstd frames are read as one."""
    if compression is Compression.GZIP:
        import gzip

        return gzip.GzipFile(fileobj=cast("IO[bytes]", file), mode="rb")
    return cast("io.BufferedIOBase", zstd().ZstdFile(file, "rb"))


@contextlib.contextmanager
def packing(file: IO[bytes], compression: Compression) -> Iterator[IO[bytes]]:
    """A writer that packs into ``file``, which stays open.

    The packed stream is finished when the block ends normally. After an exception it is left without an end, so
    that half a result never looks whole. The same pieces give the same packed bytes, since no time and no name are
    stored.
    """
    if compression is Compression.NONE:
        yield file
        return
    valve = _Valve(file)
    packer: Any
    if compression is Compression.GZIP:
        import gzip

        packer = gzip.GzipFile("", "wb", GZIP_LEVEL, cast("IO[bytes]", valve), mtime=0)
    else:
        module = zstd()
        options = {module.CompressionParameter.compression_level: ZSTD_LEVEL}
        options[module.CompressionParameter.checksum_flag] = 1
        packer = module.ZstdFile(valve, "wb", options=options)
    # Without any write, zstd would leave a file of no bytes, which is not a packed stream.
    packer.write(b"")
    try:
        yield packer
    except BaseException:
        valve.is_shut = True
        raise
    finally:
        packer.close()


def damage() -> tuple[type[Exception], ...]:
    """The exceptions that unpackers raise if the packed bytes are broken or cut short."""
    return (EOFError, zlib.error, zstd().ZstdError)


class _Valve(io.RawIOBase):
    """Passes writes on to a file until it is shut, and then discards them. Never closes the file."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self.is_shut = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data) if self.is_shut else self._file.write(data)

    def flush(self) -> None:
        if not self.is_shut and not self._file.closed:
            self._file.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """The largest input that is accepted; 0: no limit."""

    line_bytes: int = 0  # of a line, or of a JSON document that spans lines; to read it takes up to 16 times the memory
    unpacked_bytes: int = 0  # of a packed input
    unpacked_ratio: int = 0  # unpacked to packed bytes of a packed input; checked from 256 MiB unpacked on


NO_LIMITS = ReadLimits()
# Real transcripts are packed 5 to 50-fold and have lines of some MB (images, documents, results of tools).
DEFAULT_LIMITS = ReadLimits(line_bytes=128 << 20, unpacked_bytes=16 << 30, unpacked_ratio=1_000)

_own_limits: list[Callable[[], ReadLimits]] = [lambda: DEFAULT_LIMITS]


@contextlib.contextmanager
def reads_within(limits: Callable[[], ReadLimits]) -> Iterator[None]:
    """Set the limits for whatever this process opens without limits of its own while the block lasts.

    ``limits`` is called each time something is opened.
    """
    _own_limits.append(limits)
    try:
        yield
    finally:
        _own_limits.pop()


class UnpackedWatch:
    """An observer that raises when an input unpacks beyond its limits. ``packed``: how many packed bytes were read."""

    def __init__(self, path: str, limits: ReadLimits, packed: Callable[[], int]) -> None:
        self._path = path
        self._limits = limits
        self._packed = packed
        self._unpacked_bytes = 0

    def __call__(self, piece: memoryview) -> None:
        """Count the next piece. Raises `Unreadable` beyond the limits."""
        self._unpacked_bytes += len(piece)
        most = self._limits.unpacked_bytes
        if most and self._unpacked_bytes > most:
            raise self._error(f"it unpacks to more than {written(most)}", "max-unpacked")
        ratio = self._limits.unpacked_ratio
        if ratio and self._unpacked_bytes > _RATIO_FROM_BYTES and self._unpacked_bytes > ratio * max(1, self._packed()):
            raise self._error(f"it unpacks to more than {ratio:,} times its size", "max-ratio")

    def _error(self, what: str, option: str) -> Unreadable:
        return Unreadable(what, place=self._path, next_step=larger_limit(option))


def larger_limit(option: str) -> str:
    """Advice on something that is beyond the limit that this option sets."""
    variable = f"COMPACT_{option.replace('-', '_').upper()}"
    return f"check what it is; --set {option}=SIZE, or {variable}, takes a larger limit, 0 for none"


def too_long(path: str, number: int, limit_bytes: int, what: str = "the line") -> Unreadable:
    """The error for a line that is longer than the limit, or for a document that begins on it."""
    place = Place(path=path, line=number)
    return Unreadable(f"{what} is longer than {written(limit_bytes)}", place=place, next_step=larger_limit("max-line"))


def written(size_bytes: int) -> str:
    """A number of bytes for people, in the form that options take where it is a whole number of K, M or G: ``128M``."""
    for shift, unit in ((30, "G"), (20, "M"), (10, "K")):
        if size_bytes >= 1 << shift and not size_bytes % (1 << shift):
            return f"{size_bytes >> shift}{unit}"
    return f"{size_bytes:,} bytes"


def blanks_end(raw: bytes, start: int = 0) -> int:
    """The first offset from ``start`` on that is neither blank nor in a byte-order mark."""
    found = _BLANKS.match(raw, start)
    return found.end() if found else start


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A part of a file, in bytes of a file of lines, or in row groups of a Parquet file.

    In a file of lines both ends are moved to the start of a row, see `row_start`. That depends only on the file and the
    offset, so the readers of adjacent slices find the same places, and every byte is in exactly one slice.
    """

    start: int  # first byte or row group
    stop: int  # the one after the last


def row_start(file: io.FileIO, offset: int) -> int:
    """The offset of the first row that begins at or after ``offset``, at the start of a line; 0 for 0.

    Blanks and blank lines between two rows belong to the first row, as in `RecordReader`.
    """
    if offset <= 0:
        return 0
    at = file.seek(offset - 1)
    while (piece := file.read(_PIECE_BYTES)) and (feed := piece.find(b"\n")) < 0:
        at += len(piece)
    if not piece:
        return at
    at += feed + 1
    rest = piece[feed + 1 :]
    while (blanks := blanks_end(rest)) > len(rest) - _MARK_BYTES and (more := file.read(_PIECE_BYTES)):
        at, rest = at + blanks, rest[blanks:] + more
    return at + blanks


class SlicedFile(io.FileIO):
    """A file read only from the first to the last row of a slice."""

    def __init__(self, path: str, part: Slice) -> None:
        with io.FileIO(path) as whole:
            size_bytes = os.fstat(whole.fileno()).st_size
            start, stop = (row_start(whole, min(offset, size_bytes)) for offset in (part.start, part.stop))
        super().__init__(path)
        self._left = stop - self.seek(start)

    def read(self, size: int | None = -1, /) -> bytes:
        """Read at most ``size`` bytes; none at the end of the slice."""
        found = super().read(self._left if size is None or size < 0 else min(size, self._left))
        self._left -= len(found)
        return found

    def readinto(self, buffer: Any, /) -> int:
        """Read into the buffer, once, and return the number of bytes; 0 at the end of the slice."""
        view = memoryview(buffer)[: self._left]
        count = super().readinto(view) or 0
        self._left -= count
        return count


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The state of a file when it was looked at. If two looks are equal, nobody wrote to it in between."""

    device: int
    inode: int
    size_bytes: int
    mtime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Look:
        """The look by the result of a ``stat``."""
        return cls(device=status.st_dev, inode=status.st_ino, size_bytes=status.st_size, mtime_ns=status.st_mtime_ns)

    def age_seconds(self) -> float:
        """How long ago the file was written, by this machine's clock; never negative."""
        return max(0.0, (time.time_ns() - self.mtime_ns) / 1e9)


class ContentHash:
    """An observer that computes the size and the SHA-256 of what it has seen."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.size_bytes = 0

    def __call__(self, piece: memoryview | bytes) -> None:
        """Take the next piece in."""
        self._hash.update(piece)
        self.size_bytes += len(piece)

    @property
    def sha256(self) -> str:
        """64 hex digits, of everything seen so far."""
        return self._hash.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An open input."""

    path: str
    reader: io.BufferedReader  # of the unpacked bytes
    compression: Compression
    look: Look | None  # the file when it was opened; None for a pipe
    file: io.FileIO
    limits: ReadLimits

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.reader.close()
        self.file.close()

    def is_waiting(self) -> bool:
        """Whether reading the next line would wait for the writer of a pipe. False if unknown: for packed input."""
        if self.look is not None or self.compression is not Compression.NONE:
            return False
        import select

        poll = select.poll()
        poll.register(self.file, select.POLLIN)
        if poll.poll(0):
            return False
        raw = cast("_Watched", self.reader.raw)
        raw.is_shut = True
        try:
            return b"\n" not in self.reader.peek(1)
        finally:
            raw.is_shut = False

    def lines(self) -> Iterator[bytes]:
        """The lines, each with its line feed. Raises `Unreadable`, with the line's number, for one over the limit."""
        most = self.limits.line_bytes
        if not most:
            yield from self.reader
            return
        number = 1
        while line := self.reader.readline(most + 1):
            if len(line) > most:
                raise too_long(self.path, number, most)
            yield line
            number += 1


def open_stream(
    path: str,
    observers: Sequence[Observer] = (),
    part: Slice | None = None,
    opener: Opener | None = None,
    limits: ReadLimits | None = None,
) -> Stream:
    """Open a file, or standard input for ``-``; gzip and zstd are recognised by their first bytes.

    ``part`` restricts a file that is not packed to a slice. ``opener`` is as that of `open`. ``limits`` are by default
    those of `reads_within`. Raises `Unreadable`, here and later from the reader, if the input is missing, a directory,
    not permitted, broken in its compression, or beyond the limits.
    """
    limits = _own_limits[-1]() if limits is None else limits
    with contextlib.ExitStack() as closing:
        try:
            if path == STDIN:
                file: io.FileIO = _StandardInput(0, closefd=False)
            else:
                file = SlicedFile(path, part) if part else io.FileIO(path, opener=opener)
            closing.callback(file.close)
            status = os.fstat(file.fileno())
            head = b""
            while len(head) < MAGIC_BYTES and (more := file.read(MAGIC_BYTES - len(head))):
                head += more
        except OSError as error:
            raise unreadable(error, path) from error
        compression = compression_of(head)
        packed = _Rejoined(head, file)
        if compression is Compression.NONE:
            watched = _Watched(packed, path, observers)
        else:
            unpacked = unpacking(io.BufferedReader(packed, BUFFER_BYTES), compression)
            watch = UnpackedWatch(path, limits, lambda: packed.size_bytes)
            watched = _Watched(unpacked, path, (watch, *observers))
        look = Look.of(status) if stat.S_ISREG(status.st_mode) else None
        reader: io.BufferedReader = io.BufferedReader(watched, BUFFER_BYTES)
        closing.pop_all()
        return Stream(path=path, reader=reader, compression=compression, look=look, file=file, limits=limits)


def shown_name(path: str) -> str:
    """The name of an input in messages."""
    return "standard input" if path == STDIN else path


def unreadable(error: BaseException, path: str) -> Unreadable:
    """The error of reading ``path`` in words, with what to do next."""
    if isinstance(error, FileNotFoundError):
        what, advice = "no such file", "check the name"
    elif isinstance(error, IsADirectoryError):
        what, advice = "is a directory", "use -r to read the files in it"
    elif isinstance(error, PermissionError):
        what, advice = "no permission to read it", "check its owner and mode"
    elif path == STDIN and isinstance(error, OSError) and error.errno == errno.EBADF:
        what, advice = "it is closed", "name a file"
    elif isinstance(error, EOFError):
        what, advice = "the compressed data ends too early", "it may still be being written; try again later"
    elif isinstance(error, OSError) and error.errno is not None:
        what, advice = f"cannot be read ({error.strerror})", "check the file system"
    else:
        what = f"the compressed data is broken ({error})"
        advice = "test it with gzip -t or zstd -t (zstd --long needs unpacking first)"
    return Unreadable(what, place=shown_name(path), next_step=advice)


class _StandardInput(io.FileIO):
    """Standard input, waited for where it does not block: a pipe with nothing in it yet is not at its end."""

    def read(self, size: int | None = -1, /) -> bytes:
        while (found := super().read(size)) is None:
            select.select([self], [], [])
        return found

    def readinto(self, buffer: Any, /) -> int:
        while (count := super().readinto(buffer)) is None:
            select.select([self], [], [])
        return count


class _Rejoined(io.RawIOBase):
    """A file read from its first byte again after its head was read, since a pipe cannot be rewound."""

    def __init__(self, head: bytes, file: io.FileIO) -> None:
        super().__init__()
        self._head = head
        self._file = file
        self.size_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]  # always called by io with a view
        if not self._head:
            count = self._file.readinto(buffer)
        else:
            count = min(len(buffer), len(self._head))
            buffer[:count] = self._head[:count]
            self._head = self._head[count:]
        self.size_bytes += count or 0
        return count


class _Watched(io.RawIOBase):
    """Passes every byte that is read to the observers, and turns errors into `Unreadable`."""

    def __init__(self, source: io.BufferedIOBase | io.RawIOBase, path: str, observers: Sequence[Observer]) -> None:
        super().__init__()
        self._source = source
        self._path = path
        self._observers = tuple(observers)
        self.is_shut = False  # while True nothing is read, so that ``peek`` shows only what is already in the buffer

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        if self.is_shut:
            return None
        try:
            count = self._source.readinto(buffer) or 0
        except OSError as error:
            raise unreadable(error, self._path) from error
        except damage() as error:
            raise unreadable(error, self._path) from error
        for observe in self._observers if count else ():
            observe(buffer[:count])
        return count


def look_at(path: str | Path) -> Look:
    """The state of a file now, following links. Raises `Unreadable`."""
    try:
        return Look.of(Path(path).stat())
    except OSError as error:
        raise unreadable(error, str(path)) from error


def content_sha256(path: str, part: Slice | None = None) -> str:
    """The SHA-256 of the unpacked content of a file, or of a part of it, in hex. Raises `Unreadable`."""
    content = ContentHash()
    with open_stream(path, (content,), part) as stream:
        while stream.reader.read1(BUFFER_BYTES):
            pass
    return content.sha256
