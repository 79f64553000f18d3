"""``compactor batch``: datasets in shards, here, by any scheduler or on Ray."""

from __future__ import annotations

from typing import Any

import click

from compactor_cli.cli.command import Sectioned, Sections, parameter
from compactor_cli.cli.options import CONTROL, INPUT, MODEL, OUTPUT, RUN, Kind, Option, Scope

_ONLY = Scope.COMMAND_LINE
SCALE = (
    Option("shard", ("--shard",), Kind.TEXT, "Do share I of N; every share is the same for all.", _ONLY, "I/N"),
    Option("split", ("--split",), Kind.TEXT, "Part files larger than SIZE (default 128M; 0: none).", _ONLY, "SIZE"),
    Option("column", ("--column",), Kind.TEXT, "The column of Parquet that holds conversations.", _ONLY, "NAME"),
    Option("engine", ("--engine",), Kind.CHOICE, "Who does the work (default local).", _ONLY, choices=("local", "ray")),
    Option("address", ("--address",), Kind.TEXT, "The Ray cluster; default: one on this machine.", _ONLY, "ADDRESS"),
)
_LEFT_OUT = (
    "min_age",
    "output",
    "in_place",
    "append",
    "archive",
    "compress",
    "lock",
    "keep_going",
    "engine",
    "summariser",
)


def _chosen(options: tuple[Option, ...], **helps: str) -> tuple[Option, ...]:
    left = (option for option in options if option.name not in _LEFT_OUT)
    return tuple(option._replace(help=helps.get(option.name, option.help)) for option in left)


INPUTS = _chosen(INPUT)
OUTPUTS = _chosen(OUTPUT, force="Make finished outputs anew.", archive_dir="Keep originals below DIR (default: none).")
CONTROLS = _chosen(CONTROL)
RUNNING = _chosen(RUN)

EXAMPLES = """\
compactor batch rows.jsonl -t 16k --output-dir out -j 0
compactor batch -r data/ -t 16k --output-dir out --shard 3/100
compactor batch -r data/ -t 16k --output-dir out --engine ray --address auto"""

EXIT_CODES = """\
0    done, or finished before
2    usage or configuration; nothing was touched
3    a shard or a row failed; the others are complete
4    --strict: a summary fell back to the digest"""


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
    tail = (("Examples", EXAMPLES), ("Exit codes", EXIT_CODES))


class DefaultGroup(click.Group):
    """A group that takes what is no command of its own for the operands of ``run``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, with ``run`` in front where no command is named."""
        if args and args[0] not in self.commands and args[0] not in self.get_help_option_names(ctx):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("batch", cls=DefaultGroup, no_args_is_help=True)
def batch() -> None:
    """Compact datasets in shards: on this machine, by a scheduler, or on Ray.

    `compactor batch FILE…` is short for `compactor batch run FILE…`.
    """


def _run(operands: tuple[str, ...], **said: Any) -> int:
    """Compact JSONL and Parquet, shard by shard.

    An output that is finished by the same options is not made again: start it anew after any failure, with any number
    of shares. Rows that fail are passed on unchanged, and set down beside the output in OUTPUT.failed.
    """
    from compactor_cli.cli.batch_run import run

    return run(operands, {name: value for name, value in said.items() if value not in (None, ())})


def command_of(options: Sections, callback: Any, name: str) -> click.Command:
    """A command that takes operands and these options."""
    taken = [parameter(option) for _, section in options for option in section]
    operands = click.Argument(["operands"], nargs=-1, type=click.UNPROCESSED)
    return RunCommand(name, params=[*taken, operands], callback=callback, help=callback.__doc__)


batch.add_command(command_of(RunCommand.sections, _run, "run"))
