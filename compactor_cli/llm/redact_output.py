"""Redacted outputs: secrets are taken out of the records that stay and of the summary, where the user asks for it.

Only the strings of the JSON are changed, each as a literal in its place: numbers, blanks and the order of keys stay,
and what was JSON is JSON. Names of members stay, and so does what only a provider can read (signatures, encrypted
reasoning) and the content of images.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compactor_cli.formats.base import reread
from compactor_cli.formats.registry import get
from compactor_cli.llm.redact import Redactor
from compactor_cli.model.summary import Answer, Request, Summariser
from compactor_cli.model.transcript import Record, Transcript
from compactor_cli.read.jsonl import INVALID, parse_record

# A string of valid JSON; a colon after it makes it the name of a member.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_COLON = re.compile(r"\s*:\s*")
_OPAQUE_NAMES = frozenset(
    {"signature", "thoughtSignature", "thought_signature", "thinkingSignature"}
    | {"encrypted_content", "encryptedContent", "redacted_thinking"}
)
_BLOB = re.compile(r"[A-Za-z0-9+/_-]{256,}={0,2}")
_BLOB_NAMES = frozenset({"data", "image", "bytes", "file_data"})
# A secret that only the name of its member gives away is no longer than this.
_NAMED_CHARS = 2_000
_ENCODING, _ERRORS = "utf-8", "surrogateescape"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Literal:
    """A string in a text of JSON: where its literal stands, the name of its member, and what it says."""

    start: int
    stop: int
    name: str
    text: str


class Redacted:
    """A summariser whose summaries hold no secret, also none that an earlier summary or its state knew of."""

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
    """The transcript without secrets, under the hash of its original; itself if there are none."""
    raws = [transcript.frame.prefix, *(record.raw for record in transcript.records), transcript.frame.suffix]
    prefix, *records, suffix = redact_json(raws, redactor)
    clean = tuple(
        _redacted_record(record, raw, redactor) for record, raw in zip(transcript.records, records, strict=True)
    )
    if [prefix, *(record.raw for record in clean), suffix] == raws:
        return transcript
    row = _redacted_value(transcript.row, "", redactor)
    frame = replace(transcript.frame, prefix=prefix, suffix=suffix)
    messages = reread(get(transcript.dialect), transcript, clean, row) if clean else transcript.messages
    return replace(transcript, records=clean, messages=messages, frame=frame, row=row)


def _redacted_record(record: Record, raw: bytes, redactor: Redactor) -> Record:
    """The record with these bytes; of a line that is no JSON, and was kept, the text is redacted as it stands."""
    if record.value is INVALID:
        return replace(record, raw=redactor.redact(record.raw.decode(_ENCODING, _ERRORS)).encode(_ENCODING, _ERRORS))
    return record if raw == record.raw else replace(record, raw=raw, value=parse_record(raw))


def redact_json(raws: Sequence[bytes], redactor: Redactor) -> list[bytes]:
    """Pieces of JSON (none of them ends within a string) with their strings redacted, all by one numbering."""
    texts = [raw.decode(_ENCODING, _ERRORS) for raw in raws]
    literals = [list(_literals(text)) for text in texts]
    flat = [literal for found in literals for literal in found]
    clean = iter(redactor.redact_all([literal.text for literal in flat]))
    pieces = []
    for raw, text, found in zip(raws, texts, literals, strict=True):
        new = {literal: _by_name(literal, next(clean), redactor) for literal in found}
        changed = [literal for literal in found if new[literal] != literal.text]
        pieces.append(_rewritten(text, changed, new) if changed else raw)
    return pieces


def _literals(text: str) -> Iterator[_Literal]:
    """The values that are strings and may hold a secret."""
    name = ""
    name_stop = -1
    for found in _STRING.finditer(text):
        colon = _COLON.match(text, found.end())
        value = json.loads(found[0], strict=False) if _is_valid(found[0]) else found[0][1:-1]
        if colon:
            name, name_stop = value, colon.end()
            continue
        own_name = name if found.start() == name_stop else ""
        if not _is_opaque(own_name, value):
            yield _Literal(start=found.start(), stop=found.end(), name=own_name, text=value)


def _is_valid(literal: str) -> bool:
    try:
        json.loads(literal, strict=False)
    except ValueError:
        return False
    return True


def _is_opaque(name: str, text: str) -> bool:
    if name in _OPAQUE_NAMES or (text.startswith("data:") and ";base64," in text[:128]):
        return True
    return name in _BLOB_NAMES and _BLOB.fullmatch(text) is not None


def _by_name(literal: _Literal, text: str, redactor: Redactor) -> str:
    """The text, redacted also where only the name of its member says that it is a secret."""
    if not literal.name or len(text) > _NAMED_CHARS or "[REDACTED:" in text:
        return text
    try:
        found = json.loads(redactor.redact(json.dumps({literal.name: text}, ensure_ascii=False)))
    except ValueError:
        return text
    value = found.get(literal.name, text)
    return value if isinstance(value, str) else text


def _rewritten(text: str, changed: Sequence[_Literal], new: Mapping[_Literal, str]) -> bytes:
    pieces: list[str] = []
    done = 0
    for literal in changed:
        is_ascii = text[literal.start : literal.stop].isascii()
        pieces += (text[done : literal.start], json.dumps(new[literal], ensure_ascii=is_ascii))
        done = literal.stop
    return "".join((*pieces, text[done:])).encode(_ENCODING, _ERRORS)


def _redacted_value(value: Any, name: str, redactor: Redactor) -> Any:
    """A parsed value with its strings redacted, as the bytes that it was read from."""
    if isinstance(value, str):
        literal = _Literal(start=0, stop=0, name=name, text=value)
        return value if _is_opaque(name, value) else _by_name(literal, redactor.redact(value), redactor)
    if isinstance(value, Mapping):
        return {key: _redacted_value(item, str(key), redactor) for key, item in value.items()}
    return [_redacted_value(item, "", redactor) for item in value] if isinstance(value, list) else value
