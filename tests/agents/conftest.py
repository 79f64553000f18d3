"""A home of its own for each test, and the toolbox run in this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from agent_cases import Toolbox


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of its own, with nothing in it, which is also the working directory."""
    for name in [name for name in os.environ if name.startswith(("COMPACT_", "CLAUDE_", "CODEX_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def compactor(home: Path, capfd: pytest.CaptureFixture[str]) -> Toolbox:
    """Run ``compactor``; exit code, standard output and error."""
    from compactor_cli.cli.program import run_toolbox

    def run(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = run_toolbox([str(argument) for argument in arguments])
        sys.stdout.flush()
        return code, *capfd.readouterr()

    return run
