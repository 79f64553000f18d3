"""``compactor stats``: what is in transcripts, before anything is done to them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click

from compactor_cli.cli.config import configure
from compactor_cli.cli.console import Console
from compactor_cli.cli.run_options import RunOptions
from compactor_cli.cli.text_table import fitted_table, home_path, terminal_columns
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.group.exchanges import group, turns
from compactor_cli.model.errors import CompactError, InvalidLine, UnknownShape
from compactor_cli.model.settings import Settings
from compactor_cli.model.transcript import Role, Transcript
from compactor_cli.plan.models import window_tokens
from compactor_cli.plan.tokens import Counter, count_messages, counter_for
from compactor_cli.plan.trigger import named_window_tokens
from compactor_cli.read.jsonl import records_in
from compactor_cli.read.sources import InputSource, find_sources
from compactor_cli.read.streams import STDIN, open_stream

FAILED = 3
HEAD = ("tokens", "of window", "turns", "calls", "unpaired", "messages", "records", "conversations", "format", "file")
# What a narrow terminal does without, in this order.
_OPTIONAL = ("records", "messages", "conversations", "calls", "unpaired", "turns", "format")


@dataclass(slots=True, kw_only=True)
class TranscriptStats:
    """One input counted. ``pressure_ratio``: the fullest conversation; None where no window is known.

    ``exchanges`` are calls with their results; ``orphans`` calls or results without their other half.
    """

    path: str
    formats: list[str] = field(default_factory=list)
    conversations: int = 0
    records: int = 0
    messages: int = 0
    tokens: int = 0
    turns: int = 0
    exchanges: int = 0
    orphans: int = 0
    window_tokens: int = 0
    pressure_ratio: float | None = None
    token_method: str = ""
    invalid_lines: int = 0


@click.command()
@click.argument("operands", nargs=-1, metavar="[FILE|DIR]…", type=click.UNPROCESSED)
@click.option(
    "-r", "--recursive", is_flag=True, default=None, help="Take the transcripts below folders, known by their content."
)
@click.option("--include", multiple=True, metavar="GLOB", help="With -r: take names like GLOB.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="With -r: leave out names like GLOB.")
@click.option("--hidden", is_flag=True, default=None, help="With -r: read hidden files and folders too.")
@click.option("--format", metavar="NAME", help="Read as this dialect.")
@click.option("--on-invalid", metavar="fail|keep|drop", help="A line that is not JSON.")
@click.option("-w", "--window", metavar="TOKENS", help="The context window.")
@click.option("--model-window", metavar="MODEL", help="The window of this model.")
@click.option("--tokenizer", metavar="NAME", help="What counts tokens.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per input, a line each.")
def stats(operands: tuple[str, ...], as_json: bool, **given_options: object) -> int:
    """Count records, messages, tokens, turns and exchanges of each input; without one, of standard input."""
    given = {name: value for name, value in given_options.items() if value not in (None, ())}
    configuration = configure(given, os.environ, Path.cwd())
    run_options = RunOptions(**configuration.options)
    console = Console("compactor")
    counted: list[TranscriptStats] = []
    failures = 0
    for source in find_sources(operands or (STDIN,), recursive=run_options.recursive, walk=run_options.walk):
        try:
            counted.append(count(source, run_options, configuration.settings))
        except CompactError as error:
            if source.is_candidate and isinstance(error, UnknownShape | InvalidLine):
                continue
            console.error(str(error))
            failures += 1
        else:
            if as_json:
                sys.stdout.write(json.dumps(asdict(counted[-1])) + "\n")
    if not as_json and counted:
        sys.stdout.write(_table(counted))
    console.finish()
    return FAILED if failures else 0


def count(source: InputSource, run_options: RunOptions, settings: Settings) -> TranscriptStats:
    """One input counted, its conversations one by one. Raises CompactError."""
    found = TranscriptStats(path=source.path, window_tokens=named_window_tokens(settings.trigger))
    counters: dict[str, Counter] = {}
    with open_stream(source.path) as stream:
        records = records_in(stream, run_options.invalid)
        for transcript in open_transcripts(records, dialect=run_options.format, prefix=records.prefix):
            counter = counters.setdefault(transcript.model, counter_for(settings.tokenizer, transcript.model))
            _add(found, transcript, counter)
        found.invalid_lines = records.invalid_count
    return found


def _add(found: TranscriptStats, transcript: Transcript, counter: Counter) -> None:
    grouping = group(transcript.messages)
    tokens = sum(count_messages(counter, transcript.messages))
    if transcript.dialect not in found.formats:
        found.formats.append(transcript.dialect)
    found.conversations += 1
    found.records += len(transcript.records)
    found.messages += sum(message.role is not Role.META for message in transcript.messages)
    found.tokens += tokens
    found.turns += len(turns(transcript.messages))
    paired = {pair.call.record for pair in grouping.pairs}
    found.exchanges += sum(not paired.isdisjoint(exchange) for exchange in grouping.exchanges)
    found.orphans += len(grouping.orphan_calls) + len(grouping.orphan_results)
    found.token_method = counter.method
    if window := found.window_tokens or window_tokens(transcript.model):
        found.pressure_ratio = max(found.pressure_ratio or 0.0, round(tokens / window, 4))


def _table(counted: Sequence[TranscriptStats]) -> str:
    """The largest first; of several, the total last."""
    rows = [_row(item) for item in sorted(counted, key=lambda item: -item.tokens)]
    if len(rows) > 1:
        sums = [sum(int(str(row[at] or 0)) for row in rows) for at in (0, *range(2, 8))]
        rows.append((sums[0], None, *sums[1:], "", f"total of {len(counted):,}"))
    return fitted_table(HEAD, rows, terminal_columns(), optional=_OPTIONAL)


def _row(found: TranscriptStats) -> tuple[object, ...]:
    share = None if found.pressure_ratio is None else f"{found.pressure_ratio:.0%}"
    name = "standard input" if found.path == STDIN else home_path(found.path)
    counts = (found.turns, found.exchanges, found.orphans, found.messages, found.records, found.conversations)
    return (found.tokens, share, *counts, ", ".join(found.formats), name)
