"""Fast: tiktoken's counts from another implementation, where the extra ``[fast]`` is installed.

Proven equal: by probes on first use, here; by every text of the tests' transcripts, in the tests. What it is known to
count otherwise is left to tiktoken: halves of surrogate pairs, and the code points that are new in Unicode 17,
whose tables toktok has and tiktoken has not.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache

from compactor_cli.plan.vocabulary import loaded_once

_NOT_COVERED = (
    "[\ud800-\udfff\u088f\u0c5c\u0cdc\u1acf-\u1add\u1ae0-\u1aeb\ua7ce-\ua7cf\ua7d2\ua7d4\ua7f1"
    "\U00010940-\U00010959\U00010ec5-\U00010ec7\U00010efa-\U00010efb\U00011b60-\U00011b67\U00011db0-\U00011ddb"
    "\U00011de0-\U00011de9\U00016ea0-\U00016ed3\U00016ff2-\U00016ff6\U000187f8-\U000187ff\U00018d09-\U00018d1e"
    "\U00018d80-\U00018df2\U0001e6c0-\U0001e6ff\U0002b73a-\U0002b73f\U0002cea2-\U0002cead\U000323b0-\U00033479]"
)
# Letters, signs and emoji of most texts; none of them is above. A search for those above takes twenty times as long.
_COVERED = "[\0-\u088e\u2000-\ua7cd\uac00-\ud7a3\U0001f300-\U0001faff]*"
# Texts with tiktoken's counts of them by these vocabularies: every branch of the patterns, and what is odd.
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
# Loading it takes 0.2 s, 0.1 s more than tiktoken's vocabulary: measured, that pays from so much text on.
PAYS_FROM_BYTES = 2_000_000


class Amount:
    """How much text this process has to count, as far as it is known or was seen."""

    def __init__(self) -> None:
        self._bytes = 0
        self._expected_bytes = 0

    def expect(self, size_bytes: int) -> None:
        """An input of this size is going to be read."""
        self._expected_bytes = max(self._expected_bytes, size_bytes)

    def add(self, size_bytes: int) -> bool:
        """So much more is about to be counted. Whether it is enough by now for the faster counter to pay."""
        self._bytes += size_bytes
        return max(self._bytes, self._expected_bytes) >= PAYS_FROM_BYTES


AMOUNT = Amount()


@loaded_once
def fast_count(vocabulary: str) -> Callable[[str], int] | None:
    """Counts the tokens of a text that `is_covered`; None where nothing faster is there, or it fails a probe."""
    try:
        count: Callable[[str], int] = importlib.import_module("toktok._toktok").Tokenizer(vocabulary, "").count
        column = 1 + PROBED.index(vocabulary)
        return count if all(count(str(probe[0])) == probe[column] for probe in PROBES) else None
    except Exception:  # whatever is wrong with it, tiktoken is there
        return None


def is_covered(text: str) -> bool:
    """Whether the faster counter is known to count this text as tiktoken does."""
    if text.isascii():
        return True
    covered, not_covered = _patterns()
    return covered.fullmatch(text) is not None or not not_covered.search(text)


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compiled when they are first needed: that takes 2 ms."""
    return re.compile(_COVERED), re.compile(_NOT_COVERED)
