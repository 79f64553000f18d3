"""``compactor expand`` and ``search``: records of the archive, by name and by what they say."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from compactor_cli.agents.session_digest import left_out
from compactor_cli.archive.folder import default_archive_dir
from compactor_cli.archive.index import IndexStart
from compactor_cli.archive.restore import ExpandedRecord, each_once, load_transcript, original_of, transcripts_in
from compactor_cli.archive.restore import expand as expanded
from compactor_cli.archive.search import Filter, Hit, marks
from compactor_cli.archive.search import search as searched
from compactor_cli.cli.archive_commands import ARCHIVE_DIR, archives
from compactor_cli.cli.console import (
    Color,
    Console,
    Progress,
    counted,
    is_terminal,
    painted,
    table,
    visible,
    wants_color,
)
from compactor_cli.cli.session_commands import message_fields
from compactor_cli.digest.loss import Dropped
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.llm.quoting import call_text
from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.model.marker import Marker, find_marker
from compactor_cli.model.transcript import Message, Role, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.presets import values
from compactor_cli.read.jsonl import OnInvalid, records_in
from compactor_cli.read.streams import open_stream

NOTHING_FOUND = 1
ROLES = tuple(role.value for role in Role if role is not Role.META)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="ID…", type=click.UNPROCESSED)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with all that the record holds.")
@click.option("--raw", is_flag=True, help="The records themselves, byte for byte, a line each.")
@ARCHIVE_DIR
def expand(names: tuple[str, ...], as_json: bool, raw: bool, archive_dir: str | None) -> int:
    """Print archived records in full.

    An ID is HASH:RECORD as compactor search prints it, HASH:4-9 for several, HASH for all; the first 8 digits of the
    hash are enough. A summary's marker line means all that was summarised, and after a marker line or a HASH the
    references of that summary can be given as they stand there: compactor expand 54453b50 '[12]' '[4-9]'
    """
    found = expanded(archives(archive_dir), names)
    for original in found:
        if raw:
            sys.stdout.buffer.write(original.record.raw + b"\n")
        else:
            when = {"time": original.message.timestamp} if original.message.timestamp else {}
            name = {"id": original.id, "transcript": original.sha256, "record": original.number}
            text = _json(name | when | message_fields(original.message)) if as_json else _shown(original)
            sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    return 0


@click.command()
@click.argument("query", nargs=-1, metavar="QUERY…", type=click.UNPROCESSED)
@click.option("--session", metavar="TEXT", default="", help="Start of a hash, or part of the path it was read from.")
@click.option("--role", metavar="|".join(ROLES), default="", help="Who speaks.")
@click.option("--tool", metavar="NAME", default="", help="Calls of this tool, and its results.")
@click.option("--since", metavar="WHEN", help="Not older: 2026-11-21, 2026-11-21T10:00, or 7d (ago).")
@click.option("--until", metavar="WHEN", help="Older than that.")
@click.option("--limit", metavar="N", default=10, type=click.IntRange(min=1), help="At most this many (default 10).")
@click.option("--rebuild", is_flag=True, help="Make the index anew, from the archive alone.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@ARCHIVE_DIR
def search(query: tuple[str, ...], archive_dir: str | None, as_json: bool, rebuild: bool, **given: Any) -> int:
    """Find archived records by what they say, the best first; exit code 1 if there is none.

    All words must occur: word, begin*, '"a phrase"', one OR other, and after -- also -without. Chinese and Japanese
    are found as they stand. Each archive has an index (INDEX.sqlite3 in it), which each search brings up to date; it
    can be deleted.
    """
    console = Console("compactor")
    if given["role"] not in ("", *ROLES):
        raise UsageError(f"{given['role']} is not a role", next_step=f"one of {', '.join(ROLES)}", place="--role")
    only = Filter(
        session=given["session"],
        role=given["role"],
        tool=given["tool"],
        since=_moment(given["since"], "--since"),
        until=_moment(given["until"], "--until"),
    )
    start = IndexStart.NOTHING if rebuild else IndexStart.KNOWN
    named = [folder for folder in archives(archive_dir) if archive_dir or folder.is_dir()]
    if not named:
        console.warn("there is no archive yet")
    with Progress(label="indexing", total=0, unit="file", shown=console.watched) as bar:
        words = " ".join(query)
        found = searched(
            named, words, only=only, limit=given["limit"], start=start, progress=lambda done, total: bar.advance(1)
        )
    for trouble in found.troubles:
        console.warn(trouble)
    if found.any_word:
        console.warn("no record holds all of these words; these hold some")
    color = wants_color("auto", sys.stdout, os.environ)
    for hit in found.hits:
        shown = {"archive": str(hit.archive), "record": hit.record + 1, "time": _iso(hit.time)}
        as_object = {"id": hit.id, **dataclasses.asdict(hit), **shown}
        text = _json(as_object) if as_json else _line(hit, words, color)
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    return 0 if found.hits else NOTHING_FOUND


def _moment(text: str | None, where: str) -> int | None:
    """Unix seconds of a date, a time (without a zone: UTC), or so long ago. Raises UsageError."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return int(time.time() - values.seconds(text, where))
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def _shown(original: ExpandedRecord) -> str:
    """The record for people: who and when, then all it holds; bookkeeping as raw JSON."""
    message = original.message
    head = "  ".join(filter(None, (original.id, message.role.value, message.timestamp)))
    body = "\n".join(_parts(message)) or original.record.raw.decode("utf-8", "replace")
    if is_terminal(sys.stdout):
        # The text of a transcript must not steer a terminal.
        body = "\n".join(map(visible, body.split("\n")))
    return f"{painted(head, Color.CYAN, wants_color('auto', sys.stdout, os.environ))}\n{body.rstrip()}\n\n"


def _parts(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, Thinking):
            yield f"(thinking)\n{part.text}"
        elif isinstance(part, ToolCall):
            yield call_text(part)
        elif isinstance(part, ToolResult):
            yield f"({'error' if part.is_error else 'result'}{f' of {part.name}' if part.name else ''})\n{part.text}"
        else:
            yield f"({part.kind}, {part.size_bytes:,} bytes)"


def _line(hit: Hit, query: str, color: bool) -> str:
    who = " ".join((hit.role, *hit.tools))
    copies = f"  and {counted(hit.copies, 'record')} like it" if hit.copies else ""
    rest = visible(f"{who}  {_iso(hit.time)}  {hit.source}{copies}")
    return f"{painted(hit.id, Color.CYAN, color)}  {rest}\n    {_marked(visible(hit.snippet), query, color)}\n"


def _marked(line: str, query: str, color: bool) -> str:
    """The line with the words of the query coloured."""
    pieces: list[str] = []
    at = 0
    for start, stop in marks(line, query) if color else ():
        pieces += (line[at:start], painted(line[start:stop], Color.YELLOW, color))
        at = stop
    return "".join((*pieces, line[at:]))


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


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
    """List what a compacted FILE no longer says of its archived originals, the likeliest to be needed first.

    Requests of the user, open items, errors, decisions, files, commands and names that a model reading FILE does not
    see. The need is an estimate, 0 to 1: how likely a name in it is used again, more for what stands until it is
    taken back. compactor expand ID prints the record.

    Of a file that was compacted again and again, everything since its first original counts, as far back as the
    archives know; the last line says where one is missing.
    """
    folders = (*each_once([default_archive_dir(file, in_place=True)]), *archives(archive_dir))
    unknown: set[str] = set()
    found = sorted(_left_out(file, dialect, folders, unknown), key=lambda left: -left.thing.score)
    shown = found[: limit or (len(found) if as_json else MOST_SHOWN)]
    things = [(left.thing, left.id) for left in shown]
    values = ({"id": name, "kind": item.kind, "score": item.score, "text": item.text} for item, name in things)
    text = "".join(map(_json, values))
    if not as_json:
        rows = [(f"{thing.score:.0%}", thing.kind, _clipped(thing.text), name or None) for thing, name in things]
        more = f", {len(shown):,} shown (more: --limit)" if len(shown) < len(found) else ""
        missing = f"; what was left out before {', '.join(sorted(unknown))} is in no archive" if unknown else ""
        count = counted(len(found), "thing") if found else "nothing"
        text = table(("need", "kind", "what", "record"), rows) if rows else ""
        text += f"{visible(file)}: {count} left out{more}{missing}\n"
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    return 0


def _left_out(file: str, dialect: str, folders: Sequence[Path], unknown: set[str]) -> Iterator[_Left]:
    """What each conversation of the file lacks since its first original; ``unknown`` takes in what no archive has.

    Raises InputError where no archive has its newest original.
    """
    found = original_of(file, folders)
    originals = [item for item in transcripts_in(found.path, found.on_invalid) if item.records]
    if found.length >= 0:
        originals = [item for item in originals if item.sha256 == found.sha256]
    for original, now in _pairs(file, originals, _read(file, dialect)):
        seen: set[tuple[str, str]] = set()
        for earlier in _earlier(original, folders, unknown):
            for name, thing in left_out(earlier, now):
                if (thing.kind, thing.text) not in seen:
                    seen.add((thing.kind, thing.text))
                    yield _Left(id=name, thing=thing)


def _earlier(original: Transcript, folders: Sequence[Path], unknown: set[str]) -> Iterator[Transcript]:
    """The original, then what the summary in it was made from, back to the first that the archives have."""
    hashes: set[str] = set()
    while original.sha256 not in hashes:
        hashes.add(original.sha256)
        yield original
        marker = _newest_marker(original)
        if marker is None:
            return
        try:
            original = load_transcript(folders, marker.transcript)
        except InputError:
            unknown.add(marker.transcript)
            return


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
        marker = _newest_marker(now)
        original = by_hash.get(marker.transcript) if marker else None
        original = original or (originals[i] if is_aligned else None)
        if original:
            is_found = True
            yield original, now
    if not is_found:
        advice = "it was changed too much since; compactor restore gives the original"
        raise InputError("none of its conversations is one of its archived original", place=file, next_step=advice)


def _newest_marker(transcript: Transcript) -> Marker | None:
    return next(filter(None, (find_marker(message.text) for message in reversed(transcript.messages))), None)


def _clipped(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"
