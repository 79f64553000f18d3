"""Summary to text in a template."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from itertools import groupby
from typing import Any

from compactor_cli.digest.language import words_of
from compactor_cli.model.marker import Marker
from compactor_cli.model.summary import Item, Section, Summary
from compactor_cli.render.template_names import FOLDER, check_template


class Style(StrEnum):
    """How a section is set off from the next."""

    MARKDOWN = "markdown"  # ## Heading
    XML = "xml"  # <name> … </name>
    PLAIN = "plain"  # Heading:
    NUMBERED = "numbered"  # 3. Heading:


ByLanguage = Mapping[str, str]
# Below this size, a summary stands under the brief preface.
BRIEF_TOKENS = 800


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What a section stands under, by language. Neighbours of one name share it, each under its ``label``.

    ``number`` counts the headings of a template from 1; ``known`` are other names that clients gave the section.
    """

    name: ByLanguage
    label: ByLanguage
    number: int
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The frame, and the order and headings of the sections; English where a language is missing.

    ``preface`` stands before the marker line, ``opening`` after it, ``closing`` at the end. ``brief`` is the preface
    of a small summary, where there is one of its own. ``states`` are what stands for the fixed words of a plan
    (done, doing, open) where the template has signs for them.
    """

    style: Style
    preface: ByLanguage
    opening: ByLanguage
    closing: ByLanguage
    headings: Mapping[Section, Heading]
    states: ByLanguage = field(default_factory=dict)
    brief: ByLanguage = field(default_factory=dict)

    def sized(self, summary_tokens: int) -> Template:
        """The template for a summary of this many tokens in all: its preface takes no tenth of it if it can be
        helped.
        """
        return replace(self, preface=self.brief) if self.brief and summary_tokens < BRIEF_TOKENS else self

    def head(self, section: Section, language: str) -> str:
        """The line that opens this section's heading."""
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
    """The template of this name, or a UsageError that lists the known ones."""
    check_template(name)
    data = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    if "like" in data:
        return _behind(data["before"], load_template(data["like"]))
    return Template(
        style=Style(data["style"]),
        preface=data["preface"],
        opening=data.get("opening", {}),
        closing=data.get("closing", {}),
        headings=_headings(data["sections"]),
        states=data.get("states", {}),
        brief=data.get("brief", {}),
    )


def _behind(words: str, template: Template) -> Template:
    """The template with these words before its prefaces."""

    def led(texts: ByLanguage) -> ByLanguage:
        return {language: f"{words}{text}" for language, text in texts.items()}

    return replace(template, preface=led(template.preface), brief=led(template.brief))


def _headings(entries: Iterable[dict[str, Any]]) -> dict[Section, Heading]:
    found: dict[Section, Heading] = {}
    names: list[ByLanguage] = []
    for entry in entries:
        section, label = Section(entry.pop("section")), entry.pop("label", {})
        known = tuple(entry.pop("known", ()))
        if entry not in names:
            names.append(entry)
        found[section] = Heading(name=entry, label=label, number=names.index(entry) + 1, known=known)
    return found


def render(summary: Summary, template: Template, marker: Marker) -> str:
    """The whole text of a summary message: preface, marker line, sections in the template's order, closing.

    Sections without items are left out. The text ends without a line break.
    """
    language = summary.language
    preface = in_language(template.preface, language).strip()
    lines = [preface.replace("{transcript}", marker.transcript), str(marker)]
    lines += filter(None, [in_language(template.opening, language).strip()])
    if summary.prose:
        lines += ["", summary.prose.strip()]
    lines += _all_sections({part.section: part.items for part in summary.sections}, template, language)
    closing = in_language(template.closing, language).strip()
    return "\n".join([*lines, "", closing] if closing else lines)


def _all_sections(items: Mapping[Section, tuple[Item, ...]], template: Template, language: str) -> Iterator[str]:
    filled = [section for section in template.headings if items.get(section)]
    for head, group in groupby(filled, key=lambda section: template.head(section, language)):
        yield from ("", head)
        for section in group:
            if label := in_language(template.headings[section].label, language):
                yield f"**{label}:**"
            yield from item_lines(_stated(item, section, template, language) for item in items[section])
        if template.style is Style.XML:
            yield f"</{head[1:]}"


def _stated(item: Item, section: Section, template: Template, language: str) -> Item:
    """A step of a plan with the template's sign in place of the fixed word for its state."""
    if section is Section.PLAN:
        words = words_of(language)
        for state, sign in template.states.items():
            label = f"{getattr(words, state)}{words.colon}"
            if item.text.startswith(label):
                return replace(item, text=f"{sign} {item.text.removeprefix(label)}")
    return item


def item_lines(items: Iterable[Item]) -> Iterator[str]:
    """Items as a list; the records of an item follow it in brackets, unless the line above names them already."""
    shown: tuple[int, ...] = ()
    for item in items:
        tag = "" if item.records == shown and item.depth else record_tag(item.records)
        shown = item.records
        indent = "  " * item.depth
        text = item.text.replace("\n", f"\n{indent}  ")
        yield f"{indent}- {text}{tag}"


def record_tag(records: tuple[int, ...]) -> str:
    """The records in brackets, counted from 1: ``[12]``, ``[12-15]``, ``[3,12]``; of many, the first and the last."""
    if not records:
        return ""
    first, last = records[0] + 1, records[-1] + 1
    if first == last:
        return f" [{first}]"
    return f" [{first},{last}]" if len(records) == 2 and last > first + 1 else f" [{first}-{last}]"
