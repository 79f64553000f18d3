"""What each preset does to a transcript, by the one engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from compactor_cli.core.settings import Settings, Trigger
from compactor_cli.core.transcript import Transcript
from compactor_cli.engine import Compaction, compact_transcript
from compactor_cli.normalise.detect import open_transcripts
from compactor_cli.plan.tokens import counter_for
from compactor_cli.presets import load_preset
from compactor_cli.read.jsonl import read_records
from compactor_cli.summarise.digest.digest import Digest


def _messages(steps: int) -> Iterator[dict[str, Any]]:
    yield {"role": "system", "content": "You are a careful coding agent."}
    for step in range(steps):
        call = {"name": "read_file", "arguments": json.dumps({"path": f"src/module_{step}.py"})}
        lines = "\n".join(f"line {line} of module {step}: value = {step * line}" for line in range(40))
        yield {"role": "user", "content": f"Please fix problem {step} in src/module_{step}.py."}
        yield {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"c{step}", "type": "function", "function": call}],
        }
        yield {"role": "tool", "tool_call_id": f"c{step}", "content": lines}
        yield {"role": "assistant", "content": f"Fixed problem {step}: an off-by-one error in module_{step}."}


def _transcript(steps: int) -> Transcript:
    lines = [json.dumps(message).encode() + b"\n" for message in _messages(steps)]
    (transcript,) = open_transcripts(read_records(lines, "session.jsonl"))
    return transcript


def _compacted(transcript: Transcript, settings: Settings) -> tuple[Compaction, list[dict[str, Any]]]:
    done = compact_transcript(
        transcript,
        settings,
        counter=counter_for(settings.tokenizer),
        summariser=Digest(),
        load_state=lambda name: None,
    )
    return done, [json.loads(line) for line in done.output.splitlines()]


def test_hermes_keeps_head_and_tail_around_a_reference_only_summary() -> None:
    transcript = _transcript(80)
    done, messages = _compacted(transcript, load_preset("hermes").settings)
    lines = transcript.source().splitlines()
    assert done.output.splitlines()[:3] == lines[:3]
    assert done.output.splitlines()[-1] == lines[-1]
    (summary,) = [message for message in messages if "[compact/1 " in str(message["content"])]
    assert summary["content"].startswith("Reference only")
    assert "Next Steps" not in summary["content"]
    assert done.report.summary_tokens > 0


def test_hermes_leaves_alone_what_its_window_holds() -> None:
    settings = load_preset("hermes").settings
    roomy = replace(settings, trigger=replace(settings.trigger, window_tokens=100_000))
    done, _ = _compacted(_transcript(80), roomy)
    assert not done.changed


def test_kimi_keeps_the_newest_two_messages_with_their_tools() -> None:
    transcript = _transcript(60)
    done, messages = _compacted(transcript, load_preset("kimi").settings)
    assert done.output.splitlines()[-3:] == transcript.source().splitlines()[-3:]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert "<current_focus>" in messages[1]["content"]
    assert "compacted" in messages[1]["content"]


def test_kimi_starts_when_the_reserve_is_touched() -> None:
    settings = load_preset("kimi").settings
    transcript = _transcript(60)
    tokens = _compacted(transcript, settings)[0].plan.tokens_before

    def with_window(window_tokens: int) -> Settings:
        trigger: Trigger = replace(settings.trigger, window_tokens=window_tokens)
        return replace(settings, trigger=trigger)

    assert not _compacted(transcript, with_window(tokens + 50_001))[0].changed
    assert _compacted(transcript, with_window(tokens + 50_000))[0].changed


def test_l06_waits_for_its_threshold_but_cuts_old_results_before() -> None:
    transcript = _transcript(40)
    done, messages = _compacted(transcript, load_preset("l06").settings)
    assert len(messages) == len(transcript.records)
    assert done.report.pruned == {"micro": 38}
    assert done.report.token_method.startswith("estimate")


def test_l06_replaces_everything_by_a_summary_and_an_acknowledgement() -> None:
    done, messages = _compacted(_transcript(800), load_preset("l06").settings)
    assert done.plan.tokens_before >= 50_000
    assert [message["role"] for message in messages] == ["system", "user", "assistant"]
    assert "[compact/1 transcript=" in messages[1]["content"]
    assert messages[2]["content"] == "Understood. I have the context from the summary. Continuing."
