"""Configuration: the layers of settings and options, merged and checked.

From strongest to weakest: command line, ``COMPACT_*``, the project's file, the user's file, the preset, built-in
values. The project's file is ``compact.toml``, or ``[tool.compact]`` in ``pyproject.toml``, in the working directory;
inside a git work tree the folders up to its root are searched too, and only the nearest file is used. A file holds
option names (``keep-tail = "16k"``) and tables of `Settings` (``[trigger]``, ``[keep]``, ``[budget]``, ``[[prune]]``).
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli.archive.atomic import system_errors
from compactor_cli.cli.console import Level
from compactor_cli.cli.options import BY_NAME, OPTIONS, SET, DeclaredOptions, Group, Option, OptionKind, Scope
from compactor_cli.model import settings as model_settings
from compactor_cli.model.errors import UsageError
from compactor_cli.model.plugins import WhenFailing
from compactor_cli.model.settings import KEPT_BY, NEWEST, Settings, nearest, settings_from, with_head, with_tail
from compactor_cli.model.value import dataclass
from compactor_cli.presets import DEFAULT, is_preset_file, load_preset
from compactor_cli.read.sources import Walk, config_folder
from compactor_cli.read.streams import ReadLimits
from compactor_cli.run.jobs import Originals, Purpose
from compactor_cli.run.outputs import STDOUT, check_folder

if TYPE_CHECKING:
    from compactor_cli.render.convert import OutputShape

# With -i and -r nobody checks each file, so that those which an agent may still be writing are left alone.
DEFAULT_MIN_AGE_SECONDS = 600.0
# Hidden folders that hold originals, or files that no agent wrote.
_NEVER_READ = (".transcripts", ".git")
PREFIX = "COMPACT_"
PROJECT_FILES = ("compact.toml", "pyproject.toml")
MAX_FILE_BYTES = 1 << 20
_RULE_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")

TABLES = frozenset(field.name for field in fields(Settings)) - BY_NAME.keys()
# Names of an option and also of a table of settings.
BOTH = ("keep", "budget")
# The tables that a project's file may have; and for each key of such a file, where it may be set.
PROJECT_TABLES = frozenset({"trigger", "keep", "prune", "budget", "strategy", "rules", "fit", "language"})
_SCOPES = {
    **dict.fromkeys(TABLES, Scope.NOT_PROJECT),
    **{option.name: option.scope for option in OPTIONS},
    **dict.fromkeys(PROJECT_TABLES, Scope.ANYWHERE),
    "api_key": Scope.KEYS,
    "no_archive": Scope.ARCHIVE,
    "acknowledgement": Scope.WORDS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The values from one source."""

    where: str  # the source, for messages
    options: Mapping[str, Any]  # values of options by name, parsed
    tables: Mapping[str, Any]  # tables of `Settings` as they were written


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All layers merged."""

    settings: Settings
    options: Mapping[str, Any]  # values of the options that are not settings, by name
    sources: tuple[str, ...]  # the names of the layers, strongest first
    named: frozenset[str]  # options given on the command line
    warnings: tuple[str, ...]  # about variables that were ignored


def configure(
    given: Mapping[str, Any], environ: Mapping[str, str] = os.environ, folder: Path | None = None
) -> Configuration:
    """The configuration of a run in ``folder``, by default the working directory.

    ``given`` is the command line, by option name; what is None or () was not given.
    Raises UsageError for a value that cannot be read, an unknown key (with the nearest known name), and
    for what a layer may not set.
    """
    project, command_line = _project(folder or Path.cwd()), _command_line(given)
    environment, warnings = _environment(environ)
    user = config_folder(environ) / "config.toml"
    layers = [command_line, environment, project, _file_layer(_table(user) or {}, str(user))]
    layers = [layer for layer in layers if layer.options or layer.tables]
    merged: dict[str, Any] = {}
    for layer in reversed(layers):
        merged |= layer.options
    preset = load_preset(merged.get("preset", DEFAULT))
    settings = preset.with_environment(environ)
    for layer in reversed(layers):
        weaker, settings = settings, settings_from(layer.tables, settings, layer.where)
        # Sorted, so that a window in tokens overrides one by a model's name in the same layer, in whatever order they
        # are.
        for name, value in sorted(layer.options.items()):
            if BY_NAME[name].into:
                settings = setting(BY_NAME[name], value, settings)
        if layer is project and settings.min_retention_ratio < weaker.min_retention_ratio:
            raise _refused("ask for less to survive than you do", "min-retention", layer.where)
    options = {name: value for name, value in merged.items() if not BY_NAME[name].into}
    sources = (*(layer.where for layer in layers), f"preset {preset.name}")
    named = frozenset(command_line.options)
    return Configuration(settings=settings, options=options, sources=sources, named=named, warnings=warnings)


def _command_line(given: Mapping[str, Any]) -> Layer:
    """The layer of the command line; ``--set`` names an option or a value of a table (``keep.tail_turns``)."""
    tables: dict[str, Any] = {}
    options: dict[str, Any] = {}
    plain = {name: value for name, value in given.items() if value not in (None, ())}
    for entry in plain.pop(SET.name, ()):
        key, equals, text = (part.strip() for part in entry.partition("="))
        if not equals:
            raise UsageError(f"“{entry}” sets nothing", next_step="write KEY=VALUE, as rpm=60", place="--set")
        name = key.replace("-", "_")
        table, dot, rest = name.partition(".")
        where = f"--set {name}"
        if not dot and name in BY_NAME:
            value: Any = text.split(os.pathsep) if BY_NAME[name].kind is OptionKind.LIST else text
            options[name] = read_value(BY_NAME[name], value, where)
        elif table in (*TABLES, *BOTH):
            try:
                value = tomllib.loads(f"value = {text}")["value"] if text[:1] in ("[", "{") else text
            except tomllib.TOMLDecodeError as error:
                advice = 'write ["a", "b"]'
                raise UsageError(f"not valid TOML: {error}", next_step=advice, place=where) from error
            for key in reversed(rest.split(".") if dot else ()):
                value = {key: value}
            tables[table] = tables.get(table, {}) | value if dot else value
        else:
            raise _unknown(name, name, "--set")
    options |= {name: read_value(BY_NAME[name], value, f"--{BY_NAME[name].key}") for name, value in plain.items()}
    return Layer(where="command line", options=options, tables=tables)


def _environment(environ: Mapping[str, str]) -> tuple[Layer, tuple[str, ...]]:
    """The values of the variables, and a warning for each that is not an option of this version."""
    options: dict[str, Any] = {}
    warnings: list[str] = []
    for variable in sorted(name for name in environ if name.startswith(PREFIX) and environ[name]):
        name = variable.removeprefix(PREFIX).lower()
        if name not in BY_NAME:
            known = (PREFIX + item.name.upper() for item in OPTIONS if item.scope is not Scope.COMMAND_LINE)
            advice = nearest(variable, known)
            what = f"{variable} in the environment is not an option of compact and is passed over"
            warnings.append(f"{what}: {advice}" if advice else what)
            continue
        option = _known(name, "environment", variable)
        value: Any = environ[variable]
        value = value.split(os.pathsep) if option.kind is OptionKind.LIST else value
        options[name] = read_value(option, value, variable)
    return Layer(where="environment", options=options, tables={}), tuple(warnings)


def _known(name: str, where: str, written: str) -> Option:
    """The option of this name. Raises UsageError if there is none, or if only the command line may have it."""
    option = BY_NAME.get(name)
    if option is None:
        raise _unknown(name, written, where)
    if option.scope is Scope.COMMAND_LINE:
        raise UsageError(f"{written} can only be given on the command line", next_step="leave it out", place=where)
    return option


def _unknown(name: str, written: str, where: str) -> UsageError:
    keys = [item.key for item in OPTIONS if where == "--set" or item.scope is not Scope.COMMAND_LINE]
    advice = nearest(name.replace("_", "-"), [*keys, *TABLES]) or "see compactor schema config"
    return UsageError(f"unknown key {written}", next_step=advice, place=where)


def read_value(option: Option, value: Any, where: str) -> Any:
    """Parse the value by the option's kind. Raises UsageError that names ``where`` and what to write."""
    if option.kind is OptionKind.CHOICE:
        return model_settings.read_choice(value, option.choices, where)
    value = [value] if option.kind is OptionKind.LIST and isinstance(value, str) else value
    return _READERS.get(option.kind, model_settings.read_text)(value, where)


def setting(option: Option, value: Any, settings: Settings) -> Settings:
    """The settings with this option set. A head or tail replaces the one of weaker layers as a whole."""
    if option.name == "keep_head":
        return replace(settings, keep=with_head(settings.keep, *value))
    if option.name == "keep_tail":
        return replace(settings, keep=with_tail(settings.keep, *value))
    if option.name == "budget":
        value = replace(value, most_ratio=settings.budget.most_ratio)
    table, dot, key = option.into.partition(".")
    change = {table: model_settings.replaced(getattr(settings, table), {key: value}) if dot else value}
    return replace(settings, **change)


_READERS: Mapping[OptionKind, Callable[[Any, str], Any]] = {
    OptionKind.LIST: model_settings.read_texts,
    OptionKind.FLAG: model_settings.read_switch,
    OptionKind.PAIR: model_settings.read_switch,
    OptionKind.TALLY: model_settings.read_count,
    OptionKind.COUNT: model_settings.read_count,
    OptionKind.TOKENS: model_settings.read_tokens,
    OptionKind.TARGET: model_settings.read_target,
    OptionKind.HEAD: model_settings.read_head,
    OptionKind.TAIL: model_settings.read_tail,
    OptionKind.RATIO: model_settings.read_ratio,
    OptionKind.SECONDS: model_settings.read_seconds,
    OptionKind.BUDGET: model_settings.read_budget,
    OptionKind.MONEY: model_settings.read_money,
    OptionKind.BYTES: model_settings.read_size_bytes,
}


def _project(folder: Path) -> Layer:
    above = (folder.absolute(), *folder.absolute().parents)
    # Folders up to the root of the git work tree are searched; without a work tree, only this folder.
    root = next((depth for depth, place in enumerate(above) if (place / ".git").exists()), 0)
    for place in above[: root + 1]:
        for name in PROJECT_FILES:
            where = str(place / name)
            table: Any = _table(place / name)
            for key in ("tool", "compact") if name == "pyproject.toml" else ():
                table = (table or {}).get(key)
                if table is not None and not isinstance(table, Mapping):
                    advice = "write [tool.compact] and keys below it"
                    raise UsageError(f"{key} is not a table", next_step=advice, place=where)
            if table is not None:
                _refuse(table, where)
                return _file_layer(table, where)
    return Layer(where="", options={}, tables={})


def _refuse(table: Mapping[str, Any], where: str) -> None:
    """Raise UsageError for what a project's file may not set; see `Scope`."""
    for key, value in table.items():
        name = key.replace("-", "_")
        scope = _SCOPES.get(name, Scope.ANYWHERE)  # other checks refuse unknown keys and those of the command line
        if scope not in (Scope.ANYWHERE, Scope.COMMAND_LINE):
            raise _refused(scope.value, key, where)
        reason = _WEAKENING[name](value) if name in _WEAKENING else ""
        if reason:
            raise _refused(reason, f"{key} = {value!r}", where)
    rules = table.get("prune")
    # The marker of a rule is written into transcripts, and its name into reports.
    for rule in (rule for rule in (rules if isinstance(rules, list) else ()) if isinstance(rule, Mapping)):
        if any(key.replace("-", "_") == "marker" for key in rule):
            raise _refused(Scope.WORDS.value, "prune: marker", where)
        named = rule.get("name")
        if isinstance(named, str) and named and not _RULE_NAME.fullmatch(named):
            raise _refused("name a rule so; letters, digits, - and _, at most 40", f"prune: name = {named!r}", where)
    keep = table.get("keep", NEWEST)
    by = keep.get("by", NEWEST) if isinstance(keep, Mapping) else keep
    if by not in KEPT_BY:
        advice = f"one of {', '.join(KEPT_BY)}; a plug-in only on the command line or in your own config.toml"
        raise UsageError(f"a project's file may not choose code to run (keep = {by!r})", next_step=advice, place=where)


def _refused(reason: str, key: str, where: str) -> UsageError:
    advice = "set it on the command line or in your own config.toml"
    return UsageError(f"a project's file may not {reason} ({key})", next_step=advice, place=where)


# Values that a project's file may not use although it may set the option: the reason, or an empty string.
_WEAKENING: Mapping[str, Callable[[Any], str]] = {
    "preset": lambda value: "choose files to read" if is_preset_file(str(value)) else "",
    "on_invalid": lambda value: "leave out or pass over lines" if value in ("keep", "drop") else "",
    "strict": lambda value: "" if value is True else "switch off strictness",
}


def _file_layer(table: Mapping[str, Any], where: str) -> Layer:
    tables: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name in TABLES or (name in BOTH and isinstance(value, Mapping)):
            tables[name] = value
        else:
            options[name] = read_value(_known(name, where, key), value, f"{where}: {key}")
    return Layer(where=where, options=options, tables=tables)


def _table(path: Path) -> dict[str, Any] | None:
    """Read a TOML file; None if it does not exist.

    Raises UsageError for a file that cannot be read, is not regular, or is larger than `MAX_FILE_BYTES`. Opening never
    waits, not even for the writer of a pipe.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError("not a regular file", next_step="move it away, or write a TOML file", place=str(path))
            # A single read returns all of a regular file of this size.
            data = os.read(descriptor, MAX_FILE_BYTES + 1)
        finally:
            os.close(descriptor)
        if len(data) > MAX_FILE_BYTES:
            what = f"larger than {MAX_FILE_BYTES >> 10} KiB, so it holds no settings"
            raise UsageError(what, next_step="move it away", place=str(path))
        return tomllib.loads(data.decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except RecursionError:
        raise UsageError("nested too deeply", next_step="fix the file", place=str(path)) from None
    except ValueError as error:  # not TOML, not UTF-8, a number of thousands of digits
        raise UsageError(f"not valid TOML: {error}", next_step="fix the file", place=str(path)) from error
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", next_step="check its owner", place=str(path)) from error


class RunOptions(DeclaredOptions):
    """The options of a run, with values derived from them."""

    @property
    def purpose(self) -> Purpose:
        """What the run does. A check, a difference and a saved plan need the summary too, so that they are a trial."""
        if self.check or self.diff or self.plan_out or (self.dry_run and self.html) or self.shows_result:
            return Purpose.TRY
        return Purpose.PLAN if self.dry_run else Purpose.ACT

    @property
    def has_place(self) -> bool:
        """Whether an option says where the result goes."""
        return bool(self.output or self.output_dir or self.in_place or self.append)

    @property
    def shows_result(self) -> bool:
        """Whether only a short view of the result is shown: on a terminal, if no place for the result is named."""
        is_text = self.to in ("markdown", "text")  # readable as it is
        looks = self.dry_run or self.check or self.diff or self.interactive
        is_shown = self.stdout_is_terminal or self.only_look
        return is_shown and not (self.has_place or looks or self.no_compact or is_text)

    @property
    def shape(self) -> OutputShape | None:
        """The format of the outputs; None for that of the input. Raises UsageError for one that cannot be written."""
        if not self.to and not self.arrow:
            return None
        from compactor_cli.render.convert import OutputShape

        return OutputShape.checked(dialect=self.to, is_arrow=self.arrow, is_split=self.split_at_boundaries)

    @property
    def walk(self) -> Walk:
        """How folders are searched: for the globs that are named, or else for sessions and transcript documents."""
        exclude = (*self.exclude, *(_NEVER_READ if self.hidden else ()))
        skip = tuple(filter(None, (self.output_dir, self.archive_dir, *self.written_besides)))
        if self.include:
            return Walk(include=self.include, exclude=exclude, skip=skip, hidden=self.hidden)
        from compactor_cli.formats.registry import DOCUMENTS

        return Walk(candidates=DOCUMENTS, exclude=exclude, skip=skip, hidden=self.hidden)

    @property
    def written_besides(self) -> tuple[str, ...]:
        """The paths of the files written in addition to the result: a report, a page and the like."""
        return tuple(path for name in BEGINNINGS if (path := getattr(self, name)))

    @property
    def level(self) -> int:
        """How much is printed."""
        return max(Level.NOTHING, min(Level.WHY, self.verbose - self.quiet))

    @property
    def min_age_seconds(self) -> float:
        """The least age of an input; newer ones are skipped."""
        replaces = self.in_place or self.append
        if self.min_age is not None:
            return self.min_age if replaces or self.recursive else 0.0
        return DEFAULT_MIN_AGE_SECONDS if replaces and self.recursive else 0.0

    @property
    def limits(self) -> ReadLimits:
        """The limits on the size of an input."""
        return ReadLimits(line_bytes=self.max_line, unpacked_bytes=self.max_unpacked, unpacked_ratio=self.max_ratio)

    @property
    def processes(self) -> int:
        """How many processes may work; one if a person is asked, as only one summary can be asked about at a time."""
        if self.interactive:
            return 1
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        return self.jobs or cores

    @property
    def when_failing(self) -> WhenFailing:
        """What to do if a plug-in fails."""
        return WhenFailing.FAIL if self.strict else WhenFailing.BUILT_IN

    @property
    def originals(self) -> Originals:
        """Which originals are archived; by default those of inputs that are replaced or appended to."""
        if self.archive is None:
            return Originals.ARCHIVED if self.archive_dir else Originals.REPLACED
        return Originals.ARCHIVED if self.archive else Originals.NOT_KEPT

    @property
    def stdout_is_taken(self) -> bool:
        """Whether transcripts or plans go to standard output."""
        if self.only_look and self.html:
            return False
        if self.purpose is not Purpose.ACT:
            return self.dry_run or self.diff or self.plan_out == STDOUT or not (self.check or self.plan_out)
        return not (self.in_place or self.append or self.output_dir or self.output not in ("", STDOUT))


def check(run_options: RunOptions, named: Collection[str]) -> None:
    """Raise UsageError for run options that exclude one another; ``named`` are those given on the command line."""
    for is_wrong, what, advice in _CONFLICTS:
        if is_wrong(run_options):
            raise UsageError(what, next_step=advice)
    on_stdout = [what for name, what in _WRITTEN.items() if getattr(run_options, name) in (STDOUT, "fd:1")]
    if len(on_stdout) > 1:
        what = f"standard output cannot hold {on_stdout[0]} and {on_stdout[1]}"
        raise UsageError(what, next_step="write one of them to a file")
    if on_stdout and run_options.stdout_is_taken:
        what = f"standard output holds the result and cannot hold {on_stdout[0]}"
        raise UsageError(what, next_step="write that to a file, or the result with -o")
    for name in BEGINNINGS:
        check_written(name, getattr(run_options, name))
        if name != "events":
            check_folder(getattr(run_options, name))
    about_models = [item for item in OPTIONS if item.group is Group.MODEL and item.name in named]
    settled = [item for item in OPTIONS if item.group is Group.KEEP and item.name in named] + about_models
    if about_models and not (run_options.model or run_options.embedding_model):
        raise UsageError(f"{_written(about_models[0])} is about a model, and none is named", next_step="add -m MODEL")
    if run_options.no_compact and settled:
        what = f"--no-compact leaves nothing to {_written(settled[0])}"
        raise UsageError(what, next_step="leave one of them out")
    refused = [item for item in settled if item.name != "strict"]
    if run_options.plan and refused:
        what = f"--plan holds its own settings, so {_written(refused[0])} cannot be given"
        raise UsageError(what, next_step="plan again with it")


def check_written(name: str, path: str) -> None:
    """Raise UsageError if the file exists and, by its first bytes, was not written by this option before."""
    if path == STDOUT or not os.path.isfile(path):  # noqa: PTH113 -- which raises nothing
        return
    with system_errors(path), Path(path).open("rb") as file:
        start = file.read(_MOST_BEGINNING_BYTES)
    if start and not start.startswith(BEGINNINGS[name]):
        what = f"is there already, and is not what {_written(BY_NAME[name])} writes"
        raise UsageError(what, next_step="name another FILE", place=path)


def _written(option: Option) -> str:
    """The name of the option on the command line."""
    return f"--{option.key}" if option.flags else f"--set {option.key}"


# The options that write files in addition to the result, except for plans, which with -n replace what is shown.
_WRITTEN = {
    "report": "the report",
    "html": "the page",
    "metrics": "the metrics",
    "summary_rows": "the rows of the summariser's calls",
    "events": "the events",
}
# The first bytes of such files and of plans. An existing file that begins otherwise is not overwritten: if the user
# forgets the FILE of an option, the next word on the command line, often a transcript, is taken for it.
BEGINNINGS = {
    "report": (b'{\n  "schema": ', b'{\n "version": '),  # the second of shards
    "html": (b"<!doctype html>",),
    "metrics": (b'{\n  "conversations": ', b"# HELP compact_"),
    "summary_rows": (b'{"messages": ',),
    "events": (b'{"event": ',),
    "plan_out": (b'{"compact_plan":',),
}
_MOST_BEGINNING_BYTES = 64

# Conflicts of the options ``o``: the condition, what is wrong, and what to do.
_CONFLICTS: tuple[tuple[Callable[[RunOptions], bool], str, str], ...] = (
    (
        lambda o: bool((o.to or o.arrow) and (o.in_place or o.append)),
        "a file cannot become one of another format in its place",
        "name an output: -o FILE or --output-dir DIR",
    ),
    (lambda o: o.no_compact and not (o.to or o.arrow), "--no-compact leaves nothing to do", "name a format with --to"),
    (lambda o: o.split_at_boundaries and not o.to, "split-at-boundaries makes rows", "name their format with --to"),
    (
        lambda o: o.in_place and o.archive is False and not o.force,
        "-i without an archive loses the originals",
        "leave --no-archive out, or add -f if that is what you want",
    ),
    (
        lambda o: bool(o.plan_out and o.has_place and not o.dry_run),
        "--plan-out saves the plan and writes nothing else, but a place for the result is named",
        "leave the place out; then compact --plan FILE with it",
    ),
    (lambda o: bool(o.model and o.summariser), "-m and summariser exclude one another", "choose one"),
    (lambda o: bool(o.plan and o.plan_out), "--plan and --plan-out exclude one another", "choose one"),
    (
        lambda o: o.interactive and (o.purpose is not Purpose.ACT or o.plan != ""),
        "--interactive asks before it writes, and nothing is to be written",
        "leave one of them out",
    ),
    (lambda o: o.null and not o.files_from, "-0 is about --files-from", "name the list: --files-from FILE"),
    (
        lambda o: o.plan_out == STDOUT and o.diff,
        "standard output holds the difference and cannot hold the plan",
        "save the plan to a file",
    ),
)
