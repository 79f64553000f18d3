"""The measures of recall on event lists whose answers can be worked out by eye."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from eval_builders import assistant, call, case, result, user

from compactor_cli.evaluate.measures import LINE_CHARS, Measure, Share, SummaryView, forget, needs_of, score
from compactor_cli.evaluate.methods import choose


@pytest.fixture(autouse=True)
def _forgetful() -> Iterator[None]:
    yield
    forget()


MIDDLE = (
    assistant("The retry limit lives in retry_policy and the port in src/net/server.py"),
    assistant("", call("Bash", command="make build_all")),
    result("built artefact_42 from src/net/server.py"),
)


def _share(text: str, measure: Measure, **stretches: object) -> Share:
    return score(needs_of(case(**stretches)), SummaryView(text))[measure]  # type: ignore[arg-type]


def test_an_atom_that_the_agent_uses_unaided_counts() -> None:
    future = (assistant("I will raise retry_policy now"),)
    assert _share("keep retry_policy", Measure.FUR, middle=MIDDLE, future=future) == Share(kept=1, total=1)
    assert _share("keep nothing", Measure.FUR, middle=MIDDLE, future=future) == Share(kept=0, total=1)


def test_an_atom_that_a_result_shows_first_counts_for_fur_any_alone() -> None:
    future = (
        assistant("", call("Read", 1, path="notes")),
        result("retry_policy = 3", 1),
        assistant("I will raise retry_policy now"),
    )
    assert _share("", Measure.FUR, middle=MIDDLE, future=future).total == 0
    assert _share("retry_policy", Measure.FUR_ANY, middle=MIDDLE, future=future) == Share(kept=1, total=1)


def test_an_atom_that_the_user_shows_first_does_not_count() -> None:
    future = (user("please look at retry_policy"), assistant("I will raise retry_policy now"))
    assert _share("", Measure.FUR, middle=MIDDLE, future=future).total == 0


def test_an_atom_counts_where_the_use_comes_before_the_showing() -> None:
    future = (assistant("", call("Bash", 1, command="grep retry_policy")), result("retry_policy = 3", 1))
    assert _share("retry_policy", Measure.FUR, middle=MIDDLE, future=future) == Share(kept=1, total=1)


@pytest.mark.parametrize("stretch", ["head", "tail"])
def test_what_head_or_tail_show_need_not_be_kept(stretch: str) -> None:
    future = (assistant("I will raise retry_policy now"),)
    shown = {stretch: (user("mind retry_policy"),)}
    needs = needs_of(case(middle=MIDDLE, future=future, **shown))
    assert not needs.uses
    assert not needs.reused
    assert not needs.pairs


def test_an_atom_the_middle_never_had_is_not_needed() -> None:
    future = (assistant("I will write brand_new_name"),)
    assert _share("", Measure.FUR, middle=MIDDLE, future=future).total == 0


def test_a_part_of_a_longer_name_is_not_the_atom() -> None:
    future = (assistant("open src/net/server.py"),)
    found = _share("src/net/server.py.orig", Measure.FUR, middle=MIDDLE, future=future)
    assert found == Share(kept=0, total=1)


def test_pairs_are_words_next_to_an_atom_on_lines_of_future_and_middle() -> None:
    future = (assistant("the retry limit of retry_policy is too low"),)
    needs = needs_of(case(middle=MIDDLE, future=future))
    assert {word for _, word in needs.pairs} == {"the", "retry", "limit", "retry_policy"} & _words_next_to_atoms(needs)
    assert ("retry_policy", "low") not in needs.pairs
    assert ("retry_policy", "limit") in needs.pairs


def _words_next_to_atoms(needs: object) -> set[str]:
    return {word for _, word in needs.pairs}  # type: ignore[attr-defined]


def test_a_pair_must_share_one_line_of_the_summary() -> None:
    stretches = {"middle": MIDDLE, "future": (assistant("limit of retry_policy"),)}
    together = _share("the limit is retry_policy", Measure.PAIRS_STRICT, **stretches)
    apart = _share("the limit\nis retry_policy", Measure.PAIRS_STRICT, **stretches)
    assert together.kept == together.total > 0
    assert apart.kept == 0


def test_lines_over_the_limit_pair_nothing() -> None:
    long = (assistant("limit " * LINE_CHARS + "retry_policy"),)
    assert not needs_of(case(middle=long, future=(assistant("limit retry_policy"),))).pairs


def test_one_endless_line_in_a_summary_pairs_only_neighbours() -> None:
    stretches = {"middle": MIDDLE, "future": (assistant("limit of retry_policy"),)}
    endless = "limit " + "x " * LINE_CHARS + "retry_policy"
    assert _share(endless, Measure.PAIRS_STRICT, **stretches).kept == 0


def test_the_bare_list_wins_fur_and_fails_the_pairs() -> None:
    middle = tuple(assistant(f"parameter {n} sets the limit of module value_{n:04d} to its maximum") for n in range(60))
    future = tuple(assistant(f"the limit of value_{n:04d} sets a maximum") for n in range(60))
    probed = case(middle=middle, future=future)
    write = choose(["bare-list"])[0].prepare(probed, lambda text: len(text.split()))
    found = score(needs_of(probed), SummaryView(write(200)))
    assert found[Measure.FUR] == Share(kept=60, total=60)
    assert found[Measure.PAIRS].ratio < 0.51
    assert found[Measure.PAIRS_STRICT].ratio < 0.1


def test_phrases_are_word_triples_used_before_they_are_shown_again() -> None:
    middle = (assistant("always run the slow suite before release"),)
    future = (result("run the slow lane", 9), assistant("now run the slow suite before lunch"))
    needs = needs_of(case(middle=middle, future=future))
    assert needs.phrases == {"the slow suite", "slow suite before"}


def test_what_an_edit_writes_is_no_phrase() -> None:
    middle = (assistant("always run the slow suite"),)
    edit = assistant("", call("Edit", 1, file_path="a.md", new_string="always run the slow suite"))
    command = assistant("", call("Bash", 1, command="echo always run the slow suite"))
    assert not needs_of(case(middle=middle, future=(edit,))).phrases
    assert "run the slow" in needs_of(case(middle=middle, future=(command,))).phrases


def test_user_words_are_kept_eight_at_a_time_and_verbatim() -> None:
    said = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen rest"
    middle = (user(said), assistant("fine"))
    assert _share("", Measure.USER, middle=middle).total == 2
    wrapped = "> one two three\nfour five six seven eight"
    assert _share(wrapped, Measure.USER, middle=middle).kept == 1
    assert _share(wrapped.replace("three", "3"), Measure.USER, middle=middle).kept == 0


def test_pasted_documents_of_the_user_do_not_count() -> None:
    assert _share("", Measure.USER, middle=(user("word " * 401),)).total == 0
    assert _share("", Measure.USER, middle=(user("word " * 400),)).total == 1


def test_a_character_is_a_word_where_there_are_no_spaces() -> None:
    middle = (user("请把所有的测试都跑一遍再提交"),)
    found = _share("用户:请把所有的测试都跑", Measure.USER, middle=middle)
    assert found == Share(kept=1, total=1)
