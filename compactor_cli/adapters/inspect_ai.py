"""Inspect: ``react(compaction=CompactCompaction())``, or wherever a `CompactionStrategy` is accepted."""

from __future__ import annotations

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo

from compactor_cli.api import Amount, make_digest


class CompactCompaction(CompactionStrategy):  # type: ignore[misc]  # it may not be installed
    """Replaces messages before the newest ``but_newest`` tokens by a digest of at most ``size`` tokens.

    With a ``size`` of 0, it depends on what the digest covers. ``threshold`` is the size from which to compact, in
    tokens or as a share of the window. No model is called.
    """

    def __init__(
        self, *, threshold: float = 0.9, but_newest: Amount = "16k", size: Amount = 0, memory: bool = False
    ) -> None:
        super().__init__(type="summary", threshold=threshold, memory=memory)
        self._but_newest, self._size = but_newest, size

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """The system messages, the summary and the newest messages; and the summary alone for the history, or None."""
        dumped = [message.model_dump(mode="json", exclude_none=True) for message in messages]
        found = make_digest(dumped, but_newest=self._but_newest, size=self._size)
        if not found.summary:
            return messages, None
        summary = ChatMessageUser(content=found.summary, metadata={"summary": True})
        first = found.first_kept if found.first_kept >= 0 else len(messages)
        before = [messages[i] for i in found.kept if i < first]
        return [*before, summary, *messages[first:]], summary
