"""Builds: the places of errors that compilers and linters name."""

from __future__ import annotations

import re
from collections.abc import Collection

from compactor_cli.digest.commands import error_line

# Where compilers and linters find an error: file, line and column.
COMPILER_PLACE = re.compile(r"\.\w+(?::\d+:\d+\b|\(\d+,\d+\): )")
PLACED_FILE = re.compile(r"(?:\./)?([^\s:]+?\.\w+)(?=:\d+:|\(\d+,\d+\): )")


def places_in(text: str) -> list[str]:
    """The lines of an output that name the place of an error."""
    return [line for line in text.split("\n") if COMPILER_PLACE.search(line)]


def is_about(path: str, line: str) -> bool:
    """Whether a line of a compiler is about a file; it may name it from the folder of its package."""
    found = PLACED_FILE.search(line)
    return found is not None and (f"/{path}".endswith(f"/{found[1]}") or f"/{found[1]}".endswith(f"/{path}"))


def places_line(text: str, paths: Collection[str], *, is_in: bool) -> str:
    """The error line of an output with the places in these files, or those elsewhere; empty without both of them."""
    places = places_in(text)
    kept = [line for line in places if any(is_about(path, line) for path in paths) is is_in]
    return error_line("\n".join(kept)) if 0 < len(kept) < len(places) else ""
