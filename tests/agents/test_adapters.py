"""Adapters, each in its own framework: in a process, by a Python that has it (LOADERS_PYTHON, several as in PATH)."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from agent_cases import SAMPLES

from compactor_cli import CompactError, compact, make_digest
from compactor_cli.adapters import StableCompactor

SCRIPT = Path(__file__).with_name("adapter_runs.py")
ADAPTERS = SCRIPT.parents[2] / "compactor_cli/adapters"
NOT_INSTALLED = 77


def _ran(name: str, home: Path) -> dict[str, Any]:
    paths = [str(ADAPTERS.parents[1]), sysconfig.get_paths()["purelib"]]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    for python in filter(None, os.environ.get("LOADERS_PYTHON", "").split(os.pathsep)):
        command = [python, str(SCRIPT), name, *paths]
        done = subprocess.run(command, capture_output=True, text=True, cwd=home, env=environment, timeout=120)
        if done.returncode != NOT_INSTALLED:
            assert done.returncode == 0, done.stderr[-3000:]
            found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            return found
    pytest.skip(f"no Python of LOADERS_PYTHON has what the adapter {name} needs")


def test_pydantic_ai_sends_a_digest_and_the_newest_messages(home: Path) -> None:
    found = _ran("pydantic_ai", home)
    assert found.pop("sent") < 60
    assert found == {"digests": 1, "paired": True, "newest": True, "stable": True}


def test_openai_agents_sends_a_digest_and_the_newest_items(home: Path) -> None:
    found = _ran("openai_agents", home)
    assert found.pop("sent") < 60
    assert found == {"digests": 1, "newest": True, "instructions": "i", "stable": True}


def test_langchain_takes_the_digest_as_its_summary(home: Path) -> None:
    assert _ran("langchain", home) == {"digests": 1, "names": True}


def test_google_adk_takes_the_digest_as_its_compaction(home: Path) -> None:
    assert _ran("google_adk", home) == {"digests": 1, "times": True, "again": 1, "nothing": None}


def test_inspect_gets_the_digest_between_the_system_message_and_the_newest(home: Path) -> None:
    expected = {"first": "system", "summary": True, "newest": True, "fewer": True, "small": True}
    assert _ran("inspect_ai", home) == expected


def test_openhands_forgets_what_the_digest_stands_for(home: Path) -> None:
    assert _ran("openhands", home) == {"fewer": True, "digests": 1, "first": True, "newest": True, "small": True}


@pytest.mark.parametrize("path", sorted(ADAPTERS.glob("*.py")), ids=lambda path: path.stem)
def test_an_adapter_is_read_at_a_glance(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60


def _rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLES / "openai-chat.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_cut_stays_while_a_conversation_grows() -> None:
    """Each request begins with the last one, byte for byte, until the limit is reached again."""
    rows, compactor = _rows(), StableCompactor("8k")
    sent: list[list[Any]] = []
    for stop in range(100, len(rows) + 1, 5):
        sent.append(compactor(rows[:stop]))
    kept = sum(later[: len(before)] == before for before, later in pairwise(sent))
    assert len(sent) - 4 <= kept < len(sent)
    assert all(len(messages) < 120 for messages in sent)
    assert sent[-1][-1] is rows[-1]


def test_another_conversation_begins_anew() -> None:
    rows, compactor = _rows(), StableCompactor("8k")
    compactor(rows)
    other = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Good morning."}]
    assert compactor(other) == other
    assert compactor(rows) == StableCompactor("8k")(rows)


def test_a_digest_of_messages_says_which_stay() -> None:
    rows = _rows()
    found = make_digest(rows, size="1k", but_newest="2 turns")
    assert "[compact/1 " in found.summary
    assert found.kept == (0, *range(found.first_kept, len(rows)))
    assert (rows[0]["role"], rows[found.first_kept]["role"]) == ("system", "user")


def test_what_has_nothing_old_has_no_summary() -> None:
    rows = _rows()[:5]
    assert (make_digest([]).summary, make_digest([]).kept) == ("", ())
    found = make_digest(rows, but_newest="100k")
    assert (found.summary, found.kept, found.first_kept) == ("", (0, 1, 2, 3, 4), 1)


def test_a_size_that_holds_no_summary_is_an_error() -> None:
    with pytest.raises(CompactError, match="hold no summary"):
        make_digest(_rows(), chars=10)


def test_head_tail_and_budget_are_flat_settings() -> None:
    rows = _rows()
    result = compact(rows, "6k", keep_head=0, keep_tail="1 turns", budget="600")
    assert result.kept == (0, *range(len(rows) - len(result.kept) + 1, len(rows)))
    assert result.report.summary_tokens <= 600
