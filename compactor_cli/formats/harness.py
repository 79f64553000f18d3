"""The person's own words in a message of the user, without the texts of a client or a harness.

Agents put much into messages of the role ``user`` that nobody typed: reminders, the state of the editor, the output
of commands, notices about a call that failed. What each client writes is data, in ``harness.toml``. `user_text` removes
it. A dialect whose records themselves separate the two gives the person's words in ``Message.own_words``.

Also the tools by which an agent speaks to the user, and the user's answers: questions with options, reports at the end.
Cline and Roo Code ask and report only by calls; Claude Code, Codex, Gemini CLI, Qwen Code and Kimi ask by a call;
OpenHands and inspect-ai end with one; Letta and tau-bench send all words to the user by calls.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from compactor_cli.formats.contents import is_of_server, json_value, listed, short_name, string
from compactor_cli.model.patterns import pattern
from compactor_cli.model.transcript import Message, Role, Text, ToolCall, ToolResult
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


# Tools that report to the user and ask the user, by short name, with the argument that has the words.
_REPORTS = {"attemptcompletion": "result", "finish": "message", "sendmessage": "message", "messagenotifyuser": "text"}
_REPORTS |= {"finalanswer": "answer", "submit": "answer", "respond": "content"}
_REPORTS_AN_OBJECT = frozenset(("structuredoutput",))
_QUESTIONS = dict.fromkeys(("askuserquestion", "askuser", "requestuserinput", "question"), "questions")
_QUESTIONS |= {"askfollowupquestion": "question", "askquestion": "question", "messageaskuser": "text"}
# A message with an address is sent to somebody else.
_ADDRESSES = frozenset(("to", "recipient", "target", "channel", "channel_id", "chat_id", "user_id", "email", "phone"))


def reported_words(call: ToolCall) -> str:
    """The text that a call sends to the user as a report; empty for any other call.

    A report that is an object has a line for each member, as in YAML.
    """
    if is_of_server(call.name):
        return ""
    if short_name(call.name) in _REPORTS_AN_OBJECT:
        return "\n".join(_members(call.arguments))
    return string(_argument(call, _REPORTS))


def _members(value: Any) -> Iterator[str]:
    """The lines that show a value: of an object a line for each member, of a list an entry for each element."""
    if isinstance(value, Mapping) and value:
        for key, member in value.items():
            lines = list(_members(member))
            is_brief = len(lines) == 1 and not (isinstance(member, list) and member)
            yield from (f"{key}: {lines[0]}",) if is_brief else (f"{key}:", *lines)
    elif isinstance(value, list) and value:
        for element in value:
            first, *rest = _members(element)
            yield from (f"- {first}", *(f"  {line}" for line in rest))
    else:
        yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def asked_questions(call: ToolCall) -> tuple[str, ...]:
    """The questions that a call asks the user, each with its options on numbered lines before it. Empty for others."""
    asked = None if is_of_server(call.name) else _argument(call, _QUESTIONS)
    if isinstance(asked, str) and isinstance(call.arguments, Mapping):
        asked = [{"question": asked, "options": call.arguments.get("options", call.arguments.get("follow_up"))}]
    return tuple(filter(None, map(_question, listed(asked))))


def answers(questions: tuple[str, ...], result: str) -> tuple[str, ...]:
    """The user's answers in the result of a call that asked these questions: one for each, or a single one for all."""
    # Claude Code: "question"="answer", "question"="answer". You can now continue ...
    asked = "|".join(rf'(?:, )?"{re.escape(question.rpartition(chr(10))[2])}"=(?:"|(?=\())' for question in questions)
    found = re.split(asked, result)[1:]
    if len(found) == len(questions):
        last = _AFTER_ANSWERS.split(found[-1])[0]
        return tuple(_answer_with_notes(words.removesuffix('"')) for words in (*found[:-1], last))
    words = reply_to_report(result) or _PREFIX.sub("", result, count=1).strip()
    try:
        return ("\n".join(_leaves(json.loads(words))),)
    except (ValueError, RecursionError):
        return (words,)


_AFTER_ANSWERS = pattern(r"\"?\.? (?:You can now|User has|Read the answers carefully)\b|\"\.?\s*\Z")


def _answer_with_notes(given: str) -> str:
    """The chosen answer with the notes that the user added: `Yes" user notes: not now`. Equal texts only once.

    Where the user chose none, the notes are the answer: `(no option selected) notes: only the gauge`.
    """
    if not_chosen := _NOT_CHOSEN.match(given):
        return given[not_chosen.end() :].strip().removesuffix(".")
    chosen, *more = _MORE.split(given, maxsplit=1)
    _, noted, notes = "".join(more).rpartition("user notes:")
    notes = notes.strip().removesuffix(".")
    is_more = noted and notes != chosen.strip().removesuffix(".")
    return f"{chosen}: {notes}" if is_more else chosen


_NOT_CHOSEN = pattern(r"\(no option selected\) (?:user )?notes:")
# After an answer, the client repeats the preview of the option: `Yes" selected preview: …`.
_MORE = pattern(r"\"\s+(?:selected (?:preview|markdown)|(?=user notes)):?")


def reply_to_report(result: str) -> str:
    """The user's own words in the result of a call that reported; empty if a program answered."""
    return "\n".join(found[2].strip() for found in _REPLY.finditer(result))


def is_denied_by_rule(value: Any) -> bool:
    """Whether a rule or a classifier refused a call, not the user, by what its record says."""
    kind = value.get("toolDenialKind") if isinstance(value, Mapping) else None
    return isinstance(kind, str) and not kind.startswith("user")


def is_unmarked_refusal(value: Any, text: str) -> bool:
    """Whether the result of a call is what the user wrote when refusing it, without any sign of the refusal.

    Claude Code 2 writes such results. Errors of the call itself begin with the exit code there, or are in an element.
    Where a program runs it (``entrypoint`` sdk-…), a program's words on why a call is refused stand there as well.
    """
    if not isinstance(value, Mapping) or "parentUuid" not in value:
        return False
    version = string(value.get("version")).partition(".")[0]
    is_newer = version.isdigit() and int(version) >= _MARKS_ERRORS_SINCE
    may_be = is_newer and len(text) <= _MAX_REFUSAL_CHARS and _SPOKEN.match(text) is not None
    return may_be and not (string(value.get("entrypoint")).startswith("sdk") and not _IN_PERSON.search(text))


_MARKS_ERRORS_SINCE, _MAX_REFUSAL_CHARS = 2, 1_000
# Three words, as a person's sentence begins, that are not the beginning of one of the client's own texts.
_SPOKEN = pattern(
    r"(?!Exit code|Error|Command |Permission |Request |File |String |Found \d|No (?:such|match|file)|Tool )"
    r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?(?:[,.!?;]* +[^\W\d_][\w'\u2019-]*){2}"
)
# A person's words to another: `please ask me`, `why all of them?`
_IN_PERSON = pattern(
    r"\b(?:I|me|my|we|you|your|let['’]?s|please|don['’]t|stop|wait|instead|why|no)\b|[^\x00-\x7f]{4}", re.IGNORECASE
)
_REPLY = pattern(r"<(answer|feedback|user_message)>(.*?)</\1>", re.DOTALL)
_PREFIX = pattern(r"\A\s*(?:The )?[Uu]ser(?:'s| has)? (?:answer(?:ed|s)?|provided|responded|selected)\b[^:\n]*:\s*")


def _argument(call: ToolCall, tools: Mapping[str, str]) -> Any:
    key = tools.get(short_name(call.name))
    given = call.arguments
    if key is None or not isinstance(given, Mapping) or not _ADDRESSES.isdisjoint(given):
        return None
    return given.get(key, given.get("question") if key == "questions" else None)


def _question(asked: Any) -> str:
    """A question with its options on numbered lines before it; empty if it is not a question."""
    if not isinstance(asked, Mapping) or not isinstance(asked.get("question"), str):
        return ""
    options = asked.get("options")
    if isinstance(options, str):  # Cline writes a list as JSON, Roo Code elements
        options = re.findall(r"<suggest\b[^>]*>(.*?)</suggest>", options, re.DOTALL) or json_value(options)
    lines: list[str] = []
    for option in listed(options):
        held = [option.get(key) for key in _OPTION_KEYS] if isinstance(option, Mapping) else [option]
        words = dict.fromkeys(part.strip() for part in held if isinstance(part, str) and part.strip())
        lines += [f"{len(lines) + 1}. {': '.join(words)}"] if words else []
    return "\n".join((*lines, asked["question"].strip()))


_OPTION_KEYS = ("label", "text", "answer", "value", "description")


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(inner)
    elif value is not None:
        yield str(value)
