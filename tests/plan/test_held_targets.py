"""A target is reached, or the report says why not; and a second run has nothing left to do."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from target_cases import TARGETS, broken_promise, broken_promises, opened

from compactor_cli.digest.digest import Digest
from compactor_cli.engine import compact_transcript
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.registry import Appending, get
from compactor_cli.model.errors import CompactError
from compactor_cli.model.plan import Mode
from compactor_cli.model.settings import Settings, Size
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.tokens import counter_for
from compactor_cli.presets import load_preset, preset_names
from compactor_cli.read.jsonl import OnInvalid, read_records
from compactor_cli.read.streams import open_stream
from compactor_cli.render.convert import convert, writable

COUNTER = counter_for("o200k_base")
FAST_COUNTER = counter_for("chars/4")
SAMPLES = sorted(path for path in (Path(__file__).resolve().parents[2] / "samples").iterdir() if ".json" in path.name)
MOST_BYTES = 60_000


def read(path: Path) -> list[Transcript]:
    with open_stream(str(path)) as stream:
        records = read_records(stream.reader, str(path), OnInvalid.KEEP)
        return list(open_transcripts(records, prefix=records.prefix))


@cache
def samples() -> tuple[Transcript, ...]:
    return tuple(transcript for path in SAMPLES for transcript in read(path)[:2])


def lines(messages: list[dict[str, Any]]) -> Transcript:
    return opened(b"".join(json.dumps(message).encode() + b"\n" for message in messages))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def dense(chars: int) -> str:
    """Text of which nearly every character is a token."""
    return "".join("0b!d@4f#a$2c%9e^7&"[(i * i + i // 7) % 18] for i in range(chars))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_keeps_its_promises_at_every_target(path: Path) -> None:
    for transcript in read(path):
        assert not broken_promises(transcript, Settings(), COUNTER)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_session_that_is_appended_to_keeps_its_promises_at_every_target(path: Path) -> None:
    for transcript in read(path):
        if isinstance(get(transcript.dialect), Appending):
            for target in TARGETS:
                assert not broken_promise(transcript, Settings(target=target), COUNTER, Mode.APPEND), target


@pytest.mark.parametrize("dialect", writable())
def test_every_dialect_that_can_be_written_keeps_its_promises_at_every_target(dialect: str) -> None:
    for name in ("parallel-calls.jsonl", "claude-code.jsonl"):
        (path,) = (path for path in SAMPLES if path.name == name)
        for transcript in read(path):
            converted = opened(convert(transcript, dialect).output, dialect)
            assert not broken_promises(converted, Settings(), FAST_COUNTER, TARGETS[::2])


@pytest.mark.parametrize("preset", preset_names())
def test_every_preset_keeps_its_promises_at_every_target(preset: str) -> None:
    for transcript in samples():
        assert not broken_promises(transcript, load_preset(preset).settings, FAST_COUNTER, TARGETS[1::4])


def test_every_small_real_file_keeps_its_promises_at_every_target(corpus: Path) -> None:
    tried = 0
    for path in sorted(corpus.rglob("*")):
        if not (path.is_file() and path.stat().st_size < MOST_BYTES and ".json" in path.name):
            continue
        try:
            transcripts = read(path)[:2]
        except CompactError:
            continue
        for transcript in transcripts:
            tried += 1
            assert not broken_promises(transcript, Settings(), FAST_COUNTER, TARGETS[::4]), path
    assert tried > len(SAMPLES)


def test_a_message_with_dense_ends_is_cut_as_short_as_it_can_be_at_once() -> None:
    whole = lines([user(dense(6_000) + " " * 3_000_000 + dense(6_000))])
    assert not broken_promise(whole, Settings(target=Size(tokens=410)), COUNTER)


def test_what_turns_out_to_be_within_the_target_is_not_reported_as_over_it() -> None:
    whole = lines(
        [user("hull " * 400), {"role": "assistant", "content": "keel " * 380}, user("mast " * 100 + dense(160))]
    )
    done = compact_transcript(
        whole,
        Settings(target=Size(tokens=410)),
        counter=COUNTER,
        summariser=Digest(),
        load_state=lambda name: None,
    )
    assert done.plan.over_target
    assert done.report.tokens_after <= done.report.target_tokens
    assert not done.report.over_target


def test_a_target_missed_since_a_summary_would_be_no_smaller_is_reported() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    pair = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result"}]},
    ]
    whole = lines(
        [
            {"role": "user", "content": [image, {"type": "text", "text": "What is it?"}]},
            {"role": "assistant", "content": [*pair, {"type": "text", "text": "A tide gauge."}]},
            user("Thanks."),
        ]
    )
    assert not broken_promises(whole, Settings(), COUNTER)


WORDS = st.sampled_from(["hull ", "src/app.py:12 ", "error: ", "\n", "计划很清楚", "   ", "0f!3@d", '"\\"'])
TEXT = st.builds(lambda word, count: word * count, WORDS, st.integers(1, 60) | st.integers(1, 3_000))
CONTENT = st.lists(TEXT.map(lambda text: {"type": "text", "text": text}), min_size=1, max_size=4)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Turns in the form of Anthropic's API, with calls of the client's tools and of the provider's own."""
    messages: list[dict[str, Any]] = []
    for turn in range(draw(st.integers(1, 5))):
        messages.append({"role": "user", "content": draw(CONTENT)})
        for step in range(draw(st.integers(0, 3))):
            key = f"{turn}_{step}"
            if draw(st.booleans()):
                search = {
                    "type": "server_tool_use",
                    "id": f"srv{key}",
                    "name": "web_search",
                    "input": {"q": draw(TEXT)},
                }
                found = [{"type": "web_search_result", "title": draw(TEXT), "encrypted_content": draw(TEXT)}]
                result = {"type": "web_search_tool_result", "tool_use_id": f"srv{key}", "content": found}
                messages.append({"role": "assistant", "content": [search, result, *draw(CONTENT)]})
            else:
                call = {"type": "tool_use", "id": f"t{key}", "name": "read", "input": {"path": draw(TEXT)}}
                result = {"type": "tool_result", "tool_use_id": f"t{key}", "content": draw(TEXT)}
                messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        messages.append({"role": "assistant", "content": draw(CONTENT)})
    return messages


@given(conversations(), st.sampled_from(TARGETS))
@settings(max_examples=60)
def test_any_conversation_keeps_its_promises_at_any_target(messages: list[dict[str, Any]], target: Size) -> None:
    assert not broken_promise(lines(messages), Settings(target=target), FAST_COUNTER)
