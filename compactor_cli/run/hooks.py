"""Hooks: programs of the user's that are run before and after an input is compacted."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from compactor_cli.model.errors import KeptAsIs, OutputError
from compactor_cli.model.plan import Plan
from compactor_cli.model.report import InputReport
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass

# A program of the user's that takes longer is ended.
_HOOK_SECONDS = 60.0
# Of the output of a hook, this much is taken as instructions or shown as its complaint.
_MOST_CHARS = 8_000
_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The user's programs, run before and after; empty: none. ``seconds``: how long one may take.

    Each gets one JSON object on its standard input. No shell is involved: the command is split into words as a shell
    would, and run as it is.
    """

    before: str = ""
    after: str = ""
    seconds: float = _HOOK_SECONDS

    def ask(self, path: str, output: str, transcript: Transcript, plan: Plan) -> str:
        """Run the hook before: its standard output, as instructions for the summary.

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
        code, answer, complaint = _run_hook(self.before, payload, self.seconds)
        if code:
            raise KeptAsIs(f"the hook before it ended with code {code}{complaint}")
        return answer[:_MOST_CHARS].strip()

    def emit(self, report: InputReport) -> str:
        """Run the hook after; what went wrong with it, empty if nothing did. The output stays in any case."""
        if not self.after:
            return ""
        names = ("path", "output", "archive", "sha256", "tokens_before", "tokens_after", "bytes_before", "bytes_after")
        payload = {"hook": "after", **{name: getattr(report, name) for name in names}}
        try:
            code, _, complaint = _run_hook(self.after, payload, self.seconds)
        except OutputError as error:
            return error.what
        return f"the hook after it ended with code {code}{complaint}" if code else ""


def _run_hook(command: str, payload: Mapping[str, Any], seconds: float) -> tuple[int, str, str]:
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
            step = "give it more time: --set hook-timeout=5m"
            raise OutputError(f"the hook {words[0]} took more than {seconds:g} seconds", next_step=step) from error
        finally:
            if process.poll() is None:  # it and what it started are ended where they still run
                os.killpg(process.pid, signal.SIGKILL)
    first = complaint.decode(errors="replace").strip().partition("\n")[0][:_SHOWN_CHARS]
    return process.returncode, answer.decode(errors="replace"), f": {first}" if first else ""
