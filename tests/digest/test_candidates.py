"""Lines that were only looked at: what they are worth."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WORTHS = """
from conversation import conversation, request, user
from compactor_cli.digest.analysis import analyse
from compactor_cli.digest.candidates import UnderWay
words = "harbour lantern meadow orchard pebble quarry ribbon saddle timber velvet walnut yonder".split()
lines = [" ".join(words[first::step][:6]) for step in (1, 2, 3, 5) for first in range(3)]
under_way = UnderWay(analyse(request(conversation(user(" ".join(words))))), lines)
print([under_way.worth(line) for line in lines])
"""


def test_a_line_is_worth_the_same_to_the_last_digit_in_every_process() -> None:
    printed = set()
    for seed in "1234":
        given = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent)}
        done = subprocess.run([sys.executable, "-c", WORTHS], env=given, capture_output=True, text=True, check=True)
        printed.add(done.stdout)
    (worths,) = printed
    assert len(set(worths.split(","))) > 3
