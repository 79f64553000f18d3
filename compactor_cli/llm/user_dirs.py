"""Places: where the model path keeps what outlives a run (XDG base directories; relative paths are ignored)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def replies_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The cache of replies: may be deleted at any time, at the cost of paying again."""
    return _folder(environ, "XDG_CACHE_HOME", ".cache") / "compact" / "replies.sqlite3"


def breaker_file(environ: Mapping[str, str] = os.environ) -> Path:
    """What the circuit breaker knows."""
    return _folder(environ, "XDG_STATE_HOME", ".local/state") / "compact" / "breaker.json"


def _folder(environ: Mapping[str, str], name: str, otherwise: str) -> Path:
    folder = Path(environ.get(name) or "")
    return folder if folder.is_absolute() else Path.home() / otherwise
