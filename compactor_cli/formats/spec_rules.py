"""Paths, conditions and rules for parts of a format's specification.

A *path* is dotted (``data.toolRequests``, ``parts.0.text``); ``a|b`` is the first of two that is there and not null,
``""`` the value itself. A *condition* is a table of path = test, all of which must hold, or a list of such tables, one
of which must. In the paths of a condition ``calls[any].id`` and ``calls[all].id`` stand for the elements of a list. A
*test* is a value, a list of values (one of them), ``"prefix*"``, ``"nocase:word"``, or a kind of value: see `KINDS`.

A *rule* names what is read (a key of `MAKERS`) and where; ``when`` says of which records. With ``each`` it holds for
the elements of a list: of each the first rule of ``of`` that applies is followed. A rule with a call and a result
reads the result once there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from compactor_cli.formats import gemini_contents
from compactor_cli.formats.blocks import size_bytes
from compactor_cli.formats.contents import arguments, block_part, string
from compactor_cli.formats.located_parts import LocatedPart, Place, at, result_piece, text_pieces
from compactor_cli.model.transcript import Media, Text, Thinking, ToolCall, ToolResult

Test = Callable[[Any], bool]
_MISSING: Any = object()
_QUANTIFIERS: Mapping[str, Callable[..., bool]] = {"[any]": any, "[all]": all}
_NOCASE = "nocase:"

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
    "is:key": lambda found: found is not _MISSING,
    "is:no-key": lambda found: found is _MISSING,
}


@cache
def steps(path: str) -> Place:
    """The keys and indices of a path without alternatives."""
    return tuple(int(step) if step.isdigit() else step for step in path.split(".")) if path else ()


def lookup(value: Any, path: str) -> Any:
    """What stands at the first of a path's alternatives that is there and not null, else None."""
    place = place_of(value, path)
    return None if place is None else _found(value, place)


def place_of(value: Any, path: str) -> Place | None:
    """Where that is."""
    return next((place for place in map(steps, path.split("|")) if KINDS["is:present"](_found(value, place))), None)


def condition(tables: Mapping[str, Any] | list[Mapping[str, Any]]) -> Test:
    """Whether a value passes all tests of a table, of any table of a list."""
    if isinstance(tables, list):
        several = [condition(table) for table in tables]
        return lambda value: any(test(value) for test in several)
    tests = tuple(_path_test(path, _test(wanted)) for path, wanted in tables.items())

    def passes(value: Any) -> bool:
        # A loop, not all(): this is asked of every record of a file.
        for test in tests:  # noqa: SIM110
            if not test(value):
                return False
        return True

    return passes


def _found(value: Any, place: Place) -> Any:
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
        before, found, after = path.partition(mark)
        if found:
            return _elements_test(steps(before), quantifier, _path_test(after.removeprefix("."), test))
    if "|" in path:
        return lambda value: test(lookup(value, path))
    place = steps(path)
    if len(place) == 1:
        key = place[0]
        return lambda value: test(value.get(key, _MISSING) if isinstance(value, dict) else _MISSING)
    return lambda value: test(_found(value, place))


def _elements_test(place: Place, quantifier: Callable[..., bool], test: Test) -> Test:
    def passes(value: Any) -> bool:
        listed = _found(value, place)
        return isinstance(listed, list) and quantifier(map(test, listed))

    return passes


def _test(wanted: Any) -> Test:
    if isinstance(wanted, list):
        return _one_of(wanted)
    if not isinstance(wanted, str):
        return lambda found: type(found) is type(wanted) and found == wanted
    if wanted in KINDS:
        return KINDS[wanted]
    if wanted.startswith(_NOCASE):
        word = wanted.removeprefix(_NOCASE).lower()
        return lambda found: isinstance(found, str) and found.lower() == word
    if wanted.endswith("*"):
        return lambda found: isinstance(found, str) and found.startswith(wanted[:-1])
    return lambda found: isinstance(found, str) and found == wanted


def _one_of(wanted: list[Any]) -> Test:
    """A list of plain words is a set: most conditions ask for the kind of a record, and are asked of each."""
    plain = [each for each in wanted if isinstance(each, str) and not _is_pattern(each)]
    words = frozenset(plain)
    others = [_test(each) for each in wanted if each not in plain]
    return lambda found: (isinstance(found, str) and found in words) or any(test(found) for test in others)


def _is_pattern(word: str) -> bool:
    return word in KINDS or word.startswith(_NOCASE) or word.endswith("*")


Rule = Mapping[str, Any]
Reader = Callable[[Any], list[LocatedPart]]
_Maker = Callable[[Any, Place, Any, Rule], Iterator[LocatedPart]]


def reader(rules: Sequence[Rule]) -> Reader:
    """What reads a record by these rules, in their order."""
    readers = [_rule_reader(rule) for rule in rules]
    return lambda value: [piece for read in readers for piece in read(value)] if isinstance(value, dict) else []


def _rule_reader(rule: Rule) -> Reader:
    applies = condition(rule.get("when", {}))
    read = _list_reader(rule) if "each" in rule else _maker(rule)
    return lambda value: read(value, ()) if applies(value) else []


def _list_reader(rule: Rule) -> Callable[[Any, Place], list[LocatedPart]]:
    place = steps(rule["each"])
    inner = [(condition(one.get("when", {})), _maker(one)) for one in rule["of"]]

    def pieces(value: Any, base: Place) -> list[LocatedPart]:
        listed = at(value, place)
        found: list[LocatedPart] = []
        for i, element in enumerate(listed if isinstance(listed, list) else ()):
            make = next((make for applies, make in inner if applies(element)), None)
            found += make(element, (*place, i)) if make else ()
        return found

    return pieces


def _maker(rule: Rule) -> Callable[[Any, Place], list[LocatedPart]]:
    makers = [(make, rule[kind]) for kind, make in MAKERS.items() if kind in rule]
    return lambda value, base: [piece for make, wanted in makers for piece in make(value, base, wanted, rule)]


def _text(value: Any, base: Place, path: str, rule: Rule) -> Iterator[LocatedPart]:
    if text := string(lookup(value, path)):
        there = [place_of(value, one) for one in (path, *rule.get("copies", ()))]
        yield LocatedPart(Text(text=text), tuple((*base, *place) for place in there if place is not None))


def _thinking(value: Any, base: Place, path: str, rule: Rule) -> Iterator[LocatedPart]:
    if text := string(lookup(value, path)):
        yield LocatedPart(Thinking(text=text))


def _call(value: Any, base: Place, fields: Mapping[str, str], rule: Rule) -> Iterator[LocatedPart]:
    if not isinstance(value, dict):
        return
    place = place_of(value, fields["arguments"])
    call_id, name = string(lookup(value, fields.get("id", "?"))), string(lookup(value, fields["name"]))
    asked = arguments(None if place is None else at(value, place))
    yield LocatedPart(ToolCall(id=call_id, name=name, arguments=asked), () if place is None else ((*base, *place),))


def _result(value: Any, base: Place, fields: Mapping[str, Any], rule: Rule) -> Iterator[LocatedPart]:
    place = place_of(value, fields["text"])
    if place is None and "call" in rule:
        return
    error = fields.get("error", False)
    piece = result_piece(
        at(value, place) if place is not None else None,
        (*base, *(place or ())),
        call_id=string(lookup(value, fields.get("id", "?"))),
        name=string(lookup(value, fields.get("name", "?"))),
        is_error=error if isinstance(error, bool) else condition(error)(value),
    )
    is_writable = place is not None and isinstance(at(value, place), str | dict | list)
    yield piece if is_writable else LocatedPart(piece.part)


def _blocks(value: Any, base: Place, path: str, rule: Rule) -> Iterator[LocatedPart]:
    """Content as a text or as blocks of Anthropic's or OpenAI's API."""
    place, ending = place_of(value, path), rule.get("without_ending", "")
    content = at(value, place) if place is not None else None
    here = (*base, *(place or ()))
    for i, piece in enumerate(text_pieces(content, here, block_part)):
        part = piece.part
        if ending and isinstance(part, Text) and part.text.endswith(ending):
            part = Text(text=part.text.removesuffix(ending).rstrip())
        key = {ToolCall: "input", ToolResult: "content"}.get(type(part))
        block = (*here, i) if isinstance(content, list) else here
        has_text = key is not None and at(value, (*block[len(base) :], key)) is not None
        yield LocatedPart(part, ((*block, key),) if key and has_text else piece.places)


def _gemini(value: Any, base: Place, path: str, rule: Rule) -> Iterator[LocatedPart]:
    place = steps(path)
    content = at(value, place)
    for piece in gemini_contents.pieces(content) if gemini_contents.is_content(content) else ():
        yield LocatedPart(piece.part, tuple((*base, *place, *inner) for inner in piece.places))


def _media(value: Any, base: Place, path: str, rule: Rule) -> Iterator[LocatedPart]:
    yield LocatedPart(Media(kind=string(lookup(value, path)) or "unknown", size_bytes=size_bytes(value)))


MAKERS: Mapping[str, _Maker] = {
    "thinking": _thinking,
    "text": _text,
    "blocks": _blocks,
    "gemini": _gemini,
    "call": _call,
    "result": _result,
    "media": _media,
}
