"""Program: a click command run by our rules for errors and exit codes.

Click's own ``main`` turns Ctrl-C and a broken pipe into exit code 1; this does not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

import click

USAGE = 2
# What people look for at the filter.
_OF_BATCH = ("--column", "--shard", "--split")


def invoke(command: click.Command, program: str, arguments: Sequence[str]) -> int:
    """Run the command; the exit code. Errors are printed on standard error."""
    _complete(command, program)
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
        if isinstance(error, click.NoSuchOption) and (now := _as_now(program, error, arguments)):
            return invoke(command, program, now)
        _say(program, _worded(error, program))
        return USAGE
    except Exception as error:
        return _failed(program, error, arguments)


def _flush() -> None:
    """Put out what is left for standard output; where that fails, nothing is left to fail again at exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        from compactor_cli.archive.atomic import output_error

        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 -- no Path at start-up
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        raise output_error(error, "standard output") from error


def _failed(program: str, error: Exception, arguments: Sequence[str]) -> int:
    """Say an error of this package, or a defect; the exit code. A broken pipe and a full disk are distinguished."""
    from compactor_cli.model.errors import CompactError

    if isinstance(error, CompactError):
        _say(program, str(error))
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        raise error
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        _say(program, f"{where}{(error.strerror or str(error)).lower()}: the sources are as they were")
        return CompactError.exit_code
    if "-vv" in arguments:
        import traceback

        traceback.print_exc()
    _say(program, f"{type(error).__name__}: {error}: this is a defect; -vv shows where, please report it")
    return CompactError.exit_code


def _worded(error: click.ClickException, program: str) -> str:
    if program == "compact" and isinstance(error, click.NoSuchOption) and error.option_name in _OF_BATCH:
        return f"{error.option_name} is an option for datasets in shards, also of Parquet: see compactor batch --help"
    if program == "compactor" and isinstance(error, click.NoSuchOption) and error.option_name == "--engine":
        return "--engine is gone: write --executor local|ray"
    text = error.format_message()
    return f"{text[:1].lower()}{text[1:].rstrip('.')}: see {program} --help"


def _as_now(program: str, error: click.NoSuchOption, arguments: Sequence[str]) -> list[str] | None:
    """The arguments with an option of earlier versions as it is now, with a warning; None: it is unknown."""
    from compactor_cli.cli.options import as_now

    is_filter = program == "compact" or " batch" in (error.ctx.command_path if error.ctx else "")
    if not is_filter or (found := as_now(arguments, error.option_name)) is None:
        return None
    if not {"-q", "--quiet", "-qq"} & set(arguments):
        _say(program, f"warning: {error.option_name} is written {found[1]} now")
    return found[0]


def _say(program: str, text: str) -> None:
    from compactor_cli.cli.console import Console

    Console(program).error(text)


def _complete(command: click.Command, program: str) -> None:
    """Answer a shell that asks for completions (``_COMPACT_COMPLETE=bash_complete compact``)."""
    if not any(name.endswith("_COMPLETE") for name in os.environ):
        return
    from compactor_cli.cli.about import prepare, variable_of

    if instruction := os.environ.get(variable_of(program)):
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(prepare(command), {}, program, variable_of(program), instruction))


# Packages that something depends on, with what for.
_PARTS = (
    ("litellm", "models (-m)"),
    ("tiktoken", "token counts"),
    ("toktok-rs", "the same counts, faster"),
    ("pyarrow", "Parquet"),
    ("ray", "compactor batch --executor ray"),
    ("model2vec", "embeddings on this machine"),
)


def version_option() -> click.Option:
    """``-V``, ``--version``."""
    return click.Option(
        ["-V", "--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Show the version, the parts that are installed, and how tokens are counted.",
    )


def _print_version(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        click.echo("\n".join(_lines(context.info_name or "compact")))
        context.exit()


def _lines(program: str) -> Iterator[str]:
    # Slow to import, and every run imports this module.
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    from compactor_cli import __version__

    yield f"{program} {__version__}"
    yield f"Python {sys.version.split()[0]}"
    for name, purpose in _PARTS:
        try:
            yield f"{name} {version_of(name)}: {purpose}"
        except PackageNotFoundError:
            yield f"{name} is not installed: {purpose}"
    yield _counting()


def _counting() -> str:
    from compactor_cli.plan.models import VOCABULARIES, vocabulary_folder
    from compactor_cli.plan.tokens import BYTES_PER_TOKEN

    names = [name for name in VOCABULARIES if vocabulary_folder(name)]
    if not names:
        return f"tokens: estimated (UTF-8 bytes / {BYTES_PER_TOKEN}), for no vocabulary is on this machine"
    return f"tokens: exact for models with the vocabularies {', '.join(names)}; by the same ones, estimates for others"
