"""``compact``: what goes in, what comes out, and what is said, in every way of writing."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import re
import time
from pathlib import Path

import pytest
from cli_cases import Run, dataset_bytes, session_bytes

from compactor_cli.read.streams import zstd
from compactor_cli.run.documents import faults

OLD = time.time() - 7_200


def _archived(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.jsonl.zst"))


def _report(path: Path) -> dict[str, object]:
    report: dict[str, object] = json.loads(path.read_text())
    assert faults("report", report) == ()
    return report


def test_standard_output_holds_the_transcript_and_nothing_else(work: Path, compact: Run) -> None:
    ran = compact("-t", "1500", "session.jsonl")
    assert (ran.code, ran.err) == (0, "")
    kept = [line for line in ran.out.splitlines() if line in session_bytes().splitlines()]
    (summary,) = set(ran.out.splitlines()) - set(kept)
    assert "[compact/1 transcript=" in json.loads(summary)["content"]
    assert len(kept) > 1


def test_the_original_is_in_the_archive_before_the_output_is_out(work: Path, home: Path, compact: Run) -> None:
    compact("-t", "1500", "session.jsonl", "--archive")
    (stored,) = _archived(home / "data/compact/archive")
    assert zstd().decompress(stored.read_bytes()) == session_bytes()


def test_what_is_within_its_target_passes_byte_for_byte_and_is_not_archived(
    work: Path, home: Path, compact: Run
) -> None:
    ran = compact("-t", "100k", "session.jsonl")
    assert (ran.code, ran.out) == (0, session_bytes())
    assert not (home / "data").exists()


def test_an_output_file_is_not_overwritten_unless_forced(work: Path, compact: Run) -> None:
    assert compact("-t", "1500", "session.jsonl", "-o", "small.jsonl").code == 0
    first = (work / "small.jsonl").read_bytes()
    refused = compact("-t", "900", "session.jsonl", "-o", "small.jsonl")
    assert refused.code == 2
    assert "-f" in refused.err
    assert (work / "small.jsonl").read_bytes() == first
    assert compact("-t", "900", "session.jsonl", "-o", "small.jsonl", "-f").code == 0
    assert (work / "small.jsonl").read_bytes() != first


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("session.jsonl", "-o", "session.jsonl"), "-i"),
        (("session.jsonl", "rows.jsonl"), "--output-dir"),
        (("."), "-r"),
        (("-i", "session.jsonl", "-o", "x"), "exclude one another"),
        (("-i", "-"), "standard input"),
        (("-i", "--no-archive", "session.jsonl"), "-f"),
        (("--plan-out", "p", "-o", "x", "session.jsonl"), "then compact --plan FILE"),
        (("--plan-out", "-", "--diff", "session.jsonl"), "save the plan to a file"),
        (("--plan-out", "-", "--report", "-", "session.jsonl"), "write that to a file"),
        (("--set", "rpm", "session.jsonl"), "write KEY=VALUE"),
        (("-0", "session.jsonl"), "--files-from"),
        (("--report", "-", "session.jsonl"), "-o"),
        (("-t", "12q", "session.jsonl"), "32k"),
        (("-t", "0", "session.jsonl"), "target"),
        (("--preset", "hermez", "session.jsonl"), "did you mean hermes?"),
        (("--format", "claude-cod", "session.jsonl"), "claude-code"),
        (("--set", "template=nothing", "session.jsonl"), "hermes"),
        (("--set", "tokenizer=abacus", "session.jsonl"), "o200k_base"),
        (("--set", "model-window=no-such-model", "session.jsonl"), "--window"),
        (("--preset", "suna", "-w", "64k", "session.jsonl"), "name a larger window"),
        (("--keep-head", "2messages", "session.jsonl"), "2turns"),
        (("--tagret", "1k"), "--target"),
        (("--files-from", "missing.txt"), "missing.txt"),
    ],
)
def test_a_wrong_command_is_exit_2_says_what_to_do_and_touches_nothing(
    arguments: tuple[str, ...], named: str, work: Path, home: Path, compact: Run
) -> None:
    before = sorted(home.rglob("*"))
    ran = compact(*([arguments] if isinstance(arguments, str) else arguments))
    assert (ran.code, ran.out) == (2, b"")
    assert ran.err.startswith("compact: ")
    assert named in ran.err
    assert sorted(home.rglob("*")) == before


def test_a_flag_for_what_is_a_key_is_refused_with_what_to_write(work: Path, compact: Run) -> None:
    ran = compact("-t", "1500", "session.jsonl", "--template", "hermes")
    assert (ran.code, ran.out) == (2, b"")
    assert "write --set template=VALUE" in ran.err


def test_in_place_archives_replaces_and_restores(work: Path, compact: Run, compactor: Run) -> None:
    source = work / "session.jsonl"
    source.chmod(0o640)
    assert compact("-i", "--min-age", "0", "-t", "1500", "session.jsonl", "--report", "r.json").code == 0
    assert 0 < source.stat().st_size < len(session_bytes())
    assert source.stat().st_mode & 0o777 == 0o640
    (stored,) = _archived(work / ".transcripts")
    report = _report(work / "r.json")
    assert report["inputs"][0]["archive"] == str(stored.relative_to(work)) or Path(  # type: ignore[index]
        report["inputs"][0]["archive"]  # type: ignore[index]
    ).samefile(stored)
    restored = compactor("restore", stored.name[:16])
    assert (restored.code, restored.out) == (0, session_bytes())


def test_a_second_run_in_place_touches_nothing(work: Path, compact: Run) -> None:
    compact("-i", "--min-age", "0", "-t", "1500", "session.jsonl")
    os.utime("session.jsonl", (OLD, OLD))
    before, archived = (work / "session.jsonl").read_bytes(), _archived(work)
    ran = compact("-i", "-t", "1500", "session.jsonl")
    assert (ran.code, ran.out, ran.err) == (0, b"", "")
    assert (work / "session.jsonl").read_bytes() == before
    assert (work / "session.jsonl").stat().st_mtime == OLD
    assert _archived(work) == archived


def test_a_file_just_written_is_left_alone_in_a_tree_in_place(work: Path, compact: Run) -> None:
    os.utime("rows.jsonl", (OLD, OLD))
    ran = compact("-i", "-r", ".", "-t", "1500", "--report", "r.json")
    assert (ran.code, ran.err) == (0, "")
    assert (work / "session.jsonl").read_bytes() == session_bytes()
    old, new = _report(work / "r.json")["inputs"]  # type: ignore[misc]
    assert (new["outcome"], new["reason"]) == ("skipped", "live")
    assert old["outcome"] == "compacted"


def test_in_place_without_an_archive_must_be_forced(work: Path, compact: Run) -> None:
    assert compact("-i", "--no-archive", "-f", "--min-age", "0", "-t", "1500", "session.jsonl").code == 0
    assert len(session_bytes()) > (work / "session.jsonl").stat().st_size
    assert not (work / ".transcripts").exists()


def test_a_tree_is_mirrored_with_what_needs_nothing(work: Path, compact: Run) -> None:
    tree = work / "tree"
    (tree / "deep" / ".hidden").mkdir(parents=True)
    (tree / "deep" / "a.jsonl").write_bytes(session_bytes(12))
    (tree / "b.jsonl").write_bytes(session_bytes(1))
    (tree / "deep" / ".hidden" / "c.jsonl").write_bytes(session_bytes(12))
    (tree / "notes.txt").write_text("not a transcript")
    assert compact("-r", "tree", "--output-dir", "out", "--min-age", "0", "-t", "1500").code == 0
    written = sorted(path.relative_to(work / "out").as_posix() for path in (work / "out").rglob("*") if path.is_file())
    assert written == ["b.jsonl", "deep/a.jsonl"]
    assert (work / "out/b.jsonl").read_bytes() == session_bytes(1)


def test_included_and_excluded_names(work: Path, compact: Run) -> None:
    ran = compact("-n", "-r", ".", "--min-age", "0", "--include", "*.jsonl", "--exclude", "rows*", "-t", "1500")
    assert b"session.jsonl" in ran.out
    assert b"rows" not in ran.out


@pytest.mark.parametrize(("separator", "flags"), [("\n", ()), ("\0", ("-0",))])
def test_names_from_a_list(separator: str, flags: tuple[str, ...], work: Path, compact: Run) -> None:
    (work / "names").write_text(separator.join(["session.jsonl", "rows.jsonl", ""]))
    assert compact("--files-from", "names", *flags, "--output-dir", "out", "-t", "1500").code == 0
    assert sorted(path.name for path in (work / "out").iterdir()) == ["rows.jsonl", "session.jsonl"]


@pytest.mark.parametrize("name", ["session.jsonl.gz", "session.jsonl.zst"])
def test_compression_is_kept_in_place_and_follows_the_name(name: str, work: Path, compact: Run) -> None:
    pack = gzip.compress if name.endswith("gz") else zstd().compress
    unpack = gzip.decompress if name.endswith("gz") else zstd().decompress
    (work / name).write_bytes(pack(session_bytes()))
    plain = compact("-t", "1500", name, "--archive").out
    assert compact("-t", "1500", "session.jsonl", "--archive").out == plain
    assert compact("-t", "1500", "session.jsonl", "--archive", "-o", f"small-{name}").code == 0
    assert unpack((work / f"small-{name}").read_bytes()) == plain
    assert compact("-i", "--min-age", "0", "-t", "1500", name).code == 0
    assert unpack((work / name).read_bytes()) == plain


def test_compressed_standard_output(work: Path, compact: Run) -> None:
    plain = compact("-t", "1500", "session.jsonl").out
    assert zstd().decompress(compact("-t", "1500", "session.jsonl", "--set", "compress=zstd").out) == plain


def test_the_dry_run_prints_the_plan_and_writes_nothing(work: Path, home: Path, compact: Run) -> None:
    before = sorted(home.rglob("*"))
    ran = compact("-n", "-i", "--min-age", "0", "-t", "1500", "session.jsonl", "rows.jsonl")
    assert ran.code == 0
    assert b"session.jsonl: openai-chat, 49 records" in ran.out
    assert b"summarise" in ran.out
    assert b"rows.jsonl:2: " in ran.out
    assert sorted(home.rglob("*")) == before


def test_the_dry_run_says_of_a_size_that_was_not_counted_that_it_is_a_bound(work: Path, compact: Run) -> None:
    ran = compact("-n", "-w", "200k", "session.jsonl")
    assert re.match(rb"session\.jsonl: openai-chat, 49 records, at most [\d,]+ tokens: unchanged", ran.out)


@pytest.mark.parametrize("option", ["--report=", "--html=", "--metrics=", "--set=summary-rows=", "-n --plan-out="])
def test_a_folder_that_is_missing_is_found_before_anything_is_done(option: str, work: Path, compact: Run) -> None:
    ran = compact("-t", "1500", "-i", "session.jsonl", *f"{option}no/such/file".split())
    assert (ran.code, ran.out) == (2, b"")
    assert "no/such: there is no such folder: make it: mkdir -p no/such" in ran.err
    assert (work / "session.jsonl").read_bytes() == session_bytes()


ASIDE = ("--report=", "--html=", "--metrics=", "--events=", "--set=summary-rows=", "-n --plan-out=")


@pytest.mark.parametrize("option", ASIDE)
def test_a_report_never_takes_the_place_of_a_transcript(option: str, work: Path, compact: Run) -> None:
    for rest in (("-i",), ("-t", "1500", "session.jsonl"), ("--set", "nosuch=1")):
        assert compact(*f"{option}session.jsonl".split(), *rest).code == 2
        assert (work / "session.jsonl").read_bytes() == session_bytes()
    rows = (work / "rows.jsonl").read_bytes()
    assert compact(*f"{option}rows.jsonl".split(), "-t", "1500", "rows.jsonl").code == 2
    assert (work / "rows.jsonl").read_bytes() == rows
    assert not list(work.glob(".transcripts"))


@pytest.mark.parametrize("option", ASIDE[:-1])
def test_a_report_never_takes_the_place_of_the_result_or_of_another_one(option: str, work: Path, compact: Run) -> None:
    other = "--report=new" if "metrics" in option else "--metrics=new"
    for more in (("-o", "new"), ("-o", "out.jsonl", other)):
        ran = compact("-t", "1500", "session.jsonl", f"{option}new", *more)
        assert (ran.code, sorted(path.name for path in work.iterdir())) == (2, ["rows.jsonl", "session.jsonl"])
        assert "new: is an input, a result or another option's file" in ran.err


def test_a_tree_may_hold_the_report_of_the_last_run_over_it(work: Path, compact: Run) -> None:
    for _ in range(2):
        aside = ("--report", "last.json", "--events", "events.jsonl", "--metrics", "metrics.json")
        assert compact("-i", "-r", ".", "--min-age", "0", "-t", "1500", *aside).code == 0
        assert len(json.loads((work / "last.json").read_text())["inputs"]) == 2


def test_what_an_earlier_run_reported_is_replaced(work: Path, compact: Run) -> None:
    names = [f"{option}f{number}" for number, option in enumerate(ASIDE[:-1])]
    for _ in range(2):
        assert compact("-t", "1500", "session.jsonl", "-o", "new.jsonl", "-f", *names, "--metrics", "x.prom").code == 0
        assert compact("-t", "1500", "session.jsonl", "-n", "--plan-out", "plan").code == 0


def test_the_difference_shows_what_goes_and_the_summary(work: Path, home: Path, compact: Run) -> None:
    ran = compact("--diff", "-t", "1500", "session.jsonl")
    assert ran.out.startswith(b"--- session.jsonl")
    assert b"\n+ [compact/1 transcript=" in ran.out
    assert b"\n- " in ran.out
    assert not (home / "data").exists()
    assert compact("--diff", "-t", "100k", "session.jsonl").out == b""


def test_the_check_is_1_if_something_would_change(work: Path, home: Path, compact: Run) -> None:
    assert compact("--check", "-t", "1500", "session.jsonl") == compact("--check", "-t", "1500", "session.jsonl")
    assert compact("--check", "-t", "1500", "session.jsonl").code == 1
    assert compact("--check", "-t", "100k", "session.jsonl").code == 0
    assert compact("--check", "-t", "1500", "session.jsonl", "missing.jsonl").code == 3
    assert not (home / "data").exists()


def test_the_forms_of_a_look_can_be_given_together(work: Path, home: Path, compact: Run) -> None:
    alone = compact("-n", "-t", "1500", "session.jsonl")
    ran = compact("-n", "--check", "--plan-out", "plan.jsonl", "-t", "1500", "session.jsonl")
    assert (ran.code, ran.out) == (1, alone.out)
    assert compact("--plan", "plan.jsonl", "session.jsonl").out == compact("-t", "1500", "session.jsonl").out
    both = compact("-n", "--diff", "-t", "1500", "session.jsonl")
    assert (both.code, both.out) == (0, compact("--diff", "-t", "1500", "session.jsonl").out)


def test_a_variable_of_no_option_is_warned_of_and_stops_nothing(
    work: Path, compact: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPACT_TARGTE", "1500")
    ran = compact("-t", "100k", "session.jsonl")
    assert (ran.code, ran.out) == (0, session_bytes())
    assert "COMPACT_TARGTE in the environment is not an option of compact" in ran.err
    assert "did you mean COMPACT_TARGET?" in ran.err


def test_a_saved_plan_is_applied_exactly(work: Path, compact: Run) -> None:
    assert compact("-n", "-t", "1500", "rows.jsonl", "--plan-out", "plan.jsonl").code == 0
    for line in (work / "plan.jsonl").read_text().splitlines():
        assert faults("plan", json.loads(line)) == ()
    applied = compact("--plan", "plan.jsonl", "rows.jsonl")
    assert (applied.code, applied.out) == (0, compact("-t", "1500", "rows.jsonl").out)
    assert compact("--plan", "plan.jsonl", "-t", "1k", "rows.jsonl").code == 2


def test_a_plan_does_not_apply_to_a_transcript_that_changed(work: Path, compact: Run) -> None:
    compact("-n", "-t", "1500", "session.jsonl", "--plan-out", "plan.jsonl")
    (work / "session.jsonl").write_bytes(session_bytes(13))
    ran = compact("-i", "--min-age", "0", "--plan", "plan.jsonl", "session.jsonl")
    assert ran.code == 3
    assert "--plan-out" in ran.err
    assert (work / "session.jsonl").read_bytes() == session_bytes(13)


@pytest.mark.parametrize("content", ["", "{}\n", "nonsense\n", '{"compact_plan": 1}\n'])
def test_what_is_no_plan_is_refused(content: str, work: Path, compact: Run) -> None:
    (work / "plan.jsonl").write_text(content)
    ran = compact("--plan", "plan.jsonl", "session.jsonl")
    assert ran.code == 2
    assert "plan.jsonl:1: is not a plan" in ran.err


def test_a_line_that_is_not_json_fails_its_input_and_no_other(work: Path, compact: Run) -> None:
    bad = session_bytes(3) + b'{"role": "user", "content": \n' + session_bytes(3)
    (work / "bad.jsonl").write_bytes(bad)
    ran = compact("-i", "--min-age", "0", "-t", "1500", "bad.jsonl", "session.jsonl", "--report", "r.json")
    assert ran.code == 3
    assert "compact: bad.jsonl:14: " in ran.err
    assert "--on-invalid" in ran.err
    assert (work / "bad.jsonl").read_bytes() == bad
    assert (work / "session.jsonl").stat().st_size < len(session_bytes())
    report = _report(work / "r.json")
    assert [item["outcome"] for item in report["inputs"]] == ["failed", "compacted"]  # type: ignore[attr-defined]
    assert report["exit_code"] == 3


def test_lines_that_are_not_json_are_kept_or_dropped_on_request(work: Path, compact: Run) -> None:
    bad = session_bytes(3) + b"oops\n"
    (work / "bad.jsonl").write_bytes(bad)
    assert compact("--on-invalid", "keep", "-t", "100k", "bad.jsonl").out == bad
    dropped = compact("--on-invalid", "drop", "-t", "100k", "bad.jsonl", "--report", "r.json")
    assert dropped.out == session_bytes(3)
    assert "1 line" in _report(work / "r.json")["inputs"][0]["reason"]  # type: ignore[index]


def test_fail_fast_leaves_the_inputs_after_a_failed_one_alone(work: Path, compact: Run) -> None:
    (work / "bad.jsonl").write_bytes(b"oops\n")
    ran = compact(
        "-i", "--min-age", "0", "--fail-fast", "-t", "1500", "bad.jsonl", "session.jsonl", "--report", "r.json"
    )
    assert ran.code == 3
    assert (work / "session.jsonl").read_bytes() == session_bytes()
    assert [item["outcome"] for item in _report(work / "r.json")["inputs"]] == ["failed", "skipped"]  # type: ignore[attr-defined]


def test_missing_and_unknown_inputs_are_named(work: Path, compact: Run) -> None:
    (work / "odd.jsonl").write_text('{"a": 1}\n{"b": 2}\n')
    ran = compact("--check", "-t", "1500", "missing.jsonl", "odd.jsonl")
    assert ran.code == 3
    assert "compact: missing.jsonl: no such file" in ran.err
    assert "compact: odd.jsonl:1: " in ran.err
    assert "--format" in ran.err


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_nothing_in_nothing_out(content: bytes, work: Path, compact: Run) -> None:
    (work / "empty.jsonl").write_bytes(content)
    ran = compact("-t", "1500", "empty.jsonl")
    assert (ran.code, ran.out, ran.err) == (0, content, "")


def test_a_row_that_fails_is_passed_on_flagged_and_counted(work: Path, compact: Run) -> None:
    ran = compact("--set", "min-retention=100%", "-t", "1400", "rows.jsonl", "--report", "r.json")
    (item,) = _report(work / "r.json")["inputs"]  # type: ignore[misc]
    failed = [row["outcome"] == "failed" for row in item["transcripts"]]
    assert ran.code == 3
    assert 0 < sum(failed) == item["counts"]["failed"]
    assert f"{sum(failed)} of 5 conversations failed and were passed on unchanged" in ran.err
    pairs = list(zip(failed, ran.out.splitlines(), dataset_bytes().splitlines(), strict=True))
    assert all((out == source) is is_failed for is_failed, out, source in pairs)
    assert all("min-retention" in row["reason"] for row in item["transcripts"] if row["outcome"] == "failed")


def test_of_an_array_of_rows_each_is_named(work: Path, compact: Run) -> None:
    rows = [{"messages": [{"role": "user", "content": f"{i} " + "The chain slips. " * 300}]} for i in range(2)]
    (work / "rows.json").write_text(json.dumps(rows))
    done = compact("-t", "20", "--report", "r.json", "rows.json")
    assert "rows.json:1 (row 2): over its target" in done.err
    (report,) = json.loads((work / "r.json").read_text())["inputs"]
    assert [(row["line"], row["row"]) for row in report["transcripts"]] == [(1, 1), (1, 2)]


def test_rows_keep_their_other_keys_and_each_can_be_restored(
    work: Path, home: Path, compact: Run, compactor: Run
) -> None:
    ran = compact("-t", "1500", "rows.jsonl", "--archive", "--report", "r.json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [(row["id"], row["license"]) for row in rows] == [(number, "MIT") for number in range(5)]
    (item,) = _report(work / "r.json")["inputs"]  # type: ignore[misc]
    source = dataset_bytes().splitlines(keepends=True)
    for number, row in enumerate(item["transcripts"]):
        assert compactor("restore", row["sha256"][:16]).out == source[number]


def test_more_processes_write_the_same_in_the_same_order(work: Path, compact: Run) -> None:
    (work / "tree").mkdir()
    for number in range(30):
        (work / "tree" / f"{number:02}.jsonl").write_bytes(session_bytes(number % 9 + 1))
    (work / "tree" / "17.jsonl").write_bytes(b"oops\n")
    one = compact("-r", "tree", "--output-dir", "one", "--min-age", "0", "-t", "1500", "--report", "one.json")
    two = compact(
        "-r", "tree", "--output-dir", "two", "--min-age", "0", "-t", "1500", "--report", "two.json", "-j", "3"
    )
    assert one.code == two.code == 3
    assert one.err == two.err
    names = sorted(path.name for path in (work / "one").iterdir())
    assert len(names) == 29
    assert all((work / "one" / name).read_bytes() == (work / "two" / name).read_bytes() for name in names)
    paths = [[item["path"] for item in _report(work / f"{name}.json")["inputs"]] for name in ("one", "two")]  # type: ignore[attr-defined]
    assert paths[0] == paths[1] == sorted(paths[0])


def test_a_plan_is_shown_in_order_by_more_processes(work: Path, compact: Run) -> None:
    arguments = ("-n", "-t", "1500", "rows.jsonl", "session.jsonl", "--plan-out", "-")
    assert compact(*arguments, "-j", "2").out == compact(*arguments).out


def test_a_held_lock_is_exit_75_and_a_report(work: Path, compact: Run) -> None:
    (work / "out").mkdir()
    descriptor = os.open(work / "out", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    ran = compact("session.jsonl", "--output-dir", "out", "-t", "1500", "--report", "r.json")
    assert ran.code == 75
    assert _report(work / "r.json")["exit_code"] == 75
    assert compact("session.jsonl", "--output-dir", "out", "-t", "1500", "--set", "lock=false").code == 0
    os.close(descriptor)


def test_a_report_is_written_when_the_command_is_wrong(work: Path, compact: Run) -> None:
    assert compact("-i", "--no-archive", "session.jsonl", "--report", "r.json").code == 2
    report = _report(work / "r.json")
    assert report["exit_code"] == 2
    assert "-f" in str(report["error"])


def test_the_report_says_what_was_done(work: Path, compact: Run) -> None:
    compact("-t", "1500", "session.jsonl", "-o", "small.jsonl", "--report", "-")
    ran = compact("-t", "1500", "session.jsonl", "-o", "small.jsonl", "-f", "--report", "-")
    report = json.loads(ran.out)
    (item,) = report["inputs"]
    (transcript,) = item["transcripts"]
    assert item["outcome"] == transcript["outcome"] == "compacted"
    assert item["bytes_after"] == (work / "small.jsonl").stat().st_size
    assert transcript["tokens_after"] <= transcript["target_tokens"] == 1_500
    assert report["settings"]["target"] == {"tokens": 1_500, "ratio": 0.0}


def test_how_much_is_stated(work: Path, compact: Run) -> None:
    assert "tokens" in compact("-t", "1500", "session.jsonl", "-v").err
    assert "unchanged" in compact("-t", "100k", "session.jsonl", "-v").err
    assert "settings from: command line, preset default" in compact("-t", "100k", "session.jsonl", "-vv").err
    assert compact("missing.jsonl", "-q").err.startswith("compact: missing.jsonl")
    assert compact("missing.jsonl", "-qq") == compact("missing.jsonl", "-qq")
    assert compact("missing.jsonl", "-qq").err == ""


def test_colours_are_for_terminals_or_on_request(work: Path, compact: Run) -> None:
    assert "\x1b" not in compact("missing.jsonl").err
    assert "\x1b" in compact("missing.jsonl", "--set", "color=always").err


def test_control_characters_in_names_do_not_reach_the_terminal(work: Path, compact: Run) -> None:
    ran = compact("bad\x1b[31mname.jsonl")
    assert "\x1b" not in ran.err
    assert "\\x1b" in ran.err


def test_the_environment_and_files_configure_the_filter(
    work: Path, compact: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = compact("-t", "1500", "session.jsonl").out
    monkeypatch.setenv("COMPACT_TARGET", "1500")
    assert compact("session.jsonl").out == expected
    monkeypatch.delenv("COMPACT_TARGET")
    (work / "compact.toml").write_text("target = 1500\n")
    assert compact("session.jsonl").out == expected
    (work / "compact.toml").write_text("no-archive = true\n")
    assert compact("session.jsonl").code == 2


def test_a_fraction_as_target_is_a_share(work: Path, compact: Run) -> None:
    quarter = compact("session.jsonl", "-t", "25%")
    assert quarter.code == 0
    assert compact("session.jsonl", "-t", "0.25").out == quarter.out
    assert compact("session.jsonl", "-t", "0.0").code == 2


def test_a_language_that_the_digest_does_not_know_is_refused(work: Path, compact: Run) -> None:
    ran = compact("session.jsonl", "--set", "lang=xx", "-t", "1500")
    assert ran.code == 2
    assert "'xx'" in ran.err
    assert "zh" in ran.err
    assert compact("session.jsonl", "--set", "lang=zh-CN", "-t", "1500").code == 0


def test_a_plan_that_is_saved_alone_writes_nothing_else(work: Path, compact: Run) -> None:
    before = {path.name: path.read_bytes() for path in work.iterdir()}
    ran = compact("session.jsonl", "-t", "1500", "--plan-out", "p.jsonl")
    assert (ran.code, ran.out) == (0, b"")
    assert {path.name for path in work.iterdir()} - set(before) == {"p.jsonl"}
    assert compact("session.jsonl", "--plan", "p.jsonl").out == compact("session.jsonl", "-t", "1500").out


def test_an_output_in_a_folder_that_is_not_there_is_a_usage_error_and_makes_none(work: Path, compact: Run) -> None:
    ran = compact("session.jsonl", "-t", "1500", "-o", "nowhere/small.jsonl")
    assert ran.code == 2
    assert "mkdir -p nowhere" in ran.err
    assert not Path("nowhere").exists()
