"""Importance: which exchanges of the middle stay as they are, next to the newest ones.

The planner asks, and does not know who answers: scores of the digest, a model's embeddings, or a plug-in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from compactor_cli.model.transcript import Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Middle:
    """What could stay of a transcript.

    ``blocks``: runs of records that divide no exchange, ascending and apart; ``tokens``: what each would take;
    ``room_tokens``: what all that stay may take together. ``kept``: records that stay in any case, ascending;
    the newest exchange is among them. ``focus``: what the user wants most.
    """

    transcript: Transcript
    blocks: tuple[range, ...]
    tokens: tuple[int, ...]
    room_tokens: int
    kept: tuple[int, ...]
    focus: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Numbers of blocks, the most important first; all others come after, the newest first. ``note`` for people."""

    order: Sequence[int]
    note: str = ""


class Importance(Protocol):
    """Ranks the blocks of a middle. The same middle gives the same ranking, unless a model is asked."""

    def rank(self, middle: Middle) -> Ranking:
        """The blocks in the order in which they are given room. Raises nothing for odd content."""
        ...
