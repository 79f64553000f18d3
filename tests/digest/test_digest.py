"""The digest as a whole: within its budget, nothing invented, the same every time, ready to be read and updated."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conversation import (
    WORK,
    answer,
    call,
    conversation,
    count,
    digest,
    invented,
    ran,
    rendered,
    request,
    says,
    summary,
    texts,
    user,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compactor_cli.digest.digest import Digest
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message, Transcript
from compactor_cli.render.template import load_template, read_client, read_sections

WORDS = [
    "src/app/main.py", "parse_items", "https://host.example/x?id=77", "4711", "#88", "--fast", "读取", "配置文件",
    "because", "- item", "```", "Error: bad thing", "…", "the", "quick", "\n", "\n\n", "## Heading", "[12]", "decided",
]  # fmt: skip
phrases = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
any_message = st.one_of(
    phrases.map(user),
    phrases.map(says),
    st.builds(lambda text: call("Bash", command=text), phrases),
    st.builds(lambda text: call("Edit", file_path="src/x.py", new_string=text), phrases),
    st.builds(lambda text: call("TodoWrite", todos=[{"content": text, "status": "pending"}]), phrases),
    st.builds(lambda text, bad: answer(text, is_error=bad), phrases, st.booleans()),
    phrases.map(summary),
)


def text_of(transcript: Transcript, budget_tokens: int) -> str:
    return rendered(digest(transcript, budget_tokens).summary)


def long_session(turns: int = 40) -> Transcript:
    messages: list[Message | tuple[Message, ...]] = []
    for n in range(turns):
        path = f"src/module_{n % 9}/part_{n}.py"
        messages += [
            user(f"Please add the option number_{n} to {path} and tell me what the limit_{n} of it is, as we agreed."),
            (call("Read", file_path=path), answer("\n".join(f"value_{n}_{i} = load_{i}({n * i})" for i in range(60)))),
            says(f"I decided to set limit_{n} to {1000 + n} because the server_{n} refuses more."),
            (call("Edit", file_path=path, old_string="a", new_string=f"limit_{n} = {1000 + n}"), answer("ok")),
            ran(f"pytest tests/test_{n}.py", f"{n + 1} passed in 0.2s"),
            says(f"The option number_{n} is there. All tests of part_{n} pass."),
        ]
    return conversation(*messages)


@pytest.mark.parametrize("budget_tokens", [40, 200, 300, 400, 600, 1_000, 2_000, 5_000, 20_000])
def test_the_budget_holds_and_is_used(budget_tokens: int) -> None:
    transcript = long_session()
    used = count(text_of(transcript, budget_tokens))
    frame = count(text_of(conversation(), 20_000))
    assert used <= max(budget_tokens, frame)
    if 600 <= budget_tokens <= 5_000:
        assert used >= 0.95 * budget_tokens


def test_a_large_budget_is_not_filled_with_lines_of_the_files_that_were_read() -> None:
    lines = [f"    reading_{n} = gauges['{n}'].level_at(tide_{n % 7}, clock_{n % 5})" for n in range(2_000)]
    read = [
        (call("Read", file_path=f"src/gauge_{n}.py"), answer("\n".join(lines[n * 100 : n * 100 + 100])))
        for n in range(20)
    ]
    why = "The drift comes from the clock of the second harbour, which nobody has set since the last storm."
    text = text_of(conversation(user("find the drift"), *read, says(why)), 20_000)
    assert why in text
    assert sum(line.strip() in text for line in lines) < 300


@settings(max_examples=60, deadline=None)
@given(st.lists(any_message, max_size=12), st.integers(100, 3_000))
@example([says("4711"), user("parse_items")], 106)
def test_odd_content_is_no_trouble(messages: list[Message], budget_tokens: int) -> None:
    transcript = conversation(*messages)
    one = digest(transcript, budget_tokens)
    assert count(rendered(one.summary)) <= max(budget_tokens, count(text_of(conversation(), 20_000)))
    assert not invented(one, transcript)
    assert digest(transcript, budget_tokens) == one
    sections = {part.section: part.items for part in one.summary.sections}
    assert all(item.text.strip() for part in sections.values() for item in part)
    assert all(0 <= record < len(messages) for part in sections.values() for item in part for record in item.records)
    read = {part.section: len(part.items) for part in read_sections(rendered(one.summary), load_template("handover"))}
    assert read == {section: len(part) for section, part in sections.items()}


def test_the_same_request_gives_the_same_answer() -> None:
    asked = request(long_session(), 1_500)
    assert Digest().summarise(asked) == Digest().summarise(asked)


def test_nothing_is_invented() -> None:
    for transcript in (WORK, long_session()):
        assert not invented(digest(transcript, 2_000), transcript)


def test_a_small_budget_holds_the_task_the_users_words_and_the_open_work() -> None:
    one = digest(WORK, count(text_of(conversation(), 1_000)) + 200)
    assert any("now write the docs, but never touch docs/legacy.md" in text for text in texts(one, Section.TASK))
    assert any("Update docs/login.md" in text for text in (*texts(one, Section.TASK), *texts(one, Section.PLAN)))


def test_in_few_tokens_the_users_words_come_before_names_and_many_paths() -> None:
    frame = count(text_of(conversation(), 1_000))
    few, many = (digest(long_session(), frame + tokens) for tokens in (300, 1_000))
    assert sum("Please add the option" in text for text in texts(few, Section.USER)) >= 2
    assert not texts(few, Section.NAMES)
    assert len(texts(few, Section.FILES)) < len(texts(many, Section.FILES))


def test_the_task_stands_first() -> None:
    one = digest(WORK)
    assert one.summary.sections[0].section is Section.TASK
    assert texts(one, Section.TASK) == [
        "Asked: now write the docs, but never touch docs/legacy.md because the old site still reads it"
        " → created login.md",
        "Waiting for an answer: I wrote docs/login.md. Shall I release version 2.4.1 now?",
    ]


def test_a_few_words_are_stated_with_the_request_before_them() -> None:
    asked = "Move the importer into a package of its own and keep its public names as they are."
    shown = texts(digest(conversation(user(asked), says("Shall I?"), user("yes"), says("Moved."))), Section.TASK)
    assert shown[:3] == ["Asked: yes", "In reply to: Shall I?", f"Before that: {asked}"]


def test_errors_files_commands_and_open_questions_of_a_session() -> None:
    one = digest(WORK)
    assert texts(one, Section.FILES) == [
        "docs/login.md — created: + Login",
        "src/login.py — edited: + check_password → verify_password · in login()",
    ]
    assert texts(one, Section.ERRORS)[0].endswith("x → fixed by src/login.py: `verify_password`")
    assert texts(one, Section.COMMANDS) == ["`pytest tests/test_login.py` → ok: 4 passed in 0.12s"]
    assert texts(one, Section.QUESTIONS) == []  # Now quotes it
    assert texts(one, Section.PLAN) == [
        "in progress: Update docs/login.md (files edited since)",
        "open: Release version 2.4.1",
        "done: Rename the function",
    ]


def test_a_chinese_session_is_summarised_in_chinese() -> None:
    one = digest(
        conversation(
            user("请修复 src/登录.py 里的密码检查错误,不要修改旧的接口,因为旧网站还在使用它,并且补充相应的单元测试。"),
            (call("WriteFile", path="src/登录.py", content="def 检查(): ..."), answer("ok")),
            says("我决定保留旧接口,因为旧网站依赖它。密码检查已经修好了。"),
        )
    )
    assert one.summary.language == "zh"
    assert texts(one, Section.TASK)[0].startswith("请求: 请修复 src/登录.py")
    assert texts(one, Section.FILES) == ["src/登录.py — 新建"]
    assert "我决定保留旧接口,因为旧网站依赖它。" in rendered(one.summary)


def test_a_dialogue_without_tools_keeps_names_numbers_requests_and_outcomes() -> None:
    filler = [one for n in range(30) for one in (user(f"hm, and the weather {n}?"), says("It is fine, thank you."))]
    one = digest(
        conversation(
            user("Hi, my name is Mei Lindqvist and I want to return order W8855135."),
            says("Thank you Mei, I see order W8855135 with a desk lamp for 152.30 dollars."),
            *filler,
            user("Please refund it to my gift card gift_card_4421."),
            says("I have refunded 152.30 dollars to gift_card_4421."),
        ),
        700,
    )
    shown = rendered(one.summary)
    assert all(word in shown for word in ("Mei Lindqvist", "W8855135", "152.30", "gift_card_4421", "refunded"))


@pytest.mark.parametrize(
    "transcript",
    [
        conversation(),
        conversation(answer("only a result")),
        conversation(says("")),
        conversation(call("Bash", command="")),
        conversation(user("   ")),
    ],
)
def test_empty_and_lonely_records(transcript: Transcript) -> None:
    assert not invented(digest(transcript, 500), transcript)


class TestUpdate:
    """A summary by compact in the covered records is updated, with the stored state or from its text."""

    def _second(self, *, state: bool) -> tuple[Transcript, list[str], str]:
        first = digest(WORK, 2_000)
        transcript = conversation(
            summary(rendered(first.summary)),
            user("now release it as version 2.4.1 and announce it on the mailing list of the project"),
            call("Edit", "1", file_path="CHANGELOG.md", old_string="a", new_string="b"),
            answer("ok", "1"),
            says("Released."),
        )
        second = digest(transcript, 2_000, state=first.state if state else None)
        assert second.summary.state_used == ("table" if state else "text")
        return transcript, texts(second, Section.USER), rendered(second.summary)

    @pytest.mark.parametrize("state", [True, False])
    def test_old_and_new_stand_side_by_side(self, state: bool) -> None:
        _, users, text = self._second(state=state)
        assert users[0].startswith("Please fix the login test in tests/test_login.py")
        assert "src/login.py — edited" in text
        assert "CHANGELOG.md — edited" in text
        assert "verify_password because the old name hides the hashing" in text
        assert "fixed by src/login.py" in text
        assert "open: Release version 2.4.1" in text
        assert "Asked: now release it as version 2.4.1" in text

    def test_the_frame_of_the_old_summary_is_not_stated_again(self) -> None:
        _, _, text = self._second(state=False)
        assert text.count("Reference only") == 1
        assert text.count("[compact/1 ") == 1

    @pytest.mark.parametrize("state", [True, False])
    def test_nothing_new_loses_nothing(self, state: bool) -> None:
        first = digest(long_session(12), 1_500)
        again = conversation(summary(rendered(first.summary)))
        second = digest(again, 1_500, state=first.state if state else None)
        shown = rendered(second.summary)
        assert all(text.partition(" …")[0].partition(", `")[0] in shown for text in texts(first, Section.USER))
        assert all(f"src/module_{n % 9}/part_{n}.py" in shown for n in range(12))

    def test_a_foreign_summary_lends_its_lines(self) -> None:
        theirs = summary("The migration script is tools/migrate_v3.py and the port is 8443.", "claude-code")
        one = digest(conversation(theirs, user("go on"), says("Going on.")), 600)
        assert one.summary.state_used == "none"
        assert "tools/migrate_v3.py" in rendered(one.summary)

    def test_of_what_a_clients_summary_lists_a_question_was_answered(self) -> None:
        asked = "Which gauges are missing?"
        told = f'- "{asked}"\n- "Move every service to port 8443 by May"\n- "Add the gauge of the north"'
        text = f"1. Primary Request and Intent:\n- Ports\n6. All user messages:\n{told}"
        one = request(conversation(summary(text, "claude-code"), user("go on"), says("Going on.")), 600)
        stated = rendered(Digest().summarise(replace(one, read_client=read_client)).summary).replace(chr(34), "")
        assert "Asked earlier: Move every service to port 8443 by May" in stated
        assert f"Asked earlier: {asked}" not in stated

    def test_the_users_messages_that_a_clients_summary_lists_stay_the_users_words(self) -> None:
        first, second = "Move every service to port 8443 by May", "Leave the harbour gauge alone while it is measuring"
        text = f'1. Primary Request and Intent:\n- Ports\n6. All user messages:\n- {first}\n- "yes"\n- {second}'
        asked = request(conversation(summary(text, "claude-code"), user("go on"), says("Going on.")), 600)
        found = {
            part.section: [item.text for item in part.items]
            for part in Digest().summarise(replace(asked, read_client=read_client)).summary.sections
        }
        assert found[Section.USER] == [f"Asked earlier: {first}"]
        assert f"Before that: {second}" in found[Section.TASK]

    def test_a_clients_summary_that_is_carried_whole_repeats_no_message_and_marks_what_was_under_way(self) -> None:
        first, second = "Move every service to port 8443 by May", "Leave the harbour gauge alone while it is measuring"
        text = (
            f"1. Primary Request:\n- Ports\n6. All user messages:\n- {first}\n- {second}\n8. Current Work:\n- The gauge"
        )
        edit = (call("Edit", "e1", file_path="src/gauge.py", old_string="1", new_string="2"), answer("ok", "e1"))
        asked = conversation(summary(text, "claude-code"), user("edit the gauge, please"), *edit, says("Going on."))
        one = Digest().summarise(replace(request(asked, 2_000), read_client=read_client))
        assert rendered(one.summary).count(first) == rendered(one.summary).count(second) == 1
        assert "8. Current Work: (before the newest edits)" in rendered(one.summary)

    def test_of_the_messages_that_a_clients_summary_lists_the_newest_stand_and_what_is_meant_for_good(self) -> None:
        asked = [f'- "Gauge {number} of the harbour is to be moved to the crane"' for number in range(20)]
        rule = '- "Never touch the live database of the harbour"'
        more = [f"- The crane of pier {number} reads the gauge of the harbour once an hour" for number in range(60)]
        text = "\n".join(
            (
                "1. Primary Request:",
                "- Ports",
                "2. Key Technical Concepts:",
                *more,
                "6. All user messages:",
                rule,
                *asked,
            )
        )
        session = conversation(summary(text, "claude-code"), user("go on with the next one"), says("Going on."))
        one = Digest().summarise(replace(request(session, 500), read_client=read_client))
        lines = "\n".join((*texts(one, Section.TASK), *texts(one, Section.USER)))
        assert [number for number in range(20) if f"Gauge {number} " in lines] == [*range(20)][-3:]
        assert "Never touch the live database" in lines

    def test_of_a_long_summary_of_a_client_its_request_and_what_is_still_open_come_before_its_details(self) -> None:
        asked = "Move all gauges of the harbour to port 8443 until May"
        left = "The old alarm in `north_alarm.py` still rings twice"
        files = [f"- `src/part_{number}.py`: holds the reading of gauge {number}" for number in range(90)]
        text = "\n".join(
            (
                "1. Primary Request and Intent:",
                f"- {asked}",
                "3. Files and Code Sections:",
                *files,
                "7. Pending Tasks:",
                "- Give `src/gauge.py` the new port",
                f"- {left}",
                "8. Current Work:",
                "- Looking at `src/gauge.py`",
            )
        )
        explained = " ".join(f"Gauge {number} reads the tide of pier {number} at noon." for number in range(60))
        edit = (call("Edit", "e1", file_path="src/gauge.py", old_string="80", new_string="8443"), answer("ok", "e1"))
        session = conversation(summary(text, "claude-code"), user("the gauge first"), *edit, says(explained))
        carried = "\n".join(texts(digest(session, 700), Section.PREVIOUS))
        assert asked in carried
        assert left in carried
        assert "Give `src/gauge.py`" not in carried

    def test_what_a_clients_summary_states_is_no_part_of_what_happened(self) -> None:
        cause = "The gauge reads twice an hour, because the clock of the harbour runs in local time"
        text = f"1. Primary Request:\n- Ports\n4. Errors and fixes:\n- {cause}\n8. Current Work:\n- The gauge"
        asked = conversation(summary(text, "claude-code"), user("why does it read twice?"), says("Look at the clock."))
        one = Digest().summarise(replace(request(asked, 150), read_client=read_client))
        assert cause in "\n".join(texts(one, Section.PREVIOUS))
        assert cause not in "\n".join(texts(one, Section.HISTORY))

    def test_of_what_a_clients_summary_tells_of_the_user_the_quotation_alone_is_the_users_words(self) -> None:
        told = '- First message: "Move every service to port 8443" - the only one\n- User gave a plan of eight steps'
        # Nor are the client's own, by which it asks for the summary.
        told += '\n- "Close the old port, too. Your task is to create a detailed summary of the talk..."'
        text = f"1. Primary Request and Intent:\n- Ports\n6. All user messages:\n{told}"
        asked = request(conversation(summary(text, "claude-code"), says("Going on."), user("ok go on")), 600)
        one = Digest().summarise(replace(asked, read_client=read_client))
        lines = (*texts(one, Section.TASK), *texts(one, Section.USER))
        assert any(line.endswith('"Close the old port, too."') for line in lines)
        assert not any("Your task" in line for line in lines)
        assert any(line.endswith('"Move every service to port 8443"') for line in lines)
        assert not any("eight steps" in line or "the only one" in line for line in lines)

    def test_what_a_clients_summary_quotes_is_not_stated_where_a_record_says_it_in_other_quotation_marks(self) -> None:
        text = "1. Primary Request and Intent:\n- Ports\n6. All user messages:\n- \"Move the 'new' gauge to port 8443\""
        moved = user('Move the "new" gauge\nto port 8443'), says("Moving."), user("now the old one"), says("Going on.")
        asked = request(conversation(summary(text, "claude-code"), *moved), 600)
        one = Digest().summarise(replace(asked, read_client=read_client))
        assert sum("to port 8443" in line for line in (*texts(one, Section.TASK), *texts(one, Section.USER))) == 1


def test_a_short_request_is_stated_with_what_it_answers() -> None:
    offer = "The loader reads the file twice. Shall I read it once and keep the result in memory?"
    found = digest(
        conversation(user("why is the start of the program so slow?"), says(offer), user("yes, do that"), says("Done."))
    )
    assert texts(found, Section.TASK)[:2] == [
        "Asked: yes, do that",
        "In reply to: The loader reads the file twice. Shall I read it once and keep the result in memory?",
    ]


def test_what_was_said_last_is_not_stated_twice_where_the_request_replies_to_it() -> None:
    found = digest(conversation(user("run the steps"), says("Step 3 (lint) complete."), user("next step")), 600)
    assert sum("Step 3 (lint) complete." in text for text in texts(found, Section.TASK)) == 1


def test_what_a_tool_or_a_model_writes_around_an_edit_or_a_look_is_no_line_of_the_file() -> None:
    patch = "*** Begin Patch\n*** Update File: tide.py\n@@\n-level = 1\n+level_of_gauge = 2\n*** End Patch\n"
    said = "Raise level_of_gauge so that the gauge tide.py shows is right."
    shell = "/opt/shell/start.sh: line 18: tide.py level_of_gauge: Operation not permitted\n"
    one = digest(
        conversation(
            user("Raise level_of_gauge in tide.py"),
            ran("cat tide.py", f"{shell}level_of_gauge = 1"),
            call("shell", "1", command=["bash", "-lc", f"apply_patch <<'PATCH'\n{patch}PATCH"]),
            answer("Success", "1"),
            call(
                "replace", "2", file_path="tide.py", instruction=said, old_string="a", new_string="level_of_gauge = 3"
            ),
            answer("Done", "2"),
            says("I go on."),
        )
    )
    shown = rendered(one.summary)
    assert "level_of_gauge = 3" in shown
    assert not any(part in shown for part in ("*** ", "shows is right", "not permitted"))


def test_a_small_summary_states_what_is_open_though_it_takes_more_than_its_share() -> None:
    path = "packages/harbour/features/gauges/components/gauge-level-list-of-the-north-pier.tsx"
    edit = call("Edit", "e", file_path=path, old_string="a", new_string="b"), answer("ok", "e")
    asked = user("stash this change, I want to see how the list of the gauges behaved before it")
    away = ran("git stash", "Saved working directory and index state WIP on gauges: 1dda1ed Read the level")
    told = says("The list jumps to its top as the browser throttles hidden pages. " * 12)
    one = digest(conversation(user("mend the list"), edit, asked, away, user("why does it jump?"), told), 330)
    assert texts(one, Section.PLAN)[0].startswith(f"Put away by git stash: {path}")
