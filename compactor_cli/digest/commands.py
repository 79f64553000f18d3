"""Commands: what was run, and how it ended."""

from __future__ import annotations

import re
from functools import lru_cache

from compactor_cli.digest.shell import GIT, QUOTED, SHORTENS, plain_git, segments, unquoted
from compactor_cli.digest.texts import ELLIPSIS, head
from compactor_cli.digest.tools import joined_lines
from compactor_cli.model.patterns import pattern


def acting_part(command: str) -> str:
    """The part of a chain from the first to the last command that acts outside, or all of it if none does.

    A file that is written first, a command with a here-document, and one with ` && ` in a text do not count. Commit
    messages, which their results show, and long bodies of requests are elided.
    """
    command = _BODY.sub(rf"\1{ELLIPSIS}", _MESSAGE.sub(rf"\1 {ELLIPSIS}", _WRITING.sub("", command)))
    # Lines are a chain, too.
    parts = (command if "<<" in command else command.strip().replace("\n", " && ")).split(" && ")
    whole = [part.count('"') % 2 == part.count("'") % 2 == 0 and "<<" not in part for part in parts]
    acting = [n for n, part in enumerate(parts) if whole[n] and acts_outside(part)]
    return " && ".join(parts[acting[0] : acting[-1] + 1]).strip() if acting else command


def acting_line(command: str) -> str:
    """The `acting_part` as one line."""
    return shown(acting_part(command))


def failing_part(command: str, line: str) -> str:
    """The part of a chain that may have failed with this line: the acting one, but git may have failed in any part.

    A wrong path is that of the `git add` that names it.
    """
    if found := _WRONG_PATH.match(line):
        named = (step for step in segments(command) if step.startswith("git add ") and found[1] in step)
        return next(named, shown(command))
    return shown(command) if line.startswith("fatal: ") else acting_part(command)


_WRONG_PATH = pattern(r"fatal: pathspec '([^']+)' did not match")


# `git commit -m "Read the tide"`, `--body "…"`
_MESSAGE = pattern(
    rf"""(\b{GIT}commit\b[^|;&\n"']*? -[a-z]*m|--body) """
    r"""(?:"\$\(cat <<.*?\n\s*\)"|"(?:[^"\\]|\\.)*"|'[^']*')""",
    re.DOTALL,
)
_FIELD = r"(?:-[fF]|--(?:raw-)?field)"
_BODY = pattern(rf"""({_FIELD} body=)(?:"(?:[^"\\]|\\.){{30,}}"|'[^']{{30,}}')""")


def sent_words(command: str) -> str:
    """The words that a command sends to others: a comment, a request to merge, a commit message; or an empty string."""
    sent = _SENT.search(command)
    return _SIGNATURE.sub("", _ESCAPED.sub(r"\1", sent[sent.lastindex or 0])).strip() if sent else ""


def sent_subject(command: str) -> str:
    """The first line of what a command sends, as the subject of a commit; empty where it sends nothing."""
    return sent_words(command).partition("\n")[0].strip()


# `gh pr comment 12 --body "Read the gauge"`, `git commit -F - <<'EOF'`, `gh api … -f body='…'`
_SENT = pattern(
    rf"""\b(?:gh|{GIT}commit)\b[^|;&]{{0,2000}}? """
    rf"""(?:(?:{_FIELD} body=|(?:-b|--body)[ =]|-\w*m )"""
    r"""(?:["']?\$\(cat <<-? ?["']?(\w+)["']?\n(.*?)\n\s*\1|"((?:[^"\\]|\\.)*)"|'([^']*)')"""
    rf"""|{_FIELD} (?:"body=((?:[^"\\]|\\.)*)"|'body=([^']*)')"""
    r"""|(?:-F|--file[ =]|--body-file[ =]) ?- *<<-? ?["']?(\w+)["']?[^\n]*\n(.*?)\n\s*\7(?:\n|\Z))""",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\([`\"$\\])")
# Lines that say who wrote it, and one that only substitutes a text from elsewhere: `$(cat notes.md)`.
_SIGNATURE = pattern(
    r"^(?:Co-authored-by|Signed-off-by): .*$|^\W*Generated with .*$|^\$\([^\n]*\)$", re.MULTILINE | re.IGNORECASE
)
# What follows `kubectl` or `terraform` where it only asks: `-n pier get`, `describe`, `plan`.
_ASKS_CLUSTER = (
    r"(?:-\S+ (?:[^\s-]\S* )?)*(?:get|describe|logs|top|explain|plan|list|show|status|diff|output|version"
    r"|api-\w+|auth can-i|cluster-info|config (?:current|get|view)|rollout (?:status|history))\b"
)
_ACTS_OUTSIDE = pattern(
    rf"\b{GIT}(?:commit|push|merge(?!-)|rebase|reset|revert|cherry-pick|checkout -b|switch -c|stash)\b"
    rf"|\b{GIT}tag (?!-l\b|-n|--(?:list|points-at|contains|sort|(?:no-)?merged))\S"
    r"|\bgh (?:pr|issue|release|repo)\b(?![^|;&]*\b(?:view|list|diff|status|checks)\b)"
    r"|\bgh (?:workflow (?:run|enable|disable)|run (?:rerun|cancel|delete)|(?:secret|variable) (?:set|delete))\b"
    r"|\bgh api\b(?! graphql\b[^|;&]*\bquery=[\"']?\s*(?:query\b|\{))"
    r"[^|;&]* (?:-X ?(?!GET)|--method (?!GET)|-[fF] ?\w|--(?:raw-)?field\b|--input\b)"
    r"|\bgit worktree add\b|\b(?:npm|twine|cargo|poetry) publish\b"
    rf"|\bcurl\b[^|;&]*-X ?(?:POST|PUT|PATCH|DELETE)|\b(?:kubectl|terraform|ansible-playbook|helm) (?!{_ASKS_CLUSTER})"
    r"|\bdocker (?:push|compose up|run)\b|\b(?:alembic|migrate|flyway)\b|\b(?:systemctl|service) (?:re)?start\b"
    r"|(?<![\w-])deploy\b(?!/)"
)


@lru_cache(maxsize=1024)
def acts_outside(command: str) -> bool:
    """Whether a command of a chain acts outside; a search for the words `npm publish` does not."""
    return may_act_outside(command) and any(
        may_act_outside(one) and not is_read_only(one) for one in command.split(" && ")
    )


@lru_cache(maxsize=1024)
def may_act_outside(command: str) -> bool:
    """Whether a command has words that change something outside the files of the work; it may only search for them."""
    return _ACTS_OUTSIDE.search(command) is not None


# `git stash pop` and its subcommand; those that put changes away.
STASHES, PUTS_AWAY = pattern(rf"\b{GIT}stash\b(?: (?!-)(\w+))?"), ("", "push", "save")
# Commands that change nothing and only show.
_LOOKING = frozenset(
    "cat ls grep rg egrep fgrep find head tail sed awk wc echo pwd which tree stat file diff less more nl sort uniq cut"
    " base64 tr tac rev seq fold paste comm cmp du df id uname hostname realpath readlink md5sum sha1sum sha256sum test"
    " [ sleep ps printenv date whoami type jq xxd hexdump strings column printf cd basename dirname true export set"
    " alias source print goto scroll_up scroll_down search_dir search_file find_file"
    " get-content get-childitem get-location get-item get-command select-string select-object test-path"
    " measure-object where-object format-table out-string".split()
)
_LOOKING_GIT = frozenset(
    "status log diff show branch blame rev-parse remote grep merge-base rev-list reflog ls-files ls-remote ls-tree"
    " cat-file for-each-ref show-ref describe shortlog name-rev count-objects check-ignore diff-tree".split()
)
_MOST_SHOWN_CHARS = 220
# `cat > gauge.py <<'EOF' … EOF` with commands after it: these, which use what was written, are what counts.
_WRITING = pattern(
    r"\A(?:\s*(?:cd [^\s;&|]+ *(?:&&|;|\n) *)?(?:\w+=\S+[ \t]*\n)*"
    r"cat *(?:>{1,2} *\S+ *<<-? *(['\"]?)(\w+)\1|<<-? *(['\"]?)(\w+)\3 *>{1,2} *\S+)[^\n]*\n"
    r"(?:.*\n)*?[ \t]*(?:\2|\4)[ \t]*\n(?=\s*\S)){1,4}"
)
# Lines that only prepare for the next ones: `cd tides`, `set -e`, `PORT=80`, `rm -rf out`, `# comment`.
_ENTERING = pattern(
    r"(?:(?:echo|printf) [^>|;&]*|cd \S+|set -\S+(?: \S+)?|(?:export )?\w+=(?:\$\([^)]*\)|\S*)"
    r"|(?:rm|mkdir) [^;&|]*(?:\|\| true\b)?|#.*|\\|)"
)
# Steps before a command that enter a folder, make it or a script ready, set variables or load the version of a runtime:
# `cd web && nvm use 20 &&`.
LEADING = pattern(
    r"\A\s*(?:cd [^&;|\n]+(?:&&|;)\s*)?"
    r"(?:(?:(?:(?:export )?\w+=(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s&|;\"'$]*)(?=\s*&&)|export \w+=\S*"
    r"|\[ -\w [^\]&;|\n]+\]|\. \S*/nvm\.sh\S*|nvm use[^&;|\n]*|(?:mkdir -p|chmod \S+) [^&;|\n]+)\s*&&"
    r"|set [-+]\w+;|source \S+;|\w+=\$?'(?:[^'\\]|\\.)*'[ \t]*[;\n])\s*)*"
    # The commit itself shows what is staged for it.
    r"(?:git add [^&|;\n]+&&\s*(?=git commit\b))?"
)


def command_key(command: str) -> str:
    """A command without what only changes its surroundings or how much of its output is shown."""
    lines = [line for raw in bare_command(command).split("\n") if (line := raw.strip())]
    is_chain = "<<" not in command and not any(map(_GOES_ON.search, lines)) and all(map(_is_whole_line, lines))
    return " ".join(("; " if is_chain else " ").join(lines).split())


def _is_whole_line(line: str) -> bool:
    """Whether no quotation goes on in the next line."""
    return not any(mark in QUOTED.sub("", line) for mark in "\"'`")


# A line that goes on in the next one, or that is part of a loop or condition.
_GOES_ON = pattern(
    r"(?:\\|[|&({;]|\b(?:do|then|else))\Z|\A(?:[|&)}]|(?:for|while|until|if|case|do|done|then|else|fi|esac)\b)"
)


@lru_cache(maxsize=1 << 8)
def bare_command(command: str) -> str:
    """A command without scripts written first, runs of `cd` and the filters of its output."""
    command = _WRITING.sub("", command)
    text = re.sub(r"\A\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*\Z", r"\1", command)
    text = re.sub(r"^(?:\s*(?:cd|source|export|set|chmod|mkdir)\s+[^&;|\n]+(?:&&|;|\n)\s*|\s*#[^\n]*\n)+", "", text)
    text = _SHORTENS.sub(r"\1", plain_git(_GREP_FILTER.sub(" ", text)))
    return _VIEW.sub(" ", text)


_SHORTENS = pattern(rf"(^|[;&|(\n] *){SHORTENS}")
# The words of a filter, up to the quotation mark that ends the script of a shell: `ssh pier "make | tail -3"`.
_FILTER_WORDS = r"""(?:"[^"\n]*"|'[^'\n]*'|[^|&;\n"'])*"""
_GREP_FILTER = pattern(rf"[^\S\n]*\|\s*(?:[ef]?grep|rg)\b(?P<what>{_FILTER_WORDS})(?:\|\s*wc\b[^|&;\n]*)?")
_VIEW = pattern(rf"\s+2>&1|[^\S\n]*\|\s*(?:tail|head|tee)\b{_FILTER_WORDS}")


def searches_for_errors(command: str) -> bool:
    """Whether a command's output is searched for errors: the exit code is then that of the search."""
    return any(re.search(r"error|fail", what, re.IGNORECASE) for what in searched_for(command))


def searched_for(command: str) -> list[str]:
    """What the output of a command is searched for (`-i error`), with options, without what `grep -v` leaves out."""
    asked = (found["what"] for found in _GREP_FILTER.finditer(command))
    return [what for what in asked if not re.search(r"(?:^|\s)-\w*v", what)]


def is_read_only(command: str) -> bool:
    """Whether a command changes nothing and only shows; of a script for another shell, what it does counts."""
    command = _SCRIPT.sub(lambda found: f"; {found[1] or found[2] or ''} ;", command)
    command = _CASES.sub(" ", QUOTED.sub("q", command))
    command = re.sub(r"(?:\w+=)?\$\(|\)", " ", command)
    if "<<" in command or re.search(r"(?<![0-9&=-])>{1,2}\s*(?!/dev/null|&)\S", command):
        return False
    return all(_only_reads(segment.split()) for segment in segments(command))


# `ssh -o BatchMode=yes pier 'ls tides'`, `zsh -i -c "which gauge"`
_SCRIPT = pattern(
    r"""\b(?:ssh(?: -\w(?: ?[^\s'"-]\S*)?)* [^\s'"-]\S*|(?:ba|da|z)?sh(?: -\w+)* -\w*c) """
    r"""(?:"((?:[^"\\]|\\.)*)"|'([^']*)')"""
)
# The parts of a `case`: `case $1 in`, `start)`, `;;`, `esac`.
_CASES = pattern(r"\bcase \S+ in\b|^\s*[^\s();&|]+\)|;;|\besac\b", re.MULTILINE)


def _only_reads(words: list[str]) -> bool:
    while words and (words[0] in _BEFORE_A_COMMAND or re.fullmatch(r"\w+=\S*|\d+s?", words[0])):
        words = words[1:]
    if not words or words[0].startswith("#") or words[0] in ("for", "done", "fi", "read", "[", "[[", "(("):
        return True
    if words[0] == "git":
        of_git = plain_git(" ".join(words))
        return "--dry-run" in words or bool(_LISTS.match(of_git)) or not _LOOKING_GIT.isdisjoint(of_git.split()[1:2])
    if _SHOWS.match(" ".join(words)):
        return not may_act_outside(" ".join(words))
    return words[0].lower() in _LOOKING and not (words[0] == "sed" and any(word.startswith("-i") for word in words))


_LISTS = pattern(
    r"git (?:(?:stash|worktree|notes|submodule) (?:list|show|status)|tag(?: -l| --list|$)|config (?:-l|--get|--list)\b)"
)
# What only asks a server, a container, an archive, a log or a program about itself: `gh pr view 12`, `docker ps`,
# `unzip -l tides.zip`, `go env`.
_SHOWS = pattern(
    rf"(?:kubectl|helm|terraform) {_ASKS_CLUSTER}|systemctl (?:is-\S+|status|show|cat|list-\S+)\b|"
    r"(?:gh|glab) (?:api|search|(?:pr|mr|issue|run|release|repo|workflow) (?:view|list|diff|status|checks))\b"
    r"|docker (?:logs|ps|images|inspect)\b|unzip -\w*[lp]|zcat\b|gunzip -c|journalctl\b"
    r"|go (?:env|version|list|doc)\b|\S+ (?:--version|-V|version)\Z"
)


def asks_for_help(command: str) -> bool:
    """Whether a command asks only for help or a version (`--help`, `--version`)."""
    return re.search(r"(?:^|\s)(?:-h|--help|--version)\b", command) is not None


# What may stand before a command: what runs it, and the words of loops and conditions.
_BEFORE_A_COMMAND = frozenset("rtk sudo env timeout time command while until do if then else elif !".split())


def code_is_of_another(command: str) -> bool:
    """Whether the exit code is that of a step that only shows (`| tail`, `|| true`, `; echo`), not of the work."""
    plain = unquoted(command).strip()
    *before, last = re.split(r"(&&|\|\||;|\n)", plain)
    pipe = last.split("|")
    if not all(_only_reads(part.split()) for part in pipe):
        return _only_reads(pipe[-1].split())
    if before[-1:] == ["&&"] or (before and _STOPS.search(plain) and before[-1] != "||"):
        return code_is_of_another("".join(before[:-1]))
    return any(not _only_reads(part.split()) for part in "|".join(before[::2]).split("|"))


_STOPS = pattern(r"(?:^|[;&\n]) *set -\w*e")  # the first command that fails ends the line


def shown(command: str) -> str:
    """A command as one line: the first line that does something, with an ellipsis where more follow.

    Leading steps such as ``cd`` are left out, and so is a script that the command writes to run it.
    """
    # A script that is written first ends in a here-document, up to which alone `command_of` joins lines.
    command = joined_lines(LEADING.sub("", _WRITING.sub("", command), count=1))
    first, more, rest = command.partition("\n")
    while rest.strip() and _ENTERING.fullmatch(first.strip()):
        first, more, rest = rest.partition("\n")
    line = " ".join(first.split()) if first.strip() else ""
    if len(line) > _MOST_SHOWN_CHARS:
        line, more = head(line, _MOST_SHOWN_CHARS), "more"
    return f"{line} {ELLIPSIS}" if more and line else line


# What ends a merge.
CONCLUDES = pattern(r"\bgit (?:commit|reset|stash|checkout -f|\S+ --(?:abort|continue|quit))\b")
