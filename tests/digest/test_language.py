"""Language: told from the user's words; the fixed words are no atoms and tell nobody what to do."""

from __future__ import annotations

import pytest
from conversation import answer, call, conversation, digest, ran, rendered, says, texts, user

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.language import LANGUAGES, FixedWords, apart, detect, words, words_of
from compactor_cli.digest.replies import begins_with_assent
from compactor_cli.model.summary import Section


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["Fix the bug", "and the tests"], "en"),
        (["修复 src/app/main.py 里的登录错误", "好的"], "zh"),
        (["ログインのバグを直してください"], "ja"),
        (["请看日志\uff1a\n" + "INFO server started on port\n" * 3, "继续", "谢谢"], "zh"),
        (["corrige le bug s'il te plaît"], "fr"),
        (["Bitte behebe den Fehler in src/login.py, der Test ist seit gestern rot."], "de"),
        (["Por favor, arregla el error en src/login.py para que pase la prueba."], "es"),
        (["Correggi il test, per favore: non passa più."], "it"),
        (["Исправь, пожалуйста, ошибку в src/login.py, тест падает."], "ru"),
        (["로그인 테스트를 고쳐 주세요. src/login.py 파일입니다."], "ko"),
        (["run pytest -q --no-header tests/de/test_la.py", "fix de la prod", "def das(): pass"], "en"),
        (["继续", "please fix the parser now", "and run the tests"], "en"),
        ([], "en"),
        (["12345", "???"], "en"),
    ],
)
def test_the_language_most_messages_are_in(texts: list[str], language: str) -> None:
    assert detect(texts) == language


@pytest.mark.parametrize("language", LANGUAGES)
def test_fixed_words_are_complete_and_hold_no_atoms(language: str) -> None:
    words = words_of(language)
    values = [getattr(words, name) for name in vars(FixedWords) if not name.startswith("_") and name != "quoted"]
    assert all(values)
    assert not atom_texts("\n".join(values))


def test_an_unknown_language_gets_english_words() -> None:
    assert words_of("fr") is words_of("en")
    assert words_of("zh-TW") is words_of("zh")


def test_words_within_names_stand_apart() -> None:
    found = words(apart("runTests, run_tests: HTTPServer"))
    assert found == ["run", "tests", "run", "tests", "http", "server"]


SESSION = (
    user("导出的 CSV 是乱码\uff0c库存变成了负数\u3002先查原因\uff0c再修\u3002"),
    says("我先看项目结构\u3002"),
    ran("cat chaye/db.py", "def take(tea, grams): ..."),
    says(
        "原因清楚了\uff1a`take` 不检查库存\u3002我建议把检查放进 `take`\uff1a"
        "`UPDATE stock SET grams = grams - ? WHERE tea = ? AND grams >= ?`\uff0c影响 0 行就抛出 Refused\u3002"
    ),
    user("同意\u3002批量的语义不变\uff0c一行不够就整批拒绝\u3002"),
    call("Edit", file_path="chaye/db.py", old_string="def take(tea, grams): ...", new_string="def take(tea): ..."),
    answer("ok"),
    says("库存已修好\u3002接下来查乱码\u3002"),
)


def test_a_chinese_session_states_what_was_agreed_to_and_no_step() -> None:
    one = digest(conversation(*SESSION), 1_500)
    asked, replied, *_ = texts(one, Section.TASK)
    assert asked.startswith("请求: 同意\u3002批量的语义不变")
    assert replied.startswith("回应的是: 原因清楚了\uff1a`take` 不检查库存\u3002")
    assert replied.endswith("AND grams >= ?`\uff0c影响 0 行就抛出 Refused\u3002")
    (settled,) = texts(one, Section.DECISIONS)
    assert settled.startswith("我建议把检查放进 `take`")
    assert settled.endswith('→ "同意\u3002 批量的语义不变\uff0c一行不够就整批拒绝\u3002" → 编辑 db.py')
    assert "我先看" not in rendered(one.summary)


def test_a_cause_found_in_chinese_stands_with_what_was_edited_for_it() -> None:
    found = says("乱码的原因找到了\uff1a`chaye/export.py` 写成了 `utf-8`\uff0c文件开头少了 BOM\u3002")
    edit = call("Edit", file_path="chaye/export.py", old_string='"utf-8"', new_string='"utf-8-sig"')
    one = digest(
        conversation(user("为什么是乱码\uff1f"), found, edit, answer("ok"), says("改好了\u3002"), user("库存呢\uff1f"))
    )
    (error,) = texts(one, Section.ERRORS)
    assert error.startswith("乱码的原因找到了\uff1a`chaye/export.py` 写成了 `utf-8`\uff0c文件开头少了 BOM\u3002")
    assert error.endswith(' → 编辑: chaye/export.py: `"utf-8-sig"`')


@pytest.mark.parametrize("words", ["同意\u3002", "好的\uff0c就这样", "可以了", "Agreed. Keep the rest.", "はい\u3002"])
def test_agreement(words: str) -> None:
    assert begins_with_assent(words)


@pytest.mark.parametrize("words", ["对了\uff0c还有一个问题", "行数不对", "不同意", "agreement pending"])
def test_no_agreement(words: str) -> None:
    assert not begins_with_assent(words)


@pytest.mark.parametrize(
    "words", ["okay we dont need that", "ok but not like this", "ok so what does it look like", "sure, but"]
)
def test_a_yes_that_is_taken_back_at_once_is_none(words: str) -> None:
    assert not begins_with_assent(words)
    assert begins_with_assent("okay we need that")
