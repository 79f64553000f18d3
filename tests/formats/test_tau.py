from __future__ import annotations

from opening import inserted, open_one, open_values, shortened

from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Role, Text, ToolCall, ToolResult

HELLO = {
    "role": "assistant",
    "content": "How can I help?",
    "tool_calls": None,
    "turn_idx": 0,
    "cost": 0.0,
    "usage": None,
}
ASK = {"role": "user", "content": "My line is dead.", "tool_calls": None, "turn_idx": 1, "cost": 0.1, "usage": {"n": 1}}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "name": "look_up", "arguments": {"phone": "555"}, "requestor": "assistant"}],
    "turn_idx": 2,
    "cost": 0.2,
    "usage": None,
}
RESULT = {
    "id": "c1",
    "role": "tool",
    "content": '{"plan": "basic"}',
    "requestor": "assistant",
    "error": False,
    "turn_idx": 3,
}
USERS_CALL = {**CALL, "role": "user", "turn_idx": 4, "tool_calls": [{"id": "c1", "name": "reboot", "arguments": {}}]}
USERS_RESULT = {**RESULT, "requestor": "user", "error": True, "turn_idx": 5}
SESSION = (HELLO, ASK, CALL, RESULT, USERS_CALL, USERS_RESULT)


def test_flat_calls_and_results_keyed_by_id() -> None:
    messages = open_one(*SESSION).messages
    assert messages[0].parts == (Text(text="How can I help?"),)
    assert messages[2].parts == (ToolCall(id="c1", name="look_up", arguments={"phone": "555"}),)
    assert messages[3].parts == (ToolResult(id="c1", text='{"plan": "basic"}'),)


def test_the_simulated_users_own_tools() -> None:
    messages = open_one(*SESSION).messages
    assert (messages[4].role, messages[4].calls[0].name) == (Role.USER, "reboot")
    assert messages[5].results[0].is_error


def test_an_id_that_comes_again_is_paired_by_order() -> None:
    found = group(open_one(*SESSION).messages)
    assert not found.orphan_calls
    assert not found.orphan_results


def test_simulations_follow_one_another() -> None:
    assert [len(transcript.records) for transcript in open_values(*SESSION, *SESSION)] == [6, 6]


def test_insertions_have_the_files_own_keys() -> None:
    (summary, answer) = inserted(open_one(*SESSION), 4, "So far.", "Understood.")
    assert summary == {"role": "user", "content": "So far.", "tool_calls": None, "turn_idx": 3}
    told = {key: value for key, value in HELLO.items() if key != "cost"}
    assert answer == {**told, "content": "Understood.", "turn_idx": 3}


def test_results_and_arguments_are_shortened_in_place() -> None:
    assert shortened("tau", RESULT, {0: "…"}) == {**RESULT, "content": "…"}
    new = shortened("tau", CALL, {0: "5…"})
    assert new["tool_calls"] == [{**CALL["tool_calls"][0], "arguments": {"shortened": "5…"}}]  # type: ignore[index]
