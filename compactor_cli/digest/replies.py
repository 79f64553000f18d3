"""Replies: what a message asks, its lists of options by letter or number, and which of them a reply takes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, zip_longest

from compactor_cli.digest.statements import COLONS, QUESTION_MARKS, one_line, opening, plain_line, sentences, tail
from compactor_cli.model.patterns import pattern

_ENDING_CHARS = 1_500
# A longer message points at nothing by its first number.
_MAX_POINTING_CHARS = 400
_ENTRY_WORDS = (
    "option|issue|finding|bug|item|comment|point|number|problem|approach|suggestion|recommendation|fix|task|step"
    "|scenario|question"
)
_OPTION = pattern(
    rf"^\s*(?:[-*•]\s+|\|\s*)?(?:#{{1,4}}\s+)?(?:\*\*)?(?:(?P<word>{_ENTRY_WORDS})\s+)?#?(?P<key>[A-Ha-h]|\d{{1,2}})"
    r"(?:\*\*)?(?:\)|\.|:|\s[-–—]|\s*\|(?=.*[^\W\d_]{3}))\**\s+(?P<text>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)


def options_of(text: str) -> Mapping[str, str]:
    """The options that a message lists last, by their letter or number; empty where there are fewer than two."""
    found = next(reversed(_option_lists(text)), ("", {}))[1]
    return found if len(found) > 1 else {}


def question_of_options(text: str, question: str) -> str:
    """What the options that a message lists last are for: the line above them, where it says so; else its question."""
    above = _heads_options(text)
    if len(above.split()) >= _MIN_HEADING_WORDS:
        return above
    # "Thoughts?" is asked of what the options are for.
    return f"{above} {question}".strip() if len(question.split()) == 1 else question


_MIN_HEADING_WORDS = 4


def _heads_options(text: str) -> str:
    """The line above the options that a message lists last, where it introduces them; empty where it does not."""
    starts = [found.start() for found in _OPTION.finditer(text) if found["key"].lower() in ("1", "a")]
    above = plain_line(text[: starts[-1]].rstrip().rpartition("\n")[2]) if starts else ""
    return above if above.endswith((*COLONS, *QUESTION_MARKS)) else ""


# What an agent ends with where it waits for a yes or a choice without asking a question.
_ASKS_FOR = pattern(
    r"(?:if so, |then )?(?:please|kindly) (?:confirm|choose|select|pick|specify|provide|reply|tell me|let me know)\b"
    r"|let me know (?:if you(?:'d| would) like me to|whether|which|how you)\b|(?:请确认|请选择|请告诉我|请提供)",
    re.IGNORECASE,
)

# The second half of a question: without the first, a yes to it would be turned round.
_OTHER_HALF = pattern(r"\W*(?:or|alternatively|otherwise)\b|\W*(?:或者|还是|または|それとも)", re.IGNORECASE)


def last_question(text: str) -> str:
    """The question, or the request for an answer, that a text ends with, or nearly; empty if there is none.

    A question of two halves ("Should I …? Or …?") is given whole, one above its options without them, the last of
    several with numbers with those before it.
    """
    above = before_options(text)
    line = above.rstrip("*_ ").rpartition("\n")[2]
    # "Which is it? Some possibilities:"
    if above is not text and (_asks(line) or (line.endswith(COLONS) and any(map(_asks, sentences(line)[-2:-1])))):
        text = above
    ending = (
        text if len(text) <= _ENDING_CHARS else text[-_ENDING_CHARS:].partition("\n")[2] or tail(text, _ENDING_CHARS)
    )
    # Code in which the ending begins is none of it.
    found = sentences("```\n" * (text.removesuffix(ending).count("```") % 2) + ending)
    near = range(len(found) - 1, max(-1, len(found) - 4), -1)
    offers = (
        at for at in range(len(found) - 1, max(-1, len(found) - _MAX_BELOW_OFFER), -1) if _OFFERS.match(found[at])
    )
    last = next(chain((at for at in near if _asks(found[at])), offers), -1)
    is_half = 0 <= last < len(found) - 1 and _OTHER_HALF.match(found[last + 1]) and _asks(found[last + 1])
    last += bool(is_half)
    first = last - 1 if last > 0 and _OTHER_HALF.match(found[last]) and _asks(found[last - 1]) else last
    numbered = _with_lower_numbers(found[:first], found[first]) if first >= 0 else []
    return " ".join((*numbered, *found[first : last + 1])) if last >= 0 else ""


def _with_lower_numbers(stated: Sequence[str], question: str) -> list[str]:
    """The questions with the numbers before that of a question; none where one of these asks nothing."""
    number = int(question[0]) if _HAS_NUMBER.match(question) else 1
    asked = [next((one for one in reversed(stated) if one.startswith(f"{n}. ")), "") for n in range(1, number)]
    return asked if all(map(_asks, asked)) else []


_HAS_NUMBER = re.compile(r"[2-4]\. ")


# "Would you like me to refactor it? It would:", and a list of what that gives.
_OFFERS = pattern(r"\W*(?:(?:do you )?want|would you like) me to\b[^?]*[?？]\W*\Z", re.IGNORECASE)
_MAX_BELOW_OFFER = 40


def last_proposal(text: str) -> str:
    """The last sentence of a text by which the agent proposes something; empty where it does not."""
    return next((one for one in reversed(sentences(text)) if _PROPOSES.search(one)), "")


_PROPOSES = pattern(
    r"\b(?:I(?:'d| would)? (?:suggest|recommend|propose)|my (?:suggestion|recommendation|proposal))\b|建议|提案",
    re.IGNORECASE,
)


def _asks(sentence: str) -> bool:
    # What stands in quotation marks somebody else asks, and what is looked up nobody.
    is_of_others = (sentence.rstrip().endswith('"') and ' "' in sentence) or _EMPHASISED.search(sentence)
    if is_of_others or _LOOKS_UP.match(sentence):
        return False
    bare = sentence.strip("*_`)\"'- ")
    is_heading = bare.endswith(COLONS) and _HEADS_OPTIONS.match(bare) is not None
    return bare.endswith(QUESTION_MARKS) or is_heading or _ASKS_FOR.match(bare) is not None


# "It answers the one question left: *why is it not run?*"
_EMPHASISED = pattern(r"\w.*\s([*_]{1,2})[^*_]+[?？]\1\W*\Z")
_LOOKS_UP = pattern(
    r"\W*(?:(?:now|but|so|ok(?:ay)?|wait|hm+)\b[\s,-]*)*"
    r"(?:let me|I(?:'ll| will| need to| should| want to)) (?:also |now |first )?(?:check|see|verify|look|find|think)\b",
    re.IGNORECASE,
)
# The first half of a question whose options stand below it.
_HEADS_OPTIONS = pattern(
    r"\W*(?:do you (?:want|prefer)|would you (?:like|prefer|rather)|(?:should|shall) (?:I|we)|(?:could|can) you)\b",
    re.I,
)


_ASKS_THE_USER = pattern(
    r"^(?:(?:also|and|so|in the meantime)[, ]+)?(?:please|could you|can you|would you|if so|once (?:you|I have)"
    r"|let me know)\b|.{0,120}\b(?:I|we)(?:['’]ll| will)? (?:first |also )?need\b",
    re.IGNORECASE,
)


def asks_the_user(text: str) -> bool:
    """Whether a sentence asks for something that a reply would give."""
    return text.endswith(QUESTION_MARKS) or _ASKS_THE_USER.match(text) is not None


def offered(text: str, *, is_service: bool = False) -> Collection[str]:
    """The options of a message that ends with a question which of them it is to be.

    "Want me to fix these?" stands below findings: whatever the answer is, they are so. A service's lists are offers.
    """
    question, options = last_question(text), options_of(text)
    if is_service or not (question and options):
        return options.values() if question else ()
    *_, last = _OPTION.finditer(text)
    between = (
        one for one in text[last.end() :].split("\n\n") if one.strip() and not one.startswith((" ", "\t", "-", "*"))
    )
    is_near = len([*between]) <= _MAX_PARAGRAPHS_BELOW
    return options.values() if is_near and _CHOOSES_AMONG.search(f"{question} {_heads_options(text)}") else ()


# From a list to the question which of its entries is wanted: the entry's own rest, a word on all of them, the question.
_MAX_PARAGRAPHS_BELOW = 3
_CHOOSES_AMONG = pattern(
    r"\b(?:which|what|or|options?|prefer\w*|choose|choice|pick|select|either|rather|ways?|approach\w*|how|thoughts?)\b"
    r"|哪|还是|或者|それとも|どの",
    re.IGNORECASE,
)


def last_words(text: str) -> str:
    """What a short reply to a text answers: its last question, else its last sentence."""
    return last_question(text) or next(iter(sentences(text[-_ENDING_CHARS:])[-1:]), "")


def is_option(piece: str, options: Iterable[str]) -> bool:
    """Whether a statement is one of these options of its message, or a sentence of one."""
    bare = _KEY.sub("", piece, count=1)
    return any(bare in option or option[:_SAME_CHARS] in bare for option in options)


_KEY, _SAME_CHARS = pattern(r"\A(?:\d{1,3}[.)]|[A-Ha-h]\))\s+"), 40


def before_options(text: str) -> str:
    """A text without the options that it ends with, where these are two or more lines."""
    lines = text.rstrip().split("\n")
    options = 0
    while lines and (not lines[-1].strip() or _OPTION.match(lines[-1]) or _BULLET.match(lines[-1])):
        options += bool(lines.pop().strip())
    return "\n".join(lines) if options > 1 else text


_BULLET = pattern(r"[-*•] +\S")


# A message is asked for its lists by each of the next messages of the user.
@lru_cache(maxsize=64)
def _option_lists(text: str) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """The lists of a message whose entries have letters or numbers, table rows among them, each with what it is of."""
    lists: list[tuple[str, Mapping[str, str]]] = []
    kind, found = "", dict[str, str]()
    matches = list(_OPTION.finditer(text))
    for match, after in zip_longest(matches, matches[1:]):
        key = match["key"].lower()
        if _IS_ANYTHING.match(match["text"]):
            continue
        if key in ("1", "a") and found:
            lists.append((kind, found))
            found = {}
        kind = kind if found else text[max(0, match.start() - _MAX_ENTRY_CHARS) : match.start("key")].lower()
        words = match["text"].strip().removesuffix("|").replace("**", "").strip()
        below = text[match.end() : after.start() if after else None].strip("\n").partition("\n\n")[0]
        found[key] = one_line(f"{words}\n{below.strip()}" if words.endswith(COLONS) else words) + _fields(below)
    return (*lists, (kind, found)) if found else tuple(lists)


# An option that leaves it to the user: his words are the answer, and may take others of them too.
_IS_ANYTHING = pattern(r"\W*(?:(?:some|any)thing (?:else|different)|other\b|none of)", re.IGNORECASE)


def _fields(below: str) -> str:
    """What stands below an entry, a line each, where it is set off by more than the entry itself."""
    lines = [found[1].replace("**", "").strip() for found in _FIELD.finditer(below)]
    return "".join(f" · {line}" for line in lines if line)


_FIELD = pattern(r"^\s+[-*•]\s+(\S.*)$", re.MULTILINE)
_KEYS = r"(?:[A-H]|\d{1,2})\b(?:(?:\s*,\s*(?:and )?|\s*(?:and|&|\+|or)\s*)#?(?:[A-H]|\d{1,2})\b)*"
# How a message points at an entry of a list: by its kind and number, by its place, or by its number alone.
_POINTS = pattern(
    rf"\b(?P<word>(?i:{_ENTRY_WORDS}))s?\s+#?(?P<keys>{_KEYS})(?![\w.]*/)"
    rf"|\b(?i:the (?P<place>first|second|third|fourth|last) (?:one|{_ENTRY_WORDS})\b)"
    rf"|\A\W*(?:[\w']+,? ){{0,5}}?(?<!all )#?(?P<bare>{_KEYS}|[a-h](?=\W*\Z))(?=\W*\Z|[.,;:!?=)](?:\s|\Z)| [-–—] "
    r"| (?:too|and|is|was|has|have|would|does|please|first|then|technically|for|on|of|seems|looks|sounds)\b)"
)
_ANY_ENTRY = ("option", "item", "point", "number")
_PLACES = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1}
_MAX_ENTRY_CHARS, _MAX_POINTED_CHARS, _MAX_POINTED, MAX_LOOKED_BACK = 110, 240, 4, 12


def pointed_at(words: str, spoken: Sequence[str]) -> str:
    """The entries of the newest list before a message that it points at; empty where it points at none.

    What it calls them (``issue 1``) is what the list is of; a number alone points into the message just before, and at
    the beginning of a line it is the user's own. A list of reasons has none that could be meant.
    """
    found = _POINTS.search(words) if spoken and len(words) <= _MAX_POINTING_CHARS else None
    if found is None or _OWN_LIST.match(words):
        return ""
    keys = _keys(found)
    near = spoken if found["word"] else spoken[-1:]
    word = (found["word"] or "").lower()

    def newest_first(text: str) -> Iterator[tuple[str, Mapping[str, str]]]:
        """The lists of a message, first those whose entries are called so: `Option 2`."""
        listed = [one for one in reversed(_option_lists(text)) if len(one[1]) > 1]
        yield from (one for one in listed if one[0].rstrip(" #").endswith(word))
        yield from listed

    lists = chain.from_iterable(map(newest_first, reversed(near)))
    for kind, entries in lists:
        if found["place"]:
            keys = list(entries)[_PLACES[found["place"].lower()] :][:1]
        is_of_word = word in kind or word in _ANY_ENTRY
        if is_of_word and not _OF_REASONS.search(kind) and keys and all(key in entries for key in keys):
            most = max(_MAX_ENTRY_CHARS, _MAX_POINTED_CHARS // len(keys))
            return " · ".join(f"{key}. {opening(entries[key], most)}" for key in keys[:_MAX_POINTED])
    return ""


def parts_pointed_at(words: str, text: str) -> str:
    """The parts of a text under the entries of its newest list that a message points at; empty where it has none."""
    found = _POINTS.search(words)
    entries = {one["key"].lower(): one for one in _OPTION.finditer(text)}
    keys = _keys(found) if found else []
    if not keys or not all(key in entries for key in keys):
        return ""
    starts = sorted(one.start() for one in entries.values())
    stops = dict(zip(starts, (*starts[1:], None), strict=True))
    parts = (text[entries[key].start() : stops[entries[key].start()]] for key in keys)
    return "\n".join(_RULE_LINE.split(part, maxsplit=1)[0].strip() for part in parts)


# What stands below it is of no entry any more.
_RULE_LINE = pattern(r"^\s*(?:-{3,}|\*{3,}|_{3,})\s*$", re.MULTILINE)


def _keys(found: re.Match[str]) -> list[str]:
    return re.findall(r"\b(?:[a-h]|\d+)\b", (found["keys"] or found["bare"] or "").lower())


_OWN_LIST = pattern(r"\W*\d+[.)] +\S")
_OF_REASONS = pattern(r"\b(?:because|reasons?|why|benefits?|pros|cons)\b\W*\Z")


def chosen_options(answer: str, options: Mapping[str, str]) -> list[str]:
    """The keys of the options that an answer points at, or that begin with it; empty where one of them is none."""
    lowered = answer.lower()
    for labels in ((lowered,), tuple(lowered.split(", "))):
        named = [key for key, text in options.items() if text.lower().startswith(labels)]
        if min(map(len, labels)) > 2 and len(named) == len(labels):
            return named
    if _TO_EACH.match(answer):
        return []  # one reply to each of them chooses none
    # Who asks back about one may choose in the next sentence.
    for words in (answer, *(one for one in sentences(answer) if not one.endswith(QUESTION_MARKS))):
        found = _POINTS.search(words)
        if found and _CHOOSES.fullmatch(words, 0, found.start(found.lastgroup or 0)):
            keys = _keys(found)
            return keys if all(key in options for key in keys) else []
    return []


def replies_to_each(answer: str, options: Mapping[str, str]) -> list[tuple[str, str]]:
    """The entries of a list, each with what an answer says under its letter or number; empty if it has none."""
    answer = _WITH_HYPHEN.sub(r"\1. ", _NEXT_REPLY.sub("\n", answer)) if answer.startswith("1") else answer
    found = [one for one in _OPTION.finditer(answer) if one["key"].lower() in options]
    keys = [one["key"].lower() for one in found]
    if len(keys) < 2 or len({*keys}) < len(keys) or answer[: found[0].start()].strip():
        return []
    stops = [*(one.start() for one in found[1:]), len(answer)]
    replies = (one_line(answer[one.start("text") : stop]) for one, stop in zip(found, stops, strict=True))
    return [(options[key], reply) for key, reply in zip(keys, replies, strict=True)]


# "1. the first, 2. the other one", "1 - yes, 2 - no"
_NUMBERED = r"\d{1,2}(?:[.)]| ?[-\u2013\u2014:])"
_NEXT_REPLY = pattern(rf"[,;.]? +(?={_NUMBERED} \S)")
_WITH_HYPHEN = pattern(r"^(\d{1,2}) ?[-\u2013\u2014:] ", re.MULTILINE)
_TO_EACH = pattern(rf"\W*{_NUMBERED} .*\s{_NUMBERED} ")
# The words before a choice.
_CHOOSES = pattern(
    r"\W*(?:(?:yes|yeah|ok(?:ay)?|but|I think|(?:seems|looks|sounds) like"
    r"|I'?d(?: like (?:it|you) to)?|prefer|let'?s(?: \w+)?|we|go(?: with| for)?"
    rf"|do|try|take|pick|implement|apply|the|{_ENTRY_WORDS})\b[\s,]*){{0,6}}#?",
    re.IGNORECASE,
)


def asks(words: str) -> bool:
    """Whether a message of the user asks something, with or without a question mark."""
    return any(mark in words for mark in QUESTION_MARKS) or _BEGINS_TO_ASK.match(words) is not None


QUESTION_WORDS = "what|which|where|when|who|how|why"
_BEGINS_TO_ASK = pattern(
    rf"\W*(?:(?:and|but|so|also|ok(?:ay)?|well|hm+)\b\W*)*(?:{QUESTION_WORDS})"
    r"(?:'s\b| (?:\w+ )?(?:is|are|do|does|did|was|were|can|could|should|would|about|if)(?:n['’]t)?\b)",
    re.IGNORECASE,
)


def is_assent(words: str) -> bool:
    """Whether a message of the user only agrees."""
    return _ASSENT.fullmatch(one_line(words)) is not None


def begins_with_assent(words: str) -> bool:
    """Whether a message begins by agreeing, whatever it adds that does not take that back."""
    agrees = _ASSENT.match(words)
    return agrees is not None and _TAKES_BACK.match(words, agrees.end()) is None


# "okay we don't need that", "ok but not like this", "ok so what does it look like"
_TAKES_BACK = pattern(
    r"\W*(?:but\b|(?:so )?(?:what|how|why|where|which)\b|(?:i|we|you|it|that|this) "
    r"(?:do(?:es)?n['’]?t|do not|can['’]?t|shouldn['’]?t|won['’]?t)\b)",
    re.IGNORECASE,
)


def declines(words: str) -> bool:
    """Whether a message begins with a no; after a question, that is its answer."""
    return _NO.match(words) is not None


def is_yes_or_no(words: str) -> bool:
    """Whether a message begins by agreeing, or with a no."""
    return begins_with_assent(words) or declines(words)


_NO = pattern(
    r"\W*(?:(?:no|nope|don'?t|actually|rather|instead)\b|stop(?:\W*$|[,.!]| (?:it|that|this|for|\w+ing)\b)|别|いや)",
    re.IGNORECASE,
)


_ASSENT = pattern(
    r"\W*(?:(?:(?:yes|yeah|yep|agreed?|ok(?:ay)?|sure|good|great|perfect|fine|cool|looks good|lgtm|continue|go on"
    r"|go ahead|let'?s go|please|(?:do|fix|add) (?:it|that|this|them|both|all|it all|all of (?:it|them|those))"
    r"|proceed|correct|right)\b|(?:同意|好[的了]?|可以了?|没问题|行吧?|对的?|继续|是的?|嗯|はい|お願いします)(?!\w))"
    r"[\s,.!\u3002\uff01\uff0c\u3001-]*)+",
    re.IGNORECASE,
)
