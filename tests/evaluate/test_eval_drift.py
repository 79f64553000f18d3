from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from eval_builders import assistant, call, case, count_words, result, user

from compactor_cli.evaluate.methods import Carry, chunks, last_summary
from compactor_cli.model.summary import Answer, Item, Request, Section, SectionItems, Source, Summary
from compactor_cli.model.transcript import Role

PROBED = case(
    tuple(
        message
        for n in range(20)
        for message in (assistant(f"step {n:02}", call("Bash", n, command=f"run {n:02}")), result(f"done {n:02}", n))
    ),
    head=(user("go"),),
    tail=(user("and now the tail"),),
)


@dataclass
class _Recorder:
    """Remembers what it was asked, and answers with the number of the round."""

    asked: list[Request] = field(default_factory=list)

    def summarise(self, request: Request) -> Answer:
        self.asked.append(request)
        items = (Item(text=f"round {len(self.asked)}", records=request.covered[:1]),)
        summary = Summary(source=Source.DIGEST, sections=(SectionItems(section=Section.HISTORY, items=items),))
        return Answer(summary=summary, state=f"state {len(self.asked)}".encode())


@pytest.mark.parametrize("number", [1, 2, 5, 10, 1_000])
def test_chunks_tile_the_middle_and_divide_no_exchange(number: int) -> None:
    found = chunks(PROBED, number)
    assert tuple(i for chunk in found for i in chunk) == PROBED.middle
    assert len(found) == min(number, 20)
    for chunk in found:
        assert PROBED.prefix.messages[chunk[0]].role is Role.ASSISTANT
        assert PROBED.prefix.messages[chunk[-1]].role is Role.TOOL


@pytest.mark.parametrize("carry", Carry)
def test_each_round_covers_the_summary_before_it_and_the_next_chunk(carry: Carry) -> None:
    recorder = _Recorder()
    text = last_summary(recorder, PROBED, 4, carry, 60, count_words)
    assert "round 4" in text
    assert [request.state for request in recorder.asked] == (
        [None, b"state 1", b"state 2", b"state 3"] if carry is Carry.STATE else [None] * 4
    )
    assert {request.budget_tokens for request in recorder.asked} == {60}
    for number, request in enumerate(recorder.asked):
        covered = [request.transcript.messages[i] for i in request.covered]
        assert (covered[0].summary is not None) == (number > 0)
        assert sum(len(message.calls) for message in covered) == 5
        if covered[0].summary:
            assert f"round {number}" in covered[0].summary.text


def test_the_tail_is_seen_in_the_last_round_only() -> None:
    recorder = _Recorder()
    last_summary(recorder, PROBED, 3, Carry.STATE, 60, count_words)
    shown = ["and now the tail" in request.transcript.messages[-1].text for request in recorder.asked]
    assert shown == [False, False, True]
    last = recorder.asked[-1]
    assert sorted((*last.covered, *last.kept)) == list(range(len(last.transcript.messages)))


def test_one_round_is_the_summary_itself() -> None:
    recorder = _Recorder()
    last_summary(recorder, PROBED, 1, Carry.STATE, 60, count_words)
    assert recorder.asked[0].covered == PROBED.middle
    assert recorder.asked[0].transcript.messages == PROBED.prefix.messages
