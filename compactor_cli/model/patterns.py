"""Regular expressions that are compiled at their first use: the digest has hundreds, and a short session meets few."""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    """Becomes, attribute by attribute, the pattern that it stands for; from then on a call of it costs no more."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, value)
        return value


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile` that waits: an error in the pattern shows when it is first asked for something.

    Functions of `re` do not take it as a pattern; its own methods are called.
    """
    return cast("re.Pattern[str]", _Pattern(text, flags))
