"""The options: one declaration each, from which flags, keys, variables, help, schema, man page and completion come.

An option named ``keep_tail`` is ``--keep-tail`` on the command line, ``COMPACT_KEEP_TAIL`` in the environment and
``keep-tail`` in a configuration file. An option without a flag is set on the command line by its key: ``--set rpm=60``.
`DeclaredOptions` declares the options of a run, `SETTINGS` those that set fields of `Settings`.
"""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from compactor_cli.model.value import dataclass


class OptionKind(StrEnum):
    """The kind of an option's value, which decides how it is parsed and completed."""

    FLAG = "flag"  # given or not given
    PAIR = "pair"  # --x / --no-x
    TALLY = "tally"  # counted: -vv
    TEXT = "text"
    LIST = "list"  # given any number of times
    COUNT = "count"
    TOKENS = "tokens"
    TARGET = "target"  # tokens or a share
    RATIO = "ratio"
    SECONDS = "seconds"
    CHOICE = "choice"
    HEAD = "head"  # tokens or turns
    TAIL = "tail"  # tokens, turns, messages or a share
    BUDGET = "budget"  # a curve or a size
    MONEY = "money"  # US dollars
    BYTES = "bytes"


class Group(StrEnum):
    """The sections of the help, in its order."""

    INPUT = "Input"
    OUTPUT = "Output"
    KEEP = "What to keep"
    LOOK = "Look first"
    MODEL = "A model's summary"
    RUN = "The run"


class Scope(StrEnum):
    """Where an option may be set.

    A project's file comes with a checkout and may be written by anybody: it may only set options that are `ANYWHERE`.
    The other members, except for `COMMAND_LINE`, are the reasons why it may not, as the error message has them.
    """

    ANYWHERE = "anywhere"
    COMMAND_LINE = "command line only"
    NOT_PROJECT = "set this"
    NETWORK = "turn on the network, or decide what is sent"
    KEYS = "name keys"
    COMMANDS = "run commands"
    CODE = "choose code to run"
    READS = "choose files to read"
    WRITES = "choose files to write"
    ARCHIVE = "weaken the archive"
    LIMITS = "raise the limits of memory"
    RECORDS = "change records that stay"
    LOCK = "switch off the lock"
    CARE = "weaken the care for files in use"
    WORDS = "write words into transcripts or prompts"


class Option(NamedTuple):
    """One option."""

    name: str
    group: Group
    kind: OptionKind
    help: str
    flags: tuple[str, ...] = ()  # as click takes them; empty: the option has only a key
    scope: Scope = Scope.NOT_PROJECT
    metavar: str = ""
    choices: tuple[str, ...] = ()
    default: Any = None
    into: str = ""  # the path of the field of `Settings` that it sets; empty: none
    values: str = ""  # names for completion: ``module:attribute``, a collection or a function that returns one

    @property
    def key(self) -> str:
        """Its name in a configuration file and after ``--set``."""
        return self.name.replace("_", "-")


T = TypeVar("T")
_KINDS = {bool: OptionKind.FLAG, str: OptionKind.TEXT, tuple: OptionKind.LIST}
# The placeholder of a value in the help, unless the option names one.
_METAVARS = {
    OptionKind.COUNT: "N",
    OptionKind.TOKENS: "TOKENS",
    OptionKind.TARGET: "TOKENS",
    OptionKind.RATIO: "SHARE",
    OptionKind.SECONDS: "TIME",
    OptionKind.HEAD: "SIZE",
    OptionKind.TAIL: "SIZE",
    OptionKind.BUDGET: "SIZE",
    OptionKind.MONEY: "USD",
    OptionKind.BYTES: "SIZE",
}
_K = OptionKind
_IN, _OUT, _KEEP, _LOOK, _LLM, _RUN = Group
_ANY, _ONLY, _NET = Scope.ANYWHERE, Scope.COMMAND_LINE, Scope.NETWORK


def _declare(
    name: str,
    into: str,
    kind: OptionKind,
    help: str,  # noqa: A002 -- click's word
    flags: str = "",
    scope: Scope = Scope.NOT_PROJECT,
    group: Group = Group.KEEP,
    **more: Any,
) -> Option:
    """Declare an option. ``flags`` are as in the help, followed by the placeholder: ``-t --target SIZE``."""
    words = flags.split()
    names = tuple(word for word in words if word.startswith("-"))
    metavar = "".join(words[len(names) :]) or _METAVARS.get(kind, "")
    return Option(name, group, kind, help, names, scope, metavar, into=into, **more)


def option(
    group: Group,
    default: T,
    help: str,  # noqa: A002 -- click's word
    flags: str = "",
    scope: Scope = Scope.NOT_PROJECT,
    *,
    kind: OptionKind | None = None,
    choices: tuple[str, ...] = (),
    values: str = "",
) -> T:
    """A field of `DeclaredOptions`; unless ``kind`` is given, it follows from choices, flags or the default."""
    if kind is None:
        kind = OptionKind.CHOICE if choices else _KINDS[type(default)]
    if "/" in flags:
        kind = OptionKind.PAIR
    declared = _declare("", "", kind, help, flags, scope, group, choices=choices, default=default, values=values)
    field: Any = dataclasses.field(default=default, metadata={"option": declared})
    return field  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredOptions:
    """The options of a run that are not settings. The run itself sets the last two fields, which are no options."""

    recursive: bool = option(
        _IN, False, "Take the transcripts below folders, known by their content.", "-r --recursive", _ONLY
    )
    last: str = option(
        _IN,
        "",
        "Take the newest session of this folder: of claude, codex, …, or of any (see: compactor sessions).",
        "--last CLIENT",
        _ONLY,
        values="cli.program:client_names",
    )
    files_from: str = option(_IN, "", "Read more operands from FILE (- is stdin).", "--files-from FILE", _ONLY)
    null: bool = option(_IN, False, "Names in --files-from end with NUL.", "-0 --null", _ONLY)
    include: tuple[str, ...] = option(_IN, (), "With -r: take names like GLOB.", "--include GLOB", Scope.READS)
    exclude: tuple[str, ...] = option(_IN, (), "With -r: leave out names like GLOB.", "--exclude GLOB", _ANY)
    hidden: bool = option(_IN, False, "With -r: read hidden files and folders too.", "--hidden", _ONLY)
    format: str = option(
        _IN, "", "Read as this format (see: compactor formats).", "--format NAME", _ANY, values="formats.registry:names"
    )
    on_invalid: str = option(
        _IN,
        "fail",
        "A line that is not JSON: fail this input (default), keep or drop the line.",
        "--on-invalid",
        _ANY,
        choices=("fail", "keep", "drop"),
    )
    min_age: float | None = option(
        _IN,
        None,
        "Skip files changed more recently; default 10m with -i and -r.",
        "--min-age AGE",
        Scope.CARE,
        kind=_K.SECONDS,
    )
    max_line: int = option(
        _IN, 128 << 20, "Longest line or document (default 128M; 0: any).", "", Scope.LIMITS, kind=_K.BYTES
    )
    max_unpacked: int = option(
        _IN, 16 << 30, "Unpacked size of an input (default 16G; 0: any).", "", Scope.LIMITS, kind=_K.BYTES
    )
    max_ratio: int = option(_IN, 1_000, "Unpacked to packed (default 1000; 0: any).", "", Scope.LIMITS, kind=_K.COUNT)

    output: str = option(
        _OUT, "", "Write to FILE, whole or not at all (- prints it, on a terminal too).", "-o --output FILE", _ONLY
    )
    output_dir: str = option(_OUT, "", "Write below DIR, the tree mirrored.", "--output-dir DIR", _ONLY)
    in_place: bool = option(_OUT, False, "Archive each file, then replace it.", "-i --in-place", _ONLY)
    append: bool = option(_OUT, False, "Write the client's own boundary after each file's bytes.", "--append", _ONLY)
    to: str = option(
        _OUT,
        "",
        "Write as this format (see: compactor formats), or as markdown or text.",
        "--to NAME",
        _ONLY,
        values="cli.program:written_dialects",
    )
    arrow: bool = option(_OUT, False, "Rows for Arrow: tools, arguments, objects as JSON strings.", "", _ONLY)
    split_at_boundaries: bool = option(
        _OUT,
        False,
        "With --to: a row for what was sent before each earlier compaction, and one for the rest.",
        "",
        _ONLY,
    )
    summary_rows: str = option(_OUT, "", "Write each summariser's call as a row (- is stdout).", "FILE", Scope.WRITES)
    no_compact: bool = option(_OUT, False, "Leave nothing out: with --to, only convert.", "--no-compact", _ONLY)
    redact_output: bool = option(
        _OUT,
        False,
        "Take secrets out of what is written: records that stay lose those bytes; the archive keeps them.",
        "--redact-output",
        Scope.RECORDS,
    )
    force: bool = option(_OUT, False, "Overwrite; replace hard-linked or read-only files.", "-f --force", _ONLY)
    archive_dir: str = option(_OUT, "", "Keep originals below DIR.", "--archive-dir DIR", Scope.ARCHIVE)
    archive: bool | None = option(
        _OUT,
        None,
        "Keep the originals (default: with -i, --append).",
        "--archive/--no-archive",
        Scope.ARCHIVE,
        kind=_K.PAIR,
    )
    compress: str = option(
        _OUT,
        "none",
        "Compression of the output; default: as the input in place, else by name.",
        "",
        _ANY,
        choices=("none", "gzip", "zstd"),
    )
    lock: bool = option(_OUT, True, "Lock the output root; exit 75 when held (default).", "", Scope.LOCK, kind=_K.PAIR)

    preset: str = option(
        _KEEP,
        "",
        "Settings by name or FILE.toml (see: compactor presets).",
        "--preset NAME",
        _ANY,
        values="presets:preset_names",
    )
    memory: str = option(
        _KEEP,
        "",
        "The agent's own note of the session is the summary, no model is asked; {name}: the input's name.",
        "FILE",
        Scope.READS,
    )
    engine: str = option(_KEEP, "", "A plug-in decides what is kept and what is written.", "--engine NAME", Scope.CODE)
    summariser: str = option(_KEEP, "", "A plug-in writes the summary.", "NAME", Scope.CODE)
    strict: bool = option(
        _KEEP,
        False,
        "Exit 4 where a summary fell back to the digest; fail where a plug-in does.",
        "--strict/--no-strict",
        _ANY,
    )

    dry_run: bool = option(_LOOK, False, "Write nothing; print the plan.", "-n --dry-run", _ONLY)
    diff: bool = option(_LOOK, False, "Write nothing; show before and after.", "--diff", _ONLY)
    plan_out: str = option(_LOOK, "", "Write nothing but the plan, to FILE (- is stdout).", "--plan-out FILE", _ONLY)
    check: bool = option(_LOOK, False, "Write nothing; exit 1 if something would change.", "--check", _ONLY)
    plan: str = option(_LOOK, "", "Apply a saved plan exactly.", "--plan FILE", _ONLY)
    interactive: bool = option(
        _LOOK, False, "Ask about each summary: yes, no, or what to change.", "--interactive", _ONLY
    )

    model: str = option(_LLM, "", "A model writes the summary; auto: the transcript's own.", "-m --model MODEL", _NET)
    api_base: str = option(_LLM, "", "Ask this server (OpenAI-compatible).", "--api-base URL", _NET)
    key_file: str = option(_LLM, "", "Read keys from FILE, not the environment.", "--key-file FILE", Scope.KEYS)
    fallback_model: str = option(_LLM, "", "Ask this model where the first fails.", "MODEL", _NET)
    model_for: str = option(_LLM, "", "By task: leaf=MODEL,merge=MODEL.", "LIST", _NET)
    embedding_model: str = option(
        _LLM,
        "",
        "With --keep semantic: this model's embeddings decide what is near; local:FOLDER asks one on this machine.",
        "MODEL",
        _NET,
    )
    on_failure: str = option(
        _LLM,
        "digest",
        "No summary from any model: take the digest (default), keep the transcript as it is, or fail.",
        "--on-failure",
        _NET,
        choices=("digest", "keep", "fail"),
    )
    previous: str = option(
        _LLM,
        "update",
        "An earlier summary: update it (default), rebuild it from the archive, or keep it word for word.",
        "",
        _NET,
        choices=("update", "rebuild", "keep"),
    )
    instructions: str = option(_LLM, "", "Add the text of FILE to the prompt.", "FILE", _NET)
    verify_pass: bool = option(
        _LLM,
        False,
        "Ask once more what the summary left out; the answer counts if it passes the same checks.",
        "",
        _NET,
    )
    max_cost: float = option(_LLM, 0.0, "Stop asking before this is spent.", "--max-cost", _NET, kind=_K.MONEY)
    price: str = option(_LLM, "", "USD per million tokens, instead of the known price.", "IN,OUT", _NET)
    max_requests: int = option(_LLM, 0, "Stop asking after N requests.", "", _NET, kind=_K.COUNT)
    max_tokens_sent: int = option(_LLM, 0, "Stop asking after N tokens.", "N", _NET, kind=_K.TOKENS)
    timeout: float = option(
        _LLM, 600.0, "Longest wait for a reply, all in all (default 10m).", "", _NET, kind=_K.SECONDS
    )
    max_reply: int = option(_LLM, 4 << 20, "Longest text of a reply (default 4M; 0: any).", "", _NET, kind=_K.BYTES)
    llm_concurrency: int = option(_LLM, 8, "Requests at once (default 8).", "", _NET, kind=_K.COUNT)
    rpm: int = option(_LLM, 0, "Requests per minute.", "", _NET, kind=_K.COUNT)
    tpm: int = option(_LLM, 0, "Tokens per minute.", "N", _NET, kind=_K.TOKENS)
    reset_breaker: bool = option(_LLM, False, "Ask a server again that failed before.", "", _ONLY)
    cache: bool = option(_LLM, True, "Keep replies, so that nothing is paid twice (default).", "", _NET, kind=_K.PAIR)
    redact: bool = option(_LLM, True, "Take secrets out before sending (default).", "--redact/--no-redact", _NET)

    jobs: int = option(
        _RUN,
        1,
        "Processes, at most (default 1; 0: one per core); the output order stays.",
        "-j --jobs",
        _ANY,
        kind=_K.COUNT,
    )
    keep_going: bool = option(
        _RUN, True, "After a failed input: go on (default) or stop.", "--keep-going/--fail-fast", _ANY
    )
    hook_before: str = option(_RUN, "", "Run CMD before each compaction; it may object.", "CMD", Scope.COMMANDS)
    hook_after: str = option(_RUN, "", "Run CMD after each output took effect.", "CMD", Scope.COMMANDS)
    hook_timeout: float = option(
        _RUN, 60.0, "How long a hook may take (default 60s).", "", Scope.COMMANDS, kind=_K.SECONDS
    )
    report: str = option(_RUN, "", "Write what happened as JSON (- is stdout).", "--report FILE", Scope.WRITES)
    html: str = option(_RUN, "", "Write a page to look at: before, after, what is lost.", "--html FILE", Scope.WRITES)
    metrics: str = option(
        _RUN,
        "",
        "Write sizes, ratios, failures of all rows as JSON; x.prom: for Prometheus.",
        "--metrics FILE",
        Scope.WRITES,
    )
    events: str = option(
        _RUN, "", "Write events as they happen, as JSON lines (- is stdout).", "--events FILE|fd:N", Scope.WRITES
    )
    color: str = option(_RUN, "auto", "Colours for people.", "", _ANY, choices=("auto", "always", "never"))
    quiet: int = option(_RUN, 0, "No progress, no warnings; -qq: no errors.", "-q --quiet", _ONLY, kind=_K.TALLY)
    verbose: int = option(_RUN, 0, "Say what was done; -vv: and why.", "-v --verbose", _ONLY, kind=_K.TALLY)

    stdout_is_terminal: bool = False  # whether a person would see what is written to standard output
    only_look: bool = False  # whether nothing is wanted but to look


SETTINGS = (
    _declare("target", "target", _K.TARGET, "Tokens the output may use: 32k, 25%.", "-t --target", _ANY),
    _declare(
        "window",
        "trigger.window_tokens",
        _K.TOKENS,
        "Context window; compact under pressure only.",
        "-w --window",
        _ANY,
    ),
    _declare("keep_head", "keep", _K.HEAD, "Head to keep: 4k tokens, or 2turns.", "--keep-head", _ANY),
    _declare("keep_tail", "keep", _K.TAIL, "Tail to keep: 16k tokens, 3turns, 2messages or 30%.", "--keep-tail", _ANY),
    _declare(
        "keep",
        "keep.by",
        _K.TEXT,
        "What the tail's tokens go to: newest (default); half of them to what matters most (smart) or is nearest to"
        " the task (semantic); hierarchical: newest, and a line for each turn and topic before; or a plug-in.",
        "--keep NAME",
        _ANY,
        values="model.settings:KEPT_BY",
    ),
    _declare(
        "budget",
        "budget",
        _K.BUDGET,
        "Summary size: scaled, tiered, N or N%.",
        "--budget",
        _ANY,
        values="model.settings:CURVES",
    ),
    _declare("focus", "focus", _K.TEXT, "Keep details about this first.", "--focus TEXT", Scope.WORDS),
    _declare("model_window", "trigger.window_model", _K.TEXT, "The window of this model.", "MODEL", _ANY),
    _declare(
        "at_phase",
        "trigger.at_phase",
        _K.FLAG,
        "Compact when a phase of the task ends (to-dos done, a new request), sooner only under pressure.",
        "",
        _ANY,
    ),
    _declare(
        "lang",
        "language",
        _K.TEXT,
        "Language of the summary: auto, en, zh, …",
        "LANG",
        _ANY,
        values="cli.program:languages",
    ),
    _declare(
        "template", "template", _K.TEXT, "Shape of the summary.", "NAME", _ANY, values="render.template:template_names"
    ),
    _declare("tokenizer", "tokenizer", _K.TEXT, "What counts tokens.", "NAME", _ANY, values="plan.models:VOCABULARIES"),
    _declare("restore_files", "restore_files", _K.COUNT, "Carry the last state of N files worked on.", "", _ANY),
    _declare("min_retention", "min_retention_ratio", _K.RATIO, "Fail where less of the middle survives.", "", _ANY),
)
# Sets any option by its key, as if it were given on the command line.
SET = Option(
    "set",
    _KEEP,
    OptionKind.LIST,
    "Any key of a configuration file, also of a table: rpm=60, keep.tail_turns=3 (see: compactor schema config).",
    ("--set",),
    _ONLY,
    "KEY=VALUE",
)


_FIELDS = (field for field in dataclasses.fields(DeclaredOptions) if field.metadata)
_RUN_OPTIONS = [field.metadata["option"]._replace(name=field.name) for field in _FIELDS]
OPTIONS: tuple[Option, ...] = tuple(sorted((*SETTINGS, *_RUN_OPTIONS), key=lambda item: tuple(Group).index(item.group)))
BY_NAME = {item.name: item for item in OPTIONS}


def with_flags(group: Group) -> tuple[Option, ...]:
    """The options that have flags in this section of the help."""
    found = tuple(item for item in OPTIONS if item.group is group and item.flags)
    return (*found, SET) if group is SET.group else found


SECTIONS = tuple((group.value, with_flags(group)) for group in Group)

# The options that `compactor batch` does not take.
NOT_FOR_SHARDS = frozenset(
    "last min_age output in_place append to no_compact archive engine keep_going html metrics events"
    " arrow split_at_boundaries summary_rows compress lock memory summariser embedding_model"
    " hook_before hook_after hook_timeout".split()
).union(option.name for option in with_flags(Group.LOOK))

# The options that most runs need, by purpose: the help of -h.
COMMON: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Which transcripts", ("recursive", "last")),
    ("Where the result goes", ("output", "in_place", "append", "to")),
    ("How much stays", ("target", "window", "keep_tail", "preset")),
    ("Look first", ("dry_run", "html")),
    ("A model writes the summary", ("model", "max_cost")),
    ("The run", ("jobs",)),
)
