"""LangChain messages: plain (``{"type": "human", "content"}``), as ``{"type", "data"}``, or serialised
(``{"lc": 1, "type": "constructor", "id": [..., "HumanMessage"], "kwargs"}``).

A call stands in ``tool_calls``, and again in the provider's own shape in the content and in
``additional_kwargs``: it is read once and shortened everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compactor_cli.formats import located
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath, of_words
from compactor_cli.formats.client_signs import summary_of
from compactor_cli.formats.contents import listed, role_of, string
from compactor_cli.formats.conversation import NEVER_WRITTEN, Conversation, openai_content, thinking_of
from compactor_cli.formats.jsontext import dumped
from compactor_cli.formats.located import LocatedPart, RecordDialect, at, like_keys, parts_of
from compactor_cli.formats.sessions import derived_uuid
from compactor_cli.model.transcript import Message, PreviousSummary, Role, ToolCall, Transcript, text_of

_CLASSES = {
    "Human": ("human", Role.USER),
    "AI": ("ai", Role.ASSISTANT),
    "System": ("system", Role.SYSTEM),
    "Tool": ("tool", Role.TOOL),
    "Function": ("function", Role.TOOL),
    "Chat": ("chat", Role.USER),
}
_ROLES = dict(_CLASSES.values())
_CHAT_ROLES = {"user": Role.USER, "human": Role.USER, "system": Role.SYSTEM}
_OWN_KEYS = frozenset({"additional_kwargs", "response_metadata", "usage_metadata", "invalid_tool_calls"})
_CALL_KINDS = frozenset({"tool_use", "tool_call", "function_call"})
_CALL_LISTS = ("tool_calls", "invalid_tool_calls")
# How LangChain's own summarisation marks its message.
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
        return 3 if _inner_place(value) or not _OWN_KEYS.isdisjoint(value) else 2

    def message(self, value: Any) -> Message:
        """What a message says; one that only brings results is a tool's."""
        kind = _kind_of(value)
        if not kind:
            return Message(role=Role.META)
        inner = at(value, _inner_place(value))
        role = _CHAT_ROLES.get(string(inner.get("role")), Role.ASSISTANT) if kind == "chat" else _ROLES[kind]
        found = parts_of(pieces(value))
        role = role_of(role, found)
        summary = summary_of(role, found)
        if summary is None and at(inner, ("additional_kwargs", "lc_source")) == "summarization":
            text = text_of(found)
            for opening in _SUMMARY_OPENINGS:
                text = text.partition(opening)[2] or text
            summary = PreviousSummary(origin="langchain", text=text.strip())
        return Message(role=role, parts=found, summary=summary)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages serialised as the file's own, the summary marked as LangChain marks its own."""
        values = [record.value for record in transcript.records if _kind_of(record.value)]
        return dumped(transcript, (_written(item, transcript.sha256, values) for item in insertions))

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A state: plain messages, their calls in ``tool_calls``."""
        messages = [line for message in conversation.messages for line in _lines(message, conversation.model)]
        return ({**conversation.extra, "messages": messages},)


def _lines(message: Message, model: str) -> Iterator[dict[str, Any]]:
    for result in message.results:
        status = "error" if result.is_error else "success"
        own = {"type": "tool", "content": result.text, "tool_call_id": result.id, "name": result.name}
        yield {**own, "status": status, "additional_kwargs": {}}
    if message.role is Role.TOOL:
        return
    kind = next(name for name, role in _ROLES.items() if role is message.role)
    thought = thinking_of(message)
    kwargs = {"reasoning_content": thought} if thought else dict(_SUMMARY_MARK) if message.summary else {}
    line: dict[str, Any] = {"type": kind, "content": openai_content(message) or "", "additional_kwargs": kwargs}
    if message.role is Role.ASSISTANT:
        sound = [call for call in message.calls if not isinstance(call.arguments, str)]
        odd = [call for call in message.calls if isinstance(call.arguments, str)]
        line |= {"response_metadata": {"model_name": model} if model else {}}
        line["tool_calls"] = [_called(call, "tool_call") for call in sound]
        line["invalid_tool_calls"] = [_called(call, "invalid_tool_call") for call in odd]
    yield line


def _called(call: ToolCall, kind: str) -> dict[str, Any]:
    return {"name": call.name, "args": call.arguments, "id": call.id, "type": kind}


def _kind_of(value: Any) -> str:
    """The type of a message (``human``, ``ai`` …), whatever the shape; empty for anything else."""
    if not isinstance(value, dict) or "role" in value:
        return ""
    if value.get("lc") is not None and isinstance(value.get("kwargs"), dict):
        names = value.get("id")
        name = string(names[-1]) if isinstance(names, list) and names else ""
        return _of_class(name) if "Message" in name else ""
    inner = value.get("data", value)
    kind = string(value.get("type"))
    kind = _of_class(kind) or kind
    return kind if kind in _ROLES and isinstance(inner, dict) and "content" in inner else ""


def _of_class(name: str) -> str:
    """``HumanMessage`` and ``HumanMessageChunk`` are ``human``."""
    return _CLASSES.get(name.partition("Message")[0], ("",))[0] if "Message" in name else ""


def _inner_place(value: Any) -> JsonPath:
    """Where the message's own keys stand: after ``kwargs`` or ``data``, or in the value itself."""
    if not isinstance(value, dict):
        return ()
    if value.get("lc") is not None:
        return ("kwargs",)
    return ("data",) if isinstance(value.get("data"), dict) else ()


def pieces(value: Any) -> list[LocatedPart]:
    """The parts of a message with the places of their texts: reasoning, content, calls."""
    kind = _kind_of(value)
    place = _inner_place(value)
    inner = at(value, place)
    if not kind or not isinstance(inner, dict):
        return []
    if _ROLES[kind] is Role.TOOL:
        failed = inner.get("status") == "error"
        content, call_id, name = (inner.get(key) for key in ("content", "tool_call_id", "name"))
        return [located.result(content, (*place, "content"), call_id=call_id, name=name, is_error=failed)]
    reasoning = at(inner, ("additional_kwargs", "reasoning_content"))
    found = [located.thinking(reasoning)] if isinstance(reasoning, str) and reasoning else []
    content = inner.get("content")
    read = located.content(content, *place, "content", read=_block)
    if isinstance(content, list):
        # Without the calls that ``tool_calls`` repeats.
        known_ids = {_id(call) for key in _CALL_LISTS for call in listed(inner.get(key))}
        both = zip(content, read, strict=True)
        read = [piece for block, piece in both if not (_is_call(block) and _id(block) in known_ids)]
    return [*found, *read, *_calls(inner, place)]


def _block(block: Any) -> LocatedPart:
    if isinstance(block, dict) and block.get("type") == "reasoning":
        summaries = [string(item.get("text")) for item in listed(block.get("summary")) if isinstance(item, dict)]
        return located.thinking(string(block.get("reasoning")) or "\n".join(summaries))
    if _is_call(block):
        return located.any_call(block)
    return located.any_block(block)


def _calls(inner: Mapping[str, Any], place: JsonPath) -> list[LocatedPart]:
    """The calls in LangChain's own lists, else as the provider wrote them."""
    raw: JsonPath = ("additional_kwargs", "tool_calls")
    own = [piece for key in _CALL_LISTS for piece in _listed_calls(inner, place, (key,))]
    if not own:
        return [piece for _, piece in _listed_calls(inner, place, raw)]
    # In the list, in the content, and as the provider wrote them.
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


def _written(item: Insertion, sha256: str, values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    kind = "ai" if item.role is Role.ASSISTANT else "human"
    peers = [value for value in values if _kind_of(value) == kind] or list(values)
    like = peers[0] if peers else {}
    place = _inner_place(like)
    own = {"content": item.text, "type": kind, "id": derived_uuid(sha256, item.text)}
    marks = {"additional_kwargs": dict(_SUMMARY_MARK)} if item.is_summary else {}
    message = like_keys({**own, **marks}, at(like, place))
    if place == ("data",):
        return like_keys({"type": kind, "data": message}, like)
    if place == ("kwargs",):
        names = at(peers[0], ("id",)) if _kind_of(like) == kind else None
        class_name = f"{kind.upper() if kind == 'ai' else kind.title()}Message"
        names = [*names[:-1], class_name] if isinstance(names, list) else [*_CONSTRUCTOR, class_name]
        return like_keys({"lc": 1, "type": "constructor", "id": names, "kwargs": message}, like)
    return message


DIALECT = LangChain(pieces)
