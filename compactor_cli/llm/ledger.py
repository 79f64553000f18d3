"""Ledger: what the digest adds to a model's summary — a check list in the prompt, and what the text left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.digest import Digest
from compactor_cli.llm.outline import Heading, Outline, as_text
from compactor_cli.llm.update import Strand
from compactor_cli.model.summariser import Answer, Request
from compactor_cli.model.summary import Item, Section, SectionItems, Source, Summary
from compactor_cli.model.transcript import Message, Role, Text

RATIO = 0.25  # of the budget, measured: a model's text with so much ledger keeps what the digest alone keeps
# A check list is read with the records themselves: it names, it does not tell.
_LIST_RATIO, _LEAST_LIST_TOKENS, _MOST_LIST_TOKENS = 0.1, 200, 1_500
# What gives way first where text and ledger together are over the budget.
_GIVING_WAY = (
    Section.PREVIOUS,
    Section.HISTORY,
    Section.COMMANDS,
    Section.DECISIONS,
    Section.ERRORS,
    Section.FILES,
    Section.QUESTIONS,
    Section.USER,
    Section.PLAN,
    Section.TASK,
)
# Their items stand for themselves: verbatim words, and lines that order those beneath them.
_WHOLE = frozenset({Section.USER, Section.TASK, Section.HISTORY})


def check_list(
    strands: Iterable[Strand], tokens: int, count: Callable[[str], int], *, focus: str, language: str
) -> str:
    """The facts of these records most likely to be needed, an item a line, not yet quoted."""
    room = int(min(max(tokens * _LIST_RATIO, _LEAST_LIST_TOKENS), _MOST_LIST_TOKENS))
    sections = _digests(strands, room, count, focus=focus, language=language)
    return "\n".join(line for part in sections for line in _lines(part))


def digest_outline(
    strands: Iterable[Strand], tokens: int, count: Callable[[str], int], headings: Sequence[Heading], language: str
) -> Outline:
    """The digest of these records as if a model had written it, under these headings."""
    asked = {heading.section for heading in headings}
    digests = _digests(strands, tokens, count, language=language)
    outline = joined_outline([Outline(sections=parts, present=frozenset(), text="") for parts in digests])
    sections = tuple(part for part in outline.sections if part.section in asked)
    return Outline(sections=sections, present=frozenset(asked), text=as_text(sections, headings))


def joined_outline(outlines: Sequence[Outline]) -> Outline:
    """The sections of consecutive parts, item after item; of items with the same text, the last."""
    found: dict[Section, dict[str, Item]] = {}
    for outline in outlines:
        for part in outline.sections:
            items = found.setdefault(part.section, {})
            for item in part.items:
                items.pop(item.text, None)
                items[item.text] = item
    sections = tuple(SectionItems(section=section, items=tuple(items.values())) for section, items in found.items())
    text = "\n".join(item.text for part in sections for item in part.items)
    prose = "\n\n".join(outline.prose for outline in outlines if outline.prose)
    return Outline(sections=sections, present=frozenset(found), text=f"{prose}\n{text}".strip(), prose=prose)


def _digests(
    strands: Iterable[Strand], tokens: int, count: Callable[[str], int], *, focus: str = "", language: str
) -> list[tuple[SectionItems, ...]]:
    """A digest of each transcript's records, all together of so many tokens."""
    parts = [strand for strand in strands if strand.indices]
    found: list[tuple[SectionItems, ...]] = []
    for strand in parts:
        request = Request(
            transcript=strand.transcript,
            covered=strand.indices,
            kept=(),
            budget_tokens=tokens // len(parts),
            render=lambda summary: "\n".join(_lines(summary.sections)),
            count=count,
            focus=focus,
            language=language,
        )
        found.append(Digest().summarise(request).summary.sections)
    return found


def _lines(sections: Iterable[SectionItems]) -> list[str]:
    return [f"- {item.text}" for part in sections for item in part.items]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A model's text: its sections under headings, and what stands before them word for word."""

    sections: tuple[SectionItems, ...]
    headings: tuple[Heading, ...]
    prose: str = ""

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.prose, as_text(self.sections, self.headings))))


def completed(request: Request, text: Told, language: str) -> Answer:
    """The model's text with the digest of what it left out, within ``request.budget_tokens``.

    The state is that of the digest of all covered records, as if no model had been asked.
    """
    body = str(text)
    answer = Digest().summarise(_beside(request, body, language))
    ledger = [_left_out(part, body) for part in answer.summary.sections]
    summary = replace(answer.summary, source=Source.MODEL, prose=text.prose, language=language)
    fitted = _fitted(summary, text.sections, [part for part in ledger if part.items], request)
    return Answer(summary=fitted, state=answer.state)


def _beside(request: Request, body: str, language: str) -> Request:
    """The request for a digest that stands beside a text: the text takes room, and what it says is not news."""
    said = Message(role=Role.ASSISTANT, parts=(Text(text=body),))
    transcript = request.transcript
    return replace(
        request,
        transcript=replace(transcript, messages=(*transcript.messages, said)),
        kept=(*request.kept, len(transcript.messages)),
        render=lambda summary: f"{request.render(summary)}\n{body}",
        language=language,
    )


def _left_out(part: SectionItems, body: str) -> SectionItems:
    """The section without items that the text has, in the same words or by all their names."""
    told = " ".join(body.split())
    kept = tuple(item for item in part.items if not _is_told(item, part.section, told))
    return SectionItems(section=part.section, items=kept)


def _is_told(item: Item, section: Section, told: str) -> bool:
    if section is Section.USER or item.depth:
        return section is not Section.USER and " ".join(item.text.split()) in told
    if " ".join(item.text.split()) in told:
        return section is not Section.HISTORY
    atoms = atom_texts(item.text)
    return section not in _WHOLE and bool(atoms) and all(atom in told for atom in atoms)


def _fitted(summary: Summary, own: Sequence[SectionItems], ledger: Sequence[SectionItems], request: Request) -> Summary:
    """Both together, without the last items of the ledger where they are over the budget."""
    left = {part.section: list(part.items) for part in ledger}
    while True:
        joined = replace(summary, sections=_joined(own, left))
        over = request.count(request.render(joined)) - request.budget_tokens
        giving = next((section for section in _GIVING_WAY if left.get(section)), None)
        if over <= 0 or giving is None:
            return joined
        while over > 0 and left[giving]:
            over -= request.count(left[giving].pop().text) + 2


def _joined(own: Sequence[SectionItems], ledger: dict[Section, list[Item]]) -> tuple[SectionItems, ...]:
    mine = {part.section: part.items for part in own}
    sections = [section for section in Section if mine.get(section) or ledger.get(section)]
    return tuple(
        SectionItems(section=section, items=(*mine.get(section, ()), *ledger.get(section, ()))) for section in sections
    )
