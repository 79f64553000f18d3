"""A client's own summary, the digest that its hook sets behind it, and both: what each keeps of the session.

    python benchmarks/native_and_digest.py QUESTIONS.jsonl… FOLDER…

At the cuts of the questions where a client compacted: how many questions each answers, and how often it misleads. At
every compaction of a client in the folders' transcripts: FUR, the share of the names that the agent used after it,
before anything showed them again (mean of the compactions). The digest behind a summary has at most as many
characters as a hook adds; alone, it has the tokens of both together, or of the client's summary.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import mean

from compactor_cli.agents.hook import MOST_CONTEXT_CHARS
from compactor_cli.agents.session_digest import SizeLimit
from compactor_cli.digest.events import EventKind
from compactor_cli.evaluate.cuts import (
    CutProtocol,
    CutRule,
    EvalCase,
    file_records,
    locate,
    plain_events,
    read_cut,
    schema_words,
    segments,
)
from compactor_cli.evaluate.measures import Measure, SummaryView, forget, needs_of, score
from compactor_cli.evaluate.methods import digest_of, framed
from compactor_cli.evaluate.questions import is_misled, questions_by_cut, score_answer
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.errors import CompactError, InputError
from compactor_cli.model.marker import find_marker
from compactor_cli.model.settings import Settings
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.tokens import Counter, count_message, counter_for

LEAST_TOKENS = 300
NAMES = (
    "the client's summary",
    "the client's summary and the digest that the hook adds",
    "the digest alone, of that size",
    "the digest alone, of the size of the client's summary",
)


def texts(case: EvalCase, native: str, counter: Counter) -> tuple[str, ...]:
    """What stands in the context after the compaction, in the order of NAMES."""

    def digest(budget: int, count: Callable[[str], int] = counter.count) -> str:
        return digest_of(case, budget, count, framed(case, budget)).text

    both = f"{native}\n\n{digest(*SizeLimit(chars=MOST_CONTEXT_CHARS).budget(0, Settings(), counter))}"
    return native, both, digest(counter.count(both)), digest(counter.count(native))


def compactions(transcript: Transcript, name: str) -> Iterator[tuple[EvalCase, str]]:
    """Each compaction by a client as a case in which nothing is kept, and the summary that it wrote."""
    for before, after in pairwise(segments(transcript)):
        written = (message.text or message.summary.text for message in after.messages if message.summary)
        native = next(written, "")
        if not native or find_marker(native):
            continue
        events = plain_events(before)
        future = [event for event in plain_events(after) if event.kind is not EventKind.SUMMARY]
        yield (
            EvalCase(
                session=name,
                dialect=before.dialect,
                protocol=CutProtocol.SESSION,
                prefix=before,
                head=(),
                middle=tuple(range(len(before.records))),
                tail=(),
                middle_tokens=sum(count_message(counter_for("estimate"), message) for message in before.messages),
                kept_tokens=0,
                prefix_events=events,
                future_events=tuple(future[: CutRule().most_future_events]),
                schema=schema_words((*events, *future)),
            ),
            native,
        )


def transcripts(folder: Path) -> Iterator[Transcript]:
    """All that can be read below a folder."""
    for path in sorted(path for path in folder.rglob("*") if ".json" in path.name):
        try:
            yield from open_transcripts(file_records(str(path)))
        except CompactError:
            continue


def recall(folders: Iterable[str], counter: Counter) -> None:
    """Print the table of FUR."""
    rows: list[tuple[tuple[int, ...], tuple[float, ...]]] = []
    sessions = set()
    for transcript in (item for folder in folders for item in transcripts(Path(folder))):
        for case, native in compactions(transcript, transcript.sha256):
            needs = needs_of(case)
            if not needs.uses or counter.count(native) < LEAST_TOKENS:
                continue
            found = texts(case, native, counter)
            shares = (score(needs, SummaryView(text))[Measure.FUR].ratio for text in found)
            rows.append((tuple(map(counter.count, found)), tuple(shares)))
            sessions.add(case.session)
        forget()
    print(f"\n{len(rows)} compactions of {len(sessions)} sessions\n\n| | tokens | FUR |\n|---|---|---|")
    for number, name in enumerate(NAMES):
        tokens, share = mean(row[0][number] for row in rows), mean(row[1][number] for row in rows)
        print(f"| {name} | {tokens:,.0f} | {share:.1%} |")


def answered(paths: list[str], counter: Counter) -> None:
    """Print the table of questions."""
    rows: list[tuple[str, int, float, bool, bool]] = []
    taken = 0
    for (file, number), questions in questions_by_cut(paths).items():
        try:
            path = locate(file, questions[0].source)
        except InputError:
            continue
        case, own = read_cut(path, file, number, 0, partial(count_message, counter))
        if counter.count(own) < LEAST_TOKENS:
            continue
        taken += 1
        for name, text in zip(NAMES, texts(case, own, counter), strict=True):
            tokens = counter.count(text)
            rows += [
                (name, tokens, score_answer(question, text), is_misled(question, text), bool(question.wrong))
                for question in questions
            ]
    print(f"{taken} cuts, {len(rows) // len(NAMES)} questions\n\n| | tokens | answered | misled |\n|---|---|---|---|")
    for name in NAMES:
        mine = [row for row in rows if row[0] == name]
        misled = f"{sum(row[3] for row in mine)}/{sum(row[4] for row in mine)}"
        print(f"| {name} | {mean(row[1] for row in mine):,.0f} | {mean(row[2] for row in mine):.1%} | {misled} |")


def main(paths: list[str]) -> None:
    counter = counter_for("auto")
    answered([path for path in paths if not Path(path).is_dir()], counter)
    recall((path for path in paths if Path(path).is_dir()), counter)


if __name__ == "__main__":
    main(sys.argv[1:])
