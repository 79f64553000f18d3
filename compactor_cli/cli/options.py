"""The options as data: one table for flags, configuration keys, environment variables and help.

An option named ``keep_tail`` is ``--keep-tail`` on the command line, ``COMPACT_KEEP_TAIL`` in the
environment and ``keep-tail`` in a configuration file.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class OptionKind(StrEnum):
    """What a value is; decides how it is read."""

    FLAG = "flag"  # given or not given
    PAIR = "pair"  # --x / --no-x
    TALLY = "tally"  # counted: -vv
    TEXT = "text"
    LIST = "list"  # given any number of times
    COUNT = "count"
    TOKENS = "tokens"
    SIZE = "size"
    RATIO = "ratio"
    SECONDS = "seconds"
    CHOICE = "choice"
    KEEP = "keep"  # tokens, turns or messages
    BUDGET = "budget"  # a curve or a size
    MONEY = "money"  # US dollars
    BYTES = "bytes"


class Scope(StrEnum):
    """Where an option may be given."""

    ANYWHERE = "anywhere"
    NOT_PROJECT = "not in a project's file"
    COMMAND_LINE = "command line only"


class Option(NamedTuple):
    """One option. ``flags`` as click takes them; ``metavar`` for help; ``into`` a field of Settings."""

    name: str
    flags: tuple[str, ...]
    kind: OptionKind
    help: str
    scope: Scope = Scope.ANYWHERE
    metavar: str = ""
    choices: tuple[str, ...] = ()
    into: str = ""


_ONLY = Scope.COMMAND_LINE
_OWN = Scope.NOT_PROJECT

INPUT = (
    Option(
        "recursive",
        ("-r", "--recursive"),
        OptionKind.FLAG,
        "Take the transcripts below folders, known by their content.",
        _ONLY,
    ),
    Option(
        "last",
        ("--last",),
        OptionKind.TEXT,
        "Take the newest session of this folder: of claude, codex, …, or of any (see: compactor sessions).",
        _ONLY,
        "CLIENT",
    ),
    Option(
        "files_from", ("--files-from",), OptionKind.TEXT, "Read more operands from FILE (- is stdin).", _ONLY, "FILE"
    ),
    Option("null", ("-0", "--null"), OptionKind.FLAG, "Names in --files-from end with NUL.", _ONLY),
    Option("include", ("--include",), OptionKind.LIST, "With -r: take names like GLOB.", _OWN, "GLOB"),
    Option("exclude", ("--exclude",), OptionKind.LIST, "With -r: leave out names like GLOB.", metavar="GLOB"),
    Option("hidden", ("--hidden",), OptionKind.FLAG, "With -r: read hidden files and folders too.", _ONLY),
    Option("format", ("--format",), OptionKind.TEXT, "Read as this dialect (see: compactor formats).", metavar="NAME"),
    Option(
        "on_invalid",
        ("--on-invalid",),
        OptionKind.CHOICE,
        "A line that is not JSON: fail this input (default), keep or drop the line.",
        choices=("fail", "keep", "drop"),
    ),
    Option(
        "min_age",
        ("--min-age",),
        OptionKind.SECONDS,
        "Skip files changed more recently; default 10m with -i and -r.",
        _OWN,
        "AGE",
    ),
    Option(
        "max_line", ("--max-line",), OptionKind.BYTES, "Longest line or document (default 128M; 0: any).", _OWN, "SIZE"
    ),
    Option(
        "max_unpacked",
        ("--max-unpacked",),
        OptionKind.BYTES,
        "Unpacked size of an input (default 16G; 0: any).",
        _OWN,
        "SIZE",
    ),
    Option("max_ratio", ("--max-ratio",), OptionKind.COUNT, "Unpacked to packed (default 1000; 0: any).", _OWN, "N"),
)

OUTPUT = (
    Option("output", ("-o", "--output"), OptionKind.TEXT, "Write to FILE, whole or not at all.", _ONLY, "FILE"),
    Option(
        "stdout", ("--stdout",), OptionKind.FLAG, "Print the result on a terminal too, not a short view of it.", _ONLY
    ),
    Option("output_dir", ("--output-dir",), OptionKind.TEXT, "Write below DIR, the tree mirrored.", _ONLY, "DIR"),
    Option("in_place", ("-i", "--in-place"), OptionKind.FLAG, "Archive each file, then replace it.", _ONLY),
    Option("append", ("--append",), OptionKind.FLAG, "Write the client's own boundary after each file's bytes.", _ONLY),
    Option(
        "to",
        ("--to",),
        OptionKind.TEXT,
        "Write as this dialect (see: compactor formats), or as markdown or text.",
        _ONLY,
        "NAME",
    ),
    Option("arrow", ("--arrow",), OptionKind.FLAG, "Rows for Arrow: tools, arguments, objects as JSON strings.", _ONLY),
    Option(
        "split_at_boundaries",
        ("--split-at-boundaries",),
        OptionKind.FLAG,
        "With --to: a row for what was sent before each earlier compaction, and one for the rest.",
        _ONLY,
    ),
    Option(
        "summary_rows",
        ("--summary-rows",),
        OptionKind.TEXT,
        "Write each summariser's call as a row (- is stdout).",
        _OWN,
        "FILE",
    ),
    Option("no_compact", ("--no-compact",), OptionKind.FLAG, "Leave nothing out: with --to, only convert.", _ONLY),
    Option(
        "redact_output",
        ("--redact-output",),
        OptionKind.FLAG,
        "Take secrets out of what is written: records that stay lose those bytes; the archive keeps them.",
        _OWN,
    ),
    Option("force", ("-f", "--force"), OptionKind.FLAG, "Overwrite; replace hard-linked or read-only files.", _ONLY),
    Option("archive_dir", ("--archive-dir",), OptionKind.TEXT, "Keep originals below DIR.", _OWN, "DIR"),
    Option(
        "archive",
        ("--archive/--no-archive",),
        OptionKind.PAIR,
        "Keep the originals (default: with -i, --append).",
        _OWN,
    ),
    Option(
        "compress",
        ("--compress",),
        OptionKind.CHOICE,
        "Compression of the output; default: as the input in place, else by name.",
        choices=("none", "gzip", "zstd"),
    ),
    Option("lock", ("--lock/--no-lock",), OptionKind.PAIR, "Lock the output root; exit 75 when held.", _OWN),
)

CONTROL = (
    Option(
        "target",
        ("-t", "--target"),
        OptionKind.SIZE,
        "Tokens the output may use: 32k, 25%.",
        metavar="TOKENS",
        into="target",
    ),
    Option(
        "window",
        ("-w", "--window"),
        OptionKind.TOKENS,
        "Context window; compact under pressure only.",
        metavar="TOKENS",
        into="trigger.window_tokens",
    ),
    Option(
        "model_window",
        ("--model-window",),
        OptionKind.TEXT,
        "The window of this model.",
        metavar="MODEL",
        into="trigger.window_model",
    ),
    Option(
        "at_phase",
        ("--at-phase",),
        OptionKind.FLAG,
        "Compact when a phase of the task ends (to-dos done, a new request), sooner only under pressure.",
        into="trigger.at_phase",
    ),
    Option(
        "preset",
        ("--preset",),
        OptionKind.TEXT,
        "Settings by name or FILE.toml (see: compactor presets).",
        metavar="NAME",
    ),
    Option(
        "keep_head",
        ("--keep-head",),
        OptionKind.KEEP,
        "Head to keep: 4k tokens, or 2turns.",
        metavar="SIZE",
        into="keep",
    ),
    Option(
        "keep_tail",
        ("--keep-tail",),
        OptionKind.KEEP,
        "Tail to keep: 16k tokens, 3turns, 2messages or 30%.",
        metavar="SIZE",
        into="keep",
    ),
    Option(
        "keep",
        ("--keep",),
        OptionKind.TEXT,
        "What the tail's tokens go to: newest (default); half of them to what matters most (smart) or is nearest to"
        " the task (semantic); hierarchical: newest, and a line for each turn and topic before; or a plug-in.",
        metavar="NAME",
        into="keep.by",
    ),
    Option(
        "budget",
        ("--budget",),
        OptionKind.BUDGET,
        "Summary size: scaled, tiered, N or N%.",
        metavar="SIZE",
        into="budget",
    ),
    Option("focus", ("--focus",), OptionKind.TEXT, "Keep details about this first.", _OWN, "TEXT", into="focus"),
    Option(
        "lang",
        ("--lang",),
        OptionKind.TEXT,
        "Language of the summary: auto, en, zh, …",
        metavar="LANG",
        into="language",
    ),
    Option("template", ("--template",), OptionKind.TEXT, "Shape of the summary.", metavar="NAME", into="template"),
    Option("tokenizer", ("--tokenizer",), OptionKind.TEXT, "What counts tokens.", metavar="NAME", into="tokenizer"),
    Option(
        "restore_files",
        ("--restore-files",),
        OptionKind.COUNT,
        "Carry the last state of N files worked on.",
        metavar="N",
        into="restore_files",
    ),
    Option(
        "memory",
        ("--memory",),
        OptionKind.TEXT,
        "The agent's own note of the session is the summary, no model is asked; {name}: the input's name.",
        _OWN,
        "FILE",
    ),
    Option(
        "min_retention",
        ("--min-retention",),
        OptionKind.RATIO,
        "Fail where less of the middle survives.",
        metavar="SHARE",
        into="min_retention_ratio",
    ),
    Option(
        "engine", ("--engine",), OptionKind.TEXT, "A plug-in decides what is kept and what is written.", _OWN, "NAME"
    ),
    Option("summariser", ("--summariser",), OptionKind.TEXT, "A plug-in writes the summary.", _OWN, "NAME"),
    Option(
        "strict",
        ("--strict/--no-strict",),
        OptionKind.PAIR,
        "Exit 4 where a summary fell back to the digest; fail where a plug-in does.",
    ),
)

PREVIEW = (
    Option("dry_run", ("-n", "--dry-run"), OptionKind.FLAG, "Write nothing; print the plan.", _ONLY),
    Option("check", ("--check",), OptionKind.FLAG, "Write nothing; exit 1 if something would change.", _ONLY),
    Option("diff", ("--diff",), OptionKind.FLAG, "Write nothing; show before and after.", _ONLY),
    Option("plan_out", ("--plan-out",), OptionKind.TEXT, "Save the plan.", _ONLY, "FILE"),
    Option("plan", ("--plan",), OptionKind.TEXT, "Apply a saved plan exactly.", _ONLY, "FILE"),
    Option(
        "interactive", ("--interactive",), OptionKind.FLAG, "Ask about each summary: yes, no, or what to change.", _ONLY
    ),
)

MODEL = (
    Option(
        "model",
        ("-m", "--model"),
        OptionKind.TEXT,
        "A model writes the summary; auto: the transcript's own.",
        _OWN,
        "MODEL",
    ),
    Option(
        "embedding_model",
        ("--embedding-model",),
        OptionKind.TEXT,
        "With --keep semantic: this model's embeddings tell what is near; local:FOLDER asks one on this machine.",
        _OWN,
        "MODEL",
    ),
    Option("model_for", ("--model-for",), OptionKind.TEXT, "By task: leaf=MODEL,merge=MODEL.", _OWN, "LIST"),
    Option("api_base", ("--api-base",), OptionKind.TEXT, "Ask this server (OpenAI-compatible).", _OWN, "URL"),
    Option("key_file", ("--key-file",), OptionKind.TEXT, "Read keys from FILE, not the environment.", _OWN, "FILE"),
    Option(
        "fallback_model", ("--fallback-model",), OptionKind.TEXT, "Ask this model where the first fails.", _OWN, "MODEL"
    ),
    Option(
        "on_failure",
        ("--on-failure",),
        OptionKind.CHOICE,
        "No summary from any model: take the digest (default), keep the transcript as it is, or fail.",
        _OWN,
        choices=("digest", "keep", "fail"),
    ),
    Option(
        "previous",
        ("--previous",),
        OptionKind.CHOICE,
        "An earlier summary: update it (default), rebuild it from the archive, or keep it word for word.",
        _OWN,
        choices=("update", "rebuild", "keep"),
    ),
    Option("instructions", ("--instructions",), OptionKind.TEXT, "Add the text of FILE to the prompt.", _OWN, "FILE"),
    Option(
        "verify_pass",
        ("--verify-pass",),
        OptionKind.FLAG,
        "Ask once more what the summary left out; the answer counts if it passes the same checks.",
        _OWN,
    ),
    Option("max_cost", ("--max-cost",), OptionKind.MONEY, "Stop asking before this is spent.", _OWN, "USD"),
    Option(
        "price", ("--price",), OptionKind.TEXT, "USD per million tokens, instead of the known price.", _OWN, "IN,OUT"
    ),
    Option("max_requests", ("--max-requests",), OptionKind.COUNT, "Stop asking after N requests.", _OWN, "N"),
    Option("max_tokens_sent", ("--max-tokens-sent",), OptionKind.TOKENS, "Stop asking after N tokens.", _OWN, "N"),
    Option(
        "timeout",
        ("--timeout",),
        OptionKind.SECONDS,
        "Longest wait for a reply, all in all (default 10m).",
        _OWN,
        "TIME",
    ),
    Option(
        "max_reply", ("--max-reply",), OptionKind.BYTES, "Longest text of a reply (default 4M; 0: any).", _OWN, "SIZE"
    ),
    Option("llm_concurrency", ("--llm-concurrency",), OptionKind.COUNT, "Requests at once (default 8).", _OWN, "N"),
    Option("rpm", ("--rpm",), OptionKind.COUNT, "Requests per minute.", _OWN, "N"),
    Option("tpm", ("--tpm",), OptionKind.TOKENS, "Tokens per minute.", _OWN, "N"),
    Option("reset_breaker", ("--reset-breaker",), OptionKind.FLAG, "Ask a server again that failed before.", _ONLY),
    Option(
        "cache",
        ("--cache/--no-cache",),
        OptionKind.PAIR,
        "Keep replies, so that nothing is paid twice (default).",
        _OWN,
    ),
    Option("redact", ("--redact/--no-redact",), OptionKind.PAIR, "Take secrets out before sending (default).", _OWN),
)

RUN = (
    Option(
        "jobs",
        ("-j", "--jobs"),
        OptionKind.COUNT,
        "Processes (default 1; 0: one per core); the output order stays.",
        metavar="N",
    ),
    Option(
        "keep_going", ("--keep-going/--fail-fast",), OptionKind.PAIR, "After a failed input: go on (default) or stop."
    ),
    Option(
        "hook_before",
        ("--hook-before",),
        OptionKind.TEXT,
        "Run CMD before each compaction; it may object.",
        _OWN,
        "CMD",
    ),
    Option("hook_after", ("--hook-after",), OptionKind.TEXT, "Run CMD after each output took effect.", _OWN, "CMD"),
    Option(
        "hook_timeout", ("--hook-timeout",), OptionKind.SECONDS, "How long a hook may take (default 60s).", _OWN, "TIME"
    ),
    Option("report", ("--report",), OptionKind.TEXT, "Write what happened as JSON (- is stdout).", _OWN, "FILE"),
    Option("html", ("--html",), OptionKind.TEXT, "Write a page to look at: before, after, what is lost.", _OWN, "FILE"),
    Option(
        "metrics",
        ("--metrics",),
        OptionKind.TEXT,
        "Write sizes, ratios, failures of all rows as JSON; x.prom: for Prometheus.",
        _OWN,
        "FILE",
    ),
    Option(
        "events",
        ("--events",),
        OptionKind.TEXT,
        "Write events as they happen, as JSON lines (- is stdout).",
        _OWN,
        "FILE|fd:N",
    ),
    Option("color", ("--color",), OptionKind.CHOICE, "Colours for people.", choices=("auto", "always", "never")),
    Option("quiet", ("-q", "--quiet"), OptionKind.TALLY, "No progress, no warnings; -qq: no errors.", _ONLY),
    Option("verbose", ("-v", "--verbose"), OptionKind.TALLY, "Say what was done; -vv: and why.", _ONLY),
)

SECTIONS = (
    ("Input", INPUT),
    ("Output", OUTPUT),
    ("What to keep", CONTROL),
    ("Look first", PREVIEW),
    ("A model's summary", MODEL),
    ("The run", RUN),
)

OPTIONS: tuple[Option, ...] = tuple(option for _, options in SECTIONS for option in options)

# What most runs need, by use: the help of -h.
COMMON: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Which transcripts", ("recursive", "last")),
    ("Where the result goes", ("output", "in_place", "append", "to")),
    ("How much stays", ("target", "window", "keep_tail", "preset")),
    ("Look first", ("dry_run", "html")),
    ("A model writes the summary", ("model", "max_cost")),
    ("The run", ("jobs",)),
)

# A project's file comes with a checkout, from whoever wrote the repository: it says how much is kept, and nothing else.
# What it names beyond this list is refused, whatever this version or a later one knows.
PROJECT_OPTIONS = frozenset(
    {
        *("exclude", "format", "on_invalid", "compress", "jobs", "keep_going", "color", "strict"),
        *("target", "window", "model_window", "preset", "keep_head", "keep_tail", "keep", "budget", "lang", "template"),
        *("tokenizer", "restore_files", "min_retention", "at_phase"),
    }
)
PROJECT_TABLES = frozenset({"trigger", "keep", "prune", "budget", "strategy", "rules", "fit", "language"})
_FILES = "choose files to write"
_CODE = "choose code to run"
_COMMANDS = "run commands"
_ARCHIVE = "weaken the archive"
# Why a project's file may not say these; what is neither here nor above is refused without a reason of its own.
REFUSED_IN_PROJECT = {
    **{option.name: "turn on the network, or decide what is sent" for option in MODEL},
    "key_file": "name keys",
    "api_key": "name keys",
    **dict.fromkeys(("hook_before", "hook_after", "hook_timeout"), _COMMANDS),
    **dict.fromkeys(("include", "memory"), "choose files to read"),
    **dict.fromkeys(("archive", "no_archive", "archive_dir"), _ARCHIVE),
    "redact_output": "change records that stay",
    "lock": "switch off the lock",
    **dict.fromkeys(("max_line", "max_unpacked", "max_ratio"), "raise the limits of memory"),
    "min_age": "weaken the care for files in use",
    **dict.fromkeys(("engine", "summariser"), _CODE),
    **dict.fromkeys(("report", "events", "metrics", "html", "summary_rows"), _FILES),
    **dict.fromkeys(("focus", "acknowledgement"), "write words into transcripts or prompts"),
}
