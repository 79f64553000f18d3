"""The two programs: ``compact``, the filter, and ``compactor``, the toolbox, which imports only the tool it runs.

Click commands are run by `invoke` and its rules for errors and exit codes, as click's own ``main`` turns Ctrl-C and a
broken pipe into exit code 1.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from compactor_cli.cli.options import BY_NAME, COMMON, OPTIONS, SECTIONS, SET, Option, OptionKind

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from compactor_cli.read.streams import ReadLimits


USAGE = 2
# Options of `compactor batch` that people try with the filter.
_OF_BATCH = ("--column", "--shard", "--split")


def invoke(command: click.Command, program: str, arguments: Sequence[str]) -> int:
    """Run the command; returns the exit code. Errors are printed on standard error."""
    if instruction := os.environ.get(variable_of(program)):
        # A shell requests completions (``_COMPACT_COMPLETE=bash_complete compact``).
        from click.shell_completion import shell_complete

        return shell_complete(prepare(command), {}, program, variable_of(program), instruction)
    try:
        with command.make_context(program, list(arguments)) as context:
            code = command.invoke(context) or 0
            _flush()
            return code
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USAGE
    except click.ClickException as error:
        name = error.option_name if isinstance(error, click.NoSuchOption) else ""
        text, at = error.format_message(), getattr(error, "ctx", None)
        text = f"{text[:1].lower()}{text[1:].rstrip('.')}: see {at.command_path if at else program} --help"
        if program == "compact" and name in _OF_BATCH:
            text = f"{name} is an option for datasets in shards, also of Parquet: see compactor batch --help"
        elif (key := name.removeprefix("--")) in KEYS:
            text = f"{name} is a key: write --set {key}=VALUE"
        _say(program, text)
        return USAGE
    except Exception as error:
        code = _failed(program, error, arguments)
        with suppress(Exception):
            _flush()  # otherwise the interpreter's own flush fails at exit
        return code


def _flush() -> None:
    """Flush standard output; if that fails, it is redirected to nowhere, so that it does not fail again at exit."""
    try:
        sys.stdout.flush()
    except OSError as error:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 -- no Path at start-up
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        from compactor_cli.archive.atomic import output_error

        raise output_error(error, "standard output") from error


def _failed(program: str, error: Exception, arguments: Sequence[str]) -> int:
    """Print an error or a defect; returns the exit code. A broken pipe is raised."""
    from compactor_cli.model.errors import CompactError

    if isinstance(error, CompactError):
        _say(program, str(error))
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        raise error
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        check = "owner and mode of it and of its folder" if isinstance(error, PermissionError) else "the file system"
        text = f"{where}{(error.strerror or str(error)).lower()}: the sources are as they were; check {check}"
        if not where and error.errno in (errno.EBADF, errno.ENOSPC):  # no file is named, so it is standard output
            from compactor_cli.archive.atomic import output_error

            text = str(output_error(error, "standard output"))
        _say(program, text)
        return CompactError.exit_code
    is_shown = "-vv" in arguments or program != "compact"  # most tools do not have the option -vv
    if is_shown:
        import traceback

        traceback.print_exc()
    where = "" if is_shown else " -vv shows where,"
    _say(program, f"{type(error).__name__}: {error}: this is a defect;{where} please report it")
    return CompactError.exit_code


def _say(program: str, text: str) -> None:
    from compactor_cli.cli.console import Console

    Console(program).error(text)


# Optional packages, with what they are for.
_PARTS = (
    ("litellm", "models (-m)"),
    ("tiktoken", "token counts"),
    ("toktok-rs", "the same counts, faster"),
    ("pyarrow", "Parquet"),
    ("ray", "compactor batch --executor ray"),
    ("model2vec", "embeddings on this machine"),
)


def version_option() -> click.Option:
    """The option ``-V``, ``--version``."""
    return click.Option(
        ["-V", "--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Show the version, the parts that are installed, and how tokens are counted.",
    )


def _print_version(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if not is_wanted or context.resilient_parsing:
        return
    # Imported here, as they are slow and every run imports this module.
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    from compactor_cli import __version__

    lines = [f"{context.info_name or 'compact'} {__version__}", f"Python {sys.version.split()[0]}"]
    for name, purpose in _PARTS:
        try:
            lines.append(f"{name} {version_of(name)}: {purpose}")
        except PackageNotFoundError:
            lines.append(f"{name} is not installed: {purpose}")
    from compactor_cli.plan.models import VOCABULARIES, vocabulary_folder
    from compactor_cli.plan.tokens import BYTES_PER_TOKEN

    if names := ", ".join(name for name in VOCABULARIES if vocabulary_folder(name)):
        lines.append(f"tokens: exact for models with the vocabularies {names}; by the same ones, estimates for others")
    else:
        lines.append(f"tokens: estimated (UTF-8 bytes / {BYTES_PER_TOKEN}), for no vocabulary is on this machine")
    click.echo("\n".join(lines))
    context.exit()


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

SYNOPSIS = "[OPTIONS] [FILE|DIR]…"

EXAMPLES = """\
compact < session.jsonl > small.jsonl
compact -t 32k session.jsonl -o small.jsonl
compact -r sessions/ --output-dir compacted/ -j 2
compact -i -r ~/.agent/sessions --min-age 1h --report last.json"""

KEYS = tuple(option.key for option in OPTIONS if not option.flags)

EXIT_CODES = """\
0    done, or nothing to do
1    --check: something would change
2    usage or configuration; nothing was touched
3    an input failed; the others are complete
4    --strict: a summary fell back to the digest
75   try later: a lock is held, or a file is being written to
129, 130, 143, 141   died of the signal; the reader closed the pipe"""


class Sectioned(click.Command):
    """A command whose help has sections; options that are in none of them are listed under “Other”."""

    sections: tuple[tuple[str, tuple[Option, ...]], ...] = SECTIONS  # titles, each with its options
    examples = EXAMPLES
    exit_codes = EXIT_CODES
    keys = KEYS

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage line."""
        formatter.write_usage(ctx.command_path, SYNOPSIS)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section, then keys, examples and exit codes."""
        records = {param.name: param.get_help_record(ctx) for param in self.get_params(ctx)}
        for title, options in self.sections:
            with formatter.section(title):
                formatter.write_dl([found for option in options if (found := records.pop(option.name))])
        with formatter.section("Other"):
            records.pop("operands", None)
            formatter.write_dl([found for found in records.values() if found])
        # The formatter would break names at their hyphens.
        keys = wrap(", ".join(self.keys), formatter.width - 2, break_on_hyphens=False)
        for title, lines in (
            ("Keys of --set and configuration files; man compact explains each", keys),
            ("Examples", self.examples.splitlines()),
            ("Exit codes", self.exit_codes.splitlines()),
        ):
            with formatter.section(title):
                for line in lines:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class FilterCommand(Sectioned):
    """The filter: ``-h`` shows the options that most runs need, ``--help`` all."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, and the option ``-h`` for the short help."""
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


def parameter(option: Option) -> click.Option:
    """The click option for an option. Values stay text, since all layers share one parser."""
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
    """The parameters of another command: ``operands``, and the named options of the filter.

    Operands are required unless they are in brackets. ``helps`` replace the help texts of options.
    """
    is_required = not operands.startswith("[")
    given = click.Argument(["operands"], nargs=-1, required=is_required, metavar=operands, type=click.UNPROCESSED)
    found = (BY_NAME[name]._replace(help=helps.get(name, BY_NAME[name].help)) for name in names)
    # An option that is only a key in the filter gets a flag.
    flagged = (option if option.flags else option._replace(flags=(f"--{option.key}",)) for option in found)
    return [given, *map(parameter, flagged)]


# Options that several tools have.
AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
READ_AS = click.option("--format", "dialect", default="", metavar="NAME", help="Read as this format.")

SHORT_USAGE = """\
usage: compact [OPTIONS] [FILE|DIR]…
  compact < session.jsonl > small.jsonl
  compact -t 32k session.jsonl -o small.jsonl
  compact session.jsonl        what is over 20,000 tokens, compacted to that: shown, not written
compact --help shows everything.
"""


def _run(operands: tuple[str, ...], **given: Any) -> int:
    if sys.stdin.isatty() and not operands and given["files_from"] is None and given["last"] is None:
        sys.stderr.write(SHORT_USAGE)
        return USAGE
    from compactor_cli.cli.run_command import run

    return run(operands, given)


command = FilterCommand(
    "compact",
    params=[
        *(parameter(option) for _, options in SECTIONS for option in options),
        click.Argument(["operands"], nargs=-1, type=click.UNPROCESSED),
        version_option(),
    ],
    callback=_run,
    help=HELP,
    context_settings={"help_option_names": ["--help"], "max_content_width": 100},
)


def run_filter(arguments: Sequence[str]) -> int:
    """Run ``compact``; returns the exit code."""
    return invoke(command, "compact", arguments)


# The tools by name: the module and attribute of the command, and its line in the help.
TOOLS = {
    "batch": ("batch:batch", "Compact datasets in shards, on one machine or many."),
    "sessions": ("session_commands:sessions", "List the sessions of agents on this machine."),
    "show": ("session_commands:show", "Look at what compacting makes of a transcript, as a page too."),
    "digest": ("toolbox:digest", "Print the summary of a session alone."),
    "stats": ("session_commands:stats", "Count records, tokens, turns and calls."),
    "expand": ("archive_commands:expand", "Print archived records in full, by the ids that summaries name."),
    "search": ("archive_commands:search", "Find archived records by what they say."),
    "dropped": ("archive_commands:dropped", "List what a compacted file no longer says, by need."),
    "install": ("toolbox:install", "Set compact up in an agent's client, or take it out."),
    "mcp": ("toolbox:mcp", "Serve the archive to an agent, as tools it can call."),
    "hook": ("toolbox:hook", "Answer the hook of a client that compacts."),
    "restore": ("archive_commands:restore", "Fetch the original of a file from the archive."),
    "archive": ("archive_commands:archive", "List archived originals, count them, take old ones out."),
    "undo": ("archive_commands:undo", "Take back the last compact -i or --append."),
    "view": ("session_commands:view", "Print what a session's client would send."),
    "verify": ("archive_commands:verify", "Check an archive or transcripts."),
    "eval": ("toolbox:evaluation", "Measure what compaction keeps, against baselines."),
    "cache": ("toolbox:cache", "Look at, or prune, the stored replies of models."),
    "presets": ("toolbox:presets", "List the presets, or print one."),
    "tool-schema": ("toolbox:tool_schema", "Print the tool by which a model asks for a compaction."),
    "formats": ("toolbox:formats", "List the formats that are read and written."),
    "schema": ("toolbox:schema", "List the JSON Schemas, or print one."),
    "completion": ("program:completion", "Print what makes a shell complete commands and values."),
}


class Toolbox(click.Group):
    """A group whose commands are imported only when they are run, and not for the list in its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the tools, in the order of the help."""
        return list(TOOLS)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the tool; what it reads is limited by the environment and the user's configuration."""
        from compactor_cli.read.streams import reads_within

        def configured() -> ReadLimits:  # called when something is opened, so that few tools load the configuration
            from compactor_cli.cli.config import RunOptions, configure

            return RunOptions(**configure({}).options).limits

        with reads_within(configured):
            return super().invoke(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of the tool of that name; None if there is none."""
        if cmd_name not in TOOLS:
            return None
        module, attribute = TOOLS[cmd_name][0].split(":")
        found: click.Command = getattr(import_module(f"compactor_cli.cli.{module}"), attribute)
        return prepare(found) if ctx.resilient_parsing else found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names of tools that begin so; no tool is imported."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=line) for name, (_, line) in TOOLS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command to run; the error for an unknown name suggests the nearest one."""
        if args[0] not in TOOLS and not args[0].startswith("-"):
            from compactor_cli.model.settings import nearest

            advice = nearest(args[0], TOOLS) or f"one of {', '.join(TOOLS)}"
            raise click.UsageError(f"no command is called {args[0]} ({advice})", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names and their lines."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in TOOLS.items()])


def run_toolbox(arguments: Sequence[str]) -> int:
    """Run ``compactor``; returns the exit code."""
    toolbox = Toolbox(
        "compactor",
        params=[version_option()],
        help="Tools around compact: look at transcripts, fetch originals, check and measure.",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        no_args_is_help=True,
    )
    return invoke(toolbox, "compactor", arguments)


_PATH = re.compile(r"FILE|DIR|FOLDER|PATH|ARCHIVE")


class Values(click.ParamType[Any]):
    """A type that completes a parameter by names or paths; other words are accepted as well."""

    name = "values"

    def __init__(self, names: Callable[[], Iterable[str]], paths: str = "") -> None:
        """``paths`` is "file" or "dir" if the shell completes paths, or else empty."""
        self._names = names
        self._paths = paths

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin with the word, and paths."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name) for name in self._names() if name.startswith(incomplete)]
        # The path is first, as click's script for bash drops what comes before it.
        return [CompletionItem(incomplete, type=self._paths), *found] if self._paths else found


def prepare(command: click.Command) -> click.Command:
    """Set the types by which the parameters of a command, and of those below it, are completed; returns the command."""
    for param in command.params:
        if isinstance(param.type, click.Choice) or (isinstance(param, click.Option) and param.is_flag):
            continue
        name, metavar = param.name or "", str(param.metavar or "")
        if name == SET.name:
            param.type = Values(_assignments)
        elif name == "operands" or _PATH.search(metavar):
            param.type = Values(tuple, "dir" if metavar in ("DIR", "FOLDER") else "file")
        elif "|" in metavar and metavar.islower():
            param.type = Values(partial(metavar.split, "|"))
        elif found := _NAMES.get(f"{command.name} {name}") or _NAMES.get(name):
            param.type = Values(partial(_names, found), "file" if name == "preset" else "")
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        prepare(below)
    return command


def _names(place: str) -> Iterable[str]:
    """The names in ``module:attribute`` of the package, which is a collection or a function that returns one."""
    module, attribute = place.split(":")
    found = getattr(import_module(f"compactor_cli.{module}"), attribute)
    names: Iterable[str] = found() if callable(found) else found
    return names


def _assignments() -> Iterator[str]:
    """The completions of --set: every key, with its values if they have names."""
    for option in OPTIONS:
        known = option.choices or (_names(option.values) if option.values else ())
        yield from (f"{option.key}={value}" for value in known or ("",))


def written_dialects() -> tuple[str, ...]:
    """The names that ``--to`` takes."""
    from compactor_cli.formats.conversation import Writing
    from compactor_cli.formats.registry import all_dialects

    return (*(dialect.name for dialect in all_dialects() if isinstance(dialect, Writing)), "markdown", "text")


def languages() -> tuple[str, ...]:
    """The values that the key lang takes without a model."""
    from compactor_cli.digest.language import LANGUAGES

    return ("auto", *LANGUAGES)


def client_names() -> tuple[str, ...]:
    """The names that ``--last`` takes."""
    from compactor_cli.formats.clients import clients

    return (*(client.names[1] for client in clients(os.environ, Path("~"))), "any")


# The place of the names that a parameter takes (see `_names`), by its name or by the command's name and its own.
_NAMES: Mapping[str, str] = {
    **{option.name: option.values for option in OPTIONS if option.values},
    "presets name": "presets:preset_names",
    "schema name": "run.documents:schema_names",
    "format_name": "formats.registry:names",
    "sessions names": "cli.program:client_names",
}


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> int:
    """Print what makes a shell complete commands, options and their values.

    bash, in ~/.bashrc: eval "$(compactor completion bash)". zsh, in ~/.zshrc: eval "$(compactor completion zsh)".
    fish: compactor completion fish > ~/.config/fish/completions/compactor.fish
    """
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    kind = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}[shell]
    for program in ("compact", "compactor"):
        made = kind(click.Command(program), {}, program, variable_of(program))
        click.echo(made.source_template % made.source_vars())
    return 0


def variable_of(program: str) -> str:
    """The environment variable by which a shell requests completions from this program."""
    return f"_{program.upper()}_COMPLETE"
