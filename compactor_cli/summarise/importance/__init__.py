"""Importance: what of the middle is worth staying as it is, by salience or by nearness to the task."""

from __future__ import annotations

from compactor_cli.core.importance import Importance
from compactor_cli.core.settings import SEMANTIC, SMART, Keep


def importance_of(keep: Keep) -> Importance | None:
    """What ranks the middle by these settings, offline; None where the tail is unbroken."""
    if keep.by == SMART:
        from compactor_cli.summarise.importance.salience import Salience

        return Salience()
    if keep.by == SEMANTIC:
        from compactor_cli.summarise.importance.nearness import Words

        return Words()
    return None
