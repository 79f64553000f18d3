"""LangChain: ``SummarizationMiddleware(model, trigger=…, trim_tokens_to_summarize=None, summarizer=summarizer())``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from langchain_core.messages import BaseMessage, messages_to_dict

from compactor_cli.api import Amount, make_digest


def summarizer(size: Amount = 0, *, focus: str = "") -> Callable[[Iterable[BaseMessage]], str]:
    """A function that summarises messages in at most ``size`` tokens (0: by what it covers), without a model."""

    def summarize(messages: Iterable[BaseMessage]) -> str:
        return make_digest(messages_to_dict(list(messages)), size=size, focus=focus).summary

    return summarize
