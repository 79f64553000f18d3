"""Flatten: records as quoted text for a prompt, so that nothing in them can pass for an instruction or a mark written
by compact.

Every mark of the prompt stands at the beginning of a line and opens with ``<<`` and a letter or digit. A line of
the source that begins so, or that is a heading of the summary's template, gets ``| `` before it; the opening of
a summary's marker line is written with another bracket. Quoted text can thus end no quotation and open no section.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import orjson

from compactor_cli.digest.events import plain, without_block
from compactor_cli.model.settings import PruneRule
from compactor_cli.model.transcript import Media, Message, Part, Text, ToolCall, ToolResult, Transcript
from compactor_cli.plan.shorten import shortened

QUOTE = "| "
_MARKER, _HARMLESS = "[compact/", "(compact/"
# Everything a reader may take for the end of a line; only the first is one in a prompt.
_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
# What clients tell their models between the lines: rules of their own, said again and again.
_REMINDER = "system-reminder"
# This many characters of a block are never cut: its header, and what tells that something was left out.
_LEAST_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One record as a prompt shows it. ``name``: its number, counted from 1; ``cut_chars``: left out of its texts."""

    record: int
    name: str
    text: str
    cut_chars: int = 0

    def shortened(self, chars: int) -> Block:
        """The block with at most about this many characters: its middle is replaced by a note of what is missing."""
        if len(self.text) <= chars:
            return self
        half = max(chars, _LEAST_CHARS) // 2
        text = shortened(self.text, half, half)
        return replace(self, text=text, cut_chars=self.cut_chars + len(self.text) - 2 * half)


def flatten(
    transcript: Transcript,
    indices: Iterable[int],
    *,
    rule: PruneRule | None = None,
    headings: Sequence[str] = (),
    prefix: str = "",
) -> tuple[Block, ...]:
    """A block for each of these records that says something, in order; thinking and media are left out.

    So are what clients remind their models of, and records of which nothing else is left. Results of tools are cut by
    ``rule``; every other text is whole. ``headings``: lines of the template.
    ``prefix`` stands before the numbers of records that come from another transcript. Linear in the text.
    """
    names = tool_names(transcript.messages)
    quoted = quoter(headings)
    blocks = (
        _block(index, transcript.messages[index], names, rule, quoted, prefix)
        for index in indices
        if not transcript.messages[index].is_meta
    )
    return tuple(block for block in blocks if block)


def quoter(headings: Iterable[str]) -> Callable[[str], str]:
    """What makes a text fit to be quoted: no line of it is a mark written by compact or one of these headings."""
    pattern = _forged(tuple(sorted({heading for heading in headings if heading})))

    def quoted(text: str) -> str:
        text = _BREAKS.sub("\n", plain(text)).replace(_MARKER, _HARMLESS)
        return pattern.sub(_set_off, encodable(text))

    return quoted


def _set_off(found: re.Match[str]) -> str:
    return f"{QUOTE}{found[0]}"


@lru_cache(maxsize=32)
def _forged(headings: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(re.escape(heading) for heading in headings)
    lines = rf"|(?:{names})[ \t]*$" if names else ""
    return re.compile(rf"^[ \t]*(?:<<(?=\w){lines})", re.MULTILINE | re.IGNORECASE)


def encodable(text: str) -> str:
    """The text with what UTF-8 has no bytes for (halves of surrogate pairs) replaced by question marks."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def tool_names(messages: Sequence[Message]) -> Mapping[str, str]:
    """The tool's name by the id of its call."""
    return {call.id: call.name for message in messages for call in message.calls if call.id}


def _block(
    index: int,
    message: Message,
    names: Mapping[str, str],
    rule: PruneRule | None,
    quoted: Callable[[str], str],
    prefix: str,
) -> Block | None:
    name = f"{prefix}{index + 1}"
    head = f"<<{name} {_title(message, names, quoted)}>>"
    texts: list[str] = []
    cut_chars = 0
    for part in message.parts:
        whole = _part_text(part)
        text = _ruled(whole, rule) if isinstance(part, ToolResult) else whole
        cut_chars += max(len(whole) - len(text), 0)
        if text.strip():
            texts.append(quoted(text).strip("\n"))
    return Block(record=index, name=name, text="\n".join([head, *texts]), cut_chars=cut_chars) if texts else None


def _title(message: Message, names: Mapping[str, str], quoted: Callable[[str], str]) -> str:
    """Who speaks: the role, the tools that answer, and whether an answer is an error."""
    if message.summary is not None:
        return "earlier summary"
    tools = dict.fromkeys(result.name or names.get(result.id, "") for result in message.results)
    words = [message.role.value, *(quoted(tool).replace("\n", " ").replace(">>", "> >") for tool in tools if tool)]
    return " ".join([*words, "error"] if any(result.is_error for result in message.results) else words)


def _part_text(part: Part) -> str:
    """The words of a part; empty for thinking."""
    if isinstance(part, Text):
        return without_block(part.text, _REMINDER)
    if isinstance(part, ToolResult):
        return without_block(part.text, _REMINDER) + (
            f"\n({part.media_count} images or files)" if part.media_count else ""
        )
    if isinstance(part, ToolCall):
        return call_text(part)
    return f"({part.kind})" if isinstance(part, Media) else ""


def call_text(call: ToolCall) -> str:
    """A call as text: ``call NAME``, then a line ``key=value`` for each argument."""
    if isinstance(call.arguments, str):
        return f"call {call.name}\n{call.arguments}".rstrip()
    return "\n".join([f"call {call.name}", *(f"{key}={_value(value)}" for key, value in call.arguments.items())])


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError):
        return str(value)


def _ruled(text: str, rule: PruneRule | None) -> str:
    if rule is None or rule.kind != "tool-result" or len(text) <= rule.over_chars:
        return text
    return shortened(text, rule.first_chars, rule.last_chars, rule.marker)
