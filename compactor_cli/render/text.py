"""Summary to text, and the text of a template back to its sections."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from compactor_cli.core.errors import UsageError
from compactor_cli.core.marker import Marker
from compactor_cli.core.summary import Item, Section, SectionItems, Summary


class Style(StrEnum):
    """How a section is set off from the next."""

    MARKDOWN = "markdown"  # ## Heading
    XML = "xml"  # <name> … </name>
    PLAIN = "plain"  # Heading:


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A preface and the order and names of the sections, by language; English where a language is missing."""

    style: Style
    preface: Mapping[str, str]
    headings: Mapping[Section, Mapping[str, str]]

    def heading(self, section: Section, language: str) -> str:
        """What this template calls a section."""
        names = self.headings[section]
        return names.get("name") or names.get(language) or names["en"]


_FOLDER = Path(__file__).with_name("templates")


def template_names() -> tuple[str, ...]:
    """The names that `load_template` knows."""
    return tuple(sorted(entry.name[:-5] for entry in _FOLDER.iterdir() if entry.name.endswith(".toml")))


@cache
def load_template(name: str) -> Template:
    """The template of this name, or a UsageError that lists the known ones."""
    if name not in template_names():
        raise UsageError(f"no template is called {name!r}", next_step=f"known: {', '.join(template_names())}")
    data = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    headings = {Section(entry.pop("section")): entry for entry in data["sections"]}
    return Template(style=Style(data["style"]), preface=data["preface"], headings=headings)


def render(summary: Summary, template: Template, marker: Marker) -> str:
    """The whole text of a summary message: preface, marker line, sections in the template's order.

    Sections without items are left out. The text ends without a line break.
    """
    preface = template.preface.get(summary.language) or template.preface["en"]
    lines = [preface.strip().replace("{transcript}", marker.transcript), str(marker)]
    if summary.prose:
        lines += ["", summary.prose.strip()]
    by_section = {part.section: part.items for part in summary.sections}
    for section in template.headings:
        if items := by_section.get(section):
            lines += _section(template.style, template.heading(section, summary.language), items)
    return "\n".join(lines)


def _section(style: Style, heading: str, items: tuple[Item, ...]) -> Iterator[str]:
    body = item_lines(items)
    if style is Style.XML:
        return iter(["", f"<{heading}>", *body, f"</{heading}>"])
    return iter(["", f"## {heading}" if style is Style.MARKDOWN else f"{heading}:", *body])


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


def read_sections(text: str, template: Template) -> tuple[SectionItems, ...]:
    """The sections of a text that `render` wrote with this template, in any of its languages."""
    names = {
        _heading_line(template.style, name): section
        for section, by_language in template.headings.items()
        for name in by_language.values()
    }
    found: dict[Section, list[Item]] = {}
    current: list[Item] | None = None
    for line in text.split("\n"):
        if line in names:
            current = found.setdefault(names[line], [])
        elif current is not None:
            _read_line(line, current)
    return tuple(SectionItems(section=section, items=tuple(items)) for section, items in found.items())


def _heading_line(style: Style, name: str) -> str:
    return {Style.XML: f"<{name}>", Style.MARKDOWN: f"## {name}", Style.PLAIN: f"{name}:"}[style]


def _read_line(line: str, items: list[Item]) -> None:
    body = line.lstrip(" ")
    if body.startswith("- "):
        items.append(Item(text=body[2:], depth=(len(line) - len(body)) // 2))
    elif body and items and line.startswith("  "):
        last = items[-1]
        continued = line[2 * last.depth + 2 :]
        items[-1] = Item(text=f"{last.text}\n{continued}", depth=last.depth)
