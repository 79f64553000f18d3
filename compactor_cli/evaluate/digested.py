"""The digest as a method, asked as the engine asks it, and the frame that every method pays for.

A frame (preface and marker) is the same whatever the summary says: it is taken from the budget of all methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from compactor_cli.evaluate.baselines import Write
from compactor_cli.evaluate.cuts import EvalCase
from compactor_cli.evaluate.fit import Count
from compactor_cli.model.marker import Marker, without_marker
from compactor_cli.model.settings import Settings
from compactor_cli.model.summariser import Answer, Request, Summariser
from compactor_cli.model.summary import Source, Summary
from compactor_cli.model.transcript import Transcript
from compactor_cli.render.read import read_client, read_ours
from compactor_cli.render.text import load_template, render

TEMPLATE = Settings().template
WriteSummary = Callable[[Summary], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digested:
    """An answer with the text it is written as."""

    answer: Answer
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestRequest:
    """What one summary is asked of: a transcript, and which of its records it is to cover."""

    transcript: Transcript
    covered: Sequence[int]
    kept: Sequence[int]
    state: bytes | None = None


def body(summary: Summary) -> str:
    """The sections of a summary as the template writes them, without the frame."""
    return without_marker(render(summary, load_template(TEMPLATE), _MARKER))


def framed(case: EvalCase, budget_tokens: int) -> WriteSummary:
    """How a summary of this case is written at this budget, frame included."""
    marker = Marker(
        transcript=_NAMELESS,
        first=case.middle[0] + 1,
        last=case.middle[-1] + 1,
        records=len(case.prefix.records),
        tokens=case.middle_tokens + case.kept_tokens,
        end=_NAMELESS,
        state=_NAMELESS,
    )
    return partial(render, template=load_template(TEMPLATE).sized(budget_tokens), marker=marker)


def frame_tokens(case: EvalCase, budget_tokens: int, count: Count) -> int:
    """What the frame of this case takes of this budget, with the line break that follows it."""
    return count(f"{framed(case, budget_tokens)(EMPTY)}\n")


EMPTY = Summary(source=Source.DIGEST, sections=())
# A hash takes about as many tokens as any other.
_NAMELESS = "7f3a9c1e5b8d2046"
_MARKER = Marker(transcript="0" * 16, first=1, last=1, records=1, tokens=0, end="0" * 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestMethod:
    """A built-in summariser, by default the digest."""

    summariser: Summariser
    name: str = "digest"

    def prepare(self, case: EvalCase, count: Count) -> Write:
        """See `Method`."""
        return lambda budget: self.digest(request_from(case), budget, count).text

    def digest(self, asked: DigestRequest, budget_tokens: int, count: Count, write: WriteSummary = body) -> Digested:
        """The whole answer, for what more than the text is checked of; ``write`` gives the text that is paid for."""
        request = Request(
            transcript=asked.transcript,
            covered=tuple(asked.covered),
            kept=tuple(asked.kept),
            budget_tokens=budget_tokens,
            render=write,
            count=count,
            state=asked.state,
            read=read_ours,
            read_client=read_client,
        )
        answer = self.summariser.summarise(request)
        return Digested(answer=answer, text=write(answer.summary))


def request_from(case: EvalCase) -> DigestRequest:
    """The middle of a case, all of its records."""
    return DigestRequest(transcript=case.prefix, covered=case.middle, kept=(*case.head, *case.tail))


def the_digest() -> DigestMethod:
    """The offline digest."""
    from compactor_cli.digest.digest import Digest

    return DigestMethod(summariser=Digest())
