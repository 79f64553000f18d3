"""What people read about a plan, a difference and the pressure of a window."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_cases import Run, conversation, session_bytes

SAMPLES = Path(__file__).parents[2] / "samples"


def tokens_of(compact: Run, path: Path) -> int:
    """The exact size: it has to be counted where the target is smaller."""
    size: int = json.loads(compact("--check", "--report", "-", "-t", "1500", path).out)["totals"]["tokens_before"]
    return size


def test_a_plan_says_why_and_what_happens_in_words(work: Path, compact: Run) -> None:
    shown = compact("-n", "-t", "3k", SAMPLES / "claude-code.jsonl").out.decode()
    assert "6% of the window of 200,000 was full" in shown
    assert "why: 12,054 tokens > target 3,000" in shown
    assert "leave out 4 (bookkeeping, never sent), summarise 81" in shown
    assert not any(word in shown for word in ("pressure", "prune", "usage", "orphan"))


def test_a_difference_shows_no_loss_where_only_a_counter_is_reset(work: Path, compact: Run) -> None:
    shown = compact("--diff", "-t", "3k", SAMPLES / "claude-code.jsonl").out.decode()
    tail = shown[shown.rindex("@@ 88-113") :]
    assert tail == "@@ 88-113: keep 26 (2 token counters reset) @@\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--keep", "foo"), "--keep: “foo” is not a choice: one of newest, smart, semantic, hierarchical\n"),
        (("--keep-tail", "5x"), "“5x” is not a size: write 16k tokens, 2turns or 2messages; of a tail also 30%\n"),
        (("--budget", "5x"), "“5x” is not the size of a summary: write scaled, tiered, 2k or 10%\n"),
        (("-j", "x"), "--jobs: “x” is not a whole number: write digits alone, as 8\n"),
        (("--format", "enveloppe"), "did you mean 'enveloped'? compactor formats lists all\n"),
        (("-r", "empty"), "no transcript is below empty: there is no file; check the name\n"),
    ],
)
def test_what_is_wrong_is_named_with_what_to_write(
    work: Path, compact: Run, arguments: tuple[str, ...], said: str
) -> None:
    Path("empty").mkdir()
    ran = compact(*arguments, *(() if "-r" in arguments else ("session.jsonl",)))
    assert (ran.code, ran.err.endswith(said)) == (2, True)


def test_a_look_at_an_empty_file_says_that_it_is_empty(work: Path, compact: Run) -> None:
    Path("empty.jsonl").touch()
    assert "empty.jsonl: unchanged, 0 tokens (empty)" in compact("-v", "-n", "empty.jsonl").err


@pytest.mark.parametrize(("share", "options", "is_said"), [(0.7, (), False), (0.7, ("-v",), True), (0.78, (), True)])
def test_a_window_that_fills_is_stated_before_compaction_starts(
    work: Path, compact: Run, share: float, options: tuple[str, ...], is_said: bool
) -> None:
    path = work / "session.jsonl"
    window = round(tokens_of(compact, path) / share)
    ran = compact("-w", window, *options, "-o", "out.jsonl", path)
    assert ran.code == 0
    line = f"tokens fill {share:.0%} of the window of {window:,}; compaction starts at 85%"
    assert (line in ran.err) is is_said
    assert Path("out.jsonl").read_bytes() == path.read_bytes()


def test_next_to_a_target_no_window_is_said_to_start_a_compaction(work: Path, compact: Run) -> None:
    size = tokens_of(compact, work / "session.jsonl")
    ran = compact("-w", size // 2, "-t", "50k", "-o", "out.jsonl", "session.jsonl")
    assert f"of the window of {size // 2:,}; the target of 50,000 decides" in ran.err
    none = compact("-w", "8k", "--preset", "suna", "-t", "1500", "-n", "session.jsonl")
    assert "window" not in none.out.decode()


def test_the_end_of_a_phase_is_what_compaction_waits_for(work: Path, compact: Run) -> None:
    path = work / "session.jsonl"
    waiting = compact("--set", "at-phase=true", "-t", "1500", "-n", path)
    assert "unchanged (the phase of the task goes on)" in waiting.out.decode()
    assert compact("--set", "at-phase=true", "-t", "1500", "--check", path).code == 0
    request = {"role": "user", "content": "Now write the notes of the release for all of it."}
    path.write_bytes(session_bytes() + json.dumps(request).encode() + b"\n")
    assert "why: " in (due := compact("--set", "at-phase=true", "-t", "1500", "-n", path).out.decode())
    assert "a new request follows a finished one" in due
    assert compact("--set", "at-phase=true", "-t", "1500", "-i", path).code == 0
    assert len(path.read_bytes()) < len(session_bytes())
    assert conversation(1)[0]["content"] in path.read_text()


def test_a_check_names_the_files_that_would_change(work: Path, compact: Run) -> None:
    (work / "small.jsonl").write_bytes(session_bytes(2))
    ran = compact("--check", "-v", "-t", "1500", "session.jsonl", "small.jsonl")
    assert ran.code == 1
    (large,) = (line for line in ran.err.splitlines() if "session.jsonl" in line)
    assert "session.jsonl: would be compacted, " in large
    assert " tokens (−" in large
    assert "small.jsonl: would stay as it is, " in ran.err
    assert compact("--check", "-t", "1500", "session.jsonl").err == ""


def test_the_last_line_counts_every_record_that_stays(work: Path, compact: Run) -> None:
    ran = compact("-v", "-t", "3k", SAMPLES / "claude-code.jsonl", "-o", "out.jsonl")
    assert " · 28 kept, 81 summarised by the digest" in ran.err
    assert len(Path("out.jsonl").read_bytes().splitlines()) == 28 + 1
