"""Documents: the JSON Schemas, in the wheel or in the repository, and plan files.

A plan file holds decisions, with the texts of the summaries, that a person can read and compact can apply exactly. It
is JSON lines (`schemas/plan.schema.json`): the settings first, then one line per transcript, identified by the hash
of its bytes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli import __version__
from compactor_cli.model.errors import UsageError
from compactor_cli.model.plan import Action, Edit, Mode, Plan, Span, Tier
from compactor_cli.model.settings import Settings, settings_from
from compactor_cli.model.value import dataclass

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


_SUFFIX = ".schema.json"
_URN = "urn:compact:schema:"
# A wheel carries them inside the package; an editable install leaves them next to it.
_FOLDERS = (Path(__file__).parents[1] / "schemas", Path(__file__).parents[2] / "schemas")


def schema_names() -> tuple[str, ...]:
    """The names `schema_text` knows, in alphabetical order."""
    return tuple(sorted(path.name.removesuffix(_SUFFIX) for path in _folder().glob(f"*{_SUFFIX}")))


def schema_text(name: str) -> str:
    """The text of the schema's file. Raises UsageError if no schema has that name."""
    if name not in schema_names():
        raise UsageError(f"no schema is called {name}", next_step=f"one of {', '.join(schema_names())}")
    return (_folder() / f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def faults(name: str, value: Any) -> tuple[str, ...]:
    """The first ten violations of the schema in ``value``, a parsed JSON value, with their paths; empty if valid."""
    found = sorted(_validator(name).iter_errors(value), key=lambda error: error.json_path)
    return tuple(f"{error.json_path}: {error.message[:200]}" for error in found[:10])


@cache
def _validator(name: str) -> Validator:
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

    resources = ((f"{_URN}{known}", Resource.from_contents(_schema(known))) for known in schema_names())
    return Draft202012Validator(_schema(name), registry=Registry().with_resources(resources))


@cache
def _schema(name: str) -> Any:
    return json.loads(schema_text(name))


@cache
def _folder() -> Path:
    return next((folder for folder in _FOLDERS if folder.is_dir()), _FOLDERS[0])


PLAN_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A saved decision."""

    plan: Plan
    summary: str  # its text
    source: str = ""  # who wrote it; a digest's is written again and compared, one by a model is used as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """The content of a plan file."""

    settings: Settings
    by_sha256: Mapping[str, Saved]  # by the hash of the transcript


def header_line(settings: Settings) -> bytes:
    """The first line of a plan file."""
    return _line({"compact_plan": PLAN_FORMAT, "version": __version__, "settings": dataclasses.asdict(settings)})


def plan_line(path: str, plan: Plan, summary: str, source: str = "") -> bytes:
    """The line of one transcript."""
    return _line({"path": path, "plan": dataclasses.asdict(plan), "summary": summary, "source": source})


def _line(value: Mapping[str, Any]) -> bytes:
    # ASCII with escapes, since texts may hold lone surrogates, which UTF-8 cannot encode.
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def read_plan_file(path: str) -> PlanFile:
    """Read a plan file. Raises UsageError, with the line, for anything that is wrong with it."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        what = f"the plan cannot be read ({error.strerror})"
        raise UsageError(what, place=path, next_step="make one with --plan-out") from error
    head = _checked(lines[0] if lines else b"null", path, 1)
    if "settings" not in head:
        raise UsageError("is not a plan", next_step="make one with --plan-out", place=f"{path}:1")
    saved: dict[str, Saved] = {}
    for number, line in enumerate(lines[1:], 2):
        entry = _checked(line, path, number)
        value = entry["plan"]
        nested = {
            "spans": tuple(Span(**{**span, "action": Action(span["action"])}) for span in value["spans"]),
            "edits": tuple(Edit(**edit) for edit in value["edits"]),
            "tier": Tier(value["tier"]),
            "mode": Mode(value["mode"]),
            "notes": tuple(value["notes"]),
        }
        plan = Plan(**{**value, **nested})
        saved[plan.transcript_sha256] = Saved(plan=plan, summary=entry["summary"], source=entry.get("source", ""))
    return PlanFile(settings=settings_from(head["settings"], Settings(), path), by_sha256=saved)


def _checked(line: bytes, path: str, number: int) -> Any:
    place = f"{path}:{number}"
    try:
        value = json.loads(line)
    except ValueError as error:
        raise UsageError("is not a plan: not JSON", next_step="make one with --plan-out", place=place) from error
    kind = "header" if number == 1 else "entry"
    if wrong := faults("plan", value):
        raise UsageError(f"is not a plan {kind}: {wrong[0]}", next_step="make one with --plan-out", place=place)
    return value
