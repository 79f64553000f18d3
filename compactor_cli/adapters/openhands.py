"""OpenHands: ``Agent(llm, condenser=DigestCondenser(limit=100_000))``."""

from __future__ import annotations

from uuid import uuid4

from openhands.sdk.context.condenser.base import CondenserBase
from openhands.sdk.context.view import View
from openhands.sdk.event.condenser import Condensation
from openhands.sdk.llm import LLM

from compactor_cli.api import make_digest


class DigestCondenser(CondenserBase):  # type: ignore[misc]  # it may not be installed
    """Above ``limit`` tokens, and when it is asked to, forgets what is older than ``but_newest`` tokens.

    The first ``keep_first`` events stay; a digest of at most ``size`` tokens (0: by what it covers) takes the place
    of the others. No model is asked.
    """

    limit: int = 100_000
    but_newest: int = 16_000
    keep_first: int = 2
    size: int = 0

    def handles_condensation_requests(self) -> bool:
        """Yes."""
        return True

    def condense(self, view: View, agent_llm: LLM | None = None) -> View | Condensation:
        """What is forgotten and the summary of it; the view where it is small enough, or nothing can be forgotten."""
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
