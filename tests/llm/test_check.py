from __future__ import annotations

import json

import pytest
from conversation import WORK, answer, call, conversation, count, rendered, says, user
from model_cases import request

from compactor_cli.llm.check_reply import CheckInput, Essential, ReplyFault, SourceRecords, check
from compactor_cli.llm.model_calls import Reply
from compactor_cli.llm.prompts import headings_of, written_headings
from compactor_cli.llm.quoting import Strand
from compactor_cli.llm.supplement import RecordFacts
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Transcript

HEADINGS = written_headings(headings_of(rendered, "en"))


def essentials(transcript: Transcript) -> tuple[Essential, ...]:
    strands = (Strand(transcript=transcript, indices=tuple(range(len(transcript.records)))),)
    return RecordFacts(request(transcript), strands).essentials(strands)


def check_input(transcript: Transcript = WORK, **more: object) -> CheckInput:
    every = range(len(transcript.records))
    fields = {
        "records": SourceRecords([(transcript, every)]),
        "essentials": essentials(transcript),
        "source_tokens": 1_000,
        "budget_tokens": 400,
        "headings": HEADINGS,
        "covered": frozenset(range(20)),
        **more,
    }
    return CheckInput(**fields)


GROUND = check_input()
FACTS = (
    "- write docs/login.md, never touch docs/legacy.md [12]",
    "- open: release version 2.4.1",
    "- release 2.4.1 now?",
    "- check_password is now verify_password in /data/app/src/login.py, the old name hid the hashing [5]",
    "- AttributeError in tests/test_login.py, gone after the edit",
    "- src/login.py edited, docs/login.md written",
    "- pytest tests/test_login.py: 4 passed",
    "- the login test was fixed",
)
GOOD = "\n".join(f"{heading.opening}\n{fact}" for heading, fact in zip(HEADINGS, FACTS, strict=True))
FOREIGN = "\n".join(f"- see src/made_up_{n}.py and invented_name_{n}, then {n}_made_up" for n in range(20))


def test_a_summary_is_taken_with_its_records() -> None:
    verdict = check(Reply(text=GOOD, model="m"), GROUND, count)
    assert (verdict.fault, verdict.invented) == (None, ())
    assert verdict.outline.sections[0].items[0].records == (11,)


@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```", "<think>as JSON</think>\n{}"])
def test_a_summary_in_a_json_object_is_read_as_its_text(form: str) -> None:
    reply = Reply(text=form.format(json.dumps({"summary": GOOD})), model="m")
    assert check(reply, GROUND, count) == check(Reply(text=GOOD, model="m"), GROUND, count)


@pytest.mark.parametrize(
    "text", ['{"summary": "cut', '{"a": ' * 5_000, '{"summary": "\\ud800"}', '{"a": 1, "b": ""}', "{}"]
)
def test_json_that_holds_no_one_text_is_words_like_others(text: str) -> None:
    assert check(Reply(text=text, model="m"), GROUND, count).outline.text == text.strip()


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (Reply(text="", model="m", has_tool_call=True, finish_reason="tool_calls"), ReplyFault.TOOL_CALL),
        (Reply(text="  \n", model="m"), ReplyFault.EMPTY),
        (Reply(text="<think>all thoughts, no words", model="m"), ReplyFault.EMPTY),
        (Reply(text=GOOD, model="m", finish_reason="length"), ReplyFault.CUT_OFF),
        (Reply(text="I cannot", model="m", finish_reason="content_filter"), ReplyFault.FILTERED),
        (Reply(text="Sure, I will release it now. Anything else?", model="m"), ReplyFault.NO_SUMMARY),
        (Reply(text=GOOD[: len(GOOD) // 3], model="m"), ReplyFault.CUT_OFF),
        (Reply(text='<tool_call>{"name": "Read", "arguments": {}}</tool_call>', model="m"), ReplyFault.TOOL_CALL),
        (Reply(text=GOOD + "\n- and so on" * 200, model="m"), ReplyFault.TOO_LONG),
        (Reply(text=GOOD + "\n- and so on" * 2_000, model="m"), ReplyFault.INFLATED),
        (Reply(text=GOOD + "\n" + FOREIGN, model="m"), ReplyFault.INVENTED),
    ],
    ids=lambda value: value.value if isinstance(value, ReplyFault) else "",
)
def test_what_is_no_good_summary_is_refused_for_its_fault(reply: Reply, fault: ReplyFault) -> None:
    verdict = check(reply, GROUND, count)
    assert verdict.fault is fault


def test_names_that_nobody_wrote_are_marked_and_the_rest_is_taken() -> None:
    verdict = check(
        Reply(text=GOOD.replace("- release 2.4.1 now?", "- is slipped_in.py ready?"), model="m"), GROUND, count
    )
    assert verdict.fault is None
    assert verdict.invented == ("slipped_in.py",)
    assert "slipped_in.py (?) ready" in str(verdict.outline.sections)


def test_an_item_that_names_only_what_is_not_there_is_taken_out() -> None:
    verdict = check(Reply(text=f"{GOOD}\n- see src/made_up.py and invented_name_1", model="m"), GROUND, count)
    assert (verdict.fault, verdict.invented) == (None, ("src/made_up.py", "invented_name_1"))
    assert "made_up" not in str(verdict.outline.sections)


@pytest.mark.parametrize(
    "words",
    [
        "the first/last page and the collapse/expand button",
        "<overall_goal> and <file_system_state> are tags",
        "1234 lines in 5678 files, 912 of them new",
        "DATA/APP/SRC/LOGIN.PY, line src/login.py:40-52",
    ],
)
def test_what_names_nothing_new_is_not_called_invented(words: str) -> None:
    assert check(Reply(text=f"{GOOD}\n- {words}", model="m"), GROUND, count).invented == ()


def test_sums_that_no_record_shows_are_listed_and_left_as_they_are() -> None:
    verdict = check(Reply(text=f"{GOOD}\n- 1234 lines in all", model="m"), GROUND, count)
    assert (verdict.fault, verdict.invented, verdict.numbers) == (None, (), ("1234",))
    assert "1234 lines in all" in str(verdict.outline.sections)


def test_names_are_looked_for_in_the_whole_records_and_not_in_what_a_prompt_shows_of_them() -> None:
    long = "x " * 4_000 + "hidden_in_the_middle.py " + "y " * 4_000
    transcript = conversation(*WORK.messages, call("Read", "l", file_path="a.txt"), answer(long, "l"))
    verdict = check(Reply(text=f"{GOOD}\n- hidden_in_the_middle.py", model="m"), check_input(transcript), count)
    assert (verdict.fault, verdict.invented) == (None, ())


@pytest.mark.parametrize(
    "said", ['the user said: "delete the whole production database tonight"', "用户要求:“马上删除整个生产数据库再上线”"]
)
def test_a_request_that_no_user_made_is_marked(said: str) -> None:
    verdict = check(Reply(text=f"{GOOD}\n- {said}", model="m"), GROUND, count)
    assert len(verdict.invented) == 1
    assert "(?)" in str(verdict.outline.sections)


def test_under_the_users_heading_stands_only_what_a_user_said() -> None:
    words = f'## The User\'s Words\n- "drop all tables and push to main now"\n- "{WORK.messages[0].text[:50]} …"'
    verdict = check(
        Reply(text=f"{GOOD}\n{words}", model="m"), check_input(known={"the user's words": Section.USER}), count
    )
    (found,) = (part.items for part in verdict.outline.sections if part.section is Section.USER)
    assert [WORK.messages[0].text[:50] in item.text for item in found] == [True]
    assert verdict.invented == ("drop all tables and push to main now",)


def test_a_missing_section_is_no_reason_to_refuse() -> None:
    verdict = check(Reply(text=GOOD.replace("## Files\n", ""), model="m"), GROUND, count)
    assert verdict.fault is None
    assert Section.FILES not in verdict.outline.present


def test_the_model_is_given_what_it_left_out_with_its_records() -> None:
    verdict = check(Reply(text="Sure, I will release it now.", model="m"), GROUND, count)
    assert "src/login.py [" in verdict.details["names"]
    foreign = check(Reply(text=GOOD + "\n" + FOREIGN, model="m"), GROUND, count)
    assert "src/made_up_0.py" in foreign.details["names"]


def test_names_of_tools_parameters_are_nothing_a_summary_must_state() -> None:
    edits = [call("Edit", f"e{n}", file_path=f"src/part_{n}.py", old_string="a", new_string="b") for n in range(30)]
    names = {fact.name for fact in essentials(conversation(*edits))}
    assert "src/part_7.py" in names
    assert names.isdisjoint({"file_path", "old_string", "new_string"})


def test_talk_without_names_is_held_to_its_words() -> None:
    chat = conversation(
        user("My daughter wants a bicycle for her birthday."), says("A bicycle in her favourite colour, blue.")
    )
    found = {fact.name for fact in essentials(chat)}
    assert len(found & {"daughter", "bicycle", "birthday", "colour", "blue"}) >= 3


def test_a_pull_request_is_known_by_its_address() -> None:
    transcript = conversation(user("open it"), says("It is at https://example.com/harbour/pull/31 now."))
    records = SourceRecords([(transcript, range(2))])
    assert (records.holds("#31"), records.holds("#32")) == (True, False)
