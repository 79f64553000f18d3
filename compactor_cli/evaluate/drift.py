"""Drift: the middle comes in chunks, and each summary is an update of the one before."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import pairwise

from compactor_cli.evaluate.cuts import EvalCase
from compactor_cli.evaluate.digested import DigestMethod, DigestRequest
from compactor_cli.evaluate.fit import Count
from compactor_cli.group.exchanges import group
from compactor_cli.model.records import Place, Record
from compactor_cli.model.transcript import Message, PreviousSummary, Role, Text, Transcript
from compactor_cli.plan.tokens import shown_texts


class Carry(StrEnum):
    """What one round hands to the next."""

    STATE = "state"  # the text and the counter table
    TEXT = "text"  # the text alone


def last_summary(
    method: DigestMethod, case: EvalCase, rounds: int, carry: Carry, budget_tokens: int, count: Count
) -> str:
    """The summary after this many rounds, each at this budget. Fewer rounds where there are fewer exchanges."""
    text, state = "", None
    parts = chunks(case, rounds)
    for number, chunk in enumerate(parts, 1):
        rest = (*chunk, *case.tail) if number == len(parts) else chunk
        if text:
            transcript, at = with_summary(case.prefix, case.head, summary_message(text), rest)
        else:
            transcript, at = _some(case.prefix, (*case.head, *rest)), len(case.head)
        stop = at + len(chunk) + bool(text)
        kept = (*range(at), *range(stop, len(transcript.records)))
        asked = DigestRequest(transcript=transcript, covered=range(at, stop), kept=kept, state=state)
        found = method.digest(asked, budget_tokens, count)
        text, state = found.text, found.answer.state if carry is Carry.STATE else None
    return text


def chunks(case: EvalCase, number: int) -> list[tuple[int, ...]]:
    """The middle in at most ``number`` runs of like size that divide no exchange."""
    borders = [i for i in group(case.prefix.messages).borders if case.middle[0] <= i <= case.middle[-1] + 1]
    sizes = [sum(map(len, shown_texts(message))) for message in case.prefix.messages]
    total = sum(sizes[i] for i in case.middle)
    found: list[tuple[int, ...]] = []
    start, done = case.middle[0], 0
    for before, border in pairwise(borders):
        done += sum(sizes[before:border])
        if done * number >= total * (len(found) + 1) or border == borders[-1]:
            found.append(tuple(range(start, border)))
            start = border
    return found


def with_summary(
    source: Transcript, head: Sequence[int], summary: Message, rest: Sequence[int]
) -> tuple[Transcript, int]:
    """The head, a summary and the rest as one transcript, and where the summary stands in it."""
    part = _some(source, (*head, *rest))
    at = len(head)
    record = Record(raw=summary.text.encode(), ending=b"\n", value=None, place=Place(path="-", line=at + 1))
    records = (*part.records[:at], record, *part.records[at:])
    messages = (*part.messages[:at], summary, *part.messages[at:])
    return _hashed(replace(part, records=records, messages=messages)), at


def summary_message(text: str) -> Message:
    """A summary written by compact as a later run reads it."""
    summary = PreviousSummary(origin="compact", text=text)
    return Message(role=Role.USER, parts=(Text(text=text),), summary=summary)


def _some(source: Transcript, indices: Sequence[int]) -> Transcript:
    records = tuple(source.records[i] for i in indices)
    return _hashed(replace(source, records=records, messages=tuple(source.messages[i] for i in indices)))


def _hashed(transcript: Transcript) -> Transcript:
    return replace(transcript, sha256=hashlib.sha256(transcript.source()).hexdigest())
