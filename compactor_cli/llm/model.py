"""The summariser that asks a model, and falls back on the digest where the model gives no summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from compactor_cli.digest.digest import Digest
from compactor_cli.digest.language import LANGUAGES, detect
from compactor_cli.formats.harness import user_text
from compactor_cli.llm import prompts
from compactor_cli.llm.model_calls import Call, ModelFailure, Price, UnknownModel, served_name
from compactor_cli.llm.prompts import PromptInput, PromptWording, Stage, heading_lines, headings_of, written_headings
from compactor_cli.llm.quoting import Earlier, LoadOriginal, Previous, earlier, flatten, quoter
from compactor_cli.llm.redact import Redactor
from compactor_cli.llm.supplement import MOST_RATIO, CompletedText, RecordFacts, completed
from compactor_cli.llm.writer import Rejected, StillTooLong, SummaryTask, SummaryWriter
from compactor_cli.model.errors import CompactError, KeptAsIs, OutputError, UsageError
from compactor_cli.model.marker import find_marker, without_marker
from compactor_cli.model.settings import PruneRule
from compactor_cli.model.summary import Answer, Estimate, Request, Source, Summary
from compactor_cli.model.value import dataclass
from compactor_cli.plan.models import nearest_models
from compactor_cli.plan.shorten import shortened

if TYPE_CHECKING:
    from compactor_cli.llm.model_client import BackgroundEventLoop, ModelClient


AUTO, SAME = "auto", "same-as-main"
# How tool results are shortened in prompts where the preset has no rule for them.
_RULE = PruneRule(name="tool-result")
# Below this a model has no room for a line under every heading.
LEAST_TOKENS = 200
_MOST_NUMBERS = 8
_MOST_REQUEST_CHARS = 1_200


class Unnamed(ModelFailure):
    """The model is to be the transcript's own, and the transcript names none."""


class OnFailure(StrEnum):
    """What to do where the model gives no summary."""

    DIGEST = "digest"  # the digest writes it
    KEEP = "keep"  # the transcript stays as it is
    FAIL = "fail"  # the run reports an error


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """What the user wants of the model."""

    model: str  # a name, or `AUTO`: the model of the transcript
    models: Mapping[Stage, str] = field(default_factory=dict)  # for stages with a model of their own; or `SAME`
    api_base: str = ""  # the user's own server; empty: the provider's
    price: Price | None = None  # None: that of the table
    timeout_seconds: float = 600.0
    max_reply_bytes: int = 0  # 0: no limit
    previous: Previous = Previous.UPDATE
    on_failure: OnFailure = OnFailure.DIGEST
    template: str = "hermes"
    instructions: str = ""
    guidance: str = ""  # the user's remarks on an earlier attempt at this summary
    rule: PruneRule | None = _RULE  # how tool results are shortened in prompts; None: they are whole
    verifies: bool = False  # whether the model is asked once more what its summary left out


class ModelSummariser:
    """Summarises with a model. Safe for several threads: they share the client, the loop, and nothing else.

    ``new_redactor`` makes the redactor of one transcript; None: nothing is taken out, at the user's request.
    ``load_original`` finds an archived transcript by its hash.
    """

    def __init__(
        self,
        client: ModelClient,
        loop: BackgroundEventLoop,
        model_options: ModelOptions,
        *,
        new_redactor: Callable[[], Redactor] | None,
        load_original: LoadOriginal = lambda sha256: None,
    ) -> None:
        self._client = client
        self._loop = loop
        self._model_options = model_options
        self._new_redactor = new_redactor
        self._load_original = load_original

    def summarise(self, request: Request) -> Answer:
        """The model's summary, with a supplement from the digest for what it left out.

        Where the model gives none, ``on_failure`` decides: the digest alone, or raises `KeptAsIs` or `OutputError`.
        Raises `UsageError` where the provider does not know the model that the user named.
        """
        redactor = self._new_redactor() if self._new_redactor else None
        writer = None
        try:
            if writer := self._writer(request, redactor):
                answer = self._answer(writer)
            else:
                note = "the budget is too small for a model, or there is nothing to summarise: the digest wrote it"
                answer = replace(Digest().summarise(request), notes=(note,))
        except ModelFailure as failure:
            if error := self._error(failure):
                raise error from None
            answer = replace(Digest().summarise(request), fell_back=failure.reason)
        if refusals := writer.refusals if writer else []:
            tokens = sum(refusal.tokens for refusal in refusals)
            why = "; ".join(dict.fromkeys(refusal.why for refusal in refusals))
            plural = "reply" if len(refusals) == 1 else "replies"
            note = f"{len(refusals)} {plural} had faults, {tokens:,} tokens: {why}"
            faults = Counter(refusal.fault.value for refusal in refusals)
            answer = replace(answer, refused=dict(faults), refused_tokens=tokens, notes=(*answer.notes, note))
        return replace(answer, redacted=dict(redactor.counts)) if redactor else answer

    def _error(self, failure: ModelFailure) -> CompactError | None:
        """What to raise where the model gives no summary; None where the digest writes it."""
        policy, model = self._model_options.on_failure, self._model_options.model
        what = f"no summary by the model: {failure.reason}"
        if isinstance(failure, UnknownModel) and model != AUTO:
            what = f"the provider does not know the model {model}: {failure.reason}"
            nearest = ", ".join(nearest_models(model))
            advice = "check the name (-m) and the server (--api-base); no further request is sent"
            return UsageError(what, next_step=f"did you mean {nearest}? else {advice}" if nearest else advice)
        if policy is OnFailure.FAIL:
            return OutputError(what, next_step="try again later, or leave --on-failure out for the digest")
        return KeptAsIs(what) if policy is OnFailure.KEEP else None

    def estimate(self, request: Request) -> Estimate:
        """What the summary would cost; nothing is sent. An empty estimate where no model would be asked."""
        redactor = self._new_redactor() if self._new_redactor else None
        try:
            writer = self._writer(request, redactor)
            return writer.estimate() if writer else Estimate()
        except Unnamed:
            return Estimate()

    def _writer(self, request: Request, redactor: Redactor | None) -> SummaryWriter | None:
        """What writes the summary; None where there is no room or nothing to summarise. Raises `Unnamed`."""
        options = self._model_options
        language = request.language if request.language != "auto" else _language(request)
        found = earlier(request, options.previous, self._load_original)
        prose = found.previous if options.previous is Previous.KEEP else ""
        frame = Summary(source=Source.MODEL, sections=(), language=language)
        body = request.budget_tokens - request.count(request.render(replace(frame, prose=prose)))
        if prose and body < request.budget_tokens // 3:
            note = "the earlier summary leaves no room to be kept as it is: it was updated"
            found, prose = replace(found, notes=(*found.notes, note)), ""
            body = request.budget_tokens - request.count(request.render(frame))
        budget_tokens = int(body * (1 - MOST_RATIO))
        if budget_tokens < LEAST_TOKENS or not any(strand.indices for strand in found.strands):
            return None
        found = replace(found, previous="") if prose else found
        task = _task(replace(request, language=language), found, prose, budget_tokens, options, redactor)
        if not task.blocks:
            return None  # only thinking and bookkeeping: no text that a model may be shown
        calls = {}  # for each stage, what all its calls have in common
        for stage in Stage:
            name = options.models.get(stage, options.model)
            name = options.model if name == SAME else name
            name = request.transcript.model if name in (AUTO, SAME) else name
            if not name:
                raise Unnamed("the transcript does not say which model wrote it: name one with -m")
            calls[stage] = Call(
                model=served_name(name, options.api_base),
                messages=(),
                max_tokens=0,
                about=request.transcript.sha256,
                api_base=options.api_base,
                price=options.price,
                timeout_seconds=options.timeout_seconds,
                max_reply_bytes=options.max_reply_bytes,
            )
        client, loop, verifies = self._client, self._loop, options.verifies
        return SummaryWriter(task=task, client=client, loop=loop, calls=calls, redactor=redactor, verifies=verifies)

    def _answer(self, writer: SummaryWriter) -> Answer:
        """The accepted draft with its supplement. Raises `ModelFailure`."""
        try:
            draft = writer.write()
        except StillTooLong:
            # The client falls back for single calls that fail; here all are made again for the fallback model, whose
            # window the spans may fit.
            if not self._client.fallback_of(writer.calls[Stage.LEAF]):
                raise
            writer.calls = {stage: self._client.fallback_of(call) or call for stage, call in writer.calls.items()}
            draft = writer.write()
        task, outline = writer.task, draft.verdict.outline
        text = CompletedText(
            sections=outline.sections,
            prose="\n\n".join(filter(None, (task.prose, outline.prose))),
            missing=outline.missing(task.wording.headings),
        )
        language, analysis, request = task.wording.language, task.facts.analysis, task.request
        answer = completed(request, text, language, analysis=analysis, previous=task.earlier.previous)
        if request.count(request.render(answer.summary)) > request.budget_tokens:
            raise Rejected("the reply was not accepted: cut as far as it may be, it is still too long")
        fell_back, notes = "", [*task.earlier.notes]
        if cut := sum(block.cut_chars > 0 for block in task.blocks):
            notes.append(f"long texts that were shortened in the prompt: {cut}")
        if draft.healed:
            why = draft.failure.reason if draft.failure else "its replies about the others were twice not accepted"
            fell_back = f"of {draft.leaves} parts, the model summarised {draft.leaves - draft.healed}: {why}"
            if self._model_options.on_failure is not OnFailure.DIGEST:
                raise Rejected(fell_back)
        if draft.unjoined:
            why = f"the model did not join them: {draft.unjoined}"
            notes.append(f"the summaries of the parts stand side by side, {why}")
        if numbers := draft.verdict.numbers:
            named = ", ".join(numbers[:_MOST_NUMBERS])
            notes.append(f"numbers that the model gave and no record shows ({len(numbers)}): {named}")
        return replace(answer, fell_back=fell_back, invented=draft.verdict.invented, notes=tuple(notes))


def _task(
    request: Request, found: Earlier, prose: str, budget_tokens: int, options: ModelOptions, redactor: Redactor | None
) -> SummaryTask:
    """The task, its texts quoted, then redacted together: a secret recognised by its place in one is found in all."""
    forbidden = heading_lines(request.render, dict.fromkeys((*LANGUAGES, request.language)))
    remarks = "\n".join(filter(None, (options.instructions, options.guidance)))
    blocks = [
        block
        for number, one in enumerate(found.strands)
        for block in flatten(
            one.transcript, one.indices, rule=options.rule, headings=forbidden, prefix=one.prefix, strand=number
        )
    ]
    # The user's first request and the newest one, of those kept before the covered records and of the records
    # themselves; long ones without their middle.
    spoken = (strand.transcript.messages[i] for strand in found.strands for i in strand.indices)
    kept = (request.transcript.messages[i] for i in request.kept if i < min(request.covered))
    asked = [text for text in map(user_text, (*kept, *spoken)) if text]
    half = _MOST_REQUEST_CHARS // 2
    requests = [shortened(text, half, half) for text in (*asked[:1], *asked[1:][-1:])]
    quoted = map(quoter(forbidden), (*requests, "", "")[:2])
    texts = (quoter(())(found.previous), request.focus, remarks, *quoted)
    clean: Sequence[str] = [*texts, *(block.text for block in blocks)]
    clean = redactor.redact_all(clean) if redactor else clean
    previous, focus, instructions, goal, latest = clean[: len(texts)]
    shown = zip(blocks, clean[len(texts) :], strict=True)
    return SummaryTask(
        request=request,
        earlier=found,
        facts=RecordFacts(request, found.strands),
        wording=PromptWording(
            template=options.template,
            language=request.language,
            headings=written_headings(headings_of(request.render, request.language)),
            focus=focus,
            instructions=instructions,
        ),
        budget_tokens=budget_tokens,
        count=request.count,
        forbidden=forbidden,
        blocks=tuple(replace(block, text=text, tokens=request.count(text) + 1) for block, text in shown),
        previous=previous,
        goal=goal,
        latest=latest,
        prose=prose,
    )


def _language(request: Request) -> str:
    """The language of the user's messages, covered or kept."""
    messages = request.transcript.messages
    return detect(user_text(messages[i]) for i in (*request.covered, *request.kept))


def training_row(request: Request, summary: str, *, template: str) -> bytes:
    """A line of JSON for training: messages with the rules, the material, and the summary without its marker as answer.

    The material is what a model would be asked with, all in one prompt, whoever wrote the summary; secrets are taken
    out of both. ``template``: the name of the summary's template.
    """
    redactor = Redactor()
    language = request.language if request.language in LANGUAGES else _language(request)
    headings = written_headings(headings_of(request.render, language))
    wording = PromptWording(template=template, language=language, headings=headings, focus=request.focus)
    messages = request.transcript.messages
    new = [i for i in request.covered if messages[i].summary is None]
    earlier = [found.text for i in request.covered if (found := messages[i].summary)]
    blocks = flatten(request.transcript, new, rule=_RULE, headings=heading_lines(request.render, LANGUAGES))
    prompt_input = PromptInput(
        stage=Stage.LEAF,
        texts=redactor.redact_all(block.text for block in blocks),
        tokens=request.budget_tokens,
        first=blocks[0].name if blocks else "",
        last=blocks[-1].name if blocks else "",
        previous=redactor.redact("\n\n".join(earlier)),
    )
    turns = {
        "system": prompts.rules(wording, Stage.LEAF),
        "user": prompts.prompt(wording, prompt_input),
        "assistant": redactor.redact(without_marker(summary)),
    }
    shown = [{"role": role, "content": text} for role, text in turns.items()]
    marker = find_marker(summary)
    row = {"messages": shown, "transcript": marker.transcript if marker else ""}
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
