"""The counter table: merging is exact, and the state keeps it."""

from __future__ import annotations

from digest_events import event, event_lists
from hypothesis import given

from compactor_cli.digest import memory
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.salience import COUNTS, Table, build, score
from compactor_cli.digest.statements import Statement, StatementForm
from compactor_cli.digest.tools import ToolKind


def facts_of(table: Table) -> dict[str, object]:
    """Everything a table says, without the order in which it came to say it."""
    rows = {atom: [column[row] for column in table.columns.values()] for atom, row in table.atoms.items()}
    return {
        "rows": rows,
        "spoken": (table.spoken.times, table.spoken.events, table.spoken.names, table.spoken.total),
        "numbers": (table.length_tokens, table.events),
    }


@given(event_lists, event_lists)
def test_merging_is_as_if_scanned_as_one(older: list[Event], newer: list[Event]) -> None:
    assert facts_of(build(older).merge(build(newer))) == facts_of(build([*older, *newer]))


@given(event_lists, event_lists, event_lists)
def test_merging_is_associative(a: list[Event], b: list[Event], c: list[Event]) -> None:
    first = build(a).merge(build(b)).merge(build(c))
    second = build(a).merge(build(b).merge(build(c)))
    assert facts_of(first) == facts_of(second)


@given(event_lists, event_lists)
def test_a_state_keeps_the_table(older: list[Event], newer: list[Event]) -> None:
    table = build(older)
    data = memory.serialise(score(table))
    assert data == memory.serialise(score(build(older)))
    parsed = memory.parse(data)
    assert parsed is not None
    assert facts_of(parsed.table) == facts_of(table)
    assert facts_of(parsed.table.merge(build(newer))) == facts_of(build([*older, *newer]))


@given(event_lists, event_lists)
def test_a_table_is_the_same_whatever_transcript_was_read_before(before: list[Event], events: list[Event]) -> None:
    alone = memory.serialise(score(build(events)))
    build(before)
    assert memory.serialise(score(build(events))) == alone


def test_a_long_transcript_of_new_lines_is_counted_as_in_parts() -> None:
    texts = ["\n".join(f"see src/file_{n}.py line {n}" for n in range(at, at + 900)) for at in range(0, 9_000, 900)]
    events = [event(EventKind.RESULT, text) for text in (*texts, texts[0])]
    whole = facts_of(build(events))
    assert facts_of(build(events[:5]).merge(build(events[5:]))) == whole
    assert whole["rows"]["src/file_7.py"][1 + COUNTS.index("results")] == 2  # type: ignore[index]


def test_counters_say_who_held_an_atom() -> None:
    table = build(
        [
            event(EventKind.USER, "look at src/a.py"),
            event(EventKind.CALL, "Edit\nfile_path=src/a.py", tool=ToolKind.EDIT),
            event(EventKind.RESULT, "error in src/a.py\nerror in src/a.py", is_error=True),
        ]
    )
    columns, row = table.columns, table.atoms["src/a.py"]
    seen = {name: column[row] for name, column in columns.items()}
    assert {name: seen[name] for name in ("users", "assistants", "calls", "results", "edits", "errors", "lines")} == {
        "users": 1,
        "assistants": 0,
        "calls": 1,
        "results": 1,
        "edits": 1,
        "errors": 1,
        "lines": 4,
    }
    assert seen["first"] == 0 < seen["last"]


def test_lines_of_a_merged_table_point_to_its_rows() -> None:
    merged = build([event(EventKind.USER, "old_name first")]).merge(build([event(EventKind.USER, "new_name second")]))
    names = list(merged.atoms)
    assert [names[row] for row in merged.lines.atoms[merged.lines.numbers["new_name second"]]] == ["new_name"]


def test_statements_and_extra_survive() -> None:
    table = build([event(EventKind.ASSISTANT, "use load_items here")])
    one = Statement(
        text="use load_items here",
        event=0,
        place=1,
        form=StatementForm.ITEM,
        lead="Now:",
        record=3,
        at_tokens=7,
        weight=1.5,
    )
    parsed = memory.parse(memory.serialise(score(table), [one], {"files": ["a"]}))
    assert parsed is not None
    assert parsed.statements == (one._replace(event=-1, record=-1),)
    assert parsed.extra == {"files": ["a"]}


def test_bytes_that_are_no_state() -> None:
    good = memory.serialise(score(build([event(EventKind.USER, "src/a.py " * 50)])))
    assert memory.parse(b"") is None
    assert memory.parse(b"not a state") is None
    assert memory.parse(good[: len(good) // 2]) is None
