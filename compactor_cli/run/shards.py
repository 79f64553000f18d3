"""Shards: inputs split into pieces of work, always in the same way; each is compacted from one path to another.

The work is done by this process, by several on this machine, or by a Ray cluster; each shard is tried on its own. All
workers of a run with a model share one rate limit and one account, the `Gate`. On Ray (the extra [ray]) only paths are
sent; every node must see them, and have this package. Ray's usage statistics are turned off.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import json
import os
import re
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from compactor_cli.archive.atomic import Existing, atomic_writer, output_error
from compactor_cli.model.errors import Changed, CompactError, InputError, TryLater, UsageError
from compactor_cli.model.report import Outcome
from compactor_cli.model.settings import Settings, settings_from
from compactor_cli.model.value import dataclass
from compactor_cli.presets import DEFAULT, load_preset
from compactor_cli.read.sources import DEFAULT_INCLUDE, InputSource, Walk, find_sources
from compactor_cli.read.streams import STDIN, Look, Slice, compression_named, content_sha256, look_at
from compactor_cli.run.columns import compact_columns_of_lines, compact_table, group_sizes, is_parquet
from compactor_cli.run.jobs import FinishedPolicy, Job, Outputs, RunConfig, compact_input, explained, row_dialect
from compactor_cli.run.outputs import Destination, InputTally, Target, TargetKind, plan_targets

if TYPE_CHECKING:
    from compactor_cli.llm.limits import Spent

DEFAULT_SPLIT_BYTES = 128 << 20
INCLUDE = (*DEFAULT_INCLUDE, "*.parquet")
# `-00002-of-00016` in `tides-00002-of-00016.jsonl`
_PART = re.compile(r"-\d{5,}-of-\d{5,}(?=\.|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One piece of work."""

    input: str
    output: str
    size_bytes: int  # of the part; 0 if the input could not be looked at
    part: Slice | None = None  # of bytes, or of row groups of a Parquet file; None: the whole input


def plan_shards(
    sources: Sequence[InputSource], output_dir: str, split_bytes: int = DEFAULT_SPLIT_BYTES
) -> tuple[Shard, ...]:
    """The shards of these inputs; the outputs are below ``output_dir``, where a run with ``--output-dir`` puts them.

    A file of rows that is not compressed and larger than ``split_bytes`` (0: none is) is split at the beginnings of
    rows, a Parquet file at its row groups: ``rows-00002-of-00016.jsonl``. The outputs, joined in the order of their
    names, are the output of the whole file. Any other input is one shard. The shards depend on the inputs and
    ``split_bytes`` alone. Raises `UsageError` for outputs that clash with one another or with those of an input split
    differently.
    """
    if any(source.path == STDIN for source in sources):
        raise UsageError("standard input cannot be parted", next_step="name files")
    targets = plan_targets(sources, Destination(output_dir=output_dir, force=True))
    shards: list[Shard] = []
    for source, target in zip(sources, targets, strict=True):
        output = Path(target.path)
        try:
            size_bytes = look_at(source.path).size_bytes
            parts = _parts(source.path, size_bytes, split_bytes)
        except InputError:
            size_bytes, parts = 0, []  # this shard fails when it is done, and the others go on
        if len(parts) < 2:
            shards.append(Shard(input=source.path, output=target.path, size_bytes=size_bytes))
            continue
        stem, dot, endings = output.name.partition(".")
        for number, (part, part_bytes) in enumerate(parts):
            name = output.with_name(f"{stem}-{number:05}-of-{len(parts):05}{dot}{endings}")
            shards.append(Shard(input=source.path, output=str(name), size_bytes=part_bytes, part=part))
    whole, planned = {target.path for target in targets}, {shard.output for shard in shards}
    for folder in sorted({Path(path).parent for path in whole}):
        for path in folder.iterdir() if folder.is_dir() else ():
            origin = str(path.with_name(_PART.sub("", path.name)))
            if origin in whole and str(path) not in planned:
                advice = "the input or --split changed since: remove it, or use another --output-dir"
                raise UsageError("is of another parting of its input", place=str(path), next_step=advice)
    return tuple(shards)


def shards_below(folder: str, output_dir: str, split_bytes: int = DEFAULT_SPLIT_BYTES) -> tuple[Shard, ...]:
    """The shards of all JSONL and Parquet files below a folder."""
    sources = find_sources([folder], recursive=True, walk=Walk(include=INCLUDE, skip=(output_dir,)))
    return plan_shards(sources, output_dir, split_bytes)


def share(shards: Sequence[Shard], index: int, count: int) -> tuple[Shard, ...]:
    """The shards of share ``index`` (from 1) of ``count``, in their order; shares are of about the same size.

    The largest shards are assigned first, each to the share with the least so far. By Graham's rule of the longest
    processing time no share is above 4/3 of the best possible largest one (R. Graham, "Bounds on Multiprocessing Timing
    Anomalies", SIAM J. Appl. Math. 17, 1969).
    """
    loads = [(0, number) for number in range(1, count + 1)]
    mine: set[int] = set()
    for place in sorted(range(len(shards)), key=lambda place: (-shards[place].size_bytes, shards[place].output)):
        load, number = heapq.heappop(loads)
        # One more byte for each shard, so that empty ones are spread as well.
        heapq.heappush(loads, (load + shards[place].size_bytes + 1, number))
        if number == index:
            mine.add(place)
    return tuple(shard for place, shard in enumerate(shards) if place in mine)


def _parts(source: str, size_bytes: int, split_bytes: int) -> list[tuple[Slice, int]]:
    """The slices of a file, each with its size in bytes. Fewer than two: the file is not split."""
    if not split_bytes or size_bytes <= split_bytes:
        return []
    if not is_parquet(source):
        count = -(-size_bytes // split_bytes) if row_dialect(source, is_plain=True) else 1
        places = [size_bytes * number // count for number in range(count + 1)]
        return [(Slice(start=a, stop=b), b - a) for a, b in itertools.pairwise(places)]
    # Neighbouring row groups are joined up to ``split_bytes``.
    parts: list[tuple[Slice, int]] = []
    start = held = stop = 0
    for size in group_sizes(source):
        if held and held + size > split_bytes:
            parts.append((Slice(start=start, stop=stop), held))
            start, held = stop, 0
        held += size
        stop += 1
    return [*parts, (Slice(start=start, stop=stop), held)]


def settings_of(preset: str = "", **changes: object) -> Settings:
    """The preset with settings changed, named as in a configuration file: ``settings_of(target="16k")``.

    Raises `UsageError`.
    """
    return settings_from(changes, load_preset(preset or DEFAULT).settings, "settings")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardMetrics:
    """Counts of shards and rows; ``a + b`` adds them up."""

    shards: int = 0  # that were worked on and written
    shards_skipped: int = 0  # that were finished before; their rows are counted nevertheless
    shards_failed: int = 0  # that wrote nothing
    compacted: int = 0  # this and the next are rows
    unchanged: int = 0
    failed: int = 0  # rows passed on unchanged
    over_target: int = 0
    fell_back: int = 0  # rows whose summary is the digest's, in part or whole, though a model was asked
    left: int = 0  # rows unchanged for want of a summary
    lines_dropped: int = 0  # lines that are not JSON, left out
    bytes_before: int = 0
    bytes_after: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    seconds: float = 0.0  # of all processes together

    def __add__(self, other: ShardMetrics) -> ShardMetrics:
        return ShardMetrics(**{name: getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__})

    @property
    def rows(self) -> int:
        """The number of all rows."""
        return self.compacted + self.unchanged + self.failed

    @classmethod
    def of(cls, tally: InputTally, seconds: float) -> ShardMetrics:
        """The metrics of one shard that was worked on."""
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


class FailedRows(AbstractContextManager["FailedRows"]):
    """Writes the failed rows as JSON lines ``{"row", "reason", "text"}`` to ``OUTPUT.failed``; no file if none failed.

    ``row`` counts from 0 in the shard; ``text`` is the row as it was (a byte that is not UTF-8 as a lone surrogate,
    like Python's ``surrogateescape``). The output holds these rows too, unchanged. The file takes effect if the block
    does not raise; one of an earlier run is removed if no row failed.
    """

    def __init__(self, output: str) -> None:
        self._path = Path(output + ".failed")
        self._stack = ExitStack()
        self._file: IO[bytes] | None = None

    def __exit__(self, *raised: Any) -> None:
        self._stack.__exit__(*raised)
        if raised[0] is None and self._file is None:
            try:
                self._path.unlink(missing_ok=True)
            except OSError as reason:
                raise output_error(reason, str(self._path)) from reason

    def add(self, row: int, reason: str, text: bytes) -> None:
        """Write a row that failed."""
        if self._file is None:
            self._file = self._stack.enter_context(atomic_writer(self._path))
        value = {"row": row, "reason": reason, "text": text.decode(errors="surrogateescape")}
        self._file.write(json.dumps(value).encode() + b"\n")


FORMAT = 1


def _finished(job: Job, made: dict[str, Any], look: Look) -> ShardMetrics | None:
    """The metrics of a finished output; None if the output has to be made.

    A small file next to the output marks it as finished, and must name the same options as ``made``. An input of the
    same size and time is taken to be the same; one with another time is read and compared by its hash.
    """
    path = job.source.path
    try:
        found = json.loads(Path(job.target.path + ".done").read_bytes())
        metrics = ShardMetrics(**found["metrics"])
        if found["made"] != made or Path(job.target.path).stat().st_size != found["output_bytes"]:
            return None
        if found["size_bytes"] != look.size_bytes:
            return None
        if found["mtime_ns"] == look.mtime_ns:
            return metrics
        # Of a part of a Parquet file, which is row groups and not bytes, the hash of the whole file is compared.
        is_same = found["sha256"] == content_sha256(path, None if is_parquet(path) else job.part)
        return metrics if is_same else None
    except (OSError, ValueError, TypeError, KeyError, CompactError):
        return None


def compact_shard(
    input_path: str | Path, output_path: str | Path, options: RunConfig | None = None, *, part: Slice | None = None
) -> ShardMetrics:
    """Compact one file, or a ``part`` of one, into another; returns the metrics.

    Idempotent: a shard that is finished with these options and this input is not done again. The output appears whole
    or not at all, then ``OUTPUT.failed`` (rows that were passed on unchanged because they failed; see `FailedRows`),
    then ``OUTPUT.done``. The rows of a part give the same bytes as in the whole file. Inputs are JSONL (also gzip or
    zstd) and Parquet, recognised by content. Raises `CompactError`; then nothing was written.
    """
    options = options or RunConfig()
    path, output = str(input_path), str(output_path)
    source = InputSource(path=path, name=path, root="")
    named = compression_named(output)
    target = Target(path=output, kind=TargetKind.FILE, compression=named, existing=Existing.REPLACE)
    job = Job(source=source, target=target, part=part, is_shard=True)
    made = {"format": FORMAT, "fingerprint": options.fingerprint(), "part": [part.start, part.stop] if part else None}
    look = look_at(path)
    if options.finished is FinishedPolicy.SKIP and (found := _finished(job, made, look)):
        return replace(found, shards=0, shards_skipped=1)
    started = time.monotonic()
    with ExitStack() as stack:
        if options.model_run is None and (config := options.model_config()):
            from compactor_cli.run.model_run import ModelRun

            options = replace(options, model_run=stack.enter_context(ModelRun(config)))
        compact = compact_table if is_parquet(path) else compact_columns_of_lines if options.column else compact_input
        try:
            with FailedRows(output) as failed:
                tally = compact(job, options, Outputs(failed_row=failed.add))
        except Changed as error:
            raise _changed(path) from error
    if look_at(path) != look:
        raise _changed(path)
    metrics = ShardMetrics.of(tally, time.monotonic() - started)
    # Written last: an output without this file, or with a different one, is made again.
    value = {
        "made": made,
        "input": path,
        "size_bytes": look.size_bytes,
        "mtime_ns": look.mtime_ns,
        "sha256": tally.sha256,
        "output_bytes": Path(output).stat().st_size,
        "metrics": dataclasses.asdict(metrics),
    }
    with atomic_writer(output + ".done") as file:
        file.write(json.dumps(value, indent=1).encode() + b"\n")
    return metrics


def _changed(source: str) -> InputError:
    """The error for an input that changed: nothing writes to a batch's inputs, so that trying later is no remedy."""
    return InputError("the file changed while it was read", place=source, next_step="run again when it is complete")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardResult:
    """The result of one shard."""

    shard: Shard
    metrics: ShardMetrics
    error: str = ""  # empty: the output was written
    exit_code: int = 0
    trace: str = ""  # the traceback, if the error is a defect of the program


def try_shard(shard: Shard, options: RunConfig) -> ShardResult:
    """Do one shard. Errors are in the result; only BrokenPipeError is raised."""
    try:
        metrics = compact_shard(shard.input, shard.output, options, part=shard.part)
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


def run_here(shards: Sequence[Shard], options: RunConfig, *, processes: int = 1) -> Generator[ShardResult, None, None]:
    """Do all shards on this machine, in this process if there is a ``model_run``; yields their results in order."""
    if options.model_run or processes <= 1 or len(shards) < 2:
        yield from (try_shard(shard, options) for shard in shards)
        return
    yield from _in_processes(shards, options, min(processes, len(shards)), partial(try_shard, options=options))


def run_gated(
    shards: Sequence[Shard], options: RunConfig, *, processes: int, emit: Callable[[Spent], object]
) -> Generator[ShardResult, None, None]:
    """Do all shards on this machine in several processes that share one rate limit and one account for a model.

    Processes, since the work around a call takes ten times as long as the call, and threads cannot do it in parallel.
    ``emit`` gets the account at the end.
    """
    from compactor_cli.run.model_run import GateAnswer, local_gate

    config = options.models
    assert config is not None  # noqa: S101 -- for the type checker; callers look
    with local_gate(config.rate_limits, config.limits) as connect:

        def work(shard: Shard) -> ShardResult:
            with connect() as gate:
                return try_gated(shard, options, gate, GateAnswer.result, processes)

        try:
            yield from _in_processes(shards, options, processes, work)
        finally:
            with connect() as gate:
                emit(gate.spent.remote().result())


def try_gated(shard: Shard, options: RunConfig, gate: Any, wait: Callable[[Any], Any], places: int) -> ShardResult:
    """Do one shard in one of ``places`` workers, within the gate's limits and its share of the concurrent requests."""
    from compactor_cli.run.model_run import ModelRun, SharedRateLimiter, SharedSpend

    config = options.model_config()
    assert config is not None  # noqa: S101 -- for the type checker; callers look
    rate_limits = replace(config.rate_limits, concurrency=max(1, config.rate_limits.concurrency // places))
    shared = SharedSpend(gate, wait), SharedRateLimiter(rate_limits, gate)
    with ModelRun(replace(config, rate_limits=rate_limits), spend=shared[0], rate_limiter=shared[1]) as models:
        return try_shard(shard, replace(options, model_run=models))


def _in_processes(
    shards: Sequence[Shard], options: RunConfig, processes: int, work: Callable[[Shard], ShardResult]
) -> Generator[ShardResult, None, None]:
    from compactor_cli.plan.tokens import PAYS_FROM_BYTES, load_vocabulary
    from compactor_cli.run.runner import affordable, memory_at_hand
    from compactor_cli.run.workers import Workers

    load_vocabulary(options.settings.tokenizer, PAYS_FROM_BYTES)  # shards are not small
    # Of parts, tables and columns only a few rows are held in memory, whatever their size.
    held = ((s.input, 0 if s.part or options.column or is_parquet(s.input) else s.size_bytes) for s in shards)
    processes = affordable(held, processes, memory_at_hand())
    advice = "too little memory? run it alone, with -j 1 or a smaller --split"
    died = f"the process that worked on it died: {advice}"
    workers = Workers(work, processes, lambda shard: failed_shard(shard, f"{shard.input}: {died}"))
    yield from workers.results((shard,) for shard in shards)


def summed(results: Iterable[ShardResult]) -> ShardMetrics:
    """The sum of the metrics."""
    return sum((result.metrics for result in results), ShardMetrics())


_AHEAD = 4  # tasks handed to the cluster per CPU: bounds what its scheduler has to hold
_RETRIES = 2
_ANSWER_SECONDS = 10.0
# Shards are read from and written to the file system; Ray's store holds only their names.
_STORE_BYTES = 100 << 20


def run_on_ray(
    shards: Sequence[Shard], options: RunConfig, *, address: str, processes: int, emit: Callable[[Spent], object]
) -> Generator[ShardResult, None, None]:
    """Do all shards on Ray; yields each result as soon as it is there.

    If ``address`` is empty, a cluster of ``processes`` is started on this machine. If the generator is closed early,
    the other shards are cancelled. ``emit`` gets the account if there are models. Raises `UsageError` if Ray is not
    installed, `TryLater` if the cluster does not answer.
    """
    from compactor_cli.llm.model_calls import NO_KEYS
    from compactor_cli.run.model_run import Gate

    config = options.models
    # Keys are read on each machine and never sent.
    sent = replace(options, models=replace(config, keys=NO_KEYS) if config else None)
    with _cluster(address, processes) as ray:
        places = max(1, int(ray.cluster_resources().get("CPU", 1)))
        gate = ray.remote(Gate).options(num_cpus=0).remote(config.rate_limits, config.limits) if config else None
        work = ray.remote(max_retries=_RETRIES)(_on_worker)
        rest = iter(shards)
        running: dict[Any, Shard] = {}
        try:
            while True:
                for shard in islice(rest, _AHEAD * places - len(running)):
                    running[work.remote(shard, sent, gate, places)] = shard
                if not running:
                    break
                for ref in ray.wait(list(running))[0]:
                    shard = running.pop(ref)
                    try:
                        result = ray.get(ref)
                    except ray.exceptions.RayError as error:
                        what = f"its worker failed ({str(error).strip().splitlines()[-1]})"
                        advice = "start the run again, or use a smaller --split"
                        result = failed_shard(shard, f"{shard.input}: {what}: {advice}")
                    yield result
        finally:
            for ref in running:
                ray.cancel(ref)
            if gate is not None:
                emit(ray.get(gate.spent.remote()))


def _on_worker(shard: Shard, options: RunConfig, gate: Any, places: int) -> ShardResult:
    """The task of a worker: one shard."""
    if gate is None:
        return try_shard(shard, options)
    import ray

    return try_gated(shard, options, gate, ray.get, places)


@contextmanager
def _cluster(address: str, processes: int) -> Iterator[Any]:
    """The module of Ray, connected; it is disconnected on leaving, unless it was connected before."""
    import socket

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError:
        advice = "pip install 'compactor-cli[ray]'"
        raise UsageError("the engine ray needs the package ray", next_step=advice) from None
    if ray.is_initialized():
        yield ray
        return
    host, colon, port = address.rpartition("//")[2].rpartition(":")
    if colon and port.isdigit():
        try:  # if nothing listens there, Ray itself would wait for minutes
            socket.create_connection((host, int(port)), _ANSWER_SECONDS).close()
        except OSError as error:
            raise _no_cluster(address, error) from error
    run_options: dict[str, Any] = {"address": address}
    if not address:
        run_options = {"address": "local", "num_cpus": processes, "object_store_memory": _STORE_BYTES}
    run_options |= {"include_dashboard": None if address else False, "logging_level": "ERROR", "log_to_driver": False}
    stop = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(**run_options)
    except (ConnectionError, ValueError) as error:
        raise _no_cluster(address, error) from error
    try:
        # Ray installs a handler that ends the process at once; the one before it cleans up first.
        signal.signal(signal.SIGTERM, stop)
        yield ray
    finally:
        ray.shutdown()


def _no_cluster(address: str, error: Exception) -> TryLater:
    return TryLater(f"no Ray cluster answers at {address} ({error})", next_step="check --address")
