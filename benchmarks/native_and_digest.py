"""A client's own summary, the digest that its hook sets behind it, and both: how many questions each answers.

    python benchmarks/native_and_digest.py QUESTIONS.jsonl…

At every cut of the questions where a client compacted. The digest behind a summary has at most as many characters as a
hook adds; alone, it has the tokens of both together.
"""

from __future__ import annotations

import sys
from functools import partial
from statistics import mean

from compactor_cli.agents.hook import MOST_CONTEXT_CHARS
from compactor_cli.agents.session_digest import SizeLimit
from compactor_cli.evaluate.cuts import locate, read_cut
from compactor_cli.evaluate.digested import framed, request_from, the_digest
from compactor_cli.evaluate.questions import is_misled, questions_by_cut, score_answer
from compactor_cli.model.errors import InputError
from compactor_cli.model.settings import Settings
from compactor_cli.plan.tokens import count_message, counter_for

LEAST_TOKENS = 300


def main(paths: list[str]) -> None:
    counter = counter_for("auto")
    rows: list[tuple[str, int, float, bool, bool]] = []
    taken = 0
    for (file, number), questions in questions_by_cut(paths).items():
        try:
            path = locate(file, questions[0].source)
        except InputError:
            continue
        cut = read_cut(path, file, number, 0, partial(count_message, counter))
        if counter.count(cut.client_summary) < LEAST_TOKENS:
            continue
        taken += 1
        asked, native = request_from(cut.case), cut.client_summary
        budget, count = SizeLimit(chars=MOST_CONTEXT_CHARS).budget(0, Settings(), counter)
        behind = the_digest().digest(asked, budget, count, framed(cut.case, budget)).text
        both = f"{native}\n\n{behind}"
        total = counter.count(both)
        alone = the_digest().digest(asked, total, counter.count, framed(cut.case, total)).text
        equal = counter.count(native)
        small = the_digest().digest(asked, equal, counter.count, framed(cut.case, equal)).text
        for name, text in (
            ("the client's summary", native),
            ("the digest, of its size", small),
            ("the digest, of the size of both", alone),
            ("**the client's summary and the digest**", both),
        ):
            tokens = counter.count(text)
            rows += [
                (name, tokens, score_answer(question, text), is_misled(question, text), bool(question.wrong))
                for question in questions
            ]
    print(f"{taken} cuts, {len(rows) // 4} questions\n\n| | tokens | answered | misled |\n|---|---|---|---|")
    for name in dict.fromkeys(row[0] for row in rows):
        mine = [row for row in rows if row[0] == name]
        misled = f"{sum(row[3] for row in mine)}/{sum(row[4] for row in mine)}"
        print(f"| {name} | {mean(row[1] for row in mine):,.0f} | {mean(row[2] for row in mine):.1%} | {misled} |")


if __name__ == "__main__":
    main(sys.argv[1:])
