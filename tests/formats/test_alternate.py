from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from compaction import LONG, compacted
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from opening import open_bytes, open_one

from compactor_cli.formats.chat import BRIDGE, alternating
from compactor_cli.formats.registry import Insertion, InsertionPoint
from compactor_cli.model.settings import Keep, Settings, Size
from compactor_cli.model.transcript import Role, Transcript

SUMMARY = Insertion(role=Role.USER, text="S", is_summary=True)
ACK = Insertion(role=Role.ASSISTANT, text="A")


def sharegpt(roles: str) -> Any:
    names = {"s": "system", "u": "human", "a": "gpt", "o": "observation", "c": "function_call"}
    call = '{"name": "f", "arguments": {}}'
    turns = [{"from": names[r], "value": call if r == "c" else f"{LONG} {i}"} for i, r in enumerate(roles)]
    return {"conversations": turns}


def sides(transcript: Transcript) -> list[Role]:
    roles = [message.role for message in transcript.messages if message.role is not Role.SYSTEM]
    return [Role.USER if role is Role.TOOL else role for role in roles]


@pytest.mark.parametrize(
    ("roles", "start", "stop", "insertions", "expected"),
    [
        ("uaua", 2, 3, [SUMMARY], "S"),
        ("uauaua", 2, 4, [SUMMARY], f"S {BRIDGE}"),
        ("uaua", 1, 2, [SUMMARY], f"{BRIDGE} S {BRIDGE}"),
        ("suaua", 1, 4, [SUMMARY], "S"),
        ("uauaua", 2, 4, [SUMMARY, ACK], "S A"),
        ("uaua", 2, 3, [SUMMARY, ACK], "S"),
        ("uuaa", 1, 3, [SUMMARY, ACK], "S A"),
        ("ucoaua", 2, 4, [SUMMARY], f"S {BRIDGE}"),
    ],
)
def test_where_a_short_answer_stands(
    roles: str, start: int, stop: int, insertions: list[Insertion], expected: str
) -> None:
    transcript = open_one(sharegpt(roles))
    cut = InsertionPoint(before=tuple(range(start)), after=tuple(range(stop, len(roles))))
    assert " ".join(item.text for item in alternating(transcript, cut, insertions)) == expected


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    turns=st.integers(4, 12),
    first=st.sampled_from(("", "s")),
    has_calls=st.booleans(),
    head=st.integers(0, 2),
    acknowledgement=st.sampled_from(("", "Good.")),
    target=st.integers(1_000, 2_500),
)
def test_a_compacted_row_alternates(
    turns: int, first: str, has_calls: bool, head: int, acknowledgement: str, target: int
) -> None:
    (transcript,) = open_bytes(_written(sharegpt(first + ("ucoa" if has_calls else "ua") * turns)))
    settings = Settings(
        target=Size(tokens=target), keep=Keep(head_turns=head, tail_tokens=800), acknowledgement=acknowledgement
    )
    done = compacted(transcript, settings)
    (again,) = open_bytes(done.output)
    found = sides(again)
    assert all(one is not other for one, other in pairwise(found))
    assert done.report.tokens_after <= target or done.report.over_target
    assert compacted(again, settings).output == done.output


def bedrock(i: int) -> Any:
    return {"role": ("user", "assistant")[i % 2], "content": [{"text": f"{LONG} {i}"}]}


def gemini(i: int) -> Any:
    return {"role": ("user", "model")[i % 2], "parts": [{"text": f"{LONG} {i}"}]}


def anthropic(i: int) -> Any:
    return {"role": ("user", "assistant")[i % 2], "content": f"{LONG} {i}"}


def cline(i: int) -> Any:
    details = [{"type": "text", "text": "<environment_details>\nnoon\n</environment_details>"}] if i % 2 == 0 else []
    return {"role": ("user", "assistant")[i % 2], "content": [{"type": "text", "text": f"{LONG} {i}"}, *details]}


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("bedrock", {"messages": [bedrock(i) for i in range(24)], "modelId": "m"}),
        ("gemini-contents", {"contents": [gemini(i) for i in range(24)]}),
        ("anthropic", {"messages": [anthropic(i) for i in range(24)], "system": "Be brief."}),
        ("cline", [cline(i) for i in range(24)]),
    ],
)
def test_what_is_sent_to_an_api_of_turns_alternates(name: str, row: Any) -> None:
    (transcript,) = open_bytes(_written(row))
    assert transcript.dialect == name
    for target in range(1_000, 3_000, 200):
        (again,) = open_bytes(compacted(transcript, Settings(target=Size(tokens=target))).output)
        assert all(one is not other for one, other in pairwise(sides(again)))


def _written(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"
