"""Candidates: what lines that were only looked at are worth, and where long ones are cut."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conversation import answer, call, conversation, digest, ran, rendered, request, says, user

from compactor_cli.digest.analysis import analyse
from compactor_cli.digest.candidates import candidates_of
from compactor_cli.digest.salience import shortened

WORTHS = """
from conversation import conversation, request, user
from compactor_cli.digest.analysis import analyse
from compactor_cli.digest.output_lines import UnderWay
words = "harbour lantern meadow orchard pebble quarry ribbon saddle timber velvet walnut yonder".split()
lines = [" ".join(words[first::step][:6]) for step in (1, 2, 3, 5) for first in range(3)]
under_way = UnderWay(analyse(request(conversation(user(" ".join(words))))), lines)
print([under_way.worth(line) for line in lines])
"""


def test_a_line_is_worth_the_same_to_the_last_digit_in_every_process() -> None:
    printed = set()
    for seed in "1234":
        given = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent)}
        done = subprocess.run([sys.executable, "-c", WORTHS], env=given, capture_output=True, text=True, check=True)
        printed.add(done.stdout)
    (worths,) = printed
    assert len(set(worths.split(","))) > 3


def test_a_long_line_of_prose_is_cut_between_sentences() -> None:
    chances = {"store_key": 0.9, "fileId": 0.8}

    class Chances:
        def of(self, name: str) -> float:
            return chances.get(name, 0.0)

    first = "New files keep a random store_key of their own, wrapped with that of the vault."
    older = "Legacy files of before the change lack it, and theirs is derived from privateKey and fileId."
    rest = "The page of the harbour says nothing of either, nor does the handbook of the gauges. " * 4
    text = f"{first} {rest}{older}"
    assert shortened(text, Chances(), frozenset()) == f"{first} … {older}"  # type: ignore[arg-type]


def test_a_long_line_of_clauses_is_cut_between_them() -> None:
    class Chances:
        def of(self, name: str) -> float:
            return float(name in ("sync_branch", "resume_sync"))

    first, last = "overlays push to sync_branch;", "resume_sync waits for the tree, and a deleted branch never resumes."
    text = f"{first} {'the page of the harbour says nothing of either; ' * 8}{last}"
    assert shortened(text, Chances(), frozenset()) == f"{first} … {last}"  # type: ignore[arg-type]


def test_a_long_row_of_a_table_is_cut_around_its_names() -> None:
    class Chances:
        def of(self, name: str) -> float:
            return float(name == "store_key")

    text = f"| {'The page of the harbour says nothing of it. ' * 12}| store_key | {'Nor does the handbook. ' * 12}|"
    assert "store_key" in shortened(text, Chances(), frozenset())  # type: ignore[arg-type]


def test_of_a_file_that_is_written_anew_only_new_lines_are_quoted() -> None:
    old = "class GaugeTable:\n    def read_gauge(self, gauge_id):\n        return self.gauges[gauge_id]"
    new = old.replace("return self.gauges[gauge_id]", "return self.gauges.get(gauge_id, NO_GAUGE)")
    seen = (call("Read", "r", file_path="src/table.py"), answer(old, "r"))
    written = (call("Write", "w", file_path="src/table.py", content=new), answer("The file has been updated", "w"))
    text = rendered(digest(conversation(user("make it safe"), *seen, *written, says("Done.")), 2_000).summary)
    assert "get(gauge_id, NO_GAUGE)" in text
    assert not any("def read_gauge" in line for line in text.split("\n") if line.startswith("- table.py"))


def test_the_words_of_a_message_to_another_agent_are_quoted_as_its_own() -> None:
    report = (
        "Both pumps are wired.\n\n- PUMP_A runs at 40 Hz\n- PUMP_B runs at 50 Hz\n\n"
        "Note: the alarm couldn't be tested, since the siren is not installed. "
        "Ready for the review of the harbour, which was asked for in the plan."
    )
    sent = (call("SendMessage", "m", to="lead", content=report, summary="pumps wired"), answer("Message sent", "m"))
    built = ran("make", "ok built")
    text = rendered(digest(conversation(user("wire the pumps"), *built, *sent), 2_000).summary)
    assert "- SendMessage: " in text
    assert "Note: the alarm couldn't be tested, since the siren is not installed." in text
    assert "content=" not in text


def test_what_a_command_showed_before_it_ran_again_is_quoted_no_more() -> None:
    look = 'grep -rn "as any" src/gauges'
    before = ran(look, "src/gauges/home_page.tsx:60: find_gauge(sub) as any\nsrc/gauges/plan_page.tsx:3: as any")
    edit = (
        call("Edit", "e", file_path="src/gauges/home_page.tsx", old_string="as any", new_string=""),
        answer("ok", "e"),
    )
    one = digest(conversation(user("no casts"), *before, *edit, *ran(look, ""), says("Done.")), 2_000)
    assert "plan_page.tsx:3" not in rendered(one.summary)
    once = digest(conversation(user("no casts"), *before, *edit, says("Done.")), 2_000)
    assert "plan_page.tsx:3" in rendered(once.summary)


def test_a_heading_that_several_reports_have_still_heads_what_stands_under_it() -> None:
    relays = "".join(f"- `RELAY_{n}` was changed on quay {n}, since its contacts are burnt.\n" for n in range(9))
    pumps = f"## Pumps\n\n`PUMP_A` runs at 40 Hz, and `PUMP_B` at 50 Hz.\n\n{relays}\n"
    first = f"{pumps}## Alarm\n\nThe `SIREN_PIN` is not installed, so the alarm could not be tested at all.\n"
    second = f"{pumps.replace('40', '30')}## Alarm\n\nThe `LAMP_PIN` glows, which the harbour sees from the quay.\n"
    asked = [
        (call("Task", str(n), description=f"Report {n}", prompt="Do it."), answer(text, str(n)))
        for n, text in enumerate((first, second))
    ]
    text = rendered(
        digest(conversation(user("wire the pumps"), *ran("make", "ok"), *asked, says("Both reported.")), 2_000).summary
    )
    assert "Alarm: The `SIREN_PIN` is not installed" in text
    assert "Alarm: The `LAMP_PIN` glows" in text


def test_the_program_that_a_tool_runs_is_no_text_that_was_sent() -> None:
    code = "await page.fill('git commit'); " + " ".join(
        f"Step {n} looks at the gauge of the harbour." for n in range(9)
    )
    ran_it = call("mcp__node__js", "j", title="Measure the gauge", code=code), answer("done", "j")
    shown = rendered(digest(conversation(user("measure the gauge"), *ran_it, says("It is measured.")), 3_000).summary)
    assert "`git commit`: " not in shown
    assert "Step 8" not in shown


def test_of_quoted_code_a_line_that_only_returns_weighs_less_than_what_it_calls() -> None:
    code = "```go\nlevel := readGauge(northHarbour)\nreturn level, errNoGauge\n```"
    told = says(f"The gauge of the north is read as follows, and it fails where there is none:\n\n{code}\n")
    found = candidates_of(analyse(request(conversation(user("how is it read?"), told))), 1_500)
    weights = {one.text.strip(): one.weight for one in found}
    assert weights["return level, errNoGauge"] < weights["level := readGauge(northHarbour)"]


def test_an_exit_code_and_the_mode_of_a_file_are_no_answers() -> None:
    looked = ran("cat harbour.txt", "Process exited with code 0\nthe gate opens at noon")
    searched = ran('rg -n "tide_table" src', "Process exited with code 1")
    compared = ran("git diff", "diff --git a/tide.py b/tide.py\ndeleted file mode 100644\n-read_the_gauge()")
    text = rendered(digest(conversation(user("Tidy up."), *looked, *searched, *compared, says("Done.")), 900).summary)
    assert "the gate opens at noon" in text
    assert "Process exited" not in text
    assert "file mode" not in text


def test_the_help_of_a_program_a_list_of_shells_and_a_text_of_the_command_itself_tell_nothing() -> None:
    options = "".join(f"  --{one}-wide   read each harbour_gauge of the {one}\n" for one in ("harbour", "quay", "lock"))
    helped = ran("tide --help | head -40", f"Options:\n{options}")
    shells = "shellId: 3 was already stopped\n\nActive shell sessions:\n  shellId: 0, pid: 18, status: completed"
    listed = call("read_bash", "r", shellId="3"), answer(f"{shells}\n    current command: cat harbour_gauge.txt", "r")
    looked = ran('ls harbour/.tide || echo "no harbour_gauge directory here"', "no harbour_gauge directory here")
    shown = ran("cat tide.txt", "the harbour_gauge opens at noon")
    steps = (*helped, *listed, *looked, *shown)
    text = rendered(digest(conversation(user("read the harbour_gauge"), *steps, says("Read.")), 1_200).summary)
    assert "opens at noon" in text
    assert not any(part in text for part in ("--harbour-wide", "current command", ": no harbour_gauge directory"))


def test_the_routes_of_a_build_and_the_topic_of_the_agent_are_no_findings() -> None:
    routes = "".join(f"├ ○ /harbour_gauge/{name}\n" for name in ("ebb", "flow", "slack", "quay"))
    built = ran("npm run build", f"✓ Compiled the harbour_gauge\n┌ ƒ /harbour_gauge\n{routes}└ ○ /tides")
    topic = "Current topic: reading the harbour_gauge\nTopic summary: the level of the quay is read twice"
    named = call("update_topic", "u", title="Reading the harbour_gauge"), answer(topic, "u")
    text = rendered(digest(conversation(user("read the harbour_gauge"), *named, *built, says("Read.")), 1_200).summary)
    assert not any(part in text for part in ("├ ○", "Topic summary"))


def test_lines_around_what_was_searched_for_are_not_shown() -> None:
    hits = "26-  const harbour_gauge = 3;\n27:export const ensureGauge = harbour_gauge;\n28-  return harbour_gauge;"
    look = call("Grep", "g", pattern="ensureGauge", path="gauge.ts", **{"-C": 1}), answer(hits, "g")
    text = rendered(digest(conversation(user("find the harbour_gauge"), *look, says("Found.")), 1_200).summary)
    assert "27:export const ensureGauge" in text
    assert not any(part in text for part in ("26-", "28-"))


def test_what_a_query_that_failed_lists_is_no_answer() -> None:
    listed = 'Unknown JSON field: "harbour_gauge"\nAvailable fields:\n  harbour_drift\n  closed_gauge'
    looked = ran("gh issue view 12 --json harbour_gauge", listed, is_error=True)
    text = rendered(
        digest(conversation(user("is the harbour_drift closed?"), *looked, says("I look again.")), 900).summary
    )
    assert "closed_gauge" not in text.partition("## Names")[0]


def test_hits_in_the_log_of_a_session_and_entries_of_a_changelog_are_not_told() -> None:
    log = '.notes/full.jsonl:12:{"type":"assistant","text":"The store keeps the level_of_ebb in gauge.db"}'
    hits = ran("grep -rn level_of_ebb .", f"src/gauge.py:3:level_of_ebb = read()\n{log}")
    changes = call("Read", "c", file_path="CHANGELOG.md"), answer("- `level_of_ebb` is read from gauge.txt", "c")
    asked = user("where is level_of_ebb read?"), *hits, *changes, says("In src/gauge.py, by level_of_ebb.")
    told = rendered(digest(conversation(*asked), 1_200).summary).partition("## Names")[0]
    assert "src/gauge.py:3:" in told
    assert "gauge.db" not in told
    assert "gauge.txt" not in told


def test_a_note_on_a_line_of_code_is_not_told_without_it() -> None:
    text = (
        "The gauge needs a name.\n\n```\nthe gauge of the harbour_pier\n```\n(30 chars, begins with the harbour_gauge)"
    )
    one = digest(conversation(user("name the harbour_gauge"), says(text), user("and the harbour_gate?")), 900)
    assert "30 chars" not in rendered(one.summary)


def test_a_wrong_path_is_no_answer() -> None:
    wrong = answer("EISDIR: illegal operation on a directory, read 'src'", "r", is_error=True)
    asked = user("read the gauge"), call("Read", "r", file_path="src"), wrong, *ran("ls src", "gauge.py"), says("Read.")
    assert "EISDIR" not in rendered(digest(conversation(*asked), 900).summary)
