"""Targets: where the result of each input goes, settled before any work."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO

from compactor_cli.archive.atomic import (
    DEFAULT_MODE,
    Existing,
    already_there,
    atomic_writer,
    followed,
    is_special,
    make_folders,
    output_error,
)
from compactor_cli.archive.live_file import replace
from compactor_cli.model.errors import CompactError, OutputError, UsageError
from compactor_cli.model.value import dataclass
from compactor_cli.read.sources import InputSource
from compactor_cli.read.streams import STDIN, Compression, Stream, compression_named, look_at, packing

STDOUT = "-"
Ready = Callable[[str, int], object]
Warn = Callable[[str], object]


class TargetKind(StrEnum):
    """What kind of place a result goes to."""

    STDOUT = "stdout"
    FILE = "file"
    IN_PLACE = "in-place"
    APPEND = "append"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where one result goes. ``path`` is ``-`` for standard output."""

    path: str
    kind: TargetKind
    compression: Compression = Compression.NONE
    existing: Existing = Existing.REFUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The command line's options about output; nothing set means standard output.

    ``compress`` is for names that promise no compression of their own. ``force``: overwrite files, and in
    place replace hard-linked and read-only ones.
    """

    output: str = ""
    output_dir: str = ""
    in_place: bool = False
    append: bool = False
    force: bool = False
    compress: Compression = Compression.NONE


def plan_targets(sources: Sequence[InputSource], destination: Destination) -> tuple[Target, ...]:
    """The target of each source. Nothing is made or touched.

    Raises `UsageError` if several results would be joined, if two sources have one target, if a target is
    an input, and if a target exists and may not be overwritten.
    """
    ways = (destination.output, destination.output_dir, destination.in_place, destination.append)
    if sum(map(bool, ways)) > 1:
        raise UsageError("-o, --output-dir, -i and --append exclude one another", next_step="choose one")
    if destination.in_place or destination.append:
        return tuple(_in_place(source, destination) for source in sources)
    targets = tuple(_to_file(source, destination) for source in sources)
    if not destination.output_dir and len(targets) > 1:
        advice = "use --output-dir DIR, or -i to replace them"
        raise UsageError("several inputs would be joined into one output", next_step=advice)
    _check_apart(sources, targets)
    return targets


def _in_place(source: InputSource, destination: Destination) -> Target:
    if source.path == STDIN:
        option, what = ("--append", "appended to") if destination.append else ("-i", "replaced")
        raise UsageError(f"standard input cannot be {what}", next_step=f"name a file, or leave {option} out")
    if is_special(source.path):
        # Refused before it is opened: a pipe that nobody writes to would be waited for.
        raise UsageError("is not a regular file", place=source.path, next_step="leave it out, or write with -o")
    existing = Existing.REPLACE if destination.force else Existing.REFUSE
    kind = TargetKind.APPEND if destination.append else TargetKind.IN_PLACE
    return Target(path=source.path, kind=kind, existing=existing)


def _to_file(source: InputSource, destination: Destination) -> Target:
    if not destination.output_dir and destination.output in ("", STDOUT):
        return Target(path=STDOUT, kind=TargetKind.STDOUT, compression=destination.compress)
    path = Path(destination.output)
    if destination.output_dir:
        path = Path(destination.output_dir, "stdin.jsonl" if source.path == STDIN else source.name)
    elif not path.parent.is_dir():
        advice = f"make it: mkdir -p {path.parent}"
        raise UsageError("there is no such folder", place=str(path.parent), next_step=advice)
    compression = compression_named(path.name)
    if compression is Compression.NONE:
        compression = destination.compress
        path = path.with_name(path.name + compression.suffix) if destination.output_dir else path
    existing = Existing.REPLACE if destination.force else Existing.REFUSE
    return Target(path=str(path), kind=TargetKind.FILE, compression=compression, existing=existing)


def _check_apart(sources: Sequence[InputSource], targets: Sequence[Target]) -> None:
    inputs = {_identity(source.path) for source in sources if source.path != STDIN}
    taken: dict[object, str] = {}
    for source, target in zip(sources, targets, strict=True):
        if target.kind is not TargetKind.FILE or is_special(target.path):
            continue
        if Path(target.path).is_dir():
            raise UsageError("is a directory", place=target.path, next_step="use --output-dir, or name a file in it")
        key = _identity(target.path)
        if key in inputs:
            raise UsageError("the output is an input", place=target.path, next_step="use -i to replace files in place")
        if key in taken:
            advice = "name the inputs so that their paths differ, or run them one by one"
            raise UsageError(f"both {taken[key]} and {source.path} go here", place=target.path, next_step=advice)
        if target.existing is Existing.REFUSE and Path(target.path).exists():
            refusal = already_there(target.path)
            raise UsageError(refusal.what, place=target.path, next_step=refusal.next_step)
        taken[key] = source.path


def _identity(path: str) -> object:
    """Equal for two names of one file; of a file that is not there yet, its full path."""
    try:
        look = look_at(path)
    except CompactError:
        return str(followed(path))
    return (look.device, look.inode)


def check_replaceable(path: str, existing: Existing) -> None:
    """Raise `OutputError` if a file should not be replaced in place: no regular file, hard-linked, read-only."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise output_error(error, path) from error
    if not stat.S_ISREG(status.st_mode):
        raise OutputError("is not a regular file", place=path, next_step="leave -i out")
    if existing is Existing.REPLACE:
        return
    if status.st_nlink > 1:
        advice = "use -f to replace it under this name only, or -o for a new file"
        raise OutputError(f"has {status.st_nlink} hard links", place=path, next_step=advice)
    if not status.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(path, os.W_OK):
        raise OutputError("is read-only", place=path, next_step="use -f to replace it anyway")


def _ignore(*values: object) -> None:
    pass


@contextlib.contextmanager
def open_target(target: Target, source: Stream, ready: Ready = _ignore, warn: Warn = _ignore) -> Iterator[IO[bytes]]:
    """A writer for one result; unless the target is a stream, it takes effect when the block ends well.

    In place, the result has the source's compression and mode, and `Changed` or `InUse` is raised, with the file as
    others left it, if anyone wrote to it since ``source`` was opened, or may do so; ``ready`` is called with SHA-256
    and size of what is about to replace it. ``warn``: as in `atomic_writer`. Raises `OutputError` for what cannot be
    written.
    """
    opened: AbstractContextManager[IO[bytes]]
    compression = target.compression
    if target.kind is TargetKind.STDOUT:
        opened = _standard_output()
    elif target.kind is TargetKind.IN_PLACE:
        check_replaceable(target.path, target.existing)
        if source.look is None:
            raise OutputError("is not a regular file", place=target.path, next_step="leave -i out")
        take = partial(replace, old=source.file.fileno(), look=source.look, ready=ready)
        opened, compression = atomic_writer(target.path, take=take, warn=warn), source.compression
    else:
        mode = DEFAULT_MODE
        if source.look is not None:
            # What only its owner may read stays so.
            mode &= stat.S_IMODE(os.fstat(source.file.fileno()).st_mode) | stat.S_IWUSR
        if not is_special(target.path):
            make_folders(followed(target.path).parent)
        opened = atomic_writer(target.path, existing=target.existing, mode=mode, warn=warn)
    with opened as file, packing(file, compression) as packer:
        yield packer


@contextlib.contextmanager
def _standard_output() -> Iterator[IO[bytes]]:
    file = sys.stdout.buffer
    try:
        yield file
        file.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_error(error, "standard output") from error
