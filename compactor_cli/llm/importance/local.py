"""Local: embeddings by a static model on this machine (model2vec, the extra ``[embed]``). Nothing goes online."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compactor_cli.llm.importance.meaning import Embed, Vector
from compactor_cli.model.errors import UsageError

PREFIX = "local:"


def local(name: str) -> Embed:
    """A function from texts to the vectors of the model ``name``: a folder, or a name in the Hugging Face cache.

    Raises UsageError where model2vec is not installed, or no such model is on this machine.
    """
    try:
        from model2vec import StaticModel
    except ImportError as error:
        step = "pip install 'compactor-cli[embed]'"
        raise UsageError("a local embedding model needs model2vec", next_step=step) from error
    folder = name if Path(name).is_dir() else _cached(name)
    try:
        model: Any = StaticModel.from_pretrained(folder)
    except Exception as error:
        raise UsageError(f"no embedding model can be read ({error})", place=folder) from error

    def embed(texts: Sequence[str]) -> Sequence[Vector]:
        found: list[Vector] = model.encode(list(texts)).tolist()
        return found

    return embed


def _cached(name: str) -> str:
    from huggingface_hub import snapshot_download

    try:
        return str(snapshot_download(name, local_files_only=True))
    except Exception as error:
        step = "name a folder, or download it first: hf download NAME"
        raise UsageError(f"no embedding model {name} is on this machine", next_step=step) from error
