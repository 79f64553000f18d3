"""Models: what all transcripts of a run share when models write their summaries.

Workers share one rate limit and one account, the `Gate`: a plain object that lives in one process (an actor of a
cluster, or a process of its own). Workers use it through subclasses of `RateLimiter` and `Spend`, so that the model
client works the same with and without a cluster.
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

_AHEAD = 2  # transcripts begun ahead of the next one to be written, per thread


def model_options(settings: Settings, **given: Any) -> ModelOptions:
    """The options for a model by these settings: their template and their first rule for pruning results of tools."""
    if rule := next((rule for rule in settings.prune if rule.kind == "tool-result"), None):
        given["rule"] = rule
    return ModelOptions(template=settings.template, **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """How models are used in this run."""

    model_options: ModelOptions
    # Ranks messages by similarity to the task; the only model in use if ``model_options`` names no other.
    embedding_model: str = ""
    limits: SpendLimits = field(default_factory=SpendLimits)
    rate_limits: RateLimits = field(default_factory=RateLimits)
    keys: Keys = NO_KEYS
    fallback: Fallback | None = None
    cache_file: Path | None = None  # None: replies are not cached
    breaker_file: Path | None = None  # None: the breaker's state ends with this run
    resets_breaker: bool = False
    redacts: bool = True  # whether secrets are removed from what is sent

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models, each once, without local ones and those that are taken from the transcripts."""
        fallback = self.fallback.model if self.fallback else ""
        options = self.model_options
        names = dict.fromkeys((options.model, *options.models.values(), self.embedding_model, fallback))
        return tuple(name for name in names if name not in ("", AUTO, SAME) and not name.startswith(LOCAL_PREFIX))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is unusual about keys and names, but may be intended."""
        is_judged = not self.model_options.api_base and not self.model_options.price
        unknown = [name for name in self.models if is_judged and naming_of(name) is not Naming.KNOWN]
        odd = (f"litellm's table does not know the model {name}: it is asked as it is named" for name in unknown)
        return (*self.keys.warnings, *odd)

    def fingerprint(self) -> list[Any]:
        """A list that JSON can hold, which differs whenever two configurations may give different summaries."""
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

    ``emit`` gets an event for each call, from the loop's thread. ``spend``, ``rate_limiter`` and ``client`` are given
    if other runs share them, and are made here otherwise. Nothing is started before the first summary. On leaving,
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
        """The models that are used, as a text for people."""
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
        """How many transcripts are worked on at once."""
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
        """The ranking of messages by the embedding model."""
        options = self.config.model_options
        redactor = self._redactor if self.config.redacts else None
        client, model = self._new_client(), self.config.embedding_model
        return EmbeddingSimilarity(
            embedder(client, self._loop, model, api_base=options.api_base, price=options.price, new_redactor=redactor)
        )

    def estimate(self, request: Request, archive_dir: Path) -> Estimate:
        """What the summary would cost; it is also added to ``planned``."""
        found = self.summariser(archive_dir).estimate(request)
        with self._lock:
            self.planned = self.planned + found
        return found

    def mapped(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Run ``work`` on the items in threads; yields the results in their order and raises what ``work`` raises."""
        if self.threads == 1:
            yield from map(work, items)
            return
        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(self.threads, thread_name_prefix="transcript")
        yield from in_order(self._pool, work, items, _AHEAD * self.threads)

    def settle(self) -> None:
        """Called before an output takes effect; a subclass raises here to prevent that."""

    def _redactor(self) -> Redactor:
        return Redactor(self._known)

    def stop(self) -> None:
        """Cancel the requests under way: threads that wait for a reply get a failure."""
        self._loop.close()


def in_order(
    pool: ThreadPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Generator[Result, None, None]:
    """Run ``work`` on the items in the threads of the pool; yields the results in the order of the items.

    What ``work`` raises is raised here. At most ``ahead`` items are submitted beyond the one whose result is next. If
    the generator is closed early, items that were not begun are cancelled.
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
    """Raise `UsageError` for mistakes in the set-up that can be found without a request.

    They are: a model whose provider litellm does not know, a name that it does not know but that is close to one it
    knows, a missing key, and a limit on cost without a price. Models named by the transcripts cannot be checked.
    """
    api_base, price = config.model_options.api_base, config.model_options.price
    for name in config.models:
        provider = model_calls.provider_of(name)
        if not provider and api_base:
            provider = "openai"  # assumed to be a model of a server with OpenAI's interface
        elif not provider or not is_provider(provider):  # only then, since litellm is slow to load
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
    """The one rate limit and the one account that all workers share; it lives in one process."""

    def __init__(self, rate_limits: RateLimits, limits: SpendLimits, rate_limiter: RateLimiter | None = None) -> None:
        # Each worker limits its own concurrency.
        self._rate_limiter = rate_limiter or RateLimiter(replace(rate_limits, concurrency=1 << 20))
        self._spend = Spend(limits)

    async def acquire(self, tokens: int) -> int:
        """Wait until a request of this many tokens may be sent; returns its number."""
        async with self._rate_limiter.acquire(tokens) as number:
            return number

    async def took(self, number: int, tokens: int) -> None:
        """The same as `RateLimiter.took`."""
        self._rate_limiter.took(number, tokens)

    async def pause(self, seconds: float) -> None:
        """Let no request pass for this long."""
        self._rate_limiter.pause(seconds)

    async def account(self, name: str, *arguments: Any) -> Any:
        """Call this method of `Spend`. `LimitReached` is returned, as exceptions are changed between processes."""
        try:
            return getattr(self._spend, name)(*arguments)
        except LimitReached as reached:
            return reached

    async def spent(self) -> Spent:
        """What all workers have used so far."""
        return self._spend.spent


class SharedRateLimiter(RateLimiter):
    """A worker's rate limiter: it limits the worker's concurrency, and the gate limits the rate.

    ``gate`` is a handle: ``gate.acquire.remote(…)`` returns an awaitable.
    """

    def __init__(self, rate_limits: RateLimits, gate: Any) -> None:
        super().__init__(RateLimits(concurrency=rate_limits.concurrency))
        self._gate = gate

    @asynccontextmanager
    async def acquire(self, tokens: int) -> AsyncIterator[int]:
        """Wait until both limits allow a request; gives its number at the gate."""
        async with super().acquire(tokens):
            yield await self._gate.acquire.remote(tokens)

    def took(self, number: int, tokens: int) -> None:
        """Report to the gate how many tokens the request took."""
        self._gate.took.remote(number, tokens)

    def pause(self, seconds: float) -> None:
        """Pause all workers: the provider's delay applies to everyone."""
        self._gate.pause.remote(seconds)


class SharedSpend(Spend):
    """A worker's account, kept by the gate. ``wait`` waits for an answer of the gate's handle and returns its value."""

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
        """The same as `Spend.reserve`, for all workers together. Neither prompt nor key is sent to the gate."""
        size = replace(call, messages=(), input_tokens=call.expected_input_tokens, key=NO_SECRET)
        found: Reservation | LimitReached = self._wait(self._gate.account.remote("reserve", size))
        if isinstance(found, LimitReached):
            raise found
        return found

    def settle(self, reservation: Reservation, reply: Reply) -> None:
        """Record that the request was answered."""
        self._wait(self._gate.account.remote("settle", reservation, replace(reply, text="")))

    def failed(self, reservation: Reservation, charge: Charge = Charge.NONE) -> None:
        """Record that the request failed."""
        self._wait(self._gate.account.remote("failed", reservation, charge))

    def hit(self, reply: Reply) -> None:
        """Record that a call was answered from this machine's reply cache."""
        self._wait(self._gate.account.remote("hit", replace(reply, text="")))


_STOP_SECONDS = 5.0


@contextmanager
def local_gate(rate_limits: RateLimits, limits: SpendLimits) -> Iterator[Callable[[], GateClient]]:
    """Run a gate for the worker processes of this machine; gives the function with which each connects to it.

    The gate runs in a process of its own, not in a thread of the parent: a process with threads should not be forked.
    Workers connect by a socket whose key only they have.
    """
    import multiprocessing
    from multiprocessing.connection import Listener

    key = os.urandom(16)
    with tempfile.TemporaryDirectory(prefix="compact-") as folder:
        path = str(Path(folder, "gate"))
        # Closed only at the end, since closing removes the socket's name.
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
    """The main function of the gate's process, which runs until the parent ends it."""
    # The terminal sends Ctrl-C to all processes, but only the parent decides when the gate ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    loop = BackgroundEventLoop()
    while True:
        with contextlib.suppress(OSError, EOFError):  # a worker that died while it connected
            connection = listener.accept()
            threading.Thread(target=_answer, args=(connection, gate, loop), daemon=True).start()


def _answer(connection: Connection, gate: Gate, loop: BackgroundEventLoop) -> None:
    """Answer one worker's calls, each as soon as it is done: calls do not wait for one another."""
    sending = threading.Lock()

    async def answered(number: int, name: str, arguments: tuple[Any, ...]) -> None:
        answer = await getattr(gate, name)(*arguments)
        with sending, contextlib.suppress(OSError):
            connection.send((number, answer))

    with contextlib.suppress(OSError, EOFError):
        while True:
            loop.start(answered(*connection.recv()))


class GateAnswer(Future[Any]):
    """The future answer of the gate; may be awaited on any event loop."""

    def __await__(self) -> Generator[Any, None, Any]:
        import asyncio

        return asyncio.wrap_future(self).__await__()


class GateClient(AbstractContextManager["GateClient"]):
    """The gate's handle for `SharedRateLimiter` and `SharedSpend`: ``client.acquire.remote(100)``; use in ``with``."""

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

        # So that the gate and the listening thread both see the end of the connection.
        with socket.socket(fileno=os.dup(self._connection.fileno())) as end, contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        self._listener.join(_STOP_SECONDS)
        self._connection.close()

    def __getattr__(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(remote=partial(self.ask, name))

    def ask(self, name: str, *arguments: Any) -> GateAnswer:
        """Call a method of the gate; the answer may be awaited, or waited for with ``result()``."""
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
