"""What the user adds to a run: programs run before and after, and the agent's own notes of a session.

Each hook gets one JSON object on its standard input. No shell is involved: the command is split into words as a shell
would, and run as it is.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from compactor_cli.model.errors import KeptAsIs, OutputError, UsageError
from compactor_cli.model.plan import Plan
from compactor_cli.model.report import InputReport
from compactor_cli.model.summary import Answer, Request, Section, Source, Summariser, Summary
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass

SECONDS = 60.0
# Of the output of a hook, this much is taken as instructions or shown as its complaint.
MOST_CHARS = 8_000
_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The commands of a run; empty: none. ``seconds``: how long one may take."""

    before: str = ""
    after: str = ""
    seconds: float = SECONDS

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
        code, answer, complaint = _run(self.before, payload, self.seconds)
        if code:
            raise KeptAsIs(f"the hook before it ended with code {code}{complaint}")
        return answer[:MOST_CHARS].strip()

    def emit(self, report: InputReport) -> str:
        """Run the hook after; what went wrong with it, empty if nothing did. The output stays in any case."""
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
            step = "give it more time: --set hook-timeout=5m"
            raise OutputError(f"the hook {words[0]} took more than {seconds:g} seconds", next_step=step) from error
        finally:
            if process.poll() is None:  # it and what it started are ended where they still run
                os.killpg(process.pid, signal.SIGKILL)
    first = complaint.decode(errors="replace").strip().partition("\n")[0][:_SHOWN_CHARS]
    return process.returncode, answer.decode(errors="replace"), f": {first}" if first else ""


# Stands for the name of the input, without folder and extensions.
NAME = "{name}"


def note_of(file: str, path: str) -> str:
    """The note for the input ``path``; empty where ``file`` names notes by their session and this one has none.

    Raises UsageError if the file cannot be read.
    """
    found = Path(file.replace(NAME, Path(path).name.partition(".")[0]))
    try:
        return found.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        if NAME in file:
            return ""
        raise UsageError("there is no such note", next_step="name the file, or leave memory out", place=file) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise UsageError(f"the note cannot be read ({reason})", place=str(found)) from error


class SessionNoteSummariser:
    """The note, with the digest of what it leaves out; where it does not fit the budget, another summariser."""

    def __init__(self, note: str, otherwise: Summariser) -> None:
        self._note = note.strip()
        self._otherwise = otherwise

    def summarise(self, request: Request) -> Answer:
        """The summary, within ``request.budget_tokens`` and without a call of any model if the note fits."""
        # Here, so that a run without a note does not load the digest before it knows that it needs one.
        from compactor_cli.digest.language import LANGUAGES, detect
        from compactor_cli.llm.outline import heading_lines
        from compactor_cli.llm.quoting import quoter
        from compactor_cli.llm.supplement import CompletedText, completed

        language = request.language if request.language != "auto" else detect([self._note])
        # A line of the note must not be taken for a heading of the template when the summary is read back.
        prose = quoter(heading_lines(request.render, (*LANGUAGES, language)))(self._note)
        bare = Summary(source=Source.MEMORY, sections=(), prose=prose, language=language)
        size_tokens = request.count(request.render(bare))
        if not self._note or size_tokens > request.budget_tokens:
            answer = self._otherwise.summarise(request)
            why = f"it takes {size_tokens:,} tokens of {request.budget_tokens:,}" if self._note else "it is empty"
            return replace(answer, notes=(*answer.notes, f"the session's own note was not used: {why}"))
        text = CompletedText(sections=(), prose=prose, missing=frozenset(Section))
        answer = completed(request, text, language, most_ratio=1.0)
        return replace(answer, summary=replace(answer.summary, source=Source.MEMORY))


def by_note(note: str, otherwise: Callable[[str], Summariser]) -> Callable[[str], Summariser]:
    """The note as the summary, unless it is empty, or there is guidance for the summary."""

    def summariser(guidance: str) -> Summariser:
        return otherwise(guidance) if guidance or not note else SessionNoteSummariser(note, otherwise(guidance))

    return summariser
