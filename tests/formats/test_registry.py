from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.formats.registry import all_dialects, dialects_for, get, names, plain_scores
from compactor_cli.model.errors import UsageError
from compactor_cli.read.jsonl import OnInvalid, read_records


def test_every_dialect_is_found_by_its_own_name() -> None:
    assert tuple(dialect.name for dialect in all_dialects()) == names()
    assert all(get(dialect.name) is dialect and dialect.title for dialect in all_dialects())


@pytest.mark.parametrize(
    ("wrong", "near"), [("openai_chat", "openai-chat"), ("Codexx", "codex"), ("sharegtp", "sharegpt")]
)
def test_a_wrong_name_is_answered_with_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean '{near}'"):
        get(wrong)


def test_a_name_like_none_is_answered_with_all() -> None:
    with pytest.raises(UsageError, match="the formats are claude-code, codex"):
        get("zzz")


def test_a_certain_format_does_not_load_the_others() -> None:
    code = (
        "import sys\n"
        "from compactor_cli.model.errors import Place\nfrom compactor_cli.model.transcript import Record\n"
        "from compactor_cli.formats.detect import open_transcripts\n"
        "value = {'type': 'user', 'uuid': 'u', 'parentUuid': None, 'sessionId': 's',"
        " 'message': {'role': 'user', 'content': 'Hello'}}\n"
        "record = Record(raw=b'{}', ending=b'', value=value, place=Place(path='-', line=1))\n"
        "assert [t.dialect for t in open_transcripts([record])] == ['claude-code']\n"
        "print('compactor_cli.formats.tagged_texts' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_plain_chat_loads_its_own_format_alone() -> None:
    code = (
        "import sys\n"
        "from compactor_cli.model.errors import Place\nfrom compactor_cli.model.transcript import Record\n"
        "from compactor_cli.formats.detect import open_transcripts\n"
        "lines = [{'role': role, 'content': 'Hello'} for role in ('system', 'user', 'assistant', 'user')]\n"
        "place = Place(path='-', line=1)\n"
        "records = [Record(raw=b'%d' % n, ending=b'', value=line, place=place) for n, line in enumerate(lines)]\n"
        "assert [t.dialect for t in open_transcripts(records)] == ['openai-chat']\n"
        "from compactor_cli.formats import registry, spec\n"
        "print(registry.get.cache_info().currsize, spec.load.cache_info().currsize)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1 1\n"


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
@pytest.mark.parametrize("text", ["", "Hello", "<tool_call>{}</tool_call>", '{"messages": []}', "[]"])
def test_what_is_said_of_plain_lines_is_what_the_dialects_say(role: str, text: str) -> None:
    line = {"content": text, "role": role}
    assert plain_scores(line) == {dialect.name: dialect.score(line) for dialect in dialects_for(line)}
    assert not any(dialect.array_path(line) is not None for dialect in dialects_for(line))


@pytest.mark.parametrize(
    "line", [{"role": "user"}, {"role": "user", "content": []}, {"role": [], "content": ""}, ["role", "content"]]
)
def test_other_lines_are_judged_by_the_dialects(line: Any) -> None:
    assert plain_scores(line) is None


def unasked(value: Any) -> list[str]:
    """The dialects that would know a value and are not asked."""
    asked = {dialect.name for dialect in dialects_for(value)}
    others = [dialect for dialect in all_dialects() if dialect.name not in asked]
    return [dialect.name for dialect in others if dialect.score(value) or dialect.array_path(value) is not None]


SCALAR = st.none() | st.integers() | st.sampled_from(["user", "message", "session", "x"])
KEY = st.sampled_from(
    "type role content from value messages conversations timestamp payload loglines id instructions record_type"
    " message tool_calls params body input history uuid sessionId kind parts info lc text".split()
)
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEY, inner, max_size=4))


@given(VALUE)
def test_a_dialect_that_is_not_asked_would_not_know_the_value(value: Any) -> None:
    assert unasked(value) == []


def test_a_row_of_plain_messages_starts_without_the_frameworks() -> None:
    row = {"messages": [{"role": "user", "content": "Hello"}]}
    asked = {dialect.name for dialect in dialects_for(row)}
    assert asked == {"ui-messages", "openai-chat", "anthropic", "bedrock", "tau"}


def test_no_record_of_a_real_file_is_kept_from_its_dialect(corpus: Path) -> None:
    for path in sorted(corpus.rglob("*.json*")):
        if path.is_file():
            records = read_records(path.read_bytes().splitlines(keepends=True), str(path), OnInvalid.KEEP)
            assert not {name for record in records for name in unasked(record.value)}


def test_an_entry_of_an_early_log_of_gemini_is_known_by_its_text() -> None:
    assert unasked({"type": "user", "text": "Where is the oak?"}) == []
