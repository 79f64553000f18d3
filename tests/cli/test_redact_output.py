"""Secrets taken out of what is written, on request: of summaries and of the records that stay, which stay JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_cases import Run, conversation

ROOT = Path(__file__).parents[2]
GITHUB = "ghp_" + "x7Kd92mPqLw84VbnTz61RcYh3JfGs5Ae0uQo"
AWS = "AKIA" + "Q3EGYV7XWN2KLM5P"
PASSWORD = "Tr0ub4dor-and-3-horses"
SECRETS = (GITHUB, AWS, PASSWORD)
# Where a sample of each of these dialects holds words that people and models said.
SAMPLES = (
    *("claude-code.jsonl", "codex-rollout.jsonl", "gemini-cli.jsonl", "pi-session.jsonl", "qwen-code.jsonl"),
    *("openai-chat.jsonl", "openai-chat-dataset.jsonl", "anthropic.jsonl", "sharegpt.jsonl", "kimi-cli.jsonl"),
)
TEXT_NAMES = {"text", "content", "value", "thinking", "output", "message"}


def _planted(raw: bytes) -> tuple[bytes, int]:
    """A file with a secret at the end of each of its texts; and how many there are."""
    planted = 0

    def walked(value: Any, name: str = "") -> Any:
        nonlocal planted
        if isinstance(value, str) and name in TEXT_NAMES and len(value) > 20 and not value.startswith(("{", "[")):
            planted += 1
            secret = (f"the token is {GITHUB} now", f"key {AWS}", f"password: {PASSWORD}")[planted % 3]
            return f"{value}\n{secret}\n"
        if isinstance(value, dict):
            return {key: walked(item, key) for key, item in value.items()}
        return [walked(item, name) for item in value] if isinstance(value, list) else value

    lines = [json.dumps(walked(json.loads(line))) for line in raw.splitlines() if line.strip()]
    return ("\n".join(lines) + "\n").encode(), planted


def _assert_clean(raw: bytes) -> None:
    assert not [secret for secret in SECRETS if secret.encode() in raw]
    for line in raw.splitlines():
        json.loads(line)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("target", ["60%", "1m"])
def test_no_planted_secret_is_written_whatever_the_dialect(name: str, target: str, work: Path, compact: Run) -> None:
    raw, planted = _planted((ROOT / "samples" / name).read_bytes())
    assert planted > 2
    (work / name).write_bytes(raw)
    done = compact("-t", target, "--redact-output", work / name, "-o", work / "clean.jsonl")
    assert done.code == 0, done.err
    clean = (work / "clean.jsonl").read_bytes()
    _assert_clean(clean)
    assert b"[REDACTED:" in clean


@pytest.mark.parametrize("name", [path.name for path in sorted((ROOT / "samples").glob("*.json*"))])
def test_a_file_without_secrets_keeps_every_byte(name: str, work: Path, compact: Run) -> None:
    raw = (ROOT / "samples" / name).read_bytes()
    (work / name).write_bytes(raw)
    assert compact("-t", "10m", "--redact-output", work / name, "-o", work / "clean").code == 0
    assert (work / "clean").read_bytes() == raw


def _session(path: Path, **more: Any) -> bytes:
    messages = conversation(4)
    messages[3]["content"] = f"DEPLOY_TOKEN={GITHUB}\n"
    messages[1] |= more
    raw = b"".join(json.dumps(message, separators=(" , ", " : ")).encode() + b"\n" for message in messages)
    path.write_bytes(raw)
    return raw


def test_only_the_bytes_of_the_secret_change_and_the_archive_has_the_original(
    work: Path, compact: Run, compactor: Run
) -> None:
    raw = _session(work / "held.jsonl", cost=1.50000, big=123456789012345678901234567890)
    done = compact("-i", "-t", "1m", "--redact-output", "held.jsonl")
    assert "do not stay byte for byte" in done.err
    clean = (work / "held.jsonl").read_bytes()
    assert GITHUB.encode() not in clean
    before, _, after = raw.partition(GITHUB.encode())
    assert clean.startswith(before)
    assert clean.endswith(after)
    assert compactor("restore", "held.jsonl").out == raw


def test_a_file_that_needs_nothing_and_holds_no_secret_is_not_replaced(work: Path, compact: Run) -> None:
    before = (work / "session.jsonl").stat()
    assert compact("-i", "-t", "1m", "--redact-output", "session.jsonl").code == 0
    after = (work / "session.jsonl").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_second_run_changes_nothing(work: Path, compact: Run) -> None:
    raw = b"".join(json.dumps(message).encode() + b"\n" for message in conversation(40))
    (work / "long.jsonl").write_bytes(raw.replace(b"Fixed problem 39:", f"Fixed with {GITHUB}:".encode()))
    for _ in range(2):
        assert compact("-i", "-t", "25%", "--redact-output", "long.jsonl").code == 0
        seen = (work / "long.jsonl").read_bytes()
        _assert_clean(seen)
    once = seen
    compact("-i", "-t", "25%", "--redact-output", "long.jsonl")
    assert (work / "long.jsonl").read_bytes() == once


def test_what_an_earlier_summary_knew_of_a_secret_is_not_repeated(work: Path, compact: Run) -> None:
    messages = conversation(40)
    messages[41]["content"] = f"Use the deploy token {GITHUB} for src/module_10.py from now on."
    path = work / "twice.jsonl"
    path.write_bytes(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    compact("-i", "-t", "4k", path)
    assert GITHUB.encode() in path.read_bytes()
    path.write_bytes(path.read_bytes() + b"".join(json.dumps(m).encode() + b"\n" for m in conversation(30)[1:]))
    assert compact("-i", "-t", "3k", "--redact-output", path).code == 0
    _assert_clean(path.read_bytes())


def test_a_secret_that_only_its_key_gives_away_is_found_and_signatures_stay(work: Path, compact: Run) -> None:
    signature = "EqoBCkgIARABGAIiQ" + "Zm9vYmFyYmF6cXV4" * 8 + "=="
    _session(work / "keyed.jsonl", meta={"password": PASSWORD, "signature": signature, "uuid": "0" * 8})
    compact("-t", "1m", "--redact-output", "keyed.jsonl", "-o", "clean.jsonl")
    clean = (work / "clean.jsonl").read_bytes()
    _assert_clean(clean)
    assert signature.encode() in clean


def test_other_keys_of_a_row_and_other_formats_are_clean_too(work: Path, compact: Run) -> None:
    row = {"id": 1, "note": f"token {GITHUB}", "messages": conversation(6), "login": {"password": PASSWORD}}
    row["messages"][1]["content"] += f" {AWS}"  # type: ignore[index]
    (work / "row.jsonl").write_text(json.dumps(row) + "\n")
    compact("-t", "1m", "--redact-output", "row.jsonl", "-o", "clean.jsonl")
    _assert_clean((work / "clean.jsonl").read_bytes())
    for name in ("sharegpt", "markdown"):
        done = compact("-t", "1m", "--redact-output", "--to", name, "row.jsonl")
        assert not [secret for secret in SECRETS if secret.encode() in done.out]


def test_each_original_row_comes_back_by_its_hash(work: Path, compact: Run, compactor: Run) -> None:
    rows = [json.dumps({"id": i, "messages": conversation(6), "note": f"token {GITHUB} {i}"}) for i in range(3)]
    (work / "three.jsonl").write_text("".join(f"{row}\n" for row in rows))
    assert compact("-i", "-t", "1000", "--redact-output", "--report", "r.json", "three.jsonl").code == 0
    for row, report in zip(rows, json.loads((work / "r.json").read_text())["inputs"][0]["transcripts"], strict=True):
        assert compactor("restore", report["sha256"]).out.rstrip() == row.encode()
        assert report["redacted"]


def test_a_line_that_is_no_json_is_redacted_as_text(work: Path, compact: Run) -> None:
    _session(work / "torn.jsonl")
    with (work / "torn.jsonl").open("ab") as file:
        file.write(f'{{"role": "user", "content": "token {AWS} and then it was cu\n'.encode())
    done = compact("-t", "1m", "--on-invalid", "keep", "--redact-output", "torn.jsonl", "-o", "clean.jsonl")
    assert done.code == 0, done.err
    clean = (work / "clean.jsonl").read_bytes()
    assert not [secret for secret in SECRETS if secret.encode() in clean]
    assert b"and then it was cu\n" in clean


@pytest.mark.parametrize("name", ["claude-code.jsonl", "codex-rollout.jsonl", "gemini-cli.jsonl", "pi-session.jsonl"])
def test_what_is_appended_holds_no_secret_and_the_file_keeps_its_bytes(name: str, work: Path, compact: Run) -> None:
    raw, _ = _planted((ROOT / "samples" / name).read_bytes())
    (work / name).write_bytes(raw)
    append = ("--append", "-t", "30%", "--min-age", "0", "--focus", "token password key")
    assert compact(*append, name).code == 0
    assert [secret for secret in SECRETS if secret.encode() in (work / name).read_bytes()[len(raw) :]]
    (work / name).write_bytes(raw)
    done = compact(*append, "--redact-output", name)
    assert done.code == 0, done.err
    assert "the records of the file keep theirs" in done.err
    written = (work / name).read_bytes()
    assert written.startswith(raw)
    added = written[len(raw) :]
    assert b"[REDACTED:" in added
    _assert_clean(added)
    assert compact("--append", "-t", "30%", "--min-age", "0", "--redact-output", name).code == 0
    assert (work / name).read_bytes() == written


def test_a_batch_cleans_rows_and_those_that_failed(work: Path, compactor: Run) -> None:
    good = {"id": 1, "note": f"token {GITHUB}", "messages": conversation(6), "login": {"password": PASSWORD}}
    bad = {"id": 2, "messages": [{"role": "user", "content": f"key {AWS}"}, {"role": 7}], "password": PASSWORD}
    (work / "leaky.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (good, bad)))
    done = compactor("batch", "--output-dir", "out", "-t", "600", "--redact-output", "leaky.jsonl")
    assert done.code in (0, 3), done.err
    assert "secrets" in done.err
    for path in (work / "out").iterdir():
        assert not [secret for secret in SECRETS if secret.encode() in path.read_bytes()], path
    _assert_clean((work / "out/leaky.jsonl").read_bytes())
    again = compactor("batch", "--output-dir", "out", "-t", "600", "leaky.jsonl")
    assert "finished before" not in again.err
    assert GITHUB.encode() in (work / "out/leaky.jsonl").read_bytes()


@pytest.mark.parametrize("shape", ["text", "nested"])
def test_a_batch_cleans_the_conversations_of_a_table(work: Path, compactor: Run, shape: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    messages = [{"role": "user", "content": f"use {GITHUB} and {AWS}"}, {"role": "assistant", "content": "done"}]
    cells = [json.dumps(messages), f"no conversation, {AWS}"] if shape == "text" else [messages, messages]
    parquet.write_table(pyarrow.table({"messages": cells}), work / "leaky.parquet")
    options = ("--output-dir", "out", "-t", "1m", "--column", "messages", "--redact-output")
    assert compactor("batch", *options, "leaky.parquet").code in (0, 3)
    text = json.dumps(parquet.read_table(work / "out/leaky.parquet").to_pylist())
    assert not [secret for secret in SECRETS if secret in text]
    assert "[REDACTED:" in text
