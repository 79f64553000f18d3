"""Pruning: texts made shorter in their middle so that the whole fits, without a summary and without rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compactor_cli.model.plan import Edit
from compactor_cli.model.settings import PruneRule
from compactor_cli.model.transcript import Message, Text, ToolResult
from compactor_cli.plan.tokens import Counter

OVERFLOW = "overflow"
# What overflow leaves of a text at least, and below which length it leaves it alone: less shows nothing.
LEAST_CHARS = 400
UNTOUCHED_CHARS = 600
_MARKER = PruneRule(name=OVERFLOW).marker
_SHRINK_RATIO = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortening:
    """One edit, the rule it follows, and the tokens it saves."""

    edit: Edit
    rule: str
    saved_tokens: int


def shorten_to_fit(
    messages: Sequence[Message], records: Sequence[int], excess_tokens: int, counter: Counter, needed_tokens: int
) -> tuple[Shortening, ...]:
    """Shortens the longest tool results of these records until ``excess_tokens`` are saved, as far as it goes.

    Texts follow only if the results do not save even ``needed_tokens``, and only as far as these. What is touched of
    a kind is cut to one length, not below 400 characters; texts up to 600 are left alone.
    """
    results = _level(messages, records, ToolResult, excess_tokens, counter)
    missing = needed_tokens - saved_tokens(results)
    return results if missing <= 0 else results + _level(messages, records, Text, missing, counter)


def saved_tokens(edits: Iterable[Shortening]) -> int:
    """What all of them save."""
    return sum(item.saved_tokens for item in edits)


def shortened(text: str, first_chars: int, last_chars: int, marker: str = _MARKER) -> str:
    """The text with its middle replaced by the marker; the text itself if it would not be shorter by that.

    Nothing is replaced that is no longer than the marker: a shortened text would be shortened for ever.
    """
    omitted = len(text) - first_chars - last_chars
    if omitted <= len(marker):
        return text
    short = text[:first_chars] + marker.replace("{omitted}", str(omitted)) + text[len(text) - last_chars :]
    return short if len(short) < len(text) else text


def _level(
    messages: Sequence[Message],
    records: Sequence[int],
    kind: type[ToolResult] | type[Text],
    excess_tokens: int,
    counter: Counter,
) -> tuple[Shortening, ...]:
    """All long texts of one kind cut to the greatest length that saves enough, or to the least."""
    long = [
        (record, index, part.text, counter.count(part.text))
        for record in records
        for index, part in enumerate(messages[record].parts)
        if isinstance(part, kind) and len(part.text) > UNTOUCHED_CHARS
    ]
    if not long:
        return ()
    allowed = sum(tokens for *_, tokens in long) - excess_tokens
    chars = _first_guess([(len(text), tokens) for _, _, text, tokens in long], allowed)
    found = tuple(_cut_to(long, chars, counter))
    # The ends of a text may be far denser than its middle: down to the least, or a second run would cut further.
    while saved_tokens(found) < excess_tokens and chars > LEAST_CHARS:
        chars = max(int(chars * _SHRINK_RATIO), LEAST_CHARS)
        found = tuple(_cut_to(long, chars, counter))
    return found


def _first_guess(sizes: Sequence[tuple[int, int]], allowed_tokens: int) -> int:
    """The length in characters to which all texts must be cut so that the tokens are allowed, by their mean density."""
    chars, tokens = sum(chars for chars, _ in sizes), sum(tokens for _, tokens in sizes)
    left = max(allowed_tokens, 0) * chars // max(tokens, 1)
    lengths = sorted(length for length, _ in sizes)
    for index, length in enumerate(lengths):
        share = left // (len(lengths) - index)
        if length > share:
            return max(share, LEAST_CHARS)
        left -= length
    return max(lengths[-1], LEAST_CHARS)


def _cut_to(long: Sequence[tuple[int, int, str, int]], chars: int, counter: Counter) -> Iterator[Shortening]:
    for record, index, text, tokens in long:
        half = chars // 2
        short = shortened(text, half, half) if len(text) > max(chars, UNTOUCHED_CHARS) else text
        if short != text:
            edit = Edit(record=record, part=index, text=short)
            yield Shortening(edit=edit, rule=OVERFLOW, saved_tokens=tokens - counter.count(short))
