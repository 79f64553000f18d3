"""The cuts that questions name, and the client's own summary where a client compacted there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compactor_cli.evaluate.cuts import CountMessage, EvalCase, Protocol, part_of
from compactor_cli.evaluate.plain_events import plain_events, schema_words
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import InputError
from compactor_cli.model.marker import find_marker
from compactor_cli.model.records import Record
from compactor_cli.model.transcript import Container, Message, Role, Transcript
from compactor_cli.read.jsonl import OnInvalid, read_records
from compactor_cli.read.streams import open_stream

# A client writes its summary with its boundary: a few records around the cut.
CLIENT_BEFORE, CLIENT_BEHIND = 1, 3
# However large the tail may be, half of what follows the head is left to be summarised.
MOST_TAIL_RATIO = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionCut:
    """A cut that questions name: what is before it, and what the client wrote there itself (or empty)."""

    case: EvalCase
    client_summary: str


def locate(file: str, source: str) -> Path | None:
    """The transcript that a line of the questions file ``source`` names: from its folder, the one above, or here."""
    folder = Path(source).resolve().parent
    places = (base / file for base in (folder, folder.parent, Path()))
    return next((path for path in places if path.is_file()), None)


def read_cut(path: Path, name: str, cut: int, tail_tokens: int, count: CountMessage) -> QuestionCut:
    """The conversation before record ``cut`` (a line, or an element of the array that the document holds).

    Raises InputError where the file is no transcript or the cut is not in it.
    """
    with open_stream(str(path)) as stream:
        records = list(read_records(stream.reader, str(path), OnInvalid.KEEP))
    prefix = _array_before(records, cut) or _lines_before(records, cut)
    if not prefix or not prefix.messages:
        raise InputError(f"nothing stands before record {cut}", next_step="check the cut", place=str(path))
    return QuestionCut(
        case=_case(prefix, name, tail_tokens, count),
        client_summary=_client_summary(records, cut),
    )


def _array_before(records: Sequence[Record], cut: int) -> Transcript | None:
    """The first elements, where the whole input is one document with an array of records."""
    first = next(open_transcripts(records))
    is_document = first.frame.container is Container.ARRAY and len(records) == 1
    return part_of(first, 0, cut - 1) if is_document else None


def _lines_before(records: Sequence[Record], cut: int) -> Transcript | None:
    """The session that reaches up to the line, read without knowing what follows."""
    before = [record for record in records if record.place.line < cut]
    found = tuple(open_transcripts(before)) if before else ()
    return found[-1] if found else None


def _case(prefix: Transcript, name: str, tail_tokens: int, count: CountMessage) -> EvalCase:
    messages = prefix.messages
    at = len(messages)
    sizes = [0 if message.is_meta else count(message) for message in messages]
    safe = group(messages).borders
    head = _head_end(messages, safe)
    most = min(tail_tokens, int(sum(sizes[head:]) * MOST_TAIL_RATIO))
    tail = next((border for border in safe if border >= head and sum(sizes[border:]) <= most), at)
    middle_tokens = sum(sizes[head:tail])
    found = plain_events(prefix)
    return EvalCase(
        session=name,
        dialect=prefix.dialect,
        protocol=Protocol.SESSION,
        prefix=prefix,
        head=tuple(range(head)),
        middle=tuple(range(head, tail)),
        tail=tuple(range(tail, at)),
        middle_tokens=middle_tokens,
        kept_tokens=sum(sizes) - middle_tokens,
        prefix_events=found,
        future_events=(),
        schema=schema_words(found),
    )


def _head_end(messages: Sequence[Message], safe: Sequence[int]) -> int:
    """After the first record of the user, whatever it says: a notice of the client among them."""
    first = next((i for i, message in enumerate(messages) if message.role is Role.USER), -1)
    return next((border for border in safe if border > first), 0)


def _client_summary(records: Sequence[Record], cut: int) -> str:
    """What the client's own summary at the cut says, whole; empty where it wrote none."""
    near = [record for record in records if cut - CLIENT_BEFORE <= record.place.line <= cut + CLIENT_BEHIND]
    if len(records) == 1 or not near:
        return ""
    try:
        messages = [message for part in open_transcripts(near) for message in part.messages]
    except InputError:
        return ""
    texts = (message.text or message.summary.text for message in messages if message.summary)
    return next((text for text in texts if not find_marker(text)), "")
