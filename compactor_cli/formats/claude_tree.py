"""The tree in a Claude Code session: how records link to each other, and which of them the client no longer sends.

Records link to their parent by ``parentUuid``; the order of the lines is not decisive. The client sends the chain
from the newest record to its root, with the parallel calls and results next to it. A compaction adds a new root
(``system/compact_boundary``) to the file, a rewind adds a second branch and abandons the first. If a parent is
missing, the chain goes on at the record before. A record of any kind whose parent is null is a root; one is written
when a conversation begins anew after the old one was cleared. To know the size of the conversation, the client reads
the ``usage`` of the last answer, or of the one before if the counter is zero or missing. Observed with Claude Code
1.0.128 to 2.1.330.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import islice

from compactor_cli.formats.contents import listed, string
from compactor_cli.formats.located import ParentTree, Value, at, content_parts
from compactor_cli.model.transcript import text_of


class Tree(ParentTree):
    """The records of one session.

    ``index`` has the position of each uuid; among records with the same uuid, it is the first one whose message is the
    last version. ``main`` are the positions of the conversation's records: those of user and assistant, without those
    of subagents if there are others. ``again`` maps each record whose uuid an earlier one has to the first with it.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        self.values = values
        self.index = {}
        self.again: dict[int, int] = {}
        firsts: dict[str, int] = {}
        for i, value in enumerate(values):
            if not (uuid := string(value.get("uuid"))):
                continue
            if firsts.setdefault(uuid, i) == i:
                self.index[uuid] = i
            else:
                self.again[i] = firsts[uuid]
                if is_of_conversation(value) and value["message"] != values[self.index[uuid]].get("message"):
                    self.index[uuid] = i
        self.main = main_of(values)
        self.is_main = frozenset(self.main)
        self.has_own = bool(self.main) and values[self.main[0]].get("isSidechain") is not True

    @cached_property
    def newest(self) -> int | None:
        """The newest record of the conversation, or None. A new version of an earlier record is not newer than it.

        Clients may write a result just before its call: a record that links to the last one is newer than it.
        """
        found = next((i for i in reversed(self.main) if i not in self.again), None)
        if found is None:
            return None
        newest = self.index.get(self.id(found), found)
        above = {*islice(self.ancestors(newest), _NEAR)}
        early = (i for i in self.main[-_NEAR:] if i not in above and i not in self.again)
        return next((i for i in early if newest in islice(self.ancestors(i), _NEAR)), newest)

    @cached_property
    def chain(self) -> tuple[int, ...]:
        """The records from the newest to its root. A missing parent is bridged by the record before, if not later."""
        seen: dict[int, None] = {}
        at = self.newest
        while at is not None and at not in seen:
            run = tuple(self.ancestors(at))
            seen |= dict.fromkeys(run)
            value, before = self.values[run[-1]], bisect_left(self.main, run[-1]) - 1
            # A root has a null parent. A record with neither parent nor uuid is linked by the order of the lines only.
            is_known = "parentUuid" in value or (is_of_conversation(value) and "uuid" in value) or is_boundary(value)
            if before < 0 or (is_known and not value.get("parentUuid")):
                break
            at = self.main[before]
            if string(self.values[at].get("timestamp")) > string(value.get("timestamp")):
                break
        return tuple(seen)

    @cached_property
    def has_links(self) -> bool:
        """Whether any message has ``parentUuid``, even null. If none has, only the order of the lines counts."""
        return any("parentUuid" in self.values[i] for i in self.main)

    @cached_property
    def is_linked(self) -> bool:
        """Whether the records form a tree. If most name no parent, or share a uuid, only the order of lines counts."""
        named = sum(bool(self.values[i].get("parentUuid")) for i in self.main)
        return named * 2 >= len(self.main) and len(self.index) * 2 >= sum("uuid" in value for value in self.values)

    def is_of_subagent(self, i: int) -> bool:
        """Whether a record belongs to a subagent, in a file that is not the subagent's own."""
        return self.has_own and self.values[i].get("isSidechain") is True


# How many records before the last one may have been written too early.
_NEAR = 8


def main_of(values: Sequence[Value]) -> tuple[int, ...]:
    """The records of the conversation, as `Tree.main`, for callers that do not need the links."""
    conversation = [i for i, value in enumerate(values) if is_of_conversation(value)]
    return tuple([i for i in conversation if values[i].get("isSidechain") is not True] or conversation)


def superseded(tree: Tree) -> frozenset[int]:
    """The records that the client does not send: replaced by the last boundary, off the chain, or repeated."""
    boundary = last_boundary(tree)
    return _replaced(tree, boundary) | _off_chain(tree, boundary) | _repeated(tree)


def left_out(tree: Tree) -> frozenset[int]:
    """The records on other roots and branches: they are not sent, although no boundary replaced them."""
    boundary = last_boundary(tree)
    return _off_chain(tree, boundary) - _replaced(tree, boundary) - _repeated(tree)


def outdone(tree: Tree) -> frozenset[int]:
    """The records in whose place a later one is sent, which has the same uuid but another message."""
    values = tree.values
    others = ((i, tree.index[values[i]["uuid"]]) for i in _repeated(tree))
    return frozenset(i for i, other in others if i < other and values[i].get("message") != values[other]["message"])


def last_boundary(tree: Tree) -> int | None:
    """The last compaction boundary that is in force, or None."""
    for i in (i for i in reversed(range(len(tree.values))) if is_boundary(tree.values[i])):
        if named_uuids(tree.values[i]):
            return i
        # Clients ignore a boundary that is not on the chain. A chain that breaks off after the boundary, since a parent
        # is missing, counts as linked to it.
        if tree.newest is not None and tree.newest >= i:
            above = tuple(tree.ancestors(tree.newest))
            if i in above or above[-1] > i:
                return i
    return None


def _replaced(tree: Tree, boundary: int | None) -> frozenset[int]:
    """The records before the boundary in the file that neither it names nor are linked to it as descendants."""
    if boundary is None:
        return frozenset()
    staying = _with_siblings(tree, _preserved(tree, boundary))
    following: dict[int, bool] = {}
    for i in range(boundary):
        path = []
        for step in tree.ancestors(i):
            path.append(step)
            if step == boundary or step in following:
                break
        answer = path[-1] == boundary or following.get(path[-1], False)
        following.update(dict.fromkeys(path, answer))
    return frozenset(i for i in range(boundary) if not following[i] and i not in staying)


_PRESERVED = ("preservedMessages", "preservedSegment")


def named_uuids(boundary: Value) -> tuple[str, ...]:
    """The uuids of the records before it that a boundary names as still sent; of a segment only the two ends."""
    messages, segment = (at(boundary, ("compactMetadata", key)) for key in _PRESERVED)
    named = [uuid for key in ("allUuids", "uuids") for uuid in listed(at(messages, (key,)))]
    uuids = [uuid for uuid in named if isinstance(uuid, str)]
    ends = (at(segment, (key,)) for key in ("headUuid", "tailUuid"))
    return tuple(uuids or [uuid for uuid in ends if isinstance(uuid, str)])


def _preserved(tree: Tree, boundary: int) -> set[int]:
    """The records that the boundary names, and for a segment those on the chain between its ends."""
    named = {tree.index[uuid] for uuid in named_uuids(tree.values[boundary]) if uuid in tree.index}
    if len(named) != 2:
        return named
    first, last = sorted(named)
    chain = list(tree.ancestors(last))
    return named | set(chain[: chain.index(first)]) if first in chain else named


def _with_siblings(tree: Tree, indices: set[int]) -> set[int]:
    """These records, the other lines of the same API messages, and the results that link to any of them.

    A client may write a session that it resumes once more below a new root: such copies are no other lines.
    """
    if not indices:
        return indices
    others = [i for i in tree.main if i not in indices]
    wanted = {message_id(tree.values[i]) for i in others} - {""}
    ids = wanted and wanted.intersection(message_id(tree.values[i]) for i in indices)
    lines = [i for i in others if message_id(tree.values[i]) in ids]
    known = {_content_key(tree.values[i]) for i in indices if lines and message_id(tree.values[i]) in ids}
    newest = {_content_key(tree.values[i]): i for i in lines}
    staying, results = indices.union(i for key, i in newest.items() if key not in known), set()
    for i in (i for i in others if tree.parent(i) in staying):
        blocks = listed(at(tree.values[i], ("message", "content")))
        if any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks):
            results.add(i)
    return staying | results


def _content_key(value: Value) -> tuple[str, str]:
    """The API message of a record, and its content; equal for copies."""
    return message_id(value), repr(at(value, ("message", "content")))


def _off_chain(tree: Tree, boundary: int | None) -> frozenset[int]:
    """The records on another root or an abandoned branch that the boundary in force does not name."""
    if not tree.is_linked:
        return frozenset()
    staying = set(tree.chain)
    if boundary is not None:
        # The named records, the summary to which the boundary links them, and its ancestors.
        anchors = (string(at(tree.values[boundary], ("compactMetadata", key, "anchorUuid"))) for key in _PRESERVED)
        staying |= _preserved(tree, boundary)
        staying |= {i for uuid in anchors if uuid in tree.index for i in tree.ancestors(tree.index[uuid])}
    staying = _with_siblings(tree, staying)
    return frozenset(i for i in tree.main if i not in staying)


def _repeated(tree: Tree) -> frozenset[int]:
    """The records in whose place another one with the same uuid is sent."""
    same = {*tree.again, *tree.again.values()}
    return frozenset(i for i in same if i in tree.is_main and tree.index[tree.values[i]["uuid"]] != i)


_OF_TASKS = re.compile(r"\s*(?:<task-notification>|\{\"task_id\":)")
# Why a prompt left the queue for the model; older clients give no reason.
_DELIVERED = ("", "absorbed_mid_turn")


def interjections(values: Sequence[Value]) -> frozenset[int]:
    """The queue lines of prompts that were delivered while the model worked and that no other record holds.

    A prompt that was dequeued is a message of its own, and for one that was delivered during a turn newer clients write
    an attachment: neither is included. A prompt that was taken back was not sent.
    """
    waiting: list[int] = []
    delivered: set[int] = set()
    for i, value in enumerate(values):
        if value.get("type") != "queue-operation":
            continue
        operation, named = value.get("operation"), value.get("content")
        if operation == "enqueue":
            # Notices of the client's own tasks leave the queue in another order than prompts do.
            if _OF_TASKS.match(text_of(content_parts(named))):
                delivered.add(i)
            else:
                waiting.append(i)
            continue
        leaving = [one for one in waiting if not named or values[one].get("content") == named]
        leaving = leaving if operation == "popAll" else leaving[:1]
        waiting = [one for one in waiting if one not in leaving]
        if operation == "remove" and string(value.get("reason")) in _DELIVERED:
            delivered.update(leaving)
    if not delivered:
        return frozenset()
    first = min(delivered)
    prompts = (at(value, ("attachment", "prompt")) or at(value, ("message", "content")) for value in values[first:])
    held = {text_of(content_parts(prompt)).strip() for prompt in prompts}
    return frozenset(i for i in delivered if text_of(content_parts(values[i].get("content"))).strip() not in held)


def typed_ahead(values: Sequence[Value]) -> frozenset[int]:
    """The messages of the user that were queued before the assistant wrote the text that precedes them."""
    found: set[int] = set()
    waiting: dict[str, int] = {}
    spoken = -1
    for i, value in enumerate(values):
        if value.get("type") == "queue-operation" and value.get("operation") == "enqueue":
            waiting[text_of(content_parts(value.get("content"))).strip()] = i
        elif waiting and value.get("type") == "assistant" and text_of(content_parts(at(value, ("message", "content")))):
            spoken = i
        elif waiting and value.get("type") == "user":
            words = text_of(content_parts(at(value, ("message", "content")))).strip()
            if waiting.pop(words, i) < spoken:
                found.add(i)
    return frozenset(found)


def is_of_conversation(value: Value) -> bool:
    """Whether a record is a user's or an assistant's message."""
    return value.get("type") in ("user", "assistant") and isinstance(value.get("message"), dict)


def is_boundary(value: Value) -> bool:
    """Whether a record is a compaction boundary. A microcompaction is not."""
    return value.get("type") == "system" and value.get("subtype") == "compact_boundary"


def message_id(value: Value) -> str:
    """The id of the API message to which a record belongs; empty if it has none."""
    message = value.get("message")
    return string(message.get("id")) if isinstance(message, dict) else ""
