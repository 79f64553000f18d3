"""Values: frozen, slotted, keyword-only dataclasses that take a tenth of the time to import.

`dataclasses.dataclass` writes and compiles six methods of each class, in 0.6 ms. A start of the program imports a
hundred of these classes and makes instances of a third: here `__init__` is compiled when the first instance is made,
and the other methods are the same functions for all. Instances are made in two thirds of the time too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(**how: bool) -> Callable[[type], type]:
        """As `dataclasses.dataclass`, which makes all that is not frozen, slotted and keyword-only.

        Values are equal, hash, print, copy and pickle as its instances do; `fields`, `replace` and `asdict` take them.
        None is derived of another.
        """
        is_value = how == {"frozen": True, "slots": True, "kw_only": True}
        return _made if is_value else dataclasses.dataclass(**how)


def _made(cls: type) -> type:
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)
    # Dataclasses that are frozen may be derived of such ones alone.
    made.__dataclass_params__.frozen = True
    fields = dataclasses.fields(made)
    made._names = tuple(field.name for field in fields)
    made._compared = attrgetter(*(field.name for field in fields if field.compare))
    for name in _METHODS:
        if name not in vars(cls):
            setattr(made, name, vars(_Value)[name])
    return made  # type: ignore[no-any-return]


class _Value:
    """The methods of all values."""

    _names: tuple[str, ...]
    _compared: Callable[[object], object]

    def __init__(self, *args: object, **values: object) -> None:
        init: Any = _init(type(self))
        type(self).__init__ = init  # type: ignore[method-assign]
        init(self, *args, **values)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)
        return f"{type(self).__qualname__}({values})"

    def __eq__(self, other: object) -> bool:
        return self._compared(self) == self._compared(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._compared(self))

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> list[object]:
        return [getattr(self, name) for name in self._names]

    def __setstate__(self, state: list[object]) -> None:
        for name, value in zip(self._names, state, strict=True):
            object.__setattr__(self, name, value)


_METHODS = [name for name, method in vars(_Value).items() if callable(method)]


def _init(made: type) -> Callable[..., None]:
    """The method that `dataclasses` would have written, without annotations."""
    scope: dict[str, Any] = {"missing": dataclasses.MISSING}
    parameters, lines = "self, *", ""
    for field in dataclasses.fields(made):
        name = value = field.name
        scope[f"set_{name}"] = getattr(made, name).__set__
        parameters += f", {name}"
        if field.default is not dataclasses.MISSING:
            scope[f"default_{name}"] = field.default
            parameters += f"=default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            scope[f"make_{name}"] = field.default_factory
            parameters += "=missing"
            value = f"make_{name}() if {name} is missing else {name}"
        lines += f"\n set_{name}(self, {value})"
    exec(f"def __init__({parameters}):{lines}", scope)  # noqa: S102 -- names of fields, as in dataclasses
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init
