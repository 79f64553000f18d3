from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from eval_builders import count_words

from compactor_cli.evaluate.baselines import choose
from compactor_cli.evaluate.retention import ask, read_scenario, unanswerable
from compactor_cli.model.settings import Size
from compactor_cli.model.transcript import Message, Role, ToolCall, ToolResult
from compactor_cli.plan.tokens import shown_texts


def _count(message: Message) -> int:
    return sum(map(count_words, shown_texts(message)))


def _document(expected: str = "4500") -> dict[str, Any]:
    chatter = [
        {"role": role, "parts": [{"text": f"Unrelated remark number {n} " + "and so on " * 20}]}
        for n in range(20)
        for role in ("user", "model")
    ]
    return {
        "scenarioId": "timeout",
        "history": [
            {"role": "user", "parts": [{"text": "Read the configuration."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "read_file", "args": {"file_path": "a.json"}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "read_file", "response": {"content": "Timeout_ms: 4500"}}}],
            },
            *chatter,
        ],
        "questions": [{"id": "q", "prompt": "Which timeout?", "expectedSubstring": expected}],
    }


def test_a_question_set_is_read() -> None:
    scenario = read_scenario(_document(), "f.json")
    assert scenario is not None
    assert scenario.name == "timeout"
    assert [message.role for message in scenario.transcript.messages[:3]] == [Role.USER, Role.ASSISTANT, Role.USER]
    assert isinstance(scenario.transcript.messages[1].parts[0], ToolCall)
    assert scenario.transcript.messages[2].parts == (ToolResult(id="", name="read_file", text="Timeout_ms: 4500"),)


@pytest.mark.parametrize("value", [[], {}, {"questions": []}, {"questions": [{"prompt": "x"}], "history": [1]}, None])
def test_other_documents_are_none(value: Any) -> None:
    assert read_scenario(value, "f.json") is None


def test_an_answer_is_kept_or_lost_whatever_its_case() -> None:
    scenario = read_scenario(_document("TIMEOUT_MS"), "f.json")
    assert scenario is not None
    methods = choose(["tail", "log-frequency"])
    lost, kept = ask(scenario, methods, [Size(ratio=0.05)], count_words, _count)
    assert (lost.method, lost.is_kept) == ("tail", False)
    assert (kept.method, kept.is_kept) == ("log-frequency", True)
    assert 0 < kept.bytes_ratio < 0.5


def test_a_question_that_the_history_cannot_answer_is_left_out() -> None:
    scenario = read_scenario(_document("refactor"), "f.json")
    assert scenario is not None
    assert unanswerable(scenario) == ("q",)
    assert not list(ask(scenario, choose(["tail"]), [Size(ratio=0.05)], count_words, _count))


def test_the_question_sets_of_the_corpus_are_read(corpus: Path) -> None:
    found = [read_scenario(orjson.loads(path.read_bytes()), path.name) for path in corpus.rglob("scenario-*.json")]
    assert len(found) >= 7
    assert all(scenario and scenario.questions for scenario in found)
