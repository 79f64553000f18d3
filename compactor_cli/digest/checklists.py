"""Checklists: findings, plans and statements of the assistant, and which of them later records deal with."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from compactor_cli.digest.atoms import AtomKind, find_atoms
from compactor_cli.digest.commits import Commit
from compactor_cli.digest.edits import PROSE, changes_of
from compactor_cli.digest.events import Event, EventKind, FileAction, ToolKind
from compactor_cli.digest.files import FileOperation
from compactor_cli.digest.language import FixedWords, terms
from compactor_cli.digest.noise import is_signature
from compactor_cli.digest.statements import StatementForm, statements_of
from compactor_cli.model.patterns import pattern

_MIN_ENTRIES = 3
_MAX_EDIT_CHARS = 20_000
# Lists that are looked at, newest first: time stays linear in very long sessions.
_MAX_LISTS = 40
# Edits and commands that are looked at for steps of a plan.
_MAX_LATER = 200
# What is looked at of the text above a list to know what it is of.
_ABOVE_CHARS = 200
_NUMBERED = pattern(r"^[ \t]*(?:\|[ \t]*|#{1,4} |\*\*)?#?\d{1,2}(?:[.)]|[ \t]*\|)", re.MULTILINE)
_NAME = pattern(r"\w{5,}")
_ENTRY = pattern(r"#?(\d{1,2})(?:[.)] | \| )")
# What stands above a list of things to be dealt with, and above one of what was done or what explains something.
_TO_DO = pattern(
    r"issue|finding|problem|remaining|to-?do\b|to fix|comment|feedback|plan\b|changes (?:needed|required)|missing"
    r"|places|need(?:s|ed)? (?:to be )?(?:fix|chang|updat|add|handl|mend)|recommend|improve|suggest|bugs?\b|concern"
    r"|failing|left\b|threads|问题|待办|指摘",
    re.IGNORECASE,
)
# How a message begins whose headings are findings or steps, and not what explains something.
_REVIEWS = pattern(
    r"\b(?:review|findings|issues|problems|concerns|remaining|threads|comments|suggestions|recommendations|plan)\b|问题",
    re.IGNORECASE,
)
_MADE = pattern(
    r"changes made|(?:was|were|been|i) (?:done|made|changed|fixed)|completed|implemented|✅|summary"
    r"|\b(?:because|why)\b|root cause|what happened|\b(?:issue|problem|bug|cause) (?:was|is)\b",
    re.IGNORECASE,
)


class DealtWith(NamedTuple):
    """An entry of a list, or a statement, that a later edit deals with: its words with the number, and where.

    ``places``: of it and of what is below it, among the statements of its message.
    """

    event: int
    record: int
    text: str
    places: tuple[int, ...]


def dealt_with(events: Sequence[Event], operations: Sequence[FileOperation]) -> Mapping[int, Sequence[DealtWith]]:
    """The entries of numbered lists of findings and plans that a later edit deals with, by event, the newest first.

    With them, the statements that name a file together with a name that a later edit took out of it, and those that
    find something missing or wrong and share half of their names with an edit.

    An edit of its file deals with an entry where it holds one of its names, or where no other entry is about that file;
    edits do with one that is about no file where they hold half of its names.
    """
    edits = _edits(events, operations)
    gone: dict[str, list[tuple[int, set[str]]]] = {}
    for one in operations:
        left_out = set(_NAME.findall("\n".join(old for old, _ in one.replaced)))
        left_out.difference_update(*(_NAME.findall(new) for _, new in one.replaced if left_out))
        if left_out:
            gone.setdefault(one.name, []).append((one.event, left_out))
    by_event: dict[int, list[DealtWith]] = {}
    left = faults = _MAX_LISTS
    for number in range(len(events) - 1, -1, -1):
        event = events[number]
        if event.kind is not EventKind.ASSISTANT:
            continue
        finds_fault = faults > 0 and _FAULT.search(event.text) is not None
        faults -= finds_fault
        found: dict[int, DealtWith] = {}
        if finds_fault or any(map(event.text.__contains__, gone)):
            overtaken = _overtaken(event, number, gone, edits if finds_fault else ())
            found |= {one.places[0]: one for one in overtaken}
        if left > 0 and len(_NUMBERED.findall(event.text)) >= _MIN_ENTRIES:
            for entries in (one for one in _lists(event.text) if len(one) >= _MIN_ENTRIES):
                judged = list(_judged(entries, number, event.record, edits))
                found |= {one.places[0]: one for one in judged}
                left -= bool(judged)
        if found:
            by_event[number] = list(found.values())
    return by_event


def _edits(events: Sequence[Event], operations: Iterable[FileOperation]) -> list[tuple[int, str, str]]:
    """Every edit as the position of its call, the name of its file, and what it changed."""
    changes = (one for one in operations if one.action is not FileAction.READ)
    return [(one.event, one.name, _edit_text(events[one.event], one.path)) for one in changes]


def done_since(
    steps: Sequence[tuple[str, int]],
    events: Sequence[Event],
    operations: Sequence[FileOperation],
    commits: Sequence[Commit],
    words: FixedWords,
    begun: Collection[str],
) -> Mapping[str, str]:
    """What became of some steps, each with the record after which it counts, where a later record shows it.

    A commit whose subject holds half of its words, a command with all of them, or an edit, as for the entries of a
    list; while some steps are ``begun``, edits are for these. Looked at are the first steps, and the newest edits and
    commands.
    """
    steps = steps[:_MAX_LISTS]
    first = min((record for _, record in steps), default=len(events))
    edits = _edits(events, [one for one in operations if one.record > first][-_MAX_LATER:])
    commands = [e for e in events if e.record > first and e.kind is EventKind.CALL and e.tool is ToolKind.COMMAND]
    # What a command is given to write, the message of a commit among it, is not what it does.
    ran = [(event.record, beginnings(event.text.partition("<<")[0])) for event in commands[-_MAX_LATER:]]
    entries = [_Listed(number, text, (number,), text) for number, (text, _) in enumerate(steps)]
    edited = {
        record: {one.text for one in _judged(entries, -1, record, [e for e in edits if events[e[0]].record > record])}
        for record in {record for _, record in steps}
    }
    found: dict[str, str] = {}
    for text, record in steps:
        named = beginnings(text)
        made = [one.hash for one in commits if one.record > record and holds_half(one.subject, named)]
        if made:
            found[text] = f"{words.committed} {made[-1]}"
        elif text in edited[record] and (text in begun or not begun):
            found[text] = words.edited_later
        elif len(named) > 1 and any(when > record and named <= command for when, command in ran):
            found[text] = words.resumed
    return found


def beginnings(text: str) -> frozenset[str]:
    """How the words that carry meaning begin: a verb in another tense is the same."""
    return frozenset(word[:_BEGINNING] for word in terms(text))


def holds_half(text: str, words: frozenset[str]) -> bool:
    """Whether a text has half of these beginnings of words, of two at least."""
    return len(words) > 1 and 2 * len(words & beginnings(text)) >= len(words)


_BEGINNING = 5


def _overtaken(
    event: Event, number: int, gone: Mapping[str, Sequence[tuple[int, set[str]]]], edits: Sequence[tuple[int, str, str]]
) -> Iterator[DealtWith]:
    """The statements that later edits overtook: they took a name of it out of a file that it names, or one of the next
    edits holds half of the names of a sentence that finds something missing or wrong."""
    start = bisect_right(edits, number, key=itemgetter(0))
    later = [changed for _, file, changed in edits[start : start + _MAX_NEXT_EDITS] if not file.endswith(PROSE)]
    for place, (piece, form, lead) in enumerate(statements_of(event.text)):
        whole = f"{lead}\n{piece}"
        may_be_out = any(map(whole.__contains__, gone))
        finds_fault = later and form is StatementForm.SENTENCE and _FAULT.search(piece)
        if form is StatementForm.CODE or not (may_be_out or finds_fault):
            continue
        names = _subject(piece)[1]
        files = _subject(whole)[0] if names and may_be_out else ()
        is_out = any(at > number and not out.isdisjoint(names) for file in files for at, out in gone.get(file, ()))
        is_edited = finds_fault and len(names) > 1
        if is_out or (is_edited and any(2 * sum(name in changed for name in names) >= len(names) for changed in later)):
            yield DealtWith(number, event.record, piece, (place,))


_FAULT = pattern(
    r"(?<!was )(?<!were )\b(?:never|missing|ignor(?:es?|ing)|loses?|drops?|(?:does|is|are) not)\b"
    r"|\b(?:does|is|are)n't\b"
)
_MAX_NEXT_EDITS = 12


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
        leads = lead.split("\n")
        heading = next(filter(_ENTRY.match, leads), leads[0])
        below = entries and entries[-1].text == heading
        headed = _ENTRY.match(heading)
        is_listed = form in (StatementForm.ITEM, StatementForm.ROW)
        match = headed or (_ENTRY.match(piece) if is_listed else None)
        if below or match is None:
            if below and form is not StatementForm.CODE:
                entries[-1] = entries[-1].with_more(place, piece)
            above = piece if form is StatementForm.SENTENCE else above
            continue
        words = heading if headed else piece
        if entries and int(match[1]) <= entries[-1].number:
            yield entries
            entries = []
        if not entries:
            if headed:
                is_asked = _REVIEWS.search(text[: 2 * _ABOVE_CHARS]) is not None
            else:
                is_asked = _TO_DO.search(f"{lead}\n{above}") is not None and not _MADE.search(f"{lead}\n{above}")
        if is_asked:
            entries.append(_Listed(int(match[1]), words, (place,), f"{words}\n{piece}"))
    yield entries


def _judged(
    entries: list[_Listed], event: int, record: int, edits: Sequence[tuple[int, str, str]]
) -> Iterator[DealtWith]:
    """The entries that one of the edits (as event, file name and changed text) deals with."""
    subjects = [_subject(one.about) for one in entries]
    for one, (files, names) in zip(entries, subjects, strict=True):
        others = [other for other in subjects if other != (files, names)]
        own_files = {name for name in files if not any(name in other for other, _ in others)}
        own_names = {name for name in names if not any(name in other for _, other in others)}
        later = [
            (file, changed)
            for at, file, changed in edits
            if at > event and (file in files if files else not file.endswith(PROSE))
        ]
        named = sum(any(name in changed for _, changed in later) for name in own_names)
        if any(file in own_files for file, _ in later) or 0 < named >= (1 if files else len(own_names) / 2):
            yield DealtWith(event, record, one.text, one.places)


def _subject(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names of files and the other names in an entry."""
    atoms = find_atoms(text)
    files = (atom.text.rpartition("/")[2] for atom in atoms if atom.kind in (AtomKind.FILE, AtomKind.PATH))
    return frozenset(files), frozenset(atom.text for atom in atoms if atom.kind is AtomKind.ID)


def marked(text: str, record: int, entries: Mapping[int, Sequence[DealtWith]], words: FixedWords) -> str:
    """A text that quotes a message of this record, with what became of the entries in it."""
    for one in chain.from_iterable(entries.values()):
        if one.record == record:
            text = text.replace(one.text, f"{one.text} ({words.edited_later})", 1)
    return text
