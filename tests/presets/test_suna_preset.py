"""`suna`: Suna without a model (after July 2025), sentence by sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from preset_cases import (
    SYSTEM,
    Chat,
    assistant,
    call,
    chat,
    compacted,
    is_stable,
    planned,
    preset,
    result,
    transcript,
    user,
    words,
)

from compactor_cli.cli.archive_commands import expand
from compactor_cli.cli.run_command import run
from compactor_cli.model.errors import UsageError
from compactor_cli.model.marker import record_id
from compactor_cli.model.settings import Settings

SUNA = preset("suna")


def at(tokens: int) -> Settings:
    """As if the window left this many tokens."""
    return preset("suna", target=tokens)


def shortened(messages: Chat) -> list[int]:
    return [n for n, message in enumerate(messages) if "... (truncated)" in str(message["content"])]


def mixed(tokens: int = 1_500) -> Chat:
    """Ten turns in which all speak at length."""
    messages: Chat = [SYSTEM]
    for number in range(10):
        messages += [user(f"ask {number} {words(tokens)}"), call(f"c{number}", path="a.py")]
        messages += [
            result(f"c{number}", f"seen {number} {words(tokens)}"),
            assistant(f"said {number} {words(tokens)}"),
        ]
    return messages


def test_the_window_is_200_000_less_64_000_for_the_answer_and_28_000() -> None:
    assert "108,000, where compaction starts" in planned(chat(2), SUNA).reason


def test_another_model_has_another_window() -> None:
    settings = preset("suna", window_tokens=0, window_model="gpt-4o")
    assert "36,000, where compaction starts" in planned(chat(2), settings).reason


def test_tool_results_are_shortened_first() -> None:
    _, after = compacted(mixed(), at(43_000))
    assert {after[n]["role"] for n in shortened(after)} == {"tool"}


def test_then_those_of_the_user() -> None:
    _, after = compacted(mixed(), at(37_000))
    assert {after[n]["role"] for n in shortened(after)} == {"tool", "user"}
    assert sum(after[n]["role"] == "tool" for n in shortened(after)) == 5


def test_then_those_of_the_assistant() -> None:
    _, after = compacted(mixed(), at(32_000))
    assert {after[n]["role"] for n in shortened(after)} == {"tool", "user", "assistant"}


def test_the_newest_stay_and_older_ones_are_shortened() -> None:
    _, after = compacted(mixed(), at(40_500))
    assert [n for n in shortened(after) if after[n]["role"] == "tool"] == [3, 7, 11, 15, 19]


def test_only_texts_over_the_threshold_of_1_000_tokens_are() -> None:
    messages = [SYSTEM, *(message for n in range(9) for message in (user(words(900)), assistant(words(1_100))))]
    _, after = compacted(messages, at(17_500))
    assert {after[n]["role"] for n in shortened(after)} == {"assistant"}


def test_a_shortened_text_keeps_its_first_3_000_characters_and_names_its_message() -> None:
    messages = mixed()
    made = transcript(messages)
    _, after = compacted(messages, at(43_000))
    name = record_id(made.sha256, 3)
    first = messages[3]["content"][:3_000]
    assert after[3]["content"] == f"{first}... (truncated)\n\n[message {name}: compactor expand {name} shows all of it]"


def test_an_edit_file_result_keeps_its_json_and_both_contents_are_cut_to_a_quarter() -> None:
    old, new = words(2_000, "old"), words(2_000, "new")
    edit = json.dumps({"success": True, "original_content": old, "updated_content": new})
    messages = [SYSTEM, user("Edit"), call("e", "edit_file"), result("e", edit), *mixed()[1:]]
    _, after = compacted(messages, at(46_000))
    value = json.loads(after[3]["content"])
    assert value["success"] is True
    assert value["original_content"].startswith(f"{old[:750]}... (truncated)")
    assert value["updated_content"].startswith(f"{new[:750]}... (truncated)")


@pytest.mark.parametrize("is_string", [False, True], ids=["object", "string"])
def test_the_record_of_an_edit_keeps_its_json_inside_json(is_string: bool) -> None:
    old, new = words(2_000, "old"), words(2_000, "new")
    output = {"message": "edited", "file_path": "a.py", "original_content": old, "updated_content": new}
    told = {"success": True, "output": json.dumps(output) if is_string else output, "error": None}
    meta = {"function_name": "edit_file", "arguments": {"code_edit": words(900)}, "result": told}
    record = json.dumps({"tool_execution": meta}, indent=2)
    messages = [SYSTEM, user("Edit"), call("e", "edit_file"), result("e", record), *mixed()[1:]]
    for tokens in (46_000, 20_000):
        _, after = compacted(messages, at(tokens))
        kept = json.loads(after[3]["content"])["tool_execution"]
        assert (kept["function_name"], "arguments" in kept, kept["result"]["success"]) == ("edit_file", False, True)
        shown = kept["result"]["output"]
        shown = json.loads(shown) if is_string else shown
        assert (shown["message"], shown["file_path"]) == ("edited", "a.py")
        assert old.startswith(shown["original_content"].partition("... (truncated)")[0])
        assert new.startswith(shown["updated_content"].partition("... (truncated)")[0])
        assert len(shown["original_content"]) < 900
        assert len(shown["updated_content"]) < 900


def test_another_record_of_a_call_is_shortened_as_any_result() -> None:
    meta = {"tool_execution": {"function_name": "run", "result": {"success": True, "output": words(2_000)}}}
    messages = [SYSTEM, user("Run"), call("m"), result("m", json.dumps(meta)), *mixed()[1:]]
    _, after = compacted(messages, at(40_000))
    assert "... (truncated)" in after[3]["content"]


def test_an_edit_file_result_stays_json_however_often_limits_are_halved() -> None:
    edit = json.dumps({"original_content": words(2_000), "updated_content": words(2_000), "note": words(2_000)})
    messages = [SYSTEM, user("Edit"), call("e", "edit_file"), result("e", edit), *mixed()[1:]]
    _, after = compacted(messages, at(20_000))
    assert set(json.loads(after[3]["content"])) == {"original_content", "updated_content", "note"}


def test_meta_messages_lose_their_tool_arguments() -> None:
    meta = {"tool_execution": {"function_name": "run", "arguments": {"x": words(900)}, "result": "ok"}}
    messages = [SYSTEM, user("Run"), call("m"), result("m", json.dumps(meta)), *mixed()[1:]]
    _, after = compacted(messages, at(45_000))
    assert json.loads(after[3]["content"]) == {"tool_execution": {"function_name": "run", "result": "ok"}}


def test_still_too_long_the_thresholds_are_halved_and_it_is_done_again() -> None:
    _, after = compacted(mixed(), at(29_000))
    cut = [len(after[n]["content"]) for n in shortened(after)]
    assert min(cut) < 1_700 < 3_000 < max(cut)
    assert len(after) == len(mixed())


def test_a_text_that_is_cut_again_keeps_the_id_under_which_it_is_whole() -> None:
    messages = mixed()
    name = record_id(transcript(messages).sha256, 3)
    _, once = compacted(messages, at(43_000))
    _, again = compacted([*once, *mixed()[1:]], at(45_000))
    assert len(again[3]["content"]) < len(once[3]["content"])
    assert f"[message {name}: compactor expand {name} shows all of it]" in again[3]["content"]


def test_at_last_the_middle_of_the_list_is_dropped_and_both_ends_stay() -> None:
    done, after = compacted(mixed(), at(6_000))
    assert done.report.pruned["no-room"] > 10
    assert after[1]["content"].startswith("ask 0")
    assert after[-1]["content"].startswith("said 9")
    assert done.report.tokens_after <= 6_000


def test_no_call_loses_its_result_though_the_middle_goes() -> None:
    _, after = compacted(mixed(), at(6_000))
    calls = [item["id"] for message in after for item in message.get("tool_calls") or ()]
    assert calls == [message["tool_call_id"] for message in after if message["role"] == "tool"]


def test_no_model_and_no_summary() -> None:
    done, _ = compacted(mixed(), at(40_500))
    assert (done.plan.summary_tokens, done.report.summary_source) == (0, "")


def test_a_second_run_changes_nothing() -> None:
    assert all(is_stable(mixed(), at(tokens)) for tokens in (43_000, 29_000, 6_000))


def test_a_model_cannot_be_named_with_it(tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    session.write_text(json.dumps(user("hello")) + "\n")
    with pytest.raises(UsageError, match="no model can write it"):
        run([str(session)], {"preset": "suna", "model": "openai/x", "output": str(tmp_path / "out.jsonl")})


def test_the_full_message_is_fetched_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    messages = mixed()
    session = tmp_path / "session.jsonl"
    session.write_text("".join(json.dumps(message) + "\n" for message in messages))
    given = {"preset": "suna", "target": "41k", "output": "out.jsonl", "archive_dir": "archive", "min_age": "0"}
    assert run([str(session)], given) == 0
    short = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[3])["content"]
    name = short.partition("compactor expand ")[2].partition(" ")[0]
    fetched = CliRunner().invoke(expand, [name, "--archive-dir", "archive"], standalone_mode=False)
    assert messages[3]["content"] in fetched.output
