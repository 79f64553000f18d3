"""Paths, conditions and rules for parts of a format's specification.

A *path* is dotted (``data.toolRequests``, ``parts.0.text``); ``a|b`` is the first of two that is there and not null,
``""`` the value itself; a key with dots in it stands in quotes (``attributes."gen_ai.input.messages"``). A *condition*
is a table of path = test, all of which must hold, or a list of such tables, one of which must. In the paths of a
condition ``calls[any].id`` and ``calls[all].id`` stand for the elements of a list. A *test* is a value, a list of
values (one of them), ``"prefix*"``, ``"*suffix"``, ``"nocase:word|word"``, a kind of value (see `KINDS`), or a
condition that an element passes.

A *rule* names what is read (a key of `MAKERS`) and where; ``when`` says of which records. With ``each`` it holds for
the elements of a list or an object: of each the first rule of ``of`` that applies is followed. A rule with a call and a
result reads the result once there is one. ``inside`` is where in the element all of it stands; ``same_in`` a place of
the record where the same may stand again. ``whose = "client"``: not the person's words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from compactor_cli.formats import gemini, located
from compactor_cli.formats.base import JsonPath
from compactor_cli.formats.contents import arguments, listed, string
from compactor_cli.formats.located import LocatedPart, at
from compactor_cli.model.transcript import Text, ToolCall

Test = Callable[[Any], bool]
_MISSING: Any = object()
_QUANTIFIERS: Mapping[str, Callable[..., bool]] = {"[any]": any, "[all]": all}
_NOCASE = "nocase:"

# What a template or a rule has filled in.
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
    """What stands at the first of a path's alternatives that is there and not null, else None."""
    return next((found for place in _alternatives(path) if (found := at(value, place)) is not None), None)


def place_of(value: Any, path: str) -> JsonPath | None:
    """Where that is."""
    return next((place for place in _alternatives(path) if at(value, place) is not None), None)


def condition(tables: Mapping[str, Any] | list[Mapping[str, Any]]) -> Test:
    """Whether a value passes all tests of a table, of any table of a list."""
    # One that passes is enough of a list; one that fails, of a table.
    decides = isinstance(tables, list)
    if isinstance(tables, list):
        tests = [condition(table) for table in tables]
    else:
        tests = [_path_test(path, _test(wanted)) for path, wanted in tables.items()]
    if len(tests) == 1:
        return tests[0]

    def passes(value: Any) -> bool:
        # A loop, not all(): this is asked of every record of a file.
        for test in tests:
            if test(value) is decides:
                return decides
        return not decides

    return passes


def _found(value: Any, place: JsonPath) -> Any:
    for step in place:
        if isinstance(value, dict):
            value = value.get(step, _MISSING)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return _MISSING
    return value


def _path_test(path: str, test: Test) -> Test:
    for mark, quantifier in _QUANTIFIERS.items():
        before, _, after = path.partition(mark)
        if mark in path:
            list_place, inner = steps(before), _path_test(after.removeprefix("."), test)
            return lambda value: isinstance(found := _found(value, list_place), list) and quantifier(map(inner, found))
    if "|" in path:
        return lambda value: test(lookup(value, path))
    place = steps(path)
    if len(place) == 1 and isinstance(place[0], str):
        key = place[0]
        return lambda value: test(value.get(key, _MISSING) if isinstance(value, dict) else _MISSING)
    return lambda value: test(_found(value, place))


def _test(wanted: Any) -> Test:
    if isinstance(wanted, list):
        return _one_of(wanted)
    if isinstance(wanted, dict):
        return condition(wanted)
    if not isinstance(wanted, str):
        return lambda found: type(found) is type(wanted) and found == wanted
    if wanted in KINDS:
        return KINDS[wanted]
    if wanted.startswith(_NOCASE):
        words = frozenset(wanted.removeprefix(_NOCASE).lower().split("|"))
        return lambda found: isinstance(found, str) and found.lower() in words
    if wanted.endswith("*"):
        return lambda found: isinstance(found, str) and found.startswith(wanted[:-1])
    if wanted.startswith("*"):
        return lambda found: isinstance(found, str) and found.endswith(wanted[1:])
    return lambda found: isinstance(found, str) and found == wanted


def _one_of(wanted: list[Any]) -> Test:
    """A list of plain words is a set: most conditions ask for the kind of a record, and are asked of each."""
    texts = [each for each in wanted if isinstance(each, str) and each not in KINDS and not each.startswith(_NOCASE)]
    plain = [each for each in texts if "*" not in (each[:1], each[-1:])]
    words = frozenset(plain)
    others = [_test(each) for each in wanted if each not in plain]
    return lambda found: (isinstance(found, str) and found in words) or any(test(found) for test in others)


Rule = Mapping[str, Any]
Reader = Callable[[Any], list[LocatedPart]]
# Of a value, its place in the record, and the record.
_Inner = Callable[[Any, JsonPath, Any], list[LocatedPart]]
_Maker = Callable[[Any, JsonPath, Any, Rule], Iterator[LocatedPart]]


def reader(rules: Sequence[Rule], *, persons_only: bool = False) -> Reader:
    """What reads a record by these rules, in their order; without the words that are the client's (``whose``)."""
    readers = [(condition(rule.get("when", {})), _rule_reader(rule, persons_only)) for rule in rules]

    def parts(record: Any) -> list[LocatedPart]:
        if not isinstance(record, dict):
            return []
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
        # Where the same stands again: at this place of the record, or among what is listed there.
        place = steps(same_in)
        there = at(record, place)
        others = [((*place, i), each) for i, each in enumerate(there)] if isinstance(there, list) else [(place, there)]
        copies = [where for where, each in others if each == value]
        return [_with_copies(part, len(base), copies) for part in found]

    return parts


def _with_copies(part: LocatedPart, depth: int, copies: Sequence[JsonPath]) -> LocatedPart:
    again = ((*copy, *place[depth:]) for copy in copies for place in part.places)
    return part._replace(places=(*part.places, *again))


def _text(value: Any, base: JsonPath, path: str, rule: Rule) -> Iterator[LocatedPart]:
    if text := string(lookup(value, path)):
        there = [place_of(value, one) for one in (path, *rule.get("copies", ()))]
        yield located.text(text, *((*base, *place) for place in there if place is not None))


def _thinking(value: Any, base: JsonPath, path: str, rule: Rule) -> Iterator[LocatedPart]:
    if text := string(lookup(value, path)):
        yield located.thinking(text)


def _call(value: Any, base: JsonPath, fields: Mapping[str, str], rule: Rule) -> Iterator[LocatedPart]:
    if not isinstance(value, dict):
        return
    place = place_of(value, fields["arguments"])
    call_id, name = string(lookup(value, fields.get("id", "?"))), _name(value, fields)
    asked = {} if place is None else arguments(at(value, place))
    yield LocatedPart(ToolCall(id=call_id, name=name, arguments=asked), () if place is None else ((*base, *place),))


def _result(value: Any, base: JsonPath, fields: Mapping[str, Any], rule: Rule) -> Iterator[LocatedPart]:
    place = place_of(value, fields["text"])
    if place is None and "call" in rule:
        return
    error = fields.get("error", False)
    piece = located.result(
        at(value, place) if place is not None else None,
        (*base, *(place or ())),
        call_id=lookup(value, fields.get("id", "?")),
        name=_name(value, fields),
        is_error=error if isinstance(error, bool) else condition(error)(value),
    )
    is_writable = place is not None and isinstance(at(value, place), str | dict | list)
    yield piece if is_writable else LocatedPart(piece.part)


def _name(value: Any, fields: Mapping[str, Any]) -> str:
    name = string(lookup(value, fields.get("name", "?"))).removeprefix(fields.get("name_after", ""))
    return name or fields.get("named", "")


def _blocks(value: Any, base: JsonPath, path: str, rule: Rule) -> Iterator[LocatedPart]:
    """Content as a text or as blocks of Anthropic's or OpenAI's API."""
    place, ending = place_of(value, path), rule.get("without_ending", "")
    content = at(value, place) if place is not None else None
    for piece in located.content(content, *base, *(place or ())):
        part = piece.part
        if ending and isinstance(part, Text) and part.text.endswith(ending):
            part = Text(text=part.text.removesuffix(ending).rstrip())
        yield piece._replace(part=part)


def _gemini(value: Any, base: JsonPath, path: str, rule: Rule) -> Iterator[LocatedPart]:
    place = steps(path)
    content = at(value, place)
    for piece in gemini.pieces(content) if gemini.is_content(content) else ():
        yield piece.below(*base, *place)


def _json(value: Any, base: JsonPath, path: str, rule: Rule) -> Iterator[LocatedPart]:
    yield located.text(json.dumps(lookup(value, path), ensure_ascii=False))


def _media(value: Any, base: JsonPath, path: str, rule: Rule) -> Iterator[LocatedPart]:
    yield located.media(string(lookup(value, path)) or "unknown", value)


MAKERS: Mapping[str, _Maker] = {
    "thinking": _thinking,
    "text": _text,
    "blocks": _blocks,
    "gemini": _gemini,
    "call": _call,
    "result": _result,
    "json": _json,
    "media": _media,
}
