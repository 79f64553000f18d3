"""Figures of how a package is cut, next to others': ``python benchmarks/house.py FOLDER …`` (default: this package)."""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import Counter
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[1] / "compactor_cli"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def figures(folder: Path) -> dict[str, str]:
    """What is counted of the Python files below a folder, by its name."""
    paths = [path for path in sorted(folder.rglob("*.py")) if "tests" not in path.relative_to(folder).parts]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    trees = [ast.parse(text) for text in texts]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    lines = sum(text.count("\n") for text in texts)
    lengths = [_length(node) for node in nodes if isinstance(node, FUNCTIONS)]
    private = [(i, name, length) for i, tree in enumerate(trees) for name, length in _private(tree)]
    uses = [_uses(tree) for tree in trees]
    once = [length for i, name, length in private if uses[i][name] <= 1]
    imports = sum(_length(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    comments = sum(_comments(path) for path in paths)
    classes = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    files = Counter(path.name for path in paths if path.name not in ("__init__.py", "__main__.py"))
    return {
        "files": f"{len(paths):,}",
        "lines": f"{lines:,}",
        "lines of the largest file": f"{max(text.count(chr(10)) for text in texts):,}",
        "median lines of a function": f"{median(lengths):g}",
        "longest function": f"{max(lengths):,}",
        "private functions used once": f"{len(once) / max(1, len(private)):.0%}",
        "  of them under 7 lines": f"{sum(length < 7 for length in once) / max(1, len(private)):.0%}",
        "import lines": f"{imports / lines:.1%}",
        "comments per 100 lines": f"{100 * comments / lines:.1f}",
        "class names used twice": str(_twice(classes)),
        "file names used twice": str(_twice(files)),
    }


def _length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _private(tree: ast.Module) -> list[tuple[str, int]]:
    found = ((node.name, _length(node)) for node in ast.walk(tree) if isinstance(node, FUNCTIONS))
    return [(name, length) for name, length in found if name.startswith("_") and not name.startswith("__")]


def _uses(tree: ast.Module) -> Counter[str]:
    names = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    attributes = (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return Counter(names) + Counter(attributes)


def _comments(path: Path) -> int:
    with path.open(encoding="utf-8") as file:
        return sum(token.type == tokenize.COMMENT for token in tokenize.generate_tokens(file.readline))


def _twice(names: Counter[str]) -> int:
    return sum(times > 1 for times in names.values())


def main() -> None:
    folders = [Path(name) for name in sys.argv[1:]] or [HERE]
    if missing := [str(folder) for folder in folders if not folder.is_dir()]:
        sys.exit(f"no such folder: {', '.join(missing)}; usage: python benchmarks/house.py [FOLDER …]")
    found = [figures(folder) for folder in folders]
    width = max(len(name) for name in found[0])
    print(" " * width, *(f"{folder.name:>14}" for folder in folders))
    for name in found[0]:
        print(f"{name:<{width}}", *(f"{values[name]:>14}" for values in found))


if __name__ == "__main__":
    main()
