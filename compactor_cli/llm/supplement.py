"""Where the model path and the digest meet: a check list in the prompt, a supplement behind the reply.

A supplement is added to a text that somebody else wrote of the records, a model or the agent itself. It holds only
what the text cannot be contradicted by and does not tell already: the user's words and refusals, open steps, outcomes
of calls that changed something outside, files the text does not name with their state, one index of names. Whole
sections come from the digest only where the text has no such heading.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from compactor_cli.digest.analysis import Analysis
from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.commands import shown
from compactor_cli.digest.digest import Digest
from compactor_cli.digest.events import path_stripper
from compactor_cli.digest.language import LANGUAGES, words_of
from compactor_cli.digest.loss import loss
from compactor_cli.digest.names import name_items
from compactor_cli.digest.statements import TokenCache, records_of
from compactor_cli.formats.client_signs import working_directory
from compactor_cli.llm.outline import Outline, OutlineHeading, as_text
from compactor_cli.llm.sources import Strand
from compactor_cli.model.summary import Answer, Item, Request, Section, SectionItems, Source, Summary

# Of the tokens of text and supplement together.
MOST_RATIO = 0.25
# Of the supplement's tokens, at most; what one does not use goes to those after it, names get the rest.
_SHARES: Mapping[Section, float] = {
    Section.USER: 0.3,
    Section.PLAN: 0.1,
    Section.COMMANDS: 0.15,
    Section.FILES: 0.1,
}
_FILL_RATIO = 0.15
_NAMES_RATIO = 0.35
_ITEM_TOKENS = 3
# A statement is shown where one line of the text holds this many of its words, a quotation where the text has so much.
_SHOWN_RATIO = 0.6
_QUOTED_RATIO = 0.7
_WORD = re.compile(r"\w+")
_RUN_WORDS = 4
_LONG_WORD_CHARS = 4
# Commands and calls that change what lies outside the agent's own files, whose repetition would do harm.
_CHANGES_WORLD = re.compile(
    r"\bgit (?:commit|push|merge|rebase|revert|reset|tag|cherry-pick|stash)\b"
    r"|\bgh \w+ (?:create|merge|close|edit|comment)"
    r"|\b(?:npm|twine|cargo|poetry|docker) (?:publish|upload|push)\b"
    r"|\b(?:kubectl|terraform|helm) (?:apply|delete|install)|-X ?(?:POST|PUT|PATCH|DELETE)\b"
    r"|^\w*(?:create|update|delete|book|cancel|send|transfer|pay|submit|merge|publish)\w*\(",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedText:
    """A text in place of records: its sections, and what stands before them word for word.

    ``missing``: sections that it should have and has not, to be filled from the digest.
    """

    sections: tuple[SectionItems, ...]
    prose: str = ""
    missing: frozenset[Section] = frozenset()

    def __str__(self) -> str:
        return "\n".join((self.prose, *(item.text for part in self.sections for item in part.items)))


def completed(request: Request, text: CompletedText, language: str, *, most_ratio: float = MOST_RATIO) -> Answer:
    """The text with its supplement, within ``request.budget_tokens``; the text's own items come first under a heading.

    The supplement takes ``most_ratio`` of both at most. The state is that of the digest of all covered records, as if
    nobody else had written.
    """
    request = replace(request, language=language)
    text = _relative(text, request)
    digest, analysis = Digest().with_analysis(request)
    bare = replace(
        digest.summary, source=Source.MODEL, sections=_ordered(text.sections), prose=text.prose, language=language
    )
    size_tokens = request.count(str(text))
    spare_tokens = request.budget_tokens - request.count(request.render(bare))
    allowed = spare_tokens if most_ratio >= 1 else int(size_tokens * most_ratio / (1 - most_ratio))
    chooser = _Chooser(request=request, analysis=analysis, text=text, language=language)
    chosen = chooser.chosen(digest, max(min(spare_tokens, allowed), 0))
    summary = _fitted(bare, text.sections, chosen, request)
    lost, retention = loss(analysis, request.render(summary))
    return Answer(summary=replace(summary, lost=lost, retention=retention), state=digest.state)


@dataclass(slots=True, kw_only=True)
class _Chooser:
    """Chooses what the text does not tell, the most needed first."""

    request: Request
    analysis: Analysis
    text: CompletedText
    language: str
    folded: str = field(init=False)
    lines: tuple[frozenset[str], ...] = field(init=False)

    def __post_init__(self) -> None:
        self.folded = str(self.text).casefold()
        self.lines = tuple(words for line in self.folded.split("\n") if (words := _long_words(line)))

    def chosen(self, digest: Answer, tokens: int) -> dict[Section, list[Item]]:
        """The items by section, of this many tokens in all; each section's in the digest's order."""
        sections = {part.section: part.items for part in digest.summary.sections}
        sections[Section.COMMANDS] = (*_outcomes(self.analysis), *sections.get(Section.COMMANDS, ()))
        filled = tuple(one for one in Section if one in self.text.missing and one not in _SHARES)
        news = {
            section: [
                item for item in self._by_need(sections.get(section, ()), section) if self._is_news(item, section)
            ]
            for section in (*_SHARES, *filled)
        }
        found: dict[Section, list[Item]] = {}
        left = tokens
        for section, items in news.items():
            left -= self._take(found, section, items, min(int(tokens * _SHARES.get(section, _FILL_RATIO)), left))
        # What did not fit its share may take what the others left, except for a share of the names.
        for section, items in news.items():
            more = [item for item in items if item not in found.get(section, ())]
            left -= self._take(found, section, more, left - int(tokens * _NAMES_RATIO))
        for section, items in found.items():
            items.sort(key=tuple(sections[section]).index)
        shown = (str(self.text), *(item.text for items in found.values() for item in items))
        names = name_items(self.analysis, shown, left, TokenCache(count=self.request.count))
        return {**found, Section.NAMES: list(names)} if names else found

    def _by_need(self, items: Sequence[Item], section: Section) -> Sequence[Item]:
        """Of the user's words, what stopped a call first, then the newest; other sections as they are."""
        if section is not Section.USER:
            return items
        messages = self.request.transcript.messages
        stops = [item for item in items if any(messages[i].results for i in item.records if i < len(messages))]
        return [*reversed(stops), *(item for item in reversed(items) if item not in stops)]

    def _take(self, found: dict[Section, list[Item]], section: Section, items: Iterable[Item], tokens: int) -> int:
        """Adds as many of the items as fit, in their order; the tokens that they take."""
        used = 0
        for item in items:
            cost = self.request.count(item.text) + _ITEM_TOKENS
            if used + cost <= tokens:
                found.setdefault(section, []).append(item)
                used += cost
        return used

    def _is_news(self, item: Item, section: Section) -> bool:
        """Whether an item is of the kind that may be added, and not in the text."""
        if section is Section.USER:
            return not self._is_quoted(item.text)
        if section is Section.FILES:
            return not self._names_file(item.text)
        if section is Section.PLAN and section not in self.text.missing and not _is_open(item.text):
            return False
        if section is Section.COMMANDS and not _CHANGES_WORLD.search(item.text.lstrip("`")):
            return False
        return not self._is_shown(item.text)

    def _is_quoted(self, text: str) -> bool:
        words = _WORD.findall(text.casefold())
        runs = [" ".join(words[at : at + _RUN_WORDS]) for at in range(max(len(words) - _RUN_WORDS + 1, 1))]
        spaced = " ".join(_WORD.findall(self.folded))
        return sum(run in spaced for run in runs) >= _QUOTED_RATIO * len(runs)

    def _is_shown(self, text: str) -> bool:
        words = _long_words(text.casefold())
        return bool(words) and any(len(words & line) >= _SHOWN_RATIO * len(words) for line in self.lines)

    def _names_file(self, text: str) -> bool:
        path = text.split(" — ")[0].strip("`").casefold()
        return path.rstrip("/").rsplit("/", 1)[-1] in self.folded


def _relative(text: CompletedText, request: Request) -> CompletedText:
    """The text with paths as the digest writes them: without the directory that the agent worked in."""
    strip = path_stripper(working_directory(request.transcript))
    sections = tuple(
        replace(part, items=tuple(replace(item, text=strip(item.text)) for item in part.items))
        for part in text.sections
    )
    return replace(text, sections=sections)


def _outcomes(analysis: Analysis) -> Iterator[Item]:
    """The commands that changed something outside, newest first, each with what it reported."""
    for run in reversed(analysis.runs):
        if run.changes_world:
            report = run.line or run.outcome.value
            yield Item(text=f"`{shown(run.command)}` → {report}", records=records_of((run.record, run.result_record)))


def _is_open(text: str) -> bool:
    """Whether an item of the plan is a step that is not done."""
    labels = [words_of(language) for language in LANGUAGES]
    return text.startswith(tuple(f"{label}{words.colon}" for words in labels for label in (words.doing, words.open)))


def _long_words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text) if len(word) >= _LONG_WORD_CHARS)


def _ordered(sections: Iterable[SectionItems]) -> tuple[SectionItems, ...]:
    """Each section once, in the order of `Section`."""
    return _joined(sections, {})


def _joined(own: Iterable[SectionItems], added: Mapping[Section, Sequence[Item]]) -> tuple[SectionItems, ...]:
    items: dict[Section, list[Item]] = {}
    for part in own:
        items.setdefault(part.section, []).extend(part.items)
    for section, more in added.items():
        items.setdefault(section, []).extend(more)
    return tuple(
        SectionItems(section=section, items=tuple(items[section])) for section in Section if items.get(section)
    )


# What is dropped first where text and supplement together are over the budget after all; the text never is.
_DROPPED_FIRST = (
    *(section for section in reversed(Section) if section not in _SHARES),
    *reversed(tuple(_SHARES)),
)


def _fitted(
    summary: Summary, own: Sequence[SectionItems], added: dict[Section, list[Item]], request: Request
) -> Summary:
    while True:
        joined = replace(summary, sections=_joined(own, added))
        over = request.count(request.render(joined)) - request.budget_tokens
        section = next((section for section in _DROPPED_FIRST if added.get(section)), None)
        if over <= 0 or section is None:
            return joined
        while over > 0 and added[section]:
            over -= request.count(added[section].pop().text) + 2


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
