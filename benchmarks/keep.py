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
from functools import partial

from compactor_cli.digest.digest import Digest
from compactor_cli.engine import Compaction, compact_transcript
from compactor_cli.evaluate.cuts import CutRule, EvalCase, file_records, find_cases
from compactor_cli.evaluate.measures import Measure, Share, SummaryView, forget, needs_of, score
from compactor_cli.evaluate.run_eval import INCLUDE
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.plan import Action
from compactor_cli.model.settings import KEPT_BY, Keep, Settings, Size, read_size
from compactor_cli.plan.tokens import count_message, counter_for
from compactor_cli.read.sources import Walk, find_sources

SHOWN = (Measure.FUR, Measure.FUR_ANY, Measure.PAIRS, Measure.PHRASES, Measure.USER)
COUNTER = counter_for("auto")


def cases(path: str) -> Iterator[EvalCase]:
    for transcript in open_transcripts(file_records(path)):
        yield from find_cases(transcript, path, CutRule(), partial(count_message, COUNTER))


def compacted(case: EvalCase, settings: Settings) -> Compaction:
    return compact_transcript(case.prefix, settings, counter=COUNTER, summariser=Digest(), load_state=lambda name: None)


def text_of(case: EvalCase, done: Compaction) -> str:
    kept = set(done.plan.indices(Action.KEEP)) | {edit.record for edit in done.plan.edits}
    texts = (event.text for event in case.prefix_events if event.record in kept)
    return "\n".join((*texts, done.summary_text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--target", default="", help="default: none, head and tail as the settings say")
    parser.add_argument("--limit", type=int, default=0, help="files, evenly spread")
    parser.add_argument("--keep", default=",".join(KEPT_BY))
    options = parser.parse_args()
    sources = find_sources(options.paths, recursive=True, walk=Walk(include=INCLUDE))
    step = max(1, len(sources) // options.limit) if options.limit else 1
    sums: dict[tuple[str, Measure], list[Share]] = defaultdict(list)
    tokens: dict[str, int] = defaultdict(int)
    number = 0
    for source in sources[::step]:
        for case in cases(source.path):
            runs = {by: compacted(case, settings_for(by, options.target)) for by in options.keep.split(",")}
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
    print(f"{number} cuts of {len(sources[::step])} files, target {options.target or 'none'}")
    print(f"{'keep':14}{'tokens':>10}" + "".join(f"{measure.value:>10}" for measure in SHOWN))
    for by in tokens:
        print(f"{by:14}{tokens[by]:>10}" + "".join(f"{micro(sums[by, measure]):>10.1f}" for measure in SHOWN))
    sys.stdout.flush()


def settings_for(by: str, target: str) -> Settings:
    wanted = read_size(target, "--target") if target else Size()
    return Settings(target=wanted, keep=Keep(by=by), prune=())


def micro(shares: list[Share]) -> float:
    total = sum(share.total for share in shares)
    return 100 * sum(share.kept for share in shares) / total if total else 0.0


if __name__ == "__main__":
    main()
