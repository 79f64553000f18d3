"""The side of ``presets.py`` that runs in a peer's own environment: the package's own function on given transcripts.

    python preset_side.py PEER IN OUT

IN: a transcript a line, ``{"messages": […], "limit": N}``. OUT: a line each, ``{"kept": {index: text or null}}`` (null:
as it was), or ``{"error": …}`` where the package refuses the transcript.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Chat = list[dict[str, Any]]
Kept = dict[int, "str | None"]


def kimi(messages: Chat, limit: int) -> Kept:
    from kimi_cli.soul.compaction import SimpleCompaction
    from kosong.message import Message

    history = [Message(role=message["role"], content=message["content"] or "") for message in messages]
    kept = SimpleCompaction().prepare(history).to_preserve
    return dict.fromkeys(range(len(history) - len(kept), len(history)))


def smolagents(messages: Chat, limit: int) -> Kept:
    from smolagents.utils import truncate_content

    texts = {n: message["content"] or "" for n, message in enumerate(messages)}
    return {n: None if (cut := truncate_content(text)) == text else cut for n, text in texts.items()}


def qwen(messages: Chat, limit: int) -> Kept:
    """Its own walk, with the tokens that we count: a quarter of the characters, 4 for the message, calls included."""
    import qwen_agent.llm.base as base
    from qwen_agent.llm.schema import Message

    class Tokens:
        def count_tokens(self, text: str) -> int:
            return 4 + sum(-(-len(part) // 4) for part in text.split("\0"))

        def truncate(self, text: str, max_token: int, start_token: int = 0, keep_both_sides: bool = False) -> str:
            chars = max(4 * (max_token - 4), 0)
            half = chars // 2
            return f"{text[:half]}{text[len(text) - half :]}" if keep_both_sides else text[:chars]

    texts: dict[str, str] = {}
    history = []
    for message in messages:
        called = [part for call in message.get("tool_calls", ()) for part in call["function"].values()]
        role = {"tool": "function"}.get(message["role"], message["role"])
        made = Message(role=role, content=message["content"] or "", name=str(len(history)))
        texts[made.name] = "\0".join([message["content"] or "", *called])
        history.append(made)
    base.tokenizer = Tokens()
    base.extract_text_from_message = lambda message, add_upload_info: texts.get(message.name, message.content)
    kept: Kept = {}
    left = list(enumerate(history))
    for message in reversed(base._truncate_input_messages_roughly(history, limit)):
        # A message that was cut is a new one, without a name: the newest before it that begins as it does.
        while left:
            number, source = left.pop()
            if message.name == source.name or (not message.name and _cut_from(source.content, message.content)):
                kept[number] = None if message.name else message.content
                break
    return kept


def _cut_from(source: str, text: str) -> bool:
    return source.startswith((text, text[: len(text) // 2]))


def hermes(messages: Chat, limit: int) -> Kept:
    from agent.context_compressor import ContextCompressor

    engine = ContextCompressor("peer", config_context_length=200_000, quiet_mode=True)
    engine.tail_token_budget = 16_000
    engine._generate_summary = lambda *args, **kwargs: "SUMMARY"
    made = engine.compress([{**message, "_number": n} for n, message in enumerate(messages)], force=True)
    kept = {message["_number"]: message["content"] for message in made if "_number" in message}
    return {n: None if text == messages[n]["content"] else str(text) for n, text in kept.items()}


PEERS: dict[str, Callable[[Chat, int], Kept]] = {
    "kimi": kimi,
    "smolagents": smolagents,
    "qwen-agent": qwen,
    "hermes": hermes,
}


def main(peer: str, source: str, target: str) -> None:
    with Path(source).open(encoding="utf-8") as lines, Path(target).open("w", encoding="utf-8") as out:
        for line in lines:
            task = json.loads(line)
            try:
                answer: dict[str, Any] = {"kept": PEERS[peer](task["messages"], task["limit"])}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"[:300]}
            out.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
