"""Question sets: a history, questions on it, and a text that a right answer holds.

Read are JSON documents with a list of ``questions`` next to a list of messages, as in the compression
benchmark of Gemini CLI (google-gemini/gemini-cli, Apache-2.0). What is asked here is less than there, and
needs no model: whether the expected text is still in what a model would be shown. A question whose expected text
is nowhere in the history cannot be lost and is left out, with a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from compactor_cli.digest.events import events
from compactor_cli.evaluate.baselines import Count, Method
from compactor_cli.evaluate.cuts import CountMessage, EvalCase, Protocol
from compactor_cli.evaluate.results import RetentionResult, label
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import Place
from compactor_cli.model.settings import Size
from compactor_cli.model.transcript import Message, Part, Record, Role, Text, ToolCall, ToolResult, Transcript
from compactor_cli.model.value import dataclass

HISTORY_KEYS = ("history", "messages", "contents", "conversation")
ANSWER_KEYS = ("expectedSubstring", "expected", "expected_answer", "answer", "gold")
# The benchmark's own tight setting keeps 300 tokens as they are (compression.eval.ts).
TAIL_TOKENS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionQuestion:
    """A question and the text that its answer holds, in lower case."""

    id: str
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A question set."""

    name: str
    transcript: Transcript
    questions: tuple[RetentionQuestion, ...]


def read_scenario(value: Any, path: str) -> Scenario | None:
    """The question set that this parsed document is, or None."""
    if not isinstance(value, Mapping) or not isinstance(value.get("questions"), list):
        return None
    history = next((value[key] for key in HISTORY_KEYS if isinstance(value.get(key), list)), None)
    questions: list[RetentionQuestion] = []
    for number, item in enumerate(value["questions"], 1):
        texts = (item.get(key) for key in ANSWER_KEYS) if isinstance(item, Mapping) else ()
        if expected := next((text for text in texts if isinstance(text, str)), ""):
            questions.append(RetentionQuestion(id=str(item.get("id") or number), expected=expected.lower()))
    if not history or not questions:
        return None
    name = str(value.get("scenarioId") or value.get("id") or path)
    records = tuple(
        Record(raw=orjson.dumps(item), ending=b"\n", value=item, place=Place(path=path, line=number))
        for number, item in enumerate(history, 1)
    )
    transcript = Transcript(dialect="question-set", records=records, messages=tuple(map(_message, history)))
    return Scenario(name=name, transcript=transcript, questions=tuple(questions))


_ROLES = {"user": Role.USER, "model": Role.ASSISTANT, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}


def _message(value: Any) -> Message:
    """A Gemini content (``parts``) or a plain message (``content``)."""
    if not isinstance(value, Mapping):
        return Message(role=Role.META)
    listed = value.get("parts")
    content = value.get("content")
    parts = tuple(_parts(listed if isinstance(listed, list) else [{"text": content}]))
    return Message(role=_ROLES.get(str(value.get("role")), Role.TOOL), parts=parts)


def _parts(values: Sequence[Any]) -> Iterator[Part]:
    for value in values:
        if not isinstance(value, Mapping):
            continue
        call, answer = value.get("functionCall"), value.get("functionResponse")
        if isinstance(value.get("text"), str):
            yield Text(text=value["text"])
        if isinstance(call, Mapping):
            yield ToolCall(id="", name=str(call.get("name", "")), arguments=call.get("args") or {})
        if isinstance(answer, Mapping):
            yield ToolResult(id="", name=str(answer.get("name", "")), text=_response(answer.get("response")))


def _response(value: Any) -> str:
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def ask(
    scenario: Scenario, methods: Sequence[Method], budgets: Sequence[Size], count: Count, count_message: CountMessage
) -> Iterator[RetentionResult]:
    """Every answerable question, method and budget; sizes are of what a model is shown."""
    case = _case(scenario, count_message)
    whole = _text(case, (*case.middle, *case.tail))
    folded, whole_bytes = whole.lower(), len(whole.encode())
    kept = _text(case, case.tail)
    for method in methods:
        write = method.prepare(case, count)
        for budget in budgets:
            shown = f"{write(budget.of(case.middle_tokens))}\n{kept}"
            shown_folded, shown_bytes = shown.lower(), len(shown.encode())
            for question in scenario.questions:
                if question.expected in folded:
                    yield RetentionResult(
                        scenario=scenario.name,
                        question=question.id,
                        method=method.name,
                        budget=label(budget),
                        is_kept=question.expected in shown_folded,
                        bytes_ratio=shown_bytes / whole_bytes,
                    )


def unanswerable(scenario: Scenario) -> tuple[str, ...]:
    """The questions whose expected text the history does not hold."""
    found = events(scenario.transcript, range(len(scenario.transcript.messages)))
    whole = "\n".join(event.text for event in found).lower()
    return tuple(question.id for question in scenario.questions if question.expected not in whole)


def _text(case: EvalCase, indices: Sequence[int]) -> str:
    chosen = frozenset(indices)
    return "\n".join(event.text for event in case.prefix_events if event.record in chosen)


def _case(scenario: Scenario, count: CountMessage) -> EvalCase:
    """Everything but a short tail is covered: an answer in a kept head would prove nothing."""
    messages = scenario.transcript.messages
    sizes = [count(message) for message in messages]
    at = len(messages)
    tail = next(border for border in group(messages).borders if sum(sizes[border:at]) <= TAIL_TOKENS)
    return EvalCase(
        session=scenario.name,
        dialect=scenario.transcript.dialect,
        protocol=Protocol.SHORT,
        prefix=scenario.transcript,
        head=(),
        middle=tuple(range(tail)),
        tail=tuple(range(tail, at)),
        middle_tokens=sum(sizes[:tail]),
        kept_tokens=sum(sizes[tail:]),
        prefix_events=events(scenario.transcript, range(at)),
        future_events=(),
    )
