"""Atoms: what counts as a fact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.digest.atoms import AtomKind, atom_kinds, atom_texts, find_atoms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://a.example/b?c=d&e=f).", {"https://a.example/b?c=d&e=f": AtomKind.URL}),
        ("id 550e8400-e29b-41d4-a716-446655440000", {"550e8400-e29b-41d4-a716-446655440000": AtomKind.UUID}),
        ("at src/app/main.py:12, ok", {"src/app/main.py": AtomKind.PATH}),
        ("in ~/notes/x.md.", {"~/notes/x.md": AtomKind.PATH}),
        ("the /tmp directory and </div>", {"/tmp": AtomKind.PATH}),
        ("open config.toml now", {"config.toml": AtomKind.FILE}),
        ("run --dry-run=yes", {"--dry-run": AtomKind.FLAG}),
        ("commit 3fa9c1e7 is", {"3fa9c1e7": AtomKind.HEX}),
        ("on 2026-01-31 it", {"2026-01-31": AtomKind.DATE}),
        ("fixes #123", {"#123": AtomKind.ISSUE}),
        ("port 8080, 99, 12.5 and 1.2", {"8080": AtomKind.NUM, "12.5": AtomKind.NUM}),
        ("version v1.22.3", {"1.22.3": AtomKind.NUM}),
        ("took 1500ms", {"1500": AtomKind.NUM}),
        ("user_id and parseLine, utf8x", {"user_id": AtomKind.ID, "parseLine": AtomKind.ID, "utf8x": AtomKind.ID}),
        ("obj_one.call_two(arg)", {"obj_one": AtomKind.ID, "call_two": AtomKind.ID}),
        ("a word and Another, console.log(x)", {}),
        ("请看src/app.py文件的config_name参数", {"src/app.py": AtomKind.PATH, "config_name": AtomKind.ID}),
    ],
)
def test_each_kind(text: str, expected: dict[str, AtomKind]) -> None:
    assert atom_kinds(text) == expected


def test_encoded_data_is_no_name() -> None:
    assert find_atoms("iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4aaaaBBBBccccDDDD") == ()


@given(st.text(alphabet="ab1_/.-#:@ \n\"'(){}X~é文" + "https", max_size=200))
def test_atoms_are_verbatim_and_the_bulk_variant_agrees(text: str) -> None:
    found = find_atoms(text)
    assert all(atom.text in text for atom in found)
    assert {atom.text for atom in found} == atom_texts(text)


@given(st.lists(st.text(alphabet="ab1_/.-#: X", max_size=40), max_size=6))
def test_lines_are_read_one_by_one_or_together(lines: list[str]) -> None:
    assert atom_texts("\n".join(lines)) == {atom for line in lines for atom in atom_texts(line)}


def test_half_an_address_of_mail_is_no_name() -> None:
    assert atom_texts("write to ada.king1815@example.com about user_id") == {"user_id"}


def test_a_sign_that_is_written_as_an_escape_is_no_letter_of_a_name() -> None:
    assert atom_texts("\\u003cp\\u003eThe \\u0026amp of read_tide\\u003c/picture\\u003e in C:\\users\\low_tide") == {
        "read_tide",
        "low_tide",
    }


def test_a_line_break_that_is_written_as_an_escape_is_no_letter_of_a_name() -> None:
    assert atom_texts(r'fmt.Println("\nPressKey\treadLine loadItems")') == {"PressKey", "readLine", "loadItems"}


def test_the_name_of_a_file_may_begin_with_a_date() -> None:
    assert atom_texts("moved 2026-02-14-tide-table.md") == {"2026-02-14-tide-table.md"}
    assert atom_texts("on 2026-02-14 at last") == {"2026-02-14"}


def test_what_is_imported_from_a_package_is_no_path_on_the_disk() -> None:
    found = atom_texts("import 'package:tide_app/core/errors/gauge_failures.dart';")
    assert "gauge_failures.dart" in found
    assert not any("/" in one for one in found)
