"""``compactor``: the toolbox. A tool is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from compactor_cli.cli.program import invoke, version_option

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from compactor_cli.read.streams import ReadLimits

# Name: where it is, and its line in the help.
TOOLS = {
    "batch": ("batch:batch", "Compact datasets in shards, on one machine or many."),
    "sessions": ("session_commands:sessions", "List the sessions of agents on this machine."),
    "show": (
        "session_commands:show",
        "Look at what compacting makes of a transcript, as a page too.",
    ),
    "digest": ("agent_commands:digest", "Print the summary of a session alone."),
    "stats": ("session_commands:stats", "Count records, tokens, turns and exchanges."),
    "expand": ("recall:expand", "Print archived records in full, by the ids that summaries name."),
    "search": ("recall:search", "Find archived records by what they say."),
    "dropped": ("recall:dropped", "List what a compacted file no longer says, by need."),
    "install": ("agent_commands:install", "Set compact up in an agent's client, or take it out."),
    "mcp": ("agent_commands:mcp", "Serve the archive to an agent, as tools it can call."),
    "hook": ("agent_commands:hook", "Answer the hook of a client that compacts."),
    "restore": ("archive_commands:restore", "Fetch the original of a file from the archive."),
    "archive": ("archive_commands:archive", "List archived originals, count them, take old ones out."),
    "undo": ("archive_commands:undo", "Take back the last compact -i or --append."),
    "view": ("session_commands:view", "Print what a session's client would send."),
    "verify": ("archive_commands:verify", "Check an archive or transcripts."),
    "eval": ("evaluation:evaluation", "Measure what compaction keeps, against baselines."),
    "cache": ("about:cache", "Look at, or prune, the stored replies of models."),
    "presets": ("about:presets", "List the presets, or print one."),
    "tool-schema": ("about:tool_schema", "Print the tool by which a model asks for a compaction."),
    "formats": ("about:formats", "List the formats that are read and written."),
    "schema": ("about:schema", "List the JSON Schemas, or print one."),
    "completion": ("about:completion", "Print what makes a shell complete commands and values."),
}


class Toolbox(click.Group):
    """A group whose commands are imported on use; the list in its help imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        return list(TOOLS)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the tool; what it reads is held to the limits of the environment and the user's configuration."""
        from compactor_cli.read.streams import reads_within

        with reads_within(_configured_limits):
            return super().invoke(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The tool of that name, or None."""
        if cmd_name not in TOOLS:
            return None
        module, attribute = TOOLS[cmd_name][0].split(":")
        found: click.Command = getattr(import_module(f"compactor_cli.cli.{module}"), attribute)
        if ctx.resilient_parsing:
            from compactor_cli.cli.about import prepare

            return prepare(found)
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names that begin so; none of the tools is imported."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=line) for name, (_, line) in TOOLS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The tool; an unknown one is answered with the nearest."""
        if args[0] not in TOOLS and not args[0].startswith("-"):
            from compactor_cli.presets.values import nearest

            if args[0] == "run":
                raise click.UsageError("compactor run is gone: write compact", ctx)
            advice = nearest(args[0], TOOLS) or f"one of {', '.join(TOOLS)}"
            raise click.UsageError(f"no command is called {args[0]} ({advice})", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The names and their lines."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in TOOLS.items()])


def _configured_limits() -> ReadLimits:
    import os
    from pathlib import Path

    from compactor_cli.cli.config import RunOptions, configure

    return RunOptions(**configure({}, os.environ, Path.cwd()).options).limits


def main(arguments: Sequence[str]) -> int:
    """Run the toolbox; the exit code."""
    return invoke(_toolbox(), "compactor", arguments)


def _toolbox() -> Toolbox:
    return Toolbox(
        "compactor",
        params=[version_option()],
        help="Tools around compact: look at transcripts, fetch originals, check and measure.",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        no_args_is_help=True,
    )
