"""The whole way: files to table, JSON and drawing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from compactor_cli.evaluate.measures import Measure, Share
from compactor_cli.evaluate.run_eval import CaseResult, CaseScore, EvalOptions, EvalResult, FileResult, label, run_eval
from compactor_cli.evaluate.tables import PANEL_HEIGHT, TOP, draw, render_table, to_json
from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import Size

OPTIONS = EvalOptions(
    baselines=("tail", "bare-list"),
    budgets=(Size(ratio=0.05), Size(ratio=0.1), Size(tokens=1_000)),
    rounds=(1, 3),
    resamples=100,
)
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau".split()


def _call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def _session(steps: int, shift: int) -> bytes:
    rows: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a careful programmer."},
        {"role": "user", "content": "Please make every test of the parser pass and do not touch the public interface."},
    ]
    for n in range(steps):
        word = WORDS[(n + shift) % len(WORDS)]
        noise = " ".join(WORDS[(n * k + shift) % len(WORDS)] for k in range(1, 90))
        rows += [
            _call(n, "read_file", path=f"src/{word}/part_{n % 37}.py"),
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"def run_{word}_{n % 37}(): pass\n{noise}"},
        ]
        if n % 9 == 4:
            rows.append(
                {"role": "user", "content": f"Remember that the limit of {word}_{n % 37} has to stay below 4096."}
            )
            rows.append(
                {"role": "assistant", "content": f"I keep the limit of {word}_{n % 37} because you asked for it."}
            )
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sessions")
    for number in range(2):
        (root / f"s{number}.jsonl").write_bytes(_session(150, number * 5))
    (root / "short.jsonl").write_bytes(_session(2, 0))
    (root / "other.json").write_text('{"no": "transcript"}')
    (root / "torn.jsonl").write_text('{"role": "us')
    return root


@pytest.fixture(scope="module")
def result(folder: Path) -> EvalResult:
    return run_eval([str(folder)], OPTIONS)


def test_sessions_are_cut_and_what_is_no_session_says_why(result: EvalResult) -> None:
    by_name = {Path(file.path).name: file for file in result.files}
    assert all(by_name[f"s{n}.jsonl"].cases for n in range(2))
    assert all(by_name[name].skipped for name in ("short.jsonl", "other.json", "torn.jsonl"))
    assert result.methods == ("digest", "tail", "bare-list")


def test_the_digest_passes_its_gates(result: EvalResult) -> None:
    assert result.gates_hold
    assert all(case.repeat and case.repeat.is_same for case in result.cases)


def test_every_method_is_within_every_budget(result: EvalResult) -> None:
    scores = [score for case in result.cases for score in case.scores]
    assert all(score.budget_ratio <= 1 for score in scores)
    assert {score.budget for score in scores} == {"5%", "10%", "1k"}


def test_kept_is_never_more_than_needed(result: EvalResult) -> None:
    shares = [share for case in result.cases for score in case.scores for share in score.shares.values()]
    assert all(0 <= share.kept <= share.total for share in shares)
    assert any(score.shares[Measure.USER].total for case in result.cases for score in case.scores)


def test_the_result_is_the_same_on_any_number_of_processes(folder: Path, result: EvalResult) -> None:
    options = EvalOptions(**{**{name: getattr(OPTIONS, name) for name in OPTIONS.__slots__}, "jobs": 2})
    assert to_json(run_eval([str(folder)], options)) == to_json(result)


def test_the_table_names_methods_budgets_and_checks(result: EvalResult) -> None:
    table = render_table(result)
    assert all(name in table for name in ("digest", "tail", "bare-list", "5%", "10%", "1k", "FUR", "pairs", "user"))
    assert "invented atoms" in table
    assert "state carried" in table
    assert "text carried" in table
    assert not [line for line in table.splitlines() if line != line.rstrip()]


def test_the_document_is_json_and_holds_every_case(result: EvalResult) -> None:
    document = json.loads(json.dumps(to_json(result)))
    assert len(document["cases"]) == len(result.cases)
    assert document["groups"][0]["dialect"] == "all"
    figures = document["groups"][0]["figures"]
    assert {(item["method"], item["budget"]) for item in figures} == {
        (method, budget) for method in result.methods for budget in ("5%", "10%", "1k")
    }
    assert {item["method"] for item in document["groups"][0]["digest_minus"]} == {"tail", "bare-list"}


def test_no_path_above_the_folder_is_printed(folder: Path, result: EvalResult) -> None:
    assert str(folder.parent) not in json.dumps(to_json(result))


def test_the_drawing_is_an_svg_with_a_line_for_each_method(result: EvalResult) -> None:
    root = ElementTree.fromstring(draw(result))
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"digest", "tail", "bare-list", "5%", "10%", "FUR", "pairs"} <= texts


def _scored_case(session: str, kept: int, total: int) -> CaseResult:
    shares = {measure: Share(kept=0, total=0) for measure in Measure} | {Measure.FUR: Share(kept=kept, total=total)}
    scores = (CaseScore(method="digest", budget=name, shares=shares, budget_ratio=1.0) for name in ("5%", "10%"))
    return CaseResult(
        name=session,
        session=session,
        dialect="pi",
        protocol="session",
        middle_tokens=9_000,
        scores=tuple(scores),
        gates={},
    )


def test_the_drawing_shows_the_mean_that_the_tables_quote_first() -> None:
    cases = (_scored_case("a", 1, 1), _scored_case("b", 0, 9))
    files = (FileResult(path="a", cases=cases),)
    uneven = EvalResult(options=OPTIONS, methods=("digest",), token_method="words", files=files)
    assert "10.0/50.0" in render_table(uneven)
    heights = [float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', draw(uneven))]
    assert [100 * (1 - (y - TOP) / PANEL_HEIGHT) for y in heights] == pytest.approx([10, 10], abs=0.05)


def test_nothing_to_evaluate_is_an_empty_report(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(_session(1, 0))
    nothing = run_eval([str(tmp_path)], OPTIONS)
    assert not nothing.cases
    assert render_table(nothing).startswith("0 cuts")
    assert draw(nothing).startswith("<svg")
    assert to_json(nothing)["groups"] == []


def test_limit_and_dialect_narrow_the_choice(folder: Path) -> None:
    few = EvalOptions(budgets=(Size(ratio=0.1),), rounds=(), limit=2)
    assert len(run_eval([str(folder)], few).files) == 2
    none = EvalOptions(budgets=(Size(ratio=0.1),), rounds=(), dialect="pi")
    assert not run_eval([str(folder)], none).cases


def test_a_budget_that_the_frame_takes_is_not_measured(folder: Path) -> None:
    small = EvalOptions(budgets=(Size(tokens=100), Size(tokens=400)), rounds=(), limit=0)
    budgets = {score.budget for case in run_eval([str(folder)], small).cases for score in case.scores}
    assert budgets == {"400"}


def test_unknown_baselines_are_errors_before_any_work(folder: Path) -> None:
    with pytest.raises(UsageError, match="head-tial"):
        run_eval([str(folder)], EvalOptions(baselines=("head-tial",)))


@pytest.mark.parametrize(
    ("size", "name"), [(Size(ratio=0.05), "5%"), (Size(tokens=2_000), "2k"), (Size(tokens=512), "512")]
)
def test_budgets_are_named(size: Size, name: str) -> None:
    assert label(size) == name
