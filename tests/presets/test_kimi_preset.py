"""`kimi`: Kimi Code CLI's SimpleCompaction, sentence by sentence."""

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
    transcript,
    user,
)

from compactor_cli.llm.prompts import PromptInput, PromptWording, Stage, prompt, rules
from compactor_cli.llm.quoting import flatten
from compactor_cli.model.summary import Section
from compactor_cli.render.template import load_template

KIMI = preset("kimi")


def test_starts_when_tokens_and_the_reserve_of_50_000_reach_the_window() -> None:
    tokens = size(chat(60), KIMI)
    assert not planned(chat(60), preset("kimi", window_tokens=tokens + 50_001)).changes
    assert planned(chat(60), preset("kimi", window_tokens=tokens + 50_000)).changes


def test_or_at_85_percent_of_the_window_whichever_comes_first() -> None:
    roomy = preset("kimi", window_tokens=1_000_000)
    assert roomy.trigger.compact_ratio == 0.85
    assert "850,000, where compaction starts" in planned(chat(2), roomy).reason


def test_keeps_the_newest_two_messages_and_the_tool_messages_that_follow_them() -> None:
    messages = [*chat(60), user("And now?"), call("x"), result("x", "seen")]
    _, after = compacted(messages, KIMI)
    assert after[-3:] == messages[-3:]
    assert roles(after) == ["system", "user", "user", "assistant", "tool"]


def test_the_newest_two_may_be_a_call_and_an_answer() -> None:
    _, after = compacted(chat(60), KIMI)
    assert roles(after) == ["system", "user", "assistant", "tool", "assistant"]


def test_everything_before_is_summarised() -> None:
    plan = planned(chat(60), KIMI)
    assert [(span.start, span.stop, span.name) for span in plan.spans] == [
        (0, 1, ""),
        (1, 238, "summary"),
        (238, 241, ""),
    ]


def test_fewer_than_that_stay_unchanged_without_a_model_call() -> None:
    messages = [SYSTEM, user("word " * 9_000)]
    done, after = compacted(messages, KIMI)
    assert not done.changed
    assert after == messages


def test_the_priorities_are_stated_in_order() -> None:
    text = rules(PromptWording(template="kimi", language="en", headings=()), Stage.LEAF)
    order = ("current state of the task", "Errors", "Code", "The system around", "Decisions", "still to do")
    places = [text.index(word) for word in order]
    assert places == sorted(places)


def test_the_rules_say_what_must_stay_and_what_is_condensed() -> None:
    text = rules(PromptWording(template="kimi", language="en", headings=()), Stage.LEAF)
    assert "Must stay: errors, stack traces, working solutions, the current task" in text
    assert "below 20 lines stays whole" in text
    assert "alike discussions once" in text
    assert "keep the lesson" in text


def test_the_prompt_follows_the_language_of_the_conversation() -> None:
    assert "错误" in rules(PromptWording(template="kimi", language="zh", headings=()), Stage.LEAF)


def test_the_sections_are_xml_elements_with_its_names() -> None:
    names = {heading.name["name"] for heading in load_template("kimi").headings.values()}
    assert names == {
        "current_focus",
        "environment",
        "completed_tasks",
        "active_issues",
        "code_state",
        "important_context",
    }
    assert load_template("kimi").headings[Section.FILES].name == {"name": "code_state"}


def test_the_result_is_one_user_message_that_says_the_context_was_compacted() -> None:
    _, after = compacted(chat(60), KIMI)
    assert after[1]["role"] == "user"
    assert after[1]["content"].startswith("Previous context has been compacted")
    assert "<current_focus>" in after[1]["content"]


def test_a_second_run_changes_nothing() -> None:
    assert is_stable(chat(60), KIMI)


def test_a_call_is_never_parted_from_its_result_by_the_count() -> None:
    messages = [*chat(60), call("x"), assistant("meanwhile"), result("x", "late")]
    _, after = compacted(messages, KIMI)
    assert after[-3:] == messages[-3:]


def test_a_model_is_given_each_message_with_its_role_and_its_text_only() -> None:
    thought = {**assistant("Here is what I found."), "reasoning_content": "Let me think about it."}
    messages = [SYSTEM, user("Look."), thought, call("x", path="a.py"), result("x", "value = 1")]
    made = transcript(messages)
    texts = [block.text for block in flatten(made, range(1, 5))]
    assert texts[0].startswith("<<2 user>>")
    assert texts[1].startswith("<<3 assistant>>")
    assert "Let me think" not in "".join(texts)
    assert "value = 1" in texts[3]


def test_a_custom_instruction_is_appended_when_given() -> None:
    wording = PromptWording(template="kimi", language="en", headings=(), instructions="name the tests")
    assert "name the tests" in prompt(wording, PromptInput(stage=Stage.LEAF, texts=("text",), tokens=100))


def test_a_request_that_does_not_stay_is_named_with_its_size_unless_the_summary_holds_it() -> None:
    steps = [message for number in range(9) for message in (call(f"c{number}"), result(f"c{number}", "seen " * 300))]
    long = user(f"{' '.join(f'word{number}' for number in range(400))} Why?")
    done, _ = compacted([SYSTEM, long, *steps], KIMI)
    (warning,) = done.report.warnings
    assert "the newest message of the user" in warning
    assert f"{size([long], KIMI):,} tokens" in warning
    assert not compacted([SYSTEM, user("Fix the gauge."), *steps], KIMI)[0].report.warnings
    assert not compacted([SYSTEM, user("Fix src/gauge.py and src/clock.py."), *steps], KIMI)[0].report.warnings
    where = user("Working directory: /srv/tide\nFix the gauge in /srv/tide/src/gauge.py.")
    assert not compacted([SYSTEM, where, *steps], KIMI)[0].report.warnings
