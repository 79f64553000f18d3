"""Noise: which sentences and lines carry no information, and which lines of code define or import something."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from compactor_cli.formats.client_signs import AROUND_OUTPUT, exit_code

_MIN_CHARS = 6
# A run of this many characters without a blank may be data, and this many punctuation marks in a row are noise.
_RUN_CHARS = 80
_MAX_MARKS = 12
_MAX_NARRATION_CHARS, _MAX_PASSING_CHARS, _EXIT_CHARS = 300, 140, 18
_MAX_COURTESY_CHARS = 200
# An announcement from this length on may say how a thing is to be done.
_MIN_HOW_CHARS = 60

# Fillers that open a sentence: `Okay, now `, `Good catch! `, `Step 2: `.
_OPENS = (
    r"(?:[◆▶►▸→] )?"
    r"(?:(?:ok(?:ay)?|good|great|perfect|now|so|alright|excellent|first|next|then|also|done|right|sure|wait|hm+|actually"
    r"|found it|got it|(?:good|great|excellent) (?:question|catch|points?|idea)"
    r"|(?:task|fix|step|change|phase|part) #?\w{1,2}(?: \([^)]*\))?)(?: ?[,.!:—–-]+)?\s+)*"
)


# In `Fix adds a migration` a verb follows: "fix" is then the thing that was made, and announces nothing.
_NO_NOUN = (
    r"(?! (?:adds?|removes?|moves?|shows?|works?|exists?|succeed(?:s|ed)|fail(?:s|ed)|pass(?:es|ed)|return(?:s|ed)"
    r"|is|was|are|were|has|had)\b)"
)
# `After the merge, push a tag` instructs the user: of its own steps the agent would write "I'll push".
_TO_THE_USER = (
    r"(?!(?:after|before|once)\b[^.!?,]{0,90}, (?:updat|add|check|run|fix|apply|write|commit|push|tag|merg)e?\b)"
)


@cache
def _narration() -> re.Pattern[str]:
    # Announcements of what the agent is about to do, which its next calls show better: `Now let me check the gauge.`
    aim = (
        r"(?:(?:now that|to (?:start|begin|do|achieve|confirm|ensure|verify|check|test)|before|after|while)"
        r"\b[^.!?,]{0,90}, )?"
    )
    return re.compile(
        rf"^{_OPENS}{_TO_THE_USER}{aim}(?:let me|let'?s|let us"
        r"|(?:i|we)'?ll|(?:i|we) (?:will|need to|should)|i'?m going to|i want to"
        r"|(?:now )?i'?m (?:now |also )?(?:check|pull|runn|read|look|inspect|open|verify|test|search|fetch|wait|watch"
        r"|start|continu|reproduc|rerunn|formatt|stag|committ|push|apply|patch|updat|add|edit|writ|creat|rebas)ing"
        r"|(?:now|next|then),? (?:remov|delet|replac|renam|creat|mov|extract|verify|build|handl|rewrit|chang|updat|wir)"
        r"(?:e|ing)?"
        r"|(?:now|next|then),? (?:add|fix|implement|run|test|commit|push)(?:ing)?|(?:now |still )?(?:need|have) to"
        r"|time to|going to|(?:updat(?:e|ing)|add(?:ing)?|check(?:ing)?|run(?:ning)?|look(?:ing)?|read(?:ing)?"
        rf"|fix(?:ing)?|appl(?:y|ying)|implement(?:ing)?|writ(?:e|ing)|commit(?:ting)?|push(?:ing)?|fetch(?:ing)?){_NO_NOUN}"
        r"|spawning|launching|dispatching|starting"
        # `The next step:` announces; `The remaining items are out of scope` and `One more gap surfaced` do not.
        r"|(?:the (?:next|last|remaining)|one (?:more|remaining|last))"
        r"(?! [^.!?:]{2,120}\b(?:are|were|was|fail(?:s|ed)?|surfaced|comes?|came|needs?)\b))"
        r"\b(?:[^.!?]|\.(?=\w)){0,240}[.:!]*(?: let me(?:[^.]|\.(?=\w))*[.:]?)?$"
        rf"|^{_OPENS}(?:i|we)(?:'ve| have)? (?:found|located) (?:it|them|(?:the|our|an?) \w+(?: \w+)?)[.!]*$"
        rf"|^{_OPENS}i (?:can |now )*(?:see|understand|have)\b(?! that)[^.!?:`\d]{{0,60}}[.:!]*$"
        r"|^(?:[^\uff0c\u3002]{0,12}\uff0c)?(?:让我|我来|我先|我再|我去|我看一?下|现在我|接下来|下面我|首先)|^(?:では|次に)",
        re.IGNORECASE,
    )


@cache
def _passing() -> re.Pattern[str]:
    # The outcome of a step, or how far the steps are: `All tests pass now.`, `The server is still starting`.
    subject = r"(?:tests?|checks?|lint\w*|build|suite|ci|compil\w+|everything|all|both|tree)"
    outcome = (
        r"(?:pass(?:e[sd]|ing)?|fail(?:s|ed|ing|ures?)?|clean|green|success\w*|compil(?:es?|ed)|errors?|issues?"
        r"|written|done|expected|correct|good|fine|gone)"
    )
    return re.compile(
        rf"^{_OPENS}(?:[\w`*/.()'’-]+ ){{0,7}}?{subject}\b[^!?\n]{{0,60}}\b{outcome}\b"
        r"[^,;!?\n]{0,60}(?:, (?:including|with|as)\b[^,;!?\n]{0,40})?$"
        rf"|^{_OPENS}(?:(?:the|that|this) (?:\w+ ){{1,3}}(?:looks?|is|was)"
        r" (?:correct|fine|good|done|in place|made|updated|written|added|saved|created|committed|pushed|ready)\b"
        r"|(?:[\w`-]+ ){0,5}agents? (?:is|are) (?:now |still )?(?:working|running)\b"
        r"|(?:[\w`-]+ ){1,6}(?:is|are) still \w+ing\b"
        r"|[^!?\n]{1,80}\b(?:so far|still running|kicked off|(?:is|are) running|should now be)\b"
        r"|[^!?\n]{0,40}\b(?:diagnostics?|warnings?) (?:is|are) (?:stale|expected|in existing|pre-?existing)\b"
        r"|(?:clean|looks? (?:good|right|correct|fine)|nice|committed|pushed)\b"
        r"|still|waiting|commit(?:ted)?\b[^!?\n]{0,20} success)[^!?\n]{0,60}$"
        rf"|^{_OPENS}(?:[\w`-]+ ){{1,5}}(?:is|are) (?:now )?(?:queued|in progress|underway)\b"
        rf"|^{_OPENS}(?:[\w`-]+ ){{1,4}}(?:(?:is|are) (?:now )?working|works?)"
        r"(?: (?:now|much|better|great|fine|well|perfectly|correctly|properly|as expected))*[.!]*$"
        rf"|^{_OPENS}(?:the|this|that) (?:[\w`-]+ ){{1,4}}(?:is|are) now "
        r"(?:correct|valid|clean|clear|complete|properly \w+)\b[^,;!?\n]{0,80}$",
        re.IGNORECASE,
    )


# Every match of ``_COURTESY`` has one of these parts, in lower case.
_COURTESY_PARTS = (
    *("feel free", "let me know", "if you need", " can i ", " may i ", "anything else", "welcome", "thank"),
    *("happy to help", "glad to", "here to help", "apologi", "appreciate", "have a ", "i understand your", "please "),
    *(" you with ", "请随时", "很高兴", "还有什么", "不客气"),
)
_COURTESY = re.compile(
    r"\b(?:feel free|let me know|if you need (?:any )?(?:further|more) (?:assistance|help)"
    r"|(?:how|what) (?:can|may|else can) I (?:help|assist|do)|anything else"
    r"|you'?re welcome|happy to help|glad to|here to help|thank(?:s| you) (?:for|again|so much)|I apologi[sz]e"
    r"|I (?:really )?appreciate (?:your|the|it|all)\b"
    r"|have a (?:great|nice|good|wonderful)|I understand your|please (?:wait|hold|bear)"
    r"|(?:help|assist) you with [^.!?,]{1,40}[.!]?$)"
    r"|请随时|很高兴|还有什么|不客气",
    re.IGNORECASE,
)
# Sentences that are nothing else: `Good catch!`, `You're absolutely right.`
_ONLY_COURTESY = re.compile(
    r"(?:(?:ah|oh|yes|sorry|you'?re (?:absolutely |completely |totally |so )?right(?: to (?:question|doubt|ask)"
    r"(?: (?:that|this|it))?)?|now I see(?: the [\w ]{0,24})?|found it|(?:good|great|nice|excellent)"
    r"(?: catch| point| question| idea| find| thinking| insight| approach)?|perfect(?: approach)?|sure|of course|got it"
    r"|understood|absolutely|makes sense|no (?:problem|worries)|thanks|thank you)\b[\s,.!]*)+$",
    re.IGNORECASE,
)


def is_narration(text: str) -> bool:
    """Whether a sentence is a courtesy, or only announces the next call and gives neither a purpose nor a method."""
    if len(text) > _MAX_NARRATION_CHARS:
        return False
    text = text.replace("’", "'")
    return is_courtesy(text) or (
        _narration().match(text) is not None
        and not _PURPOSE.search(text)
        and not (len(text) > _MIN_HOW_CHARS and _SAYS_HOW.search(text))
    )


def intends(text: str) -> bool:
    """Whether a sentence says what is to be done next, with or without a reason."""
    text = text.replace("’", "'")
    return _INTENDS.search(text) is not None or _narration().match(text[:_MAX_NARRATION_CHARS]) is not None


_INTENDS = re.compile(
    r"\b(?:needs? to (?:be|have)|(?:still|also) needs?"
    r"|I(?:'ll| will| need to|'m (?!keeping|leaving|treating|using)(?:\w+ )?\w+ing))\b",
    re.IGNORECASE,
)


def settles(text: str) -> bool:
    """Whether a sentence also says what stays undone, or has 60 characters or more before its intention."""
    intended = _INTENDS.search(text.replace("’", "'"))
    return _CONTRAST.search(text) is not None or (intended is not None and intended.start() >= _MIN_STATED_CHARS)


_MIN_STATED_CHARS = 60


def only_intends(sentence: str) -> bool:
    """Whether a sentence says what is to be done and states no fact."""
    return intends(sentence) and not settles(sentence)


def only_announces(sentence: str) -> bool:
    """Whether a sentence says what is to be done, but neither how nor why."""
    return only_intends(sentence) and _SAYS_HOW.search(sentence) is None


# `: use the old gauge`, `without a clock`, `by rounding up`; not `by running`, which every step is.
_SAYS_HOW = re.compile(
    r": \S|\b(?:because|since|so that|instead|rather than|keep(?:s|ing)?|only|without|must|never|to avoid"
    r"|by (?!runn|check|read|look|verif|test|search|launch|start)\w+ing)\b",
    re.IGNORECASE,
)


def is_passing(text: str) -> bool:
    """Whether a sentence only says how a step of the work went, which its call shows and the next step may change.

    A sentence with a number says more and is kept, as is one with a purpose.
    """
    is_short = len(text) <= _MAX_PASSING_CHARS and _DIGIT.search(text) is None
    return is_short and _passing().match(text) is not None and not _PURPOSE.search(text)


_DIGIT = re.compile(r"\d")
# What is left undone or unchanged: `leaving the clock alone`, `for now`.
_CONTRAST = re.compile(
    r"\b(?:instead of|rather than|for now|skip(?:ping)?|leav(?:e|ing)|keep(?:ing)?|fall(?:ing)? back|treat(?:ing)?"
    r"|unrelated|only the|not (?:mine|part of))\b",
    re.IGNORECASE,
)
# The purpose or reason in an announcement, for which it is kept: `Let me round up, because the gauge drifts.`
_PURPOSE = re.compile(
    rf"{_CONTRAST.pattern}|\b(?:because|since|so that"
    r"|to (?:handle|avoid|prevent|keep|support|ensure|match|allow|preserve|stop))\b"
    r"|(?::| [—–-]) (?:it|this|that|the|there|with|without|but)\b",
    re.IGNORECASE,
)


def is_courtesy(text: str) -> bool:
    """Whether a sentence is a courtesy: thanks, an offer of help, an assent.

    Long sentences, and those that name what was left undone (`Not committed, let me know …`), say more.
    """
    if len(text) > _MAX_COURTESY_CHARS or _UNDONE.search(text):
        return False
    text = text.replace("’", "'")
    if _ONLY_COURTESY.match(text):
        return True
    return may_have(text, _COURTESY_PARTS) and _COURTESY.search(text) is not None


_UNDONE = re.compile(
    r"\b(?:not|n['’]t|un|never)[ -]?(?:yet )?(?:committed|pushed|merged|tested|deployed|verified|staged|published)\b",
    re.IGNORECASE,
)


def may_have(text: str, parts: Iterable[str]) -> bool:
    """Whether a text contains one of these lower-case parts, in upper or lower case.

    A fast check before a slow pattern whose every match contains one of the parts.
    """
    return any(map(text.lower().__contains__, parts))


# Encoded data: 80 or more characters as in base64 without a blank, or eight escaped bytes (`\x1f\x8b…`).
_ENCODED = re.compile(rf"[A-Za-z0-9+/=_-]{{{_RUN_CHARS},}}|(?:\\x[0-9a-f]{{2}}){{8}}")
# A path that would pass for such data: `/home/ada/-harbours-of-the-north/tides.csv`.
_LONG_PATH = re.compile(r"`?(?:~|[A-Za-z]:)?/(?:[\w.@+-]+/)+[\w@+-]+\.\w{1,8}`?")
# The path of an SVG drawing: twelve or more numbers with only letters and signs between them, `M3.2,7.5L-4.1,9`.
_MIN_POINTS = 6
_DRAWING = re.compile(rf"(?:[A-Za-z]?[ ,]?-?(?:\d++(?:\.\d++)?|\.\d++)){{{2 * _MIN_POINTS},}}")
# The navigation of a page: at least three Markdown links with little text between them in its first characters.
_LINK, _MIN_LINKS, _LINKS_CHARS = re.compile(r"\[[^\]\n]*\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)"), 3, 2_000
_MARKS_IN_A_ROW = re.compile(rf"(?:[^\s\w]\s*){{{_MAX_MARKS}}}")
# For ASCII the same check runs on the shape of a text without blanks: letters as "a", digits "0", "_" as itself, other
# marks "#".
_BLANKS = bytes(code for code in range(128) if chr(code).isspace())
_SHAPES = bytes(97 if chr(c).isalpha() else 48 if chr(c).isdigit() else 95 if c == 95 else 35 for c in range(256))
_MARKS_SHAPE = b"#" * _MAX_MARKS


def finds_nothing(sentence: str) -> bool:
    """Whether a sentence of a report says that what was asked for could not be found or is not in the source."""
    return _FINDS_NOTHING.search(sentence) is not None


_FINDS_NOTHING = re.compile(
    r"\bI (?:cannot|can['’]t|could(?:n['’]t| not)|(?:am|was) unable to)"
    r" (?:extract|find|locate|provide|access|determine)\b"
    r"|\b(?:content|page|document\w*|text|file)\b[^.\n]{0,60}\bdo(?:es)?(?: \W*not\W*|n['’]t )\s*(?:\w+ )?"
    r"(?:contain|include|provide|mention|describe)\b",
    re.IGNORECASE,
)


# Bytes of a file, as `xxd` shows them: `00000010: 7469 6465 2074`.
_HEX_DUMP = re.compile(r"[0-9a-f]{8}: (?:[0-9a-f]{2,4} ){2,}")
# A line with one member of a JSON object: `"level": 3,`.
JSON_MEMBER = re.compile(r'\s*(?:• )?"[\w-]+": ?(?:".*",?|[\[{]|[\w.-]+,?)\s*$')


def is_noise(text: str) -> bool:
    """Whether a text carries no information: brackets, rules, lines that tools add, encoded data, drawings, links."""
    if len(text) < _MIN_CHARS or (text.endswith("()") and " " not in text) or AROUND_OUTPUT.match(text):
        return True
    if len(text) < _EXIT_CHARS and exit_code().fullmatch(text):
        return True  # the outcome of the command shows the exit code
    if text[8:10] == ": " and _HEX_DUMP.match(text):
        return True
    is_ascii, shape = text.isascii(), text.encode("ascii", "ignore").translate(_SHAPES, _BLANKS)
    letters, has_letter = shape.count(b"a") + shape.count(b"0"), b"a" in shape
    if not is_ascii and (letters * 5 < len(text) * 2 or not has_letter):
        letters, has_letter = sum(map(str.isalnum, text)), any(map(str.isalpha, text))
    if letters * 5 < len(text) * 2 or not has_letter:
        return True
    if text.count(".") >= _MIN_POINTS and _DRAWING.search(text):
        return True
    if text.count("](", 0, _LINKS_CHARS) >= _MIN_LINKS:
        words = _LINK.sub("", text[:_LINKS_CHARS])
        if 3 * sum(map(str.isalpha, words)) < min(len(text), _LINKS_CHARS):
            return True
    if "://" in text:
        return False
    has_run = len(text) >= _RUN_CHARS and max(map(len, text.split())) >= _RUN_CHARS
    if ("\\x" in text or has_run) and _ENCODED.search(text) and not _LONG_PATH.fullmatch(text):
        return True
    if is_ascii:
        return _MARKS_SHAPE in shape
    return len(text) - letters - text.count(" ") >= _MAX_MARKS and _MARKS_IN_A_ROW.search(text) is not None


_PROGRESS_STARTS = tuple(
    "=== RUN |ok |✓ |✔ |√ |Compiling |Checking |Adding |Download|Collecting |Unpacking |Using cached "
    "|Requirement already |Get:|Setting up |Receiving objects:|Resolving deltas:|remote: ".split("|")
)
# Passed tests of go, cargo, pytest, unittest, TAP, and the check marks of mocha, jest and vitest; lines of logs; then
# steps of cargo, pip, apt and git.
_PROGRESS = re.compile(
    r"^\s*(?:--- PASS: |=== RUN |test .* \.\.\. ok$|ok (?:\d+ | *\t\S+\t)|[✓✔√] |PASS(?:ED)? )"
    r"|\bPASSED(?: +\[ *\d+%\])?$|\.\.\. ok$|^\s*\d{4}[/-]\d\d[/-]\d\d\S* \S* ?(?:INFO|DEBUG|TRACE)\b"
    # Of the log of macOS: `2026-07-15 11:23:22.352442+0200 0x1e045    Default     0x71077`
    r"|^\s*\d{4}-\d\d-\d\d \d\d:\d\d:\S+ 0x[0-9a-f]+ +(?:Default|Activity|Info|Debug) "
    r"|^(?:(?:Compiling|Checking|Adding|Downloaded) \S+ v\d|(?:Downloading|Collecting|Unpacking|Using cached) \S"
    r"|Requirement already satisfied|Get:\d|Setting up \S+ \(|Receiving objects:|Resolving deltas:"
    r"|remote: (?:Counting|Compressing|Enumerating|Total|Create a pull request) )"
    r"|^\s*(?:inflating|extracting|creating): \S+$"
    # The meter of curl: `51 10.7M   51 5643k    0     0  3903k      0  0:00:02  0:00:01  0:00:01 4583k`
    r"|^\s*\d{1,3}(?: +[\d.]+[kMGT]?){7}(?: +[\d:-]{7,}){3} +[\d.]+[kMGT]?$|^\s*% Total +% Received "
)


def progress_among(texts: Iterable[str]) -> frozenset[str]:
    """The lines of output that report one passed test, one step of a build or download, or an entry of a log."""
    begins = (*_PROGRESS_STARTS, "20")  # the year that opens an entry of a log
    within = ("PASS", ":--", " 0:00:", "% Received", "ing: ")
    may_be = (
        text for text in texts if text.endswith(" ok") or text.startswith(begins) or any(map(text.__contains__, within))
    )
    return frozenset(filter(_PROGRESS.search, may_be))


# `import gauge`, `from tides import high`, `#include`, and `"harbour/tide"` in a list of imports.
_IMPORT = re.compile(
    r"(?:import\b|from \S+ import\b|\} from ['\"]|#include\b|(?:pub )?use [\w:]|using [\w.]+;|export \*"
    r"|const .* = require\(|(?:\w+ )?\"[\w.]+(?:/[\w.-]+)+\"$)"
)


# Modifiers that may precede a keyword of a definition, and these keywords in most languages.
MODIFIER = r"(?:export |default |public |private |protected |static |async |pub |abstract |final )"
DEFINERS = "def|class|func|fn|function|interface|type|struct|enum|trait|impl"
_SIGNATURE = re.compile(rf"^(?:{MODIFIER}|@)*(?:{DEFINERS}|const|CREATE|ALTER)\b" r"|^(?:#|//|--|\"\"\"|\*) ")


def is_signature(text: str) -> bool:
    """Whether a line of a file is a definition or a comment."""
    return _SIGNATURE.match(text) is not None


def is_amid_code(text: str) -> bool:
    """Whether a line of a file means little without those around it: code that defines nothing, a part of a comment."""
    text = _FOUND_AT.sub("", text)
    if comment := _COMMENT.match(text):
        return not (comment[1][:1].isupper() and comment[1].endswith((".", "!", "?", ":")))
    if _ENTRY.match(text) or _LOCAL.match(text):
        return True
    return not (_CODE_MARKS.isdisjoint(text) or is_signature(text))


# Where a search found a line: `src/gauge.ts:27:`
_FOUND_AT = re.compile(r"^(?:[\w./@-]+:)?\d+:\s*")
_COMMENT = re.compile(r"(?://|/?\*+|--) +(.*?)[ */]*\Z")
_CODE_MARKS = frozenset("=(){};[]<>")
# An entry of a literal (`createdAt: row.created_at,`), and a local value (`const level = read(gauge)`).
_ENTRY = re.compile(r"[A-Za-z_$][\w$.]*(?:\??:\s+\S.*)?,$|[A-Za-z_$][\w$]*(?:\?: \w[\w.<>\[\]]*|:)$")
_LOCAL = re.compile(r"const (?:[a-z]\w*|[\[{][^=]*) = (?!(?:async )?(?:\(|function\b|\w+ =>))")


def is_import(text: str) -> bool:
    """Whether a line of a file imports something; a quoted path is an entry in a list of imports."""
    return _IMPORT.match(text) is not None


def is_styled(text: str) -> bool:
    """Whether a line of code only says how an element of a page looks."""
    return _IS_STYLED.match(text) is not None


# `<div className="flex gap-2">`, `class="pier"`, `<path d="M3 7" />`: how a page looks.
_IS_STYLED = re.compile(
    r"(?:<[\w.]+ (?:[\w:.-]+(?:=(?:\"[^\"]*\"|\{[^}]*\}))? )*)?(?:class(?:Name)?|style|d|viewBox)=[\"{'`]"
)


def is_scrap(text: str) -> bool:
    """Whether a line of code or output is an import, an element with its style, or a piece of something larger."""
    if is_import(text) or is_styled(text):
        return True
    return (
        text[0] in ")]},.;:&|+*/=<?" or text[-1] in "([{,&|+=\\<" or text.startswith(("and ", "or ", "else", "return "))
    )
