"""Languages: which one a conversation is in, and the few fixed words that a digest adds in it.

The fixed words are labels and states. None of them tells the reader to do something, and none is an atom.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

# A vote counts one message; longer pastes (logs, code) say nothing about the language of the one who pastes.
_VOTING_CHARS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The fixed words of one language."""

    request: str
    decision: str
    step: str
    stood: str
    done: str
    doing: str
    open: str
    plan: str
    created: str
    edited: str
    read: str
    deleted: str
    moved: str
    content: str
    parts: str
    ok: str
    failed: str
    code: str
    ran: str
    called: str
    gone: str
    later: str
    unsolved: str
    before: str
    earlier: str
    also: str
    since: str
    goal: str
    replying: str
    tools: str
    skills: str
    background: str
    # Punctuation is ASCII in every language: next to an address, any other would read as a part of it.
    colon: str = ": "
    comma: str = ", "
    stop: str = "; "

    def quoted(self, text: str) -> str:
        """The text in quotation marks."""
        return f'"{text}"'


_TABLE = {
    "en": Words(
        request="Latest request",
        goal="First request",
        decision="Last decision",
        step="Next open step",
        stood="Where it stood",
        done="done",
        doing="in progress",
        open="open",
        plan="Plan",
        created="created",
        edited="edited",
        read="read",
        deleted="deleted",
        moved="moved to",
        content="last known content",
        parts="changed parts and signatures",
        ok="ok",
        failed="failed",
        code="exit code",
        ran="ran",
        called="called",
        gone="gone after the edit of",
        later="passed later",
        unsolved="not seen to pass since",
        before="From the start",
        earlier="Before that",
        also="also named",
        since="then",
        replying="In reply to",
        tools="Tools used",
        skills="Skills in use",
        background="Running in the background",
    ),
    "zh": Words(
        request="最近的请求",
        goal="最初的请求",
        decision="最近的决定",
        step="下一个未完成的步骤",
        stood="当时的进展",
        done="已完成",
        doing="进行中",
        open="未完成",
        plan="计划",
        created="新建",
        edited="编辑",
        read="读取",
        deleted="已删除",
        moved="移至",
        content="最后已知内容",
        parts="改动部分与签名",
        ok="成功",
        failed="失败",
        code="退出码",
        ran="运行",
        called="调用",
        gone="编辑以下文件后消失",
        later="后来通过",
        unsolved="此后未见通过",
        before="开始部分",
        earlier="在此之前",
        also="另有名称",
        since="之后",
        replying="回应的是",
        tools="用过的工具",
        skills="使用中的技能",
        background="后台运行中",
    ),
    "ja": Words(
        request="最新の依頼",
        goal="最初の依頼",
        decision="直近の決定",
        step="次の未完了の手順",
        stood="その時点の状況",
        done="完了",
        doing="進行中",
        open="未完了",
        plan="計画",
        created="作成",
        edited="編集",
        read="読み取り",
        deleted="削除済み",
        moved="移動先",
        content="最後に確認された内容",
        parts="変更部分とシグネチャ",
        ok="成功",
        failed="失敗",
        code="終了コード",
        ran="実行",
        called="呼び出し",
        gone="編集後に解消",
        later="後に成功",
        unsolved="その後の成功は確認されていない",
        before="最初の部分",
        earlier="その前",
        also="ほかの名前",
        since="その後",
        replying="返答の対象",
        tools="使ったツール",
        skills="使用中のスキル",
        background="バックグラウンドで実行中",
    ),
}
LANGUAGES = tuple(_TABLE)


def words_of(language: str) -> Words:
    """The fixed words of a language, English where there is no table for it."""
    return _TABLE.get(language.partition("-")[0].lower(), _TABLE["en"])


# Words that people cannot do without and other languages do not have, without those that programs are written in.
_COMMON = {
    "en": "the and is of to it that this with you please not have are was what there can",
    "de": "der das und ist nicht bitte den dem ein eine einen mit auf wird auch noch wie ich wir für sind",
    "fr": "le les une des est et pas dans pour que avec sur cette ce il vous nous plaît aux sont je qui mais",
    "es": "el los las una del es y que por para con está no se como este esta lo más pero favor",
    "it": "il gli una della è e che per con non sono anche come questo questa nel più ma del di",
    "pt": "os uma do da é e que para com não está como este esta mais mas você em por favor",
    "nl": "de het een en is niet van dat met voor zijn ook nog wel deze die graag op ik we",
}


@cache
def _letters() -> re.Pattern[str]:
    return re.compile(
        r"([\u3040-\u30ff])|([\u3400-\u4dbf\u4e00-\u9fff])|([\uac00-\ud7af])|([\u0400-\u04ff]+)|([A-Za-z\u00c0-\u024f]+)"
    )


@cache
def _by_word() -> dict[str, tuple[str, ...]]:
    """The languages of each common word."""
    found: dict[str, tuple[str, ...]] = {}
    for language, words in _COMMON.items():
        for word in words.split():
            found[word] = (*found.get(word, ()), language)
    return found


def _vote(text: str) -> str:
    """The language of one message: a character of a script without spaces weighs as much as a word of another.

    Latin words decide only among themselves, as names of code are Latin.
    """
    counts = [0] * 6
    latin: list[str] = []
    for found in _letters().finditer(text[:_VOTING_CHARS]):
        counts[found.lastindex or 0] += 1
        if found.lastindex == 5:
            latin.append(found[0].lower())
    _, kana, han, hangul, cyrillic, words = counts
    if kana + han + hangul + cyrillic < max(2, words):
        return _latin(latin) if words else ""
    if max(hangul, cyrillic) > kana + han:
        return "ko" if hangul > cyrillic else "ru"
    return "ja" if kana * 5 > han else "zh"


def _latin(words: Iterable[str]) -> str:
    """Which of the languages with Latin letters: the one whose common words are most; English where none leads."""
    counts = dict.fromkeys(_COMMON, 0)
    for word in words:
        for language in _by_word().get(word, ()):
            counts[language] += 1
    best = max(counts, key=lambda language: counts[language])
    others = [count for language, count in counts.items() if language != best]
    return best if counts[best] > max(1, *others) else "en"


def detect(texts: Iterable[str]) -> str:
    """The language (BCP 47 primary tag) most of these messages are in; English where nothing tells.

    Told apart by script: Chinese, Japanese, Korean, Russian; by common words: German, French, Spanish, Italian,
    Portuguese, Dutch. Fixed words are English where `words_of` has none in the language.
    """
    votes: dict[str, int] = {}
    for text in texts:
        language = _vote(text)
        votes[language] = votes.get(language, 0) + 1
    votes.pop("", None)
    return max(votes, key=lambda language: (votes[language], language == "en", language)) if votes else "en"
