"""Checklists: numbered findings and plans of the assistant, and which entries later records deal with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from compactor_cli.digest.atoms import AtomKind, find_atoms
from compactor_cli.digest.commands import CommandOutcome, Run
from compactor_cli.digest.edits import changes_of
from compactor_cli.digest.events import Event, EventKind, FileAction
from compactor_cli.digest.files import FileOperation
from compactor_cli.digest.language import FixedWords
from compactor_cli.digest.statements import StatementForm, statements_of
from compactor_cli.digest.statuses import PROSE
from compactor_cli.model.value import dataclass

_MIN_ENTRIES = 3
_MIN_ID_CHARS = 6
_MAX_EDIT_CHARS = 20_000
# Lists that are looked at, newest first: time stays linear in very long sessions.
_MAX_LISTS = 40
_NUMBERED = re.compile(r"^[ \t]*(?:\|[ \t]*)?#?\d{1,2}(?:[.)]|[ \t]*\|)", re.MULTILINE)
_ENTRY = re.compile(r"#?(\d{1,2})(?:[.)] | \| )")
# What stands above a list of things to be dealt with, and above one of things that were.
_TO_DO = re.compile(
    r"issue|finding|problem|remaining|to-?do\b|to fix|comment|feedback|plan\b|changes (?:needed|required)|missing"
    r"|places|need(?:s|ed)? (?:to be )?(?:fix|chang|updat|add|handl|mend)|recommend|improve|suggest|bugs?\b|concern"
    r"|failing|left\b|threads|问题|待办|指摘",
    re.IGNORECASE,
)
_MADE = re.compile(
    r"changes made|(?:was|were|been|i) (?:done|made|changed|fixed)|completed|implemented|✅|summary", re.IGNORECASE
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
    """An entry of a list: its words with the number, its place among the statements of its message, and its state."""

    text: str
    place: int
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
    its names (or where no other entry is about that file), left out where the user's next message says so.
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
                yield Entry(text=piece, place=place, state=EntryState.ANSWERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Later:
    """The edits, as event, file name and changed text, and the calls that changed the world, as event and text."""

    edits: Sequence[tuple[int, str, str]]
    calls: Sequence[tuple[int, str]]


def _edit_text(call: Event, path: str) -> str:
    return "\n".join(f"{old}\n{new}" for old, new in changes_of(call, path))[:_MAX_EDIT_CHARS]


def _lists(text: str) -> Iterator[list[tuple[int, str, int]]]:
    """The lists of a message that name what is to be dealt with: number, words and place of each entry."""
    entries: list[tuple[int, str, int]] = []
    above = text[:200]
    for place, (piece, form, lead) in enumerate(statements_of(text)):
        if form is StatementForm.SENTENCE:
            above = piece
        match = _ENTRY.match(piece) if form in (StatementForm.ITEM, StatementForm.ROW) else None
        if match is None:
            continue
        if entries and int(match[1]) <= entries[-1][0]:
            yield from _as_checklist(entries)
            entries = []
        if not entries:
            about = f"{lead}\n{above}"
            is_asked = _TO_DO.search(about) is not None and not _MADE.search(about)
        if is_asked or entries:
            entries.append((int(match[1]), piece, place))
    yield from _as_checklist(entries)


def _as_checklist(entries: list[tuple[int, str, int]]) -> Iterator[list[tuple[int, str, int]]]:
    if len(entries) >= _MIN_ENTRIES and not any(_DONE_ENTRY.match(text[3:]) for _, text, _ in entries):
        yield entries


def _judged(entries: list[tuple[int, str, int]], event: int, later: _Later, chosen: str) -> Iterator[Entry]:
    left_out = _numbers(_LEAVES_OUT, chosen)
    taken = _numbers(_TAKES, chosen) if not left_out else set()
    subjects = [_subject(text) for _, text, _ in entries]
    for (number, text, place), (ids, files, names) in zip(entries, subjects, strict=True):
        others = [one for one in subjects if one != (ids, files, names)]
        own_files = {name for name in files if not any(name in other for _, other, _ in others)}
        own_names = {name for name in names if not any(name in other for _, _, other in others)}
        if any(at > event and any(key in call for key in ids) for at, call in later.calls):
            state = EntryState.ANSWERED
        elif any(
            at > event and (file in own_files or any(key in changed for key in own_names))
            for at, file, changed in later.edits
            if (file in files if files else not file.endswith(PROSE))
        ):
            state = EntryState.EDITED
        elif number in left_out or (taken and number not in taken) or _SKIPPED.search(text):
            state = EntryState.LEFT_OUT
        else:
            state = EntryState.OPEN if ids or own_files or own_names else EntryState.UNKNOWN
        yield Entry(text=text, place=place, state=state)


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


def marks_of(lists: Sequence[Checklist], words: FixedWords) -> Mapping[tuple[int, int], str]:
    """What became of entries, in brackets, by the event and the place of the statement; open ones have no mark."""
    return {(one.event, entry.place): mark for one in lists for entry in one.entries if (mark := _mark(entry, words))}


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
