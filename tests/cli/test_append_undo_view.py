"""``compact --append``, ``compactor undo`` and ``compactor view``."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

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


def _viewed(folder: Path, compactor: Run, *values: Any) -> list[dict[str, Any]]:
    path = folder / "viewed.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return [json.loads(line) for line in compactor("view", path).out.splitlines()]


def _claude(own: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": content, **more}
    return {"uuid": own, "parentUuid": parent, "sessionId": "s", "isSidechain": False, "type": role, "message": message}


def test_view_leaves_out_the_thinking_of_another_model(work: Path, compactor: Run) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    hidden = {"type": "redacted_thinking", "data": "x" * 40}
    shown = _viewed(
        work,
        compactor,
        _claude("1", None, "user", "hello"),
        _claude("2", "1", "assistant", [thought], id="m1", model="claude-old"),
        _claude("3", "2", "assistant", [hidden, {"type": "text", "text": "hi"}], id="m1", model="claude-old"),
        _claude("4", "3", "user", "again"),
        _claude("5", "4", "assistant", [thought, {"type": "text", "text": "yes"}], id="m2", model="claude-new"),
    )
    assert [(line["record"], line.get("thinking", ""), line["content"]) for line in shown] == [
        (1, "", "hello"),
        (3, "", "hi"),
        (4, "", "again"),
        (5, "hm", "yes"),
    ]
    assert not any("media" in line for line in shown)


def _pi(own: str, parent: str | None, **message: Any) -> dict[str, Any]:
    return {"type": "message", "id": own, "parentId": parent, "timestamp": "2026-01-01T00:00:00Z", "message": message}


_PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
_SEEN = [{"type": "text", "text": "a.png"}, _PICTURE]
_CALL = {"type": "function", "id": "c", "function": {"name": "Look", "arguments": "{}"}}
_WITH_PICTURES: dict[str, tuple[Any, ...]] = {
    "claude-code": (
        _claude("1", None, "assistant", [{"type": "tool_use", "id": "c", "name": "Read", "input": {}}], id="m"),
        _claude(
            "2",
            "1",
            "user",
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "c",
                    "content": [
                        {"type": "text", "text": "a.png"},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
                        },
                    ],
                }
            ],
        ),
    ),
    "pi": (
        {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"},
        _pi("a", None, role="assistant", content=[{"type": "toolCall", "id": "c", "name": "read", "arguments": {}}]),
        _pi(
            "b",
            "a",
            role="toolResult",
            toolCallId="c",
            toolName="read",
            content=[
                {"type": "text", "text": "a.png"},
                {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
            ],
        ),
    ),
    "kimi-cli": (
        {"role": "_checkpoint", "id": 0},
        {"role": "assistant", "content": [], "tool_calls": [_CALL]},
        {"role": "tool", "tool_call_id": "c", "content": _SEEN},
    ),
    "kimi-wire": (
        {"type": "metadata", "protocol_version": "1.5"},
        {
            "type": "context.append_message",
            "message": {
                "role": "assistant",
                "content": [],
                "toolCalls": [{"id": "c", "name": "Look", "arguments": "{}"}],
            },
        },
        {
            "type": "context.append_message",
            "message": {
                "role": "tool",
                "toolCallId": "c",
                "toolCalls": [],
                "content": [_SEEN[0], {"type": "image_url", "imageUrl": {"url": "data:image/png;base64,iVBORw0KGgo="}}],
            },
        },
    ),
}


@pytest.mark.parametrize("dialect", _WITH_PICTURES)
def test_view_counts_a_picture_in_a_result_and_does_not_print_it(dialect: str, work: Path, compactor: Run) -> None:
    shown = _viewed(work, compactor, *_WITH_PICTURES[dialect])
    assert (shown[-1]["media"], shown[-1]["results"]) == (1, [{"id": "c", "text": "a.png", "media": 1}])
    assert sum(line.get("media", 0) for line in shown) == 1


def test_view_does_not_take_encrypted_reasoning_for_a_picture(work: Path, compactor: Run) -> None:
    def item(**payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": payload}

    meta = {"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "s", "cwd": "/w"}}
    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    words = {"type": "input_text", "text": "what is it?"}
    shown = _viewed(
        work,
        compactor,
        meta,
        item(type="message", role="user", content=[words, picture]),
        item(type="reasoning", summary=[], encrypted_content="gAAAA"),
        item(type="message", role="assistant", content=[{"type": "output_text", "text": "a dot"}]),
    )
    assert [line.get("media", 0) for line in shown if line["role"] == "user"] == [1]
    assert sum(line.get("media", 0) for line in shown) == 1


def test_verify_warns_of_a_compaction_that_the_client_ignores(session: Path, compactor: Run) -> None:
    lost = {"type": "compaction", "id": "eeee0001", "parentId": "nowhere", "timestamp": "t", "summary": "S"}
    lines = session.read_bytes().splitlines(keepends=True)
    session.write_bytes(b"".join([*lines[:-1], json.dumps(lost).encode() + b"\n", lines[-1]]))
    done = compactor("verify", session)
    assert "this compaction is ignored" in done.err


def test_verify_does_not_fail_a_session_that_its_client_resumes_behind_an_interrupted_turn(
    work: Path, compactor: Run
) -> None:
    call = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "sleep 60"}}
    values = [
        _claude("1", None, "user", "wait"),
        _claude("2", "1", "assistant", [call], id="m1"),
        _claude("3", "2", "user", [{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
        _claude("4", "3", "user", "never mind, say hello"),
        _claude("5", "4", "assistant", [{"type": "text", "text": "hello"}], id="m2"),
    ]
    path = work / "interrupted.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    done = compactor("verify", path)
    assert (done.code, b"sound" in done.out) == (0, True)
    assert ":2: a call was interrupted" in done.err

    values[1:3] = [_claude("3", "1", "user", [{"type": "tool_result", "tool_use_id": "gone", "content": "x"}])]
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    done = compactor("verify", path)
    assert done.code == 3
    assert ":2: a result without its call" in done.err
