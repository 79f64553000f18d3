"""Plug-ins: parts that another package brings, found by the entry points of what is installed.

Nothing is looked for before a part is asked for by a name that is not built in (dialects: before nothing that is
built in fits). A package names them in its ``pyproject.toml``: ``[project.entry-points."compact.engines"]``.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from compactor_cli.model.errors import CompactError, PluginFailed, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class PluginGroup(StrEnum):
    """What can be brought; the values are the names of the entry-point groups."""

    DIALECTS = "compact.dialects"
    SUMMARISERS = "compact.summarisers"
    IMPORTANCE = "compact.importance"
    ENGINES = "compact.engines"

    @property
    def noun(self) -> str:
        """What one of them is called."""
        return _NOUNS[self]


_NOUNS = {
    PluginGroup.DIALECTS: "format",
    PluginGroup.SUMMARISERS: "summariser",
    PluginGroup.IMPORTANCE: "importance",
    PluginGroup.ENGINES: "engine",
}


class WhenFailing(StrEnum):
    """What to do where a plug-in fails."""

    BUILT_IN = "built-in"  # what is built in does the work, with a warning in the report
    FAIL = "fail"  # the input fails and stays as it is


def plugin_names(group: PluginGroup) -> tuple[str, ...]:
    """The names that installed packages bring, in alphabetical order; none of them is imported."""
    return tuple(sorted(_entries(group)))


@cache
def load_plugin(group: PluginGroup, name: str) -> Any:
    """The plug-in of this name, the same whenever it is asked for; a class is called for one.

    Raises UsageError if nothing installed has the name, PluginFailed if it cannot be imported.
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
    """What went wrong, with the plug-in's name."""
    if isinstance(error, PluginFailed):
        return error
    what = error.what if isinstance(error, CompactError) else f"{type(error).__name__}: {error}"
    advice = f"ask those who made it; without it, leave --{group.noun} out"
    return PluginFailed(f"the {group.noun} {name} failed ({what})", next_step=advice)


@cache
def _entries(group: PluginGroup) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=group.value)}
