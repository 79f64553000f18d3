"""Sources: the inputs that a command line names, in order and each once; and where the program keeps its own files."""

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
# A folder that has this file and folders named like `3f` is an archive, whatever its name: its files are not inputs.
MANIFEST = "MANIFEST.jsonl"
_SHARD = re.compile(r"[0-9a-f]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSource:
    """One input."""

    path: str  # ``-`` for standard input
    # Its path below an output folder: the path inside the tree in which it was found, else its path in the list of
    # files that names it, else its file name.
    name: str
    root: str  # the tree in which it was found, else the folder of the file; empty for standard input
    # Found by a name that files without transcripts have too: it is passed over if it holds none.
    is_candidate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """How trees are read. Globs with ``/`` match the path inside the tree, others the file name."""

    include: tuple[str, ...] = DEFAULT_INCLUDE  # globs
    candidates: tuple[str, ...] = ()  # globs of what is also taken, see `InputSource.is_candidate`
    exclude: tuple[str, ...] = ()  # globs of files and folders
    skip: tuple[str, ...] = ()  # paths that are left out wherever they are met: the archive, the output folder, …
    hidden: bool = False  # whether hidden files and folders are read


def find_sources(
    operands: Sequence[str],
    *,
    recursive: bool = False,
    walk: Walk | None = None,
    files_from: str = "",
    null_separated: bool = False,
    passed_over: Callable[[str], object] = lambda path: None,
) -> tuple[InputSource, ...]:
    """The inputs that the operands and the list of paths in ``files_from`` (``-``: standard input) name.

    Operands keep their order, the files of a tree are in byte order of their path. A file that is reached twice (same
    device and inode) is returned once, by its first name. Unreadable files are returned too: they fail when they are
    opened, and the others go on. In trees only regular files are taken, not links and not archives; ``passed_over`` is
    called with the path of each file, archive and hidden folder that is not taken, except for excluded ones. Raises
    `UsageError` for a folder without ``recursive``, for an empty operand, for an unreadable list, and if standard input
    would be needed twice.
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
        # The name must be a path that cannot lead out of the output folder.
        parts = (part for part in PurePosixPath(path).parts if part not in ("/", "//", "..", "."))
        named.append((path, "/".join(parts)))
    found: dict[tuple[int, int] | str, InputSource] = {}
    for path, name in named:
        for source in _expand(path, name, recursive, walk or Walk(), passed_over):
            key = source.path if source.path == STDIN else _key(source.path) or source.path
            found.setdefault(key, source)
    return tuple(found.values())


def is_folder(path: str | Path) -> bool:
    """Whether this is a folder. False without permission to look: it fails later, when it is opened."""
    return os.path.isdir(path)  # noqa: PTH112 -- which raises nothing


def _expand(
    path: str, name: str, recursive: bool, walk: Walk, passed_over: Callable[[str], object]
) -> Iterator[InputSource]:
    if not path:
        # Probably from a variable that is not set; as a path it would mean the working directory.
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
    """What is done with an entry of a tree."""

    TAKEN = auto()
    CANDIDATE = auto()
    PASSED_OVER = auto()


def _entries(folder: str, prefix: str, walk: Walk, skip: Collection[tuple[int, int]]) -> Iterator[tuple[str, _Fate]]:
    """The entries below ``folder``, by their paths inside the tree, and what is done with each.

    Yields files, archives, hidden files and folders, and folders that cannot be listed, which fail when opened.
    """
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
    # Pipes have no key: each is an input of its own, whatever its device and inode.
    return (status.st_dev, status.st_ino) if not stat.S_ISFIFO(status.st_mode) else None


def config_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the user's settings."""
    return _folder(environ, "XDG_CONFIG_HOME", ".config")


def data_folder() -> Path:
    """The folder of the originals for which no other archive was named."""
    return _folder(os.environ, "XDG_DATA_HOME", ".local/share")


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of what outlives a run."""
    return _folder(environ, "XDG_STATE_HOME", ".local/state")


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of what may be deleted at any time."""
    return _folder(environ, "XDG_CACHE_HOME", ".cache")


def _folder(environ: Mapping[str, str], variable: str, fallback: str) -> Path:
    """The program's folder below the one that the variable names, else below ``fallback`` in the user's home."""
    named = Path(environ.get(variable) or "")
    # The XDG specification requires that relative paths are ignored.
    return (named if named.is_absolute() else home_folder(environ) / fallback) / "compact"


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's home. Raises `UsageError` where neither HOME nor the list of users names one."""
    try:
        return Path(environ.get("HOME") or "~").expanduser()
    except RuntimeError as error:
        raise UsageError("this user has no home folder", next_step="set HOME") from error
