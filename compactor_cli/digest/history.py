"""History: turn by turn, what was asked and the statements that explain what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from compactor_cli.digest.analysis import Analysis
from compactor_cli.digest.files import FileAction
from compactor_cli.digest.labels import short_names
from compactor_cli.digest.quote import TokenCache, listed, records_of
from compactor_cli.digest.statements import Statement, StatementForm
from compactor_cli.digest.turn_lines import DigestTurn, line_of, name_of, shared_line
from compactor_cli.digest.words import terms
from compactor_cli.group.exchanges import topics
from compactor_cli.model.summary import Item

_LINE_CHARS = 240
# A line of a turn takes about this many tokens; this many turns of one topic share one at most.
_LINE_TOKENS, _TURNS_PER_LINE = 40, 6
# By hierarchy, every turn has a line, and all of them at most this share of the summary.
HIERARCHY_RATIO = 0.5


def history_items(
    analysis: Analysis, chosen: Sequence[Statement], lines: dict[int, Item], *, with_names: bool = True
) -> tuple[Item, ...]:
    """The statements under their turn, each event or output one item; a turn without any has its line only.

    ``lines``: items that open turns whether or not a statement of theirs was chosen, by the turn's number.
    ``with_names``: whether the other turns are opened by what was asked, which small summaries quote elsewhere.
    """
    items: list[Item] = []
    by_turn: dict[int, list[Statement]] = {}
    for statement in chosen:
        if statement.event >= 0:
            by_turn.setdefault(analysis.events[statement.event].turn, []).append(statement)
    for turn in analysis.turns:
        statements = by_turn.get(turn.number, [])
        opening = lines.get(turn.number)
        if with_names and opening is None and statements and (name := name_of(turn)):
            opening = Item(text=name, records=records_of((analysis.events[turn.first].record,)))
        if opening is not None:
            items.append(opening)
        items.extend(_grouped(statements, 1 if opening else 0, analysis))
    return tuple(items)


def remembered_items(chosen: Sequence[Statement]) -> tuple[Item, ...]:
    """Statements of records that are gone, under the labels they had."""
    return tuple(_grouped([statement for statement in chosen if statement.event < 0], 0, None))


def turn_lines(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> dict[int, Item]:
    """A line for every turn; where not all fit, the oldest share one with the turns of their topic."""
    turns = analysis.turns
    single = min(len(turns), max(1, budget_tokens // (2 * _LINE_TOKENS)))
    if len(turns) * _LINE_TOKENS <= budget_tokens:
        single = len(turns)
    chars = max(60, min(_LINE_CHARS, budget_tokens * 4 // max(1, 2 * single)))
    changed = _changed_by_turn(analysis)
    found: dict[int, Item] = {}
    left = budget_tokens
    lines: list[tuple[Sequence[DigestTurn], str]] = [
        (group, shared_line(group, analysis.events, _LINE_CHARS)) for group in _by_topic(turns[: len(turns) - single])
    ]
    for turn in turns[len(turns) - single :]:
        lines.append(([turn], line_of(turn, analysis.events, chars, changed.get(turn.number, ()))))
    for group, text in reversed(lines):
        item = Item(text=text, records=records_of(analysis.events[turn.first].record for turn in (group[0], group[-1])))
        if text and (cost := token_cache.item(item)) <= left:
            found[group[0].number] = item
            left -= cost
    return found


def _by_topic(turns: Sequence[DigestTurn]) -> list[Sequence[DigestTurn]]:
    """Turns in groups of one topic, of this many at most."""
    groups: list[Sequence[DigestTurn]] = []
    for topic in topics([terms(turn.asked) for turn in turns]):
        group = turns[topic.start : topic.stop]
        groups += [group[start : start + _TURNS_PER_LINE] for start in range(0, len(group), _TURNS_PER_LINE)]
    return groups


def _changed_by_turn(analysis: Analysis) -> dict[int, list[str]]:
    """The names of the files that each turn changed."""
    found: dict[int, dict[str, None]] = {}
    for operation in analysis.operations:
        if operation.action is not FileAction.READ:
            number = analysis.events[operation.event].turn
            found.setdefault(number, {})[operation.path.rpartition("/")[2]] = None
    return {number: list(names) for number, names in found.items()}


def _grouped(statements: Iterable[Statement], depth: int, analysis: Analysis | None) -> list[Item]:
    """One item for the neighbouring statements of a message, one for each label of output."""
    groups: dict[tuple[int, str], list[Statement]] = {}
    for statement in statements:
        key = (-1, statement.label) if statement.label else (statement.event, "")
        if statement.event < 0 and not statement.label:
            key = (-2 - statement.at_tokens, "")
        groups.setdefault(key, []).append(statement)
    short = short_names(label for _, label in groups if label and "/" in label and " " not in label)
    items = [_item(short.get(label, label), group, depth) for (_, label), group in groups.items()]
    if analysis:
        overruled = f"({analysis.words.overruled}) "
        items = [
            replace(item, text=f"{overruled}{item.text}") if group[0].event in analysis.taken_back else item
            for item, group in zip(items, groups.values(), strict=True)
        ]
    return [item for item in items if item.text]


def _item(label: str, group: Sequence[Statement], depth: int) -> Item:
    """The statements of a message as running text; a new heading, and each entry under one, opens a line."""
    lines: list[str] = []
    above: list[str] = []
    is_entry = False
    for statement in group:
        entry = statement.form is not StatementForm.SENTENCE
        piece = listed(statement.text.strip())
        leads = statement.lead.split("\n") if statement.lead else []
        if leads != above or not lines:
            new = [lead for place, lead in enumerate(leads) if above[place : place + 1] != [lead]]
            lines.append(" ".join([*(lead if lead.endswith((":", "：")) else f"{lead}:" for lead in new), piece]))
            above = leads
        else:
            lines[-1] += f" · {piece}" if entry and is_entry else f" {piece}"
        is_entry = entry
    text = "\n".join(lines)
    if label and not text.startswith(label.strip("`")):
        text = f"{label}: {text}"
    return Item(text=text, records=records_of(statement.record for statement in group), depth=depth)
