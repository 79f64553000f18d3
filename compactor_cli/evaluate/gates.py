"""Gates: what must hold of every digest, whatever it scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.evaluate.cuts import EvalCase
from compactor_cli.evaluate.digested import TEMPLATE, Digested, DigestMethod, DigestRequest, request_from
from compactor_cli.evaluate.drift import summary_message, with_summary
from compactor_cli.evaluate.fit import Count
from compactor_cli.model.summary import Item, Summary
from compactor_cli.plan.tokens import shown_texts
from compactor_cli.render.read import read_sections
from compactor_cli.render.text import load_template


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """The hard gates of one digest.

    ``invented``: atoms that no record of the transcript holds. ``malformed``: what is wrong with the sections.
    """

    budget_ratio: float
    invented: tuple[str, ...]
    malformed: tuple[str, ...]

    @property
    def hold(self) -> bool:
        """Whether all of them hold."""
        return self.budget_ratio <= 1 and not self.invented and not self.malformed


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """What a second run does.

    ``is_same``: asked the same again, it gives the same text (a hard gate). ``kept_ratio``: share of the summary's
    atoms that are still there when it is summarised again at the same budget with nothing new, its state at hand.
    """

    is_same: bool
    kept_ratio: float


def gates_of(case: EvalCase, budget_tokens: int, count: Count, found: Digested) -> Gates:
    """The gates of ``found``, a digest of this case at this budget."""
    return Gates(
        budget_ratio=count(found.text) / budget_tokens,
        invented=invented(found.answer.summary, _source(case)),
        malformed=tuple(malformed(found, case.middle)),
    )


def repeat(method: DigestMethod, case: EvalCase, budget_tokens: int, count: Count) -> Repeat:
    """The method run twice on the same, and once on its own summary."""
    found, again = (method.digest(request_from(case), budget_tokens, count) for _ in range(2))
    kept_ratio = _kept_ratio(method, case, budget_tokens, count, found)
    return Repeat(is_same=found.text == again.text, kept_ratio=kept_ratio)


def invented(summary: Summary, texts: Iterable[str]) -> tuple[str, ...]:
    """The atoms of the summary's items that stand nowhere in these texts, sorted."""
    named = {atom for part in summary.sections for item in part.items for atom in atom_texts(item.text)}
    source = "\n".join(texts)
    return tuple(sorted(atom for atom in named - atom_texts(source) if atom not in source))


def _source(case: EvalCase) -> Iterator[str]:
    """What the transcript says, as it stands and as it is cleaned."""
    yield from (event.text for event in case.prefix_events)
    yield from (text for message in case.prefix.messages for text in shown_texts(message))


def malformed(found: Digested, covered: Iterable[int]) -> Iterable[str]:
    """What is wrong with the sections, in words; nothing where all is well."""
    sections = found.answer.summary.sections
    names = [part.section for part in sections]
    if len(set(names)) < len(names):
        yield "a section comes twice"
    known = frozenset(covered)
    for part in sections:
        if not part.items:
            yield f"{part.section} is empty"
        for item in part.items:
            yield from (f"{part.section}: {wrong}" for wrong in _wrong(item, known))
    read = {part.section: len(part.items) for part in read_sections(found.text, load_template(TEMPLATE))}
    if read != {part.section: len(part.items) for part in sections}:
        yield "the text does not read back to its sections"


def _wrong(item: Item, covered: frozenset[int]) -> Iterable[str]:
    if not item.text.strip():
        yield "an item without text"
    if list(item.records) != sorted(set(item.records)):
        yield "the records of an item are not ascending"
    if not covered.issuperset(item.records):
        yield "an item names a record that is not covered"


def _kept_ratio(method: DigestMethod, case: EvalCase, budget_tokens: int, count: Count, found: Digested) -> float:
    before = atom_texts(found.text) - case.schema
    if not before:
        return 1.0
    transcript, at = with_summary(case.prefix, case.head, summary_message(found.text), ())
    asked = DigestRequest(transcript=transcript, covered=(at,), kept=tuple(range(at)), state=found.answer.state)
    after = atom_texts(method.digest(asked, budget_tokens, count).text)
    return len(before & after) / len(before)
