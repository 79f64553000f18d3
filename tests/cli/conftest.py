"""A home of its own for each test, and both ways to run a command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cli_cases import Ran, Run, command, dataset_bytes, session_bytes


@pytest.fixture
def home(tmp_path: Path, unset: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of its own, with nothing configured; archives go below ``home/data``."""
    folder = tmp_path / "home"
    (folder / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.chdir(folder / "work")
    return folder


@pytest.fixture
def work(home: Path) -> Path:
    """The working directory, with a session and a dataset in it."""
    folder = home / "work"
    (folder / "session.jsonl").write_bytes(session_bytes())
    (folder / "rows.jsonl").write_bytes(dataset_bytes())
    return folder


@pytest.fixture
def compact(home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run ``compact`` in this process."""
    from compactor_cli.cli.program import run_filter

    return _in_process(run_filter, capfdbinary)


@pytest.fixture
def compactor(home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run ``compactor`` in this process."""
    from compactor_cli.cli.program import run_toolbox

    return _in_process(run_toolbox, capfdbinary)


def _in_process(main: Callable[[Sequence[str]], int], capture: pytest.CaptureFixture[bytes]) -> Run:
    def run(*arguments: object) -> Ran:
        capture.readouterr()
        code = main([str(argument) for argument in arguments])
        sys.stdout.flush()
        out, err = capture.readouterr()
        return Ran(code, out, err.decode())

    return run


@pytest.fixture
def spawn(home: Path) -> Run:
    """Run ``compact`` in a process of its own."""

    def run(*arguments: object, stdin: bytes | None = b"", entry: str = "compact", **more: Any) -> Ran:
        done = subprocess.run(command(*arguments, entry=entry), input=stdin, capture_output=True, timeout=120, **more)
        return Ran(done.returncode, done.stdout, done.stderr.decode())

    return run
