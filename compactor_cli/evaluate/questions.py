"""Questions with gold answers: what a reader of the summary alone must be able to say.

A question names the patterns that an answer holds. It is answered where all of them are found near each other, half
where they are found scattered; a pattern of ``wrong`` that is found misleads. Short keys are hit by chance in long
scraps: the score is a floor, and reading decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import orjson

from compactor_cli.model.errors import UsageError
from compactor_cli.model.records import Place

NEAR_CHARS = 400
MOST_PLACES = 60

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question on the transcript ``file``, whose conversation is what stands before record ``cut`` (from 1).

    ``source``: the file of questions it comes from. ``in_head``: the first message of the user, which stays as it
    is, answers it; a summary need not.
    """

    source: str
    file: str
    cut: int
    id: str
    type: str
    question: str
    answer: str
    keys: tuple[re.Pattern[str], ...]
    wrong: tuple[re.Pattern[str], ...]
    in_head: bool


def read_questions(path: str) -> Iterator[Question]:
    """The questions of a JSONL file. Raises UsageError with the line of what is wrong."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise UsageError(
            f"the questions cannot be read: {error.strerror}", next_step="check --questions", place=path
        ) from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _question(line, Place(path=path, line=number))


def _question(line: bytes, place: Place) -> Question:
    try:
        value = orjson.loads(line)
        return Question(
            source=place.path,
            file=value["file"],
            cut=int(value["cut"]),
            id=str(value["id"]),
            type=value["type"],
            question=value["question"],
            answer=value["answer"],
            keys=_patterns(value["keys"]),
            wrong=_patterns(value.get("wrong", ())),
            in_head=bool(value.get("head")),
        )
    except (TypeError, KeyError, ValueError, re.error) as error:
        raise UsageError(
            f"no question: {type(error).__name__}: {error}",
            next_step="a line is an object with file, cut, id, type, question, answer and keys (regular expressions)",
            place=place,
        ) from error


def _patterns(values: Sequence[Any]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(value, re.IGNORECASE) for value in values)


def score_answer(question: Question, text: str) -> float:
    """1 where all keys lie within NEAR_CHARS of one another, 0.5 where all are found but scattered, else 0."""
    found = [_spans(key, text) for key in question.keys]
    if not all(found):
        return 0.0
    starts = (start for start, _ in chain.from_iterable(found))
    return 1.0 if any(all(_is_near(start, spans) for spans in found) for start in starts) else 0.5


def is_misled(question: Question, text: str) -> bool:
    """Whether the text says what the question knows to be wrong."""
    return any(pattern.search(text) for pattern in question.wrong)


def _spans(pattern: re.Pattern[str], text: str) -> list[Span]:
    return [match.span() for match in islice(pattern.finditer(text), MOST_PLACES)]


def _is_near(start: int, spans: Sequence[Span]) -> bool:
    return any(start <= first and last <= start + NEAR_CHARS for first, last in spans)
