"""The dialects by name. A module is imported when its dialect is asked for, not before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module

from compactor_cli.core.errors import UsageError
from compactor_cli.normalise.base import Dialect

# The order decides between dialects that know a value equally well: marks of their own first, plain chat last.
_DIALECTS = (
    ("claude-code", "compactor_cli.normalise.claude_code:DIALECT"),
    ("codex", "compactor_cli.normalise.codex:DIALECT"),
    ("pi", "compactor_cli.normalise.pi:DIALECT"),
    ("openai-chat", "compactor_cli.normalise.openai_chat:DIALECT"),
    ("anthropic", "compactor_cli.normalise.anthropic:DIALECT"),
    ("tau", "compactor_cli.normalise.tau:DIALECT"),
    ("sharegpt", "compactor_cli.normalise.sharegpt:DIALECT"),
    ("hermes", "compactor_cli.normalise.hermes_trajectory:DIALECT"),
)


def names() -> tuple[str, ...]:
    """The names that `get` knows, without importing a dialect."""
    return tuple(name for name, _ in _DIALECTS)


@cache
def get(name: str) -> Dialect:
    """The dialect of that name. Raises UsageError naming the nearest one that exists."""
    for known, where in _DIALECTS:
        if known == name:
            module, attribute = where.split(":")
            dialect: Dialect = getattr(import_module(module), attribute)
            return dialect
    raise UsageError(f"no format is called {name!r}", next_step=_advice(name))


def each_dialect() -> Iterator[Dialect]:
    """The dialects one after another, each imported when it is reached."""
    return (get(name) for name in names())


def all_dialects() -> tuple[Dialect, ...]:
    """Every dialect, in the order in which detection asks them."""
    return tuple(each_dialect())


def _advice(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name.lower().replace("_", "-"), names(), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"the formats are {', '.join(names())}"
