"""Lists: those of a message, quoted whole or without the fields that tell least."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise
from typing import TYPE_CHECKING

from compactor_cli.digest.meant import Meant
from compactor_cli.digest.objects import ID_KEY, TELLING_KEY
from compactor_cli.digest.statements import Statement, StatementForm, lead_of

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

# A list that takes no larger share of the room is quoted whole or not at all.
WHOLE_RATIO = 1 / 3


def whole_lists(spoken: Iterable[Statement], analysis: Analysis, chars: int) -> Iterator[Statement]:
    """The statements; a list, or at least an entry with what stands below it, as one where it takes no large share."""
    most, meant = chars * WHOLE_RATIO, Meant(analysis)

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
            parts = [fitting] if fitting else lists
            texts = [" ".join(one.text for one in part) for part in parts]
            for part, factor in zip(parts, meant.weights(texts, whole[0].record), strict=True):
                weighed = [one._replace(weight=one.weight * factor) for one in part]
                yield from [_as_one(weighed)] if are_entries and _length(part) <= most else weighed


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
        worth.setdefault(field, []).append(value + sum(bool(one.search(key)) for one in (TELLING_KEY, ID_KEY)))
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
