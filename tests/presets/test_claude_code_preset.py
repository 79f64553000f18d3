"""`claude-code`: Claude Code's automatic compaction, sentence by sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from preset_cases import SYSTEM, assistant, call, chat, compacted, is_stable, planned, preset, result, roles, user

from compactor_cli.cli.config import configure
from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import Settings, Size, Start
from compactor_cli.plan.tokens import counter_for
from compactor_cli.presets import load_preset

CLAUDE = preset("claude-code")
# As the window would be full.
FULL = preset("claude-code", window_tokens=30_000, output_tokens=2_000, reserve_tokens=1_000)


def configured(tmp_path: Path, name: str = "claude-code", **environ: str) -> Settings:
    return configure({"preset": name}, {"HOME": str(tmp_path), **environ}, tmp_path).settings


def long_text(tokens: int) -> str:
    return "abc" * tokens


def test_of_200_000_tokens_16_000_are_for_the_answer_and_13_000_are_a_buffer_so_it_starts_at_171_000() -> None:
    below = [SYSTEM, user(long_text(170_900)), assistant("done")]
    plan = planned(below, CLAUDE)
    assert plan.window_tokens == 184_000
    assert "171,000, where compaction starts" in plan.reason
    assert not plan.changes
    assert planned([*below, assistant(long_text(200))], CLAUDE).reason.startswith("171,")


def test_the_window_can_be_overridden_by_the_environment(tmp_path: Path) -> None:
    settings = configured(tmp_path, CLAUDE_CODE_AUTO_COMPACT_WINDOW="100000")
    assert settings.trigger.window_tokens == 100_000
    assert "71,000, where compaction starts" in planned(chat(2), settings).reason


def test_the_share_can_be_overridden_by_the_environment(tmp_path: Path) -> None:
    settings = configured(tmp_path, CLAUDE_AUTOCOMPACT_PCT_OVERRIDE="50")
    assert "92,000, where compaction starts" in planned(chat(2), settings).reason


def test_a_share_above_the_buffer_does_not_start_it_later(tmp_path: Path) -> None:
    settings = configured(tmp_path, CLAUDE_AUTOCOMPACT_PCT_OVERRIDE="99")
    assert "171,000, where compaction starts" in planned(chat(2), settings).reason


def test_disable_compact_switches_it_off_even_where_a_target_is_named(tmp_path: Path) -> None:
    settings = replace(configured(tmp_path, DISABLE_COMPACT="1"), target=Size(tokens=2_000))
    assert planned(chat(60), settings).reason == "compaction is switched off"


def test_disable_auto_compact_leaves_what_is_asked_for_by_a_target(tmp_path: Path) -> None:
    settings = configured(tmp_path, DISABLE_AUTO_COMPACT="true")
    assert settings.trigger.start is Start.ASKED
    assert not planned([SYSTEM, user(long_text(190_000)), *chat(60)[1:]], settings).changes
    assert planned(chat(60), replace(settings, target=Size(tokens=2_000))).changes


def test_no_other_preset_listens_to_these_variables(tmp_path: Path) -> None:
    assert configured(tmp_path, "hermes", DISABLE_COMPACT="1") == load_preset("hermes").settings


def test_a_switch_that_is_off_changes_nothing(tmp_path: Path) -> None:
    assert configured(tmp_path, DISABLE_COMPACT="0") == configured(tmp_path)


def test_a_value_that_cannot_be_read_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="CLAUDE_CODE_AUTO_COMPACT_WINDOW"):
        configured(tmp_path, CLAUDE_CODE_AUTO_COMPACT_WINDOW="large")


def test_the_estimate_is_a_quarter_of_the_characters_and_a_third_more() -> None:
    assert counter_for(CLAUDE.tokenizer).count("a" * 1_200) == 1_200 // 4 * 4 // 3


def test_the_result_is_a_boundary_an_acknowledgement_and_the_last_turn() -> None:
    done, after = compacted(chat(60), FULL)
    assert done.changed
    assert roles(after) == ["system", "user", "assistant", "user", "assistant", "tool", "assistant"]
    assert after[-4:] == chat(60)[-4:]


def test_the_boundary_marks_start_and_end_of_the_summary() -> None:
    _, after = compacted(chat(60), FULL)
    lines = after[1]["content"].splitlines()
    assert lines[0].startswith("[Start of the summary")
    assert lines[-1].startswith("[End of the summary")


def test_the_last_turn_can_be_the_last_three() -> None:
    _, after = compacted(chat(60), replace(FULL, keep=replace(FULL.keep, tail_turns=3)))
    assert after[-12:] == chat(60)[-12:]
    assert len(after) == 15


def test_old_tool_results_are_cleared_at_no_cost_and_no_summary_is_written_where_that_does() -> None:
    reading = [call("x", path="a.py"), result("x", long_text(28_000)), assistant("Read it.")]
    messages = [SYSTEM, user("Read a.py"), *reading, user("And now?"), assistant("Next.")]
    done, after = compacted(messages, FULL)
    assert done.plan.summary_tokens == 0
    assert done.report.pruned == {"micro": 1}
    assert after[3]["content"].startswith("[old tool result cleared: 84000 characters")
    assert after[3]["tool_call_id"] == "x"


def test_the_files_that_are_worked_on_are_restored_with_their_latest_content() -> None:
    assert CLAUDE.restore_files == 5
    body = "\n".join(f"rule_{number} = {number}" for number in range(9))
    work = [call("w", "write_file", path="rules.py", content=body), result("w", "ok"), assistant("Wrote rules.py.")]
    _, after = compacted([*chat(50), user("Write rules.py"), *work, *chat(10)[1:]], FULL)
    assert "rule_7 = 7" in after[1]["content"]


def test_the_summary_has_file_changes_decisions_and_open_items_in_numbered_sections() -> None:
    decided = assistant("I decided to keep TEXT, because the office reads the file directly.")
    later = assistant("I decided to use zoneinfo, because it needs no dependency.")
    _, after = compacted([SYSTEM, user("Keep TEXT?"), decided, later, *chat(60)[1:]], FULL)
    assert "2. Files and Code Sections:" in after[1]["content"]
    assert "4. Decisions:" in after[1]["content"]


def test_a_second_run_changes_nothing() -> None:
    assert is_stable(chat(60), FULL)
