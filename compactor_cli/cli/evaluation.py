"""``compactor eval``: how much of what comes later a summary still holds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from compactor_cli.model.errors import InputError, UsageError

if TYPE_CHECKING:
    from compactor_cli.cli.console import Progress
    from compactor_cli.evaluate.baselines import Baseline
    from compactor_cli.evaluate.cuts import EvalCase
    from compactor_cli.model.settings import Size

GATES_FAILED = 1
_PRESET = "preset:"


@click.command("eval")
@click.argument("paths", nargs=-1)
@click.option("--questions", multiple=True, metavar="FILE…", help="Ask these questions (JSONL) of the summaries.")
@click.option(
    "--at", type=click.Choice(["client"]), help="Questions only where a client compacted, at its summary's size."
)
@click.option("--summaries", metavar="FOLDER", help="Write the summaries that were asked there, as JSONL.")
@click.option("--replies", metavar="FOLDER", help="Measure replies of models (JSONL), supplemented as in a run.")
@click.option("--misses", is_flag=True, help="List the questions that the digest does not answer.")
@click.option(
    "--baselines",
    multiple=True,
    metavar="NAME",
    help="Compare with these (comma-separated): all, a name, or preset:NAME.",
)
@click.option(
    "--baseline-cmd", "commands", multiple=True, metavar="CMD", help="A baseline that reads and writes JSONL."
)
@click.option(
    "--budgets",
    metavar="SIZES",
    help="Shares of the middle or tokens; default 2%,5%,10%,20%,1k,2k,4k; asked: 1500,5%.",
)
@click.option("--format", "dialect", default="", metavar="NAME", help="Only transcripts of this format.")
@click.option("--limit", type=int, default=0, metavar="N", help="At most N files, spread over all.")
@click.option(
    "--tail",
    "tails",
    multiple=True,
    metavar="[PART=]TOKENS",
    help="What is kept before each cut (in paths that hold PART); default 8k, at a client 0.",
)
@click.option("--rounds", metavar="LIST", default="1,2,5,10", help="Updates in a row for the drift; default 1,2,5,10.")
@click.option("--drift/--no-drift", default=True, help="Measure the drift (default).")
@click.option("--plot", metavar="FILE.svg", help="Draw the figures.")
@click.option("--json", "as_json", is_flag=True, help="Everything as one JSON document.")
@click.option("--seed", type=int, default=0, help="Of the bootstrap.")
@click.option("-j", "--jobs", type=int, default=1, metavar="N", help="Processes.")
def evaluation(paths: tuple[str, ...], questions: tuple[str, ...], replies: str | None, **given: Any) -> int:
    """Cut transcripts, compact what is before the cut, and measure what what comes after it needs.

    With --questions, each FILE (PATHS are further ones) holds questions with gold answers: measured is how many of
    them a summary answers, the digest's and those of baselines, at equal tokens.

    With --replies, each row (file, cut, text) of the FOLDER's JSONL is the reply of a model: measured is the summary
    that a run would make of it, against its text alone and the digest; with questions, these are asked too.

    Exit code 1 if a digest breaks a gate: over its budget, something invented, or not the same twice.
    """
    if replies:
        from compactor_cli.evaluate.questions import render_replies, replies_json, run_replies

        found = run_replies(replies, (*questions, *paths))
        _print(replies_json(found) if given["as_json"] else render_replies(found))
        return 0
    if questions:
        _ask((*questions, *paths), given)
        return 0
    if unused := [name for name in ("at", "summaries", "misses") if given[name]]:
        raise UsageError(f"--{unused[0]} needs --questions", next_step="name a file of questions")
    if not paths:
        raise UsageError("nothing to evaluate", next_step="name files or folders, or --questions FILE")
    return _measure(paths, given)


def _ask(paths: tuple[str, ...], given: dict[str, Any]) -> None:
    from compactor_cli.evaluate import questions as asked
    from compactor_cli.evaluate.cuts import CutRule

    at_client = given["at"] is not None
    _refuse("--questions", {"--plot": given["plot"], "--baseline-cmd": given["commands"], "--limit": given["limit"]})
    _refuse("--at client", {"--budgets": at_client and given["budgets"]})
    names = _names(given["baselines"])
    # A client's own summary covers everything before it.
    tail_tokens, tails = _tails(given["tails"], everywhere=0 if at_client else CutRule().tail_tokens)
    options = asked.QuestionOptions(
        paths=paths,
        baselines=names or asked.DEFAULT_BASELINES,
        budgets=_sizes(given["budgets"]) or asked.DEFAULT_BUDGETS,
        at_client=at_client,
        tail_tokens=tail_tokens,
        tails=tails,
    )
    with _progress("cut") as progress:
        presets = _preset_methods(names)
        result = asked.run_questions(options, presets, progress.advance)
    if given["summaries"]:
        asked.write_summaries(result, given["summaries"])
    _print(asked.questions_json(result) if given["as_json"] else asked.render_questions(result, given["misses"]))


def _refuse(mode: str, options: dict[str, Any]) -> None:
    """Raises UsageError for the first of these options that was given: it would change nothing."""
    for name, value in options.items():
        if value:
            raise UsageError(f"{name} does not go with {mode}", next_step="leave one of them out")


def _measure(paths: tuple[str, ...], given: dict[str, Any]) -> int:
    from compactor_cli.evaluate.cuts import CutRule
    from compactor_cli.evaluate.run_eval import DEFAULT_BUDGETS, EvalOptions, run_eval
    from compactor_cli.evaluate.tables import render_table, to_json, write_plot
    from compactor_cli.model.settings import read_count

    tail_tokens, parts = _tails(given["tails"], CutRule().tail_tokens)
    if parts:
        raise UsageError("a tail for some paths only goes with --questions", next_step="write --tail TOKENS")
    rounds = given["rounds"].split(",") if given["drift"] else ()
    options = EvalOptions(
        baselines=_names(given["baselines"]),
        commands=tuple(given["commands"]),
        budgets=_sizes(given["budgets"]) or DEFAULT_BUDGETS,
        tail_tokens=tail_tokens,
        rounds=tuple(read_count(item, "--rounds") for item in rounds),
        **{name: given[name] for name in ("dialect", "limit", "jobs", "seed")},
    )
    with _progress("file") as progress:
        presets = _preset_methods(options.baselines)
        result = run_eval(paths, options, presets, progress.advance)
    if not result.cases:
        why = "; ".join(dict.fromkeys(file.skipped for file in result.files)) or "there is no transcript"
        raise InputError(f"nothing was measured: {why}", place=" ".join(paths), next_step="name other files or folders")
    if given["plot"]:
        write_plot(result, given["plot"])
    _print(to_json(result) if given["as_json"] else render_table(result))
    return 0 if result.gates_hold else GATES_FAILED


def _progress(unit: str) -> Progress:
    from compactor_cli.cli.console import Console, Progress

    return Progress(label="compactor eval", total=0, unit=unit, shown=Console("compactor").watched)


def _print(found: str | dict[str, Any]) -> None:
    """A text as it is, anything else as JSON."""
    import json

    sys.stdout.write(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, indent=1) + "\n")


def _names(baselines: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for item in baselines for name in item.split(","))


def _sizes(budgets: str | None) -> tuple[Size, ...]:
    from compactor_cli.model.settings import read_size

    return tuple(read_size(item, "--budgets") for item in budgets.split(",")) if budgets else ()


def _tails(given: Sequence[str], everywhere: int) -> tuple[int, tuple[tuple[str, int], ...]]:
    """The tail's tokens, and those for paths that hold a part: ``8k``, ``chat=500``."""
    from compactor_cli.model.settings import read_tokens

    parts: list[tuple[str, int]] = []
    for item in given:
        part, is_part, size = item.rpartition("=")
        tokens = read_tokens(size, "--tail")
        if is_part:
            parts.append((part, tokens))
        else:
            everywhere = tokens
    return everywhere, tuple(parts)


def _output_of(preset: str, case: EvalCase, budget_tokens: int) -> bytes:
    """What a preset makes of a case."""
    from compactor_cli.digest.digest import Digest
    from compactor_cli.engine import compact_transcript
    from compactor_cli.model.settings import Size
    from compactor_cli.plan.tokens import counter_for
    from compactor_cli.presets import load_preset

    target = Size(tokens=case.kept_tokens + budget_tokens)
    return compact_transcript(
        case.prefix,
        replace(load_preset(preset).settings, target=target),
        counter=counter_for(),
        summariser=Digest(),
        load_state=lambda name: None,
    ).output


def _preset_methods(baselines: Sequence[str]) -> tuple[Baseline, ...]:
    """The presets among the baselines."""
    from compactor_cli.evaluate.baselines import filter_baseline
    from compactor_cli.presets import load_preset

    names = [name.removeprefix(_PRESET) for name in baselines if name.startswith(_PRESET)]
    for name in names:
        load_preset(name)
    return tuple(filter_baseline(f"{_PRESET}{name}", partial(_output_of, name)) for name in names)
