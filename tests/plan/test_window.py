from __future__ import annotations

import subprocess
import sys

import pytest

from compactor_cli.model.errors import UsageError
from compactor_cli.plan import models
from compactor_cli.plan.models import required_window_tokens, window_tokens


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("gpt-4o", 128_000),
        ("openai/gpt-4o", 128_000),
        ("claude-opus-4-5-20251101", 200_000),
        ("anthropic/claude-haiku-4-5", 200_000),
        ("claude-haiku-4-5-20300101", 200_000),
        ("Claude-Sonnet-4-5[1m]", 200_000),
        ("claude-3-7-sonnet-20250219", 200_000),
        ("no-such-model", 0),
        ("", 0),
    ],
)
def test_windows_by_name(model: str, size: int) -> None:
    assert window_tokens(model) == size


def test_an_unknown_model_names_its_neighbours() -> None:
    with pytest.raises(UsageError, match=r"not known: did you mean .*claude-sonnet-4"):
        required_window_tokens("claude-sonet-4-5")


def test_without_the_table_no_window_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    window_tokens.cache_clear()
    monkeypatch.setattr(models, "_table", lambda: "")
    assert window_tokens("gpt-4o") == 0
    with pytest.raises(UsageError, match="--window"):
        required_window_tokens("gpt-4o")
    window_tokens.cache_clear()


def test_litellm_is_not_imported() -> None:
    code = (
        "import sys\n"
        "from compactor_cli.plan import models\n"
        "print(models.window_tokens('gpt-4o'), 'litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["128000", "False"]
