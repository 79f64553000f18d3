"""Nearness: exchanges ranked by how near they are to the task: the newest messages of the user, and the focus."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compactor_cli.digest.events import events
from compactor_cli.digest.language import is_term, terms
from compactor_cli.formats.harness import user_text
from compactor_cli.llm.bm25 import Index
from compactor_cli.model.plan import Middle, Ranking

# The messages of the user that say what the task is now.
NEWEST_MESSAGES = 3

_NAME = re.compile(r"[A-Za-z]+_\w+|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+")
_WITHIN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


class WordOverlap:
    """Ranks by BM25: the words that an exchange shares with the task, the rarer the better."""

    def rank(self, middle: Middle) -> Ranking:
        """The blocks that share a word with the task, best first; of equals the newest."""
        index = Index([_terms(text) for text in texts(middle)])
        scores = index.scores(term for text in task(middle) for term in _terms(text))
        return Ranking(order=sorted(scores, key=lambda number: (-scores[number], -number)))


def task(middle: Middle) -> tuple[str, ...]:
    """The newest messages of the user, newest last, and the focus."""
    messages = middle.transcript.messages
    spoken = (user_text(message) for message in reversed(messages))
    newest = [text for text, _ in zip(filter(None, spoken), range(NEWEST_MESSAGES), strict=False)]
    return (*reversed(newest), *((middle.focus,) if middle.focus else ()))


def texts(middle: Middle) -> tuple[str, ...]:
    """What each block says: words, calls and results."""
    found = events(middle.transcript, sorted(_records(middle.blocks)))
    by_record: dict[int, list[str]] = {}
    for event in found:
        by_record.setdefault(event.record, []).append(event.text)
    return tuple("\n".join(text for i in block for text in by_record.get(i, ())) for block in middle.blocks)


def _terms(text: str) -> Iterator[str]:
    """The words that carry meaning, and those within names: ``tide_table`` and ``TideTable`` are about tables."""
    yield from terms(text)
    for name in _NAME.findall(text):
        yield from filter(is_term, (word.lower() for word in _WITHIN.findall(name)))


def _records(blocks: Iterable[range]) -> Iterable[int]:
    return (i for block in blocks for i in block)
