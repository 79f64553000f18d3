"""Examples: a summary with the prompt for it, as a row to train summarisers on."""

from __future__ import annotations

import json
from dataclasses import dataclass

from compactor_cli.digest.language import LANGUAGES, detect
from compactor_cli.formats.harness import user_text
from compactor_cli.llm import prompts
from compactor_cli.llm.flatten import flatten
from compactor_cli.llm.outline import heading_lines, headings_of
from compactor_cli.llm.prompts import PromptInput, PromptWording, Stage, asked
from compactor_cli.llm.redact import Redactor
from compactor_cli.model.marker import find_marker, without_marker
from compactor_cli.model.settings import PruneRule
from compactor_cli.model.summary import Request

_RULE = PruneRule(name="tool-result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Makes rows of ``messages``: the rules, the material, and the summary as the answer.

    The material is what a model would be asked with, all in one prompt, whoever wrote the summary; secrets are taken
    out of both. ``template``: the name of the summary's.
    """

    template: str

    def __call__(self, request: Request, summary: str) -> bytes:
        """The line of one summary, as it stands in the output, its marker aside."""
        redactor = Redactor()
        wording = self._wording(request)
        rules = prompts.rules(wording, Stage.LEAF)
        prompt = prompts.prompt(wording, self._prompt_input(request, redactor))
        turns = (("system", rules), ("user", prompt), ("assistant", redactor.redact(without_marker(summary))))
        marker = find_marker(summary)
        row = {
            "messages": [{"role": role, "content": text} for role, text in turns],
            "transcript": marker.transcript if marker else "",
        }
        return json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"

    def _wording(self, request: Request) -> PromptWording:
        spoken = (request.transcript.messages[i] for i in (*request.covered, *request.kept))
        language = request.language if request.language in LANGUAGES else detect(map(user_text, spoken))
        headings = asked(headings_of(request.render, language))
        return PromptWording(template=self.template, language=language, headings=headings, focus=request.focus)

    def _prompt_input(self, request: Request, redactor: Redactor) -> PromptInput:
        messages = request.transcript.messages
        new = [i for i in request.covered if messages[i].summary is None]
        earlier = [found.text for i in request.covered if (found := messages[i].summary)]
        forbidden = heading_lines(request.render, LANGUAGES)
        blocks = flatten(request.transcript, new, rule=_RULE, headings=forbidden)
        return PromptInput(
            stage=Stage.LEAF,
            texts=tuple(redactor.redact_all([block.text for block in blocks])),
            tokens=request.budget_tokens,
            first=blocks[0].name if blocks else "",
            last=blocks[-1].name if blocks else "",
            previous=redactor.redact("\n\n".join(earlier)),
        )
