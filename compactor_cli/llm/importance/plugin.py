"""Plugged: a ranking that another package brings, by an entry point of the group ``compact.importance``."""

from __future__ import annotations

from collections.abc import Callable

from compactor_cli.model.errors import PluginFailed, UsageError
from compactor_cli.model.plan import Importance, Middle, Ranking
from compactor_cli.model.plugins import PluginGroup, WhenFailing, load_plugin, plugin_failed, plugin_names
from compactor_cli.model.settings import KEPT_BY


class PluginImportance:
    """Asks the plug-in; where it fails, the newest exchanges stay. The plan says why, and ``warn`` is called once."""

    def __init__(self, name: str, when_failing: WhenFailing, warn: Callable[[str], object]) -> None:
        self._name = name
        self._when_failing = when_failing
        self._warn = warn
        self._is_warned = False

    def rank(self, middle: Middle) -> Ranking:
        """Its ranking. Raises PluginFailed only where the run is strict."""
        try:
            importance: Importance = load_plugin(PluginGroup.IMPORTANCE, self._name)
            ranking = importance.rank(middle)
            if not all(0 <= number < len(middle.blocks) for number in ranking.order):
                raise PluginFailed(f"the importance {self._name} failed (it ranks what is not there)")
        except Exception as error:
            failure = plugin_failed(PluginGroup.IMPORTANCE, self._name, error)
            if self._when_failing is WhenFailing.FAIL:
                raise failure from error
            note = f"{failure.what}: the newest stay"
            if not self._is_warned:
                self._is_warned = True
                self._warn(note)
            return Ranking(order=(), note=note)
        return ranking


def _silent(text: str) -> None:
    """Nobody is given."""


def plugin_importance(
    name: str, when_failing: WhenFailing, warn: Callable[[str], object] = _silent
) -> PluginImportance:
    """The ranking of this name. Raises UsageError if nothing installed has it."""
    names = plugin_names(PluginGroup.IMPORTANCE)
    if name not in names:
        raise UsageError(f"nothing keeps by {name!r}", next_step=f"known: {', '.join((*KEPT_BY, *names))}")
    return PluginImportance(name, when_failing, warn)
