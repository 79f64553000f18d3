"""Writes a summary into a Codex rollout, in place of removed records or after all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from compactor_cli.formats.base import Insertion, InsertionPoint
from compactor_cli.formats.codex_history import History, Value, item_of, payload_of, proper, replacement
from compactor_cli.formats.codex_items import Item, is_context, is_opaque, item_role
from compactor_cli.formats.contents import string
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.model.errors import UsageError
from compactor_cli.model.transcript import Role, Transcript

# Clients know a summary by this opening and replace it at the next compaction; without it, it stays for ever.
PREFIX = (
    "Another language model started to solve this problem and produced a summary of its thinking process. You also"
    " have access to the state of the tools that were used by that language model. Use this to build on the work"
    " that has already been done and avoid duplicating work. Here is the summary produced by the other language"
    " model, use the information in this summary to assist with your own analysis:"
)
_ENVELOPED = ("session_meta", "response_item")

# Type and payload of a record.
_Line = tuple[str, Mapping[str, Any]]


def insert(transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
    """The records to be put between ``cut.before`` and ``cut.after``.

    A ``compacted`` record with the head's items, the summary and what follows it; then the client's state (see
    `_state`). Their ordinals are those of removed records. A rollout without envelopes gets plain items.
    """
    if not insertions:
        return ()
    values = _values(transcript)
    like = transcript.records[0].raw
    timestamp = _timestamp(values, cut)
    items = [_item(item) for item in insertions]
    if not _is_enveloped(values):
        return tuple(dump({"timestamp": timestamp, **item}, like) for item in items)
    history = History(values)
    kept = [proper(item) for item in _kept_items(history, cut)]
    lines = [_compacted([*kept, *items], insertions), *_state(history, cut, _stop(values, cut))]
    return _dumped(lines, _ordinals(values, cut, len(lines)), timestamp, like)


def append(
    transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
) -> tuple[bytes, ...]:
    """The records to be put after all others: ``compacted`` with head, summary and tail, the client's state, and
    a token counter, without which the client goes by the last one and compacts again at once.

    Raises `UsageError` for rollouts without envelopes, whose clients had no compaction.
    """
    values = _values(transcript)
    if not _is_enveloped(values):
        raise UsageError("this rollout is older than compactions", next_step="use -i: the archive keeps the original")
    tail = (item_of(values[i]) for i in cut.after)
    shown = [item for item in tail if item is not None and item_role(item) is not Role.META]
    history = History(values)
    kept = [proper(item) for item in _kept_items(history, cut)]
    items = [*kept, *(_item(item) for item in insertions), *map(proper, shown)]
    lines = [_compacted(items, insertions), *_state(history, cut, len(values))]
    counters = (value for value in reversed(values) if counted_tokens(value))
    lines.extend(("event_msg", recounted(value, size_tokens)["payload"]) for value in islice(counters, 1))
    last = max((value["ordinal"] for value in values if isinstance(value.get("ordinal"), int)), default=None)
    ordinals: list[dict[str, int]] = [{} if last is None else {"ordinal": last + n} for n in range(1, len(lines) + 1)]
    return _dumped(lines, ordinals, _timestamp(values, InsertionPoint(before=(), after=())), transcript.records[0].raw)


def counted_tokens(value: Value) -> int:
    """The size of the conversation that a ``token_count`` event tells the client; 0 for all other records."""
    payload = payload_of(value)
    info = payload.get("info") if payload.get("type") == "token_count" else None
    usage = info.get("last_token_usage") if isinstance(info, dict) else None
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if isinstance(total, int) else 0


def recounted(value: Value, size_tokens: int) -> dict[str, Any]:
    """The ``token_count`` event with another size of the conversation; what the whole session used stays."""
    payload = payload_of(value)
    usage = dict.fromkeys(payload["info"]["last_token_usage"], 0)
    usage |= {"input_tokens": size_tokens, "total_tokens": size_tokens}
    return {**value, "payload": {**payload, "info": {**payload["info"], "last_token_usage": usage}}}


def _values(transcript: Transcript) -> list[Value]:
    return [parse(record.raw) if isinstance(record.value, dict) else {} for record in transcript.records]


def _is_enveloped(values: Sequence[Value]) -> bool:
    return any(value.get("type") in _ENVELOPED and payload_of(value) for value in values)


def _compacted(items: Sequence[Item], insertions: Sequence[Insertion]) -> _Line:
    return ("compacted", {"message": _summary_text(insertions), "replacement_history": list(items)})


def _state(history: History, cut: InsertionPoint, stop: int) -> list[_Line]:
    """The last full ``world_state`` and ``turn_context``: without both, the client tells the model of permissions
    and surroundings once more. None if not all that it held so far stays: then it should.
    """
    staying = {*cut.before, *cut.after}
    still_sent = [i in staying for i in range(stop) if i not in history.superseded and _is_shown(history.values[i])]
    for boundary in [i for i in history.boundaries[-1:] if i < stop and i not in staying]:
        pairs = zip(replacement(history.values[boundary]), history.copies[boundary], strict=True)
        still_sent += [False for item, copied in pairs if copied < 0 and is_context(item)]
    if not still_sent or not all(still_sent):
        return []
    states = (payload for payload in _payloads(history, "world_state", stop) if payload.get("full") is True)
    state = next(states, None)
    context = next(_payloads(history, "turn_context", stop), None)
    if state is None:
        return []
    return [("world_state", state), *([("turn_context", context)] if context else [])]


def _is_shown(value: Value) -> bool:
    item = item_of(value)
    return item is not None and is_context(item)


def _payloads(history: History, kind: str, stop: int) -> Iterator[Mapping[str, Any]]:
    """The newest first."""
    return (payload_of(value) for value in reversed(history.values[:stop]) if value.get("type") == kind)


def _dumped(
    lines: Sequence[_Line], ordinals: Sequence[Mapping[str, int]], timestamp: str, like: bytes
) -> tuple[bytes, ...]:
    return tuple(
        dump({"timestamp": timestamp, **ordinal, "type": kind, "payload": payload}, like)
        for (kind, payload), ordinal in zip(lines, ordinals, strict=True)
    )


def _summary_text(insertions: Sequence[Insertion]) -> str:
    return next((_prefixed(item) for item in insertions if item.is_summary), "")


def _prefixed(item: Insertion) -> str:
    return f"{PREFIX}\n{item.text}" if item.is_summary else item.text


def _item(item: Insertion) -> dict[str, Any]:
    kind = "output_text" if item.role is Role.ASSISTANT else "input_text"
    role = "developer" if item.role is Role.SYSTEM else item.role.value
    return {"type": "message", "role": role, "content": [{"type": kind, "text": _prefixed(item)}]}


def _kept_items(history: History, cut: InsertionPoint) -> Iterator[Item]:
    """The items of the head that the client still sends, and opaque summaries of removed records: they hold
    what nothing else does."""
    before = set(cut.before)
    stop = _stop(history.values, cut)
    last = history.boundaries[-1] if history.boundaries else -1
    if 0 <= last < stop:
        pairs = zip(replacement(history.values[last]), history.copies[last], strict=True)
        yield from (item for item, i in pairs if is_opaque(item) or (i in before if i >= 0 else last in before))
    for i in range(max(last + 1 if last < stop else 0, 0), stop):
        item = item_of(history.values[i])
        if item is not None and item_role(item) is not Role.META and (i in before or is_opaque(item)):
            yield item


def _stop(values: Sequence[Value], cut: InsertionPoint) -> int:
    return cut.after[0] if cut.after else len(values)


def _ordinals(values: Sequence[Value], cut: InsertionPoint, count: int) -> list[dict[str, int]]:
    """Ordinals of the last removed records, the last of them repeated if there are too few."""
    kept = {*cut.before, *cut.after}
    stop = _stop(values, cut)
    numbers = [(i, value["ordinal"]) for i, value in enumerate(values) if isinstance(value.get("ordinal"), int)]
    if not numbers:
        return [{}] * count
    removed = [number for i, number in numbers if i not in kept and i < stop]
    spare = removed[-count:] or [max(number for _, number in numbers)]
    return [{"ordinal": number} for number in (*spare, *[spare[-1]] * (count - len(spare)))]


def _timestamp(values: Sequence[Value], cut: InsertionPoint) -> str:
    kept = {*cut.before, *cut.after}
    stop = _stop(values, cut)
    covered = [i for i in range(stop - 1, -1, -1) if i not in kept]
    order = (*covered, *reversed(cut.before), *cut.after)
    stamps = (string(values[i].get("timestamp")) for i in order)
    return next((stamp for stamp in stamps if stamp), "1970-01-01T00:00:00.000Z")
