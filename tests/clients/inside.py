"""compact inside a client: installed by `compactor install`, and a model that calls tools by their names.

LAB_COMPACTOR: a compactor that can be run where root's home is out of sight, its Python as well.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lab import TOOLS, client
from own_compaction import driver

PROGRAM = os.environ.get("LAB_COMPACTOR", "")
# Put into the model server of the client tools: a call of any tool, ``TOOLCALL:{"tool": …, "arguments": …};;``.
# Codex has the tools of a server in a namespace, which a call names apart. What a digest quotes is no word to it.
# opencode sends the words of `run` in quotation marks.
_SERVER = r"""
_shell_call, _last_turn = tool_call, last_turn


def last_turn(dialect, body):
    text, is_result = _last_turn(dialect, body)
    quoted = "<conversation>.*?</conversation>|Reference only: a summary.*?(?=</)"
    return re.sub(quoted, "", text, flags=re.DOTALL), is_result


def tool_call(dialect, body, command):
    if not command.startswith("{"):
        return _shell_call(dialect, body, command)
    asked, given = json.loads(command.replace('\\"', '"')), body.get("tools") or []
    spaces = {f"{t['name']}::{n['name']}" for t in given if t.get("type") == "namespace" for n in t["tools"]}
    names = [name for name in (*tools_of(dialect, body), *spaces) if name and name.endswith(asked["tool"])]
    return max(names, key=lambda name: "compact" in name), asked["arguments"]


if __name__ == "__main__":"""
_NAME = '"name": d["call"][0], "arguments": json.dumps(d["call"][1]),\n                    "status"'
_NAMED = _NAME.replace('"name": d["call"][0]', '**dict(zip(("name", "namespace"), d["call"][0].split("::")[::-1]))')
MARKER = "[compact/1 "
STEERING = "is placed after your summary"


def calling(tool: str, **arguments: Any) -> str:
    """Words that make the model call a tool of compact."""
    return f"TOOLCALL:{json.dumps({'tool': tool, 'arguments': arguments})};;"


@dataclass(kw_only=True)
class Inside:
    """A client in a home of its own, with one session."""

    made: Any
    known: str

    def install(self, *options: str) -> None:
        (result,), _ = self.made.run({"argv": [PROGRAM, "install", self.known, *options]})
        assert result["rc"] == 0, result

    def begin(self) -> None:
        """A session with an output that no summary can hold whole; its last lines may stand in one."""
        self.say("MARK-A1 Never delete the harbour table. Run TOOLCALL:seq 1 900 | sed s/^/LINE-/;;", is_new=True)
        self.say("MARK-A2 SAY:ok;;")

    def say(self, *prompts: str, is_new: bool = False, is_all_well: bool = True) -> list[str]:
        """The texts of the requests that this turn, or these, make."""
        made = self.made
        ref = "" if is_new else made.ref(made.sessions()[-1])
        steps = [made.new(words) if is_new else made.resume(ref, words) for words in prompts]
        results, requests = made.run(*({**step, "timeout": 240} for step in steps))
        assert not is_all_well or all(result["rc"] == 0 for result in results), results
        return [json.dumps(request["body"], ensure_ascii=False) for request in requests]

    def compact(self) -> list[str]:
        """The requests that a compaction without a prompt makes."""
        ref = self.made.ref(self.made.sessions()[-1])
        results, requests = self.made.run({**driver(self.made, ref), "timeout": 240})
        assert results[-1]["rc"] == 0, results
        return [json.dumps(request["body"], ensure_ascii=False) for request in requests]

    def looked_up(self, search: str = "search", expand: str = "expand") -> tuple[bool, bool]:
        """Whether an output that is in no request any more is there before the model has it expanded, and after."""
        found = self.say(f"MARK-X1 {calling(search, query='LINE-637')}")[-1]
        name = re.findall(r"\b[0-9a-f]{16}:\d+", found)[0]
        ids: Any = [name] if expand == "expand" else name
        before, after = self.say(f"MARK-X2 {calling(expand, ids=ids)}")[-2:]
        return "LINE-150" in before, "LINE-150" in after

    def files(self) -> dict[str, bytes]:
        """Its settings."""
        folders = (".claude.json", ".claude/settings.json", ".codex/config.toml", ".codex/hooks.json")
        folders += (".gemini/settings.json", ".kimi-code/mcp.json", ".config/opencode/opencode.json")
        paths = (Path(self.made.home, name) for name in folders)
        return {str(path): path.read_bytes() for path in paths if path.exists()}


@pytest.fixture
def inside(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inside:
    """The client that the test names, compact installed."""
    name, known = request.param
    made = client(name)("-inside")
    if not PROGRAM:
        pytest.skip("LAB_COMPACTOR is not set: no compactor that clients could call")
    import sandbox  # type: ignore[import-not-found]

    source = (TOOLS / "mock_llm.py").read_text(encoding="utf-8")
    assert _NAME in source
    source = source.replace(_NAME, _NAMED).replace('\n\nif __name__ == "__main__":', _SERVER)
    (tmp_path / "mock_llm.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(sandbox, "__file__", shutil.copy(TOOLS / "sandbox.py", tmp_path))
    made.path_prefix = ":".join(filter(None, (str(Path(PROGRAM).parent), made.path_prefix)))
    made.reset()
    found = Inside(made=made, known=known)
    found.install()
    return found
