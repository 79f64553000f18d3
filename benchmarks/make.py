"""Makes transcripts of any size for the benchmarks: seeded, so that two runs measure the same bytes.

python benchmarks/make.py dataset 200 out.jsonl       # 200 MB, one conversation a line
python benchmarks/make.py real 20 out.jsonl ../shared/corpus-train   # 20 MB of rows cut from real sessions
python benchmarks/make.py sessions 2000 folder/       # 2,000 session files of 20 to 200 KB
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, count
from pathlib import Path
from typing import Any

import orjson

from compactor_cli.evaluate.cuts import file_records
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.transcript import Message, Role

WORDS = (
    "the parser reads a record and keeps its bytes while the planner counts tokens in the tail so that every result "
    "stays with its call because a missing pair breaks the next request and the archive holds what was removed before "
    "any output is written to disk which makes a second run safe even when the first one was interrupted half way"
).split()
STEMS = "cache client config engine index limit loader parser plan queue reader render retry router store tail".split()
NAMES = 600
LONG_AGO = 1_700_000_000
FOLDERS = ("src/core", "src/api", "src/db", "tests/unit", "tests/api", "docs", "scripts")


class Story:
    """Text with the mix of a coding session: prose, code, paths, numbers, logs, repeated lines."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        # A project has some hundred names, a few of which are everywhere.
        self.names = [f"{self.random.choice(STEMS)}_{self.random.choice(STEMS)}_{n}" for n in range(NAMES)]
        self.files = [f"{self.random.choice(FOLDERS)}/{self.name()}.py" for _ in range(30)]

    def name(self) -> str:
        return self.names[int(NAMES * self.random.random() ** 3)]

    def sentence(self) -> str:
        words = " ".join(self.random.choice(WORDS) for _ in range(self.random.randrange(8, 20)))
        return f"{words.capitalize()} in `{self.name()}`."

    def code(self, lines: int) -> str:
        made = (
            f"    {self.name()} = {self.name()}({self.random.randrange(10_000)}, key='{self.name()}')"
            for _ in range(lines)
        )
        return f"def {self.name()}(self):\n" + "\n".join(made)

    def log(self, lines: int) -> str:
        made = (
            f"2026-03-{self.random.randrange(1, 29):02} INFO {self.name()} took {self.random.randrange(5_000)} ms"
            for _ in range(lines)
        )
        return "\n".join(made) + "\n" + "PASSED\n" * self.random.randrange(20)

    def exchange(self, call: int) -> Iterator[dict[str, Any]]:
        path = self.random.choice(self.files)
        name, arguments, result = self.random.choice(
            [
                ("read_file", {"path": path}, self.code(self.random.randrange(20, 120))),
                ("bash", {"command": f"pytest {path} -k {self.name()}"}, self.log(self.random.randrange(10, 80))),
                ("edit_file", {"path": path, "old": self.code(4), "new": self.code(5)}, f"edited {path}"),
            ]
        )
        function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
        yield {
            "role": "assistant",
            "content": self.sentence(),
            "tool_calls": [{"id": f"call_{call}", "type": "function", "function": function}],
        }
        yield {"role": "tool", "tool_call_id": f"call_{call}", "content": result}

    def messages(self, size_bytes: int) -> Iterator[dict[str, Any]]:
        yield {"role": "system", "content": "You are a careful engineer. " + self.sentence()}
        written, call = 0, 0
        while written < size_bytes:
            yield {"role": "user", "content": " ".join(self.sentence() for _ in range(3))}
            for _ in range(self.random.randrange(2, 12)):
                call += 1
                for message in self.exchange(call):
                    written += len(orjson.dumps(message))
                    yield message
            yield {"role": "assistant", "content": " ".join(self.sentence() for _ in range(4))}


def rows(size_bytes: int, seed: int = 1) -> Iterator[bytes]:
    """Dataset rows of 40 to 300 KB until the size is reached."""
    return _until(size_bytes, map(_row, count(seed)))


def _row(seed: int) -> bytes:
    story = Story(seed)
    messages = list(story.messages(story.random.randrange(40_000, 300_000)))
    return orjson.dumps({"id": seed, "messages": messages}) + b"\n"


def _until(size_bytes: int, lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines up to the one with which the size is reached."""
    written = 0
    for line in lines:
        yield line
        written += len(line)
        if written >= size_bytes:
            return


REAL_ROW_BYTES = (40_000, 300_000)
SMALL_ROW_BYTES = (1_000, 3_000)


def real_rows(
    folder: Path, size_bytes: int, seed: int = 1, row_bytes: tuple[int, int] = REAL_ROW_BYTES
) -> Iterator[bytes]:
    """Dataset rows of these sizes until the size is reached, cut from the sessions below a folder.

    Every round takes the sessions in another order and cuts them elsewhere, so that a size beyond what there is
    repeats conversations, but no row. Raises FileNotFoundError where there is no session.
    """
    chance = random.Random(seed)
    sessions = _shuffled_sessions(folder, chance)
    found = enumerate((row for messages in sessions for row in _stretches(messages, chance, row_bytes)), 1)
    return _until(size_bytes, (orjson.dumps({"id": number, "messages": row}) + b"\n" for number, row in found))


def _shuffled_sessions(folder: Path, chance: random.Random) -> Iterator[list[dict[str, Any]]]:
    """All sessions below a folder, again and again, each time in another order."""
    paths = sorted(folder.rglob("*.jsonl.gz"))
    if not paths:
        raise FileNotFoundError(f"no sessions (*.jsonl.gz) below {folder}")
    while True:
        order = paths.copy()
        chance.shuffle(order)
        yield from map(_chat, order)


def real_session(folder: Path, size_bytes: int, seed: int = 1) -> Iterator[bytes]:
    """One long session, a message a line: the sessions below a folder, one after another."""
    messages = chain.from_iterable(_shuffled_sessions(folder, random.Random(seed)))
    return _until(size_bytes, (orjson.dumps(message) + b"\n" for message in messages))


def _stretches(
    messages: list[dict[str, Any]], chance: random.Random, row_bytes: tuple[int, int]
) -> Iterator[list[dict[str, Any]]]:
    """The messages in runs of a row's size, none of which begins with a tool's result; larger ones are left out."""
    row: list[dict[str, Any]] = []
    size, wanted = 0, chance.randrange(row_bytes[0] // 2, row_bytes[1])
    for message in messages:
        if size >= wanted and message["role"] != "tool":
            yield row
            row, size, wanted = [], 0, chance.randrange(*row_bytes)
        message_bytes = len(orjson.dumps(message))
        if message_bytes < row_bytes[1]:
            row.append(message)
            size += message_bytes
    if size >= row_bytes[0]:
        yield row


def _chat(path: Path) -> list[dict[str, Any]]:
    """A session as chat messages: texts, calls and results, without what no model is shown."""
    found = open_transcripts(file_records(str(path)))
    messages = (message for part in found for message in part.messages if not message.is_meta)
    return [chat for message in messages for chat in _chat_messages(message)]


def _chat_messages(message: Message) -> Iterator[dict[str, Any]]:
    for result in message.results:
        yield {"role": "tool", "tool_call_id": result.id, "content": result.text}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": orjson.dumps(call.arguments).decode()},
        }
        for call in message.calls
    ]
    if message.text or calls:
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        yield {"role": role, "content": message.text or None, **({"tool_calls": calls} if calls else {})}


def session(seed: int) -> bytes:
    """One session file of 20 to 200 KB, a message a line."""
    story = Story(seed)
    size_bytes = story.random.randrange(20_000, 200_000)
    return b"".join(orjson.dumps(message) + b"\n" for message in story.messages(size_bytes))


def write_dataset(path: Path, size_bytes: int) -> None:
    with path.open("wb") as file:
        file.writelines(rows(size_bytes))


def write_sessions(folder: Path, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(count):
        (folder / f"session-{seed:05}.jsonl").write_bytes(session(seed))


def write_story(path: Path, size_bytes: int, seed: int = 1) -> None:
    """One session of about this size, a message a line."""
    with path.open("wb") as file:
        file.writelines(orjson.dumps(message) + b"\n" for message in Story(seed).messages(size_bytes))


def write_small_sessions(folder: Path, count: int) -> None:
    """Session files of some kilobytes, a hundred to a folder, none of them written just now."""
    for seed in range(count):
        path = folder / f"project-{seed // 100:04}" / f"session-{seed:06}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_story(path, 1_000, seed)
        os.utime(path, (LONG_AGO + seed, LONG_AGO + seed))


if __name__ == "__main__":
    kind, amount, target = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    if kind == "dataset":
        write_dataset(target, amount * 1_000_000)
    elif kind == "real":
        with target.open("wb") as file:
            file.writelines(real_rows(Path(sys.argv[4]), amount * 1_000_000))
    else:
        write_sessions(target, amount)
