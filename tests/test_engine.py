"""One transcript through the whole engine: what every output must hold, whatever went in."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor_cli.digest.digest import Digest
from compactor_cli.engine import Compaction, compact_transcript, plan_transcript
from compactor_cli.formats import chat
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import InvariantError
from compactor_cli.model.marker import find_marker
from compactor_cli.model.plan import Action
from compactor_cli.model.settings import Keep, Settings, Size
from compactor_cli.model.summary import Answer, Request, Source, Summary
from compactor_cli.model.transcript import Message, Transcript
from compactor_cli.plan import tokens
from compactor_cli.plan.tokens import EstimateCounter, count_messages
from compactor_cli.read.jsonl import read_records

COUNTER = EstimateCounter()
WORDS = "parser cache index /src/app/main.py retry_limit 4096 because error fixed test_login user asked for it".split()


def transcript_of(messages: list[dict[str, Any]]) -> Transcript:
    lines = [orjson.dumps(message) + b"\n" for message in messages]
    (transcript,) = open_transcripts(read_records(lines, "test.jsonl"))
    return transcript


def run(transcript: Transcript, target: Size, **kwargs: Any) -> Compaction:
    return compact_transcript(
        transcript,
        Settings(target=target),
        counter=COUNTER,
        summariser=Digest(),
        load_state=lambda name: None,
        **kwargs,
    )


def read_again(compaction: Compaction) -> Transcript:
    (transcript,) = open_transcripts(read_records(compaction.output.splitlines(keepends=True), "again.jsonl"))
    return transcript


def text(minimum: int = 1, maximum: int = 60) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(WORDS), min_size=minimum, max_size=maximum).map(" ".join)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Chats with calls that repeat their ids, come in parallel, have no result or lost their call."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": draw(text(maximum=20))}]
    for _ in range(draw(st.integers(1, 12))):
        messages.append({"role": "user", "content": draw(text())})
        for _ in range(draw(st.integers(0, 4))):
            ids = draw(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=3, unique=True))
            calls = [{"id": i, "type": "function", "function": {"name": "run", "arguments": '{"x": 1}'}} for i in ids]
            messages.append({"role": "assistant", "content": draw(text() | st.none()), "tool_calls": calls})
            answered = draw(st.lists(st.sampled_from([*ids, "lost"]), unique=True, max_size=4))
            messages.extend({"role": "tool", "tool_call_id": i, "content": draw(text(maximum=400))} for i in answered)
        messages.append({"role": "assistant", "content": draw(text())})
    return messages


@settings(max_examples=150, deadline=None)
@given(
    messages=conversations(),
    target=st.sampled_from([Size(tokens=600), Size(tokens=1_500), Size(ratio=0.25), Size(ratio=0.6)]),
)
def test_every_output_keeps_its_promises(messages: list[dict[str, Any]], target: Size) -> None:
    transcript = transcript_of(messages)
    done = run(transcript, target)
    if not done.changed:
        assert done.output == transcript.source()
        return
    again = read_again(done)
    assert done.transcript is not None
    assert done.transcript.messages == again.messages
    grouping = group(again.messages)
    kept = [transcript.records[i].raw for i in done.plan.indices(Action.KEEP)]
    assert not grouping.orphan_calls
    assert not grouping.orphan_results
    assert done.report.tokens_after == sum(count_messages(COUNTER, again.messages))
    assert done.report.tokens_after <= done.report.target_tokens or done.report.over_target
    assert len(done.output) < len(transcript.source())
    assert set(kept) <= {record.raw for record in again.records}
    assert sum(len(done.plan.indices(action)) for action in Action) == len(messages)


@settings(max_examples=60, deadline=None)
@given(messages=conversations(), target=st.sampled_from([Size(tokens=800), Size(ratio=0.4)]))
def test_a_second_run_changes_nothing(messages: list[dict[str, Any]], target: Size) -> None:
    done = run(transcript_of(messages), target)
    assert run(read_again(done), target).output == done.output


def long_chat(turns: int = 12, first: int = 0) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are careful."}]
    for turn in range(first, first + turns):
        messages.append({"role": "user", "content": f"Please mend handler_{turn} in src/module_{turn}.py."})
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        body = "\n".join(f"def function_{turn}_{n}(value_{n}): return {n * turn}" for n in range(60))
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": body})
        messages.append(
            {"role": "assistant", "content": f"handler_{turn} now returns early because the cache is warm."}
        )
    return messages


def test_new_records_update_the_summary_and_leave_one() -> None:
    first = run(transcript_of(long_chat()), Size(tokens=2_500))
    grown = [*(orjson.loads(line) for line in first.output.splitlines()), *long_chat(first=12)[1:]]
    second = run(transcript_of(grown), Size(tokens=2_500))
    summaries = [message for message in read_again(second).messages if message.summary]
    assert first.changed
    assert second.changed
    assert len(summaries) == 1
    old, new = find_marker(first.summary_text), find_marker(second.summary_text)
    assert old
    assert new
    assert new.tokens > old.tokens
    assert new.transcript != old.transcript


def test_a_plan_that_was_shown_is_the_plan_that_is_applied() -> None:
    transcript = transcript_of(long_chat())
    plan = plan_transcript(transcript, Settings(target=Size(tokens=2_000)), counter=COUNTER)
    assert run(transcript, Size(tokens=2_000), plan=plan).output == run(transcript, Size(tokens=2_000)).output


def test_a_plan_for_another_transcript_is_refused() -> None:
    plan = plan_transcript(transcript_of(long_chat()), Settings(target=Size(tokens=2_000)), counter=COUNTER)
    with pytest.raises(InvariantError, match="another transcript"):
        run(transcript_of(long_chat(9)), Size(tokens=2_000), plan=plan)


def test_a_summariser_that_takes_too_much_is_caught() -> None:
    class Talkative:
        def summarise(self, request: Request) -> Answer:
            return Answer(summary=Summary(source=Source.DIGEST, sections=(), prose="word " * 1_000))

    with pytest.raises(InvariantError, match="over its target"):
        compact_transcript(
            transcript_of(long_chat(40)),
            Settings(target=Size(tokens=1_000)),
            counter=COUNTER,
            summariser=Talkative(),
            load_state=lambda name: None,
        )


class Counting(EstimateCounter):
    """Remembers what it counted."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def count(self, text: str) -> int:
        self.texts.append(text)
        return super().count(text)


@pytest.mark.parametrize("target", [Size(tokens=1_200), Size(ratio=0.3), Size()])
def test_a_message_is_counted_once(target: Size) -> None:
    messages = [
        {"role": role, "content": f"{role} {step}: " + "the parser reads src/app/main.py and retries " * 30}
        for step in range(40)
        for role in ("user", "assistant")
    ]
    transcript = transcript_of(messages)
    counter = Counting()
    settings = Settings(target=target)
    done = compact_transcript(transcript, settings, counter=counter, summariser=Digest(), load_state=lambda name: None)
    assert done.changed
    counted = Tally(counter.texts)
    assert {counted[message["content"]] for message in messages} == {1}


def test_a_message_is_read_and_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[dict[str, Any]] = [
        {"role": role, "content": f"{role} {number} " + "the parser reads a record " * 20}
        for number in range(40)
        for role in ("user", "assistant")
    ]
    read: Tally[str] = Tally()
    counted: Tally[str] = Tally()
    really_read, really_counted = chat.read, tokens._message_size

    def note_read(value: Any) -> Message:
        read[value["content"]] += 1
        return really_read(value)

    def note_counted(message: Message, size: Callable[[str], int]) -> int:
        counted[message.text] += size is not tokens._utf8_bytes  # which only bounds it
        return really_counted(message, size)

    monkeypatch.setattr(chat, "read", note_read)
    monkeypatch.setattr(tokens, "_message_size", note_counted)
    assert run(transcript_of(messages), Size(tokens=2_000)).changed
    assert {read[message["content"]] for message in messages} == {1}
    assert {counted[message["content"]] for message in messages} == {1}


def rollout_with_a_sealed_summary(turns: int) -> Transcript:
    """A rollout whose provider compacted it: a sealed item of 1,600 tokens stands for what came before."""

    def message(role: str, words: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": words}]}

    sealed = {"type": "compaction", "encrypted_content": "x" * 9_000}
    history = {"message": "", "replacement_history": [message("user", "fix the parser"), sealed]}
    conversation = [
        message(role, f"{role} {i} " + "says a word " * 60) for i in range(turns) for role in ("user", "assistant")
    ]
    payloads = [("session_meta", {"id": "s", "cwd": "/app"}), ("compacted", history)]
    payloads += [("response_item", item) for item in conversation]
    lines = [{"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload} for kind, payload in payloads]
    return transcript_of(lines)


@pytest.mark.parametrize("target_tokens", range(2_400, 5_000, 100))
def test_a_summary_that_only_the_provider_can_read_is_counted_among_what_stays(target_tokens: int) -> None:
    compaction = run(rollout_with_a_sealed_summary(12), Size(tokens=target_tokens))
    after = sum(count_messages(COUNTER, read_again(compaction).messages))
    assert compaction.changed
    assert after <= target_tokens or compaction.report.over_target
    assert b"x" * 9_000 in compaction.output


@pytest.mark.parametrize("target_tokens", [20, 100, 200])
def test_how_far_a_result_is_over_its_target_is_counted_and_not_planned(target_tokens: int) -> None:
    turns = [
        {"role": role, "content": " ".join([*WORDS * 9, str(n)])} for n in range(9) for role in ("user", "assistant")
    ]
    report = run(transcript_of(turns), Size(tokens=target_tokens)).report
    assert report.over_target.startswith(f"{report.tokens_after - target_tokens:,} tokens over: ")


def test_a_summary_of_everything_is_known_as_ours() -> None:
    turns = [
        {"role": role, "content": " ".join([*WORDS * 6, str(n)])} for n in range(12) for role in ("user", "assistant")
    ]
    keep = Keep(head_turns=0, head_tokens=0, tail_tokens=0)
    settings = replace(Settings(target=Size(tokens=900)), keep=keep)
    done = compact_transcript(
        transcript_of(turns), settings, counter=COUNTER, summariser=Digest(), load_state=lambda name: None
    )
    assert not done.plan.indices(Action.KEEP)
    (again,) = open_transcripts(read_records(done.output.splitlines(keepends=True), "again"))
    summaries = [message for message in again.messages if message.summary]
    assert [message.summary.origin for message in summaries if message.summary] == ["compact"]
    assert find_marker(summaries[0].text)
