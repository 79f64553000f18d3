"""Schemas: valid themselves, and never after the values they describe."""

from __future__ import annotations

import dataclasses
import json
import tomllib

import pytest
from cli_cases import Run

from compactor_cli.archive.store import ManifestEntry, moment
from compactor_cli.formats.registry import names
from compactor_cli.model.plan import Edit, Mode, Plan, Span, Tier
from compactor_cli.model.report import InputReport, Outcome, TranscriptReport
from compactor_cli.model.settings import Budget, Keep, PruneRule, Settings, Size, Trigger
from compactor_cli.model.summary import Item, Section, SectionItems, Source, Summary
from compactor_cli.run.documents import faults, schema_names, schema_text


def _properties(name: str, *path: str) -> set[str]:
    schema = json.loads(schema_text(name))
    for step in path:
        schema = schema[step]
    return set(schema["properties"])


def _fields(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


@pytest.mark.parametrize("name", schema_names())
def test_a_schema_is_a_valid_schema(name: str) -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(json.loads(schema_text(name)))


@pytest.mark.parametrize(
    ("name", "path", "kind"),
    [
        ("report", ("$defs", "transcript"), TranscriptReport),
        ("report", ("$defs", "input"), InputReport),
        ("plan", ("$defs", "plan"), Plan),
        ("plan", ("$defs", "plan", "properties", "spans", "items"), Span),
        ("plan", ("$defs", "plan", "properties", "edits", "items"), Edit),
        ("summary", (), Summary),
        ("summary", ("properties", "sections", "items"), SectionItems),
        ("summary", ("properties", "sections", "items", "properties", "items", "items"), Item),
        ("settings", ("properties", "trigger"), Trigger),
        ("settings", ("properties", "keep"), Keep),
        ("settings", ("properties", "budget"), Budget),
        ("settings", ("properties", "prune", "items"), PruneRule),
        ("settings", ("$defs", "size", "anyOf", 2), Size),
        ("manifest", (), ManifestEntry),
    ],
)
def test_a_schema_names_every_field(name: str, path: tuple[str, ...], kind: type) -> None:
    assert _properties(name, *path) == _fields(kind)


def test_the_schema_of_settings_names_every_field_and_the_line_for_lists() -> None:
    assert _properties("settings") == _fields(Settings) | {"about", "base", "environment"}


def test_the_schema_of_configuration_files_takes_what_they_may_say_and_nothing_else() -> None:
    text = 'target = "32k"\nkeep-tail = "3turns"\nmin-age = "10m"\nrpm = 60\nmin-retention = 0.8\nbudget = "5%"\n'
    text += 'exclude = ["*.bak"]\n[keep]\ntail_turns = 3\n[trigger]\nat_phase = true\n[[prune]]\nname = "x"\n'
    assert faults("config", tomllib.loads(text)) == ()
    assert len(faults("config", {"in-place": True, "rmp": 3})) == 1
    for wrong in ({"jobs": -1}, {"on-invalid": "explode"}, {"archive": "perhaps"}):
        assert faults("config", wrong) != ()
    for wrong in ({"keep": {"tial": 1}}, {"budget": {"tial": 1}}):
        assert faults("config", wrong) != ()


def test_enumerations_are_complete() -> None:
    report = json.loads(schema_text("report"))
    assert set(report["$defs"]["outcome"]["enum"]) == set(Outcome)
    plan = json.loads(schema_text("plan"))
    assert set(plan["$defs"]["plan"]["properties"]["tier"]["enum"]) == set(Tier)
    assert set(plan["$defs"]["plan"]["properties"]["mode"]["enum"]) == set(Mode)
    summary = json.loads(schema_text("summary"))
    assert set(summary["properties"]["sections"]["items"]["properties"]["section"]["enum"]) == set(Section)
    assert set(summary["properties"]["source"]["enum"]) == set(Source)


def test_a_summary_fits_its_schema() -> None:
    items = (Item(text="fix it", records=(1, 2)), Item(text="src/a.py", depth=1))
    summary = Summary(
        source=Source.DIGEST,
        sections=(SectionItems(section=Section.TASK, items=items),),
        lost=(("paths", ("a", "b")),),
        retention=(("paths", 0.5),),
    )
    assert faults("summary", json.loads(json.dumps(dataclasses.asdict(summary)))) == ()


def test_a_manifest_entry_fits_its_schema() -> None:
    entry = ManifestEntry(sha256="0" * 64, bytes=1, stored="00/x.jsonl.zst", source="-", compacted_at=moment())
    assert faults("manifest", dataclasses.asdict(entry)) == ()


def test_faults_say_where_and_what() -> None:
    (fault,) = faults(
        "manifest",
        {**dataclasses.asdict(ManifestEntry(sha256="0" * 64, bytes=-1, stored="x")), "compacted_at": moment()},
    )
    assert fault.startswith("$.bytes: ")


def test_an_archives_manifest_fits_its_schema(work: object, home: object, compact: Run) -> None:
    compact("-t", "1500", "session.jsonl", "rows.jsonl", "--output-dir", "out", "--archive-dir", "kept")
    lines = (work / "kept/MANIFEST.jsonl").read_text().splitlines()  # type: ignore[operator]
    assert len(lines) == 2
    assert all(faults("manifest", json.loads(line)) == () for line in lines)


@pytest.mark.parametrize("name", names())
def test_a_format_has_a_schema_of_its_records(name: str) -> None:
    assert name in schema_names()
    assert faults(name, ["no record"]) != ()
