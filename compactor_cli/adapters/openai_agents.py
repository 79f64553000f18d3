"""OpenAI Agents: ``RunConfig(call_model_input_filter=input_filter("100k"))``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from agents.run_config import CallModelData, ModelInputData

from compactor_cli.adapters import StableCompactor
from compactor_cli.api import Amount, Options


def input_filter(
    limit: Amount, *, share: float = 0.5, **options: Unpack[Options]
) -> Callable[[CallModelData[Any]], ModelInputData]:
    """A filter that compacts inputs above ``limit`` tokens to ``share`` of the limit; the session stays as it is."""
    compactor = StableCompactor(limit, share=share, **options)

    def filtered(data: CallModelData[Any]) -> ModelInputData:
        given = data.model_data
        return ModelInputData(input=compactor(list(given.input)), instructions=given.instructions)

    return filtered
