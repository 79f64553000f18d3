"""Layout of the history: key lines under their turn and under the file, command or tool they come from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compactor_cli.digest.candidates import Form
from compactor_cli.digest.events import EventKind, ToolKind
from compactor_cli.digest.keylines import KeyLine
from compactor_cli.digest.language import Words
from compactor_cli.digest.places import Told
from compactor_cli.digest.quote import listed, plain_line, records_of
from compactor_cli.model.summary import Item

_SPOKEN = (EventKind.USER, EventKind.ASSISTANT, EventKind.SUMMARY)
# A line of a plan call with fewer blanks is a state or a number.
_LEAST_BLANKS = 3


@dataclass(slots=True, kw_only=True)
class _Block:
    """Key lines under one label; ``names`` are lists of names that no line tells."""

    label: str
    records: list[int] = field(default_factory=list)
    lines: dict[str, None] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    is_empty: bool = True

    def put(self, line: KeyLine) -> None:
        """Adds a key line, without what the label or the plan's own section says already."""
        if line.tool is ToolKind.PLAN and (line.form is Form.NAME or line.text.count(" ") < _LEAST_BLANKS):
            return
        self.is_empty = False
        self.records.extend(line.records)
        if line.form is Form.NAME:
            self.names.extend(name for name in line.text.split(", ") if name not in self.label)
            return
        for text in (line.lead, *line.text.split("\n")):
            shown = plain_line(text) if line.kind in _SPOKEN else listed(text.strip())
            if shown:
                self.lines[shown] = None

    def items(self, words: Words, depth: int) -> tuple[Item, ...]:
        """The block as one item; none where it says nothing."""
        lines = list(self.lines)
        label = self.label
        if label.startswith("`") and lines and lines[0].startswith(label.strip("`")):
            # The command itself is the first line: the label, its beginning, would say it twice.
            label, lines = f"`{lines[0]}`", lines[1:]
        elif lines and lines[0].startswith(label.partition(" ")[2] or "\n"):
            label = label.partition(" ")[0]
        told = Told("\n".join(lines))
        if names := [name for name in self.names if name not in told]:
            lines.append(f"{words.also}{words.colon}{', '.join(names)}")
        if label and len(lines) > 1:
            lines.insert(0, f"{label}{words.colon}".rstrip())
        elif label:
            lines = [words.colon.join([label, *lines])]
        text = "" if self.is_empty else "\n".join(lines)
        return (Item(text=text, records=records_of(self.records), depth=depth),) if text else ()


def history(
    turn_items: Mapping[int, Item], lines: Iterable[KeyLine], words: Words, names: Mapping[str, str]
) -> tuple[Item, ...]:
    """The turns' lines in order, each with its key lines beneath it; what no turn's line stands before comes first.

    ``names``: shorter names for the labels that are told in full elsewhere.
    """
    numbers = sorted(turn_items)
    beneath: dict[int, dict[str, _Block]] = {}
    for line in lines:
        at = bisect_right(numbers, line.turn)
        blocks = beneath.setdefault(numbers[at - 1] if at else -1, {})
        # What was said has no label: each event of it is a block of its own, so that it stays in order.
        key = line.label or f"\n{line.event}"
        blocks.setdefault(key, _Block(label=names.get(line.label, line.label))).put(line)
    items = [] if -1 in turn_items else _all_items(beneath.get(-1, {}), words, 0)
    for number in numbers:
        items.append(turn_items[number])
        items.extend(_all_items(beneath.get(number, {}), words, 1))
    return tuple(items)


def remembered(lines: Iterable[KeyLine], words: Words, names: Mapping[str, str]) -> tuple[Item, ...]:
    """Key lines that no record of the conversation shows any more: from an earlier summary."""
    blocks: dict[str, _Block] = {}
    for line in lines:
        blocks.setdefault(line.label, _Block(label=names.get(line.label, line.label))).put(line)
    return tuple(_all_items(blocks, words, 0))


def _all_items(blocks: Mapping[str, _Block], words: Words, depth: int) -> list[Item]:
    return [item for block in blocks.values() for item in block.items(words, depth)]
