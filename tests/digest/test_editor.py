"""SWE-agent's shell and editor: what its commands do to files, and what its screen shows around them."""

from __future__ import annotations

from collections.abc import Sequence

from conversation import digest, texts

from compactor_cli.digest.events import events
from compactor_cli.digest.files import file_operations
from compactor_cli.digest.names import Labels
from compactor_cli.digest.runs import runs
from compactor_cli.digest.tools import FileAction
from compactor_cli.formats.registry import get
from compactor_cli.model.errors import Place
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Record, Transcript

TASK = "Our gauge prints 7.05 as 7.5: " + "please find out where the zero is lost and mend it, with a test. " * 6
PROMPT = "\n\n(Open file: n/a)\n(Current directory: /harbour)\nbash-$"


def _said(role: str, text: str, **more: object) -> dict[str, object]:
    return {"role": role, "content": text, "agent": "primary", **more}


def _step(thought: str, action: str, observation: str) -> list[dict[str, object]]:
    words = f"{thought}\n```\n{action}\n```"
    shown = f"{observation}\n(Open file: /harbour/gauge.py)\n(Current directory: /harbour)\nbash-$"
    return [_said("assistant", words, thought=thought, action=action), _said("user", shown)]


def _window(*lines: str) -> str:
    return "\n".join(("[File: /harbour/gauge.py (90 lines total)]", "(40 more lines above)", *lines))


HISTORY = [
    _said("system", "You use a special interface."),
    _said("user", f"Here is how it is done.{PROMPT}".replace("harbour", "bakery"), is_demo=True),
    _said("assistant", "I look for oven.py.\n```\nls\n```", thought="I look", action="ls", is_demo=True),
    _said("user", TASK + PROMPT),
    *_step("First the file.", "open gauge.py 41", _window("41:def shown(value):", "42:    return str(value)")),
    *_step(
        "Wrong here.",
        "edit 42:42\n    return value\nend_of_edit",
        "Your proposed edit has introduced new syntax error(s).",
    ),
    *_step("Again.", "edit 42:42\n    return f'{value:.2f}'\nend_of_edit", _window("41:def shown(value):")),
    *_step("Now the test.", "python -m pytest test_gauge.py", "2 passed in 0.01s"),
]


def _transcript(history: Sequence[dict[str, object]] = HISTORY) -> Transcript:
    place = Place(path="-", line=1)
    records = tuple(Record(raw=b"{}", ending=b"\n", value=value, place=place) for value in history)
    return Transcript(dialect="swe-agent", records=records, messages=get("swe-agent").read(records))


def test_an_edit_is_of_the_file_that_the_editor_shows_and_a_refused_one_is_none() -> None:
    transcript = _transcript()
    found = file_operations(events(transcript, range(len(HISTORY))))
    assert [(one.action, one.path) for one in found] == [
        (FileAction.READ, "gauge.py"),
        (FileAction.EDIT, "gauge.py"),
    ]


def test_what_an_edit_of_numbered_lines_brings_is_told_apart_from_what_it_writes_again() -> None:
    text = "def shown(value):\n    return f'{value:.2f} bar'\n"
    history = [
        *HISTORY[:4],
        *_step("First.", "open gauge.py 41", _window("41:def shown(value):", "42:    return str(value)")),
        *_step("Both lines.", f"edit 41:42\n{text}end_of_edit", _window("41:def shown(value):")),
    ]
    found = file_operations(events(_transcript(history), range(len(history))))
    assert [one.lines for one in found] == [(), ("return f'{value:.2f} bar'",)]


def test_lines_written_over_some_that_are_not_in_view_define_nothing_that_the_file_had() -> None:
    text = "def shown(value):\n    return f'{value:.2f} bar'\n"
    history = [
        *HISTORY[:4],
        *_step("First.", "open gauge.py 41", _window("41:def shown(value):", "42:    return str(value)")),
        *_step("From the top.", "open gauge.py", "[File: /harbour/gauge.py (90 lines total)]\n1:import math\n2:"),
        *_step("Both lines.", f"edit 41:42\n{text}end_of_edit", _window("41:def shown(value):")),
    ]
    edit = file_operations(events(_transcript(history), range(len(history))))[-1]
    assert (edit.added, edit.lines) == ((), ("return f'{value:.2f} bar'",))


def test_editing_is_no_command_that_was_run() -> None:
    found = runs(events(_transcript(), range(len(HISTORY))))
    assert [run.command for run in found] == ["python -m pytest test_gauge.py"]


def test_lines_of_the_editor_stand_under_the_file() -> None:
    found = events(_transcript(), range(len(HISTORY)))
    labels = Labels(found)
    opened = next(number for number, event in enumerate(found) if event.text.endswith("open gauge.py 41"))
    assert labels[opened + 1].text == "gauge.py"
    assert labels[opened + 1].is_file


def test_prompts_line_numbers_and_demonstrations_are_left_out() -> None:
    found = events(_transcript(), range(len(HISTORY)))
    shown = "\n".join(event.text for event in found)
    assert "bash-$" not in shown
    assert "oven.py" not in shown
    assert "\ndef shown(value):" in shown


def test_how_a_refused_edit_would_look_is_no_text_of_the_file() -> None:
    refused = "Your proposed edit has introduced new syntax error(s).\nERRORS:\n- E999 unmatched ')'\n"
    looked = f"{refused}This is how your edit would have looked if applied\n{_window('41:def shown(value)):')}"
    history = [*HISTORY[:4], *_step("Once.", "edit 41:41\ndef shown(value)):\nend_of_edit", looked)]
    shown = "\n".join(event.text for event in events(_transcript(history), range(len(history)))[2:])
    assert "E999" in shown
    assert shown.count("def shown(value)):") == 1


def test_the_only_thing_that_was_asked_is_quoted_whole_where_the_users_words_would_stand() -> None:
    one = digest(_transcript(), 900)
    request = texts(one, Section.TASK)[0]
    assert TASK.strip() in request
    assert texts(one, Section.USER) == []


def test_an_edit_is_a_step_with_its_file_and_a_refused_one_says_so() -> None:
    done, refused = (texts(digest(_transcript(HISTORY[:end])), Section.TASK)[-1] for end in (10, 8))
    assert done.endswith("`edit 42:42 …` in shown()")
    assert refused.endswith("→ failed: Your proposed edit has introduced new syntax error(s).")


def test_what_the_shell_and_its_own_commands_print_around_an_output_is_none_of_it() -> None:
    noise = (
        '  File "/root/commands/_split_string", line 17\n    from x import y\n    ^\nSyntaxError: future feature y\n'
    )
    shown = (
        f"{noise}{_window('41:def shown(value):')}\nFile updated. Please review the changes.\n(Open file: /harbour/g)\n"
    )
    history = [
        *HISTORY[:4],
        _said("assistant", "```\nls\n```", thought="", action="ls"),
        _said("user", "gauge.py\n(Open file: n/a)\n(Current directory: /harbour)"),
        _said("assistant", "```\nopen gauge.py\n```", thought="", action="open gauge.py"),
        _said("user", f"{shown}(Current directory: /harbour)\nbash-$"),
    ]
    found = [one.text for one in events(_transcript(history), range(len(history)))]
    assert "gauge.py" in found
    assert found[-1].endswith("def shown(value):")
    assert "SyntaxError" not in found[-1]
