"""Contents: the last known text of files, by replaying what was written, edited and read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from compactor_cli.digest.events import Event, ToolKind, results_of
from compactor_cli.digest.files import FileState
from compactor_cli.digest.language import Words
from compactor_cli.digest.quote import ELLIPSIS, Meter, records_of
from compactor_cli.digest.tools import argument, command_of
from compactor_cli.digest.touches import Act, Touch, patch_of
from compactor_cli.digest.user_words import water_level
from compactor_cli.model.summary import Item

_WRITTEN = ("content", "file_text", "contents", "text", "CodeContent")
_OLD = ("old_string", "old_str", "oldText", "old_text", "old", "search", "TargetContent")
_NEW = ("new_string", "new_str", "newText", "new_text", "new", "replace", "ReplacementContent")
_RANGES = ("offset", "limit", "view_range", "start_line", "end_line", "line_range", "n_lines", "line_offset")
_MOST_PARTS = 6
_LEAST_TOKENS = 30


@dataclass(slots=True, kw_only=True)
class Content:
    """What is known of a file. ``text`` is None where it was never seen whole; ``parts`` are the newest changes."""

    text: str | None = None
    parts: list[str] = field(default_factory=list)
    records: list[int] = field(default_factory=list)


def contents(events: Sequence[Event], touches: Iterable[Touch], paths: Iterable[str]) -> dict[str, Content]:
    """The last known text of these files, after every act on them."""
    found = {path: Content() for path in paths}
    answers = results_of(events)
    for touch in touches:
        if touch.act is Act.MOVE and touch.target in found:
            found[touch.target] = found.get(touch.path, Content())
        content = found.get(touch.path)
        if content is not None:
            _replay(content, touch, events[touch.event], answers.get(touch.event))
    return found


def _replay(content: Content, touch: Touch, call: Event, answer: Event | None) -> None:
    content.records.append(touch.record)
    if touch.act is Act.DELETE:
        content.text, content.parts = None, []
    elif touch.act is Act.READ:
        if answer is not None and call.tool is ToolKind.READ and _is_whole(call):
            content.text, content.records = answer.text, [answer.record]
    elif (written := _written(call, touch.path)) is not None:
        content.text, content.parts, content.records = written, [], [touch.record]
    else:
        for old, new in _changes(call, touch.path):
            _change(content, old, new)


def _is_whole(call: Event) -> bool:
    return isinstance(call.arguments, Mapping) and not any(call.arguments.get(key) for key in _RANGES)


def _change(content: Content, old: str, new: str) -> None:
    if content.text is not None:
        # What the edit looked for is not there: the file is not as it was seen, only its changes are known.
        content.text = content.text.replace(old, new, 1) if old and old in content.text else None
    content.parts = [*(part for part in content.parts if part != new), new][-_MOST_PARTS:]


def _written(call: Event, path: str) -> str | None:
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
    text = argument(call.arguments, _WRITTEN)
    return text or None


def _here_document(command: str, path: str) -> str | None:
    found = re.search(r">\s*(\S+)\s*<<-?\s*['\"]?(\w+)['\"]?\n(.*?)\n\2\b", command, re.DOTALL)
    found = found or re.search(r"<<-?\s*['\"]?(\w+)['\"]?\s*>\s*(\S+)\n(.*?)\n\1\b", command, re.DOTALL)
    return found[3] if found and path in (found[1].strip("'\""), found[2].strip("'\"")) else None


def _changes(call: Event, path: str) -> Iterator[tuple[str, str]]:
    """What was replaced by what."""
    if patch := patch_of(call):
        yield from _hunks(_patch_section(patch, path))
        return
    edits: Sequence[Mapping[str, Any] | str] = _edits(call.arguments) or (call.arguments,)
    for edit in edits:
        old, new = argument(edit, _OLD), argument(edit, _NEW)
        if old or new:
            yield old, new


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


def content_items(
    states: Sequence[FileState], found: Mapping[str, Content], budget_tokens: int, meter: Meter, words: Words
) -> tuple[Item, ...]:
    """The contents, whole where they are short, else their changed parts and signatures; the budget shared by size."""
    known = [(state.path, content) for state in states if (content := found.get(state.path)) and _shown(content)]
    costs = [meter.item(_item(path, content, _shown(content), words.content, words)) for path, content in known]
    level = water_level(costs, budget_tokens)
    items: list[Item] = []
    for (path, content), cost in zip(known, costs, strict=True):
        if content.text is not None and cost <= level:
            items.append(_item(path, content, content.text, words.content, words))
        elif level >= _LEAST_TOKENS and (parts := _parts(path, content, level, meter, words)):
            items.append(parts)
    return tuple(items)


def _shown(content: Content) -> str:
    return content.text if content.text is not None else "\n".join(content.parts)


def _parts(path: str, content: Content, tokens: int, meter: Meter, words: Words) -> Item | None:
    """As many lines of the newest changes, then signatures, as fit."""
    lines = [*(line for part in reversed(content.parts) for line in part.split("\n")), *_signatures(content.text or "")]
    lines = list(dict.fromkeys(line.rstrip() for line in lines if line.strip()))
    left = tokens - meter.item(_item(path, content, "", words.parts, words)) - 2
    taken: list[str] = []
    for line in lines:
        left -= meter.text(f"\n  {line}")
        if left < 0:
            taken.append(ELLIPSIS)
            break
        taken.append(line)
    item = _item(path, content, "\n".join(taken), words.parts, words)
    return item if len(taken) > 1 and meter.item(item) <= tokens else None


@cache
def _signature() -> re.Pattern[str]:
    return re.compile(
        r"^ {0,4}(?:export |default |public |private |protected |static |async |pub |abstract |final )*"
        r"(?:def|class|func|fn|function|interface|type|struct|enum|trait|impl|module|package)\b.*$|^#{1,3} .*$",
        re.MULTILINE,
    )


def _signatures(text: str) -> list[str]:
    return [found[0] for found in _signature().finditer(text)]


def _item(path: str, content: Content, text: str, label: str, words: Words) -> Item:
    body = text.rstrip("\n")
    # A template's list would take these lines for items of its own.
    if any(line.lstrip().startswith("- ") for line in body.split("\n")):
        body = "\n".join(f"| {line}" for line in body.split("\n"))
    return Item(text=f"{path} — {label}{words.colon.rstrip()}\n{body}".rstrip(), records=records_of(content.records))
