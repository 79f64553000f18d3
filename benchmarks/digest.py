"""How fast the digest reads, from 1 MB on: the curve should be flat, and memory bounded by what is said, not how often.

    python benchmarks/digest.py              # 1 to 256 MB of content
    python benchmarks/digest.py --most 1024  # up to 1 GB

Content is what a model would be shown. No tokens are counted: a text's length stands for them.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator

from make import Story

from compactor_cli.digest.digest import Digest
from compactor_cli.formats.registry import get
from compactor_cli.model.records import Place, Record
from compactor_cli.model.summariser import Request
from compactor_cli.model.summary import Summary
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.tokens import shown_texts
from compactor_cli.render.text import item_lines

BUDGET_TOKENS = 4_000


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=256, metavar="MB")
    for size_mb in sizes(parser.parse_args().most):
        transcript = transcript_of(size_mb * 1_000_000)
        content = sum(len(text) for message in transcript.messages for text in shown_texts(message))
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
        seconds = time.process_time() - started
        scale = 1 if sys.platform == "darwin" else 1024
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6
        speed = content / 1e6 / seconds
        print(f"{content / 1e6:8.1f} MB {seconds:8.2f} s {speed:6.1f} MB/s {peak_mb:7.0f} MB peak")


if __name__ == "__main__":
    main()
