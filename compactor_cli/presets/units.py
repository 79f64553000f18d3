"""Values as people write them: ``32k`` tokens, ``25%``, ``10m`` of age. The same words in every layer."""

from __future__ import annotations

import math

from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import Size

_MULTIPLES = {"": 1, "k": 1_000, "m": 1_000_000}
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def tokens(value: object, where: str) -> int:
    """A number of tokens: ``16000``, ``"16k"``, ``"1.5m"``. Raises UsageError naming ``where``."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    number = _with_unit(value, _MULTIPLES)
    if number is None or number != int(number):
        raise UsageError(
            f"{_quoted(value)} is not a number of tokens", next_step="write 16000, 32k or 1.5m", place=where
        )
    return int(number)


def size(value: object, where: str) -> Size:
    """Tokens, or a share between 0 % and 100 %: ``"32k"``, ``"25%"``, ``0.25``. Raises UsageError."""
    if isinstance(value, str) and (value.strip().endswith("%") or 0 < (_number(value.strip()) or 0) < 1):
        return Size(ratio=ratio(value, where))
    if isinstance(value, float) and 0 < value < 1:
        return Size(ratio=value)
    try:
        return Size(tokens=tokens(value, where))
    except UsageError as error:
        raise UsageError(f"{_quoted(value)} is not a size", next_step="write 32k, 1.5m or 25%", place=where) from error


def ratio(value: object, where: str) -> float:
    """A share from 0 to 1: ``0.25``, ``"25%"``. Raises UsageError."""
    number: float | None = None
    if isinstance(value, str):
        text = value.strip()
        number = _number(text[:-1], 100) if text.endswith("%") else _number(text)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    if number is None or not 0 <= number <= 1:
        raise UsageError(f"{_quoted(value)} is not a share", next_step="write 25% or 0.25", place=where)
    return number


def seconds(value: object, where: str) -> float:
    """A length of time: ``600``, ``"90s"``, ``"10m"``, ``"1h"``, ``"2d"``. Raises UsageError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    number = _with_unit(value, _SECONDS)
    if number is None:
        raise UsageError(f"{_quoted(value)} is no length of time", next_step="write 90s, 10m, 1h or 2d", place=where)
    return number


def size_bytes(value: object, where: str) -> int:
    """A number of bytes, in units of 1,024: ``1048576``, ``"128M"``, ``"1.5g"``. Raises UsageError."""
    number = float(value) if isinstance(value, int) else _with_unit(value, _BYTES)
    if number is None:
        raise UsageError(f"{_quoted(value)} is not a number of bytes", next_step="write 64M or 1G", place=where)
    return int(number)


def money(value: object, where: str) -> float:
    """US dollars: ``5``, ``0.25``, ``"$2"``. Raises UsageError."""
    number = _number(str(value).strip().removeprefix("$"))
    if isinstance(value, bool) or number is None or number <= 0:
        raise UsageError(f"{_quoted(value)} is no sum of money", next_step="write 5 or 0.25 (US dollars)", place=where)
    return number


def switch(value: object, where: str) -> bool:
    """On or off: a boolean, ``1``, ``true``, ``yes``, ``on`` and their opposites. Raises UsageError."""
    if isinstance(value, bool):
        return value
    found = _SWITCHES.get(str(value).strip().lower())
    if found is None:
        raise UsageError(f"{_quoted(value)} is neither on nor off", next_step="write true or false", place=where)
    return found


def count(value: object, where: str) -> int:
    """A whole number from 0. Raises UsageError."""
    text = str(value).strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()):
        raise UsageError(f"{_quoted(value)} is no count", next_step="write a whole number", place=where)
    return int(text)


def _with_unit(value: object, units: dict[str, int]) -> float | None:
    if not isinstance(value, str):
        return None
    text = value.strip().lower().replace("_", "")
    unit = text[-1:] if text[-1:].isalpha() else ""
    number = _number(text.removesuffix(unit)) if unit in units else None
    return None if number is None or number < 0 else round(number * units[unit], 6)


def _number(text: str, divisor: int = 1) -> float | None:
    try:
        number = float(text) / divisor
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _quoted(value: object) -> str:
    return f"“{value}”" if isinstance(value, str) else repr(value)
