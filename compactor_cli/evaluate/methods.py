"""Methods: ways to summarise a middle within a token budget: the digest and simple baselines, chosen by name.

A baseline prepares a case once and then writes it at any budget. All see what the digest sees: the cleaned events of
the middle. The digest is called as the engine calls it, once and in rounds of updates. The frame (preface and marker)
is the same for every summary, and is taken from the budget of all methods.
"""

from __future__ import annotations

import io
import math
import os
import shlex
import subprocess
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from itertools import pairwise

import orjson

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.digest import Digest
from compactor_cli.digest.events import Event, EventKind
from compactor_cli.evaluate.cuts import EvalCase, hashed, part_of, plain_events
from compactor_cli.evaluate.measures import LINE_CHARS, TEMPLATE, lines_of, pieces, view, words
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.group.exchanges import group
from compactor_cli.llm.importance import greedy
from compactor_cli.model.errors import CompactError, Place, UsageError
from compactor_cli.model.marker import PLACEHOLDER_HASH, Marker, without_marker
from compactor_cli.model.summary import Answer, Source, Summariser, Summary
from compactor_cli.model.transcript import Container, Message, PreviousSummary, Record, Role, Text, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.tokens import most_that_fits, shown_texts
from compactor_cli.read.jsonl import OnInvalid, read_records
from compactor_cli.render.template import bare_request, load_template, render

Line = tuple[int, str]  # its position among the lines, and its text
Count = Callable[[str], int]  # the tokens of a text
Write = Callable[[int], str]  # the summary for a budget in tokens


@dataclass(frozen=True, slots=True)
class Baseline:
    """A way to write the summary of a middle."""

    name: str  # in tables and options
    prepare: Callable[[EvalCase, Count], Write]  # makes the function that writes the case within a budget


_LABELS = {EventKind.USER: "User: ", EventKind.ASSISTANT: "Assistant: ", EventKind.CALL: "Call: "}
_ELLIPSIS = " … "
_MASK = "[result omitted]"


def _tail(case: EvalCase, count: Count, *, masks: bool = False) -> Write:
    masked = (_MASK if masks and event.kind is EventKind.RESULT else _event_text(event) for event in case.middle_events)
    text = "\n".join(masked)
    return lambda budget: last(text, budget, count)


def _head_tail(case: EvalCase, count: Count) -> Write:
    text = _whole(case.middle_events)

    def write(budget: int) -> str:
        start = first(text, budget // 2, count)
        end = last(text, max(0, budget - count(start) - 2), count)
        return f"{start}\n{end}"

    return write


def _middle_out(case: EvalCase, count: Count) -> Write:
    texts = [_event_text(event) for event in case.middle_events]
    longest = max((len(text) for text in texts), default=0)

    def shortened(text: str, chars: int) -> str:
        if len(text) <= chars + len(_ELLIPSIS):
            return text
        return text[: (chars + 1) // 2] + _ELLIPSIS + (text[-(chars // 2) :] if chars > 1 else "")

    def make(chars: int) -> str:
        return "\n".join(shortened(text, chars) for text in texts) if chars else ""

    def write(budget: int) -> str:
        chars = most_that_fits(longest, make, budget, count)
        # If not even one character of each text fits, those of the newest ones are taken.
        return make(chars) if chars else last(make(1), budget, count)

    return write


def _prose(case: EvalCase, count: Count) -> Write:
    return partial(prose, case, count=count)


def _lexrank(case: EvalCase, count: Count) -> Write:
    return partial(best, lexrank_order(_numbered_lines(case)), count=count)


def _log_frequency(case: EvalCase, count: Count) -> Write:
    return partial(best, coverage_order(case), count=count)


def _mmr(case: EvalCase, count: Count) -> Write:
    asked = [event.text for event in case.prefix_events if event.kind is EventKind.USER]
    query = "\n".join([*asked[-1:], _whole(case.tail_events)])
    return partial(best, mmr_order(_numbered_lines(case), query), count=count)


def _bare_list(case: EvalCase, count: Count) -> Write:
    weights = _weights(case.middle_events)
    positions = {atom: i for i, atom in enumerate(sorted(weights))}
    # The atoms that most events have come first.
    atoms = sorted(((positions[atom], atom) for atom in weights), key=lambda pair: (-weights[pair[1]], pair))

    def write(budget: int) -> str:
        def make(n: int) -> str:
            return "\n".join(pieces(" ".join(atom for _, atom in sorted(atoms[:n]))))

        return make(most_that_fits(len(atoms), make, budget, count))

    return write


def _numbered_lines(case: EvalCase) -> list[Line]:
    """The distinct lines of the middle, long ones cut into pieces, numbered in order."""
    every = (piece for event in case.middle_events for line in lines_of(_event_text(event)) for piece in pieces(line))
    return list(enumerate(dict.fromkeys(every)))


def _event_text(event: Event) -> str:
    return _LABELS.get(event.kind, "") + event.text


def _whole(events: Iterable[Event]) -> str:
    return "\n".join(_event_text(event) for event in events)


BASELINES = (
    Baseline("head-tail", _head_tail),  # first and last part of the middle
    Baseline("tail", _tail),  # last part of the middle
    Baseline("middle-out", _middle_out),  # every message shortened around its middle
    Baseline("prose", _prose),  # the user's words and whole texts of the assistant, newest first
    Baseline("masking", partial(_tail, masks=True)),  # the last part of the middle with tool results masked
    Baseline("lexrank", _lexrank),  # the lines that are central in the graph of similar lines
    Baseline("mmr", _mmr),  # lines similar to the tail and unlike one another
    Baseline("log-frequency", _log_frequency),  # lines that cover the most frequent atoms
    Baseline("bare-list", _bare_list),  # only atoms: a probe that wins FUR and carries no information
)


def choose(names: Iterable[str], extra: Iterable[Baseline] = ()) -> tuple[Baseline, ...]:
    """The baselines of these names, each once, in the order given; ``all`` stands for every one.

    Raises UsageError for an unknown name.
    """
    known = {baseline.name: baseline for baseline in (*BASELINES, *extra)}
    chosen: dict[str, Baseline] = {}
    for name in names:
        if name != "all" and name not in known:
            raise UsageError(f"no baseline is called {name!r}", next_step=f"known: all, {', '.join(known)}")
        chosen |= known if name == "all" else {name: known[name]}
    return tuple(chosen.values())


BUDGET_VARIABLE = "COMPACT_BUDGET_TOKENS"
TIMEOUT_SECONDS = 300


def filter_baseline(name: str, compact: Callable[[EvalCase, int], bytes]) -> Baseline:
    """A baseline made of ``compact``, which returns a compacted transcript for a case and a budget.

    The summary is the text in its output that is not of the head or the tail, cut to the budget.
    """
    return Baseline(name, partial(_filtered, compact))


def _filtered(compact: Callable[[EvalCase, int], bytes], case: EvalCase, count: Count) -> Write:
    return lambda budget: first(new_text(compact(case, budget), case), budget, count)


def external_baseline(command: str) -> Baseline:
    """A baseline that runs a command line, without a shell; its name is ``cmd:`` and the command line.

    The program gets the records before the cut as JSONL, and in the variable ``COMPACT_BUDGET_TOKENS`` the tokens that
    its summary may take. Writing raises UsageError if it cannot be started, fails or takes more than five minutes,
    since figures without it would mislead.
    """
    return filter_baseline(f"cmd:{command}", partial(_output_of, command))


def _output_of(command: str, case: EvalCase, budget: int) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603 -- running the user's own command is what the option is for
            shlex.split(command),
            input=as_jsonl(case.prefix),
            env={**os.environ, BUDGET_VARIABLE: str(budget)},
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        complaint = error.stderr.decode("utf-8", "replace").strip().splitlines()
        what = f"the baseline command ended with status {error.returncode}: {command}"
        raise UsageError(what, next_step=complaint[-1] if complaint else "run it by hand on one transcript") from error
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"the baseline command does not run: {error}", next_step="check --baseline-cmd") from error
    return done.stdout


def as_jsonl(transcript: Transcript) -> bytes:
    """The records as lines, unchanged if they are lines already."""
    if transcript.frame.container is Container.LINES:
        return b"".join(record.raw + b"\n" for record in transcript.records)
    return b"".join(orjson.dumps(record.value) + b"\n" for record in transcript.records)


def new_text(output: bytes, case: EvalCase) -> str:
    """The texts in a compacted transcript that are not in head or tail; the whole output if it is no transcript."""
    kept = {event.text for event in (*case.head_events, *case.tail_events)}
    try:
        records = read_records(io.BytesIO(output), "-", OnInvalid.KEEP)
        found = [event.text for part in open_transcripts(records) for event in plain_events(part)]
    except CompactError:
        return output.decode("utf-8", "replace")
    return "\n".join(text for text in found if text not in kept)


# Only this many characters per token of the budget are considered: few tokens are longer.
_MOST_CHARS_A_TOKEN = 16


def first(text: str, budget_tokens: int, count: Count) -> str:
    """The longest beginning of a text that fits the budget."""
    text = text[: budget_tokens * _MOST_CHARS_A_TOKEN]
    return text[: most_that_fits(len(text), lambda n: text[:n], budget_tokens, count)]


def last(text: str, budget_tokens: int, count: Count) -> str:
    """The longest end of a text that fits the budget."""
    text = text[-budget_tokens * _MOST_CHARS_A_TOKEN :] if budget_tokens else ""
    kept = most_that_fits(len(text), lambda n: text[len(text) - n :], budget_tokens, count)
    return text[len(text) - kept :]


def best(ranked: Sequence[Line], budget_tokens: int, count: Count) -> str:
    """The best lines that fit, in the order of the transcript; ``ranked`` has the best first.

    The first line that does not fit as a whole is cut.
    """

    def joined(n: int, piece: str = "") -> str:
        chosen = [*ranked[:n], (ranked[n][0], piece)] if piece else ranked[:n]
        return "\n".join(line for _, line in sorted(chosen))

    taken = most_that_fits(len(ranked), joined, budget_tokens, count)
    if taken == len(ranked):
        return joined(taken)
    rest = ranked[taken][1][: LINE_CHARS * 4]
    return joined(taken, rest[: most_that_fits(len(rest), lambda n: joined(taken, rest[:n]), budget_tokens, count)])


USER_RATIO = 0.3  # of the budget, for the user's messages at most
# Texts of at least 200 characters come first, then those of at least 60: long ones explain, short ones announce.
LONG_CHARS = (200, 60)


def prose(case: EvalCase, budget_tokens: int, count: Count) -> str:
    """Messages of the user, then of the assistant, the newest first, as they fit; in the order of the transcript.

    Texts are whole, except that the first message of the user that does not fit is cut.
    """
    texts = {place: event.text for place, event in enumerate(case.middle_events)}
    users = [place for place in reversed(texts) if case.middle_events[place].kind is EventKind.USER]
    replies = [place for place in reversed(texts) if case.middle_events[place].kind is EventKind.ASSISTANT]
    replies.sort(key=lambda place: sum(len(texts[place]) < chars for chars in LONG_CHARS))
    chosen: dict[int, str] = {}
    left = budget_tokens - _take(users, texts, int(budget_tokens * USER_RATIO), chosen, count, cut=True)
    _take(replies, texts, left, chosen, count)
    return "\n".join(text for _, text in sorted(chosen.items()))


def _take(
    places: Iterable[int],
    texts: dict[int, str],
    budget_tokens: int,
    chosen: dict[int, str],
    count: Count,
    *,
    cut: bool = False,
) -> int:
    """Add the texts that still fit to ``chosen``; returns the tokens that they take.

    With ``cut``, the first text that does not fit as a whole is cut.
    """
    used = 0
    for place in places:
        text = texts[place]
        tokens = count(f"{text}\n")
        if used + tokens > budget_tokens and cut:
            text = first(text, budget_tokens - used - 1, count)
            tokens = count(f"{text}\n")
            cut = False
        if text and used + tokens <= budget_tokens:
            chosen[place] = text
            used += tokens
    return used


MOST_LINES = 1_200  # in the graph
LEAST_WORDS = 4  # of a line in the graph
THRESHOLD = 0.1  # edges below this cosine are left out (from the paper on LexRank)
DAMPING = 0.15  # the chance of a random jump (from the paper on LexRank)
ROUNDS = 25  # of the power iteration
MOST_LINES_A_WORD = 150  # words on more lines are ignored: they join everything, and take time
RELEVANCE = 0.7  # the weight of relevance; the rest is for novelty


def lexrank_order(lines: Sequence[Line]) -> list[Line]:
    """The lines by centrality, then those that are not in the graph, newest first.

    Erkan and Radev, "LexRank: Graph-based Lexical Centrality as Salience in Text Summarization", JAIR 22 (2004).
    """
    sampled = [line for line in lines if len(words(line[1])) >= LEAST_WORDS]
    if len(sampled) > MOST_LINES:
        sampled = [sampled[i * len(sampled) // MOST_LINES] for i in range(MOST_LINES)]
    graph = _graph(_vectors([text for _, text in sampled]))
    size = len(graph)
    sums = [math.fsum(edges.values()) or 1.0 for edges in graph]
    rank = [1.0 / size] * size if size else []
    for _ in range(ROUNDS):
        rank = [
            DAMPING / size + (1 - DAMPING) * math.fsum(weight * rank[j] / sums[j] for j, weight in edges.items())
            for edges in graph
        ]
    central = sorted(range(len(sampled)), key=lambda i: (-rank[i], sampled[i][0]))
    return [sampled[i] for i in central] + _rest(lines, sampled)


def mmr_order(lines: Sequence[Line], query: str) -> list[Line]:
    """The lines by maximal marginal relevance to ``query``, then those that were left out, newest first.

    Carbonell and Goldstein, "The use of MMR, diversity-based reranking", SIGIR 1998.
    """
    worded = [line for line in lines if len(words(line[1])) >= LEAST_WORDS]
    vectors = _vectors([text for _, text in worded])
    asked = _normal(Tally(words(query)))
    shared = (((asked[word], value) for word, value in vector.items() if word in asked) for vector in vectors)
    relevance = [math.fsum(one * other for one, other in pairs) for pairs in shared]
    near = sorted(range(len(worded)), key=lambda i: (-relevance[i], -i))[:MOST_LINES]
    graph = _graph([vectors[i] for i in near])
    likeness = [0.0] * len(near)
    waiting = set(range(len(near)))
    chosen: list[Line] = []
    while waiting:
        one = max(waiting, key=lambda i: (RELEVANCE * relevance[near[i]] - (1 - RELEVANCE) * likeness[i], -i))
        waiting.remove(one)
        chosen.append(worded[near[one]])
        for i, cosine in graph[one].items():
            likeness[i] = max(likeness[i], cosine)
    return chosen + _rest(lines, chosen)


def _rest(lines: Sequence[Line], taken: Iterable[Line]) -> list[Line]:
    seen = {position for position, _ in taken}
    return [line for line in reversed(lines) if line[0] not in seen]


def _normal(weights: Mapping[str, float]) -> dict[str, float]:
    length = math.sqrt(math.fsum(value * value for value in weights.values())) or 1.0
    return {word: value / length for word, value in weights.items()}


def _vectors(texts: Sequence[str]) -> list[dict[str, float]]:
    counts = [Tally(words(text)) for text in texts]
    held: Tally[str] = Tally(word for count in counts for word in count)
    idf = {word: math.log(len(texts) / number) + 0.01 for word, number in held.items()}
    return [_normal({word: number * idf[word] for word, number in count.items()}) for count in counts]


def _graph(vectors: Sequence[Mapping[str, float]]) -> list[dict[int, float]]:
    """For each vector, the others whose cosine with it reaches the threshold, with the cosine."""
    postings: dict[str, list[int]] = {}
    for i, vector in enumerate(vectors):
        for word in vector:
            postings.setdefault(word, []).append(i)
    graph: list[dict[int, float]] = [{} for _ in vectors]
    for i, vector in enumerate(vectors):
        cosines: dict[int, float] = {}
        for word, value in vector.items():
            others = postings[word]
            for j in others if len(others) <= MOST_LINES_A_WORD else ():
                if j < i:
                    cosines[j] = cosines.get(j, 0.0) + value * vectors[j][word]
        for j, cosine in cosines.items():
            if cosine >= THRESHOLD:
                graph[i][j] = graph[j][i] = cosine
    return graph


# The average characters of a token. Costs only rank the lines; the budget is kept by counting tokens.
_CHARS_A_TOKEN = 4


def _weights(events: Iterable[Event]) -> dict[str, float]:
    """The weight of each atom: log(1 + the number of events that have it)."""
    held: Tally[str] = Tally()
    for event in events:
        held.update(view(event.text).atoms)
    return {atom: math.log1p(number) for atom, number in held.items()}


def coverage_order(case: EvalCase) -> list[Line]:
    """The lines in the order of a greedy choice by the weight of the atoms that they add, for each token."""
    weights, lines = _weights(case.middle_events), _numbered_lines(case)
    costs = [1 + len(line) / _CHARS_A_TOKEN for _, line in lines]
    return [lines[number] for number in greedy([set(atom_texts(line)) for _, line in lines], costs, weights)]


WriteSummary = Callable[[Summary], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digested:
    """The answer of a summariser, and its text."""

    answer: Answer
    text: str


def body(summary: Summary) -> str:
    """The text of a summary's sections as the template writes them, without the frame."""
    return without_marker(render(summary, load_template(TEMPLATE), _MARKER))


def framed(case: EvalCase, budget_tokens: int) -> WriteSummary:
    """The function that writes a summary of this case at this budget, with the frame."""
    marker = Marker(
        transcript=PLACEHOLDER_HASH,
        first=case.middle[0] + 1,
        last=case.middle[-1] + 1,
        records=len(case.prefix.records),
        tokens=case.middle_tokens + case.kept_tokens,
        end=PLACEHOLDER_HASH,
        state=PLACEHOLDER_HASH,
    )
    return partial(render, template=load_template(TEMPLATE).sized(budget_tokens), marker=marker)


def frame_tokens(case: EvalCase, budget_tokens: int, count: Count) -> int:
    """The tokens of the frame of this case at this budget, with the line break that follows it."""
    return count(f"{framed(case, budget_tokens)(EMPTY)}\n")


EMPTY = Summary(source=Source.DIGEST, sections=())
_MARKER = Marker(transcript="0" * 16, first=1, last=1, records=1, tokens=0, end="0" * 16)


def digest_of(case: EvalCase, budget_tokens: int, count: Count, write: WriteSummary = body) -> Digested:
    """The digest of the middle of a case; the text that ``write`` makes is what counts against the budget."""
    return _summarised(Digest(), case.prefix, case.middle, budget_tokens, count, write)


def _summarised(
    summariser: Summariser,
    transcript: Transcript,
    covered: Sequence[int],
    budget_tokens: int,
    count: Count,
    write: WriteSummary = body,
    state: bytes | None = None,
) -> Digested:
    """The summary of these records; all others of the transcript are kept."""
    kept = tuple(sorted(set(range(len(transcript.records))).difference(covered)))
    request = bare_request(transcript, covered, budget_tokens, count, write)
    answer = summariser.summarise(replace(request, kept=kept, state=state))
    return Digested(answer=answer, text=write(answer.summary))


class Carry(StrEnum):
    """What one round passes on to the next."""

    STATE = "state"  # the text and the counter table
    TEXT = "text"  # the text alone


def last_summary(
    summariser: Summariser, case: EvalCase, rounds: int, carry: Carry, budget_tokens: int, count: Count
) -> str:
    """The summary after this many rounds, each at this budget; there are fewer rounds if the exchanges are fewer."""
    text, state, at = "", None, len(case.head)
    parts = chunks(case, rounds)
    for number, chunk in enumerate(parts, 1):
        rest = (*chunk, *case.tail) if number == len(parts) else chunk
        transcript = with_summary(case, text, rest)
        covered = range(at, at + len(chunk) + bool(text))
        found = _summarised(summariser, transcript, covered, budget_tokens, count, state=state)
        text, state = found.text, found.answer.state if carry is Carry.STATE else None
    return text


def chunks(case: EvalCase, number: int) -> list[tuple[int, ...]]:
    """The middle in at most ``number`` runs of about the same size that do not divide exchanges."""
    borders = [i for i in group(case.prefix.messages).borders if case.middle[0] <= i <= case.middle[-1] + 1]
    sizes = [sum(map(len, shown_texts(message))) for message in case.prefix.messages]
    total = sum(sizes[i] for i in case.middle)
    found: list[tuple[int, ...]] = []
    start, done = case.middle[0], 0
    for before, border in pairwise(borders):
        done += sum(sizes[before:border])
        if done * number >= total * (len(found) + 1) or border == borders[-1]:
            found.append(tuple(range(start, border)))
            start = border
    return found


def with_summary(case: EvalCase, text: str, rest: Sequence[int]) -> Transcript:
    """A transcript of the head, the summary ``text`` as one written by compact (none if it is empty), and the rest."""
    part = part_of(case.prefix, (*case.head, *rest))
    if not text:
        return part
    at, previous = len(case.head), PreviousSummary(origin="compact", text=text)
    record = Record(raw=text.encode(), ending=b"\n", value=None, place=Place(path="-", line=at + 1))
    message = Message(role=Role.USER, parts=(Text(text=text),), summary=previous)
    records = (*part.records[:at], record, *part.records[at:])
    return hashed(replace(part, records=records, messages=(*part.messages[:at], message, *part.messages[at:])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The results of repeated runs."""

    is_same: bool  # whether a second run gives the same text: a hard gate
    # The share of the summary's atoms that are left when the summary alone is summarised again, at the same budget and
    # with its state.
    kept_ratio: float


def repeat(summariser: Summariser, case: EvalCase, budget_tokens: int, count: Count) -> Repeat:
    """Summarise the case twice, and once the summary itself."""
    found, same = (_summarised(summariser, case.prefix, case.middle, budget_tokens, count) for _ in range(2))
    before, kept_ratio = atom_texts(found.text) - case.schema, 1.0
    if before:
        transcript = with_summary(case, found.text, ())
        again = _summarised(summariser, transcript, (len(case.head),), budget_tokens, count, state=found.answer.state)
        kept_ratio = len(before & atom_texts(again.text)) / len(before)
    return Repeat(is_same=found.text == same.text, kept_ratio=kept_ratio)
