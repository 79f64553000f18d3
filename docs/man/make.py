"""Write what is made from the options' declarations: the man pages, and the schema of configuration files.

python docs/man/make.py
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from compactor_cli import __version__
from compactor_cli.cli import program
from compactor_cli.cli.config import BOTH, TABLES
from compactor_cli.cli.options import OPTIONS, Option, OptionKind, Scope

ROOT = Path(__file__).parents[2]
# What a value of each kind is in TOML; numbers may be written with a unit.
_WITH_UNIT = {"type": ["number", "string"], "minimum": 0}
_WHOLE = {"type": "integer", "minimum": 0}
_OF_KIND: dict[OptionKind, dict[str, Any]] = {
    OptionKind.FLAG: {"type": "boolean"},
    OptionKind.PAIR: {"type": "boolean"},
    OptionKind.TALLY: _WHOLE,
    OptionKind.TEXT: {"type": "string"},
    OptionKind.LIST: {"type": "array", "items": {"type": "string"}},
    OptionKind.COUNT: _WHOLE,
    OptionKind.CHOICE: {"type": "string"},
}
FILES = """\
compact.toml, pyproject.toml: settings of a project
$XDG_CONFIG_HOME/compact/config.toml: settings of the user
.transcripts/: the archive, next to files that were replaced
$XDG_CACHE_HOME/compact: what was seen, vocabularies as tables, stored replies of models"""


def files() -> dict[str, str]:
    return {
        "docs/man/compact.1": "\n".join(_filter_page()) + "\n",
        "docs/man/compactor.1": "\n".join(_toolbox_page()) + "\n",
        "schemas/config.schema.json": json.dumps(_config_schema(), indent=2, ensure_ascii=False) + "\n",
    }


def _config_schema() -> dict[str, Any]:
    tables = {name: {"$ref": f"urn:compact:schema:settings#/properties/{name}"} for name in sorted((*TABLES, *BOTH))}
    keys: dict[str, Any] = {item.key: _value(item) for item in OPTIONS if item.scope is not Scope.COMMAND_LINE}
    for name in tables.keys() & keys.keys():
        about = keys[name].pop("description")
        keys[name] = {"description": about, "anyOf": [keys[name], tables.pop(name)]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:compact:schema:config",
        "title": "Configuration",
        "description": "compact.toml, [tool.compact] in pyproject.toml, config.toml; and the keys of --set KEY=VALUE.",
        "type": "object",
        "properties": keys | tables,
        "additionalProperties": False,
    }


def _value(item: Option) -> dict[str, Any]:
    limits = {"enum": list(item.choices)} if item.choices else {}
    default = {} if item.default in (None, "", ()) else {"default": item.default}
    is_project = item.scope is Scope.ANYWHERE
    about = item.help if is_project else f"{item.help} Not in a project's file."
    return {"description": about, **_OF_KIND.get(item.kind, _WITH_UNIT), **limits, **default}


def _filter_page() -> Iterator[str]:
    yield from _head("compact", "compact transcripts of LLM agents")
    yield from (".SH SYNOPSIS", ".B compact", _text(program.SYNOPSIS), ".SH DESCRIPTION", *_paragraphs(program.HELP))
    context = click.Context(program.command, info_name="compact")
    for title, options in program.SECTIONS:
        yield f'.SH "{_text(title.upper())}"'
        shown = {param.name: param.get_help_record(context) for param in program.command.params}
        yield from _definitions(record for option in options if (record := shown[option.name]))
    yield ".SH KEYS"
    yield _text("For --set KEY=VALUE, configuration files, and as COMPACT_KEY in the environment:")
    keys = (item for item in OPTIONS if not item.flags)
    yield from _definitions((f"{item.key}={_placeholder(item)}", item.help) for item in keys)
    yield from (".SH EXAMPLES", *_verbatim(program.EXAMPLES), ".SH EXIT STATUS", *_verbatim(program.EXIT_CODES))
    yield ".SH ENVIRONMENT"
    yield _text("An option --name VALUE may be given as COMPACT_NAME=VALUE, with _ for -, except for these:")
    only = [item.key for item in OPTIONS if item.scope is Scope.COMMAND_LINE]
    yield _text(", ".join(f"--{name}" for name in only) + ".")
    yield _text("A COMPACT_NAME that is none of these is warned of.")
    yield from (".SH FILES", *_verbatim(FILES), ".SH SEE ALSO", ".BR compactor (1)")


def _placeholder(item: Option) -> str:
    is_switch = item.kind in (OptionKind.FLAG, OptionKind.PAIR)
    return "true|false" if is_switch else "|".join(item.choices) or item.metavar


def _toolbox_page() -> Iterator[str]:
    yield from _head("compactor", "tools around compact")
    yield from (".SH SYNOPSIS", ".B compactor", _text("COMMAND [OPTIONS] [ARGS]…"), ".SH DESCRIPTION")
    yield _text("Look at transcripts, fetch originals, check and measure.")
    toolbox = program.Toolbox("compactor")
    above = click.Context(toolbox, info_name="compactor")
    for name in program.TOOLS:
        found = toolbox.get_command(above, name)
        if found is None:
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
    made = files()
    if sys.argv[1:2] == ["--print"]:
        sys.stdout.write(made[sys.argv[2]])
    else:
        for file, page in made.items():
            (ROOT / file).write_text(page, encoding="utf-8")
