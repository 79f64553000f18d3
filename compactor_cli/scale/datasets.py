"""Datasets: the columns of a batch, as `Dataset.map` of Hugging Face datasets gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from compactor_cli.model.errors import InputError
from compactor_cli.run.compact_row import RowMaker
from compactor_cli.scale.cells import CellMaker, holds_conversation
from compactor_cli.scale.columns import check_column, column_paths, compact_at
from compactor_cli.scale.work import mapped

if TYPE_CHECKING:
    from compactor_cli.run.model_run import ModelRun


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

    The conversations are in ``column``, whatever it is called, in several (``"chosen,rejected"``), or inside a column
    of structures (``"extra.chat"``). A row that fails stays as it was, with the reason in the column ``reasons``.
    Raises `InputError` for it where no such column is named, and where a named column is not there or holds no
    conversation, and where no column does.
    """
    columns = tuple(batch)
    paths = column_paths(column, columns) if column else ((_column(batch),),)
    compacted: dict[str, list[Any]] = {}
    failures: list[list[str]] = []
    for path in paths:
        values = compacted.get(path[0]) or batch[path[0]]
        check_column(path, values, columns)
        maker = CellMaker(rows=rows, column=path[-1], dialect=dialect)
        made = [result for _, result in mapped(partial(compact_at, path, cells=maker), values, models)]
        why = [cell.reason if cell else "" for _, cell in made]
        for number, reason in enumerate(why):
            if reason and not reasons:
                advice = 'name a column for the reasons (reasons="why") to keep such rows as they are'
                raise InputError(reason, next_step=advice, place=f"column {'.'.join(path)}, row {number}")
        compacted[path[0]] = [value for value, _ in made]
        failures.append(why)
    if reasons:
        compacted[reasons] = ["; ".join(filter(None, row)) for row in zip(*failures, strict=True)]
    return compacted


def _column(batch: Mapping[str, Sequence[Any]]) -> str:
    for name, values in batch.items():
        if any(holds_conversation(name, value) for value in values if value):
            return name
    advice = f"name it with column=…; columns: {', '.join(batch)}"
    raise InputError("no column holds conversations", next_step=advice)
