"""Open: what is not finished, skills in use, and work that runs in the background."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise, takewhile, zip_longest
from typing import TYPE_CHECKING

from compactor_cli.digest.causes import Cause, is_unfixed
from compactor_cli.digest.checklists import plan_items, with_details
from compactor_cli.digest.checks import COMPILER_PLACE, REPAIRS, TEST_FILE, brief, contains, done_instead, is_check
from compactor_cli.digest.commands import command_key, failing_part, sent_subject, shown
from compactor_cli.digest.commits import ends_of, is_push_forbidden
from compactor_cli.digest.edits import WRITING, FixingLine
from compactor_cli.digest.error_lines import MERGE_CONFLICT, conflicting_files, only_counts
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.failures import ErrorRecord, Status, is_open, is_outward
from compactor_cli.digest.files import FileOperation, FileState, is_subagent, is_throwaway
from compactor_cli.digest.language import FixedWords, apart, terms
from compactor_cli.digest.replies import asks, chosen_options, is_yes_or_no, last_question, options_of
from compactor_cli.digest.runs import NEVER_RAN, Run
from compactor_cli.digest.shell import scripts_run
from compactor_cli.digest.statements import TokenCache, chosen, records_of
from compactor_cli.digest.texts import ELLIPSIS, opening, sentences
from compactor_cli.digest.tools import FileAction, ToolKind, command_of
from compactor_cli.digest.wants import newest_request, verified_by_hand, verifying_commands
from compactor_cli.group.todos import State as State
from compactor_cli.group.todos import Todo as Todo
from compactor_cli.model.patterns import pattern
from compactor_cli.model.summary import Item

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis


_MAX_PATHS = 4
# From this many tokens on, a line names twice as many paths.
_ROOM_TOKENS = 400
# The most checks, commits or lines of checks that are listed, and the most files edited after a check.
_MAX_STALE, _MAX_STALE_PATHS = 3, 2
_MAX_ENTRY_CHARS, _MAX_COMMAND_CHARS, _MIN_LINE_CHARS = 120, 90, 60


def open_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """What is not finished: what failed last, to-dos, other errors, edits not committed or tested; then steps done."""
    undone, done = plan_items(analysis.plan, budget_tokens, token_cache, analysis.words)
    # With few tokens, an error is cut rather than left out.
    newest, older = _failing_items(analysis, max(_MIN_LINE_CHARS, 2 * (budget_tokens - _MIN_LINE_CHARS)))
    # From `_MIN_HIDDEN` hidden steps on, their number is shown: without it, the list would read as complete.
    steps = 0 if analysis.plan.is_past else sum(todo.state is not State.DONE for todo in analysis.plan.todos)
    more = Item(text=f"{ELLIPSIS} {steps} {analysis.words.more}")
    room = budget_tokens - (token_cache.item(more) if steps - len(undone) >= _MIN_HIDDEN else 0)
    offers = (
        *newest,
        *(_cause_item(cause, analysis) for cause in reversed(analysis.causes) if is_unfixed(cause, analysis)),
        *undone,
        *older,
        *_unfinished(analysis, 2 * _MAX_PATHS if budget_tokens >= _ROOM_TOKENS else _MAX_PATHS),
        *_offer(analysis),
        *_carried_errors(analysis),
    )
    shown = chosen(offers, room, token_cache)
    hidden = steps - sum(step in undone for step in shown)
    left = room - sum(map(token_cache.item, shown))
    shown = tuple(with_details(shown, analysis.plan, left, token_cache, analysis.words))
    counted = (
        [replace(more, text=f"{ELLIPSIS} {hidden} {analysis.words.more}")] if _MIN_HIDDEN <= hidden < steps else []
    )
    left = budget_tokens - sum(map(token_cache.item, shown))
    return (*shown, *chosen((*counted, *done), left, token_cache))


def _failing_items(analysis: Analysis, most_chars: int) -> tuple[list[Item], list[Item]]:
    """The open errors, newest first: the newest one if it is of the newest turn, else none; and all others.

    The first part is listed before the steps that it blocks. Left out are errors that only count failures where another
    error of their command names them, and errors that the line of a newer one contains, except those of a command that
    hands work to others, who do not have it yet: these are shortened.
    """
    errors = [error for error in reversed(analysis.errors) if is_open(error, len(analysis.events))]
    named = {_brief(error) for error in errors if not only_counts(error.line)}
    errors = [one for one in errors if not (only_counts(one.line) and _brief(one) in named)]
    found: list[Item] = []
    for number, error in enumerate(errors):
        first = error.line.partition(" · ")[0]
        is_shown = any(first in newer.line for newer in errors[:number])
        if is_shown and not is_outward(error.command):
            continue
        line = opening(first, _MIN_LINE_CHARS) if is_shown else opening(error.line, most_chars)
        found.append(_error_item(replace(error, line=line, files=() if is_shown else error.files), analysis))
    newest = sum(analysis.events[error.event].turn == analysis.events[-1].turn for error in errors[:1])
    return found[:newest], found[newest:]


_MIN_HIDDEN = 3


def _unfinished(analysis: Analysis, paths: int) -> Iterator[Item]:
    """Lines for work not committed, pushed, tested or run again; ``paths``: the most files that a line names."""
    words, work = analysis.words, analysis.work
    lines: list[tuple[str, str, Iterable[int]]] = []
    in_part = {error.command: error.records for error in analysis.errors if error.is_in_part}
    for command, records in [*in_part.items()][-1:]:
        lines.append((words.unrepeated, f"`{brief(command, _MAX_COMMAND_CHARS)}`", records))
    for what, files in _by_origin(analysis).items():
        # One file more takes no more room than the note that there is one.
        most = len(files) if len(files) == paths + 1 else paths
        changed = [*files.values()]
        listed = f"{_listed(changed, most)}{_rest_by_folder(changed[most:])}"
        lines += [(what, listed, [work.uncommitted[path] for path in files])] if files else []
    if untried := _tests_not_run(analysis.operations, analysis.files, analysis.runs):
        lines.append((words.untried, _listed([*untried], _MAX_PATHS), untried.values()))
    if unrun := _asked_and_not_run(analysis):
        asked, records = unrun
        lines.append((words.unrun, words.comma.join(asked[:_MAX_STALE]), records))
    if work.unpushed and not is_push_forbidden(analysis.events):
        more = [ELLIPSIS] if len(work.unpushed) > _MAX_STALE else []
        newest = (f'{commit.hash} "{commit.subject}"'.strip() for commit in work.unpushed[-_MAX_STALE:])
        lines.append((words.unpushed, words.comma.join((*more, *newest)), (work.unpushed[-1].record,)))
    if work.stashed:
        # The reason for it: what the user asked just before, unless Now quotes that.
        before = [one for one in analysis.messages if 0 <= one.record < work.stash_record and one.text]
        asked = [one.text for one in before[-1:] if one is not newest_request(analysis)]
        why = (words.quoted(opening(text, _MAX_ENTRY_CHARS)) for text in asked)
        stashed = " — ".join((_listed(work.stashed, 2 * _MAX_PATHS), *why))
        lines.append((words.stashed, stashed, (work.stash_record,)))
    yield from (Item(text=f"{what}{words.colon}{text}", records=records_of(records)) for what, text, records in lines)
    by_paths: dict[str, list[Run]] = {}
    for run, since in work.stale:
        edited = _listed([*dict.fromkeys(one.path for one in reversed(since))], _MAX_STALE_PATHS)
        by_paths.setdefault(edited, []).append(run)
    for edited, runs in list(by_paths.items())[:_MAX_STALE]:
        older = runs[:_MAX_STALE]
        checks = words.comma.join(f"`{brief(run.key, _MAX_COMMAND_CHARS)}`" for run in older)
        records = records_of(run.result_record for run in older)
        yield Item(text=f"{words.stale} {edited}{words.colon}{checks}", records=records)


def _by_origin(analysis: Analysis) -> dict[str, dict[str, str]]:
    """The files in no commit and how each is shown, by the label that says who changed them."""
    words, work = analysis.words, analysis.work
    moved = {state.path: state.moved_to for state in analysis.files if state.moved_to}
    new = dict.fromkeys(work.found_new & work.found_changed, f" ({words.new_to_git})")
    edited = {end for state in analysis.files if state.is_changed for end in ends_of(state.path)}
    # No record may show the edits of a subagent: where one worked, any file may be its work.
    unedited = words.uncommitted if any(map(is_subagent, analysis.events)) else words.unedited
    found: dict[str, dict[str, str]] = {words.uncommitted: {}, unedited: {}, words.found_changed: {}}
    for path in work.uncommitted:
        if path in moved and moved[path] in work.uncommitted:
            continue  # it stands with its new path
        is_here = words.uncommitted if path in edited else unedited
        origin = words.found_changed if path in work.found_changed else is_here
        before = next((old for old, target in moved.items() if target == path), "")
        shown = f"{before} → {path}" if before else f"{path} → {moved[path]}" if path in moved else path
        found[origin][path] = f"{shown}{new.get(path, '')}"
    return found


def _runs_it(key: str) -> Callable[[str], bool]:
    """A predicate of commands: whether one runs the command ``key``, or a form of its task (`lint:fix`, `test:ci`)."""
    task = re.compile(rf"\b{re.escape(key.partition(':')[0])}(?![\w-])")
    return lambda other: contains(other, key) or task.search(other) is not None


def _tests_not_run(
    operations: Sequence[FileOperation], files: Iterable[FileState], runs: Sequence[Run]
) -> dict[str, int]:
    """The test files that were written, each with its record, if no tests were run since the first of them.

    Files that a command ran as scripts, and files that are gone, are left out. Empty if tests were run.
    """
    changed = (one for one in operations if one.action in WRITING and not is_throwaway(one.path))
    written = [one for one in changed if TEST_FILE.search(one.path)]
    there = {state.path: state.moved_to or state.path for state in files if not (state.is_deleted or state.is_reverted)}
    first = next((one.event for one in written if one.path in there), None)
    if first is None:
        return {}
    since = [run.command for run in runs if run.event > first and not run.is_read_only]
    if any(map(_RUNS_TESTS.search, since)):
        return {}
    # By the end of a path, as the folder that a line enters may be unknown.
    run = {name for command in since for name in _SCRIPT.findall(command)}
    run |= {path for command in since for path, _, _ in scripts_run(command)}
    left = (one for one in reversed(written) if one.path in there)
    ran = tuple(f"/{name}" for name in run)
    return {there[one.path]: one.record for one in left if not f"/{one.path}".endswith(ran)}


# `python3 -u tests/test_tides.py`
_SCRIPT = pattern(r"\b(?:python[\d.]*|node|bun|ruby|bash|sh)(?: -\w+)* ((?![-/~])[\w./-]+\.\w+)")
_RUNS_TESTS = pattern(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|cypress|rspec|phpunit|ctest|bats)\b|\btest(?::[\w:-]+)?(?= |$)"
    r"|\brun[-_]?tests?\b|\bcheck\b"
)


def _asked_and_not_run(analysis: Analysis) -> tuple[list[str], tuple[int, ...]] | None:
    """The checks named by the newest request that names any, without those run since, and the record of the request.

    None if all were run or nothing was edited since. A request before the summarised part counts too, without a record.
    """
    start = min((event.record for event in analysis.events), default=-1)
    kept = (one for one in analysis.kept if one.kind is EventKind.USER and one.record < start)
    asked = [
        *((one.text, one.record, ()) for one in kept),
        *((m.text, m.record, (m.record,)) for m in analysis.messages),
    ]
    for text, record, shown_by in reversed(asked):
        commands, by_hand = dict.fromkeys(verifying_commands(text)), dict.fromkeys(verified_by_hand(text))
        if commands or by_hand:
            events = (*analysis.events, *analysis.kept)
            called = [one for one in events if one.kind is EventKind.CALL and one.record > record]
            since = [command_key(command_of(one.arguments)) for one in called if one.tool is ToolKind.COMMAND]
            is_begun = any(one.record > record and one.action in WRITING for one in analysis.operations)
            left = [f"`{one}`" for one in commands if not any(map(_runs_it(command_key(one)), since))]
            if not (any(_TRIES.search(one.name) for one in called) or any(map(_TRIES_LOCALLY.search, since))):
                left += (analysis.words.quoted(opening(one, _MAX_COMMAND_CHARS)) for one in by_hand)
            return (left, shown_by) if left and is_begun else None
    return None


# A tool with which an agent tries something as a user would.
_TRIES = pattern(r"browser|chrome|playwright|puppeteer|computer|screenshot", re.IGNORECASE)
_TRIES_LOCALLY = pattern(r"\blocalhost\b|\b127\.0\.0\.1\b")


_MAX_LINE_CHARS = 60


def _carried_errors(analysis: Analysis) -> Iterator[Item]:
    """The errors that an earlier summary lists as not fixed and whose command was not run again since."""
    words = analysis.words
    for text in reversed(analysis.memory.errors):
        command = command_key(text.partition("`: ")[0].strip("`"))
        if (words.failing in text or words.changed in text) and not any(
            contains(one.key, command) for one in analysis.runs
        ):
            yield Item(text=text)


def _offer(analysis: Analysis) -> Iterator[Item]:
    """The newest offer, if the user only asked about it, neither took nor declined it, and nothing was edited since."""
    events, words = analysis.events, analysis.words
    changed = max((one.event for one in analysis.operations if one.action is not FileAction.READ), default=-1)
    for before, turn in reversed([*pairwise(analysis.turns)]):
        if turn.first < changed:
            return
        if before.closing < 0:
            continue
        offer, reply = events[before.closing], events[turn.first].text
        options, asked = options_of(offer.text), last_question(offer.text)
        if is_yes_or_no(reply) or chosen_options(reply, options):
            return
        if (_OFFERS.search(asked) or (asked and options)) and not _OF_ANYTHING.search(asked):
            if asks(reply):
                above = sentences(offer.text[: offer.text.find(asked)])[-1:]
                about = " ".join((*above, asked)) if len(terms(asked)) < _MIN_NAMING else asked
                yield Item(text=f"{words.offered}{words.colon}{words.quoted(about)}", records=(offer.record,))
            return


_OFFERS = pattern(
    r"\b(?:(?:want|like) me to|(?:shall|should) I|(?:do|would) you (?:want|like|prefer)"
    r"|which (?:\w+ ){0,4}(?:prefer|want))\b",
    re.IGNORECASE,
)
_OF_ANYTHING = pattern(r"\b(?:anything|else)\b", re.IGNORECASE)
# An offer of fewer words that carry meaning ("Want me to add that?") is shown with the sentence before it.
_MIN_NAMING = 4


def _listed(names: Sequence[str], number: int) -> str:
    """The first ``number`` names, the folder that all of them are in written once: `cli/{run.py, read/main.py}`."""
    taken = names[:number]
    above = zip(*(name.split("/")[:-1] for name in taken), strict=False) if len(taken) > 1 else ()
    folder = "".join(f"{parts[0]}/" for parts in takewhile(lambda parts: len({*parts}) == 1, above))
    line = ", ".join(name.removeprefix(folder) for name in taken) + (f" {ELLIPSIS}" if len(names) > number else "")
    return f"{folder}{{{line}}}" if folder else line


def _rest_by_folder(names: Sequence[str]) -> str:
    """The number of further names, and the folders that hold most of them (` +9: src/tide 6, tests 2 …`); or empty."""
    if not names:
        return ""
    folders = Counter("/".join(name.split("/")[:2][: name.count("/")]) or "." for name in names)
    most = ", ".join(f"{folder} {number}" for folder, number in folders.most_common(_MAX_FOLDERS))
    more = f" {ELLIPSIS}" if len(folders) > _MAX_FOLDERS else ""
    return f" +{len(names)}: {most}{more}"


_MAX_FOLDERS = 4


_MESSAGE_UNSEEN = f"git commit -m {ELLIPSIS}"


def _brief(error: ErrorRecord) -> str:
    return brief(failing_part(error.command, error.line), _MAX_COMMAND_CHARS)


def _error_item(error: ErrorRecord, analysis: Analysis) -> Item:
    words, command = analysis.words, _brief(error)
    if error.status is not Status.FIXED and _ONLY_FAILED.fullmatch(error.line):
        # The line does not say what failed: a filter of the output, which the whole command shows, may have hidden it.
        command = opening(shown(error.command), _MAX_COMMAND_CHARS)
    if error.status is not Status.FIXED and command.endswith(_MESSAGE_UNSEEN):
        # The subject tells what is to be committed again.
        subject = opening(sent_subject(error.command), _MAX_COMMAND_CHARS)
        command = f'{command.removesuffix(ELLIPSIS)}"{subject}"' if subject else command
    where = f"`{command}`{words.colon}" if command and f"{command}:" not in error.line else ""
    if (conflicts := conflicting_files(error.line)) and error.status is not Status.FIXED:
        left = ", ".join(path for path in conflicts if path not in error.fixes)
        edited = ", ".join(path for path in conflicts if path in error.fixes)
        state = f"{left} — {words.unresolved}" if left else f"{edited} — {words.edited}{words.comma}{words.unconcluded}"
        state += f"{words.stop}{words.edited}{words.colon}{edited}" if left and edited else ""
        return Item(text=f"{where}{MERGE_CONFLICT}{state}", records=records_of(error.records))
    gone = {state.path for state in analysis.files if state.is_deleted}
    explained = words.quoted(opening(error.explained, _MAX_ENTRY_CHARS)) if error.explained else ""
    if error.status is Status.FAILING:
        failed_check = is_check(error.command) and not NEVER_RAN.search(error.line)
        ending = f"— {explained or (words.failing if failed_check else words.failed)}"
    elif error.status is Status.CHANGED_SINCE:
        there = [path for path in reversed(error.fixes) if path not in gone]
        changed = f"{words.changed} {_listed(there, _MAX_PATHS)}" if there else words.failing
        state = changed if is_check(error.command) or COMPILER_PLACE.search(error.line) else words.failed
        ending = f"— {words.stop.join(filter(None, (state, explained)))}"
    elif error.other_way:
        how = f"{words.passed}{words.colon}" if is_check(error.command) else f"{words.instead} "
        how = f"{words.fixed} " if REPAIRS.search(error.other_way) else how
        ending = f"→ {how}`{done_instead(error.other_way, error.command, command, _MAX_COMMAND_CHARS)}`"
    elif error.fixes:
        kept = [path for path in error.tried[::-1] if path not in gone]
        tried = f"{words.stop}{words.again} {_listed(kept, _MAX_STALE_PATHS)}" if kept else ""
        line = "" if error.is_test_gone else _line_of_fix(error.fixing, error.fixes, words)
        there = [path for path in reversed(error.fixes) if path not in gone]
        fixes = f"{_listed(there or error.fixes[::-1], _MAX_PATHS)}{_thrown_away(error.fixes, analysis)}"
        how = words.test_gone if error.is_test_gone else words.fixed
        ending = f"→ {how} {fixes}{line}{tried}"
    else:
        between = words.comma.join(f"`{brief(command, _MAX_COMMAND_CHARS)}`" for command in error.between)
        ending = f"→ {words.passed_after} {between}" if between else f"→ {words.passed}"
    ending += f"{words.stop}{words.in_part}" if error.is_in_part else ""
    # What is open is stated by itself.
    still_open = (one.line for one in analysis.errors if is_open(one, len(analysis.events)))
    if error.then and error.then not in still_open:
        ending += f"{words.stop}{words.then_failed}{words.colon}{opening(error.then, _MAX_ENTRY_CHARS)}"
    others = [file for file in error.files if file.rpartition("/")[2] not in error.line]
    more = f" · {words.also_in}{words.colon}{_listed(others, 2 * _MAX_PATHS)}" if others else ""
    line = error.line
    for one in analysis.files:  # named as in the list of files
        if one.path.rpartition("/")[2] in line:
            line = re.sub(rf"[^\s'\"`(]*/(?={re.escape(one.path)}(?![\w.-]))", "", line)
    return Item(text=f"{where}{line}{more} {ending}", records=records_of(error.records))


# An error line that says only that something failed, and is not worth a line once fixed: `FAIL tides [build failed]`.
_ONLY_FAILED = pattern(r"FAIL(?:ED)?(?:\s+\S+)?(?:\s+\[\w+ failed\])?")


def fixed_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """Causes that were found and errors that were fixed, in turns, with what fixed them; errors with an edit first."""
    words = analysis.words
    fixed = [one for one in analysis.errors if one.status is Status.FIXED and not _ONLY_FAILED.fullmatch(one.line)]
    # What fails again is open, whatever passed in between.
    failing = {error.command for error in analysis.errors if is_open(error, len(analysis.events))}
    fixed = [one for one in fixed if (one.fixes or one.command not in failing) and not _is_wanted(one, analysis.events)]
    newest = {error.line: error for error in fixed}
    ranked = sorted(newest.values(), key=lambda error: (not error.fixes, not error.other_way, -error.event))
    known = {error.line for error in analysis.errors}
    # What an earlier summary lists as not fixed may have been fixed since.
    then = (words.failing, words.changed, words.unresolved)
    carried = (
        Item(text=text) for text in reversed(analysis.memory.errors) if not any(one in text for one in (*then, *known))
    )
    offers = chain.from_iterable(
        filter(None, pair)
        for pair in zip_longest(
            (_cause_item(one, analysis) for one in reversed(analysis.causes) if not is_unfixed(one, analysis)),
            (_error_item(error, analysis) for error in ranked),
        )
    )
    return chosen((*offers, *carried), budget_tokens, token_cache)


def _is_wanted(error: ErrorRecord, events: Sequence[Event]) -> bool:
    """Whether a message next to a failure says that it is wanted, as with a test that is written before the code."""
    near = events[max(0, error.event - 2) : error.event + 3]
    return any(one.kind is EventKind.ASSISTANT and _WANTS_FAILURE.search(one.text) for one in near)


_WANTS_FAILURE = pattern(
    r"\bfail(?:s|ed|ing)?\b[^.\n]{0,30}\bas expected\b"
    r"|\b(?:confirm|verify|see|watch)\b[^.\n]{0,20}\b(?:it|they|tests?) fails?\b",
    re.IGNORECASE,
)


def _cause_item(cause: Cause, analysis: Analysis) -> Item:
    words = analysis.words
    edited = f" → {words.edited}{words.colon}{_listed(cause.edited, _MAX_PATHS)}" if cause.edited else ""
    edited += _thrown_away(cause.edited, analysis) or _line_of_fix(cause.fixing, cause.edited, words)
    ending = edited or ("" if analysis.is_dialogue else f" — {words.unresolved}")
    shown = cause.fixing.record if cause.fixing.line else cause.edited_at
    return Item(text=f"{cause.text}{ending}", records=records_of((cause.record, shown)))


def _line_of_fix(fixing: FixingLine, paths: Sequence[str], words: FixedWords) -> str:
    """The line of code that fixes something, with its file if there are several paths; or an empty string."""
    line = f"{words.colon}`{fixing.line}`" if fixing.line else ""
    return f"{words.stop}{fixing.file}{line}" if line and len({*paths}) > 1 else line


def _thrown_away(paths: Collection[str], analysis: Analysis) -> str:
    """A note that the changes of all these files were thrown away since; or an empty string."""
    is_gone = {state.path for state in analysis.files if state.is_reverted}.issuperset(paths)
    return f"{analysis.words.comma}{analysis.words.reverted}" if paths and is_gone else ""


def remembered_errors(analysis: Analysis) -> tuple[str, ...]:
    """All errors with their status and all causes that were found, as lines for the next digest."""
    new = [
        *(_cause_item(cause, analysis).text for cause in analysis.causes),
        *(_error_item(error, analysis).text for error in analysis.errors),
    ]
    return tuple(dict.fromkeys((*analysis.memory.errors, *new)))


def announcement(events: Sequence[Event], asked: int) -> tuple[int, str] | None:
    """The last step that the assistant announced to take after another one, where nothing shows that it was begun.

    As its record, which comes after record ``asked``, and the sentence; else None. It was begun if later words or calls
    name at least half of its words. If enough calls followed, it was, too, if it is a look at something, or if all ends
    with a report.
    """
    later, calls = set[str](), 0
    last = events[-1] if events else None
    is_report = last is not None and last.kind is EventKind.ASSISTANT and len(last.text) >= _MIN_REPORT_CHARS
    for event in reversed(events):
        if event.record <= asked:
            break
        calls += event.kind is EventKind.CALL
        if event.kind is EventKind.ASSISTANT:
            for sentence in reversed(sentences(event.text)):
                if found := _ANNOUNCES.search(sentence):
                    announced = set(terms(apart(found["then"])))
                    is_begun = 2 * len(announced & later) >= len(announced)
                    # One of several later calls was this look, whatever names it used.
                    is_telling = _LOOKS.match(found["then"]) or (event is not last and is_report)
                    is_begun |= calls >= _MIN_LOOKS and bool(is_telling)
                    return None if is_begun else (event.record, sentence)
        if event.kind in (EventKind.ASSISTANT, EventKind.CALL):
            later.update(terms(apart(f"{event.name} {event.text}")))
    return None


# Calls after an announcement, from which on a look counts as taken; characters of a report.
_MIN_LOOKS, _MIN_REPORT_CHARS = 4, 200
_LOOKS = re.compile(
    r"(?i)(?:check|verif|see|look|read|inspect|confirm|re-?run|test|report|tell|summari[sz]|explain|answer)\w*\b"
)
# A verb for a step of the work, with which an entry of a list of steps begins.
_STEP = (
    r"(?:re|squash )?(?:add|build|commit|create|delete|deploy|document|fix|implement|install|merge|move|open|publish"
    r"|push|release|remove|rename|replace|run|tag|test|update|verify|wire|write)"
)
# `Let me fix the gauge, then update the tide table`: the step in `then` has two words or more, unlike "then continue".
_ANNOUNCES = re.compile(
    r"\b(?:let me|let['’]s|(?:I|we)(?:['’]ll| will| can| need to)|I['’]m (?:now )?\w+ing)\b.{6,}"
    # A list of steps, not of things: `I'll commit, push, open a PR, and merge it`.
    rf"(?:(?:[,;]| and) then (?:(?:I|we)['’]ll )?|(?:, (?:{_STEP})\b[^,]*)+, and (?={_STEP}))(?P<then>\w+\s.+)",
    re.IGNORECASE,
)
