"""Compression: how bytes are packed on disk. The one place that knows which zstd module this Python has."""

from __future__ import annotations

import contextlib
import io
import sys
import zlib
from collections.abc import Iterator
from enum import StrEnum
from typing import IO, Any, cast

# The level at which zstd packs transcripts about five-fold at hundreds of MB/s.
ZSTD_LEVEL = 3
GZIP_LEVEL = 6

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# RFC 8878, 3.1.2: a skippable frame starts with 0x184D2A50 … 0x184D2A5F, little-endian.
_ZSTD_SKIPPABLE_MAGIC = b"\x2a\x4d\x18"

MAGIC_BYTES = 4


class Compression(StrEnum):
    """How a file is packed."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"

    @property
    def suffix(self) -> str:
        """What it adds to a file name."""
        return {Compression.GZIP: ".gz", Compression.ZSTD: ".zst"}.get(self, "")


def compression_of(head: bytes) -> Compression:
    """The compression that the first `MAGIC_BYTES` of a file show."""
    if head.startswith(_GZIP_MAGIC):
        return Compression.GZIP
    if head.startswith(_ZSTD_MAGIC):
        return Compression.ZSTD
    is_skippable = len(head) >= MAGIC_BYTES and head[0] & 0xF0 == 0x50 and head[1:4] == _ZSTD_SKIPPABLE_MAGIC
    return Compression.ZSTD if is_skippable else Compression.NONE


def compression_named(name: str) -> Compression:
    """The compression that a file name promises: ``.gz`` or ``.zst`` at its end, in any case."""
    found = (item for item in (Compression.GZIP, Compression.ZSTD) if name.lower().endswith(item.suffix))
    return next(found, Compression.NONE)


def zstd() -> Any:
    """The zstd module: the standard library's where it has one. Imported on first use."""
    if sys.version_info >= (3, 14):
        from compression import zstd as module
    else:
        from backports import zstd as module
    return module


def unpacking(file: io.BufferedIOBase | io.RawIOBase, compression: Compression) -> io.BufferedIOBase | io.RawIOBase:
    """A reader of the unpacked bytes; several gzip members or zstd frames are read as one."""
    if compression is Compression.GZIP:
        import gzip

        return gzip.GzipFile(fileobj=cast("IO[bytes]", file), mode="rb")
    if compression is Compression.ZSTD:
        return cast("io.BufferedIOBase", zstd().ZstdFile(file, "rb"))
    return file


@contextlib.contextmanager
def packing(file: IO[bytes], compression: Compression) -> Iterator[IO[bytes]]:
    """A writer that packs into ``file``, which stays open.

    The packed stream is finished when the block ends well; after an exception it is left without an end, so
    that half a result never looks whole. The same pieces give the same packed bytes: no time, no name.
    """
    if compression is Compression.NONE:
        yield file
        return
    valve = _Valve(file)
    packer = _packer(cast("IO[bytes]", valve), compression)
    # Without any write, zstd would leave a file of no bytes, which is not a packed stream.
    packer.write(b"")
    try:
        yield packer
    except BaseException:
        valve.is_shut = True
        raise
    finally:
        packer.close()


def _packer(file: IO[bytes], compression: Compression) -> IO[bytes]:
    if compression is Compression.GZIP:
        import gzip

        return cast("IO[bytes]", gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0))
    module = zstd()
    parameter = module.CompressionParameter
    options = {parameter.compression_level: ZSTD_LEVEL, parameter.checksum_flag: 1}
    return cast("IO[bytes]", module.ZstdFile(file, "wb", options=options))


def damage() -> tuple[type[Exception], ...]:
    """The exceptions by which the unpackers say that the packed bytes are broken or cut short."""
    return (EOFError, zlib.error, zstd().ZstdError)


class _Valve(io.RawIOBase):
    """Passes writes on to a file that it does not close, until it is shut."""

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
