"""Candidates: the statements worth weighing for a summary, each with what its place makes of its worth."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from compactor_cli.digest.causes import concluded, finds_cause, supposes, turns_away
from compactor_cli.digest.checks import passed_checks
from compactor_cli.digest.choice import names
from compactor_cli.digest.commands import CommandOutcome, rerun, sent_words
from compactor_cli.digest.corrections import COMMIT_LABEL, outdated_statements, standing
from compactor_cli.digest.error_lines import own_lines
from compactor_cli.digest.events import Event, EventKind, is_service_call, results_of
from compactor_cli.digest.noise import finds_nothing, is_narration, is_noise, is_passing, only_announces, only_intends
from compactor_cli.digest.output_lines import OUTPUT_FACTOR, is_slip, output_lines
from compactor_cli.digest.replies import asks_the_user, is_option, offered
from compactor_cli.digest.salience import Scores, shortened
from compactor_cli.digest.settled import chooses, gives_reason
from compactor_cli.digest.statements import Statement, StatementForm, list_ends, sentences, statements_of, without_end
from compactor_cli.digest.tools import (
    REPORTING_TOOLS,
    FileAction,
    ToolKind,
    command_of,
    is_lookup,
    parameters,
    short_name,
)
from compactor_cli.digest.wants import unwrapped
from compactor_cli.formats.client_signs import ATTACHMENTS, started_id
from compactor_cli.model.patterns import pattern

if TYPE_CHECKING:
    from compactor_cli.digest.analysis import Analysis

# The factors of a statement's worth. Chosen on the training probes; none is worth more than two points there.
RECENCY, RECENCY_OF_CHAT = 1.5, 1.0
# The last message of a turn reports what came of it; in a dialogue each message is the last of one.
FINAL_FACTOR, FINAL_FACTOR_OF_CHAT = 2.2, 1.6
CUE_FACTOR = 1.4
# What is wrong, or was: whoever goes on without it looks for it again.
CAUSE_FACTOR = 2.0
# A short sentence between two calls, which is about the next one more often than not.
REMARK_FACTOR, MAX_REMARK_CHARS = 0.4, 80
TAKEN_BACK_FACTOR = 0.4
# What a review calls good, or small, tells less than what it wants changed.
MINOR_FACTOR = 0.7
# What names a file that was changed after it was written tells less of what is so now.
CHANGED_SINCE_FACTOR = 0.6
# What the user was asked for and has answered since.
ANSWERED_FACTOR = 0.3
# What a service offered was mostly looked up before.
OFFERED_FACTOR = 0.4
# What was to be done is mostly done since.
INTENDED_FACTOR = 0.6
CODE_FACTOR, LEANING_FACTOR = 0.4, 0.85
# Thoughts weigh up what messages then state, and stand after the statements of the event before them.
THOUGHT_FACTOR, _THOUGHT_PLACE = 0.4, 1_000
# A statement that was spoken is shortened from this length on.
_SPOKEN_CHARS = 600
# Characters of spoken text that are looked at, and lines of output weighed, for one token of the budget.
_SPOKEN_CHARS_PER_TOKEN = 60
_OUTPUTS_PER_TOKEN = 0.16
_MIN_OUTPUTS = 40
_MAX_ANSWERS, _MAX_ANSWER_LINES, _MAX_ANSWER_CHARS = 60, 2, 160
_MIN_REPORT_CHARS, _MIN_MESSAGE_CHARS, _TASK_CHARS = 400, 80, range(200, 8_000)
_BETWEEN_LINES = " · "
_SPOKEN = (EventKind.ASSISTANT, EventKind.SUMMARY)
_STATED = (StatementForm.SENTENCE, StatementForm.ITEM)


def candidates_of(analysis: Analysis, budget_tokens: int) -> list[Statement]:
    """The statements worth weighing: of messages (turn ends first, then the newest), and the telling lines of output.

    Whatever names the focus is among them, however old; lines of files that were changed there since are not.
    """
    events, scores, focus = analysis.events, analysis.scores, analysis.focus
    wordless, labels = _wordless(analysis), analysis.labels
    chars = budget_tokens * _SPOKEN_CHARS_PER_TOKEN
    found = [*_spoken_pieces(analysis, chars, wordless), *_thought_pieces(analysis, wordless)]
    prose = {**_reports(events, chars), **_tasks(analysis), **_sent(analysis)}
    for number, text in prose.items():
        # Its statements stand under the label of the call.
        is_message = events[number].kind is EventKind.CALL and "git commit" in events[number].text
        base = wordless[number]._replace(label=COMMIT_LABEL if is_message else labels[number].text)
        found.extend(_pieces(text, base, scores, focus))
    is_gone = analysis.is_gone
    outputs = output_lines(analysis, max(_MIN_OUTPUTS, int(budget_tokens * _OUTPUTS_PER_TOKEN)), wordless)
    answers = [one for one in _answers(analysis, wordless) if one.event not in prose]
    answers = [one for one in answers if not any(is_gone(one.event, line) for line in _rows(one))]
    known = set(chain.from_iterable(map(_rows, answers)))
    found.extend(
        one
        for one in outputs
        if one.event not in prose and events[one.event].call not in prose  # the answer repeats what was sent
        if one.text not in known and not is_gone(one.event, one.text)
    )
    found.extend(answers)
    return found


def _spoken_pieces(analysis: Analysis, chars: int, wordless: Sequence[Statement]) -> Iterator[Statement]:
    """The statements of messages, as many as there are characters for."""
    events, focus = analysis.events, analysis.focus
    spoken = [number for number, event in enumerate(events) if event.kind in _SPOKEN]
    last_user = max((number for number, event in enumerate(events) if event.kind is EventKind.USER), default=-1)
    is_service = analysis.is_dialogue and any(map(is_service_call, events))
    final_factor = FINAL_FACTOR_OF_CHAT if analysis.is_dialogue else FINAL_FACTOR
    changed = {one.name: one.event for one in analysis.operations if one.action is not FileAction.READ}
    last_change = max(changed.values(), default=-1)
    steps = _steps(analysis, spoken[:-1])
    is_over = outdated_statements(analysis)
    # Until the cause was found, others were suspected.
    newest_cause = {events[cause.event].turn: cause.event for cause in analysis.causes}
    for number in sorted(spoken, key=lambda number: (number not in analysis.finals, -number)):
        text, base, is_final = events[number].text, wordless[number], number in analysis.finals
        if chars <= 0 and not names(text, focus):
            continue
        chars -= len(text)
        # What is written of the work under way ends no turn yet.
        is_telling = is_final or events[number].turn == events[-1].turn
        base = base._replace(weight=base.weight * (final_factor if is_telling else 1.0))
        is_offer = number + 1 < len(events) and events[number + 1].is_answer
        is_old = number < newest_cause.get(events[number].turn, -1)
        kind = {
            "is_final": is_final,
            "is_past": not is_final or number < analysis.code_changed_at,
            "is_overtaken": number in steps,
            "is_answered": number < last_user,
            "is_service": is_service,
            "goes_on": number + 1 < len(events) and events[number + 1].turn == events[number].turn,
        }
        for one in _pieces(text, base, analysis.scores, focus, **kind):
            # Of what a tool let the user choose from, the choice stands among what is settled.
            if is_over(one) or (is_offer and one.form in (StatementForm.ITEM, StatementForm.ROW)):
                continue
            mark = standing(one, analysis)
            is_doubted = mark == analysis.words.overruled or (is_old and finds_cause(one.text))
            named = _FILE_NAME.findall(f"{one.text} {one.lead}") if number < last_change else ()
            is_changed = mark != "" or any(changed.get(name, -1) > number for name in named)
            factor = TAKEN_BACK_FACTOR if is_doubted else CHANGED_SINCE_FACTOR if is_changed else 1.0
            yield one._replace(weight=one.weight * factor) if factor != 1.0 else one


def _steps(analysis: Analysis, spoken: Iterable[int]) -> set[int]:
    """The messages of the assistant after which the work went on; in a dialogue none is only a step."""
    own = (n for n in spoken if analysis.events[n].kind is EventKind.ASSISTANT and not analysis.is_dialogue)
    return {*own} - {*analysis.finals}


_FILE_NAME = re.compile(r"[\w-][\w.-]*\.\w+|\b[A-Z][a-z]+file\b")


def _answers(analysis: Analysis, wordless: Sequence[Statement]) -> Iterator[Statement]:
    """What the newest commands and looks answered in one or two short lines: a state, whatever it names."""
    events, places = analysis.events, analysis.scores.table.lines.numbers
    # What was shown without a call stands for itself.
    shown = (
        (number if event.is_of_written_code else event.call, number, event)
        for number, event in enumerate(events)
        if event.kind is EventKind.RESULT and not (event.of_client or event.is_refusal)
    )
    passed, past = passed_checks(analysis.runs), rerun(analysis.runs, events)
    for call, number, result in islice(reversed([*shown]), _MAX_ANSWERS):
        if call in passed or call in past:
            continue  # that it passed stands with the facts, and its newest answer with the newest run
        if not (result.is_of_written_code or events[call].tool in (ToolKind.COMMAND, ToolKind.READ)):
            continue
        answered = (line.strip() for line in own_lines(result.text) if line.strip() and not is_slip(line))
        lines = list(islice(answered, _MAX_ANSWER_LINES + 1))
        text = _BETWEEN_LINES.join(lines)
        is_short = len(lines) <= _MAX_ANSWER_LINES and len(text) <= _MAX_ANSWER_CHARS
        if not is_short or is_noise(text) or started_id(text):
            continue
        label = analysis.labels[number].text
        if text not in label:
            weight = wordless[call].weight * (OUTPUT_FACTOR if label else FINAL_FACTOR)
            base = wordless[call]._replace(form=StatementForm.OUTPUT, label=label, weight=weight)
            yield base._replace(text=text, record=result.record, place=places.get(lines[0], 0))


def _thought_pieces(analysis: Analysis, wordless: Sequence[Statement]) -> Iterator[Statement]:
    """The statements of thoughts, the newest first, each after the event before it."""
    for at, thought in reversed(analysis.thoughts):
        base = wordless[at]._replace(label=analysis.words.thought, record=thought.record)
        for one in _pieces(thought.text, base, analysis.scores, analysis.focus, goes_on=True):
            yield one._replace(place=one.place + _THOUGHT_PLACE, lead="", weight=one.weight * THOUGHT_FACTOR)


def _wordless(analysis: Analysis) -> list[Statement]:
    """For each event a statement without words: its record, its place in the table, what its age makes of its worth."""
    events, recency = analysis.events, RECENCY_OF_CHAT if analysis.is_dialogue else RECENCY
    at = analysis.scores.table.length_tokens - sum(len(event.text) // 4 + 1 for event in events)
    found: list[Statement] = []
    for number, event in enumerate(events):
        weight = 1.0 + recency * (number / len(events))
        found.append(Statement("", number, 0, record=event.record, at_tokens=at, weight=weight))
        at += len(event.text) // 4 + 1
    return found


def _reports(events: Sequence[Event], chars: int) -> dict[int, str]:
    """The newest reports by their positions, in order, as many as there are characters for."""
    found: dict[int, str] = {}
    for number in range(len(events) - 1, -1, -1):
        if chars > 0 and (text := _report_words(events[number])):
            found[number] = text
            chars -= len(text)
    # What stands in several is the client's word about a subagent, fences aside; so is a call of the subagent in JSON.
    times = Counter(chain.from_iterable(set(text.split("\n")) for text in found.values()))
    return {
        number: "\n".join(line for line in text.split("\n") if _is_own(line, times[line]))
        for number, text in reversed(found.items())
    }


def _is_own(line: str, times: int) -> bool:
    # Fences, headings and breaks say what the lines below them are.
    return not line.strip() or line.startswith(("```", "#", "---")) or (times == 1 and '{"' not in line)


def _sent(analysis: Analysis) -> dict[int, str]:
    """What commands and services that did not fail sent to others in words, by the position of the call."""
    events, failed = analysis.events, {run.event for run in analysis.runs if run.outcome is CommandOutcome.FAILED}
    answered = ((call, result) for call, result in results_of(events).items() if call not in failed)
    done = [call for call, result in answered if not (result.is_error or result.is_refusal)]
    lines = {call: command_of(events[call].arguments) for call in done if events[call].tool is ToolKind.COMMAND}
    # The lines of a commit's message are as long as a screen is wide.
    found = {call: unwrapped(text) for call, line in lines.items() if (text := sent_words(line))}
    if not analysis.is_dialogue:
        services = (call for call in done if is_service_call(events[call]) and not is_lookup(events[call].name))
        given = {call: [value for _, value in parameters(events[call].arguments)] for call in services}
        texts = {call: max(values, key=len) for call, values in given.items() if values}
        found |= {call: text for call, text in texts.items() if len(text) in _TASK_CHARS and len(sentences(text)) > 1}
    return found


def _tasks(analysis: Analysis) -> dict[int, str]:
    """The newest text of each file that describes a task, as it was read, by its position."""
    positions = {call: n for n, event in enumerate(analysis.events) if (call := event.call) >= 0}
    read = (one for one in analysis.operations if one.action is FileAction.READ and _TASK_FILE.search(one.path))
    places = {one.path: positions[one.event] for one in read if one.event in positions}
    texts = {place: analysis.events[place].text for place in places.values()}
    return {place: text for place, text in texts.items() if len(text) in _TASK_CHARS}


_TASK_FILE = pattern(
    r"(?:^|[/_.-])(?:todos?|plans?|tasks?|issues?|specs?|tickets?|prd|requirements?|brief|story|stories)(?:[/_.-]\S*)?\.md$",
    re.IGNORECASE,
)


def _report_words(event: Event) -> str:
    """What another model reports in a result, without what the client says of it; empty for any other event."""
    is_report = event.is_report or (event.kind is EventKind.RESULT and short_name(event.name) in REPORTING_TOOLS)
    if not is_report or event.is_error or ATTACHMENTS.of_command in event.text:
        return ""
    if not event.is_report and started_id(event.text):
        return ""  # it reports later
    text = re.sub(r"^<(\w+)>(?:\w+</\1>)?$|^</\w+>$", "", event.text, flags=re.MULTILINE).strip()
    if len(text) < (_MIN_MESSAGE_CHARS if event.call < 0 else _MIN_REPORT_CHARS):
        return ""
    # Where what was asked for is not there, what the report says besides is about something else.
    return next((one for one in sentences(text[:_MIN_REPORT_CHARS]) if finds_nothing(one)), text)


def _pieces(
    text: str,
    base: Statement,
    scores: Scores,
    focus: frozenset[str],
    *,
    goes_on: bool = False,
    is_final: bool = False,
    is_past: bool = True,
    is_overtaken: bool = False,
    is_answered: bool = False,
    is_service: bool = False,
) -> Iterator[Statement]:
    """The statements of a spoken text that tell something."""
    # Options stand whole in Now, and in Settled with the one that was taken: here and there one would mislead.
    options = offered(text, is_service=is_service)

    def is_step(sentence: str) -> bool:
        return is_narration(sentence) or (is_past and is_passing(sentence))

    found = [*statements_of(text)]
    stated = [piece for piece, _, _ in found]
    left = concluded(stated) if goes_on else stated
    # By what they stand under: to reconsider one entry of a list leaves the others as they are.
    reconsidered = {one[2]: at for at, one in enumerate(found) if not goes_on and turns_away(one[0])}
    for place, (piece, (_, form, lead), (opens, closes)) in enumerate(zip(left, found, list_ends(found), strict=True)):
        if form is StatementForm.SENTENCE:
            if piece[:1].islower() and place and found[place - 1][1] is StatementForm.CODE:
                piece = " ".join(sentences(piece)[1:])  # the first one ends one that stands around code
            piece = without_end(piece, is_step)
        if is_noise(piece) or (is_overtaken and (supposes(piece) or only_announces(piece))):
            continue
        is_offered = form is StatementForm.ITEM and is_option(piece, options)
        if is_offered and not is_service:
            continue
        if is_answered and _OFFERS.search(lead):
            continue
        factor = _telling(piece, form) * (OFFERED_FACTOR if is_offered else 1.0)
        if form is StatementForm.SENTENCE and not is_final and len(piece) <= MAX_REMARK_CHARS and not lead:
            factor *= REMARK_FACTOR
        if (is_answered or is_overtaken) and asks_the_user(piece):
            factor *= ANSWERED_FACTOR
        if _LEANS.match(piece):
            factor *= LEANING_FACTOR
        if place < reconsidered.get(lead, -1):
            factor *= TAKEN_BACK_FACTOR
        if lead and _MINOR.search(lead):
            factor *= MINOR_FACTOR
        factor *= INTENDED_FACTOR if is_overtaken and only_intends(piece) else 1.0
        shown, weight = shortened(piece, scores, focus, _SPOKEN_CHARS), base.weight * factor
        one = base._replace(text=shown, place=place, form=form, lead=lead, weight=weight)
        yield one._replace(opens=opens, closes=closes)


def _telling(piece: str, form: StatementForm) -> float:
    """A factor for what a statement says."""
    if form is StatementForm.CODE:
        return CODE_FACTOR
    cue = CUE_FACTOR if chooses(piece) or gives_reason(piece) else 1.0
    return cue * CAUSE_FACTOR if form in _STATED and finds_cause(piece) else cue


_MINOR = pattern(
    r"^\W*(?:\w+ )?(?:suggestions?|nits?|minor|low|optional|positives?|praise|strengths?|what(?:'s| is) good)\b",
    re.IGNORECASE | re.MULTILINE,
)
# How a sentence begins that is read with the one before it.
_LEANS = re.compile(r"(?:But|So|This|That|These|Those|It|They|However|Also|Then|Both|And|Instead|Here)\b")
# A question to the user above its answers; "Can the fork be adopted?" the agent answers itself.
_OFFERS = re.compile(
    r"\b(?:do you (?:want|prefer|need)|would you|(?:should|shall) (?:I|we))\b|\byou(?:r|'d)?\b.*\?$",
    re.IGNORECASE | re.MULTILINE,
)


def _rows(answer: Statement) -> list[str]:
    return answer.text.split(_BETWEEN_LINES)
