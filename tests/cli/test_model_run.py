"""``compact -m`` against the loopback server: money, failures, threads, and runs that are killed."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pty
import signal
import subprocess
import termios
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cli_cases import Run, command, dataset_bytes, session_bytes
from llm_server.client import LlmServer

from compactor_cli.llm.model import ModelOptions
from compactor_cli.run.model_run import ModelConfig, check_setup

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test-0123456789")
    return home


def model_options(server: LlmServer, model: str = "well") -> tuple[str, ...]:
    return ("-m", f"openai/{model}", "--api-base", server.openai, "-t", "2500")


def report(path: str = "report.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return found


def test_a_model_writes_the_summary_and_the_report_counts(work: Path, compact: Run, llm_server: LlmServer) -> None:
    ran = compact(*model_options(llm_server), "session.jsonl", "--report", "report.json")
    assert (ran.code, ran.err) == (0, "")
    (transcript,) = report()["inputs"][0]["transcripts"]
    assert transcript["summary_source"] == "model"
    assert transcript["tokens_after"] <= 2_500
    assert report()["model"] | {"requests": 1, "cache_hits": 0, "unpriced": 1} == report()["model"]
    assert report()["model"]["input_tokens"] > 0
    assert compact(*model_options(llm_server), "session.jsonl", "--report", "report.json").out == ran.out
    assert report()["model"] | {"requests": 0, "cache_hits": 1} == report()["model"]
    compact(*model_options(llm_server), "--set", "cache=false", "session.jsonl")
    assert len(llm_server.requests()) == 2


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("session.jsonl", ("-i",)),
        ("rows.jsonl", ("-i", "--archive-dir", "kept/archive")),
        ("claude.jsonl", ("--append",)),
    ],
)
def test_no_model_is_paid_for_what_cannot_be_written(
    name: str, option: tuple[str, ...], work: Path, compact: Run, llm_server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "claude.jsonl").write_bytes((SAMPLES / "claude-code.jsonl").read_bytes())
    source = (work / name).read_bytes()
    allowed = os.access
    forbidden = work / name if option == ("--append",) else work
    # As for somebody else than root.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != forbidden and allowed(path, mode))
    ran = compact(*model_options(llm_server), *option, name)
    assert (ran.code, llm_server.requests()) == (3, [])
    assert "no permission to write it" in ran.err
    assert (work / name).read_bytes() == source
    assert compact("-t", "50k", *option, name).code == 0  # what needs nothing may be read-only


def test_a_provider_that_is_dead_for_all_inputs_is_stated_in_the_last_line(
    work: Path, compact: Run, llm_server: LlmServer
) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (work / name).write_bytes(session_bytes(13 + ord(name[0]) % 2))
    ran = compact(*model_options(llm_server, "auth"), "a.jsonl", "b.jsonl", "--output-dir", "out")
    assert ran.code == 0
    assert "2 of 2 summaries fell back to the digest: " in ran.err.strip().splitlines()[-1]
    assert "fell back" not in compact(*model_options(llm_server), "a.jsonl").err


def test_a_model_that_the_provider_does_not_know_is_an_error_and_asked_for_once(
    work: Path, compact: Run, llm_server: LlmServer
) -> None:
    for name in ("a.jsonl", "b.jsonl", "c.jsonl"):
        (work / name).write_bytes(session_bytes(13 + ord(name[0]) % 3))
    options = (*model_options(llm_server, "not_found"), "--set", "llm-concurrency=1")
    ran = compact(*options, "a.jsonl", "b.jsonl", "c.jsonl", "--output-dir", "out")
    assert ran.code == 2
    assert "the provider does not know the model openai/not_found: The model does not exist" in ran.err
    assert "check the name (-m)" in ran.err
    assert len(llm_server.requests("not_found")) == 1
    assert not list(work.glob("out/*"))


def test_a_reply_that_does_not_end_in_time_is_given_up(work: Path, compact: Run, llm_server: LlmServer) -> None:
    ran = compact(
        *model_options(llm_server, "hang"),
        "--set",
        "timeout=0.3",
        "--set",
        "cache=false",
        "--on-failure",
        "fail",
        "session.jsonl",
    )
    assert ran.code == 3
    assert "no reply within 0.3 seconds" in ran.err


def test_a_look_sends_nothing_and_prints_the_price(
    work: Path, compact: Run, llm_server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-this-test-0123456789")
    ran = compact("-n", "-m", "anthropic/claude-haiku-4-5", "-t", "2500", "session.jsonl", "rows.jsonl")
    lines = [line for line in ran.out.decode().splitlines() if "claude-haiku" in line]
    assert len(lines) > 2
    assert all("tokens in" in line and "about $0.0" in line for line in lines)
    assert not (work.parent / "cache").exists()
    ran = compact("-n", *model_options(llm_server), "session.jsonl", "--report", "report.json")
    assert b"openai/well would get 1 request" in ran.out
    assert report()["model"]["requests_planned"] == 1
    assert llm_server.requests() == []


def test_the_digest_instead_is_a_warning_and_with_strict_code_4(
    work: Path, compact: Run, llm_server: LlmServer
) -> None:
    ran = compact(*model_options(llm_server, "chat"), "session.jsonl", "--report", "report.json")
    assert ran.code == 0
    assert "the digest wrote the summary: " in ran.err
    assert ran.out.count(b"\n") < session_bytes().count(b"\n")
    (transcript,) = report()["inputs"][0]["transcripts"]
    assert (transcript["summary_source"], "no-summary" in transcript["fell_back"]) == ("digest", True)
    assert compact(*model_options(llm_server, "chat"), "session.jsonl", "--strict").code == 4


def test_a_part_by_the_digest_is_a_warning_and_with_strict_code_4(
    work: Path, compact: Run, compactor: Run, llm_server: LlmServer
) -> None:
    (work / "long.jsonl").write_bytes(session_bytes(90))
    run_options = (*model_options(llm_server), "--set", "max-requests=1", "--set", "cache=false", "--strict")
    ran = compact(*run_options, "long.jsonl", "--report", "report.json", "-o", "out.jsonl")
    assert (ran.code, "the digest wrote parts of the summary: of " in ran.err) == (4, True)
    (transcript,) = report()["inputs"][0]["transcripts"]
    assert (transcript["summary_source"], "limit of 1 request" in transcript["fell_back"]) == ("model", True)
    ran = compactor("batch", *run_options, "long.jsonl", "--output-dir", "out")
    assert (ran.code, "1 of 1 summaries fell back to the digest" in ran.err) == (4, True)


def test_on_failure_keep_and_fail(work: Path, compact: Run, llm_server: LlmServer) -> None:
    kept = compact(*model_options(llm_server, "auth"), "--on-failure", "keep", "session.jsonl")
    assert (kept.code, kept.out) == (0, session_bytes())
    assert "left as it was" in kept.err
    failed = compact(*model_options(llm_server, "auth"), "--on-failure", "fail", "session.jsonl", "-o", "out.jsonl")
    assert failed.code == 3
    assert not Path("out.jsonl").exists()
    assert "sk-of-this-test" not in failed.err + kept.err


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (("--set", "max-requests=1"), "limit of 1 requests"),
        (("--set", "max-tokens-sent=4k"), "tokens sent"),
        (("--max-cost", "1", "--set", "price=150,150"), "limit of 1 USD"),
    ],
)
@pytest.mark.parametrize("model", ["well", "no_usage"])
def test_limits_end_the_sending_and_not_the_run(
    work: Path, compact: Run, llm_server: LlmServer, limit: tuple[str, str], said: str, model: str
) -> None:
    ran = compact(
        *model_options(llm_server, model), *limit, "--set", "llm-concurrency=1", "rows.jsonl", "--report", "report.json"
    )
    assert ran.code == 0
    assert ran.out.count(b"\n") == 5
    assert said in ran.err
    assert len(llm_server.requests()) <= 2


@pytest.mark.parametrize("look", [(), ("-n",)])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("-m", "anthropic/claude-haiku-4-5"),
            "no key for the model anthropic/claude-haiku-4-5: set ANTHROPIC_API_KEY",
        ),
        (("-m", "openai/gpt-4o", "--set", "fallback-model=gemini/gemini-2.5-pro"), "no key for the model gemini/"),
        (
            ("-m", "openai/gpt-4o", "--set", "model-for=merge=mistral/mistral-large-latest"),
            "no key for the model mistral/",
        ),
        (("-m", "gtp-4o"), "no provider of the model gtp-4o is known: did you mean gpt-4o"),
        (("-m", "claude-haiku-9"), "no key for the model claude-haiku-9: set ANTHROPIC_API_KEY"),
        (("-m", "anthropic/claude-haiko-4-5"), "anthropic has no model anthropic/claude-haiko-4-5"),
        (("-m", "anthropic/claude-haiko-4-5"), "or name its price (--set price=IN,OUT)"),
        (("-m", "openai/gpt-4o", "--set", "fallback-model=gemini/gemini-2.5-flahs"), "did you mean gemini"),
        (("-m", "antropic/claude-haiku-4-5"), "no provider of the model antropic/claude-haiku-4-5"),
        (("-m", "openai/local", "--max-cost", "1"), "price of openai/local is not known"),
        (("-m", "openai/local", "--set", "price=1"), "“1” is no price: write US dollars per million tokens"),
        (("--keep", "semantic", "--set", "embedding-model=voyage/voyage-3.5", "--max-cost", "1"), "VOYAGE_API_KEY"),
    ],
)
def test_set_up_mistakes_are_usage_errors_before_anything_is_read(
    work: Path,
    compact: Run,
    monkeypatch: pytest.MonkeyPatch,
    look: tuple[str, ...],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_AUTH_TOKEN")) and "OPENAI" not in name]:
        monkeypatch.delenv(name)
    ran = compact(*look, *arguments, "-t", "2500", "missing.jsonl")
    assert (ran.code, said in ran.err) == (2, True), ran.err
    assert "missing.jsonl" not in ran.err


def test_a_model_newer_than_the_table_is_asked_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test")
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    wanted = ModelConfig(model_options=ModelOptions(model="openai/gpt-99-zephyr"))
    check_setup(wanted)
    assert "openai/gpt-99-zephyr" in "".join(wanted.warnings)
    assert ModelConfig(model_options=ModelOptions(model="openai/gpt-4o")).warnings == ()


def test_a_bare_server_is_asked_without_a_key_at_the_price_that_was_given(
    work: Path, compact: Run, llm_server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    run_options = (*model_options(llm_server), "--set", "price=3,15", "--max-cost", "0.50", "--report", "report.json")
    looked = compact("-n", *run_options, "session.jsonl")
    assert b"about $0.0" in looked.out
    ran = compact(*run_options, "session.jsonl", "-o", "small.jsonl")
    assert (ran.code, ran.err) == (0, "")
    spent = report()["model"]
    assert spent["requests"] == 1
    assert spent["unpriced"] == 0
    expected = (3 * spent["input_tokens"] + 15 * spent["output_tokens"]) / 1e6
    assert spent["cost_usd"] == pytest.approx(expected)


def test_a_server_that_failed_is_left_alone_until_a_reset(work: Path, compact: Run, llm_server: LlmServer) -> None:
    (work.parent / "state" / "compact").mkdir(parents=True)
    state = {"failures": 3, "opened": time.time() - 120, "probed": 0.0, "reason": "Overloaded"}
    digest = hashlib.sha256(os.environ["OPENAI_API_KEY"].encode()).hexdigest()[:8]
    server = f"127.0.0.1:{llm_server.port} (key {digest})"
    (work.parent / "state" / "compact" / "breaker.json").write_text(json.dumps({server: state}))
    ran = compact(*model_options(llm_server), "session.jsonl")
    assert "Overloaded" in ran.err
    assert "not asked for another 13 minutes; --set reset-breaker=true" in ran.err
    assert llm_server.requests() == []
    elsewhere = ("-m", "openai/well", "--api-base", llm_server.openai.replace("127.0.0.1", "localhost"), "-t", "2500")
    assert compact(*elsewhere, "session.jsonl").err == ""
    assert (
        compact(*model_options(llm_server), "--set", "cache=false", "--set", "reset-breaker=true", "session.jsonl").err
        == ""
    )
    assert compact(*model_options(llm_server), "--set", "cache=false", "session.jsonl").err == ""


def test_the_order_of_rows_and_files_is_that_of_the_input(work: Path, compact: Run, llm_server: LlmServer) -> None:
    many = compact(*model_options(llm_server), "--set", "llm-concurrency=8", "--set", "cache=false", "rows.jsonl")
    single = compact(*model_options(llm_server), "--set", "llm-concurrency=1", "rows.jsonl")
    assert many.out == single.out
    assert [json.loads(line)["id"] for line in many.out.splitlines()] == list(range(5))
    for number in range(6):
        (work / f"s{number}.jsonl").write_bytes(session_bytes(9 + number))
    files = [f"s{number}.jsonl" for number in range(6)]
    assert (
        compact(*model_options(llm_server, "slow.1"), *files, "--output-dir", "out", "--report", "report.json").code
        == 0
    )
    assert [item["path"] for item in report()["inputs"]] == files
    assert max(entry["at_once"] for entry in llm_server.requests()) > 1


def test_a_saved_plan_is_applied_without_asking_again(work: Path, compact: Run, llm_server: LlmServer) -> None:
    direct = compact(*model_options(llm_server), "session.jsonl").out
    assert compact(*model_options(llm_server), "-n", "--plan-out", "plan.jsonl", "session.jsonl").code == 0
    llm_server.control(reset=True)
    applied = compact("--plan", "plan.jsonl", "session.jsonl")
    assert applied.code == 0
    assert applied.out == direct
    assert llm_server.requests() == []


def test_a_project_may_not_ask_a_model(work: Path, compact: Run) -> None:
    for line in ('model = "openai/x"', "max-cost = 5", "redact = false", 'instructions = "a.txt"'):
        (work / "compact.toml").write_text(line, encoding="utf-8")
        ran = compact("-t", "1500", "session.jsonl")
        assert ran.code == 2
        assert "project's file may not" in ran.err


def test_options_about_models_want_a_model(work: Path, compact: Run) -> None:
    ran = compact("--max-cost", "5", "session.jsonl")
    assert ran.code == 2
    assert "add -m MODEL" in ran.err


def test_models_by_task_and_a_key_file(work: Path, compact: Run, llm_server: LlmServer) -> None:
    (work / "key").write_text("OPENAI_API_KEY=sk-from-the-file-9876543210\n", encoding="utf-8")
    (work / "key").chmod(0o600)
    (work / "long.jsonl").write_bytes(session_bytes(90))
    run_options = ("--set", "model-for=merge=openai/well-merge", "--key-file", "key", "--set", "instructions=more.txt")
    (work / "more.txt").write_text("Name every test.", encoding="utf-8")
    assert compact(*model_options(llm_server), *run_options, "long.jsonl").code == 0
    by_model = Counter(entry["model"] for entry in llm_server.requests())
    assert by_model["well-merge"] == 1
    assert by_model["well"] > 1
    assert all("sk-from-the-file" in entry["headers"]["authorization"] for entry in llm_server.requests())
    assert all("Name every test." in json.dumps(entry["body"]) for entry in llm_server.requests())
    assert compact(*model_options(llm_server), "--set", "model-for=leave=x", "session.jsonl").code == 2


def test_a_bare_key_goes_to_ones_own_server_where_the_model_has_no_provider(
    work: Path, compact: Run, compactor: Run, llm_server: LlmServer
) -> None:
    (work / "key").write_text("sk-bare-key-9876543210\n", encoding="utf-8")
    (work / "key").chmod(0o600)
    run_options = ("-m", "well", "--api-base", llm_server.openai, "-t", "2500", "--key-file", "key")
    assert compact(*run_options, "session.jsonl").code == 0
    assert compactor("batch", *run_options, "rows.jsonl", "--output-dir", "out").code == 0
    sent = {entry["headers"]["authorization"] for entry in llm_server.requests()}
    assert (len(llm_server.requests()) > 1, sent) == (True, {"Bearer sk-bare-key-9876543210"})


def test_the_cache_can_be_looked_at_and_pruned(work: Path, compact: Run, compactor: Run, llm_server: LlmServer) -> None:
    compact(*model_options(llm_server), "session.jsonl")
    assert b"replies  1" in compactor("cache", "stats").out
    assert compactor("cache", "prune", "--older-than", "1d").out == b"0 replies removed\n"
    assert compactor("cache", "prune", "--max-bytes", "0").out == b"1 replies removed\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("Bitte behebe das Problem {} in src/module_{}.py, es ist uns wichtig und die Zeit drängt.", "de"),
        ("Corrige le problème {} dans src/module_{}.py, il est important pour nous et pour les autres.", "fr"),
        ("Por favor, arregla el problema {} en src/module_{}.py, que es importante para los demás.", "es"),
        ("Пожалуйста, исправь ошибку {} в src/module_{}.py, это для нас важно.", "ru"),
        ("src/module_{1}.py 파일의 {0}번 문제를 고쳐 주세요. 우리에게 중요한 문제입니다.", "ko"),
        ("src/module_{1}.py の問題{0}を直してください。とても大切なことです。", "ja"),
    ],
)
def test_the_prompt_asks_for_the_language_of_the_conversation(
    work: Path, compact: Run, llm_server: LlmServer, words: str, code: str
) -> None:
    messages = [json.loads(line) for line in session_bytes().splitlines()]
    users = [message for message in messages if message["role"] == "user"]
    for number, message in enumerate(users):
        message["content"] = words.format(number, number)
    lines = (json.dumps(message, ensure_ascii=False) for message in messages)
    (work / "session.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert compact(*model_options(llm_server), "session.jsonl").code == 0
    sent = json.dumps(llm_server.requests()[0]["body"])
    assert f"Write in the language with the code {code}" in sent
    assert "Write in English" not in sent


def _on_a_terminal(answers: str, *arguments: str) -> tuple[int, bytes, str]:
    """Runs ``compact`` with a terminal of its own, on which these answers are typed."""
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        pass_fds=(theirs,),
        preexec_fn=take_terminal,
    ) as process:
        os.write(ours, answers.encode())
        os.set_blocking(ours, False)
        shown, is_ended = b"", False
        while True:
            try:
                shown += os.read(ours, 65_536)
            except BlockingIOError:
                # What it wrote just before its end is read once more after it.
                if is_ended:
                    break
                is_ended = process.poll() is not None
                time.sleep(0.02)
        assert process.stdout
        out = process.stdout.read()
    os.close(theirs)
    os.close(ours)
    return process.returncode, out, shown.decode(errors="replace")


def test_a_person_takes_declines_or_guides(work: Path, compact: Run, llm_server: LlmServer) -> None:
    taken = compact(*model_options(llm_server), "session.jsonl").out
    code, _, shown = _on_a_terminal(
        "yes\n", *model_options(llm_server), "--interactive", "session.jsonl", "-o", "a.jsonl"
    )
    assert (code, Path("a.jsonl").read_bytes()) == (0, taken)
    assert "take this summary?" in shown
    _on_a_terminal("n\n", *model_options(llm_server), "--interactive", "session.jsonl", "-o", "b.jsonl")
    assert Path("b.jsonl").read_bytes() == session_bytes()
    guided = (
        "tell more of module_7\ny\n",
        *model_options(llm_server),
        "--interactive",
        "session.jsonl",
        "-o",
        "c.jsonl",
    )
    assert _on_a_terminal(*guided)[0] == 0
    assert "tell more of module_7" in json.dumps(llm_server.requests()[-1]["body"])
    (work / "quiet.jsonl").write_bytes(session_bytes(4))
    code, out, _ = _on_a_terminal("y\n", "-t", "1500", "--interactive", "session.jsonl")
    assert code == 0
    assert 0 < len(out) < len(session_bytes())


def test_a_person_is_not_asked_in_the_middle_of_a_phase(work: Path) -> None:
    run_options = ("-t", "1500", "--set", "at-phase=true", "--interactive", "session.jsonl", "-o", "a.jsonl")
    code, _, shown = _on_a_terminal("", *run_options)
    assert (code, "take this summary?" in shown) == (0, False)
    with (work / "session.jsonl").open("a") as file:
        file.write(json.dumps({"role": "user", "content": "Now write the notes of the release for it."}) + "\n")
    code, _, shown = _on_a_terminal("y\n", *run_options, "-f")
    assert (code, "a new request follows a finished one" in shown) == (0, True)
    assert Path("a.jsonl").stat().st_size < len(session_bytes())


def test_what_a_person_said_holds_for_every_further_attempt(work: Path, compact: Run, llm_server: LlmServer) -> None:
    answers = "tell more of module_7\nand of the deadline\ny\n"
    run_options = (*model_options(llm_server), "--interactive", "session.jsonl", "-o", "a.jsonl")
    code, _, shown = _on_a_terminal(answers, *run_options)
    assert code == 0
    assert "summarise" in shown
    assert "the summary takes at most" in shown
    last = json.dumps(llm_server.requests()[-1]["body"])
    assert "tell more of module_7" in last
    assert "and of the deadline" in last


def test_what_a_person_asks_for_stays_where_the_tail_is_chosen(work: Path, compact: Run) -> None:
    run_options = ("-t", "3500", "--keep", "semantic", "--focus", "module_9", "--interactive", "session.jsonl")
    _on_a_terminal("y\n", *run_options, "-o", "a.jsonl")
    _on_a_terminal("module_4\ny\n", *run_options, "-o", "b.jsonl")
    (wanted,) = (line for line in session_bytes().splitlines() if b"line 0 of module 4:" in line)
    before, after = (Path(name).read_bytes().splitlines() for name in ("a.jsonl", "b.jsonl"))
    assert wanted not in before
    assert wanted in after


def test_interactive_without_a_terminal_is_refused(work: Path, spawn: Run) -> None:
    ran = spawn("-t", "1500", "--interactive", "session.jsonl", start_new_session=True)
    assert ran.code == 2
    assert "needs a terminal" in ran.err


def _folder(work: Path, files: int) -> None:
    (work / "in").mkdir()
    for number in range(files):
        (work / "in" / f"{number:03}.jsonl").write_bytes(session_bytes(6).replace(b"module_", b"m%03d_" % number))


def _tree(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.jsonl"))}


def _stopped_half_way(arguments: list[str], output: Path, files: int, number: int) -> int:
    process = subprocess.Popen(command(*arguments), stderr=subprocess.DEVNULL)
    while process.poll() is None and len(list(output.glob("*.jsonl"))) < files:
        time.sleep(0.01)
    process.send_signal(number)
    return process.wait(60)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_stopped_pays_nothing_twice(
    work: Path, compact: Run, llm_server: LlmServer, number: signal.Signals
) -> None:
    files = 40
    _folder(work, files)
    run_options = [*model_options(llm_server), "-r", "in", "--min-age", "0", "-t", "1200", "--set", "lock=false"]
    llm_server.control(answers=files // 2 + 10)  # however slow this machine is, the run is not over when it is stopped
    code = _stopped_half_way([*run_options, "--output-dir", "out"], work / "out", files // 2, number)
    llm_server.control()
    assert code == -number
    done = _tree(work / "out")
    assert files // 2 <= len(done) < files
    assert compact(*run_options, "--output-dir", "out", "-f").code == 0
    prompts = Counter(json.dumps(entry["body"]["messages"]) for entry in llm_server.requests())
    repeated = [prompt for prompt, times in prompts.items() if times > 1]
    # What was under way when the run was killed had no reply yet: it was sent, and is sent again.
    assert len(repeated) <= 8
    assert compact(*run_options, "--output-dir", "undisturbed", "--set", "cache=false").code == 0
    assert _tree(work / "out") == _tree(work / "undisturbed")
    assert done.items() <= _tree(work / "undisturbed").items()


def test_rows_pass_while_others_wait(work: Path, compact: Run, llm_server: LlmServer) -> None:
    (work / "many.jsonl").write_bytes(dataset_bytes(12, 7))
    compact(*model_options(llm_server, "slow"), "--set", "llm-concurrency=12", "many.jsonl")
    assert max(entry["at_once"] for entry in llm_server.requests()) >= 6
