"""Review: a summary shown to a person on the terminal, who takes it, declines it, or says what to do better."""

from __future__ import annotations

from compactor_cli.cli.plan_views import diff_view, plan_view
from compactor_cli.model.errors import UsageError
from compactor_cli.model.transcript import Transcript
from compactor_cli.run.rows import CompactedRow

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


def review(transcript: Transcript, row: CompactedRow) -> str | None:
    """Shows plan and summary; an empty text (take it), None (decline), or guidance. The end of input declines."""
    plan = plan_view(transcript, row.plan)
    shown = plan + diff_view(transcript, row.plan, row.summary, row.report.tokens_after, color=False)
    # Two handles: a terminal cannot be sought in, as one for both directions must be.
    with open(TERMINAL, encoding="utf-8") as tty_in, open(TERMINAL, "w", encoding="utf-8") as tty_out:  # noqa: PTH123
        tty_out.write(shown)
        for warning in row.report.warnings:
            tty_out.write(f"{warning}\n")
        while True:
            tty_out.write(_QUESTION)
            tty_out.flush()
            line = tty_in.readline()
            answer = line.strip()
            if not line or answer.lower() in _NO:
                return None
            if answer:
                return "" if answer.lower() in _YES else answer
