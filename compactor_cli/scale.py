"""Work beyond one machine: shards with paths in and paths out, for schedulers, engines and providers' batch jobs.

These are the names that a program of one's own needs; see docs/scale.md.
"""

from compactor_cli.run.jobs import RunConfig as ShardOptions
from compactor_cli.run.shards import (
    Shard,
    ShardMetrics,
    ShardResult,
    compact_shard,
    plan_shards,
    settings_of,
    shards_below,
    share,
    try_shard,
)

__all__ = [
    "Shard",
    "ShardMetrics",
    "ShardOptions",
    "ShardResult",
    "compact_shard",
    "plan_shards",
    "settings_of",
    "shards_below",
    "share",
    "try_shard",
]
