from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.group.exchanges import Grouping, group
from compactor_cli.model.transcript import Message, PreviousSummary, Role, Text, Thinking, ToolCall, ToolResult


def user(text: str = "please") -> Message:
    return Message(role=Role.USER, parts=(Text(text=text),))


def says(text: str = "done", in_group: str = "") -> Message:
    return Message(role=Role.ASSISTANT, parts=(Text(text=text),), group=in_group)


def calls(*ids: str, name: str = "run", in_group: str = "") -> Message:
    parts = tuple(ToolCall(id=each, name=name, arguments={}) for each in ids)
    return Message(role=Role.ASSISTANT, parts=parts, group=in_group)


def named_calls(*names: str) -> Message:
    return Message(role=Role.ASSISTANT, parts=tuple(ToolCall(id="", name=each, arguments={}) for each in names))


def answers(*ids: str, name: str = "") -> Message:
    return Message(role=Role.TOOL, parts=tuple(ToolResult(id=each, text="ok", name=name) for each in ids))


META = Message(role=Role.META)
UNREAD = Message(role=Role.META, is_unread=True)


def paired(grouping: Grouping) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    return [((p.call.record, p.call.part), (p.result.record, p.result.part)) for p in grouping.pairs]


def shared(grouping: Grouping) -> list[tuple[int, ...]]:
    return [exchange for exchange in grouping.exchanges if len(exchange) > 1]


def test_a_call_and_its_result_are_one_block() -> None:
    found = group([user(), calls("a"), answers("a"), says()])
    assert found.exchanges == ((0,), (1, 2), (3,))
    assert found.borders == (0, 1, 3, 4)


def test_results_of_parallel_calls_may_come_in_any_order() -> None:
    found = group([calls("a", "b", "c"), answers("c"), answers("a", "b"), says()])
    assert paired(found) == [((0, 2), (1, 0)), ((0, 0), (2, 0)), ((0, 1), (2, 1))]
    assert found.borders == (0, 3, 4)


def test_an_id_used_again_belongs_to_the_newest_open_call() -> None:
    found = group([calls("x"), answers("x"), calls("x"), answers("x"), calls("x"), answers("x")])
    assert shared(found) == [(0, 1), (2, 3), (4, 5)]


def test_a_call_that_never_returned_does_not_take_the_result_of_a_later_one_with_its_id() -> None:
    found = group([calls("x"), user("again"), calls("x"), answers("x"), says()])
    assert shared(found) == [(2, 3)]
    assert [half.record for half in found.orphan_calls] == [0]


def test_one_id_twice_in_one_message_is_answered_in_order() -> None:
    found = group([calls("x", "x"), answers("x"), answers("x")])
    assert paired(found) == [((0, 0), (1, 0)), ((0, 1), (2, 0))]


def test_a_result_between_two_calls_of_one_message() -> None:
    found = group([calls("a", in_group="m"), answers("a"), calls("b", in_group="m"), answers("b"), says()])
    assert shared(found) == [(0, 1, 2, 3)]


def test_a_group_name_that_returns_after_the_users_words_is_another_message() -> None:
    found = group([says(in_group="m"), user(), says(in_group="m")])
    assert not shared(found)


def test_bookkeeping_inside_an_exchange_is_a_block_with_it_but_no_part_of_it() -> None:
    found = group([calls("a"), META, answers("a"), META])
    assert found.exchanges == ((0, 2), (1,), (3,))
    assert found.borders == (0, 3, 4)


def test_results_without_ids_go_to_the_calls_in_order() -> None:
    found = group([calls("", ""), answers(""), answers(""), says()])
    assert paired(found) == [((0, 0), (1, 0)), ((0, 1), (2, 0))]


def test_results_without_ids_go_by_name_where_they_have_one() -> None:
    found = group([named_calls("read", "run"), answers("", name="run"), answers("", name="read")])
    assert paired(found) == [((0, 1), (1, 0)), ((0, 0), (2, 0))]


def test_a_result_without_id_does_not_reach_back_over_another_step() -> None:
    found = group([calls("", ""), answers(""), calls(""), answers(""), says()])
    assert paired(found) == [((0, 0), (1, 0)), ((2, 0), (3, 0))]
    assert [(half.record, half.part) for half in found.orphan_calls] == [(0, 1)]


def test_a_result_without_id_after_the_users_words_is_an_orphan() -> None:
    found = group([calls(""), user(), answers("")])
    assert not found.pairs
    assert [half.record for half in found.orphan_results] == [2]


def test_a_result_before_its_call_is_paired_within_a_turn_only() -> None:
    assert shared(group([user(), answers("a"), calls("a"), says()])) == [(1, 2)]
    apart = group([answers("a"), user(), calls("a"), says()])
    assert [half.record for half in apart.orphan_results] == [0]
    assert [half.record for half in apart.orphan_calls] == [2]


def test_a_call_answered_in_its_own_record() -> None:
    message = Message(
        role=Role.ASSISTANT,
        parts=(ToolCall(id="s", name="web_search", arguments={}), ToolResult(id="s", text="found"), Text(text="so")),
    )
    found = group([user(), message])
    assert paired(found) == [((1, 0), (1, 1))]


def test_calls_at_the_end_are_in_flight() -> None:
    found = group([user(), calls("a", "b"), answers("a"), META])
    assert [half.id for half in found.in_flight] == ["b"]
    assert not found.orphan_calls


def test_parallel_calls_in_records_of_their_own_are_in_flight_together() -> None:
    found = group([user(), says("two"), calls("a"), calls("b")])
    assert [half.id for half in found.in_flight] == ["a", "b"]


def test_a_call_is_given_up_when_the_conversation_went_on() -> None:
    summary = Message(role=Role.USER, parts=(Text(text="s"),), summary=PreviousSummary(origin="pi", text="s"))
    for later in (user(), says(), summary):
        found = group([user(), calls("a"), later])
        assert [half.id for half in found.orphan_calls] == ["a"]
        assert not found.in_flight


def test_a_call_is_given_up_when_another_step_was_made() -> None:
    found = group([user(), calls("a", "b"), answers("b"), calls("c")])
    assert [half.id for half in found.orphan_calls] == ["a"]
    assert [half.id for half in found.in_flight] == ["c"]


def test_the_records_that_hang_on_an_orphan_are_known() -> None:
    found = group([user(), calls("a", "b"), answers("b"), says()])
    assert found.orphaned() == {1, 2}


def test_what_may_be_answered_in_a_record_that_nobody_could_read_is_no_orphan_and_stays_with_it() -> None:
    answer_torn = group([user(), calls("a", "b"), answers("b"), UNREAD, says()])
    assert (answer_torn.orphan_calls, shared(answer_torn)) == ((), [(1, 2, 3)])
    call_torn = group([user(), UNREAD, answers("a"), says()])
    assert (call_torn.orphan_results, shared(call_torn)) == ((), [(1, 2)])
    for elsewhere in ([UNREAD, calls("a"), says()], [calls("a"), user(), UNREAD, says()], [calls("a"), META, says()]):
        assert len(group([user(), *elsewhere]).orphan_calls) == 1


def test_an_empty_transcript_has_one_border() -> None:
    assert group([]) == Grouping(exchanges=(), borders=(0,))


IDS = st.sampled_from(["", "a", "b", "c"])
NAMES = st.sampled_from(["", "run", "read"])
CALLS = st.builds(ToolCall, id=IDS, name=NAMES, arguments=st.just({}))
RESULTS = st.builds(ToolResult, id=IDS, text=st.just("ok"), name=NAMES)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(list(Role)),
    parts=st.lists(
        st.one_of(CALLS, RESULTS, st.just(Text(text="words")), st.just(Thinking(text="hm"))), max_size=4
    ).map(tuple),
    group=st.sampled_from(["", "", "m", "n"]),
    superseded=st.booleans(),
)
MESSAGES = st.one_of(MESSAGES, st.just(UNREAD))


@given(st.lists(MESSAGES, max_size=25))
def test_exchanges_are_a_partition_that_blocks_do_not_divide(messages: list[Message]) -> None:
    found = group(messages)
    assert sorted(i for exchange in found.exchanges for i in exchange) == list(range(len(messages)))
    assert found.borders[0] == 0
    assert found.borders[-1] == len(messages)
    assert all(left < right for left, right in pairwise(found.borders))
    block_of = {i: block for block in pairwise(found.borders) for i in range(*block)}
    assert all(len({block_of[i] for i in exchange}) == 1 for exchange in found.exchanges)
    for exchange in found.exchanges:
        assert all(left < right for left, right in pairwise(exchange))


@given(st.lists(MESSAGES, max_size=25))
def test_no_border_could_be_added(messages: list[Message]) -> None:
    found = group(messages)
    for start, stop in pairwise(found.borders):
        for border in range(start + 1, stop):
            assert any(exchange[0] < border <= exchange[-1] for exchange in found.exchanges)


@given(st.lists(MESSAGES, max_size=25))
def test_every_call_and_result_is_accounted_for_once(messages: list[Message]) -> None:
    found = group(messages)
    seen = Counter(
        (half.record, half.part)
        for half in (
            *(p.call for p in found.pairs),
            *(p.result for p in found.pairs),
            *found.orphan_calls,
            *found.orphan_results,
            *found.in_flight,
            *found.torn,
        )
    )
    expected = {
        (record, part)
        for record, message in enumerate(messages)
        if message.role is not Role.META
        for part, each in enumerate(message.parts)
        if isinstance(each, ToolCall | ToolResult)
    }
    assert seen == Counter(expected)
    component = {i: exchange for exchange in found.exchanges for i in exchange}
    for item in found.pairs:
        assert component[item.call.record] == component[item.result.record]
        assert not item.call.id or not item.result.id or item.call.id == item.result.id


@given(st.lists(MESSAGES, max_size=25), st.data())
def test_what_is_left_after_leaving_out_exchanges_pairs_as_before(messages: list[Message], data: st.DataObject) -> None:
    by_id = [m for m in messages if all(part.id for part in (*m.calls, *m.results)) and not m.group]
    found = group(by_id)
    staying = sorted(
        i for e in found.exchanges for i in e if not found.orphaned() & {*e} and data.draw(st.booleans(), label=str(i))
    )
    staying = [i for i in staying if all(j in staying for e in found.exchanges if i in e for j in e)]
    again = group([by_id[i] for i in staying])
    assert not again.orphan_results
    assert {half.id for half in (*again.orphan_calls, *again.in_flight)} <= {half.id for half in found.in_flight}
