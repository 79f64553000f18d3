"""The invariants of a plan, checked before anything is done by it."""

from __future__ import annotations

from compactor_cli.group.exchanges import Grouping
from compactor_cli.model.errors import InvariantError
from compactor_cli.model.plan import Action, Plan
from compactor_cli.model.transcript import Transcript


def check_plan(plan: Plan, transcript: Transcript, grouping: Grouping) -> None:
    """Raises `InvariantError` unless the plan is one for this transcript and can be acted on.

    That is: the spans tile the records; only records that are pruned have edits; no exchange is divided between
    what stays and what goes, and none that stays has a call without its result; a summary is planned
    if and only if records are covered; the target is held or the plan says why not.
    """
    count = len(transcript.records)
    _demand(plan.transcript_sha256 == transcript.sha256, "the plan was made for another transcript")
    _demand(_tiles(plan, count), "the plan's spans do not tile the records")
    edited = {edit.record for edit in plan.edits}
    pruned = set(plan.indices(Action.PRUNE))
    _demand(edited <= pruned, "the plan edits a record that is not pruned")
    leaving = set(plan.indices(Action.COVER)) | (pruned - edited)
    exchanges = grouping.exchanges if leaving else ()
    divided = [exchange for exchange in exchanges if 0 < _inside(exchange, leaving) < len(exchange)]
    _demand(not divided, f"the plan divides the exchange of records {divided[:1]}")
    orphaned = grouping.orphaned() if plan.changes else frozenset()
    _demand(orphaned <= leaving, "the plan keeps a call without its result, or the other way round")
    _demand(bool(plan.indices(Action.COVER)) == bool(plan.summary_tokens), "a summary is planned for nothing")
    _demand(0 <= plan.summary_at <= count, "the summary's place is outside the transcript")
    fits = plan.tokens_kept + plan.summary_tokens <= plan.target_tokens
    _demand(fits or not plan.changes or bool(plan.over_target), "the plan is over its target and does not say why")


def _tiles(plan: Plan, count: int) -> bool:
    borders = [0, *(border for span in plan.spans for border in (span.start, span.stop)), count]
    pairs = zip(borders[::2], borders[1::2], strict=True)
    return all(left == right for left, right in pairs) and all(span.start < span.stop for span in plan.spans)


def _inside(exchange: tuple[int, ...], records: set[int]) -> int:
    return sum(record in records for record in exchange)


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise InvariantError(what, next_step="this is a defect of compact")
