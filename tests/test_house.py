"""The rules of the house that a program can check."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "compactor_cli"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Reading order of the data flow: a folder imports those before it, never those behind it.
FLOW = ("model", "read", "formats", "group", "plan", "digest", "llm", "render", "archive", "evaluate")
# Shards and engines run the step of the batch, so that a row gives the same bytes wherever it is compacted.
WIRING = ("engine", "run", "scale")
HEAVY = (
    "litellm",
    "jinja2",
    "tiktoken",
    "jsonschema",
    "tqdm",
    "sqlite3",
    "asyncio",
    "multiprocessing",
    "ray",
    "pyarrow",
)
MAX_MODULE_LINES = 600
MAX_FUNCTION_LINES = 60


def _room(path: Path) -> str:
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def _imported_rooms(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    parts = (name.split(".") for name in names)
    return {part[1] for part in parts if part[0] == "compactor_cli" and len(part) > 1}


def _may_import(room: str, other: str) -> bool:
    if room == other:
        return True
    if room in FLOW:
        return other in FLOW and FLOW.index(other) < FLOW.index(room)
    if room in WIRING and other in WIRING:
        return WIRING.index(other) < WIRING.index(room)
    return other != "cli" or room in ("cli", "__main__")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_left(path: Path) -> None:
    room = _room(path)
    wrong = {other for other in _imported_rooms(path) if not _may_import(room, other)}
    assert not wrong, f"{path.name} in {room} imports {sorted(wrong)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_and_functions_stay_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= MAX_MODULE_LINES
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = [node.name for node in functions if (node.end_lineno or node.lineno) - node.lineno + 1 > MAX_FUNCTION_LINES]
    assert not long


def test_only_one_module_may_import_litellm() -> None:
    importers = {
        str(path.relative_to(PACKAGE))
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "litellm" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "litellm")
    }
    assert importers <= {"llm/llm.py"}


@pytest.mark.parametrize("entry", ["compact", "compactor"])
def test_help_loads_nothing_heavy(entry: str) -> None:
    code = (
        "import sys\n"
        f"from compactor_cli.__main__ import {entry} as main\n"
        f"sys.argv = [{entry!r}, '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_modules_of_tests_have_names_of_their_own() -> None:
    """Without packages, pytest imports them by their bare names."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert not [name for name, times in names.items() if times > 1]
