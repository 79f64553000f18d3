"""Phase: whether a transcript stands where one phase of its task has ended and the next has not begun."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compactor_cli.group.exchanges import is_user_words, newest_request
from compactor_cli.group.todos import PLAN_TOOLS, TodoReplay, short_name
from compactor_cli.model.transcript import Message, Role

# Fewer words than these ("yes", "go on please") answer or drive on; a Chinese character counts as half a word.
_LEAST_REQUEST_WORDS = 4
_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ASKS = ("?", "？")


def ended_phase(messages: Sequence[Message]) -> str:
    """Why this is the end of a phase, in words for people; empty where the work goes on.

    A phase ends when every step of the to-do list is done; when a list that was done is replaced by the next one; and
    when a new request follows an answer that finished the one before. It counts until the agent works on what comes
    next. A to-do list is that of the newest turn; a short reply, or one to a question of the agent, is no request.
    """
    sent = [message for message in messages if not (message.is_meta or message.superseded)]
    request = newest_request(sent)
    is_waiting = request >= 0 and all(message.role is not Role.ASSISTANT for message in sent[request:])
    work = sent[:request] if is_waiting else sent
    done, following, is_open = _lists(work)
    if done and not is_open:
        return f"all {done} to-dos are done" if done > 1 else "the one to-do is done"
    if is_open:
        return f"{done} to-dos are done and {following} others begin" if done else ""
    is_next = is_waiting and _is_answered(work) and _is_request(sent[request], work)
    return "a new request follows a finished one" if is_next else ""


def _lists(work: Sequence[Message]) -> tuple[int, int, bool]:
    """Of the newest turn: the steps of its finished list, of a list that has just replaced it, and if any is open."""
    failed = {result.id for message in work for result in message.results if result.is_error and result.id}
    answers = {result.id: result.text for message in work for result in message.results if result.id}
    replay = TodoReplay()
    newest, finished = -1, 0
    for place, message in enumerate(work):
        for call in message.calls:
            if not _plans(call.name) or call.id in failed:
                continue
            finished = 0 if replay.has_open() else len(replay.todos)
            replay.call(call.name, call.arguments, answers.get(call.id, ""), place)
            newest = place
    rest = work[newest + 1 :]
    if newest < 0 or any(is_user_words(message) for message in rest):
        return 0, 0, False
    if not replay.has_open():
        return len(replay.todos), 0, False
    has_begun = any(message.role is Role.ASSISTANT for message in rest)
    return (0 if has_begun else finished), len(replay.todos), True


def _plans(name: str) -> bool:
    short = short_name(name)
    return short in PLAN_TOOLS or "todo" in short


def _is_answered(work: Sequence[Message]) -> bool:
    """Whether the last that was done is an answer in words."""
    last = next((message for message in reversed(work) if message.role is not Role.SYSTEM), None)
    return last is not None and last.role is Role.ASSISTANT and not last.calls and bool(last.text.strip())


def _is_request(message: Message, work: Sequence[Message]) -> bool:
    han = len(_HAN.findall(message.text))
    words = len(_HAN.sub(" ", message.text).split())
    return words + han / 2 >= _LEAST_REQUEST_WORDS and not work[-1].text.rstrip().endswith(_ASKS)
