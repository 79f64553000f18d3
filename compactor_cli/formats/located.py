"""What dialects share: parts with the places of their texts in a record, and helpers for session files.

A dialect gives the parts of a record together with their places; reading and shortening both follow from that.
Blocks of a content are read here: those of the Anthropic Messages API, with the text blocks of its relatives
(``input_text``, ``output_text``). Every block is one part, so that the number of a part is the number of its block.

For sessions: records that link to their parents, times, boundaries that repeat records. All of this was observed with
the clients themselves; the formats' documentation lists the runs.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain, pairwise
from typing import Any, NamedTuple

from compactor_cli.formats import contents
from compactor_cli.formats.contents import arguments, dump, listed, object_of, parse, read_call, result_text, string
from compactor_cli.formats.registry import Insertion, InsertionPoint, JsonPath, first_object
from compactor_cli.model.transcript import (
    Media,
    Message,
    Part,
    Record,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Transcript,
)

# The message of a record that is not shown to a model.
META = Message(role=Role.META)


class LocatedPart(NamedTuple):
    """A part, and the places of its text in the record."""

    part: Part
    places: tuple[JsonPath, ...] = ()  # none: it cannot be shortened; several: the text has copies
    # The new value of a place, from the old value and the new text; None: `written` does it.
    write: Callable[[Any, str], Any] | None = None

    def below(self, *place: str | int) -> LocatedPart:
        """The same part, with its places below this one."""
        part, places, write = self
        return LocatedPart(part, tuple([place + inner for inner in places]), write) if places else self


def text(words: Any, *places: JsonPath) -> LocatedPart:
    """A text; empty if the value is not a string."""
    return LocatedPart(Text(text=string(words)), places)


def media(kind: str, value: Any) -> LocatedPart:
    """A `Media` part (an image, a file), as large as the strings in the value. It cannot be shortened."""
    return LocatedPart(Media(kind=kind, size_bytes=contents.size_bytes(value)))


def thinking(words: Any) -> LocatedPart:
    """The model's thinking. It has no place, since a changed text would lose its signature."""
    return LocatedPart(Thinking(text=string(words)))


def call(
    value: Mapping[str, Any], key: str, *place: str | int, id_key: str = "id", name_key: str = "name"
) -> LocatedPart:
    """A call that stands at ``place``, with its arguments, its id and its name at these keys."""
    call_id, name, asked = string(value.get(id_key)), string(value.get(name_key)), arguments(value.get(key))
    return LocatedPart(ToolCall(id=call_id, name=name, arguments=asked), ((*place, key),))


def any_call(value: Any, *place: str | int) -> LocatedPart:
    """A call that stands at ``place`` in any shape that `read_call` knows."""
    inner = contents.arguments_place(value)
    return LocatedPart(read_call(value), ((*place, *inner),) if inner else ())


class RecordDialect:
    """The defaults of dialects that give the parts of a record with their places; shortening follows from these."""

    paths: tuple[JsonPath, ...] = ()  # of the messages in a row
    models: tuple[JsonPath, ...] = ()  # of the model's name in a record
    row_models: tuple[JsonPath, ...] = ()  # of the model's name in a row
    row_score = 2  # the score of a row

    def __init__(self, pieces_of: Callable[[Any], Sequence[LocatedPart]] = lambda value: ()) -> None:
        self._pieces_of = pieces_of

    def record_score(self, value: Any) -> int:
        """The score of an object as a record."""
        return 0

    def starts(self, value: Any) -> bool:
        """False by default: no record is marked as the first."""
        return False

    def message(self, value: Any) -> Message:
        """The message of one record, independent of the records around it; META by default."""
        return META

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record."""
        return tuple([self.message(record.value) for record in records])

    def array_path(self, value: Any) -> JsonPath | None:
        """The first of ``paths`` at which an array begins with a record; the empty path for a bare array that does."""
        return array_path(value, self.paths, self._leads) if self.paths else None

    def _leads(self, elements: Any) -> bool:
        first = first_object(elements)
        return first is not None and self.record_score(first) > 0

    def score(self, value: Any) -> int:
        """`record_score` of a record; ``row_score`` for a row with an array of records; 0 if it is not an object."""
        if not isinstance(value, dict):
            return 0
        return self.record_score(value) or (self.row_score if self.array_path(value) is not None else 0)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the newest record names, else that of the row; empty if there is none."""
        inside = (at(record.value, path) for record in reversed(records) for path in self.models)
        return first_string(chain(inside, (at(row, path) for path in self.row_models)))

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The record with these texts replaced wherever they stand."""
        return shorten(record, texts, self._pieces_of)


def first_string(values: Iterable[Any]) -> str:
    """The first of these that is a string and not empty; an empty string if there is none."""
    return next((value for value in values if isinstance(value, str) and value), "")


def parts_of(pieces: Iterable[LocatedPart]) -> tuple[Part, ...]:
    """The parts of a record, numbered as in `shorten`."""
    return tuple([piece.part for piece in pieces])


def shorten(record: Record, texts: Mapping[int, str], pieces_of: Callable[[Any], Sequence[LocatedPart]]) -> bytes:
    """The record with the texts of these parts replaced at all their places; arguments keep their type.

    Parts without a place stay as they are, as do those that stand for missing results.
    """
    value = parse(record.raw)
    pieces = pieces_of(value)
    found = [(*pieces[i], new) for i, new in texts.items() if i < len(pieces) and pieces[i].places]
    if not found:
        return record.raw
    for part, places, write, new in found:
        for place in (place for place in places if isinstance(at(value, place[:-1]), dict | list)):
            old = at(value, place)
            value = replaced(value, place, write(old, new) if write else written(part, old, new))
    return dump(value, record.raw)


def written(part: Part, old: Any, new: str) -> Any:
    """The new text of a part, as a value of the type that the old one at its place has."""
    if isinstance(part, ToolCall):
        return contents.arguments_like(old, new)
    if not isinstance(part, ToolResult):
        return [{"type": "text", "text": new}] if isinstance(old, list) else new
    if isinstance(old, dict) and not isinstance(old.get("text"), str):
        return {_only_key(old) or "output": new}
    return contents.shortened_result(old, new)


def _only_key(value: Mapping[str, Any]) -> str:
    return next(iter(value)) if len(value) == 1 else ""


def at(value: Any, place: JsonPath, missing: Any = None) -> Any:
    """What stands at this place, or ``missing``."""
    for step in place:
        if isinstance(value, dict):
            value = value.get(step, missing)
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return missing
    return value


def replaced(value: Any, place: JsonPath, new: Any) -> Any:
    """A copy of the value with ``new`` at this place, which is not empty and whose containers must exist."""
    inner = new if len(place) == 1 else replaced(value[place[0]], place[1:], new)
    if isinstance(value, list):
        return [inner if i == place[0] else item for i, item in enumerate(value)]
    return {**value, place[0]: inner}


_TEXT_KINDS = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_CALL_KINDS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_BULKY_KEYS = ("data", "encrypted_content", "image_url", "url", "base64", "file_data")


def block(value: Any) -> LocatedPart:
    """The part of a block. A block of unknown type is its text if it has one, else `Media` of its own kind and size."""
    if isinstance(value, str):
        return text(value, ())
    if not isinstance(value, dict):
        return media(type(value).__name__, None)
    kind = string(value.get("type"))
    if kind in _TEXT_KINDS:
        return text(value.get("text"), ("text",))
    if kind == "thinking":
        return thinking(value.get("thinking"))
    if kind in _CALL_KINDS:
        return call(value, "input")
    if kind.endswith("tool_result"):
        call_id, name, failed = value.get("tool_use_id"), value.get("name"), value.get("is_error") is True
        return result(value.get("content"), ("content",), call_id=call_id, name=name, is_error=failed)
    if kind == "compaction":
        return text(value.get("content"), ("content",))
    if isinstance(value.get("text"), str):
        return text(value["text"], ("text",))
    places = [*(inner for inner in value.values() if isinstance(inner, dict)), value]
    bulky = (place[key] for place in places for key in _BULKY_KEYS if isinstance(place.get(key), str))
    return media(kind or "unknown", next(bulky, value))


def content(value: Any, *place: str | int, read: Callable[[Any], LocatedPart] = block) -> list[LocatedPart]:
    """The parts of a content that stands at ``place``: a string, a list of blocks that ``read`` knows, or a block."""
    if isinstance(value, str):
        return [text(value, place)] if value else []
    if isinstance(value, dict):
        return [read(value).below(*place)]
    return [read(each).below(*place, i) for i, each in enumerate(value)] if isinstance(value, list) else []


def content_parts(value: Any) -> tuple[Part, ...]:
    """The parts of a content without their places, which is faster; most contents are only read."""
    if isinstance(value, list):
        return tuple([block(each).part for each in value])
    return parts_of(content(value))


def result(value: Any, place: JsonPath, *, call_id: Any, name: Any = "", is_error: bool = False) -> LocatedPart:
    """A tool's answer at ``place``: a string, blocks, or an object. An object with a single text is that text."""
    only = value.get(_only_key(value)) if isinstance(value, dict) else None
    words = only if isinstance(only, str) else result_text(value)
    own_id, own_name, count = string(call_id), string(name), contents.media_count(value)
    return LocatedPart(ToolResult(id=own_id, text=words, name=own_name, is_error=is_error, media_count=count), (place,))


def like_keys(message: Mapping[str, Any], like: Any) -> dict[str, Any]:
    """The message with its keys in the order of another one."""
    order = list(like) if isinstance(like, dict) else []
    known = [key for key in order if key in message]
    return {key: message[key] for key in (*known, *(key for key in message if key not in known))}


def array_path(value: Any, paths: Iterable[JsonPath], leads: Callable[[Any], bool]) -> JsonPath | None:
    """The first of these paths at which ``leads`` accepts the array; the empty path for a bare array; else None."""
    if isinstance(value, list):
        return () if leads(value) else None
    for path in paths if isinstance(value, dict) else ():
        # A quick check first: this runs for every record, and most lack even the first key of a path.
        if (not path or path[0] in value) and (found := at(value, path)) is not None and leads(found):
            return path
    return None


def any_block(value: Any) -> LocatedPart:
    """The part of a block of any API or framework, also of those that `block` does not know.

    These are Bedrock's untyped blocks, Kimi's ``think``, results of tools that run at the provider's, and the blocks of
    ``ModelMessage`` of the AI SDK (versions 4 and 5), of ``ChatMessage.to_dict`` of Haystack 2, of rows of
    LLaMA-Factory's ``v1`` data sets and of sessions of goose 1. Content that an API verifies as a whole (encrypted
    search results) becomes a result without a text, which is paired with its call but cannot be shortened.
    """
    return (_other_block(value) if isinstance(value, dict) else None) or block(value)


def _other_block(value: Mapping[str, Any]) -> LocatedPart | None:
    kind, inner = value.get("type"), value.get("value")
    if not isinstance(kind, str):
        return _untyped(value)
    if kind == "text" and isinstance(inner, str):
        return text(inner, ("value",))
    if kind == "tool_call" and isinstance(inner, str):
        return LocatedPart(contents.named_call(inner))
    if kind == "reasoning" and isinstance(words := inner if isinstance(inner, str) else value.get("text"), str):
        return thinking(words)
    if kind == "think":
        return thinking(value.get("think"))
    if kind == "tool-call":
        return call(value, "input" if "input" in value else "args", id_key="toolCallId", name_key="toolName")
    if kind == "tool-result":
        # ``output`` with a type and a value, ``result`` before version 5.
        is_typed = isinstance(at(value, ("output", "type")), str) and "value" in value["output"]
        place: JsonPath = ("output", "value") if is_typed else ("output",) if "output" in value else ("result",)
        failed = value.get("isError") is True or string(at(value, ("output", "type"))).startswith("error")
        call_id, name = value.get("toolCallId"), value.get("toolName")
        return result(at(value, place), place, call_id=call_id, name=name, is_error=failed)
    if kind in ("toolRequest", "toolResponse"):
        return _goose(value, kind)
    if kind == "document" and at(value, ("source", "type")) == "text" and string(value["source"].get("data")):
        return text(value["source"]["data"], ("source", "data"))
    if kind.endswith("_tool_result") and kind not in _PLAIN_RESULTS:
        place = next((place for place in _TEXT_PLACES if string(at(value, place))), ())
        call_id, words = string(value.get("tool_use_id")), at(value, place) if place else ""
        failed = string(at(value, ("content", "type"))).endswith("_error")
        count = 0 if place else len(listed(value.get("content"))) or 1
        part = ToolResult(id=call_id, text=words, is_error=failed, media_count=count)
        return LocatedPart(part, (place,) if place else ())
    return None


# The places of an answer in goose, best first.
_GOOSE_ANSWERS: tuple[JsonPath, ...] = (
    ("toolResult", "value", "content"),
    ("toolResult", "value"),
    ("toolResult", "error"),
)


def _goose(value: Mapping[str, Any], kind: str) -> LocatedPart:
    """A call or an answer of goose, which wraps both in an object with a status: ``{"status", "value"|"error"}``."""
    if kind == "toolRequest":
        asked = read_call({**object_of(at(value, ("toolCall", "value"))), "id": value.get("id")})
        return LocatedPart(asked, (("toolCall", "value", "arguments"),) if asked.arguments else ())
    place = next((place for place in _GOOSE_ANSWERS if at(value, place) is not None), ())
    failed = at(value, ("toolResult", "status")) == "error" or at(value, ("toolResult", "value", "isError")) is True
    return result(at(value, place) if place else None, place, call_id=value.get("id"), is_error=failed)


# The kinds that `block` reads as plain results; other results are of tools that run at the provider's.
_PLAIN_RESULTS = frozenset({"tool_result", "mcp_tool_result"})
# Where results of server tools hold a text that may be shortened, best first.
_TEXT_PLACES = (("content", "stdout"), ("content", "stderr"), ("content", "content", "source", "data"))
_OPAQUE_SIZES = ("image", "document", "video", "guardContent", "cachePoint")


def _untyped(value: Mapping[str, Any]) -> LocatedPart | None:
    """A block of Haystack or of the Bedrock Converse API, recognised by its only key; None for others."""
    asked, answer = value.get("tool_call"), value.get("tool_call_result")
    if isinstance(asked, dict):
        return call(asked, "arguments", "tool_call", name_key="tool_name")
    if isinstance(answer, dict):
        call_id, name = (at(answer, ("origin", key)) for key in ("id", "tool_name"))
        place, failed = ("tool_call_result", "result"), bool(answer.get("error"))
        return result(answer.get("result"), place, call_id=call_id, name=name, is_error=failed)
    if isinstance(words := at(value, ("reasoning", "reasoning_text")), str):
        return thinking(words)
    asked, answer, reasoning = (value.get(key) for key in ("toolUse", "toolResult", "reasoningContent"))
    if isinstance(asked, dict):
        return call(asked, "input", "toolUse", id_key="toolUseId")
    if isinstance(answer, dict):
        items = listed(answer.get("content"))
        texts = [item for item in items if isinstance(item, dict) and ("json" in item or "text" in item)]
        rest = [item for item in items if item not in texts]
        call_id, failed = string(answer.get("toolUseId")), answer.get("status") == "error"
        words = "\n".join(result_text(item.get("json", item)) for item in texts)
        part = ToolResult(id=call_id, text=words, is_error=failed, media_count=len(rest))
        return LocatedPart(part, (("toolResult", "content"),), lambda old, words: [{"text": words}, *rest])
    if isinstance(reasoning, dict) and isinstance(words := at(reasoning, ("reasoningText", "text")), str):
        return thinking(words)
    kind = "reasoning" if isinstance(reasoning, dict) else next((key for key in _OPAQUE_SIZES if key in value), "")
    return media(kind, value) if kind else None


Value = Mapping[str, Any]
EPOCH = "1970-01-01T00:00:00.000Z"


class ParentTree:
    """Records that name their parent by its id.

    ``index`` has the position of the record with each id, the last if there are several. ``keys`` are the keys of a
    record's own id and its parent's.
    """

    keys = ("uuid", "parentUuid")

    def __init__(self, values: Sequence[Value], keys: tuple[str, str] | None = None) -> None:
        self.keys = keys or self.keys
        self.values = values
        self.index = {own: i for i in range(len(values)) if (own := self.id(i))}

    def id(self, i: int | None) -> str:
        """The id of a record; empty if it has none, and for None."""
        return "" if i is None else string(self.values[i].get(self.keys[0]))

    def parent_id(self, i: int | None) -> str:
        """The id that a record names as its parent's; empty for a root, and for None."""
        return "" if i is None else string(self.values[i].get(self.keys[1]))

    def parent(self, i: int) -> int | None:
        """The parent of a record; None for a root, and if the parent is missing."""
        return self.index.get(self.parent_id(i))

    def ancestors(self, i: int | None) -> Iterator[int]:
        """The record itself, then its ancestors, up to a root, a missing parent or a cycle. Nothing for None."""
        seen: set[int] = set()
        while i is not None and i not in seen:
            seen.add(i)
            yield i
            i = self.parent(i)

    def breaks_off(self, i: int) -> int | None:
        """The oldest ancestor of a record if it names a parent, which is then missing; else None."""
        *_, oldest = self.ancestors(i)
        return oldest if self.parent_id(oldest) else None


class LinkedSite:
    """The place of insertions among records that link to their parents.

    ``chain`` is the tail's newest record with all its ancestors, removed records included. ``taken`` is the id of the
    removed record to which the tail links, which the last insertion takes over; empty if there is none.
    """

    def __init__(self, transcript: Transcript, cut: InsertionPoint, tree: ParentTree, newest: int | None) -> None:
        self.transcript = transcript
        self.cut = cut
        self._links = tree
        self.after = frozenset(cut.after)
        self.chain = tuple(tree.ancestors(newest))
        top = next((i for i in reversed(self.chain) if i in self.after), None)
        parent = tree.parent_id(top)
        self.taken = "" if tree.index.get(parent, -1) in cut.kept else parent
        # The time of the last removed record: clients may take the newest record for the end of the chain, so that a
        # new one must not be later than the tail.
        self.timestamp = insertion_time(tree.values, cut)

    def later(self, milliseconds: int) -> str:
        """The newest time of the session plus these milliseconds."""
        return later(newest_time(self._links.values), milliseconds)

    def head_id(self, head: Sequence[int]) -> str:
        """The id of the head's record to which the insertions link; empty without a head.

        That is the nearest kept ancestor of the removed record to which the tail links, else the head's last record.
        """
        if not head:
            return ""
        before, above = set(self.cut.before), self._links.ancestors(self._links.index.get(self.taken))
        return self._links.id(next((i for i in above if i in before), head[-1]))

    def gaps(self) -> Iterator[tuple[str, str]]:
        """The gaps in the tail's part of the chain from which records were removed.

        Yields for each gap the id of the removed record to which the staying record after it links, and the id of the
        staying record before it.
        """
        kept = [at for at, i in enumerate(self.chain) if i in self.after]
        for below, above in pairwise(kept):
            if above > below + 1:
                yield self._links.parent_id(self.chain[below]), self._links.id(self.chain[above])


class SessionDialect(RecordDialect):
    """Defaults for the dialects of session files."""

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """Empty by default: no record that stays repeats messages."""
        return frozenset()

    def counted_tokens(self, value: Value) -> int:
        """The size of the conversation in the counter of this record; 0 for a record without one."""
        return 0

    def counters(self, records: Sequence[Record], staying: Sequence[int]) -> Mapping[int, int]:
        """The last record with a counter, and its value; empty if there is none."""
        for i in reversed(staying):
            value = records[i].value
            if isinstance(value, dict) and (size := self.counted_tokens(value)):
                return {i: size}
        return {}

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The record unchanged: by default records have no counter."""
        return record.raw


def is_shown(message: Message) -> bool:
    """Whether a client sends this message."""
    return not message.is_meta and not message.superseded


def derived_uuid(seed: str, what: object) -> str:
    """A UUID for something new in a transcript, the same in every run; ``seed`` is the transcript's hash."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{seed} {what}"))


def derived_hex(seed: str, what: object, digits: int) -> str:
    """An id of this many hex digits for something new, the same in every run."""
    return hashlib.sha256(f"{seed} {what}".encode()).hexdigest()[:digits]


def derived_uuids(transcript: Transcript, insertions: Sequence[Insertion]) -> list[str]:
    """A UUID for each insertion."""
    return [derived_uuid(transcript.sha256, f"{i} {item.text}") for i, item in enumerate(insertions)]


def parsed(transcript: Transcript) -> list[Value]:
    """The values of the records, parsed anew with all their keys; an empty object for one that is not an object."""
    return [parse(record.raw) if isinstance(record.value, dict) else {} for record in transcript.records]


def covered(cut: InsertionPoint, count: int) -> list[int]:
    """The removed records before the tail, the last first; ``count`` is the number of all records."""
    before = set(cut.before)
    return [i for i in reversed(range(cut.tail_start(count))) if i not in before]


def insertion_time(values: Sequence[Value], cut: InsertionPoint) -> str:
    """The time of the last removed record before the tail that has one, else of a kept one near it, else `EPOCH`."""
    order = (*covered(cut, len(values)), *reversed(cut.before), *cut.after)
    return next(filter(None, (string(values[i].get("timestamp")) for i in order)), EPOCH)


def usage_of(value: Value) -> Mapping[str, Any]:
    """The ``usage`` of an answer; empty if it has none."""
    return object_of(at(value, ("message", "usage")))


def time_near(transcript: Transcript, cut: InsertionPoint) -> str:
    """The time of the last removed message that has one, else of a kept one; empty if none has."""
    kept = cut.kept
    removed = (i for i in reversed(range(len(transcript.records))) if i not in kept)
    times = (transcript.messages[i].timestamp for i in (*removed, *reversed(cut.before), *cut.after))
    return next(filter(None, times), "")


def newest_time(values: Sequence[Value]) -> str:
    """The latest time in a session; empty if it has none."""
    return max((string(value.get("timestamp")) for value in values), default="")


def later(timestamp: str, milliseconds: int) -> str:
    """An ISO 8601 time moved by milliseconds, in UTC; the text itself if it is not a time."""
    try:
        moment = datetime.fromisoformat(timestamp) + timedelta(milliseconds=milliseconds)
    except (ValueError, OverflowError):
        return timestamp
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def matched(keys: Sequence[str], held: Sequence[tuple[int, str]]) -> tuple[int, ...]:
    """For each item of a boundary, the record before it with the same key; -1 if there is none.

    ``held`` are the records with their keys. The items after the last one without a record are the tail and are matched
    from the end, the others from the start, since words like "Done." may occur often. Each record is matched once.
    """
    places: dict[str, deque[int]] = {}
    for i, key in held:
        places.setdefault(key, deque()).append(i)
    own = [n for n, key in enumerate(keys) if key not in places]
    tail_start = own[-1] + 1 if own else len(keys)
    found = [-1] * len(keys)
    for n in range(len(keys) - 1, tail_start - 1, -1):
        if places[keys[n]]:
            found[n] = places[keys[n]].pop()
    for n in range(tail_start):
        if places.get(keys[n]):
            found[n] = places[keys[n]].popleft()
    return tuple(found)
