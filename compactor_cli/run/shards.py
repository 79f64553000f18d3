"""Shards: inputs parted into pieces of work, the same for whoever looks; their options and metrics."""

from __future__ import annotations

import heapq
import itertools
import re
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from compactor_cli.archive.targets import Destination, plan_targets
from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.model.settings import Settings
from compactor_cli.model.value import dataclass
from compactor_cli.presets import DEFAULT, load_preset
from compactor_cli.presets.values import settings_from
from compactor_cli.read.sources import DEFAULT_INCLUDE, InputSource, Walk, find_sources
from compactor_cli.read.streams import (
    STDIN,
    Slice,
    look_at,
)
from compactor_cli.run.columns import group_sizes, is_parquet
from compactor_cli.run.jobs import row_dialect

if TYPE_CHECKING:
    pass


DEFAULT_SPLIT_BYTES = 128 << 20
INCLUDE = (*DEFAULT_INCLUDE, "*.parquet")
_PART = re.compile(r"-\d{5,}-of-\d{5,}(?=\.|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One piece of work. ``part`` None: the whole input."""

    input: str
    output: str
    size_bytes: int
    part: Slice | None = None


def plan_shards(
    sources: Sequence[InputSource], output_dir: str, split_bytes: int = DEFAULT_SPLIT_BYTES
) -> tuple[Shard, ...]:
    """The shards of these inputs, below ``output_dir`` where a run with ``--output-dir`` would put them.

    A file of rows that is not packed and larger than ``split_bytes`` (0: none) is parted at the beginnings of rows,
    a Parquet file at its row groups: ``rows-00002-of-00016.jsonl``; joined in the order of their names, the outputs
    are those of the whole file. All else is a shard as it is. The shards depend on the inputs and ``split_bytes``
    alone. Raises `UsageError` for outputs that clash, with one another or with those of another parting.
    """
    for source in sources:
        if source.path == STDIN:
            raise UsageError("standard input cannot be parted", next_step="name files")
    targets = plan_targets(sources, Destination(output_dir=output_dir, force=True))
    pairs = tuple(zip(sources, targets, strict=True))
    shards = tuple(shard for source, target in pairs for shard in _shards(source.path, target.path, split_bytes))
    _check_parting({target.path for target in targets}, {shard.output for shard in shards})
    return shards


def shards_below(folder: str, output_dir: str, split_bytes: int = DEFAULT_SPLIT_BYTES) -> tuple[Shard, ...]:
    """The shards of all JSONL and Parquet files below a folder."""
    sources = find_sources([folder], recursive=True, walk=Walk(include=INCLUDE, skip=(output_dir,)))
    return plan_shards(sources, output_dir, split_bytes)


def share(shards: Sequence[Shard], index: int, count: int) -> tuple[Shard, ...]:
    """Share ``index`` (from 1) of ``count``, in order: the largest shards go first, each to the least loaded.

    Graham's rule of the longest processing time: no share is above 4/3 of the best possible largest one (R. Graham,
    "Bounds on Multiprocessing Timing Anomalies", SIAM J. Appl. Math. 17, 1969).
    """
    loads = [(0, number) for number in range(1, count + 1)]
    mine: set[int] = set()
    for place in sorted(range(len(shards)), key=lambda place: (-shards[place].size_bytes, shards[place].output)):
        load, number = heapq.heappop(loads)
        # Every shard costs something, however small: files of nothing are spread as well.
        heapq.heappush(loads, (load + shards[place].size_bytes + 1, number))
        if number == index:
            mine.add(place)
    return tuple(shard for place, shard in enumerate(shards) if place in mine)


def _shards(source: str, output: str, split_bytes: int) -> Iterator[Shard]:
    try:
        size_bytes = look_at(source).size_bytes
        parts = _parts(source, size_bytes, split_bytes)
    except InputError:
        size_bytes, parts = 0, []  # it fails when its turn comes, and the others go on
    if len(parts) < 2:
        yield Shard(input=source, output=output, size_bytes=size_bytes)
        return
    for number, (part, part_bytes) in enumerate(parts):
        yield Shard(input=source, output=_named(output, number, len(parts)), size_bytes=part_bytes, part=part)


def _parts(source: str, size_bytes: int, split_bytes: int) -> list[tuple[Slice, int]]:
    """The slices, each with its size. Fewer than two: the file is not parted."""
    if not split_bytes or size_bytes <= split_bytes:
        return []
    if is_parquet(source):
        return list(_grouped(group_sizes(source), split_bytes))
    if not row_dialect(source):
        return []
    count = -(-size_bytes // split_bytes)
    places = [size_bytes * number // count for number in range(count + 1)]
    return [(Slice(start=a, stop=b), b - a) for a, b in itertools.pairwise(places)]


def _grouped(sizes: Sequence[int], split_bytes: int) -> Iterator[tuple[Slice, int]]:
    """Neighbouring row groups together, as long as they are no larger than ``split_bytes``."""
    start, held = 0, 0
    for number, size in enumerate(sizes):
        if held and held + size > split_bytes:
            yield Slice(start=start, stop=number), held
            start, held = number, 0
        held += size
    if sizes:
        yield Slice(start=start, stop=len(sizes)), held


def _named(output: str, number: int, count: int) -> str:
    path = Path(output)
    stem, dot, endings = path.name.partition(".")
    return str(path.with_name(f"{stem}-{number:05}-of-{count:05}{dot}{endings}"))


def _check_parting(whole: Set[str], planned: Set[str]) -> None:
    """Raise `UsageError` if an output folder holds outputs of these inputs in other parts than planned."""
    for folder in sorted({str(Path(path).parent) for path in whole}):
        for path in Path(folder).iterdir() if Path(folder).is_dir() else ():
            origin = str(path.with_name(_PART.sub("", path.name)))
            if origin in whole and str(path) not in planned:
                advice = "the input or --split changed since: remove it, or use another --output-dir"
                raise UsageError("is of another parting of its input", place=str(path), next_step=advice)


def settings_of(preset: str = "", **changes: object) -> Settings:
    """Settings by names, as a configuration file has them: ``settings_of(target="16k")``. Raises `UsageError`."""
    return settings_from(changes, load_preset(preset or DEFAULT).settings, "settings")
