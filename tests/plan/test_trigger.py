from __future__ import annotations

from typing import Any

import pytest

from compactor_cli.model.errors import UsageError
from compactor_cli.model.plan import Tier
from compactor_cli.model.settings import Keep, Settings, Size, Trigger
from compactor_cli.plan.trigger import TriggerDecision, Way, decide, left_alone_tokens, tier_of


def decided(
    tokens: int, *, target: Size | None = None, model: str = "", base: int = 0, **trigger: object
) -> TriggerDecision:
    settings = Settings(target=target or Size(), trigger=Trigger(**trigger))  # type: ignore[arg-type]
    return decide(settings, tokens=tokens, base_tokens=base or tokens, model=model)


@pytest.mark.parametrize(
    ("tokens", "tier"),
    [
        (0, Tier.NONE),
        (649, Tier.NONE),
        (650, Tier.LOG),
        (750, Tier.WARN),
        (850, Tier.COMPACT),
        (950, Tier.EMERGENCY),
        (2_000, Tier.EMERGENCY),
    ],
)
def test_tiers_are_shares_of_the_window(tokens: int, tier: Tier) -> None:
    assert tier_of(Trigger(), tokens, 1_000) is tier
    assert tier_of(Trigger(), tokens, 0) is Tier.NONE


def test_a_named_target_alone_decides() -> None:
    assert decided(101, target=Size(tokens=100)).compacts
    assert not decided(100, target=Size(tokens=100)).compacts
    assert not decided(100, target=Size(tokens=100), window_tokens=50).compacts


def test_a_share_is_of_everything_that_summaries_stand_for() -> None:
    found = decided(300, target=Size(ratio=0.25), base=1_200)
    assert found.target_tokens == 300
    assert not found.compacts


@pytest.mark.parametrize(
    ("trigger", "start"),
    [
        ({"window_tokens": 1_000}, 850),
        ({"window_tokens": 1_000, "reserve_tokens": 300}, 700),
        ({"window_tokens": 1_000, "threshold_tokens": 500}, 501),
        ({"threshold_tokens": 500}, 501),
        ({"window_tokens": 1_000, "output_tokens": 100}, 765),
        ({"window_tokens": 1_000, "output_tokens": 100, "reserve_tokens": 200}, 700),
    ],
)
def test_under_pressure_the_earliest_start_counts(trigger: dict[str, int], start: int) -> None:
    assert decided(start, **trigger).compacts
    assert not decided(start - 1, **trigger).compacts
    assert decided(start, **trigger).target_tokens == max(start // 2, 1)


@pytest.mark.parametrize(
    "taken", [{"reserve_tokens": 100}, {"output_tokens": 300}, {"output_tokens": 99, "reserve_tokens": 1}]
)
def test_a_window_without_room_is_refused_where_it_would_decide(taken: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="the window of 100 tokens leaves nothing"):
        decided(50, window_tokens=100, **taken)
    assert not decided(50, target=Size(tokens=50), window_tokens=100, **taken).compacts


def test_a_window_without_room_next_to_a_target_is_not_said_to_be_full() -> None:
    trigger = Trigger(window_tokens=8_000, output_tokens=64_000)
    found = decide(Settings(trigger=trigger, target=Size(tokens=4_000)), tokens=12_000, base_tokens=12_000, model="")
    assert (found.target_tokens, found.window_tokens, found.tier) == (4_000, 0, Tier.NONE)


def test_the_window_of_a_named_model_counts_and_must_be_known() -> None:
    assert not decided(100_000, window_model="gpt-4o").compacts
    assert decided(110_000, window_model="gpt-4o").compacts
    with pytest.raises(UsageError):
        decided(1, window_model="no-such-model")


def test_the_transcripts_own_model_only_reports() -> None:
    found = decided(100_000, model="gpt-4o")
    assert found.way is Way.NATURAL
    assert (found.compacts, found.window_tokens, found.tier) == (True, 128_000, Tier.WARN)
    assert decided(5, model="no-such-model").window_tokens == 0


@pytest.mark.parametrize(
    "trigger",
    [
        {"window_tokens": 1_000},
        {"window_tokens": 1_000, "reserve_tokens": 900},
        {"window_tokens": 1_000, "threshold_tokens": 40},
        {"threshold_tokens": 40},
        {"window_model": "gpt-4o"},
    ],
)
def test_up_to_what_is_left_alone_the_exact_size_does_not_matter(trigger: dict[str, Any]) -> None:
    most = left_alone_tokens(Settings(trigger=Trigger(**trigger)), "gpt-4o")
    assert most > 0
    for tokens in (1, most // 2, most):
        found = decided(tokens, model="gpt-4o", **trigger)
        assert (found.compacts, found.tier) == (False, Tier.NONE)
    following = decided(most + 1, model="gpt-4o", **trigger)
    assert following.compacts or following.tier is not Tier.NONE


def test_where_only_the_exact_size_can_tell_nothing_is_left_alone_unseen() -> None:
    assert left_alone_tokens(Settings(target=Size(ratio=0.5)), "gpt-4o") == 0
    assert left_alone_tokens(Settings(keep=Keep(tail_turns=2)), "gpt-4o") == 0
    assert left_alone_tokens(Settings(keep=Keep(by="smart")), "gpt-4o") == 0


def test_a_size_that_is_named_or_the_tail_that_stays_is_left_alone() -> None:
    assert left_alone_tokens(Settings(target=Size(tokens=70)), "gpt-4o") == 70
    assert left_alone_tokens(Settings(target=Size(tokens=70), trigger=Trigger(window_tokens=10)), "gpt-4o") < 10
    assert left_alone_tokens(Settings(keep=Keep(tail_tokens=900)), "gpt-4o") == 900


def test_the_tier_of_a_small_window_is_never_left_out() -> None:
    assert left_alone_tokens(Settings(), "gpt-4") < 8_192 * Trigger().log_ratio
