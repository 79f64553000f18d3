from __future__ import annotations

from eval_builders import assistant, call, case, result, user

from compactor_cli.evaluate.measures import Share, SummaryView, reused_facts, score_facts

MIDDLE = (
    user("I am Mia Garcia, zip code 94110, and I want to return the desk lamp."),
    assistant("", call("find_user", 1, name="Mia Garcia")),
    result('{"user_id": "mia_garcia_4516", "orders": ["W5490111"]}', 1),
)


def test_values_the_agent_needs_again_are_answers() -> None:
    future = (assistant("", call("return_items", 2, order_id="W5490111", user_id="mia_garcia_4516")),)
    assert reused_facts(case(middle=MIDDLE, future=future)) == ("w5490111", "mia_garcia_4516")


def test_amounts_and_names_in_what_the_agent_says_are_answers() -> None:
    assert reused_facts(case(middle=MIDDLE, future=(assistant("Thank you, Mia Garcia, for 94110."),))) == (
        "mia garcia",
        "94110",
    )


def test_what_is_stated_again_before_it_is_needed_is_no_answer() -> None:
    again = (user("my order is W5490111"), assistant("", call("return_items", 2, order_id="W5490111")))
    assert reused_facts(case(middle=MIDDLE, future=again)) == ()


def test_what_was_never_said_is_no_answer() -> None:
    assert reused_facts(case(middle=MIDDLE, future=(assistant("", call("pay", 2, amount="77.50")),))) == ()


def test_an_answer_needs_all_of_its_words() -> None:
    golds = ("mia garcia", "w5490111")
    assert score_facts(golds, SummaryView("Customer Garcia, Mia")) == Share(kept=1, total=2)
    assert score_facts(golds, SummaryView("Customer Mia; W5490111")) == Share(kept=1, total=2)
