"""Cells: a conversation that is the text of a table's cell."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import orjson

from compactor_cli.formats.detect import find_row, open_transcripts
from compactor_cli.model.errors import CompactError, UnknownShape
from compactor_cli.model.report import Outcome, TranscriptReport
from compactor_cli.read.jsonl import OnInvalid, parse, read_records
from compactor_cli.run.compact_row import RowMaker
from compactor_cli.scale.shard_metrics import ShardMetrics

# Keys of rows under which the formats of datasets have their messages.
COMMON_NAMES = ("messages", "conversations")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCell:
    """What became of one. ``text`` is the source, byte for byte, where nothing changed; ``reason``: why it failed."""

    text: bytes
    metrics: ShardMetrics
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMaker:
    """Compacts the cells of one column. Safe for several threads.

    A cell holds a JSON value (a row, or the array of its messages, which is then read under the name of its
    ``column``, or under a name that rows commonly have) or the lines of a session. It gives what the same text gives
    as a line of a file. One that fails is passed on unchanged.
    """

    rows: RowMaker
    column: str
    dialect: str = ""

    def compact(self, text: bytes) -> RowCell:
        """The cell compacted."""
        if text.lstrip()[:1] != b"[":
            return self._read_as(b"", text)
        failures = []
        for name in dict.fromkeys((self.column, *COMMON_NAMES)):
            try:
                return self._read_as(b"{%s:" % orjson.dumps(name), text)
            except UnknownShape as error:
                failures.append(str(error))
        return _failed(text, failures[0])

    def _read_as(self, head: bytes, text: bytes) -> RowCell:
        """The cell read after ``head``. Raises UnknownShape for an array that is none of messages there."""
        # The hash in the marker is of a whole line.
        tail = (b"}" if head else b"") + (b"" if text.endswith(b"\n") else b"\n")
        try:
            output, metrics = self._compact(head + text + tail)
        except CompactError as error:
            if head and isinstance(error, UnknownShape):
                raise
            return _failed(text, str(error))
        output = output[len(head) : len(output) - len(tail)]
        reason = "; ".join(reason for part, reason in metrics if reason)
        whole = sum((part for part, _ in metrics), ShardMetrics())
        return RowCell(text=output, metrics=whole, reason=reason)

    def compact_any(self, value: Any) -> tuple[Any, RowCell]:
        """The same for a cell as a table gives it: text, bytes, or the value itself with absent keys as None."""
        if isinstance(value, str):
            cell = self.compact(value.encode())
            return cell.text.decode(), cell
        if isinstance(value, bytes):
            cell = self.compact(value)
            return cell.text, cell
        cell = self.compact(orjson.dumps(_present(value)))
        return (parse(cell.text) if cell.metrics.compacted else value), cell

    def _compact(self, text: bytes) -> tuple[bytes, list[tuple[ShardMetrics, str]]]:
        records = read_records(io.BytesIO(text), self.column, OnInvalid.FAIL)
        output, metrics = [], []
        for transcript in open_transcripts(records, dialect=self.dialect, prefix=records.prefix):
            row = self.rows.compact(transcript)
            reason = row.report.reason if row.report.outcome is Outcome.FAILED else ""
            output.append(row.output)
            metrics.append((ShardMetrics.of(row.report), reason))
        return b"".join(output) if metrics else text, metrics


def _failed(text: bytes, reason: str) -> RowCell:
    report = TranscriptReport(outcome=Outcome.FAILED, bytes_before=len(text), bytes_after=len(text))
    return RowCell(text=text, metrics=ShardMetrics.of(report), reason=reason)


def holds_conversation(column: str, value: Any) -> bool:
    """Whether a value of a column is a conversation: a text of JSON, or the messages themselves.

    What it is must not depend on the column's name, which is `COMMON_NAMES`' or any other.
    """
    if isinstance(value, str | bytes):
        try:
            value = parse(value.encode(errors="surrogateescape") if isinstance(value, str) else value)
        except ValueError:
            return False
    if not isinstance(value, list):
        return find_row(value) is not None
    return any(find_row({name: value}) is not None for name in (column, *COMMON_NAMES))


def _present(value: Any) -> Any:
    """The value without keys that are None: tables give every key to every message."""
    if isinstance(value, dict):
        return {key: _present(item) for key, item in value.items() if item is not None}
    return [_present(item) for item in value] if isinstance(value, list) else value
