"""OpenHands events, in the older shape and in that of the software-agent SDK.

Older shape: actions and observations, linked by ``cause``, in an array of events (a trajectory) or in the ``history``
of an evaluation's row, where old rows have ``[action, observation]`` pairs. In rows of the resolver of 2024 events are
flat, without numbers, times and speakers, and are linked by their order. A condensation names the events that are no
longer shown; a summary is written as a condensation.

SDK: each event is an object with a ``kind``, in an array, one a line, or one a file. Calls and results share
``tool_call_id``; calls of one answer share ``llm_response_id``. A ``Condensation`` names the events that are no longer
shown and has the summary in their place; a summary is written as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor_cli.formats import located
from compactor_cli.formats.client_signs import marked_summary, summary_of
from compactor_cli.formats.contents import ROLES, arguments, dumped, listed, object_of, string
from compactor_cli.formats.located import LocatedPart, RecordDialect, Value, at, like_keys, parts_of, time_near
from compactor_cli.formats.registry import RUN, Capabilities, Insertion, InsertionPoint, JsonPath, of_words
from compactor_cli.model.transcript import Message, Record, Role, ToolCall, Transcript

# Actions and observations of the client itself, which are not shown to a model.
_ACTIONS_IGNORED = frozenset({"change_agent_state", "null", "recall", "pause", "resume", "stop", "add_task", "loop"})
_OBSERVATIONS_IGNORED = frozenset({"agent_state_changed", "null", "recall", "condense", "user_rejected_pending"})
# Keys among the arguments that describe the call and are not part of it.
_IGNORED_ARGUMENTS = frozenset(
    {"thought", "hidden", "blocking", "confirmation_state", "kernel_init_code", "keep_prompt", "wait_for_response"}
    | {"translated_ipython_code", "impl_source", "security_risk", "is_static", "include_extra", "cwd"}
)


# Keys by which a flat action is recognised (its arguments stand in the event itself).
_FLAT_KEYS = frozenset({"thought", "wait_for_response", "is_confirmed", "action_risk", "images_urls"})
# Those of them that no other program has next to an action.
_FLAT_OWN = _FLAT_KEYS - {"thought"}
# Keys by which a flat observation is recognised, and keys of flat events that are not arguments.
_FLAT_SEEN = frozenset({"command", "command_id", "exit_code", "code", "path", "url", "outputs", "success"})
_FLAT_MARKS = frozenset({"action", "action_risk", "is_confirmed", "content", "outputs"})


def _is_flat(event: Value) -> bool:
    if not {"args", "extras", "role", "kind"}.isdisjoint(event):
        return False
    if isinstance(event.get("action"), str):
        return "observation" not in event and not _FLAT_KEYS.isdisjoint(event)
    is_seen = isinstance(event.get("observation"), str) and isinstance(event.get("content"), str)
    return is_seen and not _FLAT_SEEN.isdisjoint(event)


def _is_action(event: Value) -> bool:
    return isinstance(event.get("action"), str) and (isinstance(event.get("args"), dict) or _is_flat(event))


def _text(holder: Mapping[str, Any], place: JsonPath, key: str) -> list[LocatedPart]:
    text = holder.get(key)
    return [located.text(text, (*place, key))] if isinstance(text, str) and text else []


def _call(event: Value, place: JsonPath) -> LocatedPart:
    """The call as the model wrote it, if the event holds that; else with the arguments of the action."""
    metadata = event.get("tool_call_metadata")
    call_id = string(at(metadata, ("tool_call_id",)))
    name = string(at(metadata, ("function_name",))) or string(event["action"])
    message = ("model_response", "choices", 0, "message", "tool_calls")
    for i, call in enumerate(listed(at(metadata, message))):
        written = at(call, ("function", "arguments"))
        if call_id and at(call, ("id",)) == call_id and isinstance(written, (str, dict)):
            where = (*place, "tool_call_metadata", *message, i, "function", "arguments")
            return LocatedPart(ToolCall(id=call_id, name=name, arguments=arguments(written)), (where,))
    given = event.get("args", {key: value for key, value in event.items() if key not in _FLAT_MARKS})
    own = {key: value for key, value in given.items() if key not in _IGNORED_ARGUMENTS and value is not None}
    return LocatedPart(ToolCall(id=call_id or _own_id(event.get("id")), name=name, arguments=own))


def _own_id(number: Any) -> str:
    """An id for a call without one, from the number of its event, which the observation names as its cause."""
    return f"event-{number}" if isinstance(number, int) else ""


def _event_pieces(event: Value, place: JsonPath) -> list[LocatedPart]:
    """The parts of an event: the words and the call of an action, or a tool's answer; none for bookkeeping."""
    if _role(event) is Role.META:
        return []
    if not _is_action(event):
        metadata, cause = event.get("tool_call_metadata"), event.get("cause")
        is_flat = "extras" not in event
        if not isinstance(cause, int) and not isinstance(metadata, dict) and not is_flat:
            # An error that is not the answer to a call.
            return _text(event, place, "content")
        call_id, name = string(at(metadata, ("tool_call_id",))) or _own_id(cause), at(metadata, ("function_name",))
        code = at(event, ("extras", "metadata", "exit_code"))
        code = at(event, ("exit_code",) if is_flat else ("extras", "exit_code")) if code is None else code
        failed = event.get("observation") == "error" or (isinstance(code, int) and code > 0)
        return [located.result(event.get("content"), (*place, "content"), call_id=call_id, name=name, is_error=failed)]
    kind, args, inside = event["action"], event.get("args", event), (*place, "args") if "args" in event else place
    if kind in ("message", "system"):
        urls = (url for url in listed(args.get("image_urls")) if isinstance(url, str))
        return [*_text(args, inside, "content"), *(located.media("image", url) for url in urls)]
    if kind == "condensation":
        return _text(args, inside, "summary")
    if kind in ("finish", "reject"):
        return _text(args, inside, "final_thought") or _text(args, inside, "thought") or _text(event, place, "message")
    return [*_text(args, inside, "thought"), _call(event, place)]


_NO_OBSERVATION = {"message": "No observation", "observation": "null", "content": "", "extras": {}}


class OpenHands(RecordDialect):
    """The dialect of OpenHands' event streams."""

    name = "openhands"
    title = "OpenHands events"
    holds = RUN | Capabilities.IDS | Capabilities.TIMES | Capabilities.SUMMARIES | Capabilities.ERRORS
    paths = (("history",), ("trajectory",), ("events",))
    models = tuple((*which, "tool_call_metadata", "model_response", "model") for which in ((), (0,), (1,)))
    row_models = (("metadata", "llm_config", "model"), ("metadata", "model_name"))

    def record_score(self, value: Any) -> int:
        """3 for an event or a pair of events; 2 for a flat action with a key that only this program writes."""
        if isinstance(value, dict) and _is_flat(value):
            return 2 * ("action" in value and not _FLAT_OWN.isdisjoint(value))
        return 3 if _is_event(value) or _is_pair(value) else 0

    def score(self, value: Any) -> int:
        """As inherited, and 3 for a pair, which is an array."""
        return 3 if _is_pair(value) else super().score(value)

    def _leads(self, elements: Any) -> bool:
        return self.record_score(next((one for one in listed(elements) if isinstance(one, (dict, list))), None)) > 0

    def starts(self, value: Any) -> bool:
        """Whether this is the event with number 0."""
        return _is_event(value) and not _is_flat(value) and value.get("id") == 0 and type(value["id"]) is int

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; those that a condensation names as forgotten are ``superseded``."""
        gone: set[int] = set()
        for event in (event for record in records for event in _events(record.value)):
            args = event.get("args")
            if event.get("action") != "condensation" or not isinstance(args, dict):
                continue
            gone.update(number for number in listed(args.get("forgotten_event_ids")) if isinstance(number, int))
            start, stop = args.get("forgotten_events_start_id"), args.get("forgotten_events_end_id")
            if isinstance(start, int) and isinstance(stop, int):
                # The condensation's own number may lie in the range, but it is not forgotten.
                own = event.get("id")
                gone.update(number for number in range(start, min(stop, start + 1_000_000) + 1) if number != own)
        return tuple(_message(record.value, gone) for record in records)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """A condensation in place of the removed events, and messages, with the numbers of removed events.

        Flat events and pairs have no condensations: there the summary is a message too.
        """
        values, kept, count = [record.value for record in transcript.records], cut.kept, len(insertions)
        events = [(i, event) for i, value in enumerate(values) for event in _events(value)]
        known = [(i, event["id"]) for i, event in events if isinstance(event.get("id"), int)]
        removed = [number for i, number in known if i not in kept]
        free = max((number for _, number in known), default=-1) + 1
        numbers = (*removed[:count], *range(free, free + count - len(removed[:count])))
        has_pairs, time = any(map(_is_pair, values)), time_near(transcript, cut)
        like = next((event for _, event in events if _is_action(event)), {})
        is_flat = bool(like) and "args" not in like
        written: list[Any] = []
        for item, number in zip(insertions, numbers, strict=True):
            if item.is_summary and not has_pairs and not is_flat:
                forgotten = removed[count:]
                args: dict[str, Any] = {"forgotten_event_ids": forgotten}
                if forgotten and forgotten == list(range(forgotten[0], forgotten[-1] + 1)):
                    args = {"forgotten_events_start_id": forgotten[0], "forgotten_events_end_id": forgotten[-1]}
                args |= {"summary": item.text, "summary_offset": len(cut.before)}
                event = {"source": "agent", "message": "Condensation", "action": "condensation", "args": args}
            else:
                args = {"content": item.text, "wait_for_response": item.role is Role.ASSISTANT and is_flat}
                source = "agent" if item.role is Role.ASSISTANT else "user"
                event = {"source": source, "message": item.text, "action": "message", "args": args}
            if is_flat:
                written.append(like_keys({**args, "action": "message"}, like))
                continue
            event = like_keys({"id": number, "timestamp": time, **event}, like)
            written.append([event, _NO_OBSERVATION] if has_pairs else event)
        return dumped(transcript, written)


def _is_event(value: Any) -> bool:
    if not isinstance(value, dict) or "kind" in value or "role" in value:
        return False
    if isinstance(value.get("observation"), str) and isinstance(value.get("extras"), dict):
        return True
    return _is_action(value) or _is_flat(value)


def _is_pair(value: Any) -> bool:
    is_of_two = isinstance(value, list) and len(value) == 2 and all(map(_is_event, value))
    return is_of_two and not any(map(_is_flat, value))


def _events(value: Any) -> Sequence[Value]:
    if _is_pair(value):
        return tuple(value)
    return (value,) if _is_event(value) else ()


def _message(value: Any, gone: set[int]) -> Message:
    events = _events(value)
    roles = [role for event in events if (role := _role(event)) is not Role.META]
    if not events or not roles:
        return located.META
    found = parts_of(pieces(value))
    first = events[0]
    summary = summary_of(Role.USER, found) if roles[0] is Role.USER else None
    if _is_action(first) and first["action"] == "condensation":
        summary = marked_summary("openhands", found)
    # Several calls may have come in one answer.
    metadata = first.get("tool_call_metadata") if _is_action(first) else None
    count = at(metadata, ("total_calls_in_response",))
    group = string(at(metadata, ("model_response", "id"))) if isinstance(count, int) and count > 1 else ""
    time, is_gone = string(first.get("timestamp")), isinstance(first.get("id"), int) and first["id"] in gone
    return Message(role=roles[0], parts=found, group=group, timestamp=time, summary=summary, superseded=is_gone)


def _role(event: Value) -> Role:
    if not _is_action(event):
        return Role.META if string(event.get("observation")) in _OBSERVATIONS_IGNORED else Role.TOOL
    kind = event["action"]
    if kind == "condensation":
        return Role.USER if string(at(event, ("args", "summary"))) else Role.META
    if kind == "system":
        return Role.SYSTEM
    if kind in _ACTIONS_IGNORED:
        return Role.META
    if "args" not in event:
        # A flat event names no speaker, but a message of the agent waits for the user's response.
        return Role.USER if kind == "message" and event.get("wait_for_response") is not True else Role.ASSISTANT
    return Role.USER if event.get("source") == "user" else Role.ASSISTANT


def pieces(value: Any) -> list[LocatedPart]:
    """The parts of an event, or of both of a pair, with the places of their texts."""
    if not _is_pair(value):
        return _event_pieces(value, ()) if _is_event(value) else []
    action, observation = value
    found = _event_pieces(action, (0,))
    called = any(isinstance(piece.part, ToolCall) for piece in found)
    return [*found, *(_event_pieces(observation, (1,)) if called or _role(observation) is not Role.META else [])]


OPENHANDS = OpenHands(pieces)


# The speaker of each kind of event. A MessageEvent names its own.
_KIND_ROLES = {
    kind: role
    for role, kinds in (
        (Role.SYSTEM, "SystemPromptEvent SystemPromptUpdateEvent"),
        (Role.ASSISTANT, "ActionEvent"),
        (Role.TOOL, "ObservationEvent AgentErrorEvent UserRejectObservation"),
        (Role.USER, "Condensation CondensationSummaryEvent"),
        (Role.META, "MessageEvent ConversationStateUpdateEvent ConversationErrorEvent CondensationRequest"),
        (Role.META, "LLMCompletionLogEvent PauseEvent TokenEvent StreamingDeltaEvent HookExecutionEvent"),
    )
    for kind in kinds.split()
}


class OpenHandsV1(RecordDialect):
    """The dialect of the OpenHands SDK's events."""

    name = "openhands-v1"
    title = "OpenHands SDK events"
    holds = of_words("run ids times thinking summaries errors".split())
    paths = (("events",), ("history",))
    models = (("value", "agent", "llm", "model"),)

    def record_score(self, value: Any) -> int:
        """3 for an event."""
        return 3 if _kind(value) else 0

    def starts(self, value: Any) -> bool:
        """Whether this is the system prompt with which a conversation begins."""
        return _kind(value) == "SystemPromptEvent"

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per event; those that a condensation names as forgotten are ``superseded``."""
        values = [record.value for record in records]
        named = (at(value, ("forgotten_event_ids",)) for value in values if _kind(value) == "Condensation")
        gone = {key for keys in named for key in listed(keys) if isinstance(key, str)}
        return tuple(_v1_message(value, gone) for value in values)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """A condensation with the summary in place of the removed events; other insertions are messages."""
        kept = cut.kept
        values = [record.value for record in transcript.records]
        removed = [value for i, value in enumerate(values) if i not in kept and _kind(value)]
        forgotten = [string(value.get("id")) for value in removed if value.get("id")]
        like: Any = next((value for value in values if _kind(value)), {})
        time = time_near(transcript, cut)
        offset = sum(located.is_shown(transcript.messages[i]) for i in cut.before)
        written = []
        for item in insertions:
            own_id = located.derived_uuid(transcript.sha256, item.text)
            if item.is_summary:
                words = {"summary": item.text, "summary_offset": offset, "llm_response_id": own_id}
                event = {"source": "environment", "forgotten_event_ids": forgotten, **words, "kind": "Condensation"}
            else:
                source = "agent" if item.role is Role.ASSISTANT else "user"
                message = {"role": item.role.value, "content": [{"type": "text", "text": item.text}]}
                event = {"source": source, "llm_message": message, "kind": "MessageEvent"}
            written.append(like_keys({"id": own_id, "timestamp": time, **event}, like))
        return dumped(transcript, written)


def _kind(value: Any) -> str:
    """The kind of an event; empty for anything else."""
    kind = string(object_of(value).get("kind"))
    return kind if kind in _KIND_ROLES and "source" in value else ""


def _v1_message(value: Any, gone: set[str]) -> Message:
    kind = _kind(value)
    role = _KIND_ROLES.get(kind, Role.META)
    is_condensation = role is Role.USER
    if kind == "MessageEvent":
        role = ROLES.get(string(at(value, ("llm_message", "role"))), Role.META)
    if role is Role.META or (is_condensation and not string(value.get("summary"))):
        return located.META
    found = parts_of(_v1_pieces(value))
    group = string(value.get("llm_response_id")) if kind == "ActionEvent" else ""
    summary = marked_summary("openhands", found) if is_condensation else summary_of(role, found)
    time, is_gone = string(value.get("timestamp")), string(value.get("id")) in gone
    return Message(role=role, parts=found, group=group, timestamp=time, summary=summary, superseded=is_gone)


def _v1_pieces(value: Any) -> list[LocatedPart]:
    kind = _kind(value)
    role = _KIND_ROLES.get(kind)
    if role is Role.SYSTEM:
        return located.content(value.get("system_prompt"), "system_prompt")
    if kind == "MessageEvent":
        return [
            *_thoughts(value.get("llm_message")),
            *located.content(at(value, ("llm_message", "content")), "llm_message", "content"),
            *located.content(value.get("extended_content"), "extended_content"),
        ]
    if kind == "ActionEvent":
        return [*_thoughts(value), *located.content(value.get("thought"), "thought"), _v1_call(value)]
    if role is Role.TOOL:
        call_id, name = value.get("tool_call_id"), value.get("tool_name")
        if kind != "ObservationEvent":
            key = "error" if kind == "AgentErrorEvent" else "rejection_reason"
            return [located.result(string(value.get(key)), (key,), call_id=call_id, name=name, is_error=True)]
        keys = (key for key in ("content", "output", "message") if at(value, ("observation", key)) is not None)
        place, failed = ("observation", next(keys, "content")), at(value, ("observation", "is_error")) is True
        return [located.result(at(value, place), place, call_id=call_id, name=name, is_error=failed)]
    return located.content(value.get("summary"), "summary") if role is Role.USER else []


def _thoughts(holder: Any) -> list[LocatedPart]:
    """The reasoning next to the words: blocks if the provider signed them, else a text, else nothing."""
    blocks = at(holder, ("thinking_blocks",))
    if isinstance(blocks, list) and blocks:
        return [LocatedPart(located.block(block).part) for block in blocks]
    text = at(holder, ("reasoning_content",))
    return [located.thinking(text)] if isinstance(text, str) and text else []


def _v1_call(value: Mapping[str, Any]) -> LocatedPart:
    call = value.get("tool_call")
    call_id = string(value.get("tool_call_id")) or string(at(call, ("id",)))
    name = string(value.get("tool_name")) or string(at(call, ("name",)))
    for place in (("tool_call", "arguments"), ("tool_call", "function", "arguments")):
        written = at(value, place)
        if isinstance(written, (str, dict)):
            return LocatedPart(ToolCall(id=call_id, name=name, arguments=arguments(written)), (place,))
    own = {key: found for key, found in object_of(value.get("action")).items() if key != "kind"}
    return LocatedPart(ToolCall(id=call_id, name=name, arguments=own))


OPENHANDS_V1 = OpenHandsV1(_v1_pieces)
