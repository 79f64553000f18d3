"""Scripts that the session writes and runs: their edits are edits, they themselves are only tries."""

from __future__ import annotations

from conversation import answer, call, conversation, digest, events_of, ran, says, texts, user

from compactor_cli.digest.file_contents import with_scripts
from compactor_cli.digest.files import FileState, file_operations, replay
from compactor_cli.model.summary import Section

EDITING = """\
text = open("tide/gauge.py").read()
text = text.replace("gauge_limit = 3", "gauge_limit = 45")
open("tide/gauge.py", "w").write(text)"""


def states(*messages: object) -> dict[str, FileState]:
    events = events_of(*messages)  # type: ignore[arg-type]
    return {state.path: state for state in replay(with_scripts(file_operations(events), events))}


def written(path: str, text: str) -> tuple[object, object]:
    return ran(f"cd /repo && cat > {path} << 'EOF'\n{text}\nEOF", "")


def test_a_script_that_was_written_before_edits_the_files_that_it_writes_when_it_is_run() -> None:
    found = states(written("apply_fix.py", EDITING))
    assert "/repo/tide/gauge.py" not in found
    found = states(written("apply_fix.py", EDITING), ran("cd /repo && python apply_fix.py", "done"))
    assert (found["/repo/tide/gauge.py"].edits, [*found["/repo/tide/gauge.py"].lines]) == (1, ["gauge_limit = 45"])
    failed = ran("cd /repo && python apply_fix.py", "Exit code 1\nKeyError: 'x'", is_error=True)
    assert "/repo/tide/gauge.py" not in states(written("apply_fix.py", EDITING), failed)


def test_a_script_that_is_written_and_run_in_one_line_edits_once() -> None:
    line = f"cat > apply_fix.py << 'EOF'\n{EDITING}\nEOF\npython apply_fix.py"
    assert states(ran(line, "done"))["tide/gauge.py"].edits == 1


def test_the_line_that_a_here_document_puts_into_a_file_is_known() -> None:
    assert states(ran(f"python3 - <<'EOF'\n{EDITING}\nEOF", ""))["tide/gauge.py"].lines == {"gauge_limit = 45": 0}


def test_scripts_for_a_try_are_named_together_and_fix_nothing() -> None:
    finding = "The issue is that `count_gauges` reads one line too few, so `gauge_limit` is 3 and not 45."
    steps = (
        says(finding),
        written("check_gauges.py", "from tide.gauge import count_gauges\nprint(count_gauges(limit=45))"),
        ran("cd /repo && python check_gauges.py", "44"),
        call("Edit", "e", file_path="/repo/tide/gauge.py", old_string="gauge_limit = 3", new_string="gauge_limit = 45"),
        answer("done", "e"),
        ran("cd /repo && python -m pytest", "3 passed in 0.1s"),
        written("check_more.py", "from tide.gauge import count_gauges\nprint(count_gauges(limit=46))"),
        ran("cd /repo && python check_more.py", "45"),
    )
    one = digest(conversation(user("The last gauge of each file is missing, please look into it."), *steps))
    assert texts(one, Section.FILES) == [
        "/repo/tide/gauge.py — edited: `gauge_limit = 45`",
        "only for a try: /repo/check_more.py, /repo/check_gauges.py",
    ]
    assert texts(one, Section.ERRORS) == [f"{finding} → edited: /repo/tide/gauge.py: `gauge_limit = 45`"]
    assert not any("newest edits" in text for text in texts(one, Section.PLAN))


def test_a_script_that_the_user_names_or_that_is_all_there_is_is_no_try() -> None:
    steps = (written("tide.py", "print(1)"), ran("cd /repo && python tide.py", "1"))
    assert not states(*steps)["/repo/tide.py"].is_try
    edit = ran("sed -i s/x/y/ notes.md", "")
    assert states(*steps, edit)["/repo/tide.py"].is_try
    assert not states(user("write tide.py"), *steps, edit)["/repo/tide.py"].is_try
    submitted = ran("submit", "exit_status: submitted; submission changes /repo/tide.py, notes.md")
    assert not states(*steps, edit, submitted)["/repo/tide.py"].is_try
