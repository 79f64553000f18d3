"""What an earlier run left for this one: inputs that need nothing are not read again.

What is known of an input is its path, device, inode, size, time of change and hash, by the configuration under which it
was looked at. It lies in a file of its own for each kind of configuration, which may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from compactor_cli import __version__
from compactor_cli.archive.atomic import write_private
from compactor_cli.model.errors import CompactError
from compactor_cli.model.report import InputReport, Outcome
from compactor_cli.plan.trigger import named_window_tokens
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
