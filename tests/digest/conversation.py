"""Small hand-made transcripts for the tests of the digest's sections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.digest import Digest
from compactor_cli.digest.events import Event, events
from compactor_cli.digest.statements import TokenCache
from compactor_cli.model.errors import Place
from compactor_cli.model.marker import Marker
from compactor_cli.model.summary import Answer, Item, Request, Section, Summary
from compactor_cli.model.transcript import (
    Message,
    PreviousSummary,
    Record,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Transcript,
)
from compactor_cli.render.template import load_template, read_ours, render

MARKER = Marker(transcript="0" * 16, first=1, last=2, records=3, tokens=4, end="f" * 16)


def user(text: str) -> Message:
    return Message(role=Role.USER, parts=(Text(text=text),))


def says(text: str) -> Message:
    return Message(role=Role.ASSISTANT, parts=(Text(text=text),))


def thinks(text: str) -> Message:
    return Message(role=Role.ASSISTANT, parts=(Thinking(text=text),))


def call(tool: str, number: str = "", /, **arguments: Any) -> Message:
    return Message(role=Role.ASSISTANT, parts=(ToolCall(id=number, name=tool, arguments=arguments),))


def answer(text: str, number: str = "", *, is_error: bool = False) -> Message:
    return Message(role=Role.TOOL, parts=(ToolResult(id=number, text=text, is_error=is_error),))


def ran(command: str, output: str, *, is_error: bool = False, tool: str = "Bash") -> tuple[Message, Message]:
    return call(tool, command=command), answer(output, is_error=is_error)


def summary(text: str, origin: str = "compact") -> Message:
    return Message(role=Role.USER, parts=(Text(text=text),), summary=PreviousSummary(origin=origin, text=text))


def _flat(entry: Any) -> Iterator[Message]:
    if isinstance(entry, Message):
        yield entry
    else:
        for one in entry:
            yield from _flat(one)


def conversation(*messages: Message | tuple[Message, ...], cwd: str = "") -> Transcript:
    flat = list(_flat(messages))
    value = {"cwd": cwd} if cwd else None
    place = Place(path="-", line=1)
    records = tuple(Record(raw=b"{}", ending=b"\n", value=value, place=place) for _ in flat)
    return Transcript(dialect="test", records=records, messages=tuple(flat))


def events_of(*messages: Message | tuple[Message, ...], cwd: str = "") -> tuple[Event, ...]:
    transcript = conversation(*messages, cwd=cwd)
    return events(transcript, range(len(transcript.records)))


def count(text: str) -> int:
    return len(text) // 4 + 1


def token_cache() -> TokenCache:
    return TokenCache(count=count)


def rendered(one: Summary) -> str:
    return render(one, load_template("handover"), MARKER)


def request(transcript: Transcript, budget_tokens: int = 1_500, **more: Any) -> Request:
    covered: Sequence[int] = more.pop("covered", range(len(transcript.records)))
    renderer: Callable[[Summary], str] = partial(render, template=load_template("handover"), marker=MARKER)
    fields = {"kept": (), "render": renderer, "count": count, "read": read_ours, **more}
    return Request(transcript=transcript, covered=tuple(covered), budget_tokens=budget_tokens, **fields)


def digest(transcript: Transcript, budget_tokens: int = 1_500, **more: Any) -> Answer:
    return Digest().summarise(request(transcript, budget_tokens, **more))


def items(one: Answer, section: Section) -> tuple[Item, ...]:
    return next((part.items for part in one.summary.sections if part.section is section), ())


def texts(one: Answer, section: Section) -> list[str]:
    return [item.text for item in items(one, section)]


def invented(one: Answer, transcript: Transcript) -> set[str]:
    """Atoms of the summary that no message of the transcript holds."""
    source = "\n".join(
        text
        for message in transcript.messages
        for part in message.parts
        for text in (
            [part.text]
            if isinstance(part, Text | ToolResult)
            else [part.name, str(part.arguments).replace("\\n", "\n")]
            if isinstance(part, ToolCall)
            else []
        )
    )
    said = "\n".join(item.text for part in one.summary.sections for item in part.items)
    return {atom for atom in atom_texts(said) if atom not in source}


# A session with everything in it: two turns, edits, a failing test and its fix, a to-do list, a decision.
WORK = conversation(
    user("Please fix the login test in tests/test_login.py, it fails since yesterday and blocks the release."),
    call("Read", "r1", file_path="/data/app/src/login.py"),
    answer("     1→def login(user):\n     2→    return check_password(user)\n", "r1"),
    ran("cd /data/app && pytest tests/test_login.py", "E   AttributeError: x\n1 failed in 0.31s", is_error=True),
    says("I decided to rename check_password to verify_password because the old name hides the hashing."),
    call("Edit", "e1", file_path="/data/app/src/login.py", old_string="check_password", new_string="verify_password"),
    answer("The file has been updated.", "e1"),
    ran("pytest tests/test_login.py", "4 passed in 0.12s"),
    call(
        "TodoWrite",
        "t1",
        todos=[
            {"content": "Rename the function", "status": "completed"},
            {"content": "Update docs/login.md", "status": "in_progress"},
            {"content": "Release version 2.4.1", "status": "pending"},
        ],
    ),
    answer("Todos have been modified successfully", "t1"),
    says("The login test passes now. The docs still describe the old name."),
    user("now write the docs, but never touch docs/legacy.md because the old site still reads it"),
    call("Write", "w1", file_path="/data/app/docs/login.md", content="# Login\n\nUse verify_password.\n"),
    answer("File created successfully", "w1"),
    says("I wrote docs/login.md. Shall I release version 2.4.1 now?"),
    cwd="/data/app",
)
