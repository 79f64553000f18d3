"""What a summary is made from, as quoted text in spans that fit a model: records, and those of an earlier summary.

Nothing in quoted text can pass for a mark written by compact. Every mark of a prompt stands at the beginning of a line
and opens with ``<<`` and a letter or digit; a line of the source that begins so, or that is a heading of the summary's
template, gets ``| `` before it, and the opening of a summary's marker line is written with another bracket. Quoted text
can thus end no quotation and open no section.

Every block is in exactly one leaf: cutting never drops one, and `check_coverage` proves it on the prompts themselves.
A block that no prompt has room for is shortened in its middle; its text and the report state that.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum, StrEnum
from functools import lru_cache
from itertools import accumulate

import orjson

from compactor_cli.digest.cleaning import plain, without_block
from compactor_cli.group.exchanges import group, turns
from compactor_cli.model.errors import InvariantError
from compactor_cli.model.marker import Marker, find_marker, without_marker
from compactor_cli.model.settings import PruneRule
from compactor_cli.model.summary import Request
from compactor_cli.model.transcript import Media, Message, Part, Role, Text, ToolCall, ToolResult, Transcript
from compactor_cli.model.value import dataclass
from compactor_cli.plan.models import window_tokens
from compactor_cli.plan.shorten import shortened

QUOTE = "| "
_MARKER, _HARMLESS = "[compact/", "(compact/"
# Everything that a reader may take for a line break; in prompts it becomes a line feed.
_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
# The tag of the rules that clients repeat to their models inside other texts.
_REMINDER = "system-reminder"
# This many characters of a block are never cut: its header, and the note that something was left out.
_LEAST_CHARS = 200
_ANY_KEYS = orjson.OPT_NON_STR_KEYS


class Border(IntEnum):
    """What begins with a record; the higher the value, the better a place to cut before it."""

    RECORD = 0
    EXCHANGE = 1
    TURN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One record as a prompt shows it."""

    record: int  # its index in its transcript
    name: str  # its number, counted from 1, after its strand's prefix
    text: str
    cut_chars: int = 0  # left out of its texts
    tokens: int = 0  # 0 until they are counted
    border: Border = Border.RECORD  # what begins with it
    strand: int = 0  # which of `Earlier.strands` it comes from, counted from 0


def flatten(
    transcript: Transcript,
    indices: Iterable[int],
    *,
    rule: PruneRule | None = None,
    headings: Sequence[str] = (),
    prefix: str = "",
    strand: int = 0,
) -> tuple[Block, ...]:
    """A block for each of these records that has a text, in order. Linear in the text.

    Left out are thinking, the reminders that clients send with other texts, and records without any other content;
    of media there is only a note. Tool results are cut by ``rule``; every other text is whole.

    ``headings``: lines of the template, which no quoted line may equal. ``prefix``: what stands before the numbers of
    records that come from another transcript. The tokens of the blocks are not counted yet.
    """
    messages = transcript.messages
    names, quoted, begins = tool_names(messages), quoter(headings), borders(messages)
    blocks: list[Block] = []
    for index in indices:
        message, name = messages[index], f"{prefix}{index + 1}"
        # Who speaks, and of results: by which tools, and whether one is an error.
        tools = filter(None, dict.fromkeys(result.name or names.get(result.id, "") for result in message.results))
        words = [message.role.value, *(quoted(tool).replace("\n", " ").replace(">>", "> >") for tool in tools)]
        words += ["error"] if any(result.is_error for result in message.results) else []
        texts, cut_chars = [f"<<{name} {' '.join(words) if message.summary is None else 'earlier summary'}>>"], 0
        for part in () if message.is_meta else message.parts:
            text = whole = _part_text(part)
            if isinstance(part, ToolResult) and rule and rule.kind == "tool-result" and len(whole) > rule.over_chars:
                text = shortened(whole, rule.first_chars, rule.last_chars, rule.marker)
                cut_chars += max(len(whole) - len(text), 0)
            if text.strip():
                texts.append(quoted(text).strip("\n"))
        if len(texts) > 1:
            text, border = "\n".join(texts), begins[index]
            found = Block(record=index, name=name, text=text, cut_chars=cut_chars, border=border, strand=strand)
            blocks.append(found)
    return tuple(blocks)


def quoter(headings: Iterable[str]) -> Callable[[str], str]:
    """A function that quotes a text, so that no line of it is a mark written by compact or one of these headings."""
    pattern = _forged(tuple(sorted({heading for heading in headings if heading})))

    def quoted(text: str) -> str:
        text = _BREAKS.sub("\n", plain(text)).replace(_MARKER, _HARMLESS)
        # Halves of surrogate pairs have no bytes in UTF-8.
        return pattern.sub(rf"{QUOTE}\g<0>", text.encode(errors="replace").decode())

    return quoted


@lru_cache(maxsize=32)
def _forged(headings: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(re.escape(heading) for heading in headings)
    lines = rf"|(?:{names})[ \t]*$" if names else ""
    return re.compile(rf"^[ \t]*(?:<<(?=\w){lines})", re.MULTILINE | re.IGNORECASE)


def tool_names(messages: Sequence[Message]) -> Mapping[str, str]:
    """The names of tools by the ids of their calls."""
    return {call.id: call.name for message in messages for call in message.calls if call.id}


def _part_text(part: Part) -> str:
    """The text of a part as a prompt shows it; empty for thinking."""
    if isinstance(part, Text):
        return without_block(part.text, _REMINDER)
    if isinstance(part, ToolResult):
        media = f"\n({part.media_count} images or files)" if part.media_count else ""
        return without_block(part.text, _REMINDER) + media
    if isinstance(part, ToolCall):
        return call_text(part)
    return f"({part.kind})" if isinstance(part, Media) else ""


def call_text(call: ToolCall) -> str:
    """A call as text: ``call NAME``, then a line ``key=value`` for each argument."""
    if isinstance(call.arguments, str):
        return f"call {call.name}\n{call.arguments}".rstrip()
    lines = [f"call {call.name}"]
    for key, value in call.arguments.items():
        try:
            text = value if isinstance(value, str) else orjson.dumps(value, default=str, option=_ANY_KEYS).decode()
        except (TypeError, ValueError):
            text = str(value)
        lines.append(f"{key}={text}")
    return "\n".join(lines)


# From the first digits of a SHA-256 to the archived transcript, or None where there is none.
LoadOriginal = Callable[[str], Transcript | None]

# Originals hold summaries of older originals; a chain longer than this is not worth reading again.
_MOST_GENERATIONS = 20


class Previous(StrEnum):
    """What to do with an earlier summary."""

    UPDATE = "update"  # it is given to the model, which brings it up to date
    REBUILD = "rebuild"  # the records it stands for are summarised anew, where they can be had
    KEEP = "keep"  # it stays as it is, in front of the new one


@dataclass(frozen=True, slots=True, kw_only=True)
class Strand:
    """Some records of one transcript."""

    transcript: Transcript
    indices: tuple[int, ...]
    prefix: str = ""  # stands before their numbers in prompts; empty for the transcript that is compacted


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What a summary is made from."""

    strands: tuple[Strand, ...]  # the records, oldest first
    previous: str = ""  # the text of an earlier summary; empty where there is none, or its records are there
    notes: tuple[str, ...] = ()  # for people


def earlier(request: Request, policy: Previous, load_original: LoadOriginal) -> Earlier:
    """What the requested summary is made from: its covered records, and the earlier summary that they begin with.

    That is every covered summary before the first reply (the user's first request may precede it). Summaries further
    inside stay among the records.
    """
    messages = request.transcript.messages
    covered = frozenset(request.covered)
    opening: list[int] = []
    texts: list[str] = []
    for index in request.covered:
        message = messages[index]
        if message.summary is not None:
            opening.append(index)
            text = without_marker(message.summary.text).strip()
            # Record numbers get the hash of the transcript that they count, to be found again later: `[1f3a9c77:12]`.
            marker = find_marker(message.text)
            texts.append(_TAG.sub(rf"[{marker.transcript[:_HASH_CHARS]}:\1]", text) if marker else text)
        elif message.role is Role.ASSISTANT and not message.is_meta:
            break
    texts = [text for text in texts if text]
    own = Strand(transcript=request.transcript, indices=tuple(i for i in request.covered if i not in opening))
    notes: tuple[str, ...] = ()
    if policy is Previous.REBUILD and opening:
        if marker := find_marker(messages[opening[-1]].text):
            old = tuple(_archived(marker, load_original, _MOST_GENERATIONS))
        else:
            # A client's own summary: the records that it replaced stand before it in the same file.
            gone = (i for i in range(opening[-1]) if messages[i].superseded and not messages[i].is_meta)
            before = tuple(i for i in gone if i not in covered)
            old = (Strand(transcript=request.transcript, indices=before, prefix="s"),) if before else ()
        if old:
            return Earlier(strands=(*old, own))
        notes = ("the originals of the earlier summary are not at hand: it was updated",) if texts else ()
    return Earlier(strands=(own,), previous="\n\n".join(texts), notes=notes)


# The records of a statement at the end of its line in a summary: ` [3,12-15]`.
_TAG = re.compile(r"(?<= )\[(\d+(?:[-,]\d+)*)\]$", re.MULTILINE)
_HASH_CHARS = 8


def _archived(marker: Marker, load_original: LoadOriginal, generations: int) -> Iterator[Strand]:
    """The records that a marker stands for, from its archived transcript; before them those of older summaries in it.

    Yields nothing where the transcript is not archived.
    """
    original = load_original(marker.transcript) if generations else None
    if original is None:
        return
    messages = original.messages
    indices = tuple(range(max(marker.first - 1, 0), min(marker.last, len(messages))))
    marked = [(i, found) for i in indices if messages[i].summary and (found := find_marker(messages[i].text))]
    if marked and (older := tuple(_archived(marked[-1][1], load_original, generations - 1))):
        yield from older
        gone = {i for i, _ in marked}
        indices = tuple(i for i in indices if i not in gone)
    yield Strand(transcript=original, indices=indices, prefix="abcdefghijklmnopqrstuvwxyz"[generations])


# Where a model's window is not known: the smallest of models in use. One with a smaller window refuses the prompt, and
# the spans are cut again.
DEFAULT_WINDOW_TOKENS = 32_000
# Models read longer prompts less well, and several leaves side by side are faster than a long one.
MOST_LEAF_TOKENS = 200_000
# The share of a window that is used: counts by the model's own vocabulary may differ by a quarter.
_USED_RATIO = 0.75
_LEAST_ROOM_TOKENS = 1_000
_LEAST_FILL_RATIO = 0.6  # of an even share: no leaf is cut shorter for the sake of a better border
_MOST_TRIES = 12
_NEAR_RATIO = 0.2  # how far from its middle, as a share of the leaf, a better border is preferred


Leaf = tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptLimits:
    """What fits in the window of a model."""

    leaf_tokens: int  # of quoted text in one prompt
    reply_tokens: int  # of the longest reply


def prompt_limits(model: str, summary_tokens: int, rules_tokens: int) -> PromptLimits:
    """The room for quoted text and for the reply in the window of a model, next to the rules."""
    usable = int((window_tokens(model) or DEFAULT_WINDOW_TOKENS) * _USED_RATIO)
    reply = min(summary_tokens, usable // 4)
    leaf = min(usable - reply - rules_tokens, MOST_LEAF_TOKENS)
    return PromptLimits(leaf_tokens=max(leaf, _LEAST_ROOM_TOKENS), reply_tokens=reply)


def borders(messages: Sequence[Message]) -> tuple[Border, ...]:
    """What begins with each record."""
    found = [Border.RECORD] * len(messages)
    for index in group(messages).borders[:-1]:
        found[index] = Border.EXCHANGE
    for turn in turns(messages):
        # A turn that begins inside an exchange, while a tool still runs, is not a good place to cut.
        found[turn.start] = Border.TURN if found[turn.start] is Border.EXCHANGE else found[turn.start]
    return tuple(found)


def cut(blocks: Sequence[Block], room_tokens: int, count: Callable[[str], int]) -> tuple[Leaf, ...]:
    """Leaves of at most ``room_tokens`` and about equal size, cut at turns, else exchanges, else records."""
    fitting = [fitted(block, room_tokens, count) for block in blocks]
    sizes = [0, *accumulate(block.tokens for block in fitting)]
    leaves: list[Leaf] = []
    at = 0
    while (furthest := max(bisect_right(sizes, sizes[at] + room_tokens) - 1, at + 1)) < len(fitting):
        rest = sizes[-1] - sizes[at]
        even = sizes[at] + rest // -(-rest // room_tokens)
        # Cut at the best border in reach; of equal ones, at the nearest to an even size.
        least = bisect_right(sizes, sizes[at] + int((even - sizes[at]) * _LEAST_FILL_RATIO))
        places = range(min(max(least, at + 1), furthest), furthest + 1)
        ranks = {place: (fitting[place].border, -abs(sizes[place] - even)) for place in places}
        stop = max(places, key=ranks.__getitem__)
        leaves.append(tuple(fitting[at:stop]))
        at = stop
    return (*leaves, tuple(fitting[at:])) if fitting else ()


def split(leaf: Leaf, count: Callable[[str], int]) -> tuple[Leaf, ...]:
    """The leaf in two, for a model that found it too long; a leaf of one record is cut to half of its text."""
    if len(leaf) == 1:
        return ((fitted(leaf[0], max(leaf[0].tokens // 2, 1), count),),)
    sizes = [0, *accumulate(block.tokens for block in leaf)]

    def badness(place: int) -> tuple[bool, int, float]:
        """Sorts places near the middle first, those by border, then by distance from the middle."""
        off = abs(sizes[place] / max(sizes[-1], 1) - 0.5)
        return off > _NEAR_RATIO, -leaf[place].border, off

    middle = min(range(1, len(leaf)), key=badness)
    return leaf[:middle], leaf[middle:]


def fitted(block: Block, room_tokens: int, count: Callable[[str], int]) -> Block:
    """The block itself if there is room for it, else with a note of what is left out in place of its middle."""
    found, chars = block, len(block.text)
    for _ in range(_MOST_TRIES):
        if found.tokens <= room_tokens:
            break
        chars = int(chars * min(room_tokens / found.tokens, 0.95) * 0.98)
        half = max(chars, _LEAST_CHARS) // 2
        text = shortened(block.text, half, half)
        cut_chars = block.cut_chars + len(block.text) - 2 * half
        found = replace(block, text=text, cut_chars=cut_chars, tokens=count(text))
    return found


def merge_groups(sizes: Sequence[int], room_tokens: int) -> tuple[tuple[int, int], ...]:
    """Groups of consecutive summaries to be joined in one prompt, as ``(start, stop)``.

    Each holds at least two, whatever their size, so that every level has fewer; the last may hold one.
    """
    groups: list[tuple[int, int]] = []
    at = 0
    while at < len(sizes):
        stop, used = at, 0
        while stop < len(sizes) and (stop - at < 2 or used + sizes[stop] <= room_tokens):
            used += sizes[stop]
            stop += 1
        groups.append((at, stop))
        at = stop
    return tuple(groups)


def check_coverage(expected: Iterable[str], shown: Iterable[str]) -> None:
    """Raises `InvariantError` unless the prompts show every record exactly once, in order; then nothing is sent."""
    wanted, found = tuple(expected), tuple(shown)
    if wanted == found:
        return
    missing, twice = sorted(set(wanted) - set(found)), sorted({name for name in found if found.count(name) > 1})
    raise InvariantError(f"records in no prompt: {missing[:10]}; in more than one: {twice[:10]}; or out of order")
