"""Shape: how a transcript is written, where that is not as it was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from compactor_cli.core.transcript import Transcript
from compactor_cli.render.convert import Conversion, check_writable, convert


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is wanted of every output. ``dialect``: the name of the one it is written in."""

    dialect: str

    @classmethod
    def checked(cls, *, dialect: str) -> Self:
        """The shape. Raises UsageError for a dialect that cannot be written from nothing."""
        check_writable(dialect)
        return cls(dialect=dialect)

    def written(self, transcript: Transcript) -> Conversion:
        """The transcript in this shape."""
        return convert(transcript, self.dialect)
