"""Languages: which one a conversation is in, the few fixed words that a digest adds in it, and the words of a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from compactor_cli.model.patterns import pattern

# Characters of a message that count for its language: longer texts are pastes (logs, code), in any language.
_VOTING_CHARS = 2_000
LANGUAGES = ("en", "zh", "ja")


class _Word:
    """A fixed word in each of `LANGUAGES`: an attribute of `FixedWords`, read in the language of the instance."""

    def __init__(self, *forms: str) -> None:
        self._forms = forms

    def __get__(self, words: FixedWords, owner: type[FixedWords]) -> str:
        return self._forms[words.column]


class FixedWords:
    """The fixed words of one language, by its index in `LANGUAGES`."""

    def __init__(self, column: int) -> None:
        self.column = column

    request = _Word("Asked", "请求", "依頼")
    pasted = _Word("Pasted output", "贴出的输出", "貼り付けた出力")
    asked_before = _Word("Asked earlier", "较早的请求", "以前の依頼")
    added = _Word("Added meanwhile", "其间补充", "その間の追記")
    earlier = _Word("Before that", "在此之前", "その前")
    replying = _Word("In reply to", "回应的是", "返答の対象")
    stood = _Word("Where it stands", "当时的进展", "その時点の状況")
    waiting = _Word("Waiting for an answer", "等待答复", "返答待ち")
    set_out = _Word("Began with", "开始时说", "着手時の発言")
    announced = _Word("Announced", "已宣布", "予告")
    unanswered = _Word("No result seen of", "未见结果", "結果が確認されていない")
    done = _Word("done", "已完成", "完了")
    doing = _Word("in progress", "进行中", "進行中")
    begun = _Word("begun, not closed", "已开始，未标记完成", "着手済み、完了の記録なし")
    open = _Word("open", "未完成", "未完了")
    plan = _Word("Plan", "计划", "計画")
    old_plan = _Word("Steps, not updated since", "步骤，此后未更新", "手順、以後更新なし")
    created = _Word("created", "新建", "作成")
    edited = _Word("edited", "编辑", "編集")
    replied = _Word("replied", "已答复", "返答済み")
    tries = _Word("only for a try", "仅为试验", "試すためだけ")
    read = _Word("read", "读取", "読み取り")
    looked_at = _Word("looked at", "看过", "参照")
    deleted = _Word("deleted", "已删除", "削除済み")
    moved = _Word("moved to", "移至", "移動先")
    moved_from = _Word("moved from", "移自", "移動元:")
    moved_away = _Word("moved", "已移动", "移動済み")
    content = _Word("last known content", "最后已知内容", "最後に確認された内容")
    parts = _Word("changed parts and signatures", "改动部分与签名", "変更部分とシグネチャ")
    ok = _Word("ok", "成功", "成功")
    failed = _Word("failed", "失败", "失敗")
    fixed = _Word("fixed by", "修复于", "修正")
    test_gone = _Word("test taken out of", "测试已移出", "テストを除いた先")
    again = _Word("not yet by edits of", "此前编辑以下文件未能修复", "それ以前の編集では直らず")
    passed = _Word("passed later", "后来通过", "後に成功")
    passed_after = _Word("passed after", "在以下命令后通过", "次の実行後に成功")
    in_part = _Word("not run as a whole since", "此后未整体运行", "その後全体は未実行")
    then_failed = _Word("then failed", "之后失败", "その後失敗")
    unrepeated = _Word("Failed, not run as a whole since", "失败过，此后未整体运行", "失敗後、全体は未実行")
    instead = _Word("done by", "改由以下完成", "代わりに実行")
    also_in = _Word("also in", "另见于", "ほかに")
    failing = _Word("failing when last run", "上次运行时失败", "最後の実行で失敗")
    changed = _Word("not run again since changes to", "以下改动后未再运行", "次の変更後は未実行")
    uncommitted = _Word("Not committed", "未提交", "未コミット")
    found_changed = _Word(
        "Changed before this session, not committed", "此前已有改动,未提交", "以前からの変更、未コミット"
    )
    unrun = _Word("Asked for as a check and not run", "要求的检查未运行", "求められた確認で未実行")
    unedited = _Word("Also listed by git, not committed", "git 还列出,未提交", "git がほかに示す未コミット")
    new_to_git = _Word("new to git", "git 未跟踪", "git に未登録")
    new_hash = _Word("new hash", "新哈希", "新しいハッシュ")
    committed = _Word("in commit", "已提交", "コミット済み")
    since_commit = _Word("again since commit", "此提交之后又改动", "次のコミット後に再び変更")
    merged = _Word("Merged", "已合并", "マージ済み")
    by_others = _Word("committed outside this session", "在本会话之外提交", "このセッション外でコミット")
    stale = _Word("Passed before the newest edits of", "在以下最新改动之前通过", "次の最新編集より前に成功")
    stopped = _Word("Stopped by the user", "被用户中止", "利用者が中止")
    broken_off = _Word("Broken off", "中断", "中断")
    stopped_before = _Word("Stopped by the user before that", "此前被用户中止", "その前に利用者が中止")
    refused = _Word("refused by the user", "被用户拒绝", "利用者が拒否")
    approved = _Word("approved by the user", "用户已同意", "利用者が承認")
    pending = _Word("nothing done since", "此后尚未执行", "その後は未着手")
    given_up = _Word("not taken", "未采用", "不採用")
    left_open = _Word("left to the agent", "由代理决定", "エージェントに一任")
    overruled = _Word(
        "message questioned or overruled later", "该消息之后被质疑或否定", "この発言はその後疑問視または否定"
    )
    unconcluded = _Word("not concluded", "尚未完成", "未完了")
    unresolved = _Word("not edited since", "此后未编辑", "その後未編集")
    offered = _Word("Offered, not answered", "已提议，未获答复", "提案済み、回答なし")
    untried = _Word("Tests edited and not run", "已修改但未运行的测试", "編集したが未実行のテスト")
    stashed = _Word("Put away by git stash", "已被 git stash 收起", "git stash で退避済み")
    no_commit = _Word("no commit in these records", "这些记录中没有提交", "この記録にコミットなし")
    reverted = _Word("changes thrown away", "改动已撤销", "変更は破棄済み")
    branch = _Word("branch", "分支", "ブランチ")
    paths = _Word("Paths are below", "路径相对于", "パスの起点")
    servers = _Word("Servers called", "调用过的服务器", "呼び出したサーバー")
    skills = _Word("Skills loaded", "已加载的技能", "読み込まれたスキル")
    allowed = _Word("Allowed", "权限", "許可")
    whole_before = _Word("Full transcript of what came before", "此前的完整记录", "それ以前の全記録")
    planning = _Word(
        "In plan mode: nothing is to be changed before the user approves a plan",
        "计划模式：在用户批准计划之前不做任何修改",
        "プランモード：ユーザーが計画を承認するまで何も変更しない",
    )
    background_failed = _Word("Failed in the background", "后台运行失败", "バックグラウンドで失敗")
    background = _Word("In the background, not seen to end", "后台运行，未见结束", "バックグラウンド、終了は未確認")
    thought = _Word("thought", "思考", "思考")
    since = _Word("since then", "之后", "その後")
    older = _Word("before the newest edits", "在最新改动之前", "最新の編集より前")
    earlier_state = _Word("Said before the newest steps", "在最新步骤之前说的", "最新の手順の前の発言")
    no_push = _Word("no push seen", "未见推送", "プッシュは確認されていない")
    unpushed = _Word("Committed, not pushed", "已提交，未推送", "コミット済み、未プッシュ")
    more = _Word("more", "项未列出", "件は省略")
    resumed = _Word("later edited or run", "后来又编辑或运行", "後に編集または実行")
    later_approved = _Word("approved later", "后来已同意", "後に承認")
    within = _Word("in", "位于", "箇所")
    deleted_later = _Word("file deleted since", "文件之后已删除", "ファイルはその後削除")
    edited_later = _Word("files edited since", "之后已编辑", "その後編集")
    # Punctuation is ASCII in every language: next to an address, any other would read as a part of it.
    colon = ": "
    comma = ", "
    stop = "; "

    def quoted(self, text: str) -> str:
        """The text in quotation marks."""
        return f'"{text}"'


_TABLE = {language: FixedWords(column) for column, language in enumerate(LANGUAGES)}


def words_of(language: str) -> FixedWords:
    """The fixed words of a language, English where there is no table for it."""
    return _TABLE.get(language.partition("-")[0].lower(), _TABLE["en"])


# The commonest words of each language that most of the others do not have, without most of those in source code.
_COMMON = {
    "en": "the and is of to it that this with you please not have are was what there can",
    "de": "der das und ist nicht bitte den dem ein eine einen mit auf wird auch noch wie ich wir für sind",
    "fr": "le les une des est et pas dans pour que avec sur cette ce il vous nous plaît aux sont je qui mais",
    "es": "el los las una del es y que por para con está no se como este esta lo más pero favor",
    "it": "il gli una della è e che per con non sono anche come questo questa nel più ma del di",
    "pt": "os uma do da é e que para com não está como este esta mais mas você em por favor",
    "nl": "de het een en is niet van dat met voor zijn ook nog wel deze die graag op ik we",
}


# Kana, Chinese characters, Korean syllables, Cyrillic words, Latin words.
_LETTERS = pattern(
    r"([\u3040-\u30ff])|([\u3400-\u4dbf\u4e00-\u9fff])|([\uac00-\ud7af])|([\u0400-\u04ff]+)|([A-Za-z\u00c0-\u024f]+)"
)


def _vote(text: str) -> str:
    """The language of one message, or an empty string where it has no words.

    A character of a script without spaces weighs as much as a word of another. Names of code are Latin: Latin words
    decide only where they outnumber all else, or where there is at most one of all else.
    """
    counts = [0] * 6
    latin: list[str] = []
    for found in _LETTERS.finditer(text[:_VOTING_CHARS]):
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
    """The language with Latin letters whose common words are most among these words; English where none leads."""
    times = Counter(words)
    counts = {language: sum(times[word] for word in common.split()) for language, common in _COMMON.items()}
    best = max(counts, key=counts.__getitem__)
    others = [count for language, count in counts.items() if language != best]
    return best if counts[best] > max(1, *others) else "en"


def detect(texts: Iterable[str]) -> str:
    """The language (BCP 47 primary tag) most of these messages are in; English where nothing tells.

    Distinguished by script: Chinese, Japanese, Korean, Russian; by common words: German, French, Spanish, Italian,
    Portuguese, Dutch. Fixed words are English where `words_of` has none in the language.
    """
    votes = Counter(filter(None, map(_vote, texts)))
    return max(votes, key=lambda language: (votes[language], language == "en", language)) if votes else "en"


_DENSE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
# Words that carry no information alone; pairs and terms leave them out.
STOP_WORDS = frozenset(
    "a about after all also an and any are as at be because been before but by can could did do does done for"
    " from get going had has have he her here him his how i if in into is it its just let like ll made make may"
    " me more most my need new no not now of off on one only or other our out over own re same see set she"
    " should so some still such than that the their them then there these they this those through to too up us"
    " use used using ve very want was way we well were what when where which while who why will with would yes"
    " yet you your"
    " self return def class import none true false null const function var string str int type elif else try"
    " except async await public static void".split()
)
# Translates bytes: letters to lower case, digits and underscores as they are, blanks for all else.
_IN_WORDS = bytes(ord(chr(code).lower()) if chr(code).isalnum() or code == ord("_") else 32 for code in range(128))
_IN_WORDS += bytes(128)


_WORD = pattern(rf"[{_DENSE}]|[^\W{_DENSE}]+")
_DENSE_RUN = pattern(rf"[{_DENSE}]+")
# A capitalised word that opens neither a line nor a sentence (`Harbour`), or a number outside of words (`12.5`). The
# pattern searches for the capital letter or the digit first, which is fast.
_CAPITAL, _NUMBER = r"(?<=[A-Z])(?<!^.)(?<![.!?:]\s.)[a-z]+\b", rf"(?<=\d)(?:[\d,.:/-]*\d)?(?![^\W{_DENSE}])"
_NAME = pattern(rf"[A-Z\d](?<![^\W{_DENSE}].)(?:{_CAPITAL}|{_NUMBER})", re.MULTILINE)


def words(text: str) -> list[str]:
    """The words in order, in lower case; one word for each character of a script without spaces."""
    return _ascii_words(text) if _has_ascii_words(text) else _WORD.findall(text.lower())


def _has_ascii_words(text: str) -> bool:
    """Whether all words of a text are ASCII; marks such as dashes, arrows and check marks need not be."""
    return text.isascii() or _LETTER.search(text) is None


# A character that is not ASCII, then whether it is a letter: a tenth of the time of a search for such letters.
_LETTER = pattern(rf"[^\0-\x7f](?<=[\w{_DENSE}])")


def _ascii_words(text: str) -> list[str]:
    """The words of a text that `_has_ascii_words`, as a pattern would find them, in a third of the time."""
    return text.encode("ascii", "replace").translate(_IN_WORDS).decode().split()


def apart(text: str) -> str:
    """The text with a blank between the words within names: ``runTests``, ``run_tests``, ``HTTPServer``."""
    return _SEAM.sub(" ", text)


_SEAM = pattern(r"_+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def terms(text: str) -> list[str]:
    """The words that carry meaning: no stop words, no single letters; two-character runs of scripts without spaces."""
    return [word for word in raw_terms(text) if is_term(word)]


def shares_term(one: str, other: str) -> bool:
    """Whether a word that carries meaning stands in both texts."""
    return not set(terms(one)).isdisjoint(terms(other))


def raw_terms(text: str) -> list[str]:
    """What `terms` picks from: the words in lower case, and two-character runs of scripts without spaces."""
    if _has_ascii_words(text):
        return _ascii_words(text)
    plain: list[str] = _WORD.findall(text.lower())
    for run in _DENSE_RUN.findall(text):
        plain.extend(run[i : i + 2] for i in range(len(run) - 1))
    return plain


def is_term(word: str) -> bool:
    """Whether a word of `raw_terms` carries meaning."""
    return (len(word) > 2 and word not in STOP_WORDS) or (len(word) == 2 and not word.isascii())


def names(text: str) -> set[str]:
    """Capitalised words that do not open a sentence, and numbers, in lower case."""
    return {found.lower() for found in _NAME.findall(text)}


def dense_share(text: str) -> float:
    """The share (0 to 1) of a text's characters, blanks aside, that are of scripts without spaces."""
    if text.isascii():
        return 0.0
    dense = sum(map(len, _DENSE_RUN.findall(text)))
    return dense / max(1, len(text) - text.count(" ") - text.count("\n"))


def extends(text: str, other: str) -> bool:
    """Whether a message holds nearly all words of another, and has at least a quarter more words."""
    words, others = set(text.split()), set(other.split())
    is_longer = 4 * len(words) >= 5 * len(others)
    return is_longer and len(others) >= _MIN_SAME_WORDS and 5 * len(others - words) <= len(others)


_MIN_SAME_WORDS = 8


# Characters at the beginning of a word that distinguish it from others, whatever its ending.
_BEGINNING = 5
_MOST_REMEMBERED = 1 << 16
# A word within a name (`read`, `Tide`, `HTTP`) or a number of three digits or more. The lookahead rejects any other
# character before the alternatives are tried.
_WORD_PART = re.compile(r"(?=[^\W_])(?:[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d{3,}|[^\W\d_]{2,})")


class _Beginnings(dict[str, str]):
    """By word, how it begins, in lower case; empty where it carries no meaning. Shared by all transcripts."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        lowered = word.lower()
        found = self[word] = lowered[:_BEGINNING] if is_term(lowered) else ""
        return found


_beginnings = _Beginnings()
# Translates bytes: ASCII letters and digits as they are, blanks for all else.
_IN_NAMES = bytes(code if code < 128 and chr(code).isalnum() else 32 for code in range(256))


class _InRuns(dict[bytes, tuple[str, ...]]):
    """By run of ASCII letters and digits, how its words begin; kept, since most runs of a transcript come again."""

    def __missing__(self, run: bytes) -> tuple[str, ...]:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        found = self[run] = tuple(map(_beginnings.__getitem__, _WORD_PART.findall(run.decode())))
        return found


_in_runs = _InRuns()


def word_beginnings(text: str) -> Iterator[str]:
    """How the words of a text begin, those within names too; an empty string for each that carries no meaning."""
    if text.isascii():
        return chain.from_iterable(map(_in_runs.__getitem__, text.encode().translate(_IN_NAMES).split()))
    return map(_beginnings.__getitem__, _WORD_PART.findall(text))
