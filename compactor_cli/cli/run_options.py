"""Run options: what the layers say about a run, next to the settings, typed and checked against each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compactor_cli.cli.console import Level
from compactor_cli.cli.options import CONTROL, MODEL
from compactor_cli.model.errors import UsageError
from compactor_cli.model.plugins import WhenFailing
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.read.sources import Walk
from compactor_cli.read.streams import DEFAULT_LIMITS, Compression, ReadLimits
from compactor_cli.run.jobs import Originals, Purpose

if TYPE_CHECKING:
    from compactor_cli.render.shape import OutputShape

# With -i and -r nobody looks at each file, so those that an agent may still be writing are left alone.
DEFAULT_MIN_AGE_SECONDS = 600.0
# Hidden folders that hold originals, or what no agent wrote.
_NEVER_READ = (".transcripts", ".git")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options that are not settings, by their names; see `options`."""

    recursive: bool = False
    last: str = ""
    files_from: str = ""
    null: bool = False
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    hidden: bool = False
    format: str = ""
    on_invalid: str = "fail"
    min_age: float | None = None
    max_line: int = DEFAULT_LIMITS.line_bytes
    max_unpacked: int = DEFAULT_LIMITS.unpacked_bytes
    max_ratio: int = DEFAULT_LIMITS.unpacked_ratio
    output: str = ""
    stdout: bool = False
    # Set by the run, not by an option: whether a person would see what is written to standard output, and whether
    # nothing else is wanted.
    stdout_is_terminal: bool = False
    only_look: bool = False
    output_dir: str = ""
    in_place: bool = False
    append: bool = False
    to: str = ""
    arrow: bool = False
    split_at_boundaries: bool = False
    summary_rows: str = ""
    no_compact: bool = False
    force: bool = False
    archive_dir: str = ""
    archive: bool | None = None
    compress: str = "none"
    lock: bool = True
    preset: str = ""
    engine: str = ""
    summariser: str = ""
    strict: bool = False
    dry_run: bool = False
    check: bool = False
    diff: bool = False
    plan_out: str = ""
    plan: str = ""
    interactive: bool = False
    model: str = ""
    embedding_model: str = ""
    model_for: str = ""
    api_base: str = ""
    key_file: str = ""
    fallback_model: str = ""
    on_failure: str = "digest"
    previous: str = "update"
    instructions: str = ""
    verify_pass: bool = False
    max_cost: float = 0.0
    price: str = ""
    max_requests: int = 0
    max_tokens_sent: int = 0
    timeout: float = 600.0
    max_reply: int = 4 << 20
    llm_concurrency: int = 8
    rpm: int = 0
    tpm: int = 0
    reset_breaker: bool = False
    cache: bool = True
    redact: bool = True
    redact_output: bool = False
    memory: str = ""
    hook_before: str = ""
    hook_after: str = ""
    hook_timeout: float = 60.0
    jobs: int = 1
    keep_going: bool = True
    report: str = ""
    events: str = ""
    metrics: str = ""
    html: str = ""
    color: str = "auto"
    quiet: int = 0
    verbose: int = 0

    @property
    def purpose(self) -> Purpose:
        """What the run is for. A check, a difference and a saved plan need the summary as well.

        With a saved plan a result is written only where a place for it is named.
        """
        has_place = self.in_place or self.append or self.output_dir or self.output
        saves_plan = self.plan_out and (self.dry_run or not has_place)
        if self.check or self.diff or saves_plan or (self.dry_run and self.html) or self.shows_result:
            return Purpose.TRY
        return Purpose.PLAN if self.dry_run else Purpose.ACT

    @property
    def shows_result(self) -> bool:
        """Whether the result is shown in short: a terminal is there to read it, and no place to write it is named."""
        placed = self.stdout or self.output or self.output_dir or self.in_place or self.append
        is_text = self.to in ("markdown", "text")  # for people as it is
        looks = self.dry_run or self.check or self.diff or self.interactive
        return (self.stdout_is_terminal or self.only_look) and not (placed or looks or self.no_compact or is_text)

    @property
    def shape(self) -> OutputShape | None:
        """How outputs are written, where that is not as they were. Raises UsageError for what cannot be written."""
        if not self.to and not self.arrow:
            return None
        from compactor_cli.render.shape import Cells, OutputShape, Parts

        return OutputShape.checked(
            dialect=self.to,
            cells=Cells.STRINGS if self.arrow else Cells.OBJECTS,
            parts=Parts.WINDOWS if self.split_at_boundaries else Parts.WHOLE,
        )

    @property
    def walk(self) -> Walk:
        """How trees are read: by the globs that are named, else sessions and whatever document is a transcript."""
        exclude = (*self.exclude, *(_NEVER_READ if self.hidden else ()))
        if self.include:
            return Walk(include=self.include, exclude=exclude, hidden=self.hidden)
        from compactor_cli.formats.registry import DOCUMENTS

        return Walk(candidates=DOCUMENTS, exclude=exclude, hidden=self.hidden)

    @property
    def level(self) -> int:
        """How much is said."""
        return max(Level.NOTHING, min(Level.WHY, self.verbose - self.quiet))

    @property
    def min_age_seconds(self) -> float:
        """The least age of an input that is looked at."""
        replaces = self.in_place or self.append
        if self.min_age is not None:
            return self.min_age if replaces or self.recursive else 0.0
        return DEFAULT_MIN_AGE_SECONDS if replaces and self.recursive else 0.0

    @property
    def limits(self) -> ReadLimits:
        """What an input may be at most."""
        return ReadLimits(line_bytes=self.max_line, unpacked_bytes=self.max_unpacked, unpacked_ratio=self.max_ratio)

    @property
    def processes(self) -> int:
        """How many processes may work. A person is asked about one summary at a time."""
        if self.interactive:
            return 1
        return self.jobs or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else self.jobs or 1

    @property
    def when_failing(self) -> WhenFailing:
        """What to do where a plug-in fails."""
        return WhenFailing.FAIL if self.strict else WhenFailing.BUILT_IN

    @property
    def originals(self) -> Originals:
        """Which originals are archived; by default those of inputs that are replaced or appended to."""
        if self.archive is None:
            return Originals.ARCHIVED if self.archive_dir else Originals.REPLACED
        return Originals.ARCHIVED if self.archive else Originals.NOT_KEPT

    @property
    def invalid(self) -> OnInvalid:
        """What to do with lines that are not JSON."""
        return OnInvalid(self.on_invalid)

    @property
    def compression(self) -> Compression:
        """The compression of outputs whose name promises none."""
        return Compression(self.compress)

    @property
    def stdout_is_taken(self) -> bool:
        """Whether transcripts or plans go to standard output."""
        if self.only_look and self.html:
            return False
        if self.purpose is not Purpose.ACT:
            return not self.check or self.diff
        return not (self.in_place or self.append or self.output_dir or self.output not in ("", "-"))


def check(run_options: RunOptions, given: Mapping[str, Any]) -> None:
    """Raise UsageError for run options that exclude one another; ``given`` is what the command line says."""
    for is_wrong, what, advice in _CONFLICTS:
        if is_wrong(run_options):
            raise UsageError(what, next_step=advice)
    _check_stdout(run_options)
    about_models = [option.name.replace("_", "-") for option in MODEL if option.name in given]
    if about_models and not (run_options.model or run_options.embedding_model):
        raise UsageError(f"--{about_models[0]} is about a model, and none is named", next_step="add -m MODEL")
    settled = (*CONTROL, *MODEL)
    unused = [option.name.replace("_", "-") for option in settled if run_options.no_compact and option.name in given]
    if unused:
        raise UsageError(f"--no-compact leaves nothing to --{unused[0]}", next_step="leave one of them out")
    refused = [option.name.replace("_", "-") for option in settled if option.name in given and option.name != "strict"]
    if run_options.plan and refused:
        raise UsageError(
            f"--plan holds its own settings, so --{refused[0]} cannot be given", next_step="plan again with it"
        )


def _check_stdout(run_options: RunOptions) -> None:
    """Raise UsageError where standard output would hold two things at once."""
    on_stdout = [what for name, what in _WRITTEN.items() if getattr(run_options, name) in ("-", "fd:1")]
    if len(on_stdout) > 1:
        what = f"standard output cannot hold {on_stdout[0]} and {on_stdout[1]}"
        raise UsageError(what, next_step="write one of them to a file")
    if on_stdout and run_options.stdout_is_taken:
        what = f"standard output holds the result and cannot hold {on_stdout[0]}"
        raise UsageError(what, next_step="write that to a file, or the result with -o")


# What options write besides the result, a plan aside: with -n it takes the place of what is shown.
_WRITTEN = {
    "report": "the report",
    "html": "the page",
    "metrics": "the metrics",
    "summary_rows": "the rows of the summariser's calls",
    "events": "the events",
}

_CONFLICTS: tuple[tuple[Callable[[RunOptions], bool], str, str], ...] = (
    (
        lambda w: w.stdout and bool(w.in_place or w.append or w.output_dir or w.output not in ("", "-")),
        "--stdout and another place for the result exclude one another",
        "choose one",
    ),
    (
        lambda w: bool((w.to or w.arrow) and (w.in_place or w.append)),
        "a file cannot become one of another format in its place",
        "name an output: -o FILE or --output-dir DIR",
    ),
    (lambda w: w.no_compact and not (w.to or w.arrow), "--no-compact leaves nothing to do", "name a format with --to"),
    (lambda w: w.split_at_boundaries and not w.to, "--split-at-boundaries makes rows", "name their format with --to"),
    (
        lambda w: w.in_place and w.archive is False and not w.force,
        "-i without an archive loses the originals",
        "leave --no-archive out, or add -f if that is what you want",
    ),
    (lambda w: sum((w.dry_run, w.check, w.diff)) > 1, "-n, --check and --diff exclude one another", "choose one"),
    (lambda w: bool(w.model and w.summariser), "-m and --summariser exclude one another", "choose one"),
    (lambda w: bool(w.plan and w.plan_out), "--plan and --plan-out exclude one another", "choose one"),
    (
        lambda w: w.interactive and (w.purpose is not Purpose.ACT or w.plan != ""),
        "--interactive asks before it writes, and nothing is to be written",
        "leave one of them out",
    ),
    (lambda w: w.null and not w.files_from, "-0 is about --files-from", "name the list: --files-from FILE"),
    (
        lambda w: w.plan_out == "-" and (w.diff or (w.purpose is Purpose.ACT and w.stdout_is_taken)),
        "standard output holds the result and cannot hold the plan",
        "save the plan to a file, or add -n",
    ),
)
