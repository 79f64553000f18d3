"""Memory: what an earlier summary written by compact held, from the state stored next to it, else from its own text."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, field, fields
from heapq import nlargest
from operator import attrgetter
from typing import Any

import orjson

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.files import FileState
from compactor_cli.digest.language import LANGUAGES, FixedWords, words_of
from compactor_cli.digest.open import Attached, BackgroundWork, PlanState, State, Todo
from compactor_cli.digest.salience import Columns, Scores, Spoken, Table
from compactor_cli.digest.statements import Statement, StatementForm
from compactor_cli.model.summary import Item, Section, SectionItems, Source, Summary
from compactor_cli.model.value import dataclass
from compactor_cli.read.streams import zstd

# What is carried of each kind, newest kept: a state stays small however often it is renewed.
_MAX_ITEMS = 400
_MAX_CHARS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Carried statements by kind, oldest first.

    ``files``: path, created, edits, reads, deleted, moved to. ``todos``: state and text. ``turns``: one line
    each. ``lines``: statements that no other kind holds, each with the label it stood under. ``running``: the
    id of work in the background, and what it is to do.
    """

    users: tuple[str, ...] = ()
    files: tuple[tuple[str, bool, int, int, bool, str], ...] = ()
    todos: tuple[tuple[str, str], ...] = ()
    plan: str = ""
    commands: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    skills: tuple[str, ...] = ()
    running: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON values, bounded."""
        return {name: value if isinstance(value, str) else bounded(value) for name, value in asdict(self).items()}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Memory:
        """What `to_json` gave; kinds that are missing are empty."""
        known = {field.name for field in fields(Memory)} & set(values)
        return Memory(**{name: _tuples(values[name]) for name in known})

    def file_states(self) -> tuple[FileState, ...]:
        """The carried ledger, as states without records."""
        return tuple(
            FileState(path=path, is_created=created, edits=edits, reads=reads, is_deleted=deleted, moved_to=moved)
            for path, created, edits, reads, deleted, moved in self.files
        )

    def attached(self) -> Attached:
        """The carried skills and background work."""
        running = tuple(BackgroundWork(id=key, about=about) for key, about in self.running)
        return Attached(skills=tuple((name, -1) for name in self.skills), running=running)

    def plan_state(self) -> PlanState:
        """The carried plan, as a state without records."""
        todos = tuple(Todo(text=text, state=State(state), record=-1) for state, text in self.todos)
        return PlanState(todos=todos, text=self.plan)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(entry) for entry in value) if isinstance(value, (list, tuple)) else value


def bounded(values: Sequence[Any]) -> list[Any]:
    """The newest values within the bounds of a state."""
    kept: list[Any] = []
    left = _MAX_CHARS
    for value in reversed(values[-_MAX_ITEMS:]):
        left -= len(str(value))
        if left < 0:
            break
        kept.append(value)
    return kept[::-1]


def carried_files(states: Iterable[FileState]) -> tuple[tuple[str, bool, int, int, bool, str], ...]:
    """File states as a memory holds them, the one worked on last at the end."""
    rows = [(s.path, s.is_created, s.edits, s.reads, s.is_deleted, s.moved_to) for s in states]
    return tuple(reversed(rows))


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
    for fact in facts.partition(words.colon)[0].split(words.comma):
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
        elif word != words.reverted and not word.startswith(f"{words.committed} "):
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


MAX_ATOMS = 50_000
MAX_TERMS = 20_000
MAX_STATEMENT_BYTES = 400_000
# A frame that unpacks to more than this was not written here.
_MAX_BYTES = 64 << 20
# Higher levels take three times as long for a tenth less.
_LEVEL = 3
_MAGIC = b"compact-state/2\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestState:
    """What a digest knows of records that are gone. ``extra``: what the sections remember, JSON values by name."""

    table: Table
    statements: tuple[Statement, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def serialise(scores: Scores, statements: Sequence[Statement] = (), extra: Mapping[str, Any] | None = None) -> bytes:
    """The state as bytes; the same state gives the same bytes."""
    table = scores.table
    rows = _kept_rows(scores)
    names = list(table.atoms)
    head = {
        "atoms": [names[row] for row in rows],
        "columns": [name for name, _ in table.columns.items()],
        "spoken": _packed_words(table.spoken),
        "numbers": [table.length_tokens, table.events],
        "statements": [_packed(statement) for statement in _kept_statements(scores, statements)],
        "extra": dict(extra or {}),
    }
    text = orjson.dumps(head, option=orjson.OPT_SORT_KEYS)
    is_whole = len(rows) == len(names)
    columns = (column if is_whole else [column[row] for row in rows] for _, column in table.columns.items())
    body = b"".join(struct.pack(f"<{len(rows)}q", *column) for column in columns)
    packed: bytes = zstd().compress(_MAGIC + len(text).to_bytes(8, "little") + text + body, _LEVEL)
    return packed


def parse(data: bytes) -> DigestState | None:
    """The state of `serialise`; None for bytes that are none (damaged, or of another version)."""
    try:
        raw = _decompress(data)
        if not raw.startswith(_MAGIC):
            return None
        start = len(_MAGIC) + 8
        stop = start + int.from_bytes(raw[len(_MAGIC) : start], "little")
        head = orjson.loads(raw[start:stop])
        return DigestState(
            table=_table(head, raw[stop:]),
            statements=tuple(_unpacked(fields) for fields in head["statements"]),
            extra=dict(head["extra"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError, MemoryError):
        return None


def _kept_rows(scores: Scores) -> list[int]:
    rows = scores.rows
    if len(rows) <= MAX_ATOMS:
        return list(range(len(rows)))
    return sorted(nlargest(MAX_ATOMS, range(len(rows)), key=lambda row: (rows[row], row)))


def _kept_statements(scores: Scores, statements: Sequence[Statement]) -> Iterable[Statement]:
    sizes = [len(statement.text.encode("utf-8", "replace")) for statement in statements]
    if sum(sizes) <= MAX_STATEMENT_BYTES:
        return statements
    totals = (sum(map(scores.of, sorted(atom_texts(statement.text)))) for statement in statements)
    density = [total / (size + 12) for total, size in zip(totals, sizes, strict=True)]
    kept: list[int] = []
    left = MAX_STATEMENT_BYTES
    for number in sorted(range(len(statements)), key=lambda number: (-density[number], number)):
        left -= sizes[number]
        if left < 0:
            break
        kept.append(number)
    return [statements[number] for number in sorted(kept)]


_packed = attrgetter("text", "form", "lead", "label", "at_tokens", "weight")


def _unpacked(values: Sequence[Any]) -> Statement:
    text, form, lead, label, at_tokens, weight = values
    return Statement(
        text=str(text),
        event=-1,
        place=0,
        form=StatementForm(form),
        lead=str(lead),
        label=str(label),
        at_tokens=int(at_tokens),
        weight=float(weight),
    )


def _packed_words(spoken_words: Spoken) -> dict[str, Any]:
    times, events, names = spoken_words.times, spoken_words.events, spoken_words.names
    most = nlargest(MAX_TERMS, times, key=lambda word: (times[word], word)) if len(times) > MAX_TERMS else times
    kept = sorted(most)
    counts = [[times[word], events.get(word, 0), names.get(word, 0)] for word in kept]
    return {"total": spoken_words.total, "words": kept, "counts": counts}


def _unpacked_words(values: Mapping[str, Any]) -> Spoken:
    spoken_words = Spoken(total=int(values["total"]))
    for word, (times, events, names) in zip(values["words"], values["counts"], strict=True):
        for counter, number in (
            (spoken_words.times, times),
            (spoken_words.events, events),
            (spoken_words.names, names),
        ):
            if number:
                counter[str(word)] = int(number)
    return spoken_words


def _table(head: Mapping[str, Any], body: bytes) -> Table:
    row = struct.Struct(f"<{len(head['atoms'])}q")
    if len(body) != row.size * len(head["columns"]):
        raise ValueError("the columns are not as long as the atoms")
    columns = dict(zip(head["columns"], map(list, row.iter_unpack(body)), strict=True)) if row.size else {}
    length_tokens, events = map(int, head["numbers"])
    return Table(
        atoms={str(atom): row for row, atom in enumerate(head["atoms"])},
        columns=Columns(**columns),
        spoken=_unpacked_words(head["spoken"]),
        length_tokens=length_tokens,
        events=events,
    )


def _decompress(data: bytes) -> bytes:
    module = zstd()
    try:
        reader = module.ZstdDecompressor()
        raw: bytes = reader.decompress(data, _MAX_BYTES)
    except module.ZstdError as error:
        raise ValueError(str(error)) from error
    if not reader.eof:
        raise ValueError("the state is cut off or too large")
    return raw
