"""Texts: what a message says, as it is searched and quoted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compactor_cli.llm.flatten import call_text
from compactor_cli.model.transcript import Message, Text, Thinking, ToolCall, ToolResult


def text_of(message: Message) -> str:
    """Words, calls with their arguments and results; no thinking."""
    return "\n".join(text for text in _texts(message) if text)


def searched_text(message: Message) -> str:
    """What `text_of` gives, and the thinking."""
    thoughts = (part.text for part in message.parts if isinstance(part, Thinking))
    return "\n".join(filter(None, (*thoughts, text_of(message))))


def _texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text | ToolResult):
            yield part.text
        elif isinstance(part, ToolCall):
            yield call_text(part)


def tools_of(message: Message, names: Mapping[str, str]) -> tuple[str, ...]:
    """The tools that this message calls or answers for, each once; ``names``: the tool by the id of its call."""
    called = (call.name for call in message.calls)
    answered = (result.name or names.get(result.id, "") for result in message.results)
    return tuple(dict.fromkeys(name for name in (*called, *answered) if name))


def passages(text: str, most_chars: int) -> Sequence[str]:
    """The text in pieces of at most ``most_chars``, cut between lines where it can be; joined, they are the text."""
    pieces: list[str] = []
    room = 0
    for line in text.splitlines(keepends=True):
        if len(line) > room or not pieces:
            cut = [line[i : i + most_chars] for i in range(0, len(line), most_chars)]
            pieces += cut
            room = most_chars - len(cut[-1])
        else:
            pieces[-1] += line
            room -= len(line)
    return pieces
