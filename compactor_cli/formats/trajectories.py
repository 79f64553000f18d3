"""Trajectories: runs of coding agents as evaluations keep them.

SWE-agent: a document with ``history`` (what the model was shown) and ``trajectory`` (the steps). In text modes an
action stands in the assistant's words and the next user message is its observation; in function-calling modes the
messages are those of OpenAI, with ``tool_call_ids`` on the result. A document without a history is read by its
steps: each is an action with its observation. The actions of a demonstration (``is_demo``) are not part of the work:
they are read as material that the client sends.

mini-swe-agent: a document with ``messages``, ``info`` and ``trajectory_format``. Version 1 writes commands into the
assistant's words and answers as the user; version 2 has OpenAI's calls. ``extra`` on the messages holds what the run
needs to know. A message of the role ``exit`` ends the run. A thought and an action in one text are read as words and a
call; the text itself stays as it is.

ATIF (Agent Trajectory Interchange Format 1.0 to 1.8): a document with ``steps``. A step holds calls together with
their results. Steps are numbered from 1 without gaps, so they are renumbered after a compaction. A system step whose
``extra.context_management.boundary`` is ``replace`` stands for everything before it; with ``append`` it is added to
the steps before it. So a summary after a kept head is written with ``append``, one without a head with ``replace``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats import chat, contents, located
from compactor_cli.formats.client_signs import marked_summary, previous_summary, summary_of
from compactor_cli.formats.contents import TextPiece, arguments, dump, dumped, has_calls, listed, parse, string
from compactor_cli.formats.conversation import NEVER_WRITTEN, Conversation, arguments_object, thinking_of
from compactor_cli.formats.located import LocatedPart, RecordDialect, at, like_keys, parts_of, time_near
from compactor_cli.formats.registry import RUN, Capabilities, Insertion, InsertionPoint, JsonPath, objects, of_words
from compactor_cli.model.transcript import Media, Message, Part, Record, Role, Text, ToolCall, ToolResult, Transcript

# The tool name of a command line, by which the digest recognises it.
TOOL = "bash"
_FENCES = ("```bash", "```mswea_bash_command", "```sh", "```", "<command>")


def _fenced(content: str, action: str) -> list[TextPiece]:
    """Split a text at the last occurrence of the action: words before, fence, call, words after.

    One piece if the action is not in the text.
    """
    bare = action.strip()
    at = content.rfind(bare) if bare else -1
    if at < 0:
        return [TextPiece(content, Text(text=content) if content else None)]
    before, following = content[:at], content[at + len(bare) :]
    words = before.rstrip()
    fence = next((fence for fence in _FENCES if words.endswith(fence)), "")
    words = words.removesuffix(fence).rstrip()
    more = following.strip(" \n`")
    is_tag = more.startswith("</") and more.endswith(">") and len(more.split()) == 1
    return [
        TextPiece(words, Text(text=words) if words else None),
        TextPiece(before[len(words) :], None),
        TextPiece(bare, ToolCall(id="", name=TOOL, arguments={"command": bare})),
        TextPiece(following, Text(text=following) if more and not is_tag else None),
    ]


def _shortened(part: Part, written: str, text: str) -> str:
    """The shortened text; for a call its command, which shortened arguments may hold as JSON."""
    given = arguments(text) if isinstance(part, ToolCall) else text
    command = given.get("command") if isinstance(given, Mapping) else given
    return command if isinstance(command, str) else text


def _text_of(content: Any) -> str:
    """The text of a content that is a string or a list with one text block; empty for others."""
    is_block = isinstance(content, list) and len(content) == 1
    return string(at(content, (0, "text")) if is_block else content)


def _with_text(content: Any, text: str) -> Any:
    return [{**content[0], "text": text}] if isinstance(content, list) else text


# The keys at which a step repeats the prompt: since version 1.1, and before.
_PROMPTS = ("query", "messages")
_EMPTY_STEP = dict.fromkeys(("action", "observation", "response", "state", "thought"), "")
_OWN_KEYS = frozenset({"thought", "action", "message_type", "is_demo", "agent", "tool_call_ids"})
# A history without steps is one of this agent's if one of its first messages has all these keys.
_LOOKED_AT = 10
_MESSAGE_KEYS = frozenset({"role", "thought", "action", "agent"})


class SweAgent(RecordDialect):
    """The dialect of SWE-agent's ``.traj`` files."""

    name = "swe-agent"
    title = "SWE-agent trajectory"
    holds = RUN | Capabilities.IDS
    models = (("model",),)
    row_models = chat.ROW_MODELS
    row_score = 3

    def array_path(self, value: Any) -> JsonPath | None:
        """``history``, or ``trajectory`` if there is no history. Demonstrations have a ``history`` without steps."""
        if not isinstance(value, dict):
            return None
        steps = value.get("trajectory")
        if chat.array_at(value, (("history",),)) and value["history"]:
            keys = (one.keys() for one in value["history"][:_LOOKED_AT] if isinstance(one, dict))
            is_own = isinstance(steps, list) or any(one >= _MESSAGE_KEYS for one in keys)
            return ("history",) if is_own else None
        return ("trajectory",) if isinstance(steps, list) and steps and _is_swe_step(steps[0]) else None

    def record_score(self, value: Any) -> int:
        """3 for a step, and a message with thought and action; 2 for other marks."""
        if not chat.is_chat(value):
            return 3 if _is_swe_step(value) else 0
        return 3 if "thought" in value and "action" in value else 2 * (not _OWN_KEYS.isdisjoint(value))

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record. A user message after an action is its observation, as is the end of the run."""
        messages, info = _in_turn(records, _swe_message), at(row, ("info",))
        calls = messages[-1].calls if messages else ()
        if not calls or messages[-1].results or not string(at(info, ("exit_status",))):
            return messages
        # The last action has no observation of its own in the history.
        end = ToolResult(id=calls[-1].id, text=_run_end(info))
        return (*messages[:-1], replace(messages[-1], parts=(*messages[-1].parts, end)))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the run was configured with."""
        named = at(row, ("replay_config", "agent", "model", "name")) or at(row, ("info", "model"))
        return named if isinstance(named, str) else super().model(records, row)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages of the history; in a document of steps, steps without an action, the summary as observation."""
        like = next(filter(None, objects(transcript.records)), {})
        if _is_swe_step(like):
            both = [(item.text, "") if item.role is Role.ASSISTANT else ("", item.text) for item in insertions]
            steps = ({**_EMPTY_STEP, "observation": seen, "response": words, "thought": words} for words, seen in both)
            return dumped(transcript, (like_keys(step, like) for step in steps))
        marks = {"agent": like["agent"]} if "agent" in like else {}
        messages = ({"role": item.role.value, "content": item.text, **marks} for item in insertions)
        return dumped(transcript, (like_keys(message, like) for message in messages))

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The record with these texts replaced, also within the assistant's words."""
        value = parse(record.raw)
        if not (action := _action(value)):
            return super().shorten(record, texts)
        old = _action_pieces(value)
        words, fence, command, following = contents.rewritten(old, texts, _shortened)
        # Copies of thought and action stand next to the words.
        copies = {"action": command} if command != action else {}
        copies |= {"thought": words + fence} if "thought" in value and words != old[0].written else {}
        content = _with_text(value.get("content"), f"{words}{fence}{command}{following}")
        return dump({**value, "content": content, **copies}, record.raw)

    def settle(self, source: Transcript, composed: Transcript) -> Transcript:
        """Remove from the steps next to a history what was removed from the history, and their copies of the prompt."""
        steps = at(source.row, ("trajectory",))
        if not isinstance(steps, list) or not source.records or _is_swe_step(source.records[0].value):
            return composed
        gone = contents.gone_lines(source, composed)
        bare = (
            {**step, **{key: [] for key in _PROMPTS if step.get(key)}} if isinstance(step, dict) else step
            for step in steps
        )
        new = [contents.scrubbed(step, gone) for step in bare]
        frame = contents.with_key(composed.frame, "trajectory", new, steps) if new != steps else composed.frame
        return replace(composed, frame=frame)


def _run_end(info: Mapping[str, Any]) -> str:
    """A line about how a run ended, and which files its submission changes."""
    files = re.findall(r"^diff --git a/(\S+)", string(info.get("submission")), re.MULTILINE)
    changed = f"; submission changes {', '.join(files[:_MAX_SUBMITTED])}" if files else ""
    more = f" and {len(files) - _MAX_SUBMITTED} more" if len(files) > _MAX_SUBMITTED else ""
    return f"exit_status: {info['exit_status']}{changed}{more}"


_MAX_SUBMITTED = 10


def _is_swe_step(value: Any) -> bool:
    return isinstance(value, dict) and "role" not in value and {"action", "observation"} <= value.keys()


def _in_turn(records: Sequence[Record], read: Callable[[Any, bool], Message]) -> tuple[Message, ...]:
    """One message per record. ``read`` also gets whether the record follows an action, and may be its observation."""
    messages: list[Message] = []
    asks = False
    for record in records:
        message = read(record.value, asks)
        messages.append(message)
        if not message.is_meta:
            asks = message.role is Role.ASSISTANT and any(not call.id for call in message.calls)
    return tuple(messages)


def _swe_message(value: Any, follows_action: bool) -> Message:
    if _is_swe_step(value):
        found, summary = parts_of(_step_pieces(value)), None
        if not string(value.get("action")).strip():
            # Without an action, the observation is read as words, and may be a summary.
            found = tuple(Text(text=part.text) if isinstance(part, ToolResult) else part for part in found)
            summary = previous_summary(Role.USER, string(value.get("observation")))
        return Message(role=Role.USER if summary else Role.ASSISTANT, parts=found, summary=summary)
    message = chat.read(value)
    if message.is_meta or message.summary:
        return message
    if value.get("is_demo") is True:
        return Message(role=Role.TOOL, parts=message.parts)
    if value.get("role") == "tool":
        ids, content = value.get("tool_call_ids"), value.get("content")
        call_id = string(value.get("tool_call_id")) or (string(ids[0]) if isinstance(ids, list) and ids else "")
        name = message.results[0].name if message.results else ""
        result = ToolResult(
            id=call_id, text=contents.result_text(content), name=name, media_count=contents.media_count(content)
        )
        return Message(role=Role.TOOL, parts=(result,))
    if follows_action and message.role is Role.USER and (text := _text_of(value.get("content"))):
        return Message(role=Role.TOOL, parts=(ToolResult(id="", text=text),))
    if _action(value):
        return Message(role=Role.ASSISTANT, parts=contents.parts_in(_action_pieces(value)))
    return message


def _action(value: Any) -> str:
    """The action within the words of an assistant; empty if there is none, or if calls stand next to the words."""
    if not chat.is_chat(value) or value["role"] != "assistant" or has_calls(value) or value.get("is_demo") is True:
        return ""
    action = string(value.get("action")).strip()
    return action if action and action in _text_of(value.get("content")) else ""


def _action_pieces(value: Mapping[str, Any]) -> list[TextPiece]:
    return _fenced(_text_of(value.get("content")), _action(value))


def _step_pieces(value: Mapping[str, Any]) -> list[LocatedPart]:
    thought, action, observation = (string(value.get(key)) for key in ("thought", "action", "observation"))
    found = [located.text(thought, ("thought",))] if thought else []
    if action.strip():
        found.append(LocatedPart(ToolCall(id="", name=TOOL, arguments=action), (("action",),)))
    if observation or action.strip():
        found.append(LocatedPart(ToolResult(id="", text=observation), (("observation",),)))
    return found


SWE_AGENT = SweAgent(lambda value: _step_pieces(value) if _is_swe_step(value) else chat.pieces(value))


_FORMAT = "mini-swe-agent"
# The interruption after an answer without an action, which nobody typed.
_REFUSAL = "FormatError"
# A code block with a command, as the agent's prompt asks for it.
_COMMAND_FENCES = ("```mswea_bash_command\n", "```bash\n")


class MiniSwe(RecordDialect):
    """The dialect of mini-swe-agent's ``.traj.json`` files."""

    name = "mini-swe"
    title = "mini-swe-agent trajectory"
    holds = RUN | Capabilities.IDS | Capabilities.TIMES | Capabilities.USAGE | Capabilities.ERRORS
    models = (("extra", "response", "model"), ("model",))
    row_models = (("info", "config", "model", "model_name"),)
    row_score = 3

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of a document that names this agent as its writer."""
        if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
            return None
        is_own = string(value.get("trajectory_format")).startswith(_FORMAT) or at(value, ("info", "mini_version"))
        return chat.array_at(value, (("messages",),)) if is_own else None

    def record_score(self, value: Any) -> int:
        """3 for the end of a run and a message with ``extra`` from a model; 2 for any message with ``extra``."""
        extra = value.get("extra")
        if not chat.is_chat(value) or not isinstance(extra, dict):
            return 0
        return 3 if value["role"] == "exit" or "actions" in extra or "response" in extra else 2

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; a user message after a command is its observation."""
        return _in_turn(records, _mini_message)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with a role and a content."""
        like = next(filter(None, objects(transcript.records)), {})
        messages = ({"role": item.role.value, "content": item.text} for item in insertions)
        return dumped(transcript, (like_keys(message, like) for message in messages))

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The message with these texts replaced within its words; what is cut is removed from ``extra`` too."""
        old = parse(record.raw)
        if found := _mini_pieces(old):
            new = {**old, "content": _with_text(old["content"], "".join(contents.rewritten(found, texts, _shortened)))}
        else:
            new = parse(super().shorten(record, texts))
        if "extra" in new:
            bare = {key: new[key] for key in new if key != "extra"}
            new["extra"] = contents.scrubbed(new["extra"], contents.lines_between(old.get("content"), bare))
        return dump(new, record.raw)


def _mini_message(value: Any, follows_command: bool) -> Message:
    message = chat.read(value)
    if message.is_meta or message.summary:
        return message
    if at(value, ("extra", "interrupt_type")) == _REFUSAL:
        return Message(role=Role.TOOL, parts=message.parts, timestamp=message.timestamp)
    if message.role is Role.USER and follows_command and (text := _text_of(value.get("content"))):
        code = at(value, ("extra", "returncode"))
        written = text.partition("<returncode>")[2].partition("</returncode>")[0].strip()
        failed = code != 0 if isinstance(code, int) else written not in ("", "0")
        return Message(role=Role.TOOL, parts=(ToolResult(id="", text=text, is_error=failed),))
    found = contents.parts_in(_mini_pieces(value))
    return Message(role=Role.ASSISTANT, parts=found, timestamp=message.timestamp) if found else message


def _mini_pieces(value: Any) -> list[TextPiece]:
    """The pieces of an assistant's words with a command in them; empty if there is no command."""
    if not chat.is_chat(value) or value["role"] != "assistant" or has_calls(value):
        return []
    content = _text_of(value.get("content"))
    actions = at(value, ("extra", "actions"))
    first = actions[0] if isinstance(actions, list) and len(actions) == 1 else None
    command = first if isinstance(first, str) else string(at(first, ("command",)))
    # The agent refuses an answer with several command blocks, so it has no command.
    fence = next((fence for fence in _COMMAND_FENCES if content.count(fence) == 1), "")
    if not command and fence:
        command = content.partition(fence)[2].partition("\n```")[0]
    found = _fenced(content, command)
    return found if len(found) > 1 else []


MINI_SWE = MiniSwe(chat.pieces)


_ROLES = {"system": Role.SYSTEM, "user": Role.USER, "agent": Role.ASSISTANT}
_NO_CALL = LocatedPart(ToolCall(id="", name="", arguments=""))


class Atif(RecordDialect):
    """The dialect of ATIF."""

    name = "atif"
    title = "ATIF trajectory"
    holds = of_words("run ids images thinking times usage summaries sidechains".split())
    unwritten = NEVER_WRITTEN | Capabilities.IMAGES
    paths = (("steps",), ("trajectory", "steps"))
    models = (("model_name",),)
    row_models = (("agent", "model_name"), ("trajectory", "agent", "model_name"))

    def record_score(self, value: Any) -> int:
        """3 for a step."""
        return 3 if _is_atif_step(value) else 0

    def starts(self, value: Any) -> bool:
        """Whether this is the step with number 1."""
        return _is_atif_step(value) and value["step_id"] == 1 and type(value["step_id"]) is int

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per step, with its results; steps that a boundary replaced are ``superseded``."""
        values = [record.value for record in records]
        last = max((i for i, value in enumerate(values) if _atif_boundary(value) == "replace"), default=0)
        messages = [located.META] * len(values)
        for i, value in enumerate(values):
            if not _is_atif_step(value):
                continue
            found, is_boundary = parts_of(_atif_pieces(value)), bool(_atif_boundary(value))
            role = Role.USER if is_boundary else _ROLES[value["source"]]
            is_summary = is_boundary and any(part.text for part in found if isinstance(part, Text))
            summary = marked_summary("atif", found) if is_summary else summary_of(role, found)
            time = string(value.get("timestamp"))
            messages[i] = Message(role=role, parts=found, timestamp=time, summary=summary, superseded=i < last)
        return tuple(messages)

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """A boundary step with the summary as its observation. New steps are marked so that nobody trains on them."""
        has_head = any(not transcript.messages[i].is_meta for i in cut.before)
        time, number = time_near(transcript, cut), len(cut.before) + 1
        steps = (_atif_step(item, number + i, time, has_head=has_head) for i, item in enumerate(insertions))
        return dumped(transcript, steps)

    def settle(self, source: Transcript, composed: Transcript) -> Transcript:
        """Renumber the steps from 1, and set ``total_steps`` to their number."""
        records = list(composed.records)
        for i, record in enumerate(records):
            if _is_atif_step(record.value) and record.value["step_id"] != i + 1:
                raw = contents.number_replaced(record.raw, "step_id", i + 1)
                records[i] = replace(record, raw=raw, value={**record.value, "step_id": i + 1})
        frame = composed.frame
        if isinstance(at(composed.row, ("final_metrics", "total_steps")), int):
            frame = contents.with_key(frame, "total_steps", len(records))
        return replace(composed, records=tuple(records), frame=frame)

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A trajectory of steps; keys that the format does not define go into ``extra``, as it requires."""
        named = {"model_name": conversation.model} if conversation.model else {}
        agent = {"name": "agent", "version": "unknown", **named}
        document = {"schema_version": "ATIF-v1.7", "session_id": conversation.key("session"), "agent": agent}
        steps: list[dict[str, Any]] = []
        for message in conversation.messages:
            number, time = len(steps) + 1, message.timestamp
            if message.role is Role.TOOL:
                answers = [{"source_call_id": result.id, "content": result.text} for result in message.results]
                steps[-1]["observation"] = {"results": answers}
            elif message.summary:
                has_head = any(step["source"] != "system" for step in steps)
                item = Insertion(role=Role.USER, text=message.text, is_summary=True)
                steps.append(_atif_step(item, number, time, has_head=has_head))
            else:
                source = next(name for name, role in _ROLES.items() if role is message.role)
                stamp = {"timestamp": time} if time else {}
                step: dict[str, Any] = {"step_id": number, **stamp, "source": source, "message": message.text}
                if thought := thinking_of(message):
                    step["reasoning_content"] = thought
                if message.calls:
                    step["tool_calls"] = [
                        {"tool_call_id": call.id, "function_name": call.name, "arguments": arguments_object(call)}
                        for call in message.calls
                    ]
                steps.append(step)
        return ({**document, "steps": steps, **({"extra": dict(conversation.extra)} if conversation.extra else {})},)


def _is_atif_step(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("step_id"), int):
        return False
    return string(value.get("source")) in _ROLES and "message" in value


def _atif_boundary(value: Any) -> str:
    """How a step changes the context (``replace`` or ``append``); empty if it does not."""
    found = at(value, ("extra", "context_management"))
    if not _is_atif_step(value) or not isinstance(found, dict) or found.get("type", "compaction") != "compaction":
        return ""
    return string(found.get("boundary"))


def _atif_pieces(value: Any) -> list[LocatedPart]:
    """The parts of a step with the places of their texts.

    Of a boundary only the observation is shown to a model. In the agent's steps, an empty call is added for each
    result without a call; in other steps, results are read as texts.
    """
    if not _is_atif_step(value):
        return []
    found = enumerate(listed(at(value, ("observation", "results"))))
    results = [(result, ("observation", "results", i, "content")) for i, result in found]
    texts = [
        piece
        for result, place in results
        for piece in located.content(at(result, ("content",)), *place, read=_atif_block)
    ]
    if _atif_boundary(value) and results:
        return texts
    reasoning = value.get("reasoning_content")
    spoken = [located.thinking(reasoning)] if isinstance(reasoning, str) and reasoning else []
    spoken += located.content(value["message"], "message", read=_atif_block)
    if value["source"] != "agent":
        return [*spoken, *texts]
    calls = [
        located.call(call, "arguments", "tool_calls", i, id_key="tool_call_id", name_key="function_name")
        if isinstance(call, dict)
        else _NO_CALL
        for i, call in enumerate(listed(value.get("tool_calls")))
    ]
    calls += [_NO_CALL] * max(len(results) - len(calls), 0)
    answers = (
        located.result(at(result, ("content",)), place, call_id=at(result, ("source_call_id",)))
        for result, place in results
    )
    return [*spoken, *calls, *answers]


def _atif_block(block: Any) -> LocatedPart:
    piece = located.block(block)
    media = piece.part
    return LocatedPart(replace(media, size_bytes=contents.size_bytes(block))) if isinstance(media, Media) else piece


def _atif_step(item: Insertion, number: int, time: str, *, has_head: bool) -> dict[str, Any]:
    stamp = {"timestamp": time} if time else {}
    if not item.is_summary:
        source = "agent" if item.role is Role.ASSISTANT else "user"
        return {"step_id": number, **stamp, "source": source, "message": item.text, "is_copied_context": True}
    management = {"type": "compaction", "boundary": "append" if has_head else "replace"}
    return {
        "step_id": number,
        **stamp,
        "source": "system",
        "message": "Context compaction performed",
        "observation": {"results": [{"content": item.text}]},
        "is_copied_context": True,
        "extra": {"context_management": management},
    }


ATIF = Atif(_atif_pieces)
