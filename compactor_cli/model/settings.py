"""Settings: everything that decides what a compaction does, as one frozen value.

The command line, the environment, configuration files and presets are layers that end in one
``Settings``. What only concerns where things are read and written is not here.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import field
from enum import StrEnum
from functools import cache

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
        text = json.dumps(dataclasses.asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def untouched(settings: Settings) -> Settings:
    """The settings that leave every transcript as it is."""
    never = dataclasses.replace(settings.trigger, start=Start.NEVER)
    return dataclasses.replace(settings, target=Size(), trigger=never, prune=(), strategy=Strategy.SUMMARY)


def unarchived(settings: Settings) -> Settings:
    """The settings where the original is not archived: no rule's marker leads there."""
    rules = (dataclasses.replace(rule, marker=rule.unarchived_marker or rule.marker) for rule in settings.prune)
    return dataclasses.replace(settings, prune=tuple(rules))
