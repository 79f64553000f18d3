"""Executors of shards: this process, several of this machine, or a Ray cluster; each shard is tried on its own.

All workers of a run that ask a model share one rate limit and one account, the `Gate`.

On Ray (the extra [ray]) only paths travel; every node must see them, and have this package. Nothing is reported to
Ray's makers.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from compactor_cli.model.errors import TryLater, UsageError
from compactor_cli.run.columns import is_parquet
from compactor_cli.run.jobs import RunConfig
from compactor_cli.run.shards import Shard, ShardMetrics, ShardResult, failed_shard, try_shard

if TYPE_CHECKING:
    from compactor_cli.llm.limits import Spent
    from compactor_cli.run.model_run import GateAddress, ModelRun


def run_here(
    shards: Sequence[Shard], options: RunConfig, *, processes: int = 1, models: ModelRun | None = None
) -> Generator[ShardResult, None, None]:
    """All shards on this machine; one result each, in order. With ``models``, in this process."""
    if models or processes <= 1 or len(shards) < 2:
        yield from (try_shard(shard, options, models) for shard in shards)
        return
    yield from _in_processes(shards, options, min(processes, len(shards)), partial(try_shard, options=options))


def run_gated(
    shards: Sequence[Shard], options: RunConfig, *, processes: int, emit: Callable[[Spent], object]
) -> Generator[ShardResult, None, None]:
    """All shards on this machine in several processes that ask a model, with one rate limit and one account.

    The work around a call takes ten times as long as the call itself, and threads do not share it. ``emit`` gets what
    was spent in the end.
    """
    from compactor_cli.run.model_run import local_gate

    run_config = options.models
    assert run_config is not None  # noqa: S101 -- for the type checker; callers look
    with local_gate(run_config.rate_limits, run_config.limits) as address:
        work = partial(_by_gate, options=options, address=address, places=processes)
        try:
            yield from _in_processes(shards, options, processes, work)
        finally:
            emit(address.spent())


def try_gated(shard: Shard, options: RunConfig, gate: Any, wait: Callable[[Any], Any], places: int) -> ShardResult:
    """Do one shard in one of ``places`` workers, with the gate's limits and a part of the requests at once."""
    from compactor_cli.run.model_run import ModelRun, SharedRateLimiter, SharedSpend

    run_config = options.model_config()
    assert run_config is not None  # noqa: S101 -- for the type checker; callers look
    rate_limits = replace(run_config.rate_limits, concurrency=max(1, run_config.rate_limits.concurrency // places))
    shared = SharedSpend(gate, wait), SharedRateLimiter(rate_limits, gate)
    with ModelRun(replace(run_config, rate_limits=rate_limits), spend=shared[0], rate_limiter=shared[1]) as models:
        return try_shard(shard, options, models)


def _by_gate(shard: Shard, options: RunConfig, address: GateAddress, places: int) -> ShardResult:
    from compactor_cli.run.model_run import wait

    with address.connected() as gate:
        return try_gated(shard, options, gate, wait, places)


def _in_processes(
    shards: Sequence[Shard], options: RunConfig, processes: int, work: Callable[[Shard], ShardResult]
) -> Generator[ShardResult, None, None]:
    from compactor_cli.plan.tokens import PAYS_FROM_BYTES, load_vocabulary
    from compactor_cli.run.runner import affordable, memory_at_hand
    from compactor_cli.run.workers import Workers

    load_vocabulary(options.settings.tokenizer, PAYS_FROM_BYTES)  # shards are not small
    # Of parts, tables and columns a few rows are held, whatever their size.
    held = ((s.input, 0 if s.part or options.column or is_parquet(s.input) else s.size_bytes) for s in shards)
    processes = affordable(held, processes, memory_at_hand())
    yield from Workers(work, processes, _lost).results((shard,) for shard in shards)


def _lost(shard: Shard) -> ShardResult:
    advice = "too little memory? run it alone, with -j 1 or a smaller --split"
    return failed_shard(shard, f"{shard.input}: the process that worked on it died: {advice}")


def summed(results: Iterable[ShardResult]) -> ShardMetrics:
    """The metrics of all."""
    return sum((result.metrics for result in results), ShardMetrics())


# Tasks handed to the cluster ahead, per CPU: bounds what its scheduler has to hold.
_AHEAD = 4
_RETRIES = 2
_ANSWER_SECONDS = 10.0
# Shards go by the file system; Ray's store holds nothing but their names.
_STORE_BYTES = 100 << 20


class RayRun:
    """A run of shards on Ray. ``address`` empty: a cluster of ``processes`` on this machine, for this run."""

    def __init__(self, options: RunConfig, *, address: str = "", processes: int = 1) -> None:
        from compactor_cli.llm.limits import Spent
        from compactor_cli.llm.model_calls import NO_KEYS

        # Keys are read where they are used; they are not sent.
        self._options = replace(options, models=replace(options.models, keys=NO_KEYS) if options.models else None)
        self._address = address
        self._processes = processes
        self.spent = Spent()

    def results(self, shards: Sequence[Shard]) -> Generator[ShardResult, None, None]:
        """One result per shard, as they are done; leaving early cancels the rest.

        Raises `UsageError` without Ray, `TryLater` where the cluster does not answer.
        """
        with _cluster(self._address, self._processes) as ray:
            places = max(1, int(ray.cluster_resources().get("CPU", 1)))
            gate = self._gate(ray)
            work = ray.remote(max_retries=_RETRIES)(_on_worker)
            rest = iter(shards)
            running: dict[Any, Shard] = {}
            try:
                while True:
                    for shard in islice(rest, _AHEAD * places - len(running)):
                        running[work.remote(shard, self._options, gate, places)] = shard
                    if not running:
                        break
                    for ref in ray.wait(list(running))[0]:
                        yield _result(ray, ref, running.pop(ref))
            finally:
                for ref in running:
                    ray.cancel(ref)
                if gate is not None:
                    self.spent = ray.get(gate.spent.remote())

    def _gate(self, ray: Any) -> Any:
        if (run_config := self._options.models) is None:
            return None
        from compactor_cli.run.model_run import Gate

        return ray.remote(Gate).options(num_cpus=0).remote(run_config.rate_limits, run_config.limits)


def _on_worker(shard: Shard, options: RunConfig, gate: Any, places: int) -> ShardResult:
    """The task: one shard on whatever machine this is."""
    if gate is None:
        return try_shard(shard, options)
    import ray

    return try_gated(shard, options, gate, ray.get, places)


def _result(ray: Any, ref: Any, shard: Shard) -> ShardResult:
    try:
        found: ShardResult = ray.get(ref)
    except ray.exceptions.RayError as error:
        what = str(error).strip().splitlines()[-1]
        return failed_shard(
            shard, f"{shard.input}: its worker failed ({what}): start the run again, or use a smaller --split"
        )
    return found


@contextmanager
def _cluster(address: str, processes: int) -> Iterator[Any]:
    """Ray, connected; disconnected on leaving, unless it was connected before."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError:
        advice = "pip install 'compactor-cli[ray]'"
        raise UsageError("the engine ray needs the package ray", next_step=advice) from None
    if ray.is_initialized():
        yield ray
        return
    _check_answers(address)
    run_options: dict[str, Any] = {"address": address}
    if not address:
        run_options = {"address": "local", "num_cpus": processes, "object_store_memory": _STORE_BYTES}
    stop = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            **run_options, include_dashboard=None if address else False, logging_level="ERROR", log_to_driver=False
        )
    except (ConnectionError, ValueError) as error:
        raise _no_cluster(address, error) from error
    try:
        # Ray ends the process in its own way; ours unwinds first.
        signal.signal(signal.SIGTERM, stop)
        yield ray
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Raises `TryLater` where nobody listens at ``host:port``; Ray itself would wait for minutes."""
    import socket

    host, colon, port = address.rpartition("//")[2].rpartition(":")
    if not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), _ANSWER_SECONDS).close()
    except OSError as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str, error: Exception) -> TryLater:
    return TryLater(f"no Ray cluster answers at {address} ({error})", next_step="check --address")
