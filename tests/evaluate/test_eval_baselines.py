from __future__ import annotations

import pytest
from eval_builders import assistant, call, case, count_words, result, user
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.evaluate.methods import BASELINES, Baseline, best, choose, first, last, lexrank_order, mmr_order
from compactor_cli.model.errors import UsageError

NAMES = [baseline.name for baseline in BASELINES]
MIDDLE = (
    user("first words of the user about config_file"),
    *(
        message
        for n in range(30)
        for message in (
            assistant(f"step {n} reads module_{n}", call("Bash", n, command=f"cat src/module_{n}.py")),
            result(f"line one of module_{n}\nthe value is {n * 1111}\n" + "noise and more noise " * 20, n),
        )
    ),
    assistant("last words of the agent about config_file"),
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", [1, 7, 40, 200, 100_000])
def test_no_baseline_is_over_its_budget(name: str, budget: int) -> None:
    write = choose([name])[0].prepare(case(MIDDLE, tail=(user("what of module_3"),)), count_words)
    assert count_words(write(budget)) <= budget


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("bare-list", "masking")])
def test_baselines_use_the_budget_they_have(name: str) -> None:
    write = choose([name])[0].prepare(case(MIDDLE, tail=(user("what of module_3"),)), count_words)
    assert count_words(write(120)) >= 100


@pytest.mark.parametrize("name", NAMES)
def test_baselines_repeat_themselves_and_bear_an_empty_middle(name: str) -> None:
    method = choose([name])[0]
    probed = case(MIDDLE)
    assert method.prepare(probed, count_words)(90) == method.prepare(probed, count_words)(90)
    assert count_words(method.prepare(case((user(""),)), count_words)(50)) <= 50


def _text(name: str, budget: int) -> str:
    return choose([name])[0].prepare(case(MIDDLE), count_words)(budget)


def test_each_baseline_does_what_it_is_named_for() -> None:
    assert _text("tail", 10).endswith("last words of the agent about config_file")
    assert _text("head-tail", 20).startswith("User: first words")
    assert _text("head-tail", 20).endswith("about config_file")
    assert "noise" not in _text("masking", 200)
    assert len(_text("middle-out", 200).splitlines()) >= 90
    assert "module_7" in _text("log-frequency", 200)
    assert set(_text("bare-list", 500).split()) >= {"config_file", "module_7", "src/module_7.py", "7777"}


def test_all_is_every_baseline_and_unknown_names_are_errors() -> None:
    extra = Baseline("mine", lambda case, count: lambda budget: "")
    first_of_all, *_ = choose(["tail", "all"], [extra])
    assert first_of_all.name == "tail"
    assert {method.name for method in choose(["all"], [extra])} == {*NAMES, "mine"}
    with pytest.raises(UsageError, match="no baseline is called 'tial'"):
        choose(["tial"])


@given(text=st.text(), budget=st.integers(0, 50))
def test_cut_texts_are_within_the_budget_and_the_longest_that_is(text: str, budget: int) -> None:
    start, end = first(text, budget, len), last(text, budget, len)
    assert start == text[:budget]
    assert end == (text[-budget:] if budget else "")


@given(order=st.permutations(range(12)), budget=st.integers(0, 60))
def test_the_best_lines_stand_in_order_within_the_budget(order: list[int], budget: int) -> None:
    ranked = [(n, f"line{n:02d}") for n in order]
    text = best(ranked, budget, len)
    assert len(text) <= budget
    whole = [line for line in text.split("\n") if len(line) == len("line00")]
    assert whole == sorted(whole)
    assert set(whole) == {line for _, line in ranked[: len(whole)]}


def test_the_central_line_ranks_first() -> None:
    cats = ["the cat sat on the red mat", "the cat ate on the red mat", "a cat sat on a red mat"]
    lines = [*cats, "stocks fell sharply on monday"]
    order = lexrank_order(list(enumerate(lines)))
    assert order[0][0] in (0, 1, 2)
    assert order[-1][0] == 3
    assert len(order) == 4


def test_relevance_and_novelty_rank_lines() -> None:
    lines = ["the parser fails on empty input", "the parser fails on empty inputs", "colours of the rainbow are seven"]
    order = mmr_order(list(enumerate(lines)), "why does the parser fail on empty input")
    assert order[0][0] == 0
