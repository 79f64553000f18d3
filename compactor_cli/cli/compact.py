"""``compact``: the filter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from compactor_cli.cli.options import BY_NAME, COMMON, OPTIONS, SECTIONS, Option, OptionKind
from compactor_cli.cli.program import USAGE, invoke, version_option

HELP = """Compact transcripts of LLM agents: keep what the agent needs next, archive the rest.

Reads session files and datasets (JSONL, also gzip or zstd) of many agents, known by their content. The
middle becomes a summary, the rest is kept byte for byte; standard output holds the result and nothing else.

Without -t or -w, what is larger than 20,000 tokens is compacted to about that: its first 4,000 and newest 16,000
tokens stay. On a terminal, without -o, a short view of the result is shown and nothing is written."""

SHORT_HELP = """\
Compact transcripts of LLM agents: keep what the agent needs next, archive the rest.

Without -t or -w, what is larger than 20,000 tokens is compacted to about that.
On a terminal, without -o, a short view of the result is shown and nothing is written.

"""

# Titles with their options.
Sections = tuple[tuple[str, tuple[Option, ...]], ...]

SYNOPSIS = "[OPTIONS] [FILE|DIR]…"

EXAMPLES = """\
compact < session.jsonl > small.jsonl
compact -t 32k session.jsonl -o small.jsonl
compact -r sessions/ --output-dir compacted/ -j 2
compact -i -r ~/.agent/sessions --min-age 1h --report last.json"""

KEYS = ", ".join(option.key for option in OPTIONS if not option.flags)

EXIT_CODES = """\
0    done, or nothing to do
1    --check: something would change
2    usage or configuration; nothing was touched
3    an input failed; the others are complete
4    --strict: a summary fell back to the digest
75   try later: a lock is held, or a file is being written to
129, 130, 143, 141   died of the signal; the reader closed the pipe"""


class Sectioned(click.Command):
    """A command whose help is in sections; options in none of them stand under “Other”."""

    sections: Sections = SECTIONS
    examples = EXAMPLES
    exit_codes = EXIT_CODES

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The usage line."""
        formatter.write_usage(ctx.command_path, SYNOPSIS)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options by section, examples and exit codes."""
        records = {param.name: param.get_help_record(ctx) for param in self.get_params(ctx)}
        for title, options in self.sections:
            with formatter.section(title):
                formatter.write_dl([found for option in options if (found := records.pop(option.name))])
        with formatter.section("Other"):
            records.pop("operands", None)
            formatter.write_dl([found for found in records.values() if found])
        with formatter.section("Keys of --set and configuration files; man compact explains each"):
            formatter.write_text(KEYS)
        for title, text in (("Examples", self.examples), ("Exit codes", self.exit_codes)):
            with formatter.section(title):
                for line in text.splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class FilterCommand(Sectioned):
    """The filter: ``-h`` shows the options that most runs need, ``--help`` all."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options of the table, and both helps."""
        short = click.Option(
            ["-h", "short_help"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_common,
            help="Show the options that most runs need, and exit.",
        )
        return [*super().get_params(ctx), short]


def _show_common(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    formatter = ctx.make_formatter()
    formatter.write_usage(ctx.command_path, SYNOPSIS)
    formatter.write(f"\n{SHORT_HELP}".rstrip("\n") + "\n")
    records = {param.name: param.get_help_record(ctx) for param in ctx.command.get_params(ctx)}
    for title, names in COMMON:
        with formatter.section(title):
            formatter.write_dl([found for name in names if (found := records[name])])
    formatter.write("\nAll options, exit codes: compact --help. Other tools: compactor --help.\n")
    click.echo(formatter.getvalue(), nl=False)
    ctx.exit()


def make_command(run: Callable[..., int]) -> click.Command:
    """The filter. ``run`` gets the values that were given, by option name, and ``operands``; it gives the exit code."""
    return FilterCommand(
        "compact",
        params=[
            *(parameter(option) for _, options in SECTIONS for option in options),
            click.Argument(["operands"], nargs=-1, type=click.UNPROCESSED),
            version_option(),
        ],
        callback=run,
        help=HELP,
        context_settings={"help_option_names": ["--help"], "max_content_width": 100},
    )


def parameter(option: Option) -> click.Option:
    """The click option. Values stay as they were written: one reader serves all layers."""
    more: dict[str, Any] = {"help": option.help, "default": None}
    if option.kind is OptionKind.FLAG:
        more["is_flag"] = True
    elif option.kind is OptionKind.TALLY:
        more["count"] = True
    elif option.kind is not OptionKind.PAIR:
        more["type"] = click.UNPROCESSED
        more["multiple"] = option.kind is OptionKind.LIST
        more["metavar"] = "|".join(option.choices) if option.choices else option.metavar
    return click.Option([*option.flags, option.name], **more)


def parameters(operands: str, *names: str, **helps: str) -> list[click.Parameter]:
    """For another command: ``operands``, required unless in brackets, and the filter's options of these names.

    ``helps`` are of its own; a key has a flag there.
    """
    is_required = not operands.startswith("[")
    given = click.Argument(["operands"], nargs=-1, required=is_required, metavar=operands, type=click.UNPROCESSED)
    found = (BY_NAME[name]._replace(help=helps.get(name, BY_NAME[name].help)) for name in names)
    flagged = (option if option.flags else option._replace(flags=(f"--{option.key}",)) for option in found)
    return [given, *map(parameter, flagged)]


SHORT_USAGE = """\
usage: compact [OPTIONS] [FILE|DIR]…
  compact < session.jsonl > small.jsonl
  compact -t 32k session.jsonl -o small.jsonl
  compact session.jsonl        what is over 20,000 tokens, compacted to that: shown, not written
compact --help shows everything.
"""


def main(arguments: Sequence[str]) -> int:
    """Run the filter; the exit code."""
    return invoke(command, "compact", arguments)


def _run(operands: tuple[str, ...], **given_options: Any) -> int:
    given = {name: value for name, value in given_options.items() if value is not None and value != ()}
    is_typed = sys.stdin is not None and sys.stdin.isatty()
    if is_typed and not operands and not {"files_from", "last"} & given.keys():
        sys.stderr.write(SHORT_USAGE)
        return USAGE
    from compactor_cli.cli.run_command import run

    return run(operands, given)


command = make_command(_run)
