"""Prompts: what a model is asked, put together from the text files next to this module, and the reading of its reply.

What never changes comes first: the rules and the sections of a template are a system message of their own, the same
bytes for every transcript, so that a provider's prompt cache has them. One user message holds the rest: what is asked
for (length, language, focus), the material between marks, and after it the instruction to begin.

An outline is the sections of a reply, found under the headings of the template that it was asked to use.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from enum import StrEnum
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson

from compactor_cli.digest.texts import listed
from compactor_cli.llm.quoting import quoter
from compactor_cli.model.summary import Item, Section, SectionItems, Source, Summary, record_ranges
from compactor_cli.model.value import dataclass

# How the item begins in which a part states the user's goal: `Goal: …`.
_GOAL = re.compile(r"\W*(?:(?:goal|objective)\b|目标|目標)", re.IGNORECASE)
_PROBE = "\u241f"
# More cited records show where something happened no better than the first ones and the last.
_MOST_RECORDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineHeading:
    """The lines that a section opens and closes with."""

    section: Section
    opening: str
    closing: str = ""  # empty where the next heading closes it
    label: str = ""  # the line above it where it shares the opening with a section before it


def headings_of(render: Callable[[Summary], str], language: str) -> tuple[OutlineHeading, ...]:
    """The headings that a renderer writes in this language, in its order, found by rendering a summary of probes."""
    probes = tuple(SectionItems(section=section, items=(Item(text=f"{_PROBE}{section.value}"),)) for section in Section)
    lines = render(Summary(source=Source.MODEL, sections=probes, language=language)).split("\n")
    found: list[OutlineHeading] = []
    opening, above = "", ""
    for line in lines:
        if _PROBE in line:
            label = "" if above == opening else above
            found.append(OutlineHeading(section=Section(line.partition(_PROBE)[2]), opening=opening, label=label))
        elif line.startswith("</"):
            found = [replace(one, closing=one.closing or line) if one.opening == opening else one for one in found]
        elif line.strip():
            opening = opening if _PROBE in above else line
        above = line
    return tuple(found)


def heading_lines(render: Callable[[Summary], str], languages: Iterable[str]) -> tuple[str, ...]:
    """Every line that opens or closes a section in these languages: no quoted text may hold one of them."""
    found = (heading for language in languages for heading in headings_of(render, language))
    lines = dict.fromkeys(line for one in found for line in (one.opening, one.label, one.closing))
    return tuple(line for line in lines if line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A reply as it was read."""

    sections: tuple[SectionItems, ...]
    present: frozenset[Section]  # those whose headings it has, without items too
    text: str  # the reply's own words, see `own_words`
    prose: str = ""  # the whole text where it has no heading at all, quoted so that no line of it is one

    def missing(self, headings: Iterable[OutlineHeading]) -> frozenset[Section]:
        """The sections of these headings that the reply lacks. One below a label may be left out; prose lacks none."""
        if self.prose:
            return frozenset()
        return frozenset(heading.section for heading in headings if not heading.label) - self.present


_ASIDE = re.compile(r"<(analysis|think|thinking|scratchpad)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"\A\s*```\w*\n(.*?)\n```\s*\Z", re.DOTALL)
# A line that is a tag and nothing else: tags of sections are known by name, all others only enclose.
_TAG_LINE = re.compile(r"^</?[A-Za-z_][\w.-]*(?:\s[^<>]*)?/?>$")
_TAG = re.compile(r"</?([a-z][a-z_]+)>")
_MARK = re.compile(r"[-*+•]\s+|\d{1,3}[.)]\s+")
# Citations of records at the end of an item: ` [3, 12-15]`, ` [records 4]`.
_CITED = re.compile(r"(?:\s*\[(?:records? )?[a-z]?\d+(?:\s*[-–,;]\s*[a-z]?\d+)*\])+(?=[.。;；]?\s*$)")
_NUMBERS = re.compile(r"(\d+)(?:\s*[-–]\s*(\d+))?")
_NOTHING = frozenset({"none", "n/a", "nothing", "(none)", "无", "没有", "なし", "-"})


def own_words(text: str) -> str:
    """A reply without its thoughts, without the fence around it, and taken out of a JSON object of one key."""
    text = _ASIDE.sub("", text)
    fenced = _FENCED.match(text)
    text = (fenced[1] if fenced else text).strip()
    if text.startswith("{"):
        with suppress(ValueError):
            match list(orjson.loads(text).values()):
                case [str(inner)]:
                    return own_words(inner)
    return text


def read_reply(
    text: str, headings: Sequence[OutlineHeading], covered: frozenset[int], known: Mapping[str, Section] | None = None
) -> Outline:
    """The sections of a reply, however its headings are marked up; what precedes the first one is left out.

    ``known``: other names of headings, in lower case, that replies in the format of a client may use. Items name the
    covered records that they cite. No line of an item is a heading or a mark written by compact.
    """
    # Sections by the plain text of the line that opens them; where several share it, the first.
    openings = [(heading.opening, heading.section) for heading in headings]
    labels = [(heading.label, heading.section) for heading in headings]
    names: dict[str, Section] = {}
    for name, section in (*openings, *labels, *(known or {}).items()):
        names.setdefault(_plain(name), section)
    names.pop("", None)
    quoted = quoter(line for heading in headings for line in (heading.opening, heading.label, heading.closing))
    reader = _OutlineReader(quoted=quoted)
    words = own_words(text)
    # Tags of sections get lines of their own, and so does what follows a plain heading.
    spread = _TAG.sub(lambda found: f"\n{found[0]}\n" if _plain(f"<{found[1]}>") in names else found[0], words)
    has_colons = any(heading.opening.endswith(":") for heading in headings)
    for line in spread.split("\n"):
        head, colon, rest = line.partition(":")
        is_both = has_colons and colon and rest.strip() and _may_open(head) and _plain(head) in names
        for one in (f"{head}:", rest.strip()) if is_both else (line,):
            reader.read(one, names.get(_plain(one)) if _may_open(one) else None)
    sections = []
    for section, items in reader.found.items():
        plain = [(item, _CITED.sub("", item.text).strip().rstrip(".。").casefold()) for item in items]
        if kept := tuple(_cited(item, covered) for item, text in plain if text not in _NOTHING):
            sections.append(SectionItems(section=section, items=kept))
    prose = "" if reader.found else quoted(words)
    return Outline(sections=tuple(sections), present=frozenset(reader.found), text=words, prose=prose)


@dataclass(slots=True, kw_only=True)
class _OutlineReader:
    """Reads a reply line by line into items."""

    quoted: Callable[[str], str]
    found: dict[Section, list[Item]] = field(default_factory=dict)
    current: list[Item] | None = None  # the items of the current section; None before the first heading
    in_code: bool = False  # inside a fence
    after_blank: bool = True  # the line before was blank or a heading
    margin: int | None = None  # how far the whole current section is indented; None before its first line

    def read(self, line: str, section: Section | None) -> None:
        """Read the next line; ``section``: the one that it opens, if it does."""
        if section is not None and not self.in_code:
            self.current, self.after_blank, self.margin = self.found.setdefault(section, []), True, None
            return
        body, items = line.strip(), self.current
        if items is None or (_TAG_LINE.match(body) and not self.in_code):
            return
        indent = len(line) - len(line.lstrip())
        if body and self.margin is None:
            self.margin = indent
        indent = max(indent - (self.margin or 0), 0)
        mark = None if self.in_code else _MARK.match(body)
        if body.startswith("```"):
            self.in_code = not self.in_code
        if mark and len(body) > mark.end():
            items.append(Item(text=self.quoted(body[mark.end() :]), depth=1 if indent > 1 and items else 0))
        elif body and (not items or (self.after_blank and not indent and not self.in_code)):
            items.append(Item(text=self.quoted(body.lstrip("#> ") or body)))
        elif body:
            text = line[min(self.margin or 0, len(line) - len(line.lstrip())) :]
            text = listed(self.quoted(text[2:] if text.startswith("  ") else text).rstrip())
            items[-1] = replace(items[-1], text=f"{items[-1].text}\n{text}")
        self.after_blank = not body


def _may_open(line: str) -> bool:
    return 0 < len(line) <= 120 and not line.lstrip().startswith(("- ", "* ", "• ")) and not line.startswith("  ")


@lru_cache(maxsize=4096)
def _plain(line: str) -> str:
    """A heading in lower case without hashes, stars, number, colon and a remark in brackets; empty for closing tags."""
    body = line.strip()
    if body.startswith("</"):
        return ""
    body = re.sub(r"^(?:#{1,6}\s*|\d{1,2}[.)]\s*|\*\*)*", "", body)
    body = re.sub(r"[*:：\s]+$", "", body)
    body = re.sub(r"(?<=\S)\s*\([^()]*\)$", "", body)
    return re.sub(r"[*:：\s]+$", "", body).strip("<>").replace("_", " ").casefold()


def _cited(item: Item, covered: frozenset[int]) -> Item:
    """The item with its citations moved from its text to its records; numbers of records not covered are dropped."""
    found = _CITED.search(item.text)
    if found is None:
        return item
    records: set[int] = set()
    for first, last in _NUMBERS.findall(found[0]):
        stop = int(last or first)
        if int(first) <= stop < int(first) + 1_000_000:
            records |= covered.intersection(range(int(first) - 1, stop))
    named = tuple(sorted(records))
    if len(named) > _MOST_RECORDS:
        named = (*named[: _MOST_RECORDS - 1], named[-1])
    text = item.text[: found.start()] + item.text[found.end() :]
    return replace(item, text=text.rstrip(), records=named)


def joined_outline(outlines: Sequence[Outline]) -> Outline:
    """The sections of consecutive parts joined, item after item; of items with the same text, the last.

    The task is that of the newest part that has one, with the goal of an earlier part where it states none.
    """
    found: dict[Section, dict[str, Item]] = {}
    for part in (part for outline in outlines for part in outline.sections):
        items = found.setdefault(part.section, {})
        if part.section is Section.TASK:
            has_goal = any(_GOAL.match(item.text) for item in part.items)
            goals = [item for item in items.values() if _GOAL.match(item.text) and not has_goal]
            items.clear()
            items.update((goal.text, goal) for goal in goals)
        for item in part.items:
            items.pop(item.text, None)
            items[item.text] = item
    sections = tuple(SectionItems(section=section, items=tuple(items.values())) for section, items in found.items())
    text = "\n".join(item.text for part in sections for item in part.items)
    prose = "\n\n".join(outline.prose for outline in outlines if outline.prose)
    return Outline(sections=sections, present=frozenset(found), text=f"{prose}\n{text}".strip(), prose=prose)


def as_text(sections: Iterable[SectionItems], headings: Sequence[OutlineHeading], gap: str = "\n") -> str:
    """Sections as a prompt shows them: under these headings, records after their items, ``gap`` between sections."""
    by_section = {part.section: part.items for part in sections}
    filled = [heading for heading in headings if by_section.get(heading.section)]
    parts: list[str] = []
    for opening, group in groupby(filled, key=lambda heading: heading.opening):
        lines, closing = [opening], ""
        for heading in group:
            lines.append(heading.label)
            for item in by_section[heading.section]:
                indent = "  " * item.depth
                body = item.text.replace("\n", f"\n{indent}  ")
                tag = f" [{','.join(record_ranges(item.records))}]" if item.records else ""
                lines.append(f"{indent}- {body}{tag}")
            closing = heading.closing
        parts.append("\n".join(filter(None, (*lines, closing))))
    return gap.join(parts)


LANGUAGES = ("en", "zh")
_FOLDER = Path(__file__).parent
# Words (in Chinese, characters) per token: models keep best to a length in words.
_WORDS_PER_TOKEN = {"en": 0.7, "zh": 1.1}

# The sections that a model writes; the user's words and what only an old summary holds are carried over without it.
ASKED = frozenset(Section) - {Section.USER, Section.PREVIOUS, Section.NAMES}


def written_headings(headings: Iterable[OutlineHeading]) -> tuple[OutlineHeading, ...]:
    """The headings that a model writes under: those of `ASKED` sections, and the unlabelled one where they share it."""
    known = tuple(headings)
    shared = {heading.opening for heading in known if heading.label and heading.section in ASKED}
    return tuple(one for one in known if one.section in ASKED or (one.opening in shared and not one.label))


class Stage(StrEnum):
    """What a prompt asks for; the value is the name of its file."""

    LEAF = "leaf"  # to summarise a part of the transcript
    MERGE = "merge"  # to join the summaries of consecutive parts


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptWording:
    """What is the same for every prompt of one summary."""

    template: str  # its name, which chooses the priorities
    language: str  # of the summary
    headings: tuple[OutlineHeading, ...]  # that the model is to write under
    focus: str = ""
    instructions: str = ""

    @property
    def written_in(self) -> str:
        """The language of the prompt itself: the summary's, or English where there is none in that language."""
        return self.language if self.language in LANGUAGES else LANGUAGES[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptInput:
    """What one prompt is about; every text is quoted and redacted already."""

    stage: Stage
    texts: tuple[str, ...]  # for a LEAF the blocks of its records, for a MERGE the summaries of its parts
    tokens: int  # the length that is asked for
    first: str = ""  # the number of the first record
    last: str = ""  # the number of the last record
    check_list: str = ""
    previous: str = ""  # a summary to be updated
    part: int = 1  # which of ``parts``, counted from 1
    parts: int = 1
    goal: str = ""  # the user's first request in all parts
    latest: str = ""  # the user's newest request in all parts


def rules(wording: PromptWording, stage: Stage) -> str:
    """The system message of a prompt: the same for every transcript with this template and language."""
    language = wording.written_in
    words = _words(language)
    descriptions = {**words["sections"], **words.get("templates", {}).get(wording.template, {})}
    sections = (
        SectionItems(section=heading.section, items=(Item(text=f"({descriptions[heading.section.value]})"),))
        for heading in wording.headings
    )
    own = f"{wording.template}.txt"
    priorities = _file(language, own if (_FOLDER / language / own).is_file() else "default.txt").strip("\n")
    text = _file(language, f"{stage.value}.txt").replace("{{priorities}}", priorities)
    return text.replace("{{sections}}", as_text(sections, wording.headings, gap="\n\n"))


def prompt(wording: PromptWording, prompt_input: PromptInput) -> str:
    """The user message of a prompt, which follows the rules."""
    words, given = _words(wording.written_in), prompt_input
    total = len(given.texts) + bool(given.previous)
    ending = words[given.stage.value].format(first=given.first, last=given.last, parts=total)
    shown = "\n".join(["<<transcript>>", *given.texts, "<<end of transcript>>"])
    if given.stage is Stage.MERGE:
        parts = (f"<<part {number}>>\n{text}" for number, text in enumerate(given.texts, 1))
        shown = "\n".join([*parts, "<<end of parts>>"])
    count = int(given.tokens * _WORDS_PER_TOKEN[wording.written_in]) // 10 * 10
    requirements = [
        words["limits"].format(tokens=given.tokens, words=count),
        words["language"] if wording.language in LANGUAGES else words["other"].format(language=wording.language),
        words["focus"].format(focus=wording.focus) if wording.focus else "",
        words["instructions"].format(instructions=wording.instructions.strip()) if wording.instructions else "",
    ]
    # For one of several parts: which one it is, and what the user wants overall.
    place = words["place"].format(part=given.part, parts=given.parts) if given.parts > 1 else ""
    goal = words["goal"].format(text=given.goal) if given.goal else ""
    latest = words["latest"].format(text=given.latest) if given.latest else ""
    pieces = [
        _file(wording.written_in, "update.txt") if given.previous else "",
        "\n".join(filter(None, requirements)),
        "\n".join(filter(None, (place, _enclosed("requests", "\n".join(filter(None, (goal, latest))))))),
        _enclosed("previous summary", given.previous),
        _enclosed("facts", given.check_list),
        shown,
        ending,
    ]
    return "\n\n".join(piece.strip("\n") for piece in pieces if piece)


def retry(wording: PromptWording, fault: str, details: Mapping[str, str]) -> str:
    """The text added to a prompt whose reply had this fault."""
    description = _words(wording.written_in)["faults"][fault].format(**{"names": "", "detail": "", **details})
    return _file(wording.written_in, "retry.txt").replace("{{fault}}", description).strip("\n")


def verify(wording: PromptWording) -> str:
    """The message after a summary that asks the model to compare it with the transcript."""
    return _file(wording.written_in, "verify.txt").strip("\n")


@cache
def version() -> str:
    """12 hex digits that change whenever the wording of any prompt does."""
    content = hashlib.sha256()
    for language in LANGUAGES:
        for entry in sorted((_FOLDER / language).iterdir(), key=lambda entry: entry.name):
            content.update(entry.name.encode() + b"\0" + entry.read_bytes() + b"\0")
    return content.hexdigest()[:12]


def marks(text: str) -> tuple[str, ...]:
    """The numbers of the records that a prompt shows, in order, as often as it shows them."""
    opened = (line[2:].partition(" ")[0] for line in text.split("\n") if line.startswith("<<") and line.endswith(">>"))
    return tuple(name for name in opened if name[-1:].isdigit())


@cache
def _file(language: str, name: str) -> str:
    return (_FOLDER / language / name).read_text(encoding="utf-8")


@cache
def _words(language: str) -> Mapping[str, Any]:
    return tomllib.loads(_file(language, "words.toml"))


def _enclosed(name: str, text: str) -> str:
    return f"<<{name}>>\n{text.strip()}\n<<end of {name}>>" if text.strip() else ""
