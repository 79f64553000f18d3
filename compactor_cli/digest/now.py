"""Now: the last request, what came of it, and whom the work waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from compactor_cli.digest.analysis import Analysis
from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.checklists import marked
from compactor_cli.digest.choice import Choice
from compactor_cli.digest.commands import CommandOutcome
from compactor_cli.digest.events import (
    REPORTING_TOOLS,
    Event,
    EventKind,
    FileAction,
    ToolKind,
    is_lookup,
    is_own,
    is_service_call,
    parameters,
    results_of,
    short_name,
)
from compactor_cli.digest.files import is_undone
from compactor_cli.digest.history import running_text
from compactor_cli.digest.language import names
from compactor_cli.digest.settled import asks, begins_with_assent
from compactor_cli.digest.statements import (
    ELLIPSIS,
    QUESTION_MARKS,
    Statement,
    StatementForm,
    TokenCache,
    chosen,
    head,
    is_courtesy,
    is_narration,
    is_noise,
    one_line,
    opening,
    records_of,
    sentences,
    statements_of,
    tail,
)
from compactor_cli.digest.wants import (
    UserMessage,
    call_words,
    condensed,
    last_question,
    newest_request,
    options_of,
    outcome_of,
)
from compactor_cli.model.summary import Item

_SPEAKERS = (EventKind.USER, EventKind.ASSISTANT)
_MAX_TASK_TOKENS = 900
_MAX_REPLIED_CHARS = 240
_MAX_QUESTIONS, _MAX_STANDING = 4, 3
_MAX_QUESTION_CHARS = 400
_MAX_CALL_CHARS = 160
# Of a dialogue, what the assistant said last stands among what happened, unless it is a question that waits.
_REQUEST_RATIO, _REQUEST_RATIO_OF_CHAT = 0.55, 0.85
_CHARS_PER_TOKEN = 4
_MAX_THOUGHT_CHARS, _MIN_EXPLAINING_CHARS = 240, 160
_MAX_LOOKED_BACK = 30
_MAX_STEPS = 4
_MIN_TELLING_CHARS = 60
_MAX_OPTION_CHARS = 110
# What the options and the question at the end of a message may take of the room for it.
_ASKED_RATIO = 0.7
_SAME_CHARS = 40
# With less room for it, a request is quoted without what came of it.
_MIN_OUTCOME_TOKENS = 80


def now_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """The newest request (with an earlier one where it is a few words), what was said last, the next open step."""
    budget_tokens = min(budget_tokens, _MAX_TASK_TOKENS)
    requests = list(_requests(analysis, request_tokens(budget_tokens, analysis), token_cache))
    left = budget_tokens - sum(map(token_cache.item, requests))
    quoted = [item.text for item in requests]
    standing = [
        item
        for item in _status_items(analysis, left, token_cache)
        if not any(item.text.partition(": ")[2] in text for text in quoted)
    ]
    # The steps since then come last: they say least where calls or words are named that wait.
    first = standing[:1] if standing and not _is_steps(standing[0], analysis) else []
    rest = sorted((item for item in standing if item not in first), key=lambda item: _is_steps(item, analysis))
    ranked = (*requests[:1], *first, *requests[1:], *rest)
    taken = set(chosen(ranked, budget_tokens, token_cache))
    return tuple(item for item in (*requests, *standing) if item in taken)


def _is_steps(item: Item, analysis: Analysis) -> bool:
    return item.text.startswith(analysis.words.since)


def request_tokens(budget_tokens: int, analysis: Analysis) -> int:
    """What the newest request may take of the section's tokens."""
    return int(budget_tokens * (_REQUEST_RATIO_OF_CHAT if analysis.is_dialogue else _REQUEST_RATIO))


def _requests(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> Iterator[Item]:
    words = analysis.words
    newest = newest_request(analysis)
    if newest is None:
        return
    first = _quoted(words.request, newest, budget_tokens, analysis, token_cache)
    yield first
    if newest.points_at:
        # The entry that it names, and not what else the list holds.
        asked = f" {ELLIPSIS} {newest.replies_to}" if newest.replies_to.endswith(QUESTION_MARKS) else ""
        shown_text = marked(newest.points_at, newest.asked, analysis.dealt_with, words)
        yield Item(text=f"{words.replying}{words.colon}{shown_text}{asked}", records=records_of((newest.asked,)))
    elif replied := _replied_to(newest, analysis):
        before = next((event.text for event in reversed(analysis.events) if event.record == newest.asked), "")
        # What a few words agree to, or a few words ask for, stands in the whole of what was proposed.
        is_open = analysis.is_dialogue and not _has_acted(newest, analysis)
        says_little = is_open or newest.is_short or len(replied) < _MIN_TELLING_CHARS
        room = budget_tokens - token_cache.text(newest.text) if is_open else budget_tokens // 2
        gist = _gist(before, room, analysis, token_cache) if says_little and before else ""
        shown_text = marked(max(gist, replied, key=len), newest.asked, analysis.dealt_with, words)
        text = f"{words.replying}{words.colon}{shown_text}"
        yield Item(text=text, records=records_of((newest.asked,)))
    standing = standing_requests(newest, analysis)
    left = budget_tokens - token_cache.item(first)
    for number, one in enumerate(standing):
        item = _quoted(words.earlier, one, left // (len(standing) - number), analysis, token_cache)
        left -= token_cache.item(item)
        yield item


def _replied_to(newest: UserMessage, analysis: Analysis) -> str:
    """What the newest message answers, where it says too little without that; empty where it says enough."""
    question = newest.replies_to
    agrees = begins_with_assent(newest.text)
    says_itself = asks(newest.text) or names(newest.text) or _has_acted(newest, analysis)
    if agrees and analysis.is_dialogue and not says_itself:
        before = next((event.text for event in reversed(analysis.events) if event.record == newest.asked), "")
        question = question or last_question(before)
    is_asked = question.endswith(QUESTION_MARKS) and not analysis.is_dialogue
    return opening(question, _MAX_REPLIED_CHARS) if agrees or is_asked or not _stands_alone(newest, analysis) else ""


def _has_acted(newest: UserMessage, analysis: Analysis) -> bool:
    """Whether a service was called since a message of the user for more than to look something up."""
    since = (event for event in analysis.events if event.record > newest.record)
    return any(is_service_call(event) and not is_lookup(event.name) for event in since)


def standing_requests(newest: UserMessage, analysis: Analysis) -> list[UserMessage]:
    """What a newest message that is no request by itself goes back to, the newest first; none where it is one."""
    found: list[UserMessage] = []
    message = newest
    for before in reversed([one for one in analysis.messages if one.record < newest.record]):
        is_whole = _stands_alone(message, analysis) and not _goes_back(message, before, analysis)
        if is_whole or len(found) == _MAX_STANDING:
            break
        if _stands_alone(before, analysis):
            found.append(before)
            message = before
    return found


def _goes_back(message: UserMessage, before: UserMessage, analysis: Analysis) -> bool:
    """Whether a message is about what is under way: a question of why, or said in one go with the one before."""
    if analysis.is_dialogue:
        return False
    between = range(before.record + 1, message.record)
    is_answered = any(one.record in between and one.kind is not EventKind.USER for one in analysis.events)
    return message.asks_why or (before.record >= 0 and not is_answered)


def _stands_alone(message: UserMessage, analysis: Analysis) -> bool:
    """Whether a message is a request by itself; in a dialogue every answer of some length says what it is about."""
    return message.stands_alone if not analysis.is_dialogue else not (message.is_short or message.stopped)


def _quoted(label: str, message: UserMessage, budget_tokens: int, analysis: Analysis, token_cache: TokenCache) -> Item:
    words = analysis.words
    room = max(12, budget_tokens - 10)
    text = condensed(message.text, room, token_cache, partial(_chosen_pieces, analysis, token_cache))
    stopped = f" ({words.stopped}{words.colon}`{message.stopped}`)" if message.stopped else ""
    named = f" ({message.points_at})" if message.points_at and label == words.earlier else ""
    # What was edited stands among the steps and the files; where there is little room, so does the rest.
    has_room = budget_tokens >= _MIN_OUTCOME_TOKENS
    ended, records = outcome_of(message, analysis, with_edits=False) if has_room else ("", ())
    return Item(
        text=f"{label}{words.colon}{text}{named}{stopped}{ended}", records=records_of((message.record, *records))
    )


def _status_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> Iterator[Item]:
    """What the assistant said last (its end, if it asks), calls nobody answered, the next step."""
    words = analysis.words
    last, is_since = _last_telling(analysis)
    steps, acts = _steps_since(analysis, last)
    is_waiting = last is None or analysis.events[-1].record <= last.record
    # Of a dialogue Facts has them, with what came of them; whoever asks announces no step.
    if analysis.is_dialogue or (is_waiting and last and last_question(last.text)):
        steps = None
    share = 0.6 if steps or analysis.plan.next_step else 0.85
    room = int(budget_tokens * share)
    ending_text = _gist(last.text, room, analysis, token_cache, is_waiting=is_waiting) if last else ""
    ending_text = marked(ending_text, last.record, analysis.dealt_with, words) if last else ""
    # A remark that much was done after is past; an explanation is not.
    is_past = acts > _MAX_STEPS and len(ending_text) < _MIN_EXPLAINING_CHARS
    if last and ending_text and is_since and not is_past:
        # What was said before something was done is no state any more.
        label = words.earlier_state if acts else words.stood
        yield Item(text=f"{label}{words.colon}{ending_text}", records=(last.record,))
    if step := analysis.plan.next_step:
        # A step that the user stopped is not simply the next one, until the work goes on.
        changed = [one.record for one in analysis.operations if one.action is not FileAction.READ]
        acted = max((step.record, *changed[-1:], *(commit.record for commit in analysis.work.commits[-1:])))
        stops = [m for m in analysis.messages if m.stopped and acted < m.record][-1:]
        stopped = f" ({words.stopped}{words.colon}`{stops[0].stopped}`)" if stops else ""
        records = records_of((step.record, *(m.record for m in stops)))
        yield Item(text=f"{words.step}{words.colon}{step.text}{stopped}", records=records)
    if steps:
        yield steps
    for number in analysis.work.without_result[-2:]:
        call = analysis.events[number]
        yield Item(text=f"{words.unanswered}{words.colon}{_call_words(call)}", records=(call.record,))
    newest = newest_request(analysis)
    is_new = newest and _stands_alone(newest, analysis) and not newest.text.endswith(QUESTION_MARKS)
    if is_new and last and not last_question(last.text):
        return  # something else is asked
    if analysis.is_dialogue and newest and not newest.is_short:
        return  # it says what it is about; what it replies to is chosen with what happened
    if last and ending_text and not is_since and not (newest and newest.replies_to):
        # The request may answer it: it is no state that came of the request.
        yield Item(text=f"{words.replying}{words.colon}{ending_text}", records=(last.record,))


def _gist(
    text: str, budget_tokens: int, analysis: Analysis, token_cache: TokenCache, *, is_waiting: bool = True
) -> str:
    """A message whole where it fits, else the statements that hold most of it, with the question it ends with.

    The options that a question offers are all there, or none: one that is missing would mislead. Where the work went
    on (not ``is_waiting``), the question was the assistant's to itself.
    """
    whole = ending(text, budget_tokens * _CHARS_PER_TOKEN)
    if ELLIPSIS not in whole:
        return whole
    question = last_question(text)
    if analysis.is_dialogue:
        if not question:
            return ""  # it is chosen with what happened, as what else was said
        before, asked_text, _ = text.partition(question)
        return _end_of(f"{before}{asked_text}", budget_tokens * _CHARS_PER_TOKEN)
    listed = options_of(text).items() if question and is_waiting else ()
    options = [f"{key}. {opening(option, _MAX_OPTION_CHARS)}" for key, option in listed]
    asked = [*options, question] if question and is_waiting else []
    if sum(map(token_cache.text, asked)) > budget_tokens * _ASKED_RATIO:
        asked = asked[-1:]
    left = budget_tokens - sum(token_cache.text(piece) + 2 for piece in asked)
    shown = "\n".join(asked)
    pieces = [
        Statement(text=piece, event=0, place=place, form=form, lead=lead)
        for place, (piece, form, lead) in enumerate(statements_of(text))
        if form is not StatementForm.CODE and not is_noise(piece) and not is_narration(piece)
        if piece not in question and not any(piece.startswith(one[:_SAME_CHARS]) for one in options)
    ]
    found = running_text(_chosen_pieces(analysis, token_cache, pieces, shown, left), {}).replace("\n", " ")
    return " ".join([found, *asked]).strip() or whole


def _chosen_pieces(
    analysis: Analysis, token_cache: TokenCache, pieces: Sequence[Statement], shown: str, tokens: int
) -> list[Statement]:
    return Choice(pieces, [shown], analysis.worth, token_cache.text).choose(tokens)


def _last_telling(analysis: Analysis) -> tuple[Event | None, bool]:
    """What the assistant said since the newest request: its question, else the newest of more than a few words.

    Where it said nothing of weight since, what it said before; and whether it was since.
    """
    spoken = [event for event in analysis.events if event.kind is EventKind.ASSISTANT]
    asked = _asked_record(analysis)
    since = [event for event in spoken if event.record > asked]
    is_waiting = since and analysis.events[-1].record <= since[-1].record
    if is_waiting and last_question(since[-1].text):
        return since[-1], True
    telling = [
        (event, sum(len(piece) for piece in sentences(event.text) if not is_narration(piece)))
        for event in since[-_MAX_LOOKED_BACK:]
    ]
    for least in (_MIN_TELLING_CHARS, 1):
        if found := next((event for event, chars in reversed(telling) if chars >= least), None):
            return found, True
    before = spoken[: len(spoken) - len(since)]
    return (before[-1], False) if before and not since else (None, False)


def _asked_record(analysis: Analysis) -> int:
    """The record of the user's newest words, those at a call that they refused included."""
    spoken = (event.record for event in analysis.events if event.kind is EventKind.USER)
    return max((*spoken, *(message.record for message in analysis.messages)), default=-1)


def _steps_since(analysis: Analysis, last: Event | None) -> tuple[Item | None, int]:
    """The newest calls and remarks after what was said last and after the request, oldest first: where work stopped.

    And how many acted among them: edits, and commands that do not only look.
    """
    since = max(last.record if last else -1, _asked_record(analysis))
    # Calls without a result are named as such.
    open_calls = {id(analysis.events[number]) for number in analysis.work.without_result}
    ran = {run.record: run for run in analysis.runs}
    newest_words = next((one for one in reversed(analysis.events) if one.kind is EventKind.ASSISTANT), None)
    endings = {CommandOutcome.OK: analysis.words.ok, CommandOutcome.FAILED: analysis.words.failed}
    results, done = results_of(analysis.events), dict[str, None]()
    acts, record = 0, -1
    is_after = False  # the call of a record stands after its words
    for number, event in enumerate(analysis.events):
        is_newest = event is newest_words and event.record >= since
        is_after = is_after or event is last
        is_same = event.record == since and is_after and event.kind is EventKind.CALL
        if (event.record <= since and not (is_newest or is_same)) or id(event) in open_calls:
            continue
        if event.kind is EventKind.CALL and short_name(event.name) in REPORTING_TOOLS and number in results:
            text = analysis.words.quoted(opening(_first_telling(results[number].text), _MAX_CALL_CHARS))
            text, record = f"{event.name} → {text}", event.record
        elif event.kind is EventKind.CALL and event.tool is not ToolKind.PLAN and not is_own(event.name):
            run = ran.get(event.record)
            is_act = event.tool is ToolKind.EDIT or (run is not None and not run.is_look)
            is_act = is_act or (event.tool is ToolKind.OTHER and not is_lookup(event.name))
            acts, record = acts + is_act, event.record
            ended = endings.get(run.outcome, "") if is_act and run else ""
            if event.tool is ToolKind.EDIT and number in results and is_undone(event, results[number]):
                ended = f"{analysis.words.failed}{analysis.words.colon}{opening(results[number].text, _MAX_CALL_CHARS)}"
            text = f"{_call_words(event)} → {ended}" if ended else _call_words(event)
        elif event.kind is EventKind.ASSISTANT and (stated := _stated(event, is_newest, event is last)):
            text, record = analysis.words.quoted(opening(" ".join(stated), _MAX_CALL_CHARS)), event.record
        else:
            continue
        done.pop(text, None)
        done[text] = None
    newest = list(done)[-_MAX_STEPS:]
    if newest and analysis.thought:
        newest = [analysis.words.quoted(_end_of(analysis.thought.text, _MAX_THOUGHT_CHARS)), *newest[1 - _MAX_STEPS :]]
    text = f"{analysis.words.since}{analysis.words.colon}{' · '.join(newest)}"
    return (Item(text=text, records=records_of((record,))) if newest else None), acts


def _first_telling(report: str) -> str:
    """The first sentence of a report that names something, neither a heading nor an announcement."""
    pieces = [one for one in sentences(report) if not (is_narration(one) or one.startswith("#") or one.endswith(":"))]
    return next(filter(atom_texts, pieces), next(iter(pieces), report))


def _end_of(text: str, chars: int) -> str:
    """The last sentences of a text, whole where one fits: what a thought or a question comes to."""
    taken: list[str] = []
    for piece in reversed(sentences(text)):
        if sum(map(len, taken)) + len(piece) > chars:
            break
        taken.insert(0, piece)
    return " ".join(taken) or tail(one_line(text), chars)


def _stated(event: Event, is_newest: bool, is_quoted: bool) -> list[str]:
    """What a message tells beyond what is quoted; of the newest also what it announces: where work stopped."""
    pieces = [one for one in sentences(event.text) if not is_courtesy(one)]
    stated = [one for one in pieces if not is_narration(one)]
    if is_quoted:
        return [one for one in pieces if is_newest and stated and one not in stated]
    return pieces if is_newest else stated


def _call_words(call: Event) -> str:
    if call.tool is ToolKind.OTHER and (given := [value for _, value in parameters(call.arguments) if value]):
        return opening(f"{call.name}({', '.join(given)})", _MAX_CALL_CHARS)
    return call_words(call, _MAX_CALL_CHARS, "`")


def ending(text: str, chars: int) -> str:
    """A message whole where it fits, else how it begins and, where it ends with a question, that end; whole words.

    Sentences that only announce a call, and courtesies, are left out where there are others; so is code that does not
    fit.
    """
    line = _telling_line(text, with_code=True)
    if len(line) > chars and "```" in text:
        line = _telling_line(text, with_code=False)
    if len(line) <= chars:
        return line
    if chars < 40:
        return head(line, chars)
    if question := last_question(text):
        asked = question if len(question) <= chars * 2 // 3 else tail(question, chars // 2)
        first = _beginning(line, chars - len(asked) - 3)
        return f"{first} … {asked}" if first and asked not in first else asked
    return f"{_beginning(line, chars * 2 // 3)} … {tail(line, chars // 4)}"


def _telling_line(text: str, *, with_code: bool) -> str:
    pieces = sentences(text, with_code=with_code)
    telling = [piece for piece in pieces if not is_narration(piece)] or pieces
    is_whole = len(telling) == len(pieces) and "```" not in text
    return one_line(text) if is_whole else " ".join(telling)


def _beginning(line: str, chars: int) -> str:
    """How a line begins, without the mark that it goes on."""
    return opening(line, chars).removesuffix(ELLIPSIS).rstrip()


def question_items(analysis: Analysis, budget_tokens: int, token_cache: TokenCache) -> tuple[Item, ...]:
    """The assistant's last questions, if nothing said after them, kept records included, may be the answer."""
    last = next((event for event in reversed(analysis.events) if event.kind in _SPEAKERS), None)
    if last is None or last.kind is EventKind.USER:
        return ()  # Now quotes what the user asks
    if any(event.kind in _SPEAKERS and event.record > last.record for event in analysis.kept):
        return ()
    if _asked_record(analysis) > last.record:
        return ()  # words at a call that was refused
    asked = [
        text for text in sentences(last.text) if text.endswith(QUESTION_MARKS) and len(text) <= _MAX_QUESTION_CHARS
    ]
    return chosen(
        (Item(text=text, records=(last.record,)) for text in asked[-_MAX_QUESTIONS:]), budget_tokens, token_cache
    )
