"""Shape: how a transcript is written, where that is not as it was read."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.model.transcript import Container, Transcript
from compactor_cli.render.convert import Conversion, check_writable, convert
from compactor_cli.render.document import DOCUMENTS, Document, document
from compactor_cli.render.to_columns import as_columns


class Cells(StrEnum):
    """How rows hold objects."""

    OBJECTS = "objects"
    STRINGS = "strings"  # as JSON, for Arrow


class Parts(StrEnum):
    """What becomes a row of its own."""

    WHOLE = "whole"  # a transcript
    WINDOWS = "windows"  # what a model was shown before each boundary, and after the last


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputShape:
    """What is wanted of every output. ``dialect``: the name of the one it is written in; empty: its own."""

    dialect: str = ""
    cells: Cells = Cells.OBJECTS
    parts: Parts = Parts.WHOLE

    @classmethod
    def checked(cls, *, dialect: str, cells: Cells, parts: Parts) -> Self:
        """The shape. Raises UsageError for a dialect that cannot be written from nothing."""
        if dialect in DOCUMENTS and (cells is not Cells.OBJECTS or parts is not Parts.WHOLE):
            raise UsageError(f"{dialect} has no rows", next_step="leave --arrow and --split-at-boundaries out")
        if dialect and dialect not in DOCUMENTS:
            check_writable(dialect)
        return cls(dialect=dialect, cells=cells, parts=parts)

    @property
    def is_split(self) -> bool:
        """Whether a session may become several rows."""
        return self.parts is Parts.WINDOWS

    @property
    def is_document(self) -> bool:
        """Whether the output is a text to read: its size is that of the text, and no longer that of messages."""
        return self.dialect in DOCUMENTS

    def written(self, transcript: Transcript) -> Conversion:
        """The transcript in this shape. Raises InputError for what is no row and is to become columns."""
        if self.is_document:
            return Conversion(output=document(transcript, Document(self.dialect)), not_carried={})
        written = convert(transcript, self.dialect) if self.dialect else _as_it_is(transcript)
        return replace(written, output=_columns(written.output)) if self.cells is Cells.STRINGS else written


def _as_it_is(transcript: Transcript) -> Conversion:
    if transcript.frame.container is not Container.ARRAY:
        raise InputError("is a session, and no row of a dataset", next_step="name a format for rows with --to")
    return Conversion(output=transcript.source(), not_carried={})


def _columns(output: bytes) -> bytes:
    try:
        rows = [json.loads(line) for line in output.splitlines() if line.strip()]
    except ValueError as error:
        raise InputError("is no row on a line of its own", next_step="name a format with --to") from error
    values = (as_columns(row) if isinstance(row, dict) else row for row in rows)
    return b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)
