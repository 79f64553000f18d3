from __future__ import annotations

import subprocess
import sys

import pytest

from compactor_cli.core.errors import UsageError
from compactor_cli.normalise.registry import all_dialects, get, names


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
        "from compactor_cli.core.records import Place, Record\n"
        "from compactor_cli.normalise.detect import open_transcripts\n"
        "value = {'type': 'user', 'uuid': 'u', 'parentUuid': None, 'sessionId': 's',"
        " 'message': {'role': 'user', 'content': 'Hello'}}\n"
        "record = Record(raw=b'{}', ending=b'', value=value, place=Place(path='-', line=1))\n"
        "assert [t.dialect for t in open_transcripts([record])] == ['claude-code']\n"
        "print('compactor_cli.normalise.sharegpt' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
