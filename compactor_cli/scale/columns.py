"""Columns: where in the rows of a table the conversations are, as ``--column`` and ``column=`` name it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from compactor_cli.model.errors import InputError
from compactor_cli.scale.cells import CellMaker, RowCell, holds_conversation

# A column, and the keys inside its values where these are structures.
ColumnPath = tuple[str, ...]


def column_paths(text: str, columns: Sequence[str], *, place: str = "") -> tuple[ColumnPath, ...]:
    """What ``chosen,rejected`` or ``extra.chat`` means among these columns; a column's own name may hold dots.

    Raises `InputError` for a column that is not there.
    """
    found = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        head, *inner = (name,) if name in columns else name.split(".")
        if head not in columns:
            advice = f"columns: {', '.join(columns)}"
            raise InputError(f"no column is called {head!r}", place=place or None, next_step=advice)
        found.append((head, *inner))
    return tuple(dict.fromkeys(found))


def check_column(path: ColumnPath, values: Iterable[Any], columns: Sequence[str], *, place: str = "") -> None:
    """Raise `InputError` unless these values of a column hold a conversation, or nothing at all."""
    present = [value for value in values if value]
    if present and not any(holds_conversation(path[-1], _at(value, path[1:])) for value in present):
        advice = f"columns: {', '.join(columns)}; inside a column of structures: {path[0]}.KEY"
        raise InputError(f"the column {'.'.join(path)!r} holds no conversation", place=place or None, next_step=advice)


def compact_at(path: ColumnPath, value: Any, cells: CellMaker) -> tuple[Any, RowCell | None]:
    """A value of the column ``path[0]`` with the conversation in it compacted; None where it holds nothing."""
    inner = _at(value, path[1:])
    if not inner:
        return value, None
    made, cell = cells.compact_any(inner)
    return _with(value, path[1:], made), cell


def _at(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _with(value: Any, keys: Sequence[str], inner: Any) -> Any:
    return {**value, keys[0]: _with(value[keys[0]], keys[1:], inner)} if keys else inner
