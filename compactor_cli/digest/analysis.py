"""Analysis: everything a digest knows of the records that it replaces, worked out once.

Sections read these values and never the records; each value is computed in the module of its subject (`failures`, …).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from compactor_cli.digest.background import Attached, attached
from compactor_cli.digest.causes import Cause, find_causes
from compactor_cli.digest.checklists import PlanState, checked, plan_state
from compactor_cli.digest.checks import changes_code, is_check, of_the_work
from compactor_cli.digest.choice import Worth
from compactor_cli.digest.commands import may_act_outside
from compactor_cli.digest.commits import without_tries
from compactor_cli.digest.corrections import (
    EditedNames,
    denied,
    edited_names,
    misunderstood,
    overturned,
    taken_out,
    without_withdrawn,
)
from compactor_cli.digest.decisions import Decision, decisions
from compactor_cli.digest.events import Event, EventKind, events, unsaid_thoughts
from compactor_cli.digest.failures import ErrorRecord, find_errors, without_pushed
from compactor_cli.digest.file_contents import overwritten, with_scripts
from compactor_cli.digest.files import FileOperation, FileState, file_operations, replay
from compactor_cli.digest.history import DigestTurn, finals, turns_of
from compactor_cli.digest.language import FixedWords, detect, words_of
from compactor_cli.digest.memory import Memory, parse, read_text
from compactor_cli.digest.messages import SHORT_WORDS, SHORT_WORDS_OF_CHAT, UserMessage, stops_in_force, user_messages
from compactor_cli.digest.names import Labels
from compactor_cli.digest.noise import progress_among
from compactor_cli.digest.outcomes import RequestOutcome, outcomes
from compactor_cli.digest.replies import is_assent
from compactor_cli.digest.runs import CommandOutcome, Run, runs
from compactor_cli.digest.salience import Scores, Table, build, focus_names, score
from compactor_cli.digest.shell import shell_operations
from compactor_cli.digest.statements import Statement
from compactor_cli.digest.tools import FileAction, ToolKind
from compactor_cli.digest.work_state import WorkState, work_state
from compactor_cli.formats.client_signs import ASKS_FOR_SUMMARY, plans_only
from compactor_cli.formats.directories import (
    Directories,
    directories_of,
    earlier_transcript,
    recorded_branch,
    recorded_limits,
)
from compactor_cli.model.summary import Request, Section
from compactor_cli.model.transcript import Role
from compactor_cli.model.value import dataclass

_COMPACT = "compact"
# From this value of `Scores.coding` on, a conversation is treated as being about code.
_CODING = 0.5
# Messages are taken to be the same if their first letters and digits, this many, are.
_SAME_CHARS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What is known of the covered records. Positions are those of events in ``events``."""

    events: tuple[Event, ...]  # of the covered records; summaries by compact, and withdrawn messages, without text
    labels: Labels
    kept: tuple[Event, ...]  # of the records that stay
    thoughts: tuple[tuple[int, Event], ...]  # see `unsaid_thoughts`
    language: str
    words: FixedWords
    memory: Memory  # what an earlier summary by compact knew
    own_summaries: frozenset[int]  # the records of earlier summaries by compact
    state_used: str  # how the newest of them was read back: "none", "table" or "text"
    table: Table
    progress: frozenset[str]  # see `progress_among`
    scores: Scores
    worth: Worth
    remembered: tuple[Statement, ...]  # statements of records that are gone
    messages: tuple[UserMessage, ...]
    plan: PlanState
    operations: tuple[FileOperation, ...]
    is_gone: Callable[[int, str], bool]  # see `overwritten`
    code_changed_at: int  # the position of the last event that changed code, -1 without any
    files: tuple[FileState, ...]
    runs: tuple[Run, ...]
    ended: Mapping[int, CommandOutcome]  # how the runs that do more than read ended, by the position of the call
    errors: tuple[ErrorRecord, ...]
    causes: tuple[Cause, ...]
    decisions: tuple[Decision, ...]
    turns: tuple[DigestTurn, ...]
    finals: frozenset[int]  # the positions of the messages that end a turn
    taken_back: Mapping[int, frozenset[int]]  # overturned messages by position, with the places of the statements
    work: WorkState
    place: str  # the directory outside of the session's own in which most of the work is done; empty: none
    limits: tuple[str, int]  # see `recorded_limits`
    whole_before: tuple[str, int]  # see `earlier_transcript`
    outcomes: Mapping[int, RequestOutcome]  # what came of the user's messages, by turn
    edited: EditedNames
    attached: Attached
    is_dialogue: bool  # no work on files or commands, so that calls are those of a service
    focus: frozenset[str] = frozenset()  # the names in the focus, in lower case
    restore_files: int = 0

    @property
    def newest_thought(self) -> Event | None:
        """What the assistant thought last; None if it has no thoughts, or a message or summary came since."""
        at, thought = self.thoughts[-1] if self.thoughts else (-1, None)
        written = (EventKind.USER, EventKind.SUMMARY, EventKind.ASSISTANT)
        is_answered = any(event.kind in written for event in self.events[at + 1 :])
        return None if is_answered else thought


def analyse(request: Request) -> Analysis:
    """Read the covered records, the kept ones for what they already show, and what an earlier summary knew."""
    messages = request.transcript.messages
    directories = directories_of(request.transcript)
    read = events(request.transcript, request.covered, _is_act, directories)
    summaries = [event for event in read if event.kind is EventKind.SUMMARY]
    own = [event for event in summaries if (known := messages[event.record].summary) and known.origin == _COMPACT]
    stored = parse(request.state) if request.state else None
    memory, state_used = Memory(), "none"
    if stored:
        memory, state_used = Memory.from_json(stored.extra), "table"
    elif own:
        memory, state_used = read_text(own[-1].text, request.read), "text"
    # `read_text` has read the summaries by compact. Their events stay, without text, since results refer to their calls
    # by position.
    named = ", ".join((*(row[0] for row in memory.files), *(name for name, _ in memory.names)))
    lines = "\n".join((*(line for _, line in memory.lines), named))
    own_records = frozenset(event.record for event in own)
    found = without_withdrawn([replace(event, text="") if event.record in own_records else event for event in read])
    thoughts = unsaid_thoughts(request.transcript, request.covered, found, directories.strip)
    table = build(found)
    for _, thought in thoughts:
        table.spoken.add(thought.text)
    if stored:
        table = stored.table.merge(table)
    elif own:
        table = build((replace(own[-1], text=lines),)).merge(table)
    scores = score(table, focus=request.focus)
    user_words = user_messages(found, SHORT_WORDS if scores.coding >= _CODING else SHORT_WORDS_OF_CHAT)
    theirs = [event for event in summaries if event.record not in own_records]
    listed = tuple(_listed_by_client(theirs[-1], request)) if theirs else ()
    carried = (*memory.users, *listed)
    # A client's summary lists messages that may also stand, whole or cut, in the covered or kept records: those are not
    # needed a second time.
    kept = (messages[index].text for index in request.kept if messages[index].role is Role.USER)
    quoted = {_beginning(text) for text in (*(message.text for message in user_words), *kept)}
    # Of messages that begin alike, the longest is kept.
    whole = {_beginning(text): text for text in sorted(carried, key=len)}
    texts = dict.fromkeys(whole[_beginning(text)] for text in carried)
    unquoted = [text for text in texts if _beginning(text) not in quoted]
    # Negative record numbers put these before all records, in their order.
    earlier = (
        UserMessage(text=text, record=at - len(unquoted), turn=-1, is_listed=text in listed)
        for at, text in enumerate(unquoted)
    )
    return _analysed(
        request,
        found,
        scores,
        replace(memory, users=carried),
        directories,
        thoughts=thoughts,
        own_summaries=own_records,
        state_used=state_used,
        place=directories.other,
        remembered=stored.statements if stored else memory.statements(),
        messages=(*earlier, *user_words),
    )


def _is_act(tool: ToolKind, command: str) -> bool:
    """Whether a call of a subagent changed or checked the work, rather than only reading it."""
    is_acting = (
        may_act_outside(command)
        or is_check(command)
        or any(act is not FileAction.READ for act, *_ in shell_operations(command))
    )
    return tool is ToolKind.EDIT or (tool is ToolKind.COMMAND and is_acting)


def _listed_by_client(summary: Event, request: Request) -> Iterator[str]:
    """The user's messages that a client's summary lists; no model is shown their records any more.

    Of an entry with a quotation, only that is returned. An entry that describes the user is left out, and so are
    messages that only agree.
    """
    for part in request.read_client(summary.text):
        for item in part.items if part.section is Section.USER else ():
            quoted = _QUOTATION.search(item.text)
            words, asks_for_summary, _ = (quoted[0] if quoted else item.text).partition(ASKS_FOR_SUMMARY)
            alone = words.strip(' "“”')
            is_quoted = quoted or not (item.text.endswith(":") or _OF_THE_USER.match(item.text))
            if is_quoted and alone and not is_assent(alone):
                words = f"{words[0]}{alone}{words[0].replace('“', '”')}" if quoted and asks_for_summary else words
                yield words


# A quotation of more than ten characters.
_QUOTATION = re.compile(r"[\"“](?=.{12}).+[\"”]", re.DOTALL)
# `The user asked for a new gauge`
_OF_THE_USER = re.compile(r"(?:the )?user (?!:)\w", re.IGNORECASE)


def _analysed(
    request: Request,
    found: tuple[Event, ...],
    scores: Scores,
    memory: Memory,
    directories: Directories,
    *,
    messages: tuple[UserMessage, ...],
    **known: Any,
) -> Analysis:
    language = request.language if request.language != "auto" else detect(message.text for message in messages)
    kept, directory = events(request.transcript, request.kept, directories=directories), directories.working
    done = with_scripts(file_operations(found, directory), found, directory)
    ran = of_the_work(runs(found), found)
    operations = without_tries(done, ran, directory)
    files = replay(operations, memory.file_states())
    messages = stops_in_force(messages, found, done, ran, directory)
    turns, words = turns_of(found), words_of(language)
    taken_back = {**denied(found), **overturned(found), **taken_out(found, done), **misunderstood(found)}
    branch = recorded_branch(request.transcript, request.covered, directories.other)
    work = work_state(found, ran, operations, files, directory, memory.work_state(), branch)
    does_work = ran or operations or any(one.is_of_written_code for one in found)
    is_dialogue = scores.coding < _CODING and not does_work
    return Analysis(
        events=found,
        labels=Labels(found),
        kept=kept,
        language=language,
        words=words,
        memory=memory,
        table=scores.table,
        progress=progress_among(scores.table.lines.numbers),
        scores=scores,
        worth=Worth(scores),
        messages=messages,
        plan=checked(plan_state(found, memory.plan_state()), messages, found, operations, work.commits, words),
        operations=operations,
        is_gone=overwritten(found, operations),
        code_changed_at=max((one.event for one in operations if changes_code(one)), default=-1),
        files=files,
        runs=ran,
        ended={run.event: run.outcome for run in ran if not run.is_read_only},
        errors=find_errors(found, without_pushed(ran, work.in_step), done),
        causes=find_causes(found, ran, done, taken_back),
        decisions=_with_earlier(memory.decisions, decisions(found, taken_back, words)),
        turns=turns,
        finals=finals(turns),
        taken_back=taken_back,
        work=work,
        limits=recorded_limits(request.transcript, max(request.covered, default=-1)),
        whole_before=earlier_transcript(request.transcript, request.covered),
        outcomes=outcomes(found, ran, operations, work.commits, words),
        edited=edited_names(operations, found),
        attached=attached(found, kept, _notices(request), memory.attached(), _modes(request)),
        is_dialogue=is_dialogue,
        focus=focus_names(request.focus),
        restore_files=request.restore_files,
        **known,
    )


def _with_earlier(before: Iterable[str], settled: tuple[Decision, ...]) -> tuple[Decision, ...]:
    newly = {decision.whole for decision in settled}
    return (*(Decision(text=text, records=(), weight=2.0) for text in before if text not in newly), *settled)


def _modes(request: Request) -> dict[int, bool]:
    """Whether the user allowed the agent only to plan, by each of the user's records that states it."""
    records, messages = request.transcript.records, request.transcript.messages
    asked = (index for index in (*request.covered, *request.kept) if messages[index].role is Role.USER)
    stated = ((index, plans_only(records[index].value)) for index in asked)
    return {index: only for index, only in stated if only is not None}


def _notices(request: Request) -> Iterator[str]:
    """The notices about work in the background that clients send in the user's name.

    They are not the user's words, so the events do not hold them.
    """
    both = (request.transcript.messages[index] for index in sorted((*request.covered, *request.kept)))
    return (one.text for one in both if one.role is Role.USER and "<task-id>" in one.text)


def _beginning(text: str) -> str:
    return "".join(filter(str.isalnum, text))[:_SAME_CHARS]
