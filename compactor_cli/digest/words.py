"""Words: what a text is made of where it has no atoms. Latin scripts by letters, scripts without spaces by characters.

Chinese, Japanese and Korean have no blanks to cut at. Without a dictionary, runs of two characters are the
usual stand-in for words (Nie & Ren 1999), and single characters for phrases.
"""

from __future__ import annotations

import re
from functools import cache

_DENSE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"

# Words that carry no information alone; pairs and terms leave them out.
_STOP = (
    "a about after all also an and any are as at be because been before but by can could did do does done for"
    " from get going had has have he her here him his how i if in into is it its just let like ll made make may"
    " me more most my need new no not now of off on one only or other our out over own re same see set she"
    " should so some still such than that the their them then there these they this those through to too up us"
    " use used using ve very want was way we well were what when where which while who why will with would yes"
    " yet you your"
    " self return def class import none true false null const function var string str int type elif else try"
    " except async await public static void"
)


@cache
def stop_words() -> frozenset[str]:
    """Lower-case words that carry no meaning alone."""
    return frozenset(_STOP.split())


@cache
def _ascii_pattern() -> re.Pattern[str]:
    return re.compile(r"[a-z0-9_]+")


@cache
def _any_pattern() -> re.Pattern[str]:
    return re.compile(rf"[{_DENSE}]|[^\W{_DENSE}]+")


@cache
def _dense_run() -> re.Pattern[str]:
    return re.compile(rf"[{_DENSE}]{{2,}}")


@cache
def _name_pattern() -> re.Pattern[str]:
    # A capital letter that opens neither a line nor a sentence, or a digit; the search is for these first.
    capital, digit = r"(?<=[A-Z])(?<!^.)(?<![.!?:]\s.)[a-z]+\b", r"(?<=\d)[\d,.:/-]*\b"
    return re.compile(rf"[A-Z\d](?<!\w.)(?:{capital}|{digit})", re.MULTILINE)


def words(text: str) -> list[str]:
    """The words in order, in lower case; one word for each character of a script without spaces."""
    pattern = _ascii_pattern() if text.isascii() else _any_pattern()
    return pattern.findall(text.lower())


def terms(text: str) -> list[str]:
    """The words that carry meaning: no stop words, no single letters; two-character runs of scripts without spaces."""
    return [word for word in raw_terms(text) if is_term(word)]


def raw_terms(text: str) -> list[str]:
    """What `terms` picks from: the words in lower case, and two-character runs of scripts without spaces."""
    if text.isascii():
        return _ascii_pattern().findall(text.lower())
    plain: list[str] = _any_pattern().findall(text.lower())
    for run in _dense_run().findall(text):
        plain.extend(run[i : i + 2] for i in range(len(run) - 1))
    return plain


def is_term(word: str) -> bool:
    """Whether a word of `raw_terms` carries meaning."""
    return (len(word) > 2 and word not in stop_words()) or (len(word) == 2 and not word.isascii())


def names(text: str) -> set[str]:
    """Capitalised words that do not open a sentence, and numbers, in lower case."""
    return {found.lower() for found in _name_pattern().findall(text)}


def dense_share(text: str) -> float:
    """The share of characters, blanks aside, of scripts without spaces."""
    if text.isascii():
        return 0.0
    dense = sum(len(run) for run in re.findall(rf"[{_DENSE}]+", text))
    return dense / max(1, len(text) - text.count(" ") - text.count("\n"))
