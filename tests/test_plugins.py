"""Parts that other packages bring: found when asked for, checked, replaced by the built-in one where they fail.

The package of docs/engines.md is what is installed here, as `pip install --target` leaves it: a module, and a
folder of metadata that names its entry points.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOC = (ROOT / "docs/engines.md").read_text(encoding="utf-8")

BROKEN = '''
from compactor_cli.plugged import Draft
from compactor_cli.model.transcript import Role

class Raises:
    def compact(self, task):
        raise ValueError("no idea")

class Divides:
    """Keeps calls without their results."""
    def compact(self, task):
        return Draft(kept=[i for i, m in enumerate(task.transcript.messages) if not m.results], text="x")

class Large:
    """Says more than it leaves out."""
    def compact(self, task):
        return Draft(kept=range(1, len(task.tokens)), text="word " * sum(task.tokens))

class Beyond:
    def compact(self, task):
        return Draft(kept=[10_000], text="x")

class Strange:
    """Ranks blocks that there are not."""
    def rank(self, middle):
        from compactor_cli.model.plan import Ranking
        return Ranking(order=(0, 999))

class Wordy:
    def summarise(self, request):
        from compactor_cli.model.summary import Source, Summary
        from compactor_cli.model.summary import Answer
        return Answer(summary=Summary(source=Source.PLUGIN, sections=(), prose="word " * request.budget_tokens))

class Notes:
    """Lines of "who> text"."""
    name, title = "notes", "Notes"
    def array_path(self, value):
        return None
    def score(self, value):
        return 3 if isinstance(value, dict) and "who" in value else 0
    def starts(self, value):
        return False
    def read(self, records, row=None):
        from compactor_cli.model.transcript import Message, PreviousSummary, Text
        if any(r.value.get("who") == "boom" for r in records):
            raise RuntimeError("cannot read")
        said = [(Role.USER if r.value["who"] == "me" else Role.ASSISTANT, r.value["says"]) for r in records]
        def summary(text):
            return PreviousSummary(origin="compact", text=text) if "[compact/1 " in text else None
        return tuple(Message(role=role, parts=(Text(text=t),), summary=summary(t)) for role, t in said)
    def model(self, records, row=None):
        return ""
    def insert(self, transcript, cut, insertions):
        import json
        return tuple(json.dumps({"who": "me", "says": i.text}).encode() for i in insertions)
    def shorten(self, record, texts):
        import json
        return json.dumps({**record.value, "says": texts[0]}).encode()
'''
BROKEN_ENTRIES = {
    "compact.engines": {
        "raises": "broken_parts:Raises",
        "divides": "broken_parts:Divides",
        "large": "broken_parts:Large",
        "beyond": "broken_parts:Beyond",
        "absent": "no_such_module:Engine",
    },
    "compact.summarisers": {"wordy": "broken_parts:Wordy", "gone": "no_such_module:Summariser"},
    "compact.importance": {"strange": "broken_parts:Strange", "away": "no_such_module:Ranks"},
    "compact.dialects": {"notes": "broken_parts:Notes"},
}


def install(site: Path, name: str, module: str, code: str, entries: dict[str, dict[str, str]]) -> None:
    """What an installer leaves of a package with one module."""
    (site / f"{module}.py").write_text(code, encoding="utf-8")
    folder = site / f"{name.replace('-', '_')}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in named.items()) for group, named in entries.items()]
    (folder / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the packages are installed in."""
    folder = tmp_path_factory.mktemp("site")
    (toml,) = re.findall(r"^```toml\n(.*?)^```$", DOC, re.MULTILINE | re.DOTALL)
    (code,) = re.findall(r"^```python\n(.*?)^```$", DOC, re.MULTILINE | re.DOTALL)
    project = tomllib.loads(toml)["project"]
    install(folder, project["name"], "errors_first", code, project["entry-points"])
    install(folder, "broken-parts", "broken_parts", BROKEN, BROKEN_ENTRIES)
    return folder


def conversation(steps: int = 12) -> bytes:
    """A session in which step 2 fails."""
    lines = [{"role": "system", "content": "You are careful."}]
    for step in range(steps):
        function = {"name": "run", "arguments": json.dumps({"step": step})}
        result = f"failed {step}" if step == 2 else f"fine {step}: " + "line of the log; " * 40
        lines += [
            {"role": "user", "content": f"Do step {step}."},
            {"role": "assistant", "tool_calls": [{"id": f"c{step}", "type": "function", "function": function}]},  # type: ignore[dict-item]
            {"role": "tool", "tool_call_id": f"c{step}", "content": result, "is_error": step == 2},  # type: ignore[dict-item]
        ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


class Runner:
    """Runs ``compact`` on a session in a folder of its own, with the packages installed."""

    def __init__(self, folder: Path, site: Path) -> None:
        self.folder = folder
        self.source = conversation()
        (folder / "session.jsonl").write_bytes(self.source)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("COMPACT_")}
        self.environment = {**kept, "PYTHONPATH": str(site), "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}

    def __call__(self, *arguments: str, file: str = "session.jsonl") -> subprocess.CompletedProcess[bytes]:
        code = "from compactor_cli.__main__ import compact; compact()"
        command = [sys.executable, "-c", code, "--report", "report.json", *arguments, file, "-o", "out.jsonl", "-f"]
        return subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, timeout=60)

    @property
    def out(self) -> list[bytes]:
        return (self.folder / "out.jsonl").read_bytes().splitlines(keepends=True)

    @property
    def report(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.folder / "report.json").read_bytes())["inputs"][0]["transcripts"][0]
        return found


@pytest.fixture
def run(tmp_path: Path, site: Path) -> Runner:
    return Runner(tmp_path, site)


def test_the_engine_of_the_docs_decides_and_what_it_keeps_keeps_its_bytes(run: Runner) -> None:
    ran = run("--engine", "errors-first", "-t", "1100", "--archive")
    assert (ran.returncode, ran.stderr) == (0, b"")
    source = run.source.splitlines(keepends=True)
    inserted = [line for line in run.out if line not in source]
    assert len(inserted) == 1
    assert b"[compact/1 " in inserted[0]
    assert b"records are left out here." in inserted[0]
    assert [line for line in run.out if line in source] == [line for line in source if line in run.out]
    assert source[0] in run.out
    assert source[9] in run.out, "what failed stays"
    assert source[-1] in run.out
    assert int(str(run.report["tokens_after"])) <= 1100
    assert run.report["summary_source"] == "plugin"
    archived = list((run.folder / "data/compact/archive").glob("??/*.zst"))
    assert len(archived) == 1


def test_a_second_run_of_the_engine_changes_nothing(run: Runner) -> None:
    run("--engine", "errors-first", "-t", "1100")
    first = run.out
    (run.folder / "again.jsonl").write_bytes(b"".join(first))
    assert run("--engine", "errors-first", "-t", "1100", file="again.jsonl").returncode == 0
    assert run.out == first


def test_the_decision_of_an_engine_is_shown_saved_and_applied(run: Runner) -> None:
    run("--engine", "errors-first", "-t", "1100")
    direct = run.out
    code = "from compactor_cli.__main__ import compact; compact()"

    def compact(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-c", code, *arguments, "session.jsonl"]
        return subprocess.run(command, cwd=run.folder, env=run.environment, capture_output=True, timeout=60)

    shown = compact("--engine", "errors-first", "-t", "1100", "-n", "--plan-out", "plan.jsonl")
    assert b"summarise" in shown.stdout
    applied = compact("--plan", "plan.jsonl")
    assert applied.stdout == b"".join(direct), applied.stderr


def test_a_summariser_writes_the_summary(run: Runner) -> None:
    assert run("--set", "summariser=one-line", "-t", "1100").returncode == 0
    assert run.report["summary_source"] == "plugin"
    assert any(b"records are left out here." in line for line in run.out)


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ("raises", "ValueError: no idea"),
        ("divides", "the plan divides the exchange"),
        ("large", "over the target"),
        ("beyond", "IndexError"),
        ("absent", "no_such_module"),
    ],
)
def test_an_engine_that_fails_is_named_and_the_built_in_one_works(engine: str, reason: str, run: Runner) -> None:
    assert run("-t", "1100").returncode == 0
    built_in = run.out
    ran = run("--engine", engine, "-t", "1100")
    assert ran.returncode == 0
    assert f"the engine {engine} failed ({reason}".split(" (")[0].encode() in ran.stderr
    assert reason.encode() in ran.stderr
    assert run.out == built_in
    (warning,) = run.report["warnings"]  # type: ignore[misc]
    assert reason in warning


@pytest.mark.parametrize("engine", ["raises", "divides", "absent"])
def test_with_strict_the_input_fails_and_stays(engine: str, run: Runner) -> None:
    code = "from compactor_cli.__main__ import compact; compact()"
    command = [sys.executable, "-c", code, "--engine", engine, "--strict", "-t", "1100", "-i", "session.jsonl"]
    ran = subprocess.run(command, cwd=run.folder, env=run.environment, capture_output=True, timeout=60)
    assert ran.returncode == 3
    assert f"the engine {engine} failed".encode() in ran.stderr
    assert (run.folder / "session.jsonl").read_bytes() == run.source


@pytest.mark.parametrize(("name", "reason"), [("wordy", "over the budget"), ("gone", "no_such_module")])
def test_a_summariser_that_fails_is_replaced_by_the_digest(name: str, reason: str, run: Runner) -> None:
    assert run("-t", "1100").returncode == 0
    built_in = run.out
    ran = run("--set", f"summariser={name}", "-t", "1100")
    assert ran.returncode == 0
    assert reason.encode() in ran.stderr
    assert run.out == built_in
    assert reason in str(run.report["fell_back"])
    strict = run("--set", f"summariser={name}", "-t", "1100", "--strict")
    assert (strict.returncode, reason.encode() in strict.stderr) == (3, True)


def test_a_ranking_decides_what_stays_next_to_the_newest(run: Runner) -> None:
    (run.folder / "session.jsonl").write_bytes(conversation(30))
    source = conversation(30).splitlines(keepends=True)
    assert run("-t", "2500", "--keep", "failures").returncode == 0
    assert source[9] in run.out, "what failed stays"
    assert source[9 - 1] in run.out, "with its call"
    assert run.report["warnings"] == []


@pytest.mark.parametrize(("name", "reason"), [("strange", "ranks what is not there"), ("away", "no_such_module")])
def test_a_ranking_that_fails_is_named_and_the_built_in_one_works(name: str, reason: str, run: Runner) -> None:
    (run.folder / "session.jsonl").write_bytes(conversation(30))
    ran = run("-t", "2500", "--keep", name)
    assert ran.returncode == 0
    assert ran.stderr.count(reason.encode()) == 1
    assert reason in str(run.report["notes"])
    assert run.out[-1] == conversation(30).splitlines(keepends=True)[-1]
    strict = run("-t", "2500", "--keep", name, "--strict")
    assert (strict.returncode, reason.encode() in strict.stderr) == (3, True)


@pytest.mark.parametrize(
    "arguments",
    [("--engine", "nobody"), ("--set", "summariser=nobody"), ("--keep", "nobody"), ("--format", "nobody")],
)
def test_a_name_that_nothing_has_is_a_usage_error(arguments: tuple[str, str], run: Runner) -> None:
    ran = run(*arguments)
    assert ran.returncode == 2
    assert b"nobody" in ran.stderr


@pytest.mark.parametrize("said", ['engine = "errors-first"', 'keep = "failures"', '[keep]\nby = "failures"'])
def test_a_projects_file_cannot_choose_code(said: str, run: Runner) -> None:
    (run.folder / "compact.toml").write_text(f"{said}\n")
    ran = run("-t", "1100")
    assert (ran.returncode, b"choose code to run" in ran.stderr) == (2, True)


def test_a_format_is_asked_where_no_built_in_one_fits(run: Runner) -> None:
    lines = [{"who": "me" if i % 2 else "you", "says": f"line {i} " + "of the talk " * 30} for i in range(30)]
    notes = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    (run.folder / "talk.jsonl").write_bytes(notes)
    for arguments in ((), ("--format", "notes")):
        ran = run("-t", "900", *arguments, file="talk.jsonl")
        assert ran.returncode == 0, ran.stderr
        assert run.report["dialect"] == "notes"
        assert set(run.out) & set(notes.splitlines(keepends=True))
        assert any(b"[compact/1 " in line for line in run.out)
    (run.folder / "talk.jsonl").write_bytes(notes + b'{"who": "boom"}\n')
    ran = run("-t", "900", file="talk.jsonl")
    assert (ran.returncode, b"the format notes failed (RuntimeError: cannot read)" in ran.stderr) == (3, True)


def test_nothing_is_looked_for_before_it_is_asked_for(run: Runner) -> None:
    code = (
        "import sys; sys.argv = ['compact', '-t', '1100', 'session.jsonl', '-o', 'o.jsonl']\n"
        "from compactor_cli.__main__ import compact\n"
        "try:\n    compact()\nexcept SystemExit as done:\n    print(done.code, 'importlib.metadata' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=run.folder, env=run.environment, capture_output=True)
    bare = [sys.executable, "-c", "import sys; print('importlib.metadata' in sys.modules)"]
    assert ran.stdout.split() == [b"0", subprocess.run(bare, capture_output=True).stdout.strip()]
