"""Turns: what was asked, what was done, what came of it, and how one is told in a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from compactor_cli.digest.commands import Run, shown
from compactor_cli.digest.events import Event, EventKind, ToolKind
from compactor_cli.digest.language import Words
from compactor_cli.digest.quote import ELLIPSIS, head, one_line, opening
from compactor_cli.digest.tools import is_lookup
from compactor_cli.digest.touches import Act, Touch
from compactor_cli.digest.user_words import Said

# A request that is quoted elsewhere is named by its first words.
_NAME_CHARS = 70
_REMEMBERED_CHARS = 320
_REMEMBERED_TURNS = 400


@dataclass(slots=True, kw_only=True)
class Turn:
    """What happened between one message of the user and the next. ``line``: what an earlier summary said of it.

    ``goes_on``: it is the rest of a turn that an earlier summary told.
    """

    number: int
    asked: str = ""
    answers: str = ""
    is_short: bool = True
    records: list[int] = field(default_factory=list)
    edited: dict[str, None] = field(default_factory=dict)
    ran: dict[str, Run] = field(default_factory=dict)
    called: dict[str, None] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)
    closing: str = ""
    events: int = 0
    line: str = ""
    goes_on: bool = False


def turns(events: Sequence[Event], said: Sequence[Said], touches: Sequence[Touch], runs: Sequence[Run]) -> list[Turn]:
    """The turns in order; turn 0 is what comes before the first message, if anything does."""
    found: dict[int, Turn] = {}
    for event in events:
        if event.kind is EventKind.SUMMARY:
            continue
        turn = found.setdefault(event.turn, Turn(number=event.turn))
        turn.records.append(event.record)
        turn.events += 1
        _tell(turn, event)
    for message in said:
        if message.turn in found:
            found[message.turn].is_short &= message.is_short
            found[message.turn].answers = message.answers
    for touch in touches:
        turn = found[events[touch.event].turn]
        (turn.read if touch.act is Act.READ else turn.edited)[touch.path] = None
    for run in runs:
        if not run.is_look:
            found[events[run.event].turn].ran[run.key] = run
    return [found[number] for number in sorted(found)]


def renamed(found: Sequence[Turn], names: Mapping[str, str]) -> list[Turn]:
    """The turns with other names for the files that were worked on."""

    def changed(paths: Mapping[str, None]) -> dict[str, None]:
        return dict.fromkeys(names.get(path, path) for path in paths)

    return [replace(turn, edited=changed(turn.edited), read=changed(turn.read)) for turn in found]


def _tell(turn: Turn, event: Event) -> None:
    if event.kind is EventKind.USER:
        turn.asked = f"{turn.asked} {one_line(event.text)}".strip()
    elif event.kind is EventKind.ASSISTANT:
        turn.closing = event.text
    elif event.kind is EventKind.CALL and event.tool is ToolKind.OTHER:
        turn.called[_call_words(event)] = None


def _call_words(event: Event) -> str:
    """A call of another tool in one line: its name, and what it was given if it changes something."""
    lines = event.text.split("\n")
    if is_lookup(event.name) or len(event.text) > 300:
        return head(lines[0], 60)
    return " ".join(line.strip() for line in lines)


def remembered_lines(found: Sequence[Turn], words: Words) -> tuple[str, ...]:
    """A line for each turn for the next digest, with more than fits today; the newest turns where there are many."""
    lines: list[str] = []
    for turn in found:
        line = turn.line or line_text(turn, _REMEMBERED_CHARS, words)
        if turn.goes_on and lines:
            lines[-1] = opening(f"{lines[-1]} → {line}", 2 * _REMEMBERED_CHARS)
        elif line:
            lines.append(line)
    return tuple(lines[-_REMEMBERED_TURNS:])


def line_text(turn: Turn, chars: int, words: Words) -> str:
    """``“asked” → edited a, b; ran `c` → closing words`` in about so many characters."""
    if turn.line:
        return opening(turn.line, chars)
    # A long request stands verbatim among the user's words: here a few words of it name the turn.
    most = chars if turn.is_short else min(max(chars // 4, 40), _NAME_CHARS)
    asked = opening(turn.asked, min(most, max(chars // 2, 40)))
    parts = [words.quoted(asked) if asked else words.since if turn.goes_on else words.before]
    if asked and turn.answers and (before := opening(turn.answers, chars // 3)):
        parts.insert(0, before)
    done = done_text(turn, max(0, (chars - sum(map(len, parts))) // 2), words)
    parts += [done] if done else []
    if not (asked or done or turn.closing):
        return ""
    left = chars - sum(map(len, parts))
    closing = opening(turn.closing, left) if left > 24 else ""
    return " → ".join([*parts, closing] if closing else parts)


def done_text(turn: Turn, chars: int, words: Words) -> str:
    """What was edited, run, called and read, each as far as it fits; empty where nothing does."""
    groups = (
        (words.edited, list(turn.edited)),
        (words.ran, [f"`{short}`" for run in reversed(turn.ran.values()) if (short := _short(run))]),
        (words.called, list(turn.called)),
        (words.read, [] if turn.edited or turn.ran else list(turn.read)),
    )
    told: list[str] = []
    left = chars
    for word, names in groups:
        shown_names = _fitting(names, left - len(word))
        if shown_names:
            text = f"{word} {', '.join(shown_names)}" + (f" {ELLIPSIS}" if len(shown_names) < len(names) else "")
            told.append(text)
            left -= len(text)
    return words.stop.join(told)


def _short(run: Run) -> str:
    line = shown(run.key)
    return line if len(line) <= 80 else f"{head(line, 80)} {ELLIPSIS}"


def _fitting(names: Sequence[str], chars: int) -> list[str]:
    fitting: list[str] = []
    for name in names:
        if len(name) + 2 > chars:
            break
        fitting.append(name)
        chars -= len(name) + 2
    return fitting
