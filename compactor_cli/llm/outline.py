"""Outline: the headings of a summary's template, and a model's reply read back into sections under them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from compactor_cli.digest.quote import listed
from compactor_cli.llm.flatten import quoter
from compactor_cli.model.summary import Item, Section, SectionItems, Source, Summary

_PROBE = "\u241f"
# Longer ranges of records tell where something happened no better than their ends do.
_MOST_RECORDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The lines a section opens and closes with; ``closing`` is empty where the next heading closes it."""

    section: Section
    opening: str
    closing: str = ""


def headings_of(render: Callable[[Summary], str], language: str) -> tuple[Heading, ...]:
    """The headings that a renderer writes in this language, in its order: found by a summary of probes."""
    probes = tuple(SectionItems(section=section, items=(Item(text=f"{_PROBE}{section.value}"),)) for section in Section)
    lines = render(Summary(source=Source.MODEL, sections=probes, language=language)).split("\n")
    found: list[Heading] = []
    for at, line in enumerate(lines):
        if _PROBE in line:
            opening = next((text for text in reversed(lines[:at]) if text.strip()), "")
            below = lines[at + 1] if at + 1 < len(lines) else ""
            closing = below if below.startswith("</") else ""
            found.append(Heading(section=Section(line.partition(_PROBE)[2]), opening=opening, closing=closing))
    return tuple(found)


def heading_lines(render: Callable[[Summary], str], languages: Iterable[str]) -> tuple[str, ...]:
    """Every line that opens or closes a section in these languages: what no quoted text may hold."""
    found = (heading for language in languages for heading in headings_of(render, language))
    lines = dict.fromkeys(line for heading in found for line in (heading.opening, heading.closing))
    return tuple(line for line in lines if line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A reply read. ``present``: the sections whose headings it has, empty ones too; ``text``: what was read."""

    sections: tuple[SectionItems, ...]
    present: frozenset[Section]
    text: str


_ASIDE = re.compile(r"<(analysis|think|thinking|scratchpad)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"\A\s*```\w*\n(.*?)\n```\s*\Z", re.DOTALL)
_MARK = re.compile(r"[-*+•]\s+|\d{1,3}[.)]\s+")
_CITED = re.compile(r"(?:\s*\[(?:records? )?[a-z]?\d+(?:\s*[-–,;]\s*[a-z]?\d+)*\])+(?=[.。;;]?\s*$)")
_NUMBERS = re.compile(r"(\d+)(?:\s*[-–]\s*(\d+))?")
_NOTHING = frozenset({"none", "n/a", "nothing", "(none)", "无", "没有", "なし", "-"})


def own_words(text: str) -> str:
    """A reply without the thoughts before it and the fence around it."""
    text = _ASIDE.sub("", text)
    fenced = _FENCED.match(text)
    return (fenced[1] if fenced else text).strip()


def read_reply(text: str, headings: Sequence[Heading], covered: frozenset[int]) -> Outline:
    """The sections of a reply, however it sets off the headings; what stands before the first one is left out.

    Items name the covered records that they cite. No line of an item is a heading or a mark of ours.
    """
    known = {_plain(heading.opening): heading.section for heading in headings}
    reader = _Reader(quoted=quoter(line for heading in headings for line in (heading.opening, heading.closing)))
    words = own_words(text)
    for line in _lines(words, headings):
        reader.read(line, known.get(_plain(line)) if _may_open(line) else None)
    sections = tuple(
        SectionItems(section=section, items=tuple(_cited(item, covered) for item in items if not _is_nothing(item)))
        for section, items in reader.found.items()
    )
    kept = tuple(part for part in sections if part.items)
    return Outline(sections=kept, present=frozenset(reader.found), text=words)


@dataclass(slots=True, kw_only=True)
class _Reader:
    quoted: Callable[[str], str]
    found: dict[Section, list[Item]] = field(default_factory=dict)
    current: list[Item] | None = None
    in_code: bool = False
    after_blank: bool = True

    def read(self, line: str, section: Section | None) -> None:
        """The next line; ``section`` if it opens one."""
        if section is not None and not self.in_code:
            self.current, self.after_blank = self.found.setdefault(section, []), True
        elif self.current is not None and not _CLOSING.match(line.strip()):
            self._add(self.current, line)

    def _add(self, items: list[Item], line: str) -> None:
        body = line.strip()
        indent = len(line) - len(line.lstrip())
        mark = None if self.in_code else _MARK.match(body)
        if body.startswith("```"):
            self.in_code = not self.in_code
        if mark and len(body) > mark.end():
            items.append(Item(text=self.quoted(body[mark.end() :]), depth=1 if indent > 1 and items else 0))
        elif body and (not items or (self.after_blank and not indent and not self.in_code)):
            items.append(Item(text=self.quoted(body.lstrip("#> ") or body)))
        elif body:
            text = listed(self.quoted(line[2:] if line.startswith("  ") else line).rstrip())
            items[-1] = replace(items[-1], text=f"{items[-1].text}\n{text}")
        self.after_blank = not body


_CLOSING = re.compile(r"^</[a-z_]+>$")


def _lines(text: str, headings: Sequence[Heading]) -> list[str]:
    """The lines of a reply; tags of sections, and text behind a plain heading, get lines of their own."""
    lines = (line for heading in headings for line in (heading.opening, heading.closing))
    if tags := [line for line in lines if line.startswith("<")]:
        names = "|".join(map(re.escape, tags))
        text = re.sub(f"({names})", r"\n\1\n", text)
    found: list[str] = []
    plain = {heading.opening for heading in headings if heading.opening.endswith(":")}
    for line in text.split("\n"):
        head, colon, rest = line.partition(":")
        found.extend([f"{head}:", rest] if colon and rest.strip() and f"{head}:" in plain else [line])
    return found


def _may_open(line: str) -> bool:
    return 0 < len(line) <= 120 and not line.lstrip().startswith(("- ", "* ", "• ")) and not line.startswith("  ")


@lru_cache(maxsize=4096)
def _plain(line: str) -> str:
    """A heading without what sets it off: hashes, stars, a number, brackets, a colon, case. Empty for closing tags."""
    body = line.strip()
    if body.startswith("</"):
        return ""
    body = re.sub(r"^(?:#{1,6}\s*|\d{1,2}[.)]\s*|\*\*)*", "", body)
    return re.sub(r"[*::\s]+$", "", body).strip("<>").replace("_", " ").casefold()


def _is_nothing(item: Item) -> bool:
    return _CITED.sub("", item.text).strip().rstrip(".。").casefold() in _NOTHING


def _cited(item: Item, covered: frozenset[int]) -> Item:
    """The item with the records it cites taken out of its text; numbers of other records are dropped."""
    found = _CITED.search(item.text)
    if found is None:
        return item
    records: dict[int, None] = {}
    for first, last in _NUMBERS.findall(found[0]):
        stop = int(last or first)
        if int(first) <= stop < int(first) + 1_000_000:
            records.update(dict.fromkeys(index for index in range(int(first) - 1, stop) if index in covered))
    named = tuple(sorted(records))
    if len(named) > _MOST_RECORDS:
        named = (*named[: _MOST_RECORDS - 1], named[-1])
    text = item.text[: found.start()] + item.text[found.end() :]
    return replace(item, text=text.rstrip(), records=named)


def as_text(sections: Iterable[SectionItems], headings: Sequence[Heading]) -> str:
    """Sections under these headings as a prompt shows them, records in brackets behind their items."""
    by_section = {part.section: part.items for part in sections}
    lines: list[str] = []
    for heading in headings:
        if items := by_section.get(heading.section):
            lines += [heading.opening, *(_line(item) for item in items), heading.closing]
    return "\n".join(line for line in lines if line)


def _line(item: Item) -> str:
    indent = "  " * item.depth
    body = item.text.replace("\n", f"\n{indent}  ")
    return f"{indent}- {body}{_tag(item.records)}"


def _tag(records: Sequence[int]) -> str:
    if not records:
        return ""
    first, last = records[0] + 1, records[-1] + 1
    return f" [{first}]" if first == last else f" [{first}-{last}]"
