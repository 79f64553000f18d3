"""Capabilities: what a dialect can hold next to words. One value a dialect; conversion and the table of formats go by
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Flag, auto


class Capabilities(Flag):
    """What a format has a place for."""

    SYSTEM = auto()
    CALLS = auto()  # tool calls and their results
    SEVERAL = auto()  # several calls in one message
    WORDS = auto()  # words in a message that calls
    IDS = auto()  # ids of calls
    ERRORS = auto()  # a mark of results that are errors
    THINKING = auto()
    IMAGES = auto()
    TIMES = auto()
    USAGE = auto()  # token counters
    TOOLS = auto()  # definitions of tools
    MODEL = auto()
    SIDECHAINS = auto()  # conversations of subagents
    SUMMARIES = auto()  # a mark of its own for a summary
    METADATA = auto()  # keys of anybody's next to the messages


# What each is called: in the table, and in the line that says what could not be carried.
NAMES = {
    Capabilities.SYSTEM: "system prompt",
    Capabilities.CALLS: "calls",
    Capabilities.SEVERAL: "parallel calls",
    Capabilities.WORDS: "words beside calls",
    Capabilities.IDS: "call ids",
    Capabilities.ERRORS: "error flags",
    Capabilities.THINKING: "thinking",
    Capabilities.IMAGES: "images",
    Capabilities.TIMES: "timestamps",
    Capabilities.USAGE: "usage counters",
    Capabilities.TOOLS: "tool definitions",
    Capabilities.MODEL: "model",
    Capabilities.SIDECHAINS: "sidechains",
    Capabilities.SUMMARIES: "summary marks",
    Capabilities.METADATA: "metadata",
}

# The heads of the table, in the same order.
SHORT_NAMES = "sys call par wrds id err thnk img time use tool modl side sum meta".split()

_CONVERSATION = Capabilities.CALLS | Capabilities.SEVERAL | Capabilities.WORDS
# Messages of a model's API, without and with what stands around them in a request.
CHAT = _CONVERSATION | Capabilities.SYSTEM | Capabilities.IDS | Capabilities.IMAGES
REQUEST = CHAT | Capabilities.TOOLS | Capabilities.MODEL | Capabilities.METADATA
# Session files of a client.
SESSION = (
    _CONVERSATION
    | Capabilities.IDS
    | Capabilities.ERRORS
    | Capabilities.THINKING
    | Capabilities.IMAGES
    | Capabilities.TIMES
    | Capabilities.USAGE
    | Capabilities.MODEL
)
# Logs of runs.
RUN = _CONVERSATION | Capabilities.SYSTEM | Capabilities.MODEL | Capabilities.METADATA

# By the words of a specification.
WORDS = {flag.name.lower(): flag for flag in Capabilities if flag.name}
WORDS |= {"session": SESSION, "chat": CHAT, "request": REQUEST, "run": RUN}


def of_words(words: Iterable[str]) -> Capabilities:
    """What these words stand for, in their order; ``-images`` takes one away."""
    found = Capabilities(0)
    for word in words:
        flag = WORDS[word.removeprefix("-")]
        found = found & ~flag if word.startswith("-") else found | flag
    return found


def names_of(holds: Capabilities) -> tuple[str, ...]:
    """What these are called, in the order of the table."""
    return tuple(name for flag, name in NAMES.items() if flag in holds)
