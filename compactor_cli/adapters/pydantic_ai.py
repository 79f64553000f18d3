"""Pydantic AI: ``Agent(model, capabilities=[ProcessHistory(history_processor("100k"))])``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from compactor_cli.adapters import StableCompactor
from compactor_cli.api import Amount, Options


def history_processor(
    limit: Amount, *, share: float = 0.5, **options: Unpack[Options]
) -> Callable[[list[ModelMessage]], list[ModelMessage]]:
    """A processor that compacts histories above ``limit`` tokens to ``share`` of it; kept messages are those given."""
    compactor = StableCompactor(limit, share=share, **options)

    def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        dumped = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
        given = {id(value): message for value, message in zip(dumped, messages, strict=True)}
        sent = compactor(dumped)
        if all(id(value) in given for value in sent):
            return [given[id(value)] for value in sent]
        loaded = ModelMessagesTypeAdapter.validate_python(sent)
        return [given.get(id(value), message) for value, message in zip(sent, loaded, strict=True)]

    return process
