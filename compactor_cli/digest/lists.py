"""Lists and blocks of code merged into one statement each, with fewer fields where that makes them fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, groupby, pairwise
from operator import not_
from typing import TYPE_CHECKING

from compactor_cli.digest.corrections import TELLS_WHAT_IS_OPEN
from compactor_cli.digest.objects import ID_KEY, TELLING_KEY, Meant
from compactor_cli.digest.statements import Statement, StatementForm, lead_of
from compactor_cli.digest.texts import ELLIPSIS

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis


# The lines of a block of code are quoted together if they have at most this many characters, separators included.
WHOLE_CODE_CHARS = 220
# A list that takes at most this share of the room is quoted whole or not at all.
WHOLE_LIST_RATIO = 1 / 3


def _whole_code(spoken: Iterable[Statement]) -> Iterator[Statement]:
    """The statements, with the lines of a short block of code merged into one: a single line may show the opposite."""
    for key, group in groupby(spoken, key=lambda one: (one.event, one.lead, one.form is StatementForm.CODE)):
        lines = list(group)
        if key[-1] and len(lines) > 1 and _length(lines) <= WHOLE_CODE_CHARS:
            text = " · ".join(one.text.strip() for one in lines)
            span, weight = lines[-1].place - lines[0].place + 1, max(one.weight for one in lines)
            yield lines[0]._replace(text=text, span=span, weight=weight, closes=lines[-1].closes)
        else:
            yield from lines


def whole_lists(spoken: Iterable[Statement], analysis: Analysis, chars: int) -> Iterator[Statement]:
    """The statements, with every list merged into one that takes at most `WHOLE_LIST_RATIO` of ``chars`` characters.

    A list may lose fields for that (see `thinned`). Where it is too long even so, each of its entries is merged with
    what stands below it, if that is short enough.
    """
    most, meant = chars * WHOLE_LIST_RATIO, Meant(analysis)

    def is_entry(one: Statement) -> bool:
        # An entry of a message that was taken back may have a mark of its own, and each of the entries that an older
        # summary lists as open may be done.
        is_apart = one.event in analysis.taken_back or TELLS_WHAT_IS_OPEN.search(one.lead)
        return one.form is StatementForm.ITEM and not is_apart

    spoken = spoken if analysis.is_dialogue else _whole_code(spoken)
    for (_, are_entries), group in groupby(spoken, key=lambda one: (one.event, is_entry(one))):
        first, *others = group
        if not (are_entries or others):
            yield first
            continue
        entries = [[first]]
        for one in others:
            if are_entries and one.lead.endswith(tuple(lead_of(e.text) for e in entries[-1])):
                entries[-1].append(one)
            else:
                entries.append([one])
        for _, siblings in groupby(entries, key=lambda entry: entry[0].lead):
            lists = list(siblings)
            whole = list(chain.from_iterable(lists))
            fitting = thinned(whole, analysis, lambda shown: _length(shown) <= most) if are_entries else []
            parts = [fitting] if fitting else lists
            texts = [" ".join(one.text for one in part) for part in parts]
            for part, factor in zip(parts, meant.weights(texts, whole[0].record), strict=True):
                weighed = [one._replace(weight=one.weight * factor) for one in part] if factor != 1.0 else part
                yield from [_as_one(weighed)] if are_entries and _length(part) <= most else weighed


# `Low tide: 06:12`, `- Height: 1.4 m`
_FIELD = re.compile(r"\W*([^\W\d][^:\n]{1,40}): +\S")


def thinned(
    pieces: Sequence[Statement], analysis: Analysis, fits: Callable[[Sequence[Statement]], bool]
) -> Sequence[Statement]:
    """The statements without the fields that tell least, as many as it takes to fit; empty where that is not enough.

    A field is a key before a colon that several entries have: of every flight its number, its times, its price. It is
    left out of all entries or of none, and at least one field stays.
    """
    if fits(pieces):
        return pieces
    leading = {one.lead.rpartition("\n")[2] for one in pieces}
    fields = [_field(one) if one.lead and lead_of(one.text) not in leading else "" for one in pieces]
    worth, values = dict[str, list[float]](), dict[str, set[str]]()
    for field, one in zip(fields, pieces, strict=True):
        value = one.text.partition(":")[2]
        key = field.lower().replace(" ", "_")
        facts = sum(analysis.worth.facts(value).values()) / (len(one.text) + 1)
        worth.setdefault(field, []).append(facts + sum(bool(one.search(key)) for one in (TELLING_KEY, ID_KEY)))
        values.setdefault(field, set()).add(value)
    repeated = (field for field in worth if field and len(worth[field]) > 1)
    # What all entries have in common tells them apart least.
    ranked = sorted(repeated, key=lambda field: (len(values[field]) > 1, sum(worth[field]) / len(worth[field])))
    amounts = {field for field in ranked if any(map(_AMOUNT.fullmatch, values[field]))}
    bare_forms = (_NAME, _AMOUNT) if len(amounts) == 1 else (_NAME,)
    for number in range(len(ranked)):
        left = _without_fields(pieces, [own in ranked[:number] for own in fields])
        # A value that shows what it is needs no key; where two fields are amounts, neither shows that.
        bare = [_bare(one, bare_forms) if _field(one) in ranked else one for one in left]
        for tried in (left, bare):
            if fits(tried):
                return tried
    return []


def _field(one: Statement) -> str:
    found = _FIELD.match(one.text)
    return found[1] if found else ""


def _without_fields(pieces: Sequence[Statement], are_out: Sequence[bool]) -> list[Statement]:
    """The statements that are not out, with an ellipsis at the end of an entry that loses its last ones.

    A gap between two statements needs no mark here: their places show it.
    """
    entries = {one.place: one.lead for one in pieces}
    left = list(compress(pieces, map(not_, are_out)))
    last = {one.lead: one.place for one in left}
    cut = [at for at in last.values() if entries.get(at + 1) == entries[at]]
    return [one._replace(text=f"{one.text} {ELLIPSIS}") if one.place in cut else one for one in left]


def _bare(one: Statement, forms: Iterable[re.Pattern[str]]) -> Statement:
    """A field without its key where its value has one of these forms, which show what it is; else as it is."""
    value = one.text.partition(": ")[2]
    return (
        one._replace(text=value) if any(form.fullmatch(value.removesuffix(f" {ELLIPSIS}")) for form in forms) else one
    )


# `$1,240.50`; `GT-4417`
_AMOUNT, _NAME = re.compile(r"\s*[$€£¥]\s?[\d.,]+"), re.compile(r"#?(?=\S*[A-Z])(?=\S*\d)[\w-]{4,}")


def _length(entries: Iterable[Statement]) -> int:
    return sum(len(one.text) + 3 for one in entries)


_ENDS = (".", "!", "?", '"', ")")


def _as_one(entries: Sequence[Statement]) -> Statement:
    """Entries of a list merged into one statement, which stands under the lead of the first."""
    text = entries[0].text
    for before, one in pairwise(entries):
        is_below = one.lead.endswith(lead_of(before.text))
        between = f" {ELLIPSIS} " if one.place > before.place + 1 else " · "
        joint = between if not is_below else " " if before.text.endswith(_ENDS) else ": "
        text += f"{joint}{one.text}"
    span = entries[-1].place - entries[0].place + 1
    last = [one for one in entries if one.lead == entries[0].lead][-1]
    return entries[0]._replace(text=text, span=span, weight=max(one.weight for one in entries), closes=last.closes)
