"""The gist of a message: as much of it as there is room for, so that it reads as the whole would; lists and blocks of
code as one statement each, with fewer fields where that makes them fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, dropwhile, groupby, islice, pairwise
from operator import not_
from typing import TYPE_CHECKING

from compactor_cli.digest.causes import concluded
from compactor_cli.digest.choice import Choice
from compactor_cli.digest.corrections import TELLS_WHAT_IS_OPEN
from compactor_cli.digest.noise import is_courtesy, is_narration, is_noise
from compactor_cli.digest.objects import ID_KEY, TELLING_KEY, Meant
from compactor_cli.digest.replies import last_question
from compactor_cli.digest.statements import (
    Statement,
    StatementForm,
    TokenCache,
    cut_lists,
    lead_of,
    list_ends,
    running_text,
    statements_of,
)
from compactor_cli.digest.texts import ELLIPSIS, opening, without_end
from compactor_cli.model.patterns import pattern

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

# The lines of a block of code are quoted together if they have at most this many characters, separators included.
WHOLE_CODE_CHARS = 220
# A list that takes at most this share of the room is quoted whole or not at all.
WHOLE_LIST_RATIO = 1 / 3
# Characters of an entry of a list that does not fit in full.
_MAX_ENTRY_CHARS = 110
# The part of its room that the last section of a message may take before anything else.
_END_RATIO = 0.4


def gist_of(
    text: str, budget_tokens: int, analysis: Analysis, token_cache: TokenCache, *, is_answered: bool, acts: int = 0
) -> str:
    """A message in full if it fits; else its end if it ``is_answered`` (or waits for that); else its best statements.

    The end has the question with what it is about. In the last case the work went on, so that the question is left out;
    in a dialogue, the result is then empty. If nothing was done since, the last section, which says what comes next, is
    chosen first. Left out are also a list of intentions, unless it is longer than the number of ``acts`` since, and
    outside of answered messages and dialogues what the message itself later turns away from.
    """
    found = [*statements_of(text)]
    stated = [piece for piece, _, _ in found]
    stated = stated if is_answered or analysis.is_dialogue else concluded(stated)
    pieces = [
        Statement(
            text=f"`{piece.strip()}`" if form is StatementForm.CODE else piece,
            event=0,
            place=at,
            form=form,
            lead=lead,
            opens=opens,
            closes=closes,
        )
        for at, (piece, (_, form, lead), (opens, closes)) in enumerate(
            zip(stated, found, list_ends(found), strict=True)
        )
        if not is_noise(piece)
    ]
    leads = [one.lead.rpartition("\n")[2] if one.form is StatementForm.ITEM else "" for one in pieces]
    intended = [at for at, lead in enumerate(leads) if lead != without_end(lead, is_narration)]
    if 0 < len(intended) <= acts:
        first = intended.pop(0)
        pieces[first] = Statement(text=without_end(leads[first], is_narration), event=0, place=first)
        pieces = [one for at, one in enumerate(pieces) if one.text and at not in intended]
    pieces = [one._replace(text=left) for one in pieces if (left := without_end(one.text, is_narration))] or pieces
    if (whole := _shown(pieces)) and token_cache.text(whole) <= budget_tokens:
        return whole
    if is_answered:
        most = thinned(pieces, analysis, lambda left: token_cache.text(_shown(left)) <= budget_tokens)
        return _shown(most or _ends(pieces, budget_tokens, analysis, token_cache))
    if analysis.is_dialogue:
        return ""  # the history shows it, as the other messages
    question = last_question(text)
    # Commands are quoted if they are what the user is asked to run.
    is_to_run = {at for at, one in enumerate(pieces) if not acts and one.text[:2] != "`#" and _tells_state(one)}
    spoken = [
        one
        for at, one in enumerate(pieces)
        if (one.form is not StatementForm.CODE or at in is_to_run) and one.text not in question
    ]
    end = [] if acts else _last_section(spoken, int(_END_RATIO * budget_tokens), token_cache)
    rest = [one for one in spoken if not end or one.place < end[0].place]
    room = budget_tokens - (token_cache.text(f"{_shown(end)} {ELLIPSIS} ") if end else 0)
    taken = chosen_pieces(analysis, token_cache, rest, _shown(end), room)
    return _shown(sorted((*taken, *end), key=lambda one: one.place))


def _last_section(pieces: Sequence[Statement], budget_tokens: int, token_cache: TokenCache) -> list[Statement]:
    """The end of what stands under the last heading of a message, as much as fits; empty without a heading."""
    heading = pieces[-1].lead.partition("\n")[0] if pieces else ""
    own = [one for one in pieces if one.lead.partition("\n")[0] == heading]
    is_last = own == pieces[len(pieces) - len(own) :] and len(own) < len(pieces)
    return _without_part(_last_pieces(own, budget_tokens, token_cache)) if heading and is_last else []


def _shown(pieces: Sequence[Statement]) -> str:
    """The statements as running text on one line, with the marks of lists that were cut."""
    marks = {(pieces[0].event, place): mark for place, mark in cut_lists(pieces)} if pieces else {}
    return _UNENDED.sub(r"\1 · ", running_text(pieces, marks)).replace("\n", " ")


# The last character of a line that ends without a full stop, a colon or code.
_UNENDED = pattern(r"([^\s.!?:;…`。！？：])\n")


def _ends(
    pieces: Sequence[Statement], budget_tokens: int, analysis: Analysis, token_cache: TokenCache
) -> list[Statement]:
    """The last statements of a message (what is proposed, and the question), after its first sentence if that denies.

    In a dialogue, the first sentence is always one of them.

    They do not begin with the last entries of a numbered list, except where nothing else would be left.
    """
    last = _last_pieces(pieces, budget_tokens, token_cache)
    stated = (one for one in pieces if one.form is StatementForm.SENTENCE and not is_courtesy(one.text))
    first = next((one for one in islice(stated, 1) if analysis.is_dialogue or _DENIES.search(one.text)), None)
    left = budget_tokens - token_cache.text(f"{first.text} {ELLIPSIS} ") if first else 0
    if first and first not in last and (later := _last_pieces(pieces[pieces.index(first) + 1 :], left, token_cache)):
        # What the question is about matters more than the beginning.
        loses_list = any(map(_is_entry, last)) and not any(map(_is_entry, later))
        if analysis.is_dialogue or not loses_list:
            return [first, *_without_part(later)]
    return _without_part(last) or last or [*pieces[-1:]]


def _is_entry(piece: Statement) -> bool:
    return piece.form is StatementForm.ITEM


_DENIES = pattern(r"n['’]t\b|\b(?:no|not|never|nothing|none|cannot|without)\b|没有?|不|ない|ません", re.IGNORECASE)


def _without_part(pieces: list[Statement]) -> list[Statement]:
    """The statements without the entries they begin with, if these are of a numbered list whose first are missing."""

    def number(one: Statement) -> int:
        lines = (*one.lead.split("\n"), one.text)
        return next((int(found[1]) for line in lines if (found := _NUMBER.match(line))), 0)

    return [*dropwhile(number, pieces)] if pieces and number(pieces[0]) > 1 else pieces


_NUMBER = re.compile(r"(\d{1,3})[.)]\s")


def _last_pieces(pieces: Sequence[Statement], budget_tokens: int, token_cache: TokenCache) -> list[Statement]:
    """The last statements of a message, as many as fit; a list is taken whole, its entries shortened if need be."""
    taken: list[Statement] = []
    for (is_prose, _), group in reversed([(key, [*own]) for key, own in groupby(pieces, key=_block)]):
        shorter = [one._replace(text=opening(one.text, _MAX_ENTRY_CHARS)) for one in group]
        # If several lists stand under a heading, the last one goes with what follows.
        last = shorter[[one.lead for one in shorter].index(shorter[-1].lead) :]
        own = [one._replace(text=opening(one.text, _MAX_ENTRY_CHARS // 2)) for one in last if one.lead == last[-1].lead]
        for tried in (group, *((group[at:] for at in range(1, len(group))) if is_prose else (shorter, last, own))):
            if token_cache.text(_shown([*tried, *taken])) <= budget_tokens:
                taken = [*tried, *taken]
                break
        else:
            break
    return taken


def _block(piece: Statement) -> tuple[bool, str]:
    """What the statements of a block share: whether they are sentences or not, and the heading they stand under."""
    return piece.form is StatementForm.SENTENCE, piece.lead.partition("\n")[0]


def chosen_pieces(
    analysis: Analysis, token_cache: TokenCache, pieces: Sequence[Statement], shown: str, tokens: int
) -> list[Statement]:
    """The statements that tell most beyond what is ``shown``, in order: first of all those that say what is open."""
    # What is left open, and a brief status at the beginning (`Pushed.`), say most of where the work stands.
    first = [at for at, one in enumerate(pieces) if _tells_state(one) or (not at and len(one.text) <= 40)]
    return Choice(pieces, [shown], analysis.worth, token_cache.text, first=[(first, 1.0)]).choose(tokens)


def _tells_state(one: Statement) -> bool:
    """Whether a statement, or the line that it stands under, says what is open."""
    return any(map(_TELLS_STATE.search, (one.text, one.lead.rpartition("\n")[2])))


_TELLS_STATE = pattern(
    rf"{TELLS_WHAT_IS_OPEN.pattern}|\b(?:still (?:open|yours|to (?:do|be))|deferred|post-merge|your call|unverified"
    r"|not (?:run|tested|pushed|committed|merged|executed|verified)|nobody has|residual|caveats?|known (?:issue|gap"
    r"|limitation)s?|(?:manual(?:ly)?|by hand)[- ](?:verif|check|step|only)\w*|work(?:ing)? ?tree|uncommitted|untracked"
    r"|retry|re-?run)\b|\[ \]",
    re.IGNORECASE,
)


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
