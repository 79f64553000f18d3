"""What is written is loaded by the library whose format it is, and says there what it says here.

LOADERS_PYTHON names the Python of an environment with the libraries (several, as PATH does);
LOADERS_NODE the folder in which the package ``ai`` is installed, for the ``node`` on the PATH.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from compaction import SETTINGS, compacted
from loaders import LIBRARIES, LONG, NOT_INSTALLED, TURNS, answered, asked
from opening import open_values

from compactor_cli.model.report import Outcome
from compactor_cli.model.transcript import Transcript

SCRIPT = Path(__file__).with_name("loaders.py")


class Library:
    """A library in a process of its own: what it makes, and what it makes of a value."""

    def __init__(self, command: list[str], cwd: Path, home: Path) -> None:
        # litellm, which OpenHands imports, would fetch prices.
        path = os.environ.get("PATH", "")
        environment = {"PATH": path, "HOME": str(home), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, encoding="utf-8", env=environment, cwd=cwd
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.made: Any = json.loads(line) if line else None
        self.errors = "" if line else self.process.communicate()[1]

    def loaded(self, value: Any) -> dict[str, Any]:
        output, errors = self.process.communicate(json.dumps(value))
        assert self.process.returncode == 0, errors[-2000:]
        found: dict[str, Any] = json.loads(output)
        return found


def python_library(name: str, home: Path) -> Library:
    pythons = [path for path in os.environ.get("LOADERS_PYTHON", "").split(os.pathsep) if path]
    if not pythons:
        pytest.skip("LOADERS_PYTHON is not set: it names a Python with the libraries that load the formats")
    missing: list[str] = []
    for python in pythons:
        library = Library([python, str(SCRIPT), name], home, home)
        if library.made is not None:
            return library
        assert library.process.returncode == NOT_INSTALLED, library.errors[-2000:]
        missing.append(library.errors.strip())
    pytest.skip(f"no library for {name}: {', '.join(missing)}")


def node_library(home: Path) -> Library:
    folder = os.environ.get("LOADERS_NODE", "")
    if not folder or not Path(folder, "node_modules", "ai").is_dir():
        pytest.skip("LOADERS_NODE is not set: it names a folder in which the package ai is installed")
    # Imports of a program that is no file are looked for from the folder on.
    program = SCRIPT.with_suffix(".mjs").read_text(encoding="utf-8")
    library = Library(["node", "--input-type=module", "-e", program], Path(folder), home)
    assert library.made is not None, library.errors[-2000:]
    return library


def opened(value: Any, name: str) -> Transcript:
    values = value if isinstance(value, list) and name == "openhands-v1" else [value]
    (transcript,) = open_values(*values)
    assert transcript.dialect == name
    return transcript


@pytest.mark.parametrize("name", [*LIBRARIES, "ui-messages"])
def test_a_compaction_is_loaded_by_the_library_of_the_format(name: str, tmp_path: Path) -> None:
    library = node_library(tmp_path) if name == "ui-messages" else python_library(name, tmp_path)
    transcript = opened(library.made, name)
    done = compacted(transcript, SETTINGS)
    assert done.report.outcome is Outcome.COMPACTED, done.report.reason
    lines = [json.loads(line) for line in done.output.splitlines()]
    loaded = library.loaded(lines if name == "openhands-v1" else lines[0])
    assert loaded["messages"] < len(transcript.records)
    assert "[compact/1 " in loaded["text"]
    assert asked(0) in loaded["text"]
    assert answered(TURNS - 1) in loaded["text"]
    # The summary may quote the beginning of a result that is gone, but no more of it.
    assert f"Result 1: {LONG[:200]}" not in loaded["text"]
    assert f"Result {TURNS - 1}: {LONG[:200]}" in loaded["text"]
