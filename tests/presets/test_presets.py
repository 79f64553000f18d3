"""Presets: data that fits the schema, and values that people write."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import (
    Settings,
    Size,
    read_ratio,
    read_seconds,
    read_size_bytes,
    read_tokens,
    settings_from,
)
from compactor_cli.presets import load_preset, preset_names
from compactor_cli.run.documents import faults


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_fits_the_schema_and_says_what_it_is(name: str) -> None:
    preset = load_preset(name)
    assert faults("settings", tomllib.loads(preset.toml)) == ()
    assert 0 < len(preset.about) <= 100
    assert preset.settings.preset == name


def test_hermes_is_what_is_built_in_but_for_its_template() -> None:
    assert load_preset("hermes").settings == replace(Settings(), preset="hermes", template="hermes")


def test_kimi_keeps_two_messages_and_starts_early() -> None:
    settings = load_preset("kimi").settings
    assert settings.trigger.reserve_tokens == 50_000
    assert settings.trigger.compact_ratio == 0.85
    assert settings.keep.tail_messages == 2
    assert settings.template == "kimi"


def test_l06_cuts_old_results_and_acknowledges() -> None:
    settings = load_preset("l06").settings
    (micro,) = settings.prune
    assert (micro.over_chars, micro.first_chars, micro.last_chars, micro.keep_messages) == (200, 200, 0, 6)
    assert micro.marker == "... [truncated]"
    assert settings.trigger.threshold_tokens == 50_000
    assert settings.acknowledgement == "Understood. I have the context from the summary. Continuing."


def test_a_preset_of_ones_own_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('about = "mine"\ntarget = "25%"\n[keep]\ntail_tokens = "8k"\n')
    settings = load_preset(str(file)).settings
    assert (settings.target, settings.keep.tail_tokens) == (Size(ratio=0.25), 8_000)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[keep]\nhead = 1\n", "unknown key head"),
        ("keep = 3\n", "not a table"),
        ("[[prune]]\nkind = 'text'\n", "a name each"),
    ],
)
def test_a_preset_that_says_what_no_setting_can_be_is_refused(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=named):
        load_preset(str(file))


def test_an_unknown_preset_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean kimi"):
        load_preset("kimmi")


def test_settings_survive_a_report() -> None:
    for name in preset_names():
        settings = dataclasses.replace(load_preset(name).settings, target=Size(ratio=0.25))
        saved = json.loads(json.dumps(dataclasses.asdict(settings)))
        assert faults("settings", saved) == ()
        assert settings_from(saved, Settings(), "saved") == settings


@pytest.mark.parametrize(
    ("said", "expected"),
    [("32k", 32_000), ("1.5m", 1_500_000), ("16000", 16_000), (" 4K ", 4_000), (7, 7), ("1_000", 1_000)],
)
def test_tokens(said: object, expected: int) -> None:
    assert read_tokens(said, "x") == expected


@pytest.mark.parametrize(
    "said", ["", "k", "-1", "1.0001k1", "32kk", "nan", "inf", "1e400", True, None, 1.5, "25%", "0.5"]
)
def test_what_is_no_number_of_tokens(said: object) -> None:
    with pytest.raises(UsageError):
        read_tokens(said, "x")


@pytest.mark.parametrize(
    ("said", "expected"), [("90s", 90), ("10m", 600), ("1h", 3_600), ("2d", 172_800), ("0", 0), (5, 5)]
)
def test_seconds(said: object, expected: float) -> None:
    assert read_seconds(said, "x") == expected


@pytest.mark.parametrize("said", ["25%", 0.25, "0.25"])
def test_ratio(said: object) -> None:
    assert read_ratio(said, "x") == 0.25


@pytest.mark.parametrize("said", ["101%", "-1%", 1.5, "x", True])
def test_what_is_no_share(said: object) -> None:
    with pytest.raises(UsageError):
        read_ratio(said, "x")


@pytest.mark.parametrize("said", [-1, "-1", "-64M", "x", "", None])
def test_what_is_no_number_of_bytes(said: object) -> None:
    with pytest.raises(UsageError):
        read_size_bytes(said, "x")
