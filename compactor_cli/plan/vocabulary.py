"""Vocabularies: which one a model is known to use, where its file is on this machine, and how it is loaded.

The vocabularies are those that tiktoken names; their files come with litellm's wheel and are found without
importing it. A directory in ``TIKTOKEN_CACHE_DIR`` is looked at first.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

# Names of the files in tiktoken's cache (the SHA-1 of the address they are published at) and their
# bytes: tiktoken deletes a damaged file and goes online for another, so a torn one must not reach it.
VOCABULARIES = {
    "o200k_base": ("fb374d419588a4632f3f557e76b4b70aebbca790", 3_613_922),
    "cl100k_base": ("9b5ad71b2ce5302211f9c61530b329a4922fc6a4", 1_681_126),
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


def load_encoding(name: str, folder: Path) -> tiktoken.Encoding:
    """tiktoken's encoding, from the file in this folder; nothing is fetched."""
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
