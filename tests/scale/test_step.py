"""The step: one shard from a path to a path."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from scale_cases import ODD, OPTIONS, dataset, messages, plain

from compactor_cli.archive.restore import load_transcript
from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.model.marker import find_marker
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.read.streams import Slice
from compactor_cli.run import shards
from compactor_cli.run.jobs import FinishedPolicy
from compactor_cli.run.shards import ShardMetrics, compact_shard, settings_of


def test_the_bytes_are_those_of_a_plain_run_and_failed_rows_are_next_to_them(work: Path) -> None:
    source = work / "rows.jsonl"
    source.write_bytes(dataset(odd=True))
    metrics = compact_shard(source, work / "out/rows.jsonl", OPTIONS)
    assert (work / "out/rows.jsonl").read_bytes() == plain(source)
    assert (metrics.shards, metrics.failed, metrics.rows) == (1, 2, 8)
    assert metrics.compacted > 0
    assert metrics.bytes_before == source.stat().st_size
    assert metrics.bytes_after == (work / "out/rows.jsonl").stat().st_size
    failed = [json.loads(line) for line in (work / "out/rows.jsonl.failed").read_text().splitlines()]
    assert [(one["row"], one["text"].strip()) for one in failed] == [(2, ODD[0].decode().strip()), (5, "42")]
    assert all("no format is recognised" in one["reason"] for one in failed)


def test_a_row_that_is_nested_too_deeply_is_set_aside_and_the_others_are_done(work: Path) -> None:
    source = work / "rows.jsonl"
    deep = b'{"messages": ' + b"[" * 900 + b"]" * 900 + b"}\n"
    source.write_bytes(dataset(3) + deep + dataset(2))
    metrics = compact_shard(source, work / "out/rows.jsonl", OPTIONS)
    assert (metrics.failed, metrics.rows) == (1, 6)
    failed = [json.loads(line) for line in (work / "out/rows.jsonl.failed").read_text().splitlines()]
    assert [(one["row"], one["text"].encode()) for one in failed] == [(3, deep)]
    assert "defect" not in failed[0]["reason"]
    # What is not recognised as a row stays as it is.
    assert deep in (work / "out/rows.jsonl").read_bytes()


def test_packed_files_stay_packed(work: Path) -> None:
    Path("rows.jsonl.gz").write_bytes(gzip.compress(dataset()))
    compact_shard("rows.jsonl.gz", "out/rows.jsonl.gz", OPTIONS)
    assert Path("out/rows.jsonl.gz").read_bytes() == plain(work / "rows.jsonl.gz")


def test_a_finished_shard_is_not_done_again(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("rows.jsonl").write_bytes(dataset())
    first = compact_shard("rows.jsonl", "out.jsonl", OPTIONS)
    monkeypatch.setattr(shards, "compact_input", _fail)
    again = compact_shard("rows.jsonl", "out.jsonl", OPTIONS)
    assert (again.shards, again.shards_skipped) == (0, 1)
    assert (again.rows, again.tokens_after) == (first.rows, first.tokens_after)
    os.utime("rows.jsonl", (1, 1))  # another time, the same bytes
    assert compact_shard("rows.jsonl", "out.jsonl", OPTIONS).shards_skipped == 1


@pytest.mark.parametrize("change", ["input", "output", "settings", "mark", "wish", "part"])
def test_anything_else_is_done_again(work: Path, change: str) -> None:
    Path("rows.jsonl").write_bytes(dataset())
    compact_shard("rows.jsonl", "out.jsonl", OPTIONS)
    options, part = OPTIONS, None
    if change == "input":
        Path("rows.jsonl").write_bytes(dataset().replace(b"MIT", b"BSD"))
    elif change == "output":
        Path("out.jsonl").write_bytes(b"")
    elif change == "settings":
        options = replace(OPTIONS, settings=settings_of(target="1600"))
    elif change == "mark":
        Path("out.jsonl.done").write_text("{torn", encoding="utf-8")
    elif change == "wish":
        options = replace(OPTIONS, finished=FinishedPolicy.REDO)
    else:
        part = Slice(start=0, stop=10**9)
    assert compact_shard("rows.jsonl", "out.jsonl", options, part=part).shards == 1
    assert Path("out.jsonl").stat().st_size > 0


def _fail(*arguments: object) -> tuple[ShardMetrics, str]:
    raise AssertionError("was to be skipped")


def test_nothing_is_left_of_a_shard_that_fails(work: Path) -> None:
    Path("rows.jsonl").write_bytes(dataset() + b"{torn")
    with pytest.raises(InputError, match="torn"):
        compact_shard("rows.jsonl", "out/rows.jsonl", OPTIONS)
    assert list(Path("out").iterdir()) == []


def test_a_side_output_goes_when_its_rows_are_repaired(work: Path) -> None:
    Path("rows.jsonl").write_bytes(dataset(odd=True))
    compact_shard("rows.jsonl", "out.jsonl", OPTIONS)
    Path("rows.jsonl").write_bytes(dataset())
    compact_shard("rows.jsonl", "out.jsonl", OPTIONS)
    assert not Path("out.jsonl.failed").exists()


def test_the_columns_of_lines_that_are_named_are_compacted_and_every_other_byte_stays(work: Path) -> None:
    long, short = json.dumps(messages(9)), json.dumps(messages(2))
    packed = json.dumps(f'{{"chat": {long}}}')
    deeper = f'{{"chat" : {long}, "big": 12345678901234567890}}'
    rows = [
        f'{{"n": 1.10, "chosen": {long}, "rejected": {short}, "extra": {deeper}}}',
        f'{{"n": 2, "chosen": {short}, "extra": {packed}}}',
        '{"n": 3, "chosen": null}',
        '{"n": 4, "chosen": [1, 2]}',
    ]
    Path("rows.jsonl").write_text("".join(f"{row}\n" for row in rows))
    metrics = compact_shard("rows.jsonl", "out.jsonl", replace(OPTIONS, column="chosen, rejected,extra.chat"))
    found = Path("out.jsonl").read_text().splitlines()
    assert (metrics.compacted, metrics.unchanged, metrics.failed) == (3, 2, 1)
    first, second = json.loads(found[0]), json.loads(found[1])
    assert len(first["chosen"]) < len(messages(9))
    assert json.loads(second["extra"])["chat"] == first["extra"]["chat"]
    assert found[0].startswith('{"n": 1.10, "chosen": [')
    assert found[0].endswith('], "big": 12345678901234567890}}')
    assert f'"rejected": {short}, "extra": {{"chat" : [' in found[0]
    assert found[2:] == rows[2:]
    assert [json.loads(line)["row"] for line in Path("out.jsonl.failed").read_text().splitlines()] == [3]


@pytest.mark.parametrize(
    ("column", "what"), [("n", "'n' holds no conversation"), ("chat", "no column is called 'chat'")]
)
def test_a_column_that_lines_do_not_have_is_refused(work: Path, column: str, what: str) -> None:
    Path("rows.jsonl").write_text(json.dumps({"n": 1, "chosen": messages(2)}) + "\n")
    with pytest.raises(InputError, match=what):
        compact_shard("rows.jsonl", "out.jsonl", replace(OPTIONS, column=column))


def test_a_session_among_the_rows_of_a_part_is_an_error_not_a_guess(work: Path) -> None:
    session = b'{"role": "user", "content": "hello"}\n{"role": "assistant", "content": "yes"}\n'
    Path("rows.jsonl").write_bytes(dataset(2) + session)
    with pytest.raises(InputError, match="--split 0"):
        compact_shard("rows.jsonl", "out.jsonl", OPTIONS, part=Slice(start=10, stop=10**9))
    assert compact_shard("rows.jsonl", "out.jsonl", OPTIONS).rows == 3


def test_originals_go_to_an_archive_where_one_is_named(work: Path) -> None:
    from compactor_cli.cli.program import run_toolbox

    Path("rows.jsonl").write_bytes(dataset())
    options = replace(OPTIONS, archive_dir="archive")
    compact_shard("rows.jsonl", "out.jsonl", options, part=Slice(start=100, stop=10**9))
    assert run_toolbox(["verify", "archive"]) == 0
    assert len(list(Path("archive").glob("??/*.jsonl.zst"))) == 2  # the original and the list of its rows


def test_metrics_add_up_in_any_order() -> None:
    one, two = ShardMetrics(shards=1, compacted=2, seconds=0.5), ShardMetrics(shards_skipped=1, failed=3, seconds=1.5)
    assert one + two == two + one == ShardMetrics(shards=1, shards_skipped=1, compacted=2, failed=3, seconds=2.0)
    assert (one + two).rows == 5


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean target"):
        settings_of(targte="16k")


def test_an_archived_row_is_found_though_lines_before_it_were_left_out(work: Path) -> None:
    Path("rows.jsonl").write_bytes(b"not JSON\n" + dataset())
    compact_shard("rows.jsonl", "out.jsonl", replace(OPTIONS, archive_dir="archive", on_invalid=OnInvalid.DROP))
    rows = [json.loads(line)["messages"] for line in Path("out.jsonl").read_text().splitlines()]
    texts = (str(message["content"]) for messages in rows for message in messages)
    marker = next(filter(None, map(find_marker, texts)))
    assert load_transcript([Path("archive")], marker.transcript).sha256.startswith(marker.transcript)
