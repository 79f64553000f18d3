"""Completion: what a shell may put in place of a word, and ``compactor completion``, the scripts that ask for it.

The shell runs the program with a variable set (``_COMPACT_COMPLETE``), and `prepare` gives each parameter its values.
Nothing here is loaded in other runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

PROGRAMS = ("compact", "compactor", "compactor-cli")
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
    if name == "operands" or _PATH.search(metavar):
        return Values(tuple, "dir" if metavar in ("DIR", "FOLDER") else "file")
    if "|" in metavar and metavar.islower():
        return Values(lambda: metavar.split("|"))
    if found := _NAMES.get(f"{command} {name}") or _NAMES.get(name):
        return Values(found, "file" if name == "preset" else "")
    return None


def _presets() -> Iterable[str]:
    from compactor_cli.presets import preset_names

    return preset_names()


def _dialects() -> Iterable[str]:
    from compactor_cli.formats.registry import names

    return names()


def _written() -> Iterable[str]:
    from compactor_cli.formats.conversation import Writing
    from compactor_cli.formats.registry import all_dialects

    return (*(dialect.name for dialect in all_dialects() if isinstance(dialect, Writing)), "markdown", "text")


def _templates() -> Iterable[str]:
    from compactor_cli.render.template import template_names

    return template_names()


def _languages() -> Iterable[str]:
    from compactor_cli.digest.language import LANGUAGES

    return ("auto", *LANGUAGES)


def _clients() -> Iterable[str]:
    from compactor_cli.formats.session_places import clients

    return (*(client.names[1] for client in clients(os.environ, Path.home())), "any")


def _vocabularies() -> Iterable[str]:
    from compactor_cli.plan.models import VOCABULARIES

    return VOCABULARIES


def _kept_by() -> Iterable[str]:
    from compactor_cli.model.settings import KEPT_BY

    return KEPT_BY


def _schemas() -> Iterable[str]:
    from compactor_cli.schema import schema_names

    return schema_names()


# By the parameter's name, or by the command's and the parameter's.
_NAMES: Mapping[str, Callable[[], Iterable[str]]] = {
    "preset": _presets,
    "presets name": _presets,
    "schema name": _schemas,
    "format": _dialects,
    "format_name": _dialects,
    "to": _written,
    "template": _templates,
    "lang": _languages,
    "last": _clients,
    "sessions names": _clients,
    "tokenizer": _vocabularies,
    "keep": _kept_by,
    "budget": lambda: ("scaled", "tiered"),
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
