"""Retrieval: in place of a summary, the passages of the covered records that the newest user message asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from compactor_cli.archive.excerpts import excerpts
from compactor_cli.archive.texts import text_of
from compactor_cli.digest.words import terms
from compactor_cli.group.turns import is_user_words
from compactor_cli.llm.omission_notice import language_of
from compactor_cli.model.summary import Answer, Item, Request, Section, SectionItems, Source, Summary

# A longer message is not asked as it stands but by its salient words, and of a still longer one only the two ends
# are looked at (the numbers are Qwen-Agent's).
QUERY_CHARS = 1_000
LOOKED_AT_CHARS = 2_000
SALIENT_WORDS = 32
# What is left of the budget for excerpts where the frame around them took more than was thought.
_SHRINK_RATIO = 0.85
_ROUNDS = 12


class Retrieval:
    """A summariser that looks up instead of summing up. Same request, same answer; no model."""

    def summarise(self, request: Request) -> Answer:
        """The excerpts, in the order of the transcript, each with its record, within the budget.

        Where nothing shares a word with the query, the summary has no sections.
        """
        language = language_of(request)
        query = " ".join(filter(None, (query_of(request), request.focus)))
        empty = Summary(source=Source.EXCERPTS, sections=(), language=language)
        budget = request.budget_tokens - request.count(request.render(empty))
        for _ in range(_ROUNDS):
            found = excerpts(
                request.transcript, query, budget_tokens=max(budget, 0), count=request.count, records=request.covered
            )
            items = tuple(Item(text=excerpt.text.strip("\n"), records=(excerpt.record,)) for excerpt in found)
            sections = (SectionItems(section=Section.HISTORY, items=items),) if items else ()
            summary = Summary(source=Source.EXCERPTS, sections=sections, language=language)
            if request.count(request.render(summary)) <= request.budget_tokens:
                return Answer(summary=summary)
            budget = int(budget * _SHRINK_RATIO)
        return Answer(summary=empty)


def query_of(request: Request) -> str:
    """The newest words of the user; of a long message its salient words: those that the fewest covered records have."""
    messages = request.transcript.messages
    text = next((message.text for message in reversed(messages) if is_user_words(message)), "")
    if len(text) <= QUERY_CHARS:
        return text
    half = LOOKED_AT_CHARS // 2
    looked_at = text if len(text) <= LOOKED_AT_CHARS else f"{text[:half]}\n{text[-half:]}"
    return " ".join(_salient(looked_at, (text_of(messages[i]) for i in request.covered)))


def _salient(text: str, documents: Iterable[str]) -> list[str]:
    """The words of a text that stand in the fewest documents (but in one), in the order of the text."""
    wanted = dict.fromkeys(terms(text))
    found: Counter[str] = Counter()
    for document in documents:
        found.update(wanted.keys() & set(terms(document)))
    rarest = sorted((word for word in wanted if found[word]), key=lambda word: found[word])[:SALIENT_WORDS]
    return [word for word in wanted if word in set(rarest)]
