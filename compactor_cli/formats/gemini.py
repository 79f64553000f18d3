"""Contents of the Gemini API, and the sessions of Gemini CLI.

Requests are ``{"contents": [{"role": "user"|"model", "parts": [...]}]}``. Calls have ids in newer requests only;
without, order pairs them. Signatures (``thoughtSignature``) stand next to what they sign, and are kept or left out with
it. The Python client's names (``function_call``) are read too, and the arrays of early Gemini CLI logs, whose entries
name their speaker in ``type``.

Sessions are ``~/.gemini/tmp/<project>/chats/session-*.jsonl``, and ``.json`` documents before that. A log is replayed:
a line with the ``id`` of an earlier one is its newer version; ``{"$set": {"messages": [...]}}`` replaces the whole list
(the client writes it after a compression, and, repeating everything, at each resume); ``{"$rewindTo": id}`` takes back
that message and all after it. A call and its result are in one record. The record with the response after it only
repeats it, and so do the repeated lists: neither is kept. Observed with Gemini CLI 0.61.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.formats import conversation, located
from compactor_cli.formats.chat import ROW_MODELS, alternating
from compactor_cli.formats.client_signs import summary_among, summary_of
from compactor_cli.formats.contents import dumped, listed, role_of, string
from compactor_cli.formats.conversation import Conversation, arguments_object, merged, spoken_parts, without_system
from compactor_cli.formats.located import LocatedPart, RecordDialect, SessionDialect, Value, at, derived_uuids, parts_of
from compactor_cli.formats.registry import REQUEST, SESSION, Capabilities, Insertion, InsertionPoint, JsonPath, objects
from compactor_cli.model.transcript import (
    Message,
    Part,
    Record,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Transcript,
    text_of,
)

# Requests, tuning rows of Vertex AI, and the reports that Gemini CLI writes of errors (``context``).
_PATHS = "contents request.contents body.contents history messages conversation.messages context"
_ROLES = {"user": Role.USER, "model": Role.ASSISTANT, "gemini": Role.ASSISTANT, "system": Role.SYSTEM}
_ROLES |= {"function": Role.TOOL, "tool": Role.TOOL}
_CALLS = ("functionCall", "function_call", "toolCall", "tool_call")
_RESULTS = ("functionResponse", "function_response", "toolResponse", "tool_response")
_CODE = ("executableCode", "executable_code")
_CODE_RESULTS = ("codeExecutionResult", "code_execution_result")
_MEDIA = ("inlineData", "inline_data", "fileData", "file_data")
_PART_KEYS = frozenset({"text", *_CALLS, *_RESULTS, *_CODE, *_CODE_RESULTS, *_MEDIA})
_CODE_TOOL = "code_execution"


class GeminiContents(RecordDialect):
    """The dialect of the Gemini API's requests."""

    name = "gemini-contents"
    title = "Gemini contents"
    holds = REQUEST | Capabilities.ERRORS | Capabilities.THINKING
    unwritten = conversation.SIGNED
    paths = tuple(tuple(path.split(".")) for path in _PATHS.split())
    row_models = ROW_MODELS

    def record_score(self, value: Any) -> int:
        """3 for a content with parts of the API; 2 for an entry of an early log."""
        return (2 if _is_entry(value) else 3) if is_content(value) else 0

    def message(self, value: Any) -> Message:
        """Read one content. A user's content that only brings results becomes a tool's."""
        if not is_content(value):
            return located.META
        found = parts_of(pieces(value))
        role = role_of(_ROLES[value.get("type" if _is_entry(value) else "role", "user")], found)
        return Message(role=role, parts=found, timestamp=string(value.get("ts")), summary=summary_of(role, found))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the request names."""
        return super().model((), row).removeprefix("models/")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Contents of one text part, their keys in the file's order; user and model alternate, as the API requires."""
        like = transcript.records[0].value
        speaker, names = "type" if _is_entry(like) else "role", {Role.ASSISTANT: "model"}
        placed = alternating(transcript, cut, insertions)
        contents = ({speaker: names.get(item.role, "user"), "parts": [{"text": item.text}]} for item in placed)
        return dumped(transcript, (located.like_keys(content, like) for content in contents))

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A request: ``systemInstruction`` and ``tools`` next to the contents; a run of one side is one content."""
        system, others = without_system(conversation)
        row = conversation.row()
        if system:
            row["systemInstruction"] = {"parts": [{"text": system}]}
        row["contents"] = [
            {
                "role": "model" if side is Role.ASSISTANT else "user",
                "parts": [_written(p) for m in run for p in m.parts],
            }
            for side, run in merged(others)
        ]
        if conversation.tools:
            declared = [tool.declaration("parametersJsonSchema") for tool in conversation.tools]
            row["tools"] = [{"functionDeclarations": declared}]
        return (row,)


def _written(part: Part) -> dict[str, Any]:
    if isinstance(part, Text | Thinking):
        return {"text": part.text}
    if isinstance(part, ToolCall):
        return {"functionCall": {"id": part.id, "name": part.name, "args": arguments_object(part)}}
    if isinstance(part, ToolResult):
        response = {"error" if part.is_error else "output": part.text}
        return {"functionResponse": {"id": part.id, "name": part.name, "response": response}}
    if image := conversation.image_of(part):
        return {"inlineData": {"mimeType": image[0], "data": image[1]}}
    return {"fileData": {"fileUri": part.url}}


def is_content(value: Any) -> bool:
    """Whether this is a content of the API (its role may be missing), or an entry of an early log."""
    if _is_entry(value):
        return True
    if not isinstance(value, dict) or not isinstance(value.get("parts"), list) or "content" in value:
        return False
    known = (
        isinstance(part, dict) and not _PART_KEYS.isdisjoint(part) and "type" not in part for part in value["parts"]
    )
    return string(value.get("role", "user")) in _ROLES and all(known)


def _is_entry(value: Any) -> bool:
    """Whether this is an entry of an early log: a text or parts, with the speaker in ``type``."""
    if not isinstance(value, dict) or {"role", "content", "message", "id"} & value.keys():
        return False
    has_body = isinstance(value.get("text"), str) or isinstance(value.get("parts"), list)
    return has_body and string(value.get("type")) in _ROLES


def pieces(value: Any) -> list[LocatedPart]:
    """The parts of a content with the places of their texts."""
    blocks = value.get("parts") if isinstance(value, dict) else None
    if isinstance(blocks, list):
        return block_pieces(blocks, "parts")
    text = value.get("text") if _is_entry(value) else None
    return [located.text(text, ("text",))] if isinstance(text, str) and text else []


def block_pieces(blocks: Sequence[Any], *place: str | int) -> list[LocatedPart]:
    """The parts of these blocks, which stand at this place."""
    asked, answered = ([_key(block, keys) for block in blocks] for keys in (_CODE, _CODE_RESULTS))
    has_code_pairs = asked.count("") == answered.count("")
    return [_piece(block, (*place, i), has_code_pairs) for i, block in enumerate(blocks)]


def _key(block: Any, keys: Sequence[str]) -> str:
    """The first of these keys at which the block has an object; empty if there is none."""
    return next((key for key in keys if isinstance(block, dict) and isinstance(block.get(key), dict)), "")


def _piece(block: Any, place: tuple[str | int, ...], has_code_pairs: bool) -> LocatedPart:
    if isinstance(block, str):
        return located.text(block, place)
    if not isinstance(block, dict):
        return located.media(type(block).__name__, None)
    if isinstance(block.get("text"), str):
        is_thought = block.get("thought") is True
        return located.thinking(block["text"]) if is_thought else located.text(block["text"], (*place, "text"))
    if key := _key(block, _CALLS):
        call = block[key]
        return located.call({**call, "name": _name(call), "args": call.get("args") or {}}, "args", *place, key)
    if key := _key(block, _RESULTS):
        answer, response = block[key], block[key].get("response")
        failed = isinstance(response, dict) and len(response) == 1 and "error" in next(iter(response))
        there = (*place, key, "response")
        piece = located.result(response, there, call_id=answer.get("id"), name=_name(answer), is_error=failed)
        return piece if isinstance(response, (dict, str, list)) else LocatedPart(piece.part)
    if key := _key(block, (*_CODE, *_CODE_RESULTS)):
        # Code that ran at the provider's, and its result. If their numbers differ, both are read as text.
        inner, inner_key = block[key], "output" if key in _CODE_RESULTS else "code"
        text = string(inner.get(inner_key))
        places = ((*place, key, inner_key),) if isinstance(inner.get(inner_key), str) else ()
        if not has_code_pairs:
            return located.text(text, *places)
        if inner_key == "code":
            return LocatedPart(ToolCall(id="", name=_CODE_TOOL, arguments={"code": text}))
        failed = string(inner.get("outcome")) not in ("", "OUTCOME_OK")
        return LocatedPart(ToolResult(id="", text=text, name=_CODE_TOOL, is_error=failed), places)
    kind = next((key for key in block if key not in ("thought", "thoughtSignature")), "unknown")
    return located.media(kind, block)


def _name(block: Mapping[str, Any]) -> str:
    return string(block.get("name")) or string(block.get("toolType")) or string(block.get("tool_type"))


CONTENTS = GeminiContents(pieces)


_TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
# Openings of texts that the client itself writes into user messages, and does not read back.
_CONTEXTS = ("<session_context>", "<hook_context>")


class Replay:
    """The log of one session, replayed.

    ``sent`` are the records that hold messages of the final list; ``own[i]`` the messages of the ``$set`` at ``i`` that
    no line holds; ``repeated`` the records whose content another record holds: older versions, and tool results that
    are also in their calls; ``answered`` the ids of calls to which a record after them has the result.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        self.values = values
        self.own: dict[int, tuple[Value, ...]] = {}
        # By the ids of messages: the last record that holds each, and the same for the messages in the list so far.
        holders: dict[str, int] = {}
        in_list: dict[str, int] = {}
        # A message without an id gets one, since it is not a version of another.
        keys = {i: string(value.get("id")) or f"#{i}" for i, value in enumerate(values) if _is_message(value)}
        # The ids of calls that hold their results.
        calls = (call for i in keys for call in listed(values[i].get("toolCalls")) if isinstance(call, dict))
        nested = frozenset(string(call.get("id")) for call in calls if listed(call.get("result")))
        for i, value in enumerate(values):
            if i in keys:
                holders[keys[i]] = in_list[keys[i]] = i
            elif (messages := _new_messages(value)) is not None:
                shown = [item for item in messages if not _is_context(item) and not _only_answers(item, nested)]
                ids = [string(message.get("id")) for message in shown]
                in_list = {key: holders.setdefault(key, i) for key in ids}
                if own := tuple(message for key, message in zip(ids, shown, strict=True) if holders[key] == i):
                    self.own[i] = own
            elif isinstance(taken := value.get("$rewindTo"), str) and taken in in_list:
                left = list(in_list)[: list(in_list).index(taken)]
                in_list = {key: in_list[key] for key in left}
        self.sent = frozenset(in_list.values())
        self.answered = frozenset(key for i in keys for key in _answered_ids(values[i]))
        self.repeated = frozenset(i for i, key in keys.items() if _only_answers(values[i], nested) or holders[key] != i)


def _is_message(value: Value) -> bool:
    return isinstance(value.get("id"), str) and string(value.get("type")) in _TYPES


def _new_messages(value: Value) -> list[Value] | None:
    """The messages of a line that replaces the whole list; None for all other lines."""
    messages = at(value, ("$set", "messages"))
    return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else None


def _is_context(message: Value) -> bool:
    """Whether the client wrote this message to describe the surroundings, as it does whenever it starts."""
    content = message.get("content")
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, dict) else first
    return message.get("type") == "user" and string(text).lstrip().startswith(_CONTEXTS)


def _answered_ids(value: Value) -> Iterator[str]:
    found = (at(block, ("functionResponse",)) for block in listed(value.get("content")))
    return (string(response.get("id")) for response in found if isinstance(response, dict))


def _only_answers(value: Value, nested: frozenset[str]) -> bool:
    content = value.get("content")
    answers = list(_answered_ids(value))
    return isinstance(content, list) and bool(content) and len(answers) == len(content) and nested.issuperset(answers)


_HEADER = ("sessionId", "projectHash", "startTime")


class GeminiCli(SessionDialect):
    """The dialect of Gemini CLI's session files."""

    name = "gemini-cli"
    title = "Gemini CLI session"
    holds = SESSION
    unwritten = conversation.SIGNED
    models = (("model",),)

    def array_path(self, value: Any) -> JsonPath | None:
        """``messages`` of a document; None for a line of a log."""
        is_document = _is_header(value) and isinstance(value.get("messages"), list)
        return ("messages",) if is_document else None

    def record_score(self, value: Any) -> int:
        """3 for a header, a control line or an answer; 2 for other messages."""
        if _is_header(value) or "$set" in value or "$rewindTo" in value:
            return 3
        if not _is_message(value) or "content" not in value or "message" in value:
            return 0
        return 3 if value["type"] == "gemini" else 2

    def session_key(self, value: Any) -> str:
        """The session that a header names."""
        return string(value.get("sessionId")) if _is_header(value) else ""

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; replaced and taken-back ones are ``superseded``, repetitions are META."""
        replay = Replay(objects(records))
        return tuple(_cli_message(replay, i, value) for i, value in enumerate(replay.values))

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages with new ids, and with the time of the last record before the tail."""
        values = objects(transcript.records)
        times = (value.get("timestamp") for value in reversed(values[: cut.tail_start(len(values))]))
        timestamp = string(next(filter(None, times), ""))
        return dumped(transcript, _new(transcript, insertions, [timestamp] * len(insertions)))

    # The boundary holds the whole list, head included.
    appends_head = True

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """A ``$set`` with the whole list: head, insertions and tail."""
        values = located.parsed(transcript)
        newest = located.newest_time(values)
        times = [located.later(newest, n) for n in range(1, len(insertions) + 1)]
        head, tail = (
            [values[i] for i in side if located.is_shown(transcript.messages[i])] for side in (cut.before, cut.after)
        )
        messages = [*head, *_new(transcript, insertions, times), *tail]
        line = {"$set": {"messages": messages, "lastUpdated": times[-1] if times else newest}}
        return dumped(transcript, (line,))

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """Lists that repeat messages, lines that take messages back, and the messages that these lines removed."""
        replay, found = Replay(objects(records)), set()
        for i, value in enumerate(replay.values):
            is_gone = i not in replay.sent
            if _is_message(value):
                is_outdated = i in replay.repeated or (is_gone and not _is_context(value))
            else:
                is_outdated = "$rewindTo" in value or (is_gone and _new_messages(value) is not None)
            found |= {i} if is_outdated else set()
        return frozenset(found)

    def problems(self, values: Sequence[Value]) -> Iterator[tuple[int, str]]:
        """Rewinds to a missing message, and a missing header, without which the client does not find the session."""
        ids = {string(value.get("id")) for value in values}
        for i, value in enumerate(values):
            if "$rewindTo" in value and value["$rewindTo"] not in ids:
                yield i, "the message that it takes back is not there"
        has_header = any("sessionId" in value and "projectHash" in value for value in values)
        if not has_header and any(value.get("type") == "gemini" for value in values):
            yield 0, "no line names session and project: the client does not find the session"

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A header, and messages whose calls hold their results."""
        times = conversation.times()
        start, end = (times[0], times[-1]) if times else ("", "")
        names = {"sessionId": conversation.key("session"), "projectHash": "0" * 64}
        lines: list[dict[str, Any]] = [{**names, "startTime": start, "lastUpdated": end, "kind": "main"}]
        for message, time in zip(conversation.messages, times, strict=True):
            if message.role is Role.TOOL:
                answers = {result.id: result for result in message.results}
                for call in lines[-1]["toolCalls"]:
                    if answer := answers.get(call["id"]):
                        response = _written(replace(answer, name=string(call.get("name"))))
                        call |= {"result": [response], "status": "error" if answer.is_error else "success"}
                continue
            is_answer = message.role is Role.ASSISTANT
            line: dict[str, Any] = {"id": conversation.key(len(lines)), "timestamp": time}
            line["type"] = "gemini" if is_answer else "user"
            line["content"] = [_written(part) for part in spoken_parts(message)]
            if message.calls:
                end_of = {"status": "cancelled", "timestamp": time}
                line["toolCalls"] = [
                    {"id": call.id, "name": call.name, "args": arguments_object(call), **end_of}
                    for call in message.calls
                ]
            lines.append({**line, "model": conversation.model} if is_answer and conversation.model else line)
        return lines


def _is_header(value: Any) -> bool:
    return isinstance(value, dict) and sum(key in value for key in _HEADER) >= 2 and "type" not in value


def _cli_message(replay: Replay, i: int, value: Value) -> Message:
    if i in replay.own:
        # A list with messages that stand nowhere else. It is never kept, since it also repeats other messages.
        found = tuple(part for message in replay.own[i] for part in parts_of(_cli_pieces(message)))
        summary = summary_among("gemini", found)
        return Message(role=Role.USER, parts=found, summary=summary, superseded=i not in replay.sent)
    timestamp = string(value.get("timestamp"))
    if not _is_message(value) or value["type"] not in ("user", "gemini") or _is_context(value) or i in replay.repeated:
        return Message(role=Role.META, timestamp=timestamp)
    found, own = parts_of(_cli_pieces(value)), None
    if value["type"] == "user":
        role = role_of(Role.USER, found)
        if value.get("displayContent") is not None:
            # The prompt was made from a command's template, and this is what the user typed. Without a text, the client
            # itself wrote the prompt.
            own = text_of(parts_of(_cli_pieces({"content": value["displayContent"]})))
    else:
        role = Role.ASSISTANT
        # A result without a text stands for a missing one; drop it if a later record has the result.
        found = tuple(p for p in found if not isinstance(p, ToolResult) or p.text or p.id not in replay.answered)
    is_gone = i not in replay.sent
    by_client = summary_of(role, found)
    return Message(role=role, parts=found, timestamp=timestamp, summary=by_client, superseded=is_gone, own_words=own)


def _cli_pieces(value: Any) -> list[LocatedPart]:
    content = value.get("content")
    if isinstance(content, str):
        found = [located.text(content, ("content",))] if content else []
    else:
        blocks = [content] if isinstance(content, dict) else listed(content)
        found = block_pieces(blocks, "content")
    for n, call in enumerate(listed(value.get("toolCalls"))):
        if not isinstance(call, dict):
            continue
        place: JsonPath = ("toolCalls", n)
        found.append(located.call({**call, "args": call.get("args") or {}}, "args", *place))
        key, name, is_error = string(call.get("id")), string(call.get("name")), call.get("status") == "error"
        display = ((*place, "resultDisplay"),) if isinstance(call.get("resultDisplay"), str) else ()
        answers = [
            LocatedPart(replace(part, id=key, is_error=is_error), (*places, *display))
            for part, places, _ in block_pieces(listed(call.get("result")), *place, "result")
            if isinstance(part, ToolResult)
        ]
        found += answers[:1] or [LocatedPart(ToolResult(id=key, text="", name=name, is_error=is_error))]
    # Missing results come last, so that dropping them does not change the numbers of other parts.
    return sorted(found, key=lambda piece: isinstance(piece.part, ToolResult) and not piece.places)


def _new(transcript: Transcript, insertions: Sequence[Insertion], times: Sequence[str]) -> Iterator[dict[str, Any]]:
    for key, item, time in zip(derived_uuids(transcript, insertions), insertions, times, strict=True):
        is_answer = item.role is Role.ASSISTANT
        kind, content = ("gemini", item.text) if is_answer else ("user", [{"text": item.text}])
        yield {"id": key, "timestamp": time, "type": kind, "content": content}


GEMINI_CLI = GeminiCli(_cli_pieces)
