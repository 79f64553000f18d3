"""Columns: compact the conversations in cells of Parquet files, JSON lines or batches; all else stays as it is."""

from __future__ import annotations

import io
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from compactor_cli.archive.atomic import DEFAULT_MODE, atomic_writer, make_folders
from compactor_cli.formats.contents import member_span
from compactor_cli.formats.detect import find_row, open_transcripts
from compactor_cli.model.errors import CompactError, InputError, UnknownShape, UsageError
from compactor_cli.model.report import Outcome, TranscriptReport
from compactor_cli.model.transcript import Record
from compactor_cli.model.value import dataclass
from compactor_cli.read.jsonl import OnInvalid, encoded, from_utf8, parse, read_records, records_in, utf8
from compactor_cli.read.streams import ContentHash, content_sha256, open_stream, unreadable
from compactor_cli.run.jobs import Job, Outputs, RunConfig, row_maker
from compactor_cli.run.outputs import InputTally, open_target
from compactor_cli.run.rows import COMMON_NAMES, RowMaker, mapped

if TYPE_CHECKING:
    from compactor_cli.run.model_run import ModelRun


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedCell:
    """The result of compacting a cell."""

    text: bytes  # byte for byte the source if nothing changed
    reports: tuple[TranscriptReport, ...]  # one for each conversation in the cell
    reason: str = ""  # why it failed; empty: it did not


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMaker:
    """Compacts the cells of one column. Safe for several threads.

    A cell holds a JSON value (a row, or the array of its messages) or the lines of a session. Its result is that of the
    same text as a line of a file. A cell that fails is passed on unchanged, except for secrets where they are redacted.
    """

    rows: RowMaker
    column: str  # an array is read as the value of this key in a row, or else of one of `COMMON_NAMES`
    dialect: str = ""  # empty: found by content

    def compact(self, text: bytes) -> CompactedCell:
        """Compact a cell, given as text."""
        if text.lstrip()[:1] != b"[":
            return self._read_as(b"", text)
        failures = []
        for name in dict.fromkeys((self.column, *COMMON_NAMES)):
            try:
                return self._read_as(b"{%s:" % orjson.dumps(name), text)
            except UnknownShape as error:
                failures.append(str(error))
        return self.failed(text, failures[0])

    def _read_as(self, head: bytes, text: bytes) -> CompactedCell:
        """Compact the cell as the text that follows ``head``, the beginning of a row (`{"messages":`) or nothing.

        Raises UnknownShape for an array that does not hold messages under the key in ``head``.
        """
        # A marker holds the hash of a whole line, so that the line has to be completed.
        tail = (b"}" if head else b"") + (b"" if text.endswith(b"\n") else b"\n")
        try:
            records = read_records(io.BytesIO(head + text + tail), self.column, OnInvalid.FAIL)
            rows = [self.rows.compact(transcript) for transcript in open_transcripts(records, dialect=self.dialect)]
        except CompactError as error:
            if head and isinstance(error, UnknownShape):
                raise
            return self.failed(text, str(error))
        output = b"".join(row.output for row in rows)[len(head) :].removesuffix(tail) if rows else text
        reports = tuple(row.report for row in rows)
        reason = "; ".join(report.reason for report in reports if report.outcome is Outcome.FAILED)
        return CompactedCell(text=output, reports=reports, reason=reason)

    def compact_any(self, value: Any) -> tuple[Any, CompactedCell]:
        """Compact a cell as a table gives it: text, bytes, or the value itself with absent keys as None.

        The value returned has the type of the one given. Raises `InputError` if UTF-8 or JSON cannot hold the value.
        """
        if isinstance(value, str):
            cell = self.compact(utf8(value))
            return from_utf8(cell.text), cell
        if isinstance(value, bytes):
            cell = self.compact(value)
            return cell.text, cell
        cell = self.compact(encoded(_present(value)))
        is_compacted = any(report.outcome is Outcome.COMPACTED for report in cell.reports)
        return (parse(cell.text) if is_compacted or self.rows.redacts else value), cell

    def failed(self, text: bytes, reason: str) -> CompactedCell:
        """The result for a cell that could not be compacted: its text, without secrets where they are redacted."""
        if self.rows.redacts:
            from compactor_cli.llm.redact import Redactor, redact_text

            text = redact_text(text, Redactor())
        report = TranscriptReport(outcome=Outcome.FAILED, bytes_before=len(text), bytes_after=len(text))
        return CompactedCell(text=text, reports=(report,), reason=reason)


def holds_conversation(column: str, value: Any) -> bool:
    """Whether a value in the column is a conversation: JSON text, a row, or an array of messages.

    An array counts if it holds messages under the column's name or one of `COMMON_NAMES`.
    """
    if isinstance(value, str | bytes):
        value = _parsed(value)
    if not isinstance(value, list):
        return find_row(value) is not None
    return any(find_row({name: value}) is not None for name in (column, *COMMON_NAMES))


def _present(value: Any) -> Any:
    """The value without keys that are None: tables give every key to every message."""
    if isinstance(value, dict):
        return {key: _present(item) for key, item in value.items() if item is not None}
    return [_present(item) for item in value] if isinstance(value, list) else value


# A column, then the keys that lead to the conversation inside its values (structures, or JSON objects as text).
ColumnPath = tuple[str, ...]


def named_columns(
    text: str, columns: Sequence[str], values: Callable[[str], Iterable[Any]], *, place: str = ""
) -> tuple[ColumnPath, ...]:
    """The paths that a text such as ``chosen,rejected`` or ``extra.chat`` names; a column's own name may hold dots.

    ``values`` gives the first values of a column. Raises `InputError` for a column that does not exist, and for a path
    at which none of the values that are not empty holds a conversation.
    """
    named = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        head, *inner = (name,) if name in columns else name.split(".")
        if head not in columns:
            advice = f"columns: {', '.join(columns)}"
            raise InputError(f"no column is called {head!r}", place=place or None, next_step=advice)
        named.append((head, *inner))
    for path in named:
        found = present = [value for value in values(path[0]) if value]
        for key in path[1:]:
            opened = (_parsed(value) if isinstance(value, str | bytes) else value for value in found)
            found = [value.get(key) if isinstance(value, dict) else None for value in opened]
        if present and not any(holds_conversation(path[-1], value) for value in found):
            advice = f"columns: {', '.join(columns)}; inside a column: {path[0]}.KEY"
            what = f"the column {'.'.join(path)!r} holds no conversation"
            raise InputError(what, place=place or None, next_step=advice)
    return tuple(dict.fromkeys(named))


def compact_inside(value: Any, keys: Sequence[str], cells: CellMaker) -> tuple[Any, CompactedCell | None]:
    """Compact the conversation that a cell holds under these keys.

    Returns the new cell and the result; the result is None if there is no conversation. A value that cannot be encoded
    is passed on, with the failure as its result; it is raised as `InputError` if secrets were to be redacted.
    """
    if not value:
        return value, None
    try:
        if not keys:
            return cells.compact_any(value)
        if isinstance(value, str | bytes):
            raw, cell = compact_within(utf8(value) if isinstance(value, str) else value, keys, cells)
            return (from_utf8(raw) if isinstance(value, str) else raw), cell
    except InputError as error:
        if cells.rows.redacts:  # it could not be searched for secrets
            raise
        return value, cells.failed(b"", str(error))
    if not isinstance(value, dict):
        return value, None
    inner, cell = compact_inside(value.get(keys[0]), keys[1:], cells)
    return ({**value, keys[0]: inner} if cell else value), cell


def compact_within(raw: bytes, keys: Sequence[str], cells: CellMaker) -> tuple[bytes, CompactedCell | None]:
    """Compact the conversation that a JSON value, given as text, holds under these keys; all other bytes stay.

    The second result is None if there is no conversation.
    """
    if raw[:1] == b'"':
        text = str(parse(raw)).encode()
        made, cell = compact_within(text, keys, cells) if keys else _filled_cell(text, cells)
        return (orjson.dumps(made.decode()) if made != text else raw), cell
    if not keys:
        return _filled_cell(raw, cells)
    span = member_span(raw, keys[0]) if raw.lstrip()[:1] == b"{" else None
    if span is None:
        return raw, None
    made, cell = compact_within(raw[slice(*span)], keys[1:], cells)
    return raw[: span[0]] + made + raw[span[1] :], cell


def _filled_cell(raw: bytes, cells: CellMaker) -> tuple[bytes, CompactedCell | None]:
    if raw.strip() in (b"", b"null", b"[]", b"{}"):
        return raw, None
    cell = cells.compact(raw)
    return cell.text, cell


def _parsed(text: str | bytes) -> Any:
    """The JSON value of a text, or None if it is not JSON."""
    try:
        return parse(text.encode(errors="surrogateescape") if isinstance(text, str) else text)
    except ValueError:
        return None


def compact_columns(
    batch: Mapping[str, Sequence[Any]],
    rows: RowMaker,
    *,
    column: str = "",
    reasons: str = "",
    dialect: str = "",
    models: ModelRun | None = None,
) -> dict[str, list[Any]]:
    """Compact the conversations of a batch; returns the new values of the columns that hold them.

    ``column`` names one column, several (``"chosen,rejected"``) or a key inside a column of structures
    (``"extra.chat"``); if it is empty, the first column with a conversation is used. A row that fails stays as it was,
    with the reason in the column ``reasons``. Raises `InputError` for a row that fails if no such column is named, for
    a named column that does not exist or holds no conversation, and if no column holds any.
    """
    columns = tuple(batch)
    if column:
        paths = named_columns(column, columns, batch.__getitem__)
    else:
        found = (name for name in columns if any(holds_conversation(name, value) for value in batch[name] if value))
        if not (first := next(found, "")):
            advice = f"name it with column=…; columns: {', '.join(columns)}"
            raise InputError("no column holds conversations", next_step=advice)
        paths = ((first,),)
    compacted: dict[str, list[Any]] = {}
    failures: list[list[str]] = []
    for path in paths:
        values = compacted.get(path[0]) or batch[path[0]]
        maker = CellMaker(rows=rows, column=path[-1], dialect=dialect)
        made = list(mapped(partial(compact_inside, keys=path[1:], cells=maker), values, models))
        why = [cell.reason if cell else "" for _, cell in made]
        for number, reason in enumerate(why):
            if reason and not reasons:
                advice = 'name a column for the reasons (reasons="why") to keep such rows as they are'
                raise InputError(reason, next_step=advice, place=f"column {'.'.join(path)}, row {number}")
        compacted[path[0]] = [value for value, _ in made]
        failures.append(why)
    if reasons:
        compacted[reasons] = ["; ".join(filter(None, row)) for row in zip(*failures, strict=True)]
    return compacted


_PARQUET_MAGIC = b"PAR1"
_LOOKED_AT_ROWS = 20  # rows that are searched for the column that holds conversations


def group_sizes(path: str) -> tuple[int, ...]:
    """The size of each row group of a Parquet file in bytes, as stored (compressed)."""
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
    """Compact the conversations in a Parquet file, or in the row groups that are the job's part of it.

    One row group is held at a time. The output has the schema, the metadata, the row groups and the compression of
    the source. Raises `InputError` where no column holds conversations, `UsageError` without pyarrow.
    """
    source, part, models = job.source.path, job.part, run_config.model_run
    _refuse_archive(run_config, "tables", source)
    file = _open(source)
    import pyarrow
    from pyarrow import parquet

    groups = range(part.start, part.stop) if part else range(file.metadata.num_row_groups)
    columns = _columns(_paths(file, run_config.column, source), job, run_config)
    first_row = 0
    tally = InputTally(path=source)
    make_folders(Path(job.target.path).absolute().parent)
    mode = (stat.S_IMODE(Path(source).stat().st_mode) | stat.S_IWUSR) & DEFAULT_MODE
    stored = file.metadata.row_group(0).column(0).compression if file.metadata.num_row_groups else "ZSTD"
    packing = {"compression": stored.replace("UNCOMPRESSED", "NONE")}
    with (
        atomic_writer(job.target.path, mode=mode) as target,
        parquet.ParquetWriter(target, file.schema_arrow, **packing) as writer,
    ):
        for group in groups:
            table = file.read_row_group(group)
            for path, cells in columns:
                place = table.schema.get_field_index(path[0])
                field = table.schema.field(place)
                values = table.column(place).to_pylist()
                made = mapped(partial(compact_inside, keys=path[1:], cells=cells), values, models)
                for row, (value, cell) in enumerate(made):
                    values[row] = value
                    if cell:
                        _count(cell, first_row + row, tally, outputs)
                table = table.set_column(place, field, pyarrow.array(values, type=field.type))
            first_row += table.num_rows
            writer.write_table(table, row_group_size=max(table.num_rows, 1))
        if models:
            models.settle()
    tally.bytes_before = sum(group_sizes(source)[group] for group in groups)
    # The hash is of the whole file even for a part, which is made of row groups and not of bytes.
    tally.sha256 = content_sha256(source)
    return tally


def _columns(paths: Sequence[ColumnPath], job: Job, run_config: RunConfig) -> list[tuple[ColumnPath, CellMaker]]:
    """The columns, each with the maker that compacts its cells."""
    rows = row_maker(job, run_config)
    return [(path, CellMaker(rows=rows, column=path[-1], dialect=run_config.dialect)) for path in paths]


def _count(cell: CompactedCell, row: int, tally: InputTally, outputs: Outputs) -> None:
    if cell.reason and outputs.failed_row:
        outputs.failed_row(row, cell.reason, cell.text)
    for report in cell.reports:
        tally.add(report)


def _paths(file: Any, names: str, source: str) -> tuple[ColumnPath, ...]:
    """The columns that are named, or else the first that holds conversations. Raises `InputError`."""
    schema = file.schema_arrow

    def first_values(column: str) -> list[Any]:
        batches = islice(file.iter_batches(_LOOKED_AT_ROWS, columns=[column]), 1)
        return [value for batch in batches for value in batch.column(column).to_pylist()]

    if names:
        return named_columns(names, schema.names, first_values, place=source)
    from pyarrow import types

    # Conversations are texts, or lists of structures (one structure for each message).
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    for field in schema:
        is_list = types.is_list(field.type) or types.is_large_list(field.type)
        is_candidate = any(test(field.type) for test in texts) or (is_list and types.is_struct(field.type.value_type))
        values = first_values(field.name) if is_candidate else ()
        if any(holds_conversation(field.name, value) for value in values if value):
            return ((field.name,),)
    advice = f"name it with --column; columns: {', '.join(schema.names)}"
    raise InputError("no column holds conversations", place=source, next_step=advice)


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
    """Compact the named columns of a file's rows, wherever in a row they are.

    Every other byte of a row stays. Raises `InputError` if the first rows have no such column, or if their values in it
    hold no conversation.
    """
    source, models, content = job.source.path, run_config.model_run, ContentHash()
    _refuse_archive(run_config, "parts of lines", source)
    with open_stream(source, (content,), job.part, limits=run_config.limits) as stream:
        records = records_in(stream, run_config.on_invalid, source)
        tally = InputTally(path=source, records=records)
        first = list(islice(records, _LOOKED_AT_ROWS))
        rows = [record.value for record in first if isinstance(record.value, dict)]
        names = tuple(dict.fromkeys(name for row in rows for name in row))

        def first_values(column: str) -> list[Any]:
            return [row.get(column) for row in rows]

        paths = named_columns(run_config.column, names, first_values, place=source) if first else ()
        columns = _columns(paths, job, run_config)

        def compact(record: Record) -> tuple[bytes, list[CompactedCell]]:
            raw, made = record.raw, []
            for path, cells in columns if isinstance(record.value, dict) else ():
                raw, cell = compact_within(raw, path, cells)
                made += [cell] if cell else []
            return raw + record.ending, made

        with open_target(job.target, stream) as file:
            file.write(records.prefix)
            for number, (line, made) in enumerate(mapped(compact, chain(first, records), models)):
                for cell in made:
                    _count(cell, number, tally, outputs)
                file.write(line)
            if models:
                models.settle()
    tally.sha256, tally.bytes_before = content.sha256, content.size_bytes
    return tally


def _refuse_archive(run_config: RunConfig, what: str, source: str) -> None:
    if run_config.archive_dir:
        advice = "leave --archive-dir out: the input stays where it is"
        raise UsageError(f"an archive holds lines, not {what}", place=source, next_step=advice)
