"""``compactor digest``: the summary alone, within the size that was asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agent_cases import SAMPLES, Toolbox
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compactor_cli import compact
from compactor_cli.agents.session_digest import SizeLimit, digest_session, read_session
from compactor_cli.archive.store import Archive
from compactor_cli.formats.codex import PREFIX
from compactor_cli.model.settings import Settings, settings_from
from compactor_cli.plan.tokens import counter_for

SESSIONS = sorted(
    path.name for path in SAMPLES.iterdir() if path.stem not in ("hermes-trajectory", "openai-chat-dataset", "sharegpt")
)
LARGE = SAMPLES / "claude-code.jsonl"


def _json(compactor: Toolbox, *arguments: object) -> dict[str, Any]:
    code, out, err = compactor("digest", *arguments, "--json")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize("name", SESSIONS)
def test_every_format_has_a_digest(compactor: Toolbox, name: str) -> None:
    code, out, _ = compactor("digest", SAMPLES / name)
    assert code == 0
    assert "[compact/1 transcript=" in out


@pytest.mark.parametrize("name", SESSIONS)
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(tokens=st.integers(150, 6_000), chars=st.integers(600, 20_000), both=st.booleans())
def test_a_digest_holds_its_limits(name: str, tokens: int, chars: int, both: bool) -> None:
    transcript = read_session(str(SAMPLES / name))
    whole = settings_from({"keep_tail": 0}, Settings(), "test")
    count = counter_for("auto", transcript.model).count
    text = digest_session(transcript, whole, limit=SizeLimit(tokens=tokens, chars=chars if both else 0)).summary
    assert count(text) <= tokens
    assert not both or len(text) <= chars
    assert len(digest_session(transcript, whole, limit=SizeLimit(chars=chars)).summary) <= chars


def test_a_digest_uses_the_size_that_it_is_given(compactor: Toolbox) -> None:
    lengths = [len(compactor("digest", LARGE, "--chars", chars)[1]) for chars in (2_000, 4_000, 8_000)]
    assert all(0.9 * chars <= length <= chars for chars, length in zip((2_000, 4_000, 8_000), lengths, strict=True))


def test_a_limit_without_room_for_a_summary_says_what_is_enough(compactor: Toolbox) -> None:
    code, out, err = compactor("digest", LARGE, "--chars", 100)
    assert (code, out) == (2, "")
    enough = int(err.rstrip().rpartition(" ")[2].replace(",", ""))
    assert compactor("digest", LARGE, "--chars", enough + 5)[0] == 0


def test_what_is_newest_stays_out_and_is_named(compactor: Toolbox) -> None:
    records = [json.loads(line) for line in LARGE.read_text().splitlines()]
    found = _json(compactor, LARGE, "--but-newest", "1turns")
    first = found["first_kept"]
    assert records[first["index"]]["uuid"] == first["id"]
    assert records[first["index"]]["type"] == "user"
    assert found["kept"][-1] == len(records) - 1
    assert [i for i in found["kept"] if i >= first["index"]] == list(range(first["index"], len(records)))
    assert f"/{len(records)} " in found["summary"]
    assert all(f"[{number}]" not in found["summary"] for number in range(first["index"] + 1, len(records) + 1))


def test_calls_in_flight_are_in_the_digest_of_a_whole_session(compactor: Toolbox, tmp_path: Path) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "spawn_worker", "arguments": '{"task": "chart"}'}}
    messages = [
        {"role": "user", "content": "Draw the chart of the tides, and let a worker do it."},
        {
            "role": "assistant",
            "content": "I spawn a worker that draws the chart of all harbours.",
            "tool_calls": [call],
        },
    ]
    path = tmp_path / "session.jsonl"
    path.write_text("".join(f"{json.dumps(message)}\n" for message in messages))
    found = _json(compactor, path)
    assert (found["first_kept"], found["kept"]) == (None, [])
    assert "No result seen of: spawn_worker" in found["summary"]
    assert "draws the chart of all harbours" in found["summary"]


def test_the_object_has_what_is_documented(compactor: Toolbox) -> None:
    found = _json(compactor, LARGE)
    assert set(found) == {"summary", "first_kept", "kept", "tokens_before", "transcript"}
    assert (found["first_kept"], found["kept"]) == (None, [])
    assert found["transcript"].startswith(found["summary"].partition("transcript=")[2][:16])
    assert found["tokens_before"] > 10_000


def test_standard_input_gives_what_the_file_gives(compactor: Toolbox) -> None:
    command = [sys.executable, "-m", "compactor_cli", "digest", "--chars", "3000"]
    ran = subprocess.run(command, input=LARGE.read_bytes(), capture_output=True, check=True)
    assert ran.stdout.decode() == compactor("digest", LARGE, "--chars", 3_000)[1]


def test_what_is_stored_is_found_and_expanded(compactor: Toolbox, home: Path) -> None:
    code, out, _ = compactor("digest", LARGE, "--archive-dir", home / "archive", "--source", "my session")
    assert code == 0
    marker = next(line for line in out.splitlines() if line.startswith("[compact/1 "))
    assert " state=" in marker
    assert len(compactor("expand", marker, "--raw")[1].splitlines()) > 50
    assert "my session" in compactor("search", "harbour")[1]


def test_nothing_is_stored_unless_asked_for(compactor: Toolbox, home: Path) -> None:
    assert compactor("digest", LARGE)[0] == 0
    assert list(home.iterdir()) == []
    assert compactor("digest", LARGE, "--source", "x")[0] == 2


def test_the_next_digest_goes_on_from_the_stored_table(home: Path) -> None:
    """What the records do not show any more is known from the table of the digest before."""
    keep = settings_from({"keep_tail": 0}, Settings(), "test")
    archive = Archive(home / "archive")
    first = digest_session(read_session(str(LARGE)), keep, limit=SizeLimit(chars=9_000), archive=archive)
    (home / "next.jsonl").write_bytes(b"\n".join(LARGE.read_bytes().splitlines()[-6:]))
    later = read_session(str(home / "next.jsonl"))
    state = archive.load_state(first.state)
    with_table = digest_session(later, keep, limit=SizeLimit(chars=9_000), state=state).summary
    alone = digest_session(later, keep, limit=SizeLimit(chars=9_000)).summary
    assert "CAS-02" in with_table
    assert "CAS-02" not in alone


def test_focus_comes_first(compactor: Toolbox) -> None:
    plain = compactor("digest", LARGE, "--chars", 1_500)[1]
    focused = compactor("digest", LARGE, "--chars", 1_500, "--focus", "parse_line")[1]
    assert focused.count("parse_line") > plain.count("parse_line")


@pytest.mark.parametrize("name", ["sharegpt.jsonl", "openai-chat-dataset.jsonl"])
def test_a_file_of_several_conversations_is_refused(compactor: Toolbox, name: str) -> None:
    code, out, err = compactor("digest", SAMPLES / name)
    assert (code, out) == (3, "")
    assert "more than one conversation" in err


def test_a_line_that_is_still_being_written_does_no_harm(compactor: Toolbox, home: Path) -> None:
    (home / "live.jsonl").write_bytes(LARGE.read_bytes() + b'{"type":"assis')
    assert "tidegate/cli.py" in compactor("digest", home / "live.jsonl")[1]


def test_what_a_subagent_did_in_records_that_no_client_sends_is_in_the_digest(tmp_path: Path) -> None:
    written = {
        "type": "tool_use",
        "id": "w",
        "name": "Write",
        "input": {"file_path": "/app/tide.py", "content": "x = 1"},
    }
    acted = {"role": "assistant", "content": [written]}
    came = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "w", "content": "File created"}]}
    task = {
        "type": "tool_use",
        "id": "t",
        "name": "Task",
        "input": {"description": "Plan", "prompt": "Plan the tides."},
    }
    records: list[dict[str, Any]] = [
        {"type": "user", "message": {"role": "user", "content": "plan the tides of the whole harbour, please"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [task]}},
        *(
            {"type": "progress", "data": {"type": "agent_progress", "message": {"type": one["role"], "message": one}}}
            for one in (acted, came)
        ),
        {
            "type": "user",
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "Planned."}],
            },
        },
    ]
    links = (
        {"uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "sessionId": "S", "cwd": "/app"} for n in range(5)
    )
    path = tmp_path / "session.jsonl"
    path.write_text("".join(f"{json.dumps(one | link)}\n" for one, link in zip(records, links, strict=True)))
    whole = settings_from({"keep_tail": 0}, Settings(), "test")
    text = digest_session(read_session(str(path)), whole, limit=SizeLimit(tokens=600)).summary
    assert "tide.py — created" in text


def _codex_session(path: Path, replacement: dict[str, Any]) -> Path:
    """A session of Codex in which the client replaced the beginning."""
    asked, reply = "Build the lighthouse map.", "The lamps are sorted by height, because sailors look for the tallest."
    later = ["Now print it.", *(f"Page {number} of the map is printed on blue paper." for number in range(80))]

    def item(role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    lines: list[tuple[str, dict[str, Any]]] = [
        ("session_meta", {"id": "S", "cwd": "/w", "originator": "o", "cli_version": "0.169.0"}),
        *(("response_item", one) for one in (item("user", asked), item("assistant", reply))),
        ("compacted", {"message": "", "replacement_history": [item("user", asked), replacement]}),
        *(("response_item", item("assistant" if at else "user", text)) for at, text in enumerate(later)),
    ]
    stamp = "2026-03-01T10:00:00.000Z"
    values = ({"timestamp": stamp, "type": kind, "payload": payload} for kind, payload in lines)
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values))
    return path


def test_records_whose_summary_only_the_client_can_read_are_summed_up(compactor: Toolbox, tmp_path: Path) -> None:
    secret = {"type": "compaction", "encrypted_content": "gAAAA" * 40}
    path = _codex_session(tmp_path / "opaque.jsonl", secret)
    assert "because sailors look for the tallest" in compactor("digest", path)[1]
    assert "because sailors look for the tallest" in compact(path, target="50%", keep_tail="1messages").summary
    told = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": f"{PREFIX}\nA map is built."}],
    }
    path = _codex_session(tmp_path / "told.jsonl", told)
    out = compactor("digest", path)[1]
    assert "A map is built." in out
    assert "because sailors look for the tallest" not in out
