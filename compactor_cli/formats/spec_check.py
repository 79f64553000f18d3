"""A specification read from its file and checked: every key, with the line that an error is on and what to do."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from compactor_cli.formats.base import WORDS
from compactor_cli.formats.spec_rules import KINDS, MAKERS, PLACEHOLDER
from compactor_cli.model.errors import Place, UsageError
from compactor_cli.model.transcript import Role

_Where = tuple[str | int, ...]
_GUIDE = "docs/formats.md has the keys of a format, with an example"
_DECODE_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


class _Fault(Exception):  # noqa: N818 -- named for what is wrong
    """What is wrong, at which keys, and what to do."""

    def __init__(self, where: _Where, what: str, next_step: str = "") -> None:
        super().__init__(what)
        self.where = where
        self.what = what
        self.next_step = next_step or _GUIDE


def read_spec(path: Path) -> Mapping[str, Any]:
    """The specification in this file. Raises UsageError that says where it is wrong and what to do."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(
            f"the format cannot be read ({reason})", place=str(path), next_step="check the path after --format"
        ) from error
    try:
        spec = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _DECODE_LINE.search(str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        what = f"the format is not TOML: {_DECODE_LINE.sub('', str(error))}"
        raise UsageError(what, place=Place(path=str(path), line=line), next_step="correct this line") from error
    try:
        _check("spec", spec, ())
        _check_whole(spec)
    except _Fault as fault:
        place = Place(path=str(path), line=_line_of(text, fault.where))
        # The keys as they are written, counted from 1: ``parts[2].call.id``.
        words = "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in fault.where)
        what = f"{words.removeprefix('.')}: {fault.what}" if words else fault.what
        raise UsageError(what, place=place, next_step=fault.next_step) from None
    return spec


def _line_of(text: str, where: _Where) -> int:
    """The line of these keys: each is looked for after the one before, the nth of a list by its headers."""
    lines = text.splitlines()
    at, keys = 0, ""
    for i, step in enumerate(where):
        if isinstance(step, int):
            continue
        keys = f"{keys}.{step}" if keys else step
        count = nth + 1 if i + 1 < len(where) and isinstance(nth := where[i + 1], int) else 1
        header = re.compile(rf"^\s*\[+\s*{re.escape(keys)}\s*\]")
        headers = [number for number, line in enumerate(lines) if header.search(line)]
        own = re.compile(rf"(?<![\w.-])[\"']?{re.escape(step)}[\"']?\s*[=.]")
        inside = [number for number in range(at, len(lines)) if own.search(lines[number])]
        at = headers[min(count, len(headers)) - 1] if headers else inside[0] if inside else at
    return at + 1


def _one_of(words: Sequence[str], value: Any, where: _Where, what: str) -> None:
    if value not in words:
        _fail_with_nearest(words, str(value), where, f"{what} {value!r} is not known")


def _fail_with_nearest(words: Sequence[str], value: str, where: _Where, what: str) -> NoReturn:
    from difflib import get_close_matches

    near = get_close_matches(value, words, n=1)
    raise _Fault(where, what, f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(words)}")


# The tables of a specification: each key with the kind of its value. ``!``: it must be there; ``[kind]``: a list of
# such; ``{kind}``: a table of such under any names; ``'a|b'``: one of these words. Other kinds are tables, types and
# checks of their own.
_TABLES = {
    "spec": "title!=text base='chat' writes='openai-chat|anthropic|bedrock' holds=[word] arrays=[text] model=[text]"
    " starts=condition unanswered='absent' row=row message=message summary=summary parts=[rule] insert=insert",
    "row": "when=condition array=condition score=score scores=[scores] model=[text] model_after=text counts=[text]",
    "scores": "when=condition is!=score",
    "message": "when=condition time=[text] empty='meta' roles=[role] scores=[scores] summary=carried",
    "role": f"when=condition is!='{'|'.join(Role)}' first=flag summary=flag speaker_of_first=text some=condition"
    " none=condition",
    "carried": "each!=text when!=condition text!=text",
    "summary": "when!=condition text!=text",
    "part": "each=text text=text thinking=text blocks=text without_ending=text gemini=text media=text json=text"
    " inside=text same_in=text when=condition of=[rule] copies=[text] call=call result=result skip=flag whose='client'",
    "call": "id=text name=text name_after=text named=text arguments!=text",
    "result": "id=text name=text name_after=text named=text text!=text error=error",
    "insert": "user=variants assistant=variants near=condition ids=ids chain=chain values={value} keys=keys"
    " alternates=flag optional=[text]",
    "variant": "when=condition like=condition record!=template",
    "chain": "id!=text parent!=text",
    "value": "path!=text otherwise!=text from='near|first|newest' except=[text]",
    "keys": "role!=text text!=text user=[text] assistant=[text] own_names=flag",
}
# Types, with what is said of a value of another one.
_TYPES: Mapping[str, tuple[type, str, str]] = {
    "text": (str, "a text is wanted", "write it in quotes"),
    "flag": (bool, "true or false is wanted", ""),
    "list": (list, "a list is wanted", "write it in brackets"),
    "table": (dict, "a table is wanted", ""),
    "template": (dict, "a record is a table", ""),
}


def _check(kind: str, value: Any, where: _Where) -> None:
    """Raises `_Fault` where a value is not of this kind, see `_TABLES`."""
    if kind in _TYPES:
        wanted, what, next_step = _TYPES[kind]
        if not isinstance(value, wanted):
            raise _Fault(where, f"{what}, this is {_kind(value)}", next_step)
    elif kind in _TABLES:
        _check_table(_TABLES[kind], value, where)
    elif kind.startswith("["):
        _check("list", value, where)
        for i, each in enumerate(value):
            _check(kind[1:-1], each, (*where, i))
    elif kind.startswith("{"):
        _check("table", value, where)
        for key, each in value.items():
            _check(kind[1:-1], each, (*where, key))
    elif kind.startswith("'"):
        _check("text", value, where)
        _one_of(kind.strip("'").split("|"), value, where, "the value")
    else:
        _CHECKS[kind](value, where)


def _check_table(table: str, value: Any, where: _Where) -> None:
    _check("table", value, where)
    entries = [entry.partition("=") for entry in table.split()]
    known = {key.removesuffix("!"): kind for key, _, kind in entries}
    for key in value:
        if key not in known:
            _fail_with_nearest(list(known), key, (*where, key), "this key is not known")
        _check(known[key], value[key], (*where, key))
    required = [key.removesuffix("!") for key, _, _ in entries if key.endswith("!")]
    if missing := next((key for key in required if key not in value), None):
        raise _Fault(where, f"the key {missing!r} is missing", f"add it; {_GUIDE}")


def _score(value: Any, where: _Where) -> None:
    if type(value) is not int or not 0 <= value <= 3:
        raise _Fault(where, f"a number from 0 to 3 is wanted, not {value!r}", "0 no, 1 possible, 2 likely, 3 certain")


def _condition(value: Any, where: _Where) -> None:
    tables = value if isinstance(value, list) else [value]
    for table in tables:
        if not isinstance(table, dict):
            raise _Fault(where, f"a condition is a table, this is {_kind(table)}", 'as in { type = "user" }')
        for path, wanted in table.items():
            for one in wanted if isinstance(wanted, list) else [wanted]:
                if isinstance(one, dict) and (not path or path.endswith(("[any]", "[all]"))):
                    _condition(one, (*where, path))
                elif isinstance(one, dict):
                    next_step = "write a path with dots in quotes" if "." not in path else ""
                    raise _Fault((*where, path), "a test is a value or a list of values, not a table", next_step)
                if isinstance(one, str) and one.startswith("is:"):
                    _one_of(list(KINDS), one, (*where, path), "the test")


def _ids(value: Any, where: _Where) -> None:
    if not isinstance(value, str) or not re.fullmatch(r"uuid|sha256:\d+", value):
        raise _Fault(where, f"{value!r} is no kind of id", 'write "uuid" or "sha256:24" (that number of hex digits)')


def _word(value: Any, where: _Where) -> None:
    _check("text", value, where)
    _one_of(list(WORDS), value.removeprefix("-"), where, "the word")


def _rule(value: Any, where: _Where) -> None:
    _check("part", value, where)
    if "each" in value and "of" not in value:
        raise _Fault(where, "'each' has no 'of'", "add the rules for the elements: of = [{ ... }]")
    if "each" not in value and "skip" not in value and not any(kind in value for kind in MAKERS):
        raise _Fault(where, "the rule reads nothing", f"add one of {', '.join(MAKERS)}")


_CHECKS: Mapping[str, Callable[[Any, _Where], None]] = {
    "score": _score,
    "condition": _condition,
    "ids": _ids,
    "word": _word,
    "rule": _rule,
    "error": lambda value, where: None if isinstance(value, bool) else _condition(value, where),
    "variants": lambda value, where: _check("[variant]" if isinstance(value, list) else "template", value, where),
}


def _check_whole(spec: Mapping[str, Any]) -> None:
    """What several keys say together."""
    insert = spec.get("insert", {})
    if spec.get("base") != "chat":
        for table, key in (("message", "when"), ("message", "roles"), ("parts", ""), ("insert", "")):
            if table not in spec or (key and key not in spec[table]):
                name = f"{table}.{key}" if key else table
                raise _Fault((table,) if table in spec else (), f"the key {name!r} is missing", f"add it; {_GUIDE}")
        if not {"user", "keys"} & insert.keys():
            raise _Fault(("insert",), "nothing says how a record is written", "add 'user' and 'assistant', or 'keys'")
    if ("user" in insert) != ("assistant" in insert):
        raise _Fault(("insert",), "'user' and 'assistant' go together", "add the other one")
    names = {"text", "id", "parent", "near", "first", *insert.get("values", {})}
    for speaker in ("user", "assistant"):
        _check_placeholders(insert.get(speaker, {}), names, ("insert", speaker))


def _check_placeholders(template: Any, names: set[str], where: _Where) -> None:
    if isinstance(template, str):
        for found in PLACEHOLDER.findall(template):
            _one_of(sorted(names), found.partition(".")[0], where, "the placeholder")
    elif isinstance(template, dict | list):
        for each in template.values() if isinstance(template, dict) else template:
            _check_placeholders(each, names, where)


def _kind(value: Any) -> str:
    kinds = {bool: "true or false", str: "a text", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return kinds.get(type(value), "a date")
