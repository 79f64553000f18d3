"""One shard, from a path to a path: the step that every executor runs."""

from __future__ import annotations

import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli.archive.atomic import DEFAULT_MODE, Existing, atomic_writer, make_folders
from compactor_cli.archive.store import Archive
from compactor_cli.archive.targets import Target, TargetKind, open_target
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import Changed, InputError, UsageError
from compactor_cli.model.report import Compaction, Outcome
from compactor_cli.model.settings import unarchived
from compactor_cli.model.transcript import Container, Record, Transcript
from compactor_cli.read.jsonl import records_in
from compactor_cli.read.streams import Slice, compression_named, look_at, open_stream
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
from compactor_cli.run.jobs import write_rows
from compactor_cli.run.outputs import ArchiveOnChange, Tally
from compactor_cli.run.resume import Mark, content_sha256
from compactor_cli.run.rows import RowMaker, mapped
from compactor_cli.run.shards import FailedRows, FinishedPolicy, ShardMetrics, ShardOptions, is_parquet, row_dialect

if TYPE_CHECKING:
    from compactor_cli.run.model_run import ModelRun


def row_maker(options: ShardOptions, models: ModelRun | None) -> RowMaker:
    """What compacts the rows of a shard."""
    archived = bool(options.archive_dir)
    settings = options.settings if archived else unarchived(options.settings)
    maker = RowMaker(settings=settings, load_state=_no_state, redacts=options.redacts_output, archived=archived)
    folder = Path(options.archive_dir)
    if archived:
        maker.load_state = Archive(folder).load_state
    if models is not None:
        run = models
        maker.summariser = lambda guidance: run.summariser(folder, guidance)
    return maker


def _no_state(name: str) -> bytes | None:
    return None


# This many rows are looked at for the column that holds conversations.
_LOOKED_AT_ROWS = 20


def group_sizes(path: str) -> tuple[int, ...]:
    """The bytes of each row group, as stored."""
    metadata = _open(path).metadata
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return tuple(sum(group.column(n).total_compressed_size for n in range(group.num_columns)) for group in groups)


def _compact_table(
    source: str, output: str, options: ShardOptions, part: Slice | None, models: ModelRun | None
) -> tuple[ShardMetrics, str]:
    """The row groups of a file, or of a ``part`` of it; the hash of the file.

    One row group is held at a time. The output has the schema, the metadata, the row groups and the compression of
    the source. Raises `InputError` where no column holds conversations, `UsageError` without pyarrow.
    """
    _refuse_archive(options, "tables", source)
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
    return replace(metrics, bytes_before=size_bytes), content_sha256(source, part)


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
        raise InputError(f"is not a readable Parquet file ({error})", place=path, next_step=advice) from error


def compact_shard(
    input_path: str | Path,
    output_path: str | Path,
    options: ShardOptions | None = None,
    *,
    part: Slice | None = None,
    models: ModelRun | None = None,
) -> ShardMetrics:
    """Compact one file, or a ``part`` of one, into another; what it came to.

    Idempotent: a shard that is finished by these options from this input is not done again. The output is there
    whole or not at all, then ``OUTPUT.failed`` (rows that were passed on unchanged because they failed; see
    `FailedRows`), then ``OUTPUT.done``. The rows of a part give the bytes that they give in the whole file.
    JSONL (also gzip, zstd) and Parquet, known by content. ``models``: instead of those of the options, where
    several shards share them. Raises `CompactError`; then nothing was written.
    """
    options = options or ShardOptions()
    source, output = str(input_path), str(output_path)
    mark = Mark(input=source, output=output, fingerprint=options.fingerprint(), part=part)
    look = look_at(source)
    if options.finished is FinishedPolicy.SKIP and (found := mark.finished(look)):
        return replace(found, shards=0, shards_skipped=1)
    started = time.monotonic()
    with ExitStack() as stack:
        if models is None and (run_config := options.model_config()):
            from compactor_cli.run.model_run import ModelRun

            models = stack.enter_context(ModelRun(run_config))
        work = _compact_table if is_parquet(source) else _columns_of_lines if options.column else _lines
        try:
            metrics, sha256 = work(source, output, options, part, models)
        except Changed as error:
            raise _changed(source) from error
    if look_at(source) != look:
        raise _changed(source)
    metrics = replace(metrics, shards=1, seconds=time.monotonic() - started)
    mark.write(metrics, look, sha256)
    return metrics


def _changed(source: str) -> InputError:
    """The inputs of a batch are not written to any more, so that trying later would not help."""
    return InputError("the file changed while it was read", place=source, next_step="run again when it is complete")


def _lines(
    source: str, output: str, options: ShardOptions, part: Slice | None, models: ModelRun | None
) -> tuple[ShardMetrics, str]:
    """The rows of a file of lines; the hash of what was read."""
    metrics = ShardMetrics()
    among = (options.dialect or row_dialect(source, options.limits)) if part and part.start else ""
    folder = partial(Path, options.archive_dir) if options.archive_dir else None
    with (
        ArchiveOnChange(folder, source) as on_change,
        open_stream(source, (on_change.watch,), part, limits=options.limits) as stream,
    ):
        if options.archive_dir:
            on_change.begin(can_be_read_again=part is None)
        # Lines are counted from where the part begins.
        name = f"{source}, from byte {part.start:,}" if part and part.start else source
        records = records_in(stream, options.on_invalid, name)
        tally = Tally(records=records)
        maker = row_maker(options, models)
        transcripts = open_transcripts(
            records,
            dialect=options.dialect,
            prefix=records.prefix,
            among_rows_of=among,
            unread_bytes=maker.unread_bytes,
        )
        if part:
            transcripts = _only_rows(transcripts, source)

        def rows() -> Iterator[Compaction]:
            nonlocal metrics
            for _, row in mapped(maker.compact, transcripts, models):
                if row.report.outcome is Outcome.FAILED:
                    failed.add(metrics.rows, row.report.reason, row.output)
                metrics += ShardMetrics.of(row.report)
                tally.add(row.report)
                yield row
            if models:
                models.settle()

        with FailedRows(output) as failed:
            write_rows(_target(output), rows(), tally, on_change, stream)
        metrics = replace(metrics, lines_dropped=tally.dropped, bytes_before=on_change.content.size_bytes)
    return metrics, on_change.content.sha256


def _columns_of_lines(
    source: str, output: str, options: ShardOptions, part: Slice | None, models: ModelRun | None
) -> tuple[ShardMetrics, str]:
    """Rows of which the columns that are named are conversations, wherever in a row these are; the hash as above.

    Every other byte of a row stays. Raises `InputError` where the first rows have no such column, or nothing in it.
    """
    _refuse_archive(options, "parts of lines", source)
    metrics = ShardMetrics()
    maker = row_maker(options, models)
    with (
        ArchiveOnChange(None, source) as read,
        open_stream(source, (read.watch,), part, limits=options.limits) as stream,
    ):
        records = records_in(stream, options.on_invalid, source)
        first = list(islice(records, _LOOKED_AT_ROWS))
        rows = [record.value for record in first if isinstance(record.value, dict)]
        names = tuple(dict.fromkeys(name for row in rows for name in row))
        columns = []
        for path in column_paths(options.column, names, place=source) if first else ():
            check_column(path, [row.get(path[0]) for row in rows], names, place=source)
            columns.append((path, CellMaker(rows=maker, column=path[-1], dialect=options.dialect)))
        compact = partial(_compact_line, columns=columns)
        with FailedRows(output) as failed, open_target(_target(output), stream) as file:
            file.write(records.prefix)
            for number, (record, (line, made)) in enumerate(mapped(compact, chain(first, records), models)):
                for cell in made:
                    if cell.reason:
                        failed.add(number, cell.reason, cell.text)
                    metrics += cell.metrics
                file.write(line + record.ending)
            if models:
                models.settle()
        metrics = replace(metrics, lines_dropped=Tally(records=records).dropped, bytes_before=read.content.size_bytes)
    return metrics, read.content.sha256


def _compact_line(record: Record, columns: Sequence[tuple[ColumnPath, CellMaker]]) -> tuple[bytes, list[RowCell]]:
    raw, made = record.raw, []
    for path, cells in columns if isinstance(record.value, dict) else ():
        raw, cell = compact_within(raw, path, cells)
        made += [cell] if cell else []
    return raw, made


def _refuse_archive(options: ShardOptions, what: str, source: str) -> None:
    if options.archive_dir:
        advice = "leave --archive-dir out: the input stays where it is"
        raise UsageError(f"an archive holds lines, not {what}", place=source, next_step=advice)


def _target(output: str) -> Target:
    named = compression_named(output)
    return Target(path=output, kind=TargetKind.FILE, compression=named, existing=Existing.REPLACE)


def _only_rows(transcripts: Iterable[Transcript], source: str) -> Iterator[Transcript]:
    """The transcripts of a part. Raises `InputError` for a session, whose records may go on in the next part."""
    for transcript in transcripts:
        if transcript.frame.container is Container.LINES:
            place = transcript.records[0].place if transcript.records else source
            raise InputError("a session among the rows of a file that is read in parts", place=place, next_step=_WHOLE)
        yield transcript


_WHOLE = "read the file as a whole: --split 0"
