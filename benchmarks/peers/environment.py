"""Other people's tools in environments of their own, run where they can harm nothing.

``install`` makes a virtual environment in a folder of the caller and fills it from the package registry. ``Box.run``
starts a command with no variables but the named ones, a home folder that is thrown away, the real home folder out of
sight, and a network that holds nothing but the loopback interface, with a model server of the tests on it if asked for.
Nothing that the command starts outlives it. Takes Linux with ``unshare``, ``ip`` and ``mount``.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
SERVER = REPOSITORY / "tests/llm_server/server.py"
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
SERVER_URL = "{server}"
"""Stands in an argument or a variable for the address of the model server, without ``/v1``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command that has ended: status, wall and processor seconds, the peak memory of its largest process, output."""

    status: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    out: str
    err: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A virtual environment; ``program("pip")`` is the path of one of its programs."""

    folder: Path

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Where commands run: ``folder`` holds the throwaway home and the working folder, which commands share."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def run(
        self, command: list[str], *, variables: dict[str, str] | None = None, server: bool = False, timeout: float = 170
    ) -> Ran:
        """Run a command; with ``server``, next to a model server whose address replaces ``{server}``.

        Raises ``subprocess.TimeoutExpired`` when the command is not done in ``timeout`` seconds (all of it is ended).
        """
        self.home.mkdir(parents=True, exist_ok=True)
        plain = {"PATH": PATH, "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb", **(variables or {})}
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            work = Path(name)
            hide = sorted({str(Path.home()), pwd.getpwuid(os.getuid()).pw_dir})
            task = {"command": command, "variables": plain, "server": server, "hide": hide, "cwd": str(self.folder)}
            (work / "task.json").write_text(json.dumps(task), encoding="utf-8")
            own = [] if os.geteuid() == 0 else ["--map-root-user"]
            spaces = ["unshare", *own, "-n", "-m", "-p", "-f", "--kill-child", "--mount-proc"]
            subprocess.run([*spaces, sys.executable, __file__, name], check=True, timeout=timeout, env=os.environ)
            done = json.loads((work / "done.json").read_text(encoding="utf-8"))
            shown = {key: (work / key).read_text(encoding="utf-8", errors="replace") for key in ("out", "err")}
            return Ran(**done, **shown)


def interpreter(least: tuple[int, int]) -> str:
    """A Python of at least this version: this one, one on the PATH, or one of pyenv; exits where there is none."""
    if sys.version_info >= least:
        return str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}")
    for minor in range(least[1], least[1] + 4):
        found = shutil.which(f"python{least[0]}.{minor}")
        kept = sorted(Path.home().glob(f".pyenv/versions/{least[0]}.{minor}.*/bin/python"))
        for path in (*([found] if found else []), *map(str, kept)):
            if subprocess.run([path, "-c", "pass"], capture_output=True).returncode == 0:
                return path
    sys.exit(f"no Python of at least {least[0]}.{least[1]} found: put one on the PATH")


def install(
    folder: Path, *requirements: str, least: tuple[int, int] = (3, 11), options: tuple[str, ...] = ()
) -> Environment:
    """An environment with these requirements (and these options of pip); one that is there is taken as it is."""
    done = folder / "installed"
    wanted = " ".join((*options, *requirements))
    if not (done.exists() and done.read_text(encoding="utf-8") == wanted):
        subprocess.run([interpreter(least), "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(folder / "bin/pip"), "install", "--quiet", "--quiet", *options, *requirements], check=True)
        done.write_text(wanted, encoding="utf-8")
    return Environment(folder=folder)


def _inside(work: Path) -> None:
    """The part that runs in the namespaces: raise the loopback interface, hide the home, start, measure, report."""
    task = json.loads((work / "task.json").read_text(encoding="utf-8"))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for home in task["hide"]:
        _hide(Path(home), work)
    if not task["server"]:
        done = _measured(task, "", work)
    else:
        command = [sys.executable, "-u", str(SERVER), str(work.parent / "requests.jsonl")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdin
            assert server.stdout
            done = _measured(task, f"http://127.0.0.1:{int(server.stdout.readline())}", work)
            server.stdin.close()
    (work / "done.json").write_text(json.dumps(done), encoding="utf-8")


def _hide(home: Path, work: Path) -> None:
    """Cover a folder, and show in it nothing but what is needed to run: interpreters, this program, the box."""
    needed = {sys.prefix, sys.base_prefix, str(home / ".pyenv/versions"), str(REPOSITORY), str(work.parent)}
    shown = [path for path in map(Path, sorted(needed)) if path.is_dir() and path.is_relative_to(home)]
    stages = [work / f"shown-{number}" for number in range(len(shown))]
    for path, stage in zip(shown, stages, strict=True):
        stage.mkdir()
        subprocess.run(["mount", "--bind", str(path), str(stage)], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(home)], check=True)
    for path, stage in zip(shown, stages, strict=True):
        path.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "--bind", str(stage), str(path)], check=True)


def _measured(task: dict[str, Any], address: str, work: Path) -> dict[str, Any]:
    command = [part.replace(SERVER_URL, address) for part in task["command"]]
    variables = {name: value.replace(SERVER_URL, address) for name, value in task["variables"].items()}
    with (work / "out").open("wb") as out, (work / "err").open("wb") as err:
        started = time.perf_counter()
        child = subprocess.Popen(
            command, cwd=task["cwd"], env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    used = {"cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_bytes": usage.ru_maxrss * 1024}
    return {"status": child.returncode, "seconds": seconds, **used}


if __name__ == "__main__":
    _inside(Path(sys.argv[1]))
