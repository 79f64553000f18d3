"""Analysis: everything a digest knows of the records it stands for, worked out once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from compactor_cli.digest import memory as states
from compactor_cli.digest import salience as tables
from compactor_cli.digest.checklists import DealtWith, dealt_with
from compactor_cli.digest.choice import Worth
from compactor_cli.digest.commands import Run, runs
from compactor_cli.digest.corrections import overturned
from compactor_cli.digest.events import Event, EventKind, events
from compactor_cli.digest.failures import Cause, ErrorRecord, find_causes, find_errors
from compactor_cli.digest.files import FileOperation, FileState, file_operations, replay
from compactor_cli.digest.history import DigestTurn, finals, turns_of
from compactor_cli.digest.language import FixedWords, detect, words_of
from compactor_cli.digest.memory import Memory, read_text
from compactor_cli.digest.open import Attached, PlanState, attached, plan_state
from compactor_cli.digest.outcomes import RequestOutcome, outcomes
from compactor_cli.digest.salience import Scores, Table, focus_names, score
from compactor_cli.digest.settled import Decision, decisions
from compactor_cli.digest.statements import Statement
from compactor_cli.digest.wants import SHORT_WORDS, SHORT_WORDS_OF_CHAT, UserMessage, user_messages
from compactor_cli.digest.work_state import WorkState, work_state
from compactor_cli.formats.client_signs import working_directory
from compactor_cli.model.summary import Request, Section
from compactor_cli.model.transcript import Role
from compactor_cli.model.value import dataclass

_COMPACT = "compact"
# Above this a conversation is about code rather than anything else (see `salience`).
_CODING = 0.5
# Messages that begin alike for this many characters are one.
_SAME_CHARS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What is known. ``state_used`` says how an earlier summary by compact came back: none, table or text.

    ``own_summaries``: the records of such summaries. ``finals``: positions of the messages that end a turn;
    ``taken_back``: of those that were overturned, with the places of the statements. ``outcomes``: what came of the
    user's messages, by turn. ``dealt_with``: entries of the assistant's lists. ``remembered``: statements of
    records that are gone. ``is_dialogue``: a conversation without work on files or commands; calls in it are those of a
    service. ``focus``: names in lower case.
    """

    events: tuple[Event, ...]
    kept: tuple[Event, ...]
    language: str
    words: FixedWords
    memory: Memory
    own_summaries: frozenset[int]
    state_used: str
    table: Table
    scores: Scores
    worth: Worth
    remembered: tuple[Statement, ...]
    messages: tuple[UserMessage, ...]
    plan: PlanState
    operations: tuple[FileOperation, ...]
    files: tuple[FileState, ...]
    runs: tuple[Run, ...]
    errors: tuple[ErrorRecord, ...]
    causes: tuple[Cause, ...]
    decisions: tuple[Decision, ...]
    turns: tuple[DigestTurn, ...]
    finals: frozenset[int]
    taken_back: Mapping[int, frozenset[int]]
    work: WorkState
    outcomes: Mapping[int, RequestOutcome]
    dealt_with: tuple[DealtWith, ...]
    attached: Attached
    is_dialogue: bool
    focus: frozenset[str] = frozenset()
    restore_files: int = 0
    kept_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Earlier:
    """What an earlier summary by compact knew."""

    memory: Memory
    state_used: str
    records: frozenset[int]
    statements: tuple[Statement, ...]


def analyse(request: Request) -> Analysis:
    """Reads the covered records (and the kept ones, for what they show) and what an earlier summary knew."""
    found = events(request.transcript, request.covered)
    stored = states.parse(request.state) if request.state else None
    own = [event for event in found if _is_own(event, request)]
    memory, state_used = Memory(), "none"
    if stored:
        memory, state_used = Memory.from_json(stored.extra), "table"
    elif own:
        memory, state_used = read_text(own[-1].text, request.read), "text"
    memory = replace(memory, users=(*memory.users, *_listed_by_client(found, request)))
    records = frozenset(event.record for event in own)
    shown = _reduced(found, records, () if stored else [line for _, line in memory.lines])
    table = stored.table.merge(tables.build(shown)) if stored else tables.build(shown)
    earlier = _Earlier(
        memory=memory, state_used=state_used, records=records, statements=stored.statements if stored else ()
    )
    return _analysed(request, shown, table, earlier)


def _is_own(event: Event, request: Request) -> bool:
    summary = request.transcript.messages[event.record].summary
    return event.kind is EventKind.SUMMARY and summary is not None and summary.origin == _COMPACT


def _listed_by_client(found: Sequence[Event], request: Request) -> Iterator[str]:
    """The user's messages as the newest summary of a client lists them: their records are out of the model's sight."""
    theirs = [event for event in found if event.kind is EventKind.SUMMARY and not _is_own(event, request)]
    for part in request.read_client(theirs[-1].text) if theirs else ():
        if part.section is Section.USER:
            yield from (item.text for item in part.items if not item.text.endswith(":"))


def _reduced(found: Sequence[Event], own: frozenset[int], lines: Iterable[str]) -> tuple[Event, ...]:
    """The events with what an earlier summary by compact held reduced to ``lines``: its sections are read elsewhere.

    Every event keeps its place, since results name their calls by it.
    """
    text = "\n".join(lines)
    last = max(own, default=-1)
    return tuple(
        replace(event, text=text if event.record == last else "")
        if event.record in own and event.kind is EventKind.SUMMARY
        else event
        for event in found
    )


def _analysed(request: Request, found: tuple[Event, ...], table: Table, earlier: _Earlier) -> Analysis:
    memory = earlier.memory
    scores = score(table, focus=request.focus)
    short = SHORT_WORDS if scores.coding >= _CODING else SHORT_WORDS_OF_CHAT
    messages = _with_carried_words(memory, user_messages(found, short))
    language = request.language if request.language != "auto" else detect(message.text for message in messages)
    kept = events(request.transcript, request.kept)
    operations, ran, plan = file_operations(found), runs(found), plan_state(found)
    files = replay(operations, memory.file_states())
    turns, taken_back = turns_of(found), overturned(found)
    words, work = words_of(language), work_state(found, ran, operations, files, working_directory(request.transcript))
    return Analysis(
        events=found,
        kept=kept,
        language=language,
        words=words,
        memory=memory,
        own_summaries=earlier.records,
        state_used=earlier.state_used,
        table=table,
        scores=scores,
        worth=Worth(scores),
        remembered=earlier.statements,
        messages=messages,
        plan=_with_carried_plan(memory, plan),
        operations=operations,
        files=files,
        runs=ran,
        errors=find_errors(found, ran, operations),
        causes=find_causes(found, operations, taken_back),
        decisions=_with_carried_decisions(memory, decisions(found, taken_back)),
        turns=turns,
        finals=finals(turns),
        taken_back=taken_back,
        work=work,
        outcomes=outcomes(found, ran, operations, work.commits, taken_back, words),
        dealt_with=dealt_with(found, ran, operations),
        attached=attached(found, kept, _notices(request), memory.attached()),
        is_dialogue=scores.coding < _CODING and not (ran or operations),
        focus=focus_names(request.focus),
        restore_files=request.restore_files,
        kept_by=request.kept_by,
    )


def _notices(request: Request) -> Iterator[str]:
    """What clients say in the user's name of work that ended: no words of the user, and so no events."""
    messages = request.transcript.messages
    for i in sorted((*request.covered, *request.kept)):
        if messages[i].role is Role.USER and "<task-id>" in messages[i].text:
            yield messages[i].text


def _with_carried_words(memory: Memory, new: Sequence[UserMessage]) -> tuple[UserMessage, ...]:
    # A list of a client's summary quotes messages, or how they begin, in quotation marks.
    known = {_beginning(message.text) for message in new}
    carried = (UserMessage(text=text, record=-1, turn=-1) for text in memory.users if _beginning(text) not in known)
    return (*carried, *new)


def _beginning(text: str) -> str:
    return " ".join(text.strip("\"'“” ").split())[:_SAME_CHARS]


def _with_carried_plan(memory: Memory, new: PlanState) -> PlanState:
    old = memory.plan_state()
    return PlanState(todos=new.todos or old.todos, text=new.text or old.text, record=new.record)


def _with_carried_decisions(memory: Memory, new: Sequence[Decision]) -> tuple[Decision, ...]:
    known = {decision.text for decision in new}
    carried = (Decision(text=text, records=(), weight=2.0) for text in memory.decisions if text not in known)
    return (*carried, *new)
