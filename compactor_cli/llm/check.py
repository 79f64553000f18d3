"""Check: whether a reply is the summary that was asked for, held against what the model was shown.

The gate comes from 62 real compactions: that at least 30 % of the 50 most salient atoms are in the text holds for
95 % of real summaries, and fails for 92 % of replies that are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.events import Event, EventKind, events
from compactor_cli.digest.salience import score
from compactor_cli.digest.table import build
from compactor_cli.llm.calls import Reply
from compactor_cli.llm.outline import Heading, Outline, as_text, read_reply
from compactor_cli.model.transcript import Transcript

SALIENT = 50
GATE_RATIO = 0.3
# A budget has room for so many of them: an atom with what is said about it takes about 20 tokens.
_TOKENS_PER_SALIENT = 20
_LEAST_SALIENT = 6
MOST_INVENTED_RATIO = 0.05
# A model counts tokens by feel, and the ledger behind its text gives way.
LENGTH_TOLERANCE = 1.15
_NAMED = 12


class Fault(StrEnum):
    """Why a reply is not taken; the value is the name of what the model is told."""

    TOOL_CALL = "tool-call"
    EMPTY = "empty"
    CUT_OFF = "cut-off"
    FILTERED = "filtered"
    NO_SUMMARY = "no-summary"
    MISSING_SECTIONS = "sections"
    TOO_LONG = "too-long"
    INFLATED = "inflated"
    INVENTED = "invented"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a reply is held against.

    ``shown``: the prompt, in which everything that the reply names must stand. ``salient``: atoms (in talk
    without any: words) of the records, the most needed first. ``source_tokens``: what the summary stands for,
    ``room_tokens``: what it may take.
    """

    shown: str
    salient: tuple[str, ...]
    source_tokens: int
    room_tokens: int
    headings: tuple[Heading, ...]
    covered: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``fault`` None: taken. ``details`` is for the model; ``invented`` names what the prompt does not hold."""

    outline: Outline
    fault: Fault | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    invented: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The fault for people: a line without texts of the transcript."""
        detail = self.details.get("detail", "")
        return f"{self.fault or 'ok'}" + (f" ({detail})" if detail else "")


def check(reply: Reply, ground: Ground, count: Callable[[str], int]) -> Verdict:
    """The reply read, and the first fault it has. Raises nothing, whatever the text."""
    outline = read_reply(reply.text, ground.headings, ground.covered)
    if fault := _mechanical(reply, outline):
        return Verdict(outline=outline, fault=fault)
    text = as_text(outline.sections, ground.headings)
    for test in (_gate, _sections, _length):
        if verdict := test(outline, text or outline.text, ground, count):
            return verdict
    return _invented(outline, text, ground)


def _mechanical(reply: Reply, outline: Outline) -> Fault | None:
    """What the reply says of itself."""
    if reply.has_tool_call:
        return Fault.TOOL_CALL
    if reply.finish_reason == "content_filter":
        return Fault.FILTERED
    if reply.finish_reason == "length":
        return Fault.CUT_OFF
    return None if outline.text else Fault.EMPTY


def _gate(outline: Outline, text: str, ground: Ground, count: Callable[[str], int]) -> Verdict | None:
    most = max(_LEAST_SALIENT, ground.room_tokens // _TOKENS_PER_SALIENT)
    wanted = ground.salient[: min(SALIENT, most)]
    folded = text.casefold()
    missing = [atom for atom in wanted if atom.casefold() not in folded]
    held = len(wanted) - len(missing)
    if not wanted or held >= GATE_RATIO * len(wanted):
        return None
    details = {"detail": f"{held}/{len(wanted)}", "names": ", ".join(missing[:_NAMED])}
    return Verdict(outline=outline, fault=Fault.NO_SUMMARY, details=details)


def _sections(outline: Outline, text: str, ground: Ground, count: Callable[[str], int]) -> Verdict | None:
    missing = [heading.opening for heading in ground.headings if heading.section not in outline.present]
    if not missing:
        return None
    details = {"names": ", ".join(missing), "detail": f"{len(missing)}/{len(ground.headings)}"}
    return Verdict(outline=outline, fault=Fault.MISSING_SECTIONS, details=details)


def _length(outline: Outline, text: str, ground: Ground, count: Callable[[str], int]) -> Verdict | None:
    tokens = count(text)
    if tokens > max(ground.source_tokens, 1):
        fault, detail = Fault.INFLATED, f"{tokens} > {ground.source_tokens}"
    elif tokens > ground.room_tokens * LENGTH_TOLERANCE:
        fault, detail = Fault.TOO_LONG, f"{tokens} > {ground.room_tokens}"
    else:
        return None
    return Verdict(outline=outline, fault=fault, details={"detail": detail})


def _invented(outline: Outline, text: str, ground: Ground) -> Verdict:
    named = sorted(atom_texts(text))
    invented = not_in(named, (ground.shown,))
    if len(invented) <= MOST_INVENTED_RATIO * len(named):
        return Verdict(outline=outline, invented=invented)
    details = {"names": ", ".join(invented[:_NAMED]), "detail": f"{len(invented)}/{len(named)}"}
    return Verdict(outline=outline, fault=Fault.INVENTED, details=details, invented=invented)


def not_in(names: Iterable[str], texts: Sequence[str]) -> tuple[str, ...]:
    """The names that stand in none of the texts."""
    return tuple(name for name in names if not any(name in text for text in texts))


def salient(parts: Iterable[tuple[Transcript, Sequence[int]]], shown: str, focus: str = "") -> tuple[str, ...]:
    """What of these records is most likely needed again, best first, as far as the prompt shows it.

    Atoms, or words where there are few atoms. Linear in the records' text.
    """
    found: list[Event] = []
    for transcript, indices in parts:
        found.extend(event for event in events(transcript, indices) if event.kind is not EventKind.SUMMARY)
    scores = score(build(found), focus=focus)
    atoms = tuple(atom for atom in scores.top(4 * SALIENT) if atom in shown)[:SALIENT]
    if len(atoms) >= _LEAST_SALIENT:
        return atoms
    return tuple(sorted(scores.terms, key=lambda term: (-scores.terms[term], term))[:_LEAST_SALIENT])
