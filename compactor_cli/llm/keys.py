"""Keys: from the environment, where litellm finds them itself, or from a file; never shown anywhere."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from compactor_cli.llm.model_calls import NO_SECRET, Call, Secret
from compactor_cli.model.errors import UsageError
from compactor_cli.plan.models import table_entry

_LINE = re.compile(r"^(?:export\s+)?([A-Z][A-Z0-9_]*)\s*=\s*(.*)$")
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)$")
# Shorter values are words and numbers that a text may hold for other reasons.
_LEAST_CHARS = 12
# Where litellm's name is not the provider's own with _API_KEY after it.
_NAMES = {
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "huggingface": ("HUGGINGFACE_API_KEY", "HF_TOKEN"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN"),
    "fireworks_ai": ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "openai": ("OPENAI_API_KEY",),
}
# Those that answer nobody without a key of this kind. Others take credentials of a cloud, a login, or none.
KEYED_PROVIDERS = frozenset(
    "openai anthropic gemini mistral groq deepseek xai openrouter together_ai fireworks_ai cohere cerebras moonshot"
    " deepinfra dashscope codestral nvidia_nim perplexity replicate novita nebius volcengine voyage wandb".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of a key file: by litellm's names, or one bare key for ``provider`` only."""

    by_name: Mapping[str, Secret] = field(default_factory=dict)
    bare: Secret = NO_SECRET
    provider: str = ""
    warnings: tuple[str, ...] = ()

    def for_model(self, model: str) -> Secret:
        """The key for a model; empty: litellm looks in the environment. No key goes to another's provider."""
        for name in environment_names(model):
            if name in self.by_name:
                return self.by_name[name]
        return self.bare if provider_of(model) == self.provider else NO_SECRET

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """All of them, for the redactor."""
        return (*self.by_name.values(), *((self.bare,) if self.bare else ()))


NO_KEYS = Keys()


def provider_of(model: str) -> str:
    """litellm's name of a model's provider: its prefix, else what the table of models says; maybe empty."""
    prefix, slash, _ = model.partition("/")
    return prefix.lower() if slash else str(table_entry(model).get("litellm_provider", ""))


def environment_names(model: str) -> tuple[str, ...]:
    """The variables that hold the key for a model's provider, by litellm's names."""
    provider = provider_of(model)
    return _NAMES.get(provider, (f"{provider.upper().replace('-', '_')}_API_KEY",))


def missing_key(model: str, keys: Keys, environ: Mapping[str, str] = os.environ) -> str:
    """The variable that should hold the key for a model and does not; empty where nothing is known to be missing."""
    names = environment_names(model)
    if provider_of(model) not in KEYED_PROVIDERS or keys.for_model(model) or any(environ.get(n) for n in names):
        return ""
    return names[0]


def server_of(call: Call, environ: Mapping[str, str] = os.environ) -> str:
    """Who answers a call and at whose expense: the host (else the provider), and a fingerprint of the key."""
    host = urlsplit(call.api_base).netloc.rpartition("@")[2] or provider_of(call.model) or call.model
    in_environment = next((environ[name] for name in environment_names(call.model) if environ.get(name)), "")
    key = call.key.reveal() or in_environment
    return f"{host} (key {hashlib.sha256(key.encode()).hexdigest()[:8]})" if key else host


def read_keys(path: Path, model: str) -> Keys:
    """A key file: lines ``NAME=key`` under litellm's names (comments, quotes and ``export`` allowed), or one bare key.

    A bare key is for the provider of ``model``. Warns if others than the owner may read the file. Raises
    `UsageError`, which names the file and never what is in it.
    """
    try:
        mode = path.stat().st_mode
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise UsageError(f"the key file cannot be read ({reason})", place=str(path)) from None
    lines = [line for line in lines if line and not line.startswith("#")]
    open_to_others = mode & (stat.S_IRWXG | stat.S_IRWXO)
    warnings = (f"{path}: others may read this key file: chmod 600 it",) if open_to_others else ()
    named = [_LINE.match(line) for line in lines]
    if len(lines) == 1 and not named[0]:
        return Keys(bare=Secret(lines[0]), provider=provider_of(model), warnings=warnings)
    if not lines or not all(named):
        raise UsageError("the key file is not understood", place=str(path), next_step="lines NAME=key, or one bare key")
    return Keys(by_name={m[1]: Secret(m[2].strip().strip("'\"")) for m in named if m}, warnings=warnings)


def environment_secrets(environ: Mapping[str, str] = os.environ) -> tuple[Secret, ...]:
    """The values of variables named like secrets, so that a transcript which shows one does not send it out."""
    found = (value for name, value in sorted(environ.items()) if _SECRET_NAME.search(name.upper()))
    return tuple(Secret(value) for value in found if len(value) >= _LEAST_CHARS and "/" not in value[:1])
