"""Settings: everything that decides what a compaction does, as one frozen value.

The command line, the environment, configuration files and presets are layers that end in one
``Settings``. What only concerns where things are read and written is not here.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from functools import cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A number of tokens, or a share of something: exactly one of both is set."""

    tokens: int = 0
    ratio: float = 0.0

    def of(self, whole_tokens: int) -> int:
        """The size in tokens, shares being of ``whole_tokens``."""
        return self.tokens or int(whole_tokens * self.ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """When a transcript is compacted, if no target is named.

    ``window_tokens`` 0: the window of ``window_model``, else of the model the transcript itself last used,
    else none. With a window, the tiers are shares of it and compaction starts at ``compact_ratio``, or as
    soon as ``tokens + reserve_tokens >= window``. ``threshold_tokens`` starts it whatever the window.
    """

    window_tokens: int = 0
    window_model: str = ""
    reserve_tokens: int = 0
    threshold_tokens: int = 0
    log_ratio: float = 0.65
    warn_ratio: float = 0.75
    compact_ratio: float = 0.85
    emergency_ratio: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """What stays as it is. 0 switches a limit off.

    Head: system records always, then up to ``head_turns`` turns within ``head_tokens``. Tail: whole
    exchanges from the end, within ``tail_tokens``; ``tail_messages`` instead keeps the newest N user and
    assistant messages; ``tail_turns`` the newest N turns.
    """

    head_turns: int = 2
    head_tokens: int = 4_000
    tail_tokens: int = 16_000
    tail_messages: int = 0
    tail_turns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRule:
    """Shortens texts without a summary.

    Applies to parts of ``kind`` (``tool-result``, ``tool-arguments``, ``text``) longer than ``over_chars``, in
    messages older than the newest ``keep_messages``. Keeps ``first_chars`` and ``last_chars`` around ``marker``,
    in which ``{omitted}`` is the number of characters left out.
    """

    name: str
    kind: str = "tool-result"
    over_chars: int = 2_000
    first_chars: int = 800
    last_chars: int = 800
    keep_messages: int = 0
    marker: str = "\n[… {omitted} characters left out …]\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many tokens a summary may take.

    ``curve``: ``scaled`` (continuous and monotone) or ``tiered`` (the table with steps); a fixed ``size``
    goes before the curve. ``most_ratio``: the largest share of the target a summary takes.
    """

    curve: str = "scaled"
    size: Size = field(default_factory=Size)
    most_ratio: float = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that decides what a compaction does. ``target`` unset: see `Trigger`."""

    preset: str = "hermes"
    target: Size = field(default_factory=Size)
    trigger: Trigger = field(default_factory=Trigger)
    keep: Keep = field(default_factory=Keep)
    prune: tuple[PruneRule, ...] = (PruneRule(name="tool-result"),)
    budget: Budget = field(default_factory=Budget)
    summarise: bool = True
    template: str = "hermes"
    acknowledgement: str = ""
    focus: str = ""
    language: str = "auto"
    tokenizer: str = "auto"
    restore_files: int = 0
    min_retention_ratio: float = 0.0

    def fingerprint(self) -> str:
        """16 hex digits that differ whenever two settings may give different output."""
        return _fingerprint(self)


@cache
def _fingerprint(settings: Settings) -> str:
    text = json.dumps(dataclasses.asdict(settings), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
