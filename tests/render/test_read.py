"""A summary's text back to its sections: that of every template, and those of the clients they are made after."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.model.marker import Marker, without_marker
from compactor_cli.model.summary import Item, Section, SectionItems, Source, Summary
from compactor_cli.render.template import load_template, read_client, read_ours, read_sections, render, template_names

MARKER = Marker(transcript="ab" * 8, first=4, last=120, records=160, tokens=41_234, end="cd" * 8)
LINE = (
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1).map(str.strip).filter(bool)
)
ITEMS = st.lists(st.builds(Item, text=LINE, depth=st.just(0)), min_size=1, max_size=3).map(tuple)
SECTIONS = st.dictionaries(st.sampled_from(Section), ITEMS, min_size=1).map(
    lambda found: tuple(SectionItems(section=section, items=items) for section, items in found.items())
)
# Two headings tell a template: with fewer, another template's heading of the same name may be meant.
ENOUGH = SECTIONS.filter(lambda found: len(found) > 4)


def by_section(sections: tuple[SectionItems, ...]) -> dict[Section, tuple[str, ...]]:
    return {part.section: tuple(item.text for item in part.items) for part in sections}


def written(sections: tuple[SectionItems, ...], name: str, language: str = "en") -> str:
    summary = Summary(source=Source.DIGEST, sections=sections, language=language)
    return render(summary, load_template(name), MARKER)


@pytest.mark.parametrize("name", template_names())
@pytest.mark.parametrize("language", ["en", "zh", "ja"])
@given(sections=SECTIONS)
def test_what_a_template_wrote_it_reads_back(name: str, language: str, sections: tuple[SectionItems, ...]) -> None:
    read = read_sections(written(sections, name, language), load_template(name))
    assert by_section(read) == by_section(sections)


@pytest.mark.parametrize("name", template_names())
@given(sections=ENOUGH)
def test_a_summary_of_ours_is_read_whichever_template_wrote_it(name: str, sections: tuple[SectionItems, ...]) -> None:
    assert by_section(read_ours(without_marker(written(sections, name)))) == by_section(sections)


def test_the_steps_of_a_plan_have_the_signs_of_the_snapshot_and_lose_them_again() -> None:
    steps = ("done: the importer", "in progress: the store", "open: the tests")
    sections = (SectionItems(section=Section.PLAN, items=tuple(Item(text=step) for step in steps)),)
    text = written(sections, "gemini")
    assert "- [DONE] the importer\n- [IN PROGRESS] the store\n- [TODO] the tests" in text
    assert by_section(read_sections(text, load_template("gemini"))) == {Section.PLAN: steps}


def test_sections_without_a_heading_of_their_own_share_one_under_labels() -> None:
    items = (Item(text="words"),)
    sections = (SectionItems(section=Section.USER, items=items), SectionItems(section=Section.PREVIOUS, items=items))
    text = written(sections, "kimi")
    expected = "<important_context>\n- words\n**The user's words:**\n- words\n</important_context>"
    assert expected in text


KIMI = """<current_focus>
Mending the importer
</current_focus>

<environment>
- Python 3.12, pytest
</environment>

<completed_tasks>
- Found the cause: local times without a zone
</completed_tasks>

<active_issues>
- test_october: fails in the second pass
</active_issues>

<code_state>

<file>
tidewatch/clock.py

**Summary:**
Local times to UTC

**Key elements:**
- class Clock
</file>
</code_state>

<important_context>
- No new dependencies
</important_context>"""

GEMINI = """<state_snapshot>
    <overall_goal>
        Mend the importer.
    </overall_goal>

    <key_knowledge>
        - Build: `make test`
    </key_knowledge>

    <file_system_state>
        - MODIFIED: `clock.py`
    </file_system_state>

    <recent_actions>
        - Ran the tests: 20 passed
    </recent_actions>

    <current_plan>
        1. [DONE] Reproduce the hole
        2. [IN PROGRESS] Store times in UTC
        3. [TODO] Tests
    </current_plan>
</state_snapshot>"""

CLAUDE = """1. Primary Request and Intent:
   Find out why readings are lost.

2. Key Technical Concepts:
   - DST, fold

3. Files and Code Sections:
   - tidewatch/clock.py
      - turns local times to UTC

4. Errors and fixes:
   - KeyError in test_october: the key holds the zone now

7. Pending Tasks:
   - Migrate the database"""

HERMES = """## Goal
Mend the importer

## Resolved Questions
- zoneinfo or pytz: zoneinfo

## Relevant Files
- tidewatch/clock.py: new

## Remaining Work
- Migrate the database"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            KIMI,
            {
                Section.TASK: "Mending the importer",
                Section.COMMANDS: "Python 3.12, pytest",
                Section.HISTORY: "Found the cause: local times without a zone",
                Section.ERRORS: "test_october: fails in the second pass",
                Section.FILES: "tidewatch/clock.py",
                Section.PREVIOUS: "No new dependencies",
            },
        ),
        (
            GEMINI,
            {
                Section.TASK: "Mend the importer.",
                Section.PREVIOUS: "Build: `make test`",
                Section.FILES: "MODIFIED: `clock.py`",
                Section.HISTORY: "Ran the tests: 20 passed",
                Section.PLAN: "in progress: Store times in UTC",
            },
        ),
        (
            CLAUDE,
            {
                Section.TASK: "Find out why readings are lost.",
                Section.DECISIONS: "DST, fold",
                Section.FILES: "tidewatch/clock.py",
                Section.ERRORS: "KeyError in test_october: the key holds the zone now",
                Section.PLAN: "Migrate the database",
            },
        ),
        (
            HERMES,
            {
                Section.TASK: "Mend the importer",
                Section.DECISIONS: "zoneinfo or pytz: zoneinfo",
                Section.FILES: "tidewatch/clock.py: new",
                Section.PLAN: "Migrate the database",
            },
        ),
    ],
    ids=["kimi", "gemini", "claude-code", "hermes"],
)
def test_the_summaries_of_the_clients_are_read_into_sections(text: str, expected: dict[Section, str]) -> None:
    read = by_section(read_client(text))
    assert set(read) == set(expected)
    assert all(line in read[section] for section, line in expected.items())


def test_a_text_without_headings_has_no_sections() -> None:
    assert read_client("Files:\n- nothing else here looks like a summary") == ()


def test_a_remark_after_a_heading_is_no_part_of_its_name() -> None:
    text = "6. All user messages:\n- mend the clock\n7. Pending Tasks (from task list):\n- the tides"
    assert by_section(read_client(text)) == {Section.USER: ("mend the clock",), Section.PLAN: ("the tides",)}


def test_a_heading_that_no_template_knows_ends_the_section_before() -> None:
    read = by_section(read_client("## Goal\nMend it\n## Weather\nrain\n## Remaining Work\nthe tides"))
    assert read == {Section.TASK: ("Mend it",), Section.PLAN: ("the tides",)}
