"""History: turn by turn, what was asked and the statements that explain the outcome; other clients' summaries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from compactor_cli.digest.atoms import find_atoms
from compactor_cli.digest.choice import origin
from compactor_cli.digest.corrections import GIVES_VERDICT, TELLS_WHAT_IS_OPEN, standing
from compactor_cli.digest.error_lines import ERROR_PATTERN
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.language import FixedWords, terms
from compactor_cli.digest.messages import (
    ASKS_FOR,
    UserMessage,
    asked_briefly,
    asked_label,
    is_pasted,
    without_preface,
    without_quotes,
)
from compactor_cli.digest.names import lines_read, short_names
from compactor_cli.digest.replies import asks, is_assent
from compactor_cli.digest.runs import CommandOutcome
from compactor_cli.digest.services import call_text
from compactor_cli.digest.statements import (
    QUESTION_MARKS,
    Mark,
    Statement,
    StatementForm,
    TokenCache,
    chosen,
    cut_lists,
    records_of,
    running_text,
)
from compactor_cli.digest.texts import listed, one_line, opening, plain_line
from compactor_cli.digest.tools import FileAction, ToolKind
from compactor_cli.digest.wants import NAME_CHARS, joined, newest_request, stop_before, with_question
from compactor_cli.group.exchanges import topics
from compactor_cli.model.patterns import pattern
from compactor_cli.model.summary import Item
from compactor_cli.model.value import dataclass

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestTurn:
    """One turn: what the user asked, and the events up to the user's next message."""

    number: int
    asked: str  # the user's words on one line, without quotations and prefaces
    first: int  # position of its first event
    last: int  # position of its last event
    closing: int  # position of the assistant's last message, -1 without one


def turns_of(events: Sequence[Event]) -> tuple[DigestTurn, ...]:
    """The turns in order; turn 0 holds the events before the user's first message, if there are any."""
    found: list[DigestTurn] = []
    for turn, numbers in groupby(range(len(events)), key=lambda number: events[number].turn):
        own = list(numbers)
        words = (events[number].text for number in own if events[number].kind is EventKind.USER)
        asked = " ".join(one_line(without_preface(without_quotes(text))) for text in words)
        closing = next((number for number in reversed(own) if events[number].kind is EventKind.ASSISTANT), -1)
        found.append(DigestTurn(number=turn, asked=asked, first=own[0], last=own[-1], closing=closing))
    return tuple(found)


def finals(turns: Sequence[DigestTurn]) -> frozenset[int]:
    """The positions of the assistant's messages that end a turn."""
    return frozenset(turn.closing for turn in turns if turn.closing >= 0)


def line_of(turn: DigestTurn, events: Sequence[Event], chars: int, changed: Sequence[str] = ()) -> str:
    """``"asked" → changed files → how the assistant's last message begins``, in about this many characters."""
    asked = opening(turn.asked, min(max(chars // 3, 40), NAME_CHARS))
    files = opening(", ".join(changed), max(chars // 3, 30))
    left = chars - len(asked) - len(files)
    closing = opening(events[turn.closing].text, max(40, left)) if turn.closing >= 0 else ""
    return " → ".join(part for part in (f'"{asked}"' if asked else "", files, closing) if part)


def shared_line(turns: Sequence[DigestTurn], events: Sequence[Event], chars: int) -> str:
    """One line for several turns of one topic: what was asked in each, then the outcome of the last one."""
    names = " · ".join(f'"{asked}"' for turn in turns if (asked := opening(turn.asked, NAME_CHARS)))
    outcome = line_of(replace(turns[-1], asked=""), events, max(40, chars - len(names)))
    return f"{names} → {outcome}" if names and outcome else names


_LINE_CHARS = 240
# Estimated tokens of a turn's line; most turns of one topic that share a line.
_LINE_TOKENS, _TURNS_PER_LINE = 40, 6
# In a hierarchical summary every turn has a line, and all lines together take at most this share of it.
HIERARCHY_RATIO = 0.5


def history_items(
    analysis: Analysis,
    taken: Sequence[Statement],
    lines: Mapping[int, Item],
    quoted: Mapping[int, Item],
    *,
    with_names: bool = True,
) -> tuple[Item, ...]:
    """The statements under their turns, those of one event or output as one item; a turn without any has its line only.

    ``lines``: by turn number, items that open a turn whether or not a statement of it was chosen.
    ``quoted``: by record, the items with which another section would quote the user's messages; a turn is opened by
    its own.
    ``with_names``: whether other turns with statements open with what was asked; small summaries quote that elsewhere.
    """
    items: list[Item] = []
    owners = _added_to(analysis)
    by_turn: dict[int, list[Statement]] = {}
    for statement in taken:
        if statement.event >= 0 and not _is_of_summary(statement, analysis):
            turn_number = analysis.events[statement.event].turn
            by_turn.setdefault(owners.get(turn_number, turn_number), []).append(statement)
    messages = {message.turn: message for message in analysis.messages if not message.stopped}
    for turn in analysis.turns:
        statements = by_turn.get(turn.number, [])
        line = lines.get(turn.number)
        if line is None and with_names and statements:
            record = analysis.events[turn.first].record
            line = _opening_line(turn, messages.get(turn.number), quoted.get(record), analysis)
        if line is not None:
            items.append(_without_answer(line, statements, analysis.words))
        grouped = _exchange if analysis.is_dialogue else _grouped
        items.extend(grouped(statements, 1 if line else 0, analysis))
    return tuple(items)


def _added_to(analysis: Analysis) -> dict[int, int]:
    """By the number of a turn that begins with a remark during the work, or an answer to a tool, the turn before.

    What is said after such words (`The page is …/7`) answers the request that was under way.
    """
    found: dict[int, int] = {}
    for before, turn in pairwise(analysis.turns):
        first = analysis.events[turn.first]
        is_remark = first.interjects and not (asks(first.text) or ASKS_FOR.search(first.text))
        if is_remark or (first.is_answer and before.asked):
            found[turn.number] = found.get(before.number, before.number)
    return found


def _without_answer(line: Item, statements: Iterable[Statement], words: FixedWords) -> Item:
    """The line of a turn, without the answer in it if one of the statements below contains how that begins."""
    asked, replied, answer = line.text.partition(f" → {words.replied}{words.colon}")
    is_below = replied and any(answer[:_SAME_ANSWER_CHARS] in one.text for one in statements)
    return replace(line, text=f"{asked} → {words.replied}") if is_below else line


_SAME_ANSWER_CHARS = 30


def made_lines(
    analysis: Analysis, quoted: Collection[int], budget_tokens: int, token_cache: TokenCache
) -> dict[int, Item]:
    """By turn number, the lines of the newest turns that made something (a commit, an address), as many as fit.

    Left out are the newest request and turns whose record is in ``quoted``: another section shows their outcome.
    """
    messages = {message.turn: message for message in analysis.messages if not message.stopped}
    newest = newest_request(analysis)
    lines: dict[Item, int] = {}
    for turn in reversed(analysis.turns):
        outcome, record = analysis.outcomes.get(turn.number), analysis.events[turn.first].record
        if not (outcome and outcome.is_made) or record in quoted or (newest and newest.turn == turn.number):
            continue
        if line := _opening_line(turn, messages.get(turn.number), None, analysis):
            lines[line] = turn.number
    return {lines[line]: line for line in chosen(lines, budget_tokens, token_cache)}


def _opening_line(
    turn: DigestTurn, message: UserMessage | None, quoted: Item | None, analysis: Analysis
) -> Item | None:
    """What was asked in a turn, with its outcome; None where nothing was asked.

    A short answer to a question is shown with that question.
    """
    words = analysis.words
    answers_tool = analysis.events[turn.first].is_answer
    # A message that asks something back does not answer the question.
    is_answer = message and (message.is_short or is_assent(message.text) or answers_tool) and not asks(message.text)
    if message and is_answer and message.replies_to.endswith(QUESTION_MARKS):
        asked = with_question(message, opening(turn.asked or message.text, NAME_CHARS), words)
    elif quoted is not None:
        return replace(quoted, text=asked_line(quoted, words))
    elif turn.asked:
        text = message.text if message and is_pasted(message.text) else turn.asked
        asked = f"{asked_label(text, words)}{words.colon}{asked_briefly(text, NAME_CHARS)}"
    else:
        return None
    named = f"{asked} ({message.points_at})" if message and message.points_at else asked
    named += stop_before(message, words) if message else ""
    outcome = analysis.outcomes.get(turn.number)
    before = (one.text for number, one in analysis.outcomes.items() if number < turn.number)
    # What came of the request that was under way is stated there.
    is_stated = answers_tool and outcome is not None and outcome.text in before
    text = f"{named} → {outcome.text}" if outcome and not is_stated else named
    return Item(text=text, records=records_of((analysis.events[turn.first].record,)))


def asked_line(quoted: Item, words: FixedWords) -> str:
    """The line that opens a turn whose words are quoted: the quotation with a label before it."""
    return f"{asked_label(quoted.text.rpartition(' → ')[0] or quoted.text, words)}{words.colon}{quoted.text}"


def _exchange(statements: Sequence[Statement], depth: int, analysis: Analysis) -> list[Item]:
    """One item for a turn of a dialogue: the user's words, quoted, then what was done, shown and answered, in order.

    An empty list where there are no statements.
    """
    words = analysis.words
    groups = [
        list(pieces) for _, pieces in groupby(statements, key=lambda one: (one.event, one.label == words.thought))
    ]
    marks, parts = _marks(groups, analysis), list[str]()
    for group in groups:
        kind = analysis.events[group[0].event].kind
        if group[0].label == words.thought:
            parts.append(f"{words.thought}{words.colon}{running_text(group, marks)}")
        elif kind is EventKind.USER:
            parts.append(words.quoted(joined(group)))
        else:
            text = call_text(group, words) if kind is EventKind.CALL else running_text(group, marks)
            parts.append(text)
    records = records_of(one.record for one in statements)
    return [Item(text="\n".join(parts), records=records, depth=depth)] if parts else []


def remembered_items(taken: Sequence[Statement], analysis: Analysis) -> tuple[Item, ...]:
    """Statements whose records are gone, under the labels they had, then those of other clients' summaries.

    A verdict of the former is marked as older where code changed since.
    """
    is_changed = analysis.code_changed_at >= 0
    remembered = [
        one._replace(text=f"{one.text} ({analysis.words.older})")
        if is_changed and not one.label and GIVES_VERDICT.search(one.text) and analysis.words.older not in one.text
        else one
        for one in taken
        if one.event < 0
    ]
    theirs = (one for one in taken if _is_of_summary(one, analysis))
    return (*_grouped(remembered, 0, None), *_grouped(theirs, 0, analysis))


def _is_of_summary(one: Statement, analysis: Analysis) -> bool:
    return one.event >= 0 and analysis.events[one.event].kind is EventKind.SUMMARY


def turn_lines(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> dict[int, Item]:
    """A line for every turn, by turn number; where not all fit, old turns of one topic share a line.

    Lines that still do not fit are left out, the oldest first.
    """
    turns = analysis.turns
    single = min(len(turns), max(1, budget_tokens // (2 * _LINE_TOKENS)))
    if len(turns) * _LINE_TOKENS <= budget_tokens:
        single = len(turns)
    chars = max(60, min(_LINE_CHARS, budget_tokens * 4 // max(1, 2 * single)))
    changed: dict[int, dict[str, None]] = {}
    for operation in analysis.operations:
        if operation.action is not FileAction.READ:
            number = analysis.events[operation.event].turn
            changed.setdefault(number, {})[operation.name] = None
    found: dict[int, Item] = {}
    left = budget_tokens
    lines: list[tuple[Sequence[DigestTurn], str]] = [
        (group, shared_line(group, analysis.events, _LINE_CHARS)) for group in _by_topic(turns[: len(turns) - single])
    ]
    for turn in turns[len(turns) - single :]:
        lines.append(([turn], line_of(turn, analysis.events, chars, [*changed.get(turn.number, ())])))
    for group, text in reversed(lines):
        item = Item(text=text, records=records_of(analysis.events[turn.first].record for turn in (group[0], group[-1])))
        if text and (cost := token_cache.item(item)) <= left:
            found[group[0].number] = item
            left -= cost
    return found


def _by_topic(turns: Sequence[DigestTurn]) -> list[Sequence[DigestTurn]]:
    """The turns in groups of one topic each, of at most `_TURNS_PER_LINE` turns."""
    return [
        turns[start : min(start + _TURNS_PER_LINE, topic.stop)]
        for topic in topics([terms(turn.asked) for turn in turns])
        for start in range(topic.start, topic.stop, _TURNS_PER_LINE)
    ]


def _grouped(statements: Iterable[Statement], depth: int, analysis: Analysis | None) -> list[Item]:
    """One item for the statements of each message, and one for each label of output.

    Where several runs of one command are shown, or one that failed, each has its own item with how it ended.
    """
    groups: dict[tuple[int, str], list[Statement]] = {}
    ended: set[tuple[int, str]] = set()
    statements = tuple(statements)
    runs = _runs_apart(statements, analysis) if analysis else {}
    for statement in statements:
        # Lines that were read and lines that were written never share an item.
        is_written = analysis is not None and analysis.events[statement.event].kind is EventKind.CALL
        apart = {StatementForm.OUTPUT: -1, StatementForm.LOOKED: -2 - is_written}
        key = (apart.get(statement.form, origin(statement)), statement.label)
        # Only what a run printed gets its outcome: a thought about it, under another label, does not.
        if statement.event in runs and statement.label.startswith("`"):
            key = (runs[statement.event], statement.label)
            ended.add(key)
        groups.setdefault(key, []).append(statement)
    paths = {label for _, label in groups if "/" in label and " " not in label}
    names = {path.rpartition("/")[2] for path in paths}
    short = short_names(
        paths.union(one.path for one in analysis.operations if one.name in names) if analysis else paths
    )
    marks = _marks(groups.values(), analysis) if analysis else {}
    items: list[Item] = []
    for (at, label), group in groups.items():
        ending = _ending(at, group, analysis) if analysis and (at, label) in ended else ""
        seen = _seen(group, analysis)
        part = _lines_seen(group, analysis) if analysis and seen else ""
        shown = f"{seen}{short.get(label, label)}{part}{ending}"
        items.append(_item(shown, group, depth, marks))
    return [item for item in items if item.text]


def _seen(group: Sequence[Statement], analysis: Analysis | None) -> str:
    """A prefix for lines of a file that were only read, if they are that; else an empty string."""
    if analysis is None or any(one.form is not StatementForm.LOOKED for one in group):
        return ""
    event = analysis.events[group[0].event]
    label = analysis.labels[group[0].event]
    # The label of a command that only read files names these.
    is_of_files = label.is_file or (event.tool is ToolKind.COMMAND and label.text[:1] != "`")
    is_shown = event.kind is EventKind.RESULT and event.tool in (ToolKind.READ, ToolKind.COMMAND)
    return f"{analysis.words.read} " if is_shown and is_of_files else ""


def _lines_seen(group: Sequence[Statement], analysis: Analysis) -> str:
    """The lines of the file that the calls of a group read, as `:58-102`; empty if one of them read all of it."""
    calls = {one.event: analysis.events[one.event].call for one in group}
    parts = [lines_read(analysis.events[call]) if call >= 0 else "" for call in calls.values()]
    return f":{','.join(dict.fromkeys(parts))}" if all(parts) else ""


def _runs_apart(statements: Iterable[Statement], analysis: Analysis) -> dict[int, int]:
    """By the position of a statement's event, the position of the call that it belongs to.

    Only for commands of which the statements show several runs, or a run that failed.
    """
    shown: dict[str, dict[int, int]] = {}
    for one in (one for one in statements if one.event >= 0 and one.label.startswith("`")):
        event = analysis.events[one.event]
        # The input of a command is not part of its output.
        if event.kind is not EventKind.CALL or one.form is StatementForm.OUTPUT:
            shown.setdefault(one.label, {})[one.event] = event.call if event.call >= 0 else one.event
    failed = CommandOutcome.FAILED
    return {
        event: call
        for calls in shown.values()
        if len({*calls.values()}) > 1 or any(analysis.ended.get(call) is failed for call in calls.values())
        for event, call in calls.items()
    }


# Separates a command from how it ended.
ENDED = " → "


def _ending(call: int, group: Sequence[Statement], analysis: Analysis) -> str:
    """How the run of a call ended, after an arrow; an empty string where it only looked or its end is not known.

    With what failed, where the statements of the run show no error.
    """
    words = {CommandOutcome.OK: analysis.words.ok, CommandOutcome.FAILED: analysis.words.failed}
    outcome = analysis.ended.get(call, CommandOutcome.UNKNOWN)
    if outcome is CommandOutcome.FAILED and not any(ERROR_PATTERN.search(one.text) for one in group):
        line = next((run.line for run in analysis.runs if run.event == call), "")
        return f"{ENDED}{words[outcome]}" + (f" ({line})" if ERROR_PATTERN.search(line) else "")
    return f"{ENDED}{words[outcome]}" if outcome in words else ""


def _marks(groups: Collection[Sequence[Statement]], analysis: Analysis) -> Mapping[tuple[int, int], Mark]:
    """What became of statements, in brackets, by event and place.

    Where most statements of a message share a mark, it stands at place -1 and not with each of them. An ellipsis marks
    a list that is shown without its first or its last entries.
    """
    marks = dict[tuple[int, int], Mark]()
    for group in groups:
        event = group[0].event
        own = {one.place: mark for one in group if (mark := _mark(one, analysis))}
        # A mark that most statements have is taken to hold for those between them too.
        times = Counter(own.values())
        common = next((mark for mark in times if times[mark] > min(_MAX_ALIKE, max(1, len(group) // 2))), "")
        if common:
            marks[event, -1] = Mark(f"({common}) ")
        marks.update({(event, place): Mark("", f" ({mark})") for place, mark in own.items() if mark != common})
        for place, cut in cut_lists(group):
            before, after = marks.get((event, place), Mark())
            marks[event, place] = Mark(f"{cut.before}{before}", f"{after.removesuffix(cut.after)}{cut.after}")
    return marks


# If more statements of a message than this share a mark, it is written once, before all of them.
_MAX_ALIKE = 2


def _mark(one: Statement, analysis: Analysis) -> str:
    """The mark that later records give a statement (see `standing`); none for a statement of another summary."""
    return "" if _is_of_summary(one, analysis) else standing(one, analysis)


def _item(label: str, group: Sequence[Statement], depth: int, marks: Mapping[tuple[int, int], Mark]) -> Item:
    text = running_text(group, marks)
    if label and not text.startswith(label.strip("`")):
        text = f"{label}: {text}"
    return Item(text=text, records=records_of(statement.record for statement in group), depth=depth)


# The headings of clients' summaries: `## Tides`, `2. **Open questions:**`, `**Harbours**:`, `<open_tasks>`.
_HEADING = re.compile(
    r"^(?:#{1,6} +\S.*|\d{1,2}\. +(?:\*\*)?[^.\n]{2,60}:(?:\*\*)?|\*\*[^*\n]{2,60}\*\*:?"
    r"|<[a-z_]+(?: [^>]*)?>)[ \t]*$",
    re.MULTILINE,
)


# Of a summary that is not carried whole, the sections that come first: what is open, what was asked, what was demanded,
# what is known or decided, what went wrong. Each has a pattern of its headings and the share of the room it may take.
_MAIN_HEADINGS = tuple(
    (pattern(rf"\b(?:{heads})", re.IGNORECASE), ratio)
    for heads, ratio in (
        (r"pending\b|remaining\b|open\b|to-?dos?\b|blocked\b|in progress\b|next\b|待办|未完成", 0.3),
        (r"requests?\b|intent\b|goals?\b|objectives?\b|tasks?\b|目标|需求", 0.4),
        (r"constraints?\b|preferences?\b|instructions?\b|feedback\b|requirements?\b|约束|要求", 0.3),
        (r"concepts?\b|knowledge\b|discover|decisions?\b|context\b|learn|insights?\b|关键|决定", 0.4),
        (r"errors?\b|problems?\b|issues?\b|错误|问题", 1.0),
    )
)


def main_statements(offered: Sequence[Statement], analysis: Analysis) -> list[tuple[list[int], float]]:
    """The statements under the main headings of the newest summary by another client, each group with its share.

    They are given by their places among those offered.
    """
    theirs = [(place, one) for place, one in enumerate(offered) if _is_of_summary(one, analysis)]
    newest = max((one.event for _, one in theirs), default=-1)
    by_heading: dict[int, list[int]] = {}
    for place, one in theirs:
        heading = one.lead.partition("\n")[0].replace("_", " ")
        if heading and one.event == newest and one.form is not StatementForm.CODE:
            at = next((at for at, (heads, _) in enumerate(_MAIN_HEADINGS) if heads.search(heading)), -1)
            by_heading.setdefault(at, []).append(place)
    return [(by_heading[at], ratio) for at, (_, ratio) in enumerate(_MAIN_HEADINGS) if at in by_heading]


def is_outdated(one: Statement, analysis: Analysis) -> bool:
    """Whether a statement of another client's summary is about what was open or written then and has changed since.

    That nothing is open, and what was done next, holds until the user's next message. Code is outdated once its file is
    edited. Other statements of what is open or broken are outdated once code changed, unless they name things that
    nobody has named again.
    """
    if not _is_of_summary(one, analysis):
        return False
    is_none = _NONE.match(one.text) and TELLS_WHAT_IS_OPEN.search(one.lead)
    if is_none or _NOTHING_OPEN.search(one.text) or _WAS_NEXT.search(one.lead):
        return any(message.turn > analysis.events[one.event].turn for message in analysis.messages)
    if one.event >= analysis.code_changed_at:
        return False
    if one.form is StatementForm.CODE:
        return any(at > one.event and name in one.lead for name, at in analysis.edited.files.items())
    return _MAY_BE_DONE.search(f"{one.lead}\n{one.text}") is not None and _is_named_since(one, analysis)


_WAS_NEXT = pattern(r"\bnext steps?\b|\bcurrent (?:work|state|status|task)\b|下一步|当前工作", re.IGNORECASE)
_NONE = pattern(r"\W*(?:none|nothing)\b", re.IGNORECASE)
_NOTHING_OPEN = pattern(r"\bno (?:\w+ )*(?:pending|outstanding|next (?:task|step))\b", re.IGNORECASE)
_MAY_BE_DONE = pattern(rf"{TELLS_WHAT_IS_OPEN.pattern}|\bcurrent\b|\bbugs?\b", re.IGNORECASE)


def _is_named_since(one: Statement, analysis: Analysis) -> bool:
    """Whether a later event names something that a statement names; also true if the statement names nothing."""
    table = analysis.scores.table
    named = (atom.text for atom in find_atoms(one.text) if _IS_NAME.search(atom.text))
    last = [table.columns["last"][row] for name in named if (row := table.atoms.get(name)) is not None]
    return not last or max(last) > one.at_tokens


# A path with an ending, a branch, or no path at all: two plain words with a slash between them name nothing.
_IS_NAME = pattern(r"\A/?[^/]*\Z|[.-]")


def whole_summaries(analysis: Analysis, quoted: str, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """Other clients' summaries that fit whole, the newest preferred, as an item for each of their parts.

    Lines that are ``quoted`` elsewhere are left out. A part on what was under way is marked as older where code changed
    since.
    """
    items: list[Item] = []
    left = budget_tokens
    for number, event in reversed([*enumerate(analysis.events)]):
        is_own = event.kind is not EventKind.SUMMARY or event.record in analysis.own_summaries
        if is_own or len(event.text) > left * 8:
            continue
        starts = sorted({0, *(found.start() for found in _HEADING.finditer(event.text))})
        texts = (event.text[start:stop] for start, stop in pairwise([*starts, len(event.text)]))
        older = f" ({analysis.words.older})" if number < analysis.code_changed_at else ""
        parts = [item for text in texts if (item := _part_item(text.split("\n"), event, quoted, older)).text]
        cost = sum(map(token_cache.item, parts))
        if parts and cost <= left:
            items = parts + items
            left -= cost
    return tuple(items)


def _part_item(lines: Iterable[str], event: Event, quoted: str, older: str) -> Item:
    """A part of a summary without XML tags; the name of an opening tag becomes a heading.

    The item is empty where everything below the heading is ``quoted`` elsewhere.
    """
    named = (_TAG_LINE.sub(lambda tag: "" if tag[1] else f"{tag[2].replace('_', ' ')}:", line) for line in lines)
    shown_lines = [shown for line in named if (shown := listed(plain_line(line)))]
    left = [line for line in shown_lines if len(line) < _MIN_QUOTED_CHARS or line not in quoted]
    if len(left) <= 1 < len(shown_lines):
        return Item(text="", records=())
    if left and TELLS_WHAT_IS_OPEN.search(left[0]):
        left[0] += older
    return Item(text="\n".join(left), records=(event.record,))


_MIN_QUOTED_CHARS = 12
# `<open_tasks>`, `</open_tasks>`
_TAG_LINE = re.compile(r"\A\s*<(/?)([a-z_]+)(?: [^>]*)?>\s*\Z")
