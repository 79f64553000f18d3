"""`suna-llm`: Suna with a model (before July 2025), sentence by sentence."""

from __future__ import annotations

from dataclasses import replace

from preset_cases import SYSTEM, assistant, chat, compacted, is_stable, planned, preset, roles, size, user

from compactor_cli.llm.prompts import PromptWording, Stage, rules
from compactor_cli.model.settings import Budget

SUNA = preset("suna-llm")
# As a transcript of this size would be above it.
ABOVE = preset("suna-llm", threshold_tokens=30_000)


def test_starts_above_120_000_tokens() -> None:
    assert SUNA.trigger.threshold_tokens == 120_000
    assert "120,001, where compaction starts" in planned(chat(2), SUNA).reason


def test_the_summary_takes_10_000_tokens_at_most() -> None:
    assert planned(chat(500), ABOVE).summary_tokens == 10_000


def test_or_the_scaled_budget() -> None:
    plan = planned(chat(140), replace(ABOVE, budget=Budget(curve="scaled")))
    assert 4_000 < plan.summary_tokens < 5_000


def test_everything_before_is_replaced_by_one_message() -> None:
    _, after = compacted(chat(140), ABOVE)
    assert roles(after) == ["system", "user"]


def test_it_is_framed_by_a_start_line_an_end_line_and_the_conversation_continues_below() -> None:
    _, after = compacted(chat(140), ABOVE)
    lines = after[1]["content"].splitlines()
    assert lines[0].startswith("===== Start of the summary")
    assert lines[-2:] == ["===== End of the summary =====", "The conversation continues below."]


def test_it_states_facts_decisions_and_tools_with_results_under_headers_in_order() -> None:
    decided = assistant("I decided to keep TEXT, because the office reads the file directly.")
    later = assistant("I decided to use zoneinfo, because it needs no dependency.")
    _, after = compacted([SYSTEM, user("Keep TEXT?"), decided, later, *chat(140)[1:]], ABOVE)
    text = after[1]["content"]
    assert "## What Happened" in text
    assert "## Decisions\n- I decided to keep TEXT" in text
    told = [text.index(f"problem {number} ") for number in (5, 40, 70) if f"problem {number} " in text]
    assert told == sorted(told)


def test_a_model_is_asked_for_facts_from_the_conversation_only_in_their_order() -> None:
    text = rules(PromptWording(template="suna", language="en", headings=()), Stage.LEAF)
    assert "in the order in which it happened" in text
    assert "only facts from the conversation" in text


def test_the_latest_state_is_the_last_thing_it_says() -> None:
    _, after = compacted(chat(140), ABOVE)
    text = after[1]["content"]
    assert text.rindex("\n## ") == text.index("\n## Latest State")


def test_a_second_run_changes_nothing() -> None:
    assert is_stable(chat(140), ABOVE)
    assert size(compacted(chat(500), SUNA)[1], SUNA) > 0
