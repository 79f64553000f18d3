"""Window: how many tokens a model can read, from the table in litellm's wheel, read as a file."""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from compactor_cli.model.errors import UsageError
from compactor_cli.plan.vocabulary import loaded_once

TABLE = "model_prices_and_context_window_backup.json"
_DATE = r"[-@](?:20\d{2}-?\d{2}-?\d{2}|latest)$"
# Bedrock's names end in a version.
_KEY_END = re.compile(r'(?:-v\d+(?::\d+)?)?": ?\{')


@lru_cache(maxsize=256)
def window_tokens(model: str) -> int:
    """The window of a model in tokens, 0 if it is not known.

    Tried: the name as it is, without a mark such as ``[1m]``, without a provider's prefix, without a date. A
    name that the table has under providers' names only gets the window that most of them give.
    """
    table = _table() if model else ""
    names = _spellings(model) if table else ()
    for name in names:
        if found := _entry(table, name):
            return found
    for name in names:
        if sizes := Counter(size for size in _entries_ending(table, name) if size):
            return sizes.most_common(1)[0][0]
    return 0


def required_window_tokens(model: str) -> int:
    """The window of a model the user named. Raises `UsageError` with the nearest known names."""
    found = window_tokens(model)
    if not found:
        nearest = ", ".join(nearest_models(model))
        step = f"did you mean {nearest}? or give the size with --window" if nearest else "give the size with --window"
        raise UsageError(f"the window of model {model} is not known", next_step=step)
    return found


@lru_cache(maxsize=256)
def table_entry(model: str) -> Mapping[str, Any]:
    """What the table says about a model (prices, sizes), found as `window_tokens` finds it; empty if unknown.

    Entries of other providers are not looked at: what they say about prices is their own.
    """
    table = _table() if model else ""
    for name in _spellings(model) if table else ():
        key = f"{json.dumps(name)}: {{"
        at = table.find(key)
        if at >= 0 and (entry := _parsed(table, at + len(key) - 1)):
            return entry
    return {}


def _spellings(model: str) -> tuple[str, ...]:
    plain = re.sub(r"\[[^\]]*\]$", "", model.strip())
    names = [plain, plain.lower()]
    while "/" in names[-1]:
        names.append(names[-1].partition("/")[2])
    names += [re.sub(_DATE, "", name) for name in names]
    return tuple(dict.fromkeys(name for name in names if name))


def _entry(table: str, name: str) -> int:
    key = f"{json.dumps(name)}: {{"
    at = table.find(key)
    return _size(table, at + len(key) - 1) if at >= 0 else 0


def _entries_ending(table: str, name: str) -> Iterator[int]:
    """The windows of all entries named ``provider/name`` or ``provider.name``."""
    at = table.find(name)
    while at >= 0:
        end = _KEY_END.match(table, at + len(name))
        if end and table[at - 1] in "/.":
            yield _size(table, end.end() - 1)
        at = table.find(name, at + 1)


def _size(table: str, brace: int) -> int:
    size = _parsed(table, brace).get("max_input_tokens")
    return size if isinstance(size, int) else 0


def _parsed(table: str, brace: int) -> dict[str, Any]:
    """One entry. Only that is parsed: the whole table takes longer than a compaction."""
    try:
        entry, _ = json.JSONDecoder().raw_decode(table, brace)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def is_provider(name: str) -> bool:
    """Whether the table has a model of this provider; it does not know those that serve models of one's own."""
    return f'"litellm_provider": {json.dumps(name)}' in _table()


def nearest_models(model: str) -> list[str]:
    """Names in the table that look like this one, at most 3, without their providers' other spellings."""
    import difflib

    names = sorted(json.loads(_table() or "{}"), key=len, reverse=True)
    by_last = {name.rpartition("/")[2]: name for name in names if name != "sample_spec"}
    close = difflib.get_close_matches(model.rpartition("/")[2].lower(), by_last, n=3, cutoff=0.6)
    return [by_last[name] for name in close]


@loaded_once
def _table() -> str:
    """The table's text, empty if litellm is not installed."""
    spec = importlib.util.find_spec("litellm")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(location) / TABLE
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return ""
