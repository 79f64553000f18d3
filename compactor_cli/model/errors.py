"""The errors, each family with one exit code.

CompactError
├── UsageError        2   the command or the configuration is wrong; nothing was touched
├── InputError        3   this input cannot be read; the other inputs go on
│   ├── InvalidLine       a line is not JSON, or the last one is torn
│   ├── UnknownShape      valid JSON, but no dialect knows it
│   └── Unreadable        missing, a directory, no permission, broken compression
├── OutputError       3   this output cannot be written; the source is as it was
│   ├── Changed       75   the source changed while it was read: left to the next run
│   ├── KeptAsIs          no usable summary, or a hook refused: the transcript stays as it is
│   ├── PluginFailed      a plug-in from another package raised an error, or broke an invariant
│   └── InvariantError    the output would break an invariant: a defect of compact, nothing is written
└── TryLater         75   a lock is held, or a provider asks to wait
    └── InUse             another program has the file open for writing
"""

from __future__ import annotations

import signal
import sys
from typing import Any, NoReturn

from compactor_cli.model.value import dataclass

# Delay before an exception that Python dropped is raised again: longer than it takes to clean up what is only being
# released, of which it cannot be seen that the exception is on its way.
_AGAIN_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something was read."""

    path: str  # ``-`` is standard input
    line: int  # counted from 1
    row: int = 0  # row of a document that is an array of rows, counted from 1; 0 in other documents

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" + (f" (row {self.row})" if self.row else "")


class CompactError(Exception):
    """An error as users read it: where (if known), what happened, and what to do next."""

    exit_code = 3

    def __init__(self, what: str, *, next_step: str = "", place: Place | str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step
        self.place = place

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        advice = f": {self.next_step}" if self.next_step else ""
        return f"{where}{self.what}{advice}"


class UsageError(CompactError):
    """The command or the configuration is wrong; nothing was touched."""

    exit_code = 2


class InputError(CompactError):
    """This input cannot be used; the others go on."""


class InvalidLine(InputError):  # noqa: N818 -- named for what is wrong
    """A line that is not JSON."""


class UnknownShape(InputError):  # noqa: N818
    """Valid JSON that no dialect knows."""


class Unreadable(InputError):  # noqa: N818
    """An input that cannot be opened or unpacked."""


class OutputError(CompactError):
    """This output cannot be written; the source is as it was."""


class Changed(OutputError):  # noqa: N818
    """The source changed between the first look and the replacement; nothing was written."""

    exit_code = 75


class PluginFailed(OutputError):  # noqa: N818
    """A plug-in from another package raised an error, or its result breaks an invariant."""


class KeptAsIs(OutputError):  # noqa: N818 -- named for what is done
    """The transcript stays as it is: the model gave no usable summary, or the hook before writing failed."""


class InvariantError(OutputError):
    """The output would break an invariant, so nothing is written."""


class TryLater(CompactError):  # noqa: N818
    """Nothing is wrong, but it cannot be done now: a later run can succeed."""

    exit_code = 75


class InUse(TryLater):
    """Another program has the file open for writing, or has locked it."""


def raise_from_handler(error: BaseException) -> NoReturn:
    """Raise ``error`` in a signal handler so that it surely reaches the main program.

    A handler runs wherever the main thread is, and in some places Python drops an exception: the callback of a weak
    reference (each import has one), a `__del__`, and the closing of a file object that nobody holds any more. So it is
    raised again every `_AGAIN_SECONDS` unless it is being handled then. Takes SIGALRM and its timer.
    """
    printed = sys.unraisablehook

    def again(number: int, frame: object) -> None:
        handled = sys.exc_info()[1]
        while handled is not None and handled is not error:
            handled = handled.__context__
        if handled is None:
            raise error

    def quiet(unraisable: Any) -> None:
        if unraisable.exc_value is not error:
            printed(unraisable)

    sys.unraisablehook = quiet
    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS, _AGAIN_SECONDS)
    raise error
