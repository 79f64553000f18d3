"""Commands that an agent writes into its text, and the observation that the next message is.

Such agents (SWE-agent, mini-swe-agent) have no calls next to the text: what they say is a thought and one
action, and the environment answers in the user's name. Read as a call and its result, the text stays in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from compactor_cli.formats.contents import arguments
from compactor_cli.model.transcript import Part, Text, ToolCall

# What the digest and people know a command line by.
TOOL = "bash"
_FENCES = ("```bash", "```mswea_bash_command", "```sh", "```", "<command>")


class Fenced(NamedTuple):
    """A text around an action: ``before + action + following`` is the text."""

    before: str
    action: str
    following: str

    def parts(self) -> tuple[Part, ...]:
        """The words before, the call, the words after; without the fence, and without what is empty."""
        return tuple(part for part in self._parts() if part is not None)

    def _parts(self) -> tuple[Part | None, ...]:
        words, more = self._words(), self._more()
        call = ToolCall(id="", name=TOOL, arguments={"command": self.action}) if self.action else None
        return (Text(text=words) if words else None, call, Text(text=more) if more else None)

    def _words(self) -> str:
        words = self.before.rstrip()
        fence = next((fence for fence in _FENCES if words.endswith(fence)), "")
        return words.removesuffix(fence).rstrip() if self.action else self.before

    def _more(self) -> str:
        more = self.following.strip(" \n`")
        is_tag = more.startswith("</") and more.endswith(">") and len(more.split()) == 1
        return "" if not more or is_tag else self.following

    def shortened(self, texts: Mapping[int, str]) -> Fenced:
        """The same with these parts' texts replaced; joined, it is the shortened text."""
        present = [i for i, part in enumerate(self._parts()) if part is not None]
        new = {present[i]: text for i, text in texts.items() if i < len(present)}
        before = new[0] + self.before[len(self._words()) :] if 0 in new else self.before
        action = _command(new[1]) if 1 in new else self.action
        return Fenced(before, action, new.get(2, self.following))


def _command(text: str) -> str:
    """The command of shortened arguments, which may be JSON."""
    parsed = arguments(text)
    command = parsed.get("command") if isinstance(parsed, Mapping) else parsed
    return command if isinstance(command, str) else text


def fenced(content: str, action: str) -> Fenced:
    """The text parted at the last place where the action stands in it; whole if it does not."""
    bare = action.strip()
    at = content.rfind(bare) if bare else -1
    if at < 0:
        return Fenced(content, "", "")
    return Fenced(content[:at], bare, content[at + len(bare) :])


def text_of(content: Any) -> str:
    """The text of a content that is a string or a list with one text block; empty for others."""
    if isinstance(content, str):
        return content
    blocks: Sequence[Any] = content if isinstance(content, list) else ()
    text = blocks[0].get("text") if len(blocks) == 1 and isinstance(blocks[0], dict) else None
    return text if isinstance(text, str) else ""


def with_text(content: Any, text: str) -> Any:
    """A content that `text_of` knows, with another text."""
    return [{**content[0], "text": text}] if isinstance(content, list) else text
