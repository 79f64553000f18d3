"""Tokens: how large a text is for a model, exact where the vocabulary is known, and always offline.

Where a vocabulary is not on this machine the next best one is used, or at last an estimate; `Counter.method` names
which. With the extra ``[fast]``, another implementation counts in tiktoken's place. That it counts the same is checked
here by probes when it is first used, and in the tests by every text of their transcripts.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import NoneType
from typing import TYPE_CHECKING, Protocol

import orjson

from compactor_cli.model.errors import UsageError
from compactor_cli.model.patterns import pattern
from compactor_cli.model.transcript import Media, Message, Text, Thinking, ToolCall, ToolResult
from compactor_cli.plan import models
from compactor_cli.plan.models import VOCABULARIES, encoding_of, load_encoding, load_table, vocabulary_folder

if TYPE_CHECKING:
    import tiktoken


# Texts with these characters are left to tiktoken, as the faster counter counts them differently: halves of surrogate
# pairs, and the code points that are new in Unicode 17, which toktok has in its tables and tiktoken has not.
_NOT_COVERED = pattern(
    "[\ud800-\udfff\u088f\u0c5c\u0cdc\u1acf-\u1add\u1ae0-\u1aeb\ua7ce-\ua7cf\ua7d2\ua7d4\ua7f1"
    "\U00010940-\U00010959\U00010ec5-\U00010ec7\U00010efa-\U00010efb\U00011b60-\U00011b67\U00011db0-\U00011ddb"
    "\U00011de0-\U00011de9\U00016ea0-\U00016ed3\U00016ff2-\U00016ff6\U000187f8-\U000187ff\U00018d09-\U00018d1e"
    "\U00018d80-\U00018df2\U0001e6c0-\U0001e6ff\U0002b73a-\U0002b73f\U0002cea2-\U0002cead\U000323b0-\U00033479]"
)
# The letters, signs and emoji of most texts, none of them among those above. To match these is twenty times as fast as
# to search for those.
_COVERED = pattern("[\0-\u088e\u2000-\ua7cd\uac00-\ud7a3\U0001f300-\U0001faff]*")
# Texts with tiktoken's counts by these vocabularies. They cover every branch of the patterns, and oddities.
PROBED = ("o200k_base", "cl100k_base")
PROBES = (
    ("", 0, 0),
    ("I'm sure they'll say we've won; IT'S 'Tis \u2019s", 14, 17),
    ("camelCaseHTTPServer snake_case_name ALLCAPS", 10, 10),
    ("x = foo(1234567, 0x1f, 3.14e-10)\n\n\n    return [a for a in b]\r\n\t\t# end  \n", 36, 36),
    ("   leading and trailing   ", 5, 5),
    (" \t \n \t\n  x", 5, 5),
    ("<|endoftext|> <|fim_prefix|>", 13, 13),
    ("https://example.org/a/b.py?x=1&y=%20#L10", 18, 18),
    ("=" * 100 + "-" * 81 + " " * 140 + "\n" * 20, 8, 9),
    ("Gr\u00fc\u00dfe aus K\u00f6ln, na\u00efve caf\u00e9, e\u0301a\u0308", 14, 16),
    ("\u4e2d\u6587\u5206\u8bcd\uff0c\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3002\ud55c\uad6d\uc5b4", 12, 19),
    (
        "\U0001f642\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466\U0001f1e9\U0001f1ea \u2713 \u2192 \u2211",
        20,
        30,
    ),
    ("\x00\x01\x7f\u200b\ufeff\u2028", 6, 7),
    ("aGVsbG8gd29ybGQhIQ==" * 8, 104, 104),
    ("\u01c5 \u01c8 \u00aa \u00ba \u2177 \u00b2 \u00bd \U0001d49c\U0001d539", 22, 22),
)
# From this much text on, a vocabulary is faster than the table, loading included: 0.2 s for tiktoken's, 0.3 s for the
# faster counter's.
PAYS_FROM_BYTES = 5_000_000
# How much is counted of an input at most: all of it once, and what a summary is made from again.
_COUNTED_RATIO = 2


class Amount:
    """How much text this process counts."""

    def __init__(self) -> None:
        self.is_run = False  # whether this is a run of the command, which may write files to the cache
        self._bytes = 0  # counted so far
        self._expected_bytes = 0  # of the largest input

    def expect(self, size_bytes: int) -> None:
        """Note that a run of the command is going to read an input of this size."""
        self.is_run = True
        self._expected_bytes = max(self._expected_bytes, _COUNTED_RATIO * size_bytes)

    def add(self, size_bytes: int) -> int:
        """Note that this much more is about to be counted; returns the total, or what is expected if that is more."""
        self._bytes += size_bytes
        return max(self._bytes, self._expected_bytes)


AMOUNT = Amount()


@models.loaded_once
def fast_count(vocabulary: str) -> Callable[[str], int] | None:
    """The faster counter for texts that are `is_covered`; None if it is not installed or fails a probe."""
    try:
        count: Callable[[str], int] = importlib.import_module("toktok._toktok").Tokenizer(vocabulary, "").count
        column = 1 + PROBED.index(vocabulary)
        return count if all(count(str(probe[0])) == probe[column] for probe in PROBES) else None
    except Exception:  # whatever is wrong with it, tiktoken is there
        return None


def is_covered(text: str) -> bool:
    """Whether the faster counter is known to count this text the same as tiktoken."""
    return text.isascii() or _COVERED.fullmatch(text) is not None or not _NOT_COVERED.search(text)


# Providers wrap each message in a few tokens of their own; OpenAI documents 3 to 4 for its chat models.
MESSAGE_TOKENS = 4
# The most tokens that an image takes on Anthropic's models (about width * height / 750; larger ones are scaled down).
MEDIA_TOKENS = 1_600
BYTES_PER_TOKEN = 4
ESTIMATE = "estimate"
# Estimates by characters, and how many of them make a token.
CHARS = {"chars/4": 4, "chars/3": 3}
# Longer texts are counted in pieces: the time of tiktoken's pattern is not linear in runs of white
# space, and it gives up on about a million of them.
PIECE_CHARS = 50_000
CACHED_CHARS = 32_000
CACHED_TEXTS = 4_096
_SHOWN = (Text, Thinking, ToolResult)
# Made once, as `json.dumps` makes an encoder for each call.
_WRITTEN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
# The types that the faster encoder writes in the same way; it writes floats differently.
_WRITTEN_ALIKE = frozenset((str, int, bool, NoneType))
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

    ``model`` is only named in ``method``, with whether the count is exact for it.

    A text of more than 50,000 characters is counted in pieces, cut before a line that starts with a letter or digit,
    which keeps the count exact; only a run without such a line is cut at 50,000 characters (at most 2 tokens off for
    each cut). Where there is much to count, the faster counter is used if it is installed; the counts are the same.
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
        """The vocabulary in use, or ``estimate``. It is not loaded for this."""
        if not self._name:
            names = dict.fromkeys((self._wanted, "o200k_base", "cl100k_base"))
            self._name = next((name for name in names if vocabulary_folder(name)), ESTIMATE)
        return self._name

    @property
    def method(self) -> str:
        """How it counts, such as ``tiktoken o200k_base (exact for gpt-4o)``."""
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
            self._exact = estimate_tokens if self.name == ESTIMATE else self._at_first
        if not text.isascii():
            # A copy is counted: CPython caches the UTF-8 of a text in the text, for as long as that lives.
            text = text.encode(errors="surrogatepass").decode(errors="surrogatepass")
        return self._exact(text)

    def _at_first(self, text: str) -> int:
        """Tokens by the table, until there is so much to count that loading a vocabulary pays."""
        if AMOUNT.add(len(text)) >= PAYS_FROM_BYTES:
            fast, self._exact = fast_count(self.name), self._by_tiktoken
            if fast:
                self._exact = lambda text: fast(text) if is_covered(text) else self._by_tiktoken(text)
            return self._exact(text)
        table = load_table(self.name) if self._encoding is None else None
        tokens = table.count(text) if table else None
        return self._by_tiktoken(text) if tokens is None else tokens

    def _by_tiktoken(self, text: str) -> int:
        if self._encoding is None:
            folder = vocabulary_folder(self.name)
            if folder is None:
                return estimate_tokens(text)
            self._encoding = load_encoding(self.name, folder, keep_table=AMOUNT.is_run)
        try:
            return len(self._encoding.encode_ordinary(text))
        except BaseException as error:
            # The panic of a Rust extension is not an Exception; nothing else is handled here.
            if type(error).__name__ != "PanicException":
                raise
            return estimate_tokens(text)


class EstimateCounter:
    """Estimates without a vocabulary: UTF-8 bytes / 4, rounded up; with a ``divisor``, characters / that.

    Some clients estimate by characters.
    """

    def __init__(self, divisor: int = 0) -> None:
        self._divisor = divisor
        self.method = f"estimate ({f'characters / {divisor}' if divisor else f'UTF-8 bytes / {BYTES_PER_TOKEN}'})"

    def count(self, text: str) -> int:
        """Estimated tokens of a text."""
        return -(-len(text) // self._divisor) if self._divisor else estimate_tokens(text)


class OnceCounter:
    """Counts each text and message only once and remembers it: for the messages of one transcript."""

    def __init__(self, counter: Counter) -> None:
        self.method = counter.method
        self._counter = counter
        self._known: dict[str, int] = {}
        # By identity, as comparing messages takes longer than counting one. They are held so that no id is used again.
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
            known = self._messages[id(message)] = message, _message_size(message, self.count)
        return known[1]


def counter_for(tokenizer: str = "auto", model: str = "") -> Counter:
    """The counter of this name; for ``auto``, that of the model. Raises `UsageError` for an unknown name."""
    if tokenizer == ESTIMATE:
        return EstimateCounter()
    if tokenizer in CHARS:
        return EstimateCounter(CHARS[tokenizer])
    if tokenizer == "auto":
        return TiktokenCounter(model=model)
    if tokenizer not in VOCABULARIES:
        known = ", ".join(("auto", *VOCABULARIES, ESTIMATE, *CHARS))
        raise UsageError(f"unknown tokenizer: {tokenizer}", next_step=f"use one of {known}")
    return TiktokenCounter(tokenizer, model=model)


def load_vocabulary(tokenizer: str, size_bytes: int) -> None:
    """Load what is needed to count this much text, before worker processes are forked that all need it."""
    AMOUNT.expect(size_bytes)
    counter_for(tokenizer).count("a")


def most_that_fits(high: int, make: Callable[[int], str], budget: int, count: Callable[[str], int]) -> int:
    """The largest n in 0..high for which ``make(n)`` is within the budget; ``make`` must grow with n."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if count(make(middle)) <= budget:
            low = middle
        else:
            high = middle - 1
    return low


def estimate_tokens(text: str) -> int:
    """UTF-8 bytes / 4, rounded up."""
    return -(-_utf8_bytes(text) // BYTES_PER_TOKEN)


def bound_message(message: Message) -> int:
    """An upper bound of `count_message`, from lengths alone."""
    return _message_size(message, _utf8_bytes)


def count_message(counter: Counter, message: Message) -> int:
    """Tokens of a message as a model is shown it: those of its parts and 4. Bookkeeping and superseded records: 0."""
    return counter.message(message) if isinstance(counter, OnceCounter) else _message_size(message, counter.count)


def _message_size(message: Message, size: Callable[[str], int]) -> int:
    if message.is_meta or message.superseded:
        return 0
    return MESSAGE_TOKENS + media_tokens(message) + sum(map(size, shown_texts(message)))


def count_messages(counter: Counter, messages: Sequence[Message]) -> tuple[int, ...]:
    """`count_message` of each."""
    return tuple(count_message(counter, message) for message in messages)


def media_tokens(message: Message) -> int:
    """Tokens of images and files: 1,600 each, or their size in bytes if that is known and less."""
    total = 0
    for part in message.parts:
        if isinstance(part, Media):
            total += min(MEDIA_TOKENS, part.size_bytes)
        elif isinstance(part, ToolResult):
            total += MEDIA_TOKENS * part.media_count
    return total


def shown_texts(message: Message) -> Iterator[str]:
    """Everything in a message that a model reads as text."""
    for part in message.parts:
        if isinstance(part, _SHOWN):
            yield part.text
        elif isinstance(part, ToolCall):
            yield part.name
            yield arguments_text(part)


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as JSON text, or the text as it was."""
    if isinstance(call.arguments, str):
        return call.arguments
    if _WRITTEN_ALIKE.issuperset(map(type, call.arguments.values())):
        with suppress(TypeError):  # half a surrogate pair, or an integer of more than 64 bits
            return orjson.dumps(call.arguments).decode()
    return _WRITTEN(call.arguments)


def pieces(text: str) -> Iterator[str]:
    """A text in pieces of at most 50,000 characters, cut, if possible, where that does not change the count."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        # A border is looked for in the second half of a piece only, which keeps the pieces large.
        border = text.rfind("\n", start + PIECE_CHARS // 2, start + PIECE_CHARS)
        while border > 0 and not _BORDER.match(text, border):
            border = text.rfind("\n", start + PIECE_CHARS // 2, border)
        stop = border + 1 if border > 0 else start + PIECE_CHARS
        yield text[start:stop]
        start = stop
    yield text[start:]


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
