"""Rows: plan or compact one transcript of an input; a row of a dataset that fails is passed on as it was.

The result of a row is the same bytes in any process. `jobs` reads and writes the inputs that hold rows; `engine`
compacts a single transcript.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from compactor_cli.engine import compact_transcript, plan_transcript, summary_request
from compactor_cli.model.errors import CompactError, InvariantError, KeptAsIs, OutputError, PluginFailed, UsageError
from compactor_cli.model.marker import without_preface
from compactor_cli.model.plan import Action, Importance, Mode, Plan, Span
from compactor_cli.model.plugins import WhenFailing
from compactor_cli.model.report import Compaction, Outcome, TranscriptReport
from compactor_cli.model.settings import UNBROKEN, Settings, Size
from compactor_cli.model.transcript import Container, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.planner import planned_report, unread_bytes, unread_report
from compactor_cli.plan.tokens import Counter, count_messages, counter_for
from compactor_cli.plan.trigger import base_tokens, is_settled, previous_marker

if TYPE_CHECKING:
    from compactor_cli.llm.redact import Redactor
    from compactor_cli.model.summary import Answer, Estimate, LoadState, Request, Summariser
    from compactor_cli.plugged import PluginEngine
    from compactor_cli.render.convert import OutputShape
    from compactor_cli.run.documents import Saved
    from compactor_cli.run.model_run import ModelRun
    from compactor_cli.run.workers import Item, Result


LEFT_AS_IT_WAS = "left as it was"
# The keys of a row under which datasets commonly have the messages.
COMMON_NAMES = ("messages", "conversations")


# All transcripts of a model share a counter, so that a repeated text is counted only once.
_shared_counter = lru_cache(maxsize=64)(counter_for)


def kept(transcript: Transcript, reason: str, planned: Plan) -> Compaction:
    """The result for a transcript that stays as it was, at the user's request; its sizes are those ``planned``."""
    row = _as_it_was(transcript, reason, planned.tokens_before, planned.target_tokens)
    warnings = () if reason == "declined" else (f"{LEFT_AS_IT_WAS}: {reason}",)
    return replace(row, report=replace(row.report, warnings=warnings))


def _as_it_was(transcript: Transcript, reason: str, tokens: int = 0, target_tokens: int = 0) -> Compaction:
    plan = Plan(
        transcript_sha256=transcript.sha256,
        fingerprint="",
        spans=(Span(start=0, stop=len(transcript.records), action=Action.KEEP),),
        reason=reason,
        tokens_before=tokens,
        target_tokens=target_tokens,
    )
    return Compaction(output=transcript.source(), plan=plan, report=planned_report(transcript, plan))


# An archived original may itself begin with a summary of an older one; sizes are counted back through this many.
_MOST_GENERATIONS = 16
# How often an output that is a text to read is compacted further: its headings and fences take tokens of their own.
MAX_REFITS = 4
_REFIT_SLACK_TOKENS = 8

# Shows a person a compaction; returns "" (accepted), None (leave the transcript as it is) or what to improve.
Review = Callable[[Transcript, Compaction], str | None]


class LazyDigest:
    """The built-in summariser, imported only with the first summary, since most runs started by a timer write none."""

    def __init__(self, guidance: str) -> None:
        self._guidance = guidance

    def summarise(self, request: Request) -> Answer:
        """The summary of ``request.covered`` within its budget; the guidance is added to the focus."""
        from compactor_cli.digest.digest import Digest

        focus = f"{request.focus} {self._guidance}".strip()
        return Digest().summarise(replace(request, focus=focus))


# In the path of a note, stands for the name of the input without folder and extensions.
NOTE_NAME = "{name}"


def note_of(file: str, path: str) -> str:
    """The text of the note for the input ``path``.

    It is empty if each session has a note of its own and this one's is missing. Raises UsageError if the one note for
    all is missing, or if a note cannot be read.
    """
    found = Path(file.replace(NOTE_NAME, Path(path).name.partition(".")[0]))
    try:
        return found.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        if NOTE_NAME in file:
            return ""
        raise UsageError("there is no such note", next_step="name the file, or leave memory out", place=file) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise UsageError(f"the note cannot be read ({reason})", place=str(found)) from error


class SessionNote:
    """Summarises by the agent's own note and a digest of what it leaves out.

    If the note is empty or does not fit the budget, the summariser ``otherwise`` is used.
    """

    def __init__(self, note: str, otherwise: Summariser) -> None:
        self._note = note.strip()
        self._otherwise = otherwise

    def summarise(self, request: Request) -> Answer:
        """The summary within ``request.budget_tokens``; if the note fits, no model is called."""
        # Imported here, so that a run without a note does not load the digest before it is needed.
        from compactor_cli.digest.language import LANGUAGES, detect
        from compactor_cli.llm.prompts import heading_lines
        from compactor_cli.llm.quoting import quoter
        from compactor_cli.llm.supplement import CompletedText, completed
        from compactor_cli.model.summary import Section, Source, Summary

        language = request.language if request.language != "auto" else detect([self._note])
        # Quoted so that no line of the note reads as a heading of the template when the summary is read back.
        prose = quoter(heading_lines(request.render, (*LANGUAGES, language)))(self._note)
        bare = Summary(source=Source.MEMORY, sections=(), prose=prose, language=language)
        size_tokens = request.count(request.render(bare))
        if not self._note or size_tokens > request.budget_tokens:
            answer = self._otherwise.summarise(request)
            why = f"it takes {size_tokens:,} tokens of {request.budget_tokens:,}" if self._note else "it is empty"
            return replace(answer, notes=(*answer.notes, f"the session's own note was not used: {why}"))
        text = CompletedText(sections=(), prose=prose, missing=frozenset(Section))
        answer = completed(request, text, language, most_ratio=1.0)
        return replace(answer, summary=replace(answer.summary, source=Source.MEMORY))


# Makes something else of a transcript and its compaction than the output: a page, a line of a plan file.
View = Callable[[Transcript, Compaction], str | bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRow:
    """The result of one transcript."""

    output: bytes
    report: TranscriptReport
    state: bytes | None = None  # of the digest, to be archived; None: none
    views: Mapping[str, str | bytes] = field(default_factory=dict)  # what else was made, by the field of `Outputs`

    @property
    def changed(self) -> bool:
        """Whether the output differs from the source."""
        return self.report.outcome is Outcome.COMPACTED


@dataclass(slots=True, kw_only=True)
class RowMaker:
    """Works on the transcripts of one input by one set of settings. Safe for several threads and processes.

    A session that fails raises; a row of a dataset that fails is passed on unchanged with the reason in its report.
    """

    settings: Settings
    load_state: LoadState
    load_original: Callable[[str], Transcript | None] | None = None
    mode: Mode = Mode.REWRITE
    archived: bool = True  # whether an archive keeps the originals, as the summary then mentions
    plans: Mapping[str, Saved] | None = None  # decisions to follow, by hash; a transcript without one is refused
    summariser: Callable[[str], Summariser] = LazyDigest  # makes one that follows a person's guidance (empty: none)
    estimate: Callable[[Request], Estimate] | None = None  # what a model would cost
    review: Review | None = None  # shows a person each compaction
    ask: Callable[[Transcript, Plan], str] | None = None  # gets plans with changes; may give guidance or raise KeptAsIs
    planned: Callable[[Transcript, Plan], None] | None = None  # gets each plan after ``ask``, before it is carried out
    example: Callable[[Request, str], bytes] | None = None  # makes a row of training data of the summariser's call
    engine: PluginEngine | None = None  # a plug-in that plans and summarises instead of the built-in engine
    importance: Importance | None = None  # is used instead of the importance that the settings name
    shape: OutputShape | None = None  # the format of the output; None: that of the input
    redacts: bool = False  # whether known secrets are removed from what is written
    only_plans: bool = False  # whether rows are only planned, not compacted
    views: Mapping[str, View] = field(default_factory=dict)  # what else is made of each row, by the field of `Outputs`

    def plan(self, transcript: Transcript) -> Compaction:
        """Decide only: the result has the plan, the report and no output."""
        if self.redacts:
            clean, maker, _ = self._redacting(transcript)
            return maker.plan(clean)
        if transcript.fault:
            return self.passed(transcript, transcript.fault)
        try:
            transcript = self._with_original(transcript)
            warnings: tuple[str, ...] = ()
            estimate = None
            if saved := self._saved(transcript):
                plan = saved.plan
            elif self.engine:
                try:
                    plan, _ = self.engine.plan(transcript, self.settings, self._counter(transcript), self.mode)
                except PluginFailed as failure:
                    if self.engine.when_failing is WhenFailing.FAIL:
                        raise
                    plan, warnings = self._planned(transcript), (_fallback_warning(failure),)
            else:
                plan = self._planned(transcript)
                if self.estimate and (request := self._request(transcript, plan)):
                    estimate = self.estimate(request)
        except Exception as error:
            return self.passed(transcript, error)
        report = planned_report(transcript, plan)
        report = replace(report, warnings=(*report.warnings, *warnings))
        return Compaction(output=b"", plan=plan, report=report, estimate=estimate)

    def _planned(self, transcript: Transcript, settings: Settings | None = None) -> Plan:
        settings, counter = settings or self.settings, self._counter(transcript)
        return plan_transcript(transcript, settings, counter=counter, mode=self.mode, importance=self.importance)

    def _request(self, transcript: Transcript, plan: Plan) -> Request | None:
        counter = self._counter(transcript)
        return summary_request(transcript, self.settings, plan, counter=counter, load_state=self.load_state)

    def _with_original(self, transcript: Transcript, generations: int = _MOST_GENERATIONS) -> Transcript:
        """The transcript with the size of what its newest summary covers, counted in the archived original.

        A row of a dataset is looked up only if something follows its summary: rows are many, and rarely continued.
        """
        marker = previous_marker(transcript)
        is_row = transcript.frame.container is Container.ARRAY
        if marker is None or self.load_original is None or not generations or (is_row and is_settled(transcript)):
            return transcript
        original = self.load_original(marker.transcript)
        if original is None or len(original.records) != marker.records:
            return transcript
        original = self._with_original(original, generations - 1)
        tokens = count_messages(self._counter(transcript), original.messages)
        return replace(transcript, original_tokens=base_tokens(original, tokens))

    def compact(self, transcript: Transcript) -> Compaction:
        """Compact the transcript."""
        if self.redacts:
            return self._redacted(transcript)
        if transcript.fault:
            return self.passed(transcript, transcript.fault)
        if self.shape is None or not self.shape.is_split:
            return self._whole(transcript)
        from compactor_cli.render.convert import windows

        stages = windows(transcript)
        return merge_windows(stages, [self._whole(window) for window in stages])

    def make(self, transcript: Transcript) -> FinishedRow:
        """Plan or compact the transcript, as ``only_plans`` has it, and make its views."""
        if transcript.unread_records:
            report = unread_report(transcript, self.settings, self._counter(transcript))
            return FinishedRow(output=transcript.source(), report=report)
        return self.finished(transcript, self.plan(transcript) if self.only_plans else self.compact(transcript))

    def finished(self, transcript: Transcript, row: Compaction) -> FinishedRow:
        """The row with its views, reduced to what is kept of it."""
        views = {name: view(transcript, row) for name, view in self.views.items()}
        if row.example:
            views["training_rows"] = row.example
        return FinishedRow(output=row.output, report=row.report, state=row.state, views=views)

    @property
    def unread_bytes(self) -> int:
        """Rows of nothing but text and of at most this many bytes are passed on unread; 0: all rows are read."""
        is_shown = self.only_plans or self.views
        reads_all = is_shown or self.redacts or self.shape or self.engine or self.planned or self.plans is not None
        return 0 if reads_all else unread_bytes(self.settings)

    def _redacting(self, transcript: Transcript) -> tuple[Transcript, RowMaker, Redactor]:
        """The transcript without secrets, a maker whose summaries have none either, and the redactor of both."""
        from compactor_cli.llm.redact import Redacted, Redactor, redact_transcript

        redactor, summariser = Redactor(), self.summariser
        maker = replace(self, redacts=False, summariser=lambda feedback: Redacted(summariser(feedback), redactor))
        return redact_transcript(transcript, redactor), maker, redactor

    def _redacted(self, transcript: Transcript) -> Compaction:
        """Compact the transcript without its secrets. If only secrets were removed, it counts as compacted as well."""
        if self.mode is Mode.APPEND:
            return self._redacted_addition(transcript)
        clean, maker, redactor = self._redacting(transcript)
        row = maker.compact(clean)
        if not redactor.counts:
            return row
        is_changed = clean is not transcript and row.report.outcome is Outcome.UNCHANGED
        report = replace(
            row.report,
            outcome=Outcome.COMPACTED if is_changed else row.report.outcome,
            redacted={**row.report.redacted, **redactor.counts},
            bytes_before=transcript.size_bytes,
            bytes_after=len(row.output),
        )
        return replace(row, report=report, transcript=row.transcript or clean)

    def _redacted_addition(self, transcript: Transcript) -> Compaction:
        """Compact in append mode: secrets are removed from what is appended, but not from the bytes before it."""
        from compactor_cli.llm.redact import Redactor, redact_json

        row = replace(self, redacts=False).compact(transcript)
        redactor = Redactor()
        added, example = redact_json([row.output[transcript.size_bytes :], row.example], redactor)
        if not redactor.counts:
            return row
        output = row.output[: transcript.size_bytes] + added
        redacted = {**row.report.redacted, **redactor.counts}
        report = replace(row.report, redacted=redacted, bytes_after=len(output))
        return replace(
            row, output=output, report=report, summary_text=redactor.redact(row.summary_text), example=example
        )

    def _whole(self, transcript: Transcript) -> Compaction:
        try:
            transcript = self._with_original(transcript)
            row, guidance = self._compact(transcript, ""), ""
            while self.review and row.changed and (feedback := self.review(transcript, row)) != "":
                if feedback is None:
                    return self._shaped(transcript, kept(transcript, "declined", row.plan))
                # Earlier guidance still applies.
                guidance = f"{guidance}\n{feedback}".strip()
                row = self._compact(transcript, guidance)
            return self._shaped(transcript, row)
        except KeptAsIs as reason:
            planned = plan_transcript(transcript, self.settings, counter=self._counter(transcript), mode=self.mode)
            return self._shaped(transcript, kept(transcript, str(reason), planned))
        except Exception as error:
            return self.passed(transcript, error)

    def _shaped(self, transcript: Transcript, row: Compaction) -> Compaction:
        """The row with its output in the format of ``shape``."""
        if self.shape is None:
            return row
        if self.shape.is_document:
            return self._document(transcript, row, self.shape)
        written = self.shape.written(row.transcript or transcript)
        report = replace(row.report, bytes_after=len(written.output), not_carried=written.not_carried)
        return replace(row, output=written.output, report=report)

    def _document(self, transcript: Transcript, row: Compaction, shape: OutputShape) -> Compaction:
        """The row as a text to read: if the text is larger than the target, the transcript is compacted further."""
        counter = self._counter(transcript)
        target_tokens = row.plan.target_tokens if self.settings.target != Size() else 0
        aim_tokens = target_tokens
        output, tokens = _text_of(row, transcript, shape, counter)
        for _ in range(MAX_REFITS):
            aim_tokens -= tokens - target_tokens + _REFIT_SLACK_TOKENS
            if tokens <= target_tokens or aim_tokens <= 0:
                break
            smaller = replace(self.settings, target=Size(tokens=aim_tokens))
            row = replace(self, settings=smaller, shape=None, plans=None, ask=None)._compact(transcript, "")
            output, tokens = _text_of(row, transcript, shape, counter)
        over = tokens - target_tokens if target_tokens else 0
        why = f"{over:,} tokens over, as {shape.dialect}" if over > 0 else ""
        plan = replace(row.plan, target_tokens=target_tokens or row.plan.target_tokens)
        report = replace(
            row.report, tokens_after=tokens, bytes_after=len(output), target_tokens=plan.target_tokens, over_target=why
        )
        return replace(row, output=output, report=report, plan=plan)

    def _compact(self, transcript: Transcript, guidance: str) -> Compaction:
        """Compact by the plug-in engine, or else by the built-in one, which also replaces a plug-in that fails."""
        saved, engine = self._saved(transcript), self.engine
        if saved or not engine:
            return self._built_in(transcript, guidance, saved)
        counter = self._counter(transcript)
        try:
            done = engine.compact(transcript, self.settings, counter, self.load_state, self.mode, self.archived)
        except PluginFailed as failure:
            if engine.when_failing is WhenFailing.FAIL:
                raise
            row = self._built_in(transcript, guidance, None)
            return replace(row, report=replace(row.report, warnings=(*row.report.warnings, _fallback_warning(failure))))
        if self.ask and done.changed:
            self.ask(transcript, done.plan)
        return done

    def _built_in(self, transcript: Transcript, guidance: str, saved: Saved | None) -> Compaction:
        plan = saved.plan if saved else None
        if guidance and not plan and self.settings.keep.by not in UNBROKEN:
            # What a person asks for is also kept more readily, not only summarised.
            focused = replace(self.settings, focus=f"{self.settings.focus} {guidance}".strip())
            plan = self._planned(transcript, focused)
        if self.ask:
            plan = plan or self._planned(transcript)
            feedback = self.ask(transcript, plan) if plan.changes else ""
            guidance = "\n".join(filter(None, (feedback, guidance)))
        if self.planned:
            plan = plan or self._planned(transcript)
            self.planned(transcript, plan)
        done = compact_transcript(
            transcript,
            self.settings,
            counter=self._counter(transcript),
            summariser=self.summariser(guidance),
            load_state=self.load_state,
            plan=plan,
            mode=self.mode,
            # A saved digest is written again and compared; any other saved summary is used as it is.
            summary_text=saved.summary if saved and saved.source in ("model", "plugin", "memory") else "",
            importance=self.importance,
            archived=self.archived,
        )
        if done.changed:
            self._check_summary(transcript, done, saved)
        if self.example and done.summary_text and (request := self._request(transcript, done.plan)):
            return replace(done, example=self.example(request, done.summary_text))
        return done

    def _check_summary(self, transcript: Transcript, done: Compaction, saved: Saved | None) -> None:
        """Raise `OutputError` if the summary is not the saved one, or keeps less than the settings demand."""
        if saved and without_preface(done.summary_text) != without_preface(saved.summary):
            advice = "plan again: the summary depends on the version and on the archive"
            raise InvariantError("the summary would not be the planned one", next_step=advice, place=_place(transcript))
        least = self.settings.min_retention_ratio
        if short := [f"{kind} {share:.0%}" for kind, share in done.report.retention.items() if share < least]:
            what = f"too little of the middle survives ({', '.join(short)}; wanted {least:.0%})"
            raise OutputError(what, next_step="raise the target, or lower min-retention")

    def _saved(self, transcript: Transcript) -> Saved | None:
        if self.plans is None:
            return None
        if transcript.sha256 not in self.plans:
            what = "the plan does not know this transcript, or it changed since"
            raise OutputError(what, next_step="make a new plan with --plan-out", place=_place(transcript))
        return self.plans[transcript.sha256]

    def _counter(self, transcript: Transcript) -> Counter:
        return _shared_counter(self.settings.tokenizer, transcript.model)

    def passed(self, transcript: Transcript, error: Exception) -> Compaction:
        """The row as it was, with what went wrong. Raises the error for a session, and if it is a UsageError."""
        if transcript.frame.container is Container.LINES or isinstance(error, UsageError):
            raise error
        what = str(error) if isinstance(error, CompactError) else f"defect: {type(error).__name__}: {error}"
        has_place = isinstance(error, CompactError) and error.place
        reason = what if has_place else f"{_place(transcript)}: {what}"
        row = _as_it_was(transcript, "failed")
        return replace(row, report=replace(row.report, outcome=Outcome.FAILED, reason=reason))


def _text_of(row: Compaction, transcript: Transcript, shape: OutputShape, counter: Counter) -> tuple[bytes, int]:
    output = shape.written(row.transcript or transcript).output
    return output, counter.count(output.decode())


def _fallback_warning(failure: PluginFailed) -> str:
    return f"{failure.what}: the built-in engine did the work"


def _place(transcript: Transcript) -> str:
    return str(transcript.records[0].place) if transcript.records else ""


def merge_windows(stages: Sequence[Transcript], rows: Sequence[Compaction]) -> Compaction:
    """Merge the results of all windows: outputs joined, sizes summed; all else is that of the last window."""
    from compactor_cli.render.convert import not_carried_by_all

    reports = [row.report for row in rows]
    transcript = stages[-1]
    whole = replace(
        reports[-1],
        outcome=Outcome.COMPACTED if any(row.changed for row in rows) else Outcome.UNCHANGED,
        sha256=transcript.sha256,
        records=len(transcript.records),
        tokens_before=sum(report.tokens_before for report in reports),
        tokens_after=sum(report.tokens_after for report in reports),
        bytes_before=transcript.size_bytes,
        bytes_after=sum(report.bytes_after for report in reports),
        not_carried=not_carried_by_all(stages, [report.not_carried for report in reports]),
        notes=(*reports[-1].notes, f"{len(rows)} windows"),
    )
    output, example = (b"".join(parts) for parts in zip(*((row.output, row.example) for row in rows), strict=True))
    return replace(rows[-1], output=output, report=whole, example=example)


def mapped(work: Callable[[Item], Result], items: Iterable[Item], models: ModelRun | None) -> Iterator[Result]:
    """Run ``work`` on each item, in threads if there are models to wait for; yields the results in order."""
    return models.mapped(work, items) if models else map(work, items)
