"""The tree in a Claude Code session: what hangs on what, and what the client no longer sends.

Records hang on each other by ``parentUuid``; the order of the lines is not decisive. A compaction hangs a
new root (``system/compact_boundary``) into the file, a rewind a second prompt beside an abandoned one.
Observed with Claude Code 1.0.128 to 2.1.329 resuming such files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compactor_cli.normalise.contents import string

Value = Mapping[str, Any]


class Tree:
    """The records of one session by uuid; of records with the same uuid, the first.

    ``main`` are the indices of the conversation: user and assistant records, without those of subagents if
    there are others.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        self.values = values
        self.index: dict[str, int] = {}
        for i, value in enumerate(values):
            if uuid := string(value.get("uuid")):
                self.index.setdefault(uuid, i)
        talk = [i for i, value in enumerate(values) if is_talk(value)]
        own = [i for i in talk if values[i].get("isSidechain") is not True]
        self.main = tuple(own or talk)
        self.is_main = frozenset(self.main)
        self.has_own = bool(own)

    def is_of_subagent(self, i: int) -> bool:
        """Whether a record belongs to a subagent, in a file that is not the subagent's own."""
        return self.has_own and self.values[i].get("isSidechain") is True

    def parent(self, i: int) -> int | None:
        """The index of the record that this one hangs on; None for a root and where it is missing."""
        return self.index.get(string(self.values[i].get("parentUuid")))

    def ancestors(self, i: int) -> Iterator[int]:
        """The record itself, then what it hangs on, up to a root, a missing parent or a circle."""
        seen: set[int] = set()
        at: int | None = i
        while at is not None and at not in seen:
            seen.add(at)
            yield at
            at = self.parent(at)


def superseded(tree: Tree) -> frozenset[int]:
    """The records that the client does not send: before the last boundary, rewound, or there twice."""
    boundary = last_boundary(tree)
    before = frozenset[int]() if boundary is None else _replaced(tree, boundary)
    return before | _rewound(tree) | _repeated(tree)


def last_boundary(tree: Tree) -> int | None:
    """The last compaction boundary that is in force."""
    marks = (i for i in range(len(tree.values) - 1, -1, -1) if is_boundary(tree.values[i]))
    return next((i for i in marks if _in_force(tree, i)), None)


def _in_force(tree: Tree, boundary: int) -> bool:
    """Whether the newest record hangs behind the boundary: clients ignore a boundary beside the chain.

    A chain that breaks off behind the boundary counts as behind it.
    """
    if named_uuids(tree.values[boundary]):
        return True
    if not tree.main or tree.main[-1] < boundary:
        return False
    top = tree.main[-1]
    for top in tree.ancestors(tree.main[-1]):
        if top == boundary:
            return True
    return top > boundary


def _replaced(tree: Tree, boundary: int) -> frozenset[int]:
    """What is before the boundary in the file and neither named by it nor hung behind it."""
    staying = _with_siblings(tree, _preserved(tree, boundary))
    behind: dict[int, bool] = {}
    for i in range(boundary):
        path = []
        for at in tree.ancestors(i):
            path.append(at)
            if at == boundary or at in behind:
                break
        answer = path[-1] == boundary or behind.get(path[-1], False)
        behind.update(dict.fromkeys(path, answer))
    return frozenset(i for i in range(boundary) if not behind[i] and i not in staying)


def named_uuids(boundary: Value) -> tuple[str, ...]:
    """The uuids of records that a boundary names as still sent."""
    metadata = boundary.get("compactMetadata")
    named = metadata.get("preservedMessages") if isinstance(metadata, dict) else None
    uuids = [*_strings(named, "allUuids"), *_strings(named, "uuids")]
    segment = metadata.get("preservedSegment") if isinstance(metadata, dict) else None
    ends = [segment.get("headUuid"), segment.get("tailUuid")] if isinstance(segment, dict) else []
    return tuple(uuids or [uuid for uuid in ends if isinstance(uuid, str)])


def _preserved(tree: Tree, boundary: int) -> set[int]:
    """The named records; of a segment also what lies on the chain between its ends."""
    named = {tree.index[uuid] for uuid in named_uuids(tree.values[boundary]) if uuid in tree.index}
    if len(named) != 2:
        return named
    first, last = sorted(named)
    chain = list(tree.ancestors(last))
    return named | set(chain[: chain.index(first)]) if first in chain else named


def _with_siblings(tree: Tree, indices: set[int]) -> set[int]:
    """With the other lines of the same API message, and the results that hang on them."""
    if not indices:
        return indices
    ids = {message_id(tree.values[i]) for i in indices} - {""}
    siblings = {i for i in tree.main if message_id(tree.values[i]) in ids}
    results = {i for i in tree.main if tree.parent(i) in siblings and brings_result(tree.values[i])}
    return indices | siblings | results


def _rewound(tree: Tree) -> frozenset[int]:
    """What hangs on a prompt beside which a later prompt, with the newest record behind it, was put.

    Only prompts on the very same parent count: other branches (parallel results, hooks) are sent.
    """
    chain = set(tree.ancestors(tree.main[-1])) if tree.main else set()
    prompts: dict[int, list[int]] = {}
    for i in tree.main:
        parent = tree.parent(i)
        if parent is not None and _is_prompt(tree.values[i]):
            prompts.setdefault(parent, []).append(i)
    rivals = [group for group in prompts.values() if len(group) > 1 and chain.intersection(group)]
    abandoned = {i for group in rivals for i in group if i not in chain}
    if not abandoned:
        return frozenset()
    return frozenset(i for i in tree.main if abandoned.intersection(tree.ancestors(i)))


def _repeated(tree: Tree) -> frozenset[int]:
    """Copies: the same uuid with the same message once more."""
    copies = (i for i in tree.main if tree.index.get(string(tree.values[i].get("uuid")), i) != i)
    return frozenset(
        i
        for i in copies
        if tree.values[tree.index[tree.values[i]["uuid"]]].get("message") == tree.values[i].get("message")
    )


def is_talk(value: Value) -> bool:
    """Whether a record is a user's or an assistant's message."""
    return value.get("type") in ("user", "assistant") and isinstance(value.get("message"), dict)


def is_boundary(value: Value) -> bool:
    """Whether a record is a compaction boundary (a microcompaction is none)."""
    return value.get("type") == "system" and value.get("subtype") == "compact_boundary"


def message_id(value: Value) -> str:
    """The id of the API message that a record holds a block of."""
    message = value.get("message")
    return string(message.get("id")) if isinstance(message, dict) else ""


def brings_result(value: Value) -> bool:
    """Whether a record holds a tool's answer."""
    content = value["message"].get("content") if isinstance(value.get("message"), dict) else None
    blocks = content if isinstance(content, list) else ()
    return any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _is_prompt(value: Value) -> bool:
    marked = value.get("isMeta") is True or value.get("isCompactSummary") is True
    return value.get("type") == "user" and not marked and not brings_result(value)


def _strings(mapping: Any, key: str) -> list[str]:
    values = mapping.get(key) if isinstance(mapping, dict) else None
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
