"""The index of names, and small sessions: a moved file, a short Chinese dialogue."""

from __future__ import annotations

from collections.abc import Mapping

from conversation import answer, call, conversation, digest, ran, rendered, request, says, texts, token_cache, user

from compactor_cli.digest.analysis import analyse
from compactor_cli.digest.names import _files_of, name_items
from compactor_cli.model.summary import Answer, Section
from compactor_cli.model.transcript import Message

SESSION = conversation(
    user("tidy the modules"),
    *(
        message
        for n in range(12)
        for message in (
            call("Read", file_path=f"src/part_{n}.py"),
            answer("\n".join(f"def load_item_{n}_{i}(path_{n}, limit_{i}): ..." for i in range(40))),
        )
    ),
    says("Read."),
)


def test_names_stand_once_at_the_end_by_file_and_take_no_more_than_a_third() -> None:
    one = digest(SESSION, 2_000)
    (index,) = texts(one, Section.NAMES)
    names = [name for group in index.split(" · ") for name in group.partition(": ")[2].split(", ")]
    assert len(names) == len(set(names))
    assert one.summary.sections[-1].section is Section.NAMES
    rest = rendered(one.summary).replace(index, "")
    assert not any(f"{name}(" in rest for name in names)
    assert token_cache().text(index) <= 0.33 * 2_000


def test_what_only_a_client_s_own_text_names_is_no_name_of_the_work() -> None:
    skill = "Base directory for this skill: /x\n\n# Dials\n" + "\n".join(f"Set DIAL_FRAME_{n} first." for n in range(9))
    read = call("Read", "1", file_path="src/clock.py"), answer("\n".join(f"hand_{n} = 1" for n in range(30)), "1")
    (index,) = texts(digest(conversation(user("draw it"), user(skill), *read, says("Drawn.")), 700), Section.NAMES)
    assert "hand_" in index
    assert "DIAL_FRAME" not in index


def test_pieces_of_a_replacement_and_sides_of_a_diff_are_no_names() -> None:
    read = (
        call("Read", "1", file_path="src/clock_face.py"),
        answer("\n".join(f"    hand_{n} = draw(hand_{n}, dial_{n})" for n in range(90)), "1"),
    )
    replaced = ran("sed -i 's/old_hand/new_hand/g; s/x_dial//g' src/*.py", "")
    shown = ran("sed -n '/^Dial_Sources/p' docs/dial.md; sed -n '/^Dial_Sources/p' docs/hand.md", "Dial_Sources")
    compared = ran("git diff", "--- a/src/clock_case.py\n+++ b/src/clock_case.py\n-x_dial\n+y_dial")
    (index,) = texts(
        digest(conversation(user("draw it"), *read, replaced, shown, compared, says("Drawn.")), 500), Section.NAMES
    )
    assert index.startswith("clock_face.py: hand_")
    assert not any(piece in index for piece in ("s/", "a/", "b/", "/p"))


def test_hashes_of_a_diff_ranges_of_commits_and_parts_of_a_share_are_no_names() -> None:
    compared = ran(
        "git diff", "index 8283ecf4..e46fe8b5 100644\n--- a/src/clock_case.py\n+++ b/src/clock_case.py\n+case()"
    )
    again = ran(
        "git diff", "index e46fe8b5..a674965b 100644\n--- a/src/clock_case.py\n+++ b/src/clock_case.py\n+lid_case()"
    )
    ahead = (
        ran("git log --oneline origin/harbour_work..HEAD", "", is_error=False),
        ran("git diff main..harbour_work", ""),
    )
    styled = answer("mask: radial(ellipse_60%_50%)\nfade: radial(ellipse_60%_40%)", "s")
    index = _index(*compared, *again, *ahead[0], *ahead[1], call("Read", "s", file_path="src/clock.css"), styled)
    assert "lid_case" in index
    assert not any(piece in index for piece in ("e46fe8b5", "a674965b", "..harbour", "work..", "ellipse_60"))


def test_a_file_that_a_command_did_not_find_is_no_name() -> None:
    looked = [
        ran(
            f"cat src/clock_lid.toml src/clock_foot.toml | head -{n}",
            "cat: src/clock_lid.toml: No such file or directory",
        )
        for n in (10, 20)
    ]
    made = call("Write", "w", file_path="notes.md", content="The feet stand in src/clock_foot.toml."), answer("ok", "w")
    assert "src/clock_lid.toml" not in _index(*looked[0], *looked[1])
    assert "src/clock_foot.toml" in rendered(_drawn(*looked[0], *looked[1], *made).summary)


def test_many_short_names_come_before_long_ones_that_are_a_little_likelier() -> None:
    order = ("first", "second", "third", "fourth", "fifth", "sixth")
    long = "".join(f"    midnight_of_the_{word}_hand_before_it_was_set_and_wound_again()\n" for word in order)
    short = "\n".join(f"    use(hand_{n})" for n in range(10, 70))
    looked = (
        *(call("Read", "1", file_path="src/clock_face.py"), answer(long + long + short, "1")),
        *(call("Read", "2", file_path="src/clock_case.py"), answer(long, "2")),
    )
    (index,) = texts(digest(conversation(user("draw it"), *looked, says("Drawn.")), 570), Section.NAMES)
    assert index.count(" hand_") > index.count("midnight_") > 0


HANDS = "\n".join(f"    hand_{n} = draw(hand_{n}, dial_{n})" for n in range(16))


def _drawn(*messages: Message | tuple[Message, ...]) -> Answer:
    clock = call("Read", "r", file_path="src/clock_face.py"), answer(f"import moonphase_lib\n{HANDS}", "r")
    session = conversation(user("draw the face of the clock"), clock, *messages, says("Drawn."), user("and the case?"))
    return digest(session, 1_600)


def _index(*messages: Message | tuple[Message, ...]) -> str:
    return " ".join(texts(_drawn(*messages), Section.NAMES))


def _edit(old: str, new: str, result: str = "ok") -> tuple[Message, Message]:
    edit = call("Edit", "e", file_path="src/clock_face.py", old_string=old, new_string=new)
    return edit, answer(result, "e", is_error=result != "ok")


def test_a_name_that_an_edit_took_out_is_not_in_the_index() -> None:
    assert "moonphase_lib" in _index()
    assert "moonphase_lib" not in _index(_edit("import moonphase_lib\n", ""))
    other = call("Read", "o", file_path="src/case.py"), answer(f"import moonphase_lib as moon\n{HANDS}", "o")
    assert "case.py: moonphase_lib" in _index(other, _edit("import moonphase_lib\n", ""))


def test_settings_of_tools_ended_shells_and_words_with_a_slash_are_not_in_the_index() -> None:
    found = call("Grep", "g", pattern="dial", output_mode="files_with_matches"), answer("src/clock_case.py", "g")
    killed = call("KillShell", "k", shell_id="b3d1f0e"), answer("killed b3d1f0e", "k")
    spoken = says("The face may be Import/Export or left/right, and `gauge/tide` is a branch.")
    index = _index(found, killed, spoken)
    assert "gauge/tide" in index or "gauge/tide" in rendered(digest(conversation(user("x"), spoken), 900).summary)
    assert not any(word in index for word in ("files_with_matches", "b3d1f0e", "Import/Export", "left/right"))


def test_a_moved_file_is_stated_under_its_new_name() -> None:
    one = digest(conversation(user("move it"), ran("cd src && git mv old_clock.py clock.py", "")), 1_500)
    assert texts(one, Section.FILES) == ["src/clock.py — moved from src/old_clock.py"]


def test_a_file_below_an_entered_directory_is_the_one_that_is_named_in_full_elsewhere() -> None:
    edit = (call("Edit", "1", file_path="src/old_clock.py", old_string="a", new_string="b"), answer("ok", "1"))
    one = digest(conversation(user("move it"), edit, ran("cd src && git mv old_clock.py clock.py", "")), 1_500)
    assert texts(one, Section.FILES)[-1].startswith("src/clock.py — edited, moved from src/old_clock.py")


def test_a_short_chinese_dialogue_keeps_its_last_exchange_whole() -> None:
    one = digest(
        conversation(
            user("我想改签明天去上海的航班,订单号是 W8855135。"),
            says("可以改签到后天上午,差价是 152 元。要改签吗?"),
            user("请改签,发票寄到杭州。"),
            says("已改签到后天上午 9:40,发票会寄到杭州。"),
        ),
        400,
    )
    shown = rendered(one.summary)
    assert one.summary.language == "zh"
    told = ("请改签,发票寄到杭州。", "已改签到后天上午 9:40,发票会寄到杭州。", "W8855135")
    assert all(text in shown for text in told)


def test_names_of_a_call_that_was_turned_down_and_of_a_search_are_not_indexed() -> None:
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    edit = call(
        "Edit", "e", file_path="src/part_1.py", old_string="a = 1", new_string="isOnMainBranch = wanted_branch(1)"
    )
    searched = call("Grep", "g", pattern="getHeadOf|PhaseIdle"), answer("No matches found", "g")
    session = conversation(*SESSION.messages, edit, answer(refused, "e", is_error=True), *searched, user("go on"))
    index = " ".join(texts(digest(session, 3_000), Section.NAMES))
    assert "load_item" in index
    assert not any(name in index for name in ("isOnMainBranch", "wanted_branch", "getHeadOf", "PhaseIdle"))


def test_the_places_that_a_search_shows_are_no_names() -> None:
    found = "\n".join(f"src/clock_drift.py-{n}-    read_gauge_{n}(day)" for n in range(20, 40))
    searched = call("Bash", "g", command="grep -A9 read_gauge -r src"), answer(found, "g")
    one = digest(conversation(user("where are the gauges read?"), *searched, says("In src.")), 900)
    assert "clock_drift.py-" not in " ".join(texts(one, Section.NAMES))


def test_words_with_a_slash_that_a_comment_writes_are_no_name() -> None:
    def shown(*messages: Message | tuple[Message, ...]) -> str:
        session = conversation(user("read the levels of the gauges"), *messages, says("Read."))
        return " ".join(one.text for one in name_items(analyse(request(session)), (), 300, token_cache()))

    edits = [
        (call("Write", name, file_path=f"src/{name}.py", content=f"# reads gauges/north\nlevels_of_{name} = 1"),)
        for name in ("tide", "moon", "harbour", "sluice")
    ]
    assert "gauges/north" not in shown(*edits)
    assert "gauges/north" in shown(*edits, ran("ls gauges/north", "one two"))


def _files(names: list[str], *messages: Message) -> Mapping[str, str]:
    return _files_of(analyse(request(conversation(user("set up the gauge"), *messages))), names)


def test_what_a_file_was_searched_for_is_not_listed_under_it() -> None:
    searched = ran("cat gauge.env | rg 'TIDE_LEVEL|TIDE_ZONE'", "TIDE_ZONE=utc")
    found = _files(["TIDE_LEVEL", "TIDE_ZONE"], *searched, says("It has TIDE_ZONE and no TIDE_LEVEL."))
    assert found == {"TIDE_ZONE": "gauge.env"}


def test_files_and_words_that_a_slash_joins_and_prices_are_no_names() -> None:
    said = says("By the README/TIDES.md audit, guessing/re-reading costs 0.40/PR; `lock_gate` and tideGauge are kept.")
    index = _index(call("Grep", "g", pattern="dial"), answer("src/clock_case.py", "g"), said)
    assert not any(piece in index for piece in ("README/TIDES.md", "guessing/re-reading", "0.40/PR"))


def test_what_a_command_searched_for_is_no_name_unless_it_stands_elsewhere() -> None:
    search = ran("grep -rnE 'isTideProbe|readLevel' src", "src/clock_case.py:3: def readLevel(gauge):")
    index = _index(search, says("`lock_gate` and tideGauge are kept."))
    assert "isTideProbe" not in index


def test_a_name_is_listed_under_the_file_that_declares_it() -> None:
    found = _files(
        ["readLevel"],
        *ran("cat gauge.go", "func (g *Gauge) readLevel() int {"),
        *ran("cat gauge_test.go", "level := gauge.readLevel()"),
        *ran("cat NOTES.md", "def readLevel"),
        says("It reads."),
    )
    assert found == {"readLevel": "gauge.go"}


def test_ends_of_patterns_closing_tags_and_joined_words_are_no_names() -> None:
    code = "expect(body).toMatch(/unusual|expired/ib)\n{#if tide}\n{/each}\n<b>low</bold>\napp.get('/tides', low)"
    read = call("Read", "r", file_path="app.js"), answer(code, "r")
    index = _index(*read)
    assert "/tides" in index
    assert not any(word in index for word in ("/ib", "/each", "/bold"))


def test_words_with_a_slash_in_the_text_of_a_command_and_ends_of_longer_names_are_no_names() -> None:
    survey = call("Bash", "b", command="echo '== gate/quay =='; ls src", description="Survey tide/pier of the gauges")
    listed = (
        "app/(north)/docs/sluice.tsx\n== gate/quay ==\nsrc/harbour/lock.tsx\n.TideStore\nC:\\\\Users\\\\adaHome\\\\x"
    )
    shown = answer(listed, "b")
    installed = call("Bash", "i", command="git commit -m 'Installs `uv`/locks and reads *_case.py'"), answer("ok", "i")
    index = _index((survey, shown), installed)
    assert "src/harbour/lock.tsx" in index
    assert not any(word in index for word in ("gate/quay", "tide/pier", "/docs/sluice.tsx", "/locks", "_case.py"))
    assert not any(word in index for word in ("TideStore", "adaHome"))
    found = call("Bash", "f", command='find "$HARBOUR/.cache/tides" "$HARBOUR/.config/tides"'), answer("none", "f")
    assert "HARBOUR/" not in _index(found)


def test_a_class_of_style_is_no_name() -> None:
    page = '<div className="bg-stone-100/50 border-white/10">\n  <HarbourGauge level={tideLevel} />\n</div>\n'
    looked = [part for number in range(3) for part in ran(f"cat page{number}.tsx", page)]
    shown = rendered(digest(conversation(user("read the pages"), *looked, says("Read.")), 700).summary)
    names = shown.partition("## Names")[2]
    assert "bg-stone-100/50" not in names
    assert "border-white/10" not in names


def test_words_in_prose_pieces_of_classes_and_beginnings_of_names_are_no_names() -> None:
    known = ("level/tide/quay", "apply_level/tide", "animate-[ease-in-out_2]", "/tide:harbour-show", "tide_pat_|x")
    page = "\n".join(f'<p className="see {known[number % 5]} {number} harbour_gauge">' for number in range(20))
    one = digest(conversation(user("read the page"), *ran("cat page.tsx", page), says("Read.")), 800)
    names = " ".join(texts(one, Section.NAMES))
    assert "harbour_gauge" in names
    assert not any(part in names for part in ("level/tide", "apply_level/", "/tide", "out_2", "tide_pat_")), names


def test_a_file_is_named_with_its_folder_where_another_known_one_has_its_name() -> None:
    made = (
        call("Write", "w", file_path="quay/page.py", content='<p className="low">{QUAY_LEVEL}</p>'),
        answer("ok", "w"),
    )
    read = call("Read", "r", file_path="pier/page.py"), answer("low = 1", "r")
    one = digest(conversation(user("read the page"), made, read, says("Read.")))
    assert texts(one, Section.NAMES)[0].startswith("quay/page.py: ")
