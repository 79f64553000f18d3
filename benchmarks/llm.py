"""Summaries by a model on real rows: what stands around a request, next to litellm and aiohttp alone.

    python benchmarks/llm.py ../shared/corpus            # files or folders of transcripts
    python benchmarks/llm.py ../shared/corpus --summaries 200 --processes 2 --at-once 100

Rows are spans of about ``--tokens`` tokens of the transcripts, one request each, against the loopback server of the
tests, which answers after a second. Prints for each number of requests at once the summaries per second, those of bare
aiohttp with the same bodies, and the CPU time of a summary: all of it, litellm's own for the same bodies, and what is
left, which is the product's (quoting, redaction, check list, checks, supplement). The server has its answers ready. It
is Python too and takes a core for itself.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests")]

from llm_server.client import LlmServer, running  # noqa: E402

from compactor_cli.archive.restore import transcripts_in  # noqa: E402
from compactor_cli.llm import llm  # noqa: E402
from compactor_cli.llm.limits import RateLimits, SpendLimits  # noqa: E402
from compactor_cli.llm.model import ModelOptions  # noqa: E402
from compactor_cli.llm.model_calls import Call, ChatMessage, Secret, Speaker  # noqa: E402
from compactor_cli.model.errors import InputError  # noqa: E402
from compactor_cli.model.marker import Marker  # noqa: E402
from compactor_cli.model.summary import Request  # noqa: E402
from compactor_cli.model.transcript import Transcript  # noqa: E402
from compactor_cli.plan.tokens import count_messages, counter_for  # noqa: E402
from compactor_cli.render.template import load_template, render  # noqa: E402
from compactor_cli.run.model_run import (  # noqa: E402
    GateAnswer,
    GateClient,
    ModelConfig,
    ModelRun,
    SharedRateLimiter,
    SharedSpend,
    local_gate,
)

# Its window takes a row whole; to the server every name that it does not know is a model that works.
MODEL = "openai/gpt-4o"
BUDGET_TOKENS = 2_000
MARKER = Marker(transcript="0" * 16, first=1, last=2, records=3, tokens=4, end="f" * 16)


def rows(paths: Sequence[Path], tokens: int) -> Iterator[Request]:
    """Spans of at least 0.8 and at most about ``tokens`` tokens, in the order of the files."""
    counter = counter_for()
    files = sorted(file for path in paths for file in (path.rglob("*.jsonl*") if path.is_dir() else [path]))
    for file in files:
        try:
            for transcript in transcripts_in(file):
                sizes = count_messages(counter, transcript.messages)
                yield from (_request(transcript, span, counter.count) for span in _spans(sizes, tokens))
        except InputError:
            continue


def _spans(sizes: Sequence[int], tokens: int) -> Iterator[range]:
    start = size = 0
    for number, more in enumerate(sizes):
        if size + more > tokens:
            if size >= 0.8 * tokens:
                yield range(start, number)
            start, size = number, 0
        size += more


def _request(transcript: Transcript, span: range, count: object) -> Request:
    """A span as a transcript of its own."""
    records, messages = (part[span.start : span.stop] for part in (transcript.records, transcript.messages))
    row = replace(transcript, records=records, messages=messages)
    renderer = partial(render, template=load_template("hermes"), marker=MARKER)
    common = {"transcript": row, "covered": tuple(range(len(span))), "kept": (), "budget_tokens": BUDGET_TOKENS}
    return Request(render=renderer, count=count, **common)


def summaries(server: LlmServer, wanted: Sequence[Request], at_once: int, processes: int) -> tuple[float, float, float]:
    """Summaries per second, CPU milliseconds for each, and how many a model wrote."""
    context = multiprocessing.get_context("fork")
    ready, times = context.Barrier(processes), context.SimpleQueue()
    with local_gate(RateLimits(), SpendLimits()) as connect:
        shares = [wanted[number::processes] for number in range(processes)]
        work = [(server, at_once // processes or 1, share, connect, ready, times) for share in shares]
        team = [context.Process(target=_summaries, args=one) for one in work]
        for process in team:
            process.start()
        found = [times.get() for _ in team]
        for process in team:
            process.join()
    seconds = max(end for _, end, _, _ in found) - min(start for start, _, _, _ in found)
    cpu = sum(cpu for _, _, cpu, _ in found) / len(wanted) * 1000
    return len(wanted) / seconds, cpu, sum(by_model for *_, by_model in found)


def _summaries(
    server: LlmServer,
    at_once: int,
    wanted: Sequence[Request],
    connect: Callable[[], GateClient],
    ready: Barrier,
    times: SimpleQueue,
) -> None:
    model_options = ModelOptions(model=MODEL, api_base=server.openai)
    rate_limits = RateLimits(concurrency=at_once)
    with connect() as gate:
        shared = SharedSpend(gate, GateAnswer.result), SharedRateLimiter(rate_limits, gate)
        with ModelRun(
            ModelConfig(model_options=model_options, rate_limits=rate_limits), spend=shared[0], rate_limiter=shared[1]
        ) as run:
            one = run.summariser(Path())
            one.summarise(wanted[0])  # imports litellm
            ready.wait()
            started, cpu = time.monotonic(), time.process_time()
            sources = [answer.summary.source for answer in run.mapped(one.summarise, wanted)]
            times.put((started, time.monotonic(), time.process_time() - cpu, sources.count("model")))


def bare(server: LlmServer, bodies: Sequence[dict], at_once: int) -> tuple[float, float]:
    """The same bodies by aiohttp alone: requests per second, CPU milliseconds for each."""
    import aiohttp

    async def run() -> tuple[float, float]:
        connector = aiohttp.TCPConnector(limit=at_once)
        async with aiohttp.ClientSession(connector=connector) as client:

            async def one(body: object) -> None:
                async with client.post(f"{server.openai}/chat/completions", json=body) as reply:
                    reply.raise_for_status()
                    await reply.read()

            started, cpu = time.perf_counter(), time.process_time()
            await asyncio.gather(*map(one, bodies))
            return time.perf_counter() - started, time.process_time() - cpu

    seconds, cpu = asyncio.run(run())
    return len(bodies) / seconds, cpu / len(bodies) * 1000


def litellm_alone(server: LlmServer, bodies: Sequence[dict], at_once: int) -> float:
    """The same bodies by litellm as it is set up here, without anything of this package around: CPU milliseconds for
    each.
    """
    calls = [
        Call(
            model=MODEL,
            api_base=server.openai,
            key=Secret("sk-none"),
            messages=tuple(ChatMessage(speaker=Speaker(m["role"]), text=m["content"]) for m in body["messages"]),
            max_tokens=body["max_tokens"],
        )
        for body in bodies
    ]

    async def run() -> float:
        places = asyncio.Semaphore(at_once)

        async def one(call: Call) -> None:
            async with places:
                await llm.complete(call)

        await one(calls[0])
        cpu = time.process_time()
        await asyncio.gather(*map(one, calls))
        cpu = time.process_time() - cpu
        await llm.close()
        return cpu

    return asyncio.run(run()) / len(calls) * 1000


def _measure(server: LlmServer, wanted: Sequence[Request], at_once: int, processes: int) -> None:
    server.control(reset=True, seconds=1)
    rate, cpu, by_model = summaries(server, wanted, at_once, processes)
    bodies = [json.loads(text) for text in dict.fromkeys(json.dumps(e["body"]) for e in server.requests())]
    requests = len(server.requests()) - processes
    litellm_cpu = litellm_alone(server, bodies, at_once) * requests / len(wanted)
    bare_rate, _ = bare(server, bodies, at_once)
    own = cpu - litellm_cpu
    share = rate * requests / len(wanted) / bare_rate
    print(
        f"{at_once:>8} {rate:>12.2f} {bare_rate:>10.2f} {share:>6.2f} {cpu:>7.1f} {litellm_cpu:>8.1f} {own:>6.1f}"
        f" {requests / len(wanted):>9.2f} {by_model:>8}/{len(wanted)}"
    )


def main() -> None:
    """Print a line for each number of requests at once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--summaries", type=int, default=100)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=30_000)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 10, 100])
    options = parser.parse_args()
    found = list(itertools.islice(rows(options.paths, options.tokens), options.summaries))
    print(f"{len(found)} rows of about {options.tokens:,} tokens, {options.processes} processes")
    head = f"{'at once':>8} {'summaries/s':>12} {'aiohttp/s':>10} {'share':>6} {'CPU ms':>7} {'litellm':>8} {'own':>6}"
    print(f"{head} {'requests':>9} {'by model':>8}")
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server:
        for at_once in options.at_once:
            _measure(server, found[: max(8, min(len(found), 4 * at_once))], at_once, options.processes)


if __name__ == "__main__":
    main()
