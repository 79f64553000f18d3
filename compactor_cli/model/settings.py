"""Settings: everything that decides what a compaction does, as one frozen value.

The command line, the environment, configuration files and presets are layers that end in one
``Settings``. What only concerns where things are read and written is not here.

This module also parses the values that people write (``32k``, ``25%``, ``10m``, ``4 turns``) and applies tables of
them to a ``Settings``.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, field, is_dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any

from compactor_cli.model.errors import UsageError
from compactor_cli.model.value import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A number of tokens, or a share of something. Both fields 0: no size is set; never are both set."""

    tokens: int = 0
    ratio: float = 0.0

    def of(self, whole_tokens: int) -> int:
        """The size in tokens; a share is taken of ``whole_tokens``."""
        return self.tokens or int(whole_tokens * self.ratio)


class Start(StrEnum):
    """When the trigger starts a compaction."""

    AUTO = "auto"  # by itself
    ASKED = "asked"  # only if a target is named, or if the transcript itself asks (see `Trigger.tool`)
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """When a transcript is compacted, if no target is named, and how small it becomes.

    The tiers are shares of the usable window, which is the window without ``output_tokens``.
    """

    start: Start = Start.AUTO
    window_tokens: int = 0  # 0: that of ``window_model``, else of the model that the transcript last used, else none
    window_model: str = ""
    output_tokens: int = 0  # part of the window that is reserved for the answer
    reserve_tokens: int = 0  # compaction also starts when no more than these are left of the usable window
    threshold_tokens: int = 0  # compaction also starts above this size, whatever the window; 0: no threshold
    log_ratio: float = 0.65
    warn_ratio: float = 0.75
    compact_ratio: float = 0.85  # compaction starts here
    emergency_ratio: float = 0.95
    target_ratio: float = 0.5  # the target, as a share of the size at which compaction starts
    tool: str = ""  # a call of this tool in the newest turn starts a compaction at any size
    # Compaction starts at the end of a phase of the task (its to-dos are done, or a new request follows a finished
    # one), and earlier only when the window or the threshold requires it.
    at_phase: bool = False


NEWEST, SMART, SEMANTIC, HIERARCHICAL = KEPT_BY = ("newest", "smart", "semantic", "hierarchical")
# The values of `Keep.by` with which the tail has no gaps.
UNBROKEN = (NEWEST, HIERARCHICAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What stays as it is: the head, system records (always), and a tail of whole exchanges. 0 switches a limit off.

    ``by`` decides which exchanges get the tail's tokens:

    - ``newest``: the newest ones, without gaps.
    - ``smart``: half of the tokens go to the newest exchanges, the others to those exchanges of the middle that will
      be needed most.
    - ``semantic``: as ``smart``, but those of the middle that are nearest in meaning to the newest messages of the user
      and to the focus.
    - ``hierarchical``: the newest ones, without gaps; the summary has a line for each turn before them, and one for
      each topic of old turns.
    - Any other name is that of a plug-in, which ranks the exchanges in place of ``smart``.
    """

    by: str = NEWEST
    head_turns: int = 2  # at most this many turns, within ``head_tokens``
    head_messages: int = 0  # if set, the head is this many messages with their exchanges, whatever their size
    head_tokens: int = 4_000
    tail_tokens: int = 16_000
    # If one of these two is set, the tail is this many messages (of the user and the assistant) or turns, and
    # ``tail_tokens`` limits it only if it is not 0.
    tail_messages: int = 0
    tail_turns: int = 0
    # If set, the tail is the newest share of the messages' JSON characters, from the next message of the user on.
    tail_ratio: float = 0.0


class PartKind(StrEnum):
    """The kind of parts that a rule shortens."""

    RESULT = "tool-result"
    ARGUMENTS = "tool-arguments"
    TEXT = "text"
    USER = "user-text"
    ASSISTANT = "assistant-text"
    ANY = "any"  # texts and tool results


class When(StrEnum):
    """When a rule shortens."""

    NEEDED = "needed"  # only as far as is needed to reach the target
    ALWAYS = "always"  # also when the transcript is below the target


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRule:
    """Shortens texts without a summary: parts longer than both limits keep their beginning and their end."""

    name: str
    kind: PartKind = PartKind.RESULT
    when: When = When.NEEDED
    over_chars: int = 2_000
    over_tokens: int = 0  # 0: no limit in tokens
    first_chars: int = 800
    last_chars: int = 800
    keep_messages: int = 0  # in this many newest messages nothing is shortened
    keep_parts: int = 0  # this many newest parts of the kind stay whole as well
    # Dotted paths, `clock.dial`. In a text that is a JSON object only the strings at these are shortened, or the keys
    # left out if no characters are to be kept; the text stays JSON.
    keys: tuple[str, ...] = ()
    # Stands for what was cut out. ``{omitted}``: the number of characters left out; ``{id}``: the reference of the
    # whole record in the archive.
    marker: str = "\n[… {omitted} characters left out …]\n"
    unarchived_marker: str = ""  # in place of ``marker`` if the original is not archived; empty: ``marker`` is used


class Strategy(StrEnum):
    """What replaces the records that do not stay."""

    SUMMARY = "summary"  # a summary of the middle, between head and tail
    RETRIEVAL = "retrieval"  # the pieces of the middle that the newest user message asks for
    RULES = "rules"  # nothing: texts are shortened by the rules, see `Rules`
    FIT = "fit"  # nothing: the newest messages that fit stay, see `Fit`


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What `Strategy.RULES` does when the rules alone do not reach the target."""

    halvings: int = 0  # so often all rules are applied again, each time with their limits halved
    middle_out: bool = False  # afterwards, the middle of the transcript is left out and both ends stay


class OverflowPolicy(StrEnum):
    """What happens to a message that does not fit, in the walk from the newest message back to the oldest."""

    STOP = "stop"  # the message and everything before it are left out
    SKIP = "skip"  # the message is left out, and the walk goes on
    CUT_END = "cut-end"  # the message is cut at its end, and everything before it is left out
    CUT_MIDDLE = "cut-middle"  # the message is cut in its middle, and the walk goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What `Strategy.FIT` does with a message that does not fit, by its role."""

    user: OverflowPolicy = OverflowPolicy.STOP
    result: OverflowPolicy = OverflowPolicy.STOP  # a tool's
    other: OverflowPolicy = OverflowPolicy.STOP
    user_leads: bool = False  # the oldest messages that stayed are left out too until the first is one of the user


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many tokens a summary may take."""

    curve: str = "scaled"  # ``scaled``: continuous and monotone in what is covered; ``tiered``: the steps of a table
    size: Size = field(default_factory=Size)  # if set, takes precedence over the curve
    most_ratio: float = 0.4  # the largest share of the target that a summary takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that decides what a compaction does."""

    preset: str = "default"
    target: Size = field(default_factory=Size)  # not set: the size follows from ``trigger``
    trigger: Trigger = field(default_factory=Trigger)
    keep: Keep = field(default_factory=Keep)
    prune: tuple[PruneRule, ...] = (PruneRule(name="tool-result"),)
    budget: Budget = field(default_factory=Budget)
    strategy: Strategy = Strategy.SUMMARY
    rules: Rules = field(default_factory=Rules)
    fit: Fit = field(default_factory=Fit)
    template: str = "handover"
    acknowledgement: str = ""  # the assistant's answer to the summary; empty: none is written
    focus: str = ""  # the subject that is to be kept
    language: str = "auto"
    tokenizer: str = "auto"
    restore_files: int = 0  # how many changed files the summary shows the content of, at most
    min_retention_ratio: float = 0.0  # a compaction fails if less of the middle survives; 0: it never does

    def __hash__(self) -> int:
        # To hash all fields takes longer than a whole row that needs no compaction.
        return hash((self.preset, self.target))

    @cache  # noqa: B019 -- few settings are made, and most live as long as the program
    def fingerprint(self) -> str:
        """16 hex digits, different for any two settings that can give different output."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def untouched(settings: Settings) -> Settings:
    """``settings``, changed so that every transcript stays as it is."""
    never = replace(settings.trigger, start=Start.NEVER)
    return replace(settings, target=Size(), trigger=never, prune=(), strategy=Strategy.SUMMARY)


def unarchived(settings: Settings) -> Settings:
    """``settings`` for runs that do not archive the original: no rule's marker refers to the archive."""
    rules = (replace(rule, marker=rule.unarchived_marker or rule.marker) for rule in settings.prune)
    return replace(settings, prune=tuple(rules))


# The values of `Budget.curve`.
CURVES = ("scaled", "tiered")
_MULTIPLES = {"": 1, "k": 1_000, "m": 1_000_000}
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def read_tokens(value: object, where: str) -> int:
    """A number of tokens: ``16000``, ``"16k"``, ``"1.5m"``. Raises UsageError naming ``where``."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    number = _with_unit(value, _MULTIPLES)
    if number is None or number != int(number):
        raise _refused(value, "is not a number of tokens", "16000, 32k or 1.5m", where)
    return int(number)


def read_size(value: object, where: str) -> Size:
    """Tokens, or a share between 0 % and 100 %: ``"32k"``, ``"25%"``, ``0.25``. Raises UsageError."""
    if isinstance(value, str) and (value.strip().endswith("%") or 0 < (_number(value.strip()) or 0) < 1):
        return Size(ratio=read_ratio(value, where))
    if isinstance(value, float) and 0 < value < 1:
        return Size(ratio=value)
    try:
        return Size(tokens=read_tokens(value, where))
    except UsageError as error:
        raise _refused(value, "is not a size", "32k, 1.5m or 25%", where) from error


def read_target(value: object, where: str) -> Size:
    """As `read_size`, but of more than 0 tokens. Raises UsageError."""
    found = read_size(value, where)
    if found == Size():
        raise UsageError("a target of nothing leaves nothing", next_step="write 32k, 1.5m or 25%", place=where)
    return found


def read_ratio(value: object, where: str) -> float:
    """A share from 0 to 1: ``0.25``, ``"25%"``. Raises UsageError."""
    number: float | None = None
    if isinstance(value, str):
        text = value.strip()
        number = _number(text[:-1], 100) if text.endswith("%") else _number(text)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    if number is None or not 0 <= number <= 1:
        raise _refused(value, "is not a share", "25% or 0.25", where)
    return number


def read_seconds(value: object, where: str) -> float:
    """A length of time: ``600``, ``"90s"``, ``"10m"``, ``"1h"``, ``"2d"``. Raises UsageError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    number = _with_unit(value, _SECONDS)
    if number is None:
        raise _refused(value, "is not a length of time", "90s, 10m, 1h or 2d", where)
    return number


def read_size_bytes(value: object, where: str) -> int:
    """A number of bytes, in units of 1,024: ``1048576``, ``"128M"``, ``"1.5g"``. Raises UsageError."""
    number = float(value) if isinstance(value, int) else _with_unit(value, _BYTES)
    if number is None or number < 0:
        raise _refused(value, "is not a number of bytes", "64M or 1G", where)
    return int(number)


def read_money(value: object, where: str) -> float:
    """US dollars: ``5``, ``0.25``, ``"$2"``. Raises UsageError."""
    number = _number(str(value).strip().removeprefix("$"))
    if isinstance(value, bool) or number is None or number <= 0:
        raise _refused(value, "is not a sum of money", "5 or 0.25 (US dollars)", where)
    return number


def read_switch(value: object, where: str) -> bool:
    """On or off: a boolean, ``1``, ``true``, ``yes``, ``on`` and their opposites. Raises UsageError."""
    if isinstance(value, bool):
        return value
    found = _SWITCHES.get(str(value).strip().lower())
    if found is None:
        raise _refused(value, "is neither on nor off", "true or false", where)
    return found


def read_count(value: object, where: str) -> int:
    """A whole number, 0 or more. Raises UsageError."""
    text = str(value).strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()):
        raise _refused(value, "is not a whole number", "digits alone, as 8", where)
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


def _refused(value: object, what: str, advice: str, where: str) -> UsageError:
    shown = f"“{value}”" if isinstance(value, str) else repr(value)
    return UsageError(f"{shown} {what}", next_step=f"write {advice}", place=where)


# `4 turns`, `1message`.
_KEPT = re.compile(r"(\d+)\s*(turns?|messages?)")


def read_head(value: Any, where: str) -> tuple[str, float]:
    """The unit (``tokens`` or ``turns``) and the number of a head: ``"4k"``, ``"2turns"``. Raises UsageError."""
    unit, number = _counted(value, where)
    if unit == "messages":
        raise UsageError("the head is kept by tokens or turns", next_step="write 4k or 2turns", place=where)
    return unit, number


def read_tail(value: Any, where: str) -> tuple[str, float]:
    """The unit (``tokens``, ``turns``, ``messages`` or ``ratio``) and the number of a tail. Raises UsageError."""
    if isinstance(value, str) and value.strip().endswith("%"):
        return "ratio", read_ratio(value, where)
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
    if isinstance(value, str) and (found := _KEPT.fullmatch(value.strip().lower())):
        return found[2].removesuffix("s") + "s", int(found[1])
    try:
        return "tokens", read_tokens(value, where)
    except UsageError as error:
        raise _refused(value, "is not a size", "16k tokens, 2turns or 2messages; of a tail also 30%", where) from error


def read_budget(value: object, where: str) -> Budget:
    """The size of a summary: the name of a curve, or a `read_size`. Raises UsageError."""
    if value in CURVES:
        return Budget(curve=str(value))
    try:
        return Budget(size=read_size(value, where))
    except UsageError as error:
        raise _refused(value, "is not the size of a summary", f"{', '.join(CURVES)}, 2k or 10%", where) from error


def settings_from(table: Mapping[str, Any], base: Settings, where: str) -> Settings:
    """``base`` with the values of ``table``; fields that it does not name stay.

    Keys are the names of the fields of `Settings`, where ``-`` may stand for ``_``; a value of a field's own type is
    taken as it is. The short forms of options work too: ``keep`` and ``budget`` as a text or number, ``keep_head``,
    ``keep_tail``. ``prune`` replaces all rules. Raises UsageError that names the key and, if it is unknown, the nearest
    known one.
    """
    if not isinstance(table, Mapping):
        raise UsageError(f"{table!r} is not a table", next_step="write a table of keys", place=where)
    table = {key.replace("-", "_"): value for key, value in table.items()}
    ends = {name: table.pop(name) for name in ("keep_head", "keep_tail") if name in table}
    settings = typing.cast(Settings, _overlay(table, base, where))
    keep = settings.keep
    if "keep_head" in ends:
        keep = with_head(keep, *read_head(ends["keep_head"], f"{where}: keep_head"))
    if "keep_tail" in ends:
        keep = with_tail(keep, *read_tail(ends["keep_tail"], f"{where}: keep_tail"))
    return replace(settings, keep=keep)


def nearest(name: str, known: Iterable[str]) -> str:
    """Advice for an unknown name: the known name that it resembles most, or an empty text if it resembles none."""
    import difflib

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else ""


def _overlay(table: Mapping[str, Any], base: Any, where: str) -> Any:
    if not isinstance(table, Mapping):
        raise UsageError(f"{table!r} is not a table", next_step="write a table of keys", place=where)
    types = typing.get_type_hints(type(base))
    changes: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in types:
            advice = nearest(name, types) or f"known keys: {', '.join(types)}"
            raise UsageError(f"unknown key {key}", next_step=advice, place=where)
        changes[name] = _field(types[name], name, value, getattr(base, name), f"{where}: {name}")
    return replaced(base, changes)


def replaced(table: Any, changes: Mapping[str, Any]) -> Any:
    """A table of `Settings` with these changes; ``window_model`` without ``window_tokens`` resets the latter to 0."""
    replaces = {"window_tokens": 0} if changes.get("window_model") else {}
    return replace(table, **{**replaces, **changes})


def _field(kind: Any, name: str, value: Any, base: Any, where: str) -> Any:
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, kind):
        return value
    if kind is Size and isinstance(value, Mapping):  # as reports and plans hold it
        return Size(tokens=read_tokens(value.get("tokens", 0), where), ratio=read_ratio(value.get("ratio", 0.0), where))
    if kind is Size:
        return read_size(value, where)
    if kind is Keep and isinstance(value, str):
        return replace(base, by=value)
    if kind is Budget and not isinstance(value, Mapping):
        return replace(read_budget(value, where), most_ratio=base.most_ratio)
    if is_dataclass(kind):
        return _overlay(value, base, where)
    if kind == tuple[PruneRule, ...]:
        rules = value if isinstance(value, list | tuple) else (None,)
        if all(isinstance(rule, PruneRule) for rule in rules):
            return tuple(rules)
        if not all(isinstance(rule, Mapping) and rule.get("name") for rule in rules):
            raise UsageError("rules are tables with a name each", next_step="write [[prune]] and name = …", place=where)
        return tuple(_overlay(rule, PruneRule(name=""), f"{where}: {rule['name']}") for rule in rules)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(read_choice(value, tuple(kind), where))
    if kind == tuple[str, ...]:
        return read_texts(value, where)
    if name == "curve":
        return read_choice(value, CURVES, where)
    if kind is int and name.endswith("_tokens"):
        return read_tokens(value, where)
    return _PLAIN[kind](value, where)


def read_choice(value: object, choices: tuple[str, ...], where: str) -> str:
    """One of these names. Raises UsageError."""
    if value not in choices:
        raise UsageError(f"“{value}” is not a choice", next_step=f"one of {', '.join(choices)}", place=where)
    return str(value)


def read_texts(value: object, where: str) -> tuple[str, ...]:
    """A list of texts. Raises UsageError."""
    if not isinstance(value, list | tuple):
        raise UsageError(f"{value!r} is not a list", next_step='write ["a", "b"]', place=where)
    return tuple(read_text(item, where) for item in value)


def read_text(value: object, where: str) -> str:
    """A text; other values are not converted. Raises UsageError."""
    if not isinstance(value, str):
        raise UsageError(f"{value!r} is not a text", next_step="put it in quotes", place=where)
    return value


_PLAIN: Mapping[type, Callable[[object, str], Any]] = {
    int: read_count,
    float: read_ratio,
    bool: read_switch,
    str: read_text,
}
