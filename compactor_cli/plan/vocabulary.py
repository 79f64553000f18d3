"""Vocabularies: which one a model is known to use, where its file is on this machine, and how it is loaded.

The vocabularies are those that tiktoken names; their files come with litellm's wheel and are found without
importing it. A directory in ``TIKTOKEN_CACHE_DIR`` is looked at first.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
from binascii import a2b_base64
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from compactor_cli.model.errors import Unreadable

if TYPE_CHECKING:
    import tiktoken

P = ParamSpec("P")
T = TypeVar("T")
# Names of the files in tiktoken's cache (the SHA-1 of the address they are published at) and their
# bytes: a torn file is passed over for another one.
VOCABULARIES = {
    "o200k_base": ("fb374d419588a4632f3f557e76b4b70aebbca790", 3_613_922),
    "cl100k_base": ("9b5ad71b2ce5302211f9c61530b329a4922fc6a4", 1_681_126),
}
# The SHA-256 of the files and how a text is parted before its pieces are encoded, from tiktoken_ext/openai_public.py.
_DEFINITIONS = {
    "o200k_base": (
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    "cl100k_base": (
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|"
        r"\s++$|\s*[\r\n]|\s+(?!\S)|\s",
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
    for prefixes, encoding in _FAMILIES:
        if name.startswith(prefixes):
            return encoding
    return ""


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


def loaded_once(load: Callable[P, T]) -> Callable[P, T]:
    """`functools.cache` for what is large: threads that ask at the same time wait for one load and share its result.

    The cache alone would let each of them load: with eight threads eight vocabularies are parsed and held at once.
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
def load_encoding(name: str, folder: Path) -> tiktoken.Encoding:
    """tiktoken's encoding without its special tokens, from the file in this folder; nothing is fetched.

    Takes 0.6 of the time of ``tiktoken.get_encoding``, which parses the file line by line. Raises `Unreadable` if the
    file is not the one that is published.
    """
    import tiktoken

    sha256, pattern = _DEFINITIONS[name]
    file = folder / VOCABULARIES[name][0]
    data = file.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise Unreadable(f"the vocabulary {name} is damaged", place=str(file), next_step="remove or replace the file")
    # A line is a token and its rank; of the published files it is known that the ranks count from 0.
    ranks = {token: rank for rank, token in enumerate(map(a2b_base64, data.split()[::2]))}
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
