"""What stays next to the newest: how much of what the agent went on to need is in the whole compacted transcript.

    python benchmarks/keep.py ../shared/corpus-train              # as without options: 16k tokens of tail
    python benchmarks/keep.py ../shared/corpus-train --target 15%

Real transcripts are cut as `compactor eval` cuts them; what is before each cut is compacted to the same target
by each ``--keep``, and summary, head and all that was kept are searched for what came after.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from compactor_cli.digest.digest import Digest
from compactor_cli.engine import Compaction, compact_transcript
from compactor_cli.evaluate.cuts import CutRule, EvalCase, find_cases
from compactor_cli.evaluate.measures import Measure, Share, SummaryView, forget, needs_of, score
from compactor_cli.evaluate.run_eval import INCLUDE
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.plan import Action
from compactor_cli.model.settings import KEPT_BY, Keep, Settings, Size, read_size
from compactor_cli.plan.tokens import count_message, counter_for
from compactor_cli.read.jsonl import read_records
from compactor_cli.read.sources import Walk, find_sources
from compactor_cli.read.streams import open_stream

SHOWN = (Measure.FUR, Measure.FUR_ANY, Measure.PAIRS, Measure.PHRASES, Measure.USER)
COUNTER = counter_for("auto")


def cases(path: str) -> Iterator[EvalCase]:
    with open_stream(path) as stream:
        transcripts = tuple(open_transcripts(read_records(stream.reader, path)))
    for transcript in transcripts:
        yield from find_cases(transcript, path, CutRule(), lambda message: count_message(COUNTER, message))


def compacted(case: EvalCase, settings: Settings) -> Compaction:
    return compact_transcript(case.prefix, settings, counter=COUNTER, summariser=Digest(), load_state=lambda name: None)


def text_of(case: EvalCase, done: Compaction) -> str:
    kept = set(done.plan.indices(Action.KEEP)) | {edit.record for edit in done.plan.edits}
    said = (event.text for event in case.prefix_events if event.record in kept)
    return "\n".join((*said, done.summary_text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--target", default="", help="default: none, head and tail as the settings say")
    parser.add_argument("--limit", type=int, default=0, help="files, evenly spread")
    parser.add_argument("--keep", default=",".join(KEPT_BY))
    run_options = parser.parse_args()
    sources = find_sources(run_options.paths, recursive=True, walk=Walk(include=INCLUDE))
    step = max(1, len(sources) // run_options.limit) if run_options.limit else 1
    sums: dict[tuple[str, Measure], list[Share]] = defaultdict(list)
    tokens: dict[str, int] = defaultdict(int)
    number = 0
    for source in sources[::step]:
        for case in cases(source.path):
            runs = {by: compacted(case, wishes_of(by, run_options.target)) for by in run_options.keep.split(",")}
            if not all(done.changed for done in runs.values()):
                continue
            number += 1
            everything = replace(case, head=(), middle=tuple(range(len(case.prefix.records))), tail=())
            needs = needs_of(everything)
            for by, done in runs.items():
                tokens[by] += done.report.tokens_after
                for measure, share in score(needs, SummaryView(text_of(case, done))).items():
                    sums[by, measure].append(share)
        forget()
    print(f"{number} cuts of {len(sources[::step])} files, target {run_options.target or 'none'}")
    print(f"{'keep':14}{'tokens':>10}" + "".join(f"{measure.value:>10}" for measure in SHOWN))
    for by in tokens:
        print(f"{by:14}{tokens[by]:>10}" + "".join(f"{micro(sums[by, measure]):>10.1f}" for measure in SHOWN))
    sys.stdout.flush()


def wishes_of(by: str, target: str) -> Settings:
    wanted = read_size(target, "--target") if target else Size()
    return Settings(target=wanted, keep=Keep(by=by), prune=())


def micro(shares: list[Share]) -> float:
    total = sum(share.total for share in shares)
    return 100 * sum(share.kept for share in shares) / total if total else 0.0


if __name__ == "__main__":
    main()
