"""Plug-ins: parts that other installed packages provide, found by entry points.

A package lists its plug-ins in its ``pyproject.toml``, under ``[project.entry-points."compact.engines"]`` and so on.
Entry points are read only when a name is asked for that is not built in (dialects: when no built-in one fits).
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from compactor_cli.model.errors import CompactError, PluginFailed, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class PluginGroup(StrEnum):
    """The kinds of plug-ins; the values are the names of the entry-point groups."""

    DIALECTS = "compact.dialects"
    SUMMARISERS = "compact.summarisers"
    IMPORTANCE = "compact.importance"
    ENGINES = "compact.engines"

    @property
    def noun(self) -> str:
        """What a plug-in of this kind is called in messages."""
        return _NOUNS[self]


_NOUNS = {
    PluginGroup.DIALECTS: "format",
    PluginGroup.SUMMARISERS: "summariser",
    PluginGroup.IMPORTANCE: "importance",
    PluginGroup.ENGINES: "engine",
}


class WhenFailing(StrEnum):
    """What to do when a plug-in fails."""

    BUILT_IN = "built-in"  # the built-in part does the work, with a warning in the report
    FAIL = "fail"  # the input fails and stays as it is


def plugin_names(group: PluginGroup) -> tuple[str, ...]:
    """The names of all installed plug-ins of a kind, in alphabetical order. Imports none of them."""
    return tuple(sorted(_entries(group)))


@cache
def load_plugin(group: PluginGroup, name: str) -> Any:
    """Import the plug-in of this name, once per process; if it is a class, an instance is made without arguments.

    Raises UsageError if no installed plug-in has the name, PluginFailed if importing or instantiating it fails.
    """
    entry = _entries(group).get(name)
    if entry is None:
        known = plugin_names(group)
        advice = f"installed: {', '.join(known)}" if known else f"no installed package has entry points {group.value}"
        raise UsageError(f"no {group.noun} is called {name!r}", next_step=advice)
    try:
        found = entry.load()
        return found() if isinstance(found, type) else found
    except Exception as error:
        raise plugin_failed(group, name, error) from error


def plugin_failed(group: PluginGroup, name: str, error: Exception) -> PluginFailed:
    """The error as a PluginFailed that names the plug-in; a PluginFailed is returned as it is."""
    if isinstance(error, PluginFailed):
        return error
    what = error.what if isinstance(error, CompactError) else f"{type(error).__name__}: {error}"
    advice = f"ask those who made it; without it, leave --{group.noun} out"
    return PluginFailed(f"the {group.noun} {name} failed ({what})", next_step=advice)


@cache
def _entries(group: PluginGroup) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=group.value)}
