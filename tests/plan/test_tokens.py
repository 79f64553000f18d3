from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.model.errors import Unreadable, UsageError
from compactor_cli.model.transcript import Media, Message, Role, Text, Thinking, ToolCall, ToolResult
from compactor_cli.plan import models, tokens
from compactor_cli.plan.models import encoding_of
from compactor_cli.plan.tokens import (
    EstimateCounter,
    TiktokenCounter,
    bound_message,
    count_message,
    counter_for,
    pieces,
)


@pytest.fixture(scope="module")
def counter() -> TiktokenCounter:
    return TiktokenCounter()


def test_counts_are_those_of_tiktoken(counter: TiktokenCounter) -> None:
    assert counter.count("Hello, world!") == 4
    assert counter.count("") == 0
    assert counter.method == "tiktoken o200k_base"


def test_special_tokens_are_plain_text(counter: TiktokenCounter) -> None:
    assert counter.count("<|endoftext|>") > 1


def test_lone_surrogates_are_counted(counter: TiktokenCounter) -> None:
    assert 0 < counter.count("a\ud800b") <= 5


@pytest.mark.parametrize("text", [" " * 1_100_000, "\t" * 300_000, "x" * 300_000, "\n" * 300_000, "中" * 200_000])
def test_long_runs_are_counted(counter: TiktokenCounter, text: str) -> None:
    assert 0 < counter.count(text) <= len(text.encode())


def test_long_texts_are_counted_exactly(counter: TiktokenCounter) -> None:
    text = "".join(f"line {i} = {i * 7919 % 1000}\n\n  indented {i}\n\t- item\r\nnext\n" for i in range(6_000))
    assert len(list(pieces(text))) > 3
    whole = models.load_encoding("o200k_base", models.vocabulary_folder("o200k_base") or Path())
    assert counter.count(text) == len(whole.encode_ordinary(text))


@given(st.text(max_size=200), st.integers(1, 2_000))
def test_pieces_are_the_text(text: str, times: int) -> None:
    long = text * times
    assert "".join(pieces(long)) == long
    assert all(len(piece) <= tokens.PIECE_CHARS for piece in pieces(long))


def test_a_text_is_never_more_tokens_than_bytes(counter: TiktokenCounter) -> None:
    for text in ("中文", "🙂🙂", "a\ud800", "\x00\x01", "ß" * 40):
        message = Message(role=Role.USER, parts=(Text(text=text),))
        assert count_message(counter, message) <= bound_message(message)


def test_everything_a_model_is_shown_counts() -> None:
    counter = EstimateCounter()
    empty = Message(role=Role.ASSISTANT)
    assert count_message(counter, empty) == 4
    parts = (
        Text(text="a" * 40),
        Thinking(text="b" * 40),
        ToolCall(id="ignored" * 9, name="name", arguments={"k": "ü"}),
        ToolResult(id="ignored" * 9, text="c" * 40, media_count=1),
        Media(kind="image", size_bytes=9_000_000),
        Media(kind="image", size_bytes=12),
    )
    assert (
        count_message(counter, Message(role=Role.ASSISTANT, parts=parts)) == 4 + 10 + 10 + 1 + 3 + 10 + 1600 + 1600 + 12
    )


def test_what_no_model_is_shown_does_not_count() -> None:
    parts = (Text(text="a" * 40),)
    assert count_message(EstimateCounter(), Message(role=Role.META, parts=parts)) == 0
    assert count_message(EstimateCounter(), Message(role=Role.USER, parts=parts, superseded=True)) == 0


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o-mini", "o200k_base"),
        ("openai/gpt-4.1", "o200k_base"),
        ("gpt-5-codex", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("claude-opus-4-5", ""),
        ("", ""),
    ],
)
def test_vocabularies_by_model(model: str, encoding: str) -> None:
    assert encoding_of(model) == encoding


def test_the_method_says_what_is_exact() -> None:
    assert counter_for("auto", "gpt-4").method == "tiktoken cl100k_base (exact for gpt-4)"
    assert counter_for("auto", "claude-x").method == "tiktoken o200k_base (estimate for claude-x)"
    assert counter_for("estimate").count("12345") == 2


def test_an_unknown_tokenizer_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="o200k_base"):
        counter_for("o300k")


def test_no_vocabulary_gives_an_estimate_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "vocabulary_folder", lambda name: None)
    counter = TiktokenCounter()
    assert counter.count("12345678") == 2
    assert "estimate" in counter.method


def test_a_torn_vocabulary_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / models.VOCABULARIES["o200k_base"][0]).write_bytes(b"torn")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert models.vocabulary_folder("o200k_base") not in (None, tmp_path)


def test_a_damaged_vocabulary_is_refused(tmp_path: Path) -> None:
    name, size_bytes = models.VOCABULARIES["cl100k_base"]
    (tmp_path / name).write_bytes(b"IQ== 0\n".ljust(size_bytes))
    with pytest.raises(Unreadable, match="damaged"):
        models.load_encoding("cl100k_base", tmp_path)
    assert (tmp_path / name).exists()


@pytest.mark.parametrize("name", models.VOCABULARIES)
def test_a_vocabulary_is_the_one_that_tiktoken_loads(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    folder = models.vocabulary_folder(name)
    assert folder is not None
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    ours, theirs = models.load_encoding(name, folder), tiktoken.get_encoding(name)
    assert ours.n_vocab == len(theirs._mergeable_ranks)
    assert {ours.decode_single_token_bytes(rank): rank for rank in range(ours.n_vocab)} == theirs._mergeable_ranks
    chance = random.Random(1)
    for _ in range(2_000):
        # Its pattern is written otherwise, and must part every text alike.
        text = "".join(chance.choices(_PARTED, k=chance.randrange(1, 40)))
        assert ours.encode_ordinary(text) == theirs.encode_ordinary(text)


# What a branch of a pattern begins or ends at, and white space of all sorts.
_PARTED = (
    *(" ", "  ", "\t", "\n", "\r\n", "\r", "\x85", "\xa0", "\u2028", "a", "Zz", "\xe9", "\u01c5", "\u0301", "\u02b0"),
    *("'s", "'LL", "'ve", "\u4e2d", "\u30fc", "1", "\uff12", "\xbd", "_", "//", "-", "!", "\u200b", "\U0001f642"),
)


def _together(work: Any, threads: int = 8) -> list[Any]:
    """What ``work`` gives to threads that all begin at the same moment."""
    start = threading.Barrier(threads)
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda _: (start.wait(), work())[1], range(threads)))


def test_threads_that_count_at_the_same_time_load_the_vocabulary_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    models.load_table.cache_clear()
    loads: list[str] = []

    class Counted(tiktoken.Encoding):
        def __init__(self, name: str, **more: Any) -> None:
            loads.append(name)
            super().__init__(name, **more)

    monkeypatch.setattr(tiktoken, "Encoding", Counted)
    monkeypatch.setattr(tokens, "AMOUNT", tokens.Amount())
    models.load_encoding.cache_clear()
    shared = TiktokenCounter("cl100k_base")
    assert _together(lambda: shared.count("Hello, world!")) == [4] * 8
    assert _together(lambda: TiktokenCounter("cl100k_base").count("Hello, world!")) == [4] * 8
    assert loads == ["cl100k_base"]


def test_counting_leaves_the_environment_alone_and_litellm_unloaded() -> None:
    code = (
        "import os, sys\n"
        "from compactor_cli.plan.tokens import TiktokenCounter\n"
        "assert 'tiktoken' not in sys.modules\n"
        "TiktokenCounter().count('x')\n"
        "print('litellm' in sys.modules, 'TIKTOKEN_CACHE_DIR' in os.environ)"
    )
    env = {key: value for key, value in os.environ.items() if key != "TIKTOKEN_CACHE_DIR"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.split() == ["False", "False"]
