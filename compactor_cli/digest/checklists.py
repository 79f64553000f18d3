"""Checklists: numbered findings and plans of the assistant, and which entries later records deal with."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from compactor_cli.digest.atoms import AtomKind, find_atoms
from compactor_cli.digest.commands import PROSE, CommandOutcome, Run
from compactor_cli.digest.edits import changes_of
from compactor_cli.digest.events import Event, EventKind, FileAction, ToolKind
from compactor_cli.digest.files import FileOperation
from compactor_cli.digest.language import FixedWords
from compactor_cli.digest.statements import StatementForm, is_signature, statements_of
from compactor_cli.model.value import dataclass

_MIN_ENTRIES = 3
_MIN_ID_CHARS = 6
_MAX_EDIT_CHARS = 20_000
# Lists that are looked at, newest first: time stays linear in very long sessions.
_MAX_LISTS = 40
# What is looked at of the text above a list to know what it is of.
_ABOVE_CHARS = 200
_NUMBERED = re.compile(r"^[ \t]*(?:\|[ \t]*|#{1,4} |\*\*)?#?\d{1,2}(?:[.)]|[ \t]*\|)", re.MULTILINE)
_ENTRY = re.compile(r"#?(\d{1,2})(?:[.)] | \| )")
# What stands above a list of things to be dealt with, and above one of what was done or what explains something.
_TO_DO = re.compile(
    r"issue|finding|problem|remaining|to-?do\b|to fix|comment|feedback|plan\b|changes (?:needed|required)|missing"
    r"|places|need(?:s|ed)? (?:to be )?(?:fix|chang|updat|add|handl|mend)|recommend|improve|suggest|bugs?\b|concern"
    r"|failing|left\b|threads|问题|待办|指摘",
    re.IGNORECASE,
)
# How a message begins whose headings are findings or steps, and not what explains something.
_REVIEWS = re.compile(
    r"\b(?:review|findings|issues|problems|concerns|remaining|threads|comments|suggestions|recommendations|plan)\b|问题",
    re.IGNORECASE,
)
_MADE = re.compile(
    r"changes made|(?:was|were|been|i) (?:done|made|changed|fixed)|completed|implemented|✅|summary"
    r"|\b(?:because|why)\b|root cause|what happened|\b(?:issue|problem|bug|cause) (?:was|is)\b",
    re.IGNORECASE,
)
_DONE_ENTRY = re.compile(
    r"\W*(?:✅|✓|\[x\]|(?:added|updated|fixed|removed|created|replaced|changed|renamed|moved)\b)", re.IGNORECASE
)
_STILL = re.compile(r"\b(?:still|not yet|unfixed|remaining|outstanding|unresolved)\b", re.IGNORECASE)
_SKIPPED = re.compile(r"\b(?:Skip(?:ped)?|Won't fix|[Ii]ntentional|[Aa]lready (?:handled|fixed|done|in place))\b")
_NUMBERS = r"(#?\d{1,2}(?:\s*(?:,|and|&|-|–|to)\s*(?:and\s*)?#?\d{1,2})*)"
_LEAVES_OUT = re.compile(
    rf"\b(?:skip|ignore|leave(?: out)?|except(?: for)?|without|drop|not)\s+{_NUMBERS}\b", re.IGNORECASE
)
_TAKES = re.compile(rf"\b(?:do|fix|address|implement|apply|take|only|just|resolve)\s+{_NUMBERS}\b", re.IGNORECASE)


class EntryState(StrEnum):
    """What later records show of an entry; unknown where it names nothing that they could name."""

    UNKNOWN = "unknown"
    OPEN = "open"
    EDITED = "edited"
    ANSWERED = "answered"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of a list: its words with the number, its places among the statements of its message, and its state."""

    text: str
    places: tuple[int, ...]
    state: EntryState


@dataclass(frozen=True, slots=True, kw_only=True)
class Checklist:
    """A list of the assistant that the work went through: its entries, and the event and record that hold it."""

    entries: tuple[Entry, ...]
    event: int
    record: int

    def of(self, state: EntryState) -> tuple[Entry, ...]:
        """The entries in this state."""
        return tuple(entry for entry in self.entries if entry.state is state)


def checklists(
    events: Sequence[Event], runs: Sequence[Run], operations: Sequence[FileOperation]
) -> tuple[Checklist, ...]:
    """The numbered lists of findings and plans of which a later record deals with at least one entry, in order.

    An entry is answered where a call that changed the world names its id, edited where an edit of its file holds one of
    its names (or where no other entry is about that file) or its title stands just before one,
    left out where the user's next message says so.
    """
    later = _Later(
        edits=[
            (one.event, one.path.rpartition("/")[2], _edit_text(events[one.event], one.path))
            for one in operations
            if one.action is not FileAction.READ
        ],
        calls=[
            (run.event, events[run.event].text)
            for run in runs
            if run.changes_world and run.outcome is not CommandOutcome.FAILED
        ],
        announced=list(_announced(events)),
    )
    found: list[Checklist] = []
    for number in range(len(events) - 1, -1, -1):
        event = events[number]
        if event.kind is not EventKind.ASSISTANT:
            continue
        if overtaken := tuple(_overtaken(event.text, number, later)) if _STILL.search(event.text) else ():
            found.append(Checklist(entries=overtaken, event=number, record=event.record))
        if len(_NUMBERED.findall(event.text)) < _MIN_ENTRIES:
            continue
        chosen = next((e.text for e in events[number + 1 :] if e.kind is EventKind.USER), "")
        for entries in reversed(list(_lists(event.text))):
            judged = tuple(_judged(entries, number, later, chosen))
            if any(entry.state in (EntryState.EDITED, EntryState.ANSWERED) for entry in judged):
                found.append(Checklist(entries=judged, event=number, record=event.record))
        if len(found) >= _MAX_LISTS:
            break
    return tuple(reversed(found))


def _overtaken(text: str, event: int, later: _Later) -> Iterator[Entry]:
    """The sentences that call something still open whose id a later call names."""
    for place, (piece, form, _) in enumerate(statements_of(text)):
        if form is StatementForm.SENTENCE and _STILL.search(piece):
            ids = _subject(piece)[0]
            if any(at > event and any(key in call for key in ids) for at, call in later.calls):
                yield Entry(text=piece, places=(place,), state=EntryState.ANSWERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Later:
    """The edits, as event, file name and changed text; the calls that changed the world, as event and text, and what
    was said just before an edit.
    """

    edits: Sequence[tuple[int, str, str]]
    calls: Sequence[tuple[int, str]]
    announced: Sequence[tuple[int, str]]


def _announced(events: Sequence[Event]) -> Iterator[tuple[int, str]]:
    last = -1
    for number, event in enumerate(events):
        if event.kind is EventKind.ASSISTANT:
            last = number
        elif event.kind is EventKind.CALL and event.tool is ToolKind.EDIT and last >= 0:
            yield last, events[last].text.lower()
            last = -1


def _edit_text(call: Event, path: str) -> str:
    """The lines that an edit changed, and those of what stands around them that say what they are in."""
    lines: list[str] = []
    for old, new in changes_of(call, path):
        before, after = (dict.fromkeys(text[:_MAX_EDIT_CHARS].split("\n")) for text in (old, new))
        lines += (line for line in (*before, *after) if not (line in before and line in after) or is_signature(line))
    return "\n".join(lines)[:_MAX_EDIT_CHARS]


class _Listed(NamedTuple):
    """An entry as it stands in a message: number, words, the places of it and of what is below, and all of that."""

    number: int
    text: str
    places: tuple[int, ...]
    about: str

    def with_more(self, place: int, piece: str) -> _Listed:
        """The entry with a statement that stands below it."""
        return self._replace(places=(*self.places, place), about=f"{self.about}\n{piece}")


def _lists(text: str) -> Iterator[list[_Listed]]:
    """The lists of a message that name what is to be dealt with; their entries may be headings with sentences below."""
    entries: list[_Listed] = []
    above = _NUMBERED.split(text, maxsplit=1)[0][:_ABOVE_CHARS]
    for place, (piece, form, lead) in enumerate(statements_of(text)):
        heading, _, under = lead.partition("\n")
        below = entries and (
            entries[-1].text == heading or (under and entries[-1].text.startswith(under[:_ABOVE_CHARS]))
        )
        is_entry = form in (StatementForm.ITEM, StatementForm.ROW) and _ENTRY.match(piece)
        headed = _ENTRY.match(heading) if not below else None
        words = heading if headed else piece
        match = None if below else headed or is_entry or None
        if match is None:
            if below and form is not StatementForm.CODE:
                entries[-1] = entries[-1].with_more(place, piece)
            above = piece if form is StatementForm.SENTENCE else above
            continue
        if entries and int(match[1]) <= entries[-1].number:
            yield from _as_checklist(entries)
            entries = []
        if not entries:
            if headed:
                is_asked = _REVIEWS.search(text[: 2 * _ABOVE_CHARS]) is not None
            else:
                is_asked = _TO_DO.search(f"{lead}\n{above}") is not None and not _MADE.search(f"{lead}\n{above}")
        if is_asked or entries:
            entries.append(_Listed(int(match[1]), words, (place,), f"{words}\n{piece}"))
    yield from _as_checklist(entries)


def _as_checklist(entries: list[_Listed]) -> Iterator[list[_Listed]]:
    if len(entries) >= _MIN_ENTRIES and not any(_DONE_ENTRY.match(one.text[3:]) for one in entries):
        yield entries


def _judged(entries: list[_Listed], event: int, later: _Later, chosen: str) -> Iterator[Entry]:
    left_out = _numbers(_LEAVES_OUT, chosen)
    taken = _numbers(_TAKES, chosen) if not left_out else set()
    subjects = [_subject(one.about) for one in entries]
    for one, (ids, files, names) in zip(entries, subjects, strict=True):
        others = [other for other in subjects if other != (ids, files, names)]
        own_files = {name for name in files if not any(name in other for _, other, _ in others)}
        own_names = {name for name in names if not any(name in other for _, _, other in others)}
        if any(at > event and any(key in call for key in ids) for at, call in later.calls):
            state = EntryState.ANSWERED
        elif any(
            at > event and (file in own_files or any(key in changed for key in own_names))
            for at, file, changed in later.edits
            if (file in files if files else not file.endswith(PROSE))
        ) or any(at > event and title in text for title in _title(one.text) for at, text in later.announced):
            state = EntryState.EDITED
        elif one.number in left_out or (taken and one.number not in taken) or _SKIPPED.search(one.text):
            state = EntryState.LEFT_OUT
        else:
            # Where a file that it shares with others was edited, it may have been this that was dealt with.
            is_touched = any(at > event and file in files for at, file, _ in later.edits)
            is_open = ids or own_files or (own_names and not is_touched)
            state = EntryState.OPEN if is_open else EntryState.UNKNOWN
        yield Entry(text=one.text, places=one.places, state=state)


def _title(text: str) -> Iterator[str]:
    """The words before the dash or the colon of an entry, in lower case, where there are enough to know it by."""
    found = re.match(r"(?:\d+[.)] )?([\w`][^:–—]{9,59}?)(?: [-–—] |: )", text)
    if found and " " in found[1]:
        yield found[1].lower()


def _numbers(pattern: re.Pattern[str], text: str) -> set[int]:
    """The numbers that a message names after one of the pattern's words, ranges included."""
    found: set[int] = set()
    for match in pattern.finditer(text):
        for first, last in re.findall(r"(\d+)(?:\s*(?:-|–|to)\s*#?(\d+))?", match[1]):
            found.update(range(int(first), int(last or first) + 1))
    return found


def _subject(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The ids, the names of files and the other names in an entry."""
    ids, files, names = set[str](), set[str](), set[str]()
    for atom in find_atoms(text):
        if atom.kind in (AtomKind.FILE, AtomKind.PATH):
            files.add(atom.text.rpartition("/")[2])
        elif atom.kind in (AtomKind.NUM, AtomKind.HEX) and len(atom.text) >= _MIN_ID_CHARS:
            ids.add(atom.text)
        elif atom.kind is AtomKind.ID:
            names.add(atom.text)
    return frozenset(ids), frozenset(files), frozenset(names)


def left_open(lists: Sequence[Checklist]) -> Iterator[Checklist]:
    """The lists that were worked off, by their ids or for the most part, and of which something is still open."""
    for one in lists:
        closed = len(one.entries) - len(one.of(EntryState.OPEN)) - len(one.of(EntryState.UNKNOWN))
        if one.of(EntryState.OPEN) and (one.of(EntryState.ANSWERED) or 2 * closed >= len(one.entries)):
            yield one


def marks_of(
    lists: Sequence[Checklist], words: FixedWords, shown: Collection[tuple[int, int]]
) -> Mapping[tuple[int, int], str]:
    """What became of entries, in brackets, by event and place of the first of their statements that is shown."""
    marks = {}
    for one in lists:
        for entry in one.entries:
            first = next((place for place in entry.places if (one.event, place) in shown), -1)
            if first >= 0 and (mark := _mark(entry, words)):
                marks[one.event, first] = mark
    return marks


def marked(text: str, record: int, lists: Sequence[Checklist], words: FixedWords) -> str:
    """A text that quotes a message of this record, with what became of the entries in it."""
    for entry in (entry for one in lists if one.record == record for entry in one.entries):
        text = text.replace(entry.text, f"{entry.text}{_mark(entry, words)}", 1)
    return text


def _mark(entry: Entry, words: FixedWords) -> str:
    named = {
        EntryState.EDITED: words.edited_later,
        EntryState.ANSWERED: words.answered_later,
        EntryState.LEFT_OUT: words.left_out,
    }
    return f" ({named[entry.state]})" if entry.state in named else ""
