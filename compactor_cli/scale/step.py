"""The step that every engine runs: one shard, from a path to a path."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from compactor_cli.archive.atomic import Existing
from compactor_cli.archive.targets import Target, TargetKind, open_target
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import Changed, InputError
from compactor_cli.model.report import Outcome
from compactor_cli.model.transcript import Container, Transcript
from compactor_cli.read.jsonl import records_in
from compactor_cli.read.streams import Slice, compression_named, look_at, open_stream
from compactor_cli.run.archive_on_change import ArchiveOnChange
from compactor_cli.run.tally import Tally
from compactor_cli.scale.failed_rows import FailedRows
from compactor_cli.scale.mark import Mark
from compactor_cli.scale.shard_metrics import ShardMetrics
from compactor_cli.scale.shard_options import FinishedPolicy, ShardOptions
from compactor_cli.scale.shards import is_parquet, row_dialect
from compactor_cli.scale.work import mapped, row_maker

if TYPE_CHECKING:
    from compactor_cli.run.model_run import ModelRun


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
        work = _table if is_parquet(source) else _lines
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
    """The inputs of a batch are not written to any more, so that this is no reason to try later."""
    return InputError("the file changed while it was read", place=source, next_step="run again when it is complete")


def _table(
    source: str, output: str, options: ShardOptions, part: Slice | None, models: ModelRun | None
) -> tuple[ShardMetrics, str]:
    from compactor_cli.scale.parquet import compact_table

    return compact_table(source, output, options, part, models)


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
        transcripts = open_transcripts(records, dialect=options.dialect, prefix=records.prefix, among_rows_of=among)
        if part:
            transcripts = _only_rows(transcripts, source)
        compact = row_maker(options, models).compact
        with FailedRows(output) as failed, open_target(_target(output), stream) as file:
            for transcript, row in mapped(compact, transcripts, models):
                if row.report.outcome is Outcome.FAILED:
                    failed.add(metrics.rows, row.report.reason, transcript.source())
                metrics += ShardMetrics.of(row.report)
                tally.add(row.report)
                on_change.add(row.report, row.state)
                file.write(row.output)
            if not tally.count:
                file.write(records.prefix)
            if models:
                models.settle()
            if tally.is_altered:
                on_change.commit(tally)
                on_change.record()
        metrics = replace(metrics, lines_dropped=tally.dropped, bytes_before=on_change.content.size_bytes)
    return metrics, on_change.content.sha256


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
