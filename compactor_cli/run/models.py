"""Models: what all transcripts of a run share when models write their summaries."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from compactor_cli.llm import llm
from compactor_cli.llm.breaker import Breaker
from compactor_cli.llm.estimate import Estimate
from compactor_cli.llm.importance.asked import asked
from compactor_cli.llm.importance.local import PREFIX as LOCAL
from compactor_cli.llm.importance.meaning import Meaning
from compactor_cli.llm.keys import NO_KEYS, Keys, environment_secrets, missing_key, provider_of
from compactor_cli.llm.line import Fallback, Line
from compactor_cli.llm.loop import Loop
from compactor_cli.llm.model import AUTO, SAME, Asking, ModelSummariser
from compactor_cli.llm.pace import Pace, Tempo
from compactor_cli.llm.prices import price_of
from compactor_cli.llm.redact import Redactor
from compactor_cli.llm.replies import ReplyCache
from compactor_cli.llm.spend import Limits, Spend
from compactor_cli.model.errors import CompactError, UsageError
from compactor_cli.model.events import Listener
from compactor_cli.model.importance import Importance
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.window import is_provider, nearest_models

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from compactor_cli.model.summariser import Request

Item = TypeVar("Item")
Result = TypeVar("Result")

# Transcripts read ahead of the one whose turn it is to be written, per thread.
_AHEAD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOrders:
    """What the user wants of models in this run. Files None: no reply cache, no breaker beyond this run.

    ``embedding_model`` tells what is near to the task; without a model in ``asking``, nothing else is asked.
    """

    asking: Asking
    embedding_model: str = ""
    limits: Limits = field(default_factory=Limits)
    tempo: Tempo = field(default_factory=Tempo)
    keys: Keys = NO_KEYS
    fallback: Fallback | None = None
    cache_file: Path | None = None
    breaker_file: Path | None = None
    resets_breaker: bool = False
    redacts: bool = True


class ModelRun:
    """The line to the models, its event loop and threads; use as ``with ModelRun(orders) as run``.

    ``tell`` hears of each call, from the loop's thread. ``spend``, ``pace``, or the whole ``line``: instead of the
    run's own, where other runs share them. Nothing is started before the first summary. On leaving, requests under
    way are cancelled; replies that came in are in the cache.
    """

    def __init__(
        self,
        orders: ModelOrders,
        tell: Listener | None = None,
        *,
        spend: Spend | None = None,
        pace: Pace | None = None,
        line: Line | None = None,
    ) -> None:
        self.orders = orders
        self.cache = ReplyCache(orders.cache_file) if orders.cache_file else None
        self._spend, self._pace = spend or Spend(orders.limits), pace or Pace(orders.tempo)
        self._tell = tell
        self._loop = Loop(llm.close)
        self._breaker = Breaker(file=orders.breaker_file)
        if orders.resets_breaker:
            self._breaker.reset()
        self.line = line or self._line(orders.fallback)
        self.planned = Estimate()
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._known = tuple(secret.reveal() for secret in (*orders.keys.secrets, *environment_secrets()))

    def _line(self, fallback: Fallback | None = None) -> Line:
        return Line(
            spend=self._spend,
            pace=self._pace,
            breaker=self._breaker,
            cache=self.cache,
            keys=self.orders.keys,
            fallback=fallback,
            tell=self._tell,
        )

    @property
    def name(self) -> str:
        """The models that are asked, for people."""
        return ", ".join(filter(None, (self.orders.asking.model, self.orders.embedding_model)))

    @property
    def writes(self) -> bool:
        """Whether a model writes the summaries."""
        return bool(self.orders.asking.model)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            if self.cache:
                stack.callback(self.cache.close)
            if self._pool:
                stack.callback(self._pool.shutdown, wait=True, cancel_futures=True)
            stack.callback(self._loop.close)

    @property
    def threads(self) -> int:
        """Transcripts worked on at once."""
        return max(1, self.orders.tempo.concurrency)

    def summariser(self, archive_dir: Path, guidance: str = "") -> ModelSummariser:
        """The summariser of one input, whose originals are in this archive; ``guidance`` as in `Asking`."""
        return ModelSummariser(
            self.line,
            self._loop,
            replace(self.orders.asking, guidance=guidance),
            new_redactor=self._redactor if self.orders.redacts else None,
            load_original=lambda sha256: load_original(archive_dir, sha256),
        )

    def importance(self) -> Importance:
        """What ranks the middle by the embedding model."""
        model = self.orders.embedding_model
        redactor = self._redactor if self.orders.redacts else None
        asking = self.orders.asking
        return Meaning(
            asked(
                self._line(),
                self._loop,
                model,
                api_base=asking.api_base,
                price=asking.price,
                new_redactor=redactor,
            )
        )

    def estimate(self, request: Request, archive_dir: Path) -> Estimate:
        """What the summary would take; added to ``planned``."""
        found = self.summariser(archive_dir).estimate(request)
        with self._lock:
            self.planned = self.planned + found
        return found

    def mapped(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """``work`` on items in threads; the results in their order. What ``work`` raises is raised here."""
        if self.threads == 1:
            yield from map(work, items)
            return
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(self._threads().submit(work, item))
                while len(waiting) > _AHEAD * self.threads or (waiting and waiting[0].done()):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def settle(self) -> None:
        """Called before an output takes effect; raises where it should not."""

    def _threads(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="transcript")
            return self._pool

    def _redactor(self) -> Redactor:
        return Redactor(self._known)

    def stop(self) -> None:
        """Cancel what is under way: threads that wait for a reply go on with a failure."""
        self._loop.close()


def check_setup(orders: ModelOrders, *, has_keys_elsewhere: bool = False) -> None:
    """Raises `UsageError` for set-up mistakes that no request is needed to see.

    They are: a model that litellm knows no provider of, no key, a limit on cost without a price. Models that the
    transcripts are to name cannot be checked.
    """
    asking, fallback = orders.asking, orders.fallback
    names = [asking.model, *asking.models.values(), orders.embedding_model, fallback.model if fallback else ""]
    for name in dict.fromkeys(names):
        if name and name not in (AUTO, SAME) and not name.startswith(LOCAL):
            _check_model(name, orders, has_keys_elsewhere=has_keys_elsewhere)


def _check_model(name: str, orders: ModelOrders, *, has_keys_elsewhere: bool) -> None:
    api_base = orders.asking.api_base
    provider = _provider(name, api_base)
    if not provider:
        nearest = ", ".join(nearest_models(name))
        advice = "write PROVIDER/MODEL, or give the server with --api-base"
        what = f"no provider of the model {name} is known"
        raise UsageError(what, next_step=f"did you mean {nearest}? or {advice}" if nearest else advice)
    full_name = name if "/" in name else f"{provider}/{name}"
    if not api_base and not has_keys_elsewhere and (variable := missing_key(full_name, orders.keys)):
        advice = f"set {variable}, or name a file with --key-file"
        raise UsageError(f"there is no key for the model {name}", next_step=advice)
    if orders.limits.cost_usd and not orders.asking.price and price_of(name) is None:
        what = f"the price of {name} is not known, so --max-cost cannot be kept"
        raise UsageError(what, next_step="give it in US dollars per million tokens: --price IN,OUT")


def _provider(name: str, api_base: str) -> str:
    """litellm's name of who serves a model; empty if there is none. litellm itself is asked only in doubt."""
    found = provider_of(name)
    if not found and api_base:  # taken for a model of a server with OpenAI's interface
        return "openai"
    return found if found and is_provider(found) else llm.find_provider(name, api_base)


def load_original(archive_dir: Path, sha256: str) -> Transcript | None:
    """The archived transcript whose hash begins with ``sha256``; None if it is not there, or damaged."""
    from compactor_cli.archive.originals import load_transcript

    try:
        return load_transcript([archive_dir], sha256)
    except (CompactError, OSError):
        return None
