"""Entries set into the text of a settings file, and taken out of it: every other byte stays where it is.

JSON may hold comments and trailing commas, as clients read it. The text after an edit is read again and compared:
nothing but the entry may have changed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any

from compactor_cli.model.errors import UsageError
from compactor_cli.model.value import dataclass

_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_PLAIN = re.compile(r"\s*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_BY_HAND = "put the entry in by hand, or fix the file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A value of JSON and where it stands: ``text[start:stop]``; ``begin`` is where its key stands, if it has one."""

    value: Any
    begin: int
    start: int
    stop: int
    items: dict[str | int, Node] = field(default_factory=dict)


Path = Sequence[str | int]
# A place in a text, and what is put in there.
Insertion = tuple[int, str]


def parse_json(text: str) -> Node:
    """The value of a text. Raises UsageError where it is none, or a key stands twice."""
    start = _after_space(text, 1 if text.startswith("\ufeff") else 0)
    node = _value(text, start, start)
    if _after_space(text, node.stop) != len(text):
        raise _no_json(text, node.stop)
    return node


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, begin: int, at: int) -> Node:
    if text[at : at + 1] in ("{", "["):
        return _container(text, begin, at)
    found = _STRING.match(text, at) or _SCALAR.match(text, at)
    if not found:
        raise _no_json(text, at)
    try:
        return Node(value=json.loads(found[0]), begin=begin, start=at, stop=found.end())
    except ValueError:
        raise _no_json(text, at) from None


def _container(text: str, begin: int, start: int) -> Node:
    is_object = text[start] == "{"
    closing = "}" if is_object else "]"
    items: dict[str | int, Node] = {}
    at = _after_space(text, start + 1)
    while text[at : at + 1] != closing:
        first, key = at, len(items)
        if is_object:
            name = _STRING.match(text, at)
            colon = _after_space(text, name.end()) if name else at
            if name is None or text[colon : colon + 1] != ":" or json.loads(name[0]) in items:
                raise _no_json(text, at)
            key, at = json.loads(name[0]), _after_space(text, colon + 1)
        node = items[key] = _value(text, first, at)
        at = _after_space(text, node.stop)
        if text[at : at + 1] == ",":
            at = _after_space(text, at + 1)
        elif text[at : at + 1] != closing:
            raise _no_json(text, at)
    value: Any = {key: node.value for key, node in items.items()} if is_object else [x.value for x in items.values()]
    return Node(value=value, begin=begin, start=start, stop=at + 1, items=items)


def _no_json(text: str, at: int) -> UsageError:
    line = text.count("\n", 0, at) + 1
    return UsageError(f"line {line} is no JSON, or names a key again", next_step=_BY_HAND)


def json_added(text: str, path: Path, value: Any, *, append: bool = False) -> list[Insertion]:
    """What puts ``value`` at ``path`` (appended to the list there), which holds nothing yet, containers on the way
    included. Applied in order. Raises UsageError where something else stands on the way.
    """
    if not text.strip("\ufeff \t\r\n"):
        whole: Any = [value] if append else value
        for key in reversed(path):
            whole = {key: whole}
        return [(len(text), _dumped(whole, "", "  ", "\n") + "\n")]
    node, depth = parse_json(text), 0
    while depth < len(path) and isinstance(node.value, dict) and path[depth] in node.items:
        node, depth = node.items[path[depth]], depth + 1
    missing = path[depth:]
    if isinstance(node.value, dict) is not bool(missing) or not isinstance(node.value, dict | list):
        raise UsageError(f"{'.'.join(map(str, path[:depth]))} is of another kind", next_step=_BY_HAND)
    new: Any = [value] if append and missing else value
    for key in reversed(missing[1:]):
        new = {key: new}
    return _inserted(text, node, str(missing[0]) if missing else None, new)


def _inserted(text: str, node: Node, key: str | None, value: Any) -> list[Insertion]:
    """What makes ``value`` the last item of a container, in the way the others stand there."""
    newline = "\r\n" if "\r\n" in text else "\n"
    last = list(node.items.values())[-1] if node.items else None
    unit = next(iter(re.findall(r"^([ \t]+)\S", text, re.MULTILINE)), "  ")
    outer = _indent(text, node.begin)
    before = text[node.start + 1 : last.begin if last and len(node.items) == 1 else node.stop - 1]
    is_inline = last is not None and "\n" not in before
    indent = _indent(text, last.begin) if last and not is_inline else outer + unit
    dumped = json.dumps(value, ensure_ascii=False) if is_inline else _dumped(value, indent, unit, newline)
    item = f"{json.dumps(key, ensure_ascii=False)}: {dumped}" if key is not None else dumped
    # After the comments that follow the last item.
    stop = node.stop - 1
    end = stop - len(text[:stop]) + len(text[:stop].rstrip())
    if last is None:
        closing = "" if "\n" in text[end:stop] else newline + outer
        return [(end, f"{newline}{indent}{item}{closing}")]
    comma = _after_space(text, last.stop)
    if text[comma] == ",":
        return [(comma + 1, f" {item}") if is_inline else (end, f"{newline}{indent}{item}")]
    if is_inline:
        return [(last.stop, f", {item}")]
    return [(last.stop, ","), (end + 1, f"{newline}{indent}{item}")]


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    found = _PLAIN.match(line)
    return found[0].lstrip("\ufeff") if found else ""


def _dumped(value: Any, indent: str, unit: str, newline: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"{newline}{indent}".join(lines)


def json_removed(text: str, path: Path) -> str:
    """The text without the value at this path, and without containers that it leaves empty."""
    root = parse_json(text)
    trail = [root]
    for key in path:
        trail.append(trail[-1].items[key])
    while len(trail) > 2 and len(trail[-2].items) == 1:
        trail.pop()
    parent, node = trail[-2], trail[-1]
    siblings = list(parent.items.values())
    comma = _after_space(text, node.stop)
    start = len(text[: node.begin].rstrip())
    if "//" in text[text.rfind("\n", 0, start) + 1 : start]:
        start = len(text[: node.begin].rstrip(" \t"))  # the end of the line ends that comment
    if text[comma] == ",":
        return text[:start] + text[comma + 1 :]
    text = text[:start] + text[node.stop :]
    if node is not siblings[0]:
        comma = _after_space(text, siblings[-2].stop)
        text = text[:comma] + text[comma + 1 :] if text[comma] == "," else text
    return text


def toml_added(text: str, path: Sequence[str], table: dict[str, Any]) -> list[Insertion]:
    """What puts a table of strings and lists at ``path``, after everything else. Raises UsageError as `json_added`."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(path)}]"]
    lines += (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items())
    lead = "" if not text else newline if text.endswith("\n") else newline * 2
    insertion = (len(text), lead + newline.join(lines) + newline)
    value = read_toml(text)
    inner = value
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = table
    with suppress(UsageError):
        if read_toml(applied(text, [insertion])) == value:
            return [insertion]
    raise UsageError(f"a table [{'.'.join(path)}] cannot be added", next_step=_BY_HAND)


def toml_removed(text: str, path: Sequence[str]) -> str:
    """The text without the table of this name. Raises UsageError where that is not a header and the lines below it."""
    value = read_toml(text)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    name = ".".join(path)
    lines = r"(?:(?![ \t]*(?:#|\[|\r?\n))[^\n]+(?:\n|\Z))*"
    for found in re.finditer(rf"(?:\r?\n)?^\[{re.escape(name)}\][^\n]*(?:\n|\Z){lines}", text, re.MULTILINE):
        rest = text[: found.start()] + text[found.end() :]
        with suppress(UsageError):
            if bare(read_toml(rest)) == bare(value):
                return rest
    raise UsageError(f"[{name}] cannot be taken out", next_step="take it out by hand")


def bare(value: Any) -> Any:
    """A value without containers that hold nothing: such are made on the way to an entry."""
    if not isinstance(value, dict):
        return value
    return {key: inner for key, item in value.items() if (inner := bare(item)) not in ({}, [])}


def read_toml(text: str) -> dict[str, Any]:
    """The value of a text. Raises UsageError where it is none."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise UsageError(f"not valid TOML: {error}", next_step=_BY_HAND) from None


def applied(text: str, insertions: Sequence[Insertion]) -> str:
    """The text with these put in, one after the other."""
    for at, added in insertions:
        text = text[:at] + added + text[at:]
    return text


def taken_back(text: str, insertions: Sequence[Insertion]) -> str:
    """What `applied` was given. Raises ValueError where these are not there."""
    for at, added in reversed(insertions):
        if text[at : at + len(added)] != added:
            raise ValueError("it was changed since")
        text = text[:at] + text[at + len(added) :]
    return text


def entries(node: Node, path: Path) -> Iterator[tuple[int, Any]]:
    """The elements of the list at this path, with their places; none where there is no list."""
    for key in path:
        if not isinstance(node.value, dict) or key not in node.items:
            return
        node = node.items[key]
    if isinstance(node.value, list):
        yield from enumerate(node.value)
