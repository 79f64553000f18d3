"""`compact_batch`, the examples in docs/scale.md as they stand there, and the plan that follows from its figures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from scale_cases import dataset, messages, plain, row

from compactor_cli import compact_batch
from compactor_cli.model.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
DOCS = (ROOT / "docs/scale.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)


def test_texts_give_the_lines_of_a_plain_run(work: Path) -> None:
    (work / "rows.jsonl").write_bytes(dataset(6))
    lines = dataset(6).decode().splitlines()
    found = compact_batch({"n": [1] * 6, "text": lines}, target=1500)
    assert found == {"text": plain(work / "rows.jsonl").decode().splitlines()}


def test_lists_of_messages_stay_lists_and_failures_have_a_reason() -> None:
    empty = {"role": None, "content": None, "tool_calls": None}
    batch = {"messages": [messages(9), messages(1), [{**empty, "weather": "fine"}], None]}
    found = compact_batch(batch, target="1500", reasons="why")
    assert found["messages"][1:] == batch["messages"][1:]
    assert found["messages"][0][-1] == batch["messages"][0][-1]  # type: ignore[index]
    assert len(found["messages"][0]) < len(messages(9))
    assert [bool(why) for why in found["why"]] == [False, False, True, False]


@pytest.mark.parametrize("column", ["messages", "extra.chat"])
def test_a_row_that_no_json_or_utf8_can_hold_fails_alone(column: str) -> None:
    odd = [{"role": "user", "content": "x", "v": 10**40}, {"role": "user", "content": "\ud800"}]
    values: list[Any] = [[*messages(9), message] for message in odd]
    values += [[*messages(9), {"role": "user", "content": b"x"}], '[{"role": "user", "content": "\ud800"}]']
    values += [messages(9)]
    head, *keys = column.split(".")
    batch = {head: [{keys[0]: value} for value in values] if keys else values}
    found = compact_batch(batch, column=column, target=1500, reasons="why")
    why = found["why"]
    assert [bool(reason) for reason in why] == [False, False, True, True, False]
    assert ("a message is not JSON" in why[2], "half a character" in why[3]) == (True, True)
    assert found[head][2:4] == batch[head][2:4]
    made = [row[keys[0]] if keys else row for row in found[head]]
    assert [len(made[row]) < len(values[row]) for row in (0, 1, 4)] == [True] * 3


def test_a_row_that_fails_raises_where_no_column_of_reasons_is_named() -> None:
    with pytest.raises(InputError, match=r"column messages, row 1: .*no format is recognised.*reasons="):
        compact_batch({"messages": [messages(9), [{"weather": "fine"}]]}, target=1500)


def test_tables_of_settings_are_taken_as_in_a_configuration_file() -> None:
    batch = {"messages": [messages(9)]}
    head = messages(9)[1]["content"]
    for table, stays in (({"head_turns": 1}, True), ({"head_turns": 0}, False)):
        (found,) = compact_batch(batch, target=1500, keep=table)["messages"]
        assert (found[1]["content"] == head) is stays


def test_no_conversation_is_an_error() -> None:
    with pytest.raises(InputError, match="columns: n, text"):
        compact_batch({"n": [1], "text": ["a"]})


COLUMNS = (
    "messages conversations conversation chat dialog dialogue prompt completion chosen rejected output inputs"
    " history trajectory traj turns transcript text body request data rows"
).split()
FROM_VALUE = [
    {"from": {"user": "human", "assistant": "gpt"}.get(str(message["role"]), "system"), "value": message["content"]}
    for message in messages(40)
    if message["role"] in ("user", "assistant", "system") and message["content"]
]


@pytest.mark.parametrize("column", COLUMNS)
def test_any_column_that_is_named_is_compacted_whatever_its_name(column: str) -> None:
    for value in (messages(9), json.dumps(messages(9)), FROM_VALUE):
        (found,) = compact_batch({"n": [1], column: [value]}, column=column, target=500)[column]
        assert type(found) is type(value)
        assert len(found) < len(value)


def test_several_columns_are_compacted_each() -> None:
    batch = {"chosen": [messages(9)], "rejected": [messages(8)], "score": [1]}
    found = compact_batch(batch, column="chosen,rejected", target=1500, reasons="why")
    assert [len(found[name][0]) < len(batch[name][0]) for name in ("chosen", "rejected")] == [True, True]
    assert found["why"] == [""]


def test_a_conversation_inside_a_structure_is_named_with_a_path() -> None:
    batch = {"extra": [{"chat": messages(9), "n": 1}, {"chat": messages(2), "n": 2}], "a.b": [messages(9), None]}
    found = compact_batch(batch, column="extra.chat,a.b", target=1500, reasons="why")
    assert [value["n"] for value in found["extra"]] == [1, 2]
    assert len(found["extra"][0]["chat"]) < len(messages(9))
    assert found["extra"][1] == batch["extra"][1]
    assert len(found["a.b"][0]) < len(messages(9))
    assert found["why"] == ["", ""]


@pytest.mark.parametrize(("column", "what"), [("n", "holds no conversation"), ("chat", "no column is called")])
def test_a_named_column_without_conversations_is_an_error(column: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        compact_batch({"n": [[1, 2]], "messages": [messages(9)]}, column=column, target=1500)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.splitlines()[0])
def test_the_examples_run_as_they_stand(example: str, work: Path) -> None:
    needed = re.match(r"# needs: (\w+)", example)
    if needed and find_spec(needed[1]) is None:
        pytest.skip(f"{needed[1]} is not installed")
    (work / "data").mkdir()
    large = b"".join(row(number, 60) for number in range(3))
    for name in ("chats.jsonl", "data/one.jsonl", "data/two.jsonl"):
        (work / name).write_bytes(large)
    (work / "example.py").write_text(example, encoding="utf-8")
    quiet = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(work / "hf"), "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    command = [sys.executable, "example.py"]
    done = subprocess.run(command, env={**os.environ, **quiet}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = plain(work / "chats.jsonl", "-t", "16k", "-f")
    if needed is None:
        assert done.stdout == "6 1\n"
        assert (work / "compacted/chats.jsonl").read_bytes() == expected
    elif needed[1] == "datatrove":
        assert [path.read_bytes() for path in sorted((work / "compacted").glob("*.jsonl"))] == [expected] * 2
    else:
        found = [json.loads(line)["messages"] for line in (work / "chats16k.jsonl").read_text().splitlines()]
        wanted = [json.loads(line)["messages"] for line in expected.splitlines()]
        assert [len(conversation) for conversation in found] == [len(conversation) for conversation in wanted]
        assert all(conversation[-1]["content"] == messages(60)[-1]["content"] for conversation in found)
        assert (work / "chats16k.parquet").stat().st_size > 0


def test_the_plan_follows_from_the_figures_next_to_it() -> None:
    """Run ``python benchmarks/petabyte.py --write`` to write it anew."""
    command = [sys.executable, str(ROOT / "benchmarks/petabyte.py")]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"<!-- petabyte -->\n{made}<!-- /petabyte -->" in DOCS
