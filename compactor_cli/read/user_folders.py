"""The program's own folders of this user, by the XDG base directory specification."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def config_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the user's settings are."""
    return _folder(environ, "XDG_CONFIG_HOME", ".config")


def data_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where originals are that have no archive of their own."""
    return _folder(environ, "XDG_DATA_HOME", ".local/share")


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where is kept what outlives a run."""
    return _folder(environ, "XDG_STATE_HOME", ".local/state")


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where is kept what may be deleted at any time."""
    return _folder(environ, "XDG_CACHE_HOME", ".cache")


def _folder(environ: Mapping[str, str], variable: str, fallback: str) -> Path:
    """Below the folder that the variable names, else below the user's home."""
    named = Path(environ.get(variable) or "")
    # The specification has relative paths ignored.
    return (named if named.is_absolute() else Path(environ.get("HOME") or "~").expanduser() / fallback) / "compact"
