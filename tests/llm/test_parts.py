"""Transcripts that are summarised in parts: what a part is given of the whole, and parts that a model gets wrong."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conversation import answer, call, conversation, says, user
from llm_server.answers import CHAT
from llm_server.client import LlmServer
from model_cases import FAST, asked, long_talk, request, summariser

from compactor_cli.llm.check_reply import not_shown
from compactor_cli.llm.limits import Spend, SpendLimits
from compactor_cli.llm.model import OnFailure
from compactor_cli.llm.model_client import ModelClient
from compactor_cli.llm.prompts import OutlineHeading, Stage, as_text, joined_outline, read_reply
from compactor_cli.llm.quoting import flatten
from compactor_cli.model.errors import KeptAsIs, OutputError
from compactor_cli.model.summary import Answer, Section, Source
from compactor_cli.model.transcript import Message, Role, Thinking

LONG = long_talk(16, 6_000)


def summarised(server: LlmServer, replies: dict[str, str], **run_options: Any) -> Answer:
    server.control(replies=replies)
    with summariser(server, "replay", rule=None, **run_options) as one:
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
    assert found.summary.source is Source.MODEL
    assert dict(found.refused) == {"no-summary": 2}
    assert "its replies about the others were twice not accepted" in found.fell_back
    assert found.warnings[0].startswith("the digest wrote parts of the summary: of ")
    merges = [text for text in asked(llm_server) if "<<part 1>>" in text]
    assert "src/module_0/handler_0.py" in merges[0]
    asked_again = len(leaves(llm_server)) - len(set(leaves(llm_server)))
    assert asked_again == 0
    assert len(leaves(llm_server)) == len(re.findall(r"<<part \d+>>", merges[0])) + 1


def test_a_part_that_no_request_is_left_for_is_the_digests_and_the_paid_ones_stay(llm_server: LlmServer) -> None:
    summarised(llm_server, {})
    parts = len(leaves(llm_server))
    llm_server.control(reset=True)
    client = ModelClient(retries=FAST, spend=Spend(SpendLimits(requests=parts - 1)))
    found = summarised(llm_server, {}, client=client)
    assert found.summary.source is Source.MODEL
    reason = f"of {parts} parts, the model summarised {parts - 1}: the limit of {parts - 1} requests is reached"
    assert found.fell_back == reason


@pytest.mark.parametrize(("policy", "error"), [(OnFailure.KEEP, KeptAsIs), (OnFailure.FAIL, OutputError)])
def test_no_part_is_the_digests_where_the_user_wants_none_of_it(
    llm_server: LlmServer, policy: OnFailure, error: type[Exception]
) -> None:
    with pytest.raises(error, match="no summary by the model: of "):
        summarised(llm_server, {"<<1 user>>": CHAT}, on_failure=policy)


def _stand_side_by_side(found: Answer) -> bool:
    """Whether the summary is that of all parts, and the notes say that nobody joined them."""
    named = set(re.findall(r"handle_\d+", request(LONG).render(found.summary)))
    is_noted = any("the model did not join them" in note for note in found.notes)
    return found.summary.source is Source.MODEL and {"handle_0", "handle_15"} <= named and is_noted


def test_parts_that_are_twice_not_joined_stand_side_by_side(llm_server: LlmServer) -> None:
    assert _stand_side_by_side(summarised(llm_server, {"<<part 1>>": CHAT}))


@pytest.mark.parametrize("model", ["bad_request", "server_error", "context.100"])
def test_paid_parts_stay_where_the_call_that_joins_them_fails(llm_server: LlmServer, model: str) -> None:
    found = summarised(llm_server, {}, models={Stage.MERGE: f"openai/{model}"})
    assert _stand_side_by_side(found)
    assert found.fell_back == ""


def test_parts_stay_where_the_limit_of_the_run_leaves_no_request_to_join_them(llm_server: LlmServer) -> None:
    summarised(llm_server, {})
    parts = len(leaves(llm_server))
    llm_server.control(reset=True)
    client = ModelClient(retries=FAST, spend=Spend(SpendLimits(requests=parts)))
    assert _stand_side_by_side(summarised(llm_server, {}, client=client))


def test_who_joins_the_parts_knows_what_the_user_wants(llm_server: LlmServer) -> None:
    summarised(llm_server, {})
    (merge,) = (text for text in asked(llm_server) if "<<part 1>>" in text)
    assert "First request: Please change src/module_0/handler_0.py" in merge
    assert "Newest request: Please change src/module_15/handler_15.py" in merge


def test_no_name_that_a_part_holds_is_listed_again_for_those_who_join_them(llm_server: LlmServer) -> None:
    files = "".join(f"- src/module_{n}/handler_{n}.py got handle_{n}\n" for n in range(16))
    summarised(llm_server, {"<<1 user>>": f"## Task Context\n- go on with the handlers.\n## Active Files\n{files}"})
    (merge,) = (text for text in asked(llm_server) if "<<part 1>>" in text)
    facts = merge.partition("<<facts>>\n")[2].partition("<<end of facts>>")[0]
    parts = merge.partition("<<part 1>>\n")[2].partition("<<end of parts>>")[0]
    names = [name for line in facts.split("\n") if ", " in line for name in line.removeprefix("- ").split(", ")]
    assert names
    assert [name for name in names if name in parts] == []


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


def test_what_the_user_stopped_is_told_to_those_who_join_parts_that_only_name_it() -> None:
    fact = "- Stopped by the user: `cat /etc/app/settings.json`"
    assert not_shown(fact, ["the port is set in `cat` of /etc/app/settings.json"]) == fact
    assert not_shown(fact, [f"{fact} [4]"]) == ""


HEADINGS = (
    OutlineHeading(section=Section.TASK, opening="## Now"),
    OutlineHeading(section=Section.FILES, opening="## Files"),
)


def side_by_side(*replies: str) -> str:
    outlines = [read_reply(reply, HEADINGS, frozenset()) for reply in replies]
    return as_text(joined_outline(outlines).sections, HEADINGS)


def test_of_parts_side_by_side_the_newest_tells_how_things_stand() -> None:
    first = "## Now\n- Goal: mend the parser\n- State: not tested\n## Files\n- a.py: edited"
    last = "## Now\n- Goal: test the parser\n- State: tests pass\n## Files\n- b.py: new"
    assert side_by_side(first, last) == f"{last.partition('- b.py')[0]}- a.py: edited\n- b.py: new"


@pytest.mark.parametrize("last", ["", "## Now\n- State: tests pass\n"])
def test_the_goal_of_an_earlier_part_stays_where_the_last_states_none(last: str) -> None:
    text = side_by_side("## Now\n- Goal: mend the parser\n- State: not tested", f"{last}## Files\n- b.py: new")
    assert "Goal: mend the parser" in text
    assert text.count("State:") == 1
    assert ("tests pass" in text) is bool(last)


@pytest.mark.parametrize("numbers", ["[3]", "[3-5]", "[3,12-15,40]"])
def test_number_lists_stay_whole_on_the_way_up(numbers: str) -> None:
    covered = frozenset(range(60))
    outline = read_reply(f"## Now\n- it works {numbers}", HEADINGS, covered)
    assert as_text(outline.sections, HEADINGS) == f"## Now\n- it works {numbers}"
