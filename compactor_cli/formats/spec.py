"""Dialects as data: a TOML file states how a format is recognised, read and written, and this module follows it.

The built-in ones stand in ``specs/``, a file per format; ``--format my.toml`` loads one from outside. docs/formats.md
explains the keys. `spec_rules` checks them, and implements the paths, conditions and rules for parts.

New records are made from templates. In these ``{text}``, ``{id}`` and ``{parent}`` are replaced, ``{first.PATH}`` by a
value of the first message, ``{near.PATH}`` by one of the record near by (of the first message if none is kept), and
``{NAME}`` by a value of ``insert.values``. A key is left out if its value is a single placeholder for which there is no
value, except for ``{parent}``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from operator import methodcaller
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from compactor_cli.formats import chat, located, registry, spec_rules
from compactor_cli.formats.chat import alternating
from compactor_cli.formats.client_signs import summary_of
from compactor_cli.formats.contents import dumped, role_of, string, time_of, with_key
from compactor_cli.formats.located import LinkedSite, LocatedPart, ParentTree, RecordDialect, like_keys, parts_of
from compactor_cli.formats.registry import Insertion, InsertionPoint, JsonPath, objects
from compactor_cli.formats.spec_rules import PLACEHOLDER, Test, condition, lookup, place_of, places, reader, steps
from compactor_cli.model.transcript import Message, Part, PreviousSummary, Record, Role, Transcript, text_of

if TYPE_CHECKING:
    from compactor_cli.formats.conversation import Conversation

_RoleRule = tuple[Test, Mapping[str, Any]]


def filled(template: Any, known: Mapping[str, Any]) -> Any:
    """The template with its placeholders replaced. A text that is a single placeholder may become any type."""
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
    """The value of a placeholder. In ``near.a|b`` both alternatives are paths in the record near by."""
    name, _, inner = path.partition(".")
    return lookup(known[name], inner) if inner else known[name]


SPECS = Path(__file__).parent / "specs"
_SUFFIX = ".toml"
# A condition that every value meets, and a table without keys.
_EMPTY: Mapping[str, Any] = {}
# How many elements of a row are looked at to find a message.
_LOOKED_AT = 50


@cache
def load(name: str) -> SpecDialect:
    """The built-in dialect of this name, or that of a user's ``.toml`` file. Raises UsageError for a mistake in it."""
    if name.endswith(_SUFFIX):
        spec = spec_rules.read_spec(Path(name))
    else:
        # Built-in specifications are checked by a test, not in every run.
        spec = tomllib.loads((SPECS / f"{name}{_SUFFIX}").read_text(encoding="utf-8"))
    if "writes" in spec:
        return WritingSpec(name, spec)
    return ChatSpec(name, spec) if spec.get("base") == "chat" else SpecDialect(name, spec)


class SpecDialect(RecordDialect):
    """A `Dialect` that follows a specification."""

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        super().__init__(self._all_pieces)
        self.name = name
        self.title: str = spec["title"]
        self.holds = registry.of_words(spec.get("holds", ()))
        self._spec = spec
        message, self._row = spec.get("message", _EMPTY), spec.get("row", _EMPTY)
        self._is_message = condition(message["when"]) if "when" in message else chat.is_chat
        self._scores = _scores(message.get("scores", [{"is": 3}]))
        self._row_scores = _scores(self._row.get("scores", [{"is": self._row.get("score", 2)}]))
        self._is_row = condition(self._row.get("when", _EMPTY))
        self._starts = condition(spec["starts"]) if "starts" in spec else None
        self.paths = tuple(steps(path) for path in spec.get("arrays", ()))
        self.models = places(spec["model"]) if "model" in spec else self.models
        self.row_models = places(self._row["model"]) if "model" in self._row else self.row_models
        self._roles = [(condition(rule.get("when", _EMPTY)), rule) for rule in message.get("roles", ())]
        self._summary = condition(spec["summary"]["when"]) if "summary" in spec else None
        self._carried = message.get("summary")
        self._is_array = condition(self._row.get("array", _EMPTY))
        self._pieces = reader(spec.get("parts", ()))
        self._persons = reader(spec.get("parts", ()), persons_only=True)
        self._insert = spec.get("insert", _EMPTY)
        self._is_near = condition(self._insert["near"]) if "near" in self._insert else self._is_message

    def array_path(self, value: Any) -> JsonPath | None:
        """The path of the first array that begins with a message; the empty path for a bare array; else None."""
        return super().array_path(value) if self._is_row(value) else None

    def score(self, value: Any) -> int:
        """The score by the first matching rule: of ``message.scores`` for a message, of the row's for a row of them."""
        if not isinstance(value, dict):
            return 0
        if self._is_message(value):
            return _first_score(self._scores, value)
        if self._is_summary(value):
            return 3
        score = _first_score(self._row_scores, value)
        return score if score and self.array_path(value) is not None else 0

    def starts(self, value: Any) -> bool:
        """Whether this record can only be the first of a session."""
        return self._starts is not None and isinstance(value, dict) and self._starts(value)

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record. Those before the client's own newest summary, except for system messages, are
        ``superseded``."""
        values = [record.value for record in records]
        first = next(filter(self._is_message, values), None)
        # Rules with ``some`` apply only if a record of the file meets it, those with ``none`` only if no record does.
        roles = [
            (applies, rule)
            for applies, rule in self._roles
            if ("some" not in rule or any(map(condition(rule["some"]), values)))
            and ("none" not in rule or not any(map(condition(rule["none"]), values)))
        ]
        messages = [self._message(value, first, roles) for value in values]
        newest = max((i for i, value in enumerate(values) if self._is_summary(value)), default=0)
        for i, message in enumerate(messages[:newest]):
            if message.role is not Role.SYSTEM:
                messages[i] = replace(message, superseded=True)
        if self._spec.get("unanswered") != "absent":
            return tuple(messages)
        # The format holds no results: calls without a result in the records after them get one that is not recorded.
        is_answered = False
        for i, message in reversed(list(enumerate(messages))):
            if message.calls and not is_answered:
                messages[i] = registry.with_unrecorded(message, message.calls)
            is_answered = is_answered if message.is_meta else bool(message.results)
        return tuple(messages)

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the newest record names, else the row, without a prefix that ends with ``row.model_after``."""
        name = super().model(records, row)
        return name.rpartition(self._row["model_after"])[2] if "model_after" in self._row else name

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """New records by the templates of the specification; if it has none, shaped like the file's own records."""
        placed = alternating(transcript, cut, insertions) if self._insert.get("alternates") else insertions
        if "user" in self._insert:
            return self._from_templates(transcript, cut, placed)
        # The keys and speakers' names of the file's own messages, among those that the specification allows.
        keys = self._insert.get("keys", {"role": "role", "text": "content"})
        both = zip(transcript.records, transcript.messages, strict=True)
        spoken = ((record.value, message.role) for record, message in both if isinstance(record.value, dict))
        own = [(value, role) for value, role in spoken if self._is_message(value)]
        first = own[0][0] if own else {}
        alternatives = (keys["role"].split("|"), keys["text"].split("|"))
        role_key, text_key = (next((key for key in each if key in first), each[0]) for each in alternatives)
        names = {role: list(keys.get(role.value, (role.value,))) for role in (Role.USER, Role.ASSISTANT)}
        for role, usual in names.items() if keys.get("own_names") else ():
            own_names = (value[role_key] for value, speaker in own if speaker is role and role_key in value)
            names[role] = [*dict.fromkeys(own_names), *usual]
        return chat.new_messages(transcript, cut, placed, chat.TurnShape(role_key, text_key, names))

    def _from_templates(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]
    ) -> tuple[bytes, ...]:
        """One record for each insertion, linked to each other if the specification has a ``chain``."""
        values = objects(transcript.records)
        messages = [value for value in values if self._is_message(value)]
        first = messages[0] if messages else {}
        near = next((values[i] for i in cut.near if self._is_near(values[i])), first)
        known: dict[str, Any] = {"near": near, "first": first}
        for name, rule in self._insert.get("values", {}).items():
            # A value from the record near by, or from the newest message that has one.
            excepted = [filled(each, known) for each in rule.get("except", ())]
            where = reversed(messages) if rule.get("from") == "newest" else (known[rule.get("from", "near")],)
            found = (lookup(value, rule["path"]) for value in where)
            given = (each for each in found if each and isinstance(each, str) and each not in excepted)
            known[name] = next(given, rule["otherwise"])
        _, _, digits = self._insert.get("ids", "sha256:24").partition(":")
        seeds = [(transcript.sha256, item.text) for item in insertions]
        ids = [located.derived_hex(*seed, int(digits)) if digits else located.derived_uuid(*seed) for seed in seeds]
        parents: Sequence[Any] = [None] * len(ids)
        if ids and (chain := self._insert.get("chain")):
            tree = ParentTree(values, (chain["id"], chain["parent"]))
            site = LinkedSite(transcript, cut, tree, next(reversed(cut.after), None))
            ids[-1] = site.taken or ids[-1]
            parents = [site.head_id(cut.before) or None, *ids[:-1]]
        both = zip(insertions, ids, parents, strict=True)
        filling = ((item, known | {"text": item.text, "id": own, "parent": parent}) for item, own, parent in both)
        return dumped(transcript, (self._filled(item, given, messages) for item, given in filling))

    def _filled(self, item: Insertion, known: Mapping[str, Any], messages: Sequence[Any]) -> dict[str, Any]:
        """The record by the first template that fits the file, its keys in the order of the file's own."""
        given = self._insert["assistant" if item.role is Role.ASSISTANT else "user"]
        variants = given if isinstance(given, list) else [{"record": given}]
        fitting = (one for one in variants if one.get("when") is None or any(map(condition(one["when"]), messages)))
        template = next(fitting, variants[-1])
        is_like = condition(template["like"]) if "like" in template else None
        like: Any = next(filter(is_like, messages), {}) if is_like else known["near"]
        found: dict[str, Any] = {}
        for key, value in filled(template["record"], known).items():
            old = like.get(key) if isinstance(like, dict) else None
            if key not in like and key in self._insert.get("optional", ()):
                continue
            # A single object in a list: its keys in the order of the first object in the neighbour's list.
            is_single = isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict)
            found[key] = [like_keys(value[0], old[0])] if is_single and isinstance(old, list) and old else value
        return like_keys(found, like)

    def settle(self, source: Transcript, composed: Transcript) -> Transcript:
        """Set the keys of the row that count its records."""
        frame = composed.frame
        for key in self._row.get("counts", ()):
            if isinstance(source.row, dict) and isinstance(source.row.get(key), int):
                frame = with_key(frame, key, len(composed.records))
        return replace(composed, frame=frame)

    def _leads(self, elements: Any) -> bool:
        """Whether an array belongs to this format. In a row recognised by its own keys, the array may be empty, or its
        first elements may be no messages."""
        if "when" not in self._row:
            return self._is_message(registry.first_object(elements)) and self._is_array(elements)
        return isinstance(elements, list) and (not elements or any(map(self._is_message, elements[:_LOOKED_AT])))

    def _all_pieces(self, value: Any) -> list[LocatedPart]:
        if not self._is_summary(value):
            return self._pieces(value)
        path = self._spec["summary"]["text"]
        return [located.text(lookup(value, path), place_of(value, path) or ())]

    def _is_summary(self, value: Any) -> bool:
        return self._summary is not None and isinstance(value, dict) and self._summary(value)

    def _message(self, value: Any, first: Any, roles: Sequence[_RoleRule]) -> Message:
        if self._is_summary(value):
            found = parts_of(self._all_pieces(value))
            own = PreviousSummary(origin=self.name, text=string(lookup(value, self._spec["summary"]["text"])))
            return Message(role=Role.USER, parts=found, timestamp=self._time(value), summary=own)
        if not isinstance(value, dict) or not self._is_message(value):
            return located.META
        found = parts_of(self._pieces(value))
        role = self._role(value, found, first, roles)
        if role is Role.META:
            return Message(role=role, timestamp=self._time(value))
        own_words = None
        if role is Role.USER and len(typed := parts_of(self._persons(value))) != len(found):
            # The message also holds texts of the client.
            own_words = text_of(typed)
        summary = summary_of(role, found)
        if self._carried:
            # The client's own summary is an element of the message.
            elements, is_summary = lookup(value, self._carried["each"]), condition(self._carried["when"])
            texts = (string(lookup(each, self._carried["text"])) for each in elements or () if is_summary(each))
            if text := next(filter(None, texts), ""):
                summary = PreviousSummary(origin=self.name, text=text)
        return Message(role=role, parts=found, timestamp=self._time(value), summary=summary, own_words=own_words)

    def _time(self, value: Any) -> str:
        paths = self._spec.get("message", _EMPTY).get("time", ())
        return next((time for path in paths if (time := time_of(lookup(value, path)))), "")

    def _role(self, value: Mapping[str, Any], found: Sequence[Part], first: Any, roles: Sequence[_RoleRule]) -> Role:
        """The role by the first rule that applies; META if none does, or if a message without parts counts as META."""
        if not found and self._spec["message"].get("empty") == "meta":
            return Role.META
        for applies, rule in roles:
            if not applies(value) or (rule.get("first") and value is not first):
                continue
            if rule.get("summary") and summary_of(Role.USER, found) is None:
                continue
            path = rule.get("speaker_of_first")
            if path is None or lookup(value, path) == lookup(first, path):
                return role_of(Role(rule["is"]), found)
        return Role.META


_CONTENT, _TEXT_ONLY = methodcaller("get", "content"), frozenset({str, NoneType})


class ChatSpec(SpecDialect):
    """A format whose messages have a role and a content, read by `chat`; the specification decides everything else."""

    models = (("model",),)
    row_models = chat.ROW_MODELS

    def array_path(self, value: Any) -> JsonPath | None:
        """The path of the first array that holds messages (an empty one counts), or None."""
        if "when" in self._spec.get("message", _EMPTY):
            return super().array_path(value)
        return chat.array_at(value, self.paths) if self._is_row(value) else None

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record; a user's message that only brings results becomes a tool's."""
        return registry.pad_missing_results(tuple(map(self.read_one, records)))

    def read_one(self, record: Record) -> Message:
        """The message of one record, which does not depend on the records around it."""
        return chat.read(record.value)

    def is_text_only(self, elements: Sequence[Any]) -> bool:
        """Whether every content is a text or null. What stands next to it has fewer tokens than bytes."""
        return {dict}.issuperset(map(type, elements)) and _TEXT_ONLY.issuperset(map(type, map(_CONTENT, elements)))

    def _all_pieces(self, value: Any) -> list[LocatedPart]:
        return chat.pieces(value)


class WritingSpec(ChatSpec):
    """A format in which a new conversation can be written, by the writer that ``writes`` names."""

    @property
    def unwritten(self) -> registry.Capabilities:
        """What the format can hold but `write` cannot provide."""
        return self._writer()[0]

    def write(self, conversation: Conversation) -> Sequence[Any]:
        """A request of the API."""
        return self._writer()[1](conversation)

    def _writer(self) -> tuple[registry.Capabilities, Callable[[Conversation], Sequence[Any]]]:
        """The writer, imported on first use, since conversions are rare."""
        from compactor_cli.formats.conversation import WRITERS

        return WRITERS[self._spec["writes"]]


def _scores(rules: Sequence[Mapping[str, Any]]) -> list[tuple[Test, int]]:
    return [(condition(rule.get("when", _EMPTY)), rule["is"]) for rule in rules]


def _first_score(scores: Sequence[tuple[Test, int]], value: Any) -> int:
    """The score of the first rule that applies, else 0. A plain loop, since this runs for every record of a file."""
    for applies, score in scores:
        if applies(value):
            return score
    return 0
