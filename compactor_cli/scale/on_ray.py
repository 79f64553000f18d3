"""Ray: shards as tasks of a cluster, or of one on this machine. Needs the extra [ray].

Only paths travel; every node must see them, and have this package. Nothing is reported to Ray's makers.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

from compactor_cli.llm.limits import Spent
from compactor_cli.llm.model_calls import NO_KEYS
from compactor_cli.model.errors import TryLater, UsageError
from compactor_cli.scale.gate import Gate
from compactor_cli.scale.run_shards import ShardResult, failed, try_gated, try_shard
from compactor_cli.scale.shard_options import ShardOptions
from compactor_cli.scale.shards import Shard

# Tasks handed to the cluster ahead, per CPU: bounds what its scheduler has to hold.
_AHEAD = 4
_RETRIES = 2
_ANSWER_SECONDS = 10.0
# Shards go by the file system; Ray's store holds nothing but their names.
_STORE_BYTES = 100 << 20


class RayRun:
    """A run of shards on Ray. ``address`` empty: a cluster of ``processes`` on this machine, for this run."""

    def __init__(self, options: ShardOptions, *, address: str = "", processes: int = 1) -> None:
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
        run_config = self._options.models
        return (
            ray.remote(Gate).options(num_cpus=0).remote(run_config.rate_limits, run_config.limits)
            if run_config
            else None
        )


def _on_worker(shard: Shard, options: ShardOptions, gate: Any, places: int) -> ShardResult:
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
        return failed(
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
