"""Services: what calls of tools other than files and shell did and showed, and what a dialogue is chosen from."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from compactor_cli.digest.candidates import RECENCY
from compactor_cli.digest.choice import Choice
from compactor_cli.digest.commands import ERROR_PATTERN, error_line
from compactor_cli.digest.events import Event, EventKind, is_lookup, is_service_call, parameters, results_of
from compactor_cli.digest.language import FixedWords, names, raw_terms
from compactor_cli.digest.statements import (
    ELLIPSIS,
    Statement,
    StatementForm,
    TokenCache,
    is_courtesy,
    is_noise,
    lead_of,
    one_line,
    opening,
    records_of,
    statements_of,
)
from compactor_cli.digest.wants import is_in_history
from compactor_cli.model.summary import Item

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

# The arguments of a call are shown in as many characters as leave half of the room to other texts, within these.
_SIZES_CHARS = (80, 400)
_CHARS_PER_TOKEN = 3
# What an object of an answer is worth against a sentence.
OBJECT_FACTOR = 3.0
_CALL_PLACE = -2
_MAX_FLOAT_CHARS = 10
_MAX_ARGUMENT_CHARS, _MAX_REPORTED_CHARS = 60, 100
_MAX_VALUE_CHARS = 48
_MAX_LINES = 200
_MAX_BRIEF = 6
_MAX_OBJECT_CHARS, _MAX_LIST_CHARS = 240, 400
# A smaller number is said by chance.
_SMALL = 100
# What a sentence of the user is worth against one of the assistant, and one that gives a name or a number.
USER_FACTOR, GIVING_FACTOR = 1.8, 2.4
# What members of an object are worth of which nobody speaks; more of them may matter where nobody has spoken since.
REST_FACTOR, NEW_FACTOR = 0.3, 1.0
# A message of the user, and a list, that takes no larger share of the room is quoted whole or not at all.
WHOLE_RATIO = 1 / 3
# A list in an answer that takes no larger share is shown whole, and what a row is worth that nobody speaks of.
LIST_RATIO, UNSAID_FACTOR = 0.1, 0.4


def call_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache, *, with_lookups: bool) -> list[Item]:
    """What calls of other tools than files and shell changed and showed, an item a call, newest first.

    ``name(arguments) → outcome · object · object``: the objects that hold most of what the conversation speaks of, or
    will need again, each as it was shown last. A call that failed is left out where a later one of its tool went well.
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
    ]


def call_text(group: Sequence[Statement], words: FixedWords) -> str:
    """What was chosen of a call, as one text: members after their object, objects after what they stand under.

    Where rows of a list are left out, it ends with how many.
    """
    text, shown_texts, place = "", list[str](), group[0].place
    rows = Counter((one.lead, one.siblings) for one in group if one.siblings)
    ends = {(one.lead, one.siblings): one.place for one in group}
    left_out = ""
    for one in group:
        is_more = one.place % 2 == 1  # members of the object that is named last
        if not is_more:
            text, left_out = text + left_out, ""
        leads = one.lead.split("\n") if one.lead else []
        # A long lead is cut.
        starts = [lead.removesuffix(ELLIPSIS).rstrip() for lead in leads]
        fresh = (n for n, start in enumerate(starts) if not any(before.startswith(start) for before in shown_texts))
        new = leads[next(fresh, len(leads)) :]
        gap = f" {ELLIPSIS} " if one.place // 2 > place // 2 + 1 and not text.endswith(words.more) else " · "
        if new:
            text += f"{gap}{': '.join(new)}"
        text += f"{', ' if is_more else ': ' if new else gap}{one.text}"
        shown_texts, place = [*shown_texts, *new, one.text], one.place + one.span - 1
        hidden = one.siblings - rows[one.lead, one.siblings]
        if hidden > 0 and one.place == ends[one.lead, one.siblings]:
            left_out = f" {ELLIPSIS} {hidden} {words.more}"
    joint = "" if group[0].place == _CALL_PLACE else ": "
    return f"{group[0].label}{joint}{f'{text}{left_out}'.removeprefix(' · ')}"


def call_statements(analysis: Analysis, chars: int, *, with_lookups: bool) -> Iterator[Statement]:
    """Of every call what it did, and of every answer the objects that no newer one shows; newest first."""
    events, words = analysis.events, analysis.words
    results = results_of(events)
    calls = [n for n, e in enumerate(events) if is_service_call(e) and (with_lookups or not is_lookup(e.name))]
    acted = [n for n in calls if not is_lookup(events[n].name)]
    last_words = max((*acted, *(n for n, e in enumerate(events) if e.kind is EventKind.ASSISTANT)), default=-1)
    mentions, most_chars = _Mentions(analysis), min(int(chars * LIST_RATIO), _MAX_LIST_CHARS)
    chars = min(max(chars // max(1, 2 * len(acted)), _SIZES_CHARS[0]), _SIZES_CHARS[1])
    known: set[str] = set()
    records: dict[str, int] = {}
    went_well: set[str] = set()
    for number in reversed(calls):
        call, result = events[number], results.get(number)
        acts, answer = not is_lookup(call.name), result.text.strip() if result else ""
        failed = result is not None and (result.is_error or bool(ERROR_PATTERN.search(answer.partition("\n")[0])))
        if (result and result.is_refusal) or (failed and call.name in went_well):
            continue
        if result and not failed:
            went_well.add(call.name)
        age = 1.0 + number / len(events)
        form = StatementForm.ITEM if acts else StatementForm.OUTPUT
        base = Statement("", number, _CALL_PLACE, form, "", call.name, (result or call).record, 0, age)
        outcome = ""
        # A line that tells by itself is shown with its call.
        if acts or failed or (3 < len(answer) <= _MAX_REPORTED_CHARS and "\n" not in answer and answer[0] not in "{["):
            outcome = _outcome(call, result, chars, words, failed=failed)
            given = words.comma.join(_fitting(_given(call.arguments), chars))
            text = f"({given}) → {outcome}".removesuffix(" → ")
            # Of a look-up made twice the newest answer stands.
            key = f"{call.name}{text if acts else given}"
            if key not in known:
                yield _with_purpose(base._replace(text=text), answer, analysis)
            known.add(key)
            if not acts:
                continue
        if result is None or failed:
            continue
        given = ", ".join(v for _, v in parameters(call.arguments) if 0 < len(v) <= _MAX_VALUE_CHARS and "\n" not in v)
        label = call.name if acts else f"{call.name}({given})"
        own_records: dict[str, int] = {}
        shown_before = f"{call.text} {outcome}"
        rest_weight = age * (NEW_FACTOR if number >= last_words else REST_FACTOR) * analysis.is_dialogue
        nodes = list(_nodes(result.text, records, own_records, shown_before))
        for row in _rows(nodes, mentions, shown_before, most_chars):
            lead = nodes[row.place][0]
            one = base._replace(place=2 * row.place, form=StatementForm.OBJECT, label=label, lead=lead)
            if row.used and f"{lead}: {row.used}" not in known:
                known.add(f"{lead}: {row.used}")
                weight = age * OBJECT_FACTOR * row.weight
                yield one._replace(text=row.used, span=row.span, siblings=row.siblings, weight=weight)
            if row.other and rest_weight:
                lead = "\n".join(filter(None, (lead, lead_of(row.used))))
                place = one.place + 1
                yield one._replace(text=row.other, place=place, form=StatementForm.ITEM, lead=lead, weight=rest_weight)
        records |= own_records


_NUMBER = re.compile(r"(-?\d+(?:\.\d*[1-9])?)(?:\.0+)?")


def _with_purpose(one: Statement, answer: str, analysis: Analysis) -> Statement:
    """A calculation with what it is for; one that nobody states is a step that can be taken again."""
    value = _NUMBER.fullmatch(answer)
    if not value:
        return one
    if stated := _stated(value[1], one.event, analysis):
        return one._replace(text=f"{one.text}{analysis.words.colon}{analysis.words.quoted(stated)}")
    return one._replace(weight=one.weight * REST_FACTOR)


def _stated(value: str, number: int, analysis: Analysis) -> str:
    """How the assistant states a number that a call gave before the user's next message; empty where it does not."""
    later = (
        *analysis.events[number + 1 :],
        *(one for one in analysis.kept if one.record > analysis.events[number].record),
    )
    own = takewhile(lambda event: event.kind is not EventKind.USER, later)
    for event in (one for one in own if one.kind is EventKind.ASSISTANT):
        for piece, _, lead in statements_of(event.text):
            if value in re.findall(r"\d+(?:\.\d+)?", piece.replace(",", "")):
                heading = lead.rpartition("\n")[2]
                return opening(f"{heading.rstrip(':')}: {piece}" if heading else piece, _MAX_REPORTED_CHARS)
    return ""


def _outcome(call: Event, result: Event | None, chars: int, words: FixedWords, *, failed: bool) -> str:
    """What came of a call: how its answer begins, of an object its id, its state and its message."""
    if result is None:
        return ""
    if failed:
        return f"{words.failed}{words.colon}{opening(error_line(result.text), chars)}"
    line = result.text.strip().partition("\n")[0]
    if line[:1] not in "{[":
        return opening(line, _MAX_REPORTED_CHARS)
    own = next((one for _, _, one in _nodes(result.text, {}) if isinstance(one, dict)), {})
    stated = [
        _member(key, value)
        for key, value in own.items()
        if isinstance(value, str)
        and (_STATE_KEY.search(key) or (_ID.fullmatch(value) and not _OWNER_KEY.match(key)))
        and value not in call.text
        and len(value) <= _MAX_VALUE_CHARS
    ]
    return words.comma.join(filter(None, stated)) or words.ok


def _given(arguments: Mapping[str, Any] | str) -> Iterator[str]:
    """The arguments of a call, each as ``key value``; of a list of objects each object by its values."""
    if isinstance(arguments, str):
        yield opening(arguments, _MAX_ARGUMENT_CHARS)
        return
    for key, value in arguments.items():
        parts = value if isinstance(value, list | tuple) else (value,)
        if text := "; ".join(filter(None, (_member("" if number else key, part) for number, part in enumerate(parts)))):
            yield opening(text, _MAX_ARGUMENT_CHARS * len(parts))


# Keys of what an object is known by: they head what is within it, and are enough of one that nobody speaks of. Of
# one that somebody means, those of what it costs and how it differs from others stand first, too.
_HEAD_KEY = re.compile(r"(?:^|_)(?:name|title|status)$")
_TELLING_KEY = re.compile(rf"{_HEAD_KEY.pattern}|(?:^|_)(?:ids?|number|amount|total|price|cost|refund|reason)$")
_STATE_KEY = re.compile(r"(?:^|_)(?:status|message|state)$|^(?!user|customer)\w+_id$")
# A name that was given to something new, in any language: letters and digits.
_ID, _OWNER_KEY = re.compile(r"#?(?=.*\d)(?=.*[A-Za-z])[\w-]{4,24}"), re.compile(r"user|customer|owner")
_ID_KEY = re.compile(r"(?:^|_)(?:id|number)$")


def _fitting(parts: Iterable[str], chars: int) -> list[str]:
    """The parts that fit, the shortest ones first, in order; an ellipsis where one is left out."""
    found = list(parts)
    taken: set[int] = set()
    for place in sorted(range(len(found)), key=lambda place: len(found[place])):
        if len(found[place]) <= chars:
            taken.add(place)
            chars -= len(found[place])
    return [part for place, part in enumerate(found) if place in taken] + [ELLIPSIS] * (len(taken) < len(found))


# An object of an answer: what it stands under, the key it has there, and its own members, a list of scalars, or a line.
_Node = tuple[str, str, Any]


def _nodes(
    text: str, newer: Mapping[str, int], found: dict[str, int] | None = None, given: str = ""
) -> Iterator[_Node]:
    """The objects of a JSON answer, the lines of any other; without those of the records that a ``newer`` one shows.

    ``found`` takes the records of this answer: by its id, how many members each has. Objects within another stand under
    what that one is known by, unless it is ``given``.
    """
    body = text.strip()
    if body[:1] in "{[":
        try:
            yield from _inner(json.loads(body), "", "", newer, {} if found is None else found, given)
            return
        except ValueError:
            pass
    for line in body.split("\n")[:_MAX_LINES]:
        if 3 < len(line.strip()) <= _MAX_OBJECT_CHARS:
            yield "", "", line.strip()


def _inner(
    value: Any, name: str, above: str, newer: Mapping[str, int], found: dict[str, int], given: str
) -> Iterator[_Node]:
    if isinstance(value, dict):
        key, first = next(iter(value.items()), ("", None))
        if isinstance(first, str) and _ID_KEY.search(key):
            if newer.get(first, 0) >= len(value):
                return
            found[first] = max(found.get(first, 0), len(value))
        if own := {key: item for key, item in value.items() if _is_brief(item) and str(item) != name}:
            yield above, name, own
        heads = (key for n, key in enumerate(own) if _is_head(key, is_first=not n) and str(own[key]) not in given)
        head = ", ".join(filter(None, (_member(key, own[key]) for key in heads)))
        above = f"{name}: {head}" if name and head else head or above
        for key, item in value.items():
            if not _is_brief(item):
                yield from _inner(item, key, above, newer, found, given)
    elif isinstance(value, list) and value and not all(map(_is_scalar, value)):
        for item in value:
            yield from _inner(item, name, above, newer, found, given)
    elif name or value:
        yield above, name, value


class _Mentions:
    """What somebody speaks of or uses, after the summary too: what an answer says of that is needed."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self._later = frozenset(chain.from_iterable(raw_terms(event.text) for event in analysis.kept if event.text))

    def __contains__(self, member: tuple[str, Any]) -> bool:
        """Whether user or assistant say a value, or a call has it.

        Of what is so or not, whether they name the key; of a small number, whether both.
        """
        key, value = member
        if isinstance(value, Mapping):
            return any((name, item) in self for name, item in value.items())
        if isinstance(value, list):
            return any((key, item) in self for item in value)
        if isinstance(value, bool) or value in ("yes", "no"):
            return self.says(key.replace("_", " "))
        text = _scalar(value, self.analysis)
        row = self.analysis.table.atoms.get(text)
        if row is not None and self.analysis.table.columns["calls"][row] > 0:
            return True
        is_small = isinstance(value, int) and value < _SMALL
        return self.says(f"{key.replace('_', ' ')} {text}" if is_small else text)

    def says(self, text: str) -> bool:
        """Whether all words of a text were said."""
        found, times = raw_terms(text), self.analysis.table.spoken.times
        return bool(found) and all(times.get(word) or word in self._later for word in found)


class _Row(NamedTuple):
    """What is shown of an object, or of the rows of a short list, and the rest."""

    place: int
    used: str
    other: str = ""
    span: int = 1
    siblings: int = 0
    weight: float = 1.0


def _lists(nodes: Sequence[_Node]) -> Iterable[list[int]]:
    """The places of the nodes, those of the rows of one list together."""
    found: dict[tuple[str, Hashable], list[int]] = {}
    for place, (lead, _, value) in enumerate(nodes):
        found.setdefault((lead, frozenset(value) if isinstance(value, dict) else place), []).append(place)
    return found.values()


def _rows(nodes: Sequence[_Node], mentions: _Mentions, given: str, chars: int) -> Iterator[_Row]:
    """What is shown of an answer: a short list whole, of a longer one each row by what is said of it."""
    for places in _lists(nodes):
        if len(places) == 1:
            yield _Row(places[0], *_shown(*nodes[places[0]][1:], mentions, given))
            continue
        if (whole := _whole(nodes, places, mentions.analysis)) and len(whole) <= chars:
            yield _Row(places[0], whole, span=2 * len(places) - 1)
            continue
        spoken = [_spoken_of(nodes[place][2], mentions) for place in places]
        common = frozenset.intersection(*spoken)
        most = max(1, *(len(one - common) for one in spoken))
        for place, one in zip(places, spoken, strict=True):
            weight = UNSAID_FACTOR + (1 - UNSAID_FACTOR) * len(one - common) / most
            yield _Row(place, *_shown(*nodes[place][1:], mentions, given), siblings=len(places), weight=weight)


def _spoken_of(row: Mapping[str, Any], mentions: _Mentions) -> frozenset[Hashable]:
    """The members of a row that somebody speaks of."""
    members = chain.from_iterable(one.items() if isinstance(one, Mapping) else [(key, one)] for key, one in row.items())
    return frozenset(member for member in members if member in mentions)


def _whole(nodes: Sequence[_Node], places: Sequence[int], analysis: Analysis) -> str:
    """The rows of a list that stand next to each other as one text, with their keys at the first; empty for others."""
    if places[-1] - places[0] >= len(places):
        return ""
    texts = list[str]()
    for place in places:
        _, name, value = nodes[place]
        members = (_member(key if not texts else "", item, analysis) for key, item in value.items())
        text = ", ".join(filter(None, members))
        texts.append(f"{name}: {text}" if name and (not texts or name != nodes[places[0]][1]) else text)
    return " · ".join(texts)


def _shown(name: str, value: Any, mentions: _Mentions, given: str) -> tuple[str, str]:
    """An object by what it is known by and what somebody speaks of or uses, then its other members.

    What is ``given`` is left out. A list, of scalars or of objects by their names, is shown whole.
    """
    if entries := _entries(value, given):
        text = _counted(entries, _MAX_LIST_CHARS, mentions.analysis.words)
        text = f"{name}: {text}" if name else text
        return (text, "") if (name, value) in mentions else ("", text)
    used: list[str] = []
    other: list[str] = []
    if isinstance(value, dict):
        members = [(key, item) for key, item in value.items() if not _is_in(item, given)]
        # Of what has a name that nobody speaks of the name tells enough.
        is_meant = all(member in mentions for member in members if member[0] in ("name", "title"))
        for key, item in sorted(members, key=lambda member: not _is_head(member[0], is_first=member is members[0])):
            is_telling = (_TELLING_KEY if is_meant else _HEAD_KEY).search(key) or (key, item) in mentions
            # Of numbers by name (prices, seats) those that are spoken of.
            are_numbers = isinstance(item, Mapping) and all(type(one) in (int, float) for one in item.values())
            if are_numbers and (named := {one: item[one] for one in item if mentions.says(one.replace("_", " "))}):
                used.append(_member(key, named))
                item = {one: number for one, number in item.items() if one not in named}
                is_telling = False
            if item != {}:
                (used if is_telling else other).append(_member(key, item, mentions.analysis))
    elif not _is_in(value, given):
        (used if (name, value) in mentions else other).append(_scalar(value))
    return _object(name, used), _object(name if not any(used) else "", other)


def _entries(value: Any, given: str) -> list[str]:
    """The entries of a list of scalars, or of objects by their names: a key of words stands with the first of them."""
    if isinstance(value, dict) and all(isinstance(one, Mapping) for one in value.values()):
        texts, known = list[str](), set[str]()
        for name, own in value.items():
            members = ((key, one) for key, one in own.items() if not _is_in(one, name))
            parts = (_member("" if key in known and isinstance(one, str) else key, one) for key, one in members)
            texts.append(" ".join(filter(None, (name, *parts))))
            known.update(own)
        return texts
    listed = value if isinstance(value, list) else ()
    return [text for one in listed if not _is_in(one, given) and (text := _member("", one))]


def _is_in(value: Any, text: str) -> bool:
    """Whether a text says a value."""
    return isinstance(value, str) and value in text


def _counted(parts: Sequence[str], chars: int, words: FixedWords) -> str:
    """The first parts that fit, then how many more there are."""
    fitting = next((n for n in range(len(parts), 0, -1) if sum(map(len, parts[:n])) + 2 * n <= chars), 0)
    rest = len(parts) - fitting
    return ", ".join(parts[:fitting]) + (f" {ELLIPSIS} {rest} {words.more}" if rest else "")


def _is_head(key: str, *, is_first: bool) -> bool:
    return bool(_HEAD_KEY.search(key) or (is_first and _ID_KEY.search(key) and not _OWNER_KEY.match(key)))


def _object(name: str, members: Iterable[str]) -> str:
    # Whole members, as many as fit: half an id would be another one.
    parts = _fitting((opening(one, _MAX_OBJECT_CHARS - 2) for one in members if one), _MAX_OBJECT_CHARS)
    text = ", ".join(parts).removeprefix(ELLIPSIS)
    return f"{name}: {text}" if name and text else text


def _is_brief(value: Any) -> bool:
    """Whether a value stands in its object's line: a scalar, or a small object of scalars."""
    if isinstance(value, dict):
        return len(value) <= _MAX_BRIEF and all(map(_is_scalar, value.values()))
    return _is_scalar(value)


def _member(key: str, value: Any, analysis: Analysis | None = None) -> str:
    """A member of an object: its value alone where that tells by itself what it is; nothing for an empty one."""
    if isinstance(value, Mapping):
        own = (_member(name, item, analysis) for name, item in value.items() if not _is_in(item, key))
        return f"{key} {' '.join(filter(None, own))}".strip()
    if value is None or value == "":
        return ""
    text = _scalar(value, analysis)
    is_plain = key == "date" or (isinstance(value, str) and _SPEAKS.search(text) is not None)
    return text if is_plain else f"{key} {text}".strip()


# Letters next to digits or other letters of a name; a bare number, date or short word needs its key.
_SPEAKS = re.compile(r"[A-Za-z]{2}.*[\d_@ ]|\d.*[A-Za-z]{2}|^#?[A-Z]\d{3}|^[A-Z][a-z]+$|^[a-z]{6,}|[^\x00-\x7f]{2}")


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, (Mapping, list, tuple))


def _scalar(value: Any, analysis: Analysis | None = None) -> str:
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    if analysis and isinstance(value, float) and len(text) > _MAX_FLOAT_CHARS:
        # 35.52999999999997 is spoken of as 35.53.
        brief = f"{value:.2f}"
        return brief if all(map(analysis.table.spoken.times.get, raw_terms(brief))) else text
    return text


def dialogue_statements(analysis: Analysis, spoken: Iterable[Statement], chars: int) -> Iterator[Statement]:
    """What a summary of a dialogue is chosen from: ``spoken`` by the assistant, the user's words, calls and answers."""
    yield from whole_lists((one for one in spoken if one.event < 0 or not one.label), analysis, chars)
    places = {event.record: number for number, event in enumerate(analysis.events) if event.kind is EventKind.USER}
    for message in (one for one in analysis.messages if is_in_history(one, analysis)):
        number = places[message.record]
        age = 1.0 + RECENCY * number / len(analysis.events)
        weight = age * (GIVING_FACTOR if names(message.text) else USER_FACTOR)
        if len(message.text) <= chars * WHOLE_RATIO:
            yield Statement(one_line(message.text), number, 0, record=message.record, weight=weight)
            continue
        for place, (piece, form, _) in enumerate(statements_of(message.text)):
            if not (is_noise(piece) or is_courtesy(piece)):
                yield Statement(piece, number, place, form, record=message.record, weight=weight)
    yield from call_statements(analysis, chars, with_lookups=True)


def whole_lists(spoken: Iterable[Statement], analysis: Analysis, chars: int) -> Iterator[Statement]:
    """The statements; a list, or at least an entry with what stands below it, as one where it takes no large share."""
    most = chars * WHOLE_RATIO

    def is_entry(one: Statement) -> bool:
        # What became of an entry is said of it alone.
        has_marks = one.event in analysis.taken_back or one.event in analysis.dealt_with
        return one.form is StatementForm.ITEM and not has_marks

    for (_, are_entries), group in groupby(spoken, key=lambda one: (one.event, is_entry(one))):
        entries: list[list[Statement]] = []
        for one in group:
            is_below = are_entries and entries and one.lead.endswith(tuple(lead_of(e.text) for e in entries[-1]))
            entries = [*entries[:-1], [*entries[-1], one]] if is_below else [*entries, [one]]
        for _, siblings in groupby(entries, key=lambda entry: entry[0].lead):
            lists = list(siblings)
            whole = list(chain.from_iterable(lists))
            fitting = thinned(whole, analysis, lambda shown: _length(shown) <= most) if are_entries else []
            for part in [fitting] if fitting else lists:
                yield from [_as_one(part)] if are_entries and _length(part) <= most else part


_FIELD = re.compile(r"\W*([^\W\d][^:\n]{1,40}): +\S")


def thinned(
    pieces: Sequence[Statement], analysis: Analysis, fits: Callable[[Sequence[Statement]], bool]
) -> Sequence[Statement]:
    """The statements without those fields of all entries that tell least, as many as it takes; none where all do not.

    A field is what stands before a colon more than once: of every flight its number, its times, its price.
    """
    if fits(pieces):
        return pieces
    leading = {one.lead.rpartition("\n")[2] for one in pieces}
    fields = [
        found[1] if (found := _FIELD.match(one.text)) and one.lead and lead_of(one.text) not in leading else ""
        for one in pieces
    ]
    worth: dict[str, list[float]] = {}
    for field, one in zip(fields, pieces, strict=True):
        value = sum(analysis.worth.facts(one.text.partition(":")[2]).values()) / (len(one.text) + 1)
        key = field.lower().replace(" ", "_")
        worth.setdefault(field, []).append(value + sum(bool(one.search(key)) for one in (_TELLING_KEY, _ID_KEY)))
    repeated = (field for field, values in worth.items() if field and len(values) > 1)
    ranked = sorted(repeated, key=lambda field: sum(worth[field]) / len(worth[field]))
    for number in range(len(ranked)):
        left = [(one, own) for one, own in zip(pieces, fields, strict=True) if own not in ranked[:number]]
        # A value that says what it is needs no key.
        bare = [one._replace(text=_bare(one.text)) if own in ranked else one for one, own in left]
        for tried in ([one for one, _ in left], bare):
            if fits(tried):
                return tried
    return []


def _bare(text: str) -> str:
    """The value of a field, with its key where that alone says what it is."""
    value = text.partition(": ")[2]
    return value if _VALUE.fullmatch(value) else text


_VALUE = re.compile(r"[$€£¥]\s?[\d.,]+|#?(?=\S*[A-Z])(?=\S*\d)[\w-]{4,}")


def _length(entries: Iterable[Statement]) -> int:
    return sum(len(one.text) + 3 for one in entries)


_ENDS = (".", "!", "?", '"', ")")


def _as_one(entries: Sequence[Statement]) -> Statement:
    """Entries of a list as one statement under what leads the first."""
    text = entries[0].text
    for before, one in pairwise(entries):
        is_below = one.lead.endswith(lead_of(before.text))
        joint = " · " if not is_below else " " if before.text.endswith(_ENDS) else ": "
        text += f"{joint}{one.text}"
    span = entries[-1].place - entries[0].place + 1
    return entries[0]._replace(text=text, span=span, weight=max(one.weight for one in entries))
