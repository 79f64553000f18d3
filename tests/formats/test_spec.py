"""Formats as data: the built-in specifications, and one that a user brings."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opening import inserted, open_one, open_values, shortened

from compactor_cli.formats.harness import user_text
from compactor_cli.formats.registry import get, names
from compactor_cli.formats.spec import SPECS
from compactor_cli.formats.spec_rules import read_spec
from compactor_cli.model.errors import UsageError
from compactor_cli.model.transcript import Role, Text, Thinking, ToolCall, ToolResult

BUILT_IN = sorted(SPECS.glob("*.toml"))
PAGE = Path(__file__).resolve().parents[2] / "docs" / "formats.md"


@pytest.mark.parametrize("path", BUILT_IN, ids=lambda path: path.stem)
def test_a_built_in_specification_is_without_fault_and_registered(path: Path) -> None:
    assert read_spec(path)["title"] == get(path.stem).title
    assert path.stem in names()


MINE = """\
title = "Support chats"
arrays = ["chat.lines"]

[message]
when = { who = "is:text" }
roles = [{ when = { who = "customer" }, is = "user" }, { is = "assistant" }]

[[parts]]
text = "words"

[[parts]]
each = "lookups"
of = [{ call = { id = "no", name = "what", arguments = "asked" }, result = { id = "no", text = "found" } }]

[insert]
user = { who = "customer", words = "{text}" }
assistant = { who = "desk", words = "{text}" }
"""


def written(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


ASKED = {"who": "customer", "words": "Where is my parcel?"}
LOOKUP = {"no": "l1", "what": "track", "asked": {"parcel": 7}, "found": "Graz, depot."}
ANSWERED = {"who": "desk", "words": "In Graz.", "lookups": [LOOKUP]}


def test_a_file_of_one_s_own_reads_writes_and_shortens(tmp_path: Path) -> None:
    mine = written(tmp_path, MINE)
    transcript = open_one({"chat": {"lines": [ASKED, ANSWERED]}}, dialect=mine)
    assert [message.role for message in transcript.messages] == [Role.USER, Role.ASSISTANT]
    assert transcript.messages[1].parts == (
        Text(text="In Graz."),
        ToolCall(id="l1", name="track", arguments={"parcel": 7}),
        ToolResult(id="l1", text="Graz, depot."),
    )
    assert inserted(transcript, 1, "So far.") == [{"who": "customer", "words": "So far."}]
    assert shortened(mine, ANSWERED, {2: "Graz."})["lookups"] == [{**LOOKUP, "found": "Graz."}]


def test_new_records_can_be_shaped_like_the_file_s_own(tmp_path: Path) -> None:
    insert = '[insert]\nkeys = { role = "who", text = "words", user = ["customer"], assistant = ["desk"] }\n'
    mine = written(tmp_path, MINE.partition("[insert]")[0] + insert)
    transcript = open_one({"chat": {"lines": [{**ASKED, "lang": "en"}, ANSWERED]}}, dialect=mine)
    assert inserted(transcript, 1, "So far.") == [{"who": "customer", "words": "So far.", "lang": "en"}]


def test_words_of_the_client_in_a_message_are_not_the_persons(tmp_path: Path) -> None:
    banner = '[[parts]]\ntext = "banner"\nwhose = "client"\n\n[insert]'
    mine = written(tmp_path, MINE.replace("[insert]", banner))
    (message, other) = open_values([{**ASKED, "banner": "Offline."}, ASKED], dialect=mine)[0].messages
    assert "Offline." in message.text
    assert [user_text(message), user_text(other)] == [ASKED["words"], ASKED["words"]]


def test_the_names_of_the_file_s_own_speakers_are_taken_over(tmp_path: Path) -> None:
    insert = '[insert]\nkeys = { role = "who|by", text = "words", own_names = true }\n'
    mine = written(tmp_path, MINE.partition("[insert]")[0] + insert)
    transcript = open_one({"chat": {"lines": [ASKED, ANSWERED]}}, dialect=mine)
    assert inserted(transcript, 1, "So far.") == [{"who": "customer", "words": "So far."}]


def test_a_condition_can_be_held_to_one_element(tmp_path: Path) -> None:
    rule = 'when = { who = "is:text", "lookups[all]" = { no = "is:text", found = "is:key" } }'
    mine = written(tmp_path, MINE.replace('when = { who = "is:text" }', rule))
    messages = open_values([ANSWERED, {**ANSWERED, "lookups": [{"no": "l1"}]}], dialect=mine)[0].messages
    assert [message.is_meta for message in messages] == [False, True]


def test_a_call_that_waits_for_its_result_is_read_without_one(tmp_path: Path) -> None:
    waiting = {"who": "desk", "lookups": [{key: LOOKUP[key] for key in ("no", "what", "asked")}]}
    (message,) = open_values(waiting, dialect=written(tmp_path, MINE))[0].messages
    assert (len(message.calls), message.results) == (1, ())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('is = "user"', 'is = "usr"', r":6: message.roles\[1\].is: the value 'usr' is not known: did you mean 'user'"),
        ("name =", "nam =", r":13: parts\[2\].of\[1\].call.nam: this key is not known: did you mean 'name'"),
        ("is:text", "is:txt", r":5: message.when.who: the test 'is:txt' is not known: did you mean 'is:text'"),
        ('desk", words = "{text}', 'desk", words = "{txt}', r":17: insert.assistant: the placeholder 'txt' is not"),
        ('each = "lookups"', 'each = "lookups', r":12: the format is not TOML: .*: correct this line"),
        ('title = "Support chats"\n', "", r":1: the key 'title' is missing: add it"),
        ("assistant = {", "model = {", r":17: insert.model: this key is not known: known here: user, assistant"),
        ('text = "words"', "copies = []", r":8: parts\[1\]: the rule reads nothing: add one of thinking, text"),
        ('text = "words"', "text = 3", r":9: parts\[1\].text: a text is wanted, this is a number: write it in quotes"),
        ("[insert]", '[insert]\nids = "random"', r":16: insert.ids: 'random' is no kind of id: write \"uuid\" or"),
        ('who = "is:text"', "who.name = 3", r":5: message.when.who: a test is a value .*: write a path with dots in"),
    ],
)
def test_a_mistake_is_reported_with_line_key_and_what_to_do(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in MINE
    with pytest.raises(UsageError, match=r"mine\.toml" + said):
        get(written(tmp_path, MINE.replace(old, new, 1)))


def test_a_file_that_is_not_there_is_reported_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml: the format cannot be read .*: check the path after --format"):
        get(str(tmp_path / "none.toml"))


def test_conditions_know_kinds_prefixes_case_and_elements(tmp_path: Path) -> None:
    roles = """[
        { when = { "tags[any]" = "secret" }, is = "meta" },
        { when = { "tags[all].kind" = "note*" }, is = "system" },
        { when = { who = ["nocase:ANN", "bot*"], at = "is:absent" }, is = "assistant" },
        { when = [{ age = 3 }, { age = true }], is = "tool" },
        { when = { who = ["not:x", "is:absent"], age = "not:is:absent" }, is = "system" },
        { is = "user" },
    ]"""
    text = re.sub(r"roles = .*", f"roles = {roles}", MINE)
    mine = written(tmp_path, text)

    def role(**more: Any) -> Role:
        return open_one({"who": "x", "words": "hm", **more}, dialect=mine).messages[0].role

    assert role(tags=["a", "secret"]) is Role.META
    assert role(tags=[{"kind": "note-1"}, {"kind": "notes"}]) is Role.SYSTEM
    assert role(tags=[{"kind": "note-1"}, {"kind": "x"}]) is Role.USER
    assert role(who="Ann") is role(who="bot-2", at=None) is Role.ASSISTANT
    assert role(who="ann", at="noon") is Role.USER
    assert role(age=3) is role(age=True) is Role.TOOL
    assert role(age=1) is Role.USER
    assert role(who="y", age=1) is Role.SYSTEM
    assert role(who="y") is Role.USER


def test_the_format_of_the_docs_page_works_as_it_is_written(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## A new format in ten minutes")[2]
    toml, line = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)[0] for kind in ("toml", "json"))
    (tmp_path / "my.toml").write_text(toml, encoding="utf-8")
    turns = json.loads(line)["chat"]["lines"]
    row = {"chat": {"lines": [{**turn, "words": turn["words"] + " and so on" * 300} for turn in turns * 9]}, "id": 5}
    (tmp_path / "chats.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    command = re.findall(r"^compact .*my\.toml.*$", page, re.MULTILINE)[0]
    code = f"import sys; from compactor_cli.__main__ import compact; sys.argv = {shlex.split(command)!r}; compact()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    after = json.loads((tmp_path / "short.jsonl").read_text(encoding="utf-8"))
    assert after["id"] == 5
    assert 1 < len(after["chat"]["lines"]) < len(row["chat"]["lines"])
    assert turns[1]["lookups"] == after["chat"]["lines"][-1]["lookups"]


def test_reasoning_can_be_a_part_of_its_own(tmp_path: Path) -> None:
    mine = written(tmp_path, MINE.replace('text = "words"', 'thinking = "thought"\n\n[[parts]]\ntext = "words"'))
    (message,) = open_one({"who": "desk", "thought": "Hm.", "words": "Yes."}, dialect=mine).messages
    assert message.parts == (Thinking(text="Hm."), Text(text="Yes."))
