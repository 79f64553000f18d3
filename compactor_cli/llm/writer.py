"""Writer: one summary asked of a model — leaves side by side, each reply checked, then joined level by level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from compactor_cli.llm import prompts, quoting
from compactor_cli.llm.check_reply import (
    CheckInput,
    Essential,
    ReplyFault,
    Verdict,
    check,
    coverage,
    is_enough,
    not_shown,
    shortened,
)
from compactor_cli.llm.model_calls import (
    Call,
    ChatMessage,
    ContextTooLong,
    GaveUp,
    ModelFailure,
    Reply,
    Speaker,
    UnknownModel,
)
from compactor_cli.llm.model_client import SHRINK_ROUNDS
from compactor_cli.llm.outline import Outline, as_text, joined_outline
from compactor_cli.llm.prompts import PromptInput, PromptWording, Stage
from compactor_cli.llm.quoting import Strand, quoter
from compactor_cli.llm.supplement import RecordFacts
from compactor_cli.model.summary import Section
from compactor_cli.model.value import dataclass
from compactor_cli.plan.models import table_entry

if TYPE_CHECKING:
    from compactor_cli.llm.model_client import BackgroundEventLoop, ModelClient
    from compactor_cli.llm.redact import Redactor

# What a reply may take of tokens beyond what was asked: models count by feel. Cut off is worse than long.
REPLY_RATIO = 1.5
# Models that reason first do so within the same limit.
_REASONING_TOKENS = 8_000
_REASON_WHEN_ASKED = ("anthropic", "bedrock", "bedrock_converse", "vertex_ai-anthropic_models")


class Rejected(ModelFailure):
    """The model answered, and not with the summary that was asked for, twice. ``reason`` names the faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A reply that was paid for and not taken. ``why``: the fault and its measure, without texts of the transcript."""

    fault: ReplyFault
    why: str
    tokens: int


class StillTooLong(GaveUp):
    """However small the spans were cut, the model found them too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTask:
    """What is to be written, and from what. ``previous`` is quoted and redacted already, ``pieces`` too.

    ``known``: other names of the headings, as in `read_reply`. ``goal`` and ``latest``: the user's first and newest
    request in all of it, quoted.
    """

    facts: RecordFacts
    strands: tuple[Strand, ...]
    pieces: tuple[quoting.BlockSlice, ...]
    wording: PromptWording
    budget_tokens: int
    count: Callable[[str], int]
    forbidden: tuple[str, ...]
    previous: str = ""
    covered: frozenset[int] = frozenset()
    known: Mapping[str, Section] = field(default_factory=dict)
    goal: str = ""
    latest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryDraft:
    """A summary that was accepted, of some pieces or of all of them; ``text``: as a prompt shows it.

    ``invented``: names and quotations without a source, marked in it or taken out; ``numbers``: counts and sums that
    no record shows; ``healed``: of its ``leaves``, those that the digest wrote, as the model twice gave no summary;
    ``failure``: why it was not even asked to the end; ``unjoined``: why its parts stand side by side, empty where
    they do not.
    """

    outline: Outline
    text: str
    tokens: int
    pieces: quoting.Leaf
    invented: tuple[str, ...]
    numbers: tuple[str, ...]
    leaves: int = 1
    healed: int = 0
    failure: ModelFailure | None = None
    unjoined: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One prompt with what its reply is held against, and the pieces it is about.

    ``joins``: the summaries that it joins; none where it is about records.
    """

    call: Call
    check_input: CheckInput
    pieces: quoting.Leaf
    joins: tuple[SummaryDraft, ...] = ()


@dataclass(slots=True, kw_only=True)
class SummaryWriter:
    """Asks through one client. ``calls`` holds for each stage what is the same in all its calls.

    What was paid for stays: where the model gives no summary of one part, or does not join the parts, the others' are
    used. ``verifies``: the model is asked once more what its summary left out; ``refusals``: every reply that was not
    taken, in order. Not for several threads.
    """

    client: ModelClient
    loop: BackgroundEventLoop
    calls: Mapping[Stage, Call]
    redactor: Redactor | None
    verifies: bool
    refusals: list[Refusal]

    def write(self, task: SummaryTask) -> SummaryDraft:
        """The summary. Raises the failures of `ModelClient.ask`, and `Rejected`; `CoverageError` for a defect of this
        package.
        """
        drafts = self._leaves(task)
        if all(draft.healed for draft in drafts):
            raise drafts[0].failure or Rejected(f"no reply was accepted: {self.refusals[-1].why}")
        return self._joined(task, drafts)

    def prompts(self, task: SummaryTask) -> list[Call]:
        """The calls of the leaves, none of them sent."""
        return [job.call for job in self._jobs(task)]

    def _jobs(self, task: SummaryTask) -> list[_Job]:
        leaves = quoting.cut(task.pieces, self._limits(task, Stage.LEAF).leaf_tokens, task.count)
        return [self._leaf(task, leaf, part, len(leaves)) for part, leaf in enumerate(leaves, 1)]

    def _leaves(self, task: SummaryTask) -> list[SummaryDraft]:
        """The accepted summaries of the leaves. One that is too long is cut again, three times at most."""
        places: list[tuple[_Job, SummaryDraft | None]] = [(job, None) for job in self._jobs(task)]
        for _ in range(SHRINK_ROUNDS + 1):
            shown = [name for job, _ in places for name in prompts.marks(job.call.messages[-1].text)]
            quoting.check_coverage([piece.block.name for piece in task.pieces], shown)
            asked = iter(self._accepted([job for job, draft in places if draft is None], task))
            places = [(job, draft or next(asked)) for job, draft in places]
            drafts = [draft for _, draft in places if draft]
            if len(drafts) == len(places):
                return drafts
            halved: list[tuple[_Job, SummaryDraft | None]] = []
            for at, (job, draft) in enumerate(places):
                # What the model found too long is cut in two.
                halves = () if draft else quoting.split(job.pieces, task.count)
                total = max(len(places) + len(halves) - 1, 2)
                halved += [(self._leaf(task, leaf, at + n, total), None) for n, leaf in enumerate(halves, 1)]
                halved += [(job, draft)] if draft else []
            places = halved
        raise StillTooLong(f"still too long after {SHRINK_ROUNDS} rounds of smaller spans")

    def _limits(self, task: SummaryTask, stage: Stage) -> quoting.PromptLimits:
        prompt_parts = prompts.rules(task.wording, stage) + task.wording.instructions + task.wording.focus
        fixed = task.count(prompt_parts) + task.count(task.previous) + 2_000
        return quoting.prompt_limits(self.calls[stage].model, task.budget_tokens, fixed)

    def _budget(self, task: SummaryTask, stage: Stage, source_tokens: int, *, is_whole: bool) -> int:
        """What the text of so much may take; ``is_whole``: it is the summary itself, and no part of one."""
        reply_tokens = self._limits(task, stage).reply_tokens
        if is_whole:
            return min(task.budget_tokens, reply_tokens)
        return quoting.leaf_budget(source_tokens, task.budget_tokens, reply_tokens)

    def _leaf(self, task: SummaryTask, leaf: quoting.Leaf, part: int, parts: int) -> _Job:
        """The job of one leaf; ``part`` of ``parts`` (of which some may be cut again, if they are too long)."""
        alone = parts == 1
        tokens = sum(piece.tokens for piece in leaf)
        essentials = task.facts.essentials(_strands(task, leaf))
        prompt_input = PromptInput(
            stage=Stage.LEAF,
            texts=tuple(piece.block.text for piece in leaf),
            tokens=self._budget(task, Stage.LEAF, tokens, is_whole=alone),
            first=leaf[0].block.name if leaf else "",
            last=leaf[-1].block.name if leaf else "",
            ledger=self._check_list(task, leaf, essentials),
            previous=task.previous if alone else "",
            part=part,
            parts=parts,
            goal="" if alone else task.goal,
            latest="" if alone else task.latest,
        )
        source_tokens = tokens + (task.count(task.previous) if alone else 0)
        return self._job(task, prompt_input, leaf, source_tokens, essentials)

    def _check_list(self, task: SummaryTask, leaf: quoting.Leaf, essentials: tuple[Essential, ...]) -> str:
        tokens = sum(piece.tokens for piece in leaf)
        share = tokens / max(sum(piece.tokens for piece in task.pieces), 1)
        text = task.facts.check_list(_strands(task, leaf), tokens, essentials, share)
        return quoter(task.forbidden)(self._clean(text))

    def _clean(self, text: str) -> str:
        return self.redactor.redact(text) if self.redactor else text

    def _job(
        self,
        task: SummaryTask,
        prompt_input: PromptInput,
        pieces: quoting.Leaf,
        source_tokens: int,
        essentials: tuple[Essential, ...],
        joins: tuple[SummaryDraft, ...] = (),
    ) -> _Job:
        text = prompts.prompt(task.wording, prompt_input)
        rules = prompts.rules(task.wording, prompt_input.stage)
        # All of it is redacted already, except for what is the same for everybody.
        prompt_parts = (
            ChatMessage(speaker=Speaker.SYSTEM, text=rules, is_redacted=True),
            ChatMessage(speaker=Speaker.USER, text=text, is_redacted=True),
        )
        call = self.calls[prompt_input.stage]
        entry = table_entry(call.model)
        reasons = entry.get("supports_reasoning") and entry.get("litellm_provider") not in _REASON_WHEN_ASKED
        most = int(prompt_input.tokens * REPLY_RATIO) + (_REASONING_TOKENS if reasons else 0)
        call = replace(call, messages=prompt_parts, max_tokens=most, prompt_version=prompts.version())
        check_input = CheckInput(
            records=task.facts.records.with_shown(text, rules),
            essentials=essentials,
            source_tokens=source_tokens,
            budget_tokens=prompt_input.tokens,
            headings=task.wording.headings,
            covered=task.covered,
            known=task.known,
            is_part=len(pieces) < len(task.pieces),
        )
        return _Job(call=call, check_input=check_input, pieces=pieces, joins=joins)

    def _joined(self, task: SummaryTask, drafts: list[SummaryDraft]) -> SummaryDraft:
        """The summaries joined, level by level, the earlier summary with the last of them.

        Side by side where the model does not join them: they are paid for.
        """
        room = self._limits(task, Stage.MERGE).leaf_tokens
        while len(drafts) > 1:
            groups = quoting.merge_groups([draft.tokens for draft in drafts], room)
            wanted = [(start, stop) for start, stop in groups if stop - start > 1]
            jobs = [self._merge(task, drafts[start:stop], is_last=len(groups) == 1) for start, stop in wanted]
            done = dict(zip(wanted, self._accepted(jobs, task), strict=True))
            if None not in done.values():
                drafts = [done.get(place) or drafts[place[0]] for place in groups]
            elif room > 2 * min(draft.tokens for draft in drafts):
                room //= 2
            else:
                job = self._merge(task, drafts, is_last=True)
                return self._side_by_side(task, job, "they are too long for the model")
        return drafts[0]

    def _merge(self, task: SummaryTask, drafts: Sequence[SummaryDraft], *, is_last: bool) -> _Job:
        pieces = tuple(piece for draft in drafts for piece in draft.pieces)
        sizes = sum(piece.tokens for piece in pieces)
        essentials = task.facts.essentials(_strands(task, pieces))
        texts = tuple(draft.text for draft in drafts)
        unnamed = coverage("\n".join(texts), essentials).missing
        prompt_input = PromptInput(
            stage=Stage.MERGE,
            texts=texts,
            tokens=self._budget(task, Stage.MERGE, sizes, is_whole=is_last),
            ledger=not_shown(self._check_list(task, pieces, unnamed), texts),
            previous=task.previous if is_last else "",
            goal=task.goal,
            latest=task.latest,
        )
        return self._job(task, prompt_input, pieces, sizes, essentials, joins=tuple(drafts))

    def _accepted(self, jobs: Sequence[_Job], task: SummaryTask) -> list[SummaryDraft | None]:
        """What the jobs come to, in order; None for one whose prompt is too long for the model."""
        verdicts = self._asked([job.call for job in jobs], jobs, task)
        self._ask_again(verdicts, jobs, task, lambda call, verdict: _retried(call, verdict, task.wording))
        self._ask_again(verdicts, jobs, task, lambda call, _: self.client.fallback_of(call))
        results = zip(verdicts, jobs, strict=True)
        drafts = [self._taken(verdict, job, task) if verdict else None for verdict, job in results]
        is_whole = self.verifies and len(jobs) == 1 and not jobs[0].check_input.is_part
        is_taken = bool(verdicts) and isinstance(verdicts[0], Verdict) and not verdicts[0].fault
        return [self._verified(jobs[0], drafts[0], task)] if is_whole and drafts[0] and is_taken else drafts

    def _verified(self, job: _Job, draft: SummaryDraft, task: SummaryTask) -> SummaryDraft:
        """The summary that the model gives when it is asked what this one left out; this one, if that is not taken."""
        prompt_parts = (
            ChatMessage(speaker=Speaker.ASSISTANT, text=draft.text),
            ChatMessage(speaker=Speaker.USER, text=prompts.verify(task.wording)),
        )
        call = replace(job.call, messages=(*job.call.messages, *prompt_parts))
        (verdict,) = self._asked([call], [job], task)
        return _draft(verdict, job, task) if isinstance(verdict, Verdict) and not verdict.fault else draft

    def _taken(self, verdict: Verdict | ModelFailure, job: _Job, task: SummaryTask) -> SummaryDraft:
        """What a job comes to: its reply; where there is none, or that was refused, the reply cut, its parts side by
        side, or a digest.

        Raises the failure, or `Rejected`, where nothing that a model wrote would be left.
        """
        failure = verdict if isinstance(verdict, ModelFailure) else None
        if isinstance(verdict, Verdict):
            if not verdict.fault:
                return _draft(verdict, job, task)
            if verdict.fault is ReplyFault.TOO_LONG or is_enough(verdict, job.check_input):
                return _draft(shortened(verdict, job.check_input, task.count), job, task)
        if job.joins:
            return self._side_by_side(task, job, failure.reason if failure else str(verdict))
        if not job.check_input.is_part:
            raise failure or Rejected(f"the reply was not accepted: {verdict}")
        outline = task.facts.outline(_strands(task, job.pieces), job.check_input.budget_tokens, task.wording.headings)
        draft = _draft(Verdict(outline=outline), job, task)
        return replace(draft, text=self._clean(draft.text), healed=1, failure=failure)

    def _side_by_side(self, task: SummaryTask, job: _Job, why: str) -> SummaryDraft:
        """The summaries that a job was to join, item after item; ``why`` they were not joined, for people."""
        outline = joined_outline([draft.outline for draft in job.joins])
        whole = Verdict(outline=outline, invented=tuple(name for draft in job.joins for name in draft.invented))
        return replace(_draft(shortened(whole, job.check_input, task.count), job, task), unjoined=why)

    def _ask_again(
        self,
        verdicts: list[_Outcome],
        jobs: Sequence[_Job],
        task: SummaryTask,
        new_call: Callable[[Call, Verdict], Call | None],
    ) -> None:
        """Asks once more what is faulty, and puts in the new verdicts; nothing where one of them has no new call."""
        faulty = {n: verdict for n, verdict in enumerate(verdicts) if isinstance(verdict, Verdict) and verdict.fault}
        calls = [call for n, verdict in faulty.items() if (call := new_call(jobs[n].call, verdict))]
        if len(calls) == len(faulty):
            calls = [replace(call, is_repeat=True) for call in calls]
            new = self._asked(calls, [jobs[n] for n in faulty], task)
            for n, verdict in zip(faulty, new, strict=True):
                verdicts[n] = verdict if isinstance(verdict, Verdict) else verdicts[n]

    def _asked(self, calls: Sequence[Call], jobs: Sequence[_Job], task: SummaryTask) -> list[_Outcome]:
        replies = self.loop.run(_all(self.client, calls, self.redactor)) if calls else []
        verdicts: list[_Outcome] = []
        for reply, job in zip(replies, jobs, strict=True):
            if not isinstance(reply, Reply):
                verdicts.append(reply)
                continue
            verdict = check(reply, job.check_input, task.count)
            verdicts.append(verdict)
            if verdict.fault:
                tokens = reply.input_tokens + reply.output_tokens
                self.refusals.append(Refusal(fault=verdict.fault, why=str(verdict), tokens=tokens))
        return verdicts


# What came of a call: None where its prompt was too long for the model.
_Outcome = Verdict | ModelFailure | None


async def _all(
    client: ModelClient, calls: Sequence[Call], redactor: Redactor | None
) -> list[Reply | ModelFailure | None]:
    """The replies in order, None for a prompt that is too long, and failures; a mistake of the set-up is raised."""
    import asyncio

    async def one(call: Call) -> Reply | ModelFailure | None:
        try:
            return await client.ask(call, redactor)
        except ContextTooLong:
            return None
        except UnknownModel:
            raise
        except ModelFailure as failure:
            return failure

    tasks = [asyncio.ensure_future(one(call)) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _retried(call: Call, verdict: Verdict, wording: PromptWording) -> Call:
    """The call with what was wrong with the first reply after the prompt, which stays as it is for the cache."""
    *before, last = call.messages
    note = prompts.retry(wording, str(verdict.fault), verdict.details)
    return replace(call, messages=(*before, replace(last, text=f"{last.text}\n\n{note}", is_redacted=False)))


def _draft(verdict: Verdict, job: _Job, task: SummaryTask) -> SummaryDraft:
    text = verdict.outline.prose or as_text(verdict.outline.sections, task.wording.headings)
    return SummaryDraft(
        outline=verdict.outline,
        text=text,
        tokens=task.count(text),
        pieces=job.pieces,
        invented=verdict.invented,
        numbers=verdict.numbers,
        leaves=sum(draft.leaves for draft in job.joins) or 1,
        healed=sum(draft.healed for draft in job.joins),
        failure=next((draft.failure for draft in job.joins if draft.failure), None),
    )


def _strands(task: SummaryTask, leaf: quoting.Leaf) -> list[Strand]:
    """The records of these pieces by transcript."""
    by_strand: dict[int, list[int]] = {}
    for piece in leaf:
        by_strand.setdefault(piece.strand, []).append(piece.block.record)
    return [replace(task.strands[number], indices=tuple(records)) for number, records in by_strand.items()]
