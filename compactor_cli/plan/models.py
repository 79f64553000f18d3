"""What is known of a model offline: its vocabulary and its window.

The vocabularies are those that tiktoken names. Their files, and the table of windows, come with litellm's wheel and are
read without importing it; for vocabularies, the folder in ``TIKTOKEN_CACHE_DIR`` is tried first.

Small texts are counted without loading a vocabulary, as tiktoken takes 0.15 s in each process to build its tables. A
`VocabularyTable` is a hash table with open addressing, used as it is on disk. It is written when a run of the command
loads a vocabulary for the first time: into the user's cache folder, for the user alone, with its own hash at its end.
Texts are split by the vocabulary's pattern, its character classes written out for Latin, Greek and common signs. Texts
with other characters, and pieces that would take long to merge here, are left to tiktoken.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import sys
import threading
import zlib
from array import array
from binascii import a2b_base64
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache, wraps
from itertools import accumulate, count, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from compactor_cli.model.errors import Unreadable, UsageError
from compactor_cli.read.sources import cache_folder

if TYPE_CHECKING:
    import tiktoken


P = ParamSpec("P")
T = TypeVar("T")
# Names of the files in tiktoken's cache (the SHA-1 of the address they are published at) and their sizes in bytes: an
# incomplete file is passed over for another one.
VOCABULARIES = {
    "o200k_base": ("fb374d419588a4632f3f557e76b4b70aebbca790", 3_613_922),
    "cl100k_base": ("9b5ad71b2ce5302211f9c61530b329a4922fc6a4", 1_681_126),
}
# The SHA-256 of the files, and the pattern that splits a text before its pieces are encoded: that of
# tiktoken_ext/openai_public.py, with all branches without lookahead in one group. tiktoken tries such a group with one
# automaton and anything else branch by branch, which takes 1.3 times as long (cl100k_base, with possessive branches:
# 1.6 times).
_DEFINITIONS = {
    "o200k_base": (
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        r"(?:[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+)|\s+(?!\S)|\s+",
    ),
    "cl100k_base": (
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"(?:'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
        r"\s+$|\s*[\r\n])|\s+(?!\S)|\s",
    ),
}
# The model families whose own vocabulary is public; longest prefix first.
_FAMILIES = (
    (("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "chatgpt-4o", "gpt-oss", "o1", "o3", "o4", "codex"), "o200k_base"),
    (("gpt-4", "gpt-3.5", "gpt-35"), "cl100k_base"),
)


def encoding_of(model: str) -> str:
    """The vocabulary this model is known to use, or an empty string. A provider's prefix is ignored."""
    name = model.rpartition("/")[2].lower().removeprefix("ft:")
    return next((encoding for prefixes, encoding in _FAMILIES if name.startswith(prefixes)), "")


def vocabulary_folder(name: str) -> Path | None:
    """The folder with this vocabulary's file: the one that the user named, else litellm's; None if neither has it."""
    chosen = os.environ.get("TIKTOKEN_CACHE_DIR")
    folders = [Path(chosen)] if chosen else []
    folders += (package / "litellm_core_utils" / "tokenizers" for package in _litellm_folders())
    file_name, size_bytes = VOCABULARIES[name]
    for folder in folders:
        file = folder / file_name
        if file.is_file() and file.stat().st_size == size_bytes:
            return folder
    return None


def _litellm_folders() -> list[Path]:
    """Where litellm is installed, found without importing it; empty if it is not."""
    spec = importlib.util.find_spec("litellm")
    return [Path(location) for location in (spec.submodule_search_locations or ())] if spec else []


def loaded_once(load: Callable[P, T]) -> Callable[P, T]:
    """`functools.cache` for large values: threads that call at the same time wait for one load and share its result.

    With the cache alone each of them would load: eight threads would parse and hold eight vocabularies at once.
    """
    kept = cache(load)
    lock = threading.Lock()

    @wraps(load)
    def loaded(*args: P.args, **kwargs: P.kwargs) -> T:
        with lock:
            return kept(*args, **kwargs)  # type: ignore[arg-type]

    loaded.cache_clear = kept.cache_clear  # type: ignore[attr-defined]
    return loaded


@loaded_once
def load_encoding(name: str, folder: Path, *, keep_table: bool = False) -> tiktoken.Encoding:
    """tiktoken's encoding without special tokens, from the file in this folder; 0.6 of the time that tiktoken takes.

    ``keep_table``: whether its table is written to the user's cache for later processes. Raises `Unreadable` if the
    file is not the published one.
    """
    import tiktoken

    sha256, pattern = _DEFINITIONS[name]
    file = folder / VOCABULARIES[name][0]
    data = file.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise Unreadable(f"the vocabulary {name} is damaged", place=str(file), next_step="remove or replace the file")
    # A line is a token and its rank; in the published files the ranks count from 0.
    ranks = {token: rank for rank, token in enumerate(map(a2b_base64, data.split()[::2]))}
    if keep_table:
        write_table(f"{name}-{sha256[:16]}", tuple(ranks))
    encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    # It counts by tables of its own and would keep these 24 MB only to be pickled.
    ranks.clear()
    return encoding


@loaded_once
def load_table(name: str) -> VocabularyTable | None:
    """The vocabulary as a table, for counting small texts; None until a run of the command has written it."""
    sha256, pattern = _DEFINITIONS[name]
    return read_table(f"{name}-{sha256[:16]}", pattern)


TABLE = "model_prices_and_context_window_backup.json"
# `-2025-01-31`, `@20250131`, `-latest`
_DATE = r"[-@](?:20\d{2}-?\d{2}-?\d{2}|latest)$"
# The end of a key in the table: `": {`. Bedrock's names end in a version: `-v1:0": {`.
_KEY_END = re.compile(r'(?:-v\d+(?::\d+)?)?": ?\{')


@lru_cache(maxsize=256)
def window_tokens(model: str) -> int:
    """The window of a model in tokens, 0 if it is not known.

    The name is looked up as it is, without a mark such as ``[1m]``, without a provider's prefix, and without a date. If
    the table has it only with providers' prefixes, the most frequent of their windows is returned.
    """
    names = _spellings(model)
    table = _table() if names else ""
    for name in names:
        if found := _size(_entry(table, name)):
            return found
    for name in names:
        # Of all entries named ``provider/name`` or ``provider.name``.
        sizes: Counter[int] = Counter()
        at = table.find(name)
        while at >= 0:
            end = _KEY_END.match(table, at + len(name))
            if end and table[at - 1] in "/." and (size := _size(_parsed(table, end.end() - 1))):
                sizes[size] += 1
            at = table.find(name, at + 1)
        if sizes:
            return sizes.most_common(1)[0][0]
    return 0


def required_window_tokens(model: str) -> int:
    """The window of a model that the user named. Raises `UsageError` with the nearest known names if it is unknown."""
    found = window_tokens(model)
    if not found:
        nearest = ", ".join(nearest_models(model))
        step = f"did you mean {nearest}? or give the size with --window" if nearest else "give the size with --window"
        raise UsageError(f"the window of model {model} is not known", next_step=step)
    return found


@lru_cache(maxsize=256)
def table_entry(model: str) -> Mapping[str, Any]:
    """What the table has about a model (prices, sizes), by the spellings that `window_tokens` tries; empty if unknown.

    Entries under other providers' prefixes are not used: their prices are their own.
    """
    found = (_entry(_table(), name) for name in _spellings(model))
    return next(filter(None, found), {})


def _spellings(model: str) -> tuple[str, ...]:
    plain = re.sub(r"\[[^\]]*\]$", "", model.strip())
    names = [plain, plain.lower()]
    while "/" in names[-1]:
        names.append(names[-1].partition("/")[2])
    names += [re.sub(_DATE, "", name) for name in names]
    return tuple(dict.fromkeys(name for name in names if name))


def _entry(table: str, name: str) -> dict[str, Any]:
    key = f"{json.dumps(name)}: {{"
    at = table.find(key)
    return _parsed(table, at + len(key) - 1) if at >= 0 else {}


def _size(entry: Mapping[str, Any]) -> int:
    size = entry.get("max_input_tokens")
    return size if isinstance(size, int) else 0


def _parsed(table: str, brace: int) -> dict[str, Any]:
    """The entry that begins at this brace. Only it is parsed: the whole table takes longer than a compaction."""
    try:
        entry, _ = json.JSONDecoder().raw_decode(table, brace)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def is_provider(name: str) -> bool:
    """Whether the table has a model of this provider. It has none of providers that serve the user's own models."""
    return f'"litellm_provider": {json.dumps(name)}' in _table()


def models_of(provider: str) -> tuple[str, ...]:
    """The names of a provider's models in the table, without the provider's prefix."""
    table = json.loads(_table() or "{}")
    names = (name for name, entry in table.items() if entry.get("litellm_provider") == provider)
    return tuple(name.removeprefix(f"{provider}/") for name in names)


def nearest_models(model: str) -> list[str]:
    """Names in the table that look like this one, at most 3, each model in one spelling."""
    import difflib

    names = sorted(json.loads(_table() or "{}"), key=len, reverse=True)
    by_last = {name.rpartition("/")[2]: name for name in names if name != "sample_spec"}
    close = difflib.get_close_matches(model.rpartition("/")[2].lower(), by_last, n=3, cutoff=0.6)
    return [by_last[name] for name in close]


@loaded_once
def _table() -> str:
    """The table's text, empty if litellm is not installed."""
    files = (package / TABLE for package in _litellm_folders())
    return next((file.read_text(encoding="utf-8") for file in files if file.is_file()), "")


# A power of two, and more than twice the tokens of the largest vocabulary, so that few tokens collide.
_SLOTS = 1 << 19
_MASK = _SLOTS - 1
_HASH_BYTES = 32
_NO_RANK = 1 << 31
_MOST_PIECE_BYTES = 300
# The covered characters: Latin, Greek, joiners, dashes and quotes, arrows to boxes and dingbats, the emoji selector,
# and emoji. Python and tiktoken agree on their categories, whatever Unicode versions they have.
_RANGES = (
    *((0, 0x17E), (0x391, 0x3A1), (0x3A3, 0x3C9), (0x200B, 0x2027), (0x2190, 0x2BFF), (0xFE0F, 0xFE0F)),
    *((0x1F300, 0x1F64F), (0x1F680, 0x1F6C5), (0x1F7E0, 0x1F7EB), (0x1F900, 0x1F9FF)),
)
_CLASS = r"\\(?:p\{(\w+)\}|s)"
# A class in a pattern, or a sign that is written out, too: `[^\r\n\p{L}]`, `\p{N}`, `\S`, `$`.
_ITEM = r"\[[^\]]*\]|\\p\{\w+\}|\\[sS]|\$"
# White space as tiktoken has it: Python's `\s` also has four control characters. And Python's `$` also matches before a
# final line feed.
_WHITE = r"\t-\r \x85\xa0"
_ENDS = {"$": r"\Z", r"\S": f"[^{_WHITE}]"}


class VocabularyTable:
    """Counts tokens with a table made by `write_table`; ``pattern`` splits the texts of its vocabulary."""

    def __init__(self, data: bytes, pattern: str) -> None:
        view = memoryview(data)
        size = view[:4].cast("I")[0]
        bounds_start = 4 + 4 * _SLOTS
        tokens_start = bounds_start + 4 * (size + 1)
        self._slots = view[4:bounds_start].cast("I")
        self._bounds = view[bounds_start:tokens_start].cast("I")
        self._tokens = data[tokens_start:-_HASH_BYTES]
        self._pieces = re.compile(re.sub(_ITEM, _written_out, pattern)).findall
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int | None:
        """Tokens of a text; None if it has to be left to the vocabulary itself."""
        if not (text.isascii() or _covered().fullmatch(text)):
            return None
        known, total = self._known, 0
        for piece in self._pieces(text):
            tokens = known.get(piece)
            if tokens is None:
                raw = piece.encode()
                if len(raw) > _MOST_PIECE_BYTES:
                    return None
                tokens = known[piece] = self._count(raw)
            total += tokens
        return total

    def _count(self, piece: bytes) -> int:
        """Tokens of a piece by byte pair encoding: of neighbours that form a token, those of lowest rank are joined."""
        if self._rank(piece) < _NO_RANK:
            return 1
        parts = [piece[i : i + 1] for i in range(len(piece))]
        ranks = [self._rank(piece[i : i + 2]) for i in range(len(piece) - 1)]
        while ranks and (lowest := min(ranks)) < _NO_RANK:
            i = ranks.index(lowest)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
            del ranks[i]
            if i < len(ranks):
                ranks[i] = self._rank(parts[i] + parts[i + 1])
            if i:
                ranks[i - 1] = self._rank(parts[i - 1] + parts[i])
        return len(parts)

    def _rank(self, token: bytes) -> int:
        slot = zlib.crc32(token) & _MASK
        while number := self._slots[slot]:
            if self._tokens[self._bounds[number - 1] : self._bounds[number]] == token:
                return number
            slot = (slot + 1) & _MASK
        return _NO_RANK


def read_table(name: str, pattern: str) -> VocabularyTable | None:
    """The table of this name; None if there is none. A damaged one is removed."""
    file = _table_file(name)
    with suppress(OSError):
        data = file.read_bytes()
        if hashlib.sha256(data[:-_HASH_BYTES]).digest() == data[-_HASH_BYTES:]:
            return VocabularyTable(data, pattern)
        file.unlink()
    return None


def write_table(name: str, tokens: Sequence[bytes]) -> None:
    """Write the table of these tokens, in the order of their ranks, if there is none; a failing disk is ignored."""
    file = _table_file(name)
    if file.exists():
        return
    import tempfile

    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as draft:
            slots = array("I", bytes(4 * _SLOTS))
            for number, token in enumerate(tokens, 1):
                slot = zlib.crc32(token) & _MASK
                while slots[slot]:
                    slot = (slot + 1) & _MASK
                slots[slot] = number
            bounds = array("I", [0, *accumulate(map(len, tokens))])
            data = b"".join((array("I", [len(tokens)]), slots, bounds, *tokens))
            draft.write(data + hashlib.sha256(data).digest())
        Path(draft.name).replace(file)


def _table_file(name: str) -> Path:
    return cache_folder() / "vocabularies" / f"{name}-{sys.byteorder}.1"


def _written_out(found: re.Match[str]) -> str:
    """What stands for a Unicode class of the pattern in Python's `re`, for texts of covered characters."""
    item = found[0]
    if item in _ENDS:
        return _ENDS[item]
    inner = re.sub(_CLASS, lambda name: _ranges(name[1]) if name[1] else _WHITE, item)
    return inner if item.startswith("[") else f"[{inner}]"


@cache
def _ranges(category: str) -> str:
    """The covered characters of a category, as ranges within a character class; of all categories if it is empty."""
    found: list[tuple[int, int]] = []
    for first, last, kind in _runs():
        if kind.startswith(category):
            joined = found.pop()[0] if found and found[-1][1] == first - 1 else first
            found.append((joined, last))
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in found)


@cache
def _runs() -> tuple[tuple[int, int, str], ...]:
    """The covered characters as runs of one category: first, last and category, without unassigned ones."""
    import unicodedata

    every = ((code, unicodedata.category(chr(code))) for first, last in _RANGES for code in range(first, last + 1))
    places = count()
    runs = (tuple(run) for _, run in groupby(every, lambda each: (each[0] - next(places), each[1])))
    return tuple((run[0][0], run[-1][0], run[0][1]) for run in runs if run[0][1] != "Cn")


@cache
def _covered() -> re.Pattern[str]:
    return re.compile(f"[{_ranges('')}]*")
