"""Columns: files whose conversations are cells of columns, Parquet or lines of JSON; every other byte or cell stays."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli.archive.atomic import DEFAULT_MODE, atomic_writer, make_folders
from compactor_cli.archive.targets import open_target
from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.model.transcript import Record
from compactor_cli.read.jsonl import records_in
from compactor_cli.read.streams import ContentHash, content_sha256, open_stream, unreadable
from compactor_cli.run.in_memory import (
    CellMaker,
    ColumnPath,
    RowCell,
    check_column,
    column_paths,
    compact_at,
    compact_within,
    holds_conversation,
)
from compactor_cli.run.jobs import Job, Outputs, RunConfig, row_maker
from compactor_cli.run.outputs import InputTally
from compactor_cli.run.rows import mapped

if TYPE_CHECKING:
    from compactor_cli.run.model_run import ModelRun

_PARQUET_MAGIC = b"PAR1"
# This many rows are looked at for the column that holds conversations.
_LOOKED_AT_ROWS = 20


def group_sizes(path: str) -> tuple[int, ...]:
    """The bytes of each row group, as stored."""
    metadata = _open(path).metadata
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return tuple(sum(group.column(n).total_compressed_size for n in range(group.num_columns)) for group in groups)


def is_parquet(path: str) -> bool:
    """Whether a file is Parquet, by its first bytes. Raises `Unreadable`."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC
    except OSError as error:
        raise unreadable(error, path) from error


def compact_table(job: Job, run_config: RunConfig, outputs: Outputs) -> InputTally:
    """The row groups of a Parquet file, or of a part of it.

    One row group is held at a time. The output has the schema, the metadata, the row groups and the compression of
    the source. Raises `InputError` where no column holds conversations, `UsageError` without pyarrow.
    """
    source, part, models = job.source.path, job.part, run_config.model_run
    _refuse_archive(run_config, "tables", source)
    file = _open(source)
    groups = range(part.start, part.stop) if part else range(file.metadata.num_row_groups)
    columns = _columns(_paths(file, run_config.column, source), job, run_config)
    first_row = 0
    tally = InputTally(path=source)
    make_folders(Path(job.target.path).absolute().parent)
    mode = (stat.S_IMODE(Path(source).stat().st_mode) | stat.S_IWUSR) & DEFAULT_MODE
    with atomic_writer(job.target.path, mode=mode) as target, _writer(file, target) as writer:
        for group in groups:
            table = file.read_row_group(group)
            for path, cells in columns:
                table, made = _compacted(table, path, cells, models)
                for row, cell in made:
                    _count(cell, first_row + row, tally, outputs)
            first_row += table.num_rows
            writer.write_table(table, row_group_size=max(table.num_rows, 1))
        if models:
            models.settle()
    tally.bytes_before = sum(group_sizes(source)[group] for group in groups)
    # Of the whole file, for a part is row groups, not bytes.
    tally.sha256 = content_sha256(source)
    return tally


def _columns(paths: Sequence[ColumnPath], job: Job, run_config: RunConfig) -> list[tuple[ColumnPath, CellMaker]]:
    """The columns, each with what compacts its cells."""
    rows = row_maker(job, run_config)
    return [(path, CellMaker(rows=rows, column=path[-1], dialect=run_config.dialect)) for path in paths]


def _count(cell: RowCell, row: int, tally: InputTally, outputs: Outputs) -> None:
    if cell.reason and outputs.failed_row:
        outputs.failed_row(row, cell.reason, cell.text)
    for report in cell.reports:
        tally.add(report)


def _compacted(
    table: Any, path: ColumnPath, cells: CellMaker, models: ModelRun | None
) -> tuple[Any, list[tuple[int, RowCell]]]:
    """The table with this column compacted; each cell that holds something, with its row."""
    import pyarrow

    place = table.schema.get_field_index(path[0])
    field = table.schema.field(place)
    values = table.column(place).to_pylist()
    made: list[tuple[int, RowCell]] = []
    present = [row for row, value in enumerate(values) if value]
    for row, (value, cell) in mapped(lambda row: compact_at(path, values[row], cells), present, models):
        values[row] = value
        if cell:
            made.append((row, cell))
    return table.set_column(place, field, pyarrow.array(values, type=field.type)), made


def _paths(file: Any, names: str, source: str) -> tuple[ColumnPath, ...]:
    """The columns that are named, or the one that holds conversations. Raises `InputError`."""
    schema = file.schema_arrow
    if names:
        paths = column_paths(names, schema.names, place=source)
        for path in paths:
            for batch in islice(file.iter_batches(_LOOKED_AT_ROWS, columns=[path[0]]), 1):
                check_column(path, batch.column(path[0]).to_pylist(), schema.names, place=source)
        return paths
    candidates: list[str] = [field.name for field in schema if _may_hold_messages(field.type)]
    for batch in file.iter_batches(_LOOKED_AT_ROWS, columns=candidates) if candidates else ():
        for column in candidates:
            if any(holds_conversation(column, value) for value in batch.column(column).to_pylist() if value):
                return ((column,),)
        break
    advice = f"name it with --column; columns: {', '.join(schema.names)}"
    raise InputError("no column holds conversations", place=source, next_step=advice)


def _may_hold_messages(kind: Any) -> bool:
    """Texts, and lists of structures, as messages are in a table of their own kind."""
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind)
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(test(kind) for test in texts) or bool(is_list and types.is_struct(kind.value_type))


def _writer(file: Any, target: Any) -> Any:
    from pyarrow import parquet

    metadata = file.metadata
    packed: str = metadata.row_group(0).column(0).compression if metadata.num_row_groups else "ZSTD"
    return parquet.ParquetWriter(target, file.schema_arrow, compression=packed.replace("UNCOMPRESSED", "NONE"))


def _open(path: str) -> Any:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        advice = "pip install 'compactor-cli[parquet]'"
        raise UsageError("Parquet needs the package pyarrow", place=path, next_step=advice) from None
    try:
        return parquet.ParquetFile(path)
    except (ArrowException, OSError) as error:
        advice = "it may be torn; check it where it came from"
        raise InputError(f"is not a readable Parquet file ({error})", place=path, next_step=advice) from error


def compact_columns_of_lines(job: Job, run_config: RunConfig, outputs: Outputs) -> InputTally:
    """Rows of which the columns that are named are conversations, wherever in a row these are.

    Every other byte of a row stays. Raises `InputError` where the first rows have no such column, or nothing in it.
    """
    source, models, content = job.source.path, run_config.model_run, ContentHash()
    _refuse_archive(run_config, "parts of lines", source)
    with open_stream(source, (content,), job.part, limits=run_config.limits) as stream:
        records = records_in(stream, run_config.on_invalid, source)
        tally = InputTally(path=source, records=records)
        first = list(islice(records, _LOOKED_AT_ROWS))
        rows = [record.value for record in first if isinstance(record.value, dict)]
        names = tuple(dict.fromkeys(name for row in rows for name in row))
        paths = column_paths(run_config.column, names, place=source) if first else ()
        for path in paths:
            check_column(path, [row.get(path[0]) for row in rows], names, place=source)
        compact = partial(_compact_line, columns=_columns(paths, job, run_config))
        with open_target(job.target, stream) as file:
            file.write(records.prefix)
            for number, (record, (line, made)) in enumerate(mapped(compact, chain(first, records), models)):
                for cell in made:
                    _count(cell, number, tally, outputs)
                file.write(line + record.ending)
            if models:
                models.settle()
    tally.sha256, tally.bytes_before = content.sha256, content.size_bytes
    return tally


def _compact_line(record: Record, columns: Sequence[tuple[ColumnPath, CellMaker]]) -> tuple[bytes, list[RowCell]]:
    raw, made = record.raw, []
    for path, cells in columns if isinstance(record.value, dict) else ():
        raw, cell = compact_within(raw, path, cells)
        made += [cell] if cell else []
    return raw, made


def _refuse_archive(run_config: RunConfig, what: str, source: str) -> None:
    if run_config.archive_dir:
        advice = "leave --archive-dir out: the input stays where it is"
        raise UsageError(f"an archive holds lines, not {what}", place=source, next_step=advice)
