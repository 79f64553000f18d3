"""``compactor``: the tools around the filter."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from cli_cases import Run, session_bytes

from compactor_cli.cli.program import TOOLS
from compactor_cli.presets import preset_names
from compactor_cli.run.documents import schema_names


def test_without_a_command_the_help_is_shown_as_an_error(compactor: Run) -> None:
    ran = compactor()
    assert (ran.code, ran.out) == (2, b"")
    assert all(f"\n  {name} " in ran.err for name in TOOLS)


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_has_help(name: str, compactor: Run) -> None:
    ran = compactor(name, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(b"Usage: ")


def test_an_unknown_tool_is_a_usage_error(compactor: Run) -> None:
    ran = compactor("stat")
    assert ran.code == 2
    assert ran.err.startswith("compactor: ")
    assert "stats" in ran.err


def test_an_unknown_option_of_a_tool_leads_to_the_help_of_that_tool(compactor: Run) -> None:
    ran = compactor("archive", "prune", "--tide")
    assert ran.code == 2
    assert "see compactor archive prune --help" in ran.err


def test_presets_are_listed_and_printed(compactor: Run) -> None:
    listed = compactor("presets").out.decode()
    assert all(name in listed for name in preset_names())
    names = [json.loads(line)["name"] for line in compactor("presets", "--json").out.splitlines()]
    assert tuple(names) == preset_names()
    assert tomllib.loads(compactor("presets", "kimi").out.decode())["template"] == "kimi"
    assert compactor("presets", "kimmi").code == 2


def test_a_printed_preset_can_be_changed_and_used(work: Path, compact: Run, compactor: Run) -> None:
    text = compactor("presets", "default").out.decode()
    (work / "mine.toml").write_text('target = "1500"\n' + text)
    assert compact("--preset", "mine.toml", "session.jsonl").out == compact("-t", "1500", "session.jsonl").out


def test_formats_are_listed_by_the_names_that_can_be_given(work: Path, compact: Run, compactor: Run) -> None:
    names = [json.loads(line)["name"] for line in compactor("formats", "--json").out.splitlines()]
    assert "openai-chat" in names
    assert all(name in compactor("formats").out.decode() for name in names)
    assert compact("--format", "openai-chat", "-t", "100k", "session.jsonl").code == 0


def test_schemas_are_listed_and_printed(compactor: Run) -> None:
    listed = compactor("schema").out.decode()
    assert all(name in listed for name in schema_names())
    for name in schema_names():
        assert json.loads(compactor("schema", name).out)["$id"] == f"urn:compact:schema:{name}"
    assert compactor("schema", "nothing").code == 2


def test_stats_count_each_input(work: Path, compactor: Run) -> None:
    ran = compactor("stats", "-w", "10k", "session.jsonl", "rows.jsonl", "--json")
    session, rows = (json.loads(line) for line in ran.out.splitlines())
    assert (session["records"], session["messages"], session["turns"], session["calls"]) == (49, 49, 12, 12)
    assert (session["formats"], session["conversations"], session["orphans"]) == (["openai-chat"], 1, 0)
    assert session["pressure_ratio"] == round(session["tokens"] / 10_000, 4)
    assert rows["conversations"] == 5
    shown = compactor("stats", "session.jsonl").out.decode()
    assert f"{session['tokens']:,}" in shown


@pytest.mark.parametrize("columns", [80, 200])
def test_the_table_of_stats_fits_the_terminal(
    home: Path, compactor: Run, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    names = ("projects", "a-folder-with-a-long-name", "and-another-one-that-is-longer-still", "sessions-of-november")
    deep = home.joinpath(*names)
    deep.mkdir(parents=True)
    for number in range(3):
        (deep / f"session-{number}.jsonl").write_bytes(session_bytes(3 + number))
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = compactor("stats", "-r", deep).out.decode()
    head, *rows, total = shown.splitlines()
    assert max(map(len, shown.splitlines())) <= columns
    assert [row.split("session-")[1] for row in rows] == ["2.jsonl", "1.jsonl", "0.jsonl"]
    tokens = [int(row.split()[0].replace(",", "")) for row in (*rows, total)]
    assert (sum(tokens[:-1]), total.endswith("total of 3")) == (tokens[-1], True)
    assert ("~/projects/a-folder" in shown) is (columns == 200)
    assert head.startswith("tokens")
    assert not any(word in head for word in ("orphan", "pressure"))


def test_stats_count_calls_alike_whatever_format_a_session_is_written_in(
    work: Path, compact: Run, compactor: Run
) -> None:
    calls = [{"id": key, "type": "function", "function": {"name": "look", "arguments": "{}"}} for key in "abc"]
    messages = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": None, "tool_calls": calls}]
    messages += [{"role": "tool", "tool_call_id": key, "content": "seen"} for key in "abc"]
    (work / "chat.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    assert compact("--no-compact", "--to", "sharegpt", "chat.jsonl", "-o", "serial.jsonl").code == 0
    ran = compactor("stats", "chat.jsonl", "serial.jsonl", "--json")
    assert [json.loads(line)["calls"] for line in ran.out.splitlines()] == [3, 3]


def test_stats_go_on_after_an_input_that_cannot_be_read(work: Path, compactor: Run) -> None:
    ran = compactor("stats", "missing.jsonl", "session.jsonl", "--json")
    assert ran.code == 3
    assert json.loads(ran.out)["path"] == "session.jsonl"
    assert "missing.jsonl: no such file" in ran.err


def test_stats_name_orphans(work: Path, compactor: Run) -> None:
    lines = session_bytes(3).splitlines(keepends=True)
    (work / "torn.jsonl").write_bytes(b"".join(lines[:3] + lines[4:]))
    assert json.loads(compactor("stats", "torn.jsonl", "--json").out)["orphans"] == 1


def test_an_original_is_restored_to_a_file(work: Path, compact: Run, compactor: Run) -> None:
    compact("-t", "1500", "session.jsonl", "--archive-dir", "kept", "-o", "small.jsonl")
    (stored,) = (work / "kept").rglob("*.jsonl.zst")
    assert compactor("restore", stored.name[:16], "--archive-dir", "other").code == 3
    assert compactor("restore", stored.name[:16], "--archive-dir", "kept", "-o", "back.jsonl").code == 0
    assert (work / "back.jsonl").read_bytes() == session_bytes()
    refused = compactor("restore", stored.name[:16], "--archive-dir", "kept", "-o", "back.jsonl")
    assert refused.code == 3
    assert "-f" in refused.err
    assert compactor("restore", stored.name[:16], "--archive-dir", "kept", "-o", "back.jsonl", "-f").code == 0


def test_the_hash_in_the_summary_restores_what_it_stands_for(work: Path, compact: Run, compactor: Run) -> None:
    out = compact("-t", "1500", "--archive", "session.jsonl").out.decode()
    digits = out.split("[compact/1 transcript=")[1].split()[0]
    assert compactor("restore", digits).out == session_bytes()


def test_an_archive_is_verified(work: Path, compact: Run, compactor: Run) -> None:
    assert "no archive yet" in compactor("verify").err
    compact("-t", "1500", "session.jsonl", "--archive-dir", "kept")
    sound = compactor("verify", "kept")
    assert (sound.code, sound.err) == (0, "")
    assert b"kept: sound, 1 original" in sound.out
    (stored,) = (work / "kept").rglob("*.jsonl.zst")
    stored.write_bytes(stored.read_bytes()[:-9])
    broken = compactor("verify", "kept")
    assert (broken.code, broken.out) == (3, b"")
    assert stored.name[:8] in broken.err


def test_your_archive_is_verified_without_being_named(work: Path, compact: Run, compactor: Run) -> None:
    compact("-t", "1500", "--archive", "session.jsonl")
    assert b"sound, 1 original" in compactor("verify").out


def test_transcripts_are_verified(work: Path, compact: Run, compactor: Run) -> None:
    compact("-t", "1500", "session.jsonl", "-o", "small.jsonl")
    sound = compactor("verify", "small.jsonl", "rows.jsonl")
    assert (sound.code, sound.err) == (0, "")
    assert b"rows.jsonl: sound, 5 conversations, " in sound.out
    lines = session_bytes(3).splitlines(keepends=True)
    (work / "torn.jsonl").write_bytes(b"".join(lines[:3] + lines[4:]))
    torn = compactor("verify", "torn.jsonl")
    assert torn.code == 3
    assert "torn.jsonl:3: a call without its result" in torn.err


def test_eval_asks_questions_of_every_file_named_after_the_option(work: Path, compactor: Run) -> None:
    (work / "long.jsonl").write_bytes(session_bytes(120))
    about = {"type": "ask", "question": "?", "answer": "!", "keys": ["nowhere at all"]}
    for name in ("a", "b"):
        row = {"file": "long.jsonl", "cut": 100, "id": name, **about}
        (work / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    ran = compactor("eval", "--budgets", "700", "--tail", "long=50", "--json", "--questions", "a.jsonl", "b.jsonl")
    result = json.loads(ran.out)
    assert ran.code == 0
    assert {reading["id"] for reading in result["readings"]} == {"a", "b"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing to evaluate"),
        (("--questions", "gone.jsonl"), "gone.jsonl: the questions cannot be read"),
        (("--at", "client", "session.jsonl"), "--at needs --questions"),
        (("--questions", "q", "--at", "client", "--budgets", "5%"), "--budgets does not go with --at client"),
        (("session.jsonl", "--tail", "talk=500"), "only goes with --questions"),
    ],
)
def test_eval_refuses_options_that_would_do_nothing(
    work: Path, compactor: Run, arguments: tuple[str, ...], said: str
) -> None:
    ran = compactor("eval", *arguments)
    assert ran.code == 2
    assert said in ran.err


@pytest.mark.parametrize(("name", "why"), [("no/such.jsonl", "no such file"), ("empty", "there is no transcript")])
def test_an_evaluation_that_measures_nothing_is_exit_3(name: str, why: str, work: Path, compactor: Run) -> None:
    (work / "empty").mkdir()
    ran = compactor("eval", name)
    assert (ran.code, ran.out) == (3, b"")
    assert f"compactor: {name}: nothing was measured: {why}: " in ran.err


def test_a_digest_of_nothing_names_standard_input(work: Path, spawn: Run) -> None:
    ran = spawn("digest", stdin=b"", entry="compactor")
    assert (ran.code, ran.err) == (3, "compactor: standard input: it holds no conversation: name another\n")


def test_eval_prints_figures(work: Path, compactor: Run) -> None:
    (work / "long.jsonl").write_bytes(session_bytes(120))
    ran = compactor("eval", "long.jsonl", "--budgets", "10%", "--baselines", "tail", "--no-drift", "--json")
    result = json.loads(ran.out)
    assert result["methods"] == ["digest", "tail"]
    assert ran.code == (0 if result["gates_hold"] else 1)
