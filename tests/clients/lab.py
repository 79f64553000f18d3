"""Real clients as the referee: sessions that they made, resumed by them, and what they then sent.

The clients are run by ``../shared/tools/clients`` in a sandbox, against a loopback model server; LAB_ROOT says
where they are installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from compactor_cli.engine import Compaction, compact_transcript
from compactor_cli.formats.clients import OPAQUE_KINDS, sent, sent_messages
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.harness import user_text
from compactor_cli.model.plan import Middle, Mode, Ranking
from compactor_cli.model.settings import SMART, Budget, Keep, Settings, Size
from compactor_cli.model.summary import Answer, Request, Source, Summary
from compactor_cli.model.transcript import Media, Message, Role, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.plan.tokens import counter_for
from compactor_cli.read.jsonl import read_records
from compactor_cli.read.streams import open_stream

TOOLS = Path(__file__).resolve().parents[3] / "shared/tools/clients"
# One turn to keep at either end, two between them that are worth a summary.
WORDS = {"A1": 20, "B2": 400, "C3": 400, "D4": 60, "E5": 400, "F6": 60, "G7": 400, "H8": 400}
SETTINGS = Settings(
    keep=Keep(head_turns=1, head_tokens=4_000, tail_turns=1, tail_tokens=0), budget=Budget(size=Size(tokens=400))
)
# The newest turn, and room for a tool call of an older one.
APART = Keep(by=SMART, head_turns=1, head_tokens=4_000, tail_tokens=900)
TWO_TURNS = replace(SETTINGS.keep, tail_turns=2)
STALE_TOKENS = 900_000
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
# What opencode asks in the user's name before a summary.
_OPENCODE_ASKS = "What did we do so far?"
_MARK = re.compile(r"(?:MARK|TOOL-OUT|SUMMARY)-(?!Z9)\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A resumed session: the first request with the prompt, how many requests there were, and the client."""

    text: str
    requests: int
    client: Any
    ref: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A summariser that says one thing."""

    said: str

    def summarise(self, request: Request) -> Answer:
        return Answer(summary=Summary(source=Source.MODEL, sections=(), prose=self.said))


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Ranks the exchanges that hold this word first."""

    word: str

    def rank(self, middle: Middle) -> Ranking:
        messages = middle.transcript.messages
        order = [n for n, block in enumerate(middle.blocks) if any(self.word in str(messages[i].parts) for i in block)]
        return Ranking(order=order)


def tools() -> Any:
    """The client tools; the test is skipped where they or the clients are absent."""
    if not os.environ.get("LAB_ROOT"):
        pytest.skip("LAB_ROOT is not set: no clients are installed (see ../shared/tools/clients)")
    if not (TOOLS / "check.py").is_file():
        pytest.skip(f"the client tools are not here: {TOOLS}")
    if os.geteuid() != 0:
        pytest.skip("clients are run in namespaces of their own, which takes root")
    sys.dont_write_bytecode = True
    if str(TOOLS) not in sys.path:
        sys.path.insert(0, str(TOOLS))
    import check
    import seed

    seed.prompt = prompt
    return {"check": check, "seed": seed, "clients": check.CLIENTS}


def client(name: str) -> Any:
    """The class of a client; the test is skipped if that client is not installed."""
    found = tools()["clients"][name]
    if not Path(found.bin).exists():
        pytest.skip(f"{name} is not installed below {os.environ['LAB_ROOT']}")
    return found


def prompt(turn: str) -> str:
    """Words of a user that make the model call a tool, and enough of them to be worth a summary."""
    chance = random.Random(turn)
    words = " ".join(f"{chance.choice(('alder', 'basin', 'cedar'))}{chance.randrange(999)}" for _ in range(WORDS[turn]))
    return f"MARK-{turn} please run TOOLCALL:echo tool-out-{turn.lower()} | tr a-z A-Z;; and note {words}"


def seeded(name: str, folder: Path) -> Path:
    """A real session of four turns, A1 to D4, with the answers of all four calls."""
    client(name)
    for _ in range(4):
        made, _ = tools()["seed"].seed(name)
        path = saved(made, folder)
        text = path.read_text(encoding="utf-8")
        if all(f"TOOL-OUT-{turn}" in text for turn in ("A1", "B2", "C3", "D4")):
            return path
        # On a busy machine Qwen Code now and then records a command as if it had printed nothing.
        path.unlink()
    pytest.fail(f"{name} loses what commands print: no session can be made")


def saved(made: Any, folder: Path) -> Path:
    """A copy of the newest session of this client."""
    folder.mkdir(parents=True, exist_ok=True)
    sessions = made.sessions()
    if made.name == "opencode":
        made.export(sessions[-1], str(folder / "session.json"))
        return folder / "session.json"
    # A resume in a later minute leaves a second, nearly empty file.
    newest = max(sessions, key=os.path.getsize) if made.name == "gemini" else sessions[-1]
    return Path(shutil.copy(newest, folder))


def compacted(path: Path, said: str, mode: Mode, kept: str = "", keep: Keep = SETTINGS.keep) -> Compaction:
    """What becomes of the session at ``path``; exchanges that hold the word ``kept`` stay next to the newest turn."""
    (transcript,) = transcripts(path)
    return compact_transcript(
        transcript,
        replace(SETTINGS, keep=APART if kept else keep),
        counter=counter_for("auto", ""),
        summariser=Words(said=said),
        load_state=lambda name: None,
        mode=mode,
        importance=Holding(word=kept) if kept else None,
    )


def transcripts(path: Path) -> list[Transcript]:
    with open_stream(str(path)) as stream:
        records = read_records(stream.reader, str(path))
        return list(open_transcripts(records, prefix=records.prefix))


def written(path: Path, done: Compaction, folder: str) -> Path:
    """The compaction in a file of the same name."""
    target = path.parent / folder / path.name
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(done.output)
    return target


def in_file(path: Path, *words: str) -> tuple[str, ...]:
    """Those of the words that the client wrote down: Qwen Code at times loses the output of a quick command."""
    text = path.read_text(encoding="utf-8")
    return tuple(word for word in words if word in text)


def resumed(name: str, path: Path, turn: str = "") -> Resumed:
    """The session resumed by its client with the words of one more turn."""
    words = prompt(turn) if turn else "MARK-Z9 continue the work"
    found = tools()["check"].probe(name, str(path), words)
    assert found["rc"] == 0, found["err"][-2000:]
    assert found["reqs"], "the client sent nothing"
    return Resumed(
        text=json.dumps(found["reqs"][0]["body"], ensure_ascii=False),
        requests=len(_requests(found["client"])),
        client=found["client"],
        ref=found["ref"],
    )


def gone_on(before: Resumed, *prompts: str) -> str:
    """The same session with more turns; the text of the last request."""
    text = ""
    for words in prompts:
        results, requests = before.client.run(before.client.resume(before.ref, words))
        assert results[-1]["rc"] == 0, results[-1]["err"][-2000:]
        text = json.dumps(requests[-1]["body"], ensure_ascii=False) if requests else text
    return text


def broken_off(session: Resumed, turn: str) -> None:
    """One more turn, interrupted some seconds after its start: most likely while its tool runs.

    Its command is quick the second time: a client that sends the words once more must not wait again.
    """
    Path(session.client.cwd, "begun").unlink(missing_ok=True)
    words = f"MARK-{turn} please run TOOLCALL:test -e begun || {{ touch begun; sleep 60; }};;"
    step = session.client.resume(session.ref, words)
    session.client.run({**step, "argv": ["timeout", "-s", "INT", "-k", "5", "8", *step["argv"]]})


def marks(text: str) -> list[str]:
    """The words by which turns are known, in their order; the same word several times in a row once."""
    found = _MARK.findall(text)
    return [word for i, word in enumerate(found) if not i or word != found[i - 1]]


def marks_sent(path: Path) -> list[str]:
    """The same of what `sent` says is sent of a session."""
    (transcript,) = transcripts(path)
    parts = (part for i in sent(transcript) for part in transcript.messages[i].parts)
    return marks("\n".join(part.text for part in parts if isinstance(part, Text | ToolResult)))


Item = tuple[str, ...]


def items_viewed(path: Path) -> list[Item]:
    """What the view says is sent of a session, item by item."""
    (transcript,) = transcripts(path)
    return [item for _, message in sent_messages(transcript) for item in _items(message)]


def items_requested(body: Any) -> list[tuple[Item, bool]]:
    """What a request holds, item by item, and whether the client may have added it: no person said it."""
    record = json.dumps(body, ensure_ascii=False).encode() + b"\n"
    (transcript,) = open_transcripts(read_records([record], "request"))
    found: list[tuple[Item, bool]] = []
    for message in transcript.messages:
        for item in _items(replace(message, summary=None)):
            is_clients = message.role is Role.USER and item[0] == "text" and _typed(item) in ("", _OPENCODE_ASKS)
            # Gemini CLI sends results twice when it resumes.
            is_again = item[0] == "result" and any(item == other for other, _ in found)
            found.append((item, message.role is Role.SYSTEM or is_clients or is_again))
    return found


def _typed(item: Item) -> str:
    return user_text(Message(role=Role.USER, parts=(Text(text=item[1]),)))


def is_same(viewed: Item, found: Item) -> bool:
    """Whether an item of the view is this one of the request.

    Clients put words of their own around a summary and around what a tool said, and lengthen ids by a tool's name.
    """
    kind = viewed[0]
    if kind == "summary":
        return found[0] == "text" and viewed[1] in found[1]
    if kind != found[0] or kind not in ("call", "result"):
        return viewed == found
    is_same_id = viewed[1].endswith(found[1]) or found[1].endswith(viewed[1])
    return is_same_id and (viewed[2] in found[2] if kind == "result" else viewed[2] == found[2])


def _plain(text: str) -> str:
    """Without the reminders that a client adds to words and results when it sends them; all of it, if it is one."""
    return _REMINDER.sub("", text).strip() or text.strip()


def _items(message: Message) -> Iterator[Item]:
    """The parts by what can be compared: words without blanks around them, ids, names, and how many media."""
    for part in message.parts:
        if isinstance(part, Text) and (text := _plain(part.text)):
            yield "summary" if message.summary else "text", text
        elif isinstance(part, Thinking) and part.text.strip():
            yield "thinking", part.text.strip()
        elif isinstance(part, ToolCall):
            yield "call", part.id, part.name
        elif isinstance(part, ToolResult):
            yield "result", part.id, _plain(part.text), str(part.media_count)
        elif isinstance(part, Media) and part.kind not in OPAQUE_KINDS:
            yield ("media",)


def _requests(made: Any) -> list[Any]:
    lines = Path(made.log).read_text(encoding="utf-8").splitlines()
    posts = (entry for entry in map(json.loads, lines) if entry["method"] == "POST")
    return [entry for entry in posts if any(part in entry["path"] for part in made.model_paths)]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
