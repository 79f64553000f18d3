"""Parquet: a column of texts, of JSON, or of messages; everything else carried along."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scale_cases import OPTIONS, TARGET, Batch, messages, row

from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.read.streams import Slice
from compactor_cli.run.shards import compact_shard

pyarrow = pytest.importorskip("pyarrow", reason="the extra [parquet] is not installed")
parquet = pytest.importorskip("pyarrow.parquet")

STEPS = (2, 7, 8, 1, 9)


def write(path: str, columns: dict[str, Any], group_rows: int = 2) -> Any:
    table = pyarrow.table(columns).replace_schema_metadata({"made by": "a test"})
    parquet.write_table(table, path, row_group_size=group_rows, compression="zstd")
    return table


def texts() -> list[str]:
    return [row(number, steps).decode().strip() for number, steps in enumerate(STEPS)]


def test_a_column_of_texts_gives_the_rows_of_a_plain_run(work: Path) -> None:
    source = write("rows.parquet", {"n": list(range(5)), "chat": texts(), "note": ["a"] * 5})
    metrics = compact_shard("rows.parquet", "out.parquet", OPTIONS)
    (work / "rows.jsonl").write_text("".join(f"{text}\n" for text in texts()), encoding="utf-8")
    lines_metrics = compact_shard("rows.jsonl", "out.jsonl", OPTIONS)
    found = parquet.read_table("out.parquet")
    assert found["chat"].to_pylist() == (work / "out.jsonl").read_text().splitlines()
    assert (metrics.compacted, metrics.unchanged) == (lines_metrics.compacted, lines_metrics.unchanged) == (3, 2)
    assert metrics.tokens_after == lines_metrics.tokens_after
    assert found.schema.equals(source.schema, check_metadata=True)
    assert [found[name].to_pylist() for name in ("n", "note")] == [source[name].to_pylist() for name in ("n", "note")]
    assert parquet.ParquetFile("out.parquet").num_row_groups == 3
    assert parquet.ParquetFile("out.parquet").metadata.row_group(0).column(0).compression == "ZSTD"
    before = Path("out.parquet").read_bytes()
    assert compact_shard("rows.parquet", "out.parquet", OPTIONS).shards_skipped == 1
    assert compact_shard("rows.parquet", "again.parquet", OPTIONS).shards == 1
    assert Path("again.parquet").read_bytes() == before


def test_a_column_of_arrays_is_read_under_its_name(work: Path) -> None:
    write("rows.parquet", {"messages": [json.dumps(messages(steps)) for steps in STEPS]})
    assert compact_shard("rows.parquet", "out.parquet", OPTIONS).compacted == 3
    cells = [json.loads(cell) for cell in parquet.read_table("out.parquet")["messages"].to_pylist()]
    assert cells[0] == messages(2)
    assert len(cells[4]) < len(messages(9))
    assert cells[4][-1] == messages(9)[-1]


def test_a_column_of_messages_keeps_its_type(work: Path) -> None:
    conversation = [[{"role": m["role"], "content": m["content"] or ""} for m in messages(steps)] for steps in STEPS]
    source = write("rows.parquet", {"id": list(range(5)), "messages": conversation})
    assert compact_shard("rows.parquet", "out.parquet", OPTIONS).compacted == 3
    found = parquet.read_table("out.parquet")
    assert found.schema.equals(source.schema)
    cells = found["messages"].to_pylist()
    assert (cells[0], cells[4][-1]) == (conversation[0], conversation[4][-1])
    assert any("[compact/1" in message["content"] for message in cells[4])


def test_odd_cells_are_passed_on_and_listed(work: Path) -> None:
    cells = [row(0, 8).decode(), None, '{"weather": "fine"}', "", row(1, 8).decode(), "{torn"]
    write("rows.parquet", {"chat": cells})
    metrics = compact_shard("rows.parquet", "out.parquet", OPTIONS)
    found = parquet.read_table("out.parquet")["chat"].to_pylist()
    assert [found[place] for place in (1, 2, 3, 5)] == [cells[place] for place in (1, 2, 3, 5)]
    assert (metrics.compacted, metrics.failed) == (2, 2)
    failed = [json.loads(line) for line in Path("out.parquet.failed").read_text().splitlines()]
    assert [one["text"] for one in failed] == ['{"weather": "fine"}', "{torn"]


def test_parts_are_row_groups(work: Path, batch: Batch) -> None:
    write("rows.parquet", {"chat": texts() * 4}, group_rows=3)
    size = sum(Path(name).stat().st_size for name in ("rows.parquet",)) // 3
    for index in (1, 2):
        arguments = ("rows.parquet", "-t", TARGET, "--output-dir", "out", "--split", size, "--shard", f"{index}/2")
        assert batch(*arguments)[0] == 0
    compact_shard("rows.parquet", "whole.parquet", OPTIONS)
    parts = sorted(Path("out").glob("*.parquet"))
    assert len(parts) > 1
    joined = pyarrow.concat_tables([parquet.read_table(part) for part in parts])
    assert joined.equals(parquet.read_table("whole.parquet"))


def test_a_part_is_not_done_again_when_only_the_time_of_its_file_changed(work: Path) -> None:
    write("rows.parquet", {"chat": texts()})
    part = Slice(start=1, stop=3)
    assert compact_shard("rows.parquet", "part.parquet", OPTIONS, part=part).shards == 1
    os.utime("rows.parquet", (1, 1))
    assert compact_shard("rows.parquet", "part.parquet", OPTIONS, part=part).shards_skipped == 1


def test_several_columns_and_one_inside_another_are_compacted_each(work: Path) -> None:
    talks = [[{"role": m["role"], "content": m["content"] or ""} for m in messages(steps)] for steps in (9, 2, 8)]
    extra = [{"n": 1, "chat": conversation} for conversation in talks]
    columns = {"chosen": [json.dumps(conversation) for conversation in talks], "rejected": talks, "extra": extra}
    source = write("rows.parquet", columns)
    metrics = compact_shard("rows.parquet", "out.parquet", replace(OPTIONS, column="chosen, rejected,extra.chat"))
    found = parquet.read_table("out.parquet")
    assert found.schema.equals(source.schema)
    assert (metrics.compacted, metrics.unchanged) == (6, 3)
    for cells in (
        [json.loads(cell) for cell in found["chosen"].to_pylist()],
        found["rejected"].to_pylist(),
        [cell["chat"] for cell in found["extra"].to_pylist()],
    ):
        assert cells[1] == talks[1]
        assert [len(cells[row]) < len(talks[row]) for row in (0, 2)] == [True, True]
    assert [cell["n"] for cell in found["extra"].to_pylist()] == [1, 1, 1]


def test_a_conversation_inside_a_column_of_json_texts_is_compacted(work: Path) -> None:
    cells = [f'{{ "chat": {json.dumps(messages(steps))}, "id": 1.10}}' for steps in (9, 2)]
    write("rows.parquet", {"extra": [*cells, None]})
    metrics = compact_shard("rows.parquet", "out.parquet", replace(OPTIONS, column="extra.chat"))
    found = parquet.read_table("out.parquet")["extra"].to_pylist()
    assert (metrics.compacted, metrics.unchanged) == (1, 1)
    assert found[0].startswith('{ "chat": [')
    assert found[0].endswith('], "id": 1.10}')
    assert len(json.loads(found[0])["chat"]) < len(messages(9))
    assert found[1:] == [cells[1], None]


def test_a_failed_row_is_named_by_its_place_in_the_table(work: Path) -> None:
    write("rows.parquet", {"chat": [None, row(0, 8).decode(), None, '{"weather": "fine"}']})
    compact_shard("rows.parquet", "out.parquet", OPTIONS)
    failed = [json.loads(line) for line in Path("out.parquet.failed").read_text().splitlines()]
    assert [one["row"] for one in failed] == [3]


@pytest.mark.parametrize("column", ["note", "extra.n", "extra.chat.deeper"])
def test_a_named_column_that_holds_no_conversation_is_refused(work: Path, column: str) -> None:
    write("rows.parquet", {"chat": texts(), "note": ["a"] * 5, "extra": [{"n": "a", "chat": "b"}] * 5})
    with pytest.raises(InputError, match=f"the column '{column}' holds no conversation"):
        compact_shard("rows.parquet", "out.parquet", replace(OPTIONS, column=column))


def test_what_is_no_table_of_conversations_is_refused(work: Path) -> None:
    write("rows.parquet", {"n": [1, 2], "text": ["a", "b"]})
    with pytest.raises(InputError, match="no column holds conversations: name it with --column; columns: n, text"):
        compact_shard("rows.parquet", "out.parquet", OPTIONS)
    with pytest.raises(InputError, match="no column is called 'chat'"):
        compact_shard("rows.parquet", "out.parquet", replace(OPTIONS, column="chat"))
    with pytest.raises(UsageError, match="leave --archive-dir out"):
        compact_shard("rows.parquet", "out.parquet", replace(OPTIONS, archive_dir="archive"))
    Path("torn.parquet").write_bytes(Path("rows.parquet").read_bytes()[:100])
    with pytest.raises(InputError, match="not a readable Parquet"):
        compact_shard("torn.parquet", "out.parquet", OPTIONS)
    assert sorted(path.name for path in Path().iterdir()) == ["rows.parquet", "torn.parquet"]
