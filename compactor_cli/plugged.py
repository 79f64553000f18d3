"""Plugged: engines and summarisers that another package brings, held to the promises of the built-in ones.

An engine decides what is kept and what is written of the rest; what stays is written from its own bytes, in the
transcript's own format, and the result is checked as any other: whole pairs, within the target, smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from typing import Protocol

from compactor_cli.engine import Compaction, compact_transcript
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import InvariantError, PluginFailed
from compactor_cli.model.marker import PLACEHOLDER_HASH, Marker
from compactor_cli.model.plan import BOOKKEEPING, SUPERSEDED, Action, Edit, Mark, Mode, Plan, spans_of
from compactor_cli.model.plugins import PluginGroup, WhenFailing, load_plugin, plugin_failed
from compactor_cli.model.settings import Settings
from compactor_cli.model.summary import Answer, LoadState, Request, Source, Summariser, Summary
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.planner import appended, check_plan, refreshed
from compactor_cli.plan.strategies import sealed_tokens
from compactor_cli.plan.tokens import Counter, count_messages
from compactor_cli.plan.trigger import Way, base_tokens, decide, is_settled
from compactor_cli.render.template import load_template, render

# What messages take next to their texts, and what other hashes in the marker line may.
_SLACK_TOKENS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A transcript that is to become smaller.

    ``tokens``: of each record; ``exchanges``: records that stay or go together; ``room_tokens``: what the records
    that stay, and the text, may take, the frame around the text deducted. ``count`` gives the tokens of a text.
    """

    transcript: Transcript
    settings: Settings
    tokens: tuple[int, ...]
    exchanges: tuple[tuple[int, ...], ...]
    room_tokens: int
    count: Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What an engine makes of a transcript.

    ``kept``: the records that stay; ``text``: what takes the place of the others, where the first of them was
    (empty: nothing is). ``shortened``: new texts for parts of kept records, by record and part.
    """

    kept: Collection[int]
    text: str = ""
    shortened: Mapping[tuple[int, int], str] = field(default_factory=dict)


class Engine(Protocol):
    """Decides on its own what becomes of a transcript that is to be compacted."""

    def compact(self, task: Task) -> Draft | None:
        """The draft; None to leave the transcript as it is. May raise anything: it is named and replaced by the
        built-in one.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginEngine:
    """An engine by its name, or why it could not be loaded; and what to do where it fails."""

    name: str
    engine: Engine | PluginFailed
    when_failing: WhenFailing

    def plan(self, transcript: Transcript, settings: Settings, counter: Counter, mode: Mode) -> tuple[Plan, str]:
        """What the engine wants, as a plan, and its text. Raises PluginFailed."""
        if isinstance(self.engine, PluginFailed):
            raise self.engine
        try:
            return _Planning(transcript, settings, counter).plan(self.name, self.engine, mode)
        except Exception as error:
            raise plugin_failed(PluginGroup.ENGINES, self.name, error) from error

    def compact(
        self,
        transcript: Transcript,
        settings: Settings,
        counter: Counter,
        load_state: LoadState,
        mode: Mode,
        archived: bool = True,
    ) -> Compaction:
        """The compaction by this engine, checked as any other. Raises PluginFailed."""
        plan, text = self.plan(transcript, settings, counter, mode)
        try:
            done = compact_transcript(
                transcript,
                settings,
                counter=counter,
                summariser=_FixedSummariser(text),
                load_state=load_state,
                plan=plan,
                mode=mode,
                archived=archived,
            )
        except Exception as error:
            raise plugin_failed(PluginGroup.ENGINES, self.name, error) from error
        if plan.changes and not done.changed:
            raise PluginFailed(f"the engine {self.name} failed (what it made is no smaller)")
        return done


def load_engine(name: str, when_failing: WhenFailing) -> PluginEngine:
    """The engine of this name; one that cannot be imported fails on each transcript. Raises UsageError: none has it."""
    try:
        engine = load_plugin(PluginGroup.ENGINES, name)
    except PluginFailed as failure:
        engine = failure
    return PluginEngine(name=name, engine=engine, when_failing=when_failing)


class _Planning:
    """A transcript on its way to a plan."""

    def __init__(self, transcript: Transcript, settings: Settings, counter: Counter) -> None:
        self.transcript, self.settings, self.counter = transcript, settings, counter
        self.grouping = group(transcript.messages)
        self.tokens = tuple(count_messages(counter, transcript.messages))
        self.total_tokens = sum(self.tokens)
        base = base_tokens(transcript, self.tokens)
        self.decision = decide(settings, tokens=self.total_tokens, base_tokens=base, model=transcript.model)

    def plan(self, name: str, engine: Engine, mode: Mode) -> tuple[Plan, str]:
        """The plan, checked, and the text. Raises InvariantError, and whatever the engine raises."""
        draft = None
        reason = self.decision.reason
        # Whether nothing was added since the last compaction, and nothing but that would ask for another.
        is_unknown_share = bool(self.settings.target.ratio) and not self.transcript.original_tokens
        is_done = (self.decision.way is Way.NATURAL or is_unknown_share) and is_settled(self.transcript)
        if self.decision.compacts and not is_done:
            task = Task(
                transcript=self.transcript,
                settings=self.settings,
                tokens=self.tokens,
                exchanges=self.grouping.exchanges,
                room_tokens=(self.decision.target_tokens or self.total_tokens) - self._frame_tokens(),
                count=self.counter.count,
            )
            draft = engine.compact(task)
            reason = f"by the engine {name}" if draft else f"the engine {name} leaves it as it is"
        plan = self._plan(draft or Draft(kept=range(len(self.tokens))), name, reason)
        is_appended = mode is Mode.APPEND
        plan = appended(plan, self.grouping, self.settings) if is_appended else refreshed(plan, self.transcript)
        check_plan(plan, self.transcript, self.grouping)
        return plan, draft.text if draft else ""

    def _frame_tokens(self) -> int:
        """What the transcript holds around a text: preface, marker line, acknowledgement, sealed summaries."""
        count, tokens = len(self.tokens), self.total_tokens
        unknown = PLACEHOLDER_HASH
        marker = Marker(transcript=unknown, first=1, last=count, records=count, tokens=tokens, end=unknown)
        nothing = Summary(source=Source.PLUGIN, sections=())
        frame = render(nothing, load_template(self.settings.template), marker)
        around = self.counter.count(self.settings.acknowledgement) + sealed_tokens(self.transcript.messages)
        return self.counter.count(frame) + around + _SLACK_TOKENS

    def _plan(self, draft: Draft, name: str, reason: str) -> Plan:
        kept = set(draft.kept) - self.grouping.orphaned()
        edits = tuple(Edit(record=i, part=part, text=text) for (i, part), text in sorted(draft.shortened.items()))
        marks: list[Mark] = []
        for i, message in enumerate(self.transcript.messages):
            if i in kept:
                marks.append((Action.KEEP, ""))
            elif message.is_meta:
                marks.append((Action.PRUNE, BOOKKEEPING))
            elif message.superseded:
                marks.append((Action.PRUNE, SUPERSEDED))
            else:
                marks.append((Action.COVER if draft.text else Action.PRUNE, name))
        for edit in edits:
            marks[edit.record] = (Action.PRUNE, name)
        gone = [i for i, (action, _) in enumerate(marks) if action is Action.COVER]
        kept_tokens = sum(self.tokens[i] for i in kept)
        for (i, part), text in draft.shortened.items():
            # What it saves at least: the old text less the new one.
            old = getattr(self.transcript.messages[i].parts[part], "text", "")
            kept_tokens += self.counter.count(text) - self.counter.count(old)
        summary_tokens = self.counter.count(draft.text) + self._frame_tokens() if gone else 0
        target = self.decision.target_tokens or self.total_tokens
        taken = kept_tokens + summary_tokens
        if gone and taken > target:
            raise InvariantError(f"what it keeps and writes takes {taken:,} tokens, over the target of {target:,}")
        return Plan(
            transcript_sha256=self.transcript.sha256,
            fingerprint=self.settings.fingerprint(),
            spans=spans_of(marks),
            edits=edits,
            reason=reason,
            tier=self.decision.tier,
            window_tokens=self.decision.window_tokens,
            target_tokens=target,
            tokens_before=self.total_tokens,
            tokens_kept=kept_tokens,
            tokens_middle=sum(self.tokens[i] for i in gone),
            summary_tokens=summary_tokens,
            summary_at=next((i for i in sorted(kept) if i > gone[0]), len(marks)) if gone else 0,
        )


class _FixedSummariser:
    """A summariser that gives back the text that it was given."""

    def __init__(self, text: str) -> None:
        self._text = text

    def summarise(self, request: Request) -> Answer:
        """The text, whatever is asked."""
        return Answer(summary=Summary(source=Source.PLUGIN, sections=(), prose=self._text))


class PluginSummariser:
    """A summariser that another package brings; where it fails, the built-in one writes the summary."""

    def __init__(self, name: str, when_failing: WhenFailing, built_in: Summariser) -> None:
        self._name = name
        self._when_failing = when_failing
        self._built_in = built_in

    def summarise(self, request: Request) -> Answer:
        """Its summary, if it is within the budget. Raises PluginFailed only where the run is strict."""
        try:
            answer: Answer = load_plugin(PluginGroup.SUMMARISERS, self._name).summarise(request)
            size_tokens = request.count(request.render(answer.summary))
            if size_tokens > request.budget_tokens:
                what = f"its summary takes {size_tokens:,} tokens, over the budget of {request.budget_tokens:,}"
                raise PluginFailed(f"the summariser {self._name} failed ({what})")
        except Exception as error:
            failure = plugin_failed(PluginGroup.SUMMARISERS, self._name, error)
            if self._when_failing is WhenFailing.FAIL:
                raise failure from error
            return replace(self._built_in.summarise(request), fell_back=failure.what)
        return answer
