"""The dialects by name, the protocol that they implement, and what each format can hold.

`Dialect` is the whole interface of a format for the other folders. `located` does most of the work for dialects that
are code, `spec` for those that are data. A module is imported only when its dialect is asked for.

The evidence that our output in a format is correct is listed here too; tests compare each statement with what they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Flag, StrEnum, auto
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NamedTuple, Protocol, runtime_checkable

from compactor_cli.formats.harness import with_client
from compactor_cli.model.errors import PluginFailed, UsageError
from compactor_cli.model.plugins import PluginGroup, load_plugin, plugin_failed, plugin_names
from compactor_cli.model.transcript import Message, Record, Role, ToolCall, ToolResult, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.read.jsonl import INVALID


class Capabilities(Flag):
    """What a format has a place for."""

    SYSTEM = auto()
    CALLS = auto()  # tool calls and their results
    SEVERAL = auto()  # several calls in one message
    WORDS = auto()  # words in a message that calls
    IDS = auto()  # ids of calls
    ERRORS = auto()  # a mark of results that are errors
    THINKING = auto()
    IMAGES = auto()
    TIMES = auto()
    USAGE = auto()  # token counters
    TOOLS = auto()  # definitions of tools
    MODEL = auto()
    SIDECHAINS = auto()  # conversations of subagents
    SUMMARIES = auto()  # a mark of its own for a summary
    METADATA = auto()  # keys next to the messages that the format does not define


# Their names for people: in the table of formats, and in the report of what a conversion could not carry over.
_LONG = (
    *("system prompt", "calls", "parallel calls", "words with calls", "call ids", "error flags", "thinking", "images"),
    *("timestamps", "usage counters", "tool definitions", "model", "sidechains", "summary marks", "metadata"),
)
NAMES = dict(zip(Capabilities, _LONG, strict=True))

# The column heads of that table, in the same order.
SHORT_NAMES = "sys call par wrds id err thnk img time use tool modl side sum meta".split()

# The words for them in specifications; groups of them are added below.
WORDS = {flag.name.lower(): flag for flag in Capabilities if flag.name}


def of_words(words: Iterable[str]) -> Capabilities:
    """The capabilities that these words name, applied in order: ``images`` adds one, ``-images`` removes it."""
    found = Capabilities(0)
    for word in words:
        flag = WORDS[word.removeprefix("-")]
        found = found & ~flag if word.startswith("-") else found | flag
    return found


# Messages of a model's API: alone, and with what stands around them in a request.
CHAT = of_words("calls several words system ids images".split())
REQUEST = CHAT | of_words("tools model metadata".split())
# Session files of a client, and logs of runs.
SESSION = of_words("calls several words ids errors thinking images times usage model".split())
RUN = of_words("calls several words system model metadata".split())
WORDS |= {"session": SESSION, "chat": CHAT, "request": REQUEST, "run": RUN}


def names_of(holds: Capabilities) -> tuple[str, ...]:
    """The names of these capabilities, in the order of the table."""
    return tuple(name for flag, name in NAMES.items() if flag in holds)


def pad_missing_results(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages, with an empty result added for each call without an id that has none.

    Results are added to the last tool message after the call, if there is one, so that every call has a result.
    """
    found = list(messages)
    for i, message in enumerate(found):
        calls = len(message.calls) if message.role is Role.ASSISTANT else 0
        if not calls or any(call.id for call in message.calls):
            continue
        stop = i + 1
        while stop < len(found) and found[stop].role is Role.TOOL:
            stop += 1
        missing = calls - sum(len(result.results) for result in found[i + 1 : stop])
        if stop > i + 1 and missing > 0:
            last = found[stop - 1]
            found[stop - 1] = replace(last, parts=last.parts + (ToolResult(id="", text=""),) * missing)
    return tuple(found)


def with_unrecorded(message: Message, calls: Iterable[ToolCall]) -> Message:
    """The message, with an empty result added for each of these calls, of which the file holds none."""
    hidden = (ToolResult(id=call.id, text="", name=call.name, is_recorded=False) for call in calls)
    return replace(message, parts=(*message.parts, *hidden))


JsonPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """A message to be written into a transcript: the summary, or an acknowledgement after it."""

    role: Role
    text: str
    is_summary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertionPoint:
    """The records that are kept before and after the insertions, ascending, counted from 0."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def kept(self) -> frozenset[int]:
        """All records that are kept."""
        return frozenset((*self.before, *self.after))

    @property
    def near(self) -> tuple[int, ...]:
        """The kept records: from the insertions back to the start, then from the insertions to the end."""
        return (*reversed(self.before), *self.after)

    def tail_start(self, count: int) -> int:
        """The first record of the tail; without a tail, ``count``: the end of the records."""
        return self.after[0] if self.after else count


class Dialect(Protocol):
    """One on-disk format. Implementations hold no state.

    Optional attributes and methods:

    - ``read_one(record)``: the message that `read` gives for a record, if that does not depend on the records around
      it, except for what `pad_missing_results` adds;
    - ``is_text_only(elements)``: whether the messages of a row hold only texts and calls. Such a row has no more tokens
      than bytes, since the keys of a message take more than 4 bytes;
    - ``session_key(value)``: the session to which a line belongs; empty if it names none;
    - ``unread_keys``: keys of records whose values only repeat other data. A session's records are held without them;
    - ``settle(source, composed)``: adapts what counts or names records in the composed transcript (which has records,
      frame and row as they are to be written, but no messages yet). Of kept records only their numbers may change;
    - ``links_records``: whether the client follows links between records, so that head and tail must be joined for both
      to be sent;
    - the methods of `Refreshing` and `Appending`.
    """

    @property
    def name(self) -> str:
        """Short name for ``--format`` (``claude-code``)."""

    @property
    def title(self) -> str:
        """Name for people (``Claude Code session``)."""

    @property
    def holds(self) -> Capabilities:
        """What the format has a place for."""

    def array_path(self, value: Any) -> JsonPath | None:
        """The path of the array of messages in a line that is a whole conversation; ``()`` if the line is the array.

        None: the line is one record of a session.
        """

    def score(self, value: Any) -> int:
        """How surely this value (a line, or an element at ``array_path``) is of this dialect.

        0 no · 1 possible (a plain role and text) · 2 likely · 3 certain (a mark that no other dialect has).
        """

    def starts(self, value: Any) -> bool:
        """Whether this line can only be the first of a session (``session_meta``, ``{"type":"session"}``)."""

    def read(self, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
        """One message per record. Unknown records become META; nothing is raised for odd content."""

    def model(self, records: Sequence[Record], row: Any = None) -> str:
        """The model that the transcript itself last used, or an empty string."""

    def insert(self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion]) -> tuple[bytes, ...]:
        """The new records for one or more insertions, each as the bytes of a line or array element without terminator.

        Deterministic: ids and times are derived from the transcript, never from the clock or at random.
        """

    def shorten(self, record: Record, texts: Mapping[int, str]) -> bytes:
        """The record with the texts of these parts (numbered as in ``read``) replaced.

        Everything else of the record keeps its value; only such records are serialised anew.
        """


def objects(records: Sequence[Record]) -> list[Mapping[str, Any]]:
    """The values of the records; an empty object in place of any other value."""
    return [record.value if isinstance(record.value, dict) else {} for record in records]


def first_object(elements: Any) -> Any:
    """The first object of an array; None if it holds none, or the value is not an array."""
    found = elements if isinstance(elements, list) else ()
    return next((element for element in found if isinstance(element, dict)), None)


def read_messages(dialect: Dialect, records: Sequence[Record], row: Any = None) -> tuple[Message, ...]:
    """`Dialect.read`, with ``client`` set on the messages of the user, and ``is_unread`` on lines that are not JSON."""
    messages = with_client(dialect.read(records, row), dialect.name)
    if all(record.value is not INVALID for record in records):
        return messages
    return tuple(
        replace(message, is_unread=record.value is INVALID) for message, record in zip(messages, records, strict=True)
    )


def reread(dialect: Dialect, source: Transcript, records: Sequence[Record], row: Any) -> tuple[Message, ...]:
    """`Dialect.read` of the records of a composed transcript, most of which are records of ``source``.

    If the dialect has ``read_one``, only new and changed records are read; the others keep their messages.
    """
    read_one: Callable[[Record], Message] | None = getattr(dialect, "read_one", None)
    if read_one is None:
        return read_messages(dialect, records, row)
    known = {id(record.value): message for record, message in zip(source.records, source.messages, strict=True)}
    messages = pad_missing_results(tuple(known.get(id(record.value)) or read_one(record) for record in records))
    return with_client(messages, dialect.name)


def settled(dialect: Dialect, source: Transcript, composed: Transcript) -> Transcript:
    """The composed transcript after the dialect's ``settle``; unchanged if the dialect has none."""
    settle: Callable[[Transcript, Transcript], Transcript] | None = getattr(dialect, "settle", None)
    return settle(source, composed) if settle else composed


@runtime_checkable
class Refreshing(Protocol):
    """A dialect whose client trusts token counters in a session, or whose sessions repeat messages in other records."""

    def outdated(self, records: Sequence[Record], staying: Sequence[int]) -> frozenset[int]:
        """The records that must be removed too: those that repeat messages, or take back messages that are gone."""

    def counters(self, records: Sequence[Record], staying: Sequence[int]) -> Mapping[int, int]:
        """The staying records from which the client reads the conversation's size, each with that size in tokens."""

    def recount(self, record: Record, size_tokens: int) -> bytes:
        """The record with its counter at this size; everything else keeps its value."""


@runtime_checkable
class Appending(Protocol):
    """A dialect whose client has its own compaction boundary, after which it does not send earlier records."""

    @property
    def appends_head(self) -> bool:
        """Whether a head can be sent before the summary; if not, the summary covers it."""

    def append(
        self, transcript: Transcript, cut: InsertionPoint, insertions: Sequence[Insertion], size_tokens: int
    ) -> tuple[bytes, ...]:
        """The lines to be written after all others, each without terminator.

        The client then sends ``cut.before`` (if `appends_head`), the insertions and ``cut.after``, and takes the
        conversation to be of ``size_tokens``. Deterministic, as `Dialect.insert` is.
        """


_ARRAY = "[]"
# In place of a module: the dialect is a specification, the file of its name in ``specs/``.
_SPEC = ""


# Keys under which self-made programs keep their messages.
_OWN = "history trajectory turns dialog dialogue chat chat_history message_history transcript data result output []"
# Each dialect with its module (``module:VALUE`` if that has several) and with keys, at least one of which every value
# of the dialect has (``[]``: or is an array). The order decides between dialects that know a value equally well, so
# those with marks of their own come first and plain chat last.
_DIALECTS = {
    name: (module, frozenset(keys.split()))
    for name, module, keys in (
        ("claude-code", "claude_code:CLAUDE_CODE", "type loglines []"),
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
        (
            "gemini-contents",
            "gemini:CONTENTS",
            "parts text contents request body history messages conversation context []",
        ),
        ("langchain", "frameworks:LANGCHAIN", "lc type messages values channel_values state input inputs outputs []"),
        ("opencode", "summary_first:OPENCODE", "info messages []"),
        ("openhands", "openhands_events:OPENHANDS", "action observation history trajectory events []"),
        ("openhands-v1", "openhands_events:OPENHANDS_V1", "kind history events []"),
        (
            "swe-agent",
            "trajectories:SWE_AGENT",
            "trajectory history thought action message_type is_demo agent tool_call_ids",
        ),
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
        ("gemini-stream", _SPEC, "tool_id session_id stats severity timestamp ts"),
        ("opencode-stream", _SPEC, "sessionID"),
        ("kiro", _SPEC, "version"),
        ("entire", _SPEC, "cli_version"),
        ("antigravity", _SPEC, "step_index"),
        ("grok", _SPEC, "prompt_index synthetic_reason model_id tool_call_id tool_calls kind summary"),
        ("dialogue", _SPEC, "speaker sender role turns utterances chat_messages chat_history dialogue trajectory []"),
        ("enveloped", "chat:ENVELOPED", "message msg data payload body entry record event"),
    )
}

# The scores of the dialects for a message that is only a role and a text. Most chats consist of these, and with this
# table no dialect needs to be imported to judge them.
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

# Every message of these dialects has one of these keys. If a row's first message has none, and only the key
# ``messages`` suggests the dialect, the dialect is not imported to judge the row.
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

# Suffixes of the documents of some dialects. Other documents end in .json, and sessions in .jsonl.
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
    found: Dialect
    module, _ = _DIALECTS.get(name, (None, None))
    if name.endswith(".toml") or module == _SPEC:
        # Most files are of a dialect that needs no interpreter.
        found = import_module("compactor_cli.formats.spec").load(name)
    elif module:
        module, _, attribute = module.partition(":")
        found = getattr(import_module(f"compactor_cli.formats.{module}"), attribute or "DIALECT")
    elif name in plugin_names(PluginGroup.DIALECTS):
        found = load_plugin(PluginGroup.DIALECTS, name)
    else:
        from difflib import get_close_matches

        near = get_close_matches(name.lower().replace("_", "-"), names(), n=1, cutoff=0.6)
        advice = f"the formats are {', '.join(names())}"
        if near:
            advice = f"did you mean {near[0]!r}? compactor formats lists all"
        raise UsageError(f"no format is called {name!r}", next_step=advice)
    return found


def dialects_for(value: Any) -> Iterator[Dialect]:
    """The dialects that a value may belong to, by its keys alone; each is imported when the iteration reaches it."""
    if isinstance(value, dict):
        first = first_object(value.get(_MESSAGES))
        known = _known_by_keys(tuple(value))
        return (get(name) for name, keys in known if not first or not keys or not keys.isdisjoint(first))
    is_array = isinstance(value, list)
    return (get(name) for name, (_, keys) in _DIALECTS.items() if is_array and _ARRAY in keys)


def plain_scores(value: Any) -> Mapping[str, int] | None:
    """The scores of the dialects for a value that is only a role and a text; None for any other value."""
    if not isinstance(value, dict) or value.keys() != _PLAIN_KEYS:
        return None
    role, content = value["role"], value["content"]
    return _PLAIN_SCORES.get(role) if isinstance(role, str) and isinstance(content, str) else None


@lru_cache(maxsize=256)
def _known_by_keys(keys: tuple[str, ...]) -> tuple[tuple[str, frozenset[str]], ...]:
    """The dialects that know any of these keys, each with keys of which the first message must have one.

    The second set is empty if there is no such condition. Cached, since thousands of records have the same keys.
    """
    found = ((name, own.intersection(keys)) for name, (_, own) in _DIALECTS.items())
    return tuple(
        (name, _MESSAGE_KEYS.get(name, frozenset()) if by == {_MESSAGES} else frozenset()) for name, by in found if by
    )


def all_dialects() -> tuple[Dialect, ...]:
    """Every built-in dialect, in the order in which detection tries them."""
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
    """What confirms that our output in a format is correct, the strongest first."""

    CLIENT = "client"  # the program whose format it is resumed our sessions, and what it sent was compared
    LIBRARY = "library"  # the library whose format it is loaded our output
    FILES = "files"  # only real files of the format and its documentation: no other program has read our output
    PLUGIN = "plug-in"  # unknown to us: the author of the plug-in is responsible


class Known(NamedTuple):
    """The evidence for a format."""

    evidence: Evidence
    by: str = ""  # the client or the library, with its version


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
