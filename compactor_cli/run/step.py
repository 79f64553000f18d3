"""One shard, from a path to a path: the step that every executor runs."""

from __future__ import annotations

import dataclasses
import json
import time
from contextlib import ExitStack
from dataclasses import astuple, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from compactor_cli.archive.atomic import Existing, atomic_writer, output_error
from compactor_cli.archive.targets import Target, TargetKind
from compactor_cli.model.errors import Changed, CompactError, InputError
from compactor_cli.model.report import Outcome
from compactor_cli.model.value import dataclass
from compactor_cli.read.sources import InputSource
from compactor_cli.read.streams import Look, Slice, compression_named, content_sha256, look_at
from compactor_cli.run.columns import compact_columns_of_lines, compact_table, is_parquet
from compactor_cli.run.jobs import FinishedPolicy, Job, Outputs, RunConfig, compact_input, explained
from compactor_cli.run.outputs import InputTally
from compactor_cli.run.shards import Shard

if TYPE_CHECKING:
    from compactor_cli.run.model_run import ModelRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardMetrics:
    """Counts of shards and rows; ``a + b`` counts both, in any order.

    ``shards`` were worked on, ``shards_skipped`` were finished before (their rows are counted anyway),
    ``shards_failed`` wrote nothing. ``failed`` rows were passed on unchanged, ``fell_back`` have the digest where a
    model was asked, ``left`` are unchanged for want of a summary. ``seconds`` are of all processes together.
    """

    shards: int = 0
    shards_skipped: int = 0
    shards_failed: int = 0
    compacted: int = 0
    unchanged: int = 0
    failed: int = 0
    over_target: int = 0
    fell_back: int = 0
    left: int = 0
    lines_dropped: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    seconds: float = 0.0

    def __add__(self, other: ShardMetrics) -> ShardMetrics:
        names = self.__dataclass_fields__
        return ShardMetrics(**{name: a + b for name, a, b in zip(names, astuple(self), astuple(other), strict=True)})

    @property
    def rows(self) -> int:
        """All rows."""
        return self.compacted + self.unchanged + self.failed

    @classmethod
    def of(cls, tally: InputTally, seconds: float) -> ShardMetrics:
        """One shard that was worked on."""
        same = ("over_target", "fell_back", "left", "bytes_before", "bytes_after", "tokens_before", "tokens_after")
        return cls(
            shards=1,
            compacted=tally.counts[Outcome.COMPACTED],
            unchanged=tally.counts[Outcome.UNCHANGED],
            failed=tally.counts[Outcome.FAILED],
            lines_dropped=tally.dropped,
            seconds=seconds,
            **{name: getattr(tally, name) for name in same},
        )


class FailedRows:
    """JSON lines ``{"row", "reason", "text"}`` in ``OUTPUT.failed``; no file where no row failed.

    ``row`` counts from 0 in the shard; ``text`` is the row as it was (a byte that is not UTF-8 as a lone surrogate,
    the way of Python's ``surrogateescape``). The output holds these rows too, unchanged. Takes effect when the block
    ends well.
    """

    def __init__(self, output: str) -> None:
        self._path = Path(output + ".failed")
        self._stack = ExitStack()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._stack.__exit__(*raised)
        if raised[0] is None and self._file is None:
            try:
                self._path.unlink(missing_ok=True)
            except OSError as reason:
                raise output_error(reason, str(self._path)) from reason

    def add(self, row: int, reason: str, text: bytes) -> None:
        """One that failed."""
        if self._file is None:
            self._file = self._stack.enter_context(atomic_writer(self._path))
        value = {"row": row, "reason": reason, "text": text.decode(errors="surrogateescape")}
        self._file.write(json.dumps(value).encode() + b"\n")


FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The small file next to an output that marks it as finished, with its input and options.

    It is written last: an output without it, or with another one, is made anew. ``fingerprint``: of the
    options; ``part``: the slice of the input.
    """

    input: str
    output: str
    fingerprint: str
    part: Slice | None

    @property
    def path(self) -> Path:
        """Where it lies."""
        return Path(self.output + ".done")

    def finished(self, look: Look) -> ShardMetrics | None:
        """The metrics of the finished output; None if it is to be made.

        An input of the same size and time is the same; one of another time is read and compared by its hash.
        """
        try:
            found = json.loads(self.path.read_bytes())
            metrics = ShardMetrics(**found["metrics"])
            if found["made"] != self._made() or Path(self.output).stat().st_size != found["output_bytes"]:
                return None
            if found["size_bytes"] != look.size_bytes:
                return None
            if found["mtime_ns"] != look.mtime_ns and found["sha256"] != self._input_sha256():
                return None
        except (OSError, ValueError, TypeError, KeyError, CompactError):
            return None
        return metrics

    def write(self, metrics: ShardMetrics, look: Look, sha256: str) -> None:
        """The output is durable and complete."""
        value = {
            "made": self._made(),
            "input": self.input,
            "size_bytes": look.size_bytes,
            "mtime_ns": look.mtime_ns,
            "sha256": sha256,
            "output_bytes": Path(self.output).stat().st_size,
            "metrics": dataclasses.asdict(metrics),
        }
        with atomic_writer(self.path) as file:
            file.write(json.dumps(value, indent=1).encode() + b"\n")

    def _input_sha256(self) -> str:
        """A part of a Parquet file is known by the hash of the file: it is row groups, not bytes."""
        return content_sha256(self.input, None if is_parquet(self.input) else self.part)

    def _made(self) -> dict[str, Any]:
        part = [self.part.start, self.part.stop] if self.part else None
        return {"format": FORMAT, "fingerprint": self.fingerprint, "part": part}


def compact_shard(
    input_path: str | Path,
    output_path: str | Path,
    options: RunConfig | None = None,
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
    options = options or RunConfig()
    path, output = str(input_path), str(output_path)
    mark = Mark(input=path, output=output, fingerprint=options.fingerprint(), part=part)
    look = look_at(path)
    if options.finished is FinishedPolicy.SKIP and (found := mark.finished(look)):
        return replace(found, shards=0, shards_skipped=1)
    started = time.monotonic()
    source = InputSource(path=path, name=path, root="")
    named = compression_named(output)
    target = Target(path=output, kind=TargetKind.FILE, compression=named, existing=Existing.REPLACE)
    job = Job(source=source, target=target, part=part, is_shard=True)
    with ExitStack() as stack:
        if models is None and (config := options.model_config()):
            from compactor_cli.run.model_run import ModelRun

            models = stack.enter_context(ModelRun(config))
        compact = compact_table if is_parquet(path) else compact_columns_of_lines if options.column else compact_input
        try:
            with FailedRows(output) as failed:
                tally = compact(job, replace(options, model_run=models), Outputs(failed_row=failed.add))
        except Changed as error:
            raise _changed(path) from error
    if look_at(path) != look:
        raise _changed(path)
    metrics = ShardMetrics.of(tally, time.monotonic() - started)
    mark.write(metrics, look, tally.sha256)
    return metrics


def _changed(source: str) -> InputError:
    """The inputs of a batch are not written to any more, so that trying later would not help."""
    return InputError("the file changed while it was read", place=source, next_step="run again when it is complete")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardResult:
    """What became of one shard. ``error`` empty: its output is there. ``trace``: of a defect."""

    shard: Shard
    metrics: ShardMetrics
    error: str = ""
    exit_code: int = 0
    trace: str = ""


def try_shard(shard: Shard, options: RunConfig, models: ModelRun | None = None) -> ShardResult:
    """Do one shard; whatever goes wrong with it is in the result."""
    try:
        metrics = compact_shard(shard.input, shard.output, options, part=shard.part, models=models)
    except BrokenPipeError:
        raise
    except Exception as raised:
        error, trace = explained(raised)
        what = str(error) if error.place else f"{shard.input}: {error}"
        return failed_shard(shard, what, exit_code=error.exit_code, trace=trace)
    return ShardResult(shard=shard, metrics=metrics, exit_code=CompactError.exit_code if metrics.failed else 0)


def failed_shard(shard: Shard, what: str, *, exit_code: int = CompactError.exit_code, trace: str = "") -> ShardResult:
    """The result of a shard that wrote nothing."""
    return ShardResult(shard=shard, metrics=ShardMetrics(shards_failed=1), error=what, exit_code=exit_code, trace=trace)
