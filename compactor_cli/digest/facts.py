"""Facts: outcomes of calls that changed the world, commands that work here, and values that were looked up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from compactor_cli.digest.choice import Choice
from compactor_cli.digest.commands import ERROR_PATTERN, CommandOutcome, Run, error_line, shown
from compactor_cli.digest.events import Event, EventKind, ToolKind, is_lookup, is_own, parameters, results_of
from compactor_cli.digest.language import FixedWords
from compactor_cli.digest.statements import ELLIPSIS, Statement, StatementForm, TokenCache, chosen, opening, records_of
from compactor_cli.digest.statuses import is_shown, is_test
from compactor_cli.model.summary import Item

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

# The arguments of a call are shown in as many characters as leave half of the room to other texts, within these.
_SIZES_CHARS = (80, 400)
_CHARS_PER_TOKEN = 4
# What actions may take of the section where the rest is what was looked up.
_ACTIONS_RATIO = 0.65
_MAX_ARGUMENT_CHARS, _MAX_REPORTED_CHARS = 60, 100
_MAX_VALUE_CHARS = 48
_MAX_COMMAND_CHARS = 120
_MAX_LINES = 200
_MAX_BRIEF = 6
_MAX_OBJECT_CHARS = 240
# Events before an action that are looked at for what its answer only repeats.
_MAX_LOOKED_BACK = 40


def fact_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """What changed the world, newest first; then actions by other tools, look-ups, tests and other commands."""
    words = analysis.words
    ranked = _ranked_runs(analysis.runs)
    known = {run.key for run, _ in ranked}
    carried = [
        Item(text=text)
        for text in reversed(analysis.memory.commands)
        if text.partition("` ")[0].strip("`") not in known
    ]
    shown_runs = [(run, times) for run, times in ranked if not _is_shown_elsewhere(run, analysis)]
    older = analysis.work.older
    elsewhere = analysis.work.elsewhere
    items = [
        (run, _run_item(run, times, words, is_older=run.event in older, folder=elsewhere.get(run.event, "")))
        for run, times in shown_runs
    ]
    world = [item for run, item in items if run.changes_world]
    rest = [item for run, item in items if not run.changes_world]
    actions = action_items(
        analysis.events, int(budget_tokens * (0.5 if ranked else _ACTIONS_RATIO)), token_cache, words
    )
    left = budget_tokens - sum(map(token_cache.item, actions))
    values = () if ranked else value_items(analysis, left, token_cache)
    if analysis.work.branch:
        text = f"{words.branch} {analysis.work.branch}"
        world.insert(0, Item(text=text, records=records_of((analysis.work.branch_record,))))
    offers = {item.text: item for item in (*carried, *reversed((*world, *actions, *values, *rest))) if item.text}
    return chosen(reversed(offers.values()), budget_tokens, token_cache)


def _is_shown_elsewhere(run: Run, analysis: Analysis) -> bool:
    """Whether an error, or the branch, says what came of a run."""
    if run.outcome is CommandOutcome.FAILED:
        return any(error.line == run.line and is_shown(error, len(analysis.events)) for error in analysis.errors)
    return run.line.startswith(("Switched to branch '", "Already on '")) and bool(analysis.work.branch)


def _ranked_runs(runs: Sequence[Run]) -> list[tuple[Run, int]]:
    """The newest run of each command that acts, with how many ended as it did; tests first, then the newest."""
    by_key: dict[str, list[Run]] = {}
    for run in runs:
        if not run.is_look and (run.outcome is not CommandOutcome.UNKNOWN or run.line):
            by_key.setdefault(_same_action(run), []).append(run)
    groups = sorted(by_key.values(), key=lambda group: (not is_test(group[-1].command), -group[-1].event))
    return [(group[-1], sum(run.outcome is group[-1].outcome for run in group)) for group in groups]


def _same_action(run: Run) -> str:
    """A key that calls of a service share which differ in numbers and texts only, and whose answers say nothing."""
    if run.line or not run.changes_world:
        return run.key
    return re.sub(r"\d+", "0", re.split(r"[\"']", run.key, maxsplit=1)[0])


def _run_item(run: Run, times: int, words: FixedWords, *, is_older: bool = False, folder: str = "") -> Item:
    line = opening(shown(run.acting_part), _MAX_COMMAND_CHARS)
    often = f" ×{times}" if times > 1 else ""
    place = f" ({folder})" if folder else ""
    if run.outcome is CommandOutcome.UNKNOWN:
        often += f" ({words.older})" if is_older else ""
        return Item(
            text=f"`{line}`{place}{often} → {run.line}" if line else "", records=records_of((run.result_record,))
        )
    outcome = words.ok if run.outcome is CommandOutcome.OK else words.failed
    often += f" {words.older}" if is_older else ""
    detail = f"{words.colon}{run.line}" if run.line else ""
    # That something went well says little, unless it changed the world or checked the work.
    is_telling = bool(detail) or run.changes_world or is_test(run.command)
    text = f"`{line}`{place} → {outcome}{often}{detail}" if line and is_telling else ""
    return Item(text=text, records=records_of((run.result_record,)))


def remembered_commands(analysis: Analysis) -> tuple[str, ...]:
    """Every acting command with its last outcome as a line, for the next digest, oldest first."""
    ranked = _ranked_runs(analysis.runs)
    new = [_run_item(run, times, analysis.words).text for run, times in reversed(ranked)]
    names = {text.partition("` ")[0] for text in new}
    return (*(text for text in analysis.memory.commands if text.partition("` ")[0] not in names), *filter(None, new))


def action_items(
    events: Sequence[Event], budget_tokens: int, token_cache: TokenCache, words: FixedWords
) -> tuple[Item, ...]:
    """Calls that changed something through other tools than files and shell, newest first: ``name(…) → outcome``.

    A call that failed is left out where a later one of the same tool went well.
    """
    results = results_of(events)
    found: dict[str, Item] = {}
    went_well: set[str] = set()
    left = budget_tokens
    acting = [e for e in events if e.kind is EventKind.CALL and e.tool is ToolKind.OTHER and not is_lookup(e.name)]
    chars = min(max(budget_tokens * _CHARS_PER_TOKEN // max(1, 2 * len(acting)), _SIZES_CHARS[0]), _SIZES_CHARS[1])
    for number in range(len(events) - 1, -1, -1):
        call = events[number]
        if call.kind is not EventKind.CALL or call.tool is not ToolKind.OTHER:
            continue
        if is_lookup(call.name) or is_own(call.name):
            continue
        result = results.get(number)
        failed = result is not None and _is_failure(result)
        if failed and call.name in went_well:
            continue
        if result and not failed:
            went_well.add(call.name)
        known = "\n".join(event.text for event in events[max(0, number - _MAX_LOOKED_BACK) : number + 1])
        item = _action_item(call, result, chars, words, known)
        if item.text not in found and (cost := token_cache.item(item)) <= left:
            found[item.text] = item
            left -= cost
    return tuple(found.values())


def _is_failure(result: Event) -> bool:
    return result.is_error or ERROR_PATTERN.search(result.text.lstrip().partition("\n")[0]) is not None


def _action_item(call: Event, result: Event | None, chars: int, words: FixedWords, known: str) -> Item:
    text = f"{call.name}({words.comma.join(_fitting(_given(call.arguments), chars))})"
    if result is None:
        return Item(text=text, records=records_of((call.record,)))
    if _is_failure(result):
        outcome = f"{words.failed}{words.colon}{opening(error_line(result.text), chars)}"
    else:
        outcome = _reported(result.text, known, words) or words.ok
    return Item(text=f"{text} → {outcome}", records=records_of((call.record, result.record)))


def _given(arguments: Mapping[str, Any] | str) -> Iterator[str]:
    """The arguments of a call, each as ``key=value``; of a list of objects each object by its values."""
    if isinstance(arguments, str):
        yield opening(arguments, _MAX_ARGUMENT_CHARS)
        return
    for key, value in arguments.items():
        parts = value if isinstance(value, list | tuple) else (value,)
        texts = (
            " ".join(filter(None, (_member(name, one) for name, one in part.items())))
            if isinstance(part, Mapping)
            else _scalar(part)
            for part in parts
        )
        if text := "; ".join(filter(None, texts)):
            yield opening(f"{key}={text}", _MAX_ARGUMENT_CHARS * len(parts))


# Keys of what a call is about and what it costs: they stand where not all arguments fit.
_TELLING_KEY = re.compile(
    r"(?:^|_)(?:status|id|ids|number|amount|total|price|cost|refund|quantity|reason|title|flights|items"
    r"|payment\w*)s?$"
)


_AMOUNT_KEY = re.compile(r"(?:^|_)(?:status|amount|total|refund)$")


def _fitting(parts: Iterable[str], chars: int) -> list[str]:
    """The parts that fit, in order, those with telling keys before others; an ellipsis where one is left out."""
    found = list(parts)
    ranked = sorted(range(len(found)), key=lambda place: not _TELLING_KEY.match(found[place].partition("=")[0]))
    taken: set[int] = set()
    for place in ranked:
        if len(found[place]) <= chars:
            taken.add(place)
            chars -= len(found[place])
    return [part for place, part in enumerate(found) if place in taken] + [ELLIPSIS] * (len(taken) < len(found))


def _reported(text: str, known: str, words: FixedWords) -> str:
    """What an answer tells that is not known: of an object its status, ids and amounts; else its first line."""
    line = text.strip().partition("\n")[0]
    if text.lstrip()[:1] not in "{[":
        return opening(line, _MAX_REPORTED_CHARS) if line else ""
    try:
        members = list(dict.fromkeys(_members(json.loads(text))))
    except ValueError:
        return line if len(line) <= _MAX_REPORTED_CHARS else ""
    new = [f"{key} {value}" for key, value in members if key == "status" or value not in known]
    ranked = sorted(new, key=lambda part: not part.startswith("status"))
    return words.comma.join(_fitting(ranked, _MAX_REPORTED_CHARS)).removesuffix(f"{words.comma}{ELLIPSIS}")


def _members(value: Any, *, is_outer: bool = True) -> Iterator[tuple[str, str]]:
    """The members of an object that have telling keys, then the states and amounts of what it holds."""
    inner = value if isinstance(value, list) else []
    if isinstance(value, dict):
        stated = (key for key, one in value.items() if _is_scalar(one) and one not in (None, "", False))
        wanted = _TELLING_KEY if is_outer else _AMOUNT_KEY
        yield from ((key, _scalar(value[key])) for key in stated if wanted.search(key))
        inner = [one for one in value.values() if not _is_scalar(one)]
    for one in inner:
        yield from _members(one, is_outer=False)


def value_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """What was looked up: ``name(arguments): object · object``, of each look-up the newest answer.

    Chosen are the objects that hold most of what the conversation speaks of, or will need again.
    """
    found = Choice(list(_values(analysis)), (), analysis.worth, token_cache.text).choose(budget_tokens)
    by_answer: dict[int, list[Statement]] = {}
    for statement in reversed(found):
        by_answer.setdefault(statement.event, []).insert(0, statement)
    return tuple(
        Item(text=f"{group[0].label}: {' · '.join(one.text for one in group)}", records=records_of((group[0].record,)))
        for group in by_answer.values()
    )


def _values(analysis: Analysis) -> Iterator[Statement]:
    """The objects of every look-up's answer, each once, newest answers first."""
    results = results_of(analysis.events)
    asked: set[str] = set()
    known: set[str] = set()
    for number, result in sorted(results.items(), reverse=True):
        call = analysis.events[number]
        if call.tool is not ToolKind.OTHER or result.is_error or not is_lookup(call.name) or call.text in asked:
            continue
        asked.add(call.text)
        given = ", ".join(v for _, v in parameters(call.arguments) if 0 < len(v) <= _MAX_VALUE_CHARS and "\n" not in v)
        for place, text in enumerate(_objects(result.text)):
            if text not in known:
                known.add(text)
                yield Statement(
                    text=text,
                    event=number,
                    place=place,
                    form=StatementForm.OUTPUT,
                    label=f"{call.name}({given})",
                    record=result.record,
                    weight=1.0 + number / len(analysis.events),
                )


def _objects(text: str) -> Iterator[str]:
    """The objects of a JSON answer, each by its own members; the lines of any other."""
    body = text.strip()
    if body[:1] in "{[":
        try:
            yield from _leaves(json.loads(body), "")
            return
        except ValueError:
            pass
    yield from (line.strip() for line in body.split("\n")[:_MAX_LINES] if 3 < len(line.strip()) <= _MAX_OBJECT_CHARS)


def _leaves(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        own = [_member(key, item) for key, item in value.items() if _is_brief(item) and str(item) != name]
        yield from _object_line(name, filter(None, own))
        for key, item in value.items():
            if not _is_brief(item):
                yield from _leaves(item, str(key))
    elif isinstance(value, list):
        if value and all(map(_is_scalar, value)):
            yield from _object_line(name, map(_scalar, value))
        else:
            for item in value:
                yield from _leaves(item, name)
    elif name or value:
        yield from _object_line(name, (_scalar(value),))


def _object_line(name: str, members: Iterable[str]) -> Iterator[str]:
    """An object on a line, as many of its members as fit: half an id would be another one."""
    parts = _fitting((opening(member, _MAX_OBJECT_CHARS - 2) for member in members), _MAX_OBJECT_CHARS)
    if text := ", ".join(parts).removeprefix(ELLIPSIS):
        yield f"{name}: {text}" if name else text


def _is_brief(value: Any) -> bool:
    """Whether a value stands in its object's line: a scalar, or a small object of scalars."""
    if isinstance(value, dict):
        return len(value) <= _MAX_BRIEF and all(map(_is_scalar, value.values()))
    return _is_scalar(value)


def _member(key: str, value: Any) -> str:
    """A member of an object: its value alone where that tells by itself what it is; nothing for an empty one."""
    if isinstance(value, Mapping):
        own = (_member(name, item) for name, item in value.items() if item != key)
        return f"{key} {' '.join(filter(None, own))}"
    if value is None or value == "":
        return ""
    text = _scalar(value)
    is_plain = key == "date" or (isinstance(value, str) and _SPEAKS.search(text) is not None)
    return text if is_plain else f"{key} {text}"


# Letters next to digits or other letters of a name; a bare number, date or short word needs its key.
_SPEAKS = re.compile(r"[A-Za-z]{2}.*[\d_@ ]|\d.*[A-Za-z]{2}|^[A-Z][a-z]+$|^[a-z]{6,}|^\d{1,2}:\d\d|[^\x00-\x7f]{2}")


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, (Mapping, list, tuple))


def _scalar(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
