"""What the future needed of the middle, and how much of it a summary holds.

The needs of a case are worked out once; scoring a summary against them is cheap. Artefacts are files, commands, open
items, decisions and errors. Facts are for conversations without files: values that the agent uses in the future, that
were given in the middle, and that nobody repeated before the agent needed them: an argument of a call, an amount, a
number, a name. Retrieval measures whether a line can be found by what the future asks (BM25).

Gates are conditions that every digest must meet: its budget, nothing invented, sections that read back.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.files import patched_files
from compactor_cli.digest.tools import PATH_KEYS, FileAction, ToolKind, argument, command_of, objects
from compactor_cli.evaluate.cuts import EvalCase
from compactor_cli.llm.importance import Index
from compactor_cli.model.settings import Settings
from compactor_cli.model.summary import Summary
from compactor_cli.model.value import dataclass
from compactor_cli.plan.tokens import shown_texts
from compactor_cli.render.template import load_template, read_sections

if TYPE_CHECKING:
    from compactor_cli.evaluate.methods import Count, Digested

# In a longer line, nearness means nothing: minified code and data would pair everything with everything.
LINE_CHARS = 240
GRAM_WORDS = 3

# Scripts without spaces between words (kana, Han, Thai and the like), where each character counts as a word.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")

# Shorter words (of, to, in) are on every line: that an atom shares a line with one carries no information.
LEAST_WORD_CHARS = 3


def words(text: str) -> list[str]:
    """The words of a text in lower case; in scripts without spaces every character is one."""
    return _WORD.findall(text.lower())


def tokens(text: str) -> list[str]:
    """The pieces of a text between blanks, unchanged; in scripts without spaces every character is one."""
    return _TOKEN.findall(text)


@lru_cache(maxsize=100_000)
def line_words(line: str) -> frozenset[str]:
    """The words of a line that an atom can be paired with: they begin with a letter.

    In ASCII, they have at least `LEAST_WORD_CHARS` characters.
    """
    return frozenset(
        word for word in words(line) if word[0].isalpha() and (len(word) >= LEAST_WORD_CHARS or not word.isascii())
    )


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text without outer blanks; empty ones are left out."""
    return (stripped for line in text.split("\n") if (stripped := line.strip()))


def pieces(line: str) -> Iterator[str]:
    """A line in pieces of at most LINE_CHARS, cut at blanks if there are any.

    So a summary on one endless line does not win the measures that count by line.
    """
    while len(line) > LINE_CHARS:
        at = line.rfind(" ", 1, LINE_CHARS + 1)
        at = at if at > 0 else LINE_CHARS
        yield line[:at]
        line = line[at:].lstrip()
    if line:
        yield line


class View:
    """A text as the measures see it. Its properties are computed when they are first read."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def atoms(self) -> frozenset[str]:
        """The distinct atoms."""
        return frozenset(atom_texts(self.text))

    @cached_property
    def grams(self) -> frozenset[str]:
        """The distinct word triples of each line, joined by blanks."""
        worded = map(words, lines_of(self.text))
        return frozenset(" ".join(run[i : i + GRAM_WORDS]) for run in worded for i in range(len(run) - GRAM_WORDS + 1))

    @cached_property
    def short_lines(self) -> tuple[str, ...]:
        """The distinct lines of at most LINE_CHARS; longer ones are left out."""
        return tuple(dict.fromkeys(line for line in lines_of(self.text) if len(line) <= LINE_CHARS))

    @cached_property
    def by_atom(self) -> dict[str, list[str]]:
        """The short lines that hold each atom."""
        found: dict[str, list[str]] = {}
        for line in self.short_lines if self.atoms else ():
            for atom in atom_texts(line):
                found.setdefault(atom, []).append(line)
        return found


class SummaryView(View):
    """The text of a summary: long lines are cut into pieces instead of being left out."""

    @cached_property
    def short_lines(self) -> tuple[str, ...]:
        """The distinct lines; long ones are cut into pieces."""
        return tuple(dict.fromkeys(piece for line in lines_of(self.text) for piece in pieces(line)))


@lru_cache(maxsize=60_000)
def view(text: str) -> View:
    """The view of an event's text, from a cache that `forget` clears."""
    return View(text)


def forget() -> None:
    """Clear the caches; to be called between transcripts, which have little in common."""
    view.cache_clear()
    line_words.cache_clear()


SHINGLE_TOKENS = 8
# Longer user messages are pasted logs and documents, not instructions.
USER_MESSAGE_WORDS = 400

_AGENT = frozenset({EventKind.ASSISTANT, EventKind.CALL})


class Measure(StrEnum):
    """What is measured, as a share of what was needed."""

    FUR = "FUR"  # atoms that the agent uses before anybody shows them again
    FUR_ANY = "FUR-any"  # atoms that the agent uses at all
    PAIRS = "pairs"  # an atom and a word that share a line, in the middle and in the future
    PAIRS_STRICT = "pairs-strict"  # pairs whose word is not part of the atom
    PHRASES = "phrases"  # word triples that the agent uses before anybody shows them again
    USER = "user"  # eight tokens in a row of the user's messages
    RETRIEVAL = "R@3"  # see `retrieval`
    EDITED = "edited"  # this and the next five: see `artefacts_of`
    READ = "read"
    COMMANDS = "commands"
    TODOS = "todos"
    DECISIONS = "decisions"
    ERRORS = "errors"
    CHAT = "chat"  # see `reused_facts`


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many of the things that were needed are kept."""

    kept: int
    total: int  # 0: there was nothing to measure

    @property
    def ratio(self) -> float:
        """The share, from 0 to 1; 0 if there was nothing to measure."""
        return self.kept / self.total if self.total else 0.0


def _share(hits: Iterable[bool]) -> Share:
    every = tuple(hits)
    return Share(kept=sum(every), total=len(every))


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """An atom of the middle that the agent uses before anybody shows it again, and the line on which it does."""

    atom: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a summary of this middle should hold, judged by what came after the cut."""

    uses: tuple[Use, ...]  # the first use of each atom
    reused: frozenset[str]  # the atoms that the agent uses at all
    pairs: frozenset[tuple[str, str]]  # (atom, word)
    phrases: frozenset[str]  # three words with blanks between
    shingles: tuple[str, ...]  # eight tokens of the user with blanks between


def needs_of(case: EvalCase) -> Needs:
    """The needs that `score` measures, without the names of tools' parameters."""
    # Only names that are not plain words, in lower case: a word like `description` is used in other ways too.
    schema = {name.lower() for name in case.schema if not name.isalpha() or name.lower() != name}
    known = _atoms(case.head_events) | _atoms(case.tail_events)
    candidates = _atoms(case.middle_events) - known - case.schema
    # The user's messages in runs of eight tokens without overlap; a shorter rest of a message does not count.
    shingles: dict[str, None] = {}
    for run in (tokens(event.text) for event in case.middle_events if event.kind is EventKind.USER):
        starts = range(0, len(run) - SHINGLE_TOKENS + 1, SHINGLE_TOKENS) if len(run) <= USER_MESSAGE_WORDS else ()
        shingles |= dict.fromkeys(" ".join(run[i : i + SHINGLE_TOKENS]) for i in starts)
    return Needs(
        uses=_uses(case.future_events, candidates),
        reused=frozenset(candidates & _atoms(event for event in case.future_events if event.kind in _AGENT)),
        pairs=frozenset(pair for pair in _pairs(case, candidates) if pair[1] not in schema),
        phrases=frozenset(phrase for phrase in _phrases(case) if schema.isdisjoint(phrase.split())),
        shingles=tuple(shingles),
    )


def score(needs: Needs, summary: SummaryView) -> dict[Measure, Share]:
    """How much of the needs this summary holds."""
    flat = f" {' '.join(tokens(summary.text))} "
    return {
        Measure.FUR: _share(atom in summary.atoms for atom in {use.atom for use in needs.uses}),
        Measure.FUR_ANY: _share(atom in summary.atoms for atom in needs.reused),
        Measure.PAIRS: _held(needs.pairs, summary),
        # If the word is part of the atom, the atom alone would hold the pair.
        Measure.PAIRS_STRICT: _held((pair for pair in needs.pairs if pair[1] not in words(pair[0])), summary),
        Measure.PHRASES: _share(phrase in summary.grams for phrase in needs.phrases),
        Measure.USER: _share(f" {word_run} " in flat for word_run in needs.shingles),
    }


def _atoms(events: Iterable[Event]) -> set[str]:
    return {atom for event in events for atom in view(event.text).atoms}


def _uses(future: Iterable[Event], candidates: set[str]) -> tuple[Use, ...]:
    """The first use of each atom that the agent uses before a user or a result has shown it."""
    shown: set[str] = set()
    found: dict[str, Use] = {}
    for event in future:
        atoms = view(event.text).atoms & candidates
        if event.kind not in _AGENT:
            shown |= atoms
            continue
        wanted = atoms - shown - found.keys()
        for line in lines_of(event.text) if wanted else ():
            for atom in sorted(wanted & atom_texts(line) - found.keys()):
                found[atom] = Use(atom=atom, line=line)
    return tuple(found.values())


def _pairs(case: EvalCase, candidates: set[str]) -> frozenset[tuple[str, str]]:
    """The (atom, word) that share a line of the agent after the cut and also a line of the middle."""
    wanted: dict[str, set[str]] = {}
    for event in case.future_events:
        if event.kind in _AGENT:
            for atom, near in _adjacent(event, candidates):
                wanted.setdefault(atom, set()).update(near)
    found: set[tuple[str, str]] = set()
    for event in case.middle_events:
        for atom, near in _adjacent(event, wanted.keys()):
            found.update((atom, word) for word in near & wanted[atom])
    return frozenset(found)


def _adjacent(event: Event, atoms: Set[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Each of these atoms with the words of each short line that holds it."""
    here = view(event.text)
    for atom in here.atoms & atoms:
        for line in here.by_atom.get(atom, ()):
            yield atom, line_words(line)


def _held(pairs: Iterable[tuple[str, str]], summary: SummaryView) -> Share:
    return _share(any(word in line_words(line) for line in summary.by_atom.get(atom, ())) for atom, word in pairs)


def _grams(events: Iterable[Event]) -> set[str]:
    return {gram for event in events for gram in view(event.text).grams}


def _phrases(case: EvalCase) -> frozenset[str]:
    candidates = _grams(case.middle_events) - _grams(case.head_events) - _grams(case.tail_events)
    shown: set[str] = set()
    used: set[str] = set()
    for event in case.future_events:
        here = view(event.text).grams & candidates
        if event.kind not in _AGENT:
            shown |= here
        elif event.tool is not ToolKind.EDIT:
            used |= here - shown
    return frozenset(used)


LEAST_LINE_WORDS = 4  # fewer words may recur by chance
COMMAND_WORDS = 16  # of a command, its first words count
_DONE = frozenset({"completed", "complete", "done", "cancelled", "canceled", "deleted", "skipped"})
_ITEM_KEYS = ("content", "step", "title", "description", "subject", "task", "text")
_LIST_KEYS = ("todos", "plan", "items", "tasks", "task_list", "todo_list", "todoList")


def artefacts_of(events: Sequence[Event]) -> dict[Measure, tuple[str, ...]]:
    """The distinct artefacts of these events.

    They are files edited, files only read, first lines of commands, open items of the last list, and lines with a
    decision or an error. Lines are sequences of words: markup and line breaks do not count.
    """
    edited = dict.fromkeys(_paths(events, ToolKind.EDIT))
    # The content of a file may mention errors without being one.
    failing = (event for event in events if event.is_error or event.tool not in (ToolKind.READ, ToolKind.EDIT))
    runs = (event for event in events if event.kind is EventKind.CALL and event.tool is ToolKind.COMMAND)
    commands = (next(lines_of(command_of(event.arguments)), "") for event in runs)
    # The items of the last list that are not done.
    lists = (event for event in reversed(events) if event.kind is EventKind.CALL and event.tool is ToolKind.PLAN)
    items = next(filter(None, (objects(event.arguments, _LIST_KEYS) for event in lists)), ())
    todos = (argument(item, _ITEM_KEYS) for item in items if str(item.get("status", "")).lower() not in _DONE)
    found: dict[Measure, Iterable[str]] = {
        Measure.EDITED: edited,
        Measure.READ: (path for path in _paths(events, ToolKind.READ) if path not in edited),
        Measure.COMMANDS: (" ".join(words(line)[:COMMAND_WORDS]) for line in commands if line),
        Measure.TODOS: (" ".join(words(text)) for text in todos if text),
        Measure.DECISIONS: _telling_lines(events, EventKind.ASSISTANT, _DECISION),
        Measure.ERRORS: _telling_lines(failing, EventKind.RESULT, _ERROR),
    }
    return {measure: tuple(dict.fromkeys(texts)) for measure, texts in found.items()}


def score_artefacts(artefacts: Mapping[Measure, Sequence[str]], summary: SummaryView) -> dict[Measure, Share]:
    """The share of the artefacts that the summary names."""
    # Markup and line breaks do not count.
    flat = f" {' '.join(words(summary.text))} "
    every_line = tuple(lines_of(summary.text))

    def is_named(measure: Measure, text: str) -> bool:
        if measure not in (Measure.EDITED, Measure.READ):
            return f" {text} " in flat
        # A path is named as a whole, or by its folder and its name on one line (``src/app: a.py, b.py``).
        folder, _, name = text.rpartition("/")
        lines = (line for line in every_line if folder and name in line and folder in line)
        return _holds(summary.text, text) or any(_holds(line, name) and _holds(line, folder) for line in lines)

    return {measure: _share(is_named(measure, text) for text in texts) for measure, texts in artefacts.items()}


def _holds(text: str, path: str) -> bool:
    """Whether the text has the path other than as part of a longer name."""
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
                # All files of a patch, except for the new names of those it moves.
                yield from (path for action, path in patched_files(event.text) if action is not FileAction.MOVE)


def _telling_lines(events: Iterable[Event], kind: EventKind, cue: re.Pattern[str]) -> Iterator[str]:
    for event in events:
        for line in lines_of(event.text) if event.kind is kind else ():
            if len(line) <= LINE_CHARS and cue.search(line) and len(found := words(line)) >= LEAST_LINE_WORDS:
                yield " ".join(found)


_DECISION = re.compile(
    r"\b(?:decid(?:ed|ing)|decision|instead of|rather than|chose|chosen|opted|go(?:ing)? with|the (?:root )?cause"
    r"|because|trade-?off|better (?:approach|option)|so that|agreed)\b"
    r"|决定|因为|而不是|选择|改用|ことにし|なぜなら|代わりに",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b(?:[A-Z]\w*(?:Error|Exception)\b|(?:fatal|error|panic|failed|failure|Traceback|FAIL(?:ED)?)\b[:\s(\[])"
    r"|\b(?:not found|no such file|permission denied|command not found|undefined reference|cannot find)\b"
    r"|错误|失败",
)


MOST_ANSWER_WORDS = 12  # longer values are texts, not facts
_TRIVIAL = frozenset({"true", "false", "none", "null", "yes", "no", "ok", "user", "assistant", "i", "the"})


def reused_facts(case: EvalCase) -> tuple[str, ...]:
    """The facts of the middle that the agent uses before anybody repeats them.

    They are sequences of words in lower case, in the order of their first use; head and tail do not have them.
    """
    known = _flat((*case.head_events, *case.tail_events))
    middle = _flat(case.middle_events)
    shown = ""
    found: dict[str, None] = {}
    for event in case.future_events:
        if event.kind in (EventKind.USER, EventKind.RESULT):
            shown += _flat((event,))
            continue
        # In a text, facts are amounts, numbers and codes with a digit, and capitalised names of two or more words.
        is_call = event.kind is EventKind.CALL
        texts = _values(event.arguments) if is_call else (fact[0] for fact in _FACT.finditer(event.text))
        for spoken in (words(text) for text in texts if len(text) > 1):
            phrase = f" {' '.join(spoken)} "
            is_fact = 0 < len(spoken) <= MOST_ANSWER_WORDS and not _TRIVIAL.issuperset(spoken)
            if is_fact and phrase in middle and phrase not in known and phrase not in shown:
                found.setdefault(phrase.strip())
    return tuple(found)


def score_facts(wanted: Iterable[str], summary: SummaryView) -> Share:
    """The share of the facts whose words are all in the summary."""
    held = frozenset(words(summary.text))
    return _share(held.issuperset(fact.split()) for fact in wanted)


def _flat(events: Iterable[Event]) -> str:
    return f" {' '.join(word for event in events for word in words(event.text))} "


def _values(arguments: Any) -> Iterator[str]:
    if isinstance(arguments, Mapping | list | tuple):
        for value in arguments.values() if isinstance(arguments, Mapping) else arguments:
            yield from _values(value)
    elif not isinstance(arguments, bool) and arguments is not None:
        yield str(arguments)


# `$1,250.00`, `K7-204`, `Harbour Street`
_FACT = re.compile(r"[$€£¥]\s?\d[\d,.]*\d|\b(?=[\w-]*\d)[A-Za-z0-9][\w-]{2,}\b|\b[A-Z][a-z]+(?: [A-Z][a-z]+)+\b")


TOP = 3


def retrieval(uses: Iterable[Use], summary: SummaryView) -> Share:
    """The share of the uses whose atom is found: the query is the line of the use without the atom.

    An atom is found if one of the three lines of the summary that are nearest to the query (BM25) holds it.
    """
    index = Index([words(line) for line in summary.short_lines])
    found: list[bool] = []
    for use in uses:
        if query := words(use.line.replace(use.atom, " ")):
            scores, holders = index.scores(query), summary.by_atom.get(use.atom, ())
            # Lines with equal scores rank in their order.
            nearest = heapq.nsmallest(TOP, scores, key=lambda i: (-scores[i], i))
            found.append(any(summary.short_lines[i] in holders for i in nearest))
    return _share(found)


TEMPLATE = Settings().template


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """The results of the gates for one digest."""

    budget_ratio: float  # the share of the budget that its text takes
    invented: tuple[str, ...]  # atoms that no record of the transcript holds
    malformed: tuple[str, ...]  # what is wrong with the sections, in words

    @property
    def hold(self) -> bool:
        """Whether all gates are passed."""
        return self.budget_ratio <= 1 and not self.invented and not self.malformed


def gates_of(case: EvalCase, budget_tokens: int, count: Count, found: Digested) -> Gates:
    """Check the gates for ``found``, a digest of this case at this budget."""
    cleaned = (event.text for event in case.prefix_events)
    shown = (text for message in case.prefix.messages for text in shown_texts(message))
    both = zip(case.prefix.records, case.prefix.messages, strict=False)
    unshown = (record.raw.decode("utf-8", "replace") for record, message in both if message.is_meta)
    return Gates(
        budget_ratio=count(found.text) / budget_tokens,
        invented=invented(found.answer.summary, (*cleaned, *shown, *unshown)),
        malformed=tuple(malformed(found, case.middle)),
    )


def invented(summary: Summary, texts: Iterable[str]) -> tuple[str, ...]:
    """The atoms of the summary's items that are nowhere in these texts, sorted.

    A path may be joined from two parts in the texts: the folder in which a command ran, and a path below it.
    """
    named = {atom for part in summary.sections for item in part.items for atom in atom_texts(item.text)}
    source = "\n".join(texts)
    found = []
    for atom in sorted(named - atom_texts(source)):
        slashes = (at for at, sign in enumerate(atom) if sign == "/")
        if atom not in source and not any(atom[:at] in source and atom[at + 1 :] in source for at in slashes):
            found.append(atom)
    return tuple(found)


def malformed(found: Digested, covered: Iterable[int]) -> Iterable[str]:
    """What is wrong with the sections, in words; nothing if they are well-formed."""
    sections = found.answer.summary.sections
    names = [part.section for part in sections]
    if len(set(names)) < len(names):
        yield "a section comes twice"
    known = frozenset(covered)
    for part in sections:
        if not part.items:
            yield f"{part.section} is empty"
        for item in part.items:
            if not item.text.strip():
                yield f"{part.section}: an item without text"
            if list(item.records) != sorted(set(item.records)):
                yield f"{part.section}: the records of an item are not ascending"
            if not known.issuperset(item.records):
                yield f"{part.section}: an item names a record that is not covered"
    read = {part.section: len(part.items) for part in read_sections(found.text, load_template(TEMPLATE))}
    if read != {part.section: len(part.items) for part in sections}:
        yield "the text does not read back to its sections"
