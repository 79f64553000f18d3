"""Every preset that asks a model: a reply in the output format of its system is used, section by section."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conversation import WORK
from llm_server.client import LlmServer
from model_cases import summariser

from compactor_cli.engine import compact_transcript
from compactor_cli.formats.detect import open_transcripts
from compactor_cli.model.report import Compaction
from compactor_cli.model.settings import Size
from compactor_cli.model.transcript import Role
from compactor_cli.plan.tokens import EstimateCounter
from compactor_cli.presets import load_preset
from compactor_cli.read.jsonl import read_records

GOAL = "Make the login test pass and release 2.4.1 of the app."
DONE = "check_password became verify_password in src/login.py; tests/test_login.py passes, 4 passed."
STEP = "write docs/login.md, docs/legacy.md stays as it is"
CLAUDE = f"""<analysis>
The user wanted the login test fixed. docs/legacy.md was not to be touched.
</analysis>

<summary>
1. Primary Request and Intent:
   {GOAL}

2. Key Technical Concepts:
   - password hashing

3. Files and Code Sections:
   - `src/login.py`
     - {DONE}
   - `docs/login.md`

4. Errors and fixes:
   - AttributeError in tests/test_login.py: the old name hid the hashing

5. Problem Solving:
   The test was fixed.

6. All user messages:
   - "Please fix the login test in tests/test_login.py"

7. Pending Tasks:
   - {STEP}

8. Current Work:
   The release of version 2.4.1 was being prepared.

9. Optional Next Step:
   Release 2.4.1.
</summary>"""
KIMI = f"""<current_focus>
{GOAL}
</current_focus>

<environment>
- pytest tests/test_login.py
</environment>

<completed_tasks>
- The login test: {DONE}
</completed_tasks>

<active_issues>
- {STEP}: open
</active_issues>

<code_state>
<file>
src/login.py

**Summary:**
The login, with verify_password
**Key elements:**
- verify_password
**Latest Version:**
```python
def verify_password(): ...
```
</file>
</code_state>

<important_context>
- AttributeError came from check_password in src/login.py; docs/login.md is to be written
</important_context>"""
GEMINI = f"""<scratchpad>What matters: the login test.</scratchpad>
<state_snapshot>
    <overall_goal>
        {GOAL}
    </overall_goal>
    <key_knowledge>
        - pytest tests/test_login.py runs the test; never touch docs/legacy.md
    </key_knowledge>
    <file_system_state>
        - MODIFIED: src/login.py - {DONE}
        - CREATED: docs/login.md
    </file_system_state>
    <recent_actions>
        - AttributeError of check_password fixed
    </recent_actions>
    <current_plan>
        1. [DONE] Fix the login test
        2. [TODO] {STEP}
    </current_plan>
</state_snapshot>"""
HERMES = f"""## Active Task
{GOAL}

## Goal
Release 2.4.1.

## Constraints & Preferences
- never touch docs/legacy.md

## Completed Actions
1. EDIT src/login.py: {DONE}

## Active State
- tests/test_login.py: 4 passed

## In Progress
- {STEP}

## Blocked
None.

## Key Decisions
- verify_password instead of check_password: the old name hid the hashing

## Resolved Questions
None.

## Pending User Asks
- release 2.4.1

## Relevant Files
- src/login.py, docs/login.md

## Remaining Work
- {STEP}

## Critical Context
- AttributeError in tests/test_login.py came from the old name."""
SUNA = f"""===== Summary of the conversation =====
## Key Information and Facts
- {GOAL}
- {DONE}
## Decisions Made
- verify_password instead of check_password
## Important Tool Results
- pytest tests/test_login.py: AttributeError first, then 4 passed
## Current State
- src/login.py edited; docs/login.md: {STEP}."""
L06 = f"""1) What was accomplished: {DONE} AttributeError of check_password is gone.
2) Current state: {GOAL} Open: {STEP}.
3) Key decisions made: verify_password instead of check_password in src/login.py, docs/login.md beside it."""
REPLIES = {
    "claude-code": CLAUDE,
    "kimi": KIMI,
    "gemini": GEMINI,
    "qwen-code": GEMINI,
    "hermes": HERMES,
    "hermes-trajectory": HERMES,
    "suna-llm": SUNA,
    "l06": L06,
    # Another client's format than the one that was asked for: nothing of it is lost.
    "default": CLAUDE,
}


def conversation() -> list[bytes]:
    """WORK as chat messages, with enough said before its end that everything but the end is summarised."""
    import orjson

    lines: list[dict[str, object]] = [{"role": "system", "content": "You are a coding agent."}]
    for message in WORK.messages:
        text = message.text or "\n".join(result.text for result in message.results)
        for call in message.calls:
            text += f"call {call.name} {orjson.dumps(call.arguments).decode()}"
        lines.append({"role": "user" if message.role is Role.USER else "assistant", "content": text})
    lines += [{"role": "assistant", "content": "The log of the tests says nothing else about it. " * 40}] * 12
    lines += [{"role": "user", "content": "go on with it"}, {"role": "assistant", "content": "I go on."}] * 3
    return [orjson.dumps(line) + b"\n" for line in lines]


def compacted(server: LlmServer, preset: str) -> Compaction:
    settings = load_preset(preset).settings
    keep = replace(settings.keep, head_tokens=40, tail_tokens=min(settings.keep.tail_tokens, 60))
    settings = replace(settings, target=Size(tokens=3_500), keep=keep)
    (transcript,) = open_transcripts(read_records(conversation(), "work.jsonl"))
    server.control(replies={"<<transcript>>": REPLIES[preset]})
    with summariser(server, "replay", template=settings.template) as model:
        return compact_transcript(
            transcript, settings, counter=EstimateCounter(), summariser=model, load_state=lambda name: None
        )


@pytest.mark.parametrize("preset", list(REPLIES))
def test_a_reply_in_the_format_of_the_system_is_used(llm_server: LlmServer, preset: str) -> None:
    done = compacted(llm_server, preset)
    assert (done.report.summary_source, done.report.fell_back, dict(done.report.refused)) == ("model", "", {})
    assert len(llm_server.requests()) == 1
    for stated in (GOAL, DONE, STEP):
        assert stated in " ".join(done.summary_text.split()), done.summary_text


def test_the_files_of_a_code_state_keep_their_three_parts(llm_server: LlmServer) -> None:
    text = compacted(llm_server, "kimi").summary_text
    state = text[text.index("<code_state>") : text.index("</code_state>")]
    assert all(
        part in state for part in ("**Summary:**", "**Key elements:**", "**Latest Version:**", "verify_password()")
    )
    important = text[text.index("<important_context>") : text.index("</important_context>")]
    assert "AttributeError came from check_password" in important
    assert text.count("<important_context>") == 1
