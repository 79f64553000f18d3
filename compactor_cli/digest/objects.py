"""Objects: what services answered, each object by the members that identify it or that somebody speaks of or uses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from compactor_cli.digest.events import Event, EventKind, is_service_call
from compactor_cli.digest.language import FixedWords, raw_terms
from compactor_cli.digest.texts import ELLIPSIS, opening
from compactor_cli.digest.tools import is_lookup, parameters

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

_MAX_FLOAT_CHARS = 10
_MAX_LINES = 200
_MAX_BRIEF = 6
_MAX_OBJECT_CHARS, MAX_LIST_CHARS = 240, 400
# A number below this may stand in a text by chance.
_SMALL = 100
# Weight of a row of a longer list that nobody speaks of, relative to the row spoken of most.
UNSAID_FACTOR = 0.4

# Keys of the members that identify an object: they head the objects within it, and are enough of an object that nobody
# speaks of. Of one that somebody means, members with a `TELLING_KEY` (ids, numbers, costs, reasons) come first, too.
_HEAD_KEY = re.compile(r"(?:^|_)(?:name|title|status)$")
TELLING_KEY = re.compile(rf"{_HEAD_KEY.pattern}|(?:^|_)(?:ids?|number|amount|total|price|cost|refund|reason)$")
STATE_KEY = re.compile(r"(?:^|_)(?:status|message|state)$|^(?!user|customer)\w+_id$")
# An id that was given to something new, letters and digits in any language: `#T4071`, `tide-04`.
ID, OWNER_KEY = re.compile(r"#?(?=.*\d)(?=.*[A-Za-z])[\w-]{4,24}"), re.compile(r"user|customer|owner")
ID_KEY = re.compile(r"(?:^|_)(?:id|number)$")


def fitting(parts: Iterable[str], chars: int) -> list[str]:
    """As many parts as fit into ``chars``, the shortest taken first, in order.

    An ellipsis comes last where a part is left out or empty.
    """
    found = list(parts)
    taken: set[int] = set()
    for place in sorted(filter(found.__getitem__, range(len(found))), key=lambda place: len(found[place])):
        if len(found[place]) <= chars:
            taken.add(place)
            chars -= len(found[place])
    return [part for place, part in enumerate(found) if place in taken] + [ELLIPSIS] * (len(taken) < len(found))


# An object of an answer: what it stands under, its key there, and its own members, a list of scalars, or a line.
_Node = tuple[str, str, Any]


def nodes_of(
    text: str, newer: Mapping[str, int], found: dict[str, int] | None = None, given: str = ""
) -> Iterator[_Node]:
    """The objects of a JSON answer, or the lines of any other, in order.

    ``newer``: how many members newer answers show of an object, by id; one with no more members is left out with all
    within it. ``found`` takes the same numbers for this answer. Objects within another stand under the members that
    identify that one, except for values that stand in ``given``.
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
    """The objects in a value under the key ``name``, which stands under ``above``; the rest as in `nodes_of`."""
    if isinstance(value, dict):
        key, first = next(iter(value.items()), ("", None))
        if isinstance(first, str) and ID_KEY.search(key):
            if newer.get(first, 0) >= len(value):
                return
            found[first] = max(found.get(first, 0), len(value))
        if own := {key: item for key, item in value.items() if _is_brief(item) and str(item) != name}:
            yield above, name, own
        heads = (key for n, key in enumerate(own) if _is_head(key, is_first=not n) and str(own[key]) not in given)
        head = ", ".join(filter(None, (member_text(key, own[key]) for key in heads)))
        above = f"{name}: {head}" if name and head else head or above
        for key, item in value.items():
            if not _is_brief(item):
                yield from _inner(item, key, above, newer, found, given)
    elif isinstance(value, list) and value and not all(map(_is_scalar, value)):
        for item in value:
            yield from _inner(item, name, _together(item) or above, newer, found, given)
    elif name or value:
        yield above, name, value


def _together(value: Any) -> str:
    """The first members of the objects of a list in a list, joined: they are one thing, as the legs of a journey.

    An empty string for any other value.
    """
    if not (isinstance(value, list) and len(value) > 1 and all(isinstance(item, dict) and item for item in value)):
        return ""
    return " + ".join(str(first) for item in value if _is_scalar(first := next(iter(item.values()))))


class Mentions:
    """What the messages speak of or calls use, in the kept records too: members of answers about that are needed."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self._later = frozenset(chain.from_iterable(raw_terms(event.text) for event in analysis.kept if event.text))

    def __contains__(self, member: tuple[str, Any]) -> bool:
        """Whether the user or the assistant names the value of a (key, value) pair, or a call has it.

        Of a yes-or-no value they have to name the key, of a small number both. Of a list or an object one of its
        entries is enough.
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
        """Whether a text has words and all of them stand in the messages, kept ones included."""
        found, times = raw_terms(text), self.analysis.table.spoken.times
        return bool(found) and all(times.get(word) or word in self._later for word in found)


# Weight of a thing that nobody means, where somebody means another one of its kind.
UNMEANT_FACTOR = 0.3
# An id in a text, letters with digits or many digits: `T4071`, `tide-04`, `80123456`.
_GIVEN_ID = re.compile(r"(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{4,24}|\d{5,24}")


def ids_of(text: str) -> frozenset[str]:
    """The ids that a text names."""
    return frozenset(_GIVEN_ID.findall(text))


class Meant:
    """The ids that somebody goes on with in a dialogue, in the kept records too.

    The user means the ids that he names or points at, an acting call those that it is called with.
    """

    def __init__(self, analysis: Analysis) -> None:
        self._used: dict[str, int] = {}  # the last record in which the user or an acting call means each id
        self._named: dict[str, int] = {}  # the same, the assistant's messages included
        pointed = {message.record: message.points_at for message in analysis.messages}
        for event in chain(analysis.events, analysis.kept) if analysis.is_dialogue else ():
            acts = is_service_call(event) and not is_lookup(event.name)
            is_used = acts or event.kind is EventKind.USER
            if is_used or event.kind is EventKind.ASSISTANT:
                found = ids_of(f"{event.text} {pointed.get(event.record, '')}")
                self._named.update(dict.fromkeys(found, event.record))
                self._used.update(dict.fromkeys(found, event.record) if is_used else {})

    def weights(self, texts: Sequence[str], record: int) -> list[float]:
        """The weight of each of several things, each given as a text.

        It is `UNMEANT_FACTOR` where, after this record, ids of others are meant and none of its own, else 1. Ids that
        all of them share do not count.
        """
        if not self._used:
            return [1.0] * len(texts)
        found = [ids_of(text) for text in texts]
        common = frozenset.intersection(*found) if found else frozenset()
        return self._weights((ids - common, record) for ids in found)

    def looked_up(self, calls: Iterable[Event]) -> dict[int, float]:
        """The weight of each of several look-ups by one tool, by the record of its call; those without ids left out.

        It is `UNMEANT_FACTOR` where nobody, after the call, names an id that it was called with, while that is done for
        another of the calls; else 1.
        """
        asked = [
            (call.record, frozenset().union(*(ids_of(v) for _, v in parameters(call.arguments)))) for call in calls
        ]
        named = [(record, ids) for record, ids in asked if ids]
        return dict(zip((r for r, _ in named), self._weights(((i, r) for r, i in named), by_anybody=True), strict=True))

    def _weights(self, things: Iterable[tuple[frozenset[str], int]], *, by_anybody: bool = False) -> list[float]:
        last = (self._named if by_anybody else self._used).get
        are_meant = [any(last(one, -1) > record for one in ids) for ids, record in things]
        return [1.0 if is_meant or not any(are_meant) else UNMEANT_FACTOR for is_meant in are_meant]


class _Row(NamedTuple):
    """What is shown of an object, or of all rows of a short list."""

    place: int  # position of the object, or of the list's first row, among the nodes
    used: str  # the members that identify it or that somebody speaks of; of a short list all rows
    other: str = ""  # its other members
    span: int = 1  # as in `Statement`: more than 1 for a list as a whole
    siblings: int = 0  # how many rows its list has, itself included; 0 outside of a list
    weight: float = 1.0  # relative to other objects


def _lists(nodes: Sequence[_Node]) -> Iterable[list[int]]:
    """The positions of the nodes in groups: objects with the same keys under the same lead are rows of one list."""
    found: dict[tuple[str, Hashable], list[int]] = {}
    for place, (lead, _, value) in enumerate(nodes):
        found.setdefault((lead, frozenset(value) if isinstance(value, dict) else place), []).append(place)
    return found.values()


def rows_of(
    nodes: Sequence[_Node], mentions: Mentions, given: str, chars: int, weigh: Callable[[Sequence[str]], list[float]]
) -> Iterator[_Row]:
    """What is shown of an answer: a list of at most ``chars`` whole, of a longer one each row by what describes it.

    ``weigh``: gives the weights of the rows of a list by whether they are meant (see `Meant.weights`).
    """
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
        meant = weigh([f"{nodes[place][2]}" for place in places])
        for place, one, factor in zip(places, spoken, meant, strict=True):
            weight = factor * (UNSAID_FACTOR + (1 - UNSAID_FACTOR) * len(one - common) / most)
            yield _Row(place, *_shown(*nodes[place][1:], mentions, given), siblings=len(places), weight=weight)


def _spoken_of(row: Mapping[str, Any], mentions: Mentions) -> frozenset[Hashable]:
    """The members of a row that somebody speaks of."""
    members = chain.from_iterable(one.items() if isinstance(one, Mapping) else [(key, one)] for key, one in row.items())
    return frozenset(member for member in members if member in mentions)


def _whole(nodes: Sequence[_Node], places: Sequence[int], analysis: Analysis) -> str:
    """The rows of a list as one text, with their keys in the first row only.

    An empty string where the rows do not stand next to each other.
    """
    if places[-1] - places[0] >= len(places):
        return ""
    texts = list[str]()
    for place in places:
        _, name, value = nodes[place]
        members = (member_text(key if not texts else "", item, analysis) for key, item in value.items())
        text = ", ".join(filter(None, members))
        texts.append(f"{name}: {text}" if name and (not texts or name != nodes[places[0]][1]) else text)
    return " · ".join(texts)


def _shown(name: str, value: Any, mentions: Mentions, given: str) -> tuple[str, str]:
    """Two texts: an object by the members that identify it or that somebody speaks of or uses, and its other members.

    Values that stand in ``given`` are left out. A list, of scalars or of objects by their names, is one of the texts.
    """
    if entries := _entries(value, given):
        text = _counted(entries, MAX_LIST_CHARS, mentions.analysis.words)
        text = f"{name}: {text}" if name else text
        return (text, "") if (name, value) in mentions else ("", text)
    used: list[str] = []
    other: list[str] = []
    if isinstance(value, dict):
        kept = ((key, _without(item, given)) for key, item in value.items() if not _is_in(item, given))
        members = [(key, item) for key, item in kept if item != {}]
        # Where nobody speaks of an object's name, the name tells enough.
        is_meant = all(member in mentions for member in members if member[0] in ("name", "title"))
        for key, item in sorted(members, key=lambda member: not _is_head(member[0], is_first=member is members[0])):
            is_telling = (TELLING_KEY if is_meant else _HEAD_KEY).search(key) or (key, item) in mentions
            # Of numbers by name (prices, seats), only those whose names are spoken of come first.
            are_numbers = isinstance(item, Mapping) and all(type(one) in (int, float) for one in item.values())
            if are_numbers and (named := {one: item[one] for one in item if mentions.says(one.replace("_", " "))}):
                used.append(member_text(key, named))
                item = {one: number for one, number in item.items() if one not in named}
                is_telling = False
            if item != {}:
                (used if is_telling else other).append(member_text(key, item, mentions.analysis))
    elif not _is_in(value, given):
        (used if (name, value) in mentions else other).append(_scalar(value))
    return _object(name, used), _object(name if not any(used) else "", other)


def _entries(value: Any, given: str) -> list[str]:
    """The entries of a list of scalars or of objects by their names, as texts; an empty list for any other value.

    The key of a value that is a text stands only in the first entry that has it.
    """
    if isinstance(value, dict) and all(isinstance(one, Mapping) for one in value.values()):
        texts, known = list[str](), set[str]()
        for name, own in value.items():
            members = ((key, one) for key, one in own.items() if not _is_in(one, name))
            parts = (member_text("" if key in known and isinstance(one, str) else key, one) for key, one in members)
            texts.append(" ".join(filter(None, (name, *parts))))
            known.update(own)
        return texts
    listed = value if isinstance(value, list) else ()
    return [text for one in listed if not _is_in(one, given) and (text := member_text("", one))]


def _without(value: Any, given: str) -> Any:
    """A value as it is; an object without the members whose values stand in ``given``."""
    return {key: one for key, one in value.items() if not _is_in(one, given)} if isinstance(value, Mapping) else value


def _is_in(value: Any, text: str) -> bool:
    """Whether a string or a number stands in a text, a number not as a part of another one or of a word."""
    if type(value) in (int, float):
        return re.search(rf"(?<![\w.]){re.escape(str(value))}(?![\w.])", text) is not None
    return isinstance(value, str) and value in text


def _counted(parts: Sequence[str], chars: int, words: FixedWords) -> str:
    """The first parts that fit, then how many more there are."""
    fitting = next((n for n in range(len(parts), 0, -1) if sum(map(len, parts[:n])) + 2 * n <= chars), 0)
    rest = len(parts) - fitting
    return ", ".join(parts[:fitting]) + (f" {ELLIPSIS} {rest} {words.more}" if rest else "")


def _is_head(key: str, *, is_first: bool) -> bool:
    return bool(_HEAD_KEY.search(key) or (is_first and ID_KEY.search(key) and not OWNER_KEY.match(key)))


def _object(name: str, members: Iterable[str]) -> str:
    # Whole members, as many as fit: half an id would be another one.
    parts = fitting((opening(one, _MAX_OBJECT_CHARS - 2) for one in members if one), _MAX_OBJECT_CHARS)
    text = ", ".join(parts).removeprefix(ELLIPSIS)
    return f"{name}: {text}" if name and text else text


def _is_brief(value: Any) -> bool:
    """Whether a value stands in its object's line: a scalar, or a small object of scalars."""
    if isinstance(value, dict):
        return len(value) <= _MAX_BRIEF and all(map(_is_scalar, value.values()))
    return _is_scalar(value)


def member_text(key: str, value: Any, analysis: Analysis | None = None) -> str:
    """A member of an object as ``key value``, or its value alone where that explains itself.

    An empty string for an empty value.
    """
    if isinstance(value, Mapping):
        own = (member_text(name, item, analysis) for name, item in value.items() if not _is_in(item, key))
        return f"{key} {' '.join(filter(None, own))}".strip()
    if value is None or value == "":
        return ""
    text = _scalar(value, analysis)
    is_plain = key == "date" or (isinstance(value, str) and _SPEAKS.search(text) is not None)
    return text if is_plain else f"{key} {text}".strip()


# A value that explains itself: `berth 4`, `#B204`, `Harbour`, `delayed`. A bare number, date or short word does not.
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
