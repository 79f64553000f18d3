"""The paths, conditions and part rules of a format's specification, and the check of all its keys.

A *path* is dotted (``data.toolRequests``, ``parts.0.text``). ``a|b`` is the first of the two that exists and is not
null, ``""`` the value itself; a key with dots in it stands in quotes (``attributes."gen_ai.input.messages"``).

A *condition* is a table of path = test, all of which must hold, or a list of such tables, one of which must hold. In
the paths of a condition ``calls[any].id`` and ``calls[all].id`` stand for the elements of a list. A *test* is a value,
a list of values (any of them), ``"prefix*"``, ``"*suffix"``, ``"nocase:word|word"``, ``"not:"`` before one of these, a
kind of value (see `KINDS`), or a condition for the elements of a list.

A *rule* names what is read (a key of `MAKERS`) and the path of it; ``when`` is the condition for records to which it
applies. With ``each``, the first rule in ``of`` that applies is followed for each element of a list or an object. A
rule with both a call and a result reads the result only if there is one. ``inside`` is the path in the element below
which all other paths start; ``same_in`` is a place in the record that may hold a copy of the element. ``whose =
"client"`` marks texts that are not the person's words.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from compactor_cli.formats import gemini, located
from compactor_cli.formats.contents import (
    arguments,
    arguments_like,
    coded_values,
    decoded_values,
    json_text,
    listed,
    string,
)
from compactor_cli.formats.located import LocatedPart, at
from compactor_cli.formats.registry import WORDS, JsonPath
from compactor_cli.model.errors import Place, UsageError
from compactor_cli.model.transcript import Role, Text, ToolCall

Test = Callable[[Any], bool]
_MISSING: Any = object()
_QUANTIFIERS: Mapping[str, Callable[..., bool]] = {"[any]": any, "[all]": all}
_NOCASE, _NOT = "nocase:", "not:"

# `{near.clock.time}` in a template.
PLACEHOLDER = re.compile(r"\{([\w.|-]+)\}")
_STEP = re.compile(r'"([^"]+)"|([^."]+)')

KINDS: Mapping[str, Test] = {
    "is:text": lambda found: isinstance(found, str) and found != "",
    "is:string": lambda found: isinstance(found, str),
    "is:object": lambda found: isinstance(found, dict),
    "is:list": lambda found: isinstance(found, list),
    "is:filled": lambda found: found is not _MISSING and bool(found),
    "is:empty": lambda found: found is _MISSING or not found,
    "is:content": lambda found: isinstance(found, str | list),
    "is:present": lambda found: found is not None and found is not _MISSING,
    "is:absent": lambda found: found is None or found is _MISSING,
    "is:null": lambda found: found is None,
    "is:key": lambda found: found is not _MISSING,
    "is:no-key": lambda found: found is _MISSING,
}


@cache
def steps(path: str) -> JsonPath:
    """The keys and indices of a path without alternatives."""
    found = _STEP.findall(path)
    return tuple(quoted or (int(plain) if plain.isdigit() else plain) for quoted, plain in found)


def places(paths: Iterable[str]) -> tuple[JsonPath, ...]:
    """All alternatives of these paths, in order."""
    return tuple(place for path in paths for place in _alternatives(path))


@cache
def _alternatives(path: str) -> tuple[JsonPath, ...]:
    return tuple(map(steps, path.split("|")))


def lookup(value: Any, path: str) -> Any:
    """The value at the first of a path's alternatives that exists and is not null, else None."""
    return next((found for place in _alternatives(path) if (found := at(value, place)) is not None), None)


def place_of(value: Any, path: str) -> JsonPath | None:
    """The place of the value that `lookup` finds; None if it finds none."""
    return next((place for place in _alternatives(path) if at(value, place) is not None), None)


def condition(tables: Mapping[str, Any] | list[Mapping[str, Any]]) -> Test:
    """A function that tests whether a value passes all tests of a table, or of any table in a list."""
    # In a list, one table that passes decides; in a table, one test that fails decides.
    decides = isinstance(tables, list)
    if isinstance(tables, list):
        tests = [condition(table) for table in tables]
    else:
        tests = [_path_test(path, _test(wanted)) for path, wanted in tables.items()]
    if len(tests) == 1:
        return tests[0]

    def passes(value: Any) -> bool:
        # A loop is faster than all(), and this runs for every record of a file.
        for test in tests:
            if test(value) is decides:
                return decides
        return not decides

    return passes


def _path_test(path: str, test: Test) -> Test:
    for mark, quantifier in _QUANTIFIERS.items():
        before, _, after = path.partition(mark)
        if mark in path:
            list_place, inner = steps(before), _path_test(after.removeprefix("."), test)
            return lambda value: isinstance(found := at(value, list_place), list) and quantifier(map(inner, found))
    if "|" in path:
        return lambda value: test(lookup(value, path))
    place = steps(path)
    if len(place) == 1 and isinstance(place[0], str):
        key = place[0]
        return lambda value: test(value.get(key, _MISSING) if isinstance(value, dict) else _MISSING)
    return lambda value: test(at(value, place, _MISSING))


def _test(wanted: Any) -> Test:
    if isinstance(wanted, list):
        # Plain words are looked up in a set, since most conditions test the kind of a record, and run for each record.
        texts = [
            each
            for each in wanted
            if isinstance(each, str) and each not in KINDS and not each.startswith((_NOCASE, _NOT))
        ]
        plain = [each for each in texts if "*" not in (each[:1], each[-1:])]
        words, others = frozenset(plain), [_test(each) for each in wanted if each not in plain]
        return lambda found: (isinstance(found, str) and found in words) or any(test(found) for test in others)
    if isinstance(wanted, dict):
        return condition(wanted)
    if not isinstance(wanted, str):
        return lambda found: type(found) is type(wanted) and found == wanted
    if wanted in KINDS:
        return KINDS[wanted]
    if wanted.startswith(_NOT):
        excluded = _test(wanted.removeprefix(_NOT))
        return lambda found: not excluded(found)
    if wanted.startswith(_NOCASE):
        lower = frozenset(wanted.removeprefix(_NOCASE).lower().split("|"))
        return lambda found: isinstance(found, str) and found.lower() in lower
    if wanted.endswith("*"):
        return lambda found: isinstance(found, str) and found.startswith(wanted[:-1])
    if wanted.startswith("*"):
        return lambda found: isinstance(found, str) and found.endswith(wanted[1:])
    return lambda found: isinstance(found, str) and found == wanted


Rule = Mapping[str, Any]
Reader = Callable[[Any], list[LocatedPart]]
# Arguments: a value, its place in the record, and the record; makers also get the rule's entry for them, and the rule.
_Inner = Callable[[Any, JsonPath, Any], list[LocatedPart]]
_Maker = Callable[[Any, JsonPath, Any, Rule], Iterable[LocatedPart]]


def reader(rules: Sequence[Rule], *, persons_only: bool = False) -> Reader:
    """A function that reads the parts of a record, which is an object, by these rules, in order.

    With ``persons_only``, rules for texts of the client (``whose``) are left out.
    """
    readers = [(condition(rule.get("when", {})), _rule_reader(rule, persons_only)) for rule in rules]

    def parts(record: Any) -> list[LocatedPart]:
        return [part for applies, read in readers if applies(record) for part in read(record, (), record)]

    return parts


def _rule_reader(rule: Rule, persons_only: bool) -> _Inner:
    if persons_only and rule.get("whose") == "client":
        return lambda value, base, record: []
    return _list_reader(rule, persons_only) if "each" in rule else _parts_reader(rule)


def _list_reader(rule: Rule, persons_only: bool) -> _Inner:
    place = steps(rule["each"])
    inner = [(condition(one.get("when", {})), _rule_reader(one, persons_only)) for one in rule["of"]]

    def parts(value: Any, base: JsonPath, record: Any) -> list[LocatedPart]:
        found: list[LocatedPart] = []
        elements = at(value, place)
        for key, element in elements.items() if isinstance(elements, dict) else enumerate(listed(elements)):
            read = next((read for applies, read in inner if applies(element)), None)
            found += read(element, (*base, *place, key), record) if read else ()
        return found

    return parts


def _parts_reader(rule: Rule) -> _Inner:
    makers = [(make, rule[kind]) for kind, make in MAKERS.items() if kind in rule]
    inside, same_in = steps(rule.get("inside", "")), rule.get("same_in")

    def parts(value: Any, base: JsonPath, record: Any) -> list[LocatedPart]:
        value, base = at(value, inside), (*base, *inside)
        found = [part for make, wanted in makers for part in make(value, base, wanted, rule)]
        if not same_in:
            return found
        # Add the places of copies: the value at this place of the record, or elements of a list there, if equal.
        place = steps(same_in)
        there = at(record, place)
        others = [((*place, i), each) for i, each in enumerate(there)] if isinstance(there, list) else [(place, there)]
        for n, part in enumerate(found):
            again = ((*where, *at[len(base) :]) for where, each in others if each == value for at in part.places)
            found[n] = part._replace(places=(*part.places, *again))
        return found

    return parts


def _thinking(value: Any, base: JsonPath, path: str, rule: Rule) -> Iterator[LocatedPart]:
    if text := string(lookup(value, path)):
        yield located.thinking(text)


def _text(value: Any, base: JsonPath, path: str, rule: Rule) -> Iterator[LocatedPart]:
    if text := string(lookup(value, path)):
        there = [place_of(value, one) for one in (path, *rule.get("copies", ()))]
        yield located.text(text, *((*base, *place) for place in there if place is not None))


def _call(value: Any, base: JsonPath, fields: Mapping[str, Any], rule: Rule) -> Iterator[LocatedPart]:
    if not isinstance(value, dict):
        return
    place = place_of(value, fields["arguments"])
    call_id, name = string(lookup(value, fields.get("id", "?"))), _name(value, fields)
    asked = {} if place is None else arguments(at(value, place))
    labels, is_coded, write = fields.get("labels", ()), "values" in fields, None
    if isinstance(asked, dict) and (labels or is_coded):
        asked = {key: value for key, value in asked.items() if key not in labels}
        asked = decoded_values(asked) if is_coded else asked
        write = partial(_new_arguments, labels=labels, is_coded=is_coded)
    part = ToolCall(id=call_id, name=name, arguments=asked)
    yield LocatedPart(part, () if place is None else ((*base, *place),), write)


def _new_arguments(old: Any, text: str, *, labels: Sequence[str], is_coded: bool) -> Any:
    """The new arguments of a call, as the old ones were written, with the labels of these."""
    new = coded_values(old, text) if is_coded else arguments_like(old, text)
    kept = {key: old[key] for key in labels if key in old} if isinstance(old, dict) and isinstance(new, dict) else {}
    return {**new, **kept}


def _result(value: Any, base: JsonPath, fields: Mapping[str, Any], rule: Rule) -> Iterator[LocatedPart]:
    place = place_of(value, fields["text"])
    if place is None and "call" in rule:
        return
    answer, error = None if place is None else at(value, place), fields.get("error", False)
    failed = error if isinstance(error, bool) else condition(error)(value)
    call_id, name = lookup(value, fields.get("id", "?")), _name(value, fields)
    piece = located.result(answer, (*base, *(place or ())), call_id=call_id, name=name, is_error=failed)
    yield piece if isinstance(answer, str | dict | list) else LocatedPart(piece.part)


def _name(value: Any, fields: Mapping[str, Any]) -> str:
    name = string(lookup(value, fields.get("name", "?"))).removeprefix(fields.get("name_after", ""))
    return name or fields.get("named", "")


def _blocks(value: Any, base: JsonPath, path: str, rule: Rule) -> Iterator[LocatedPart]:
    """The parts of a content that is a text, or blocks of Anthropic's or OpenAI's API."""
    place, ending = place_of(value, path), rule.get("without_ending", "")
    content = at(value, place) if place is not None else None
    for piece in located.content(content, *base, *(place or ())):
        part = piece.part
        if ending and isinstance(part, Text) and part.text.endswith(ending):
            part = Text(text=part.text.removesuffix(ending).rstrip())
        yield piece._replace(part=part)


def _gemini(value: Any, base: JsonPath, path: str, rule: Rule) -> Iterator[LocatedPart]:
    content = at(value, steps(path))
    for piece in gemini.pieces(content) if gemini.is_content(content) else ():
        yield piece.below(*base, *steps(path))


MAKERS: Mapping[str, _Maker] = {
    "thinking": _thinking,
    "text": _text,
    "blocks": _blocks,
    "gemini": _gemini,
    "call": _call,
    "result": _result,
    "json": lambda value, base, path, rule: [located.text(json_text(lookup(value, path)))],
    "media": lambda value, base, path, rule: [located.media(string(lookup(value, path)) or "unknown", value)],
}


_Where = tuple[str | int, ...]
_GUIDE = "docs/formats.md has the keys of a format, with an example"
_DECODE_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


class _Fault(Exception):  # noqa: N818 -- named for what is wrong
    """A mistake in a specification: at which keys, what is wrong, and what to do."""

    def __init__(self, where: _Where, what: str, next_step: str = "") -> None:
        super().__init__(what)
        self.where = where
        self.what = what
        self.next_step = next_step or _GUIDE


def read_spec(path: Path) -> Mapping[str, Any]:
    """Read and check the specification in this file. Raises UsageError with the line of a mistake and what to do."""
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
    """The line of these keys, counted from 1: each key is searched after the one before, list elements by headers."""
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


def _check_one_of(words: Collection[str], value: str, where: _Where, what: str) -> None:
    if value in words:
        return
    from difflib import get_close_matches

    near = get_close_matches(value, words, n=1)
    next_step = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(words)}"
    raise _Fault(where, f"{what} is not known", next_step)


# The tables of a specification: each key with the kind of its value. ``key!``: the key is required; ``[kind]``: a list
# of that kind; ``{kind}``: a table of that kind with any keys; ``'a|b'``: one of these words. Other kinds are names of
# tables here, of `_TYPES`, or of checks in `_check` and `_CHECKS`.
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
    "call": "id=text name=text name_after=text named=text arguments!=text values='json' labels=[text]",
    "result": "id=text name=text name_after=text named=text text!=text error=error",
    "insert": "user=variants assistant=variants near=condition ids=ids chain=chain values={value} keys=keys"
    " alternates=flag optional=[text]",
    "variant": "when=condition like=condition record!=template",
    "chain": "id!=text parent!=text",
    "value": "path!=text otherwise!=text from='near|first|newest' except=[text]",
    "keys": "role!=text text!=text user=[text] assistant=[text] own_names=flag",
}
# Types, with the message and the advice for a value of another type.
_TYPES: Mapping[str, tuple[type, str, str]] = {
    "text": (str, "a text is wanted", "write it in quotes"),
    "flag": (bool, "true or false is wanted", ""),
    "list": (list, "a list is wanted", "write it in brackets"),
    "table": (dict, "a table is wanted", ""),
    "template": (dict, "a record is a table", ""),
}


def _check(kind: str, value: Any, where: _Where) -> None:
    """Check that a value is of this kind, see `_TABLES`. Raises `_Fault` if not."""
    if kind in _TYPES:
        wanted, what, next_step = _TYPES[kind]
        if not isinstance(value, wanted):
            raise _Fault(where, f"{what}, this is {_kind(value)}", next_step)
    elif kind in _TABLES:
        _check("table", value, where)
        entries = [entry.partition("=") for entry in _TABLES[kind].split()]
        known = {key.removesuffix("!"): inner for key, _, inner in entries}
        for key in value:
            _check_one_of(known, key, (*where, key), "this key")
            _check(known[key], value[key], (*where, key))
        required = [key.removesuffix("!") for key, _, _ in entries if key.endswith("!")]
        if missing := next((key for key in required if key not in value), None):
            raise _Fault(where, f"the key {missing!r} is missing", f"add it; {_GUIDE}")
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
        _check_one_of(kind.strip("'").split("|"), value, where, f"the value {value!r}")
    elif kind == "word":
        _check("text", value, where)
        word = value.removeprefix("-")
        _check_one_of(WORDS, word, where, f"the word {word!r}")
    elif kind == "score" and (type(value) is not int or not 0 <= value <= 3):
        raise _Fault(where, f"a number from 0 to 3 is wanted, not {value!r}", "0 no, 1 possible, 2 likely, 3 certain")
    elif kind == "ids" and not re.fullmatch(r"uuid|sha256:\d+", string(value)):
        raise _Fault(where, f"{value!r} is no kind of id", 'write "uuid" or "sha256:24" (that number of hex digits)')
    elif kind in _CHECKS:
        _CHECKS[kind](value, where)


def _condition(value: Any, where: _Where) -> None:
    for table in value if isinstance(value, list) else [value]:
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
                    _check_one_of(KINDS, one, (*where, path), f"the test {one!r}")


def _rule(value: Any, where: _Where) -> None:
    _check("part", value, where)
    if "each" in value and "of" not in value:
        raise _Fault(where, "'each' has no 'of'", "add the rules for the elements: of = [{ ... }]")
    if "each" not in value and "skip" not in value and not any(kind in value for kind in MAKERS):
        raise _Fault(where, "the rule reads nothing", f"add one of {', '.join(MAKERS)}")


_CHECKS: Mapping[str, Callable[[Any, _Where], None]] = {
    "condition": _condition,
    "rule": _rule,
    "error": lambda value, where: None if isinstance(value, bool) else _condition(value, where),
    "variants": lambda value, where: _check("[variant]" if isinstance(value, list) else "template", value, where),
}


def _check_whole(spec: Mapping[str, Any]) -> None:
    """Check what concerns several keys: which are required together, and the placeholders of templates."""
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
            name = found.partition(".")[0]
            _check_one_of(sorted(names), name, where, f"the placeholder {name!r}")
    elif isinstance(template, dict | list):
        for each in template.values() if isinstance(template, dict) else template:
            _check_placeholders(each, names, where)


def _kind(value: Any) -> str:
    kinds = {bool: "true or false", str: "a text", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return kinds.get(type(value), "a date")
