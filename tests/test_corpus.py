"""Every real transcript of a dialect we know, through the whole engine, at two targets."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from compactor_cli.archive.atomic import Existing
from compactor_cli.archive.restore import find, restore_to
from compactor_cli.digest.digest import Digest
from compactor_cli.engine import Compaction, compact_transcript
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import UnknownShape
from compactor_cli.model.plan import Action
from compactor_cli.model.settings import Settings, Size
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.tokens import counter_for
from compactor_cli.read.jsonl import OnInvalid, read_records
from compactor_cli.read.streams import open_stream
from compactor_cli.run.documents import faults

FOLDERS = (
    "anthropic-request",
    "bedrock-converse",
    "claude-code",
    "claude-code-web",
    "claude-stream-json",
    "codex-rollout",
    "derived",
    "gemini-cli-session",
    "gemini-request",
    "hermes-session",
    "inspect-log",
    "inspect-sample",
    "kimi-wire",
    "langchain-messages",
    "letta-af",
    "openai-chat-request",
    "openai-completion-log",
    "openai-responses-request",
    "openhands-events",
    "openhands-events-v1",
    "pi-session",
    "retention",
    "swe-agent-traj",
    "who-when",
)
# Folders whose transcripts may all be too short to be worth a summary.
SHORT = ("bedrock-converse", "hermes-session", "inspect-log", "inspect-sample", "kimi-wire", "openhands-events-v1")
COUNTER = counter_for("auto", "")
SAMPLES = Path(__file__).resolve().parents[1] / "samples"


def transcripts_of(path: Path) -> list[Transcript]:
    with open_stream(str(path)) as stream:
        records = read_records(stream.reader, str(path), OnInvalid.KEEP)
        return list(open_transcripts(records, prefix=records.prefix))


def compacted(transcript: Transcript, target: Size) -> Compaction:
    return compact_transcript(
        transcript, Settings(target=target), counter=COUNTER, summariser=Digest(), load_state=lambda name: None
    )


def check(transcript: Transcript, target: Size) -> bool:
    """The promises of one compaction; whether it changed anything."""
    done = compacted(transcript, target)
    if not done.changed:
        assert done.output == transcript.source()
        return False
    (again,) = open_transcripts(
        read_records(done.output.splitlines(keepends=True), "again"), dialect=transcript.dialect
    )
    grouping = group(again.messages)
    assert not grouping.orphan_calls
    assert not grouping.orphan_results
    assert done.report.tokens_after <= done.report.target_tokens or done.report.over_target
    kept = {transcript.records[i].raw for i in done.plan.indices(Action.KEEP)}
    assert kept <= {record.raw for record in again.records}
    assert compacted(again, target).output == done.output
    if isinstance(transcript.row, dict):
        assert list(again.row) == list(transcript.row)
    return True


def is_transcript(path: Path) -> bool:
    return path.is_file() and (".json" in path.name or path.suffix in (".traj", ".af"))


def is_side_file(path: Path) -> bool:
    """Next to the sessions lie what describes them, and logs of which only the header is left."""
    return path.name.endswith((".meta.json", "state.json")) or path.parent.name == "test_eval_set"


@pytest.mark.parametrize("folder", FOLDERS)
def test_real_transcripts(corpus: Path, folder: str) -> None:
    changed = read = 0
    for path in sorted(filter(is_transcript, (corpus / folder).rglob("*"))):
        try:
            transcripts = transcripts_of(path)
        except UnknownShape:
            assert is_side_file(path), path
            continue
        assert b"".join(transcript.source() for transcript in transcripts) == path.read_bytes(), path
        for transcript in transcripts:
            read += 1
            changed += check(transcript, Size(ratio=0.25)) + check(transcript, Size(tokens=8_000))
    assert read
    assert changed or folder.endswith("-request") or folder in SHORT


# Made by hand: messages that are strings, contents without a type, results without an id.
BROKEN = ("edge_cases", "claude-code/jazzyalex+agent-sessions/")


@pytest.mark.parametrize("folder", [*FOLDERS, "samples"])
def test_records_are_by_the_schema_of_their_format(corpus: Path, folder: str) -> None:
    root = SAMPLES if folder == "samples" else corpus / folder
    for path in sorted(filter(is_transcript, root.rglob("*"))):
        if any(part in str(path) for part in BROKEN) or is_side_file(path):
            continue
        for transcript in transcripts_of(path):
            shown = (i for i, message in enumerate(transcript.messages) if not message.is_meta)
            wrong = [fault for i in shown for fault in faults(transcript.dialect, transcript.records[i].value)]
            assert not wrong, (path, wrong[:3])


def test_every_original_comes_back_byte_for_byte(corpus: Path, tmp_path: Path) -> None:
    originals: dict[str, bytes] = {}
    for folder in ("claude-code", "codex-rollout", "derived", "pi-session"):
        for path in sorted((corpus / folder).rglob("*.jsonl")):
            copy = tmp_path / "tree" / path.relative_to(corpus)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
            originals[str(copy)] = path.read_bytes()
    archive = tmp_path / "archive"
    words = ["-i", "-r", str(tmp_path / "tree"), "--min-age", "0", "-t", "25%", "--on-invalid", "keep"]
    command = [sys.executable, "-c", "from compactor_cli.__main__ import compact; compact()", *words]
    subprocess.run([*command, "--archive-dir", str(archive), "-qq"], check=False)
    changed = {name: content for name, content in originals.items() if Path(name).read_bytes() != content}
    assert changed
    for name, content in changed.items():
        found = find([archive], hashlib.sha256(content).hexdigest())
        restored = tmp_path / "restored"
        restore_to(found, restored, Existing.REPLACE)
        assert restored.read_bytes() == content, name
