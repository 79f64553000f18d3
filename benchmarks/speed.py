"""How fast a compaction is, next to tokenising the same text; and whether memory grows with the input.

    python benchmarks/speed.py            # 200 MB dataset, 2,000 session files
    python benchmarks/speed.py --quick    # 20 MB, 200 files

Every figure stands beside a floor measured in the same run. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from make import write_dataset, write_sessions

COMPACT = [sys.executable, "-m", "compactor_cli", "run"]
TOKENISE = """
import sys, orjson
from compactor_cli.plan.tokens import counter_for
counter = counter_for("auto", "")
def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)
for path in sys.argv[1:]:
    for line in open(path, "rb", buffering=1 << 20):
        for text in texts(orjson.loads(line)):
            counter.count(text)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    seconds: float
    peak_bytes: int


def run(command: list[str]) -> Run:
    """Wall seconds of a command and the peak memory of its largest process."""
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"failed with {status}: {' '.join(command)[:200]}")
    scale = 1 if sys.platform == "darwin" else 1024
    return Run(seconds=time.perf_counter() - started, peak_bytes=usage.ru_maxrss * scale)


def report(name: str, size_bytes: int, measured: Run, floor: Run) -> None:
    speed = size_bytes / measured.seconds / 1e6
    print(
        f"{name:<34} {measured.seconds:7.2f} s {speed:8.1f} MB/s {floor.seconds / measured.seconds:6.2f} x tiktoken"
        f" {measured.peak_bytes / 1e6:8.0f} MB peak"
    )


def datasets(folder: Path, sizes_mb: tuple[int, ...]) -> None:
    for size_mb in sizes_mb:
        path = folder / f"dataset-{size_mb}.jsonl"
        write_dataset(path, size_mb * 1_000_000)
        size_bytes = path.stat().st_size
        floor = run([sys.executable, "-c", TOKENISE, str(path)])
        report(f"tokenise {size_mb} MB (floor)", size_bytes, floor, floor)
        for jobs in ("1", "2"):
            out = folder / f"out-{jobs}.jsonl"
            archive = str(folder / "archive")
            command = [*COMPACT, "-t", "8k", "-j", jobs, "--archive-dir", archive, str(path), "-f", "-o", str(out)]
            report(f"dataset {size_mb} MB, -t 8k -j {jobs}", size_bytes, run(command), floor)


def sessions(folder: Path, count: int) -> None:
    source = folder / "sessions"
    write_sessions(source, count)
    paths = sorted(str(path) for path in source.iterdir())
    size_bytes = sum(Path(path).stat().st_size for path in paths)
    floor = run([sys.executable, "-c", TOKENISE, *paths])
    report(f"tokenise {count} files (floor)", size_bytes, floor, floor)
    for jobs in ("1", "2"):
        out = ["--output-dir", str(folder / f"compacted-{jobs}"), "--archive-dir", str(folder / "archive")]
        report(
            f"{count} sessions, -t 25% -j {jobs}",
            size_bytes,
            run([*COMPACT, "-r", str(source), "-t", "25%", "-j", jobs, *out]),
            floor,
        )


def cold_starts() -> None:
    floor = min(run([sys.executable, "-c", "pass"]).seconds for _ in range(5))
    shown = min(run([*COMPACT, "--help"]).seconds for _ in range(5))
    print(f"--help: {1000 * (shown - floor):.0f} ms over `python -c pass` ({1000 * floor:.0f} ms)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(f"peak of this process before: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")
    cold_starts()
    with tempfile.TemporaryDirectory() as name:
        datasets(Path(name), (5, 20) if quick else (20, 200))
        sessions(Path(name), 200 if quick else 2_000)


if __name__ == "__main__":
    main()
