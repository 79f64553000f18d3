"""Commands about sessions: list those on this machine, count them, and show what would be sent or compacted."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

import click

from compactor_cli.cli import console as terminal
from compactor_cli.cli.config import RunOptions, configure
from compactor_cli.cli.console import Console, counted, home_path, is_terminal, table, terminal_columns, visible
from compactor_cli.cli.program import AS_JSON, READ_AS, parameters
from compactor_cli.engine import plan_transcript
from compactor_cli.formats import clients
from compactor_cli.formats.clients import OPAQUE_KINDS, SessionFile, belongs_to, clients_named, find_sessions
from compactor_cli.formats.detect import open_transcripts, transcripts_of
from compactor_cli.group.exchanges import group, turns
from compactor_cli.model.errors import CompactError, InvalidLine, UnknownShape, UsageError
from compactor_cli.model.plan import Mode
from compactor_cli.model.settings import Settings
from compactor_cli.model.transcript import Media, Message, Role, Text, Thinking, ToolCall, ToolResult
from compactor_cli.model.value import dataclass
from compactor_cli.plan.models import window_tokens
from compactor_cli.plan.planner import planned_report
from compactor_cli.plan.tokens import Counter, count_messages, counter_for
from compactor_cli.plan.trigger import named_window_tokens
from compactor_cli.read.jsonl import OnInvalid, records_in
from compactor_cli.read.sources import InputSource, find_sources, home_folder
from compactor_cli.read.streams import STDIN, open_stream, shown_name

DEFAULT_LIMIT = 20
HEAD = ("#", "client", "project", "age", "tokens", "window", "saves", "session")
_ID_CHARS = 8
_MIN_PROJECT_CHARS = 12
_AGES = ((365 * 86_400, "y"), (30 * 86_400, "mo"), (86_400, "d"), (3_600, "h"), (60, "min"))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSession:
    """A session with its size."""

    session: SessionFile
    tokens: int = 0
    window_tokens: int = 0  # of its model; 0: not known
    saved_tokens: int = 0  # by which compacting would make it smaller
    error: str = ""  # why it was not counted

    @classmethod
    def of(cls, session: SessionFile, settings: Settings) -> MeasuredSession:
        """Count a session, and plan its compaction."""
        mode = Mode.APPEND if session.client.append else Mode.REWRITE
        tokens = saved = window = 0
        try:
            for transcript in transcripts_of(str(session.path), session.client.format):
                counter = counter_for(settings.tokenizer, transcript.model)
                report = planned_report(transcript, plan_transcript(transcript, settings, counter=counter, mode=mode))
                tokens += report.tokens_before
                saved += report.tokens_before - report.tokens_after
                window = max(window, window_tokens(transcript.model))
        except CompactError as error:
            return cls(session=session, error=str(error))
        return cls(session=session, tokens=tokens, window_tokens=window, saved_tokens=saved)

    def as_json(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        session = self.session
        return {
            "client": session.client.names[1],
            "format": session.client.format,
            "id": session.id,
            "path": str(session.path),
            "project": session.project,
            "modified": session.modified,
            "bytes": session.size_bytes,
            "tokens": self.tokens,
            "window_tokens": self.window_tokens,
            "window_ratio": round(self.tokens / self.window_tokens, 4) if self.window_tokens else None,
            "saved_tokens": self.saved_tokens,
            "error": self.error,
            "compact": self.command,
            "resume": session.resume_command,
        }

    @property
    def command(self) -> str:
        """The command that compacts it in such a way that its client goes on with the result."""
        how = "--append" if self.session.client.append else "-i"
        return f"compact {how} {terminal.shell_word(str(self.session.path))}"


@click.command()
@click.argument("names", nargs=-1, metavar="[CLIENT]…")
@click.option("--sort", type=click.Choice(("age", "size")), default="age", show_default=True, help="Newest or largest.")
@click.option("--here", is_flag=True, help="Only sessions of this folder.")
@click.option("--limit", metavar="N", default=DEFAULT_LIMIT, type=click.IntRange(min=0), help="N at most; 0: all.")
@AS_JSON
def sessions(names: tuple[str, ...], sort: str, here: bool, limit: int, as_json: bool) -> int:
    """List the sessions of agents on this machine: how large they are, and what compacting would save.

    Looked for where Claude Code, Codex, pi, Gemini CLI, Qwen Code, Kimi and opencode keep them; their own environment
    variables are obeyed. On a terminal one can be chosen to be compacted. The same without a list:
    compact --last claude --append
    """
    known = clients_named(names, os.environ, home_folder())
    found = find_sessions(known)
    if here:
        found = [session for session in found if belongs_to(session, Path.cwd().resolve())]
    if sort == "size":
        found.sort(key=lambda session: -session.size_bytes)
    shown = found[:limit] if limit else found
    settings = configure({}).settings
    measured: list[MeasuredSession] = []
    with Console("compactor").progress("counting", len(shown), "file") as bar:
        for session in shown:
            measured.append(MeasuredSession.of(session, settings))
            bar.advance(1)
    if as_json:
        for item in measured:
            sys.stdout.write(json.dumps(item.as_json()) + "\n")
        return 0
    if measured:
        sys.stdout.write(_table(measured, terminal_columns() or 100))
        tokens, saved = (sum(getattr(item, name) for item in measured) for name in ("tokens", "saved_tokens"))
        more = f"; {len(found) - len(shown):,} more, --limit 0 shows all" if len(found) > len(shown) else ""
        saves = f"compacting would save {saved:,}" if saved else "nothing to save"
        sys.stdout.write(f"{counted(len(measured), 'session')}, {tokens:,} tokens, {saves}{more}\n")
    else:
        where = " of this folder" if here else f" in {', '.join(home_path(str(client.root)) for client in known)}"
        sys.stdout.write(f"no sessions{where}\n")
    for client in known:
        if client.has_database:
            sys.stdout.write(f"{client.title} keeps its sessions in a database; it writes one with: {client.export}\n")
    if measured and is_terminal(sys.stdout) and is_terminal(sys.stdin):
        return _pick(measured)
    return 0


def _table(measured: Sequence[MeasuredSession], width: int) -> str:
    """The table in this width: with full paths if they fit, or else with ids and the projects clipped."""
    rows: list[tuple[object, ...]] = []
    for number, item in enumerate(measured, 1):
        session = item.session
        share = f"{item.tokens / item.window_tokens:.0%}" if item.window_tokens else None
        sizes = (None, None, None) if item.error else (item.tokens, share, item.saved_tokens or None)
        seconds = time.time() - session.modified
        age = next((f"{int(seconds // unit)} {name}" for unit, name in _AGES if seconds >= unit), "now")
        name = home_path(session.project) or "?"
        rows.append((number, session.client.title, name, age, *sizes, session.id[:_ID_CHARS]))
    paths = [(*row[:-1], home_path(str(item.session.path))) for row, item in zip(rows, measured, strict=True)]
    if terminal.table_width(HEAD, paths) <= width:
        return table(HEAD, paths)
    project = HEAD.index("project")
    return terminal.fitted_table(HEAD, rows, width, clip=project, least_clipped=_MIN_PROJECT_CHARS)


def _pick(measured: Sequence[MeasuredSession]) -> int:
    """Ask which session to compact, show the command, and run it on a yes; returns the exit code.

    Any other answer leaves all sessions as they are.
    """
    answer = _ask("compact which? (a number; Enter: none): ")
    if not answer.isdigit() or not 1 <= int(answer) <= len(measured):
        return 0
    item = measured[int(answer) - 1]
    click.echo(f"  {visible(item.command)}", err=True)
    if _ask("do it now? [y/N]: ").lower() not in ("y", "yes"):
        return 0
    from compactor_cli.cli.run_command import run

    code = run([str(item.session.path)], {"append" if item.session.client.append else "in_place": True})
    if not code and item.session.resume_command:
        click.echo(f"go on with it: {visible(item.session.resume_command)}", err=True)
    return code


def _ask(question: str) -> str:
    """The answer to a question on the terminal; empty at the end of input. Ctrl-C stops the program."""
    click.echo(question, nl=False, err=True)
    return sys.stdin.readline().strip()


STATS_HEAD = ("tokens", "of window", *"turns calls unpaired messages records conversations format file".split())
_COUNTS = ("turns", "calls", "orphans", "messages", "records", "conversations")
# The columns that are left out on a narrow terminal, in this order.
_OPTIONAL = ("records", "messages", "conversations", "calls", "unpaired", "turns", "format")


@dataclass(slots=True, kw_only=True)
class TranscriptStats:
    """The counts of one input."""

    path: str
    formats: list[str] = field(default_factory=list)
    conversations: int = 0
    records: int = 0
    messages: int = 0  # records except for bookkeeping
    tokens: int = 0
    turns: int = 0
    calls: int = 0  # that have their results
    orphans: int = 0  # calls or results without their other half
    window_tokens: int = 0
    pressure_ratio: float | None = None  # how full the window of the fullest conversation is; None: no window is known
    token_method: str = ""
    invalid_lines: int = 0


_COUNTED = ("recursive", "include", "exclude", "hidden", "format", "on_invalid", "window", "model_window", "tokenizer")


@click.command(params=parameters("[FILE|DIR]…", *_COUNTED, window="The context window."))
@click.option("--json", "as_json", is_flag=True, help="One JSON object per input, a line each.")
def stats(operands: tuple[str, ...], as_json: bool, **given: object) -> int:
    """Count records, messages, tokens, turns and calls of each input; without one, of standard input."""
    configuration = configure(given)
    run_options = RunOptions(**configuration.options)
    console = Console("compactor")
    found: list[TranscriptStats] = []
    failures = 0
    for source in find_sources(operands or (STDIN,), recursive=run_options.recursive, walk=run_options.walk):
        try:
            found.append(count(source, run_options, configuration.settings))
        except CompactError as error:
            if source.is_candidate and isinstance(error, UnknownShape | InvalidLine):
                continue
            console.error(str(error))
            failures += 1
        else:
            if as_json:
                sys.stdout.write(json.dumps(asdict(found[-1])) + "\n")
    if not as_json and found:
        rows: list[tuple[object, ...]] = []
        for item in sorted(found, key=lambda item: -item.tokens):
            share = None if item.pressure_ratio is None else f"{item.pressure_ratio:.0%}"
            counts = (getattr(item, name) for name in _COUNTS)
            rows.append((item.tokens, share, *counts, ", ".join(item.formats), home_path(shown_name(item.path))))
        if len(found) > 1:
            tokens, *sums = (sum(getattr(item, name) for item in found) for name in ("tokens", *_COUNTS))
            rows.append((tokens, None, *sums, "", f"total of {len(found):,}"))
        sys.stdout.write(terminal.fitted_table(STATS_HEAD, rows, terminal_columns(), optional=_OPTIONAL))
    console.finish()
    return CompactError.exit_code if failures else 0


def count(source: InputSource, run_options: RunOptions, settings: Settings) -> TranscriptStats:
    """Count one input, one conversation at a time. Raises CompactError."""
    found = TranscriptStats(path=source.path, window_tokens=named_window_tokens(settings.trigger))
    counters: dict[str, Counter] = {}
    with open_stream(source.path) as stream:
        records = records_in(stream, OnInvalid(run_options.on_invalid))
        for transcript in open_transcripts(records, dialect=run_options.format):
            counter = counters.setdefault(transcript.model, counter_for(settings.tokenizer, transcript.model))
            grouping = group(transcript.messages)
            tokens = sum(count_messages(counter, transcript.messages))
            if transcript.dialect not in found.formats:
                found.formats.append(transcript.dialect)
            found.conversations += 1
            found.records += len(transcript.records)
            found.messages += sum(message.role is not Role.META for message in transcript.messages)
            found.tokens += tokens
            found.turns += len(turns(transcript.messages))
            found.calls += len(grouping.pairs)
            found.orphans += len(grouping.orphan_calls) + len(grouping.orphan_results)
            found.token_method = counter.method
            if window := found.window_tokens or window_tokens(transcript.model):
                found.pressure_ratio = max(found.pressure_ratio or 0.0, round(tokens / window, 4))
        found.invalid_lines = records.invalid_count
    return found


@click.command()
@click.argument("file", default=STDIN, metavar="[FILE]", type=click.UNPROCESSED)
@READ_AS
def view(file: str, dialect: str) -> int:
    """Print what the client of a session would send to the model, one message a line, in that order.

    What an earlier compaction replaced, rewound branches and bookkeeping are not in it. Each line has the number of
    its record, the role and its content: text, thinking, calls, results, media (images and files, counted, with
    those in results).
    """
    for transcript in transcripts_of(file, dialect):
        for i, message in clients.sent_messages(transcript):
            terminal.print_quoted(json.dumps({"record": i + 1, **message_fields(message)}, ensure_ascii=False) + "\n")
    return 0


def message_fields(message: Message) -> dict[str, Any]:
    """The content of a message as a JSON object, without empty values."""
    parts = message.parts
    # Images and files, including those in results, but not encrypted reasoning.
    media = sum(isinstance(part, Media) and part.kind not in OPAQUE_KINDS for part in parts)
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, ToolCall):
            arguments = part.arguments if isinstance(part.arguments, str) else dict(part.arguments)
            calls.append({"id": part.id, "name": part.name, "arguments": arguments})
        elif isinstance(part, ToolResult):
            flags = {"is_error": part.is_error, "media": part.media_count}
            known = {name: value for name, value in flags.items() if value}
            results.append({"id": part.id, "text": part.text, **known})
    found: dict[str, Any] = {
        "role": message.role.value,
        "content": message.text,
        "thinking": "\n".join(part.text for part in parts if isinstance(part, Thinking)),
        "calls": calls,
        "results": results,
        "media": media + sum(result.media_count for result in message.results),
    }
    kept = ("role", "content") if any(isinstance(part, Text) for part in parts) else ("role",)
    return {key: value for key, value in found.items() if value or key in kept}


_PAGE = "Write the page to FILE (- is stdout); without it, print a short view."


@click.command(params=parameters("FILE|DIR…", "html", "recursive", "target", "preset", "format", "jobs", html=_PAGE))
def show(operands: tuple[str, ...], **given: object) -> int:
    """Show transcripts before and after: what stays, what the summary says, what is lost. Nothing is compacted.

    The page of one transcript has every record, marked with what becomes of it, and each reference in the summary
    leads to its record; that of several has their sizes, savings, losses and failures.
    """
    from compactor_cli.cli.run_command import run

    if len(operands) > 1 and given["html"] is None:
        raise UsageError("several transcripts are no short view", next_step="name a page: --html FILE")
    return run(operands, given, only_look=True)
