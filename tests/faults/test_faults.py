"""Whatever fails, and whoever writes meanwhile: nothing is lost, no exit code lies, nothing is left behind."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
# One call in this many, a different one for each fault: the long form (benchmarks/faults.py) takes them all.
STEP = 17
COUNTED_AS_WRONG = ("originals_lost", "records_lost", "wrong_exits", "left_behind")


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("faults are made by a library that is preloaded: that takes Linux and a C compiler (cc)")
    path = tmp_path_factory.mktemp("faults") / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", path, HERE / "shim.c", "-ldl"], check=True)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where that can be had: durability itself cannot be seen by a test."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as name:
        yield Path(name)


def campaign(shim: Path, folder: Path, *arguments: object) -> dict[str, Any]:
    line = [sys.executable, HERE / "campaign.py", "--shim", shim, "--folder", folder / "run", *arguments]
    done = subprocess.run(list(map(str, line)), stdout=subprocess.PIPE, timeout=600, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("faults", [("kill", "term"), ("EIO", "ENOSPC", "short")], ids=["stopped", "failing"])
def test_whatever_fails_no_original_is_lost(shim: Path, folder: Path, faults: tuple[str, ...]) -> None:
    found = campaign(shim, folder, "--step", STEP, "--fault", *faults)
    assert [line for name in COUNTED_AS_WRONG for line in found[name]] == []
    assert set(found["faults"]) == set(faults)
    assert min(found["calls"].values()) > 15


def test_whatever_an_agent_writes_meanwhile_no_record_of_it_is_lost(shim: Path, folder: Path) -> None:
    found = campaign(shim, folder, "--step", STEP, "--fault", "agent appends", "agent holds", "agent replaces")
    assert [line for name in COUNTED_AS_WRONG for line in found[name]] == []
    assert found["records"] > 50
