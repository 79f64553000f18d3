"""The hard gates on a generated transcript with planted facts: what was planted is what the future asks for."""

from __future__ import annotations

import random

import pytest
from eval_builders import assistant, call, case, result, user

from compactor_cli.digest.digest import Digest
from compactor_cli.evaluate.cuts import EvalCase
from compactor_cli.evaluate.measures import Measure, Share, SummaryView, gates_of, needs_of, score
from compactor_cli.evaluate.methods import Carry, choose, digest_of, last_summary, repeat
from compactor_cli.model.transcript import Message

FACTS = 60
STEPS = 600
SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo zu".split()
PAIR_FLOOR = 0.51


def _tokens(text: str) -> int:
    return -(-len(text.encode()) // 4)


def _name(chance: random.Random) -> str:
    return "".join(chance.choices(SYLLABLES, k=3)) + "_" + "".join(chance.choices(SYLLABLES, k=2))


def _noise(chance: random.Random) -> str:
    lines = (f"{chance.choice(SYLLABLES)} {_name(chance)} = {chance.randrange(10**6)}" for _ in range(12))
    return "\n".join(lines)


def _step(chance: random.Random, number: int, fact: str) -> list[Message]:
    """The agent edits and tests the module that the fact names; noise comes with every result."""
    path = f"src/{fact}/module.py"
    if number % 3 == 0:
        edit = call("Edit", number, file_path=path, old_string="pass", new_string=f"use({fact})")
        return [assistant(f"I set {fact} in {path} because the limit is there.", edit), result("ok", number)]
    if number % 3 == 1:
        run = call("Bash", number, command=f"pytest {path} -k {fact}")
        return [assistant("", run), result(_noise(chance), number)]
    read = call("Read", number, file_path=path)
    return [assistant("", read), result(_noise(chance), number)]


def _planted() -> EvalCase:
    chance = random.Random(7)
    facts = [_name(chance) for _ in range(FACTS)]
    middle: list[Message] = []
    for number in range(STEPS):
        middle += _step(chance, number, facts[number * FACTS // STEPS])
        if number % 40 == 20:
            fact = facts[number * FACTS // STEPS]
            middle.append(user(f"Please keep the public interface of {fact} exactly as it is now."))
            middle.append(assistant("Understood."))
    future = [assistant(f"Now the limit of {fact} in src/{fact}/module.py is checked once more.") for fact in facts]
    return case(middle, future, head=(user("Make the limits configurable."),), tail=(assistant("Going on."),))


@pytest.fixture(scope="module")
def planted() -> EvalCase:
    return _planted()


def _budget(planted: EvalCase, ratio: float = 0.05) -> int:
    return int(ratio * sum(_tokens(event.text) for event in planted.middle_events))


def _fur(planted: EvalCase, text: str) -> Share:
    return score(needs_of(planted), SummaryView(text))[Measure.FUR]


@pytest.mark.parametrize("ratio", [0.02, 0.05, 0.1])
def test_budget_structure_and_invention(planted: EvalCase, ratio: float) -> None:
    budget = _budget(planted, ratio)
    found = digest_of(planted, budget, _tokens)
    assert gates_of(planted, budget, _tokens, found).hold


def test_a_second_run_changes_nothing(planted: EvalCase) -> None:
    assert repeat(Digest(), planted, _budget(planted), _tokens).is_same


def test_ten_updates_lose_no_more_than_two_points(planted: EvalCase) -> None:
    budget = _budget(planted, 0.08)
    once, often = (
        _fur(planted, last_summary(Digest(), planted, rounds, Carry.STATE, budget, _tokens)) for rounds in (1, 10)
    )
    assert once.total >= FACTS
    assert often.ratio >= once.ratio - 0.02


def test_the_bare_list_fails_the_pair_floor_that_the_digest_passes(planted: EvalCase) -> None:
    budget, needs = _budget(planted), needs_of(planted)
    listed = score(needs, SummaryView(choose(["bare-list"])[0].prepare(planted, _tokens)(budget)))
    ours = score(needs, SummaryView(digest_of(planted, budget, _tokens).text))
    assert listed[Measure.PAIRS].ratio < PAIR_FLOOR
    assert ours[Measure.PAIRS].ratio >= PAIR_FLOOR
