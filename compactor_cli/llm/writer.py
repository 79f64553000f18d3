"""Writes one summary with a model: parts are summarised side by side, replies checked, and joined level by level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from compactor_cli.llm import check_reply, model_calls, prompts, quoting
from compactor_cli.llm.check_reply import CheckInput, Essential, ReplyFault, Verdict, check, coverage, cut_to_budget
from compactor_cli.llm.model_calls import Call, ChatMessage, ContextTooLong, GaveUp, ModelFailure, Reply, Speaker
from compactor_cli.llm.model_client import SHRINK_ROUNDS, BackgroundEventLoop, ModelClient
from compactor_cli.llm.prompts import PromptInput, PromptWording, Stage, as_text, joined_outline
from compactor_cli.llm.quoting import Earlier, Strand, quoter
from compactor_cli.llm.supplement import RecordFacts
from compactor_cli.model.summary import Estimate, Request
from compactor_cli.model.value import dataclass
from compactor_cli.plan.layout import FLOOR_TOKENS, scaled_tokens
from compactor_cli.plan.models import table_entry

if TYPE_CHECKING:
    from compactor_cli.llm.redact import Redactor

# The limit on a reply, by the length that was asked for: models only estimate tokens, and a reply that is cut off is
# worse than a long one.
REPLY_RATIO = 1.5
# Added for models that reason first: their reasoning counts against the same limit.
_REASONING_TOKENS = 8_000
_REASON_WHEN_ASKED = ("anthropic", "bedrock", "bedrock_converse", "vertex_ai-anthropic_models")


class Rejected(ModelFailure):
    """What the model replied is not accepted as the summary. ``reason`` names the faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A reply that was paid for and not accepted."""

    fault: ReplyFault
    why: str  # the fault and its measure, without texts of the transcript
    tokens: int  # of prompt and reply


class StillTooLong(GaveUp):
    """However small the spans were cut, the model found them too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTask:
    """What is to be written, and from what."""

    request: Request
    earlier: Earlier  # what the summary is made from, neither quoted nor redacted
    facts: RecordFacts
    wording: PromptWording
    budget_tokens: int  # for the model's text
    count: Callable[[str], int]  # tokens of a text
    forbidden: tuple[str, ...]  # lines that no quoted text may hold
    # The texts of prompts, quoted and redacted.
    blocks: quoting.Leaf
    previous: str  # the earlier summary that is to be updated; empty: none
    goal: str  # the user's first request
    latest: str  # the user's newest request
    prose: str  # an earlier summary that stays as it is, in front of what is written


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryDraft:
    """An accepted summary of some blocks or of all of them."""

    verdict: Verdict
    text: str  # as a prompt shows it
    tokens: int  # of the text
    blocks: quoting.Leaf
    leaves: int = 1  # how many it was joined from
    healed: int = 0  # how many of its leaves the digest wrote, as no reply of the model was accepted
    failure: ModelFailure | None = None  # why the model gave no reply about one of its leaves
    unjoined: str = ""  # why its parts stand side by side; empty where they were joined


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One prompt, and what is needed to check its reply."""

    call: Call
    check_input: CheckInput
    blocks: quoting.Leaf  # that it is about
    joins: tuple[SummaryDraft, ...] = ()  # the summaries that it joins; empty: it is about the records themselves


@dataclass(slots=True, kw_only=True)
class SummaryWriter:
    """Writes the summary of one task through a client. Not for several threads.

    Where the model gives no summary of one part, or does not join the parts, the summaries of the other parts are used
    all the same.
    """

    task: SummaryTask
    client: ModelClient
    loop: BackgroundEventLoop
    calls: Mapping[Stage, Call]  # for each stage, what all its calls have in common
    redactor: Redactor | None  # None: secrets are left in
    verifies: bool  # whether the model is asked once more what its summary left out
    refusals: list[Refusal] = field(default_factory=list)  # every reply that was not accepted, in order

    def write(self) -> SummaryDraft:
        """The summary. Raises the failures of `ModelClient.ask`, `Rejected`, and `InvariantError` for a defect."""
        drafts = self._leaves()
        if all(draft.healed for draft in drafts):
            raise drafts[0].failure or Rejected(f"no reply was accepted: {self.refusals[-1].why}")
        return self._joined(drafts)

    def estimate(self) -> Estimate:
        """What the summary would take: the leaves as they would be sent, and joining replies of the length asked for.

        Where the model is to verify its summary, the last call is counted once more, with its reply.
        """
        task, merge = self.task, self.calls[Stage.MERGE]
        leaves = [job.call for job in self._leaf_jobs()]
        asked = [(call, self._counted(call)) for call in leaves]
        sizes = [int(call.max_tokens / REPLY_RATIO) for call in leaves]
        total = sum((_priced(call, sent, size) for (call, sent), size in zip(asked, sizes, strict=True)), Estimate())
        fixed = task.count(prompts.rules(task.wording, Stage.MERGE)) + task.count(task.previous)
        room = quoting.prompt_limits(merge.model, task.budget_tokens, fixed).leaf_tokens
        while len(sizes) > 1:
            groups = quoting.merge_groups(sizes, room)
            joined = [sum(sizes[start:stop]) + fixed for start, stop in groups if stop - start > 1]
            total = sum((_priced(merge, sent, task.budget_tokens) for sent in joined), total)
            asked += ((merge, sent) for sent in joined)
            sizes = [sizes[start] if stop - start == 1 else task.budget_tokens for start, stop in groups]
        if self.verifies:
            call, sent = asked[-1]
            total += _priced(call, sent + sizes[0] + task.count(prompts.verify(task.wording)), sizes[0])
        return total

    def _leaf_jobs(self) -> list[_Job]:
        leaves = quoting.cut(self.task.blocks, self._limits(Stage.LEAF).leaf_tokens, self.task.count)
        return [self._leaf(leaf, part, len(leaves)) for part, leaf in enumerate(leaves, 1)]

    def _leaves(self) -> list[SummaryDraft]:
        """The accepted summaries of the leaves. A leaf that is too long is cut in two, three times at most."""
        places: list[tuple[_Job, SummaryDraft | None]] = [(job, None) for job in self._leaf_jobs()]
        for _ in range(SHRINK_ROUNDS + 1):
            shown = [name for job, _ in places for name in prompts.marks(job.call.messages[-1].text)]
            quoting.check_coverage([block.name for block in self.task.blocks], shown)
            asked = iter(self._accepted([job for job, draft in places if draft is None]))
            places = [(job, draft or next(asked)) for job, draft in places]
            drafts = [draft for _, draft in places if draft]
            if len(drafts) == len(places):
                return drafts
            halved: list[tuple[_Job, SummaryDraft | None]] = []
            for at, (job, draft) in enumerate(places):
                # Only a leaf that the model found too long has no draft.
                halves = () if draft else quoting.split(job.blocks, self.task.count)
                total = max(len(places) + len(halves) - 1, 2)
                halved += [(self._leaf(leaf, at + n, total), None) for n, leaf in enumerate(halves, 1)]
                halved += [(job, draft)] if draft else []
            places = halved
        raise StillTooLong(f"still too long after {SHRINK_ROUNDS} rounds of smaller spans")

    def _limits(self, stage: Stage) -> quoting.PromptLimits:
        task = self.task
        prompt_parts = prompts.rules(task.wording, stage) + task.wording.instructions + task.wording.focus
        fixed = task.count(prompt_parts) + task.count(task.previous) + 2_000
        return quoting.prompt_limits(self.calls[stage].model, task.budget_tokens, fixed)

    def _leaf(self, leaf: quoting.Leaf, part: int, parts: int) -> _Job:
        """The job of one leaf, which is ``part`` (from 1) of ``parts``; cutting leaves again changes these numbers."""
        task, alone = self.task, parts == 1
        tokens = sum(block.tokens for block in leaf)
        essentials = task.facts.essentials(self._strands(leaf))
        prompt_input = PromptInput(
            stage=Stage.LEAF,
            texts=tuple(block.text for block in leaf),
            tokens=self._budget(Stage.LEAF, tokens, is_whole=alone),
            first=leaf[0].name,
            last=leaf[-1].name,
            check_list=self._check_list(leaf, essentials),
            previous=task.previous if alone else "",
            part=part,
            parts=parts,
            goal="" if alone else task.goal,
            latest="" if alone else task.latest,
        )
        return self._job(prompt_input, leaf, tokens + (task.count(task.previous) if alone else 0), essentials)

    def _merge(self, drafts: Sequence[SummaryDraft], *, is_last: bool) -> _Job:
        task = self.task
        blocks = tuple(block for draft in drafts for block in draft.blocks)
        tokens = sum(block.tokens for block in blocks)
        essentials = task.facts.essentials(self._strands(blocks))
        texts = tuple(draft.text for draft in drafts)
        unnamed = coverage("\n".join(texts), essentials).missing
        prompt_input = PromptInput(
            stage=Stage.MERGE,
            texts=texts,
            tokens=self._budget(Stage.MERGE, tokens, is_whole=is_last),
            check_list=check_reply.not_shown(self._check_list(blocks, unnamed), texts),
            previous=task.previous if is_last else "",
            goal=task.goal,
            latest=task.latest,
        )
        return self._job(prompt_input, blocks, tokens, essentials, joins=tuple(drafts))

    def _budget(self, stage: Stage, source_tokens: int, *, is_whole: bool) -> int:
        """The tokens that a summary of this source may take; ``is_whole``: it is the final one.

        A part may take what any summary of such a source may. It may take at least as much as the final summary, or
        half of its source if that is less.
        """
        reply_tokens, final_tokens = self._limits(stage).reply_tokens, self.task.budget_tokens
        if is_whole:
            return min(final_tokens, reply_tokens)
        least = min(final_tokens, reply_tokens, source_tokens // 2)
        return max(min(scaled_tokens(source_tokens), reply_tokens), least, FLOOR_TOKENS)

    def _check_list(self, leaf: quoting.Leaf, essentials: tuple[Essential, ...]) -> str:
        tokens = sum(block.tokens for block in leaf)
        share = tokens / max(sum(block.tokens for block in self.task.blocks), 1)
        text = self.task.facts.check_list(self._strands(leaf), tokens, essentials, share)
        return quoter(self.task.forbidden)(self._clean(text))

    def _clean(self, text: str) -> str:
        return self.redactor.redact(text) if self.redactor else text

    def _strands(self, leaf: quoting.Leaf) -> list[Strand]:
        """The records of these blocks, grouped by transcript."""
        by_strand: dict[int, list[int]] = {}
        for block in leaf:
            by_strand.setdefault(block.strand, []).append(block.record)
        strands = self.task.earlier.strands
        return [replace(strands[number], indices=tuple(records)) for number, records in by_strand.items()]

    def _job(
        self,
        prompt_input: PromptInput,
        blocks: quoting.Leaf,
        source_tokens: int,
        essentials: tuple[Essential, ...],
        joins: tuple[SummaryDraft, ...] = (),
    ) -> _Job:
        task = self.task
        text = prompts.prompt(task.wording, prompt_input)
        rules = prompts.rules(task.wording, prompt_input.stage)
        # The parts from the transcript are redacted already; the rest is the same for every transcript.
        prompt_parts = (
            ChatMessage(speaker=Speaker.SYSTEM, text=rules, is_redacted=True),
            ChatMessage(speaker=Speaker.USER, text=text, is_redacted=True),
        )
        call = self.calls[prompt_input.stage]
        entry = table_entry(call.model)
        reasons = entry.get("supports_reasoning") and entry.get("litellm_provider") not in _REASON_WHEN_ASKED
        most = int(prompt_input.tokens * REPLY_RATIO) + (_REASONING_TOKENS if reasons else 0)
        check_input = CheckInput(
            records=task.facts.records.with_shown(text, rules),
            essentials=essentials,
            source_tokens=source_tokens,
            budget_tokens=prompt_input.tokens,
            headings=task.wording.headings,
            covered=frozenset(task.request.covered),
            known=task.request.heading_names(),
            is_part=len(blocks) < len(task.blocks),
        )
        call = replace(call, messages=prompt_parts, max_tokens=most, prompt_version=prompts.version())
        return _Job(call=call, check_input=check_input, blocks=blocks, joins=joins)

    def _joined(self, drafts: list[SummaryDraft]) -> SummaryDraft:
        """The summaries joined level by level, at last with the earlier summary; side by side where that fails."""
        room = self._limits(Stage.MERGE).leaf_tokens
        while len(drafts) > 1:
            groups = quoting.merge_groups([draft.tokens for draft in drafts], room)
            wanted = [(start, stop) for start, stop in groups if stop - start > 1]
            jobs = [self._merge(drafts[start:stop], is_last=len(groups) == 1) for start, stop in wanted]
            done = dict(zip(wanted, self._accepted(jobs), strict=True))
            if None not in done.values():
                drafts = [done.get(place) or drafts[place[0]] for place in groups]
            elif room > 2 * min(draft.tokens for draft in drafts):
                room //= 2
            else:
                return self._side_by_side(self._merge(drafts, is_last=True), "they are too long for the model")
        return drafts[0]

    def _accepted(self, jobs: Sequence[_Job]) -> list[SummaryDraft | None]:
        """The accepted summary of each job, in order; None for one whose prompt is too long for the model.

        A faulty reply is asked for again with its fault named, then from the fallback model. Raises what `_taken` does.
        """

        def with_fault(call: Call, verdict: Verdict) -> Call:
            # At the end, so that the beginning of the prompt stays the same for the provider's cache.
            *before, last = call.messages
            note = prompts.retry(self.task.wording, str(verdict.fault), verdict.details)
            return replace(call, messages=(*before, replace(last, text=f"{last.text}\n\n{note}", is_redacted=False)))

        verdicts = self._asked([job.call for job in jobs], jobs)
        self._ask_again(verdicts, jobs, with_fault)
        self._ask_again(verdicts, jobs, lambda call, _: self.client.fallback_of(call))
        drafts = [self._taken(verdict, job) if verdict else None for verdict, job in zip(verdicts, jobs, strict=True)]
        is_whole = len(jobs) == 1 and not jobs[0].check_input.is_part
        if self.verifies and is_whole and drafts[0] and isinstance(verdicts[0], Verdict) and not verdicts[0].fault:
            return [self._verified(drafts[0], jobs[0])]
        return drafts

    def _verified(self, draft: SummaryDraft, job: _Job) -> SummaryDraft:
        """What the model writes when it is asked what its summary left out; the draft itself if that has a fault."""
        prompt_parts = (
            ChatMessage(speaker=Speaker.ASSISTANT, text=draft.text),
            ChatMessage(speaker=Speaker.USER, text=prompts.verify(self.task.wording)),
        )
        call = replace(job.call, messages=(*job.call.messages, *prompt_parts))
        (verdict,) = self._asked([call], [job])
        return self._draft(verdict, job) if isinstance(verdict, Verdict) and not verdict.fault else draft

    def _taken(self, verdict: Verdict | ModelFailure, job: _Job) -> SummaryDraft:
        """The summary that a job ends with: the reply, whole or cut to size, else its parts side by side, or a digest.

        Raises the failure, or `Rejected`, where the job is about all records and no text by the model is left.
        """
        failure = verdict if isinstance(verdict, ModelFailure) else None
        if isinstance(verdict, Verdict):
            if not verdict.fault:
                return self._draft(verdict, job)
            if verdict.fault is ReplyFault.TOO_LONG or check_reply.is_enough(verdict, job.check_input):
                return self._draft(cut_to_budget(verdict, job.check_input, self.task.count), job)
        if job.joins:
            return self._side_by_side(job, failure.reason if failure else str(verdict))
        if not job.check_input.is_part:
            raise failure or Rejected(f"the reply was not accepted: {verdict}")
        facts, headings = self.task.facts, self.task.wording.headings
        outline = facts.outline(self._strands(job.blocks), job.check_input.budget_tokens, headings)
        draft = self._draft(Verdict(outline=outline), job)
        return replace(draft, text=self._clean(draft.text), healed=1, failure=failure)

    def _side_by_side(self, job: _Job, why: str) -> SummaryDraft:
        """The summaries that a job should have joined, item after item; ``why`` it did not, for people."""
        found = [draft.verdict for draft in job.joins]
        outline = joined_outline([verdict.outline for verdict in found])
        whole = Verdict(outline=outline, invented=tuple(name for verdict in found for name in verdict.invented))
        return replace(self._draft(cut_to_budget(whole, job.check_input, self.task.count), job), unjoined=why)

    def _draft(self, verdict: Verdict, job: _Job) -> SummaryDraft:
        text = verdict.outline.prose or as_text(verdict.outline.sections, self.task.wording.headings)
        return SummaryDraft(
            verdict=verdict,
            text=text,
            tokens=self.task.count(text),
            blocks=job.blocks,
            leaves=sum(draft.leaves for draft in job.joins) or 1,
            healed=sum(draft.healed for draft in job.joins),
            failure=next((draft.failure for draft in job.joins if draft.failure), None),
        )

    def _ask_again(
        self, verdicts: list[_Outcome], jobs: Sequence[_Job], new_call: Callable[[Call, Verdict], Call | None]
    ) -> None:
        """Ask once more for each faulty reply and replace its verdict; do nothing if one of them has no new call."""
        faulty = {n: verdict for n, verdict in enumerate(verdicts) if isinstance(verdict, Verdict) and verdict.fault}
        calls = [call for n, verdict in faulty.items() if (call := new_call(jobs[n].call, verdict))]
        if len(calls) == len(faulty):
            new = self._asked([replace(call, is_repeat=True) for call in calls], [jobs[n] for n in faulty])
            for n, verdict in zip(faulty, new, strict=True):
                verdicts[n] = verdict if isinstance(verdict, Verdict) else verdicts[n]

    def _asked(self, calls: Sequence[Call], jobs: Sequence[_Job]) -> list[_Outcome]:
        calls = [replace(call, input_tokens=self._counted(call)) for call in calls]
        replies = self.loop.run(_all(self.client, calls, self.redactor)) if calls else []
        verdicts: list[_Outcome] = []
        for reply, job in zip(replies, jobs, strict=True):
            if not isinstance(reply, Reply):
                verdicts.append(reply)
                continue
            verdict = check(reply, job.check_input, self.task.count)
            verdicts.append(verdict)
            if verdict.fault:
                tokens = reply.input_tokens + reply.output_tokens
                self.refusals.append(Refusal(fault=verdict.fault, why=str(verdict), tokens=tokens))
        return verdicts

    def _counted(self, call: Call) -> int:
        """The tokens of the call's prompt."""
        return sum(self.task.count(message.text) for message in call.messages)


# The outcome of a call; None: its prompt was too long for the model.
_Outcome = Verdict | ModelFailure | None


async def _all(
    client: ModelClient, calls: Sequence[Call], redactor: Redactor | None
) -> list[Reply | ModelFailure | None]:
    """The replies or failures in order, None for a prompt that is too long. Raises `UnknownModel`."""
    import asyncio

    async def one(call: Call) -> Reply | ModelFailure | None:
        try:
            return await client.ask(call, redactor)
        except model_calls.UnknownModel:
            raise
        except ModelFailure as failure:
            return None if isinstance(failure, ContextTooLong) else failure

    tasks = [asyncio.ensure_future(one(call)) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _priced(call: Call, input_tokens: int, output_tokens: int) -> Estimate:
    price = call.known_price
    cost_usd = price.cost_usd(input_tokens=input_tokens, output_tokens=output_tokens) if price else None
    return Estimate(requests=1, input_tokens=input_tokens, output_tokens=output_tokens, cost_usd=cost_usd)
