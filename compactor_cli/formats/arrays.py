"""Arrays: where a document holds its records, told by the first object among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from compactor_cli.formats.base import JsonPath
from compactor_cli.formats.located_parts import at


def array_path(value: Any, paths: Iterable[JsonPath], leads: Callable[[Any], bool]) -> JsonPath | None:
    """The first of these paths at which ``leads`` knows an array; of a bare array, the empty path."""
    if isinstance(value, list):
        return () if leads(value) else None
    return next((path for path in paths if leads(at(value, path))), None)


def first_object(elements: Any) -> Any:
    """The first object of an array; None where there is none, and where this is no array."""
    found = elements if isinstance(elements, list) else ()
    return next((element for element in found if isinstance(element, dict)), None)
