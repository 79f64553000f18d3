"""Kept by hierarchy: a line for each older turn, and old turns that share a line where there are too many."""

from __future__ import annotations

from conversation import Answer, answer, call, conversation, digest, says, texts, user

from compactor_cli.model.settings import HIERARCHICAL, NEWEST
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message


def work(turns: int) -> list[Message]:
    said: list[Message] = []
    for n in range(turns):
        path = f"/data/app/harbour/gauge_{n}.py"
        said += [
            user(f"Please mend the reading of gauge number {n}, it loses every second line of its feed."),
            call("Edit", f"e{n}", file_path=path, old_string="a", new_string=f"b{n}"),
            answer("The file has been updated.", f"e{n}"),
            says(f"Gauge {n} reads all of its lines now, the parser kept half of its buffer back."),
        ]
    return said


def turn_lines(answered: Answer) -> list[str]:
    """The lines of turns, each beginning with what was asked."""
    return [line for line in texts(answered, Section.HISTORY) if line.startswith('"')]


def test_every_turn_has_a_line_of_its_own() -> None:
    transcript = conversation(*work(24))
    lines = turn_lines(digest(transcript, 2_400, kept_by=HIERARCHICAL))
    assert len(lines) == 24
    assert not any(" · " in line for line in lines)
    assert len(turn_lines(digest(transcript, 2_400, kept_by=NEWEST))) < 24


def test_where_there_are_too_many_the_oldest_share_lines() -> None:
    transcript = conversation(*work(120))
    lines = turn_lines(digest(transcript, 2_400, kept_by=HIERARCHICAL))
    usual = turn_lines(digest(transcript, 2_400, kept_by=NEWEST))
    stated, usually = (sum(line.count(" · ") + 1 for line in found) for found in (lines, usual))
    assert stated > usually
    assert [" · " in line for line in lines] == sorted((" · " in line for line in lines), reverse=True)
    assert "gauge_119.py" in lines[-1]


def test_the_budget_holds() -> None:
    for budget in (400, 1_000, 3_000):
        answered = digest(conversation(*work(40)), budget, kept_by=HIERARCHICAL)
        assert answered.summary.sections
