"""History: turn by turn, what was asked and the statements that explain what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from compactor_cli.digest.analysis import Analysis
from compactor_cli.digest.labels import short_names
from compactor_cli.digest.quote import Meter, listed, records_of
from compactor_cli.digest.statements import Form, Statement
from compactor_cli.digest.turns import line_of, name_of
from compactor_cli.model.summary import Item

_LINE_CHARS = 240
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


def turn_lines(analysis: Analysis, budget_tokens: int, meter: Meter) -> dict[int, Item]:
    """A line for every turn, newest preferred where not all fit."""
    found: dict[int, Item] = {}
    left = budget_tokens
    chars = max(60, min(_LINE_CHARS, budget_tokens * 4 // max(1, len(analysis.turns))))
    for turn in reversed(analysis.turns):
        text = line_of(turn, analysis.events, chars)
        item = Item(text=text, records=records_of((analysis.events[turn.first].record,)))
        if text and (cost := meter.item(item)) <= left:
            found[turn.number] = item
            left -= cost
    return found


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
        entry = statement.form is not Form.SENTENCE
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
