"""Output lines: lines of calls and results that name what will be used again, or what is being worked on."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from heapq import nlargest
from itertools import chain, islice
from math import fsum, log
from typing import TYPE_CHECKING

from compactor_cli.digest.checklists import State
from compactor_cli.digest.checks import passed_checks
from compactor_cli.digest.choice import COST_POWER, MIN_ATOM_CHANCE, names
from compactor_cli.digest.error_lines import ERROR_PATTERN, is_notice
from compactor_cli.digest.events import Event, EventKind, results_of
from compactor_cli.digest.failures import is_open
from compactor_cli.digest.files import attempted, is_undone
from compactor_cli.digest.language import word_beginnings
from compactor_cli.digest.names import PATH_ALONE
from compactor_cli.digest.noise import (
    DEFINERS,
    JSON_MEMBER,
    MODIFIER,
    is_amid_code,
    is_import,
    is_noise,
    is_scrap,
    is_styled,
)
from compactor_cli.digest.runs import rerun
from compactor_cli.digest.salience import Scores, shortened
from compactor_cli.digest.shell import segments
from compactor_cli.digest.statements import Statement, StatementForm
from compactor_cli.digest.texts import MAX_CHARS
from compactor_cli.digest.tools import REPORTING_TOOLS, FileAction, ToolKind, is_lookup, is_own, short_name
from compactor_cli.digest.wants import newest_request
from compactor_cli.formats.client_signs import TOOL_ERROR, started_id
from compactor_cli.model.patterns import pattern

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis
    from compactor_cli.digest.names import Label

OUTPUT_FACTOR = 0.4
# For a line that is only a piece of something larger.
SCRAP_FACTOR = 0.5
# A line with this many line feeds written as `\n` holds a text inside a value that is meant for a program.
_MANY_ESCAPES = 2
_LINES_PER_ATOM = 3
# Only this many of the newest lines are compared with the work under way.
_MAX_COMPARED = 20_000
# The cost of a line, by its length in characters.
_LINE_COST = tuple((6 + chars) ** COST_POWER for chars in range(MAX_CHARS + 1))
_OUTPUT = (EventKind.CALL, EventKind.RESULT)


def output_lines(analysis: Analysis, number: int, wordless: Sequence[Statement]) -> Iterator[Statement]:
    """Up to ``number`` lines of calls and results that name most of what will be used again for their length.

    Lines close to the work under way follow, and then those that name the focus. ``wordless`` has a statement without
    text for each event.
    """
    events, scores, focus = analysis.events, analysis.scores, analysis.focus
    sources = _Sources(analysis)
    under_way = UnderWay(analysis, islice(reversed(scores.table.lines.numbers), _MAX_COMPARED))
    places = cache(_places)
    for text, place in _telling_lines(events, scores, number, focus, under_way):
        base = wordless[sources.of(text, scores.table.lines.last[place])]
        event, label = events[base.event], analysis.labels[base.event]
        if sources.is_repeated(base.event, text) or is_noise(text) or is_styled(text):
            continue
        # The first line of a log is the newest commit: a later line would be taken for it. The first line of a status
        # reads as the whole of it.
        is_part = label.text.startswith("`git log") and not event.text.lstrip().startswith(text)
        is_part |= text.startswith("## ") and "..." in text
        is_search = _SEARCHES.match(label.text) is not None
        is_part |= is_search and (_AROUND_HIT.match(text) is not None or text.count("\\n") >= _MANY_ESCAPES)
        is_part |= tells_of_the_past(text, label)
        # What a query that failed lists (the fields that it knows) is no answer.
        is_part |= event.is_error and not ERROR_PATTERN.search(text) and _QUERIES.match(label.text) is not None
        if (is_part or sources.tells_nothing(base.event, text)) and not names(text, focus):
            continue
        is_looked_at = sources.is_looked_at(base.event)
        if is_looked_at and is_slip(text):
            continue
        near = under_way.worth(text) if is_looked_at else 1.0
        is_amid = is_looked_at and base.event not in sources.made and near < _NEAR and is_amid_code(text)
        if is_amid and not (analysis.is_dialogue or names(text, focus)):
            continue
        shown, form = shortened(text, scores, focus), StatementForm.LOOKED if is_looked_at else StatementForm.OUTPUT
        weight = OUTPUT_FACTOR * base.weight * near * (SCRAP_FACTOR if is_scrap(text) else 1.0)
        weight *= SCRAP_FACTOR if shown.count("\\n") >= _MANY_ESCAPES else 1.0
        named = (base.event, places(event.text).get(text, 0), form, "", label.text)
        yield Statement(sources.marked(base.event, shown), *named, base.record, base.at_tokens, weight)


# A line around one that was searched for: `26-  const gauge = 3`, `L26-  const gauge = 3`.
_AROUND_HIT, _SEARCHES = pattern(r"(?:L|\S+\.\w+-)?\d{1,6}-(?!\d)"), pattern(r"`?(?:[Gg]rep|rg|git grep|search\w*)\b")

_QUERIES = pattern(r"`(?:gh (?:\w+ )?(?:api|list|search|status|view)|npm (?:info|view))\b")


def past_looks(analysis: Analysis) -> set[int]:
    """The runs that were made again, and those that listed what was changed before the newest commit, by position."""
    committed = max((one.event for one in analysis.work.commits), default=-1)
    lists = (run.event for run in analysis.runs if run.event < committed and _LISTS.search(run.key))
    return {*rerun(analysis.runs, analysis.events), *lists}


_LISTS = pattern(r"\bgit (?:status|diff (?:\S+ )*--(?:stat|name-only|name-status))\b")


def tells_of_the_past(line: str, label: Label) -> bool:
    """Whether a line is a hit in the log of a session, which quotes what was so then, or an entry of a changelog."""
    return _IN_LOG.match(line) is not None or (label.is_file and _CHANGELOG.search(label.text) is not None)


# `logs/tide.jsonl:12:{"level":3}`
_IN_LOG = pattern(r"\S+\.jsonl:(?:\d+:)?\s*\{")
_CHANGELOG = pattern(r"(?:^|/)(?:CHANGELOG|CHANGES|HISTORY)\b", re.IGNORECASE)


class _Sources:
    """The kinds of calls and results that lines come from: edits made or failed, reads, checks that passed."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis, self._events = analysis, analysis.events
        edits = {n: result for n, result in results_of(self._events).items() if self._events[n].tool is ToolKind.EDIT}
        self._undone = {call for call, result in edits.items() if is_undone(self._events[call], result)}
        self.made = edits.keys() - self._undone
        last = {one.path: one.event for one in analysis.operations if one.action is not FileAction.READ}
        tried = ((call, one.path) for call in self._undone for one in attempted(self._events[call]))
        self._made_later = {call for call, path in tried if last.get(path, -1) > call}
        self._words = analysis.words
        self._only_reads = {run.event for run in analysis.runs if run.is_read_only}
        self._passed = passed_checks(analysis.runs)
        self._of_help = {run.event for run in analysis.runs if _only_asks_for_help(run.command)}
        looks = {run.event for run in analysis.runs if run.is_read_only or _LISTS.search(run.key)}
        self._past = past_looks(analysis) & looks
        self._found_by = self._lines_before(analysis)

    def _lines_before(self, analysis: Analysis) -> dict[int, set[str]]:
        """The lines that were in a file before an edit replaced or a write repeated them, by the position of the call.

        Of a file that is written anew, only the lines that an earlier call read are known.
        """
        results, known, found = results_of(self._events), dict[str, set[str]](), dict[int, set[str]]()
        written = {one.path for one in analysis.operations if one.action is FileAction.CREATE}
        for one in analysis.operations:
            result, before = results.get(one.event), found.setdefault(one.event, set())
            if one.action is FileAction.EDIT:
                before.update(line.strip() for old, _ in one.replaced for line in old.split("\n"))
            elif one.action is FileAction.READ and result and one.path in written:
                known.setdefault(one.path, set()).update(map(str.strip, result.text.split("\n")))
            elif one.action is FileAction.CREATE:
                before |= known.pop(one.path, set())
        return found

    def of(self, line: str, place: int) -> int:
        """The position of the event that a line belongs to: the edit, where its result only repeats the line."""
        call = self._events[place].call
        return call if call in self.made and line in self._events[call].text else place

    def is_looked_at(self, place: int) -> bool:
        """Whether an event shows the content of a file, read or written, which can be read again."""
        event = self._events[place]
        is_file = event.tool is ToolKind.READ or (
            event.tool is ToolKind.COMMAND and self._analysis.labels[place].is_file
        )
        return place in self.made or (event.kind is EventKind.RESULT and (is_file or event.call in self._only_reads))

    def marked(self, place: int, line: str) -> str:
        """A line of an event; that an edit failed is marked, with whether a later one changed the file."""
        call, words = self._events[place].call, self._words
        if call not in self._undone:
            return line
        ended = f" → {words.edited}" if call in self._made_later else ""
        return f"{words.failed}{words.colon}{_ERROR_TAG.sub('', line)}{ended}"

    def is_repeated(self, place: int, line: str) -> bool:
        """Whether a line repeats what other items show, or is not about the work: a client's, a plan's, a refusal's."""
        event, label = self._events[place], self._analysis.labels[place]
        if event.of_client and not self._analysis.is_dialogue:
            return True
        if event.tool is ToolKind.PLAN or (event.kind is EventKind.CALL and is_own(event.name)):
            return True
        if short_name(event.name) in _REPEATING:
            return True
        if event.refusal is not None or line == event.name or line in label.text:
            return True
        if event.is_error and event.tool is ToolKind.READ and not self._analysis.is_dialogue:
            return True  # a wrong path
        if event.call in self._past:
            return True  # the same command has a newer result, or what git listed was committed since
        # The result of an edit repeats the edit; of the result of a failed one, only the first line says why.
        if place in self._undone or event.call in self.made or line in self._found_by.get(place, ()):
            return True
        if event.call in self._undone and (line.endswith(":") or not event.text.lstrip().startswith(line)):
            return True
        if short_name(event.name) in REPORTING_TOOLS and started_id(event.text):
            return True  # the work was put in the background: its report comes later
        # Facts shows the results of a service's actions, and of its lookups where no command was run. A JSON member
        # carries no information without its object.
        is_in_facts = not is_lookup(event.name) or not (self._analysis.runs or self._analysis.is_dialogue)
        return event.tool is ToolKind.OTHER and is_in_facts and JSON_MEMBER.match(line) is not None

    def tells_nothing(self, place: int, line: str) -> bool:
        """Whether a line carries no information, unless it names the focus."""
        event, is_result = self._events[place], self._events[place].kind is EventKind.RESULT
        # A command or a search is the label of its result.
        if event.kind is EventKind.CALL and event.tool in (ToolKind.READ, ToolKind.COMMAND):
            return True
        # The output of a passed check adds nothing to the fact that it passed; the help of a program can be had again.
        if event.call in self._passed or event.call in self._of_help or line in self._analysis.progress:
            return True
        if is_result and event.tool is ToolKind.COMMAND and _is_echoed(line, self._events[event.call].text):
            return True
        if is_result and (is_notice(line) or started_id(line) or PATH_ALONE.fullmatch(line.strip("•*-'\", "))):
            return True  # a path alone, as in a listing, belongs to the index of names
        return bool(_PREAMBLE.match(line)) or is_import(_PLACE.sub("", line) if ":" in line else line)


def _only_asks_for_help(command: str) -> bool:
    """Whether each step of a command line prints the help of a program, or passes it on: `tide --help | head`."""
    steps = [step for step in segments(command) if not _PASSES_ON.match(step)]
    return bool(steps) and all("--help" in step for step in steps)


_PASSES_ON = pattern(r"\s*(?:head|tail|grep|rg|sed|cd|echo|true)\b")


def _is_echoed(line: str, command: str) -> bool:
    """Whether a line of an output is a text that the command itself gives: `|| echo "no gauge"`."""
    return "echo" in command and any(f"{mark}{line}{mark}" in command for mark in "\"'")


def _places(output: str) -> dict[str, int]:
    """The distinct lines of an output that hold a word, each with its place among all that do, counted from 0."""
    found: dict[str, int] = {}
    for place, line in enumerate(filter(_HAS_WORD.search, map(str.strip, output.split("\n")))):
        found.setdefault(line, place)
    return found


_HAS_WORD = re.compile(r"\w")
# Tools whose answers repeat what the agent said that it is about, and what other agents reported.
_REPEATING = frozenset(("updatetopic", "listagents"))
_ERROR_TAG = re.compile(rf"</?{TOOL_ERROR.strip('<>')}>")
# The preamble of listings, diffs, test runs and `git status`, the routes of a build, the lines of code and of a stack
# around a failure, and arguments without a value: `total 48`, `@@ -1,4 +1,5 @@`, `rootdir: /srv/tides`,
# `> 12 | gauge.read()`, `tides=`.
_PREAMBLE = re.compile(
    r"(?:> *)?\d+ +(?:\d+ +)?[|│]\s|total \d+$|index [0-9a-f]{7}|diff --git |@@ |(?:---|\+\+\+) |platform \S+ -- "
    r"|(?:plugins|rootdir|cachedir|configfile): |On branch \S+$|Your branch is |Untracked files:$"
    r"|Changes (?:not staged for commit|to be committed):$|no changes added to commit|nothing (?:added )?to commit"
    r"|at .*\((?:node:)?(?:internal/|\S*/node_modules/)|File \"\S*/site-packages/|[\w.-]+=$"
    r"|(?:new|deleted) file mode |[┌├└] [○●ƒλ] "
)
# How a shell and its tools say that they could not show something: `cat: tide.txt: No such file or directory`.
_SLIP = re.compile(
    r"\S+: (?:-c: )?line \d+: |\S+: .*(?:No such file or directory|Operation not permitted|Permission denied)$"
    r"|\S+: (?:illegal|invalid|unrecognized|unknown) option\b|[Uu]sage: \S+ \["
)


def is_slip(line: str) -> bool:
    """Whether a line says that a command was given a missing or forbidden path, or wrong options."""
    return ": " in line and _SLIP.match(line) is not None


# Where a search found a line: `src/clock.py:12:`.
_PLACE = re.compile(r"^[\w./@+-]+:(?:\d+:)?\s*(?=\S)")


def _telling_lines(
    events: Sequence[Event], scores: Scores, number: int, focus: frozenset[str], under_way: UnderWay
) -> Iterator[tuple[str, int]]:
    """The distinct lines of calls and results, each with its place in the table.

    First come ``number`` lines, at most, by the chances of their atoms for their length, with at most three lines for
    each atom; then the lines closest to the work under way; last the lines that name the focus, whatever their chances.
    """
    lines, chance = scores.table.lines, scores.rows.__getitem__
    texts, used = list(lines.numbers), bytearray(len(scores.rows))
    # There may be a million lines: the table's own numbers are reused as places, to allocate none.
    places = zip(lines.numbers.values(), lines.last, strict=True)
    outputs = [place for place, last in places if events[last].kind in _OUTPUT]
    naming = [place for place in outputs if names(texts[place], focus)]
    # By place, 0 for a line that is left out; a dict would take ten times the memory.
    worths, named = array("d", bytes(8 * len(texts))), set(naming)
    for place in outputs:
        atoms = lines.atoms[place]
        if atoms and place not in named and (value := sum(map(chance, atoms))) >= MIN_ATOM_CHANCE:
            worths[place] = value / _LINE_COST[min(len(texts[place]), MAX_CHARS)]
    taken, most = set[int](), number
    # Newest first before a stable sort, so that of equal lines the newer one comes first.
    telling = [place for place in reversed(outputs) if worths[place]]
    for place in sorted(telling, key=worths.__getitem__, reverse=True):
        if number <= 0:
            break
        fresh = [row for row in lines.atoms[place] if used[row] < _LINES_PER_ATOM]
        if sum(map(chance, fresh)) < MIN_ATOM_CHANCE:
            continue
        for row in fresh:
            used[row] += 1
        number -= 1
        taken.add(place)
        yield texts[place], place
    # Lines close to the work fill the room that is left: a short session may be shown line by line.
    rest = (place for place in islice(reversed(outputs), _MAX_COMPARED) if place not in taken)
    near = nlargest(max(most // 8, number), rest, key=lambda place: under_way.worth(texts[place]))
    yield from ((texts[place], place) for place in (*near, *naming))


# A line that shares nothing with the work under way has the factor 1. Each rare word that it shares adds up to
# ``SHARED``, a definition adds ``DEFINES``, and the factor is at most ``MAX_WORTH``.
SHARED, DEFINES = 1.0, 2.0
MAX_WORTH = 4.0
# A line from the middle of code that was read is shown only with at least this factor, or where there is room.
_NEAR = 2.5
# A word in a larger share of the lines (and in more than the number below) does not distinguish them.
_MAX_SHARE = 0.03
_MIN_SHARING_LINES = 5
# Characters read of the newest request, from its beginning, and of the last message, from its end.
_MAX_UNDER_WAY_CHARS = 4_000
# A definition, perhaps after the place where a search found it: `src/clock.py:12:def tick(`.
_DEFINES = re.compile(
    rf"(?:[\w./@+-]++:)?(?:\d+[:-]\s*)?{MODIFIER}*(?:{DEFINERS}|module)\s+[\w$(*]"
    rf"|export (?:default )?(?:const|let|var) |(?:CREATE|create) (?:TABLE|table) "
)


def defines(line: str) -> bool:
    """Whether a line of code defines something that has a name."""
    return _DEFINES.match(line) is not None


class UnderWay:
    """How much a line has in common with the work under way, by words that few of the ``lines`` have.

    The work under way is the user's newest request, the open steps of the plan, the failures that are still open, and
    the assistant's last message of a turn.
    """

    def __init__(self, analysis: Analysis, lines: Iterable[str]) -> None:
        self._wanted = set(word_beginnings("\n".join(_texts_under_way(analysis)))) - {""}
        # `intersection` with the words of a line avoids a set of the line itself, ten times as large.
        wanted = self._wanted.intersection
        self._shared = {line: wanted(word_beginnings(line)) for line in lines}
        times, number = Counter(chain.from_iterable(self._shared.values())), len(self._shared) + 1
        most = max(_MIN_SHARING_LINES, int(_MAX_SHARE * number))
        self._worth = {word: log(number / many) / log(number) for word, many in times.items() if many <= most}

    def worth(self, line: str) -> float:
        """A factor for a line, from 1 to ``MAX_WORTH``: the more rare words it shares, the higher."""
        words = self._shared[line] if line in self._shared else self._wanted.intersection(word_beginnings(line))
        shared = fsum([self._worth[word] for word in words if word in self._worth])
        return min(MAX_WORTH, 1.0 + SHARED * shared + (DEFINES if defines(line) else 0.0))


def _texts_under_way(analysis: Analysis) -> Iterable[str]:
    newest, events = newest_request(analysis), analysis.events
    last = max(analysis.finals, default=-1)
    steps = (todo.text for todo in analysis.plan.todos if todo.state is not State.DONE)
    failing = (f"{error.command}\n{error.line}" for error in analysis.errors if is_open(error, len(events)))
    asked = (newest.text[:_MAX_UNDER_WAY_CHARS],) if newest else ()
    return chain(asked, steps, failing, (events[last].text[-_MAX_UNDER_WAY_CHARS:],) if last >= 0 else ())
