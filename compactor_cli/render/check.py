"""The promises of an output, checked on what is read back from it."""

from __future__ import annotations

from compactor_cli.group.exchanges import orphans
from compactor_cli.model.errors import InvariantError
from compactor_cli.model.plan import Mode, Plan
from compactor_cli.model.transcript import Message, Role, Transcript


def check_output(compacted: Transcript, plan: Plan, tokens_after: int) -> None:
    """Raises `InvariantError` unless every call has its results, and the whole is within the plan's target."""
    if orphans(_sent(compacted.messages, plan) if plan.mode is Mode.APPEND else compacted.messages):
        raise InvariantError("the output would hold a tool call without its result")
    if tokens_after > plan.target_tokens and not plan.over_target:
        raise InvariantError(f"the output would take {tokens_after} tokens, over its target {plan.target_tokens}")


def _sent(messages: tuple[Message, ...], plan: Plan) -> tuple[Message, ...]:
    """The messages of the source, those that the client does not send any more emptied.

    What was appended holds no call, and a call in flight is no orphan because of it.
    """
    source = messages[: plan.spans[-1].stop]
    return tuple(Message(role=Role.META) if message.superseded else message for message in source)
