"""Frameworks: conversations as LangChain, Inspect and Letta dump them.

LangChain messages: plain (``{"type": "human", "content"}``), as ``{"type", "data"}``, or serialised
(``{"lc": 1, "type": "constructor", "id": [..., "HumanMessage"], "kwargs"}``). A call stands in ``tool_calls``, and
again in the provider's own shape in the content and in ``additional_kwargs``: it is read once and shortened everywhere.

Inspect samples: ``messages`` of a sample, alone in a file or among the ``samples`` of a log. Long texts may stand in
the sample's ``attachments``; they are read where they are referred to. Tools that ran at the provider's are one block
with arguments and result. Events repeat the messages, so a text that is removed from these is also removed from the
events and the attachments.

Letta agent files (``.af``): ``messages`` of an agent, alone or among the ``agents`` of a file. The model is shown the
messages in context (``in_context_message_indices``, ``in_context_message_ids``); these lists are adapted to the
messages that stay. In older files, OpenAI messages stand next to the state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats import chat, contents, located
from compactor_cli.formats.client_signs import summary_of
from compactor_cli.formats.contents import LEFT_OUT, ROLES, dumped, gone_lines, listed, role_of, string, with_key
from compactor_cli.formats.conversation import NEVER_WRITTEN, Conversation, openai_content, thinking_of
from compactor_cli.formats.located import LocatedPart, RecordDialect, at, derived_hex, derived_uuid, like_keys, parts_of
from compactor_cli.formats.registry import Insertion, InsertionPoint, JsonPath, objects, of_words
from compactor_cli.model.transcript import Message, PreviousSummary, Record, Role, Text, Transcript, text_of

_CLASSES = {
    "Human": ("human", Role.USER),
    "AI": ("ai", Role.ASSISTANT),
    "System": ("system", Role.SYSTEM),
    "Tool": ("tool", Role.TOOL),
    "Function": ("function", Role.TOOL),
    "Chat": ("chat", Role.USER),
}
_LANGCHAIN_ROLES = dict(_CLASSES.values())
_CHAT_ROLES = {"user": Role.USER, "human": Role.USER, "system": Role.SYSTEM}
_LANGCHAIN_OWN_KEYS = frozenset({"additional_kwargs", "response_metadata", "usage_metadata", "invalid_tool_calls"})
_CALL_KINDS = frozenset({"tool_use", "tool_call", "function_call"})
_CALL_LISTS = ("tool_calls", "invalid_tool_calls")
# The mark and the openings of summaries by LangChain itself.
_SUMMARY_MARK = {"lc_source": "summarization"}
_SUMMARY_OPENINGS = ("Here is a summary of the conversation to date:", "A condensed summary follows:")
_HOLDERS = ("values", "channel_values", "state", "input", "inputs", "outputs")
_CONSTRUCTOR = ["langchain", "schema", "messages"]


class LangChain(RecordDialect):
    """The dialect of LangChain and LangGraph."""

    name = "langchain"
    title = "LangChain messages"
    holds = of_words("chat errors thinking usage model metadata".split())
    unwritten = NEVER_WRITTEN
    paths = (("messages",), *((holder, "messages") for holder in _HOLDERS))
    models = tuple(
        (*inside, "response_metadata", key)
        for inside in (("kwargs",), ("data",), ())
        for key in ("model_name", "model")
    )

    def record_score(self, value: Any) -> int:
        """3 for a serialised message or one with keys that only LangChain has; 2 for a plain one."""
        if not _kind_of(value):
            return 0
        return 3 if _inner_place(value) or not _LANGCHAIN_OWN_KEYS.isdisjoint(value) else 2

    def message(self, value: Any) -> Message:
        """Read one message. A user's message that only brings results becomes a tool's."""
        kind = _kind_of(value)
        if not kind:
            return located.META
        inner = at(value, _inner_place(value))
        role = _CHAT_ROLES.get(string(inner.get("role")), Role.ASSISTANT) if kind == "chat" else _LANGCHAIN_ROLES[kind]
        found = parts_of(_langchain_pieces(value))
        role = role_of(role, found)
        summary = summary_of(role, found)
        if summary is None and at(inner, ("additional_kwargs", "lc_source")) == "summarization":
            text = text_of(found)
            for opening in _SUMMARY_OPENINGS:
                text = text.partition(opening)[2] or text
            summary = PreviousSummary(origin="langchain", text=text.strip())
        return Message(role=role, parts=found, summary=summary)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages serialised like the file's own, the summary with LangChain's own mark."""
        values = [record.value for record in transcript.records if _kind_of(record.value)]
        written = []
        for item in insertions:
            kind = "ai" if item.role is Role.ASSISTANT else "human"
            like = next((value for value in values if _kind_of(value) == kind), values[0] if values else {})
            place = _inner_place(like)
            marks = {"additional_kwargs": dict(_SUMMARY_MARK)} if item.is_summary else {}
            own = {"content": item.text, "type": kind, "id": derived_uuid(transcript.sha256, item.text), **marks}
            message = like_keys(own, at(like, place))
            if place == ("data",):
                message = like_keys({"type": kind, "data": message}, like)
            elif place == ("kwargs",):
                names = like.get("id") if _kind_of(like) == kind else None
                class_name = "AIMessage" if kind == "ai" else "HumanMessage"
                names = [*names[:-1], class_name] if isinstance(names, list) else [*_CONSTRUCTOR, class_name]
                message = like_keys({"lc": 1, "type": "constructor", "id": names, "kwargs": message}, like)
            written.append(message)
        return dumped(transcript, written)

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A state with plain messages, their calls in ``tool_calls``."""
        lines: list[dict[str, Any]] = []
        for message in conversation.messages:
            for result in message.results:
                own = {"type": "tool", "content": result.text, "tool_call_id": result.id, "name": result.name}
                lines.append({**own, "status": "error" if result.is_error else "success", "additional_kwargs": {}})
            if message.role is Role.TOOL:
                continue
            kind = next(name for name, role in _LANGCHAIN_ROLES.items() if role is message.role)
            thought = thinking_of(message)
            kwargs = {"reasoning_content": thought} if thought else dict(_SUMMARY_MARK) if message.summary else {}
            line: dict[str, Any] = {"type": kind, "content": openai_content(message) or "", "additional_kwargs": kwargs}
            if message.role is Role.ASSISTANT:
                line["response_metadata"] = {"model_name": conversation.model} if conversation.model else {}
                for key, is_odd in zip(_CALL_LISTS, (False, True), strict=True):
                    calls = [call for call in message.calls if isinstance(call.arguments, str) is is_odd]
                    own = {"type": key.removesuffix("s")}
                    line[key] = [{"name": call.name, "args": call.arguments, "id": call.id, **own} for call in calls]
            lines.append(line)
        return ({**conversation.extra, "messages": lines},)


def _kind_of(value: Any) -> str:
    """The type of a message (``human``, ``ai`` …), whatever the shape; empty for anything else."""
    if not isinstance(value, dict) or "role" in value:
        return ""
    if _inner_place(value) == ("kwargs",):
        names = value.get("id")
        return _of_class(string(names[-1])) if isinstance(names, list) and names else ""
    inner = value.get("data", value)
    kind = string(value.get("type"))
    kind = _of_class(kind) or kind
    return kind if kind in _LANGCHAIN_ROLES and isinstance(inner, dict) and "content" in inner else ""


def _of_class(name: str) -> str:
    """``HumanMessage`` and ``HumanMessageChunk`` are ``human``."""
    return _CLASSES.get(name.partition("Message")[0], ("",))[0] if "Message" in name else ""


def _inner_place(value: Any) -> JsonPath:
    """The path of the message's own keys: ``kwargs``, ``data``, or the value itself."""
    if not isinstance(value, dict):
        return ()
    if value.get("lc") is not None and isinstance(value.get("kwargs"), dict):
        return ("kwargs",)
    return ("data",) if isinstance(value.get("data"), dict) else ()


def _langchain_pieces(value: Any) -> list[LocatedPart]:
    """The parts of a message with the places of their texts: reasoning, content, calls."""
    kind = _kind_of(value)
    if not kind:
        return []
    place = _inner_place(value)
    inner = at(value, place)
    if _LANGCHAIN_ROLES[kind] is Role.TOOL:
        failed = inner.get("status") == "error"
        content, call_id, name = (inner.get(key) for key in ("content", "tool_call_id", "name"))
        return [located.result(content, (*place, "content"), call_id=call_id, name=name, is_error=failed)]
    reasoning = at(inner, ("additional_kwargs", "reasoning_content"))
    found = [located.thinking(reasoning)] if isinstance(reasoning, str) and reasoning else []
    content = inner.get("content")
    read = located.content(content, *place, "content", read=_langchain_block)
    if isinstance(content, list):
        # Without the calls that ``tool_calls`` repeats.
        known_ids = {_id(call) for key in _CALL_LISTS for call in listed(inner.get(key))}
        both = zip(content, read, strict=True)
        read = [piece for block, piece in both if not (_is_call(block) and _id(block) in known_ids)]
    return [*found, *read, *_langchain_calls(inner, place)]


def _langchain_block(block: Any) -> LocatedPart:
    if isinstance(block, dict) and block.get("type") == "reasoning":
        summaries = [string(item.get("text")) for item in listed(block.get("summary")) if isinstance(item, dict)]
        return located.thinking(string(block.get("reasoning")) or "\n".join(summaries))
    if _is_call(block):
        return located.any_call(block)
    return located.any_block(block)


def _langchain_calls(inner: Mapping[str, Any], place: JsonPath) -> list[LocatedPart]:
    """The calls in LangChain's own lists with the places of their copies; if there are none, those of the provider."""
    raw: JsonPath = ("additional_kwargs", "tool_calls")
    own = [piece for key in _CALL_LISTS for piece in _listed_calls(inner, place, (key,))]
    if not own:
        return [piece for _, piece in _listed_calls(inner, place, raw)]
    # Copies stand in the content and, as the provider wrote them, in ``additional_kwargs``.
    copies = [copy for where in (("content",), raw) for copy in _listed_calls(inner, place, where)]
    found = []
    for call_id, piece in own:
        again = (at for copy_id, copy in copies if call_id and copy_id == call_id for at in copy.places)
        found.append(piece._replace(places=(*piece.places, *again)))
    return found


def _listed_calls(inner: Mapping[str, Any], place: JsonPath, where: JsonPath) -> list[tuple[str, LocatedPart]]:
    """The calls that are listed there, each with its id."""
    calls = enumerate(listed(at(inner, where)))
    return [(_id(call), located.any_call(call, *place, *where, i)) for i, call in calls]


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and string(block.get("type")) in _CALL_KINDS


def _id(call: Any) -> str:
    return string(call.get("id") or call.get("call_id")) if isinstance(call, dict) else ""


LANGCHAIN = LangChain(_langchain_pieces)


_ATTACHED = "attachment://"
_REFERENCE = re.compile(rb"attachment://([0-9a-f]+)")
# The tags around Inspect's own summaries.
_OPENING, _CLOSING = "<previous_summary>", "</previous_summary>"


class InspectAI(RecordDialect):
    """The dialect of Inspect's samples."""

    name = "inspect"
    title = "Inspect sample"
    holds = of_words("chat errors thinking model summaries metadata".split())
    models = (("model",),)
    row_models = (("output", "model"),)
    row_score = 3

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of a sample; ``samples`` of a log that has none."""
        if not isinstance(value, dict):
            return None
        if value.get("samples") == [] and isinstance(value.get("eval"), dict):
            return ("samples",)
        is_sample = "epoch" in value and isinstance(value.get("messages"), list)
        return ("messages",) if is_sample else None

    def record_score(self, value: Any) -> int:
        """2 for a message with a ``source``, or with the ``function`` of a result."""
        is_result = value.get("role") == "tool" and isinstance(value.get("function"), str)
        is_marked = is_result or value.get("source") in ("input", "generate", "operator")
        return 2 if is_marked and _is_inspect_message(value) else 0

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record."""
        messages = []
        for value in (record.value for record in records):
            found = parts_of(_inspect_pieces(value, row))
            role = ROLES[value["role"]] if _is_inspect_message(value) else Role.META
            summary, metadata = summary_of(role, found), at(value, ("metadata",))
            if summary is None and role is Role.USER and isinstance(metadata, dict) and "summary" in metadata:
                text = text_of(found)
                inner = text.partition(_OPENING)[2].rpartition(_CLOSING)[0] or text
                summary = PreviousSummary(origin="inspect", text=inner.strip())
            messages.append(Message(role=role, parts=found, summary=summary))
        return tuple(messages)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages, with ids if the file has them, the summary with Inspect's own mark."""
        values = [record.value for record in transcript.records if _is_inspect_message(record.value)]
        messages = []
        for item in insertions:
            like = next((value for value in values if value["role"] == item.role.value), values[0] if values else {})
            own_id = {"id": derived_hex(transcript.sha256, item.text, 22)} if "id" in like else {}
            mark = {"metadata": {"summary": True}} if item.is_summary else {}
            messages.append(like_keys({**own_id, "content": item.text, "role": item.role.value, **mark}, like))
        return dumped(transcript, messages)

    def settle(self, source: Transcript, composed: Transcript) -> Transcript:
        """Remove from events and attachments what was removed from the messages, and empty unused attachments."""
        row = contents.object_of(source.row)
        gone = gone_lines(source, composed)
        unused = _attachments(source) - _attachments(composed)
        frame = composed.frame
        for key in ("events", "attachments"):
            old = row.get(key)
            new = contents.scrubbed(old, gone)
            if key == "attachments" and isinstance(new, dict):
                new |= dict.fromkeys(unused & new.keys(), LEFT_OUT)
            frame = with_key(frame, key, new, old) if new != old else frame
        return replace(composed, frame=frame)


def _attachments(transcript: Transcript) -> frozenset[str]:
    found = (reference for record in transcript.records for reference in _REFERENCE.findall(record.raw))
    return frozenset(reference.decode() for reference in found)


def _is_inspect_message(value: Any) -> bool:
    has_content = isinstance(value, dict) and ("content" in value or "tool_calls" in value)
    return has_content and string(value.get("role")) in ROLES


def _inspect_pieces(value: Any, row: Any = None) -> list[LocatedPart]:
    """The parts of a message with the places of their texts. ``row`` holds the attachments."""
    if not _is_inspect_message(value):
        return []
    content = value.get("content")
    if value["role"] == "tool":
        error, words = value.get("error"), _inspect_text(content, row) if isinstance(content, str) else content
        place: JsonPath = ("content",)
        if not words and isinstance(at(error, ("message",)), str):
            # For an error without a content, the model is shown the error's message.
            words, place = value["error"]["message"], ("error", "message")
        call_id, name = value.get("tool_call_id"), value.get("function")
        return [located.result(words, place, call_id=call_id, name=name, is_error=bool(error))]
    found: list[LocatedPart] = []
    if isinstance(content, str) and content:
        found.append(located.text(_inspect_text(content, row), ("content",)))
    for i, block in enumerate(listed(content)):
        kind = at(block, ("type",))
        if kind == "reasoning":
            found.append(located.thinking(string(block.get("reasoning")) or block.get("summary")))
        elif kind == "tool_use":
            ran, failed, call_id, name = (block.get(key) for key in ("result", "error", "id", "name"))
            place = ("content", i, "result")
            answer = located.result(string(ran), place, call_id=call_id, name=name, is_error=bool(failed))
            found.append(LocatedPart(located.call(block, "arguments").part))
            found.append(answer if isinstance(ran, str) else LocatedPart(answer.part))
        else:
            piece = located.block(block).below("content", i)
            words = piece.part
            text = Text(text=_inspect_text(words.text, row)) if isinstance(words, Text) else words
            found.append(piece._replace(part=text))
    found += (located.any_call(call, "tool_calls", i) for i, call in enumerate(listed(value.get("tool_calls"))))
    return found


def _inspect_text(text: str, row: Any) -> str:
    """The text, or the attachment to which it refers."""
    found = at(row, ("attachments", text.removeprefix(_ATTACHED))) if text.startswith(_ATTACHED) else None
    return found if isinstance(found, str) else text


INSPECT = InspectAI(_inspect_pieces)


_INDICES, _IDS = "in_context_message_indices", "in_context_message_ids"
_ROW_KEYS = (_INDICES, _IDS, "messages_total")
_LETTA_OWN_KEYS = frozenset({"tool_returns", "group_id"})
_KEPT_NULL = ("tool_call_id", "name")
_EMPTY_LISTS = ("tool_calls", "tool_returns")
_COPIED = ("created_at", "updated_at", "date", "group_id", "model", "agent_id", "type")
_WRITTEN_KEYS = frozenset({"role", "content", "id", *_KEPT_NULL, *_EMPTY_LISTS, *_COPIED})
# The opening of Letta's own summaries, within the JSON of such messages.
_NATIVE = "The following is a summary of the previous"


class Letta(RecordDialect):
    """The dialect of Letta's agent files."""

    name = "letta"
    title = "Letta agent file"
    holds = of_words("chat errors times tools model metadata".split())
    row_score = 3

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of an agent."""
        is_agent = isinstance(value, dict) and any(key in value for key in _ROW_KEYS)
        return chat.array_at(value, (("messages",),)) if is_agent else None

    def record_score(self, value: Any) -> int:
        """3 for a message with ``tool_returns`` and a group; 2 for one of them."""
        if not chat.is_chat(value):
            return 0
        return 3 if value.keys() >= _LETTA_OWN_KEYS else 2 * (not _LETTA_OWN_KEYS.isdisjoint(value))

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; what is not in context is ``superseded``."""
        shown = _in_context(records, row)
        messages = []
        for i, record in enumerate(records):
            message = replace(chat.read(record.value), timestamp=string(at(record.value, ("created_at",))))
            if message.role is Role.USER and not message.summary and _NATIVE in message.text:
                message = replace(message, summary=PreviousSummary(origin="letta", text=message.text))
            if i not in shown and not message.is_meta:
                message = replace(message, superseded=True)
            messages.append(message)
        return tuple(messages)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the agent is configured with, else the last message's."""
        messages = (at(record.value, ("model",)) for record in reversed(records))
        names = (at(row, ("llm_config", "model")), at(row, ("model",)), *messages)
        return located.first_string(names)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with all keys of their neighbours, which the importer requires."""
        values = objects(transcript.records)
        near: Mapping[str, Any] = next((values[i] for i in cut.near if values[i]), {})
        has_blocks, messages = isinstance(near.get("content"), list), []
        for item in insertions:
            own: dict[str, Any] = dict.fromkeys(_KEPT_NULL) | {key: [] for key in _EMPTY_LISTS}
            own["content"] = [{"type": "text", "text": item.text}] if has_blocks else item.text
            own |= {"role": item.role.value, "id": f"message-{derived_hex(transcript.sha256, item.text, 32)}"}
            keys = (key for key in {"role": "", "content": "", **near} if key in _WRITTEN_KEYS)
            messages.append({key: own.get(key, near.get(key)) for key in keys})
        return dumped(transcript, messages)

    def settle(self, source: Transcript, composed: Transcript) -> Transcript:
        """Adapt the lists of messages in context, and their total, to the new and the removed messages."""
        if not isinstance(source.row, dict):
            return composed
        shown = _in_context(source.records, source.row)
        hidden = {record.raw for i, record in enumerate(source.records) if i not in shown}
        staying = [i for i, record in enumerate(composed.records) if record.raw not in hidden]
        lists: dict[str, Any] = {_INDICES: staying, "messages_total": len(composed.records)}
        lists[_IDS] = [string(at(composed.records[i].value, ("id",))) for i in staying]
        frame, row = composed.frame, dict(source.row)
        for key in (key for key in lists if key in row):
            frame = with_key(frame, key, lists[key])
            row[key] = lists[key]
        return replace(composed, frame=frame, row=row)


def _in_context(records: Sequence[Record], row: Any) -> frozenset[int]:
    """The indices of the messages that the model is shown; all if the row has no list of them."""
    every = frozenset(range(len(records)))
    indices, ids = at(row, (_INDICES,)), at(row, (_IDS,))
    if isinstance(indices, list) and indices:
        return every & frozenset(index for index in indices if isinstance(index, int))
    if isinstance(ids, list) and ids:
        wanted = {own_id for own_id in ids if isinstance(own_id, str)}
        return frozenset(i for i, record in enumerate(records) if string(at(record.value, ("id",))) in wanted) or every
    return every


LETTA = Letta(chat.pieces)
