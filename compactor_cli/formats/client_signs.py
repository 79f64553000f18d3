"""The texts that clients write into conversations: how a command ended, what is loaded or runs in the background,
texts that no model wrote, the messages of other agents, and the frames of their summaries.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from compactor_cli.formats.contents import is_of_server, json_value, short_name, string
from compactor_cli.formats.located import at, content_parts
from compactor_cli.model.marker import text_before_marker, without_marker
from compactor_cli.model.patterns import pattern
from compactor_cli.model.transcript import Part, PreviousSummary, Record, Role, Text, ToolCall, text_of
from compactor_cli.read.jsonl import parse

# What Claude Code writes in the model's name when the model gave no answer.
NO_ANSWER = pattern(r"API Error\b")
NOT_SPOKEN = pattern(
    rf"{NO_ANSWER.pattern}|No response requested\.\Z|Claude AI usage limit reached\b"
    r"|You['’]ve hit your (?:\w+ )?limit\b"
)
# Labels that SWE-agent and mini-swe-agent make the model write before its words: `THOUGHT: `, `Thought: `.
SPOKEN_LABEL = pattern(r"\A(?:(?:THOUGHT|DISCUSSION):?|Thought:)\s+")
# What the runner of Magentic-One and its browser write into the words of agents: warnings of Python, the members of the
# team, a page's metadata; and what Codex's app shows as buttons. Magentic-One's ledger is a JSON object whose entries
# have a reason and an answer.
AROUND_SPOKEN = pattern(
    r"^\S+\.py:\d+: \w*Warning: .*\n?(?:^[ \t]+\S.*(?:\n|\Z))?"
    r"|^(?:[ \t]+\w+ = await [\w.]+\(.*|No agent selected\.|Next speaker \w+"
    r"|(?:SCENARIO\.PY|RUN\.SH) COMPLETE !#!#)[ \t]*(?:\n|\Z)"
    r"|^To answer this request we have assembled the following team:\n(?s:.*?)(?=^Here is an initial fact sheet)"
    r"|^The following metadata was extracted from the webpage:\s*^\{(?s:.*?)^\}[ \t]*(?:\n|\Z)"
    r"|^::[a-z-]+\{[^\n]*\}[ \t]*(?:\n|\Z)",
    re.MULTILINE,
)
LEDGER = pattern(r"\AUpdated Ledger:\s*(\{.*\})\s*\Z", re.DOTALL)
LEDGER_ENTRIES = ("is_request_satisfied", "is_in_loop", "instruction_or_question")
# Actions that an agent writes as text (ReAct, smolagents): `Action 2: …`. Results come in the user's name and open with
# `Observation 2: ` and the like; so do results in SWE-agent, OpenHands and mini-swe-agent without named tools.
WRITTEN_ACTION = pattern(r"^(?:Action|Code)(?: \d+)?:", re.MULTILINE)
OBSERVATION = pattern(
    r"\s*(?:(?:Observation(?: \d+)?|OBSERVATION):|EXECUTION RESULT of \[[^\]\n]*\]:\n?|(?=<(?:returncode|output)>))"
)
# `<function=read><parameter=path>tides.txt</parameter></function>`.
_WRITTEN_FUNCTION = pattern(r"<function=([\w.-]+)>\s*(.*?)(?:</function>.*)?\Z", re.DOTALL)
_WRITTEN_PARAMETER = pattern(r"<parameter=([\w.-]+)>(.*?)</parameter>", re.DOTALL)
_WRITTEN_COMMAND = pattern(
    r"```(?:bash|sh|mswea_bash_command)?\n(.*?)\n?```(?!.*```)|<command>\n?(.*?)\n?</command>", re.DOTALL
)
# A code block with the command at the end of the words, which the message also calls as a tool.
WRITTEN_CALL = pattern(r"\s*^```(?:bash|sh)\n(?:(?!^```).*\n)*```\s*\Z", re.MULTILINE)
# Arguments that explain a call to the person who has to allow it, in Gemini CLI, Cursor, OpenHands, Codex and
# Antigravity.
ABOUT_CALL = frozenset({"instruction", "explanation", "security_risk", "justification", "Instruction", "Description"})
# What Gemini CLI and Qwen Code write above a part of a file.
ABOVE_PART = pattern(r"\A\s*IMPORTANT: The file content has been truncated\.\n(?:.*\n){1,8}?--- FILE CONTENT.*---\n")
# Beginnings of lines that tools write around their output for the model's orientation: `[File: tides.txt (80 lines
# total)]`, `(12 more lines below)`. Of `ls -l`, SWE-agent, mini-swe-agent, OpenHands, patches and others.
AROUND_OUTPUT = pattern(
    r"[-dl](?:[r-][w-][xsStT-]){3}|\[File: .* lines total\)\]|\(\d+ more lines (?:above|below)\)"
    r"|Shell cwd was reset to |\((?:Bash completed with )?no output\)$|<shellId: \S+ completed with exit code \d+>$"
    r"|Active shell sessions:$|shellId: \d+(?:, pid: | was already stopped\b)|current command: "
    r"|</?(?:output|returncode)>|<command with shellId: \S+ is still running\b|\[rerun: b\d+\]$"
    r"|\[(?:The command completed with|Command finished with|Current working directory:|Python interpreter:)"
    r"|\W{0,6}\d+ (?:more )?(?:bytes|char(?:acter)?s|lines) truncated\b"
    # Of Codex and Gemini CLI.
    r"|Process (?:exited with code|Group PGID:) \d+$|Found \d+ match(?:es)? for pattern \""
    # Of Antigravity: how much it cut out, and on commands in the background.
    r"|<truncated \d+ (?:bytes|lines)>|Task(?::| id)? \"?(?:[\w-]+/)?task-\d+\b|Status: (?:DONE|RUNNING)$"
    # Of opencode, below an output that it cut.
    r"|The tool call succeeded but the output was truncated\. Full output|Use the Task tool to have explore agent\b"
    r"|\*\*\* (?:Add|Update|Delete|Move|End) |Here's the result of running `cat -n`|[.sxFEX]+ +\[ *\d+%\]"
)
OUTPUT_FRAME = pattern(r"(?<=</returncode>\n)<output>\n?(.*?)\n?</output>\Z", re.DOTALL)
# What opencode puts around a file that was read.
FILE_FRAME = pattern(
    r"\A<path>[^\n]*</path>\n<type>file</type>\n<content>\n?(.*?)\n*"
    r"(?:\((?:End of file|Showing lines|Output capped)[^\n]*\)\n)?</content>",
    re.DOTALL,
)
# The header that Codex writes before the output of a call. Group 1, the line with the exit code, stays.
OUTPUT_HEAD = pattern(
    r"\A(?:Command: (?s:.{0,4000}?)\n(?=Chunk ID: \w+\nWall time: |Wall time: ))?"
    r"(?:Chunk ID: \w+\n)?Wall time: [\d.]+ seconds\n(Process (?:exited with code -?|running with session ID )\d+\n)?"
    r"(?:Original token count: \d+\n)?Output:(?:\n|\Z)"
)
# The report of a command in Gemini CLI and its forks. Groups: what it printed, its errors, its exit code.
COMMAND_REPORT = pattern(
    r"\ACommand: .*?\nDirectory: [^\n]*\n(?:Output|Stdout): (?:\(empty\))?(.*?)(\nStderr: (?:\(empty\))?.*?)?"
    r"\nError: (?:\(none\))?[^\n]*(\nExit Code: [^\n]*)\n.*\Z",
    re.DOTALL,
)
# The same since Gemini CLI leaves out what is empty.
SHORT_REPORT = pattern(
    r"\AOutput: (?:\(empty\))?(.*?)(\nError: [^\n]*)?(\nExit Code: [^\n]*)?(?:\n(?:Signal|Background PIDs): [^\n]*)*"
    r"\nProcess Group PGID: \d+\s*\Z",
    re.DOTALL,
)
# What Antigravity writes around an output: times, how the command ended (group 2 stays, and group 1, with the id of a
# command in the background), the head of a file that was read. Then remarks to the model, below an output or within it.
STEP_HEADS = ("Created At: ", "The following is a <SYSTEM_MESSAGE>", "The command ", "File Path: `file:")
STEP_HEAD = pattern(
    r"\A(?:Created At: .*(?:\nCompleted At: .*)?"
    r"|The following is a <SYSTEM_MESSAGE> .*\s*<SYSTEM_MESSAGE>\n\[Message\] .*?content=)?"
    r"\s*(Task id \".*\n)?\s*(?:The command (?:completed successfully\.|failed with (exit code: -?\d+\n))\s*"
    r"(?:Stdout:\s*Stderr:|Stdout:|Output:|No output)\s*"
    r"|File Path: `.*\n(?:Total .*\n)*Showing lines .*\n(?:The following code .*\n)?"
    r"|Encountered error in step execution: (?:error executing cascade step: )?(?:CORTEX_STEP_\w+: )?"
    r"|Error invalid tool call: .*\s*Error Message: (?:model output error: )?(?:invalid tool call error \(\w+\) )?)?"
)
STEP_REMARKS = pattern(
    r"\s+If relevant, proactively run terminal commands to execute this code .*|^\[diff_block_(?:start|end)\]\n?"
    r"|^(?:Please note that the above snippet only shows|We did our best to apply changes|Last progress: "
    r"|The above content (?:shows|does NOT show) the entire|NOTE: The output was truncated because"
    r"|REMINDER: Do not call this tool again |Guidance: You are trying to correct |Retries remaining: ).*\n?"
    r"|^Log: .*\n(?:Log output:\n)?|^Task logs are available at: .*|^</SYSTEM_MESSAGE>"
    r"|(?<=[ \"])[0-9a-f]{8}-[0-9a-f-]{27}/(?=task-\d)",
    re.MULTILINE,
)
# Antigravity's note of how much it cut out of a long text.
CUT_OUT, CUT_OUT_SIGN = pattern(r"\s*<truncated \d+ (?:bytes|lines)>\s*"), "<truncated "
# What Codex writes where it cut out the middle of an output.
CUT_LINES, CUT_LINES_SIGN = pattern(r"\u2026\d+ (?:tokens|chars|lines) truncated\u2026"), " truncated\u2026"
# Texts of SWE-agent's editor: tracebacks of its own commands, `File updated. Please review …` after an edit, and the
# file as it would have looked after an edit that was refused.
ABOUT_EDIT = pattern(
    r"^ *File \"/root/commands/\w+\", line \d+\n(?:[^\n]*\n){1,3}?\w+Error: [^\n]*\n"
    r"|^(?:File updated|Text replaced)\. Please review [^\n]*(?:\n\([^\n]*)?\n?"
    r"|^This is how your edit would have looked.*",
    re.MULTILINE | re.DOTALL,
)
# The opening of Claude Code's prompt for a summary, of a whole session or of its newest part.
ASKS_FOR_SUMMARY = "Your task is to create a detailed summary of the "
# That prompt's demand on the form of the answer, which summaries may quote as the user's words.
ASKS_FOR_TEXT = pattern(r"\s*CRITICAL: Respond with TEXT ONLY\b[^\n\"]*")
# The opening of Claude Code's summaries.
CONTINUED = "This session is being continued from a previous conversation"
# A file in which a client keeps the plan that it shows.
PLAN_FILE = pattern(r"(?:^|/)\.(?:claude|gemini|qwen|kimi)/plans?/|[\\/]\.gemini[\\/]antigravity[\w-]*[\\/]brain[\\/]")
# Files in which a client keeps transcripts and the outputs that are too long to show, and those of its plug-ins.
CLIENT_FILE = pattern(
    r"[~/](?:.*/)?\.(?:claude/projects/[^/]+/(?!memory/)|(?:codex|claude)/(?:sessions|plugins/cache)/|gemini/tmp/)"
)
# Files in which a project tells agents how to work.
PROJECT_FILE = pattern(
    r"(?:^|/)((?:AGENTS|CLAUDE|GEMINI|QWEN|CONVENTIONS|copilot-instructions)(?:\.local)?\.md"
    r"|\.(?:cursor|windsurf|cline)rules)$"
)
# Names that clients use in notices of their own tasks and calls; they are not part of the work.
CLIENT_WORDS = frozenset("task_id task_type local_bash local_agent tool_use_id tool_use_error sizeBytes isDir".split())
# How Claude Code begins the answer to a call that did nothing; files made of its sessions may lack the flag.
TOOL_ERROR = "<tool_use_error>"
# The result of a call that the client never started, because another call of the same message failed.
NEVER_STARTED = pattern(r"(?:<tool_use_error>)?(?:Sibling tool call errored|Cancelled: parallel tool call)")
# The note that the user stopped the work, without a word: of Claude Code, of Codex.
STOPPED = pattern(r"\[Request interrupted by user[^\]\n]*\]|<turn_aborted>.*?</turn_aborted>", re.DOTALL)
# A line that, in lower case and ASCII, has none of these has no exit code.
EXIT_CODE_WORDS = ("exit", "returncode")


@cache
def exit_code() -> re.Pattern[str]:
    """The pattern of the texts in which clients state the exit code (group 1) of a command."""
    # Claude Code "Exit code 1" · Codex "exited with code 1", "exit_code": 1 · Gemini "Exit Code: 1" · mini-swe
    # "<returncode>1" · OpenHands "finished with exit code 1"
    code_pattern = r"(?:exit(?:ed)?[ _]?(?:with )?(?:status |code)|returncode)[\"'>]?[ :=]*(-?\d{1,3})\b"
    return re.compile(code_pattern, re.IGNORECASE)


# A command that the user ran in the client's own shell (Claude Code, `! git pull`) or in the editor's terminal
# (Antigravity), and what it printed.
TYPED_COMMAND = pattern(
    r"(?:<bash-input>|\AThe USER performed the following action:\nCommand: )(.*?)(?:</bash-input>|\nCWD: )", re.DOTALL
)
TYPED_OUTPUT = pattern(
    r"(?:<bash-std(?:out|err)>|\nCWD: [^\n]*\s*(?=The command ))"
    r"(.*?)(?:</bash-std(?:out|err)>|\Z)",
    re.DOTALL,
)


# The heading after which clients that keep a plan in a file show it, in the result of the call that got it approved.
APPROVED_PLAN = pattern(r"^#+ Approved Plan:?[ \t]*\n+((?s:.+))", re.MULTILINE)


def named_branch(value: Any) -> str:
    """The git branch that a record names; empty if it names none, and for a detached HEAD."""
    branch = at(value, ("gitBranch",)) or at(value, ("payload", "git", "branch"))
    return branch if isinstance(branch, str) and branch != "HEAD" else ""


def plans_only(value: Any) -> bool | None:
    """Whether the agent was restricted to planning when the record was written; None if the record does not say."""
    mode = at(value, ("permissionMode",))
    return mode == "plan" if isinstance(mode, str) else None


def is_demonstration(value: Any) -> bool:
    """Whether a record belongs to one of SWE-agent's demonstrations, which are not part of the work."""
    return isinstance(value, Mapping) and value.get("is_demo") is True


class _Frame(NamedTuple):
    """The text around a client's summary."""

    origin: str
    opening: str
    body_after: str = ""  # the mark after which the body starts
    ends: tuple[str, ...] = ()  # the marks at which the body ends


# Texts of the client after its summary: where the transcript is, and to go on without a question.
_CLAUDE_ENDS = (
    "\nIf you need specific details from before compaction",
    "\nPlease continue the conversation from where we left",
    "\nContinue the conversation from where it left off",
)
_PI_OPENING = "The conversation history before this point was compacted into the following summary"
_FRAMES = (
    _Frame("hermes", "[CONTEXT SUMMARY]:", "[CONTEXT SUMMARY]:"),
    _Frame("hermes", "[CONTEXT COMPACTION", "]"),
    _Frame("kimi", "Previous context has been compacted", "</system>"),
    _Frame("kimi", "The conversation so far has been compacted", "already addressed.", ("\n## Context Recovery",)),
    _Frame("gemini", "<state_snapshot>", "<state_snapshot>", ("</state_snapshot>",)),
    _Frame("claude-code", CONTINUED, "Summary:\n", _CLAUDE_ENDS),
    _Frame("codex", "Another language model started to solve this problem and produced a summary", "analysis:"),
    _Frame("pi", _PI_OPENING, "<summary>", ("</summary>",)),
    _Frame("l06", "[Conversation compressed. Transcript:", "]"),
)
_OPENINGS = tuple(frame.opening for frame in _FRAMES)
# Beginnings of the prefaces in this program's own templates, after which the marker follows.
_OWN_OPENINGS = (
    *("Reference only: ", "[CONTEXT SUMMARY]: ", "Previous context has been compacted. ", "[Conversation compressed. "),
    *("[Start of the summary of the conversation ", "What follows is a snapshot of the conversation "),
    *("Messages between those before and ", "Excerpts from the conversation before this point"),
    "===== Start of the summary of the conversation ",
    *("仅供参考:", "[此前对话摘要开始", "以下是此前对话的快照", "此前的上下文已被压缩", "[对话已压缩"),
    *("为节省空间", "以下是为后面的消息", "===== 此前对话的摘要开始"),
    *("参考情報のみ:", "[これまでの会話の要約の始まり", "以下はこれまでの会話のスナップショット"),
    *("これまでのコンテキストは圧縮", "[会話は圧縮", "前後のメッセージの間"),
    *("これまでの会話から", "===== これまでの会話の要約"),
)
_PREFACE_CHARS = 700
_TAG = "<system>"
_SPEAKERS = (Role.USER, Role.SYSTEM)
# A frame's opening line is short; a mark further on belongs to the summary itself.
_FRAME_CHARS = 2_000


def summary_of(role: Role, parts: Iterable[Part]) -> PreviousSummary | None:
    """The summary that a message with these parts is, or None."""
    return previous_summary(role, text_of(parts)) if role in _SPEAKERS else None


def marked_summary(origin: str, parts: Iterable[Part]) -> PreviousSummary:
    """The summary in a message that its client marks as one. If compact did not write it, it is the client's own."""
    text = text_of(parts)
    return previous_summary(Role.USER, text) or PreviousSummary(origin=origin, text=text)


def summary_among(origin: str, parts: Iterable[Part]) -> PreviousSummary:
    """The first of these texts that is a summary, else all of them as one.

    For clients that put a whole history into one record.
    """
    texts = [part for part in parts if isinstance(part, Text)]
    found = (previous_summary(Role.USER, part.text) for part in texts)
    return next(filter(None, found), None) or PreviousSummary(origin=origin, text=text_of(texts))


def previous_summary(role: Role, text: str) -> PreviousSummary | None:
    """The summary that a user or system message is, or None.

    A summary by compact is recognised by its preface and the marker right after it, others by their opening words, all
    at the very start except for white space and a ``<system>`` tag. A marker elsewhere is ordinary text, which a tool
    printed or somebody pasted. Tool results never are summaries.
    """
    if role not in _SPEAKERS:
        return None
    start = text[:200].lstrip().removeprefix(_TAG).lstrip()
    before, is_framed = text_before_marker(text), start.startswith(_OPENINGS)
    if before is not None:
        # A marker counts only at the start, after a preface of compact, or in a client's frame.
        is_preface = start.startswith(_OWN_OPENINGS) and len(before) <= _PREFACE_CHARS
        if is_preface or is_framed or not before.strip():
            return PreviousSummary(origin="compact", text=without_marker(text))
    if not is_framed:
        return None
    frame = next(frame for frame in _FRAMES if start.startswith(frame.opening))
    at = text.find(frame.body_after, 0, _FRAME_CHARS) if frame.body_after else -1
    body = at + len(frame.body_after) if at >= 0 else 0
    ends = [end for mark in frame.ends if (end := text.rfind(mark, body)) >= 0]
    # Without its frame; the whole text where the frame is not as expected.
    return PreviousSummary(origin=frame.origin, text=text[body : min(ends, default=None)].strip())


def written_call(text: str) -> tuple[str, ToolCall] | None:
    """The words, and the call after them, in a text by an agent that writes its calls; None if it has no call."""
    if found := _WRITTEN_FUNCTION.search(text):
        given: dict[str, Any] = {key: value.strip("\n") for key, value in _WRITTEN_PARAMETER.findall(found[2])}
        return text[: found.start()].rstrip(), ToolCall(id="", name=found[1], arguments=given)
    if found := _WRITTEN_COMMAND.search(text):
        call = ToolCall(id="", name="bash", arguments={"command": (found[1] or found[2] or "").strip("\n")})
        return text[: found.start()].rstrip(), call
    return None


def team_recipient(name: str, arguments: Any) -> str:
    """To whom a call of the client's own tool sends a message among the agents of a team; empty for any other call."""
    if short_name(name) != "sendmessage" or is_of_server(name) or not isinstance(arguments, Mapping):
        return ""
    return next((string(arguments[key]) for key in ("to", "recipient", "target") if key in arguments), "")


# What clients send in place of an output that they removed.
PRUNED_OUTPUT = "[Old tool result content cleared]"


class Attachments(NamedTuple):
    """How clients write what is loaded and what runs in the background: Claude Code 2, Codex, Copilot CLI."""

    skill_tool: str = "Skill"  # loads a skill
    # The result of loading a skill; group 1 is its folder.
    skill_folder: re.Pattern[str] = pattern(r"\ABase directory for this skill: (\S+)")
    # A file of an installed skill. Other clients load a skill by reading it; group 1 is its name.
    skill_file: re.Pattern[str] = pattern(
        r"(?:[~/](?:.*/)?\.[\w-]+/(?:.*/)?|/(?:mnt|opt|usr|etc)/(?:.*/)?)skills/(?:[^/]+/)*?([^/]+)/(?:SKILL\.md|references/.*)"
    )
    # The argument of a call that starts work in the background. The id of the work is in the result, see `started_id`.
    background_argument: str = "run_in_background"
    background_tool: str = "Workflow"  # all its work runs in the background
    notice_signs: tuple[str, ...] = ("-id>", 'Task id "')  # a text without any of them has no ``notice``
    # A notice that work has ended; groups: its id and its status.
    notice: re.Pattern[str] = pattern(
        r"(?:<(?:task|agent)-id>|^Task id \")(?:[\w-]+/)?([\w-]+)"
        r"(?:</.*?<status>|\" (?:was )?)(\w+)(?:</status>| with result:)",
        re.DOTALL | re.MULTILINE,
    )
    # A notice that also brings the result of a command that ran in the background; group 1 is its id.
    result_notice: re.Pattern[str] = pattern(r"\ATask id \"(?:[\w-]+/)?([\w-]+)\" .* with result:")
    look_tools: tuple[str, ...] = (  # show running work
        *("TaskOutput", "AgentOutputTool", "BashOutput", "write_stdin", "read_bash", "write_bash", "manage_task"),
    )
    # A result of a look tool for work that has ended.
    ended: re.Pattern[str] = pattern(
        r"<status>(?!running|pending)\w+</status>|\AProcess exited with"
        r"|<shellId: \S+ completed with exit code -?\d+>\s*\Z"
        r"|\ATask(?:: \S+\nStatus: (?!RUNNING\b|PENDING\b)| \"[^\"\n]+\" cancelled)"
    )
    of_command: str = "<task_type>local_bash</task_type>"  # in results about a command, which are not reports
    stop_tools: tuple[str, ...] = ("TaskStop", "KillShell", "KillBash", "stop_bash")  # end running work
    plan_tools: tuple[str, str] = ("EnterPlanMode", "ExitPlanMode")  # enter and leave the mode that changes nothing

    def is_over(self, tool: str, result: str) -> bool:
        """Whether a look tool shows that the work has ended. Codex names what goes on, and nothing else for certain."""
        return self.ended.search(result) is not None or (tool == "write_stdin" and not started_id(result))


ATTACHMENTS = Attachments()


def called_skill(text: str) -> str:
    """The command by which the text of a skill was called, `/tides at noon`; empty for any other text."""
    found = ATTACHMENTS.skill_folder.match(text)
    return f"/{posixpath.basename(found[1])} {text.partition(_SKILL_ARGUMENTS)[2].strip()}".rstrip() if found else ""


_SKILL_ARGUMENTS = "\nARGUMENTS: "

# The report of work in the background, with its id, and the message of another agent of a team, of Claude Code and of
# Codex. Team messages in JSON are the client's own and are not matched.
_REPORT_SIGN, _TEAM_SIGN = "<result>", "<teammate-message "
_REPORT = pattern(r"<task-id>(\w+)</task-id>(?:(?!</task-notification>).)*?<result>(.*?)</result>", re.DOTALL)
_FAILED_SIGN = "<status>failed</status>"
_FAILURE = pattern(
    rf"<task-id>(\w+)</task-id>\s*(?:<(?:tool-use-id|output-file)>[^<\n]*</[\w-]+>\s*)*{_FAILED_SIGN}\s*<summary>(.*?)</summary>\s*"
    r"(?!.*<result>)"
)
_TEAM_MESSAGE = pattern(
    r"<teammate-message teammate_id=\"([^\"]+)\"[^>]*>\s*+(?!\{)(.*?)\s*</teammate-message>", re.DOTALL
)
_AGENT_MESSAGE = pattern(
    r"\AMessage Type: \w+\nTask name: [^\n]*\nSender: (?:/\S*/|/)?([^\s/]+)\nPayload:\n?(.*)\Z", re.DOTALL
)


def background_reports(text: str) -> list[tuple[str, str]]:
    """The id and the report, or the failure, of each work in the background that a message in the user's name gives."""
    failures = _FAILURE.findall(text) if _FAILED_SIGN in text else []
    return [*(_REPORT.findall(text) if _REPORT_SIGN in text else ()), *failures]


def team_messages(text: str) -> list[tuple[str, str]]:
    """The sender and the text of each message of another agent of the team in a message of the user."""
    if found := _AGENT_MESSAGE.match(text):
        return [(found[1], found[2])] if found[2].strip() else []
    return _TEAM_MESSAGE.findall(text) if _TEAM_SIGN in text else []


def agents_status(text: str) -> str:
    """What agents reported, of the answer of Codex to a call that waits for them; any other text as it is."""
    value = json_value(text)
    found = value.get("status") if isinstance(value, dict) else None
    each = [one for one in found.values() if isinstance(one, dict)] if isinstance(found, dict) else []
    return "\n\n".join(word for one in each for word in one.values() if isinstance(word, str)) if each else text


def without_reports(text: str) -> str:
    """A message of the user without the reports of background work and the messages of other agents."""
    if _AGENT_MESSAGE.match(text):
        return ""
    text = re.sub(r"<result>.*?</result>", "", text, flags=re.DOTALL) if _REPORT_SIGN in text else text
    return _TEAM_MESSAGE.sub("", text) if _TEAM_SIGN in text else text


def background_id(arguments: Mapping[str, Any] | str) -> str:
    """The id of the background work that a call looks at or stops; empty if its arguments have none."""
    given = {} if isinstance(arguments, str) else arguments
    found = (given.get(key) for key in ("task_id", "bash_id", "shell_id", "shellId", "session_id", "TaskId"))
    return next((str(one).rpartition("/")[2] for one in found if isinstance(one, str | int) and one != ""), "")


def started_id(result: str) -> str:
    """The id of the work that a call put in the background, from its result; empty if it has none."""
    start = result[:_STARTED_CHARS]
    found = _STARTED.search(start) if any(sign in start for sign in _STARTED_SIGNS) else None
    if not found and result.endswith(">"):
        found = _STILL_RUNNING.search(result, max(0, len(result) - _STARTED_CHARS))
    return next(filter(None, found.groups()), "") if found else ""


_STARTED = pattern(
    r"\b(?:agentId: |background with ID: |in background\. Task ID: |Process running with session ID )(\w+)"
    r"|background with shellId: ([\w-]+)>|\bbackground task with task id: (?:[\w-]+/)?([\w-]+)"
)
_STARTED_SIGNS = ("ID ", "Id: ", "ID: ", "task id: ")
# Copilot CLI, after what a command printed so far.
_STILL_RUNNING = pattern(r"<command with shellId: ([\w-]+) is still running\b[^<>]*>\Z")
_STARTED_CHARS = 400


# Records of a subagent in the session that started it: in session files, as progress reports, and in streams.
_OF_SUBAGENT = re.compile(rb'"isSidechain": ?true|"type": ?"agent_progress"|"parent_tool_use_id": ?"')


def subagent_parts(record: Record) -> tuple[Part, ...]:
    """The parts of a subagent's message, from a record that the main model is not shown; empty for other records."""
    if not _OF_SUBAGENT.search(record.raw):
        return ()
    value = parse(record.raw)
    content = at(value, ("data", "message", "message", "content")) or at(value, ("message", "content"))
    return content_parts(content)
