"""`qwen-retrieval`: history as a file, retrieved, sentence by sentence."""

from __future__ import annotations

from dataclasses import replace

from preset_cases import SYSTEM, assistant, chat, compacted, is_stable, planned, preset, roles, transcript, user, words

from compactor_cli.archive.search import query_of
from compactor_cli.model.settings import Settings, Size
from compactor_cli.model.summary import Request

RETRIEVAL = preset("qwen-retrieval")
FACTS = [
    user("The harbour office reads the spreadsheet every Monday."),
    assistant("Noted: the modem of station KRV1 dials out at 02:40."),
    user("The paper roll of Marvik was typed by Jens."),
]


def at(tokens: int) -> Settings:
    return replace(RETRIEVAL, target=Size(tokens=tokens))


def asked(text: str) -> str:
    made = transcript([SYSTEM, *FACTS, *chat(3)[1:], user(text)])
    request = Request(
        transcript=made,
        covered=tuple(range(1, len(made.records) - 1)),
        kept=(),
        budget_tokens=500,
        render=lambda summary: "",
        count=len,
    )
    return query_of(request)


def test_the_system_is_kept_and_so_is_the_newest_turn() -> None:
    _, after = compacted([*chat(60), user("What does the modem do?")], at(3_000))
    assert after[0] == SYSTEM
    assert after[-1] == user("What does the modem do?")


def test_the_newest_user_message_is_the_query() -> None:
    assert asked("What does the modem of KRV1 do?") == "What does the modem of KRV1 do?"


def test_over_1_000_characters_its_essence_is_extracted() -> None:
    query = asked(f"{words(200, 'kindly')} what of the modem in Marvik {words(20, 'kindly')}")
    assert query.split() == ["modem", "marvik"]


def test_over_2_000_only_the_first_and_last_1_000_are_looked_at() -> None:
    filler = words(300, "kindly")
    assert asked(f"the spreadsheet {filler} the modem {filler} the paper").split() == ["spreadsheet", "paper"]


def test_everything_else_is_searched_and_what_is_relevant_comes_back_in_its_place() -> None:
    done, after = compacted([SYSTEM, *FACTS, *chat(60)[1:], user("When does the modem of KRV1 dial out?")], at(2_000))
    assert roles(after) == ["system", "user", "user"]
    assert "the modem of station KRV1 dials out at 02:40. [3]" in after[1]["content"]
    assert done.plan.indices.__self__ is done.plan


def test_what_is_not_relevant_does_not() -> None:
    _, after = compacted([SYSTEM, *FACTS, *chat(60)[1:], user("When does the modem of KRV1 dial out?")], at(2_000))
    assert "module 40" not in after[1]["content"]


def test_within_a_budget() -> None:
    done, _ = compacted([*chat(60), user("Which problem was in src/module_7.py?")], at(1_200))
    assert done.report.tokens_after <= 1_200
    assert done.report.summary_tokens <= done.plan.summary_tokens


def test_starts_above_the_size_of_its_window() -> None:
    assert "58,001, where compaction starts" in planned(chat(2), RETRIEVAL).reason


def test_a_second_run_changes_nothing() -> None:
    assert is_stable([*chat(60), user("Which problem was in src/module_7.py?")], at(2_000))
