"""Qwen Code sessions: ``~/.qwen/projects/<folder>/chats/<session>.jsonl``, one record a line.

Messages are contents of the Gemini API (``{"role", "parts"}``) in a chain of records (see `qwen_chain`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from compactor_cli.formats import qwen_insert
from compactor_cli.formats.base import Insertion, InsertionPoint, JsonPath
from compactor_cli.formats.capabilities import SESSION, Capabilities
from compactor_cli.formats.contents import role_of, string
from compactor_cli.formats.gemini_contents import pieces as content_pieces
from compactor_cli.formats.jsontext import dump, parse
from compactor_cli.formats.located_parts import LocatedPart, at, parts, shorten
from compactor_cli.formats.previous import summary_of
from compactor_cli.formats.qwen_chain import Chain, history, is_of_conversation
from compactor_cli.model.transcript import Message, PreviousSummary, Record, Role, Text, Transcript

_ENVELOPE = ("uuid", "parentUuid", "sessionId")


class QwenCode:
    """The dialect of Qwen Code's session files."""

    name = "qwen-code"
    title = "Qwen Code session"
    holds = SESSION | Capabilities.SUMMARIES
    links_records = True

    def array_path(self, value: Any) -> JsonPath | None:
        """None: a line is a record."""
        return None

    def score(self, value: Any) -> int:
        """3 for a message or a system record in the client's envelope; 2 for a message in less of it."""
        if not isinstance(value, dict):
            return 0
        marks = sum(key in value for key in _ENVELOPE)
        if value.get("type") == "system":
            has_payload = "systemPayload" in value or isinstance(at(value, ("message", "parts")), list)
            return 3 if marks >= 2 and has_payload else 0
        return (3 if marks >= 2 else 2 if marks else 0) if is_of_conversation(value) else 0

    def starts(self, value: Any) -> bool:
        """Never: a session has no first line of its own kind (see `session_key`)."""
        return False

    def session_key(self, value: Any) -> str:
        """The session that a record says it belongs to."""
        return string(value.get("sessionId")) if isinstance(value, dict) else ""

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; what is next to the chain or was compressed is ``superseded``."""
        chain = chain_of(records)
        gone = chain.superseded()
        return tuple(_message(chain, i, i in gone) for i in range(len(chain.values)))

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model of the last answer."""
        values = (record.value for record in reversed(records) if isinstance(record.value, dict))
        return next((name for value in values if (name := string(value.get("model")))), "")

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """Messages in the chain between head and tail (see `qwen_insert`)."""
        return qwen_insert.insert(transcript, cut, insertions) if insertions else ()

    @property
    def appends_head(self) -> bool:
        """True: the boundary holds the whole history."""
        return True

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """A ``chat_compression`` with head, insertions and tail as its history."""
        return qwen_insert.append(transcript, cut, insertions, size_tokens)

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """None: what repeats a message stands next to it, and goes with it."""
        return frozenset()

    def counters(self, records: Sequence[Record], staying: Sequence[int]) -> Mapping[int, int]:
        """``usageMetadata`` of the last answer: a client that finds it too large refuses to go on."""
        sizes = ((i, _total(records[i].value)) for i in reversed(staying))
        return dict(islice(((i, size) for i, size in sizes if size), 1))

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The answer with other ``usageMetadata``."""
        value = parse(record.raw)
        old = value["usageMetadata"]
        usage = dict.fromkeys(old, 0) | {"promptTokenCount": size_tokens, "totalTokenCount": size_tokens}
        return dump({**value, "usageMetadata": usage}, record.raw)

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The record with texts replaced in its message; what the client displays stays as it is."""
        return shorten(record, texts, _pieces)


DIALECT = QwenCode()


def chain_of(records: Sequence[Record]) -> Chain:
    """The chain of these records; a line that is not an object is an empty one."""
    return Chain([record.value if isinstance(record.value, dict) else {} for record in records])


def _total(value: Any) -> int:
    usage = value.get("usageMetadata") if isinstance(value, dict) else None
    sizes = [usage.get(key) for key in ("totalTokenCount", "promptTokenCount")] if isinstance(usage, dict) else []
    return max((size for size in sizes if isinstance(size, int)), default=0)


def _pieces(value: Any) -> list[LocatedPart]:
    found = content_pieces(value["message"])
    return [LocatedPart(piece.part, tuple(("message", *place) for place in piece.places)) for piece in found]


def _message(chain: Chain, i: int, is_superseded: bool) -> Message:
    value = chain.values[i]
    timestamp = string(value.get("timestamp"))
    if history(value):
        return _compression(chain, i, is_superseded)
    if not is_of_conversation(value):
        return Message(role=Role.META, timestamp=timestamp)
    found = parts(_pieces(value))
    role = Role.ASSISTANT if value["type"] == "assistant" else role_of(Role.USER, found)
    summary = summary_of(role, found)
    return Message(role=role, parts=found, timestamp=timestamp, summary=summary, superseded=is_superseded)


def _compression(chain: Chain, i: int, is_superseded: bool) -> Message:
    """What a compression says that no record before it does."""
    copies = chain.copies if i == chain.boundary else {}
    own = (content for number, content in enumerate(history(chain.values[i])) if number not in copies)
    found = tuple(part for content in own for part in parts(content_pieces(content)))
    texts = [part for part in found if isinstance(part, Text)]
    summary = next((made for part in texts if (made := summary_of(Role.USER, (part,)))), None)
    return Message(
        role=Role.USER,
        parts=found,
        timestamp=string(chain.values[i].get("timestamp")),
        summary=summary or PreviousSummary(origin="qwen", text="\n".join(part.text for part in texts)),
        superseded=is_superseded,
    )
