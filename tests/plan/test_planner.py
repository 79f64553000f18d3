from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from plan_builders import (
    META,
    UNREAD,
    Words,
    answer,
    assistant,
    call,
    exchanges,
    hash_of,
    ours,
    says,
    summary,
    system,
    transcript,
    user,
    words,
)

from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import InvariantError
from compactor_cli.model.plan import Action, Plan, Span, Tier
from compactor_cli.model.settings import (
    Budget,
    Fit,
    Keep,
    OverflowPolicy,
    PartKind,
    PruneRule,
    Rules,
    Settings,
    Size,
    Strategy,
    Trigger,
    When,
)
from compactor_cli.model.transcript import Message, Role, Text, ToolResult, Transcript
from compactor_cli.plan.planner import check_plan, make_plan
from compactor_cli.plan.tokens import count_messages
from compactor_cli.plan.trigger import base_tokens, end_hash

NO_RULES = Settings(prune=())
TARGET = replace(NO_RULES, target=Size(tokens=1_000))


def planned(messages: Sequence[Message] | Transcript, settings: Settings = NO_RULES) -> Plan:
    made = messages if isinstance(messages, Transcript) else transcript(messages)
    return make_plan(made, group(made.messages), settings, Words())


def session(count: int = 40, size: int = 50) -> list[Message]:
    return [system(), user(), *exchanges(count, size), assistant(20)]


def covered(plan: Plan) -> tuple[int, ...]:
    return plan.indices(Action.COVER)


def by_name(plan: Plan, name: str) -> list[int]:
    return [i for span in plan.spans if span.name == name for i in range(span.start, span.stop)]


class TestTarget:
    def test_head_and_newest_exchanges_stay_and_the_middle_is_covered(self) -> None:
        plan = planned(session(), TARGET)
        assert [span.action for span in plan.spans] == [Action.KEEP, Action.COVER, Action.KEEP]
        assert plan.spans[0].stop == 2
        assert plan.summary_at == plan.spans[2].start
        assert plan.tokens_kept + plan.summary_tokens <= 1_000
        assert plan.tokens_before == sum(count_messages(Words(), session()))
        assert plan.tokens_middle == plan.tokens_before - plan.tokens_kept

    def test_within_the_target_nothing_changes(self) -> None:
        plan = planned(session(5), TARGET)
        assert not plan.changes
        assert plan.spans == (Span(start=0, stop=13, action=Action.KEEP),)
        assert "<= target 1,000" in plan.reason

    @pytest.mark.parametrize(
        "settings",
        [replace(TARGET, target=Size(tokens=9_000)), Settings(trigger=Trigger(window_tokens=20_000)), Settings()],
        ids=["target", "window", "defaults"],
    )
    def test_bytes_can_prove_that_nothing_has_to_be_counted(self, settings: Settings) -> None:
        class Never(Words):
            def count(self, text: str) -> int:
                raise AssertionError(text)

        made = transcript(session(3))
        plan = make_plan(made, group(made.messages), settings, Never())
        assert not plan.changes
        assert "not counted" in plan.notes[0]

    @pytest.mark.parametrize("turns", [1, 3, 9, 27])
    def test_what_bytes_prove_counting_finds_too(self, turns: int) -> None:
        made = transcript(session(turns))
        proven = make_plan(made, group(made.messages), Settings(keep=Keep(tail_tokens=40_000)), Words())
        total = sum(count_messages(Words(), made.messages))
        counted = make_plan(made, group(made.messages), Settings(keep=Keep(tail_tokens=total)), Words())
        assert "not counted" in proven.notes[0]
        assert not counted.notes
        assert not proven.changes
        assert not counted.changes

    @pytest.mark.parametrize("target", [1_000, 2_000, 4_000, 8_000])
    def test_a_target_is_used_well(self, target: int) -> None:
        plan = planned(session(400), replace(TARGET, target=Size(tokens=target)))
        assert plan.tokens_kept + plan.summary_tokens > 0.95 * target

    def test_a_named_target_may_take_a_longer_tail_than_the_settings(self) -> None:
        keep = Keep(tail_tokens=200)
        plan = planned(session(400), replace(TARGET, target=Size(tokens=4_000), keep=keep))
        assert plan.tokens_kept > 2_000
        assert plan.summary_tokens <= 0.4 * 4_000 + 60

    def test_a_named_budget_is_kept_to(self) -> None:
        plan = planned(session(400), replace(TARGET, budget=Budget(size=Size(tokens=350))))
        assert plan.summary_tokens == 350

    def test_the_target_may_be_a_share(self) -> None:
        plan = planned(session(400), replace(TARGET, target=Size(ratio=0.25)))
        assert plan.target_tokens == plan.tokens_before // 4
        assert not plan.over_target


class TestGivingWay:
    def test_first_the_head_goes(self) -> None:
        plan = planned([system(), user(100), *exchanges(40), call("x"), answer("x", 500)], TARGET)
        assert plan.spans[0].stop == 1
        assert plan.summary_tokens >= 300

    def test_then_the_tail_shrinks_to_the_newest_block_and_the_budget_to_its_floor(self) -> None:
        plan = planned([system(), user(), *exchanges(60), call("x"), answer("x", 660)], TARGET)
        assert plan.spans[-1] == Span(start=122, stop=124, action=Action.KEEP)
        assert 300 <= plan.summary_tokens <= 330
        assert not plan.edits

    def test_then_the_newest_texts_lose_their_middle(self) -> None:
        made = transcript([system(), user(), *exchanges(60), call("x"), answer("x", 5_000)])
        plan = planned(made, TARGET)
        (edit,) = plan.edits
        assert (edit.record, edit.part) == (123, 0)
        assert "characters left out" in edit.text
        assert by_name(plan, "overflow") == [123]
        assert plan.tokens_kept + plan.summary_tokens <= 1_000
        assert not plan.over_target

    def test_system_records_never_do(self) -> None:
        plan = planned([system(1_200), user(), *exchanges(60)], TARGET)
        assert plan.changes
        assert "system records alone take 1,204" in plan.over_target
        assert plan.indices(Action.KEEP)[0] == 0

    def test_without_a_middle_the_longest_texts_are_shortened(self) -> None:
        plan = planned([system(), user(), call("x"), answer("x", 3_000)], TARGET)
        assert not plan.summary_tokens
        assert [edit.record for edit in plan.edits] == [3]
        assert plan.tokens_kept <= 1_000

    def test_a_share_is_not_taken_of_what_leaves_no_mark(self) -> None:
        plan = planned([system(), user(), call("x"), answer("x", 3_000)], replace(TARGET, target=Size(ratio=0.25)))
        assert not plan.changes
        assert plan.over_target.endswith("name a size in tokens")


class TestNatural:
    def test_a_long_transcript_becomes_head_summary_and_tail(self) -> None:
        keep = Keep(head_tokens=100, tail_tokens=500)
        plan = planned(session(100), replace(NO_RULES, keep=keep))
        assert plan.summary_tokens == max(plan.tokens_middle // 5, 300)
        tail = plan.spans[-1]
        assert sum(count_messages(Words(), session(100)[tail.start :])) <= 500
        assert plan.target_tokens == plan.tokens_kept + plan.summary_tokens

    def test_a_short_one_stays(self) -> None:
        assert not planned(session(100)).changes
        keep = Keep(head_tokens=100, tail_tokens=500)
        assert "save" in planned(session(12), replace(NO_RULES, keep=keep)).reason

    def test_a_first_turn_that_is_too_long_is_represented_by_its_user_message(self) -> None:
        messages = [system(), user(), assistant(20), user(), *exchanges(100), user(), assistant()]
        plan = planned(messages, replace(NO_RULES, keep=Keep(head_turns=2, head_tokens=100, tail_tokens=300)))
        assert plan.spans[0].stop == 4
        plan = planned(messages, replace(NO_RULES, keep=Keep(head_turns=1, head_tokens=100, tail_tokens=300)))
        assert plan.spans[0].stop == 3
        plan = planned(messages, replace(NO_RULES, keep=Keep(head_turns=0, tail_tokens=300)))
        assert plan.spans[0].stop == 1

    def test_the_newest_messages_stay_with_the_exchanges_they_are_part_of(self) -> None:
        messages = [system(), user(), *exchanges(60), call("x"), answer("x"), assistant()]
        kimi = Keep(head_turns=0, head_tokens=0, tail_tokens=0, tail_messages=2)
        plan = planned(messages, replace(NO_RULES, keep=kimi))
        assert plan.spans[-1] == Span(start=122, stop=125, action=Action.KEEP)

    def test_fewer_messages_than_named_stay_all(self) -> None:
        kimi = Keep(head_turns=0, head_tokens=0, tail_tokens=0, tail_messages=99)
        assert not planned([system(), user(3_000), assistant(3_000)], replace(NO_RULES, keep=kimi)).changes

    def test_the_newest_turns_stay(self) -> None:
        messages = [system(), user(), *exchanges(60), user(), assistant(), user(), assistant()]
        plan = planned(messages, replace(NO_RULES, keep=Keep(head_turns=0, tail_tokens=0, tail_turns=2)))
        assert plan.spans[-1] == Span(start=122, stop=126, action=Action.KEEP)

    def test_no_tail_is_possible_but_calls_in_flight_stay(self) -> None:
        bare = replace(NO_RULES, keep=Keep(head_turns=0, head_tokens=0, tail_tokens=0))
        assert planned(session(60), bare).summary_at == len(session(60))
        running = [system(), user(), *exchanges(60), call("running")]
        assert planned(running, bare).spans[-1] == Span(start=122, stop=123, action=Action.KEEP)


class TestPressure:
    WINDOW = replace(NO_RULES, trigger=Trigger(window_tokens=4_000), keep=Keep(tail_tokens=1_000))

    def test_below_the_ratio_nothing_changes(self) -> None:
        plan = planned(session(40), self.WINDOW)
        assert not plan.changes
        assert "where compaction starts" in plan.reason

    def test_at_the_ratio_there_is_room_again(self) -> None:
        plan = planned(session(56), self.WINDOW)
        assert plan.tier is Tier.COMPACT
        assert plan.tokens_kept + plan.summary_tokens <= 1_700
        assert plan.window_tokens == 4_000

    def test_in_an_emergency_tail_and_summary_are_half_as_large(self) -> None:
        wide = replace(self.WINDOW, keep=Keep(head_turns=0, tail_tokens=800))
        usual, emergency = planned(session(57), wide), planned(session(63), wide)
        assert emergency.tier is Tier.EMERGENCY
        assert "half" in emergency.notes[0]
        assert emergency.tokens_kept <= usual.tokens_kept // 2 + 60
        assert emergency.summary_tokens < usual.summary_tokens


class TestOddRecords:
    def test_bookkeeping_of_the_middle_is_left_out_and_of_the_ends_kept(self) -> None:
        messages = [META, system(), META, user(), *exchanges(20), META, *exchanges(20, prefix="d"), META]
        plan = planned(messages, TARGET)
        assert by_name(plan, "bookkeeping") == [44]
        assert {0, 2, 85} <= set(plan.indices(Action.KEEP))

    def test_orphans_are_covered_wherever_they_stand(self) -> None:
        messages = [system(), answer("gone"), user(), *exchanges(40), call("lost"), assistant(), user(), assistant()]
        plan = planned(messages, TARGET)
        assert 1 in covered(plan)
        assert 83 in covered(plan)
        assert plan.indices(Action.KEEP)[-3:] == (84, 85, 86)

    def test_orphans_stay_where_nothing_else_changes(self) -> None:
        assert not planned([system(), answer("gone"), user(), call("lost"), assistant()], TARGET).changes

    def test_superseded_records_are_left_out_with_what_hangs_on_them(self) -> None:
        old = [replace(m, superseded=True) for m in exchanges(5, prefix="old")]
        torn = [replace(call("t"), superseded=True), answer("t", 7)]
        plan = planned([META, system(), *old, META, *torn, summary(), user(), *exchanges(40)], TARGET)
        assert by_name(plan, "superseded") == [*range(2, 12), 13]
        assert by_name(plan, "bookkeeping") == [12]
        assert {14, 15} <= set(covered(plan))

    def test_records_that_a_client_kept_before_its_summary_may_be_tail(self) -> None:
        old = [replace(m, superseded=True) for m in exchanges(5, prefix="old")]
        plan = planned([*old, *exchanges(40), summary()], TARGET)
        assert {87, 88} <= set(plan.indices(Action.KEEP))
        assert covered(plan)[-1] == 90

    def test_calls_in_flight_stay(self) -> None:
        plan = planned([*session(), user(), call("a"), call("b"), answer("b")], TARGET)
        assert {84, 85, 86} <= set(plan.indices(Action.KEEP))


class TestPruning:
    RULES = replace(TARGET, prune=(PruneRule(name="tool-result", over_chars=200, first_chars=50, last_chars=50),))

    def test_pruning_alone_may_be_enough(self) -> None:
        messages = [system(), user(), call("big"), answer("big", 800), *exchanges(6)]
        plan = planned(messages, self.RULES)
        assert not plan.summary_tokens
        assert by_name(plan, "tool-result") == [3]
        assert len(plan.indices(Action.KEEP)) == len(messages) - 1
        assert "pruning alone" in plan.reason

    def test_only_as_much_is_pruned_as_the_target_asks(self) -> None:
        messages = [system(), user(), *exchanges(3, 300), *exchanges(6, 40, "d")]
        plan = planned(messages, replace(self.RULES, target=Size(tokens=1_100)))
        assert [edit.record for edit in plan.edits] == [3]

    def test_rules_alone_where_no_summary_is_wanted(self) -> None:
        micro = PruneRule(
            name="micro", over_chars=200, first_chars=200, last_chars=0, keep_messages=6, marker="... [truncated]"
        )
        bare = Settings(strategy=Strategy.RULES, prune=(micro,), keep=Keep(head_turns=0, head_tokens=0, tail_tokens=0))
        made = transcript([user(), *exchanges(6, 200)])
        plan = planned(made, bare)
        assert by_name(plan, "micro") == [2, 4, 6]
        assert all(len(edit.text) == 200 + len("... [truncated]") for edit in plan.edits)
        assert not planned(edited(made, plan), bare).changes

    def test_long_arguments_can_be_shortened_and_stay_json(self) -> None:
        rule = PruneRule(name="arguments", kind=PartKind.ARGUMENTS, over_chars=300, first_chars=100, last_chars=0)
        part = replace(call("big").calls[0], arguments={"path": "a.py", "text": words(2_000)})
        messages = [system(), user(), Message(role=Role.ASSISTANT, parts=(part,)), answer("big"), *exchanges(8)]
        plan = planned(messages, replace(TARGET, prune=(rule,)))
        (edit,) = plan.edits
        assert edit.text.startswith('{"path":"a.py","text":"w w')
        assert len(edit.text) < 200


class TestSecondRun:
    def test_a_summary_of_ours_is_updated_not_kept(self) -> None:
        plan = planned([system(), user(), ours(9_000, "0" * 16), *exchanges(40)], TARGET)
        assert 2 in covered(plan)
        assert plan.spans[0].stop == 2

    def test_a_share_is_resolved_as_in_the_first_run(self) -> None:
        kept = exchanges(10)
        last = transcript([system(), user(), ours(4_000, "?" * 16), *kept])
        made = replace(transcript([system(), user(), ours(9, hash_of(last, 22)), *kept]), original_tokens=4_000)
        assert end_hash(made) == hash_of(made, 22)
        plan = planned(made, replace(TARGET, target=Size(ratio=0.25)))
        assert plan.target_tokens == 1_000
        assert not plan.changes

    def test_what_was_added_counts_on_top(self) -> None:
        before = transcript([system(), user(), ours(4_000, "0" * 16), *exchanges(3)])
        marked = ours(9, hash_of(before, 8))
        made = transcript([system(), user(), marked, *exchanges(3), user(96), assistant(96)])
        made = replace(made, original_tokens=4_000)
        assert base_tokens(made, count_messages(Words(), made.messages)) == 4_200

    @pytest.mark.parametrize("number", [0, 99_999_999])
    def test_a_share_is_of_what_is_counted_whatever_number_a_marker_names(self, number: int) -> None:
        made = transcript([system(), user(), ours(number, "0" * 16), *exchanges(40)])
        tokens = count_messages(Words(), made.messages)
        assert base_tokens(made, tokens) == sum(tokens)
        plan = planned(made, replace(TARGET, target=Size(ratio=0.25)))
        assert plan.changes
        assert plan.target_tokens == sum(tokens) // 4
        assert (
            planned(made, TARGET).summary_tokens
            == planned(transcript([system(), user(), ours(1, "0" * 16), *exchanges(40)]), TARGET).summary_tokens
        )

    def test_a_share_was_taken_where_nothing_was_added_and_the_original_is_not_known(self) -> None:
        kept = exchanges(10)
        last = transcript([system(), user(), ours(4_000, "?" * 16), *kept])
        plan = planned(
            transcript([system(), user(), ours(4_000, hash_of(last, 22)), *kept]),
            replace(TARGET, target=Size(ratio=0.25)),
        )
        assert not plan.changes
        assert "no archive of this run has its original" in plan.reason

    def test_nothing_but_a_summary_in_the_middle_stays(self) -> None:
        keep = Keep(head_tokens=100, tail_tokens=500)
        made = [system(), user(), ours(9_000, "0" * 16, 1_500), *exchanges(5)]
        assert not planned(made, replace(NO_RULES, keep=keep)).changes

    def test_a_summary_does_not_shrink_because_it_is_updated(self) -> None:
        keep = Keep(head_tokens=100, tail_tokens=500)
        plan = planned([system(), user(), ours(90_000, "0" * 16, 4_000), *exchanges(60)], replace(NO_RULES, keep=keep))
        assert plan.summary_tokens >= 4_000


def edited(made: Transcript, plan: Plan) -> Transcript:
    """The messages after the plan's edits, nothing left out."""
    messages = list(made.messages)
    for edit in plan.edits:
        parts = list(messages[edit.record].parts)
        parts[edit.part] = replace(parts[edit.part], text=edit.text)  # type: ignore[call-arg]
        messages[edit.record] = replace(messages[edit.record], parts=tuple(parts))
    return transcript(messages)


def compacted(made: Transcript, plan: Plan) -> Transcript:
    """What acting on a plan gives, with a summary that uses its budget up."""
    after = edited(made, plan).messages
    edits = {edit.record for edit in plan.edits}
    leaving = {*covered(plan), *(i for i in plan.indices(Action.PRUNE) if i not in edits)}
    result = [(i, m) for i, m in enumerate(after) if i not in leaving]
    if not plan.summary_tokens:
        return transcript([m for _, m in result])
    before = [m for i, m in result if i < plan.summary_at]
    following = [m for i, m in result if i >= plan.summary_at]
    base = base_tokens(made, count_messages(Words(), made.messages))
    draft = transcript([*before, ours(base, "0" * 16, 0), *following])
    written = ours(base, end_hash(draft) or "0" * 16, plan.summary_tokens - 10)
    # The archive holds the original.
    return replace(transcript([*before, written, *following]), original_tokens=base)


ROLES = st.sampled_from([Role.USER, Role.ASSISTANT])
SIZES = st.one_of(st.integers(0, 40), st.sampled_from([200, 700, 3_000]))
IDS = st.sampled_from(["", "a", "b", "c"])
STEPS = st.one_of(
    st.builds(lambda role, size: [says(role, size)], ROLES, SIZES),
    st.builds(lambda key, size: [call(key), answer(key, size)], IDS, SIZES),
    st.builds(lambda key, size: [call(key), call(key + "2"), answer(key + "2", size), answer(key)], IDS, SIZES),
    st.builds(lambda key: [call(key)], IDS),
    st.builds(lambda key, size: [answer(key, size)], IDS, SIZES),
    st.just([META]),
    st.just([UNREAD]),
    st.builds(lambda key, size: [call(key), answer(key + "2", size), UNREAD], IDS, SIZES),
    st.just([summary(words(60))]),
    st.builds(lambda size: [system(size)], st.integers(0, 90)),
    st.builds(lambda count: exchanges(count), st.integers(5, 30)),
)
TRANSCRIPTS = st.builds(
    lambda steps, old: [
        replace(m, superseded=i < old and m.role is not Role.META)
        for i, m in enumerate(m for step in steps for m in step)
    ],
    st.lists(STEPS, max_size=14),
    st.sampled_from([0, 0, 3, 8]),
)
RULES = (PruneRule(name="tool-result", over_chars=400, first_chars=100, last_chars=100),)
TYPED = (
    PruneRule(
        name="all",
        kind=PartKind.ANY,
        when=When.ALWAYS,
        over_chars=300,
        first_chars=100,
        last_chars=0,
        marker="... ({id})",
    ),
    PruneRule(name="user", kind=PartKind.USER, over_tokens=9, over_chars=0, first_chars=20, last_chars=0, keep_parts=1),
)
SETTINGS = st.builds(
    Settings,
    target=st.sampled_from([Size(), Size(tokens=400), Size(tokens=900), Size(ratio=0.25), Size(ratio=0.6)]),
    trigger=st.sampled_from([Trigger(), Trigger(window_tokens=1_500), Trigger(threshold_tokens=800)]),
    keep=st.sampled_from(
        [
            Keep(),
            Keep(head_tokens=60, tail_tokens=200),
            Keep(head_turns=0, head_tokens=0, tail_tokens=0),
            Keep(head_turns=0, head_tokens=0, tail_tokens=0, tail_messages=2),
            Keep(tail_tokens=0, tail_turns=1),
            Keep(head_turns=0, head_tokens=0, tail_tokens=0, tail_ratio=0.3),
        ]
    ),
    budget=st.sampled_from(
        [Budget(), Budget(curve="tiered"), Budget(size=Size(tokens=350)), Budget(size=Size(ratio=0.3))]
    ),
    prune=st.sampled_from([(), RULES, TYPED]),
    strategy=st.sampled_from([Strategy.SUMMARY, *Strategy]),
    rules=st.sampled_from([Rules(), Rules(halvings=2), Rules(halvings=2, middle_out=True)]),
    fit=st.builds(
        Fit,
        user=st.sampled_from(OverflowPolicy),
        result=st.sampled_from(OverflowPolicy),
        other=st.sampled_from(OverflowPolicy),
        user_leads=st.booleans(),
    ),
)
# Without a summary nothing says how large the transcript once was, and the newest may be larger than its target.
WRITING = (Strategy.SUMMARY, Strategy.RETRIEVAL)


# Without the orphan, the call before the record that nobody could read must not take the result after it.
TORN = [call("a"), answer("a2"), UNREAD, call(""), answer(""), user(700)]


@settings(max_examples=300, deadline=None)
@given(TRANSCRIPTS, SETTINGS)
@example(TORN, Settings(target=Size(tokens=400)))
def test_every_plan_keeps_the_invariants(messages: list[Message], chosen: Settings) -> None:
    made = transcript(messages)
    plan = planned(made, chosen)
    if not plan.changes:
        assert len(plan.spans) <= 1
        return
    after = compacted(made, plan)
    grouping = group(after.messages)
    assert not grouping.orphan_calls
    assert not grouping.orphan_results
    sizes = count_messages(Words(), after.messages)
    assert sum(sizes) <= plan.target_tokens or plan.over_target or chosen.strategy not in WRITING
    assert sum(sizes) <= plan.tokens_before
    in_flight = {half.record for half in group(messages).in_flight}
    assert in_flight - set(covered(plan)) == in_flight


def test_an_orphan_after_the_only_question_is_summed_up_once() -> None:
    made = transcript([*exchanges(5), says(Role.USER, 1), answer("", 700)])
    after = compacted(made, planned(made, Settings()))
    assert not planned(after, Settings()).changes


@settings(max_examples=300, deadline=None)
@given(TRANSCRIPTS, SETTINGS)
def test_a_second_run_changes_nothing(messages: list[Message], chosen: Settings) -> None:
    made = transcript(messages)
    plan = planned(made, chosen)
    if plan.changes:
        assert not planned(compacted(made, plan), chosen).changes


class Exchange(tuple[int, ...]):
    """Counts how often any is looked up."""

    looked_up = 0

    def __hash__(self) -> int:
        Exchange.looked_up += 1
        return super().__hash__()


def test_what_fits_of_twice_as_many_exchanges_takes_twice_the_work() -> None:
    chosen = replace(TARGET, strategy=Strategy.FIT, fit=Fit(user_leads=True), target=Size(tokens=40_000))
    times = []
    for count in (300, 600):
        made = transcript([user(), *exchanges(count, 50), user(20_000), *exchanges(count, 10)])
        grouping, Exchange.looked_up = group(made.messages), 0
        plan = make_plan(made, replace(grouping, exchanges=tuple(map(Exchange, grouping.exchanges))), chosen, Words())
        assert plan.changes
        times.append(Exchange.looked_up)
    assert times[1] <= 2.5 * times[0]


@given(TRANSCRIPTS)
def test_the_newest_block_stays(messages: list[Message]) -> None:
    messages = [*exchanges(30, prefix="x"), *(m for m in messages if not m.superseded and not m.summary)]
    plan = planned(messages, replace(TARGET, target=Size(ratio=0.3)))
    gone = group(messages).orphaned() | {i for i, m in enumerate(messages) if m.is_meta}
    assume(plan.changes)
    assert max(i for i in range(len(messages)) if i not in gone) not in covered(plan)


def _span(start: int, stop: int, action: Action = Action.KEEP) -> Span:
    return Span(start=start, stop=stop, action=action)


@pytest.mark.parametrize(
    "change",
    [
        {"spans": (_span(0, 7),)},
        {"spans": (_span(0, 5), _span(4, 8))},
        {"edits": (), "spans": (_span(0, 7), _span(7, 8, Action.PRUNE))},
        {"spans": (_span(0, 8),)},
        {"tokens_kept": 1_001},
        {"summary_tokens": 300},
        {"transcript_sha256": "another"},
    ],
)
def test_a_plan_that_breaks_an_invariant_is_refused(change: dict[str, Any]) -> None:
    made = transcript([system(), user(), *exchanges(2), call("x"), answer("x", 2_000)])
    grouping = group(made.messages)
    good = make_plan(made, grouping, TARGET, Words())
    check_plan(good, made, grouping)
    with pytest.raises(InvariantError):
        check_plan(replace(good, **change), made, grouping)


def test_texts_are_not_touched_that_are_short() -> None:
    made = transcript([system(), user(), *exchanges(30), Message(role=Role.USER, parts=(Text(text=words(290)),) * 4)])
    plan = planned(made, TARGET)
    assert not plan.edits
    assert "cannot be made any shorter" in plan.over_target


def test_results_are_shortened_before_words() -> None:
    parts = (Text(text=words(400)), ToolResult(id="x", text=words(4_000)))
    made = transcript([system(), user(), *exchanges(60), call("x"), Message(role=Role.USER, parts=parts)])
    plan = planned(made, TARGET)
    assert [edit.part for edit in plan.edits] == [1]
