"""Summary: sections of items, each item with the records it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Section(StrEnum):
    """What a compaction must keep, in the order it is read by the one who goes on.

    The values are the names in data files and schemas; templates choose their own headings and order.
    """

    TASK = "task"  # the current task, the last decision, the next open step
    USER = "user"  # the user's own words, verbatim
    PLAN = "plan"  # last plan or to-do state: done, in progress, open
    FILES = "files"  # files read, edited, created, deleted, with their last state
    COMMANDS = "commands"  # commands and their outcome
    ERRORS = "errors"  # errors and what fixed them
    DECISIONS = "decisions"  # decisions with their reasons
    QUESTIONS = "questions"  # questions that nobody has answered yet
    HISTORY = "history"  # turn by turn: what was asked, done, came of it; key lines
    PREVIOUS = "previous"  # what an earlier summary said that no record here shows
    NAMES = "names"  # one index of names that stand nowhere else, by file


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One statement. ``records`` are the indices it comes from (empty only for carried-over text).

    ``depth`` 0 is an item of its own, 1 stands under the item before it.
    """

    text: str
    records: tuple[int, ...] = ()
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionItems:
    """A section with its items, in reading order."""

    section: Section
    items: tuple[Item, ...]


class Source(StrEnum):
    """Who wrote the summary."""

    DIGEST = "digest"
    MODEL = "model"
    PLUGIN = "plugin"
    MEMORY = "memory"  # the agent, in a note of the session
    EXCERPTS = "excerpts"  # looked up, not summed up
    NOTICE = "notice"  # only says that something was left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What replaces the covered records.

    ``language`` is a BCP 47 primary tag (``en``, ``zh``, ``ja``). ``prose`` is a model's own text, set in
    place of (MODEL, PLUGIN) or together with (MODEL plus ledger) the sections. ``lost`` names what of the middle
    did not make it, by kind (``paths``, ``commands``, ``numbers``, ``user rules``, ``open items``), and
    ``retention`` the share that did (0 to 1), by the same kinds.
    """

    source: Source
    sections: tuple[SectionItems, ...]
    language: str = "en"
    prose: str = ""
    state_used: str = "none"  # none | table | text: how a previous summary's state came back
    lost: tuple[tuple[str, tuple[str, ...]], ...] = ()
    retention: tuple[tuple[str, float], ...] = ()
