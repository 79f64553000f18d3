"""Work: the rows of a shard through the same row maker as any run's, in threads where models are waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from compactor_cli.archive.store import Archive
from compactor_cli.run.compact_row import RowMaker
from compactor_cli.scale.shard_options import ShardOptions

if TYPE_CHECKING:
    from compactor_cli.run.model_run import ModelRun

Item = TypeVar("Item")
Result = TypeVar("Result")


def row_maker(options: ShardOptions, models: ModelRun | None) -> RowMaker:
    """What compacts the rows of a shard."""
    maker = RowMaker(settings=options.settings, load_state=_no_state)
    folder = Path(options.archive_dir)
    if options.archive_dir:
        maker.load_state = Archive(folder).load_state
    if models is not None:
        run = models
        maker.summariser = lambda guidance: run.summariser(folder, guidance)
    return maker


def _no_state(name: str) -> bytes | None:
    return None


def mapped(
    work: Callable[[Item], Result], items: Iterable[Item], models: ModelRun | None
) -> Iterator[tuple[Item, Result]]:
    """Each item with its result, in order."""

    def done(item: Item) -> tuple[Item, Result]:
        return item, work(item)

    return models.mapped(done, items) if models else map(done, items)
