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

from compactor_cli.digest.background import Attached, BackgroundWork
from compactor_cli.digest.checklists import PlanState, State, Todo
from compactor_cli.digest.checks import is_check
from compactor_cli.digest.commands import command_key
from compactor_cli.digest.commits import Commit
from compactor_cli.digest.files import FileOperation, FileState
from compactor_cli.digest.language import LANGUAGES, FixedWords, words_of
from compactor_cli.digest.names import named_in
from compactor_cli.digest.replies import is_assent
from compactor_cli.digest.runs import CommandOutcome, Run
from compactor_cli.digest.salience import COLUMNS, Scores, Spoken, Table
from compactor_cli.digest.statements import Statement, StatementForm
from compactor_cli.digest.texts import ELLIPSIS
from compactor_cli.digest.tools import FileAction
from compactor_cli.digest.work_state import WorkState
from compactor_cli.model.summary import Section, SectionItems
from compactor_cli.model.value import dataclass
from compactor_cli.read.streams import zstd

# Most values and characters carried of each kind, newest kept: a state stays small however often it is renewed.
_MAX_ITEMS = 400
_MAX_CHARS = 100_000
# Weight of a carried line of a file or an output (one with a label), relative to a carried sentence.
_CARRIED_FACTOR = 0.5


# The values of a `FileRow`, in this order. One more follows: 0, or whether the file's last change is in no commit: 1
# where no commit was seen at all, `UNCOMMITTED_BY_GIT` where git commands were seen that show it.
# States of earlier versions lack the last three.
_CARRIED = tuple(
    "path is_created edits reads is_deleted moved_to commit commit_before is_reverted is_edited_by_subagent".split()
)
FileRow = tuple[Any, ...]
UNCOMMITTED_BY_GIT = 2


def file_row(state: FileState, uncommitted: int = 0) -> FileRow:
    """The row that carries a file; ``uncommitted`` is 0, 1 or `UNCOMMITTED_BY_GIT` (see `_CARRIED`)."""
    return (*(getattr(state, name) for name in _CARRIED), uncommitted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Carried statements by kind, oldest first."""

    users: tuple[str, ...] = ()  # the user's messages with what came of them
    files: tuple[FileRow, ...] = ()
    todos: tuple[tuple[str, str, str], ...] = ()  # state, text and key
    plan: str = ""  # the last plan written as text
    commands: tuple[str, ...] = ()  # each acting command with its last outcome
    errors: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()  # label (or empty) and text of each statement that no other kind holds
    skills: tuple[str, ...] = ()  # names of the loaded skills
    running: tuple[tuple[str, str], ...] = ()  # id of each work in the background, and what it is to do
    branch: str = ""
    checks: tuple[tuple[str, ...], ...] = ()  # each command that passed, then the files changed since
    unpushed: tuple[tuple[str, str, str], ...] = ()  # branch, hash and subject of each commit
    stashed: tuple[str, ...] = ()  # paths that `git stash` put away
    names: tuple[tuple[str, str], ...] = ()  # the index: each name with its file, or an empty string

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values, each kind within the bounds of a state."""
        return {
            field.name: value if isinstance(value := getattr(self, field.name), str) else _bounded(value)
            for field in fields(self)
        }

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Memory:
        """The memory that `to_json` wrote; kinds that are missing are empty."""
        known = {field.name for field in fields(Memory)} & set(values)
        return Memory(**{name: _tuples(values[name]) for name in known})

    def file_states(self) -> tuple[FileState, ...]:
        """The carried files, as states without records."""
        # An uncommitted change was made before every new event: position 0.
        return tuple(
            FileState(**dict(zip(_CARRIED, row[:-1], strict=False)), changed=0 if row[-1] else -1) for row in self.files
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
        """The carried lines in their order, as statements without a record."""
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
    """The newest values that fit the bounds of a state, in their order."""
    newest_first = values[: -_MAX_ITEMS - 1 : -1]
    chars = accumulate(len(str(value)) for value in newest_first)
    fitting = takewhile(lambda pair: pair[1] <= _MAX_CHARS, zip(newest_first, chars, strict=True))
    return [value for value, _ in fitting][::-1]


# The record numbers after an item: ` [12]`, ` [3-7]`, ` [3,5]`.
_TAG = re.compile(r" \[\d+(?:[,-]\d+)*\]$", re.MULTILINE)
_WORDS = tuple(map(words_of, LANGUAGES))
_OK = tuple(f" → {words.ok}" for words in _WORDS)
_BRANCHES = tuple(f"{words.branch} " for words in _WORDS)


def _any(label: str) -> str:
    """A regular expression for a fixed word in any of the languages."""
    return "|".join(re.escape(getattr(words, label)) for words in _WORDS)


# The end of a request that may not hold any more: ` → nothing done since`, " → `make gauges` failed".
_PASSING = re.compile(rf"(?: → (?:{_any('pending')})[^→]*|(?: →|,) `[^`\n]+` (?:{_any('ok')}|{_any('failed')}))\Z")
# A stop with the reason that the user gave: `Stopped by the user: set the clocks → "the tide comes first"`.
_REASON = re.compile(
    rf"\A((?:{_any('stopped')}): .*?) → \"(.*)\"(?: \((?:{_any('resumed')}|{_any('later_approved')})\))?", re.DOTALL
)
_STOP = re.compile(rf"\A(?:{_any('stopped')}): .*", re.DOTALL)
# A check that passed before later edits: "Passed before the newest edits of src/tide.py: `make gauges`".
_STALE = re.compile(rf"\A(?:{_any('stale')}) (.*?): (`.*`)\Z", re.DOTALL)
_IN_COMMIT = re.compile(rf"git commit|(?:{_any('committed')}) ")
_QUOTED, _COMMIT = re.compile(r"`([^`\n]+)`"), re.compile(r"\b([0-9a-f]{7,40}) \"([^\"]*)\"")


def lasting_part(text: str) -> str:
    """A request and what came of it, without an end that may not hold any more: a check's outcome, nothing done."""
    return _PASSING.sub("", text)


def read_text(text: str, read: Callable[[str], tuple[SectionItems, ...]]) -> Memory:
    """The memory recovered from a summary's text: from the sections that ``read`` finds in it, else from its lines."""
    tagged = {part.section: [item.text for item in part.items if item.text] for part in read(text)}
    found = {section: [_TAG.sub("", text) for text in texts] for section, texts in tagged.items()}
    if not found:
        return Memory(lines=tuple(("", line.strip()) for line in text.split("\n") if line.strip()))

    def texts(section: Section) -> list[str]:
        return found.get(section, [])

    opened, facts, task = texts(Section.PLAN), texts(Section.COMMANDS), texts(Section.TASK)
    branches = [text.partition(" ")[2] for text in facts if text.startswith(_BRANCHES)]
    # An open item with one of these marks is an error that still failed: it is carried with the errors.
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
    """The steps of a plan among the open items, as (state, text, empty key)."""
    for text, (label, state) in product(opened, _STATES.items()):
        for rest in _after([text], label):
            yield from ((state.value, step, "") for step in (rest.split("; ") if state is State.DONE else [rest]))


_STATES = {"doing": State.DOING, "open": State.OPEN, "done": State.DONE}


def _users(tagged: Mapping[Section, Sequence[str]]) -> Iterator[str]:
    """The user's messages in their order, each with what came of it; those that only agree are left out."""
    spoken = (_STOP.sub("", _REASON.sub(r"\2 (\1)", text)) for text in tagged.get(Section.USER, ()))
    task, history = (tagged.get(section, ()) for section in (Section.TASK, Section.HISTORY))
    earlier = sorted((*spoken, *_after(history, "request"), *_after(task, "earlier")), key=_first_record)
    asked = (*earlier, *_after(task, "asked_before"), *_after(task, "request"))
    texts = (lasting_part(_TAG.sub("", text)) for text in asked)
    return (text for text in texts if text and not is_assent(text))


def _checks(opened: Iterable[str], facts: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """The checks that passed when last run, as (command, paths of the files changed since …)."""
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
    """The paths of a list that may name its folder once: `cli/{run.py, read/main.py → done/main.py …}`.

    Of a moved file, the old path.
    """
    folder, _, names = text.rpartition("{")
    return [f"{folder}{name.partition(' → ')[0]}" for name in names.rstrip(f"}} {ELLIPSIS}").split(", ")]


def _first_record(text: str) -> int:
    """The first record number in an item's tag, or 0 without a tag."""
    found = _TAG.search(text)
    return int(re.findall(r"\d+", found[0])[0]) if found else 0


def _after(texts: Iterable[str], label: str) -> list[str]:
    """The texts that begin with a fixed word and a colon, in any language, each without these."""
    labels = tuple(f"{getattr(words, label)}{words.colon}" for words in _WORDS)
    return [text.partition(": ")[2] for text in texts if text.startswith(labels)]


def _lines(text: str) -> list[tuple[str, str]]:
    """The lines of an item, blank ones left out, each with the item's label.

    The label is a command, a file or a tool before a colon in the first line, or an empty string.
    """
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
    """A row for every file that the lines of the files section name.

    ``uncommitted``: lists of paths; where one was cut, every changed file without a commit counts as listed.
    ``is_none_committed``: no commit was seen.
    """
    listed = {path for text in uncommitted for path in _unlisted(text)}
    is_cut = any(ELLIPSIS in text for text in uncommitted)
    for state in chain.from_iterable(map(_files, lines)):
        may_be_open = state.is_changed and not (state.commit or state.is_reverted)
        is_open = state.path in listed or (is_cut and may_be_open)
        yield file_row(state, UNCOMMITTED_BY_GIT if is_open else int(is_none_committed and may_be_open))


def _files(line: str) -> list[FileState]:
    """The files that a line of the files section names, or an empty list."""
    path, dash, facts = line.partition(" — ")
    for words in _WORDS:
        if dash and (state := _file(path, facts, words)):
            return [state]
        label, colon, paths = line.partition(words.colon)
        done = label.partition(words.comma)[0]
        if colon and done in (words.read, words.looked_at, words.edited, words.created, words.deleted, words.reverted):
            return [state for path in paths.split(", ") if (state := _file(path, label, words))]
    return []


def _file(path: str, facts: str, words: FixedWords) -> FileState | None:
    """The state of a file by the facts stated of it, or None where one of them is not a fact about a file."""
    state = FileState(path=path)
    counts = {words.edited: "edits", words.read: "reads", words.looked_at: "reads"}
    flags = {words.created: "is_created", words.deleted: "is_deleted", words.reverted: "is_reverted"}
    named = {words.moved: "moved_to", words.moved_from: "moved_from"}
    named |= {words.committed: "commit", words.since_commit: "commit_before"}
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


# What a state holds at most: the atoms likeliest to be used again, the words spoken most often.
MAX_ATOMS = 50_000
MAX_TERMS = 20_000
# Compressed data that unpacks to more bytes than this was not written by `serialise`.
_MAX_BYTES = 64 << 20
# Higher levels take three times as long for a tenth less.
_LEVEL = 3
_MAGIC = b"compact-state/3\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestState:
    """What a digest knows of records that are gone."""

    table: Table
    statements: tuple[Statement, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)  # what the sections remember, JSON values by name


def serialise(scores: Scores, statements: Sequence[Statement] = (), extra: Mapping[str, Any] | None = None) -> bytes:
    """The state as bytes, at most `MAX_ATOMS` atoms and `MAX_TERMS` words; the same state gives the same bytes."""
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
    """The state that `serialise` wrote, or None for any other bytes (damaged, or of another version)."""
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
