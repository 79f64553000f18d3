"""``compactor batch``: datasets in shards, here, by any scheduler or on Ray."""

from __future__ import annotations

from typing import Any

import click

from compactor_cli.cli.compact import Sectioned, Sections, parameter
from compactor_cli.cli.options import Group, Option, OptionKind, Scope, with_flags

SCALE = (
    Option(
        "shard",
        Group.RUN,
        OptionKind.TEXT,
        "Do share I of N; every share is the same for all.",
        ("--shard",),
        Scope.COMMAND_LINE,
        "I/N",
    ),
    Option(
        "split",
        Group.RUN,
        OptionKind.TEXT,
        "Part files larger than SIZE (default 128M; 0: none).",
        ("--split",),
        Scope.COMMAND_LINE,
        "SIZE",
    ),
    Option(
        "column",
        Group.RUN,
        OptionKind.TEXT,
        "The column or key that holds conversations; or several (chosen,rejected), or inside one (extra.chat).",
        ("--column",),
        Scope.COMMAND_LINE,
        "NAME",
    ),
    Option(
        "executor",
        Group.RUN,
        OptionKind.CHOICE,
        "Who does the work (default local).",
        ("--executor",),
        Scope.COMMAND_LINE,
        choices=("local", "ray"),
    ),
    Option(
        "address",
        Group.RUN,
        OptionKind.TEXT,
        "The Ray cluster; default: one on this machine.",
        ("--address",),
        Scope.COMMAND_LINE,
        "ADDRESS",
    ),
)
ROUNDS = Option(
    "rounds",
    Group.RUN,
    OptionKind.COUNT,
    "Rounds of jobs at most (default 4).",
    ("--rounds",),
    Scope.COMMAND_LINE,
    "N",
)
# Of the filter's options, what is not for shards.
_LEFT_OUT = ("min_age", "output", "in_place", "append", "archive", "keep_going", "engine")


def _chosen(group: Group, **helps: str) -> tuple[Option, ...]:
    left = (option for option in with_flags(group) if option.name not in _LEFT_OUT)
    return tuple(option._replace(help=helps.get(option.name, option.help)) for option in left)


INPUTS = _chosen(Group.INPUT)
OUTPUTS = _chosen(
    Group.OUTPUT, force="Make finished outputs anew.", archive_dir="Keep originals below DIR (default: none)."
)
CONTROLS = _chosen(Group.KEEP)
MODEL = _chosen(Group.MODEL)
RUNNING = _chosen(Group.RUN)

EXAMPLES = """\
compactor batch rows.jsonl -t 16k --output-dir out -j 0
compactor batch -r data/ -t 16k --output-dir out --shard 3/100
compactor batch -r data/ -t 16k --output-dir out --executor ray --address auto"""

EXIT_CODES = """\
0    done, or finished before
2    usage or configuration; nothing was touched
3    a shard or a row failed; the others are complete
4    --strict: a summary fell back to the digest
75   a cluster or a provider does not answer, or batch jobs are not finished: try later"""


class RunCommand(Sectioned):
    """The command with its own sections."""

    sections: Sections = (
        ("Input", INPUTS),
        ("Output", OUTPUTS),
        ("Shards", SCALE),
        ("What to keep", CONTROLS),
        ("A model's summary", MODEL),
        ("The run", RUNNING),
    )
    examples = EXAMPLES
    exit_codes = EXIT_CODES


class SubmitCommand(Sectioned):
    """The command with its own sections."""

    sections: Sections = (
        ("Input", INPUTS),
        ("Output", OUTPUTS),
        ("Shards", tuple(option for option in SCALE if option.name in ("split", "column"))),
        ("What to keep", CONTROLS),
        ("A model's summary", MODEL),
        ("The run", (ROUNDS, *(option for option in RUNNING if option.name not in ("jobs", "report")))),
    )
    examples = "compactor batch submit -r data/ -t 16k -m openai/gpt-5-mini --output-dir out"
    exit_codes = EXIT_CODES


class DefaultGroup(click.Group):
    """A group that takes what is no command of its own for the operands of ``run``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, with ``run`` in front where no command is named."""
        if args and args[0] not in self.commands and args[0] not in self.get_help_option_names(ctx):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("batch", cls=DefaultGroup, no_args_is_help=True)
def batch() -> None:
    """Compact datasets in shards: on this machine, by a scheduler, on Ray, or by a provider's batch jobs.

    `compactor batch FILE…` is short for `compactor batch run FILE…`.
    """


def _run(operands: tuple[str, ...], **given_options: Any) -> int:
    """Compact JSONL and Parquet, shard by shard.

    An output that is finished by the same options is not made again: start it anew after any failure, with any number
    of shares. Rows that fail are passed on unchanged, and set down next to the output in OUTPUT.failed.
    """
    from compactor_cli.cli.batch_run import run

    return run(operands, {name: value for name, value in given_options.items() if value not in (None, ())})


def command_of(kind: type[Sectioned], callback: Any, name: str) -> click.Command:
    """A command that takes operands and the options of its sections."""
    taken = [parameter(option) for _, section in kind.sections for option in section]
    operands = click.Argument(["operands"], nargs=-1, type=click.UNPROCESSED)
    return kind(name, params=[*taken, operands], callback=callback, help=callback.__doc__)


def _submit(operands: tuple[str, ...], **given_options: Any) -> int:
    """Have a model's summaries made by a provider's batch jobs, at its price for them.

    Sends the first round and returns; `compactor batch collect` goes on. What was asked for, and every reply, is kept
    in the output folder.
    """
    from compactor_cli.cli.batch_run import submit

    return submit(operands, {name: value for name, value in given_options.items() if value not in (None, ())})


@click.command()
@click.argument("output_dir", metavar="OUTPUT_DIR")
def status(output_dir: str) -> int:
    """Show how the batch jobs stand."""
    from compactor_cli.cli.batch_run import status as show

    return show(output_dir)


@click.command()
@click.argument("output_dir", metavar="OUTPUT_DIR")
@click.option("--live", is_flag=True, help="Ask live for what failed or is still missing.")
@click.option("--finish", is_flag=True, help="Send no further round: the digest writes what is missing.")
@click.option("-q", "--quiet", count=True, help="No warnings; -qq: no errors.")
@click.option("-v", "--verbose", count=True, help="Say what was done; -vv: and why.")
def collect(output_dir: str, live: bool, finish: bool, quiet: int, verbose: int) -> int:
    """Fetch the replies, write the outputs that are complete, send the next round.

    Exit code 75: not finished yet, collect again later.
    """
    from compactor_cli.cli.batch_run import collect as go_on
    from compactor_cli.run.provider import Missing

    missing = Missing.ASK if live else Missing.GIVE_UP if finish else Missing.SEND
    return go_on(output_dir, missing, verbose - quiet)


batch.add_command(command_of(RunCommand, _run, "run"))
batch.add_command(command_of(SubmitCommand, _submit, "submit"))
batch.add_command(status)
batch.add_command(collect)
