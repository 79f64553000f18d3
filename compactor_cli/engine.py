"""One transcript: group → plan → summarise → render → compose → check. Reads and writes no file.

What only a transcript that changes needs is imported when one does: most runs of a timer change none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import UsageError
from compactor_cli.model.plan import Mode, Plan
from compactor_cli.model.report import Compaction as Compaction
from compactor_cli.model.settings import NEWEST, Keep, Settings
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.planner import check_plan, make_plan, unchanged
from compactor_cli.plan.tokens import Counter, OnceCounter

if TYPE_CHECKING:
    from compactor_cli.model.plan import Importance
    from compactor_cli.model.summary import LoadState, Request, Summariser


def plan_transcript(
    transcript: Transcript,
    settings: Settings,
    *,
    counter: Counter,
    mode: Mode = Mode.REWRITE,
    importance: Importance | None = None,
) -> Plan:
    """What `compact_transcript` would do, without doing it."""
    grouping, counter = group(transcript.messages), OnceCounter(counter)
    return make_plan(transcript, grouping, settings, counter, mode, importance or _importance(settings.keep))


def _importance(keep: Keep) -> Importance | None:
    """What ranks the middle, imported only where it is ranked. Raises UsageError for a name that nothing has."""
    if keep.by == NEWEST:
        return None
    from compactor_cli.llm.importance import importance_of

    return importance_of(keep)


def compact_transcript(
    transcript: Transcript,
    settings: Settings,
    *,
    counter: Counter,
    summariser: Summariser,
    load_state: LoadState,
    plan: Plan | None = None,
    mode: Mode = Mode.REWRITE,
    summary_text: str = "",
    importance: Importance | None = None,
    archived: bool = True,
) -> Compaction:
    """Compacts one transcript by its plan (made here unless given).

    ``summary_text``: of a summary written for this plan, to be set as it is. ``importance`` takes precedence over the
    settings'. ``archived``: whether an archive keeps the original; only then does the summary name it.

    The output is read back and checked before it is returned: pairs, target, no growth (of bytes, unless they are
    appended; of what is sent, always). Raises InvariantError where a check fails, UsageError where the plan was
    made for another mode; the caller then leaves the source as it is.
    """
    grouping, counter = group(transcript.messages), OnceCounter(counter)
    if plan is None:
        plan = make_plan(transcript, grouping, settings, counter, mode, importance or _importance(settings.keep))
    else:
        check_plan(plan, transcript, grouping)
        if plan.mode is not mode and plan.changes:
            how = "appending" if plan.mode is Mode.APPEND else "rewriting"
            raise UsageError(f"the plan was made for {how}", next_step="make a new plan with the same options")
    if not plan.changes:
        return unchanged(transcript, plan, counter, grouping)
    from compactor_cli.apply import NO_SUMMARY, WRITTEN, CompactionWork

    work = CompactionWork(
        transcript=transcript, settings=settings, counter=counter, grouping=grouping, plan=plan, archived=archived
    )
    if summary_text:
        return work.applied(WRITTEN, work.planned_text(summary_text))
    answer, text = work.summary(summariser, load_state) if plan.summary_tokens else (NO_SUMMARY, "")
    return work.applied(answer, text)


def summary_request(
    transcript: Transcript, settings: Settings, plan: Plan, *, counter: Counter, load_state: LoadState
) -> Request | None:
    """What a summariser would be asked by this plan; None if it needs no summary."""
    if not plan.changes or not plan.summary_tokens:
        return None
    from compactor_cli.apply import CompactionWork

    grouping, counter = group(transcript.messages), OnceCounter(counter)
    work = CompactionWork(transcript=transcript, settings=settings, counter=counter, grouping=grouping, plan=plan)
    return work.request(load_state)[0]
