"""The choice of statements: nothing twice, outcomes before announcements, and the budget holds."""

from __future__ import annotations

from conversation import count, events_of, says, user
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor_cli.digest.choice import ITEM_TOKENS, Worth, candidates_of, choose
from compactor_cli.digest.counter_table import build
from compactor_cli.digest.salience_model import score
from compactor_cli.digest.statements import Statement
from compactor_cli.digest.transcript_events import Event

SENTENCES = (
    "The clock drifts by two seconds a day.",
    "Let me look at the clock.",
    "The export drops the second hour of October because it takes it for a duplicate.",
    "Gauge CAS-02 resends three lines after a reconnect.",
    "Limits: load_items(8080) in src/clock.py.",
)


def chosen(found: tuple[Event, ...], budget_tokens: int, shown: tuple[str, ...] = ()) -> list[Statement]:
    scores = score(build(found))
    candidates = candidates_of(
        found, scores, budget_tokens, finals=frozenset(), taken_back=frozenset(), cues=lambda text: "because" in text
    )
    return choose(candidates, shown, budget_tokens, count, Worth(scores))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4), max_size=8), st.integers(0, 200))
def test_the_choice_holds_its_budget_and_says_nothing_twice(messages: list[list[str]], budget_tokens: int) -> None:
    found = events_of(*(says("\n".join(lines)) for lines in messages))
    taken = chosen(found, budget_tokens)
    texts = [statement.text for statement in taken]
    assert len(texts) == len(set(texts))
    items = {statement.event for statement in taken}
    assert sum(count(text) + 1 for text in texts) + ITEM_TOKENS * len(items) <= budget_tokens or not texts
    assert all(statement.text in found[statement.event].text for statement in taken)


def test_what_the_rest_of_the_summary_says_is_not_chosen() -> None:
    found = events_of(user("why?"), says(SENTENCES[0]), says(SENTENCES[3]))
    assert [one.text for one in chosen(found, 100, (SENTENCES[0],))] == [SENTENCES[3]]


def test_an_announcement_loses_against_an_outcome() -> None:
    found = events_of(user("why?"), says(SENTENCES[1]), says(SENTENCES[2]))
    assert [one.text for one in chosen(found, 30)] == [SENTENCES[2]]
