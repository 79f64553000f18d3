"""Review: a summary shown to a person on the terminal, who takes it, declines it, or says what to do better."""

from __future__ import annotations

from compactor_cli.cli.views import diff_view, plan_view
from compactor_cli.model.errors import UsageError
from compactor_cli.model.transcript import Transcript
from compactor_cli.run.row import Row

TERMINAL = "/dev/tty"
_YES = ("y", "yes", "j", "ja", "是")
_NO = ("n", "no", "nein", "否")
_QUESTION = "take this summary? yes, no, or what to do better: "


def check_terminal() -> None:
    """Raises UsageError where nobody can be asked."""
    try:
        with open(TERMINAL, "rb"):  # noqa: PTH123 -- a device
            return
    except OSError as error:
        raise UsageError("--interactive needs a terminal to ask on", next_step="leave it out") from error


def review(transcript: Transcript, row: Row) -> str | None:
    """Shows plan and summary; an empty text (take it), None (decline), or guidance. The end of input declines."""
    plan = plan_view(transcript, row.plan)
    shown = plan + diff_view(transcript, row.plan, row.summary, row.report.tokens_after, color=False)
    # Two handles: a terminal cannot be sought in, as one for both directions must be.
    with open(TERMINAL, encoding="utf-8") as ear, open(TERMINAL, "w", encoding="utf-8") as mouth:  # noqa: PTH123
        mouth.write(shown)
        for warning in row.report.warnings:
            mouth.write(f"{warning}\n")
        while True:
            mouth.write(_QUESTION)
            mouth.flush()
            line = ear.readline()
            said = line.strip()
            if not line or said.lower() in _NO:
                return None
            if said:
                return "" if said.lower() in _YES else said
