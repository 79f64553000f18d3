"""New records by the templates of a specification.

A template is the record as it is to be written. ``{text}``, ``{id}`` and ``{parent}`` in it are replaced,
``{near.PATH}`` by what the record before says, ``{first.PATH}`` by the first message, ``{NAME}`` by a value of
``insert.values``; a key whose whole value is not there is left out.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compactor_cli.formats import new_message as new_message
from compactor_cli.formats.alternate import alternating
from compactor_cli.formats.base import Insertion, InsertionPoint
from compactor_cli.formats.contents import string
from compactor_cli.formats.jsontext import dump
from compactor_cli.formats.located_parts import like_keys
from compactor_cli.formats.spec_tests import Test, condition, lookup
from compactor_cli.model.transcript import Role, Transcript

Writer = Callable[[Transcript, InsertionPoint, Sequence[Insertion]], tuple[bytes, ...]]
PLACEHOLDER = re.compile(r"\{([\w.|-]+)\}")
_DEFAULT_IDS = "sha256:24"
_CHAT = {"role": "role", "text": "content"}


def writer(spec: Mapping[str, Any], is_message: Test) -> Writer:
    """What writes insertions: by templates, or (where there are none) shaped like the file's own messages."""
    return _Templates(spec, is_message).write if "user" in spec else _imitator(spec)


def _imitator(spec: Mapping[str, Any]) -> Writer:
    keys = spec.get("imitate", _CHAT)
    users, assistants = tuple(keys.get("user", ("user",))), tuple(keys.get("assistant", ("assistant",)))
    shape = new_message.TurnShape(role_key=keys["role"], text_key=keys["text"], user=users, assistant=assistants)

    def write(transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        placed = alternating(transcript, cut, insertions) if spec.get("alternates") else insertions
        return new_message.insert(transcript, cut, placed, shape)

    return write


class _Templates:
    """The templates of a specification."""

    def __init__(self, spec: Mapping[str, Any], is_message: Test) -> None:
        self._spec = spec
        self._is_message = is_message
        self._is_near = condition(spec["near"]) if "near" in spec else is_message
        self._variants = {Role.USER: _variants(spec["user"]), Role.ASSISTANT: _variants(spec["assistant"])}

    def write(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """One record for each insertion, with ids that link to each other where the format has such."""
        values = [record.value if isinstance(record.value, dict) else {} for record in transcript.records]
        near = next((values[i] for i in (*reversed(cut.before), *cut.after) if self._is_near(values[i])), {})
        messages = [value for value in values if self._is_message(value)]
        known: dict[str, Any] = {"near": near, "first": messages[0] if messages else {}}
        for name, rule in self._spec.get("values", {}).items():
            known[name] = _named(rule, known, messages)
        kind = self._spec.get("ids", _DEFAULT_IDS)
        ids = [_new_id(kind, transcript.sha256, item.text) for item in insertions]
        parents: Sequence[Any] = [None] * len(ids)
        if chain := self._spec.get("chain"):
            ids, parents = _chained(ids, values, cut, chain["id"], chain["parent"])
        raw = transcript.records[0].raw if transcript.records else b""
        return tuple(
            dump(self._record(item, known | {"text": item.text, "id": own, "parent": parent}, messages), raw)
            for item, own, parent in zip(insertions, ids, parents, strict=True)
        )

    def _record(self, item: Insertion, known: Mapping[str, Any], messages: Sequence[Any]) -> dict[str, Any]:
        """The first template that fits the file, its keys in the order of the file's own."""
        variants = self._variants[Role.ASSISTANT if item.role is Role.ASSISTANT else Role.USER]
        fitting = (one for one in variants if one.get("when") is None or any(map(condition(one["when"]), messages)))
        template = next(fitting, variants[-1])
        is_like = condition(template["like"]) if "like" in template else None
        like: Any = next(filter(is_like, messages), {}) if is_like else known["near"]
        return like_keys(_ordered(filled(template["record"], known), like), like)


def _variants(given: Any) -> list[Mapping[str, Any]]:
    """The templates for one speaker: a record, or several with what they are for."""
    return given if isinstance(given, list) else [{"record": given}]


def _ordered(record: Mapping[str, Any], like: Any) -> dict[str, Any]:
    """Lists of one object with its keys in the order of the first in the list that stands there."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        old = like.get(key) if isinstance(like, dict) else None
        is_single = isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict)
        found[key] = [like_keys(value[0], old[0])] if is_single and isinstance(old, list) and old else value
    return found


def _named(rule: Mapping[str, Any], known: Mapping[str, Any], messages: Sequence[Any]) -> Any:
    """A value of ``insert.values``: of the record near by, or of the newest that has one."""
    excepted = [filled(each, known) for each in rule.get("except", ())]
    where = reversed(messages) if rule.get("from") == "newest" else (known[rule.get("from", "near")],)
    found = (lookup(value, rule["path"]) for value in where)
    names = (each for each in found if each and isinstance(each, str) and each not in excepted)
    return next(names, rule["otherwise"])


def filled(template: Any, known: Mapping[str, Any]) -> Any:
    """The template with its placeholders replaced. A value that is one placeholder may be of any type."""
    if isinstance(template, dict):
        pairs = ((key, value, filled(value, known)) for key, value in template.items())
        return {key: new for key, value, new in pairs if new is not None or value == "{parent}"}
    if isinstance(template, list):
        return [filled(each, known) for each in template]
    if not isinstance(template, str):
        return template
    if whole := PLACEHOLDER.fullmatch(template):
        return _value(whole[1], known)
    return PLACEHOLDER.sub(lambda found: str(_value(found[1], known) or ""), template)


def _value(path: str, known: Mapping[str, Any]) -> Any:
    """What a placeholder stands for; the alternatives of ``near.a|b`` are all of the record near by."""
    name, _, inner = path.partition(".")
    return lookup(known[name], inner) if inner else known[name]


def _new_id(kind: str, sha256: str, text: str) -> str:
    if kind == "uuid":
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{sha256} {text}"))
    return hashlib.sha256(f"{sha256} {text}".encode()).hexdigest()[: int(kind.partition(":")[2])]


def _chained(
    ids: Sequence[str], values: Sequence[Any], cut: InsertionPoint, id_key: str, parent_key: str
) -> tuple[list[str], list[Any]]:
    """Ids and parents of the new records; the last takes over the id of the removed one that the tail links to."""
    kept = {string(values[i].get(id_key)) for i in (*cut.before, *cut.after)}
    linked = next((string(values[i].get(parent_key)) for i in cut.after), "")
    own = [*ids[:-1], linked] if ids and linked and linked not in kept else list(ids)
    return own, [next((values[i].get(id_key) for i in reversed(cut.before)), None), *own][: len(own)]
