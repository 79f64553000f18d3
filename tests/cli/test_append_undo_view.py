"""``compact --append``, ``compactor undo`` and ``compactor view``."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import stat
import sys
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


def test_the_boundary_is_written_after_the_original_and_taken_back(session: Path, compact: Run, compactor: Run) -> None:
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
    assert "is not what a compaction wrote here" in again.err


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
    assert "1 record came after the compaction (the first: message)" in refused.err
    whole = session.read_bytes()
    assert compactor("undo", "-f", session).code == 0
    assert session.read_bytes() == original
    stored = [path for path in (session.parent / ".transcripts").rglob("*.jsonl.*") if path.is_file()]
    assert len(stored) == 2
    assert whole != original


def test_undo_refuses_when_an_agent_went_on_without_a_user_turn(session: Path, compact: Run, compactor: Run) -> None:
    compact("--append", *KEEP, session)
    with session.open("ab") as agent:
        for number in range(40):
            record = {"type": "message", "id": f"t{number}", "message": {"role": "toolResult", "content": "ok"}}
            agent.write(json.dumps(record).encode() + b"\n")
    whole = session.read_bytes()
    refused = compactor("undo", session)
    assert refused.code == 3
    assert "40 records came after the compaction" in refused.err
    assert session.read_bytes() == whole


def test_undo_never_cuts_a_file_that_was_only_archived_and_then_grew(
    session: Path, compact: Run, compactor: Run
) -> None:
    archive = session.parent / ".transcripts"
    assert compact(*KEEP, session, "-o", session.parent / "small.jsonl", "--archive-dir", archive).code == 0
    original = session.read_bytes()
    session.write_bytes(original + b'{"type":"message","id":"new"}\n')
    for force in ((), ("-f",)):
        refused = compactor("undo", *force, session)
        assert refused.code == 3
        assert "an archived original with 1 later record (the first: message)" in refused.err
    assert session.read_bytes() == original + b'{"type":"message","id":"new"}\n'


@pytest.mark.parametrize("has_bytes", [False, True])
def test_undo_is_not_led_astray_by_a_forged_manifest(session: Path, compactor: Run, *, has_bytes: bool) -> None:
    data = session.read_bytes()
    first, digest = data.splitlines(keepends=True)[0], lambda part: hashlib.sha256(part).hexdigest()
    folder = session.parent / ".transcripts"
    (folder / digest(first)[:2]).mkdir(parents=True)
    stored = f"{digest(first)[:2]}/{digest(first)}.jsonl.gz"
    if has_bytes:
        (folder / stored).write_bytes(gzip.compress(b"not these bytes"))
    entry = {"sha256": digest(first), "bytes": len(first), "stored": stored, "source": str(session)}
    forged = (entry, entry | {"written_sha256": digest(data), "written_bytes": len(data)})
    (folder / "MANIFEST.jsonl").write_text("".join(json.dumps(line) + "\n" for line in forged))
    for force in ((), ("-f",)):
        assert compactor("undo", *force, session).code == 3
    assert session.read_bytes() == data


@pytest.mark.parametrize("name", ["pi-session.jsonl", "pi-session.jsonl.gz"])
def test_undo_brings_the_original_back_after_a_compaction_in_place(
    session: Path, compact: Run, compactor: Run, name: str
) -> None:
    original = session.read_bytes()
    path = session.with_name(name)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(original))

    def content() -> bytes:
        return gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()

    assert compact("-i", "-t", "50%", path).code == 0
    compacted = content()
    assert compacted != original
    assert compactor("undo", path).code == 0
    assert content() == original
    stored = compactor("restore", hashlib.sha256(compacted).hexdigest()[:16], "--archive-dir", ".transcripts")
    assert stored.out == compacted
    assert compactor("undo", path).code == 3
    assert content() == original


def test_undo_brings_back_the_file_s_own_original_where_another_became_the_same(
    work: Path, compact: Run, compactor: Run
) -> None:
    files = [work / "a" / "s.jsonl", work / "b" / "s.jsonl"]
    data = (work / "session.jsonl").read_bytes()
    originals = [data.replace(b"\n", b"\nno JSON\n", 1), data]
    for path, original in zip(files, originals, strict=True):
        path.parent.mkdir()
        path.write_bytes(original)
    assert compact("-i", "-t", "1500", "--on-invalid", "drop", *files).code == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    (work / "a").rename(work / "c")
    assert compactor("undo", work / "c" / "s.jsonl", files[1]).code == 0
    assert [(work / "c" / "s.jsonl").read_bytes(), files[1].read_bytes()] == originals


def test_undo_after_a_compaction_in_place_refuses_a_file_that_was_written_to(
    session: Path, compact: Run, compactor: Run
) -> None:
    compact("-i", "-t", "50%", session)
    whole = session.read_bytes() + b'{"type":"message"}\n'
    session.write_bytes(whole)
    assert "1 record came after" in compactor("undo", session).err
    session.write_bytes(whole.replace(b"message", b"massage", 1))
    assert compactor("undo", session).code == 3
    assert session.read_bytes() == whole.replace(b"message", b"massage", 1)


@pytest.mark.skipif(sys.platform != "linux", reason="open writers are known on Linux alone")
@pytest.mark.parametrize("arguments", [("compact", "-i", "-t", "50%"), ("compact", "--append", *KEEP), ("undo",)])
def test_a_session_that_an_agent_holds_open_is_left_to_the_next_run(
    session: Path, compact: Run, compactor: Run, arguments: tuple[str, ...]
) -> None:
    name, *options = arguments
    if name == "undo":
        compact("-i", "-t", "50%", session)
    whole = session.read_bytes()
    later = b'{"type":"message","id":"LATER"}\n'
    with session.open("ab", buffering=0) as agent:
        done = compact(*options, session) if name == "compact" else compactor("undo", session)
        assert done.code == 75
        assert "open for writing" in done.err
        agent.write(later)
    assert session.read_bytes() == whole + later


@pytest.mark.skipif(sys.platform != "linux", reason="open writers are known on Linux alone")
@pytest.mark.parametrize("going", [(), ("--fail-fast",)])
def test_in_a_tree_a_session_in_use_keeps_nobody_from_the_others(
    session: Path, compact: Run, going: tuple[str, ...]
) -> None:
    tree = session.parent / "tree"
    tree.mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        shutil.copy(session, tree / name)
        os.utime(tree / name, (0, 0))
    original = session.read_bytes()
    with (tree / "a.jsonl").open("ab"):
        done = compact("-i", "-r", "-t", "50%", *going, "--report", "r.json", tree)
    assert done.code == 75
    inputs = json.loads(Path("r.json").read_text())["inputs"]
    assert [(item["outcome"], item["exit_code"]) for item in inputs] == [("skipped", 75), ("compacted", 0)]
    assert (tree / "a.jsonl").read_bytes() == original
    assert (tree / "b.jsonl").read_bytes() != original


def test_a_torn_append_heals_instead_of_asking_to_try_later_for_ever(
    session: Path, compact: Run, compactor: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = session.read_bytes()
    with monkeypatch.context() as patch:
        # A process that dies removes nothing.
        patch.setattr("compactor_cli.archive.maintenance._remove_journal", lambda archive, name: None)
        assert compact("--append", *KEEP, session).code == 0
    appended = session.read_bytes()
    session.write_bytes(appended[: len(original) + 25])
    assert "left behind" in compactor("verify", ".transcripts").err
    assert compact("--append", *KEEP, session).code == 0
    assert session.read_bytes() == appended
    assert compactor("verify", ".transcripts").err == ""
    assert compactor("undo", session).code == 0
    assert session.read_bytes() == original


def test_files_that_come_out_of_private_ones_are_private(session: Path, compact: Run, compactor: Run) -> None:
    session.chmod(0o600)
    assert compact("-n", *KEEP, session, "--plan-out", "plan", "--report", "report", "--events", "events").code == 0
    assert compact("-i", "-t", "50%", session).code == 0
    sha256 = json.loads(Path(".transcripts/MANIFEST.jsonl").read_text())["sha256"]
    assert compactor("restore", sha256, "-o", "restored").code == 0
    for name in ("plan", "report", "events", "restored"):
        assert (name, stat.S_IMODE(Path(name).stat().st_mode)) == (name, 0o600)


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


def test_verify_does_not_fail_a_session_that_its_client_resumes_after_an_interrupted_turn(
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
