"""Codex's code mode: a script in JavaScript makes the calls, and prints what it wants the model to see.

The tool is called `exec`, its input is the script: `const r = await tools.exec_command({cmd: "make"}); text(r.output)`.
Read are the literals that are passed to `tools.NAME(…)`, also by way of variables, of lists that are mapped or looped
over, and of joined or added texts. The script is not run: what it computes stays unknown. Observed with Codex CLI
0.147.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from compactor_cli.formats.contents import arguments, json_value, listed, object_of, string
from compactor_cli.formats.located import at
from compactor_cli.model.patterns import pattern
from compactor_cli.model.transcript import Message, Part, ToolCall, ToolResult, Transcript

_SCRIPT, _WAIT, _COMMAND, _LOOK = "exec", "wait", "exec_command", "write_stdin"
_CALLS = pattern(r"\btools\.(\w+)\(")
_ASSIGNED = pattern(r"\b(?:const|let|var)\s+(\w+)\s*=\s*(?=[\"'`\[{]|String\.raw)")
# `cmds.map(([name, cmd]) => …)`, `for (const cmd of cmds)`
_EACH = pattern(
    r"\b(?P<list>\w+)\.(?:map|forEach)\(\s*(?:async\s*)?\(?\s*(?P<names>\[[\w\s,]+\]|\w+)"
    r"|\b(?:const|let|var)\s+(?P<own>\[[\w\s,]+\]|\w+)\s+of\s+(?P<of>\w+)"
)
_STRING = pattern(r"(?:String\.raw\s*)?(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)", re.DOTALL)
_BLANK = pattern(r"(?:\s|//[^\n]*|/\*.*?\*/)*+", re.DOTALL)
_NUMBER, _NAME = pattern(r"-?\d[\d_]*(?:\.\d+)?"), pattern(r"[A-Za-z_$][\w$]*")
_ESCAPE = pattern(r"\\(?:u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\n)|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_MAX_NAMES, _MAX_DEPTH = 200, 20
_CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}
# What the client writes above the output of a script.
_ENDED = pattern(r"\AScript (?:completed|failed|terminated)\nWall time [\d.]+ seconds\nOutput:\s*")
_RUNNING = pattern(r"\AScript running with cell ID (\w+)\nWall time [\d.]+ seconds\nOutput:\s*")
# The exit code of the only command, and the number under which it goes on, as scripts print them:
# text(`exit=${r.exit_code}`).
_PRINTED_SESSION = pattern(r"^session(?:[_ ]?id)?[=:] ?(\d+)$", re.MULTILINE | re.IGNORECASE)
_PRINTED_CODE = pattern(r"^(?:exit|exit[ _]code|code|EXIT)[=:] ?(-?\d+)$", re.MULTILINE)


def without_scripts(transcript: Transcript) -> Sequence[Message]:
    """The messages of a transcript, with the calls that scripts make, and their results, in place of the scripts.

    If a script prints a text for each call, these are the results. Else its commands are one call, which gets all that
    it prints, and every other call gets an empty result. A script whose calls are not understood stays. A call that
    waits for a script looks at it as one does at a command that goes on.
    """
    messages = transcript.messages
    if not any(part.name == _SCRIPT for message in messages for part in message.calls):
        return messages
    printed: dict[str, list[str]] = {}
    for message, record in zip(messages, transcript.records, strict=True):
        printed |= {result.id: _printed(record.value) for result in message.results}
    found: list[Message] = []
    made: dict[str, Sequence[ToolCall]] = {}
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                made[part.id] = calls = _made_by(part, len(printed.get(part.id, ())))
                parts += calls
            elif isinstance(part, ToolResult) and len(calls := made.pop(part.id, ())) > 1:
                texts = printed[part.id]
                is_each = len(texts) == len(calls)
                texts = [*map(script_output, texts)] if is_each else [*[""] * (len(calls) - 1), part.text]
                parts += [replace(part, id=call.id, text=text) for call, text in zip(calls, texts, strict=True)]
            else:
                parts.append(part)
        found.append(replace(message, parts=tuple(parts)) if parts != [*message.parts] else message)
    return found


def _printed(value: Any) -> list[str]:
    """The texts that a script printed, each without what the client writes above the first one."""
    output = at(value, ("payload", "output")) or at(value, ("output",))
    blocks = [string(block.get("text")) for block in listed(output) if isinstance(block, dict)]
    return blocks[1:] if blocks and _ENDED.match(blocks[0]) else []


def _made_by(call: ToolCall, number_of_texts: int) -> Sequence[ToolCall]:
    """The calls in place of one call: of a script that prints a text for each, else with its commands as one."""
    if call.name == _WAIT and isinstance(call.arguments, Mapping) and (cell := call.arguments.get("cell_id")):
        return [replace(call, name=_LOOK, arguments={"session_id": cell})]
    made = calls_in(call.arguments) if call.name == _SCRIPT and isinstance(call.arguments, str) else []
    commands = [given for name, given in made if name == _COMMAND and isinstance(given, dict) and given.get("cmd")]
    others = [given for name, given in made if name != _COMMAND and given is not None]
    if not made or len(commands) + len(others) < len(made):
        return [call]
    if len(commands) > 1 and number_of_texts != len(made):
        made = [*(one for one in made if one[0] != _COMMAND), (_COMMAND, _joined(commands))]
    last = len(made) - 1
    return [
        replace(call, name=name, arguments=arguments(given), id=call.id if number == last else f"{call.id}/{number}")
        for number, (name, given) in enumerate(made)
    ]


def _joined(commands: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Several commands as one, each on its lines, after a `cd` where their folders differ."""
    if len({str(one.get("workdir")) for one in commands}) == 1:
        return {**commands[0], "cmd": "\n".join(str(one["cmd"]) for one in commands)}
    return {"cmd": "\n".join(f"cd {one.get('workdir') or '.'}\n{one['cmd']}" for one in commands)}


def calls_in(script: str) -> list[tuple[str, Any]]:
    """The name and the argument of each call of a tool in a script, None for an argument that is not a literal."""
    reader = _Reader(script)
    return [(found[1], reader.argument(found.end())) for found in _CALLS.finditer(script)]


def script_output(text: str) -> str:
    """What a script printed, without what the client writes around it.

    A command's result that is printed as JSON is read as its output, below its exit code.
    """
    text = _RUNNING.sub(r"Process running with session ID \1\n", _ENDED.sub("", text))
    value = object_of(json_value(text)) if text.startswith("{") else {}
    code, session, output = value.get("exit_code"), value.get("session_id"), value.get("output")
    if isinstance(output, str) and code is not None:
        return f"Process exited with code {code}\n{output}"
    if isinstance(output, str) and session is not None:
        return f"Process running with session ID {session}\n{output}"
    if found := _PRINTED_SESSION.search(text):
        return f"Process running with session ID {found[1]}\n{text}"
    is_single = len(_PRINTED_CODE.findall(text)) == 1
    return _PRINTED_CODE.sub(r"Process exited with code \1", text) if is_single else text


class _UnknownError(Exception):
    """A value that only the running script knows."""


class _Reader:
    """Reads literals of JavaScript at positions of a script."""

    def __init__(self, script: str) -> None:
        self._script = script
        self._named: dict[str, Any] = {}
        self._depth = 0
        for found in islice(_ASSIGNED.finditer(script), _MAX_NAMES):
            with suppress(_UnknownError):
                self._named[found[1]] = self._value(found.end())[0]
        for found in islice(_EACH.finditer(script), _MAX_NAMES):
            self._each(found["names"] or found["own"], self._named.get(found["list"] or found["of"]))

    def argument(self, at: int) -> Any:
        """The value at a position, None if the script computes it; an empty object if there is none."""
        at = self._skip(at)
        if self._script[at : at + 1] == ")":
            return {}
        with suppress(_UnknownError):
            return self._value(at)[0]
        return None

    def _each(self, names: str, rows: Any) -> None:
        """Names of what a loop takes from a list of texts, or of lists of texts: all of them, on lines."""
        if not isinstance(rows, list):
            return
        is_row = names.startswith("[")
        for place, name in enumerate(_NAME.findall(names)):
            taken = [row[place] for row in rows if isinstance(row, list) and place < len(row)] if is_row else rows
            if name not in self._named and taken and all(isinstance(one, str) for one in taken):
                self._named[name] = "\n".join(taken)

    def _skip(self, at: int) -> int:
        found = _BLANK.match(self._script, at)
        return found.end() if found else at

    def _value(self, at: int) -> tuple[Any, int]:
        """The value at a position, and the position after it; texts that are added or joined are one."""
        value, at = self._single(self._skip(at))
        while True:
            after = self._skip(at)
            if isinstance(value, list) and (found := _JOIN.match(self._script, after)):
                glue, after = self._text(found.end())
                value, at = glue.join(map(str, value)), self._skip(after) + 1
            elif isinstance(value, str) and self._script[after : after + 1] == "+":
                try:
                    added, at = self._single(self._skip(after + 1))
                except _UnknownError:
                    added, at = _COMPUTED, self._past(after + 1, is_part=True)
                value += str(added)
            else:
                return value, at

    def _single(self, at: int) -> tuple[Any, int]:
        if _STRING.match(self._script, at):
            return self._text(at)
        mark = self._script[at : at + 1]
        if mark in ("[", "{") and self._depth < _MAX_DEPTH:
            self._depth += 1
            try:
                return self._list(at + 1) if mark == "[" else self._object(at + 1)
            finally:
                self._depth -= 1
        if found := _NUMBER.match(self._script, at):
            return float(found[0].replace("_", "")) if "." in found[0] else int(found[0].replace("_", "")), found.end()
        if (found := _NAME.match(self._script, at)) and found[0] in _CONSTANTS:
            return _CONSTANTS[found[0]], found.end()
        if found and found[0] in self._named and self._script[found.end() : found.end() + 1] not in (".", "[", "("):
            return self._named[found[0]], found.end()
        raise _UnknownError

    def _text(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self._script, self._skip(at))
        if not found:
            raise _UnknownError
        text = found[0]
        if text.startswith("String.raw"):
            return text.partition("`")[2][:-1], found.end()
        text = _ESCAPE.sub(_unescaped, text[1:-1])
        # Characters outside of the basic plane are written as pairs.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), found.end()

    def _list(self, at: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        while self._script[(at := self._skip(at)) : at + 1] != "]":
            value, at = self._value(at)
            found.append(value)
            at = self._after_comma(at, "]")
        return found, at + 1

    def _object(self, at: int) -> tuple[dict[str, Any], int]:
        """An object without the members whose values the script computes."""
        found: dict[str, Any] = {}
        while self._script[(at := self._skip(at)) : at + 1] != "}":
            if name := _NAME.match(self._script, at):
                key, at = name[0], name.end()
            else:
                key, at = self._text(at)
            at = self._skip(at)
            if self._script[at : at + 1] == ":":
                try:
                    found[key], at = self._value(at + 1)
                except _UnknownError:
                    at = self._past(at + 1)
            elif key in self._named:
                found[key] = self._named[key]
            at = self._after_comma(at, "}")
        return found, at + 1

    def _past(self, at: int, *, is_part: bool = False) -> int:
        """The position of the comma or bracket that ends the expression at a position; of its next `+` if it is a part
        of a sum.
        """
        depth = 0
        for found in _MARKS.finditer(self._script, at):
            if found[0] in _OPENING:
                depth += 1
            elif depth == 0 and (is_part if found[0] == "+" else len(found[0]) == 1):
                return found.start()
            elif found[0] in _CLOSING:
                depth -= 1
        raise _UnknownError

    def _after_comma(self, at: int, end: str) -> int:
        at = self._skip(at)
        if self._script[at : at + 1] == ",":
            return at + 1
        if self._script[at : at + 1] != end:
            raise _UnknownError
        return at


_JOIN = pattern(r"\.join\(")
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_MARKS = re.compile(rf"{_STRING.pattern}|[,+()\[\]{{}}]", re.DOTALL)
_COMPUTED = "…"  # stands for what the script computes


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        return chr(min(int(code, 16), 0x10FFFF))
    return "" if found[4] else _ESCAPES.get(found[5], found[5])
