"""``--version``: the version, the parts that are installed, and whether tokens are counted or estimated."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

# Packages that something depends on, with what for.
_PARTS = (
    ("litellm", "models (-m)"),
    ("tiktoken", "token counts"),
    ("toktok-rs", "the same counts, faster"),
    ("pyarrow", "Parquet"),
    ("ray", "compactor batch --engine ray"),
    ("model2vec", "embeddings on this machine"),
)


def version_option() -> click.Option:
    """``-V``, ``--version``."""
    return click.Option(
        ["-V", "--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Show the version, the parts that are installed, and how tokens are counted.",
    )


def _print_version(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        click.echo("\n".join(_lines(context.info_name or "compact")))
        context.exit()


def _lines(program: str) -> Iterator[str]:
    # Slow to import, and every run imports this module.
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    from compactor_cli import __version__

    yield f"{program} {__version__}"
    yield f"Python {sys.version.split()[0]}"
    for name, purpose in _PARTS:
        try:
            yield f"{name} {version_of(name)}: {purpose}"
        except PackageNotFoundError:
            yield f"{name} is not installed: {purpose}"
    yield _counting()


def _counting() -> str:
    from compactor_cli.plan.models import VOCABULARIES, vocabulary_folder
    from compactor_cli.plan.tokens import BYTES_PER_TOKEN

    names = [name for name in VOCABULARIES if vocabulary_folder(name)]
    if not names:
        return f"tokens: estimated (UTF-8 bytes / {BYTES_PER_TOKEN}), for no vocabulary is on this machine"
    return f"tokens: exact for models with the vocabularies {', '.join(names)}; by the same ones, estimates for others"
