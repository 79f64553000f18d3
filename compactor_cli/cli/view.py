"""``compactor view``: what the client would send, as messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.sent import OPAQUE_KINDS, sent_messages
from compactor_cli.model.transcript import Media, Message, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.read.jsonl import OnInvalid, records_in
from compactor_cli.read.streams import STDIN, open_stream


@click.command()
@click.argument("file", default=STDIN, metavar="[FILE]", type=click.UNPROCESSED)
@click.option("--format", "dialect", default="", metavar="NAME", help="Read as this dialect.")
def view(file: str, dialect: str) -> int:
    """Print what the client of a session would send to the model, one message a line, in that order.

    What an earlier compaction replaced, rewound branches and bookkeeping are not in it. Each line has the number of
    its record, the role and what it says: text, thinking, calls, results, media (images and files, counted, with
    those in results).
    """
    with open_stream(file) as stream:
        records = records_in(stream, OnInvalid.KEEP)
        for transcript in open_transcripts(records, dialect=dialect, prefix=records.prefix):
            for line in _lines(transcript):
                click.echo(line)
    return 0


def _lines(transcript: Transcript) -> Iterator[str]:
    for i, message in sent_messages(transcript):
        value = {"record": i + 1, **message_fields(message)}
        # A half of a surrogate pair has no bytes in UTF-8.
        yield json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()


def message_fields(message: Message) -> dict[str, Any]:
    """What a message says, as a JSON object; what is empty is left out."""
    parts = message.parts
    found: dict[str, Any] = {
        "role": message.role.value,
        "content": message.text,
        "thinking": "\n".join(part.text for part in parts if isinstance(part, Thinking)),
        "calls": [_call(part) for part in parts if isinstance(part, ToolCall)],
        "results": [_result(part) for part in parts if isinstance(part, ToolResult)],
        "media": _media(message),
    }
    kept = ("role", "content") if any(isinstance(part, Text) for part in parts) else ("role",)
    return {key: value for key, value in found.items() if value or key in kept}


def _media(message: Message) -> int:
    """How many images and files there are, those in results too; reasoning that is encrypted is neither."""
    shown = sum(isinstance(part, Media) and part.kind not in OPAQUE_KINDS for part in message.parts)
    return shown + sum(result.media_count for result in message.results)


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = call.arguments if isinstance(call.arguments, str) else dict(call.arguments)
    return {"id": call.id, "name": call.name, "arguments": arguments}


def _result(result: ToolResult) -> dict[str, Any]:
    flags = {"is_error": True} if result.is_error else {}
    media = {"media": result.media_count} if result.media_count else {}
    return {"id": result.id, "text": result.text, **flags, **media}
