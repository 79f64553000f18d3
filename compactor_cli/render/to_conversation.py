"""A transcript as a talk: what its client would send, as messages that any dialect could have written.

Records become messages again where a client writes one message over several records; each result stands after
the message that asked for it; calls get ids of their own where theirs are missing or come again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from compactor_cli.formats.blocks import with_images
from compactor_cli.formats.contents import string
from compactor_cli.formats.conversation import Conversation, arguments_text, system_of, tools_of
from compactor_cli.formats.sent import sent
from compactor_cli.group.exchanges import Grouping, group
from compactor_cli.model.transcript import Message, Part, Role, Text, Thinking, ToolCall, ToolResult, Transcript

_Place = tuple[int, int]


def to_conversation(transcript: Transcript) -> Conversation:
    """The conversation. Calls and results without their other half are left out, except for calls in flight."""
    order = sent(transcript)
    builder = _Builder(_ids(transcript, group(transcript.messages), frozenset(order)))
    for i in order:
        message = transcript.messages[i]
        parts = with_images(message.parts, transcript.records[i].value)
        builder.add(i, replace(message, parts=parts))
    messages = list(builder.messages())
    system = system_of(transcript.row)
    if system and not any(message.role is Role.SYSTEM for message in messages):
        messages.insert(0, Message(role=Role.SYSTEM, parts=(Text(text=system),)))
    return Conversation(
        messages=tuple(messages),
        model=transcript.model,
        tools=tools_of(transcript.row),
        seed=transcript.sha256,
        extra=extra_of(transcript.row),
    )


def extra_of(row: Any) -> Mapping[str, Any]:
    """The keys of anybody's next to the messages: names, numbers and marks, and tables of them."""
    items = row.items() if isinstance(row, dict) else ()
    return {key: value for key, value in items if key in _TABLES or (_is_plain(value) and key not in _OF_REQUESTS)}


# Where data sets keep what they know about a row.
_TABLES = frozenset({"metadata", "info", "extra", "tags", "meta"})
# What is said to a provider, not about the conversation; or carried by name.
_OF_REQUESTS = frozenset(
    "model modelId system instructions tools tool_choice max_tokens max_completion_tokens temperature top_p top_k n"
    " stream stop seed store anthropic_version parallel_tool_calls schema_version session_id session_start"
    " message_count user prompt input output object trajectory_format epoch agent environment".split()
)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float))


@dataclass(frozen=True, slots=True)
class _Ids:
    """The ids that calls get, and what answers them; a call that is not in here is left out."""

    of_call: Mapping[_Place, str]
    answers: Mapping[_Place, ToolResult]


def _ids(transcript: Transcript, grouping: Grouping, shown: frozenset[int]) -> _Ids:
    pairs = [pair for pair in grouping.pairs if pair.call.record in shown and pair.result.record in shown]
    results = {(pair.call.record, pair.call.part): pair.result for pair in pairs}
    running = {(half.record, half.part): half for half in grouping.in_flight if half.record in shown}
    used: set[str] = set()
    of_call: dict[_Place, str] = {}
    answers: dict[_Place, ToolResult] = {}
    for place in sorted({*results, *running}):
        call = transcript.messages[place[0]].parts[place[1]]
        name, wanted = (call.name, call.id) if isinstance(call, ToolCall) else ("", "")
        result = results.get(place)
        wanted = wanted or (result.id if result else "")
        own = wanted if wanted and wanted not in used else _new_id(used, len(of_call))
        used.add(own)
        of_call[place] = own
        part = transcript.messages[result.record].parts[result.part] if result else None
        if isinstance(part, ToolResult):
            answers[place] = replace(part, id=own, name=name or part.name)
    return _Ids(of_call, answers)


def _new_id(used: set[str], number: int) -> str:
    while (found := f"call_{number}") in used:
        number += 1
    return found


@dataclass(slots=True)
class _Step:
    """A message that is being put together, and the results that stand after it."""

    message: Message
    parts: list[Part] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)

    @property
    def calls(self) -> bool:
        return any(isinstance(part, ToolCall) for part in self.parts)

    @property
    def only_thinks(self) -> bool:
        return all(isinstance(part, Thinking) for part in self.parts)


class _Builder:
    """Steps in order."""

    def __init__(self, ids: _Ids) -> None:
        self.ids = ids
        self.steps: list[_Step] = []
        self.is_answered = False

    def add(self, i: int, message: Message) -> None:
        """One more record."""
        step = self._step_for(message)
        for n, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                self.is_answered = True
                step = None if step and step.calls else step
            else:
                step = step or self._new(message)
                self._take(step, part, (i, n))

    def _step_for(self, message: Message) -> _Step | None:
        """The step that this record belongs to, if that is begun."""
        last = self.steps[-1] if self.steps else None
        if last is None or message.role is not Role.ASSISTANT or last.message.role is not Role.ASSISTANT:
            return None
        is_same = bool(message.group) and message.group == last.message.group
        is_parallel = last.calls and bool(message.calls) and not message.text and not self.is_answered
        return last if is_same or is_parallel or last.only_thinks else None

    def _new(self, message: Message) -> _Step:
        self.steps.append(_Step(message))
        self.is_answered = False
        return self.steps[-1]

    def _take(self, step: _Step, part: Part, place: _Place) -> None:
        if not isinstance(part, ToolCall):
            step.parts.append(part)
        elif place in self.ids.of_call:
            answers = [answer for answer in (self.ids.answers.get(place),) if answer]
            if step.message.role is Role.ASSISTANT:
                step.parts.append(replace(part, id=self.ids.of_call[place]))
                step.results += answers
            else:
                # A simulated user has tools as well; no provider knows such a thing.
                step.parts.append(Text(text=f"{part.name}({arguments_text(part)})"))
                step.parts += (Text(text=answer.text) for answer in answers)

    def messages(self) -> Iterator[Message]:
        """The messages, results after the one that asked for them."""
        for step in self.steps:
            if step.parts:
                role = Role.USER if step.message.role is Role.TOOL else step.message.role
                yield replace(step.message, role=role, parts=_joined(step.parts), group="", superseded=False)
            if step.results:
                stamp = string(step.message.timestamp)
                yield Message(role=Role.TOOL, parts=tuple(step.results), timestamp=stamp)


def _joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts in the order in which all APIs have them: thinking, words and images, calls."""
    order = (Thinking, ToolCall)
    return tuple(sorted(parts, key=lambda part: 0 if isinstance(part, order[0]) else 1 + isinstance(part, order[1])))
