"""`qwen-agent`: truncation, newest first, sentence by sentence."""

from __future__ import annotations

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

from compactor_cli.model.settings import Settings

QWEN = preset("qwen-agent")


def at(tokens: int) -> Settings:
    return preset("qwen-agent", target=tokens)


def test_starts_above_58_000_tokens_and_comes_down_to_them() -> None:
    assert "58,001, where compaction starts" in planned(chat(2), QWEN).reason
    plan = planned(chat(200), QWEN)
    assert 57_000 < plan.tokens_kept <= 58_000


def test_the_system_is_protected() -> None:
    long_system = {"role": "system", "content": words(3_000)}
    done, after = compacted([long_system, *chat(20)[1:]], at(1_000))
    assert after[0] == long_system
    assert "system records alone" in done.report.over_target


def test_it_walks_back_from_the_newest() -> None:
    _, after = compacted(chat(60), at(3_000))
    assert after[1:] == chat(60)[-len(after) + 1 :] or after[2:] == chat(60)[-len(after) + 2 :]


def test_a_user_message_that_does_not_fit_is_cut_at_its_end_and_the_walk_stops() -> None:
    messages = [SYSTEM, user("first"), assistant("one"), user(words(5_000)), assistant("two"), user("Go on.")]
    done, after = compacted(messages, at(1_000))
    assert roles(after) == ["system", "user", "assistant", "user"]
    assert after[1]["content"].startswith("water water")
    assert after[1]["content"].endswith("characters left out]")
    assert 900 < size(after, QWEN) <= 1_000
    assert not done.report.warnings


def test_the_newest_message_of_the_user_keeps_its_end_and_a_warning_says_that_it_was_cut() -> None:
    messages = [SYSTEM, user("first"), assistant("one"), user(f"Look: {words(5_000)} Why?"), assistant("two")]
    done, after = compacted(messages, at(1_000))
    assert roles(after) == ["system", "user", "assistant"]
    assert after[1]["content"].startswith("Look: water")
    assert after[1]["content"].endswith("water Why?")
    (warning,) = done.report.warnings
    assert "the newest message of the user" in warning
    assert "is cut" in warning


def test_a_function_result_that_does_not_fit_is_cut_in_its_middle_with_both_ends() -> None:
    messages = [SYSTEM, user("first"), call("x"), result("x", f"begin {words(5_000)} end"), assistant("two")]
    _, after = compacted(messages, at(1_000))
    text = next(message["content"] for message in after if message["role"] == "tool")
    assert text.startswith("begin water")
    assert text.endswith("water end")


def test_and_the_walk_goes_on() -> None:
    long = [call("x"), result("x", words(5_000)), assistant("two")]
    _, after = compacted([SYSTEM, user("first"), *long], at(1_000))
    assert roles(after) == ["system", "user", "assistant", "tool", "assistant"]


def test_an_answer_that_does_not_fit_stops_the_walk() -> None:
    messages = [SYSTEM, user("first"), assistant(words(5_000)), user("second"), assistant("two")]
    _, after = compacted(messages, at(1_000))
    assert after == [SYSTEM, *messages[-2:]]


def test_a_call_and_its_result_stay_or_go_as_one() -> None:
    for tokens in range(300, 3_000, 230):
        _, after = compacted(chat(30), at(tokens))
        calls = [item["id"] for message in after for item in message.get("tool_calls") or ()]
        assert calls == [message["tool_call_id"] for message in after if message["role"] == "tool"]


def test_a_second_run_changes_nothing() -> None:
    assert is_stable(chat(60), at(3_000))
