"""Inputs parted into shards, and shares of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scale_cases import dataset

from compactor_cli.model.errors import UsageError
from compactor_cli.read.sources import find_sources
from compactor_cli.run.shards import Shard, plan_shards, share

SIZES = st.lists(st.integers(0, 1000), max_size=40)


@given(SIZES, st.integers(1, 9))
def test_every_shard_is_in_exactly_one_share(sizes: list[int], count: int) -> None:
    shards = [Shard(input=f"{n}", output=f"{n:03}", size_bytes=size) for n, size in enumerate(sizes)]
    shares = [share(shards, index, count) for index in range(1, count + 1)]
    assert sorted(shard.output for one in shares for shard in one) == [shard.output for shard in shards]
    loads = [sum(shard.size_bytes + 1 for shard in one) for one in shares]
    assert max(loads) - min(loads) <= max((size + 1 for size in sizes), default=0)


def test_a_file_of_rows_is_parted_and_all_else_is_whole(work: Path) -> None:
    Path("rows.jsonl").write_bytes(dataset(8))
    Path("small.jsonl").write_bytes(dataset(1))
    Path("session.jsonl").write_bytes(b'{"role": "user", "content": "hello"}\n' * 1000)
    Path("packed.jsonl.gz").write_bytes(gzip.compress(dataset(8), 0))
    names = ["rows.jsonl", "small.jsonl", "session.jsonl", "packed.jsonl.gz", "missing.jsonl"]
    shards = plan_shards(find_sources(names), "out", 20_000)
    parted = [shard for shard in shards if shard.input == "rows.jsonl"]
    assert len(parted) > 2
    assert [shard.part.start for shard in parted if shard.part][1:] == [s.part.stop for s in parted if s.part][:-1]
    assert parted[1].output == f"out/rows-00001-of-{len(parted):05}.jsonl"
    assert [(shard.input, shard.part) for shard in shards if shard.input != "rows.jsonl"] == [
        (name, None) for name in names[1:]
    ]
    assert [shard.part for shard in plan_shards(find_sources(["rows.jsonl"]), "out", 0)] == [None]


def test_outputs_of_another_parting_are_not_mixed_with_the_new_ones(work: Path) -> None:
    Path("rows.jsonl").write_bytes(dataset(8))
    sources = find_sources(["rows.jsonl"])
    Path("out").mkdir()
    Path("out/rows-00000-of-00002.jsonl").write_bytes(b"")
    Path("out/rows-of-another.jsonl").write_bytes(b"")
    for split in (20_000, 0):
        with pytest.raises(UsageError, match=r"rows-00000-of-00002\.jsonl: is of another parting"):
            plan_shards(sources, "out", split)
    Path("out/rows-00000-of-00002.jsonl").rename("out/rows.jsonl")
    assert len(plan_shards(sources, "out", 0)) == 1
    with pytest.raises(UsageError, match=r"out/rows\.jsonl"):
        plan_shards(sources, "out", 20_000)


def test_standard_input_is_refused() -> None:
    with pytest.raises(UsageError, match="standard input"):
        plan_shards(find_sources(["-"]), "out")
