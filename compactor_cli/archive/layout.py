"""Layout: what lies where in an archive, so that `sha256sum` and `zstd -d` find and check it without us.

MANIFEST.jsonl                          one line for each compaction
ab/ab12….jsonl.zst                      an original (.jsonl.gz if so wished)
ab/ab12….transcripts.jsonl.zst          where in it the compacted transcripts lie, if it holds several
state/0123456789abcdef.zst              a digest's counter table, under the start of its hash
INDEX.sqlite3                           where words stand, once something was searched for; may be deleted
append-0123456789abcdef                 what is being appended to a file, until that is done
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from compactor_cli.archive.atomic import followed
from compactor_cli.archive.folder import LOCAL_ARCHIVE, stored_opener
from compactor_cli.model.errors import Unreadable
from compactor_cli.read.jsonl import OnInvalid, read_records
from compactor_cli.read.streams import BUFFER_BYTES, STDIN, Compression, Stream, open_stream

SHA256_CHARS = 64
STATE_HASH_CHARS = 16
STATE_FOLDER = "state"
BLOB_ENDINGS = tuple(f".jsonl{item.suffix}" for item in (Compression.ZSTD, Compression.GZIP))
SIDECAR_ENDING = f".transcripts.jsonl{Compression.ZSTD.suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """An original in an archive: hash and size unpacked, and its file relative to the archive folder."""

    sha256: str
    size_bytes: int
    stored: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A transcript inside an original: its hash, and where its bytes lie in the unpacked original.

    ``on_invalid`` DROP: in the original without its lines that are not JSON, as `read_records` leaves them out.
    """

    sha256: str
    offset: int
    length: int
    on_invalid: OnInvalid = OnInvalid.KEEP

    def line(self) -> bytes:
        """What a sidecar says of it."""
        value: dict[str, object] = {"sha256": self.sha256, "offset": self.offset, "length": self.length}
        if self.on_invalid is OnInvalid.DROP:
            value["on_invalid"] = self.on_invalid.value
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def default_archive_dir(path: str, *, in_place: bool) -> Path:
    """``.transcripts/`` next to the file that is replaced; otherwise ``$XDG_DATA_HOME/compact/archive``."""
    if in_place and path != STDIN:
        return followed(path).parent / LOCAL_ARCHIVE
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    # The XDG specification has relative paths ignored.
    home = data if data.is_absolute() else Path.home() / ".local" / "share"
    return home / "compact" / "archive"


def stored_name(sha256: str, ending: str) -> str:
    """Where a file of this original lies, relative to the archive folder."""
    return f"{sha256[:2]}/{sha256}{ending}"


def is_hex(text: str) -> bool:
    """Whether the text is nothing but lower-case hexadecimal digits."""
    return bool(text) and all(letter in "0123456789abcdef" for letter in text)


def stored_blobs(folder: Path, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """(sha256, file) of the originals whose hash begins with ``prefix``, in the order of their hashes."""
    for shard in sorted(folder.glob(f"{prefix[:2]}*" if len(prefix) >= 2 else "??")):
        for path in sorted(shard.glob(f"{prefix}*")):
            sha256, _, _ = path.name.partition(".")
            ending = path.name[len(sha256) :]
            if ending in BLOB_ENDINGS and len(sha256) == SHA256_CHARS and is_hex(sha256):
                yield sha256, path


def stored_sidecars(folder: Path) -> Iterator[tuple[str, Path]]:
    """(sha256 of the original, file) of the lists of transcripts, in the order of their hashes."""
    for path in sorted(folder.glob(f"??/*{SIDECAR_ENDING}")):
        yield path.name.partition(".")[0], path


def open_stored(path: Path) -> Stream:
    """A stored file, ``ARCHIVE/folder/file``. Raises `Unreadable`, also for a link (see `folder`)."""
    return open_stream(str(path), opener=stored_opener)


def unpacked(path: Path) -> Iterator[bytes]:
    """The unpacked bytes of a stored file, in pieces. Raises `Unreadable`."""
    with open_stored(path) as stream:
        while piece := stream.reader.read1(BUFFER_BYTES):
            yield piece


def content(path: Path, on_invalid: OnInvalid = OnInvalid.KEEP) -> Iterator[bytes]:
    """The bytes that offsets of parts count in. Raises `Unreadable`."""
    if on_invalid is not OnInvalid.DROP:
        yield from unpacked(path)
        return
    with open_stored(path) as stream:
        records = read_records(stream.reader, str(path), on_invalid)
        yield records.prefix
        for record in records:
            yield record.raw + record.ending


def read_parts(path: Path) -> Iterator[Part]:
    """The transcripts that a sidecar lists. Raises `Unreadable`."""
    with open_stored(path) as stream:
        for line in stream.reader:
            yield parse_part(line, path)


def parse_part(line: bytes, path: Path) -> Part:
    """One line of a sidecar; ``path`` is for the message. Raises `Unreadable`."""
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
