from __future__ import annotations

from compactor_cli.evaluate.measures import Share, SummaryView, Use, retrieval
from compactor_cli.llm.importance import Index

FILLER = "\n".join(f"- note {n}: nothing of interest happened here" for n in range(20))


def test_the_atom_is_found_by_the_words_around_it() -> None:
    use = Use(atom="port_8080", line="start the proxy on port_8080 again")
    assert retrieval([use], SummaryView(f"{FILLER}\nthe proxy listens on port_8080")) == Share(kept=1, total=1)


def test_the_atom_alone_is_not_found() -> None:
    use = Use(atom="port_8080", line="start the proxy on port_8080 again")
    assert retrieval([use], SummaryView("start the proxy\non the proxy\nagain the proxy\nport_8080")).kept == 0


def test_a_line_that_says_nothing_but_the_atom_is_no_question() -> None:
    assert retrieval([Use(atom="port_8080", line="port_8080")], SummaryView("port_8080")).total == 0


def test_a_rare_word_outweighs_a_common_one() -> None:
    lines = ["red fish", "red bird", "red stone", "blue stone"]
    scores = Index([line.split() for line in lines]).scores(["red", "blue"])
    assert max(scores, key=lambda number: scores[number]) == 3


def test_lines_without_any_of_the_words_are_never_found() -> None:
    use = Use(atom="port_8080", line="the green port_8080")
    assert retrieval([use], SummaryView("red fish\nblue bird on port_8080")) == Share(kept=0, total=1)
    assert retrieval([use], SummaryView("")) == Share(kept=0, total=1)
