"""One run at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from compactor_cli.archive.atomic import lock
from compactor_cli.model.errors import OutputError, TryLater


def test_a_second_run_is_asked_to_try_later_and_nothing_is_left(tmp_path: Path) -> None:
    with lock(tmp_path):
        with pytest.raises(TryLater) as caught, lock(str(tmp_path)):
            pass
        assert caught.value.exit_code == 75
    with lock(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_the_lock_ends_with_an_exception_too(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), lock(tmp_path):
        raise KeyboardInterrupt
    with lock(tmp_path):
        pass


def test_a_missing_root_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError), lock(tmp_path / "none"):
        pass
