"""Appended compactions: the original is a prefix, and what the client sends is head, summary and tail."""

from __future__ import annotations

from pathlib import Path

import pytest

from compactor_cli.core.errors import InvariantError, UnknownShape, UsageError
from compactor_cli.core.plan import Action, Mode
from compactor_cli.core.settings import Keep, Settings, Size
from compactor_cli.core.transcript import Container, Role, Transcript
from compactor_cli.engine import Compaction, compact_transcript, plan_transcript
from compactor_cli.normalise.detect import open_transcripts
from compactor_cli.normalise.doubts import doubts
from compactor_cli.normalise.sent import sent
from compactor_cli.plan.tokens import counter_for
from compactor_cli.read.jsonl import OnInvalid, read_records
from compactor_cli.summarise.digest.digest import Digest

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
SESSIONS = ("claude-code", "codex-rollout", "pi-session", "gemini-cli", "qwen-code", "kimi-wire")
# Folders of the corpus whose clients have a boundary; side files lie among the sessions.
FOLDERS = ("claude-code", "codex-rollout", "pi-session", "kimi-wire", "gemini-cli-session", "other-agents/qwen")
COUNTER = counter_for("auto", "")


def opened(data: bytes) -> list[Transcript]:
    records = read_records(data.splitlines(keepends=True), "session.jsonl", OnInvalid.KEEP)
    return list(open_transcripts(records, prefix=records.prefix))


def appended(transcript: Transcript, settings: Settings) -> Compaction:
    return compact_transcript(
        transcript,
        settings,
        counter=COUNTER,
        summariser=Digest(),
        load_state=lambda name: None,
        mode=Mode.APPEND,
    )


def check(transcript: Transcript, settings: Settings) -> bool:
    """The promises of one appended compaction; whether it changed anything."""
    done = appended(transcript, settings)
    if not done.changed:
        assert done.output == transcript.source()
        return False
    assert done.output.startswith(transcript.source())
    assert not done.plan.edits
    (again,) = opened(done.output)
    assert again.dialect == transcript.dialect
    assert len(doubts(again)) <= len(doubts(transcript))
    covered = set(done.plan.indices(Action.COVER))
    assert all(again.messages[i].superseded for i in covered if not transcript.messages[i].superseded)
    kept = [i for i in done.plan.indices(Action.KEEP) if not transcript.messages[i].is_meta]
    assert not [i for i in kept if again.messages[i].superseded and transcript.messages[i].parts]
    assert done.report.tokens_after <= done.report.target_tokens or done.report.over_target
    assert appended(again, settings).output == done.output
    return True


@pytest.mark.parametrize("name", SESSIONS)
def test_the_original_is_a_prefix_and_the_tail_comes_behind_the_summary(name: str) -> None:
    (transcript,) = opened((SAMPLES / f"{name}.jsonl").read_bytes())
    settings = Settings(target=Size(ratio=0.5), keep=Keep(head_turns=1, tail_tokens=200))
    assert check(transcript, settings)
    (again,) = opened(appended(transcript, settings).output)
    order = sent(again)
    summary = next(place for place, i in enumerate(order) if again.messages[i].summary)
    tail = [i for i in order[summary + 1 :] if i < len(transcript.records)]
    assert tail == sorted(tail)
    assert tail[-1] == next(
        i
        for i in range(len(transcript.records) - 1, -1, -1)
        if transcript.messages[i].role is not Role.META and transcript.messages[i].parts
    )


@pytest.mark.parametrize("folder", FOLDERS)
def test_real_sessions(corpus: Path, folder: str) -> None:
    seen = refused = 0
    for path in sorted(path for path in (corpus / folder).rglob("*.json*") if path.is_file()):
        data = path.read_bytes()
        try:
            transcripts = opened(data)
        except UnknownShape:
            continue
        assert b"".join(transcript.source() for transcript in transcripts) == data, path
        for transcript in transcripts:
            if transcript.frame.container is Container.LINES and transcript.dialect in ALL:
                seen += 1
                for target in (Size(ratio=0.25), Size(tokens=8_000)):
                    try:
                        check(transcript, Settings(target=target))
                    except InvariantError:
                        refused += 1
    assert seen
    # One file was made with the same id on two records: a boundary cannot name one of them.
    assert refused <= (1 if folder == "claude-code" else 0)


ALL = ("claude-code", "codex", "pi", "gemini-cli", "qwen-code", "kimi-wire")


def test_a_format_without_a_boundary_is_refused_by_name() -> None:
    (transcript,) = opened((SAMPLES / "kimi-cli.jsonl").read_bytes())
    with pytest.raises(UsageError, match="nothing can be appended to a transcript of the format kimi-cli"):
        plan_transcript(transcript, Settings(), counter=COUNTER, mode=Mode.APPEND)


def test_a_plan_is_for_one_way_of_writing() -> None:
    (transcript,) = opened((SAMPLES / "pi-session.jsonl").read_bytes())
    settings = Settings(target=Size(ratio=0.5))
    plan = plan_transcript(transcript, settings, counter=COUNTER)
    with pytest.raises(UsageError, match="the plan was made for rewriting"):
        compact_transcript(
            transcript,
            settings,
            counter=COUNTER,
            summariser=Digest(),
            load_state=lambda name: None,
            plan=plan,
            mode=Mode.APPEND,
        )


def test_a_rewritten_session_names_what_it_changed_of_the_clients_counters() -> None:
    (transcript,) = opened((SAMPLES / "qwen-code.jsonl").read_bytes())
    settings = Settings(target=Size(ratio=0.5), keep=Keep(head_turns=1, tail_tokens=200))
    done = compact_transcript(transcript, settings, counter=COUNTER, summariser=Digest(), load_state=lambda name: None)
    assert done.report.pruned["usage"] == 1
    (again,) = opened(done.output)
    assert again.records[-1].value["usageMetadata"]["totalTokenCount"] <= done.plan.target_tokens
    kept = {transcript.records[i].raw for i in done.plan.indices(Action.KEEP)}
    assert kept <= {record.raw for record in again.records}
