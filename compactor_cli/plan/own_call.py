"""Own call: whether a transcript is itself the request for a summary. A compaction never triggers a compaction.

Known are our own prompts, by the marks around their material, and Claude Code's, by its first sentence (seen in
2.1: the request is the newest message of the user; a subagent of its own has nothing but it).
"""

from __future__ import annotations

from collections.abc import Sequence

from compactor_cli.model.transcript import Message, Role

# Material of a prompt of ours stands between such lines, in every language of the prompt.
_OURS = (("\n<<transcript>>\n", "\n<<end of transcript>>"), ("\n<<part 1>>\n", "\n<<end of parts>>"))
_THEIRS = (
    "Your task is to create a detailed summary of the conversation so far",
    "Your task is to create a detailed summary of the RECENT portion of the conversation",
)
# Before the sentence stands at most a warning not to call tools.
_SEARCHED_CHARS = 1_000


def is_summary_call(messages: Sequence[Message]) -> bool:
    """Whether the newest words of the user ask for a summary of a conversation, as a compaction does."""
    for message in reversed(messages):
        if message.role is not Role.USER or message.results or message.superseded or not message.text.strip():
            continue
        return message.summary is None and _asks(message.text)
    return False


def _asks(text: str) -> bool:
    opening = text[:_SEARCHED_CHARS]
    return any(said in opening for said in _THEIRS) or any(
        first in f"\n{text}" and last in text for first, last in _OURS
    )
