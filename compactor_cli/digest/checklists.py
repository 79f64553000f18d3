"""Checklists: the steps of a plan, and which of them later records deal with."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from compactor_cli.digest.atoms import AtomKind, find_atoms
from compactor_cli.digest.commits import Commit
from compactor_cli.digest.edits import PROSE, changes_of
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.files import FileOperation
from compactor_cli.digest.language import FixedWords, terms
from compactor_cli.digest.noise import is_signature
from compactor_cli.digest.tools import FileAction, ToolKind

# Steps, and the newest edits and commands, that are looked at: time stays linear in very long sessions.
_MAX_STEPS, _MAX_LATER = 40, 200
_MAX_EDIT_CHARS = 20_000
_BEGINNING = 5


def done_since(
    steps: Sequence[tuple[str, int]],
    events: Sequence[Event],
    operations: Sequence[FileOperation],
    commits: Sequence[Commit],
    words: FixedWords,
    begun: Collection[str],
) -> Mapping[str, str]:
    """What became of some steps, each with the record after which it counts, where a later record shows it.

    A commit whose subject holds half of its words, commands with all of them, or that do with each thing it names what
    it begins with, or an edit (see `_edited`); while some steps are ``begun``, edits are for these. Looked at are the
    first steps, and the newest edits and commands.
    """
    steps = steps[:_MAX_STEPS]
    first = min((record for _, record in steps), default=len(events))
    changes = [one for one in operations if one.record > first and one.action is not FileAction.READ][-_MAX_LATER:]
    edits = [(one.record, one.name, _edit_text(events[one.event], one.path)) for one in changes]
    commands = [e for e in events if e.record > first and e.kind is EventKind.CALL and e.tool is ToolKind.COMMAND]
    # What a command is given to write, the message of a commit among it, is not what it does.
    lines = ((event.record, event.text.partition("<<")[0]) for event in commands[-_MAX_LATER:])
    ran = [(record, line, beginnings(line)) for record, line in lines]
    texts = [text for text, _ in steps]
    edited = {
        since: _edited(texts, [(file, changed) for record, file, changed in edits if record > since])
        for since in {since for _, since in steps}
    }
    found: dict[str, str] = {}
    for text, record in steps:
        named = beginnings(text)
        later = [one for one in commits if one.record > record]
        made = [one for one in later if holds_half(one.subject, named)]
        if not made and "commi" in named and named <= _TO_COMMIT:
            made = later
        if made:
            found[text] = f"{words.committed} {made[-1].name}"
        elif text in edited[record] and (text in begun or not begun):
            found[text] = words.edited_later
        else:
            since = [(line, command) for when, line, command in ran if when > record]
            if _is_run(named, [command for _, command in since]) or _is_served(text, [line for line, _ in since]):
                found[text] = words.resumed
    return found


def _is_run(named: frozenset[str], commands: Sequence[frozenset[str]]) -> bool:
    """Whether one command has all words of a step, or all have, of a step that says what to run."""
    if named <= _TO_PUSH:
        return "push" in named and any("push" in command for command in commands)
    is_one = len(named) > 1 and any(map(named.issubset, commands))
    return is_one or ("run" in named and named <= frozenset[str]().union(*commands))


def _is_served(step: str, commands: Sequence[str]) -> bool:
    """Whether commands do with each thing that a step names what it begins with: close, merge, delete, run."""
    verb, things = step.partition(" ")[0].lower(), _THING.findall(step)
    done = [command for command in commands if verb in command.lower().split()]
    return bool(things) and all(any(thing in command for command in done) for thing in things)


# An issue, a request to merge, a worker: by its number, or a name that was given to it.
_THING = re.compile(r"#\d+|(?<![\w./-])[a-z]\w*-\w{2,}(?![\w-])")


# The words of steps that only say to commit, or to push.
_TO_COMMIT = frozenset(("commi", "chang", "all", "work", "the", "git"))
_TO_PUSH = frozenset(("push", "remot", "origi", "branc", "git"))


def beginnings(text: str) -> frozenset[str]:
    """How the words that carry meaning begin: a verb in another tense is the same, and so is a plural."""
    return frozenset(word[:_BEGINNING].removesuffix("s") for word in terms(text))


def holds_half(text: str, words: frozenset[str]) -> bool:
    """Whether a text has half of these beginnings of words, of two at least."""
    return len(words) > 1 and 2 * len(words & beginnings(text)) >= len(words)


def _edited(steps: Iterable[str], edits: Sequence[tuple[str, str]]) -> set[str]:
    """The steps that some edits, each the name of a file and what changed in it, deal with.

    An edit of its file does where it holds one of its names, or where no other step is about that file; edits do with
    a step that is about no file where they hold half of its names.
    """
    subjects = {step: _subject(step) for step in steps}
    found = set[str]()
    for step, (files, names) in subjects.items():
        others = [other for other in subjects.values() if other != (files, names)]
        own_files = {name for name in files if not any(name in other for other, _ in others)}
        own_names = {name for name in names if not any(name in other for _, other in others)}
        later = [one for one in edits if (one[0] in files if files else not one[0].endswith(PROSE))]
        named = sum(any(name in changed for _, changed in later) for name in own_names)
        if any(file in own_files for file, _ in later) or 0 < named >= (1 if files else len(own_names) / 2):
            found.add(step)
    return found


def _edit_text(call: Event, path: str) -> str:
    """The lines that an edit changed, and those of what stands around them that say what they are in."""
    lines: list[str] = []
    for old, new in changes_of(call, path):
        before, after = (dict.fromkeys(text[:_MAX_EDIT_CHARS].split("\n")) for text in (old, new))
        lines += (line for line in (*before, *after) if not (line in before and line in after) or is_signature(line))
    return "\n".join(lines)[:_MAX_EDIT_CHARS]


def _subject(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names of files and the other names in a step."""
    atoms = find_atoms(text)
    files = (atom.text.rpartition("/")[2] for atom in atoms if atom.kind in (AtomKind.FILE, AtomKind.PATH))
    return frozenset(files), frozenset(atom.text for atom in atoms if atom.kind is AtomKind.ID)
