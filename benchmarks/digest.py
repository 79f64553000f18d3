"""How fast the digest reads: one long conversation of generated text, and datasets of generated and of real rows.

    python benchmarks/digest.py              # 1 to 256 MB of content in one conversation, then datasets of 20 MB
    python benchmarks/digest.py --most 1024  # up to 1 GB
    python benchmarks/digest.py --most 0     # datasets only

The curve of one conversation should be flat, and memory bounded by what is said, not how often. Content is what a
model would be shown. No tokens are counted: a text's length stands for them. Real rows are cut from the sessions below
``--sessions``; generated text repeats 9 % of its lines, real text 46 %.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from make import Story, real_rows, rows

from compactor_cli.__main__ import GC_THRESHOLDS
from compactor_cli.digest.digest import Digest
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.registry import get
from compactor_cli.model.errors import Place
from compactor_cli.model.summary import Request, Summary
from compactor_cli.model.transcript import Record, Transcript
from compactor_cli.plan.tokens import shown_texts
from compactor_cli.read.jsonl import read_records
from compactor_cli.render.template import item_lines

BUDGET_TOKENS = 4_000
SESSIONS = Path("../shared/corpus-train")


def transcript_of(size_bytes: int) -> Transcript:
    place = Place(path="made", line=1)
    values = Story(1).messages(size_bytes)
    records = tuple(Record(raw=b"{}", ending=b"\n", value=value, place=place) for value in values)
    return Transcript(dialect="openai-chat", records=records, messages=get("openai-chat").read(records))


def text_of(summary: Summary) -> str:
    return "\n".join(line for part in summary.sections for line in item_lines(part.items))


def sizes(most_mb: int) -> Iterator[int]:
    size_mb = 1
    while size_mb <= most_mb:
        yield size_mb
        size_mb *= 4


def digest_seconds(transcript: Transcript) -> float:
    """The processor time that the digest of a whole transcript takes."""
    request = Request(
        transcript=transcript,
        covered=tuple(range(len(transcript.records))),
        kept=(),
        budget_tokens=BUDGET_TOKENS,
        render=text_of,
        count=lambda text: len(text) // 4,
    )
    started = time.process_time()
    Digest().summarise(request)
    return time.process_time() - started


def content_mb(transcript: Transcript) -> float:
    return sum(len(text) for message in transcript.messages for text in shown_texts(message)) / 1e6


def repeated_ratio(transcripts: Iterable[Transcript]) -> float:
    """The share of a dataset's lines that stand in it before."""
    total, distinct = 0, set()
    for transcript in transcripts:
        for message in transcript.messages:
            lines = [line for text in shown_texts(message) for line in text.split("\n") if line.strip()]
            total += len(lines)
            distinct.update(lines)
    return 1 - len(distinct) / total


def one_conversation(size_mb: int) -> str:
    transcript = transcript_of(size_mb * 1_000_000)
    content, seconds = content_mb(transcript), digest_seconds(transcript)
    scale = 1 if sys.platform == "darwin" else 1024
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6
    return f"{content:8.1f} MB {seconds:8.2f} s {content / seconds:6.1f} MB/s {peak_mb:7.0f} MB peak"


def dataset(name: str, lines: Iterable[bytes]) -> str:
    """CPU for each row and each MB of content."""
    transcripts = list(open_transcripts(read_records(lines, name)))
    content = sum(map(content_mb, transcripts))
    seconds = sum(map(digest_seconds, transcripts))
    count = len(transcripts)
    return (
        f"{name:9} {count:4} rows {content:6.1f} MB {100 * repeated_ratio(transcripts):3.0f} % of lines repeated"
        f" {seconds:7.2f} s {1000 * seconds / count:7.1f} ms/row {1000 * seconds / content:7.1f} ms/MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=256, metavar="MB")
    parser.add_argument("--dataset", type=int, default=20, metavar="MB", help="size of the datasets; 0: none")
    parser.add_argument("--sessions", type=Path, default=SESSIONS, metavar="FOLDER")
    asked = parser.parse_args()
    gc.set_threshold(*GC_THRESHOLDS)
    for size_mb in sizes(asked.most):
        print(one_conversation(size_mb), flush=True)
    if asked.dataset:
        print(dataset("generated", rows(asked.dataset * 1_000_000)), flush=True)
        try:
            print(dataset("real", real_rows(asked.sessions, asked.dataset * 1_000_000)))
        except FileNotFoundError as error:
            print(f"real rows skipped: {error}")


if __name__ == "__main__":
    main()
