"""Hooks before and after, and notes of the session."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_cases import Run, session_bytes
from llm_server.client import LlmServer

NO_MAIL = "sys.exit('no mail today')"
WISHES = ("-t", "2500", "session.jsonl", "-o", "out.jsonl", "--report", "report.json")


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test-0123456789")
    return home


def hook(name: str, *lines: str) -> str:
    """A hook that keeps what it is given in NAME.json, then runs these lines."""
    body = ["import json, sys", "told = json.load(sys.stdin)", f"json.dump(told, open('{name}.json', 'w'))", *lines]
    Path(f"{name}.py").write_text("\n".join(body), encoding="utf-8")
    return f"{sys.executable} {name}.py"


def told(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(f"{name}.json").read_text(encoding="utf-8"))
    return found


def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("report.json").read_text(encoding="utf-8"))["inputs"][0]
    return found


def test_hooks_hear_of_plan_and_outcome(work: Path, compact: Run) -> None:
    lines = ("import os", "assert not os.path.exists('out.jsonl')")
    before, after = hook("before", *lines), hook("after", "assert open('out.jsonl').read()")
    ran = compact("--set", f"hook-before={before}", "--set", f"hook-after={after}", *WISHES)
    assert (ran.code, ran.err) == (0, "")
    first, last = told("before"), told("after")
    assert (first["hook"], first["path"], first["output"]) == ("before", "session.jsonl", "out.jsonl")
    assert first["plan"]["spans"][0]["action"] == "keep"
    assert first["tokens_before"] > first["tokens_after"] > 0
    assert (last["hook"], last["output"]) == ("after", "out.jsonl")
    assert last["tokens_after"] == report()["tokens_after"] <= first["tokens_after"]
    assert Path(last["archive"]).exists()


def test_the_hook_before_can_object(work: Path, compact: Run) -> None:
    before = hook("before", "print('not now', file=sys.stderr)", "sys.exit(3)")
    after = hook("after")
    ran = compact("--set", f"hook-before={before}", "--set", f"hook-after={after}", *WISHES)
    assert ran.code == 0
    assert "left as it was: the hook before it ended with code 3: not now" in ran.err
    sizes = report()
    assert sizes["tokens_before"] == sizes["tokens_after"] > sizes["transcripts"][0]["target_tokens"] > 0
    assert Path("out.jsonl").read_bytes() == session_bytes()
    assert not Path("after.json").exists()


def test_what_the_hook_says_is_an_instruction(work: Path, compact: Run, llm_server: LlmServer) -> None:
    before = hook("before", "print('Name the harbour master.')")
    model = ("-m", "openai/well", "--api-base", llm_server.openai)
    assert compact("--set", f"hook-before={before}", *model, *WISHES).code == 0
    assert "Name the harbour master." in json.dumps(llm_server.requests()[0]["body"])


def test_a_hook_that_cannot_be_run_or_hangs_stops_the_input(work: Path, compact: Run) -> None:
    ran = compact("--set", "hook-before=./there-is-no-such-hook", *WISHES)
    assert ran.code == 3
    assert "cannot be run" in ran.err
    slow = hook("slow", "import time", "time.sleep(600)")
    ran = compact("--set", f"hook-before={slow}", "--set", "hook-timeout=1", *WISHES)
    assert ran.code == 3
    assert "took more than 1 seconds" in ran.err
    assert not Path("out.jsonl").exists()


def test_a_failed_hook_after_is_a_warning_and_the_output_stays(work: Path, compact: Run) -> None:
    ran = compact("--set", f"hook-after={hook('after', NO_MAIL)}", *WISHES)
    assert ran.code == 0
    assert "the hook after it ended with code 1: no mail today" in ran.err
    assert report()["warnings"] == ["the hook after it ended with code 1: no mail today"]
    assert Path("out.jsonl").stat().st_size < len(session_bytes())


def test_no_shell_takes_part(work: Path, compact: Run) -> None:
    ran = compact("--set", f"hook-before={hook('before')} > shell.txt; touch shell.txt", *WISHES)
    assert ran.code == 0
    assert not Path("shell.txt").exists()
    assert compact("--set", "hook-before=unfinished 'quote", *WISHES, "-f").code == 2


def test_looks_and_inputs_that_need_nothing_run_no_hook(work: Path, compact: Run) -> None:
    before = hook("before")
    compact("--set", f"hook-before={before}", "-n", "-t", "2500", "session.jsonl")
    compact("--set", f"hook-before={before}", "--check", "-t", "2500", "session.jsonl")
    compact("--set", f"hook-before={before}", "-t", "900k", "session.jsonl")
    assert not Path("before.json").exists()


def test_a_project_may_not_run_commands(work: Path, compact: Run) -> None:
    (work / "compact.toml").write_text('hook-after = "touch x"', encoding="utf-8")
    ran = compact(*WISHES)
    assert ran.code == 2
    assert "may not run commands" in ran.err


def test_a_note_is_preferred_to_a_model(work: Path, compact: Run, llm_server: LlmServer) -> None:
    (work / "note.md").write_text(
        "# Current state\nAll off-by-one errors up to module_7 are fixed.\n", encoding="utf-8"
    )
    model = ("-m", "openai/well", "--api-base", llm_server.openai)
    ran = compact("--set", "memory=note.md", *model, *WISHES)
    assert ran.code == 0, ran.err
    assert llm_server.requests() == []
    (transcript,) = report()["transcripts"]
    assert transcript["summary_source"] == "memory"
    assert transcript["tokens_after"] <= 2_500
    output = Path("out.jsonl").read_text(encoding="utf-8")
    assert "All off-by-one errors up to module_7 are fixed." in output
    assert "src/module_3.py" in output
    assert compact("-t", "2500", "out.jsonl").out.decode() == output


def test_a_note_that_is_too_long_gives_way(work: Path, compact: Run) -> None:
    (work / "note.md").write_text("The tide tables are fixed. " * 2_000, encoding="utf-8")
    assert compact("--set", "memory=note.md", *WISHES).code == 0
    (transcript,) = report()["transcripts"]
    assert transcript["summary_source"] == "digest"
    assert any("note was not used: it takes" in note for note in transcript["notes"])


def test_notes_by_the_session_s_name(work: Path, compact: Run) -> None:
    (work / "notes").mkdir()
    (work / "notes/session.md").write_text("The harbour master wants the tables by Friday.", encoding="utf-8")
    (work / "other.jsonl").write_bytes(session_bytes(13))
    run_options = ("-t", "2500", "session.jsonl", "other.jsonl", "--output-dir", "out")
    assert compact("--set", "memory=notes/{name}.md", *run_options).code == 0
    assert b"harbour master" in Path("out/session.jsonl").read_bytes()
    assert b"harbour master" not in Path("out/other.jsonl").read_bytes()
    assert compact("--set", "memory=notes/session.md", *run_options, "-f").code == 2
    assert compact("--set", "memory=notes/none.md", *WISHES).code == 2
