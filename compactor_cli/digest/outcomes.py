"""Outcomes: what came of each request as far as records show it. No outcome claims that a request is done."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from operator import itemgetter

from compactor_cli.digest.checks import (
    TEST_FILE,
    brief,
    contains,
    covered_since,
    entered,
    is_below,
    is_check,
    is_to_fail,
)
from compactor_cli.digest.commands import acting_line
from compactor_cli.digest.commits import PUSHES, Commit
from compactor_cli.digest.corrections import takes_back
from compactor_cli.digest.error_lines import ERROR_PATTERN
from compactor_cli.digest.events import Event, EventKind, is_service_call, results_of
from compactor_cli.digest.files import FileOperation, is_subagent
from compactor_cli.digest.language import FixedWords, apart, terms
from compactor_cli.digest.messages import ASKS_FOR, is_short
from compactor_cli.digest.noise import is_courtesy, only_announces
from compactor_cli.digest.replies import IS_NO, answer_in, answers_at_once, asks, is_assent, last_question
from compactor_cli.digest.runs import CommandOutcome, Run, never_ran
from compactor_cli.digest.shell import GIT, is_whole
from compactor_cli.digest.statements import QUESTION_MARKS, records_of
from compactor_cli.digest.texts import COLONS, opening, sentences
from compactor_cli.digest.tools import FileAction, is_lookup
from compactor_cli.formats.client_signs import PLAN_FILE
from compactor_cli.model.patterns import pattern
from compactor_cli.model.value import dataclass

# Most outcomes of each kind that are named for one request.
_MAX_MADE, _MAX_EDITED = 3, 2
# What follows a row of yeses counts for each request in it: only this many runs and changes of it, so that time stays
# linear in very long sessions.
_MAX_SET_GOING = 100
_MAX_SUBJECT_CHARS, _MAX_COMMAND_CHARS = 60, 60
_MAX_ANSWER_CHARS = 120
# Where nothing was done, a message of at least this many characters counts as a reply.
_MIN_REPLY_CHARS = 160
# The address of something opened on a server, `https://example.org/harbour/pull/7`, alone on its line or after words:
# within quotes it is a field of what a server holds, made long before.
_ADDRESS = pattern(r"(?<![\"'=(])https?://[^\s\"'<>]+/(?:pull|issues|merge_requests|releases?)/(?!new/)[^\s\"'<>#,)]+")


# The name that a tracker gives to what is filed in it: `TIDE-42`.
_TICKET = pattern(r"\b[A-Z][A-Z0-9]{1,9}-\d{1,6}\b")
# In the name of a tool: it files something in a tracker.
_FILES = pattern(r"create|add|file|open|submit|new", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOutcome:
    """What came of a request, in words."""

    text: str
    records: tuple[int, ...]  # those that show it
    is_made: bool  # whether a commit or an address came of it


@dataclass(slots=True, kw_only=True)
class _Work:
    """What was done after the user's words in one turn, and what kind of words these are."""

    asked: str = ""  # the words
    is_limit: bool = False  # the words only limit the work under way
    is_aside: bool = False  # they only ask something, or answer one of several questions, and the work goes on
    is_answer: bool = False  # they answer what a tool asked during the work
    is_added: bool = False  # they add to the work under way
    is_next: bool = False  # they ask for something once the work under way is committed
    filed: list[tuple[str, int]] = field(default_factory=list)  # what was filed in a tracker, with the record of each
    runs: list[Run] = field(default_factory=list)
    changes: list[FileOperation] = field(default_factory=list)
    opening: int = -1  # position of the assistant's first message
    closing: int = -1  # position of its last one

    @property
    def goes_on(self) -> bool:
        """Whether what was done after these words came of the request before them too."""
        is_within = self.is_limit or self.is_aside or self.is_answer or self.is_added
        return is_within or is_assent(self.asked)

    @property
    def ends_in_words(self) -> bool:
        """Whether the last message may be what came of the words; of one of several answers, nobody knows that."""
        return not self.is_answer if self.is_aside else not (self.is_limit or self.changes)

    def take_in(self, after: _Work) -> None:
        """Adds what was done after the user's next words, ``after``, but not what was deleted after added ones."""
        changes = (one for one in after.changes if not (after.is_added and one.action is FileAction.DELETE))
        self.filed = [*self.filed, *after.filed][-_MAX_SET_GOING:]
        self.runs = [*self.runs, *after.runs][-_MAX_SET_GOING:]
        self.changes = [*self.changes, *changes][-_MAX_SET_GOING:]
        self.closing = max(self.closing, after.closing)


def outcomes(
    events: Sequence[Event],
    runs: Sequence[Run],
    operations: Sequence[FileOperation],
    commits: Sequence[Commit],
    words: FixedWords,
) -> Mapping[int, RequestOutcome]:
    """What came of the user's messages, by turn number; a message of which no record shows that is left out.

    What a yes, or the answer to a tool's question, set going counts for the request before it too, but not for a
    question between them that was answered in words. Where the user takes a result back in the next message, only what
    was made (commits, addresses) is stated. Where nothing was done, a reply counts, except to the newest request. What
    was done after words that only limit the work under way counts for the request before them alone.
    """
    # A commit that was amended since is given as the one that replaced it.
    made_by = {event: commit for commit in commits for event in (*commit.amends, commit.event)}
    telling = [
        run
        for run in runs
        if run.event in made_by or run.acts_outside or is_check(run.command) or _MAY_COUNT.search(run.command)
    ]
    by_turn, called = _by_turn(events, telling, operations), _names(operations)
    _reassign_before_commit(by_turn, made_by)
    found: dict[int, RequestOutcome] = {}
    after: _Work | None = None  # what was done after a yes, for the request before it
    reply = next_reply = ""
    for turn, work in reversed(by_turn.items()):
        is_answered = _is_answered(work, events)
        following = None if is_answered else after
        is_next_answer = following is not None and _is_of_next(work, following, events)
        own = work.closing
        if following is None:
            reply = next_reply
        elif not is_next_answer:
            work.take_in(following)
        closing = _closing_words(events, work.closing)
        is_refused = takes_back(reply, closing)
        outcome = _done(work, made_by, called, words, is_refused=is_refused, is_newest=not next_reply)
        if outcome is None and work.ends_in_words and _ends_with(events, work.closing):
            opening_words, own_closing = events[work.opening].text, _closing_words(events, own)
            reply_text, at = closing, work.closing
            if asks(work.asked) and answers_at_once(work.asked, opening_words, is_last=work.opening == own):
                # A question that was answered at once keeps that answer, whatever was done later in the turn.
                reply_text, at = opening_words, work.opening
            elif len(own_closing) >= _MIN_REPLY_CHARS and _ends_with(events, own):
                reply_text, at = own_closing, own
            # Of a reply that the user doubts, nothing is quoted.
            outcome = _replied("" if is_refused else work.asked, reply_text, events[at].record, words)
        if outcome:
            found[turn] = outcome
        if following and is_next_answer:
            work.take_in(following)
        if not is_answered:
            after = work if work.goes_on else None
        elif last_question(closing):
            after = None  # the yes accepts what the answer offers, not the request before the question
        next_reply = work.asked
    return found


def _is_of_next(work: _Work, following: _Work, events: Sequence[Event]) -> bool:
    """Whether what followed the user's next answer did not come of this answer, nor of a yes that led to a question."""
    has_acted = work.runs or work.changes or work.filed
    is_asked_again = is_assent(work.asked) and not has_acted and last_question(_closing_words(events, work.closing))
    return bool(is_asked_again) or (following.is_answer and work.is_answer)


def _done(
    work: _Work,
    made_by: Mapping[int, Commit],
    called: Mapping[str, str],
    words: FixedWords,
    *,
    is_refused: bool,
    is_newest: bool,
) -> RequestOutcome | None:
    """What was made, edited or acted on for a request; None where nothing was, or where it may have come of another."""
    each = dict(_made(work, made_by, words))
    made = sorted([*each.items()][-_MAX_MADE:], key=itemgetter(1))
    # Edits after the last commit came of the request too.
    rest = replace(work, changes=[one for one in work.changes if not made or one.record > made[-1][1]])
    is_shown = not is_refused and (rest.changes or not made)
    more = list(_shown(rest, called, words, is_newest=is_newest)) if is_shown else []
    wants = asks(work.asked) or ASKS_FOR.search(work.asked) or _ADDS.match(work.asked)
    is_remark = work.is_added and not wants
    if work.is_limit or work.is_aside or is_remark or (work.is_added and not made and not _is_of(work)):
        return None
    if not (made or more or is_refused):
        more = list(_acts(work))
    if len(each) > len(made):
        made[-1] = (f"{made[-1][0]} +{len(each) - len(made)}", made[-1][1])
    parts = [*made, *more]
    if not parts:
        return None
    text = words.comma.join(text for text, _ in parts)
    return RequestOutcome(text=text, records=records_of([parts[-1][1]]), is_made=bool(made))


def _is_of(work: _Work) -> bool:
    """Whether an edit after words that add to the work has to do with them.

    A path that was edited has a word of theirs in it, or it is of a test and they mention tests.
    """
    wanted = set(terms(apart(work.asked)))
    names = [one.target or one.path for one in work.changes]
    of_tests = _OF_TESTS.search(work.asked) is not None and any(map(TEST_FILE.search, names))
    return of_tests or not wanted.isdisjoint(terms(apart(" ".join(names))))


_OF_TESTS = pattern(r"\btests?\b", re.IGNORECASE)


def _reassign_before_commit(by_turn: Mapping[int, _Work], commits: Mapping[int, Commit]) -> None:
    """Moves what was done up to the commit that a request waits for to the request before it."""
    for before, work in pairwise(by_turn.values()):
        if work.is_next:
            committed = next((run.event for run in work.runs if run.event in commits), -1)
            before.runs += [run for run in work.runs if run.event <= committed]
            before.changes += [one for one in work.changes if one.event <= committed]
            work.runs = [run for run in work.runs if run.event > committed]
            work.changes = [one for one in work.changes if one.event > committed]


def _closing_words(events: Sequence[Event], position: int) -> str:
    """The text of a turn's last message, or an empty string.

    If a tool showed that message as a question, the text of the assistant's message before it.
    """
    if position + 1 < len(events) and position >= 0 and events[position + 1].is_answer:
        before = events[position - 1] if position else None
        is_reply = before is not None and before.kind is EventKind.ASSISTANT and before.turn == events[position].turn
        return before.text if before and is_reply else ""
    return events[position].text if position >= 0 else ""


def _is_answered(work: _Work, events: Sequence[Event]) -> bool:
    """Whether the user asked something, or for a look at something, and was answered in words alone.

    "Can you …?" is a request in the form of a question: only a no answers it.
    """
    closing = _closing_words(events, work.closing)
    # What is run for a mere question is a part of its answer.
    has_acted = work.changes or work.filed or (work.runs and not _only_asks(work.asked))
    is_in_words = closing and not has_acted and _ends_with(events, work.closing)
    asks_for_words = _ASKS_TO_LOOK.match(work.asked) or _WANTS_TO_KNOW.search(work.asked)
    if is_in_words and len(closing) >= _MIN_REPLY_CHARS and asks_for_words:
        return True
    asked = _QUESTION.search(work.asked) if is_in_words else None
    if closing.rstrip().endswith(QUESTION_MARKS) and len(closing) < _MIN_REPLY_CHARS:
        return False  # it asks back; more words answer, and offer something
    return asked is not None and (bool(asked["answered"]) or IS_NO.match(closing) is not None)


# A question at the end of a message, `It doesn't write?` too. `answered` is empty where it may be a request: `Could you
# check the clock?`
_QUESTION = pattern(
    r"(?:^|[.!?\n])[ \w,]{0,12}?\b(?:(?P<answered>is|are|was|were|do|does|did|has|have|why|what|how|which|where|when"
    r"|who|(?:it|this|that|there) (?:(?:is|was|does|did|has)(?:n['’]t)?|seems|looks|appears))"
    r"|can|could|would|will|should)\b[^.!?\n]*[?？]\s*$",
    re.IGNORECASE,
)
# A message that asks for nothing but a look at something: `Please review the tide tables.`
_ASKS_TO_LOOK = pattern(
    r"\W*(?:(?:ok(?:ay)?|so|now|please|first|(?:can|could|would) you(?: please)?)\b[\s,]*)*"
    r"(?:(?:take|have) a look|look (?:at|into|through)|review|explain|analy[sz]e|investigate|describe|summari[sz]e"
    r"|compare|(?:give|show|tell|send) me)\b"
    r"(?!.*\b(?:and|then) (?:\w+ )?(?:fix|add|change|update|implement|make|address|write|create)\b)"
    r"[^.!?\n]*[.!?]?\s*\Z",
    re.IGNORECASE,
)
# `I'd like to know why the gauge stopped.`
_WANTS_TO_KNOW = pattern(
    r"\bI(?: want| need| would like|'d like) to (?:know|understand|see) (?:if|whether|what|why|how|which|where)\b"
    r"[^.!?\n]*[.!?]?\s*\Z",
    re.IGNORECASE,
)


def _replied(asked: str, closing: str, record: int, words: FixedWords) -> RequestOutcome | None:
    """That a request was replied to, with the sentence that answers it; None for a short reply without one."""
    answer = answer_in(closing, asked)
    if not answer and len(closing) < _MIN_REPLY_CHARS:
        return None
    shown = f"{words.colon}{opening(answer, _MAX_ANSWER_CHARS)}" if answer else ""
    return RequestOutcome(text=f"{words.replied}{shown}", records=records_of([record]), is_made=False)


def _ends_with(events: Sequence[Event], position: int) -> bool:
    """Whether the user's next message follows right after this position, so that the turn ends there."""
    return 0 < position + 1 < len(events) and events[position + 1].kind is EventKind.USER


# How a message begins that forbids something: `But don't touch the clock`.
_FORBIDS = pattern(
    r"\W*(?:(?:oh|ah|hey|wait|no|ok(?:ay)?|so|and|also|but|please)\b\W*)*(?:do not|don'?t|never|no more|avoid)\b"
    r"|\W*(?:别|不要|请不要)",
    re.IGNORECASE,
)


# Something is to be done after the commit: `once you've committed it, …`
_NEXT = pattern(
    r"\b(?:once|after|when) (?:you(?:'ve| have)?|that(?:'s| is)|this is) (?:\w+ )?committ?(?:ed|ing)?\b", re.IGNORECASE
)
_ADDS = pattern(
    r"\W*(?:also|and|plus|additionally|forgot|one more|by the way|btw)\b|\W*(?:另外|还有|あと|それと)", re.IGNORECASE
)


def _is_at_work(events: Sequence[Event], number: int) -> bool:
    """Whether a message of the user came in while the agent worked.

    That is after a call or a result, or after a message that only announces the next step or ends with a colon, if the
    agent then went on without words.
    """
    before, after = events[number - 1 : number], events[number + 1 : number + 2]
    if events[number].interjects or not before or before[0].kind is not EventKind.ASSISTANT:
        return events[number].interjects or (bool(before) and before[0].kind in (EventKind.CALL, EventKind.RESULT))
    last = next(reversed(sentences(before[0].text)), "")
    # A step that depends on the user, and one announced at the end of a long report, waits for the user.
    waits = is_courtesy(last) or _ON_CONDITION.search(last) or len(before[0].text) > _MAX_STEP_CHARS
    goes_on = only_announces(last) and not waits
    says_what_is_next = last.endswith(COLONS) or goes_on
    return says_what_is_next and bool(after) and after[0].kind is not EventKind.ASSISTANT


def _only_asks(text: str) -> bool:
    """Whether a message is a question and nothing else, with or without a question mark, that is no request."""
    asked = _QUESTION.fullmatch(text.strip())
    is_unmarked = text[-1:].isalnum() and asks(text) and len(sentences(text)) == 1
    return bool(asked["answered"]) if asked else is_unmarked


_MAX_STEP_CHARS = 800
_ON_CONDITION = pattern(
    r"\b(?:if|once|when(?:ever)?|unless|your?)\b|\A\W*(?:give|paste|send|share|tell)\b", re.IGNORECASE
)


def _by_turn(events: Sequence[Event], runs: Sequence[Run], operations: Sequence[FileOperation]) -> dict[int, _Work]:
    """What was done in each turn in which the user wrote something, by turn number."""
    found = {event.turn: _Work() for event in events}
    for number, event in enumerate(events):
        work = found[event.turn]
        if event.kind is EventKind.USER:
            is_at_work = _is_at_work(events, number)
            near = events[max(0, number - 2) : number + 3] if event.is_answer else ()
            is_one_of_several = sum(one.is_answer and one.record == event.record for one in near) > 1
            work.is_limit = is_at_work and _FORBIDS.match(event.text) is not None
            work.is_answer = event.is_answer
            work.is_aside = is_one_of_several or (is_at_work and _only_asks(event.text))
            work.is_next = is_at_work and _NEXT.search(event.text) is not None
            is_between = number > 0 and events[number - 1].kind is EventKind.ASSISTANT
            is_added = event.interjects or (is_at_work and (is_between or _ADDS.match(event.text) is not None))
            work.is_added = is_added and not (work.is_next or event.text.startswith("/"))
            work.asked = "\n".join(filter(None, (work.asked, event.text)))
        elif event.kind is EventKind.ASSISTANT:
            work.opening = number if work.opening < 0 else work.opening
            work.closing = number
    results = results_of(events)
    for number, result in results.items():
        call = events[number]
        is_filed = is_service_call(call) and not is_lookup(call.name) and _FILES.search(call.name)
        ticket = _TICKET.search(result.text) if is_filed and not (result.is_error or result.is_refusal) else None
        if ticket and ticket[0] not in call.text:
            found[call.turn].filed.append((f"{call.name.rpartition('__')[2]} {ticket[0]}", result.record))
    owner = _owners(events)
    for run in runs:
        # Of a call that nothing answered, nothing came yet; some clients record no results at all.
        if not results or run.event in results:
            found[owner(run.event)].runs.append(run)
    # A file that was created and deleted again is not an outcome, nor is an edit that was taken back. Of what happened
    # to an older file that is deleted now, only the deletion is one.
    last = {one.path: one.action for one in operations if one.action is not FileAction.READ}
    own = {one.path for one in operations if one.action is FileAction.CREATE and not one.is_rewrite}
    # What a subagent has written before it reports is no outcome yet.
    waiting = _waiting(events, results)
    changes = [one for one in operations if one.action not in (FileAction.READ, FileAction.REVERT)]
    changes = [one for one in changes if one.event < waiting]
    # A temporary file is what the work was for where nothing else was changed, unless it is a script for a try.
    is_elsewhere = all(one.is_in_passing for one in changes)
    worked_on = {one.path for one in operations if one.action is FileAction.READ}
    for one in changes:
        is_gone = last.get(one.path) is FileAction.DELETE and (one.path in own or one.action is not FileAction.DELETE)
        is_gone |= one.undone_by >= 0
        # A folder, or what a run left, that no call had worked on before is cleaned up, unless that was asked for.
        is_unknown = one.action is FileAction.DELETE and one.path not in worked_on
        is_left_over = is_unknown and _LEFT_OVER.search(one.path) is not None
        is_gone |= is_left_over and not _DELETES.search(found[owner(one.event)].asked)
        worked_on.add(one.path)
        is_in_passing = one.is_try if is_elsewhere else one.is_in_passing
        if not (is_in_passing or is_gone or PLAN_FILE.search(one.path)):
            found[owner(one.event)].changes.append(one)
    for work in found.values():
        if is_elsewhere and (asks(work.asked) or _WANTS_TO_KNOW.search(work.asked)) and work.closing >= 0:
            work.changes = []  # the answer counts, not the scripts by which it was found
    return {turn: work for turn, work in found.items() if work.asked}


# `.coverage`, `__pycache__`, `tide.log`, `tmp-store`: hidden, without an ending, or with that of a log.
_LEFT_OVER = pattern(r"(?:^|/)(?:\.[^/]+|[^/.]+|[^/]+\.(?:log|tmp|out|pyc))/?\Z")
# A request that may be for a deletion: `clean up the old gauges`.
_DELETES = pattern(
    r"\b(?:delet\w*|remov\w*|rm|clean\w*|drop\w*|get rid|prun\w*|purge\w*|should not be|gone)\b|删除|清理|削除",
    re.IGNORECASE,
)
# Commands on something that was opened before: the address that they print is not new.
_CHANGES_ONE = pattern(r"\bgh (?:pr|issue|release) (?:edit|comment|close|reopen|merge|ready|review|checkout)\b")


def _waiting(events: Sequence[Event], results: Mapping[int, Event]) -> int:
    """The position of the call of a subagent that the session ends with, before any result of it; else their number."""
    last = max((number for number, event in enumerate(events) if event.kind is EventKind.USER), default=-1)
    calls = (at for at in range(last + 1, len(events)) if at not in results and is_subagent(events[at]))
    return next(calls, len(events)) if results else len(events)


def _owners(events: Sequence[Event]) -> Callable[[int], int]:
    """A function that gives the turn for which something was done at a position.

    After a report of work in the background that is the turn that began this work, if the report came right after the
    user's message or that message is short. Else it is the turn of the position.
    """
    at, turns = list[int](), list[int]()
    asks = {event.turn: not is_short(event.text) for event in events if event.kind is EventKind.USER}
    for number, event in enumerate(events):
        begun = events[event.call].turn if event.is_report and event.call >= 0 else -1
        is_at_once = number > 0 and events[number - 1].kind is EventKind.USER
        if event.kind is EventKind.USER or (begun >= 0 and (is_at_once or not asks.get(event.turn, True))):
            at.append(number)
            turns.append(event.turn if begun < 0 else begun)

    def owner(position: int) -> int:
        place = bisect_right(at, position) - 1
        return turns[place] if place >= 0 else events[position].turn

    return owner


def _made(work: _Work, commits: Mapping[int, Commit], words: FixedWords) -> Iterator[tuple[str, int]]:
    """What was filed or opened on a server, then the commits by hash and subject, each with the record that shows it.

    Commits matter more: they come last, since the last ones are kept. A commit that was made for one request and
    amended for another is marked in both.
    """
    yield from work.filed
    for run in work.runs:
        opened = run.outcome is CommandOutcome.OK and run.acts_outside and run.event not in commits
        opened = opened and not _CHANGES_ONE.search(run.key)
        if opened and (address := _ADDRESS.search(run.line)):
            yield address[0], run.result_record
    for run in work.runs:
        if commit := commits.get(run.event):
            subject = opening(commit.subject, _MAX_SUBJECT_CHARS)
            own = {one.event for one in work.runs}
            is_rewritten = commit.event not in own or (bool(commit.amends) and own.isdisjoint(commit.amends))
            mark = f" ({words.new_hash})" if is_rewritten else ""
            yield (f'{commit.hash} "{subject}"'.strip() if subject else commit.hash) + mark, run.result_record
    push = next((run for run in reversed(work.runs) if PUSHES.search(run.key)), None)
    if push and push.outcome is CommandOutcome.FAILED and _ASKS_TO_PUSH.search(work.asked):
        yield f"`{brief(acting_line(push.key), _MAX_COMMAND_CHARS)}` {words.failed}", push.result_record


_ASKS_TO_PUSH = pattern(r"(?<![a-z])push(?![a-z])|推送|プッシュ", re.IGNORECASE)


def _acts(work: _Work) -> Iterator[tuple[str, int]]:
    """The newest successful command that changed something outside the work tree, with its record, if there is one.

    Else the newest that installed something or, for words about branches, that moved the work tree.
    """
    done = [run for run in work.runs if run.outcome is CommandOutcome.OK]
    # In a chain of unknown outcome, an error would show.
    may_be = [run for run in work.runs if run in done or not (run.code > 0 or ERROR_PATTERN.search(run.output))]
    acted = [(acting_line(run.key), run) for run in may_be if run.acts_outside]
    acted = acted or [(found[0], run) for run in may_be if (found := _INSTALLS_ONE.search(run.command))]
    if not acted and _OF_BRANCHES.search(work.asked):
        moves = (run for run in done if not run.is_read_only and _MOVES_WORK_TREE.search(run.key))
        acted = [(acting_line(run.key), run) for run in moves]
    for line, run in acted[-1:]:
        # What git and gh act on is the same in every folder.
        folder = entered(run.command)
        place = f" ({folder})" if is_below(folder) and not _OF_GIT.match(line) else ""
        yield f"`{brief(line, _MAX_COMMAND_CHARS)}`{place}", run.result_record


_OF_GIT = pattern(r"(?:git|gh)\b")
_MOVES_WORK_TREE = pattern(rf"\b{GIT}(?:checkout|merge|pull|rebase|stash|switch)(?![\w-])")
# `pip install tides`, but not what is listed in a file (`pip install -r tides.txt`, `npm install`).
_INSTALLS_ONE = pattern(
    r"(?:\A|(?<=[;&|\n(])|(?<=[;&|(] ))(?:sudo |(?:\S*/)?python[\d.]* -m |uv |mise exec -- )*"
    r"(?:pip3?|pipx|npm|pnpm|yarn|bun|brew|apt(?:-get)?|dnf|apk|cargo|gem|go) (?:global )?(?:install|add) "
    r"(?!-r\b|-e\b)(?:-\S+ )*[A-Za-z@][\w@/.=-]*"
)
_MAY_COUNT = pattern(rf"{_MOVES_WORK_TREE.pattern}|{_INSTALLS_ONE.pattern}")
# `back to main`, `a new branch`, `pull in the latest`
_OF_BRANCHES = pattern(r"\b(?:branch|main|master|trunk|pull|check ?out|switch|merge|rebase|stash)\b", re.IGNORECASE)


def _names(operations: Sequence[FileOperation]) -> Mapping[str, str]:
    """The name of each changed file by its path, with its folder where another file that was used has the same name."""
    paths = {path for one in operations if one.action is not FileAction.READ for path in (one.path, one.target) if path}
    times = Counter(path.rpartition("/")[2] for path in {one.path for one in operations})
    return {path: "/".join(path.split("/")[-2 if times[path.rpartition("/")[2]] > 1 else -1 :]) for path in paths}


def _shown(work: _Work, called: Mapping[str, str], words: FixedWords, *, is_newest: bool) -> Iterator[tuple[str, int]]:
    """Which files were edited, and how the newest check after that ended, each with the record that shows it.

    A check before an edit that it may look at is left out. Without edits, a check counts only for a request that asks
    for one and is not the newest.
    """
    known = [run for run in work.runs if run.outcome is not CommandOutcome.UNKNOWN and not never_ran(run)]
    checks = [run for run in known if is_check(run.command) and not is_to_fail(run.command)]
    after = {run.key: run for run in checks if not any(covered_since(run, work.changes))}
    passed = [run for run in after.values() if run.outcome is CommandOutcome.OK]
    # A check that failed within a chain may have passed in a later run alone.
    after = {
        key: run
        for key, run in after.items()
        if not any(one.event > run.event and contains(one.key, run.key) for one in passed)
    }
    if work.changes:
        edited = {one.path for one in work.changes if one.action is not FileAction.MOVE}
        # The section of files lists what was only moved. Files outside of the working directory are notes, unless
        # nothing else was changed.
        inside = [one for one in work.changes if not is_whole(one.path)] or work.changes
        moved = {one.path: one.target for one in work.changes if one.target in called}
        changed = (moved.get(one.path, one.path) for one in reversed(inside) if one.path in edited or not edited)
        # What was edited most comes first, of as many edits the newest; tests last: the file that they test tells more.
        paths = [path for path, _ in Counter(changed).most_common()]
        paths.sort(key=lambda path: TEST_FILE.search(path.rpartition("/")[2]) is not None)
        most = 1 if after else _MAX_EDITED
        more = f" +{len(paths) - most}" if len(paths) > most else ""
        new = {one.path for one in work.changes if one.action is FileAction.CREATE and not one.is_rewrite}
        shown = paths[:most]
        made = [(words.created, [path for path in shown if path in new])]
        # A file that was deleted and then written again is there.
        last = {one.path: one.action for one in work.changes}
        gone = {path for path, action in last.items() if action is FileAction.DELETE}
        kept = [path for path in shown if not (path in new or path in gone)]
        made.append((words.edited if edited else words.moved_away, kept))
        made.append((words.deleted, [path for path in shown if path in gone]))
        listed = ((done, words.comma.join(called[path] for path in files)) for done, files in made if files)
        text = words.comma.join(f"{done} {files}" for done, files in listed)
        yield f"{text}{more}", work.changes[-1].record
    # The newest request may ask for more than a check, which then would not be its outcome.
    is_asked = work.changes or (not is_newest and _ASKS_TO_CHECK.search(work.asked))
    # A failed check sorts last, and so is shown: it tells more than those that passed, and of these, most tests do.
    newest = sorted(after.values(), key=lambda run: (run.outcome is CommandOutcome.FAILED, _passed(run), run.event))
    for check in newest[-1:] if is_asked else ():
        ended = words.ok if check.outcome is CommandOutcome.OK else words.failed
        yield f"`{brief(check.key, _MAX_COMMAND_CHARS)}` {ended}", check.result_record


def _passed(run: Run) -> int:
    """The number of tests that a run reports as passed; 0 if it reports none."""
    return max((int(number) for number in _PASSED.findall(run.line)), default=0)


_PASSED = pattern(r"\b(\d+) (?:passed|tests? passed|passing|pass)\b")
_ASKS_TO_CHECK = pattern(r"\b(?:run|tests?|check|lint|build|verify|ci)\b", re.IGNORECASE)
