"""What there is: ``compactor presets``, ``formats``, ``schema``, ``tool-schema`` and ``cache``."""

from __future__ import annotations

import json
from typing import Any

import click

from compactor_cli.cli.console import table
from compactor_cli.cli.program import AS_JSON
from compactor_cli.model.errors import CompactError


@click.command()
@click.argument("name", required=False)
@AS_JSON
def presets(name: str | None, as_json: bool) -> int:
    """List the presets, or print one as TOML.

    What is printed is a file to start one of your own from: compact --preset FILE.toml
    """
    from compactor_cli.presets import load_preset, preset_names

    if name:
        click.echo(load_preset(name).toml, nl=False)
        return 0
    rows = [(known, load_preset(known).about) for known in preset_names()]
    _show(("preset", "what it does"), rows, as_json)
    return 0


@click.command()
@AS_JSON
def formats(as_json: bool) -> int:
    """List the formats that are read and written, by the names that --format takes, and what each can hold.

    Those with a mark under "to" can also be written from nothing: compact --to NAME. "by" says what has read our
    output: the client whose sessions these are, the library whose format it is, or nothing but this program. Those
    of plug-ins come last.
    """
    from compactor_cli.formats.base import NAMES, SHORT_NAMES, names_of
    from compactor_cli.formats.conversation import Writing
    from compactor_cli.formats.registry import all_dialects, known
    from compactor_cli.model.plugins import PluginGroup, plugin_names

    objects: list[dict[str, Any]] = []
    rows: list[tuple[str, ...]] = []
    for dialect in all_dialects():
        evidence, is_written = known(dialect.name), isinstance(dialect, Writing)
        about = {"name": dialect.name, "about": dialect.title, "holds": names_of(dialect.holds), "to": is_written}
        objects.append({**about, **evidence._asdict()})
        marks = (is_written, *(flag in dialect.holds for flag in NAMES))
        rows.append((dialect.name, dialect.title, evidence.evidence.value, *("×" if mark else "" for mark in marks)))
    for name in sorted(set(plugin_names(PluginGroup.DIALECTS)) - {row[0] for row in rows}):
        evidence = known(name, is_plugin=True)
        objects.append({"name": name, "about": "(a plug-in)", **evidence._asdict()})
        rows.append((name, "(a plug-in)", evidence.evidence.value, *[""] * (len(NAMES) + 1)))
    if as_json:
        for value in objects:
            click.echo(json.dumps(value, ensure_ascii=False))
        return 0
    click.echo(table(("format", "what it is", "by", "to", *SHORT_NAMES), rows), nl=False)
    click.echo("\n" + ", ".join(f"{short}: {name}" for short, name in zip(SHORT_NAMES, NAMES.values(), strict=True)))
    return 0


@click.command()
@click.argument("name", required=False)
@AS_JSON
def schema(name: str | None, as_json: bool) -> int:
    """List the JSON Schemas, or print one."""
    from compactor_cli.run.documents import schema_names, schema_text

    if name:
        click.echo(schema_text(name), nl=False)
        return 0
    rows = [(known, json.loads(schema_text(known)).get("description", "")) for known in schema_names()]
    _show(("schema", "what it describes"), rows, as_json)
    return 0


def _show(head: tuple[str, str], rows: list[tuple[str, str]], as_json: bool) -> None:
    if as_json:
        for name, about in rows:
            click.echo(json.dumps({"name": name, "about": about}, ensure_ascii=False))
    else:
        click.echo(table(head, rows), nl=False)


_ABOUT = (
    "Replace the conversation so far by a summary, to make room. Call it when much of what was said is no longer "
    "needed word for word, and never while another tool call waits for its result. The full text is archived."
)
_FOCUS = "What the summary must keep in detail: a file, a question, a decision. Leave it out if all matters alike."


@click.command("tool-schema")
@click.option(
    "--form", type=click.Choice(("openai", "anthropic")), default="openai", show_default=True, help="Whose API."
)
@click.option("--preset", default="l06", show_default=True, metavar="NAME", help="The preset that listens to it.")
def tool_schema(form: str, preset: str) -> int:
    """Print the definition of the tool by which a model asks for a compaction, for an agent to register.

    A transcript whose newest turn calls it is compacted there, at any size, its focus kept first:
    compact --preset l06
    """
    from compactor_cli.model.errors import UsageError
    from compactor_cli.presets import load_preset

    name = load_preset(preset).settings.trigger.tool
    if not name:
        raise UsageError(f"the preset {preset} listens to no tool", next_step="set trigger.tool in it, or take l06")
    click.echo(json.dumps(definition(name, form), indent=2))
    return 0


def definition(name: str, form: str) -> dict[str, Any]:
    """The tool in the form of OpenAI's chat completions or of Anthropic's messages."""
    parameters = {
        "type": "object",
        "properties": {"focus": {"type": "string", "description": _FOCUS}},
        "required": [],
        "additionalProperties": False,
    }
    if form == "anthropic":
        return {"name": name, "description": _ABOUT, "input_schema": parameters}
    return {"type": "function", "function": {"name": name, "description": _ABOUT, "parameters": parameters}}


@click.group(no_args_is_help=True)
def cache() -> None:
    """Look at, or make room in, the stored replies of models."""


@cache.command()
def stats() -> int:
    """How many replies there are, their size, and what they cost."""
    from datetime import UTC, datetime

    from compactor_cli.llm.model_client import ReplyCache, replies_file

    store = ReplyCache(replies_file())
    found = store.stats()
    click.echo(f"file     {replies_file()}")
    click.echo(f"replies  {found.replies:,}")
    click.echo(f"bytes    {found.bytes:,}")
    click.echo(f"cost     ${found.cost_usd:.4f}")
    if found.replies:
        oldest, newest = (datetime.fromtimestamp(at, UTC).date().isoformat() for at in (found.oldest, found.newest))
        click.echo(f"used     {oldest} to {newest}")
    return _trouble(store)


@cache.command()
@click.option("--older-than", metavar="AGE", default="30d", show_default=True, help="Replies not used for so long.")
@click.option("--max-bytes", metavar="N", type=int, default=None, help="Then the longest unused, down to N bytes.")
def prune(older_than: str, max_bytes: int | None) -> int:
    """Remove replies that were not used for long."""
    from compactor_cli.llm.model_client import ReplyCache, replies_file
    from compactor_cli.model.settings import read_seconds

    store = ReplyCache(replies_file())
    gone = store.prune(older_than_seconds=read_seconds(older_than, "--older-than"), max_bytes=max_bytes)
    click.echo(f"{gone:,} replies removed")
    return _trouble(store)


def _trouble(store: object) -> int:
    trouble = getattr(store, "trouble", "")
    if trouble:
        click.echo(f"compactor: the reply cache: {trouble}", err=True)
    return CompactError.exit_code if trouble else 0
