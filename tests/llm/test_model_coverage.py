"""Every covered record is in exactly one leaf prompt, whatever the size."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from conversation import count
from llm_server.client import LlmServer
from model_cases import asked, long_talk, request, summariser

from compactor_cli.model.summary import Source


@pytest.mark.parametrize(("turns", "chars"), [(16, 1_200), (40, 6_000), (250, 3_000), (400, 3_000)])
def test_each_record_is_in_exactly_one_leaf(llm_server: LlmServer, turns: int, chars: int) -> None:
    transcript = long_talk(turns, chars)
    wanted = request(transcript, 6_000)
    with summariser(llm_server, "well", rule=None) as one:
        answer = one.summarise(wanted)
    # Every part names the first and the newest request in front of its records.
    leaves = [text.split("<<transcript>>", 1)[1] for text in asked(llm_server) if "<<transcript>>" in text]
    seen = Counter(mark for text in leaves for mark in set(re.findall(r"mark_\d+_end", text)))
    assert seen == Counter({f"mark_{n}_end": 1 for n in range(4 * turns)})
    assert answer.summary.source is Source.MODEL
    assert count(wanted.render(answer.summary)) <= 6_000
