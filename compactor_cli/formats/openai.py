"""OpenAI's: items of the Responses API, and ChatGPT's exports.

Items stand in a request's ``input``, in a response's ``output``, or one a line. The same items are in Codex rollouts;
older clients and other tools wrote them as ``tool_call`` and ``tool_result`` without ids. For a tool that runs at the
provider's, call and answer are one item. A ``compaction`` item holds the items before it in encrypted form: it is never
left out, and the summary stands after it. The API refuses reasoning without the items that followed it, so the items of
one answer stay together.

ChatGPT's exports (``conversations.json``): ``{"title", "mapping": {ID: node}, "current_node": ID}``. The nodes are
members of an object and link to each other by ``parent`` and ``children``; the path from the current node to the root
is shown. A record is a member, ``"ID": {...}``. ChatGPT cannot import such files, but the links are kept intact anyway.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats import contents, located, registry
from compactor_cli.formats.chat import ROW_MODELS
from compactor_cli.formats.client_signs import summary_of
from compactor_cli.formats.contents import ROLES, arguments, dumped, listed, media_count, result_text, string
from compactor_cli.formats.conversation import SIGNED, Conversation, arguments_json, spoken_parts
from compactor_cli.formats.located import LocatedPart, ParentTree, RecordDialect, Value, at, content_parts, derived_uuid
from compactor_cli.formats.registry import REQUEST, Capabilities, Insertion, InsertionPoint, JsonPath, first_object
from compactor_cli.model.transcript import Message, Part, Record, Role, Text, ToolCall, ToolResult, Transcript, text_of
from compactor_cli.read.jsonl import parse_record

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}
# Calls, with the key that holds their arguments: in rollouts as well, and in the API alone.
_ROLLOUT_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "tool_search_call": "arguments",
    "tool_call": "arguments",
}
_CALLS = {**_ROLLOUT_CALLS, "computer_call": "action", "shell_call": "action", "apply_patch_call": "operation"}
# Results, with the key that holds their text.
_RESULTS = {
    "function_call_output": "output",
    "custom_tool_call_output": "output",
    "local_shell_call_output": "output",
    "tool_search_output": "tools",
    "tool_result": "result",
    "function_result": "result",
}
_CLIENT_RESULTS = frozenset({"computer_call_output", "shell_call_output", "apply_patch_call_output"})
# Calls that the provider answered by itself, with the key of their arguments: no record holds their result.
_ANSWERED_CALLS = {"web_search_call": "action", "image_generation_call": "revised_prompt"}
# Calls that the provider answered in the same item: the keys of arguments and answer.
_ANSWERED = {
    "file_search_call": ("queries", "results"),
    "code_interpreter_call": ("code", "outputs"),
    "mcp_call": ("arguments", "output"),
}
OPAQUE = frozenset({"compaction", "compaction_summary", "context_compaction"})
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:?) (-?\d+)", re.MULTILINE)
# The exit code of an output, if it states one, is within this many characters.
_HEADER_CHARS = 400

# The types of items in rollouts.
ITEM_TYPES = frozenset({"message", "reasoning", "agent_message", *_ROLLOUT_CALLS, *_ANSWERED_CALLS, *_RESULTS, *OPAQUE})
_NOTES = frozenset({"mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "additional_tools"})
_SPOKEN = ITEM_TYPES | _CALLS.keys() | _CLIENT_RESULTS | _ANSWERED.keys()
# The bare calls and results of old rollouts do not belong to the API.
_OWN_TYPES = (_SPOKEN | _NOTES) - {"message", "tool_call", "tool_result"}
_OWN_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})


def item_type(item: Value) -> str:
    """The type of an item; ``message`` for one that has only a role, empty for one without a type."""
    kind = string(item.get("type"))
    is_message = kind == "Message" or (not kind and string(item.get("role")) in _ROLES)
    return "message" if is_message else kind


def is_opaque(item: Value) -> bool:
    """Whether this is the provider's own summary, which only the provider can read."""
    return item_type(item) in OPAQUE


def is_context(item: Value) -> bool:
    """Whether the client itself wrote this message, to describe permissions and surroundings to the model."""
    if item_type(item) != "message":
        return False
    text = "".join(part.text for part in content_parts(item.get("content"))[:1] if isinstance(part, Text))
    return item_role(item) is Role.SYSTEM or text.startswith("<environment_context>")


def item_role(item: Value) -> Role:
    """The speaker of an item; META for items that are not shown to a model (references, lists of tools)."""
    kind = item_type(item)
    if kind == "message":
        return _ROLES.get(string(item.get("role")), Role.META)
    if kind in _RESULTS or kind in _CLIENT_RESULTS:
        return Role.TOOL
    if kind == "agent_message":
        return Role.USER
    return Role.ASSISTANT if kind in _SPOKEN else Role.META


def item_pieces(item: Value) -> list[LocatedPart]:
    """The parts of an item with the places of their texts; none for items that are not shown to a model."""
    kind = item_type(item)
    if kind in ("message", "agent_message"):
        key = "content" if item.get("content") is not None else "message"
        return located.content(item.get(key), key, read=_block)
    if kind == "reasoning":
        words = text_of((*content_parts(item.get("summary")), *content_parts(item.get("content"))))
        secret = string(item.get("encrypted_content"))
        sealed = [located.media("encrypted_reasoning", secret)] if secret else []
        return [located.thinking(words), *sealed] if words else sealed
    if kind in _CALLS:
        # Arguments that are a text stay one: those of a custom tool may be any text.
        write = (lambda old, text: text) if isinstance(item.get(_CALLS[kind]), str) else contents.arguments_like
        return [LocatedPart(_call(item, _CALLS[kind]), ((_CALLS[kind],),), write)]
    if kind in _RESULTS:
        return [LocatedPart(_result(item, _RESULTS[kind]), ((_RESULTS[kind],),), _shortened_output)]
    if kind in _CLIENT_RESULTS:
        return [LocatedPart(_client_result(item), (("output",),), _shortened_client_output)]
    if kind in _ANSWERED:
        asked, key = _ANSWERED[kind]
        call, answer = _call(item, asked), item.get(key)
        failed = bool(item.get("error")) or item.get("status") == "failed"
        text = result_text(answer) or result_text(item.get("error"))
        result = ToolResult(id=call.id, text=text, name=call.name, is_error=failed)
        return [LocatedPart(call), LocatedPart(result, ((key,),) if isinstance(answer, str) else ())]
    if kind in _ANSWERED_CALLS:
        call = _call(item, _ANSWERED_CALLS[kind])
        images = 1 if string(item.get("result")) else 0
        return [LocatedPart(call), LocatedPart(ToolResult(id=call.id, text="", name=call.name, media_count=images))]
    return [located.media(kind, string(item.get("encrypted_content")))] if kind in OPAQUE else []


def item_parts(item: Value) -> tuple[Part, ...]:
    """The parts of an item."""
    return located.parts_of(item_pieces(item))


def _block(block: Any) -> LocatedPart:
    """A block of a message, a refusal as the text it is."""
    if isinstance(block, dict) and block.get("type") == "refusal":
        return located.text(block.get("refusal"), ("refusal",))
    return located.block(block)


def _call(item: Value, key: str) -> ToolCall:
    name = string(item.get("name")) or string(at(item, ("function", "name"))) or item_type(item).removesuffix("_call")
    server = string(item.get("namespace"))
    name = f"{server}__{name}" if server.startswith("mcp__") else name
    asked = item.get(key)
    call_id = string(item.get("call_id")) or string(item.get("id"))
    given = arguments({"queries": asked} if isinstance(asked, list) else asked)
    return ToolCall(id=call_id, name=name, arguments=given)


def _result(item: Value, key: str) -> ToolResult:
    output = item.get(key)
    wrapped = _wrapped(output)
    held, code = output if wrapped is None else wrapped, None
    text = result_text(output if wrapped is None else wrapped["output"])
    if isinstance(held, dict):
        code = at(held, ("metadata", "exit_code")) if isinstance(held.get("metadata"), dict) else held.get("exitCode")
        failed = held.get("success") is False or (isinstance(code, int) and code != 0)
    else:
        found = _EXIT_CODE.search(text[:_HEADER_CHARS])
        failed = (found is not None and found[1] != "0") or text.startswith("Script failed\n")
    own_id, name, count = string(item.get("call_id")), string(item.get("name")), media_count(output)
    ended = contents.shell_exit_code(code)
    return ToolResult(id=own_id, text=text, name=name, is_error=failed, media_count=count, exit_code=ended)


def _wrapped(output: Any) -> dict[str, Any] | None:
    """The JSON object in the output of older shells, ``"{\\"output\\":…,\\"metadata\\":{…}}"``; None for others."""
    value = contents.json_value(output) if isinstance(output, str) and output.startswith("{") else None
    return value if isinstance(value, dict) and isinstance(value.get("output"), str) else None


def _shortened_output(output: Any, text: str) -> Any:
    wrapped = _wrapped(output)
    if wrapped is not None:
        return contents.json_text({**wrapped, "output": text}, spaced=False)
    return contents.shortened_result(output, text)


def _client_result(item: Value) -> ToolResult:
    """The result in an item: of a shell (``[{"stdout", "stderr", "outcome"}]``), a text, or a screenshot (no text)."""
    output = item.get("output")
    entries = output if isinstance(output, list) and all(isinstance(entry, dict) for entry in output) else []
    shells = [entry for entry in entries if "stdout" in entry or "stderr" in entry]
    texts = (string(entry.get(key)) for entry in shells for key in ("stdout", "stderr"))
    text = "\n".join(filter(None, texts)) if shells else result_text(output)
    has_image = isinstance(output, dict) and string(output.get("type")).endswith("screenshot")
    call_id, failed = string(item.get("call_id")), item.get("status") == "failed"
    return ToolResult(id=call_id, text="" if has_image else text, is_error=failed, media_count=int(has_image))


def _shortened_client_output(output: Any, text: str) -> Any:
    if isinstance(output, list) and output and isinstance(output[0], dict) and "stdout" in output[0]:
        return [{**output[0], "stdout": text, "stderr": ""}]
    return text if isinstance(output, str) else output


def answers(items: Sequence[Any]) -> list[str]:
    """The group of each item: a common name for the items of an answer with reasoning, empty for all others.

    The API refuses reasoning without the items that follow it. An answer is a run of the assistant's items; other
    values, and items that are not shown to a model, are not part of it and do not end it.
    """
    groups = [""] * len(items)
    run: list[int] = []
    for i, item in enumerate([*items, {"type": "message", "role": "user", "content": ""}]):
        role = item_role(item) if isinstance(item, dict) else Role.META
        if role is Role.ASSISTANT and not is_opaque(item):
            run.append(i)
        elif role is not Role.META:
            if len(run) > 1 and any(item_type(items[j]) == "reasoning" for j in run):
                for j in run:
                    groups[j] = f"answer-{run[0]}"
            run = []
    return groups


def _is_item(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    kind = item_type(value)
    if is_opaque(value):
        return "encrypted_content" in value
    return kind in _OWN_TYPES or kind == "item_reference" or (kind == "message" and "content" in value)


def text_block(role: Role, text: str) -> dict[str, Any]:
    """A text in the content of a message of this speaker."""
    return {"type": "output_text" if role is Role.ASSISTANT else "input_text", "text": text}


def written(message: Message) -> Iterator[dict[str, Any]]:
    """The items of a message: its words, then each call or result."""
    words = [
        text_block(message.role, part.text)
        if isinstance(part, Text)
        else {"type": "input_image", "image_url": part.url}
        for part in spoken_parts(message)
    ]
    if words:
        yield {"type": "message", "role": message.role.value, "content": words}
    for call in message.calls:
        yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments_json(call)}
    for result in message.results:
        yield {"type": "function_call_output", "call_id": result.id, "output": result.text}


_INPUTS: tuple[JsonPath, ...] = (("input",), ("body", "input"), ("request", "input"))
_OUTPUT_PATHS: tuple[JsonPath, ...] = (("output",), ("response", "output"), ("response", "body", "output"))


class OpenAIResponses(RecordDialect):
    """The dialect of OpenAI's Responses API."""

    name = "openai-responses"
    title = "OpenAI Responses items"
    holds = REQUEST | Capabilities.THINKING
    unwritten = SIGNED
    models = (("model",),)
    row_models = (*ROW_MODELS, *(("response", *path) for path in ROW_MODELS))

    def array_path(self, value: Any) -> JsonPath | None:
        """``input`` of a request, ``output`` of a response, or a bare array of items."""
        if isinstance(value, list):
            return () if _is_item(first_object(value)) else None
        if not isinstance(value, dict) or isinstance(value.get("messages"), list):
            return None
        outputs = (
            path for path in _OUTPUT_PATHS if at(value, (*path[:-1], "object")) in ("response", "response.compaction")
        )
        return next((path for path in (*_INPUTS, *outputs) if _is_item(first_object(at(value, path)))), None)

    def record_score(self, value: Any) -> int:
        """2 for items that only this API has; 1 for a role and a content."""
        if not _is_item(value):
            return 0
        kinds = {string(block.get("type")) for block in listed(value.get("content")) if isinstance(block, dict)}
        return 2 if item_type(value) in _OWN_TYPES or not _OWN_BLOCKS.isdisjoint(kinds) else 1

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per item; the items of an answer with reasoning are a group."""
        items: list[Value] = [record.value if _is_item(record.value) else {} for record in records]
        messages = []
        for item, group in zip(items, answers(items), strict=True):
            role = item_role(item)
            parts = () if role is Role.META else item_parts(item)
            messages.append(Message(role=role, parts=parts, group=group, summary=summary_of(role, parts)))
        return tuple(messages)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """The removed items that only the provider can read, then messages in the file's own style."""
        kept, records = cut.kept, transcript.records
        removed = (record for i, record in enumerate(records) if i not in kept and isinstance(record.value, dict))
        opaque = (record.raw for record in removed if is_opaque(record.value))
        messages = [value for record in records if _is_item(value := record.value) and item_type(value) == "message"]
        has_blocks = any(isinstance(message.get("content"), list) for message in messages)
        has_types = not messages or any("type" in message for message in messages)
        written = []
        for item in insertions:
            content: Any = [text_block(item.role, item.text)] if has_blocks else item.text
            message = {"type": "message"} if has_types else {}
            message |= {"role": item.role.value, "content": content}
            written.append(located.like_keys(message, next(iter(messages), {})))
        return (*opaque, *dumped(transcript, written))

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A request: the items as its ``input``."""
        row = conversation.row()
        row["input"] = [item for message in conversation.messages for item in written(message)]
        if conversation.tools:
            row["tools"] = [{"type": "function", **tool.declaration()} for tool in conversation.tools]
        return (row,)


RESPONSES = OpenAIResponses(lambda item: item_pieces(item) if _is_item(item) else [])


_NODE_KEYS = frozenset({"message", "parent", "children"})
_EVERYBODY = ("", "all")
_THOUGHTS = frozenset({"thoughts", "reasoning_recap"})


class ChatGPT(RecordDialect):
    """The dialect of ChatGPT's exports."""

    name = "chatgpt"
    title = "ChatGPT export"
    holds = registry.of_words("system calls thinking images times model metadata".split())
    models = (("message", "metadata", "model_slug"),)
    row_models = (("default_model_slug",),)
    row_score = 3

    def array_path(self, value: Any) -> JsonPath | None:
        """``mapping`` of a conversation."""
        mapping = contents.object_of(contents.object_of(value).get("mapping"))
        return ("mapping",) if any(map(_is_node, mapping.values())) else None

    def record_score(self, value: Any) -> int:
        """3 for a node of a conversation."""
        return 3 if _is_node(value) else 0

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per node; those that are not on the path to the current node are ``superseded``."""
        nodes = [record.value if _is_node(record.value) else {} for record in records]
        tree = ParentTree(nodes, ("id", "parent"))
        current = tree.index.get(string(at(row, ("current_node",))), next(reversed(tree.index.values()), None))
        path = set(tree.ancestors(current))
        return registry.pad_missing_results([_chatgpt_message(node, i not in path) for i, node in enumerate(nodes)])

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """New nodes, linked to one another; `settle` links them to the nodes around them."""
        parent: str | None = None
        written: list[bytes] = []
        for number, item in enumerate(insertions):
            own = derived_uuid(transcript.sha256, number)
            message: dict[str, Any] = {
                "id": own,
                "author": {"role": item.role.value, "name": None, "metadata": {}},
                "create_time": None,
                "content": {"content_type": "text", "parts": [item.text]},
                "status": "finished_successfully",
                "weight": 1.0,
                "metadata": {},
                "recipient": "all",
            }
            written.append(_dumped_node(own, {"id": own, "message": message, "parent": parent, "children": []}))
            parent = own
        return tuple(written)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The node with these texts in its content."""
        node = parse_record(record.raw)
        content = node["message"]["content"]
        for i, text in texts.items():
            if isinstance(content.get("parts"), list) and i < len(content["parts"]):
                content["parts"][i] = text
            elif isinstance(content.get("text"), str):
                content["text"] = text
        return _dumped_node(_node_id(node), node)

    def settle(self, source: Transcript, composed: Transcript) -> Transcript:
        """Repair the links between the nodes that are left.

        The first new node links to the node before it, nodes after a gap to the last new one, or without new nodes to
        their nearest ancestor that is left. ``current_node`` is moved to the last node if its node is gone.
        """
        old = {_node_id(record.value): record.value for record in source.records if _is_node(record.value)}
        nodes = [record.value if _is_node(record.value) else {} for record in composed.records]
        new = [_node_id(node) for node in nodes if _node_id(node) not in old]
        parents = _node_parents(nodes, old, new)
        records = list(composed.records)
        for i, node in enumerate(nodes):
            own = _node_id(node)
            linked = [child for child, parent in parents.items() if parent == own]
            known = [child for child in node.get("children", ()) if child in linked]
            children = [*known, *(child for child in linked if child not in known)]
            if own in parents and (node["parent"] != parents[own] or node["children"] != children):
                links = {"parent": parents[own], "children": children}
                raw = _dumped_node(own, {**parse_record(records[i].raw), **links})
                records[i] = replace(records[i], raw=raw, value=parse_record(raw))
        composed = replace(composed, records=tuple(records))
        current = string(at(source.row, ("current_node",)))
        if current in parents or not parents:
            return composed
        last = next(reversed(parents))
        frame = contents.with_key(composed.frame, "current_node", last)
        return replace(composed, frame=frame, row={**source.row, "current_node": last})


def _is_node(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= _NODE_KEYS and isinstance(value["children"], list)


def _node_id(node: Mapping[str, Any]) -> str:
    return string(node.get("id"))


def _chatgpt_message(node: Mapping[str, Any], is_off_path: bool) -> Message:
    message = node.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("content"), dict):
        return located.META
    role = ROLES.get(string(at(message, ("author", "role"))), Role.META)
    parts = tuple(_node_parts(message, role))
    if role is Role.META or not parts:
        return located.META
    own = "" if at(message, ("metadata", "is_visually_hidden_from_conversation")) is True else None
    time, summary = contents.time_of(message.get("create_time")), summary_of(role, parts)
    return Message(role=role, parts=parts, timestamp=time, summary=summary, superseded=is_off_path, own_words=own)


def _node_parts(message: Mapping[str, Any], role: Role) -> list[Part]:
    content = message["content"]
    pieces = content["parts"] if isinstance(content.get("parts"), list) else [content.get("text")]
    texts = [piece for piece in pieces if isinstance(piece, str)]
    media = sum(isinstance(piece, dict) for piece in pieces)
    if role is Role.TOOL:
        name = string(at(message, ("author", "name")))
        return [ToolResult(id="", text="\n".join(texts), name=name, media_count=media)]
    kind, recipient = string(content.get("content_type")), string(message.get("recipient"))
    if kind in _THOUGHTS:
        thoughts = (string(at(thought, ("content",))) for thought in listed(content.get("thoughts")))
        return [located.thinking("\n".join(thoughts) or content.get("content")).part]
    if role is Role.ASSISTANT and recipient not in _EVERYBODY:
        return [ToolCall(id="", name=recipient, arguments="\n".join(texts))]
    if not any(texts) and not media:
        return []
    image = located.media("image", None).part
    return [Text(text=piece) if isinstance(piece, str) else image for piece in pieces]


def _node_parents(
    nodes: Sequence[Mapping[str, Any]], old: Mapping[str, Mapping[str, Any]], new: Sequence[str]
) -> dict[str, str | None]:
    """The new parent of each node that is left (None for a root), in the order of the nodes."""
    left = {_node_id(node) for node in nodes if node}
    parents: dict[str, str | None] = {}
    before: str | None = None
    for node in nodes:
        own, parent = _node_id(node), string(node.get("parent"))
        if not own:
            continue
        gone = parent not in left
        while parent and parent not in left:
            parent = string(at(old.get(parent), ("parent",)))
        if own in new[:1]:
            parent = before or ""
        elif own not in new and gone and new and new[-1] in parents:
            parent = new[-1]
        parents[own] = parent or None
        before = own
    return parents


def _dumped_node(key: str, node: Mapping[str, Any]) -> bytes:
    """The node as a member of the mapping."""
    return f"{json.dumps(key)}: {contents.json_text(node)}".encode("utf-8", "surrogatepass")


CHATGPT = ChatGPT()
