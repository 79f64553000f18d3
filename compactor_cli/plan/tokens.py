"""Tokens: how large a text is for a model, exact where the vocabulary is known, and always offline.

Where a vocabulary is not on this machine the next best one is used, at last an estimate; `Counter.method` says
which. See `vocabulary` for where they are looked for, and `fast` for what counts in tiktoken's place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from compactor_cli.formats.responses import OPAQUE
from compactor_cli.model.errors import UsageError
from compactor_cli.model.transcript import Media, Message, Text, Thinking, ToolCall, ToolResult
from compactor_cli.plan.fast import AMOUNT, fast_count, is_covered
from compactor_cli.plan.vocabulary import VOCABULARIES, encoding_of, load_encoding, vocabulary_folder

if TYPE_CHECKING:
    import tiktoken

# Providers wrap each message in a few tokens of their own; OpenAI documents 3 to 4 for its chat models.
MESSAGE_TOKENS = 4
# The most that one image costs on Anthropic's models (about width * height / 750, scaled down above that).
MEDIA_TOKENS = 1_600
BYTES_PER_TOKEN = 4
ESTIMATE = "estimate"
# Estimates by characters: a quarter of them, and that times 4/3.
CHARS = {"chars/4": 4, "chars/3": 3}
# Longer texts are counted in pieces: the time of tiktoken's pattern is not linear in runs of white
# space, and it gives up on about a million of them.
PIECE_CHARS = 50_000
CACHED_CHARS = 32_000
CACHED_TEXTS = 4_096
_SHOWN = (Text, Thinking, ToolResult)
# Made once: `json.dumps` makes an encoder a call.
_WRITTEN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
_BORDER = re.compile(r"\n(?=[A-Za-z0-9])")


class Counter(Protocol):
    """Counts the tokens of a text. Never more than the text has UTF-8 bytes."""

    @property
    def method(self) -> str:
        """How it counts, for the report."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text; special tokens in it are plain text."""
        ...


class TiktokenCounter:
    """Counts with one of tiktoken's vocabularies, loaded when the first text is counted.

    ``model`` is only named in ``method``, with whether the count is exact for it. A text of more than 50,000
    characters is counted in pieces, cut in front of a line that starts with a letter or digit, which keeps
    the count exact; only a run without such a line is cut at 50,000 characters (at most 2 tokens off a cut).
    The counts are the same whether or not something faster is installed, which is used where there is much to count.
    """

    def __init__(self, encoding: str = "", *, model: str = "") -> None:
        self._wanted = encoding or encoding_of(model) or "o200k_base"
        self._model = model
        self._name = ""
        self._encoding: tiktoken.Encoding | None = None
        self._exact: Callable[[str], int] | None = None
        self._cache: dict[str, int] = {}

    @property
    def name(self) -> str:
        """The vocabulary in use, or ``estimate``. Found without loading it."""
        if not self._name:
            names = dict.fromkeys((self._wanted, "o200k_base", "cl100k_base"))
            self._name = next((name for name in names if vocabulary_folder(name)), ESTIMATE)
        return self._name

    @property
    def method(self) -> str:
        """``tiktoken o200k_base (exact for gpt-4o)``."""
        if self.name == ESTIMATE:
            return f"estimate (UTF-8 bytes / {BYTES_PER_TOKEN}; no vocabulary on this machine)"
        if not self._model:
            return f"tiktoken {self.name}"
        exact = "exact" if encoding_of(self._model) == self.name else "estimate"
        return f"tiktoken {self.name} ({exact} for {self._model})"

    def count(self, text: str) -> int:
        """Tokens of a text; special tokens in it are plain text. Linear in its length."""
        if len(text) > CACHED_CHARS:
            return sum(self._count(piece) for piece in pieces(text))
        known = self._cache.get(text)
        if known is None:
            known = self._count(text)
            if len(self._cache) >= CACHED_TEXTS:
                self._cache.clear()
            self._cache[text] = known
        return known

    def _count(self, text: str) -> int:
        if self._exact is None:
            self._exact = self._loaded()
        return self._exact(text)

    def _loaded(self) -> Callable[[str], int]:
        return estimate_tokens if self.name == ESTIMATE else self._at_first

    def _at_first(self, text: str) -> int:
        """By tiktoken, until there is so much to count that the faster counter is worth its loading."""
        if not AMOUNT.add(len(text)):
            return self._by_tiktoken(text)
        self._exact = self._fastest()
        return self._exact(text)

    def _fastest(self) -> Callable[[str], int]:
        if fast := fast_count(self.name):
            return lambda text: fast(text) if is_covered(text) else self._by_tiktoken(text)
        return self._by_tiktoken

    def _by_tiktoken(self, text: str) -> int:
        if self._encoding is None:
            folder = vocabulary_folder(self.name)
            if folder is None:
                return estimate_tokens(text)
            self._encoding = load_encoding(self.name, folder)
        try:
            return len(self._encoding.encode_ordinary(text))
        except BaseException as error:
            # The panic of a Rust extension is not an Exception; everything else is not ours to handle.
            if type(error).__name__ != "PanicException":
                raise
            return estimate_tokens(text)


class CharsCounter:
    """Characters / ``divisor``, rounded up, as clients that know no vocabulary estimate: 4, or 4 * 3/4 to be safe."""

    def __init__(self, divisor: int) -> None:
        self._divisor = divisor

    @property
    def method(self) -> str:
        """``estimate (characters / 4)``."""
        return f"estimate (characters / {self._divisor})"

    def count(self, text: str) -> int:
        """Estimated tokens of a text."""
        return -(-len(text) // self._divisor)


class EstimateCounter:
    """UTF-8 bytes / 4, rounded up: no vocabulary is loaded."""

    method = f"estimate (UTF-8 bytes / {BYTES_PER_TOKEN})"

    def count(self, text: str) -> int:
        """Estimated tokens of a text."""
        return estimate_tokens(text)


class OnceCounter:
    """Counts no text and no message twice as long as it lives: for the messages of one transcript."""

    def __init__(self, counter: Counter) -> None:
        self.method = counter.method
        self._counter = counter
        self._known: dict[str, int] = {}
        # By identity: to compare two messages takes longer than to count one. They are held, so that none is another.
        self._messages: dict[int, tuple[Message, int]] = {}

    def count(self, text: str) -> int:
        """Tokens of a text."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._counter.count(text)
        return known

    def message(self, message: Message) -> int:
        """`count_message` of a message."""
        known = self._messages.get(id(message))
        if known is None:
            known = self._messages[id(message)] = message, _counted(self, message)
        return known[1]


def counter_for(tokenizer: str = "auto", model: str = "") -> Counter:
    """The counter of ``--tokenizer``: ``auto`` (by model), a vocabulary's name, ``estimate``, ``chars/4``, ``chars/3``.

    Raises `UsageError` for a name that is none of these.
    """
    if tokenizer == ESTIMATE:
        return EstimateCounter()
    if tokenizer in CHARS:
        return CharsCounter(CHARS[tokenizer])
    if tokenizer == "auto":
        return TiktokenCounter(model=model)
    if tokenizer not in VOCABULARIES:
        known = ", ".join(("auto", *VOCABULARIES, ESTIMATE, *CHARS))
        raise UsageError(f"unknown tokenizer: {tokenizer}", next_step=f"use one of {known}")
    return TiktokenCounter(tokenizer, model=model)


def estimate_tokens(text: str) -> int:
    """UTF-8 bytes / 4, rounded up."""
    return -(-_utf8_bytes(text) // BYTES_PER_TOKEN)


def bound_message(message: Message) -> int:
    """The most tokens `count_message` can give, from lengths alone."""
    if message.is_meta or message.superseded:
        return 0
    return MESSAGE_TOKENS + media_tokens(message) + sum(map(_utf8_bytes, shown_texts(message)))


def count_message(counter: Counter, message: Message) -> int:
    """Tokens a model is shown of a message: its parts and 4. Bookkeeping and superseded records have 0."""
    return counter.message(message) if isinstance(counter, OnceCounter) else _counted(counter, message)


def _counted(counter: Counter, message: Message) -> int:
    if message.is_meta or message.superseded:
        return 0
    return MESSAGE_TOKENS + media_tokens(message) + sum(map(counter.count, shown_texts(message)))


def count_messages(counter: Counter, messages: Sequence[Message]) -> tuple[int, ...]:
    """`count_message` of each."""
    return tuple(count_message(counter, message) for message in messages)


def media_tokens(message: Message) -> int:
    """Tokens of images and files: 1,600 each, or their size in bytes if that is less."""
    total = 0
    for part in message.parts:
        if isinstance(part, Media):
            total += min(MEDIA_TOKENS, part.size_bytes)
        elif isinstance(part, ToolResult):
            total += MEDIA_TOKENS * part.media_count
    return total


def sealed_tokens(messages: Sequence[Message]) -> int:
    """Tokens of the summaries that only a provider can read: they stay, whatever becomes of their records."""
    sent = (message.parts for message in messages if not (message.is_meta or message.superseded))
    sealed = (part for parts in sent for part in parts if isinstance(part, Media) and part.kind in OPAQUE)
    return sum(min(MEDIA_TOKENS, part.size_bytes) for part in sealed)


def shown_texts(message: Message) -> Iterator[str]:
    """Everything of a message that a model reads as text."""
    for part in message.parts:
        if isinstance(part, _SHOWN):
            yield part.text
        elif isinstance(part, ToolCall):
            yield part.name
            yield arguments_text(part)


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as JSON text, or the text as it stood."""
    if isinstance(call.arguments, str):
        return call.arguments
    return _WRITTEN(call.arguments)


def pieces(text: str) -> Iterator[str]:
    """A long text in pieces of at most 50,000 characters, cut where it does not change the count if possible."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        # Half a piece is enough to look for a border in, and keeps the pieces large.
        border = text.rfind("\n", start + PIECE_CHARS // 2, start + PIECE_CHARS)
        while border > 0 and not _BORDER.match(text, border):
            border = text.rfind("\n", start + PIECE_CHARS // 2, border)
        stop = border + 1 if border > 0 else start + PIECE_CHARS
        yield text[start:stop]
        start = stop
    yield text[start:]


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
