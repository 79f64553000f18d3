"""Ledger: what the digest does for a model — a check list in its prompt, a summary of a part that it would not give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.digest import Digest
from compactor_cli.llm.outline import Outline, OutlineHeading, as_text
from compactor_cli.llm.update import Strand
from compactor_cli.model.summary import Item, Request, Section, SectionItems

# A check list is read with the records themselves: it names, it does not tell.
_LIST_RATIO, _LEAST_LIST_TOKENS, _MOST_LIST_TOKENS = 0.1, 200, 1_500


def check_list(
    strands: Iterable[Strand], tokens: int, count: Callable[[str], int], *, focus: str, language: str
) -> str:
    """The facts of these records most likely to be needed, an item a line, not yet quoted."""
    room = int(min(max(tokens * _LIST_RATIO, _LEAST_LIST_TOKENS), _MOST_LIST_TOKENS))
    sections = _digests(strands, room, count, focus=focus, language=language)
    return "\n".join(line for part in sections for line in _lines(part))


def not_shown(facts: str, texts: Sequence[str]) -> str:
    """Those of the facts, an item a line, of which some name stands in none of the texts."""
    shown = "\n".join(texts)
    return "\n".join(line for line in facts.split("\n") if not _is_shown(line, shown))


def _is_shown(line: str, shown: str) -> bool:
    names = atom_texts(line)
    return line in shown or (bool(names) and all(name in shown for name in names))


def digest_outline(
    strands: Iterable[Strand],
    tokens: int,
    count: Callable[[str], int],
    headings: Sequence[OutlineHeading],
    language: str,
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
    """A digest of each transcript's records, all together of this many tokens."""
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
