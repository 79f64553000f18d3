"""Verify: whether everything in an archive is there and is what its hash says."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compactor_cli.archive.folder import LOCAL_ARCHIVE, opened_folder
from compactor_cli.archive.journal import JOURNAL_START
from compactor_cli.archive.layout import (
    SIDECAR_ENDING,
    STATE_FOLDER,
    Part,
    read_parts,
    stored_blobs,
    stored_name,
    stored_sidecars,
    unpacked,
)
from compactor_cli.archive.layout import content as stored
from compactor_cli.archive.leftovers import find_leftovers
from compactor_cli.archive.manifest import MANIFEST, ManifestEntry, read_entries
from compactor_cli.model.errors import CompactError, InputError, Unreadable
from compactor_cli.read.jsonl import OnInvalid

_COPY = "look for another copy of the archive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was checked and what is wrong. ``unlisted``: sound originals that the manifest does not name.

    ``leftovers``: what killed runs left in the archive folder and, of ``.transcripts``, next to it.
    """

    originals: int
    size_bytes: int
    transcripts: int
    states: int
    problems: tuple[InputError, ...] = ()
    unlisted: tuple[str, ...] = ()
    leftovers: tuple[Path, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether everything can be restored."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """One stored file: its unpacked size, and what is wrong with it."""

    size_bytes: int = 0
    transcripts: int = 0
    problems: tuple[InputError, ...] = ()


def verify(folder: str | Path) -> Verification:
    """Read every file of an archive and compare it with its name, the manifest and the lists of transcripts.

    Nothing is changed. Raises `Unreadable` if there is no such folder.
    """
    root = Path(folder)
    if not root.is_dir():
        raise Unreadable("no such archive folder", place=str(root), next_step="name it with --archive-dir")
    with opened_folder(root):  # raises for one that is not the user's own
        pass
    # Read first: what a run adds meanwhile is stored before it is listed, and so is no longer missing.
    entries = tuple(read_entries(root))
    checked = {path: _original(root, sha256, path) for sha256, path in stored_blobs(root)}
    states = {path: _state(path) for path in sorted((root / STATE_FOLDER).glob("*.zst"))}
    originals = {path.relative_to(root).as_posix(): item for path, item in checked.items()}
    listed, from_manifest = _manifest(root, entries, originals)
    found = [problem for item in (*checked.values(), *states.values()) for problem in item.problems]
    return Verification(
        originals=len(checked),
        size_bytes=sum(item.size_bytes for item in checked.values()),
        transcripts=sum(item.transcripts for item in checked.values()),
        states=len(states),
        problems=(*found, *_lonely(root), *from_manifest),
        leftovers=tuple(_leftovers(root)),
        unlisted=tuple(name for name, item in originals.items() if name not in listed and not item.problems),
    )


def _leftovers(root: Path) -> Iterator[Path]:
    for folder in (root, root.absolute().parent) if root.name == LOCAL_ARCHIVE else (root,):
        yield from find_leftovers(folder)
    yield from sorted(root.glob(f"{JOURNAL_START}*"))


def _original(root: Path, sha256: str, path: Path) -> _Checked:
    sidecar = root / stored_name(sha256, SIDECAR_ENDING)
    try:
        parts = sorted(read_parts(sidecar), key=lambda part: part.offset) if sidecar.exists() else []
    except Unreadable as error:
        return _Checked(problems=(error,))
    content = hashlib.sha256()
    inside = _Inside([part for part in parts if part.on_invalid is not OnInvalid.DROP])
    size = 0
    try:
        for piece in unpacked(path):
            content.update(piece)
            inside.take(piece, size)
            size += len(piece)
        without = _without_invalid(path, [part for part in parts if part.on_invalid is OnInvalid.DROP])
    except CompactError as error:
        return _Checked(problems=(_damaged(path, error.what),))
    if content.hexdigest() != sha256:
        return _Checked(problems=(_damaged(path, "its hash is not its name"),))
    wrong = (
        _damaged(sidecar, f"no transcript {part.sha256[:16]}… at {part.offset}") for part in (*inside.wrong(), *without)
    )
    return _Checked(size_bytes=size, transcripts=len(parts), problems=tuple(wrong))


def _without_invalid(path: Path, parts: Sequence[Part]) -> tuple[Part, ...]:
    """Those that are wrong of the transcripts in an original without its lines that are not JSON."""
    inside = _Inside(parts)
    size = 0
    for piece in stored(path, OnInvalid.DROP) if parts else ():
        inside.take(piece, size)
        size += len(piece)
    return inside.wrong()


class _Inside:
    """Hashes the transcripts inside an original, given by offset, in one pass over its bytes."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._waiting = deque(parts)
        self._open: list[tuple[Part, hashlib._Hash]] = []
        self._wrong: list[Part] = []

    def take(self, piece: bytes, at: int) -> None:
        """The next piece, which begins at offset ``at``."""
        stop = at + len(piece)
        while self._waiting and self._waiting[0].offset < stop:
            self._open.append((self._waiting.popleft(), hashlib.sha256()))
        for part, content in self._open:
            content.update(piece[max(0, part.offset - at) : max(0, part.offset + part.length - at)])
            if part.offset + part.length <= stop and content.hexdigest() != part.sha256:
                self._wrong.append(part)
        self._open = [item for item in self._open if item[0].offset + item[0].length > stop]

    def wrong(self) -> tuple[Part, ...]:
        """The transcripts that are not what their hash says, or lie beyond the end."""
        return (*self._wrong, *(part for part, _ in self._open), *self._waiting)


def _state(path: Path) -> _Checked:
    content = hashlib.sha256()
    try:
        for piece in unpacked(path):
            content.update(piece)
    except CompactError as error:
        return _Checked(problems=(_damaged(path, error.what),))
    is_right = content.hexdigest().startswith(path.name.partition(".")[0])
    return _Checked(problems=() if is_right else (_damaged(path, "its hash is not its name"),))


def _lonely(root: Path) -> Iterator[InputError]:
    """Lists of transcripts whose original is not here."""
    for sha256, path in stored_sidecars(root):
        if next(stored_blobs(root, sha256), None) is None:
            yield InputError("lists transcripts of an original that is not here", place=str(path), next_step=_COPY)


def _manifest(
    root: Path, entries: Iterable[tuple[int, ManifestEntry | None]], originals: Mapping[str, _Checked]
) -> tuple[set[str], list[InputError]]:
    """The stored files that the manifest names, and what is wrong with it, given what was found."""
    listed: set[str] = set()
    problems: list[InputError] = []
    for number, entry in entries:
        place = f"{root / MANIFEST}:{number}"
        if entry is None:
            problems.append(InputError("is no entry", place=place, next_step="the originals are not affected"))
            continue
        listed.add(entry.stored)
        found = originals.get(entry.stored)
        if found is None:
            problems.append(InputError(f"{entry.stored} is not here", place=place, next_step=_COPY))
        elif not found.problems and not _fits(entry, found):
            problems.append(InputError(f"does not fit {entry.stored}", place=place, next_step=_COPY))
    return listed, problems


def _fits(entry: ManifestEntry, found: _Checked) -> bool:
    return Path(entry.stored).name.partition(".")[0] == entry.sha256 and entry.bytes == found.size_bytes


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f"is damaged: {what}", place=str(path), next_step=_COPY)
