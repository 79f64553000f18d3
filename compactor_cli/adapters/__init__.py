"""compact inside agent frameworks: one module for each, which imports the framework. See docs/agents.md.

`StableCompactor` is for conversations that grow from request to request: the cut stays until the next compaction.
"""

from __future__ import annotations

from typing import Any, Unpack

from compactor_cli.api import Amount, Options, compact
from compactor_cli.model.settings import read_tokens


class StableCompactor:
    """Compacts messages (mappings, of any format) that take more than ``limit`` tokens, to ``share`` of the limit.

    While a conversation only grows, its compacted form stays the beginning of what is sent, so that the provider's
    prompt cache remains valid until the limit is reached again. One compactor follows one conversation; with another
    one, it starts over. ``options`` and the errors raised are those of `compact`.
    """

    def __init__(self, limit: Amount, *, share: float = 0.5, **options: Unpack[Options]) -> None:
        threshold = read_tokens(limit, "limit")
        self._options = options | Options(trigger={"threshold_tokens": threshold, "target_ratio": share})
        self._given: list[Any] = []
        self._sent: list[Any] = []

    def __call__(self, messages: list[Any]) -> list[Any]:
        """The messages to send; those that were kept are the same objects that were given."""
        known = len(self._given)
        grows = messages[:known] == self._given
        sent = [*self._sent, *messages[known:]] if grows else list(messages)
        result = compact(sent, **self._options)
        if result.changed or not grows:
            self._given, self._sent = list(messages), list(result.messages)
        return list(result.messages)
