"""The rules of the house that a program can check."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "compactor_cli"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Reading order of the data flow: a folder imports those before it, never those after it.
FLOW = ("model", "read", "formats", "group", "plan", "digest", "llm", "render", "archive", "evaluate")
WIRING = ("engine", "run")
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
MAX_FILES = 177
# Of all lines: what a module needs of many others, it is not yet one subject with.
MAX_IMPORT_RATIO = 0.06


@cache
def _tree(path: Path) -> ast.Module:
    """The syntax of a module, which most rules look at; it is not changed."""
    return ast.parse(path.read_text(encoding="utf-8"))


def _room(path: Path) -> str:
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def _imported_rooms(path: Path) -> set[str]:
    tree = _tree(path)
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    parts = (name.split(".") for name in names)
    return {part[1] for part in parts if part[0] == "compactor_cli" and len(part) > 1}


def _imported_modules(node: ast.AST) -> set[str]:
    """The modules of the package that are imported at run time, inside functions too; of types alone, none."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return set()
    found = set().union(*map(_imported_modules, ast.iter_child_nodes(node)))
    if isinstance(node, ast.Import):
        found |= {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module:
        found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


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


def test_no_module_imports_one_that_imports_it() -> None:
    """The package itself is left out: it names what `api` offers, and every module asks it for the version."""
    names = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in MODULES}
    imports = {name: _imported_modules(_tree(path)) for name, path in names.items()}
    assert len(list(TopologicalSorter(imports).static_order())) >= len(MODULES)


def test_benchmarks_import_what_the_package_has() -> None:
    files = sorted(PACKAGE.parent.glob("benchmarks/**/*.py"))
    missing = [
        f"{path.name}:{node.lineno} {node.module}.{alias.name}"
        for path in files
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE.name
        for alias in node.names
        if not hasattr(__import__(node.module, fromlist=[alias.name]), alias.name)
    ]
    assert files
    assert not missing


def test_peers_are_measured_next_to_a_command_that_exists() -> None:
    code = "import subprocess, speed; subprocess.run([*speed.COMPACT, '--help'], check=True)"
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent / "benchmarks/peers", capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.startswith(b"Usage: compact ")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_and_functions_stay_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= MAX_MODULE_LINES
    functions = [node for node in ast.walk(_tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = [node.name for node in functions if (node.end_lineno or node.lineno) - node.lineno + 1 > MAX_FUNCTION_LINES]
    assert not long


def test_the_package_is_of_few_files_and_few_imports() -> None:
    assert len(MODULES) <= MAX_FILES
    texts = [path.read_text(encoding="utf-8") for path in MODULES]
    nodes = [node for path in MODULES for node in ast.walk(_tree(path))]
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    import_lines = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)
    assert import_lines / sum(text.count("\n") for text in texts) <= MAX_IMPORT_RATIO


def test_only_one_module_may_import_litellm() -> None:
    importers = {
        str(path.relative_to(PACKAGE))
        for path in MODULES
        for node in ast.walk(_tree(path))
        if (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "litellm" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "litellm")
    }
    assert importers <= {"llm/llm.py"}


def test_dataclasses_are_those_that_a_start_can_afford() -> None:
    made_here = PACKAGE / "model" / "value.py"
    wrong = re.compile(r"from dataclasses import .*\bdataclass\b")
    assert not [path for path in MODULES if path != made_here and wrong.search(path.read_text(encoding="utf-8"))]


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


# No folder's own language: what the field calls each.
BANNED_NAMES = {
    "wishes": "run_options",
    "orders": "run_config",
    "sinks": "outputs",
    "talk": "conversation",
    "teller": "print_report",
    "told": "shown, or what it holds",
    "said": "text, or what it holds",
    "untold": "hidden",
    "misfit": "OverflowPolicy",
    "tempo": "rate_limits",
    "pace": "rate_limiter",
    "islands": "kept_middle",
    "imitate": "new_message",
    "doubts": "problems",
    "homeless": "unplaced",
    "depot": "archive_on_change",
    "hung": "linked",
    "mended": "repaired",
    "asking": "model_options",
    "beside": "kept_outside, or what is there",
    "book": "log",
    "knock": "connect",
}
BANNED_PHRASES = {
    r"\bof ours\b": "written by compact",
    r"\bby the user's wish": "at the user's request",
    r"\btold apart\b": "distinguished",
    r"\bsays nothing\b": "carries no information",
    r"\b(gives|give) way\b": "is dropped first",
    r"\bh(angs|ung) on\b": "links to",
    r"\bmend the\b": "fix the",
    r"(?<!there )\bis no (archive|conversation|digest|entry|list|mapping|option|part|plan)\b": "is not a …",
    r"(?<!there )\bis no (count|length|reply|role|row|share|table|text)\b": "is not a …",
    r"\bthe likeness\b": "shaped like",
    r"\bgoes before\b": "takes precedence over",
    r"\bso many\b": "this many",
}
# In comments and docstrings; patterns and prompts hold the words of people.
BANNED_WORDS = {
    r"\b(un)?told\b": "shown, reported, instructed",
    r"\bbeside\b": "next to, or as well as",
    r"(?<!left )\bbehind\b(?!-)": "after",
    r"\bbut for\b": "except for",
    r"\btalks?\b": "conversation",
    r"\b(home(s|less)|wish(es)?|mend(s|ed)?)\b": "location, option, fix",
}
# Files under this many lines join their only importer.
SMALL_LINES = 150
CLIENTS = re.compile(
    r"claude|codex|gemini|qwen|kimi|opencode|\bcline\b|\broo\b|letta|openhands|copilot|hermes", re.IGNORECASE
)
CLIENT_FREE = ("digest", "plan", "render", "group", "model", "read", "llm", "archive", "run")
# To be moved to formats/ as data, or models' and servers' names rather than clients'.
NAMES_CLIENTS = {
    "archive/search.py": "an embedding model's name",
    "digest/files.py": "the patch format has a client's name",
    "llm/limits.py": "where the numbers come from",
    "llm/model.py": "a preset's name",
    "llm/model_calls.py": "a model's name",
    "llm/model_client.py": "where the numbers come from",
    "model/settings.py": "a preset's name",
    "plan/layout.py": "where the numbers come from",
    "plan/models.py": "a model family's name",
    "plan/planner.py": "how clients ask for a summary",
}


def _tokens(path: Path) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_names_and_prose_are_in_the_words_of_the_field(path: Path) -> None:
    tokens = _tokens(path)
    names = {token.string for token in tokens if token.type == tokenize.NAME}
    wrong = {(name, BANNED_NAMES[part]) for name in names for part in name.lower().split("_") if part in BANNED_NAMES}
    assert not wrong, f"say instead: {wrong}"
    prose = "\n".join(token.string for token in tokens if token.type in (tokenize.STRING, tokenize.COMMENT))
    written = "\n".join(token.string for token in tokens if token.string.startswith(("#", '"""', 'r"""')))
    looked_for = ((prose, BANNED_PHRASES), (written, BANNED_WORDS))
    found = {
        (match[0], better)
        for text, banned in looked_for
        for rule, better in banned.items()
        if (match := re.search(rule, text))
    }
    assert not found, f"say instead: {found}"


def test_a_small_file_with_one_importer_joins_it() -> None:
    importers: dict[str, set[Path]] = {}
    for path in MODULES:
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                    importers.setdefault(name, set()).add(path)
    small = {
        str(path.relative_to(PACKAGE))
        for path in MODULES
        if path.name != "__init__.py"
        and path.read_text(encoding="utf-8").count("\n") < SMALL_LINES
        and len(importers.get(".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts)), ())) == 1
    }
    assert not small


def test_no_client_is_named_outside_the_formats() -> None:
    named = {
        str(path.relative_to(PACKAGE))
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] in CLIENT_FREE
        and any(
            CLIENTS.search(re.sub(r"compactor_cli\.formats\S*", "", token.string))
            for token in _tokens(path)
            if token.type in (tokenize.STRING, tokenize.COMMENT)
        )
    }
    assert named <= NAMES_CLIENTS.keys()


def test_no_class_and_no_file_has_the_name_of_another() -> None:
    classes = Counter(
        node.name
        for path in MODULES
        for node in _tree(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    files = Counter(path.name for path in MODULES if path.name != "__init__.py")
    assert not [name for name, times in (classes + files).items() if times > 1]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_public_name_is_documented(path: Path) -> None:
    tree = _tree(path)
    inside = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    found = [node for body in (tree.body, *(node.body for node in inside)) for node in body]
    public = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    named = [node for node in found if isinstance(node, public) and not node.name.startswith("_")]
    # The signatures of one function share the docstring of its last.
    named = [node for node in named if "overload" not in {ast.unparse(one) for one in node.decorator_list}]
    assert not [node.name for node in named if not ast.get_docstring(node)]
