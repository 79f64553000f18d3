"""Datasets: a function for `Dataset.map` of Hugging Face datasets, which only knows columns of Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from compactor_cli.model.errors import InputError
from compactor_cli.scale.cells import CellMaker, holds_conversation
from compactor_cli.scale.columns import check_column, column_paths, compact_at
from compactor_cli.scale.options import ShardOptions, settings_of
from compactor_cli.scale.work import row_maker


def compact_batch(
    batch: Mapping[str, Sequence[Any]], *, column: str = "", preset: str = "", reasons: str = "", **settings: Any
) -> dict[str, list[Any]]:
    """For ``dataset.map(compact_batch, batched=True, fn_kwargs={"target": "16k"})``.

    The conversations are in ``column``, whatever it is called, in several (``"chosen,rejected"``), or inside a column
    of structures (``"extra.chat"``); default: the first column that holds any. They are there as text or as lists of
    messages; ``settings`` are named as in a configuration file. A row gives what `compact` gives; one that fails stays
    as it was, with the reason in the column ``reasons``, if one is named.
    Raises `InputError` where a named column is not there or holds no conversation, and where no column does.
    """
    columns = tuple(batch)
    paths = column_paths(column, columns) if column else ((_column(batch),),)
    compacted: dict[str, list[Any]] = {}
    failures: list[list[str]] = []
    for path in paths:
        values = compacted.get(path[0]) or batch[path[0]]
        check_column(path, values, columns)
        maker = _maker(path[-1], preset, tuple(sorted(settings.items())))
        made = [compact_at(path, value, maker) for value in values]
        compacted[path[0]] = [value for value, _ in made]
        failures.append([cell.reason if cell else "" for _, cell in made])
    if reasons:
        compacted[reasons] = ["; ".join(filter(None, row)) for row in zip(*failures, strict=True)]
    return compacted


def _column(batch: Mapping[str, Sequence[Any]]) -> str:
    for name, values in batch.items():
        if any(holds_conversation(name, value) for value in values if value):
            return name
    advice = f"name it with column=…; columns: {', '.join(batch)}"
    raise InputError("no column holds conversations", next_step=advice)


@lru_cache(maxsize=16)
def _maker(column: str, preset: str, settings: tuple[tuple[str, Any], ...]) -> CellMaker:
    options = ShardOptions(settings=settings_of(preset, **dict(settings)))
    return CellMaker(rows=row_maker(options, None), column=column)
