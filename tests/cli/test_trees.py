"""What -r takes from a tree, what it passes over, and what it says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_cases import Run, conversation, session_bytes

from compactor_cli.archive.restore import list_file

IN_PLACE = ("-i", "-r", "tree", "--min-age", "0", "-t", "1500")


@pytest.fixture
def tree(work: Path) -> Path:
    """A session, a conversation as a document, and what else lies among such files."""
    folder = work / "tree"
    (folder / ".agent").mkdir(parents=True)
    (folder / "session.jsonl").write_bytes(session_bytes())
    (folder / "chat.json").write_text(json.dumps({"messages": conversation(12)}, indent=2))
    (folder / "run.traj").write_text(json.dumps({"trajectory": [], "history": conversation(12), "info": {}}))
    (folder / "package.json").write_text(json.dumps({"name": "tides", "version": "1.0.0"}))
    (folder / "settings.json").write_text('{"a": 1, // the first\n"b": 2}')
    (folder / "notes.txt").write_text("Not a transcript.")
    (folder / ".agent" / "hidden.jsonl").write_bytes(session_bytes())
    return folder


def test_documents_are_known_by_their_content_and_what_is_none_stays_without_a_failure(
    tree: Path, compact: Run
) -> None:
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    ran = compact(*IN_PLACE, "-v")
    assert ran.code == 0, ran.err
    changed = {path.name for path, content in before.items() if path.read_bytes() != content}
    assert changed == {"session.jsonl", "chat.json", "run.traj"}
    for name in ("package.json", "settings.json", "notes.txt", ".agent"):
        assert name in ran.err
    assert "-v shows them" not in ran.err


def test_what_was_passed_over_is_passed_over_again_and_the_rest_is_unchanged(tree: Path, compact: Run) -> None:
    assert compact(*IN_PLACE).code == 0
    again = compact(*IN_PLACE, "--report", "again.json")
    assert again.code == 0
    report = json.loads(Path("again.json").read_bytes())
    outcomes = {Path(item["path"]).name: item["outcome"] for item in report["inputs"]}
    assert outcomes.pop("package.json") == outcomes.pop("settings.json") == "skipped"
    assert set(outcomes.values()) == {"unchanged"}


def test_what_was_passed_over_fails_where_it_is_named(tree: Path, compact: Run) -> None:
    for _ in range(2):
        assert compact(*IN_PLACE).code == 0
    ran = compact("-i", "-t", "1500", tree / "package.json", tree / "session.jsonl")
    assert ran.code == 3
    assert "package.json" in ran.err


def test_metrics_and_the_page_know_of_conversations_in_files_that_were_seen_before(tree: Path, compact: Run) -> None:
    for _ in range(3):
        assert compact(*IN_PLACE, "--metrics", "m.json", "--report", "r.json", "--html", "h.html").code == 0
    report, metrics = (json.loads(Path(name).read_bytes()) for name in ("r.json", "m.json"))
    assert metrics["conversations"]["total"] == report["totals"]["conversations"]["total"] == 3
    assert metrics["tokens"]["before"] == report["totals"]["tokens_before"]
    assert "3 conversations" in Path("h.html").read_text()


def test_a_file_that_was_no_transcript_is_taken_when_it_has_become_one(tree: Path, compact: Run) -> None:
    assert compact(*IN_PLACE).code == 0
    package = tree / "package.json"
    package.write_text(json.dumps({"messages": conversation(12)}))
    before = package.read_bytes()
    assert compact(*IN_PLACE).code == 0
    assert package.read_bytes() != before


def test_hidden_folders_are_taken_when_asked_for_but_never_the_archive(tree: Path, compact: Run) -> None:
    hidden = tree / ".agent" / "hidden.jsonl"
    before = hidden.read_bytes()
    assert compact(*IN_PLACE, "--hidden").code == 0
    assert hidden.read_bytes() != before
    kept = {path: path.read_bytes() for path in tree.rglob(".transcripts/**/*") if path.is_file()}
    assert kept
    assert compact(*IN_PLACE, "--hidden").code == 0
    assert kept == {path: path.read_bytes() for path in tree.rglob(".transcripts/**/*") if path.is_file()}


def test_an_archive_in_a_tree_stays_as_it_is_whoever_named_it(tree: Path, compact: Run, compactor: Run) -> None:
    originals = tree / "originals"
    assert compact(*IN_PLACE, "--archive-dir", originals).code == 0
    kept = {path: path.read_bytes() for path in originals.rglob("*") if path.is_file()}
    assert kept
    ran = compact(*IN_PLACE, "-t", "600", "-v")
    assert (ran.code, f"{originals.relative_to(Path.cwd())}: passed over" in ran.err) == (0, True)
    assert kept == {path: path.read_bytes() for path in originals.rglob("*") if path.is_file()}
    assert b"originals" not in compactor("stats", "-r", tree).out


@pytest.mark.parametrize("left", ["notes.txt", "package.json", ".agent/hidden.jsonl"])
def test_a_tree_without_a_transcript_is_an_error_that_says_what_was_passed_over(
    left: str, tree: Path, compact: Run
) -> None:
    for path in [path for path in tree.rglob("*") if path.is_file() and path != tree / left]:
        path.unlink()
    ran = compact("-r", "tree", "--output-dir", "out")
    assert ran.code == 2
    assert "no transcript is below tree" in ran.err
    assert "1 name passed over" in ran.err or ".agent" not in left


def test_stats_of_a_tree_know_documents_by_their_content_too(tree: Path, compactor: Run) -> None:
    ran = compactor("stats", "-r", "tree", "--json")
    assert ran.code == 0, ran.err
    names = {Path(json.loads(line)["path"]).name for line in ran.out.splitlines()}
    assert names == {"session.jsonl", "chat.json", "run.traj"}


def test_a_name_that_may_not_be_looked_at_fails_alone_and_the_other_inputs_are_done(tree: Path, compact: Run) -> None:
    # Of root, too, who may look into every folder.
    nobodys = f"tree/{'x' * 300}.jsonl"
    ran = compact("-t", "1500", nobodys, str(tree / "session.jsonl"), "--output-dir", "out")
    assert ran.code == 3
    assert f"{nobodys}: cannot be read (File name too long): check the file system" in ran.err
    assert list(Path("out").rglob("session.jsonl"))


def test_an_archive_that_may_not_be_looked_at_hides_no_other(tree: Path, compact: Run, compactor: Run) -> None:
    assert compact(*IN_PLACE).code == 0
    known = list_file()
    known.write_bytes(f"/{'x' * 300}/.transcripts\n".encode() + known.read_bytes())
    ran = compactor("restore", str(tree / "session.jsonl"), "-o", "-")
    assert (ran.code, ran.out) == (0, session_bytes()), ran.err


def test_an_empty_name_is_refused_and_not_taken_for_the_folder_of_the_run(tree: Path, compact: Run) -> None:
    before = {path: path.read_bytes() for path in Path().rglob("*.json*")}
    ran = compact("-i", "-r", "", "--min-age", "0", "-t", "1500")
    assert (ran.code, ran.err) == (
        2,
        "compact: an operand is empty: check where its name comes from; . is this folder\n",
    )
    assert {path: path.read_bytes() for path in Path().rglob("*.json*")} == before
