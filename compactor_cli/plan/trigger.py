"""Trigger: whether a transcript is compacted, and how small it has to become.

Three ways, of which the first that applies decides:

- TARGET: a target is named. A larger transcript is compacted.
- PRESSURE: a window or a threshold is named. A transcript is compacted from ``compact_ratio`` of the window on, or as
  soon as ``tokens + reserve >= window``, or ``tokens > threshold``, whichever comes first; to at most ``target_ratio``
  of the size that starts it, so that there is room to work. From ``emergency_ratio`` on tail and summary are half as
  large.
- NATURAL: nothing is named, or the transcript itself asks, by a call of the trigger's tool in its newest turn. It is
  compacted to what head, tail and summary take, if that saves enough.

With ``at_phase`` everything but pressure and the tool's call waits for the end of a phase of the task. The end of a
phase also starts a compaction by itself, before any pressure does.

The window of the model that the transcript itself names only serves to report the tier.
"""

from __future__ import annotations

import hashlib
import math
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
    """Which rule decided; see the module."""

    TARGET = "target"
    PRESSURE = "pressure"
    NATURAL = "natural"


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerDecision:
    """Whether to compact, and to what size."""

    way: Way
    compacts: bool
    reason: str  # for people
    target_tokens: int = 0  # 0: as large as head, tail and summary are by the settings
    tier: Tier = Tier.NONE
    window_tokens: int = 0  # without what is left to the answer; 0: not known


def decide(
    settings: Settings, *, tokens: int, base_tokens: int, model: str, is_asked_for: bool = False, phase: str = ""
) -> TriggerDecision:
    """The decision about a transcript of ``tokens``; a target given as a share is one of ``base_tokens``.

    ``is_asked_for``: whether the transcript itself asks. ``phase``: why a phase of its task has just ended; empty if
    none has. Raises `UsageError` if the window of the model that the settings name is not known, or if a window that
    decides leaves no room after answer and reserve.
    """
    trigger, target = settings.trigger, settings.target.of(base_tokens)
    whole_window = named_window_tokens(trigger)
    named_window = usable_tokens(trigger, whole_window)
    window = named_window or usable_tokens(trigger, window_tokens(model))
    # The size at which the window or the threshold starts a compaction; 0: neither is named.
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
        window = 0  # the answer takes all of it: there is no tier to report
    tier = tier_of(trigger, tokens, window)
    return TriggerDecision(
        way=way, compacts=compacts, reason=reason, target_tokens=limit, tier=tier, window_tokens=window
    )


def left_alone_tokens(settings: Settings, model: str) -> int:
    """The size up to which no transcript is compacted or has a tier; 0 if every transcript has to be counted."""
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
        # Only the settings' sizes decide: a transcript that is no larger than the tail is all tail.
        keep = settings.keep
        is_by_size = not (keep.tail_messages or keep.tail_turns or keep.tail_ratio) and keep.by in UNBROKEN
        start = (keep.tail_tokens if is_by_size and settings.strategy is Strategy.SUMMARY else 0) + 1
    ratios = (trigger.log_ratio, trigger.warn_ratio, trigger.compact_ratio, trigger.emergency_ratio)
    first_tier = math.ceil(min(ratios) * window) if window else start
    return max(min(start, first_tier) - 1, 0)


def named_window_tokens(trigger: Trigger) -> int:
    """The window that the settings name, by size or by model; 0 if they name none."""
    if trigger.window_tokens or not trigger.window_model:
        return trigger.window_tokens
    return required_window_tokens(trigger.window_model)


def usable_tokens(trigger: Trigger, window: int) -> int:
    """The part of a window that is not reserved for the answer; 0 without a window."""
    return max(window - trigger.output_tokens, 1) if window else 0


def _check_room(trigger: Trigger, window: int) -> None:
    if 0 < window <= trigger.output_tokens + trigger.reserve_tokens:
        taken = f"{trigger.output_tokens:,} for the answer and {trigger.reserve_tokens:,} in reserve"
        what = f"the window of {window:,} tokens leaves nothing after {taken}"
        raise UsageError(what, next_step="name a larger window, or a target: -t")


def starting_tokens(trigger: Trigger, window: int) -> int:
    """The smallest size that is compacted: the first that ratio, reserve or threshold sets; at least 1."""
    starts = [trigger.threshold_tokens + 1] if trigger.threshold_tokens else []
    if window:
        starts += [math.ceil(trigger.compact_ratio * window), window - trigger.reserve_tokens]
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
    """The marker of the newest summary by compact that is not superseded; None if there is none."""
    summaries = (message for message in reversed(transcript.messages) if message.summary and not message.superseded)
    return next((found for message in summaries if (found := find_marker(message.text))), None)


def end_hash(transcript: Transcript) -> str:
    """16 hex digits for the last record that is neither bookkeeping nor a summary; empty if there is none.

    They are from the SHA-256 of its bytes. For an answer right after a summary it is that of the text alone: the ids of
    an acknowledgement are made from the summary's text, which holds this very hash.
    """
    last = next(_conversation_backwards(transcript), None)
    return "" if last is None else _hash(transcript, last)


def is_settled(transcript: Transcript) -> bool:
    """Whether nothing was added since the newest summary written by compact."""
    marker = previous_marker(transcript)
    return marker is not None and marker.end == end_hash(transcript)


def base_tokens(transcript: Transcript, tokens: Sequence[int]) -> int:
    """The size of which a target may be a share: the transcript with everything that its summaries cover.

    ``tokens``: of each record. Where the size of the archived original is known (``original_tokens``), the records
    after the end that the marker names are added to it; if that record is not found, the larger of original and
    transcript is taken. Without the original, it is the size of the transcript as it is: the marker's own number is
    only text, which anybody may write. Linear in the records after the end.
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
    """The ``focus`` of the last call of this tool in the newest turn (empty if it has none); None without a call."""
    for message in reversed(messages) if tool else ():
        for call in reversed(message.calls):
            if call.name == tool and not message.superseded:
                focus = call.arguments.get("focus") if not isinstance(call.arguments, str) else ""
                return focus if isinstance(focus, str) else ""
        if is_user_words(message) or message.summary is not None:
            break
    return None


# Fewer words are an answer or an encouragement ("yes", "go on please"); a Chinese character counts as half a word.
_LEAST_REQUEST_WORDS = 4
_HAN = "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_ASKS = ("?", "？")


def ended_phase(messages: Sequence[Message]) -> str:
    """Why a phase has just ended, in words for people; empty where the work goes on.

    A phase ends when every step of the to-do list is done, when a finished list is replaced by the next one, and when a
    new request follows the answer to the one before. It has "just" ended until the agent works on what comes next. Only
    to-do lists of the newest turn count. A short reply, or one to a question of the agent, is not a new request.
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
    """The to-do lists of the newest turn: steps of the finished list, steps of the one that replaced it, any open ones.

    Zeros and False where that turn has no list. The finished list counts until the agent has begun with the next one.
    """
    from compactor_cli.formats.contents import short_name
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
