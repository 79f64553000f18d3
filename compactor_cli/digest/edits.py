"""Edits: the old and new text of each change that a call makes to a file, and the names and lines that it brings."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from compactor_cli.digest.error_lines import names_of_tests
from compactor_cli.digest.events import Event
from compactor_cli.digest.noise import MODIFIER, is_import, is_noise, is_scrap
from compactor_cli.digest.shell import script_in
from compactor_cli.digest.tools import PATH_KEYS, FileAction, ToolKind, argument, command_of, objects
from compactor_cli.model.patterns import pattern

if TYPE_CHECKING:
    from compactor_cli.digest.files import FileOperation

_WRITTEN = ("content", "file_text", "contents", "text", "CodeContent")
_OLD = tuple("old_string oldString old_str oldStr oldText old_text old search TargetContent".split())
_NEW = tuple(
    "new_string newString new_str newStr insert_text newText new_text new replace code_edit code"
    " ReplacementContent".split()
)
_DIFFS = ("diff", "patch")
# A block of a diff, with what is searched for and what replaces it: `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE`.
_BLOCK = pattern(
    r"^(?:<{5,}|-{5,}) SEARCH>?\n(?::start_line:.*\n)?(?:-{5,}\n)?"
    r"((?:.*\n)*?)={5,}\n((?:.*\n)*?)(?:>{5,}|\+{5,}) REPLACE",
    re.MULTILINE,
)
_EDITS = ("edits", "replacements", "ReplacementChunks")
_MAX_LINE_CHARS = 110
_MAX_LINES, MAX_SHOWN_LINES = 3, 4
_MAX_NAMED_CHARS = 40_000
WRITING = (FileAction.EDIT, FileAction.CREATE)
# Files with these endings are prose: no check looks at them, and lines that begin with `#` are headings, not comments.
PROSE = (".md", ".mdx", ".markdown", ".txt", ".rst", ".adoc")


def changes_of(call: Event, path: str, window: str = "") -> Iterator[tuple[str, str]]:
    """The pairs of old and new text by which a call changes a file; a file that is written whole has no old text.

    ``window``: what SWE-agent's editor showed of the file before; an edit names the lines in it by their numbers.
    """
    if (written := written_text(call, path)) is not None:
        yield "", written
        return
    if patch := patch_of(call):
        yield from _hunks(_patch_section(patch, path))
        return
    if call.tool is ToolKind.COMMAND:
        command = command_of(call.arguments)
        if editor_step(call) == "edit":
            yield _replaced_lines(command, window)
        yield from python_changes(script_in(command))
        return
    if diff := argument(call.arguments, _DIFFS):
        yield from _BLOCK.findall(diff) or _hunks(diff)
        return
    edits: Sequence[Mapping[str, Any] | str] = objects(call.arguments, _EDITS) or (call.arguments,)
    for edit in edits:
        old, new = argument(edit, _OLD), argument(edit, _NEW)
        if (old or new) and argument(edit, PATH_KEYS) in ("", path, argument(call.arguments, PATH_KEYS)):
            yield old, new


def edited_paths(call: Event) -> tuple[str, ...]:
    """The files that a call of an editing tool names: that of the call, or those of each of its edits."""
    own = argument(call.arguments, PATH_KEYS)
    named = (argument(edit, PATH_KEYS) for edit in objects(call.arguments, _EDITS))
    return (own,) if own else tuple(dict.fromkeys(filter(None, named)))


def _replaced_lines(command: str, window: str) -> tuple[str, str]:
    """The old and new text of ``edit 3:7``: lines 3 to 7, found in a window that says how many lines are above it."""
    head, _, new = command.lstrip().partition("\n")
    first, last = (int(number) for number in re.findall(r"\d+", head)[:2])
    above = re.search(r"^\((\d+) more lines above\)\n", window, re.MULTILINE)
    shown = window[above.end() :] if above else window.partition(" lines total)]\n")[2]
    start = int(above[1]) if above else 0
    old = shown.split("\n")[max(0, first - 1 - start) : max(0, last - start)]
    return "\n".join(old), new.removesuffix("\nend_of_edit")


@lru_cache(maxsize=1 << 8)
def python_changes(script: str) -> tuple[tuple[str, str], ...]:
    """The pairs of old and new text that a Python script replaces, as in ``text.replace("a", "b")``.

    Both must stand in the script, as literals or as names that are assigned literals. Nothing where it does not parse.
    """
    if ".replace(" not in script or len(script) > _MAX_NAMED_CHARS:
        return ()
    try:
        nodes = [*ast.walk(ast.parse(script))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    given: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and (text := _constant(node.value, {})) is not None:
            given |= {one.id: text for one in node.targets if isinstance(one, ast.Name)}
    calls = (node for node in nodes if isinstance(node, ast.Call) and len(node.args) > 1)
    replacing = (node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == "replace")
    pairs = ((_constant(node.args[0], given), _constant(node.args[1], given)) for node in replacing)
    return tuple((old, new) for old, new in pairs if old and new is not None)


def _constant(node: ast.expr, given: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return given.get(node.id)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def overwrites(line: str, old: str, new: str) -> bool:
    """Whether a line no longer stands after an edit as it did before.

    The edit may replace the line, or a part of it. Of a file that is written anew (no old text) the new text counts.
    """
    if not old or line in old:
        return line not in new
    part = old.strip()
    return len(part) >= _MIN_REPLACED_CHARS and part in line and new.strip() not in line


# A shorter old text, like a bracket, is part of many lines that an edit of it does not mean.
_MIN_REPLACED_CHARS = 4


def written_lines(changes: Iterable[tuple[str, str]], source: str) -> tuple[str, ...]:
    """The most telling of the new lines that read alone, in their order, as they stand in ``source``.

    `_MAX_LINES` at most; an entry of a list is without its mark.
    """
    changes = (pair for pair in changes if not is_renamed(*pair))
    new = (line.strip() for old, text in changes for line in text.split("\n") if line.strip() not in old)
    # A list mark would read as a sign of a diff.
    new = (_LIST_MARK.sub("", line) if line.startswith(("-", "+", "*")) else line for line in new)
    known = [line for line in dict.fromkeys(new) if 0 < len(line) <= _MAX_LINE_CHARS and line in source]
    known = [line for line in known if not is_noise(line)]
    telling = [line for line in known if not is_scrap(_BEFORE_CODE.sub("", line).rstrip(","))]
    most = sorted(telling, key=line_worth)[-_MAX_LINES:]
    return tuple(line for line in telling if line in most)


def shown_lines(older: Sequence[str], newest: Sequence[str]) -> tuple[str, ...]:
    """The newest lines after the most telling of the older ones, `MAX_SHOWN_LINES` at most."""
    lines = dict.fromkeys((*older, *newest))
    left_out = sorted(lines.keys() - {*newest}, key=lambda line: (*line_worth(line), line))
    left_out = left_out[: max(0, len(lines) - MAX_SHOWN_LINES)]
    return tuple(line for line in lines if line not in left_out)


def line_worth(line: str) -> tuple[bool, int]:
    """A sort key, highest for the most telling line: code above prose and comments, then long above short lines."""
    return not line.startswith("//") and any(mark in line for mark in "=(){};"), len(line)


_LIST_MARK = pattern(r"^[-+*] +")
# What may stand before code that reads alone: `return level`, `// the level`, `.filter(gauge => gauge.is_open)`
_BEFORE_CODE = pattern(r"^(?:return |// |\.(?=\w+\(.*\)))")


def written_text(call: Event, path: str) -> str | None:
    """The whole text that a call gives a file; None where it gives it none, or changes only a part."""
    if patch := patch_of(call):
        section = _patch_section(patch, path)
        if section.startswith("*** Add File"):
            return "\n".join(line[1:] for line in section.split("\n")[1:] if line.startswith("+"))
        return None
    if call.tool is ToolKind.COMMAND:
        written = _CAT.finditer(command_of(call.arguments))
        # The command may have entered a folder first, and so name the file by a shorter path.
        return next((found[4] for found in written if f"/{path}".endswith(f"/{found[1].strip(_AROUND_PATH)}")), None)
    if argument(call.arguments, _OLD) or objects(call.arguments, _EDITS):
        return None
    return argument(call.arguments, _WRITTEN) or None


_AROUND_PATH = "'\"./"
# ``cat > path << 'EOF'``, and what it writes.
_CAT = pattern(r"\bcat\s*>\s*(\S+)\s*<<-?\s*(['\"]?)(\w+)\2[^\n]*\n(.*?)\n?^\3\s*$", re.DOTALL | re.MULTILINE)


def _patch_section(patch: str, path: str) -> str:
    for section in re.split(r"^(?=\*\*\* (?:Add|Update|Delete) File: )", patch, flags=re.MULTILINE):
        if section.partition("\n")[0].partition(": ")[2].strip() == path:
            return section
    return ""


def _hunks(section: str) -> Iterator[tuple[str, str]]:
    without_names = re.sub(r"^--- .*\n\+\+\+ .*\n", "", section, flags=re.MULTILINE)
    parts = re.split(r"^@@.*$", without_names, flags=re.MULTILINE)
    for hunk in parts[1:] or parts:
        lines = [line for line in hunk.split("\n") if not line.startswith("***")]
        old = "\n".join(line[1:] for line in lines if line.startswith((" ", "-")))
        new = "\n".join(line[1:] for line in lines if line.startswith((" ", "+")))
        if old or new:
            yield old, new


@cache
def _definition() -> re.Pattern[str]:
    # A definition in code, `def low_tide(`; a setting in capitals, `MAX_TIDE = 9`; in Markdown a heading; a test by its
    # sentence, `it("opens the harbour",`.
    return re.compile(
        rf"^[ \t]*{MODIFIER}*(?P<kind>def|class|func(?:tion)?(?:\s*\([^)\n]*\))?|fn|interface|type"
        r"|struct|enum|trait|impl|module|const|CREATE TABLE(?: IF NOT EXISTS)?)\s+[\"`*]?"
        r"(?P<name>[A-Za-z_$][\w$]*)(?![.\w$-]*/)(?P<call>\()?"  # `module example.com/tides` is the name of a package
        r"|^(?P<set>[A-Z][A-Z0-9_]{2,})\s*[:=]|^#{1,6} (?P<head>[^\n]{3,50})$"
        r"|^[ \t]*(?:it|test)\((?P<quote>[\"'`])(?P<test>[^\n]{3,90}?)(?P=quote),",
        re.MULTILINE,
    )


def added_names(changes: Iterable[tuple[str, str]], path: str = "", *, with_locals: bool = False) -> Iterator[str]:
    """The names that changes define and that the texts they replace did not, as ``name`` or ``name()``.

    Headings of prose are among them, and a rename as ``old → new``. Values within a function are included only where a
    change defines nothing else, or ``with_locals``. In code, a line that begins like a heading is a comment.
    """
    names_headings = not path or path.endswith(PROSE)
    for old, new in changes:
        if is_renamed(old, new):
            yield f"{old} → {new}"
        before, after = (
            dict(_defined(text[:_MAX_NAMED_CHARS], names_headings, names_code=not path.endswith(PROSE)))
            for text in (old, new)
        )
        added = {name: is_local for name, is_local in after.items() if name not in before}
        only_local = with_locals or all(added.values())
        shown = (name for name, is_local in added.items() if (only_local or not is_local) and "REDACTED" not in name)
        yield from (name for name in shown if not (added[name] and re.search(rf"\b{re.escape(name)}\b", old)))


def is_renamed(old: str, new: str) -> bool:
    """Whether a change replaces one name by another and does nothing else."""
    return _NAME.fullmatch(old) is not None and _NAME.fullmatch(new) is not None


_NAME = re.compile(r"[A-Za-z_$]\w{2,}")


def _defined(text: str, names_headings: bool, *, names_code: bool = True) -> Iterator[tuple[str, bool]]:
    """The names that a text defines, each with whether it is an indented ``const``: a value within something."""
    for found in _definition().finditer(_FENCED.sub("", text) if names_headings else text):
        if (name := found["name"]) and name not in _KEYWORDS and names_code:
            is_call = bool(found["call"]) and found["kind"] not in ("class", "type", "struct", "interface")
            yield (f"{name}()" if is_call else name), found["kind"] == "const" and found[0][0].isspace()
        elif name := found["set"] or (names_headings and found["head"]):
            yield name, False
        elif found["test"]:
            yield f'"{found["test"]}"', False


# A block of code in prose: a line in it that begins with `#` is a comment and not a heading.
_FENCED = re.compile(r"^[ \t]*```.*?^[ \t]*```", re.MULTILINE | re.DOTALL)
# Words that are no names, though they follow `const`, `static` or `export default`: of Dart, TypeScript and JavaScript.
_KEYWORDS = frozenset("factory class enum interface function async type constructor final static".split())


def definitions_around(old: str, new: str, text: str) -> Iterator[str]:
    """The definitions in a text that enclose the lines that change where ``old``, a part of it, becomes ``new``.

    In order, written as by `added_names`; once for each run of changed lines.
    """
    start = max(0, text.find(old))
    *above, begun = text[max(0, start - _MAX_NAMED_CHARS) : start].split("\n")
    before, after = (f"{begun}{part}".split("\n") for part in (old, new))
    for first, stop, new_first, new_stop in _changes(before, after):
        changed = (next(filter(str.strip, lines), "") for lines in (before[first:stop], after[new_first:new_stop]))
        indent = max(len(line) - len(line.lstrip()) for line in changed)
        if found := _enclosing(above + before[:first], indent):
            yield found


def _changes(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """The ranges of lines that were changed: start and end in ``before``, then in ``after``.

    Of more than `_MAX_COMPARED_LINES` lines, one range from the first change to the end: a full comparison is slow.
    """
    if max(len(before), len(after)) > _MAX_COMPARED_LINES:
        pairs = enumerate(zip(before, after, strict=False))
        same = next((at for at, (one, other) in pairs if one != other), min(len(before), len(after)))
        yield same, len(before), same, len(after)
        return
    for kind, *ends in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            first, stop, new_first, new_stop = ends
            yield first, stop, new_first, new_stop


_MAX_COMPARED_LINES = 120


_IS_FUNCTION = pattern(r"=>|\bfunction\b")
# An assignment that is complete on its line: `export GAUGE=north`, but not `TIDES = [`.
_ASSIGNS = pattern(r"\s*(?:(?:export|local|readonly|declare(?: -\w)?) )?\w+=.*[^({\[:\s]\s*")


def _enclosing(above: Sequence[str], indent: int) -> str:
    """The nearest definition above a line with this indent that is indented less; an empty string without one."""
    for line in reversed(above):
        depth = len(line) - len(line.lstrip())
        if not line.strip() or depth >= indent:
            continue
        # An assignment that is complete on its line encloses nothing.
        found = None if _ASSIGNS.fullmatch(line) else next(_defined(line, names_headings=False), None)
        # A value within something does not enclose the line either, unless it is a function.
        if found and (not found[1] or _IS_FUNCTION.search(line)):
            return found[0]
        if line.strip()[0] in "})]":
            break
        # A line that does not open a block is text, whose indent does not count.
        indent = depth if line.rstrip().endswith(("{", "(", "[", ":")) else indent
    return ""


def editor_step(event: Event) -> str:
    """The step that a command takes in SWE-agent's editor, ``open``, ``create`` or ``edit``; else an empty string."""
    found = _EDITOR.match(command_of(event.arguments).lstrip())
    return (found[1] or found[2]) if found else ""


# `edit 3:7` with the new lines below it, `open "gauge.py" 40`, `create gauge.py`
_EDITOR = pattern(r"(edit) \d+:\d+\s*\n|(open|create) \"?[\w./~@+-]+\"?(?: \d+)?\s*\Z")


def viewed_file(text: str) -> str:
    """The file of which a result of SWE-agent's editor shows a part, or an empty string."""
    found = re.search(r"^\[File: (.+) \(\d+ lines total\)\]$", text, re.MULTILINE) if " lines total)]" in text else None
    return found[1] if found else ""


def patch_of(event: Event) -> str:
    """The patch that a call applies, from ``*** Begin Patch`` on, or an empty string."""
    named = argument(event.arguments, ("input", "patch", "patchText", "patch_text"))
    text = named or command_of(event.arguments)
    return text[text.index("*** Begin Patch") :] if "*** Begin Patch" in text else ""


_NAMED = r"[`*\"]*(?P<path>[\w./~@+-]*\w\.[A-Za-z]\w{0,5})\b(?![/(])"
_DONE = r"(?P<done>created|wrote|written|edited|modified|updated|changed)\b"
# "Created `a.py`", "I've updated a.py", "The review has been written to `a.md`".
_REPORTED = pattern(
    rf"(?:^[ \t]*(?:[-*+]|\d+\.)?[ \t]*\**|\bI(?:'ve| have)? |\b(?:has|have) been ){_DONE}"
    # "Created in `a.ts`, lines 3-8" names the place of what was made, not a new file.
    rf"(?![ \t:*]+(?:in|at|by|from|via|when|with|on)\b)(?:[ \t:*]+[a-z]+){{0,4}}?"
    rf"[ \t:*]+{_NAMED}(?!\S*,? \(?lines? \d)",
    re.MULTILINE | re.IGNORECASE,
)
# A list of files under a heading such as "Files created:", up to the next heading; the heading's line may name a file.
_REPORTED_LIST = pattern(
    rf"^[#* \t]*(?:new )?files? {_DONE}[:* \t]*(?P<list>.*(?:\n(?!#|\*\*[\w ]+:?\*\*:?\s*$).*)*)",
    re.MULTILINE | re.IGNORECASE,
)
_ENTRY = pattern(rf"^[ \t]*(?:[-*+]|\d+\.)?[ \t]*{_NAMED}", re.MULTILINE)


# A member of something in code, `clock.Wind`, and not a file: no ending has a capital and then a small letter.
_IS_MEMBER = re.compile(r"\w+\.[A-Z]\w*[a-z]\w*")


def reported_files(report: str, *, with_lists: bool) -> dict[str, bool]:
    """The files that a report says were written, each with whether it is new; those in lists only ``with_lists``.

    What stands between fences is quoted from elsewhere.
    """
    report = _FENCED.sub("", report)
    named = (found for found in _REPORTED.finditer(report) if not _IS_MEMBER.fullmatch(found["path"]))
    files = {found["path"]: _is_anew(found["done"]) for found in named}
    for found in _REPORTED_LIST.finditer(report) if with_lists else ():
        for entry in _ENTRY.finditer(found["list"]):
            files[entry["path"]] = _is_anew(found["done"])
    return files


def _is_anew(done: str) -> bool:
    return done.lower() in ("created", "wrote", "written")


def changed_lines(replaced: Iterable[tuple[str, str]]) -> Iterator[tuple[bool, str]]:
    """The lines that replacements take out (False) and write (True), from `_MIN_CHANGED_CHARS` characters on.

    For a replacement without such lines, its whole old text and its whole new text.
    """
    for old, new in replaced:
        before, after = (Counter(line.strip() for line in text.split("\n")) for text in (old, new))
        changed = ((False, before - after), (True, after - before))
        lines = [
            (is_new, line) for is_new, own in changed for line in own.elements() if len(line) >= _MIN_CHANGED_CHARS
        ]
        yield from lines or ((False, old), (True, new))


# A shorter line may stand in many places, so it does not show that a change was taken back.
_MIN_CHANGED_CHARS = 10


class FixingLine(NamedTuple):
    """A line that fixes a fault; the first two fields are empty where none is known."""

    line: str = ""
    file: str = ""  # the name of its file, without folders
    record: int = -1  # of the edit that wrote it


def fixing_line(fault: str, edits: Sequence[FileOperation], end: int) -> FixingLine:
    """The line that fixes a fault, of those that ``edits`` up to record ``end`` wrote, or an empty one.

    A line that defines what the fault misses comes first, then one with names that the fault quotes, then one that
    shares words with it, then the longest; an import comes last, unless a name is missing. Among more than `_FEW_LINES`
    lines, the longest alone is only a guess and is not given. Where the failed test itself was edited, only lines of it
    count. A line that a later edit took out again is not given, nor a comment, nor one that prints a text.
    """
    words, quoted = _words(fault), set(_QUOTED_NAME.findall(fault))
    tests = {name.rpartition(" > ")[2] for name in names_of_tests(fault)}
    changes = [(at, *pair) for at, one in enumerate(edits) if one.record <= end for pair in one.replaced]
    of_tests = [change for change in changes if any(test in change[1] for test in tests)]
    # A change that only adds something to a test file does not fix the test that failed.
    of_tests = of_tests or [change for change in changes if not (tests and change[1] and change[1] in change[2])]
    written = [
        (" ".join(raw.split()), at)
        for at, old, new in of_tests or changes
        for raw in new.split("\n")
        if raw.strip() not in old
    ]
    missing = set(_UNDEFINED.findall(fault))

    def defines(line: str) -> bool:
        return any(f"{name}(" in line or f"{name} " in line for name in missing)

    def tells(line: str) -> bool:
        is_whole = not line.endswith(("(", "[", "{", ","))
        is_whole = is_whole and not _IS_COMMENT.match(line)
        is_whole = is_whole and not (_PRINTS.match(line) and not any(name in line for name in quoted))
        return defines(line) or (is_whole and not (is_import(line) and words.isdisjoint(_words(line))))

    lines = {line: at for line, at in written if len(line) in _FIX_CHARS and tells(line)}

    def shared(line: str) -> tuple[int, int]:
        return sum(name in line for name in quoted), len(words & _words(line))

    is_about_names = _MISSES_NAME.search(fault) is not None

    def worth(line: str) -> tuple[int, ...]:
        return defines(line), is_about_names or not is_import(line), *shared(line), len(line)

    best = max(lines, key=worth, default="")
    names, others = shared(best)
    is_guess = len(lines) > _FEW_LINES and not (defines(best) or names or (others > 1 and not quoted))
    if is_guess or not best:
        return FixingLine()
    edit, later = edits[lines[best]], edits[lines[best] + 1 :]
    for one in later:
        is_rewrite = one.path == edit.path and one.action is FileAction.CREATE
        for old, new in one.replaced:
            if (is_rewrite or best in " ".join(old.split())) and best not in " ".join(new.split()):
                return FixingLine()
    return FixingLine(best, edit.name, edit.record)


# How a compiler reports a name that it does not find: `undefined: lowTide`, `cannot find name 'Harbour'`.
_UNDEFINED = pattern(r"\b(?:undefined: |cannot find (?:name|symbol) '?|undeclared name: |name ')(\w+)")
_MISSES_NAME = pattern(
    r"\b(?:undefined|undeclared|unresolved|not (?:defined|found|declared)|cannot find"
    r"|(?:no|unknown) (?:attribute|member)|import\w*|exports?|exported|modules?|namespace)\b",
    re.IGNORECASE,
)
_QUOTED_NAME = re.compile(r"['`\"](\w{3,})['`\"]")
_FEW_LINES, _FIX_CHARS = 3, range(8, 160)
# `echo "Gauges written"`
_PRINTS = pattern(r"(?:echo|printf?|println!?|puts|(?:console|log|logger|logging|fmt)\.\w+|Write-(?:Host|Output))\b")
# `// The gauges are written last`, but no directive: `//nolint:gosec`, `# type: ignore`
_IS_COMMENT = pattern(
    r"(?:#|//|/\*|\*|<!--|--) (?!@|noqa|type:|pylint|pragma|mypy|ruff|nosec|shellcheck|eslint|prettier|biome|istanbul)"
)


def _words(text: str) -> set[str]:
    """The words of a text, also those within names, without paths."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"[\w.-]+/[\w./:-]+", " ", text))
    return set(re.findall(r"[a-z]{4,}", apart.lower()))
