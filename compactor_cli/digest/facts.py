"""Facts: what commands changed outside the work tree, and which commands work in this project.

The most telling come first: the newest of these changes, the first of the other commands (the newest check, if any),
older changes, calls of services, then the rest.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from compactor_cli.digest.checks import (
    MOST_CHECKS,
    are_apart,
    brief,
    contains,
    entered,
    is_below,
    is_check,
    programs_of,
)
from compactor_cli.digest.commands import acting_line, acting_part, asks_for_help, failing_part, sent_words
from compactor_cli.digest.commits import PUSHED, PUSHES, Commit
from compactor_cli.digest.events import EventKind
from compactor_cli.digest.failures import fails_later, is_shown
from compactor_cli.digest.files import is_throwaway
from compactor_cli.digest.language import FixedWords
from compactor_cli.digest.runs import COMMIT_LINE, LOG_LINE, CommandOutcome, Run, never_ran
from compactor_cli.digest.services import call_items
from compactor_cli.digest.shell import GIT, OF_ONE_USE, plain_git
from compactor_cli.digest.statements import TokenCache, chosen, records_of
from compactor_cli.digest.texts import ELLIPSIS
from compactor_cli.model.patterns import pattern
from compactor_cli.model.summary import Item

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

# Share of the section that calls of services may take where commands were run, too.
_CALLS_RATIO = 0.5
_MAX_COMMAND_CHARS = 120
_FIRST_CHANGES = 4  # the branch among them


def fact_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """The facts that fit the budget, the most telling first; look-ups of services only where no command acted."""
    words = analysis.words
    ranked = _ranked_runs(analysis.runs)
    known = {run.key for run, _ in ranked}
    # How a carried check ended need not hold for code that changed.
    is_changed = analysis.code_changed_at >= 0
    carried = [
        Item(text=text)
        for text in analysis.memory.commands
        if (command := text.partition("` ")[0].strip("`")) not in known and not (is_changed and is_check(command))
    ]
    older, elsewhere = analysis.work.older, analysis.work.elsewhere
    shown_runs = _still_true(ranked, analysis)
    keys = Counter(run.key for run, _ in shown_runs)
    places = {
        run.event: folder
        for run, _ in shown_runs
        if (folder := entered(run.command)) and not run.acts_outside
        # In a folder below the session's, the command works only there.
        if is_below(folder) or (keys[run.key] > 1 and is_check(run.command))
    }
    places |= elsewhere
    items = [
        (run, _run_item(run, times, words, is_older=run.event in older, folder=places.get(run.event, "")))
        for run, times in shown_runs
    ]
    outside = _with_commits_together([(run, item) for run, item in items if run.acts_outside], elsewhere, words)
    rest = [item for run, item in items if not run.acts_outside]
    room = int(budget_tokens * (_CALLS_RATIO if ranked else 1.0))
    calls = [] if analysis.is_dialogue else call_items(analysis, room, token_cache, with_lookups=not ranked)
    if analysis.work.branch:
        outside.insert(0, _branch_item(analysis))
    elif analysis.place:
        outside.insert(0, Item(text=f"{words.paths}{words.colon}{analysis.place}"))
    named = ((words.allowed, *analysis.limits), (words.whole_before, *analysis.whole_before))
    stated = [
        Item(text=f"{label}{words.colon}{text}", records=records_of((record,))) for label, text, record in named if text
    ]
    outside[1:1] = stated
    outside[1:1] = _merged_items(analysis)
    if analysis.work.by_others:
        commit, record = analysis.work.by_others
        outside.insert(0, Item(text=f"{words.by_others}{words.colon}{commit}", records=records_of((record,))))
    # The newest check tells more than an older change outside.
    ranked_items = (
        *(*outside[:_FIRST_CHANGES], *rest[:1], *outside[_FIRST_CHANGES:]),
        *(*_servers(analysis), *calls, *rest[1:], *_no_commit(analysis)),
    )
    offers: dict[str, Item] = {}
    for item in (*ranked_items, *reversed(carried)):
        if item.text:
            offers.setdefault(item.text, item)  # of two that read alike, the one that tells most
    shown = chosen(offers.values(), budget_tokens, token_cache)
    # Alone, that nothing was committed is not worth its heading.
    return () if [item.text for item in shown] == [words.no_commit] else shown


def _still_true(ranked: Iterable[tuple[Run, int]], analysis: Analysis) -> list[tuple[Run, int]]:
    """The runs, each with a number of times, that show something which may still hold and is not stated elsewhere."""
    elsewhere = analysis.work.elsewhere
    stated = {error.event: error.line for error in analysis.errors if is_shown(error, len(analysis.events))}
    committed = {commit.event: commit.hash for commit in analysis.work.commits}
    amended = {event for commit in analysis.work.commits for event in commit.amends}
    committed_at = max(committed, default=-1)
    removed, shown_last = _removed(analysis.runs), _ShownLast(analysis.runs)
    pushes = (run for run in sorted(analysis.runs, key=lambda run: run.event) if PUSHES.search(run.key))
    pushed = {_destination(run): run.event for run in pushes}

    def is_gone(run: Run) -> bool:
        """Whether a run made a commit that was amended, rebased or reset since."""
        if run.event in amended:
            return True
        if "git commit" not in run.key or run.event in elsewhere or run.outcome is not CommandOutcome.OK:
            return False
        made = committed.get(run.event)
        return made is None or (made not in run.line and COMMIT_LINE.match(run.line) is not None)

    return [
        (run, times)
        for run, times in ranked
        if not (PUSHES.search(run.key) and pushed.get(_destination(run), -1) > run.event)
        if not (is_gone(run) or never_ran(run) or _PRINTS_CODES.search(run.command) or _ends_quietly(run))
        # A log from before the last commit does not show the newest one.
        if not (LOG_LINE.match(run.line) and run.event < committed_at and run.event not in committed)
        if not _is_of_removed(run, removed)
        if run.acts_outside or is_check(run.command) or not _is_past(run, shown_last)
        # A check that ran again within a longer command may have other results by now.
        if not (run.event in analysis.work.older and _is_in_a_later_one(run, analysis.runs))
        if run.acts_outside or not analysis.edited.names_deleted(run.command, run.event)
        if not _is_shown_elsewhere(run, stated, analysis.work.branch)
        if not (fails_later(run, analysis.errors, len(analysis.events)) or _is_overcome(run, analysis.runs))
        if not _is_installed_since(run, analysis.runs)
        if not (is_throwaway(f"{elsewhere.get(run.event, '')}/") or _IN_PASSING.search(run.key))
    ]


def _no_commit(analysis: Analysis) -> Iterator[Item]:
    """The note that nothing was committed, where git was used but no branch is known with which it would stand."""
    uses_git = any(_GIT_CALL.search(run.command) for run in analysis.runs)
    if uses_git and not analysis.work.branch and _without_commit(analysis):
        yield Item(text=analysis.words.no_commit)


def _servers(analysis: Analysis) -> Iterator[Item]:
    """One item with the servers that commands called often, the last first, with the number of commands; or nothing."""
    times, newest = Counter[str](), dict[str, int]()
    for run in analysis.runs:
        command = run.command.partition("<<")[0]
        found = {one.rstrip(".,") for one in _ADDRESS.findall(command) if not _OF_ANYBODY.search(one)}
        if _ENTERS_HOSTS.search(command):
            found.update(_HOST.findall(command))
        times.update(found)
        newest |= dict.fromkeys(found, run.record)
    often = sorted((one for one in times if times[one] >= _MIN_CALLS), key=lambda one: (-newest[one], -times[one]))
    if often := often[:_MAX_SERVERS]:
        named = analysis.words.comma.join(f"{one} ×{times[one]}" for one in often)
        text = f"{analysis.words.servers}{analysis.words.colon}{named}"
        yield Item(text=text, records=records_of(sorted(newest[one] for one in often)))


_MIN_CALLS, _MAX_SERVERS = 3, 3
# `http://10.0.0.7:8080`, `localhost:5432`, but no server of a service that anybody knows.
_ADDRESS = pattern(
    r"\b(?:https?|wss?|postgres(?:ql)?|redis|mysql|mongodb)://[^\s'\"`<>|;)\\}&$/?]+"
    r"|(?<![\w.@/:-])(?:\d{1,3}(?:\.\d{1,3}){3}|localhost):\d+(?![\w.])"
)
_OF_ANYBODY = pattern(
    r"(?:^|[./@])(?:(?:github|google|openai|anthropic)\.com|(?:npmjs|pypi|golang)\.org|example\.\w+)\Z"
)
# `ssh root@tide.harbour`
_ENTERS_HOSTS = pattern(r"\b(?:ssh|scp|rsync|sftp|mosh)\b")
_HOST = pattern(r"(?<![^\s'\"])(?!git@)[\w.-]+@[\w.-]*\w(?=[:\s'\"]|\Z)")
_GIT_CALL = pattern(rf"\b{GIT}(?:status|log|diff|show|branch)\b")


def _branch_item(analysis: Analysis) -> Item:
    """The branch, with where it is, how far from the one it follows, and whether its commits were pushed."""
    words, work = analysis.words, analysis.work
    place = work.tree or analysis.place
    if place and not work.tree:
        shown = (run.command for run in analysis.runs if run.result_record == work.branch_record)
        place = posixpath.normpath(posixpath.join(place, next(filter(None, map(entered, shown)), "")))
    place = f" {words.within} {place}" if place else ""
    commits = work.commits if work.tree else [one for one in work.commits if one.event not in work.elsewhere]
    is_own = bool(commits) and commits[-1].branch in ("", work.branch)
    is_there = is_own and max(work.in_step.values(), default=-1) > commits[-1].event
    is_local = is_own and not (work.is_pushed or work.unpushed or is_there)
    state = "".join(f"{words.comma}{part}" for part in (work.ahead, words.no_push if is_local else "") if part)
    text = f"{words.branch} {work.branch}{place}{state}{_without_commit(analysis)}"
    return Item(text=text, records=records_of((work.branch_record,)))


def _merged_items(analysis: Analysis) -> Iterator[Item]:
    """One item with the merged requests that the session made or is about; nothing where none was merged."""
    words, asked = analysis.words, "\n".join(message.text for message in analysis.messages)
    if merged := merged_requests(analysis.runs, analysis.work.commits, asked):
        shown = [(f"{one.repository}#{one.number}", one.commit) for one in merged]
        named = words.comma.join(f"{number} ({commit})" if commit else number for number, commit in shown)
        yield Item(text=f"{words.merged}{words.colon}{named}", records=records_of(sorted(one.record for one in merged)))


def _with_commits_together(
    items: Iterable[tuple[Run, Item]], elsewhere: Mapping[int, str], words: FixedWords
) -> list[Item]:
    """The items, with up to `_MAX_TOGETHER` commits of a branch as one: their lines differ in hash and subject only."""
    found: list[Item] = []
    placed: dict[str, int] = {}
    for run, item in items:
        made = COMMIT_LINE.match(run.line) if _COMMITS_ALONE.fullmatch(run.key) and run.event not in elsewhere else None
        at = placed.get(made["branch"], -1) if made else -1
        if made and at >= 0 and len(found[at].records) < _MAX_TOGETHER:
            text = f"{found[at].text}{words.stop}{made['hash']}{made['subject']}"
            found[at] = Item(text=text, records=records_of((*found[at].records, *item.records)))
            continue
        if made:
            placed[made["branch"]] = len(found)
        found.append(item)
    return found


# A command that commits and does nothing else: `git add tide.py && git commit -m …`.
_COMMITS_ALONE, _MAX_TOGETHER = pattern(r"(?:git add [^&|;]+ && )?git commit\b[^&|;]*", re.DOTALL), 5


def _destination(run: Run) -> str:
    """The branch that a push reports to have gone to, else its command line."""
    found = PUSHED.search(run.output)
    return found["branch"] if found else acting_line(run.command)


def _without_commit(analysis: Analysis) -> str:
    """A note that no record shows a commit, where files were changed; else, or where there may be one, an empty string.

    What was done outside the session is not known: the user's words may speak of a commit of their own.
    """
    is_changed = any(state.changed >= 0 for state in analysis.files)
    is_committed = bool(analysis.work.commits or analysis.work.by_others or analysis.work.uncommitted)
    # A commit without a result may have been made.
    pending = (run for run in analysis.runs if run.event in analysis.work.without_result)
    is_committed = is_committed or any("git commit" in run.key for run in pending)
    may_be = is_committed or any(_COMMITTED.search(message.text) for message in analysis.messages)
    # A program that works on the project may commit, as the assistant reports it.
    spoken = (event.text for event in analysis.events if event.kind is EventKind.ASSISTANT)
    may_be = may_be or any(map(_REPORTS_COMMIT.search, spoken))
    return f"{analysis.words.comma}{analysis.words.no_commit}" if is_changed and not may_be else ""


# Words of the user for a commit that may be their own: `I will commit the tides`, `my last commit`.
_COMMITTED = pattern(
    r"\b(?:I|we)\b[^.!?\n]{0,40}\bcommit|\bcommit(?:ted|s)\b|\b(?:my|the|this|that|last|new) commit\b|提交|コミット",
    re.IGNORECASE,
)


_REPORTS_COMMIT = pattern(
    r"\b(?:commit|merged|pushed)\w*\b[^.!?\n]{0,60}\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b", re.IGNORECASE
)


def _is_shown_elsewhere(run: Run, stated: Mapping[int, str], branch: str) -> bool:
    """Whether a shown error, or the branch, already states what came of a run.

    ``stated``: the lines of the shown errors, by position in the events.
    """
    if run.outcome is CommandOutcome.FAILED:
        return run.event in stated or any(map(run.line.__contains__, stated.values()))
    return bool(branch) and _MOVES_TO_BRANCH.match(run.line) is not None


_MOVES_TO_BRANCH = pattern(r"(?:Switched to|Already on|[Bb]ranch) (?:a new branch )?['\"]|Switched to branch ")


def _ends_quietly(run: Run) -> bool:
    """Whether a run changed git's index or history and printed nothing: files and later commits show the outcome."""
    return (
        run.outcome is CommandOutcome.OK and not run.line and _MOVES_INDEX.match(acting_line(run.command)) is not None
    )


_MOVES_INDEX = pattern(r"git (?:add|commit|reset|rm|branch|restore)\b[^;&|]*\Z")


def _removed(runs: Sequence[Run]) -> dict[str, int]:
    """The names of what runs removed or ended (a worker, a container), each with the position of the last such run."""
    gone = (run for run in runs if run.outcome is not CommandOutcome.FAILED)
    return {name: run.event for run in gone for found in _REMOVES.finditer(run.key) for name in found[1].split()}


def _is_of_removed(run: Run, removed: Mapping[str, int]) -> bool:
    """Whether a run that changed and checked nothing names something that was removed since."""
    only_shows = not (run.acts_outside or is_check(run.command))
    named = _NAME_OF_ONE.findall(f"{run.command}\n{run.line}")
    return only_shows and any(removed.get(name, -1) > run.event for name in named)


def _is_overcome(run: Run, runs: Sequence[Run]) -> bool:
    """Whether a run that failed no longer matters, because a later run went well.

    That is one of the same program, one that sent the same message, or, after a git command that moves the work tree,
    any other such command. A check is never overcome this way, but by the very same command whose end is unknown.
    """
    if run.outcome is not CommandOutcome.FAILED:
        return False
    again = [one for one in runs if one.event > run.event and one.command == run.command]
    if again and again[-1].outcome is CommandOutcome.UNKNOWN:
        return True  # in the same form, it showed no failure
    if is_check(run.command):
        return False
    if message := sent_words(run.command):
        done = (one for one in runs if one.event > run.event and one.outcome is CommandOutcome.OK)
        return any(sent_words(one.command) == message for one in done)
    if run.acts_outside:
        return False
    own = {*programs_of(run.command)}
    own |= _MOVES_WORK_TREE if own & _MOVES_WORK_TREE else frozenset()
    later = (one for one in runs if one.event > run.event and one.outcome is CommandOutcome.OK)
    return any(not own.isdisjoint(programs_of(one.command)) for one in later)


_MOVES_WORK_TREE = frozenset(f"git {command}" for command in ("switch", "checkout", "pull", "merge", "rebase", "reset"))


def _is_in_a_later_one(run: Run, runs: Sequence[Run]) -> bool:
    """Whether a check is part of a command that was run after it."""
    later = (one for one in runs if one.event > run.event and one.key != run.key)
    return is_check(run.command) and any(contains(one.key, run.key) for one in later)


def _is_installed_since(run: Run, runs: Sequence[Run]) -> bool:
    """Whether a run missed a module or a command that a later run installed."""
    missing = _MISSES.search(run.line)
    if missing is None:
        return False
    named = re.compile(rf"\binstall\b.*\b{re.escape(next(filter(None, missing.groups())).partition('.')[0])}\b")
    done = (one for one in runs if one.event > run.event and one.outcome is not CommandOutcome.FAILED)
    return any(named.search(one.command) for one in done)


_MISSES = pattern(r"No module named '([\w.]+)'|Cannot find (?:module|package) '([\w./@-]+)'|(\S+): command not found")


class _ShownLast(dict[str, int]):
    """By name, the position of the last run whose output holds it, -1 for none; each name is searched for once."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = sorted(runs, key=lambda run: -run.event)

    def __missing__(self, name: str) -> int:
        found = self[name] = next((run.event for run in self._runs if name in run.output), -1)
        return found


def _is_past(run: Run, shown_last: Mapping[str, int]) -> bool:
    """Whether what a run showed has no meaning by itself (numbers), or may not hold any more (an absence, a status)."""
    if _ONLY_CODE.fullmatch(run.line) or _ABSENT.match(run.line):
        return True
    if _ONLY_NUMBERS.fullmatch(run.line) and ELLIPSIS in brief(acting_part(run.command), _MAX_COMMAND_CHARS):
        return True  # the part of the command that says what they count is not shown
    asked = _NAME_OF_ONE.findall(run.key) if _ASKS_STATUS.search(run.key) else []
    return bool(asked) and shown_last[asked[-1]] > run.event


# Prints exit codes, numbers without their meaning: `echo "rc=$?"`.
_PRINTS_CODES = pattern(r"\becho [\"']?\w+=\$\?")
# A line that is an exit code and nothing else: `exit code: 1`.
_ONLY_CODE = pattern(r"\W*(?:exit|exited|rc|status)\b[\w ]*[=: ]+\d+\W*", re.IGNORECASE)
# Numbers, perhaps with the paths of the files that they are of: `105 tides.txt · 7`.
_ONLY_NUMBERS = pattern(rf"(?=.*\d)(?:(?<!\S)(?:\S*/)?[\w-]+\.\w+(?!\S)|(?<!\S)[~/]\S+|[\d\s.,:·%-]|{ELLIPSIS})++")
# A search that found nothing, though it may find something now: `no tides found`.
_ABSENT = pattern(
    r"\W*(?:no \w+(?: \w+){0,2} (?:found|match\w*)\b|nothing (?:found|to show)\b|0 (?:results?|match\w*)\b)", re.I
)
_ASKS_STATUS = pattern(r"\b(?:status|ps|ls|list|show|get|capture|logs?|wait)\b")


# A name that was given to one thing, words joined by hyphens: `tide-gauge-2`.
_NAME_OF_ONE = pattern(r"(?<![\w./-])[a-z]\w*(?:-\w+)+(?![\w./-])")
_REMOVES = pattern(r"\b(?:remove|delete|destroy|kill|close|stop|down)((?: [\w./-]+)+)")
# A stash, or a script in /tmp: what is still stashed stands among the open items.
_IN_PASSING = re.compile(r"\bgit stash\b|^(?:cat >|python3?|bash|sh|node) ?/tmp/")


def _ranked_runs(runs: Sequence[Run]) -> list[tuple[Run, int]]:
    """The newest run of each command that acts; of requests to a server, with how many of them ended alike.

    Checks come first, scripts of one use last, newer runs before older ones. Numbers that differ among requests to a
    server become an ellipsis. A check is left out where a newer check that covers it had the same outcome, or any
    outcome where its own is unknown.
    """
    by_key: dict[str, list[Run]] = {}
    for run in runs:
        shows = run.is_read_only or _OF_PROCESSES.match(run.key) is not None
        shows |= run.outcome is not CommandOutcome.FAILED and asks_for_help(run.command)
        if not shows and (run.outcome is not CommandOutcome.UNKNOWN or run.line):
            kind = _kind(run)
            while kind in by_key and are_apart(by_key[kind][-1].command, run.command):
                kind += " "  # the same command in the next package
            by_key.setdefault(kind, []).append(run)

    def rank(group: Sequence[Run]) -> tuple[bool, bool, int]:
        newest = group[-1]
        shows_once = newest.outcome is CommandOutcome.OK and OF_ONE_USE.match(newest.key) is not None
        return not is_check(newest.command), shows_once, -newest.event

    groups = sorted(by_key.values(), key=rank)
    kept: list[list[Run]] = []
    for group in groups:
        newest = group[-1]
        # A run of unknown outcome shows less than a later one with any outcome.
        is_unknown = newest.outcome is CommandOutcome.UNKNOWN
        newer = (other[-1] for other in kept[:MOST_CHECKS])
        wider = (one for one in newer if one.outcome is newest.outcome or (is_unknown and one.event > newest.event))
        if not (is_check(newest.command) and any(_covers(other, newest) for other in wider)):
            kept.append(group)
    return [(_as_one(group), _ended_alike(group)) for group in kept]


def _covers(other: Run, run: Run) -> bool:
    return contains(other.key, run.key) and not are_apart(other.command, run.command)


def _ended_alike(group: Sequence[Run]) -> int:
    """How many requests to a server ended as the newest did; 1 for any other command, which may run in chains too."""
    newest = group[-1]
    return sum(run.outcome is newest.outcome for run in group) if newest.asks_a_server else 1


def _kind(run: Run) -> str:
    """A key that runs share which do the same; of a request to a server, its command line without the numbers."""
    if run.asks_a_server:
        # The line may be cut before it shows whether something is asked or changed.
        changes = "mutation" if "mutation" in run.command else ""
        return f"{_NUMBER.sub('#', acting_line(run.command))}{changes}"
    # The pattern of a `grep` after it decides what a command shows, but not what a check checks.
    is_searched = not is_check(run.command) and "| grep" in run.command
    return " ".join(run.command.split()) if is_searched else run.key


def _as_one(group: Sequence[Run]) -> Run:
    """The newest of runs of one kind; of requests to a server, with an ellipsis for each number that differs."""
    newest = group[-1]
    if len(group) == 1 or not newest.asks_a_server:
        return newest
    pieces = zip(*(_NUMBER.split(acting_line(run.command)) for run in group), strict=True)
    return replace(newest, command="".join(ELLIPSIS if len({*same}) > 1 else same[0] for same in pieces))


_NUMBER = re.compile(r"(\d+)")


def _run_item(run: Run, times: int, words: FixedWords, *, is_older: bool = False, folder: str = "") -> Item:
    """A run as one item; its text is empty where it would show too little."""
    is_failed = run.outcome is CommandOutcome.FAILED
    acting = failing_part(run.command, run.line) if is_failed else acting_part(run.command)
    acting = acting if folder else plain_git(acting)
    line = brief(acting, _MAX_COMMAND_CHARS)
    # What was fetched, and how the branch stood then, is out of date.
    if _SCRIPT_UNSEEN.fullmatch(line) or (_FETCHES.match(line) and run.outcome is CommandOutcome.OK):
        return Item(text="")
    often = f" ×{times}" if times > 1 else ""
    place = f" ({folder})" if folder else ""
    if run.outcome is CommandOutcome.UNKNOWN:
        often += f" ({words.older})" if is_older else ""
        return Item(
            text=f"`{line}`{place}{often} → {run.line}" if line else "", records=records_of((run.result_record,))
        )
    outcome = words.ok if run.outcome is CommandOutcome.OK else words.failed
    often += f" {words.older}" if is_older and not run.acts_outside else ""
    # Of a search that only counts the errors, the number.
    number = run.output.strip() if is_failed else ""
    printed = _own_line(run, line) or (number if number.isdecimal() else "")
    # Success alone carries little information, unless the run acted outside or checked the work.
    is_shown = not _TEXT_UNSEEN.search(line) and (run.acts_outside or is_check(run.command))
    is_telling = printed or is_shown or _BUILDS.search(run.command)
    detail = f"{words.colon}{printed}" if printed else ""
    is_refused = run.outcome is CommandOutcome.OK and _TROUBLE.search(printed) and not is_check(run.command)
    result = f"{printed}{often}" if is_refused else f"{outcome}{often}{detail}"
    text = f"`{line}`{place} → {result}" if line and is_telling else ""
    return Item(text=text, records=records_of((run.result_record,)))


def _own_line(run: Run, command: str) -> str:
    """The line that a run printed, unless another step of its chain than the ``command`` that is shown printed it."""
    if command.startswith("git push") and COMMIT_LINE.match(run.line):
        pushed = PUSHED.search(run.output)
        return pushed[0].strip() if pushed else ""
    return "" if command.startswith("gh ") and run.line.startswith("Your branch is ") else run.line


_FETCHES = pattern(rf"\b{GIT}fetch\b(?!.*\b(?:push|merge|rebase|tag)\b)")
# What a service or program answers that was reached and refuses or is down.
_TROUBLE = re.compile(
    r"\bHTTP(?:/[\d.]+)? [45]\d\d\b|\b(?:Unauthorized|Forbidden|(?:CrashLoop|ImagePull)BackOff|[Tt]imed out)\b"
    r"|(?:^|· )(?:error: |\w+Error: )"
)
# An inline program that was cut before it shows anything: `python3 -c " …`, `bash <<EOF …`.
_SCRIPT_UNSEEN = re.compile(
    rf"\S+(?: -{{1,2}}\w+)* (?:-c|-e|--eval) ?[\"'] ?{ELLIPSIS}"
    rf"|(?:python3?|node|bun|deno|bash|sh|ruby|perl)(?: -\S*)*(?: \w+)* ?<<-? ?[\"']?\w+[\"']? {ELLIPSIS}"
)
# A message whose text is not shown: `gh api graphql -f query=' …`.
_TEXT_UNSEEN = re.compile(rf"=[\"'] ?{ELLIPSIS}\Z")
# A command about running processes or ports, which holds until the next start: `lsof -i :80`.
_OF_PROCESSES = pattern(r"\(?(?:sleep \S+ *(?:&&|;) *)?(?:kill|pkill|killall|lsof|pgrep|ps|nc)\b")
_BUILDS = pattern(r"\b(?:npm|pnpm|yarn|bun|cargo|go|make|mvn|gradlew?|dotnet)\b[^|;&\n]*\bbuild\b|\btsc\b")


def remembered_commands(analysis: Analysis) -> tuple[str, ...]:
    """Every acting command with its last outcome as a line, for the next digest, oldest first."""
    ranked, older = _ranked_runs(analysis.runs), analysis.work.older
    new = [_run_item(run, times, analysis.words, is_older=run.event in older).text for run, times in reversed(ranked)]
    names = {text.partition("` ")[0] for text in new}
    return (*(text for text in analysis.memory.commands if text.partition("` ")[0] not in names), *filter(None, new))


class MergedRequest(NamedTuple):
    """A request to merge that was merged."""

    number: str
    commit: str  # the hash of the commit that it became; empty where unknown
    record: int  # the record that shows it merged
    repository: str = ""  # as the command named it; empty for the one of the work tree


def merged_requests(runs: Sequence[Run], commits: Sequence[Commit], asked: str) -> tuple[MergedRequest, ...]:
    """The requests to merge that were made or looked at here, or named in what was ``asked``, and seen to be merged.

    That is: their server says so, a commit has their number in its subject, or a fast-forward brought all files of
    their branch.
    """
    found: dict[str, MergedRequest] = {}
    known = set(_NAMED_REQUEST.findall(asked))
    files: dict[str, set[str]] = {}
    for run in runs:
        seen: dict[str, str] = {}
        if run.key.startswith("gh pr ") or " gh pr " in run.key:
            made = _REQUEST_PAGE.findall(run.output) if "gh pr create" in run.key else []
            known.update(made, _REQUEST_ASKED.findall(run.key))
            files |= {number: _files_of_branch(commits, run) for number in made[-1:]}
            seen = dict.fromkeys(_merged_at_server(run), "")
        if run.key.startswith("git ") or "&& git " in run.key:
            seen |= {number: commit for commit, number in _MERGE_COMMIT.findall(run.output)}
            came = {found[1].rpartition("/")[2] for found in _CAME_FORWARD.finditer(run.output)}
            is_forward = "Fast-forward" in run.output
            seen |= {number: "" for number, names in files.items() if is_forward and names and names <= came}
        for number, commit in seen.items():
            if number in known and (number not in found or (commit and not found[number].commit)):
                named = _OF_REPOSITORY.search(run.command)
                repository = named[1] if named else found[number].repository if number in found else ""
                found[number] = MergedRequest(number, commit, run.result_record, repository)
    return tuple(found.values())


def _files_of_branch(commits: Sequence[Commit], run: Run) -> set[str]:
    """The names, without folders, of the files in the commits of the branch that a run asked to merge.

    That is the branch of the newest commit before the run.
    """
    before = [one for one in commits if one.event <= run.event]
    return {name.rpartition("/")[2] for one in before if one.branch == before[-1].branch for name in one.named}


def _merged_at_server(run: Run) -> Iterator[str]:
    """The numbers of the requests that an output of `gh` shows as merged."""
    named = [next(filter(None, found.groups())) for found in _SHOWN_MERGED.finditer(run.output)]
    asked, states = _REQUEST_ASKED.findall(run.key), _STATE.findall(run.output)
    yield from named or (number for number, is_merged in zip(asked, states, strict=False) if is_merged)


_OF_REPOSITORY = pattern(r"\bgh pr \w+ (?:[^&|;]* )?(?:-R|--repo)[ =]([\w./-]+)")
_REQUEST_PAGE = pattern(r"/pull/(\d+)\b")
_NAMED_REQUEST = pattern(r"(?:\b(?:pr|pull request)s? #?|/pull/)(\d+)\b", re.IGNORECASE)
_REQUEST_ASKED = pattern(r"\bgh pr (?:merge|view) (?:\S*/)?(\d+)\b")
_SHOWN_MERGED = pattern(
    r"[Mm]erged pull request \S*#(\d+)|[Pp]ull request \S*#(\d+) \([^\n]*\)? ?was already merged"
    r"|\"number\": ?(\d+)[^{}]*\"state\": ?\"MERGED\"|^(\d+)\t.*\tMERGED\b",
    re.MULTILINE,
)
# The state of a request; group 1 is empty unless it is merged.
_STATE = pattern(r"\b(?:(MERGED)|OPEN|CLOSED)\b")
# In a log of either form, hash and number: `1a2b3c4 Read the tide (#12)`, or `    Merge pull request #12 from …`.
_MERGE_COMMIT = pattern(
    r"^(?:[^\w\n]*([0-9a-f]{7,40})\b| {4}).*?(?:\(#(?=\d+\)$)|Merge pull request #)(\d+)", re.MULTILINE
)
# A file that a pull brought, with the number of changed lines: ` tides.py | 4 ++--`.
_CAME_FORWARD = pattern(r"^ (\S+) +\| +(?:\d|Bin)", re.MULTILINE)
