"""Atoms: the parts of a text that mean something by themselves — paths, names, numbers, hashes.

An atom is one of these, verbatim and at most 200 characters long: URL · UUID · path with ``/`` · file name with a known
extension · ``--flag`` · hex of 7 or more characters with a digit and a letter · date · ``#123`` · number of 4 or more
digits (3 or more with a dot) · identifier of 5 or more characters with an inner ``_``, a camel hump or a digit. Dotted
names are split. The atoms of each chunk of text are cached, since most chunks of a transcript are repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from itertools import chain

from compactor_cli.model.value import dataclass

MOST_CHARS = 200
# Longer runs of letters and digits are encoded data, not names.
_MOST_ID_CHARS = 64
# The letters with which an identifier that may be hexadecimal begins; no identifier begins with a digit.
_HEX_LETTERS = frozenset("abcdefABCDEF")
_MOST_REMEMBERED = 1 << 17  # chunks in the cache before it is cleared
# A longer chunk is a blob: only its beginning is read, as the rest would cost time and give noise.
_MOST_CHUNK_CHARS = 2_000


class AtomKind(StrEnum):
    """The kinds of atoms; the values are the names of the groups in the pattern and of features in the weights."""

    URL = "url"
    UUID = "uuid"
    PATH = "path"
    FILE = "file"
    FLAG = "flag"
    HEX = "hex"
    DATE = "date"
    ISSUE = "issue"
    NUM = "num"
    ID = "id"


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """An atom with its kind. Compared by identity, which is fast: a cached chunk gives the same objects again."""

    text: str
    kind: AtomKind


_EXTENSIONS = (
    "py pyi pyx ipynb js jsx mjs cjs ts tsx mts cts vue svelte astro html htm css scss sass less json jsonl"
    " ndjson json5 yaml yml toml ini cfg conf lock xml svg md mdx rst txt tex csv tsv parquet sql sqlite db sh"
    " bash zsh fish ps1 bat cmd c h cc hh cpp hpp cxx cs fs go rs rb erb php java kt kts scala clj ex exs erl hs"
    " ml mli swift m mm lua pl pm r jl dart zig nim sol proto graphql gql tf hcl nix cmake mk gradle bazel patch"
    " diff log out err bak tmp tgz gz zip tar zst bz2 xz whl jar so dll exe dylib wasm png jpg jpeg gif webp ico"
    " bmp pdf doc docx xls xlsx ppt pptx mp3 mp4 wav mov ttf woff woff2 pem crt key pkl npy npz pt onnx"
    " safetensors gguf bin dat plist env service"
)
# Calls of methods, and variables, that look like file names.
_NOT_FILES = frozenset({"console.log", "Math.log", "math.log", "np.log", "torch.log", "process.env", "import.meta.env"})
_SEPARATORS = b" \t\r\x0b\x0c\"'`<>()[]{},;|=!?*&^%$\\\x00\x1b"
_CHUNK_TABLE = bytes(0x20 if code in _SEPARATORS else code for code in range(256))


@cache
def _chunk_pattern() -> re.Pattern[str]:
    word, start, stop = "A-Za-z0-9_\u00c0-\u024f", r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
    hexes = "[0-9a-fA-F]"
    extensions = "|".join(sorted(_EXTENSIONS.split(), key=lambda name: (-len(name), name)))
    return re.compile(
        rf"(?P<uuid>{start}{hexes}{{8}}(?:-{hexes}{{4}}){{3}}-{hexes}{{12}}{stop})"
        rf"|(?P<date>{start}(?:19|20)\d\d(?:-[01]\d-[0-3]\d|/[01]\d/[0-3]\d)(?![\d/])"
        rf"(?!-[{word}.+@-]*\.(?:{extensions}){stop}))"
        rf"|(?P<path>(?<![{word}/])(?<!package:)(?:~|[{word}.@][{word}.@+-]*)?(?:/[{word}.@+~-]+)+)"
        rf"|(?P<flag>(?<![{word}-])--[A-Za-z][A-Za-z0-9_-]*)"
        rf"|(?P<file>(?<![{word}])[{word}][{word}.+@-]*\.(?:{extensions}){stop})"
        rf"|(?P<hex>{start}(?:0x{hexes}{{4,}}|(?={hexes}*\d)(?=\d*[a-fA-F]){hexes}{{7,}}){stop})"
        rf"|(?P<issue>(?<![A-Za-z0-9_#])\#\d{{1,7}}{stop})"
        rf"|(?P<num>(?:(?<![A-Za-z0-9_.])|(?<=\bv))(?:\d+(?:\.\d+)+|\d{{4,}}|\d{{1,3}}(?:_\d{{3}})+)(?=[A-Za-z]{{0,3}}{stop}))"
        rf"|(?P<id>{start}[A-Za-z_][A-Za-z0-9_]{{4,}}(?![A-Za-z0-9_]|@[A-Za-z0-9-]+\.[A-Za-z]))"
    )


# What distinguishes an identifier from a word: `tideLevel`, `level2`, `tide_level`.
_ID_SIGN = re.compile(r"[a-z][A-Z]|[0-9]|[A-Za-z0-9]_+[A-Za-z0-9]")
# Every atom except URLs has one of these.
_SIGN = re.compile(r"[0-9_/]|[a-z][A-Z]|--[A-Za-z]|\.[A-Za-z]")
_HEX = re.compile(r"0x[0-9a-fA-F]{4,}|(?=[0-9]*[a-fA-F])[0-9a-fA-F]{7,}")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,9}://[^\s\"'`<>()\[\]{}|\\^,;]+")


def _is_atom(text: str, kind: AtomKind) -> bool:
    """Whether a match of the pattern is an atom, by the conditions that the pattern cannot express."""
    if kind is AtomKind.ID:
        return len(text) <= _MOST_ID_CHARS and _ID_SIGN.search(text) is not None
    if kind is AtomKind.PATH:
        return "/" in text[:-1] and any(char.isalpha() for char in text)
    if kind is AtomKind.NUM:
        return sum(char.isdigit() for char in text) >= 3
    return text not in _NOT_FILES


def _read(chunk: str) -> Iterator[Atom]:
    for found in _chunk_pattern().finditer(chunk[:_MOST_CHUNK_CHARS]):
        kind = AtomKind(found.lastgroup or "id")
        text = found[0].rstrip(".:-+~") if kind is AtomKind.PATH else found[0]
        if len(text) <= MOST_CHARS and _is_atom(text, kind):
            yield Atom(text, kind)


def _read_name(name: str) -> tuple[Atom, ...]:
    """The atoms that `_read` would find in a single identifier, without its slow pattern: most new chunks are one."""
    core = name.strip("_")
    if not core or len(name) < 5 or len(name) > _MOST_ID_CHARS:
        return ()
    # The signs of ``_ID_SIGN`` except for an inner capital letter, checked faster.
    has_sign = "_" in core or not core.isalpha()
    if not has_sign and _ID_SIGN.search(core) is None:
        return ()
    is_hex = name[0] in _HEX_LETTERS and not name.isalpha() and _HEX.fullmatch(name) is not None
    return (Atom(name, AtomKind.HEX if is_hex else AtomKind.ID),)


class _Remembered(dict[bytes, tuple[Atom, ...]]):
    """A cache of the atoms of each chunk (a piece of UTF-8 without separators), in order.

    It is shared by the transcripts of a batch, which have most of their words in common.
    """

    def __missing__(self, chunk: bytes) -> tuple[Atom, ...]:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        atoms = self[chunk] = _atoms_of_chunk(chunk)
        return atoms


def _atoms_of_chunk(chunk: bytes) -> tuple[Atom, ...]:
    core = chunk.strip(b".:-+~@")
    if core.isalpha() and (core.islower() or core.istitle() or core.isupper()) and b"--" not in chunk:
        return ()
    if len(chunk) < 4 and b"#" not in chunk and b"/" not in chunk:
        return ()
    if core.isdigit():
        is_whole = len(core) >= 4 and (chunk.startswith(core) or not chunk.partition(core)[0].endswith(b"."))
        return (Atom(core.decode(), AtomKind.NUM),) if is_whole and len(core) <= MOST_CHARS else ()
    text = chunk.decode("utf-8", "replace")
    name = text.rstrip(".:")
    if name.isidentifier() and name.isascii():
        return _read_name(name)
    return tuple(_read(text)) if _SIGN.search(text) else ()


remembered = _Remembered()


def split_urls(text: str) -> tuple[str, tuple[Atom, ...]]:
    """The text with each URL replaced by a blank, and the URLs (without closing punctuation)."""
    if "://" not in text:
        return text, ()
    urls = tuple(Atom(found[:MOST_CHARS].rstrip(".:!?*_"), AtomKind.URL) for found in _URL.findall(text))
    return _URL.sub(" ", text), urls


def chunks(text: str) -> list[bytes]:
    """The chunks of a text from which URLs were removed, in order; line breaks separate chunks like blanks."""
    return _without_separators(text).split()


def chunks_by_line(lines: Iterable[str]) -> Iterator[list[bytes]]:
    """The `chunks` of each line, worked out together for speed. No line may hold a line break."""
    return map(bytes.split, _without_separators("\n".join(lines)).split(b"\n"))


def _without_separators(text: str) -> bytes:
    """The text in UTF-8 with blanks for the characters that only URLs may hold.

    Closing tags (``</level>``) are not read as paths. Escaped line breaks, tabs and Unicode characters are blanks too,
    so that their letters do not join the next word; an escaped ``<`` is a tag's.
    """
    if "\\" in text:
        text = text.replace("\\n", " ").replace("\\t", " ").replace("\\u003c", "<")
        if "\\u" in text or "\\U" in text:
            text = _ESCAPED.sub(" ", text)
    return text.replace("</", " <").encode("utf-8", "replace").translate(_CHUNK_TABLE)


_ESCAPED = re.compile(r"\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}")


def find_atoms(text: str) -> tuple[Atom, ...]:
    """Every atom of a text of any number of lines: URLs first, then the others in order; repeated atoms repeat."""
    rest, urls = split_urls(text)
    return (*urls, *chain.from_iterable(map(remembered.__getitem__, chunks(rest))))


def atom_texts(text: str) -> set[str]:
    """The distinct atoms of a text. Meant for much text: about ten times as fast as the pattern alone."""
    rest, urls = split_urls(text)
    found = {atom.text for atom in chain.from_iterable(map(remembered.__getitem__, set(chunks(rest))))}
    found.update(url.text for url in urls)
    return found


def atom_kinds(text: str) -> dict[str, AtomKind]:
    """The distinct atoms of a text with their kinds, URLs first, then in the order in which they first occur."""
    return {atom.text: atom.kind for atom in find_atoms(text)}
