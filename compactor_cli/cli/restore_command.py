"""``compactor restore`` and ``verify``: originals fetched, archives and transcripts checked."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from compactor_cli.archive.atomic import Existing
from compactor_cli.archive.folder import LOCAL_ARCHIVE, default_archive_dir, is_hex
from compactor_cli.archive.restore import (
    MIN_PREFIX_CHARS,
    each_once,
    find,
    is_archive,
    known_archives,
    original_of,
    restore_to,
)
from compactor_cli.archive.restore import restore as write_to
from compactor_cli.archive.verify import verify as verify_archive
from compactor_cli.cli.config import configure
from compactor_cli.cli.console import Console, counted, is_terminal, visible
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.sent import RESUMED_WHEN_INTERRUPTED, find_problems
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import CompactError, UsageError
from compactor_cli.model.transcript import Transcript
from compactor_cli.read.jsonl import records_in
from compactor_cli.read.streams import open_stream
from compactor_cli.schema import faults, schema_names

FAILED = 3
# Of one transcript with the same fault in every record, some are enough.
NAMED_FAULTS = 5

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
    digits; it stands in the summary's marker line, in reports and in compactor archive list. To put an original back
    in the place of its file: compactor undo FILE
    """
    if Path(name).exists() or not is_hash_start(name):
        found = original_of(name, (*_adjacent(name), *archives(archive_dir)))
    else:
        found = find(archives(archive_dir), name)
    if output and output != "-":
        console = Console("compactor")
        existing = Existing.REPLACE if force else Existing.REFUSE
        restore_to(found, output, existing, warn=lambda text: console.warn(f"{output}: {text}"))
        console.done(f"{output}: restored")
        return 0
    if not output and is_terminal(sys.stdout):
        advice = f"name a file: -o FILE, or - for the terminal; to put it back: compactor undo {shlex.quote(name)}"
        raise UsageError("an original is not printed on a terminal", next_step=advice)
    write_to(found, sys.stdout.buffer)
    sys.stdout.buffer.flush()
    return 0


def _adjacent(name: str) -> tuple[Path, ...]:
    """The archive that this file would have been replaced from."""
    return each_once([default_archive_dir(name, in_place=True)])


@click.command()
@click.argument("operands", nargs=-1, metavar="[ARCHIVE|FILE]…", type=click.UNPROCESSED)
@click.option("--format", "dialect", default="", metavar="NAME", help="Read files as this dialect.")
@ARCHIVE_DIR
def verify(operands: tuple[str, ...], dialect: str, archive_dir: str | None) -> int:
    """Check archives (folders) or transcripts (files); without operands, your archives.

    An archive is sound if every original has the hash it is named by. A transcript is sound if it can be read,
    every call has its results and every result its call, and its records are by the schema of its format. What
    its client would ignore without a word (a compaction that nothing links to) is warned of, and so is a call that was
    interrupted where the client goes on from there.
    """
    console = Console("compactor")
    named = operands or tuple(str(folder) for folder in archives(archive_dir) if is_archive(folder))
    if not named:
        console.warn("there is no archive yet")
    is_sound = True
    for name in named:
        try:
            problems, line = _archive(name, console) if Path(name).is_dir() else _file(name, dialect, console)
        except CompactError as error:
            problems, line = (str(error),), ""
        is_sound = is_sound and not problems
        for problem in problems:
            console.error(problem if name in problem else f"{name}: {problem}")
        if not problems:
            click.echo(line)
    console.finish()
    return 0 if is_sound else FAILED


def archives(archive_dir: str | None) -> tuple[Path, ...]:
    """The archives to look in: the one that is named, else the one here and all that are known, if they exist."""
    chosen = archive_dir or configure({}, os.environ, Path.cwd()).options.get("archive_dir")
    return (Path(chosen),) if chosen else each_once([Path(LOCAL_ARCHIVE), *known_archives()])


def is_hash_start(text: str) -> bool:
    """Whether this can only be the beginning of a hash, and no file's name is meant."""
    return len(text) >= MIN_PREFIX_CHARS and is_hex(text.lower())


def _archive(name: str, console: Console) -> tuple[tuple[str, ...], str]:
    if not is_archive(Path(name)):
        return ("is no archive: name a folder with a MANIFEST.jsonl, or a transcript",), ""
    found = verify_archive(name)
    for path in found.leftovers:
        console.warn(f"{path}: left behind by a run that was killed: the next run here clears it away")
    problems = tuple(str(problem) for problem in found.problems)
    size = f"{counted(found.originals, 'original')} ({found.size_bytes:,} bytes)"
    return problems, f"{visible(name)}: sound, {size}, {counted(found.states, 'state')}"


def _file(name: str, dialect: str, console: Console) -> tuple[tuple[str, ...], str]:
    problems: list[str] = []
    conversations = records = 0
    with open_stream(name) as stream:
        lines = records_in(stream)
        for transcript in open_transcripts(lines, dialect=dialect, prefix=lines.prefix):
            problems += _faults(transcript)
            for warning in (*_interrupted(transcript), *map(str, find_problems(transcript))):
                console.warn(warning)
            conversations += 1
            records += len(transcript.records)
    return tuple(
        problems
    ), f"{visible(name)}: sound, {counted(conversations, 'conversation')}, {counted(records, 'record')}"


def _interrupted(transcript: Transcript) -> Iterator[str]:
    """The calls without a result that the client of a session copes with."""
    if transcript.dialect in RESUMED_WHEN_INTERRUPTED:
        for half in group(transcript.messages).orphan_calls:
            if not transcript.messages[half.record].superseded:
                yield f"{transcript.records[half.record].place}: a call was interrupted: the client goes on without it"


def _faults(transcript: Transcript) -> Iterator[str]:
    """What is wrong with one transcript."""
    grouping = group(transcript.messages)
    is_resumed = transcript.dialect in RESUMED_WHEN_INTERRUPTED
    for half, what in (
        *((half, "a call without its result") for half in grouping.orphan_calls if not is_resumed),
        *((half, "a result without its call") for half in grouping.orphan_results),
    ):
        if not transcript.messages[half.record].superseded:
            yield f"{transcript.records[half.record].place}: {what}"
    if transcript.dialect not in schema_names():
        return
    named = 0
    for record in transcript.records:
        for fault in faults(transcript.dialect, record.value):
            yield f"{record.place}: {fault}"
            named += 1
        if named >= NAMED_FAULTS:
            return
