"""Ours next to other tools on the same data, in one run: time, memory, size and what is left of the conversation.

    python benchmarks/peers/speed.py            # a Claude Code session of 45 MB, 500 trajectories
    python benchmarks/peers/speed.py --quick    # a tenth of both

cozempic prunes Claude Code sessions, claude-code-log renders them (it reads them whole and drops nothing),
Hermes' trajectory compressor has a model write summaries; it and our model path ask the same loopback server.
Each is installed from its registry into an environment of its own and run in a box (see ``environment.py``).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from data import MARKS, marks, write_claude_session, write_trajectories
from environment import SERVER_URL, Box, Environment, Ran, install

from compactor_cli.plan.tokens import vocabulary_folder

COMPACT = [sys.executable, "-c", "from compactor_cli.__main__ import compact; compact()", "-q", "-f"]
VOCABULARY = "o200k_base"
MODEL = "well"
TARGET_TOKENS = 15_250
SUMMARY_TOKENS = 750
AT_ONCE = 50
TIMEOUT_SECONDS = 1_200
# The compressor's own tokenizer is a download; like that one, this is tiktoken after transformers.
TOKENIZER = f'''
import tiktoken
from transformers import PreTrainedTokenizer
class Tiktoken(PreTrainedTokenizer):
    def __init__(self, **kwargs):
        self.vocabulary = tiktoken.get_encoding("{VOCABULARY}")
        super().__init__(**kwargs)
    @property
    def vocab_size(self):
        return self.vocabulary.n_vocab
    def get_vocab(self):
        return {{}}
    def encode(self, text, **kwargs):
        return self.vocabulary.encode(text, disallowed_special=())
'''
TOKENIZER_CONFIG = '{"tokenizer_class": "Tiktoken", "auto_map": {"AutoTokenizer": ["tokenizer.Tiktoken", null]}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """One input and the box that everybody gets a fresh copy of it in."""

    folder: Path
    source: Path

    def run(self, name: str, start: Callable[[Path, Path, Box], tuple[Ran, Path]]) -> None:
        """Let one tool run on a copy, and print its line; the first to run is what the others are compared with."""
        box = Box(folder=self.folder / "box")
        shutil.rmtree(box.folder, ignore_errors=True)
        box.folder.mkdir(parents=True)
        copy = Path(shutil.copy(self.source, box.folder))
        ran, output = start(copy, box.folder / "output.jsonl", box)
        if ran.status or not output.exists():
            print(f"{name:<44} failed with {ran.status}: {(ran.err or ran.out)[-300:]}")
            return
        self._report(name, ran, output.read_bytes(), box.folder / "requests.jsonl")

    def _report(self, name: str, ran: Ran, after: bytes, log: Path) -> None:
        before = self.source.read_bytes()
        had, has = marks(before), marks(after)
        kept = "  ".join(f"{len(has[mark] & had[mark]):>6}/{len(had[mark]):<6}" for mark in MARKS)
        requests = log.read_bytes().count(b"\n") if log.exists() else 0
        speed = len(before) / ran.seconds / 1e6
        spent = f"{ran.seconds:8.1f} {ran.cpu_seconds:7.1f} {speed:7.2f} {ran.peak_bytes / 1e6:7.0f}"
        print(f"{name:<44} {spent} {len(after) / 1e6:8.2f} {requests:>8}  {kept}", flush=True)


def header(title: str, source: Path) -> None:
    print(f"\n{title}, {source.stat().st_size / 1e6:.1f} MB")
    names = "  ".join(f"{name:<13}" for name in MARKS)
    print(f"{'':<44} {'seconds':>8} {'cpu':>7} {'MB/s':>7} {'MB peak':>7} {'MB after':>8} {'requests':>8}  {names}")


def sessions(folder: Path, environments: Path, size_bytes: int) -> None:
    source = folder / "session.jsonl"
    write_claude_session(source, size_bytes)
    header("A Claude Code session", source)
    contest = Contest(folder=folder, source=source)
    for options in (("-t", "25%"), ("-t", "100k")):
        contest.run(f"compact {' '.join(options)}", lambda *files, options=options: _compact(options, *files))
    cozempic = install(environments / "cozempic", "cozempic==1.8.39")
    for how in ("gentle", "standard", "aggressive"):
        contest.run(f"cozempic 1.8.39, {how}", lambda *files, how=how: _cozempic(cozempic, how, *files))
    log = install(environments / "claude-code-log", "claude-code-log==1.7.0")
    contest.run("claude-code-log 1.7.0, to Markdown", lambda *files: _claude_code_log(log, *files))


def trajectories(folder: Path, environments: Path, rows: int) -> None:
    source = folder / "trajectories.jsonl"
    write_trajectories(source, rows)
    header(f"{rows} trajectories", source)
    contest = Contest(folder=folder, source=source)
    size = ("-t", str(TARGET_TOKENS), "--budget", str(SUMMARY_TOKENS))
    model_options = ("-m", f"openai/{MODEL}", "--api-base", f"{SERVER_URL}/v1", "--set", f"llm-concurrency={AT_ONCE}")
    contest.run(
        f"compact, a model's summary, {AT_ONCE} at once", lambda *files: _compact((*size, *model_options), *files)
    )
    contest.run("compact, offline", lambda *files: _compact(size, *files))
    hermes = install(environments / "hermes", "hermes-agent==0.19.0", "transformers==4.57.1", "tiktoken==0.12.0")
    contest.run(f"hermes-agent 0.19.0, {AT_ONCE} at once", lambda *files: _hermes(hermes, *files))


def _compact(options: tuple[str, ...], source: Path, output: Path, box: Box) -> tuple[Ran, Path]:
    asks = "-m" in options
    command = [*COMPACT, *options, "--archive-dir", str(box.folder / "archive"), str(source), "-o", str(output)]
    key = {"OPENAI_API_KEY": "none"} if asks else {}
    return box.run(command, variables=key, server=asks, timeout=TIMEOUT_SECONDS), output


def _cozempic(tool: Environment, how: str, source: Path, output: Path, box: Box) -> tuple[Ran, Path]:
    command = [tool.program("cozempic"), "treat", "-rx", how, "--execute", str(source)]
    return box.run(command, timeout=TIMEOUT_SECONDS), source


def _claude_code_log(tool: Environment, source: Path, output: Path, box: Box) -> tuple[Ran, Path]:
    rendered = output.with_suffix(".md")
    command = [tool.program("claude-code-log"), "convert", str(source), "-o", str(rendered)]
    return box.run(command, timeout=TIMEOUT_SECONDS), rendered


def _hermes(tool: Environment, source: Path, output: Path, box: Box) -> tuple[Ran, Path]:
    tokenizer = box.folder / "tokenizer"
    tokenizer.mkdir()
    (tokenizer / "tokenizer.py").write_text(TOKENIZER, encoding="utf-8")
    (tokenizer / "tokenizer_config.json").write_text(TOKENIZER_CONFIG, encoding="utf-8")
    (tokenizer / "config.json").write_text("{}", encoding="utf-8")
    settings = box.folder / "settings.yaml"
    settings.write_text(
        f"summarization: {{model: {MODEL}, base_url: ADDRESS/v1, api_key_env: OPENAI_API_KEY}}\n"
        f"processing: {{max_concurrent_requests: {AT_ONCE}}}\n",
        encoding="utf-8",
    )
    # The address of the server is known in the box only.
    script = f'sed -i "s,ADDRESS,{SERVER_URL}," {settings} && exec "$@"'
    command = [tool.program("python"), "-m", "trajectory_compressor"]
    arguments = [f"--input={source}", f"--output={output}", f"--config={settings}", f"--tokenizer={tokenizer}"]
    folder = vocabulary_folder(VOCABULARY)
    variables = {"OPENAI_API_KEY": "none", "TIKTOKEN_CACHE_DIR": str(folder), "HF_HUB_OFFLINE": "1"}
    ran = box.run(
        ["sh", "-c", script, "sh", *command, *arguments], variables=variables, server=True, timeout=TIMEOUT_SECONDS
    )
    return ran, output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--environments", type=Path, help="keep the tools' environments here for the next run")
    wanted = parser.parse_args()
    share = 10 if wanted.quick else 1
    with tempfile.TemporaryDirectory() as name:
        environments = wanted.environments or Path(name) / "environments"
        sessions(Path(name), environments, 45_000_000 // share)
        trajectories(Path(name), environments, 500 // share)


if __name__ == "__main__":
    main()
