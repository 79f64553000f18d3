"""Commits: those that the session made, and which of its files each of them holds, as far as the records show it."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice

from compactor_cli.digest.commands import PUTS_AWAY, STASHES, sent_subject
from compactor_cli.digest.error_lines import ERROR_PATTERN
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.digest.files import FileOperation, FileState
from compactor_cli.digest.runs import COMMIT_LINE, CommandOutcome, Run
from compactor_cli.digest.shell import GIT, QUOTED, SHORTENS, is_whole, unquoted
from compactor_cli.digest.tools import FileAction
from compactor_cli.model.patterns import pattern
from compactor_cli.model.value import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit that a run made, with its branch, hash and subject as git wrote them."""

    branch: str
    hash: str  # empty where no record shows it
    subject: str
    event: int  # position of the run's call in the events; -1 where it is known from before
    record: int  # the record of the run's result
    named: tuple[str, ...] = ()  # the paths that git was given for it, and those that git showed to be in it
    takes_all: bool | None = None  # whether it holds all other changes, too; None where it is not seen what was staged
    size: int = 0  # the number of its files; 0 where git did not show it
    left_out: tuple[str, ...] = ()  # paths that were unstaged before it
    amends: tuple[int, ...] = ()  # positions of the runs that made the commits which it replaced

    @property
    def name(self) -> str:
        """Its hash, else its subject in quotation marks."""
        return self.hash or f'"{self.subject}"'


def held_by(
    states: Iterable[FileState], commits: Sequence[Commit], is_ignored: Callable[[FileState, int], bool]
) -> dict[str, Commit | None]:
    """The commit that holds the last change of each file, by path; None where it is unknown whether one holds it.

    Files that no commit can hold are left out. ``is_ignored``: whether git seems to ignore a file, up to a position.
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
            # Where git shows the number of files, it also lists the new ones.
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


def without_tries(
    operations: Sequence[FileOperation], runs: Sequence[Run], directory: str
) -> tuple[FileOperation, ...]:
    """The operations without changes that were put back to a commit which holds earlier changes of the same file.

    That commit is then the last state of the file, and what was checked after it still holds.
    """
    if not any(one.action is FileAction.REVERT for one in operations):
        return tuple(operations)
    commits, gone = find_commits(runs, directory), set[int]()
    for place, put_back in enumerate(operations):
        if put_back.action is not FileAction.REVERT:
            continue
        earlier = ((at, one) for at, one in enumerate(operations[:place]) if one.path == put_back.path)
        changes = {at: one for at, one in earlier if one.action is not FileAction.READ}
        for commit in reversed([commit for commit in commits if commit.event < put_back.event]):
            committed = max((one.event for one in changes.values() if one.event <= commit.event), default=-1)
            state = FileState(path=put_back.path, changed=committed)
            if held_by([state], [commit], lambda *_: False).get(state.path):
                gone |= {place, *(at for at, one in changes.items() if one.event > commit.event)}
                break
    return tuple(one for place, one in enumerate(operations) if place not in gone)


def earlier_hashes(state: FileState, commits: Sequence[Commit], last: Commit | None) -> Iterator[str]:
    """The names of the commits that hold earlier changes of a file: those before the commit ``last``, or before its
    last change where that is None. Only commits for which the file, or its folder, was named are known."""
    paths = {_between_slashes(state.path): state.path}
    end = last.record if last else max(state.records, default=0)
    first = min(state.records, default=end)
    for commit in commits:
        is_earlier = first < commit.record < end and not (last and commit.name == last.name)
        if is_earlier and _named(commit.named, paths):
            yield commit.name


def all_hashes(state: FileState, commits: Sequence[Commit], last: Commit | None) -> str:
    """The names of the commits that hold changes of a file, ``last`` the newest of them; empty where that is None."""
    return ", ".join((*earlier_hashes(state, commits, last), last.name)) if last else ""


# `.cache/`: the folder of a tool, which git may ignore.
_HIDDEN_FOLDER = pattern(r"(?:^|/)\.(?!git)[\w-]+/")


def _named(names: Iterable[str], paths: Mapping[str, str]) -> set[str]:
    """The files with these names, or in these folders; for a name without any, those that it may mean when given from
    another folder.

    ``paths``: all files, by their path between slashes (`_between_slashes`).
    """
    found: set[str] = set()
    for name in map(_between_slashes, names):
        whole = {path for one, path in paths.items() if one.startswith(name)}
        found |= whole or {path for one, path in paths.items() if name in one or name.endswith(one)}
    return found


def listed_files(names: Iterable[str], paths: Iterable[str]) -> set[str]:
    """The files that a list of git names: those below the folder to which most of the names are relative."""
    wanted, by_folder = {*names}, dict[str, set[str]]()
    for path in paths:
        for name in wanted.intersection(ends_of(path)):
            by_folder.setdefault(path.removesuffix(name), set()).add(path)
    best = min(by_folder, key=lambda folder: (-len(by_folder[folder]), len(folder)), default="")
    return by_folder.get(best, set())


def ends_of(path: str) -> list[str]:
    """A path as it may be written from each of the folders above it."""
    parts = path.split("/")
    return ["/".join(parts[first:]) for first in range(len(parts))]


def _between_slashes(path: str) -> str:
    # Without its `~/`, a path is the end of its absolute form, and is found by that.
    return f"/{path.removeprefix('~/').strip('/')}/"


def find_commits(runs: Sequence[Run], directory: str) -> list[Commit]:
    """The commits that stand at the end, in order.

    A commit that was amended is merged into the one that replaced it, and one that a `reset` took back is left out.
    Continuing a merge or a rebase commits what was staged. ``directory``: where the session works.
    """
    found: list[Commit] = []
    index = _Index()
    for number, run in enumerate(runs):
        text = run.output
        made = list(_MADE.finditer(text)) if run.outcome is not CommandOutcome.FAILED else []
        ends = [*(one.start() for one in made[1:]), len(text)]
        for step, words, is_shown in _steps(run.command, directory):
            if step == "commit":
                # A rebase that continues may make the last commit again, under the same subject.
                is_again = "--continue" in words and found and made and made[0]["subject"].strip() == found[-1].subject
                one = made.pop(0) if made else _quietly_made(words, runs, number, found)
                amended = found.pop() if found and one and ("--amend" in words or is_again) else None
                index.commit(words, amended)
                if one:
                    shown = text[one.end() : ends.pop(0)] if one.string == text and ends else ""
                    new = index.committed(one, shown, run)
                    if amended:
                        branch, amends = new.branch or amended.branch, (*amended.amends, amended.event)
                        new = replace(new, branch=branch, amends=amends)
                    found.append(new)
                    index = _Index()
                elif found and "--continue" in words:
                    # No new commit is shown: the last one is made again and holds what was resolved.
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
            elif step == "cherry-pick":
                for one in made:
                    _taken_over(found, one, run)
                made, ends = [], []
            elif step in ("status", "diff"):
                index.show(text if is_shown else "", step, words)
            elif "fatal: pathspec" not in text:
                index.stage(step, words)
    return found


def _taken_over(commits: list[Commit], made: re.Match[str], run: Run) -> None:
    """Put a commit that was made again on another branch, known by its subject, in the place of the first."""
    subject, branch = made["subject"].strip(), made["branch"].removeprefix("detached HEAD")
    for place, old in enumerate(commits):
        if old.subject == subject:
            amends = (*old.amends, old.event)
            commits[place] = replace(
                old, branch=branch, hash=made["hash"], event=run.event, record=run.result_record, amends=amends
            )


def _taken_back(words: Sequence[str], commits: Sequence[Commit]) -> int:
    """How many of the newest commits a ``reset`` takes back; 0 where it takes back none.

    As many as it counts (`HEAD~2`); or, with ``--soft`` and a name, those after the commit of that hash, and all of
    them where no commit has it (a branch): what stays staged is then made into one commit.
    """
    if back := _BACK.search(" ".join(words)):
        return int(back[1] or 1)
    named = [word for word in words if not word.startswith("-")] if "--soft" in words else []
    if not named:
        return 0
    after = (number for number, one in enumerate(reversed(commits)) if one.hash and named[-1].startswith(one.hash[:7]))
    return next(after, len(commits))


def _are_on_a_branch(runs: Iterable[Run], reset: Run) -> bool:
    """Whether the commits that ``reset`` takes back stay on a branch that was made before it and checked out later.

    ``runs``: those from the newest of the commits on.
    """
    commands = [(run.event, run.command) for run in runs]
    made = {name for at, command in commands if at <= reset.event for name in _BRANCH_MADE.findall(command)}
    return any(one in made for at, command in commands if at >= reset.event for one in _BRANCH_TAKEN.findall(command))


_BRANCH_MADE = pattern(rf"\b{GIT}(?:branch|checkout -b|switch -c) ([^\s;&|-][^\s;&|]*)")
_BRANCH_TAKEN = pattern(rf"\b{GIT}(?:checkout|switch) ([^\s;&|-][^\s;&|]*)")


def _quietly_made(
    words: Sequence[str], runs: Sequence[Run], number: int, before: Sequence[Commit]
) -> re.Match[str] | None:
    """A commit whose run prints no line of it (`git commit -q`), by a log of this or a later run, else by its message.

    One that amends the last of those ``before`` it, without a message of its own, keeps the subject. None if the run is
    not quiet, failed or has no message, or if it prints an error and no log shows the commit.
    """
    run, subject = runs[number], sent_subject(runs[number].command)
    if not subject and "--amend" in words and before:
        subject = before[-1].subject
    is_quiet = any(_QUIET.fullmatch(word) for word in words) or _SAYS_OK.search(run.output) is not None
    if not (is_quiet and subject) or run.outcome is CommandOutcome.FAILED:
        return None
    logged = (one for later in islice(runs, number, None) for one in _LOGGED.finditer(later.output))
    # Where a chain does not show how its steps went, a commit was made unless a line shows an error.
    is_made = run.outcome is CommandOutcome.OK or not ERROR_PATTERN.search(run.output)
    return next((one for one in logged if one["subject"] == subject), _UNLOGGED.match(subject) if is_made else None)


_QUIET = pattern(r"-(?!-)\w*q\w*|--quiet")
# All that a wrapper which shortens outputs prints of a commit that was made.
_SAYS_OK = pattern(r"^ok\b(?: [0-9a-f]{7,40})?\W*\Z", re.MULTILINE)
_UNLOGGED = pattern(r"(?P<hash>)(?P<subject>.*)")


def after_rebases(commits: Iterable[Commit], runs: Iterable[Run]) -> Iterator[Commit]:
    """The commits with the hashes that they have after rebases and squashes, here or on a server.

    A later log shows these by subject, which may end with the number of a request to merge, and the next push that of
    the newest commit. A commit that was not pushed before a rebase here, and that neither shows, has an empty hash: it
    is known by its subject.
    """
    renamed: list[tuple[int, dict[str, str]]] = []
    commits = list(commits)
    own = Counter(map(_title, commits))
    rebased_at = pushed_at = -1
    for run in runs:
        if PUSHES.search(run.key) and run.outcome is CommandOutcome.OK:
            if (pushed := PUSHED.search(run.output)) and pushed_at < rebased_at:
                newest = [one for one in commits if one.event < run.event][-1:]
                renamed.append((rebased_at, {_title(one): pushed["hash"] for one in newest}))
            pushed_at = run.event
        if _REBASED.search(run.output) and run.outcome is not CommandOutcome.FAILED:
            before = (one for one in commits if pushed_at < (one.amends or (one.event,))[-1] < run.event)
            rewritten = (one for one in before if one.event <= run.event and one.branch != "detached HEAD")
            renamed.append((run.event, {_title(one): "" for one in rewritten}))
        if _REBASE.search(run.key) and run.outcome is not CommandOutcome.FAILED:
            rebased_at = run.event
        if "git log" in run.key:
            logged = [(name, _REQUEST_NUMBER.sub("", subject)) for name, subject in _LOGGED.findall(run.output)]
            times = Counter(subject for _, subject in logged)
            renamed.append((run.event, {title: name for name, title in logged if times[title] == own[title] == 1}))
    for commit in commits:
        title = _title(commit)
        names = (logged[title] for at, logged in reversed(renamed) if commit.event <= at and title in logged)
        name = next(names, commit.hash)
        yield commit if commit.hash and name.startswith(commit.hash) else replace(commit, hash=name)


def _title(commit: Commit) -> str:
    return _REQUEST_NUMBER.sub("", commit.subject)


_REQUEST_NUMBER = pattern(r" \(#\d+\)\Z")
_REBASED = pattern(r"^Successfully rebased and updated ", re.MULTILINE)
PUSHES = pattern(r"\bgit push\b(?!.*--dry-run)")
# `   1a2b3c4..5d6e7f8  tides -> tides`: the commit that a branch was moved to by a push, and the branch there.
PUSHED = pattern(r"^ +[+ ]?[0-9a-f]{7,40}\.{2,3}(?P<hash>[0-9a-f]{7,40}) +\S+ -> (?P<branch>\S+)", re.MULTILINE)
_REBASE = pattern(r"\bgit (?:rebase\b|pull\b.* (?:-r|--rebase)\b)")
_LOGGED = pattern(r"^(?:\* )?(?P<hash>[0-9a-f]{7,40}) (?:\([^)\n]*\) )?(?P<subject>.+)$", re.MULTILINE)
_MADE = pattern(COMMIT_LINE.pattern.replace("<branch>", "<branch>detached HEAD|"), re.MULTILINE)
_SIZE = pattern(r"^ *(\d+) files? changed", re.MULTILINE)
# New, deleted and moved files of a commit: ` create mode 100644 tides.csv`, ` rename {a => b}/gauge.py (98%)`.
_SHOWN = pattern(r"^ *(?:(?:create|delete) mode \d+ (.+)|re(?:name|write) (.*) \(\d+%\))$", re.MULTILINE)
# `git reset HEAD~2`, `git reset HEAD^`
_BACK = pattern(r"(?<!\S)(?:HEAD|@)(?:~(\d*)|\^)(?!\S)")


@dataclass(slots=True, kw_only=True)
class _Index:
    """What is staged, as far as the records show it; for its fields see `Commit`."""

    named: list[str] = field(default_factory=list)
    takes_all: bool | None = None
    left_out: list[str] = field(default_factory=list)

    def stage(self, step: str, words: Sequence[str]) -> None:
        """Read `git add`, `rm` and `mv`, and the commands that unstage paths (`reset`, `restore --staged`)."""
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
        """Read what git lists as staged, if it lists any: then nothing else is staged."""
        if step == "status":
            _, _, listed = text.partition("Changes to be committed:")
            listed = re.split(r"^(?:Changes not staged|Untracked files|Unmerged paths)", listed, flags=re.MULTILINE)[0]
            named = _STAGED.findall(listed) or _STAGED_SHORT.findall(text)
        else:
            named = _STAT.findall(text) if not {"--cached", "--staged"}.isdisjoint(words) else []
        if named:
            self.named, self.takes_all = named, False

    def commit(self, words: Sequence[str], amended: Commit | None) -> None:
        """Read what a commit takes in addition: all tracked files (`-a`), or the commit that it amends.

        Paths that it names replace what is staged.
        """
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
        """The commit of a line of git or, without a branch, of a log; ``shown`` is the output below the line."""
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
# Options with their value in the next word: `-m`, `-am`, `--author`.
_TAKES_VALUE = pattern(r"-\w*[mFCct]|--(?:message|file|author|date|trailer|fixup|squash)")
_STAGED = pattern(r"^\s+(?:modified|new file|deleted|typechange|renamed|copied): +(?:.+ -> )?(\S.*)$", re.MULTILINE)
_STAGED_SHORT = pattern(r"^[MADRC][ MD] (?:\S+ -> )?(\S+)$", re.MULTILINE)
_STAT = pattern(r"^ ?(\S+) +\| +(?:\d+|Bin)\b", re.MULTILINE)


def _both_names(shown: str) -> Iterator[str]:
    """Both paths of a move (`src/{a.py => b.py}`, `a.py => b.py`), or the one path."""
    head, names, tail = found.groups() if (found := re.fullmatch(r"(.*)\{(.* => .*)\}(.*)", shown)) else ("", shown, "")
    yield from (f"{head}{name}{tail}".replace("//", "/") for name in names.split(" => "))


_STEP = pattern(
    rf"\s*(?:\w+=\S* )*(?:{SHORTENS})?{GIT}"
    r"(add|stage|rm|mv|commit|cherry-pick|reset|restore|status|diff|\S+(?= --continue))\b([^|]*)(\|?)"
)
_REDIRECTION = pattern(r"\d?>{1,2}(?:&\d|\s*[^\s&|;]+)")


def _steps(command: str, directory: str) -> Iterator[tuple[str, list[str], bool]]:
    """The commands of a line that change the index or show it, in order, with their words as seen from ``directory``.

    Each with whether all of its output is shown: it is not piped. A continued merge or rebase is a `commit`.
    """
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
    """A path in a folder as seen from where the session works; options and `HEAD…` stay as they are."""
    is_path = not word.startswith(("-", "HEAD"))
    return posixpath.normpath(posixpath.join(folder, word)) if is_path else word


def _as_word(quoted: re.Match[str]) -> str:
    """A quoted text as one word: without quotation marks, and with `_` for blanks and the operators of a shell."""
    return re.sub(r"[\s|;&<>]", "_", quoted[0].strip("\"'"))


def unpushed(
    commits: Sequence[Commit],
    runs: Sequence[Run],
    in_step: Mapping[str, int],
    before: Sequence[Commit],
    *,
    is_pushed: bool,
) -> tuple[Commit, ...]:
    """The commits after the newest push, or after git reported their branch up to date with its upstream.

    Empty where neither was seen: pushing may not be wanted. A push may have succeeded where its outcome is not known.
    ``in_step``: see `branches_in_step`. ``before``: commits known from before; ``is_pushed``: a push was seen then.
    """
    is_wanted = is_pushed or next(pushes(runs), None) is not None
    positions = [run.event for run in _likely_pushes(runs)] if is_wanted else []
    pushed = {branch: max((at, *positions[-1:])) for branch, at in in_step.items()}
    default = positions[-1] if positions else _BEFORE if is_pushed else None
    known = () if any(_REPLACES.search(run.key) for run in runs) else before
    return tuple(
        commit
        for commit in (*known, *commits)
        if (at := pushed.get(commit.branch, default)) is not None and commit.event > at
    )


def pushes(runs: Sequence[Run]) -> Iterator[int]:
    """The positions of pushes that succeeded, by their outcome or, where that is unknown, by what git printed."""
    likely = _likely_pushes(runs)
    return (run.event for run in likely if run.outcome is CommandOutcome.OK or _SHOWN_PUSHED.search(run.output))


def _likely_pushes(runs: Sequence[Run]) -> Iterator[Run]:
    return (run for run in runs if PUSHES.search(run.key) and run.outcome is not CommandOutcome.FAILED)


# `   1a2b3c4..5d6e7f8  tides -> tides`, ` * [new branch]  tides -> tides`
_SHOWN_PUSHED = pattern(r"^ +(?:[0-9a-f]{7,}\.{2,3}[0-9a-f]{7,}|\* \[new branch\]) +\S+ -> \S+", re.MULTILINE)


# Less than any position, and than the -1 of commits that are known from before.
_BEFORE = -2
# What rewrites earlier commits.
_REPLACES = pattern(r"\bgit (?:reset|rebase|commit\b.* --amend)\b")


def branches_in_step(runs: Iterable[Run]) -> dict[str, int]:
    """The branches that git shows to be where their upstream is, each with the position of the newest run that does."""
    shown = ((run, _IN_STEP.search(run.output)) for run in runs if _SHOWS_UPSTREAM.search(run.key))
    return {next(filter(None, found.groups())): run.event for run, found in shown if found}


_SHOWS_UPSTREAM = pattern(rf"\b{GIT}(?:status|log)\b")
# `## tides...origin/tides` and `1a2b3c4 (HEAD -> tides, origin/tides)`, too
_IN_STEP = pattern(
    r"Your branch is up to date with '[^/'\s]+/([^'\s]+)'|^## (\S+?)\.{3}[^\s/]+/\S+$"
    r"|\(HEAD -> ([^\s,)]+), (?:[^)\n]+, )?[^\s,)/]+/\3[,)]",
    re.MULTILINE,
)


def is_push_forbidden(events: Sequence[Event]) -> bool:
    """Whether the user, or a skill that the user called, forbids pushing."""
    rules = (one.text for one in events if one.kind is EventKind.USER or (one.of_client and one.call < 0))
    return any(map(_FORBIDS_PUSH.search, rules))


# `don't push`, but not `don't push to main` or `never push --force`: another push may still be wanted.
_FORBIDS_PUSH = pattern(
    r"\b(?:do not|don['’]?t|never|without) (?:commit(?:ting)? (?:or|and) )?push(?:ing)?\b"
    r"(?! (?:\w+ )?(?:to (?:main|master|`)|with|until|before|if|unless)\b| ?-| force| directly)",
    re.IGNORECASE,
)


def last_stash(runs: Sequence[Run]) -> Run | None:
    """The newest run of `git stash` that put changes away; None if that or a later one brought them back."""
    for run in reversed(runs):
        found = STASHES.search(run.command)
        if found and run.outcome is CommandOutcome.OK and found[1] not in ("list", "show", "drop"):
            return run if (found[1] or "") in PUTS_AWAY and "git stash pop" not in run.command else None
    return None


def named_to(stash: Run | None) -> tuple[str, ...]:
    """The files that a stash was given, which the session need not have changed: `git stash push -- store.py`."""
    named = _GIVEN.search(unquoted(stash.command)) if stash else None
    return tuple(named[1].split()) if named else ()


_GIVEN = pattern(rf"\b{GIT}stash push\b[^&|;\n]* -- ([^&|;\n]+)")


def seen_from(folder: str, directory: str) -> str:
    """The beginning of paths in a folder as seen from the directory, with a slash at its end."""
    return f"{folder}/".removeprefix(f"{directory}/")


def tree_below(
    states: Sequence[FileState], commits: Sequence[Commit], elsewhere: Mapping[int, str], directory: str
) -> str:
    """The work tree below the directory in which all files were changed and the newest commit was made, or empty."""
    folder = elsewhere[commits[-1].event] if commits else ""
    changed = [state.path for state in states if state.is_changed and not is_whole(state.path)]
    below = seen_from(folder, directory)
    is_own = bool(changed) and not is_whole(below) and all(path.startswith(below) for path in changed)
    return below.rstrip("/") if folder and is_own else ""
