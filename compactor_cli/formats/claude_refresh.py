"""What a rewritten Claude Code session must not keep: copies of removed messages, and token counters that make
the client compact again at once.

Observed with Claude Code 2.1.329: the client goes by the ``usage`` of the last answer; a counter of zero, or a
missing one, sends it to the answer before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats.claude_tree import Tree, Value, message_id
from compactor_cli.formats.contents import string

_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
# Lines next to the tree that repeat a prompt.
_PROMPTS = ("queue-operation", "last-prompt")


def outdated(tree: Tree) -> frozenset[int]:
    """Requests as they were sent, which repeat the whole conversation, and prompts that were answered long ago."""
    newest = -1 if tree.newest is None else tree.newest
    kinds = ((i, string(value.get("type"))) for i, value in enumerate(tree.values))
    return frozenset(i for i, kind in kinds if kind.startswith("api-request") or (kind in _PROMPTS and i < newest))


def counters(tree: Tree, staying: Sequence[int]) -> dict[int, int]:
    """The lines of the last answer that stays, with the size that their ``usage`` tells."""
    answers = [i for i in staying if i in tree.is_main and _usage(tree.values[i])]
    if not answers:
        return {}
    last = message_id(tree.values[answers[-1]])
    lines = [i for i in answers if i == answers[-1] or (last and message_id(tree.values[i]) == last)]
    return {i: size_tokens(_usage(tree.values[i])) for i in lines}


def recounted(value: Value, size_tokens: int) -> dict[str, Any]:
    """The record with another input size in its ``usage``."""
    old = _usage(value)
    usage = {**old, **{key: 0 for key in _INPUT if key in old}, "input_tokens": size_tokens}
    if usage.get("iterations"):
        usage["iterations"] = []
    return {**value, "message": {**value["message"], "usage": usage}}


def size_tokens(usage: Mapping[str, Any]) -> int:
    """The tokens of a request, as the provider counted them."""
    return sum(number for key in (*_INPUT, "output_tokens") if isinstance(number := usage.get(key), int))


def _usage(value: Value) -> Mapping[str, Any]:
    message = value.get("message")
    usage = message.get("usage") if isinstance(message, dict) else None
    return usage if isinstance(usage, dict) else {}
