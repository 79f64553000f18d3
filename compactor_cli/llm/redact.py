"""Redact: secrets are taken out of texts before they leave the machine, and out of what comes back.

A secret becomes ``[REDACTED:kind:number]``; the same secret always the same, so that a summary can still speak
of it. What it was is not kept anywhere but in the memory of this process.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from compactor_cli.llm.secret_contexts import contexts, is_mixed
from compactor_cli.llm.secret_forms import begins, known_forms, piece_after
from compactor_cli.llm.text_scan import Found, Scan

OWN = "own-key"
# A secret that was found by its place is also found elsewhere, if it cannot be a word or a number.
_MEMORABLE_CHARS = 8
_MEMORABLE_KINDS = 5
_MOST_REMEMBERED = 500
_ROUNDS = 10
_OPENING = "[REDACTED:"
_PLACEHOLDER_CHARS = 60
# A value that fills its line to the end may go on in the next one from this length on.
_LEAD_CHARS = 12


class Redactor:
    """Takes secrets out of the texts of one transcript. Safe for threads; never fails; linear time.

    Numbers are given in the order in which secrets are met, so the texts of a transcript should go through
    `redact_all` in their order, and through a redactor of their own: then the same transcript always gives the
    same prompts. ``known`` are secrets to look for whatever their form (keys in use). Redacting a redacted
    text changes nothing. Plain hashes, UUIDs and paths stay.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._placeholders: dict[str, str] = {}
        self._kinds: dict[str, str] = {secret: OWN for secret in known if secret}
        self._distinct: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._steps = 0

    @property
    def steps(self) -> int:
        """An upper bound of the characters that were looked at: a fixed multiple of the length of the texts."""
        with self._lock:
            return self._steps

    @property
    def counts(self) -> Mapping[str, int]:
        """How many places were redacted, by kind."""
        with self._lock:
            return dict(sorted(self._counts.items()))

    def redact(self, text: str) -> str:
        """``text`` with a placeholder for each secret."""
        return self.redact_all((text,))[0]

    def redact_all(self, texts: Iterable[str]) -> tuple[str, ...]:
        """The texts with placeholders; a secret recognised by its place in one of them is found in all."""
        pieces = tuple(texts)
        with self._lock:
            found = [self._found(piece) for piece in pieces]
            for piece, places in zip(pieces, found, strict=True):
                self._remember(piece, places)
            return tuple(map(self._replaced, pieces, found))

    def _remember(self, text: str, places: Iterable[Found]) -> None:
        for start, stop, kind in places:
            secret = text[start:stop]
            if len(self._kinds) < _MOST_REMEMBERED and _is_memorable(secret):
                self._kinds.setdefault(secret, kind)

    def _replaced(self, text: str, found: list[Found]) -> str:
        """The text with placeholders. Two secrets that touched are seen one after the other: hence the rounds."""
        for _ in range(_ROUNDS):
            clean = self._replaced_once(text, found)
            if clean == text:
                break
            text, found = clean, self._found(clean)
        return text

    def _found(self, text: str) -> list[Found]:
        found, steps = _found(text)
        self._steps += steps
        return found

    def _replaced_once(self, text: str, found: list[Found]) -> str:
        again = [
            (at, at + len(secret), kind)
            for secret, kind in self._kinds.items()
            for at in self._hits(text, secret)
            if _is_whole(text, at, at + len(secret))
        ]
        pieces: list[str] = []
        done = 0
        for start, stop, kind in _apart([*found, *again]):
            pieces += (text[done:start], self._placeholder(text[start:stop], kind))
            done = stop
        return "".join((*pieces, text[done:]))

    def _hits(self, text: str, secret: str) -> Iterator[int]:
        """Where a secret stands; copies that overlap are one place."""
        at = text.find(secret)
        while at >= 0:
            self._steps += len(secret)
            yield at
            at = text.find(secret, at + len(secret))

    def _placeholder(self, secret: str, kind: str) -> str:
        if secret not in self._placeholders:
            self._distinct[kind] += 1
            self._placeholders[secret] = f"{_OPENING}{kind}:{self._distinct[kind]}]"
        placeholder = self._placeholders[secret]
        self._counts[placeholder.split(":")[1]] += 1
        return placeholder


def _found(text: str) -> tuple[list[Found], int]:
    """The secrets of a text in order, apart from each other; and the steps that were taken to find them."""
    scan = Scan(text)
    places: list[Found] = []
    for start, stop, kind in contexts(text, scan):
        if not _holds_placeholder(text, (start, stop, kind)):
            is_long = stop - start >= _LEAD_CHARS and is_mixed(text[start:stop]) and kind != "private-key"
            places.append((start, piece_after(scan, stop) if is_long else stop, kind))
    places += known_forms(scan)
    return _apart(places), scan.steps


def _holds_placeholder(text: str, place: Found) -> bool:
    """Whether a placeholder is in the place, or the place in a placeholder."""
    start, stop, _ = place
    opened = text.rfind(_OPENING, max(0, start - _PLACEHOLDER_CHARS), stop)
    return opened >= start or (opened >= 0 and "]" not in text[opened:start])


def _apart(places: list[Found]) -> list[Found]:
    """The places in order; those that overlap are one, of the kind that says more: the form's, not the context's."""
    apart: list[Found] = []
    for start, stop, kind in sorted(places, key=lambda place: (place[0], -place[1])):
        if apart and start < apart[-1][1]:
            first, last, other = apart[-1]
            apart[-1] = (first, max(last, stop), min(other, kind, key=_vagueness))
        else:
            apart.append((start, stop, kind))
    return apart


_VAGUE = ("jwt", OWN, "authorization", "api-key", "token", "secret", "password", "cookie")


def _vagueness(kind: str) -> int:
    return _VAGUE.index(kind) + 1 if kind in _VAGUE else 0


def _is_memorable(secret: str) -> bool:
    long = len(secret) >= _MEMORABLE_CHARS and len(set(secret)) >= _MEMORABLE_KINDS
    return long and is_mixed(secret) and len(secret) < 512


def _is_whole(text: str, start: int, stop: int) -> bool:
    """Whether it is not a part of a longer word."""
    before, after = text[start - 1 : start], text[stop : stop + 1]
    joined = before.isalnum() and text[start].isalnum() and not begins(text, start)
    return not joined and not (after.isalnum() and after.isascii() and text[stop - 1].isalnum())
