"""Page: what all HTML pages share: the environment of their templates, and texts that a browser shows as they are."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).with_name("pages")
# Units of a drawing's width; its height is in pixels.
PAGE_WIDTH = 1_000

# Control characters as their pictures, and what turns the direction of text as its code point: both would be
# invisible, or make a text look like another one.
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)}
_UNSEEN = (*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C, 0xFEFF)
_VISIBLE = _PICTURES | {0x7F: "␡"} | {code: f"⟨U+{code:04X}⟩" for code in _UNSEEN}


def printable(text: str) -> str:
    """The text with nothing in it that a reader would not see; halves of surrogate pairs are replaced."""
    text = text.replace("\r\n", "\n").translate(_VISIBLE)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def render_page(template: str, **values: Any) -> str:
    """The page of this template. Every value is escaped."""
    return _environment().get_template(template).render(width=PAGE_WIDTH, **values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count"] = lambda number: f"{number:,}"
    environment.filters["printable"] = lambda text: printable(str(text))
    return environment
