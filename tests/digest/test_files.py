"""The section of files: what became of every file, told from tools, patches and command lines."""

from __future__ import annotations

import pytest
from conversation import (
    answer,
    call,
    conversation,
    digest,
    events_of,
    items,
    ran,
    rendered,
    request,
    says,
    texts,
    token_cache,
    user,
)

from compactor_cli.digest.analysis import analyse
from compactor_cli.digest.events import _from_directory
from compactor_cli.digest.file_contents import overwritten
from compactor_cli.digest.file_lines import file_items, state_text
from compactor_cli.digest.files import FileState, file_operations, replay
from compactor_cli.digest.language import words_of
from compactor_cli.digest.runs import runs
from compactor_cli.digest.shell import shell_operations
from compactor_cli.digest.tools import FileAction, ToolKind
from compactor_cli.model.summary import Section
from compactor_cli.model.transcript import Message

EN = words_of("en")


def states(*messages: object) -> dict[str, str]:
    return {state.path: state_text(state, EN) for state in replay(file_operations(events_of(*messages)))}  # type: ignore[arg-type]


def test_tools_are_counted_by_what_they_do() -> None:
    assert states(
        call("Read", file_path="a.py"),
        call("Edit", file_path="a.py", old_string="x", new_string="y"),
        call("Edit", file_path="a.py", old_string="y", new_string="z"),
        call("Write", file_path="b.py", content="1"),
        call("Write", file_path="b.py", content="2"),
        call("Grep", pattern="x", path="src"),
    ) == {"b.py": "created, edited", "a.py": "edited ×2"}


@pytest.mark.parametrize(
    ("old", "new"), [("old_string", "new_string"), ("oldString", "newString"), ("oldStr", "newStr")]
)
def test_edits_are_read_whatever_a_client_calls_their_texts(old: str, new: str) -> None:
    level, text = "level = read(gauge)", "level = read(gauge, at=noon)"
    there = call("edit", "1", filePath="a.py", **{old: level, new: text}), answer("done", "1")
    back = call("edit", "2", filePath="a.py", **{old: text, new: level}), answer("done", "2")
    assert file_operations(events_of(*there))[0].replaced == ((level, text),)
    assert states(*there, *back) == {"a.py": "changes thrown away"}


def test_one_call_may_edit_several_files() -> None:
    edits = [
        {"filePath": "a.py", "oldString": "low = 1", "newString": "low = 2"},
        {"filePath": "b.py", "oldString": "high = 8", "newString": "high = 9"},
    ]
    both = call("multi_replace_string_in_file", "1", replacements=edits), answer("done", "1")
    assert [(one.path, one.replaced) for one in file_operations(events_of(*both))] == [
        ("a.py", (("low = 1", "low = 2"),)),
        ("b.py", (("high = 8", "high = 9"),)),
    ]


def test_an_edit_that_failed_did_nothing() -> None:
    assert states(call("Edit", "1", file_path="a.py"), answer("no match", "1", is_error=True)) == {}


@pytest.mark.parametrize(
    "told",
    [
        "patch rejected by user",
        "[Request interrupted by user for tool use]",
        "Permission for this tool use was denied. The tool use was rejected (eg. if it was an edit …).",
    ],
)
def test_an_edit_that_the_user_turned_down_or_stopped_did_nothing(told: str) -> None:
    assert states(call("Edit", "1", file_path="a.py"), answer(told, "1")) == {}


def test_patches_name_many_files() -> None:
    patch = (
        "*** Begin Patch\n*** Add File: new.py\n+x\n*** Update File: old.py\n*** Move to: moved.py\n@@\n-a\n+b\n"
        "*** Delete File: gone.py\n*** End Patch"
    )
    assert states(call("apply_patch", input=patch)) == {
        "old.py": "edited, moved to moved.py",
        "moved.py": "edited, moved from old.py",
        "new.py": "created",
        "gone.py": "deleted",
    }


def test_command_lines_touch_files_too() -> None:
    assert states(
        ran("cat src/a.py | head -3", "x"),
        ran("sed -n '1,5p' src/b.py && sed -i 's/x/y/' src/c.py", ""),
        ran("cat > notes.md <<'EOF'\nrm -rf src/a.py > junk.txt\nEOF", ""),
        ran("git mv old.txt new.txt; rm -f gone.txt", ""),
        ran("ls -la 2>&1 >/dev/null", ""),
    ) == {
        "gone.txt": "deleted",
        "new.txt": "moved from old.txt",
        "old.txt": "moved to new.txt",
        "notes.md": "created",
        "src/c.py": "edited",
        "src/b.py": "read",
        "src/a.py": "read",
    }


def test_a_comment_in_a_command_line_writes_no_file() -> None:
    line = "mkdir logs\n# it's read from <dir>/logs/run-<id>.txt\necho a > a.txt\ncat <<EOF\nx\nEOF\n  # not > b.txt"
    assert [path for _, path, _ in shell_operations(line)] == ["a.txt"]


def test_a_script_in_a_here_document_writes_files() -> None:
    script = (
        "p='src/a.py'\ns=open(p).read()\nif ok:\n    open(p, 'w').write(s)\nPath(\"b.py\").write_text(s)\nopen('c.py')"
    )
    assert states(ran(f"python - <<'PY'\n{script}\nPY", "done")) == {"src/a.py": "edited", "b.py": "edited"}
    assert states(ran(f"cat <<'PY'\n{script}\nPY", "done")) == {}


def test_a_script_in_a_command_line_writes_files() -> None:
    edit = """with open('tide/App.tsx') as f:
    text = f.read()
old = '<Summary>Delete\\n</Summary>'
if old in text:
    text = text.replace(old, '<Summary onReRun={reRun}>\\n</Summary>')
    with open('tide/App.tsx', 'w') as f:
        f.write(text)
    print('Replaced')
else:
    print('ERROR: old text not found')"""
    line = f'python3 -c "\n{edit}\n" && echo "a > b"'
    assert states(ran(line, "Replaced")) == {"tide/App.tsx": "edited"}
    assert states(ran(line, "ERROR: old text not found")) == {}
    (one,) = file_operations(events_of(*ran(line, "Replaced")))
    assert one.replaced == (("<Summary>Delete\n</Summary>", "<Summary onReRun={reRun}>\n</Summary>"),)
    assert states(ran("node -e \"require('fs').writeFileSync('gauge.json', '{}')\"", "")) == {"gauge.json": "edited"}
    assert states(ran("python -c 'print(1 > 0); open(\"x.json\")'", "True")) == {}


def test_a_formatter_that_is_told_to_write_edits_the_files_that_it_names() -> None:
    assert states(ran("bunx prettier --write docs/tide.mdx", "docs/tide.mdx 90ms")) == {"docs/tide.mdx": "edited"}
    assert states(ran("ruff format a.py && gofmt -l b.go && prettier --check c.ts", "")) == {"a.py": "edited"}


def test_a_formatter_is_counted_as_an_edit_only_where_there_is_no_other() -> None:
    edit = call("Edit", "e", file_path="src/clock.go", old_string="a", new_string="b"), answer("ok", "e")
    formats = ran("gofmt -w src/clock.go src/tide.go", "")
    assert states(*edit, *formats, *formats) == {"src/tide.go": "edited", "src/clock.go": "edited"}


def test_a_deleted_file_that_is_written_again_is_there() -> None:
    written = (call("Write", "w", file_path="a.py", content="x"), answer("ok", "w"))
    assert states(ran("rm a.py", ""), written) == {"a.py": "created"}


def test_a_last_call_without_its_answer_may_not_have_run() -> None:
    assert states(ran("rm a.py", ""), call("Write", "w", file_path="a.py", content="x")) == {"a.py": "deleted"}


def test_changed_files_come_first_and_every_path_is_whole() -> None:
    names = [f"src/package/module_{number}.py" for number in range(12)]
    messages = [call("Read", file_path=name) for name in names] + [call("Edit", file_path=names[3])]
    items = file_items(replay(file_operations(events_of(*messages))), 400, token_cache(), EN)
    assert items[0].text == f"{names[3]} — edited"
    assert all(name in " ".join(item.text for item in items) for name in names)


def test_where_a_line_each_is_too_much_paths_share_one() -> None:
    all_states = [FileState(path=f"src/file_{n}.py", edits=1, changed=n, last=n, records=[n]) for n in range(20)]
    tight = file_items(all_states, 130, token_cache(), EN)
    assert sum(text.count("src/file_") for text in (item.text for item in tight)) >= 15
    assert sum(token_cache().item(item) for item in tight) <= 130


def test_a_sign_in_quotes_redirects_nothing_and_windows_has_a_file_for_nothing() -> None:
    assert states(
        ran("jules new \"add it before the <Chat> component.\" && echo 'a > b.txt'", ""),
        ran("netstat -an >nul", ""),
        ran('sh -c "date > stamp.txt"', ""),
    ) == {"stamp.txt": "created"}


def test_where_paths_share_a_line_deleted_files_are_not_among_the_created() -> None:
    written = [
        message
        for name in "abcdefghijklmnopqrst"
        for message in (call("Write", name, file_path=f"themes/{name}.json", content="x"), answer("ok", name))
    ]
    found = replay(file_operations(events_of(*written[:8], *ran("rm themes/d.json", ""), *written[8:])))
    lines = [item.text for item in file_items(found, 120, token_cache(), EN)]
    created = [line for line in lines if line.startswith(f"{EN.created}{EN.colon}")]
    assert any("themes/c.json" in line for line in created)
    assert not any("themes/d.json" in line for line in created)


def test_where_paths_share_a_line_the_deleted_of_a_commit_and_the_reverted_say_so() -> None:
    found = [FileState(path=f"src/{number}.py", edits=1, changed=number, records=[number]) for number in range(20)]
    for state in found[:8]:
        state.is_deleted, state.commit = True, "4f1c2aa"
    for state in found[8:14]:
        state.is_reverted = True
    lines = [item.text for item in file_items(found, 160, token_cache(), EN)]
    assert any(line.startswith("deleted, in commit 4f1c2aa: ") for line in lines)
    assert any(line.startswith("changes thrown away: ") for line in lines)
    assert not any("— changes thrown away" in line for line in lines)


def test_files_that_were_only_read_are_not_called_edited_because_a_commit_holds_them() -> None:
    found = [FileState(path=f"src/{n}.py", edits=1, changed=n, records=[n], commit="4f1c2aa") for n in range(6)]
    found += [FileState(path=f"old/{n}.py", reads=1, records=[n], commit="4f1c2aa") for n in range(6)]
    lines = [item.text for item in file_items(found, 70, token_cache(), EN)]
    assert not any("edited" in line and "old/" in line for line in lines)
    assert any(line.startswith("looked at, in commit 4f1c2aa: old/") for line in lines)


def test_a_file_is_shown_with_the_edit_that_stands_not_with_one_that_was_taken_back() -> None:
    def edit(number: str, old: str, new: str) -> tuple[Message, ...]:
        return call("Edit", number, file_path="gauges.nix", old_string=old, new_string=new), answer("ok", number)

    one, two, three = "  north\n", "  north\n  south\n", "  north\n  south\n  lock\n"
    steps = edit("1", one, two), edit("2", two, three), edit("3", three, two)
    (item,) = items(digest(conversation(user("add the south"), *steps), 3_000), Section.FILES)
    assert (item.text.partition(":")[0], item.records) == ("gauges.nix — edited ×3", (1,))


def test_a_definition_that_was_taken_out_and_put_back_is_no_addition() -> None:
    def edit(number: str, old: str, new: str) -> tuple[Message, ...]:
        return call("Edit", number, file_path="gauges.py", old_string=old, new_string=new), answer("ok", number)

    steps = (
        edit("1", "def lock(): pass\n", "def quay(): pass\n"),
        edit("2", "def quay(): pass\n", "def lock(): return\n"),
    )
    (item,) = items(digest(conversation(user("close the lock"), *steps), 3_000), Section.FILES)
    assert item.text.startswith("gauges.py — edited ×2")
    assert "+ lock()" not in item.text


def test_a_list_of_added_names_says_how_many_more_there_are() -> None:
    tests = "\n".join(f"def test_{name}():\n    pass\n" for name in "abcdefg")
    found = replay(file_operations(events_of(call("Write", file_path="test_a.py", content=tests))))
    assert file_items(found, 400, token_cache(), EN)[0].text.endswith(", test_g() … +2")


def test_where_paths_share_a_line_those_of_a_commit_are_stated_from_the_others() -> None:
    found = [
        FileState(path=f"src/module_{number}.py", edits=1, changed=number, records=[number]) for number in range(20)
    ]
    for state in found[:12]:
        state.commit = "4f1c2aa"
    lines = [item.text for item in file_items(found, 160, token_cache(), EN)]
    assert any(line.startswith("edited, in commit 4f1c2aa: src/module_") for line in lines)
    assert not any("commit" in line and "module_15" in line for line in lines)


def test_a_line_that_a_later_edit_of_its_file_replaced_is_no_fact_any_more() -> None:
    found = events_of(
        call("Read", "1", file_path="status.go"),
        answer("active := LastInteractionAt\nname := session.Name", "1"),
        call("Edit", "2", file_path="status.go", old_string="LastInteractionAt", new_string="LastActive"),
        answer("done", "2"),
        call("Edit", "3", file_path="other.go", old_string="name := session.Name", new_string="name := 1"),
        answer("done", "3"),
    )
    is_overwritten = overwritten(found, file_operations(found))
    assert is_overwritten(1, "active := LastInteractionAt")
    assert is_overwritten(2, "active := LastInteractionAt")
    assert not is_overwritten(3, "active := LastInteractionAt")
    assert not is_overwritten(1, "name := session.Name")


def test_a_line_that_a_command_showed_of_one_file_is_no_fact_after_an_edit_of_it() -> None:
    found = events_of(
        *ran("grep -n 'active' src/status.go", "437:active := LastInteractionAt"),
        *ran("grep -n 'active' src/status.go src/other.go", "src/status.go:437:active := LastInteractionAt"),
        call("Edit", "2", file_path="src/status.go", old_string="LastInteractionAt", new_string="LastActive"),
        answer("done", "2"),
    )
    is_overwritten = overwritten(found, file_operations(found))
    assert is_overwritten(1, "437:active := LastInteractionAt")
    assert not is_overwritten(3, "src/status.go:437:active := LastInteractionAt")


def test_why_an_edit_failed_stands_with_whether_the_file_was_edited_since() -> None:
    why = "Could not find the text in src/gauge_store.py: it has gauge_drift before tide_level"
    failed = call("Edit", "f", file_path="src/gauge_store.py", old_string="tide_level", new_string="b")
    mended = call("Edit", "m", file_path="src/gauge_store.py", old_string="gauge_drift", new_string="b")
    refused = failed, answer(f"<tool_use_error>{why}</tool_use_error>", "f", is_error=True)
    more = (says("Now gauge_drift and tide_level of gauge_store agree."), user("test gauge_drift and tide_level"))

    def shown(*done: Message) -> str:
        return rendered(digest(conversation(user("mend it"), *refused, *done, *more), 1_500).summary)

    assert f"failed: {why} [" in shown()
    assert f"failed: {why} → edited [" in shown(mended, answer("ok", "m"))


def test_a_file_that_is_written_anew_has_the_lines_of_its_new_text_only() -> None:
    found = events_of(
        call("Read", "1", file_path="a.py"),
        answer("limit = 1\nname = 'a'", "1"),
        call("Write", "2", file_path="a.py", content="limit = 2\nname = 'a'\n"),
        answer("done", "2"),
    )
    is_overwritten = overwritten(found, file_operations(found))
    assert is_overwritten(1, "limit = 1")
    assert not is_overwritten(1, "name = 'a'")


def test_a_changed_file_is_shown_with_a_line_that_its_last_edit_wrote_until_a_commit_states_of_it() -> None:
    edit = call(
        "Edit", "1", file_path="lock.rs", old_string="let a = 1;", new_string="let a = 1;\nlet path = default_path();"
    )
    found = replay(file_operations(events_of(edit, answer("done", "1"))))
    shown = file_items(found, 400, token_cache(), EN)
    assert [item.text for item in shown] == ["lock.rs — edited: `let path = default_path();`"]
    found[0].commit = "4f1c2aa"
    shown = file_items(found, 400, token_cache(), EN)
    assert [item.text for item in shown] == ["lock.rs — edited, in commit 4f1c2aa"]


def test_names_that_edits_define_come_before_the_lines_that_they_wrote() -> None:
    edits = [
        call(
            "Edit",
            str(n),
            file_path=f"m{n}.py",
            old_string="",
            new_string=f"def load_{n}(path):\n    return read_all(path)",
        )
        for n in range(6)
    ]
    found = replay(
        file_operations(events_of(*(part for n, one in enumerate(edits) for part in (one, answer("ok", str(n))))))
    )
    shown = [item.text for item in file_items(found, 90, token_cache(), EN)]
    assert len(shown) == 6
    assert all(f"load_{5 - place}()" in text for place, text in enumerate(shown))


def test_a_file_without_names_is_shown_with_a_line_of_what_was_written_a_comment_among_them() -> None:
    text = "{\n  // Expose the stores in dev mode only\n  gauge: useGauge,\n}"
    edit = call("Edit", "1", file_path="main.ts", old_string="{}", new_string=text)
    found = replay(file_operations(events_of(edit, answer("ok", "1"))))
    assert file_items(found, 200, token_cache(), EN)[0].text.startswith(
        "main.ts — edited: `// Expose the stores in dev mode only`"
    )
    assert file_items(found, 12, token_cache(), EN)[0].text == "main.ts — edited"


SCRIPT = """python - <<'PY'
from pathlib import Path
p = Path('drift.py')
s = p.read_text()
old = 'start = first(edges)'
p.write_text(s.replace(old, old + "\\n    edges = sorted(edges)"))
PY"""


def test_the_line_that_a_command_writes_into_a_file_is_known() -> None:
    found = file_operations(events_of(*ran("mkdir -p a && cat > drift.py <<'EOF'\nedges = sorted(edges)\nEOF", "")))
    assert [(one.path, one.lines) for one in found if "." in one.path] == [("drift.py", ("edges = sorted(edges)",))]


def test_of_a_chain_that_failed_what_stands_before_its_last_command_was_done() -> None:
    failed = "<returncode>1</returncode>\nSyntaxError: invalid syntax"
    assert states(*ran(f"cp drift.py old.py && {SCRIPT}", failed)) == {"old.py": "created"}
    assert states(*ran("sed -i 's/a/b/' drift.py", failed)) == {}


def test_a_file_that_could_not_be_written_is_not_created() -> None:
    missing = "Ran into [Errno 2] No such file or directory: '/harbour/tide.py' while trying to write to it"
    assert states(call("create", "1", path="/harbour/tide.py", file_text="x = 1"), answer(missing, "1")) == {}


def test_lines_of_earlier_edits_are_shown_as_long_as_they_stand() -> None:
    steps = [("", "limit = 3\nname = 'CAS-02'"), ("limit = 3", "limit = 45"), ("", "tries = 5")]
    edits = [
        part
        for n, (old, new) in enumerate(steps)
        for part in (call("Edit", str(n), file_path="a.py", old_string=old, new_string=new), answer("ok", str(n)))
    ]
    assert [*replay(file_operations(events_of(*edits)))[0].lines] == ["name = 'CAS-02'", "limit = 45", "tries = 5"]


def test_the_line_shown_of_a_file_is_of_its_newest_edit_and_cited_with_the_record_that_wrote_it() -> None:
    def edit(number: str, old: str, new: str) -> tuple[Message, ...]:
        return call("Edit", number, file_path="gauges.sql", old_string=old, new_string=new), answer("ok", number)

    title = "constraint title_length check (char_length(trim(title)) > 0 and char_length(title) <= 100),"
    address = "constraint address_form check (address like 'https://%')"
    steps = edit("1", "drawn date", f"drawn date\n{title}"), edit("2", title, f"{title}\n{address}")
    found = replay(file_operations(events_of(*steps)))
    one_line, both = (file_items(found, room, token_cache(), EN)[0] for room in (40, 200))
    assert (one_line.text, one_line.records) == (f"gauges.sql — edited ×2: `{address}`", (2,))
    assert (f"`{title}` · `{address}`" in both.text, both.records) == (True, (0, 2))


def test_a_line_that_goes_on_a_chain_of_calls_is_shown() -> None:
    new = 'gauges\n    .eq("harbour", harbour.id)'
    edit = call("Edit", "1", file_path="gauges.ts", old_string="gauges", new_string=new), answer("ok", "1")
    (item,) = file_items(replay(file_operations(events_of(*edit))), 200, token_cache(), EN)
    assert item.text == 'gauges.ts — edited: `.eq("harbour", harbour.id)`'


def test_of_a_text_a_line_is_shown_that_begins_a_sentence() -> None:
    new = "The gauge is read at ebb\n(see `tide.py:12`), so that the reading of the quay wall is not lost at all.\n"
    edit = (
        call("Edit", "1", file_path="plan.md", old_string="x", new_string=f"{new}which is enough."),
        answer("ok", "1"),
    )
    (item,) = file_items(replay(file_operations(events_of(*edit))), 32, token_cache(), EN)
    assert item.text == "plan.md — edited: `The gauge is read at ebb`"


def test_a_name_that_a_later_edit_takes_out_again_is_not_named_as_added() -> None:
    count, read = "def count_gauges(): ...", "def read_gauges(): ..."
    steps = [("x", f"{count}\n{read}"), (f"x\n{count}", "def count_all(): ...")]
    edits = [call("Edit", file_path="a.py", old_string=old, new_string=new) for old, new in steps]
    assert list(replay(file_operations(events_of(*edits)))[0].added) == ["read_gauges()", "count_all()"]
    anew = call("Write", file_path="a.py", content=count)
    assert list(replay(file_operations(events_of(*edits, anew)))[0].added) == ["count_gauges()"]


def test_a_numbered_line_of_a_search_that_a_later_edit_replaced_is_no_fact_any_more() -> None:
    found = events_of(
        call("Grep", "1", pattern="limit", path="/data/app/store.py"),
        answer("11-def store():\n12:    limit = 3", "1"),
        call("Edit", "2", file_path="/data/app/store.py", old_string="    limit = 3\n", new_string="    limit = 45\n"),
        answer("ok", "2"),
    )
    is_overwritten = overwritten(found, file_operations(found))
    assert is_overwritten(1, "12:    limit = 3")
    assert not is_overwritten(1, "11-def store():")


def test_a_file_for_a_try_is_told_of_only_where_there_is_no_other() -> None:
    tried = (call("Write", "t", file_path="/tmp/try.go", content="package main"), answer("ok", "t"))
    edit = (call("Edit", "e", file_path="gate.go", old_string="a", new_string="b"), answer("ok", "e"))
    assert texts(digest(conversation(user("mend it"), tried)), Section.FILES)[0].startswith("/tmp/try.go — created")
    assert "/tmp/try.go" not in "".join(texts(digest(conversation(user("mend it"), tried, edit)), Section.FILES))
    looked = (call("Read", "r", file_path="/tmp/tasks/b5db73.output"), answer("started", "r"))
    assert "b5db73" not in "".join(texts(digest(conversation(user("mend it"), looked, edit)), Section.FILES))


def test_the_paths_in_the_script_of_a_sed_command_are_no_files_that_it_edited() -> None:
    command = """sed -i '' 's|from "./config.js"|from "../config.js"|g' src/clock.ts && sed -i -e 's/a b/c.d e/' x.py"""
    assert [(action, path) for action, path, _ in shell_operations(command)] == [
        (FileAction.EDIT, "src/clock.ts"),
        (FileAction.EDIT, "x.py"),
    ]


def test_a_patch_that_was_not_applied_edited_nothing() -> None:
    patch = "*** Begin Patch\n*** Update File: src/tide.js\n@@\n-old\n+new\n*** End Patch"
    failed = "apply_patch verification failed: Failed to find expected lines in src/tide.js:\n  old"
    found = events_of(call("apply_patch", "1", input=patch), answer(failed, "1"))
    assert [one.path for one in file_operations(found)] == []
    found = events_of(call("apply_patch", "1", input=patch), answer("Success. Updated src/tide.js", "1"))
    assert [one.path for one in file_operations(found)] == ["src/tide.js"]


@pytest.mark.parametrize(
    "command",
    [
        "Set-Content tide.md 'hello'",
        "Set-Content -Encoding utf8 -Path tide.md -Value 'hello'",
        "Set-Content tide.md 'x'; Set-Content (Join-Path $out 'y.md') 'x'",
    ],
)
def test_what_powershell_writes_into_a_file_is_no_file(command: str) -> None:
    assert {path for _, path, _ in shell_operations(command)} == {"tide.md"}


def test_a_file_copied_from_a_place_in_a_variable_is_there_again() -> None:
    session = conversation(ran("rm static/tide.png", ""), ran('cp "$HOME/Tide Pictures/a.png" static/tide.png', ""))
    assert [(one.path, one.is_deleted) for one in analyse(request(session)).files] == [("static/tide.png", False)]


def test_powershell_deletes_moves_writes_and_reads_as_other_shells_do() -> None:
    command = r"Remove-Item -Force src\old.py; Move-Item src\a.py src\b.py; Get-Content -Path .\src\tide.py"
    assert list(shell_operations(command)) == [
        (FileAction.DELETE, r"src\old.py", ""),
        (FileAction.MOVE, r"src\a.py", r"src\b.py"),
        (FileAction.READ, r".\src\tide.py", ""),
    ]
    looked = call("shell", "1", command=["powershell.exe", "-Command", r"Get-Content tide.py | Select-String level"])
    assert [run.is_read_only for run in runs(events_of(looked, answer("level = 1", "1")))] == [True]


def test_a_file_that_a_command_did_not_find_was_not_read() -> None:
    found = events_of(ran("cat tide.py", "cat: tide.py: No such file or directory"), ran("cat gauge.py", "level = 1"))
    assert [one.path for one in file_operations(found)] == ["gauge.py"]


def test_paths_are_joined_to_the_folder_that_a_shell_was_called_in() -> None:
    patch = "*** Begin Patch\n*** Update File: clock.py\n@@\n-tick = 1\n+tick = 2\n*** End Patch"
    one = [
        (call("shell", command=["bash", "-lc", "sed -n '1,9p' README.md"], workdir="/w/boat/docs"), answer("# Boat")),
        (call("shell", command=["bash", "-lc", "cat README.md"], workdir="/w/boat"), answer("# All")),
        (call("shell", command=["apply_patch", patch], workdir="/w/boat/src"), answer("Success")),
    ]
    found = events_of(user("<environment_context><cwd>/w/boat</cwd></environment_context>"), user("Look."), *one)
    assert [(op.action, op.path) for op in file_operations(found)] == [
        (FileAction.READ, "docs/README.md"),
        (FileAction.READ, "README.md"),
        (FileAction.EDIT, "src/clock.py"),
    ]


def test_a_whole_path_is_not_joined_to_the_folder_that_a_shell_was_called_in() -> None:
    patch = "*** Begin Patch\n*** Update File: /w/boat/todo/clock.md\n@@\n-tick = 1\n+tick = 2\n*** End Patch"
    one = [
        (call("Bash", command="mv /w/boat/todo/tide.md /w/boat/done/tide.md", workdir="/w/boat/web"), answer("")),
        (call("shell", command=["apply_patch", patch], workdir="/w/boat/web"), answer("Success")),
    ]
    found = events_of(user("<environment_context><cwd>/w/boat</cwd></environment_context>"), user("Look."), *one)
    assert [(op.path, op.target) for op in file_operations(found, "/w/boat")] == [
        ("todo/tide.md", "done/tide.md"),
        ("todo/clock.md", ""),
    ]


def test_a_file_that_was_only_read_is_named_after_all_that_were_changed() -> None:
    edits = [call("Edit", file_path=f"src/harbour_{n}/gauge.py", old_string="a", new_string="b") for n in range(20)]
    reads = [call("Read", file_path=f"docs/chapter_{n}.md") for n in range(20)]
    found = replay(file_operations(events_of(*edits, *reads)))
    tight, roomy = (
        "\n".join(item.text for item in file_items(found, tokens, token_cache(), EN)) for tokens in (150, 900)
    )
    assert "docs/" not in tight
    assert tight.endswith(f"… {20 - tight.count('gauge.py')} more")
    assert (roomy.count("gauge.py"), "more" in roomy) == (20, False)
    assert "docs/chapter_19.md" in roomy


def test_arguments_that_are_no_object_and_folders_with_backslashes_are_read_too() -> None:
    patch = "*** Begin Patch\n*** Update File: clock.py\n@@\n-a\n+b\n*** End Patch"
    assert _from_directory("cat a.py", ToolKind.COMMAND, "src") == "cd src && cat a.py"
    moved = _from_directory({"command": patch}, ToolKind.EDIT, "C:\\work")
    assert "*** Update File: C:\\work/clock.py\n" in moved["command"]


def _added(path: str) -> tuple[Message, Message]:
    patch = f"*** Begin Patch\n*** Add File: {path}\n+export {{}}\n*** End Patch"
    return ran(f"apply_patch <<'EOF'\n{patch}\nEOF", "Success. Updated the following files:\nA " + path, tool="shell")


def test_a_file_that_one_patch_deletes_and_adds_is_written_anew() -> None:
    patch = "*** Begin Patch\n*** Delete File: a.ts\n*** Add File: a.ts\n+export {}\n*** End Patch"
    session = conversation(user("write it anew"), call("apply_patch", "p", input=patch), answer("done", "p"))
    assert [(one.is_created, one.is_deleted) for one in analyse(request(session)).files] == [(False, False)]


def test_a_path_that_begins_with_the_folder_of_the_call_is_seen_from_where_the_session_works() -> None:
    (one,) = shell_operations("cd cmd/gauge && cat >> cmd/gauge/tide_test.go << 'EOF'\nfunc TestTide() {}\nEOF")
    assert one[1] == "cmd/gauge/tide_test.go"


READ = (
    "import tide\n\n\nclass Gauge:\n    def level(self):\n        raw = self.read()\n        return raw\n\n"
    "    def name(self):\n        return 'a'\n\n\ndef main():\n    print(Gauge().level())\n"
)


def within(*edits: tuple[str, str], source: str = READ) -> list[tuple[str, ...]]:
    """The definitions that each edit of a file that was read first changes."""
    steps: list[Message] = []
    for number, (old, new) in enumerate(edits):
        steps.append(call("Edit", str(number), file_path="gauge.py", old_string=old, new_string=new))
        steps.append(answer("done", str(number)))
    found = file_operations(events_of(call("Read", "r", file_path="gauge.py"), answer(source, "r"), *steps))
    return [one.within for one in found if one.action is FileAction.EDIT]


def test_an_edit_is_placed_in_the_definition_around_its_new_line() -> None:
    assert within(
        ("        return raw\n", "        return raw / 3.28\n"),
        ("raw / 3.28", "metres(raw)"),  # as it is since the edit before
        ("    print(Gauge().level())", "    print(Gauge().name())"),
        ("    def name(self):\n        return 'a'", "    def name(self):\n        return 'b'"),
    ) == [("level()",), ("level()",), ("main()",), ("name()",)]


def test_an_edit_of_several_definitions_is_placed_in_each_of_them() -> None:
    both = ("def name(self):\n        return 'a'", "def main():\n    print(Gauge().level())")
    source = f"class Gauge:\n    {both[0]}\n\n{both[1]}\n"
    new = source.replace("'a'", "'b'").replace("level", "name")
    assert within((source, new), source=source) == [("name()", "main()")]


def test_an_edit_of_what_stands_in_no_definition_is_placed_nowhere() -> None:
    assert within(("import tide\n", "import tide\nimport sea\n"), ("not in what was read", "either")) == [(), ()]


def test_text_that_is_set_in_less_than_the_code_around_it_ends_no_definition() -> None:
    source = "func TestTide(t *testing.T) {\n\task(`first\nthen the second\n`)\n\tcheck(t)\n}\n"
    assert within(("\tcheck(t)\n}", "\tcheck(t)\n\tclose(t)\n}"), source=source) == [("TestTide()",)]
    after = "func A() {\n\ta()\n}\n\nvar text = `\n\tx\n`\n"
    assert within(("\tx\n", "\ty\n"), source=after) == [()]


def test_where_a_file_was_edited_stands_with_the_file_and_with_the_newest_step() -> None:
    edit = call("Edit", file_path="gauge.py", old_string="return raw", new_string="return metres(raw)")
    one = digest(
        conversation(
            user("give metres"), call("Read", "r", file_path="gauge.py"), answer(READ, "r"), edit, answer("ok")
        )
    )
    assert texts(one, Section.FILES) == ["gauge.py — edited: in level() · `return metres(raw)`"]
    assert any("Edit gauge.py in level()" in text for text in texts(one, Section.TASK))


def test_files_that_were_only_read_take_no_room_of_the_users_words_where_there_are_none() -> None:
    looked = [
        message
        for number in range(40)
        for message in (
            call("Read", f"r{number}", file_path=f"src/harbours/tide_{number}.py"),
            answer("x", f"r{number}"),
        )
    ]
    session = conversation(user("look at the harbours"), *looked)
    found = texts(digest(session, 1_500, covered=range(1, len(session.records))), Section.FILES)
    assert 0 < sum(text.count("tide_") for text in found) < 20


def test_a_file_that_a_tool_says_it_wrote_over_was_not_created() -> None:
    emptied = (
        call("Write", "w", file_path="REVIEW.md", content="x"),
        answer("The file REVIEW.md has been updated.", "w"),
    )
    assert states(*emptied) == {"REVIEW.md": "edited"}


def test_a_line_whose_cd_failed_edits_nothing() -> None:
    line = "cd session && sed -i 's/nil/ctx/' session_test.go && sed -i 's/a/b/' session_test.go"
    failed = ran(line, "Exit code 1\n(eval):cd:1: no such file or directory: session", is_error=True)
    assert "session_test.go" not in "\n".join(texts(digest(conversation(user("go"), failed), 3_000), Section.FILES))
    assert "session_test.go" in "\n".join(texts(digest(conversation(user("go"), ran(line, "")), 3_000), Section.FILES))


def test_functions_that_edits_took_out_are_named_unless_they_came_back() -> None:
    def edit(number: str, old: str, new: str) -> tuple[object, object]:
        return call("Edit", number, file_path="src/clock.py", old_string=old, new_string=new), answer("ok", number)

    one, two = "def read_tide(at):\n    return 1\n", "def write_tide(at):\n    return 2\n"
    out = edit("1", f"{one}\n{two}", two)
    for more, named in (((), True), (edit("2", two, f"{two}\n{one}"), False)):
        shown = texts(digest(conversation(user("drop read_tide"), *out, *more), 3_000), Section.FILES)
        assert ("− read_tide()" in shown[0]) is named


def test_a_folder_that_is_deleted_or_moved_takes_along_the_files_known_below_it() -> None:
    names = ("old/a.py", "old/b/c.py", "older.py")
    written = [(call("Write", name, file_path=name, content="x"), answer("ok", name)) for name in names]
    assert states(*written, ran("rm -rf old", "")) == {
        "old/a.py": "created, deleted",
        "old/b/c.py": "created, deleted",
        "older.py": "created",
    }
    moved = states(*written, ran("mv old new", ""))
    assert moved["new/a.py"] == "created, moved from old/a.py"
    assert moved["new/b/c.py"] == "created, moved from old/b/c.py"
    known = (call("Write", "d", file_path="lib/d.py", content="x"), answer("ok", "d"))
    assert "lib/old/a.py" in states(*written, known, ran("mv old lib", ""))


def test_a_line_of_a_file_that_was_deleted_later_is_not_there_any_more() -> None:
    found = events_of(call("Read", "r", file_path="a.py"), answer("limit = 3", "r"), ran("rm a.py", ""))
    assert overwritten(found, file_operations(found))(1, "limit = 3")


def test_a_file_that_was_moved_and_taken_out_of_the_index_is_where_it_was_moved_to() -> None:
    found = states(ran("mv todo/a.md done/a.md", ""), ran("git rm --cached todo/a.md", ""))
    assert found["todo/a.md"] == "moved to done/a.md"


def test_a_file_that_was_there_and_is_deleted_and_written_anew_was_not_created() -> None:
    read = (call("Read", "r", file_path="a.py"), answer("x", "r"))
    written = (call("Write", "w", file_path="a.py", content="y"), answer("ok", "w"))
    assert states(read, ran("rm a.py", ""), written) == {"a.py": "edited"}


def test_a_file_that_is_written_over_adds_only_what_was_not_in_it() -> None:
    old = "def open_gauge():\n    pass\n"
    read = (call("Read", "r", file_path="a.py"), answer(old, "r"))
    written = (
        call("Write", "w", file_path="a.py", content=f"{old}\n\ndef close_gauge():\n    pass\n"),
        answer("ok", "w"),
    )
    (state,) = replay(file_operations(events_of(*read, *written)))
    assert list(state.added) == ["close_gauge()"]


def test_a_name_that_was_put_for_another_stands_with_it_and_the_old_one_nowhere() -> None:
    made = (
        call("Edit", "1", file_path="clock.go", old_string="x", new_string="func ReadClock() int {\n\treturn 7\n}"),
    )
    used = (call("Edit", "2", file_path="clock.go", old_string="y := 0", new_string="y := ReadClock() + tide"),)
    renamed = call("Edit", "3", file_path="clock.go", old_string="ReadClock", new_string="Clock", replace_all=True)
    one = digest(
        conversation(
            user("shorten the name"), *made, answer("ok", "1"), *used, answer("ok", "2"), renamed, answer("ok", "3")
        )
    )
    (line,) = texts(one, Section.FILES)
    assert line == "clock.go — edited ×3: + ReadClock → Clock · `return 7`"


def shown_files(*messages: Message) -> list[str]:
    return [item.text for item in file_items(replay(file_operations(events_of(*messages))), 400, token_cache(), EN)]


def test_values_within_a_function_are_named_only_where_an_edit_defines_nothing_else() -> None:
    created = "export function merge() {\n  const left = 1\n  const right = 2\n}\n"
    wrote = call("Write", "1", file_path="merge.ts", content=created), answer("File created", "1")
    edit = call("Edit", "2", file_path="merge.ts", old_string="= 2\n", new_string="= 2\n  const sum = left\n")
    assert shown_files(*wrote)[0] == "merge.ts — created: + merge()"
    assert shown_files(*wrote, edit, answer("ok", "2"))[0].startswith("merge.ts — created, edited: + merge(), sum")


def test_a_value_that_an_edit_took_out_is_not_named_as_what_it_stands_in() -> None:
    there = "function run() {\n  const found = merge(\n    pairs,\n  )\n}\n"
    looked = call("Read", "1", file_path="run.ts"), answer(there, "1")
    taken = "  const found = merge(\n    pairs,\n  )\n"
    edit = call("Edit", "2", file_path="run.ts", old_string=taken, new_string="  merge(\n    others,\n  )\n")
    assert "found" not in shown_files(*looked, edit, answer("ok", "2"))[0]


def test_of_a_file_that_is_asked_for_among_others_with_its_errors_hidden_nothing_shows_that_it_was_there() -> None:
    hidden = ran("cat .entire/settings.json 2>/dev/null || echo none; cat hooks.json", "none\n{}")
    assert states(*hidden) == {"hooks.json": "read"}
    assert states(*ran("cat .entire/settings.json 2>/dev/null", "{}")) == {".entire/settings.json": "read"}


def test_what_is_written_into_the_folder_for_throwaway_files_of_windows_is_no_outcome() -> None:
    kept, thrown = r"D:\gauge\src\tide.py", r"C:\Users\ada\AppData\Local\Temp\agent\fix.patch"
    written = [
        message
        for number, path in enumerate((kept, thrown))
        for message in (call("Write", f"{number}", file_path=path, content="x = 1\n"), answer("ok", f"{number}"))
    ]
    one = digest(conversation(user("Make the gauge read the tide."), *written, says("It reads.")), 900)
    assert not any("fix.patch" in text for text in texts(one, Section.FILES) + texts(one, Section.TASK))
    assert any("tide.py" in text for text in texts(one, Section.FILES))
    alone = digest(conversation(user("Make a patch of the gauge."), *written[2:], says("It is made.")), 900)
    assert f"→ created {thrown}" in texts(alone, Section.TASK)[0]


def test_what_git_is_to_know_no_more_is_not_deleted() -> None:
    assert shell_operations("git rm -r --cached tide.log") == ()
    assert [one[:2] for one in shell_operations("git rm tide.log")] == [(FileAction.DELETE, "tide.log")]


def test_a_folder_with_a_blank_in_its_name_is_entered_whole() -> None:
    line = 'cd "/data/My Drive/tides" && rm old.txt'
    assert shell_operations(line) == ((FileAction.DELETE, "/data/My Drive/tides/old.txt", ""),)


def test_among_many_files_those_that_were_edited_after_they_were_made_are_apart() -> None:
    def wrote(number: int) -> tuple[Message, Message]:
        return call("Write", f"w{number}", file_path=f"src/part_{number}.py", content="x = 1"), answer(
            "ok", f"w{number}"
        )

    edit = call("Edit", "e", file_path="src/part_0.py", old_string="x", new_string="y"), answer("ok", "e")
    made = [*wrote(0), *edit, *(message for number in range(1, 40) for message in wrote(number))]
    lines = texts(digest(conversation(user("make the parts"), *made), 2_000), Section.FILES)
    (line,) = (line for line in lines if "part_0.py" in line)
    assert line.startswith("created, edited: ")


def test_files_that_were_moved_and_not_edited_are_listed_as_moved() -> None:
    made = call("Bash", "m", command=" && ".join(f"mv shots/{n}.png shots/tide-{n}.png" for n in range(9)))
    one = digest(conversation(user("name them"), made, answer("", "m")), 900)
    listed = [text for text in texts(one, Section.FILES) if "tide-3.png" in text and not text.startswith("moved to")]
    assert listed
    assert not any("edited" in text for text in listed), listed


def test_a_throwaway_place_that_is_cleared_first_is_no_deleted_file() -> None:
    assert states(ran("KB=/tmp/smoke/kb\nrm -rf $KB && mkdir -p $KB", "")) == {}
    written = ran("echo low > /tmp/tide.md", ""), ran("rm /tmp/tide.md", "")
    assert states(*written) == {"/tmp/tide.md": "created, deleted"}
    assert states(ran("rm -rf dist", "")) == {"dist": "deleted"}


def test_a_path_is_the_same_with_and_without_the_folder_that_it_starts_in() -> None:
    made = call("Write", "w", file_path="./tide.json", content="{}"), answer("ok", "w")
    assert states(*made, *ran("rm tide.json", "")) == {"tide.json": "created, deleted"}


def test_names_that_are_left_out_of_a_file_are_counted_whatever_was_done_to_them() -> None:
    body = "\n".join(f"def tide_{n}():\n    return {n}\n" for n in range(30))
    read = call("Read", "r", file_path="tide.py"), answer(body, "r")
    edits = [
        (
            call("Edit", f"e{n}", file_path="tide.py", old_string=f"    return {n}\n", new_string=f"    return -{n}\n"),
            answer("ok", f"e{n}"),
        )
        for n in range(10, 29)
    ]
    (text,) = [
        text
        for text in texts(digest(conversation(user("mend"), *read, *edits), 900), Section.FILES)
        if "in tide_" in text
    ]
    named = text.partition("in ")[2].partition(" … +")
    assert len(named[0].split(", ")) + int(named[2].split()[0].rstrip(",;")) == 19


def test_a_path_that_windows_writes_from_the_working_directory_is_read_as_any_other() -> None:
    path = r"client\pier\gauge.tsx"
    edit = call("replace", "e", file_path=path, old_string="a", new_string="b"), answer("ok", "e")
    read = call("read_file", "r", file_path="client/pier/gauge.tsx"), answer("b", "r")
    one = digest(conversation(user("mend the view"), read, edit, says("Mended."), user("go on"), says("On it.")))
    assert texts(one, Section.FILES) == ["client/pier/gauge.tsx — edited"]
    assert "→ edited gauge.tsx" in rendered(one.summary)


def test_files_that_the_client_keeps_are_no_files_of_the_work() -> None:
    kept = "/home/mara/.claude/projects/-srv-pier/5b613073/tool-results/b7vroqc8p.txt"
    note = "/home/mara/.claude/projects/-srv-pier/memory/pumps.md"
    reads = [(call("Read", n, file_path=path), answer("1\ttide", n)) for n, path in (("a", kept), ("b", note))]
    shown = "\n".join(texts(digest(conversation(user("read them"), *reads, says("They are read."))), Section.FILES))
    assert "b7vroqc8p.txt" not in shown
    assert "pumps.md" in shown
