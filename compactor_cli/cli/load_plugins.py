"""Plug-ins that the options name, loaded before anything is touched."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from compactor_cli.cli.console import Console
from compactor_cli.cli.run_options import RunOptions
from compactor_cli.model.plugins import PluginGroup, WhenFailing, load_plugin, plugin_names
from compactor_cli.model.settings import KEPT_BY, Settings

if TYPE_CHECKING:
    from compactor_cli.model.summary import Summariser

DIGEST = "digest"


def plugged(run_options: RunOptions, settings: Settings) -> dict[str, Any]:
    """Fields of `RunConfig`. Raises UsageError for names that nothing installed has."""
    found: dict[str, Any] = {}
    if settings.keep.by not in KEPT_BY:
        from compactor_cli.llm.importance import plugin_importance

        found["importance"] = plugin_importance(settings.keep.by, run_options.when_failing, _console(run_options).warn)
    if run_options.engine:
        from compactor_cli.plugged import load_engine

        found["engine"] = load_engine(run_options.engine, run_options.when_failing)
    if run_options.summariser not in ("", DIGEST):
        if run_options.summariser not in plugin_names(PluginGroup.SUMMARISERS):
            load_plugin(PluginGroup.SUMMARISERS, run_options.summariser)
        found["summariser"] = partial(_summariser, run_options.summariser, run_options.when_failing)
    return found


def _console(run_options: RunOptions) -> Console:
    return Console("compact", run_options.level, run_options.color)


def _summariser(name: str, when_failing: WhenFailing, guidance: str) -> Summariser:
    from compactor_cli.plugged import PluginSummariser
    from compactor_cli.run.rows import digest

    return PluginSummariser(name, when_failing, digest(guidance))
