"""Datasets: the columns of a batch, as `Dataset.map` of Hugging Face datasets gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from compactor_cli.model.errors import InputError
from compactor_cli.run.rows import RowMaker
from compactor_cli.scale.cells import CellMaker, holds_conversation
from compactor_cli.scale.work import mapped

if TYPE_CHECKING:
    from compactor_cli.run.models import ModelRun


def compact_columns(
    batch: Mapping[str, Sequence[Any]],
    rows: RowMaker,
    *,
    column: str = "",
    reasons: str = "",
    dialect: str = "",
    models: ModelRun | None = None,
) -> dict[str, list[Any]]:
    """The columns with conversations, compacted: ``column``, several of them, or the first that holds any.

    A row that fails stays as it was, with the reason in the column ``reasons``. Raises `InputError` for it where no
    such column is named, and where a column is not there or holds no conversation.
    """
    names = [name.strip() for name in column.split(",")] if column else [_column(batch)]
    compacted: dict[str, list[Any]] = {}
    failures: list[list[str]] = []
    for name in names:
        _check(batch, name)
        maker = CellMaker(rows=rows, column=name, dialect=dialect)
        compacted[name], why = [], []
        for number, (value, (made, reason)) in enumerate(mapped(partial(_made, maker), batch[name], models)):
            if reason and not reasons:
                advice = 'name a column for the reasons (reasons="why") to keep such rows as they are'
                raise InputError(reason, next_step=advice, place=f"column {name}, row {number}")
            compacted[name].append(made if made is not None else value)
            why.append(reason)
        failures.append(why)
    if reasons:
        compacted[reasons] = ["; ".join(filter(None, row)) for row in zip(*failures, strict=True)]
    return compacted


def _made(maker: CellMaker, value: Any) -> tuple[Any, str]:
    """The value compacted, and why it could not be; an empty one is no conversation and stays."""
    if not value:
        return value, ""
    made, cell = maker.compact_any(value)
    return made, cell.reason


def _check(batch: Mapping[str, Sequence[Any]], name: str) -> None:
    """Raise `InputError` unless the column is there and holds a conversation, or nothing at all."""
    advice = f"columns: {', '.join(batch)}"
    if name not in batch:
        raise InputError(f"no column is called {name!r}", next_step=advice)
    values = [value for value in batch[name] if value]
    if values and not any(holds_conversation(name, value) for value in values):
        raise InputError(f"the column {name!r} holds no conversation", next_step=advice)


def _column(batch: Mapping[str, Sequence[Any]]) -> str:
    for name, values in batch.items():
        if any(holds_conversation(name, value) for value in values if value):
            return name
    advice = f"name it with column=…; columns: {', '.join(batch)}"
    raise InputError("no column holds conversations", next_step=advice)
