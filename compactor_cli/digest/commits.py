"""Commits: those that the session made, and which of its files each of them holds, as far as records show it."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice
from typing import NamedTuple

from compactor_cli.digest.commands import COMMIT_LINE, CommandOutcome, Run, sent_words
from compactor_cli.digest.error_lines import ERROR_PATTERN
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.files import FileState
from compactor_cli.digest.shell import GIT, QUOTED, SHORTENS
from compactor_cli.model.patterns import pattern
from compactor_cli.model.value import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit that a run made: its branch, hash and subject as git wrote them, and where the run stands.

    ``named``: the paths that were given to git for it, and those that git showed to be in it. ``takes_all``: whether
    it holds whatever else had changed; None where it is not seen what was staged. ``size``: the number of its files,
    0 where git did not say it. ``left_out``: paths that were taken out of what is staged again. ``amends``: where the
    runs stand that made what it is in place of.
    """

    branch: str
    hash: str  # empty where no record shows it
    subject: str
    event: int
    record: int
    named: tuple[str, ...] = ()
    takes_all: bool | None = None
    size: int = 0
    left_out: tuple[str, ...] = ()
    amends: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Its hash, else its subject in quotation marks."""
        return self.hash or f'"{self.subject}"'


def held_by(
    states: Iterable[FileState], commits: Sequence[Commit], is_ignored: Callable[[FileState, int], bool]
) -> dict[str, Commit | None]:
    """The commit that holds the last change of each file, by path; None where one may hold it, and may not.

    A file that no commit holds is not among them. ``is_ignored``: whether git is seen to pass over it up to an event.
    """
    found: dict[str, Commit | None] = {}
    tracked: set[str] = set()
    left = [state for state in states if state.changed >= 0]
    paths = {_between_slashes(state.path): state.path for state in left}
    for commit in commits:
        named = _named(commit.named, paths)
        before = {state.path: state for state in left if state.changed <= commit.event}
        taken = named & before.keys()
        if commit.takes_all is not False:
            others = before.keys() - named - _named(commit.left_out, paths)
            found |= dict.fromkeys(others, None)
            # With the number of its files git names those that are new.
            is_listing = commit.size > 0
            may_be_in = {
                path
                for path in others
                if not (is_listing and before[path].is_created and path not in tracked)
                if not (_HIDDEN_FOLDER.search(path) or is_ignored(before[path], commit.event))
            }
            if commit.takes_all and (not is_listing or len(may_be_in | taken) <= commit.size):
                taken |= may_be_in
        found |= dict.fromkeys(taken, commit)
        tracked |= taken | named
        left = [state for state in left if state.path not in found]
    return found


def earlier_hashes(state: FileState, commits: Sequence[Commit], last: Commit | None) -> Iterator[str]:
    """The commits that hold changes of a file before those in the ``last`` one, or before its last change where that is
    in none; as far as they were named for it."""
    paths = {_between_slashes(state.path): state.path}
    end = last.record if last else max(state.records, default=0)
    first = min(state.records, default=end)
    for commit in commits:
        is_earlier = first < commit.record < end and not (last and commit.name == last.name)
        if is_earlier and _named(commit.named, paths):
            yield commit.name


# What belongs to a tool, and may be ignored.
_HIDDEN_FOLDER = pattern(r"(?:^|/)\.(?!git)[\w-]+/")


def _named(names: Iterable[str], paths: Mapping[str, str]) -> set[str]:
    """The files of these names, or in these folders; where there is none, those that it may be from another folder.

    ``paths``: all files, by what stands between slashes.
    """
    found: set[str] = set()
    for name in map(_between_slashes, names):
        whole = {path for one, path in paths.items() if one.startswith(name)}
        found |= whole or {path for one, path in paths.items() if name in one or name.endswith(one)}
    return found


def _between_slashes(path: str) -> str:
    # The end of a path in a home folder finds it by its whole.
    return f"/{path.removeprefix('~/').strip('/')}/"


def find_commits(runs: Sequence[Run], directory: str) -> list[Commit]:
    """The commits that stand, in order: one that was amended is part of the one in its place, and some are taken back.

    Going on with a merge or a rebase commits what was staged.

    ``directory``: where the session works.
    """
    found: list[Commit] = []
    index = _Index()
    for number, run in enumerate(runs):
        text = run.output
        made = list(_MADE.finditer(text)) if run.outcome is not CommandOutcome.FAILED else []
        ends = [*(one.start() for one in made[1:]), len(text)]
        for step, words, is_shown in _steps(run.command, directory):
            if step == "commit":
                # What a rebase goes on with is made again under its subject.
                is_again = "--continue" in words and found and made and made[0]["subject"].strip() == found[-1].subject
                amended = found.pop() if found and made and ("--amend" in words or is_again) else None
                index.commit(words, amended)
                one = made.pop(0) if made else _quietly_made(words, runs, number)
                if one:
                    shown = text[one.end() : ends.pop(0)] if one.string == text and ends else ""
                    new = index.committed(one, shown, run)
                    if amended:
                        branch, amends = new.branch or amended.branch, (*amended.amends, amended.event)
                        new = replace(new, branch=branch, amends=amends)
                    found.append(new)
                    index = _Index()
                elif found and "--continue" in words:
                    # The commit that a rebase goes on with holds what was resolved.
                    old = found[-1]
                    named, amends = (*old.named, *index.named), (*old.amends, old.event)
                    found[-1] = replace(old, named=named, event=run.event, record=run.result_record, amends=amends)
                    index = _Index()
            elif step == "reset" and (number_back := _taken_back(words, found)):
                if found and _are_on_a_branch([one for one in runs if one.event >= found[-1].event], run):
                    continue
                gone = found[-number_back:]
                del found[-number_back:]
                staged = [name for one in gone for name in one.named]
                takes_all = any(one.takes_all for one in gone) or None
                index = _Index(named=staged, takes_all=takes_all) if "--soft" in words else _Index()
            elif step in ("status", "diff"):
                index.show(text if is_shown else "", step, words)
            elif "fatal: pathspec" not in text:
                index.stage(step, words)
    return found


def _taken_back(words: Sequence[str], commits: Sequence[Commit]) -> int:
    """How many of the newest commits a ``reset`` takes back: as many as it counts, or those after the one it names.

    What stays staged (``--soft``) is made into one commit of all that are not in the commit or branch named.
    """
    if back := _BACK.search(" ".join(words)):
        return int(back[1] or 1)
    named = [word for word in words if not word.startswith("-")] if "--soft" in words else []
    if not named:
        return 0
    after = (number for number, one in enumerate(reversed(commits)) if one.hash and named[-1].startswith(one.hash[:7]))
    return next(after, len(commits))


def _are_on_a_branch(runs: Iterable[Run], reset: Run) -> bool:
    """Whether commits that a ``reset`` takes back stand on a branch that was made of them before and gone to later."""
    commands = [(run.event, run.command) for run in runs]
    made = {name for at, command in commands if at <= reset.event for name in _BRANCH_MADE.findall(command)}
    return any(one in made for at, command in commands if at >= reset.event for one in _BRANCH_TAKEN.findall(command))


_BRANCH_MADE = pattern(rf"\b{GIT}(?:branch|checkout -b|switch -c) ([^\s;&|-][^\s;&|]*)")
_BRANCH_TAKEN = pattern(rf"\b{GIT}(?:checkout|switch) ([^\s;&|-][^\s;&|]*)")


def _quietly_made(words: Sequence[str], runs: Sequence[Run], number: int) -> re.Match[str] | None:
    """A commit of which its run shows no line: by a log, in it or later, else by its message; None if unseen."""
    run, subject = runs[number], sent_words(runs[number].command).partition("\n")[0].strip()
    is_quiet = any(_QUIET.fullmatch(word) for word in words) or _SAYS_OK.search(run.output) is not None
    if not (is_quiet and subject) or run.outcome is CommandOutcome.FAILED:
        return None
    logged = (one for later in islice(runs, number, None) for one in _LOGGED.finditer(later.output))
    # Where a chain does not show how its steps went, a commit was made unless a line shows an error.
    is_made = run.outcome is CommandOutcome.OK or not ERROR_PATTERN.search(run.output)
    return next((one for one in logged if one["subject"] == subject), _UNLOGGED.match(subject) if is_made else None)


_QUIET = pattern(r"-(?!-)\w*q\w*|--quiet")
# What shortens the output of commands says no more of one that went well.
_SAYS_OK = pattern(r"^ok\b\W*\Z", re.MULTILINE)
_UNLOGGED = pattern(r"(?P<hash>)(?P<subject>.*)")


def after_rebases(commits: Iterable[Commit], runs: Iterable[Run]) -> Iterator[Commit]:
    """The commits with the hashes that a log after a rebase shows for their subjects, or the next push for the newest.

    One that was not pushed before is known by its subject where neither shows its hash.
    """
    renamed: list[tuple[int, dict[str, str]]] = []
    commits = list(commits)
    rebased_at = pushed_at = -1
    for run in runs:
        if PUSHES.search(run.key) and run.outcome is CommandOutcome.OK:
            if (pushed := PUSHED.search(run.output)) and pushed_at < rebased_at:
                newest = [one for one in commits if one.event < run.event][-1:]
                renamed.append((rebased_at, {one.subject: pushed["hash"] for one in newest}))
            pushed_at = run.event
        if _REBASED.search(run.output) and run.outcome is not CommandOutcome.FAILED:
            before = (one for one in commits if pushed_at < (one.amends or (one.event,))[-1] < run.event)
            rewritten = (one for one in before if one.event <= run.event and one.branch != "detached HEAD")
            renamed.append((run.event, {one.subject: "" for one in rewritten}))
        if _REBASE.search(run.key) and run.outcome is not CommandOutcome.FAILED:
            rebased_at = run.event
        if rebased_at >= 0 and "git log" in run.key:
            logged = _LOGGED.findall(run.output)
            times = Counter(subject for _, subject in logged)
            renamed.append((rebased_at, {subject: name for name, subject in logged if times[subject] == 1}))
    for commit in commits:
        names = (
            logged[commit.subject]
            for at, logged in reversed(renamed)
            if commit.event <= at and commit.subject in logged
        )
        yield replace(commit, hash=next(names, commit.hash))


_REBASED = pattern(r"^Successfully rebased and updated ", re.MULTILINE)
PUSHES = pattern(r"\bgit push\b(?!.*--dry-run)")
# What a push says that it did: the commit that a branch is at since, and the branch.
PUSHED = pattern(r"^ +[+ ]?[0-9a-f]{7,40}\.{2,3}(?P<hash>[0-9a-f]{7,40}) +\S+ -> (?P<branch>\S+)", re.MULTILINE)
_REBASE = pattern(r"\bgit (?:rebase\b|pull\b.* (?:-r|--rebase)\b)")
_LOGGED = pattern(r"^(?:\* )?(?P<hash>[0-9a-f]{7,40}) (?:\([^)\n]*\) )?(?P<subject>.+)$", re.MULTILINE)
_MADE = pattern(COMMIT_LINE.pattern.replace("<branch>", "<branch>detached HEAD|"), re.MULTILINE)
_SIZE = pattern(r"^ *(\d+) files? changed", re.MULTILINE)
# New and deleted files of a commit, and those that were moved.
_SHOWN = pattern(r"^ *(?:(?:create|delete) mode \d+ (.+)|re(?:name|write) (.*) \(\d+%\))$", re.MULTILINE)
# `git reset HEAD~2`, `git reset HEAD^`
_BACK = pattern(r"(?<!\S)(?:HEAD|@)(?:~(\d*)|\^)(?!\S)")


@dataclass(slots=True, kw_only=True)
class _Index:
    """What is staged as far as records show it: the fields of a `Commit`."""

    named: list[str] = field(default_factory=list)
    takes_all: bool | None = None
    left_out: list[str] = field(default_factory=list)

    def stage(self, step: str, words: Sequence[str]) -> None:
        """Reads `git add`, `rm` and `mv`, and what takes paths out again."""
        paths = [word for word in words if not word.startswith("-") and word != "HEAD"]
        if step in ("reset", "restore"):
            if step == "reset" and not paths:
                self.named, self.takes_all = [], False
            elif step == "reset" or not {"--staged", "-S"}.isdisjoint(words):
                self.named = [name for name in self.named if name not in paths]
                self.left_out += paths
        elif not {"-p", "--patch", "-i", "-e"}.isdisjoint(words):
            self.takes_all = None
        elif paths and all(map(_PLAIN.fullmatch, paths)):
            self.named += paths
            self.takes_all = self.takes_all or False
        else:
            self.takes_all = True

    def show(self, text: str, step: str, words: Sequence[str]) -> None:
        """Reads what git lists as staged: that alone is."""
        if step == "status":
            _, _, listed = text.partition("Changes to be committed:")
            listed = re.split(r"^(?:Changes not staged|Untracked files|Unmerged paths)", listed, flags=re.MULTILINE)[0]
            named = _STAGED.findall(listed) or _STAGED_SHORT.findall(text)
        else:
            named = _STAT.findall(text) if not {"--cached", "--staged"}.isdisjoint(words) else []
        if named:
            self.named, self.takes_all = named, False

    def commit(self, words: Sequence[str], amended: Commit | None) -> None:
        """Reads what a commit takes besides: all that git knows, the paths that it names, what it is in place of."""
        if any(re.fullmatch(r"-(?!-)\w*a\w*|--all", word) for word in words):
            self.takes_all = True
        before = ("", *words)
        paths = [
            word
            for last, word in zip(before, words, strict=False)
            if not (word[0] == "-" or _TAKES_VALUE.fullmatch(last))
        ]
        if paths and all(map(_PLAIN.fullmatch, paths)):
            self.named, self.takes_all = paths, False
        if amended:
            self.named += amended.named
            self.takes_all = self.takes_all or amended.takes_all

    def committed(self, line: re.Match[str], shown: str, run: Run) -> Commit:
        """The commit that git tells of in a line, of a log where it has no branch, and what stands below it."""
        parts = {"branch": ""} | line.groupdict()
        size = _SIZE.search(shown)
        moved = (path for one in _SHOWN.findall(shown) for path in _both_names(one[0] or one[1]))
        return Commit(
            branch=parts["branch"].removeprefix("detached HEAD"),
            hash=parts["hash"],
            subject=parts["subject"].strip(),
            event=run.event,
            record=run.result_record,
            named=(*self.named, *moved),
            takes_all=self.takes_all,
            size=int(size[1]) if size else 0,
            left_out=tuple(self.left_out),
        )


_PLAIN = pattern(r"~?[\w./@+()\[\]-]*\w[\w./@+()\[\]-]*")
_TAKES_VALUE = pattern(r"-\w*[mFCct]|--(?:message|file|author|date|trailer|fixup|squash)")
_STAGED = pattern(r"^\s+(?:modified|new file|deleted|typechange|renamed|copied): +(?:.+ -> )?(\S.*)$", re.MULTILINE)
_STAGED_SHORT = pattern(r"^[MADRC][ MD] (?:\S+ -> )?(\S+)$", re.MULTILINE)
_STAT = pattern(r"^ ?(\S+) +\| +(?:\d+|Bin)\b", re.MULTILINE)


def _both_names(shown: str) -> Iterator[str]:
    """A path, or both of a move: `src/{a.py => b.py}`, `a.py => b.py`."""
    head, names, tail = found.groups() if (found := re.fullmatch(r"(.*)\{(.* => .*)\}(.*)", shown)) else ("", shown, "")
    yield from (f"{head}{name}{tail}".replace("//", "/") for name in names.split(" => "))


_STEP = pattern(
    rf"\s*(?:\w+=\S* )*(?:{SHORTENS})?{GIT}"
    r"(add|stage|rm|mv|commit|reset|restore|status|diff|\S+(?= --continue))\b([^|]*)(\|?)"
)
_REDIRECTION = pattern(r"\d?>{1,2}(?:&\d|\s*[^\s&|;]+)")


def _steps(command: str, directory: str) -> Iterator[tuple[str, list[str], bool]]:
    """What a line does to the index, in order: each command with its words, and whether all of its output is shown."""
    folder = ""
    plain = _REDIRECTION.sub(" ", QUOTED.sub(_as_word, command.partition("<<")[0]))
    for segment in re.split(r"&&|\|\||[;\n]", plain):
        match segment.split():
            case ["cd", place, *_]:
                folder = posixpath.join(folder, place.rstrip("/"))
                folder = "" if folder in (directory, directory.replace(" ", "_")) else folder
            case _ if found := _STEP.match(segment):
                step = "commit" if "--continue" in found[2] else found[1]
                yield step, [_from(folder, word) for word in found[2].split()], not found[3]


def _from(folder: str, word: str) -> str:
    """A path as seen from where the session works; an option, or the name of a commit, as it is."""
    is_path = not word.startswith(("-", "HEAD"))
    return posixpath.normpath(posixpath.join(folder, word)) if is_path else word


def _as_word(quoted: re.Match[str]) -> str:
    """What stands in quotation marks, without the signs that mean something to a shell."""
    return re.sub(r"[\s|;&<>]", "_", quoted[0].strip("\"'"))


def is_push_forbidden(events: Sequence[Event]) -> bool:
    """Whether the user, or a skill that he called, says that nothing is to be pushed."""
    rules = (one.text for one in events if one.kind is EventKind.USER or (one.of_client and one.call < 0))
    return any(map(_FORBIDS_PUSH.search, rules))


# To push by force, or to the main branch, may be forbidden where a push is wanted.
_FORBIDS_PUSH = pattern(
    r"\b(?:do not|don['’]?t|never|without) (?:commit(?:ting)? (?:or|and) )?push(?:ing)?\b"
    r"(?! (?:\w+ )?(?:to (?:main|master|`)|with|until|before|if|unless)\b| ?-| force| directly)",
    re.IGNORECASE,
)


class MergedRequest(NamedTuple):
    """A request to merge that was merged: its number, the commit that it became (empty where unknown), the record."""

    number: str
    commit: str
    record: int


def merged_requests(runs: Sequence[Run], commits: Sequence[Commit], asked: str) -> tuple[MergedRequest, ...]:
    """The requests to merge that were made or looked at here, or named in what was ``asked``, and seen to be merged.

    That is what their server says, or a commit with their number in its subject; or the branch that all work from came
    forward by all of their files.
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
                found[number] = MergedRequest(number, commit, run.result_record)
    return tuple(found.values())


def _files_of_branch(commits: Sequence[Commit], run: Run) -> set[str]:
    """The names of the files in the commits of the branch that a run asked to merge."""
    before = [one for one in commits if one.event <= run.event]
    return {name.rpartition("/")[2] for one in before if one.branch == before[-1].branch for name in one.named}


def _merged_at_server(run: Run) -> Iterator[str]:
    """The numbers of the requests that `gh` shows to be merged."""
    named = [next(filter(None, found.groups())) for found in _SHOWN_MERGED.finditer(run.output)]
    asked, states = _REQUEST_ASKED.findall(run.key), _STATE.findall(run.output)
    yield from named or (number for number, is_merged in zip(asked, states, strict=False) if is_merged)


_REQUEST_PAGE = pattern(r"/pull/(\d+)\b")
_NAMED_REQUEST = pattern(r"(?:\b(?:pr|pull request)s? #?|/pull/)(\d+)\b", re.IGNORECASE)
_REQUEST_ASKED = pattern(r"\bgh pr (?:merge|view) (?:\S*/)?(\d+)\b")
_SHOWN_MERGED = pattern(
    r"[Mm]erged pull request \S*#(\d+)|[Pp]ull request \S*#(\d+) \([^\n]*\)? ?was already merged"
    r"|\"number\": ?(\d+)[^{}]*\"state\": ?\"MERGED\"|^(\d+)\t.*\tMERGED\b",
    re.MULTILINE,
)
# The state of a request, with what makes it one that is merged.
_STATE = pattern(r"\b(?:(MERGED)|OPEN|CLOSED)\b")
# In a log of either form: `1a2b3c4 Read the tide (#12)`, or `    Merge pull request #12 from …`.
_MERGE_COMMIT = pattern(
    r"^(?:[^\w\n]*([0-9a-f]{7,40})\b| {4}).*?(?:\(#(?=\d+\)$)|Merge pull request #)(\d+)", re.MULTILINE
)
# A file and how many of its lines, in what a pull brought.
_CAME_FORWARD = pattern(r"^ (\S+) +\| +(?:\d|Bin)", re.MULTILINE)
