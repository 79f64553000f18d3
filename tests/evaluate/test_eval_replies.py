"""``compactor eval --replies``: replies of models measured as the summaries that a run would make of them."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from compactor_cli.evaluate.questions import DIGEST, TEXT, WHOLE, render_replies, run_replies
from compactor_cli.model.errors import UsageError

NAMES = [f"src/feed_{n}.py" for n in range(12)]


def session() -> list[dict[str, object]]:
    lines: list[dict[str, object]] = []
    for n, name in enumerate(NAMES):
        lines.append(
            {"role": "user", "content": f"Move {name} to the new feed, and never write to levels_live.db here."}
        )
        lines.append({"role": "assistant", "content": f"I moved {name}: parse_line_{n} takes the columns now. " * 12})
    lines.append({"role": "user", "content": "go on with the others"})
    lines += [
        {"role": "assistant", "content": f"Next I test {name} with parse_line_{n}."} for n, name in enumerate(NAMES)
    ]
    return lines


def reply(names: list[str]) -> str:
    sections = ("Now", "Open", "Waiting for an answer", "Settled", "Errors and what fixed them")
    heads = (*sections, "Files", "Facts", "What happened")
    items = "\n".join(f"- {name} is moved to the new feed" for name in names)
    return "\n".join(f"## {head}\n{items if head == 'Files' else '- none'}" for head in heads)


def written(folder: Path, *rows: tuple[str, str]) -> str:
    (folder / "session.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in session()))
    replies = folder / "replies"
    replies.mkdir()
    content = b"".join(orjson.dumps({"file": file, "cut": 25, "text": text}) + b"\n" for file, text in rows)
    (replies / "model.jsonl").write_bytes(content)
    return str(replies)


def test_the_whole_holds_more_than_the_text_at_a_quarter_more_tokens(tmp_path: Path) -> None:
    result = run_replies(written(tmp_path, ("session.jsonl", reply(NAMES[:8]))))
    found = {one.method: one for one in result.measured}
    assert (result.taken, dict(result.refused)) == (1, {})
    assert found[WHOLE].shares["FUR"] > found[TEXT].shares["FUR"]
    assert found[WHOLE].tokens <= 1.34 * found[TEXT].tokens
    assert found[DIGEST].tokens <= found[WHOLE].tokens
    assert "1 replies" in render_replies(result)


def test_a_reply_that_no_run_would_take_is_named_and_not_measured(tmp_path: Path) -> None:
    result = run_replies(written(tmp_path, ("session.jsonl", "I am sorry."), ("missing.jsonl", "x")))
    assert (result.taken, result.measured) == (0, ())
    assert list(result.refused) == ["session.jsonl@25"]
    assert list(result.skipped) == ["missing.jsonl@25"]


def test_questions_are_asked_of_all_three(tmp_path: Path) -> None:
    folder = written(tmp_path, ("session.jsonl", reply(NAMES)))
    question = {
        "file": "session.jsonl",
        "cut": 25,
        "id": "a",
        "type": "constraint",
        "question": "What not to write to?",
    }
    question |= {"answer": "levels_live.db", "keys": ["levels_live"]}
    (tmp_path / "questions.jsonl").write_bytes(orjson.dumps(question) + b"\n")
    result = run_replies(folder, [str(tmp_path / "questions.jsonl")])
    assert {one.method: one.answers for one in result.measured} == {TEXT: (0.0,), WHOLE: (1.0,), DIGEST: (1.0,)}


def test_a_line_that_is_no_reply_is_named_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"file": "a"}\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"no reply"):
        run_replies(str(tmp_path))
