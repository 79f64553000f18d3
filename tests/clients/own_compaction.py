"""How each client is made to compact a session itself, without a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab import Resumed, gone_on

TURN = "MARK-Y8 a turn at whose start the client compacts"
# pi ends with its input, so the driver closes that only when the answer is there.
_PI = """
import json, subprocess, sys
pi = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
pi.stdin.write('{"id": "1", "type": "compact"}\\n')
pi.stdin.flush()
answer = next(event for event in map(json.loads, pi.stdout) if event["type"] == "response")
pi.stdin.close()
sys.exit(pi.wait(30) if answer["success"] else str(answer))
"""
_OPENCODE = """
import json, subprocess, sys, urllib.request
server = subprocess.Popen([sys.argv[1], "serve", "--port", "4199"], stdout=subprocess.PIPE, text=True)
line = next(line for line in server.stdout if "listening" in line)
body = json.dumps({"providerID": "mock", "modelID": "mock-model"}).encode()
address = f"http://127.0.0.1:4199/session/{sys.argv[2]}/summarize"
request = urllib.request.Request(address, body, {"content-type": "application/json"})
print(urllib.request.urlopen(request, timeout=200).read())
server.terminate()
server.wait(20)
"""


def compact_by_itself(session: Resumed) -> None:
    """Make the client compact the session that it has resumed."""
    _WAYS[session.client.name](session)


def _command(words: str) -> Callable[[Resumed], None]:
    return lambda session: _went_on(session, words)


def _went_on(session: Resumed, *prompts: str) -> None:
    gone_on(session, *prompts)


def _codex(session: Resumed) -> None:
    session.client.extra = ("-c", "model_auto_compact_token_limit=5000")
    gone_on(session, TURN)
    session.client.extra = ()


def _gemini(session: Resumed) -> None:
    settings = Path(session.client.home) / ".gemini/settings.json"
    usual = settings.read_text(encoding="utf-8")
    settings.write_text(json.dumps({**json.loads(usual), "model": {"compressionThreshold": 0.0001}}), encoding="utf-8")
    gone_on(session, TURN)
    settings.write_text(usual, encoding="utf-8")


def driver(made: Any, ref: str) -> dict[str, Any]:
    """The step by which pi or opencode compacts a session: it has no command for it."""
    if made.name == "opencode":
        return {"argv": ["python3", "-c", _OPENCODE, made.bin, ref]}
    settings = Path(made.home) / ".pi/agent/settings.json"
    settings.write_text(json.dumps({"compaction": {"keepRecentTokens": 50}}), encoding="utf-8")
    return {"argv": ["python3", "-c", _PI, made.bin, "--mode", "rpc", "--session", ref, *made.extra]}


def _driven(session: Resumed) -> None:
    results, _ = session.client.run(driver(session.client, session.ref))
    assert results[-1]["rc"] == 0, results[-1]


_WAYS: dict[str, Callable[[Resumed], Any]] = {
    "codex": _codex,
    "claude": _command("/compact"),
    "pi": _driven,
    "gemini": _gemini,
    "qwen": _command("/compress"),
    "kimi": _command("/compact"),
    # Over its threshold by the size that the server reports; the next turn begins with a compaction.
    "kimi-code": lambda session: _went_on(session, "MARK-Y7 USAGE:190000;; a large answer", TURN),
    "opencode": _driven,
}
