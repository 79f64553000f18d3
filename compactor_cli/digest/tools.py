"""What a tool does, told from its name and arguments, for the common agents and for names not seen before."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from compactor_cli.group.todos import PLAN_TOOLS
from compactor_cli.group.todos import short_name as short_name


class ToolKind(StrEnum):
    """What a tool call does to the world."""

    EDIT = "edit"
    READ = "read"
    COMMAND = "command"
    PLAN = "plan"
    OTHER = "other"


# Names without case, underscores and hyphens.
_NAMES = {
    ToolKind.EDIT: "edit write multiedit notebookedit applypatch replace writefile editfile strreplacefile createfile "
    "writetofile applydiff searchandreplace insertcontent strreplace create insert fswrite patch multireplace "
    "multireplacestringinfile replacestringinfile editnotebook deletefile filewrite fileedit strreplacebasededittool "
    "strreplaceeditor savefile appendfile searchreplace multireplacefilecontent replacefilecontent replaceincode",
    ToolKind.READ: "read grep glob ls readfile readmanyfiles listfiles listdirectory listdir searchfiles viewfile view "
    "open findfiles searchfilecontent grepsearch globsearch filesearch find fsread readmultiplefiles cat notebookread "
    "openfile viewimage readmediafile codebasesearch searchtext listcodedefinitionnames searchdir searchfile finddir "
    "viewcodeitem grepfiles readnotebook scrolldown scrollup goto lsp",
    ToolKind.COMMAND: "bash shell execcommand localshell runshellcommand executebash executecommand runcommand "
    "terminal runinterminal shellcommand execute exec bashoutput runterminalcmd runipython executeipythoncell "
    "containerexec cmdrun runbash powershell ipython python executecode runpython codeexecution bashcodeexecution "
    "writestdin run process executepython jupyter submitcommand",
}
_KIND_OF = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_KIND_OF |= dict.fromkeys(PLAN_TOOLS, ToolKind.PLAN)
_EDIT_WORDS = ("edit", "write", "replace", "patch", "insert", "create", "append", "delete", "save")
_READ_WORDS = ("read", "view", "open", "cat", "grep", "glob", "search", "find", "list", "show")
_COMMAND_WORDS = ("bash", "shell", "terminal", "execcommand", "runcommand", "executecommand", "powershell")
_LOOKUPS = frozenset(
    "get find list search read fetch query check lookup think calculate show view browse web count describe can is"
    " has".split()
)
_VIEWING = ("view", "view_range", "read", "open")
PATH_KEYS = (
    "file_path",
    "path",
    "absolute_path",
    "absolutePath",
    "filepath",
    "filePath",
    "file",
    "filename",
    "file_name",
    "target_file",
    "notebook_path",
    "AbsolutePath",
    "TargetFile",
    "relative_workspace_path",
    "uri",
)
COMMAND_KEYS = ("command", "cmd", "script", "code", "input", "chars", "CommandLine")


def tool_kind(name: str, arguments: Mapping[str, Any] | str) -> ToolKind:
    """What a call of this tool with these arguments does."""
    short = short_name(name)
    kind = _KIND_OF.get(short)
    if kind is ToolKind.COMMAND and "*** Begin Patch" in command_of(arguments):
        return ToolKind.EDIT
    if kind is ToolKind.EDIT and _has(arguments, "command") and argument(arguments, ("command",)) in _VIEWING:
        return ToolKind.READ
    return kind or _by_words(short, arguments)


# Tools by which an agent steers itself: what they answer carries no information on the work.
_OWN_TOOLS = frozenset(
    "taskoutput agentoutputtool bashoutput killshell killbash taskstop skill toolsearch enterplanmode exitplanmode"
    " think askuserquestion askfollowupquestion attemptcompletion task agent finish submit newtask"
    " switchmode monitor".split()
)


def is_own(name: str) -> bool:
    """Whether an agent steers itself by a tool of this name."""
    return short_name(name) in _OWN_TOOLS


def is_lookup(name: str) -> bool:
    """Whether a tool of this name only looks something up, as far as its first word tells."""
    last = re.split(r"__|[.:/]", name)[-1]
    return re.split(r"[_\-\s]|(?<=[a-z])(?=[A-Z])", last, maxsplit=1)[0].lower() in _LOOKUPS


def _by_words(short: str, arguments: Mapping[str, Any] | str) -> ToolKind:
    if "todo" in short:
        return ToolKind.PLAN
    if any(word in short for word in _COMMAND_WORDS):
        return ToolKind.COMMAND
    # A shop's `search_flights` or `update_order` names no file: only a path argument makes it file work.
    if not any(_has(arguments, key) for key in PATH_KEYS):
        return ToolKind.OTHER
    if any(word in short for word in _EDIT_WORDS):
        return ToolKind.EDIT
    return ToolKind.READ if any(word in short for word in _READ_WORDS) else ToolKind.OTHER


def _has(arguments: Mapping[str, Any] | str, key: str) -> bool:
    return isinstance(arguments, Mapping) and isinstance(arguments.get(key), str)


def argument(arguments: Mapping[str, Any] | str, keys: tuple[str, ...]) -> str:
    """The first of these arguments that is a text, or an empty string."""
    if isinstance(arguments, str):
        return ""
    return next((value for key in keys if isinstance(value := arguments.get(key), str)), "")


def command_of(arguments: Mapping[str, Any] | str) -> str:
    """The command line of a command call: the script itself where a shell is called with ``-c``."""
    if isinstance(arguments, str):
        return arguments
    for key in COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, (list, tuple)):
            return _joined([str(word) for word in value])
        if isinstance(value, Mapping):
            return command_of(value)
    action = arguments.get("action")
    return command_of(action) if isinstance(action, Mapping) else ""


def parameters(arguments: Any) -> Iterator[tuple[str, str]]:
    """The names of a call's arguments with their values as text, those of nested ones after their own name."""
    if isinstance(arguments, Mapping):
        for name, value in arguments.items():
            nested = isinstance(value, (Mapping, list, tuple))
            yield str(name), "" if nested else value if isinstance(value, str) else json.dumps(value, default=str)
            yield from parameters(value)
    elif isinstance(arguments, (list, tuple)):
        for value in arguments:
            yield from parameters(value)


def _joined(words: list[str]) -> str:
    if len(words) >= 3 and words[1] in ("-c", "-lc", "-ic", "/c", "-Command"):
        return words[2]
    return " ".join(words)
