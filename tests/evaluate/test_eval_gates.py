from __future__ import annotations

from dataclasses import dataclass

import pytest
from eval_builders import assistant, case, count_words, user

from compactor_cli.evaluate.measures import gates_of, invented, malformed
from compactor_cli.evaluate.methods import Digested, body, repeat
from compactor_cli.model.summary import Answer, Item, Request, Section, SectionItems, Source, Summary

PROBED = case((assistant("the port is port_8080 in src/net.py"),), head=(user("go"),), tail=(assistant("done"),))


def _summary(*items: Item) -> Summary:
    return Summary(source=Source.DIGEST, sections=(SectionItems(section=Section.HISTORY, items=items),))


def _digested(summary: Summary) -> Digested:
    return Digested(answer=Answer(summary=summary), text=body(summary))


def test_an_atom_from_nowhere_is_invented() -> None:
    texts = ["the port is port_8080"]
    assert invented(_summary(Item(text="port_8080 and port_9090")), texts) == ("port_9090",)
    assert invented(_summary(Item(text="port_8080")), texts) == ()


def test_a_piece_of_what_stands_there_is_not_invented() -> None:
    assert invented(_summary(Item(text="open src/net.py")), ["cat /home/me/work/src/net.py"]) == ()


@pytest.mark.parametrize(
    ("item", "wrong"),
    [
        (Item(text="fine", records=(1,)), ""),
        (Item(text=" ", records=(1,)), "without text"),
        (Item(text="fine", records=(0,)), "not covered"),
        (Item(text="fine", records=(1, 1)), "not ascending"),
    ],
)
def test_items_are_looked_at(item: Item, wrong: str) -> None:
    found = [text for text in malformed(_digested(_summary(item)), PROBED.middle) if "read back" not in text]
    assert bool(found) == bool(wrong)
    assert all(wrong in text for text in found)


def test_a_section_that_is_empty_or_comes_twice_is_wrong() -> None:
    part = SectionItems(section=Section.FILES, items=())
    found = list(malformed(_digested(Summary(source=Source.DIGEST, sections=(part, part))), PROBED.middle))
    assert any("twice" in text for text in found)
    assert any("empty" in text for text in found)


def test_the_gates_hold_or_say_what_broke() -> None:
    good = gates_of(PROBED, 50, count_words, _digested(_summary(Item(text="port_8080", records=(1,)))))
    assert good.hold
    assert not gates_of(PROBED, 1, count_words, _digested(_summary(Item(text="port_8080", records=(1,))))).hold
    assert not gates_of(PROBED, 50, count_words, _digested(_summary(Item(text="port_9090", records=(1,))))).hold


@dataclass
class _Moody:
    """Says something else each time."""

    number: int = 0

    def summarise(self, request: Request) -> Answer:
        self.number += 1
        return Answer(summary=_summary(Item(text=f"port_{self.number}", records=request.covered[:1])))


@dataclass
class _Steady:
    def summarise(self, request: Request) -> Answer:
        return Answer(summary=_summary(Item(text="port_8080", records=request.covered[:1])))


def test_a_summariser_that_changes_its_mind_is_seen() -> None:
    moody = repeat(_Moody(), PROBED, 50, count_words)
    steady = repeat(_Steady(), PROBED, 50, count_words)
    assert not moody.is_same
    assert moody.kept_ratio < 1
    assert steady.is_same
    assert steady.kept_ratio == 1
