"""Corrections: what the user takes back or doubts of earlier messages, and what the assistant itself found wrong.

Within a doubted message, the statements that share most names and words with the doubt are meant; where none shares
enough, all of them are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from compactor_cli.digest.causes import finds_cause
from compactor_cli.digest.checks import TEST_FILE, is_check, programs_of
from compactor_cli.digest.decisions import gives_reason
from compactor_cli.digest.edits import PROSE
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.failures import Status
from compactor_cli.digest.files import FileOperation, changed_by_turn
from compactor_cli.digest.language import apart, terms
from compactor_cli.digest.noise import intends
from compactor_cli.digest.replies import declines, last_question
from compactor_cli.digest.runs import CommandOutcome
from compactor_cli.digest.statements import QUESTION_MARKS, Statement, StatementForm, statements_of
from compactor_cli.digest.texts import sentences
from compactor_cli.digest.tools import FileAction, short_name
from compactor_cli.model.patterns import pattern

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

# A correction may be this many characters long: a longer message has other matters too, and only its beginning counts.
# A first sentence before a question corrects from this many words on. A message of this many characters explains.
_MAX_CORRECTION_CHARS, _MIN_CORRECTION_WORDS, _REASONED_CHARS = 400, 4, 200
# Where no statement of a message shares this many words with a doubt, all of them are meant.
_MIN_SHARED = 2
# Words that a doubt must share with the message it is about; most explanations it is compared with; sentences in which
# the assistant admits an error.
_SHARED_WORDS, _MAX_EXPLAINED, _MAX_OWNING_SENTENCES = 3, 30, 4
# How a message begins that takes back what stands before it: `Wait, …`, `No, I meant the tide gauge`.
_CORRECTION = pattern(
    # "Yes, but …" is no correction: what follows the yes only limits it.
    r"(?!\W*(?:ok(?:ay)?|yes|yeah|sure)\W+but\b)\W*(?:(?:hm+|ok(?:ay)?|yes|yeah|oh|ah|so|no|sorry)[,. ]+)?"
    r"(?:wait\b|undo\b|revert\b|that(?:'s| is) (?:not|wrong|no)|not (?:that|like|what)|wrong\b"
    r"|(?:this|that|it) (?:should|must)(?: not|n'?t)\b|let'?s (?:not|pause|step back)\b"
    r"|i (?:meant|didn'?t|don'?t (?:want|think|like)|still (?:feel|think|believe)|would (?:rather|prefer))"
    r"|but\b|i'?d (?:rather|prefer)"
    r"|不对|不是|等等|错|違|ちがう"
    r"|(?:again,? )?(?:[\w-]+ ){1,6}(?:is|was|are)(?:(?: not|n'?t) (?:correct|right|true)| wrong| incorrect)\b)",
    re.IGNORECASE,
)
# The user finds something too much: `this looks too complex`, `over-engineered`.
_IS_TOO_MUCH = pattern(
    r"\b(?:is|are|seems?|feels?|looks?)\b[^.!?\n]{0,20}\btoo (?:much|heavy|complex|complicated|early|big|verbose)\b"
    r"|\bover-?(?:engineer|complicat)\w*|\boverkill\b",
    re.IGNORECASE,
)
# The user threw the work away: `I've reverted your changes`.
_UNDID = pattern(
    r"\bI(?:'ve| have| just)? (?:undid|undone|revert(?:ed)?|rolled back|discarded|threw away|thrown away|reset|removed)"
    r" (?:\w+ )?(?:your|all of|everything|that change|those changes|these changes|the changes|it all)\b",
    re.IGNORECASE,
)
# How a message of the assistant begins that admits the user is right: `Good catch! …`, `I misread the tide table.`
_OWNS_TO_ERROR = pattern(
    r"\W*(?:(?:ah|oh|hm+|yes|right|sorry|good (?:catch|point|question))\b[\s,.!:-]*)*(?:now I see[^.!]*[.!:]\s*)?"
    r"(?:you'?re (?:absolutely |completely |totally |so )?right\b|(?:that'?s a )?(?:good|great|excellent) catch"
    r"|thanks for the correction|I (?:was|am) (?:wrong|mistaken)|I (?:misread|misunderstood|made a mistake)"
    r"|I got (?:that|this|it) wrong|my mistake|that was (?:wrong|incorrect))",
    re.IGNORECASE,
)
# The assistant admits that its whole account is wrong, not just one statement: `my earlier analysis was wrong`.
_OWNS_ACCOUNT = pattern(
    r"\bmy (?:\w+ ){0,2}(?:account|analysis|diagnosis|explanation|reasoning|story|theory|timeline|understanding)"
    r" (?:\w+ ){0,2}(?:wrong|incorrect|mistaken|flawed|off)\b"
    r"|\bcorrect my (?:\w+ ){0,2}(?:account|analysis|explanation|timeline|understanding)\b",
    re.IGNORECASE,
)
_ASKS_IF_SURE = pattern(r"\bare (?:you|we) (?:really )?sure\b", re.IGNORECASE)
# The user reports that something does not work, or doubts that it does: `still fails`, `the clock doesn't show`.
_FAILURE = pattern(
    rf"{_ASKS_IF_SURE.pattern}"
    r"|\bstill (?:not?\b|fail|broken|\w+(?:n['’]?t| not)\b|get(?:ting)?\b|got\b|say|see|show|happen)"
    r"|\b(?:does|do|did|is|are|was|were|it['’]?s)(?:n['’]?t| not) (?:\w+ ){0,2}(?:work|happen|fir[ei]|show|load|see\b)"
    r"|\b(?:tests?|checks?|build|ci|lint\w*)\b[^.!?\n]{0,40}\b(?:fail(?:s|ed|ing)|broken|unhappy)\b"
    r"|还是[不没]|没(?:有用|用|生效)|\b(?:annoying|fgs|wtf|a+rgh+)\b|\A(?:[^\n]*\n)?\s*(?:error|fatal|--- fail)\b",
    re.IGNORECASE,
)
_IS_OTHER = pattern(
    r"\W*(?:also\b|(?:this is )?unrelated|separately|another (?:thing|topic)|by the way|btw)\b", re.IGNORECASE
)
# A complaint with fewer words that carry meaning is about the newest report. Words are compared by this many first
# characters.
_MIN_NAMING, _BEGINNING = 5, 5
# What a message of the user has in it that may object to an explanation; one that only adds something does not doubt.
_OBJECTS = pattern(r"\b(?:but|not?|wait|actually|hm+|wrong|instead|why|\w+n't)\b|[?\uff1f]", re.IGNORECASE)
# Calls the work ready or its checks passed, which holds until something changes: `all tests pass`, `ready to merge`.
GIVES_VERDICT = pattern(
    r"^(?!.*\b(?:because|given|if|when|once|until|should)\b).*\b(?:ship it|good to (?:go|merge)|lgtm"
    r"|ready (?:to|for) (?:commit|push|merge|merging|ship|submit|submission|release)|lint(?:ing)? (?:is )?clean"
    r"|clean (?:working|work) tree|(?:working|work) tree (?:is )?clean"
    r"|(?:tests|checks)(?: now)? (?:all )?(?:pass(?:ed|ing)?|green))\b",
    re.IGNORECASE | re.DOTALL,
)
# How a heading or sentence of a summary marks what was being done or left to do: `Next steps`, `still needs a test`.
TELLS_WHAT_IS_OPEN = pattern(
    r"\b(?:pending|currently|current (?:work|state|status|task)|next steps?|to-?dos?|remaining|in progress"
    r"|in the middle of|still (?:needs?|has|have)|(?:was|were) about to|unresolved|not yet)\b"
    r"|待办|下一步|当前|未完成|残り|未解決",
    re.IGNORECASE,
)

# A statement of what is wrong or needed, or of how things are for now: `the harbour module still lacks a check`.
_SAYS_WHAT_IS = pattern(
    r"\b(?:current(?:ly)?|still|yet|existing|never|missing|only|lacks?|needs?|should|problems?|issues?|bugs?|gaps?|broken"
    r"|fail(?:s|ing)?|wrong|incorrect|unused|dead|redundant|duplicate[ds]?|ignor(?:es?|ing)|skips?|cannot"
    r"|(?:does|do|is|are|ca|wo)(?: not|n['’]t))\b",
    re.IGNORECASE,
)
# The label of statements from a commit message: the commit holds what it says, whatever is edited since.
COMMIT_LABEL = "`git commit`"
_DEFINED = pattern(r"\b(?:function|def|class|func|fn|interface|type|struct|enum)[ \t]+(\w{4,})")
# A name in code rather than a word: `tideGauge`, `tide_gauge`, `gauge(`.
_IDENTIFIER = pattern(r"\b(?:(?=\w*[a-z0-9](?:[A-Z]|_[A-Za-z0-9]))\w{4,}|(?<![\w.])\w{4,}(?=\())")


class EditedNames(NamedTuple):
    """The names that edits had to do with, each with the position of the newest such edit in the events."""

    replaced: Mapping[str, int]  # names in lines that are gone
    touched: Mapping[str, int]  # names in any line that an edit added or took out
    undefined: Mapping[str, int]  # names whose definition is gone
    files: Mapping[str, int]  # names of the edited files, without their folders
    deleted: Mapping[str, int]  # paths of the files that are gone
    rewritten: frozenset[int]  # the turns that edited several files, of which later turns edited each

    def names_deleted(self, text: str, event: int) -> bool:
        """Whether a text, from the event at a position, names a file that was deleted after that event."""
        gone = (path for path, at in self.deleted.items() if at > event and path in text)
        return any(re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/])", text) for path in gone)


def edited_names(operations: Sequence[FileOperation], events: Sequence[Event]) -> EditedNames:
    """The names that edits of existing files had to do with, and the paths of the deleted files.

    A line that the same edit or a later one wrote again was moved: it does not count as gone.
    """
    replaced, touched, undefined = dict[str, int](), dict[str, int](), dict[str, int]()
    written, defined_again = set[str](), set[str]()  # the lines that later edits wrote, the names defined in them
    changes = [one for one in operations if one.action is FileAction.EDIT]
    for one in reversed(changes):
        # Code that is quoted in a document is not the code itself.
        for old, new in () if one.path.endswith(PROSE) else one.replaced:
            before, after = (set(map(str.strip, text.split("\n"))) for text in (old, new))
            # A rewritten test does not change the names that it uses.
            left_out = "" if TEST_FILE.search(one.path) else "\n".join(before - after - written)
            defined_again.update(_DEFINED.findall("\n".join(after - written)))
            written |= after
            defined = set(_DEFINED.findall(left_out)) - defined_again
            changed, gone = "\n".join(before ^ after), _IDENTIFIER.findall(left_out)
            for names, found in ((replaced, gone), (touched, _IDENTIFIER.findall(changed)), (undefined, defined)):
                for name in found:
                    names.setdefault(name, one.event)  # the newest came first
    deleted: dict[str, int] = {}
    for one in operations:
        if one.action is FileAction.DELETE:
            deleted[one.path] = one.event
        elif one.action is not FileAction.READ:
            deleted.pop(one.target or one.path, None)
    by_turn = changed_by_turn(operations, events)
    last = {path: turn for turn, paths in by_turn.items() for path in paths}
    rewritten = (turn for turn, paths in by_turn.items() if len(paths) > 1 and all(last[one] > turn for one in paths))
    files = {one.name: one.event for one in changes}
    return EditedNames(replaced, touched, undefined, files, deleted, frozenset(rewritten))


def standing(one: Statement, analysis: Analysis) -> str:
    """The mark that later records give a statement, in fixed words; an empty string where they leave it as it is.

    "Overruled" if it was taken back, "failing" with the check that refutes it, "older" for what a change of code has
    made doubtful, "deleted later" if it names a file that is gone. "Edited later" if one of these happened after it: a
    file was edited of which it gives a line number; a name in it lost its definition; edits had to do with at least
    half of its names, or, in a statement of how things are, changed each of the files that are its only names. For such
    a statement any edit of the names' lines counts, else only their removal. So is the end of a turn that edited
    several files, if later turns edited each of them.
    """
    words = analysis.words
    if one.place in analysis.taken_back.get(one.event, ()):
        return words.overruled
    if one.form not in _PROSE or one.label == COMMIT_LABEL:
        return ""
    if refuted := _refuted(one, analysis):
        return refuted
    if one.event < analysis.code_changed_at:
        calls_ready = GIVES_VERDICT.search(one.text) and not _passed_since(analysis.code_changed_at, analysis)
        if (
            calls_ready
            or _NOT_YET_MADE.search(one.text)
            or (_SAYS_FAILING.search(one.text) and _passed_since(one.event, analysis))
        ):
            return words.older
    touched, files = analysis.edited.touched, analysis.edited.files
    if one.event >= 0 and analysis.edited.names_deleted(one.text, one.event):
        return words.deleted_later
    if not files or one.event < 0:
        return ""
    if any(files.get(place["file"], -1) > one.event for place in _LINE_OF_FILE.finditer(one.text)):
        return words.edited_later
    names, named = {*_IDENTIFIER.findall(one.text)}, [place[1] for place in _FILE_IN_CODE.finditer(one.text)]
    is_rewritten = one.event in analysis.finals and analysis.events[one.event].turn in analysis.edited.rewritten
    if is_rewritten and (names or "`" in one.text or not any(map(str.isdigit, one.text))):
        return words.edited_later  # numbers without names in code are of data
    is_of_files = bool(named) and not names and _SAYS_WHAT_IS.search(one.text) is not None
    if is_of_files and all(files.get(file, -1) > one.event for file in named):
        return words.edited_later
    # An edit may be just what such a statement says is to be done.
    if touched.keys().isdisjoint(names) or intends(one.text):
        return ""
    if any(analysis.edited.undefined.get(name, -1) > one.event for name in names):
        return words.edited_later
    edited = touched if _SAYS_WHAT_IS.search(one.text) else analysis.edited.replaced
    later = sum(edited.get(name, -1) > one.event for name in names)
    return words.edited_later if 2 * later >= len(names) else ""


def _refuted(one: Statement, analysis: Analysis) -> str:
    """The mark of a statement that calls a check clean by its name, though it failed before that and still does.

    An empty string where no such check is known, or where the statement gives the explanation of the failure.
    """
    words = analysis.words
    failing = (error for error in analysis.errors if error.status is Status.FAILING and error.event < one.event)
    for error in failing if _CALLS_CLEAN.search(one.text) else ():
        named = next((name for name in programs_of(error.command) if name in one.text), "")
        if named and is_check(error.command) and not (error.explained and error.explained in one.text):
            return f"`{named}`{words.colon}{words.failing}"
    return ""


_CALLS_CLEAN = pattern(
    r"\b(?:clean|pass(?:es|ed|ing)?|green|succeed(?:s|ed)?|(?:0|no) (?:errors|issues|warnings|findings))\b",
    re.IGNORECASE,
)


def _passed_since(event: int, analysis: Analysis) -> bool:
    """Whether a check passed after the event at this position."""
    since = (run for run in analysis.runs if run.event > event)
    return any(run.outcome is CommandOutcome.OK and is_check(run.command) for run in since)


# Says that a check fails at present: `the build fails`, `failing tests`.
_SAYS_FAILING = pattern(
    r"\b(?:tests?|build|lint\w*|checks?)\b[^.!?\n]{0,50}\b(?:fails|(?:is|are|keeps?|still) failing)\b"
    r"|\bfailing tests?\b",
    re.IGNORECASE,
)
# Says that something does not exist yet, or is next; it may have been made since.
_NOT_YET_MADE = pattern(
    r"\b(?:do|does)(?: not|n['’]t) exist yet\b|\bnot yet (?:implemented|created|written|defined)\b"
    r"|\A\W*(?:not done\b|(?:the )?next step\b)",
    re.IGNORECASE,
)
# `src/store.py:120`, `store.py:120-140`
_LINE_OF_FILE = pattern(r"(?:^|[\s`(/])(?P<file>[\w.-]+\.\w+):\d+(?!\d*:\d)")
# `.editor/settings.json` between backticks
_FILE_IN_CODE = pattern(r"`(?:[\w.@-]*/)*([\w.-]+\.\w+)`")
_PROSE = (StatementForm.SENTENCE, StatementForm.ITEM, StatementForm.ROW)


def takes_back(words: str, before: str) -> bool:
    """Whether a message of the user takes back what stands before it; one that only asks back leaves that open.

    A short one does so anywhere if it finds something too much or undid it. Of one with a question, only the first
    sentence counts, unless that is the question or very short. A plain no in one without a question counts too, unless
    it answers a question at the end of ``before``.
    """
    if len(words) <= _MAX_CORRECTION_CHARS and (_UNDID.search(words) or _IS_TOO_MUCH.search(words)):
        return True
    if any(mark in words for mark in QUESTION_MARKS):
        # A correction may stand before a question about something else.
        first = next(iter(sentences(words)), "")
        is_whole = len(first.split()) >= _MIN_CORRECTION_WORDS and not first.endswith(QUESTION_MARKS)
        return is_whole and _CORRECTION.match(first) is not None
    lines = words.split("\n") if len(words) <= _MAX_CORRECTION_CHARS else [words]
    if any(_CORRECTION.match(line) for line in lines):
        return True
    return declines(words) and not last_question(before)


def _failed(words: str, closings: Sequence[int], events: Sequence[Event]) -> list[int]:
    """Which of the last messages of turns, in ``closings``, the user reports as not working: one position or none.

    The newest one if it has a word in common with the report or the report names little; else as `_meant` chooses.
    """
    if not _FAILURE.search(words) or _IS_OTHER.match(words):
        return []
    doubted, reported = ({word[:_BEGINNING] for word in terms(text)} for text in (words, events[closings[-1]].text))
    if len(doubted) < _MIN_NAMING or not doubted.isdisjoint(reported):
        return [closings[-1]]
    return _meant(events, closings, words)


def without_withdrawn(events: Sequence[Event]) -> tuple[Event, ...]:
    """The events, with the text emptied of every message of the user that the next one withdraws as a whole."""
    found, before = [*events], -1
    for number, event in enumerate(events):
        if event.kind is EventKind.USER:
            if before >= 0 and _WITHDRAWS.search(event.text[:_MAX_WITHDRAWING_CHARS]):
                found[before] = replace(found[before], text="")
            before = number
    return tuple(found)


_MAX_WITHDRAWING_CHARS = 160
# `Ignore my last message`, `Oops, wrong window`
_WITHDRAWS = pattern(
    r"\b(?:ignore|disregard|forget) (?:my |the |that |this )?(?:last|previous|prior|earlier|above) (?:message|prompt)\b"
    r"|\A\W*(?:(?:oh|oops|sorry)\W+)*wrong (?:chat|window|session|thread|terminal|tab)\b",
    re.IGNORECASE,
)


def overturned(events: Sequence[Event]) -> Mapping[int, frozenset[int]]:
    """The statements that later messages take back: their places, by the position of the assistant's message.

    Three things do so. A correction or refusal of the user takes back the message before it. A message in which the
    assistant admits that the user is right takes back, of what it explained before, what shares most words with the
    doubt. A report of the user that something does not work takes back what was claimed of it, and the causes that
    were found in that turn. A call that was stopped without a word takes nothing back: the user's next message shows
    whether it does.
    """
    found: dict[int, frozenset[int]] = {}

    def doubt(numbers: Iterable[int], words: str, may_be: Callable[[str], Any] = bool) -> None:
        for number in numbers:
            if doubted := _doubted(events[number].text, words, may_be):
                found[number] = found.get(number, frozenset()) | doubted

    explained, closings = list[int](), list[int]()
    spoken, turn, asked = -1, -1, ""
    for number, event in enumerate(events):
        if event.kind is EventKind.ASSISTANT:
            if event.turn != turn and _OBJECTS.search(asked) and _OWNS_TO_ERROR.match(event.text):
                # It repeats in its own words what was wrong.
                owned = " ".join(sentences(event.text)[:_MAX_OWNING_SENTENCES])
                meant = _meant(events, explained, asked)
                found |= _accounts_owned(events, explained, meant) if _OWNS_ACCOUNT.search(owned) else {}
                doubt(meant, f"{asked} {owned}", _explains)
            if len(event.text) >= _REASONED_CHARS:
                explained = [*explained, number][-_MAX_EXPLAINED:]
            spoken, turn = number, event.turn
        elif event.refusal and spoken >= 0:
            # A user who wants to discuss a question or a plan first does not thereby take anything back.
            call = short_name(events[event.call].name) if event.call >= 0 else ""
            is_plan = call.startswith("exitplan")
            if not call.startswith("ask") and (not is_plan or takes_back(event.refusal, events[spoken].text)):
                doubt([spoken], event.refusal)
            spoken = -1
        elif event.kind is EventKind.USER:
            if spoken >= 0 and takes_back(event.text, events[spoken].text):
                doubt([spoken], event.text)
            elif spoken >= 0:
                closings, words = [*closings, spoken][-_MAX_EXPLAINED:], event.text[:_MAX_CORRECTION_CHARS]
                failed = _failed(words, closings, events)
                doubt(failed, words, bool if _ASKS_IF_SURE.search(words) else _claims)
                for closing in failed:
                    for at, places in _findings_of_turn(events, closing):
                        found[at] = found.get(at, frozenset()) | places
            spoken, asked = -1, event.text
    return found


def misunderstood(events: Sequence[Event]) -> Mapping[int, frozenset[int]]:
    """All that the assistant wrote before a message in which the user says that something else was meant.

    From the user's previous message on: the places of all statements, by the position of the assistant's message.
    """
    found: dict[int, frozenset[int]] = {}
    since: list[int] = []
    for number, event in enumerate(events):
        if event.kind is EventKind.ASSISTANT:
            since.append(number)
        elif event.kind is EventKind.USER:
            if _MEANT_OTHERWISE.search(event.text[:_MAX_CORRECTION_CHARS]):
                found |= {at: frozenset(range(len([*statements_of(events[at].text)]))) for at in since}
            since = []
    return found


# `Sorry, I meant the north harbour`, `that's not what I asked`
_MEANT_OTHERWISE = pattern(
    r"\A\W*(?:(?:no|sorry|wait|actually|oh|ah|hm+|but)\b\W*)*I mean(?:t)? (?!that\b|it\b)"
    r"|\bnot what I (?:meant|asked)\b|\bI (?:was asking|asked) (?:about|for)\b[^.?!\n]*,? not\b|\byou misunderstood\b",
    re.IGNORECASE,
)


def taken_out(events: Sequence[Event], operations: Iterable[FileOperation]) -> Mapping[int, frozenset[int]]:
    """The statements about edits that a later turn took back to the letter: places by the position of the message.

    Only messages after the first edit of their turn. If all files of the turn were taken back, these are all
    statements; if only some were, the statements that name one of those files.
    """
    edits: dict[int, list[FileOperation]] = {}
    for one in operations:
        if one.action is not FileAction.READ and not one.is_in_passing:
            edits.setdefault(events[one.event].turn, []).append(one)
    # By turn: the position of its first edit, the files taken back, and whether these are all that it changed.
    undone: dict[int, tuple[int, set[str], bool]] = {}
    for turn, own in edits.items():
        left = {one.name for one in own if one.undone_by < 0 or events[one.undone_by].turn == turn}
        if gone := {one.name for one in own} - left:
            undone[turn] = own[0].event, gone, not left
    found: dict[int, frozenset[int]] = {}
    for at, event in enumerate(events):
        first, gone, is_all = undone.get(event.turn, (len(events), set(), False))
        if event.kind is EventKind.ASSISTANT and at > first:
            pieces = enumerate(piece for piece, _, _ in statements_of(event.text))
            if places := frozenset(place for place, piece in pieces if is_all or any(name in piece for name in gone)):
                found[at] = places
    return found


def denied(events: Sequence[Event]) -> Mapping[int, frozenset[int]]:
    """The causes that the assistant found and later in the same turn denied: places by the position of the message.

    A cause is denied by a sentence such as "the problem isn't the clock" that shares a longer word with its message.
    """
    found: dict[int, frozenset[int]] = {}
    for number, event in enumerate(events):
        denials = _DENIES.findall(event.text) if event.kind is EventKind.ASSISTANT else []
        words = {word for one in denials for word in terms(one) if len(word) >= _MIN_DENIED_CHARS}
        for at, places in _findings_of_turn(events, number - 1) if words else ():
            if events[at].turn == event.turn and not words.isdisjoint(_read(events[at].text).words):
                found[at] = places
    return found


_DENIES = pattern(r"\bthe (?:issue|problem|cause|bug) (?:isn['’]t|is not|wasn['’]t|was not) ([^.!?\n]+)", re.IGNORECASE)
_MIN_DENIED_CHARS = 6


def _findings_of_turn(events: Sequence[Event], closing: int) -> Iterator[tuple[int, frozenset[int]]]:
    """The statements of a turn that say what the cause is: places by position, from message ``closing`` backwards."""
    for at in range(closing, -1, -1):
        if events[at].turn != events[closing].turn:
            return
        if events[at].kind is EventKind.ASSISTANT and finds_cause(events[at].text):
            pieces = enumerate(piece for piece, _, _ in statements_of(events[at].text))
            if places := frozenset(place for place, piece in pieces if finds_cause(piece)):
                yield at, places


def _doubted(text: str, words: str, may_be: Callable[[str], Any]) -> frozenset[int]:
    """The places of the statements that a doubt is about: of those that pass ``may_be``, what shares most words.

    More than half as many words as the best one shares are enough. All that pass, where none shares `_MIN_SHARED`.
    """
    doubted = _stems(words)
    pieces = enumerate(statements_of(text))
    meant = {place: piece for place, (piece, form, _) in pieces if form is not StatementForm.CODE and may_be(piece)}
    # A word that is part of a name or of code counts twice.
    shared = {
        place: len(_stems(piece) & doubted) + len(_stems(" ".join(_NAMED.findall(piece))) & doubted)
        for place, piece in meant.items()
    }
    most = max(shared.values(), default=0)
    return frozenset(place for place, number in shared.items() if most < _MIN_SHARED or number * 2 > most)


def _explains(piece: str) -> bool:
    """Whether a statement says more than which files it is about or what was edited: an edit stays a fact."""
    return _TELLS_OF_EDIT.match(piece) is None and len(_WORD.findall(_CODE_SPAN.sub("", piece))) >= _MIN_EXPLAINING


_TELLS_OF_EDIT = pattern(
    r"\W*(?:I(?:'ve| have)? )?(?:also )?(?:added|changed|created|deleted|extracted|moved|removed|renamed|replaced"
    r"|updated|wrote)\b",
    re.IGNORECASE,
)
_CODE_SPAN, _WORD, _MIN_EXPLAINING = re.compile(r"`[^`\n]*`"), re.compile(r"[^\W\d_]+"), 3


def _claims(piece: str) -> bool:
    """Whether a statement says that something works or is done, and does not ask the user to do something."""
    return _CLAIMS.search(piece) is not None and _ASKS_THE_USER.match(piece) is None


_ASKS_THE_USER = pattern(r"\W*(?:please|let me know|go ahead|you can (?:now )?(?:try|test|run))\b", re.IGNORECASE)
_CLAIMS = pattern(
    r"\b(?:now|will|works?|ready|done|fixed|clean|correctly|properly|pass(?:es|ed)?|perfect|complete)\b|[✅✓]",
    re.IGNORECASE,
)
# Names and code in backticks: `tideGauge`, `HTTP`, and `Harbour` within a sentence.
_NAMED = pattern(r"`[^`\n]+`|\b\w*[a-z0-9][A-Z_]\w*|\b[A-Z]{2,}\w*|(?<=[a-z,] )[A-Z]\w+")


def _stems(text: str) -> frozenset[str]:
    """The words that carry meaning, also those within names, without the s of a plural."""
    return frozenset(word.removesuffix("s") for word in terms(apart(text)))


def _meant(events: Sequence[Event], explained: Sequence[int], words: str) -> list[int]:
    """The explanation that a doubt is about, as a list of its position, or an empty list.

    Candidates are the messages with a statement whose words the doubt repeats, else those that give a reason, else
    all. The one that shares most words is chosen. Unless one is quoted, the newest is preferred if it shares at least
    half as many, or if the doubt is long: a long message shares words with many. The chosen one must share
    `_SHARED_WORDS`.
    """
    doubted = set(terms(words))
    read = {at: _read(events[at].text) for at in explained}
    shared = {at: len(doubted & one.words) for at, one in read.items()}
    quoted = [at for at, one in read.items() if any(map(doubted.issuperset, one.quotable))]
    reasons = [at for at, one in read.items() if one.gives_reason]
    best = max(quoted or reasons or explained, key=lambda at: (shared[at], at), default=-1)
    is_long = len(words) > _MAX_CORRECTION_CHARS
    if not quoted and explained and (is_long or 2 * shared[explained[-1]] >= shared[best]):
        best = explained[-1]
    return [best] if shared.get(best, 0) >= _SHARED_WORDS else []


def _accounts_owned(
    events: Sequence[Event], explained: Sequence[int], meant: Sequence[int]
) -> dict[int, frozenset[int]]:
    """The explaining statements of the messages that are meant, and of those that share at least half of their words.

    Places by position; the latter messages give the same account.
    """
    found: dict[int, frozenset[int]] = {}
    words = {word for at in meant for word in _read(events[at].text).words}
    for at in explained if words else ():
        if at in meant or 2 * len(words & _read(events[at].text).words) >= len(words):
            pieces = enumerate(statements_of(events[at].text))
            explains = (
                place for place, (text, form, _) in pieces if form is not StatementForm.CODE and _explains(text)
            )
            found[at] = frozenset(explains)
    return found


class _Explanation(NamedTuple):
    """The words of a message that explains something."""

    words: frozenset[str]
    quotable: tuple[Sequence[str], ...]  # of each statement that has enough words to be recognised when quoted
    gives_reason: bool


# At most `_MAX_EXPLAINED` messages are compared with one doubt after another, mostly the same ones.
@lru_cache(maxsize=2 * _MAX_EXPLAINED)
def _read(text: str) -> _Explanation:
    pieces = (terms(piece) for piece, _, _ in statements_of(text))
    quotable = tuple(words for words in pieces if len(words) > _SHARED_WORDS)
    return _Explanation(frozenset(terms(text)), quotable, any(map(gives_reason, sentences(text))))
