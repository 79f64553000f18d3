"""One call of a model and its reply, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from compactor_cli.llm.prices import Price, price_of

# Where nothing was counted: English and code have 3 to 4 bytes a token, so this errs on the side of too many.
BYTES_PER_TOKEN = 3


class Speaker(StrEnum):
    """Who says a message. A transcript is quoted inside one message of USER, never as turns of its own."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of a prompt."""

    speaker: Speaker
    text: str


class Delivery(StrEnum):
    """How a reply comes: as a whole, or piece by piece (for servers that cut long silences)."""

    WHOLE = "whole"
    STREAM = "stream"


class Wanted(StrEnum):
    """What a reply is to hold."""

    TEXT = "text"
    VECTORS = "vectors"  # one for each message: its text's embedding


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
    """What a model is asked.

    ``model``: a name as litellm knows it (``anthropic/claude-haiku-4-5``). ``key`` empty: litellm looks in the
    environment. ``timeout_seconds`` is for the whole reply, ``max_reply_bytes`` (0: any) for its text as it streams in.
    ``input_tokens``: the size of the prompt where the caller counted it, else it is estimated.
    ``prompt_version`` names the wording of the prompt in the key of the reply cache. ``extra`` goes to litellm
    as it is and is part of that key too. ``about``: the hash of the transcript, for those who are told of the call.
    ``is_repeat``: it is asked because the reply to an earlier call was refused; no part of the key.
    """

    model: str
    messages: tuple[ChatMessage, ...]
    max_tokens: int
    temperature: float = 0.0
    api_base: str = ""
    key: Secret = NO_SECRET
    price: Price | None = None
    timeout_seconds: float = 600.0
    max_reply_bytes: int = 0
    delivery: Delivery = Delivery.WHOLE
    input_tokens: int = 0
    prompt_version: str = ""
    wanted: Wanted = Wanted.TEXT
    extra: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    is_repeat: bool = False

    @property
    def known_price(self) -> Price | None:
        """The price that the user gave, else that of the table; None if neither knows it."""
        return self.price or price_of(self.model)

    @property
    def expected_input_tokens(self) -> int:
        """Tokens of the prompt, as counted by the caller or estimated from its bytes."""
        return (
            self.input_tokens
            or sum(len(message.text.encode(errors="replace")) for message in self.messages) // BYTES_PER_TOKEN
        )


class Origin(StrEnum):
    """Where a reply comes from."""

    MODEL = "model"
    CACHE = "cache"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered.

    ``finish_reason``: ``stop`` (complete), ``length`` (cut off at ``max_tokens``), ``tool_calls``,
    ``content_filter``. ``input_tokens`` are all tokens of the prompt, ``cached_tokens`` those of them that the
    provider had in its prompt cache. Where vectors were wanted, ``text`` is a JSON list of them, each the base64 of
    its 32-bit floats. ``cost_usd`` None: the price of the model is not known. A reply from the
    cache tells what it cost when it was made.
    """

    text: str
    model: str
    finish_reason: str = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    has_tool_call: bool = False
    request_id: str = ""
    origin: Origin = Origin.MODEL
