"""``--events``: what happened, a line each, by the schema, whoever did the work."""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from cli_cases import Run, dataset_bytes, session_bytes
from llm_server.client import LlmServer

from compactor_cli.run.documents import faults


def events(path: str = "events.jsonl") -> list[dict[str, Any]]:
    """What was written, each line checked."""
    found = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    assert [fault for event in found for fault in faults("event", event)] == []
    return found


def names(found: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in found]


def test_one_session_has_events_from_its_beginning_to_its_archive(work: Path, compact: Run) -> None:
    ran = compact("-t", "1500", "session.jsonl", "--events", "events.jsonl")
    assert (ran.code, ran.err) == (0, "")
    found = events()
    assert names(found) == ["run", "begin", "plan", "transcript", "end", "done"]
    run, begin, plan, transcript, end, done = found
    assert (run["inputs"], run["purpose"]) == (1, "act")
    assert begin["path"] == plan["path"] == end["path"] == "session.jsonl"
    assert plan["target_tokens"] == 1500
    assert transcript["summary_source"] == "digest"
    assert end["tokens_before"] == plan["tokens_before"] > end["tokens_after"] == transcript["tokens_after"]
    assert Path(end["archive"]).exists()
    assert done["exit_code"] == 0


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_events_of_inputs_are_whole_and_in_order_whatever_the_processes(
    jobs: str, work: Path, compact: Run
) -> None:
    for number in range(6):
        (work / f"s{number}.jsonl").write_bytes(session_bytes(8 + number))
    (work / "s3.jsonl").write_bytes(b'{"role": "user", "content": "torn')
    files = [f"s{number}.jsonl" for number in range(6)]
    ran = compact("-t", "1000", "-j", jobs, "--output-dir", "out", "--events", "events.jsonl", *files)
    assert ran.code == 3
    found = events()
    by_input = {path: names(list(group)) for path, group in groupby(found[1:-1], key=lambda event: event["path"])}
    assert list(by_input) == files, "not mixed, and in the order of the inputs"
    assert by_input.pop("s3.jsonl") == ["begin", "error", "end"]
    assert set(map(tuple, by_input.values())) == {("begin", "plan", "transcript", "end")}
    assert names([found[0], found[-1]]) == ["run", "done"]
    assert found[-1]["exit_code"] == 3


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_every_row_of_a_dataset_has_events(jobs: str, work: Path, compact: Run) -> None:
    rows = dataset_bytes(5).splitlines(keepends=True)
    (work / "rows.jsonl").write_bytes(b"".join([*rows[:2], b'{"no": "conversation"}\n', *rows[2:]]))
    assert compact("-t", "600", "-j", jobs, "rows.jsonl", "-o", "o.jsonl", "--events", "events.jsonl").code == 3
    found = events()
    assert [event["line"] for event in found if event["event"] == "transcript"] == [1, 2, 0, 4, 5, 6]
    (error, of_input) = (event for event in found if event["event"] == "error")
    assert "rows.jsonl:3: no format is recognised" in error["error"]
    assert "line" not in of_input


def test_each_call_of_a_model_is_an_event_between_plan_and_end(
    work: Path, compact: Run, llm_server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(work.parent / name))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test-0123456789")
    model_options = ("-m", "openai/well", "--api-base", llm_server.openai, "-t", "2500", "session.jsonl")
    compact(*model_options, "--events", "events.jsonl")
    compact(*model_options, "--events", "events.jsonl")
    found = events()
    assert names(found) == ["run", "begin", "plan", "call", "transcript", "end", "done"] * 2, "it is appended"
    calls = [event for event in found if event["event"] == "call"]
    assert [call["reply"] for call in calls] == ["answered", "cached"]
    assert calls[0]["input_tokens"] > 0
    assert calls[0]["transcript"] == found[2]["transcript"]
    Path("events.jsonl").unlink()
    broken = ("-m", "openai/auth", "--api-base", llm_server.openai, "-t", "2500", "session.jsonl")
    compact(*broken, "--events", "events.jsonl")
    failed = [event for event in events() if event["event"] == "call"]
    assert [(call["reply"], call["error"] != "") for call in failed] == [("failed", True)]
    assert "sk-of-this-test" not in Path("events.jsonl").read_text()


def test_several_inputs_at_once_keep_their_own_order(
    work: Path, compact: Run, llm_server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(work.parent / name))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test-0123456789")
    files = [f"s{number}.jsonl" for number in range(4)]
    for number, file in enumerate(files):
        (work / file).write_bytes(session_bytes(12 + number))
    options = ("-m", "openai/well", "--api-base", llm_server.openai, "-t", "2500", "--output-dir", "out")
    assert compact(*options, "--events", "events.jsonl", *files).code == 0
    found = events()
    for file in files:
        own = [event["event"] for event in found if event.get("path") == file]
        assert own == ["begin", "plan", "transcript", "end"]
    assert Counter(names(found))["call"] == 4


def test_a_descriptor_takes_events_and_standard_output_only_if_it_is_free(work: Path, spawn: Run) -> None:
    reader, writer = os.pipe()
    ran = spawn("-t", "1500", "session.jsonl", "--events", f"fd:{writer}", pass_fds=(writer,))
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert [json.loads(line)["event"] for line in pipe][-1] == "done"
    assert ran.code == 0
    assert spawn("-t", "1500", "session.jsonl", "--events", "fd:1").code == 2
    told = spawn("-t", "1500", "session.jsonl", "-o", "o.jsonl", "--events", "fd:1")
    assert [json.loads(line)["event"] for line in told.out.splitlines()][-1] == "done"


@pytest.mark.parametrize("where", ["fd:977", "fd:x", "no/such/folder/events.jsonl", "fd:99999999999999999999"])
def test_where_nothing_can_be_written_nothing_is_begun(where: str, work: Path, compact: Run) -> None:
    ran = compact("-t", "1500", "-i", "session.jsonl", "--events", where)
    assert (ran.code, ran.out) == (2, b"")
    assert "events cannot be written" in ran.err
    assert (work / "session.jsonl").read_bytes() == session_bytes()


def test_a_listener_that_went_away_does_not_stop_the_run(work: Path, spawn: Run) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ran = spawn("-t", "1500", "session.jsonl", "-o", "o.jsonl", "--events", f"fd:{writer}", pass_fds=(writer,))
    os.close(writer)
    assert ran.code == 0
    assert "the events could not be written" in ran.err
    assert (work / "o.jsonl").stat().st_size < len(session_bytes())


def test_a_run_that_does_not_start_emits_its_end(work: Path, compact: Run) -> None:
    assert compact("-t", "1500", "--set", "template=none", "session.jsonl", "--events", "events.jsonl").code == 2
    found = events()
    assert names(found) == ["error", "done"]
    assert found[-1]["exit_code"] == 2


def test_a_look_emits_plans_and_writes_nothing(work: Path, compact: Run) -> None:
    compact("-n", "-t", "1500", "session.jsonl", "--events", "events.jsonl")
    found = events()
    assert names(found) == ["run", "begin", "plan", "transcript", "end", "done"]
    assert (found[0]["purpose"], found[4]["archive"]) == ("plan", "")
