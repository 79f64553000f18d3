"""The pages in docs/presets/ show the presets as they are. Run with UPDATE_DOCS=1 to write them anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pages import ROOT, blocks

from compactor_cli.presets import load_preset, preset_names

PAGES = ROOT / "docs/presets"


def test_every_preset_has_a_page_and_the_list_names_it() -> None:
    listed = (PAGES / "README.md").read_text(encoding="utf-8")
    for name in preset_names():
        assert (PAGES / f"{name}.md").is_file()
        assert f"| [{name}]({name}.md) | {load_preset(name).about} |" in listed


@pytest.mark.parametrize("name", preset_names())
def test_the_page_shows_the_settings_and_the_plan_of_a_run_as_they_are(name: str, tmp_path: Path) -> None:
    page = PAGES / f"{name}.md"
    text = page.read_text(encoding="utf-8")
    for block, content in blocks(name, tmp_path).items():
        found = re.search(rf"<!-- {block} -->\n(.*?)<!-- end -->\n", text, re.DOTALL)
        assert found, f"{page.name} has no block for {block}"
        if os.environ.get("UPDATE_DOCS"):
            text = text[: found.start(1)] + content + text[found.end(1) :]
            page.write_text(text, encoding="utf-8")
        elif block == "message":
            # How a summary reads is nothing that a preset decides except for its frame.
            assert found[1].splitlines()[:3] == content.splitlines()[:3]
        else:
            assert found[1] == content
