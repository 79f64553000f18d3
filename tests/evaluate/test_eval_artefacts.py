from __future__ import annotations

from eval_builders import assistant, call, case, result, user

from compactor_cli.evaluate.measures import Measure, Share, SummaryView, artefacts_of, score_artefacts

TODOS = [
    {"content": "Write the parser", "status": "completed"},
    {"content": "Test the parser", "status": "in_progress"},
    {"content": "Ship it", "status": "pending"},
]
MIDDLE = (
    user("build it"),
    assistant("", call("Read", 1, file_path="src/app/main.py")),
    result("text", 1),
    assistant("", call("Edit", 2, file_path="src/app/parse.py", old_string="a", new_string="b")),
    result("ok", 2),
    assistant("I chose a hand-written parser instead of a grammar.", call("Bash", 3, command="make test\nls")),
    result("AssertionError: 3 != 4 in test_sum", 3, is_error=True),
    assistant("", call("TodoWrite", 4, todos=TODOS)),
    result("ok", 4),
)


def _artefacts() -> dict[Measure, tuple[str, ...]]:
    return artefacts_of(case(middle=MIDDLE).middle_events)


def test_the_middle_is_read_for_its_artefacts() -> None:
    found = _artefacts()
    assert found[Measure.EDITED] == ("src/app/parse.py",)
    assert found[Measure.READ] == ("src/app/main.py",)
    assert found[Measure.COMMANDS] == ("make test",)
    assert found[Measure.TODOS] == ("test the parser", "ship it")
    assert found[Measure.DECISIONS] == ("i chose a hand written parser instead of a grammar",)
    assert len(found[Measure.ERRORS]) == 1


def test_a_file_that_is_edited_counts_as_edited_only() -> None:
    both = (*MIDDLE, assistant("", call("Read", 5, file_path="src/app/parse.py")), result("text", 5))
    assert artefacts_of(case(middle=both).middle_events)[Measure.READ] == ("src/app/main.py",)


def test_paths_are_kept_whole_or_as_folder_and_name_on_one_line() -> None:
    found = _artefacts()
    assert score_artefacts(found, SummaryView("edited: src/app/parse.py"))[Measure.EDITED] == Share(kept=1, total=1)
    assert score_artefacts(found, SummaryView("src/app: main.py, parse.py"))[Measure.EDITED].kept == 1
    assert score_artefacts(found, SummaryView("src/app\nparse.py"))[Measure.EDITED].kept == 0
    assert score_artefacts(found, SummaryView("src/app/parse.pyc"))[Measure.EDITED].kept == 0


def test_lines_are_kept_whatever_their_markup() -> None:
    text = "- **Test** the parser\n- I chose a `hand-written` parser\n  instead of a grammar"
    found = score_artefacts(_artefacts(), SummaryView(text))
    assert found[Measure.TODOS] == Share(kept=1, total=2)
    assert found[Measure.DECISIONS] == Share(kept=1, total=1)
    assert found[Measure.COMMANDS] == Share(kept=0, total=1)


def test_a_file_that_talks_of_errors_is_no_error() -> None:
    read = (assistant("", call("Read", 1, file_path="log.py")), result("raise ValueError: this is just code", 1))
    assert artefacts_of(case(middle=read).middle_events)[Measure.ERRORS] == ()


def test_the_files_of_a_patch_are_edited() -> None:
    patch = "*** Begin Patch\n*** Update File: lib/a.rs\n@@\n-x\n+y\n*** Add File: lib/b.rs\n*** End Patch"
    patched = (assistant("", call("apply_patch", 1, input=patch)), result("ok", 1))
    assert artefacts_of(case(middle=patched).middle_events)[Measure.EDITED] == ("lib/a.rs", "lib/b.rs")
