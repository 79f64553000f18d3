"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
Toolbox = Callable[..., tuple[int, str, str]]
