"""A working directory of its own for each test."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from scale_cases import Batch


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; nothing is configured, and homes are below it."""
    for name in [name for name in os.environ if name.startswith("COMPACT_")]:
        monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def batch(work: Path, capfd: pytest.CaptureFixture[str]) -> Batch:
    """Run ``compactor batch`` in this process: exit code, standard output, standard error."""
    from compactor_cli.cli.program import run_toolbox

    def run(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = run_toolbox(["batch", *map(str, arguments)])
        sys.stdout.flush()
        return (code, *capfd.readouterr())

    return run
