from __future__ import annotations

import pytest
from conversation import WORK, count, rendered

from compactor_cli.llm.calls import Reply
from compactor_cli.llm.check import Fault, Ground, check, salient
from compactor_cli.llm.flatten import flatten
from compactor_cli.llm.outline import headings_of
from compactor_cli.llm.prompts import ASKED

SHOWN = "\n".join(block.text for block in flatten(WORK, range(len(WORK.records))))
HEADINGS = tuple(heading for heading in headings_of(rendered, "en") if heading.section in ASKED)
GROUND = Ground(
    shown=SHOWN,
    salient=salient([(WORK, range(len(WORK.records)))], SHOWN),
    source_tokens=1_000,
    room_tokens=400,
    headings=HEADINGS,
    covered=frozenset(range(20)),
)
FACTS = (
    "- write docs/login.md, never touch docs/legacy.md [12]",
    "- open: release version 2.4.1",
    "- release 2.4.1 now?",
    "- check_password is now verify_password in /data/app/src/login.py, the old name hid the hashing [5]",
    "- AttributeError in tests/test_login.py, gone after the edit",
    "- src/login.py edited, docs/login.md written",
    "- pytest tests/test_login.py: 4 passed",
    "- the login test was fixed",
)
GOOD = "\n".join(f"{heading.opening}\n{fact}" for heading, fact in zip(HEADINGS, FACTS, strict=True))
INVENTED = "\n".join(f"- see src/made_up_{n}.py and invented_name_{n}" for n in range(5))


def test_a_summary_is_taken_with_its_records() -> None:
    verdict = check(Reply(text=GOOD, model="m"), GROUND, count)
    assert (verdict.fault, verdict.invented) == (None, ())
    assert verdict.outline.sections[0].items[0].records == (11,)


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (Reply(text="", model="m", has_tool_call=True, finish_reason="tool_calls"), Fault.TOOL_CALL),
        (Reply(text="  \n", model="m"), Fault.EMPTY),
        (Reply(text="<think>all thoughts, no words", model="m"), Fault.EMPTY),
        (Reply(text=GOOD, model="m", finish_reason="length"), Fault.CUT_OFF),
        (Reply(text="I cannot", model="m", finish_reason="content_filter"), Fault.FILTERED),
        (Reply(text="Sure, I will release it now. Anything else?", model="m"), Fault.NO_SUMMARY),
        (Reply(text=GOOD.replace("## Files\n", ""), model="m"), Fault.MISSING_SECTIONS),
        (Reply(text=GOOD + "\n- and so on" * 200, model="m"), Fault.TOO_LONG),
        (Reply(text=GOOD + "\n- and so on" * 2_000, model="m"), Fault.INFLATED),
        (Reply(text=GOOD + "\n" + INVENTED, model="m"), Fault.INVENTED),
    ],
    ids=lambda value: value.value if isinstance(value, Fault) else "",
)
def test_what_is_no_good_summary_is_refused_for_its_fault(reply: Reply, fault: Fault) -> None:
    verdict = check(reply, GROUND, count)
    assert verdict.fault is fault


def test_a_single_slip_among_many_names_is_listed_and_not_refused() -> None:
    names = " ".join(dict.fromkeys(word for line in FACTS for word in line.split() if "." in word or "_" in word))
    many = GROUND.__class__(
        **{name: getattr(GROUND, name) for name in GROUND.__slots__ if name != "shown"},
        shown=SHOWN + " ".join(f"known_name_{n}" for n in range(60)),
    )
    text = f"{GOOD}\n- {names} " + " ".join(f"known_name_{n}" for n in range(60)) + " slipped_in.py"
    verdict = check(Reply(text=text, model="m"), many, count)
    assert verdict.fault is None
    assert verdict.invented == ("slipped_in.py",)


def test_the_model_is_told_which_names_and_sections() -> None:
    said = check(Reply(text=GOOD + "\n" + INVENTED, model="m"), GROUND, count).details["names"]
    assert "src/made_up_0.py" in said
    missing = check(Reply(text=GOOD.replace("## Files\n", ""), model="m"), GROUND, count).details["names"]
    assert missing == "## Files"


def test_talk_without_names_is_held_to_its_words() -> None:
    from conversation import conversation, says, user

    chat = conversation(
        user("My daughter wants a bicycle for her birthday."), says("A bicycle in her favourite colour, blue.")
    )
    found = salient([(chat, range(2))], "daughter bicycle birthday colour blue")
    assert len(set(found) & {"daughter", "bicycle", "birthday", "colour", "blue"}) >= 3
