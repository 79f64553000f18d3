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
from compactor_cli.llm.importance import PREFIX as LOCAL
from compactor_cli.llm.importance import Meaning, asked
from compactor_cli.llm.limits import Breaker, RateLimiter, RateLimits, Spend, SpendLimits
from compactor_cli.llm.model import AUTO, SAME, Estimate, ModelOptions, ModelSummariser
from compactor_cli.llm.model_calls import NO_KEYS, Keys, environment_secrets, missing_key, price_of, provider_of
from compactor_cli.llm.model_client import BackgroundEventLoop, Fallback, ModelClient
from compactor_cli.llm.redact import Redactor
from compactor_cli.llm.reply_cache import ReplyCache
from compactor_cli.model.errors import CompactError, UsageError
from compactor_cli.model.plan import Importance
from compactor_cli.model.report import Listener
from compactor_cli.model.transcript import Transcript
from compactor_cli.plan.models import is_provider, nearest_models

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from compactor_cli.model.summary import Request

Item = TypeVar("Item")
Result = TypeVar("Result")

# Transcripts read ahead of the one whose turn it is to be written, per thread.
_AHEAD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """What the user wants of models in this run. Files None: no reply cache, no breaker beyond this run.

    ``embedding_model`` tells what is near to the task; without a model in ``model_options``, nothing else is asked.
    """

    model_options: ModelOptions
    embedding_model: str = ""
    limits: SpendLimits = field(default_factory=SpendLimits)
    rate_limits: RateLimits = field(default_factory=RateLimits)
    keys: Keys = NO_KEYS
    fallback: Fallback | None = None
    cache_file: Path | None = None
    breaker_file: Path | None = None
    resets_breaker: bool = False
    redacts: bool = True


class ModelRun:
    """The line to the models, its event loop and threads; use as ``with ModelRun(run_config) as run``.

    ``emit`` hears of each call, from the loop's thread. ``spend``, ``rate_limiter``, or the whole ``line``: instead of
    the run's own, where other runs share them. Nothing is started before the first summary. On leaving, requests under
    way are cancelled; replies that came in are in the cache.
    """

    def __init__(
        self,
        run_config: ModelConfig,
        emit: Listener | None = None,
        *,
        spend: Spend | None = None,
        rate_limiter: RateLimiter | None = None,
        line: ModelClient | None = None,
    ) -> None:
        self.run_config = run_config
        self.cache = ReplyCache(run_config.cache_file) if run_config.cache_file else None
        self._spend, self._rate_limiter = (
            spend or Spend(run_config.limits),
            rate_limiter or RateLimiter(run_config.rate_limits),
        )
        self._emit = emit
        self._loop = BackgroundEventLoop(llm.close)
        self._breaker = Breaker(file=run_config.breaker_file)
        if run_config.resets_breaker:
            self._breaker.reset()
        self.line = line or self._line(run_config.fallback)
        self.planned = Estimate()
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._known = tuple(secret.reveal() for secret in (*run_config.keys.secrets, *environment_secrets()))

    def _line(self, fallback: Fallback | None = None) -> ModelClient:
        return ModelClient(
            spend=self._spend,
            rate_limiter=self._rate_limiter,
            breaker=self._breaker,
            cache=self.cache,
            keys=self.run_config.keys,
            fallback=fallback,
            emit=self._emit,
        )

    @property
    def name(self) -> str:
        """The models that are asked, for people."""
        return ", ".join(filter(None, (self.run_config.model_options.model, self.run_config.embedding_model)))

    @property
    def writes(self) -> bool:
        """Whether a model writes the summaries."""
        return bool(self.run_config.model_options.model)

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
        return max(1, self.run_config.rate_limits.concurrency)

    def summariser(self, archive_dir: Path, guidance: str = "") -> ModelSummariser:
        """The summariser of one input, whose originals are in this archive; ``guidance`` as in `ModelOptions`."""
        return ModelSummariser(
            self.line,
            self._loop,
            replace(self.run_config.model_options, guidance=guidance),
            new_redactor=self._redactor if self.run_config.redacts else None,
            load_original=lambda sha256: load_original(archive_dir, sha256),
        )

    def importance(self) -> Importance:
        """What ranks the middle by the embedding model."""
        model = self.run_config.embedding_model
        redactor = self._redactor if self.run_config.redacts else None
        model_options = self.run_config.model_options
        return Meaning(
            asked(
                self._line(),
                self._loop,
                model,
                api_base=model_options.api_base,
                price=model_options.price,
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


def check_setup(run_config: ModelConfig, *, has_keys_elsewhere: bool = False) -> None:
    """Raises `UsageError` for set-up mistakes that no request is needed to see.

    They are: a model that litellm knows no provider of, no key, a limit on cost without a price. Models that the
    transcripts are to name cannot be checked.
    """
    model_options, fallback = run_config.model_options, run_config.fallback
    names = [
        model_options.model,
        *model_options.models.values(),
        run_config.embedding_model,
        fallback.model if fallback else "",
    ]
    for name in dict.fromkeys(names):
        if name and name not in (AUTO, SAME) and not name.startswith(LOCAL):
            _check_model(name, run_config, has_keys_elsewhere=has_keys_elsewhere)


def _check_model(name: str, run_config: ModelConfig, *, has_keys_elsewhere: bool) -> None:
    api_base = run_config.model_options.api_base
    provider = _provider(name, api_base)
    if not provider:
        nearest = ", ".join(nearest_models(name))
        advice = "write PROVIDER/MODEL, or give the server with --api-base"
        what = f"no provider of the model {name} is known"
        raise UsageError(what, next_step=f"did you mean {nearest}? or {advice}" if nearest else advice)
    full_name = name if "/" in name else f"{provider}/{name}"
    if not api_base and not has_keys_elsewhere and (variable := missing_key(full_name, run_config.keys)):
        advice = f"set {variable}, or name a file with --key-file"
        raise UsageError(f"there is no key for the model {name}", next_step=advice)
    if run_config.limits.cost_usd and not run_config.model_options.price and price_of(name) is None:
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
    from compactor_cli.archive.restore import load_transcript

    try:
        return load_transcript([archive_dir], sha256)
    except (CompactError, OSError):
        return None
