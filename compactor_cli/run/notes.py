"""Notes: the file in which an agent kept notes of a session, found by the session's name."""

from __future__ import annotations

from pathlib import Path

from compactor_cli.model.errors import UsageError

# Stands for the name of the input, without folder and extensions.
NAME = "{name}"


def note_of(file: str, path: str) -> str:
    """The note for the input ``path``; empty where ``file`` names notes by their session and this one has none.

    Raises UsageError if the file cannot be read.
    """
    found = Path(file.replace(NAME, Path(path).name.partition(".")[0]))
    try:
        return found.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        if NAME in file:
            return ""
        raise UsageError(
            "there is no such note", next_step="name the file, or leave --memory out", place=file
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise UsageError(f"the note cannot be read ({reason})", place=str(found)) from error
