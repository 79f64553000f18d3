"""Planner: the whole decision about one transcript, as a frozen value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compactor_cli.group.exchanges import Grouping
from compactor_cli.model.plan import Action, Mode, Plan
from compactor_cli.model.settings import Settings, When
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.append_mode import append_floor, append_settings, appended, can_keep_middle
from compactor_cli.plan.check_plan import check_plan
from compactor_cli.plan.refresh import refreshed, spans_of
from compactor_cli.plan.tokens import Counter, bound_message
from compactor_cli.plan.trigger import Way, decide, left_alone_tokens

if TYPE_CHECKING:
    from compactor_cli.model.plan import Importance


def make_plan(
    transcript: Transcript,
    grouping: Grouping,
    settings: Settings,
    counter: Counter,
    mode: Mode = Mode.REWRITE,
    importance: Importance | None = None,
) -> Plan:
    """Decide what happens to every record. Deterministic; time is linear in the transcript.

    ``importance`` says what of the middle stays next to the newest exchanges (see `choose`); None: the newest stay.
    The plan is checked by `check_plan` before it is returned. Raises `UsageError` if the settings name a model
    whose window is not known, or if nothing can be appended in this dialect.
    """
    floor = 0
    if mode is Mode.APPEND:
        settings = append_settings(settings, transcript.dialect)
        importance = importance if can_keep_middle(transcript.dialect) else None
        floor = append_floor(transcript.dialect, grouping)
    plan = _proven_small(transcript, settings)
    if plan is None:
        from compactor_cli.plan.make_plan import counted_plan

        plan = counted_plan(transcript, grouping, settings, counter, importance, floor)
    plan = appended(plan, grouping, settings) if mode is Mode.APPEND else refreshed(plan, transcript)
    check_plan(plan, transcript, grouping)
    return plan


def _proven_small(transcript: Transcript, settings: Settings) -> Plan | None:
    """The plan for a transcript whose bytes already show that it is left alone: nothing is counted."""
    always = settings.trigger.tool or any(rule.when is When.ALWAYS for rule in settings.prune)
    most = 0 if always else left_alone_tokens(settings, transcript.model)
    bound = 0
    for message in transcript.messages:
        bound += bound_message(message)
        if bound > most:
            return None
    if not most:
        return None
    decision = decide(settings, tokens=bound, base_tokens=bound, model=transcript.model)
    return Plan(
        transcript_sha256=transcript.sha256,
        fingerprint=settings.fingerprint(),
        spans=spans_of([(Action.KEEP, "")] * len(transcript.messages)),
        reason=f"at most {decision.reason}",
        window_tokens=decision.window_tokens if decision.way is Way.PRESSURE else 0,
        target_tokens=decision.target_tokens,
        tokens_before=bound,
        tokens_kept=bound,
        notes=("tokens not counted: the size in bytes shows that it is small enough, and stands for them",),
    )
