"""Values: frozen, slotted, keyword-only dataclasses that take a fraction of the time to import.

`dataclasses.dataclass` writes and compiles six methods for each class, which takes 0.6 ms. When the program starts, it
imports a hundred of these classes, but makes instances of only a third, and mostly a few. So here `dataclasses`
describes a class only when its fields are asked for, `__init__` is compiled after some instances were made, and all
classes share the other methods. Making an instance takes two thirds of the time that it takes with `dataclasses`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

# Instances that are made before `__init__` is compiled. To compile it takes as long as making some fifty without.
_UNCOMPILED = 20
_LEFT_OUT = ("__dict__", "__weakref__")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(**how: bool) -> Callable[[type], type]:
        """Like `dataclasses.dataclass`, which still makes every class that is not frozen, slotted and keyword-only.

        Values compare, hash, print, copy and pickle as instances of dataclasses do, and `fields`, `replace` and
        `asdict` accept them. A value class cannot be derived from another.
        """
        is_value = how == {"frozen": True, "slots": True, "kw_only": True}
        return _made if is_value else dataclasses.dataclass(**how)


def _made(cls: type) -> type:
    given = vars(cls)
    names = tuple(given.get("__annotations__", ()))
    declared = {name: given[name] for name in names if name in given}
    fields = {name: value for name, value in declared.items() if isinstance(value, dataclasses.Field)}
    defaults = {name: fields[name].default if name in fields else value for name, value in declared.items()}
    factories = {name: field.default_factory for name, field in fields.items()}
    own = {
        "__slots__": names,
        "__qualname__": cls.__qualname__,
        "__match_args__": (),
        "_names": names,
        "_declared": declared,
        "_defaults": {name: value for name, value in defaults.items() if value is not dataclasses.MISSING},
        "_factories": {name: make for name, make in factories.items() if make is not dataclasses.MISSING},
        "_compared": attrgetter(*(name for name in names if name not in fields or fields[name].compare)),
        "_uncompiled": _UNCOMPILED,
    }
    kept = {name: value for name, value in given.items() if name not in declared and name not in _LEFT_OUT}
    return type(cls)(cls.__name__, cls.__bases__, {**_SHARED, **kept, **own})


class _Described:
    """Makes, at first use, the attributes in which `dataclasses` looks for the fields and parameters of a class."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: Any) -> Any:
        # Without a docstring `dataclasses` writes one, which takes most of its time.
        body = {"__annotations__": owner.__annotations__, "__module__": owner.__module__, "__doc__": "A twin."}
        twin: Any = type(owner.__name__, (), {**body, **owner._declared})
        dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=True)(twin)
        # A frozen dataclass may be derived from frozen ones only.
        twin.__dataclass_params__.frozen = True
        for name in ("__dataclass_fields__", "__dataclass_params__"):
            setattr(owner, name, getattr(twin, name))
        return getattr(twin, self._name)


class _Value:
    """The methods and attributes that all value classes have."""

    __dataclass_fields__ = _Described()
    __dataclass_params__ = _Described()
    _names: tuple[str, ...]
    _declared: Mapping[str, object]
    _defaults: dict[str, object]
    _factories: Mapping[str, Callable[[], object]]
    _compared: Callable[[object], object]
    _uncompiled: int

    def __init__(self, *args: object, **values: object) -> None:
        kind, given = type(self), self._defaults | values
        for name in self._factories.keys() - given.keys():
            given[name] = self._factories[name]()
        kind._uncompiled -= 1
        if args or kind._uncompiled < 0 or given.keys() != set(self._names):
            kind.__init__ = init = _init(kind)  # type: ignore[method-assign]
            init(self, *args, **values)
            return
        for name, value in given.items():
            object.__setattr__(self, name, value)

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


_SHARED = {name: value for name, value in vars(_Value).items() if callable(value) or isinstance(value, _Described)}


def _init(made: type[_Value]) -> Callable[..., None]:
    """Compile the `__init__` that `dataclasses` would have written, without annotations."""
    scope: dict[str, Any] = {"missing": dataclasses.MISSING}
    parameters, lines = "self, *", ""
    for name in made._names:
        value = name
        scope[f"set_{name}"] = getattr(made, name).__set__
        parameters += f", {name}"
        if name in made._defaults:
            scope[f"default_{name}"] = made._defaults[name]
            parameters += f"=default_{name}"
        elif name in made._factories:
            scope[f"make_{name}"] = made._factories[name]
            parameters += "=missing"
            value = f"make_{name}() if {name} is missing else {name}"
        lines += f"\n set_{name}(self, {value})"
    exec(f"def __init__({parameters}):{lines}", scope)  # noqa: S102 -- names of fields, as in dataclasses
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init
