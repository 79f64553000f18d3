"""What 1 PB of transcripts takes, from the measured and assumed figures in docs/scale.md.

``python benchmarks/petabyte.py`` prints the table, ``--write`` puts it into docs/scale.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
PETABYTE_MB = 1e9
BLOCK = re.compile(r"(<!-- petabyte -->\n).*?(<!-- /petabyte -->)", re.DOTALL)
FIGURE = re.compile(r"^\| ([a-z ]+) \| ([\d.]+) \|", re.MULTILINE)
HOURS_PER_YEAR = 24 * 365.25


def figures(text: str) -> dict[str, float]:
    """The measured and the assumed figures, by name."""
    return {name: float(value) for name, value in FIGURE.findall(BLOCK.sub("", text))}


def table(given: Mapping[str, float]) -> str:
    """The plan, in Markdown."""
    lines = ("| 1 PB | offline | with a model for every summary |", "|---|---|---|")
    return "\n".join((*lines, *(f"| {name} | {offline} | {model} |" for name, offline, model in plan(given)))) + "\n"


def plan(given: Mapping[str, float]) -> Iterator[tuple[str, str, str]]:
    """The lines: what, offline, with a model."""
    read_tb = PETABYTE_MB / 1e6
    core_hours = PETABYTE_MB / given["compacted"] / 3600
    yield "conversations", _count(PETABYTE_MB * 1e6 / given["conversation"]), "the same"
    yield "tokens", _count(PETABYTE_MB * 1e6 * given["tokens"]), "the same"
    yield "bytes read", _bytes(read_tb), "the same, and once for each round of batch jobs"
    yield "bytes written", _bytes(read_tb * given["written"]), "about the same"
    hours = (read_tb * (1 + given["written"])) * 1e3 / given["storage speed"] / 3600
    yield "reading and writing", f"{_time(hours)} at {given['storage speed']:g} GB/s", "the same"
    work = _count(core_hours * given["model work"])
    yield "core-hours", _count(core_hours), f"{work}, and as many again for each round of batch jobs"
    yield f"on {given['cores']:,.0f} cores", _time(core_hours / given["cores"]), "bound by the provider"
    yield "price of the cores", _usd(core_hours * given["core price"]), "as by the core-hours"
    requests = PETABYTE_MB * given["requests"]
    price = PETABYTE_MB * given["price"]
    sent, received = (_count(PETABYTE_MB * given[name]) for name in ("sent", "received"))
    yield "requests", "0", f"{_count(requests)} ({sent} tokens in, {received} out)"
    live_hours = requests / given["request limit"] / 60
    yield "requests at the limit", "–", f"{_time(live_hours)} at {given['request limit']:,.0f} a minute"
    yield "batch jobs", "–", f"{_count(requests / given['job size'])} of {given['job size']:,.0f} requests each"
    batch = price * given["batch price"]
    yield "price of the model", "0", f"{_usd(price)} live, {_usd(batch)} by batch jobs"
    yield "archive", _stored(read_tb * given["archived"], given), "the same"
    yield "index", _stored(read_tb * given["indexed"], given), "the same"
    yield "core-hours of the index", _count(PETABYTE_MB / given["indexing"] / 3600), "the same"


def _stored(size_tb: float, given: Mapping[str, float]) -> str:
    return f"{_bytes(size_tb)}, {_usd(size_tb * given['storage price'])} a month"


def _bytes(size_tb: float) -> str:
    return f"{size_tb / 1e3:.3g} PB" if size_tb >= 1e3 else f"{size_tb:,.3g} TB"


def _count(number: float) -> str:
    for size, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{number / size:.3g} {name}"
    return f"{float(f'{number:.3g}'):,.0f}"


def _usd(amount: float) -> str:
    return f"{_count(amount)} USD"


def _time(hours: float) -> str:
    if hours >= HOURS_PER_YEAR:
        return f"{hours / HOURS_PER_YEAR:.1f} years"
    return f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} hours"


def main() -> None:
    """Print the table, or write it."""
    text = DOCS.read_text(encoding="utf-8")
    made = table(figures(text))
    if "--write" in sys.argv[1:]:
        DOCS.write_text(BLOCK.sub(lambda found: f"{found[1]}{made}{found[2]}", text), encoding="utf-8")
    else:
        sys.stdout.write(made)


if __name__ == "__main__":
    main()
