"""History: every turn has its line, key lines stand under the turn they belong to."""

from __future__ import annotations

from compactor_cli.digest.touches import touches
from compactor_cli.digest.turn_lines import turn_items
from talk import WORK, answer, call, count, digest, items, meter, says, talk, texts, told, user

from compactor_cli.digest.commands import runs
from compactor_cli.digest.language import words_of
from compactor_cli.digest.turns import Turn, line_text, turns
from compactor_cli.digest.user_words import said
from compactor_cli.model.summary import Section

EN = words_of("en")


def all_turns(*messages: object) -> list[Turn]:
    found = told(*messages)  # type: ignore[arg-type]
    return turns(found, said(found), touches(found), runs(found))


def test_a_turn_says_what_was_asked_done_and_came_of_it() -> None:
    line = next(item.text for item in items(digest(WORK), Section.HISTORY) if not item.depth)
    assert line.startswith('"Please fix the login test in')
    assert "edited login.py" in line
    assert "The login test passes now." in line


def test_every_turn_has_a_line_and_old_ones_share_theirs() -> None:
    talked = [one for number in range(30) for one in (user(f"question {number}"), says(f"answer {number} is here"))]
    wide = turn_items(all_turns(*talked), 2_000, meter(), EN)
    assert len(wide) == 30
    narrow = turn_items(all_turns(*talked), 400, meter(), EN)
    told_text = " ".join(item.text for item in narrow.values())
    assert len(narrow) < 30
    assert all(f'question {number}"' in told_text for number in range(30))
    assert sum(meter().item(item) for item in narrow.values()) <= 400
    assert "answer 29 is here" in narrow[30].text


def test_recent_turns_have_more_room_than_old_ones() -> None:
    speech = " ".join(f"Sentence number {number} of the closing words." for number in range(60))
    lines = turn_items(all_turns(*[one for n in range(6) for one in (user(f"go {n}"), says(speech))]), 600, meter(), EN)
    assert len(lines[6].text) > 1.8 * len(lines[1].text)


def test_what_comes_before_the_first_message_has_a_line_too() -> None:
    before = all_turns(call("Edit", file_path="a.py"), says("Edited it."), user("thanks"))
    assert turn_items(before, 200, meter(), EN)[0].text == "From the start → edited a.py → Edited it."


def test_key_lines_stand_under_their_turn_and_file() -> None:
    lines = [f"The constant LIMIT_{number} is {number}00{number} in module_{number}.py" for number in range(8)]
    found = talk(
        user("read the limits"),
        call("Read", "1", file_path="src/limits.py"),
        *[says(line) for line in lines[:4]],
        user("and the others"),
        *[says(line) for line in lines[4:]],
    )
    shown = items(digest(found, 900), Section.HISTORY)
    second = next(number for number, item in enumerate(shown) if "and the others" in item.text)
    for item in shown[:second]:
        assert all(record < 6 for record in item.records)
    for item in shown[second:]:
        assert all(record >= 6 for record in item.records)


def test_long_requests_are_named_here_and_quoted_elsewhere() -> None:
    asked = "please rewrite the importer so that it reads the new export format of the shop as well as the old one"
    found = talk(user(asked), says("Done, it reads both."), user("thanks"), says("You are welcome."))
    one = digest(found, 600)
    assert f"Before that: {asked}" in texts(one, Section.TASK)
    assert count(next(text for text in texts(one, Section.HISTORY) if "rewrite" in text)) < count(asked) + 20


SUBJECTS = (
    ("harbour/gauge.py", "gauge feed sensor", "The gauge reads every sensor of its feed."),
    ("billing/invoice.py", "invoice tariff rounding", "The invoice rounds its tariff to cents."),
    ("crew/roster.py", "roster shift holiday", "The roster gives each shift its holiday."),
    ("maps/tiles.py", "tile projection zoom", "The projection keeps each tile at its zoom."),
)


def long_session(turns: int) -> list[object]:
    """So many turns on each of the subjects, one subject after the other."""
    return [
        message
        for path, about, closing in SUBJECTS
        for n in range(turns)
        for message in (
            user(
                f"Step {n} on the {about}: mend it" if n else f"Begin with the {about.split()[0]} and mend the {about}"
            ),
            call("Edit", f"{path}{n}", file_path=path, old_string="a", new_string=f"b{n}"),
            answer("The file has been updated.", f"{path}{n}"),
            says(f"{closing} That was step {n}."),
        )
    ]


def test_old_topics_have_a_line_each() -> None:
    found = turn_items(all_turns(*long_session(6)), 400, meter(), EN)
    assert list(found)[:3] == [1, 7, 13]
    for (path, about, closing), number in zip(SUBJECTS, list(found)[:3], strict=False):
        line = found[number].text
        assert line.startswith(f'"Begin with the {about.split()[0]}')
        assert " · " in line
        assert f"edited {path}" in line
        assert closing[:20] in line
        assert all(other not in line for other, _, _ in SUBJECTS if other != path)
    assert sum(meter().item(item) for item in found.values()) <= 400


def test_an_old_topic_of_many_turns_has_a_few_lines_of_its_own() -> None:
    lines = turn_items(all_turns(*long_session(30)), 1_500, meter(), EN)
    assert {1, 31, 61, 91} <= set(lines)
    assert len([number for number in lines if number <= 90]) == 12


def test_topics_are_found_again_in_what_an_earlier_summary_told() -> None:
    carried = [Turn(number=turn.number, line=line_text(turn, 300, EN)) for turn in all_turns(*long_session(5))]
    lines = list(turn_items(carried, 300, meter(), EN).values())
    for line, about in zip(lines, ("gauge", "invoice", "roster"), strict=False):
        assert line.text.startswith(f'"Begin with the {about} and mend the {about}')
        assert f'" · "Step 1 on the {about}' in line.text
        assert f"The {about} " in line.text.rpartition(" → ")[2]
