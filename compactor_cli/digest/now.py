"""Now: the newest request, what came of it, where the work stands, and whom it waits for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from compactor_cli.digest.analysis import Analysis
from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.commands import acting_line
from compactor_cli.digest.edits import editor_step
from compactor_cli.digest.events import Event, EventKind, results_of
from compactor_cli.digest.files import is_undone
from compactor_cli.digest.gist import chosen_pieces, gist_of
from compactor_cli.digest.language import FixedWords
from compactor_cli.digest.messages import UserMessage, asked_label, is_remark, without_preface
from compactor_cli.digest.names import call_words
from compactor_cli.digest.noise import is_courtesy, is_narration, is_passing
from compactor_cli.digest.open import announcement
from compactor_cli.digest.replies import begins_with_assent, is_assent, last_proposal, last_question, parts_pointed_at
from compactor_cli.digest.runs import CommandOutcome
from compactor_cli.digest.statements import QUESTION_MARKS, TokenCache, chosen, records_of, statements_of
from compactor_cli.digest.texts import ELLIPSIS, one_line, opening, sentences, tail, without_end
from compactor_cli.digest.tools import REPORTING_TOOLS, ToolKind, argument, is_lookup, is_own, parameters, short_name
from compactor_cli.digest.wants import condensed, newest_request, outcome_of, stop_before
from compactor_cli.group.todos import State
from compactor_cli.model.patterns import pattern
from compactor_cli.model.summary import Item

_SPEAKERS = (EventKind.USER, EventKind.ASSISTANT)
_MAX_TASK_TOKENS = 900
_MAX_REPLIED_CHARS = 240
_MAX_QUESTIONS, _MAX_STANDING, _MIN_FRAMING_WORDS = 4, 3, 3
_MAX_QUESTION_CHARS = 400
_MAX_CALL_CHARS, _MAX_FOUND_CHARS = 160, 60  # of a call; of what a search found, to be shown with it
# The request's share of the section; more in a dialogue, where the history shows the last message unless it asks.
_REQUEST_RATIO, _REQUEST_RATIO_OF_CHAT = 0.55, 0.85
_MAX_THOUGHT_CHARS, _MIN_EXPLAINING_CHARS = 240, 160
_MAX_STEPS = 4
# The characters that make the newest message tell the state, an earlier one, and one after which something was done.
_MIN_TELLING_CHARS, _MIN_EARLIER_CHARS, _MIN_STATE_CHARS = 60, 160, 30
_MAX_OPTION_CHARS = 110
# With less room for it, a request is quoted without what came of it.
_MIN_OUTCOME_TOKENS = 80


def now_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """The newest request (with earlier ones if it leans on them), the last message, and the steps since."""
    budget_tokens = min(budget_tokens, _MAX_TASK_TOKENS)
    asked_tokens = request_tokens(budget_tokens, analysis)
    requests = list(_requests(analysis, asked_tokens, token_cache))
    left = budget_tokens - sum(map(token_cache.item, requests))
    standing = list(_status_items(analysis, left, token_cache))
    # What the state leaves of the budget goes to the requests.
    spare = budget_tokens - sum(map(token_cache.item, standing))
    if spare > asked_tokens and any(ELLIPSIS in item.text for item in requests):
        requests = list(_requests(analysis, spare, token_cache))
    ranked = (*requests[:1], *standing[:1], *requests[1:], *standing[1:])
    taken = set(chosen(ranked, budget_tokens, token_cache))
    return tuple(item for item in (*requests, *standing) if item in taken)


def _without_words(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> Iterator[Item]:
    """At most one item that shows the request if the user wrote nothing in the part that is summarised."""
    words = analysis.words
    # The request is kept whole before the summary: its beginning shows which one it is.
    start = min((event.record for event in analysis.events), default=-1)
    for event in [one for one in analysis.kept if one.kind is EventKind.USER and one.record < start][-1:]:
        text = f"{words.request}{words.colon}{opening(without_preface(event.text), _MAX_OPTION_CHARS)}"
        yield Item(text=text)  # without its record, which the summary does not replace
        return
    # A member of a team works for the others; their messages count, but not notices of their state, which are objects.
    heard = (one for one in reversed(analysis.events) if one.is_report and one.call < 0 and one.text[:1] != "{")
    if asked := next(heard, None):
        text = condensed(asked.text, budget_tokens, token_cache, partial(chosen_pieces, analysis, token_cache))
        yield Item(text=f"{words.request} ({asked.name}){words.colon}{text}", records=(asked.record,))
        return
    # Where no request is recorded, only what the assistant set out to do shows what it was.
    set_out = next((one for one in analysis.events if one.kind in (EventKind.ASSISTANT, EventKind.SUMMARY)), None)
    begun = opening(set_out.text, _MAX_OPTION_CHARS) if set_out and set_out.kind is EventKind.ASSISTANT else ""
    if set_out and is_narration(begun):
        yield Item(text=f"{words.set_out}{words.colon}{words.quoted(begun)}", records=(set_out.record,))


def request_tokens(budget_tokens: int, analysis: Analysis) -> int:
    """The part of the section's tokens that the newest request may take."""
    return int(budget_tokens * (_REQUEST_RATIO_OF_CHAT if analysis.is_dialogue else _REQUEST_RATIO))


def _requests(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> Iterator[Item]:
    """The newest request, what it replies to, and earlier requests that it leans on."""
    words = analysis.words
    newest = newest_request(analysis)
    if newest is None:
        yield from _without_words(analysis, budget_tokens, token_cache)
        return

    def replying(text: str) -> Item:
        return Item(text=f"{words.replying}{words.colon}{text}", records=records_of((newest.asked,)))

    label = words.asked_before if _is_past(newest, analysis) else asked_label(newest.text, words)
    standing = standing_requests(newest, analysis)
    if standing and newest.interrupts and _NOTES.match(newest.text):
        # A note added while the agent worked belongs to the request that it worked on.
        yield _quoted(label, standing[0], budget_tokens * 2 // 3, analysis, token_cache)
        yield _quoted(words.added, newest, budget_tokens // 3, analysis, token_cache)
        return
    first = _quoted(label, newest, budget_tokens, analysis, token_cache)
    yield first
    reply = ""
    before = next((event.text for event in reversed(analysis.events) if event.record == newest.asked), "")
    if newest.points_at:
        # Only the entries that it names are shown, not the rest of the list.
        asked = f" {ELLIPSIS} {newest.replies_to}" if newest.replies_to.endswith(QUESTION_MARKS) else ""
        room = budget_tokens - token_cache.item(first) - token_cache.item(replying(asked))
        entries = _entries(newest, before, room, analysis, token_cache)
        reply = entries if newest.replies_to in entries else f"{entries}{asked}"
    elif replied := _replied_to(newest, before, analysis):
        # What a short reply agrees to, or a short question is about, is only clear from the whole of what was proposed.
        says_little = analysis.is_dialogue or newest.is_short or len(replied) < _MIN_TELLING_CHARS
        taken = token_cache.item(first) + token_cache.item(replying(""))
        room = budget_tokens - taken if analysis.is_dialogue else budget_tokens // 2
        gist = gist_of(before, room, analysis, token_cache, is_answered=True) if says_little else ""
        reply = gist or replied
    if reply:
        yield replying(reply)
    left, stated = budget_tokens - token_cache.item(first), outcome_of(newest, analysis)[0]
    for number, one in enumerate(standing):
        item = _quoted(words.earlier, one, left // (len(standing) - number), analysis, token_cache, stated)
        left -= token_cache.item(item)
        yield item


def _entries(newest: UserMessage, before: str, budget_tokens: int, analysis: Analysis, token_cache: TokenCache) -> str:
    """The list entries that the newest message points at, with the text under each if that fits and adds enough."""
    whole = parts_pointed_at(newest.text, before)
    gist = gist_of(whole, budget_tokens, analysis, token_cache, is_answered=True) if whole else ""
    has_more = len(gist) > len(newest.points_at) + _MIN_TELLING_CHARS
    return gist if has_more else newest.points_at


# The start of a note to an agent at work: `FYI, the gauge is offline`.
_NOTES = re.compile(r"\W*(?:note|fyi|btw|by the way|hint|heads[ -]up|for (?:info|reference|context))\b", re.IGNORECASE)


def _is_past(newest: UserMessage, analysis: Analysis) -> bool:
    """Whether a later, kept message of the user is more than a yes, thanks or a remark; never in a dialogue."""
    if analysis.is_dialogue:
        return False
    later = (one.text for one in analysis.kept if one.kind is EventKind.USER and one.record > newest.record)
    return not all(is_remark(text) or is_assent(text) for text in later)


def _replied_to(newest: UserMessage, before: str, analysis: Analysis) -> str:
    """The part of the text ``before`` that the newest message answers, if it is unclear alone; or an empty string."""
    agrees = begins_with_assent(newest.text)
    question = newest.replies_to or (last_proposal(before) if agrees else "")
    if analysis.is_dialogue and _leans(newest.text):
        question = question or last_question(before)
    if not (question or analysis.is_dialogue) and (doubted := _doubted(newest, analysis)):
        return opening(doubted, _MAX_REPLIED_CHARS)
    is_answer = agrees or question.endswith(QUESTION_MARKS)
    if not is_answer and is_passing(question):
        return ""
    return opening(question, _MAX_REPLIED_CHARS) if is_answer or not _stands_alone(newest, analysis) else ""


def _leans(text: str) -> bool:
    """Whether a message begins with a sentence of a few words, as an answer does, or points back (`book that one`)."""
    first = next(iter(sentences(text)), "")
    return len(first.split()) <= _MAX_ANSWER_WORDS or _POINTS_BACK.search(text) is not None


_MAX_ANSWER_WORDS = 5
_POINTS_BACK = re.compile(
    r"\b(?:for|with|of|on|in|about|do|use|take|book|choose|prefer|want|like|try|is|was)"
    r" (?:that|this|these|those|it|them|both)\b"
    r"|\b(?:first|second|third|last|other|latter|cheaper|larger|smaller|same) (?:one|option)\b",
    re.IGNORECASE,
)


def _doubted(newest: UserMessage, analysis: Analysis) -> str:
    """The statements of the message it answers that the newest message doubts; or an empty string."""
    for at, places in analysis.taken_back.items():
        if analysis.events[at].record == newest.asked:
            pieces = enumerate(piece for piece, _, _ in statements_of(analysis.events[at].text))
            meant = (piece for place, piece in pieces if place in places)
            return f" {ELLIPSIS} ".join(piece for piece in meant if len(piece.split()) >= _MIN_FRAMING_WORDS)
    return ""


def standing_requests(newest: UserMessage, analysis: Analysis) -> list[UserMessage]:
    """The earlier messages that the newest message leans on, newest first; none if it is a request by itself.

    Outside of dialogues, these are at most two of the last `_MAX_STANDING` messages, down to a request by itself: what
    is older was dealt with. Messages of fewer than `_MIN_FRAMING_WORDS` words, and answers that are already decisions,
    are passed over; there are none if the newest message points at entries of a list, which are shown. In a dialogue,
    it is the newest request by itself, however old.
    """
    found: list[UserMessage] = []
    if newest.points_at and not analysis.is_dialogue:
        return found  # what it names is shown
    message, most = newest, _MAX_STANDING if analysis.is_dialogue else 2
    settled = {record for one in analysis.decisions for record in one.records}
    earlier = [one for one in analysis.messages if one.record < newest.record]
    for before in reversed(earlier if analysis.is_dialogue else earlier[-_MAX_STANDING:]):
        if _stands_alone(message, analysis) or len(found) == most:
            break
        frames = not (analysis.is_dialogue or before.record in settled)
        if _stands_alone(before, analysis) or (frames and len(before.text.split()) >= _MIN_FRAMING_WORDS):
            found.append(before)
            message = before
    return found


def _stands_alone(message: UserMessage, analysis: Analysis) -> bool:
    """Whether a message is a request by itself.

    In a dialogue, where an answer may be long, at least one of its requests must also not begin with a yes.
    """
    answers = analysis.is_dialogue and all(map(begins_with_assent, message.requests))
    return message.stands_alone and not answers


def _quoted(
    label: str,
    message: UserMessage,
    budget_tokens: int,
    analysis: Analysis,
    token_cache: TokenCache,
    stated: str = "",
) -> Item:
    """A message under a label, as much of it as fits, with the calls it stopped and, given room, what came of it.

    What is ``stated`` of the newest request, a yes to this one, is not repeated.
    """
    words = analysis.words
    # With little room, what came of it is left to the steps and the files.
    has_room = budget_tokens >= _MIN_OUTCOME_TOKENS
    taken = 10 if has_room else token_cache.item(Item(text=f"{label}{words.colon}"))
    room = max(12, budget_tokens - taken)
    text = condensed(message.text, room, token_cache, partial(chosen_pieces, analysis, token_cache))
    stopped = stop_before(message, words)
    ended, records = outcome_of(message, analysis) if has_room else ("", ())
    ended, records = ("", ()) if ended == stated else (ended, records)
    return Item(text=f"{label}{words.colon}{text}{stopped}{ended}", records=records_of((message.record, *records)))


def _status_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> Iterator[Item]:
    """The assistant's last message (its end, if it asks), what it announced, the steps since, calls without result."""
    words = analysis.words
    newest, (last, is_since) = newest_request(analysis), _last_telling(analysis)
    steps, acts, is_cut = _steps_since(analysis, last)
    if analysis.is_dialogue:
        steps = []  # Facts shows them, with what came of them
    is_waiting = last is not None and analysis.events[-1].record <= last.record and last_question(last.text) != ""
    state = ""
    if last:
        room = int(budget_tokens * (0.6 if steps else 0.85))
        state = gist_of(last.text, room, analysis, token_cache, is_answered=is_waiting, acts=acts)
    # A few words are out of date once anything was done since, a remark once much was; an explanation is not.
    least = _MIN_EXPLAINING_CHARS if acts > _MAX_STEPS else _MIN_STATE_CHARS if acts else 1
    # If a step of the plan was closed since, what the message was about is done.
    is_closed = last is not None and any(one.record > last.record for one in analysis.plan.of(State.DONE))
    if last and is_since and len(state) >= least and not (acts and is_closed):
        # If something was done or asked for since, the message shows an earlier state.
        asks_still = is_waiting and not _is_answered_in_kept(last.record, analysis)
        is_gone = acts or (newest and _is_past(newest, analysis))
        label = words.earlier_state if is_gone else words.waiting if asks_still else words.stood
        yield Item(text=f"{label}{words.colon}{state}", records=(last.record,))
    if plan := announcement(analysis.events, _asked_record(analysis)):
        yield Item(text=f"{words.announced}{words.colon}{words.quoted(plan[1])}", records=(plan[0],))
        steps = [(record, text) for record, text in steps if text.strip('"') not in plan[1]]
    match steps:
        case [(record, text)] if last and state and record == last.record and text.startswith('"'):
            # Nothing was done since: it is the rest of the message that tells the state, and announces what comes.
            yield Item(text=f"{words.announced}{words.colon}{text}", records=(record,))
            steps = []
    # What the state quotes is not repeated as a step. If not all steps fit, the newest show where work stopped.
    steps = [(record, text) for record, text in steps if text.strip('"') not in state]
    left = budget_tokens - token_cache.text(state)
    shown_steps = (_since_item(steps[at:], words, is_cut=is_cut or at > 0) for at in range(len(steps)))
    if fitting := next((item for item in shown_steps if token_cache.item(item) <= left), None):
        yield fitting
    for call in map(analysis.events.__getitem__, analysis.work.without_result[-3:]):
        yield Item(text=f"{words.unanswered}{words.colon}{_call_words(call, with_last=True)}", records=(call.record,))
    for stop in analysis.events[-1:]:
        if stop.refusal == "" and stop.call >= 0 and not _is_answered_in_kept(stop.record, analysis):
            stopped = f"{words.stopped}{words.colon}{_call_words(analysis.events[stop.call])}"
            yield Item(text=f"{words.waiting} ({stopped})", records=(stop.record,))
        elif stop.broken_off[1] and not _is_answered_in_kept(stop.record, analysis):
            record, why = stop.broken_off
            text = f"{words.broken_off}{words.colon}{words.quoted(opening(why, _MAX_OPTION_CHARS))}"
            yield Item(text=text, records=(record,))
        elif stop.stopped_at >= 0 and not (stop.is_refusal or _is_answered_in_kept(stop.record, analysis)):
            yield Item(text=words.stopped, records=(stop.stopped_at,))
    if newest and (analysis.is_dialogue or newest.replies_to):
        return  # the message it replies to is shown with it, or in the history
    is_new = newest and _stands_alone(newest, analysis) and not newest.text.endswith(QUESTION_MARKS)
    if last and state and not (is_since or is_new):
        # The request may answer this message, which was written before it.
        yield Item(text=f"{words.replying}{words.colon}{state}", records=(last.record,))


def _last_telling(analysis: Analysis) -> tuple[Event | None, bool]:
    """The assistant's message that tells the state, and whether it is later than the user's newest words.

    That is the newest message since then that does more than announce or, where that is a short remark, a longer one
    before it. Without a message since then, it is the newest before; None if those since only announce, or without any.
    """
    spoken = [event for event in analysis.events if event.kind is EventKind.ASSISTANT]
    asked = _asked_record(analysis)
    since = [event for event in spoken if event.record > asked]
    # If the agent stopped with more than a few words, these announce no step: it waits.
    end = [event for event in analysis.events[-1:] if len(event.text) >= _MIN_EARLIER_CHARS]
    telling = [
        (event, sum(len(one) for one in sentences(event.text) if event in end or not _only_steps(one)))
        for event in since
    ]
    stated = [(event, chars) for event, chars in telling if chars]
    found = next(((event, chars) for event, chars in reversed(stated) if chars >= _MIN_TELLING_CHARS), None)
    if found and (found[0] is stated[-1][0] or found[1] >= _MIN_EARLIER_CHARS):
        return found[0], True
    if stated:
        return stated[-1][0], True
    before = spoken[: len(spoken) - len(since)]
    return (before[-1], False) if before and not since else (None, False)


def _only_steps(sentence: str) -> bool:
    """Whether a sentence only announces a step or says how it went."""
    return is_narration(sentence) or is_passing(sentence)


def _asked_record(analysis: Analysis) -> int:
    """The record of the user's newest words, including those at a refused call; -1 if there are none."""
    spoken = (event.record for event in analysis.events if event.kind is EventKind.USER)
    return max((*spoken, *(message.record for message in analysis.messages)), default=-1)


def _since_item(steps: Sequence[tuple[int, str]], words: FixedWords, *, is_cut: bool) -> Item:
    begins = f"{ELLIPSIS} " if is_cut else ""
    text = f"{words.since}{words.colon}{begins}{' · '.join(text for _, text in steps)}"
    return Item(text=text, records=records_of(record for record, _ in steps))


def _steps_since(analysis: Analysis, last: Event | None) -> tuple[list[tuple[int, str]], int, bool]:
    """The newest calls, remarks and thoughts after the last message and after the request: where work stopped.

    As (record, text), oldest first. Of more than `_MAX_STEPS`, those that only look are left out first. Announcements
    after which something was done are no steps. Also the number of calls that acted (edits, and commands that do more
    than look), and whether a step was left out that did more than look.
    """
    words, since = analysis.words, max(last.record if last else -1, _asked_record(analysis))
    spoken = [event for event in analysis.events if event.kind is EventKind.ASSISTANT]
    # The calls of a record come after its text.
    is_after = last is not None and last.record == since
    calls = [(number, one) for number, one in enumerate(analysis.events) if one.kind is EventKind.CALL]
    calls = [(number, one) for number, one in calls if one.record > since or (is_after and one.record == since)]
    # By text: the record, and whether the step only looked.
    done, acts, acted = dict[str, tuple[int, bool]](), 0, -1
    for text, record, is_act in _steps(calls, analysis):
        done.pop(text, None)
        done[text] = record, not is_act
        acts, acted = acts + is_act, record if is_act else acted
    for event in analysis.events:
        if event.is_of_written_code and event.record > since:
            done[f"→ {opening(one_line(event.text), _MAX_CALL_CHARS)}"] = event.record, False
    for event in spoken:
        is_newest = event is spoken[-1] and event.record >= since
        if is_newest or event.record > since:
            stated = _stated(event, is_newest and event.record > acted, event is last)
            text = words.quoted(opening(" ".join(stated), _MAX_CALL_CHARS))
            done |= {text: (event.record, False)} if stated else {}
    if done and (thought := analysis.newest_thought):
        text = _end_of(thought.text, _MAX_THOUGHT_CHARS)
        if text := text if thought.record > acted else without_end(text, is_narration):
            done[f"{words.thought}{words.colon}{words.quoted(text)}"] = thought.record, False
    # A thought stands before the calls of its record.
    steps = sorted(done, key=lambda text: (done[text][0], not text.startswith(('"', words.thought))))
    newest = {*sorted(steps, key=lambda text: (not done[text][1], done[text][0]))[-_MAX_STEPS:]}
    is_cut = not all(text in newest or done[text][1] for text in steps)
    return [(done[text][0], text) for text in steps if text in newest], acts, is_cut


def _steps(calls: Iterable[tuple[int, Event]], analysis: Analysis) -> Iterator[tuple[str, int, bool]]:
    """What calls did, with the record and whether it acted; no plans, and no calls without a result."""
    words, results, runs = analysis.words, results_of(analysis.events), {run.record: run for run in analysis.runs}
    endings = {CommandOutcome.OK: words.ok, CommandOutcome.FAILED: words.failed}
    edited = {one.event: one.within for one in analysis.operations if one.within}
    for number, call in calls:
        result = results.get(number)
        if number in analysis.work.without_result or call.tool is ToolKind.PLAN:
            continue
        if short_name(call.name) in REPORTING_TOOLS and result:
            report = next(filter(atom_texts, sentences(result.text)), result.text)
            yield f"{call.name} → {words.quoted(opening(report, _MAX_CALL_CHARS))}", call.record, False
        elif not is_own(call.name):
            run = runs.get(call.record)
            is_edit = call.tool is ToolKind.EDIT or editor_step(call) in ("edit", "create")
            is_act = is_edit or (run is not None and not run.is_read_only)
            is_act = is_act or (call.tool is ToolKind.OTHER and not is_lookup(call.name))
            ended = endings.get(run.outcome, "") if is_act and run else ""
            if is_edit and result and is_undone(call, result):
                ended = f"{words.failed}{words.colon}{opening(result.text, _MAX_CALL_CHARS)}"
            text = _call_words(call) + (f" {words.within} {', '.join(edited[number])}" if number in edited else "")
            if argument(call.arguments, ("pattern",)) and result and 0 < len(result.text.strip()) <= _MAX_FOUND_CHARS:
                ended = words.quoted(one_line(result.text))
            if run and run.asks_a_server:
                # Without ids, many requests to a server that differ only in them are one step.
                text = f"`{opening(_ID.sub(ELLIPSIS, acting_line(run.command)), _MAX_CALL_CHARS)}`"
            yield f"{text} → {ended}" if ended else text, call.record, is_act


_ID = re.compile(r"\b\d{5,}\b")


def _end_of(text: str, chars: int) -> str:
    """The last whole sentences of a text that fit, else its last words: what a thought comes to."""
    taken: list[str] = []
    for piece in reversed(sentences(text)):
        if sum(map(len, taken)) + len(piece) > chars:
            break
        taken.insert(0, piece)
    return " ".join(taken) or tail(one_line(text), chars)


# The agent's own step, not one that the user may take: `Now let me check the gauge.`
_OWN_STEP = pattern(r"\b(?:let me|let['’]s|I['’](?:ll|m)|I (?:will|need|am)|we['’]ll|now|next)\b", re.IGNORECASE)


def _stated(event: Event, announces: bool, is_quoted: bool) -> list[str]:
    """The sentences of a message to show as a step, without courtesies.

    If ``announces`` (nothing was done since), all others; else those that neither announce nor tell in passing how a
    step went. Of a message that ``is_quoted``, only what it announces after the last of those.
    """
    pieces = [one for one in sentences(event.text) if not is_courtesy(one)]
    stated = [one for one in pieces if not _only_steps(one)]
    if is_quoted:
        # Neither an announcement before the last statement nor how a check went is a step since.
        after = pieces[pieces.index(stated[-1]) + 1 :] if announces and stated else []
        return [one for one in after if _OWN_STEP.search(one) and not is_passing(one)]
    return pieces if announces else stated


def _call_words(call: Event, *, with_last: bool = False) -> str:
    """A call in a few words; of a service's call the name and all values that were given."""
    pairs = ((key, value) for key, value in parameters(call.arguments) if value not in ("", "null"))
    given = [f"{key}: {value}" if value == "[]" else value for key, value in pairs]
    if call.tool is ToolKind.OTHER and given:
        return opening(f"{call.name}({', '.join(given)})", _MAX_CALL_CHARS)
    return call_words(call, _MAX_CALL_CHARS, "`", with_last=with_last)


def _is_answered_in_kept(record: int, analysis: Analysis) -> bool:
    """Whether the kept records hold a message of the user or the assistant that is later than this record."""
    return any(event.kind in _SPEAKERS and event.record > record for event in analysis.kept)


def question_items(
    analysis: Analysis, budget_tokens: int, token_cache: TokenCache, *, shown: Iterable[Item] = ()
) -> tuple[Item, ...]:
    """The assistant's last questions, if no message after them, kept records included, may be the answer.

    Questions that one of the items ``shown`` quotes are left out.
    """
    spoken = (number for number, event in enumerate(analysis.events) if event.kind in _SPEAKERS)
    at = max(spoken, default=-1)
    if at < 0 or (last := analysis.events[at]).kind is EventKind.USER:
        return ()  # Now quotes what the user asks
    # An assistant that goes on working is not waiting for an answer.
    if any(event.kind is EventKind.CALL and not is_own(event.name) for event in analysis.events[at + 1 :]):
        return ()
    # Words at a call that was refused may be the answer, too.
    if _is_answered_in_kept(last.record, analysis) or _asked_record(analysis) > last.record:
        return ()
    quoted = "\n".join(item.text for item in shown)
    asked = [
        Item(text=text, records=(last.record,))
        for text in sentences(last.text)
        if text.endswith(QUESTION_MARKS) and len(text) <= _MAX_QUESTION_CHARS and text not in quoted
    ]
    return chosen(asked[-_MAX_QUESTIONS:], budget_tokens, token_cache)
