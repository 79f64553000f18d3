"""A summary's text back to its sections: that of a template, or of the client that the template is made after."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from compactor_cli.digest.language import LANGUAGES, words_of
from compactor_cli.model.summary import Item, Section, SectionItems
from compactor_cli.render.template_names import template_names
from compactor_cli.render.text import Style, Template, load_template

_CLOSING_TAG = re.compile(r"^\s*</[a-z_]+>\s*$")
_LABEL = re.compile(r"^\*\*(?P<label>.+):\*\*$")
# What clients put around a heading, none of which says anything.
_AROUND_HEADING = re.compile(
    r"^\s*(?:#{1,6}\s+|\d{1,2}\.\s+)?(?:\*\*)?(?P<name>[^*<>\n]{2,60}?)(?:\*\*)?:?(?:\*\*)?\s*$"
)
_TAG = re.compile(r"^\s*<(?P<name>[a-z_]+)>\s*$")
_BULLET = re.compile(r"^(?P<indent>\s*)(?:[-*•]|\d{1,3}[.)])\s+(?P<text>.*)$")
# Fewer headings than this may stand in any text.
_LEAST_HEADINGS = 2


def read_sections(text: str, template: Template) -> tuple[SectionItems, ...]:
    """The sections of a text that `render` wrote with this template, in any of its languages.

    Nothing that an item quotes can be taken for a heading: lines of an item are indented.
    """
    heads = _heads(template)
    labels = {label: section for section, heading in template.headings.items() for label in heading.label.values()}
    found: dict[Section, list[Item]] = {}
    current: list[Item] | None = None
    for line in _body(text, template).split("\n"):
        label = _LABEL.match(line)
        section = labels.get(label["label"]) if label else heads.get(line)
        if section is not None:
            current = found.setdefault(section, [])
        elif current is not None and not _CLOSING_TAG.match(line):
            _read_line(line, current)
    return _sections(found, template)


def read_ours(body: str) -> tuple[SectionItems, ...]:
    """The sections of a summary written by compact after its marker, by the template that has the most headings in
    it.
    """
    lines = set(body.split("\n"))
    best = max(template_names(), key=lambda name: (len(lines & _heads(load_template(name)).keys()), name))
    return read_sections(body, load_template(best))


def read_client(text: str) -> tuple[SectionItems, ...]:
    """The sections of a client's own summary, by the template made after it; empty if no template has two headings.

    Lines and list entries are items; what stands before the first heading is left out.
    """
    best = max(template_names(), key=lambda name: (_headings_in(text, load_template(name)), name))
    template = load_template(best)
    if _headings_in(text, template) < _LEAST_HEADINGS:
        return ()
    return _sections(_read_foreign(text, template), template)


def _heads(template: Template) -> dict[str, Section]:
    """The lines that open headings, in every language; of sections that share one, the first."""
    order = tuple(template.headings)[::-1]
    return {template.head(section, language): section for language in LANGUAGES for section in order}


def _headings_in(text: str, template: Template) -> int:
    names = _known_names(template)
    return len({names[name] for line in text.split("\n") if (name := _name_of(line, template)) in names})


def _read_foreign(text: str, template: Template) -> dict[Section, list[Item]]:
    names = _known_names(template)
    found: dict[Section, list[Item]] = {}
    current: list[Item] | None = None
    for line in text.split("\n"):
        name = _name_of(line, template)
        if name in names:
            current = found.setdefault(names[name], [])
        elif line.startswith("#"):
            current = None  # a heading that no template knows
        elif current is not None and line.strip() and not _CLOSING_TAG.match(line):
            _read_foreign_line(line, current)
    return found


@cache
def heading_names(template_name: str) -> Mapping[str, Section]:
    """All names by which sections of a template are known, lower case; of headings that sections share, the first."""
    return _known_names(load_template(template_name))


def _known_names(template: Template) -> Mapping[str, Section]:
    """All names of the template's headings, lower case; of headings that sections share, the first one's."""
    found: dict[str, Section] = {}
    for section, heading in template.headings.items():
        for name in (*heading.name.values(), *heading.known):
            found.setdefault(name.lower(), section)
    return found


def _name_of(line: str, template: Template) -> str:
    """What a line would be called if it is a heading, without a remark in brackets; empty if it cannot be one."""
    found = _TAG.match(line) if template.style is Style.XML else _AROUND_HEADING.match(line)
    return re.sub(r"\s*\([^()]*\)$", "", found["name"].strip()).lower() if found else ""


def _read_foreign_line(line: str, items: list[Item]) -> None:
    bullet = _BULLET.match(line)
    if bullet:
        items.append(Item(text=bullet["text"].strip(), depth=1 if items and len(bullet["indent"]) > 1 else 0))
    elif items and line.startswith(" "):
        items[-1] = Item(text=f"{items[-1].text}\n{line.strip()}", depth=items[-1].depth)
    else:
        items.append(Item(text=line.strip()))


def _body(text: str, template: Template) -> str:
    """The text without the template's closing."""
    for closing in template.closing.values():
        text = text.removesuffix(closing.strip())
    return text.rstrip("\n")


def _sections(found: Mapping[Section, list[Item]], template: Template) -> tuple[SectionItems, ...]:
    return tuple(
        SectionItems(section=section, items=tuple(_unsigned(item, section, template) for item in items))
        for section, items in found.items()
        if items
    )


def _unsigned(item: Item, section: Section, template: Template) -> Item:
    """A step of a plan with the fixed word for its state in place of the template's sign."""
    if section is Section.PLAN:
        words = words_of("en")
        for state, sign in template.states.items():
            if item.text.startswith(f"{sign} "):
                state_text = item.text.removeprefix(f"{sign} ")
                return Item(
                    text=f"{getattr(words, state)}{words.colon}{state_text}", records=item.records, depth=item.depth
                )
    return item


def _read_line(line: str, items: list[Item]) -> None:
    body = line.lstrip(" ")
    if body.startswith("- ") and (len(line) - len(body)) in (0, 2):
        items.append(Item(text=body[2:], depth=(len(line) - len(body)) // 2))
    elif body and items and line.startswith("  "):
        last = items[-1]
        continued = line[2 * last.depth + 2 :]
        items[-1] = Item(text=f"{last.text}\n{continued}", depth=last.depth)
