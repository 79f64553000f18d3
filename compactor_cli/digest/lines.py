"""Distinct lines: every different line of a scan once, with the events that hold it.

Transcripts repeat themselves (a file read twice, a test run again): about a third of their text is lines
that were there before. A line is read once and remembered by its stripped text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Lines:
    """The distinct lines in order of first sight.

    ``numbers``: the place of each line in the lists beside it. ``atoms``: the rows of the table that a line
    holds, none twice. ``last``: the newest event (position in the scanned tuple) that holds it.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    atoms: list[tuple[int, ...]] = field(default_factory=list)
    last: list[int] = field(default_factory=list)

    def add(self, lines: Sequence[str], atoms: Sequence[tuple[int, ...]]) -> None:
        """Enters lines that were not there before, and their atoms."""
        start = len(self.atoms)
        self.numbers.update(zip(lines, range(start, start + len(lines)), strict=True))
        self.atoms.extend(atoms)
        self.last.extend([-1] * len(lines))

    def renumbered(self, rows: Sequence[int]) -> Lines:
        """The same lines with the rows of another table: ``rows[old]`` is the new one."""
        atoms = [tuple([rows[atom] for atom in atoms]) for atoms in self.atoms]
        return Lines(numbers=self.numbers, atoms=atoms, last=self.last)
