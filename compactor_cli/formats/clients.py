"""Knowledge about clients: where they keep their sessions, which messages they send, and which records they ignore.

The places of sessions are data, in ``session_places.toml``: variables, folders, patterns and commands. To learn which
folder a session belongs to, only the first records of its file are read. How a client treats a session was observed
with the clients themselves; the formats' documentation lists the runs.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import orjson

from compactor_cli.formats.claude_tree import Tree
from compactor_cli.formats.contents import string
from compactor_cli.formats.located import Value, at, is_shown
from compactor_cli.formats.registry import find, objects
from compactor_cli.model.errors import CompactError, Place, UsageError
from compactor_cli.model.marker import find_marker
from compactor_cli.model.transcript import Container, Media, Message, Role, Text, Thinking, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.read.streams import open_stream

_FILE = Path(__file__).with_name("session_places.toml")
# How much of a session is read to find its folder, which some clients write only after bookkeeping.
_HEAD_RECORDS = 100
_HEAD_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program that keeps sessions; the fields are those of ``session_places.toml``, which explains them."""

    names: tuple[str, ...]  # the first is the one shown to people
    format: str
    root: Path  # the folder of its sessions on this machine
    files: tuple[str, ...]
    skip: tuple[str, ...] = ()
    id: str = ""
    id_key: str = ""
    project: Mapping[str, Any] = field(default_factory=dict)
    append: bool = False
    resume: str = ""
    database: str = ""
    export: str = ""

    @property
    def title(self) -> str:
        """The name that is shown to people."""
        return self.names[0]

    @property
    def has_database(self) -> bool:
        """Whether it has a database of sessions on this machine, in place of files."""
        return bool(self.database) and (self.root / self.database).exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFile:
    """A session on this machine."""

    client: Client
    path: Path
    size_bytes: int
    modified: float  # Unix seconds

    @property
    def id(self) -> str:
        """The id by which the client resumes it; empty if it is not known."""
        if self.client.id_key:
            return _first_value(self.path, (self.client.id_key,))
        found = re.search(self.client.id, self.path.as_posix())
        return found[1] if found else ""

    @property
    def project(self) -> str:
        """The project folder of the session; empty if it is not known."""
        rule = self.client.project
        if keys := rule.get("keys"):
            return _first_value(self.path, keys)
        if relative := rule.get("neighbour"):
            found = _json_file(Path(os.path.normpath(self.path.parent / relative)))
            return _text_at(found, str(rule["at"]))
        if name := rule.get("map"):
            inside = self.path.relative_to(self.client.root).as_posix()
            folder = re.search(str(rule["folder"]), inside)
            known = _folders(self.client.root / str(name), str(rule["at"]), str(rule["hash"]))
            return known.get(folder[1], "") if folder else ""
        return ""

    @property
    def resume_command(self) -> str:
        """The command that resumes it; empty if its id is needed and not known."""
        values = {"id": self.id, "path": str(self.path)}
        needed = re.findall(r"\{(\w+)\}", self.client.resume)
        if not all(values[name] for name in needed):
            return ""
        return self.client.resume.format(**{name: shlex.quote(value) for name, value in values.items()})


def clients(environ: Mapping[str, str], home: Path) -> tuple[Client, ...]:
    """All clients; environment variables, if set, decide where their folders are."""
    found = []
    for table in tomllib.loads(_FILE.read_text(encoding="utf-8"))["client"]:
        root = _root(table.pop("roots"), environ, home)
        values: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in table.items()}
        found.append(Client(root=root, **values))
    return tuple(found)


def _root(roots: Sequence[Mapping[str, str]], environ: Mapping[str, str], home: Path) -> Path:
    for root in roots:
        if "home" in root:
            return home / root["home"]
        if configured := environ.get(root["variable"], ""):
            return Path(configured).expanduser() / root.get("below", "")
    raise AssertionError("the last root of a client is below the home folder")


def clients_named(names: Sequence[str], environ: Mapping[str, str], home: Path) -> tuple[Client, ...]:
    """The clients with these names (case does not matter), or all if no name is given.

    Raises UsageError for a name that no client has.
    """
    known = clients(environ, home)
    by_name = {each.lower(): client for client in reversed(known) for each in client.names}
    for name in names:
        if name.lower() not in by_name:
            advice = f"one of {', '.join(client.names[1] for client in known)}, or any"
            raise UsageError(f"no client is called {name}", next_step=advice)
    return tuple(by_name[name.lower()] for name in names) or known


def find_sessions(known: Sequence[Client]) -> list[SessionFile]:
    """The sessions of these clients, the newest first. Empty files and files without permission are left out."""
    found = []
    for client in known:
        for path in (path for pattern in client.files for path in client.root.glob(pattern)):
            if any(fnmatchcase(path.name, skipped) for skipped in client.skip):
                continue
            with suppress(OSError):
                status = path.stat()
                if size := status.st_size:
                    found.append(SessionFile(client=client, path=path, size_bytes=size, modified=status.st_mtime))
    return sorted(found, key=lambda session: (-session.modified, str(session.path)))


def belongs_to(session: SessionFile, folder: Path) -> bool:
    """Whether the session's project is this folder or one of its parents. False if the project is not known."""
    project = session.project
    if not project:
        return False
    root = Path(os.path.realpath(project))
    return root == folder or root in folder.parents


def _first_value(path: Path, keys: Sequence[str]) -> str:
    """The first text at one of these keys in the first records of a file; empty if there is none, or on an error."""
    with suppress(CompactError, OSError), open_stream(str(path)) as stream:
        for _ in range(_HEAD_RECORDS):
            line = stream.reader.readline(_HEAD_BYTES)
            if not line:
                break
            with suppress(orjson.JSONDecodeError):
                record = orjson.loads(line)
                if text := next(filter(None, (_text_at(record, key) for key in keys)), ""):
                    return text
    return ""


def _text_at(value: Any, dotted: str) -> str:
    return string(at(value, tuple(dotted.split("."))))


@cache
def _folders(path: Path, key: str, hash_name: str) -> Mapping[str, str]:
    """The project folders in a client's list, by the names of their session folders: the client's own, and hashes."""
    listed, names = at(_json_file(path), (key,)), dict[str, str]()
    if isinstance(listed, dict):
        names = {name: folder for folder, name in listed.items() if isinstance(name, str)}
        folders = list(listed)
    else:
        folders = [text for item in listed or () if (text := _text_at(item, "path"))]
    hashed = {hashlib.new(hash_name, folder.encode(), usedforsecurity=False).hexdigest(): folder for folder in folders}
    return {**hashed, **names}


def _json_file(path: Path) -> Any:
    try:
        return orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None


# Clients that send a summary before everything else, wherever it stands in the file.
_SUMMARY_FIRST = ("pi", "opencode")
# The client whose own summaries stand in the file where they are sent: after the messages that it keeps.
_IN_ORDER = "codex"
# The client that sends the last version of a record at the position of the first, and the thinking of one model only.
_VERSIONED = _THINKING_OF_ONE_MODEL = "claude-code"
# Kinds of `Media` that are not images or files but reasoning and summaries that only their provider can read.
OPAQUE_KINDS = frozenset(
    {"encrypted_reasoning", "reasoning", "reasoning_details", "redacted_thinking", "compaction", "compaction_summary"}
    | {"context_compaction", "cachePoint"}
)


def sent_messages(transcript: Transcript) -> Iterator[tuple[int, Message]]:
    """The messages that the client sends, in the order of sending, each with the index of its record.

    Claude Code sends only the thinking of the model that answered last, since no other model can use it.
    """
    for i in sent(transcript):
        message = transcript.messages[i]
        if transcript.dialect == _THINKING_OF_ONE_MODEL and message.role is Role.ASSISTANT:
            model = string(at(transcript.records[i].value, ("message", "model")))
            if model and transcript.model and model != transcript.model:
                left = (part for part in message.parts if not isinstance(part, Thinking))
                shown = (part for part in left if not (isinstance(part, Media) and part.kind == "redacted_thinking"))
                message = replace(message, parts=tuple(shown))
        if message.parts:
            yield i, message


def sent(transcript: Transcript) -> tuple[int, ...]:
    """The records that a model is shown, in the order in which it sees them.

    That is the order of the file, except for a summary that was appended after the tail: it, with an acknowledgement,
    is sent before the records that it did not replace.
    """
    messages = transcript.messages
    shown = [i for i, one in enumerate(messages) if is_shown(one) and one.parts]
    if transcript.dialect == _VERSIONED:
        # A new version of a record takes the position of the first.
        again = Tree(objects(transcript.records)).again
        shown.sort(key=lambda i: (again.get(i, i), i))
    summaries = [i for i in shown if messages[i].summary]
    if not summaries:
        return tuple(shown)
    last = summaries[-1]
    start = _tail_start(transcript, last)
    # Clients that send the summary first send only the summary there, not an acknowledgement after it.
    following = () if transcript.dialect in _SUMMARY_FIRST else tuple(i for i in shown if i > last)
    # A message of nothing but texts acknowledges the summary.
    others = (
        i
        for i in following
        if messages[i].role is not Role.ASSISTANT or not all(isinstance(part, Text) for part in messages[i].parts)
    )
    stop = next(others, len(messages) if following else last + 1)
    head = [i for i in shown if i < start]
    tail = [i for i in shown if start <= i < last]
    return (*head, *(i for i in shown if last <= i < stop), *tail, *(i for i in shown if i >= stop))


def _tail_start(transcript: Transcript, summary: int) -> int:
    """The first of the records before the summary that are sent after it; the summary itself if there are none."""
    messages = transcript.messages
    if transcript.dialect in _SUMMARY_FIRST:
        return 0
    found = messages[summary].summary
    if found and found.origin == _IN_ORDER:
        return summary
    marker = find_marker(messages[summary].text)
    if marker and marker.records <= summary:
        return marker.last
    replaced = (i for i in range(summary - 1, -1, -1) if messages[i].superseded and not messages[i].is_meta)
    return next(replaced, summary - 1) + 1


@runtime_checkable
class Resumed(Protocol):
    """A dialect whose client resumes its sessions and silently ignores some records."""

    def problems(self, values: Sequence[Value]) -> Iterator[tuple[int, str]]:
        """The index of each record without the effect that it was written for, and what the client does with it."""


# The dialects whose clients were seen to resume a session that was interrupted while a tool ran: they leave the call
# out, or answer it themselves.
RESUMED_WHEN_INTERRUPTED = frozenset(
    {"claude-code", "codex", "pi", "gemini-cli", "qwen-code", "kimi-wire", "kimi-cli", "opencode"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A record that does not have the effect it was written for."""

    place: Place
    what: str  # what the client does with it

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


def find_problems(transcript: Transcript) -> tuple[Problem, ...]:
    """The problems of a session. Empty for formats without a client that resumes it, and for documents."""
    dialect = find(transcript.dialect)
    if transcript.frame.container is not Container.LINES or not isinstance(dialect, Resumed):
        return ()
    glued = (i for i, record in enumerate(transcript.records[:-1]) if not record.ending)
    note = "another record follows it on its line: the client reads at most the first"
    found = (*dialect.problems(objects(transcript.records)), *((i, note) for i in glued))
    return tuple(Problem(place=transcript.records[i].place, what=what) for i, what in found)
