"""What an earlier run left for this one: inputs that need nothing are not read again, and saved plans are followed.

What is known of an input is its path, device, inode, size, time of change and hash, by the configuration under which it
was looked at. It lies in a file of its own for each kind of configuration, which may be deleted at any time.

Plan files hold decisions to be looked at and applied exactly, the summaries' texts included: JSON lines
(`schemas/plan.schema.json`), the settings first, then one line per transcript, known by the hash of its bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from compactor_cli import __version__
from compactor_cli.archive.atomic import write_private
from compactor_cli.model.errors import CompactError, UsageError
from compactor_cli.model.plan import Action, Edit, Mode, Plan, Span, Tier
from compactor_cli.model.report import InputReport, Outcome
from compactor_cli.model.settings import Settings
from compactor_cli.model.value import dataclass
from compactor_cli.plan.trigger import named_window_tokens
from compactor_cli.presets.values import settings_from
from compactor_cli.read.streams import Look, content_sha256, look_at
from compactor_cli.run.jobs import PASSED_OVER, Job, RunConfig

REASON = "the same as when it was last looked at"
# A file may be written to twice within one tick of its clock; file systems' ticks are at most this long.
_TICK_SECONDS = 2.0
# Of more inputs than these the ones looked at longest ago are forgotten; an entry takes some 250 bytes.
_MOST = 200_000


_SEEN_TYPES = (int, int, int, int, str, int, int, int)


class _SeenInput(NamedTuple):
    """What an input was when it needed nothing, as the file has it. ``size_bytes`` is of its unpacked content."""

    device: int
    inode: int
    packed_bytes: int
    mtime_ns: int
    sha256: str
    size_bytes: int
    tokens: int
    transcripts: int

    @property
    def look(self) -> Look:
        return Look(device=self.device, inode=self.inode, size_bytes=self.packed_bytes, mtime_ns=self.mtime_ns)


class UnchangedCache:
    """Dismisses what is as it was, and remembers what was found unchanged; use it for one run.

    An entry is only made of a file that did not change while it was worked on, of which there was nothing to report.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._entries: dict[str, _SeenInput] = {}
        # Without those of a file that is missing or damaged.
        with suppress(OSError, ValueError, TypeError, AttributeError):
            for path, values in json.loads(file.read_bytes()).items():
                if tuple(map(type, values)) == _SEEN_TYPES:
                    self._entries[path] = _SeenInput(*values)
        self._looks: dict[str, Look] = {}
        self._changed = False

    def dismissed(self, job: Job) -> InputReport | None:
        """The report of an input that is what it was when it needed nothing; None for any other."""
        path = str(Path(job.source.path).absolute())
        try:
            look = self._looks[path] = look_at(path)
        except CompactError:
            return None
        if (entry := self._entries.get(path)) is None:
            return None
        if entry.look != look:
            # It was touched, or put in another one's place, and may hold the same bytes.
            try:
                is_same = look.size_bytes == entry.look.size_bytes and content_sha256(path) == entry.sha256
            except CompactError:
                is_same = False
            if not is_same:
                return None
            self._enter(path, *entry[4:])
        if job.source.is_candidate and not entry.transcripts:
            return InputReport(path=job.source.path, outcome=Outcome.SKIPPED, reason=PASSED_OVER)
        return InputReport(
            path=job.source.path,
            outcome=Outcome.UNCHANGED,
            reason=REASON,
            sha256=entry.sha256,
            counts={Outcome.UNCHANGED.value: entry.transcripts},
            tokens_before=entry.tokens,
            tokens_after=entry.tokens,
            bytes_before=entry.size_bytes,
            bytes_after=entry.size_bytes,
        )

    def note(self, job: Job, report: InputReport) -> None:
        """An input that was not dismissed is done."""
        path = str(Path(job.source.path).absolute())
        # Of what a person should see each time, no entry is made.
        is_odd = report.exit_code or any(item.warnings or item.over_target for item in report.transcripts)
        if report.outcome is Outcome.UNCHANGED and not is_odd:
            self._enter(path, report.sha256, report.bytes_before, report.tokens_before, sum(report.counts.values()))
        elif report.reason == PASSED_OVER:
            self._enter(path, "", 0, 0, 0)
        elif self._entries.pop(path, None):
            self._changed = True

    def save(self) -> None:
        """Keep what was learnt. Where that cannot be done, the next run looks again."""
        if not self._changed:
            return
        newest = list(self._entries.items())[-_MOST:]
        with suppress(CompactError):
            # In ASCII: names of files may hold bytes that are not UTF-8.
            write_private(self._file, json.dumps(dict(newest), separators=(",", ":")))

    def _enter(self, path: str, sha256: str, size_bytes: int, tokens: int, transcripts: int) -> None:
        look = self._looks.get(path)
        if look is None or look.age_seconds() < _TICK_SECONDS:
            return
        with suppress(CompactError):
            if look_at(path) == look:
                self._entries.pop(path, None)  # so that it is the newest
                place = (look.device, look.inode, look.size_bytes, look.mtime_ns)
                self._entries[path] = _SeenInput(*place, sha256, size_bytes, tokens, transcripts)
                self._changed = True


def seen_file(cache_folder: Path, run_config: RunConfig, kind: str) -> Path:
    """The file for this configuration: it differs whenever another outcome is possible."""
    models = run_config.models.model_options if run_config.models else ""
    identity = (
        __version__,
        run_config.settings.fingerprint(),
        named_window_tokens(run_config.settings.trigger),
        run_config.dialect,
        run_config.on_invalid,
        kind,
        repr(models),
    )
    return cache_folder / "seen" / f"{hashlib.sha256(repr(identity).encode()).hexdigest()[:16]}.json"


FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A decision; ``source``: who wrote its ``summary``: a digest is made again and compared, any other is taken."""

    plan: Plan
    summary: str
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """The content of a plan file; ``by_sha256`` is keyed by the transcripts' hashes."""

    settings: Settings
    by_sha256: Mapping[str, Saved]


def header_line(settings: Settings) -> bytes:
    """The first line of a plan file."""
    return _line({"compact_plan": FORMAT, "version": __version__, "settings": dataclasses.asdict(settings)})


def plan_line(path: str, plan: Plan, summary: str, source: str = "") -> bytes:
    """The line of one transcript."""
    return _line({"path": path, "plan": dataclasses.asdict(plan), "summary": summary, "source": source})


def _line(value: Mapping[str, Any]) -> bytes:
    # In ASCII, for texts may hold halves of surrogate pairs, which UTF-8 has no bytes for.
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def read_plan_file(path: str) -> PlanFile:
    """The decisions in a plan file. Raises UsageError that names the line for whatever is wrong with it."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        what = f"the plan cannot be read ({error.strerror})"
        raise UsageError(what, place=path, next_step="make one with --plan-out") from error
    head = _checked(lines[0] if lines else b"null", path, 1)
    if "settings" not in head:
        raise UsageError("is not a plan", next_step="make one with --plan-out", place=f"{path}:1")
    saved: dict[str, Saved] = {}
    for number, line in enumerate(lines[1:], 2):
        entry = _checked(line, path, number)
        value = entry["plan"]
        nested = {
            "spans": tuple(Span(**{**span, "action": Action(span["action"])}) for span in value["spans"]),
            "edits": tuple(Edit(**edit) for edit in value["edits"]),
            "tier": Tier(value["tier"]),
            "mode": Mode(value["mode"]),
            "notes": tuple(value["notes"]),
        }
        plan = Plan(**{**value, **nested})
        saved[plan.transcript_sha256] = Saved(plan=plan, summary=entry["summary"], source=entry.get("source", ""))
    return PlanFile(settings=settings_from(head["settings"], Settings(), path), by_sha256=saved)


def _checked(line: bytes, path: str, number: int) -> Any:
    from compactor_cli.schema import faults

    place = f"{path}:{number}"
    try:
        value = json.loads(line)
    except ValueError as error:
        raise UsageError("is not a plan: not JSON", next_step="make one with --plan-out", place=place) from error
    kind = "header" if number == 1 else "entry"
    if wrong := faults("plan", value):
        raise UsageError(f"is not a plan {kind}: {wrong[0]}", next_step="make one with --plan-out", place=place)
    return value
