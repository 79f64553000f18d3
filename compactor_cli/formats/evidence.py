"""Evidence: how it is known that what is written in a format is right. Tests hold each statement to what they run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class Evidence(StrEnum):
    """What has read our output, the strongest first."""

    CLIENT = "client"  # the program whose sessions these are resumed them, and what it sent was compared
    LIBRARY = "library"  # the library whose format it is loaded them
    FILES = "files"  # nothing but this program: real files of the format, and its documentation
    PLUGIN = "plug-in"  # whoever wrote the plug-in knows


class Known(NamedTuple):
    """The evidence for a format, and by what: the client or the library, with the version."""

    evidence: Evidence
    by: str = ""


_CLIENTS = {
    "claude-code": "Claude Code 2.1.329",
    "codex": "Codex CLI 0.169.0",
    "pi": "pi 0.73.1",
    "gemini-cli": "Gemini CLI 0.61.0",
    "qwen-code": "Qwen Code 0.24.4",
    "kimi-wire": "Kimi Code 2.1.0",
    "kimi-cli": "kimi-cli 1.51.0",
    "opencode": "opencode 1.18.33",
}
_LIBRARIES = {
    "pydantic-ai": "pydantic-ai 2.68",
    "langchain": "langchain-core 1.7",
    "autogen": "autogen-core 0.7",
    "adk": "google-adk 2.13",
    "openai-responses": "openai-agents 0.20",
    "openai-chat": "openai 2.54 (types of a request)",
    "anthropic": "anthropic 2.12 (types of a request)",
    "gemini-contents": "google-genai 2.34 (types of a request)",
    "inspect": "inspect-ai 0.3",
    "openhands-v1": "openhands-sdk 1.58",
    "ui-messages": "ai 7",
}
KNOWN: Mapping[str, Known] = {
    **{name: Known(Evidence.CLIENT, by) for name, by in _CLIENTS.items()},
    **{name: Known(Evidence.LIBRARY, by) for name, by in _LIBRARIES.items()},
}


def known(name: str, *, is_plugin: bool = False) -> Known:
    """The evidence for a format."""
    return Known(Evidence.PLUGIN) if is_plugin else KNOWN.get(name, Known(Evidence.FILES))
