"""Cuts: the places at which real transcripts are cut for an evaluation, deterministic and never across a compaction.

Cuts are found by a rule, or named by questions. Events are as the measures see them: without the names of tools'
parameters and without what a client writes itself. Neither is about the work: `file_path` is in every call, whatever a
summary keeps.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from compactor_cli.digest.cleaning import without_block
from compactor_cli.digest.events import Event, EventKind, events
from compactor_cli.digest.tools import ToolKind, parameters
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import InputError
from compactor_cli.model.marker import find_marker
from compactor_cli.model.transcript import Container, Message, Record, Role, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.read.jsonl import OnInvalid, records_in
from compactor_cli.read.streams import open_stream

CountMessage = Callable[[Message], int]


class CutProtocol(StrEnum):
    """The rule by which a cut was made."""

    SESSION = "session"  # middle and tail as large as in a full window
    SHORT = "short"  # for transcripts too short for that: all sizes in proportion


@dataclass(frozen=True, slots=True, kw_only=True)
class CutRule:
    """Where a segment may be cut."""

    protocol: CutProtocol = CutProtocol.SESSION
    fractions: tuple[float, ...] = (0.25, 0.4, 0.55, 0.7, 0.85)  # of the segment's tokens
    tail_tokens: int = 8_000
    tail_ratio: float = 1.0  # the tail takes at most this share of what is before the cut
    least_middle_tokens: int = 4_000
    least_future_events: int = 20  # after the cut
    most_future_events: int = 400  # of those after the cut, this many count


SHORT_RULE = CutRule(
    protocol=CutProtocol.SHORT, fractions=(0.6, 0.8), tail_ratio=0.15, least_middle_tokens=400, least_future_events=4
)


@dataclass(frozen=True, kw_only=True)
class EvalCase:
    """One cut: what is compacted, and what came after it. Cuts of one session are not independent."""

    session: str  # the name of the transcript
    dialect: str
    protocol: CutProtocol
    prefix: Transcript  # the records before the cut; the next three fields divide their positions
    head: tuple[int, ...]
    middle: tuple[int, ...]
    tail: tuple[int, ...]
    middle_tokens: int
    kept_tokens: int  # of head and tail
    prefix_events: tuple[Event, ...]
    future_events: tuple[Event, ...]
    schema: frozenset[str] = frozenset()  # names of tools' parameters, which no measure counts

    @property
    def name(self) -> str:
        """The name of the session, and the number of records before the cut."""
        return f"{self.session}@{len(self.prefix.records)}"

    @cached_property
    def head_events(self) -> tuple[Event, ...]:
        """The events of the head."""
        return self._events(self.head)

    @cached_property
    def middle_events(self) -> tuple[Event, ...]:
        """The events of the middle."""
        return self._events(self.middle)

    @cached_property
    def tail_events(self) -> tuple[Event, ...]:
        """The events of the tail."""
        return self._events(self.tail)

    def _events(self, indices: tuple[int, ...]) -> tuple[Event, ...]:
        return tuple(event for event in self.prefix_events if indices and indices[0] <= event.record <= indices[-1])

    @cached_property
    def is_chat(self) -> bool:
        """Whether the agent does no work on files in the middle, as in customer service."""
        return not any(event.tool in _FILE_WORK for event in self.middle_events)


def find_cases(transcript: Transcript, session: str, rule: CutRule, count: CountMessage) -> Iterator[EvalCase]:
    """The cases of a transcript by this rule, or by `SHORT_RULE` if it finds none."""
    found = False
    for used in dict.fromkeys((rule, replace(SHORT_RULE, tail_tokens=rule.tail_tokens))):
        for segment in segments(transcript):
            for case in _cases(segment, session, used, count):
                found = True
                yield case
        if found:
            return


def segments(transcript: Transcript) -> Iterator[Transcript]:
    """The stretches between compactions; each begins with the summary of the compaction before it.

    No message in a stretch is marked as superseded: that mark comes from a later compaction, which is not known yet
    when the stretch is compacted.
    """
    messages = tuple(replace(message, superseded=False) for message in transcript.messages)
    starts = [0]
    for i, message in enumerate(messages):
        is_next = i > 0 and message.summary is not None and messages[i - 1].summary is None
        if is_next and any(not earlier.is_meta for earlier in messages[starts[-1] : i]):
            starts.append(i)
    for start, stop in zip(starts, (*starts[1:], len(messages)), strict=True):
        yield part_of(replace(transcript, messages=messages), range(start, stop))


def part_of(transcript: Transcript, indices: Sequence[int]) -> Transcript:
    """A transcript of some of the records, with its own hash."""
    records = tuple(transcript.records[i] for i in indices)
    return hashed(replace(transcript, records=records, messages=tuple(transcript.messages[i] for i in indices)))


def hashed(transcript: Transcript) -> Transcript:
    """The transcript with the hash of the records that it has now."""
    return replace(transcript, sha256=hashlib.sha256(transcript.source()).hexdigest())


def _cases(segment: Transcript, session: str, rule: CutRule, count: CountMessage) -> Iterator[EvalCase]:
    sizes = [0 if message.is_meta else count(message) for message in segment.messages]
    before_each = list(accumulate(sizes, initial=0))
    total = before_each.pop()
    if total < rule.least_middle_tokens:
        return
    safe = group(segment.messages).borders
    found = plain_events(segment)
    # The head ends after the first message of the user, or after the summary that replaced it.
    first = next((event.record for event in found if event.kind in (EventKind.USER, EventKind.SUMMARY)), -1)
    # Cuts are at the first safe point after each fraction of the tokens.
    places = [i for i in safe if i < len(sizes)]
    reached = (next((i for i in places if before_each[i] >= part * total), None) for part in rule.fractions)
    for at in filter(None, dict.fromkeys(reached)):
        future = tuple(event for event in found if event.record >= at)[: rule.most_future_events]
        before = [point for point in safe if point <= at]
        head = next((point for point in before if point > first), 0)
        most = min(rule.tail_tokens, int(sum(sizes[:at]) * rule.tail_ratio))
        tail = next((point for point in before if sum(sizes[point:at]) <= most), at)
        is_long = tail > head and sum(sizes[head:tail]) >= rule.least_middle_tokens
        if is_long and len(future) >= rule.least_future_events:
            yield _made(session, rule.protocol, part_of(segment, range(at)), head, tail, sizes[:at], found, future)


def _made(
    session: str,
    protocol: CutProtocol,
    prefix: Transcript,
    head: int,
    tail: int,
    sizes: Sequence[int],
    everything: Sequence[Event],
    future: Sequence[Event],
) -> EvalCase:
    """A case whose middle is from record ``head`` up to ``tail``; ``sizes`` are the tokens of the prefix's records."""
    middle_tokens = sum(sizes[head:tail])
    return EvalCase(
        session=session,
        dialect=prefix.dialect,
        protocol=protocol,
        prefix=prefix,
        head=tuple(range(head)),
        middle=tuple(range(head, tail)),
        tail=tuple(range(tail, len(sizes))),
        middle_tokens=middle_tokens,
        kept_tokens=sum(sizes) - middle_tokens,
        prefix_events=tuple(event for event in everything if event.record < len(sizes)),
        future_events=tuple(future),
        schema=schema_words(everything),
    )


_FILE_WORK = frozenset({ToolKind.EDIT, ToolKind.READ, ToolKind.COMMAND})
# A client's summary is looked for among this many records before and after the cut.
CLIENT_BEFORE, CLIENT_AFTER = 1, 3
# The tail takes at most this share of what follows the head, so that the rest is left to be summarised.
MOST_TAIL_RATIO = 0.5


def locate(file: str, source: str) -> Path:
    """The path of a transcript that the questions file ``source`` names.

    It is searched for in the folder of ``source``, the one above, and the working directory. Raises InputError if it is
    in none of them.
    """
    folder = Path(source).resolve().parent
    places = (base / file for base in (folder, folder.parent, Path()))
    if found := next(filter(Path.is_file, places), None):
        return found
    raise InputError("there is no such file")


def file_records(path: str) -> list[Record]:
    """The records of a file, including lines that are not JSON. Raises InputError as `open_stream`."""
    with open_stream(path) as stream:
        return list(records_in(stream, OnInvalid.KEEP))


def read_cut(path: Path, name: str, cut: int, tail_tokens: int, count: CountMessage) -> tuple[EvalCase, str]:
    """The conversation before a cut as a case, and the summary that the client itself wrote there (or an empty text).

    ``cut`` is a record, counted from 1: a line, or an element of the array in the document. Raises InputError if the
    file is not a transcript, or nothing is before the cut.
    """
    records = file_records(str(path))
    whole = next(open_transcripts(records))
    if whole.frame.container is Container.ARRAY and len(records) == 1:
        prefix: Transcript | None = part_of(whole, range(min(cut - 1, len(whole.records))))
    else:
        # The last session before the line, read as if nothing followed.
        before = [record for record in records if record.place.line < cut]
        found = tuple(open_transcripts(before)) if before else ()
        prefix = found[-1] if found else None
    if not prefix or not prefix.messages:
        raise InputError(f"nothing precedes record {cut}", next_step="check the cut", place=str(path))
    messages = prefix.messages
    sizes = [0 if message.is_meta else count(message) for message in messages]
    safe = group(messages).borders
    # The head ends after the first record of the user, even if it is a notice of the client.
    first = next((i for i, message in enumerate(messages) if message.role is Role.USER), -1)
    head = next((border for border in safe if border > first), 0)
    most = min(tail_tokens, int(sum(sizes[head:]) * MOST_TAIL_RATIO))
    tail = next((border for border in safe if border >= head and sum(sizes[border:]) <= most), len(messages))
    case = _made(name, CutProtocol.SESSION, prefix, head, tail, sizes, plain_events(prefix), ())
    near = [record for record in records if cut - CLIENT_BEFORE <= record.place.line <= cut + CLIENT_AFTER]
    around: list[Message] = []
    with suppress(InputError):
        around = [one for part in open_transcripts(near if len(records) > 1 else ()) for one in part.messages]
    texts = (message.text or message.summary.text for message in around if message.summary)
    return case, next((text for text in texts if not find_marker(text)), "")


# Blocks that a client writes itself, and tags that it puts around somebody's words or the output of a program.
_BLOCKS = ("system-reminder", "command-message", "local-command-caveat")
_MARK = re.compile(
    "</?(?:bash-input|bash-stdout|bash-stderr|command-name|command-args|local-command-stdout|local-command-stderr"
    "|persisted-output|tool_use_error|task-notification|task-id|tool-use-id|output-file|user-prompt-submit-hook)>"
)


def plain_events(transcript: Transcript) -> tuple[Event, ...]:
    """The events of a whole transcript, without what clients write themselves.

    An event that has nothing else gets an empty text. A call's text is its name and a line for each value of its
    arguments.
    """
    found: list[Event] = []
    for event in events(transcript, range(len(transcript.messages))):
        text = "\n".join((event.name, *_values(event.arguments))) if event.kind is EventKind.CALL else event.text
        if "<" in text:
            for tag in _BLOCKS:
                text = without_block(text, tag)
            text = _MARK.sub("", text)
        found.append(replace(event, text=text))
    return tuple(found)


def schema_words(events: Iterable[Event]) -> frozenset[str]:
    """The names of the parameters in the calls of these events, including nested ones."""
    calls = (event.arguments for event in events if event.kind is EventKind.CALL)
    return frozenset(name for call in calls for name, _ in parameters(call) if _is_parameter(name))


def _is_parameter(name: str) -> bool:
    """Whether a key is a name in a schema, and not a path, a variable of the environment or other content."""
    return name.isidentifier() and not name.isupper()


def _values(arguments: Any) -> Iterator[str]:
    """A line for each value; a list of texts is one line. A key that is not the name of a parameter is a line too."""
    if isinstance(arguments, Mapping):
        for name, value in arguments.items():
            if not _is_parameter(name):
                yield name
            yield from _values(value)
    elif isinstance(arguments, tuple) and not all(isinstance(item, str) for item in arguments):
        for item in arguments:
            yield from _values(item)
    elif isinstance(arguments, tuple):
        yield " ".join(arguments)
    else:
        yield arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
