"""``compactor presets``, ``formats``, ``schema``: what there is."""

from __future__ import annotations

import json

import click

from compactor_cli.cli.text_table import table

AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


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

    dialects = all_dialects()
    plugged = [
        name for name in plugin_names(PluginGroup.DIALECTS) if name not in {dialect.name for dialect in dialects}
    ]
    if as_json:
        for dialect in dialects:
            about = {"name": dialect.name, "about": dialect.title, "holds": names_of(dialect.holds)}
            evidence = known(dialect.name)._asdict()
            click.echo(json.dumps({**about, "to": isinstance(dialect, Writing), **evidence}, ensure_ascii=False))
        for name in plugged:
            evidence = known(name, is_plugin=True)._asdict()
            click.echo(json.dumps({"name": name, "about": "(a plug-in)", **evidence}, ensure_ascii=False))
        return 0
    rows: list[tuple[str, ...]] = [
        (
            dialect.name,
            dialect.title,
            known(dialect.name).evidence.value,
            "×" if isinstance(dialect, Writing) else "",
            *("×" if flag in dialect.holds else "" for flag in NAMES),
        )
        for dialect in dialects
    ]
    rows += [
        (name, "(a plug-in)", known(name, is_plugin=True).evidence.value, *[""] * (len(NAMES) + 1)) for name in plugged
    ]
    click.echo(table(("format", "what it is", "by", "to", *SHORT_NAMES), rows), nl=False)
    click.echo("\n" + ", ".join(f"{short}: {name}" for short, name in zip(SHORT_NAMES, NAMES.values(), strict=True)))
    return 0


@click.command()
@click.argument("name", required=False)
@AS_JSON
def schema(name: str | None, as_json: bool) -> int:
    """List the JSON Schemas, or print one."""
    from compactor_cli.schema import schema_names, schema_text

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
