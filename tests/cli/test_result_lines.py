"""The last line about an input, and what a person at a terminal sees of a result."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cli_cases import Run, command, conversation, session_bytes


def _on_terminal(arguments: Sequence[object], stdin: bytes | None = None) -> str:
    """What a run prints whose standard output and error are one terminal."""
    ours, theirs = pty.openpty()
    environ = os.environ | {"NO_COLOR": "1", "COLUMNS": "100"}
    process = subprocess.Popen(
        command(*arguments), stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, env=environ, close_fds=True
    )
    os.close(theirs)
    assert process.stdin is not None
    process.stdin.write(stdin or b"")
    process.stdin.close()
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait(60) == 0, shown.decode()
    return shown.decode().replace("\r\n", "\n")


def test_in_place_the_last_line_has_sizes_records_and_the_way_back(work: Path, compact: Run) -> None:
    line = compact("-i", "-t", "1500", "session.jsonl", "-v").err.splitlines()[-1]
    assert " tokens (−" in line
    assert " kept, " in line
    assert " summarised by the digest · back: compactor undo session.jsonl" in line


def test_the_way_back_can_be_pasted_into_a_shell(work: Path, compact: Run) -> None:
    (work / "my session.jsonl").write_bytes(session_bytes())
    assert compact("-i", "-t", "1500", "my session.jsonl", "-v").err.endswith("undo 'my session.jsonl'\n")


def test_nothing_is_offered_back_where_the_source_is_as_it_was(work: Path, compact: Run) -> None:
    assert "back:" not in compact("-t", "1500", "session.jsonl", "-o", "small.jsonl", "-v").err


def test_an_input_within_the_default_says_so_and_how_it_gets_smaller(work: Path, compact: Run) -> None:
    line = compact("session.jsonl", "-v").err
    assert "tokens, within the default of 20,000; for less: -t 25%" in line


def test_an_input_within_its_target_names_the_target(work: Path, compact: Run) -> None:
    assert "within the target of 100,000" in compact("-t", "100k", "session.jsonl", "-v").err


def test_many_inputs_end_with_totals_and_seconds(work: Path, compact: Run) -> None:
    (work / "other.jsonl").write_bytes(session_bytes(3))
    (work / "broken.jsonl").write_bytes(b"no JSON\n")
    line = compact("-t", "1500", "-r", ".", "--output-dir", "out", "-v").err.splitlines()[-1]
    assert "4 inputs: " in line
    assert "1 failed" in line
    assert line.endswith(" s")


def test_a_terminal_is_shown_the_result_in_short_and_not_its_bytes(work: Path) -> None:
    shown = _on_terminal(["-t", "1500", "session.jsonl"])
    assert '{"role"' not in shown
    assert "keep 2" in shown
    assert "[compact/1 transcript=" in shown
    assert shown.splitlines()[-1].endswith("-o FILE writes it, -o - prints it, -i replaces the file")
    assert not list(work.parent.rglob("*.zst"))


def test_stdout_prints_the_bytes_on_a_terminal_too(work: Path, compact: Run) -> None:
    piped = compact("-t", "1500", "session.jsonl").out.decode()
    shown = _on_terminal(["-t", "1500", "session.jsonl", "-o", "-"])
    assert piped in shown
    assert "nothing was written" not in shown


def test_what_is_piped_in_is_shown_in_short_too(work: Path) -> None:
    shown = _on_terminal(["-t", "1500"], stdin=session_bytes())
    assert "standard input" in shown
    assert '{"role"' not in shown
    assert "-i replaces the file" not in shown


def test_of_a_dataset_the_first_rows_are_shown_a_line_each(work: Path) -> None:
    rows = b"".join(b'{"messages": %s}\n' % _messages() for _ in range(30))
    (work / "many.jsonl").write_bytes(rows)
    shown = _on_terminal(["-t", "1500", "many.jsonl"])
    assert len([line for line in shown.splitlines() if line.startswith("many.jsonl:")]) == 10
    assert "30 compacted conversations" in shown


def test_the_name_of_a_transcript_cannot_steer_the_terminal_that_shows_it(work: Path) -> None:
    name = "\x1b]0;owned\x07.jsonl"
    (work / name).write_bytes(session_bytes())
    shown = _on_terminal(["-t", "1500", name])
    assert "owned" in shown
    assert "\x1b]0" not in shown


def _messages() -> bytes:

    return json.dumps(conversation(6)).encode()
