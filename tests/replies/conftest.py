"""Small transcripts and the model's summariser are shared with the tests of the digest and of the model path."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "digest"), str(TESTS / "llm")]
