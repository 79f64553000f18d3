"""The generated parts of the pages in docs/presets/."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from compactor_cli.model.settings import PruneRule, Settings
from compactor_cli.presets import load_preset

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = "samples/openai-chat.jsonl"
# Of long output the ends are shown.
MOST_LINES = 24
MOST_CHARS = 150


def blocks(name: str, workplace: Path) -> dict[str, str]:
    """The generated blocks of a page by their names."""
    command = ["compact", "--preset", name, "-t", "4k"]
    plan = [
        f"$ {' '.join([*command, '-n', SAMPLE])}",
        *_ends(_output([*command, "-n", SAMPLE], workplace).splitlines()),
    ]
    return {"settings": _settings(name), "plan": _fenced(plan), "message": _message(command, workplace)}


def _settings(name: str) -> str:
    preset = load_preset(name)
    rows = [("strategy", preset.settings.strategy.value), ("template", preset.settings.template)]
    rows += [row for row in _changed(preset.settings, Settings(), "") if row[0] not in ("preset", *dict(rows))]
    for variable, rule in preset.environment.items():
        rows.append((f"${variable}", f"{rule['set']} = {rule.get('to', '{value}')}"))
    lines = [f"| `{key}` | {_cell(value)} |" for key, value in rows]
    return "\n".join(["| setting | value |", "|---|---|", *lines]) + "\n"


def _cell(value: str) -> str:
    return f"`{value}`".replace("|", "\\|") if value else "none"


def _changed(value: Any, base: Any, path: str) -> Iterator[tuple[str, str]]:
    """What differs from what is built in, field by field."""
    for field in dataclasses.fields(value):
        mine, theirs = getattr(value, field.name), getattr(base, field.name)
        if mine == theirs:
            continue
        if dataclasses.is_dataclass(mine):
            yield from _changed(mine, theirs, f"{path}{field.name}.")
        elif field.name == "prune":
            yield from ((f"prune: {rule.name}", _rule(rule)) for rule in mine)
            if not mine:
                yield "prune", ""
        else:
            yield f"{path}{field.name}", _value(mine)


def _rule(rule: PruneRule) -> str:
    fields = {field.name: getattr(rule, field.name) for field in dataclasses.fields(rule)}
    shown = {key: _value(value) for key, value in fields.items() if key != "name" and value not in (0, (), "")}
    return ", ".join(f"{key} {value}" for key, value in shown.items())


def _value(value: Any) -> str:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return " ".join(value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value).lower()


def _message(command: list[str], workplace: Path) -> str:
    said = _summary(_output([*command, SAMPLE], workplace))
    return _fenced([f"$ {' '.join([*command, SAMPLE])}", *_ends(said.splitlines())]) if said else ""


def _fenced(lines: list[str]) -> str:
    return "\n".join(["```", *(_short(line) for line in lines), "```"]) + "\n"


def _output(command: list[str], workplace: Path) -> str:
    environ: Mapping[str, str] = {**os.environ, "XDG_DATA_HOME": str(workplace), "NO_COLOR": "1"}
    words = [str(Path(sys.executable).parent / command[0]), *command[1:]]
    done = subprocess.run(words, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    return done.stdout


def _summary(output: str) -> str:
    messages = (json.loads(line) for line in output.splitlines())
    return next((str(m["content"]) for m in messages if "[compact/1 " in str(m["content"])), "")


def _ends(lines: list[str]) -> list[str]:
    if len(lines) <= MOST_LINES:
        return lines
    half = MOST_LINES // 2
    return [*lines[:half], f"… {len(lines) - 2 * half} more lines …", *lines[-half:]]


def _short(line: str) -> str:
    return line if len(line) <= MOST_CHARS else f"{line[: MOST_CHARS - 1]}…"
