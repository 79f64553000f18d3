from __future__ import annotations

import string

import pytest
from conversation import rendered

from compactor_cli.llm import prompts
from compactor_cli.llm.check_reply import ReplyFault
from compactor_cli.llm.prompts import (
    ASKED,
    LANGUAGES,
    PromptInput,
    PromptWording,
    Stage,
    headings_of,
    read_reply,
    written_headings,
)
from compactor_cli.render.template import template_names


def wording(language: str = "en", template: str = "hermes", **more: str) -> PromptWording:
    headings = tuple(heading for heading in headings_of(rendered, language) if heading.section in ASKED)
    return PromptWording(template=template, language=language, headings=headings, **more)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("stage", list(Stage))
def test_the_rules_name_every_section_by_its_heading_and_leave_no_gap(language: str, stage: Stage) -> None:
    text = prompts.rules(wording(language), stage)
    assert all(heading.opening in text for heading in wording(language).headings)
    assert "{{" not in text


@pytest.mark.parametrize("template", template_names())
def test_each_template_has_rules(template: str) -> None:
    assert prompts.rules(wording(template=template), Stage.LEAF)


def test_the_rules_are_the_same_bytes_whatever_the_transcript() -> None:
    one, other = wording(focus="a.py", instructions="be brief"), wording()
    assert prompts.rules(one, Stage.LEAF) == prompts.rules(other, Stage.LEAF)


def test_the_prompt_holds_instructions_first_then_the_material_then_the_order_to_begin() -> None:
    prompt_input = PromptInput(
        stage=Stage.LEAF, texts=("<<3 user>>\nhi", "<<4 tool>>\nx"), tokens=500, first="3", last="4"
    )
    text = prompts.prompt(wording(focus="auth.py", instructions="name the tests"), prompt_input)
    places = [text.index(part) for part in ("500 tokens", "auth.py", "name the tests", "<<transcript>>", "<<3 user>>")]
    assert places == sorted(places)
    assert text.index("<<end of transcript>>") < text.index("records 3 to 4")
    assert prompts.marks(text) == ("3", "4")


def test_a_previous_summary_comes_with_the_order_to_update_it() -> None:
    prompt_input = PromptInput(stage=Stage.MERGE, texts=("a", "b"), tokens=500, previous="old facts")
    text = prompts.prompt(wording(), prompt_input)
    assert "<<previous summary>>\nold facts\n<<end of previous summary>>" in text
    assert "up to date" in text
    assert "all 3 parts" in text


def test_another_language_is_asked_for_in_english() -> None:
    text = prompts.prompt(wording("de"), PromptInput(stage=Stage.LEAF, texts=("x",), tokens=100))
    assert "the language with the code de" in text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("fault", list(ReplyFault))
def test_each_fault_can_be_stated_in_each_language(language: str, fault: ReplyFault) -> None:
    said = prompts.retry(wording(language), fault.value, {"names": "src/a.py", "detail": "7/50"})
    assert "{" not in said


def test_the_version_is_a_hash_of_the_wording() -> None:
    assert len(prompts.version()) == 12
    assert set(prompts.version()) <= set(string.hexdigits)


REPLY = """<analysis>let me think</analysis>
Here is the summary:

### Now
- fix `src/a.py` [1-3]
  - it fails [2]
**Open:**
1. write tests [9]
## Waiting for an answer
- none
## Files
- src/a.py:
  ```
  ## Now
  ```
"""


def test_a_reply_is_read_however_it_sets_off_its_headings() -> None:
    found = read_reply(REPLY, wording().headings, frozenset(range(5)))
    by_name = {part.section.value: part.items for part in found.sections}
    assert [(item.text, item.records, item.depth) for item in by_name["task"]] == [
        ("fix `src/a.py`", (0, 1, 2), 0),
        ("it fails", (1,), 1),
    ]
    # Record 9 is not covered: the item stays, the number goes.
    assert [(item.text, item.records) for item in by_name["plan"]] == [("write tests", ())]
    assert "questions" not in by_name
    assert {section.value for section in found.present} == {"task", "plan", "questions", "files"}
    assert "| " in by_name["files"][0].text


def test_sections_in_tags_are_read() -> None:
    from functools import partial

    from conversation import MARKER

    from compactor_cli.render.template import load_template, render

    kimi = headings_of(partial(render, template=load_template("kimi"), marker=MARKER), "en")
    text = "<current_focus>do it [2]</current_focus>\n<active_issues>- broken\n**To do:**\n- a\n</active_issues>"
    found = read_reply(text, kimi, frozenset({1}))
    assert [(part.section.value, part.items[0].text, part.items[0].records) for part in found.sections] == [
        ("task", "do it", (1,)),
        ("errors", "broken", ()),
        ("plan", "a", ()),
    ]
    # Nothing unanswered is no section left out: only the heading above it had to be there.
    expected = written_headings(kimi)
    assert {heading.section.value for heading in expected if heading.label} == {"questions", "plan", "decisions"}
    missing = {section.value for section in found.missing(expected)}
    assert missing
    assert not missing & {"task", "errors", "questions", "plan", "decisions"}
