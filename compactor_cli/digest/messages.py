"""The user's messages: their own words without pasted text, and what each replies to, asks for or turns down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from compactor_cli.digest.checks import chain_parts
from compactor_cli.digest.cleaning import without_hunks
from compactor_cli.digest.commands import acting_part
from compactor_cli.digest.error_lines import ERROR_PATTERN
from compactor_cli.digest.events import Event, EventKind, is_service_call, results_of
from compactor_cli.digest.files import FileOperation, attempted
from compactor_cli.digest.language import FixedWords, dense_share, extends
from compactor_cli.digest.names import call_words
from compactor_cli.digest.replies import (
    MAX_LOOKED_BACK,
    begins_with_assent,
    last_question,
    last_words,
    pointed_at,
    question_of_options,
)
from compactor_cli.digest.runs import CommandOutcome, Run
from compactor_cli.digest.statements import QUESTION_MARKS
from compactor_cli.digest.texts import ELLIPSIS, one_line, opening, sentences, verbatim
from compactor_cli.digest.tools import FileAction, ToolKind, argument, command_of, joined_lines, parameters, short_name
from compactor_cli.model.patterns import pattern
from compactor_cli.model.value import dataclass

# A message of fewer words is short: it is read with the message that it replies to. In a conversation without calls
# the limit is lower, since most of its messages are short and hold the names and numbers that matter.
SHORT_WORDS, SHORT_WORDS_OF_CHAT = 8, 4
_CHARS_PER_WORD = 8
# A longer message says what it is about without the question that it answers.
MAX_REPLY_CHARS = 80
_MAX_CALL_CHARS = 100
# A longer message has other subjects too: `lasting` does not judge it.
_MAX_LASTING_CHARS = 1_200
# A request of fewer words cannot be understood without the message before it.
_MIN_WORDS = 3
# A command to the client: `/review src`.
_COMMAND_ALONE = pattern(r"/\S*(?:\s+\S+){0,2}\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """One message of the user, or a refusal of a call: the text may then be empty."""

    text: str
    record: int
    turn: int
    is_short: bool = False
    replies_to: str = ""  # the question, or the last words, of the assistant's message just before that it answers
    asked: int = -1  # the record of the assistant's message just before; -1: something else was
    is_refusal: bool = False  # it turned a call down or stopped it
    stopped: str = ""  # that call in words; empty where no record has it
    call: int = -1  # the position of that call in the events
    # The record of a later call that made the change after all, or that showed a plan which was accepted; -1: none did.
    resumed: int = -1
    is_plan: bool = False  # the call that it stopped showed a plan
    after_stop: tuple[tuple[int, str], ...] = ()  # calls stopped without a word just before it: position and words
    points_at: str = ""  # the entries of an earlier list that it names by their number
    interrupts: bool = False  # it came while the agent was at work
    is_answer: bool = False  # it answers a question that a tool asked
    is_listed: bool = False  # known only from the list in a client's summary, which does not say what came of it

    @property
    def stands_alone(self) -> bool:
        """Whether it can be read alone: no stop, interruption, answer, or addition to another one."""
        is_whole = len(self.text.split()) >= _MIN_WORDS and ASKS_FOR.search(self.text) is not None
        is_reply = self.is_short and (self.replies_to.endswith(QUESTION_MARKS) or not is_whole)
        is_reply |= not is_whole and _LEANS.match(self.text) is not None
        is_reply = self.is_answer or (is_reply and not self.text.startswith("/"))
        return not (self.stopped or self.interrupts or is_reply)

    @property
    def requests(self) -> tuple[str, ...]:
        """Its sentences that ask for something, without a leading "please"."""
        return tuple(PLEASE.sub("", one) for one in sentences(self.text) if ASKS_FOR.search(one))


def user_messages(events: Sequence[Event], short_words: int = SHORT_WORDS) -> tuple[UserMessage, ...]:
    """The user's messages and refusals of calls, in order; of equal ones, or one sent again extended, the newest."""
    found: dict[str, UserMessage] = {}
    before: Event | None = None
    is_at_work = False
    unanswered = ""  # the key in ``found`` of the message just before; empty once another event followed it
    unserved = ""  # as above, but emptied only by the assistant's words or an edit
    spoken: list[str] = []
    silent: dict[str, tuple[int, str]] = {}  # the calls stopped just before without a word, by their key in ``found``
    for event in events:
        if event.kind is EventKind.ASSISTANT:
            spoken = [*spoken, event.text][-MAX_LOOKED_BACK:]
        is_answered = event.call >= 0 and not (event.is_refusal or event.is_error)
        if event.kind is EventKind.ASSISTANT or is_answered:
            silent = {}
        is_refusal = event.kind is EventKind.RESULT and event.is_refusal
        is_spoken = is_refusal or event.kind is EventKind.USER
        own = (event.refusal or "") if is_refusal else event.text
        text = verbatim(without_screens(own) if found else own) if is_spoken else ""
        stopped = call_words(events[event.call], _MAX_CALL_CHARS) if is_refusal and event.call >= 0 else ""
        if text or stopped:
            message = UserMessage(
                text=own_words(text, is_first=not found),
                record=event.record,
                turn=event.turn,
                is_short=not is_refusal and is_short(text, short_words),
                is_refusal=is_refusal,
                stopped=stopped,
                call=event.call if stopped else -1,
                after_stop=() if is_refusal else tuple(silent.values()),
                points_at=pointed_at(text, spoken),
                interrupts=(is_at_work or event.interjects) and not is_refusal,
                is_answer=event.is_answer,
            )
            may_reply = event.is_answer or (len(text) <= MAX_REPLY_CHARS and not _COMMAND_ALONE.fullmatch(text))
            if before is not None and not event.was_waiting:
                replies_to = _replied_to(message, before) if may_reply else ""
                message = replace(message, replies_to=replies_to, asked=before.record)
            if unanswered and text.startswith(unanswered.strip()[:-1]):
                found.pop(unanswered, None)  # it was typed again
            if not is_refusal and extends(text, unserved):
                found.pop(unserved, None)
            found.pop(f"{text}\n{stopped}", None)
            found[f"{text}\n{stopped}"] = message
            if stopped and not text:
                silent[f"\n{stopped}"] = event.call, stopped
            elif not is_refusal:
                for key in silent:  # this message is the reason for the stop
                    found.pop(key, None)
                silent = {}
            unanswered = f"{text}\n"
            unserved = "" if is_refusal else unanswered
        elif event.kind is EventKind.ASSISTANT or event.tool is ToolKind.EDIT:
            unserved = ""
        if event.kind is not EventKind.RESULT or event.call >= 0:  # not what a client sends in the user's name
            before = event if event.kind is EventKind.ASSISTANT else None
            unanswered = unanswered if is_spoken else ""
            is_at_work = event.kind in (EventKind.CALL, EventKind.RESULT)
    return tuple(sorted(found.values(), key=lambda message: message.record))


def _replied_to(message: UserMessage, before: Event) -> str:
    """The question or the last words of the assistant's message that a message answers, or an empty string."""
    question = last_question(before.text) or (last_words(before.text) if message.is_short else "")
    if _ASKS_WHAT_ELSE.search(question) and ASKS_FOR.search(message.text) and not begins_with_assent(message.text):
        return ""
    return question_of_options(before.text, question) if message.points_at and question else question


# A question that any request may follow: `Want me to do anything else?`
_ASKS_WHAT_ELSE = pattern(r"\b(?:any|some|what)(?:thing)? else\b|\bwhat(?:'s| is) next\b", re.IGNORECASE)
# How a message begins that adds to the one before it: `and on the east pier too`.
_LEANS = pattern(r"\W*(?:and|also|but|plus)\b", re.IGNORECASE)
PLEASE = pattern(r"\A\W*please\b\W*", re.IGNORECASE)
# `ok great, thanks!`, `that's all`
_REMARK = pattern(
    r"\W*(?:(?:oh|ah|no|ok(?:ay)?|(?:that(?:'s| is) )?(?:great|perfect|cool|nice|awesome)|got it|all good)\b[\s,.!]*)*"
    r"(?:(?:thanks?|thank you|thx|w?h?oops|my bad|sorry|never ?mind|nvm|(?:good)?bye|see you|good ?night|cheers)\b"
    r"|that(?:'s| is) (?:all|it)\b|谢谢|再见|ありがと)",
    re.IGNORECASE,
)


def is_remark(text: str) -> bool:
    """Whether a message only thanks, apologises or says goodbye, or only asks whether the agent is still at work."""
    if _REMARK.match(text) is None:
        return _NUDGE.fullmatch(text) is not None
    asked = (one[found.end() :] if (found := _REMARK.match(one)) else one for one in sentences(text))
    return not any(map(ASKS_FOR.search, asked))


# `hey, are you still there?`
_NUDGE = pattern(
    r"\W*(?:(?:hey|hello|hi|so|ok)\W+)*(?:(?:are )?you (?:still )?(?:good|ok|there|stuck|working|done)(?: there| yet)?"
    r"|still (?:there|working|running)|hello|ping)\W*",
    re.IGNORECASE,
)
_ADDRESS = pattern(r"https?://\S+")


def is_short(text: str, short_words: int = SHORT_WORDS) -> bool:
    """Whether a text without its URLs has fewer than ``short_words`` words.

    It must also have fewer than ``8 * short_words`` characters, for Chinese and Japanese, which have no blanks; a text
    wholly in these scripts counts with twice its length.
    """
    text = _ADDRESS.sub("", text)
    weight = len(text) * (1 + dense_share(text))
    return len(text.split()) < short_words and weight < _CHARS_PER_WORD * short_words


# Verbs that open a request.
_VERBS = (
    "add|fix|make|write|implement|create|change|update|remove|delete|rename|move|use|run|check|test|find|look|explain"
    "|investigate|show|tell|review|refactor|replace|keep|build|generate|convert|analy[sz]e|summari[sz]e|commit|push"
    "|deploy|install|verify|compare|try|give|set|put|extract|merge|split|document|improve|handle|support|list|help"
    "|address|ensure|make sure|avoid|stop|leave|start|continue|go|read|return|print|answer|do|apply|clean|configure"
    "|debug|disable|download|draft|enable|export|import|open|prepare|publish|release|revert|rewrite|send|simplify"
    "|undo|upload"
)
# `Then check the tide table.`, `could you rename it`, `which one?`
ASKS_FOR = pattern(
    rf"^\W*(?:\d+[.)]\s*)?(?:(?:and|then|also|so|but|now|ok(?:ay)?|first|next|finally)[, ]+)*(?:(?:{_VERBS})\b"
    r"|please\b|(?:can|could|would|will) (?:you|we)\b|let'?s\b|i(?:'d| would) like\b|i (?:want|need)\b"
    r"|(?:we|you|it) (?:should|must|need|have to)\b)|\b(?:please|let me know|make sure|remember to)\b|[?\uff1f]\W*$"
    r"|\b(?:i would|i['\u2019]?d|and would|but would) (?:much |strongly )?(?:prefer|rather)\b"
    r"|请|帮我|ください",
    re.IGNORECASE,
)
# `NEVER reset the gauge`, `The clock must always run.`
_RULE = pattern(
    r"\b(?:NEVER|MUST(?:N'T)?|[Dd](?:O|o) NOT|DON'T|ALWAYS)\b"
    r"|^\W*(?:[Nn]ever|[Dd]o not|[Dd]on't|[Aa]lways|[Mm]ust not)\b"
    r"|\b(?:must|should) (?:never|always)\b|\bmust not\b|绝不|必须|禁止|不得"
)


def is_rule(sentence: str) -> bool:
    """Whether a sentence forbids something, or demands it always."""
    return _RULE.search(sentence) is not None


def forbids(sentence: str) -> bool:
    """Whether a rule prohibits something, rather than demanding it."""
    return _FORBIDS.search(sentence) is not None


_FORBIDS = pattern(r"\b(?:never|not|don'?t|mustn'?t|no|without)\b|不|禁止|しない", re.IGNORECASE)
# A limit on all work to come: `from now on, only round up`.
_LIMIT = pattern(
    r"\b(?:only|never|always|don'?t|do not|anything else|nothing else|prefer|from (?:now|here) on|going forward"
    r"|(?:each|every) time|whenever|(?:I|we)(?:['’]ll| will) keep)\b"
    r"|不要|别|只能|必须|今后|以后|しないで|だけ|今後",
    re.IGNORECASE,
)
LEADS = r"\A\W*(?:(?:so+|ok(?:ay)?|hm+|and|but|oh|ah|yes|yeah)\b\W*)*"
# An objection to the work under way: `no, revert that`, `too many clocks`.
_OBJECTION = pattern(
    rf"{LEADS}(?:no|wait|why|stop|actually|wrong)\b"
    r"|\b(?:instead|rather|revert|undo|actually|not (?:what|like|that|worth)|wtf|should(?:n'?t| not)|I think(?! so)"
    r"|to+ (?:much|many|big|long)|remember|make sure|ensure|keep|skip|without|(?:we|there) should)\b|不对",
    re.IGNORECASE,
)


def lasting(text: str) -> int:
    """How far a message reaches: ``ALL_WORK`` if it sets a limit, 1 if it objects, 0 if it does neither or is long."""
    if len(text) > _MAX_LASTING_CHARS:
        return 0
    return ALL_WORK if _LIMIT.search(text) or insists(text) else 1 if _OBJECTION.search(text) else 0


def insists(text: str) -> bool:
    """Whether a message comes back to an earlier instruction that was not followed."""
    return _INSISTS.search(text) is not None


# `as I asked`, `why are you still rounding?`
_INSISTS = pattern(
    r"\bI(?:['’]ve| have)? (?:(?:already|just|clearly|specifically|explicitly) )?(?:told|asked|instructed) you\b"
    r"|\b(?:as|like|what) I (?:(?:already|just) )?(?:said|asked|told)\b|\bdidn['’]?t I (?:say|tell|ask)\b"
    r"|\bI (?:already|clearly|specifically|explicitly) (?:said|asked)\b|\bhow many times\b"
    r"|\bwhy (?:are|do|did) you (?:still|keep|again)\b|\byou (?:still )?keep \w+ing\b"
    r"|(?:不是|都|已经|早就)(?:跟你|和你)?说(?:了|过)|我说过|言ったよね|と言った",
    re.IGNORECASE,
)


ALL_WORK = 2


# A line with this many JSON member names is data; so is a run of this many lines with one member or a bracket each.
_MEMBERS_OF_DATA, _LINES_OF_DATA = 3, 6
# A line of a box that a program drew is data, too, but none of a tree of files: `└── src`.
_DATA_LINE = pattern(r'\s*(?:"[^"]*"\s*(?::|,?$)|[\[\]{}]+,?$|[│┃║].*[│┃║]\s*$|[╭╰┌└┏┗╔╚├┡╞╠][─━═┬┴┳┻┼╇╪╦╩╬]{4})')
# Where a terminal session begins below other words, but not in a block of code.
_SESSION, _HEADING = pattern(r"(?<!`)\n+(?=\$ [a-z./~])"), pattern(r"^#{1,6} |^```", re.MULTILINE)
# The words before an object that begins on the same line: `the gauge sends {"level": 3`.
_BEFORE_DATA = pattern(r'(\w[^{}"\s]*+\s[^{}"]*+)\{"')
# A line with nothing but the path of a picture, as a terminal writes for a dropped file: `'/tmp/pier.png'`.
_PICTURE = pattern(r"\W*(?:~|[A-Z]:)?[/\\].*\.(?:png|jpe?g|gif|webp|bmp|heic)\W*", re.IGNORECASE)
# A message of at least this many characters and line breaks, and with fewer headings and list entries than the third
# number, was mostly pasted.
_PASTED_CHARS, _PASTED_LINES, _MIN_STRUCTURE = 1_500, 12, 6
_STRUCTURE = pattern(r"^[ \t]*(?:#{1,6} |[-*•] |\d+[.)] )", re.MULTILINE)
# What is quoted of it: the first characters, the first errors, and the last line if it is a sentence this short.
_OPENING_CHARS, _MAX_ERRORS, _ENDING_CHARS, _MAX_COMMAND_CHARS = 400, 3, 300, 100


def own_words(text: str, *, is_first: bool = False) -> str:
    """The text of a message without what was pasted into it.

    A long message is cut to its beginning, the first errors in it and its last line. A pasted terminal session, of any
    length, is cut to its commands, its first errors and the sentences around its output. A long diff is left out.

    Guarantee: unless it begins with a shell prompt or holds a long diff, a message stays as it is if it is a plan
    (headings, lists), has fewer than 1,500 characters or 12 line breaks, or is the first one.
    """
    text = without_hunks(_ABOVE_PROMPT.sub("", text))
    if PROMPT.match(text):
        return _without_output(text)
    is_short = len(text) < _PASTED_CHARS or text.count("\n") < _PASTED_LINES
    if is_short or is_first or len(_STRUCTURE.findall(text)) >= _MIN_STRUCTURE:
        return text
    text = _PASSING.sub("", without_data(text)).strip() or text
    lines = [line for line in text.split("\n") if line.strip()]
    chars, shown, errors = 0, list[str](), 0
    for line in lines[:-1]:
        is_error = errors < _MAX_ERRORS and line not in shown and _is_error(line)
        if chars < _OPENING_CHARS or is_error:
            shown.append(line if len(line) <= _OPENING_CHARS else f"{line[:_OPENING_CHARS]} {ELLIPSIS}")
        elif not shown[-1].endswith(ELLIPSIS):
            shown[-1] += f" {ELLIPSIS}"
        errors += is_error
        chars += len(line)
    is_sentence = len(lines[-1]) <= _ENDING_CHARS and _SENTENCE.match(lines[-1])
    return "\n".join([*shown, lines[-1]] if is_sentence or not shown else shown)


def _without_output(text: str) -> str:
    """A pasted terminal session with the beginnings of its commands, the first errors and an ellipsis for the rest."""
    shown: list[str] = []
    errors = 0
    for line in filter(str.strip, joined_lines(text).split("\n")):
        is_command = PROMPT.match(line) is not None
        is_error = errors < _MAX_ERRORS and not is_command and _is_error(line)
        errors += is_error
        if is_command or is_error or (_SENTENCE.match(line) and _SPEECH.search(line)):
            shown.append(opening(line, _MAX_COMMAND_CHARS) if is_command else line)
        elif shown[-1] != ELLIPSIS:
            shown.append(ELLIPSIS)
    return "\n".join(shown)


# A shell's prompt: `$ make`, `❯ ls`, `ada@pier:~$ `. Agents prompt for words with the same signs: `❯ can you check`.
_WORDS_TO_AGENT = r"(?! *(?:[A-Z][\w']* (?=[a-z])|(?:can|could|please|the|now|so|ok(?:ay)?|we|let'?s|why|how|what)\b))"
PROMPT = pattern(rf"\s*(?:[❯➜»]{_WORDS_TO_AGENT}|[$%#] (?=[a-z./~])|[\w.-]+@[\w.-]+[: ][^\n]{{0,60}}[$#%] )")


# The line that some shells print above their prompt: `tidegate on main via go 1.24 took 2s`.
_ABOVE_PROMPT = pattern(r"\A\s*[^\n]{1,80} (?:on|via|took) [^\n]{1,120}\n(?=[❯➜»] )")


def without_quotes(text: str) -> str:
    """A message without its quoted lines (`> …`); unchanged if it has no other lines."""
    own = "\n".join(line for line in text.split("\n") if not line.startswith(">"))
    return own if own.strip() else text


def without_screens(text: str) -> str:
    """A text in which every paragraph copied from a screen is cut after the first line of the screen."""
    return "\n\n".join(map(_without_screen, text.split("\n\n")))


def _without_screen(paragraph: str) -> str:
    lines = paragraph.split("\n")
    width = max(map(len, lines))
    filled = [place for place, line in enumerate(lines) if len(line) == width and line.endswith(" ")]
    is_screen = len(filled) >= _LINES_OF_SCREEN and 2 * len(filled) >= len(lines)
    return " ".join([*map(str.strip, lines[: filled[0] + 1]), ELLIPSIS]) if is_screen else paragraph


# Nobody types this many lines that are padded with blanks to one width: they were copied from a screen.
_LINES_OF_SCREEN = 4


@lru_cache(maxsize=256)
def is_pasted(text: str) -> bool:
    """Whether a message asks for nothing and only shows an output: a terminal session, data, or a log with an error.

    A session must not end with a line in the user's own words, and an error of another output neither begin nor end
    with one. If lines of it might be requests, most of its lines must be indented, as those of a log.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if lines and PROMPT.match(lines[0]):
        return PROMPT.match(lines[-1]) is not None or _is_error(lines[-1]) or not _SPEECH.search(lines[-1])
    if len(lines) < _LINES_OF_OUTPUT or all(map(_DATA_LINE.match, lines)):
        return len(lines) >= _LINES_OF_OUTPUT
    is_spoken = _SPEECH.search(lines[0]) or (_SPEECH.search(lines[-1]) and not _is_error(lines[-1]))
    is_log = 2 * sum(map(len, map(_INDENTED.findall, lines))) >= len(lines)
    return not is_spoken and any(map(_is_error, lines)) and (is_log or not any(map(ASKS_FOR.search, sentences(text))))


def asked_label(text: str, words: FixedWords) -> str:
    """What a message of the user is called: a request, unless it only shows an output."""
    return words.pasted if is_pasted(text) else words.request


def asked_briefly(text: str, chars: int) -> str:
    """The beginning of a message; of a pasted output, that of its first line and of its first error."""
    errors = [*filter(_is_error, text.split("\n")[1:])] if is_pasted(text) else []
    error = next((line for line in errors if len(line.split()) > _BARE_ERROR_WORDS), next(iter(errors), ""))
    named = opening(text.strip().split("\n")[0] if error else text, chars)
    is_cut = len(named) < len(one_line(text)) and not named.endswith(ELLIPSIS)
    return f"{named}{f' {ELLIPSIS}' if is_cut else ''}{f' {opening(error.strip(), 2 * chars)}' if error else ''}"


_BARE_ERROR_WORDS = 2  # `error: …`
_INDENTED = pattern(r"^(?: {2,}|\t)(?![-*•+] |\d+[.)] )")


_LINES_OF_OUTPUT = 3
# Signs that a person wrote the line: `why is it slow`, `the tide is late?`.
_SPEECH = pattern(
    r"[?？]\W*$|\b(?:I|we|you|let'?s|can|please|this|that|it|why|how|what|when|but|yes|ok|also)\b|[^\x00-\x7f]{4}",
    re.IGNORECASE,
)


# A test runner's line for a test that starts or passes: `=== RUN TestTide`, `tests/test_pier.py::test_open PASSED`.
_PASSING = pattern(r"^(?:=== (?:RUN|PAUSE|CONT|NAME)\b|\s*--- PASS:|.* PASSED\b).*\n", re.MULTILINE)
_SENTENCE = pattern(r"\w[\w',]*(?: [\w`'\",/.-]+){2,}.*[.?!\w]\s*$")


# What comes before a request: the agent's role or its material, and then perhaps a heading of the request itself.
# `You are a careful harbour clerk. `, `I've uploaded a repository. `; `## Task description`.
_PREFACE = pattern(
    r"\s*(?:you are\b|you're an?\b|act as\b|your (?:role|job) is\b|we(?:'re| are) (?:currently )?(?:solving|working)\b"
    r"|I(?:'ve| have) uploaded\b|<\w+>\n)[^.!?]*(?:[.!?:]+(?=\s)|\n)",
    re.IGNORECASE,
)
_HEADS_REQUEST = pattern(
    r"^\W*(?:[\w' ]{0,40}\b)?(?:task|issue|problem|request|question|query)(?:[ _](?:text|description|statement))?\W*$",
    re.IGNORECASE | re.MULTILINE,
)
_MAX_PREFACE_CHARS = 1_500


def without_preface(text: str) -> str:
    """A request without the sentences before it on the agent's role and material; unchanged if nothing else is left."""
    if not _PREFACE.match(text):
        return text
    headed = _HEADS_REQUEST.search(text, 0, _MAX_PREFACE_CHARS)
    rest = text[headed.end() :] if headed else text
    while found := _PREFACE.match(rest):
        rest = rest[found.end() :]
    return rest.strip() or text


def without_data(text: str) -> str:
    """A text with an ellipsis for pasted lines of data, and without lines that only hold the path of a picture.

    Of a long terminal session below its first words, the commands, errors and sentences are left.
    """
    lines: list[str] = []
    session = _SESSION.search(text)
    if session and text.count("\n", session.end()) >= _PASTED_LINES and not _HEADING.search(text, session.end()):
        text = f"{text[: session.start()]}\n{_without_output(text[session.end() :])}"
    for may_be, found in groupby(text.split("\n"), key=lambda line: _DATA_LINE.match(line) is not None):
        run = [line for line in found if not _PICTURE.fullmatch(line)]
        is_data = may_be and len(run) >= _LINES_OF_DATA
        for line in run:
            is_plain = line.count('":') < _MEMBERS_OF_DATA
            opens = None if is_plain else _BEFORE_DATA.match(line)
            if not is_data and (is_plain or opens):
                lines.append(f"{opens[1].rstrip()} {ELLIPSIS}" if opens else line)
            elif lines and not lines[-1].endswith(ELLIPSIS):
                lines[-1] += f" {ELLIPSIS}"
    return _EMPTY_BLOCK.sub(f" {ELLIPSIS}", "\n".join(lines))


_EMPTY_BLOCK = pattern(rf"\n```\w* {ELLIPSIS}\n```")


def _is_error(line: str) -> bool:
    """Whether the part of a line that would be quoted shows an error."""
    return ERROR_PATTERN.search(line[:_OPENING_CHARS]) is not None


def stops_in_force(
    messages: Iterable[UserMessage],
    events: Sequence[Event],
    operations: Sequence[FileOperation],
    runs: Sequence[Run],
    directory: str = "",
) -> tuple[UserMessage, ...]:
    """The messages with ``resumed`` set for each stop that is over; without words, such a stop is left out.

    The stop of a change is over when a later call changes the file, of a command when it succeeds later, of a service's
    call when a later one with at least half of its arguments succeeds, of a plan when a later plan is not refused.
    """
    results = (one for one in reversed(events) if one.kind is EventKind.RESULT and one.call >= 0)
    taken = (one.call for one in results if not (one.is_refusal or one.is_error) and _shows_plan(events[one.call]))
    plan = next(taken, -1)
    made: dict[tuple[bool, str], list[FileOperation]] = {}
    for one in operations:
        if one.action is not FileAction.READ:
            made.setdefault((_is_removal(one), one.target or one.path), []).append(one)
    # A commit counts as the same command with another message, if it is of the same files.
    parts = ((run, acting_part(run.command)) for run in runs)
    keys = {run.event: part if "git commit" in part else run.key for run, part in parts}
    ran: dict[str, list[Run]] = {}
    for run in reversed(runs):
        if run.outcome is CommandOutcome.OK:
            for key in {keys[run.event], *chain_parts(keys[run.event])}:
                ran.setdefault(key, []).append(run)
    served: dict[str, list[tuple[int, frozenset[str], int]]] = {}
    for number, result in results_of(events).items():
        if is_service_call(events[number]) and not (result.is_error or result.is_refusal):
            served.setdefault(events[number].name, []).append((number, _given_to(events[number]), result.record))

    def resumed(call: int, reason: str = "") -> int:
        """The record of a later call that did what the stopped ``call`` was to do; -1 if none did."""
        if call >= 0 and _shows_plan(events[call]):
            return events[plan].record if plan > call else -1
        if call >= 0 and is_service_call(events[call]):
            given = _given_to(events[call])
            again = (one for one in served.get(events[call].name, ()) if one[0] > call)
            return next((record for _, other, record in again if 2 * len(given & other) >= len(given)), -1)
        files = _staged(command_of(events[call].arguments)) if call in keys else frozenset()
        runs_since = (one for one in ran.get(keys.get(call, ""), ()) if one.event > call)
        # A commit that names no files may leave out what the user did not want: it ends only a stop without a reason.
        staged = ((one, _staged(one.command)) for one in runs_since)
        run = next((one for one, given in staged if files <= given or not (given or reason)), None)
        tried = attempted(events[call], directory) if call >= 0 else ()
        later = [_made_later(one, call, made.get((_is_removal(one), one.target or one.path), ())) for one in tried]
        shown = [one.record for one in ([run] if run else later) if one and one.event > call]
        return max(shown, default=-1) if len(shown) == max(1, len(later)) or run else -1

    found: list[UserMessage] = []
    for message in messages:
        record = resumed(message.call, message.text)
        after_stop = tuple(one for one in message.after_stop if resumed(one[0]) < 0)
        if message.text or record < 0:
            is_plan = message.call >= 0 and _shows_plan(events[message.call])
            found.append(replace(message, resumed=record, is_plan=is_plan, after_stop=after_stop))
    return tuple(found)


def _made_later(stopped: FileOperation, call: int, changes: Iterable[FileOperation]) -> FileOperation | None:
    """The change after a stopped call that wrote the most lines of the stopped change; None if there is no change."""
    wanted = _new_lines(stopped)
    later = (one for one in changes if one.event > call)
    return max(later, key=lambda one: (len(wanted & _new_lines(one)), one.event), default=None)


def _new_lines(change: FileOperation) -> set[str]:
    return {line.strip() for _, new in change.replaced for line in new.split("\n") if line.strip()}


def _staged(command: str) -> frozenset[str]:
    """The files that a command line names for ``git add``; none where it adds everything (``.`` or an option)."""
    given = (word for words in _ADDS.findall(command) for word in words.split())
    return frozenset(word for word in given if word != "." and not word.startswith("-"))


_ADDS = re.compile(r"\bgit add ([^&|;\n]*)")


def _shows_plan(call: Event) -> bool:
    """Whether a call shows a plan to the user, rather than only updating a list of tasks."""
    is_plan = short_name(call.name).startswith("exitplan") or argument(call.arguments, ("plan",)).strip()
    return call.tool is ToolKind.PLAN and bool(is_plan)


def _given_to(call: Event) -> frozenset[str]:
    """The values of the arguments in a call of a service."""
    return frozenset(value for _, value in parameters(call.arguments))


def _is_removal(one: FileOperation) -> bool:
    return one.action in (FileAction.DELETE, FileAction.REVERT)
