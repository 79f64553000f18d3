"""Commands of the toolbox that hand over to one other package: presets, formats, schemas, agents, evaluation.

Each imports what it needs only when it is run, since a client waits for the start of a hook.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compactor_cli.cli.console import Console, print_quoted, table
from compactor_cli.cli.program import AS_JSON, READ_AS
from compactor_cli.model.errors import CompactError, InputError, UsageError
from compactor_cli.model.settings import Size, read_count, read_seconds, read_size, read_tokens, settings_from
from compactor_cli.presets import DEFAULT, load_preset, preset_names
from compactor_cli.read.streams import STDIN

if TYPE_CHECKING:
    from compactor_cli.evaluate.cuts import EvalCase
    from compactor_cli.evaluate.methods import Baseline
    from compactor_cli.llm.model_client import ReplyCache


@click.command()
@click.argument("name", required=False)
@AS_JSON
def presets(name: str | None, as_json: bool) -> int:
    """List the presets, or print one as TOML.

    What is printed is a file to start one of your own from: compact --preset FILE.toml
    """
    if name:
        click.echo(load_preset(name).toml, nl=False)
        return 0
    rows = [(known, load_preset(known).about) for known in preset_names()]
    _print_about(("preset", "what it does"), rows, as_json)
    return 0


@click.command()
@AS_JSON
def formats(as_json: bool) -> int:
    """List the formats that are read and written, by the names that --format takes, and what each can hold.

    Those with a mark under "to" can also be written from nothing: compact --to NAME. "by" says what has read our
    output: the client whose sessions these are, the library whose format it is, or nothing but this program. Those
    of plug-ins come last.
    """
    from compactor_cli.formats.conversation import Writing
    from compactor_cli.formats.registry import NAMES, SHORT_NAMES, all_dialects, known, names_of
    from compactor_cli.model.plugins import PluginGroup, plugin_names

    objects: list[dict[str, Any]] = []
    rows: list[tuple[str, ...]] = []
    for dialect in all_dialects():
        evidence, is_written = known(dialect.name), isinstance(dialect, Writing)
        about = {"name": dialect.name, "about": dialect.title, "holds": names_of(dialect.holds), "to": is_written}
        objects.append({**about, **evidence._asdict()})
        marks = (is_written, *(flag in dialect.holds for flag in NAMES))
        rows.append((dialect.name, dialect.title, evidence.evidence.value, *("×" if mark else "" for mark in marks)))
    for name in sorted(set(plugin_names(PluginGroup.DIALECTS)) - {row[0] for row in rows}):
        evidence = known(name, is_plugin=True)
        objects.append({"name": name, "about": "(a plug-in)", **evidence._asdict()})
        rows.append((name, "(a plug-in)", evidence.evidence.value, *[""] * (len(NAMES) + 1)))
    if as_json:
        for value in objects:
            click.echo(json.dumps(value, ensure_ascii=False))
        return 0
    click.echo(table(("format", "what it is", "by", "to", *SHORT_NAMES), rows), nl=False)
    click.echo("\n" + ", ".join(f"{short}: {name}" for short, name in zip(SHORT_NAMES, NAMES.values(), strict=True)))
    return 0


@click.command()
@click.argument("name", required=False)
@AS_JSON
def schema(name: str | None, as_json: bool) -> int:
    """List the JSON Schemas, or print one."""
    from compactor_cli.run.documents import schema_names, schema_text

    if name:
        click.echo(schema_text(name), nl=False)
        return 0
    rows = [(known, json.loads(schema_text(known)).get("description", "")) for known in schema_names()]
    _print_about(("schema", "what it describes"), rows, as_json)
    return 0


def _print_about(head: tuple[str, str], rows: list[tuple[str, str]], as_json: bool) -> None:
    if as_json:
        for name, about in rows:
            click.echo(json.dumps({"name": name, "about": about}, ensure_ascii=False))
    else:
        click.echo(table(head, rows), nl=False)


_TOOL_ABOUT = (
    "Replace the conversation so far by a summary, to make room. Call it when much of what was said is no longer "
    "needed word for word, and never while another tool call waits for its result. The full text is archived."
)
_TOOL_FOCUS = "What the summary must keep in detail: a file, a question, a decision. Leave it out if all matters alike."


@click.command("tool-schema")
@click.option(
    "--form", type=click.Choice(("openai", "anthropic")), default="openai", show_default=True, help="Whose API."
)
@click.option("--preset", default="l06", show_default=True, metavar="NAME", help="The preset that listens to it.")
def tool_schema(form: str, preset: str) -> int:
    """Print the definition of the tool by which a model asks for a compaction, for an agent to register.

    A transcript whose newest turn calls it is compacted there, at any size, its focus kept first:
    compact --preset l06
    """
    name = load_preset(preset).settings.trigger.tool
    if not name:
        raise UsageError(f"the preset {preset} listens to no tool", next_step="set trigger.tool in it, or take l06")
    click.echo(json.dumps(definition(name, form), indent=2))
    return 0


def definition(name: str, form: str) -> dict[str, Any]:
    """The definition of the tool for OpenAI's chat completions or Anthropic's messages."""
    parameters = {
        "type": "object",
        "properties": {"focus": {"type": "string", "description": _TOOL_FOCUS}},
        "required": [],
        "additionalProperties": False,
    }
    if form == "anthropic":
        return {"name": name, "description": _TOOL_ABOUT, "input_schema": parameters}
    return {"type": "function", "function": {"name": name, "description": _TOOL_ABOUT, "parameters": parameters}}


@click.group(no_args_is_help=True)
def cache() -> None:
    """Look at, or make room in, the stored replies of models."""


@cache.command()
def stats() -> int:
    """How many replies there are, their size, and what they cost."""
    from datetime import UTC, datetime

    from compactor_cli.llm.model_client import ReplyCache, replies_file

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
    from compactor_cli.llm.model_client import ReplyCache, replies_file

    store = ReplyCache(replies_file())
    gone = store.prune(older_than_seconds=read_seconds(older_than, "--older-than"), max_bytes=max_bytes)
    click.echo(f"{gone:,} replies removed")
    return _trouble(store)


def _trouble(store: ReplyCache) -> int:
    """Print what is wrong with the cache, if anything; returns the exit code."""
    if not store.trouble:
        return 0
    click.echo(f"compactor: the reply cache: {store.trouble}", err=True)
    return CompactError.exit_code


@click.command()
@click.argument("file", default=STDIN, metavar="[FILE]", type=click.UNPROCESSED)
@click.option("--size", metavar="TOKENS", help="The most that it may be; default: by what it covers.")
@click.option("--chars", metavar="N", type=click.IntRange(min=1), help="The most characters that it may have.")
@click.option("--but-newest", metavar="SIZE", default="0", help="Leave the newest out: 8k, 2turns, 6messages.")
@click.option("--focus", metavar="TEXT", default="", help="Keep what TEXT names first.")
@click.option("--archive-dir", metavar="DIR", default="", help="Store the session there, for search and expand.")
@click.option("--source", metavar="NAME", default="", help="With --archive-dir: where the session is from.")
@READ_AS
@click.option("--preset", default=DEFAULT, show_default=True, metavar="NAME", help="Take its template and sections.")
@click.option("--json", "as_json", is_flag=True, help="An object: the summary, what stays after it, sizes.")
def digest(file: str, as_json: bool, **given: Any) -> int:
    """Print the summary of a session alone: FILE or standard input, of any format.

    Nothing is changed, and nothing is stored without --archive-dir. With --json: summary, first_kept (index and id of
    the first record after it; null if none stays), kept (indices, from 0), tokens_before, transcript (its SHA-256).
    """
    from compactor_cli.agents.session_digest import SizeLimit, digest_session, read_session
    from compactor_cli.archive.store import Archive

    bounds = {"tokens": read_tokens(given["size"], "--size") if given["size"] else 0, "chars": given["chars"] or 0}
    if not as_json:  # the line break at the end counts as well
        bounds = {name: max(bound - 1, 1) if bound else 0 for name, bound in bounds.items()}
    tables = {"keep_tail": given["but_newest"], "focus": given["focus"]}
    settings = settings_from(tables, load_preset(given["preset"]).settings, "options")
    if given["source"] and not given["archive_dir"]:
        raise UsageError("--source is of what is stored", next_step="add --archive-dir")
    found = digest_session(
        read_session(file, given["dialect"]),
        settings,
        limit=SizeLimit(**bounds),
        archive=Archive(given["archive_dir"]) if given["archive_dir"] else None,
        source=given["source"] or (str(Path(file).absolute()) if file != STDIN else ""),
    )
    text = json.dumps(found.as_json(), ensure_ascii=False) if as_json else found.summary
    print_quoted(f"{text}\n" if text else "")
    return 0


@click.command()
@click.option("--archive-dir", metavar="DIR", default="", help="Look there; default: all that runs of yours wrote to.")
def mcp(archive_dir: str) -> int:
    """Serve the archive to an agent: the tools search, expand and dropped of the Model Context Protocol.

    For a client to start, which speaks with it on standard input and output. It reads this user's archives, and
    changes nothing but their indexes.
    """
    from compactor_cli.agents.mcp import serve_standard_streams

    serve_standard_streams(archive_dir)
    return 0


class _NeverBlocks(click.Command):
    """A command that exits with 0 after a usage error, since exit code 2 would stop a client's compaction."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; usage errors are printed, and the command exits with 0."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            click.echo(f"compactor hook: {error.format_message()}", err=True)
            ctx.exit(0)


@click.command(cls=_NeverBlocks)
@click.argument("event")
@click.option("--client", required=True, metavar="NAME", help="Whose hook this is: claude-code, codex, qwen-code.")
def hook(event: str, client: str) -> int:
    """Answer a client's hook: EVENT is PreCompact, SessionStart or UserPromptSubmit; its JSON is on standard input.

    Before a compaction the session is archived and the client's summary is steered; after it the digest is added to
    the context, once. It never blocks: whatever fails, the exit code is 0, nothing is printed, and a line of
    ~/.local/state/compact/hooks.log says why. compactor install writes the settings that call it.
    """
    from compactor_cli.agents.hook import run_hook

    answer = run_hook(event, client, lambda: sys.stdin.buffer.read())
    # A separate file object, so that the interpreter does not try again at exit what could not be written.
    with suppress(OSError), open(1, "wb", closefd=False) as out:
        out.write(f"{answer}\n".encode("utf-8", "replace") if answer else b"")
    return 0


@click.command()
@click.argument("client", metavar="CLIENT")
@click.option("--project", is_flag=True, help="In the project of this folder, not for you everywhere.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--remove", is_flag=True, help="Take it out again; files become what they were.")
def install(client: str, project: bool, dry_run: bool, remove: bool) -> int:
    """Set compact up in CLIENT: claude-code, codex, gemini-cli, kimi, opencode, pi or qwen-code.

    Entries are put into the client's own settings, in which everything else stays as it is, comments and order too;
    the difference is shown first. Then the client's compactions keep a digest, and its model can look up what they
    left out.
    """
    from difflib import unified_diff

    from compactor_cli.agents.install import InstallPlace, load_client
    from compactor_cli.agents.install import install as added
    from compactor_cli.agents.install import remove as removed
    from compactor_cli.read.sources import home_folder

    found = load_client(client)
    place = InstallPlace(home=home_folder(), project=Path.cwd() if project else None)
    changes = tuple((removed if remove else added)(found, place))
    for change in changes:
        before, after = (text.splitlines() if text else [] for text in (change.before, change.after))
        name = str(change.path)
        for line in unified_diff(before, after, name, name if change.after is not None else "/dev/null", lineterm=""):
            click.echo(line)
    for change in () if dry_run else changes:
        change.write()
    console = Console("compactor")
    if not changes:
        console.warn(f"{found.title}: nothing to do, it is {'not installed' if remove else 'installed already'}")
    elif dry_run:
        console.warn("nothing was written")
    elif not remove:
        console.warn(f"{found.title}: installed. {found.by_hand}")
    return 0


GATES_FAILED = 1
_PRESET = "preset:"


@click.command("eval")
@click.argument("paths", nargs=-1)
@click.option("--questions", multiple=True, metavar="FILE…", help="Ask these questions (JSONL) of the summaries.")
@click.option(
    "--at", type=click.Choice(["client"]), help="Questions only where a client compacted, at its summary's size."
)
@click.option("--summaries", metavar="FOLDER", help="Write the summaries that were asked there, as JSONL.")
@click.option("--replies", metavar="FOLDER", help="Measure replies of models (JSONL), supplemented as in a run.")
@click.option("--misses", is_flag=True, help="List the questions that the digest does not answer.")
@click.option(
    "--baselines",
    multiple=True,
    metavar="NAME",
    help="Compare with these (comma-separated): all, a name, or preset:NAME.",
)
@click.option(
    "--baseline-cmd", "commands", multiple=True, metavar="CMD", help="A baseline that reads and writes JSONL."
)
@click.option(
    "--budgets", metavar="SIZES", help="Shares of the middle or tokens; default 2%,5%,10%,20%,1k,2k,4k; asked: 1500,5%."
)
@click.option("--format", "dialect", default="", metavar="NAME", help="Only transcripts of this format.")
@click.option("--limit", type=int, default=0, metavar="N", help="At most N files, spread over all.")
@click.option(
    "--tail",
    "tails",
    multiple=True,
    metavar="[PART=]TOKENS",
    help="What is kept before each cut (in paths that hold PART); default 8k, at a client 0.",
)
@click.option("--rounds", metavar="LIST", default="1,2,5,10", help="Updates in a row for the drift; default 1,2,5,10.")
@click.option("--drift/--no-drift", default=True, help="Measure the drift (default).")
@click.option("--plot", metavar="FILE.svg", help="Draw the figures.")
@click.option("--json", "as_json", is_flag=True, help="Everything as one JSON document.")
@click.option("--seed", type=int, default=0, help="Of the bootstrap.")
@click.option("-j", "--jobs", type=int, default=1, metavar="N", help="Processes.")
def evaluation(paths: tuple[str, ...], questions: tuple[str, ...], replies: str | None, **given: Any) -> int:
    """Cut transcripts, compact what is before the cut, and measure how well the summary covers what the rest needs.

    With --questions, each FILE (PATHS are further ones) holds questions with gold answers: measured is how many of
    them a summary answers, the digest's and those of baselines, at equal tokens.

    With --replies, each row (file, cut, text) of the FOLDER's JSONL is the reply of a model: measured is the summary
    that a run would make of it, against its text alone and the digest; with questions, these are asked too.

    Exit code 1 if a digest breaks a gate: over its budget, something invented, or not the same twice.
    """
    if replies:
        from compactor_cli.evaluate.questions import render_replies, replies_json, run_replies

        found = run_replies(replies, (*questions, *paths))
        _print_found(replies_json(found) if given["as_json"] else render_replies(found))
        return 0
    if questions:
        _run_questions((*questions, *paths), given)
        return 0
    if unused := [name for name in ("at", "summaries", "misses") if given[name]]:
        raise UsageError(f"--{unused[0]} needs --questions", next_step="name a file of questions")
    if not paths:
        raise UsageError("nothing to evaluate", next_step="name files or folders, or --questions FILE")
    return _run_measures(paths, given)


def _run_questions(paths: tuple[str, ...], given: dict[str, Any]) -> None:
    from compactor_cli.evaluate import questions as asked
    from compactor_cli.evaluate.cuts import CutRule

    at_client = given["at"] is not None
    for mode, option, value in (
        ("--questions", "--plot", given["plot"]),
        ("--questions", "--baseline-cmd", given["commands"]),
        ("--questions", "--limit", given["limit"]),
        ("--at client", "--budgets", at_client and given["budgets"]),
    ):
        if value:  # the option would have no effect
            raise UsageError(f"{option} does not go with {mode}", next_step="leave one of them out")
    names = _baseline_names(given["baselines"])
    # A client's own summary covers everything before the cut, so that there is no tail.
    tail_tokens, tails = _tail_tokens(given["tails"], everywhere=0 if at_client else CutRule().tail_tokens)
    options = asked.QuestionOptions(
        paths=paths,
        baselines=names or asked.DEFAULT_BASELINES,
        budgets=_budget_sizes(given["budgets"]) or asked.DEFAULT_BUDGETS,
        at_client=at_client,
        tail_tokens=tail_tokens,
        tails=tails,
    )
    with Console("compactor").progress("compactor eval", 0, "cut") as progress:
        presets = _preset_methods(names)
        result = asked.run_questions(options, presets, progress.advance)
    if given["summaries"]:
        asked.write_summaries(result, given["summaries"])
    _print_found(asked.questions_json(result) if given["as_json"] else asked.render_questions(result, given["misses"]))


def _run_measures(paths: tuple[str, ...], given: dict[str, Any]) -> int:
    from compactor_cli.evaluate.cuts import CutRule
    from compactor_cli.evaluate.run_eval import DEFAULT_BUDGETS, EvalOptions, run_eval
    from compactor_cli.evaluate.tables import draw, render_table, to_json

    tail_tokens, parts = _tail_tokens(given["tails"], CutRule().tail_tokens)
    if parts:
        raise UsageError("a tail for some paths only goes with --questions", next_step="write --tail TOKENS")
    rounds = given["rounds"].split(",") if given["drift"] else ()
    options = EvalOptions(
        baselines=_baseline_names(given["baselines"]),
        commands=tuple(given["commands"]),
        budgets=_budget_sizes(given["budgets"]) or DEFAULT_BUDGETS,
        tail_tokens=tail_tokens,
        rounds=tuple(read_count(item, "--rounds") for item in rounds),
        **{name: given[name] for name in ("dialect", "limit", "jobs", "seed")},
    )
    with Console("compactor").progress("compactor eval", 0, "file") as progress:
        presets = _preset_methods(options.baselines)
        result = run_eval(paths, options, presets, progress.advance)
    if not result.cases:
        why = "; ".join(dict.fromkeys(file.skipped for file in result.files)) or "there is no transcript"
        raise InputError(f"nothing was measured: {why}", place=" ".join(paths), next_step="name other files or folders")
    if given["plot"]:
        Path(given["plot"]).write_text(draw(result), encoding="utf-8")
    _print_found(to_json(result) if given["as_json"] else render_table(result))
    return 0 if result.gates_hold else GATES_FAILED


def _print_found(found: str | dict[str, Any]) -> None:
    """Print a text as it is, anything else as JSON."""
    sys.stdout.write(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, indent=1) + "\n")


def _baseline_names(baselines: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for item in baselines for name in item.split(","))


def _budget_sizes(budgets: str | None) -> tuple[Size, ...]:
    return tuple(read_size(item, "--budgets") for item in budgets.split(",")) if budgets else ()


def _tail_tokens(given: Sequence[str], everywhere: int) -> tuple[int, tuple[tuple[str, int], ...]]:
    """The tokens of the tail, and (part of a path, tokens) for some paths: ``8k``, ``chat=500``."""
    parts: list[tuple[str, int]] = []
    for item in given:
        part, is_part, size = item.rpartition("=")
        tokens = read_tokens(size, "--tail")
        if is_part:
            parts.append((part, tokens))
        else:
            everywhere = tokens
    return everywhere, tuple(parts)


def _output_of(preset: str, case: EvalCase, budget_tokens: int) -> bytes:
    """The output of compacting a case with a preset, at a target that leaves the summary this budget."""
    from compactor_cli.digest.digest import Digest
    from compactor_cli.engine import compact_transcript
    from compactor_cli.plan.tokens import counter_for

    target = Size(tokens=case.kept_tokens + budget_tokens)
    return compact_transcript(
        case.prefix,
        replace(load_preset(preset).settings, target=target),
        counter=counter_for(),
        summariser=Digest(),
        load_state=lambda name: None,
    ).output


def _preset_methods(baselines: Sequence[str]) -> tuple[Baseline, ...]:
    """The baselines that are presets. Raises UsageError for an unknown preset."""
    from compactor_cli.evaluate.methods import filter_baseline

    names = [name.removeprefix(_PRESET) for name in baselines if name.startswith(_PRESET)]
    for name in names:
        load_preset(name)
    return tuple(filter_baseline(f"{_PRESET}{name}", partial(_output_of, name)) for name in names)
