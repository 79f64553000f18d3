"""Every command of the README and the pages of docs/ is run; links lead somewhere; what is generated is up to date."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from llm_server.client import LlmServer

from compactor_cli.formats.registry import names

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
# Both set-up commands begin so; here everything is installed already, and `.ci/run` runs them from nothing.
INSTALL = re.compile(r"python3 -m venv \.venv && \.venv/bin/pip install -q \S+(?: \S+)? && \.venv/bin/")
# The server that the page on models speaks of.
SERVER = "http://127.0.0.1:8000/v1"
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")


def _blocks(page: Path) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def _anchors(page: Path) -> set[str]:
    """The names by which the headings of a page can be linked to."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A checkout's samples, and a home with a session of Claude Code that belongs to this folder."""
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT / "samples", folder / "samples")
    home = tmp_path / "home/.claude/projects/checkout"
    home.mkdir(parents=True)
    session = home / "74757171-62f0-59e7-af1f-74183cfde94e.jsonl"
    text = (ROOT / "samples/claude-code.jsonl").read_text(encoding="utf-8")
    session.write_text(text.replace('/home/mara/tidegate"', f'{folder}"'), encoding="utf-8")
    os.utime(session, (0, 0))
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if _blocks(page)], ids=lambda page: page.name)
def test_a_page_can_be_followed_from_top_to_bottom(page: Path, workplace: Path, llm_server: LlmServer) -> None:
    home = workplace.parent / "home"
    environment = {"HOME": str(home), "PATH": f"{BIN}:{os.environ['PATH']}", "LANG": "C.UTF-8"}
    script = "".join(INSTALL.sub("", block) for block in _blocks(page) if "pytest" not in block)
    script = script.replace(SERVER, llm_server.openai)
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script], cwd=workplace, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    wrong = []
    for path, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        if path.startswith(("http:", "https:")):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            wrong.append(f"{path}#{anchor}")
    assert not wrong


def test_the_readme_has_exactly_two_commands_that_set_everything_up() -> None:
    blocks = _blocks(PAGES[0])
    assert [bool(INSTALL.match(block)) for block in blocks].count(True) == 2
    assert sum("pytest" in block for block in blocks) == 1


@pytest.mark.parametrize(
    "command",
    [
        "compact",
        "compactor",
        "compactor sessions",
        "compactor show",
        "compactor digest",
        "compactor stats",
        "compactor expand",
        "compactor search",
        "compactor dropped",
        "compactor hook",
        "compactor install",
        "compactor mcp",
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


def test_the_readme_counts_the_formats() -> None:
    assert f"[{len(names())} formats]" in PAGES[0].read_text(encoding="utf-8")
