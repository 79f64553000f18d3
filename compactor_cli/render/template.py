"""Templates: write a summary as text, and read the sections back from the text of a summary, also of a client's own."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from compactor_cli.digest.language import LANGUAGES, words_of
from compactor_cli.model.errors import UsageError
from compactor_cli.model.marker import Marker, find_marker
from compactor_cli.model.summary import Item, Request, Section, SectionItems, Source, Summary, record_ranges
from compactor_cli.model.transcript import Transcript
from compactor_cli.model.value import dataclass

FOLDER = Path(__file__).with_name("templates")


def template_names() -> tuple[str, ...]:
    """The names that `load_template` knows."""
    return tuple(sorted(entry.name[:-5] for entry in FOLDER.iterdir() if entry.name.endswith(".toml")))


def check_template(name: str) -> None:
    """Raises UsageError, with the known names, if there is no template of this name."""
    if name not in (names := template_names()):
        raise UsageError(f"no template is called {name!r}", next_step=f"known: {', '.join(names)}")


class Style(StrEnum):
    """How a section is set off from the next."""

    MARKDOWN = "markdown"  # ## Heading
    XML = "xml"  # <name> … </name>
    PLAIN = "plain"  # Heading:
    NUMBERED = "numbered"  # 3. Heading:


ByLanguage = Mapping[str, str]
# Smaller summaries get the brief preface.
BRIEF_TOKENS = 800
# How many ranges of records are shown after an item by a model, which cites them exactly. A longer list is hardly read.
_TEXT_RANGES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What a section stands under, by language. Consecutive sections with the same name share the heading."""

    name: ByLanguage
    label: ByLanguage  # sets the section apart under a shared heading
    number: int  # of the heading in its template, counted from 1
    known: tuple[str, ...] = ()  # other names that clients give the section


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The frame of a summary, and the order and headings of its sections; English where a language is missing."""

    style: Style
    preface: ByLanguage  # before the marker line
    opening: ByLanguage  # after the marker line
    closing: ByLanguage  # at the end
    headings: Mapping[Section, Heading]  # in the order of the sections
    states: ByLanguage = field(default_factory=dict)  # by state of a plan's step (done, doing, open): a sign for it
    brief: ByLanguage = field(default_factory=dict)  # the preface of a small summary; empty: the usual one
    # The preface where the original is not archived, no longer than ``preface``: a summary fits under both.
    unarchived: ByLanguage = field(default_factory=dict)

    def sized(self, summary_tokens: int, *, archived: bool = True) -> Template:
        """The template with the preface for a summary of this many tokens in all.

        A small summary gets the brief one; an unarchived original is not promised.
        """
        if self.brief and summary_tokens < BRIEF_TOKENS:
            return replace(self, preface=self.brief)
        return self if archived or not self.unarchived else replace(self, preface=self.unarchived)

    def without_promise(self, text: str) -> str:
        """A summary's text with the usual preface replaced by the one for originals that are not archived."""
        marker = find_marker(text)
        if marker is None or not self.unarchived:
            return text
        for language, promise in self.preface.items():
            written = _filled(promise, marker)
            if text.startswith(written):
                return in_language(self.unarchived, language).strip() + text.removeprefix(written)
        return text

    def head(self, section: Section, language: str) -> str:
        """The line that this section's heading begins with."""
        heading = self.headings[section]
        name = in_language(heading.name, language)
        return {
            Style.XML: f"<{name}>",
            Style.MARKDOWN: f"## {name}",
            Style.NUMBERED: f"{heading.number}. {name}:",
            Style.PLAIN: f"{name}:",
        }[self.style]


def in_language(texts: ByLanguage, language: str) -> str:
    """The text in this language, else in English, else in the only one there is; empty if there is none."""
    return texts.get(language) or texts.get("en") or next(iter(texts.values()), "")


@cache
def load_template(name: str) -> Template:
    """The template of this name. Raises UsageError, with the known names, if there is none."""
    check_template(name)
    data = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    if "like" in data:
        # Like another template, with these words before its prefaces.
        template, words = load_template(data["like"]), data["before"]
        led: dict[str, Any] = {
            name: {language: f"{words}{text}" for language, text in getattr(template, name).items()}
            for name in ("preface", "brief", "unarchived")
        }
        return replace(template, **led)
    headings: dict[Section, Heading] = {}
    names: list[ByLanguage] = []
    for entry in data["sections"]:
        section, label = Section(entry.pop("section")), entry.pop("label", {})
        known = tuple(entry.pop("known", ()))
        if entry not in names:
            names.append(entry)
        headings[section] = Heading(name=entry, label=label, number=names.index(entry) + 1, known=known)
    parts = ("preface", "opening", "closing", "states", "brief", "unarchived")
    texts: dict[str, Any] = {part: data.get(part, {}) for part in parts}
    return Template(style=Style(data["style"]), headings=headings, **texts)


def render(summary: Summary, template: Template, marker: Marker) -> str:
    """The whole text of a summary message: preface, marker line, sections in the template's order, closing.

    Sections without items are left out. The text ends without a line break.
    """
    language = summary.language
    most_ranges = _TEXT_RANGES if summary.source is Source.MODEL else 1
    lines = [_filled(in_language(template.preface, language), marker), str(marker)]
    lines += filter(None, [in_language(template.opening, language).strip()])
    if summary.prose:
        lines += ["", summary.prose.strip()]
    items = {part.section: part.items for part in summary.sections}
    filled = [section for section in template.headings if items.get(section)]
    for head, group in groupby(filled, key=lambda section: template.head(section, language)):
        lines += ("", head)
        for section in group:
            if label := in_language(template.headings[section].label, language):
                lines.append(f"**{label}:**")
            stated = (_restated(item, section, template, language, signed=True) for item in items[section])
            lines += item_lines(stated, most_ranges)
        if template.style is Style.XML:
            lines.append(f"</{head[1:]}")
    closing = in_language(template.closing, language).strip()
    return "\n".join([*lines, "", closing] if closing else lines)


def _filled(preface: str, marker: Marker) -> str:
    """A preface with the transcript's name and, as an example, a record that the summary covers."""
    return preface.strip().replace("{transcript}", marker.transcript).replace("{record}", str(marker.last))


def _restated(item: Item, section: Section, template: Template, language: str, *, signed: bool) -> Item:
    """A step of a plan with the word for its state replaced by the template's sign or, not ``signed``, vice versa.

    Any other item stays as it is.
    """
    if section is Section.PLAN:
        words = words_of(language)
        for state, sign in template.states.items():
            word, mark = f"{getattr(words, state)}{words.colon}", f"{sign} "
            old, new = (word, mark) if signed else (mark, word)
            if item.text.startswith(old):
                return replace(item, text=new + item.text.removeprefix(old))
    return item


def item_lines(items: Iterable[Item], most_ranges: int = 1) -> Iterator[str]:
    """Items as lines of a list with their records in brackets, unless an indented item has those of the item above."""
    shown: tuple[int, ...] = ()
    for item in items:
        tag = "" if item.records == shown and item.depth else record_tag(item.records, most_ranges)
        shown = item.records
        indent = "  " * item.depth
        text = item.text.replace("\n", f"\n{indent}  ")
        yield f"{indent}- {text}{tag}"


def record_tag(records: tuple[int, ...], most_ranges: int = 1) -> str:
    """The records in brackets, counted from 1: ``[12]``, ``[12-15]``, ``[3,12]``; empty if there are none.

    Of more than two records in more than ``most_ranges`` ranges (``[3,12-15,20]``), only the first and the last are
    shown: ``[3-20]``.
    """
    ranges = record_ranges(records)
    if len(records) > 2 and len(ranges) > most_ranges:
        ranges = (f"{records[0] + 1}-{records[-1] + 1}",)
    return f" [{','.join(ranges)}]" if ranges else ""


_CLOSING_TAG = re.compile(r"^\s*</[a-z_]+>\s*$")
_LABEL = re.compile(r"^\*\*(?P<label>.+):\*\*$")
# A heading with the marks that clients put around it: `## 3. **Open Steps:**`.
_AROUND_HEADING = re.compile(
    r"^\s*(?:#{1,6}\s+|\d{1,2}\.\s+)?(?:\*\*)?(?P<name>[^*<>\n]{2,60}?)(?:\*\*)?:?(?:\*\*)?\s*$"
)
_MAX_HEADING_CHARS = 120
_TAG = re.compile(r"^\s*<(?P<name>[a-z_]+)>\s*$")
_BULLET = re.compile(r"^(?P<indent>\s*)(?:[-*•]|\d{1,3}[.)])\s+(?P<text>.*)$")
# A text with fewer known headings is not taken for a summary.
_LEAST_HEADINGS = 2


def read_sections(text: str, template: Template) -> tuple[SectionItems, ...]:
    """The sections of a text that `render` wrote with this template, in any of its languages.

    Text within an item is never taken for a heading, as its lines are indented.
    """
    heads = _heads(template)
    labels = {label: section for section, heading in template.headings.items() for label in heading.label.values()}
    found: dict[Section, list[Item]] = {}
    current: list[Item] | None = None
    for closing in template.closing.values():
        text = text.removesuffix(closing.strip())
    for line in text.rstrip("\n").split("\n"):
        label = _LABEL.match(line)
        section = labels.get(label["label"]) if label else heads.get(line)
        if section is not None:
            current = found.setdefault(section, [])
        elif current is None or _CLOSING_TAG.match(line):
            continue
        elif (body := line.lstrip(" ")).startswith("- ") and len(line) - len(body) in (0, 2):
            current.append(Item(text=body[2:], depth=(len(line) - len(body)) // 2))
        elif body and current and line.startswith("  "):
            last = current[-1]
            current[-1] = replace(last, text=f"{last.text}\n{line[2 * last.depth + 2 :]}")
    return _sections(found, template)


def read_ours(body: str) -> tuple[SectionItems, ...]:
    """The sections of a summary written by compact, given without its marker, by the template that fits it best."""
    lines = set(body.split("\n"))
    best = max(template_names(), key=lambda name: (len(lines & _heads(load_template(name)).keys()), name))
    return read_sections(body, load_template(best))


def read_client(text: str) -> tuple[SectionItems, ...]:
    """The sections of a client's own summary, by the template that fits it best; empty if none has two headings in it.

    Lines and list entries become items; what precedes the first heading is left out.
    """
    lines = set(text.split("\n"))
    # Templates read headings in one of two ways, so each line is read only twice for all of them.
    found = {is_xml: {_name_of(line, is_xml) for line in lines} for is_xml in (True, False)}

    def headings(name: str) -> int:
        names = _known_names(name)
        return len({names[each] for each in names.keys() & found[load_template(name).style is Style.XML]})

    best = max(template_names(), key=lambda name: (headings(name), name))
    if headings(best) < _LEAST_HEADINGS:
        return ()
    names, is_xml = _known_names(best), load_template(best).style is Style.XML
    read: dict[Section, list[Item]] = {}
    current: list[Item] | None = None
    for line in text.split("\n"):
        name = _name_of(line, is_xml)
        if name in names:
            current = read.setdefault(names[name], [])
        elif line.startswith("#"):
            current = None  # a heading that no template knows
        elif current is None or not line.strip() or _CLOSING_TAG.match(line):
            continue
        elif bullet := _BULLET.match(line):
            depth = 1 if current and len(bullet["indent"]) > 1 else 0
            current.append(Item(text=bullet["text"].strip(), depth=depth))
        elif current and line.startswith(" "):
            current[-1] = replace(current[-1], text=f"{current[-1].text}\n{line.strip()}")
        else:
            current.append(Item(text=line.strip()))
    return _sections(read, load_template(best))


def _heads(template: Template) -> dict[str, Section]:
    """Sections by the lines that open their headings, in every language; of sections that share one, the first."""
    order = tuple(template.headings)[::-1]
    return {template.head(section, language): section for language in LANGUAGES for section in order}


@cache
def heading_names(template_name: str) -> Mapping[str, Section]:
    """Sections by all their names, in lower case: those of this template, then names of several words of all others.

    A model that knows a client's format may answer in it, whatever was asked for. A name that sections share stands for
    the first of them.
    """
    others = map(_known_names, template_names())
    phrases = {name: section for names in others for name, section in names.items() if re.search(r"[ _]", name)}
    return {**phrases, **_known_names(template_name)}


@cache
def _known_names(template_name: str) -> Mapping[str, Section]:
    """Sections by all names of a template's headings, in lower case; a shared name stands for the first section."""
    found: dict[str, Section] = {}
    for section, heading in load_template(template_name).headings.items():
        for name in (*heading.name.values(), *heading.known):
            found.setdefault(name.lower(), section)
    return found


def _name_of(line: str, is_xml: bool) -> str:
    """The name in a line that may be a heading, in lower case, without a remark in brackets; empty in other lines."""
    found = (_TAG if is_xml else _AROUND_HEADING).match(line) if len(line) <= _MAX_HEADING_CHARS else None
    return re.sub(r"\s*\([^()]*\)$", "", found["name"].strip()).lower() if found else ""


def _sections(found: Mapping[Section, list[Item]], template: Template) -> tuple[SectionItems, ...]:
    read = {
        section: tuple(_restated(item, section, template, "en", signed=False) for item in items)
        for section, items in found.items()
        if items
    }
    return tuple(SectionItems(section=section, items=items) for section, items in read.items())


def bare_request(
    transcript: Transcript,
    covered: Iterable[int],
    budget_tokens: int,
    count: Callable[[str], int],
    write: Callable[[Summary], str],
) -> Request:
    """A request for a summary of these records alone; earlier summaries among them are read, whoever wrote them."""
    return Request(
        transcript=transcript,
        covered=tuple(covered),
        kept=(),
        budget_tokens=budget_tokens,
        render=write,
        count=count,
        read=read_ours,
        read_client=read_client,
    )
