"""Lets the tests of this folder use the small transcripts of the digest's tests, also when they run alone."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "digest"))
