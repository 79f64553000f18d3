"""A focus decides what the history tells: what names it comes first, however old, and within the budget."""

from __future__ import annotations

from conversation import answer, call, conversation, count, digest, request, says, texts, user

from compactor_cli.digest.analysis import analyse
from compactor_cli.digest.candidates import candidates_of
from compactor_cli.digest.choice import FOCUS_RATIO, Choice
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message

NAMED = "The exporter writes column {0} of the ledger as text because the importer {0} refuses dates."
OTHER = "Gauge {0} resends {1} readings to src/module_{0}.py because its clock drifts by {1} seconds."


def session(steps: int = 60) -> list[Message]:
    """Every fifth step speaks of the exporter; a command of every tenth prints a line on it."""
    found = [user("Repair the gauges and everything that hangs on them, please.")]
    for step in range(steps):
        printed = f"exporter: {step} rows skipped" if step % 10 == 3 else f"module_{step}.py: {step * 7} passed"
        found += [call("Bash", str(step), command=f"check {step}"), answer(printed, str(step))]
        found.append(says((NAMED if step % 5 == 0 else OTHER).format(step, step + 3)))
    return found


def mentions(focus: str, tokens: int) -> int:
    """The sentences and lines of output on the exporter that a digest tells."""
    told = "\n".join(texts(digest(conversation(*session()), tokens, focus=focus), Section.HISTORY))
    lines = [NAMED.format(step) for step in range(0, 60, 5)]
    printed = [f"exporter: {step} rows skipped" for step in range(3, 60, 10)]
    return sum(line in told for line in (*lines, *printed))


def test_with_a_focus_at_least_half_of_what_names_it_is_stated() -> None:
    assert mentions("", 900) < 9 <= mentions("exporter", 900)


def test_what_names_the_focus_leaves_a_share_to_everything_else() -> None:
    told = "\n".join(texts(digest(conversation(*session()), 700, focus="exporter"), Section.HISTORY))
    assert told.count("resends") >= 3


def test_a_focus_that_nothing_names_changes_nothing() -> None:
    assert digest(conversation(*session()), 600, focus="submarine") == digest(conversation(*session()), 600)


def test_the_choice_holds_its_budget_with_a_focus() -> None:
    analysis = analyse(request(conversation(*session()), focus="exporter"))
    taken = Choice(candidates_of(analysis, 200), (), analysis.worth, count, focus=analysis.focus).choose(200)
    named = [one for one in taken if "exporter" in one.text]
    assert sum(count(one.text) + 1 for one in taken) <= 200
    assert named
    assert sum(count(one.text) + 1 for one in named[:-1]) <= 200 * FOCUS_RATIO


def test_a_long_message_is_quoted_around_the_focus() -> None:
    filler = "nothing of importance was seen in any of the other places that were looked at, " * 12
    long = f"While {filler}the exporter kept {filler}its rows"
    whole = conversation(user("Look at it"), says(long), *session(30))
    told = "\n".join(texts(digest(whole, 900, focus="exporter"), Section.HISTORY))
    assert "the exporter kept" in told
