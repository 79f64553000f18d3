from __future__ import annotations

from eval_builders import assistant, call, result, summary, transcript, user

from compactor_cli.evaluate.cuts import CutProtocol, CutRule, find_cases, segments
from compactor_cli.model.transcript import Message, Role


def _size(message: Message) -> int:
    return 100


def _session(exchanges: int) -> list[Message]:
    every: list[Message] = [user("Please build the thing")]
    for n in range(exchanges):
        every += [assistant(f"step {n}", call("Bash", n, command=f"run {n}")), result(f"done {n}", n)]
    return every


RULE = CutRule(fractions=(0.5,), tail_tokens=800, least_middle_tokens=1_000, least_future_events=20)


def test_head_middle_tail_and_future_tile_the_transcript() -> None:
    whole = transcript(_session(40))
    (found,) = find_cases(whole, "s", RULE, _size)
    assert found.head == (0,)
    assert (*found.head, *found.middle, *found.tail) == tuple(range(len(found.prefix.records)))
    assert len(found.tail) == 8
    assert found.middle_tokens == 100 * len(found.middle)
    assert found.middle_tokens + found.kept_tokens == 100 * len(found.prefix.records)
    assert found.future_events[0].record == len(found.prefix.records)
    assert found.protocol is CutProtocol.SESSION


def test_nothing_after_the_cut_is_in_the_prefix() -> None:
    whole = transcript(_session(40))
    (found,) = find_cases(whole, "s", RULE, _size)
    assert found.prefix.records == whole.records[: len(found.prefix.records)]
    assert found.prefix.sha256 != whole.sha256


def test_a_cut_parts_no_call_from_its_result() -> None:
    every = (
        case
        for share in range(30, 80)
        for case in find_cases(
            transcript(_session(40)), "s", CutRule(fractions=(share / 100,), least_middle_tokens=500), _size
        )
    )
    for found in every:
        assert found.prefix.messages[-1].role is Role.TOOL
        assert found.prefix.messages[found.middle[-1]].role is Role.TOOL


def test_a_summary_ends_a_segment_and_heads_the_next() -> None:
    whole = transcript([*_session(5), summary("so far"), *_session(3)])
    first, second = segments(whole)
    assert len(first.records) == 11
    assert second.messages[0].summary is not None


def test_no_future_reaches_across_a_compaction() -> None:
    whole = transcript([*_session(40), summary("so far"), *_session(40)])
    found = list(find_cases(whole, "s", RULE, _size))
    assert len(found) == 2
    assert found[0].future_events[-1].text == "done 39"
    assert found[1].head_events[0].text == "so far"


def test_records_after_a_later_boundary_count_as_if_it_were_not_there() -> None:
    superseded = [Message(role=m.role, parts=m.parts, superseded=True) for m in _session(40)]
    (found,) = find_cases(transcript(superseded), "s", RULE, _size)
    assert not any(message.superseded for message in found.prefix.messages)


def test_short_transcripts_are_cut_in_proportion() -> None:
    found = list(find_cases(transcript(_session(6)), "s", RULE, _size))
    assert found
    assert {case.protocol for case in found} == {CutProtocol.SHORT}


def test_a_transcript_too_short_for_any_cut_gives_none() -> None:
    assert not list(find_cases(transcript(_session(1)), "s", RULE, _size))
    assert not list(find_cases(transcript([]), "s", RULE, _size))


def test_the_future_is_bounded() -> None:
    rule = CutRule(fractions=(0.2,), tail_tokens=100, least_middle_tokens=300, most_future_events=25)
    (found,) = find_cases(transcript(_session(40)), "s", rule, _size)
    assert len(found.future_events) == 25
