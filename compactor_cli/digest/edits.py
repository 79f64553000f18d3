"""Edits: what a call puts into a file, and the last known text of files by replay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from compactor_cli.digest.tools import argument, command_of
from compactor_cli.digest.transcript_events import Event, ToolKind, results_of

if TYPE_CHECKING:
    from compactor_cli.digest.files import FileOperation

_WRITTEN = ("content", "file_text", "contents", "text", "CodeContent")
_OLD = ("old_string", "old_str", "oldText", "old_text", "old", "search", "TargetContent")
_NEW = ("new_string", "new_str", "newText", "new_text", "new", "replace", "ReplacementContent")
_RANGES = ("offset", "limit", "view_range", "start_line", "end_line", "line_range", "n_lines", "line_offset")
_MAX_PARTS = 6
_MAX_NAMED_CHARS = 40_000


@dataclass(slots=True, kw_only=True)
class Content:
    """What is known of a file. ``text`` is None where it was never seen whole; ``parts`` are the newest changes."""

    text: str | None = None
    parts: list[str] = field(default_factory=list)
    records: list[int] = field(default_factory=list)


def editor_step(event: Event) -> str:
    """What a command does in SWE-agent's editor (``open``, ``create``, ``edit 3:7``), or an empty string."""
    found = _editor().match(command_of(event.arguments).lstrip())
    return (found[1] or found[2]) if found else ""


@cache
def _editor() -> re.Pattern[str]:
    return re.compile(r"(edit) \d+:\d+\s*\n|(open|create) \"?[\w./~@+-]+\"?(?: \d+)?\s*\Z")


def viewed_file(text: str) -> str:
    """The file that a result of SWE-agent's editor shows a part of, or an empty string."""
    found = re.search(r"^\[File: (.+) \(\d+ lines total\)\]$", text, re.MULTILINE) if " lines total)]" in text else None
    return found[1] if found else ""


def patch_of(event: Event) -> str:
    """The patch in Codex's format that a call applies, or an empty string."""
    named = argument(event.arguments, ("input", "patch", "patchText", "patch_text"))
    text = named or command_of(event.arguments)
    return text[text.index("*** Begin Patch") :] if "*** Begin Patch" in text else ""


def changes_of(call: Event, path: str) -> Iterator[tuple[str, str]]:
    """What a call replaces in a file by what; the whole text stands against nothing where the file is written."""
    if (written := written_text(call, path)) is not None:
        yield "", written
        return
    if patch := patch_of(call):
        yield from _hunks(_patch_section(patch, path))
        return
    edits: Sequence[Mapping[str, Any] | str] = _edits(call.arguments) or (call.arguments,)
    for edit in edits:
        old, new = argument(edit, _OLD), argument(edit, _NEW)
        if old or new:
            yield old, new


def written_text(call: Event, path: str) -> str | None:
    """The whole text that a call gives a file, if it does."""
    if patch := patch_of(call):
        section = _patch_section(patch, path)
        if section.startswith("*** Add File"):
            return "\n".join(line[1:] for line in section.split("\n")[1:] if line.startswith("+"))
        return None
    if call.tool is ToolKind.COMMAND:
        return _here_document(command_of(call.arguments), path)
    if argument(call.arguments, _OLD) or _edits(call.arguments):
        return None
    return argument(call.arguments, _WRITTEN) or None


def _here_document(command: str, path: str) -> str | None:
    """The text that ``cat > path << 'EOF'`` writes, where the command does this and nothing else."""
    found = re.match(r"\s*cat\s*>\s*(\S+)\s*<<-?\s*(['\"]?)(\w+)\2[^\n]*\n(.*?)\n?^\3\s*$", command, re.DOTALL | re.M)
    return found[4] if found and found[1].strip("'\"") == path else None


def _edits(arguments: Mapping[str, Any] | str) -> list[Mapping[str, Any]]:
    if isinstance(arguments, str):
        return []
    for key in ("edits", "replacements", "ReplacementChunks"):
        value = arguments.get(key)
        if isinstance(value, (list, tuple)):
            return [edit for edit in value if isinstance(edit, Mapping)]
        if isinstance(value, Mapping):
            return [value]
    return []


def _patch_section(patch: str, path: str) -> str:
    for section in re.split(r"^(?=\*\*\* (?:Add|Update|Delete) File: )", patch, flags=re.MULTILINE):
        if section.partition("\n")[0].partition(": ")[2].strip() == path:
            return section
    return ""


def _hunks(section: str) -> Iterator[tuple[str, str]]:
    for hunk in re.split(r"^@@.*$", section, flags=re.MULTILINE)[1:]:
        lines = [line for line in hunk.split("\n") if not line.startswith("***")]
        old = "\n".join(line[1:] for line in lines if line.startswith((" ", "-")))
        new = "\n".join(line[1:] for line in lines if line.startswith((" ", "+")))
        if old or new:
            yield old, new


@cache
def _definition() -> re.Pattern[str]:
    # What defines a name in the languages of the corpus; a setting in capitals; in Markdown a heading.
    modifiers = r"(?:export |default |public |private |protected |static |async |pub |abstract |final )*"
    return re.compile(
        rf"^[ \t]*{modifiers}(?P<kind>def|class|func(?:tion)?(?:\s*\([^)\n]*\))?|fn|interface|type"
        r"|struct|enum|trait|impl|module|const|CREATE TABLE)\s+\*?(?P<name>[A-Za-z_$][\w$]*)(?P<call>\()?"
        r"|^(?P<set>[A-Z][A-Z0-9_]{2,})\s*[:=]|^#{1,3} (?P<head>[^\n]{3,50})$",
        re.MULTILINE,
    )


def added_names(changes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The names that changes define and that what they replace did not, as ``name`` or ``name()``."""
    for old, new in changes:
        before = set(_defined(old[:_MAX_NAMED_CHARS]))
        yield from (name for name in dict.fromkeys(_defined(new[:_MAX_NAMED_CHARS])) if name not in before)


def _defined(text: str) -> Iterator[str]:
    for found in _definition().finditer(text):
        if name := found["name"]:
            is_call = bool(found["call"]) and found["kind"] not in ("class", "type", "struct", "interface")
            yield f"{name}()" if is_call else name
        elif name := found["set"] or found["head"]:
            yield name


def contents(events: Sequence[Event], operations: Iterable[FileOperation], paths: Iterable[str]) -> dict[str, Content]:
    """The last known text of these files, after every operation on them."""
    found = {path: Content() for path in paths}
    answers = results_of(events)
    for operation in operations:
        if operation.action == "move" and operation.target in found:
            found[operation.target] = found.get(operation.path, Content())
        content = found.get(operation.path)
        if content is not None:
            _replay(content, operation, events[operation.event], answers.get(operation.event))
    return found


def _replay(content: Content, operation: FileOperation, call: Event, answer: Event | None) -> None:
    content.records.append(operation.record)
    if operation.action == "delete":
        content.text, content.parts = None, []
    elif operation.action == "read":
        if answer is not None and call.tool is ToolKind.READ and _is_whole(call):
            content.text, content.records = answer.text, [answer.record]
    elif (written := written_text(call, operation.path)) is not None:
        content.text, content.parts, content.records = written, [], [operation.record]
    else:
        for old, new in changes_of(call, operation.path):
            _change(content, old, new)


def _is_whole(call: Event) -> bool:
    return isinstance(call.arguments, Mapping) and not any(call.arguments.get(key) for key in _RANGES)


def _change(content: Content, old: str, new: str) -> None:
    if content.text is not None:
        # What the edit looked for is not there: the file is not as it was seen, only its changes are known.
        content.text = content.text.replace(old, new, 1) if old and old in content.text else None
    content.parts = [*(part for part in content.parts if part != new), new][-_MAX_PARTS:]
