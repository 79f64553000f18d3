"""Scripts in commands: which files a Python script writes, and what it, ``sed`` or ``perl`` replace by what."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field
from functools import lru_cache

from compactor_cli.model.value import dataclass

_MAX_CHARS = 20_000
_MAX_CALLS = 400


def here_document(command: str) -> tuple[str, str]:
    """A command line without the body of its here-document, and that body; what follows it is commands again."""
    shown, marker, body = command.partition("<<")
    if not marker:
        return command, ""
    opening, _, body = body.partition("\n")
    shown += opening
    word = opening.strip().lstrip("-").split()[:1]
    end = re.search(rf"^\s*{re.escape(word[0].strip(chr(39) + chr(34)))}\s*$", body, re.MULTILINE) if word else None
    return (shown + body[end.end() :], body[: end.start()]) if end else (shown, body)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptWork:
    """The files that a Python script writes, and the texts that it replaces by others, as far as it names them."""

    written: tuple[str, ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()


def python_script(command: str) -> str:
    """The Python script in a command's here-document, or an empty string."""
    shown, body = here_document(command)
    return body if "python" in shown and len(body) <= _MAX_CHARS else ""


@lru_cache(maxsize=64)
def work_of(script: str) -> ScriptWork:
    """What a script does to files: literal paths and texts, and names that one was given to before."""
    reader = _ScriptReader()
    # A script that is none, or one of expressions nested too deep.
    with warnings.catch_warnings(), suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        warnings.simplefilter("ignore")  # of escapes that Python does not know
        steps = [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Assign | ast.Call)]
        for node in sorted(steps, key=lambda node: (node.lineno, node.col_offset))[:_MAX_CALLS]:
            reader.read(node)
    return ScriptWork(written=tuple(reader.written), replaced=tuple(reader.replaced))


@dataclass(slots=True, kw_only=True)
class _ScriptReader:
    named: dict[str, str] = field(default_factory=dict)
    written: dict[str, None] = field(default_factory=dict)
    replaced: dict[tuple[str, str], None] = field(default_factory=dict)

    def read(self, node: ast.Assign | ast.Call) -> None:
        if isinstance(node, ast.Assign):
            if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self.named[node.targets[0].id] = self._text(node.value)
            return
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        texts = [self._text(value) for value in node.args]
        if name == "open":
            modes = [*texts[1:2], *(self._text(key.value) for key in node.keywords if key.arg == "mode")]
            path = texts[0] if texts and owner is None else ""
            self._wrote(path if any(mode[:1] in ("w", "a") for mode in modes if mode) else "")
        elif name == "write_text" and owner is not None:
            self._wrote(self._text(owner))
        elif name in ("replace", "sub", "subn") and len(texts) > 1:
            # Of a pattern's own method the first argument is what is put there.
            has_old = name == "replace" or getattr(owner, "id", "") == "re"
            self.replaced[(texts[0], texts[1]) if has_old else ("", texts[0])] = None

    def _wrote(self, path: str) -> None:
        if path:
            self.written[path] = None

    def _text(self, node: ast.expr) -> str:
        """The text that an expression is known to stand for, a path included; of what is not known nothing."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else ""
        if isinstance(node, ast.Name):
            return self.named.get(node.id, "")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._text(node.left) + self._text(node.right)
        is_path = isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func).endswith("Path")
        return self._text(node.args[0]) if is_path and isinstance(node, ast.Call) else ""


_SUBSTITUTION = re.compile(r"(?<![\w$\\.])s([/|#,@!])((?:\\.|(?!\1)[^\\\n])+)\1((?:\\.|(?!\1)[^\\\n])*)\1")


def substitutions(command: str) -> Iterator[tuple[str, str]]:
    """What ``sed`` and ``perl`` replace by what in this command (``s/old/new/``), a line break where ``\\n`` is one.

    References to groups at an edge of what is put there are left out.
    """
    for _, old, new in _SUBSTITUTION.findall(command) if "sed" in command or "perl" in command else ():
        yield old, re.sub(r"(?m)^(?:[\\$]\d)+|(?:[\\$]\d)+$", "", new.replace("\\n", "\n"))
