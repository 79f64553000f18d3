"""Excerpts: what says most about a query, within the budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.archive.index import passages
from compactor_cli.archive.search import FRAME_TOKENS, Excerpt, excerpts
from compactor_cli.model.errors import Place
from compactor_cli.model.transcript import Message, Record, Role, Text, ToolResult, Transcript


def transcript(*texts: str, role: Role = Role.USER) -> Transcript:
    place = Place(path="x", line=1)
    records = tuple(Record(raw=b"{}", ending=b"\n", value={}, place=place) for _ in texts)
    messages = tuple(Message(role=role, parts=(Text(text=text),)) for text in texts)
    return Transcript(dialect="openai-chat", records=records, messages=messages)


def count(text: str) -> int:
    return len(text.split())


def test_the_best_come_first_into_the_budget_and_stand_in_the_order_of_the_transcript() -> None:
    conversation = transcript(
        "the lock is held by another run",
        "nothing here",
        "lock timeout: the lock file says lock",
        "a long text about other things and a lock " * 10,
    )
    found = excerpts(conversation, "Which lock file?", budget_tokens=7 + 2 * FRAME_TOKENS + 7, count=count)
    assert [item.record for item in found] == [0, 2]
    assert excerpts(conversation, "lock", budget_tokens=FRAME_TOKENS + 7, count=count)[0].record == 2


def test_chinese_is_found_and_what_shares_no_word_is_never_taken() -> None:
    conversation = transcript("我们使用令牌桶限流", "unrelated", "数据库迁移失败")
    assert [item.record for item in excerpts(conversation, "令牌桶怎么配置?", budget_tokens=100, count=count)] == [0]
    assert excerpts(conversation, "", budget_tokens=100, count=count) == ()
    assert excerpts(conversation, "absent", budget_tokens=100, count=count) == ()


def test_only_the_part_of_a_long_result_that_matters_is_taken_and_neighbours_are_joined() -> None:
    lines = [f"line {number} of the log, quite ordinary" for number in range(400)]
    lines[200] = "ZeroDivisionError in ledger.py"
    lines[201] = "ledger.py again"
    whole = "\n".join(lines)
    conversation = transcript("head", "middle")
    message = Message(role=Role.TOOL, parts=(ToolResult(id="1", text=whole),))
    conversation = Transcript(dialect="x", records=conversation.records, messages=(conversation.messages[0], message))
    (found,) = excerpts(conversation, "ledger.py", budget_tokens=200, count=count, passage_chars=60)
    assert found.record == 1
    assert found.text in whole
    assert "ZeroDivisionError in ledger.py\nledger.py again" in found.text


def test_bookkeeping_and_records_that_are_not_asked_for_stay_out() -> None:
    conversation = transcript("lock", "lock", "lock")
    assert [item.record for item in excerpts(conversation, "lock", budget_tokens=99, count=count, records=(0, 2))] == [
        0,
        2,
    ]
    assert excerpts(transcript("lock", role=Role.META), "lock", budget_tokens=99, count=count) == ()


@given(st.lists(st.sampled_from(["lock", "file a.py", "令牌", "other words"]), max_size=12), st.integers(0, 60))
def test_the_budget_always_holds_and_excerpts_are_verbatim(texts: list[str], budget_tokens: int) -> None:
    found = excerpts(transcript(*texts), "lock file 令牌", budget_tokens=budget_tokens, count=count)
    assert sum(count(item.text) + FRAME_TOKENS for item in found) <= budget_tokens or not found
    assert list(found) == sorted(found, key=lambda item: item.record)
    assert all(isinstance(item, Excerpt) and item.text in texts[item.record] for item in found)


@given(st.text(), st.integers(1, 50))
def test_passages_joined_are_the_text(text: str, most_chars: int) -> None:
    pieces = passages(text, most_chars)
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= most_chars for piece in pieces)


@pytest.mark.parametrize(("text", "pieces"), [("a\nb\nc\n", ["a\nb\n", "c\n"]), ("", []), ("aaaaaa", ["aaaa", "aa"])])
def test_passages_end_with_lines_where_they_can(text: str, pieces: list[str]) -> None:
    assert list(passages(text, 4)) == pieces
