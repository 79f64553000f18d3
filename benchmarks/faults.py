"""What goes wrong when something fails at every call that changes a file, and when an agent writes at every call.

    python benchmarks/faults.py                 # at least 5,000 faults
    python benchmarks/faults.py --faults 500

Each call of `-i`, `--append`, `-o`, `undo`, `batch` and `search` is made to fail in turn (SIGKILL, SIGTERM, EIO,
ENOSPC, a short write), and an agent appends, appends through a descriptor that it keeps open, or replaces the file.
Ctrl-C ends it with what was counted so far. It takes Linux and a C compiler; see tests/faults.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parents[1] / "tests" / "faults"
LISTS = ("originals_lost", "records_lost", "wrong_exits", "left_behind")
SHOWN = 5


def run(shim: Path, folder: Path, step: int, start: int) -> dict:
    line = [sys.executable, HERE / "campaign.py", "--shim", shim, "--folder", folder / "run"]
    line += ["--step", step, "--start", start]
    done = subprocess.run(list(map(str, line)), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


@dataclass(kw_only=True)
class Total:
    """What all rounds came to so far."""

    started: float = field(default_factory=time.monotonic)
    rounds: int = 0
    records: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    calls: dict[str, int] = field(default_factory=dict)
    found: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in LISTS})

    def add(self, result: dict) -> None:
        self.rounds += 1
        self.faults.update(result["faults"])
        self.records += result["records"]
        self.calls = result["calls"]
        for name, lines in self.found.items():
            lines += result[name]

    def show(self) -> None:
        seconds = time.monotonic() - self.started
        print(f"faults: {self.faults.total():,} in {seconds:,.0f} s ({dict(self.faults)})")
        print(f"calls that change a file: {self.calls}")
        print(f"records of the agent: {self.records:,}")
        for name, lines in self.found.items():
            print(f"{name.replace('_', ' ')}: {len(lines):,}")
            for line in lines[:SHOWN]:
                print(f"  {line}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=5_000)
    parser.add_argument("--step", type=int, default=10, help="one call in so many, another one in each round")
    options = parser.parse_args()
    total = Total()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        folder = Path(name)
        shim = folder / "shim.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, HERE / "shim.c", "-ldl"], check=True)
        with suppress(KeyboardInterrupt):
            while total.faults.total() < options.faults:
                total.add(run(shim, folder, options.step, total.rounds))
                print(f"round {total.rounds}: {total.faults.total():,} faults", file=sys.stderr, flush=True)
    total.show()
    sys.exit(any(total.found.values()))


if __name__ == "__main__":
    main()
