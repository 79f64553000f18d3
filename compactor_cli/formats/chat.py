"""Messages with a role and a content, in the shapes of OpenAI, Anthropic, Bedrock, Kimi and their relatives.

One reader serves them all, because logs mix the shapes, and a message that was taken for the wrong dialect must still
be read. The dialects differ in how they are recognised and in how new messages are written.

New messages look like the file's own. Readers of data sets want one set of keys (Arrow adds nulls for missing ones,
some loaders refuse a file that holds two shapes), so a new message takes the keys that all messages of its role have,
with a value of its own, or with null if some of them have null there. Keys that describe a single speaker, such as
``name``, are not copied. Where user and assistant must alternate, as trainers and APIs demand, a short turn of the
other side is added next to a summary.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from compactor_cli.formats import contents, located
from compactor_cli.formats.client_signs import previous_summary, summary_of
from compactor_cli.formats.contents import CALL_LISTS, dumped, listed, result_text, string, text_key, time_of
from compactor_cli.formats.located import LocatedPart, RecordDialect, Value, derived_hex
from compactor_cli.formats.registry import Insertion, InsertionPoint, JsonPath, objects, of_words, pad_missing_results
from compactor_cli.model.transcript import Message, PreviousSummary, Record, Role, Text, ToolResult, Transcript

# smolagents writes the hyphen.
_CALL_ROLES = ("tool_call", "tool-call", "function_call")
ROLES = {
    **dict.fromkeys(("system", "developer"), Role.SYSTEM),
    **dict.fromkeys(("user", "human"), Role.USER),
    **dict.fromkeys(("assistant", "model", "ai", "gpt", *_CALL_ROLES), Role.ASSISTANT),
    **dict.fromkeys("tool function observation tool_response tool-response tool_result ipython".split(), Role.TOOL),
}
# Roles of bookkeeping among the messages: how a run of mini-swe-agent ended, notes of a platform.
_META_ROLES = frozenset({"exit", "session_meta", "info", "error", "warning"})
_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
_OPAQUE_KEYS = ("reasoning_details", "audio")
_ERROR_KEYS = ("is_error", "error")
_REASONING = frozenset({*_REASONING_KEYS, *_OPAQUE_KEYS})
# Keys next to the content that hold parts of the message.
_SIBLING_KEYS = frozenset({*_REASONING, "refusal", *CALL_LISTS, "function_call"})
# How many elements of an array are looked at to find one that is recognised.
_LOOKED_AT = 50

# Paths at which the document around the messages names the model.
ROW_MODELS: tuple[JsonPath, ...] = (("model",), ("body", "model"), ("params", "model"), ("request", "model"))


def is_chat(value: Any) -> bool:
    """Whether this is a message of this family at all."""
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return False
    return "content" in value or not _SIBLING_KEYS.isdisjoint(value)


def array_at(value: Any, paths: Sequence[JsonPath]) -> JsonPath | None:
    """The first of these paths at which there is an array of messages (an empty one counts), or None."""
    return located.array_path(value, paths, lambda found: isinstance(found, list) and (not found or _leads(found)))


def _leads(elements: Sequence[Any]) -> bool:
    """Whether an array looks like messages: its first object has a role, and one of the first elements is a message."""
    first = next((element for element in elements[:_LOOKED_AT] if isinstance(element, dict)), {})
    has_role = isinstance(first.get("role"), str) and "parts" not in first
    return has_role and any(map(is_chat, elements[:_LOOKED_AT]))


def read(value: Any) -> Message:
    """Read one message. An unknown role is taken for the name of one of several agents, so for an assistant."""
    role = _role(value)
    if role is Role.META:
        return located.META
    content = value.get("content")
    if (
        isinstance(content, str)
        and role is not Role.TOOL
        and value["role"] not in _CALL_ROLES
        and _SIBLING_KEYS.isdisjoint(value)
    ):
        # A fast path for messages that are only a text, as most are.
        words, summary = (Text(text=content),) if content else (), previous_summary(role, content)
        return Message(role=role, parts=words, timestamp=time_of(value.get("timestamp")), summary=summary)
    parts = located.parts_of(_pieces(value, role))
    summary = summary_of(role, parts)
    for block in listed(content):
        if isinstance(block, dict) and block.get("type") == "compaction":  # of the Anthropic API
            summary = PreviousSummary(origin="anthropic", text=string(block.get("content")))
            break
    role, time = contents.role_of(role, parts), time_of(value.get("timestamp"))
    return Message(role=role, parts=parts, timestamp=time, summary=summary)


def _role(value: Any) -> Role:
    if not is_chat(value):
        return Role.META
    name = value["role"]
    if role := ROLES.get(name) or ROLES.get(name.lower()):
        return role
    return Role.META if name in _META_ROLES or name.startswith("_") or not name else Role.ASSISTANT


def pieces(value: Any) -> list[LocatedPart]:
    """The parts of a message with the places of their texts: reasoning, content, refusal, calls."""
    role = _role(value)
    return [] if role is Role.META else _pieces(value, role)


def _pieces(value: Value, role: Role) -> list[LocatedPart]:
    content = value.get("content")
    if role is Role.TOOL:
        # If any block is a result, the blocks are the parts; else the whole content is one result.
        blocks = located.content(content, "content", read=located.any_block) if isinstance(content, list) else []
        has_results = any(isinstance(piece.part, ToolResult) for piece in blocks)
        return blocks if has_results else [LocatedPart(_result(value), (("content",),), contents.shortened_result)]
    if value["role"] in _CALL_ROLES:
        call = contents.named_call(result_text(content))
        inside = [LocatedPart(call, (("content",),), lambda old, text: contents.shortened_call(result_text(old), text))]
    else:
        inside = located.content(content, "content", read=located.any_block)
    found: list[LocatedPart] = []
    if not _REASONING.isdisjoint(value):
        # The reasoning next to the content, from the first key that has a text; else opaque content, by its size.
        texts = (value.get(key) for key in _REASONING_KEYS)
        if text := next((text for text in texts if text and isinstance(text, str)), ""):
            found.append(located.thinking(text))
        else:
            found += (located.media(key, opaque) for key in _OPAQUE_KEYS if (opaque := value.get(key)))
    found += inside
    if (refusal := value.get("refusal")) and isinstance(refusal, str):
        found.append(located.text(refusal, ("refusal",)))
    if not contents.has_calls(value):
        return found
    found += (located.any_call(call, key, i) for key in CALL_LISTS for i, call in enumerate(listed(value.get(key))))
    # The single call of messages from before 2023-11.
    if isinstance(value.get("function_call"), dict):
        found.append(located.any_call(value["function_call"], "function_call"))
    return found


def _result(value: Value) -> ToolResult:
    content = value.get("content")
    call_id = _first_string(value, "tool_call_id", "toolCallId", "id")
    name = _first_string(value, "name", "tool_name", "toolName")
    failed = any(value.get(key) not in (None, False, "") for key in _ERROR_KEYS if key in value)
    count = contents.media_count(content)
    return ToolResult(id=call_id, text=result_text(content), name=name, is_error=failed, media_count=count)


def _first_string(value: Value, *keys: str) -> str:
    return next((found for key in keys if isinstance(found := value.get(key), str)), "")


# Keys by which trainers leave a message out of the loss: neither summary nor acknowledgement is a target.
_UNTRAINED = {"weight": 0, "train": False, "loss": False}
_TIMES = frozenset({"timestamp", "created_at", "time", "turn_idx"})
_IDS = frozenset({"id", "uuid", "message_id"})
# Keys by which readers recognise the kind of a message. Copied if all messages of the role have the same value.
_KINDS = frozenset({"type", "object", "kind", "lang", "language"})


class TurnShape(NamedTuple):
    """The keys and names with which a dialect writes a message."""

    role_key: str  # of the speaker
    text_key: str  # of the text
    names: Mapping[Role, Sequence[str]]  # of the speakers, the usual name first


SHAPE = TurnShape("role", "content", {Role.USER: ("user",), Role.ASSISTANT: ("assistant",)})


def new_messages(
    transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], shape: TurnShape = SHAPE
) -> tuple[bytes, ...]:
    """One record for each insertion, in the style of the transcript's own messages."""
    neighbour = next((value for i in cut.near if isinstance(value := transcript.records[i].value, dict)), {})
    values: list[dict[str, Any]] = []
    for item in insertions:
        both = zip(transcript.records, transcript.messages, strict=True)
        spoken = [record.value for record, message in both if message.role is item.role and not message.calls]
        peers = [value for value in spoken if isinstance(value, dict) and shape.text_key in value]
        # What this speaker is called here; the usual name where the file has several.
        usual = shape.names[Role.ASSISTANT if item.role is Role.ASSISTANT else Role.USER]
        used = {value.get(shape.role_key) for value in peers}
        name = next((name for name in usual if name in used), usual[0])
        own: Value = _UNTRAINED | {shape.role_key: name, shape.text_key: _content(item.text, peers, shape)}
        new: dict[str, Any] = {}
        for key in _keys(peers, transcript, shape):
            if key in own:
                new[key] = own[key]
            elif key in _IDS:
                new[key] = derived_hex(transcript.sha256, item.text, 24)
            elif key in _TIMES:
                new[key] = neighbour.get(key)
            # A kind that all peers have; null where some of them have null.
            elif key in _KINDS and isinstance(kind := peers[0][key], str) and all(peer[key] == kind for peer in peers):
                new[key] = kind
            elif any(peer[key] is None for peer in peers):
                new[key] = None
        values.append(new)
    return dumped(transcript, values)


def _keys(peers: Sequence[Value], transcript: Transcript, shape: TurnShape) -> list[str]:
    """The keys of a new message: those that all peers have, and those of `_UNTRAINED` that any of them has."""
    if not peers:
        known = (shape.role_key, shape.text_key)
        first = next((record.value for record in transcript.records if isinstance(record.value, dict)), {})
        return [key for key in first if key in known] if all(key in first for key in known) else list(known)
    marks = [key for key in _UNTRAINED if any(key in peer for peer in peers)]
    common = [key for key in peers[0] if all(key in peer for peer in peers)]
    return common + [key for key in marks if key not in common]


def _content(text: str, peers: Sequence[Value], shape: TurnShape) -> Any:
    """The text as a string, or as a block if all peers write blocks."""
    held = [peer[shape.text_key] for peer in peers]
    if not held or not all(isinstance(content, list) and content for content in held):
        return text
    written = [block for content in held for block in content]
    if all(isinstance(block, str) for block in written):
        return [text]
    own = [block for block in written if isinstance(block, dict)]
    key = "value" if any(text_key(block) == "value" for block in own) else "text"
    return [{"type": "text", key: text}] if any("type" in block for block in own) else [{"text": text}]


# The assistant's turn between two turns of the user. It carries no information: nothing can be learnt from it.
BRIDGE = "Understood."


def alternating(transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[Insertion, ...]:
    """The insertions, changed so that the turns of user and assistant alternate.

    A short answer is added between two turns of the user's side, and an acknowledgement next to another answer is left
    out. Unchanged if the transcript itself does not alternate. Results of tools count as the user's side.
    """
    messages = transcript.messages
    if any(one is other for one, other in pairwise(_sides(messages))):
        return tuple(insertions)
    before = next(_sides(messages[i] for i in reversed(cut.before)), None)
    after = next(_sides(messages[i] for i in cut.after), None)
    answer, found = Insertion(role=Role.ASSISTANT, text=BRIDGE), list[Insertion]()
    for item in insertions:
        if item.role is not before:
            found.append(item)
        elif item.role is Role.USER:
            found += [answer, item]
        before = item.role
    if found and found[-1].role is after:
        found = [*found, answer] if after is Role.USER else found[:-1]
    return tuple(found)


def _sides(messages: Iterable[Message]) -> Iterator[Role]:
    """The side of each message, USER or ASSISTANT; bookkeeping and system prompts are left out."""
    roles = (message.role for message in messages if not message.superseded)
    return (Role.USER if role is Role.TOOL else role for role in roles if role not in (Role.META, Role.SYSTEM))


_ENVELOPE_KEYS = ("message", "msg", "data", "payload", "body", "entry", "record", "event")
_ENVELOPE_TIMES = ("timestamp", "ts", "time", "created_at", "createdAt")
_ENVELOPE_IDS = ("id", "uuid")


class Enveloped(RecordDialect):
    """The dialect of lines that wrap a message: ``{"ts", "message": {"role", "content"}}``, as many programs log it.

    The envelope is not sent to a model. The envelope of a new record has the times of a neighbour and the values that
    are the same in all records.
    """

    name = "enveloped"
    title = "Chat messages in envelopes"
    holds = of_words("request times metadata".split())
    models = (*((key, "model") for key in _ENVELOPE_KEYS), ("model",))

    def record_score(self, value: Any) -> int:
        """1 for a line that wraps a message, since no key is specific to a program; else 0."""
        return 1 if _inner_key(value) else 0

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; a line without one is META."""
        return pad_missing_results(tuple(map(self.read_one, records)))

    def read_one(self, record: Record) -> Message:
        """The message in one line, with the time of the envelope if it has none of its own."""
        found, value = read(_inner(record.value)), contents.object_of(record.value)
        times = (time_of(value.get(key)) for key in _ENVELOPE_TIMES)
        return replace(found, timestamp=found.timestamp or next(filter(None, times), ""))

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """New messages and envelopes in the style of the file's own."""
        records = tuple(replace(record, value=_inner(record.value)) for record in transcript.records)
        messages = new_messages(replace(transcript, records=records), cut, insertions)
        values = objects(transcript.records)
        own = [value for value in values if _inner_key(value)]
        near = next((values[i] for i in cut.near if _inner_key(values[i])), own[0])
        sealed: list[dict[str, Any]] = []
        for item, message in zip(insertions, map(json.loads, messages), strict=True):
            # An envelope with its keys in the order of the one near by.
            new: dict[str, Any] = {}
            for key, value in near.items():
                if key == _inner_key(near):
                    new[key] = message
                elif key in _ENVELOPE_IDS and isinstance(value, str):
                    new[key] = derived_hex(transcript.sha256, item.text, 24)
                elif key in _ENVELOPE_TIMES or all(key in other and other[key] == value for other in own):
                    new[key] = value
                elif all(other.get(key) == _inner(other)["role"] for other in own):
                    new[key] = message["role"]
            sealed.append(new)
        return dumped(transcript, sealed)


def _inner_key(value: Any) -> str:
    """The key that holds the message of a line; empty if there is none, or if the line is a message itself."""
    if not isinstance(value, dict) or "role" in value:
        return ""
    return next((key for key in _ENVELOPE_KEYS if is_chat(value.get(key))), "")


def _inner(value: Any) -> Any:
    return value[key] if (key := _inner_key(value)) else None


ENVELOPED = Enveloped(
    lambda value: [piece.below(key) for piece in pieces(value[key])] if (key := _inner_key(value)) else []
)
