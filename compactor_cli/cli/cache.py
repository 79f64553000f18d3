"""``compactor cache``: the stored replies of models."""

from __future__ import annotations

import click

from compactor_cli.cli.program import FAILED


@click.group(no_args_is_help=True)
def cache() -> None:
    """Look at, or make room in, the stored replies of models."""


@cache.command()
def stats() -> int:
    """How many replies there are, their size, and what they cost."""
    from datetime import UTC, datetime

    from compactor_cli.llm.reply_cache import ReplyCache, replies_file

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
    from compactor_cli.llm.reply_cache import ReplyCache, replies_file
    from compactor_cli.presets import units as values

    store = ReplyCache(replies_file())
    gone = store.prune(older_than_seconds=values.seconds(older_than, "--older-than"), max_bytes=max_bytes)
    click.echo(f"{gone:,} replies removed")
    return _trouble(store)


def _trouble(store: object) -> int:
    trouble = getattr(store, "trouble", "")
    if trouble:
        click.echo(f"compactor: the reply cache: {trouble}", err=True)
    return FAILED if trouble else 0
