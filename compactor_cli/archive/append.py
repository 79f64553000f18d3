"""Append: what an appended compaction adds to its file."""

from __future__ import annotations

from pathlib import Path

from compactor_cli.archive.live_file import check_unchanged
from compactor_cli.model.errors import OutputError
from compactor_cli.read.streams import BUFFER_BYTES, Look, unreadable


def added_bytes(path: str, whole: bytes, look: Look) -> bytes:
    """What ``whole`` has more than the file that was looked at.

    Raises `Changed` if anyone wrote to it since, `OutputError` if its bytes are not the beginning of ``whole``.
    """
    at = 0
    try:
        with Path(path).open("rb") as file:
            while at < look.size_bytes and (piece := file.read(min(BUFFER_BYTES, look.size_bytes - at))):
                if not whole.startswith(piece, at):
                    break
                at += len(piece)
    except OSError as error:
        raise unreadable(error, path) from error
    check_unchanged(path, look)
    if at != look.size_bytes:
        advice = "use -i: the archive keeps the original"
        raise OutputError("holds several conversations: no end to append to", place=path, next_step=advice)
    return whole[at:]
