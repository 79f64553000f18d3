"""Facts: what is shown elsewhere is known under the numbers a choice compares."""

from __future__ import annotations

from compactor_cli.digest.candidates import Candidate
from compactor_cli.digest.values import Valuer
from digest_events import event, event_lists
from hypothesis import given

from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.facts import Facts, facts_of
from compactor_cli.digest.salience import score
from compactor_cli.digest.table import build


def candidates(events: list[Event]) -> list[Candidate]:
    lines = [(number, line) for number, item in enumerate(events) for line in item.text.split("\n")]
    return [Candidate(text=line, event=number, kind=events[number].kind) for number, line in lines]


@given(event_lists)
def test_a_text_tells_all_facts_of_its_lines(events: list[Event]) -> None:
    valuer = Valuer(score(build(events)))
    found = valuer.facts(candidates(events))
    known = valuer.known(facts_of(item.text for item in events))
    assert all(facts.keys() <= known for facts in found)
    assert all(value >= 0 for facts in found for value in facts.values())


def test_facts_of_several_texts_are_joined() -> None:
    one, other = facts_of(["load_items fails badly here"]), facts_of(["see src/a.py"])
    both = one | other
    assert both == facts_of(["load_items fails badly here", "see src/a.py"])
    assert both.atoms == {"load_items", "src/a.py"}
    assert ("load_items", "fails", "badly") in both.phrases
    assert ("load_items", "badly") in both.pairs
    assert Facts() | one == one


def test_nothing_unknown_is_counted_as_known() -> None:
    events = [event(EventKind.ASSISTANT, "load_items fails badly here")]
    valuer = Valuer(score(build(events)))
    (facts,) = valuer.facts(candidates(events))
    assert not valuer.known(facts_of(["other words about src/b.py"])) & facts.keys()
