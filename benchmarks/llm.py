"""Throughput of summaries by a model: 1, 10 and 100 requests at once, next to bare httpx.

Against the loopback server of the tests, which answers after one second. ``python benchmarks/llm.py [SUMMARIES]``
prints requests per second of both, and their ratio: what everything around a request costs (quoting, redaction,
checks, the digest's ledger, litellm).
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent / "tests" / "summarise")]

from llm_server.client import LlmServer, running  # noqa: E402
from model_cases import long_talk, request  # noqa: E402

from compactor_cli.batch.models import ModelOrders, ModelRun  # noqa: E402
from compactor_cli.summarise.calls import Secret  # noqa: E402
from compactor_cli.summarise.model import Asking  # noqa: E402
from compactor_cli.summarise.pace import Tempo  # noqa: E402

MODEL = "slow.1"
AT_ONCE = (1, 10, 100)


def summaries(server: LlmServer, at_once: int, count: int) -> float:
    """Summaries per second, each of a transcript of its own (one request each)."""
    asking = Asking(model=f"openai/{MODEL}", api_base=server.openai, key=Secret("sk-none"))
    orders = ModelOrders(asking=asking, tempo=Tempo(concurrency=at_once))
    wanted = [request(long_talk(6 + number % 3), 2_000) for number in range(count)]
    with ModelRun(orders) as run:
        one = run.summariser(Path())
        one.summarise(wanted[0])  # imports litellm
        started = time.perf_counter()
        found = [answer.summary.source for _, answer in run.mapped(one.summarise, wanted)]
        seconds = time.perf_counter() - started
    assert set(found) == {"model"}, set(found)
    return count / seconds


def bare(server: LlmServer, at_once: int, count: int) -> float:
    """The same prompts by httpx alone, in requests per second."""
    import httpx

    bodies = [entry["body"] for entry in server.requests()][-count:]

    async def run() -> float:
        places = asyncio.Semaphore(at_once)
        limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once)
        async with httpx.AsyncClient(limits=limits, timeout=60) as client:

            async def one(body: object) -> None:
                async with places:
                    reply = await client.post(f"{server.openai}/chat/completions", json=body)
                    reply.raise_for_status()

            started = time.perf_counter()
            await asyncio.gather(*map(one, bodies))
            return time.perf_counter() - started

    return len(bodies) / asyncio.run(run())


def main() -> None:
    """Print a line for each number of requests at once."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{'at once':>8} {'summaries/s':>12} {'httpx/s':>9} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server:
        for at_once in AT_ONCE:
            count = min(most, 4 * at_once)
            ours = summaries(server, at_once, count)
            theirs = bare(server, at_once, count)
            print(f"{at_once:>8} {ours:>12.2f} {theirs:>9.2f} {ours / theirs:>6.2f}")


if __name__ == "__main__":
    main()
