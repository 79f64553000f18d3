"""``compactor batch`` on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scale_cases import TARGET, Batch, dataset, joined, plain

RUN = ("-t", TARGET, "--output-dir", "out")
SMALL = ("--split", "20k")


def test_shares_and_processes_give_the_bytes_of_a_plain_run(work: Path, batch: Batch) -> None:
    (work / "rows.jsonl").write_bytes(dataset(12, odd=True))
    expected = plain(work / "rows.jsonl")
    for index in (2, 3, 1):
        code, _, said = batch("rows.jsonl", *RUN, *SMALL, "--shard", f"{index}/3", "-q")
        assert (code, said) in ((0, ""), (3, ""))
    assert joined(work / "out", "rows-*.jsonl") == expected
    assert len(list((work / "out").glob("*.failed"))) > 0
    code, _, said = batch("rows.jsonl", "-t", TARGET, "--output-dir", "many", *SMALL, "-j", "2")
    assert code == 3
    assert "failed and were passed on unchanged" in said
    assert joined(work / "many", "rows-*.jsonl") == expected


def test_a_run_goes_on_where_another_one_stopped(work: Path, batch: Batch) -> None:
    (work / "rows.jsonl").write_bytes(dataset(8))
    (work / "torn.jsonl").write_bytes(b"{torn")
    code, _, said = batch("torn.jsonl", "rows.jsonl", *RUN, "--report", "first.json")
    assert (code, "torn.jsonl:1: the last line is torn" in said) == (3, True)
    (work / "torn.jsonl").write_bytes(dataset(1))
    assert batch("torn.jsonl", "rows.jsonl", *RUN, "--report", "second.json")[0] == 0
    first, second = (json.loads(Path(name).read_text())["metrics"] for name in ("first.json", "second.json"))
    assert (first["shards"], first["shards_failed"]) == (1, 1)
    assert (second["shards"], second["shards_skipped"]) == (1, 1)
    assert second["tokens_before"] > first["tokens_before"] > 0
    assert batch("torn.jsonl", "rows.jsonl", *RUN, "-f", "--report", "-")[1].count('"shards": 2') == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rows.jsonl",), "--output-dir DIR"),
        (("rows.jsonl", "--output-dir", "out", "--shard", "4/3"), "from 1/N to N/N"),
        (("rows.jsonl", "--output-dir", "out", "--shard", "0/3"), "from 1/N to N/N"),
        (("rows.jsonl", "--output-dir", "out", "--split", "lots"), "write 64M or 1G"),
        (("rows.jsonl", "--output-dir", "out", "--engine", "spark"), "local or ray"),
        (("rows.jsonl", "--output-dir", "out", "--address", "auto"), "add --engine ray"),
        (("-", "--output-dir", "out"), "standard input cannot be parted"),
    ],
)
def test_what_cannot_be_meant_is_refused(work: Path, batch: Batch, arguments: tuple[str, ...], said: str) -> None:
    (work / "rows.jsonl").write_bytes(dataset(2))
    code, _, error = batch(*arguments)
    assert (code, said in error) == (2, True)
    assert not Path("out").exists()


def test_trees_keep_their_shape_and_outputs_are_no_inputs(work: Path, batch: Batch) -> None:
    for name in ("a/rows.jsonl", "b/c/rows.jsonl"):
        path = work / "data" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(dataset(3))
    for _ in range(2):
        assert batch("-r", "data", "-t", TARGET, "--output-dir", "data/out")[0] == 0
    outputs = sorted(str(path.relative_to("data/out")) for path in Path("data/out").rglob("*.jsonl"))
    assert outputs == ["a/rows.jsonl", "b/c/rows.jsonl"]
