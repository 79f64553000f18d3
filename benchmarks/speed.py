"""What the speed benchmark measures with: commands run and watched, and the floors and peers they stand alongside."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

PASS = [sys.executable, "-c", "pass"]
# tiktoken itself, on every text of every line; only where its vocabulary is, the product knows.
TOKENISE = """
import os, sys, orjson
from compactor_cli.plan.models import vocabulary_folder
os.environ["TIKTOKEN_CACHE_DIR"] = str(vocabulary_folder("o200k_base"))
import tiktoken
encode = tiktoken.get_encoding("o200k_base").encode_ordinary
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
            encode(text)
"""
# What no program that reads JSON does without: parse, hash, write.
PARSE = """
import hashlib, sys, orjson
sha256 = hashlib.sha256()
with open("floor.jsonl", "wb", buffering=1 << 20) as out:
    for line in open(sys.argv[1], "rb", buffering=1 << 20):
        orjson.loads(line)
        sha256.update(line)
        out.write(line)
"""
# What it takes to look at every file of a tree, and at nothing in it.
LOOK = """
import os, sys
def look(folder):
    for entry in os.scandir(folder):
        look(entry.path) if entry.is_dir() else entry.stat()
look(sys.argv[1])
"""
# The extra [fast] is as good as not installed where its module cannot be imported.
_COMPACT = "import sys; {}from compactor_cli.__main__ import compact; compact()"
HAS_FAST = find_spec("toktok") is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a command took. ``peak_bytes`` is of its largest process, ``cpu_seconds`` of all of them."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def compact(*arguments: str, fast: bool = False) -> list[str]:
    """The command line of a compaction, with or without the extra ``[fast]``."""
    return [sys.executable, "-c", _COMPACT.format("" if fast else "sys.modules['toktok'] = None; "), *arguments]


def tokenise(*paths: str) -> list[str]:
    """The command line of tiktoken alone on the same text."""
    return [sys.executable, "-c", TOKENISE, *paths]


def parse(path: str) -> list[str]:
    """The command line that parses, hashes and writes every line."""
    return [sys.executable, "-c", PARSE, path]


def look(folder: str) -> list[str]:
    """The command line that looks at every file of a tree."""
    return [sys.executable, "-c", LOOK, folder]


def measure(command: Sequence[str], *, times: int = 1, folder: str = ".") -> Run:
    """The command run this many times; the least of each figure. Ends the benchmark if it fails."""
    runs = [_once(command, folder) for _ in range(times)]
    return Run(
        seconds=min(run.seconds for run in runs),
        cpu_seconds=min(run.cpu_seconds for run in runs),
        peak_bytes=min(run.peak_bytes for run in runs),
    )


def _once(command: Sequence[str], folder: str) -> Run:
    # Bytecode is written and read as on any machine; some environments switch that off, which costs 60 ms a start.
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environ["XDG_CACHE_HOME"] = f"{folder}/cache"
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ, cwd=folder)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if status:
        sys.exit(f"failed with {child.returncode}: {' '.join(command)[:300]}")
    scale = 1 if sys.platform == "darwin" else 1024
    return Run(
        seconds=time.perf_counter() - started,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * scale,
    )


def without(run: Run, floor: Run) -> Run:
    """What a run took next to what its floor takes."""
    return replace(
        run, seconds=max(run.seconds - floor.seconds, 0.0), cpu_seconds=max(run.cpu_seconds - floor.cpu_seconds, 0.0)
    )
