"""Memory: what an earlier summary written by compact held, from the state stored next to it, else from its own text."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from functools import partial
from heapq import nlargest
from itertools import accumulate, chain, product, takewhile
from operator import attrgetter
from typing import Any

import orjson

from compactor_cli.digest.checklists import PlanState, State, Todo
from compactor_cli.digest.checks import is_check
from compactor_cli.digest.commands import CommandOutcome, Run, command_key
from compactor_cli.digest.commits import Commit
from compactor_cli.digest.files import FileOperation, FileState
from compactor_cli.digest.language import LANGUAGES, FixedWords, words_of
from compactor_cli.digest.names import named_in
from compactor_cli.digest.open import Attached, BackgroundWork
from compactor_cli.digest.replies import is_assent
from compactor_cli.digest.salience import COLUMNS, Scores, Spoken, Table
from compactor_cli.digest.statements import ELLIPSIS, Statement, StatementForm
from compactor_cli.digest.tools import FileAction
from compactor_cli.digest.work_state import WorkState
from compactor_cli.model.summary import Section, SectionItems
from compactor_cli.model.value import dataclass
from compactor_cli.read.streams import zstd

# What is carried of each kind, newest kept: a state stays small however often it is renewed.
_MAX_ITEMS = 400
_MAX_CHARS = 100_000
# What a line of a file or an output is worth, of a summary's text, against a message.
_CARRIED_FACTOR = 0.5


# What is carried of a file, in this order, and whether its last change is in no commit: 1 where none was seen to be
# made, 2 where git was used.
_CARRIED = ("path", "is_created", "edits", "reads", "is_deleted", "moved_to", "commit")
FileRow = tuple[Any, ...]
UNCOMMITTED_BY_GIT = 2


def file_row(state: FileState, uncommitted: int = 0) -> FileRow:
    """What is carried of a file."""
    return (*(getattr(state, name) for name in _CARRIED), uncommitted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Carried statements by kind, oldest first.

    ``todos``: state, text and key. ``lines``: statements that no other kind holds, each with the label it stood under.
    ``running``: the id of work in the background, and what it is to do. ``checks``: commands that passed, each with the
    files changed since. ``unpushed``: branch, hash and subject. ``names``: the index, each name with its file.
    """

    users: tuple[str, ...] = ()
    files: tuple[FileRow, ...] = ()
    todos: tuple[tuple[str, str, str], ...] = ()
    plan: str = ""
    commands: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    skills: tuple[str, ...] = ()
    running: tuple[tuple[str, str], ...] = ()
    branch: str = ""
    checks: tuple[tuple[str, ...], ...] = ()
    unpushed: tuple[tuple[str, str, str], ...] = ()
    stashed: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As JSON values, bounded."""
        return {
            field.name: value if isinstance(value := getattr(self, field.name), str) else _bounded(value)
            for field in fields(self)
        }

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Memory:
        """What `to_json` gave; kinds that are missing are empty."""
        known = {field.name for field in fields(Memory)} & set(values)
        return Memory(**{name: _tuples(values[name]) for name in known})

    def file_states(self) -> tuple[FileState, ...]:
        """The carried files, as states without records."""
        # What no commit held was changed before all that is new.
        return tuple(
            FileState(**dict(zip(_CARRIED, row[:-1], strict=True)), changed=0 if row[-1] else -1) for row in self.files
        )

    def work_state(self) -> WorkState:
        """The carried state of the work tree, without records."""
        return WorkState(
            branch=self.branch,
            uncommitted={row[0]: -1 for row in self.files if row[-1] == UNCOMMITTED_BY_GIT},
            checks=tuple(
                (_PASSED(command=command, key=command_key(command)), tuple(_EDITED(path=path) for path in paths))
                for command, *paths in self.checks
            ),
            unpushed=tuple(Commit(branch=b, hash=h, subject=s, event=-1, record=-1) for b, h, s in self.unpushed),
            is_pushed=any("git push" in text and _is_ok(text) for text in self.commands),
            stashed=self.stashed,
        )

    def statements(self) -> tuple[Statement, ...]:
        """The carried lines, as statements of records that are gone, in their order."""
        forms = ((StatementForm.OUTPUT if label else StatementForm.SENTENCE, label, line) for label, line in self.lines)
        return tuple(
            Statement(line, -1, 0, form, "", label, at_tokens=number, weight=_CARRIED_FACTOR if label else 1.0)
            for number, (form, label, line) in enumerate(forms)
        )

    def attached(self) -> Attached:
        """The carried skills and background work."""
        running = tuple(BackgroundWork(id=key, about=about) for key, about in self.running)
        return Attached(skills=tuple((name, -1) for name in self.skills), running=running)

    def plan_state(self) -> PlanState:
        """The carried plan, as a state without records."""
        todos = tuple(Todo(text=text, state=State(state), record=-1, key=key) for state, text, key in self.todos)
        return PlanState(todos=todos, text=self.plan)


_PASSED = partial(Run, event=-1, record=-1, result_record=-1, outcome=CommandOutcome.OK)
_EDITED = partial(FileOperation, action=FileAction.EDIT, event=-1, record=-1)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(entry) for entry in value) if isinstance(value, (list, tuple)) else value


def _bounded(values: Sequence[Any]) -> list[Any]:
    """The newest values within the bounds of a state."""
    newest_first = values[: -_MAX_ITEMS - 1 : -1]
    chars = accumulate(len(str(value)) for value in newest_first)
    fitting = takewhile(lambda pair: pair[1] <= _MAX_CHARS, zip(newest_first, chars, strict=True))
    return [value for value, _ in fitting][::-1]


_TAG = re.compile(r" \[\d+(?:[,-]\d+)*\]$", re.MULTILINE)
_WORDS = tuple(map(words_of, LANGUAGES))
_OK = tuple(f" → {words.ok}" for words in _WORDS)
_BRANCHES = tuple(f"{words.branch} " for words in _WORDS)


def _any(label: str) -> str:
    """A fixed word in each language, as a pattern has it."""
    return "|".join(re.escape(getattr(words, label)) for words in _WORDS)


_PASSING = re.compile(rf"(?: → (?:{_any('pending')})[^→]*|(?: →|,) `[^`\n]+` (?:{_any('ok')}|{_any('failed')}))\Z")
# What the user gave as the reason of a stop.
_REASON = re.compile(
    rf"\A((?:{_any('stopped')}): .*?) → \"(.*)\"(?: \((?:{_any('resumed')}|{_any('later_approved')})\))?", re.DOTALL
)
_STOP = re.compile(rf"\A(?:{_any('stopped')}): .*", re.DOTALL)
_STALE = re.compile(rf"\A(?:{_any('stale')}) (.*?): (`.*`)\Z", re.DOTALL)
_IN_COMMIT = re.compile(rf"git commit|(?:{_any('committed')}) ")
_QUOTED, _COMMIT = re.compile(r"`([^`\n]+)`"), re.compile(r"\b([0-9a-f]{7,40}) \"([^\"]*)\"")


def lasting_part(text: str) -> str:
    """A request with what came of it, without what may be otherwise by now: how a check ended, what is not begun."""
    return _PASSING.sub("", text)


def read_text(text: str, read: Callable[[str], tuple[SectionItems, ...]]) -> Memory:
    """The memory that a summary's text shows: its sections as ``read`` finds them, else its lines."""
    tagged = {part.section: [item.text for item in part.items if item.text] for part in read(text)}
    found = {section: [_TAG.sub("", text) for text in texts] for section, texts in tagged.items()}
    if not found:
        return Memory(lines=tuple(("", line.strip()) for line in text.split("\n") if line.strip()))

    def texts(section: Section) -> list[str]:
        return found.get(section, [])

    opened, facts, task = texts(Section.PLAN), texts(Section.COMMANDS), texts(Section.TASK)
    branches = [text.partition(" ")[2] for text in facts if text.startswith(_BRANCHES)]
    # Of what is open, the lines that tell of an error: it is fixed later, or still is.
    marks = [f"— {mark}" for words in _WORDS for mark in (words.failing, words.changed)]
    is_new = not (
        _after(facts, "by_others") or any(_IN_COMMIT.search(text) for text in (*texts(Section.FILES), *facts))
    )
    stated = [text for label in ("replying", "stood", "earlier_state") for text in _after(task, label)]
    lines = (*texts(Section.PREVIOUS), *texts(Section.HISTORY), *stated)
    return Memory(
        users=tuple(_users(tagged)),
        files=tuple(_file_rows(texts(Section.FILES), _after(opened, "uncommitted"), is_none_committed=is_new))[::-1],
        todos=tuple(dict.fromkeys(_todos(opened))),
        plan=next(iter(_after(reversed(opened), "plan")), ""),
        commands=tuple(text for text in reversed(facts) if not text.startswith(_BRANCHES)),
        errors=tuple([*texts(Section.ERRORS), *(line for line in opened if any(mark in line for mark in marks))][::-1]),
        decisions=tuple(texts(Section.DECISIONS)),
        lines=tuple(chain.from_iterable(_lines(text) for text in lines if not _after([text], "request"))),
        branch=next(iter(branches), ""),
        checks=tuple(_checks(opened, facts)),
        unpushed=tuple(("", *commit) for text in _after(opened, "unpushed") for commit in _COMMIT.findall(text)),
        stashed=tuple(name for text in _after(opened, "stashed") for name in _unlisted(text.partition(" — ")[0])),
        names=tuple(chain.from_iterable(named_in(text).items() for text in texts(Section.NAMES))),
    )


def _todos(opened: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """The steps of a plan, with their states."""
    for text, (label, state) in product(opened, _STATES.items()):
        for rest in _after([text], label):
            yield from ((state.value, step, "") for step in (rest.split("; ") if state is State.DONE else [rest]))


_STATES = {"doing": State.DOING, "open": State.OPEN, "done": State.DONE}


def _users(tagged: Mapping[Section, Sequence[str]]) -> Iterator[str]:
    """The user's messages in their order, each with what came of it; yeses left out."""
    spoken = (_STOP.sub("", _REASON.sub(r"\2 (\1)", text)) for text in tagged.get(Section.USER, ()))
    task, history = (tagged.get(section, ()) for section in (Section.TASK, Section.HISTORY))
    earlier = sorted((*spoken, *_after(history, "request"), *_after(task, "earlier")), key=_first_record)
    asked = (*earlier, *_after(task, "asked_before"), *_after(task, "request"))
    texts = (lasting_part(_TAG.sub("", text)) for text in asked)
    return (text for text in texts if text and not is_assent(text))


def _checks(opened: Iterable[str], facts: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """The checks that passed last, each with the files changed since."""
    older = [(found[1], _QUOTED.findall(found[2])) for text in opened if (found := _STALE.match(text))]
    yield from ((command, *_unlisted(paths)) for paths, commands in older for command in commands)
    known = {command_key(command) for _, commands in older for command in commands}
    for text in facts:
        command = text.partition("` ")[0].strip("`")
        if text.startswith("`") and is_check(command) and _is_ok(text) and command_key(command) not in known:
            yield (command,)


def _is_ok(text: str) -> bool:
    return any(mark in text for mark in _OK)


def _unlisted(text: str) -> list[str]:
    """The names of a list that may have its folder once: `cli/{run.py, read/main.py → done/main.py …}`."""
    folder, _, names = text.rpartition("{")
    return [f"{folder}{name.partition(' → ')[0]}" for name in names.rstrip(f"}} {ELLIPSIS}").split(", ")]


def _first_record(text: str) -> int:
    """The number of the first record that an item names, 0 without one."""
    found = _TAG.search(text)
    return int(re.findall(r"\d+", found[0])[0]) if found else 0


def _after(texts: Iterable[str], label: str) -> list[str]:
    """What stands after a fixed word, in any language."""
    labels = tuple(f"{getattr(words, label)}{words.colon}" for words in _WORDS)
    return [text.partition(": ")[2] for text in texts if text.startswith(labels)]


def _lines(text: str) -> list[tuple[str, str]]:
    """The lines of an item, each with the item's label: a command, a file, a tool before a colon."""
    first, *rest = text.split("\n")
    label, colon, after = first.partition(": ")
    if rest and first.endswith(":"):
        label, lines = first[:-1], rest
    elif colon and (label.startswith("`") or " " not in label) and any(mark in label for mark in "/.`"):
        lines = [after, *rest]
    else:
        label, lines = "", [first, *rest]
    return [(label, line) for line in lines if line.strip()]


def _file_rows(lines: Iterable[str], uncommitted: Sequence[str], *, is_none_committed: bool) -> Iterator[FileRow]:
    """The files that the lines of their section name; where the ``uncommitted`` ones are cut, all without a commit."""
    listed = {path for text in uncommitted for path in _unlisted(text)}
    is_cut = any(ELLIPSIS in text for text in uncommitted)
    for state in chain.from_iterable(map(_files, lines)):
        may_be_open = state.is_changed and not (state.commit or state.is_reverted)
        is_open = state.path in listed or (is_cut and may_be_open)
        yield file_row(state, UNCOMMITTED_BY_GIT if is_open else int(is_none_committed and may_be_open))


def _files(line: str) -> list[FileState]:
    """The files that a line of the section of files names."""
    path, dash, facts = line.partition(" — ")
    for words in _WORDS:
        if dash and (state := _file(path, facts, words)):
            return [state]
        label, colon, paths = line.partition(words.colon)
        done = label.partition(words.comma)[0]
        if colon and done in (words.read, words.edited, words.created):
            return [state for path in paths.split(", ") if (state := _file(path, label, words))]
    return []


def _file(path: str, facts: str, words: FixedWords) -> FileState | None:
    """A file of which these facts are stated; None where some words are none of a file."""
    state = FileState(path=path)
    counts = {words.edited: "edits", words.read: "reads"}
    flags = {words.created: "is_created", words.deleted: "is_deleted", words.reverted: "is_reverted"}
    named = {words.moved: "moved_to", words.committed: "commit"}
    for fact in facts.partition(words.colon)[0].split(words.comma):
        word, _, number = fact.partition(" ×")
        label = next((label for label in named if fact.startswith(f"{label} ")), "")
        if word in counts:
            setattr(state, counts[word], int(number) if number.isdigit() else 1)
        elif word in flags:
            setattr(state, flags[word], True)
        elif label:
            setattr(state, named[label], fact.removeprefix(f"{label} "))
        else:
            return None
    return state


MAX_ATOMS = 50_000
MAX_TERMS = 20_000
# A frame that unpacks to more than this was not written here.
_MAX_BYTES = 64 << 20
# Higher levels take three times as long for a tenth less.
_LEVEL = 3
_MAGIC = b"compact-state/3\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestState:
    """What a digest knows of records that are gone. ``extra``: what the sections remember, JSON values by name."""

    table: Table
    statements: tuple[Statement, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def serialise(scores: Scores, statements: Sequence[Statement] = (), extra: Mapping[str, Any] | None = None) -> bytes:
    """The state as bytes; the same state gives the same bytes."""
    table = scores.table
    chances, names = scores.rows, list(table.atoms)
    rows = sorted(nlargest(MAX_ATOMS, range(len(chances)), key=lambda row: (chances[row], row)))
    head = {
        "atoms": [names[row] for row in rows],
        "spoken": _packed_words(table.spoken),
        "numbers": [table.length_tokens, table.events],
        "statements": list(map(_packed, statements)),
        "extra": dict(extra or {}),
    }
    text = orjson.dumps(head, option=orjson.OPT_SORT_KEYS)
    columns = ([table.columns[name][row] for row in rows] for name in COLUMNS)
    body = (struct.pack(f"<{len(rows)}q", *column) for column in columns)
    packed: bytes = zstd().compress(b"".join((_MAGIC, len(text).to_bytes(8, "little"), text, *body)), _LEVEL)
    return packed


def parse(data: bytes) -> DigestState | None:
    """The state of `serialise`; None for bytes that are none (damaged, or of another version)."""
    reader = zstd().ZstdDecompressor()
    try:
        raw: bytes = reader.decompress(data, _MAX_BYTES)
        if not (reader.eof and raw.startswith(_MAGIC)):
            return None
        start = len(_MAGIC) + 8
        stop = start + int.from_bytes(raw[len(_MAGIC) : start], "little")
        head = orjson.loads(raw[start:stop])
        return DigestState(
            table=_table(head, raw[stop:]),
            statements=tuple(_unpacked(fields) for fields in head["statements"]),
            extra=dict(head["extra"]),
        )
    except (zstd().ZstdError, ValueError, KeyError, TypeError, OverflowError, MemoryError, struct.error):
        return None


_PACKED = ("text", "form", "lead", "label", "at_tokens", "weight", "place", "span")
_packed = attrgetter(*_PACKED)


def _unpacked(values: Sequence[Any]) -> Statement:
    known = dict(zip(_PACKED, values, strict=True))
    return Statement(**known | {"event": -1, "form": StatementForm(known["form"])})


def _packed_words(spoken: Spoken) -> dict[str, Any]:
    times = spoken.times
    kept = nlargest(MAX_TERMS, times, key=lambda word: (times[word], word))
    counters = {"times": times, "events": spoken.events, "names": spoken.names}
    return {name: {word: many[word] for word in kept if word in many} for name, many in counters.items()} | {
        "total": spoken.total
    }


def _unpacked_words(values: Mapping[str, Any]) -> Spoken:
    counters = {name: Counter(values[name]) for name in ("times", "events", "names")}
    return Spoken(**counters, total=values["total"])


def _table(head: Mapping[str, Any], body: bytes) -> Table:
    size = len(head["atoms"])
    numbers = struct.unpack(f"<{size * len(COLUMNS)}q", body)
    length_tokens, events = map(int, head["numbers"])
    return Table(
        atoms={str(atom): row for row, atom in enumerate(head["atoms"])},
        columns={name: list(numbers[at * size : (at + 1) * size]) for at, name in enumerate(COLUMNS)},
        spoken=_unpacked_words(head["spoken"]),
        length_tokens=length_tokens,
        events=events,
    )
