"""``compactor undo``: a file cut back to what it was before ``compact --append``."""

from __future__ import annotations

from pathlib import Path

import click

from compactor_cli.archive.append import Appended, cut_back, find_appended
from compactor_cli.archive.layout import default_archive_dir
from compactor_cli.archive.store import Archive
from compactor_cli.cli.console import Console, counted
from compactor_cli.cli.originals import ARCHIVE_DIR, archives
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.group.turns import is_user_words
from compactor_cli.model.errors import OutputError
from compactor_cli.read.jsonl import OnInvalid, read_records
from compactor_cli.read.streams import open_stream


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.UNPROCESSED)
@click.option("-f", "--force", is_flag=True, help="Also where the conversation went on; that is archived first.")
@ARCHIVE_DIR
def undo(files: tuple[str, ...], force: bool, archive_dir: str | None) -> int:
    """Take back the last compact --append: cut files back to the bytes they had before.

    The archive says what these were; the file must still begin with them, by their hash.
    """
    console = Console("compactor")
    for name in files:
        folders = [default_archive_dir(name, in_place=True), *archives(archive_dir)]
        found = find_appended(name, folders)
        later = _turns_behind(name, found)
        if later and not force:
            advice = "with -f they are archived and cut off too"
            raise OutputError(f"{counted(later, 'turn')} came after the compaction", place=name, next_step=advice)
        if later:
            Archive(folders[0]).add(Path(name).read_bytes())
        cut_back(name, found)
        console.done(f"{name}: cut back to {found.original.bytes:,} bytes")
    return 0


def _turns_behind(name: str, found: Appended) -> int:
    """How often the user spoke behind the original's end."""
    turns = at = 0
    with open_stream(name) as stream:
        records = read_records(stream.reader, name, OnInvalid.KEEP)
        for transcript in open_transcripts(records, prefix=records.prefix):
            at += len(transcript.frame.prefix)
            for record, message in zip(transcript.records, transcript.messages, strict=True):
                turns += at >= found.original.bytes and is_user_words(message)
                at += len(record.raw) + len(record.ending)
            at += len(transcript.frame.suffix)
    return turns
