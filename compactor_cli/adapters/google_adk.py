"""Google ADK: ``EventsCompactionConfig(summarizer=DigestSummarizer(), compaction_interval=…, overlap_size=…)``."""

from __future__ import annotations

from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.genai.types import Content, Part

from compactor_cli.api import Amount, make_digest


class DigestSummarizer(BaseEventsSummarizer):  # type: ignore[misc]  # it may not be installed
    """Summarises events by a digest of at most ``size`` tokens (0: depends on what it covers); no model is called."""

    def __init__(self, size: Amount = 0, *, focus: str = "") -> None:
        self._size, self._focus = size, focus

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        """The event that replaces these; None if they hold no content."""
        contents = [content for event in events if (content := _content(event)) and content.parts]
        if not contents:
            return None
        dumped = [content.model_dump(mode="json", by_alias=True, exclude_none=True) for content in contents]
        text = make_digest(dumped, size=self._size, focus=self._focus).summary
        compaction = EventCompaction(
            start_timestamp=events[0].timestamp,
            end_timestamp=events[-1].timestamp,
            compacted_content=Content(role="model", parts=[Part(text=text)]),
        )
        return Event(author="user", actions=EventActions(compaction=compaction), invocation_id=Event.new_id())


def _content(event: Event) -> Content | None:
    """The content of an event; that of a compaction is its summary, with the role by which a digest is recognised."""
    compaction = event.actions.compaction if event.actions else None
    return compaction.compacted_content.model_copy(update={"role": "user"}) if compaction else event.content
