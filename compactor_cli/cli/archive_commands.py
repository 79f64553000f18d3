"""The archive on the command line: ``archive``, ``restore``, ``verify``, ``search`` and the like."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compactor_cli.archive import restore as originals
from compactor_cli.archive.atomic import Existing, followed
from compactor_cli.archive.maintenance import clear, old_originals, remove
from compactor_cli.archive.maintenance import verify as verify_archive
from compactor_cli.archive.store import LOCAL_ARCHIVE, default_archive_dir, is_hex, moment
from compactor_cli.cli import console as terminal
from compactor_cli.cli.config import configure
from compactor_cli.cli.console import Color, Console, counted, is_terminal, painted, print_quoted, visible, wants_color
from compactor_cli.cli.program import AS_JSON, READ_AS
from compactor_cli.formats.clients import RESUMED_WHEN_INTERRUPTED, find_problems
from compactor_cli.formats.detect import transcripts_of
from compactor_cli.group.exchanges import Half, group
from compactor_cli.model.errors import CompactError, InputError, OutputError, UsageError
from compactor_cli.model.marker import Marker, find_marker
from compactor_cli.model.settings import read_seconds
from compactor_cli.model.transcript import Role, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.read.sources import is_folder
from compactor_cli.run.documents import faults, schema_names

if TYPE_CHECKING:
    from compactor_cli.digest.loss import Dropped

NAMED_FAULTS = 5  # violations of the schema after which a transcript is not checked further: all records may have one

ARCHIVE_DIR = click.option(
    "--archive-dir",
    metavar="DIR",
    help=f"The archive; default: {LOCAL_ARCHIVE} here, and all that runs of yours wrote to.",
)


@click.command()
@click.argument("name", metavar="FILE|HASH")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE, whole or not at all; - is standard output.")
@click.option("-f", "--force", is_flag=True, help="Overwrite FILE.")
@ARCHIVE_DIR
def restore(name: str, output: str | None, force: bool, archive_dir: str | None) -> int:
    """Fetch the original of a compacted FILE, or an original (or one conversation of it) by its HASH.

    A file is known by its path, where it was compacted in its place, else by the summary in it. A hash needs 8 or more
    digits; it is in the summary's marker line, in reports and in compactor archive list. To put an original back
    in the place of its file: compactor undo FILE
    """
    if Path(name).exists() or len(name) < originals.MIN_PREFIX_CHARS or not is_hex(name.lower()):
        found = originals.original_of(name, archives_for(name, archive_dir))
    else:
        found = originals.find(archives(archive_dir), name)
    if output and output != "-":
        console = Console("compactor")
        existing = Existing.REPLACE if force else Existing.REFUSE
        originals.restore_to(found, output, existing, warn=lambda text: console.warn(f"{output}: {text}"))
        console.done(f"{output}: restored")
        return 0
    if not output and is_terminal(sys.stdout):
        back = f"compactor undo {terminal.shell_word(name)}"
        advice = f"name a file: -o FILE, or - for the terminal; to put it back: {back}"
        raise UsageError("an original is not printed on a terminal", next_step=advice)
    originals.restore(found, sys.stdout.buffer)
    sys.stdout.buffer.flush()
    return 0


@click.command()
@click.argument("operands", nargs=-1, metavar="[ARCHIVE|FILE]…", type=click.UNPROCESSED)
@click.option("--format", "dialect", default="", metavar="NAME", help="Read files as this format.")
@ARCHIVE_DIR
def verify(operands: tuple[str, ...], dialect: str, archive_dir: str | None) -> int:
    """Check archives (folders) or transcripts (files); without operands, your archives.

    An archive is sound if every original has the hash it is named by. A transcript is sound if it can be read,
    every call has its results and every result its call, and its records are by the schema of its format. What
    its client would ignore without a word (a compaction that nothing links to) is warned of, and so is a call that was
    interrupted where the client goes on from there.
    """
    console = Console("compactor")
    named = operands or tuple(str(folder) for folder in archives(archive_dir) if originals.is_archive(folder))
    if not named:
        console.warn("there is no archive yet")
    is_sound = True
    for name in named:
        try:
            is_archive = is_folder(name)
            problems, line = _verified_archive(name, console) if is_archive else _verified_file(name, dialect, console)
        except CompactError as error:
            problems, line = [str(error)], ""
        is_sound = is_sound and not problems
        for problem in problems:
            console.error(problem if name in problem else f"{name}: {problem}")
        if not problems:
            click.echo(line)
    console.finish()
    return 0 if is_sound else CompactError.exit_code


def archives(archive_dir: str | None) -> tuple[Path, ...]:
    """The archives to search: the one that is named, or else the one here and all in the list, as far as they exist.

    Raises InputError if the one named on the command line does not exist.
    """
    if archive_dir and not is_folder(archive_dir):
        raise InputError("no such archive folder", place=archive_dir, next_step="name it with --archive-dir")
    chosen = archive_dir or configure({}).options.get("archive_dir")
    return (Path(chosen),) if chosen else originals.each_once([Path(LOCAL_ARCHIVE), *originals.known_archives()])


def archives_for(file: str, archive_dir: str | None) -> tuple[Path, ...]:
    """The archive that compacting this file in place would use, if it exists, and then those of `archives`."""
    return (*originals.each_once([default_archive_dir(file, in_place=True)]), *archives(archive_dir))


def _verified_archive(name: str, console: Console) -> tuple[list[str], str]:
    """What is wrong with the archive in a folder, and the line that counts what it holds."""
    if not originals.is_archive(Path(name)):
        return ["is not an archive: name a folder with a MANIFEST.jsonl, or a transcript"], ""
    found = verify_archive(name)
    for path in found.leftovers:
        console.warn(f"{path}: left behind by a run that was killed: the next run here clears it away")
    size = f"{counted(found.originals, 'original')} ({found.size_bytes:,} bytes)"
    line = f"{visible(name)}: sound, {size}, {counted(found.states, 'state')}"
    return list(map(str, found.problems)), line


def _verified_file(name: str, dialect: str, console: Console) -> tuple[list[str], str]:
    """What is wrong with the transcripts of a file, and the line that counts them."""
    problems: list[str] = []
    conversations = records = 0
    for transcript in transcripts_of(name, dialect, OnInvalid.FAIL):
        halves = group(transcript.messages)
        is_resumed = transcript.dialect in RESUMED_WHEN_INTERRUPTED
        interrupted = "a call was interrupted: the client goes on without it"
        calls = _named(transcript, halves.orphan_calls, interrupted if is_resumed else "a call without its result")
        problems += () if is_resumed else calls
        problems += _named(transcript, halves.orphan_results, "a result without its call")
        for warning in (*(calls if is_resumed else ()), *map(str, find_problems(transcript))):
            console.warn(warning)
        by_schema: list[str] = []
        for record in transcript.records if transcript.dialect in schema_names() else ():
            by_schema += (f"{record.place}: {fault}" for fault in faults(transcript.dialect, record.value))
            if len(by_schema) >= NAMED_FAULTS:
                break
        problems += by_schema
        conversations += 1
        records += len(transcript.records)
    line = f"{visible(name)}: sound, {counted(conversations, 'conversation')}, {counted(records, 'record')}"
    return problems, line


def _named(transcript: Transcript, halves: Sequence[Half], what: str) -> list[str]:
    sent = (half for half in halves if not transcript.messages[half.record].superseded)
    return [f"{transcript.records[half.record].place}: {what}" for half in sent]


_SHOWN_HASH_CHARS = 12
_MIN_PATH_CHARS = 20


@click.group()
def archive() -> None:
    """Look at the originals that were archived, in all archives of yours, or take old ones out."""


@archive.command("list")
@click.option("--limit", metavar="N", default=20, type=click.IntRange(min=0), help="The newest N; 0: all (default 20).")
@AS_JSON
@ARCHIVE_DIR
def list_originals(limit: int, as_json: bool, archive_dir: str | None) -> int:
    """List what was archived, the newest first, with the file it came from."""
    items = sorted(originals.listed(archives(archive_dir)), key=lambda item: item.entry.compacted_at)[::-1]
    shown = items[:limit] if limit else items
    rows = []
    for item in shown:
        entry = item.entry
        if as_json:
            value = {"sha256": entry.sha256, "bytes": entry.bytes, "records": entry.records, "format": entry.dialect}
            where = {"source": entry.source, "compacted_at": entry.compacted_at, "archived": str(item.path)}
            click.echo(json.dumps(value | where))
        else:
            at, short = entry.compacted_at[:16].replace("T", " "), entry.sha256[:_SHOWN_HASH_CHARS]
            rows.append((at, entry.bytes, entry.records, short, entry.source))
    if as_json:
        return 0
    click.echo(_fitted(("compacted", "bytes", "records", "hash", "file"), rows), nl=False)
    more = f"; {len(items) - len(shown):,} more, --limit 0 shows all" if len(shown) < len(items) else ""
    click.echo(f"{counted(len(items), 'original')}{more}. One comes back with: compactor restore FILE -o OUT")
    return 0


@archive.command()
@AS_JSON
@ARCHIVE_DIR
def stats(as_json: bool, archive_dir: str | None) -> int:
    """Count the originals of each archive, and what they take on the disk."""
    rows: list[tuple[Any, ...]] = []
    for folder in filter(originals.is_archive, archives(archive_dir)):
        entries = [item.entry for item in originals.listed([folder])]
        sizes = {entry.sha256: entry.bytes for entry in entries}
        days = sorted(entry.compacted_at[:10] for entry in entries)
        ends = (days[0], days[-1]) if days else ("", "")
        rows.append((len(sizes), sum(sizes.values()), originals.stored_size(folder), *ends, str(folder)))
    head = ("originals", "bytes", "stored", "first", "last", "archive")
    if as_json:
        for row in rows:
            click.echo(json.dumps(dict(zip(head, row, strict=True))))
        return 0
    if len(rows) > 1:
        totals = [sum(row[column] for row in rows) for column in range(3)]
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

    One whose compacted file is still where it was, and names it or was made from it, stays unless -f is given: without
    it that file could not be undone or looked up. Of outputs written elsewhere (-o, a pipe) nobody knows whether they
    are in use.
    """
    console = Console("compactor")
    seconds = read_seconds(older_than, "--older-than")
    found = old_originals(archives(archive_dir), moment(max(0.0, time.time() - seconds)))
    going = []
    for item, used_by in found:
        if force or not used_by:
            going.append(item)
        else:
            console.note(f"{item.entry.sha256[:_SHOWN_HASH_CHARS]}: stays, {used_by} is still in use")
    size, kept = sum(item.stored_bytes for item in going), len(found) - len(going)
    if not dry_run:
        remove(going)
    for entry in (item.entry for item in going if dry_run):
        click.echo(visible(f"{entry.sha256[:_SHOWN_HASH_CHARS]}  {entry.compacted_at[:10]}  {entry.source}"))
    verb = "would go" if dry_run else "taken out"
    stays = f"; {kept:,} old ones stay, their compacted files are still in use" if kept else ""
    click.echo(f"{counted(len(going), 'original')} {verb}, {size:,} bytes{stays}")
    return 0


def _fitted(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The table, with its last column (a path) clipped to the width of the terminal."""
    rows = [(*row[:-1], terminal.home_path(str(row[-1]))) for row in rows]
    return terminal.fitted_table(head, rows, terminal.terminal_columns() or 100, least_clipped=_MIN_PATH_CHARS)


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
            found = originals.find_compacted(name, folders)
            if found.added_bytes and not force:
                count, first = originals.lines_from(name, found.entry.written_bytes)
                advice = "with -f these go, too; the archive keeps them"
                what = f"{counted(count, 'record')} came after the compaction (the first: {first})"
                raise OutputError(what, place=name, next_step=advice)
            size_bytes, archived = originals.put_back(name, found, folders[0])
            console.done(f"{name}: the original is back, {size_bytes:,} bytes; what was here is {archived}")
        except CompactError as error:
            console.error(str(error))
            code = 3 if code == 3 else error.exit_code
    console.finish()
    return code


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
    from compactor_cli.cli.session_commands import message_fields

    found = originals.expand(archives(archive_dir), names)
    for original in found:
        if raw:
            sys.stdout.buffer.write(original.record.raw + b"\n")
        else:
            when = {"time": original.message.timestamp} if original.message.timestamp else {}
            name = {"id": original.id, "transcript": original.sha256, "record": original.number}
            print_quoted(_json(name | when | message_fields(original.message)) if as_json else _shown(original))
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
@AS_JSON
@ARCHIVE_DIR
def search(query: tuple[str, ...], archive_dir: str | None, as_json: bool, rebuild: bool, **given: Any) -> int:
    """Find archived records by what they say, the best first; exit code 1 if there is none.

    All words must occur: word, begin*, '"a phrase"', one OR other, and after -- also -without. Chinese and Japanese
    are found as they stand. Each archive has an index (INDEX.sqlite3 in it), which each search brings up to date; it
    can be deleted.
    """
    from compactor_cli.archive.search import Filter, marks
    from compactor_cli.archive.search import search as searched

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
    named = [folder for folder in archives(archive_dir) if folder.is_dir()]
    if not named:
        console.warn("there is no archive yet")
    with console.progress("indexing", 0, "file") as bar:
        words = " ".join(query)
        found = searched(named, words, only=only, limit=given["limit"], rebuild=rebuild, advance=bar.advance)
    for warning in found.warnings:
        console.warn(warning)
    if found.any_word:
        console.warn("no record holds all of these words; these hold some")
    color = wants_color("auto", sys.stdout)
    for hit in found.hits:
        shown = {"archive": str(hit.archive), "record": hit.record + 1, "time": moment(hit.time)}
        if as_json:
            print_quoted(_json({"id": hit.id, **dataclasses.asdict(hit), **shown}))
            continue
        copies = f"  and {counted(hit.copies, 'record')} like it" if hit.copies else ""
        rest = visible(f"{' '.join((hit.role, *hit.tools))}  {moment(hit.time)}  {hit.source}{copies}")
        snippet = visible(hit.snippet)
        for start, stop in reversed(marks(snippet, words)) if color else ():
            snippet = snippet[:start] + painted(snippet[start:stop], Color.YELLOW, color) + snippet[stop:]
        print_quoted(f"{painted(hit.id, Color.CYAN, color)}  {rest}\n    {snippet}\n")
    return 0 if found.hits else NOTHING_FOUND


def _moment(text: str | None, where: str) -> int | None:
    """Unix seconds of a date, a time (UTC if it has no zone), or an age such as ``7d``. Raises UsageError."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return int(time.time() - read_seconds(text, where))
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def _shown(original: originals.ExpandedRecord) -> str:
    """The record as a text for people: id, role and time, then all of its content; bookkeeping as raw JSON."""
    from compactor_cli.llm.quoting import call_text

    message = original.message
    head = "  ".join(filter(None, (original.id, message.role.value, message.timestamp)))
    texts: list[str] = []
    for part in message.parts:
        if isinstance(part, Text):
            texts.append(part.text)
        elif isinstance(part, Thinking):
            texts.append(f"(thinking)\n{part.text}")
        elif isinstance(part, ToolCall):
            texts.append(call_text(part))
        elif isinstance(part, ToolResult):
            name = f" of {part.name}" if part.name else ""
            texts.append(f"({'error' if part.is_error else 'result'}{name})\n{part.text}")
        else:
            texts.append(f"({part.kind}, {part.size_bytes:,} bytes)")
    body = "\n".join(texts) or original.record.raw.decode("utf-8", "replace")
    if is_terminal(sys.stdout):
        # No control character of a transcript may reach the terminal.
        body = "\n".join(map(visible, body.split("\n")))
    return f"{painted(head, Color.CYAN, wants_color('auto', sys.stdout))}\n{body.rstrip()}\n\n"


MOST_SHOWN = 25
_SHOWN_CHARS = 96
_HASH_CHARS = 16


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help=f"At most this many (default {MOST_SHOWN}).")
@READ_AS
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
    folders = archives_for(file, archive_dir)
    unknown: set[str] = set()
    found = sorted(_left_out(file, dialect, folders, unknown), key=lambda left: -left[1].score)
    if as_json:
        for name, item in found[: limit or len(found)]:
            print_quoted(_json({"id": name, "kind": item.kind, "score": item.score, "text": item.text}))
        return 0
    rows = [
        (f"{item.score:.0%}", item.kind, terminal.beginning(item.text, _SHOWN_CHARS), name or None)
        for name, item in found[: limit or MOST_SHOWN]
    ]
    more = f", {len(rows):,} shown (more: --limit)" if len(rows) < len(found) else ""
    missing = f"; what was left out before {', '.join(sorted(unknown))} is in no archive" if unknown else ""
    count = counted(len(found), "thing") if found else "nothing"
    text = terminal.table(("need", "kind", "what", "record"), rows) if rows else ""
    print_quoted(f"{text}{visible(file)}: {count} left out{more}{missing}\n")
    return 0


def _left_out(file: str, dialect: str, folders: Sequence[Path], unknown: set[str]) -> Iterator[tuple[str, Dropped]]:
    """What the conversations of a file no longer show of their originals, back to the first.

    Each comes with the id by which ``compactor expand`` prints its record (empty if no record has it). The hashes of
    originals that no archive has are added to ``unknown``. Raises InputError if no archive has the newest original.
    """
    from compactor_cli.agents.session_digest import left_out

    found = originals.original_of(file, folders)
    stored = [item for item in originals.transcripts_in(found.path, found.on_invalid) if item.records]
    if not Path(file).exists():
        raise InputError("there is no such file", place=file, next_step="name a compacted file")
    compacted = [item for item in transcripts_of(file, dialect) if item.records]
    by_hash = {item.sha256[:_HASH_CHARS]: item for item in stored}
    is_found = False
    for i, now in enumerate(compacted):
        # The original is found by the hash in the newest summary, or else by its position in the file.
        marker = _newest_marker(now)
        original = by_hash.get(marker.transcript) if marker else None
        original = original or (stored[i] if len(stored) == len(compacted) else None)
        if original is None:
            continue
        is_found = True
        seen: set[tuple[str, str]] = set()
        for earlier in _earlier(original, folders, unknown):
            for name, thing in left_out(earlier, now):
                if (thing.kind, thing.text) not in seen:
                    seen.add((thing.kind, thing.text))
                    yield name, thing
    if not is_found:
        advice = "it was changed too much since; compactor restore gives the original"
        raise InputError("none of its conversations is one of its archived original", place=file, next_step=advice)


def _earlier(original: Transcript, folders: Sequence[Path], unknown: set[str]) -> Iterator[Transcript]:
    """The original, then the one that its own summary was made from, and so on, as far as the archives have them."""
    hashes: set[str] = set()
    while original.sha256 not in hashes:
        hashes.add(original.sha256)
        yield original
        if (marker := _newest_marker(original)) is None:
            return
        try:
            original = originals.load_transcript(folders, marker.transcript)
        except InputError:
            unknown.add(marker.transcript)
            return


def _newest_marker(transcript: Transcript) -> Marker | None:
    return next(filter(None, (find_marker(message.text) for message in reversed(transcript.messages))), None)
