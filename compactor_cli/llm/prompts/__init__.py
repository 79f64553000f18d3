"""Prompts: what a model is asked, put together from the text files next to this module.

What never changes comes first: the rules and the sections of a template are the same bytes for every transcript,
a system message of their own, so a provider's prompt cache has them. One message of the user holds all the rest:
what is asked for (length, language, focus), the material between marks, and the order to begin after it.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from compactor_cli.llm.outline import OutlineHeading, as_text
from compactor_cli.model.summary import Item, Section, SectionItems
from compactor_cli.model.value import dataclass

LANGUAGES = ("en", "zh")
_DEFAULT = "default"
# Words (of Chinese: characters) for a token: a length in words is what models keep to best.
_WORDS_PER_TOKEN = {"en": 0.7, "zh": 1.1}

# What a model writes: the user's words and what only an old summary holds are carried over without it.
ASKED = frozenset(
    {
        Section.TASK,
        Section.PLAN,
        Section.QUESTIONS,
        Section.DECISIONS,
        Section.ERRORS,
        Section.FILES,
        Section.COMMANDS,
        Section.HISTORY,
    }
)


def written_headings(headings: Iterable[OutlineHeading]) -> tuple[OutlineHeading, ...]:
    """The headings that a model writes under: those of `ASKED`, and of a shared one what stands in it unlabelled."""
    known = tuple(headings)
    shared = {heading.opening for heading in known if heading.label and heading.section in ASKED}
    return tuple(one for one in known if one.section in ASKED or (one.opening in shared and not one.label))


class Stage(StrEnum):
    """What a prompt asks for: the value is the name of its file."""

    LEAF = "leaf"  # a part of the transcript to a summary
    MERGE = "merge"  # summaries of consecutive parts to one


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptWording:
    """What is the same for every prompt of one summary."""

    template: str  # its name, for the priorities
    language: str
    headings: tuple[OutlineHeading, ...]
    focus: str = ""
    instructions: str = ""

    @property
    def written_in(self) -> str:
        """The language of the prompt itself: the summary's, or English where there is no prompt in it."""
        return self.language if self.language in LANGUAGES else LANGUAGES[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptInput:
    """What one prompt is about; every text is quoted and redacted already."""

    stage: Stage
    texts: tuple[str, ...]  # of a LEAF the blocks of its records, of a MERGE the summaries of its parts
    tokens: int
    first: str = ""  # the number of the first record
    last: str = ""
    check_list: str = ""
    previous: str = ""  # a summary to be updated
    part: int = 1
    parts: int = 1
    goal: str = ""  # the user's first request in all parts
    latest: str = ""  # the newest


def rules(wording: PromptWording, stage: Stage) -> str:
    """What comes first: the same for every transcript with this template and language."""
    language = wording.written_in
    words = _words(language)
    descriptions = {**words["sections"], **words.get("templates", {}).get(wording.template, {})}
    sections = (
        SectionItems(section=heading.section, items=(Item(text=f"({descriptions[heading.section.value]})"),))
        for heading in wording.headings
    )
    own = f"{wording.template}.txt"
    priorities = _file(language, own if (_folder(language) / own).is_file() else f"{_DEFAULT}.txt").strip("\n")
    text = _file(language, f"{stage.value}.txt").replace("{{priorities}}", priorities)
    return text.replace("{{sections}}", as_text(sections, wording.headings, gap="\n\n"))


def prompt(wording: PromptWording, prompt_input: PromptInput) -> str:
    """What follows the rules, in one message."""
    words = _words(wording.written_in)
    ending = words[prompt_input.stage.value].format(
        first=prompt_input.first, last=prompt_input.last, parts=len(prompt_input.texts) + bool(prompt_input.previous)
    )
    shown = "\n".join(["<<transcript>>", *prompt_input.texts, "<<end of transcript>>"])
    if prompt_input.stage is Stage.MERGE:
        parts = (f"<<part {number}>>\n{text}" for number, text in enumerate(prompt_input.texts, 1))
        shown = "\n".join([*parts, "<<end of parts>>"])
    count = int(prompt_input.tokens * _WORDS_PER_TOKEN[wording.written_in]) // 10 * 10
    requirements = [
        words["limits"].format(tokens=prompt_input.tokens, words=count),
        words["language"] if wording.language in LANGUAGES else words["other"].format(language=wording.language),
        words["focus"].format(focus=wording.focus) if wording.focus else "",
        words["instructions"].format(instructions=wording.instructions.strip()) if wording.instructions else "",
    ]
    pieces = [
        _file(wording.written_in, "update.txt") if prompt_input.previous else "",
        "\n".join(filter(None, requirements)),
        _place(wording, prompt_input),
        _enclosed("previous summary", prompt_input.previous),
        _enclosed("facts", prompt_input.check_list),
        shown,
        ending,
    ]
    return "\n\n".join(piece.strip("\n") for piece in pieces if piece)


def retry(wording: PromptWording, fault: str, details: Mapping[str, str]) -> str:
    """What follows a prompt whose reply had this fault."""
    description = _words(wording.written_in)["faults"][fault].format(**{"names": "", "detail": "", **details})
    return _file(wording.written_in, "retry.txt").replace("{{fault}}", description).strip("\n")


def verify(wording: PromptWording) -> str:
    """What follows a summary to have it compared with the transcript."""
    return _file(wording.written_in, "verify.txt").strip("\n")


@cache
def version() -> str:
    """12 hex digits that differ whenever the wording of any prompt does."""
    content = hashlib.sha256()
    for language in LANGUAGES:
        for entry in sorted(_folder(language).iterdir(), key=lambda entry: entry.name):
            content.update(entry.name.encode() + b"\0" + entry.read_bytes() + b"\0")
    return content.hexdigest()[:12]


def marks(text: str) -> tuple[str, ...]:
    """The numbers of the records that a prompt shows, in order, as often as it shows them."""
    opened = (line[2:].partition(" ")[0] for line in text.split("\n") if line.startswith("<<") and line.endswith(">>"))
    return tuple(name for name in opened if name[-1:].isdigit())


def _folder(language: str) -> Any:
    return files("compactor_cli.llm.prompts") / language


@cache
def _file(language: str, name: str) -> str:
    text: str = (_folder(language) / name).read_text(encoding="utf-8")
    return text


@cache
def _words(language: str) -> Mapping[str, Any]:
    return tomllib.loads(_file(language, "words.toml"))


def _place(wording: PromptWording, prompt_input: PromptInput) -> str:
    """Where in the whole the material stands, if it is but a part, and what the user wants of the whole."""
    words = _words(wording.written_in)
    place = words["place"].format(part=prompt_input.part, parts=prompt_input.parts) if prompt_input.parts > 1 else ""
    requests = "\n".join(
        words[name].format(text=text)
        for name, text in (("goal", prompt_input.goal), ("latest", prompt_input.latest))
        if text
    )
    return "\n".join(filter(None, (place, _enclosed("requests", requests))))


def _enclosed(name: str, text: str) -> str:
    return f"<<{name}>>\n{text.strip()}\n<<end of {name}>>" if text.strip() else ""
