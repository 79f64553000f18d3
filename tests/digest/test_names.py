"""The index of names, and small sessions: a moved file, a short Chinese dialogue."""

from __future__ import annotations

from conversation import answer, call, conversation, count, digest, ran, rendered, says, texts, token_cache, user

from compactor_cli.model.summary import Section

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


def test_names_stand_once_at_the_end_by_file_and_take_a_small_share() -> None:
    one = digest(SESSION, 2_000)
    (index,) = texts(one, Section.NAMES)
    names = [name for group in index.split(" · ") for name in group.partition(": ")[2].split(", ")]
    assert len(names) == len(set(names))
    assert one.summary.sections[-1].section is Section.NAMES
    rest = rendered(one.summary).replace(index, "")
    assert not any(f"{name}(" in rest for name in names)
    assert token_cache().text(index) <= 0.2 * count(rendered(one.summary))


def test_a_moved_file_is_stated_under_its_new_name() -> None:
    one = digest(conversation(user("move it"), ran("cd src && git mv old_clock.py clock.py", "")), 1_500)
    assert texts(one, Section.FILES) == ["src/clock.py", "src/old_clock.py — moved to src/clock.py"]


def test_a_file_below_an_entered_directory_is_the_one_that_is_named_in_full_elsewhere() -> None:
    edit = (call("Edit", "1", file_path="src/old_clock.py", old_string="a", new_string="b"), answer("ok", "1"))
    one = digest(conversation(user("move it"), edit, ran("cd src && git mv old_clock.py clock.py", "")), 1_500)
    assert texts(one, Section.FILES)[-1].startswith("src/old_clock.py — edited, moved to ")


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
