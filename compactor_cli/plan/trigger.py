"""Trigger: whether a transcript is compacted, and how small it has to become.

Three ways, the first that is set:

- TARGET: a target is named. Compacted if the transcript is larger.
- PRESSURE: a window or a threshold is named. Compacted from ``compact_ratio`` of the window on, or as soon as
  ``tokens + reserve >= window``, or ``tokens > threshold``, whichever comes first; to at most ``target_ratio`` of the
  size that starts it, so that there is room to work. From ``emergency_ratio`` on tail and summary are half as large.
- NATURAL: nothing is named, or the transcript itself asks, by a call of the trigger's tool in its newest turn.
  Compacted to what head, tail and summary take, if that saves enough.

With ``at_phase`` all of them but pressure and the tool's call wait for the end of a phase of the task, which in turn
starts a compaction that no pressure starts yet.

The window of the model that the transcript itself names only serves to report the tier.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum

from compactor_cli.group.exchanges import is_user_words, newest_request
from compactor_cli.model.errors import UsageError
from compactor_cli.model.marker import Marker, find_marker
from compactor_cli.model.plan import Tier
from compactor_cli.model.settings import UNBROKEN, Settings, Start, Strategy, Trigger
from compactor_cli.model.transcript import Message, Role, Text, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.models import required_window_tokens, window_tokens


class Way(StrEnum):
    """What decided, see the module."""

    TARGET = "target"
    PRESSURE = "pressure"
    NATURAL = "natural"


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerDecision:
    """Whether to compact. ``target_tokens`` 0: as large as head, tail and summary by the settings are."""

    way: Way
    compacts: bool
    reason: str
    target_tokens: int = 0
    tier: Tier = Tier.NONE
    window_tokens: int = 0


def decide(
    settings: Settings, *, tokens: int, base_tokens: int, model: str, is_asked_for: bool = False, phase: str = ""
) -> TriggerDecision:
    """The decision about a transcript of ``tokens``; ``base_tokens`` is what a share as target is a share of.

    ``is_asked_for``: the transcript itself asks. ``phase``: why a phase of its task has just ended. Raises `UsageError`
    if the window of the model that the settings name is not known, and where a window that decides has no room left.
    """
    trigger, target = settings.trigger, settings.target.of(base_tokens)
    whole_window = named_window_tokens(trigger)
    named_window = usable_tokens(trigger, whole_window)
    window = named_window or usable_tokens(trigger, window_tokens(model))
    # The size at which the window or the threshold starts a compaction by itself.
    start = starting_tokens(trigger, named_window) if named_window or trigger.threshold_tokens else 0
    is_pressed = 0 < start <= tokens
    way, compacts, limit = Way.NATURAL, False, 0
    if trigger.start is Start.NEVER:
        reason = "compaction is switched off"
    elif is_asked_for and tokens <= (target or tokens):
        compacts, reason = True, f"the newest turn calls the tool {trigger.tool}"
    elif trigger.at_phase and not phase and not is_pressed:
        reason = "the phase of the task goes on"
    elif target:
        way, compacts, limit = Way.TARGET, tokens > target, target
        reason = f"{tokens:,} tokens {'>' if compacts else '<='} target {target:,}" + (f"; {phase}" if phase else "")
    elif phase and not is_pressed:
        compacts, reason = True, f"a phase of the task has ended: {phase}"
    elif trigger.start is Start.ASKED:
        reason = "compaction starts only when it is asked for"
    elif start:
        _check_room(trigger, whole_window)
        way, compacts, limit = Way.PRESSURE, is_pressed, max(min(int(start * trigger.target_ratio), start - 1), 1)
        reason = f"{tokens:,} tokens {'>=' if compacts else '<'} {start:,}, where compaction starts"
    else:
        compacts, reason = True, f"{tokens:,} tokens, more than head, tail and summary need"
    if 0 < whole_window <= trigger.output_tokens:
        window = 0  # the answer takes all of it: nothing is left that could fill
    tier = tier_of(trigger, tokens, window)
    return TriggerDecision(
        way=way, compacts=compacts, reason=reason, target_tokens=limit, tier=tier, window_tokens=window
    )


def left_alone_tokens(settings: Settings, model: str) -> int:
    """A transcript of up to this many tokens is not compacted and has no tier; 0 where only its exact size decides."""
    trigger, target = settings.trigger, settings.target
    named_window = usable_tokens(trigger, named_window_tokens(trigger))
    if not target.tokens and (target.ratio or trigger.start is not Start.AUTO or trigger.at_phase):
        return 0
    window = named_window or usable_tokens(trigger, window_tokens(model))
    if target.tokens:
        start = target.tokens + 1
    elif named_window or trigger.threshold_tokens:
        start = starting_tokens(trigger, named_window)
    else:
        # Nothing but the settings' sizes starts a compaction: what is no larger than the tail is all tail.
        keep = settings.keep
        is_by_size = not (keep.tail_messages or keep.tail_turns or keep.tail_ratio) and keep.by in UNBROKEN
        start = (keep.tail_tokens if is_by_size and settings.strategy is Strategy.SUMMARY else 0) + 1
    ratios = (trigger.log_ratio, trigger.warn_ratio, trigger.compact_ratio, trigger.emergency_ratio)
    first_tier = -int(-min(ratios) * window // 1) if window else start
    return max(min(start, first_tier) - 1, 0)


def named_window_tokens(trigger: Trigger) -> int:
    """The window that the settings name, by size or by model; 0 if they name none."""
    if trigger.window_tokens or not trigger.window_model:
        return trigger.window_tokens
    return required_window_tokens(trigger.window_model)


def usable_tokens(trigger: Trigger, window: int) -> int:
    """What of a window is not left to the answer; 0 without a window."""
    return max(window - trigger.output_tokens, 1) if window else 0


def _check_room(trigger: Trigger, window: int) -> None:
    if 0 < window <= trigger.output_tokens + trigger.reserve_tokens:
        taken = f"{trigger.output_tokens:,} for the answer and {trigger.reserve_tokens:,} in reserve"
        what = f"the window of {window:,} tokens leaves nothing after {taken}"
        raise UsageError(what, next_step="name a larger window, or a target: -t")


def starting_tokens(trigger: Trigger, window: int) -> int:
    """The smallest size that is compacted, of those that the ratio, the reserve and the threshold name; at least 1."""
    starts = [trigger.threshold_tokens + 1] if trigger.threshold_tokens else []
    if window:
        starts += [-int(-trigger.compact_ratio * window // 1), window - trigger.reserve_tokens]
    return max(min(starts), 1)


def tier_of(trigger: Trigger, tokens: int, window: int) -> Tier:
    """The tier of ``tokens / window``; NONE without a window."""
    pressure = tokens / window if window else 0.0
    tiers = (
        (trigger.emergency_ratio, Tier.EMERGENCY),
        (trigger.compact_ratio, Tier.COMPACT),
        (trigger.warn_ratio, Tier.WARN),
        (trigger.log_ratio, Tier.LOG),
    )
    return next((tier for ratio, tier in tiers if window and pressure >= ratio), Tier.NONE)


def previous_marker(transcript: Transcript) -> Marker | None:
    """The marker of the newest summary written by compact that is still in force."""
    summaries = (message for message in reversed(transcript.messages) if message.summary and not message.superseded)
    return next((found for message in summaries if (found := find_marker(message.text))), None)


def end_hash(transcript: Transcript) -> str:
    """16 hex digits for the last record that is no bookkeeping and no summary; empty if there is none.

    The SHA-256 of its bytes; of its text alone where it is an answer right after a summary: an acknowledgement's ids
    are made from the summary's text, in which this hash stands.
    """
    last = next(_conversation_backwards(transcript), None)
    return "" if last is None else _hash(transcript, last)


def is_settled(transcript: Transcript) -> bool:
    """Whether nothing was added since the newest summary written by compact."""
    marker = previous_marker(transcript)
    return marker is not None and marker.end == end_hash(transcript)


def base_tokens(transcript: Transcript, tokens: Sequence[int]) -> int:
    """The size that a share as target is a share of: the transcript with everything that its summaries cover.

    ``tokens``: of each record. Where the archived original is known (``original_tokens``), what follows the
    record that the marker calls the end comes on top of it; where that record is not found, the larger of the two
    sizes is taken. Without the original, it is what is counted now: the marker's own number is only a text. Linear
    in the records after the end.
    """
    marker = previous_marker(transcript) if transcript.original_tokens else None
    if marker is None:
        return sum(tokens)
    added = 0
    for index in _conversation_backwards(transcript):
        if _hash(transcript, index) == marker.end:
            return transcript.original_tokens + added
        added += tokens[index]
    return max(transcript.original_tokens, sum(tokens)) if marker.end else transcript.original_tokens + added


def _conversation_backwards(transcript: Transcript) -> Iterator[int]:
    for index in range(len(transcript.records) - 1, -1, -1):
        message = transcript.messages[index]
        if not message.is_meta and message.summary is None:
            yield index


def _hash(transcript: Transcript, index: int) -> str:
    raw = transcript.records[index].raw
    message = transcript.messages[index]
    if message.role is Role.ASSISTANT and all(isinstance(part, Text) for part in message.parts):
        previous = (transcript.messages[i] for i in range(index - 1, -1, -1))
        before = next((other for other in previous if not other.is_meta), None)
        if before is not None and before.summary is not None:
            raw = message.text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()[:16]


def asked_focus(messages: Sequence[Message], tool: str) -> str | None:
    """The ``focus`` of the last call of this tool in the newest turn (empty if it names none); None: no such call."""
    for message in reversed(messages) if tool else ():
        for call in reversed(message.calls):
            if call.name == tool and not message.superseded:
                focus = call.arguments.get("focus") if not isinstance(call.arguments, str) else ""
                return focus if isinstance(focus, str) else ""
        if is_user_words(message) or message.summary is not None:
            break
    return None


# Fewer words than these ("yes", "go on please") answer or drive on; a Chinese character counts as half a word.
_LEAST_REQUEST_WORDS = 4
_HAN = "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_ASKS = ("?", "？")


def ended_phase(messages: Sequence[Message]) -> str:
    """Why this is the end of a phase, in words for people; empty where the work goes on.

    A phase ends when every step of the to-do list is done; when a list that was done is replaced by the next one; and
    when a new request follows an answer that finished the one before. It counts until the agent works on what comes
    next. A to-do list is that of the newest turn; a short reply, or one to a question of the agent, is no request.
    """
    sent = [message for message in messages if not (message.is_meta or message.superseded)]
    request = newest_request(sent)
    is_waiting = request >= 0 and all(message.role is not Role.ASSISTANT for message in sent[request:])
    work = sent[:request] if is_waiting else sent
    done, following, is_open = _lists(work)
    if done and not is_open:
        return f"all {done} to-dos are done" if done > 1 else "the one to-do is done"
    if is_open:
        return f"{done} to-dos are done and {following} others begin" if done else ""
    last = next((message for message in reversed(work) if message.role is not Role.SYSTEM), None)
    is_answered = last is not None and last.role is Role.ASSISTANT and not last.calls and bool(last.text.strip())
    if not (is_waiting and is_answered) or work[-1].text.rstrip().endswith(_ASKS):
        return ""
    text = sent[request].text
    words = len(re.sub(_HAN, " ", text).split()) + len(re.findall(_HAN, text)) / 2
    return "a new request follows a finished one" if words >= _LEAST_REQUEST_WORDS else ""


def _lists(work: Sequence[Message]) -> tuple[int, int, bool]:
    """Of the newest turn: the steps of its finished list, of a list that has just replaced it, and if any is open."""
    from compactor_cli.formats.client_signs import short_name
    from compactor_cli.group.todos import TodoReplay, is_plan_call

    failed = {result.id for message in work for result in message.results if result.is_error and result.id}
    answers = {result.id: result.text for message in work for result in message.results if result.id}
    replay = TodoReplay()
    newest, finished = -1, 0
    for place, message in enumerate(work):
        for call in message.calls:
            is_plan = is_plan_call(call.name, call.arguments) or "todo" in short_name(call.name)
            if not is_plan or call.id in failed:
                continue
            finished = 0 if replay.has_open() else len(replay.todos)
            replay.call(call.name, call.arguments, answers.get(call.id, ""), place)
            newest = place
    rest = work[newest + 1 :]
    if newest < 0 or any(is_user_words(message) for message in rest):
        return 0, 0, False
    if not replay.has_open():
        return len(replay.todos), 0, False
    has_begun = any(message.role is Role.ASSISTANT for message in rest)
    return (0 if has_begun else finished), len(replay.todos), True
