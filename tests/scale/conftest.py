"""A working directory of its own for each test."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from scale_cases import Batch


@pytest.fixture
def work(tmp_path: Path, unset: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; nothing is configured, and homes are below it."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def batch(work: Path, toolbox: Batch) -> Batch:
    """Run ``compactor batch`` in this process: exit code, standard output, standard error."""
    return partial(toolbox, "batch")
