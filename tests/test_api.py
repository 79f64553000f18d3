"""The public API: what a program is given back for what it gives; docs/python-api.md is run from top to bottom."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llm_server.client import LlmServer

import compactor_cli
from compactor_cli import CompactError, Settings, compact, compact_batch, iter_compact
from compactor_cli.model.report import Outcome

ROOT = Path(__file__).resolve().parents[1]
SESSIONS = sorted((ROOT / "samples").glob("*.jsonl"))
CHAT = ROOT / "samples/openai-chat.jsonl"
DOCS = (ROOT / "docs/python-api.md").read_text(encoding="utf-8")


def conversation(steps: int = 20) -> list[dict[str, Any]]:
    """A task of this many steps, each with a call and its result."""
    found: list[dict[str, Any]] = [{"role": "system", "content": "You are a careful agent."}]
    for step in range(steps):
        function = {"name": "read_file", "arguments": json.dumps({"path": f"src/part_{step}.py"})}
        calls = [{"id": f"c{step}", "type": "function", "function": function}]
        text = "\n".join(f"line {line} of part {step}: value = {step * line}" for line in range(30))
        found += [
            {"role": "user", "content": f"Please mend part {step} in src/part_{step}.py."},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{step}", "content": text},
            {"role": "assistant", "content": f"Mended part {step}: an off-by-one error."},
        ]
    return found


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory that is home as well."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_messages_in_memory_give_messages_within_the_target() -> None:
    messages = conversation()
    result = compact(messages, "2k")
    assert result.changed
    assert result.report.tokens_after <= 2_000 < result.report.tokens_before
    assert "src/part_17.py" in result.summary
    assert not result.summary.startswith("[")
    assert result.lost == result.report.lost
    assert "paths" in result.lost
    assert messages == conversation()


def test_a_result_says_what_became_of_each_message() -> None:
    messages = conversation()
    result = compact(messages, "2k")
    assert sorted(result.kept + result.covered + result.pruned) == list(range(len(messages)))
    stayed = [message for message in result.messages if any(message is given for given in messages)]
    assert [id(message) for message in stayed] == [id(messages[i]) for i in result.kept]
    (summary,) = [message for message in result.messages if message not in messages]
    assert result.summary in summary["content"]


# Rows of datasets are no messages of one conversation.
@pytest.mark.parametrize(
    "path",
    [path for path in SESSIONS if path.stem not in ("hermes-trajectory", "openai-chat-dataset", "sharegpt")],
    ids=lambda path: path.stem,
)
def test_the_records_of_a_session_are_taken_in_any_format(path: Path) -> None:
    given = records(path)
    result = compact(given, "40%")
    (lines,) = list(iter_compact(path, "40%"))
    assert result.changed
    assert (result.report.dialect, result.kept, result.covered) == (lines.report.dialect, lines.kept, lines.covered)
    assert len(result.messages) == len(lines.messages.splitlines())
    stayed = [message for message in result.messages if any(message is one for one in given)]
    assert [id(message) for message in stayed] == [id(given[i]) for i in result.kept]


def text_part(kind: str, text: str) -> dict[str, Any]:
    return {"content": text, "timestamp": "2026-01-01T00:00:00Z", "part_kind": kind}


def pydantic_ai_messages() -> list[dict[str, Any]]:
    """As `ModelMessagesTypeAdapter.dump_python(messages, mode="json")` gives them."""
    found: list[dict[str, Any]] = []
    for step in range(20):
        call = {"tool_name": "read", "args": {"n": step}, "tool_call_id": f"c{step}", "part_kind": "tool-call"}
        back = {"tool_name": "read", "tool_call_id": f"c{step}", **text_part("tool-return", f"row {step} " * 200)}
        found += [
            {"parts": [text_part("user-prompt", f"Step {step}, please.")], "instructions": None, "kind": "request"},
            {"parts": [call], "model_name": "gpt-4o", "kind": "response"},
            {"parts": [back], "instructions": None, "kind": "request"},
            {"parts": [text_part("text", f"Step {step} is done.")], "model_name": "gpt-4o", "kind": "response"},
        ]
    return found


def langchain_messages() -> list[dict[str, Any]]:
    """As ``[message.model_dump() for message in messages]`` gives them."""
    found: list[dict[str, Any]] = []
    for step in range(20):
        call = {"name": "read", "args": {"n": step}, "id": f"c{step}", "type": "tool_call"}
        back = {"type": "tool", "tool_call_id": f"c{step}", "name": "read", "status": "success", "artifact": None}
        found += [
            {"type": "human", "content": f"Step {step}, please.", "id": None, "additional_kwargs": {}},
            {"type": "ai", "content": "", "tool_calls": [call], "invalid_tool_calls": [], "additional_kwargs": {}},
            {**back, "content": f"row {step} " * 200},
            {"type": "ai", "content": f"Step {step} is done.", "tool_calls": [], "additional_kwargs": {}},
        ]
    return found


@pytest.mark.parametrize(
    ("made", "dialect"), [(pydantic_ai_messages, "pydantic-ai"), (langchain_messages, "langchain")]
)
def test_the_messages_of_a_library_are_compacted_and_a_second_call_changes_nothing(made: Any, dialect: str) -> None:
    messages = made()
    result = compact(messages, "2k", keep={"head_turns": 0})
    assert result.report.dialect == dialect
    assert result.report.tokens_after <= 2_000
    assert result.kept[-1] == len(messages) - 1
    assert result.messages[-1] is messages[-1]
    again = compact(result.messages, "2k", keep={"head_turns": 0})
    assert not again.changed
    assert again.messages == result.messages
    assert again.kept == tuple(range(len(result.messages)))


def test_each_shape_is_given_back_as_it_came(work: Path) -> None:
    data = CHAT.read_bytes()
    (work / "session.jsonl").write_bytes(data)
    (work / "packed.jsonl.gz").write_bytes(gzip.compress(data))
    lines = data.splitlines(keepends=True)
    expected = compact(data, "4k").messages
    assert len(expected) < len(data)
    assert compact(data.decode(), "4k").messages == expected.decode()
    assert compact("session.jsonl", "4k").messages == expected.decode()
    assert compact(work / "packed.jsonl.gz", "4k").messages == expected.decode()
    assert compact(lines, "4k").messages == expected.splitlines(keepends=True)
    assert compact(data.decode().splitlines(), "4k").messages == expected.decode().splitlines()
    unended = data.rstrip(b"\n")
    assert b"".join(compact(unended.splitlines(keepends=True), "4k").messages) == compact(unended, "4k").messages
    with (work / "session.jsonl").open("rb") as file:
        assert b"".join(compact(file, "4k").messages) == expected
    row = {"id": 7, "messages": conversation(), "license": "MIT"}
    found = compact(row, "2k").messages
    assert (found["id"], found["license"], found["messages"][-1]) == (7, "MIT", conversation()[-1])
    assert len(found["messages"]) < len(conversation())


def test_the_bytes_are_those_of_the_command_line(work: Path) -> None:
    (work / "session.jsonl").write_bytes(CHAT.read_bytes())
    command = [
        str(Path(sys.executable).with_name("compact")),
        "session.jsonl",
        "-t",
        "4k",
        "--keep-tail",
        "4turns",
        "-o",
        "-",
    ]
    written = subprocess.run([*command, "--no-archive", "-q"], capture_output=True, check=True).stdout
    assert compact(CHAT.read_bytes(), "4k", keep_tail="4turns").messages == written


def test_no_file_is_written_and_what_is_not_used_is_not_loaded(work: Path) -> None:
    code = (
        "import sys, compactor_cli\n"
        "early = [name for name in sys.modules if name.startswith('compactor_cli.')]\n"
        f"result = compactor_cli.compact({str(CHAT)!r}, '4k')\n"
        "print(early, result.changed, 'litellm' in sys.modules, 'click' in sys.modules)\n"
    )
    before = CHAT.stat()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True False False\n"
    assert list(work.iterdir()) == []
    assert CHAT.stat().st_mtime_ns == before.st_mtime_ns


def test_settings_are_made_of_a_preset_and_tables() -> None:
    settings = Settings("default", target="2k", keep={"head_turns": 0, "tail_tokens": "8k"}, budget=600)
    assert (settings.keep.head_turns, settings.keep.tail_tokens, settings.budget.size.tokens) == (0, 8_000, 600)
    assert settings == Settings(target=2_000, keep={"head-turns": 0, "tail_tokens": 8_000}, budget={"size": "600"})
    assert pickle.loads(pickle.dumps(settings)) == settings
    messages = conversation()
    assert 1 in compact(messages, "4k", keep={"head_turns": 1}).kept
    assert 1 not in compact(messages, settings=settings).kept
    # What is named in the call is laid over them.
    assert 1 in compact(messages, "4k", settings=settings, keep={"head_turns": 1}).kept


def test_keep_and_budget_are_taken_in_short() -> None:
    assert Settings(keep="smart").keep.by == "smart"
    assert Settings(budget="tiered").budget.curve == "tiered"
    assert Settings(keep_tail="25%").keep.tail_ratio == 0.25
    assert Settings(keep_head=0).keep.head_turns == 0


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"kep": "smart"}, "unknown option kep: did you mean keep?"),
        ({"keep": {"head_turn": 1}}, "unknown key head_turn: did you mean head_turns?"),
        ({"target": 0}, "a target of nothing"),
        ({"preset": "hermse"}, "no preset is called hermse: did you mean hermes?"),
        ({"api_base": "http://127.0.0.1:1"}, "api_base is about a model"),
        ({"settings": Settings(), "preset": "hermes"}, "exclude one another"),
    ],
)
def test_what_is_no_option_is_named(options: dict[str, Any], what: str) -> None:
    with pytest.raises(CompactError, match=re.escape(what)):
        compact(conversation(), **options)
    with pytest.raises(CompactError, match=re.escape(what)):
        iter_compact([conversation()], **options)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("missing.jsonl", "missing.jsonl: no such file"),
        (b"", "there is no conversation"),
        (b'{"role": "user", "content": "a"}\n{"torn', "line is torn"),
        ([{"weather": "fine"}], "no format is recognised"),
        ([object()], "a message is not a mapping"),
        ([{"role": "user", "content": object()}], "a message is not JSON"),
        ('{"role": "user", "content": "\ud800"}\n', "half a character"),
        (['{"role": "user", "content": "\ud800"}'], "half a character"),
        ([conversation(2), conversation(2)], "use iter_compact"),
        ([{"messages": conversation(2)}, {"messages": conversation(2)}], "iter_compact"),
    ],
)
def test_what_is_no_conversation_raises(work: Path, source: Any, what: str) -> None:
    with pytest.raises(CompactError, match=what):
        compact(source, "2k")


def test_a_stream_is_read_as_it_is_needed() -> None:
    read: list[int] = []

    def lines() -> Iterator[str]:
        for number in range(1_000):
            read.append(number)
            yield json.dumps({"id": number, "messages": conversation()})

    results = iter_compact(lines(), "2k")
    (line,) = next(results).messages
    assert json.loads(line)["id"] == 0
    (line,) = next(results).messages
    assert json.loads(line)["id"] == 1
    assert len(read) < 10


def test_many_conversations_are_each_given_back_in_order() -> None:
    given = [conversation(20), {"id": 3, "messages": conversation(25)}, conversation(1)]
    first, second, third = (result.messages for result in iter_compact(given, "2k"))
    assert len(first) < len(conversation(20))
    assert second["id"] == 3
    assert third == conversation(1)


def test_a_conversation_that_fails_raises_or_is_kept_with_its_reason() -> None:
    faulty = [{"weather": "fine"}]
    for given in ([conversation(), faulty, conversation()], [conversation(), 42, conversation()]):
        with pytest.raises(CompactError, match=r"no format is recognised|not a list of messages"):
            list(iter_compact(given, "2k"))
        results = list(iter_compact(given, "2k", on_error="keep"))
        assert [result.report.outcome for result in results] == [Outcome.COMPACTED, Outcome.FAILED, Outcome.COMPACTED]
        assert results[1].messages is given[1]
        assert results[1].report.reason


@pytest.mark.parametrize("model", ["openai/well", "well"])
def test_a_model_writes_the_summary_where_one_is_named(work: Path, llm_server: LlmServer, model: str) -> None:
    asked = {"model": model, "api_base": llm_server.openai, "key_file": work / "key"}
    (work / "key").write_text("sk-loopback\n")
    (work / "key").chmod(0o600)
    messages = conversation(60)
    result = compact(messages, "4k", **asked)
    assert result.report.summary_source == "model", result.report.fell_back
    assert {entry["headers"]["authorization"] for entry in llm_server.requests()} == {"Bearer sk-loopback"}
    both = list(iter_compact([messages, messages], "4k", **asked))
    assert [one.report.summary_source for one in both] == ["model", "model"]
    (batched,) = compact_batch({"messages": [messages]}, "4k", **asked)["messages"]
    assert len(batched) == len(result.messages)
    assert [path.name for path in work.iterdir()] == ["key"]


def test_nothing_else_is_public() -> None:
    names = {
        "compact",
        "compact_batch",
        "make_digest",
        "iter_compact",
        "Settings",
        "Result",
        "CompactError",
        "__version__",
    }
    assert set(compactor_cli.__all__) == names
    assert names <= set(dir(compactor_cli))
    with pytest.raises(AttributeError, match="no attribute 'compress'"):
        compactor_cli.compress  # noqa: B018
    for name in names:
        assert f"`{name}" in DOCS


def test_the_guide_runs_from_top_to_bottom_and_prints_what_it_shows(work: Path) -> None:
    shutil.copy(CHAT, work / "session.jsonl")
    rows = [{"id": number, "messages": conversation(20)} for number in range(3)]
    (work / "chats.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)
    code = "".join(text for kind, text in blocks if kind == "python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(text for kind, text in blocks if kind == "text")
