"""Outcomes: what came of each request as far as a record shows it. Nothing here says that a request is done."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from compactor_cli.digest.checks import covers, is_test
from compactor_cli.digest.commands import CommandOutcome, Run, shown
from compactor_cli.digest.corrections import takes_back
from compactor_cli.digest.events import (
    Event,
    EventKind,
    FileAction,
    is_lookup,
    is_service_call,
    results_of,
)
from compactor_cli.digest.files import FileOperation, is_throwaway
from compactor_cli.digest.language import FixedWords
from compactor_cli.digest.settled import is_assent
from compactor_cli.digest.statements import (
    ELLIPSIS,
    opening,
    records_of,
)
from compactor_cli.digest.work_state import Commit
from compactor_cli.model.value import dataclass

# What is named of one request.
_MAX_MADE, _MAX_EDITED = 3, 2
# What a row of yeses set going is that of each request in it: of so much, time stays linear in very long sessions.
_MAX_SET_GOING = 100
_MAX_SUBJECT_CHARS, _MAX_COMMAND_CHARS = 60, 40
# Alone on its line or after words: within quotes it is a field of what a server holds, made long before.
_ADDRESS = re.compile(
    r"(?<![\"'=(])https?://[^\s\"'<>]+/(?:pull|issues|merge_requests|releases?)/(?!new/)[^\s\"'<>#,)]+"
)


# The name that a tracker gives to what is filed in it.
_TICKET = re.compile(r"\b[A-Z][A-Z0-9]{1,9}-\d{1,6}\b")
_FILES = re.compile(r"create|add|file|open|submit|new", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOutcome:
    """What came of a request, in words, and the records that show it.

    ``is_made``: a commit or an address did; ``is_begun``: nothing but edits is seen.
    """

    text: str
    records: tuple[int, ...]
    is_made: bool
    is_begun: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What was done for a request: its runs, the changes of files, and where the assistant's last message stands.

    ``filed``: what calls of services filed in a tracker, each with the record that shows it.
    """

    asked: str
    filed: tuple[tuple[str, int], ...]
    runs: tuple[Run, ...]
    changes: tuple[FileOperation, ...]
    closing: int


def outcomes(
    events: Sequence[Event],
    runs: Sequence[Run],
    operations: Sequence[FileOperation],
    commits: Sequence[Commit],
    taken_back: Collection[int],
    words: FixedWords,
) -> Mapping[int, RequestOutcome]:
    """What came of the messages of the user, by turn, where a record shows it.

    What a yes set going is that of the request before it, too. Of what the user takes back in the next message only
    what was made is stated (commits, addresses).
    """
    made_by = {commit.event: commit for commit in commits}
    telling = [run for run in runs if run.event in made_by or run.changes_world or is_test(run.command)]
    by_turn = _by_turn(events, telling, operations)
    found: dict[int, RequestOutcome] = {}
    after: _Work | None = None  # what was done after a yes, for the request before it
    reply = next_reply = ""
    for turn, work in reversed(by_turn.items()):
        if after is not None:
            work = _Work(
                asked=work.asked,
                filed=(*work.filed, *after.filed)[-_MAX_SET_GOING:],
                runs=(*work.runs, *after.runs)[-_MAX_SET_GOING:],
                changes=(*work.changes, *after.changes)[-_MAX_SET_GOING:],
                closing=max(work.closing, after.closing),
            )
        else:
            reply = next_reply
        closing = events[work.closing].text if work.closing >= 0 else ""
        is_refused = work.closing in taken_back or takes_back(reply, closing)
        made = sorted(list(_made(work, made_by))[-_MAX_MADE:], key=lambda one: one[1])
        more = [] if made or is_refused else list(_shown(work, words, is_newest=not next_reply))
        parts = [text for text, _ in (*dict(made).items(), *more)]
        if parts:
            found[turn] = RequestOutcome(
                text=words.comma.join(parts),
                records=records_of([(*made, *more)[-1][1]]),
                is_made=bool(made),
                is_begun=bool(work.changes) and len(parts) == 1 and not made,
            )
        after = work if is_assent(work.asked) else None
        next_reply = work.asked
    return found


def _by_turn(events: Sequence[Event], runs: Sequence[Run], operations: Sequence[FileOperation]) -> dict[int, _Work]:
    asked: dict[int, list[str]] = {}
    closing: dict[int, int] = {}
    for number, event in enumerate(events):
        if event.kind is EventKind.USER:
            asked.setdefault(event.turn, []).append(event.text)
        elif event.kind is EventKind.ASSISTANT:
            closing[event.turn] = number
    filed: dict[int, list[tuple[str, int]]] = {}
    for number, result in results_of(events).items():
        call = events[number]
        is_filed = is_service_call(call) and not is_lookup(call.name) and _FILES.search(call.name)
        ticket = _TICKET.search(result.text) if is_filed and not (result.is_error or result.is_refusal) else None
        if ticket and ticket[0] not in call.text:
            filed.setdefault(call.turn, []).append((f"{call.name.rpartition('__')[2]} {ticket[0]}", result.record))
    ran: dict[int, list[Run]] = {}
    for run in runs:
        ran.setdefault(events[run.event].turn, []).append(run)
    changed: dict[int, list[FileOperation]] = {}
    for one in operations:
        if one.action is not FileAction.READ and not is_throwaway(one.path):
            changed.setdefault(events[one.event].turn, []).append(one)
    return {
        turn: _Work(
            asked="\n".join(texts),
            filed=tuple(filed.get(turn, ())),
            runs=tuple(ran.get(turn, ())),
            changes=tuple(changed.get(turn, ())),
            closing=closing.get(turn, -1),
        )
        for turn, texts in asked.items()
    }


def _made(work: _Work, commits: Mapping[int, Commit]) -> Iterator[tuple[str, int]]:
    """What was filed or opened on a server, then the commits by hash and subject, which matter more."""
    yield from work.filed
    for run in work.runs:
        opened = run.outcome is CommandOutcome.OK and run.changes_world and run.event not in commits
        if opened and (address := _ADDRESS.search(run.line)):
            yield address[0], run.result_record
    for run in work.runs:
        if commit := commits.get(run.event):
            subject = opening(commit.subject, _MAX_SUBJECT_CHARS)
            yield (f'{commit.hash} "{subject}"' if subject else commit.hash), run.result_record


def _shown(work: _Work, words: FixedWords, *, is_newest: bool) -> Iterator[tuple[str, int]]:
    """Which files were edited, and how the newest check after that ended.

    A check after a question, or before the edits, shows nothing of them.
    """
    checks = [run for run in work.runs if run.outcome is not CommandOutcome.UNKNOWN and is_test(run.command)]
    after = {r.key: r for r in checks if not any(one.event > r.event and covers(r, one) for one in work.changes)}
    if work.changes:
        names = list(dict.fromkeys(one.path.rpartition("/")[2] for one in reversed(work.changes)))
        most = 1 if after else _MAX_EDITED
        more = f" {ELLIPSIS}" if len(names) > most else ""
        new = {one.path.rpartition("/")[2] for one in work.changes if one.action is FileAction.CREATE}
        done = words.created if new.issuperset(names[:most]) else words.edited
        yield f"{done} {words.comma.join(names[:most])}{more}", work.changes[-1].record
    # Without an edit, the newest request may have more in it than a check.
    is_asked = work.changes or (not is_newest and _ASKS_TO_CHECK.search(work.asked))
    # One that failed tells more than those that went well.
    newest = sorted(after.values(), key=lambda run: (run.outcome is CommandOutcome.FAILED, run.event))
    for check in newest[-1:] if is_asked else ():
        ended = words.ok if check.outcome is CommandOutcome.OK else words.failed
        yield f"`{opening(shown(check.key), _MAX_COMMAND_CHARS)}` {ended}", check.result_record


_ASKS_TO_CHECK = re.compile(r"\b(?:run|tests?|check|lint|build|verify|ci)\b", re.IGNORECASE)
