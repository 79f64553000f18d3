"""Update: what becomes of summaries that the covered records already hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from compactor_cli.model.marker import find_marker, without_marker
from compactor_cli.model.summary import Request
from compactor_cli.model.transcript import Message, Transcript

# The transcript whose SHA-256 begins with these digits, if its original can be had.
LoadOriginal = Callable[[str], Transcript | None]

# Originals hold summaries of older originals; a chain longer than this is not worth reading again.
_MOST_GENERATIONS = 20


class Previous(StrEnum):
    """What to do with an earlier summary."""

    UPDATE = "update"  # it is given to the model, which brings it up to date
    REBUILD = "rebuild"  # the records it stands for are summarised anew, where they can be had
    KEEP = "keep"  # it stays as it is, in front of the new one


@dataclass(frozen=True, slots=True, kw_only=True)
class Strand:
    """Records of one transcript. ``prefix`` stands before their numbers; empty for the transcript itself."""

    transcript: Transcript
    indices: tuple[int, ...]
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What a summary is made from: records, oldest first, and the text of an earlier summary (maybe empty)."""

    strands: tuple[Strand, ...]
    previous: str = ""
    notes: tuple[str, ...] = ()


def earlier(request: Request, policy: Previous, load_original: LoadOriginal) -> Earlier:
    """The records and the earlier summaries that open them. Summaries further inside stay among the records."""
    messages = request.transcript.messages
    opening = tuple(_opening(request))
    own = Strand(
        transcript=request.transcript, indices=tuple(i for i in request.covered if i not in frozenset(opening))
    )
    texts = [words for i in opening if (words := _words(messages[i]))]
    if policy is Previous.REBUILD and opening:
        old = _originals(request.transcript, opening, load_original)
        if old:
            return Earlier(strands=(*old, own))
        notes = ("the originals of the earlier summary are not at hand: it was updated",) if texts else ()
        return Earlier(strands=(own,), previous="\n\n".join(texts), notes=notes)
    return Earlier(strands=(own,), previous="\n\n".join(texts))


def _opening(request: Request) -> Iterator[int]:
    """The covered summaries that stand before every other covered record that says something."""
    for index in request.covered:
        message = request.transcript.messages[index]
        if message.summary is not None:
            yield index
        elif not message.is_meta:
            return


# The records of a statement, as summaries print them after it.
_TAG = re.compile(r"(?<= )\[(\d+(?:[-,]\d+)*)\]$", re.MULTILINE)
_HASH_CHARS = 8


def _words(message: Message) -> str:
    """The earlier summary; its record numbers with the hash of the transcript that they count, to be found for ever."""
    if message.summary is None:
        return ""
    text = without_marker(message.summary.text).strip()
    marker = find_marker(message.text)
    return _TAG.sub(rf"[{marker.transcript[:_HASH_CHARS]}:\1]", text) if marker else text


def _originals(transcript: Transcript, opening: tuple[int, ...], load_original: LoadOriginal) -> tuple[Strand, ...]:
    """What the newest of these summaries stands for: from the archive, or before a native boundary in the file."""
    last = opening[-1]
    marker = find_marker(transcript.messages[last].text)
    if marker is not None:
        return tuple(_archived(marker.transcript, (marker.first - 1, marker.last), load_original, _MOST_GENERATIONS))
    before = tuple(i for i in range(last) if transcript.messages[i].superseded and not transcript.messages[i].is_meta)
    return (Strand(transcript=transcript, indices=before, prefix="s"),) if before else ()


def _archived(sha256: str, span: tuple[int, int], load_original: LoadOriginal, generations: int) -> Iterator[Strand]:
    """The records of an archived transcript, after those that its own earlier summaries stand for."""
    original = load_original(sha256) if generations else None
    if original is None:
        return
    indices = tuple(range(max(span[0], 0), min(span[1], len(original.messages))))
    messages = original.messages
    marked = [(i, found) for i in indices if messages[i].summary and (found := find_marker(messages[i].text))]
    for _, found in marked[-1:]:
        older = tuple(_archived(found.transcript, (found.first - 1, found.last), load_original, generations - 1))
        if older:
            yield from older
            gone = {i for i, _ in marked}
            indices = tuple(i for i in indices if i not in gone)
    yield Strand(transcript=original, indices=indices, prefix=f"{'abcdefghijklmnopqrstuvwxyz'[generations]}")
