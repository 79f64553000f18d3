"""Names: one index, by file, of the names that will probably be used again and stand nowhere else in the summary."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

from compactor_cli.digest.atoms import AtomKind, atom_texts
from compactor_cli.digest.commands import sent_subject, shown
from compactor_cli.digest.edits import PROSE, patch_of, viewed_file
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.file_contents import contents
from compactor_cli.digest.files import is_search, patched_files
from compactor_cli.digest.salience import FILE_KINDS, KINDS, Lines
from compactor_cli.digest.shell import GIT, shell_operations, unquoted
from compactor_cli.digest.statements import TokenCache
from compactor_cli.digest.texts import ELLIPSIS, head, opening
from compactor_cli.digest.tools import (
    COMMAND_KEYS,
    PAGE_TOOLS,
    PATH_KEYS,
    FileAction,
    ToolKind,
    argument,
    command_of,
    is_lookup,
    parameters,
    short_name,
)
from compactor_cli.formats.client_signs import CLIENT_WORDS
from compactor_cli.model.summary import Item

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis


_MOST_CHARS = 80
_LOOKUP_KEYS = ("pattern", "query", "q", "url", "regex", "description", "prompt", "subject")
_FILE_TOOLS = (ToolKind.EDIT, ToolKind.READ)


class Label(NamedTuple):
    """What the lines of an event stand under."""

    text: str  # the file, files, command or tool; empty for a message
    is_file: bool = False  # whether `text` is the path of a file


class Labels(dict[int, Label]):
    """The label of each event by its position, worked out when it is first looked up."""

    def __init__(self, events: Sequence[Event]) -> None:
        super().__init__()
        self._events = events

    def __missing__(self, number: int) -> Label:
        event = self._events[number]
        is_answer = event.kind is EventKind.RESULT and 0 <= event.call < len(self._events)
        call = self._events[event.call] if is_answer else event
        path = _path(call, event) if call.kind is EventKind.CALL else ""
        text = event.name if call.kind is not EventKind.CALL else path or _tool_label(call)
        if is_answer and not path and _NOTHING.match(event.text):
            # The label of a search that found nothing names where it looked, which the answer does not.
            where = argument(call.arguments, _SCOPE_KEYS)
            text += f" ({where})" if where else ""
        elif is_answer and not path and is_search(call):
            # The lines found in a single file do not name it.
            file = argument(call.arguments, PATH_KEYS)
            text += f" ({file})" if "." in file.rpartition("/")[2] else ""
        label = self[number] = Label(text, is_file=bool(path))
        return label


_NOTHING = re.compile(r"No (?:matches|files) found\b|Found 0 matches\b")
_SCOPE_KEYS = ("glob", "include", "type", "path")


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """The shortest ending of each path, in whole parts, that no other of these paths has; else the whole path."""
    parts = {path: path.split("/") for path in paths}
    endings = Counter("/".join(names[at:]) for names in parts.values() for at in range(len(names)))
    found: dict[str, str] = {}
    for path, names in parts.items():
        shorter = ("/".join(names[at:]) for at in range(len(names) - 1, -1, -1))
        found[path] = next((ending for ending in shorter if ending and endings[ending] == 1), path)
    return found


def _path(call: Event, event: Event) -> str:
    """The file that a call reads or edits, that an editor shows in its answer, or that is all that a command reads.

    An empty string where there is none, or where a command does more.
    """
    if call.tool in _FILE_TOOLS:
        patched = {path for _, path in patched_files(patch_of(call))}
        path = "" if argument(call.arguments, _LOOKUP_KEYS[:1]) else argument(call.arguments, PATH_KEYS)
        path = patched.pop() if len(patched) == 1 else path
        return path or viewed_file(event.text)
    if call.tool is not ToolKind.COMMAND:
        return ""
    command = command_of(call.arguments)
    read = _files_read(command)
    return viewed_file(event.text) or (read[0] if len(read) == 1 else "")


def _files_read(command: str) -> list[str]:
    """The files that are all that a command reads, or an empty list if it does more."""
    steps = {(path, action): None for action, path, _ in shell_operations(command)}
    is_all = all(action is FileAction.READ for _, action in steps) and not _SHOWS_MORE.search(unquoted(command))
    return [path for path, _ in steps] if is_all else []


# A step of a command line that prints what is in no file that the line names: `cat go.mod && rg tides src`.
_SHOWS_MORE = re.compile(r"(?:\A|&&|\|\||[;\n])\s*(?:rg|[ef]?grep|find|fd|ls|tree|git|gh|curl|python[\d.]*|node) ")


def _tool_label(call: Event) -> str:
    is_command = call.tool is ToolKind.COMMAND
    if is_command and len(read := _files_read(command_of(call.arguments))) > 1:
        # Its beginning would name the first file alone.
        names = [path.rpartition("/")[2] for path in read]
        most = next((n for n in range(1, len(names)) if len(", ".join(names[: n + 1])) > _MOST_CHARS), len(names))
        return ", ".join([*names[:most], *[ELLIPSIS] * (most < len(names))])
    text = (
        shown(command_of(call.arguments)) if is_command else argument(call.arguments, _LOOKUP_KEYS).partition("\n")[0]
    )
    asked = "" if text or not is_lookup(call.name) else asked_for(call)
    if asked and "/" not in asked:  # a path or an address would be cut to its end
        return f"{call.name}({asked})"
    if "://" in text and len(text) > _MOST_CHARS and not is_command:
        # The end of an address tells more than its beginning.
        end = text[-_MOST_CHARS:]
        return f"{call.name} {ELLIPSIS}{end[max(0, end.find('/')) :]}"
    cut = head(text, _MOST_CHARS)
    text = f"{cut} {ELLIPSIS}" if len(cut) < len(text) else text.rstrip(": ")
    return (f"`{text}`" if text else call.name) if is_command else f"{call.name} {text}".strip()


def asked_for(call: Event) -> str:
    """The short arguments of a call; where it has none, the end of an address, or the beginning of the shortest one."""
    given = [value for _, value in parameters(call.arguments) if value and "\n" not in value]
    brief = ", ".join(value for value in given if len(value) <= MAX_VALUE_CHARS)
    address = next((value for value in given if "://" in value), "")
    shortest = min(given, key=len, default="")
    return brief or (f"{ELLIPSIS}{address[-MAX_VALUE_CHARS:]}" if address else opening(shortest, MAX_VALUE_CHARS))


MAX_VALUE_CHARS = 48


def call_words(call: Event, max_chars: int, mark: str = "", *, with_last: bool = False) -> str:
    """A call in a few words: its command between two ``mark``, a search with its pattern, else its name and file.

    The command and the pattern are cut to ``max_chars``; the name and the file are whole, however long, with the part
    of the file that is read. ``with_last``: a chain of commands that is cut ends with its last one, which may send what
    the others made, and a text that it sends stands with its first line.
    """
    command = command_of(call.arguments) if call.tool is ToolKind.COMMAND else ""
    if line := shown(command):
        text = opening(line, max_chars)
        is_cut = text.endswith(ELLIPSIS)
        staged = _STAGES.search(command) if with_last else None
        if staged and staged[0] not in text:  # without it, the commit would hold nothing
            text = f"{opening(staged[0].strip(), max_chars)} && {text}"
        subject = opening(sent_subject(command), max_chars) if is_cut and with_last else ""
        after = f' "{subject}"' if subject and subject not in text else ""
        return f"{mark}{text}{_last_of(command) if with_last and is_cut else ''}{mark}{after}"
    if is_search(call) and (pattern := argument(call.arguments, _LOOKUP_KEYS[:1])):
        return f"{call.name} {opening(pattern, max_chars)}"
    patched = dict.fromkeys(path for _, path in patched_files(patch_of(call)))
    name = "apply_patch" if patched else call.name
    named = f"{name} {argument(call.arguments, PATH_KEYS) or ', '.join(patched)}".strip()
    return f"{named} ({part})" if (part := lines_read(call)) else named


# What a commit after it holds: `git add clock.py && `
_STAGES = re.compile(rf"\b{GIT}add [^&;|\n]+(?=&& )")


def _last_of(command: str) -> str:
    """The last command of a chain on one line with its `` && ``, or an empty string where it is not short."""
    before, joint, last = command.strip().rpartition(" && ")
    return f"{joint}{last}" if before and "\n" not in command.strip() and len(last) <= _MAX_LAST_CHARS else ""


_MAX_LAST_CHARS = 80


def lines_read(call: Event) -> str:
    """The first and the last line of the part of a file that a call reads, `58-102`; empty if it names none."""
    given = call.arguments
    if not isinstance(given, Mapping) or call.tool is not ToolKind.READ:
        return ""
    first, last = (next((given[key] for key in keys if isinstance(given.get(key), int)), 0) for keys in _PART_KEYS)
    if isinstance(limit := given.get("limit"), int):
        last = max(first, 1) + limit - 1
    if isinstance(view := given.get("view_range"), list | tuple) and len(view) == 2:
        first, last = (number if isinstance(number, int) else 0 for number in view)
    named = given.get("line_range")
    shown = f"{max(first, 1)}-{last if last > 0 else ''}" if first > 0 or last > 0 else ""
    return named if isinstance(named, str) else shown


_PART_KEYS = ("offset", "start_line"), ("end_line",)


# A name takes at least about this many tokens with its comma.
_NAME_TOKENS = 3
# A name that is less likely to be used again is left out.
_MIN_CHANCE = 0.03
_NUMBERS = frozenset(KINDS.index(kind) for kind in (AtomKind.NUM, AtomKind.DATE, AtomKind.FLAG))
# A side of a diff, a piece of a pattern that replaces, its flags, a place that a search found, a point of a drawing,
# two files joined, an amount of something, a range of commits, a class of style, what names begin with: `a/clock.py`,
# `s/old`, `new/g`, `/gi`, `clock.py-12`, `815C930`, `README/tides.md`, `0.40/PR`, `/1e3`, `main..origin/main`,
# `bg-stone-100/50`, `tide_`.
_PIECE = re.compile(
    r"\w/|/\w?$|/[gimsu]{2,3}$|\S+/\w$|\S+\.\w+[-:]\d+[-:]?$|\d{2,}[A-Z]\d{2,}$"
    r"|(?:README|[\w-]+\.(?:md|py|[jt]sx?|go|rs|json|ya?ml|toml))/|\d[\d.,e]*(?:-\w+)?/[A-Za-z]|/\d[\de]*$|.*REDACTED"
    r"|[\w./-]*\w\.{2,3}\w|[a-z]+(?:-[a-z]+)+(?:-\d{2,3})?/\d{1,3}$|\w+_$"
)


def name_items(
    analysis: Analysis, shown: Iterable[str], budget_tokens: int, token_cache: TokenCache
) -> tuple[Item, ...]:
    """One item, ``file: name, name · file: name``, or none where no name fits the budget.

    Its names are those most likely to be used again for the tokens that they take. Left out is what stands in the texts
    ``shown``, in the kept records or in plans.
    """
    number = budget_tokens // _NAME_TOKENS
    if number < 1:
        return ()
    calls = [event for event in analysis.events if event.kind is EventKind.CALL]
    plans = (event.text for event in calls if event.tool is ToolKind.PLAN)
    known = atom_texts("\n".join((*shown, *(event.text for event in analysis.kept), *plans)))
    known |= {"/dev/null", *CLIENT_WORDS, *(event.name for event in calls)}
    known.update(name for event in calls for name, _ in parameters(event.arguments))
    known.update(value for event in calls for value in _options(event))
    wanted = _wanted(analysis, known, number)
    chance = analysis.scores.of
    wanted.sort(key=lambda name: -chance(name) / sqrt(token_cache.text(f", {name}")))
    files = _files_of(analysis, wanted)
    # More names take more tokens: a binary search finds the most that fit in a few counts.
    most = bisect_left(
        range(1, len(wanted) + 1),
        True,
        key=lambda most: token_cache.item(Item(text=_text(wanted[:most], files))) > budget_tokens,
    )
    return (Item(text=_text(wanted[:most], files)),) if most else ()


def _wanted(analysis: Analysis, known: set[str], number: int) -> list[str]:
    """At most ``number`` names that are not ``known``, those most likely to be used again, the likeliest first."""
    atoms, rows, kinds = list(analysis.table.atoms), analysis.scores.rows, analysis.table.columns["kinds"]
    likely = {row for row, chance in enumerate(rows) if chance >= _MIN_CHANCE}
    lines = analysis.table.lines
    likely -= _only_in(lines, analysis.progress, likely)
    likely -= _only_in(lines, _not_done(analysis), likely)
    likely -= _only_in(lines, {text for text in lines.numbers if _INDEX_OF_DIFF.match(text)}, likely)
    likely -= _missing(analysis, likely)
    likely -= _only_in(lines, _searched_for(analysis), {row for row in likely if kinds[row] not in FILE_KINDS})
    likely -= _only_in(lines, _long_listings(lines), likely)
    likely -= _of_patterns(lines, {row: atoms[row] for row in likely if _SLASHED.fullmatch(atoms[row])})
    carried = {analysis.table.atoms.get(name, -1) for name, _ in analysis.memory.names}
    likely -= _wordy(analysis, likely) - carried
    # A bare number or flag carries no information without its line.
    found = (
        atoms[row]
        for row in sorted(sorted(likely), key=rows.__getitem__, reverse=True)
        if kinds[row] not in _NUMBERS and atoms[row] not in known and not _PIECE.match(atoms[row])
    )
    named = list(islice((name for name in found if any(map(str.isalpha, name))), 2 * number))
    taken = _taken_out(analysis, named) | _cut_out(lines, {analysis.table.atoms[name]: name for name in named})
    return [name for name in named if name not in taken][:number]


_INDEX_OF_DIFF = re.compile(r"index [0-9a-f]{4,}\.\.[0-9a-f]{4}")


def _not_done(analysis: Analysis) -> frozenset[str]:
    """The lines whose newest event is a call that the user turned down, a search, a question to a page or a client's
    own text."""
    events, refused = analysis.events, {event.call for event in analysis.events if event.is_refusal}
    calls = {at for at, event in enumerate(events) if event.kind is EventKind.CALL}
    left_out = {at for at in calls if at in refused or (events[at].tool is ToolKind.READ and is_search(events[at]))}
    left_out |= {at for at in calls if short_name(events[at].name) in PAGE_TOOLS}
    left_out |= {at for at, event in enumerate(events) if event.of_client}
    return _newest_in(analysis.table.lines, left_out)


def _searched_for(analysis: Analysis) -> frozenset[str]:
    """The lines of commands that search: a pattern may name what is not there."""
    return frozenset(filter(_SEARCHES.search, _of_commands(analysis)))


_SEARCHES = re.compile(r"(?:^|[;&|({`])\s*(?:e?grep|rg|git grep)\s")


def _of_commands(analysis: Analysis) -> frozenset[str]:
    """The lines whose newest event is a call that runs a command."""
    calls = (at for at, one in enumerate(analysis.events) if one.kind is EventKind.CALL)
    return _newest_in(analysis.table.lines, {at for at in calls if analysis.events[at].tool is ToolKind.COMMAND})


def _newest_in(lines: Lines, events: Collection[int]) -> frozenset[str]:
    """The lines whose newest event is one of these, by position."""
    return frozenset(text for text, last in zip(lines.numbers, lines.last, strict=True) if last in events)


def _missing(analysis: Analysis, rows: set[int]) -> set[int]:
    """Those of these rows that a command did not find, as its output shows, and that only commands name otherwise."""
    lines = analysis.table.lines
    failed = {text for text in lines.numbers if ": No such file or directory" in text}
    named = rows.intersection(row for text in failed for row in lines.atoms[lines.numbers[text]])
    if not named:
        return named
    return _only_in(lines, failed | _of_commands(analysis), named)


def _wordy(analysis: Analysis, rows: set[int]) -> set[int]:
    """Those of these rows that are words joined by slashes, not paths.

    A path stands in a command outside of its texts, alone on a line, in quotation marks, or in a longer path.
    """
    table, events = analysis.table, analysis.events
    names, kinds = list(table.atoms), table.columns["kinds"]
    wordy = {row: names[row] for row in rows if kinds[row] in FILE_KINDS and _WORDS.fullmatch(names[row])}
    lines = zip(table.lines.numbers, table.lines.atoms, table.lines.last, strict=True)
    for text, atoms, last in lines if wordy else ():
        for row in wordy.keys() & atoms:
            one = events[last] if last >= 0 else None
            is_call = one is not None and one.kind is EventKind.CALL and one.tool is ToolKind.COMMAND
            if (
                (one and is_call and wordy[row] in unquoted(command_of(one.arguments)))
                or text.strip() == wordy[row]
                or any(f"{before}{wordy[row]}{after}" in text for before, after in _AS_ONE)
            ):
                del wordy[row]
    return set(wordy)


# What stands on both sides of a path: quotation marks, or a slash of a longer path on one of them.
_AS_ONE = (*((mark, mark) for mark in "\"'`"), ("/", ""), ("", "/"))
_WORDS = re.compile(r"[^\W\d]+(?:-[^\W\d]+)*(?:/[^\W\d]+(?:-[^\W\d]+)*)+")


def _options(call: Event) -> Iterator[str]:
    """The settings among a call's arguments: values of one word that are not ids, paths, commands or patterns."""
    for key, value in call.arguments.items() if isinstance(call.arguments, Mapping) else ():
        if isinstance(value, str) and value.isidentifier() and not (key in _NO_OPTIONS or key.lower().endswith("id")):
            yield value


_NO_OPTIONS = frozenset((*PATH_KEYS, *COMMAND_KEYS, *_LOOKUP_KEYS, "glob", "old_string", "new_string", "content"))


def _taken_out(analysis: Analysis, names: Sequence[str]) -> set[str]:
    """Those of these names that edits took out of their files, and that stand in no other file or output."""
    table, labels = analysis.table, analysis.labels
    rows = {row: name for name in names if table.columns["kinds"][row := table.atoms[name]] not in FILE_KINDS}
    is_gone = analysis.is_gone
    taken: dict[int, set[str]] = {}
    standing = set[int]()
    lines = zip(table.lines.numbers, table.lines.atoms, table.lines.last, strict=True)
    for text, atoms, last in lines:
        if rows.keys().isdisjoint(atoms) or last < 0:
            continue
        found = rows.keys() & atoms
        if labels[last].is_file and is_gone(last, text):
            for row in found:
                taken.setdefault(row, set()).add(labels[last].text)
        elif labels[last].is_file or analysis.events[last].kind is EventKind.RESULT:
            standing |= found
    out = {rows[row]: taken[row] for row in taken.keys() - standing}
    texts = {path: one.written for path, one in contents(analysis.operations, {*chain(*out.values())}).items()}
    return {name for name, paths in out.items() if not any(name in texts[path] for path in paths)}


def _only_in(lines: Lines, passing: Collection[str], rows: set[int]) -> set[int]:
    """Those of these rows that stand in the lines ``passing``, and in no others."""
    found = rows.intersection(row for text in passing for row in lines.atoms[lines.numbers[text]])
    for text, atoms in zip(lines.numbers, lines.atoms, strict=True) if found else ():
        if not found.isdisjoint(atoms) and text not in passing:
            found.difference_update(atoms)
    return found


def _of_patterns(lines: Lines, slashed: Mapping[int, str]) -> set[int]:
    """Those of these rows of names such as `/tide` that no line has as a word or in quotation marks.

    They are the ends of regular expressions, closing tags or two words that a slash joins.
    """
    left = dict(slashed)
    for text, rows in zip(lines.numbers, lines.atoms, strict=True) if left else ():
        for row in left.keys() & rows:
            places = _places(left[row], text)
            if any(_OPENS_WORD.search(text, max(0, at - 3), at) and not _CLOSES.match(text, end) for at, end in places):
                del left[row]
    return set(left)


_SLASHED = re.compile(r"/[\w.:-]+")
_OPENS_WORD, _CLOSES = re.compile(r"(?:\A|[\s\"'=:,]|(?<![\w)])`)\"?\Z"), re.compile(r"[\w.]*\)")


def _places(name: str, text: str) -> Iterator[tuple[int, int]]:
    """Where a name stands in a text: start and end of each place."""
    at = text.find(name)
    while at >= 0:
        yield at, at + len(name)
        at = text.find(name, at + 1)


# What a name is a part of where this stands before it: a letter, a bracket, a backslash, `::`, the dot of a hidden
# file; before a path also `$` and `>`, before another name a hyphen.
_BEFORE_PATH = re.compile(r"(?:[\w)\]}*\\$>]|::|(?:\A|[\s/\"'`])\.)\Z")
_BEFORE_NAME = re.compile(r"(?:[\w)\]}*\\-]|::|(?:\A|[\s/\"'`])\.)\Z")
# What stands after it then; after `/tide` also `:show`.
_AFTER, _AFTER_SLASHED = re.compile(r"[*%]"), re.compile(r"[*%]|:\w")


def _cut_out(lines: Lines, named: Mapping[int, str]) -> set[str]:
    """Those of these names, by row, that every line has only as a part of something longer.

    As the end of a path with parentheses, `(tide)/pier.py`, a folder of one with backslashes, a part of a pattern,
    `*_test.go`, or of a share, `from_60%`, or a hidden file without its dot.
    """

    def is_whole(name: str, text: str) -> bool:
        before = _BEFORE_PATH if "/" in name else _BEFORE_NAME
        after = _AFTER_SLASHED if _SLASHED.fullmatch(name) else _AFTER
        places = _places(name, text)
        return any(not (before.search(text, max(0, at - 2), at) or after.match(text, end)) for at, end in places)

    left, cut = dict(named), set[int]()
    for text, rows in zip(lines.numbers, lines.atoms, strict=True) if named else ():
        for row in left.keys() & rows:
            if is_whole(left[row], text):
                cut.discard(row)
                del left[row]
            else:
                cut.add(row)
    return {named[row] for row in cut}


def _long_listings(lines: Lines) -> frozenset[str]:
    """The lines that are a path and nothing else, in events with more than `_MAX_LISTED` of them."""
    wordless = ((text, last) for text, last in zip(lines.numbers, lines.last, strict=True) if " " not in text)
    paths = [(text, last) for text, last in wordless if PATH_ALONE.fullmatch(text)]
    times = Counter(last for _, last in paths)
    return frozenset(text for text, last in paths if times[last] > _MAX_LISTED)


# A line that is a path and nothing else.
PATH_ALONE, _MAX_LISTED = re.compile(r"(?:[A-Za-z]:)?[\w@+-]*[./\\][\w./\\@+()\[\]-]*"), 60


def _files_of(analysis: Analysis, names: Iterable[str]) -> dict[str, str]:
    """The file of each name, as a short name; names without one, and those that are in its path, are left out.

    It is the file of the newest event that shows the name in a line that still stands, of those that declare it if
    there are any; else the one that an earlier summary gave for the name.
    """
    table, labels = analysis.table, analysis.labels
    is_gone = analysis.is_gone
    missing = {table.atoms[name]: name for name in names}
    wanted = set(missing)
    newest, declared = dict[int, int](), dict[int, int]()
    for text, atoms, last in zip(table.lines.numbers, table.lines.atoms, table.lines.last, strict=True):
        if wanted.isdisjoint(atoms) or last < 0:
            continue
        event = analysis.events[last]
        # What a file is searched for need not stand in it; what a here-document writes does.
        is_asked = event.kind is EventKind.CALL and event.tool is ToolKind.COMMAND and "<<" not in event.text
        if labels[last].is_file and not is_asked and not is_gone(last, text):
            declares = None if labels[last].text.endswith(PROSE) else _DECLARES.match(text)
            own = declares[1] or declares[2] if declares else ""
            for row in wanted.intersection(atoms):
                newest[row] = max(newest.get(row, -1), last)
                if missing[row] == own:
                    declared[row] = max(declared.get(row, -1), last)
    paths = {row: labels[number].text for row, number in (newest | declared).items()}
    short = short_names({*paths.values(), *(one.path for one in analysis.operations)})
    carried = dict(analysis.memory.names)
    known = {name: carried[name] for name in missing.values() if carried.get(name)}
    return known | {missing[row]: short[path] for row, path in paths.items() if missing[row] not in path}


# `export async function read(`, `func (g *Gauge) Read(`, `pub(crate) fn read(`, `LEVEL: int = 3`
_DECLARES = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\(\w+\))?|unsafe) )*"
    r"(?:(?:def|class|func|function|fn|type|struct|enum|trait|interface|const|let|var|val|module)"
    r" (?:\([^()]*\) |mut )?(\w+)|(\w+)(?:: [^=]+)? = )"
)


def named_in(text: str) -> dict[str, str]:
    """The names that an index lists, each with its file, or with an empty string where it has none."""
    groups = (group.rpartition(": ") for group in text.split(" · "))
    return {name: path for path, _, names in groups for name in names.split(", ") if name}


def _text(names: Iterable[str], files: Mapping[str, str]) -> str:
    """The index: names by file, files in the order of their first names, then the names without a file.

    A name without a file that heads a group itself is not repeated.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(files.get(name, ""), []).append(name)
    named = [f"{path}: {', '.join(names)}" for path, names in groups.items() if path]
    rest = [name for name in groups.get("", ()) if name not in groups]
    return " · ".join([*named, ", ".join(rest)] if rest else named)
