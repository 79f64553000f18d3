"""compact inside agent frameworks: a module each, which imports its framework. See docs/agents.md.

`StableCompactor` is for conversations that grow from request to request: the cut stays until the next one.
"""

from __future__ import annotations

from typing import Any, Unpack

from compactor_cli.api import Amount, Options, compact
from compactor_cli.model.settings import read_tokens


class StableCompactor:
    """Compacts messages (mappings, of any format) when they take more than ``limit`` tokens, to ``share`` of that.

    While a conversation only grows, what it was compacted to stays the beginning of what is sent: a provider's cache
    of the prompt lives until the limit is reached again. One compactor follows one conversation; another one given to
    it begins anew. ``options``: as of `compact`. Raises as that does.
    """

    def __init__(self, limit: Amount, *, share: float = 0.5, **options: Unpack[Options]) -> None:
        threshold = read_tokens(limit, "limit")
        self._options = options | Options(trigger={"threshold_tokens": threshold, "target_ratio": share})
        self._given: list[Any] = []
        self._sent: list[Any] = []

    def __call__(self, messages: list[Any]) -> list[Any]:
        """What to send of them: those that stayed are the objects that were given."""
        known = len(self._given)
        grows = messages[:known] == self._given
        sent = [*self._sent, *messages[known:]] if grows else list(messages)
        result = compact(sent, **self._options)
        if result.changed or not grows:
            self._given, self._sent = list(messages), list(result.messages)
        return list(result.messages)
