"""Progress: a bar on a watched terminal, once the work takes more than a second."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Never, Self

from compactor_cli.model.report import BytesRead, Event, InputEnded

if TYPE_CHECKING:
    from tqdm import tqdm

AFTER_SECONDS = 1.0


class Progress:
    """Counts towards ``total`` (0: unknown) of ``unit`` (``file``, or ``B`` for bytes).

    A listener: bytes are those read of inputs, files the inputs that ended.
    """

    def __init__(self, *, label: str, total: int, unit: str, shown: bool) -> None:
        self._label = label
        self._total = total
        self._unit = unit
        self._shown = shown
        self._count = 0
        self._started = time.monotonic()
        self._bar: tqdm[Never] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, event: Event, /) -> None:
        """Count what the event says is done."""
        if self._unit == "B" and isinstance(event, BytesRead):
            self.advance(event.size_bytes)
        elif self._unit == "file" and isinstance(event, InputEnded):
            self.advance(1)

    def advance(self, count: int) -> None:
        """So much more is done."""
        self._count += count
        if not self._shown:
            return
        if self._bar is not None:
            self._bar.update(count)
        elif time.monotonic() - self._started > AFTER_SECONDS:
            self._bar = self._open()

    def make_room(self) -> None:
        """Something else is about to be written to the terminal."""
        if self._bar is not None:
            self._bar.clear()

    def _open(self) -> tqdm[Never]:
        from tqdm import tqdm

        # The monitor is a thread, and a process with threads is not to be forked.
        tqdm.monitor_interval = 0
        return tqdm(
            total=self._total or None,
            initial=self._count,
            desc=self._label,
            unit=self._unit,
            unit_scale=self._unit == "B",
            leave=False,
            disable=None,
        )
