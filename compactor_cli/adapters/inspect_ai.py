"""Inspect: ``react(compaction=CompactCompaction())``, or wherever a `CompactionStrategy` is taken."""

from __future__ import annotations

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo

from compactor_cli.api import Amount, make_digest


class CompactCompaction(CompactionStrategy):  # type: ignore[misc]  # it may not be installed
    """Replaces what is older than ``but_newest`` tokens by a digest of at most ``size`` (0: by what it covers).

    ``threshold``: when, in tokens or as a share of the window. No model is asked.
    """

    def __init__(
        self, *, threshold: float = 0.9, but_newest: Amount = "16k", size: Amount = 0, memory: bool = False
    ) -> None:
        super().__init__(type="summary", threshold=threshold, memory=memory)
        self._but_newest, self._size = but_newest, size

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """The system messages, the summary and the newest; and the summary, for the history."""
        dumped = [message.model_dump(mode="json", exclude_none=True) for message in messages]
        found = make_digest(dumped, but_newest=self._but_newest, size=self._size)
        if not found.summary:
            return messages, None
        summary = ChatMessageUser(content=found.summary, metadata={"summary": True})
        first = found.first_kept if found.first_kept >= 0 else len(messages)
        before = [messages[i] for i in found.kept if i < first]
        return [*before, summary, *messages[first:]], summary
