"""What the user wants: rules, the messages verbatim, and the words with which a tool call was refused or stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import dropwhile, groupby
from typing import TYPE_CHECKING

from compactor_cli.digest.checks import RUNNERS
from compactor_cli.digest.events import Event, EventKind, results_of
from compactor_cli.digest.language import FixedWords
from compactor_cli.digest.messages import (
    ALL_WORK,
    ASKS_FOR,
    LEADS,
    MAX_REPLY_CHARS,
    UserMessage,
    forbids,
    insists,
    is_pasted,
    is_remark,
    is_rule,
    lasting,
    without_data,
)
from compactor_cli.digest.noise import is_courtesy, is_noise
from compactor_cli.digest.replies import asks
from compactor_cli.digest.statements import (
    LABEL,
    Statement,
    StatementForm,
    TokenCache,
    chosen,
    clipped,
    records_of,
    statements_of,
    water_level,
)
from compactor_cli.digest.texts import COLONS, ELLIPSIS, opening, plain_line, sentences
from compactor_cli.digest.tools import FileAction
from compactor_cli.formats.client_signs import ATTACHMENTS, PROJECT_FILE
from compactor_cli.model.patterns import pattern
from compactor_cli.model.summary import Item

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis


_MIN_QUOTE_CHARS, _SAME_CHARS = 220, 12
# The characters at the start of a question or a turn that are enough to recognise it.
NAME_CHARS = 70
# The part of the section that rules may take, and the characters from which a message may be cut.
_RULES_RATIO, _LONG_CHARS = 0.2, 400
# Added to the rank of the first message.
_FIRST = 9.0
# The part of its room that the beginning, the headings and the requests of a long message may take.
_ASKED_RATIO = 0.8


def _only_asks(message: UserMessage, analysis: Analysis) -> bool:
    """Whether a message only asks what was answered in words, or only shows an output without a request."""
    outcome = analysis.outcomes.get(message.turn)
    is_replied = message.is_listed or (outcome is not None and outcome.text.startswith(analysis.words.replied))
    only_asks = is_replied and all(
        (asks(_AFTER_FACT.sub("", one)) and not _PROPOSES.match(one)) or _TO_EXPLAIN.match(one)
        for one in sentences(message.text)
    )
    return not (message.stopped or insists(message.text)) and (only_asks or is_pasted(message.text))


# What is stated before a question: `the gauge worked before, is it …`.
_AFTER_FACT = pattern(r"\A[^,.?]{4,100}, (?=(?:is|are|was|were|why|what|how|does|did|has)\b)", re.IGNORECASE)
# "Could we keep both?": what somebody would like, in a question.
_PROPOSES = pattern(rf"{LEADS}(?:can|could|should|shall|would|how about|what (?:if|about))\b(?! you\b)", re.IGNORECASE)


# A request that words alone can answer: `Explain the ebb`.
_TO_EXPLAIN = pattern(rf"{LEADS}(?:explain|describe|clarify|tell me|walk me through)\b", re.IGNORECASE)


_RULE_CHARS = range(12, 240)
# A rule about what the sentence before it names: `Never edit them by hand`.
_OF_BEFORE = pattern(r"(?:\S+ ){0,4}(?:them|it|they|these|those|this)\b(?! (?:is|file|repo|project)\b)", re.IGNORECASE)
# A comment in code, or in a diff, that the user pasted: `+   // The gauge must not stop`.
_COMMENT = pattern(r"[+-]?\s*(?:/[/*]|\*/?\s)")
# `add this to the handbook`, and the text from its first heading on
_GIVES_TEXT = pattern(
    r"\A(\W*(?:\w+ ){0,3}(?:add|put|insert|append|paste|copy|include|write)\b[^\n]*\n+)#.*", re.IGNORECASE | re.DOTALL
)
# A limit of the step that was asked for: `don't write any code yet`.
_FOR_NOW = pattern(r"\b(?:yet|for now|first|until|before)\b|先", re.IGNORECASE)
_LIST_MARK = pattern(r"^(?:[-*•+]|\d{1,2}[.)]) +")
# The beginning of a long message says what it is about; messages of one kind may all end with the same rules.
_OPENING_SENTENCES, _OPENING_RATIO = 12, 0.6
# Characters of the first sentence that stand where it does not fit: without them the rest would read as the whole.
_LEAD_CHARS = 60


def rules_of(analysis: Analysis) -> Iterator[Item]:
    """The rules in the project's files, as they were last read, and in the user's messages, newest first; each once.

    Rules that the kept records contain are left out.
    """
    kept = "\n".join(event.text for event in analysis.kept)
    results = results_of(analysis.events)
    files: dict[str, Event] = {}
    for operation in analysis.operations:
        named = PROJECT_FILE.search(operation.path)
        if named and operation.action is FileAction.READ and (result := results.get(operation.event)):
            files[named[1]] = result
    sources = [(f"{name}{analysis.words.colon}", unwrapped(event.text), event.record) for name, event in files.items()]
    spoken = (message for message in reversed(analysis.messages) if not is_pasted(message.text))
    # What a text says that is to be put into a file is no rule for the work.
    own = ((_GIVES_TEXT.sub(r"\1", message.text), message.record) for message in spoken)
    sources += [("", unwrapped(text), record) for text, record in own]
    kept += unwrapped(kept) if files else ""
    known = set[str]()
    for label, text, record in sources:
        pieces, plain = ["", "", *sentences(text)], text.replace("**", "")
        for earlier, before, sentence in zip(pieces, pieces[1:], pieces[2:], strict=False):
            is_whole = len(sentence) in _RULE_CHARS and not (sentence.endswith(COLONS) or _COMMENT.match(sentence))
            is_whole = is_whole and not (label == "" and _FOR_NOW.search(sentence))
            if not (is_whole and is_rule(sentence)) or sentence in kept or f"# {sentence}\n" in text:
                continue  # also a heading, which is no rule of its own
            rule = sentence
            for one in (before, earlier):  # it says what "them" are
                whole = f"{one} {rule}"
                rule = whole if _OF_BEFORE.match(rule) and whole.replace("**", "") in plain else rule
            rule = _LIST_MARK.sub("", rule)
            if rule not in known:
                known.add(rule)
                yield Item(text=f"{label}{rule}", records=records_of((record,)))


def unwrapped(text: str) -> str:
    """A document in Markdown with each paragraph and each entry of a list on one line."""
    lines: list[str] = []
    fenced = False
    for raw in text.split("\n"):
        line = raw.strip()
        is_own = fenced or _LIST_MARK.match(line) or line.startswith(("#", "|", ">", "```", "---"))
        if lines and line and not is_own and _WRAPS.match(lines[-1]):
            lines[-1] += f" {line}"
        else:
            lines.append(raw.rstrip())
        fenced ^= line.startswith("```")
    return "\n".join(lines)


# A line that may go on in the next one: not a heading, table row or fence, and not a line that introduces a list.
_WRAPS = pattern(r"(?![ \t]*(?:[#|>]|```|---)).*[^:\uff1a|]\Z")


def condensed(
    text: str, tokens: int, token_cache: TokenCache, more: Callable[[list[Statement], str, int], list[Statement]]
) -> str:
    """A message in full if it fits; else its beginning, headings, rules and requests, and what ``more`` chooses.

    All stand in their order, with an ellipsis for every gap. ``more`` is called with pieces that are not taken yet, the
    text of those that are, and the tokens left. Pasted data is left out first. A message of one or two sentences is cut
    to its beginning and its end.
    """
    if token_cache.text(text) > tokens:
        text = without_data(text).strip() or text
    cut = clipped(text, tokens, token_cache)
    if cut == text:
        return cut
    before_end, _, end = cut.rpartition(ELLIPSIS)
    if _NOT_JUST_BEFORE.search(text.removesuffix(end.strip())):
        cut = f"{before_end}{ELLIPSIS}"  # the end would say the opposite
    pieces, outline, checks = list[Statement](), list[Statement](), list[Statement]()
    for place, (piece, form, is_heading, is_of_checks) in enumerate(_with_checks(text)):
        before = pieces[-1] if pieces and pieces[-1] not in outline else None
        if before and before.place + before.span == place and _DOES_THIS.match(piece):
            pieces[-1] = before._replace(text=f"{before.text} {piece}", span=before.span + 1)
        elif is_heading or form is StatementForm.CODE or not (is_noise(piece) or is_courtesy(piece)):
            pieces.append(Statement(text=piece, event=0, place=place, form=form))
            if is_heading:
                outline.append(pieces[-1])
            elif is_of_checks and ("`" in piece or form is StatementForm.ITEM):
                checks.append(pieces[-1])
    spoken = [one for one in pieces if one.form in (StatementForm.SENTENCE, StatementForm.ITEM)]
    asked = checks + [one for binds in (is_rule, lasting, ASKS_FOR.search) for one in spoken if binds(one.text)]
    if len(spoken) < _MIN_PIECES:
        return _by_clauses(text, tokens, token_cache) or cut
    # The headings of a plan are its steps: all of them come before the text under any one.
    first = _fitting(outline, tokens // 2, token_cache)
    left = int(tokens * _ASKED_RATIO) - _cost(first, token_cache)
    # The last request gets its room, however much was pasted before it.
    last = [one for one in asked[-1:] if one not in first and 2 * _cost([one], token_cache) <= left]
    last = last if len(spoken) > _FEW_PIECES else []
    start = [one for one in spoken if one not in (*first, *last)][:_OPENING_SENTENCES]
    left -= _cost(last, token_cache)
    start = _opening(start, min(left, int(tokens * _OPENING_RATIO)), left, token_cache)
    left -= _cost(start, token_cache)
    lead = "" if start or spoken[0] in (*first, *last) else f"{opening(spoken[0].text, _LEAD_CHARS)} "
    left -= token_cache.text(lead)
    first += start + last
    first += more([one for one in asked if one not in first], " ".join(one.text for one in first), left)
    if asked and set(first).isdisjoint(asked):
        return _by_clauses(text, tokens, token_cache) or cut
    shown_text = " ".join(one.text for one in first)
    left = tokens - token_cache.text(f"{lead}{shown_text}") - 2 * len(first)
    rest = [one for one in pieces if one.form is not StatementForm.CODE and one not in first]
    code = _whole_blocks(pieces, left // 2, token_cache)
    rest = [*code, *more(rest, shown_text, left - _cost(code, token_cache))]
    taken = _with_heading_of_checks({*first, *rest}, pieces, outline)
    is_cut = taken and any(one.place > taken[-1].place for one in pieces)
    return f"{lead}{joined(taken)} {ELLIPSIS}" if is_cut else f"{lead}{joined(taken)}"


# A sentence that asks for, or forbids, what the one before it names: `Do this by running the check.`, `Never sell it.`
_DOES_THIS = pattern(
    r"(?:do|try|repeat) (?:this|that|so|it) (?:by|with|in|for|from|as)\b|(?:\S+ ){1,11}(?:it|them)[.!]?\Z",
    re.IGNORECASE,
)


def _with_heading_of_checks(
    taken: Collection[Statement], pieces: Sequence[Statement], outline: Collection[Statement]
) -> list[Statement]:
    """The pieces that are taken, in order, without those under a heading of checks that is not: they read as steps."""
    found: list[Statement] = []
    is_hidden = False
    for one in pieces:
        if one in outline:
            is_hidden = _HEADS_CHECKS.search(one.text) is not None and one not in taken
        if one in taken and not is_hidden:
            found.append(one)
    return found


# A heading of the checks with which the work ends: `## Verification`.
_HEADS_CHECKS = pattern(
    r"^\W*(?:verif\w+|acceptance\b|testing\b|test plan\b|definition of done|验证|驗證|测试|検証|動作確認|テスト)",
    re.IGNORECASE | re.MULTILINE,
)
# A negation in the sentence that a cut interrupts: `The gauge is not …`.
_NOT_JUST_BEFORE = pattern(r"(?:\b(?:not?|never)|n['’]t)\b[^.!?\n]*\Z", re.IGNORECASE)


def verifying_commands(text: str) -> Iterator[str]:
    """The commands that a request names under a heading that says how to verify what it asks for."""
    for piece, form, _, is_of_checks in _with_checks(text) if _HEADS_CHECKS.search(text) else ():
        named = [piece.partition(" #")[0].strip()] if form is StatementForm.CODE else _QUOTED_COMMAND.findall(piece)
        yield from (one for one in named if is_of_checks and one.split()[0] in RUNNERS and " " in one)


def verified_by_hand(text: str) -> Iterator[str]:
    """The list entries under a heading of checks that ask for a try by hand: `1. Manually open the harbour map`."""
    for piece, form, _, is_of_checks in _with_checks(text) if _HEADS_CHECKS.search(text) else ():
        if is_of_checks and form is StatementForm.ITEM and _BY_HAND.match(piece):
            yield _LIST_MARK.sub("", piece)


_BY_HAND = pattern(r"(?:\d{1,2}[.)] +)?manual(?:ly)?\b", re.IGNORECASE)
_QUOTED_COMMAND = pattern(r"`([a-z][^`\n]{4,90})`")


def _by_clauses(text: str, tokens: int, token_cache: TokenCache) -> str:
    """The beginning and end of a text of one or two sentences, in whole clauses; empty if it has few or none fit."""
    clauses = [part.strip() for part in _CLAUSE_END.split(text) if part.strip()]
    first, last = 0, len(clauses)
    shown = ""
    while first < last and len(clauses) >= _MIN_PIECES:
        is_end = 4 * len(" ".join(clauses[last:])) < len(" ".join(clauses[:first]))
        first, last = (first, last - 1) if is_end else (first + 1, last)
        # A clause that qualifies the one before it would qualify another after the gap.
        ending = [*dropwhile(_QUALIFIES.match, clauses[last:])]
        longer = f"{' '.join(clauses[:first])} {ELLIPSIS} {' '.join(ending)}".strip()
        if token_cache.text(longer) > tokens:
            break
        shown = longer
    return shown if len(shown) >= _MIN_CLAUSES_CHARS else ""


_CLAUSE_END = pattern(r"(?<=[,;:.!?])\s+|\n+|\s+(?=(?:and|but|or|so|then|because|which|while|if|when)\s)")
_QUALIFIES = pattern(r"(?:if|when|which|while|because|so|that|or|and|whether|where|who)\b", re.IGNORECASE)
_MIN_PIECES, _FEW_PIECES, _MIN_CLAUSES_CHARS = 3, 6, 24


def _whole_blocks(pieces: Sequence[Statement], tokens: int, token_cache: TokenCache) -> list[Statement]:
    """The blocks of code that fit as a whole: single lines of a block cannot be run."""
    found = list[Statement]()
    for form, block in groupby(pieces, key=lambda one: one.form):
        lines = [*block]
        if form is StatementForm.CODE and (cost := _cost(lines, token_cache)) <= tokens:
            found += lines
            tokens -= cost
    return found


def _cost(pieces: Iterable[Statement], token_cache: TokenCache) -> int:
    """The tokens of pieces, each with an ellipsis after it."""
    return sum(token_cache.text(f"{one.text} {ELLIPSIS} ") for one in pieces)


def _with_leads(text: str) -> Iterator[tuple[str, StatementForm, bool]]:
    """The title and the statements of a message, each lead before its first statement, and whether it is a heading.

    The title is what the message opens with: lines that end with a colon, then a `#` heading. Every lead stands once.
    """
    shown = set[str]()

    def leading(line: str) -> tuple[str, StatementForm, bool]:
        shown.add(line)
        is_heading = not line.endswith(COLONS)
        return f"{line}:" if is_heading else line, StatementForm.SENTENCE, is_heading

    lines = [(raw, plain_line(raw)) for raw in text.split("\n") if raw.strip()]
    title = set[str]()
    for raw, line in lines:
        if not (raw.startswith("#") or line.endswith(COLONS)) or LABEL.fullmatch(line):
            break
        title.update(sentences(line))
        yield leading(line)
        if raw.startswith("#"):
            break
    headings = {line for raw, line in lines if _HEADING.match(raw)}
    for piece, form, lead in statements_of(text):
        for line in lead.split("\n"):
            if line not in shown | title and (line.endswith(COLONS) or line in headings):
                yield leading(line)
            shown.add(line)
        if piece not in title:
            yield piece, form, False


_HEADING = pattern(r"#{1,6} +\S")


def _with_checks(text: str) -> Iterator[tuple[str, StatementForm, bool, bool]]:
    """The lines of `_with_leads`, each also with whether it is under a heading that says how to verify the work."""
    is_of_checks = False
    for piece, form, is_heading in _with_leads(text):
        is_of_checks = _HEADS_CHECKS.search(piece) is not None if is_heading else is_of_checks
        yield piece, form, is_heading, is_of_checks


def _opening(pieces: Sequence[Statement], tokens: int, most: int, token_cache: TokenCache) -> list[Statement]:
    """The first pieces, without a gap: the last may exceed ``tokens``, but all together do not exceed ``most``."""
    first: list[Statement] = []
    for one in pieces:
        cost = _cost([one], token_cache)
        if tokens <= 0 or cost > most:
            break
        first.append(one)
        tokens, most = tokens - cost, most - cost
    return first


def _fitting(pieces: Iterable[Statement], tokens: int, token_cache: TokenCache) -> list[Statement]:
    """The pieces that fit when taken in this order, equal ones once; one that does not fit is passed over."""
    found: dict[str, Statement] = {}
    for one in pieces:
        if one.text not in found and (cost := _cost([one], token_cache)) <= tokens:
            found[one.text] = one
            tokens -= cost
    return list(found.values())


def joined(pieces: Iterable[Statement]) -> str:
    """The text of the pieces in this order, with an ellipsis where others between two were left out."""
    text = ""
    before: Statement | None = None
    for one in pieces:
        if before and one.place > before.place + before.span:
            text += f" {ELLIPSIS} "
        elif before:
            is_prose = one.form is not before.form or one.form is StatementForm.SENTENCE
            text += " " if is_prose else " · "
        text, before = text + one.text, one
    return text


def wants_items(
    analysis: Analysis, budget_tokens: int, token_cache: TokenCache, *, shown: Iterable[Item] = ()
) -> tuple[Item, ...]:
    """Rules, then the user's messages in order and verbatim, the longest cut to the same size; see `_affordable`.

    Left out are messages that the items ``shown`` quote, in full or under their record, and replies of a few words,
    which other sections show with what they reply to.
    """
    quoted = tuple(shown)
    messages = _unquoted(analysis, quoted)
    # A rule in a message that is quoted in full needs no line of its own.
    whole = [m.text for m in _affordable(messages, budget_tokens, analysis, token_cache) if len(m.text) < _LONG_CHARS]
    quoted_text = "\n".join((*(item.text for item in quoted), *whole))
    rules = [item for item in rules_of(analysis) if item.text not in quoted_text]
    # Prohibitions come first: what they forbid cannot be undone once it is done.
    ranked = sorted(rules, key=lambda item: not forbids(item.text))
    ruled = chosen(ranked, int(budget_tokens * _RULES_RATIO), token_cache)
    budget_tokens -= sum(map(token_cache.item, ruled))
    quotes = tuple(_quotes(messages, budget_tokens, analysis, token_cache))
    return (*(item for item in ruled if not any(item.text in one.text for one in quotes)), *quotes)


def with_question(message: UserMessage, answer: str, words: FixedWords) -> str:
    """A short reply in quotation marks, after the beginning of the question that it answers."""
    return f"{opening(message.replies_to, NAME_CHARS)} → {words.quoted(answer)}"


def _quotes(
    messages: Sequence[UserMessage], budget_tokens: int, analysis: Analysis, token_cache: TokenCache
) -> Iterator[Item]:
    """An item for each message that there is room for, in order, the longest cut to the same size."""
    spoken = [m for m in messages if (not m.is_short or lasting(m.text)) and not _only_asks(m, analysis)]
    # A plan that was turned down without a word is stated as refused where it is settled.
    spoken = [m for m in spoken if m.text or m.stopped not in ATTACHMENTS.plan_tools]
    kept = _affordable(spoken, budget_tokens, analysis, token_cache)
    room = budget_tokens - sum(token_cache.item(_user_item(message, ELLIPSIS, analysis)) for message in kept)
    costs = {message: token_cache.text(message.text[: budget_tokens * 12 + 200]) for message in kept}
    # Messages that apply to all work to come are cut last.
    whole = {message: cost for message, cost in costs.items() if lasting(message.text) == ALL_WORK}
    if 2 * sum(whole.values()) > room:
        whole = {}
    rest = (cost for message, cost in costs.items() if message not in whole)
    level = water_level(rest, room - sum(whole.values()))
    quoted: dict[UserMessage, str] = {}
    for message, cost in costs.items():
        text = message.text
        if cost > level and message not in whole:
            text = condensed(text, level, token_cache, lambda pieces, _, left: _fitting(pieces, left, token_cache))
        quoted[message] = text
    for _, row in groupby(quoted.items(), lambda pair: pair[0].stopped or pair[0]):
        yield _joined_stops([*row], analysis)


def _joined_stops(row: Sequence[tuple[UserMessage, str]], analysis: Analysis) -> Item:
    """The item of a message; or one item for those in a row with which the user stopped the same call."""
    (message, text), words = row[-1], analysis.words
    if len(row) == 1:
        return _user_item(message, text, analysis)
    quoted = " · ".join(words.quoted(text) for _, text in row if text)
    later = f" ({since})" if (since := _resumed(message, words)) else ""
    stopped = f"{words.stopped} ×{len(row)}{words.colon}`{message.stopped}`"
    records = (*(one.record for one, _ in row), message.resumed)
    return Item(text=f"{stopped} → {quoted}{later}" if quoted else f"{stopped}{later}", records=records_of(records))


def _unquoted(analysis: Analysis, items: Sequence[Item]) -> list[UserMessage]:
    """The messages that none of the items quotes, in full or under their record.

    Where there are items, those of Now are among them and quote the newest request, maybe not from its start.
    """
    own = {
        (record, item.text.partition(analysis.words.colon)[2][:_SAME_CHARS])
        for item in items
        for record in item.records
    }
    texts = "\n".join(item.text for item in items)
    newest = newest_request(analysis) if items else None

    def is_quoted(m: UserMessage) -> bool:
        is_own = m is newest or (m.record, m.text[:_SAME_CHARS]) in own
        if is_own and len(m.text) > MAX_REPLY_CHARS:
            return True
        if m.stopped:
            return False
        # A long answer is quoted after its question as far as it settles that.
        text = opening(m.text, MAX_REPLY_CHARS).rstrip(ELLIPSIS) if m.is_answer else m.text
        return is_own or is_in_history(m, analysis) or text in texts

    return [message for message in analysis.messages if not is_quoted(message)]


def is_in_history(message: UserMessage, analysis: Analysis) -> bool:
    """Whether the history quotes a message where it was written: in a dialogue, except refusals of calls."""
    return analysis.is_dialogue and message.record >= 0 and not message.is_refusal


def _user_item(message: UserMessage, text: str, analysis: Analysis) -> Item:
    words = analysis.words
    if message.stopped:
        quoted = f" → {words.quoted(text)}" if text else ""
        later = f" ({since})" if (since := _resumed(message, words)) else ""
        text = f"{words.stopped}{words.colon}`{message.stopped}`{quoted}{later}"
        return Item(text=text, records=records_of((message.record, message.resumed)))
    ended, records = outcome_of(message, analysis)
    named = f" ({message.points_at})" if message.points_at else ""
    if message.is_short and message.replies_to and _POINTS_BACK.match(text):
        text = with_question(message, text, words)
    elif message.is_listed:
        text = f"{words.asked_before}{words.colon}{text}"
    text = f"{text}{named}{stop_before(message, words)}{ended}"
    return Item(text=text, records=records_of((message.record, *records)))


_MAX_LISTED, _MIN_LISTED_WORDS = 3, 4
# The start of a short reply that is unclear without what it replies to: `Not that one`.
_POINTS_BACK = pattern(r"\W*(?:no|nope|not|that|this|it|those|these|wait|instead)\b", re.IGNORECASE)


def stop_before(message: UserMessage, words: FixedWords) -> str:
    """In brackets, the calls that the user stopped with a message or silently just before it; or an empty string."""
    later = f"{words.comma}{since}" if (since := _resumed(message, words)) else ""
    label = words.stopped if message.stopped else words.stopped_before
    return f" ({label}{words.colon}{calls}{later})" if (calls := _stopped_calls(message)) else ""


def stop_after(turn: int, analysis: Analysis) -> str:
    """In brackets, the calls whose stop ended the work of a turn, unless made later; or an empty string."""
    words = analysis.words
    later = next((one for one in analysis.messages if one.turn > turn), None)
    calls = _stopped_calls(later) if later and later.resumed < 0 else ""
    return f" ({words.stopped}{words.colon}{calls})" if calls else ""


def _stopped_calls(message: UserMessage) -> str:
    return " · ".join(f"`{one}`" for one in (message.stopped, *(call for _, call in message.after_stop)) if one)


def _resumed(message: UserMessage, words: FixedWords) -> str:
    """The note that a stopped call was made later, or a later plan approved; or an empty string."""
    if message.resumed < 0:
        return ""
    return words.later_approved if message.is_plan else words.resumed


def outcome_of(message: UserMessage, analysis: Analysis) -> tuple[str, tuple[int, ...]]:
    """What came of a request, with an arrow before it, and the records that show it; both empty if nothing is known."""
    outcome = None if message.stopped or message.record < 0 else analysis.outcomes.get(message.turn)
    return (f" → {outcome.text}", outcome.records) if outcome else ("", ())


def _affordable(
    messages: Sequence[UserMessage], budget_tokens: int, analysis: Analysis, token_cache: TokenCache
) -> list[UserMessage]:
    """The messages that there is room for at a useful size, in order.

    The first one is taken first, then those that are newer and reach further (see `lasting`).
    """
    kept = min((event.record for event in analysis.kept if event.kind is EventKind.USER), default=1 << 40)
    # Of the messages that another client's summary lists, most are done and questions are answered; what they ask for
    # good still holds.
    listed = [one for one in messages if one.is_listed and not lasting(one.text)]
    wordless = {one for one in listed if one.text.isascii() and len(one.text.split()) < _MIN_LISTED_WORDS}
    served = {*listed[:-_MAX_LISTED], *wordless, *(one for one in listed[:-1] if _only_asks(one, analysis))}
    messages = [one for one in messages if one not in served]
    first = next((one for one in messages[:1] if one.record < kept), None)

    def rank(message: UserMessage) -> float:
        newness = message.record / len(analysis.events)
        reach = lasting(message.text) / 3 - _only_asks(message, analysis)
        return newness + reach + _FIRST * (message is first)

    found: set[UserMessage] = set()
    for message in sorted(messages, key=rank, reverse=True):
        least = token_cache.item(_user_item(message, message.text[:_MIN_QUOTE_CHARS], analysis))
        if least <= budget_tokens:
            found.add(message)
            budget_tokens -= least
    return [message for message in messages if message in found]


def newest_request(analysis: Analysis) -> UserMessage | None:
    """The newest message of the user that has words; a remark or thanks only if there is no other; or None."""
    spoken = [message for message in analysis.messages if message.text]
    asked = [message for message in spoken if not is_remark(message.text)] or spoken
    return asked[-1] if asked else None
