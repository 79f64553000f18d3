"""Head and tail in short: ``"16k"``, ``"4 turns"``, ``"20 messages"``, ``"25%"`` as people write them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import Keep
from compactor_cli.presets import units as values

_KEPT = re.compile(r"(\d+)\s*(turns?|messages?)")


def read_head(value: Any, where: str) -> tuple[str, float]:
    """The unit (``tokens`` or ``turns``) and the number. Raises UsageError."""
    unit, number = _counted(value, where)
    if unit == "messages":
        raise UsageError("the head is kept by tokens or turns", next_step="write 4k or 2turns", place=where)
    return unit, number


def read_tail(value: Any, where: str) -> tuple[str, float]:
    """The unit (``tokens``, ``turns``, ``messages`` or ``ratio``) and the number. Raises UsageError."""
    if isinstance(value, str) and value.strip().endswith("%"):
        return "ratio", values.ratio(value, where)
    return _counted(value, where)


def with_head(keep: Keep, unit: str, number: float) -> Keep:
    """``keep`` with this head in place of its own."""
    count = int(number)
    if unit == "turns":
        return replace(keep, head_turns=count, head_tokens=0)
    return replace(keep, head_tokens=count, head_turns=(keep.head_turns or Keep().head_turns) if count else 0)


def with_tail(keep: Keep, unit: str, number: float) -> Keep:
    """``keep`` with this tail in place of its own."""
    none = replace(keep, tail_tokens=0, tail_messages=0, tail_turns=0, tail_ratio=0.0)
    change: dict[str, Any] = {f"tail_{unit}": number}
    return replace(none, **change)


def _counted(value: Any, where: str) -> tuple[str, float]:
    found = _KEPT.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        return "tokens", values.tokens(value, where)
    return found[2].removesuffix("s") + "s", int(found[1])
