"""How fast a compaction is: one table, every figure a ratio against a floor or a peer within the same run.

    python benchmarks/run.py                                      # 3 and 20 MB, 10,000 files: some minutes
    python benchmarks/run.py --mb 3 20 200 --session-mb 10 --files 2000   # the tables of docs/benchmarks.md
    python benchmarks/run.py --real --session-mb 45               # of real text: 20 MB of rows, and a session
    python benchmarks/run.py --plot speed.svg

The peer of a dataset or session is tiktoken alone tokenising the same text on one core. With ``--real`` both are made
of the sessions below a folder; the floor of rows that need nothing is to parse, hash and write them. "x" is how many
times as fast by the clock, "x CPU" by the time of all processes: on a machine with other work, trust the latter.
Nothing here is a test.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from math import log10
from pathlib import Path
from xml.sax.saxutils import escape

from make import SMALL_ROW_BYTES, real_rows, real_session, write_dataset, write_small_sessions, write_story
from speed import HAS_FAST, PASS, Run, compact, look, measure, parse, tokenise, without

# Cuts long tool results, oldest first, and writes no summary.
TRUNCATING = """
strategy = "rules"
prune = [{ name = "tool-result", kind = "tool-result", over_chars = 400, first_chars = 150, last_chars = 150 }]
"""
STARTS = 5
SMALL_FILE = "a file of 2 KB that needs nothing"
PARSED = "small rows: parse, hash, write"
NOOP = "small rows that need nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: what was run next to what. ``size_bytes`` 0: no input to speak of."""

    name: str
    run: Run
    peer: Run
    size_bytes: int = 0

    @property
    def times(self) -> float:
        return self.peer.seconds / self.run.seconds

    @property
    def times_by_cpu(self) -> float:
        return self.peer.cpu_seconds / self.run.cpu_seconds


def starts(folder: Path) -> Iterator[Row]:
    write_story(folder / "small.jsonl", 2_000)
    write_story(folder / "100k.jsonl", 100_000)
    floor = measure(PASS, times=STARTS)
    yield Row(name="python -c pass", run=floor, peer=floor)
    out = ["--archive-dir", "archive", "-f", "-o", "out.jsonl"]
    commands = {
        "--help": compact("--help"),
        SMALL_FILE: compact("-t", "16k", *out, "small.jsonl"),
        "a session of 100 KB to 25 %": compact("-t", "25%", *out, "100k.jsonl"),
        "a session of 100 KB to 25 %, [fast]": compact("-t", "25%", *out, "100k.jsonl", fast=True),
    }
    for name, command in commands.items():
        if HAS_FAST or "[fast]" not in name:
            yield Row(name=name, run=measure(command, times=STARTS, folder=str(folder)), peer=floor)


def real(folder: Path, sessions: Path, size_mb: int, session_mb: int) -> Iterator[Row]:
    """Real text: rows that need nothing, rows that do, one long session."""
    path = folder / "real.jsonl"
    _write(path, real_rows(sessions, size_mb * 1_000_000, row_bytes=SMALL_ROW_BYTES))
    size_bytes, peer = path.stat().st_size, measure(parse(str(path)), times=STARTS, folder=str(folder))
    yield Row(name=PARSED, run=peer, peer=peer, size_bytes=size_bytes)
    command = compact("-q", "-t", "1m", "-j", "1", "-f", "-o", "out.jsonl", str(path))
    run = measure(command, times=STARTS, folder=str(folder))
    yield Row(name=NOOP, run=run, peer=peer, size_bytes=size_bytes)
    _write(path, real_rows(sessions, size_mb * 1_000_000))
    yield from _compacted(folder, path, f"real rows, {size_mb} MB")
    _write(path, real_session(sessions, session_mb * 1_000_000))
    yield from session(path, "one real session", "100k")


def _write(path: Path, lines: Iterator[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(lines)


def datasets(folder: Path, sizes_mb: list[int]) -> Iterator[Row]:
    for size_mb in sizes_mb:
        path = folder / "dataset.jsonl"
        write_dataset(path, size_mb * 1_000_000)
        yield from _compacted(folder, path, f"dataset, {size_mb} MB")
        path.unlink()


def session(path: Path, name: str, target: str) -> Iterator[Row]:
    folder, size_bytes = path.parent, path.stat().st_size
    peer = measure(tokenise(str(path)))
    out = ["--archive-dir", "archive", "-f", "-o", "out.jsonl", str(path)]
    for fast in (False, True)[: 1 + HAS_FAST]:
        run = measure(compact("-t", target, *out, fast=fast), folder=str(folder))
        title = f"{name}, {size_bytes // 1_000_000} MB{', [fast]' * fast}"
        yield Row(name=title, run=run, peer=peer, size_bytes=size_bytes)


def _compacted(folder: Path, path: Path, name: str) -> Iterator[Row]:
    (folder / "cut.toml").write_text(TRUNCATING)
    size_bytes = path.stat().st_size
    peer = measure(tokenise(str(path)))
    yield Row(name=f"{name}: tiktoken alone", run=peer, peer=peer, size_bytes=size_bytes)
    out = ["--archive-dir", "archive", "-f", "-o", "out.jsonl", str(path)]
    for fast in (False, True)[: 1 + HAS_FAST]:
        extra = ", [fast]" * fast
        for processes in ("1", "2"):
            run = measure(compact("-t", "8k", "-j", processes, *out, fast=fast), folder=str(folder))
            yield Row(name=f"{name}: -t 8k -j {processes}{extra}", run=run, peer=peer, size_bytes=size_bytes)
        run = measure(compact("--preset", "cut.toml", "-t", "8k", *out, fast=fast), folder=str(folder))
        yield Row(name=f"{name}: cut without a summary{extra}", run=run, peer=peer, size_bytes=size_bytes)
        shutil.rmtree(folder / "archive")


def files(folder: Path, count: int) -> Iterator[Row]:
    write_small_sessions(folder / "tree", count)
    size_bytes = sum(path.stat().st_size for path in (folder / "tree").rglob("*.jsonl"))
    peer = measure(look("tree"), times=STARTS, folder=str(folder))
    command = compact("-i", "-r", "tree", "--min-age", "0", "-t", "16k", "--report", "report.json")
    for name in ("for the first time", "as they were"):
        run = measure(command, folder=str(folder))
        yield Row(name=f"{count:,} small files, {name}", run=run, peer=peer, size_bytes=size_bytes)


def shown(row: Row) -> str:
    speed = f"{row.size_bytes / row.run.seconds / 1e6:8.1f}" if row.size_bytes else " " * 8
    return (
        f"{row.name:<48} {row.run.seconds:8.2f} {row.run.cpu_seconds:8.2f} {row.peer.cpu_seconds:8.2f} {speed} "
        f"{row.times:8.2f} {row.times_by_cpu:8.2f} {row.run.peak_bytes / 1e6:8.0f}"
    )


def conclusions(rows: list[Row]) -> Iterator[str]:
    """What the goals are about: over the floor of a start, and from the smallest to the largest dataset."""
    floor = rows[0].run
    for row in rows[1:]:
        if not row.size_bytes:
            over = without(row.run, floor)
            yield f"{row.name}: {1000 * over.seconds:.0f} ms over the floor, {1000 * over.cpu_seconds:.0f} by CPU"
    named = {row.name: row.run for row in rows}
    if NOOP in named:
        over = without(named[NOOP], named[SMALL_FILE]).cpu_seconds / without(named[PARSED], floor).cpu_seconds
        yield f"{NOOP}: {over:.1f} x parse, hash and write, both without their start"
    alone = [row for row in rows if row.name.endswith("-j 1")]
    if len(alone) > 1:
        cost = [row.run.cpu_seconds / row.size_bytes for row in alone]
        more = (alone[-1].run.peak_bytes - alone[0].run.peak_bytes) / 1e6
        yield f"from {alone[0].name} to {alone[-1].name}: cost per MB x {cost[-1] / cost[0]:.2f}, memory {more:+.0f} MB"


def plot(rows: list[Row]) -> str:
    """The ratios as bars, on a logarithmic scale, as SVG."""
    bars = [row for row in rows if row.size_bytes and "tiktoken alone" not in row.name]
    scale, left, height = 90, 360, 22
    low = min(-1.0, *(log10(row.times) for row in bars))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + scale * 4 + 60} {height * len(bars) + 50}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="18">times as fast as the peer, by the clock</text>',
    ]
    for number, row in enumerate(bars):
        y, width = 30 + number * height, scale * (log10(row.times) - low)
        parts.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(row.name)}</text>')
        parts.append(f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{height - 6}" fill="#0072B2"/>')
        parts.append(f'<text x="{left + width + 6:.1f}" y="{y + 13}">{row.times:.2f}</text>')
    one = left - scale * low
    parts.append(f'<line x1="{one:.1f}" y1="24" x2="{one:.1f}" y2="{height * len(bars) + 30}" stroke="black"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def measured(folder: Path, options: argparse.Namespace) -> Iterator[Row]:
    yield from starts(folder)
    if options.real:
        yield from real(folder, Path(options.real), options.mb[-1], options.session_mb)
        return
    yield from datasets(folder, options.mb)
    write_story(folder / "session.jsonl", options.session_mb * 1_000_000)
    yield from session(folder / "session.jsonl", "one session", "16k")
    yield from files(folder, options.files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=int, nargs="+", default=[3, 20], help="sizes of the datasets")
    parser.add_argument("--session-mb", type=int, default=10)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--real", metavar="FOLDER", nargs="?", const="../shared/corpus-train", help="of real sessions")
    parser.add_argument("--plot", metavar="FILE.svg")
    options = parser.parse_args()
    rows: list[Row] = []
    print(f"{'':<48} {'s':>8} {'CPU s':>8} {'floor':>8} {'MB/s':>8} {'x':>8} {'x CPU':>8} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as name:
        for row in measured(Path(name), options):
            rows.append(row)
            print(shown(row), flush=True)
    print(*conclusions(rows), sep="\n")
    if options.plot:
        Path(options.plot).write_text(plot(rows))


if __name__ == "__main__":
    main()
