"""Entry points: the exit code, and death by the signal that was sent.

A run that is stopped unwinds first, so that no half-written file stays, and then dies of the signal
itself: a shell, a loop or a service manager sees that it was interrupted. A second signal kills at once.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from compactor_cli.model.errors import raise_from_handler

# What is made here are trees, and Python's own thresholds look for rings among them so often that it takes up to
# a tenth of the time; of a long session, all that stays is looked through last, and hardly ever.
GC_THRESHOLDS = (50_000, 20, 1_000)

_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")
_NO_POSIX = "needs a POSIX system (Linux, macOS, BSD); on Windows use WSL: https://learn.microsoft.com/windows/wsl"


class Stopped(KeyboardInterrupt):
    """A signal asked this process to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def compact() -> NoReturn:
    """The filter."""
    _run("run_filter")


def compactor() -> NoReturn:
    """The toolbox."""
    _run("run_toolbox")


def _run(main: str) -> NoReturn:
    if os.name != "posix":
        # Files are replaced under locks, and runs stopped by signals, that other systems do not have.
        sys.exit(f"compact {_NO_POSIX}")
    for name in _STOPPING:
        number = getattr(signal, name)
        # Signals that the caller ignores (nohup) stay ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    gc.set_threshold(*GC_THRESHOLDS)
    _take_closed_streams()
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        # Where whoever shares it set it not to wait, a pause of the writer is taken for the end of the input.
        with suppress(OSError):
            os.set_blocking(stream.fileno(), True)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files may hold bytes, and texts characters, that the terminal's encoding has not.
        sys.stdout.reconfigure(errors="backslashreplace")
        if isinstance(sys.stdout.buffer, io.RawIOBase):
            # With PYTHONUNBUFFERED a write puts out as much as fits on the disk, and the rest is lost without an error.
            encoding, errors = sys.stdout.encoding, sys.stdout.errors
            sys.stdout = open(sys.stdout.fileno(), "w", encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115
    try:
        from compactor_cli.cli import program

        code: int = getattr(program, main)(sys.argv[1:])
        sys.stdout.flush()
    except Stopped as stop:
        _die(stop.number)
    except KeyboardInterrupt:
        _die(signal.SIGINT)
    except BrokenPipeError:
        _die(signal.SIGPIPE)
    # All of it goes with the process: to look for rings once more takes longer than a small file.
    gc.freeze()
    sys.exit(code)


def _take_closed_streams() -> None:
    """Take the number of each standard stream that is closed: a file that got it would get what is meant for it.

    To read from it, or to print on it, stays an error; messages go nowhere.
    """
    for name, mode, flags in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8"))


def _stop(number: int, frame: FrameType | None) -> None:
    """Turn the first signal into an exception."""
    signal.signal(number, signal.SIG_DFL)
    raise_from_handler(Stopped(number))


def _die(number: int) -> NoReturn:
    """End by the signal itself; its usual exit code is for where it is blocked."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


if __name__ == "__main__":
    compactor()
