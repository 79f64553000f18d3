"""Hooks that clients run around their own compaction: archive the session, steer the summary, add the digest to it.

Before a compaction (PreCompact) the whole session is available: it is archived, its digest is made and stored, and the
model that writes the summary gets a list of what not to lose. After it (SessionStart with the source ``compact``; in
Qwen Code the next UserPromptSubmit) the digest is added to the context, once. If anything fails, the client goes on as
if there were no hook.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from compactor_cli.agents.install import AnswerShape, load_client
from compactor_cli.archive.atomic import write_private
from compactor_cli.model.errors import raise_from_handler
from compactor_cli.read.sources import state_folder

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

# Clients pass on a context of at most 10,000 characters whole, and only a preview of a longer one.
MOST_CONTEXT_CHARS = 9_500
MOST_STEERING_CHARS = 2_000
# Clients wait ten seconds or longer, which include the start of the program.
MOST_SECONDS = 8.0
_MOST_LOG_BYTES = 1 << 20
_MOST_ITEM_CHARS = 240
_MOST_NAMES = 12

_STEERING = """\
A digest of this session (files, commands, exact values, each with its source) is placed after your summary: leave \
lists of those out. Say what was decided and why, what is done, and what comes next."""
_NOT_TO_LOSE = "Not to be lost, quoted from the session:"


class _TimeOver(BaseException):
    """The time is over. It is not an Exception, so that no handler on the way catches it."""


def run_hook(event: str, client: str, read: Callable[[], bytes]) -> str:
    """The text to print for the client; empty if there is none, or if anything went wrong.

    ``read`` returns what the client sent. Never raises, and ends within `MOST_SECONDS`. The outcome is written to the
    log, one line for each call (see `log_file`).
    """
    begun, outcome, answer = time.monotonic(), "nothing to say", ""
    try:
        with _alarm(MOST_SECONDS):
            answer = _answer(event, client, json.loads(read()))
            outcome = f"answered {len(answer)} characters" if answer else outcome
    except (Exception, _TimeOver) as error:
        outcome = f"failed: {type(error).__name__}: {error}"
    line = f"{client} {event} {outcome} ({time.monotonic() - begun:.1f} s)"
    with contextlib.suppress(Exception):
        path = log_file()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_large = path.exists() and path.stat().st_size > _MOST_LOG_BYTES
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if is_large else os.O_APPEND)
        with os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0) as file:
            stamped = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}"
            file.write(" ".join(stamped.split()).encode("utf-8", "replace") + b"\n")
    return answer


def log_file() -> Path:
    """The path of the log, which starts over when it is too large."""
    return state_folder() / "hooks.log"


def _answer(event: str, client: str, payload: Mapping[str, Any]) -> str:
    shape = load_client(client).answers.get(event)
    if shape is None:
        raise ValueError(f"{client} has no hook of compact for {event}")
    session = hashlib.sha256(str(payload["session_id"]).encode()).hexdigest()
    note = state_folder() / "hooks" / f"{client}-{session[:16]}.json"
    if event == "SessionStart" and payload.get("source") != "compact":
        return ""
    known = _read_note(note)
    # The stored digest is used only once; that of an interrupted compaction never, even if this call fails.
    if text := known.get("summary", ""):
        write_private(note, json.dumps({**known, "summary": ""}))
    if event == "PreCompact":
        text = _before(payload, note, known.get("state", ""))
    if not text or shape is AnswerShape.NONE:
        return ""
    if shape is AnswerShape.TEXT:
        return text
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}, ensure_ascii=False)


def _before(payload: Mapping[str, Any], note: Path, state: str) -> str:
    """Archive the session and store its digest; returns the instructions for the summary, or an empty string.

    The digest goes on from the table of the previous one, whose name is ``state``: the client no longer sends the
    records that one covered.
    """
    from compactor_cli.agents.session_digest import SizeLimit, digest_session, read_session
    from compactor_cli.archive.store import Archive, default_archive_dir
    from compactor_cli.model.settings import settings_from
    from compactor_cli.plan.tokens import ESTIMATE
    from compactor_cli.presets import DEFAULT, load_preset
    from compactor_cli.read.streams import STDIN

    path = str(payload["transcript_path"])
    archive = Archive(default_archive_dir(STDIN, in_place=False))
    focus = str(payload.get("custom_instructions") or "")
    # The limit is in characters, so that no tokenizer's vocabulary is needed.
    tables = {"keep_tail": 0, "focus": focus, "tokenizer": ESTIMATE}
    settings = settings_from(tables, load_preset(DEFAULT).settings, "hook")
    found = digest_session(
        read_session(path),
        settings,
        limit=SizeLimit(chars=MOST_CONTEXT_CHARS),
        archive=archive,
        source=path,
        state=archive.load_state(state),
    )
    if found.analysis is None:
        return ""
    write_private(note, json.dumps({"summary": found.summary, "state": found.state}, ensure_ascii=False))
    return steering(found.analysis)


def steering(analysis: Analysis) -> str:
    """Instructions for the model that writes the summary, in at most `MOST_STEERING_CHARS` characters.

    Only words of the user, plans of the agent and names are quoted, each in one line: outputs of tools must not get in
    among instructions.
    """
    from compactor_cli.digest.loss import dropped

    # Refused calls (the newest first), the user's rules, open items (the likeliest to be needed first), and names.
    items = [
        _line(f"the user turned down {call!r}", message.text)
        for message in reversed(analysis.messages)
        for call in (message.stopped, *(call for _, call in message.after_stop))
        if call and message.resumed < 0
    ]
    found = dropped(analysis, "")
    for kind in ("user rule", "open item"):
        items += (_line(kind, thing.text) for thing in found if thing.kind == kind)
    if names := [thing.text for thing in found if thing.kind == "name"][:_MOST_NAMES]:
        items.append(_line("names", ", ".join(names)))
    lines = [_STEERING, "", _NOT_TO_LOSE]
    room = MOST_STEERING_CHARS - sum(len(line) + 1 for line in lines)
    for line in (f"- {item}" for item in items):
        if len(line) < room:
            lines.append(line)
            room -= len(line) + 1
    return "\n".join(lines) if len(lines) > 3 else _STEERING


def _line(kind: str, text: str) -> str:
    line = " ".join(f"{kind}: {text}".split()).rstrip(":")
    return line if len(line) <= _MOST_ITEM_CHARS else f"{line[: _MOST_ITEM_CHARS - 1]}…"


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise `_TimeOver` in the block when this many seconds are over."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise_from_handler(_TimeOver(f"no time left after {seconds:g} s"))

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _read_note(note: Path) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError):
        value = json.loads(note.read_text(encoding="utf-8"))
        return {key: text for key, text in value.items() if isinstance(text, str)}
    return {}
