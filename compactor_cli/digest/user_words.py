"""The user's own words: every message verbatim, and what was said when a tool call was turned down or stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compactor_cli.digest.commands import shown
from compactor_cli.digest.events import PATH_KEYS, Event, EventKind, argument, command_of
from compactor_cli.digest.language import dense_share
from compactor_cli.digest.statements import QUESTION_MARKS, opening, sentences, verbatim

# A message of fewer words is a reply: it is read with what it replies to. Where a conversation is all talk, most
# messages are short and hold the names and numbers that matter.
SHORT_WORDS, SHORT_WORDS_OF_CHAT = 8, 4
_CHARS_PER_WORD = 8
# A longer message says itself what it is about.
_MAX_REPLY_CHARS = 80
_ENDING_CHARS = 1_500
_MAX_CALL_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """One message of the user: its words, its record, its turn, and whether it is a few words only.

    ``replies_to``: what the assistant said just before a short one; ``asked``: the record of that. ``stopped``: the
    call that the user turned down or stopped with these words (which may be empty then).
    """

    text: str
    record: int
    turn: int
    is_short: bool = False
    replies_to: str = ""
    asked: int = -1
    stopped: str = ""


def user_messages(events: Sequence[Event], short_words: int = SHORT_WORDS) -> tuple[UserMessage, ...]:
    """What the user said, in order, refusals of calls included; of equal messages only the newest."""
    found: dict[str, UserMessage] = {}
    before: Event | None = None
    for event in events:
        is_refusal = event.kind is EventKind.RESULT and event.is_refusal
        is_spoken = is_refusal or event.kind is EventKind.USER
        text = verbatim((event.refusal or "") if is_refusal else event.text) if is_spoken else ""
        if is_refusal or (event.kind is EventKind.USER and text):
            stopped = _call_words(events[event.call]) if is_refusal and event.call >= 0 else ""
            message = UserMessage(
                text=text,
                record=event.record,
                turn=event.turn,
                is_short=not is_refusal and is_short(text, short_words),
                stopped=stopped,
            )
            if before is not None and not is_refusal and len(text) <= _MAX_REPLY_CHARS and not text.startswith("/"):
                answered = last_question(before.text) or (last_words(before.text) if message.is_short else "")
                message = replace(message, replies_to=answered, asked=before.record)
            found.pop(f"{text}\n{stopped}", None)
            found[f"{text}\n{stopped}"] = message
        before = event if event.kind is EventKind.ASSISTANT else None
    return tuple(sorted(found.values(), key=lambda message: message.record))


def is_short(text: str, short_words: int = SHORT_WORDS) -> bool:
    """Whether a text has fewer words (Chinese and Japanese: about as many characters as this many words)."""
    weight = len(text) * (1 + dense_share(text))
    return len(text.split()) < short_words and weight < _CHARS_PER_WORD * short_words


def _call_words(call: Event) -> str:
    """A call by what it would have done: its command, else its name and file."""
    if command := shown(command_of(call.arguments)) if call.tool == "command" else "":
        return opening(command, _MAX_CALL_CHARS)
    return f"{call.name} {argument(call.arguments, PATH_KEYS)}".strip()


def last_question(text: str) -> str:
    """The question that a text ends with, or nearly; empty if there is none."""
    ending = text if len(text) <= _ENDING_CHARS else text[-_ENDING_CHARS:].partition("\n")[2]
    if not any(mark in ending for mark in QUESTION_MARKS):
        return ""
    asked = [sentence for sentence in sentences(ending)[-3:] if sentence.rstrip("*_`)\"'").endswith(QUESTION_MARKS)]
    return asked[-1] if asked else ""


def last_words(text: str) -> str:
    """What a short reply to a text answers: its last question, else its last sentence."""
    return last_question(text) or next(iter(sentences(text[-_ENDING_CHARS:])[-1:]), "")
