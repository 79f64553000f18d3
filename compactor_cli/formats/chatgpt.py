"""ChatGPT's exports (``conversations.json``): ``{"title", "mapping": {ID: node}, "current_node": ID}``.

The nodes are members of an object, and link to each other by ``parent`` and ``children``: what is shown is the path
from the current node to the root. A record is a member, ``"ID": {...}``. Nothing reads such a file back into ChatGPT;
the links are kept whole anyway.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats import located
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath, of_words, pad_missing_results
from compactor_cli.formats.client_signs import summary_of
from compactor_cli.formats.contents import ROLES, listed, string, time_of, with_key
from compactor_cli.formats.located import ParentTree, RecordDialect, at, derived_uuid
from compactor_cli.model.transcript import Message, Part, Record, Role, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.read.jsonl import parse_record

_NODE_KEYS = frozenset({"message", "parent", "children"})
_EVERYBODY = ("", "all")
_THOUGHTS = frozenset({"thoughts", "reasoning_recap"})


class ChatGPT(RecordDialect):
    """The dialect of ChatGPT's exports."""

    name = "chatgpt"
    title = "ChatGPT export"
    holds = of_words("system calls thinking images times model metadata".split())
    models = (("message", "metadata", "model_slug"),)
    row_models = (("default_model_slug",),)

    def array_path(self, value: Any) -> JsonPath | None:
        """``mapping`` of a conversation."""
        mapping = value.get("mapping") if isinstance(value, dict) else None
        return ("mapping",) if isinstance(mapping, dict) and any(map(_is_node, mapping.values())) else None

    def score(self, value: Any) -> int:
        """3 for a conversation and for a node of one."""
        return 3 if _is_node(value) or self.array_path(value) is not None else 0

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per node; what is not on the path to the current node is ``superseded``."""
        nodes = [record.value if _is_node(record.value) else {} for record in records]
        tree = ParentTree(nodes, ("id", "parent"))
        current = tree.index.get(string(at(row, ("current_node",))), next(reversed(tree.index.values()), None))
        path = set(tree.ancestors(current))
        return pad_missing_results(tuple(_message(node, i not in path) for i, node in enumerate(nodes)))

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Nodes one after another; `settle` links them between what is left."""
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
            written.append(_dump(own, {"id": own, "message": message, "parent": parent, "children": []}))
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
        return _dump(_id(node), node)

    def settle(self, source: Transcript, composed: Transcript) -> Transcript:
        """The links between the nodes that are left: what linked to a removed one links to the node before the gap."""
        old = {_id(record.value): record.value for record in source.records if _is_node(record.value)}
        nodes = [record.value if _is_node(record.value) else {} for record in composed.records]
        new = [_id(node) for node in nodes if _id(node) not in old]
        parents = _parents(nodes, old, new)
        records = tuple(_relinked(record, node, parents) for record, node in zip(composed.records, nodes, strict=True))
        current = string(at(source.row, ("current_node",)))
        if current in parents or not parents:
            return replace(composed, records=records)
        last = next(reversed(parents))
        row = {**source.row, "current_node": last}
        return replace(composed, records=records, frame=with_key(composed.frame, "current_node", last), row=row)


def _is_node(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= _NODE_KEYS and isinstance(value["children"], list)


def _id(node: Mapping[str, Any]) -> str:
    return string(node.get("id"))


def _message(node: Mapping[str, Any], is_off_path: bool) -> Message:
    message = node.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("content"), dict):
        return Message(role=Role.META)
    role = ROLES.get(string(at(message, ("author", "role"))), Role.META)
    parts = tuple(_parts(message, role))
    if role is Role.META or not parts:
        return Message(role=Role.META)
    own = "" if at(message, ("metadata", "is_visually_hidden_from_conversation")) is True else None
    time, summary = time_of(message.get("create_time")), summary_of(role, parts)
    return Message(role=role, parts=parts, timestamp=time, summary=summary, superseded=is_off_path, own_words=own)


def _parts(message: Mapping[str, Any], role: Role) -> list[Part]:
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
        return [Thinking(text="\n".join(thoughts) or string(content.get("content")))]
    if role is Role.ASSISTANT and recipient not in _EVERYBODY:
        return [ToolCall(id="", name=recipient, arguments="\n".join(texts))]
    if not any(texts) and not media:
        return []
    image = located.media("image", None).part
    return [Text(text=piece) if isinstance(piece, str) else image for piece in pieces]


def _parents(
    nodes: Sequence[Mapping[str, Any]], old: Mapping[str, Mapping[str, Any]], new: Sequence[str]
) -> dict[str, str | None]:
    """The parent of each node that is left, in their order."""
    left = {_id(node) for node in nodes if node}
    parents: dict[str, str | None] = {}
    before: str | None = None
    for node in nodes:
        own, parent = _id(node), string(node.get("parent"))
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


def _relinked(record: Record, node: Mapping[str, Any], parents: Mapping[str, str | None]) -> Record:
    own = _id(node)
    if own not in parents:
        return record
    linked = [child for child, parent in parents.items() if parent == own]
    children = [child for child in node["children"] if child in linked]
    links = {"parent": parents[own], "children": [*children, *(child for child in linked if child not in children)]}
    if all(node[key] == value for key, value in links.items()):
        return record
    raw = _dump(own, {**parse_record(record.raw), **links})
    return replace(record, raw=raw, value=parse_record(raw))


def _dump(key: str, node: Mapping[str, Any]) -> bytes:
    """The node as a member of the mapping."""
    return f"{json.dumps(key)}: {json.dumps(node, ensure_ascii=False)}".encode("utf-8", "surrogatepass")


DIALECT = ChatGPT()
