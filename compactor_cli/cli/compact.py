"""``compact``: the filter."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from compactor_cli.cli.command import make_command
from compactor_cli.cli.program import USAGE, invoke

SHORT_USAGE = """\
usage: compact [OPTIONS] [FILE|DIR]…
  compact < session.jsonl > small.jsonl
  compact -t 32k session.jsonl -o small.jsonl
  compact session.jsonl        what is over 20,000 tokens, compacted to that: shown, not written
compact --help shows everything.
"""


def main(arguments: Sequence[str]) -> int:
    """Run the filter; the exit code."""
    return invoke(command, "compact", arguments)


def _run(operands: tuple[str, ...], **given_options: Any) -> int:
    given = {name: value for name, value in given_options.items() if value is not None and value != ()}
    if not operands and not {"files_from", "last"} & given.keys() and _is_terminal_input():
        sys.stderr.write(SHORT_USAGE)
        return USAGE
    from compactor_cli.cli.run_command import run

    return run(operands, given)


def _is_terminal_input() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


command = make_command(_run)
