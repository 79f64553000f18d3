"""Sources: which inputs a command line names, in which order, each once; and the program's own folders of this user."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from compactor_cli.model.errors import UsageError
from compactor_cli.model.value import dataclass
from compactor_cli.read.streams import STDIN

DEFAULT_INCLUDE = ("*.jsonl", "*.jsonl.gz", "*.jsonl.zst")
# By these two together an archive is known, whatever it is called: its originals are no inputs.
MANIFEST = "MANIFEST.jsonl"
_SHARD = re.compile(r"[0-9a-f]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSource:
    """One input. ``path`` is ``-`` for standard input.

    ``name`` is where it goes below an output folder: the path inside the tree it was found in, else its
    file name (its path, in a list of files). ``root`` is that tree, else the folder the file lies in.
    ``is_candidate``: found by a name that other files have too; it is passed over if it holds no transcript.
    """

    path: str
    name: str
    root: str
    is_candidate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """How trees are read. Globs with ``/`` match the path inside the tree, others the last name.

    ``candidates``: what else is taken, see `InputSource.is_candidate`. ``skip`` names folders and files that are left
    out wherever they are met (the archive, the output folder, the report). ``hidden``: whether hidden ones are read.
    """

    include: tuple[str, ...] = DEFAULT_INCLUDE
    candidates: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    hidden: bool = False


def find_sources(
    operands: Sequence[str],
    *,
    recursive: bool = False,
    walk: Walk | None = None,
    files_from: str = "",
    null_separated: bool = False,
    passed_over: Callable[[str], object] = lambda path: None,
) -> tuple[InputSource, ...]:
    """The inputs that operands and ``files_from`` (a list of paths; ``-`` is standard input) name.

    Operands keep their order, the files of a tree are in byte order of their path. A file that is reached twice (same
    device and inode) is given once, by its first name. What cannot be read is given anyway: it fails when it is
    opened, and the others go on. In trees only regular files are taken, links and archives are not; ``passed_over``
    gets the files, archives and hidden folders that the walk does not take, except for excluded ones. Raises
    `UsageError` for a folder without ``recursive``, for an empty operand, for an unreadable list, and if standard input
    were needed twice.
    """
    if files_from == STDIN and STDIN in operands:
        raise UsageError("standard input cannot be both the list of files and an input", next_step="name a file")
    listed: list[bytes] = []
    if files_from:
        try:
            data = sys.stdin.buffer.read() if files_from == STDIN else Path(files_from).read_bytes()
        except OSError as error:
            what = f"the list of files cannot be read ({error.strerror})"
            raise UsageError(what, place=files_from, next_step="check the name; - is standard input") from error
        listed = data.split(b"\0" if null_separated else b"\n")
    named = [(path, Path(path).name) for path in operands]
    for path in map(os.fsdecode, filter(None, listed)):
        # As a path that cannot lead out of a folder.
        parts = (part for part in PurePosixPath(path).parts if part not in ("/", "//", "..", "."))
        named.append((path, "/".join(parts)))
    found: dict[tuple[int, int] | str, InputSource] = {}
    for path, name in named:
        for source in _expand(path, name, recursive, walk or Walk(), passed_over):
            key = source.path if source.path == STDIN else _key(source.path) or source.path
            found.setdefault(key, source)
    return tuple(found.values())


def is_folder(path: str | Path) -> bool:
    """Whether this is a folder. What may not be looked at is none: it fails by itself, when it is opened."""
    return os.path.isdir(path)  # noqa: PTH112 -- which raises nothing


def _expand(
    path: str, name: str, recursive: bool, walk: Walk, passed_over: Callable[[str], object]
) -> Iterator[InputSource]:
    if not path:
        # Of a variable that is not set; as a path it would be the folder that the run is in.
        raise UsageError("an operand is empty", next_step="check where its name comes from; . is this folder")
    if path == STDIN or not is_folder(path):
        yield InputSource(path=path, name=name, root="" if path == STDIN else str(Path(path).parent))
    elif not recursive:
        raise UsageError("is a directory", place=path, next_step="use -r to read the files in it")
    else:
        skip = {key for folder in walk.skip if (key := _key(folder))}
        for name, fate in sorted(_entries(path, "", walk, skip), key=lambda entry: os.fsencode(entry[0])):
            inside = os.path.join(path, name)  # noqa: PTH118
            if fate is _Fate.PASSED_OVER:
                passed_over(inside)
            else:
                yield InputSource(path=inside, name=name, root=path, is_candidate=fate is _Fate.CANDIDATE)


class _Fate(Enum):
    """What becomes of an entry of a tree."""

    TAKEN = auto()
    CANDIDATE = auto()
    PASSED_OVER = auto()


def _entries(folder: str, prefix: str, walk: Walk, skip: Collection[tuple[int, int]]) -> Iterator[tuple[str, _Fate]]:
    """The files below ``folder`` and what is hidden there, by names inside the tree; a folder that cannot be listed."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        yield prefix.rstrip("/") or ".", _Fate.TAKEN
        return
    names = {entry.name for entry in entries}
    if prefix and MANIFEST in names and any(map(_SHARD.fullmatch, names)):
        yield prefix.rstrip("/"), _Fate.PASSED_OVER
        return
    for entry in entries:
        name = prefix + entry.name
        if _matches(name, walk.exclude):
            continue
        if entry.name.startswith(".") and not walk.hidden:
            yield name, _Fate.PASSED_OVER
        elif skip and _key(entry.path) in skip:
            continue
        elif entry.is_dir(follow_symlinks=False):
            yield from _entries(entry.path, f"{name}/", walk, skip)
        elif entry.is_file(follow_symlinks=False):
            other = _Fate.CANDIDATE if _matches(name, walk.candidates) else _Fate.PASSED_OVER
            yield name, _Fate.TAKEN if _matches(name, walk.include) else other


def _matches(name: str, globs: Iterable[str]) -> bool:
    last = name.rpartition("/")[2]
    return any(fnmatchcase(name if "/" in glob else last, glob) for glob in globs)


def _key(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    # Two pipes are two inputs, whatever their numbers say.
    return (status.st_dev, status.st_ino) if not stat.S_ISFIFO(status.st_mode) else None


def config_folder(environ: Mapping[str, str]) -> Path:
    """Where the user's settings are."""
    return _folder(environ, "XDG_CONFIG_HOME", ".config")


def data_folder() -> Path:
    """Where originals are that have no archive of their own."""
    return _folder(os.environ, "XDG_DATA_HOME", ".local/share")


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where is kept what outlives a run."""
    return _folder(environ, "XDG_STATE_HOME", ".local/state")


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where is kept what may be deleted at any time."""
    return _folder(environ, "XDG_CACHE_HOME", ".cache")


def _folder(environ: Mapping[str, str], variable: str, fallback: str) -> Path:
    """Below the folder that the variable names, else below the user's home."""
    named = Path(environ.get(variable) or "")
    # The specification has relative paths ignored.
    return (named if named.is_absolute() else home_folder(environ) / fallback) / "compact"


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's home. Raises `UsageError` where neither HOME nor the list of users names one."""
    try:
        return Path(environ.get("HOME") or "~").expanduser()
    except RuntimeError as error:
        raise UsageError("this user has no home folder", next_step="set HOME") from error
