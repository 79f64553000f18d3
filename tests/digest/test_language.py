"""Language: told from the user's words; the fixed words are no atoms and tell nobody what to do."""

from __future__ import annotations

import pytest

from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.language import LANGUAGES, FixedWords, apart, detect, words, words_of


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
