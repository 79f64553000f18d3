"""Fitting: texts cut to a token budget, as near to it as the method allows and never over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compactor_cli.evaluate.text_views import LINE_CHARS

Count = Callable[[str], int]

# A token is at least a byte; nothing longer than this many characters a token needs to be looked at.
_MOST_CHARS_A_TOKEN = 16


def most(high: int, make: Callable[[int], str], budget_tokens: int, count: Count) -> int:
    """The largest n in 0..high for which ``make(n)`` is within the budget; ``make`` must grow with n."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if count(make(middle)) <= budget_tokens:
            low = middle
        else:
            high = middle - 1
    return low


def first(text: str, budget_tokens: int, count: Count) -> str:
    """The beginning of a text."""
    text = text[: budget_tokens * _MOST_CHARS_A_TOKEN]
    return text[: most(len(text), lambda n: text[:n], budget_tokens, count)]


def last(text: str, budget_tokens: int, count: Count) -> str:
    """The end of a text."""
    text = text[-budget_tokens * _MOST_CHARS_A_TOKEN :] if budget_tokens else ""
    kept = most(len(text), lambda n: text[len(text) - n :], budget_tokens, count)
    return text[len(text) - kept :]


def best(ranked: Sequence[tuple[int, str]], budget_tokens: int, count: Count) -> str:
    """The best lines in the order of their positions; the first that does not fit whole is cut.

    ``ranked``: (position, line), best first.
    """

    def joined(n: int, piece: str = "") -> str:
        chosen = [*ranked[:n], (ranked[n][0], piece)] if piece else ranked[:n]
        return "\n".join(line for _, line in sorted(chosen))

    taken = most(len(ranked), joined, budget_tokens, count)
    if taken == len(ranked):
        return joined(taken)
    rest = ranked[taken][1][: LINE_CHARS * 4]
    return joined(taken, rest[: most(len(rest), lambda n: joined(taken, rest[:n]), budget_tokens, count)])
