"""Tokens: how large a text is for a model, exact where the vocabulary is known, and always offline.

The vocabularies are those that tiktoken names; their files come with litellm's wheel and are found
without importing it. A directory in ``TIKTOKEN_CACHE_DIR`` is looked at first. Where a vocabulary is not on this
machine the next best one is used, at last an estimate; `Counter.method` says which.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from compactor_cli.core.errors import UsageError
from compactor_cli.core.transcript import Media, Message, Text, Thinking, ToolCall, ToolResult

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
# Names of the files in tiktoken's cache (the SHA-1 of the address they are published at) and their
# bytes: tiktoken deletes a damaged file and goes online for another, so a torn one must not reach it.
VOCABULARIES = {
    "o200k_base": ("fb374d419588a4632f3f557e76b4b70aebbca790", 3_613_922),
    "cl100k_base": ("9b5ad71b2ce5302211f9c61530b329a4922fc6a4", 1_681_126),
}
# Longer texts are counted in pieces: the time of tiktoken's pattern is not linear in runs of white
# space, and it gives up on about a million of them.
PIECE_CHARS = 50_000
CACHED_CHARS = 32_000
CACHED_TEXTS = 4_096
# The model families whose own vocabulary is public; longest prefix first.
_FAMILIES = (
    (("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "chatgpt-4o", "gpt-oss", "o1", "o3", "o4", "codex"), "o200k_base"),
    (("gpt-4", "gpt-3.5", "gpt-35"), "cl100k_base"),
)
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
    """

    def __init__(self, encoding: str = "", *, model: str = "") -> None:
        self._wanted = encoding or encoding_of(model) or "o200k_base"
        self._model = model
        self._name = ""
        self._encoding: tiktoken.Encoding | None = None
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
        encoding = self._encoding or self._load()
        if encoding is None:
            return estimate_tokens(text)
        try:
            return len(encoding.encode_ordinary(text))
        except BaseException as error:
            # The panic of a Rust extension is no Exception; everything else is not ours to handle.
            if type(error).__name__ != "PanicException":
                raise
            return estimate_tokens(text)

    def _load(self) -> tiktoken.Encoding | None:
        folder = None if self.name == ESTIMATE else vocabulary_folder(self.name)
        self._encoding = _load_encoding(self.name, folder) if folder else None
        return self._encoding


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


def encoding_of(model: str) -> str:
    """The vocabulary this model is known to use, or an empty string. A provider's prefix is ignored."""
    name = model.rpartition("/")[2].lower().removeprefix("ft:")
    for prefixes, encoding in _FAMILIES:
        if name.startswith(prefixes):
            return encoding
    return ""


def estimate_tokens(text: str) -> int:
    """UTF-8 bytes / 4, rounded up."""
    return -(-_utf8_bytes(text) // BYTES_PER_TOKEN)


def upper_bound_tokens(size_bytes: int) -> int:
    """The most tokens that so many bytes of JSON records hold, without reading them.

    A token is at least one byte, JSON's escapes are no shorter than what they stand for, and a record's
    own punctuation is more than the 4 tokens added for it. Not covered: images given by address only.
    """
    return size_bytes


def bound_message(message: Message) -> int:
    """The most tokens `count_message` can give, from lengths alone."""
    if message.is_meta or message.superseded:
        return 0
    return MESSAGE_TOKENS + media_tokens(message) + sum(_utf8_bytes(text) for text in shown_texts(message))


def count_message(counter: Counter, message: Message) -> int:
    """Tokens a model is shown of a message: its parts and 4. Bookkeeping and superseded records have 0."""
    if message.is_meta or message.superseded:
        return 0
    return MESSAGE_TOKENS + media_tokens(message) + sum(counter.count(text) for text in shown_texts(message))


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


def shown_texts(message: Message) -> Iterator[str]:
    """Everything of a message that a model reads as text."""
    for part in message.parts:
        if isinstance(part, Text | Thinking | ToolResult):
            yield part.text
        elif isinstance(part, ToolCall):
            yield part.name
            yield arguments_text(part)


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as JSON text, or the text as it stood."""
    if isinstance(call.arguments, str):
        return call.arguments
    import json

    return json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":"), default=str)


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


def vocabulary_folder(name: str) -> Path | None:
    """Where this vocabulary's file is: the folder the user named, else litellm's, else None."""
    chosen = os.environ.get("TIKTOKEN_CACHE_DIR")
    folders = [Path(chosen)] if chosen else []
    spec = importlib.util.find_spec("litellm")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folders.append(Path(location) / "litellm_core_utils" / "tokenizers")
    file_name, size_bytes = VOCABULARIES[name]
    for folder in folders:
        file = folder / file_name
        if file.is_file() and file.stat().st_size == size_bytes:
            return folder
    return None


def _load_encoding(name: str, folder: Path) -> tiktoken.Encoding:
    import tiktoken

    with _cache_folder(folder):
        return tiktoken.get_encoding(name)


@contextmanager
def _cache_folder(folder: Path) -> Iterator[None]:
    """Sets ``TIKTOKEN_CACHE_DIR`` for as long as the vocabulary is loaded."""
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
