"""What goes wrong when something fails at every call that changes a file, and when an agent writes at every call.

    python benchmarks/faults.py                 # at least 5,000 faults
    python benchmarks/faults.py --faults 500

Each call of `-i`, `--append`, `-o`, `undo`, `batch` and `search` is made to fail in turn (SIGKILL, SIGTERM, EIO,
ENOSPC, a short write), and an agent appends, appends through a descriptor that it keeps open, or replaces the file.
It takes Linux and a C compiler; see tests/faults.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parents[1] / "tests" / "faults"
LISTS = ("originals_lost", "records_lost", "wrong_exits", "left_behind")
SHOWN = 5


def run(shim: Path, folder: Path, step: int, start: int) -> dict:
    line = [sys.executable, HERE / "campaign.py", "--shim", shim, "--folder", folder / "run"]
    line += ["--step", step, "--start", start]
    done = subprocess.run(list(map(str, line)), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=5_000)
    parser.add_argument("--step", type=int, default=1, help="one call in so many, another one in each round")
    options = parser.parse_args()
    faults: Counter[str] = Counter()
    found: dict[str, list[str]] = {name: [] for name in LISTS}
    records = rounds = 0
    started = time.monotonic()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        folder = Path(name)
        shim = folder / "shim.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, HERE / "shim.c", "-ldl"], check=True)
        while faults.total() < options.faults:
            result = run(shim, folder, options.step, rounds)
            rounds += 1
            faults.update(result["faults"])
            records += result["records"]
            for key in LISTS:
                found[key] += result[key]
    print(f"faults: {faults.total():,} in {time.monotonic() - started:,.0f} s ({dict(faults)})")
    print(f"calls that change a file: {result['calls']}")
    print(f"records of the agent: {records:,}")
    for key, lines in found.items():
        print(f"{key.replace('_', ' ')}: {len(lines):,}")
        for line in lines[:SHOWN]:
            print(f"  {line}")
    sys.exit(any(found.values()))


if __name__ == "__main__":
    main()
