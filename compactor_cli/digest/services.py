"""Services: what calls of tools other than file and shell tools did and showed, and the candidates of a dialogue."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, takewhile
from typing import TYPE_CHECKING, Any

from compactor_cli.digest.candidates import RECENCY_OF_CHAT
from compactor_cli.digest.choice import Choice
from compactor_cli.digest.error_lines import ERROR_PATTERN, error_line
from compactor_cli.digest.events import Event, EventKind, is_service_call, results_of
from compactor_cli.digest.gist import WHOLE_LIST_RATIO, whole_lists
from compactor_cli.digest.language import FixedWords, names
from compactor_cli.digest.names import MAX_VALUE_CHARS, asked_for
from compactor_cli.digest.noise import finds_nothing, is_courtesy, is_noise
from compactor_cli.digest.objects import (
    ID,
    MAX_LIST_CHARS,
    OWNER_KEY,
    STATE_KEY,
    Meant,
    Mentions,
    fitting,
    ids_of,
    member_text,
    nodes_of,
    rows_of,
)
from compactor_cli.digest.replies import asks_the_user, begins_with_assent
from compactor_cli.digest.settled import called_with, gives_only
from compactor_cli.digest.statements import (
    QUESTION_MARKS,
    Statement,
    StatementForm,
    TokenCache,
    lead_of,
    records_of,
    statements_of,
)
from compactor_cli.digest.texts import COLONS, ELLIPSIS, one_line, opening, sentences
from compactor_cli.digest.tools import is_lookup
from compactor_cli.digest.wants import is_in_history
from compactor_cli.formats.client_signs import team_recipient
from compactor_cli.model.patterns import pattern
from compactor_cli.model.summary import Item

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

# Fewest and most characters of a call's arguments: in between, those of all acting calls together take half of the
# room. The newest acting call, which may have to be tried again, may take more.
_SIZES_CHARS, _MAX_NEWEST_CHARS = (80, 400), 600
_CHARS_PER_TOKEN = 3
# Weight of an object of an answer, relative to a sentence.
OBJECT_FACTOR = 3.0
# The `place` of the call itself: before those of the objects of its answer, and even as theirs are.
_CALL_PLACE = -2
_MAX_ARGUMENT_CHARS, _MAX_REPORTED_CHARS, _MAX_STATED_CHARS = 60, 100, 200
# Weight of a sentence of the user, and of one that gives a name or a number, relative to one of the assistant.
USER_FACTOR, GIVING_FACTOR = 1.8, 2.4
# Weight of a sentence of the assistant that says what cannot be had (see `_DENIES`).
DENIED_FACTOR = 1.4
# Weight of a call that failed and was not made good since: it keeps the next call from being made in vain.
FAILED_FACTOR, FAILED_FACTOR_IN_WORK = 1.5, 3.0
# Weight of the members of an object that nobody speaks of, and of those in an answer after which nobody has spoken yet.
REST_FACTOR, NEW_FACTOR = 0.3, 1.0
# A list in an answer is shown whole where it takes no more than this share of the room.
LIST_RATIO = 0.1


def call_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache, *, with_lookups: bool) -> list[Item]:
    """What the calls of services changed and showed: one item per call, newest first.

    An item reads ``name(arguments) → outcome · object · object``. Its objects are those that hold most of what the
    conversation speaks of or will need again, each as it was shown last. A failed call is left out where a later call
    of the same tool, with the ids that its error names, went well; so is one of which nothing but its success is shown.
    ``with_lookups``: calls that only look up count too.
    """
    statements = list(call_statements(analysis, budget_tokens * _CHARS_PER_TOKEN, with_lookups=with_lookups))
    by_call: dict[int, list[Statement]] = {}
    for statement in Choice(statements, (), analysis.worth, token_cache.text).choose(budget_tokens):
        by_call.setdefault(statement.event, []).append(statement)
    return [
        Item(
            text=call_text(group, analysis.words), records=records_of((analysis.events[number].record, group[0].record))
        )
        for number, group in sorted(by_call.items(), reverse=True)
        if not _shows_nothing(analysis.events[number], group, analysis.words)
    ]


def _shows_nothing(call: Event, group: Sequence[Statement], words: FixedWords) -> bool:
    """Whether all that is chosen of a call is that it went well: without its arguments or, of a look-up, its answer."""
    (first, *more), bare = group, f" → {words.ok}"
    is_bare = not more and first.text.endswith(bare)
    return is_bare and (is_lookup(call.name) or first.text == f"({ELLIPSIS}){bare}")


def call_text(group: Sequence[Statement], words: FixedWords) -> str:
    """The statements chosen of one call, as one text: objects after their lead, further members after their object.

    Where rows of a list are left out, the text after its last row states how many.
    """
    text, shown_texts, place = "", list[str](), group[0].place
    rows = Counter((one.lead, one.siblings) for one in group if one.siblings)
    ends = {(one.lead, one.siblings): one.place for one in group}
    left_out = ""
    for one in group:
        is_more = one.place % 2 == 1  # further members of the object before it
        if is_more:
            text = text.removesuffix(f" {ELLIPSIS}")
        else:
            text, left_out = text + left_out, ""
        leads = one.lead.split("\n") if one.lead else []
        # A long lead was cut and ends with an ellipsis: its start decides whether it was shown.
        starts = [lead.removesuffix(ELLIPSIS).rstrip() for lead in leads]
        fresh = (n for n, start in enumerate(starts) if not any(before.startswith(start) for before in shown_texts))
        new = leads[next(fresh, len(leads)) :]
        gap = f" {ELLIPSIS} " if one.place // 2 > place // 2 + 1 and not text.endswith(words.more) else " · "
        if new:
            text += f"{gap}{': '.join(new)}"
        text += f"{', ' if is_more and text else ': ' if new else gap}{one.text}"
        shown_texts, place = [*shown_texts, *new, one.text], one.place + one.span - 1
        hidden = one.siblings - rows[one.lead, one.siblings]
        if hidden > 0 and one.place == ends[one.lead, one.siblings]:
            left_out = f" {ELLIPSIS} {hidden} {words.more}"
    joint = "" if group[0].place == _CALL_PLACE else ": "
    text = f"{text}{left_out}".removeprefix(" · ").replace(f"{ELLIPSIS} {ELLIPSIS}", ELLIPSIS)
    return f"{group[0].label}{joint}{text}"


def call_statements(analysis: Analysis, chars: int, *, with_lookups: bool) -> Iterator[Statement]:
    """What every call did, then the objects of its answer that no newer answer shows; the newest call first.

    Of the messages to one agent of the team, only the newest counts: it reports what stands. A look-up that failed and
    did not go well later counts in any case.
    """
    events = analysis.events
    calls = [n for n, e in enumerate(events) if is_service_call(e)]
    if not with_lookups:
        missed = _missed(events, [n for n in calls if is_lookup(events[n].name)])
        calls = [n for n in calls if n in missed or not is_lookup(events[n].name)]
    sent = {n: recipient for n in calls if (recipient := team_recipient(events[n].name, events[n].arguments))}
    newest = {recipient: n for n, recipient in sent.items()}
    calls = [n for n in calls if n not in sent or newest[sent[n]] == n]
    reader = _Reader(analysis, calls, chars)
    for number in reversed(calls):
        yield from reader.read(number)


def _missed(events: Sequence[Event], calls: Sequence[int]) -> set[int]:
    """The newest of these calls of each tool, where it failed."""
    results = results_of(events)
    newest = {events[n].name: n for n in calls if n in results}
    return {n for n in newest.values() if not results[n].is_refusal and _failure_of(results[n])}


def _tool(call: Event) -> str:
    return call.name


class _Reader:
    """Reads calls and their answers, the newest first, and remembers what the newer ones showed."""

    def __init__(self, analysis: Analysis, calls: Sequence[int], chars: int) -> None:
        events = analysis.events
        self.analysis, self.results = analysis, results_of(events)
        self.mentions, self.meant = Mentions(analysis), Meant(analysis)
        acted = [n for n in calls if not is_lookup(events[n].name)]
        by_name = groupby(sorted((events[n] for n in calls if n not in acted), key=_tool), _tool)
        self.looked_up = dict(chain.from_iterable(self.meant.looked_up(group).items() for _, group in by_name))
        self.last_words = max((*acted, *(n for n, e in enumerate(events) if e.kind is EventKind.ASSISTANT)), default=-1)
        self.list_chars = min(int(chars * LIST_RATIO), MAX_LIST_CHARS)
        deeds = len({events[n].text for n in acted})
        self.chars = min(max(chars // max(1, 2 * deeds), _SIZES_CHARS[0]), _SIZES_CHARS[1])
        newest_chars = min(max(int(chars * WHOLE_LIST_RATIO), self.chars), _MAX_NEWEST_CHARS)
        self.newest = {max(acted, default=-1): newest_chars}  # by position of the newest acting call
        self.known: set[str] = set()  # keys of the statements made so far
        self.records: dict[str, int] = {}  # by id of an object, how many of its members newer answers show
        self.newer = _Newer()

    def read(self, number: int) -> Iterator[Statement]:
        """The call with its outcome or one-line answer, then the objects of its answer; nothing of a refused call."""
        call, result = self.analysis.events[number], self.results.get(number)
        answer = result.text.strip() if result else ""
        error = _failure_of(result) if result else ""
        failed = error != ""
        if (result and result.is_refusal) or (failed and self.newer.replace(call, error)) or _NO_TOOL.search(error):
            return
        if result and not failed:
            self.newer.went_well[call.name] = self.newer.went_well.get(call.name, "") + call.text
        acts = not is_lookup(call.name)
        form = StatementForm.ITEM if acts else StatementForm.OUTPUT
        age = 1.0 + number / len(self.analysis.events)
        base = Statement("", number, _CALL_PLACE, form, "", call.name, (result or call).record, 0, age)
        factor = FAILED_FACTOR if self.analysis.is_dialogue else FAILED_FACTOR_IN_WORK
        base = base._replace(weight=age * factor) if failed else base
        outcome = ""
        # A short line that is not JSON is shown whole with its call, also with one that only looks up.
        is_line = 3 < len(answer) <= _MAX_REPORTED_CHARS and "\n" not in answer and answer[0] not in "{["
        if acts or failed or is_line:
            outcome = _outcome(call, result, self.chars, self.analysis.words, error=error)
            yield from self._deed(base, outcome, answer)
        if result is None or failed or (is_line and not acts):
            return
        if nothing := next(filter(finds_nothing, sentences(answer[:_OPENING_CHARS])), ""):
            yield base._replace(text=f"({asked_for(call)}) → {opening(nothing, _MAX_STATED_CHARS)}")
            return
        yield from self._objects(base, outcome, result.text)

    def _deed(self, base: Statement, outcome: str, answer: str) -> Iterator[Statement]:
        """The statement ``(arguments) → outcome`` of a call, where no newer call made the same one."""
        call, words = self.analysis.events[base.event], self.analysis.words
        acts = not is_lookup(call.name)
        # Of a look-up made twice only the newest answer counts, so its outcome is not part of the key.
        key = f"{call.text} {outcome if acts else ''}"
        if key not in self.known:
            parts = self.newer.differing(call) if acts else _given(call.arguments)
            given = words.comma.join(fitting(parts, self.newest.get(base.event, self.chars)))
            yield _with_purpose(base._replace(text=f"({given}) → {outcome}".removesuffix(" → ")), answer, self.analysis)
        self.known.add(key)

    def _objects(self, base: Statement, outcome: str, answer: str) -> Iterator[Statement]:
        """Each object of an answer by the members that describe it, then its other members as another statement."""
        call = self.analysis.events[base.event]
        label = f"{call.name}({asked_for(call)})" if is_lookup(call.name) else call.name
        age = base.weight * self.looked_up.get(call.record, 1.0)
        arguments = () if isinstance(call.arguments, str) else call.arguments
        is_new = base.event >= self.last_words
        rest_weight = age * (NEW_FACTOR if is_new else REST_FACTOR) * self.analysis.is_dialogue
        own_records: dict[str, int] = {}
        shown_before = f"{call.text} {outcome}"
        nodes = list(nodes_of(answer, self.records, own_records, shown_before))
        weigh = partial(self.meant.weights, record=base.record)
        for row in rows_of(nodes, self.mentions, shown_before, self.list_chars, weigh):
            lead = nodes[row.place][0]
            one = base._replace(place=2 * row.place, form=StatementForm.OBJECT, label=label, lead=lead)
            key = f"{label}: {lead}: {row.used}"
            if row.used and key not in self.known:
                self.known.add(key)
                # An object under the name of an argument repeats what the action was given.
                is_repeated = nodes[row.place][1] in arguments and not is_lookup(call.name)
                weight = age * OBJECT_FACTOR * row.weight * (REST_FACTOR if is_repeated else 1.0)
                text = f"{row.used} {ELLIPSIS}" if row.other else row.used
                yield one._replace(text=text, span=row.span, siblings=row.siblings, weight=weight)
            if row.other and rest_weight:
                lead = "\n".join(filter(None, (lead, lead_of(row.used))))
                place = one.place + 1
                yield one._replace(text=row.other, place=place, form=StatementForm.ITEM, lead=lead, weight=rest_weight)
        self.records |= own_records


# An answer that holds nothing states so within this many characters.
_OPENING_CHARS = 800


class _Newer:
    """What newer calls of each tool showed, so that an older one need not repeat it."""

    def __init__(self) -> None:
        # By tool: the texts of the newer calls that went well, and the arguments of the next newer acting call.
        self.went_well: dict[str, str] = {}
        self.arguments: dict[str, Mapping[str, Any] | str] = {}

    def replace(self, call: Event, error: str) -> bool:
        """Whether a failed call no longer matters: newer calls of its tool had all ids in its error and went well."""
        named = {word for word in re.findall(r"[\w-]+", error) if ID.fullmatch(word) and word in call.text}
        given = self.went_well.get(call.name)
        return given is not None and all(word in given for word in named)

    def differing(self, call: Event) -> Iterator[str]:
        """The arguments of a call as texts, an empty one for each that the next newer call of its tool has as well.

        Where that call has exactly the same arguments, all of them are given.
        """
        same = self.arguments.get(call.name, "")
        self.arguments[call.name] = call.arguments
        if isinstance(same, str) or isinstance(call.arguments, str) or same == call.arguments:
            yield from _given(call.arguments)
            return
        for key, value in call.arguments.items():
            yield from _given({key: value}) if same.get(key) != value else ("",)


# An answer that is a number alone: `12.50`, of which the group is `12.5`, or `7.00`, of which it is `7`.
_NUMBER = re.compile(r"(-?\d+(?:\.\d*[1-9])?)(?:\.?0+)?")


def _with_purpose(one: Statement, answer: str, analysis: Analysis) -> Statement:
    """A call that answers with a number, with the sentence in which the assistant states that number.

    Without such a sentence it has less weight: it is a step that can be taken again. Other calls are left as they are.
    """
    value = _NUMBER.fullmatch(answer)
    if not value:
        return one
    if stated := _stated(value[1], one.event, analysis):
        return one._replace(text=f"{one.text}{analysis.words.colon}{analysis.words.quoted(stated)}")
    return one._replace(weight=one.weight * REST_FACTOR)


def _stated(value: str, number: int, analysis: Analysis) -> str:
    """The assistant's words with a number, after the event at this position and before the user's next message.

    An empty string where it does not state the number.
    """
    kept = (one for one in analysis.kept if one.record > analysis.events[number].record)
    own = takewhile(lambda event: event.kind is not EventKind.USER, (*analysis.events[number + 1 :], *kept))
    for event in (one for one in own if one.kind is EventKind.ASSISTANT):
        pieces = list(statements_of(event.text))
        for at, (piece, _, lead) in enumerate(pieces):
            if value in re.findall(r"\d+(?:\.\d+)?", piece.replace(",", "")):
                heading = lead.rpartition("\n")[2]
                # The pieces before it under the same lead say what the number is of.
                entry = [one for one, _, same in pieces[:at] if lead and same == lead] + [piece]
                return opening(": ".join(filter(None, (heading.rstrip(":"), " · ".join(entry)))), _MAX_STATED_CHARS)
    return ""


def _failure_of(result: Event) -> str:
    """The error that the result of a call to a service reports, or an empty string where it reports none."""
    text = result.text.strip()
    if text.startswith("{"):
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {}
        named = [answer[key] for key in _ERROR_KEYS if answer.get(key)]
        is_failed = False in (answer.get("ok"), answer.get("success")) or answer.get("status") in ("error", "failed")
        if named or is_failed:
            return next((one for one in (*named, answer.get("message")) if isinstance(one, str)), error_line(text))
    failed = result.is_error or ERROR_PATTERN.search(text.partition("\n")[0])
    return (error_line(text) or ELLIPSIS) if failed else ""


_NO_TOOL = pattern(r"\bNo such tool available\b|\b[Uu]nknown tool\b|\b[Tt]ool \S+ not found\b")
_ERROR_KEYS = ("error", "errors", "error_message", "fehler", "erreur", "错误", "エラー")


def _outcome(call: Event, result: Event | None, chars: int, words: FixedWords, *, error: str) -> str:
    """What came of a call: its error, or how its answer begins; an empty string where it has no result.

    Of a JSON object, its id, state and message as far as the call did not name them, else the fixed word for success.
    """
    if result is None:
        return ""
    if error:
        return f"{words.failed}{words.colon}{opening(error, chars)}"
    lines = result.text.strip().split("\n")
    line = next((one for one in lines if one.strip() and not one.startswith("#")), lines[0])
    if line[:1] not in "{[":
        return opening(line, _MAX_REPORTED_CHARS)
    own = next((one for _, _, one in nodes_of(result.text, {}) if isinstance(one, dict)), {})
    stated = [
        member_text(key, value)
        for key, value in own.items()
        if isinstance(value, str)
        and (STATE_KEY.search(key) or (ID.fullmatch(value) and not OWNER_KEY.match(key)))
        and value not in call.text
        and len(value) <= MAX_VALUE_CHARS
    ]
    return words.comma.join(filter(None, stated)) or words.ok


def _given(arguments: Mapping[str, Any] | str) -> Iterator[str]:
    """The arguments of a call, each as `member_text` states it; the entries of a list joined by semicolons.

    A list without entries is stated, too: `findings: []` says that nothing was found.
    """
    if isinstance(arguments, str):
        yield opening(arguments, _MAX_ARGUMENT_CHARS)
        return
    for key, value in arguments.items():
        parts = value if isinstance(value, list | tuple) else (value,)
        if not parts:
            yield f"{key}: []"
        elif text := "; ".join(
            filter(None, (member_text("" if number else key, part) for number, part in enumerate(parts)))
        ):
            yield opening(text, _MAX_ARGUMENT_CHARS * len(parts))


def _open_ones(spoken: Iterable[Statement], analysis: Analysis) -> Iterator[Statement]:
    """The statements without sentences that only lead to a list, and without questions that the user answered next.

    A question stays where the answer is a yes, which cannot be read without it, and where it names ids.
    """
    replies = [(message.record, message.text) for message in analysis.messages]
    for one in spoken:
        reply = next((text for record, text in replies if record > one.record), "")
        asks = all(map(asks_the_user, sentences(one.text)))
        is_agreed = begins_with_assent(reply) and one.text.endswith(QUESTION_MARKS)
        is_given = asks and reply and not is_agreed and not ids_of(one.text)
        if not (is_given or (one.form is StatementForm.SENTENCE and one.text.endswith(COLONS))):
            yield one


# What cannot be had, and will not be asked for again: `The tide cannot be moved`, `no berth is available`.
_DENIES = pattern(
    r"\b(?:(?:can|could|does|do|is|are|was|were|will|has|have) ?(?:not|n['’]t)|cannot|unable to|unfortunately"
    r"|no (?:\w+ ){1,4}(?:is |are )?(?:available|found|possible|left)|non-?refundable"
    r"|not (?:eligible|allowed|permitted))\b"
    r"|无法|不能|不可|できません",
    re.IGNORECASE,
)


def dialogue_statements(analysis: Analysis, spoken: Iterable[Statement], chars: int) -> Iterator[Statement]:
    """The candidates for a summary of a dialogue of about ``chars`` characters.

    They are the statements ``spoken`` by the assistant, the user's words, and calls with their answers.
    """
    own = (one for one in spoken if one.event < 0 or one.label in ("", analysis.words.thought))
    is_service = any(map(is_service_call, analysis.events))
    own = (one._replace(weight=one.weight * DENIED_FACTOR) if _DENIES.search(one.text) else one for one in own)
    yield from whole_lists(_open_ones(own, analysis) if is_service else own, analysis, chars)
    places = {event.record: number for number, event in enumerate(analysis.events) if event.kind is EventKind.USER}
    called = called_with(analysis.events)
    for message in (one for one in analysis.messages if is_in_history(one, analysis)):
        number = places[message.record]
        age = 1.0 + RECENCY_OF_CHAT * number / len(analysis.events)
        weight = age * (GIVING_FACTOR if names(message.text) else USER_FACTOR)
        if gives_only(message.text, called):
            weight *= REST_FACTOR
        text = message.text
        if len(text) <= chars * WHOLE_LIST_RATIO:
            yield Statement(one_line(text), number, 0, record=message.record, weight=weight)
            continue
        for place, (piece, form, _) in enumerate(statements_of(text)):
            if not (is_noise(piece) or is_courtesy(piece)):
                yield Statement(piece, number, place, form, record=message.record, weight=weight)
    yield from call_statements(analysis, chars, with_lookups=True)
