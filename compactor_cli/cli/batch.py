"""``compactor batch``: datasets in shards, here, by any scheduler or on Ray."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from compactor_cli.cli.options import NOT_FOR_SHARDS, Group, Option, OptionKind, Scope, with_flags
from compactor_cli.cli.program import KEYS, Sectioned, parameter


def _own(name: str, kind: OptionKind, metavar: str, about: str, *choices: str) -> Option:
    return Option(name, Group.RUN, kind, about, (f"--{name}",), Scope.COMMAND_LINE, metavar, choices)


_TEXT = OptionKind.TEXT
_COLUMN = "The column or key that holds conversations; or several (chosen,rejected), or inside one (extra.chat)."
_SPLIT = (
    _own("split", _TEXT, "SIZE", "Part files larger than SIZE (default 128M; 0: none)."),
    _own("column", _TEXT, "NAME", _COLUMN),
)
SHARDS = (
    _own("shard", _TEXT, "I/N", "Do share I of N; every share is the same for all."),
    *_SPLIT,
    _own("executor", OptionKind.CHOICE, "", "Who does the work (default local).", "local", "ray"),
    _own("address", _TEXT, "ADDRESS", "The Ray cluster; default: one on this machine."),
)
ROUNDS = _own("rounds", OptionKind.COUNT, "N", "Rounds of jobs at most (default 4).")


def _chosen(group: Group, **helps: str) -> tuple[Option, ...]:
    left = (option for option in with_flags(group) if option.name not in NOT_FOR_SHARDS)
    return tuple(option._replace(help=helps.get(option.name, option.help)) for option in left)


OUTPUTS = _chosen(
    Group.OUTPUT, force="Make finished outputs anew.", archive_dir="Keep originals below DIR (default: none)."
)
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


class ShardCommand(Sectioned):
    """A command over shards. Its help has the filter's sections, with the options that it takes of those."""

    exit_codes = EXIT_CODES
    keys = tuple(key for key in KEYS if key.replace("-", "_") not in NOT_FOR_SHARDS)

    def __init__(
        self, callback: Callable[..., int], name: str, shards: Sequence[Option], run: Sequence[Option], examples: str
    ) -> None:
        self.examples = examples
        self.sections = (
            ("Input", _chosen(Group.INPUT)),
            ("Output", OUTPUTS),
            ("Shards", tuple(shards)),
            ("What to keep", _chosen(Group.KEEP)),
            ("A model's summary", _chosen(Group.MODEL)),
            ("The run", tuple(run)),
        )
        taken = [parameter(option) for _, section in self.sections for option in section]
        operands = click.Argument(["operands"], nargs=-1, type=click.UNPROCESSED)
        super().__init__(name, params=[*taken, operands], callback=callback, help=callback.__doc__)


class DefaultGroup(click.Group):
    """A group whose default command is ``run``: arguments that name no command are operands of that."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with ``run`` in front if they name no command."""
        if args and args[0] not in self.commands and args[0] not in self.get_help_option_names(ctx):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("batch", cls=DefaultGroup, no_args_is_help=True)
def batch() -> None:
    """Compact datasets in shards: on this machine, by a scheduler, on Ray, or by a provider's batch jobs.

    `compactor batch FILE…` is short for `compactor batch run FILE…`.
    """


def run(operands: tuple[str, ...], **given: Any) -> int:
    """Compact JSONL and Parquet, shard by shard.

    An output that is finished by the same options is not made again: start it anew after any failure, with any number
    of shares. Rows that fail are passed on unchanged, and set down next to the output in OUTPUT.failed.
    """
    from compactor_cli.cli import batch_run

    return batch_run.run(operands, given)


def submit(operands: tuple[str, ...], **given: Any) -> int:
    """Have a model's summaries made by a provider's batch jobs, at its price for them.

    Sends the first round and returns; `compactor batch collect` goes on. What was asked for, and every reply, is kept
    in the output folder.
    """
    from compactor_cli.cli import batch_run

    return batch_run.submit(operands, given)


@click.command()
@click.argument("output_dir", metavar="OUTPUT_DIR")
def status(output_dir: str) -> int:
    """Show how the batch jobs stand."""
    from compactor_cli.cli import batch_run

    return batch_run.status(output_dir)


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
    from compactor_cli.cli import batch_run
    from compactor_cli.run.provider import Missing

    missing = Missing.ASK if live else Missing.GIVE_UP if finish else Missing.SEND
    return batch_run.collect(output_dir, missing, verbose - quiet)


_SUBMIT = "compactor batch submit -r data/ -t 16k -m openai/gpt-5-mini --output-dir out"
_SUBMITTING = (ROUNDS, *(option for option in RUNNING if option.name not in ("jobs", "report")))
batch.add_command(ShardCommand(run, "run", SHARDS, RUNNING, EXAMPLES))
batch.add_command(ShardCommand(submit, "submit", _SPLIT, _SUBMITTING, _SUBMIT))
batch.add_command(status)
batch.add_command(collect)
