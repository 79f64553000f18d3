"""What of the middle stays next to the newest exchanges, and what always holds of such plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st
from plan_builders import META, Words, answer, assistant, call, exchanges, hash_of, ours, system, transcript, user

from compactor_cli.group.exchanges import group
from compactor_cli.model.plan import Action, Middle, Mode, Plan, Ranking
from compactor_cli.model.settings import SMART, Keep, Settings, Size
from compactor_cli.model.transcript import Message
from compactor_cli.plan.planner import make_plan

SETTINGS = Settings(prune=(), keep=Keep(by=SMART, head_tokens=100, tail_tokens=600))


@dataclass(frozen=True)
class Named:
    """Ranks the blocks that hold these records first; ``note`` as given."""

    records: Sequence[int] = ()
    note: str = ""

    def rank(self, middle: Middle) -> Ranking:
        order = [n for record in self.records for n, block in enumerate(middle.blocks) if record in block]
        return Ranking(order=order, note=self.note)


def planned(messages: Sequence[Message], first: Sequence[int] = (), settings: Settings = SETTINGS) -> Plan:
    made = transcript(messages)
    return make_plan(made, group(made.messages), settings, Words(), importance=Named(first))


def session(count: int = 40) -> list[Message]:
    return [system(), user(), *exchanges(count), assistant(20)]


def kept(plan: Plan) -> list[int]:
    return list(plan.indices(Action.KEEP))


def test_whole_exchanges_of_the_middle_stay_in_their_order() -> None:
    plan = planned(session(), (31, 10))
    assert [i for i in kept(plan) if i < 40] == [0, 1, 10, 11, 30, 31]
    assert plan.summary_at == 10
    assert plan.spans[1].action is Action.COVER


def test_they_take_no_more_than_the_newest_would() -> None:
    usual = planned(session(), settings=replace(SETTINGS, keep=replace(SETTINGS.keep, by="newest")))
    plan = planned(session(), (10, 20, 30))
    assert plan.tokens_kept <= usual.tokens_kept
    assert plan.summary_tokens == usual.summary_tokens
    assert plan.tokens_middle + plan.tokens_kept == plan.tokens_before


def test_the_newest_exchanges_stay_whatever_they_say() -> None:
    plan = planned(session(), range(2, 60))
    assert kept(plan)[-5:] == [78, 79, 80, 81, 82]


def test_what_is_not_named_comes_after_the_newest_first() -> None:
    newest = replace(SETTINGS, keep=replace(SETTINGS.keep, by="newest"))
    made = transcript(session())
    assert kept(planned(session())) == kept(make_plan(made, group(made.messages), newest, Words()))


def test_a_block_that_does_not_fit_leaves_its_room_to_others() -> None:
    messages = [system(), user(), *exchanges(10), call("big"), answer("big", 500), *exchanges(20, prefix="d")]
    assert [i for i in kept(planned(messages, (22, 4))) if i < 40] == [0, 1, 4, 5]


def test_bookkeeping_next_to_them_goes() -> None:
    messages = [system(), user(), *exchanges(10), META, *exchanges(30, prefix="d")]
    plan = planned(messages, (20, 23))
    assert 22 in plan.indices(Action.PRUNE)
    assert {20, 21, 23, 24} <= set(kept(plan))


def test_the_note_of_the_ranking_is_the_plan_s() -> None:
    made = transcript(session())
    plan = make_plan(made, group(made.messages), SETTINGS, Words(), importance=Named(note="by words alone"))
    assert plan.notes == ("by words alone",)


def test_nothing_is_asked_where_there_is_no_summary() -> None:
    class Never:
        def rank(self, middle: Middle) -> Ranking:
            raise AssertionError(middle)

    made = transcript(session(4))
    assert not make_plan(made, group(made.messages), SETTINGS, Words(), importance=Never()).changes


def test_what_was_chosen_by_number_stays_until_something_is_added() -> None:
    keep = Keep(by=SMART, head_turns=0, tail_tokens=0, tail_messages=2)
    settings = replace(SETTINGS, keep=keep)
    tail = [*exchanges(3), assistant(20)]
    bare = transcript([system(), ours(9_000, "0" * 16), *tail])
    marked = [system(), ours(9_000, hash_of(bare, 8)), *tail]
    assert not planned(marked, (2,), settings).changes
    grown = planned([*marked, *exchanges(60, prefix="d"), user(), assistant()], (2,), settings)
    assert grown.changes


@given(
    st.lists(st.integers(1, 120), min_size=3, max_size=40),
    st.lists(st.integers(0, 80), max_size=12),
    st.integers(300, 3_000),
)
def test_every_such_plan_holds_together(sizes: list[int], first: list[int], target: int) -> None:
    messages = [system(), user(), *(m for n, size in enumerate(sizes) for m in (call(f"c{n}"), answer(f"c{n}", size)))]
    plan = planned(messages, first, replace(SETTINGS, target=Size(tokens=target)))
    pairs = [(i, i + 1) for i in range(2, len(messages), 2)]
    staying = set(kept(plan)) | {edit.record for edit in plan.edits}
    assert all((one in staying) == (other in staying) for one, other in pairs)
    assert plan.over_target or not plan.changes or plan.tokens_kept + plan.summary_tokens <= plan.target_tokens


def test_a_boundary_that_holds_one_run_only_keeps_the_newest() -> None:
    made = replace(transcript(session()), dialect="pi")
    plan = make_plan(made, group(made.messages), SETTINGS, Words(), Mode.APPEND, Named((10,)))
    assert 10 not in kept(plan)
