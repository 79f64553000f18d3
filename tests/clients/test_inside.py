"""compact inside the clients: what they send when they compact, and what their models look up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from inside import MARKER, STEERING, Inside, inside

from compactor_cli.archive.store import Archive

__all__ = ["inside"]
WORDS = " ".join(f"cedar{number}" for number in range(300))


def _only(name: str, known: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("inside", [(name, known)], indirect=True, ids=[name])


@_only("claude", "claude-code")
def test_claude_code_one_digest_after_each_summary_and_steering_in_its_request_alone(inside: Inside) -> None:
    made = inside.made
    made.extra = ("--allowedTools", "Bash,mcp__compact__search,mcp__compact__expand")
    inside.begin()
    asked, after = inside.say("/compact")[0], inside.say("MARK-B2 SAY:ok;;")[0]
    assert (asked.count(STEERING), asked.count(MARKER)) == (1, 0)
    assert ("MOCK-NATIVE-SUMMARY" in after, after.count(MARKER), "LINE-150" in after) == (True, 1, False)
    assert inside.looked_up() == (False, True)
    made.env = {**made.env, "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "40", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"}
    summaries = 0
    for number in range(4):
        # What the server said of the sizes stays near for some turns: Claude Code compacts until it gives up.
        large = f"MARK-C{number} USAGE:150000;; {WORDS}"
        for text in inside.say(large, f"MARK-D{number} {WORDS}", is_all_well=False):
            is_asked = "Respond with TEXT ONLY" in text
            assert text.count(MARKER) == 1
            assert summaries == 0 or text.count(STEERING) == is_asked
            summaries += is_asked
    assert summaries >= 4


@_only("codex", "codex")
def test_codex_one_digest_after_each_summary_once_its_hooks_are_trusted(inside: Inside) -> None:
    limit = ("-c", "model_auto_compact_token_limit=30000")
    for trust, digests in (((), 0), (("--dangerously-bypass-hook-trust",), 1)):
        inside.made.extra = (*limit, *trust)
        inside.begin()
        for number in range(2):
            *_, after = inside.say(f"MARK-B{number} USAGE:60000;;", f"MARK-C{number} SAY:ok;;")
            assert ("MOCK-NATIVE-SUMMARY" in after, after.count(MARKER)) == (True, digests)
    assert inside.looked_up() == (False, True)


@_only("qwen", "qwen-code")
def test_qwen_code_is_steered_and_has_the_digest_with_the_next_prompt(inside: Inside) -> None:
    inside.begin()
    asked, after = inside.say("/compress")[0], inside.say("MARK-B2 SAY:ok;;")[0]
    assert (asked.count(STEERING), asked.count(MARKER)) == (1, 0)
    assert ("MOCK-NATIVE-SUMMARY" in after, after.count(MARKER), STEERING in after) == (True, 1, False)
    assert inside.looked_up() == (False, True)


@_only("pi", "pi")
def test_pi_asks_no_model_and_a_second_compaction_goes_on_from_the_first(inside: Inside) -> None:
    inside.begin()
    for number in range(2):
        inside.say(f"MARK-B{number} go on {WORDS}")
        assert inside.compact() == []
        (after,) = inside.say(f"MARK-C{number} go on")
        assert (after.count(MARKER), "LINE-150" in after) == (1, False)
        assert "Never delete the harbour table." in after
    assert inside.looked_up("search_history", "expand_history") == (False, True)


@_only("opencode", "opencode")
def test_opencode_is_steered_and_each_digest_takes_the_place_of_the_one_before(inside: Inside) -> None:
    inside.begin()
    for number in range(2):
        inside.say(f"MARK-B{number} SAY:ok;; {WORDS}")
        assert any(STEERING in text for text in inside.compact())
        after = inside.say(f"MARK-C{number} SAY:ok;;")[-1]
        assert (after.count(MARKER), STEERING in after, "LINE-150" in after) == (1, False, False)
    assert inside.looked_up() == (False, True)


@pytest.mark.parametrize("inside", [("pi", "pi"), ("opencode", "opencode")], indirect=True, ids=["pi", "opencode"])
def test_without_the_program_the_client_compacts_by_itself(inside: Inside) -> None:
    inside.begin()
    for path in Path(inside.made.home).rglob("compact.ts"):
        path.write_text(path.read_text(encoding="utf-8").replace('?? "', '?? "/missing'), encoding="utf-8")
    inside.say(f"MARK-B1 SAY:ok;; {WORDS}")
    assert inside.compact()
    after = inside.say("MARK-C1 SAY:ok;;")[-1]
    assert ("MOCK-NATIVE-SUMMARY" in after, MARKER in after) == (True, False)


@pytest.mark.parametrize("inside", [("gemini", "gemini-cli"), ("kimi-code", "kimi")], indirect=True, ids=str)
def test_where_no_hook_can_help_the_model_finds_what_is_in_the_archive(inside: Inside) -> None:
    folder = Path(inside.made.home, ".local/share/compact/archive")
    other = {"role": "user", "content": " ".join(f"LINE-{number}" for number in range(900))}
    with Archive(folder).writer() as writer:
        writer(json.dumps(other).encode())
        Archive(folder).record(replace(writer.commit(), records=1, source="other"))
    inside.say("MARK-A1 SAY:ok;;", is_new=True)
    assert inside.looked_up() == (False, True)


@pytest.mark.parametrize(
    "inside",
    [
        ("claude", "claude-code"),
        ("codex", "codex"),
        ("gemini", "gemini-cli"),
        ("kimi-code", "kimi"),
        ("opencode", "opencode"),
    ],
    indirect=True,
    ids=lambda known: known[0],
)
def test_what_is_taken_out_leaves_the_settings_as_they_were(inside: Inside) -> None:
    inside.install("--remove")
    before = inside.files()
    inside.install()
    assert inside.files() != before
    inside.install("--remove")
    assert inside.files() == before
