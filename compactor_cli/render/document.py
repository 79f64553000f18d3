"""Document: a transcript as a text to read, in Markdown or plain, for a person or for another model's prompt.

It says what the client would send, in that order: words, thinking, calls with their arguments, results; of images and
files that there is one. It is not read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from compactor_cli.formats.sent import sent
from compactor_cli.model.transcript import Media, Message, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.plan.tokens import arguments_text


class Document(StrEnum):
    """How a document is marked up; the values are what ``--to`` takes."""

    MARKDOWN = "markdown"
    TEXT = "text"


DOCUMENTS = tuple(item.value for item in Document)


def document(transcript: Transcript, markup: Document) -> bytes:
    """The document, as UTF-8; it ends with a line feed, and an empty transcript gives an empty one."""
    parts = _in_markdown if markup is Document.MARKDOWN else _in_text
    head = "## {}\n\n" if markup is Document.MARKDOWN else "{}:\n"
    blocks = []
    for i in sent(transcript):
        message = transcript.messages[i]
        body = "\n\n".join(filter(None, parts(message)))
        if body:
            blocks.append(head.format(message.role.value) + body)
    text = "\n\n".join(blocks)
    return f"{text}\n".encode("utf-8", "replace") if text else b""


def _in_markdown(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text.strip()
        elif isinstance(part, Thinking):
            yield "\n".join(f"> {line}".rstrip() for line in part.text.strip().splitlines())
        elif isinstance(part, ToolCall):
            yield f"**{part.name}**\n{_fenced(arguments_text(part), 'json')}"
        elif isinstance(part, ToolResult):
            yield _fenced(part.text) + _media(part)
        elif isinstance(part, Media):
            yield f"({part.kind})"


def _in_text(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text.strip()
        elif isinstance(part, Thinking):
            yield f"(thinking) {part.text.strip()}"
        elif isinstance(part, ToolCall):
            yield f"{part.name} {arguments_text(part)}"
        elif isinstance(part, ToolResult):
            yield part.text.rstrip() + _media(part)
        elif isinstance(part, Media):
            yield f"({part.kind})"


def _fenced(text: str, language: str = "") -> str:
    """The text in a fence that nothing in it closes."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _media(result: ToolResult) -> str:
    return f"\n({result.media_count} images or files)" if result.media_count else ""
