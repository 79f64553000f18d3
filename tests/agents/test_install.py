"""``compactor install``: entries go into a client's settings, and out again, with every other byte as it was."""

from __future__ import annotations

import json
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_cases import Toolbox
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.agents.install import (
    InstallPlace,
    applied,
    client_names,
    integration,
    json_added,
    json_removed,
    load_client,
    parse_json,
    taken_back,
    toml_added,
    toml_removed,
)
from compactor_cli.model.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ("claude-code", "codex", "gemini-cli", "kimi", "opencode", "pi", "qwen-code")
COMMENTED = """\
{
\t// my own settings
\t"theme": "dark", /* as ever */
\t"hooks": {
\t\t"PreCompact": [
\t\t\t{"hooks": [{"type": "command", "command": "date"}]}, // mine
\t\t],
\t},
\t"mcpServers": {}
}"""


def _files(home: Path) -> dict[str, bytes]:
    found = (path for path in home.rglob("*") if path.is_file() and "state" not in path.parts)
    return {str(path.relative_to(home)): path.read_bytes() for path in found}


def _settings(client: str, home: Path) -> set[Path]:
    known, place = load_client(client), InstallPlace(home=home)
    return {place.path(edit) for edit in known.edits}


def test_the_clients_are_those_that_are_documented() -> None:
    assert client_names() == CLIENTS


@pytest.mark.parametrize("client", CLIENTS)
def test_install_and_remove_where_nothing_was(compactor: Toolbox, home: Path, client: str) -> None:
    code, shown, said = compactor("install", client)
    assert code == 0
    files = _files(home)
    assert files
    assert all(f"+++ {home / name}" in shown for name in files)
    assert load_client(client).by_hand in said
    assert compactor("install", client)[1] == ""
    assert _files(home) == files
    assert compactor("install", client, "--remove")[0] == 0
    assert _files(home) == {}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "text", ["{}", "{ }\n", '{"a": 1.10}', COMMENTED, COMMENTED.replace("\n", "\r\n"), "\ufeff{}\n"]
)
def test_settings_come_back_byte_for_byte(compactor: Toolbox, home: Path, client: str, text: str) -> None:
    for path in _settings(client, home):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((text if path.suffix == ".json" else '# mine\nmodel = "gpt-5"\n\n[tui]\nx = 1').encode())
        path.chmod(0o640)
    before = _files(home)
    assert compactor("install", client)[0] == 0
    assert _files(home) != before
    assert all(path.stat().st_mode & 0o777 == 0o640 for path in _settings(client, home))
    assert compactor("install", client, "--remove")[0] == 0
    assert _files(home) == before


def test_what_was_there_stays_with_its_comments_and_order(compactor: Toolbox, home: Path) -> None:
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text(COMMENTED)
    compactor("install", "claude-code")
    text = path.read_text()
    lines = iter(text.splitlines())
    assert all(any(line.rstrip(",") == wanted.rstrip(",") for line in lines) for wanted in COMMENTED.splitlines()[:-2])
    value = parse_json(text).value
    assert value["theme"] == "dark"
    mine, ours = value["hooks"]["PreCompact"]
    assert mine["hooks"][0]["command"] == "date"
    assert ours["hooks"][0]["command"].endswith("compactor hook PreCompact --client claude-code")
    assert value["hooks"]["SessionStart"][0]["matcher"] == "compact"


@pytest.mark.parametrize("client", CLIENTS)
def test_what_the_user_added_since_stays_when_it_is_taken_out(compactor: Toolbox, home: Path, client: str) -> None:
    compactor("install", client)
    for path in _settings(client, home):
        if path.suffix == ".toml":
            path.write_text(path.read_text() + '\n[mcp_servers.mine]\ncommand = "x"\n')
        else:
            value = json.loads(path.read_text())
            path.write_text(json.dumps({**value, "theme": "dark"}, indent=4))
    assert compactor("install", client, "--remove")[0] == 0
    for path in _settings(client, home):
        text = path.read_text()
        expected = {"mcp_servers": {"mine": {"command": "x"}}} if path.suffix == ".toml" else {"theme": "dark"}
        assert (tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)) == expected


@pytest.mark.parametrize("is_there", [True, False])
def test_settings_after_a_link_are_written_and_the_link_stays(compactor: Toolbox, home: Path, is_there: bool) -> None:
    path, kept = home / ".codex/config.toml", home / "dotfiles/codex.toml"
    for folder in (path.parent, kept.parent):
        folder.mkdir()
    path.symlink_to("../dotfiles/codex.toml")
    if is_there:
        kept.write_bytes(b'model = "gpt-5" # mine')
    before = _files(home)
    assert compactor("install", "codex")[0] == 0
    assert "[mcp_servers.compact]" in kept.read_text()
    assert compactor("install", "codex", "--remove")[0] == 0
    assert path.is_symlink()
    assert _files(home) == before


def test_nothing_is_written_where_one_of_the_files_is_read_only(compactor: Toolbox, home: Path) -> None:
    path = home / ".claude.json"
    path.write_text("{}")
    path.chmod(0o444)
    code, shown, said = compactor("install", "claude-code")
    assert (code, shown) == (3, "")
    assert f"{path}: it is read-only" in said
    assert _files(home) == {".claude.json": b"{}"}


TOML = """\
# mine
model = "gpt-5"
notes = '''
[mcp_servers.compact]
command = "compactor"
'''
"""


def test_only_the_table_goes_out_of_toml_that_was_changed_since(compactor: Toolbox, home: Path) -> None:
    path = home / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text(TOML)
    compactor("install", "codex")
    path.write_text(path.read_text() + "startup_timeout_sec = 20\n\n# the other one\n\n[mcp_servers.mine]\nx = 1 # y\n")
    assert compactor("install", "codex", "--remove")[0] == 0
    assert path.read_text() == f"{TOML}\n# the other one\n\n[mcp_servers.mine]\nx = 1 # y\n"


@pytest.mark.parametrize(
    "more", ["[mcp_servers.compact.env]\nX = '1'\n", "\n# its time\nstartup_timeout_sec = 20\n[a]\n"]
)
def test_a_table_that_cannot_be_taken_out_alone_stays(compactor: Toolbox, home: Path, more: str) -> None:
    compactor("install", "codex")
    path = home / ".codex/config.toml"
    path.write_text(path.read_text() + more)
    before = path.read_text()
    code, _, said = compactor("install", "codex", "--remove")
    assert (code, path.read_text()) == (2, before)
    assert f"{path}: [mcp_servers.compact] cannot be taken out" in said


def test_a_dry_run_writes_nothing(compactor: Toolbox, home: Path) -> None:
    code, shown, said = compactor("install", "codex", "-n")
    assert (code, _files(home)) == (0, {})
    assert "[mcp_servers.compact]" in shown
    assert "nothing was written" in said


def test_a_project_gets_files_that_others_can_use(compactor: Toolbox, home: Path) -> None:
    work = home / "work"
    assert compactor("install", "claude-code", "--project")[0] == 0
    assert set(_files(home)) == {".claude/settings.json", ".mcp.json"}
    assert json.loads((home / ".mcp.json").read_text())["mcpServers"]["compact"]["command"] == "compactor"
    assert not work.exists()
    compactor("install", "claude-code", "--project", "--remove")
    assert _files(home) == {}


def test_a_folder_of_the_client_that_is_elsewhere_is_used(
    compactor: Toolbox, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(home / "elsewhere"))
    compactor("install", "codex")
    assert set(_files(home)) == {"elsewhere/hooks.json", "elsewhere/config.toml"}


def test_the_users_folder_of_settings_may_be_elsewhere(
    compactor: Toolbox, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "settings"))
    assert compactor("install", "opencode")[0] == 0
    assert (home / "settings" / "opencode" / "plugins" / "compact.ts").is_file()
    assert (home / "settings" / "opencode" / "opencode.json").is_file()
    assert not (home / ".config" / "opencode").exists()
    assert compactor("install", "opencode", "--remove")[0] == 0
    assert _files(home) == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".claude.json", '{"mcpServers": {"compact": {"command": "another"}}}'),
        (".claude.json", '{"mcpServers": []}'),
        (".claude/settings.json", '{"hooks": {"PreCompact": {}}}'),
        (".claude/settings.json", '{"hooks": '),
        (".claude/settings.json", '{"a": 1, "a": 2}'),
        (".claude/settings.json", "[]"),
    ],
)
def test_a_file_that_cannot_take_an_entry_stays_and_is_named(
    compactor: Toolbox, home: Path, name: str, text: str
) -> None:
    path = home / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    code, _, said = compactor("install", "claude-code")
    assert code == 2
    assert str(path) in said
    assert _files(home) == {name: text.encode()}


def test_an_extension_that_is_not_of_compact_stays(compactor: Toolbox, home: Path) -> None:
    path = home / ".pi/agent/extensions/compact.ts"
    path.parent.mkdir(parents=True)
    path.write_text("// mine")
    assert compactor("install", "pi")[0] == 2
    assert compactor("install", "pi", "--remove")[0] == 3
    assert path.read_text() == "// mine"


def test_an_older_installation_is_replaced(compactor: Toolbox, home: Path) -> None:
    compactor("install", "claude-code")
    path = home / ".claude.json"
    path.write_text(path.read_text().replace('"command": "', '"command": "/old'))
    compactor("install", "claude-code")
    assert "/old" not in path.read_text()
    assert list(json.loads(path.read_text())["mcpServers"]) == ["compact"]


@pytest.mark.parametrize("client", ["claude-code", "gemini-cli", "codex"])
@pytest.mark.parametrize("text", ["", "\n", "  ", "\ufeff", "\ufeff\r\n"])
def test_a_settings_file_without_content_takes_the_entries(
    compactor: Toolbox, home: Path, client: str, text: str
) -> None:
    edits = load_client(client).edits
    for name in {edit.default for edit in edits}:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(text.encode())
    assert compactor("install", client)[0] == 0
    assert all("compactor" in (home / edit.default).read_text() for edit in edits)
    assert compactor("install", client, "--remove")[0] == 0
    assert {(home / edit.default).read_bytes() for edit in edits} == {text.encode()}


def test_an_unknown_client_is_answered_with_the_nearest(compactor: Toolbox) -> None:
    code, _, said = compactor("install", "claude")
    assert code == 2
    assert "did you mean claude-code?" in said


def test_the_hooks_that_are_installed_answer(compactor: Toolbox, home: Path) -> None:
    compactor("install", "codex")
    hooks = json.loads((home / ".codex/hooks.json").read_text())["hooks"]
    for event in ("PreCompact", "SessionStart"):
        command = hooks[event][0]["hooks"][0]["command"]
        payload = {"session_id": "s", "transcript_path": str(ROOT / "samples/codex-rollout.jsonl"), "source": "compact"}
        done = subprocess.run(
            command, shell=True, input=json.dumps(payload), capture_output=True, text=True, check=True
        )
        assert bool(done.stdout) is (event == "SessionStart")
        assert shlex.split(command)[0].endswith("/compactor")


def _hooks(name: str) -> Iterator[tuple[str, Any]]:
    value = json.loads(integration(name))["hooks"]
    yield from ((event, entry) for event, found in value.items() for entry in found)


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_the_files_to_copy_say_what_is_installed(client: str) -> None:
    name = "claude-code/hooks/hooks.json" if client == "claude-code" else "codex/hooks.json"
    expected = [
        (edit.append[-1], json.loads(json.dumps(edit.value).replace("{command}", "compactor")))
        for edit in load_client(client).edits
        if edit.append
    ]
    assert list(_hooks(name)) == expected


def test_the_marketplace_names_the_plugin() -> None:
    market = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())
    (plugin,) = market["plugins"]
    folder = ROOT / plugin["source"]
    assert json.loads((folder / ".claude-plugin/plugin.json").read_text())["name"] == plugin["name"]
    assert (folder / "skills/recall/SKILL.md").read_text().startswith("---\nname: recall\n")


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc") | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)
SPACES = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", " // note\n", "/* a, } */", "\n// [\n\t"])


@st.composite
def commented(draw: st.DrawFn) -> str:
    """An object with comments, trailing commas and any space, in which the way may lead somewhere already."""
    table = draw(st.dictionaries(st.text(max_size=4), VALUES, max_size=3))
    if draw(st.booleans()):
        table["hooks"] = draw(st.dictionaries(st.sampled_from("xy"), VALUES, max_size=2))
        if draw(st.booleans()):
            table["hooks"]["PreCompact"] = draw(st.lists(VALUES, max_size=2))
    return draw(SPACES) + _written(draw, table) + draw(SPACES)


def _written(draw: st.DrawFn, value: Any) -> str:
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    items = [f"{json.dumps(key)}{draw(SPACES)}:" for key in value] if isinstance(value, dict) else [""] * len(value)
    inner = list(value.values()) if isinstance(value, dict) else value
    texts = [
        f"{draw(SPACES)}{key}{draw(SPACES)}{_written(draw, item)}{draw(SPACES)}"
        for key, item in zip(items, inner, strict=True)
    ]
    comma = "," if texts and draw(st.booleans()) else ""
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}{','.join(texts)}{comma}{draw(SPACES)}{closing}"


@given(commented())
def test_any_json_takes_an_entry_and_gives_it_back(text: str) -> None:
    entry = {"hooks": [{"command": "x"}]}
    before = parse_json(text).value
    insertions = json_added(text, ("hooks", "PreCompact"), entry, append=True)
    after = applied(text, insertions)
    value = parse_json(after).value
    assert value["hooks"]["PreCompact"].pop() == entry
    hooks = before.get("hooks", {})
    assert value == {**before, "hooks": {**hooks, "PreCompact": hooks.get("PreCompact", [])}}
    assert taken_back(after, insertions) == text
    number = len(hooks.get("PreCompact", []))
    bare = parse_json(json_removed(after, ("hooks", "PreCompact", number))).value
    assert {key: item for key, item in bare.items() if key != "hooks"} == {
        key: item for key, item in before.items() if key != "hooks"
    }


@given(st.sampled_from(["", "a = 1", "# x\r\na = 1\r\n", "[t]\nx = [\n1]\n\n", "[mcp_servers.x]\ncommand = 'y'\n"]))
def test_any_toml_takes_a_table_and_gives_it_back(text: str) -> None:
    table = {"command": "/a b/compactor", "args": ["mcp"]}
    insertions = toml_added(text, ("mcp_servers", "compact"), table)
    after = applied(text, insertions)
    assert tomllib.loads(after)["mcp_servers"]["compact"] == table
    assert taken_back(after, insertions) == text
    assert tomllib.loads(toml_removed(after + "\n[z]\n", ("mcp_servers", "compact"))) == {
        **tomllib.loads(text),
        "z": {},
    }


def test_a_table_that_toml_does_not_let_grow_is_refused() -> None:
    with pytest.raises(UsageError, match=r"\[mcp_servers.compact\] cannot be added"):
        toml_added("mcp_servers = {}\n", ("mcp_servers", "compact"), {"command": "x"})
