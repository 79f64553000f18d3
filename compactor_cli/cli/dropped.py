"""``compactor dropped``: what a compacted file no longer says of its original."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from compactor_cli.agents.session_digest import left_out
from compactor_cli.archive.folder import default_archive_dir
from compactor_cli.archive.restore import each_once, original_of, transcripts_in
from compactor_cli.cli.console import counted, visible
from compactor_cli.cli.restore_command import ARCHIVE_DIR, archives
from compactor_cli.cli.text_table import table
from compactor_cli.digest.loss import Dropped
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import InputError
from compactor_cli.model.marker import find_marker
from compactor_cli.model.transcript import Transcript
from compactor_cli.read.jsonl import OnInvalid, records_in
from compactor_cli.read.streams import open_stream

MOST_SHOWN = 25
_SHOWN_CHARS = 96
_HASH_CHARS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """Something dropped, with the id under which ``compactor expand`` shows its record; empty: no record has it."""

    id: str
    thing: Dropped


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help=f"At most this many (default {MOST_SHOWN}).")
@click.option("--format", "dialect", default="", metavar="NAME", help="Read as this dialect.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line; all of them without --limit.")
@ARCHIVE_DIR
def dropped(file: str, limit: int | None, dialect: str, as_json: bool, archive_dir: str | None) -> int:
    """List what a compacted FILE no longer says of its archived original, the likeliest to be needed first.

    Requests of the user, open items, errors, decisions, files, commands and names that a model reading FILE does not
    see. The need is an estimate, 0 to 1: how likely a name in it is used again, more for what stands until it is
    taken back. compactor expand ID prints the record.
    """
    found = sorted(_left_out(file, dialect, archive_dir), key=lambda left: -left.thing.score)
    shown = found[: limit or (len(found) if as_json else MOST_SHOWN)]
    text = "".join(map(_json, shown)) if as_json else _table(shown) + _total(file, len(found), len(shown))
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    return 0


def _total(file: str, total: int, shown: int) -> str:
    more = f", {shown:,} shown (more: --limit)" if shown < total else ""
    return f"{visible(file)}: {counted(total, 'thing') if total else 'nothing'} left out{more}\n"


def _left_out(file: str, dialect: str, archive_dir: str | None) -> Iterator[_Left]:
    """What each conversation of the file lacks. Raises InputError where no archive has its original."""
    folders = (*each_once([default_archive_dir(file, in_place=True)]), *archives(archive_dir))
    found = original_of(file, folders)
    originals = [item for item in transcripts_in(found.path, found.on_invalid) if item.records]
    if found.length >= 0:
        originals = [item for item in originals if item.sha256 == found.sha256]
    for original, now in _pairs(file, originals, _read(file, dialect)):
        yield from (_Left(id=name, thing=thing) for name, thing in left_out(original, now))


def _read(file: str, dialect: str) -> list[Transcript]:
    if not Path(file).exists():
        raise InputError("there is no such file", place=file, next_step="name a compacted file")
    with open_stream(file) as stream:
        records = records_in(stream, OnInvalid.KEEP)
        transcripts = open_transcripts(records, dialect=dialect, prefix=records.prefix)
        return [item for item in transcripts if item.records]


def _pairs(
    file: str, originals: Sequence[Transcript], compacted: Sequence[Transcript]
) -> Iterator[tuple[Transcript, Transcript]]:
    """Each conversation with its original: by the hash in its newest summary, else by its place in the file."""
    by_hash = {item.sha256[:_HASH_CHARS]: item for item in originals}
    is_aligned = len(originals) == len(compacted)
    is_found = False
    for i, now in enumerate(compacted):
        markers = filter(None, (find_marker(message.text) for message in reversed(now.messages)))
        marker = next(markers, None)
        original = by_hash.get(marker.transcript) if marker else None
        original = original or (originals[i] if is_aligned else None)
        if original:
            is_found = True
            yield original, now
    if not is_found:
        advice = "it was changed too much since; compactor restore gives the original"
        raise InputError("none of its conversations is one of its archived original", place=file, next_step=advice)


def _json(left: _Left) -> str:
    thing = left.thing
    value = {"id": left.id, "kind": thing.kind, "score": thing.score, "text": thing.text}
    return json.dumps(value, ensure_ascii=False) + "\n"


def _table(found: Sequence[_Left]) -> str:
    rows = [(f"{left.thing.score:.0%}", left.thing.kind, _clipped(left.thing.text), left.id or None) for left in found]
    return table(("need", "kind", "what", "record"), rows) if rows else ""


def _clipped(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"
