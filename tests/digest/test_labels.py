"""Labels: what the lines of an event stand under."""

from __future__ import annotations

from conversation import answer, call, conversation, digest, events_of, says, texts, user
from digest_events import event

from compactor_cli.digest.events import EventKind
from compactor_cli.digest.names import Labels, short_names
from compactor_cli.digest.tools import ToolKind
from compactor_cli.model.summary import Section

EVENTS = [
    event(EventKind.USER, "Fix it."),
    event(EventKind.CALL, "", tool=ToolKind.READ, name="Read", arguments={"file_path": "src/a.py"}),
    event(EventKind.RESULT, "def f(): ...", tool=ToolKind.READ, name="Read", call=1),
    event(EventKind.CALL, "", tool=ToolKind.COMMAND, name="Bash", arguments={"command": "pytest -q\nls"}),
    event(EventKind.CALL, "", tool=ToolKind.READ, name="Grep", arguments={"pattern": "load_", "path": "src"}),
    event(EventKind.CALL, "", name="search_flights", arguments={"query": "to Oslo"}),
    event(EventKind.RESULT, "orphan", name="Bash", call=-1),
]


def test_labels() -> None:
    labels = Labels(EVENTS)
    found = [labels[number].text for number in range(len(EVENTS))]
    assert found == ["", "src/a.py", "src/a.py", "`pytest -q …`", "Grep load_", "search_flights to Oslo", "Bash"]
    assert [labels[number].is_file for number in range(len(EVENTS))] == [False, True, True, False, False, False, False]


def test_the_only_file_that_a_command_shows_is_the_label_of_its_lines() -> None:
    shown = [
        event(EventKind.CALL, "", tool=ToolKind.COMMAND, name="bash", arguments={"command": command})
        for command in ("nl -ba src/a.py | sed -n '1,260p'", "cat a.py src/b.py", "cat a.py && rg tides src")
    ]
    assert Labels(shown)[0] == ("src/a.py", True)
    assert Labels(shown)[1] == ("a.py, b.py", False)
    assert Labels(shown)[2] == ("`cat a.py && rg tides src`", False)
    assert not Labels(EVENTS)[3].is_file


def test_a_short_name_is_the_shortest_ending_of_its_own() -> None:
    found = short_names(["src/app/main.py", "src/cli/main.py", "src/cli/util.py", "main.py", "/etc/hosts"])
    assert found == {
        "src/app/main.py": "app/main.py",
        "src/cli/main.py": "cli/main.py",
        "src/cli/util.py": "util.py",
        "main.py": "main.py",
        "/etc/hosts": "hosts",
    }


def test_a_task_that_was_given_to_another_agent_is_named_by_its_description() -> None:
    given = {"prompt": "Find how the levels are read. Look for:\n1. readers", "description": "Explore readers"}
    assert Labels(events_of(call("Task", "t", **given)))[0].text == "Task Explore readers"
    assert Labels(events_of(call("Task", "t", prompt=given["prompt"])))[0].text.endswith("Look for")


def test_a_search_that_found_nothing_is_named_with_where_it_looked() -> None:
    look = call("Grep", "g", pattern="drift", glob="*_test.go"), answer("No matches found", "g")
    assert Labels(events_of(*look))[1].text == "Grep drift (*_test.go)"
    look = call("Grep", "g", pattern="drift", glob="*_test.go"), answer("a_test.go:3: drift = 1", "g")
    assert Labels(events_of(*look))[1].text == "Grep drift"


def test_of_a_search_under_way_it_is_told_what_it_looks_for() -> None:
    looks = call("Grep", "g", pattern="type GaugeState struct", path="tide/gauge")
    found = digest(conversation(user("where is the state?"), says("I look for it."), looks))
    assert "No result seen of: Grep type GaugeState struct" in texts(found, Section.TASK)


def test_where_a_search_found_nothing_is_told_with_it() -> None:
    looks = call("Grep", "g", pattern="drift", glob="*_test.go"), answer("No matches found", "g")
    found = digest(conversation(user("is drift tested?"), *looks, says("It is not."), user("go on"), says("On it.")))
    assert "Grep drift (*_test.go): No matches found" in texts(found, Section.HISTORY)


def test_a_command_with_a_long_address_is_named_by_its_beginning() -> None:
    look = 'git ls-remote --heads https://tide.example/harbours/of-the-north/gauges.git | rg "entire|checkpoint|tide"'
    assert Labels(events_of(call("Bash", "b", command=look)))[0].text.startswith(
        "`git ls-remote --heads https://tide.example/"
    )


def test_a_search_in_one_file_is_named_with_it() -> None:
    look = call("Grep", "g", pattern="drift", path="/srv/pier/clock.py"), answer("3:drift = 1", "g")
    assert Labels(events_of(*look))[1].text == "Grep drift (/srv/pier/clock.py)"
    look = call("Grep", "g", pattern="drift", path="/srv/pier"), answer("clock.py:3:drift = 1", "g")
    assert Labels(events_of(*look))[1].text == "Grep drift"


def test_a_command_that_reads_a_file_and_searches_others_is_no_look_at_the_file() -> None:
    read, both = call("Bash", "b", command="cat go.mod"), call("Bash", "b", command="cat go.mod && rg -n tide docs")
    assert Labels(events_of(read, answer("module tide", "b")))[1].text == "go.mod"
    assert Labels(events_of(both, answer("module tide\ndocs/a.md:1:tide", "b")))[1].text == (
        "`cat go.mod && rg -n tide docs`"
    )
