"""Datasets made for these tests, and what a plain run makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compactor_cli.cli.program import run_filter
from compactor_cli.run.jobs import RunConfig
from compactor_cli.run.shards import settings_of

# Exit code, standard output, standard error.
Batch = Callable[..., tuple[int, str, str]]

TARGET = "1500"
OPTIONS = RunConfig(settings=settings_of(target=TARGET))
ODD = (b'{"weather": "fine"}\n', b"\n\n", b"42\n")


def messages(steps: int, name: str = "") -> list[dict[str, Any]]:
    """A conversation that is over its target from about six steps on."""
    found: list[dict[str, Any]] = [{"role": "system", "content": f"You are a careful agent {name}."}]
    for step in range(steps):
        call = {"name": "read_file", "arguments": json.dumps({"path": f"src/part_{step}.py"})}
        text = "\n".join(f"line {line} of part {step} {name}: value = {step * line}" for line in range(30))
        found += [
            {"role": "user", "content": f"Please mend part {step} in src/part_{step}.py."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{step}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{step}", "content": text},
            {"role": "assistant", "content": f"Mended part {step}: an off-by-one error."},
        ]
    return found


def row(number: int, steps: int = 7) -> bytes:
    """A line of a dataset."""
    return json.dumps({"id": number, "messages": messages(steps, f"no {number}"), "license": "MIT"}).encode() + b"\n"


def dataset(rows: int = 6, *, odd: bool = False) -> bytes:
    """A dataset, with lines among its rows that are none where it is odd."""
    lines = [row(number, 2 + number % 7) for number in range(rows)]
    if odd:
        for place, line in enumerate(ODD):
            lines.insert(2 + 2 * place, line)
    return b"".join(lines)


def plain(path: Path, *more: str) -> bytes:
    """The output of ``compact`` itself."""
    output = path.with_name(f"plain-{path.name}")
    run_filter([str(path), "-t", TARGET, "--no-archive", "-o", str(output), "-q", *more])
    return output.read_bytes()


def joined(folder: Path, pattern: str) -> bytes:
    """The outputs of the parts of a file, in the order of their names."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob(pattern)))
