from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor_cli.formats.clients import sent
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.formats.registry import Capabilities, all_dialects, get
from compactor_cli.group.exchanges import group
from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.model.transcript import Role, Transcript
from compactor_cli.read.jsonl import OnInvalid, read_records
from compactor_cli.read.streams import open_stream
from compactor_cli.render import convert as conversion
from compactor_cli.render.convert import check_writable, convert, not_carried_line, writable

WRITABLE = writable()
SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples").iterdir())
# One of them without calls is the other.
ALIKE = {"sharegpt", "hermes"}
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def opened(data: bytes, dialect: str = "") -> list[Transcript]:
    records = read_records(data.splitlines(keepends=True), "made", OnInvalid.KEEP)
    return list(open_transcripts(records, dialect=dialect, prefix=records.prefix))


def row(*messages: dict[str, Any], **more: Any) -> Transcript:
    (transcript,) = opened(json.dumps({"messages": messages, **more}).encode() + b"\n", "openai-chat")
    return transcript


def there_and_back(transcript: Transcript, name: str) -> list[dict[str, Any]]:
    (other,) = opened(convert(transcript, name).output, name)
    (value,) = map(json.loads, convert(other, "openai-chat").output.splitlines())
    messages: list[dict[str, Any]] = value["messages"]
    return messages


MOMENT = 1_770_109_260
OPENCODE = {
    "info": {"id": "msg_1", "role": "user", "time": {"created": MOMENT * 1000}},
    "parts": [{"type": "text", "text": "a"}],
}
NODE = {"author": {"role": "user"}, "create_time": MOMENT + 0.0, "content": {"content_type": "text", "parts": ["a"]}}


@pytest.mark.parametrize(
    "value",
    [
        {"info": {"id": "s"}, "messages": [OPENCODE]},
        {"mapping": {"n": {"id": "n", "message": NODE, "parent": None, "children": []}}, "current_node": "n"},
        {
            "events": [
                {"author": "user", "invocation_id": "i", "content": {"parts": [{"text": "a"}]}, "timestamp": MOMENT}
            ]
        },
        {
            "in_context_message_indices": [0],
            "messages": [{"role": "user", "content": "a", "created_at": "2026-02-03T09:01:00.000Z"}],
        },
        {"ts": MOMENT, "message": {"role": "user", "content": "a"}},
        {"role": "user", "content": "a", "timestamp": MOMENT},
    ],
    ids=["opencode", "chatgpt", "adk", "letta", "enveloped", "openai-chat"],
)
def test_times_are_carried_however_they_are_written(value: Any) -> None:
    (transcript,) = opened(json.dumps(value).encode())
    header, first = map(json.loads, convert(transcript, "pi").output.splitlines())
    assert (header["timestamp"], first["timestamp"]) == ("2026-02-03T09:01:00.000Z", "2026-02-03T09:01:00.000Z")


# Words that begin or end with blanks, or look like tags, are not told from what stands around them everywhere.
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="<>`", exclude_categories=("Cc",)), min_size=1).map(
    lambda text: f"w{text.strip()}."
)
ARGUMENTS = st.dictionaries(WORDS, st.none() | st.booleans() | st.integers(-9, 9) | WORDS, max_size=3)
CALLS = st.lists(st.tuples(st.sampled_from(("look", "edit")), ARGUMENTS, WORDS), min_size=1, max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A system prompt, turns of a user, calls with their results, and an answer."""
    messages = [{"role": "system", "content": draw(WORDS)}]
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(WORDS)})
        for calls in draw(st.lists(CALLS, max_size=2)):
            ids = [f"call_{number + n}" for n in range(len(calls))]
            number += len(calls)
            asked = [
                {"id": key, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
                for key, (name, given, _) in zip(ids, calls, strict=True)
            ]
            messages.append({"role": "assistant", "content": draw(WORDS), "tool_calls": asked})
            messages += (
                {"role": "tool", "tool_call_id": key, "content": told}
                for key, (_, _, told) in zip(ids, calls, strict=True)
            )
        messages.append({"role": "assistant", "content": draw(WORDS)})
    return messages


def facts(messages: list[dict[str, Any]], holds: Capabilities) -> Iterator[Any]:
    """What a dialect that holds this must keep, in order; of parallel calls, where it has none, each by itself."""
    answers = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    for message in messages:
        calls = message.get("tool_calls", [])
        words = message["content"] if Capabilities.WORDS in holds or not calls else None
        if message["role"] in ("user", "assistant") and words and message["content"] != "Understood.":
            yield (message["role"], words)
        for call in calls:
            yield (call["function"]["name"], json.loads(call["function"]["arguments"]), answers[call["id"]])


@settings(max_examples=120, deadline=None)
@given(messages=conversations(), name=st.sampled_from(WRITABLE))
def test_words_calls_results_and_their_order_come_back(messages: list[dict[str, Any]], name: str) -> None:
    holds = get(name).holds
    back = there_and_back(row(*messages), name)
    assert list(facts(back, holds)) == list(facts(messages, holds))
    if Capabilities.SYSTEM in holds:
        assert back[0] == messages[0]
    if Capabilities.IDS in holds:
        ids = [call["id"] for message in messages for call in message.get("tool_calls", [])]
        assert [call["id"] for message in back for call in message.get("tool_calls", [])] == ids


@pytest.mark.parametrize("name", WRITABLE)
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_every_sample_in_every_dialect(path: Path, name: str) -> None:
    for transcript in opened(path.read_bytes()):
        done = convert(transcript, name)
        (again,) = opened(done.output)
        assert again.dialect == name or {again.dialect, name} == ALIKE
        grouping = group(again.messages)
        assert (grouping.orphan_calls, grouping.orphan_results) == ((), ())
        assert convert(transcript, name) == done
        shown = {transcript.messages[i].text for i in sent(transcript)} - {""}
        held = json.dumps([message.text for message in again.messages] + [again.row], ensure_ascii=False)
        if Capabilities.WORDS in get(name).holds and Capabilities.SYSTEM in get(name).holds:
            lines = [json.dumps(line, ensure_ascii=False)[1:-1] for text in shown for line in text.split("\n")]
            assert all(line in held for line in lines)


@pytest.mark.parametrize("name", ["openai-chat", "anthropic"])
def test_every_real_transcript(corpus: Path, name: str) -> None:
    count = 0
    for path in sorted(corpus.rglob("*.*")):
        if not path.is_file() or not (".json" in path.name or path.suffix in (".traj", ".af")):
            continue
        try:
            with open_stream(str(path)) as stream:
                transcripts = list(open_transcripts(read_records(stream.reader, str(path), OnInvalid.KEEP)))
        except InputError:  # what is no transcript is looked at elsewhere
            continue
        for transcript in transcripts:
            output = convert(transcript, name).output
            (again,) = opened(output, "" if sent(transcript) else name)
            assert again.dialect == name, path
            grouping = group(again.messages)
            assert (grouping.orphan_calls, grouping.orphan_results) == ((), ()), path
            count += 1
    assert count > 250


@pytest.mark.parametrize("name", WRITABLE)
def test_rows_stay_apart_with_a_system_prompt_or_without(name: str) -> None:
    system = {"role": "system", "content": "s"}
    said = [[{"role": "user", "content": f"q{n}"}, {"role": "assistant", "content": f"a{n}"}] for n in range(4)]
    rows = [row(*said[0]), row(system, *said[1]), row(*said[2]), row(*said[3])]
    output = b"".join(convert(item, name).output for item in rows)
    texts = [[message.text for message in item.messages] for item in opened(output)]
    assert [[text for text in found if text[:1] in ("q", "a")] for found in texts] == [
        [f"q{n}", f"a{n}"] for n in range(4)
    ]


@pytest.mark.parametrize("name", WRITABLE)
def test_a_row_that_a_dataset_holds_twice_is_a_conversation_each_time(name: str) -> None:
    line = json.dumps({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})
    output = b"".join(convert(item, name).output for item in opened(f"{line}\n{line}\n".encode()))
    texts = [[message.text for message in item.messages if message.text] for item in opened(output)]
    assert [[text for text in found if text in ("q", "a")] for found in texts] == [["q", "a"], ["q", "a"]]


def test_what_is_lost_is_counted_and_said_in_one_line() -> None:
    assistant = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "tool_use", "id": "t", "name": "look", "input": {}},
        ],
        "usage": {"input_tokens": 9},
    }
    result = {"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True}
    messages = [{"role": "user", "content": "Look."}, assistant, {"role": "user", "content": [result]}]
    (transcript,) = opened(json.dumps({"system": "S", "messages": messages, "max_tokens": 9}).encode() + b"\n")
    done = convert(transcript, "openai-chat")
    lost = {"thinking": 1, "error flags": 1, "usage counters": 1, "metadata": 1}
    assert done.not_carried == lost
    line = not_carried_line(done.not_carried, "openai-chat")
    assert sorted(line.partition(": ")[0].split(", ")) == ["error flags 1", "thinking 1", "usage counters 1"]
    assert line.endswith(": openai-chat cannot hold them; metadata 1: not carried over")
    (value,) = map(json.loads, done.output.splitlines())
    assert value["messages"][0] == {"role": "system", "content": "S"}


@pytest.mark.parametrize(
    "name", [name for name in WRITABLE if Capabilities.IMAGES in get(name).holds and name != "atif"]
)
def test_images_come_along(name: str) -> None:
    shown = [{"type": "text", "text": "See:"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    transcript = row({"role": "user", "content": shown}, {"role": "assistant", "content": "A pixel."})
    assert convert(transcript, name).not_carried.get("images", 0) == 0
    assert there_and_back(transcript, name)[0]["content"] == shown


@pytest.mark.parametrize("name", WRITABLE)
def test_an_image_by_its_address_comes_along_or_is_counted_in_a_message_that_is_not_empty(name: str) -> None:
    url = "https://example.org/x.png"
    shown = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    done = convert(row(shown, {"role": "assistant", "content": "A pixel."}), name)
    assert done.not_carried.get("images", 0) == (url.encode() not in done.output)
    (again,) = opened(done.output, name)
    assert [bool(message.parts) for message in again.messages if message.role is Role.USER] == [True]


@pytest.mark.parametrize("name", WRITABLE)
def test_a_conversation_without_messages_is_read_back_or_said_not_to_be_written(name: str) -> None:
    done = convert(row(id=7), name)
    read = opened(done.output)
    assert [len(sent(item)) for item in read] == [0] * (done.output != b"")
    assert ("conversations without messages" in done.not_carried) == (name in ("atif", "gemini-contents"))


def test_what_stands_next_to_the_messages_comes_along() -> None:
    tool = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}
    beside = {"id": "row-7", "metadata": {"split": "train"}, "tools": [{"type": "function", "function": tool}]}
    transcript = row({"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}, **beside)
    for name in ("anthropic", "openai-responses", "gemini-contents", "bedrock", "sharegpt"):
        (other,) = opened(convert(transcript, name).output, name)
        (value,) = map(json.loads, convert(other, "openai-chat").output.splitlines())
        assert {key: value[key] for key in beside} == beside, name


def test_repeated_and_missing_ids_are_made_unique() -> None:
    def asks(key: str) -> dict[str, Any]:
        call = {"id": key, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def told(key: str, text: str) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": key, "content": text}

    transcript = row({"role": "user", "content": "Go."}, asks("a"), told("a", "1"), asks("a"), told("a", "2"))
    (value,) = map(json.loads, convert(transcript, "openai-chat").output.splitlines())
    ids = [message["tool_calls"][0]["id"] for message in value["messages"] if message["role"] == "assistant"]
    assert len(set(ids)) == 2
    assert [message.get("tool_call_id") for message in value["messages"] if message["role"] == "tool"] == ids


def test_a_dialect_that_cannot_be_written_is_refused_with_those_that_can() -> None:
    with pytest.raises(UsageError, match=r"cannot be written from nothing: these can: .*openai-chat"):
        check_writable("openhands")
    with pytest.raises(UsageError, match="did you mean 'openai-chat'"):
        check_writable("openai-cht")


def test_every_dialect_says_what_it_can_hold() -> None:
    assert all(dialect.holds for dialect in all_dialects())


@pytest.mark.parametrize("name", WRITABLE)
def test_a_summary_after_a_head_is_still_known_for_one(name: str) -> None:
    marker = f"[compact/1 transcript={'a' * 16} records=2-9/12 tokens=900 end={'b' * 16}]"
    transcript = row(
        {"role": "user", "content": "Plane the boards."},
        {"role": "user", "content": f"Reference only: a digest.\n{marker}\n\n## What Happened\n- planed"},
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": "Done."},
    )
    (again,) = opened(convert(transcript, name).output, name)
    shown = [again.messages[i] for i in sent(again)]
    assert [message.text for message in shown if not message.summary and message.text != "Understood."] == [
        "Plane the boards.",
        "Go on.",
        "Done.",
    ]
    assert [message.summary.origin for message in shown if message.summary] == ["compact"]


def test_a_conversion_is_read_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []

    def counted(*given: Any, **named: Any) -> Iterator[Transcript]:
        reads.append("read")
        return open_transcripts(*given, **named)

    (transcript,) = opened(next(path for path in SAMPLES if path.name == "claude-code.jsonl").read_bytes())
    monkeypatch.setattr(conversion, "open_transcripts", counted)
    assert convert(transcript, "openai-chat").output
    assert reads == ["read"]
