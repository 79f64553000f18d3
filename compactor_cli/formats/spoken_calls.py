"""What an agent says to the user by a tool: a question with its options, a report at the end; and what is answered.

Cline and Roo Code ask and report by calls only; Claude Code, Codex, Gemini CLI, Qwen Code and Kimi ask by one;
OpenHands and inspect-ai end with one; Letta and tau-bench say everything so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from compactor_cli.model.transcript import ToolCall

# The argument with the words, by the tool's short name.
_REPORTS = {
    "attemptcompletion": "result",
    "finish": "message",
    "finalanswer": "answer",
    "submit": "answer",
    "respond": "content",
    "sendmessage": "message",
    "messagenotifyuser": "text",
}
_QUESTIONS = {
    "askuserquestion": "questions",
    "askfollowupquestion": "question",
    "askuser": "questions",
    "requestuserinput": "questions",
    "askquestion": "question",
    "question": "questions",
    "messageaskuser": "text",
}
# A message with an address is sent to somebody else.
_ADDRESSES = frozenset(("to", "recipient", "channel", "channel_id", "chat_id", "user_id", "email", "phone"))


@lru_cache(maxsize=1 << 10)
def short_name(name: str) -> str:
    """The tool's name without the server or namespace in front of it, without case, ``_`` and ``-``."""
    last = name.rsplit("__", 1)[-1].rsplit(".", 1)[-1].rsplit(":", 1)[-1].rsplit("/", 1)[-1]
    return last.replace("_", "").replace("-", "").replace(" ", "").lower()


def reported_words(call: ToolCall) -> str:
    """What a call tells the user; empty where it is none that does."""
    # The tool of a server sends to somebody else.
    words = None if _SERVER.search(call.name) else _argument(call, _REPORTS)
    return words if isinstance(words, str) else ""


_SERVER = re.compile(r"__|[.:/]")


def asked_questions(call: ToolCall) -> tuple[str, ...]:
    """The questions that a call asks the user, each after its options on numbered lines; none for other calls."""
    asked = _argument(call, _QUESTIONS)
    if isinstance(asked, str) and isinstance(call.arguments, Mapping):
        asked = [{"question": asked, "options": call.arguments.get("options", call.arguments.get("follow_up"))}]
    return tuple(filter(None, map(_question, asked if isinstance(asked, list) else ())))


def answers(questions: tuple[str, ...], result: str) -> tuple[str, ...]:
    """What the user answered in the result of a call that asked these: to each, or one text to all."""
    # Claude Code: "question"="answer", "question"="answer". You can now continue ...
    asked = "|".join(rf'(?:, )?"{re.escape(question.rpartition(chr(10))[2])}"="' for question in questions)
    found = re.split(asked, result)[1:]
    if len(found) == len(questions):
        last = re.split(r"\"\.? (?:You can now|User has)|\"\.?\s*\Z", found[-1])[0]
        return (*(words.removesuffix('"') for words in found[:-1]), last)
    words = reply_to_report(result) or _PREFIX.sub("", result, count=1).strip()
    try:
        return ("\n".join(_leaves(json.loads(words))),)
    except (ValueError, RecursionError):
        return (words,)


def reply_to_report(result: str) -> str:
    """The user's own words in the result of a call that reported; empty where a program answered."""
    return "\n".join(found[2].strip() for found in _REPLY.finditer(result))


_REPLY = re.compile(r"<(answer|feedback|user_message)>(.*?)</\1>", re.DOTALL)
_PREFIX = re.compile(r"\A\s*(?:The )?[Uu]ser(?:'s| has)? (?:answer(?:ed|s)?|provided)\b[^:\n]*:\s*")


def _argument(call: ToolCall, tools: Mapping[str, str]) -> Any:
    key = tools.get(short_name(call.name))
    given = call.arguments
    if key is None or not isinstance(given, Mapping) or not _ADDRESSES.isdisjoint(given):
        return None
    return given.get(key, given.get("question") if key == "questions" else None)


def _question(asked: Any) -> str:
    """A question, after its options."""
    if not isinstance(asked, Mapping) or not isinstance(asked.get("question"), str):
        return ""
    options = asked.get("options")
    if isinstance(options, str):  # Cline writes a list as JSON, Roo Code elements
        options = re.findall(r"<suggest\b[^>]*>(.*?)</suggest>", options, re.DOTALL) or _decoded(options)
    lines = filter(None, map(_option, options if isinstance(options, list) else ()))
    return "\n".join((*(f"{number}. {line}" for number, line in enumerate(lines, 1)), asked["question"].strip()))


def _option(option: Any) -> str:
    if not isinstance(option, Mapping):
        return option.strip() if isinstance(option, str) else ""
    parts = (option.get(key) for key in ("label", "text", "answer", "value", "description"))
    return ": ".join(dict.fromkeys(part.strip() for part in parts if isinstance(part, str) and part.strip()))


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(inner)
    elif value is not None:
        yield str(value)
