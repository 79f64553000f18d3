"""The published schemas say what the types say: names, kinds and choices of every field that a run writes or reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from compactor_cli.archive.store import ManifestEntry
from compactor_cli.model.plan import Edit, Plan, Span
from compactor_cli.model.report import InputReport, TranscriptReport
from compactor_cli.model.settings import Budget, Fit, Keep, PruneRule, Rules, Settings, Trigger

pydantic = pytest.importorskip("pydantic", reason="schemas are compared with the types by pydantic, which is missing")
SCHEMAS = Path(__file__).parents[1] / "schemas"
# Where a type stands in a schema, and what people may write there beside its fields.
TYPES: tuple[tuple[str, type, frozenset[str]], ...] = (
    ("report/$defs/transcript", TranscriptReport, frozenset()),
    ("report/$defs/input", InputReport, frozenset()),
    ("plan/$defs/plan", Plan, frozenset()),
    ("plan/$defs/plan/properties/spans/items", Span, frozenset()),
    ("plan/$defs/plan/properties/edits/items", Edit, frozenset()),
    ("settings", Settings, frozenset({"about", "base", "environment", "keep_head", "keep_tail"})),
    ("settings/properties/trigger", Trigger, frozenset()),
    ("settings/properties/keep", Keep, frozenset()),
    ("settings/properties/prune/items", PruneRule, frozenset()),
    ("settings/properties/budget", Budget, frozenset()),
    ("settings/properties/rules", Rules, frozenset()),
    ("settings/properties/fit", Fit, frozenset()),
    ("manifest", ManifestEntry, frozenset()),
)


def _published(place: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The schema at this place, and the whole of the file."""
    name, *keys = place.split("/")
    whole = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    found = whole
    for key in keys:
        found = found[key]
    table = next((one for one in _alternatives(found, whole) if "properties" in one), found)
    return table, whole


def _alternatives(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What a value may be, references followed."""
    if reference := schema.get("$ref", ""):
        found = whole
        for key in reference.removeprefix("#/").split("/") if reference.startswith("#/") else ():
            found = found[key]
        yield from _alternatives(found, whole) if found is not whole else ({},)
        return
    options = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    for option in options:
        yield from _alternatives(option, whole)
    if not options:
        yield schema


def _kinds(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> set[str]:
    """The JSON types of a value; empty where any is allowed."""
    kinds: set[str] = set()
    for one in _alternatives(schema, whole):
        named = one.get("type", [])
        kinds.update([named] if isinstance(named, str) else named)
        values = [*one.get("enum", ()), *([one["const"]] if "const" in one else [])]
        kinds.update({str: "string", int: "integer", bool: "boolean"}.get(type(value), "null") for value in values)
    return kinds | ({"integer"} if "number" in kinds else set())


def _choices(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> set[str]:
    return {value for one in _alternatives(schema, whole) for value in one.get("enum", ()) if isinstance(value, str)}


@pytest.mark.parametrize(("place", "kind", "extra"), TYPES, ids=[place for place, *_ in TYPES])
def test_a_schema_has_the_fields_of_its_type(place: str, kind: type, extra: frozenset[str]) -> None:
    published, whole = _published(place)
    made = pydantic.TypeAdapter(kind).json_schema()
    assert set(published["properties"]) - extra == set(made["properties"])
    for name, field in made["properties"].items():
        stated = published["properties"][name]
        if kinds := _kinds(stated, whole):
            assert _kinds(field, made) <= kinds, name
        if choices := _choices(field, made):
            assert choices <= _choices(stated, whole), name
