"""Compact agents' transcripts: the middle becomes a summary, what is kept keeps its bytes, originals are archived.

The names in ``__all__`` are the public API: docs/python-api.md. Readers of the code begin at `engine.py`, which
compacts one transcript, and `run/jobs.py`, which takes a file from its first look to its replacement;
docs/architecture.md is the map.
"""

# That of typing, which is not imported for it: that would take longer than the rest of the start.
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
    """Load the public names when one is first used, so that the start of the command line does not wait for them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from compactor_cli import api

    value = globals()[name] = getattr(api, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
