"""``compactor undo``: the original back where ``compact -i`` or ``--append`` wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from compactor_cli.archive.atomic import followed
from compactor_cli.archive.folder import default_archive_dir
from compactor_cli.archive.recover import added_records, clear, find_compacted, put_back
from compactor_cli.cli.console import Console, counted
from compactor_cli.cli.restore_command import ARCHIVE_DIR, archives
from compactor_cli.model.errors import CompactError, OutputError


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.UNPROCESSED)
@click.option("-f", "--force", is_flag=True, help="Also where something was written since; the archive has it then.")
@ARCHIVE_DIR
def undo(files: tuple[str, ...], force: bool, archive_dir: str | None) -> int:
    """Take back the last compact -i or --append: files get the bytes they had before.

    A file must be, by its hash, exactly what the compaction wrote. It is archived as a whole first.
    """
    console = Console("compactor")
    code = 0
    for name in files:
        folders = [default_archive_dir(name, in_place=True), *archives(archive_dir)]
        try:
            clear((followed(name).parent,), dict.fromkeys(folders), console.warn)
            _undo(name, force, folders, console)
        except CompactError as error:
            console.error(str(error))
            code = 3 if code == 3 else error.exit_code
    console.finish()
    return code


def _undo(name: str, force: bool, folders: Sequence[Path], console: Console) -> None:
    found = find_compacted(name, folders)
    if found.added_bytes and not force:
        count, first = added_records(name, found)
        advice = "with -f these go, too; the archive keeps them"
        what = f"{counted(count, 'record')} came after the compaction (the first: {first})"
        raise OutputError(what, place=name, next_step=advice)
    undone = put_back(name, found, folders[0])
    console.done(f"{name}: the original is back, {undone.size_bytes:,} bytes; what stood here is {undone.archived}")
