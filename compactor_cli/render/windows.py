"""Windows: what a model was shown before each compaction of a session, and after the last."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from compactor_cli.formats.base import read_messages
from compactor_cli.formats.registry import get
from compactor_cli.formats.sent import sent
from compactor_cli.model.transcript import Container, Transcript


def windows(transcript: Transcript) -> tuple[Transcript, ...]:
    """The session as it stood before each boundary in it, and as it stands; itself alone where there is none.

    What a later window holds as well is none of its own: a boundary that took nothing away ends no window.
    """
    if transcript.frame.container is Container.ARRAY:
        return (transcript,)
    stages = [_until(transcript, end) for end in _ends(transcript)]
    later = (*stages[1:], transcript)[: len(stages)]
    own = [stage for stage, following in zip(stages, later, strict=True) if _shown(stage) - _shown(following)]
    return (*own, transcript)


def _ends(transcript: Transcript) -> Iterator[int]:
    """Where the records of each boundary begin: its summary, and the client's mark right before it."""
    for i, message in enumerate(transcript.messages):
        if message.summary is None:
            continue
        end = i
        while end and (before := transcript.messages[end - 1]).is_meta and before.superseded:
            end -= 1
        if end:
            yield end


def _until(transcript: Transcript, end: int) -> Transcript:
    records = transcript.records[:end]
    dialect = get(transcript.dialect)
    digest = hashlib.sha256(b"".join(record.raw + record.ending for record in records)).hexdigest()
    return replace(transcript, records=records, messages=read_messages(dialect, records, transcript.row), sha256=digest)


def _shown(transcript: Transcript) -> set[int]:
    return set(sent(transcript))
