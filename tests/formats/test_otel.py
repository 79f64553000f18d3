"""Messages in the shape of OpenTelemetry's GenAI conventions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_sessions import shown
from opening import inserted, open_one, open_values, shortened

from compactor_cli.group.exchanges import group
from compactor_cli.model.transcript import Role, Thinking

SAMPLE = Path(__file__).resolve().parents[2] / "samples/otel-genai.json"
CALL = {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": {"city": "Graz"}}
SAID: list[dict[str, Any]] = [
    {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
    {"role": "user", "parts": [{"type": "text", "content": "How is the weather?"}]},
    {"role": "assistant", "parts": [{"type": "reasoning", "content": "ask"}, CALL], "finish_reason": "tool_call"},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"sky": "grey"}}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "Grey."}], "finish_reason": "stop"},
]


@pytest.mark.parametrize(
    "value",
    [
        SAID,
        {"messages": SAID, "model": "m"},
        {"gen_ai.input.messages": SAID},
        {"name": "chat m", "attributes": {"gen_ai.input.messages": SAID, "gen_ai.request.model": "m"}},
    ],
)
def test_messages_are_read_bare_in_a_row_and_in_a_span(value: Any) -> None:
    transcript = open_one(value)
    assert transcript.dialect == "otel"
    assert shown(transcript) == ["Be brief.", "How is the weather?", "get_weather({'city': 'Graz'})", "= grey", "Grey."]
    assert [message.role for message in transcript.messages] == [
        *(Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT)
    ]
    assert transcript.messages[2].parts[0] == Thinking(text="ask")
    assert not group(transcript.messages).orphan_calls
    assert transcript.model == ("m" if "model" in json.dumps(value) else "")


def test_lines_of_messages_are_one_conversation() -> None:
    (transcript,) = open_values(*SAID)
    assert (transcript.dialect, len(transcript.records)) == ("otel", 5)


def test_a_result_that_sentry_or_pydantic_ai_wrote_is_read_and_shortened_in_its_place() -> None:
    answer = {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "result": "a long text"}]}
    transcript = open_one([*SAID[:3], answer])
    assert transcript.messages[3].role is Role.TOOL
    part = {"type": "tool_call_response", "id": "c1", "result": "short"}
    assert shortened("otel", answer, {0: "short"}) == {"role": "user", "parts": [part]}


def test_a_summary_is_written_as_the_file_writes_its_messages() -> None:
    assert inserted(open_one(SAID), 3, "What was.", "Understood.") == [
        {"role": "user", "parts": [{"type": "text", "content": "What was."}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "Understood."}], "finish_reason": "stop"},
    ]


def test_ui_messages_are_not_taken_for_spans() -> None:
    assert (
        open_one([{"id": "1", "role": "user", "parts": [{"type": "text", "text": "hello"}]}]).dialect == "ui-messages"
    )


def test_the_sample_is_read() -> None:
    transcript = open_one(json.loads(SAMPLE.read_bytes()))
    assert transcript.dialect == "otel"
    assert len(group(transcript.messages).pairs) == 2
