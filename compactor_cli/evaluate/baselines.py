"""Baselines: simple ways to fill the same token budget, chosen by name.

A method prepares a case once and then writes it at any budget. All see what the digest sees: the cleaned
events of the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from compactor_cli.digest.transcript_events import Event, EventKind
from compactor_cli.evaluate.coverage import atom_list, coverage_order
from compactor_cli.evaluate.cuts import EvalCase
from compactor_cli.evaluate.fit import Count, best, first, last, most
from compactor_cli.evaluate.lexrank import lexrank_order, mmr_order
from compactor_cli.evaluate.prose import prose
from compactor_cli.evaluate.text_views import lines_of, pieces
from compactor_cli.model.errors import UsageError

Write = Callable[[int], str]

_LABELS = {EventKind.USER: "User: ", EventKind.ASSISTANT: "Assistant: ", EventKind.CALL: "Call: "}
_ELLIPSIS = " … "
_MASK = "[result omitted]"


class Method(Protocol):
    """A way to write the summary of a middle."""

    @property
    def name(self) -> str:
        """The name in tables and options."""
        ...

    def prepare(self, case: EvalCase, count: Count) -> Write:
        """A function from a budget in tokens to the summary's text, at most that long."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A baseline made of one function."""

    name: str
    about: str
    function: Callable[[EvalCase, Count], Write]

    def prepare(self, case: EvalCase, count: Count) -> Write:
        """See `Method`."""
        return self.function(case, count)


def _event_text(event: Event) -> str:
    return _LABELS.get(event.kind, "") + event.text


def _whole(events: Iterable[Event]) -> str:
    return "\n".join(_event_text(event) for event in events)


def _tail(case: EvalCase, count: Count) -> Write:
    text = _whole(case.middle_events)
    return lambda budget: last(text, budget, count)


def _head_tail(case: EvalCase, count: Count) -> Write:
    text = _whole(case.middle_events)

    def write(budget: int) -> str:
        start = first(text, budget // 2, count)
        end = last(text, max(0, budget - count(start) - 2), count)
        return f"{start}\n{end}"

    return write


def _shortened(text: str, chars: int) -> str:
    if len(text) <= chars + len(_ELLIPSIS):
        return text
    return text[: (chars + 1) // 2] + _ELLIPSIS + (text[-(chars // 2) :] if chars > 1 else "")


def _middle_out(case: EvalCase, count: Count) -> Write:
    texts = [_event_text(event) for event in case.middle_events]
    longest = max((len(text) for text in texts), default=0)

    def make(chars: int) -> str:
        return "\n".join(_shortened(text, chars) for text in texts) if chars else ""

    return lambda budget: _filled(make, longest, budget, count, texts)


def _filled(make: Callable[[int], str], longest: int, budget: int, count: Count, texts: list[str]) -> str:
    """Every text as long as fits; where not even a scrap of each fits, the newest scraps."""
    chars = most(longest, make, budget, count)
    return make(chars) if chars else last("\n".join(_shortened(text, 1) for text in texts), budget, count)


def _masking(case: EvalCase, count: Count) -> Write:
    masked = (_MASK if event.kind is EventKind.RESULT else _event_text(event) for event in case.middle_events)
    text = "\n".join(masked)
    return lambda budget: last(text, budget, count)


def _numbered_lines(case: EvalCase) -> list[tuple[int, str]]:
    """The distinct lines of the middle, long ones in pieces, numbered in order."""
    every = (piece for event in case.middle_events for line in lines_of(_event_text(event)) for piece in pieces(line))
    return list(enumerate(dict.fromkeys(every)))


def _lexrank(case: EvalCase, count: Count) -> Write:
    return partial(_best, lexrank_order(_numbered_lines(case)), count)


def _mmr(case: EvalCase, count: Count) -> Write:
    return partial(_best, mmr_order(_numbered_lines(case), _query(case)), count)


def _log_frequency(case: EvalCase, count: Count) -> Write:
    return partial(_best, coverage_order(case.middle_events, _numbered_lines(case)), count)


def _best(ranked: list[tuple[int, str]], count: Count, budget: int) -> str:
    return best(ranked, budget, count)


def _query(case: EvalCase) -> str:
    asked = [event.text for event in case.prefix_events if event.kind is EventKind.USER]
    return "\n".join([*asked[-1:], _whole(case.tail_events)])


def _bare_list(case: EvalCase, count: Count) -> Write:
    atoms = atom_list(case.middle_events)

    def write(budget: int) -> str:
        def make(n: int) -> str:
            return "\n".join(pieces(" ".join(atom for _, atom in sorted(atoms[:n]))))

        return make(most(len(atoms), make, budget, count))

    return write


def _prose(case: EvalCase, count: Count) -> Write:
    return lambda budget: prose(case, budget, count)


BASELINES = (
    Baseline(name="head-tail", about="first and last part of the middle", function=_head_tail),
    Baseline(name="tail", about="last part of the middle", function=_tail),
    Baseline(name="middle-out", about="every message shortened around its middle", function=_middle_out),
    Baseline(name="prose", about="the user's words and whole texts of the assistant, newest first", function=_prose),
    Baseline(name="masking", about="tool results masked, the newest of the rest", function=_masking),
    Baseline(name="lexrank", about="central lines of the graph of similar lines", function=_lexrank),
    Baseline(name="mmr", about="lines near the tail and unlike each other", function=_mmr),
    Baseline(name="log-frequency", about="lines that cover the most frequent atoms", function=_log_frequency),
    Baseline(name="bare-list", about="nothing but atoms: a probe that games FUR", function=_bare_list),
)


def baseline_names() -> tuple[str, ...]:
    """The names that `choose` knows, besides ``all``."""
    return tuple(baseline.name for baseline in BASELINES)


def choose(names: Iterable[str], extra: Iterable[Method] = ()) -> tuple[Method, ...]:
    """The methods of these names, each once, in the order given. ``all`` is every one.

    Raises UsageError for a name that nothing has.
    """
    known: dict[str, Method] = {method.name: method for method in (*BASELINES, *extra)}
    return tuple(known[name] for name in dict.fromkeys(_expanded(names, known)))


def _expanded(names: Iterable[str], known: dict[str, Method]) -> Iterator[str]:
    for name in names:
        if name == "all":
            yield from known
        elif name in known:
            yield name
        else:
            raise UsageError(f"no baseline is called {name!r}", next_step=f"known: all, {', '.join(known)}")
