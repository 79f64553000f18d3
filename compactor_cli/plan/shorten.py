"""Shortens texts: by the settings' rules, or in their middle until the whole fits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor_cli.group.exchanges import newest_request
from compactor_cli.model.marker import record_id
from compactor_cli.model.plan import Edit
from compactor_cli.model.settings import PartKind, PruneRule
from compactor_cli.model.transcript import Message, Part, Role, Text, ToolCall, ToolResult
from compactor_cli.model.value import dataclass
from compactor_cli.plan.tokens import Counter, arguments_text

OVERFLOW = "overflow"
# To fit, a text is not cut below the first length, as less shows nothing; up to the second it is left alone.
LEAST_CHARS = 400
UNTOUCHED_CHARS = 600
_MARKER = PruneRule(name=OVERFLOW).marker
_SHRINK_RATIO = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortening:
    """One edit, the rule it follows, and the tokens it saves."""

    edit: Edit
    rule: str
    saved_tokens: int


def shorten_to_fit(
    messages: Sequence[Message], records: Sequence[int], excess_tokens: int, counter: Counter, needed_tokens: int
) -> tuple[Shortening, ...]:
    """Edits that shorten the longest tool results of these records to save ``excess_tokens``, as far as possible.

    If these do not save even ``needed_tokens``, the longest texts are shortened as well, until that much is saved. All
    that is shortened of a kind is cut to one length, not below 400 characters; what has up to 600 is left alone.
    """
    results = _level(messages, records, ToolResult, excess_tokens, counter)
    missing = needed_tokens - saved_tokens(results)
    return results if missing <= 0 else results + _level(messages, records, Text, missing, counter)


def saved_tokens(edits: Iterable[Shortening]) -> int:
    """The tokens that these save together."""
    return sum(item.saved_tokens for item in edits)


def shortened(text: str, first_chars: int, last_chars: int, marker: str = _MARKER) -> str:
    """The text with its middle replaced by the marker; the text itself if that would not make it shorter.

    A middle that is no longer than the marker stays: else a shortened text would be shortened again and again.
    """
    omitted = len(text) - first_chars - last_chars
    if omitted <= len(marker):
        return text
    short = text[:first_chars] + marker.replace("{omitted}", str(omitted)) + text[len(text) - last_chars :]
    return short if len(short) < len(text) else text


def _level(
    messages: Sequence[Message],
    records: Sequence[int],
    kind: type[ToolResult] | type[Text],
    excess_tokens: int,
    counter: Counter,
) -> tuple[Shortening, ...]:
    """Edits that cut all long texts of one kind to the greatest length that saves enough, or to the least length."""
    long = [
        (record, index, part.text, counter.count(part.text))
        for record in records
        for index, part in enumerate(messages[record].parts)
        if isinstance(part, kind) and len(part.text) > UNTOUCHED_CHARS
    ]
    if not long:
        return ()
    # The length to cut to, estimated by the mean density of tokens.
    lengths, tokens = sorted(len(text) for _, _, text, _ in long), sum(tokens for *_, tokens in long)
    left = max(tokens - excess_tokens, 0) * sum(lengths) // max(tokens, 1)
    chars = max(lengths[-1], LEAST_CHARS)
    for index, length in enumerate(lengths):
        share = left // (len(lengths) - index)
        if length > share:
            chars = max(share, LEAST_CHARS)
            break
        left -= length
    found = tuple(_cut_to(long, chars, counter))
    # The ends of a text may be denser than its middle, so that too little is saved: cut further now, not in a next run.
    while saved_tokens(found) < excess_tokens and chars > LEAST_CHARS:
        chars = max(int(chars * _SHRINK_RATIO), LEAST_CHARS)
        found = tuple(_cut_to(long, chars, counter))
    return found


def _cut_to(long: Sequence[tuple[int, int, str, int]], chars: int, counter: Counter) -> Iterator[Shortening]:
    for record, index, text, tokens in long:
        half = chars // 2
        short = shortened(text, half, half) if len(text) > max(chars, UNTOUCHED_CHARS) else text
        if short != text:
            edit = Edit(record=record, part=index, text=short)
            yield Shortening(edit=edit, rule=OVERFLOW, saved_tokens=tokens - counter.count(short))


# A rule's lengths are divided by this for the strings that it shortens inside a JSON text.
KEY_DIVISOR = 4
_SPEAKERS = {
    PartKind.USER: (Role.USER,),
    PartKind.ASSISTANT: (Role.ASSISTANT,),
    PartKind.TEXT: tuple(Role),
    PartKind.ANY: tuple(Role),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruler:
    """Applies rules to the messages of one transcript."""

    messages: Sequence[Message]
    counter: Counter
    sha256: str  # of the transcript, for ``{id}`` in markers

    def applied(self, rules: Sequence[PruneRule], records: Iterable[int]) -> Iterator[Shortening]:
        """The edits that the rules make to these records, in their order; to each part the first rule that applies.

        A text that would not get shorter stays as it is: pruning twice changes nothing. A JSON text that has a rule's
        keys is left to that rule, even where it does not apply, or no longer does.
        """
        limits = {rule.name: self._limit(rule) for rule in rules}
        newest = newest_request(self.messages)
        # The newest message may hold the user's request at its end as well as at its beginning, so both ends are kept;
        # not where the marker has an id, which is only recognised at the end of a text.
        with_end = list(rules)
        for number, rule in enumerate(rules):
            if not (rule.last_chars or rule.keys or "{id}" in rule.marker):
                first_chars = rule.first_chars // 2
                with_end[number] = replace(rule, first_chars=first_chars, last_chars=rule.first_chars - first_chars)
        for record in records:
            for index, part in enumerate(self.messages[record].parts):
                for rule in with_end if record == newest else rules:
                    at_most = limits[rule.name]
                    if (record, index) < at_most and (text := self._short(rule, record, part)) is not None:
                        saved = self.counter.count(_text_of(part)) - self.counter.count(text)
                        edit = Edit(record=record, part=index, text=text)
                        yield Shortening(edit=edit, rule=rule.name, saved_tokens=saved)
                        break
                    cuts_keys = rule.keys and (rule.first_chars or rule.last_chars)
                    if cuts_keys and isinstance(part, Text | ToolResult) and _key_paths(rule, _object(part.text)):
                        break

    def most_saved(self, rules: Sequence[PruneRule], records: Iterable[int]) -> int:
        """An upper bound of what `applied` can save: the tokens of all texts that are long enough for a rule."""
        parts = ((self.messages[record].role, part) for record in records for part in self.messages[record].parts)
        return sum(
            self.counter.count(_text_of(part))
            for role, part in parts
            if any(_is_long(rule, role, part) for rule in rules)
        )

    def _short(self, rule: PruneRule, record: int, part: Part) -> str | None:
        """The text that this rule makes of a part; None if it does not apply or does not make it shorter."""
        if not _is_long(rule, self.messages[record].role, part):
            return None
        old = _text_of(part)
        if rule.over_tokens and self.counter.count(old) <= rule.over_tokens:
            return None
        body, known_id = _was_shown_before(rule, old)
        marker = rule.marker.replace("{id}", known_id or record_id(self.sha256, record))
        named = rule if marker == rule.marker else replace(rule, marker=marker)
        if isinstance(part, ToolCall) and not isinstance(part.arguments, str):
            values = _short_values(named, part.arguments)
            new = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=str)
        else:
            new = _short_text(named, old if isinstance(part, ToolCall) else body)
        return new if new != body and len(new) < len(old) else None

    def _limit(self, rule: PruneRule) -> tuple[int, int]:
        """The first (record, part) that is too new for a rule."""
        older, to_keep = len(self.messages), rule.keep_messages
        while older and to_keep > 0:
            older -= 1
            to_keep -= not self.messages[older].is_meta and self.messages[older].role is not Role.SYSTEM
        by_messages = (older, 0)
        if not rule.keep_parts:
            return by_messages
        left = rule.keep_parts
        for record in range(len(self.messages) - 1, -1, -1):
            message = self.messages[record]
            for index in range(len(message.parts) - 1, -1, -1):
                left -= _is_of_kind(rule.kind, message.role, message.parts[index])
                if left == 0:
                    return min(by_messages, (record, index))
        return (0, 0)


def _was_shown_before(rule: PruneRule, text: str) -> tuple[str, str]:
    """The text without the marker that this rule put at its end in an earlier run, and the id in that marker.

    The id is kept when the text is cut further, as it names the record that was still whole. Without such a marker: the
    text itself and an empty id.
    """
    if rule.last_chars or "{id}" not in rule.marker:
        return text, ""
    marker = re.escape(rule.marker).replace(re.escape("{omitted}"), r"\d+")
    before, _, following = marker.partition(re.escape("{id}"))
    found = re.search(
        f"{before}(?P<id>[0-9a-f]{{8,64}}:[0-9]+){following.replace(re.escape('{id}'), '(?P=id)')}$", text
    )
    return (text[: found.start()], found["id"]) if found else (text, "")


def halved(rule: PruneRule) -> PruneRule:
    """The rule with its limits halved."""
    return replace(
        rule,
        over_chars=rule.over_chars // 2,
        over_tokens=rule.over_tokens // 2,
        first_chars=rule.first_chars // 2,
        last_chars=rule.last_chars // 2,
    )


def with_edits(messages: Sequence[Message], edits: Iterable[Shortening]) -> tuple[Message, ...]:
    """The messages with these edits made."""
    changed = list(messages)
    for item in edits:
        message, text = changed[item.edit.record], item.edit.text
        parts = list(message.parts)
        part = parts[item.edit.part]
        if isinstance(part, Text | ToolResult):
            parts[item.edit.part] = replace(part, text=text)
        elif isinstance(part, ToolCall):
            arguments = text if isinstance(part.arguments, str) else json.loads(text)
            parts[item.edit.part] = replace(part, arguments=arguments)
        changed[item.edit.record] = replace(message, parts=tuple(parts))
    return tuple(changed)


def _is_of_kind(kind: PartKind, role: Role, part: Part) -> bool:
    if isinstance(part, ToolCall):
        return kind is PartKind.ARGUMENTS
    if isinstance(part, ToolResult):
        return kind in (PartKind.RESULT, PartKind.ANY)
    return isinstance(part, Text) and role is not Role.SYSTEM and role in _SPEAKERS.get(kind, ())


def _is_long(rule: PruneRule, role: Role, part: Part) -> bool:
    return _is_of_kind(rule.kind, role, part) and len(_text_of(part)) > rule.over_chars


def _key_paths(rule: PruneRule, text_object: dict[str, Any]) -> list[list[str]]:
    """The paths of the rule's keys at which this object has something; strings of JSON on the way are parsed."""

    def is_there(path: Sequence[str]) -> bool:
        value: Any = text_object
        for key in path:
            value = _object(value) if isinstance(value, str) else value
            if not isinstance(value, dict) or key not in value:
                return False
            value = value[key]
        return True

    return list(filter(is_there, (key.split(".") for key in rule.keys)))


def _object(text: str) -> dict[str, Any]:
    """The JSON object that this text holds; empty if it is not one."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _text_of(part: Part) -> str:
    if isinstance(part, ToolCall):
        return arguments_text(part)
    return part.text if isinstance(part, Text | ToolResult) else ""


def _short_text(rule: PruneRule, text: str) -> str:
    """The text shortened by a rule; a rule with keys shortens the strings there, if the text is a JSON object."""
    if not rule.keys:
        return shortened(text, rule.first_chars, rule.last_chars, rule.marker)
    value = _object(text)
    paths = _key_paths(rule, value)
    for path in paths:
        _shorten_at(rule, value, path)
    return json.dumps(value, ensure_ascii=False, default=str) if paths else text


def _shorten_at(rule: PruneRule, value: dict[str, Any], keys: Sequence[str]) -> None:
    """Shorten the string at this path of a parsed object, or remove it if the rule leaves nothing of it.

    Strings of JSON on the way stay strings.
    """
    key, inner = keys[0], value[keys[0]]
    if len(keys) > 1:
        opened = _object(inner) if isinstance(inner, str) else inner
        _shorten_at(rule, opened, keys[1:])
        value[key] = json.dumps(opened, ensure_ascii=False, default=str) if isinstance(inner, str) else opened
    elif not rule.first_chars and not rule.last_chars:
        del value[key]
    elif isinstance(inner, str):
        first, last = rule.first_chars // KEY_DIVISOR, rule.last_chars // KEY_DIVISOR
        value[key] = shortened(inner, first, last, rule.marker)


def _short_values(rule: PruneRule, value: Any) -> Any:
    if isinstance(value, str):
        return _short_text(rule, value) if len(value) > rule.over_chars else value
    if isinstance(value, Mapping):
        return {key: _short_values(rule, item) for key, item in value.items()}
    return [_short_values(rule, item) for item in value] if isinstance(value, list) else value
