"""Tools: what kind of work a call does, by its name and arguments, and what its arguments hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from compactor_cli.digest.language import apart, words
from compactor_cli.formats.client_signs import ATTACHMENTS
from compactor_cli.formats.contents import short_name as short_name
from compactor_cli.group.todos import is_plan_call


class ToolKind(StrEnum):
    """What a tool call acts on."""

    EDIT = "edit"
    READ = "read"
    COMMAND = "command"
    PLAN = "plan"
    OTHER = "other"


class FileAction(StrEnum):
    """What happened to a file."""

    CREATE = "create"
    EDIT = "edit"
    READ = "read"
    DELETE = "delete"
    MOVE = "move"
    REVERT = "revert"  # back to what is committed
    FORMAT = "format"  # given to a formatter, which may have changed nothing


# The names of tools by kind, as `short_name` gives them.
_NAMES = {
    ToolKind.EDIT: "edit write multiedit notebookedit applypatch replace writefile editfile strreplacefile createfile "
    "writetofile applydiff searchandreplace insertcontent strreplace create insert fswrite patch multireplace "
    "multireplacestringinfile replacestringinfile editnotebook deletefile filewrite fileedit strreplacebasededittool "
    "strreplaceeditor savefile appendfile searchreplace multireplacefilecontent replacefilecontent replaceincode",
    ToolKind.READ: "read grep glob ls readfile readmanyfiles listfiles listdirectory listdir searchfiles viewfile view "
    "open findfiles searchfilecontent grepsearch globsearch filesearch find fsread readmultiplefiles cat notebookread "
    "openfile viewimage readmediafile codebasesearch searchtext listcodedefinitionnames searchdir searchfile finddir "
    "viewcodeitem grepfiles rg readnotebook scrolldown scrollup goto lsp",
    ToolKind.COMMAND: "bash shell execcommand localshell runshellcommand executebash executecommand runcommand "
    "terminal runinterminal shellcommand execute exec bashoutput runterminalcmd runipython executeipythoncell "
    "containerexec cmdrun runbash powershell ipython python executecode runpython codeexecution bashcodeexecution "
    "writestdin run process executepython jupyter submitcommand",
}
_KIND_OF = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_EDIT_WORDS = ("edit", "write", "replace", "patch", "insert", "create", "append", "delete", "save")
_READ_WORDS = ("read", "view", "open", "cat", "grep", "glob", "search", "find", "list", "show")
_COMMAND_WORDS = ("bash", "shell", "terminal", "execcommand", "runcommand", "executecommand", "powershell")
# First and last words of the names of tools that only look something up: `get_tide`, `tide_get`.
_LOOKUPS = frozenset(
    "get find list search read fetch query check lookup think calculate show view browse browser web count describe"
    " can is has chercher rechercher trouver obtenir lister lire vérifier verifier afficher calculer buscar"
    " consultar obtener obter listar leer ler verificar mostrar calcular cercare cerca trovare trova leggere leggi"
    " calcolare".split()
)
_LOOKUPS_AT_END = frozenset(
    "get fetch find log logs search top view abrufen abfragen suchen finden pruefen prüfen anzeigen lesen berechnen"
    " zoeken halen".split()
)
# Values of the argument ``command`` with which an editing tool only shows a file.
_VIEWING = ("view", "view_range", "read", "open")
PATH_KEYS = tuple(
    "file_path path absolute_path absolutePath filepath filePath file filename file_name"
    " target_file notebook_path AbsolutePath TargetFile relative_workspace_path uri".split()
)
COMMAND_KEYS = ("command", "cmd", "script", "code", "input", "chars", "CommandLine")


def tool_kind(name: str, arguments: Mapping[str, Any] | str) -> ToolKind:
    """What a call of this tool with these arguments does."""
    short = short_name(name)
    kind = _KIND_OF.get(short)
    if kind is ToolKind.COMMAND and "*** Begin Patch" in command_of(arguments):
        return ToolKind.EDIT
    if kind is ToolKind.EDIT and argument(arguments, ("command",)) in _VIEWING:
        return ToolKind.READ
    return kind or (ToolKind.PLAN if is_plan_call(name, arguments) else _by_words(short, arguments))


# Tools by which an agent steers itself: their answers carry no information on the work.
_OWN_TOOLS = frozenset(
    "taskoutput agentoutputtool bashoutput killshell killbash taskstop skill toolsearch enterplanmode exitplanmode"
    " think askuserquestion askfollowupquestion attemptcompletion task agent finish submit newtask"
    " switchmode monitor managetask askquestion createplan updatetopic renamesession getdynamictools awaitshell"
    " spawnagent waitagent listagents closeagent resumeagent interruptagent followuptask sendinput".split()
)


def is_own(name: str) -> bool:
    """Whether a tool of this name is one by which an agent steers itself."""
    return short_name(name) in _OWN_TOOLS


def is_of_client(tool: ToolKind, name: str, arguments: Mapping[str, Any] | str) -> bool:
    """Whether a call asks only for what the client itself holds: its other tools, its skills."""
    return short_name(name) in ("toolsearch", "skill") or skill_read(tool, arguments) != ""


def skill_read(tool: ToolKind, arguments: Mapping[str, Any] | str) -> str:
    """The name of the skill whose file a call reads outside of the working directory; empty for other calls."""
    if tool not in (ToolKind.READ, ToolKind.COMMAND):
        return ""
    words = [argument(arguments, PATH_KEYS)] if tool is ToolKind.READ else command_of(arguments).split()
    found = (ATTACHMENTS.skill_file.fullmatch(word.strip("'\"")) for word in words)
    return next((one[1] for one in found if one), "")


# Tools that answer with a text that another model wrote: a subagent's report, the gist of a page.
PAGE_TOOLS = frozenset(("webfetch", "fetch"))
REPORTING_TOOLS = PAGE_TOOLS | frozenset("task agent newtask taskoutput agentoutputtool runsubagent waitagent".split())


def is_lookup(name: str) -> bool:
    """Whether a tool only looks something up, by the first word of its name (`get_order`) or the last
    (`order_get`, `orders_list`).

    The name of a service may stand before them: `github_get_commit`.
    """
    found = words(apart(re.split(r"__|[.:/]|-server-", name)[-1])) or [""]
    first = found[1] if found[0] in _SERVICES and len(found) > 1 else found[0]
    lists = found[-1] == "list" and found[-2:][0].endswith("s")
    return first in _LOOKUPS or found[-1] in _LOOKUPS_AT_END or lists


_SERVICES = frozenset(
    "github gitlab bitbucket jira linear slack discord notion confluence figma sentry stripe asana trello gmail google"
    " drive calendar aws gcp azure kubernetes docker postgres supabase vercel mcp".split()
)


def _by_words(short: str, arguments: Mapping[str, Any] | str) -> ToolKind:
    if any(word in short for word in _COMMAND_WORDS):
        return ToolKind.COMMAND
    # A shop's `search_flights` or `update_order` names no file: only a path argument makes it file work.
    if isinstance(arguments, str) or not any(isinstance(arguments.get(key), str) for key in PATH_KEYS):
        return ToolKind.OTHER
    if any(word in short for word in _EDIT_WORDS):
        return ToolKind.EDIT
    return ToolKind.READ if any(word in short for word in _READ_WORDS) else ToolKind.OTHER


def argument(arguments: Mapping[str, Any] | str, keys: tuple[str, ...]) -> str:
    """The first of these arguments that is a text, or an empty string."""
    if not isinstance(arguments, str):
        for key in keys:
            if isinstance(value := arguments.get(key), str):
                return value
    return ""


def objects(arguments: Mapping[str, Any] | str, keys: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """The objects in the first of these arguments that is a list or an object; an object counts as a list of one."""
    if isinstance(arguments, str):
        return []
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, list | tuple):
            return [entry for entry in value if isinstance(entry, Mapping)]
        if isinstance(value, Mapping):
            return [value]
    return []


def command_of(arguments: Mapping[str, Any] | str) -> str:
    """The command line of a command call, or the script itself where a shell is called with ``-c``.

    Lines that go on after a backslash are joined, and variables that the command itself sets to a text are replaced by
    it, both up to a here-document. An empty string where no argument holds one.
    """
    if isinstance(arguments, str):
        command, mark, text = _SHELL_CALL.sub(r"\1\2", arguments).partition("<<")
        return f"{_with_values(joined_lines(command))}{mark}{text}"
    for key in (*COMMAND_KEYS, "action"):
        if (value := arguments.get(key)) is None:
            continue
        if isinstance(value, Mapping) or (isinstance(value, str) and key != "action"):
            return command_of(value)
        if isinstance(value, (list, tuple)):
            parts = [str(part) for part in value]
            is_script = len(parts) >= 3 and parts[1] in ("-c", "-lc", "-ic", "/c", "-Command")
            return command_of(parts[2]) if is_script else " ".join(parts)
    return ""


def _with_values(command: str) -> str:
    values, at = dict[str, str](), 0
    while "$" in command and (found := _ASSIGNS.match(command, at)):
        text = found[2].strip("\"'")
        values[found[1]], at = f'"{text}"' if " " in text else text, found.end()
    if not values:
        return command
    return command[:at] + _VARIABLE.sub(lambda found: values.get(found[1] or found[2], found[0]), command[at:])


_ASSIGNS = re.compile(r"\s*(?:export )?([A-Za-z_]\w*)=(\"[^\"$`\n]*\"|'[^'\n]*'|[^\s\"'$`;&|()]+)[ \t]*(?:;|&&|\n)")
# A variable that is a word of its own: as a part of one, its value would make a name that no record shows.
_VARIABLE = re.compile(r"'[^'\n]*'|(?<![\w./=-])\"?\$(?:(\w+)|\{(\w+)\})\"?(?![\w./-])")


def joined_lines(command: str) -> str:
    """A command whose lines that go on after a backslash are one."""
    return _LINE_END.sub(" ", command)


_LINE_END = re.compile(r"[^\S\n]*\\\n[^\S\n]*")  # a backslash at the end of a line, with the blanks around it
# A shell that is called with a script: `cd tides && bash -lc 'make gauges'`.
_SHELL_CALL = re.compile(r"\A(\s*cd [^&;|\n]+ && )?\s*(?:/\S+/)?(?:ba|z)?sh -l?c '([^']*)'\s*\Z")


def parameters(arguments: Any) -> Iterator[tuple[str, str]]:
    """The arguments of a call, each as its name and its value as text.

    A list or an object has an empty text, and the arguments within it follow it; an empty list is `[]`.
    """
    if isinstance(arguments, Mapping):
        for name, value in arguments.items():
            is_nested = isinstance(value, (list, tuple, Mapping))
            is_empty = isinstance(value, (list, tuple)) and not value
            yield str(name), "[]" if is_empty else "" if is_nested else scalar(value)
            yield from parameters(value)
    elif isinstance(arguments, (list, tuple)):
        for value in arguments:
            yield from parameters(value)


def scalar(value: Any) -> str:
    """A value of an argument as text: a string as it is, a tuple of words joined by blanks, anything else as JSON."""
    if isinstance(value, str):
        return value
    return " ".join(value) if isinstance(value, tuple) else json.dumps(value, ensure_ascii=False, default=str)
