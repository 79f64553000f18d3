"""Regular expressions that are compiled at their first use: the digest has hundreds, a short session needs a few."""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    """Stands for a pattern. It stores each attribute at its first use, after which using it costs nothing extra."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, value)
        return value


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, but the pattern is compiled, and an error in it raised, when a method is first used.

    Call its methods: functions of `re`, such as `re.sub`, do not accept it as a pattern.
    """
    return cast("re.Pattern[str]", _Pattern(text, flags))
