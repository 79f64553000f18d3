"""Decisions: questions with the reply that answered them, and sentences that choose something and give the reason.

A proposal is a decision only once the user accepts it, and a question that is answered with a question is not one. What
a later message of the user overturns is no longer one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.language import FixedWords, dense_share, shares_term, terms, words_of
from compactor_cli.digest.messages import PROMPT
from compactor_cli.digest.noise import is_narration
from compactor_cli.digest.replies import (
    QUESTION_WORDS,
    asks,
    begins_with_assent,
    chosen_options,
    declines,
    is_assent,
    is_yes_or_no,
    last_proposal,
    last_question,
    options_of,
    question_of_options,
)
from compactor_cli.digest.statements import LIMITS, QUESTION_MARKS, StatementForm, records_of, statements_of
from compactor_cli.digest.texts import COLONS, ELLIPSIS, one_line, opening, sentences
from compactor_cli.digest.tools import ToolKind, argument
from compactor_cli.formats.client_signs import APPROVED_PLAN
from compactor_cli.model.patterns import pattern
from compactor_cli.model.value import dataclass

if TYPE_CHECKING:
    pass


_MIN_CHARS, _MAX_CHARS, _MAX_REPLY_CHARS = 12, 320, 480
_MAX_ANSWER_CHARS, _MAX_ASKED_CHARS = 200, 140
_MAX_OPTION_CHARS, _MAX_REST_CHARS = 220, 120
_MAX_SHORT_ANSWER_WORDS = 5
# Weights: of an option that the user took or a yes, and of an answer in the user's own words, which says more.
TAKEN, _ASKED = 4.0, 4.2
# Between a question and its answer.
ANSWERED = ' → "'
# A yes to a question of fewer words that carry meaning ("Shall I go on?") names nothing.
_MIN_AGREED_TERMS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A sentence that decides, a question with the user's answer, or a plan with what the user answered."""

    text: str
    records: tuple[int, ...]
    weight: float  # how surely it decides, from 2 up (4: the user chose)
    detail: str = ""  # what the chosen options say
    given_up: tuple[str, ...] = ()  # options not taken, or among which the agent may choose (``leaves_open``)
    leaves_open: bool = False  # the user leaves the choice to the agent
    turn: int = -1  # in which what the user agreed to is done; -1: the user agreed to nothing
    is_approved: bool = False  # a plan that was shown and approved

    @property
    def whole(self) -> str:
        """The text with its detail."""
        return f"{self.text}: {self.detail}" if self.detail else self.text


# The wording of a choice (`we went with local time`), and of a reason (`because the gauge drifts`).
_CHOOSES = pattern(
    r"\b(?:decided|decision|we chose|I chose|choosing|(?:go|going|went) with|opt(?:ed|ing)? for|instead of|rather than"
    r"|switched to|agreed|the (?:fix|solution) (?:is|was))\b"
    r"|决定|改用|采用|选择|改为|而不是|决议|ことにし|採用|に決め|ではなく|代わりに",
    re.IGNORECASE,
)
_REASONS = pattern(
    r"\b(?:because|the reason|root cause|turns out|the (?:issue|problem|cause|bug) (?:is|was)|so that|due to|that's why"
    r"|since (?:it|they|the|we|there|that|this)|which means|can't|cannot|policy|(?:not |in)eligible|intentional(?:ly)?"
    r"|(?:not|only|n't) (?:be )?(?:allow(?:ed)?|permit(?:ted)?)|(?:not|n't) support(?:ed)?|by design)\b"
    r"|因为|由于|原因|所以|之所以|なので|ためです|ために|のため|理由",
    re.IGNORECASE,
)
_PROPOSAL = pattern(
    r"\b(?:should|could|would|might|recommend|suggest|propos|option|alternative|consider|maybe|perhaps|if you|do you"
    r"|want me|shall|prefer)\w*|建议|可以考虑|是否|要不要|提案",
    re.IGNORECASE,
)


def chooses(sentence: str) -> bool:
    """Whether a sentence says that something was chosen."""
    return _CHOOSES.search(sentence) is not None


def gives_reason(sentence: str) -> bool:
    """Whether a sentence gives a reason."""
    return _REASONS.search(sentence) is not None


def proposes(sentence: str) -> bool:
    """Whether a sentence only proposes, or offers a choice."""
    return _PROPOSAL.search(sentence) is not None


def decisions(
    events: Sequence[Event], taken_back: Collection[int] = (), words: FixedWords | None = None
) -> tuple[Decision, ...]:
    """What was decided, in order: sentences of the assistant, its questions and plans with what the user answered.

    ``taken_back``: positions of messages whose sentences settle nothing (see `overturned`).
    """
    found: dict[str, Decision] = {}
    last = -1
    for number, event in enumerate(events):
        if event.kind is EventKind.RESULT and event.tool is ToolKind.PLAN and event.call >= 0:
            for decision in _judged_plan(events[event.call], events[number:], words or words_of("en")):
                # Of a plan that is shown again, the last answer counts.
                _replace(found, decision.text.partition(": ")[2][:_SAME_CHARS], decision)
        new: Iterator[Decision] = iter(())
        if event.kind is EventKind.ASSISTANT:
            last = number
            new = _of_assistant(event) if number not in taken_back else new
        elif event.kind is EventKind.USER and _is_typed_anew(event, events[number + 1 : number + 2]):
            continue
        elif event.kind is EventKind.USER:
            new = _answered(events[last], event) if last >= 0 and not event.was_waiting else new
            last = -1
        elif not event.refusal:
            continue
        if _RECONSIDERS.match(event.refusal or (event.text if event.kind is EventKind.USER else "")):
            given = next((key for key, one in reversed(found.items()) if len(one.records) > 1), None)
            if given and found[given].records[-1] >= event.record - _MAX_RECONSIDERED_RECORDS:
                del found[given]
        for decision in new:
            # Of a question that is asked again, the last answer counts.
            _replace(found, decision.text.partition(ANSWERED)[0], decision)
    return tuple(found.values())


def _is_typed_anew(event: Event, after: Sequence[Event]) -> bool:
    """Whether the user's next message repeats this one and goes on."""
    return any(one.kind is EventKind.USER and one.text.startswith(event.text.rstrip(" .!?")) for one in after)


def _replace(found: dict[str, Decision], key: str, decision: Decision) -> None:
    found.pop(key, None)
    found[key] = decision


def _judged_plan(call: Event, after: Sequence[Event], words: FixedWords) -> Iterator[Decision]:
    """A plan that a call showed, with the user's answer: to the call, or the next message where it was only stopped."""
    result = after[0]
    in_answer = APPROVED_PLAN.search(result.text)
    plan = argument(call.arguments, ("plan",)).strip() or (in_answer[1] if in_answer else "")
    if not plan or (result.is_error and not result.is_refusal):
        return
    shown = f"{words.plan}{words.colon}{outline(plan)}"
    records = records_of((call.record, result.record))
    if not result.is_refusal:
        text = f"{shown} → {words.approved}"
        yield Decision(text=text, records=records, weight=TAKEN, turn=call.turn, is_approved=True)
        return
    later = next((one for one in after[1:2] if one.kind is EventKind.USER), None)
    reason = opening(result.refusal or (later.text if later else ""), _MAX_ANSWER_CHARS)
    reason = f"{words.colon}{words.quoted(reason)}" if reason else ""
    yield Decision(text=f"{shown} → {words.refused}{reason}", records=records, weight=2.0)


def outline(plan: str) -> str:
    """The first line of a plan and its main steps: numbered headings, else numbered entries, else any headings."""
    title = _PLAN_TITLE.sub("", opening(plan.strip().partition("\n")[0], _MAX_REST_CHARS))
    steps = next((found for form in _STEPS if len(found := form.findall(plan)) > 1), [])
    kept = [opening(step.rstrip(":"), _MAX_STEP_CHARS) for step in steps[:_MAX_STEPS] if title not in step]
    more = [ELLIPSIS] if len(steps) > _MAX_STEPS else []
    return words_of("en").colon.join(filter(None, (title.rstrip(":"), " · ".join((*kept, *more)))))


_PLAN_TITLE = pattern(r"^\W*plan\b\W*", re.IGNORECASE)
# The steps of a plan: `## Step 2. Gauges`, else `2. Gauges`, else `## Gauges`.
_STEPS = tuple(
    pattern(form, re.MULTILINE)
    for form in (
        r"^#{2,4} +((?:\w+ )?(?:\d{1,2}|[A-H])[.:)] .+)$",
        r"^(?:\*\*)?(?:step )?(\d{1,2}[.)] +.+)$",
        r"^#{2,3} +(.+)$",
    )
)
_MAX_STEPS, _MAX_STEP_CHARS, _SAME_CHARS = 8, 60, 40


def _of_assistant(event: Event) -> Iterator[Decision]:
    if not (chooses(event.text) or _DECIDES.search(event.text)):
        return
    for text, form, lead in statements_of(event.text):
        # An entry in a list of options, or in one of what is wrong, decides nothing.
        is_listed = form in (StatementForm.ITEM, StatementForm.ROW)
        if form is StatementForm.CODE or (is_listed and (proposes(lead) or _FAULTS.search(lead))):
            continue
        pieces = sentences(text)
        for number, sentence in enumerate(pieces, 1):
            if weight := _weight(sentence, lead):
                limited = " ".join((sentence, *filter(LIMITS.match, pieces[number : number + 1])))
                yield Decision(text=limited, records=(event.record,), weight=weight)


_FAULTS = pattern(
    r"\b(?:issues?|findings?|problems?|feedback|to fix|concerns?|bugs?|remaining)\b(?! fixed)", re.IGNORECASE
)


def _weight(sentence: str, lead: str) -> float:
    """How surely a sentence of the assistant under this lead decides something; 0 if it does not."""
    if not _MIN_CHARS <= len(sentence) <= _MAX_CHARS or sentence.endswith((*COLONS, *QUESTION_MARKS)):
        return 0.0
    # How the agent goes about its work decides nothing.
    if _OF_METHOD.search(sentence) or is_narration(sentence) or sentence[0].islower() or _OWNS_SLIP.search(sentence):
        return 0.0
    # `would` and the like in a reason do not make a proposal.
    if proposes(_REASONS.split(sentence)[0]):
        return 0.0
    # `instead of` may also describe what the code does: only what the agent did, or a heading calls a decision, counts.
    is_headed = _HEADS_DECISIONS.search(lead) is not None
    is_own = dense_share(sentence) or is_headed or _HAS_DONE.search(sentence)
    if not ((is_own and chooses(sentence)) or _DECIDES.search(sentence)):
        return 0.0
    # Without a reason, most that the agent did is how it went about the work.
    return 3.0 if gives_reason(sentence) else 2.0 if is_headed else 0.0


# What was done by mistake is not a choice.
_OWNS_SLIP = pattern(
    r"\A\W*(?:(?:good|great|nice) catch|my (?:bad|mistake)|sorry|oops)\b|\b(?:mistakenly|accidentally|by mistake)\b",
    re.IGNORECASE,
)
_OF_METHOD = pattern(r"\bI(?:'ll|'m| will| am)? us(?:e|ing) (?:the|my|a) [^.;,]{1,40}\b(?:workflow|skill|subagent)s?\b")
# What the agent did (`so I moved the gauge`); what it is doing, sees or can do is not a choice.
_CLAUSE = r"(?:\A\W*(?:\d+[.)] )?|[,;:–—] ?|\b(?:so|and|but|now) )"
_HAS_DONE = pattern(
    rf"{_CLAUSE}(?:I|[Ww]e)(?:'ve| have)? (?:also |now )?"
    r"(?!(?:also|now|was|were|am|are|can|need|must|have|had|see|saw|notice[ds]?|f[oi]u?nd|think|know|got|do|did|done|get"
    r"|want|verif(?:y|ied)|check(?:ed)?|confirm(?:ed)?|looked|read|ran|reviewed|tested|traced|compared|reproduced)\b)\w"
)
# What the agent will do, with the reason: `I'll keep UTC because the log does`. Without one, it may still do otherwise.
_DECIDES = pattern(
    rf"{_CLAUSE}(?:I|[Ww]e|[Ll]et)(?:'(?:ll|ve|s)| will| have)? (?:leave|left|ke(?:ep|pt)|use[ds]?|put|ma[kd]e|skip"
    r"|drop|avoid(?:ed)?|store[ds]?|treat(?:ed)?)\b.* (?:because|since|so that|to avoid|to keep)\b"
)
_HEADS_DECISIONS = pattern(r"\b(?:decisions?|decided)\b", re.IGNORECASE)


def _answered(before: Event, event: Event) -> Iterator[Decision]:
    """The assistant's last question with the user's answer and the options not taken; nothing without an answer."""
    if PROMPT.match(event.text):
        return  # what a terminal showed is no answer
    whole = one_line(event.text)
    question = last_question(before.text) or (last_proposal(before.text) if begins_with_assent(whole) else "")
    options = options_of(before.text)
    chosen = chosen_options(whole, options)
    answers = chosen or is_yes_or_no(whole)
    if chosen and question:
        question = question_of_options(before.text, question)
    asks_back = asks(whole) if event.is_answer else any(mark in whole for mark in QUESTION_MARKS)
    if not answers and (asks_back or event.text.partition("\n")[0].rstrip().endswith(COLONS)):
        return  # the user asks back, or shows something
    # The answer ends where the user asks back: that is another matter.
    most = _MAX_REPLY_CHARS if event.is_answer else _MAX_ANSWER_CHARS
    answer = opening(_BARE_KEY.sub(r"\1", " ".join(takewhile(lambda one: not asks(one), sentences(whole)))), most)
    answer = answer or (opening(whole, most) if chosen else "")
    if not answer or not (question or begins_with_assent(answer)):
        return
    is_brief = len(whole) <= _MAX_ANSWER_CHARS
    if not (event.is_answer or chosen) and _passes_over(question, answer, options.values(), is_brief=is_brief):
        return
    if (answer.startswith("/") and " " not in answer) or _ASKS_TO_GO_ON.match(question):
        return  # a command to the client, typed in between; or a question whether there is more to ask
    is_passing = _SETTLES_NOTHING.match(answer) or (is_assent(answer) and any(map(asks, sentences(whole))))
    if is_passing and not (chosen or event.is_answer):
        return
    if question.endswith(COLONS) and not chosen:
        listed = " · ".join(opening(f"{key}. {text}", _MAX_REST_CHARS // 2) for key, text in options.items())
        question = f"{question} {listed}".strip()
    records = records_of((before.record, event.record))
    asked = _with_subject(question, before.text) if event.is_answer else opening(question, _MAX_CHARS)
    named = set(terms(_GO_ON.sub("", question)))
    names_little = _ASKS_OF_THE_TEXT.match(question) or len(named) < _MIN_AGREED_TERMS
    is_short = _is_of_few_words(answer)
    is_go_ahead = names_little or (is_short and _OFFERS_WORK.match(question))
    if not (chosen or event.is_answer) and is_go_ahead and begins_with_assent(answer):
        return  # it agrees to what was shown, or to a step of the work: the history quotes that
    if (_ASKS_FOR_THING if chosen or event.is_answer else _ASKS_WHAT_IS).match(question):
        return
    if chosen:
        yield _choice(asked, answer, options, chosen, records=records, turn=event.turn)
    else:
        weight = _ASKED if event.is_answer else 2.5
        yield Decision(text=f'{asked}{ANSWERED}{answer}"', records=records, weight=weight, turn=event.turn)


def _with_subject(question: str, text: str) -> str:
    """The question that a tool asked with a text; if it points back, after the first sentence of its paragraph."""
    asked = opening(question, _MAX_ASKED_CHARS)
    subject = sentences(text.rpartition("\n")[2])[0] if _POINTS_BACK.search(question) else question
    return asked if subject in question else f"{opening(subject, _MAX_ASKED_CHARS)} {asked}"


def _choice(
    asked: str, answer: str, options: Mapping[str, str], chosen: Sequence[str], *, records: tuple[int, ...], turn: int
) -> Decision:
    """The decision for the options that the user took, or for a choice that the user left to the agent."""
    # `B first`, or steps one of which comes first, do not give up the others, and what is the case is no choice.
    gives_up_none = _FIRST.search(answer) or _IN_ORDER.search(asked) or _ASKS_FOR_FACT.search(asked)
    # `A for all gauges, the others should do B`: what the reply names besides is not given up.
    named = {key for key in options if key.isalpha() and re.search(rf"\b{key.upper()}\b(?!['’])", answer)}
    left = () if gives_up_none else (text for key, text in options.items() if key not in {*chosen, *named})
    names = Counter(text.split(": ")[0] for text in options.values())
    # Of two options that begin alike, the name goes on: `Override: this session: …`.
    called = (
        ": ".join(text.split(": ")[: 1 + (names[text.split(": ")[0]] > 1)])
        for text in left
        if not _LEAVES_OPEN.match(text)
    )
    rest = tuple(opening(name, _MAX_REST_CHARS) for name in called)
    texts = (options[key].removeprefix(f"{answer}: ") for key in chosen)
    taken = " · ".join(opening(text, _MAX_OPTION_CHARS // len(chosen)) for text in texts if text != answer)
    leaves_open = _LEAVES_OPEN.match(answer) is not None
    return Decision(
        # Where nothing was asked, the options that were taken show what the answer is about.
        text=f'{asked}{ANSWERED}{answer}"' if asked else f'"{answer}"',
        records=records,
        weight=TAKEN,
        detail="" if leaves_open else taken,
        given_up=rest,
        leaves_open=leaves_open,
        turn=turn,
    )


# A reply that leaves the choice to the agent, and a question whether there is more to ask.
_LEAVES_OPEN = pattern(
    r"\W*(?:(?:not sure|no idea|don'?t know)\b\W*)?"
    r"(?:you (?:decide|choose|pick)|(?:it's )?up to you|your (?:call|choice)|no preference|either)\b",
    re.IGNORECASE,
)
_ASKS_TO_GO_ON = pattern(r"\W*(?:any )?(?:more|other|further) questions\b", re.IGNORECASE)
_FIRST = pattern(r"\bfirst\W*$|\bfirst,|先|まず", re.IGNORECASE)
# Steps in an order: `Shall I do step 1 first, or go straight to step 2?`, `Two things to do, in order:`
_IN_ORDER = pattern(
    r"\bsteps? \d\b.*\bfirst\b|\bfirst\b.*\bor\b.*\bstraight\b|\bin (?:this |that )?order\W*\Z", re.IGNORECASE
)
_ASKS_FOR_FACT = pattern(r"\b(?:where|when|how|why) did\b|\bdo you (?:believe|think|suspect)\b", re.IGNORECASE)
# A number without its entry, at the end of the part of a reply that is shown: the `2.` in `1. ebb 2.`.
_BARE_KEY = pattern(r"(\b1[.)] .*) \d[.)]\Z")
# A reply that asks to see something first (`show me the gauges`), or only to commit, push or merge.
_SETTLES_NOTHING = pattern(
    r"\W*(?:just |first |please )*(?:show|tell|give|send) (?:me|us)\b"
    r"|(?=.*\b(?:commit|push|merge|pr)\b)\W*(?:(?:yes|yeah|ok(?:ay)?|sure|please|now|then|just|let'?s|and|also|go|ahead"
    r"|it|them|both|all|this|that|(?:the )?changes|commit|push|merge|open|create|an?|the|pr)\b\W*)+\Z",
    re.IGNORECASE,
)
# A question for what is known, was done or is needed (`Are there other gauges?`): its answer decides nothing.
_ASKS_WHAT_IS = pattern(
    r"\W*(?:(?:is|are|was|were) there\b|did\b|(?:do|does) \w+ (?:know|remember|recall|have)\b(?! to\b)"
    r"|(?:how|what)(?: else)? (?:can|may|could) I (?:help|assist|do for)\b"
    r"|what(?: else)? (?:do you need|would you like (?:me to do|to (?:do|work on))|shall I do|(?:is|'s) next)\b"
    r"|(?:can|could|would|will) you (?:please )?(?:share|paste|send|provide|show|tell|give|run|try|check|reload|open)\b"
    r"|anything else\b)",
    re.IGNORECASE,
)
# A question for something that the user may have: `Do you have the log of the gauge?`
_ASKS_FOR_THING = pattern(r"\W*(?:do|does) \w+ have\b(?! to\b)", re.IGNORECASE)
# Words of a question that do not name its subject: `Shall I proceed with the plan?`.
_GO_ON = pattern(
    r"\b(?:proceed|continue|implement(?:ing|ation)?|appl(?:y|ying)|chang(?:e|es|ing)|plan)\b", re.IGNORECASE
)
# A question about the text above it: `Does this look right?`.
_ASKS_OF_THE_TEXT = pattern(r"\W*(?:does|do|is|are) (?:that|this|these|those|it)\b", re.IGNORECASE)
# The subject of such a question stands before it: `How do you want to handle it?`
_POINTS_BACK = pattern(r"\b(?:it|this|that|them|these|those|both)\b|[它其]|[这那](?:个|些|样)|それ|これ", re.IGNORECASE)
# An open question, which any words may answer: `Which harbour is meant?`.
_IS_OPEN = pattern(rf"(?:\A|, )\W*(?:{QUESTION_WORDS})\b", re.IGNORECASE)
# An offer of one more step after the work (`Want me to plot it?`): the next request is seldom an answer to it.
_OFFER = r"\W*(?:(?:do you )?want (?:me )?to|would you like (?:me )?to|shall I|should I|ready to)"
_OFFERS = pattern(rf"{_OFFER}\b(?!.*\bor\b)", re.IGNORECASE)
# An offer of a step that decides nothing about the work itself: `Want me to commit the tables?`
_OFFERS_WORK = pattern(
    rf"{_OFFER} (?:go (?:ahead|on) and |now |also |first )?"
    r"(?:commit|push|merge|open|search|look|dig|start|continue|investigate)\b",
    re.IGNORECASE,
)
# The start of a message that takes an answer back.
_RECONSIDERS = pattern(
    r"\W*(?:actually|never ?mind|scratch that|forget (?:it|that|about)|on second thoughts?)\b", re.IGNORECASE
)
_MAX_RECONSIDERED_RECORDS = 60


def _passes_over(question: str, answer: str, options: Iterable[str], *, is_brief: bool) -> bool:
    """Whether a reply does not answer a question: it objects, or neither says yes or no nor shares a word with it.

    An offer to go on is answered only by a yes or no. A brief reply of at most `_MAX_SHORT_ANSWER_WORDS` answers any
    other question except an offer; one that is not brief must share two words, since it may be mostly about something
    else. An open question is answered by any brief reply, unless it asks which option is wanted and the reply shares no
    word with question or options.
    """
    if any(one.match(answer) for one in (_OBJECTS, _SUGGESTS, _ASKS_ANEW)):
        return True
    if is_assent(answer) and _ONE_OF_TWO.search(question):
        return True
    is_short = _is_of_few_words(answer) and not _OFFERS.match(question)
    # A yes to a choice of two takes neither.
    agrees = begins_with_assent(answer) and not (_EITHER.search(question) or _ONE_OF_TWO.search(question))
    offered = " ".join((question, *options))
    # `Okay, now …` may only close the matter and move on.
    agrees = agrees and (not _MOVES_ON.match(answer) or shares_term(offered, answer))
    goes_on = offered == question and _GOES_ON.search(question) is not None
    if agrees or declines(answer) or (is_brief and is_short and not goes_on):
        return False
    if goes_on:
        return True
    if is_brief and _IS_OPEN.search(question):
        asks_which = offered != question and _ASKS_WHICH.search(question) is not None
        return asks_which and not shares_term(offered, answer)
    # In Chinese or Japanese, one term may be a part of another word.
    least = 1 if is_brief and not dense_share(answer) else 2
    return len(set(terms(question)).intersection(terms(answer))) < least


def _is_of_few_words(answer: str) -> bool:
    """Whether an answer has at most `_MAX_SHORT_ANSWER_WORDS` words; in Chinese or Japanese, two characters are one."""
    dense = int(dense_share(answer) * len(answer))
    return len(answer.split()) + dense // 2 <= _MAX_SHORT_ANSWER_WORDS


# An offer to go on with the next thing: a reply that is neither yes nor no is another request.
_GOES_ON = pattern(r"\bnext\W*\?$|^\W*next\b", re.IGNORECASE)
_MOVES_ON = pattern(r"\W*ok(?:ay)?\b\W*(?:let['’]?s|now|can you|could you|next)\b", re.IGNORECASE)
_ASKS_WHICH = pattern(r"\b(?:which|prefer)\b", re.IGNORECASE)
# The second half of a choice of two: `Plot it now, or should I wait?`.
_EITHER = pattern(
    r"\bor (?:would|should|shall|do|is|are|can|could|maybe|just|leave|keep|wait|stop|skip|stick|hold|have|let)\b",
    re.IGNORECASE,
)
# A yes to such a question leaves open which is meant: `Want me to plot it, or run the tests first?`
_ONE_OF_TWO = pattern(
    r"\b(?:want me to|(?:should|shall) I|would you like me to|do you want)\b.*\w, or (?!not\b|some|any|what|whe|how)",
    re.IGNORECASE,
)
# What the agent is still to judge (`maybe it should be a float`), and the next request (`now I need you to …`).
_SUGGESTS = pattern(r"\W*(?:maybe|perhaps|what if|how about)\b|也许|或许|もしかして", re.IGNORECASE)
_ASKS_ANEW = pattern(r"\W*now,? (?:i (?:need|want) you|let'?s|can you|could you|please)\b|现在|接下来", re.IGNORECASE)
_OBJECTS = pattern(r"\W*(?:but|however|hm+)\b|i (?:do )?(?:like|love) (?:\w+ ){1,4}but\b|但是|でも", re.IGNORECASE)
