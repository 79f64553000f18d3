"""The gist of a message: as much of it as there is room for, so that it reads as the whole would."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import dropwhile, groupby, islice

from compactor_cli.digest.analysis import Analysis
from compactor_cli.digest.causes import concluded
from compactor_cli.digest.choice import Choice
from compactor_cli.digest.corrections import TELLS_WHAT_IS_OPEN
from compactor_cli.digest.lists import thinned
from compactor_cli.digest.noise import is_courtesy, is_narration, is_noise
from compactor_cli.digest.replies import last_question
from compactor_cli.digest.statements import (
    Statement,
    StatementForm,
    TokenCache,
    cut_lists,
    list_ends,
    running_text,
    statements_of,
)
from compactor_cli.digest.texts import ELLIPSIS, opening, without_end
from compactor_cli.model.patterns import pattern

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
