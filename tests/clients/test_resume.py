"""Compacted sessions resumed by the clients that made them: they send summary and tail, and not the middle."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from lab import (
    STALE_TOKENS,
    TWO_TURNS,
    Item,
    broken_off,
    client,
    compacted,
    gone_on,
    in_file,
    is_same,
    items_requested,
    items_viewed,
    marks,
    marks_sent,
    prompt,
    resumed,
    saved,
    seeded,
    transcripts,
    written,
)
from own_compaction import compact_by_itself

from compactor_cli.formats.clients import find_problems
from compactor_cli.model.plan import Mode

CLIENTS = ("codex", "claude", "pi", "gemini", "qwen", "kimi-code")
# These two have no file with a boundary that could be appended.
REWRITTEN = ("kimi", "opencode")
WAYS = [(name, mode) for name in CLIENTS for mode in Mode] + [(name, Mode.REWRITE) for name in REWRITTEN]
HEADS = ("codex", "gemini", "qwen")
_COUNTERS = re.compile(
    r'"(input_tokens|total_tokens|totalTokens|input|total|promptTokenCount|totalTokenCount|inputOther|tokens|token_count)":\s*'
    r"[1-9]\d{2,}"
)


def _check(text: str, see: tuple[str, ...], not_see: tuple[str, ...]) -> None:
    assert [word for word in see if word not in text] == []
    assert [word for word in not_see if word in text] == []


@pytest.mark.parametrize(("name", "mode"), WAYS)
def test_summary_and_tail_are_sent_and_the_middle_is_not_twice_in_a_row(name: str, mode: Mode, tmp_path: Path) -> None:
    source = seeded(name, tmp_path)
    done = compacted(source, "SUMMARY-ONE", mode)
    assert done.changed, done.report.reason
    assert mode is Mode.REWRITE or done.output.startswith(source.read_bytes())
    first = written(source, done, "first")
    assert not find_problems(transcripts(first)[0])
    assert not compacted(first, "SUMMARY-ONE", mode).changed
    head = ("MARK-A1", "TOOL-OUT-A1") if mode is Mode.REWRITE or name in HEADS else ()
    once = resumed(name, first, "E5")
    tail = in_file(source, "MARK-D4", "TOOL-OUT-D4")
    _check(once.text, (*in_file(source, *head), "SUMMARY-ONE", *tail), ("MARK-B2", "TOOL-OUT-B2", "TOOL-OUT-C3"))

    gone_on(once, prompt("F6"))
    again = saved(once.client, tmp_path / "again")
    second = written(again, compacted(again, "SUMMARY-TWO", mode), "second")
    twice = resumed(name, second)
    gone = ("MARK-B2", "MARK-C3", "TOOL-OUT-D4", "MARK-E5", "TOOL-OUT-E5", "SUMMARY-ONE")
    tail = in_file(again, "MARK-F6", "TOOL-OUT-F6")
    _check(twice.text, (*in_file(source, *head), "SUMMARY-TWO", *tail), gone)
    if mode is Mode.REWRITE:
        data = second.read_text(encoding="utf-8")
        assert [word for word in ("MARK-B2", "TOOL-OUT-B2", "TOOL-OUT-E5", "SUMMARY-ONE") if word in data] == []


@pytest.mark.parametrize("name", [*CLIENTS, "opencode"])
def test_what_is_kept_apart_is_sent_between_summary_and_tail(name: str, tmp_path: Path) -> None:
    source = seeded(name, tmp_path)
    done = compacted(source, "SUMMARY-ONE", Mode.REWRITE, kept="TOOL-OUT-B2")
    assert done.changed, done.report.reason
    first = written(source, done, "first")
    once = resumed(name, first)
    _check(once.text, ("MARK-A1", "SUMMARY-ONE", "TOOL-OUT-B2", "MARK-D4", "TOOL-OUT-D4"), ("MARK-C3",))
    order = [once.text.index(word) for word in ("SUMMARY-ONE", "TOOL-OUT-B2", "MARK-D4")]
    assert order == sorted(order)


@pytest.mark.parametrize("name", [*CLIENTS, *REWRITTEN])
def test_the_view_is_what_the_client_sends_item_by_item(name: str, tmp_path: Path) -> None:
    source = seeded(name, tmp_path)
    first = written(source, compacted(source, "SUMMARY-ONE", Mode.REWRITE), "first")
    for path in (source, first):
        requested = items_requested(json.loads(resumed(name, path).text))
        coming = iter(requested)
        passed: list[Item] = []
        for item in items_viewed(path):
            for found, is_added in coming:
                if is_same(item, found):
                    break
                if not is_added:
                    passed.append(found)
            else:
                rest = [found for found, is_added in requested if not is_added]
                raise AssertionError(f"the client does not send {item} here, but {rest}")
        left = [found for found, is_added in coming if not is_added and "MARK-Z9" not in str(found)]
        assert (passed, left) == ([], [])


@pytest.mark.parametrize(("name", "mode"), WAYS)
def test_a_stale_counter_does_not_make_the_client_compact_at_once(
    name: str, mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = client(name)
    if name == "claude":
        monkeypatch.setattr(made, "env", {**made.env, "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"})
    source = seeded(name, tmp_path)
    stale = _COUNTERS.sub(rf'"\1":{STALE_TOKENS}', source.read_text(encoding="utf-8"))
    source.write_text(stale, encoding="utf-8")
    usual = resumed(name, written(source, compacted(seeded(name, tmp_path / "fresh"), "SUMMARY-ONE", mode), "usual"))
    after = resumed(name, written(source, compacted(source, "SUMMARY-ONE", mode), "after"))
    assert "SUMMARY-ONE" in after.text
    assert after.requests <= usual.requests


@pytest.mark.parametrize(("name", "mode"), WAYS)
def test_the_client_s_own_compaction_replaces_ours_and_ours_the_client_s(name: str, mode: Mode, tmp_path: Path) -> None:
    source = seeded(name, tmp_path)
    session = resumed(name, written(source, compacted(source, "SUMMARY-ONE", mode), "first"), "E5")
    compact_by_itself(session)
    text = gone_on(session, prompt("G7"))
    gone = ("SUMMARY-ONE", "MARK-B2", "TOOL-OUT-B2", "MARK-C3", "TOOL-OUT-C3")
    _check(text, ("MOCK-NATIVE-SUMMARY", "MARK-G7"), gone)

    gone_on(session, prompt("H8"), prompt("F6"))
    again = saved(session.client, tmp_path / "again")
    (transcript,) = transcripts(again)
    summaries = [message.summary.text for message in transcript.messages if message.summary and not message.superseded]
    assert len(summaries) == 1
    assert "MOCK-NATIVE-SUMMARY" in summaries[0]
    twice = resumed(name, written(again, compacted(again, "SUMMARY-TWO", mode), "second"))
    gone = (*gone, "MOCK-NATIVE-SUMMARY", "MARK-G7", "TOOL-OUT-G7", "MARK-H8", "TOOL-OUT-H8")
    _check(twice.text, ("SUMMARY-TWO", *in_file(again, "MARK-F6", "TOOL-OUT-F6")), gone)


@pytest.mark.parametrize(("name", "mode"), WAYS)
def test_behind_a_turn_that_was_broken_off_the_client_sends_what_the_view_says(
    name: str, mode: Mode, tmp_path: Path
) -> None:
    session = resumed(name, seeded(name, tmp_path), "E5")
    broken_off(session, "I9")
    gone_on(session, prompt("F6"))
    source = saved(session.client, tmp_path / "broken")
    done = compacted(source, "SUMMARY-ONE", mode, keep=TWO_TURNS)
    assert done.changed, done.report.reason
    first = written(source, done, "first")
    text = resumed(name, first).text
    _check(text, ("SUMMARY-ONE", *in_file(source, "MARK-F6", "TOOL-OUT-F6")), ("TOOL-OUT-B2", "TOOL-OUT-C3"))
    assert marks(text) == marks_sent(first)
