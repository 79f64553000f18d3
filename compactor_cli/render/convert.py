"""Conversion: a transcript written in another dialect, as rows of columns, as a text to read, or in windows.

What another dialect cannot hold is counted by name.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Self

from compactor_cli.formats import conversation as conversations
from compactor_cli.formats.clients import sent
from compactor_cli.formats.contents import string
from compactor_cli.formats.conversation import IMAGES_BY_CONTENT, Conversation, Writing
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.registry import NAMES, Capabilities, all_dialects, get, objects, read_messages
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import InputError, InvariantError, UsageError
from compactor_cli.model.transcript import (
    Container,
    Media,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Transcript,
)
from compactor_cli.model.value import dataclass
from compactor_cli.plan.tokens import arguments_text
from compactor_cli.read.jsonl import read_records

_Place = tuple[int, int]


def to_conversation(transcript: Transcript) -> Conversation:
    """What the client would send, as messages that can be written in any dialect.

    Where a client spreads one message over several records, these are joined; each result stands after the message that
    asked for it; calls get new ids where theirs are missing or repeated. Calls and results without their other half are
    left out, except for calls in flight.
    """
    messages = list(_messages(transcript, sent(transcript)))
    system = conversations.system_of(transcript.row)
    if system and not any(message.role is Role.SYSTEM for message in messages):
        messages.insert(0, Message(role=Role.SYSTEM, parts=(Text(text=system),)))
    # The seed includes the place, so that a row that a dataset holds twice becomes two conversations.
    place = transcript.records[0].place if transcript.records and transcript.row is not None else None
    where = (place.line, place.row) if place else (1, 0)
    return Conversation(
        messages=tuple(messages),
        model=transcript.model,
        tools=conversations.tools_of(transcript.row),
        seed=transcript.sha256 if where == (1, 0) else f"{transcript.sha256} {where}",
        extra=extra_of(transcript.row),
    )


def extra_of(row: Any) -> Mapping[str, Any]:
    """The metadata that a row has next to its messages: plain values, and tables under the usual names."""
    items = row.items() if isinstance(row, dict) else ()
    plain = (str, int, float, type(None))
    return {k: v for k, v in items if k in _TABLES or (isinstance(v, plain) and k not in _OF_REQUESTS)}


# Where data sets keep metadata about a row.
_TABLES = frozenset({"metadata", "info", "extra", "tags", "meta"})
# Fields that are for a provider rather than about the conversation, or that are carried over by themselves.
_OF_REQUESTS = frozenset(
    "model modelId system instructions tools tool_choice max_tokens max_completion_tokens temperature top_p top_k n"
    " stream stop seed store anthropic_version parallel_tool_calls schema_version session_id session_start"
    " message_count user prompt input output object trajectory_format epoch agent environment".split()
)


def _ids(transcript: Transcript, shown: frozenset[int]) -> tuple[dict[_Place, str], dict[_Place, ToolResult]]:
    """The ids and the answers of calls, by (record, part); a call without an id here is left out."""
    grouping = group(transcript.messages)
    pairs = [pair for pair in grouping.pairs if pair.call.record in shown and pair.result.record in shown]
    results = {(pair.call.record, pair.call.part): pair.result for pair in pairs}
    running = {(half.record, half.part): half for half in grouping.in_flight if half.record in shown}
    used: set[str] = set()
    of_call: dict[_Place, str] = {}
    answers: dict[_Place, ToolResult] = {}
    for place in sorted({*results, *running}):
        call = transcript.messages[place[0]].parts[place[1]]
        name, wanted = (call.name, call.id) if isinstance(call, ToolCall) else ("", "")
        result = results.get(place)
        wanted = wanted or (result.id if result else "")
        own, number = wanted, len(of_call)
        while not own or own in used:
            own, number = f"call_{number}", number + 1
        used.add(own)
        of_call[place] = own
        part = transcript.messages[result.record].parts[result.part] if result else None
        if isinstance(part, ToolResult):
            answers[place] = replace(part, id=own, name=name or part.name)
    return of_call, answers


@dataclass(slots=True)
class _Step:
    """A message that is being assembled, and the results that will stand after it."""

    message: Message
    parts: list[Part] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)

    @property
    def calls(self) -> bool:
        return any(isinstance(part, ToolCall) for part in self.parts)


_ORDER: Mapping[type[Part], int] = {Thinking: 0, ToolCall: 2}


def _messages(transcript: Transcript, order: Sequence[int]) -> Iterator[Message]:
    """The messages of these records, each followed by the results that it asked for."""
    ids, answers = _ids(transcript, frozenset(order))
    steps: list[_Step] = []
    is_answered = False
    for i in order:
        message = transcript.messages[i]
        step = steps[-1] if steps and _goes_on(steps[-1], message, is_answered) else None
        for n, part in enumerate(conversations.with_images(message.parts, transcript.records[i].value)):
            if isinstance(part, ToolResult):
                is_answered = True
                step = None if step and step.calls else step
                continue
            if step is None:
                step = _Step(message)
                steps.append(step)
                is_answered = False
            if not isinstance(part, ToolCall):
                step.parts.append(part)
            elif own_id := ids.get((i, n)):
                answered = [answers[i, n]] if (i, n) in answers else []
                if step.message.role is Role.ASSISTANT:
                    step.parts.append(replace(part, id=own_id))
                    step.results += answered
                else:
                    # A simulated user may call tools, too, which no provider's API allows: the call becomes text.
                    step.parts.append(Text(text=f"{part.name}({conversations.arguments_json(part)})"))
                    step.parts += (Text(text=answer.text) for answer in answered)
    for step in steps:
        if step.parts:
            role = Role.USER if step.message.role is Role.TOOL else step.message.role
            # In the order of all APIs: thinking, words and images, calls.
            parts = tuple(sorted(step.parts, key=lambda part: _ORDER.get(type(part), 1)))
            yield replace(step.message, role=role, parts=parts, group="", superseded=False)
        if step.results:
            yield Message(role=Role.TOOL, parts=tuple(step.results), timestamp=string(step.message.timestamp))


def _goes_on(step: _Step, message: Message, is_answered: bool) -> bool:
    """Whether a message goes on the step before it: as its next block, as a parallel call, or after thinking alone."""
    if message.role is not Role.ASSISTANT or step.message.role is not Role.ASSISTANT:
        return False
    is_block = bool(message.group) and message.group == step.message.group
    is_parallel = step.calls and bool(message.calls) and not message.text and not is_answered
    return is_block or is_parallel or all(isinstance(part, Thinking) for part in step.parts)


OPAQUE = "opaque content"
IMAGES_IN_RESULTS = "images in results"
BOOKKEEPING = "bookkeeping records"
ORPHANS = "calls and results without their other half"
NOT_SENT = "messages that were no longer sent"
EMPTY = "conversations without messages"
# Counted over all records, sent or not.
_OF_RECORDS = (ORPHANS, NOT_SENT, BOOKKEEPING, NAMES[Capabilities.SIDECHAINS], NAMES[Capabilities.USAGE])
_USAGE_KEYS = frozenset({"usage", "usageMetadata", "usage_metadata", "token_count", "tokens", "metrics"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A transcript in another dialect."""

    output: bytes
    not_carried: Mapping[str, int]  # how much of it the output does not hold, by name


def writable() -> tuple[str, ...]:
    """The names of the dialects that can be written from nothing."""
    return tuple(dialect.name for dialect in all_dialects() if isinstance(dialect, Writing))


def check_writable(name: str) -> Writing:
    """The dialect of this name. Raises UsageError unless a conversation can be written in it."""
    dialect = get(name)
    if not isinstance(dialect, Writing):
        what = f"a session of the format {name} cannot be written from nothing"
        raise UsageError(what, next_step=f"these can: {', '.join((*writable(), *DOCUMENTS))}")
    return dialect


def convert(transcript: Transcript, name: str) -> Conversion:
    """The transcript in the dialect of this name: whole lines, in the order in which its client sends it.

    Guarantees: the output is recognised as that dialect, and holds no call without its result except those that the
    transcript ends with. Deterministic. Raises UsageError for a dialect that cannot be written.
    """
    dialect = check_writable(name)
    holds = get(name).holds & ~dialect.unwritten
    conversation, dropped = fitted(to_conversation(transcript), holds, by_content=name in IMAGES_BY_CONTENT)
    dropped.update(_left_out(transcript, holds))
    output = _lines(dialect.write(conversation))
    read = _read_as(name, output)
    if not read:
        # Keys of the row make it look like another format: leave them out to keep the conversation.
        dropped[NAMES[Capabilities.METADATA]] += len(conversation.extra)
        output = _lines(dialect.write(replace(conversation, extra={})))
        read = _read_as(name, output)
    if conversation.messages:
        if not read:
            # Without any call, a dialect that is recognised by its tags of calls looks like another: that is fine if
            # both are read as the same conversation.
            read = _opened(output, name)
            if [item.messages for item in _opened(output)] != [item.messages for item in read]:
                raise InvariantError(f"the output would not be read as {name}")
        grouping = group(read[0].messages)
        if grouping.orphan_calls or grouping.orphan_results:
            raise InvariantError("the output would hold a tool call without its result")
    elif read is None:
        # A format that is recognised by its messages cannot have a row without any.
        output, dropped[EMPTY] = b"", 1
    return Conversion(output=output, not_carried={what: count for what, count in dropped.items() if count})


def _left_out(transcript: Transcript, holds: Capabilities) -> dict[str, int]:
    """What a conversation lacks of its transcript, also token counters and unknown keys of the row."""
    messages, grouping = transcript.messages, group(transcript.messages)
    meta = sum(message.is_meta for message in messages)
    sidechains = sum(value.get("isSidechain") is True for value in objects(transcript.records))
    sidechains = sidechains if sidechains < len(messages) else 0
    row = transcript.row if Capabilities.METADATA in holds and isinstance(transcript.row, dict) else {}
    known = {"messages", "system", "tools", "model", *extra_of(row)}
    unknown = [value for key, value in row.items() if key not in known]
    return {
        ORPHANS: len(grouping.orphan_calls) + len(grouping.orphan_results),
        NOT_SENT: sum(message.superseded and not message.is_meta for message in messages),
        NAMES[Capabilities.SIDECHAINS]: sidechains,
        BOOKKEEPING: max(meta - sidechains, 0),
        NAMES[Capabilities.USAGE]: sum(_has_usage(record.value) for record in transcript.records),
        # Lists and objects are not counted: they may be the conversation itself.
        NAMES[Capabilities.METADATA]: sum(not isinstance(value, (list, dict)) for value in unknown),
    }


def not_carried_line(not_carried: Mapping[str, int], name: str) -> str:
    """What a conversion lost, in one line; empty if it lost nothing."""
    holds = get(name).holds
    unplaced = {NAMES[flag] for flag in NAMES if flag not in holds}
    cannot = [f"{what} {count:,}" for what, count in not_carried.items() if what in unplaced]
    others = [f"{what} {count:,}" for what, count in not_carried.items() if what not in unplaced]
    clauses = [f"{', '.join(cannot)}: {name} cannot hold them"] if cannot else []
    return "; ".join([*clauses, *([f"{', '.join(others)}: not carried over"] if others else [])])


def fitted(
    conversation: Conversation, holds: Capabilities, *, by_content: bool = False
) -> tuple[Conversation, Counter[str]]:
    """The conversation reduced to what these capabilities hold, and how much of everything else there was.

    ``by_content``: images are only held by their content, not by their address.
    """
    dropped: Counter[str] = Counter()
    messages = []
    for message in _sequential(conversation.messages, holds, dropped):
        if message.role is Role.SYSTEM and Capabilities.SYSTEM not in holds:
            dropped[NAMES[Capabilities.SYSTEM]] += 1
            continue
        parts = tuple(part for part in message.parts if _is_kept(part, message, holds, dropped, by_content))
        lost = {part.kind for part in message.parts if isinstance(part, Media)}
        if not parts and lost and message.role is Role.USER:
            parts = (Text(text=f"[{', '.join(sorted(lost))}]"),)
        if Capabilities.TIMES not in holds:
            dropped[NAMES[Capabilities.TIMES]] += bool(message.timestamp)
        if parts:
            messages.append(replace(message, parts=parts))
    kept = replace(conversation, messages=tuple(messages))
    if Capabilities.TOOLS not in holds:
        dropped[NAMES[Capabilities.TOOLS]] += len(conversation.tools)
        kept = replace(kept, tools=())
    if Capabilities.METADATA not in holds:
        dropped[NAMES[Capabilities.METADATA]] += len(conversation.extra)
        kept = replace(kept, extra={})
    if Capabilities.MODEL not in holds:
        dropped[NAMES[Capabilities.MODEL]] += bool(conversation.model)
        kept = replace(kept, model="")
    return kept, dropped


def _is_kept(part: Part, message: Message, holds: Capabilities, dropped: Counter[str], by_content: bool) -> bool:
    """Whether the part can be carried over; what is lost of it, or all of it, is counted in ``dropped``."""
    if isinstance(part, Text) and not part.text:
        return False
    lost = ""
    if isinstance(part, Text):
        lost = NAMES[Capabilities.WORDS] if message.calls and Capabilities.WORDS not in holds else ""
    elif isinstance(part, Thinking):
        lost = NAMES[Capabilities.THINKING] if Capabilities.THINKING not in holds else ""
    elif isinstance(part, Media):
        if not part.url or Capabilities.IMAGES not in holds or (by_content and not conversations.image_of(part)):
            lost = NAMES[Capabilities.IMAGES] if conversations.is_image(part) else OPAQUE
    elif isinstance(part, ToolResult):
        dropped[IMAGES_IN_RESULTS] += part.media_count
        dropped[NAMES[Capabilities.ERRORS]] += part.is_error and Capabilities.ERRORS not in holds
    elif Capabilities.IDS not in holds:
        dropped[NAMES[Capabilities.IDS]] += bool(part.id)
    if lost:
        dropped[lost] += 1
    return not lost


def _sequential(messages: Iterable[Message], holds: Capabilities, dropped: Counter[str]) -> Iterator[Message]:
    """The messages; where one can only hold a single call, parallel calls follow one another, each with its result."""
    calling: Message | None = None
    for message in messages:
        if calling is not None:
            answers = {result.id: result for result in message.results}
            yield from _one_by_one(calling, answers)
            calling = None
            if answers:
                continue
        if len(message.calls) > 1 and Capabilities.SEVERAL not in holds:
            dropped[NAMES[Capabilities.SEVERAL]] += len(message.calls)
            calling = message
        else:
            yield message
    if calling is not None:
        yield from _one_by_one(calling, {})


def _one_by_one(calling: Message, answers: Mapping[str, ToolResult]) -> Iterator[Message]:
    before = tuple(part for part in calling.parts if not isinstance(part, ToolCall))
    for call in calling.calls:
        yield replace(calling, parts=(*before, call))
        before = ()
        if call.id in answers:
            yield Message(role=Role.TOOL, parts=(answers[call.id],), timestamp=calling.timestamp)


def _has_usage(value: Any, depth: int = 3) -> bool:
    if not isinstance(value, dict) or not depth:
        return False
    if any(value.get(key) for key in _USAGE_KEYS):
        return True
    return any(_has_usage(value.get(key), depth - 1) for key in ("message", "payload", "info", "response_metadata"))


# Made once, as `json.dumps` makes an encoder for each call.
_ENCODED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _lines(values: Iterable[Any]) -> bytes:
    return b"".join(_ENCODED(value).encode() + b"\n" for value in values)


def _read_as(name: str, output: bytes) -> list[Transcript] | None:
    """The transcripts that the output is read as; empty if they are of another dialect, None if of none at all."""
    try:
        read = _opened(output)
    except InputError:
        return None
    return read if all(item.dialect == name for item in read) else []


def _opened(output: bytes, name: str = "") -> list[Transcript]:
    return list(open_transcripts(read_records(io.BytesIO(output), "converted"), dialect=name))


# The keys under which rows hold messages.
_CONVERSATIONS = ("messages", "conversations", "prompt", "completion", "chosen", "rejected")
_ALWAYS: Mapping[str, Any] = {"content": "", "tool_calls": [], "tool_call_id": ""}
_ARGUMENTS = ("arguments", "args", "input")


def as_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as Arrow and its loaders need it: all rows with the same keys, each key with one type.

    Arrow unites the keys of all objects in a column and fills missing ones with null: schemas of tools and arguments of
    calls would come out changed, and a list in one row with a null in another is an error. Therefore ``tools``,
    arguments and every other object become JSON strings, and all messages have the same keys.
    """
    found = {
        key: [_message(item) for item in value] if key in _CONVERSATIONS and isinstance(value, list) else _cell(value)
        for key, value in row.items()
    }
    return {**found, "tools": _text(row.get("tools") or [])}


def _message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    cells = {key: _cell(value) for key, value in message.items()}
    if "tool_calls" in message:
        calls = message["tool_calls"]
        cells["tool_calls"] = [_call(call) for call in calls] if isinstance(calls, list) else []
    missing = {key: value for key, value in _ALWAYS.items() if "role" in message and cells.get(key) is None}
    return {**cells, **missing}


def _call(call: Any) -> Any:
    """The call with its arguments, in ``function`` or next to its id, as a JSON string."""
    if not isinstance(call, dict):
        return call
    inner = {"function": _call(call["function"])} if isinstance(call.get("function"), dict) else {}
    texts = {key: _text(call[key]) for key in _ARGUMENTS if key in call}
    return {**call, **inner, **texts}


def _cell(value: Any) -> Any:
    """The value; an object, or a list with objects or lists in it, as a JSON string."""
    is_nested = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, dict | list) for v in value))
    return _text(value) if is_nested else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# What ``--to`` takes besides the names of dialects: texts to read, by their markup.
DOCUMENTS = MARKDOWN, TEXT = "markdown", "text"


def document(transcript: Transcript, markup: str) -> bytes:
    """The transcript as a document in UTF-8 that ends with a line feed; empty for an empty transcript.

    It holds what the client would send, in that order: words, thinking, calls with their arguments, results; for images
    and files only a note that there is one. It cannot be read back.
    """
    is_markdown = markup == MARKDOWN
    head = "## {}\n\n" if is_markdown else "{}:\n"
    blocks = []
    for i in sent(transcript):
        message = transcript.messages[i]
        body = "\n\n".join(filter(None, _marked_up(message, is_markdown)))
        if body:
            blocks.append((head.format(message.role.value) + body).encode("utf-8", "replace"))
    return b"\n\n".join(blocks) + b"\n" if blocks else b""


def _marked_up(message: Message, is_markdown: bool) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text.strip()
        elif isinstance(part, Thinking):
            text = part.text.strip()
            quoted = (f"> {line}".rstrip() for line in text.splitlines())
            yield "\n".join(quoted) if is_markdown else f"(thinking) {text}"
        elif isinstance(part, ToolCall):
            text = arguments_text(part)
            yield f"**{part.name}**\n{_fenced(text, 'json')}" if is_markdown else f"{part.name} {text}"
        elif isinstance(part, ToolResult):
            media = f"\n({part.media_count} images or files)" if part.media_count else ""
            yield (_fenced(part.text) if is_markdown else part.text.rstrip()) + media
        elif isinstance(part, Media):
            yield f"({part.kind})"


def _fenced(text: str, language: str = "") -> str:
    """The text in a fence that is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputShape:
    """The form in which every output is written."""

    dialect: str = ""  # the name of a dialect or a document; empty: each transcript's own
    is_arrow: bool = False  # rows hold objects as JSON strings, see `as_columns`
    is_split: bool = False  # what a model was shown before each boundary, and after the last, is a row of its own

    @classmethod
    def checked(cls, *, dialect: str, is_arrow: bool, is_split: bool) -> Self:
        """A shape that can be written. Raises UsageError for a dialect or a combination that cannot."""
        if dialect in DOCUMENTS and (is_arrow or is_split):
            raise UsageError(f"{dialect} has no rows", next_step="leave arrow and split-at-boundaries out")
        if dialect and dialect not in DOCUMENTS:
            check_writable(dialect)
        return cls(dialect=dialect, is_arrow=is_arrow, is_split=is_split)

    @property
    def is_document(self) -> bool:
        """Whether the output is a text to read, whose size is that of the text rather than of messages."""
        return self.dialect in DOCUMENTS

    def written(self, transcript: Transcript) -> Conversion:
        """The transcript in this shape. Raises InputError if it would have to be a row and is not one."""
        if self.is_document:
            return Conversion(output=document(transcript, self.dialect), not_carried={})
        if self.dialect:
            written = convert(transcript, self.dialect)
        elif transcript.frame.container is Container.ARRAY:
            written = Conversion(output=transcript.source(), not_carried={})
        else:
            raise InputError("is a session, and no row of a dataset", next_step="name a format for rows with --to")
        if not self.is_arrow:
            return written
        try:
            rows = [json.loads(line) for line in written.output.splitlines() if line.strip()]
        except ValueError as error:
            raise InputError("is not a row on a line of its own", next_step="name a format with --to") from error
        values = (as_columns(row) if isinstance(row, dict) else row for row in rows)
        lines = (json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)
        return replace(written, output=b"".join(lines))


def windows(transcript: Transcript) -> tuple[Transcript, ...]:
    """The session as it was before each boundary in it, then as it is; only the latter if it has no boundary.

    A window is left out if the next one holds all of it: its boundary took nothing away.
    """
    if transcript.frame.container is Container.ARRAY:
        return (transcript,)
    dialect = get(transcript.dialect)
    stages = []
    for i, message in enumerate(transcript.messages):
        # Where the boundary begins: at its summary, or at the client's mark right before it.
        end = i if message.summary else 0
        while end and (before := transcript.messages[end - 1]).is_meta and before.superseded:
            end -= 1
        if not end:
            continue
        records = transcript.records[:end]
        digest = hashlib.sha256(b"".join(record.raw + record.ending for record in records)).hexdigest()
        messages = read_messages(dialect, records, transcript.row)
        stages.append(replace(transcript, records=records, messages=messages, sha256=digest))
    later = (*stages[1:], transcript)[: len(stages)]
    own = [stage for stage, following in zip(stages, later, strict=True) if {*sent(stage)} - {*sent(following)}]
    return (*own, transcript)


def not_carried_by_all(stages: Sequence[Transcript], not_carried: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """What no row of these windows of a session holds, from what each window's row does not hold.

    A later window has all records of earlier ones, so what is counted over records counts once, and records that an
    earlier row holds are not lost.
    """
    lost = Counter(not_carried[-1])
    for earlier in not_carried[:-1]:
        lost.update({what: count for what, count in earlier.items() if what not in _OF_RECORDS})
    held = {i for stage in stages[:-1] for i in sent(stage) if stages[-1].messages[i].superseded}
    lost[NOT_SENT] -= len(held)
    return dict(+lost)
