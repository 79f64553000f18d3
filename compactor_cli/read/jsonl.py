"""JSONL: where one record ends and the next begins.

Accepted: CRLF, blank lines, a byte-order mark, U+2028 in strings, several records on one line, NaN, big
numbers, lone surrogates, bytes that are not UTF-8, and JSON documents that span lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum, StrEnum
from itertools import chain
from typing import Any, Final, NamedTuple

import orjson

from compactor_cli.model.errors import InputError, InvalidLine, Place
from compactor_cli.model.transcript import Record
from compactor_cli.model.value import dataclass
from compactor_cli.read.streams import Stream, blanks_end, too_long

# Bytes as Latin-1 have one character each, and no byte of a UTF-8 sequence looks like JSON's punctuation:
# the offsets found in the text are offsets of the bytes. Numbers are only passed over.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
_BLANKS = b" \t\r\n"
_OPENINGS = b"{["
# `Exporting session: ses_4f2a`: a message of the program that exported the session, if its output and its messages went
# to one file.
_ANNOUNCEMENT = re.compile(rb"Exporting session: \S+\s*")
_PARQUET_MARK = b"PAR1"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Byte offsets in a JSON array: after ``[``, (start, stop) of each element, and of ``]``. See `element_spans`.
Spans = tuple[int, tuple[tuple[int, int], ...], int]


def parse(raw: bytes) -> Any:
    """Parse JSON into a value that is for reading only: not every input can be restored from it.

    All strings can be encoded as UTF-8: lone surrogates and bytes that are not UTF-8 become U+FFFD. Integers
    beyond 64 bits may become floats. Raises `ValueError` for invalid JSON, and for JSON nested too deeply for Python.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        text = raw.decode("utf-8", "replace")
    try:
        value = json.loads(text, parse_int=_integer)
        plain = json.dumps(value, ensure_ascii=False)
        try:
            plain.encode()
        except UnicodeEncodeError:
            repaired = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            return json.loads(repaired, parse_int=_integer)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def encoded(value: Any, place: str | None = None) -> bytes:
    """Messages as JSON in one line. Raises `InputError` for what JSON cannot hold."""
    try:
        return orjson.dumps(value)
    except TypeError:  # among others: numbers of more than 64 bits, lone surrogates
        try:
            return json.dumps(value).encode()
        except (TypeError, ValueError) as error:
            raise InputError(f"a message is not JSON: {error}", next_step="dump it first", place=place) from error


def utf8(text: str) -> bytes:
    """A text as UTF-8; surrogates made by `from_utf8` become their bytes. Raises `InputError` for other surrogates."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        advice = 'replace it first: text.encode(errors="replace").decode()'
        raise InputError(f"a text holds half a character: {error}", next_step=advice) from error


def from_utf8(data: bytes) -> str:
    """UTF-8 as a text. Bytes that are not UTF-8 become surrogates, which `utf8` turns back into the bytes."""
    return data.decode("utf-8", "surrogateescape")


def parse_record(raw: bytes) -> Any:
    """Parse a record: a line, an element of an array, or a member of an object (``"key": value``, parsed to value)."""
    try:
        return parse(raw)
    except ValueError:
        if not raw.startswith(b'"'):
            raise
        return next(iter(parse(b"{" + raw + b"}").values()))


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # Python converts at most 4300 digits
        return float(digits)


def as_text(raw: bytes) -> str:
    """The bytes as a text for `value_end`; offsets in the text are offsets in the bytes."""
    return raw.decode("latin-1")


def value_end(text: str, start: int) -> int:
    """The offset after the JSON value that begins at ``start`` in a text made by `as_text`.

    Raises `ValueError` if no JSON value begins there, or one that is nested too deeply for Python.
    """
    try:
        return _DECODER.raw_decode(text, start)[1]
    except RecursionError:
        raise ValueError("nested too deeply") from None


def object_spans(raw: bytes) -> tuple[tuple[int, int], ...]:
    """(start, stop) of the JSON objects and arrays that follow one another from the first byte on.

    Stops before the first thing that is neither; callers compare the last stop with the length to notice that.
    """
    text = as_text(raw)
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(raw) and raw[start] in _OPENINGS:
        try:
            stop = value_end(text, start)
        except ValueError:
            break
        spans.append((start, stop))
        start = blanks_end(raw, stop)
    return tuple(spans)


class OnInvalid(StrEnum):
    """What to do with a line that is not JSON."""

    FAIL = "fail"
    KEEP = "keep"
    DROP = "drop"


class _Invalid(Enum):
    INVALID = "INVALID"


# The value of a record that is not JSON and was kept anyway (`OnInvalid.KEEP`).
INVALID: Final = _Invalid.INVALID


class RawLine(NamedTuple):
    """A line, split into content and ending."""

    number: int  # counted from 1
    body: bytes  # without blanks around it
    ending: bytes  # the line feed and all blanks and blank lines up to the next line's content

    @property
    def is_last(self) -> bool:
        """Whether no line feed follows it: it is the last line, and perhaps incomplete."""
        return b"\n" not in self.ending


class RecordReader(Iterator[Record]):
    """Iterates once over the records of one input, reading as it goes.

    Guarantees: ``prefix`` and then ``raw + ending`` of every record are the input, byte for byte, except for
    what `OnInvalid.DROP` leaves out. ``raw`` has no blanks around it; ``ending`` is all up to the next
    record, with a line feed unless both records are on one line. ``prefix`` is known from the start: a byte-order mark,
    blanks and the announcement of an export before the first record; if there are no records, the whole input.
    ``invalid_count`` counts what was not JSON so far. Raises `InvalidLine` with `OnInvalid.FAIL`.

    Callers that want lines before they are parsed use `take_line`, and may return them with `put_back`.
    """

    def __init__(self, lines: Iterable[bytes], path: str, on_invalid: OnInvalid, max_bytes: int = 0) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self.on_invalid = on_invalid
        self.invalid_count = 0
        self.is_waiting: Callable[[], bool] = bool  # whether reading the next line would block
        rest = iter(lines)
        blanks: list[bytes] = []
        self._first_number, first = 0, b""
        for number, line in enumerate(rest, 1):
            lead = len(line) if number == 1 and _ANNOUNCEMENT.fullmatch(line) else blanks_end(line)
            blanks.append(line[:lead])
            if lead < len(line):
                self._first_number, first = number, line[lead:]
                break
        self.prefix = b"".join(blanks)
        self._lines = _lines(rest, self._first_number, first)
        self._records = self._read()

    def __iter__(self) -> Iterator[Record]:
        return self._records

    def __next__(self) -> Record:
        return next(self._records)

    def take_line(self) -> RawLine | None:
        """Remove and return the next line, which is then not among the records; None at the end."""
        return next(self._lines, None)

    def put_back(self, lines: Iterable[RawLine]) -> None:
        """Insert these lines before those that are still to be read."""
        self._lines = chain(lines, self._lines)

    def of_lines(self, lines: Iterable[RawLine]) -> Iterator[Record]:
        """The records of lines, none of which begins a JSON document that spans lines."""
        for line in lines:
            try:
                value = orjson.loads(line.body)
            except orjson.JSONDecodeError:
                yield from self._odd(line)
            else:
                yield self._record(line, value)

    def _read(self) -> Iterator[Record]:
        line = next(self._lines, None)
        if line is None:
            return
        may_open = line.number == self._first_number and not line.is_last and line.body[0] in _OPENINGS
        if not may_open or _is_json(line.body) or object_spans(line.body):
            yield from self._odd(line)
            yield from self.of_lines(self._lines)
            return
        # The first line opens a document without ending it: read the rest of the input to find its end.
        rest: list[RawLine] = []
        size_bytes = len(line.body)
        for each in self._lines:
            size_bytes += len(each.body) + len(each.ending)
            if self._max_bytes and size_bytes > self._max_bytes:
                what = "the JSON document that begins here"
                raise too_long(self.path, line.number, self._max_bytes, what)
            rest.append(each)
        whole = b"".join(part for each in (line, *rest) for part in (each.body, each.ending))
        body = whole.rstrip(_BLANKS)
        is_one = object_spans(body) or not (rest and _is_json(rest[0].body))
        for item in (RawLine(line.number, body, whole[len(body) :]),) if is_one else (line, *rest):
            yield from self._odd(item)

    def _odd(self, line: RawLine) -> Iterator[Record]:
        """The records of a line that the fast parser refuses: odd JSON, several values on the line, or invalid JSON."""
        try:
            value = parse(line.body)
        except ValueError:
            yield from self._glued(line)
        else:
            yield self._record(line, value)

    def _glued(self, line: RawLine) -> Iterator[Record]:
        """The records of a line that holds several objects and, perhaps, something that is not JSON after them."""
        pieces: list[RawLine] = []
        body, number = line.body, line.number
        start = 0
        for begin, stop in object_spans(body):
            following = blanks_end(body, stop)
            ending = body[stop:following] if following < len(body) else body[stop:] + line.ending
            pieces.append(RawLine(number, body[begin:stop], ending))
            number += body.count(b"\n", begin, following)
            start = following
        if start < len(body):
            pieces.append(RawLine(number, body[start:], line.ending))
        for piece in pieces:
            try:
                value = parse(piece.body)
            except ValueError:
                self.invalid_count += 1
                if self.on_invalid is OnInvalid.FAIL:
                    raise self._error(piece) from None
                if self.on_invalid is OnInvalid.KEEP:
                    yield self._record(piece, INVALID)
            else:
                yield self._record(piece, value)

    def _record(self, line: RawLine, value: Any) -> Record:
        return Record(raw=line.body, ending=line.ending, value=value, place=Place(path=self.path, line=line.number))

    def _error(self, line: RawLine) -> InvalidLine:
        what, number = "not JSON", 1
        try:
            orjson.loads(line.body)
        except orjson.JSONDecodeError as error:
            what, number = f"not JSON ({error.msg}, column {error.colno})", error.lineno
        advice = "fix the line, or use --on-invalid keep or drop"
        if line.is_last:
            what = f"the last line is torn: {what}"
            advice = "the file may still be being written: try again later, or use --on-invalid keep or drop"
        if line.body.startswith(_PARQUET_MARK):
            what, advice = "Parquet", f"compact it with: compactor batch {self.path} --output-dir DIR"
        if line.body.startswith(_UTF16_MARKS):
            what, advice = "UTF-16 text", "convert it first: iconv -f utf-16 -t utf-8"
        return InvalidLine(what, place=Place(path=self.path, line=line.number + number - 1), next_step=advice)


def read_records(
    lines: Iterable[bytes], path: str, on_invalid: OnInvalid = OnInvalid.FAIL, max_bytes: int = 0
) -> RecordReader:
    """The records of lines, read lazily; ``path`` is for messages. See `RecordReader`.

    Reads ahead by one line. The whole input is read at once only if its first line opens a JSON document without
    ending it. The input may then be one document that spans lines (one record), or several, and must not be longer than
    ``max_bytes`` (0: no limit).
    """
    return RecordReader(lines, path, on_invalid, max_bytes)


def records_in(stream: Stream, on_invalid: OnInvalid = OnInvalid.FAIL, path: str = "") -> RecordReader:
    """As `read_records`, of an open input within its limits; ``path``, if set, replaces the input's own in messages."""
    records = read_records(stream.lines(), path or stream.path, on_invalid, stream.limits.line_bytes)
    records.is_waiting = stream.is_waiting
    return records


def _lines(lines: Iterator[bytes], number: int, line: bytes) -> Iterator[RawLine]:
    """Lines, each with all the blanks up to the next one as its ending; ``line`` is the first."""
    if not line:
        return
    body = line.rstrip(_BLANKS)
    endings = [line[len(body) :]]
    for next_number, line in enumerate(lines, number + 1):
        if line[0] not in _OPENINGS:
            lead = blanks_end(line)
            endings.append(line[:lead])
            if lead == len(line):
                continue
            line = line[lead:]
        yield RawLine(number, body, b"".join(endings))
        number, body = next_number, line.rstrip(_BLANKS)
        endings = [line[len(body) :]]
    yield RawLine(number, body, b"".join(endings))


def _is_json(body: bytes) -> bool:
    try:
        parse(body)
    except ValueError:
        return False
    return True


def element_spans(
    raw: bytes, path: tuple[str | int, ...], values: Sequence[Any] = (), *, of_object: bool = False
) -> Spans:
    """The byte offsets of the array at ``path`` in valid JSON, and of its elements.

    Returns the offset after ``[``, (start, stop) of each element without blanks around it, and the offset
    of ``]``. With ``of_object`` it is an object, and the spans are its members with their keys. If an object on the way
    has a key twice, the last one counts, as it does for parsers. ``values``, the parsed elements, only make it faster.
    Every byte is passed once. Raises `LookupError` if there is no array (object) at ``path``, `ValueError` for invalid
    JSON.
    """
    found, _ = _Scanner(raw=raw, text=as_text(raw), values=values, of_object=of_object).find(blanks_end(raw), path)
    if found is None:
        raise LookupError(f"no array at {'.'.join(map(str, path)) or 'the top'}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scanner:
    raw: bytes
    text: str
    values: Sequence[Any]
    of_object: bool

    def find(self, start: int, path: tuple[str | int, ...]) -> tuple[Spans | None, int]:
        """The array at ``path`` in the value that begins at ``start`` (or None), and the offset after that value."""
        opening = self.text[start : start + 1]
        if not path and opening == ("{" if self.of_object else "["):
            return self._elements(start)
        if path and opening == ("[" if isinstance(path[0], int) else "{"):
            return self._below(start, path)
        return None, value_end(self.text, start)

    def _elements(self, start: int) -> tuple[Spans, int]:
        """The elements of an array, or the members of an object, each from its key to the end of its value."""
        spans: list[tuple[int, int]] = []
        closing = "}" if self.of_object else "]"
        at = self._inside(start, closing)
        known = iter(self.values)
        while self.text[at] != closing:
            value_start = self._expect(blanks_end(self.raw, value_end(self.text, at)), ":") if self.of_object else at
            # If the bytes here begin with the value as orjson writes it, the element ends where that text ends, since
            # no object's text is the beginning of another object's text.
            try:
                written = orjson.dumps(value) if isinstance(value := next(known, None), dict) else b""
            except orjson.JSONEncodeError:
                written = b""
            if written and self.raw.startswith(written, at):
                stop = at + len(written)
            else:
                # The file has another style than orjson's, so the other elements need not be compared.
                known, stop = iter(()), value_end(self.text, value_start)
            spans.append((at, stop))
            at = self._next(stop, closing)
        return (start + 1, tuple(spans), at), at + 1

    def _below(self, start: int, path: tuple[str | int, ...]) -> tuple[Spans | None, int]:
        """As `find`, for a path that is not empty: looks in the element or member that its first step names."""
        found: Spans | None = None
        step, closing = path[0], "]" if isinstance(path[0], int) else "}"
        at = self._inside(start, closing)
        count = 0
        while self.text[at] != closing:
            key: str | int = count
            if closing == "}":
                key_stop = value_end(self.text, at)
                key = json.loads(self.raw[at:key_stop].decode("utf-8", "replace"))
                at = self._expect(blanks_end(self.raw, key_stop), ":")
            if key == step:
                found, stop = self.find(at, path[1:])
            else:
                stop = value_end(self.text, at)
            count += 1
            at = self._next(stop, closing)
        return found, at + 1

    def _inside(self, opening: int, closing: str) -> int:
        """The offset of the first element after ``opening``, or of the closing bracket of an empty container."""
        at = blanks_end(self.raw, opening + 1)
        return at if self.text[at : at + 1] == closing else self._value(at)

    def _next(self, stop: int, closing: str) -> int:
        """The offset of the next element after one that ended at ``stop``, or of the closing bracket."""
        if closing == "]" and self.raw.startswith(b",{", stop):
            return stop + 1
        at = blanks_end(self.raw, stop)
        return at if self.text[at : at + 1] == closing else self._value(self._expect(at, ","))

    def _expect(self, at: int, mark: str) -> int:
        if self.text[at : at + 1] != mark:
            raise ValueError(f"not JSON: {mark} expected at byte {at}")
        return blanks_end(self.raw, at + 1)

    def _value(self, at: int) -> int:
        if at >= len(self.text):
            raise ValueError("not JSON: it ends too early")
        return at
