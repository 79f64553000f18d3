"""Facts: what changed the world with what its result says, commands with their last outcome, values looked up."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from conversation import answer, call, conversation, digest, ran, rendered, says, texts, user

from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message


def facts(*messages: object) -> list[str]:
    return texts(digest(conversation(user("ship it"), *messages), 3_000), Section.COMMANDS)  # type: ignore[arg-type]


def told(*messages: object) -> str:
    """The summary of a dialogue over a service."""
    return rendered(digest(conversation(user("ship it"), *messages), 3_000).summary)  # type: ignore[arg-type]


def test_a_commit_is_stated_with_its_branch_and_hash() -> None:
    assert facts(ran("git commit -m x", "[main 1a2b3c4] x\n 1 file changed")) == [
        "branch main, no push seen",
        "`git commit -m x` → ok: [main 1a2b3c4] x",
    ]


def test_a_check_is_stated_by_its_last_run() -> None:
    red, green = ran("pytest -q", "1 failed in 1s", is_error=True), ran("pytest -q", "5 passed in 1s")
    assert facts(red, green) == ["`pytest -q` → ok: 5 passed in 1s"]
    assert facts(green, red, green) == ["`pytest -q` → ok: 5 passed in 1s"]


def test_the_folder_of_shortened_paths_is_stated_where_nothing_else_names_it() -> None:
    read = [(call("Read", str(n), file_path=f"/home/ann/tide/src/{n}.py"), answer("a = 1", str(n))) for n in range(12)]
    assert "Paths are below: /home/ann/tide/src" in facts(*read)
    assert not any(text.startswith("Paths are below") for text in facts(*read[:3]))


def test_a_look_up_that_failed_and_never_went_well_is_a_fact_in_work_on_files_too() -> None:
    missed = call("figma_get_tree", "f", node="0:1"), answer('{"status": "error", "error": "429: rate limit"}', "f")
    built = ran("npm run build", "✓ built in 7.35s")
    assert any("figma_get_tree" in text and "429: rate limit" in text for text in facts(built, missed))
    again = call("figma_get_tree", "g", node="0:2"), answer('{"name": "Tide"}', "g")
    assert not any("429" in text for text in facts(built, missed, again))


def test_that_something_was_looked_up_is_no_fact_without_what_it_showed_nor_a_call_without_its_arguments() -> None:
    page = "The gauge reads the tide at the lock.\n" * 30
    fetched = [
        (call("github_fetch_file", str(n), path=f"docs/{n}.md", repo="tide"), answer(page, str(n))) for n in range(3)
    ]
    filed = [
        (call("github_create_issue", f"i{n}", title=f"Gauge {n} is late"), answer("ok", f"i{n}")) for n in range(9)
    ]
    pilots = [f"019d7e2f-0041-7310-951c-94020254dfc{n}" for n in range(6)]
    shown = facts((call("await_pilots", "w", ids=pilots), answer("ok", "w")), *fetched, *filed)
    assert not any("github_fetch_file" in text or "await_pilots" in text for text in shown)
    assert any("github_create_issue" in text for text in shown)


def test_of_a_chain_the_line_of_another_step_is_not_shown_with_a_push_or_a_merge() -> None:
    commit = "git commit -F - <<'EOF' && git push\nStore UTC\nEOF"
    printed = "[utc 04f6b4e] Store UTC\n 1 file changed\n   42649b7..04f6b4e  utc -> utc"
    assert any(
        text.startswith("`git push") and text.endswith("ok: 42649b7..04f6b4e  utc -> utc")
        for text in facts(ran(commit, printed))
    )
    merged = ran("gh pr merge 53 --merge && git checkout dev", "Your branch is up to date with 'origin/dev'.")
    assert "`gh pr merge 53 --merge` → ok" in facts(merged)


def test_what_a_server_was_asked_and_what_it_changed_are_no_repetition_of_one_another() -> None:
    def sent(query: str, answered: str) -> tuple[Message, Message]:
        return ran(f"gh api graphql -f query='\n{query} {{ thread(id: \"T5\") {{ isResolved }} }}'", answered)

    shown = facts(*(sent("query", '{"isResolved": false}') for _ in range(3)), sent("mutation", '{"isResolved": true}'))
    assert not any("×4" in text for text in shown)


def test_servers_that_were_called_often_are_stated_the_last_first() -> None:
    entered = [ran(f"ssh -i ~/.ssh/key root@10.0.0.7 'docker logs tide{n}'", "a\nb\nc") for n in range(3)]
    asked = [ran(f"curl -s http://localhost:3000/tides/{n}?low=1 | jq .", "a\nb\nc") for n in range(4)]
    line = "Servers called: http://localhost:3000 ×4, root@10.0.0.7 ×3"
    assert line in facts(*entered, *asked)
    assert not any(text.startswith("Servers called") for text in facts(*entered[:2], *asked[:2]))
    pushed = [ran(f"git push git@tide.harbour:a/b.git v{n}", "x\ny\nz") for n in range(3)]
    known = [ran(f"curl https://github.com/a/b/archive/{n}.zip", "a\nb\nc") for n in range(3)]
    assert not any(text.startswith("Servers called") for text in facts(*pushed, *known))


def test_where_git_was_used_and_no_branch_is_known_it_is_stated_that_nothing_was_committed() -> None:
    edit = call("Edit", "e", file_path="a.py", old_string="a", new_string="b"), answer("ok", "e")
    looked, tested = ran("git log --oneline -3", "1a2b3c4 Store"), ran("pytest -q", "5 passed in 1s")
    assert "no commit in these records" in facts(looked, edit, tested)
    assert "no commit in these records" not in facts(edit, tested)
    assert "no commit in these records" not in facts(looked, tested)


def test_a_pull_request_is_stated_with_its_address() -> None:
    (fact,) = facts(ran("gh pr create --fill", "https://git.example/tide/pull/17"))
    assert fact.endswith("https://git.example/tide/pull/17")


def test_what_changed_the_world_goes_before_tests_and_builds() -> None:
    shown = facts(
        ran("git push", "main -> main"), ran("pytest -q", "5 passed in 1s"), ran("make all", "built"), ran("ls", "a")
    )
    assert [text.partition("` ")[0].strip("`") for text in shown] == ["git push", "pytest -q", "make all"]


def test_a_ticket_that_a_tool_made_is_stated_with_its_answer() -> None:
    shown = told(call("create_issue", "1", project="Gauges"), answer("created TIDE-41", "1"))
    assert "- create_issue(Gauges) → created TIDE-41 [" in shown


def test_values_that_were_looked_up_stand_with_what_they_belong_to() -> None:
    session = conversation(
        user("which flight is cheapest?"),
        call("get_flight", "1", number="HAT101"),
        answer('{"number": "HAT101", "price": 303, "seats": 4}', "1"),
        user("and HAT102?"),
    )
    assert "get_flight(HAT101): price 303, seats 4" in rendered(digest(session, 1_500).summary)


def test_of_an_object_with_many_members_whole_ones_stand_never_half_an_id() -> None:
    cards = ", ".join(
        f'"card_4196779{n}": {{"source": "card", "amount": 27{n}, "id": "card_4196779{n}"}}' for n in range(9)
    )
    session = conversation(
        user("what can I pay with?"),
        call("get_user", "1", user="ada_7557"),
        answer(f'{{"payment_methods": {{{cards}}}}}', "1"),
        user("and which of them is mine?"),
    )
    shown = rendered(digest(session, 1_500).summary)
    ids = set(re.findall(r"card_\w*", shown))
    assert ids
    assert all(len(one) == len("card_41967790") for one in ids)
    assert "card_41967790 amount 270, card_41967791 amount 271" in shown


def test_where_there_is_room_for_every_answer_its_members_stand_whether_somebody_speaks_of_them_or_not() -> None:
    flight = '{"number": "HAT101", "origin": "DEN", "seats": 4}'
    spoken = says("It is on time."), user("good, and the one after it?"), says("That one is late.")
    session = conversation(user("is my flight on time?"), call("get_flight", "1"), answer(flight, "1"), *spoken)
    shown_text = rendered(digest(session, 1_500).summary)
    assert "get_flight(): HAT101, origin DEN, seats 4" in shown_text
    assert "DEN" not in rendered(digest(session, 90).summary)


def test_an_object_within_another_stands_under_what_that_one_is_known_by() -> None:
    bills = (
        '[{"bill_id": "B10", "status": "Paid", "lines": [{"text": "plan of May", "amount": 65.5}]},'
        ' {"bill_id": "B11", "status": "Issued", "lines": [{"text": "plan of June", "amount": 40.5}]}]'
    )
    session = conversation(
        user("what do I owe you, and what for?"),
        call("get_bills", "1", customer="C1001"),
        answer(bills, "1"),
        says("You owe us 40.5."),
        user("then I pay these 40.5"),
    )
    assert "B11, Issued · lines: amount 40.5, plan of June" in rendered(digest(session, 1_500).summary)


def test_what_is_not_so_is_told_as_what_is() -> None:
    variants = '{"7041": {"resolution": "5K", "available": false, "left": 0}, "7042": {"available": true, "left": 3}}'
    session = conversation(
        user("is the 5K one available?"), call("get_product", "1"), answer(variants, "1"), user("and the other?")
    )
    shown_text = rendered(digest(session, 1_500).summary)
    assert "7041 resolution 5K available false left 0, 7042 available true left 3" in shown_text


def test_what_has_a_name_that_nobody_speaks_of_is_told_by_its_name_where_there_is_little_room() -> None:
    items = (
        '{"items": [{"name": "Garden Hose", "item_id": "33699", "price": 97}, {"name": "Camera", "item_id": "18104"}]}'
    )
    spoken = says("It is the camera."), user("yes, that camera please, and be quick about it"), says("I look at it.")
    session = conversation(user("where is my camera?"), call("get_order", "1"), answer(items, "1"), *spoken)
    shown_text = rendered(digest(session, 100).summary)
    assert "Camera, item_id 18104" in shown_text
    assert "33699" not in shown_text


def test_of_a_look_up_made_twice_the_newest_answer_stands() -> None:
    looks = [
        (call("check_network", str(number)), answer(f"Airplane Mode: {mode}", str(number)))
        for number, mode in enumerate(("ON", "OFF"))
    ]
    shown_text = rendered(digest(conversation(user("is airplane mode on, or off?"), *looks), 1_500).summary)
    assert "Airplane Mode: OFF" in shown_text
    assert "Airplane Mode: ON" not in shown_text


def test_a_value_that_says_what_it_is_stands_without_its_key() -> None:
    profile = (
        '{"user_id": "ana_li_12", "membership": "silver", "card": {"brand": "visa", "last_four": "7334"}, "zip": ""}'
    )
    session = conversation(
        user("who is ana_li_12?"), call("get_user", "1"), answer(profile, "1"), user("and her card?")
    )
    assert "get_user(): ana_li_12, silver, card brand visa last_four 7334" in rendered(digest(session, 1_500).summary)


def test_reading_from_a_service_is_no_outcome_and_writing_to_it_is() -> None:
    read = ran("gh api repos/a/b/pulls/1/comments --paginate", "[]")
    wrote = ran('gh api repos/a/b/pulls/1/comments/7/replies -f body="Fixed"', '{\n"id": 9,\n"body": "x",\n"user": 1}')
    assert facts(wrote, read) == ['`gh api repos/a/b/pulls/1/comments/7/replies -f body="Fixed"` → ok']


def test_of_a_chain_the_command_that_changed_the_world_is_named() -> None:
    pushed = ran(
        "git log --oneline -3 && echo --- && git push --force", "81c4848\n---\n + 0e9...81c utc -> utc (forced update)"
    )
    assert facts(pushed) == ["`git push --force` → ok: + 0e9...81c utc -> utc (forced update)"]


def test_of_a_chain_all_commands_that_changed_something_are_named() -> None:
    assert facts(ran("make && git tag v2 && git push --tags && ls", "* [new tag] v2 -> v2"))[0].startswith(
        "`git tag v2 && git push --tags` → ok"
    )


def test_what_was_put_away_and_brought_back_or_written_for_a_try_is_no_fact() -> None:
    assert facts(ran("git stash && pytest -q", "1 passed"), ran("git stash pop", "Dropped refs/stash")) == []
    assert facts(ran("cat > /tmp/fix.py << 'EOF'\nprint('Fixed!')\nEOF\npython /tmp/fix.py", "Fixed!")) == []


def test_a_script_of_which_its_line_shows_nothing_is_no_fact() -> None:
    assert facts(ran('python3 -c "\nfrom tide import gauges\nprint(len(gauges()))\n"', "45")) == []
    assert facts(ran("python3 - <<'EOF'\nfrom tide import gauges\nprint(len(gauges()))\nEOF", "45")) == []


def test_what_only_searches_for_a_command_that_changes_the_world_does_not_stand_for_its_chain() -> None:
    (fact,) = facts(ran('gh api repos/a/b > /tmp/b.yml && rg -n "npm publish|git push" /tmp/b.yml', "3: npm publish"))
    assert fact.startswith("`gh api repos/a/b > /tmp/b.yml && rg ")


def test_what_only_shows_how_a_command_is_used_is_no_fact() -> None:
    shown = ran("gauge-import --help | grep -A 3 EXAMPLES", "gauge-import harbour.csv")
    assert facts(*shown, *ran("gauge-import harbour.csv", "12 readings imported")) == [
        "`gauge-import harbour.csv` → ok: 12 readings imported"
    ]


def test_a_commit_is_told_by_what_git_says_of_it() -> None:
    done = ran(
        "git add a.py && git commit -m \"$(cat <<'EOF'\nStore UTC\n\nSince sqlite does.\nEOF\n)\" && git push",
        "[utc-times 4f1c2aa] Store UTC\n 1 file changed",
    )
    assert facts(done)[-1] == "`git commit -m … && git push` → ok: [utc-times 4f1c2aa] Store UTC"


def test_a_check_that_a_later_one_contains_is_no_fact_of_its_own() -> None:
    checks = (ran("ruff check .", "All checks passed!"), ran("ruff format . && ruff check .", "All checks passed!"))
    assert facts(*checks) == ["`ruff format . && ruff check .` → ok: All checks passed!"]


def test_a_call_that_the_user_turned_down_did_not_fail() -> None:
    refused = "The user doesn't want to proceed with this tool use. The user said:\nkeep it"
    call_of = (call("mcp__tracker__create_issue", "i", title="Sort the readings"), answer(refused, "i", is_error=True))
    assert not any("failed" in text for text in facts(call_of))


def test_a_failure_that_is_open_is_no_fact_as_well() -> None:
    assert facts(ran("git push", "fatal: no upstream branch", is_error=True)) == []


def test_a_branch_that_was_entered_is_named_once() -> None:
    assert facts(ran("git checkout main && ls", "Switched to branch 'main'\na.py")) == ["branch main"]


def test_a_booking_that_is_too_long_keeps_what_it_is_paid_with_and_what_came_of_it() -> None:
    passengers = [{"first_name": f"Ana{number}", "last_name": "Li", "dob": "1981-05-26"} for number in range(9)]
    booked = call(
        "book_trip", "1", user_id="ana_li_12", cabin="economy", passengers=passengers, remarks="window " * 60,
        payment_methods=[{"payment_id": "credit_card_9074831", "amount": 628}],
    )  # fmt: skip
    said = '{"reservation_id": "HATHAT", "user_id": "ana_li_12", "payments": [{"amount": 628}], "status": "booked"}'
    shown = told(booked, answer(said, "1"))
    assert "payment_methods credit_card_9074831 amount 628" in shown
    assert " → reservation_id HATHAT, booked" in shown


def test_a_call_that_failed_gives_way_to_a_later_one_of_the_same_tool_that_went_well() -> None:
    tried = [call("book_trip", "1", amount=274), answer("Error: the payment does not add up", "1")]
    shown = told(*tried, call("book_trip", "2", amount=628), answer("booked", "2"))
    assert "- book_trip(amount 628) → booked [" in shown
    assert "274" not in shown


def test_a_run_of_the_code_before_it_was_edited_is_stated_to_be_older() -> None:
    edit = (call("Edit", "e", file_path="src/a.py", old_string="a", new_string="b"), answer("ok", "e"))
    assert facts(ran("python reproduce.py", "finished without errors"), edit) == [
        "`python reproduce.py` → ok before the newest edits: finished without errors"
    ]


def test_a_command_in_another_folder_is_stated_with_the_folder() -> None:
    edit = (call("Edit", "e", file_path="src/a.py", old_string="a", new_string="b"), answer("ok", "e"))
    pushed = ran("cd /srv/other && git push", "main -> main")
    assert facts(edit, pushed) == ["`git push` (/srv/other) → ok: main -> main"]
    deploys = call("shell", "d", command=["bash", "-lc", "make deploy && kubectl apply -f ."], workdir="/srv/my tides")
    (stated,) = facts(edit, (deploys, answer("configured", "d")))
    assert "(/srv/my tides)" in stated


def test_a_check_is_stated_with_the_folder_below_the_work_in_which_it_ran() -> None:
    built = call("run_shell_command", "b", command="npm run build", dir_path="client"), answer("compiled in 2 s", "b")
    assert facts(built) == ["`npm run build` (client) → ok: compiled in 2 s"]


ORDER = '{"id": "W67", "owner": "li_72", "status": "pending", "address": {"city": "LA"}, "amount": 547.62}'


def test_of_an_action_the_answer_states_the_new_state_and_what_it_brought() -> None:
    changed = ORDER.replace("LA", "NY").replace("pending", "pending (item modified)").replace("}}", '}, "refund": 3.7}')
    shown = told(
        (call("order_get", "1", id="W67"), answer(ORDER, "1")),
        (
            call("modify_order", "2", id="W67", city="NY"),
            answer(changed.replace("547.62}", '547.62, "refund": 3.7}'), "2"),
        ),
    )
    assert "modify_order(id W67, city NY) → pending (item modified) · " in shown
    assert ", refund 3.7, " in shown
    assert "order_get" not in shown, "what the look-up showed, the newer answer shows again"


def test_where_no_tool_works_on_files_half_of_a_sum_like_gift_card_is_no_file() -> None:
    said = says(
        "Pay by gift/card or credit/debit. The colour/size, the city/state and the tracking/ETA can be changed."
    )
    bought = (call("buy_lamp", "1", colour="white", price="81"), answer('{"order": "W67", "status": "paid"}', "1"))
    looked = [
        (call("get_lamp", f"l{n}", id=f"L{n}"), answer(f'{{"price": 8{n}, "stock": {n}}}', f"l{n}")) for n in range(9)
    ]
    one = digest(conversation(user("which lamp?"), *looked, said, user("the white one"), bought), 400)
    assert "buy_lamp(colour white, price 81) → status paid" in rendered(one.summary)


CAMERA = '{"order_id": "#W7464385", "status": "%s", "items": [{"item_id": "%s", "name": "Camera", "price": %s}]}'


def ordered(*more: object) -> str:
    return told(
        call("get_order_details", "1", order_id="#W7464385"),
        answer(CAMERA % ("pending", "1810466394", "502.28"), "1"),
        says("The camera of your order is pending; the waterproof one costs 466.75."),
        user("the waterproof one in silver/gold, please"),
        *more,
    )


def test_an_object_is_shown_as_it_was_last_and_not_as_it_was_before_a_change() -> None:
    changed = call("modify_order", "2", order_id="#W7464385", new_item_ids=["6700049080"])
    shown = ordered(changed, answer(CAMERA % ("pending (modified)", "6700049080", "466.75"), "2"))
    assert "modify_order(#W7464385, new_item_ids 6700049080) → pending (modified)" in shown
    assert "466.75" in shown
    assert "502.28" not in shown


def test_words_with_a_slash_between_them_make_no_dialogue_a_session_about_files() -> None:
    assert "get_order_details(#W7464385): " in ordered()


def test_an_amount_stands_as_it_was_spoken_of() -> None:
    refund = (
        '{"parts": [{"kind": "refund", "amount": 35.52999999999997}, {"kind": "fee", "amount": 0.30000000000000004}]}'
    )
    shown = told(call("cancel", "1"), answer(refund, "1"), says("You get 35.53 back."), user("thanks a lot"))
    assert "35.53 " in shown
    assert "35.52999999999997" not in shown
    assert "0.30000000000000004" in shown


def test_an_object_stands_with_its_values_though_each_of_them_was_said() -> None:
    variants = ", ".join(
        f'{{"item_id": "67000490{n}", "color": "{color}", "price": {n}6.75}}'
        for n, color in enumerate(("black", "silver", "green"), 1)
    )
    shown = told(
        call("get_product", "1", product="camera"),
        answer(f"[{variants}]", "1"),
        says("There is a black one for 16.75, a silver one for 26.75 and a green one for 36.75."),
        user("how much was the silver one?"),
        says("The silver one costs 26.75."),
    )
    assert "670004902, silver, 26.75" in shown


def test_the_one_line_of_an_answer_stands_once_and_all_lines_of_a_longer_one_where_there_is_room() -> None:
    status = "Airplane Mode: OFF\nSIM Card Status: active\nWi-Fi Radio: OFF"
    shown = told(
        (call("send_request", "1", bill="B12"), answer("Payment request sent for bill B12", "1")),
        (call("check_network", "2"), answer(status, "2")),
    )
    assert shown.count("Payment request sent for bill B12") == 1
    assert "SIM Card Status: active" in shown


def test_a_look_up_that_failed_stands_until_one_of_the_same_kind_went_well() -> None:
    failed = call("find_user_by_email", "1", email="ada@example.com"), answer("Error: user not found", "1")
    other = call("find_user_by_name", "2", name="Ada Lovelace", zip="43215"), answer("ada_lovelace_72", "2")
    shown = told(*failed, says("I look you up by your name instead."), *other)
    assert "find_user_by_email(ada@example.com) → failed: Error: user not found" in shown
    again = call("find_user_by_email", "3", email="ada@example.org"), answer("ada_lovelace_72", "3")
    assert "not found" not in told(*failed, says("Which other address have you?"), user("example.org"), *again)


def test_a_time_stands_with_what_it_is_the_time_of() -> None:
    flight = '{"number": "HAT263", "departure": "15:00:00", "arrival": "17:00:00"}'
    shown = told(call("get_flight", "1"), answer(flight, "1"), says("HAT263 is there by 17:00:00."), user("fine"))
    assert "arrival 17:00:00" in shown


def test_a_test_that_passed_alone_and_fails_with_the_others_later_is_no_passing_one() -> None:
    alone = ran('go test -run "TestDrift$" ./tide', "ok  \ttide\t1.7s")
    whole = ran("go test ./...", "--- FAIL: TestDrift (0.01s)\n    drift_test.go:95: drift is 3\nFAIL", is_error=True)
    before, after = (digest(conversation(user("mend the drift"), alone, *more)) for more in ((), (whole,)))
    assert any("TestDrift" in text for text in texts(before, Section.COMMANDS))
    assert not any("TestDrift" in text for text in texts(after, Section.COMMANDS))


def test_of_the_rows_of_an_answer_those_that_are_left_out_are_counted_and_those_spoken_of_later_come_first() -> None:
    flights = ", ".join(
        f'{{"flight_number": "HAT10{n}", "origin": "DEN", "aircraft": "A32{n} of hangar {n}", "fare": {n}17}}'
        for n in range(1, 10)
    )
    session = conversation(
        user("is there a flight to Reno?"),
        call("search_flights", "1", to="RNO"),
        answer(f"[{flights}]", "1"),
        says("There are several of them."),
        user("the one with HAT107 please, which is the best for me, and be quick about it as I am in a hurry"),
    )
    shown_text = rendered(digest(session, 150).summary)
    assert "HAT107" in shown_text.partition("## What happened")[2]
    (hidden,) = re.findall(r"… (\d) more", shown_text)
    assert int(hidden) + len(set(re.findall(r"HAT10\d", shown_text.partition("[1,3]")[0]))) == 9


def test_a_list_of_ids_stands_whole_or_says_how_many_more_there_are() -> None:
    def shown(count: int) -> str:
        orders = ", ".join(f'"#W74643{n}"' for n in range(10, 10 + count))
        profile = answer(f'{{"user_id": "ada_7557", "orders": [{orders}]}}', "1")
        session = conversation(
            user("where is #W7464311?"), call("get_user", "1"), profile, user("the other one, I mean #W7464312")
        )
        return rendered(digest(session, 1_500).summary)

    assert "orders: #W7464310, #W7464311, #W7464312, #W7464313, #W7464314" in shown(5)
    assert re.search(r"#W74643\d\d … \d+ more", shown(60))


def test_a_calculation_stands_with_what_the_assistant_says_it_is() -> None:
    sums = [
        (call("calculate", n, expression=f"({fare} + 161) * 3"), answer(f"{(fare + 161) * 3}.0", n))
        for n, fare in (("1", 158), ("2", 239))
    ]
    said = says("The total cost for booking option 1 for three travellers is $957. Shall I book it?")
    shown = told(user("option 1 or 2 for three of us, whichever is cheaper"), *sums, said, user("yes, book it please"))
    assert '(158 + 161) * 3) → 957.0: "The total cost for booking option 1 for three travellers is $957. Shall' in shown
    assert '1200.0: "' not in shown


def test_a_long_object_is_not_repeated_before_the_rest_of_its_members() -> None:
    fares = ", ".join(f'"{cabin}": {n}17' for n, cabin in enumerate(("economy", "premium", "business", "first"), 1))
    rates = ", ".join(f'"prices_of_{rate}": {{{fares}}}' for rate in ("saver", "flex", "light"))
    flight = f'{{"flight_number": "HAT208", {rates}, "gate": "14B"}}'
    asked = user("what are the prices of economy, premium, business and first?")
    session = conversation(asked, call("search_flights", "1", to="RNO"), answer(f"[{flight}]", "1"))
    shown_text = rendered(digest(session, 1_500).summary)
    assert shown_text.count("HAT208") == 1
    assert "14B" in shown_text


def test_scripts_of_one_use_come_after_what_can_be_run_again() -> None:
    steps = (ran("python gauges.py", "45 gauges"), ran('python3 -c "print(3)"', "3"), ran("python /tmp/try.py", "9"))
    one = digest(conversation(user("Count the gauges of the northern stations, please."), *steps))
    assert texts(one, Section.COMMANDS) == ["`python gauges.py` → ok: 45 gauges", '`python3 -c "print(3)"` → ok: 3']


def test_numbers_whose_meaning_is_in_the_part_of_a_command_that_is_cut_are_no_fact() -> None:
    count = "python3 find_gauges.py --all-the-northern-stations --and-the-southern-ones > found.txt; wc -l found.txt"
    shown = f"{count}\ngrep -c CLEAN found.txt"
    assert facts(ran(shown, "28 found.txt\n0"), ran("python gauges.py", "45 gauges")) == [
        "`python gauges.py` → ok: 45 gauges"
    ]


def test_what_was_missing_and_is_installed_since_is_no_fact() -> None:
    missing = ran("python gauges.py; python -V", "ModuleNotFoundError: No module named 'tidelib'\nPython 3.12.1")
    assert any("No module named 'tidelib'" in fact for fact in facts(missing))
    assert not any("No module" in fact for fact in facts(missing, ran("pip install tidelib", "")))


def test_what_an_installer_says_of_packages_that_no_longer_fit_is_stated_with_what_it_installed() -> None:
    clash = "tidelib 2.1 requires gauge<1, but you have gauge 3.0 which is incompatible."
    (fact,) = facts(ran("pip install gauge", f"Collecting gauge\n{clash}\nSuccessfully installed gauge-3.0"))
    assert clash in fact


def test_of_two_runs_that_read_alike_the_place_of_the_newer_one_counts() -> None:
    rebase = ran("git rebase tides", "Successfully rebased and updated refs/heads/gauge.")
    other = [ran(f"git push origin tides-{n}", f" * [new branch] tides-{n} -> tides-{n}") for n in range(6)]
    again = ran("git fetch && git rebase tides", "Successfully rebased and updated refs/heads/gauge.")
    assert any("Successfully rebased" in fact for fact in facts(rebase, *other, *again)[:3])


def test_where_the_assistant_reports_a_commit_of_a_program_none_is_said_to_be_missing() -> None:
    edit = call("Edit", "e", file_path="src/a.py", old_string="x", new_string="y"), answer("ok", "e")
    status = ran("git branch --show-current", "main")
    assert any("no commit" in fact for fact in facts(edit, status, says("It is done.")))
    merged = says("`finish T-001` went through: merged as 423359d into main.")
    assert not any("no commit" in fact for fact in facts(edit, status, merged))


def test_an_entry_of_a_list_of_steps_is_no_result_of_a_check() -> None:
    text = "\n".join(f"The gauge of harbour {n} has its clock from the lock." for n in range(20))
    page = f"## Test plan\n- [x] `pytest` — 317 passed, 51 deselected\n- [ ] by hand\n{text}"
    assert not any(
        "317 passed" in fact for fact in facts(ran("gh pr view 14 --json body > body.md; cat body.md", page))
    )


def test_a_check_that_ran_again_within_a_longer_command_is_not_stated_with_its_older_result() -> None:
    edit = call("Edit", "e", file_path="src/a.py", old_string="x", new_string="y"), answer("ok", "e")
    first, again = ran("ruff check .", "All checks passed!"), ran("git status -s; ruff check . ; ls", " M src/a.py")
    assert any("before the newest edits" in fact for fact in facts(first, *edit))
    assert not any("before the newest edits" in fact for fact in facts(first, *edit, *again))


def test_a_quiet_commit_is_stated_by_the_first_line_of_the_log_after_it_and_older_logs_are_not() -> None:
    log = "4f1c2aa Store UTC\nd2b81e4 Read the tide"
    older = ran("git checkout tides --quiet; git log --oneline -1", "d2b81e4 Read the tide")
    made = ran("git add -u && git commit -qm 'Store UTC' && git log --oneline -2", log)
    shown = "\n".join(facts(older, made))
    assert "ok: 4f1c2aa Store UTC" in shown
    assert "d2b81e4" not in shown


def test_what_the_sections_before_did_not_need_leaves_room_for_the_last_outcome_of_each_check() -> None:
    one = conversation(
        user("Add the tide gauge to the harbour page and check it."),
        call("Edit", file_path="src/harbour.py", old_string="x", new_string="def gauge():\n    return read_tide()"),
        answer("ok"),
        *ran("npm run build -- --mode production", "built in 3.2s, 41 modules"),
        *ran("ruff check src --select ALL", "All checks passed!"),
        *ran("pytest tests/test_harbour.py -q", "14 passed in 0.31s"),
        says("The gauge stands on the harbour page."),
    )
    assert texts(digest(one, 500), Section.COMMANDS) == [
        "`pytest tests/test_harbour.py -q` → ok: 14 passed in 0.31s",
        "`ruff check src --select ALL` → ok: All checks passed!",
        "`npm run build -- --mode production` → ok: built in 3.2s, 41 modules",
    ]


def test_what_a_command_line_shows_of_its_output_is_no_part_of_the_command() -> None:
    one = digest(conversation(user("mend it"), ran("make test 2>&1 | tail -20", "12 passed"), says("Good.")), 2_000)
    assert texts(one, Section.COMMANDS) == ["`make test` → ok: 12 passed"]


def test_of_many_packages_that_passed_none_stands_for_them_all() -> None:
    packages = "ok  \ttide/clock\t0.4s\nok  \ttide/export\t(cached)"
    assert "`make test` → ok" in facts(user("test it"), ran("make test", packages), says("ok"))
    linted = f"0 issues.\n{packages}"
    assert "`make lint test` → ok: 0 issues." in facts(user("test it"), ran("make lint test", linted), says("ok"))


def test_what_a_server_was_given_again_and_again_is_counted_in_one_line_without_what_differs() -> None:
    reply = "gh api repos/tide/gate/pulls/90/comments/{}/replies -X POST -f body='{}'"
    given = [ran(reply.format(number, "Fixed in 4f1c2aa, and logged, too. " * 2), "{}") for number in (71, 72, 73)]
    assert facts(user("answer the comments"), *given, says("done")) == [
        "`gh api repos/tide/gate/pulls/90/comments/…/replies -X POST -f body=…` → ok ×3"
    ]


def test_runs_whose_output_was_searched_for_other_things_are_not_one() -> None:
    one = ran("./tide list --json | grep -o Hash: | wc -l", "1")
    other = ran("./tide list --json | grep -o ID: | wc -l", "2")
    assert not any("×2" in text for text in facts(user("count them"), one, other, says("ok")))


def test_of_errors_that_were_only_counted_the_number_is_told() -> None:
    counted = ran('flutter analyze 2>&1 | grep -c " error "', "472")
    assert facts(user("check it"), counted, says("Most are old.")) == ["`flutter analyze` → failed: 472"]


def test_of_the_messages_to_one_agent_of_the_team_the_newest_is_told() -> None:
    sent = [
        (call("SendMessage", number, recipient=to, summary=text, content=text), answer("Message sent", number))
        for number, to, text in (("1", "lead", "2 gauges left"), ("2", "lead", "all pass"), ("3", "tides", "begin"))
    ]
    told = "\n".join(facts(user("verify the gauges"), ran("pytest", "3 passed in 0.1s"), *sent, says("Done.")))
    assert "SendMessage" in told
    assert "all pass" in told
    assert "begin" in told
    assert "2 gauges left" not in told


def test_a_run_of_a_file_that_was_deleted_since_is_none_that_works_here() -> None:
    written = (call("Write", "w", file_path="flat/store.py", content="x = 1"), answer("ok", "w"))
    checked = ran("python flat/store.py --check", "all gauges read")
    assert any("flat/store.py" in fact for fact in facts(written, checked))
    assert not any("flat/store.py" in fact for fact in facts(written, checked, ran("rm flat/store.py", "")))


def test_what_a_tool_says_of_its_own_version_is_not_what_came_of_a_command() -> None:
    notice = "[notice] A new release of pip is available: 24.0 -> 26.0"
    (fact,) = facts(ran("pip install -e .", f"Successfully installed tide-1.0\n{notice}"))
    assert fact == "`pip install -e .` → ok: Successfully installed tide-1.0"


def test_a_request_that_a_server_turned_down_did_not_go_well() -> None:
    sent = "curl -s -X POST http://localhost:3000/gauges"
    (fact,) = facts(ran(sent, '{"message":"Unauthorized","statusCode":401}'))
    assert fact == f'`{sent}` → {{"message":"Unauthorized","statusCode":401}}'


def test_a_build_that_went_well_is_stated_and_its_setting_up_is_not() -> None:
    line = 'export NVM_DIR="$HOME/.nvm" && [ -s "$NVM_DIR/nvm.sh" ] && . "$NVM_DIR/nvm.sh" && nvm use 22 && pnpm build'
    assert facts(ran(line, "compiled\n" * 40)) == ["`pnpm build` → ok"]


def test_tests_that_are_written_make_no_run_of_the_code_older() -> None:
    source = (call("Write", "w", file_path="src/tide.py", content="x = 1"), answer("ok", "w"))
    tests = (call("Write", "t", file_path="tests/conftest.py", content="y = 1"), answer("ok", "t"))
    run = ran('python -c "import tide"', "loaded")
    assert '`python -c "import tide"` → ok: loaded' in facts(source, run, tests)
    assert any("before the newest edits" in fact for fact in facts(run, source))


def test_an_output_that_the_client_pruned_is_not_what_came_of_a_command() -> None:
    pruned = ran("git push origin main", "[Old tool result content cleared]")
    assert facts(pruned) == ["`git push origin main` → ok"]
    call_of, result = pruned
    kept = replace(result.results[0], pruned="1a2b3c4..5d6e7f8  main -> main")
    assert facts(call_of, replace(result, parts=(kept,))) == [
        "`git push origin main` → ok: 1a2b3c4..5d6e7f8  main -> main"
    ]


def test_steps_in_a_browser_and_calls_of_tools_that_there_are_not_are_no_facts() -> None:
    click = (call("mcp__playwright__browser_click", "1", ref="e35"), answer("### Ran Playwright code\nclick()", "1"))
    garbled = (call("Tsak", "2", prompt="look"), answer("Error: No such tool available: Tsak", "2", is_error=True))
    assert facts(click, garbled, ran("git commit -m x", "[main 1a2b3c4] x")) == [
        "branch main, no push seen",
        "`git commit -m x` → ok: [main 1a2b3c4] x",
    ]
    filed = (call("mcp__tracker__create_page", "3", title="Tide"), answer("# Result\n\nPage T-17 created", "3"))
    assert any(fact.endswith("→ Page T-17 created") for fact in facts(ran("make", "ok"), filed))


def test_what_ran_on_a_port_and_a_branch_that_was_deleted_again_are_no_facts() -> None:
    freed = ran("kill $(lsof -ti :3000); echo free", "Port 3000 is free")
    made = ran("git checkout -b trial", "Switched to a new branch 'trial'")
    gone = ran("git branch -D trial", "Deleted branch trial (was 1a2b3c4).")
    assert not any("3000" in fact for fact in facts(freed))
    assert any("trial" in fact for fact in facts(made))
    assert not any("checkout -b" in fact for fact in facts(made, gone))


def test_a_place_that_a_compiler_warns_of_is_not_how_a_build_ended() -> None:
    built = "warning: unused variable\n --> src/sync/queue.rs:67:12\n    Finished `dev` profile in 4.2s"
    (fact,) = facts(ran("cargo build", built))
    assert fact.startswith("`cargo build` → ok")
    assert "queue.rs" not in fact


def test_how_something_was_is_no_fact_once_it_was_removed() -> None:
    status = ran("workers status tide-research", "tide-research  working  10m")
    other = ran("workers status gauge-layout", "gauge-layout  working  36m")
    one = digest(
        conversation(user("look at the tides"), *status, *other, *ran("workers remove tide-research", "ok")), 2_000
    )
    shown = "\n".join(texts(one, Section.COMMANDS))
    assert "gauge-layout  working" in shown
    assert "tide-research  working" not in shown


def test_what_a_server_was_given_is_one_line_though_each_call_has_a_comment_and_a_text_of_its_own() -> None:
    sent = "gh api repos/tide/pulls/90/comments \\\n  --field in_reply_to=2836{0} \\\n  --raw-field body='{1}'"
    reply = f"# Thread {{0}}: drift\n{sent}"
    texts = ("Fixed in 4f1c2aa. The clock is read once.", "Fixed in 4f1c2aa. The row has a key of its own.")
    given = [ran(reply.format(number, text), "{}") for number, text in enumerate(texts, 71)]
    assert facts(user("answer the comments"), *given, says("done")) == [
        "`gh api repos/tide/pulls/90/comments --field in_reply_to=… --raw-field body=…` → ok ×2"
    ]


def test_how_far_a_branch_is_from_the_one_that_it_follows_stands_with_it_until_something_moves_it() -> None:
    status = ran("git status -sb", "## clock...origin/clock [ahead 6, behind 2]\n M src/a.py")
    assert facts(user("look"), status, says("ok"))[0].startswith("branch clock, ahead 6, behind 2")
    shortened = ran("git status", "📌 clock...origin/clock [ahead 1]\n📝 Modified: 5 files\n   src/a.py")
    assert facts(user("look"), shortened, says("ok"))[0].startswith("branch clock, ahead 1")
    whole = "On branch clock\nYour branch is ahead of 'origin/clock' by 3 commits.\n\nnothing to commit"
    assert facts(user("look"), ran("git status", whole), says("ok")) == [
        "branch clock, ahead of 'origin/clock' by 3 commits"
    ]
    pushed = ran("git push", "To tide\n   4f1c2aa..5a1d3bb  clock -> clock")
    assert facts(user("look"), ran("git status", whole), pushed, says("ok"))[0] == "branch clock"


def test_a_branch_is_placed_where_git_ran_and_not_called_unpushed_once_it_is_shown_to_be_pushed() -> None:
    commit = ran("cd tides && git commit -am x", "[main 4f1c2aa] read the gauge\n 1 file changed")
    assert facts(user("store it"), *commit)[0] == "branch main, no push seen"
    status = ran("cd tides && git status -sb", "## main...origin/main")
    assert facts(user("store it"), *commit, *status)[0] == "branch main"


def test_a_build_that_failed_is_no_fact_once_the_same_command_showed_no_failure() -> None:
    command = "cd tides && npm run build 2>&1 | tail -3"
    failed = ran(command, "npm error command failed\nnpm error command sh -c tsgo && npm run copy-assets")
    again = ran(command, "\nWaiting for the debugger to disconnect...\n")
    assert any("npm run build" in text for text in facts(user("build it"), *failed, says("The tides are old.")))
    built = facts(user("build it"), *failed, *ran("cd gauges && npm run build 2>&1 | tail -5", "> tsgo"), *again)
    assert not any("(tides) → failed" in text for text in built)


def test_what_was_closed_since_is_no_open_fact() -> None:
    opened = ran('bd create --title="One clock"', "Created issue: tide-l0ud — One clock · Status: open")
    closed = ran("bd close tide-l0ud", "Closed tide-l0ud")
    assert any("tide-l0ud" in text for text in facts(user("track it"), opened, says("ok")))
    assert not any("Status: open" in text for text in facts(user("track it"), opened, closed, says("ok")))


def test_a_status_that_a_later_output_shows_anew_and_bare_exit_codes_are_no_facts() -> None:
    before = ran("workmux status compare-tides", "No active agents")
    after = ran("workmux list", "WORKTREE compare-tides working 5m")
    assert any("No active agents" in text for text in facts(user("compare"), before, says("ok")))
    assert not any("No active agents" in text for text in facts(user("compare"), before, after, says("ok")))
    codes = ran("test -d /w/tide; echo tide_exists=$?", "tide_exists=1")
    assert not any("tide_exists" in text for text in facts(user("is it there?"), codes, says("no")))


def test_of_a_try_that_printed_only_how_it_ended_nothing_is_stated() -> None:
    tried = ran('entire hooks pre-tool-use; echo "exit: $?"', "exit: 0")
    told = ran('entire status; echo "exit: $?"', "3 sessions are stale\nexit: 0")
    facts = "\n".join(
        texts(digest(conversation(user("why does the hook fail?"), tried, told), 3_000), Section.COMMANDS)
    )
    assert "pre-tool-use" not in facts


def test_of_pushes_of_the_same_branch_the_newest_is_stated_and_it_is_not_older_than_edits() -> None:
    edit = (call("Edit", "e", file_path="a.py", old_string="1", new_string="2"), answer("ok", "e"))
    first = ran("git push origin main", "To x\n   1a2b3c4..5d6e7f8  main -> main")
    later = ran("git push origin main && git ls-remote | grep -i log", "To x\n   5d6e7f8..9a0b1c2  main -> main")
    shown = [text for text in facts(*first, *later, *edit) if "push" in text]
    assert shown == ["`git push origin main` → ok: 5d6e7f8..9a0b1c2  main -> main"]


def test_what_is_announced_is_said_once() -> None:
    plan = "I'll look at the log of the harbour first, then read the gauges again before any edit."
    found = told(user("the import fails, please fix it"), says(plan), ran("cat log", "no reading"))
    assert found.count(plan) <= 1


def test_a_message_to_a_server_of_which_nothing_is_shown_is_no_fact() -> None:
    query = "gh api graphql -f query='\nmutation { resolve(thread: 7) { id } }'"
    long = '{"data": {"body": "' + "The comment of the clock goes on for a long time. " * 20 + '"}}'
    one = digest(conversation(user("resolve the threads"), *ran(query, long), says("Done.")))
    assert not any("graphql" in text for text in texts(one, Section.COMMANDS))


def test_that_a_search_found_nothing_is_no_fact_later() -> None:
    one = digest(
        conversation(user("file the drift"), *ran("bd search drift", "No issues found matching 'drift'"), says("So."))
    )
    assert texts(one, Section.COMMANDS) == []


def test_a_commit_whose_result_nobody_has_seen_is_not_denied() -> None:
    edit = (call("Edit", "e", file_path="clock.py", old_string="a", new_string="b"), answer("ok", "e"))
    branch = ran("git branch --show-current", "utc")
    assert facts(user("store it"), edit, branch)[0] == "branch utc, no commit in these records"
    assert facts(user("store it"), edit, branch, call("Bash", "c", command="git commit -am x"))[0] == "branch utc"


def test_what_failed_and_went_well_since_or_was_done_by_another_command_is_no_fact() -> None:
    pull = ran("git switch main && git pull --ff-only", "fatal: Not possible to fast-forward, aborting.", is_error=True)
    reset = ran("git reset --hard origin/main", "HEAD is now at 4f1c2aa Store UTC")
    found = texts(digest(conversation(user("take the newest"), *pull, *reset, says("Taken."))), Section.COMMANDS)
    assert any("git reset" in line for line in found)
    assert not any("fast-forward" in line for line in found)


def test_of_pushes_to_a_branch_the_newest_is_a_fact_however_it_was_called() -> None:
    first = ran("git push", "To https://forge.example/tide.git\n   e67063a..579c4ed  utc -> utc")
    second = ran(
        "git commit -qm x && git push origin utc", "To https://forge.example/tide.git\n   579c4ed..00f2759  utc -> utc"
    )
    assert not any("e67063a" in text for text in facts(first, second))


def test_what_was_sent_to_another_agent_is_not_repeated_from_the_answer() -> None:
    sent = "The pumps are done. Run the check of the harbour gates."
    echo = (
        '{\n  "success": true,\n  "message": "Message sent to gates",\n  "routing": {\n    "content": "'
        + sent
        + '"\n  }\n}'
    )
    one = digest(
        conversation(user("tell gates"), call("SendMessage", "m", to="gates", content=sent), answer(echo, "m")), 2_000
    )
    text = rendered(one.summary)
    assert "Message sent to gates" in text
    assert text.count("Run the check of the harbour gates.") == 1
    assert '"success"' not in text


def test_commits_of_one_branch_stand_together() -> None:
    made = [
        ran(f"git commit -m {name}", f"[utc-times {name}] Store {name}\n 1 file changed")
        for name in ("4f1c2aa", "7e00b6e")
    ]
    shown = [text for text in facts(*made) if "git commit" in text]
    assert shown == ["`git commit -m 7e00b6e` → ok: [utc-times 7e00b6e] Store 7e00b6e; 4f1c2aa Store 4f1c2aa"]


def test_the_same_check_of_two_packages_stands_for_each_of_them() -> None:
    def tested(package: str, number: int) -> tuple[Message, ...]:
        told = f"> tide test /data/app/packages/{package}\nPASS clock\nAll tests passed ({number})"
        return ran(f"cd packages/{package} && pnpm test", told)

    one = digest(conversation(user("review the gauges"), tested("cli", 13), tested("worker", 23), says("Both pass.")))
    assert texts(one, Section.COMMANDS) == [
        "`pnpm test` (packages/worker) → ok: All tests passed (23)",
        "`pnpm test` (packages/cli) → ok: All tests passed (13)",
    ]


def test_a_branch_whose_commits_nobody_pushed_or_that_has_diverged_says_so() -> None:
    status = "On branch utc\nYour branch and 'origin/utc' have diverged,\nand have 6 and 5 different commits each."
    commit = ran("git commit -am 'Store UTC'", "[utc 4f1c2aa] Store UTC\n 1 file changed")
    one = digest(conversation(user("store UTC"), commit, ran("git status", status), says("Stored.")))
    assert texts(one, Section.COMMANDS)[0] == (
        "branch utc, have diverged, and have 6 and 5 different commits, no push seen"
    )


def test_a_commit_that_was_made_since_does_not_stand_as_failed() -> None:
    message = "git commit -m 'Store UTC'"
    failed = ran(f"git add . && {message} && git status", "Exit code 1", is_error=True)
    assert not any("failed" in text for text in facts(failed, ran(message, "[main 1a2b3c4] Store UTC")))


def test_steps_of_git_that_print_nothing_and_commits_that_were_made_into_others_are_no_facts() -> None:
    made = ran("git commit -qam 'Store UTC'", "")
    into_one = (
        ran("git reset -q --soft 1a2b3c4", ""),
        ran("git commit -am both", "[main 6d1c2aa] both\n 2 files changed"),
    )
    edit = call("Edit", "s", file_path="store.py", old_string="a", new_string="b"), answer("ok", "s")
    one = digest(conversation(user("store the times in UTC"), *edit, made, *into_one), 2_000)
    assert [text for text in texts(one, Section.COMMANDS) if "git" in text] == [
        "`git commit -am both` → ok: [main 6d1c2aa] both"
    ]


def test_a_check_that_does_not_show_how_it_went_is_no_fact_after_a_later_one() -> None:
    hidden = ran("mise run lint 2>&1 | tail -3", "[lint] $ ./lint.sh\nvalidated")
    later = ran("mise run lint; echo done", "All checks passed!\ndone")
    one = digest(conversation(user("check it"), hidden, later), 2_000)
    assert not any("validated" in text for text in texts(one, Section.COMMANDS))


REQUESTED = (
    *ran("git add tide.py && git commit -m 'Read it'", "[read-it 1a2b3c4] Read it\n 1 file changed"),
    *ran("gh pr create --fill", "https://git.example/tide/pull/17"),
)


@pytest.mark.parametrize(
    ("run", "merged"),
    [
        (ran("gh pr view 17 --json state,number", '{"number":17,"state":"MERGED"}'), "#17"),
        (ran("gh pr view 17 --json state --jq .state", "MERGED"), "#17"),
        (ran("gh pr view 17 --repo tide/ebb --json state --jq .state", "MERGED"), "tide/ebb#17"),
        (ran("gh pr view 16 --jq .state && gh pr view 17 --jq .state", "OPEN\nMERGED"), "#17"),
        (ran("gh pr merge 17 --squash", "✓ Squashed and merged pull request tide/tide#17 (Read it)"), "#17"),
        (ran("git log origin/main --oneline -2", "5d6e7f8 Read it (#17)\n0a1b2c3 Begin (#9)"), "#17 (5d6e7f8)"),
        (ran("git checkout main && git pull", "Fast-forward\n src/tide.py | 2 +-\n 1 file changed"), "#17"),
    ],
)
def test_a_pull_request_that_is_seen_to_be_merged_is_stated_to_be(run: Message, merged: str) -> None:
    edit = call("Edit", "e", file_path="tide.py", old_string="a", new_string="b"), answer("ok", "e")
    assert f"Merged: {merged}" in facts(*edit, *REQUESTED, *run)


@pytest.mark.parametrize(
    "run",
    [
        ran("gh pr view 17 --jq .state", "OPEN"),
        ran("gh pr merge 17 --auto --squash", ""),
        ran("git log --oneline -1", "0a1b2c3 Begin (#9)"),
        ran("git checkout main && git pull", "Fast-forward\n README.md | 2 +-\n 1 file changed"),
    ],
)
def test_of_a_pull_request_that_nothing_shows_to_be_merged_nothing_is_stated(run: Message) -> None:
    edit = call("Edit", "e", file_path="tide.py", old_string="a", new_string="b"), answer("ok", "e")
    assert not any(fact.startswith("Merged") for fact in facts(*edit, *REQUESTED, *run))


def test_no_call_is_ok_whose_output_says_that_the_service_refused() -> None:
    asked = ran("curl -s https://tides.example/gauges -o out.json; cat status", "HTTP 401 Unauthorized")
    assert facts(asked) == ["`curl -s https://tides.example/gauges -o out.json; cat status` → HTTP 401 Unauthorized"]


def test_a_commit_elsewhere_that_was_amended_is_no_fact() -> None:
    first = ran("cd ~/dotfiles && git add a.sh && git commit -m 'Load it'", "[main efad354] Load it\n 1 file changed")
    amended = ran(
        "cd ~/dotfiles && git add b.sh && git commit --amend --no-edit", "[main 3f7a364] Load it\n 2 files changed"
    )
    edits = [
        (call("Edit", path, file_path=path, old_string="a", new_string="b"), answer("ok", path))
        for path in ("/srv/gauges/low.py", "/srv/gauges/high.py", "~/dotfiles/a.sh")
    ]
    session = conversation(user("load it"), *edits, first, amended, cwd="/srv/gauges")
    shown = texts(digest(session, 3_000), Section.COMMANDS)
    assert any("3f7a364" in fact for fact in shown)
    assert not any("efad354" in fact for fact in shown)


def test_what_was_fetched_and_how_the_branch_stood_then_is_no_fact() -> None:
    command = "git fetch origin && git status --short --branch"
    assert not any("fetch" in text for text in facts(ran(command, "## main...origin/main [behind 2]")))
    assert any("git push" in text for text in facts(ran("git fetch && git push", "ok")))


def test_a_command_that_only_moved_to_a_branch_is_no_fact_beside_the_branch() -> None:
    moved = ran("git checkout -b tides", "Switched to a new branch 'tides'")
    tracks = ran("git branch -u origin/tides", "branch 'tides' set up to track 'origin/tides'.")
    facts = texts(digest(conversation(user("begin"), moved, tracks, says("Begun."))), Section.COMMANDS)
    assert facts[0].startswith("branch tides")
    assert not any("git checkout" in text or "git branch" in text for text in facts)


def test_what_the_sandbox_left_to_the_agent_is_stated_where_it_was_limited() -> None:
    def facts(**policy: object) -> list[str]:
        session = conversation(user("read the gauge"), ran("make gauge", "12 passed"), says("Read."))
        stated = {"type": "turn_context", "payload": {"approval_policy": "never", "sandbox_policy": policy}}
        first, *rest = session.records
        return texts(digest(replace(session, records=(replace(first, value=stated), *rest)), 900), Section.COMMANDS)

    limited = "Allowed: sandbox workspace-write, no network, approvals never"
    assert limited in facts(type="workspace-write", network_access=False)
    assert not any("Allowed" in text for text in facts(type="danger-full-access"))


def test_the_transcript_of_the_session_that_made_a_plan_is_named() -> None:
    tail = (
        "\n\nIf you need specific details from before exiting plan mode, read the full transcript at: /harbour/a1.jsonl"
    )
    asked = user(f"Implement the following plan:\n\n# Read the gauges of the harbour every hour{tail}")
    facts = texts(digest(conversation(asked, ran("make gauge", "12 passed"), says("Read.")), 900), Section.COMMANDS)
    assert "Full transcript of what came before: /harbour/a1.jsonl" in facts
