"""Growth: a session that is archived again and again while it grows takes the room of one.

An earlier state that the bytes of a later one begin with is listed as a transcript inside that, by its own hash, and
its own file is taken out: it is restored, expanded and verified as before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from compactor_cli.archive.folder import SIDECAR_ENDING, ManifestEntry, Part, read_entries, read_parts, stored_name
from compactor_cli.archive.restore import Listed
from compactor_cli.archive.store import Archive
from compactor_cli.archive.verify import remove
from compactor_cli.model.transcript import Transcript


def store_session(archive: Archive, transcript: Transcript, source: str) -> None:
    """Store a session as it is now, read from ``source``; what it grew from is found inside it from then on.

    Durable on return: the earlier states are taken out after it. Raises `OutputError`, `Unreadable`.
    """
    data = transcript.source()
    earlier = tuple(_earlier(archive, data, source)) if source else ()
    with archive.writer() as writer:
        writer(data)
        if earlier:
            own = Part(sha256=writer.sha256, offset=0, length=len(data))
            for part in dict.fromkeys((own, *_inside(archive, earlier))):
                writer.add_part(part)
        blob = writer.commit()
    archive.record(blob, records=len(transcript.records), dialect=transcript.dialect, source=source)
    remove((Listed(archive=archive.folder, entry=entry) for entry in earlier), with_index=False)


def _earlier(archive: Archive, data: bytes, source: str) -> Iterator[ManifestEntry]:
    """The originals that were only ever archived from here, and that the session goes on from."""
    entries = [entry for _, entry in read_entries(archive.folder) if entry]
    others = {entry.sha256 for entry in entries if entry.source != source or entry.written_sha256}
    own = {entry.sha256: entry for entry in entries if entry.sha256 not in others and entry.bytes < len(data)}
    digest, at = hashlib.sha256(), 0
    for entry in sorted(own.values(), key=lambda entry: entry.bytes):
        digest.update(memoryview(data)[at : entry.bytes])
        at = entry.bytes
        if digest.hexdigest() == entry.sha256:
            yield entry


def _inside(archive: Archive, entries: tuple[ManifestEntry, ...]) -> Iterator[Part]:
    """These originals and the transcripts in them: their bytes lie at the same places in what grew from them."""
    for entry in entries:
        sidecar = archive.folder / stored_name(entry.sha256, SIDECAR_ENDING)
        if sidecar.exists():
            yield from read_parts(sidecar)
        yield Part(sha256=entry.sha256, offset=0, length=entry.bytes)
