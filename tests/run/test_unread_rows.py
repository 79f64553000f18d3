"""Rows that need nothing: what of them is read, and that nobody sees the difference."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from compactor_cli.archive.atomic import Existing
from compactor_cli.formats import detect
from compactor_cli.model.report import LISTED, Event, InputReport, TranscriptEnded
from compactor_cli.model.settings import PruneRule, Settings, Size, When
from compactor_cli.plan.tokens import TiktokenCounter
from compactor_cli.read import jsonl
from compactor_cli.read.sources import InputSource
from compactor_cli.run import jobs
from compactor_cli.run.jobs import Job, Outputs, Purpose, RunConfig
from compactor_cli.run.outputs import Target, TargetKind
from compactor_cli.run.rows import RowMaker
from compactor_cli.run.runner import run_batch

SMALL = {"messages": [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because of caf\u00e9 7."}]}
WITH_CALL = {
    "messages": [
        {"role": "user", "content": "List it."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "ls", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "one two"},
    ]
}
WITH_IMAGE = {
    "messages": [*WITH_CALL["messages"], {"role": "tool", "content": [{"type": "image_url", "image_url": "u"}]}]
}
LARGE = {"messages": [{"role": role, "content": "many words " * 300} for role in ("user", "assistant") * 4]}
TURNS = {"conversations": [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Good day"}]}
MIXED = (SMALL, WITH_CALL, SMALL, LARGE, TURNS, SMALL, WITH_IMAGE, TURNS) * 8
CONFIG = RunConfig(settings=Settings(target=Size(tokens=900)))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The rows of which messages are made."""
    rows: list[Any] = []
    read_messages = detect.read_messages

    def counting(dialect: Any, records: Any, row: Any = None) -> Any:
        rows.append(row)
        return read_messages(dialect, records, row)

    monkeypatch.setattr(detect, "read_messages", counting)
    return rows


def _run(
    rows: Any, folder: Path, run_config: RunConfig = CONFIG, processes: int = 1, outputs: Outputs | None = None
) -> tuple[InputReport, bytes]:
    source, out = folder / "rows.jsonl", folder / "out.jsonl"
    source.write_bytes(b"".join((json.dumps(row).encode() if row else b"") + b"\n" for row in rows))
    out.unlink(missing_ok=True)
    target = Target(path=str(out), kind=TargetKind.FILE, existing=Existing.REPLACE)
    job = Job(source=InputSource(path=str(source), name=source.name, root=str(folder)), target=target)
    run_config = replace(run_config, archive_dir=str(folder / "archive"))
    (report,) = run_batch([job], run_config, processes=processes, outputs=outputs)
    return report, out.read_bytes() if out.exists() else b""


def test_rows_that_need_nothing_are_read_as_far_as_the_report_lists_them(tmp_path: Path, read: list[Any]) -> None:
    report, out = _run([SMALL, WITH_CALL] * 50, tmp_path)
    assert len(read) == len(report.transcripts) == LISTED
    assert report.counts == {"unchanged": 100}
    assert out == (tmp_path / "rows.jsonl").read_bytes()


def test_no_format_is_tried_on_a_row_like_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []
    dialects_for = detect.dialects_for
    monkeypatch.setattr(detect, "dialects_for", lambda value: tried.append(value) or dialects_for(value))
    _run([SMALL] * LISTED, tmp_path)
    first = len(tried)
    _run([SMALL] * 100, tmp_path)
    assert len(tried) == 2 * first


def test_a_row_that_needs_nothing_is_parsed_once_and_none_of_its_texts_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[bytes] = []
    counted: list[str] = []
    counting = SimpleNamespace(**vars(orjson))
    counting.loads = lambda raw: (parsed.append(raw), orjson.loads(raw))[1]
    monkeypatch.setattr(jsonl, "orjson", counting)
    monkeypatch.setattr(TiktokenCounter, "count", lambda self, text: (counted.append(text), len(text))[1])
    _run([SMALL] * 100, tmp_path)
    # The first line is looked at to see whether it opens a document.
    assert len(parsed) <= 100 + 2
    assert counted == []


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_written_and_reported_is_the_same_as_of_rows_that_are_read(
    processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread = _run(MIXED, tmp_path, processes=processes)
    monkeypatch.setattr(RowMaker, "unread_bytes", 0)
    assert _run(MIXED, tmp_path) == unread
    assert unread[0].counts == {"unchanged": 56, "compacted": 8}


def test_an_unread_row_that_is_listed_is_reported_as_if_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[Any]
) -> None:
    # Blank lines count as lines: rows beyond those that a report lists by their line are unread, and yet listed.
    rows = [SMALL, None] * LISTED
    unread, _ = _run(rows, tmp_path)
    assert len(read) < LISTED
    monkeypatch.setattr(RowMaker, "unread_bytes", 0)
    whole, _ = _run(rows, tmp_path)
    assert len(unread.transcripts) == LISTED
    assert [replace(row, dialect="openai-chat") for row in unread.transcripts] == list(whole.transcripts)


def test_a_row_with_an_image_in_a_result_is_read_as_it_has_more_tokens_than_bytes(
    tmp_path: Path, read: list[Any]
) -> None:
    report, _ = _run([*[SMALL] * LISTED, SMALL, WITH_IMAGE], tmp_path)
    assert len(read) == LISTED + 1
    assert report.transcripts[-1].tokens_before > 1_600
    assert report.transcripts[-1].over_target


@pytest.mark.parametrize(
    "run_config",
    [
        replace(CONFIG, purpose=Purpose.PLAN),
        replace(CONFIG, redacts_output=True),
        replace(CONFIG, settings=replace(CONFIG.settings, prune=(PruneRule(name="r", when=When.ALWAYS),))),
        replace(CONFIG, settings=replace(CONFIG.settings, target=Size(ratio=1.0))),
    ],
)
def test_rows_are_read_where_more_than_their_size_counts(
    run_config: RunConfig, tmp_path: Path, read: list[Any]
) -> None:
    _run([SMALL] * 30, tmp_path, run_config)
    assert len(read) == 30


def test_a_row_that_stays_unread_is_hashed_only_where_its_report_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[bytes] = []
    counting = SimpleNamespace(sha256=lambda raw: (hashed.append(raw), hashlib.sha256(raw))[1])
    monkeypatch.setattr(jobs, "hashlib", counting)
    _run([SMALL] * 100, tmp_path)
    assert hashed == []
    events: list[Event] = []
    _run([SMALL] * 100, tmp_path, outputs=Outputs(emit=events.append))
    (row,) = {event.report.sha256 for event in events if isinstance(event, TranscriptEnded)}
    assert row == hashlib.sha256(json.dumps(SMALL).encode() + b"\n").hexdigest()
    assert len(hashed) == 100 - LISTED
