"""Results: what an evaluation was asked and what it found, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compactor_cli.evaluate.drift import Carry
from compactor_cli.evaluate.gates import Gates, Repeat
from compactor_cli.evaluate.measures import Measure, Share
from compactor_cli.model.settings import Size

DIGEST = "digest"
DRIFT_BUDGET = Size(ratio=0.05)
DEFAULT_BUDGETS = (
    Size(ratio=0.02),
    Size(ratio=0.05),
    Size(ratio=0.1),
    Size(ratio=0.2),
    Size(tokens=1_000),
    Size(tokens=2_000),
    Size(tokens=4_000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions:
    """What is evaluated, and how.

    ``baselines``: names, or ``all``. ``commands``: external baselines, see `ExternalMethod`. ``budgets``: shares are of
    the middle's tokens. ``rounds``: of the drift; empty leaves it out. ``dialect``: only transcripts of that name.
    ``limit``: at most this many files, spread evenly over all; 0 is all. ``jobs``: processes. ``seed``: of the
    bootstrap.
    """

    baselines: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    budgets: tuple[Size, ...] = DEFAULT_BUDGETS
    tail_tokens: int = 8_000
    rounds: tuple[int, ...] = (1, 2, 5, 10)
    drift_budget: Size = DRIFT_BUDGET
    dialect: str = ""
    limit: int = 0
    jobs: int = 1
    seed: int = 0
    resamples: int = 2_000
    tokenizer: str = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScore:
    """One method at one budget. ``budget_ratio`` is the share of the budget that its text takes."""

    method: str
    budget: str
    shares: Mapping[Measure, Share]
    budget_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftPoint:
    """What is left of the needs after this many updates."""

    rounds: int
    carry: Carry
    shares: Mapping[Measure, Share]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One cut.

    ``session`` is the path below the folder that was named; ``gates`` are the digest's, by budget;
    ``repeat`` and ``drift`` are at one budget, and left out where that makes no sense for this middle.
    """

    name: str
    session: str
    dialect: str
    protocol: str
    middle_tokens: int
    scores: tuple[CaseScore, ...]
    gates: Mapping[str, Gates]
    repeat: Repeat | None = None
    drift: tuple[DriftPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionResult:
    """One question of a question set after compaction by one method at one budget."""

    scenario: str
    question: str
    method: str
    budget: str
    is_kept: bool
    bytes_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """What one input gave. ``skipped`` says why it gave nothing, ``notes`` what of it was left out."""

    path: str
    cases: tuple[CaseResult, ...] = ()
    retention: tuple[RetentionResult, ...] = ()
    skipped: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalResult:
    """An evaluation. ``methods`` in the order of the table, the digest first."""

    options: EvalOptions
    methods: tuple[str, ...]
    token_method: str
    files: tuple[FileResult, ...]

    @property
    def cases(self) -> tuple[CaseResult, ...]:
        """The cuts of all files."""
        return tuple(case for file in self.files for case in file.cases)

    @property
    def retention(self) -> tuple[RetentionResult, ...]:
        """The answered questions of all files."""
        return tuple(item for file in self.files for item in file.retention)

    @property
    def gates_hold(self) -> bool:
        """Whether every digest passed its gates."""
        repeats = all(case.repeat is None or case.repeat.is_same for case in self.cases)
        return repeats and all(gates.hold for case in self.cases for gates in case.gates.values())


def label(size: Size) -> str:
    """How a budget is named: ``5%``, ``2k``, ``500``."""
    if size.ratio:
        return f"{size.ratio * 100:g}%"
    return f"{size.tokens // 1000}k" if size.tokens % 1000 == 0 else str(size.tokens)
