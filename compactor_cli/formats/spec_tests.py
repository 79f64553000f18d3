"""Paths and conditions of a format's specification.

A *path* is dotted (``data.toolRequests``, ``parts.0.text``); ``a|b`` is the first of two that is there and not null,
``""`` the value itself. A *condition* is a table of path = test, all of which must hold, or a list of such tables, one
of which must. In the paths of a condition ``calls[any].id`` and ``calls[all].id`` stand for the elements of a list. A
*test* is a value, a list of values (one of them), ``"prefix*"``, ``"nocase:word"``, or a kind of value: see `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from compactor_cli.formats.located_parts import Place

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
