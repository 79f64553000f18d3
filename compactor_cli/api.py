"""The public API, imported from `compactor_cli`: compacts conversations given in memory, as lines, or by path.

Guarantees: no file is written, no configuration file and no ``COMPACT_*`` variable is read, and nothing leaves the
machine unless a model is named. Failures raise `CompactError`.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, fields, replace
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Unpack, overload

from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model import settings as model_settings
from compactor_cli.model.errors import CompactError, InputError, UnknownShape, UsageError
from compactor_cli.model.plan import Action
from compactor_cli.model.report import Compaction, Outcome, TranscriptReport
from compactor_cli.model.settings import Size, Strategy, nearest, read_choice, read_target, read_tokens, settings_from
from compactor_cli.model.transcript import Container, Frame, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.presets import DEFAULT, load_preset
from compactor_cli.read.jsonl import encoded, from_utf8, parse, read_records, records_in, utf8
from compactor_cli.read.streams import open_stream
from compactor_cli.run.columns import compact_columns
from compactor_cli.run.rows import COMMON_NAMES, RowMaker, mapped

if TYPE_CHECKING:
    from compactor_cli.agents.session_digest import SessionDigest
    from compactor_cli.run.model_run import ModelRun


__all__ = ["CompactError", "Result", "Settings", "compact", "compact_batch", "iter_compact", "make_digest"]

Shape = TypeVar("Shape")
# A number, or a text with a unit: 16000, "16k", "25%".
Amount = int | float | str
Table = Mapping[str, Any]


class Tables(TypedDict, total=False):
    """Settings, by their names in a configuration file; a table is a mapping."""

    trigger: Table
    keep: str | Table
    keep_head: Amount
    keep_tail: Amount
    prune: Sequence[Table]
    strategy: str
    rules: Table
    fit: Table
    budget: Amount | Table
    template: str
    acknowledgement: str
    focus: str
    language: str
    tokenizer: str
    restore_files: int
    min_retention_ratio: float


class Options(Tables, total=False):
    """What decides about a compaction, apart from its target. Keys of `Tables` override those of preset or settings."""

    preset: str
    settings: Settings  # in place of ``preset``
    format: str  # its name; default: recognised by content
    model: str  # that writes the summary; default: none does
    api_base: str  # the model's server
    key_file: str | os.PathLike[str]  # with the model's key; default: that of the environment
    max_cost: float  # in US dollars, for all requests of the call
    timeout: float  # of a request, in seconds


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class PresetSettings(model_settings.Settings):
    """Everything that decides what a compaction does: a preset, and single settings that replace those of the preset.

    Public as `Settings`.
    """

    def __init__(self, preset: str = DEFAULT, *, target: Amount | Size | None = None, **tables: Unpack[Tables]) -> None:
        """Raises CompactError for an unknown key or value, which it names with the nearest known one."""
        tables_given: dict[str, Any] = {**tables} if target is None else {**tables, "target": target}
        made = settings_from(tables_given, load_preset(preset).settings, "settings")
        for item in fields(made):
            object.__setattr__(self, item.name, getattr(made, item.name))


Settings = PresetSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[Shape]):
    """What became of one conversation."""

    messages: Shape
    """The compacted conversation, in the shape in which it was given; what was given, where nothing changed."""

    summary: str = ""
    """The text of the summary alone, without the line that marks it; empty where none was written."""

    report: TranscriptReport
    """Outcome, sizes in tokens and bytes, warnings, what was lost."""

    kept: tuple[int, ...] = ()
    """The messages that stayed as they were, by their index in what was given; ascending."""

    pruned: tuple[int, ...] = ()
    """Those that were shortened or left out by a rule."""

    covered: tuple[int, ...] = ()
    """Those that the summary replaces."""

    lost: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What the covered messages held and the summary does not, by kind (``paths``, ``commands``, ``numbers``, …)."""

    @property
    def changed(self) -> bool:
        """Whether the conversation was compacted."""
        return self.report.outcome is Outcome.COMPACTED


# A path, or a text: what holds a line break or begins like JSON.
TextOrPath = str | os.PathLike[str]


@overload
def compact(source: bytes, target: Amount | None = None, **options: Unpack[Options]) -> Result[bytes]: ...
@overload
def compact(  # type: ignore[overload-overlap]  # a text is not taken for its characters
    source: TextOrPath, target: Amount | None = None, **options: Unpack[Options]
) -> Result[str]: ...
@overload
def compact(  # type: ignore[overload-overlap]  # nor a row for its keys
    source: dict[str, Any], target: Amount | None = None, **options: Unpack[Options]
) -> Result[dict[str, Any]]: ...
@overload
def compact(
    source: Iterable[bytes], target: Amount | None = None, **options: Unpack[Options]
) -> Result[list[bytes]]: ...
@overload
def compact(source: Iterable[str], target: Amount | None = None, **options: Unpack[Options]) -> Result[list[str]]: ...
@overload
def compact(
    source: Iterable[Mapping[str, Any]], target: Amount | None = None, **options: Unpack[Options]
) -> Result[list[dict[str, Any]]]: ...
def compact(source: Any, target: Amount | None = None, **options: Unpack[Options]) -> Result[Any]:
    """Compact one conversation.

    ``source``: its messages (mappings, in any format that rows of a dataset or lines of a session may have), a row
    that holds them, its lines, its text, or the path of its file (gzip and zstd are unpacked). `Result.messages` has
    the same shape; for a path it is text. Messages that stay are the objects that were given.

    ``target``: the most tokens (``"16k"``), or a share of its present tokens (``"25%"``); without one, the trigger of
    the settings decides, as it does for the command line.

    Raises `CompactError` if the conversation cannot be read or compacted, if there are several (see `iter_compact`),
    and for unknown options.
    """
    with _Call(target, options) as work:
        return work.result(conversation_in(source, work.format))


def make_digest(
    source: TextOrPath | bytes | Iterable[Any],
    *,
    size: Amount = 0,
    chars: int = 0,
    but_newest: Amount = 0,
    focus: str = "",
    format: str = "",  # noqa: A002 -- as of `compact`
    preset: str = DEFAULT,
) -> SessionDigest:
    """The summary of one conversation alone: its text, sizes, and the messages that stay after it (``kept``, by index).

    ``source``: as for `compact`. ``size``, ``chars``: the most tokens and characters that the summary may have; without
    either, its size follows from what it covers. ``but_newest``: what stays after it, as ``"8k"`` or ``"2 turns"``.
    Raises `CompactError` as `compact` does, and for a size that is too small for a summary.
    """
    from compactor_cli.agents.session_digest import SizeLimit, digest_session

    tables = {"keep_tail": but_newest, "focus": focus}
    settings = settings_from(tables, load_preset(preset).settings, "options")
    limit = SizeLimit(tokens=read_tokens(size, "size"), chars=chars)
    return digest_session(conversation_in(source, format).transcript, settings, limit=limit)


def iter_compact(
    source: TextOrPath | bytes | Iterable[Any],
    target: Amount | None = None,
    *,
    on_error: Literal["raise", "keep"] = "raise",
    **options: Unpack[Options],
) -> Iterator[Result[Any]]:
    """Compact many conversations one after the other, with only one of them (with a model, a few) in memory at a time.

    ``source``: conversations (lists of messages, or rows that hold them), or the lines, text or path of a file with
    any number of them. Each result of lines is a list of lines, each of a text or path is text; joined, they are what
    the command line writes. Everything else is as for `compact`.

    A conversation that fails raises `CompactError`; with ``on_error="keep"`` it is returned unchanged, with the outcome
    ``failed`` and the reason in its report. A line that is not JSON raises in any case.
    """
    read_choice(on_error, ("raise", "keep"), "on_error")
    return _results(source, _Call(target, options), keeps_failed=on_error == "keep")


def _results(source: Any, call: _Call, *, keeps_failed: bool) -> Iterator[Result[Any]]:
    with call as work:
        result = partial(work.result, keeps_failed=keeps_failed)
        yield from mapped(result, conversations_in(source, work.format), work.models)


def compact_batch(
    batch: Mapping[str, Sequence[Any]],
    target: Amount | None = None,
    *,
    column: str = "",
    reasons: str = "",
    **options: Unpack[Options],
) -> dict[str, list[Any]]:
    """Compact a batch, for Hugging Face's ``dataset.map(compact_batch, batched=True, fn_kwargs={"target": "16k"})``.

    The conversations are in ``column`` or in several columns (``"chosen,rejected"``; default: the first that holds
    any), as text or as lists of messages. The result for a row is the same as by the command line.

    A row that fails raises `CompactError`; if ``reasons`` names a column, the row stays as it was and the reason is
    written there. Also raises if a named column is missing or holds no conversation, or if no column holds any.
    """
    with _Call(target, options) as work:
        return compact_columns(
            batch, work.maker, column=column, reasons=reasons, dialect=work.format, models=work.models
        )


class _Call:
    """What all conversations of a call share: what compacts them, and the connection to a model. Use in ``with``."""

    maker: RowMaker
    models: ModelRun | None = None

    def __init__(self, target: Amount | None, options: Options) -> None:
        self._options = options
        self._stack = ExitStack()
        self._settings = _settings(target, options)
        self.format = options.get("format", "")

    def __enter__(self) -> _Call:
        if self._options.get("model"):
            from compactor_cli.llm.limits import SpendLimits
            from compactor_cli.llm.model_calls import NO_KEYS, read_keys
            from compactor_cli.run.model_run import ModelConfig, ModelRun, check_setup, model_options

            options, model = self._options, self._options["model"]
            key_file = options.get("key_file")
            config = ModelConfig(
                model_options=model_options(
                    self._settings,
                    model=model,
                    api_base=options.get("api_base", ""),
                    timeout_seconds=options.get("timeout", 600.0),
                    max_reply_bytes=4 << 20,
                ),
                limits=SpendLimits(cost_usd=options.get("max_cost", 0.0)),
                keys=read_keys(Path(key_file), model, options.get("api_base", "")) if key_file else NO_KEYS,
            )
            for warning in config.warnings:
                warnings.warn(warning, stacklevel=3)
            check_setup(config)
            self.models = self._stack.enter_context(ModelRun(config))
        self.maker = RowMaker(
            settings=model_settings.unarchived(self._settings), load_state=lambda name: None, archived=False
        )
        if models := self.models:
            self.maker.summariser = lambda guidance: models.summariser(Path(), guidance)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def result(self, conversation: GivenConversation, *, keeps_failed: bool = False) -> Result[Any]:
        """The result for one conversation. Raises CompactError if it fails, unless ``keeps_failed``."""
        transcript = conversation.transcript
        try:
            row = self.maker.compact(transcript)
        except UsageError:
            raise
        except CompactError as error:  # only sessions raise; a row that fails is passed on by the maker
            if not keeps_failed:
                raise
            row_like = replace(transcript, frame=replace(transcript.frame, container=Container.ARRAY))
            row = self.maker.passed(row_like, error)
        if row.report.outcome is Outcome.FAILED and not keeps_failed:
            raise transcript.fault or InputError(row.report.reason)
        # The summary as read back from the output, which removes its marker and frame.
        messages = row.transcript.messages if row.transcript and row.summary_text else ()
        read = [item.summary.text for item in messages if item.summary and item.summary.origin == "compact"]
        summary = read[-1] if read else row.summary_text
        return Result(
            messages=conversation.rebuilt(row),
            summary=summary.strip(),
            report=row.report,
            kept=row.plan.indices(Action.KEEP),
            pruned=row.plan.indices(Action.PRUNE),
            covered=row.plan.indices(Action.COVER),
            lost=row.report.lost,
        )


_TABLES = Tables.__annotations__.keys()
_ABOUT_MODELS = ("api_base", "key_file", "max_cost", "timeout")


def _settings(target: Amount | None, options: Options) -> model_settings.Settings:
    """The settings of a call. Raises UsageError for unknown options, and for options that exclude one another."""
    known = (*Options.__annotations__, "target")
    for name in options:
        if name not in known:
            raise UsageError(f"unknown option {name}", next_step=nearest(name, known) or f"known: {', '.join(known)}")
    about_model = [name for name in _ABOUT_MODELS if name in options]
    if about_model and not options.get("model"):
        raise UsageError(f"{about_model[0]} is about a model, and none is named", next_step="add model=")
    if options.get("settings") and options.get("preset"):
        raise UsageError("settings and preset exclude one another", next_step="Settings(preset, …) holds both")
    base = options.get("settings") or load_preset(options.get("preset") or DEFAULT).settings
    # From here on, plain settings in place of the public subclass.
    plain = model_settings.Settings(**{item.name: getattr(base, item.name) for item in fields(model_settings.Settings)})
    tables_given: dict[str, Any] = {name: value for name, value in options.items() if name in _TABLES}
    if target is not None:
        tables_given["target"] = read_target(target, "target")
    settings = settings_from(tables_given, plain, "options")
    if options.get("model") and settings.strategy is not Strategy.SUMMARY:
        what = f"nothing is summed up by the strategy {settings.strategy.value}, so no model can write it"
        raise UsageError(what, next_step="leave model out, or take another preset")
    return settings


# The place that error messages name, as there is no file.
_PLACE = "messages"
_OPENINGS = ("{", "[")
_TEXTS = (str, bytes, bytearray, memoryview, os.PathLike)


@dataclass(frozen=True, slots=True)
class GivenConversation:
    """One conversation as it was given."""

    transcript: Transcript
    rebuilt: Callable[[Compaction], Any]  # from its compaction to the shape in which it was given


def conversation_in(source: Any, dialect: str = "") -> GivenConversation:
    """The only conversation in a source. Raises InputError if there is none, UsageError if there are several."""
    if not isinstance(source, (Mapping, *_TEXTS)):
        source = list(source)
        if not source or not isinstance(source[0], str | bytes | list | tuple):
            return _given_messages(source, dialect)
    found = list(islice(conversations_in(source, dialect), 2))
    if not found:
        raise InputError("there is no conversation", next_step="give its messages, its lines or its path")
    if len(found) > 1:
        raise UsageError("there is more than one conversation", next_step="use iter_compact")
    return found[0]


def conversations_in(source: Any, dialect: str = "") -> Iterator[GivenConversation]:
    """The conversations in a source, read one by one as they are needed."""
    if isinstance(source, Mapping):
        yield _given_row(source, dialect)
        return
    if not isinstance(source, _TEXTS):
        yield from _in_items(iter(source), dialect)
        return
    is_text = isinstance(source, str | os.PathLike)
    with ExitStack() as stack:
        if isinstance(source, bytes | bytearray | memoryview):
            records = read_records(io.BytesIO(source), _PLACE)
        elif isinstance(source, str) and ("\n" in source or source.lstrip("\ufeff \t\r").startswith(_OPENINGS)):
            records = read_records(io.BytesIO(utf8(source)), _PLACE)
        else:
            records = records_in(stack.enter_context(open_stream(os.fspath(source))))
        for transcript in open_transcripts(records, dialect=dialect):
            yield GivenConversation(transcript, lambda row: from_utf8(row.output) if is_text else row.output)


def _in_items(items: Iterator[Any], dialect: str) -> Iterator[GivenConversation]:
    first = next(items, None)
    if first is None:
        return
    items = chain((first,), items)
    if isinstance(first, str | bytes):
        yield from _in_lines(items, dialect, is_text=isinstance(first, str), is_ended=first[-1:] in ("\n", b"\n"))
        return
    for item in items:
        try:
            yield _given_row(item, dialect) if isinstance(item, Mapping) else _given_messages(item, dialect)
        except InputError as error:
            # What is not a conversation becomes a faulty row: the caller decides whether it raises or is kept.
            frame = Frame(container=Container.ARRAY)
            transcript = Transcript(dialect="", records=(), messages=(), frame=frame, fault=error)
            yield GivenConversation(transcript, lambda row, item=item: item)  # type: ignore[misc]


def _in_lines(items: Iterator[Any], dialect: str, *, is_text: bool, is_ended: bool) -> Iterator[GivenConversation]:
    """The conversations in lines; ``is_ended``: the lines end with line feeds, and so do those of the results."""

    def rebuilt(row: Compaction) -> list[Any]:
        lines = row.output.split(b"\n")
        ended = [line + b"\n" for line in lines[:-1]] + lines[-1:] if is_ended else lines
        return [from_utf8(line) if is_text else line for line in (ended if ended[-1] else ended[:-1])]

    def lines() -> Iterator[bytes]:
        """The lines, each with a line feed; the last line of a file that has none stays without."""
        given: Iterator[Any] = (utf8(item) if isinstance(item, str) else item for item in items)
        for line, following in pairwise(chain(given, (None,))):
            is_whole = line.endswith(b"\n") or (is_ended and following is None)
            yield line if is_whole else line + b"\n"

    for transcript in open_transcripts(read_records(lines(), "lines"), dialect=dialect):
        yield GivenConversation(transcript, rebuilt)


def _given_row(row: Mapping[str, Any], dialect: str) -> GivenConversation:
    transcript = _one_transcript(_encoded(row) + b"\n", dialect)

    def rebuilt(made: Compaction) -> Any:
        return parse(made.output) if made.changed else row

    return GivenConversation(transcript, rebuilt)


def _given_messages(messages: Any, dialect: str) -> GivenConversation:
    """Messages read as the records of a session, else as those of a row under one of the common names of columns."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise InputError(f"not a list of messages ({type(messages).__name__})", next_step="give lists", place=_PLACE)
    lines = [_encoded(message) for message in messages]
    session = b"".join(line + b"\n" for line in lines)
    rows = [b'{"%s":[%s]}\n' % (name.encode(), b",".join(lines)) for name in COMMON_NAMES]
    failures: list[InputError] = []
    for text, container in ((session, Container.LINES), *((row, Container.ARRAY) for row in rows)):
        try:
            transcript = _one_transcript(text, dialect)
        except InputError as error:
            failures.append(error)
            continue
        # Otherwise the list holds a row of a dataset, not messages.
        if transcript.frame.container is container and len(transcript.records) == len(messages):
            break
    else:
        raise failures[0] if failures else _not_one()

    def rebuilt(row: Compaction) -> list[Any]:
        """The messages of the output; those that stayed are the objects that were given."""
        if not row.changed or row.transcript is None:
            return list(messages)
        waiting = list(reversed(row.plan.indices(Action.KEEP)))
        made: list[Any] = []
        for record in row.transcript.records:
            is_given = bool(waiting) and transcript.records[waiting[-1]].raw == record.raw
            made.append(messages[waiting.pop()] if is_given else record.value)
        return made

    return GivenConversation(transcript, rebuilt)


def _one_transcript(text: bytes, dialect: str) -> Transcript:
    """The only transcript in a text. Raises InputError if there is none or several."""
    found = list(islice(open_transcripts(read_records(io.BytesIO(text), _PLACE), dialect=dialect), 2))
    if len(found) != 1:
        raise _not_one()
    if found[0].fault:
        raise found[0].fault
    return found[0]


def _not_one() -> UnknownShape:
    advice = "rows of a dataset are given to iter_compact"
    return UnknownShape("these are not the messages of one conversation", next_step=advice, place=_PLACE)


def _encoded(value: Any) -> bytes:
    """The value as one line of JSON. Raises InputError for what JSON cannot hold."""
    if not isinstance(value, Mapping):
        advice = "give mappings; objects of a library are dumped first (model_dump, dumpd, …)"
        raise InputError(f"a message is not a mapping ({type(value).__name__})", next_step=advice, place=_PLACE)
    return encoded(value, _PLACE)
