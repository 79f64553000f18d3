"""Summaries that clients themselves wrote into real transcripts, each with the records that it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from compactor_cli.evaluate.cuts import segments
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import CompactError
from compactor_cli.model.transcript import Transcript
from compactor_cli.read.jsonl import OnInvalid, read_records
from compactor_cli.read.streams import open_stream

# Shorter stretches are notes about a stretch, or sessions of which only the end was committed.
LEAST_MESSAGES = 8
LEAST_SUMMARY_CHARS = 400
# What no summary can be in the file itself.
_SIGNS = (b"isCompactSummary", b"compact", b"state_snapshot", b"Another language model")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSummary:
    """``covered``: the records that the client gave its model; ``text``: the reply, without the client's frame."""

    name: str
    origin: str
    covered: Transcript
    text: str


def client_summaries(folder: Path) -> Iterator[ClientSummary]:
    """Those of every transcript below the folder, in the order of the files."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and ".json" in path.name):
        try:
            with open_stream(str(path)) as stream:
                lines = list(stream.reader)
            if not any(sign in line for line in lines for sign in _SIGNS):
                continue
            records = read_records(lines, str(path), OnInvalid.KEEP)
            transcripts = list(open_transcripts(records, prefix=records.prefix))
        except CompactError:
            continue
        for transcript in transcripts:
            yield from _of(transcript, f"{path.parent.name}/{path.name}")


def _of(transcript: Transcript, name: str) -> Iterator[ClientSummary]:
    parts = list(segments(transcript))
    for number, (before, after) in enumerate(pairwise(parts)):
        first = next((message.summary for message in after.messages if message.summary), None)
        spoken = sum(not message.is_meta for message in before.messages)
        if first and first.origin != "compact" and spoken >= LEAST_MESSAGES and len(first.text) >= LEAST_SUMMARY_CHARS:
            yield ClientSummary(
                name=f"{name}#{number}", origin=first.origin, covered=before, text=as_replied(first.text)
            )


def as_replied(text: str) -> str:
    """The text with the tags that the client took off: the model wrote its analysis and its summary in them."""
    thoughts, mark, summary = text.rpartition("\nSummary:\n")
    return f"<analysis>\n{thoughts}\n</analysis>\n\n<summary>\n{summary.strip()}\n</summary>" if mark else text
