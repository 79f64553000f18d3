"""What counts much sooner than tiktoken, and what little: proven to count as it does, and not noticed otherwise."""

from __future__ import annotations

import importlib.util
import stat
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compactor_cli.plan import tokens
from compactor_cli.plan.models import VOCABULARIES, VocabularyTable, load_encoding, load_table
from compactor_cli.plan.tokens import OnceCounter, TiktokenCounter

needs_toktok = pytest.mark.skipif(
    not importlib.util.find_spec("toktok"), reason="the extra [fast] is not installed: pip install '.[fast]'"
)


@pytest.fixture
def forgetful() -> Iterator[None]:
    """What was found out about the faster counter is found out again, before and after the test."""
    tokens.fast_count.cache_clear()
    yield
    tokens.fast_count.cache_clear()


@pytest.fixture
def much(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is so much to count that the faster counter pays."""
    monkeypatch.setattr(tokens, "AMOUNT", amount := tokens.Amount())
    amount.expect(tokens.PAYS_FROM_BYTES)


def _by_tiktoken(text: str, vocabulary: str = "o200k_base") -> int:
    return TiktokenCounter(vocabulary)._by_tiktoken(text)


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_the_probes_are_tiktokens_counts(vocabulary: str) -> None:
    column = 1 + tokens.PROBED.index(vocabulary)
    assert [_by_tiktoken(str(probe[0]), vocabulary) for probe in tokens.PROBES] == [
        probe[column] for probe in tokens.PROBES
    ]


@pytest.mark.usefixtures("forgetful")
def test_without_the_extra_tiktoken_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(tokens.importlib, "import_module", missing)
    assert tokens.fast_count("o200k_base") is None
    assert TiktokenCounter().count("Hello, world!") == 4


@pytest.mark.usefixtures("forgetful")
def test_a_counter_that_fails_a_probe_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong:
        def __init__(self, name: str, folder: str) -> None:
            pass

        def count(self, text: str) -> int:
            return len(text) // 4

    monkeypatch.setattr(tokens.importlib, "import_module", lambda name: SimpleNamespace(Tokenizer=Wrong))
    assert tokens.fast_count("o200k_base") is None


def test_what_it_counts_otherwise_is_left_to_tiktoken() -> None:
    assert tokens.is_covered("plain")
    assert tokens.is_covered("Köln 中文 🙂")
    covered, not_covered = tokens._COVERED, tokens._NOT_COVERED
    assert not [i for i in range(0x110000) if covered.fullmatch(chr(i)) and not_covered.search(chr(i))]
    for text in ("a\ud800b", "\U000323b0", "x\u088f"):
        assert not tokens.is_covered(text)
        assert TiktokenCounter().count(text) == _by_tiktoken(text)


@needs_toktok
@pytest.mark.usefixtures("much")
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_it_is_used_where_it_is_installed(vocabulary: str) -> None:
    assert tokens.fast_count(vocabulary) is not None
    counter = TiktokenCounter(vocabulary)
    assert counter.count("Hello, world!") == 4
    assert counter._encoding is None


@needs_toktok
@pytest.mark.usefixtures("forgetful", "much")
def test_threads_that_count_at_the_same_time_load_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("toktok._toktok")
    loads: list[str] = []

    def loaded(vocabulary: str, pattern: str) -> object:
        loads.append(vocabulary)
        return module.Tokenizer(vocabulary, pattern)

    monkeypatch.setattr(tokens.importlib, "import_module", lambda name: SimpleNamespace(Tokenizer=loaded))
    start = threading.Barrier(8)

    def count(_: int) -> int:
        start.wait()
        return TiktokenCounter().count("Hello, world!")

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(count, range(8))) == [4] * 8
    assert loads == ["o200k_base"]


@needs_toktok
def test_it_is_used_from_so_much_text_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "AMOUNT", tokens.Amount())
    counter, text = TiktokenCounter(), "word " * (tokens.CACHED_CHARS // 5)
    assert counter.count("Hello, world!") == 4
    assert counter._exact == counter._at_first
    for number in range(tokens.PAYS_FROM_BYTES // len(text) + 1):
        assert counter.count(text + str(number)) == _by_tiktoken(text + str(number))
    assert counter._exact != counter._at_first


@needs_toktok
@pytest.mark.usefixtures("much")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=300), st.sampled_from(sorted(VOCABULARIES)))
def test_any_text_has_the_same_count(text: str, vocabulary: str) -> None:
    assert TiktokenCounter(vocabulary).count(text) == _by_tiktoken(text, vocabulary)


@needs_toktok
@pytest.mark.usefixtures("much")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("a1 \n\t=.'é中", max_size=60), st.integers(1, 3_000))
def test_long_runs_have_the_same_count(text: str, times: int) -> None:
    long = text * times
    expected = sum(map(_by_tiktoken, tokens.pieces(long))) if len(long) > tokens.CACHED_CHARS else _by_tiktoken(long)
    assert TiktokenCounter().count(long) == expected


def _real_pieces(corpus: Path) -> Iterator[str]:
    """Every text of real transcripts, as it is counted."""
    for path in sorted(corpus.rglob("*.json*")):
        for text in {text for line in path.read_bytes().splitlines() for text in _texts(line)}:
            yield from tokens.pieces(text)


@needs_toktok
def test_every_text_of_real_transcripts_has_the_same_count(corpus: Path) -> None:
    counter = tokens.fast_count("o200k_base")
    assert counter is not None
    compared = 0
    for piece in _real_pieces(corpus):
        if tokens.is_covered(piece):
            assert counter(piece) == _by_tiktoken(piece), piece[:200]
            compared += len(piece)
    assert compared > 1_000_000


def _texts(line: bytes) -> Iterator[str]:
    try:
        left = [orjson.loads(line)]
    except orjson.JSONDecodeError:
        left = [line.decode("utf-8", "replace")]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)


def test_a_text_is_counted_once() -> None:
    class Counting:
        method = "counting"

        def __init__(self) -> None:
            self.texts: list[str] = []

        def count(self, text: str) -> int:
            self.texts.append(text)
            return len(text)

    counting = Counting()
    once = OnceCounter(counting)
    assert [once.count(text) for text in ("aa", "b", "aa", "c" * 100_000, "c" * 100_000)] == [2, 1, 2, 100_000, 100_000]
    assert counting.texts == ["aa", "b", "c" * 100_000]


@pytest.mark.usefixtures("much")
def test_a_text_takes_no_more_memory_once_it_is_counted() -> None:
    text = "größer → " * 1_000
    size_bytes = sys.getsizeof(text)
    assert TiktokenCounter().count(text)
    assert sys.getsizeof(text) == size_bytes


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the tables, in which there is none yet; little is to be counted."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tokens, "AMOUNT", tokens.Amount())
    tokens.AMOUNT.expect(1)
    load_encoding.cache_clear()  # type: ignore[attr-defined]
    load_table.cache_clear()  # type: ignore[attr-defined]
    yield tmp_path / "compact" / "vocabularies"
    load_table.cache_clear()  # type: ignore[attr-defined]


def _table(vocabulary: str = "o200k_base") -> VocabularyTable:
    """The table, made by loading the vocabulary once."""
    _by_tiktoken("", vocabulary)
    load_table.cache_clear()  # type: ignore[attr-defined]
    table = load_table(vocabulary)
    assert table is not None
    return table


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_the_table_counts_the_probes_as_tiktoken_does(vocabulary: str, tables: Path) -> None:
    table, column = _table(vocabulary), 1 + tokens.PROBED.index(vocabulary)
    counted = [(table.count(str(probe[0])), probe[column]) for probe in tokens.PROBES]
    assert all(count in (None, expected) for count, expected in counted)
    assert sum(count is not None for count, _ in counted) >= 10


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_the_table_counts_real_texts_as_tiktoken_does(vocabulary: str, tables: Path, corpus: Path) -> None:
    table, compared = _table(vocabulary), 0
    for piece in _real_pieces(corpus):
        if (count := table.count(piece)) is not None:
            assert count == _by_tiktoken(piece, vocabulary), piece[:200]
            compared += len(piece)
    assert compared > 1_000_000


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(
    st.text(
        st.characters(max_codepoint=0x17F)
        | st.characters(min_codepoint=0x390, max_codepoint=0x3CA)
        | st.sampled_from("\u200d\u2019\u2013\u2192\u2713\ufe0f\U0001f642\U0001f7e1\U0001f926\U0001f3fb\u212a\u017f"),
        max_size=80,
    )
)
def test_the_table_counts_any_text_that_it_covers_as_tiktoken_does(tables: Path, text: str) -> None:
    for vocabulary in VOCABULARIES:
        count = (load_table(vocabulary) or _table(vocabulary)).count(text)
        assert count in (None, _by_tiktoken(text, vocabulary))
        assert count is not None or not text.isascii()


def test_little_is_counted_without_loading_the_vocabulary(tables: Path) -> None:
    _table()
    counter = TiktokenCounter()
    assert counter.count("Gr\u00fc\u00dfe \u2014 Hello, world!") == 8
    assert counter._encoding is None
    for left in ("\u4e2d\u6587\u5206\u8bcd", "x" * 1_000):
        assert counter.count(left) == _by_tiktoken(left)
    assert counter._encoding is not None


def test_the_table_is_private_and_made_once(tables: Path) -> None:
    _table()
    (made,) = tables.iterdir()
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert stat.S_IMODE(tables.stat().st_mode) == 0o700
    before = made.stat()
    load_encoding.cache_clear()  # type: ignore[attr-defined]
    _table()
    assert made.stat() == before


def test_a_damaged_table_is_not_believed_and_made_anew(tables: Path) -> None:
    _table()
    (made,) = tables.iterdir()
    whole = made.read_bytes()
    for damaged in (b"", whole[:-100], whole[: 5_000_000 // 2] + b"?" + whole[5_000_000 // 2 + 1 :]):
        made.write_bytes(damaged)
        load_table.cache_clear()  # type: ignore[attr-defined]
        load_encoding.cache_clear()  # type: ignore[attr-defined]
        assert TiktokenCounter().count("Hello, world!") == 4
        assert made.read_bytes() == whole


def test_without_a_place_for_the_table_tiktoken_counts(tables: Path) -> None:
    tables.parent.write_text("a file in the place of the folder")
    assert TiktokenCounter().count("Hello, world!") == 4
    assert load_table("o200k_base") is None
