"""Hooks: programs of the user's, run before a transcript is compacted and after an output took effect.

Each gets one JSON object on its standard input. No shell is involved: the command is split into words as a shell
would, and run as it is.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from compactor_cli.model.errors import KeptAsIs, OutputError
from compactor_cli.model.plan import Plan
from compactor_cli.model.report import InputReport
from compactor_cli.model.transcript import Transcript

SECONDS = 60.0
# Of what a hook says, so much is taken as instructions or shown as its complaint.
MOST_CHARS = 8_000
_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The commands of a run; empty: none. ``seconds``: how long one may take."""

    before: str = ""
    after: str = ""
    seconds: float = SECONDS

    def ask(self, path: str, output: str, transcript: Transcript, plan: Plan) -> str:
        """Run the hook before: what it says on its standard output, as instructions for the summary.

        Raises KeptAsIs where it ends with another code than 0, OutputError where it cannot be run or takes too long.
        """
        if not self.before:
            return ""
        payload = {
            "hook": "before",
            "path": path,
            "output": output,
            "dialect": transcript.dialect,
            "sha256": transcript.sha256,
            "tokens_before": plan.tokens_before,
            "tokens_after": plan.tokens_kept + plan.summary_tokens,
            "plan": asdict(plan),
        }
        code, answer, complaint = _run(self.before, payload, self.seconds)
        if code:
            raise KeptAsIs(f"the hook before it ended with code {code}{complaint}")
        return answer[:MOST_CHARS].strip()

    def emit(self, report: InputReport) -> str:
        """Run the hook after; what went wrong with it, empty if nothing did. The output stands in any case."""
        if not self.after:
            return ""
        payload = {
            "hook": "after",
            "path": report.path,
            "output": report.output,
            "archive": report.archive,
            "sha256": report.sha256,
            "tokens_before": report.tokens_before,
            "tokens_after": report.tokens_after,
            "bytes_before": report.bytes_before,
            "bytes_after": report.bytes_after,
        }
        try:
            code, _, complaint = _run(self.after, payload, self.seconds)
        except OutputError as error:
            return error.what
        return f"the hook after it ended with code {code}{complaint}" if code else ""


def _run(command: str, payload: Mapping[str, Any], seconds: float) -> tuple[int, str, str]:
    """Exit code, standard output, and the first line of standard error for people. Raises OutputError."""
    words = shlex.split(command)
    given = json.dumps(payload).encode() + b"\n"
    try:
        process = subprocess.Popen(  # noqa: S603 -- what the user named
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        step = "check the command; it is run without a shell"
        raise OutputError(f"the hook {words[0]} cannot be run: {error.strerror}", next_step=step) from error
    with process:
        try:
            answer, complaint = process.communicate(given, timeout=seconds)
        except subprocess.TimeoutExpired as error:
            step = "give it more time with --hook-timeout"
            raise OutputError(f"the hook {words[0]} took more than {seconds:g} seconds", next_step=step) from error
        finally:
            _end(process)
    first = complaint.decode(errors="replace").strip().partition("\n")[0][:_SHOWN_CHARS]
    return process.returncode, answer.decode(errors="replace"), f": {first}" if first else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and what it started, where it still runs."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
