"""How fast an archive is indexed and searched, and how large its index is.

    python benchmarks/recall.py            # 10,000 sessions
    python benchmarks/recall.py --quick    # 500

Next to each figure stands a floor measured in the same run: unpacking and reading the same archive without indexing it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
from make import Story

from compactor_cli.archive.index import index_file, opened, searched_text
from compactor_cli.archive.restore import transcripts_in
from compactor_cli.archive.search import Filter, search
from compactor_cli.archive.store import Archive, stored_blobs

SESSION_BYTES = 22_000
DIGITS = b"0123456789"
VARIANTS = 8
QUERIES = ("cache_client_1*", "planner counts tokens", "engine OR parser", '"second run safe"', "record")


def fill(folder: Path, sessions: int) -> int:
    """An archive of sessions, each with names and numbers of its own; the bytes in it, unpacked."""
    os.fsync = lambda descriptor: None  # type: ignore[assignment]  # the archive's durability is not measured here
    archive = Archive(folder)
    size_bytes = 0
    for number in range(sessions):
        story, variant = divmod(number, VARIANTS)
        if not variant:
            lines = (orjson.dumps(message) + b"\n" for message in Story(story).messages(SESSION_BYTES))
            session = b"".join(lines)
        digits = DIGITS[variant:] + DIGITS[:variant]
        with archive.writer() as writer:
            writer(session.translate(bytes.maketrans(DIGITS, digits)))
            blob = writer.commit()
        archive.record(replace(blob, records=1, dialect="openai-chat", source=f"/sessions/{number:05}.jsonl"))
        size_bytes += blob.bytes
    return size_bytes


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def read(folder: Path) -> int:
    """The bytes of text in an archive, read and not indexed."""
    return sum(
        len(searched_text(message).encode())
        for _, path in stored_blobs(folder)
        for transcript in transcripts_in(path)
        for message in transcript.messages
    )


def build(folder: Path) -> None:
    with opened(folder, rebuild=True):
        pass


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--quick", action="store_true")
    sessions = 500 if arguments.parse_args().quick else 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "archive"
        size_bytes = fill(folder, sessions)
        time.sleep(2.1)  # until then, the index does not trust the times of folders
        started = time.perf_counter()
        text_bytes = read(folder)
        floor = time.perf_counter() - started
        built = seconds(lambda: build(folder))
        index_bytes = index_file(folder).stat().st_size
        print(f"{sessions:,} sessions, {size_bytes / 1e6:,.1f} MB, {text_bytes / 1e6:,.1f} MB of text")
        print(f"read only (floor)    {floor:8.2f} s {size_bytes / floor / 1e6:8.1f} MB/s")
        print(
            f"indexed from nothing {built:8.2f} s {size_bytes / built / 1e6:8.1f} MB/s  {built / floor:.2f} x the floor"
        )
        print(f"index                {index_bytes / 1e6:8.1f} MB {index_bytes / text_bytes:8.1%} of the text")
        for query in QUERIES:
            taken = [seconds(lambda query=query: search([folder], query)) for _ in range(5)]  # type: ignore[misc]
            print(f"search {query:<22} {statistics.median(taken) * 1000:8.1f} ms")
        taken = [seconds(lambda: search([folder], "record", only=Filter(session="/sessions/00007"))) for _ in range(5)]
        print(f"search in one session         {statistics.median(taken) * 1000:8.1f} ms")


if __name__ == "__main__":
    main()
