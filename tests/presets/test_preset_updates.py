"""A summary of one preset, brought up to date by another, and those of the clients by all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from preset_cases import SYSTEM, Chat, assistant, call, chat, compacted, preset, result, user

from compactor_cli.model.settings import Settings, Size

WRITING = ("claude-code", "gemini", "hermes", "kimi", "l06", "suna-llm")
ASKED = "The harbour office reads the column directly, so keep it as TEXT."
DECIDED = "I decided to use zoneinfo, because it needs no dependency."
PATH = "tidewatch/clock_zones.py"


def at(name: str, tokens: int) -> Settings:
    return replace(preset(name), target=Size(tokens=tokens))


def facts() -> Chat:
    edit = call("w", "write_file", path=PATH, content="ZONE = 'Europe/Copenhagen'")
    return [user(ASKED), edit, result("w", "ok"), assistant(DECIDED), user("Go on."), assistant("Done.")]


@pytest.mark.parametrize("first", WRITING)
@pytest.mark.parametrize("second", WRITING)
def test_what_one_preset_kept_another_keeps(first: str, second: str) -> None:
    done, after = compacted([SYSTEM, *chat(3)[1:], *facts(), *chat(20)[13:]], at(first, 3_000))
    assert done.changed
    assert all(fact in str(after) for fact in (ASKED, DECIDED, PATH))
    again, final = compacted([*after, *chat(40)[81:]], at(second, 5_000))
    assert again.changed
    assert all(fact in str(final) for fact in (ASKED, DECIDED, PATH))


CLIENTS = {
    "kimi": f"""Previous context has been compacted. Here is the compaction output:
<current_focus>
Mending the importer
</current_focus>

<code_state>
<file>
{PATH}
</file>
</code_state>

<important_context>
- {ASKED}
- {DECIDED}
</important_context>""",
    "gemini": f"""<state_snapshot>
    <overall_goal>
        {ASKED}
    </overall_goal>
    <key_knowledge>
        - {DECIDED}
    </key_knowledge>
    <file_system_state>
        - MODIFIED: `{PATH}`
    </file_system_state>
</state_snapshot>""",
    "claude-code": f"""This session is being continued from a previous conversation that ran out of context.
Summary:
1. Primary Request and Intent:
   {ASKED}

3. Files and Code Sections:
   - {PATH}

6. Problem Solving:
   {DECIDED}""",
    "hermes": f"""[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.
## Goal
{ASKED}

## Key Decisions
{DECIDED}

## Relevant Files
- {PATH}""",
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", WRITING)
def test_what_a_client_summed_up_every_preset_keeps(client: str, name: str) -> None:
    done, after = compacted([SYSTEM, user(CLIENTS[client]), *chat(20)[1:]], at(name, 3_000))
    assert done.changed
    assert all(fact in str(after) for fact in (ASKED, DECIDED, PATH))
