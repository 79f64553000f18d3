"""``compactor archive``: the originals of all archives listed, counted, and the old ones taken out."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from compactor_cli.archive.restore import is_archive, listed, stored_size
from compactor_cli.archive.verify import Candidate, candidates, remove
from compactor_cli.cli.console import Console, counted, visible
from compactor_cli.cli.restore_command import ARCHIVE_DIR, archives
from compactor_cli.cli.text_table import clipped, table
from compactor_cli.presets import units as values

_SHOWN_HASH_CHARS = 12
_MIN_PATH_CHARS = 20


@click.group()
def archive() -> None:
    """Look at the originals that were archived, in all archives of yours, or take old ones out."""


@archive.command("list")
@click.option("--limit", metavar="N", default=20, type=click.IntRange(min=0), help="The newest N; 0: all (default 20).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@ARCHIVE_DIR
def list_originals(limit: int, as_json: bool, archive_dir: str | None) -> int:
    """List what was archived, the newest first, with the file it came from."""
    items = sorted(listed(archives(archive_dir)), key=lambda item: item.entry.compacted_at, reverse=True)
    shown = items[:limit] if limit else items
    if as_json:
        for item in shown:
            entry = item.entry
            value = {"sha256": entry.sha256, "bytes": entry.bytes, "records": entry.records, "format": entry.dialect}
            where = {"source": entry.source, "compacted_at": entry.compacted_at, "archived": str(item.path)}
            click.echo(json.dumps(value | where))
        return 0
    head = ("compacted", "bytes", "records", "hash", "file")
    rows = [
        (
            item.entry.compacted_at[:16].replace("T", " "),
            item.entry.bytes,
            item.entry.records,
            item.entry.sha256[:_SHOWN_HASH_CHARS],
            item.entry.source,
        )
        for item in shown
    ]
    sys.stdout.write(_fitted(head, rows))
    more = f"; {len(items) - len(shown):,} more, --limit 0 shows all" if len(shown) < len(items) else ""
    click.echo(f"{counted(len(items), 'original')}{more}. One comes back with: compactor restore FILE -o OUT")
    return 0


@archive.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@ARCHIVE_DIR
def stats(as_json: bool, archive_dir: str | None) -> int:
    """Count the originals of each archive, and what they take on the disk."""
    rows: list[tuple[object, ...]] = []
    for folder in filter(is_archive, archives(archive_dir)):
        entries = [item.entry for item in listed([folder])]
        sizes = {entry.sha256: entry.bytes for entry in entries}
        days = sorted(entry.compacted_at[:10] for entry in entries)
        ends = (days[0], days[-1]) if days else ("", "")
        rows.append((len(sizes), sum(sizes.values()), stored_size(folder), *ends, str(folder)))
    head = ("originals", "bytes", "stored", "first", "last", "archive")
    if as_json:
        for row in rows:
            click.echo(json.dumps(dict(zip(head, row, strict=True))))
        return 0
    if len(rows) > 1:
        totals = [sum(int(str(row[column])) for row in rows) for column in range(3)]
        rows.append((*totals, "", "", "all"))
    sys.stdout.write(_fitted(head, rows))
    return 0


@archive.command()
@click.option("--older-than", metavar="AGE", required=True, help="Last compacted longer ago than that: 90d, 12h.")
@click.option("-n", "--dry-run", is_flag=True, help="Take nothing out; show what would go.")
@click.option("-f", "--force", is_flag=True, help="Also originals whose compacted file is still in use.")
@ARCHIVE_DIR
def prune(older_than: str, dry_run: bool, force: bool, archive_dir: str | None) -> int:
    """Take old originals out of the archives.

    One whose compacted file is still where it was, and still names it, stays unless -f is given: without it that file
    could not be undone or looked up. Of outputs written elsewhere (-o, a pipe) nobody knows whether they are in use.
    """
    console = Console("compactor")
    seconds = values.seconds(older_than, "--older-than")
    before = datetime.fromtimestamp(time.time() - seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    found = candidates(archives(archive_dir), before)
    going = [item for item in found if force or not item.used_by]
    for item in found:
        if item.used_by and not force:
            console.note(f"{item.item.entry.sha256[:_SHOWN_HASH_CHARS]}: stays, {item.used_by} is still in use")
    if not dry_run:
        remove(item.item for item in going)
    _print_pruned(going, kept=len(found) - len(going), dry_run=dry_run)
    return 0


def _print_pruned(going: Sequence[Candidate], *, kept: int, dry_run: bool) -> None:
    if dry_run:
        for item in going:
            entry = item.item.entry
            line = f"{entry.sha256[:_SHOWN_HASH_CHARS]}  {entry.compacted_at[:10]}  {entry.source}"
            click.echo(visible(line))
    size = sum(item.stored_bytes for item in going)
    verb = "would go" if dry_run else "taken out"
    stays = f"; {kept:,} old ones stay, their compacted files are still in use" if kept else ""
    click.echo(f"{counted(len(going), 'original')} {verb}, {size:,} bytes{stays}")


def _fitted(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The table, its last column (a path) clipped to the terminal."""
    home = str(Path.home())
    rows = [
        (*row[:-1], f"~{str(row[-1])[len(home) :]}" if str(row[-1]).startswith(home + os.sep) else str(row[-1]))
        for row in rows
    ]
    width = shutil.get_terminal_size((100, 24)).columns
    widest = max((len(line) for line in table(head, rows).splitlines()), default=0)
    longest = max((len(str(row[-1])) for row in rows), default=0)
    most = max(longest - max(0, widest - width), _MIN_PATH_CHARS)
    return table(head, [(*row[:-1], clipped(str(row[-1]), most)) for row in rows])
