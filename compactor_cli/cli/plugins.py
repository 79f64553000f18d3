"""Plug-ins that the options name, loaded before anything is touched."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from compactor_cli.cli.console import Console
from compactor_cli.cli.wishes import Wishes
from compactor_cli.model.plugins import Group, WhenFailing, load_plugin, plugin_names
from compactor_cli.model.settings import KEPT_BY, Settings

if TYPE_CHECKING:
    from compactor_cli.model.summariser import Summariser

DIGEST = "digest"


def plugged(wishes: Wishes, settings: Settings) -> dict[str, Any]:
    """Fields of `Orders`. Raises UsageError for names that nothing installed has."""
    found: dict[str, Any] = {}
    if settings.keep.by not in KEPT_BY:
        from compactor_cli.llm.importance.plugged import plugged_importance

        found["importance"] = plugged_importance(settings.keep.by, wishes.when_failing, _console(wishes).warn)
    if wishes.engine:
        from compactor_cli.plugged import load_engine

        found["engine"] = load_engine(wishes.engine, wishes.when_failing)
    if wishes.summariser not in ("", DIGEST):
        if wishes.summariser not in plugin_names(Group.SUMMARISERS):
            load_plugin(Group.SUMMARISERS, wishes.summariser)
        found["summariser"] = partial(_summariser, wishes.summariser, wishes.when_failing)
    return found


def _console(wishes: Wishes) -> Console:
    return Console("compact", wishes.level, wishes.color)


def _summariser(name: str, when_failing: WhenFailing, guidance: str) -> Summariser:
    from compactor_cli.plugged import PluggedSummariser
    from compactor_cli.run.rows import digest

    return PluggedSummariser(name, when_failing, digest(guidance))
