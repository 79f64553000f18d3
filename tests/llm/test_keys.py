"""Keys: found by litellm's names, never shown."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from compactor_cli.llm import llm
from compactor_cli.llm.model_calls import (
    KEYED_PROVIDERS,
    NO_KEYS,
    NO_SECRET,
    Call,
    Naming,
    Secret,
    environment_names,
    environment_secrets,
    missing_key,
    naming_of,
    provider_of,
    read_keys,
    server_of,
)
from compactor_cli.model.errors import UsageError

MODEL = "anthropic/claude-haiku-4-5"


def key_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "keys"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


def test_names_are_litellms(tmp_path: Path) -> None:
    text = "# mine\nANTHROPIC_API_KEY=one\n\nexport OPENAI_API_KEY='two'\nGOOGLE_API_KEY = \"three\"\n"
    keys = read_keys(key_file(tmp_path, text), MODEL, "")
    assert keys.for_model(MODEL) == Secret("one")
    assert keys.for_model("claude-haiku-4-5") == Secret("one")
    assert keys.for_model("gpt-4o-mini") == Secret("two")
    assert keys.for_model("gemini/gemini-2.5-flash") == Secret("three")
    assert keys.for_model("mistral/mistral-small-latest") == NO_SECRET
    assert not keys.warnings


def test_a_bare_key_goes_to_the_models_provider_only(tmp_path: Path) -> None:
    keys = read_keys(key_file(tmp_path, "sk-bare\n"), MODEL, "")
    assert keys.for_model(MODEL) == Secret("sk-bare")
    assert keys.for_model("openai/gpt-4o-mini") == NO_SECRET
    assert keys.secrets == (Secret("sk-bare"),)
    at_home = read_keys(key_file(tmp_path, "sk-bare\n"), "of-ones-own", "http://127.0.0.1:8000/v1")
    assert at_home.for_model("openai/of-ones-own") == Secret("sk-bare")
    assert not at_home.for_model(MODEL)


def test_others_may_not_read_it_unnoticed(tmp_path: Path) -> None:
    (warning,) = read_keys(key_file(tmp_path, "sk-bare", 0o644), MODEL, "").warnings
    assert "chmod 600" in warning
    assert "sk-bare" not in warning


@pytest.mark.parametrize("text", ["", "# nothing", "sk-one\nsk-two", "OPENAI_API_KEY=x\nwhat is this"])
def test_a_file_that_makes_no_sense_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_keys(key_file(tmp_path, text), MODEL, "")
    assert "keys" in str(caught.value)
    assert "sk-" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        read_keys(tmp_path / "nowhere", MODEL, "")


def test_a_secret_is_never_shown() -> None:
    call = Call(model=MODEL, messages=(), max_tokens=1, key=Secret("sk-hidden"))
    assert "sk-hidden" not in f"{call!r} {call.key} {call.key!s:>20} {[call.key]}"
    with pytest.raises(TypeError):
        pickle.dumps(call.key)


def test_providers() -> None:
    assert provider_of(MODEL) == provider_of("claude-haiku-4-5") == "anthropic"
    assert provider_of("openai/anything") == "openai"
    assert provider_of("nobody-knows-this") == ""


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment, which is empty at first."""
    found: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", found)
    return found


def test_the_environments_secrets_are_known_by_their_names(environ: dict[str, str]) -> None:
    environ |= {"A_API_KEY": "k" * 12, "HOME": "/home/me/somewhere", "MY_TOKEN": "short", "SSH_KEY": "/home/me/.ssh/id"}
    assert environment_secrets() == (Secret("k" * 12),)


def test_the_keys_that_are_asked_for_are_those_that_litellm_looks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    litellm = llm._litellm()
    for name in [name for name in os.environ if name.endswith(("_KEY", "_TOKEN"))]:
        monkeypatch.delenv(name)
    for provider in sorted(KEYED_PROVIDERS):
        wanted = litellm.validate_environment(model=f"{provider}/some-model")["missing_keys"]
        assert set(environment_names(f"{provider}/some-model")) & set(wanted), (provider, wanted)


def test_a_missing_key_is_named_and_a_cloud_login_is_not_asked_for(tmp_path: Path, environ: dict[str, str]) -> None:
    assert missing_key("anthropic/claude-haiku-4-5", NO_KEYS) == "ANTHROPIC_API_KEY"
    environ["ANTHROPIC_AUTH_TOKEN"] = "t"
    assert missing_key("anthropic/claude-haiku-4-5", NO_KEYS) == ""
    environ.clear()
    (tmp_path / "key").write_text("sk-bare-0123456789")
    keys = read_keys(tmp_path / "key", "anthropic/x", "")
    assert missing_key("anthropic/claude-haiku-4-5", keys) == ""
    assert missing_key("openai/gpt-4o", keys) == "OPENAI_API_KEY"
    assert missing_key("bedrock/anthropic.claude-v2", NO_KEYS) == ""
    assert missing_key("ollama/llama3", NO_KEYS) == ""


@pytest.mark.usefixtures("environ")
def test_a_server_is_its_host_and_a_fingerprint_of_the_key() -> None:
    def named(**changes: Any) -> str:
        return server_of(Call(**{"model": "openai/x", "messages": (), "max_tokens": 1, **changes}))

    first, second = named(key=Secret("one-key-0123456789")), named(key=Secret("another-key-0123456"))
    assert first != second
    assert first.startswith("openai (key ")
    assert "0123456789" not in first
    assert named(api_base="http://user:pw@127.0.0.1:8000/v1") == "127.0.0.1:8000"


@pytest.mark.usefixtures("environ")
@pytest.mark.parametrize(
    ("model", "naming"),
    [
        ("openai/gtp-4o", Naming.MISSPELT),
        ("anthropic/claude-haiko-4-5", Naming.MISSPELT),
        ("deepseek/deepseek-reasnoer", Naming.MISSPELT),
        ("anthropic/claude-haiku-4-5", Naming.KNOWN),
        ("anthropic/claude-haiku-99", Naming.UNKNOWN),
        ("openai/gpt-99-zephyr", Naming.UNKNOWN),
        ("openai/ft:gpt-4o:acme::abc", Naming.KNOWN),
        ("azure/my-gtp-4o", Naming.KNOWN),
        ("ollama/lama3", Naming.KNOWN),
    ],
)
def test_a_name_like_a_known_one_is_a_mistake_and_a_new_version_is_none(model: str, naming: Naming) -> None:
    assert naming_of(model) is naming


def test_what_a_proxy_calls_its_models_is_not_judged(environ: dict[str, str]) -> None:
    environ["OPENAI_BASE_URL"] = "http://proxy.example/v1"
    assert naming_of("openai/gtp-4o") is Naming.KNOWN
