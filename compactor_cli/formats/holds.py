"""Holds: what a dialect can hold beside words. One value a dialect; conversion and the table of formats go by it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Flag, auto


class Holds(Flag):
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
    METADATA = auto()  # keys of anybody's beside the messages


# What each is called: in the table, and in the line that says what could not be carried.
NAMES = {
    Holds.SYSTEM: "system prompt",
    Holds.CALLS: "calls",
    Holds.SEVERAL: "parallel calls",
    Holds.WORDS: "words beside calls",
    Holds.IDS: "call ids",
    Holds.ERRORS: "error flags",
    Holds.THINKING: "thinking",
    Holds.IMAGES: "images",
    Holds.TIMES: "timestamps",
    Holds.USAGE: "usage counters",
    Holds.TOOLS: "tool definitions",
    Holds.MODEL: "model",
    Holds.SIDECHAINS: "sidechains",
    Holds.SUMMARIES: "summary marks",
    Holds.METADATA: "metadata",
}

# The heads of the table, in the same order.
SHORT_NAMES = "sys call par wrds id err thnk img time use tool modl side sum meta".split()

_TALK = Holds.CALLS | Holds.SEVERAL | Holds.WORDS
# Messages of a model's API, without and with what stands around them in a request.
CHAT = _TALK | Holds.SYSTEM | Holds.IDS | Holds.IMAGES
REQUEST = CHAT | Holds.TOOLS | Holds.MODEL | Holds.METADATA
# Session files of a client.
SESSION = _TALK | Holds.IDS | Holds.ERRORS | Holds.THINKING | Holds.IMAGES | Holds.TIMES | Holds.USAGE | Holds.MODEL
# Logs of runs.
RUN = _TALK | Holds.SYSTEM | Holds.MODEL | Holds.METADATA

# By the words of a specification.
WORDS = {flag.name.lower(): flag for flag in Holds if flag.name}
WORDS |= {"session": SESSION, "chat": CHAT, "request": REQUEST, "run": RUN}


def of_words(words: Iterable[str]) -> Holds:
    """What these words stand for, in their order; ``-images`` takes one away."""
    found = Holds(0)
    for word in words:
        flag = WORDS[word.removeprefix("-")]
        found = found & ~flag if word.startswith("-") else found | flag
    return found


def names_of(holds: Holds) -> tuple[str, ...]:
    """What these are called, in the order of the table."""
    return tuple(name for flag, name in NAMES.items() if flag in holds)
