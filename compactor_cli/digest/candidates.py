"""Candidates: the statements worth weighing for a summary, each with a weight for where it stands."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING

from compactor_cli.digest.causes import concluded, finds_cause, supposes, turns_away
from compactor_cli.digest.checks import REPAIRS, passed_checks, programs_of
from compactor_cli.digest.choice import names
from compactor_cli.digest.commands import sent_words
from compactor_cli.digest.corrections import COMMIT_LABEL, standing
from compactor_cli.digest.decisions import chooses, gives_reason
from compactor_cli.digest.error_lines import own_lines
from compactor_cli.digest.events import Event, EventKind, is_service_call, results_of
from compactor_cli.digest.noise import finds_nothing, is_narration, is_noise, is_passing, only_announces, only_intends
from compactor_cli.digest.output_lines import OUTPUT_FACTOR, is_slip, output_lines, past_looks, tells_of_the_past
from compactor_cli.digest.replies import asks_the_user, is_option, offered
from compactor_cli.digest.runs import CommandOutcome
from compactor_cli.digest.salience import Scores, shortened
from compactor_cli.digest.shell import GIT
from compactor_cli.digest.statements import Statement, StatementForm, list_ends, statements_of
from compactor_cli.digest.texts import COLONS, sentences, without_end
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

# The factors of a statement's weight were chosen on the training probes, where none gains more than two points.
# The newest event weighs this much more than the oldest, which weighs 1.
RECENCY, RECENCY_OF_CHAT = 1.5, 1.0
# The last message of a turn reports its result; in a dialogue every message is the last of its turn.
FINAL_FACTOR, FINAL_FACTOR_OF_CHAT = 2.2, 1.6
CUE_FACTOR = 1.4  # it chooses something or gives a reason
# It says what is, or was, wrong: an agent that continues without it would search for the cause again.
CAUSE_FACTOR = 2.0
# A short sentence between two calls: most are about the next call.
REMARK_FACTOR, MAX_REMARK_CHARS = 0.4, 80
TAKEN_BACK_FACTOR = 0.4
# What a review praises or calls minor matters less than what it wants changed.
MINOR_FACTOR = 0.7
# It names a file that was changed since, so it may no longer be true.
CHANGED_SINCE_FACTOR = 0.6
# It asks the user for something, and was answered or passed over since.
ANSWERED_FACTOR = 0.3
# An option in a service's offer: most options were looked up before, and stand in its results.
OFFERED_FACTOR = 0.4
# An intention of a message after which the work went on: most were carried out.
INTENDED_FACTOR = 0.6
CODE_FACTOR, LEANING_FACTOR = 0.4, 0.85  # a line of code; a sentence that depends on the one before it
# Of a line of code that only returns: alone, it reads as what the code always does.
RETURN_FACTOR = 0.25
# Thoughts weigh less than messages, which state the outcome; their places follow those of the event before them.
THOUGHT_FACTOR, _THOUGHT_PLACE = 0.4, 1_000
# A statement that was spoken is shortened from this length on.
_SPOKEN_CHARS = 600
# Per token of the budget: characters of messages that are read, and lines of output that are weighed.
_SPOKEN_CHARS_PER_TOKEN = 60
_OUTPUTS_PER_TOKEN = 0.16
_MIN_OUTPUTS = 40
_MAX_ANSWERS, _MAX_ANSWER_LINES, _MAX_ANSWER_CHARS = 60, 2, 160
_MIN_REPORT_CHARS, _MIN_MESSAGE_CHARS, _TASK_CHARS = 400, 80, range(200, 8_000)
_BETWEEN_LINES = " · "
_SPOKEN = (EventKind.ASSISTANT, EventKind.SUMMARY)
_STATED = (StatementForm.SENTENCE, StatementForm.ITEM)


def candidates_of(analysis: Analysis, budget_tokens: int) -> list[Statement]:
    """The statements worth weighing: those of messages (ends of turns first, then newest first) and lines of output.

    Statements that name the focus are included however old they are. Lines of a file that a later change replaced are
    left out.
    """
    events, scores, focus = analysis.events, analysis.scores, analysis.focus
    wordless, labels = _wordless(analysis), analysis.labels
    chars = budget_tokens * _SPOKEN_CHARS_PER_TOKEN
    found = [*_spoken_pieces(analysis, chars, wordless), *_thought_pieces(analysis, wordless)]
    prose = {**_reports(events, chars), **_tasks(analysis), **_sent(analysis)}
    for number, text in prose.items():
        # A commit message is labelled as one, any other text as its event is.
        is_message = events[number].tool is ToolKind.COMMAND and "git commit" in events[number].text
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


# The last message of a turn from this length on is a report: what was announced before it was done, or it says so.
_MIN_CLOSING_CHARS = 300


def _spoken_pieces(analysis: Analysis, chars: int, wordless: Sequence[Statement]) -> Iterator[Statement]:
    """The statements of messages, from as many messages as ``chars`` allows and all that name the focus."""
    events, focus = analysis.events, analysis.focus
    spoken = [number for number, event in enumerate(events) if event.kind in _SPOKEN]
    last_user = max((number for number, event in enumerate(events) if event.kind is EventKind.USER), default=-1)
    is_service = analysis.is_dialogue and any(map(is_service_call, events))
    final_factor = FINAL_FACTOR_OF_CHAT if analysis.is_dialogue else FINAL_FACTOR
    changed = {one.name: one.event for one in analysis.operations if one.action is not FileAction.READ}
    last_change = max(changed.values(), default=-1)
    steps = _steps(analysis, spoken[:-1])
    reported = {events[number].turn for number in analysis.finals if len(events[number].text) >= _MIN_CLOSING_CHARS}
    is_over = _outdated_statements(analysis)
    # Causes named in a turn before its newest one were only suspected.
    newest_cause = {events[cause.event].turn: cause.event for cause in analysis.causes}
    for number in sorted(spoken, key=lambda number: (number not in analysis.finals, -number)):
        text, base, is_final = events[number].text, wordless[number], number in analysis.finals
        if chars <= 0 and not names(text, focus):
            continue
        chars -= len(text)
        # The newest turn may still go on: each of its messages counts as its last.
        is_telling = is_final or events[number].turn == events[-1].turn
        base = base._replace(weight=base.weight * (final_factor if is_telling else 1.0))
        if number + 1 < len(events) and events[number + 1].is_answer:
            continue  # a question that a tool asked stands among the decisions, with the choice
        is_old = number < newest_cause.get(events[number].turn, -1)
        kind = {
            "is_final": is_final,
            "is_past": not is_final or number < analysis.code_changed_at,
            "is_overtaken": number in steps,
            "is_reported": number in steps and events[number].turn in reported,
            "is_answered": number < last_user,
            "is_service": is_service,
            "goes_on": number + 1 < len(events) and events[number + 1].turn == events[number].turn,
        }
        for one in _pieces(text, base, analysis.scores, focus, **kind):
            if is_over(one):
                continue
            mark = standing(one, analysis)
            is_doubted = mark == analysis.words.overruled or (is_old and finds_cause(one.text))
            named = _FILE_NAME.findall(f"{one.text} {one.lead}") if number < last_change else ()
            is_changed = mark != "" or any(changed.get(name, -1) > number for name in named)
            factor = TAKEN_BACK_FACTOR if is_doubted else CHANGED_SINCE_FACTOR if is_changed else 1.0
            yield one._replace(weight=one.weight * factor) if factor != 1.0 else one


def _outdated_statements(analysis: Analysis) -> Callable[[Statement], bool]:
    """A test for statements whose content was soon out of date.

    It is true for a short remark on a fault, where an edit followed before the next message; for what is awaited of
    work in the background, once a report came; for the state of commits or a stash, once a later command changed it;
    for what a program could not reach, once a call of it succeeded.
    """
    events = analysis.events
    changes = {one.event for one in analysis.operations if one.action in (FileAction.EDIT, FileAction.CREATE)}
    edited = sorted(changes | {run.event for run in analysis.runs if REPAIRS.search(run.key)})
    spoken = [number for number, event in enumerate(events) if event.kind in _SPOKEN]
    fixed = set()
    for number, following in pairwise((*spoken, len(events))):
        at = bisect_left(edited, number)
        if len(events[number].text) <= _MAX_FAULT_CHARS and at < len(edited) and edited[at] < following:
            fixed.add(number)
    moved = max((run.event for run in analysis.runs if _MOVES_COMMITS.search(run.key)), default=-1)
    unstashed = max((run.event for run in analysis.runs if _TAKES_OUT_STASH.search(run.key)), default=-1)
    reported = max((number for number, event in enumerate(events) if event.is_report), default=-1)
    done = (run for run in analysis.runs if run.outcome is CommandOutcome.OK)
    reached = {one.partition(" ")[0]: run.event for run in done for one in programs_of(run.command)}

    def is_over(one: Statement) -> bool:
        is_fixed = one.event in fixed and _IS_AMISS.search(one.text) is not None
        later = [(reported, _AWAITS), (unstashed, _TAKES_OUT_STASH), (moved, _OF_COMMITS)]
        later += ((reached.get(name, -1), _CANNOT_REACH) for name in _PROGRAM.findall(one.text))
        return is_fixed or any(one.event < event and speaks_of.search(one.text) for event, speaks_of in later)

    return is_over


# Says that work in the background goes on, or what is to be done after it: `still running`, `once the probe finishes`.
_AWAITS = pattern(
    r"\bstill (?:working|running|going|out)\b|\bwaiting (?:on|for) (?!you)|\brunning (?:\w+ ){0,3}in the background\b"
    r"|\b(?:when|once|after) (?:it|they|all|both|the \w+)(?: \d+)? "
    r"(?:lands?|finish(?:es)?|reports?|returns?|completes?)\b",
    re.IGNORECASE,
)
_TAKES_OUT_STASH = pattern(r"\bgit stash (?:pop|apply)\b")
# A longer message explains something that stays true.
_MAX_FAULT_CHARS = 200
# `the gauge is not defined`, `harbour.py still uses it`; not where a reason follows, as in `… is missing because …`
_IS_AMISS = pattern(
    r"\b(?:(?:is|are) (?:\w+ )?(?:not|missing|unused|stale|wrong|broken|outdated|undefined)|(?:is|are)n't|remains?"
    r"|not (?:imported|defined|declared|exported|called|passed|handled|updated|set|there)"
    r"|(?:still|also) (?:has|have|needs?|says?|uses?))\b(?![^.!?\n]*\b(?:because|since|so)\b)"
    r"|^(?:\w+ ){1,3}(?:issues?|errors?|problems?)\W*$",
    re.IGNORECASE,
)
# `two uncommitted files`, `nothing was pushed`, `ahead of main by 3 commits`
_OF_COMMITS = pattern(
    r"\b(?:uncommitted|unpushed|unmerged|no commits? (?:was |were )?made|not (?:yet )?(?:been )?(?:committed|pushed)"
    r"|nothing (?:has been |was |is )?(?:committed|pushed)|working tree(?:: | is| has| only))"
    r"|\b(?:ahead|behind)\b[^.!?\n]{0,80}\d",
    re.IGNORECASE,
)
# "`gh` can't reach the server"
_CANNOT_REACH = pattern(
    r"\b(?:can(?:not|['’]t)|could(?:n['’]t| not)|unable to) (?:reach|connect|access|authenticate|log in)\b",
    re.IGNORECASE,
)
_PROGRAM = re.compile(r"`(\w[\w.-]*)`")
_MOVES_COMMITS = pattern(rf"\b{GIT}(?:commit|push|rebase|reset|merge|pull)\b")


def _steps(analysis: Analysis, spoken: Iterable[int]) -> set[int]:
    """The messages of the assistant, among ``spoken``, that do not end a turn; in a dialogue none counts as a step."""
    own = (n for n in spoken if analysis.events[n].kind is EventKind.ASSISTANT and not analysis.is_dialogue)
    return {*own} - {*analysis.finals}


# `clock.py`, `Makefile`
_FILE_NAME = re.compile(r"[\w-][\w.-]*\.\w+|\b[A-Z][a-z]+file\b")


def _answers(analysis: Analysis, wordless: Sequence[Statement]) -> Iterator[Statement]:
    """The results of one or two short lines, newest first, of the newest commands and reads.

    Such a result shows a state and is worth weighing whatever it names.
    """
    events, places = analysis.events, analysis.scores.table.lines.numbers
    # The output of written code has no call: its own position takes the place of the call's.
    shown = (
        (number if event.is_of_written_code else event.call, number, event)
        for number, event in enumerate(events)
        if event.kind is EventKind.RESULT and not (event.of_client or event.is_refusal)
    )
    passed, past = passed_checks(analysis.runs), past_looks(analysis)
    for call, number, result in islice(reversed([*shown]), _MAX_ANSWERS):
        if call in passed or call in past:
            continue  # the facts say that it passed, and only the newest of equal runs counts
        if not (result.is_of_written_code or events[call].tool in (ToolKind.COMMAND, ToolKind.READ)):
            continue
        if result.is_error and result.tool is ToolKind.READ and not analysis.is_dialogue:
            continue  # a wrong path
        label = analysis.labels[number]
        shown_lines = (line.strip() for line in own_lines(result.text) if line.strip() and not is_slip(line))
        answered = (line for line in shown_lines if not tells_of_the_past(line, label))
        lines = list(islice(answered, _MAX_ANSWER_LINES + 1))
        text = _BETWEEN_LINES.join(lines)
        is_short = len(lines) <= _MAX_ANSWER_LINES and len(text) <= _MAX_ANSWER_CHARS
        if not is_short or is_noise(text) or started_id(text):
            continue
        if text not in label.text:
            weight = wordless[call].weight * (OUTPUT_FACTOR if label.text else FINAL_FACTOR)
            base = wordless[call]._replace(form=StatementForm.OUTPUT, label=label.text, weight=weight)
            yield base._replace(text=text, record=result.record, place=places.get(lines[0], 0))


def _thought_pieces(analysis: Analysis, wordless: Sequence[Statement]) -> Iterator[Statement]:
    """The statements of thoughts, newest thought first, placed after the statements of the event before it."""
    for at, thought in reversed(analysis.thoughts):
        base = wordless[at]._replace(label=analysis.words.thought, record=thought.record)
        for one in _pieces(thought.text, base, analysis.scores, analysis.focus, goes_on=True):
            yield one._replace(place=one.place + _THOUGHT_PLACE, lead="", weight=one.weight * THOUGHT_FACTOR)


def _wordless(analysis: Analysis) -> list[Statement]:
    """A statement without text for each event, with its record, its place in the table and a weight for its age."""
    events, recency = analysis.events, RECENCY_OF_CHAT if analysis.is_dialogue else RECENCY
    at = analysis.scores.table.length_tokens - sum(len(event.text) // 4 + 1 for event in events)
    found: list[Statement] = []
    for number, event in enumerate(events):
        weight = 1.0 + recency * (number / len(events))
        found.append(Statement("", number, 0, record=event.record, at_tokens=at, weight=weight))
        at += len(event.text) // 4 + 1
    return found


def _reports(events: Sequence[Event], chars: int) -> dict[int, str]:
    """The texts of the newest reports, as many as ``chars`` allows, by position and in order."""
    found: dict[int, str] = {}
    for number in range(len(events) - 1, -1, -1):
        if chars > 0 and (text := _report_words(events[number])):
            found[number] = text
            chars -= len(text)
    # A line found in several reports is the client's remark on a subagent, and JSON is a call of it: both are left out.
    times = Counter(chain.from_iterable(set(text.split("\n")) for text in found.values()))
    return {
        number: "\n".join(line for line in text.split("\n") if _is_own(line, times[line]))
        for number, text in reversed(found.items())
    }


def _is_own(line: str, times: int) -> bool:
    # Fences, headings and rules may repeat: they show what the lines below them are.
    return not line.strip() or line.startswith(("```", "#", "---")) or (times == 1 and '{"' not in line)


def _sent(analysis: Analysis) -> dict[int, str]:
    """The words that successful commands and services sent to others, by the position of the call."""
    events, failed = analysis.events, {run.event for run in analysis.runs if run.outcome is CommandOutcome.FAILED}
    answered = ((call, result) for call, result in results_of(events).items() if call not in failed)
    done = [call for call, result in answered if not (result.is_error or result.is_refusal)]
    lines = {call: command_of(events[call].arguments) for call in done if events[call].tool is ToolKind.COMMAND}
    # Commit messages are wrapped to the width of a screen.
    found = {call: unwrapped(text) for call, line in lines.items() if (text := sent_words(line))}
    if not analysis.is_dialogue:
        services = (call for call in done if is_service_call(events[call]) and not is_lookup(events[call].name))
        given = ((call, parameters(events[call].arguments)) for call in services)
        written = {call: [value for key, value in pairs if key not in _NO_PROSE] for call, pairs in given}
        texts = {call: max(values, key=len) for call, values in written.items() if values}
        found |= {call: text for call, text in texts.items() if len(text) in _TASK_CHARS and len(sentences(text)) > 1}
    return found


# Parameters of services that hold a program.
_NO_PROSE = frozenset({"code", "script", "javascript", "js", "expression", "function", "sql", "query"})


def _tasks(analysis: Analysis) -> dict[int, str]:
    """The text of each file that describes a task, as it was last read and not written anew since, by the position of
    that result."""
    positions = {call: n for n, event in enumerate(analysis.events) if (call := event.call) >= 0}
    read = (one for one in analysis.operations if one.action is FileAction.READ and _TASK_FILE.search(one.path))
    places = {one.path: positions[one.event] for one in read if one.event in positions}
    written = {one.path: one.event for one in analysis.operations if one.action is FileAction.CREATE}
    places = {path: place for path, place in places.items() if written.get(path, -1) < place}
    texts = {place: analysis.events[place].text for place in places.values()}
    return {place: text for place, text in texts.items() if len(text) in _TASK_CHARS}


# `docs/plan-harbour.md`, `TODO.md`
_TASK_FILE = pattern(
    r"(?:^|[/_.-])(?:todos?|plans?|tasks?|issues?|specs?|tickets?|prd|requirements?|brief|story|stories)(?:[/_.-]\S*)?\.md$",
    re.IGNORECASE,
)


def _report_words(event: Event) -> str:
    """What another agent reports in an event, without the client's tags; empty if it is not a report or too short.

    If the report begins by saying that what was asked for could not be found, only that sentence is returned.
    """
    is_report = event.is_report or (event.kind is EventKind.RESULT and short_name(event.name) in REPORTING_TOOLS)
    if not is_report or event.is_error or ATTACHMENTS.of_command in event.text:
        return ""
    if not event.is_report and started_id(event.text):
        return ""  # the work was put in the background: its report comes later
    text = re.sub(r"^<(\w+)>(?:\w+</\1>)?$|^</\w+>$", "", event.text, flags=re.MULTILINE).strip()
    if len(text) < (_MIN_MESSAGE_CHARS if event.call < 0 else _MIN_REPORT_CHARS):
        return ""
    # If it found nothing, the rest of the report is about something else.
    return next((one for one in sentences(text[:_MIN_REPORT_CHARS]) if finds_nothing(one)), text)


def _is_step(sentence: str, *, goes_on: bool, is_past: bool, is_remark: bool) -> bool:
    """Whether a sentence only announces a step or says how it went; ``is_remark``: it is a brief message."""
    is_done_next = goes_on and sentence.endswith(COLONS) and (only_intends(sentence) or _NAMES_STEP.match(sentence))
    is_brief = is_remark and _BRIEF.fullmatch(sentence) is not None
    is_looking = goes_on and is_past and _IS_LOOKING.match(sentence) is not None
    has_gone_on = is_past and (is_passing(sentence) or (goes_on and _IS_PENDING.search(sentence) is not None))
    return bool(is_done_next) or is_looking or is_brief or is_narration(sentence) or has_gone_on


# What the agent waits for, before it goes on: `two checks are still pending`.
_IS_PENDING = pattern(
    r"\bstill (?:in (?:the|its)|(?:\w+ )?(?:in progress|pending|queued|running|waiting|building|starting))\b"
    r"|\b(?:is|are) (?:currently|now) \w+ing (?:its|their|the)\b"
    r"|\b(?:is|are) (?:now )?(?:in progress|queued|pending|under ?way)\b"
    r"|\buntil\b[^.!?]* (?:finish|complete|pass|report|exit|end|land)(?:e?s)?\b",
    re.IGNORECASE,
)


# `Also update the tables:`, `One last check of both harbours:`, before the call that does it
_NAMES_STEP = pattern(
    r"(?:(?:now|and|a|an|one|the|another|final|full|last|more|quick)\b,? )+(?:[\w-]+ ){0,3}"
    r"(?:check|look|pass|review|round|run|search|test|try|verification)\b[^:]{0,100}:$|"
    r"(?:(?:now|then|next|also|and|finally|first)\b,? ){0,2}"
    r"(?:add|apply|build|check|clean|commit|copy|create|delete|edit|extend|fix|format|install|move|push|remove|run|stage"
    r"|start|test|update|verify|wire|write|re-?(?:apply|build|install|name|number|place|run|start|try|write))\b"
    r"[^:]{0,80}:$",
    re.IGNORECASE,
)
# What the agent looks at meanwhile, whatever for: what it finds is stated later.
_IS_LOOKING = pattern(
    r"\W*(?:next|now|meanwhile|so)?,? ?I(?:['’]m| am) (?:now |also |just |only )?"
    r"(?:checking|comparing|confirming|fetching|inspecting|looking|opening|polling|pulling|reading|reviewing|running"
    r"|scanning|searching|tracing|verifying|waiting|watching)\b",
    re.IGNORECASE,
)
# In a brief remark between steps, a few plain words say little: `Loop runs.`, `No syntax error.`
_BRIEF, _MAX_REMARK_CHARS = pattern(r"(?:[A-Z]?[a-z]+ ){1,3}[a-z]+\."), 80


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
    is_reported: bool = False,
    is_answered: bool = False,
    is_service: bool = False,
) -> Iterator[Statement]:
    """The statements of a spoken text that carry information, with their weights.

    ``goes_on``: another event of the turn follows. ``is_final``: the text ends a turn. ``is_past``: code changed since,
    or it ends no turn. ``is_overtaken``: the work went on after it. ``is_reported``: a later report ended its turn.
    ``is_answered``: the user has written since.
    """
    # Now shows all the options, and Settled the one that was chosen: a few of them out of context would mislead.
    options = offered(text, is_service=is_service)

    is_remark = goes_on and is_past and not is_service and len(text) <= _MAX_REMARK_CHARS
    is_step = partial(_is_step, goes_on=goes_on, is_past=is_past, is_remark=is_remark)
    found = [*statements_of(text)]
    stated = [piece for piece, _, _ in found]
    left = concluded(stated) if goes_on else stated
    # The last statement that turns away from an earlier one, by lead: reconsidering one entry of a list leaves other
    # lists as they are.
    reconsidered = {one[2]: at for at, one in enumerate(found) if not goes_on and turns_away(one[0])}
    for place, (piece, (_, form, lead), (opens, closes)) in enumerate(zip(left, found, list_ends(found), strict=True)):
        if form is StatementForm.SENTENCE:
            if (piece[:1].islower() or piece[:1] == "(") and place and found[place - 1][1] is StatementForm.CODE:
                piece = " ".join(sentences(piece)[1:])  # the end of a sentence around the code, or a note on it
            piece = without_end(piece, is_step)
        is_over = only_intends(piece) if is_reported else only_announces(piece)
        if is_noise(piece) or (is_overtaken and (supposes(piece) or is_over)):
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
    """The factor for what a statement says: whether it is code, makes a choice, gives a reason or finds a cause."""
    if form is StatementForm.CODE:
        return CODE_FACTOR * (RETURN_FACTOR if _RETURNS.match(piece) else 1.0)
    cue = CUE_FACTOR if chooses(piece) or gives_reason(piece) else 1.0
    return cue * CAUSE_FACTOR if form in _STATED and finds_cause(piece) else cue


_RETURNS = re.compile(r"\s*(?:return|break|continue|raise|throw)\b")
# A heading above praise or minor points of a review: `Suggestions`, `What's good`.
_MINOR = pattern(
    r"^\W*(?:\w+ )?(?:suggestions?|nits?|minor|low|optional|positives?|praise|strengths?|what(?:'s| is) good)\b",
    re.IGNORECASE | re.MULTILINE,
)
# How a sentence begins that depends on the one before it.
_LEANS = re.compile(r"(?:But|So|This|That|These|Those|It|They|However|Also|Then|Both|And|Instead|Here)\b")
# A question to the user above its answers: `Should I move the gauge?`. Not `Can the gauge be moved?`, which the agent
# answers itself.
_OFFERS = re.compile(
    r"\b(?:do you (?:want|prefer|need)|would you|(?:should|shall) (?:I|we))\b|\byou(?:r|'d)?\b.*\?$",
    re.IGNORECASE | re.MULTILINE,
)


def _rows(answer: Statement) -> list[str]:
    return answer.text.split(_BETWEEN_LINES)
