"""Entry points of the commands: they set up the process, and end it with an exit code or by the signal that stopped it.

A run that is stopped first unwinds, so that no half-written file stays, and then dies of the signal itself: a shell, a
loop or a service manager sees that it was interrupted. A second signal kills at once.
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

# The objects made here are trees. By Python's own thresholds they would be searched for cycles so often that it takes
# up to a tenth of the time; with these, the old objects of a long session are hardly ever searched.
GC_THRESHOLDS = (50_000, 20, 1_000)

_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")
_NO_POSIX = "needs a POSIX system (Linux, macOS, BSD); on Windows use WSL: https://learn.microsoft.com/windows/wsl"


class Stopped(KeyboardInterrupt):
    """A signal asked this process to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def compact() -> NoReturn:
    """Run the filter, ``compact``."""
    _run("run_filter")


def compactor() -> NoReturn:
    """Run the toolbox, ``compactor``."""
    _run("run_toolbox")


def _run(main: str) -> NoReturn:
    if os.name != "posix":
        # Other systems lack the locks under which files are replaced, and the signals that stop runs.
        sys.exit(f"compact {_NO_POSIX}")
    try:
        for name in _STOPPING:
            number = getattr(signal, name)
            # Signals that the caller ignores (nohup) stay ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _stop)
        gc.set_threshold(*GC_THRESHOLDS)
        _set_up_streams()
        from compactor_cli.cli import program

        code: int = getattr(program, main)(sys.argv[1:])
        sys.stdout.flush()
    except Stopped as stop:
        _die(stop.number)
    except KeyboardInterrupt:
        _die(signal.SIGINT)
    except BrokenPipeError:
        _die(signal.SIGPIPE)
    # Everything goes with the process: a last search for cycles would take longer than a small file.
    gc.freeze()
    sys.exit(code)


def _set_up_streams() -> None:
    _take_closed_streams()
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        # If another process has set a shared stream to non-blocking, a pause of the writer looks like the end of input.
        with suppress(OSError):
            os.set_blocking(stream.fileno(), True)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files and texts may hold what the terminal's encoding lacks.
        sys.stdout.reconfigure(errors="backslashreplace")
        if isinstance(sys.stdout.buffer, io.RawIOBase):
            # With PYTHONUNBUFFERED, a write to a full disk writes what fits and loses the rest without an error.
            encoding, errors = sys.stdout.encoding, sys.stdout.errors
            sys.stdout = open(sys.stdout.fileno(), "w", encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115


def _take_closed_streams() -> None:
    """Open the null device in place of each standard stream that is closed.

    Otherwise a file opened later would get its number, and with it what is meant for the stream. Reading from a closed
    stdin and printing to a closed stdout stay errors; messages to a closed stderr go nowhere.
    """
    for name, mode, flags in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8"))


def _stop(number: int, frame: FrameType | None) -> None:
    """Turn the first signal into an exception; a second one kills."""
    signal.signal(number, signal.SIG_DFL)
    raise_from_handler(Stopped(number))


def _die(number: int) -> NoReturn:
    """End by the signal itself or, where that is blocked, with its usual exit code."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


if __name__ == "__main__":
    compactor()
