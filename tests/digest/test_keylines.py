"""Key lines: verbatim, within the budget, the same every time."""

from __future__ import annotations

from compactor_cli.digest.candidates import Form
from compactor_cli.digest.keylines import LINE_TOKENS, Choice, Chooser, choose
from digest_events import event, event_lists
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.digest import state
from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.events import Event, EventKind, ToolKind
from compactor_cli.digest.facts import facts_of
from compactor_cli.digest.salience import score
from compactor_cli.digest.table import build


def count(text: str) -> int:
    return len(text) // 4 + 1


def chosen(events: list[Event], budget_tokens: int, **more: object) -> Choice:
    table = build(events)
    return choose(events, table, score(table), budget_tokens=budget_tokens, count=count, **more)  # type: ignore[arg-type]


WORK = [
    event(EventKind.USER, "Please make the loader faster.", record=0, turn=1),
    event(EventKind.CALL, "Read\nfile_path=src/loader.py", record=1, turn=1, tool=ToolKind.READ, name="Read"),
    event(
        EventKind.RESULT,
        "def load_items(path):\n    return [parse_line(line) for line in open(path)]\n})\n",
        record=2,
        turn=1,
        tool=ToolKind.READ,
        call=1,
    ),
    event(
        EventKind.ASSISTANT,
        "The fault is in load_items. What to do:\n\nSteps to take:\n- use a cache in load_items\n- drop parse_line",
        record=3,
        turn=1,
    ),
    event(
        EventKind.CALL,
        "Bash\ncommand=pytest tests/test_loader.py --fast",
        record=4,
        turn=1,
        tool=ToolKind.COMMAND,
        name="Bash",
        arguments={"command": "pytest tests/test_loader.py --fast"},
    ),
]


@given(event_lists, st.integers(0, 120))
def test_lines_are_verbatim_and_within_the_budget(events: list[Event], budget: int) -> None:
    choice = chosen(events, budget)
    for line in choice.lines:
        said = events[line.event]
        assert all(piece in said.text for piece in line.text.split(", " if line.form is Form.NAME else "\n"))
        assert line.records == (said.record,)
        assert line.kind is said.kind
    pieces = [piece for line in choice.lines for piece in line.text.split("\n")]
    assert sum(count(piece) + LINE_TOKENS for piece in pieces) <= budget


@given(event_lists, st.integers(10, 120))
def test_nothing_is_invented_and_the_choice_is_the_same_every_time(events: list[Event], budget: int) -> None:
    choice = chosen(events, budget)
    assert choice == chosen(events, budget)
    there = {atom for item in events for atom in atom_texts(item.text)}
    assert {atom for line in choice.lines for atom in atom_texts(line.text)} <= there


def test_lines_stand_in_order_with_their_labels() -> None:
    lines = chosen(WORK, 200).lines
    assert [line.event for line in lines] == sorted(line.event for line in lines)
    labels = {line.event: line.label for line in lines}
    assert labels[4] == "`pytest tests/test_loader.py --fast`"
    assert "command=" not in "".join(line.text for line in lines)
    assert "})" not in [line.text for line in lines]


def test_neighbours_are_joined_and_items_keep_their_lead_in() -> None:
    lines = chosen(WORK, 400).lines
    (items,) = [line for line in lines if "use a cache" in line.text]
    assert "drop parse_line" in items.text
    assert items.lead == "Steps to take:" or "Steps to take:" in items.text


def test_what_is_shown_elsewhere_is_not_paid_for() -> None:
    shown = facts_of(item.text for item in WORK)
    words = sum(len(line.text) for line in chosen(WORK, 200).lines)
    assert sum(len(line.text) for line in chosen(WORK, 200, covered=shown).lines) < words / 3


def test_a_line_of_an_earlier_round_can_be_chosen_again() -> None:
    table = build(WORK)
    first = choose(WORK, table, score(table), budget_tokens=200, count=count)
    kept = state.parse(state.serialise(score(table), first.candidates))
    assert kept is not None
    newer = [event(EventKind.ASSISTANT, "Nothing new was found.", record=0)]
    merged = kept.table.merge(build(newer))
    again = choose(newer, merged, score(merged), budget_tokens=200, count=count, old_candidates=kept.candidates)
    old = [line for line in again.lines if line.event == -1]
    assert any("load_items" in line.text for line in old)
    assert all(line.records == () for line in old)


def test_a_chat_keeps_names() -> None:
    talk = [
        "We met at the cafe",
        "My doctor is called Alvarez and sees me on Tuesday",
        "It is fine weather today again, is it not",
        "It is fine weather today again, it is",
    ]
    events = [event(EventKind.USER, text, record=i, turn=i) for i, text in enumerate(talk)]
    assert "Alvarez" in chosen(events, 30).lines[0].text


def test_names_that_no_statement_tells_are_listed_under_their_file() -> None:
    names = [f"helper_{letter}" for letter in "abcdefghij"]
    text = "\n".join(f"    {name} = something that is long enough to cost more than it tells" for name in names)
    events = [
        *WORK[:2],
        event(EventKind.RESULT, text, record=2, turn=1, tool=ToolKind.READ, call=1),
        event(EventKind.ASSISTANT, " ".join(names), record=3, turn=1),
    ]
    listed = [line for line in chosen(events, 80).lines if line.form is Form.NAME]
    assert listed
    assert all(name in names or name in atom_texts(WORK[1].text) for line in listed for name in line.text.split(", "))


def test_keys_of_a_tool_s_json_are_no_names() -> None:
    found = [
        event(EventKind.CALL, "get_user\nuser_id=mei_7", turn=1, name="get_user"),
        event(EventKind.RESULT, '{"first_name": "Mei", "payment_id": "gift_card_7"}', record=1, turn=1, call=0),
    ]
    names = {name for line in chosen(found, 20).candidates if line.form is Form.NAME for name in line.text.split(", ")}
    assert names == {"get_user", "mei_7", "gift_card_7"}


def test_several_tries_with_one_chooser_are_as_fresh_ones() -> None:
    table = build(WORK)
    chooser = Chooser(WORK, score(table), budget_tokens=100, count=count)
    first = chooser.choose(100)
    chooser.choose(30)
    assert chooser.choose(100) == first
    assert sum(len(line.text) for line in chooser.choose(30).lines) <= 120


def test_a_long_line_is_shown_around_its_facts() -> None:
    filler = "some plain words that say nothing at all, " * 30
    events = [event(EventKind.RESULT, f"{filler} the value of load_items is set here, {filler}", record=0)]
    (line,) = [line for line in chosen(events, 60).lines if line.form is Form.LINE]
    assert "load_items" in line.text
    assert len(line.text) < 400
    assert "…" in line.text
