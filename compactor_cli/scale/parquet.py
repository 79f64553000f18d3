"""Parquet: one column compacted row group by row group, everything else carried along. Needs the extra [parquet]."""

from __future__ import annotations

import stat
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli.archive.atomic import DEFAULT_MODE, atomic_writer, make_folders
from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.read.streams import Slice
from compactor_cli.scale.cells import CellMaker, RowCell, holds_conversation
from compactor_cli.scale.columns import ColumnPath, check_column, column_paths, compact_at
from compactor_cli.scale.failed_rows import FailedRows
from compactor_cli.scale.mark import content_sha256
from compactor_cli.scale.shard_metrics import ShardMetrics
from compactor_cli.scale.shard_options import ShardOptions
from compactor_cli.scale.work import mapped, row_maker

if TYPE_CHECKING:
    from compactor_cli.run.model_run import ModelRun

# This many rows are looked at for the column that holds conversations.
_LOOKED_AT_ROWS = 20


def group_sizes(path: str) -> tuple[int, ...]:
    """The bytes of each row group, as stored."""
    metadata = _open(path).metadata
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return tuple(sum(group.column(n).total_compressed_size for n in range(group.num_columns)) for group in groups)


def compact_table(
    source: str, output: str, options: ShardOptions, part: Slice | None, models: ModelRun | None
) -> tuple[ShardMetrics, str]:
    """The row groups of a file, or of a ``part`` of it; the hash of the file.

    One row group is held at a time. The output has the schema, the metadata, the row groups and the compression of
    the source. Raises `InputError` where no column holds conversations, `UsageError` without pyarrow.
    """
    if options.archive_dir:
        advice = "leave --archive-dir out: the input stays where it is"
        raise UsageError("an archive holds lines, not tables", place=source, next_step=advice)
    file = _open(source)
    groups = range(part.start, part.stop) if part else range(file.metadata.num_row_groups)
    rows = row_maker(options, models)
    columns = [
        (path, CellMaker(rows=rows, column=path[-1], dialect=options.dialect))
        for path in _paths(file, options.column, source)
    ]
    first_row = 0
    metrics = ShardMetrics()
    make_folders(Path(output).absolute().parent)
    mode = (stat.S_IMODE(Path(source).stat().st_mode) | stat.S_IWUSR) & DEFAULT_MODE
    with FailedRows(output) as failed, atomic_writer(output, mode=mode) as target, _writer(file, target) as writer:
        for group in groups:
            table = file.read_row_group(group)
            for path, cells in columns:
                table, made = _compacted(table, path, cells, models)
                for row, cell in made:
                    if cell.reason:
                        failed.add(first_row + row, cell.reason, cell.text)
                    metrics += cell.metrics
            first_row += table.num_rows
            writer.write_table(table, row_group_size=max(table.num_rows, 1))
        if models:
            models.settle()
    size_bytes = sum(group_sizes(source)[group] for group in groups)
    return replace(metrics, bytes_before=size_bytes), content_sha256(source, None)


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
    candidates: list[str] = [field.name for field in schema if _is_text(field.type) or _is_nested(field.type)]
    for batch in file.iter_batches(_LOOKED_AT_ROWS, columns=candidates) if candidates else ():
        for column in candidates:
            if any(holds_conversation(column, value) for value in batch.column(column).to_pylist() if value):
                return ((column,),)
        break
    advice = f"name it with --column; columns: {', '.join(schema.names)}"
    raise InputError("no column holds conversations", place=source, next_step=advice)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return any(test(kind) for test in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary))


def _is_nested(kind: Any) -> bool:
    """Lists of structures, as messages are in a table of their own kind."""
    from pyarrow import types

    is_list = types.is_list(kind) or types.is_large_list(kind)
    return bool(is_list and types.is_struct(kind.value_type))


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
        raise InputError(f"is no readable Parquet file ({error})", place=path, next_step=advice) from error
