"""Ranks the exchanges of the middle, to choose those that stay: by salience, by nearness to the task, or by a plug-in.

By salience: the scores are the digest's. A fact that a kept record or an exchange chosen before shows counts nothing
any more: lazy greedy coverage (Minoux 1978), by gain / cost.

By nearness to the task, which is the newest messages of the user and the focus: by shared words (BM25 as in Robertson
and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009), or by the cosine of embeddings. These
come from a provider's model through the run's client (redacted, cached and within its limits) or from a static model on
this machine.

By a plug-in: found by an entry point of the group ``compact.importance``.
"""

from __future__ import annotations

import base64
import heapq
import json
import math
import re
from array import array
from collections import Counter as Tally
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from compactor_cli.digest.events import events
from compactor_cli.digest.language import is_term, terms
from compactor_cli.digest.salience import build, score
from compactor_cli.formats.harness import user_text
from compactor_cli.llm import model_calls
from compactor_cli.llm.model_calls import Broken, Call, ChatMessage, ModelFailure, Price, Reply, Speaker, Wanted
from compactor_cli.model.errors import PluginFailed, UsageError
from compactor_cli.model.plan import Importance, Middle, Ranking
from compactor_cli.model.plugins import PluginGroup, WhenFailing, load_plugin, plugin_failed, plugin_names
from compactor_cli.model.settings import KEPT_BY, SEMANTIC, SMART, Keep

if TYPE_CHECKING:
    from compactor_cli.llm.model_client import BackgroundEventLoop, ModelClient
    from compactor_cli.llm.redact import Redactor


F = TypeVar("F", bound=Hashable)


def importance_of(keep: Keep) -> Importance | None:
    """What ranks the middle by these settings, offline; None where only the newest records stay, in one run.

    Raises UsageError for a name that is neither built in nor that of a plug-in.
    """
    if keep.by == SMART:
        return Salience()
    if keep.by == SEMANTIC:
        return WordOverlap()
    return None if keep.by in KEPT_BY else PluginImportance(keep.by, WhenFailing.FAIL)


class Salience:
    """Ranks by density of the digest's scores. Deterministic; time is linear in the transcript, except for sorting."""

    def rank(self, middle: Middle) -> Ranking:
        """The blocks by what they add to the kept records and to the blocks ranked before them."""
        messages = middle.transcript.messages
        sent = [i for i, message in enumerate(messages) if not message.superseded]
        found = events(middle.transcript, sent)
        table = build(found)
        scores = score(table, focus=middle.focus)
        # What each record states: rows of atoms, and words in conversations that are not about code.
        facts: dict[int, set[int | str]] = {}
        for event in found:
            own = facts.setdefault(event.record, set())
            for line in event.text.split("\n"):
                own.update(table.lines.atoms[table.lines.numbers[line.strip()]])
            if scores.terms:
                own.update(terms(event.text))
        shown = {fact for record in middle.kept for fact in facts.get(record, ())}
        blocks = [{fact for record in block for fact in facts.get(record, ())} - shown for block in middle.blocks]
        values: dict[int | str, float] = dict(enumerate(scores.rows))
        values.update(scores.terms)
        return Ranking(order=greedy(blocks, middle.tokens, values))


def greedy(blocks: Sequence[set[F]], costs: Sequence[float], values: Mapping[F, float]) -> list[int]:
    """The numbers of the blocks by gain / cost; facts of earlier blocks gain nothing, blocks without gain are left out.

    Removes from each of ``blocks`` the facts that an earlier block of the order holds.
    """

    def worth(number: int) -> float:
        # An exact sum: the order of a set's members varies, and a rounded sum would vary with it.
        return math.fsum(values.get(fact, 0.0) for fact in blocks[number]) / costs[number]

    heap = [(-worth(number), number) for number in range(len(blocks))]
    heapq.heapify(heap)
    order: list[int] = []
    covered_facts: set[F] = set()
    while heap:
        _, number = heapq.heappop(heap)
        blocks[number].difference_update(covered_facts)
        now = -worth(number)
        if now and heap and (now, number) > heap[0]:
            heapq.heappush(heap, (now, number))
        elif now:
            order.append(number)
            covered_facts |= blocks[number]
    return order


# The usual constants of BM25.
K1 = 1.2
B = 0.75


class Index:
    """Documents, each given as its words, to be searched by BM25."""

    def __init__(self, documents: Sequence[Iterable[str]]) -> None:
        counts = [Tally(document) for document in documents]
        lengths = [count.total() for count in counts]
        mean = sum(lengths) / len(counts) if counts else 1.0
        self._norms = [K1 * (1 - B + B * length / (mean or 1.0)) for length in lengths]
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for i, count in enumerate(counts):
            for word, number in count.items():
                self._postings.setdefault(word, []).append((i, number))

    def scores(self, query: Iterable[str]) -> dict[int, float]:
        """Scores by document number, for every document that holds one of these words; repeated words count once."""
        found: dict[int, float] = {}
        for word in dict.fromkeys(query):
            postings = self._postings.get(word, [])
            idf = math.log(1 + (len(self._norms) - len(postings) + 0.5) / (len(postings) + 0.5))
            for i, count in postings:
                found[i] = found.get(i, 0.0) + idf * count * (K1 + 1) / (count + self._norms[i])
        return found


# How many of the user's messages stand for the task.
NEWEST_MESSAGES = 3

# Names of several words: `tide_table`, `tideTable`, `TideTable`.
_NAME = re.compile(r"[A-Za-z]+_\w+|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+")
_WITHIN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


class WordOverlap:
    """Ranks by the words that an exchange shares with the task, rare ones counting more (BM25)."""

    def rank(self, middle: Middle) -> Ranking:
        """The blocks that share a word with the task, best first; of equals the newest."""
        index = Index([_terms(text) for text in texts(middle)])
        scores = index.scores(term for text in task(middle) for term in _terms(text))
        return Ranking(order=sorted(scores, key=lambda number: (-scores[number], -number)))


def task(middle: Middle) -> tuple[str, ...]:
    """The newest messages of the user, newest last, and the focus."""
    messages = middle.transcript.messages
    spoken = (user_text(message) for message in reversed(messages))
    newest = [text for text, _ in zip(filter(None, spoken), range(NEWEST_MESSAGES), strict=False)]
    return (*reversed(newest), *((middle.focus,) if middle.focus else ()))


def texts(middle: Middle) -> tuple[str, ...]:
    """The text of each block: words, calls and results."""
    by_record: dict[int, list[str]] = {}
    for event in events(middle.transcript, sorted(i for block in middle.blocks for i in block)):
        by_record.setdefault(event.record, []).append(event.text)
    return tuple("\n".join(text for i in block for text in by_record.get(i, ())) for block in middle.blocks)


def _terms(text: str) -> Iterator[str]:
    """The words of a text that carry meaning, and those within names: ``tide_table`` also gives ``tide``, ``table``."""
    yield from terms(text)
    for name in _NAME.findall(text):
        yield from filter(is_term, (word.lower() for word in _WITHIN.findall(name)))


Vector = Sequence[float]
# The vectors of texts, in their order; raises ModelFailure.
Embed = Callable[[Sequence[str]], Sequence[Vector]]
# Embedding models read a few hundred to a few thousand tokens: of a longer text they get its beginning and its end.
FIRST_CHARS = 3_000
LAST_CHARS = 1_000


class EmbeddingSimilarity:
    """Ranks by the largest cosine between a block and one of the user's newest messages or the focus."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed

    def rank(self, middle: Middle) -> Ranking:
        """The blocks, the nearest first, of equals the newest; by shared words, with a note, where the model fails."""
        asked, candidates = task(middle), texts(middle)
        if not asked:
            return Ranking(order=())
        most_chars = FIRST_CHARS + LAST_CHARS
        shown = [
            text or " " if len(text) <= most_chars else f"{text[:FIRST_CHARS]}\n…\n{text[-LAST_CHARS:]}"
            for text in (*asked, *candidates)
        ]
        try:
            lengths = [(vector, math.sqrt(_dot(vector, vector)) or 1.0) for vector in self._embed(shown)]
        except ModelFailure as failure:
            note = f"what stays was chosen by words, not by meaning: {failure.reason}"
            return replace(WordOverlap().rank(middle), note=note)
        vectors = [[value / length for value in vector] for vector, length in lengths]
        wanted, found = vectors[: len(asked)], vectors[len(asked) :]
        near = [max(_dot(vector, other) for other in wanted) for vector in found]
        return Ranking(order=sorted(range(len(found)), key=lambda number: (-near[number], -number)))


def _dot(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


# Texts a request: at about 1,000 tokens each far below what providers take at once.
BATCH = 64


def embedder(
    client: ModelClient,
    loop: BackgroundEventLoop,
    model: str,
    *,
    api_base: str = "",
    price: Price | None = None,
    new_redactor: Callable[[], Redactor] | None = None,
) -> Embed:
    """A function from texts to the vectors that this model gives them."""
    name = model_calls.served_name(model, api_base)

    async def replies_to(calls: Sequence[Call]) -> Sequence[Reply]:
        import asyncio

        return await asyncio.gather(*(client.ask(call) for call in calls))

    def embed(texts: Sequence[str]) -> Sequence[Vector]:
        redactor = new_redactor() if new_redactor else None
        clean = redactor.redact_all(list(texts)) if redactor else list(texts)
        messages = tuple(ChatMessage(speaker=Speaker.USER, text=text) for text in clean)
        call = Call(model=name, messages=(), max_tokens=0, api_base=api_base, price=price, wanted=Wanted.VECTORS)
        calls = [replace(call, messages=messages[at : at + BATCH]) for at in range(0, len(messages), BATCH)]
        found: list[Vector] = []
        for reply, call in zip(loop.run(replies_to(calls)), calls, strict=True):
            vectors = [array("f", base64.b64decode(text)) for text in json.loads(reply.text)]
            if len(vectors) != len(call.messages) or len({len(vector) for vector in vectors}) > 1:
                raise Broken("the reply does not hold a vector of one length for each text")
            found += vectors
        return found

    return embed


def not_asked(model: str) -> Embed:
    """A function that raises ModelFailure with the reason: for plans, which send nothing."""

    def embed(texts: Sequence[str]) -> Sequence[Vector]:
        raise ModelFailure(f"{model} is only asked when something is done")

    return embed


LOCAL_PREFIX = "local:"


def local_embedder(name: str) -> Embed:
    """A function from texts to the vectors of the model ``name``: a folder, or a name in the Hugging Face cache.

    Raises UsageError where model2vec is not installed, or no such model is on this machine.
    """
    try:
        from model2vec import StaticModel
    except ImportError as error:
        step = "pip install 'compactor-cli[embed]'"
        raise UsageError("a local embedding model needs model2vec", next_step=step) from error
    folder = name
    if not Path(name).is_dir():
        from huggingface_hub import snapshot_download

        try:
            folder = str(snapshot_download(name, local_files_only=True))
        except Exception as error:
            step = "name a folder, or download it first: hf download NAME"
            raise UsageError(f"no embedding model {name} is on this machine", next_step=step) from error
    try:
        model: Any = StaticModel.from_pretrained(folder)
    except Exception as error:
        raise UsageError(f"no embedding model can be read ({error})", place=folder) from error

    def embed(texts: Sequence[str]) -> Sequence[Vector]:
        found: list[Vector] = model.encode(list(texts)).tolist()
        return found

    return embed


class PluginImportance:
    """Ranks by the plug-in of this name; where it fails, the newest exchanges stay.

    The plan then notes why, and ``warn`` is called, once for all transcripts. Raises UsageError if no plug-in of this
    name is installed.
    """

    def __init__(self, name: str, when_failing: WhenFailing, warn: Callable[[str], object] = lambda text: None) -> None:
        names = plugin_names(PluginGroup.IMPORTANCE)
        if name not in names:
            advice = f"one of {', '.join((*KEPT_BY, *names))}"
            raise UsageError(f"“{name}” is not a choice", next_step=advice, place="--keep")
        self._name = name
        self._when_failing = when_failing
        self._warn = warn
        self._is_warned = False

    def rank(self, middle: Middle) -> Ranking:
        """The plug-in's ranking. Raises PluginFailed where it fails and ``when_failing`` is FAIL."""
        try:
            importance: Importance = load_plugin(PluginGroup.IMPORTANCE, self._name)
            ranking = importance.rank(middle)
            if not all(0 <= number < len(middle.blocks) for number in ranking.order):
                raise PluginFailed(f"the importance {self._name} failed (it ranks what is not there)")
        except Exception as error:
            failure = plugin_failed(PluginGroup.IMPORTANCE, self._name, error)
            if self._when_failing is WhenFailing.FAIL:
                raise failure from error
            note = f"{failure.what}: the newest stay"
            if not self._is_warned:
                self._is_warned = True
                self._warn(note)
            return Ranking(order=(), note=note)
        return ranking
