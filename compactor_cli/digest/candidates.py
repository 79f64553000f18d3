"""Candidates: the statements worth weighing for a summary, each with what its place makes of its worth."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from heapq import nlargest
from itertools import chain, groupby, islice
from math import fsum, log
from typing import TYPE_CHECKING

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.causes import concluded, finds_cause, supposes, turns_away
from compactor_cli.digest.checklists import State
from compactor_cli.digest.checks import passed_checks
from compactor_cli.digest.choice import COST_POWER, MIN_ATOM_CHANCE, names
from compactor_cli.digest.choices import asks_the_user, is_option, offered
from compactor_cli.digest.commands import CommandOutcome, sent_words
from compactor_cli.digest.corrections import COMMIT_LABEL, over_since, standing
from compactor_cli.digest.events import Event, EventKind, is_service_call, results_of
from compactor_cli.digest.failures import is_open
from compactor_cli.digest.files import is_undone
from compactor_cli.digest.language import word_beginnings
from compactor_cli.digest.names import PATH_ALONE
from compactor_cli.digest.noise import (
    DEFINERS,
    MODIFIER,
    finds_nothing,
    is_amid_code,
    is_import,
    is_narration,
    is_noise,
    is_passing,
    is_scrap,
    only_announces,
    only_intends,
)
from compactor_cli.digest.salience import Scores
from compactor_cli.digest.settled import chooses, gives_reason
from compactor_cli.digest.statements import (
    GAP,
    MAX_CHARS,
    Statement,
    StatementForm,
    list_ends,
    sentences,
    statements_of,
    windowed,
    without_end,
)
from compactor_cli.digest.tools import REPORTING_TOOLS, FileAction, ToolKind, command_of, is_own, short_name
from compactor_cli.digest.wants import newest_request
from compactor_cli.formats.client_signs import ATTACHMENTS
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
OUTPUT_FACTOR = 0.4
# Thoughts weigh up what messages then state, and stand after the statements of the event before them.
THOUGHT_FACTOR, _THOUGHT_PLACE = 0.4, 1_000
# A piece of something larger.
SCRAP_FACTOR = 0.5
# So many line feeds written as two characters: a text inside a value of a message to a program.
_MANY_ESCAPES = 2
# Statements that name the focus are quoted around it, in about this many characters.
_FOCUS_CHARS = 200
# A statement that was spoken is shortened from this length on.
_SPOKEN_CHARS = 600
# Characters of spoken text that are looked at, and lines of output weighed, for one token of the budget.
_SPOKEN_CHARS_PER_TOKEN = 60
_OUTPUTS_PER_TOKEN = 0.16
_MIN_OUTPUTS = 40
# From this many on (2,500 tokens), lines out of the middle of code that was read are among them.
_MIN_WITH_CODE = 400
_MAX_ANSWERS, _MAX_ANSWER_LINES, _MAX_ANSWER_CHARS = 60, 2, 160
_MIN_REPORT_CHARS, _TASK_CHARS = 400, range(200, 8_000)
_BETWEEN_LINES = " · "
_LINES_PER_ATOM = 3
# So many lines, the newest, are compared with what is under way.
_MAX_COMPARED = 20_000
# By the length of a line.
_LINE_COST = tuple((6 + chars) ** COST_POWER for chars in range(MAX_CHARS + 1))
_SPOKEN = (EventKind.ASSISTANT, EventKind.SUMMARY)
_STATED = (StatementForm.SENTENCE, StatementForm.ITEM)
_OUTPUT = (EventKind.CALL, EventKind.RESULT)


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
    outputs = _outputs(analysis, max(_MIN_OUTPUTS, int(budget_tokens * _OUTPUTS_PER_TOKEN)), wordless)
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
    is_over = over_since(analysis)
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
    passed = passed_checks(analysis.runs)
    for call, number, result in islice(reversed([*shown]), _MAX_ANSWERS):
        if call in passed:
            continue  # that it passed stands with the facts
        if not (result.is_of_written_code or events[call].tool in (ToolKind.COMMAND, ToolKind.READ)):
            continue
        answered = (line.strip() for line in result.text.strip().split("\n") if not _is_slip(line))
        lines = list(islice(answered, _MAX_ANSWER_LINES + 1))
        text = _BETWEEN_LINES.join(lines)
        is_short = len(lines) <= _MAX_ANSWER_LINES and len(text) <= _MAX_ANSWER_CHARS
        if not is_short or is_noise(text) or ATTACHMENTS.started.search(text):
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
    return line.startswith("```") or (times == 1 and '{"' not in line)


def _sent(analysis: Analysis) -> dict[int, str]:
    """What commands that did not fail sent to others in words, by the position of the call."""
    events, failed = analysis.events, {run.event for run in analysis.runs if run.outcome is CommandOutcome.FAILED}
    answered = ((call, result) for call, result in results_of(events).items() if call not in failed)
    done = (call for call, result in answered if not (result.is_error or result.is_refusal))
    lines = {call: command_of(events[call].arguments) for call in done if events[call].tool is ToolKind.COMMAND}
    return {call: text for call, line in lines.items() if (text := sent_words(line))}


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
    if event.kind is not EventKind.RESULT or short_name(event.name) not in REPORTING_TOOLS or event.is_error:
        return ""
    if ATTACHMENTS.of_command in event.text:
        return ""
    text = re.sub(r"^<(\w+)>(?:\w+</\1>)?$|^</\w+>$", "", event.text, flags=re.MULTILINE).strip()
    if len(text) < _MIN_REPORT_CHARS:
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
        shown, weight = _shortened(piece, scores, focus, _SPOKEN_CHARS), base.weight * factor
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


def _shortened(text: str, scores: Scores, focus: frozenset[str], max_chars: int = MAX_CHARS) -> str:
    """A long text as its parts around the names most likely to be used again; around the focus, where it names it."""
    if len(text) <= _FOCUS_CHARS:
        return text
    lowered = text.lower() if focus else ""
    spots = [(at, at + len(name)) for name in sorted(focus) if (at := lowered.find(name)) >= 0]
    if spots and len(lowered) == len(text):
        return windowed(text, spots, _FOCUS_CHARS)
    if len(text) <= max_chars:
        return text
    best = nlargest(6, sorted(atom_texts(text[:20_000])), key=scores.of)
    if (". " in text or "; " in text) and (whole := _in_sentences(text[:20_000], best, max_chars)):
        return whole
    return windowed(text, [(at, at + len(atom)) for atom in best if (at := text.find(atom)) >= 0])


def _in_sentences(text: str, best: Sequence[str], max_chars: int) -> str:
    """The sentences, or clauses, of a long line with these names, the most important first, as many as fit; or none.

    Half a sentence may say the opposite of the whole.
    """
    found: Sequence[str] = sentences(text)
    found = found if len(found) > 1 else re.split(r"(?<=;) ", text)
    if len(found) == 1 or not all(one in text for one in found):
        return ""
    taken: set[int] = set()
    left = max_chars
    for name in best:
        at = next((i for i, one in enumerate(found) if name in one), -1)
        if at >= 0 and at not in taken and len(found[at]) <= left:
            taken.add(at)
            left -= len(found[at]) + len(GAP)
    kept = [(one if at in taken else "") for at, one in enumerate(found)]
    runs = [" ".join(row) for is_kept, row in groupby(kept, bool) if is_kept]
    begins, ends = "" if kept[0] else GAP.lstrip(), "" if kept[-1] else GAP.rstrip()
    return f"{begins}{GAP.join(runs)}{ends}" if runs else ""


def _outputs(analysis: Analysis, number: int, wordless: Sequence[Statement]) -> Iterator[Statement]:
    """The lines of calls and results that name most of what will be used again, for their length."""
    events, scores, focus = analysis.events, analysis.scores, analysis.focus
    edits = {call: result for call, result in results_of(events).items() if events[call].tool is ToolKind.EDIT}
    undone = {call for call, result in edits.items() if is_undone(events[call], result)}
    made = edits.keys() - undone
    looks = {run.event for run in analysis.runs if run.is_look}
    # What a check printed that passed tells no more than that it did.
    passed = passed_checks(analysis.runs)
    under_way = UnderWay(analysis, islice(reversed(scores.table.lines.numbers), _MAX_COMPARED))
    replaced, places = dict[int, list[str]](), cache(_places)
    for one in analysis.operations:
        if one.action is FileAction.EDIT:
            replaced.setdefault(one.event, []).extend(old for old, _ in one.replaced)

    @cache
    def found_by(event: int) -> frozenset[str]:
        """The lines by which an edit names its place: it leaves them as they were."""
        return frozenset(line.strip() for old in replaced.get(event, ()) for line in old.split("\n"))

    for text, place in _telling_lines(events, scores, number, focus, under_way):
        base = wordless[scores.table.lines.last[place]]
        if (call := events[base.event].call) in made and text in events[call].text:
            base = wordless[call]  # its result repeats what it wrote
        event, label = events[base.event], analysis.labels[base.event]
        is_steering = event.of_client and not analysis.is_dialogue
        is_steering |= event.tool is ToolKind.PLAN or (event.kind is EventKind.CALL and is_own(event.name))
        is_label = event.kind is EventKind.CALL and event.tool in (ToolKind.READ, ToolKind.COMMAND)
        # What came of an edit repeats it; of one that was not made, the first line says why.
        is_of_it = base.event in undone or event.call in made
        is_reason = event.text.lstrip().startswith(text) and not text.endswith(":")
        is_of_it = is_of_it or (event.call in undone and not is_reason)
        is_of_it = is_of_it or text in found_by(base.event) or (event.call in passed and not names(text, focus))
        if is_steering or is_of_it or event.refusal is not None or text == event.name or text in label.text:
            continue
        is_result = event.kind is EventKind.RESULT
        # What was looked for or run is the label of what came of it, and a run's last line tells of all its steps.
        # The path of a listing alone is for the index of names.
        is_nothing = is_label or text in analysis.progress or is_import(_PLACE.sub("", text) if ":" in text else text)
        is_nothing |= bool(_PREAMBLE.match(text) or (is_result and PATH_ALONE.fullmatch(text.strip("•*-'\", "))))
        if is_noise(text) or (is_nothing and not names(text, focus)):
            continue
        is_file = event.tool is ToolKind.READ or (event.tool is ToolKind.COMMAND and label.is_file)
        # What stands in a file can be looked at again, whoever wrote it.
        is_look = base.event in made or (is_result and (is_file or event.call in looks))
        if (is_look and _is_slip(text)) or (is_result and ATTACHMENTS.started.search(text)):
            continue
        near = under_way.worth(text) if is_look else 1.0
        is_part = is_look and base.event not in made and near < _NEAR and is_amid_code(text)
        if is_part and not (number >= _MIN_WITH_CODE or analysis.is_dialogue or names(text, focus)):
            continue
        form = StatementForm.LOOKED if is_look else StatementForm.OUTPUT
        weight = OUTPUT_FACTOR * base.weight * (SCRAP_FACTOR if is_scrap(text) else 1.0)
        weight *= near
        at = places(event.text).get(text, 0)
        shown, named = _shortened(text, scores, focus), (base.event, at, form, "", label.text)
        weight *= SCRAP_FACTOR if shown.count("\\n") >= _MANY_ESCAPES else 1.0
        # The first line of a log is the newest commit: another one does not stand for it.
        is_later = label.text.startswith("`git log") and not event.text.lstrip().startswith(text)
        yield Statement(shown, *named, base.record, base.at_tokens, weight, opens=not is_later)


def _places(output: str) -> dict[str, int]:
    """The lines of an output that hold a word, each with its place among them."""
    found: dict[str, int] = {}
    for place, line in enumerate(filter(_HAS_WORD.search, map(str.strip, output.split("\n")))):
        found.setdefault(line, place)
    return found


_HAS_WORD = re.compile(r"\w")
# What a listing, a difference and a run of tests say of themselves before they say anything, and the code around a
# failure.
_PREAMBLE = re.compile(
    r"(?:> *)?\d+ +(?:\d+ +)?[|│]\s|total \d+$|index [0-9a-f]{7}|diff --git |@@ |(?:---|\+\+\+) |platform \S+ -- "
    r"|(?:plugins|rootdir|cachedir|configfile): |On branch \S+$|Your branch is |Untracked files:$"
    r"|Changes (?:not staged for commit|to be committed):$|no changes added to commit|nothing (?:added )?to commit"
    r"|at .*\((?:node:)?(?:internal/|\S*/node_modules/)|File \"\S*/site-packages/"
)
# How a shell and its tools say that they could not show something: no line of what was looked at.
_SLIP = re.compile(
    r"\S+: (?:-c: )?line \d+: |\S+: .*(?:No such file or directory|Operation not permitted|Permission denied)$"
    r"|\S+: (?:illegal|invalid|unrecognized|unknown) option\b|[Uu]sage: \S+ \["
)


def _is_slip(line: str) -> bool:
    return ": " in line and _SLIP.match(line) is not None


# Where a search found a line: `src/clock.py:12:`.
_PLACE = re.compile(r"^[\w./@+-]+:(?:\d+:)?\s*(?=\S)")


def _telling_lines(
    events: Sequence[Event], scores: Scores, number: int, focus: frozenset[str], under_way: UnderWay
) -> Iterator[tuple[str, int]]:
    """The distinct lines of calls and results by the chances of their names, a few for each name; with their places.

    After them those that name the focus, whatever their chances.
    """
    lines, chance = scores.table.lines, scores.rows.__getitem__
    texts, used = list(lines.numbers), bytearray(len(scores.rows))
    # There may be a million lines: their places are the numbers that the table holds, and no new ones.
    places = zip(lines.numbers.values(), lines.last, strict=True)
    outputs = [place for place, last in places if events[last].kind in _OUTPUT]
    naming = [place for place in outputs if names(texts[place], focus)]
    # By place, 0 for a line that is left out; a dict would take ten times as much.
    worths, named = array("d", bytes(8 * len(texts))), set(naming)
    for place in outputs:
        atoms = lines.atoms[place]
        if atoms and place not in named and (value := sum(map(chance, atoms))) >= MIN_ATOM_CHANCE:
            worths[place] = value / _LINE_COST[min(len(texts[place]), MAX_CHARS)]
    taken, most = set[int](), number
    # From the newest on, and so sorted: of equals the later one comes first.
    telling = [place for place in reversed(outputs) if worths[place]]
    for place in sorted(telling, key=worths.__getitem__, reverse=True):
        if number <= 0:
            break
        fresh = [row for row in lines.atoms[place] if used[row] < _LINES_PER_ATOM]
        if sum(map(chance, fresh)) < MIN_ATOM_CHANCE:
            continue
        for row in fresh:
            used[row] += 1
        number -= 1
        taken.add(place)
        yield texts[place], place
    # After them what has to do with the work; where that leaves room, a short session may be shown line by line.
    rest = (place for place in islice(reversed(outputs), _MAX_COMPARED) if place not in taken)
    near = nlargest(max(most // 8, number), rest, key=lambda place: under_way.worth(texts[place]))
    yield from ((texts[place], place) for place in (*near, *naming))


def _rows(answer: Statement) -> list[str]:
    return answer.text.split(_BETWEEN_LINES)


# A line that shares nothing with the work is worth 1. What is added for each word that few lines have, and for a line
# that defines something; none is worth more than this.
SHARED, DEFINES = 1.0, 2.0
MAX_WORTH = 4.0
# What a line out of the middle of code that was read is worth at least where it is shown.
_NEAR = 2.5
# A word in a larger share of the lines tells none of them from the others.
_MAX_SHARE = 0.03
_MIN_SHARING_LINES = 5
# How many characters of a request, and of the last message, are looked at.
_MAX_UNDER_WAY_CHARS = 4_000
# Before it, where a search found it: `src/clock.py:12:`.
_DEFINES = re.compile(
    rf"(?:[\w./@+-]++:)?(?:\d+[:-]\s*)?{MODIFIER}*(?:{DEFINERS}|module)\s+[\w$(*]"
    rf"|export (?:default )?(?:const|let|var) |(?:CREATE|create) (?:TABLE|table) "
)


def defines(line: str) -> bool:
    """Whether a line of code declares something that is used by its name."""
    return _DEFINES.match(line) is not None


class UnderWay:
    """How much of what is under way a line shares, by words that few of the ``lines`` have.

    Under way is what the user asked last, the open steps, what fails, and the last message of the assistant.
    """

    def __init__(self, analysis: Analysis, lines: Iterable[str]) -> None:
        self._wanted = set(word_beginnings("\n".join(_texts_under_way(analysis)))) - {""}
        # `intersection` makes no set of the line itself, which would hold ten times as much.
        wanted = self._wanted.intersection
        self._shared = {line: wanted(word_beginnings(line)) for line in lines}
        times, number = Counter(chain.from_iterable(self._shared.values())), len(self._shared) + 1
        most = max(_MIN_SHARING_LINES, int(_MAX_SHARE * number))
        self._worth = {word: log(number / many) / log(number) for word, many in times.items() if many <= most}

    def worth(self, line: str) -> float:
        """A factor for a line: more than 1 where it shares what few lines have."""
        words = self._shared[line] if line in self._shared else self._wanted.intersection(word_beginnings(line))
        shared = fsum([self._worth[word] for word in words if word in self._worth])
        return min(MAX_WORTH, 1.0 + SHARED * shared + (DEFINES if defines(line) else 0.0))


def _texts_under_way(analysis: Analysis) -> Iterable[str]:
    newest, events = newest_request(analysis), analysis.events
    last = max(analysis.finals, default=-1)
    steps = (todo.text for todo in analysis.plan.todos if todo.state is not State.DONE)
    failing = (f"{error.command}\n{error.line}" for error in analysis.errors if is_open(error, len(events)))
    asked = (newest.text[:_MAX_UNDER_WAY_CHARS],) if newest else ()
    return chain(asked, steps, failing, (events[last].text[-_MAX_UNDER_WAY_CHARS:],) if last >= 0 else ())
