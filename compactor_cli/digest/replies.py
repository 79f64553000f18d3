"""Replies: what a message asks, the options it lists, which of them a reply chooses, and which sentence answers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, dropwhile, islice, zip_longest

from compactor_cli.digest.language import shares_term
from compactor_cli.digest.noise import is_narration, only_announces
from compactor_cli.digest.statements import QUESTION_MARKS
from compactor_cli.digest.texts import COLONS, FULL_STOPS, one_line, opening, plain_line, sentences, tail
from compactor_cli.model.patterns import pattern

_ENDING_CHARS = 1_500
# In a longer message a number is not taken for a reference to an entry.
_MAX_POINTING_CHARS = 400
_ENTRY_WORDS = (
    "option|issue|finding|bug|item|comment|point|number|problem|approach|suggestion|recommendation|fix|task|step"
    "|scenario|question"
)
# `- **Option 2**: Move the gauge`, `b) Replace the clock`, `| 3 | Close the harbour |`
_OPTION = pattern(
    rf"^\s*(?:[-*•]\s+|\|\s*)?(?:#{{1,4}}\s+)?(?:\*\*)?(?:(?P<word>{_ENTRY_WORDS})\s+)?#?(?P<key>[A-Ha-h]|\d{{1,2}})"
    r"(?:\*\*)?(?:\)|\.|:|\s[-–—]|\s*\|(?=.*[^\W\d_]{3}))\**\s+(?P<text>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)


def options_of(text: str) -> Mapping[str, str]:
    """The last list of options in a message, by letter or number; empty if it has fewer than two."""
    found = next(reversed(_option_lists(text)), ("", {}))[1]
    return found if len(found) > 1 else {}


def question_of_options(text: str, question: str) -> str:
    """What the last list of options in a message is for: the line that introduces it if it has four words, else
    ``question``.
    """
    above = _heads_options(text)
    if len(above.split()) >= _MIN_HEADING_WORDS:
        return above
    # A question of one word, "Thoughts?", needs that line.
    return f"{above} {question}".strip() if len(question.split()) == 1 else question


_MIN_HEADING_WORDS = 4


def _heads_options(text: str) -> str:
    """The line above the last list of options, if it ends with a colon or a question mark, else an empty string."""
    starts = [found.start() for found in _OPTION.finditer(text) if found["key"].lower() in ("1", "a")]
    above = plain_line(text[: starts[-1]].rstrip().rpartition("\n")[2]) if starts else ""
    return above if above.endswith((*COLONS, *QUESTION_MARKS)) else ""


# How an agent asks for a yes or a choice without a question mark: `Let me know which gauge to use.`
_ASKS_FOR = pattern(
    r"(?:if so, |then )?(?:please|kindly) (?:confirm|choose|select|pick|specify|provide|reply|tell me|let me know)\b"
    r"|let me know (?:if you(?:'d| would) like me to|whether|which|how you)\b|(?:请确认|请选择|请告诉我|请提供)",
    re.IGNORECASE,
)

# The second half of a question: `Or should I wait?` Without the first half, a yes to it would mean the opposite.
_OTHER_HALF = pattern(r"\W*(?:or|alternatively|otherwise)\b|\W*(?:或者|还是|または|それとも)", re.IGNORECASE)


def last_question(text: str) -> str:
    """The question or request for an answer at, or shortly before, the end of a text; empty if there is none.

    A question of two halves ("Should I …? Or …?") is returned whole, the last of several numbered questions with those
    before it, and a question above its options without the options.
    """
    above = before_options(text)
    line = above.rstrip("*_ ").rpartition("\n")[2]
    # A question, perhaps with a heading after it: "Which is it? Some possibilities:"
    if above is not text and (_asks(line) or (line.endswith(COLONS) and any(map(_asks, sentences(line)[-2:-1])))):
        text = above
    ending = (
        text if len(text) <= _ENDING_CHARS else text[-_ENDING_CHARS:].partition("\n")[2] or tail(text, _ENDING_CHARS)
    )
    # If the ending begins inside a code block, the fence keeps that code from being read as sentences.
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
    """The questions numbered before a numbered question; empty if one of them is missing or asks nothing."""
    number = int(question[0]) if _HAS_NUMBER.match(question) else 1
    asked = [next((one for one in reversed(stated) if one.startswith(f"{n}. ")), "") for n in range(1, number)]
    return asked if all(map(_asks, asked)) else []


_HAS_NUMBER = re.compile(r"[2-4]\. ")


# `Would you like me to move it?`, which may stand above a long list of what that would bring.
_OFFERS = pattern(r"\W*(?:(?:do you )?want|would you like) me to\b[^?]*[?？]\W*\Z", re.IGNORECASE)
_MAX_BELOW_OFFER = 40


def last_proposal(text: str) -> str:
    """The last sentence of a text that proposes something, or an empty string."""
    return next((one for one in reversed(sentences(text)) if _PROPOSES.search(one)), "")


_PROPOSES = pattern(
    r"\b(?:I(?:'d| would)? (?:suggest|recommend|propose)|my (?:suggestion|recommendation|proposal))\b|建议|提案",
    re.IGNORECASE,
)


def _asks(sentence: str) -> bool:
    bare = sentence.strip("*_`)\"'- ")
    is_heading = bare.endswith(COLONS) and _HEADS_OPTIONS.match(bare)
    if not (bare.endswith(QUESTION_MARKS) or is_heading or _ASKS_FOR.match(bare)):
        return False
    # A quoted or emphasised question is somebody else's, and one that the agent looks up itself asks nobody.
    is_of_others = (sentence.rstrip().endswith('"') and ' "' in sentence) or _EMPHASISED.search(sentence)
    return not (is_of_others or _LOOKS_UP.match(sentence))


# `It answers the one question left: *why is it not run?*`
_EMPHASISED = pattern(r"\w.*\s([*_]{1,2})[^*_]+[?？]\1\W*\Z")
# `Now let me check: is the gauge open?`
_LOOKS_UP = pattern(
    r"\W*(?:(?:now|but|so|ok(?:ay)?|wait|hm+)\b[\s,-]*)*"
    r"(?:let me|I(?:'ll| will| need to| should| want to)) (?:also |now |first )?(?:check|see|verify|look|find|think)\b",
    re.IGNORECASE,
)
# A question that ends in a colon, with its options below: `Do you want me to:`
_HEADS_OPTIONS = pattern(
    r"\W*(?:do you (?:want|prefer)|would you (?:like|prefer|rather)|(?:should|shall) (?:I|we)|(?:could|can) you)\b",
    re.I,
)


# `Please send the tide table.`, `Once you have it, …`, `To go on I'll need the key.`
_ASKS_THE_USER = pattern(
    r"^(?:(?:also|and|so|in the meantime)[, ]+)?(?:please|could you|can you|would you|if so|once (?:you|I have)"
    r"|let me know)\b|.{0,120}\b(?:I|we)(?:['’]ll| will)? (?:first |also )?need\b|.{0,60}\byou still need to\b",
    re.IGNORECASE,
)


def asks_the_user(text: str) -> bool:
    """Whether a sentence asks the user for an answer or for something only they can give."""
    return text.endswith(QUESTION_MARKS) or _ASKS_THE_USER.match(text) is not None


def offered(text: str, *, is_service: bool = False) -> Collection[str]:
    """The options of a message that ends by asking the user to choose among them, or an empty collection.

    The list above "Want me to fix these?" holds findings, which are true whatever the answer is. With ``is_service``,
    any list in a message that ends with a question is an offer.
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


# Between the last entry of a list and the question: the rest of that entry, a remark on all of them, the question.
_MAX_PARAGRAPHS_BELOW = 3
# `Which gauge should I use?`, `Do you prefer the first?`
_CHOOSES_AMONG = pattern(
    r"\b(?:which|what|or|options?|prefer\w*|choose|choice|pick|select|either|rather|ways?|approach\w*|how|thoughts?)\b"
    r"|哪|还是|或者|それとも|どの",
    re.IGNORECASE,
)


def last_words(text: str) -> str:
    """What a short reply to a text answers: its last question, else its last sentence; empty for an empty text."""
    return last_question(text) or next(iter(sentences(text[-_ENDING_CHARS:])[-1:]), "")


def is_option(piece: str, options: Iterable[str]) -> bool:
    """Whether a statement is one of these options, a sentence of one, or repeats the first 40 characters of one."""
    bare = _KEY.sub("", piece, count=1)
    return any(bare in option or option[:_SAME_CHARS] in bare for option in options)


_KEY, _SAME_CHARS = pattern(r"\A(?:\d{1,3}[.)]|[A-Ha-h]\))\s+"), 40


def before_options(text: str) -> str:
    """A text without the options or bullets at its end, if these are at least two lines; else unchanged."""
    lines = text.rstrip().split("\n")
    options = 0
    while lines and (not lines[-1].strip() or _OPTION.match(lines[-1]) or _BULLET.match(lines[-1])):
        options += bool(lines.pop().strip())
    return "\n".join(lines) if options > 1 else text


_BULLET = pattern(r"[-*•] +\S")


# Cached because each of the user's next messages asks again.
@lru_cache(maxsize=64)
def _option_lists(text: str) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """The lists (and tables) of a message with lettered or numbered entries, each with the text before its first key.

    That text, in lower case, shows what the list is of (``issue``). The entries are by their key, in lower case too.
    """
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


# An option that leaves the answer to the user's own words: `3. Something else`. It is left out.
_IS_ANYTHING = pattern(r"\W*(?:(?:some|any)thing (?:else|different)|other\b|none of)", re.IGNORECASE)


def _fields(below: str) -> str:
    """The indented bullets below an entry, each after `` · ``; empty if it has none."""
    lines = [found[1].replace("**", "").strip() for found in _FIELD.finditer(below)]
    return "".join(f" · {line}" for line in lines if line)


_FIELD = pattern(r"^\s+[-*•]\s+(\S.*)$", re.MULTILINE)
# One or more keys of entries: `A`, `1, 2 and 4`, `B & C`.
_KEYS = r"(?:[A-H]|\d{1,2})\b(?:(?:\s*,\s*(?:and )?|\s*(?:and|&|\+|or)\s*)#?(?:[A-H]|\d{1,2})\b)*"
# How a message points at entries of a list: by kind and key (`option 2`), by place (`the second one`), or by the key
# alone near its beginning (`let's do 3`, `2 and 4 please`).
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
    """The entries that a message points at in the newest list before it, in one line; empty if it points at none.

    ``spoken`` holds the assistant's messages before it, oldest first. A word before the key (``issue 1``) must match
    what the list is of; a key without a word points into the message just before. A message that begins with a
    numbered list is the user's own list, and an entry of a list of reasons is never meant.
    """
    found = _POINTS.search(words) if spoken and len(words) <= _MAX_POINTING_CHARS else None
    if _OWN_LIST.match(words):
        return ""
    if found is None:
        return _counted(words, spoken[-1]) if spoken else ""
    keys = _keys(found)
    near = spoken if found["word"] else spoken[-1:]
    word = (found["word"] or "").lower()

    def newest_first(text: str) -> Iterator[tuple[str, Mapping[str, str]]]:
        """The lists of a message, newest first, but those whose entries are labelled ``word`` (`Option 2`) lead."""
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


def _counted(words: str, text: str) -> str:
    """The entries of the newest list of a message that has as many as a brief reply says (`those two`, `both`)."""
    meant = _ALL_OF.search(words) if len(words) <= _MAX_COUNTING_CHARS else None
    number = _NUMBERS.index((meant[1] or "two").lower()) + 2 if meant else 0
    lists = (_BULLET.findall(block) for block in reversed(_BLOCK.split(text)))
    entries = next((found for found in lists if len(found) == number), []) if number else []
    return " · ".join(opening(plain_line(one), _MAX_ENTRY_CHARS) for one in entries)


_MAX_COUNTING_CHARS, _NUMBERS = 120, ("two", "three", "four")
_ALL_OF = pattern(rf"\b(?:(?:all|both|the|these|those) ({'|'.join(_NUMBERS)})|both)\b(?! \w+s\b)", re.IGNORECASE)
_BLOCK, _BULLET = pattern(r"\n(?=[^\s*•-])"), pattern(r"^[-*•]\s+(\S.*)$", re.MULTILINE)


def parts_pointed_at(words: str, text: str) -> str:
    """The parts of a text that belong to the entries a message points at by key; empty if one has no such entry."""
    found = _POINTS.search(words)
    entries = {one["key"].lower(): one for one in _OPTION.finditer(text)}
    keys = _keys(found) if found else []
    if not keys or not all(key in entries for key in keys):
        return ""
    starts = sorted(one.start() for one in entries.values())
    stops = dict(zip(starts, (*starts[1:], None), strict=True))
    parts = (text[entries[key].start() : stops[entries[key].start()]] for key in keys)
    return "\n".join(_RULE_LINE.split(part, maxsplit=1)[0].strip() for part in parts)


# A horizontal rule ends the part of the last entry.
_RULE_LINE = pattern(r"^\s*(?:-{3,}|\*{3,}|_{3,})\s*$", re.MULTILINE)


def _keys(found: re.Match[str]) -> list[str]:
    return re.findall(r"\b(?:[a-h]|\d+)\b", (found["keys"] or found["bare"] or "").lower())


_OWN_LIST = pattern(r"\W*\d+[.)] +\S")
_HAS_LIST = pattern(r"[.:!?] 1[.)] \S.* 2[.)] \S")
_OF_REASONS = pattern(r"\b(?:because|reasons?|why|benefits?|pros|cons)\b\W*\Z")


def chosen_options(answer: str, options: Mapping[str, str]) -> list[str]:
    """The keys of the options that an answer chooses, by key or by how their text begins.

    Empty if it chooses none, names a key that is not an option, or replies to each option in turn.
    """
    lowered = answer.lower()
    for labels in ((lowered,), tuple(lowered.split(", "))):
        named = [key for key, text in options.items() if text.lower().startswith(labels)]
        if min(map(len, labels)) > 2 and len(named) == len(labels):
            return named
    if _TO_EACH.match(answer):
        return []
    # A user who asks back about one option may choose in another sentence, but not by the number of an entry of a list
    # of their own.
    pieces = (one for one in sentences(answer) if not one.endswith(QUESTION_MARKS))
    has_list = _HAS_LIST.search(answer)
    for words in (answer, *(one for one in pieces if not (has_list and _OWN_LIST.match(one)))):
        found = _POINTS.search(words)
        if found and _ASKS_OF_ONE.match(words, found.end()):
            continue
        if found and _CHOOSES.fullmatch(words, 0, found.start(found.lastgroup or 0)):
            keys = _keys(found)
            return keys if all(key in options for key in keys) else []
    return []


# After an option: it is asked about, not chosen (`does option B work for both gauges?`, `would B be faster?`).
_ASKS_OF_ONE = pattern(
    r"[^.!?\n]*\b(?:might|may|could|would|will|does|do|is|are|be|works?)\b[^.!?\n]*[?\uff1f]", re.IGNORECASE
)


# Replies to each entry: `1. the first, 2. the other one`, `1 - yes, 2 - no`.
_NUMBERED = r"\d{1,2}(?:[.)]| ?[-\u2013\u2014:])"
_TO_EACH = pattern(rf"\W*{_NUMBERED} .*\s{_NUMBERED} ")
# The words before the key in an answer that chooses: `yes, let's go with option #`.
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
    rf"\W*(?:(?:and|but|so|also|ok(?:ay)?|well|hm+)\b\W*)*(?:(?:{QUESTION_WORDS})"
    r"(?:'s\b| (?:\w+ )?(?:is|are|do|does|did|was|were|can|could|should|would|about|if)(?:n['’]t)?\b)"
    r"|(?:do|have) (?:you|we|they|these|those|I)\b"
    r"|(?:is|are|was|were|does|did|has) (?:it|this|that|there|the|you|we|they)\b)",
    re.IGNORECASE,
)


def is_assent(words: str) -> bool:
    """Whether a message of the user does nothing but agree."""
    return _ASSENT.fullmatch(one_line(words)) is not None


def begins_with_assent(words: str) -> bool:
    """Whether a message begins by agreeing and does not take that back with its next words."""
    agrees = _ASSENT.match(words)
    return agrees is not None and _TAKES_BACK.match(words, agrees.end()) is None


# What follows the assent in `okay we don't need that`, `ok but not like this`, `ok so what does it look like`.
_TAKES_BACK = pattern(
    r"\W*(?:but\b|(?:so )?(?:what|how|why|where|which)\b|(?:i|we|you|it|that|this) "
    r"(?:do(?:es)?n['’]?t|do not|can['’]?t|shouldn['’]?t|won['’]?t)\b)",
    re.IGNORECASE,
)


def declines(words: str) -> bool:
    """Whether a message begins by saying no, or by asking for something else."""
    return _NO.match(words) is not None


def is_yes_or_no(words: str) -> bool:
    """Whether a message begins by agreeing or by saying no."""
    return begins_with_assent(words) or declines(words)


_NO = pattern(
    r"\W*(?:(?:no|nope|don'?t|actually|rather|instead)\b|stop(?:\W*$|[,.!]| (?:it|that|this|for|\w+ing)\b)|别|いや)",
    re.IGNORECASE,
)


_ASSENT = pattern(
    r"\W*(?:(?:(?:yes|yeah|yep|agreed?|ok(?:ay)?|sure|good|great|perfect|fine|cool|looks good|lgtm|continue|go on"
    r"|go ahead|let'?s go|please(?=\W*(?:(?:do|fix|add|go|proceed|continue)\b|\Z))"
    r"|(?:do|fix|add) (?:it|that|this|them|both|all|it all|all of (?:it|them|those))"
    r"|proceed|correct|right)\b|(?:同意|好[的了]?|可以了?|没问题|行吧?|对的?|继续|是的?|嗯|はい|お願いします)(?!\w))"
    r"[\s,.!\u3002\uff01\uff0c\u3001-]*)+",
    re.IGNORECASE,
)


def answer_in(reply: str, asked: str) -> str:
    """The sentence of a reply that answers what was asked; empty if none is known to.

    A no counts as the answer to anything, a yes as the answer to a question. Any other question is answered by the
    first sentence that states something, before any list or heading (a part of these would not answer it): one that
    shares a word with the question if there is any.
    """
    first = [*islice(dropwhile(_ACKNOWLEDGES.match, sentences(reply)), 2), "", ""]
    is_bare = len(first[0].split()) < _MIN_ANSWER_WORDS and not first[1].endswith(COLONS)
    answer = f"{first[0]} {first[1]}".strip() if is_bare else first[0]
    is_yes = asks(asked) and _IS_YES.match(answer)
    if is_yes or IS_NO.match(answer):
        return answer
    prose = _LISTS.split(reply, maxsplit=1)[0]
    stated = [*filter(_states, sentences(prose)[:_MAX_LEADING])] if asks(asked) else []
    on_it = (one for one in stated if shares_term(asked, one))
    return next(on_it, next(iter(stated), ""))


def answers_at_once(asked: str, text: str, *, is_last: bool) -> bool:
    """Whether the first message of a turn begins with a sentence that states something, not only that it will look.

    Unless it is the last one, a brief sentence only speaks of the work (`Down to ten gauges.`), and so does one that
    shares no word with the question and is no yes or no. A yes or no alone is an answer.
    """
    first = next(iter(sentences(text)), "")
    is_yes_or_no = (IS_NO.match(first) or _IS_YES.match(first)) is not None
    if _IS_WORD.fullmatch(first) and is_yes_or_no:
        return True
    if (not is_last and len(first) < _MIN_AT_ONCE_CHARS) or _LET_ME.search(first):
        return False
    is_on_it = is_last or is_yes_or_no or shares_term(asked, first)
    return _states(first) and is_on_it and not (is_narration(first) or only_announces(first))


def _states(sentence: str) -> bool:
    """Whether a sentence at the start of a reply is whole and more than an acknowledgement."""
    is_whole = len(sentence.split()) >= _MIN_ANSWER_WORDS and sentence.endswith(_STOPS)
    return is_whole and not (_ACKNOWLEDGES.match(sentence) or _BEGINS.match(sentence))


_MIN_AT_ONCE_CHARS, _MIN_ANSWER_WORDS = 40, 5
_IS_WORD = pattern(r"\W*\w+\W*")
# `Let me read the gauge.`, `I'm comparing the tides now, so that …`
_LET_ME = pattern(
    r"\blet me (?!know\b)"
    r"|^I['’]?(?:ll|m| am| will) (?:now |first )?(?:check|compar|inspect|look|pull|read|review|trac|verify)",
    re.IGNORECASE,
)
# The first line of a list, heading, quotation, table or block of code.
_LISTS = pattern(r"^\s*(?:[#|>*•+-]|\d{1,2}[.)]\s|```)", re.MULTILINE)
_STOPS = (*FULL_STOPS, ".", "!", ".)", '."', ".”")
_MAX_LEADING = 4
# How a sentence begins that only leads up to the answer: `Looking at the gauges, …`, `Here are the tides.`
_BEGINS = pattern(
    r"\W*(?:ah|oh|ok(?:ay)?|perfect|great|good|excellent|now|sorry|I (?:now )?(?:have|see|understand|found)|I've"
    r"|you(?:'re| are)|that(?:'s| is) (?:a )?(?:right|good|great|fair|correct)|here(?:'s| is| are)|based on"
    r"|look(?:ing|ed) (?:at|into|through)|took a look|I (?:looked|read|checked|reviewed|went)|done|summary)\b",
    re.IGNORECASE,
)
_IS_YES = pattern(
    r"\W*(?:yes\b|yep\b|yeah\b|correct\b|exactly\b|right[.,!]|(?:that(?:'s| is)|you(?:'re| are)) "
    r"(?:\w+ )?(?:right|correct|true)\b|是的|对[，。]|はい)",
    re.IGNORECASE,
)
# A sentence that praises a question or promises an answer, and so does not answer: `Good question!`, `Let me check.`
_ACKNOWLEDGES = pattern(
    r"\W*(?:(?:good|great|excellent|fair) (?:question|point|catch|idea)\b|you(?:'re| are) right to\b|let me\b"
    r"|I(?:'ll| will)\b|this is an? (?:\w+ )?question\b)",
    re.IGNORECASE,
)
IS_NO = pattern(
    # `No LESSONS.md entry on this` answers nothing.
    r"\W*(?:no\b(?! \w+\.\w)|not yet|I (?:can'?t|cannot|am unable)|unfortunately|sorry)",
    re.IGNORECASE,
)
