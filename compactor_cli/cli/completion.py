"""What a shell completes: commands, options and their values; ``compactor completion``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from compactor_cli.cli.options import OPTIONS, SET

PROGRAMS = ("compact", "compactor")
_PATH = re.compile(r"FILE|DIR|FOLDER|PATH|ARCHIVE")


class Values(click.ParamType[Any]):
    """Names or paths that may stand for a parameter; every other word is taken as well."""

    name = "values"

    def __init__(self, names: Callable[[], Iterable[str]], paths: str = "") -> None:
        """``paths``: "file" or "dir" where the shell adds paths of its own."""
        self._names = names
        self._paths = paths

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin with the word, and paths."""
        found = [CompletionItem(name) for name in self._names() if name.startswith(incomplete)]
        # click's script for bash forgets what came before a path.
        return [CompletionItem(incomplete, type=self._paths), *found] if self._paths else found


def prepare(command: click.Command) -> click.Command:
    """The same command, its parameters with the values to complete by; commands below it as well."""
    for param in command.params:
        if isinstance(param.type, click.Choice) or (isinstance(param, click.Option) and param.is_flag):
            continue
        if values := _values(command.name or "", param):
            param.type = values
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        prepare(below)
    return command


def _values(command: str, param: click.Parameter) -> Values | None:
    name = param.name or ""
    metavar = str(param.metavar or "")
    if name == SET.name:
        return Values(_assignments)
    if name == "operands" or _PATH.search(metavar):
        return Values(tuple, "dir" if metavar in ("DIR", "FOLDER") else "file")
    if "|" in metavar and metavar.islower():
        return Values(lambda: metavar.split("|"))
    if found := _NAMES.get(f"{command} {name}") or _NAMES.get(name):
        return Values(partial(_names, found), "file" if name == "preset" else "")
    return None


def _names(place: str) -> Iterable[str]:
    """The names at ``module:attribute`` of the package, or those that a function there gives."""
    module, attribute = place.split(":")
    found = getattr(import_module(f"compactor_cli.{module}"), attribute)
    names: Iterable[str] = found() if callable(found) else found
    return names


def _assignments() -> Iterator[str]:
    """What --set takes, as far as it can be known: every key, with its values where they have names."""
    for option in OPTIONS:
        known = option.choices or (_names(option.values) if option.values else ())
        yield from (f"{option.key}={value}" for value in known or ("",))


def written_dialects() -> tuple[str, ...]:
    """What ``--to`` takes."""
    from compactor_cli.formats.conversation import Writing
    from compactor_cli.formats.registry import all_dialects

    return (*(dialect.name for dialect in all_dialects() if isinstance(dialect, Writing)), "markdown", "text")


def languages() -> tuple[str, ...]:
    """What the key lang takes, without a model."""
    from compactor_cli.digest.language import LANGUAGES

    return ("auto", *LANGUAGES)


def client_names() -> tuple[str, ...]:
    """What ``--last`` takes."""
    from compactor_cli.formats.session_places import clients

    return (*(client.names[1] for client in clients(os.environ, Path.home())), "any")


# Where the names are that a parameter takes: by its name, or by the command's and its own.
_NAMES: Mapping[str, str] = {
    **{option.name: option.values for option in OPTIONS if option.values},
    "presets name": "presets:preset_names",
    "schema name": "run.documents:schema_names",
    "format_name": "formats.registry:names",
    "sessions names": "cli.completion:client_names",
}


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> int:
    """Print what makes a shell complete commands, options and their values.

    bash, in ~/.bashrc: eval "$(compactor completion bash)". zsh, in ~/.zshrc: eval "$(compactor completion zsh)".
    fish: compactor completion fish > ~/.config/fish/completions/compactor.fish
    """
    kind = get_completion_class(shell)
    if kind is None:  # click has all three
        raise click.UsageError(f"no completion for {shell}")
    nothing: dict[str, Any] = {}
    for program in PROGRAMS:
        made = kind(click.Command(program), nothing, program, variable_of(program))
        click.echo(made.source_template % made.source_vars())
    return 0


def variable_of(program: str) -> str:
    """The variable by which a shell asks this program for completions."""
    return f"_{program.replace('-', '_').upper()}_COMPLETE"
