"""Exports of ChatGPT: nodes that are members of an object."""

from __future__ import annotations

import json
from typing import Any

from compaction import LONG, round_trip, value_of
from made_sessions import shown
from opening import open_one

from compactor_cli.formats.harness import user_text
from compactor_cli.model.transcript import Role, ToolCall, ToolResult


def node(own: str, parent: str | None, role: str = "", *parts: Any, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": list(parts)}
    message = {"id": own, "author": {"role": role, "name": None}, "create_time": 1.5, "content": content, **more}
    return {"id": own, "message": message if role else None, "parent": parent, "children": []}


def conversation(*nodes: dict[str, Any], current: str = "") -> dict[str, Any]:
    for one in nodes:
        one["children"] = [other["id"] for other in nodes if other["parent"] == one["id"]]
    mapping = {one["id"]: one for one in nodes}
    return {"title": "Oak", "mapping": mapping, "current_node": current or nodes[-1]["id"], "conversation_id": "c"}


def talk(count: int) -> list[dict[str, Any]]:
    ids = ["root", *(f"n{i}" for i in range(count))]
    said = (node(own, ids[i], ("user", "assistant")[i % 2], f"{i} {LONG}") for i, own in enumerate(ids[1:]))
    return [node("root", None), *said]


def test_what_is_shown_is_the_path_to_the_current_node() -> None:
    left = node("x", "n0", "assistant", "never mind")
    transcript = open_one(conversation(*talk(2), left, current="n1"))
    assert transcript.dialect == "chatgpt"
    assert [text[:2] for text in shown(transcript)] == ["0 ", "1 "]
    assert [message.superseded for message in transcript.messages] == [False, False, False, True]
    assert [message.role for message in transcript.messages[:2]] == [Role.META, Role.USER]


def test_tools_pictures_and_hidden_messages_are_read() -> None:
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    asked = node("b", "a", "assistant", "1 + 1", recipient="python", metadata={"model_slug": "gpt-4o"})
    answer = node("c", "b", "tool", "2")
    answer["message"]["author"]["name"] = "python"
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    transcript = open_one(
        conversation(
            node("h", None, "user", "About me", **hidden), node("a", "h", "user", picture, "add"), asked, answer
        )
    )
    assert [user_text(message) for message in transcript.messages[:2]] == ["", "add"]
    assert transcript.messages[2].parts == (ToolCall(id="", name="python", arguments="1 + 1"),)
    assert transcript.messages[3].parts == (ToolResult(id="", text="2", name="python"),)
    assert transcript.model == "gpt-4o"


def test_a_compaction_leaves_the_links_whole() -> None:
    for document in (conversation(*talk(14)), [conversation(*talk(14))]):
        found = value_of(round_trip(document, "chatgpt"))
        found = found[0] if isinstance(found, list) else found
        mapping = found["mapping"]
        assert 4 < len(mapping) < 15
        assert all(one["id"] == own for own, one in mapping.items())
        path, here = [], found["current_node"]
        while here is not None:
            parent = mapping[here]["parent"]
            assert parent is None or here in mapping[parent]["children"]
            path.append(here)
            here = parent
        assert set(path) == set(mapping)
        assert (path[0], path[-1]) == ("n13", "root")
        assert {child for one in mapping.values() for child in one["children"]} <= set(mapping)
        assert {key: found[key] for key in ("title", "conversation_id")} == {"title": "Oak", "conversation_id": "c"}


def test_a_text_is_shortened_in_its_member() -> None:
    value = conversation(*talk(2))
    transcript = open_one(value)
    assert transcript.records[1].raw.startswith(b'"n0"')
    assert json.loads(json.dumps(value)) == value
    raw = shortened_member(value, 1, "0 …")
    assert raw["n0"]["message"]["content"]["parts"] == ["0 …"]


def shortened_member(value: Any, record: int, text: str) -> Any:
    from compactor_cli.formats.registry import get

    return json.loads(b"{" + get("chatgpt").shorten(open_one(value).records[record], {0: text}) + b"}")
