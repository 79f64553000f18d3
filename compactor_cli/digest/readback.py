"""Reading back: the memory that a summary's own text holds, where no state was kept next to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from compactor_cli.digest.language import LANGUAGES, FixedWords, words_of
from compactor_cli.digest.memory import Memory
from compactor_cli.digest.plan_state import State
from compactor_cli.model.summary import Item, Section, SectionItems, Source, Summary

_PROBE = "\u241f"


def read_text(
    text: str, render: Callable[[Summary], str], read: Callable[[str], tuple[SectionItems, ...]] = lambda text: ()
) -> Memory:
    """The memory that a summary's text shows, by the renderer in use, else as ``read`` reads it; else its lines."""
    sections = _sections(text, _headings(render))
    if other := read(_TAG.sub("", text)):
        theirs = {part.section: list(part.items) for part in other}
        sections = max(sections, theirs, key=len)
    if not sections:
        return Memory(lines=tuple(("", line.strip()) for line in text.split("\n") if line.strip()))
    listed = {section: tuple(item for item in items if item.text) for section, items in sections.items()}
    files: list[tuple[str, bool, int, int, bool, str]] = []
    for text_line in _texts(listed, Section.FILES):
        files.extend(_file(text_line))
    todos, plan = _plan(_texts(listed, Section.PLAN))
    task = _texts(listed, Section.TASK)
    history = listed.get(Section.HISTORY, ())
    return Memory(
        users=(*_user_texts(listed), *_after(task, "earlier"), *_after(task, "request")),
        files=tuple(reversed(files)),
        todos=todos,
        plan=plan,
        commands=_texts(listed, Section.COMMANDS)[::-1],
        errors=(*_texts(listed, Section.ERRORS), *_open_errors(_texts(listed, Section.PLAN)))[::-1],
        decisions=_texts(listed, Section.DECISIONS),
        lines=_labelled_lines((*listed.get(Section.PREVIOUS, ()), *history)),
    )


def _user_texts(listed: Mapping[Section, Sequence[Item]]) -> tuple[str, ...]:
    return tuple(text for text in _texts(listed, Section.USER) if not _after((text,), "stopped"))


def _open_errors(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines of what is open that tell of an error: it is fixed later, or still is."""
    marks = [f"— {mark}" for language in LANGUAGES for mark in _error_marks(words_of(language))]
    return tuple(line for line in lines if any(mark in line for mark in marks))


def _error_marks(words: FixedWords) -> tuple[str, str]:
    return words.failing, words.changed


def _after(texts: Iterable[str], label: str) -> tuple[str, ...]:
    """What stands after a fixed word, in any language."""
    labels = tuple(f"{getattr(words_of(language), label)}{words_of(language).colon}" for language in LANGUAGES)
    return tuple(text.partition(": ")[2] for text in texts if text.startswith(labels))


def _labelled_lines(items: Iterable[Item]) -> tuple[tuple[str, str], ...]:
    """The lines of items, with their labels."""
    found: list[tuple[str, str]] = []
    for item in items:
        label, lines = _labelled(item.text.split("\n"))
        found.extend((label, line) for line in lines if line.strip())
    return tuple(found)


def _labelled(lines: list[str]) -> tuple[str, list[str]]:
    """The label of an item (a command, a file, a tool before a colon) and its lines."""
    if len(lines) > 1 and lines[0].endswith(":"):
        return lines[0][:-1], lines[1:]
    label, colon, rest = lines[0].partition(": ")
    if colon and (label.startswith("`") or " " not in label) and ("/" in label or "." in label or "`" in label):
        return label, [rest, *lines[1:]]
    return "", lines


def _texts(listed: Mapping[Section, Sequence[Item]], section: Section) -> tuple[str, ...]:
    return tuple(item.text for item in listed.get(section, ()))


def _headings(render: Callable[[Summary], str]) -> dict[str, Section]:
    """The lines by which the renderer opens each section, in every language."""
    found: dict[str, Section] = {}
    for language in LANGUAGES:
        for section in Section:
            probe = SectionItems(section=section, items=(Item(text=_PROBE),))
            lines = render(Summary(source=Source.DIGEST, sections=(probe,), language=language)).split("\n")
            at = next((number for number, line in enumerate(lines) if _PROBE in line), 0)
            heading = next((line for line in reversed(lines[:at]) if line.strip()), "")
            if heading:
                found.setdefault(heading, section)
    return found


_TAG = re.compile(r" \[\d+(?:[,-]\d+)?\]$", re.MULTILINE)
_CLOSING_TAG = re.compile(r"^</[a-z_]+>$")


def _sections(text: str, headings: Mapping[str, Section]) -> dict[Section, list[Item]]:
    found: dict[Section, list[Item]] = {}
    current: list[Item] | None = None
    for line in _TAG.sub("", text).split("\n"):
        if line in headings:
            current = found.setdefault(headings[line], [])
        elif current is not None and line.strip() and not _CLOSING_TAG.match(line):
            _read_line(line, current)
    return found


def _read_line(line: str, items: list[Item]) -> None:
    body = line.lstrip(" ")
    if body.startswith("- ") and (len(line) - len(body)) in (0, 2):
        items.append(Item(text=body[2:], depth=(len(line) - len(body)) // 2))
    elif items:
        last = items[-1]
        items[-1] = Item(text=f"{last.text}\n{line[2 * last.depth + 2 :]}", depth=last.depth)


def _file(line: str) -> list[tuple[str, bool, int, int, bool, str]]:
    """The files that a line of the ledger names."""
    for language in LANGUAGES:
        words = words_of(language)
        path, dash, facts = line.partition(" — ")
        if dash and (state := _facts(path, facts, words)):
            return [state]
        for label, edits in ((words.read, 0), (words.edited, 1)):
            if line.startswith(f"{label}{words.colon}"):
                paths = line[len(label) + len(words.colon) :].split(", ")
                return [(path, False, edits, 1 - edits, False, "") for path in paths]
    return []


def _facts(path: str, facts: str, words: FixedWords) -> tuple[str, bool, int, int, bool, str] | None:
    created, edits, reads, deleted, moved = False, 0, 0, False, ""
    for fact in facts.partition(f"{words.colon}+ ")[0].split(words.comma):
        word, _, times = fact.partition(" ×")
        number = int(times) if times.isdigit() else 1
        if word == words.created:
            created = True
        elif word == words.edited:
            edits = number
        elif word == words.read:
            reads = number
        elif word == words.deleted:
            deleted = True
        elif word.startswith(f"{words.moved} "):
            moved = word[len(words.moved) + 1 :]
        elif not word.startswith(f"{words.committed} "):
            return None
    return (path, created, edits, reads, deleted, moved)


def _plan(lines: Iterable[str]) -> tuple[tuple[tuple[str, str], ...], str]:
    todos: list[tuple[str, str]] = []
    plan = ""
    for line in lines:
        for language in LANGUAGES:
            words = words_of(language)
            for label, state in ((words.doing, State.DOING), (words.open, State.OPEN), (words.done, State.DONE)):
                if line.startswith(label + words.colon):
                    listed = line[len(label + words.colon) :]
                    steps = listed.split(words.stop) if state is State.DONE else [listed]
                    todos.extend((state.value, step) for step in steps)
            if line.startswith(words.plan + words.colon):
                plan = line[len(words.plan + words.colon) :]
    return tuple(dict.fromkeys(todos)), plan
