"""``compact`` as a process: pipes, signals, terminals, and what it never loads."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from cli_cases import Run, command, dataset_bytes, session_bytes

import compactor_cli


def test_a_pipe_gives_what_a_file_gives(work: Path, spawn: Run, compact: Run) -> None:
    piped = spawn("-t", "1500", stdin=session_bytes())
    assert (piped.code, piped.err) == (0, "")
    assert piped.out == compact("-t", "1500", "session.jsonl").out
    assert spawn("-t", "1500", "-", stdin=session_bytes()).out == piped.out


def test_the_toolbox_has_no_second_name_for_the_filter(home: Path, spawn: Run) -> None:
    ran = spawn("run", "-t", "1500", stdin=session_bytes(), entry="compactor")
    assert (ran.code, ran.out) == (2, b"")
    assert "no command is called run" in ran.err


def test_what_came_through_a_pipe_is_archived_on_demand(home: Path, spawn: Run) -> None:
    assert spawn("-t", "1500", "--archive", stdin=session_bytes()).code == 0
    (stored,) = (home / "data/compact/archive").rglob("*.jsonl.zst")
    restored = spawn("restore", stored.name[:16], entry="compactor")
    assert restored.out == session_bytes()


def test_nothing_through_a_pipe(home: Path, spawn: Run) -> None:
    ran = spawn(stdin=b"")
    assert (ran.code, ran.out, ran.err) == (0, b"", "")


def test_pipes_that_were_set_not_to_wait_lose_nothing(home: Path, spawn: Run) -> None:
    rows = dataset_bytes(40)  # more than a pipe holds
    theirs, ours = os.pipe()
    read, written = os.pipe()
    for end in (theirs, written):
        os.set_blocking(end, False)
    with subprocess.Popen(command("-t", "100k"), stdin=theirs, stdout=written, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        os.close(written)
        os.write(ours, rows[:1_000])
        time.sleep(1)  # until it waits
        writer = threading.Thread(target=lambda: (Path(f"/dev/fd/{ours}").write_bytes(rows[1_000:]), os.close(ours)))
        writer.start()
        time.sleep(1)
        with os.fdopen(read, "rb") as pipe:
            assert pipe.read() == rows
        writer.join()
        assert process.wait(60) == 0


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_row_that_is_done_does_not_wait_for_what_is_still_to_be_written(processes: str, home: Path) -> None:
    rows = dataset_bytes(6).splitlines(keepends=True)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command("-t", "100k", "-j", processes), bufsize=0, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(rows[:4]))
        # Where a row ends is known when the next one begins.
        done, found = b"".join(rows[:3]), b""
        while len(found) < len(done) and select.select([process.stdout], [], [], 30)[0]:
            found += process.stdout.read(1 << 16)
        assert found == done
        process.stdin.write(b"".join(rows[4:]))
        process.stdin.close()
        assert found + process.stdout.read() == b"".join(rows)


def test_errors_in_a_pipe_name_standard_input(home: Path, spawn: Run) -> None:
    ran = spawn("-t", "1500", stdin=b'{"role":"user","content":"a"}\noops\n{"role":"user","content":"b"}\n')
    assert ran.code == 3
    assert ran.err.startswith("compact: standard input:2: ")


def test_a_terminal_without_operands_gets_a_short_usage(home: Path) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(command(), stdin=theirs, capture_output=True, timeout=60)
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"compact ") >= 3


def test_a_reader_that_leaves_ends_it_by_sigpipe(work: Path) -> None:
    (work / "many.jsonl").write_bytes(dataset_bytes(40))
    process = subprocess.Popen(command("-t", "100k", "many.jsonl"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(60) == -signal.SIGPIPE
    process.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_exit_3_with_advice(work: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command("-t", "1500", "session.jsonl"), stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 3
    assert b"full" in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_disk_that_fills_up_while_standard_output_is_written_is_exit_3(unbuffered: str, work: Path) -> None:
    shell = ["sh", "-c", 'ulimit -f 1; exec "$@" > small.jsonl', "sh", *command("-t", "1500", "session.jsonl")]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(shell, stderr=subprocess.PIPE, timeout=60, env=environment)
    assert Path("small.jsonl").stat().st_size in (512, 1024)
    assert done.returncode == 3
    assert done.stderr.startswith(b"compact: standard output: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("flag", ["-n", "--diff"])
def test_a_view_on_a_full_disk_is_exit_3_with_advice(flag: str, unbuffered: str, work: Path) -> None:
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("wb") as full:
        line = command(flag, "-t", "1500", "session.jsonl")
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, timeout=60, env=environment)
    assert done.returncode == 3
    assert done.stderr.splitlines()[0].startswith(b"compact: standard output: the disk is full: ")
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("arguments", [("presets",), ("formats",), ("--version",), ("--help",)])
def test_a_tool_on_a_full_disk_is_exit_3(arguments: tuple[str, ...], work: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        line = command(*arguments, entry="compactor")
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 3
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


@pytest.mark.parametrize("handler", ["strict", "surrogateescape"])
def test_what_the_terminal_cannot_show_is_shown_as_escapes(handler: str, work: Path) -> None:
    name = b"bad\xff.jsonl"
    Path(os.fsdecode(name)).write_bytes(Path("session.jsonl").read_bytes())
    environment = os.environ | {"PYTHONIOENCODING": f"ascii:{handler}"}
    line = [*command("--diff", "-t", "1500"), name]
    done = subprocess.run(line, capture_output=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"--- bad\\udcff.jsonl")


def _with_streams(streams: str, *arguments: str, entry: str = "compact") -> subprocess.CompletedProcess[bytes]:
    """Run it with its standard streams as a shell is told to open them."""
    shell = ["bash", "-c", f'"$@" {streams}', "bash", *command(*arguments, entry=entry)]
    return subprocess.run(shell, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


@pytest.mark.parametrize("streams", [">&-", "<&- >&-", ">&- 2>&-", "1</dev/null"])
@pytest.mark.parametrize("aside", [(), ("-i", "--report", "-"), ("-i", "--metrics", "-")])
def test_a_closed_standard_output_is_a_usage_error(streams: str, aside: tuple[str, ...], work: Path) -> None:
    done = _with_streams(streams, "-t", "1500", "session.jsonl", *aside)
    assert done.returncode == 2
    assert b"-o" in done.stderr or "2>&-" in streams
    assert (work / "session.jsonl").read_bytes() == session_bytes()


@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_no_file_gets_what_is_meant_for_a_closed_stream(streams: str, work: Path) -> None:
    assert _with_streams(streams, "-i", "-v", "-t", "1500", "session.jsonl").returncode == 0
    assert _with_streams(streams, "undo", "session.jsonl", entry="compactor").returncode == 0
    assert (work / "session.jsonl").read_bytes() == session_bytes()


PRINTING = (
    "sessions / digest session.jsonl / stats session.jsonl / stats --json session.jsonl / expand HASH"
    " / expand --raw HASH / search problem / dropped session.jsonl / restore session.jsonl / archive list"
    " / archive stats / view session.jsonl / verify session.jsonl / eval rows.jsonl / cache stats / presets"
    " / presets suna / tool-schema / formats / schema / schema report / completion bash / --help / --version"
)


@pytest.mark.parametrize("streams", [">&-", "> /dev/full"])
def test_a_tool_that_cannot_print_says_so(streams: str, work: Path, compact: Run) -> None:
    assert compact("-i", "-t", "1500", "session.jsonl").code == 0
    (stored,) = work.glob(".transcripts/??/*.jsonl.zst")
    for line in PRINTING.replace("HASH", stored.name[:16]).split(" / "):
        done = _with_streams(streams, *line.split(), entry="compactor")
        assert done.returncode == 3, line
        assert re.fullmatch(rb"(compactor: standard output: (is closed|the disk is full): .*\n)+", done.stderr), line


@pytest.mark.parametrize("arguments", [("-i", "--metrics", "-"), ("-i", "--report", "-"), ("--plan-out", "-")])
def test_what_cannot_be_printed_besides_the_result_is_exit_3(arguments: tuple[str, ...], work: Path) -> None:
    done = _with_streams("> /dev/full", "-t", "1500", "session.jsonl", *arguments)
    assert done.returncode == 3
    assert {line[:16] for line in done.stderr.split(b"compact: ")[1:]} == {b"standard output:"[:16]}
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("compact", "-t", "9k"), ("compactor", "mcp"), ("compact", "--files-from", "-")])
def test_a_closed_standard_input_is_an_error(arguments: tuple[str, ...], home: Path) -> None:
    done = _with_streams("<&-", *arguments[1:], entry=arguments[0])
    assert (done.returncode in (2, 3), b"Traceback" in done.stderr) == (True, False)
    assert b"standard input" in done.stderr


@pytest.mark.parametrize("entry", ["compact", "compactor"])
def test_a_signal_that_comes_while_it_loads_ends_it_without_a_traceback(entry: str, home: Path) -> None:
    (home / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'compactor_cli.cli.program':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    environment = os.environ | {"PYTHONPATH": str(home)}
    done = subprocess.run(command("--version", entry=entry), capture_output=True, timeout=60, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


_WEAK_REFERENCE = """
owner = type("Owner", (), {})()
reference = weakref.ref(owner, lambda gone: signal.raise_signal(signal.SIGTERM))
"""
_FORGOTTEN_FILE = """
class Owner(io.RawIOBase):
    def flush(self):
        signal.raise_signal(signal.SIGTERM)

owner = Owner()
"""


@pytest.mark.parametrize(
    "release", [_WEAK_REFERENCE, _FORGOTTEN_FILE], ids=["weak reference", "file that nobody holds"]
)
def test_a_signal_is_heard_where_python_lets_no_exception_through(release: str) -> None:
    code = f"""
import io, signal, time, weakref
from compactor_cli.model.errors import raise_from_handler

signal.signal(signal.SIGTERM, lambda number, frame: raise_from_handler(SystemExit(7)))
{release}
del owner
time.sleep(30)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=20)
    assert (done.returncode, done.stderr) == (7, b"")


def _stopped(number: int, arguments: list[str], folder: Path) -> int:
    """Start, wait until something was archived, send the signal; the code it ended with.

    Whoever runs the tests may ignore the signal (`nohup`), and what is started would, too.
    """

    def hears() -> None:
        signal.signal(number, signal.SIG_DFL)

    process = subprocess.Popen(command(*arguments), start_new_session=True, preexec_fn=hears)
    deadline = time.monotonic() + 60
    while not any(folder.rglob(".transcripts/*")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    return process.wait(60)


def test_what_a_stopped_run_cleans_up_is_not_interrupted_again() -> None:
    code = """
import signal, time
from compactor_cli.model.errors import raise_from_handler

def rows():
    try:
        yield 1
    finally:
        time.sleep(1.2)

signal.signal(signal.SIGTERM, lambda number, frame: raise_from_handler(SystemExit(7)))
made = rows()
next(made)
try:
    signal.raise_signal(signal.SIGTERM)
finally:
    try:
        raise ValueError
    except ValueError:
        time.sleep(1.2)
    made.close()
    time.sleep(1.2)
    print("cleaned up")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (7, b"cleaned up\n", b"")


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_run_dies_of_the_signal_and_leaves_whole_files(number: int, jobs: str, home: Path) -> None:
    tree = home / "work" / "tree"
    tree.mkdir()
    rows = 150  # more than can be done before the signal comes
    source = dataset_bytes(rows)
    for name in ("a", "b", "c", "d"):
        (tree / f"{name}.jsonl").write_bytes(source)
    arguments = ["-i", "-r", "tree", "--min-age", "0", "-t", "1500", "--report", "r.json", "-j", jobs]
    assert _stopped(number, arguments, tree) == -number
    left = sorted(path.name for path in tree.iterdir() if path.name != ".transcripts")
    assert left == ["a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl"]
    for path in tree.glob("*.jsonl"):
        assert path.read_bytes().count(b"\n") == rows
    assert f'"exit_code": {128 + number}' in (home / "work" / "r.json").read_text()
    assert not list(tree.rglob("*.tmp"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_over_the_rows_of_a_dataset_leaves_nothing(number: int, home: Path) -> None:
    archive = home / "archive"
    named = ("-o", "small.jsonl", "--report", "r.json", "--archive-dir", str(archive))
    line = command("-t", "1500", "-j", "2", *named)
    with subprocess.Popen(line, stdin=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdin
        process.stdin.write(dataset_bytes(60))  # and no end, so that it cannot be done before the signal
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not any(archive.glob("state/*.zst")) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(60) == -number
        assert _all_gone(process.pid)
        with suppress(BrokenPipeError):
            process.stdin.close()
    assert [path.name for path in (home / "work").iterdir()] == ["r.json"]
    assert f'"exit_code": {128 + number}' in (home / "work" / "r.json").read_text()
    assert not list(archive.rglob("*.tmp"))


def _all_gone(group: int) -> bool:
    """Whether no process of this group is left, at once or soon."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_a_signal_that_the_caller_ignores_stays_ignored(home: Path) -> None:
    (home / "work" / "many.jsonl").write_bytes(dataset_bytes(20))
    compacting = command("-t", "1500", "many.jsonl", "-o", "small.jsonl")
    shell = ["sh", "-c", 'trap "" HUP; echo; exec "$@"', "sh", *compacting]
    with subprocess.Popen(shell, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout
        process.stdout.readline()  # from here on the signal is ignored
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0


def test_an_offline_run_never_loads_litellm_or_what_it_does_not_need(work: Path) -> None:
    code = (
        "import sys\n"
        "from compactor_cli.cli.program import run_filter\n"
        "code = run_filter(sys.argv[1:])\n"
        "print(code, sorted({'litellm', 'tqdm', 'jsonschema', 'sqlite3', 'asyncio', 'multiprocessing', 'ssl'}"
        " & set(sys.modules)), file=sys.stderr)\n"
    )
    arguments = [sys.executable, "-c", code, "-t", "1500", "session.jsonl"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "0 []\n"


# Each takes half a millisecond of a start, which a hook and a pipe wait for every time.
_MOST_MODULES = 70


def test_a_file_that_needs_nothing_loads_little_of_the_package(work: Path) -> None:
    code = (
        "import sys\n"
        "from compactor_cli.cli.program import run_filter\n"
        "code = run_filter(sys.argv[1:])\n"
        "print(code, *(name for name in sys.modules if name.startswith('compactor_cli')), file=sys.stderr)\n"
    )
    arguments = [sys.executable, "-c", code, "-q", "-t", "1m", "session.jsonl", "-o", "same.jsonl"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=True)
    code, *modules = done.stderr.split()
    assert code == "0"
    rooms = {name.split(".")[1] for name in modules if "." in name}
    assert not rooms & {"agents", "digest", "evaluate", "llm", "plugged", "render"}
    assert "compactor_cli.archive.maintenance" not in modules
    assert len(modules) <= _MOST_MODULES


def test_a_tool_that_opens_nothing_loads_no_configuration(home: Path) -> None:
    code = (
        "import sys\n"
        "from compactor_cli.cli.program import run_toolbox\n"
        "run_toolbox(['batch', '--help'])\n"
        "print('compactor_cli.cli.config' in sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "False\n"


def test_progress_is_for_terminals(work: Path) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(command("-t", "1500", "session.jsonl"), stdout=subprocess.DEVNULL, stderr=theirs, timeout=60)
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert done.returncode == 0
    assert said.replace("\r\n", "\n").count("\n") == 1
    assert "session.jsonl" in said
    assert " tokens (−" in said


@pytest.mark.parametrize("entry", ["compact", "compactor"])
def test_version_and_help(entry: str, home: Path, spawn: Run) -> None:
    for option in ("--version", "-V"):
        first, *parts = spawn(option, entry=entry).out.decode().splitlines()
        assert first == f"{entry} {compactor_cli.__version__}"
        assert any(part.startswith("litellm 1.") for part in parts)
        assert parts[-1].startswith("tokens: exact for models with the vocabularies o200k_base, cl100k_base")
    ran = spawn("--help", entry=entry)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"Usage: {entry}".encode())


@pytest.mark.parametrize("entry", ["compact", "compactor"])
def test_without_a_vocabulary_counts_are_called_estimates(entry: str, work: Path) -> None:
    # As on a machine on which litellm has come without the files of its tokenizers.
    code = (
        "from compactor_cli.plan import models\n"
        "models.VOCABULARIES = {name: ('missing', 1) for name in models.VOCABULARIES}\n"
        f"from compactor_cli.__main__ import {entry} as main\n"
        "main()\n"
    )

    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)

    estimated = "estimated (UTF-8 bytes / 4), for no vocabulary is on this machine"
    assert ran("-V").stdout.splitlines()[-1] == f"tokens: {estimated}"
    if entry == "compact":
        done = ran("-v", "-t", "1500", "session.jsonl", "-o", "out.jsonl")
        assert "all numbers of them are an estimate (UTF-8 bytes / 4; no vocabulary on this machine)" in done.stderr


def test_every_option_is_in_the_help(home: Path, spawn: Run) -> None:
    from compactor_cli.cli.options import OPTIONS

    shown = spawn("--help").out.decode()
    named = {option.name: option.flags[-1].split("/")[0] if option.flags else option.key for option in OPTIONS}
    words = shown.replace("-\n  ", "-")
    assert [name for name, written in named.items() if written not in words] == []


def test_a_shell_can_ask_for_completions(home: Path) -> None:
    environ = os.environ | {"_COMPACT_COMPLETE": "bash_source"}
    done = subprocess.run(command(), env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "complete" in done.stdout


@pytest.mark.parametrize("entry", ["compact", "compactor"])
def test_without_posix_the_first_line_says_what_to_use(entry: str) -> None:
    code = (
        "import os, signal\n"
        "del signal.SIGHUP, signal.SIGPIPE\n"
        f"from compactor_cli.__main__ import {entry} as main\n"
        "os.name = 'nt'\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert done.stdout == ""
    assert "needs a POSIX system" in done.stderr.splitlines()[0]
    assert "use WSL" in done.stderr.splitlines()[0]


@pytest.mark.parametrize("option", ["--report", "--metrics", "--events", "--html", "--set summary-rows="])
def test_whatever_a_run_writes_besides_can_go_to_standard_output(work: Path, spawn: Run, option: str) -> None:
    words = [option.split()[0], f"{option.split()[1]}-"] if "=" in option else [option, "-"]
    into = ("-t", "1500", "session.jsonl", "-o", "out.jsonl", *words)
    ran = spawn(*into)
    assert ran.code == 0, ran.err
    assert not Path("-").exists()
    assert Path("out.jsonl").stat().st_size
    if option == "--html":
        assert ran.out.startswith(b"<!")
    else:
        assert json.loads(ran.out.splitlines()[0] if option in ("--events", "--set summary-rows=") else ran.out)
    taken = spawn("-t", "1500", "session.jsonl", *words)
    assert taken.code == 2
    assert (taken.out, "standard output holds the result" in taken.err) == (b"", True)


def test_standard_output_holds_one_thing(work: Path, spawn: Run) -> None:
    ran = spawn("-t", "1500", "session.jsonl", "-o", "out.jsonl", "--report", "-", "--events", "fd:1")
    assert ran.code == 2
    assert "standard output cannot hold the report and the events" in ran.err
    assert not Path("out.jsonl").exists()
