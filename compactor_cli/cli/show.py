"""``compactor show``: what compacting makes of transcripts, to look at; nothing but the page is written."""

from __future__ import annotations

import click

from compactor_cli.model.errors import UsageError


@click.command()
@click.argument("operands", nargs=-1, required=True, metavar="FILE|DIR…", type=click.UNPROCESSED)
@click.option("--html", metavar="FILE", help="Write the page to FILE (- is stdout); without it, print a short view.")
@click.option("-r", "--recursive", is_flag=True, default=None, help="Take the transcripts below folders.")
@click.option("-t", "--target", metavar="TOKENS", help="Tokens the output may use: 32k, 25%.")
@click.option("--preset", metavar="NAME", help="Settings by name or FILE.toml.")
@click.option("--format", metavar="NAME", help="Read as this dialect.")
@click.option("-j", "--jobs", metavar="N", help="Processes.")
def show(operands: tuple[str, ...], **options: object) -> int:
    """Show transcripts before and after: what stays, what the summary says, what is lost. Nothing is compacted.

    The page of one transcript has every record, marked with what becomes of it, and each reference in the summary
    leads to its record; that of several has their sizes, savings, losses and failures.
    """
    from compactor_cli.cli.run_command import run

    given = {name: value for name, value in options.items() if value is not None}
    if len(operands) > 1 and "html" not in given:
        raise UsageError("several transcripts are no short view", next_step="name a page: --html FILE")
    return run(operands, given, only_look=True)
