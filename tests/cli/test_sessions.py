"""The sessions of agents on a machine: found where their clients keep them, listed, chosen, compacted."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from cli_cases import Run, command

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SESSION_ID = "74757171-62f0-59e7-af1f-74183cfde94e"
PLACES = {
    "claude": ("claude-code.jsonl", f".claude/projects/-x/{SESSION_ID}.jsonl", "/home/mara/tidegate"),
    "codex": (
        "codex-rollout.jsonl",
        f".codex/sessions/2026/11/20/rollout-2026-11-20T10-00-00-{SESSION_ID}.jsonl",
        "/home/ines/slotbook",
    ),
    "pi": ("pi-session.jsonl", f".pi/agent/sessions/--x--/2026-11-20T10-00-00_{SESSION_ID}.jsonl", "/home/tomo/plotpi"),
    "gemini": ("gemini-cli.jsonl", ".gemini/tmp/tide/chats/session-2026-11-20T10-00-1af04396.jsonl", "/srv/tide"),
    "qwen": ("qwen-code.jsonl", f".qwen/projects/-x/chats/{SESSION_ID}.jsonl", "/home/maren/tide"),
    "kimi-cli": (
        "kimi-cli.jsonl",
        f".kimi/sessions/{hashlib.md5(b'/srv/kimi').hexdigest()}/{SESSION_ID}/context.jsonl",
        "/srv/kimi",
    ),
    "kimi": ("kimi-wire.jsonl", f".kimi-code/sessions/wd_x_1/{SESSION_ID}/agents/main/wire.jsonl", "/srv/code"),
}
ROOTS = {
    "claude": ("CLAUDE_CONFIG_DIR", ".claude"),
    "codex": ("CODEX_HOME", ".codex"),
    "pi": ("PI_CODING_AGENT_DIR", ".pi/agent"),
    "gemini": ("GEMINI_CLI_HOME", ""),
    "qwen": ("QWEN_RUNTIME_DIR", ".qwen"),
    "kimi-cli": ("KIMI_SHARE_DIR", ".kimi"),
    "kimi": ("KIMI_CODE_HOME", ".kimi-code"),
}


@pytest.fixture(autouse=True)
def _no_places_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, _ in (*ROOTS.values(), ("QWEN_HOME", "")):
        monkeypatch.delenv(variable, raising=False)


def _keep(client: str, home: Path) -> Path:
    """A session of this client, below this home folder, written an hour ago."""
    sample, place, project = PLACES[client]
    path = home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(SAMPLES / sample, path)
    hour_ago = time.time() - 3_600
    os.utime(path, (hour_ago, hour_ago))
    if client == "gemini":
        (home / ".gemini/projects.json").write_text(json.dumps({"projects": {project: "tide"}}))
    if client == "kimi-cli":
        (home / ".kimi/kimi.json").write_text(json.dumps({"work_dirs": [{"path": project}]}))
    if client == "kimi":
        (path.parents[2] / "state.json").write_text(json.dumps({"cwd": project}))
    return path


def _first(path: Path) -> dict[str, str]:
    record: dict[str, str] = json.loads(path.read_bytes().splitlines()[0])
    return record


@pytest.mark.parametrize("client", PLACES)
def test_a_session_is_found_where_its_client_keeps_it(client: str, home: Path, compactor: Run) -> None:
    path = _keep(client, home)
    (found,) = map(json.loads, compactor("sessions", "--json").out.splitlines())
    assert (found["client"], found["path"], found["project"]) == (client, str(path), PLACES[client][2])
    assert found["tokens"] > 500
    assert found["error"] == ""
    assert found["id"] == (SESSION_ID if client != "gemini" else _first(path)["sessionId"])
    assert (str(path) if client == "pi" else found["id"]) in found["resume"]


@pytest.mark.parametrize("client", PLACES)
def test_the_variables_of_a_client_say_where_it_keeps_them(
    client: str, home: Path, compactor: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = home / "elsewhere"
    path = _keep(client, elsewhere)
    assert compactor("sessions", "--json").out == b""
    variable, below = ROOTS[client]
    monkeypatch.setenv(variable, str(elsewhere / below))
    (found,) = map(json.loads, compactor("sessions", "--json").out.splitlines())
    assert (found["client"], found["path"]) == (client, str(path))


def test_the_command_that_is_offered_compacts_so_that_the_client_can_go_on(home: Path, compactor: Run) -> None:
    appended, replaced = _keep("codex", home), _keep("kimi-cli", home)
    commands = {json.loads(line)["compact"] for line in compactor("sessions", "--json").out.splitlines()}
    assert commands == {f"compact --append {appended}", f"compact -i {replaced}"}


def test_the_list_fits_a_terminal_of_80_columns_and_ends_with_totals(
    home: Path, compactor: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for client in PLACES:
        _keep(client, home)
    monkeypatch.setenv("COLUMNS", "80")
    *table, totals = compactor("sessions").out.decode().splitlines()
    assert len(table) == 1 + len(PLACES)
    assert max(map(len, table)) <= 80
    assert totals.startswith("7 sessions, ")
    monkeypatch.setenv("COLUMNS", "220")
    assert f"~/.claude/projects/-x/{SESSION_ID}.jsonl" in compactor("sessions").out.decode()


def test_the_list_fits_the_terminal_where_a_project_has_wide_characters(
    home: Path, compactor: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = _keep("kimi", home).parents[2] / "state.json"
    state.write_text(json.dumps({"cwd": f"/srv/{'潮門' * 20}"}))
    for columns in range(80, 260, 10):
        monkeypatch.setenv("COLUMNS", str(columns))
        row = compactor("sessions").out.decode().splitlines()[1]
        assert sum(2 if char in "潮門" else 1 for char in row) <= columns


def test_the_list_is_limited_and_says_how_many_more_there_are(home: Path, compactor: Run) -> None:
    for client in PLACES:
        _keep(client, home)
    shown = compactor("sessions", "--limit", "2").out.decode()
    assert len(shown.splitlines()) == 4
    assert "5 more" in shown


def test_the_largest_come_first_by_size(home: Path, compactor: Run) -> None:
    for client in PLACES:
        _keep(client, home)
    sizes = [json.loads(line)["bytes"] for line in compactor("sessions", "--sort", "size", "--json").out.splitlines()]
    assert sizes == sorted(sizes, reverse=True)


def test_only_the_sessions_of_the_clients_that_are_named_are_listed(home: Path, compactor: Run) -> None:
    for client in PLACES:
        _keep(client, home)
    found = compactor("sessions", "pi", "Codex", "--json").out.splitlines()
    assert {json.loads(line)["client"] for line in found} == {"pi", "codex"}
    assert compactor("sessions", "emacs").code == 2


def test_a_session_that_cannot_be_read_is_listed_with_its_error(home: Path, compactor: Run) -> None:
    _keep("pi", home)
    _keep("claude", home).write_bytes(b"no session\n")
    found = [json.loads(line) for line in compactor("sessions", "--json").out.splitlines()]
    assert sorted(bool(item["error"]) for item in found) == [False, True]


def test_sessions_in_a_database_are_named_with_the_way_to_a_file(home: Path, compactor: Run) -> None:
    folder = home / "data/opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.db").write_bytes(b"SQLite format 3")
    assert "opencode export ID > session.json" in compactor("sessions").out.decode()


def _here(path: Path, project: str) -> None:
    """Make the session one of the working directory."""
    folder = json.dumps(str(Path.cwd()))[1:-1]
    path.write_bytes(path.read_bytes().replace(project.encode(), folder.encode()))


def test_the_newest_session_of_this_folder_is_compacted_and_resumable(home: Path, compact: Run) -> None:
    path = _keep("claude", home)
    _here(path, "/home/mara/tidegate")
    _keep("codex", home)
    before = path.read_bytes()
    ran = compact("--last", "claude", "--append", "-t", "4k", "-v")
    assert ran.code == 0, ran.err
    assert path.read_bytes().startswith(before)
    assert b"compact_boundary" in path.read_bytes()[len(before) :]
    assert f"go on with it: claude --resume {SESSION_ID}" in ran.err


def test_a_session_of_a_folder_above_this_one_counts_as_of_this_folder(
    home: Path, compact: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _keep("claude", home)
    _here(path, "/home/mara/tidegate")
    (home / "work/sub").mkdir()
    monkeypatch.chdir(home / "work/sub")
    assert compact("--last", "any", "-t", "4k").code == 0


def test_without_a_session_of_this_folder_it_says_where_others_are(home: Path, compact: Run) -> None:
    _keep("claude", home)
    ran = compact("--last", "claude", "--append")
    assert ran.code == 2
    assert "1 session of other folders: compactor sessions lists them" in ran.err


def test_an_input_and_the_last_session_exclude_one_another(work: Path, compact: Run) -> None:
    assert compact("--last", "claude", "session.jsonl").code == 2


def test_a_session_that_was_written_to_just_now_is_warned_of(home: Path, compact: Run) -> None:
    path = _keep("claude", home)
    _here(path, "/home/mara/tidegate")
    assert "leave it first" in compact("--last", "claude", "--append", "-t", "4k").err


def _on_terminal(answers: str) -> tuple[int, str]:
    """What `compactor sessions` ends with and shows on a terminal on which this is typed."""
    environ = os.environ | {"COMPACT_TARGET": "4k", "NO_COLOR": "1", "COLUMNS": "100"}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("sessions", entry="compactor"), stdin=theirs, stdout=theirs, stderr=theirs, env=environ
    )
    os.close(theirs)
    os.write(ours, answers.encode())
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:
            break
        shown += piece
    os.close(ours)
    return process.wait(60), shown.decode()


def test_a_session_is_picked_on_a_terminal_and_compacted_after_a_yes(home: Path) -> None:
    path = _keep("claude", home)
    before = path.read_bytes()
    code, shown = _on_terminal("1\ny\n")
    assert code == 0, shown
    assert f"compact --append {path}" in shown
    assert f"go on with it: claude --resume {SESSION_ID}" in shown
    assert len(path.read_bytes()) > len(before)


@pytest.mark.parametrize("answers", ["\n", "1\nn\n", "9\n", "\x04"], ids=["enter", "no", "unknown", "end of input"])
def test_without_a_session_picked_and_a_yes_all_is_as_it_was(answers: str, home: Path) -> None:
    path = _keep("claude", home)
    before = path.read_bytes()
    code, shown = _on_terminal(answers)
    assert code == 0, shown
    assert "defect" not in shown
    assert path.read_bytes() == before
