"""A model summariser against the loopback server, and transcripts made for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from conversation import MARKER, WORK, answer, call, conversation, count, says, user
from llm_server.client import LlmServer

from compactor_cli.llm import llm
from compactor_cli.llm.model import ModelOptions, ModelSummariser
from compactor_cli.llm.model_client import BackgroundEventLoop, Fallback, ModelClient, ReplyCache, Retries
from compactor_cli.llm.redact import Redactor
from compactor_cli.model.summary import Request
from compactor_cli.model.transcript import Message, Transcript
from compactor_cli.render.template import load_template, render

FAST = Retries(attempts=3, base_seconds=0.01, most_seconds=0.02)
__all__ = ["WORK", "asked", "long_talk", "request", "summariser"]


@contextmanager
def summariser(
    server: LlmServer,
    model: str,
    *,
    fallback: str = "",
    cache: Path | None = None,
    client: Any = None,
    **run_options: Any,
) -> Iterator[ModelSummariser]:
    """One that asks ``openai/MODEL`` of this server."""
    other = Fallback(model=f"openai/{fallback}", api_base=server.openai) if fallback else None
    client = client or ModelClient(retries=FAST, fallback=other, cache=ReplyCache(cache) if cache else None)
    model_options = ModelOptions(model=f"openai/{model}", api_base=server.openai, **run_options)
    with closing(BackgroundEventLoop(llm.close)) as loop:
        yield ModelSummariser(client, loop, model_options, new_redactor=Redactor)


def request(transcript: Transcript, budget_tokens: int = 2_000, **more: Any) -> Request:
    renderer = partial(render, template=load_template(more.pop("template", "hermes")), marker=MARKER)
    covered = tuple(more.pop("covered", range(len(transcript.records))))
    fields = {"kept": (), "render": renderer, "count": count, **more}
    return Request(transcript=transcript, covered=covered, budget_tokens=budget_tokens, **fields)


def asked(server: LlmServer) -> list[str]:
    """The user messages that were sent, in order."""
    return ["\n".join(m["content"] for m in e["body"]["messages"] if m["role"] == "user") for e in server.requests()]


def long_talk(turns: int, chars: int = 1_200) -> Transcript:
    """Turns with a call each; record n says ``mark_n_end`` once."""
    messages: list[Message] = []
    for turn in range(turns):
        at = len(messages)
        path = f"src/module_{turn}/handler_{turn}.py"
        filler = f"The function handle_{turn} in {path} returns code {turn + 1000}. " * (chars // 60)
        messages += [
            user(f"Please change {path} so that handle_{turn} works. mark_{at}_end"),
            call("Read", f"c{turn}", file_path=path, note=f"mark_{at + 1}_end"),
            answer(f"mark_{at + 2}_end {filler}", f"c{turn}"),
            says(f"I changed handle_{turn} in {path}. mark_{at + 3}_end {filler}"),
        ]
    return conversation(*messages)
