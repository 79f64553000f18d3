"""Contents: the last known text of a file, replayed from what was written, edited and read."""

from __future__ import annotations

import pytest
from compactor_cli.digest.contents import content_items, contents
from compactor_cli.digest.touches import touches
from talk import answer, call, digest, meter, ran, talk, texts, told, user

from compactor_cli.digest.files import ledger
from compactor_cli.digest.language import words_of
from compactor_cli.model.summary import Section

EN = words_of("en")
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@ def f():\n-    return 1\n+    return 2\n*** End Patch"


def known(*messages: object) -> str | None:
    found = told(*messages)  # type: ignore[arg-type]
    return contents(found, touches(found), ["a.py"])["a.py"].text


def wrote(text: str) -> tuple[object, object]:
    return call("Write", "w", file_path="a.py", content=text), answer("ok", "w")


def edited(old: str, new: str) -> tuple[object, object]:
    return call("Edit", "e", file_path="a.py", old_string=old, new_string=new), answer("ok", "e")


def read(text: str, **ranges: int) -> tuple[object, object]:
    return call("Read", "r", file_path="a.py", **ranges), answer(text, "r")


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ((wrote("x = 1\n"), edited("1", "2")), "x = 2\n"),
        ((read("     1→x = 1"), edited("x", "y")), "y = 1"),
        ((read("x = 1", offset=5), edited("x", "y")), None),
        ((wrote("x = 1"), edited("not there", "y")), None),
        ((wrote("x"), ran("rm a.py", "")), None),
        ((ran("cat > a.py <<'EOF'\nx = 1\nEOF", ""),), "x = 1"),
        ((wrote("def f():\n    return 1"), call("apply_patch", "p", input=PATCH)), "def f():\n    return 2"),
        (
            (wrote("a b"), call("MultiEdit", file_path="a.py", edits=[{"old_string": "a", "new_string": "c"}])),
            "c b",
        ),
    ],
)
def test_replay(messages: tuple[object, ...], text: str | None) -> None:
    assert known(*messages) == text


def test_short_files_stand_whole_long_ones_by_signatures_and_changes() -> None:
    long = "\n\n".join(f"def function_{n}(x):\n    y = x + {n}\n    return y * {n}" for n in range(60))
    change = edited("    y = x + 7\n", "    y = x - 7000\n")
    found = told(wrote(long), change, call("Write", file_path="b.py", content="b = 1"))
    acts = touches(found)
    states = ledger(acts)
    items = content_items(states, contents(found, acts, [state.path for state in states]), 200, meter(), EN)
    assert [item.text.partition("\n")[0] for item in items] == [
        "b.py — last known content:",
        "a.py — changed parts and signatures:",
    ]
    assert items[0].text.endswith("\nb = 1")
    assert "    y = x - 7000\ndef function_0(x):\ndef function_1(x):" in items[1].text
    assert sum(meter().item(item) for item in items) <= 200


def test_contents_are_carried_only_where_asked_for() -> None:
    transcript = talk(user("write the list"), call("Write", file_path="list.yaml", content="- one\n- two\n"))
    assert texts(digest(transcript, 800), Section.FILES) == ["list.yaml — created"]
    assert texts(digest(transcript, 800, restore_files=2), Section.FILES) == [
        "list.yaml — created",
        "list.yaml — last known content:\n| - one\n| - two",
    ]
