"""What CONTRIBUTING.md says a change takes, done as it says in a copy of the package: no other file needs a hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "samples/claude-code.jsonl"
PRESET = '# Little stays.\nabout = "keeps the newest 2,000 tokens"\n\n[keep]\ntail_tokens = 2_000\n'
OPTION = '    _declare("min_share", "min_retention_ratio", _K.RATIO, "Fail where less survives.", "--min-share"),\n'
ROW = "    SectionPlan(section=Section.PLACES, build=_places, large=0.05, small=0.05, conversation=0.0, drop=1),\n"
BUILDER = """\
def _places(analysis: Analysis, tokens: int, meter: Meter) -> tuple[Item, ...]:
    folders = sorted({state.path.rpartition("/")[0] for state in analysis.files} - {""})
    return (Item(text=", ".join(folders)),) if folders else ()


"""
HEADING = '\n[[sections]]\nsection = "places"\nen = "Places"\nzh = "位置"\nja = "場所"\n'


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, to be changed."""
    copy = tmp_path / "source/compactor_cli"
    shutil.copytree(ROOT / "compactor_cli", copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "schemas", tmp_path / "source/schemas")
    return copy


def _before(file: Path, mark: str, text: str) -> None:
    """Put the text in front of the only line that begins with the mark."""
    old = file.read_text(encoding="utf-8")
    assert old.count(f"\n{mark}") == 1
    file.write_text(old.replace(f"\n{mark}", f"\n{text}{mark}"), encoding="utf-8")


def _compact(package: Path, *arguments: object, **environ: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "HOME": str(package.parent), "XDG_CACHE_HOME": str(package.parent), **environ}
    given["PYTHONPATH"] = str(package.parent)
    words = [sys.executable, "-c", "from compactor_cli.__main__ import compact; compact()", *map(str, arguments)]
    return subprocess.run(words, env=given, cwd=package.parent, capture_output=True, text=True)


def test_a_preset_is_one_file(package: Path) -> None:
    (package / "presets/short.toml").write_text(PRESET, encoding="utf-8")
    done = _compact(package, "-n", "-v", "--preset", "short", "-w", "5000", SAMPLE)
    assert done.returncode == 0, done.stderr
    assert "keep" in done.stdout


def test_an_option_is_one_declaration(package: Path) -> None:
    _before(package / "cli/options.py", '    _declare("min_retention",', OPTION)
    assert "--min-share SHARE" in _compact(package, "--help").stdout
    wanted = ("-t", "10%", SAMPLE, "-o")
    assert _compact(package, "--min-share", "0", *wanted, "little.jsonl").returncode == 0
    assert _compact(package, "--min-share", "0.99", *wanted, "much.jsonl").returncode == 3
    assert _compact(package, *wanted, "by-variable.jsonl", COMPACT_MIN_SHARE="0.99").returncode == 3
    (package.parent / "compact.toml").write_text("min-share = 0.99\n", encoding="utf-8")
    assert "min-share" in _compact(package, *wanted, "by-project.jsonl").stderr


def test_a_section_is_three_files(package: Path) -> None:
    _before(package / "model/summary.py", "    NAMES = ", '    PLACES = "places"  # folders worked in\n')
    _before(package / "digest/sections.py", "    SectionPlan(section=Section.USER", ROW)
    _before(package / "digest/sections.py", "SECTIONS: tuple", BUILDER)
    template = package / "render/templates/handover.toml"
    template.write_text(template.read_text(encoding="utf-8") + HEADING, encoding="utf-8")
    done = _compact(package, "-t", "40%", "--set", "template=handover", "--to", "text", SAMPLE)
    assert "Places\n- migrations, " in done.stdout, done.stderr
