"""Runs over shards: each tried on its own, so that one that fails costs the others nothing."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from compactor_cli.model.errors import CompactError
from compactor_cli.scale.shard_metrics import ShardMetrics
from compactor_cli.scale.shard_options import ShardOptions
from compactor_cli.scale.shards import Shard
from compactor_cli.scale.step import compact_shard

if TYPE_CHECKING:
    from compactor_cli.llm.limits import Spent
    from compactor_cli.run.model_run import ModelRun
    from compactor_cli.scale.local_gate import GateAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardResult:
    """What became of one shard. ``error`` empty: its output is there. ``trace``: of a defect."""

    shard: Shard
    metrics: ShardMetrics
    error: str = ""
    exit_code: int = 0
    trace: str = ""


def try_shard(shard: Shard, options: ShardOptions, models: ModelRun | None = None) -> ShardResult:
    """Do one shard; whatever goes wrong with it is in the result."""
    try:
        metrics = compact_shard(shard.input, shard.output, options, part=shard.part, models=models)
    except CompactError as error:
        what = str(error) if error.place else f"{shard.input}: {error}"
        return failed(shard, what, exit_code=error.exit_code)
    except BrokenPipeError:
        raise
    except Exception as error:
        what = f"{shard.input}: {type(error).__name__}: {error}: this is a defect, please report it"
        return failed(shard, what, trace=traceback.format_exc())
    return ShardResult(shard=shard, metrics=metrics, exit_code=CompactError.exit_code if metrics.failed else 0)


def failed(shard: Shard, what: str, *, exit_code: int = CompactError.exit_code, trace: str = "") -> ShardResult:
    """The result of a shard that wrote nothing."""
    return ShardResult(shard=shard, metrics=ShardMetrics(shards_failed=1), error=what, exit_code=exit_code, trace=trace)


def run_here(
    shards: Sequence[Shard], options: ShardOptions, *, processes: int = 1, models: ModelRun | None = None
) -> Generator[ShardResult, None, None]:
    """All shards on this machine; one result each, in order. With ``models``, in this process."""
    if models or processes <= 1 or len(shards) < 2:
        yield from (try_shard(shard, options, models) for shard in shards)
        return
    yield from _in_processes(shards, options, min(processes, len(shards)), partial(try_shard, options=options))


def run_gated(
    shards: Sequence[Shard], options: ShardOptions, *, processes: int, emit: Callable[[Spent], object]
) -> Generator[ShardResult, None, None]:
    """All shards on this machine in several processes that ask a model, with one rate limit and one account.

    The work around a call takes ten times as long as the call itself, and threads do not share it. ``emit`` gets what
    was spent in the end.
    """
    from compactor_cli.scale.local_gate import local_gate

    run_config = options.models
    assert run_config is not None  # noqa: S101 -- for the type checker; callers look
    with local_gate(run_config.rate_limits, run_config.limits) as address:
        work = partial(_by_gate, options=options, address=address, places=processes)
        try:
            yield from _in_processes(shards, options, processes, work)
        finally:
            emit(address.spent())


def try_gated(shard: Shard, options: ShardOptions, gate: Any, wait: Callable[[Any], Any], places: int) -> ShardResult:
    """Do one shard in one of ``places`` workers, with the gate's limits and a part of the requests at once."""
    from compactor_cli.run.model_run import ModelRun
    from compactor_cli.scale.gate import SharedRateLimiter, SharedSpend

    run_config = options.model_config()
    assert run_config is not None  # noqa: S101 -- for the type checker; callers look
    rate_limits = replace(run_config.rate_limits, concurrency=max(1, run_config.rate_limits.concurrency // places))
    shared = SharedSpend(gate, wait), SharedRateLimiter(rate_limits, gate)
    with ModelRun(replace(run_config, rate_limits=rate_limits), spend=shared[0], rate_limiter=shared[1]) as models:
        return try_shard(shard, options, models)


def _by_gate(shard: Shard, options: ShardOptions, address: GateAddress, places: int) -> ShardResult:
    from compactor_cli.scale.local_gate import wait

    with address.connected() as gate:
        return try_gated(shard, options, gate, wait, places)


def _in_processes(
    shards: Sequence[Shard], options: ShardOptions, processes: int, work: Callable[[Shard], ShardResult]
) -> Generator[ShardResult, None, None]:
    from compactor_cli.plan.tokens import AMOUNT, PAYS_FROM_BYTES, counter_for
    from compactor_cli.run.workers import Workers

    # Loaded once, before the processes part; shards are not small.
    AMOUNT.expect(PAYS_FROM_BYTES)
    counter_for(options.settings.tokenizer).count("a")
    yield from Workers(work, processes, _lost).results((shard,) for shard in shards)


def _lost(shard: Shard) -> ShardResult:
    advice = "too little memory? run it alone, with -j 1 or a smaller --split"
    return failed(shard, f"{shard.input}: the process that worked on it died: {advice}")


def summed(results: Iterable[ShardResult]) -> ShardMetrics:
    """The metrics of all."""
    return sum((result.metrics for result in results), ShardMetrics())
