"""`l06`: three layers with an archive, sentence by sentence."""

from __future__ import annotations

import json
from dataclasses import replace

from click.testing import CliRunner
from preset_cases import (
    SYSTEM,
    assistant,
    call,
    chat,
    compacted,
    is_stable,
    planned,
    preset,
    result,
    roles,
    size,
    user,
    words,
)

from compactor_cli.cli.toolbox import tool_schema
from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import Size
from compactor_cli.plan.tokens import counter_for

L06 = preset("l06")
ASKED = [*chat(8), user("Please compact."), call("z", "compact", focus="module_3")]


def test_tool_results_older_than_the_newest_6_messages_are_cut_to_200_characters() -> None:
    done, after = compacted(chat(8), L06)
    short = [message["content"] for message in after if message["role"] == "tool"]
    assert all(len(text) == 200 + len("... [truncated]") for text in short[:-2])
    assert all(text.endswith("... [truncated]") for text in short[:-2])
    assert done.report.pruned == {"micro": 6}


def test_the_newest_6_messages_stay_as_they_are() -> None:
    _, after = compacted(chat(8), L06)
    assert after[-6:] == chat(8)[-6:]


def test_no_message_is_added_or_removed_by_it() -> None:
    _, after = compacted(chat(8), L06)
    assert roles(after) == roles(chat(8))


def test_it_applies_below_the_threshold_and_below_a_target() -> None:
    assert planned(chat(8), L06).edits
    assert planned(chat(8), replace(L06, target=Size(tokens=40_000))).edits


def test_the_threshold_is_50_000_tokens_of_4_characters() -> None:
    assert counter_for(L06.tokenizer).count("a" * 4_000) == 1_000
    at = [SYSTEM, user("a" * 4 * (50_000 - 4 - size([SYSTEM], L06)))]
    assert size(at, L06) == 50_000
    assert not planned(at, L06).changes
    assert planned([*at, assistant("a")], L06).changes


def test_everything_becomes_a_summary_and_an_acknowledgement() -> None:
    done, after = compacted(chat(800), L06)
    assert roles(after) == ["system", "user", "assistant"]
    assert after[1]["content"].startswith(f"[Conversation compressed. Transcript: {done.report.sha256[:16]}]")
    assert after[2]["content"] == "Understood. I have the context from the summary. Continuing."


def test_the_summary_states_what_was_accomplished_the_current_state_and_key_decisions() -> None:
    decided = assistant("I decided to keep TEXT, because the office reads the file directly.")
    later = assistant("I decided to use zoneinfo, because it needs no dependency.")
    _, after = compacted([*chat(400), user("Keep TEXT?"), decided, later, *chat(400)[1:]], L06)
    assert "Current state:" in after[1]["content"]
    assert "Accomplished:" in after[1]["content"]
    assert "Key decisions:" in after[1]["content"]


def test_a_call_of_compact_in_the_newest_turn_compacts_at_any_size() -> None:
    messages = [*ASKED, result("z", "Compacting.")]
    done, after = compacted(messages, L06)
    assert done.plan.reason == "the newest turn calls the tool compact"
    assert roles(after) == ["system", "user", "assistant"]


def test_its_focus_is_what_is_kept_first() -> None:
    notes = [
        assistant(f"Storm {number}: etc/{name}_{number}.conf says {number * 7} now.")
        for number in range(150)
        for name in ("alarm", "gauge", "cable", "modem")
    ]
    conversation = [SYSTEM, user("Tell me about the stations."), *notes, user("Compact now.")]
    plain, _ = compacted([*conversation, call("z", "compact"), result("z", "ok")], L06)
    focused, _ = compacted([*conversation, call("z", "compact", focus="modem"), result("z", "ok")], L06)
    assert focused.summary_text.count("modem_") > plain.summary_text.count("modem_")


def test_a_call_that_still_waits_for_its_result_stays() -> None:
    _, after = compacted(ASKED, L06)
    assert roles(after) == ["system", "user", "assistant", "assistant"]
    assert after[-1]["tool_calls"][0]["function"]["name"] == "compact"


def test_a_call_in_an_older_turn_does_not_compact_again() -> None:
    messages = [*ASKED, result("z", "ok"), user("Go on."), assistant(words(3))]
    assert planned(messages, L06).summary_tokens == 0


def test_the_archive_is_named_so_that_nothing_is_lost() -> None:
    done, after = compacted(chat(800), L06)
    assert f"[compact/1 transcript={done.report.sha256[:16]} records=2-" in after[1]["content"]


def test_a_second_run_changes_nothing() -> None:
    assert is_stable(chat(8), L06)
    assert is_stable(chat(800), L06)
    assert is_stable(ASKED, L06)


def test_the_definition_of_the_tool_can_be_printed_for_an_agent_to_register() -> None:
    printed = CliRunner().invoke(tool_schema, [], standalone_mode=False)
    function = json.loads(printed.output)["function"]
    assert function["name"] == L06.trigger.tool
    assert list(function["parameters"]["properties"]) == ["focus"]
    printed = CliRunner().invoke(tool_schema, ["--form", "anthropic"], standalone_mode=False)
    assert json.loads(printed.output)["input_schema"] == function["parameters"]


def test_a_preset_without_a_tool_has_none_to_print() -> None:
    printed = CliRunner().invoke(tool_schema, ["--preset", "kimi"], standalone_mode=False)
    assert isinstance(printed.exception, UsageError)
