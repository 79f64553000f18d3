"""The cache of replies: what it finds, what it survives, what it keeps secret."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from compactor_cli.llm.model_calls import Call, ChatMessage, Reply, Secret, Speaker
from compactor_cli.llm.model_client import CacheStats, ReplyCache, breaker_file, replies_file

CALL = Call(
    model="openai/m",
    messages=(
        ChatMessage(speaker=Speaker.SYSTEM, text="s"),
        ChatMessage(speaker=Speaker.USER, text="a very private prompt"),
    ),
    max_tokens=100,
    prompt_version="en/1",
    key=Secret("sk-never-written-anywhere"),
)
REPLY = Reply(text="## Task\n概要 \u2028 ok", model="openai/m", input_tokens=5, output_tokens=6, cost_usd=0.25)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "compact" / "replies.sqlite3"


def test_a_reply_is_found_again_by_another_run(file: Path) -> None:
    ReplyCache(file).put(CALL, REPLY)
    assert ReplyCache(file).get(CALL) == REPLY


@pytest.mark.parametrize(
    "change",
    [
        {"model": "openai/n"},
        {"api_base": "http://127.0.0.1:1/v1"},
        {"max_tokens": 101},
        {"temperature": 0.1},
        {"prompt_version": "en/2"},
        {"extra": {"top_p": 0.5}},
        {"messages": (*CALL.messages, ChatMessage(speaker=Speaker.USER, text=""))},
        {"messages": (ChatMessage(speaker=Speaker.USER, text="s"), CALL.messages[1])},
    ],
    ids=str,
)
def test_whatever_may_change_a_reply_is_another_call(file: Path, change: dict[str, object]) -> None:
    cache = ReplyCache(file)
    cache.put(CALL, REPLY)
    assert cache.get(replace(CALL, **change)) is None  # type: ignore[arg-type]


def test_what_cannot_change_a_reply_is_the_same_call(file: Path) -> None:
    cache = ReplyCache(file)
    cache.put(CALL, REPLY)
    assert cache.get(replace(CALL, key=Secret("other"), timeout_seconds=1, input_tokens=9))


def test_neither_prompts_nor_keys_are_written_and_only_the_owner_may_read(file: Path) -> None:
    cache = ReplyCache(file)
    cache.put(CALL, REPLY)
    for path in file.parent.iterdir():
        assert b"private prompt" not in path.read_bytes()
        assert b"sk-never" not in path.read_bytes()
        assert path.stat().st_mode & 0o077 == 0, path.name
    assert file.parent.stat().st_mode & 0o077 == 0


def test_a_process_that_is_killed_loses_no_reply(file: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from compactor_cli.llm.model_calls import Call, Reply, ChatMessage, Speaker
from compactor_cli.llm.model_client import ReplyCache
cache = ReplyCache(Path({str(file)!r}))
for n in range(50):
    said = (ChatMessage(speaker=Speaker.USER, text=str(n)),)
    cache.put(Call(model="m", messages=said, max_tokens=1), Reply(text=str(n), model="m"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    cache = ReplyCache(file)
    for n in range(50):
        found = cache.get(Call(model="m", messages=(ChatMessage(speaker=Speaker.USER, text=str(n)),), max_tokens=1))
        assert found
        assert found.text == str(n)


def test_processes_share_it(file: Path) -> None:
    code = """
import sys
from pathlib import Path
from compactor_cli.llm.model_calls import Call, Reply, ChatMessage, Speaker
from compactor_cli.llm.model_client import ReplyCache
cache = ReplyCache(Path(sys.argv[1]))
for n in range(40):
    said = (ChatMessage(speaker=Speaker.USER, text=f"{sys.argv[2]} {n}"),)
    cache.put(Call(model="m", messages=said, max_tokens=1), Reply(text="t", model="m"))
assert not cache.trouble, cache.trouble
"""
    runs = [subprocess.Popen([sys.executable, "-c", code, str(file), str(n)]) for n in range(3)]
    assert [run.wait(60) for run in runs] == [0, 0, 0]
    assert ReplyCache(file).stats().replies == 120


def test_a_reply_that_a_newer_version_stored_with_more_fields_is_read(file: Path) -> None:
    ReplyCache(file).put(CALL, REPLY)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE replies SET body = json_set(body, '$.of_a_newer_version', 1)")
    cache = ReplyCache(file)
    assert cache.get(CALL) == REPLY
    assert not cache.trouble


def test_a_damaged_file_is_set_aside(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(b"this is no database " * 500)
    cache = ReplyCache(file)
    assert cache.get(CALL) is None
    cache.put(CALL, REPLY)
    assert cache.get(CALL)
    assert "broken" in cache.trouble
    assert file.with_name(file.name + ".broken").exists()


def test_a_cache_that_cannot_be_written_is_no_cache_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = ReplyCache(tmp_path / "file" / "replies.sqlite3")
    cache.put(CALL, REPLY)
    assert cache.get(CALL) is None
    assert cache.trouble


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_no_failure(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    cache = ReplyCache(tmp_path / "replies.sqlite3")
    cache.put(CALL, REPLY)
    assert cache.get(CALL) is None
    tmp_path.chmod(0o700)


def filled(file: Path) -> tuple[ReplyCache, list[Call]]:
    """Ten replies of about 1,000 bytes, stored a minute apart."""
    now = 0
    cache = ReplyCache(file, clock=lambda: now)
    calls = [replace(CALL, prompt_version=str(n)) for n in range(10)]
    for call in calls:
        now += 60
        cache.put(call, replace(REPLY, text="x" * 800))
    return cache, calls


def test_statistics(file: Path) -> None:
    assert ReplyCache(file).stats() == CacheStats()
    assert not file.exists()
    stats = filled(file)[0].stats()
    assert (stats.replies, stats.cost_usd, stats.oldest, stats.newest) == (10, 2.5, 60, 600)
    assert stats.bytes >= 8_000


def test_pruning_by_age_spares_what_is_used(file: Path) -> None:
    cache, calls = filled(file)
    assert cache.get(calls[0])
    assert cache.prune(older_than_seconds=300) == 3
    assert [bool(cache.get(call)) for call in calls] == [True, *[False] * 3, *[True] * 6]


def test_pruning_by_size_removes_the_longest_unused(file: Path) -> None:
    cache, calls = filled(file)
    assert cache.prune(max_bytes=3_500) == 7
    assert [bool(cache.get(call)) for call in calls] == [False] * 7 + [True] * 3
    assert cache.prune(max_bytes=0) == 3


def test_places_follow_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s"))
    assert replies_file() == tmp_path / "c" / "compact" / "replies.sqlite3"
    assert breaker_file() == tmp_path / "s" / "compact" / "breaker.json"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert replies_file() == Path.home() / ".cache" / "compact" / "replies.sqlite3"
