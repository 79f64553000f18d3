"""Throughput of summaries by a model: 1, 10 and 100 requests at once, next to bare aiohttp.

Against the loopback server of the tests, which answers after one second. ``python benchmarks/llm.py [SUMMARIES]
[PROCESSES]`` prints requests per second of both, their ratio, and the CPU time of a summary: what everything around a
request costs (quoting, redaction, checks, the digest's ledger, litellm). Then the line alone, without latency. The
server is Python too and takes a core for itself.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import tempfile
import time
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent / "tests" / "summarise")]

from llm_server.client import LlmServer, running  # noqa: E402
from model_cases import long_talk, request  # noqa: E402

from compactor_cli.llm.calls import Call, Said, Secret, Speaker  # noqa: E402
from compactor_cli.llm.line import Line  # noqa: E402
from compactor_cli.llm.model import Asking  # noqa: E402
from compactor_cli.llm.pace import Pace, Tempo  # noqa: E402
from compactor_cli.llm.spend import Limits  # noqa: E402
from compactor_cli.run.models import ModelOrders, ModelRun  # noqa: E402
from compactor_cli.scale.gate import SharedPace, SharedSpend  # noqa: E402
from compactor_cli.scale.local_gate import GateAddress, local_gate, wait  # noqa: E402

MODEL = "slow.1"
AT_ONCE = (1, 10, 100)


def summaries(server: LlmServer, at_once: int, count: int, processes: int) -> tuple[float, float]:
    """Summaries per second, each of a transcript of its own (one request each), and CPU milliseconds for each."""
    context = multiprocessing.get_context("fork")
    ready, times = context.Barrier(processes), context.SimpleQueue()
    with local_gate(Tempo(), Limits()) as address:
        share = -(-count // processes)
        work = (server, at_once // processes or 1, share, address, ready, times)
        team = [context.Process(target=_summaries, args=work) for _ in range(processes)]
        for process in team:
            process.start()
        found = [times.get() for _ in team]
        for process in team:
            process.join()
    seconds = max(end for _, end, _ in found) - min(start for start, _, _ in found)
    return share * processes / seconds, sum(cpu for _, _, cpu in found) / (share * processes) * 1000


def _summaries(
    server: LlmServer, at_once: int, count: int, address: GateAddress, ready: Barrier, times: SimpleQueue
) -> None:
    asking = Asking(model=f"openai/{MODEL}", api_base=server.openai, key=Secret("sk-none"))
    tempo = Tempo(concurrency=at_once)
    wanted = [request(long_talk(6 + number % 3), 2_000) for number in range(count)]
    with address.connected() as gate:
        shared = SharedSpend(gate, wait), SharedPace(tempo, gate)
        with ModelRun(ModelOrders(asking=asking, tempo=tempo), spend=shared[0], pace=shared[1]) as run:
            one = run.summariser(Path())
            one.summarise(wanted[0])  # imports litellm
            ready.wait()
            started, cpu = time.monotonic(), time.process_time()
            found = {answer.summary.source for answer in run.mapped(one.summarise, wanted)}
            times.put((started, time.monotonic(), time.process_time() - cpu))
    assert found == {"model"}, found


def bare(server: LlmServer, at_once: int, count: int) -> float:
    """The same prompts by aiohttp alone, in requests per second."""
    import aiohttp

    bodies = [entry["body"] for entry in server.requests()][-count:]

    async def run() -> float:
        connector = aiohttp.TCPConnector(limit=at_once)
        async with aiohttp.ClientSession(connector=connector) as client:

            async def one(body: object) -> None:
                async with client.post(f"{server.openai}/chat/completions", json=body) as reply:
                    reply.raise_for_status()
                    await reply.read()

            started = time.perf_counter()
            await asyncio.gather(*map(one, bodies))
            return time.perf_counter() - started

    return len(bodies) / asyncio.run(run())


def line_alone(server: LlmServer, count: int) -> tuple[float, float]:
    """Calls per second of one process without latency, 100 at once, and CPU milliseconds for each."""
    line = Line(pace=Pace(Tempo(concurrency=100)))
    said = (Said(speaker=Speaker.USER, text="Say something short. " * 50),)
    call = Call(model="openai/empty", api_base=server.openai, key=Secret("sk-none"), messages=said, max_tokens=50)

    async def run() -> tuple[float, float]:
        await line.ask(call)
        started, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(line.ask(call) for _ in range(count)))
        return count / (time.perf_counter() - started), (time.process_time() - cpu) / count * 1000

    return asyncio.run(run())


def main() -> None:
    """Print a line for each number of requests at once."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    print(f"{processes} processes\n{'at once':>8} {'summaries/s':>12} {'aiohttp/s':>10} {'ratio':>6} {'CPU ms':>7}")
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server:
        for at_once in AT_ONCE:
            count = min(most, 4 * at_once)
            ours, cpu = summaries(server, at_once, count, min(processes, at_once))
            theirs = bare(server, at_once, count)
            print(f"{at_once:>8} {ours:>12.2f} {theirs:>10.2f} {ours / theirs:>6.2f} {cpu:>7.1f}")
        rate, cpu = line_alone(server, 1_000)
        print(f"the line alone, without latency: {rate:.0f} calls/s, {cpu:.2f} ms of CPU each")


if __name__ == "__main__":
    main()
