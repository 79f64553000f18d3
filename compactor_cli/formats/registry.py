"""The dialects by name, and how it is known that what is written in them is right.

A module is imported when its dialect is asked for, not before. Tests hold each statement about evidence to what they
run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from compactor_cli.formats.base import Dialect, first_object
from compactor_cli.model.errors import PluginFailed, UsageError
from compactor_cli.model.plugins import PluginGroup, load_plugin, plugin_failed, plugin_names

_ARRAY = "[]"
# In place of a module: the dialect is a specification, a file of its name.
_SPEC = ""


# Where home-made programs keep their messages.
_OWN = "history trajectory turns dialog dialogue chat chat_history message_history transcript data result output []"
# Each dialect with its module (``module:VALUE`` where that has several), and keys of which each of its values has one
# (``[]``: or is an array). The order decides between dialects that know a value equally well: marks of their own first,
# plain chat last.
_DIALECTS = {
    name: (module, frozenset(keys.split()))
    for name, module, keys in (
        ("claude-code", "claude_code:CLAUDE_CODE", "type loglines"),
        ("codex", "codex", "type timestamp record_type"),
        ("pi", "summary_first:PI", "type"),
        ("gemini-cli", "gemini:GEMINI_CLI", "id sessionId $set $rewindTo"),
        ("qwen-code", "qwen_code", "uuid parentUuid sessionId"),
        ("kimi-wire", "kimi:KIMI_WIRE", "type"),
        ("claude-stream", "claude_code:CLAUDE_STREAM", "type []"),
        ("codex-stream", _SPEC, "thread_id item"),
        ("cursor", _SPEC, "message"),
        ("copilot", _SPEC, "data"),
        ("atif", "trajectories:ATIF", "step_id steps trajectory []"),
        ("gemini-contents", "gemini:CONTENTS", "parts contents request body history messages conversation context []"),
        ("langchain", "frameworks:LANGCHAIN", "lc type messages values channel_values state input inputs outputs []"),
        ("opencode", "summary_first:OPENCODE", "info messages []"),
        ("openhands", "openhands_events:OPENHANDS", "action observation history trajectory events []"),
        ("openhands-v1", "openhands_events:OPENHANDS_V1", "kind history events []"),
        ("swe-agent", "trajectories:SWE_AGENT", "trajectory thought action message_type is_demo agent tool_call_ids"),
        ("mini-swe", "trajectories:MINI_SWE", "extra trajectory_format info"),
        ("inspect", "frameworks:INSPECT", "epoch samples source function"),
        (
            "letta",
            "frameworks:LETTA",
            "tool_returns group_id in_context_message_indices in_context_message_ids messages_total",
        ),
        ("who-when", _SPEC, "mistake_agent mistake_step question_ID"),
        ("hermes-session", _SPEC, "session_id"),
        ("zed", _SPEC, "User Agent messages []"),
        ("otel", _SPEC, "role messages input input_messages attributes gen_ai.input.messages []"),
        ("ui-messages", _SPEC, "role messages chat uiMessages []"),
        ("pydantic-ai", _SPEC, "kind messages message_history all_messages []"),
        ("adk", _SPEC, "invocation_id invocationId events []"),
        ("autogen", _SPEC, "type messages llm_context agent_state task_result []"),
        ("bedrock", _SPEC, "role messages modelInput input []"),
        (
            "openai-chat",
            _SPEC,
            "role messages body input request request_params conversations conversation simulation_run prompt traj"
            f" {_OWN}",
        ),
        ("cline", "tagged_texts:CLINE", "[]"),
        ("anthropic", _SPEC, f"role messages params request request_params conversation {_OWN}"),
        ("tau", _SPEC, "role messages simulation_run []"),
        ("openai-responses", "openai:RESPONSES", "type role input body request output response []"),
        ("chatgpt", "openai:CHATGPT", "mapping"),
        ("sharegpt", "tagged_texts:SHAREGPT", "from conversations conversation []"),
        ("hermes", "tagged_texts:HERMES_TRAJECTORY", "from conversations conversation []"),
        ("kimi-cli", "kimi:KIMI_CLI", "role"),
        ("dialogue", _SPEC, "speaker sender role turns utterances chat_messages chat_history dialogue trajectory []"),
        ("enveloped", "chat:ENVELOPED", "message msg data payload body entry record event"),
    )
}

# What the dialects say of a role and a text: chats are made of such lines, and nothing is imported to judge them.
_PLAIN_KEYS = {"role", "content"}
_PLAIN_SCORES = {
    role: {
        "otel": 0,
        "ui-messages": 0,
        "bedrock": 0,
        "openai-chat": 1,
        "anthropic": anthropic,
        "tau": 1,
        "openai-responses": 1,
        "kimi-cli": 1,
        "dialogue": 0,
    }
    for role, anthropic in (("system", 0), ("developer", 0), ("user", 1), ("assistant", 1))
}

# Of the messages in a row, those of these dialects have one of these keys: where the first has none, and nothing but
# ``messages`` speaks for the dialect, it is not imported to judge the row.
_MESSAGES = "messages"
_MESSAGE_KEYS = {
    "gemini-contents": frozenset({"parts", "text"}),
    "langchain": frozenset({"lc", "type"}),
    "opencode": frozenset({"info"}),
    "zed": frozenset({"User", "Agent"}),
    "otel": frozenset({"parts"}),
    "pydantic-ai": frozenset({"kind"}),
    "autogen": frozenset({"type"}),
}

# How the files of some dialects end; documents of the others end in .json, and sessions in .jsonl.
_SUFFIXES = {"swe-agent": ".traj", "letta": ".af"}
DOCUMENTS = tuple(f"*{suffix}{packed}" for suffix in (".json", *_SUFFIXES.values()) for packed in ("", ".gz", ".zst"))


def names() -> tuple[str, ...]:
    """The names that `get` knows, without importing a dialect."""
    return tuple(_DIALECTS)


def find(name: str) -> Dialect | None:
    """The dialect of that name; None if there is none. Raises PluginFailed as `get` does."""
    try:
        return get(name)
    except UsageError:
        return None


@cache
def get(name: str) -> Dialect:
    """The dialect of that name, built in or of a plug-in, or of a specification at that path (``my.toml``).

    Raises UsageError naming the nearest one that exists or what is wrong in the specification, PluginFailed where a
    plug-in cannot be imported.
    """
    module, _ = _DIALECTS.get(name, (None, None))
    if name.endswith(".toml") or module == _SPEC:
        # Most files are of a dialect that needs no interpreter.
        specified: Dialect = import_module("compactor_cli.formats.spec").load(name)
        return specified
    if module:
        module, _, attribute = module.partition(":")
        built_in: Dialect = getattr(import_module(f"compactor_cli.formats.{module}"), attribute or "DIALECT")
        return built_in
    if name in plugin_names(PluginGroup.DIALECTS):
        plugged: Dialect = load_plugin(PluginGroup.DIALECTS, name)
        return plugged
    from difflib import get_close_matches

    near = get_close_matches(name.lower().replace("_", "-"), names(), n=1, cutoff=0.6)
    advice = (
        f"did you mean {near[0]!r}? compactor formats lists all" if near else f"the formats are {', '.join(names())}"
    )
    raise UsageError(f"no format is called {name!r}", next_step=advice)


def dialects_for(value: Any) -> Iterator[Dialect]:
    """The dialects that a value may be of, judged by its keys alone; each is imported when it is reached."""
    if isinstance(value, dict):
        first = first_object(value.get(_MESSAGES))
        known = _known_by_keys(tuple(value))
        return (get(name) for name, keys in known if not first or not keys or not keys.isdisjoint(first))
    is_array = isinstance(value, list)
    return (get(name) for name, (_, keys) in _DIALECTS.items() if is_array and _ARRAY in keys)


def plain_scores(value: Any) -> Mapping[str, int] | None:
    """The scores of a value that is a role and a text and no more, which holds no array; None: it is not."""
    if not isinstance(value, dict) or value.keys() != _PLAIN_KEYS:
        return None
    role, content = value["role"], value["content"]
    return _PLAIN_SCORES.get(role) if isinstance(role, str) and isinstance(content, str) else None


@lru_cache(maxsize=256)
def _known_by_keys(keys: tuple[str, ...]) -> tuple[tuple[str, frozenset[str]], ...]:
    """The dialects that know any of these keys; records of one kind have the same ones, thousands of times. With each
    the keys of which the first message must have one; none where this need not be.
    """
    found = ((name, own.intersection(keys)) for name, (_, own) in _DIALECTS.items())
    return tuple(
        (name, _MESSAGE_KEYS.get(name, frozenset()) if by == {_MESSAGES} else frozenset()) for name, by in found if by
    )


def all_dialects() -> tuple[Dialect, ...]:
    """Every dialect, in the order in which detection asks them."""
    return tuple(map(get, names()))


def plugin_dialect(value: Any) -> Dialect | None:
    """The first dialect of a plug-in that knows this value. Raises PluginFailed if none does and one failed."""
    failure: PluginFailed | None = None
    for name in plugin_names(PluginGroup.DIALECTS):
        try:
            dialect = get(name)
            if dialect.array_path(value) is not None or dialect.score(value):
                return dialect
        except Exception as error:
            failure = plugin_failed(PluginGroup.DIALECTS, name, error)
    if failure:
        raise failure
    return None


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
    "claude-code": "Claude Code 2.1.330",
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
