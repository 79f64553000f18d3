"""Settled: the decisions that stand, each with the options not taken and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from compactor_cli.digest.checklists import beginnings, holds_half
from compactor_cli.digest.decisions import ANSWERED, TAKEN, Decision
from compactor_cli.digest.events import Event, EventKind, is_service_call
from compactor_cli.digest.files import changed_by_turn
from compactor_cli.digest.statements import TokenCache, chosen, records_of
from compactor_cli.digest.tools import is_lookup
from compactor_cli.digest.wants import is_in_history, newest_request, stop_after
from compactor_cli.model.patterns import pattern
from compactor_cli.model.summary import Item

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

_LONG_ANSWER_CHARS = 100


def is_pending(record: int, analysis: Analysis) -> bool:
    """Whether nobody has written or done anything since a record.

    In a dialogue with calls of a service, look-ups and the assistant's messages do not count.
    """
    # From the end: the first event looked at nearly always decides.
    since = (one for one in chain(reversed(analysis.kept), reversed(analysis.events)) if one.record > record)
    if analysis.is_dialogue and any(map(is_service_call, analysis.events)):
        return not any(e.kind is EventKind.USER or (is_service_call(e) and not is_lookup(e.name)) for e in since)
    return not any(event.kind in (EventKind.USER, EventKind.ASSISTANT, EventKind.CALL) for event in since)


def _item(decision: Decision, analysis: Analysis) -> Item:
    """The item of a decision: its text, the options not taken, and what came of what the user agreed to."""
    words = analysis.words
    outcome = analysis.outcomes.get(decision.turn)
    # A commit of the turn that shares few words with the decision may be for something else that was asked for.
    is_other = outcome and outcome.is_made and not holds_half(decision.text, beginnings(outcome.text))
    ended = outcome.text if outcome and not is_other and outcome.text != words.replied else ""
    if decision.turn >= 0 and is_pending(decision.records[-1], analysis):
        ended = words.pending
    given_up = " · ".join(_not_taken_since(decision, analysis.events))
    is_of = words.left_open if decision.leaves_open else words.given_up
    rest = f" ({is_of}{words.colon}{given_up})" if given_up else ""
    # What the user agreed to and then stopped is not what is wanted any more, or not in this way.
    stopped = stop_after(decision.turn, analysis) if decision.turn >= 0 else ""
    text = f"{decision.whole}{rest}" + (f" → {ended}" if ended else "") + stopped
    if decision.is_approved and _is_edited_later(decision, analysis):
        text = f"{text} ({words.edited_later})"
    return Item(text=text, records=records_of((*decision.records, *(outcome.records if outcome and ended else ()))))


def _is_edited_later(decision: Decision, analysis: Analysis) -> bool:
    """Whether a later turn changed a file that the turn of a plan changed: the work may differ from the plan by now."""
    changed = changed_by_turn(analysis.operations, analysis.events)
    own = changed.get(decision.turn, set())
    return any(not own.isdisjoint(paths) for turn, paths in changed.items() if turn > decision.turn)


def _not_taken_since(decision: Decision, events: Sequence[Event]) -> Iterator[str]:
    """The options not taken, without those that the assistant names in a later turn: it may have done them since."""
    if not decision.given_up:
        return
    answered = max((event.turn for event in events if event.record in decision.records), default=-1)
    texts = (event.text for event in events if event.kind is EventKind.ASSISTANT and event.turn > answered)
    later = "\n".join(texts).lower()
    for option in decision.given_up:
        name = _NAME_ENDS.split(option)[0]
        if len(name) < _MIN_NAME_CHARS or name.lower() not in later:
            yield option


_MAX_BARE_WORDS = 2
# What ends the name of an option, and the least characters of a name that is looked for.
_NAME_ENDS, _MIN_NAME_CHARS = pattern(r" [|–—-] |: "), 12
# Added to the weight of a decision by its place, from 0 for the first of a transcript to nearly this for the last.
_RECENCY = 2.0


def answered_tokens(analysis: Analysis, token_cache: TokenCache) -> int:
    """The tokens of the items for the user's answers to questions that a tool asked."""
    answers = {message.record for message in analysis.messages if message.is_answer}
    found = (one for one in analysis.decisions if one.weight >= TAKEN and not answers.isdisjoint(one.records))
    return sum(token_cache.item(_item(one, analysis)) for one in found)


def called_with(events: Sequence[Event]) -> str:
    """The texts of all calls of services, a line each."""
    return "\n".join(event.text for event in events if is_service_call(event))


def gives_only(words: str, called: str) -> bool:
    """Whether a reply of a few words gives ids, numbers or addresses and services were called with all of them."""
    given = _GIVEN.findall(words)
    return len(words.split()) <= _MAX_GIVING_WORDS and bool(given) and all(one in called for one in given)


# A word with a digit: an id, a number or an address.
_GIVEN, _MAX_GIVING_WORDS = pattern(r"[\w.+-]*\d[\w.@+-]*(?<!\.)"), 8


def settled_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """The strongest and newest decisions that fit, in the order they were made."""
    faults = [cause.text for cause in analysis.causes]
    # In a dialogue, the history quotes the messages that can be read alone.
    quoted = {m.record for m in analysis.messages if is_in_history(m, analysis) and not (m.is_short or m.points_at)}
    called = called_with(analysis.events) if analysis.is_dialogue else ""
    newest = newest_request(analysis)
    asked = f'{newest.text}"' if newest and len(newest.text) >= _LONG_ANSWER_CHARS else "\0"
    found = [
        one
        for one in analysis.decisions
        # A long answer that Now quotes with its question is not repeated.
        if one.detail or one.given_up or not (one.text.endswith(asked) and ANSWERED in one.text)
        if not any(one.text in text for text in faults) and quoted.isdisjoint(one.records)
        if one.weight == TAKEN or not gives_only(one.text.partition(ANSWERED)[2].strip('"'), called)
    ]
    ranked = sorted(range(len(found)), key=lambda at: (-(found[at].weight + _RECENCY * at / len(found)), -at))
    # All decisions come before the options of any one.
    items = [_item(replace(one, detail="", given_up=()), analysis) for one in found]
    taken = {item.text for item in chosen((items[at] for at in ranked), budget_tokens, token_cache)}
    left = budget_tokens - sum(token_cache.item(item) for item in items if item.text in taken)
    # A bare answer gets its options first: "Both" is unclear without them.
    for at in sorted(ranked, key=lambda at: len(found[at].text.partition(ANSWERED)[2].split()) > _MAX_BARE_WORDS):
        whole = _item(found[at], analysis)
        more = token_cache.item(whole) - token_cache.item(items[at])
        if items[at].text in taken and more <= left:
            items[at], left = whole, left - more
            taken.add(whole.text)
    return tuple(item for item in items if item.text in taken)
