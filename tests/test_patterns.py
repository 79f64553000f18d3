"""Patterns: none of the package can take a time that doubles with each character of a text."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Sequence
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import compactor_cli

# A few of all kinds of characters.
SAMPLE = frozenset(map(chr, (9, 10, *range(32, 127), 0xE9, 0x4E2D)))
REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT)


def _patterns() -> Iterator[tuple[str, str, int]]:
    """The name, text and flags of every pattern of the package that a module names."""
    for module in pkgutil.walk_packages(compactor_cli.__path__, "compactor_cli."):
        if module.name.startswith("compactor_cli.adapters.") or module.name.endswith("__main__"):
            continue
        for name, named in vars(importlib.import_module(module.name)).items():
            values = named.values() if isinstance(named, dict) else named if isinstance(named, tuple) else (named,)
            for value in values:
                is_pattern = isinstance(value, re.Pattern) or type(value).__name__ == "_Pattern"
                if is_pattern and isinstance(value.pattern, str):
                    yield f"{module.name}.{name}", value.pattern, value.flags & ~re.UNICODE


def _characters(node: tuple[Any, Any], flags: int) -> frozenset[str]:
    """The characters of the sample that a node for one character matches; empty for any other node."""
    if node[0] not in (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN):
        return frozenset()
    state = parser.State()
    matches = re._compiler.compile(parser.SubPattern(state, [node]), flags & (re.DOTALL | re.IGNORECASE))  # type: ignore[attr-defined]
    return frozenset(filter(matches.fullmatch, SAMPLE))


def _first(nodes: Sequence[tuple[Any, Any]], flags: int) -> tuple[frozenset[str], bool]:
    """The characters that may begin a text that these nodes match, and whether they match an empty one."""
    found: frozenset[str] = frozenset()
    for kind, value in nodes:
        if kind in (*REPEATS, op.POSSESSIVE_REPEAT):
            own, is_empty = _first(value[2], flags)
            is_empty |= value[0] == 0
        elif kind is op.SUBPATTERN:
            own, is_empty = _first(value[3], flags)
        elif kind is op.ATOMIC_GROUP:
            own, is_empty = _first(value, flags)
        elif kind is op.BRANCH:
            each = [_first(branch, flags) for branch in value[1]]
            own, is_empty = frozenset().union(*(one for one, _ in each)), any(empty for _, empty in each)
        elif kind in (op.AT, op.ASSERT, op.ASSERT_NOT):
            own, is_empty = frozenset(), True
        elif kind in (op.GROUPREF, op.GROUPREF_EXISTS):
            own, is_empty = SAMPLE, True
        else:
            own, is_empty = _characters((kind, value), flags), False
        found |= own
        if not is_empty:
            return found, False
    return found, True


def _bodies(nodes: Sequence[tuple[Any, Any]]) -> Iterator[Sequence[tuple[Any, Any]]]:
    """What is repeated without end, each alternative of it on its own, at any depth."""
    for kind, value in nodes:
        inner: list[Any] = []
        if kind in REPEATS:
            inner = [value[2]]
            if value[1] is op.MAXREPEAT:
                yield from _alternatives(value[2])
        elif kind is op.POSSESSIVE_REPEAT:
            inner = [value[2]]
        elif kind is op.SUBPATTERN:
            inner = [value[3]]
        elif kind is op.ATOMIC_GROUP:
            inner = [value]
        elif kind is op.BRANCH:
            inner = value[1]
        elif kind in (op.ASSERT, op.ASSERT_NOT):
            inner = [value[1]]
        for one in inner:
            yield from _bodies(one)


def _alternatives(nodes: Sequence[tuple[Any, Any]]) -> list[list[tuple[Any, Any]]]:
    """The sequences of nodes that a repeated part may be, groups and alternatives at its top level resolved."""
    found: list[list[tuple[Any, Any]]] = [[]]
    for kind, value in nodes:
        if kind is op.SUBPATTERN:
            found = [[*before, *one] for before in found for one in _alternatives(value[3])][:200]
        elif kind is op.BRANCH:
            found = [[*before, *one] for before in found for branch in value[1] for one in _alternatives(branch)][:200]
        else:
            found = [[*before, (kind, value)] for before in found]
    return found


def _is_ambiguous(body: Sequence[tuple[Any, Any]], flags: int) -> bool:
    """Whether a run of characters in a repeated part can be divided among its rounds in several ways."""
    begins, _ = _first(body, flags)
    for place, (kind, value) in enumerate(body):
        if kind not in REPEATS or value[1] is not op.MAXREPEAT or len(value[2]) != 1:
            continue
        run = _characters(value[2][0], flags)
        after, is_end = _first(body[place + 1 :], flags)
        others = [_first([node], flags) for node in (*body[:place], *body[place + 1 :])]
        # All that a round must have can be in the run, too, so that the run can hold a whole round.
        holds_round = begins & run and all(is_empty or one & run for one, is_empty in others)
        if run and holds_round and (after & run or is_end):
            return True
    return False


def test_the_rule_finds_what_takes_exponential_time() -> None:
    def found(text: str, flags: int = 0) -> bool:
        return any(_is_ambiguous(body, flags) for body in _bodies(parser.parse(text, flags)))

    assert found(r"\*\*(?:[^*\n]+ ){6,}[^*\n]+[.!?]\*\*$")
    assert found(r"(?:\w+,?)*;")
    assert not found(r"\*\*(?:[^*\s]+ )+[^*\n]+[.!?]\*\*$")
    assert not found(r"(?:.*\n)*?=")
    assert found(r"(?:.*\n)*?=", re.DOTALL)


@pytest.mark.parametrize(("name", "text", "flags"), [pytest.param(*one, id=one[0]) for one in _patterns()])
def test_no_pattern_divides_a_text_in_as_many_ways_as_it_has_characters(name: str, text: str, flags: int) -> None:
    assert not [body for body in _bodies(parser.parse(text, flags)) if _is_ambiguous(body, flags)], name
