"""Compact LLM agent transcripts: keep what the agent needs next, archive the rest.

What this package offers to programs is what is named here; see docs/python-api.md.
"""

# As in typing, which is not imported for it: that takes longer than the rest of a start that imports nothing else.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from compactor_cli.api import CompactError, Result, Settings, compact, compact_batch, iter_compact, make_digest

__version__ = "0.1.0"

__all__ = [
    "CompactError",
    "Result",
    "Settings",
    "__version__",
    "compact",
    "compact_batch",
    "iter_compact",
    "make_digest",
]


def __getattr__(name: str) -> object:
    """The public names, loaded when one is first used: the command line's start does not wait for them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from compactor_cli import api

    value = globals()[name] = getattr(api, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
