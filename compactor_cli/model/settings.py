"""Settings: everything that decides what a compaction does, as one frozen value, and the values that people write.

The command line, the environment, configuration files and presets are layers that end in one
``Settings``. What only concerns where things are read and written is not here.

What is written (``32k``, ``25%``, ``10m``, ``4 turns``) is read here, and tables of it laid over Settings.
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
    """A number of tokens, or a share of something: exactly one of both is set."""

    tokens: int = 0
    ratio: float = 0.0

    def of(self, whole_tokens: int) -> int:
        """The size in tokens, shares being of ``whole_tokens``."""
        return self.tokens or int(whole_tokens * self.ratio)


class Start(StrEnum):
    """Whether the trigger starts a compaction by itself."""

    AUTO = "auto"
    ASKED = "asked"  # only where a target is named, or the transcript itself asks
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """When a transcript is compacted, if no target is named, and how small it becomes.

    The tiers are shares of the window without what is left to the answer; compaction starts at ``compact_ratio``.
    """

    start: Start = Start.AUTO
    window_tokens: int = 0  # 0: that of ``window_model``, else of the model that the transcript last used, else none
    window_model: str = ""
    output_tokens: int = 0  # of the window, what is left to the answer
    reserve_tokens: int = 0  # it starts too as soon as the size and these fill the rest of the window
    threshold_tokens: int = 0  # above these it starts whatever the window
    log_ratio: float = 0.65
    warn_ratio: float = 0.75
    compact_ratio: float = 0.85
    emergency_ratio: float = 0.95
    target_ratio: float = 0.5  # of the size that starts it
    tool: str = ""  # a call of this tool in the newest turn starts it at any size
    # It starts at the end of a phase of the task (its to-dos are done, or a new request follows a finished one), sooner
    # only under pressure.
    at_phase: bool = False


NEWEST, SMART, SEMANTIC, HIERARCHICAL = KEPT_BY = ("newest", "smart", "semantic", "hierarchical")
# With these the tail is unbroken.
UNBROKEN = (NEWEST, HIERARCHICAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What stays as it is: the head, system records always, and the tail, whole exchanges. 0 switches a limit off.

    ``by``: what the tail's tokens are given to. ``newest``: an unbroken tail. ``smart``: half of them to the newest
    exchanges, the others to those of the middle that say most of what will be needed; ``semantic``: to those that
    are nearest to the newest messages of the user and to the focus. ``hierarchical``: an unbroken tail; the summary
    has a line for each turn before it, and for each topic of old turns. Any other name is that of a plug-in, asked
    in place of ``smart``.
    """

    by: str = NEWEST
    head_turns: int = 2  # at most, within ``head_tokens``
    head_messages: int = 0  # instead, the first ones with what belongs to them, whatever their size
    head_tokens: int = 4_000
    tail_tokens: int = 16_000
    tail_messages: int = 0  # instead, the newest of the user and the assistant
    tail_turns: int = 0  # instead, the newest turns
    # Instead, the newest share of the messages' JSON characters, cut forward to the next message of the user.
    tail_ratio: float = 0.0


class PartKind(StrEnum):
    """Which parts a rule shortens."""

    RESULT = "tool-result"
    ARGUMENTS = "tool-arguments"
    TEXT = "text"
    USER = "user-text"
    ASSISTANT = "assistant-text"
    ANY = "any"  # texts and tool results


class When(StrEnum):
    """When a rule shortens."""

    NEEDED = "needed"  # as far as the target asks
    ALWAYS = "always"  # below it too


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRule:
    """Shortens texts without a summary: parts longer than both limits keep their beginning and their end."""

    name: str
    kind: PartKind = PartKind.RESULT
    when: When = When.NEEDED
    over_chars: int = 2_000
    over_tokens: int = 0
    first_chars: int = 800
    last_chars: int = 800
    keep_messages: int = 0  # the newest, in which nothing is shortened
    keep_parts: int = 0  # the newest of this kind in older messages, which stay
    # Dotted: of a text that is a JSON object only these strings are shortened, and what is at them is left out where
    # nothing is kept; the text stays JSON.
    keys: tuple[str, ...] = ()
    # In place of the middle. ``{omitted}``: the number of characters left out; ``{id}``: the name by which the archive
    # knows the whole record.
    marker: str = "\n[… {omitted} characters left out …]\n"
    unarchived_marker: str = ""  # where it is set, in place of ``marker`` where no archive has the original


class Strategy(StrEnum):
    """What replaces what does not stay."""

    SUMMARY = "summary"  # of the middle, between head and tail
    RETRIEVAL = "retrieval"  # the pieces of it that the newest user message asks for
    RULES = "rules"  # nothing: texts are shortened by the rules, see `Rules`
    FIT = "fit"  # nothing: the newest messages that fit stay, see `Fit`


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How far ``rules`` go where they do not reach the target.

    All rules again with their limits halved, ``halvings`` times; then, with ``middle_out``, the middle of the
    transcript is left out and both ends stay.
    """

    halvings: int = 0
    middle_out: bool = False


class OverflowPolicy(StrEnum):
    """What becomes of a message that does not fit, and of the walk back from the newest."""

    STOP = "stop"  # it goes, and everything before it
    SKIP = "skip"  # it goes, the walk goes on
    CUT_END = "cut-end"  # it is cut at its end, and everything before it goes
    CUT_MIDDLE = "cut-middle"  # it is cut in its middle, the walk goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What `Strategy.FIT` does with what does not fit, by who speaks: the user, a tool, anyone else.

    With ``user_leads``, the oldest messages that stayed go until one of the user is the first.
    """

    user: OverflowPolicy = OverflowPolicy.STOP
    result: OverflowPolicy = OverflowPolicy.STOP
    other: OverflowPolicy = OverflowPolicy.STOP
    user_leads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many tokens a summary may take.

    ``curve``: ``scaled`` (continuous and monotone) or ``tiered`` (the table with steps); a fixed ``size``
    takes precedence over the curve. ``most_ratio``: the largest share of the target a summary takes.
    """

    curve: str = "scaled"
    size: Size = field(default_factory=Size)
    most_ratio: float = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that decides what a compaction does. ``target`` unset: see `Trigger`."""

    preset: str = "default"
    target: Size = field(default_factory=Size)
    trigger: Trigger = field(default_factory=Trigger)
    keep: Keep = field(default_factory=Keep)
    prune: tuple[PruneRule, ...] = (PruneRule(name="tool-result"),)
    budget: Budget = field(default_factory=Budget)
    strategy: Strategy = Strategy.SUMMARY
    rules: Rules = field(default_factory=Rules)
    fit: Fit = field(default_factory=Fit)
    template: str = "handover"
    acknowledgement: str = ""
    focus: str = ""
    language: str = "auto"
    tokenizer: str = "auto"
    restore_files: int = 0
    min_retention_ratio: float = 0.0

    def __hash__(self) -> int:
        # Of all values it takes longer than a row that needs nothing.
        return hash((self.preset, self.target))

    @cache  # noqa: B019 -- few settings are made, and most live as long as the program
    def fingerprint(self) -> str:
        """16 hex digits that differ whenever two settings may give different output."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def untouched(settings: Settings) -> Settings:
    """The settings that leave every transcript as it is."""
    never = replace(settings.trigger, start=Start.NEVER)
    return replace(settings, target=Size(), trigger=never, prune=(), strategy=Strategy.SUMMARY)


def unarchived(settings: Settings) -> Settings:
    """The settings where the original is not archived: no rule's marker leads there."""
    rules = (replace(rule, marker=rule.unarchived_marker or rule.marker) for rule in settings.prune)
    return replace(settings, prune=tuple(rules))


# Of `Budget.curve`.
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
    """A `read_size` that leaves something. Raises UsageError."""
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
    """A whole number from 0. Raises UsageError."""
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
    """``base`` with every value that ``table`` names; the others stay.

    Keys are the names of the fields of `Settings`, ``-`` standing for ``_``; a value of a field's own type is taken as
    it is. In short, as options have them: ``keep`` and ``budget`` as a text or number, ``keep_head``, ``keep_tail``.
    ``prune`` replaces all rules. Raises UsageError that names the key, and the nearest known one where it is unknown.
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
    """Advice for an unknown name: the known one it resembles most, or where to look."""
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
    """A table of `Settings` with these changes; a window named by a model replaces one in tokens."""
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
    """A text, which no other value is taken for. Raises UsageError."""
    if not isinstance(value, str):
        raise UsageError(f"{value!r} is not a text", next_step="put it in quotes", place=where)
    return value


_PLAIN: Mapping[type, Callable[[object, str], Any]] = {
    int: read_count,
    float: read_ratio,
    bool: read_switch,
    str: read_text,
}
