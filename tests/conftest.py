"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from llm_server.client import LlmServer, running

# How long an example takes says more about the machine than about the code.
settings.register_profile("compact", parent=settings.default, deadline=None)
settings.load_profile("compact")

# A shell that starts the suite in the background has it ignore interrupts, and its children would ignore them too.
signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


def _folder(name: str) -> Path:
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"real transcripts are not here: {folder}")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The user's own cache folder is left alone: what tests keep goes below the folder of their session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real transcripts to test on; the test is skipped where they are absent."""
    return _folder("corpus")


@pytest.fixture(scope="session")
def corpus_train() -> Path:
    """Real transcripts that constants were fitted on; the test is skipped where they are absent."""
    return _folder("corpus-train")


@pytest.fixture(scope="session")
def llm_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlmServer]:
    """A model provider on the loopback interface, in its own process; see llm_server/server.py."""
    with running(tmp_path_factory.mktemp("llm")) as server:
        yield server


@pytest.fixture
def llm_server(llm_process: LlmServer) -> LlmServer:
    """The same, with an empty log and all counts at their beginning."""
    llm_process.control(reset=True)
    return llm_process


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of whoever runs the tests configure nothing."""
    for name in [name for name in os.environ if name.startswith(("COMPACT_", "CLAUDE_", "CODEX_", "XDG_"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def toolbox(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run ``compactor`` in this process: exit code, standard output, standard error."""
    from compactor_cli.cli.program import run_toolbox

    def run(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = run_toolbox([str(argument) for argument in arguments])
        sys.stdout.flush()
        return code, *capfd.readouterr()

    return run
