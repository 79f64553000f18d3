"""Values behave as the dataclasses that they stand for."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from compactor_cli.model.value import dataclass


def _point() -> Any:
    """A value with all that a field can have, of which there is no instance yet."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Point:
        __qualname__ = "Point"
        x: int
        y: int = 2
        tags: list[str] = dataclasses.field(default_factory=list)
        note: str = dataclasses.field(default="", compare=False)

        @property
        def total(self) -> int:
            return self.x + self.y

    return Point


Point = _point()


def _as_dataclasses_make_it() -> Any:
    fields = [
        ("x", int),
        ("y", int, 2),
        ("tags", list[str], dataclasses.field(default_factory=list)),
        ("note", str, dataclasses.field(default="", compare=False)),
    ]
    return dataclasses.make_dataclass("Point", fields, frozen=True, slots=True, kw_only=True)


_TRIED: dict[str, Callable[[Any], Any]] = {
    "printed": lambda kind: str(kind(x=1, note="n")),
    "equal": lambda kind: kind(x=1) == kind(x=1, y=2, tags=[], note="not compared"),
    "different": lambda kind: kind(x=1) != kind(x=2),
    "of another type": lambda kind: kind(x=1) == (1, 2, []),
    "same hash": lambda kind: hash(kind(x=1, tags=())) == hash(kind(x=1, tags=(), note="n")),
    "no hash": lambda kind: hash(kind(x=1)),
    "own default": lambda kind: kind(x=1).tags is kind(x=1).tags,
    "as a dict": lambda kind: dataclasses.asdict(kind(x=1, tags=["a"])),
    "replaced": lambda kind: dataclasses.replace(kind(x=1), y=5).y,
    "copied": lambda kind: copy.deepcopy(kind(x=1, tags=["a"])) == kind(x=1, tags=["a"]),
    "fields": lambda kind: [(item.name, item.default) for item in dataclasses.fields(kind)],
    "parameters": lambda kind: [(item.name, item.kind) for item in _parameters(kind)],
    "missing": lambda kind: kind(y=1),
    "unknown": lambda kind: kind(x=1, z=3),
    "by place": lambda kind: kind(1),
    "set": lambda kind: setattr(kind(x=1), "x", 2),
    "added": lambda kind: hasattr(kind(x=1), "__dict__"),
    "deleted": lambda kind: delattr(kind(x=1), "x"),
}


def _often_made(kind: Any) -> Any:
    """The same, of which so many instances were made that its `__init__` is compiled."""
    for _ in range(50):
        kind(x=1)
    return kind


def _parameters(kind: Any) -> list[inspect.Parameter]:
    _often_made(kind)
    return list(inspect.signature(kind).parameters.values())


def _outcome(trial: Callable[[Any], Any], kind: Any) -> Any:
    try:
        return trial(kind)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("trial", _TRIED.values(), ids=_TRIED)
def test_a_value_behaves_as_a_dataclass(trial: Callable[[Any], Any]) -> None:
    assert _outcome(trial, _point()) == _outcome(trial, _as_dataclasses_make_it())


@pytest.mark.parametrize("trial", _TRIED.values(), ids=_TRIED)
def test_a_value_that_is_often_made_behaves_as_before(trial: Callable[[Any], Any]) -> None:
    assert _outcome(trial, _often_made(_point())) == _outcome(trial, _as_dataclasses_make_it())


def test_a_value_is_the_same_in_another_process() -> None:
    point = Point(x=1, tags=["a"], note="kept")
    again = pickle.loads(pickle.dumps(point))
    assert (again, again.note, again.total) == (point, "kept", 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        again.x = 2
