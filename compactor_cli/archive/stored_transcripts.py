"""Originals: the transcripts in an archive, read as they were when they were compacted."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from compactor_cli.archive.layout import open_stored
from compactor_cli.archive.restore import FoundOriginal, find, restore
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import InputError, UnknownShape
from compactor_cli.model.transcript import Transcript
from compactor_cli.read.jsonl import OnInvalid, read_records


def transcripts_in(path: Path, on_invalid: OnInvalid = OnInvalid.KEEP) -> Iterator[Transcript]:
    """All transcripts of a stored file, one at a time. Raises InputError."""
    with open_stored(path) as stream:
        records = read_records(stream.reader, str(path), on_invalid)
        yield from open_transcripts(records, prefix=records.prefix)


def load_transcript(folders: Iterable[str | Path], prefix: str) -> Transcript:
    """The one archived transcript whose SHA-256 begins with ``prefix``. Raises as `find`, and for damage."""
    found = find(folders, prefix)
    transcript = _alone(found)
    if transcript is None and found.length >= 0:
        transcript = next(
            (item for item in transcripts_in(found.path, found.on_invalid) if item.sha256 == found.sha256), None
        )
    if transcript is None:
        advice = "give the hash in the summary of one of them"
        raise InputError(f"{prefix} is a file of several conversations", place=str(found.path), next_step=advice)
    return transcript


def _alone(found: FoundOriginal) -> Transcript | None:
    """The transcript that exactly these bytes are. A row with a comma or bracket next to it is none by itself."""
    content = io.BytesIO()
    restore(found, content)
    content.seek(0)
    records = read_records(content, str(found.path), OnInvalid.KEEP)
    try:
        transcripts = open_transcripts(records, prefix=records.prefix)
        return next((item for item in transcripts if item.sha256 == found.sha256), None)
    except UnknownShape:
        if found.length < 0:
            raise
        return None
