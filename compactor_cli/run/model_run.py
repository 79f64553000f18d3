"""Models: what all transcripts of a run share when models write their summaries.

Workers share one rate limit and one account, the `Gate`: a plain object that lives in one process (an actor of a
cluster, or a process of its own). What a worker has of it keeps the interfaces of `RateLimiter` and `Spend`, so that
its client knows nothing of clusters.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from compactor_cli.llm import llm, model_calls
from compactor_cli.llm.importance import LOCAL_PREFIX, EmbeddingSimilarity, embedder
from compactor_cli.llm.limits import Breaker, Charge, RateLimiter, RateLimits, Reservation, Spend, SpendLimits, Spent
from compactor_cli.llm.model import AUTO, SAME, ModelOptions, ModelSummariser
from compactor_cli.llm.model_calls import NO_KEYS, NO_SECRET, Call, Keys, LimitReached, Naming, Reply, naming_of
from compactor_cli.llm.model_client import BackgroundEventLoop, Fallback, ModelClient, ReplyCache
from compactor_cli.llm.redact import Redactor
from compactor_cli.model.errors import CompactError, UsageError
from compactor_cli.model.plan import Importance
from compactor_cli.model.report import Listener
from compactor_cli.model.settings import Settings
from compactor_cli.model.summary import Estimate, Request
from compactor_cli.model.value import dataclass
from compactor_cli.plan.models import is_provider, nearest_models

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.connection import Listener as SocketListener

    from compactor_cli.run.workers import Item, Result

# Transcripts read ahead of the one whose turn it is to be written, per thread.
_AHEAD = 2


def model_options(settings: Settings, **given: Any) -> ModelOptions:
    """What is asked of a model by these settings: their template, and their rule for results of tools."""
    if rule := next((rule for rule in settings.prune if rule.kind == "tool-result"), None):
        given["rule"] = rule
    return ModelOptions(template=settings.template, **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """What the user wants of models in this run. Files None: no reply cache, no breaker beyond this run."""

    model_options: ModelOptions
    embedding_model: str = ""  # ranks by nearness to the task; without another model, nothing else is asked
    limits: SpendLimits = field(default_factory=SpendLimits)
    rate_limits: RateLimits = field(default_factory=RateLimits)
    keys: Keys = NO_KEYS
    fallback: Fallback | None = None
    cache_file: Path | None = None
    breaker_file: Path | None = None
    resets_breaker: bool = False
    redacts: bool = True

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are named, each once, those aside that the transcripts are to name or this machine has."""
        fallback = self.fallback.model if self.fallback else ""
        options = self.model_options
        names = dict.fromkeys((options.model, *options.models.values(), self.embedding_model, fallback))
        return tuple(name for name in names if name not in ("", AUTO, SAME) and not name.startswith(LOCAL_PREFIX))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about keys and names, and may be right all the same."""
        is_judged = not self.model_options.api_base and not self.model_options.price
        unknown = [name for name in self.models if is_judged and naming_of(name) is not Naming.KNOWN]
        odd = (f"litellm's table does not know the model {name}: it is asked as it is named" for name in unknown)
        return (*self.keys.warnings, *odd)

    def fingerprint(self) -> list[Any]:
        """Values that JSON can hold, which differ whenever two configurations may give different summaries."""
        from compactor_cli.llm.prompts import version

        options = self.model_options
        named = ("model", "api_base", "previous", "on_failure", "template", "instructions", "verifies")
        return [
            *(getattr(options, name) for name in named),
            {stage.value: model for stage, model in options.models.items()},
            self.fallback.model if self.fallback else "",
            asdict(options.rule) if options.rule else None,
            self.redacts,
            version(),
        ]


class ModelRun(AbstractContextManager["ModelRun"]):
    """The connection to the models, its event loop and threads; use as ``with ModelRun(config) as run``.

    ``emit`` gets an event for each call, from the loop's thread. ``spend``, ``rate_limiter``, or the whole ``client``:
    instead of the run's own, where other runs share them. Nothing is started before the first summary. On leaving,
    requests under way are cancelled; replies that came in are in the cache.
    """

    def __init__(
        self,
        config: ModelConfig,
        emit: Listener | None = None,
        *,
        spend: Spend | None = None,
        rate_limiter: RateLimiter | None = None,
        client: ModelClient | None = None,
    ) -> None:
        self.config = config
        self.cache = ReplyCache(config.cache_file) if config.cache_file else None
        self._spend = spend or Spend(config.limits)
        self._rate_limiter = rate_limiter or RateLimiter(config.rate_limits)
        self._emit = emit
        self._loop = BackgroundEventLoop(llm.close)
        self._breaker = Breaker(file=config.breaker_file)
        if config.resets_breaker:
            self._breaker.reset()
        self.client = client or self._new_client(config.fallback)
        self.planned = Estimate()
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._known = tuple(secret.reveal() for secret in (*config.keys.secrets, *model_calls.environment_secrets()))

    def _new_client(self, fallback: Fallback | None = None) -> ModelClient:
        return ModelClient(
            spend=self._spend,
            rate_limiter=self._rate_limiter,
            breaker=self._breaker,
            cache=self.cache,
            keys=self.config.keys,
            fallback=fallback,
            emit=self._emit,
        )

    @property
    def name(self) -> str:
        """The models that are asked, for people."""
        return ", ".join(filter(None, (self.config.model_options.model, self.config.embedding_model)))

    @property
    def writes(self) -> bool:
        """Whether a model writes the summaries."""
        return bool(self.config.model_options.model)

    def __exit__(self, *raised: object) -> None:
        with ExitStack() as stack:
            if self.cache:
                stack.callback(self.cache.close)
            if self._pool:
                stack.callback(self._pool.shutdown, wait=True, cancel_futures=True)
            stack.callback(self._loop.close)

    @property
    def threads(self) -> int:
        """Transcripts worked on at once."""
        return max(1, self.config.rate_limits.concurrency)

    def summariser(self, archive_dir: Path, guidance: str = "") -> ModelSummariser:
        """The summariser of one input, whose originals are in this archive; ``guidance`` as in `ModelOptions`."""
        from compactor_cli.archive.restore import load_original

        return ModelSummariser(
            self.client,
            self._loop,
            replace(self.config.model_options, guidance=guidance),
            new_redactor=self._redactor if self.config.redacts else None,
            load_original=partial(load_original, archive_dir),
        )

    def importance(self) -> Importance:
        """What ranks the middle by the embedding model."""
        options = self.config.model_options
        redactor = self._redactor if self.config.redacts else None
        client, model = self._new_client(), self.config.embedding_model
        return EmbeddingSimilarity(
            embedder(client, self._loop, model, api_base=options.api_base, price=options.price, new_redactor=redactor)
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
        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(self.threads, thread_name_prefix="transcript")
        yield from in_order(self._pool, work, items, _AHEAD * self.threads)

    def settle(self) -> None:
        """Called before an output takes effect; raises where it should not."""

    def _redactor(self) -> Redactor:
        return Redactor(self._known)

    def stop(self) -> None:
        """Cancel what is under way: threads that wait for a reply go on with a failure."""
        self._loop.close()


def in_order(
    pool: ThreadPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Generator[Result, None, None]:
    """``work`` on items in the threads of the pool; the results in their order. What ``work`` raises is raised here.

    At most ``ahead`` items are begun before the one whose turn it is; left early, what was not begun is not done.
    """
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            while len(waiting) > ahead or (waiting and waiting[0].done()):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def check_setup(config: ModelConfig, *, has_keys_elsewhere: bool = False) -> None:
    """Raises `UsageError` for set-up mistakes that no request is needed to see.

    They are: a model that litellm knows no provider of, or none of this name and one much like it, no key, a limit on
    cost without a price. Models that the transcripts are to name cannot be checked.
    """
    api_base, price = config.model_options.api_base, config.model_options.price
    for name in config.models:
        provider = model_calls.provider_of(name)
        if not provider and api_base:
            provider = "openai"  # taken for a model of a server with OpenAI's interface
        elif not provider or not is_provider(provider):  # litellm itself is asked only in doubt
            provider = llm.find_provider(name, api_base)
        if not provider:
            nearest = ", ".join(nearest_models(name))
            advice = "write PROVIDER/MODEL, or give the server with --api-base"
            what = f"no provider of the model {name} is known"
            raise UsageError(what, next_step=f"did you mean {nearest}? or {advice}" if nearest else advice)
        full_name = name if "/" in name else f"{provider}/{name}"
        if not api_base and not price and naming_of(full_name) is Naming.MISSPELT:
            nearest = ", ".join(nearest_models(name))
            ways = "name its price (--set price=IN,OUT) or its server (--api-base) to have it asked"
            what = f"{provider} has no model {name} that litellm's table knows of"
            raise UsageError(what, next_step=f"did you mean {nearest}? or {ways}")
        if not api_base and not has_keys_elsewhere and (variable := model_calls.missing_key(full_name, config.keys)):
            advice = f"set {variable}, or name a file with --key-file"
            raise UsageError(f"there is no key for the model {name}", next_step=advice)
        if config.limits.cost_usd and not price and model_calls.price_of(name) is None:
            what = f"the price of {name} is not known, so --max-cost cannot be kept"
            raise UsageError(what, next_step="give it in US dollars per million tokens: --set price=IN,OUT")


class Gate:
    """Lets requests pass at the rate of the cluster, and reserves money within its limits."""

    def __init__(self, rate_limits: RateLimits, limits: SpendLimits, rate_limiter: RateLimiter | None = None) -> None:
        self._rate_limiter = rate_limiter or RateLimiter(replace(rate_limits, concurrency=1 << 20))  # no limit
        self._spend = Spend(limits)

    async def acquire(self, tokens: int) -> int:
        """Returns when a request of this many tokens may be sent: its number."""
        async with self._rate_limiter.acquire(tokens) as number:
            return number

    async def took(self, number: int, tokens: int) -> None:
        """As `RateLimiter.took`."""
        self._rate_limiter.took(number, tokens)

    async def pause(self, seconds: float) -> None:
        """Nobody sends anything for this long."""
        self._rate_limiter.pause(seconds)

    async def account(self, name: str, *arguments: Any) -> Any:
        """The method of `Spend`; `LimitReached` as a value: raised exceptions do not travel well."""
        try:
            return getattr(self._spend, name)(*arguments)
        except LimitReached as reached:
            return reached

    async def spent(self) -> Spent:
        """What all workers have used so far."""
        return self._spend.spent


class SharedRateLimiter(RateLimiter):
    """A worker's rate: its own places, and the gate's turns. ``gate``: a handle whose methods give awaitables."""

    def __init__(self, rate_limits: RateLimits, gate: Any) -> None:
        super().__init__(RateLimits(concurrency=rate_limits.concurrency))
        self._gate = gate

    @asynccontextmanager
    async def acquire(self, tokens: int) -> AsyncIterator[int]:
        """One request, when both allow it; its number at the gate."""
        async with super().acquire(tokens):
            yield await self._gate.acquire.remote(tokens)

    def took(self, number: int, tokens: int) -> None:
        """Told to the gate."""
        self._gate.took.remote(number, tokens)

    def pause(self, seconds: float) -> None:
        """The provider named when to come back, and meant everyone."""
        self._gate.pause.remote(seconds)


class SharedSpend(Spend):
    """A worker's account: all of it is the gate's. ``wait`` gives the result after a handle's answer."""

    def __init__(self, gate: Any, wait: Callable[[Any], Any]) -> None:
        super().__init__()
        self._gate = gate
        self._wait = wait

    @property
    def spent(self) -> Spent:
        """What all workers have used so far."""
        found: Spent = self._wait(self._gate.spent.remote())
        return found

    def reserve(self, call: Call) -> Reservation:
        """As `Spend.reserve`, for the cluster. The prompt stays here."""
        size = replace(call, messages=(), input_tokens=call.expected_input_tokens, key=NO_SECRET)
        found: Reservation | LimitReached = self._wait(self._gate.account.remote("reserve", size))
        if isinstance(found, LimitReached):
            raise found
        return found

    def settle(self, reservation: Reservation, reply: Reply) -> None:
        """The request was answered."""
        self._wait(self._gate.account.remote("settle", reservation, replace(reply, text="")))

    def failed(self, reservation: Reservation, charge: Charge = Charge.NONE) -> None:
        """The request failed."""
        self._wait(self._gate.account.remote("failed", reservation, charge))

    def hit(self, reply: Reply) -> None:
        """A call was answered from this machine's reply cache."""
        self._wait(self._gate.account.remote("hit", replace(reply, text="")))


_STOP_SECONDS = 5.0


@contextmanager
def local_gate(rate_limits: RateLimits, limits: SpendLimits) -> Iterator[Callable[[], GateClient]]:
    """A gate for the worker processes of this machine, for the time of the block; what connects each to it.

    In a process of its own, not a thread of the parent: a process with threads is not to be forked. Workers send to it
    by a socket that only they know the key of.
    """
    import multiprocessing
    from multiprocessing.connection import Listener

    key = os.urandom(16)
    with tempfile.TemporaryDirectory(prefix="compact-") as folder:
        path = str(Path(folder, "gate"))
        # Closed only at the end: closing takes its name away.
        with Listener(path, "AF_UNIX", backlog=128, authkey=key) as listener:
            context = multiprocessing.get_context("fork")
            process = context.Process(target=_serve, args=(listener, Gate(rate_limits, limits)), daemon=True)
            process.start()
            try:
                yield partial(GateClient, path, key)
            finally:
                process.terminate()
                process.join(_STOP_SECONDS)


def _serve(listener: SocketListener, gate: Gate) -> None:
    """The life of the gate's process; the parent ends it."""
    # The terminal sends Ctrl-C to all; the parent decides when the gate goes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    loop = BackgroundEventLoop()
    while True:
        with contextlib.suppress(OSError, EOFError):  # a worker that died while it connected
            connection = listener.accept()
            threading.Thread(target=_answer, args=(connection, gate, loop), daemon=True).start()


def _answer(connection: Connection, gate: Gate, loop: BackgroundEventLoop) -> None:
    """One worker's questions: each is answered when its answer is there, whatever the others wait for."""
    sending = threading.Lock()

    async def answered(number: int, name: str, arguments: tuple[Any, ...]) -> None:
        answer = await getattr(gate, name)(*arguments)
        with sending, contextlib.suppress(OSError):
            connection.send((number, answer))

    with contextlib.suppress(OSError, EOFError):
        while True:
            loop.start(answered(*connection.recv()))


class GateAnswer(Future[Any]):
    """The gate's answer to come; may be awaited on any event loop."""

    def __await__(self) -> Generator[Any, None, Any]:
        import asyncio

        return asyncio.wrap_future(self).__await__()


class GateClient(AbstractContextManager["GateClient"]):
    """The gate as `SharedRateLimiter` and `SharedSpend` want it: ``client.acquire.remote(100)``; use in ``with``."""

    def __init__(self, path: str, key: bytes) -> None:
        from multiprocessing.connection import Client

        self._connection = Client(path, "AF_UNIX", authkey=key)
        self._lock = threading.Lock()
        self._open: dict[int, GateAnswer] = {}
        self._count = 0
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __exit__(self, *raised: object) -> None:
        import socket

        # Both sides see the end.
        with socket.socket(fileno=os.dup(self._connection.fileno())) as end, contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        self._listener.join(_STOP_SECONDS)
        self._connection.close()

    def __getattr__(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(remote=partial(self.ask, name))

    def ask(self, name: str, *arguments: Any) -> GateAnswer:
        """Send a question; its answer is to be awaited, or waited for."""
        answer = GateAnswer()
        with self._lock:
            self._count += 1
            self._open[self._count] = answer
            self._connection.send((self._count, name, arguments))
        return answer

    def _listen(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                number, value = self._connection.recv()
                self._open.pop(number).set_result(value)
        for answer in list(self._open.values()):
            answer.set_exception(CompactError("the process that keeps the rate limit is gone", next_step="run again"))
