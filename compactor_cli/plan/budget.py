"""Budget: how many tokens a summary may take, by the size of what it stands for."""

from __future__ import annotations

from itertools import pairwise

from compactor_cli.model.settings import Budget

# The points that the scaled budget is known by (SCALED_POINTS[1:4] are Hermes' own); straight lines between
# them. From 100k on the line goes to 1M -> 20k: still a falling share, and not a step.
SCALED_POINTS = ((0, 0), (10_000, 2_000), (30_000, 3_000), (100_000, 5_000), (1_000_000, 20_000))
# Below each size, this share in per cent; 5 % from the last one on.
TIERS = ((10_000, 20), (30_000, 15), (100_000, 10))
LAST_TIER_PERCENT = 5
# A summary's frame (preface, marker line, headings) takes about 200 tokens: less than this carries no information.
FLOOR_TOKENS = 300


def scaled_tokens(middle_tokens: int) -> int:
    """Continuous and monotone: 20 % up to 10k -> 2k, then 30k -> 3k, 100k -> 5k, 1M -> 20k and on at that slope."""
    (x0, y0), (x1, y1) = SCALED_POINTS[-2:]
    for left, right in pairwise(SCALED_POINTS):
        if middle_tokens <= right[0]:
            (x0, y0), (x1, y1) = left, right
            break
    return y0 + max(middle_tokens - x0, 0) * (y1 - y0) // (x1 - x0)


def tiered_tokens(middle_tokens: int) -> int:
    """Hermes' table: 20 % below 10k, 15 % below 30k, 10 % below 100k, else 5 %. It jumps down at its borders."""
    percent = next((percent for below, percent in TIERS if middle_tokens < below), LAST_TIER_PERCENT)
    return max(middle_tokens, 0) * percent // 100


def summary_tokens(budget: Budget, middle_tokens: int) -> int:
    """The budget by these settings: a fixed size or a share of the middle, else the curve; at least a frame."""
    size = budget.size.of(middle_tokens)
    if not size:
        size = tiered_tokens(middle_tokens) if budget.curve == "tiered" else scaled_tokens(middle_tokens)
    return max(size, FLOOR_TOKENS)
