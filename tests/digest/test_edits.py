"""Contents: the last known text of a file, replayed from what was written, edited and read."""

from __future__ import annotations

import pytest
from conversation import answer, call, conversation, digest, events_of, ran, texts, user

from compactor_cli.digest.edits import added_names, definitions_around, fixing_line
from compactor_cli.digest.file_contents import contents
from compactor_cli.digest.files import file_operations
from compactor_cli.model.summary import Section

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@ def f():\n-    return 1\n+    return 2\n*** End Patch"


def known(*messages: object) -> str | None:
    found = events_of(*messages)  # type: ignore[arg-type]
    return contents(file_operations(found), ["a.py"])["a.py"].text


def wrote(text: str) -> tuple[object, object]:
    return call("Write", "w", file_path="a.py", content=text), answer("ok", "w")


def edited(old: str, new: str) -> tuple[object, object]:
    return call("Edit", "e", file_path="a.py", old_string=old, new_string=new), answer("ok", "e")


def diffed(diff: str) -> tuple[object, object]:
    return call("apply_diff", "d", path="a.py", diff=diff), answer("ok", "d")


def read(text: str, **ranges: int) -> tuple[object, object]:
    return call("Read", "r", file_path="a.py", **ranges), answer(text, "r")


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ((wrote("x = 1\n"), edited("1", "2")), "x = 2\n"),
        ((wrote("x = 1\n"), diffed("------- SEARCH\nx = 1\n=======\nx = 2\n+++++++ REPLACE")), "x = 2\n"),
        ((wrote("x\n"), diffed("<<<<<<< SEARCH\n:start_line:1\n-------\nx\n=======\ny\n>>>>>>> REPLACE")), "y\n"),
        ((wrote("x\nz\n"), diffed("--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n-x\n+y\n z")), "y\nz\n"),
        ((read("     1→x = 1"), edited("x", "y")), "y = 1"),
        ((read("x = 1", offset=5), edited("x", "y")), None),
        ((wrote("x = 1"), edited("not there", "y")), None),
        ((wrote("x"), ran("rm a.py", "")), None),
        ((ran("cat > a.py <<'EOF'\nx = 1\nEOF", ""),), "x = 1"),
        (
            (wrote("def f():\n    return 1"), call("apply_patch", "p", input=PATCH), answer("Done!", "p")),
            "def f():\n    return 2",
        ),
        (
            (
                wrote("a b"),
                call("MultiEdit", "m", file_path="a.py", edits=[{"old_string": "a", "new_string": "c"}]),
                answer("ok", "m"),
            ),
            "c b",
        ),
    ],
)
def test_replay(messages: tuple[object, ...], text: str | None) -> None:
    assert known(*messages) == text


def test_short_files_stand_whole_long_ones_by_signatures_and_changes() -> None:
    long = "\n\n".join(f"def function_{n}(x):\n    y = x + {n}\n    return y * {n}" for n in range(60))
    change = edited("    y = x + 7\n", "    y = x - 7000\n")
    short = (call("Write", "b", file_path="b.py", content="b = 1"), answer("ok", "b"))
    session = conversation(user("write both"), wrote(long), change, short)  # type: ignore[arg-type]
    shown = [text for text in texts(digest(session, 900, restore_files=2), Section.FILES) if "\n" in text]
    assert [text.partition("\n")[0] for text in shown] == [
        "b.py — last known content:",
        "a.py — changed parts and signatures:",
    ]
    assert shown[0].endswith("\nb = 1")
    assert "    y = x - 7000\ndef function_0(x):\ndef function_1(x):" in shown[1]


def test_contents_are_carried_only_where_asked_for() -> None:
    transcript = conversation(user("write the list"), call("Write", file_path="list.yaml", content="- one\n- two\n"))
    assert texts(digest(transcript, 800), Section.FILES) == ["list.yaml — created"]
    assert texts(digest(transcript, 800, restore_files=2), Section.FILES) == [
        "list.yaml — created",
        "list.yaml — last known content:\n| - one\n| - two",
    ]


def test_of_a_long_changed_part_the_lines_that_are_new_are_carried_each_as_often_as_it_stands() -> None:
    lines = [f"level_{number} = {number}" for number in range(20)]
    new = [*lines[:5], "checked = True", *lines[5:12], "checked = True", *lines[12:]]
    edit = call("Edit", "e", file_path="a.py", old_string="\n".join(lines), new_string="\n".join(new))
    one = digest(conversation(user("check both"), edit, answer("ok", "e")), 2_000, restore_files=1)
    part = "checked = True\nchecked = True"
    assert texts(one, Section.FILES)[1:] == [f"a.py — changed parts and signatures:\n{part}"]


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("", "def load(path):\n    pass\n\nclass Gauge:\n    pass\n", ["load()", "Gauge"]),
        ("def load(path):\n    pass\n", "def load(path, strict):\n    return 1\n", []),
        ("x = 1\n", "function backfill_gauge() {\n  true\n}\n", ["backfill_gauge()"]),
    ],
)
def test_what_an_edit_adds_is_what_it_newly_defines(old: str, new: str, names: list[str]) -> None:
    assert list(added_names([(old, new)])) == names


def test_the_lines_that_are_shown_of_a_file_have_no_signs_of_differences() -> None:
    first = "--- a.py\n+++ a.py\n@@ -1 +1,2 @@\n-x\n+low = min(levels)\n"
    both = f"{first}--- b.md\n+++ b.md\n@@ -1 +1 @@\n-y\n+- Levels are read twice"
    session = conversation(user("mend it"), diffed(both))  # type: ignore[arg-type]
    assert texts(digest(session), Section.FILES) == ["a.py — edited: `low = min(levels)` · `Levels are read twice`"]
    bare = "*** Begin Patch\n*** Update File: a.py\n-x\n+low = min(levels)\n*** End Patch"
    (one,) = file_operations(events_of(call("apply_patch", "p", input=bare), answer("Done!", "p")))
    assert one.replaced == (("x", "low = min(levels)"),)


def test_the_lines_that_are_shown_of_a_file_stand_in_its_order() -> None:
    new = "def low(levels):\n    if not levels:\n        raise ValueError('no levels')\n    tide = min(levels)"
    edit = call("Edit", "e", file_path="a.py", old_string="pass", new_string=new), answer("ok", "e")
    (text,) = texts(digest(conversation(user("mend it"), edit), 1_500), Section.FILES)
    assert text.index("def low(levels):") < text.index("raise ValueError") < text.index("tide = min(levels)")


def test_a_line_that_gives_a_variable_a_value_encloses_nothing() -> None:
    text = "ROOT=$(pwd)\nif [ -f x ]; then\n    run one\nfi\n"
    assert list(definitions_around("    run one\n", "    run two\n", text)) == []


def test_a_test_is_named_by_its_sentence_and_a_value_within_a_function_is_no_place() -> None:
    new = 'describe("gauge", () => {\n  it("should draw the tide", async () => {\n    draw();\n  });\n'
    assert list(added_names([("", new)], "gauge.test.ts")) == ['"should draw the tide"']
    text = "export async function findAll() {\n  const all = [\n    one,\n  ];\n}\n"
    assert list(definitions_around("    one,", "    one,\n    two,", text)) == ["findAll()"]
    arrow = "const find = () => {\n  draw();\n};\n"
    assert list(definitions_around("  draw();", "  paint();", arrow)) == ["find"]


def test_the_line_that_fixes_a_test_stands_in_that_test_where_it_was_edited() -> None:
    replaced = [
        {
            "old_string": "done();",
            "new_string": 'it("finds clocks", () => {\nawait write("clocks of the gauges, harbour");',
        },
        {"old_string": 'it("finds gauges");\nis(true);', "new_string": 'it("finds gauges");\nexpect(found).is(false);'},
    ]
    edit = call("MultiEdit", "m", file_path="a.test.ts", edits=replaced), answer("ok", "m")
    fault = "(fail) harbour > finds gauges · Expected: true"
    assert fixing_line(fault, file_operations(events_of(edit)), 9) == ("expect(found).is(false);", "a.test.ts", 0)


def test_a_comment_in_code_that_prose_shows_is_no_heading() -> None:
    text = "# Gauges\n\n```bash\n# Must print OK\nmake check\n```\n\n## Pumps\n"
    assert [*added_names([("", text)], "plan.md")] == ["Gauges", "Pumps"]


def test_prose_defines_nothing_but_headings() -> None:
    text = "## The clock\n\nIt is of the\ntype instead of a\nfunction of time."
    assert [*added_names([("", text)], "docs/clock.md")] == ["The clock"]


def test_a_value_in_a_function_that_was_there_is_not_added() -> None:
    old = "    const [tides, gauges] = await Promise.all([a(), b()]);"
    new = "    const loaded = Promise.all([a(), b()]);\n    const [tides, gauges] = await loaded;"
    assert [*added_names([(old, new)], "harbour.ts")] == ["loaded"]


def test_a_table_that_sql_makes_is_named_without_the_words_around_its_name() -> None:
    text = 'await query(`CREATE TABLE IF NOT EXISTS "shares" (id INT)`)\nCREATE TABLE `keys` (id INT)\n'
    made = [*added_names([("", 'CREATE TABLE IF NOT EXISTS "shares" (id)\nCREATE TABLE `keys` (id)\n')], "a.sql")]
    assert made == ["shares", "keys"]
    assert "IF" not in [*added_names([("", text)], "a.ts")]


def test_the_path_of_a_module_is_no_definition() -> None:
    assert [*added_names([("", "module example.com/tides\n\ngo 1.26")], "go.mod")] == []
    assert [*added_names([("", "module Tides\nend")], "tides.rb")] == ["Tides"]
