from __future__ import annotations

import pytest

from compactor_cli.group.exchanges import Turn, is_user_words, turns
from compactor_cli.model.transcript import Media, Message, Part, PreviousSummary, Role, Text, ToolResult


def message(*parts: Part, role: Role = Role.USER, **more: object) -> Message:
    return Message(role=role, parts=parts, **more)  # type: ignore[arg-type]


def test_turns_reach_from_user_to_user() -> None:
    words, answer = message(Text(text="hi")), message(Text(text="yes"), role=Role.ASSISTANT)
    result = message(ToolResult(id="a", text="ok"))
    assert turns([answer, words, answer, result, words, answer]) == (Turn(start=1, stop=4), Turn(start=4, stop=6))
    assert turns([]) == ()
    assert turns([answer]) == ()


@pytest.mark.parametrize(
    "text",
    [
        "fix it",
        "<task>fix it</task>",
        "<system-reminder>a</system-reminder> fix it",
        "<div> is wrong",
        "< 3",
        "<system-reminder>a</system-reminder><task>b</task>",
    ],
)
def test_a_person_speaks(text: str) -> None:
    assert is_user_words(message(Text(text=text)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "<system-reminder>a</system-reminder>",
        "<system-reminder>never closed",
        "<command-name>/compact</command-name>\n <command-args></command-args>",
        "<environment_context>\n<cwd>/w</cwd>\n</environment_context>",
    ],
)
def test_a_client_speaks(text: str) -> None:
    assert not is_user_words(message(Text(text=text)))


def test_an_image_is_the_users_words_and_a_summary_is_not() -> None:
    assert is_user_words(message(Media(kind="image", size_bytes=9)))
    assert not is_user_words(message(Text(text="s"), summary=PreviousSummary(origin="pi", text="s")))
    assert not is_user_words(message(Text(text="old"), superseded=True))
    assert not is_user_words(message(Text(text="[interrupted]"), ToolResult(id="a", text="ok")))
