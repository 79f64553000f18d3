"""The parts of a record by the rules of a specification, each with the places of its text.

A rule names what is read (``text``, ``thinking``, ``call``, ``result``, ``blocks``, ``gemini`` or ``media``) and
where; ``when`` says of which records. With ``each`` it holds for the elements of a list: of each the first rule of
``of`` that applies is followed. A rule with a call and a result reads the result once there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from compactor_cli.formats import gemini_contents
from compactor_cli.formats.blocks import size_bytes
from compactor_cli.formats.contents import arguments, block_part, string
from compactor_cli.formats.located_parts import LocatedPart, Place, at, result_piece, text_pieces
from compactor_cli.formats.spec_tests import condition, lookup, place_of, steps
from compactor_cli.model.transcript import Media, Text, Thinking, ToolCall, ToolResult

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
