"""The loopback server as a test sees it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("server.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmServer:
    """``openai/NAME`` with ``openai`` as the base, ``anthropic/NAME`` with ``anthropic``; NAME: see server.py."""

    port: int
    log: Path

    @property
    def anthropic(self) -> str:
        """The base for ``anthropic/…`` models."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai(self) -> str:
        """The base for ``openai/…`` models."""
        return f"{self.anthropic}/v1"

    def requests(self, model: str = "") -> list[dict[str, Any]]:
        """The requests so far, oldest first: path, model, headers, body, at_once."""
        text = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        # The last line may just be written.
        entries = [json.loads(line) for line in text.rpartition("\n")[0].splitlines()]
        return [entry for entry in entries if model in ("", entry["model"])]

    def control(self, **run_options: Any) -> None:
        """What good summaries are headed, how many requests are answered, a new beginning: see server.py."""
        content = json.dumps(run_options).encode()
        request = urllib.request.Request(f"{self.anthropic}/control", content, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10):
            pass


@contextmanager
def running(folder: Path) -> Iterator[LlmServer]:
    """A server in its own process, with its log in ``folder``."""
    log = folder / "requests.jsonl"
    command = [sys.executable, "-u", str(SERVER), str(log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield LlmServer(port=int(process.stdout.readline()), log=log)
        finally:
            process.stdin.close()
            process.wait(10)
