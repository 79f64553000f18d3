"""Causes: what the assistant found to be wrong, and the edits made to fix it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.checks import OF_TESTS, changes_code
from compactor_cli.digest.edits import FixingLine, fixing_line
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.failures import GUESS
from compactor_cli.digest.files import FileOperation
from compactor_cli.digest.noise import is_narration, may_have
from compactor_cli.digest.reruns import fails_alike
from compactor_cli.digest.runs import CommandOutcome, Run
from compactor_cli.digest.texts import COLONS, ELLIPSIS, GAP, sentences
from compactor_cli.digest.tools import FileAction, ToolKind
from compactor_cli.model.patterns import pattern
from compactor_cli.model.value import dataclass

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What the assistant found to be wrong, in its words, with the fix where it names one."""

    text: str
    event: int  # the position of its message in the events
    record: int
    names: frozenset[str]  # the atoms in the text, paths by their last part
    edited: tuple[str, ...] = ()  # the paths of the files that were edited for it
    edited_at: int = -1  # the record of the last of these edits
    fixing: FixingLine = FixingLine()  # the line of these edits that fixes it


def is_unfixed(cause: Cause, analysis: Analysis) -> bool:
    """Whether a cause was found in the newest turn and nothing was edited for it; False in a dialogue."""
    is_newest = analysis.events[cause.event].turn == analysis.events[-1].turn
    return is_newest and not (cause.edited or analysis.is_dialogue)


# `the root cause is the clock`, `this is a bug`, `it fails because the gauge is shut`
_FINDS_CAUSE = pattern(
    r"\b(?:root cause(?!s? (?:fix|investigation|analysis))"
    r"|(?:the|this|here's (?:the|an?)|there's (?:the|an?)|real|actual) (?:\w+ )?"
    r"(?:issue|problem|bug|cause|culprit|blocker|gap)(?: here)?"
    r"(?: (?:is|was)\b(?! (?:about|with|what|created|linked|filed|open|closed|tracked|claimed|assigned))|:| —)"
    r"|(?:this|that|which|it)(?: is|'s) (?:an?|the) (?:\w+ )?(?:bug|culprit|cause|gap|problem)\b(?! fix)"
    r"|(?:found|see) (?:it|(?:the|another|an?) (?:\w+ )?(?:bug|issue|problem|cause|culprit|gap|blocker)s?)\b"
    r"|turns out|that(?:'s| is| explains) why"
    r"|(?:fail(?:s|ed|ing|ure)?|broken?|breaks|crash(?:es|ed)?|missing|lost|stuck|skipped)\b[^.!?—]{0,60}"
    r"\b(?:because|since|due to)\b)"
    r"|原因(?:是|在于|找到|很?清楚|[:\uff1a])|问题(?:是|在于|出在)|(?:导致|造成)了?|原来是|原因は|のせいで",
    re.IGNORECASE,
)
# Signs that a finding is only possible, is still to come, or is over: `would`, `if`, `already fixed`.
_UNSURE = pattern(
    rf"{GUESS.pattern}|\b(?:would|should|if|(?:I|we)'d|potential(?:ly)?)\b"
    r"|\b(?:resolved|solved|gone|pre-existing|unrelated"
    r"|same (?:bug|issue|problem)|(?:now|already|is|was|are) (?:fixed|clear))\b"
    r"|\b(?:no|not|never|without|\w+n['’]t) (?:[\w-]+ ){0,4}(?:issue|problem|bug|blocker|gap|cause|culprit)s?\b",
    re.IGNORECASE,
)
# Also written when something that is not a fault was found.
_FOUND_IT = pattern(r"\W*found it\b", re.IGNORECASE)
# What says why something is as it is, and not that it is wrong.
_SAYS_WHY = pattern(r"\b(?:turns out|that(?:'s| is| explains) why)\b", re.IGNORECASE)
# `So that's why it stopped.`: the cause is in the sentence before.
_POINTS_BACK = pattern(r"\W*(?:so )?(?:that|this|it)(?:'s| is| explains)\b", re.IGNORECASE)
# `The right fix is to round up.`
_NAMES_FIX = pattern(r"\W*(?:so )?(?:the )?(?:\w+ )?fix(?:es)?\b(?! it\b)", re.IGNORECASE)
_MAX_CAUSE_CHARS, _MAX_FIX_CHARS, _MIN_FIX_WORDS = 280, 160, 4
# The heading of a cause, alone on its line: `The Root Cause`.
_HEADS_CAUSE = pattern(r"\W*(?:the )?(?:actual |real )?root cause\W*", re.IGNORECASE)


# Every match of ``_FINDS_CAUSE`` has one of these parts, in lower case.
_CAUSE_PARTS = (
    *("cause", "issue", "problem", "bug", "culprit", "blocker", "gap", "found it", "see it", "turns out", "why"),
    *("since", "due to", "原因", "问题", "导致", "造成", "原来是", "せいで"),
)


def finds_cause(text: str) -> bool:
    """Whether a text says what is wrong."""
    return may_have(text, _CAUSE_PARTS) and _FINDS_CAUSE.search(text) is not None


def supposes(sentence: str) -> bool:
    """Whether a sentence only says what may be true."""
    return _SUPPOSES.search(sentence) is not None


_SUPPOSES = pattern(
    r"\b(?:might|may (?:be|have|not)|could (?:be|have)|probably|likely|possibly|perhaps|maybe|almost certainly|seems?"
    r"|I (?:think|suspect))\b|^\W*(?:but |so |and )?if\b.*\bwould\b",
    re.IGNORECASE,
)


def turns_away(statement: str) -> bool:
    """Whether a statement reconsiders what was written before it (`Wait, …`, `Actually, …`)."""
    return _TURNS_AWAY.search(statement) is not None


def concluded(statements: Sequence[str]) -> list[str]:
    """The statements of a message with everything empty before the last point at which it reconsiders."""
    last = max((at for at, one in enumerate(statements) if turns_away(one)), default=-1)
    if last < 0:
        return [*statements]
    *_, newest = _TURNS_AWAY.finditer(statements[last])
    return [*[""] * last, statements[last][newest.start() :], *statements[last + 1 :]]


_TURNS_AWAY = pattern(
    r"^(?:(?:but|oh|so|hm+|no)[,. ]+)*(?:wait(?= ?[,.!:\u2013\u2014-])|actually\b|on second thought)"
    r"|(?<=[.!?] )(?:but )?(?:wait(?= ?[,.!:\u2013\u2014-])|actually,)|\blet me (?:reconsider|rethink|re-think)",
    re.IGNORECASE,
)


def find_causes(
    events: Sequence[Event], runs: Sequence[Run], operations: Sequence[FileOperation], taken_back: Collection[int]
) -> tuple[Cause, ...]:
    """What the assistant found to be wrong, in order; of findings with mostly the same names, the newest.

    ``taken_back`` holds the positions of messages that were overturned. Left out are the findings of these, guesses,
    findings that name nothing, and those whose edits all came before them, unless they report a fix.

    A finding is replaced by the next one of its turn if they share a name and nothing had been edited for it by then,
    or if the same failure was seen again. A finding without edits counts only in the newest turn that has findings, if
    that is about a fault, nothing was edited and no later turn explained anything since.
    """
    changed = (one for one in operations if changes_code(one) and not one.is_cancelled)
    edited = [one for one in changed if one.action is not FileAction.DELETE]
    edits, newest_edit = _Edits(events, edited), edited[-1].event if edited else -1
    failed = [run for run in runs if run.outcome is CommandOutcome.FAILED and not run.is_read_only]
    found: list[Cause] = []
    explained = -1  # the newest turn with a message long enough to explain something
    following = len(events)  # the position of the next message that finds something wrong
    for number in range(len(events) - 1, -1, -1):
        event = events[number]
        if event.kind is not EventKind.ASSISTANT:
            continue
        is_finding = number not in taken_back and finds_cause(event.text)
        text = _cause_in([*filter(None, concluded(sentences(event.text)))]) if is_finding else ""
        names = frozenset(name.rpartition("/")[2] for name in atom_texts(text))
        is_named = names or len(_MARKED.findall(text)) > 1
        if text and is_named and not any(2 * len(names & one.names) >= len(names) > 0 for one in found):
            found_for = edits.made_for(names, number, following)
            is_late = bool(found_for) and found_for[-1].event < number and not _REPORTS_FIX.search(event.text)
            is_fault = not is_late and (not _FOUND_IT.match(text) or _NAMES_FIX.search(text))
            # An explanation of how something works may name a file that is edited much later for something else.
            is_soon = not found_for or events[found_for[0].event].turn <= event.turn + 1
            signs = _NAMES_FAULT if _SAYS_WHY.search(text) and not _NAMES_FAULT.search(text) else _OF_FAULT
            is_fault = is_fault and (is_soon or _is_about_fault(events, event.turn, failed, signs))
            is_over = bool(found_for) or newest_edit > number or explained > event.turn
            is_left = not is_over and all(events[one.event].turn == event.turn for one in found)
            is_left = is_left and _is_about_fault(events, event.turn, failed, _OF_FAULT)
            later = next((one for one in reversed(found) if events[one.event].turn == event.turn), None)
            is_other = later and _is_found_otherwise(number, names, later, found_for, failed)
            if is_fault and (found_for or is_left) and not is_other:
                # Editing a test seldom fixes a fault: edits of tests count only if there are no others.
                found_for = [one for one in found_for if not OF_TESTS.search(one.path)] or found_for
                paths = tuple(dict.fromkeys(one.path for one in found_for))
                one = Cause(text=text, event=number, record=event.record, names=names, edited=paths)
                if found_for:
                    one = replace(one, edited_at=found_for[-1].record, fixing=edits.fixing(text, found_for))
                found.append(one)
        if len(event.text) >= _MIN_EXPLAINING_CHARS:
            explained = max(explained, event.turn)
        following = number if is_finding else following
    return tuple(reversed(found))


def _is_about_fault(events: Sequence[Event], turn: int, failed: Sequence[Run], signs: re.Pattern[str]) -> bool:
    """Whether the user speaks of something wrong by these signs in a turn, or a command or call failed in it."""
    own = [event for event in events if event.turn == turn]
    asked = any(event.kind is EventKind.USER and signs.search(event.text) for event in own)
    return asked or any(event.is_error for event in own) or any(events[run.event].turn == turn for run in failed)


_NAMES_FAULT = pattern(
    r"\b(?:errors?|bugs?|fail\w*|wrong|broken?|breaks?|issues?|problems?|crash\w*|stuck|flaky|debug\w*|diagnos\w*"
    r"|investigat\w*|vulnerab\w*|leak\w*|not work\w*)\b|[^\x00-\x7f]",
    re.IGNORECASE,
)
# Also what asks why, and what denies something.
_OF_FAULT = pattern(
    r"\b(?:errors?|bugs?|fail\w*|wrong|broken?|breaks?|issues?|problems?|crash\w*|stuck|slow|flaky|missing|why|fix\w*"
    r"|cause[ds]?|debug\w*|investigat\w*|diagnos\w*|review\w*|audit\w*|vulnerab\w*|leak\w*|not work\w*"
    r"|are you sure|\w+n['’]?t)\b"
    r"|[^\x00-\x7f]",
    re.IGNORECASE,
)


class _Edits:
    """The edits of a conversation, in order; finds those that were made for a finding."""

    def __init__(self, events: Sequence[Event], edits: Sequence[FileOperation]) -> None:
        self._events, self._edits = events, edits
        self._places: dict[str, list[int]] = {}
        for place, one in enumerate(edits):
            self._places.setdefault(one.name, []).append(place)

    def made_for(self, names: Collection[str], found: int, following: int) -> Sequence[FileOperation]:
        """The edits made for the finding at position ``found``, or an empty sequence. The first of these that exist:

        1. edits of its turn after it that share a name with it: those before the ``following`` finding, else all;
        2. the next call that does not read, if the message ends by announcing a fix;
        3. edits of its turn that share a name, if the message reports a fix;
        4. edits of the next turn that share a name; if the message ends its turn, then any later edits of files that
           it names;
        5. edits of its turn before it that share a name.
        """
        turn = self._events[found].turn
        own = self._sharing(names, turn)
        if later := [one for one in own if one.event > found]:
            return [one for one in later if one.event < following] or later
        if _ANNOUNCES_FIX.search(self._events[found].text) and (next_edits := self._just_after(found)):
            return next_edits
        if own and _REPORTS_FIX.search(self._events[found].text):
            return own
        if any(one.turn == turn for one in self._events[found + 1 : found + 2]):
            return self._sharing(names, turn + 1) or own
        named = (
            self._edits[place] for place in sorted(chain.from_iterable(self._places.get(name, ()) for name in names))
        )
        return self._sharing(names, turn + 1) or [one for one in named if one.event > found] or own

    def _just_after(self, found: int) -> list[FileOperation]:
        """The edits of the first call after a message that does not read a file, at most ten; or an empty list."""
        after = range(found + 1, len(self._events))
        call = next((at for at in after if self._events[at].tool is not ToolKind.READ), found)
        first = bisect_left(self._edits, call, key=attrgetter("event"))
        return [one for one in self._edits[first : first + _MAX_FILES_OF_CALL] if one.event == call]

    def fixing(self, fault: str, made: Sequence[FileOperation]) -> FixingLine:
        """The line that fixes a fault in these edits, unless a later edit of the same files removed it again."""
        paths = {one.path for one in made}
        since = [one for one in self._edits if one.path in paths and one.event >= made[0].event]
        return fixing_line(fault, since, made[-1].record)

    def _sharing(self, names: Collection[str], turn: int) -> list[FileOperation]:
        """The edits of a turn whose file name, call or replaced text has one of these names."""
        first, stop = (
            bisect_left(self._edits, at, key=lambda one: self._events[one.event].turn) for at in (turn, turn + 1)
        )
        return [one for one in self._edits[first:stop] if one.name in names or self._says(one, names)]

    def _says(self, one: FileOperation, names: Collection[str]) -> bool:
        parts = (self._events[one.event].text, *chain.from_iterable(one.replaced))
        return any(name in part for part in parts for name in names)


def _is_found_otherwise(
    found: int, names: frozenset[str], later: Cause, edits: Sequence[FileOperation], failed: Sequence[Run]
) -> bool:
    """Whether the next finding of a turn replaces an earlier one.

    It does if the same failure came again after the edits for the earlier one, or if it shares a name with that and
    nothing had been edited for that yet.
    """
    done = next((one.event for one in edits if one.event < later.event), -1)
    ends = (found, max(done, found), later.event)
    first, last, stop = (bisect_right(failed, end, key=attrgetter("event")) for end in ends)
    is_seen_again = first > 0 and any(fails_alike(failed[first - 1], run) for run in failed[last:stop])
    return is_seen_again or (done < 0 and not names.isdisjoint(later.names))


# A message with one of these reports a fix that was made.
_REPORTS_FIX = pattern(r"\b(?:fixed|fix:|resolved)", re.IGNORECASE)
# A message that ends by announcing a fix: `Let me replace the gauge:`
_ANNOUNCES_FIX = pattern(
    r"\b(?:let me|I'?ll|I will|now) (?:now )?(?:fix|correct|update|change|remove|add|replace|adjust|move)\b"
    r"[^.!?\n]*[:.]?\s*\Z",
    re.IGNORECASE,
)
_MAX_FILES_OF_CALL = 10
_MARKED = pattern(r"`[^`\n]+`")
_MIN_EXPLAINING_CHARS = 200


def _cause_in(pieces: Sequence[str]) -> str:
    """The first sure sentence that finds a cause, the sentences after it that fit, and one that names the fix.

    What stands under a heading of the root cause is preferred. Empty if no sentence finds one, or if it only introduces
    something that does not follow.
    """
    finds = (i for i, one in enumerate(pieces) if finds_cause(one) and not _ANNOUNCES.match(one))
    finds = (i for i in finds if not _OWN_STEP.search(pieces[i]))
    at = next((i for i in finds if not _UNSURE.search(pieces[i])), -1)
    headed = (i + 1 for i, one in enumerate(pieces[:-1]) if i >= at >= 0 and _HEADS_CAUSE.fullmatch(one))
    at = next((i for i in headed if not _UNSURE.search(pieces[i])), at)
    if at < 0 or all(one.endswith(COLONS) for one in pieces[at : at + 2]):
        return ""
    # "That is why …" points back: the cause stands in the sentence before it.
    first = at - 1 if at and _POINTS_BACK.match(pieces[at]) else at
    taken = pieces[first : at + 1]
    for piece in pieces[at + 1 :]:
        is_listed = taken[-1].endswith(COLONS) or (_ENTRY.match(taken[-1]) and len(taken) > 1)
        is_other = _OFFERS_WAYS.match(piece) or is_narration(piece) or GUESS.search(piece)
        ends = _IS_TITLE.fullmatch(piece) and any(map(_MARKED.search, taken))
        if ends or is_other or (_ENTRY.match(piece) and not is_listed):
            break
        if sum(map(len, taken)) + len(piece) > _MAX_CAUSE_CHARS:
            # Without the ellipsis, the first entries of a list would read as the whole list.
            taken = [*taken, ELLIPSIS] if _ENTRY.match(piece) else taken
            break
        taken = [*taken, piece]
    while taken[-1].endswith(COLONS) or (len(taken) > 1 and _IS_TITLE.fullmatch(taken[-1])):  # of what is not shown
        taken = taken[:-1]
    taken = [*(f"{one}:" if _IS_TITLE.fullmatch(one) else one for one in taken[:-1]), taken[-1]]
    fixes = (one for one in pieces[first + len(taken) :] if _NAMES_FIX.match(one) and not one.endswith(COLONS))
    fixes = (one for one in fixes if len(one) <= _MAX_FIX_CHARS and len(one.split()) >= _MIN_FIX_WORDS)
    fix = next((one for one in fixes if not _UNSURE.search(one)), "")
    return f"{' '.join(taken)}{GAP}{fix}" if fix else " ".join(taken)


_ENTRY = pattern(r"\d{1,2}[.)] ")
# A heading: up to six words without a mark at the end.
_IS_TITLE = pattern(r"[A-Z][\w'’-]*(?: [\w'’-]+){0,5}")
# A mistake in how the agent ran something, which no edit fixes: `because I ran it in the wrong directory`.
_OWN_STEP = pattern(r"\b(?:because|since|as) I (?:ran|started|called|invoked|used|passed|was running)\b", re.IGNORECASE)
# An announcement of what the agent looks at next: `Let me check why it fails.`
_ANNOUNCES = pattern(
    r"\W*(?:now |first )?(?:I(?:['’]ll| will|['’]m going to)|let me|let['’]s) "
    r"(?:use|look|check|read|start|run|inspect|verify|confirm|test|try|trace|find|see|understand)\b",
    re.IGNORECASE,
)
# A heading of options of which none is chosen yet: `Possible approaches:`
_OFFERS_WAYS = pattern(
    r"\W*(?:(?:the|some|possible|fix) )?(?:options|alternatives|approaches|ways)\b.{0,60}:\W*$", re.IGNORECASE
)
