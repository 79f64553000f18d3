"""The pages of --html: complete, self-contained, and nothing of a transcript is more than text in them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from cli_cases import Run, conversation, session_bytes

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
HOSTILE = (
    "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
    "</pre></details></style><a href='javascript:alert(1)'>x</a> {{ 7 * 7 }} \x1b[31mred\x1b[0m \u202etxt.exe"
)


class _Page(HTMLParser):
    """A page's elements, ids and the text outside of its style."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self._in_style = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs}
        self._in_style = tag == "style"
        for name, value in attrs:
            if name == "id":
                self.ids[value or ""] += 1
            if name in ("href", "src"):
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        self._in_style = self._in_style and tag != "style"

    def handle_data(self, data: str) -> None:
        if not self._in_style:
            self.text += data


def _numbers(path: Path) -> list[float]:
    """The widths of the slices of the strips."""
    return [
        float(width) for width in re.findall(r'<rect x="[\d.]+" y="0" width="([\d.]+)" height="40"', path.read_text())
    ]


@pytest.fixture
def claude(work: Path) -> Path:
    return Path(shutil.copy(SAMPLES / "claude-code.jsonl", work / "claude.jsonl"))


def test_every_reference_of_the_summary_leads_to_its_record(claude: Path, compact: Run, work: Path) -> None:
    ran = compact("-t", "4k", claude, "-o", "small.jsonl", "--html", "page.html")
    assert ran.code == 0, ran.err
    page = _Page(work / "page.html")
    assert len(page.links) > 100
    assert [link for link in page.links if not link.startswith("#") or link[1:] not in page.ids] == []
    assert max(page.ids.values()) == 1
    records = len(claude.read_bytes().splitlines())
    assert {f"r{number}" for number in range(1, records + 1)} <= page.ids.keys()


def test_the_strips_are_at_one_scale(claude: Path, compact: Run, work: Path) -> None:
    compact("-t", "4k", claude, "-o", "small.jsonl", "--html", "page.html", "--report", "report.json")
    (report,) = json.loads((work / "report.json").read_text())["inputs"]
    drawn = sum(_numbers(work / "page.html"))
    share = report["tokens_after"] / report["tokens_before"]
    assert drawn == pytest.approx(1_000 + 1_000 * share, rel=0.01)


def test_the_page_names_what_is_lost_and_what_the_summary_says(claude: Path, compact: Run, work: Path) -> None:
    compact("-t", "4k", claude, "-o", "small.jsonl", "--html", "page.html", "--report", "report.json")
    (report,) = json.loads((work / "report.json").read_text())["inputs"]
    (item,) = report["transcripts"]
    text = _Page(work / "page.html").text
    for kind, share in item["retention"].items():
        assert kind in text
        assert f"{round(100 * share)} %" in text
    for lost in item["lost"].values():
        assert all(thing in text for thing in lost[:3])
    assert "backfill.py — created" in text


@pytest.mark.parametrize("where", ["stays", "is summarised"])
def test_what_stands_in_a_transcript_is_text_and_never_markup(where: str, compact: Run, work: Path) -> None:
    messages = conversation(12)
    messages[1 if where == "stays" else 21]["content"] = f"Please fix this: {HOSTILE}"
    messages[3]["content"] = HOSTILE * 3
    (work / "<b>hostile.jsonl").write_text("".join(json.dumps(message) + "\n" for message in messages))
    compact("-t", "1500", "<b>hostile.jsonl", "-o", "small.jsonl", "--html", "page.html")
    page = _Page(work / "page.html")
    assert page.tags["script"] == page.tags["img"] == 0
    assert not {name for name in page.attributes if name.startswith("on")}
    assert all(link.startswith("#") for link in page.links)
    assert "<b>hostile.jsonl" in page.text
    assert "<script>document.title" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "␛[31mred" in page.text
    assert not re.search("[\x1b\u202e]", (work / "page.html").read_text())


def test_a_line_of_5_mb_makes_no_page_of_5_mb(compact: Run, work: Path) -> None:
    messages = conversation(4)
    messages[3]["content"] = "lorem ipsum " * 420_000
    (work / "long.jsonl").write_text("".join(json.dumps(message) + "\n" for message in messages))
    compact("-t", "3k", "long.jsonl", "-o", "small.jsonl", "--html", "page.html")
    assert (work / "page.html").stat().st_size < 200_000
    assert "characters are not shown here" in (work / "page.html").read_text()


def test_shortened_records_show_what_they_say_now_and_what_they_said(compact: Run, work: Path) -> None:
    messages = conversation(12)
    messages[3]["content"] = "A very long output. " * 2_000
    (work / "s.jsonl").write_text("".join(json.dumps(message) + "\n" for message in messages))
    compact("-t", "12k", "s.jsonl", "-o", "small.jsonl", "--html", "page.html")
    page = (work / "page.html").read_text()
    assert "shortened by tool-result" in page
    assert "characters left out" in page
    assert "as it was" in page


def test_a_transcript_that_stays_as_it_is_has_a_page_that_says_so(work: Path, compact: Run) -> None:
    compact("session.jsonl", "-t", "100k", "-o", "same.jsonl", "--html", "page.html")
    text = _Page(work / "page.html").text
    assert "Nothing is changed" in text
    assert "Please fix problem 11" in text


def test_several_inputs_make_a_page_of_sizes_savings_and_failures(work: Path, compact: Run) -> None:
    for folder in ("alpha", "beta"):
        (work / "tree" / folder).mkdir(parents=True)
        for steps in (4, 12, 30):
            (work / "tree" / folder / f"{steps}.jsonl").write_bytes(session_bytes(steps))
    (work / "tree/beta/broken.jsonl").write_bytes(b"<script>no JSON\n")
    ran = compact("-t", "2k", "-r", "tree", "--output-dir", "out", "--html", "page.html", "-j", "2")
    assert ran.code == 3
    page = _Page(work / "page.html")
    assert page.tags["script"] == 0
    for expected in (
        "7 inputs",
        "tree/alpha",
        "tree/beta",
        "target 2,000",
        "broken.jsonl:1",
        "not JSON",
        "Where least",
    ):
        assert expected in page.text


def test_the_rows_of_a_dataset_are_counted_and_their_worst_named(work: Path, compact: Run) -> None:
    ran = compact("-t", "2k", "rows.jsonl", "-o", "out.jsonl", "--html", "page.html")
    assert ran.code == 0
    text = _Page(work / "page.html").text
    assert "5 conversations" in text
    assert "rows.jsonl:2" in text


def test_show_writes_nothing_but_the_page(work: Path, home: Path, compactor: Run) -> None:
    before = sorted(home.rglob("*"))
    ran = compactor("show", "session.jsonl", "-t", "1500")
    assert ran.code == 0
    assert b"Task Context" in ran.out or b"[compact/1" in ran.out
    assert sorted(home.rglob("*")) == before
    page = compactor("show", "session.jsonl", "-t", "1500", "--html", "-")
    assert page.out.startswith(b"<!doctype html>")
    assert sorted(home.rglob("*")) == before


def test_a_page_and_the_result_cannot_both_be_standard_output(work: Path, compact: Run) -> None:
    assert compact("-t", "1500", "session.jsonl", "--html", "-").code == 2


_MEASURE = """<!doctype html><title>waiting</title>
<style>iframe {{ width: {width}px; height: 800px; border: 0; }}</style>
<iframe id=f src="page.html"></iframe>
<script>f.onload = () => {{ const d = f.contentDocument;
document.title = [d.title, d.documentElement.scrollWidth, d.querySelectorAll("section").length,
getComputedStyle(d.querySelector("main")).maxWidth].join("|"); }}</script>"""


@pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium here")
@pytest.mark.parametrize("width", [400, 1_400])
def test_a_browser_shows_the_page_without_scrolling_sideways(
    width: int, claude: Path, compact: Run, work: Path
) -> None:
    claude.write_bytes(claude.read_bytes().replace(b"The harbour office says", json.dumps(HOSTILE * 9)[1:-1].encode()))
    compact("-t", "4k", claude, "-o", "small.jsonl", "--html", "page.html")
    (work / "measure.html").write_text(_MEASURE.format(width=width))
    flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"
    more = ["--disable-component-update", "--allow-file-access-from-files", f"--user-data-dir={work}/profile"]
    done = subprocess.run(
        [str(CHROMIUM), *flags.split(), *more, "--window-size=1500,900", "--virtual-time-budget=4000", "--dump-dom",
         f"file://{work}/measure.html"],
        capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    title = re.search("<title>(.*?)</title>", done.stdout)
    assert title
    name, scroll_width, sections, most_width = title[1].split("|")
    assert name == "claude.jsonl"
    assert int(scroll_width) <= width
    assert int(sections) == 4
    assert most_width != "none"
