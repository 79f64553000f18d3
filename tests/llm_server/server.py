"""A model provider on the loopback interface: OpenAI's and Anthropic's interfaces, well behaved or not.

Run as ``python server.py LOG``: prints its port, then serves until its standard input ends. How it answers is in
the model's name: ``BEHAVIOUR[.NUMBER[.NUMBER]][-ANYTHING]``, for example ``rate_limit.2.7-a``: twice 429 with
Retry-After 7, then well. Every request is a line in LOG.

=================  ====================================================================================
well               a summary made of the prompt's most repeated facts
slow.S             the same after S seconds (default 1)
rate_limit.N.R     429 with Retry-After R (default 1), N times (default for ever), then well
server_error.N     500, N times, then well
overloaded.N       529 (Anthropic) or 503, N times, then well
broken.N           the connection ends in the middle of the reply, N times, then well
garbage.N          200 with a page of HTML, N times, then well
hang               no reply at all
endless.N.Z        a reply as a whole that does not end (up to 64 MiB; with Z, packed a thousandfold, 64 GiB)
context.C          "context too long" for prompts of more than C characters (default 1000)
no_usage           well, and not a word of what it took
listed             well, as a list of parts, which OpenAI's interface does not answer with
empty · cut_off · too_long · chat · refusal · tool_call · invented · invalid_utf8
auth · not_found · bad_request · policy · quota
replay: the text that the test gave for the first of its keys that the prompt holds, else a good summary
few: a vector too few (``/embeddings``, where all others give a bag of words for each text)
=================  ====================================================================================

Files and batch jobs (``/v1/files``, ``/v1/batches``) are those of batches.py.

``POST /control`` with ``{"headings": [...], "answers": N, "seconds": S, "replies": {KEY: TEXT}, "reset": true}``: the
headings of good summaries; how many more requests are answered before the others have to wait (null: all are
answered); how long each takes at least; what ``replay`` answers; begin counting anew.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import answers
from batches import Batches

NAME = re.compile(r"(?P<behaviour>[a-z0-9_]+)(?:\.(?P<first>\d+))?(?:\.(?P<second>\d+))?")
HANG_SECONDS = 60
ENDLESS_PIECES = 1_024
CACHED_FROM_CHARS = 4_096
DIMENSIONS = 512
FOR_EVER = 1 << 30


class Provider(ThreadingHTTPServer):
    """The state that all requests share."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, log: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.log = log
        self.seen: Counter[str] = Counter()
        self.headings: tuple[str, ...] = ()
        self.replies: dict[str, str] = {}
        self.prompts: list[str] = []
        self.under_way = 0
        self.round = 0
        self.answers_left: int | None = None
        self.seconds = 0.0
        self.released = threading.Condition(self.lock)
        self.batches = Batches()

    def record(self, entry: dict[str, Any]) -> int:
        """Log a request; which one for its model it is, from 1."""
        with self.lock:
            self.seen[entry["path"] + entry["model"]] += 1
            self.under_way += 1
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**entry, "at_once": self.under_way}) + "\n")
            return self.seen[entry["path"] + entry["model"]]

    def wait_for_leave(self) -> None:
        """Return when this request may be answered."""
        with self.released:
            self.released.wait_for(lambda: self.answers_left is None or self.answers_left > 0)
            if self.answers_left is not None:
                self.answers_left -= 1

    def cached_chars(self, prompt: str) -> int:
        """How much of the prompt's beginning an earlier prompt had."""
        with self.lock:
            most = max((_common(prompt, other) for other in self.prompts), default=0)
            self.prompts = [*self.prompts[-7:], prompt]
        return most if most >= CACHED_FROM_CHARS else 0

    def control(self, run_options: dict[str, Any]) -> None:
        """Obey the test."""
        with self.lock:
            self.headings = tuple(run_options.get("headings", self.headings))
            self.replies = run_options.get("replies", self.replies)
            self.answers_left = run_options.get("answers")
            self.seconds = run_options.get("seconds", 0.0)
            self.released.notify_all()
            self.batches.run_options = run_options.get("batch", self.batches.run_options)
            if run_options.get("reset"):
                self.batches = Batches()
                # Requests that hang from the test before are under way no more.
                self.under_way, self.round = 0, self.round + 1
                self.seen.clear()
                self.prompts.clear()
                self.headings = ()
                self.replies = {}
                self.log.write_text("")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to speak of."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Provider
    under_way_in = -1

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def do_POST(self) -> None:
        """Every request there is."""
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/files":
            self._note(len(content))
            self.send_json(200, self.server.batches.upload(content))
            return
        body = json.loads(content)
        if self.path == "/v1/batches":
            self._note(len(content))
            self.send_json(200, self.server.batches.begin(body))
            return
        if self.path == "/control":
            self.server.control(body)
            self.send_json(200, {})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        entry = {"path": self.path, "model": body["model"], "headers": headers, "body": body}
        number = self.server.record(entry)
        self.under_way_in = self.server.round
        self.server.wait_for_leave()
        time.sleep(self.server.seconds)
        try:
            Exchange(self, body, number).answer()
        finally:
            self.leave()

    def do_GET(self) -> None:
        """Batch jobs, and files of results."""
        batches = self.server.batches
        kind, name = (*self.path.partition("?")[0].split("/")[2:4], "")[:2]
        if kind == "files":
            self.send_bytes(200, batches.files[name], content_type="application/octet-stream")
        elif name:
            self.send_json(200, batches.look(name, self._answered))
        else:
            jobs = list(reversed(batches.jobs.values()))
            self.send_json(200, {"object": "list", "data": jobs, "has_more": False})

    def _note(self, size: int) -> None:
        """Log what is no question to a model."""
        self.server.record({"path": self.path, "model": "", "headers": {}, "body": size})
        self.under_way_in = self.server.round
        self.leave()

    def _answered(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The answer to one request of a batch job."""
        quiet = Quiet(self.server)
        entry = {"path": "/v1/chat/completions", "model": body["model"], "headers": {}, "body": body, "batch": True}
        number = self.server.record(entry)
        self.under_way_in = self.server.round
        self.leave()
        Exchange(quiet, body, number).answer()
        return quiet.status, json.loads(quiet.content)

    def leave(self) -> None:
        """No longer under way: said before the reply is, so that the client's next request does not meet this one."""
        with self.server.lock:
            self.server.under_way -= int(self.under_way_in == self.server.round)
            self.under_way_in = -1

    def send_json(self, status: int, value: dict[str, Any], **headers: str) -> None:
        """A reply in JSON."""
        self.send_bytes(status, json.dumps(value).encode(), missing=0, **headers)

    def send_bytes(self, status: int, content: bytes, *, missing: int = 0, **headers: str) -> None:
        """A reply as a whole; ``missing`` bytes of it never come."""
        self.leave()
        self.send_response(status)
        for name, value in {"content_type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-").title(), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) - missing])
        if missing:
            self.hang_up()

    def hang_up(self) -> None:
        """Close the connection here and now."""
        self.wfile.flush()
        self.close_connection = True


class Quiet:
    """Stands for a connection: keeps what is sent."""

    path = "/v1/chat/completions"

    def __init__(self, server: Provider) -> None:
        self.server = server
        self.headers: dict[str, str] = {}
        self.status = 0
        self.content = b""

    def send_json(self, status: int, value: dict[str, Any], **headers: str) -> None:
        """A reply in JSON."""
        self.send_bytes(status, json.dumps(value).encode())

    def send_bytes(self, status: int, content: bytes, **more: Any) -> None:
        """A reply as a whole."""
        self.status, self.content = status, content


class Exchange:
    """One request and the answer to it."""

    def __init__(self, handler: Handler | Quiet, body: dict[str, Any], number: int) -> None:
        self.handler = handler
        self.body = body
        self.anthropic = handler.path.endswith("/messages")
        self.embeds = handler.path.endswith("/embeddings")
        name = NAME.match(body["model"])
        self.behaviour = name["behaviour"] if name else "well"
        self.first = int(name["first"]) if name and name["first"] else None
        self.second = int(name["second"]) if name and name["second"] else None
        self.fails = number <= (FOR_EVER if self.first is None else self.first)
        self.system, self.prompt = self._texts()
        self.stop = "stop"
        self.tool_call = False

    def answer(self) -> None:
        """Answer as the model's name says."""
        getattr(self, f"_{self.behaviour}", self._say_text)()

    def _texts(self) -> tuple[str, str]:
        if self.embeds:
            return "", "\n".join(self.body["input"])
        said = [(item["role"], _text(item["content"])) for item in self.body["messages"]]
        system = [_text(self.body.get("system", "")), *(text for role, text in said if role == "system")]
        return "\n".join(filter(None, system)), "\n".join(text for role, text in said if role != "system")

    def _rate_limit(self) -> None:
        if self.fails:
            seconds = str(1 if self.second is None else self.second)
            self._error(429, "rate_limit_error", "rate_limit_exceeded", "Rate limit reached", retry_after=seconds)
        else:
            self._say_text()

    def _server_error(self) -> None:
        self._error(500, "api_error", "", "Internal server error") if self.fails else self._say_text()

    def _overloaded(self) -> None:
        status = 529 if self.anthropic else 503
        self._error(status, "overloaded_error", "", "Overloaded") if self.fails else self._say_text()

    def _auth(self) -> None:
        sent = self.handler.headers.get("x-api-key") or self.handler.headers.get("Authorization", "")
        self._error(401, "authentication_error", "invalid_api_key", f"Incorrect API key provided: {sent}")

    def _not_found(self) -> None:
        self._error(404, "not_found_error", "model_not_found", "The model does not exist")

    def _bad_request(self) -> None:
        self._error(400, "invalid_request_error", "invalid_value", "Unknown parameter")

    def _quota(self) -> None:
        self._error(429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota")

    def _policy(self) -> None:
        self._error(400, "invalid_request_error", "content_policy_violation", "Rejected by our content policy")

    def _context(self) -> None:
        most = self.first or 1_000
        chars = len(self.system) + len(self.prompt)
        if chars <= most:
            self._say_text()
        elif self.anthropic:
            said = f"prompt is too long: {chars // 4} tokens > {most // 4} maximum"
            self._error(400, "invalid_request_error", "", said)
        else:
            said = (
                f"This model's maximum context length is {most // 4} tokens. However, your messages resulted in "
                f"{chars // 4} tokens. Please reduce the length of the messages."
            )
            self._error(400, "invalid_request_error", "context_length_exceeded", said)

    def _slow(self) -> None:
        time.sleep(1 if self.first is None else self.first)
        self._say_text()

    def _endless(self) -> None:
        """A reply that is well formed as far as it goes, and goes on and on; what was sent is counted."""
        handler = self.handler
        handler.leave()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        begin, piece = b'{"choices": [{"message": {"content": "', b"x" * (1 << 16)
        if self.second:
            handler.send_header("Content-Encoding", "gzip")
            packer = zlib.compressobj(wbits=31)
            begin = packer.compress(begin) + packer.flush(zlib.Z_SYNC_FLUSH)
            piece = packer.compress(bytes(64 << 20)) + packer.flush(zlib.Z_SYNC_FLUSH)
        handler.end_headers()
        sent = 0
        with suppress(OSError):
            for data in (begin, *[piece] * ENDLESS_PIECES):
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                sent += len(data)
        handler.server.record({"path": "sent", "model": "sent", "headers": {}, "body": sent})
        handler.hang_up()

    def _hang(self) -> None:
        time.sleep(HANG_SECONDS)
        self.handler.hang_up()

    def _broken(self) -> None:
        if not self.fails:
            self._say_text()
        elif self.body.get("stream"):
            self._stream(self._good(), events_missing=3)
        else:
            self.handler.send_bytes(200, self._whole(self._good()), missing=40)

    def _garbage(self) -> None:
        if self.fails:
            page = b"<html><body><h1>Welcome to the proxy</h1></body></html>"
            self.handler.send_bytes(200, page, content_type="text/html")
        else:
            self._say_text()

    def _no_usage(self) -> None:
        value = self._message(self._good()) if self.anthropic else self._completion(self._good())
        self.handler.send_json(200, {**value, "usage": None})

    def _listed(self) -> None:
        value = self._completion("")
        value["choices"][0]["message"]["content"] = [{"type": "text", "text": self._good()}]
        self.handler.send_json(200, value)

    def _empty(self) -> None:
        self._say("")

    def _cut_off(self) -> None:
        self.stop = "length"
        text = self._good()
        self._say(text[: len(text) // 2])

    def _too_long(self) -> None:
        self._say("\n\n".join([self._good()] * 20))

    def _chat(self) -> None:
        self._say(answers.CHAT)

    def _refusal(self) -> None:
        self.stop = "content_filter"
        self._say(answers.REFUSAL)

    def _tool_call(self) -> None:
        self.stop, self.tool_call = "tool_calls", True
        self._say("")

    def _invented(self) -> None:
        self._say(self._good() + "\n" + "\n".join(answers.INVENTED))

    def _invalid_utf8(self) -> None:
        marked = self._whole(self._good() + " broken here: @@").replace(b"@@", b"\xff\xfe\xed\xa0\x80")
        self.handler.send_bytes(200, marked)

    def _replay(self) -> None:
        known = self.handler.server.replies
        self._say(next((text for key, text in known.items() if key in self.prompt), "") or self._good())

    def _say_text(self) -> None:
        self._say(self._good())

    def _good(self) -> str:
        if self.embeds:
            return ""
        server = self.handler.server
        most = self.body.get("max_tokens") or self.body.get("max_completion_tokens") or 1_000
        return answers.summary(self.system, self.prompt, most, server.headings)

    def _say(self, text: str) -> None:
        if self.body.get("stream"):
            self._stream(text)
        else:
            self.handler.send_bytes(200, self._whole(text))

    def _error(self, status: int, kind: str, code: str, said: str, *, retry_after: str = "") -> None:
        error: dict[str, Any] = {"type": kind, "message": said}
        if not self.anthropic:
            error |= {"code": code or None, "param": None}
        value = {"type": "error", "error": error} if self.anthropic else {"error": error}
        headers = {"retry_after": retry_after} if retry_after else {}
        self.handler.send_json(status, value, **headers)

    def _usage(self, text: str) -> dict[str, Any]:
        whole = self.system + self.prompt
        cached = self.handler.server.cached_chars(whole) // 4
        sent, got = len(whole) // 4, len(text) // 4
        if self.anthropic:
            return {"input_tokens": sent - cached, "cache_read_input_tokens": cached, "output_tokens": got}
        details = {"cached_tokens": cached}
        return {
            "prompt_tokens": sent,
            "completion_tokens": got,
            "total_tokens": sent + got,
            "prompt_tokens_details": details,
        }

    def _few(self) -> None:
        """A vector too few."""
        self.body["input"].pop()
        self._say_text()

    def _vectors(self) -> dict[str, Any]:
        """Bags of words, by the sum of each word's letters; in reverse, as no client may rely on their order."""
        data = []
        for index, text in enumerate(self.body["input"]):
            vector = [0.0] * DIMENSIONS
            for word in re.findall(r"\w+", text.lower()):
                vector[sum(word.encode()) % DIMENSIONS] += 1.0
            data.append({"object": "embedding", "index": index, "embedding": vector})
        sent = len(self.prompt) // 4
        usage = {"prompt_tokens": sent, "total_tokens": sent}
        return {"object": "list", "data": data[::-1], "model": self.body["model"], "usage": usage}

    def _whole(self, text: str) -> bytes:
        if self.embeds:
            return json.dumps(self._vectors()).encode()
        value = self._message(text) if self.anthropic else self._completion(text)
        return json.dumps(value, ensure_ascii=False).encode()

    def _message(self, text: str) -> dict[str, Any]:
        reasons = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
        tool = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls"}}
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": self.body["model"],
            "content": [tool] if self.tool_call else [{"type": "text", "text": text}],
            "stop_reason": reasons[self.stop],
            "stop_sequence": None,
            "usage": self._usage(text),
        }

    def _completion(self, text: str) -> dict[str, Any]:
        function = {"name": "bash", "arguments": '{"command": "ls"}'}
        calls = [{"id": "call_1", "type": "function", "function": function}]
        message = {"role": "assistant", "content": text, **({"tool_calls": calls} if self.tool_call else {})}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": self.body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": self.stop}],
            "usage": self._usage(text),
        }

    def _stream(self, text: str, *, events_missing: int = 0) -> None:
        """For the clients of others; compact itself asks for whole replies."""
        handler = self.handler
        handler.leave()
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        # Else the client may send its next request on the connection that is about to be closed.
        handler.send_header("Connection", "close")
        handler.end_headers()
        events = list(self._message_events(text) if self.anthropic else self._completion_events(text))
        for event in events[: len(events) - events_missing]:
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        if not events_missing:
            handler.wfile.write(b"0\r\n\r\n")
        handler.hang_up()

    def _completion_events(self, text: str) -> Iterator[bytes]:
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": self.body["model"]}
        pieces = [text[at : at + 200] for at in range(0, len(text), 200)]
        for delta in [{"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces)]:
            yield _event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield _event({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": self.stop}]})
        yield _event({**base, "choices": [], "usage": self._usage(text)})
        yield b"data: [DONE]\n\n"

    def _message_events(self, text: str) -> Iterator[bytes]:
        whole = self._message(text)
        yield _named({"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}})
        yield _named({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
        for at in range(0, len(text), 200):
            delta = {"type": "text_delta", "text": text[at : at + 200]}
            yield _named({"type": "content_block_delta", "index": 0, "delta": delta})
        yield _named({"type": "content_block_stop", "index": 0})
        end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield _named({"type": "message_delta", "delta": end, "usage": {"output_tokens": len(text) // 4}})
        yield _named({"type": "message_stop"})


def _common(one: str, other: str) -> int:
    """How many first characters two texts share."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or ())


def _event(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _named(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\n".encode() + _event(value)


def main() -> None:
    """Serve until whoever started this is gone."""
    provider = Provider(Path(sys.argv[1]))
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    print(provider.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
