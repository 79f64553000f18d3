"""The report of a run, and its metrics for a monitoring system."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from cli_cases import Run, session_bytes


def _report(work: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((work / "report.json").read_text())
    return value


def test_a_report_has_its_schema_its_times_and_totals(work: Path, compact: Run) -> None:
    (work / "broken.jsonl").write_bytes(b"no JSON\n")
    compact("-t", "1500", "-r", ".", "--output-dir", "out", "--report", "report.json")
    report = _report(work)
    assert report["schema"] == 2
    times = [datetime.fromisoformat(report[name]) for name in ("started", "finished")]
    assert times == sorted(times)
    assert report["seconds"] > 0
    totals = report["totals"]
    assert totals["inputs"] == {"total": 3, "compacted": 2, "unchanged": 0, "skipped": 0, "failed": 1}
    assert totals["conversations"]["total"] == 6
    for name in ("tokens_before", "tokens_after", "bytes_before", "bytes_after"):
        assert totals[name] == sum(item[name] for item in report["inputs"])


def test_an_unchanged_input_is_a_short_line_of_the_report(work: Path, compact: Run) -> None:
    for number in range(50):
        (work / f"s{number}.jsonl").write_bytes(session_bytes(2))
    compact("-t", "100k", "-r", ".", "--output-dir", "out", "--report", "report.json")
    lines = [line for line in (work / "report.json").read_text().splitlines() if '"unchanged","reason"' in line]
    assert len(lines) == 52
    assert max(map(len, lines)) < 220
    assert {item["outcome"] for item in _report(work)["inputs"]} == {"unchanged"}


def test_what_is_over_its_target_is_no_short_line(work: Path, compact: Run) -> None:
    compact("-t", "10", "rows.jsonl", "-o", "out.jsonl", "--report", "report.json")
    (item,) = _report(work)["inputs"]
    assert any(row["over_target"] for row in item["transcripts"])


def test_a_report_of_a_run_that_never_began_is_whole(work: Path, compact: Run) -> None:
    compact("nowhere", "-t", "nonsense", "--report", "report.json")
    report = _report(work)
    assert (report["exit_code"], report["inputs"], report["totals"]["inputs"]["total"]) == (2, [], 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_report_says_that_the_metrics_could_not_be_written(work: Path, compact: Run) -> None:
    ran = compact("-t", "1500", "rows.jsonl", "-o", "out.jsonl", "--report", "report.json", "--metrics", "/dev/full")
    report = _report(work)
    assert ran.code == report["exit_code"] == 3
    assert "/dev/full: the disk is full" in report["error"]


def test_metrics_that_are_asked_for_are_in_the_report_too(work: Path, compact: Run) -> None:
    compact("-t", "1500", "rows.jsonl", "-o", "out.jsonl", "--report", "report.json", "--metrics", "metrics.json")
    assert _report(work)["metrics"] == json.loads((work / "metrics.json").read_text())


def test_a_prom_file_has_gauges_that_prometheus_can_read(work: Path, compact: Run) -> None:
    (work / "broken.jsonl").write_bytes(b"no JSON\n")
    ran = compact(
        "-t", "1500", "-r", ".", "--output-dir", "out", "--metrics", "compact.prom", "--report", "report.json"
    )
    text = (work / "compact.prom").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    sample = re.compile(r'(compact_[a-z_]+)(\{outcome="[a-z]+"\})? (\S+)')
    samples = {found[1] + (found[2] or ""): float(found[3]) for line in lines if (found := sample.fullmatch(line))}
    assert len(samples) == len(lines)
    totals = _report(work)["totals"]
    assert samples["compact_exit_code"] == ran.code == 3
    assert samples['compact_inputs{outcome="failed"}'] == 1
    assert samples["compact_tokens_before"] == totals["tokens_before"]
    assert samples["compact_tokens_after"] == totals["tokens_after"]
    names = {name.partition("{")[0] for name in samples}
    assert names == set(re.findall(r"^# TYPE (\S+) gauge$", text, re.MULTILINE))
    assert names == set(re.findall(r"^# HELP (\S+) .+$", text, re.MULTILINE))
