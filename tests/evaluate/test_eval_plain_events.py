"""What is no need, whoever says it: names of tools' parameters, and text that a client writes itself."""

from __future__ import annotations

from eval_builders import assistant, call, case, result, transcript, user

from compactor_cli.evaluate.cuts import plain_events, schema_words
from compactor_cli.evaluate.measures import Measure, SummaryView, needs_of, score

EDIT = call("Edit", 1, file_path="src/pump.py", old_string="flow_rate = 3", new_string="flow_rate = 4")
AGAIN = call("Edit", 2, file_path="src/pump.py", old_string="flow_rate = 4", new_string="flow_rate = 5")


def test_a_call_is_known_by_its_values_and_not_by_their_names() -> None:
    (event,) = plain_events(transcript((assistant("", EDIT),)))
    assert event.text == "Edit\nsrc/pump.py\nflow_rate = 3\nflow_rate = 4"


def test_names_of_parameters_are_no_needs_wherever_they_stand() -> None:
    middle = (assistant("", EDIT), result("old_string was found once; file_path is src/pump.py now", 1))
    needs = needs_of(case(middle, (assistant("old_string was found once more; file_path is fine", AGAIN),)))
    assert {use.atom for use in needs.uses} == {"src/pump.py", "flow_rate"}
    assert needs.reused == {"src/pump.py", "flow_rate"}
    assert not {word for _, word in needs.pairs} & {"file_path", "old_string", "new_string"}
    assert not [phrase for phrase in needs.phrases if "old_string" in phrase or "file_path" in phrase]


def test_a_summary_that_lists_names_of_parameters_keeps_nothing() -> None:
    needs = needs_of(case((assistant("", EDIT), result("ok", 1)), (assistant("", AGAIN),)))
    kept = score(needs, SummaryView("file_path old_string new_string"))
    assert {measure: share.kept for measure, share in kept.items()} == dict.fromkeys(kept, 0)
    assert score(needs, SummaryView("src/pump.py: flow_rate"))[Measure.FUR].kept == 2


def test_keys_that_are_content_stay() -> None:
    changes = {"src/a_file.py": {"kind": "update"}, "API_TOKEN_NAME": "x", "retry_count": 5}
    found = plain_events(transcript((assistant("", call("apply", 1, changes=changes)),)))
    assert schema_words(found) == {"changes", "kind", "retry_count"}
    assert found[0].text == "apply\nsrc/a_file.py\nupdate\nAPI_TOKEN_NAME\nx\n5"


def test_marks_of_a_client_are_taken_off_and_what_they_hold_stays() -> None:
    said = "<bash-stdout>build of pump_core done</bash-stdout><bash-stderr></bash-stderr>"
    reminder = "<system-reminder>never_mention_this</system-reminder>"
    found = plain_events(transcript((user("go on"), user(said), assistant("", call("ls", 1)), result(reminder, 1))))
    assert [event.text for event in found if "pump_core" in event.text] == ["build of pump_core done"]
    assert not [event for event in found if "bash-stdout" in event.text or "never_mention_this" in event.text]
