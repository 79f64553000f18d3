"""Scripts that make the calls: what they call, and what they print."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_sessions import made

from compactor_cli.formats.codex import DIALECT
from compactor_cli.formats.script_calls import calls_in, script_output, without_scripts
from compactor_cli.model.transcript import ToolCall

PATCH = "*** Begin Patch\n*** Update File: tides.py\n-low\n+high\n*** End Patch"


@pytest.mark.parametrize(
    ("script", "calls"),
    [
        (
            'const r = await tools.exec_command({cmd: "make \\"tides\\"\\nmake test", workdir: '
            "'/srv/pier', n: 1_000});\ntext(r.output);",
            [("exec_command", {"cmd": 'make "tides"\nmake test', "workdir": "/srv/pier", "n": 1000})],
        ),
        (
            "const patch = `*** Begin Patch\n*** Update File: tides.py\n-low\n+high\n*** End Patch`;\n"
            "text(await tools.apply_patch(patch));",
            [("apply_patch", PATCH)],
        ),
        (
            'const patch = ["*** Begin Patch", "*** Update File: tides.py", "-low", "+high", "*** End Patch"]'
            '.join("\\n"); await tools.apply_patch(patch)',
            [("apply_patch", PATCH)],
        ),
        (
            'const cmds = [["log", "git log -3"], ["state", "git status"]];\n'
            "await Promise.all(cmds.map(([name, cmd]) => tools.exec_command({cmd, yield_time_ms: 10}))); // both",
            [("exec_command", {"cmd": "git log -3\ngit status", "yield_time_ms": 10})],
        ),
        (
            'const all = ["low", "high"]; for (const name of all) await tools.look({name, all: true, of: [1, null]})',
            [("look", {"name": "low\nhigh", "all": True, "of": [1, None]})],
        ),
        # What only the running script knows is left out, or stands as an ellipsis.
        (
            'await tools.exec_command({cmd: "gh pr view " + one({a: [n, 1]}) + " --json", workdir: where(1, 2)})',
            [("exec_command", {"cmd": "gh pr view … --json"})],
        ),
        ("await tools.exec_command({cmd: `gh pr checks ${n}`})", [("exec_command", {"cmd": "gh pr checks ${n}"})]),
        ("await tools.list_agents()", [("list_agents", {})]),
        (r'tools.look("\ud83c\udf0a \ud83c \x41\u{1f30a}")', [("look", "\U0001f30a \ufffd A\U0001f30a")]),
        ("await tools.apply_patch(made(1))", [("apply_patch", None)]),
        ('text("no call")', []),
    ],
)
def test_the_calls_of_a_script_have_the_literals_that_it_passes(script: str, calls: list[tuple[str, Any]]) -> None:
    assert calls_in(script) == calls


def _read(script: Any, *texts: str, name: str = "exec") -> list[Any]:
    """The parts of a session in which a script is run and prints these texts."""
    head = "Script completed\nWall time 0.2 seconds\nOutput:\n"
    output = [{"type": "input_text", "text": text} for text in (head, *texts)]
    items = [
        {"type": "custom_tool_call", "call_id": "c", "name": name, "input": script},
        {"type": "custom_tool_call_output", "call_id": "c", "output": output},
    ]
    values = [{"timestamp": "2026-08-16T17:35:12Z", "type": "response_item", "payload": item} for item in items]
    return [part for message in without_scripts(made(DIALECT, values)) for part in message.parts]


def test_a_script_that_prints_a_text_for_each_call_makes_calls_with_results() -> None:
    run = 'const r = await tools.exec_command({cmd: "make"}); text(r.output)'
    script = f"text(await tools.apply_patch(`{PATCH}`)); {run}"
    patch, make, patched, done = _read(script, "Done!", "1 passed")
    assert (patch.name, patch.arguments, patched.text) == ("apply_patch", PATCH, "Done!")
    assert (make.name, make.arguments, done.text) == ("exec_command", {"cmd": "make"}, "1 passed")
    assert (patch.id, make.id) == (patched.id, done.id)


def test_the_commands_of_a_script_that_prints_one_text_are_one_call_after_its_other_calls() -> None:
    run = 'await tools.exec_command({cmd: "make"}); await tools.exec_command({cmd: "ls"})'
    patch, commands, patched, done = _read(f"await tools.apply_patch(`{PATCH}`); {run}", "all is made")
    assert (patch.arguments, patched.text) == (PATCH, "")
    assert commands.arguments == {"cmd": "make\nls"}
    assert done.text.endswith("all is made")
    apart = 'tools.exec_command({cmd: "make", workdir: "/srv/a"}); tools.exec_command({cmd: "ls", workdir: "/srv/b"})'
    assert _read(apart, "all is made")[0].arguments == {"cmd": "cd /srv/a\nmake\ncd /srv/b\nls"}


@pytest.mark.parametrize(
    "given", ['"ls"', "[1]", "{cmd: [1], workdir: {}}", "{cmd: 3, workdir: []}", "{}", "7", "{cmd}"]
)
def test_odd_arguments_of_commands_are_read(given: str) -> None:
    script = f'await tools.exec_command({given}); await tools.exec_command({{cmd: "ls"}}); await tools.look({given})'
    made = [part for part in _read(script, "1") if isinstance(part, ToolCall)]
    assert made
    assert all(isinstance(part.arguments, dict | str) for part in made)


def test_a_script_that_is_not_understood_and_any_other_tool_stay() -> None:
    computed = "await tools.apply_patch(made(1)); text(1)"
    assert _read(computed, "1")[0] == ToolCall(id="c", name="exec", arguments=computed)
    assert _read("tools.look()", "1", name="run")[0] == ToolCall(id="c", name="run", arguments="tools.look()")


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ("Script completed\nWall time 0.2 seconds\nOutput:\n\nmodule tides", "module tides"),
        (
            'Script completed\nWall time 1.5 seconds\nOutput:\n\n{"chunk_id":"a1","exit_code":1,"output":"1 failed"}',
            "Process exited with code 1\n1 failed",
        ),
        (
            'Script completed\nWall time 9 seconds\nOutput:\n\n{"session_id": 77, "output": "…"}',
            "Process running with session ID 77\n…",
        ),
        (
            "Script completed\nWall time 9 seconds\nOutput:\n\nhalf\nSESSION_ID=77\nexit=undefined",
            "Process running with session ID 77\nhalf\nSESSION_ID=77\nexit=undefined",
        ),
        ("Script completed\nWall time 0.2 seconds\nOutput:\n\nexit=2\nno tide", "Process exited with code 2\nno tide"),
        (
            "Script running with cell ID 20\nWall time 10.0 seconds\nOutput:\n",
            "Process running with session ID 20\n",
        ),
        ("Script failed\nWall time 0.0 seconds\nOutput:\n\nScript error:\nno such file", "Script error:\nno such file"),
        ('{"output": "a page"}', '{"output": "a page"}'),
    ],
)
def test_what_a_script_printed_stands_without_the_clients_head(printed: str, text: str) -> None:
    assert script_output(printed) == text


@given(st.text(alphabet="tols.exc({[\"'`])}, :$const=\\n+=>map;0"), st.text())
def test_any_text_is_read_as_a_script(part: str, other: str) -> None:
    for script in (f"const a = {part}; tools.exec({part}", f"tools.x({other}"):
        assert all(isinstance(name, str) for name, _ in calls_in(script))


def test_deep_and_long_scripts_are_read() -> None:
    assert calls_in(f"tools.look({'[' * 10_000}") == [("look", None)]
    assert calls_in("const a = [" * 3_000) == []
