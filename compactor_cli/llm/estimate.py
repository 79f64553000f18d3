"""Estimate: what a summary would take of a model, before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compactor_cli.llm import prompts, tree
from compactor_cli.llm.model_calls import Call
from compactor_cli.llm.prompts import Stage
from compactor_cli.llm.writer import REPLY_RATIO, SummaryTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a summary would take at least: without retries, each reply as long as asked for."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: Estimate) -> Estimate:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Estimate(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )


def estimated(task: SummaryTask, leaves: Sequence[Call], merge: Call) -> Estimate:
    """The leaves as they are, and the levels above them as if every reply had the length asked for."""
    total = Estimate()
    sizes: list[int] = []
    for call in leaves:
        sent = sum(task.count(message.text) for message in call.messages)
        sizes.append(int(call.max_tokens / REPLY_RATIO))
        total += _priced(call, sent, sizes[-1])
    fixed = task.count(prompts.rules(task.wording, Stage.MERGE)) + task.count(task.previous)
    room = tree.rooms(merge.model, task.budget_tokens, fixed).leaf_tokens
    while len(sizes) > 1:
        groups = tree.merge_groups(sizes, room)
        above: list[int] = []
        for start, stop in groups:
            above.append(sizes[start] if stop - start == 1 else task.budget_tokens)
            if stop - start > 1:
                total += _priced(merge, sum(sizes[start:stop]) + fixed, above[-1])
        sizes = above
    return total


def _priced(call: Call, input_tokens: int, output_tokens: int) -> Estimate:
    price = call.known_price
    cost_usd = price.cost_usd(input_tokens=input_tokens, output_tokens=output_tokens) if price else None
    return Estimate(requests=1, input_tokens=input_tokens, output_tokens=output_tokens, cost_usd=cost_usd)
