"""Salience: more mentions and the agent's own use weigh more; a focus weighs more still."""

from __future__ import annotations

import math

import pytest
from digest_events import event, event_lists
from hypothesis import given

from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.salience import FREQUENCY_SHARE, build, features, score, weights
from compactor_cli.digest.tools import ToolKind

FILES = "src/one.py src/two.py src/three.py"


@given(event_lists)
def test_scores_are_probabilities(events: list[Event]) -> None:
    scores = score(build(events))
    assert all(0.0 <= p <= 1.0 for p in scores.rows)
    assert len(scores.top(5)) == min(5, len(scores.rows))


def test_what_is_worked_on_scores_above_what_was_listed() -> None:
    events = [
        event(EventKind.RESULT, FILES, record=0),
        event(EventKind.ASSISTANT, "src/two.py has the fault", record=1),
        event(EventKind.CALL, "Edit\nfile_path=src/two.py", record=2, tool=ToolKind.EDIT),
        event(EventKind.CALL, "Bash\ncommand=pytest src/two.py", record=3, tool=ToolKind.COMMAND),
    ]
    scores = score(build(events))
    assert scores.of("src/two.py") > 2 * scores.of("src/one.py")
    assert scores.of("unknown_name") == 0.0
    assert scores.top(1) == ("src/two.py",)


def test_a_focus_lifts_its_atoms() -> None:
    table = build([event(EventKind.RESULT, FILES)])
    assert score(table, focus="three").of("src/three.py") > 3 * score(table).of("src/three.py")
    assert score(table, focus="three").of("src/one.py") == score(table).of("src/one.py")


def test_chats_are_weighed_by_words_and_names() -> None:
    conversation = [
        "I asked Miguel about the harbour",
        "the harbour opens again in spring",
        "we talk about the weather",
        "ok",
    ]
    scores = score(build([event(EventKind.USER, text, record=i) for i, text in enumerate(conversation)]))
    assert scores.coding == 0.0
    assert scores.terms["miguel"] > scores.terms["weather"] > 0
    assert "the" not in scores.terms


def test_a_language_without_spaces_has_terms() -> None:
    scores = score(build([event(EventKind.USER, "请把报告发给王小明"), event(EventKind.ASSISTANT, "好的")]))
    assert "小明" in scores.terms


def test_both_models_have_their_constants() -> None:
    assert weights("atom_salience")["intercept"] < 0
    assert weights("phrase_salience")["intercept"] < 0
    with pytest.raises(KeyError):
        weights("none")


@given(event_lists)
def test_features_and_frequency_are_what_scores_are_made_of(events: list[Event]) -> None:
    table = build(events)
    scores = score(table)
    w = weights("atom_salience")
    columns = table.columns
    times = [
        sum(row) for row in zip(*(columns[name] for name in ("users", "assistants", "calls", "results")), strict=True)
    ]
    most = math.log1p(max(times, default=0)) or 1.0  # what a summary says is counted as nobody's words
    for atom, row in table.atoms.items():
        logit = w["intercept"] + sum(w[name] * value for name, value in features(table, atom).items())
        fitted, frequency = 1 / (1 + math.exp(-logit)), math.log1p(times[row]) / most
        if scores.coding == 1.0:
            expected = (1 - FREQUENCY_SHARE) * fitted + FREQUENCY_SHARE * frequency
            assert math.isclose(expected, scores.rows[row], abs_tol=1e-9)
