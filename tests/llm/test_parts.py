"""Transcripts that are summarised in parts: what a part is given of the whole, and parts that a model gets wrong."""

from __future__ import annotations

import re

import pytest
from conversation import answer, call, conversation, says, user
from llm_server.answers import CHAT
from llm_server.client import LlmServer
from model_cases import asked, long_talk, request, summariser

from compactor_cli.llm.quoting import flatten
from compactor_cli.llm.supplement import not_shown
from compactor_cli.model.summary import Answer, Source
from compactor_cli.model.transcript import Message, Role, Thinking

LONG = long_talk(16, 6_000)


def summarised(server: LlmServer, replies: dict[str, str]) -> Answer:
    server.control(replies=replies)
    with summariser(server, "replay", rule=None) as one:
        return one.summarise(request(LONG, 6_000))


def leaves(server: LlmServer) -> list[str]:
    return [text for text in asked(server) if "<<transcript>>" in text]


def test_each_part_knows_which_it_is_and_what_the_user_wants_of_the_whole(llm_server: LlmServer) -> None:
    summarised(llm_server, {})
    found = leaves(llm_server)
    assert len(found) > 1
    places = sorted(re.findall(r"part (\d+) of (\d+)", text)[0] for text in found)
    assert places == [(str(n), str(len(found))) for n in range(1, len(found) + 1)]
    assert all("First request: Please change src/module_0/handler_0.py" in text for text in found)
    assert all("Newest request: Please change src/module_15/handler_15.py" in text for text in found)


def test_a_part_that_is_twice_no_summary_is_written_by_the_digest_and_the_others_stay(llm_server: LlmServer) -> None:
    found = summarised(llm_server, {"<<1 user>>": CHAT})
    assert (found.summary.source, found.fell_back) == (Source.MODEL, "")
    assert dict(found.refused) == {"no-summary": 2}
    assert any("the digest wrote 1" in note for note in found.notes)
    merges = [text for text in asked(llm_server) if "<<part 1>>" in text]
    assert "src/module_0/handler_0.py" in merges[0]
    asked_again = len(leaves(llm_server)) - len(set(leaves(llm_server)))
    assert asked_again == 0
    assert len(leaves(llm_server)) == len(re.findall(r"<<part \d+>>", merges[0])) + 1


def test_parts_that_are_twice_not_joined_stand_side_by_side(llm_server: LlmServer) -> None:
    found = summarised(llm_server, {"<<part 1>>": CHAT})
    assert found.summary.source is Source.MODEL
    text = request(LONG).render(found.summary)
    assert {"handle_0", "handle_15"} <= set(re.findall(r"handle_\d+", text))


def test_a_transcript_of_which_no_part_is_summarised_is_the_digests(llm_server: LlmServer) -> None:
    found = summarised(llm_server, {"<<transcript>>": CHAT})
    assert found.summary.source is Source.DIGEST


def test_what_a_part_states_is_no_fact_for_those_who_join_them() -> None:
    facts = "- src/a.py — edited\n- src/b.py — created\n- deploy on Friday"
    assert not_shown(facts, ["src/a.py was edited", "nothing else"]) == "- src/b.py — created\n- deploy on Friday"


def test_reminders_and_records_without_words_are_not_sent() -> None:
    reminder = "<system-reminder>use the todo list</system-reminder>"
    transcript = conversation(
        user(f"{reminder}mend it"),
        Message(role=Role.ASSISTANT, parts=(Thinking(text="hm"),)),
        call("Read", "r", file_path="a.py"),
        answer(f"x = 1\n{reminder}", "r"),
        user(reminder),
        says("done"),
    )
    blocks = flatten(transcript, range(6))
    assert [block.name for block in blocks] == ["1", "3", "4", "6"]
    assert not any("todo list" in block.text for block in blocks)


@pytest.mark.parametrize("numbers", ["[3]", "[3-5]", "[3,12-15,40]"])
def test_number_lists_stay_whole_on_the_way_up(numbers: str) -> None:
    from compactor_cli.llm.outline import OutlineHeading, as_text, read_reply
    from compactor_cli.model.summary import Section

    headings = (OutlineHeading(section=Section.TASK, opening="## Task"),)
    outline = read_reply(f"## Task\n- it works {numbers}", headings, frozenset(range(60)))
    assert as_text(outline.sections, headings) == f"## Task\n- it works {numbers}"
