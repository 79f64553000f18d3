"""A run over shards: configuration, the shards of this share, the engine, and what is told about it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli import __version__
from compactor_cli.archive.atomic import PRIVATE_FILE_MODE
from compactor_cli.archive.leftovers import clear
from compactor_cli.cli.batch import SCALE
from compactor_cli.cli.config import configure
from compactor_cli.cli.console import Console
from compactor_cli.cli.models import model_orders, tell_models, tell_spent
from compactor_cli.cli.progress import Progress
from compactor_cli.cli.run import FELL_BACK, check_names
from compactor_cli.cli.wishes import Wishes, check
from compactor_cli.cli.written import output_file
from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import Settings
from compactor_cli.presets import values
from compactor_cli.read.sources import Walk, find_sources
from compactor_cli.scale.metrics import Metrics
from compactor_cli.scale.options import Finished, ShardOptions
from compactor_cli.scale.run import ShardResult, run_gated, run_here
from compactor_cli.scale.shards import DEFAULT_SPLIT_BYTES, INCLUDE, Shard, plan_shards, share

if TYPE_CHECKING:
    from compactor_cli.run.models import ModelOrders

_SHARE = re.compile(r"([1-9]\d*)/([1-9]\d*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What was asked for: `options.OPTIONS` as wishes and settings, and the options of shards as they were said."""

    operands: tuple[str, ...]
    wishes: Wishes
    settings: Settings
    own: Mapping[str, str]


def read(operands: Sequence[str], given: Mapping[str, Any]) -> Said:
    """The wishes, checked. Raises `UsageError`."""
    names = {option.name for option in SCALE}
    configuration = configure({k: v for k, v in given.items() if k not in names}, os.environ, Path.cwd())
    wishes = Wishes(**configuration.options)
    check(wishes, given)
    check_names(configuration.settings, wishes)
    if not wishes.output_dir:
        raise UsageError("the outputs have no place to go", next_step="name one: --output-dir DIR")
    own = {name: value for name, value in given.items() if name in names}
    if own.get("engine", "local") not in ("local", "ray"):
        raise UsageError(f"no engine is called {own['engine']}", next_step="local or ray", place="--engine")
    if "address" in own and own.get("engine") != "ray":
        raise UsageError("--address is about a Ray cluster", next_step="add --engine ray")
    return Said(operands=tuple(operands), wishes=wishes, settings=configuration.settings, own=own)


def run(operands: Sequence[str], given: Mapping[str, Any]) -> int:
    """Do the share of the shards; the exit code. Raises `CompactError` for what concerns the whole run."""
    said = read(operands, given)
    wishes = said.wishes
    console = Console("compactor", wishes.level, wishes.color)
    shards = _share(planned(said), said.own.get("shard", ""))
    orders = model_orders(wishes, said.settings) if wishes.model else None
    if orders:
        from compactor_cli.run.models import check_setup

        # Machines of a cluster may have keys in environments of their own.
        check_setup(orders, has_keys_elsewhere=said.own.get("engine") == "ray")
    if not {"shard", "address"} & said.own.keys():
        # Locks of other machines are not always seen: what others may be writing is left alone.
        clear({Path(shard.output).parent for shard in shards}, filter(None, (_archive(wishes),)), console.warn)
    results: list[ShardResult] = []
    with ExitStack() as stack:
        shown = Progress(label="compactor batch", total=len(shards), unit="shard", shown=console.watched)
        progress = stack.enter_context(shown)
        console.before_line = progress.make_room
        try:
            with closing(_engine(said, shards, orders, console, stack)) as engine:
                for result in engine:
                    results.append(result)
                    tell(result, console)
                    progress.advance(1)
        finally:
            console.finish()
    metrics = sum((result.metrics for result in results), Metrics())
    tell_all(metrics, console)
    if wishes.report:
        _write_report(wishes.report, said, metrics, results)
    code = 3 if any(result.exit_code for result in results) else 0
    return code or (FELL_BACK if wishes.strict and metrics.fell_back else 0)


def _archive(wishes: Wishes) -> Path | None:
    return Path(wishes.archive_dir) if wishes.archive_dir else None


def planned(said: Said) -> tuple[Shard, ...]:
    """The shards of all inputs."""
    wishes = said.wishes
    walk = Walk(
        include=wishes.include or INCLUDE,
        exclude=wishes.exclude,
        hidden=wishes.hidden,
        skip=tuple(filter(None, (wishes.output_dir, wishes.archive_dir))),
    )
    sources = find_sources(
        said.operands,
        recursive=wishes.recursive,
        walk=walk,
        files_from=wishes.files_from,
        null_separated=wishes.null,
    )
    split = said.own.get("split")
    split_bytes = DEFAULT_SPLIT_BYTES if split is None else values.size_bytes(split, "--split")
    return plan_shards(sources, wishes.output_dir, split_bytes)


def shard_options(said: Said) -> ShardOptions:
    """The options of all shards."""
    wishes = said.wishes
    return ShardOptions(
        settings=said.settings,
        dialect=wishes.format,
        on_invalid=wishes.invalid,
        archive_dir=_absolute_name(wishes.archive_dir),
        key_file=_absolute_name(wishes.key_file),
        column=said.own.get("column", ""),
        finished=Finished.REDO if wishes.force else Finished.SKIP,
    )


def _share(shards: Sequence[Shard], text: str) -> tuple[Shard, ...]:
    if not text:
        return tuple(shards)
    found = _SHARE.fullmatch(text)
    if not found or int(found[1]) > int(found[2]):
        raise UsageError(f"“{text}” is no share", next_step="write I/N, from 1/N to N/N", place="--shard")
    return share(shards, int(found[1]), int(found[2]))


def _engine(
    said: Said, shards: Sequence[Shard], orders: ModelOrders | None, console: Console, stack: ExitStack
) -> Generator[ShardResult, None, None]:
    options = dataclasses.replace(shard_options(said), models=orders)
    if said.own.get("engine") == "ray":
        return _on_ray(said, shards, options, console, stack)
    processes = min(said.wishes.processes, len(shards))
    if orders and processes > 1:
        tell_end = partial(tell_spent, model=said.wishes.model, console=console)
        return run_gated(shards, options, processes=processes, tell=tell_end)
    if orders is None:
        return run_here(shards, options, processes=said.wishes.processes)
    from compactor_cli.run.models import ModelRun

    models = stack.enter_context(ModelRun(orders))
    stack.callback(tell_models, models, console)
    return run_here(shards, options, models=models)


def _on_ray(
    said: Said, shards: Sequence[Shard], options: ShardOptions, console: Console, stack: ExitStack
) -> Generator[ShardResult, None, None]:
    from compactor_cli.scale.on_ray import RayRun

    run = RayRun(options, address=said.own.get("address", ""), processes=said.wishes.processes)
    if options.models:
        stack.callback(lambda: tell_spent(run.spent, said.wishes.model, console))
    # Workers have working directories of their own.
    return run.results([_absolute(shard) for shard in shards])


def _absolute_name(path: str) -> str:
    return str(Path(path).absolute()) if path else ""


def _absolute(shard: Shard) -> Shard:
    return dataclasses.replace(shard, input=_absolute_name(shard.input), output=_absolute_name(shard.output))


def tell(result: ShardResult, console: Console) -> None:
    """Say what became of one shard."""
    metrics, output = result.metrics, result.shard.output
    if result.error:
        console.error(result.error)
        console.why(result.trace)
    elif metrics.shards_skipped:
        console.note(f"{output}: finished before")
    else:
        console.done(f"{output}: {_rows(metrics)}", kind="written")
    if metrics.failed:
        console.warn(f"{output}: {metrics.failed:,} rows failed and were passed on unchanged: see {output}.failed")


def tell_all(metrics: Metrics, console: Console) -> None:
    """Say what became of all."""
    before = f", {metrics.shards_skipped:,} finished before" if metrics.shards_skipped else ""
    failed = f", {metrics.shards_failed:,} failed" if metrics.shards_failed else ""
    console.done(f"{metrics.shards:,} shards written{before}{failed}; {_rows(metrics)}")
    asked = metrics.compacted + metrics.left
    if metrics.fell_back:
        console.warn(
            f"{metrics.fell_back:,} of {asked:,} summaries fell back to the digest: the model gave none for them"
        )
    if metrics.left:
        console.warn(f"{metrics.left:,} of {asked:,} conversations were left as they were: the model gave no summary")


def _rows(metrics: Metrics) -> str:
    return f"{metrics.rows:,} conversations, {metrics.tokens_before:,} → {metrics.tokens_after:,} tokens"


def _write_report(path: str, said: Said, metrics: Metrics, results: Sequence[ShardResult]) -> None:
    """What happened, as JSON."""
    report = {
        "version": __version__,
        "settings": dataclasses.asdict(said.settings),
        "metrics": dataclasses.asdict(metrics),
        "shards": [dataclasses.asdict(result) for result in sorted(results, key=lambda result: result.shard.output)],
    }
    with output_file(path, mode=PRIVATE_FILE_MODE) as file:
        file.write(json.dumps(report, indent=1).encode() + b"\n")
