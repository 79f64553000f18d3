"""Every command block of the README is run; what is generated in docs/ is up to date."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
# Both set-up commands begin so; here everything is installed already, and `.ci/run` runs them from nothing.
INSTALL = re.compile(r"python3 -m venv \.venv && \.venv/bin/pip install -q \S+(?: \S+)? && \.venv/bin/")


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder with the files that the recipes name."""
    shutil.copytree(ROOT / "samples", tmp_path / "samples")
    shutil.copy(ROOT / "samples/claude-code.jsonl", tmp_path / "session.jsonl")
    shutil.copy(ROOT / "samples/openai-chat-dataset.jsonl", tmp_path / "dataset.jsonl")
    (tmp_path / "sessions").mkdir()
    shutil.copy(ROOT / "samples/openai-chat.jsonl", tmp_path / "sessions/long.jsonl")
    os.utime(tmp_path / "sessions/long.jsonl", (0, 0))
    return tmp_path


@pytest.mark.parametrize("block", [block for block in BLOCKS if "pytest" not in block])
def test_the_readme_can_be_followed(block: str, workplace: Path) -> None:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "XDG_DATA_HOME": str(workplace / "data")}
    script = INSTALL.sub("", block)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=workplace, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"


def test_the_readme_has_exactly_two_commands_that_set_everything_up() -> None:
    assert [bool(INSTALL.match(block)) for block in BLOCKS].count(True) == 2
    assert sum("pytest" in block for block in BLOCKS) == 1


@pytest.mark.parametrize(
    "command",
    [
        "compact",
        "compactor",
        "compactor sessions",
        "compactor show",
        "compactor stats",
        "compactor expand",
        "compactor search",
        "compactor dropped",
        "compactor restore",
        "compactor verify",
        "compactor archive",
        "compactor archive list",
        "compactor archive stats",
        "compactor archive prune",
        "compactor eval",
        "compactor batch",
        "compactor batch run",
        "compactor batch submit",
        "compactor batch status",
        "compactor batch collect",
    ],
)
def test_the_reference_shows_the_help_as_it_is(command: str) -> None:
    """Run with UPDATE_DOCS=1 to write it anew."""
    reference = ROOT / "docs/cli.md"
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    words = [str(BIN / command.split()[0]), *command.split()[1:], "--help"]
    text = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    block = f"<!-- {command} -->\n```\n{text}```\n"
    found = re.search(
        rf"<!-- {command} -->\n```\n.*?^```\n", reference.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert found, f"docs/cli.md has no block for {command}"
    if os.environ.get("UPDATE_DOCS"):
        reference.write_text(reference.read_text(encoding="utf-8").replace(found[0], block), encoding="utf-8")
    assert found[0] == block or os.environ.get("UPDATE_DOCS")
