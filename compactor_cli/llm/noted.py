"""Noted: a note that the agent itself kept of the session, in place of a model's summary."""

from __future__ import annotations

from dataclasses import replace

from compactor_cli.digest.language import LANGUAGES, detect
from compactor_cli.llm.flatten import quoter
from compactor_cli.llm.outline import heading_lines
from compactor_cli.llm.supplement import Written, completed
from compactor_cli.model.summariser import Answer, Request, Summariser
from compactor_cli.model.summary import Section, Source, Summary


class Noted:
    """The note, with the digest of what it leaves out; where it does not fit the budget, another summariser."""

    def __init__(self, note: str, otherwise: Summariser) -> None:
        self._note = note.strip()
        self._otherwise = otherwise

    def summarise(self, request: Request) -> Answer:
        """The summary, within ``request.budget_tokens`` and without a call of any model if the note fits."""
        language = request.language if request.language != "auto" else detect([self._note])
        # A line of the note must not be taken for a heading of the template when the summary is read back.
        prose = quoter(heading_lines(request.render, (*LANGUAGES, language)))(self._note)
        bare = Summary(source=Source.MEMORY, sections=(), prose=prose, language=language)
        size_tokens = request.count(request.render(bare))
        if not self._note or size_tokens > request.budget_tokens:
            answer = self._otherwise.summarise(request)
            why = f"it takes {size_tokens:,} tokens of {request.budget_tokens:,}" if self._note else "it is empty"
            return replace(answer, notes=(*answer.notes, f"the session's own note was not used: {why}"))
        text = Written(sections=(), prose=prose, missing=frozenset(Section))
        answer = completed(request, text, language, most_ratio=1.0)
        return replace(answer, summary=replace(answer.summary, source=Source.MEMORY))
