"""Console: levels, alike messages, colours, and views of plans."""

from __future__ import annotations

import io
import os
import re
import subprocess
from pathlib import Path

import orjson
import pytest

from compactor_cli.cli.console import Console, Level, Progress, counted, shell_word, table, visible, wants_color
from compactor_cli.cli.program import run_toolbox


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _terminal(monkeypatch: pytest.MonkeyPatch) -> _Terminal:
    """Standard error as a terminal; not a fixture, for pytest sets its own streams after those."""
    stream = _Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("NO_COLOR", "1")
    return stream


def test_alike_messages_are_counted_after_the_third(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _terminal(monkeypatch)
    console = Console("compact")
    for number in range(10):
        console.error(f"file{number}.jsonl:{number}: no format is recognised (keys a{number}): name it")
    console.error("other.jsonl: no such file: check the name")
    console.finish()
    lines = terminal.getvalue().splitlines()
    assert len(lines) == 5
    assert lines[-1] == "compact: and 7 more like (-v names each): no format is recognised …: name it"


def test_with_v_every_message_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _terminal(monkeypatch)
    console = Console("compact", Level.DONE)
    for number in range(10):
        console.warn(f"file{number}: over its target")
    console.finish()
    assert terminal.getvalue().count("over its target") == 10


@pytest.mark.parametrize(
    ("level", "said"),
    [(-2, ""), (-1, "e"), (0, "ewd"), (1, "ewdn"), (2, "ewdny"), (9, "ewdny"), (-9, "")],
)
def test_each_level_says_what_those_below_it_say(level: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _terminal(monkeypatch)
    console = Console("c", level)
    for name, text in (("error", "e"), ("warn", "w"), ("done", "d"), ("note", "n"), ("why", "y")):
        getattr(console, name)(text)
    assert terminal.getvalue().replace("c: ", "").replace("\n", "") == said


def test_success_is_silent_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    Console("compact").done("a.jsonl: 2 → 1 tokens")
    assert stream.getvalue() == ""


def test_a_closed_standard_error_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    console = Console("compact")
    console.error("nobody hears this")
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr("sys.stderr", closed)
    console.error("nor this")
    opened = io.StringIO()
    monkeypatch.setattr("sys.stderr", opened)
    console.error("everybody hears this")
    assert opened.getvalue() == "compact: everybody hears this\n"
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    console.error("but this")
    assert stream.getvalue() == "compact: but this\n"


@pytest.mark.parametrize(
    ("choice", "environ", "expected"),
    [
        ("auto", {}, True),
        ("auto", {"NO_COLOR": "1"}, False),
        ("auto", {"NO_COLOR": ""}, True),
        ("auto", {"TERM": "dumb"}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {}, False),
    ],
)
def test_when_to_colour(choice: str, environ: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert wants_color(choice, _Terminal()) is expected
    assert wants_color("auto", io.StringIO()) is False


def test_control_characters_become_visible() -> None:
    assert visible("a\x1b[31m\u202eb\x07") == "a\\x1b[31m\\u202eb\\x07"
    assert visible("zwölf 個 😀") == "zwölf 個 😀"


def test_numbers_have_their_nouns() -> None:
    assert counted(1, "record") == "1 record"
    assert counted(2_000, "record") == "2,000 records"


def test_a_bar_appears_on_a_terminal_when_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _terminal(monkeypatch)
    with Progress(label="compact", total=10, unit="file", shown=True) as progress:
        progress.advance(1)
        assert terminal.getvalue() == ""
        monkeypatch.setattr("compactor_cli.cli.console.AFTER_SECONDS", -1.0)
        progress.advance(4)
        assert "5/10" in terminal.getvalue()
        progress.make_room()


def test_tables_line_up_wide_characters() -> None:
    lines = table(("name", "tokens"), [("a", 1), ("転写", 1_000)]).splitlines()
    assert lines == ["name  tokens", "a          1", "転写   1,000"]


def test_a_batch_shows_how_much_of_its_bytes_is_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    terminal = _terminal(monkeypatch)
    monkeypatch.setattr("compactor_cli.cli.console.AFTER_SECONDS", -1.0)
    rows = b"".join(orjson.dumps({"messages": [{"role": "user", "content": f"row {n}"}]}) + b"\n" for n in range(60))
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(rows)
    arguments = ["batch", "-t", "4k", "-j", "1", "--output-dir", str(tmp_path / "out"), str(tmp_path / "a.jsonl")]
    assert run_toolbox([*arguments, str(tmp_path / "b.jsonl")]) == 0
    assert re.search(r"compactor batch: +50%.*2\.\d+k/5\.\d+k", terminal.getvalue())


@pytest.mark.parametrize(
    "name", [b"a b.jsonl", b"new\nline", b"bad\xffb.jsonl", b"it's\x1b[31m \\", "\u202egpj.\u65e5".encode()]
)
def test_a_name_in_a_command_that_is_shown_is_taken_by_a_shell(name: bytes) -> None:
    word = shell_word(os.fsdecode(name))
    assert visible(word) == word
    assert subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout == name
