"""What is said of how a format is known to be right is what tests run; docs/formats.md says the same."""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path

from click.testing import CliRunner
from loaders import LIBRARIES

from compactor_cli.cli.toolbox import formats
from compactor_cli.formats.conversation import Writing
from compactor_cli.formats.registry import Evidence, all_dialects, known, names

ROOT = Path(__file__).resolve().parents[2]
# The clients by the names that the tests of clients have for them.
CLIENTS = {
    "claude": "claude-code",
    "codex": "codex",
    "pi": "pi",
    "gemini": "gemini-cli",
    "qwen": "qwen-code",
    "kimi-code": "kimi-wire",
    "kimi": "kimi-cli",
    "opencode": "opencode",
}


def resumed() -> set[str]:
    """The dialects whose sessions the tests of clients resume."""
    tree = ast.parse((ROOT / "tests/clients/test_resume.py").read_text(encoding="utf-8"))
    assigned = {
        target.id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in ("CLIENTS", "REWRITTEN")
    }
    return {CLIENTS[name] for names in assigned.values() for name in names}


def by(evidence: Evidence) -> set[str]:
    return {name for name in names() if known(name).evidence is evidence}


def test_a_client_is_named_where_tests_resume_its_sessions_and_nowhere_else() -> None:
    assert by(Evidence.CLIENT) == resumed()


def test_a_library_is_named_where_tests_load_our_output_with_it_and_nowhere_else() -> None:
    assert by(Evidence.LIBRARY) == {*LIBRARIES, "ui-messages"}


def test_whoever_has_read_our_output_is_named() -> None:
    assert all(bool(known(name).by) == (known(name).evidence is not Evidence.FILES) for name in names())


def test_versions_are_those_that_are_pinned() -> None:
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)", (ROOT / ".ci/loaders.lock").read_text(encoding="utf-8"), re.M))
    pinned["pydantic-ai"] = pinned["pydantic-ai-slim"]
    stated = (known(name).by.split()[:2] for name in LIBRARIES)
    assert not [name for name, version in stated if not pinned[name].startswith(version)]


def test_formats_says_how_each_is_known_to_be_right() -> None:
    lines = CliRunner().invoke(formats, ["--json"]).output.splitlines()
    told = {value["name"]: (value["evidence"], value["by"]) for value in map(json.loads, lines)}
    assert told["claude-code"][0] == "client"
    assert told["pydantic-ai"] == ("library", "pydantic-ai 2.68")
    assert told["cline"] == ("files", "")
    assert set(told) >= set(names())


def test_the_page_has_a_line_for_each_format() -> None:
    """Run with UPDATE_DOCS=1 to write it anew."""
    page = ROOT / "docs/formats.md"
    rows = ["| format | what it is | read by | `--to` |", "|---|---|---|---|"]
    for dialect in all_dialects():
        proof = known(dialect.name)
        shown = f"{proof.evidence.value}: {proof.by}" if proof.by else proof.evidence.value
        rows.append(f"| `{dialect.name}` | {dialect.title} | {shown} | {'×' if isinstance(dialect, Writing) else ''} |")
    text = page.read_text(encoding="utf-8")
    found = re.search(r"(?<=<!-- formats -->\n)(?:\|.*\n)*", text)
    assert found, "docs/formats.md has no place for the table"
    table = "\n".join(rows) + "\n"
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(text.replace(f"<!-- formats -->\n{found[0]}", f"<!-- formats -->\n{table}"), encoding="utf-8")
    assert found[0] == table or os.environ.get("UPDATE_DOCS")
