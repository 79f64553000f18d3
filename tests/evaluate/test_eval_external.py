from __future__ import annotations

import shlex
import sys

import pytest
from eval_builders import assistant, case, count_words, user

from compactor_cli.evaluate.methods import Baseline, as_jsonl, external_baseline, filter_baseline
from compactor_cli.model.errors import UsageError

PROBED = case((assistant("middle words"),), head=(user("head words"),), tail=(assistant("tail words"),))


def _python(code: str) -> Baseline:
    return external_baseline(shlex.join([sys.executable, "-c", code]))


def test_a_program_gets_the_prefix_and_the_budget() -> None:
    method = _python("import os, sys; print('lines', len(sys.stdin.readlines()), os.environ['COMPACT_BUDGET_TOKENS'])")
    assert method.prepare(PROBED, count_words)(7).split() == ["lines", "3", "7"]


def test_its_text_is_cut_to_the_budget() -> None:
    assert count_words(_python("print('word ' * 100)").prepare(PROBED, count_words)(7)) == 7


def test_what_head_and_tail_say_is_not_its_summary() -> None:
    said = ["head words", "a short summary", "tail words"]
    rows = [f'{{"role": "user", "content": "{text}"}}' for text in said]
    method = _python(f"print({chr(10).join(rows)!r})")
    assert method.prepare(PROBED, count_words)(50) == "a short summary"


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (_python("import sys; sys.exit('broken on purpose')"), "broken on purpose"),
        (external_baseline("no-such-program-anywhere"), "does not run"),
        (external_baseline("'unclosed"), "does not run"),
    ],
)
def test_a_program_that_fails_is_a_usage_error(method: Baseline, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        method.prepare(PROBED, count_words)(10)
    assert said in str(caught.value)


def test_the_prefix_is_written_as_it_was_read() -> None:
    assert as_jsonl(PROBED.prefix) == PROBED.prefix.source()


def test_a_function_may_compact_too() -> None:
    output = b'{"role": "user", "content": "head words"}\n{"role": "user", "content": "what was done"}\n'
    method = filter_baseline("preset:mine", lambda case, budget: output)
    assert method.prepare(PROBED, count_words)(2).split() == ["what", "was"]
