"""One call of a model, its reply and its failures as values; its price, its provider and its key.

No failure holds a key: the provider's words are scrubbed before they get here. Prices and providers come from the table
in litellm's wheel, read as a file: litellm is not imported.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import field
from difflib import SequenceMatcher
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from compactor_cli.model.errors import UsageError
from compactor_cli.model.value import dataclass
from compactor_cli.plan.models import models_of, table_entry, window_tokens

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per token."""

    input_usd: float
    output_usd: float
    cached_usd: float  # for tokens that the provider has in its prompt cache

    def cost_usd(self, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """The price of a call; ``cached_tokens`` are among ``input_tokens``."""
        fresh = max(0, input_tokens - cached_tokens)
        return fresh * self.input_usd + cached_tokens * self.cached_usd + output_tokens * self.output_usd


def read_price(text: str) -> Price | None:
    """A price as people write it: US dollars per million tokens, ``IN,OUT``; None if empty. Raises `UsageError`."""
    if not text:
        return None
    try:
        input_usd, output_usd = (float(part) / _MILLION for part in text.split(","))
    except ValueError:
        input_usd = output_usd = -1.0
    if not (0 <= input_usd < float("inf") and 0 <= output_usd < float("inf")):
        advice = "write US dollars per million tokens: --set price=0.15,0.60"
        raise UsageError(f"“{text}” is no price", next_step=advice, place="price")
    return Price(input_usd=input_usd, output_usd=output_usd, cached_usd=input_usd)


@lru_cache(maxsize=64)
def price_of(model: str) -> Price | None:
    """The price of a model in litellm's table, found as `table_entry` finds it; None if unknown."""
    entry = table_entry(model)
    input_usd, output_usd = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if not isinstance(input_usd, int | float) or not isinstance(output_usd, int | float):
        return None
    cached = entry.get("cache_read_input_token_cost")
    cached_usd = cached if isinstance(cached, int | float) else input_usd
    return Price(input_usd=input_usd, output_usd=output_usd, cached_usd=cached_usd)


def batch_price_of(model: str) -> Price | None:
    """The price of a model in a batch job if the table has it, else its usual one, an upper bound; None if unknown."""
    entry, price = table_entry(model), price_of(model)
    input_usd, output_usd = (entry.get(f"{way}_cost_per_token_batches") for way in ("input", "output"))
    if price is None or not isinstance(input_usd, int | float) or not isinstance(output_usd, int | float):
        return price
    return Price(input_usd=input_usd, output_usd=output_usd, cached_usd=input_usd)


# English and code have 3 to 4 bytes a token, so that this errs on the side of too many tokens.
BYTES_PER_TOKEN = 3


class Speaker(StrEnum):
    """Who a message is from. A transcript is quoted inside one message of USER, never as turns of its own."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of a prompt."""

    speaker: Speaker
    text: str
    is_redacted: bool = False  # everything in it went through the redactor of the transcript


class Wanted(StrEnum):
    """What a call asks for."""

    TEXT = "text"
    VECTORS = "vectors"  # an embedding for the text of each message


class Secret:
    """A text that is never shown: not by ``repr``, ``str``, formatting, pickling or a traceback's locals."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one call that needs it."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return "Secret(…)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        if self._text:
            raise TypeError("a secret is not written anywhere")
        return Secret, ("",)


NO_SECRET = Secret("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a model is asked, and how."""

    model: str  # a name as litellm knows it: ``anthropic/claude-haiku-4-5``
    messages: tuple[ChatMessage, ...]
    max_tokens: int
    temperature: float = 0.0
    api_base: str = ""
    key: Secret = NO_SECRET  # empty: litellm looks in the environment
    price: Price | None = None
    timeout_seconds: float = 600.0  # for the whole reply
    max_reply_bytes: int = 0  # of the reply's text; 0: no limit
    input_tokens: int = 0  # the size of the prompt as the caller counted it, if it did; models may count more
    prompt_version: str = ""  # names the wording of the prompt; part of the key in the reply cache
    wanted: Wanted = Wanted.TEXT
    extra: Mapping[str, Any] = field(default_factory=dict)  # passed to litellm as it is; part of the cache's key
    about: str = ""  # the hash of the transcript, for reports of the call
    is_repeat: bool = False  # an earlier one failed or its reply was refused; not part of the cache's key

    @property
    def known_price(self) -> Price | None:
        """The price that the user gave, else that of the table; None if neither knows it."""
        return self.price or price_of(self.model)

    @property
    def expected_input_tokens(self) -> int:
        """Tokens of the prompt, as counted by the caller or estimated from its bytes, whichever is more."""
        sizes = (len(message.text.encode(errors="replace")) for message in self.messages)
        return max(self.input_tokens, sum(sizes) // BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered. A reply from the cache has the tokens and the cost of when it was made."""

    text: str  # where vectors were wanted, a JSON list of them, each the base64 of its 32-bit floats
    model: str
    finish_reason: str = "stop"  # complete; ``length``: cut off at ``max_tokens``; ``tool_calls``; ``content_filter``
    input_tokens: int = 0  # all of the prompt
    output_tokens: int = 0
    cached_tokens: int = 0  # those of the prompt that the provider had in its prompt cache
    cost_usd: float | None = None  # None: the price of the model or the number of tokens is not known
    has_tool_call: bool = False
    request_id: str = ""


# A line of a key file: `export HARBOUR_API_KEY = "…"`.
_LINE = re.compile(r"^(?:export\s+)?([A-Z][A-Z0-9_]*)\s*=\s*(.*)$")
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)$")
# Shorter values of variables may be words and numbers that a text holds for other reasons.
_LEAST_CHARS = 12
# Providers whose variable, by litellm's name, is not the provider's name with _API_KEY after it, or not alone.
_NAMES = {
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "huggingface": ("HUGGINGFACE_API_KEY", "HF_TOKEN"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN"),
    "fireworks_ai": ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "openai": ("OPENAI_API_KEY",),
}
# Providers that answer nobody without such a key. Others take credentials of a cloud, a login, or none.
KEYED_PROVIDERS = frozenset(
    "openai anthropic gemini mistral groq deepseek xai openrouter together_ai fireworks_ai cohere cerebras moonshot"
    " deepinfra dashscope codestral nvidia_nim perplexity replicate novita nebius volcengine voyage wandb".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of a key file: several by name, or a bare one."""

    by_name: Mapping[str, Secret] = field(default_factory=dict)  # by litellm's names
    bare: Secret = NO_SECRET
    provider: str = ""  # whose key the bare one is
    warnings: tuple[str, ...] = ()

    def for_model(self, model: str) -> Secret:
        """The key for a model; empty: litellm looks in the environment. A key is given to its own provider alone."""
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
    """A model's provider by litellm's name: the prefix, else what the table has; empty if unknown."""
    prefix, slash, _ = model.partition("/")
    return prefix.lower() if slash else str(table_entry(model).get("litellm_provider", ""))


def served_name(model: str, api_base: str) -> str:
    """A model by litellm's name: one of no known provider, at the user's own server, is asked as OpenAI's are."""
    return f"openai/{model}" if api_base and not provider_of(model) else model


def environment_names(model: str) -> tuple[str, ...]:
    """The variables that hold the key for a model's provider, by litellm's names."""
    provider = provider_of(model)
    return _NAMES.get(provider, (f"{provider.upper().replace('-', '_')}_API_KEY",))


def missing_key(model: str, keys: Keys) -> str:
    """The variable that should hold the key for a model and does not; empty if no key is known to be missing."""
    names = environment_names(model)
    if provider_of(model) not in KEYED_PROVIDERS or keys.for_model(model) or any(map(os.environ.get, names)):
        return ""
    return names[0]


# Providers whose models have the names that the table lists; elsewhere users choose names themselves.
_NAMED_PROVIDERS = frozenset("openai anthropic gemini mistral deepseek xai groq cerebras moonshot perplexity".split())
_LETTERS = re.compile(r"[a-z]+")
_LEAST_LIKENESS = 0.65


class Naming(StrEnum):
    """What the table knows of a model's name."""

    KNOWN = "known"  # it is in the table, or cannot be judged
    UNKNOWN = "unknown"  # maybe newer than the table
    MISSPELT = "misspelt"  # each word of it that the provider's names do not have is nearly one that they have


def naming_of(model: str) -> Naming:
    """What the table knows of a model's name. A new version differs in digits or has a new word: that is no mistake.

    Not judged are fine-tuned models, and any while the environment names a server, which may have names of its own.
    """
    provider, name = provider_of(model), model.rpartition("/")[2].lower()
    servers = (f"{provider.upper()}_{end}" for end in ("API_BASE", "BASE_URL"))
    is_judged = provider in _NAMED_PROVIDERS and ":" not in name and not any(map(os.environ.get, servers))
    if not is_judged or table_entry(model) or window_tokens(model):
        return Naming.KNOWN
    words = {word for known in models_of(provider) for word in _LETTERS.findall(known.lower())}
    strange = [word for word in _LETTERS.findall(name) if word not in words]
    is_near = [max(SequenceMatcher(None, word, known).ratio() for known in words) for word in strange]
    return Naming.MISSPELT if strange and min(is_near) >= _LEAST_LIKENESS else Naming.UNKNOWN


def server_of(call: Call) -> str:
    """Who answers a call and on whose account: the host (else the provider), and a fingerprint of the key."""
    host = urlsplit(call.api_base).netloc.rpartition("@")[2] or provider_of(call.model) or call.model
    in_environment = next(filter(None, map(os.environ.get, environment_names(call.model))), "")
    key = call.key.reveal() or in_environment
    return f"{host} (key {hashlib.sha256(key.encode()).hexdigest()[:8]})" if key else host


def read_keys(path: Path, model: str, api_base: str) -> Keys:
    """The keys in a file: lines ``NAME=key`` by litellm's names, or one bare key.

    Lines may have quotes and ``export``, and may be comments. A bare key is for the provider of ``model`` as it is
    served at ``api_base``. There is a warning if others than the owner may read the file. Raises `UsageError`, which
    names the file and never what is in it.
    """
    try:
        mode = path.stat().st_mode
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        advice = "check the path after --key-file"
        raise UsageError(f"the key file cannot be read ({reason})", place=str(path), next_step=advice) from None
    lines = [line for line in lines if line and not line.startswith("#")]
    open_to_others = mode & (stat.S_IRWXG | stat.S_IRWXO)
    warnings = (f"{path}: others may read this key file: chmod 600 it",) if open_to_others else ()
    named = [_LINE.match(line) for line in lines]
    if len(lines) == 1 and not named[0]:
        return Keys(bare=Secret(lines[0]), provider=provider_of(served_name(model, api_base)), warnings=warnings)
    if not lines or not all(named):
        raise UsageError("the key file is not understood", place=str(path), next_step="lines NAME=key, or one bare key")
    return Keys(by_name={m[1]: Secret(m[2].strip().strip("'\"")) for m in named if m}, warnings=warnings)


def environment_secrets() -> tuple[Secret, ...]:
    """The values of environment variables named like secrets, to be taken out of what is sent."""
    found = (value for name, value in sorted(os.environ.items()) if _SECRET_NAME.search(name.upper()))
    return tuple(Secret(value) for value in found if len(value) >= _LEAST_CHARS and "/" not in value[:1])


class ModelFailure(Exception):  # noqa: N818 -- named for what happened
    """A call of a model gave no reply. ``reason`` is one line for people, without keys."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Passing(ModelFailure):
    """Asking again may help, after ``retry_after_seconds`` at the earliest (0: the provider named no time)."""

    def __init__(self, reason: str, *, retry_after_seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds


class RateLimited(Passing):
    """The provider wants fewer requests or tokens per minute."""


class ServerTrouble(Passing):
    """The provider or the connection to it fails."""


class TimedOut(Passing):
    """No reply within the time allowed. The provider may have charged for it."""


class Broken(Passing):
    """The reply broke off, or cannot be read. The provider may have charged for it."""


class ContextTooLong(ModelFailure):
    """The prompt does not fit in the model's window."""


class Refused(ModelFailure):
    """The provider will not do this, however often it is asked."""


class Unusable(Refused):
    """The provider answers no request to this model with this key."""


class UnknownModel(Unusable):
    """The provider has no model of this name, or nothing is at this address: a mistake in the set-up."""


class GaveUp(ModelFailure):
    """All attempts with all models failed. ``reason``: the last failure of each model."""


class LimitReached(ModelFailure):
    """A limit that the user set would be passed. Nothing was sent."""


class LimitHeld(LimitReached):
    """The limit would be passed only if the requests under way use all that they may. Nothing was sent."""


class CircuitOpen(ModelFailure):
    """Too many failures in a row. Nothing was sent."""
