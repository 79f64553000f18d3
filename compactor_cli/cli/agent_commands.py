"""``compactor digest``, ``mcp``, ``hook`` and ``install``: what agents call, and what sets it up."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from compactor_cli.cli.console import Console, print_quoted
from compactor_cli.cli.program import READ_AS
from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import read_tokens, settings_from
from compactor_cli.presets import DEFAULT, load_preset
from compactor_cli.read.streams import STDIN


@click.command()
@click.argument("file", default=STDIN, metavar="[FILE]", type=click.UNPROCESSED)
@click.option("--size", metavar="TOKENS", help="The most that it may be; default: by what it covers.")
@click.option("--chars", metavar="N", type=click.IntRange(min=1), help="The most characters that it may have.")
@click.option("--but-newest", metavar="SIZE", default="0", help="Leave the newest out: 8k, 2turns, 6messages.")
@click.option("--focus", metavar="TEXT", default="", help="Keep what TEXT names first.")
@click.option("--archive-dir", metavar="DIR", default="", help="Store the session there, for search and expand.")
@click.option("--source", metavar="NAME", default="", help="With --archive-dir: where the session is from.")
@READ_AS
@click.option("--preset", default=DEFAULT, show_default=True, metavar="NAME", help="Take its template and sections.")
@click.option("--json", "as_json", is_flag=True, help="An object: the summary, what stays after it, sizes.")
def digest(file: str, as_json: bool, **given: Any) -> int:
    """Print the summary of a session alone: FILE or standard input, of any format.

    Nothing is changed, and nothing is stored without --archive-dir. With --json: summary, first_kept (index and id of
    the first record after it; null if none stays), kept (indices, from 0), tokens_before, transcript (its SHA-256).
    """
    from compactor_cli.agents.session_digest import SizeLimit, digest_session, read_session
    from compactor_cli.archive.store import Archive

    limit = SizeLimit(tokens=read_tokens(given["size"], "--size") if given["size"] else 0, chars=given["chars"] or 0)
    tables = {"keep_tail": given["but_newest"], "focus": given["focus"]}
    settings = settings_from(tables, load_preset(given["preset"]).settings, "options")
    if given["source"] and not given["archive_dir"]:
        raise UsageError("--source is of what is stored", next_step="add --archive-dir")
    # The line break at the end counts, too.
    limit = limit if as_json else SizeLimit(tokens=_less(limit.tokens), chars=_less(limit.chars))
    found = digest_session(
        read_session(file, given["dialect"]),
        settings,
        limit=limit,
        archive=Archive(given["archive_dir"]) if given["archive_dir"] else None,
        source=given["source"] or (str(Path(file).absolute()) if file != STDIN else ""),
    )
    text = json.dumps(found.as_json(), ensure_ascii=False) if as_json else found.summary
    print_quoted(f"{text}\n" if text else "")
    return 0


@click.command()
@click.option("--archive-dir", metavar="DIR", default="", help="Look there; default: all that runs of yours wrote to.")
def mcp(archive_dir: str) -> int:
    """Serve the archive to an agent: the tools search, expand and dropped of the Model Context Protocol.

    For a client to start, which speaks with it on standard input and output. It reads this user's archives, and
    changes nothing but their indexes.
    """
    from compactor_cli.agents.mcp import serve_standard_streams

    serve_standard_streams(archive_dir)
    return 0


class _NeverBlocks(click.Command):
    """A command that prints its usage errors and ends with code 0: exit code 2 would stop a client's compaction."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, usage errors aside."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            click.echo(f"compactor hook: {error.format_message()}", err=True)
            ctx.exit(0)


@click.command(cls=_NeverBlocks)
@click.argument("event")
@click.option("--client", required=True, metavar="NAME", help="Whose hook this is: claude-code, codex, qwen-code.")
def hook(event: str, client: str) -> int:
    """Answer a client's hook: EVENT is PreCompact, SessionStart or UserPromptSubmit; its JSON is on standard input.

    Before a compaction the session is archived and the client's summary is steered; after it the digest is added to
    the context, once. It never blocks: whatever fails, the exit code is 0, nothing is printed, and a line of
    ~/.local/state/compact/hooks.log says why. compactor install writes the settings that call it.
    """
    from compactor_cli.agents.hook import run_hook

    answer = run_hook(event, client, lambda: sys.stdin.buffer.read())
    # A file of its own: what it cannot write, the interpreter must not try again at its end.
    with suppress(OSError), open(1, "wb", closefd=False) as out:
        out.write(f"{answer}\n".encode("utf-8", "replace") if answer else b"")
    return 0


@click.command()
@click.argument("client", metavar="CLIENT")
@click.option("--project", is_flag=True, help="In the project of this folder, not for you everywhere.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--remove", is_flag=True, help="Take it out again; files become what they were.")
def install(client: str, project: bool, dry_run: bool, remove: bool) -> int:
    """Set compact up in CLIENT: claude-code, codex, gemini-cli, kimi, opencode, pi or qwen-code.

    Entries are put into the client's own settings, in which everything else stays as it is, comments and order too;
    the difference is shown first. Then the client's compactions keep a digest, and its model can look up what they
    left out.
    """
    from difflib import unified_diff

    from compactor_cli.agents.install import InstallPlace, load_client
    from compactor_cli.agents.install import install as added
    from compactor_cli.agents.install import remove as removed

    found = load_client(client)
    place = InstallPlace(home=Path.home(), project=Path.cwd() if project else None)
    changes = tuple((removed if remove else added)(found, place))
    for change in changes:
        before, after = (text.splitlines() if text else [] for text in (change.before, change.after))
        name = str(change.path)
        for line in unified_diff(before, after, name, name if change.after is not None else "/dev/null", lineterm=""):
            click.echo(line)
    for change in () if dry_run else changes:
        change.write()
    console = Console("compactor")
    if not changes:
        console.warn(f"{found.title}: nothing to do, it is {'not installed' if remove else 'installed already'}")
    elif dry_run:
        console.warn("nothing was written")
    elif not remove:
        console.warn(f"{found.title}: installed. {found.by_hand}")
    return 0


def _less(bound: int) -> int:
    """One less, where there is a bound."""
    return max(bound - 1, 1) if bound else 0
