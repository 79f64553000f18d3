"""Builds: the places of errors that compilers and linters name, and what became of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import islice

from compactor_cli.digest.checks import after, contains
from compactor_cli.digest.commands import CommandOutcome, Run, error_line
from compactor_cli.digest.files import FileOperation
from compactor_cli.digest.statements import head

# Where compilers and linters find an error: file, line and column.
COMPILER_PLACE = re.compile(r"\.\w+(?::\d+:\d+\b|\(\d+,\d+\): )")
_PLACED_FILE = re.compile(r"(?:\./)?([^\s:]+?\.\w+)(?=:\d+:|\(\d+,\d+\): )")
_MAX_PLACE_CHARS, _MAX_GONE = 60, 4


def places_in(text: str) -> list[str]:
    """The lines of an output that name the place of an error."""
    return [line for line in text.split("\n") if COMPILER_PLACE.search(line)]


def is_about(path: str, line: str) -> bool:
    """Whether a line of a compiler is about a file; it may name it from the folder of its package."""
    found = _PLACED_FILE.search(line)
    return found is not None and (f"/{path}".endswith(f"/{found[1]}") or f"/{found[1]}".endswith(f"/{path}"))


def places_line(text: str, paths: Collection[str], *, is_in: bool) -> str:
    """The error line of an output with the places in these files, or those elsewhere; empty without both of them."""
    places = places_in(text)
    kept = [line for line in places if any(is_about(path, line) for path in paths) is is_in]
    return error_line("\n".join(kept)) if 0 < len(kept) < len(places) else ""


def partly_fixed(
    run: Run, later: Sequence[Run], changes: Sequence[FileOperation]
) -> tuple[str, tuple[str, ...], tuple[int, int]] | None:
    """What a build found in files that were edited then, and that no later one, which failed too, names any more.

    The places by file and kind, the files that were edited, and the records of the two runs; None without any.
    """
    again = [one for one in later if one.outcome is CommandOutcome.FAILED and contains(one.key, run.key)]
    places = places_in(run.output) if again else []
    if not places:
        return None
    named = {found[1] for one in again for found in _PLACED_FILE.finditer(one.output)}
    between = [one for one in after(run, changes) if one.event < again[0].event]
    gone = [line for line in places if (found := _PLACED_FILE.search(line)) and found[1] not in named]
    fixes = tuple(dict.fromkeys(one.path for one in between if any(is_about(one.path, line) for line in gone)))
    fixed = (line for line in gone if any(is_about(path, line) for path in fixes))
    kinds = (": ".join(line[line.rfind("/", 0, line.find(": ")) + 1 :].split(": ")[:2]) for line in fixed)
    line = " · ".join(islice((head(kind, _MAX_PLACE_CHARS) for kind in kinds), _MAX_GONE))
    return (line, fixes, (run.result_record, again[0].result_record)) if line else None
