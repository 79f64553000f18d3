"""A home of its own for each test, and the toolbox run in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_cases import Toolbox


@pytest.fixture
def home(tmp_path: Path, unset: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of its own, with nothing in it, which is also the working directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def compactor(home: Path, toolbox: Toolbox) -> Toolbox:
    """Run ``compactor``; exit code, standard output and error."""
    return toolbox
