"""A campaign of faults: commands of the product run with something going wrong at each call that changes a file.

    python tests/faults/campaign.py --shim shim.so --folder /tmp/x [--step 7] [--scenario NAME …] [--fault NAME …]

It runs under the preloaded shim (it starts itself anew with it), forks a process for each fault and looks at what is
left: were originals lost, records of the agent, was the exit code wrong, did the next run leave anything after?
The result is a line of JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compactor_cli.archive.maintenance import verify
from compactor_cli.archive.restore import find, restore
from compactor_cli.model.errors import CompactError

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
FAULTS = ("kill", "term", "EIO", "ENOSPC", "short")
AGENTS = ("agent appends", "agent holds", "agent replaces")
# Their numbers in the shim.
NUMBERS = {name: number for number, name in enumerate((*FAULTS, *AGENTS), 1)}
DEADLINE_SECONDS = 60.0
TRY_LATER = 75


class Shared(ctypes.Structure):
    """What the shim counts."""

    _fields_ = (("calls", ctypes.c_int), ("records", ctypes.c_int), ("working", ctypes.c_int))


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A command, what it works on, and which faults are tried on it."""

    name: str
    entry: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path], None]
    target: str
    record: str
    again: tuple[str, ...] = ()
    output: str = ""
    again_codes: tuple[int, ...] = (0,)
    has_agent: bool = False


@dataclass(kw_only=True)
class Counted:
    """Calls that change a file, and records that the agent wrote meanwhile."""

    calls: int
    records: int


@dataclass(kw_only=True)
class Ended:
    """How a process ended: exit code, or the negative number of a signal."""

    code: int
    said: str


@dataclass(kw_only=True)
class Result:
    """What the campaign counts."""

    faults: Counter[str] = field(default_factory=Counter)
    calls: dict[str, int] = field(default_factory=dict)
    originals_lost: list[str] = field(default_factory=list)
    records: int = 0
    records_lost: list[str] = field(default_factory=list)
    wrong_exits: list[str] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)


class Campaign:
    """Runs scenarios in a folder, under the shim."""

    def __init__(self, folder: Path, shim: ctypes.CDLL) -> None:
        self._folder = folder
        self._shim = shim
        shim.fault_begin.restype = ctypes.POINTER(Shared)
        self.result = Result()

    def run(self, scenario: Scenario, faults: Sequence[str], step: int, start: int) -> None:
        """Every ``step``-th call of the scenario, with each of the faults."""
        template = self._folder / "template"
        shutil.rmtree(template, ignore_errors=True)
        (template / "work").mkdir(parents=True)
        self._in(template, lambda: scenario.prepare(template / "work"))
        clean = self._copy(template)
        ended, counted = self._process(clean, scenario, scenario.arguments, 0, 0)
        assert ended.code == 0, (scenario.name, ended)
        self.result.calls[scenario.name] = counted.calls
        states = States(scenario, template, clean)
        for number, fault in enumerate(faults):
            if fault in AGENTS and not scenario.has_agent:
                continue
            first = 1 + (start + number) % step
            # 0: the agent does it at every call.
            for at in (*((0,) if fault in AGENTS else ()), *range(first, counted.calls + 1, step)):
                self._one(scenario, template, states, fault, at)

    def _one(self, scenario: Scenario, template: Path, states: States, fault: str, at: int) -> None:
        folder = self._copy(template)
        what = f"{scenario.name}, {fault} at call {at}"
        ended, counted = self._process(folder, scenario, scenario.arguments, NUMBERS[fault], at)
        self.result.faults[fault] += 1
        self.result.records += counted.records
        what += f": ended with {ended.code} {ended.said.strip()[-300:]}"
        records = [(scenario.record % number).encode() for number in range(1, counted.records + 1)]
        if fault in AGENTS:
            if ended.code not in (0, TRY_LATER):
                self.result.wrong_exits.append(what)
        elif wrong := states.wrong(folder, fault, ended):
            self.result.wrong_exits.append(f"{what}: {wrong}")
        self._check_kept(states, folder, records, what)
        again, _ = self._process(folder, scenario, scenario.again or scenario.arguments, 0, 0)
        if again.code not in scenario.again_codes and not (
            fault in AGENTS and again.code == 3 and "undo" in scenario.name
        ):
            self.result.wrong_exits.append(f"{what}; the next run: {again.code} {again.said[-300:]}")
        self._check_kept(states, folder, records, f"{what}; the next run: {again.code}")
        self.result.left_behind += [f"{what}: {name}" for name in left_in(folder)]

    def _check_kept(self, states: States, folder: Path, records: Sequence[bytes], what: str) -> None:
        here = (folder / "work" / states.scenario.target).read_bytes()
        archived = list(archived_in(folder))
        for original in states.originals:
            if not here.startswith(original) and original not in archived:
                self.result.originals_lost.append(what)
        lost = [line for line in records if line not in here and not any(line in data for data in archived)]
        self.result.records_lost += [f"{what}: {line!r}" for line in lost]

    def _copy(self, template: Path) -> Path:
        folder = self._folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder, symlinks=True)
        return folder

    def _in(self, folder: Path, work: Callable[[], object]) -> None:
        if not (child := os.fork()):
            with leaving():
                settle(folder)
                work()
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0

    def _process(
        self, folder: Path, scenario: Scenario, arguments: Sequence[str], mode: int, at: int
    ) -> tuple[Ended, Counted]:
        counted = self._shim.fault_begin().contents
        reading, writing = os.pipe()
        if not (child := os.fork()):
            with leaving():
                os.close(reading)
                settle(folder)
                os.dup2(writing, 1)
                os.dup2(writing, 2)
                self._shim.fault_arm(mode, at, os.fsencode(folder / "work" / scenario.target), scenario.record.encode())
                run_product(scenario.entry, arguments)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.read().decode(errors="replace")
        _, status = os.waitpid(child, 0)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while counted.working and time.monotonic() < deadline:
            time.sleep(0.001)
        ended = Ended(code=os.waitstatus_to_exitcode(status), said=said)
        return ended, Counted(calls=counted.calls, records=counted.records)


class States:
    """What a scenario's files are before and after, when nothing goes wrong."""

    def __init__(self, scenario: Scenario, template: Path, clean: Path) -> None:
        self.scenario = scenario
        self.before = (template / "work" / scenario.target).read_bytes()
        self.after = (clean / "work" / scenario.target).read_bytes()
        self.output = (clean / "work" / scenario.output).read_bytes() if scenario.output else b""
        self.originals = [self.before]

    def wrong(self, folder: Path, fault: str, ended: Ended) -> str:
        """What is wrong with how a process ended, given what it left; empty: nothing."""
        here = (folder / "work" / self.scenario.target).read_bytes()
        output = folder / "work" / self.scenario.output if self.scenario.output else None
        if ended.code < 0:
            is_torn = self.scenario.name == "append" and self.after.startswith(here) and here.startswith(self.before)
            is_stopped = (fault, -ended.code) in (("kill", 9), ("term", 15))
            is_right = is_stopped and (here in (self.before, self.after) or is_torn)
            if output and output.exists() and output.read_bytes() != self.output:
                return "a part of the output has its name"
            return "" if is_right else "another signal, or a file that is neither old nor new"
        if "defect" in ended.said or "Traceback" in ended.said:
            return "a defect"
        if ended.code == 0:
            is_done = here == self.after and (output is None or output.read_bytes() == self.output)
            return "" if is_done else "0, but it was not done"
        if ended.code not in (3, TRY_LATER):
            return "an exit code that means something else"
        # A shard is done when its mark is there: until then its output, which is whole, is no result.
        is_there = output is not None and output.exists() and self.scenario.name != "batch"
        return "a failure, but the file is not as it was" if is_there or here != self.before else ""


@contextlib.contextmanager
def leaving() -> Iterator[None]:
    """A forked process ends here, whatever happens."""
    try:
        yield
        os._exit(0)
    except BaseException as error:
        os.write(2, f"Traceback: {error!r}\n".encode())
    os._exit(99)


def settle(folder: Path) -> None:
    """The process works in this folder, with a home in it."""
    os.chdir(folder / "work")
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        os.environ[name] = str(folder / name.lower())


def run_product(entry: str, arguments: Sequence[str]) -> None:
    """Run it as its entry point does, and end as it ends."""
    import compactor_cli.__main__ as product

    sys.argv = [entry, *arguments]
    sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False))
    sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), write_through=True)
    try:
        getattr(product, entry)()
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(int(end.code or 0))


def archives(folder: Path) -> list[Path]:
    """The archives of a scenario that are there."""
    places = (folder / "work" / ".transcripts", folder / "work" / "archive", folder / "xdg_data_home/compact/archive")
    return [place for place in places if place.is_dir()]


def archived_in(folder: Path) -> Iterator[bytes]:
    """All originals, as the product restores them."""
    for archive in archives(folder):
        for shard in archive.glob("??"):
            for stored in shard.glob("*.jsonl.*"):
                if ".transcripts." in stored.name:
                    continue
                content = io.BytesIO()
                with contextlib.suppress(CompactError):
                    restore(find([archive], stored.name.partition(".")[0]), content)
                    yield content.getvalue()


def left_in(folder: Path) -> list[str]:
    """Temporary files and journals, and what is wrong with the archives."""
    names = [str(path.relative_to(folder)) for path in folder.rglob("*") if is_left(path.name)]
    for archive in archives(folder):
        with contextlib.suppress(CompactError):
            names += [str(problem) for problem in verify(archive).problems]
    return names


def is_left(name: str) -> bool:
    return name.startswith((".compact-", "append-")) or name.endswith((".agent", "-journal"))


def chat(steps: int) -> bytes:
    """A session of the format openai-chat."""
    lines = []
    for step in range(steps):
        words = " ".join(f"word{step}x{number}" for number in range(60))
        lines += [
            {"role": "user", "content": f"Please fix problem {step}: {words}"},
            {"role": "assistant", "content": f"Fixed problem {step} in src/module_{step}.py; {words}"},
        ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def session(work: Path) -> None:
    (work / "s.jsonl").write_bytes(chat(8))


def pi_session(work: Path) -> None:
    shutil.copy(SAMPLES / "pi-session.jsonl", work / "s.jsonl")


def rows(work: Path) -> None:
    shutil.copy(SAMPLES / "openai-chat-dataset.jsonl", work / "s.jsonl")


def compacted(arguments: tuple[str, ...], prepare: Callable[[Path], None]) -> Callable[[Path], None]:
    """Prepared, and compacted by the product."""

    def both(work: Path) -> None:
        prepare(work)
        run_in_process(arguments)

    return both


def run_in_process(arguments: Sequence[str]) -> None:
    from compactor_cli.cli.program import run_filter

    assert run_filter(list(arguments)) == 0


CHAT_RECORD = '{"role":"user","content":"agent record %d"}\n'
PI_RECORD = '{"type":"message","id":"agent%d","message":{"role":"user","content":[{"type":"text","text":"More."}]}}\n'
IN_PLACE = ("-i", "-t", "40%", "s.jsonl")
APPEND = ("--append", "--keep-head", "1turns", "--keep-tail", "200", "-t", "50%", "s.jsonl")
OUT = ("-t", "40%", "--archive", "s.jsonl", "-o", "small.jsonl")
BATCH = ("batch", "run", "s.jsonl", "--output-dir", "out", "-t", "40%", "--archive-dir", "archive", "-j", "1")
SEARCH = ("search", "module_3", "--archive-dir", ".transcripts")


def scenarios() -> tuple[Scenario, ...]:
    """All that is tried."""
    shared = {"target": "s.jsonl", "record": CHAT_RECORD}
    return (
        Scenario(name="in place", entry="compact", arguments=IN_PLACE, prepare=session, has_agent=True, **shared),  # type: ignore[arg-type]
        Scenario(
            name="append",
            entry="compact",
            arguments=APPEND,
            prepare=pi_session,
            target="s.jsonl",
            record=PI_RECORD,
            has_agent=True,
        ),
        Scenario(
            name="new file",
            entry="compact",
            arguments=OUT,
            again=(*OUT, "-f"),
            prepare=session,
            output="small.jsonl",
            **shared,  # type: ignore[arg-type]
        ),
        Scenario(
            name="undo in place",
            entry="compactor",
            arguments=("undo", "s.jsonl"),
            prepare=compacted(IN_PLACE, session),
            again_codes=(0, 3),
            has_agent=True,
            **shared,  # type: ignore[arg-type]
        ),
        Scenario(
            name="undo append",
            entry="compactor",
            arguments=("undo", "s.jsonl"),
            prepare=compacted(APPEND, pi_session),
            again_codes=(0, 3),
            has_agent=True,
            target="s.jsonl",
            record=PI_RECORD,
        ),
        Scenario(
            name="batch",
            entry="compactor",
            arguments=BATCH,
            prepare=rows,
            output="out/s.jsonl",
            **shared,  # type: ignore[arg-type]
        ),
        Scenario(
            name="index",
            entry="compactor",
            arguments=SEARCH,
            prepare=compacted(IN_PLACE, session),
            **shared,  # type: ignore[arg-type]
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shim", required=True)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--scenario", nargs="*", default=[])
    parser.add_argument("--fault", nargs="*", default=[])
    options = parser.parse_args()
    if os.environ.get("LD_PRELOAD") != options.shim:
        environment = os.environ | {"LD_PRELOAD": options.shim, "PYTHONDONTWRITEBYTECODE": "1"}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    del os.environ["LD_PRELOAD"]
    shutil.rmtree(options.folder, ignore_errors=True)
    warm_up(options.folder.resolve() / "warm")
    campaign = Campaign(options.folder.resolve(), ctypes.CDLL(options.shim))
    for scenario in scenarios():
        if not options.scenario or scenario.name in options.scenario:
            campaign.run(scenario, options.fault or (*FAULTS, *AGENTS), options.step, options.start)
    print(json.dumps(vars(campaign.result)))


def warm_up(folder: Path) -> None:
    """Do each command once in this process, so that those it forks have nothing to load."""
    from compactor_cli.cli.program import run_filter, run_toolbox

    here, environment = Path.cwd(), dict(os.environ)
    mains = {"compact": run_filter, "compactor": run_toolbox}
    for number, scenario in enumerate(scenarios()):
        (folder / str(number) / "work").mkdir(parents=True)
        settle(folder / str(number))
        scenario.prepare(folder / str(number) / "work")
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
            mains[scenario.entry](list(scenario.arguments))
    os.chdir(here)
    os.environ.clear()
    os.environ.update(environment)


if __name__ == "__main__":
    main()
