"""Which artefacts, facts and lines of the middle a summary still gives.

Artefacts are files, commands, open items, decisions and errors. A fact, where there are no files to name, is a value
that the agent uses in the future, that somebody gave in the middle and nobody repeated before the agent needed it: an
argument of a call, an amount, a number, a name. A line counts where it can be found by what the future asks (BM25).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from compactor_cli.digest.events import PATH_KEYS, Event, EventKind, FileAction, ToolKind, argument, command_of, objects
from compactor_cli.digest.files import patched_files
from compactor_cli.evaluate.cuts import EvalCase
from compactor_cli.evaluate.measures import LINE_CHARS, Measure, Share, SummaryView, Use, lines_of, words
from compactor_cli.llm.importance import Index
from compactor_cli.model.value import dataclass

# Fewer words come again by chance.
LEAST_LINE_WORDS = 4
# A longer command is given by its beginning.
COMMAND_WORDS = 16
_DONE = frozenset({"completed", "complete", "done", "cancelled", "canceled", "deleted", "skipped"})
_ITEM_KEYS = ("content", "step", "title", "description", "subject", "task", "text")
_LIST_KEYS = ("todos", "plan", "items", "tasks", "task_list", "todo_list", "todoList")


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefacts:
    """What the middle did. Lines are sequences of words, so that markup and line breaks do not count."""

    edited: tuple[str, ...]
    read: tuple[str, ...]
    commands: tuple[str, ...]
    todos: tuple[str, ...]
    decisions: tuple[str, ...]
    errors: tuple[str, ...]


def artefacts_of(events: Sequence[Event]) -> Artefacts:
    """The distinct artefacts of these events."""
    edited = dict.fromkeys(_paths(events, ToolKind.EDIT))
    # A file that was read may just mention errors.
    failing = (event for event in events if event.is_error or event.tool not in (ToolKind.READ, ToolKind.EDIT))
    return Artefacts(
        edited=tuple(edited),
        read=tuple(path for path in dict.fromkeys(_paths(events, ToolKind.READ)) if path not in edited),
        commands=tuple(dict.fromkeys(_commands(events))),
        todos=tuple(dict.fromkeys(_open_items(events))),
        decisions=tuple(dict.fromkeys(_telling_lines(events, EventKind.ASSISTANT, _decision()))),
        errors=tuple(dict.fromkeys(_telling_lines(failing, EventKind.RESULT, _error()))),
    )


def score_artefacts(artefacts: Artefacts, summary: SummaryView) -> dict[Measure, Share]:
    """Which of them the summary names."""
    return {
        Measure.EDITED: _share(_names_path(path, summary) for path in artefacts.edited),
        Measure.READ: _share(_names_path(path, summary) for path in artefacts.read),
        Measure.COMMANDS: _share_named(artefacts.commands, summary),
        Measure.TODOS: _share_named(artefacts.todos, summary),
        Measure.DECISIONS: _share_named(artefacts.decisions, summary),
        Measure.ERRORS: _share_named(artefacts.errors, summary),
    }


def _share(hits: Iterable[bool]) -> Share:
    every = tuple(hits)
    return Share(kept=sum(every), total=len(every))


def _share_named(texts: Iterable[str], summary: SummaryView) -> Share:
    return _share(f" {text} " in summary.flat_words for text in texts)


def _names_path(path: str, summary: SummaryView) -> bool:
    """The path as a whole, or its folder and its name on one line (``src/app: a.py, b.py``)."""
    if _holds(summary.text, path):
        return True
    folder, _, name = path.rpartition("/")
    return bool(folder) and any(
        _holds(line, name) and _holds(line, folder) for line in summary.lines if name in line and folder in line
    )


def _holds(text: str, path: str) -> bool:
    """Whether the text holds the path, and not as part of a longer name."""
    at = text.find(path)
    while at >= 0:
        before, following = text[at - 1 : at], text[at + len(path) : at + len(path) + 1]
        if not (before.isalnum() or before in ("_", "-", ".")) and not (following.isalnum() or following == "_"):
            return True
        at = text.find(path, at + 1)
    return False


def _paths(events: Iterable[Event], tool: ToolKind) -> Iterator[str]:
    for event in events:
        if event.kind is EventKind.CALL and event.tool is tool:
            path = argument(event.arguments, PATH_KEYS).removeprefix("./").rstrip("/")
            if path and "\n" not in path and ("/" in path or "." in path.strip(".")):
                yield path
            if tool is ToolKind.EDIT and "*** Begin Patch" in event.text:
                # All but the names that a patch gives to files.
                yield from (path for action, path in patched_files(event.text) if action is not FileAction.MOVE)


def _commands(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        is_command = event.kind is EventKind.CALL and event.tool is ToolKind.COMMAND
        if is_command and (first := next(lines_of(command_of(event.arguments)), "")):
            yield " ".join(words(first)[:COMMAND_WORDS])


def _open_items(events: Sequence[Event]) -> Iterator[str]:
    """The items of the last list that are not done."""
    for event in reversed(events):
        if (
            event.kind is EventKind.CALL
            and event.tool is ToolKind.PLAN
            and (items := objects(event.arguments, _LIST_KEYS))
        ):
            for item in items:
                if str(item.get("status", "")).lower() not in _DONE and (text := argument(item, _ITEM_KEYS)):
                    yield " ".join(words(text))
            return


def _telling_lines(events: Iterable[Event], kind: EventKind, cue: re.Pattern[str]) -> Iterator[str]:
    for event in events:
        for line in lines_of(event.text) if event.kind is kind else ():
            if len(line) <= LINE_CHARS and cue.search(line) and len(found := words(line)) >= LEAST_LINE_WORDS:
                yield " ".join(found)


@cache
def _decision() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:decid(?:ed|ing)|decision|instead of|rather than|chose|chosen|opted|go(?:ing)? with|the (?:root )?cause"
        r"|because|trade-?off|better (?:approach|option)|so that|agreed)\b"
        r"|决定|因为|而不是|选择|改用|ことにし|なぜなら|代わりに",
        re.IGNORECASE,
    )


@cache
def _error() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:[A-Z]\w*(?:Error|Exception)\b|(?:fatal|error|panic|failed|failure|Traceback|FAIL(?:ED)?)\b[:\s(\[])"
        r"|\b(?:not found|no such file|permission denied|command not found|undefined reference|cannot find)\b"
        r"|错误|失败",
    )


# Longer values are texts, not facts.
MOST_ANSWER_WORDS = 12
_TRIVIAL = frozenset({"true", "false", "none", "null", "yes", "no", "ok", "user", "assistant", "i", "the"})


def reused_facts(case: EvalCase) -> tuple[str, ...]:
    """Word sequences in lower case, in the order of their first use."""
    known = _flat((*case.head_events, *case.tail_events))
    middle = _flat(case.middle_events)
    shown = ""
    found: dict[str, None] = {}
    for event in case.future_events:
        if event.kind in (EventKind.USER, EventKind.RESULT):
            shown += _flat((event,))
            continue
        for fact in _facts(event):
            phrase = f" {fact} "
            if phrase in middle and phrase not in known and phrase not in shown:
                found.setdefault(fact)
    return tuple(found)


def score_facts(wanted: Iterable[str], summary: SummaryView) -> Share:
    """Share of the facts whose words are all in the summary."""
    wanted = tuple(wanted)
    return Share(kept=sum(summary.word_set.issuperset(fact.split()) for fact in wanted), total=len(wanted))


def _flat(events: Iterable[Event]) -> str:
    return f" {' '.join(word for event in events for word in words(event.text))} "


def _facts(event: Event) -> Iterator[str]:
    # Of a text: amounts, numbers and codes with a digit, and capitalised names of two or more words.
    is_call = event.kind is EventKind.CALL
    texts = _values(event.arguments) if is_call else (found[0] for found in _fact().finditer(event.text))
    for text in texts:
        found = words(text)
        if 0 < len(found) <= MOST_ANSWER_WORDS and len(text) > 1 and not _TRIVIAL.issuperset(found):
            yield " ".join(found)


def _values(arguments: Any) -> Iterator[str]:
    if isinstance(arguments, Mapping):
        for value in arguments.values():
            yield from _values(value)
    elif isinstance(arguments, (list, tuple)):
        for value in arguments:
            yield from _values(value)
    elif not isinstance(arguments, bool) and arguments is not None:
        yield str(arguments)


@cache
def _fact() -> re.Pattern[str]:
    return re.compile(
        r"[$€£¥]\s?\d[\d,.]*\d|\b(?=[\w-]*\d)[A-Za-z0-9][\w-]{2,}\b|\b[A-Z][a-z]+(?: [A-Z][a-z]+)+\b",
    )


TOP = 3


class LineIndex:
    """Lines that can be searched by words. Equal scores rank in the order of the lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._index = Index([words(line) for line in lines])

    def top(self, query: Iterable[str], number: int = TOP) -> list[int]:
        """The best lines for these words; lines that hold none of them are never found."""
        scores = self._index.scores(query)
        return heapq.nsmallest(number, scores, key=lambda i: (-scores[i], i))


def retrieval(uses: Iterable[Use], summary: SummaryView) -> Share:
    """Share of the used atoms that stand in the three lines nearest to the future line, the atom left out of it."""
    uses = tuple(use for use in uses if _query(use))
    index = LineIndex(summary.short_lines)
    holders = {atom: set(lines) for atom, lines in summary.by_atom.items()}
    kept = sum(
        any(summary.short_lines[i] in holders[use.atom] for i in index.top(_query(use)))
        for use in uses
        if use.atom in holders
    )
    return Share(kept=kept, total=len(uses))


def _query(use: Use) -> list[str]:
    return words(use.line.replace(use.atom, " "))
