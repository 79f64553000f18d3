"""What is released besides the package: the hooks of pre-commit and the action do what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
ENVIRON = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
STEPS: list[dict[str, Any]] = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
LARGE, BROKEN = (
    ROOT / "samples/openai-chat.jsonl",
    '{"role":"tool","tool_call_id":"c1","content":"an answer to nobody"}\n',
)


def _hook(name: str, *arguments: object) -> int:
    (entry,) = [hook["entry"] for hook in HOOKS if hook["id"] == name]
    return subprocess.run([*entry.split(), *map(str, arguments)], env=ENVIRON, capture_output=True).returncode


def _step(name: str, **environ: object) -> int:
    (script,) = [step["run"] for step in STEPS if step["name"] == name]
    given = ENVIRON | {key: str(value) for key, value in environ.items()}
    return subprocess.run(["bash", "-eo", "pipefail", "-c", script], env=given, capture_output=True).returncode


def test_the_size_hook_fails_for_what_is_too_large_alone() -> None:
    assert _hook("compact-check", "-t", "1M", LARGE) == 0
    assert _hook("compact-check", "-t", "4k", LARGE) == 1


def test_the_verifying_hook_fails_for_a_result_without_its_call(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text(BROKEN * 2)
    assert _hook("compactor-verify", LARGE) == 0
    assert _hook("compactor-verify", tmp_path / "broken.jsonl") != 0


def test_the_action_checks_sizes_and_writes_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert _step("Check sizes", PATHS=ROOT / "samples", TARGET="4k", HTML=page) == 1
    assert page.read_text().startswith("<!doctype html>")
    assert _step("Check sizes", PATHS=ROOT / "samples", TARGET="1M", HTML="") == 0


def test_the_action_fails_for_a_file_that_is_not_sound(tmp_path: Path) -> None:
    (tmp_path / "sound.jsonl").write_bytes(LARGE.read_bytes())
    assert _step("Verify", PATHS=tmp_path) == 0
    (tmp_path / "broken.jsonl").write_text(BROKEN * 2)
    assert _step("Verify", PATHS=tmp_path) != 0
