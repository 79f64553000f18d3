"""State: the counter table and the remembered statements as bytes, kept next to a summary.

Bounds: the atoms most likely to be used again (50,000), the words said most (20,000) and 400 kB of statements, so a
state is at most a few hundred kilobytes however long the history. What is within the bounds is exact.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from operator import attrgetter
from typing import Any

import orjson

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.counter_table import Columns, Spoken, Table
from compactor_cli.digest.salience_model import Scores
from compactor_cli.digest.statements import Statement, StatementForm
from compactor_cli.read.streams import zstd

MAX_ATOMS = 50_000
MAX_TERMS = 20_000
MAX_STATEMENT_BYTES = 400_000
# A frame that unpacks to more than this was not written here.
_MAX_BYTES = 64 << 20
# Higher levels take three times as long for a tenth less.
_LEVEL = 3
_MAGIC = b"compact-state/2\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestState:
    """What a digest knows of records that are gone. ``extra``: what the sections remember, JSON values by name."""

    table: Table
    statements: tuple[Statement, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def serialise(scores: Scores, statements: Sequence[Statement] = (), extra: Mapping[str, Any] | None = None) -> bytes:
    """The state as bytes; the same state gives the same bytes."""
    table = scores.table
    rows = _kept_rows(scores)
    names = list(table.atoms)
    head = {
        "atoms": [names[row] for row in rows],
        "columns": [name for name, _ in table.columns.items()],
        "spoken": _packed_words(table.spoken),
        "numbers": [table.length_tokens, table.events],
        "statements": [_packed(statement) for statement in _kept_statements(scores, statements)],
        "extra": dict(extra or {}),
    }
    text = orjson.dumps(head, option=orjson.OPT_SORT_KEYS)
    is_whole = len(rows) == len(names)
    body = b"".join(
        _bytes(column if is_whole else [column[row] for row in rows]) for _, column in table.columns.items()
    )
    packed: bytes = zstd().compress(_MAGIC + len(text).to_bytes(8, "little") + text + body, _LEVEL)
    return packed


def parse(data: bytes) -> DigestState | None:
    """The state of `serialise`; None for bytes that are none (damaged, or of another version)."""
    try:
        raw = _decompress(data)
        if not raw.startswith(_MAGIC):
            return None
        start = len(_MAGIC) + 8
        stop = start + int.from_bytes(raw[len(_MAGIC) : start], "little")
        head = orjson.loads(raw[start:stop])
        return DigestState(
            table=_table(head, raw[stop:]),
            statements=tuple(_unpacked(fields) for fields in head["statements"]),
            extra=dict(head["extra"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError, MemoryError):
        return None


def _kept_rows(scores: Scores) -> list[int]:
    rows = scores.rows
    if len(rows) <= MAX_ATOMS:
        return list(range(len(rows)))
    return sorted(nlargest(MAX_ATOMS, range(len(rows)), key=lambda row: (rows[row], row)))


def _kept_statements(scores: Scores, statements: Sequence[Statement]) -> Iterable[Statement]:
    sizes = [len(statement.text.encode("utf-8", "replace")) for statement in statements]
    if sum(sizes) <= MAX_STATEMENT_BYTES:
        return statements
    totals = (sum(map(scores.of, sorted(atom_texts(statement.text)))) for statement in statements)
    density = [total / (size + 12) for total, size in zip(totals, sizes, strict=True)]
    kept: list[int] = []
    left = MAX_STATEMENT_BYTES
    for number in sorted(range(len(statements)), key=lambda number: (-density[number], number)):
        left -= sizes[number]
        if left < 0:
            break
        kept.append(number)
    return [statements[number] for number in sorted(kept)]


def _bytes(column: Sequence[int]) -> bytes:
    numbers = array("q", column)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _column(data: bytes) -> list[int]:
    numbers = array("q", data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


_packed = attrgetter("text", "form", "lead", "label", "at_tokens", "weight")


def _unpacked(values: Sequence[Any]) -> Statement:
    text, form, lead, label, at_tokens, weight = values
    return Statement(
        text=str(text),
        event=-1,
        place=0,
        form=StatementForm(form),
        lead=str(lead),
        label=str(label),
        at_tokens=int(at_tokens),
        weight=float(weight),
    )


def _packed_words(spoken_words: Spoken) -> dict[str, Any]:
    kept = sorted(nlargest(MAX_TERMS, spoken_words.times, key=lambda word: (spoken_words.times[word], word)))
    counts = [[spoken_words.times[word], spoken_words.events[word], spoken_words.names[word]] for word in kept]
    return {"total": spoken_words.total, "words": kept, "counts": counts}


def _unpacked_words(values: Mapping[str, Any]) -> Spoken:
    spoken_words = Spoken(total=int(values["total"]))
    for word, (times, events, names) in zip(values["words"], values["counts"], strict=True):
        for counter, number in (
            (spoken_words.times, times),
            (spoken_words.events, events),
            (spoken_words.names, names),
        ):
            if number:
                counter[str(word)] = int(number)
    return spoken_words


def _table(head: Mapping[str, Any], body: bytes) -> Table:
    size = 8 * len(head["atoms"])
    if len(body) != size * len(head["columns"]):
        raise ValueError("the columns are not as long as the atoms")
    columns = {name: _column(body[at * size : (at + 1) * size]) for at, name in enumerate(head["columns"])}
    length_tokens, events = map(int, head["numbers"])
    return Table(
        atoms={str(atom): row for row, atom in enumerate(head["atoms"])},
        columns=Columns(**columns),
        spoken=_unpacked_words(head["spoken"]),
        length_tokens=length_tokens,
        events=events,
    )


def _decompress(data: bytes) -> bytes:
    module = zstd()
    try:
        reader = module.ZstdDecompressor()
        raw: bytes = reader.decompress(data, _MAX_BYTES)
    except module.ZstdError as error:
        raise ValueError(str(error)) from error
    if not reader.eof:
        raise ValueError("the state is cut off or too large")
    return raw
