"""Summary: sections of items, each with the records it comes from; a summariser's `Request` and its `Answer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from itertools import groupby
from typing import Protocol

from compactor_cli.model.settings import NEWEST
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass

# Loads the counter table of an earlier digest by its hash; None if it is not stored.
LoadState = Callable[[str], bytes | None]


class Section(StrEnum):
    """What a compaction must keep, in the order in which the agent that continues the work reads it.

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
    HISTORY = "history"  # turn by turn: what was asked, what was done, what resulted; key lines
    PREVIOUS = "previous"  # content of an earlier summary that no record here shows
    NAMES = "names"  # an index, by file, of names that no other section mentions


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One statement."""

    text: str
    records: tuple[int, ...] = ()  # records it comes from, counted from 0; empty only for text that was carried over
    depth: int = 0  # 1: it belongs under the item before it


def record_ranges(records: Sequence[int]) -> tuple[str, ...]:
    """Ascending records (counted from 0) as texts that count from 1, runs as ranges: ``3``, ``12-15``."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(records), key=lambda one: one[1] - one[0])]
    return tuple(f"{run[0] + 1}-{run[-1] + 1}" if len(run) > 1 else f"{run[0] + 1}" for run in runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionItems:
    """A section with its items in reading order."""

    section: Section
    items: tuple[Item, ...]


class Source(StrEnum):
    """Who wrote the summary."""

    DIGEST = "digest"
    MODEL = "model"
    PLUGIN = "plugin"
    MEMORY = "memory"  # the agent, in a note that its session holds
    EXCERPTS = "excerpts"  # pieces of the transcript that were looked up, not summarised
    NOTICE = "notice"  # only a notice that something was left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What replaces the covered records."""

    source: Source
    sections: tuple[SectionItems, ...]
    language: str = "en"  # a BCP 47 primary tag
    prose: str = ""  # a model's or plug-in's own text, in place of the sections or, with a supplement, before them
    state_used: str = "none"  # none | table | text: from what the state of the previous summary was restored
    # What the summary does not mention of the middle, by kind: ``paths``, ``commands``, ``numbers``, ``user rules``,
    # ``open items``.
    lost: tuple[tuple[str, tuple[str, ...]], ...] = ()
    retention: tuple[tuple[str, float], ...] = ()  # the share that it does mention, 0 to 1, by the same kinds


_MOST_NAMED = 5  # names that the warning about invented names lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One summary to be written. ``count(render(summary)) <= budget_tokens`` must hold."""

    transcript: Transcript
    covered: tuple[int, ...]  # the records it replaces, counted from 0, ascending, previous summaries among them
    kept: tuple[int, ...]  # the records that stay: the summary need not repeat what they show
    budget_tokens: int
    render: Callable[[Summary], str]  # the text that will be written, frame included
    count: Callable[[str], int]  # the tokens of a text
    focus: str = ""  # the subject that the user wants kept; may be empty
    language: str = "auto"  # of the summary: ``auto`` or a language tag
    state: bytes | None = None  # the counter table stored with the previous summary, if it was found
    # Parses the text of a summary written by compact, with whichever template.
    read: Callable[[str], tuple[SectionItems, ...]] = lambda text: ()
    read_client: Callable[[str], tuple[SectionItems, ...]] = lambda text: ()  # the same for a client's own summary
    restore_files: int = 0  # as `Settings.restore_files`
    kept_by: str = NEWEST  # as `Keep.by`
    heading_names: Callable[[], Mapping[str, Section]] = dict  # all names of the template's headings, lower case


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A summary and, if a model was asked for it, what came of that."""

    summary: Summary
    state: bytes | None = None  # its counter table, to be stored with the archive
    fell_back: str = ""  # why the digest wrote the summary, or parts of it, in place of the model; empty: it did not
    invented: tuple[str, ...] = ()  # names and quotations of the model that are in no record: marked or taken out
    redacted: Mapping[str, int] = field(default_factory=dict)  # secrets taken out before anything was sent, by kind
    refused: Mapping[str, int] = field(default_factory=dict)  # replies that were paid for but not used, by fault
    refused_tokens: int = 0  # tokens of these replies
    notes: tuple[str, ...] = ()  # for people

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know: that the digest stepped in, and what the model invented. May be empty."""
        found = []
        if self.fell_back:
            what = "parts of the summary" if self.summary.source is Source.MODEL else "the summary"
            found.append(f"the digest wrote {what}: {self.fell_back}")
        if self.invented:
            names = f"{len(self.invented)}, marked or taken out: {', '.join(self.invented[:_MOST_NAMED])}"
            found.append(f"the model named what no summarised record holds ({names})")
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a summary costs without retries, if each reply is as long as the model is asked for."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0  # None: the price is not known

    def __add__(self, other: Estimate) -> Estimate:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Estimate(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )


class Summariser(Protocol):
    """Writes summaries. Raises nothing for odd content; a summary may be empty."""

    def summarise(self, request: Request) -> Answer:
        """Summarise the records ``request.covered`` within ``request.budget_tokens``."""
        ...
