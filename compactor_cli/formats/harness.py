"""The person's own words in a message of the user, without the texts of a client or a harness.

Agents put much into messages of the role ``user`` that nobody typed: reminders, the state of the editor, the output
of commands, notices about a call that failed. What each client writes is data, in ``harness.toml``. `user_text` removes
it. A dialect whose records themselves separate the two gives the person's words in ``Message.own_words``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from compactor_cli.formats.contents import json_value, string
from compactor_cli.model.transcript import Message, Role, Text, ToolResult
from compactor_cli.model.value import dataclass


@dataclass(frozen=True, kw_only=True)
class Harness:
    """What one client writes into messages of the user. Elements may have attributes."""

    blocks: tuple[str, ...] = ()  # elements that the client wrote, with their content
    wrappers: tuple[str, ...] = ()  # elements whose tags the client wrote around the person's words
    quotes: tuple[str, ...] = ()  # wrappers outside of which the text is the client's alone
    command: tuple[str, ...] = ()  # the elements with the name and the arguments of a command that the person typed
    openings: tuple[str, ...] = ()  # regular expressions for beginnings of texts that are the client's as a whole
    heads: tuple[tuple[str, str], ...] = ()  # a beginning of a text, and the mark after which the person's words follow
    tails: tuple[str, ...] = ()  # marks after which the rest of a text is the client's
    notices: tuple[str, ...] = ()  # sentences of the client, wherever they stand
    commands: tuple[str, ...] = ()  # commands to the client itself, which ask nothing of the model
    # For texts that are JSON objects with a ``type``: the type that holds the person's words, and the key with them.
    envelope: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()  # beginnings of results of calls that the person refused
    own_blocks: tuple[str, ...] = ()  # as ``blocks``, but too common to be looked for in the files of other clients
    own_openings: tuple[str, ...] = ()  # as ``openings``, but too common as well

    def words(self, text: str) -> str:
        """The text without what the client wrote in it; may be empty."""
        if self.envelope and text.lstrip()[:1] == "{":
            value, (kind, key) = json_value(text), self.envelope
            if isinstance(value, dict) and isinstance(value.get("type"), str) and "time" in value:
                text = string(value.get(key)) if value["type"] == kind else ""
        if self._is_clients(text):
            return ""
        if "<" in text:
            text = self._without_elements(text)
        text = text.lstrip()
        for beginning, mark in self.heads:
            if text.startswith(beginning):
                text = text.partition(mark)[2].rstrip().removesuffix("</feedback>")
        for mark in self.tails:
            text = text.partition(mark)[0]
        for notice in self.notices:
            text = text.replace(notice, "")
        text = text.strip()
        return "" if text in self.commands or self._is_clients(text) else text

    # Compiled when first needed: it takes longer than some hundred matches, and most texts hold no element.
    @cached_property
    def _opening(self) -> re.Pattern[str] | None:
        openings = (*self.openings, *self.own_openings)
        return re.compile(rf"\s*(?:{'|'.join(openings)})") if openings else None

    @cached_property
    def _block(self) -> re.Pattern[str] | None:
        return _elements((*self.blocks, *self.own_blocks))

    @cached_property
    def _begun_block(self) -> re.Pattern[str] | None:
        names = "|".join(map(re.escape, (*self.blocks, *self.own_blocks)))
        return re.compile(rf"\s*<(?:{names})(?:\s[^<>]*)?>") if names else None

    @cached_property
    def _quote(self) -> re.Pattern[str] | None:
        return _elements(self.quotes, r"(?:^|\n)")

    def _is_clients(self, text: str) -> bool:
        return self._opening is not None and self._opening.match(text) is not None

    def _without_elements(self, text: str) -> str:
        if self._quote and (quoted := [found["inner"].strip() for found in self._quote.finditer(text)]):
            text = "\n".join(quoted)
        text = _SKILL.sub(lambda skill: f"/skill:{skill[1]} ", text)
        if self._block:
            text = self._block.sub("", text)
        if self._begun_block and self._begun_block.match(text):
            return ""
        if self.command and f"<{self.command[0]}>" in text:
            # The typed command, before the rest of the text. A command to the client itself is left out.
            found: list[str] = []
            for tag in self.command:
                if element := re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL):
                    found.append(element[1].strip())
                    text = text.replace(element[0], "", 1)
            typed = "" if found and found[0] in self.commands else " ".join(filter(None, found))
            text = f"{typed}\n{text.strip()}"
        for tag in self.wrappers:
            if text.lstrip().startswith(f"<{tag}>"):
                text = text.replace(f"<{tag}>", "").replace(f"</{tag}>", "")
        return text


# pi replaces the command that asks for a skill by the skill's text.
_SKILL = re.compile(r"\A\s*<skill name=\"([^\"\n]+)\" location=[^>\n]*>(.*?)</skill>\s*", re.DOTALL)


def skill_text(text: str) -> str:
    """The text of the skill that a message of the user holds in place of the command that asks for it, or nothing."""
    found = _SKILL.match(text) if text.lstrip().startswith("<skill ") else None
    return found[2].strip() if found else ""


def _elements(tags: tuple[str, ...], before: str = "") -> re.Pattern[str] | None:
    """A pattern for elements of these names, with or without attributes; its group ``inner`` is their content."""
    names = "|".join(map(re.escape, tags))
    pattern = rf"{before}<(?P<tag>{names})(?:\s[^<>]*)?>(?P<inner>.*?)</(?P=tag)>"
    return re.compile(pattern, re.DOTALL) if tags else None


@cache
def harnesses() -> Mapping[str, Harness]:
    """The `Harness` of each client, by the dialects of its files."""
    found: dict[str, Harness] = {}
    for table in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["client"]:
        names = table.pop("formats")
        table["heads"] = map(tuple, table.get("heads", ()))
        found |= dict.fromkeys(names, Harness(**{key: tuple(value) for key, value in table.items()}))
    return found


# Fields that are looked for only in a client's own files.
_OWN_FIELDS = ("own_blocks", "own_openings")
# The text around a person's reason for refusing a call; group 1 is the reason.
_REASON = re.compile(
    r"(?:the user said:\n|reason for the rejection: |<feedback>\s*|User feedback: |following feedback: "
    r"|\"feedback\":\s*\"|provided by the user as an alternative: )"
    r"(.*?)\s*(?:\n\nNote: |</feedback>|\"\}\Z|\Z)",
    re.DOTALL,
)
# What Antigravity writes before the reason for which a call failed.
_FAILED_STEP = re.compile(r"Created At: .*\n(?:Completed At: .*\n)?\s*Encountered error in step execution: ")
# What a client writes if the person chose no answer to a question but wants to discuss it.
_WANTS_TO_CLARIFY = "The user wants to clarify these questions."


def user_text(message: Message) -> str:
    """The person's own words in a message, without what a client or a harness wrote around them.

    Empty if there are none, for a summary, and for every message that is not the user's. A slash command is given as
    its name and its arguments. The texts of a message are on separate lines, equal texts only once.
    """
    if message.role is not Role.USER or message.summary is not None:
        return ""
    if message.own_words is not None:
        return message.own_words
    speaker = _speaker(message.client)
    texts = (speaker.words(part.text) for part in message.parts if isinstance(part, Text))
    return "\n".join(dict.fromkeys(text for text in texts if text))


def refusal(result: ToolResult) -> str | None:
    """The user's words when refusing the call with this result: empty if there are none; None if it was not refused."""
    head = _FAILED_STEP.match(result.text)
    text = result.text[head.end() :] if head else result.text.lstrip()
    if not text.startswith(_speaker("").refusals):
        return None
    found = _REASON.search(text)
    return found[1].strip() if found and not found[1].startswith(_WANTS_TO_CLARIFY) else ""


def with_client(messages: Sequence[Message], name: str) -> tuple[Message, ...]:
    """The messages, those of the user with ``client`` set to this dialect if its client writes into them."""
    if name not in harnesses():
        return tuple(messages)
    return tuple(
        replace(message, client=name) if message.role is Role.USER and message.client != name else message
        for message in messages
    )


@cache
def _speaker(client: str) -> Harness:
    """The harness of a client. For an unknown client it is that of all clients together, without `_OWN_FIELDS`."""
    if client in harnesses():
        return harnesses()[client]
    merged: dict[str, Any] = {}
    for name in (field.name for field in fields(Harness) if field.name not in _OWN_FIELDS):
        values = (value for harness in harnesses().values() for value in getattr(harness, name))
        merged[name] = tuple(dict.fromkeys(values))
    return Harness(**merged)
