"""`hermes`: the Hermes context compressor, sentence by sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from preset_cases import SYSTEM, assistant, call, chat, compacted, is_stable, planned, preset, result, size, user, words

from compactor_cli.model.plan import Tier
from compactor_cli.model.settings import Budget, Settings, Size
from compactor_cli.plan.layout import scaled_tokens, tiered_tokens
from compactor_cli.presets import load_preset

HERMES = preset("hermes")


def at_pressure(ratio: float) -> Settings:
    return preset("hermes", window_tokens=int(size(chat(80), HERMES) / ratio))


def test_is_what_is_built_in() -> None:
    assert load_preset("hermes").settings == replace(Settings(), preset="hermes", template="hermes")


def test_the_head_is_the_system_and_the_first_two_turns_within_4_000_tokens() -> None:
    done, _ = compacted(chat(80), HERMES)
    assert done.plan.spans[0].stop == 9
    assert (HERMES.keep.head_turns, HERMES.keep.head_tokens) == (2, 4_000)


def test_the_tail_walks_back_within_16_000_tokens() -> None:
    plan = planned(chat(80), HERMES)
    whole = chat(80)
    tail = plan.spans[-1]
    assert size(whole[tail.start :], HERMES) <= 16_000
    assert size(whole[tail.start - 3 :], HERMES) > 16_000


def test_the_middle_is_everything_between() -> None:
    assert [span.name for span in planned(chat(80), HERMES).spans] == ["", "summary", ""]


@pytest.mark.parametrize(
    ("ratio", "tier", "changes"),
    [
        (0.6, Tier.NONE, False),
        (0.7, Tier.LOG, False),
        (0.8, Tier.WARN, False),
        (0.9, Tier.COMPACT, True),
        (0.97, Tier.EMERGENCY, True),
    ],
)
def test_pressure_only_logs_then_warns_then_compacts(ratio: float, tier: Tier, changes: bool) -> None:
    plan = planned(chat(80), at_pressure(ratio))
    assert (plan.tier, plan.changes) == (tier, changes)


def test_an_emergency_compacts_harder() -> None:
    assert planned(chat(80), at_pressure(0.97)).tokens_kept < planned(chat(80), at_pressure(0.9)).tokens_kept


def test_a_plain_threshold_can_be_set() -> None:
    tokens = size(chat(80), HERMES)
    assert planned(chat(80), preset("hermes", window_tokens=int(tokens / 0.82), compact_ratio=0.8)).changes


def test_a_long_tool_result_of_the_middle_keeps_its_first_and_last_800_characters() -> None:
    long = [SYSTEM, user("first"), assistant("yes"), user("second"), assistant("yes")]
    long += [call("x"), result("x", "a" * 70_000), *chat(45)[1:]]
    settings = replace(HERMES, target=Size(tokens=size(chat(45), HERMES) + 2_000))
    done, after = compacted(long, settings)
    short = after[6]["content"]
    assert done.report.pruned == {"tool-result": 1}
    assert short == "a" * 800 + "\n[… 68400 characters left out …]\n" + "a" * 800


def test_the_summary_is_reference_only_and_never_says_next_steps() -> None:
    _, after = compacted(chat(80), HERMES)
    (summary,) = [message["content"] for message in after if "[compact/1 " in str(message["content"])]
    assert summary.startswith("Reference only")
    assert "no instructions" in summary
    assert "## Task Context" in summary
    assert "Next Steps" not in summary


def test_an_existing_summary_is_updated_not_written_anew() -> None:
    first = [SYSTEM, user("We keep the column as TEXT for the harbour office."), *chat(80)[1:]]
    _, after = compacted(first, preset("hermes", keep={"head_turns": 0}))
    grown = [*after, *chat(140)[400:]]
    done, again = compacted(grown, preset("hermes", keep={"head_turns": 0}))
    assert done.changed
    summaries = [message["content"] for message in again if "[compact/1 " in str(message["content"])]
    assert len(summaries) == 1
    assert "We keep the column as TEXT for the harbour office." in summaries[0]


def test_the_budget_by_its_table_jumps_and_the_default_does_not() -> None:
    assert (tiered_tokens(29_999), tiered_tokens(30_000)) == (4_499, 3_000)
    assert (scaled_tokens(10_000), scaled_tokens(30_000), scaled_tokens(100_000)) == (2_000, 3_000, 5_000)
    assert (tiered_tokens(9_999), tiered_tokens(99_999), tiered_tokens(100_000)) == (1_999, 9_999, 5_000)


def test_what_is_asked_for_as_focus_is_kept_first() -> None:
    notes = [
        assistant(f"Storm {number}: etc/{name}_{number}.conf says {number * 7} now.")
        for number in range(150)
        for name in ("alarm", "gauge", "cable", "modem")
    ]
    messages = [SYSTEM, user("Tell me about the stations."), *notes, user("Thanks."), assistant("Done.")]
    short = replace(preset("hermes", keep={"tail_tokens": 500}), budget=Budget(size=Size(tokens=2_500)))
    plain, _ = compacted(messages, short)
    focused, _ = compacted(messages, replace(short, focus="modem"))
    assert focused.summary_text.count("modem_") > plain.summary_text.count("modem_")


def test_pairs_are_kept_or_summarised_as_one() -> None:
    call_and_results = [call("a"), result("a", words(200)), call("b"), result("b", words(200))]
    messages = [SYSTEM, *chat(80)[1:], *call_and_results]
    done, after = compacted(messages, HERMES)
    calls = {item["id"] for message in after for item in message.get("tool_calls") or ()}
    assert done.changed
    assert calls == {message["tool_call_id"] for message in after if message["role"] == "tool"}


def test_a_second_run_changes_nothing() -> None:
    assert is_stable(chat(80), HERMES)
