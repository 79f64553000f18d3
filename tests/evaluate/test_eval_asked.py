"""Questions with gold answers: how they are scored, where transcripts are cut for them, and what is printed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from eval_builders import assistant, call, case, count_words, result, user

from compactor_cli.evaluate.cuts import read_cut
from compactor_cli.evaluate.methods import prose
from compactor_cli.evaluate.questions import (
    NEAR_CHARS,
    Question,
    QuestionOptions,
    QuestionsResult,
    is_misled,
    questions_json,
    read_questions,
    render_questions,
    run_questions,
    score_answer,
    write_summaries,
)
from compactor_cli.model.errors import InputError, UsageError
from compactor_cli.model.settings import Size
from compactor_cli.model.transcript import Message
from compactor_cli.plan.tokens import shown_texts

TOWNS = "Lisbon Porto Faro Braga Coimbra Evora Aveiro Viseu Leiria Setubal Guarda Beja".split()


def _asked(*keys: str, wrong: Iterable[str] = ()) -> Question:
    return Question(
        source="q.jsonl",
        file="f",
        cut=2,
        id="1",
        type="value",
        question="?",
        answer="!",
        keys=tuple(re.compile(key, re.IGNORECASE) for key in keys),
        wrong=tuple(re.compile(key, re.IGNORECASE) for key in wrong),
        in_head=False,
    )


def _size(message: Message) -> int:
    return sum(count_words(text) for text in shown_texts(message))


def _row(file: str, cut: int, number: int, **more: Any) -> dict[str, Any]:
    return {"file": file, "cut": cut, "id": f"q{number}", "type": "value", "question": "?", "answer": "!", **more}


def _chat(turns: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"role": "system", "content": "You help travellers."}]
    for number in range(turns):
        town = TOWNS[number % len(TOWNS)]
        rows += [
            {"role": "user", "content": f"Request {number}: find me a room in {town} for {number + 2} nights, please."},
            {
                "role": "assistant",
                "content": f"I booked room {number + 4000} in {town}, since it was the cheapest one.",
            },
        ]
    return rows


def _lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("questions")
    (root / "probes").mkdir()
    (root / "chat.jsonl").write_bytes(_lines(_chat(40)))
    rows = [
        _row("chat.jsonl", 62, 1, keys=["4005", "Aveiro|Coimbra|Evora|Lisbon|Porto|Faro"]),
        _row("chat.jsonl", 62, 2, keys=["a room on the moon"]),
        _row("chat.jsonl", 62, 3, keys=["Request 0"], head=True),
        _row("gone.jsonl", 5, 4, keys=["x"]),
    ]
    (root / "probes" / "chat-questions.jsonl").write_bytes(_lines(rows))
    return root


@pytest.fixture(scope="module")
def outcome(folder: Path) -> QuestionsResult:
    paths = (str(folder / "probes" / "chat-questions.jsonl"),)
    budgets = (Size(ratio=0.3), Size(tokens=600))
    return run_questions(QuestionOptions(paths=paths, budgets=budgets, tail_tokens=100))


def test_keys_near_each_other_answer_and_scattered_ones_answer_half() -> None:
    asked = _asked("port 8080", "gateway")
    assert score_answer(asked, "The Gateway listens on port 8080.") == 1.0
    assert score_answer(asked, f"The gateway is up.{' ' * NEAR_CHARS}It is port 8080.") == 0.5
    assert score_answer(asked, "The gateway is up.") == 0.0


def test_the_nearest_of_several_places_counts() -> None:
    text = f"gateway {'filler ' * 200} gateway on port 8080"
    assert score_answer(_asked("port 8080", "gateway"), text) == 1.0


def test_a_statement_known_to_be_wrong_misleads_though_the_answer_is_there() -> None:
    asked = _asked("8080", wrong=["port is (now )?9090"])
    assert is_misled(asked, "The port is 9090. No: 8080.")
    assert not is_misled(asked, "The port is 8080.")


@pytest.mark.parametrize(
    "line",
    ["not json", "[]", '{"file": "a"}', json.dumps(_row("a", 2, 1, keys=["("]))],
    ids=["no JSON", "no object", "no cut", "no pattern"],
)
def test_a_line_that_is_no_question_is_named_with_its_place(tmp_path: Path, line: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(_row("a", 2, 1, keys=["x"])) + "\n" + line + "\n")
    with pytest.raises(UsageError, match=r"q\.jsonl:2: no question"):
        list(read_questions(str(path)))


def test_a_cut_knows_nothing_of_what_follows(folder: Path) -> None:
    case, client_summary = read_cut(folder / "chat.jsonl", "chat", 62, 100, _size)
    assert len(case.prefix.records) == 61
    assert (len(case.head), case.tail[-1]) == (2, 60)
    assert sum(_size(case.prefix.messages[i]) for i in case.tail) <= 100
    assert client_summary == ""


def test_a_cut_counts_elements_where_the_document_is_an_array(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text(json.dumps({"messages": _chat(10)}))
    case, _ = read_cut(tmp_path / "chat.json", "chat", 8, 20, _size)
    assert [message.text for message in case.prefix.messages] == [row["content"] for row in _chat(10)[:7]]


def test_a_long_tail_leaves_half_to_be_summarised(tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_bytes(_lines(_chat(6)))
    case, _ = read_cut(tmp_path / "chat.jsonl", "chat", 14, 100_000, _size)
    assert case.middle_tokens >= sum(map(_size, case.prefix.messages[2:])) // 2


def test_nothing_before_the_cut_is_an_error_of_this_input(folder: Path) -> None:
    with pytest.raises(InputError, match="nothing precedes"):
        read_cut(folder / "chat.jsonl", "chat", 1, 100, _size)


def test_what_the_head_answers_is_not_asked_and_missing_files_are_named(outcome: QuestionsResult) -> None:
    assert {reading.question.id for reading in outcome.readings} == {"q1", "q2"}
    assert outcome.skipped == {"gone.jsonl@5": "there is no such file"}


def test_every_method_pays_its_frame_from_the_same_tokens(outcome: QuestionsResult) -> None:
    assert {text.method for text in outcome.written} == {"digest", "head-tail", "prose", "log-frequency"}
    assert all(text.tokens <= text.budget_tokens for text in outcome.written)
    frames = {text.text.split("\n[compact/1 ")[0] for text in outcome.written if text.budget == "600"}
    assert len(frames) == 1


def test_summaries_answer_what_they_say_and_nothing_else(outcome: QuestionsResult) -> None:
    texts = {(text.method, text.budget): text.text for text in outcome.written}
    for reading in outcome.readings:
        assert reading.score == score_answer(reading.question, texts[reading.method, reading.budget])
    assert {reading.score for reading in outcome.readings if reading.question.id == "q2"} == {0.0}
    assert 1.0 in {reading.score for reading in outcome.readings if reading.question.id == "q1"}


def test_the_table_says_how_many_were_answered_by_file_type_and_dialect(outcome: QuestionsResult) -> None:
    table = render_questions(outcome, with_misses=True)
    assert table.startswith("2 questions on 1 cuts")
    rows = {line.split("  ")[0] for line in table.splitlines()}
    assert {"all", "chat-questions", "on openai-chat", "type value", "at 30%", "at 600"} <= rows
    assert "q2 (value)" in table
    assert "skipped: gone.jsonl@5" in table
    document = json.loads(json.dumps(questions_json(outcome)))
    assert {figure["questions"] for figure in document["figures"]} == {2}


def test_summaries_are_written_a_file_for_each_method_and_budget(outcome: QuestionsResult, tmp_path: Path) -> None:
    write_summaries(outcome, str(tmp_path / "out"))
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"digest@600.jsonl", "prose@30%.jsonl"} <= names
    (row,) = map(json.loads, (tmp_path / "out" / "digest@600.jsonl").read_text().splitlines())
    assert (row["file"], row["cut"]) == ("chat.jsonl", 62)
    assert row["text"] in {text.text for text in outcome.written}


def test_at_a_clients_compaction_its_summary_is_measured_and_sets_the_size(tmp_path: Path) -> None:
    said = "The user plans a journey. " + " ".join(f"Room {number + 4000} was booked." for number in range(120))
    rows = [_claude(number, row["role"], row["content"]) for number, row in enumerate(_chat(60)[1:])]
    rows.append({**_claude(len(rows), "user", said), "isCompactSummary": True})
    (tmp_path / "s.jsonl").write_bytes(_lines(rows))
    asked = [_row("s.jsonl", 121, 1, keys=["4044"]), _row("s.jsonl", 80, 2, keys=["4044"])]
    (tmp_path / "q.jsonl").write_bytes(_lines(asked))
    options = QuestionOptions(paths=(str(tmp_path / "q.jsonl"),), at_client=True, tail_tokens=0)
    found = run_questions(options)
    assert {(text.cut, text.budget) for text in found.written} == {(121, "client")}
    by_method = {text.method: text for text in found.written}
    assert by_method["client"].text == said
    assert {text.budget_tokens for text in found.written} == {by_method["client"].tokens}


def _claude(number: int, role: str, text: str) -> dict[str, Any]:
    return {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": "s",
        "timestamp": "2026-01-01T00:00:00Z",
        "message": {"role": role, "content": text},
    }


def test_prose_takes_whole_texts_the_long_ones_first_and_the_newest_of_them() -> None:
    old, new = "old " * 60 + "end", "new " * 60 + "end"
    middle = (assistant(old), assistant("short"), assistant(new), assistant("", call("ls", 1)), result("listing", 1))
    assert prose(case(middle), 61, count_words) == new
    assert prose(case(middle), 62, count_words) == f"short\n{new}"
    assert prose(case(middle), 500, count_words) == f"{old}\nshort\n{new}"


def test_prose_gives_the_users_words_no_more_than_their_share() -> None:
    middle = (user("say " * 90), assistant("told " * 60), user("last words"))
    text = prose(case(middle), 100, count_words)
    assert 25 <= text.split().count("say") <= 28
    assert text.endswith("last words")
    assert "told" in text
