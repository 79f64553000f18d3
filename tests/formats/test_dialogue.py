from __future__ import annotations

from typing import Any

import pytest
from compaction import LONG, round_trip, value_of
from opening import inserted, open_one, open_values, shortened

from compactor_cli.model.errors import UnknownShape
from compactor_cli.model.transcript import Role

USER, ASSISTANT, SYSTEM = Role.USER, Role.ASSISTANT, Role.SYSTEM


def turn(speaker: str, text: str = "A table for two.", **more: Any) -> dict[str, Any]:
    return {"speaker": speaker, "utterance": text, **more}


@pytest.mark.parametrize(
    ("row", "roles"),
    [
        ({"dialogue_id": "1", "turns": [turn("USER"), turn("SYSTEM")]}, [USER, ASSISTANT]),
        ({"utterances": [{"index": 0, "speaker": "ASSISTANT", "text": "Hello?"}]}, [ASSISTANT]),
        (
            {"chat_messages": [{"sender": "human", "text": "Hi"}, {"sender": "assistant", "text": "Yes"}]},
            [USER, ASSISTANT],
        ),
        (
            {"chat_history": [{"role": "USER", "message": "Hi"}, {"role": "CHATBOT", "message": "Yes"}]},
            [USER, ASSISTANT],
        ),
        (
            {
                "trajectory": [
                    {"role": "system", "text": None},
                    {"role": "user", "text": "a"},
                    {"role": "ai", "text": "b"},
                ]
            },
            [SYSTEM, USER, ASSISTANT],
        ),
        ([turn("customer"), turn("agent")], [USER, ASSISTANT]),
    ],
)
def test_who_speaks(row: Any, roles: list[Role]) -> None:
    transcript = open_one(row)
    assert transcript.dialect == "dialogue"
    assert [message.role for message in transcript.messages] == roles


@pytest.mark.parametrize("row", [{"turns": [turn("Alice"), turn("Bob")]}, {"turns": [turn("user"), turn("user")]}])
def test_speakers_that_nobody_knows_are_no_dialogue(row: Any) -> None:
    with pytest.raises(UnknownShape):
        open_values(row)


def test_lines_of_a_client_are_no_dialogue() -> None:
    with pytest.raises(UnknownShape):
        open_values({"type": "message", "role": "user", "text": "Hi"}, {"type": "call", "tool": "search"})


def test_new_turns_have_the_speakers_and_keys_of_the_file() -> None:
    transcript = open_one({"turns": [turn("USER", frames=[]), turn("SYSTEM", frames=[]), turn("USER", frames=[])]})
    assert inserted(transcript, 1, "So far.", "Yes.") == [turn("USER", "So far."), turn("SYSTEM", "Yes.")]


def test_an_utterance_is_shortened() -> None:
    assert shortened("dialogue", turn("user", "long", frames=[]), {0: "…"}) == turn("user", "…", frames=[])


def test_a_dialogue_is_compacted() -> None:
    turns = [turn(speaker, LONG) for _ in range(8) for speaker in ("USER", "SYSTEM")]
    assert value_of(round_trip({"dialogue_id": "1", "turns": turns}, "dialogue"))["dialogue_id"] == "1"
