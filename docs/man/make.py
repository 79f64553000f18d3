"""Write the man pages from the declarations that the help is made of: python docs/man/make.py"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from compactor_cli import __version__
from compactor_cli.cli import compact as filters
from compactor_cli.cli.compact import command as compact
from compactor_cli.cli.compactor import TOOLS, Toolbox
from compactor_cli.cli.options import Scope

HERE = Path(__file__).parent
FILES = """\
compact.toml, pyproject.toml: settings of a project
$XDG_CONFIG_HOME/compact/config.toml: settings of the user
.transcripts/: the archive, beside files that were replaced
$XDG_CACHE_HOME/compact: what was seen, and stored replies of models"""


def pages() -> dict[str, str]:
    return {"compact.1": "\n".join(_filter_page()) + "\n", "compactor.1": "\n".join(_toolbox_page()) + "\n"}


def _filter_page() -> Iterator[str]:
    yield from _head("compact", "compact transcripts of LLM agents")
    yield from (".SH SYNOPSIS", ".B compact", _text(filters.SYNOPSIS), ".SH DESCRIPTION", *_paragraphs(filters.HELP))
    context = click.Context(compact, info_name="compact")
    for title, options in filters.SECTIONS:
        yield f'.SH "{_text(title.upper())}"'
        shown = {param.name: param.get_help_record(context) for param in compact.params}
        yield from _definitions(record for option in options if (record := shown[option.name]))
    yield from (".SH EXAMPLES", *_verbatim(filters.EXAMPLES), ".SH EXIT STATUS", *_verbatim(filters.EXIT_CODES))
    yield ".SH ENVIRONMENT"
    yield _text("An option --name VALUE may be given as COMPACT_NAME=VALUE, with _ for -, but for these:")
    only = [option.name.replace("_", "-") for option in filters.OPTIONS if option.scope is Scope.COMMAND_LINE]
    yield _text(", ".join(f"--{name}" for name in only) + ".")
    yield from (".SH FILES", *_verbatim(FILES), ".SH SEE ALSO", ".BR compactor (1)")


def _toolbox_page() -> Iterator[str]:
    yield from _head("compactor", "tools around compact")
    yield from (".SH SYNOPSIS", ".B compactor", _text("COMMAND [OPTIONS] [ARGS]…"), ".SH DESCRIPTION")
    yield _text("Look at transcripts, fetch originals, check and measure.")
    toolbox = Toolbox("compactor")
    above = click.Context(toolbox, info_name="compactor")
    for name in TOOLS:
        found = toolbox.get_command(above, name)
        if found is None or name == "run":  # the filter's own page has it
            continue
        yield f'.SH "{_text(f"compactor {name}".upper())}"'
        yield from _command(found, click.Context(found, info_name=name, parent=above))
    yield from (".SH SEE ALSO", ".BR compact (1)")


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield from _paragraphs(command.help or "")
    yield from _definitions(record for param in command.params if (record := param.get_help_record(context)))
    for name, below in command.commands.items() if isinstance(command, click.Group) else ():
        inner = click.Context(below, info_name=name, parent=context)
        yield f'.SS "{_text(inner.command_path)}"'
        yield from _command(below, inner)


def _head(name: str, about: str) -> Iterator[str]:
    yield f'.TH {name.upper()} 1 "" "compactor-cli {__version__}" "User Commands"'
    yield from (".SH NAME", _text(f"{name} - {about}"))


def _definitions(records: Iterable[tuple[str, str]]) -> Iterator[str]:
    for names, about in records:
        yield from (".TP", f".B {_text(names)}", _text(about))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        yield from (".PP", _text(" ".join(paragraph.split())))


def _verbatim(text: str) -> Iterator[str]:
    yield from (".nf", *map(_text, text.splitlines()), ".fi")


def _text(text: str) -> str:
    """Nothing in it is a request of roff's; a hyphen can be copied; other characters than ASCII need no locale."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(mark if mark.isascii() else f"\\[u{ord(mark):04X}]" for mark in escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    made = pages()
    if sys.argv[1:2] == ["--print"]:
        sys.stdout.write(made[sys.argv[2]])
    else:
        for file, page in made.items():
            (HERE / file).write_text(page, encoding="utf-8")
