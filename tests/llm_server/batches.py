"""Files and batch jobs of the loopback provider: every request of a job is answered as a live one would be.

``POST /control`` with ``{"batch": {"looks": 1, "ends": "expired", "share": 0.5}}``: this many looks find a job under
way; it ends so, with results for this share of its requests.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Protocol

PART = re.compile(rb'name="file".*?\r\n\r\n(.*?)\r\n--', re.DOTALL)


class Answering(Protocol):
    """What answers one request: status and body."""

    def __call__(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]: ...


@dataclass
class Batches:
    """The files and jobs of one provider."""

    files: dict[str, bytes] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    looks: dict[str, int] = field(default_factory=dict)
    run_options: dict[str, Any] = field(default_factory=dict)

    def upload(self, body: bytes) -> dict[str, Any]:
        """A file from a form."""
        found = PART.search(body)
        assert found
        return self._file(found[1])

    def begin(self, run_options: dict[str, Any]) -> dict[str, Any]:
        """A job over an uploaded file."""
        name = f"batch_{len(self.jobs)}"
        self.looks[name] = 0
        self.jobs[name] = {
            "id": name,
            "object": "batch",
            "endpoint": run_options["endpoint"],
            "completion_window": "24h",
            "input_file_id": run_options["input_file_id"],
            "metadata": run_options.get("metadata"),
            "created_at": 0,
            "status": "in_progress",
        }
        return self.jobs[name]

    def look(self, name: str, answer: Answering) -> dict[str, Any]:
        """The job, done by now if it was looked at often enough."""
        job = self.jobs[name]
        self.looks[name] += 1
        if job["status"] == "in_progress" and self.looks[name] > self.run_options.get("looks", 0):
            self._finish(job, answer)
        return job

    def _finish(self, job: dict[str, Any], answer: Answering) -> None:
        lines = self.files[job["input_file_id"]].splitlines()
        good, bad = [], []
        for line in lines[: int(len(lines) * self.run_options.get("share", 1.0))]:
            request = json.loads(line)
            status, body = answer(request["body"])
            response = {"status_code": status, "request_id": "req", "body": body}
            result = {"id": "one", "custom_id": request["custom_id"], "response": response, "error": None}
            (good if status == 200 else bad).append(json.dumps(result).encode())
        job["status"] = self.run_options.get("ends", "completed")
        for name, results in (("output_file_id", good), ("error_file_id", bad)):
            if results:
                job[name] = self._file(b"\n".join(results))["id"]

    def _file(self, content: bytes) -> dict[str, Any]:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return {
            "id": name,
            "object": "file",
            "bytes": len(content),
            "created_at": 0,
            "filename": name,
            "purpose": "batch",
            "status": "processed",
        }
