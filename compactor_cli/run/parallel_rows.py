"""Spread: the rows of one dataset made in several processes, with the results of one process.

The parent only divides the input into lines; workers parse them. What is no row (a session, a line that is not
JSON, whatever fails for the whole input) is left to the parent, which goes on alone from that line, as one
process would have done from the start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import CompactError
from compactor_cli.model.transcript import Container, Record, Transcript
from compactor_cli.read.jsonl import RawLine, RecordReader
from compactor_cli.run.compact_row import RowMaker
from compactor_cli.run.finished import FinishedRow, Finisher
from compactor_cli.run.workers import Workers

# Enough text a task that handing out costs nothing, and so little that all workers end at about the same time.
TASK_BYTES = 256 << 10
TASK_LINES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows of one line; ``invalid``: how many of its values were not JSON and are left out."""

    finished: tuple[FinishedRow, ...]
    invalid: int = 0


class ParallelRows:
    """Finishes the transcripts of one input, in order; ``dialect`` as in `open_transcripts`.

    A row whose worker dies is passed on as it is, and its report says so. Memory is bounded by a few tasks per
    process. The first row is made here, so that the workers have what it loads; without a second one there
    are no workers.
    """

    def __init__(
        self, records: RecordReader, *, dialect: str, finish: Finisher, maker: RowMaker, processes: int
    ) -> None:
        self._records = records
        self._dialect = dialect
        self._finish = finish
        self._maker = maker
        self._processes = processes
        self._held: deque[RawLine] = deque()
        self._last = ""

    def __iter__(self) -> Iterator[FinishedRow]:
        """Goes through the input once."""
        opening = self._opening()
        if opening is None:
            yield from self._alone()
            return
        yield self._given(self._finish(opening))
        yield from self._together()

    def _opening(self) -> Transcript | None:
        """The row that the first line is; None, and the line still to be read, if it is anything else."""
        if (first := self._records.take_line()) is None:
            return None
        size_bytes = len(self._records.prefix + first.body + first.ending)
        try:
            opening = next(self._transcripts(first), None)
        except Exception:
            opening = None
        if opening is not None and opening.size_bytes == size_bytes:
            return opening
        self._records.invalid_count = 0
        self._records.put_back((first,))
        return None

    def _together(self) -> Iterator[FinishedRow]:
        workers = Workers(self._rows, self._processes, self._passed)
        results = workers.results(self._tasks())
        for rows in results:
            if rows is None:
                results.close()
                self._records.put_back(tuple(self._held))
                yield from self._alone()
                return
            self._held.popleft()
            self._records.invalid_count += rows.invalid
            yield from map(self._given, rows.finished)

    def _alone(self) -> Iterator[FinishedRow]:
        return map(self._finish, self._opened(self._records))

    def _given(self, finished: FinishedRow) -> FinishedRow:
        self._last = finished.report.dialect or self._last
        return finished

    def _tasks(self) -> Iterator[list[RawLine]]:
        task: list[RawLine] = []
        size_bytes = 0
        while line := self._records.take_line():
            self._held.append(line)
            task.append(line)
            size_bytes += len(line.body)
            if size_bytes >= TASK_BYTES or len(task) >= TASK_LINES:
                yield task
                task, size_bytes = [], 0
        if task:
            yield task

    def _rows(self, line: RawLine) -> _Rows | None:
        """The rows of a line; None if it has to be looked at with what stands around it, or fails."""
        return self._made(line, self._finish)

    def _passed(self, line: RawLine) -> _Rows | None:
        """The rows of a line whose worker died, as they are."""
        error = CompactError("the process that worked on it died", next_step="too little memory? run it with -j 1")
        return self._made(line, lambda row: self._finish.finished(row, self._maker.passed(row, error)))

    def _made(self, line: RawLine, finish: Callable[[Transcript], FinishedRow]) -> _Rows | None:
        invalid_before = self._records.invalid_count
        try:
            finished = tuple(map(finish, self._transcripts(line)))
        except Exception:
            return None
        finally:
            invalid, self._records.invalid_count = self._records.invalid_count - invalid_before, invalid_before
        return _Rows(finished=finished, invalid=invalid)

    def _transcripts(self, line: RawLine) -> Iterator[Transcript]:
        """The rows of a line. Raises LookupError where something else stands there."""
        for transcript in self._opened(self._records.of_line(line)):
            if transcript.frame.container is not Container.ARRAY:
                raise LookupError
            yield transcript

    def _opened(self, records: Iterable[Record]) -> Iterator[Transcript]:
        prefix = b"" if self._last else self._records.prefix
        return open_transcripts(records, dialect=self._dialect, prefix=prefix, among_rows_of=self._last)
