"""The digest as a method, asked as the engine asks it: once, in rounds of updates, and against its gates.

A frame (preface and marker) is the same for every summary: it is taken from the budget of all methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import partial
from itertools import pairwise

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.digest import Digest
from compactor_cli.evaluate.baselines import Count
from compactor_cli.evaluate.cuts import EvalCase, hashed, part_of
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import Place
from compactor_cli.model.marker import PLACEHOLDER_HASH, Marker, without_marker
from compactor_cli.model.settings import Settings
from compactor_cli.model.summary import Answer, Source, Summariser, Summary
from compactor_cli.model.transcript import Message, PreviousSummary, Record, Role, Text, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.tokens import shown_texts
from compactor_cli.render.template import bare_request, load_template, read_sections, render

TEMPLATE = Settings().template
WriteSummary = Callable[[Summary], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digested:
    """An answer with the text it is written as."""

    answer: Answer
    text: str


def body(summary: Summary) -> str:
    """The sections of a summary as the template writes them, without the frame."""
    return without_marker(render(summary, load_template(TEMPLATE), _MARKER))


def framed(case: EvalCase, budget_tokens: int) -> WriteSummary:
    """How a summary of this case is written at this budget, frame included."""
    marker = Marker(
        transcript=PLACEHOLDER_HASH,
        first=case.middle[0] + 1,
        last=case.middle[-1] + 1,
        records=len(case.prefix.records),
        tokens=case.middle_tokens + case.kept_tokens,
        end=PLACEHOLDER_HASH,
        state=PLACEHOLDER_HASH,
    )
    return partial(render, template=load_template(TEMPLATE).sized(budget_tokens), marker=marker)


def frame_tokens(case: EvalCase, budget_tokens: int, count: Count) -> int:
    """What the frame of this case takes of this budget, with the line break that follows it."""
    return count(f"{framed(case, budget_tokens)(EMPTY)}\n")


EMPTY = Summary(source=Source.DIGEST, sections=())
_MARKER = Marker(transcript="0" * 16, first=1, last=1, records=1, tokens=0, end="0" * 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestMethod:
    """A built-in summariser, by default the digest."""

    summariser: Summariser = field(default_factory=Digest)

    def of(self, case: EvalCase, budget_tokens: int, count: Count, write: WriteSummary = body) -> Digested:
        """The middle of a case; ``write`` gives the text that is paid for."""
        return self.digest(case.prefix, case.middle, (*case.head, *case.tail), budget_tokens, count, write)

    def digest(
        self,
        transcript: Transcript,
        covered: Sequence[int],
        kept: Sequence[int],
        budget_tokens: int,
        count: Count,
        write: WriteSummary = body,
        state: bytes | None = None,
    ) -> Digested:
        """The whole answer for these records of a transcript, for what more than the text is checked of."""
        request = bare_request(transcript, covered, budget_tokens, count, write)
        answer = self.summariser.summarise(replace(request, kept=tuple(kept), state=state))
        return Digested(answer=answer, text=write(answer.summary))


class Carry(StrEnum):
    """What one round hands to the next."""

    STATE = "state"  # the text and the counter table
    TEXT = "text"  # the text alone


def last_summary(
    method: DigestMethod, case: EvalCase, rounds: int, carry: Carry, budget_tokens: int, count: Count
) -> str:
    """The summary after this many rounds, each at this budget. Fewer rounds where there are fewer exchanges."""
    text, state, at = "", None, len(case.head)
    parts = chunks(case, rounds)
    for number, chunk in enumerate(parts, 1):
        rest = (*chunk, *case.tail) if number == len(parts) else chunk
        transcript = with_summary(case, text, rest)
        stop = at + len(chunk) + bool(text)
        kept = (*range(at), *range(stop, len(transcript.records)))
        found = method.digest(transcript, range(at, stop), kept, budget_tokens, count, state=state)
        text, state = found.text, found.answer.state if carry is Carry.STATE else None
    return text


def chunks(case: EvalCase, number: int) -> list[tuple[int, ...]]:
    """The middle in at most ``number`` runs of like size that divide no exchange."""
    borders = [i for i in group(case.prefix.messages).borders if case.middle[0] <= i <= case.middle[-1] + 1]
    sizes = [sum(map(len, shown_texts(message))) for message in case.prefix.messages]
    total = sum(sizes[i] for i in case.middle)
    found: list[tuple[int, ...]] = []
    start, done = case.middle[0], 0
    for before, border in pairwise(borders):
        done += sum(sizes[before:border])
        if done * number >= total * (len(found) + 1) or border == borders[-1]:
            found.append(tuple(range(start, border)))
            start = border
    return found


def with_summary(case: EvalCase, text: str, rest: Sequence[int]) -> Transcript:
    """The head, a summary (none where it is empty) as a later run reads what compact wrote, and the rest."""
    part = part_of(case.prefix, (*case.head, *rest))
    if not text:
        return part
    at, previous = len(case.head), PreviousSummary(origin="compact", text=text)
    record = Record(raw=text.encode(), ending=b"\n", value=None, place=Place(path="-", line=at + 1))
    message = Message(role=Role.USER, parts=(Text(text=text),), summary=previous)
    records = (*part.records[:at], record, *part.records[at:])
    return hashed(replace(part, records=records, messages=(*part.messages[:at], message, *part.messages[at:])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """The hard gates of one digest."""

    budget_ratio: float
    invented: tuple[str, ...]  # atoms that no record of the transcript holds
    malformed: tuple[str, ...]  # what is wrong with the sections

    @property
    def hold(self) -> bool:
        """Whether all of them hold."""
        return self.budget_ratio <= 1 and not self.invented and not self.malformed


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """What a second run does."""

    is_same: bool  # asked the same again, it gives the same text: a hard gate
    # The share of the summary's atoms that are still there when it is summarised again at the same budget with nothing
    # new, its state at hand.
    kept_ratio: float


def gates_of(case: EvalCase, budget_tokens: int, count: Count, found: Digested) -> Gates:
    """The gates of ``found``, a digest of this case at this budget."""
    cleaned = (event.text for event in case.prefix_events)
    shown = (text for message in case.prefix.messages for text in shown_texts(message))
    both = zip(case.prefix.records, case.prefix.messages, strict=False)
    unshown = (record.raw.decode("utf-8", "replace") for record, message in both if message.is_meta)
    return Gates(
        budget_ratio=count(found.text) / budget_tokens,
        invented=invented(found.answer.summary, (*cleaned, *shown, *unshown)),
        malformed=tuple(malformed(found, case.middle)),
    )


def repeat(method: DigestMethod, case: EvalCase, budget_tokens: int, count: Count) -> Repeat:
    """The method run twice on the same, and once on its own summary."""
    found, same = (method.of(case, budget_tokens, count) for _ in range(2))
    before, kept_ratio = atom_texts(found.text) - case.schema, 1.0
    if before:
        transcript, at = with_summary(case, found.text, ()), len(case.head)
        again = method.digest(transcript, (at,), range(at), budget_tokens, count, state=found.answer.state)
        kept_ratio = len(before & atom_texts(again.text)) / len(before)
    return Repeat(is_same=found.text == same.text, kept_ratio=kept_ratio)


def invented(summary: Summary, texts: Iterable[str]) -> tuple[str, ...]:
    """The atoms of the summary's items that stand nowhere in these texts, sorted.

    A path may be joined of the folder that a command ran in and of the path in it.
    """
    named = {atom for part in summary.sections for item in part.items for atom in atom_texts(item.text)}
    source = "\n".join(texts)
    return tuple(sorted(atom for atom in named - atom_texts(source) if not _stands_in(source, atom)))


def _stands_in(source: str, atom: str) -> bool:
    slashes = (at for at, sign in enumerate(atom) if sign == "/")
    return atom in source or any(atom[:at] in source and atom[at + 1 :] in source for at in slashes)


def malformed(found: Digested, covered: Iterable[int]) -> Iterable[str]:
    """What is wrong with the sections, in words; nothing where all is well."""
    sections = found.answer.summary.sections
    names = [part.section for part in sections]
    if len(set(names)) < len(names):
        yield "a section comes twice"
    known = frozenset(covered)
    for part in sections:
        if not part.items:
            yield f"{part.section} is empty"
        for item in part.items:
            if not item.text.strip():
                yield f"{part.section}: an item without text"
            if list(item.records) != sorted(set(item.records)):
                yield f"{part.section}: the records of an item are not ascending"
            if not known.issuperset(item.records):
                yield f"{part.section}: an item names a record that is not covered"
    read = {part.section: len(part.items) for part in read_sections(found.text, load_template(TEMPLATE))}
    if read != {part.section: len(part.items) for part in sections}:
        yield "the text does not read back to its sections"
