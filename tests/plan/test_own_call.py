"""A compaction never triggers a compaction."""

from __future__ import annotations

import pytest
from plan_builders import Words, answer, call, exchanges, summary, system, transcript, user

from compactor_cli.group.exchanges import group
from compactor_cli.llm.prompts import LANGUAGES, PromptInput, PromptWording, Stage, prompt
from compactor_cli.model.settings import Settings, Size
from compactor_cli.model.transcript import Message, Role, Text
from compactor_cli.plan.planner import is_summary_call, make_plan

CLAUDE = (
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\n"
    "Your task is to create a detailed summary of the conversation so far, paying close attention to the user's"
    " explicit requests and your previous actions."
)


def said(text: str) -> Message:
    return Message(role=Role.USER, parts=(Text(text=text),))


def ours(language: str, stage: Stage) -> str:
    wording = PromptWording(template="hermes", language=language, headings=(), focus="", instructions="")
    return prompt(wording, PromptInput(stage=stage, texts=("<<1 user>>\nhello",), tokens=500, first="1", last="1"))


@pytest.mark.parametrize("text", [CLAUDE, *(ours(lang, stage) for lang in LANGUAGES for stage in Stage)])
def test_a_request_for_a_summary_is_left_alone(text: str) -> None:
    messages = [system(), user(), *exchanges(60), said(text)]
    assert is_summary_call(messages)
    made = transcript(messages)
    plan = make_plan(made, group(made.messages), Settings(target=Size(tokens=1_000)), Words())
    assert not plan.changes
    assert plan.reason == "it is itself a request for a summary"


def test_a_conversation_that_goes_on_after_one_is_not() -> None:
    assert not is_summary_call([said(CLAUDE), *exchanges(3), user()])
    assert not is_summary_call([user(), *exchanges(3)])
    assert not is_summary_call([])


def test_a_summary_that_quotes_the_request_is_none() -> None:
    assert not is_summary_call([summary(f"What was done.\n{CLAUDE}")])


def test_words_deep_in_a_message_are_a_quotation() -> None:
    assert not is_summary_call([said("Explain this log to me. " * 60 + CLAUDE)])


def test_results_of_tools_after_it_do_not_hide_it() -> None:
    assert is_summary_call([user(), said(CLAUDE), call("x"), answer("x")])
