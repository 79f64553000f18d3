"""What OpenHands' actions and observations say, with the places of their texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compactor_cli.formats.contents import arguments, string
from compactor_cli.formats.located_parts import LocatedPart, Place, at, result_piece
from compactor_cli.model.transcript import Media, Text, ToolCall

Event = Mapping[str, Any]

# Actions and observations of the client itself: no model is shown them.
ACTIONS_IGNORED = frozenset({"change_agent_state", "null", "recall", "pause", "resume", "stop", "add_task", "loop"})
OBSERVATIONS_IGNORED = frozenset({"agent_state_changed", "null", "recall", "condense", "user_rejected_pending"})
# Arguments that are about the call, and not of it.
_IGNORED_ARGUMENTS = frozenset(
    {"thought", "hidden", "blocking", "confirmation_state", "kernel_init_code", "keep_prompt", "wait_for_response"}
    | {"translated_ipython_code", "impl_source", "security_risk", "is_static", "include_extra", "cwd"}
)


def is_action(event: Event) -> bool:
    """Whether something was done or said; else it is an observation."""
    return isinstance(event.get("action"), str) and isinstance(event.get("args"), dict)


def forgotten(event: Event) -> Iterator[Any]:
    """The numbers of the events that a condensation left out, its own aside."""
    args = event.get("args")
    if event.get("action") != "condensation" or not isinstance(args, dict):
        return
    listed = args.get("forgotten_event_ids")
    yield from (number for number in listed if isinstance(number, int)) if isinstance(listed, list) else ()
    start, stop = args.get("forgotten_events_start_id"), args.get("forgotten_events_end_id")
    if isinstance(start, int) and isinstance(stop, int):
        own = event.get("id")
        yield from (number for number in range(start, min(stop, start + 1_000_000) + 1) if number != own)


def action_pieces(event: Event, place: Place) -> list[LocatedPart]:
    """What the user or the agent said, and the call it made."""
    kind, args = event["action"], event["args"]
    at_args = (*place, "args")
    if kind in ("message", "system"):
        return [*_text(args, at_args, "content"), *_images(args)]
    if kind == "condensation":
        return _text(args, at_args, "summary")
    if kind in ("finish", "reject"):
        return (
            _text(args, at_args, "final_thought") or _text(args, at_args, "thought") or _text(event, place, "message")
        )
    return [*_text(args, at_args, "thought"), *_call(event, place)]


def _text(holder: Mapping[str, Any], place: Place, key: str) -> list[LocatedPart]:
    text = holder.get(key)
    return [LocatedPart(Text(text=text), ((*place, key),))] if isinstance(text, str) and text else []


def _images(args: Mapping[str, Any]) -> list[LocatedPart]:
    urls = args.get("image_urls")
    listed = urls if isinstance(urls, list) else []
    return [LocatedPart(Media(kind="image", size_bytes=len(url))) for url in listed if isinstance(url, str)]


def _call(event: Event, place: Place) -> list[LocatedPart]:
    """The call as the model wrote it, where the event tells; else by the action's own arguments."""
    metadata = event.get("tool_call_metadata")
    call_id = string(at(metadata, ("tool_call_id",)))
    name = string(at(metadata, ("function_name",))) or string(event["action"])
    message = ("model_response", "choices", 0, "message", "tool_calls")
    calls = at(metadata, message)
    for i, call in enumerate(calls if isinstance(calls, list) else ()):
        written = at(call, ("function", "arguments"))
        if call_id and at(call, ("id",)) == call_id and isinstance(written, (str, dict)):
            where = (*place, "tool_call_metadata", *message, i, "function", "arguments")
            return [LocatedPart(ToolCall(id=call_id, name=name, arguments=arguments(written)), (where,))]
    own = {key: value for key, value in event["args"].items() if key not in _IGNORED_ARGUMENTS and value is not None}
    return [LocatedPart(ToolCall(id=call_id or _own_id(event.get("id")), name=name, arguments=own))]


def _own_id(number: Any) -> str:
    """An id for a call without one: the number of its event, which the observation names as its cause."""
    return f"event-{number}" if isinstance(number, int) else ""


def observation_piece(event: Event, place: Place) -> list[LocatedPart]:
    """A tool's answer; an error that answers no call is a text."""
    metadata = event.get("tool_call_metadata")
    cause = event.get("cause")
    kind = event.get("observation")
    if not isinstance(cause, int) and not isinstance(metadata, dict):
        return _text(event, place, "content")
    call_id = string(at(metadata, ("tool_call_id",))) or _own_id(cause)
    code = at(event, ("extras", "metadata", "exit_code"))
    code = at(event, ("extras", "exit_code")) if code is None else code
    failed = kind == "error" or (isinstance(code, int) and code > 0)
    name = string(at(metadata, ("function_name",)))
    return [result_piece(event.get("content"), (*place, "content"), call_id=call_id, name=name, is_error=failed)]
