"""``compact --append``, ``compactor undo`` and ``compactor view``."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
from cli_cases import Run

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
KEEP = ("--keep-head", "1turns", "--keep-tail", "200", "-t", "50%")


@pytest.fixture
def session(home: Path) -> Path:
    path = Path(shutil.copy(SAMPLES / "pi-session.jsonl", home / "work"))
    os.utime(path, (0, 0))
    return path


def test_the_boundary_is_written_behind_the_original_and_taken_back(
    session: Path, compact: Run, compactor: Run
) -> None:
    original = session.read_bytes()
    assert compact("--append", *KEEP, session).code == 0
    appended = session.read_bytes()
    assert appended.startswith(original)
    assert appended != original
    assert compact("--append", *KEEP, session).code == 0
    assert session.read_bytes() == appended
    assert compactor("undo", session).code == 0
    assert session.read_bytes() == original
    again = compactor("undo", session)
    assert again.code == 3
    assert "begins with no archived original" in again.err


def test_what_came_after_the_compaction_is_not_cut_off_unasked(session: Path, compact: Run, compactor: Run) -> None:
    original = session.read_bytes()
    compact("--append", *KEEP, session)
    last = json.loads(session.read_bytes().splitlines()[-1])
    words = {"role": "user", "content": [{"type": "text", "text": "And now the brush pen."}]}
    entry = {
        "type": "message",
        "id": "ffff0001",
        "parentId": last["id"],
        "timestamp": last["timestamp"],
        "message": words,
    }
    with session.open("ab") as file:
        file.write(json.dumps(entry).encode() + b"\n")
    refused = compactor("undo", session)
    assert refused.code == 3
    assert "1 turn came after the compaction" in refused.err
    whole = session.read_bytes()
    assert compactor("undo", "-f", session).code == 0
    assert session.read_bytes() == original
    stored = [path for path in (session.parent / ".transcripts").rglob("*.jsonl.*") if path.is_file()]
    assert len(stored) == 2
    assert whole != original


def test_nothing_is_appended_to_what_has_no_end_for_it(work: Path, compact: Run) -> None:
    shutil.copy(SAMPLES / "pi-session.jsonl", work / "pi.jsonl")
    packed = work / "pi.jsonl.gz"
    packed.write_bytes(gzip.compress((work / "pi.jsonl").read_bytes()))
    for name, words in ((packed, "compressed"), (work / "session.jsonl", "of the format openai-chat")):
        before = name.read_bytes()
        done = compact("--append", "-t", "300", name)
        assert done.code in (2, 3)
        assert words in done.err
        assert name.read_bytes() == before


def test_append_goes_with_no_other_output(session: Path, compact: Run) -> None:
    done = compact("--append", "-i", session)
    assert done.code == 2
    assert "exclude one another" in done.err
    assert compact("--append", "-").code == 2


def test_the_plan_of_an_appended_compaction_is_its_own(session: Path, compact: Run) -> None:
    plan = session.with_suffix(".plan")
    assert compact("--append", "-n", "--plan-out", plan, *KEEP, session).code == 0
    refused = compact("-i", "--plan", plan, session)
    assert "made for appending" in refused.err
    original = session.read_bytes()
    assert compact("--append", "--plan", plan, session).code == 0
    assert session.read_bytes().startswith(original)
    assert session.read_bytes() != original


def test_view_prints_what_the_client_would_send_in_its_order(session: Path, compact: Run, compactor: Run) -> None:
    before = [json.loads(line) for line in compactor("view", session).out.splitlines()]
    assert before[0]["role"] == "user"
    assert any(message.get("calls") for message in before)
    assert any(message.get("results") for message in before)
    compact("--append", *KEEP, session)
    after = [json.loads(line) for line in compactor("view", session).out.splitlines()]
    assert "[compact/1 " in after[0]["content"]
    assert after[1:] == before[-len(after[1:]) :]


def test_verify_warns_of_a_compaction_that_the_client_ignores(session: Path, compactor: Run) -> None:
    lost = {"type": "compaction", "id": "eeee0001", "parentId": "nowhere", "timestamp": "t", "summary": "S"}
    lines = session.read_bytes().splitlines(keepends=True)
    session.write_bytes(b"".join([*lines[:-1], json.dumps(lost).encode() + b"\n", lines[-1]]))
    done = compactor("verify", session)
    assert "this compaction is ignored" in done.err
