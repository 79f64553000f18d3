"""``--keep semantic`` by a model's embeddings: against the loopback server, or on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_cases import Run, session_bytes
from llm_server.client import LlmServer


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test-0123456789")
    return home


NEAR = ("--keep", "semantic", "--focus", "off-by-one error in module_3", "-t", "2500")


def model_options(server: LlmServer, model: str = "well") -> tuple[str, ...]:
    return (*NEAR, "--set", f"embedding-model=openai/{model}", "--api-base", server.openai, "--report", "report.json")


def notes() -> list[str]:
    (transcript,) = json.loads(Path("report.json").read_text(encoding="utf-8"))["inputs"][0]["transcripts"]
    return list(transcript["notes"])


def test_what_the_embeddings_call_near_stays(work: Path, compact: Run, llm_server: LlmServer) -> None:
    ran = compact(*model_options(llm_server), "session.jsonl")
    assert (ran.code, ran.err) == (0, "")
    (request,) = llm_server.requests()
    assert request["path"] == "/v1/embeddings"
    assert "off-by-one error in module_3" in request["body"]["input"]
    assert b"off-by-one error in module_3" in ran.out
    assert notes() == []
    model = json.loads(Path("report.json").read_text(encoding="utf-8"))["model"]
    assert (model["model"], model["requests"]) == ("openai/well", 1)


def test_nothing_is_paid_twice(work: Path, compact: Run, llm_server: LlmServer) -> None:
    first = compact(*model_options(llm_server), "session.jsonl")
    second = compact(*model_options(llm_server), "session.jsonl")
    assert second.out == first.out
    assert len(llm_server.requests()) == 1


@pytest.mark.parametrize("model", ["auth", "not_found", "few.9"])
def test_where_the_model_fails_words_decide_and_the_report_has_a_warning(
    work: Path, compact: Run, llm_server: LlmServer, model: str
) -> None:
    by_words = compact(*NEAR, "session.jsonl")
    ran = compact(*model_options(llm_server, model), "--set", "max-requests=3", "session.jsonl")
    assert (ran.code, ran.out) == (0, by_words.out)
    (note,) = notes()
    assert "by words, not by meaning" in note
    assert "sk-of-this-test" not in note


def test_secrets_leave_as_placeholders(work: Path, compact: Run, llm_server: LlmServer) -> None:
    secret = b"AKIAQYLPMN5HHHFPZAM2"
    (work / "session.jsonl").write_bytes(session_bytes().replace(b"it matters to us", b"the key is " + secret))
    compact(*model_options(llm_server), "session.jsonl")
    sent = json.dumps([entry["body"] for entry in llm_server.requests()])
    assert "off-by-one" in sent
    assert secret.decode() not in sent


def test_a_look_sends_nothing(work: Path, compact: Run, llm_server: LlmServer) -> None:
    ran = compact(*model_options(llm_server), "-n", "session.jsonl")
    assert llm_server.requests() == []
    assert b"only asked when something is done" in ran.out


def test_a_model_may_write_the_summary_as_well(work: Path, compact: Run, llm_server: LlmServer) -> None:
    ran = compact(*model_options(llm_server, "well-near"), "-m", "openai/well", "session.jsonl")
    assert ran.code == 0
    assert {(entry["path"], entry["model"]) for entry in llm_server.requests()} == {
        ("/v1/embeddings", "well-near"),
        ("/v1/chat/completions", "well"),
    }


def test_an_embedding_model_wants_to_be_of_use(work: Path, compact: Run) -> None:
    ran = compact("--set", "embedding-model=openai/well", "-t", "2500", "session.jsonl")
    assert ran.code == 2
    assert "add --keep semantic" in ran.err


def test_an_unknown_way_to_keep_is_named(work: Path, compact: Run) -> None:
    ran = compact("--keep", "smrt", "-t", "2500", "session.jsonl")
    assert ran.code == 2
    assert "smart" in ran.err


def test_a_model_on_this_machine_is_asked_in_its_folder(work: Path, compact: Run) -> None:
    model2vec = pytest.importorskip("model2vec", reason="the extra [embed] is not installed: pip install '.[embed]'")
    import numpy
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["[UNK]", "off", "by", "one", "error", "module", "3", "line", "of", "value", "fix", "please"]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    vectors = numpy.eye(len(words), dtype=numpy.float32)
    model2vec.StaticModel(vectors, tokenizer).save_pretrained("near")
    ran = compact(*NEAR, "--set", "embedding-model=local:near", "session.jsonl", "--report", "report.json")
    assert ran.code == 0, ran.err
    assert b"off-by-one" in ran.out
    assert notes() == []


def test_a_model_that_is_not_on_this_machine_is_not_fetched(work: Path, compact: Run) -> None:
    pytest.importorskip("model2vec", reason="the extra [embed] is not installed: pip install '.[embed]'")
    ran = compact(*NEAR, "--set", "embedding-model=local:nobody/nothing", "session.jsonl")
    assert ran.code == 2
    assert "on this machine" in ran.err
