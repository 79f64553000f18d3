"""The JSON Schemas, from the wheel or from the repository, and checks against them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli.model.errors import UsageError

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_SUFFIX = ".schema.json"
_URN = "urn:compact:schema:"
# A wheel carries them inside the package; an editable install leaves them next to it.
_FOLDERS = (Path(__file__).parent / "schemas", Path(__file__).parents[1] / "schemas")


def schema_names() -> tuple[str, ...]:
    """The names `schema_text` knows, in alphabetical order."""
    return tuple(sorted(path.name.removesuffix(_SUFFIX) for path in _folder().glob(f"*{_SUFFIX}")))


def schema_text(name: str) -> str:
    """The text of the schema's file. Raises UsageError if there is none of that name."""
    if name not in schema_names():
        raise UsageError(f"no schema is called {name}", next_step=f"one of {', '.join(schema_names())}")
    return (_folder() / f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def faults(name: str, value: Any) -> tuple[str, ...]:
    """Where ``value`` (as a JSON parser gives it) breaks the schema, in words; empty: nowhere.

    Each fault is a path and what is wrong there, the first ten of them.
    """
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
