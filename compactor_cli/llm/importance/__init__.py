"""Importance: what of the middle is worth staying as it is, by salience or by nearness to the task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compactor_cli.model.plugins import WhenFailing
from compactor_cli.model.settings import KEPT_BY, SEMANTIC, SMART, Keep

if TYPE_CHECKING:
    from compactor_cli.model.plan import Importance


def importance_of(keep: Keep) -> Importance | None:
    """What ranks the middle by these settings, offline; None where the tail is unbroken.

    Raises UsageError for a name that neither is built in nor has a plug-in.
    """
    if keep.by == SMART:
        from compactor_cli.llm.importance.by_salience import Salience

        return Salience()
    if keep.by == SEMANTIC:
        from compactor_cli.llm.importance.nearness import WordOverlap

        return WordOverlap()
    if keep.by not in KEPT_BY:
        from compactor_cli.llm.importance.plugin import plugin_importance

        return plugin_importance(keep.by, WhenFailing.FAIL)
    return None
