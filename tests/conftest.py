"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


def _folder(name: str) -> Path:
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"real transcripts are not here: {folder}")
    return folder


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real transcripts to test on; the test is skipped where they are absent."""
    return _folder("corpus")


@pytest.fixture(scope="session")
def corpus_train() -> Path:
    """Real transcripts that constants were fitted on; the test is skipped where they are absent."""
    return _folder("corpus-train")
