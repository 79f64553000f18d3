"""Material: everything a digest knows about the records it stands for, worked out once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from compactor_cli.digest import state as states
from compactor_cli.digest import table as tables
from compactor_cli.digest.attached import Attached, attached
from compactor_cli.digest.candidates import Candidate
from compactor_cli.digest.commands import Run, runs
from compactor_cli.digest.decisions import Decision, decisions
from compactor_cli.digest.errors import Trouble, troubles
from compactor_cli.digest.events import Event, EventKind, events
from compactor_cli.digest.files import FileState, ledger
from compactor_cli.digest.language import Words, detect, words_of
from compactor_cli.digest.memory import Memory
from compactor_cli.digest.plan_state import PlanState, plan_state
from compactor_cli.digest.readback import read_text
from compactor_cli.digest.salience import Scores, score
from compactor_cli.digest.table import Table
from compactor_cli.digest.touches import Touch, touches
from compactor_cli.digest.turns import Turn, turns
from compactor_cli.digest.user_words import SHORT_WORDS, SHORT_WORDS_OF_TALK, Said, said
from compactor_cli.model.summariser import Request
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Role

_OURS = "compact"
# Above this a conversation is about code rather than talk (see `salience`).
_CODING = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What is known. ``state_used`` says how a previous summary of ours came back: none, table or text.

    ``ours``: the records of such summaries.
    """

    events: tuple[Event, ...]
    kept: tuple[Event, ...]
    language: str
    words: Words
    memory: Memory
    ours: frozenset[int]
    state_used: str
    table: Table
    scores: Scores
    candidates: tuple[Candidate, ...]
    said: tuple[Said, ...]
    plan: PlanState
    touches: tuple[Touch, ...]
    files: tuple[FileState, ...]
    runs: tuple[Run, ...]
    troubles: tuple[Trouble, ...]
    decisions: tuple[Decision, ...]
    turns: tuple[Turn, ...]
    attached: Attached


def gather(request: Request) -> Material:
    """Reads the covered records (and the kept ones, for what they show) and what an earlier summary knew."""
    found = events(request.transcript, request.covered)
    stored = states.parse(request.state) if request.state else None
    ours = [event for event in found if _is_ours(event, request)]
    memory, state_used = Memory(), "none"
    if stored:
        memory, state_used = Memory.from_json(stored.extra), "table"
    elif ours:
        memory, state_used = read_text(ours[-1].text, request.render, request.read), "text"
    memory = replace(memory, users=(*memory.users, *_told_by_client(found, request)))
    records = frozenset(event.record for event in ours)
    shown = _without(found, records, () if stored else [line for _, line in memory.lines])
    table = stored.table.merge(tables.build(shown)) if stored else tables.build(shown)
    known = _Known(memory=memory, state_used=state_used, ours=records, candidates=stored.candidates if stored else ())
    return _told(request, shown, table, known)


def _is_ours(event: Event, request: Request) -> bool:
    summary = request.transcript.messages[event.record].summary
    return event.kind is EventKind.SUMMARY and summary is not None and summary.origin == _OURS


def _told_by_client(found: Sequence[Event], request: Request) -> Iterator[str]:
    """The user's messages as the newest summary of a client lists them: their records are out of the model's sight."""
    theirs = [event for event in found if event.kind is EventKind.SUMMARY and not _is_ours(event, request)]
    for part in request.read_client(theirs[-1].text) if theirs else ():
        if part.section is Section.USER:
            yield from (item.text for item in part.items if not item.text.endswith(":"))


def _without(found: Sequence[Event], ours: frozenset[int], lines: Iterable[str]) -> tuple[Event, ...]:
    """The events with what an earlier summary of ours said reduced to ``lines``: its sections are read elsewhere.

    Every event keeps its place, since results name their calls by it.
    """
    text = "\n".join(lines)
    last = max(ours, default=-1)
    return tuple(
        replace(event, text=text if event.record == last else "")
        if event.record in ours and event.kind is EventKind.SUMMARY
        else event
        for event in found
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What an earlier summary of ours knew."""

    memory: Memory
    state_used: str
    ours: frozenset[int]
    candidates: tuple[Candidate, ...]


def _told(request: Request, found: tuple[Event, ...], table: Table, known: _Known) -> Material:
    memory = known.memory
    scores = score(table, focus=request.focus)
    short = SHORT_WORDS if scores.coding >= _CODING else SHORT_WORDS_OF_TALK
    messages = _carried_words(memory, said(found, short))
    language = request.language if request.language != "auto" else detect(message.text for message in messages)
    kept = events(request.transcript, request.kept)
    acts, ran, plan = touches(found), runs(found), plan_state(found)
    return Material(
        events=found,
        kept=kept,
        language=language,
        words=words_of(language),
        memory=memory,
        ours=known.ours,
        state_used=known.state_used,
        table=table,
        scores=scores,
        candidates=known.candidates,
        said=messages,
        plan=_carried_plan(memory, plan),
        touches=acts,
        files=ledger(acts, memory.file_states()),
        runs=ran,
        troubles=troubles(found, ran, acts),
        decisions=_carried_decisions(memory, decisions(found)),
        turns=_all_turns(memory, turns(found, messages, acts, ran)),
        attached=attached(found, kept, _notices(request), memory.attached()),
    )


def _notices(request: Request) -> Iterator[str]:
    """What clients say in the user's name of work that ended: no words of the user, and so no events."""
    messages = request.transcript.messages
    for i in sorted((*request.covered, *request.kept)):
        if messages[i].role is Role.USER and "<task-id>" in messages[i].text:
            yield messages[i].text


def _carried_words(memory: Memory, new: Sequence[Said]) -> tuple[Said, ...]:
    known = {message.text for message in new}
    carried = (Said(text=text, record=-1, turn=-1) for text in memory.users if text not in known)
    return (*carried, *new)


def _carried_plan(memory: Memory, new: PlanState) -> PlanState:
    old = memory.plan_state()
    return PlanState(todos=new.todos or old.todos, text=new.text or old.text, record=new.record)


def _carried_decisions(memory: Memory, new: Sequence[Decision]) -> tuple[Decision, ...]:
    known = {decision.text for decision in new}
    carried = (Decision(text=text, records=(), weight=2.0) for text in memory.decisions if text not in known)
    return (*carried, *new)


def _all_turns(memory: Memory, new: Sequence[Turn]) -> tuple[Turn, ...]:
    """The carried turns before the new ones; what comes before the first new message goes on with the last of them."""
    old = tuple(Turn(number=number - len(memory.turns), line=line) for number, line in enumerate(memory.turns))
    if old and new and not new[0].asked:
        new[0].goes_on = True
    return (*old, *new)
