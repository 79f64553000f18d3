"""Where an agent worked, and what the client's records say of that: the directory, whose prefix is removed from the
paths in texts, the branch, the limits of a sandbox, and the transcript of what came before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple

from compactor_cli.formats.client_signs import is_demonstration, named_branch
from compactor_cli.formats.contents import string
from compactor_cli.formats.located import at
from compactor_cli.model.transcript import Record, Role, Transcript


class Directories(NamedTuple):
    """Where the agent worked."""

    # ``other``, else the directory that the transcript's bookkeeping or its first messages name, written as
    # `_for_shells` does; empty if none is named.
    working: str
    # A directory outside of the session's first one in which the work is done: another work tree that most calls name,
    # or to which the session moved and stayed; if none is named at all, the one that holds most paths of calls. Empty
    # if there is none.
    other: str
    # Removes the prefix of the working directory from every path in a text, and that of the same tree in the home of
    # another user who continued the session.
    strip: Callable[[str], str]
    root: Callable[[str], str]  # writes all paths of the working directory in a text as `_for_shells` does


def directories_of(transcript: Transcript) -> Directories:
    """Find where the agent worked. Callers keep the result, since it may take a look at all records."""
    named = next(_named_directories(transcript.records), "")
    first = named or _shown_directory(transcript) or _run_directory(transcript)
    last = next(_named_directories(reversed(transcript.records))) if named else first
    other = (_named_by_calls(transcript, first) or _moved_to(last, transcript, first)) if first else ""
    if not other and (common := _common_directory(transcript, first)):
        is_apart = not (first and (_is_in(common, first) or _is_in(first, common)))
        other = common if is_apart else ""
    working = other or first
    strip = _stripper(working, last if named else working, transcript)
    shells = _for_shells(working)
    root = (lambda text: text) if shells == working else _drive_stripper(working, f"{shells}/")
    return Directories(shells, other, strip, root)


def recorded_branch(transcript: Transcript, covered: Sequence[int], place: str) -> tuple[str, int]:
    """The branch that the newest ``covered`` record with one names, and that record; empty and -1 if none names one.

    It is none of ``place``, the directory of most of the work or an empty string, if the record was written in another.
    """
    values = ((index, transcript.records[index].value) for index in reversed(covered))
    named = ((branch, index, named_directory(value)) for index, value in values if (branch := named_branch(value)))
    branch, index, directory = next(named, ("", -1, ""))
    return ("", -1) if place and directory and not _is_in(directory, place) else (branch, index)


def recorded_limits(transcript: Transcript, end: int) -> tuple[str, int]:
    """What the newest record up to ``end`` that names a sandbox leaves to the agent, in the words of its client, and
    that record; empty and -1 where none names one, and where all is allowed."""
    for index in range(end, -1, -1):
        stated = at(transcript.records[index].value, ("payload",))
        sandbox = string(at(stated, ("sandbox_policy", "type"))) if isinstance(stated, Mapping) else ""
        if sandbox:
            approvals = string(stated.get("approval_policy"))
            is_offline = at(stated, ("sandbox_policy", "network_access")) is False
            parts = (f"sandbox {sandbox}", "no network" if is_offline else "", approvals and f"approvals {approvals}")
            return (", ".join(filter(None, parts)), index) if sandbox != _ALL_IS_ALLOWED else ("", -1)
    return "", -1


_ALL_IS_ALLOWED = "danger-full-access"


def earlier_transcript(transcript: Transcript, covered: Sequence[int]) -> tuple[str, int]:
    """The file that holds what came before, as the client names it below a plan that another session made, and the
    newest of the ``covered`` records that names one; empty and -1 where none does."""
    asked = (index for index in reversed(covered) if transcript.messages[index].role is Role.USER)
    named = ((_FULL_TRANSCRIPT.search(transcript.messages[index].text), index) for index in asked)
    return next(((found[1], index) for found, index in named if found), ("", -1))


_FULL_TRANSCRIPT = re.compile(
    r"\bfrom before exiting plan mode\b[^\n]*\bread the full transcript at: ((?:(?!REDACTED)\S)+\.jsonl)\b"
)


def _stripper(working: str, last: str, transcript: Transcript) -> Callable[[str], str]:
    own = path_stripper(working)
    is_other = _home(last) != _home(working) and not any(_HOMES.isdisjoint(_home(one)) for one in (last, working))
    if not is_other:
        return own
    named = _named_directories(transcript.records)
    other = path_stripper(next(one for one in named if _home(one) == _home(last)))
    return lambda text: other(own(text))


def _named_directories(records: Iterable[Record]) -> Iterator[str]:
    return filter(None, (named_directory(record.value) for record in records))


def _named_by_calls(transcript: Transcript, first: str) -> str:
    given = (call.arguments for message in transcript.messages for call in message.calls)
    folders = (one.get("workdir") for one in given if isinstance(one, Mapping))
    named = [folder for folder in folders if isinstance(folder, str)]
    if len(named) < _MIN_NAMED:
        return ""
    folder, times = Counter(named).most_common(1)[0]
    is_other = is_absolute(folder) and not _is_in(folder, first)
    return folder.rstrip("/\\") if is_other and 2 * times > len(named) else ""


def _common_directory(transcript: Transcript, first: str) -> str:
    """The deepest directory that holds nearly all paths that calls name.

    Empty if it is a home, if few are named, or if more than a few are in the directory ``first``.
    """
    given = (call.arguments for message in transcript.messages for call in message.calls)
    values = chain.from_iterable(one.values() for one in given if isinstance(one, Mapping))
    texts = [value for value in values if isinstance(value, str)]
    paths = [text for text in texts if _ABSOLUTE.fullmatch(text)]
    if first and _IS_COMMON * sum(_is_in(text, first) for text in texts) > len(paths):
        return ""
    times = Counter[str]()
    for path in paths:
        times.update(accumulate(path.split("/")[1:-1], "{}/{}".format))
    held = (folder for folder, number in times.items() if _IS_COMMON * number >= (_IS_COMMON - 1) * len(paths))
    folder = max(held, key=len, default="")
    is_home = folder.count("/") < (2 if folder.split("/")[0] in _HOMES else 1)
    return "" if is_home or len(paths) < _MIN_PATHS else f"/{folder}"


# Not of a folder in which clients keep their own files, or where nothing is meant to stay.
_ABSOLUTE = re.compile(r"(?!/(?:tmp|var|private|dev)/|.*/\.)/[^\s:*]{1,300}(?::[\d-]+)?")
# Of this many paths one may be elsewhere, and at least the second number must be named.
_IS_COMMON, _MIN_PATHS = 20, 12


def _is_in(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


def _moved_to(last: str, transcript: Transcript, first: str) -> str:
    if _is_in(last, first) or _is_in(first, last):
        return ""
    if _home(last) != _home(first):
        return ""  # the same tree on another machine
    times = Counter(_named_directories(transcript.records))
    return last if _STAYED * times[last] >= times.total() else ""


def _home(directory: str) -> tuple[str, ...]:
    return tuple(re.split(r"[\\/]", directory)[:3])


_HOMES = frozenset(("Users", "home"))


# Calls must name a directory at least this often to decide where the work is done.
_MIN_NAMED = 8
# A session has moved to the directory of its last record if it wrote at least one in this many records there.
_STAYED = 10


def _shown_directory(transcript: Transcript) -> str:
    """The directory that one of the first messages names to the model; empty if none does."""
    own = (i for i, record in enumerate(transcript.records) if not is_demonstration(record.value))
    texts = (transcript.messages[i].text for i in islice(own, _DIRECTORY_MESSAGES))
    for text in texts:
        for opening, closing in _DIRECTORY_FORMS:
            named_path = text.partition(opening)[2][:300].partition(closing)[0].strip().strip("`'\"")
            if is_absolute(named_path):
                return named_path.rstrip("/\\")
    return ""


def _run_directory(transcript: Transcript) -> str:
    """The directory in which most commands ran, of clients that name it only in calls; empty if none names one."""
    given = (call.arguments for message in transcript.messages for call in message.calls)
    folders = (string(one.get("Cwd")).rstrip("/\\") for one in given if isinstance(one, Mapping) and "Cwd" in one)
    # Windows does not distinguish `c:` and `C:`.
    times = Counter(f"{folder[:1].upper()}{folder[1:]}" for folder in folders if is_absolute(folder))
    return times.most_common(1)[0][0] if times else ""


def path_stripper(directory: str) -> Callable[[str], str]:
    """A function that removes the prefix of the working directory from every path in a text.

    A line in which two words would become equal stays as it is: `rsync a/ /data/app/a/` copies from one to the other.
    """
    if len(directory) < 3:
        return lambda text: text
    if directory[1] == ":":
        return _drive_stripper(directory)
    prefix = directory + ("\\" if "\\" in directory and "/" not in directory else "/")
    # Not inside a longer path or URL: `https://host/app/x` is not a path below `/app`.
    literal = re.escape(prefix)
    pattern, lines = re.compile(rf"{literal}(?<![\w./\\-]{literal})"), re.compile(rf".*{literal}.*")

    def shortened(line: re.Match[str]) -> str:
        words, shorter = set(line[0].split()), pattern.sub("", line[0])
        return shorter if len(set(shorter.split())) >= len(words) else line[0]

    return lambda text: lines.sub(shortened, text) if prefix in text else text


def _drive_stripper(directory: str, prefix: str = "") -> Callable[[str], str]:
    """As `path_stripper`, for a directory on a drive, which ``prefix`` replaces.

    Paths below the directory are written with `/`, the directory itself as by `_for_shells`. Tools write one or two
    slashes of either kind, and the drive in upper or lower case, as `D:` or as shells do: `/d`, `/mnt/d`.
    """
    drive, *names = re.split(r"[\\/]+", directory)
    root = rf"(?:{drive}|(?:/mnt|/cygdrive)?/{drive[0]})"
    whole = re.compile(
        rf"(?<![\w./\\-]){root}(?P<slash>\\{{1,2}}|/+)" + r"[\\/]+".join(map(re.escape, names)) + r"(?![\w-])"
        r"(?:[\\/]+(?P<below>(?:[\w.@+\[\]-]+(?P=slash))*[\w.@+-]+)?)?",
        re.IGNORECASE,
    )

    def shortened(found: re.Match[str]) -> str:
        if found["below"] is None:
            return prefix if found[0][-1] in "\\/" else _for_shells(directory)
        return prefix + found["below"].replace(found["slash"], "/")

    return lambda text: whole.sub(shortened, text) if names[-1] in text else text


def _for_shells(directory: str) -> str:
    """A directory on a drive as shells there write it (`D:\\work` is `/d/work`); others as they are."""
    if directory[1:2] != ":":
        return directory
    return f"/{directory[0].lower()}{directory[2:].replace(chr(92), '/')}"


DIRECTORY_KEYS = ("cwd", "working_dir", "workdir", "work_dir", "workingDirectory", "Cwd")
# Objects in which Codex, opencode and Copilot CLI have these keys.
_DEEPER = (("payload",), ("info", "path"), ("data", "context"))
_DIRECTORY_SIGNS = frozenset((*DIRECTORY_KEYS, *(place[0] for place in _DEEPER)))


def named_directory(value: Any) -> str:
    """The working directory that a record names; empty if it names none."""
    if not isinstance(value, Mapping) or _DIRECTORY_SIGNS.isdisjoint(value):
        return ""
    deeper = (at(value, place) for place in _DEEPER)
    sources = (value, *(each for each in deeper if isinstance(each, Mapping)))
    paths = (string(source.get(key)) for source in sources for key in DIRECTORY_KEYS)
    return next((path.rstrip("/\\") for path in paths if is_absolute(path)), "")


def is_absolute(path: str) -> bool:
    """Whether a path begins at the root, or on a drive."""
    return path.startswith("/") or path[1:3] in (":\\", ":/")


# How many of the first messages are searched for the directory.
_DIRECTORY_MESSAGES = 8
# How clients tell the model where it is: Codex, Claude Code (both spellings), Gemini and Qwen, pi, Cline and Roo,
# SWE-agent.
_DIRECTORY_FORMS = (
    ("<cwd>", "</cwd>"),
    ("Primary working directory: ", "\n"),
    ("Working directory: ", "\n"),
    ("working in the directory: ", "\n"),
    ("Current working directory: ", "\n"),
    ("Current Workspace Directory (", ")"),
    ("(Current directory: ", ")"),
)
