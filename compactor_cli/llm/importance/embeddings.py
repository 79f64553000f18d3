"""Asked: embeddings by a model through the line to the models, redacted, cached and within the limits of the run."""

from __future__ import annotations

import asyncio
import base64
import json
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from compactor_cli.llm.failures import Broken
from compactor_cli.llm.importance.meaning import Embed, Vector
from compactor_cli.llm.keys import provider_of
from compactor_cli.llm.model_calls import Call, ChatMessage, Reply, Speaker, Wanted

if TYPE_CHECKING:
    from compactor_cli.llm.event_loop import BackgroundEventLoop
    from compactor_cli.llm.model_client import ModelClient
    from compactor_cli.llm.prices import Price
    from compactor_cli.llm.redact import Redactor

# Texts a request: at about 1,000 tokens each far below what providers take at once.
BATCH = 64


def asked(
    line: ModelClient,
    loop: BackgroundEventLoop,
    model: str,
    *,
    api_base: str = "",
    price: Price | None = None,
    new_redactor: Callable[[], Redactor] | None = None,
) -> Embed:
    """A function from texts to the vectors that this model gives them."""
    name = f"openai/{model}" if api_base and not provider_of(model) else model

    def embed(texts: Sequence[str]) -> Sequence[Vector]:
        redactor = new_redactor() if new_redactor else None
        clean = redactor.redact_all(list(texts)) if redactor else list(texts)
        starts = range(0, len(clean), BATCH)
        calls = [replace(_call(name, api_base, clean[start : start + BATCH]), price=price) for start in starts]
        replies = loop.run(_all(line, calls))
        return [vector for reply, call in zip(replies, calls, strict=True) for vector in _vectors(reply, call)]

    return embed


def _call(model: str, api_base: str, texts: Sequence[str]) -> Call:
    messages = tuple(ChatMessage(speaker=Speaker.USER, text=text) for text in texts)
    return Call(model=model, messages=messages, max_tokens=0, api_base=api_base, wanted=Wanted.VECTORS)


async def _all(line: ModelClient, calls: Sequence[Call]) -> Sequence[Reply]:
    return await asyncio.gather(*(line.ask(call) for call in calls))


def _vectors(reply: Reply, call: Call) -> list[Vector]:
    found = [array("f", base64.b64decode(text)) for text in json.loads(reply.text)]
    if len(found) != len(call.messages) or len({len(vector) for vector in found}) > 1:
        raise Broken("the reply does not hold a vector of one length for each text")
    return list(found)
