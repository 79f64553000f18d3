"""``compactor tool-schema``: the tool by which a model asks for a compaction."""

from __future__ import annotations

import json
from typing import Any

import click

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
