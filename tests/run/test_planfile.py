"""Plan files: what is saved is what is read."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.model.plan import Action, Edit, Mode, Plan, Span, Tier
from compactor_cli.model.settings import Settings, Size
from compactor_cli.run.documents import faults, header_line, plan_line, read_plan_file

SETTINGS = Settings(target=Size(ratio=0.25), focus="auth.py")

texts = st.text(st.characters(exclude_categories=[]), max_size=30)
plans = st.builds(
    Plan,
    transcript_sha256=st.integers(0, 2**256 - 1).map(lambda number: f"{number:064x}"),
    fingerprint=st.just("0123456789abcdef"),
    spans=st.lists(
        st.builds(Span, start=st.integers(0, 9), stop=st.integers(0, 9), action=st.sampled_from(Action), name=texts)
    ).map(tuple),
    edits=st.lists(st.builds(Edit, record=st.integers(0, 9), part=st.integers(0, 9), text=texts)).map(tuple),
    tier=st.sampled_from(Tier),
    mode=st.sampled_from(Mode),
    notes=st.lists(texts).map(tuple),
    tokens_before=st.integers(0, 10**9),
)


@given(plan=plans, summary=texts)
def test_a_plan_file_holds_what_was_saved(plan: Plan, summary: str, tmp_path_factory: object) -> None:
    folder: Path = tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    path = folder / "plan.jsonl"
    path.write_bytes(header_line(SETTINGS) + plan_line("a.jsonl", plan, summary))
    for line in path.read_bytes().splitlines():
        assert faults("plan", json.loads(line)) == ()
    found = read_plan_file(str(path))
    assert found.settings == SETTINGS
    assert found.by_sha256[plan.transcript_sha256].plan == plan
    assert found.by_sha256[plan.transcript_sha256].summary == summary
