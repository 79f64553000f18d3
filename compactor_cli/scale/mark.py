"""Mark: the small file next to an output that says it is finished, from what and by which options.

It is written last. An output without it, or with one that says otherwise, is made anew.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compactor_cli.archive.atomic import atomic_writer
from compactor_cli.model.errors import CompactError
from compactor_cli.read.streams import BUFFER_BYTES, ContentHash, Look, Slice, open_stream
from compactor_cli.scale.shard_metrics import ShardMetrics

FORMAT = 1
ENDING = ".done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The mark of one output. ``fingerprint``: of the options; ``part``: the slice of the input."""

    input: str
    output: str
    fingerprint: str
    part: Slice | None

    @property
    def path(self) -> Path:
        """Where it lies."""
        return Path(self.output + ENDING)

    def finished(self, look: Look) -> ShardMetrics | None:
        """The metrics of the finished output; None if it is to be made.

        An input of the same size and time is the same; one of another time is read and compared by its hash.
        """
        try:
            found = json.loads(self.path.read_bytes())
            metrics = ShardMetrics(**found["metrics"])
            if found["made"] != self._made() or Path(self.output).stat().st_size != found["output_bytes"]:
                return None
            if found["size_bytes"] != look.size_bytes:
                return None
            if found["mtime_ns"] != look.mtime_ns and found["sha256"] != content_sha256(self.input, self.part):
                return None
        except (OSError, ValueError, TypeError, KeyError, CompactError):
            return None
        return metrics

    def write(self, metrics: ShardMetrics, look: Look, sha256: str) -> None:
        """The output is durable and complete."""
        value = {
            "made": self._made(),
            "input": self.input,
            "size_bytes": look.size_bytes,
            "mtime_ns": look.mtime_ns,
            "sha256": sha256,
            "output_bytes": Path(self.output).stat().st_size,
            "metrics": dataclasses.asdict(metrics),
        }
        with atomic_writer(self.path) as file:
            file.write(json.dumps(value, indent=1).encode() + b"\n")

    def _made(self) -> dict[str, Any]:
        part = [self.part.start, self.part.stop] if self.part else None
        return {"format": FORMAT, "fingerprint": self.fingerprint, "part": part}


def content_sha256(path: str, part: Slice | None) -> str:
    """The hash of what a shard is made from, unpacked."""
    content = ContentHash()
    with open_stream(path, (content,), part) as stream:
        while stream.reader.read1(BUFFER_BYTES):
            pass
    return content.sha256
