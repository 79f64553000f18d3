"""`joyagent`: the newest that fit, sentence by sentence."""

from __future__ import annotations

from preset_cases import (
    SYSTEM,
    assistant,
    call,
    chat,
    compacted,
    is_stable,
    planned,
    preset,
    result,
    roles,
    size,
    user,
    words,
)

from compactor_cli.model.settings import Settings

JOY = preset("joyagent")


def at(tokens: int) -> Settings:
    return preset("joyagent", target=tokens)


def test_the_system_is_kept_and_charged_first() -> None:
    long_system = {"role": "system", "content": words(2_000)}
    _, short = compacted([SYSTEM, *chat(60)[1:]], at(4_000))
    _, after = compacted([long_system, *chat(60)[1:]], at(4_000))
    assert after[0] == long_system
    assert len(after) < len(short)
    assert size(after, JOY) <= 4_000


def test_it_walks_back_while_messages_fit() -> None:
    _, after = compacted(chat(60), at(4_000))
    assert after[1:] == chat(60)[-len(after) + 1 :]


def test_then_drops_from_the_front_until_a_user_message_leads() -> None:
    for tokens in range(1_000, 4_000, 300):
        _, after = compacted(chat(60), at(tokens))
        assert roles(after)[:2] == ["system", "user"]


def test_where_no_user_message_fits_what_fits_stays_and_a_note_says_so() -> None:
    messages = [SYSTEM, user(words(5_000)), call("x"), result("x", "seen"), assistant("done")]
    done, after = compacted(messages, at(1_000))
    assert roles(after) == ["system", "assistant", "tool", "assistant"]
    assert "no message of the user fits" in done.report.notes[0]


def test_each_message_is_capped_at_a_character_limit() -> None:
    _, after = compacted([SYSTEM, user("u" * 30_000), assistant("short"), user("Go on.")], JOY)
    assert after[1]["content"] == "u" * 20_000 + "\n[… 10000 characters left out]"


def test_of_the_newest_message_of_the_user_both_ends_stay_and_a_warning_says_that_it_was_cut() -> None:
    done, after = compacted([SYSTEM, user("u" * 30_000 + "Why?"), assistant("short")], JOY)
    assert after[1]["content"] == "u" * 10_000 + "\n[… 10004 characters left out]" + "u" * 9_996 + "Why?"
    (warning,) = done.report.warnings
    assert "the newest message of the user" in warning
    assert f"{size([user('u' * 30_000 + 'Why?')], JOY):,} tokens" in warning
    later = [*after, user("And now?")]
    assert not compacted(later, JOY)[0].changed


def test_the_cap_applies_before_the_walk() -> None:
    messages = [SYSTEM, user("Read it."), call("x"), result("x", words(30_000)), assistant("done")]
    done, after = compacted(messages, at(6_000))
    assert len(after) == 5
    assert done.report.tokens_after <= 6_000


def test_starts_above_100_000_tokens() -> None:
    assert "100,001, where compaction starts" in planned(chat(2), JOY).reason


def test_a_second_run_changes_nothing() -> None:
    assert is_stable(chat(60), at(4_000))
    assert is_stable([SYSTEM, user("u" * 30_000), assistant("short")], JOY)
