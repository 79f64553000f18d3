"""Events: a transcript as a flat sequence of what was written, called and answered, with cleaned texts.

Everything after this module (the counter table, the sections, the measures of `compactor eval`) reads
events and never messages, so that what is counted is what is quoted.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from compactor_cli.digest.cleaning import (
    plain,
    spoken_words,
    straightened,
    summary_words,
    unfolded,
    without_block,
    without_gutters,
    without_prompt,
    without_removed,
)
from compactor_cli.digest.texts import ELLIPSIS, one_line, sentences
from compactor_cli.digest.tools import (
    COMMAND_KEYS,
    PATH_KEYS,
    REPORTING_TOOLS,
    ToolKind,
    argument,
    command_of,
    is_of_client,
    is_own,
    scalar,
    short_name,
    tool_kind,
)
from compactor_cli.formats import harness, script_calls
from compactor_cli.formats.client_signs import (
    ABOUT_CALL,
    ABOVE_PART,
    CUT_OUT,
    CUT_OUT_SIGN,
    NEVER_STARTED,
    NO_ANSWER,
    OBSERVATION,
    PRUNED_OUTPUT,
    STOPPED,
    TOOL_ERROR,
    TYPED_COMMAND,
    TYPED_OUTPUT,
    WRITTEN_ACTION,
    WRITTEN_CALL,
    background_reports,
    called_skill,
    is_demonstration,
    started_id,
    subagent_parts,
    team_messages,
    without_reports,
    written_call,
)
from compactor_cli.formats.directories import DIRECTORY_KEYS, Directories, directories_of, named_directory
from compactor_cli.model.patterns import pattern
from compactor_cli.model.transcript import Message, Part, Role, Text, Thinking, ToolCall, ToolResult, Transcript
from compactor_cli.model.value import dataclass


class EventKind(StrEnum):
    """Who or what an event comes from."""

    USER = "user"
    ASSISTANT = "assistant"
    CALL = "call"
    RESULT = "result"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened.

    Texts that a client sends in the user's name (project instructions, skills, notices) are RESULTs without a call.
    """

    kind: EventKind
    record: int  # index of the record that shows it
    text: str  # cleaned; see `events`
    turn: int = 0  # the user's messages so far among the events asked for: 0 before the first, n from the n-th on
    tool: ToolKind = ToolKind.OTHER  # of a CALL, and of the RESULT that answers it
    name: str = ""  # of the tool, or of the agent that reports
    arguments: Mapping[str, Any] | str = field(default_factory=dict)  # of a CALL, cleaned as ``text`` is
    call: int = -1  # of a RESULT, the position of its CALL in the same tuple; -1: unknown, or there is none
    is_error: bool = False
    # What the user wrote when turning the call down or stopping it, perhaps nothing; None: neither was done.
    refusal: str | None = None
    is_answer: bool = False  # the user's answer to the message before, which a tool showed as a question
    exit_code: int = -1  # of a command, where the record has it apart from the text; -1: it does not
    interjects: bool = False  # the user wrote this while the model worked
    was_waiting: bool = False  # written while the model worked, sent afterwards: no answer to the model's last words
    # A text sent in the user's name, or a call for something that the client holds itself (its skills) or its result.
    of_client: bool = False
    is_report: bool = False  # what work in the background, or another agent of the team, reports
    stopped_at: int = -1  # the record in which the user stopped the work right after it, without a word; -1: none
    broken_off: tuple[int, str] = (-1, "")  # the record in which the client says, right after it, why no answer came

    @property
    def is_refusal(self) -> bool:
        """Whether the user turned the call down, or stopped it."""
        return self.refusal is not None

    @property
    def is_of_written_code(self) -> bool:
        """Whether it is the output of code that the agent wrote into a message and that was run: it has no call."""
        return self.kind is EventKind.RESULT and self.call < 0 and not self.of_client


_IsAct = Callable[[ToolKind, str], bool]  # called with the kind of a call's tool and its command line


def events(
    transcript: Transcript, indices: Iterable[int], is_act: _IsAct | None = None, directories: Directories | None = None
) -> tuple[Event, ...]:
    """The events of these records, in record order; a record without words has none.

    A summary that a client wrote while it kept the records before it comes first: it stands for what was before these.
    Records that no model is shown may hold what subagents did. Of those, only the calls that ``is_act`` accepts and
    their results become events; without ``is_act``, none do. ``directories`` are the transcript's, if already known.

    Texts have no working directory prefix, ``<system-reminder>`` blocks, line-number gutters or terminal control
    sequences; long lines of JSON in results are broken between members. The text of a call is the tool's name and
    then the texts of its arguments, as ``key=value`` lines where the tool is about neither files nor commands.

    Left out are thinking, which clients do not send again, demonstrations, which belong to another task, and calls
    that the client never started.
    """
    directories = directories or directories_of(transcript)
    messages = script_calls.without_scripts(transcript)
    reader = _EventReader(
        strip=directories.strip,
        root=directories.root,
        directory=directories.working,
        messages=messages,
        is_act=is_act,
    )
    for index in _as_sent([*indices], messages):
        message, record = messages[index], transcript.records[index]
        if not is_demonstration(record.value):
            reader.folder, reader.value = reader.strip(named_directory(record.value)), record.value
            reader.read(index, message)
            if is_act and message.is_meta:
                reader.read_subagent(index, subagent_parts(record))
    reader.release()
    return _without_never_started(reader.found, reader.denied)


def _is_blank(message: Message) -> bool:
    return message.role is Role.USER and not (message.text.strip() or message.results)


def _as_sent(indices: Sequence[int], messages: Sequence[Message]) -> Sequence[int]:
    """The records in the order in which the model is sent them: a summary before those that were kept along with it."""
    at = max((at for at, index in enumerate(indices) if messages[index].summary is not None), default=0)
    kept = (messages[index] for index in indices[:at])
    if not any(message.role in _OF_CONVERSATION and not message.superseded for message in kept):
        return indices
    return [indices[at], *indices[:at], *indices[at + 1 :]]


_OF_CONVERSATION = (Role.USER, Role.ASSISTANT, Role.TOOL)


def _without_never_started(found: Sequence[Event], denied: Collection[int]) -> tuple[Event, ...]:
    """The events without the calls that the client never started or that its rules denied, and without their results.

    ``denied`` holds the positions of calls in ``found``. Positions in `Event.call` are renumbered.
    """
    answered = (event for event in found if event.kind is EventKind.RESULT and event.call >= 0)
    never = {event.call for event in answered if event.call in denied or NEVER_STARTED.match(event.text)}
    if not never:
        return tuple(found)
    kept = [number for number, event in enumerate(found) if number not in never and event.call not in never]
    places = {-1: -1} | {number: place for place, number in enumerate(kept)}
    return tuple(replace(found[number], call=places[found[number].call]) for number in kept)


def unsaid_thoughts(
    transcript: Transcript, indices: Iterable[int], events: Sequence[Event], strip: Callable[[str], str]
) -> tuple[tuple[int, Event], ...]:
    """The thoughts that no later message of their turn puts into words, each with the position of the event before it.

    Agents may call one tool after another without a word; otherwise a turn's messages hold what its thoughts came to.
    In the newest turn, messages of less than 200 characters do not count, as they only announce the next step. Of
    thoughts before such a message, only the sentences that find something wrong are returned.

    The argument of a tool for thinking is a thought like any other. ``strip``: see `Directories`.
    """
    records = [event.record for event in events]
    spoken = [event for event in events if event.kind is EventKind.ASSISTANT]
    last = {event.turn: event.record for event in spoken}
    is_telling = (event for event in spoken if event.turn != events[-1].turn or len(event.text) >= _MIN_TELLING_CHARS)
    heard = {event.turn: event.record for event in is_telling}
    found: list[tuple[int, Event]] = []
    for index in indices if events else ():
        message = transcript.messages[index]
        thought = "\n".join(map(_thought, message.parts)).strip()
        at = max(0, bisect_left(records, index) - 1)
        if thought and not message.is_meta and heard.get(events[at].turn, -1) < index:
            text = strip(straightened(plain(thought)))
            if index < last.get(events[at].turn, -1):
                text = f" {ELLIPSIS} ".join(filter(_FINDS_AMISS.search, sentences(text)))
            if text:
                found.append((at, Event(kind=EventKind.ASSISTANT, record=index, text=text, turn=events[at].turn)))
    return tuple(found)


_MIN_TELLING_CHARS = 200
_FINDS_AMISS = pattern(
    r"\b(?:is|are) (?:actually |simply )?(?:wrong|missing|outdated|incorrect|stale)\b|\bmismatch"
    r"|\b(?:a (?:gap|bug)|to flag)\b|\bdo(?:es)?(?:n['’]t| not) (?:match|mention)\b"
)


def _thought(part: Part) -> str:
    if isinstance(part, ToolCall):
        return argument(part.arguments, ("thought",)) if short_name(part.name) == "think" else ""
    return part.text if isinstance(part, Thinking) else ""


def results_of(events: Iterable[Event]) -> dict[int, Event]:
    """The result of each call that has one, by the call's position."""
    return {event.call: event for event in events if event.kind is EventKind.RESULT and event.call >= 0}


@dataclass(slots=True, kw_only=True)
class _EventReader:
    strip: Callable[[str], str]
    root: Callable[[str], str]
    directory: str
    messages: Sequence[Message]
    folder: str = ""  # the shell's directory, as the record being read names it
    value: Any = None  # the parsed record being read
    is_act: _IsAct | None = None
    found: list[Event] = field(default_factory=list)
    # Positions in ``found`` of the calls without a result, oldest first, by their id.
    waiting: defaultdict[str, deque[int]] = field(default_factory=lambda: defaultdict(deque))
    early: dict[str, int] = field(default_factory=dict)  # positions of results that a client wrote before their calls
    # The questions of each call that speaks to the user, none if it only reports, by the position of its first event.
    asked: dict[int, tuple[str, ...]] = field(default_factory=dict)
    # The positions of the calls that began work in the background, by the id of that work.
    begun: dict[str, int] = field(default_factory=dict)
    denied: set[int] = field(default_factory=set)  # positions of the calls that a rule of the client denied
    woken_by: set[str] = field(default_factory=set)  # prompts that the agent wrote to be woken with later
    turn: int = 0
    acts_by_words: bool = False  # a call written into a message has had a result
    # Messages that the user wrote while a call was running, with their records: they are read after its result.
    held: list[tuple[int, Message]] = field(default_factory=list)

    def read(self, index: int, message: Message) -> None:
        if message.is_meta:
            return
        if message.role is Role.ASSISTANT:
            self.release()
        if message.summary is not None:
            self._add(EventKind.SUMMARY, index, summary_words(self._clean(message.summary.text)))
            return
        for part in message.parts:
            if isinstance(part, Text) and message.role is Role.ASSISTANT:
                is_copied = "```" in part.text and bool(message.calls)
                text = WRITTEN_CALL.sub("", part.text) if is_copied else part.text
                spoken = self._spoken(text)
                self._add(EventKind.ASSISTANT, index, spoken_words(spoken))
                if self.found and NO_ANSWER.match(spoken):
                    self.found[-1] = replace(self.found[-1], broken_off=(index, one_line(spoken)))
            elif isinstance(part, ToolCall):
                self._called(index, part)
            elif isinstance(part, ToolResult) and part.is_recorded:
                self._answered(index, part)
        # A system message within the conversation is the client's: neither the user nor a tool wrote it.
        if message.role is Role.ASSISTANT or (message.role is Role.SYSTEM and self.turn > 0):
            return
        if not message.results and any(self.waiting):
            self.held.append((index, message))
            return
        self.release()
        self._heard(index, message)

    def release(self) -> None:
        """Read the messages that the user wrote while a call was running."""
        held, self.held = self.held, []
        for index, message in held:
            self._heard(index, message)

    def read_subagent(self, index: int, parts: Iterable[Part]) -> None:
        """Add the calls of a subagent that are acts, and their results."""
        for part in parts:
            if isinstance(part, ToolCall) and self.is_act:
                kind = tool_kind(part.name, part.arguments)
                if self.is_act(kind, command_of(part.arguments) if kind is ToolKind.COMMAND else ""):
                    self._called(index, part)
            elif isinstance(part, ToolResult) and self.waiting.get(part.id):
                self._answered(index, part)

    def _add(self, kind: EventKind, index: int, text: str, *, of_client: bool = False) -> None:
        if text:
            self.found.append(Event(kind=kind, record=index, text=text, turn=self.turn, of_client=of_client))

    def _clean(self, text: str) -> str:
        return self.strip(without_prompt(without_block(plain(text), "system-reminder"))).strip("\n")

    def _spoken(self, text: str) -> str:
        text = CUT_OUT.sub(f" {ELLIPSIS} ", text) if CUT_OUT_SIGN in text else text
        return straightened(self._clean(text))

    def _heard(self, index: int, message: Message) -> None:
        """Add the user's own words, or else what a client or a tool wrote in their name, as a result without a call.

        A command that the user ran becomes a call: its output shows the state of the work.
        """
        last = self.found[-1] if self.found else None
        if self._observed(index, message, last):
            return
        self._reported(index, message.text)
        typed, shown = TYPED_COMMAND.search(message.text), TYPED_OUTPUT.findall(message.text)
        # The command that called a skill may be kept without its words, before the text of the skill.
        skill = called_skill(message.text) if index and _is_blank(self.messages[index - 1]) else ""
        request = typed[1] if typed and _IS_PROSE.match(typed[1]) else skill
        words = self._spoken(harness.user_text(message) or request)
        if words and words in self.woken_by:
            self._add(EventKind.RESULT, index, words, of_client=True)
            return
        if last and short_name(last.name) == "skill" and len(words) >= _MIN_SKILL_CHARS:
            self._add(EventKind.RESULT, index, words, of_client=True)
            return
        if words:
            if last is None or last.kind is not EventKind.USER or last.record != index:
                self.turn += 1
                # Calls without ids are paired by order, and none gets a result once the user has written.
                self.waiting.pop("", None)
            elif words == last.text:
                return  # an answer may stand in the call's result and again in a message of the user
            loaded = message.text if skill else harness.skill_text(message.text)
            self._add(EventKind.RESULT, index, self._clean(loaded), of_client=True)
            event = Event(kind=EventKind.USER, record=index, text=words, turn=self.turn, interjects=message.interjects)
            self.found.append(replace(event, was_waiting=message.was_waiting))
            return
        if typed:
            self._called(index, ToolCall(id=_TYPED, name="bash", arguments={"command": typed[1]}))
        if shown:
            self._answered(index, ToolResult(id=_TYPED, text="\n".join(filter(None, shown))))
        elif last and STOPPED.fullmatch(message.text.strip()):
            self.found[-1] = replace(last, stopped_at=index)
        elif not typed and (text := self._clean(_OF_THE_CLIENT.sub("", without_reports(message.text)))):
            self._add(EventKind.RESULT, index, text, of_client=message.role is not Role.TOOL)

    def _reported(self, index: int, text: str) -> None:
        """Add what background subagents and other agents of a team report in a message sent in the user's name."""
        heard = partial(Event, kind=EventKind.RESULT, record=index, turn=self.turn, is_report=True)
        for key, report in background_reports(text):
            call = self.begun.get(key, -1)
            name = self.found[call].name if call >= 0 else key
            self.found.append(heard(text=self._spoken(report), name=name, call=call, of_client=call < 0))
        for sender, words in team_messages(text):
            self.found.append(heard(text=self._spoken(words), name=sender, of_client=True))

    def _observed(self, index: int, message: Message, last: Event | None) -> bool:
        """Add the result of an action that the assistant wrote into its last message; False if the text is not one.

        A call in that message becomes an event of its own. After the first result that opens with a known sign, any
        text after a message with such a call is taken for its result.
        """
        shown = OBSERVATION.match(message.text)
        is_spoken = last is not None and last.kind is EventKind.ASSISTANT and (shown or self.acts_by_words)
        if last and is_spoken and (written := written_call(last.text)):
            self.acts_by_words = True
            self.found[-1:] = [replace(last, text=written[0])] if written[0] else []
            self._called(last.record, replace(written[1], id=_WRITTEN))
            self._answered(index, ToolResult(id=_WRITTEN, text=message.text[shown.end() if shown else 0 :]))
            return True
        is_result = shown is not None and (WRITTEN_ACTION.search(last.text) if last else shown[0].strip() == "")
        if is_result:
            self._add(EventKind.RESULT, index, self._clean(message.text))
        return bool(is_result)

    def _called(self, index: int, call: ToolCall) -> None:
        questions = harness.asked_questions(call)
        if spoken := list(filter(None, map(self._spoken, questions or (harness.reported_words(call),)))):
            self.waiting[call.id].append(len(self.found))
            self.asked[len(self.found)] = questions
            for words in spoken:
                self._add(EventKind.ASSISTANT, index, words)
            return
        arguments = _cleaned(call.arguments, lambda text: self.strip(plain(text)))
        kind = tool_kind(call.name, arguments)
        if short_name(call.name) in _WAKING_TOOLS:
            self.woken_by.add(self._spoken(argument(call.arguments, ("prompt",))))
        arguments = _with_plain_paths(arguments) if kind in (ToolKind.READ, ToolKind.EDIT) else arguments
        folder = argument(arguments, _FOLDER_KEYS).rstrip("/") if kind in (ToolKind.COMMAND, ToolKind.EDIT) else ""
        folder = folder or (self.folder if kind is ToolKind.COMMAND else "")
        if folder not in ("", ".", self.directory):
            whole = _cleaned(call.arguments, lambda text: self.root(plain(text)))
            # Without the working directory's prefix, a path in the command would read as one in that other folder.
            is_whole = self.directory != "" and f"{self.directory}/" in command_of(whole)
            arguments = _from_directory(whole if is_whole else arguments, kind, folder)
        if (result := self.early.pop(call.id, -1)) >= 0:
            self.found[result] = replace(self.found[result], call=len(self.found), tool=kind, name=call.name)
        else:
            self.waiting[call.id].append(len(self.found))
        self.found.append(
            Event(
                kind=EventKind.CALL,
                record=index,
                text="\n".join((call.name, *_call_lines(arguments, kind))),
                turn=self.turn,
                tool=kind,
                name=call.name,
                arguments=arguments,
            )
        )

    def _answered(self, index: int, result: ToolResult) -> None:
        # Paired by id, then order: ids repeat in real files, and the oldest open call of an id is answered first.
        waiting = self.waiting.get(result.id)
        call = waiting.popleft() if waiting else -1
        if result.id and waiting is None:
            self.early[result.id] = len(self.found)
        if not waiting:
            self.waiting.pop(result.id, None)
        if call in self.asked:
            self._replied(index, call, result)
            return
        tool = self.found[call].tool if call >= 0 else ToolKind.OTHER
        name = self.found[call].name if call >= 0 else result.name
        # A client may send a placeholder for an old output and still keep the output in its file.
        text = self._clean(result.pruned if result.text == PRUNED_OUTPUT else result.text)
        if short_name(name) in REPORTING_TOOLS:  # cut what clients add: how to resume it, its usage
            text = _ABOUT_REPORT.split(text, maxsplit=1)[0].rstrip()
            if begun := started_id(text):
                self.begun[begun] = call
        text = ABOVE_PART.sub("", unfolded(text))
        text = without_removed(without_gutters(text, surely=tool is ToolKind.READ))
        of_client = call >= 0 and is_of_client(tool, name, self.found[call].arguments)
        if of_client:
            self.found[call] = replace(self.found[call], of_client=True)
        if harness.is_denied_by_rule(self.value):
            self.denied.add(call)
        words = harness.refusal(result)
        if words is None and result.is_error and tool in (ToolKind.COMMAND, ToolKind.EDIT):
            words = result.text if harness.is_unmarked_refusal(self.value, result.text) else None
        self.found.append(
            Event(
                kind=EventKind.RESULT,
                record=index,
                text=text,
                turn=self.turn,
                tool=tool,
                name=name,
                call=call,
                is_error=result.is_error or result.text.startswith(TOOL_ERROR),
                refusal=None if words is None else straightened(words),
                exit_code=result.exit_code,
                of_client=of_client,
            )
        )

    def _replied(self, index: int, call: int, result: ToolResult) -> None:
        """Add what the user replied to a call that asked or reported, each answer right after its question."""
        questions, refused = self.asked[call], harness.refusal(result)
        if result.is_error and not questions and refused is None:
            self.found[call] = replace(self.found[call], text="")  # a report that was not taken was not given
        if refused is not None or result.is_error:
            replies: tuple[str, ...] = (refused or "",)
        else:
            replies = harness.answers(questions, result.text) if questions else (harness.reply_to_report(result.text),)
        asked: list[Event] = []
        if len(replies) == len(questions) == len(self.found) - call:
            asked, self.found[call:] = self.found[call:], []
        for number, reply in enumerate(replies):
            # Each answer begins a turn, and the next question belongs to it.
            self.found.extend(replace(one, turn=self.turn) for one in asked[number : number + 1])
            if words := self._spoken(reply):
                self.turn += 1
                is_answer = bool(questions) and refused is None
                self.found.append(
                    Event(kind=EventKind.USER, record=index, text=words, turn=self.turn, is_answer=is_answer)
                )


_ABOUT_REPORT = re.compile(r"(?:^|(?<= ))agentId: \w+ \((?:for resuming|use SendMessage\b)|^<usage>", re.MULTILINE)
# Not about the work: commands to the client with their output, its environment, and that it was interrupted.
_OF_THE_CLIENT = re.compile(
    r"<(local-command-\w+|command-(?:name|message|args)|environment_(?:context|details))>.*?</\1>\s*"
    rf"|{STOPPED.pattern}",
    re.DOTALL,
)
# A request that was typed where a command was expected: `Image updated. Write the handoff`.
_IS_PROSE = re.compile(r"[A-Z][a-z]+[,.]?(?: [A-Za-z'’,.]+){4,}[.!?]?\Z")
_WAKING_TOOLS = frozenset({"schedulewakeup", "croncreate"})
# Where the client's file does not mark the text of a skill, it follows the call that loads it.
_MIN_SKILL_CHARS = 400
# Ids of calls that have none: commands that the user typed, and actions written into a message.
_TYPED = "\0typed"
_WRITTEN = "\0written"
# No tool nests its arguments this deep; anything deeper was made to exhaust the recursion.
_MAX_DEPTH = 64


def _cleaned(value: Any, cleaner: Callable[[str], str], depth: int = _MAX_DEPTH) -> Any:
    if isinstance(value, str):
        return cleaner(value)
    if not depth and isinstance(value, Mapping | list | tuple):
        return "…"
    if isinstance(value, Mapping):
        return {key: _cleaned(item, cleaner, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_cleaned(item, cleaner, depth - 1) for item in value)
    return value


def _with_plain_paths(arguments: Mapping[str, Any] | str) -> Mapping[str, Any] | str:
    """The arguments with the lines that a path names (`tide.py:12-40`) on their own, and its backslashes as slashes."""
    if isinstance(arguments, str):
        return arguments
    given = {key: value for key in PATH_KEYS if isinstance(value := arguments.get(key), str)}
    paths = {key: path.replace("\\", "/") if _OF_WINDOWS.fullmatch(path) else path for key, path in given.items()}
    for key, path in paths.items():
        if found := _LINES_OF.fullmatch(path):
            return {**arguments, **paths, key: found[1], "line_range": found[2]}
    return {**arguments, **paths}


_LINES_OF = re.compile(r"(.*\.\w+):(\d+(?:-\d*)?)")
# A path from the working directory, as Windows writes it.
_OF_WINDOWS = re.compile(r"(?:[\w.@+() -]+\\)+[\w.@+() -]+")


# The arguments of a shell or an editor that name the directory it runs in.
_FOLDER_KEYS = (*DIRECTORY_KEYS, "directory", "dir_path")
_PATCHED_FILE = re.compile(r"^(\*\*\* (?:(?:Add|Update|Delete) File|Move to): )(?![/~])", re.MULTILINE)


def _from_directory(arguments: Mapping[str, Any] | str, kind: ToolKind, folder: str) -> Mapping[str, Any] | str:
    """The arguments of a call that runs in ``folder``, as if it ran in the working directory.

    A command gets ``cd folder &&`` before it; the relative paths in the file headers of a patch get the folder.
    """
    command = command_of(arguments)
    if kind is ToolKind.COMMAND:
        place = f'"{folder}"' if " " in folder else folder
        command = f"cd {place} && {command}"
    else:
        command = _PATCHED_FILE.sub(lambda found: f"{found[1]}{folder}/", command)
    if isinstance(arguments, str):
        return command
    key = next((key for key in COMMAND_KEYS if arguments.get(key) is not None), "")
    return {**arguments, key: command} if key else arguments


def _leaves(arguments: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The values in the arguments, each with its innermost key; a list of strings counts as one value."""
    if isinstance(arguments, Mapping):
        for name, value in arguments.items():
            yield from _leaves(value, str(name))
    elif isinstance(arguments, tuple) and not all(isinstance(item, str) for item in arguments):
        for item in arguments:
            yield from _leaves(item, key)
    else:
        yield key, arguments


def _call_lines(arguments: Any, kind: ToolKind) -> Iterator[str]:
    """The texts among the arguments; ``key=value`` lines where the tool is about neither files nor commands.

    The names of a file tool's or a shell's arguments are its schema, and its numbers, switches and modes are how it
    was used: neither carries information on the work.
    """
    for key, value in _leaves(arguments):
        if kind is ToolKind.OTHER:
            yield (f"{key}=" if key else "") + scalar(value)
        elif (isinstance(value, str) or (value and isinstance(value, tuple))) and key not in _NOT_OF_THE_WORK:
            yield without_removed(scalar(value))


_NOT_OF_THE_WORK = frozenset((*DIRECTORY_KEYS, *ABOUT_CALL))


def is_service_call(event: Event) -> bool:
    """Whether an event calls a tool of a service: neither the agent's own nor one for files or commands."""
    return event.kind is EventKind.CALL and event.tool is ToolKind.OTHER and not is_own(event.name)
