"""Journal: what is being appended to a file, kept in the archive until it is done.

A run that is killed while it writes leaves the beginning of its records at the end of a session, where the next line
of the agent would be glued to them. The next run finds the journal and finishes what was begun.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from compactor_cli.archive.atomic import followed, new_temporary, output_error, sync_opened, temporary_name
from compactor_cli.archive.folder import open_inside, opened_folder
from compactor_cli.archive.layout import Blob
from compactor_cli.archive.live_file import append, check_no_writer, remove_pieces
from compactor_cli.model.errors import Unreadable
from compactor_cli.read.streams import BUFFER_BYTES, Look

JOURNAL_START = "append-"
_NAME_CHARS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """An append that was begun: to a file of these bytes, these."""

    sha256: str
    size_bytes: int
    data: bytes


@contextlib.contextmanager
def journal(archive: Path, path: str, original: Blob, data: bytes) -> Iterator[None]:
    """While the block appends ``data`` to the file at ``path``, which holds ``original``, the archive knows of it.

    The journal is durable before the block begins. It stays if the process dies; else it is removed. Raises
    `OutputError`, `Unreadable`.
    """
    name = _name(path)
    head = {"sha256": original.sha256, "bytes": original.size_bytes}
    try:
        _write(archive, name, orjson.dumps(head, option=orjson.OPT_APPEND_NEWLINE) + data)
    except OSError as error:
        raise output_error(error, str(archive / name)) from error
    try:
        yield
    finally:
        _remove(archive, name)


def finish_append(path: str, archive: Path) -> bool:
    """Finish what a killed run began to append to this file; whether there was anything of that kind.

    If its beginning stands at the end of the file, the rest is appended. If others wrote after it, it is taken out:
    what they wrote then stands in lines of its own. Anything else is left as it is. Raises `Changed`, `InUse`,
    `OutputError`, `Unreadable`.
    """
    name = _name(path)
    begun = _read(archive, name)
    if begun is None:
        return False
    try:
        _finish(path, begun)
    except OSError as error:
        raise output_error(error, path) from error
    _remove(archive, name)
    return True


def _finish(path: str, begun: _Begun) -> None:
    with Path(path).open("rb") as file:
        look = Look.of(os.fstat(file.fileno()))
        content = hashlib.sha256()
        left = begun.size_bytes
        while left and (piece := file.read(min(left, BUFFER_BYTES))):
            content.update(piece)
            left -= len(piece)
        if left or content.hexdigest() != begun.sha256:
            return
        check_no_writer(file.fileno(), path)
        added = file.read()
    if 0 < len(added) < len(begun.data) and begun.data.startswith(added):
        append(path, begun.data[len(added) :], look)
    elif torn := _torn(added, begun.data):
        remove_pieces(path, [(begun.size_bytes, begun.size_bytes + torn)])


def _torn(added: bytes, data: bytes) -> int:
    """How many of the first bytes are the beginning of ``data``, torn, with the record of another program after it.

    Only where the line that the two share is no JSON, and what comes after the torn part is.
    """
    shared = next((at for at, pair in enumerate(zip(added, data, strict=False)) if pair[0] != pair[1]), 0)
    for at in range(shared, 0, -1):
        start = added.rfind(b"\n", 0, at) + 1
        if at == start or added[at : at + 1] not in (b"{", b"["):
            continue
        line = added[start:].partition(b"\n")[0]
        if not _is_json(line) and _is_json(line[at - start :]):
            return at
    return 0


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except ValueError:
        return False
    return True


def _name(path: str) -> str:
    """One journal for each file."""
    return JOURNAL_START + hashlib.sha256(os.fsencode(followed(path))).hexdigest()[:_NAME_CHARS]


def _write(archive: Path, name: str, data: bytes) -> None:
    temporary = temporary_name(archive).name
    with opened_folder(archive) as root:
        try:
            with os.fdopen(new_temporary(temporary, folder=root), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, name, src_dir_fd=root, dst_dir_fd=root)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=root)
            raise
        sync_opened(root)


def _remove(archive: Path, name: str) -> None:
    with contextlib.suppress(OSError, Unreadable), opened_folder(archive) as root:
        os.unlink(name, dir_fd=root)


def _read(archive: Path, name: str) -> _Begun | None:
    """The journal of this name; None if there is none, or it is no journal."""
    try:
        with os.fdopen(open_inside(archive, name), "rb") as file:
            head, data = orjson.loads(file.readline()), file.read()
        return _Begun(sha256=str(head["sha256"]), size_bytes=int(head["bytes"]), data=data)
    except (OSError, ValueError, TypeError, KeyError):
        return None
