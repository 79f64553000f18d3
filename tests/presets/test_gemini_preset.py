"""`gemini` and `qwen-code`: the snapshot of Gemini CLI and Qwen Code, sentence by sentence."""

from __future__ import annotations

import json
from dataclasses import replace

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

from compactor_cli.llm.prompts import PromptWording, Stage, own_words, rules
from compactor_cli.presets import load_preset

GEMINI = preset("gemini")


def test_starts_at_70_percent_of_the_window() -> None:
    tokens = size(chat(60), GEMINI)
    assert not planned(chat(60), preset("gemini", window_tokens=int(tokens / 0.69))).changes
    assert planned(chat(60), preset("gemini", window_tokens=int(tokens / 0.71))).changes


def test_the_oldest_70_percent_by_json_characters_are_summarised_and_the_newest_30_kept() -> None:
    messages = chat(80)
    plan = planned(messages, GEMINI)
    start = plan.spans[-1].start
    chars = [len(json.dumps(message)) for message in messages[1:]]
    before = sum(chars[: start - 1])
    assert before >= 0.7 * sum(chars) > before - sum(chars[start - 5 : start - 1])


def test_the_cut_moves_forward_to_the_next_user_message() -> None:
    messages = [SYSTEM, user("a"), *chat(1, 300)[2:], user("b"), assistant(words(800)), user("c"), assistant("d")]
    _, after = compacted(messages, GEMINI)
    assert after[-2:] == messages[-2:]


def test_that_is_not_a_function_result() -> None:
    blocks = [{"type": "tool_result", "tool_use_id": "t", "content": "seen"}]
    use = [{"type": "tool_use", "id": "t", "name": "run", "input": {}}]
    answered = [{"role": "assistant", "content": use}, {"role": "user", "content": blocks}]
    messages = [user(words(3_000)), assistant(words(10)), *answered, user("next"), assistant("done")]
    _, after = compacted(messages, GEMINI)
    assert after[-2:] == messages[-2:]
    assert len(after) == 4


def test_without_such_a_message_everything_is_summarised_if_the_model_spoke_last() -> None:
    messages = [SYSTEM, user("go"), *chat(60)[2:5], assistant(words(3_000))]
    _, after = compacted(messages, GEMINI)
    assert roles(after) == ["system", "user", "assistant"]


def test_and_what_follows_the_last_user_message_stays_while_a_tool_works() -> None:
    messages = [*chat(30), user("go"), *chat(30, 400)[2:5], call("z")]
    _, after = compacted([*messages[:-4], call("y"), result("y", words(9_000)), call("z")], GEMINI)
    assert after[-4] == user("go")


def test_the_model_first_thinks_in_a_scratchpad() -> None:
    assert "<scratchpad>" in rules(PromptWording(template="gemini", language="en", headings=()), Stage.LEAF)


def test_which_is_removed_from_the_result() -> None:
    assert own_words("<scratchpad>let me see</scratchpad>\n<state_snapshot>…") == "<state_snapshot>…"


def test_the_snapshot_has_its_five_sections() -> None:
    plan = call("p", "update_plan", plan=[{"step": "mend it", "status": "in_progress"}])
    decided = assistant("I decided to keep TEXT, because the office reads the file directly.")
    later = assistant("I decided to use zoneinfo, because it needs no dependency.")
    start = [SYSTEM, user("Keep TEXT?"), plan, result("p", "ok"), decided, later]
    edit = [call("w", "write_file", path="rules.py", content="a = 1"), result("w", "ok")]
    _, after = compacted([*start, *edit, *chat(60)[1:]], GEMINI)
    text = after[1]["content"]
    names = ("overall_goal", "key_knowledge", "file_system_state", "recent_actions", "current_plan")
    assert [text.index(f"<{name}>") for name in names] == sorted(text.index(f"<{name}>") for name in names)
    assert all(f"</{name}>" in text for name in names)
    assert text.index("<state_snapshot>") < text.index("<overall_goal>")
    assert text.endswith("</state_snapshot>")


def test_the_plan_says_what_is_done_in_progress_and_to_do() -> None:
    steps = [("read it", "completed"), ("mend it", "in_progress"), ("test it", "pending")]
    plan = call("p", "update_plan", plan=[{"step": step, "status": status} for step, status in steps])
    _, after = compacted([SYSTEM, user("go"), plan, result("p", "ok"), *chat(60)[1:]], GEMINI)
    text = after[1]["content"]
    assert "[IN PROGRESS] mend it" in text
    assert "[TODO] test it" in text
    assert "[DONE] read it" in text


def test_the_result_is_the_snapshot_of_the_user_an_acknowledgement_of_the_model_and_the_kept_part() -> None:
    _, after = compacted(chat(60), GEMINI)
    assert roles(after)[:4] == ["system", "user", "assistant", "user"]
    assert after[2]["content"] == GEMINI.acknowledgement
    assert after[3:] == chat(60)[-len(after) + 3 :]


def test_qwen_code_is_the_same() -> None:
    assert replace(load_preset("qwen-code").settings, preset="gemini") == load_preset("gemini").settings


def test_a_second_run_changes_nothing() -> None:
    assert is_stable(chat(60), GEMINI)
