"""Takes secrets out of texts before they leave the machine and out of what comes back.

Where the user asks for it, secrets are also taken out of the records that stay and of the summary.

A secret becomes ``[REDACTED:kind:number]``, the same placeholder each time, so that a summary can still refer to it.
The secret itself is kept only in the memory of this process. In records only the string literals of the JSON are
changed: numbers, blanks and the order of keys stay, and what was JSON is JSON. The names of members stay, and so does
what only a provider can read (signatures, encrypted reasoning) and the content of images.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats.registry import get, reread
from compactor_cli.llm.secret_contexts import contexts, is_mixed
from compactor_cli.llm.secret_forms import Found, Scan, begins, forms_in, known_forms, piece_after
from compactor_cli.model.summary import Answer, Request, Summariser
from compactor_cli.model.transcript import Transcript
from compactor_cli.read.jsonl import INVALID, parse_record

OWN = "own-key"
# A secret found once is looked for in all texts if it is long and varied enough not to be a word or a number.
_MEMORABLE_CHARS = 8
_MEMORABLE_KINDS = 5
_MOST_REMEMBERED = 500
_ROUNDS = 10
_OPENING = "[REDACTED:"
_PLACEHOLDER_CHARS = 60
# A value of at least this length that ends with its line may continue in the next one.
_LEAD_CHARS = 12


class Redactor:
    """Takes secrets out of the texts of one transcript. Safe for threads; never fails; linear time.

    Placeholders are numbered in the order in which secrets are met. The texts of a transcript should therefore go
    through `redact_all` in their order and through a redactor of their own: then the same transcript always gives the
    same prompts. ``known`` are secrets to look for whatever their form (keys in use). Redacting a redacted text changes
    nothing. Plain hashes, UUIDs and paths stay.
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
        """An upper bound of the characters that were looked at; it is linear in the length of the texts."""
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
        """The texts with placeholders; a secret recognised by its context in one of them is found in all."""
        pieces = tuple(texts)
        with self._lock:
            found = self._found(pieces)
            for piece, places in zip(pieces, found, strict=True):
                for start, stop, kind in places:
                    secret = piece[start:stop]
                    is_long = _MEMORABLE_CHARS <= len(secret) < 512 and len(set(secret)) >= _MEMORABLE_KINDS
                    if is_long and is_mixed(secret) and len(self._kinds) < _MOST_REMEMBERED:
                        self._kinds.setdefault(secret, kind)
            return tuple(map(self._replaced, pieces, found))

    def _replaced(self, text: str, found: list[Found]) -> str:
        """The text with placeholders. In rounds: of two secrets that touch, one is only seen once the other is gone."""
        for _ in range(_ROUNDS):
            clean = self._replaced_once(text, found)
            if clean == text:
                break
            text, (found,) = clean, self._found((clean,))
        return text

    def _found(self, texts: Sequence[str]) -> list[list[Found]]:
        """The secrets of each text, in order, none overlapping another."""
        # Most of the hundreds of literals stand in none of the texts, which is found out once for all texts.
        literal_forms = forms_in("\n".join(texts))
        found: list[list[Found]] = []
        for text in texts:
            scan = Scan(text)
            places: list[Found] = []
            for start, stop, kind in contexts(scan):
                # Skip a place that holds a placeholder, or lies inside one.
                opened = text.rfind(_OPENING, max(0, start - _PLACEHOLDER_CHARS), stop)
                if opened < 0 or (opened < start and "]" in text[opened:start]):
                    is_long = stop - start >= _LEAD_CHARS and is_mixed(text[start:stop]) and kind != "private-key"
                    places.append((start, piece_after(scan, stop) if is_long else stop, kind))
            found.append(_apart([*places, *known_forms(scan, literal_forms)]))
            self._steps += scan.steps
        return found

    def _replaced_once(self, text: str, found: list[Found]) -> str:
        again: list[Found] = []
        for secret, kind in self._kinds.items():
            at = text.find(secret)
            while at >= 0:
                stop = at + len(secret)
                self._steps += len(secret)
                # As a whole, not as a part of a longer word.
                before, after = text[at - 1 : at], text[stop : stop + 1]
                is_joined = before.isalnum() and text[at].isalnum() and not begins(text, at)
                if not is_joined and not (after.isalnum() and after.isascii() and text[stop - 1].isalnum()):
                    again.append((at, stop, kind))
                # Copies that overlap are one place.
                at = text.find(secret, stop)
        pieces: list[str] = []
        done = 0
        for start, stop, kind in _apart([*found, *again]):
            secret = text[start:stop]
            if secret not in self._placeholders:
                self._distinct[kind] += 1
                self._placeholders[secret] = f"{_OPENING}{kind}:{self._distinct[kind]}]"
            self._counts[self._placeholders[secret].split(":")[1]] += 1
            pieces += (text[done:start], self._placeholders[secret])
            done = stop
        return "".join((*pieces, text[done:]))


def _apart(places: list[Found]) -> list[Found]:
    """The places in order, overlapping ones joined; of two kinds the more precise counts, a form's over a context's."""
    apart: list[Found] = []
    for start, stop, kind in sorted(places, key=lambda place: (place[0], -place[1])):
        if apart and start < apart[-1][1]:
            first, last, other = apart[-1]
            apart[-1] = (first, max(last, stop), min(other, kind, key=lambda one: _VAGUENESS.get(one, 0)))
        else:
            apart.append((start, stop, kind))
    return apart


_VAGUE = ("jwt", OWN, "authorization", "api-key", "token", "secret", "password", "cookie")
_VAGUENESS = {kind: rank for rank, kind in enumerate(_VAGUE, 1)}


# A string literal of JSON; a colon after it makes it the name of a member.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_COLON = re.compile(r"\s*:\s*")
_OPAQUE_NAMES = frozenset(
    {"signature", "thoughtSignature", "thought_signature", "thinkingSignature"}
    | {"encrypted_content", "encryptedContent", "redacted_thinking"}
)
_BLOB = re.compile(r"[A-Za-z0-9+/_-]{256,}={0,2}")
_BLOB_NAMES = frozenset({"data", "image", "bytes", "file_data"})
# A secret that is recognised by the name of its member alone is no longer than this.
_NAMED_CHARS = 2_000
_ENCODING, _ERRORS = "utf-8", "surrogateescape"


class Redacted:
    """A summariser whose summaries hold no secrets, not even those of an earlier summary or its stored state."""

    def __init__(self, summariser: Summariser, redactor: Redactor) -> None:
        self._summariser = summariser
        self._redactor = redactor

    def summarise(self, request: Request) -> Answer:
        """The summary, its items redacted."""
        answer = self._summariser.summarise(request)
        sections = tuple(
            replace(part, items=tuple(replace(item, text=self._redactor.redact(item.text)) for item in part.items))
            for part in answer.summary.sections
        )
        return replace(answer, summary=replace(answer.summary, sections=sections))


def redact_transcript(transcript: Transcript, redactor: Redactor) -> Transcript:
    """The transcript without secrets, with the hash of its original; the transcript itself if it holds none."""
    raws = [transcript.frame.prefix, *(record.raw for record in transcript.records), transcript.frame.suffix]
    prefix, *records, suffix = redact_json(raws, redactor)
    clean = tuple(
        # A kept line that is not JSON is redacted as plain text.
        replace(record, raw=redact_text(record.raw, redactor))
        if record.value is INVALID
        else (record if raw == record.raw else replace(record, raw=raw, value=parse_record(raw)))
        for record, raw in zip(transcript.records, records, strict=True)
    )
    if [prefix, *(record.raw for record in clean), suffix] == raws:
        return transcript
    row = _redacted_value(transcript.row, "", redactor)
    frame = replace(transcript.frame, prefix=prefix, suffix=suffix)
    messages = reread(get(transcript.dialect), transcript, clean, row) if clean else transcript.messages
    return replace(transcript, records=clean, messages=messages, frame=frame, row=row)


def redact_json(raws: Sequence[bytes], redactor: Redactor) -> list[bytes]:
    """Pieces of JSON with their strings redacted, numbered together. No piece may end within a string."""
    texts = [raw.decode(_ENCODING, _ERRORS) for raw in raws]
    literals = [list(_literals(text)) for text in texts]
    clean = iter(redactor.redact_all([value for found in literals for _, _, value in found]))
    pieces = []
    for raw, text, found in zip(raws, texts, literals, strict=True):
        parts, done = [], 0
        for literal, name, value in found:
            new = _by_name(name, next(clean), redactor)
            if new != value:
                parts += [text[done : literal.start()], json.dumps(new, ensure_ascii=literal[0].isascii())]
                done = literal.end()
        pieces.append("".join((*parts, text[done:])).encode(_ENCODING, _ERRORS) if parts else raw)
    return pieces


def redact_text(text: bytes, redactor: Redactor) -> bytes:
    """A text of any kind, redacted: as JSON if it is JSON, else as plain text."""
    try:
        parse_record(text)
    except ValueError:
        return redactor.redact(text.decode(_ENCODING, _ERRORS)).encode(_ENCODING, _ERRORS)
    return redact_json([text], redactor)[0]


def _literals(text: str) -> Iterator[tuple[re.Match[str], str, str]]:
    """String values that may hold a secret, each as its literal, the name of its member (or empty) and the value."""
    name, name_stop = "", -1
    for found in _STRING.finditer(text):
        colon = _COLON.match(text, found.end())
        try:
            value = json.loads(found[0], strict=False)
        except ValueError:
            value = found[0][1:-1]
        if colon:
            name, name_stop = value, colon.end()
            continue
        own_name = name if found.start() == name_stop else ""
        if not _is_opaque(own_name, value):
            yield found, own_name, value


def _is_opaque(name: str, text: str) -> bool:
    if name in _OPAQUE_NAMES or (text.startswith("data:") and ";base64," in text[:128]):
        return True
    return name in _BLOB_NAMES and _BLOB.fullmatch(text) is not None


def _by_name(name: str, text: str, redactor: Redactor) -> str:
    """The value of a member, redacted also where only the member's name shows that it is a secret."""
    if not name or len(text) > _NAMED_CHARS or _OPENING in text:
        return text
    try:
        found = json.loads(redactor.redact(json.dumps({name: text}, ensure_ascii=False)))
    except ValueError:
        return text
    value = found.get(name, text)
    return value if isinstance(value, str) else text


def _redacted_value(value: Any, name: str, redactor: Redactor) -> Any:
    """A parsed value with its strings redacted, as they are in the bytes that it was read from."""
    if isinstance(value, str):
        return value if _is_opaque(name, value) else _by_name(name, redactor.redact(value), redactor)
    if isinstance(value, Mapping):
        return {key: _redacted_value(item, str(key), redactor) for key, item in value.items()}
    return [_redacted_value(item, "", redactor) for item in value] if isinstance(value, list) else value
