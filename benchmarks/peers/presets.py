"""Presets next to the packages they are made after: which messages does each keep of the same transcripts?

    python benchmarks/peers/presets.py TRANSCRIPTS [--work DIR] [--peer NAME]… [--show N]

TRANSCRIPTS: a file, or a folder that is walked. Each transcript is read by its own dialect and written anew as a plain
chat (or as Gemini's contents), which both sides are given: the package's own function, in an environment of its own and
in a box without a network, and the plan of our preset. Printed per peer: how many transcripts there were, on how many
both keep the same, how many ours leaves as they are since nothing would be gained (compared by what would stay), how
many differ for a reason that is ours on purpose (a call and its result stay or go as one; the limit is held; no scrap
of a message is kept), and the rest, the first of them in detail.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from environment import Box, install

from compactor_cli.engine import plan_transcript
from compactor_cli.evaluate.cuts import file_records
from compactor_cli.formats.client_signs import summary_of
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import CompactError
from compactor_cli.model.plan import Action, Plan
from compactor_cli.model.settings import Settings, Size, Strategy
from compactor_cli.model.transcript import Message, Role, Text, Transcript
from compactor_cli.plan.layout import LayoutSearch, measure_limits
from compactor_cli.plan.tokens import arguments_text, count_messages, counter_for
from compactor_cli.presets import load_preset
from compactor_cli.read.jsonl import read_records

HERE = Path(__file__).parent
GEMINI = "@google/gemini-cli-core@0.61.0"
# Of a transcript's tokens, what qwen-agent is to come down to.
QWEN_SHARE = 0.4
LEAST_MESSAGES = 6
# Of a message that is cut, less than this and a note that it was cut is not kept by ours.
SCRAP_CHARS = 80

Chat = list[dict[str, Any]]
Kept = dict[int, "str | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A package, and what of this package is set next to it. ``fit``: the transcript as this package takes it.

    ``limited``: it is given how many tokens may stay; ``forced``: it compacts however little there is.
    """

    preset: str
    requirements: tuple[str, ...]
    python: tuple[int, int] = (3, 11)
    fit: Callable[[Chat], Chat] = lambda messages: messages
    limited: bool = False
    forced: bool = False


def _without_system(messages: Chat) -> Chat:
    """Without system messages, which these clients hold elsewhere."""
    return [message for message in messages if message["role"] != "system"]


def _from_user_on(messages: Chat) -> Chat:
    """From the first message of the user on, after at most one system message."""
    conversation = _without_system(messages)
    first = next((n for n, message in enumerate(conversation) if message["role"] == "user"), len(conversation))
    system = [message for message in messages[:1] if message["role"] == "system"]
    return [*system, *conversation[first:]]


PEERS = {
    "kimi": Peer(preset="kimi", requirements=("kimi-cli==1.52.0",), python=(3, 13), fit=_without_system),
    "smolagents": Peer(preset="smolagents", requirements=("smolagents==1.26.0",)),
    "qwen-agent": Peer(
        preset="qwen-agent",
        requirements=("qwen-agent==0.0.26", "tqdm", "python-dateutil", "python-dotenv"),
        fit=_from_user_on,
        limited=True,
    ),
    "gemini": Peer(preset="gemini", requirements=(), fit=_without_system),
    "hermes": Peer(preset="hermes", requirements=("hermes-agent==0.19.0",), forced=True),
}


def transcripts(root: Path) -> Iterator[tuple[str, Chat]]:
    """All transcripts below a folder as plain chats, with the names of their files."""
    files = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
    for path in files:
        if ".json" not in path.name and path.suffix not in (".traj", ".af"):
            continue
        try:
            for transcript in open_transcripts(file_records(str(path))):
                messages = plain(transcript)
                if len(messages) >= LEAST_MESSAGES:
                    yield path.name, messages
        except CompactError:
            continue


def plain(transcript: Transcript) -> Chat:
    """The conversation as a chat of OpenAI's: calls and results by pair, records of one message joined, no thinking."""
    grouping = group(transcript.messages)
    ids = {half: f"call_{n}" for n, pair in enumerate(grouping.pairs) for half in _places(pair)}
    chat: Chat = []
    last_group = ""
    for number, message in enumerate(transcript.messages):
        if message.is_meta or message.superseded:
            continue
        joins = bool(message.group) and message.group == last_group and message.role is Role.ASSISTANT
        last_group = message.group
        for made in _chat_messages(number, message, ids):
            if joins and chat and chat[-1]["role"] == made["role"] == "assistant":
                _join(chat[-1], made)
            else:
                chat.append(made)
    return chat


def _places(pair: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    return (pair.call.record, pair.call.part), (pair.result.record, pair.result.part)


def _chat_messages(number: int, message: Message, ids: dict[tuple[int, int], str]) -> Iterator[dict[str, Any]]:
    calls, results = [], []
    for n, part in enumerate(message.parts):
        key = ids.get((number, n))
        if part in message.results and key:
            results.append({"role": "tool", "tool_call_id": key, "content": part.text})
        elif part in message.calls and key:
            function = {"name": part.name, "arguments": arguments_text(part)}
            calls.append({"id": key, "type": "function", "function": function})
    role = "assistant" if message.role is Role.ASSISTANT else "system" if message.role is Role.SYSTEM else "user"
    if message.text or calls:
        yield {"role": role, "content": message.text, **({"tool_calls": calls} if calls else {})}
    yield from results


def _join(one: dict[str, Any], other: dict[str, Any]) -> None:
    one["content"] = "\n".join(filter(None, (one["content"], other["content"])))
    if calls := [*one.get("tool_calls", ()), *other.get("tool_calls", ())]:
        one["tool_calls"] = calls


def contents(messages: Chat) -> Chat:
    """The chat as Gemini's contents, a message each."""
    names: dict[str, str] = {}
    made: Chat = []
    for message in messages:
        parts: Chat = [{"text": message["content"]}] if message["content"] else []
        if message["role"] == "tool":
            key = message["tool_call_id"]
            parts = [{"functionResponse": {"id": key, "name": names[key], "response": {"output": message["content"]}}}]
        for call in message.get("tool_calls", ()):
            names[call["id"]] = call["function"]["name"]
            parts.append({"functionCall": {"id": call["id"], "name": names[call["id"]], "args": _object(call)}})
        made.append({"role": "model" if message["role"] == "assistant" else "user", "parts": parts})
    return made


def _object(call: dict[str, Any]) -> dict[str, Any]:
    try:
        value = json.loads(call["function"]["arguments"])
    except ValueError:
        value = {"input": call["function"]["arguments"]}
    return value if isinstance(value, dict) else {"input": value}


def ours(peer: Peer, messages: Chat, limit: int) -> tuple[Kept, Plan]:
    """What our preset keeps, and its plan."""
    lines = [json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for message in messages]
    dialect = "gemini-contents" if peer.preset == "gemini" else "openai-chat"
    if dialect == "gemini-contents":
        lines = [b'{"contents":[' + b",".join(line.rstrip() for line in lines) + b"]}\n"]
    (transcript,) = open_transcripts(read_records(lines, "peer"), dialect=dialect)
    settings: Settings = replace(load_preset(peer.preset).settings, tokenizer="chars/4")
    if peer.limited:
        settings = replace(settings, target=Size(tokens=limit))
    plan = plan_transcript(transcript, settings, counter=counter_for("chars/4"))
    texts = {edit.record: edit.text for edit in plan.edits}
    staying = [*plan.indices(Action.KEEP), *texts]
    if not plan.changes and settings.strategy is Strategy.SUMMARY:
        staying = _cut(transcript, settings)
    return {i: texts.get(i) for i in sorted(staying)}, plan


def _cut(transcript: Transcript, settings: Settings) -> list[int]:
    """What would stay if a summary were worth its tokens."""
    tokens_of = count_messages(counter_for("chars/4"), transcript.messages)
    limits = measure_limits(transcript, group(transcript.messages), tokens_of)
    cut = LayoutSearch(limits=limits, settings=settings).by_settings()
    return [*range(cut.head_stop), *range(cut.tail_start, len(transcript.records))]


def tokens(messages: Sequence[dict[str, Any]]) -> int:
    """As ``chars/4`` counts them, with 4 for each message."""
    parts = [
        [
            message["content"] or "",
            *(part for call in message.get("tool_calls", ()) for part in call["function"].values()),
        ]
        for message in messages
    ]
    return sum(4 + sum(-(-len(part) // 4) for part in texts) for texts in parts)


def theirs(name: str, peer: Peer, tasks: list[dict[str, Any]], work: Path) -> list[dict[str, Any]]:
    """What the package keeps of each transcript."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        box = Box(folder=Path(folder))
        source, target = box.folder / "in.jsonl", box.folder / "out.jsonl"
        source.write_text("".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8")
        ran = box.run([*_program(name, peer, work), str(source), str(target)])
        if not target.exists():
            sys.exit(f"{name}: {ran.err[-2_000:]}")
        return [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]


def _program(name: str, peer: Peer, work: Path) -> list[str]:
    if peer.requirements:
        return [
            install(work / name, *peer.requirements, least=peer.python).program("python"),
            str(HERE / "preset_side.py"),
            name,
        ]
    folder = work / name
    package = folder / "node_modules" / GEMINI.rpartition("@")[0]
    if not package.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", GEMINI]
        subprocess.run(command, check=True, capture_output=True)
    return ["node", str(HERE / "preset_side.mjs"), str(package)]


def why(peer: Peer, task: dict[str, Any], other: Kept, plan: Plan) -> str:
    """The reason of a difference that is ours on purpose; empty if there is none."""
    messages = task["messages"]
    if peer.forced and not plan.changes:
        return "ours leaves it as it is"
    if any(summary_of(Role.USER, [Text(text=_words(messages[n]))]) for n in other):
        return "it keeps an earlier summary"
    if peer.preset == "gemini":
        return ""
    kept = [{**messages[n], **({} if text is None else {"content": text})} for n, text in other.items()]
    if peer.limited and tokens(kept) > task["limit"]:
        return "it exceeds the limit"
    if any(text is not None and len(text) < SCRAP_CHARS for text in other.values()):
        return "it keeps a scrap"
    calls = {call["id"] for message in kept for call in message.get("tool_calls", ())}
    results = {message["tool_call_id"] for message in kept if message["role"] == "tool"}
    return "it parts a pair" if calls != results else ""


def _words(message: dict[str, Any]) -> str:
    return message.get("content") or "\n".join(part.get("text", "") for part in message.get("parts", ()))


def compared(name: str, peer: Peer, found: list[tuple[str, Chat]], work: Path, show: int) -> str:
    """One line of the table; the first differences above it."""
    tasks, names = [], []
    for file, messages in found:
        fitted = peer.fit(messages)
        shaped = contents(fitted) if peer.preset == "gemini" else fitted
        if len(shaped) >= LEAST_MESSAGES:
            tasks.append({"messages": shaped, "limit": int(tokens(fitted) * QWEN_SHARE)})
            names.append(file)
    counts: dict[str, int] = {}
    idle = 0
    for file, task, answer in zip(names, tasks, theirs(name, peer, tasks, work), strict=True):
        if "error" in answer:
            verdict = f"refused by it ({answer['error'].split(': ')[0]})"
        else:
            other = {int(n): text for n, text in answer["kept"].items()}
            mine, plan = ours(peer, task["messages"], task["limit"])
            idle += not plan.changes
            verdict = "same" if _same(peer, mine, other) else why(peer, task, other, plan) or "differs"
            if verdict == "differs" and counts.get(verdict, 0) < show:
                print(f"  {name}: {file} ({len(task['messages'])} messages): {_difference(mine, other)}")
        counts[verdict] = counts.get(verdict, 0) + 1
    total = sum(counts.values())
    rest = ", ".join(f"{key} {value}" for key, value in sorted(counts.items()) if key != "same")
    return f"{name:12} {total:6} {counts.get('same', 0):6} {idle:6}  {rest}"


def _same(peer: Peer, mine: Kept, other: Kept) -> bool:
    """The same messages; where texts are cut in a way that both define, the same texts."""
    return mine == other if peer.preset == "smolagents" else mine.keys() == other.keys()


def _difference(mine: Kept, other: Kept) -> str:
    def listed(numbers: Sequence[int]) -> str:
        return f"{numbers[0]}-{numbers[-1]} ({len(numbers)})" if numbers else "nothing"

    return f"only ours keeps {listed(sorted(mine.keys() - other))}, only it keeps {listed(sorted(other.keys() - mine))}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("transcripts", type=Path)
    parser.add_argument("--work", type=Path, help="where the environments are kept (default: a folder that is removed)")
    parser.add_argument("--peer", action="append", choices=tuple(PEERS), help="only this one; may be said again")
    parser.add_argument("--show", type=int, default=3, help="differences shown per peer (default 3)")
    run_options = parser.parse_args()
    found = list(transcripts(run_options.transcripts))
    with tempfile.TemporaryDirectory() as temporary:
        work = run_options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        lines = [compared(name, PEERS[name], found, work, run_options.show) for name in run_options.peer or PEERS]
    print(f"{'peer':12} {'all':>6} {'same':>6} {'idle':>6}  others")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
