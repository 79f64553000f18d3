"""The short help, what a shell completes by, and the man pages: all made from the table of options."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compactor_cli.cli.options import COMMON, OPTIONS

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
ENVIRON = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "NO_COLOR": "1"}


def _out(*words: str, **environ: str) -> str:
    return subprocess.run(words, env=ENVIRON | environ, capture_output=True, text=True, check=True).stdout


def _completed(line: str) -> list[str]:
    """What a shell is offered for the last word of the line, without the kind of each."""
    words = line.split(" ")
    variable = f"_{words[0].upper()}_COMPLETE"
    found = _out(words[0], COMP_WORDS=line, COMP_CWORD=str(len(words) - 1), **{variable: "bash_complete"})
    return found.split()


def test_the_short_help_has_the_common_options_alone_and_fits_a_screen() -> None:
    text = _out("compact", "-h", COLUMNS="80")
    shown = set(re.findall(r"--[a-z-]+", text)) - {"--help"}
    named = {option.flags[-1] for option in OPTIONS for _, names in COMMON if option.name in names}
    assert shown == named
    assert len(named) == 15
    assert text.count("\n") <= 45


def test_the_long_help_has_every_option() -> None:
    text = _out("compact", "--help")
    assert all(option.flags[-1].split("/")[0] in text for option in OPTIONS if option.flags)


def test_the_command_line_has_fewer_than_fifty_five_options() -> None:
    assert len(set(re.findall(r"^  (-[-a-zA-Z0]+)", _out("compact", "--help"), re.MULTILINE))) < 55


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("compact --preset kim", "plain,kimi"),
        ("compact --on-failure k", "plain,keep"),
        ("compact --to markd", "plain,markdown"),
        ("compact --last clau", "plain,claude"),
        ("compact --budget sc", "plain,scaled"),
        ("compact --set lang=z", "plain,lang=zh"),
        ("compact --set template=hand", "plain,template=handover"),
        ("compact --set tokenizer=cl", "plain,tokenizer=cl100k_base"),
        ("compact --set rp", "plain,rpm="),
        ("compact --keep sm", "plain,smart"),
        ("compact --output-dir x", "dir,x"),
        ("compact ses", "file,ses"),
        ("compact --keep-t", "plain,--keep-tail"),
        ("compactor se", "plain,sessions"),
        ("compactor show --format pyd", "plain,pydantic-ai"),
        ("compactor presets kim", "plain,kimi"),
        ("compactor schema rep", "plain,report"),
        ("compactor restore ses", "file,ses"),
        ("compactor archive pr", "plain,prune"),
        ("compactor search --role us", "plain,user"),
        ("compactor batch run --preset kim", "plain,kimi"),
    ],
)
def test_a_word_is_completed_by_its_values(line: str, offered: str) -> None:
    assert offered in _completed(line)


def test_bash_completes_by_the_script_that_is_printed() -> None:
    script = 'eval "$(compactor completion bash)"; complete -p compact compactor; COMP_WORDS=(compact --keep smar)\n'
    script += "COMP_CWORD=2; _compact_completion compact; printf '%s\\n' \"${COMPREPLY[@]}\""
    assert _out("bash", "-euc", script).split()[-1] == "smart"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_for_both_programs(shell: str) -> None:
    text = _out("compactor", "completion", shell)
    assert f"_COMPACT_COMPLETE={shell}_complete" in text
    assert f"_COMPACTOR_COMPLETE={shell}_complete" in text


@pytest.mark.parametrize("file", ["docs/man/compact.1", "docs/man/compactor.1", "schemas/config.schema.json"])
def test_what_is_made_from_the_declarations_is_up_to_date(file: str) -> None:
    """Run with UPDATE_DOCS=1, or docs/man/make.py, to write them anew."""
    command = [sys.executable, ROOT / "docs/man/make.py", "--print", file]
    made = subprocess.run(command, env=ENVIRON, capture_output=True, check=True).stdout
    if os.environ.get("UPDATE_DOCS"):
        (ROOT / file).write_bytes(made)
    assert made == (ROOT / file).read_bytes()
