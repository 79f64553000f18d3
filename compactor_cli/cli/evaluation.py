"""``compactor eval``: how much of what comes later a summary still holds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from compactor_cli.evaluate.baselines import Method
    from compactor_cli.evaluate.cuts import Case
    from compactor_cli.evaluate.results import EvalOptions, EvalResult

GATES_FAILED = 1
_PRESET = "preset:"


@click.command("eval")
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--baselines",
    multiple=True,
    metavar="NAME",
    help="Compare with these (comma-separated): all, a name, or preset:NAME.",
)
@click.option(
    "--baseline-cmd", "commands", multiple=True, metavar="CMD", help="A baseline that reads and writes JSONL."
)
@click.option("--budgets", metavar="SIZES", help="Shares of the middle or tokens; default 2%,5%,10%,20%,1k,2k,4k.")
@click.option("--format", "dialect", default="", metavar="NAME", help="Only transcripts of this dialect.")
@click.option("--limit", type=int, default=0, metavar="N", help="At most N files, spread over all.")
@click.option("--tail", default="8k", metavar="TOKENS", help="What is kept before each cut; default 8k.")
@click.option("--rounds", metavar="LIST", default="1,2,5,10", help="Updates in a row for the drift; default 1,2,5,10.")
@click.option("--drift/--no-drift", default=True, help="Measure the drift (default).")
@click.option("--plot", metavar="FILE.svg", help="Draw the figures.")
@click.option("--json", "as_json", is_flag=True, help="Everything as one JSON document.")
@click.option("--seed", type=int, default=0, help="Of the bootstrap.")
@click.option("-j", "--jobs", type=int, default=1, metavar="N", help="Processes.")
def evaluation(paths: tuple[str, ...], plot: str | None, as_json: bool, **said: Any) -> int:
    """Cut transcripts, compact what is before the cut, and measure what what is behind it needs.

    Exit code 1 if a digest breaks a gate: over its budget, something invented, or not the same twice.
    """
    from compactor_cli.cli.console import Console
    from compactor_cli.cli.progress import Progress
    from compactor_cli.evaluate.run import run_eval

    options = _options(**said)
    with Progress(label="compactor eval", total=0, unit="file", shown=Console("compactor").watched) as progress:
        presets = _preset_methods(options.baselines)
        result = run_eval(paths, options, presets, progress=lambda done, total: progress.advance(1))
    if plot:
        from compactor_cli.evaluate.plot import write_plot

        write_plot(result, plot)
    _show(result, as_json)
    return 0 if result.gates_hold else GATES_FAILED


def _options(
    *,
    baselines: Sequence[str],
    commands: Sequence[str],
    budgets: str | None,
    tail: str,
    rounds: str,
    drift: bool,
    dialect: str,
    limit: int,
    seed: int,
    jobs: int,
) -> EvalOptions:
    from compactor_cli.evaluate.results import DEFAULT_BUDGETS, EvalOptions
    from compactor_cli.presets import values

    sizes = tuple(values.size(item, "--budgets") for item in budgets.split(",")) if budgets else DEFAULT_BUDGETS
    return EvalOptions(
        baselines=tuple(name for item in baselines for name in item.split(",")),
        commands=tuple(commands),
        budgets=sizes,
        tail_tokens=values.tokens(tail, "--tail"),
        rounds=tuple(values.count(item, "--rounds") for item in rounds.split(",")) if drift else (),
        dialect=dialect,
        limit=limit,
        jobs=jobs,
        seed=seed,
    )


@dataclass(frozen=True, slots=True)
class _Preset:
    """A preset as a function from a case and a budget to its output; can be sent to another process."""

    name: str

    def __call__(self, case: Case, budget_tokens: int) -> bytes:
        from compactor_cli.digest.digest import Digest
        from compactor_cli.engine import compact_transcript
        from compactor_cli.model.settings import Size
        from compactor_cli.plan.tokens import counter_for
        from compactor_cli.presets import load_preset

        target = Size(tokens=case.kept_tokens + budget_tokens)
        return compact_transcript(
            case.prefix,
            replace(load_preset(self.name).settings, target=target),
            counter=counter_for(),
            summariser=Digest(),
            load_state=lambda name: None,
        ).output


def _preset_methods(baselines: Sequence[str]) -> tuple[Method, ...]:
    """The presets among the baselines."""
    from compactor_cli.evaluate.external import FilterMethod
    from compactor_cli.presets import load_preset

    names = [name.removeprefix(_PRESET) for name in baselines if name.startswith(_PRESET)]
    for name in names:
        load_preset(name)
    return tuple(FilterMethod(name=f"{_PRESET}{name}", compact=_Preset(name)) for name in names)


def _show(result: EvalResult, as_json: bool) -> None:
    if as_json:
        import json

        from compactor_cli.evaluate.report import to_json

        json.dump(to_json(result), sys.stdout, ensure_ascii=False, indent=1)
        sys.stdout.write("\n")
    else:
        from compactor_cli.evaluate.table import render_table

        sys.stdout.write(render_table(result))
