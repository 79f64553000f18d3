"""Decisions: sentences that choose or give a reason, verbatim."""

from __future__ import annotations

from compactor_cli.digest.questions import question_items
from talk import answer, call, meter, says, told, user

from compactor_cli.digest.decisions import decision_items, decisions, last_decision


def texts(*messages: object) -> list[str]:
    return [item.text for item in decision_items(decisions(told(*messages)), 400, meter())]  # type: ignore[arg-type]


def test_a_sentence_with_a_cue_is_quoted_whole_without_markup() -> None:
    assert texts(
        says("## Plan\n- **We use SQLite instead of files** because two writers would clash. Then I read the code."),
        says("```\n# because this is code\n```\nNothing here."),
    ) == ["We use SQLite instead of files because two writers would clash."]


def test_chinese_and_japanese_cues() -> None:
    assert texts(says("我决定改用 SQLite,因为文件会冲突。接下来看代码。")) == ["我决定改用 SQLite,因为文件会冲突。"]
    asked = says("用文件还是 SQLite\uff1f")
    assert texts(asked, user("SQLite")) == ['用文件还是 SQLite\uff1f → "SQLite"']
    assert texts(says("速度のためSQLiteを採用します。次に進みます。")) == ["速度のためSQLiteを採用します。"]


def test_what_the_user_chose_when_asked_counts_most() -> None:
    found = told(
        call("AskUserQuestion", "1", questions=[]),
        answer('User has answered your questions: "Which store?"="SQLite". You can now continue.', "1"),
    )
    assert decisions(found)[0].weight == 4.0


def test_choices_and_new_ones_go_first_and_are_told_in_order() -> None:
    many = [says(f"It failed because of reason number {number} in the list.") for number in range(30)]
    shown = texts(says("I decided to keep the old parser for now."), *many)
    assert shown[0] == "I decided to keep the old parser for now."
    assert "number 29" in shown[-1]
    last = last_decision(decisions(told(says("We chose A over B."), says("It broke because of C."))))
    assert last is not None
    assert last.text == "We chose A over B."


def test_a_question_is_told_with_the_users_short_answer() -> None:
    asked = says("Two ways. Which store should I use, files or SQLite?")
    assert texts(asked, user("SQLite, please"), says("Fine.")) == [
        'Which store should I use, files or SQLite? → "SQLite, please"'
    ]
    assert texts(says("Which store?"), user("By the way, " + "the logs are full of this line " * 20)) == []
    assert texts(says("Which store?"), says("I take files."), user("ok")) == []


def test_questions_stay_open_until_somebody_speaks() -> None:
    asked = told(user("fix it"), says("Done. Shall I push it? Which branch?"))
    assert [item.text for item in question_items(asked, (), 100, meter())] == ["Shall I push it?", "Which branch?"]
    later = told(user("a"), says("b"), user("yes, main"))
    assert question_items(asked, later, 100, meter()) == ()


def test_a_cue_that_names_no_reason_is_no_decision() -> None:
    talked = told(says("The problem is clear. The problem is that the valve opens before the pump has stopped."))
    assert [one.text for one in decisions(talked)] == [
        "The problem is that the valve opens before the pump has stopped."
    ]
