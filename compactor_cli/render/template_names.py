"""Names of the templates; apart from `text`, since most runs only ask whether there is one of a name."""

from __future__ import annotations

from pathlib import Path

from compactor_cli.model.errors import UsageError

FOLDER = Path(__file__).with_name("templates")


def template_names() -> tuple[str, ...]:
    """The names that `load_template` knows."""
    return tuple(sorted(entry.name[:-5] for entry in FOLDER.iterdir() if entry.name.endswith(".toml")))


def check_template(name: str) -> None:
    """Raises UsageError, with the known names, if no template is called so."""
    if name not in (names := template_names()):
        raise UsageError(f"no template is called {name!r}", next_step=f"known: {', '.join(names)}")
