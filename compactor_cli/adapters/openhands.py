"""OpenHands: ``Agent(llm, condenser=DigestCondenser(limit=100_000))``."""

from __future__ import annotations

from uuid import uuid4

from openhands.sdk.context.condenser.base import CondenserBase
from openhands.sdk.context.view import View
from openhands.sdk.event.condenser import Condensation
from openhands.sdk.llm import LLM

from compactor_cli.api import make_digest


class DigestCondenser(CondenserBase):  # type: ignore[misc]  # it may not be installed
    """Replaces older events by a digest, above ``limit`` tokens and whenever it is requested. No model is called."""

    limit: int = 100_000
    but_newest: int = 16_000  # tokens of the newest events, which stay
    keep_first: int = 2  # events at the beginning, which stay
    size: int = 0  # tokens of the digest at most; 0: depends on what it covers

    def handles_condensation_requests(self) -> bool:
        """Always True: a requested condensation is carried out."""
        return True

    def condense(self, view: View, agent_llm: LLM | None = None) -> View | Condensation:
        """The events to forget and their summary; or the view itself, if it is small or nothing can be forgotten."""
        dumped = [event.model_dump(mode="json", exclude_none=True) for event in view.events]
        found = make_digest(dumped, but_newest=self.but_newest, size=self.size, format="openhands-v1")
        stays = {*range(self.keep_first), *found.kept}
        forgotten = [i for i in range(len(view.events)) if i not in stays]
        if not forgotten or (found.tokens_before <= self.limit and not view.unhandled_condensation_request):
            return view
        return Condensation(
            forgotten_event_ids={view.events[i].id for i in forgotten},
            summary=found.summary,
            summary_offset=forgotten[0],
            llm_response_id=f"digest-{uuid4()}",
        )
