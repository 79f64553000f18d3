"""Loss: what did not make it is named, by kind, with the share that did."""

from __future__ import annotations

from conversation import WORK, conversation, digest, says, user

from compactor_cli.digest.loss import MOST_NAMED


def test_all_is_kept_where_there_is_room() -> None:
    one = digest(WORK, 3_000)
    kept = dict(one.summary.retention)
    assert kept["paths"] == kept["open items"] == kept["commands"] == kept["user rules"] == 1.0
    assert one.summary.lost == ()


def test_what_is_left_out_is_named() -> None:
    rules = [f"You must never touch the module number {number} of the archive folder." for number in range(90)]
    one = digest(conversation(*(user(rule) for rule in rules), says("ok")), 700)
    lost, kept = dict(one.summary.lost), dict(one.summary.retention)
    assert 0.0 < kept["user rules"] < 1.0
    assert len(lost["user rules"]) == MOST_NAMED
    assert set(lost["user rules"]) <= set(rules)
    assert "open items" not in kept
