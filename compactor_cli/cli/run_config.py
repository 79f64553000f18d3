"""Run configuration: the options as the values that a run takes, with models, plug-ins, hooks and notes."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli.cli.config import RunOptions
from compactor_cli.cli.console import Console, counted, wants_color
from compactor_cli.model.errors import UsageError
from compactor_cli.model.plugins import PluginGroup, load_plugin, plugin_names
from compactor_cli.model.settings import KEPT_BY, SEMANTIC, Settings, Strategy
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.run.jobs import Hooks, Purpose, RunConfig
from compactor_cli.run.outputs import STDOUT
from compactor_cli.run.rows import NOTE_NAME, LazyDigest, View, note_of

if TYPE_CHECKING:
    from contextlib import ExitStack

    from compactor_cli.llm.limits import Spent
    from compactor_cli.llm.model import ModelOptions
    from compactor_cli.llm.prompts import Stage
    from compactor_cli.model.plan import Listener
    from compactor_cli.model.summary import Summariser
    from compactor_cli.run.documents import PlanFile
    from compactor_cli.run.model_run import ModelConfig, ModelRun


def run_config_of(
    run_options: RunOptions, settings: Settings, plan_file: PlanFile | None, console: Console
) -> RunConfig:
    """The configuration of a run of the filter, without models. Raises UsageError for names that nothing has."""
    importance = engine = page = None
    if settings.keep.by not in KEPT_BY:
        from compactor_cli.llm.importance import PluginImportance

        importance = PluginImportance(settings.keep.by, run_options.when_failing, console.warn)
    if run_options.engine:
        from compactor_cli.plugged import load_engine

        engine = load_engine(run_options.engine, run_options.when_failing)
    if run_options.html:
        from compactor_cli.cli.views import session_view

        page = partial(session_view, settings=settings)
    return RunConfig(
        settings=settings,
        purpose=run_options.purpose,
        dialect=run_options.format,
        on_invalid=OnInvalid(run_options.on_invalid),
        min_age_seconds=run_options.min_age_seconds,
        originals=run_options.originals,
        archive_dir=run_options.archive_dir,
        limits=run_options.limits,
        plans=plan_file.by_sha256 if plan_file else None,
        view=_view(run_options),
        page=page,
        summariser=_summariser(run_options),
        engine=engine,
        importance=importance,
        shape=run_options.shape,
        hooks=_hooks(run_options),
        memory=run_options.memory,
        redacts_output=run_options.redact_output,
    )


def _view(run_options: RunOptions) -> View | None:
    """What is shown of each transcript, in a run that only looks."""
    if run_options.purpose is Purpose.ACT:
        return None
    from compactor_cli.cli.views import diff_view, plan_view, result_view

    color = wants_color(run_options.color, sys.stdout, os.environ)
    if run_options.shows_result:
        return None if run_options.only_look and run_options.html else partial(result_view, color=color)
    if run_options.diff:
        return partial(diff_view, color=color)
    if run_options.dry_run and run_options.plan_out != STDOUT:
        return partial(plan_view, model=run_options.model)
    return None


def _summariser(run_options: RunOptions) -> Callable[[str], Summariser] | None:
    """What makes the plug-in that writes the summaries, for guidance; None where no plug-in does."""
    name = run_options.summariser
    if name in ("", "digest"):
        return None
    if name not in plugin_names(PluginGroup.SUMMARISERS):
        load_plugin(PluginGroup.SUMMARISERS, name)
    from compactor_cli.plugged import PluginSummariser

    return lambda guidance: PluginSummariser(name, run_options.when_failing, LazyDigest(guidance))


def _hooks(run_options: RunOptions) -> Hooks | None:
    """The user's programs. Raises UsageError for what is not a command line."""
    before, after = run_options.hook_before, run_options.hook_after
    if not (before or after):
        return None
    import shlex

    for where, command in (("--hook-before", before), ("--hook-after", after)):
        try:
            words = shlex.split(command)
        except ValueError as error:
            what = f"the command cannot be read ({error})"
            raise UsageError(what, next_step="mind the quotes", place=where) from error
        if command and not words:
            raise UsageError("the command is empty", next_step="leave it out", place=where)
    return Hooks(before=before, after=after, seconds=run_options.hook_timeout)


def check_memory(run_options: RunOptions, *, inputs: int) -> None:
    """Raises UsageError for a note that is not there, and for one note for several sessions."""
    if not run_options.memory:
        return
    if NOTE_NAME not in run_options.memory:
        note_of(run_options.memory, "")
        if inputs > 1:
            advice = f"name each session's own: notes/{NOTE_NAME}.md"
            raise UsageError("one note cannot be the summary of several sessions", next_step=advice, place="memory")


def with_models(
    run_config: RunConfig, run_options: RunOptions, stack: ExitStack, emit: Listener | None = None
) -> RunConfig:
    """The configuration with the connection to the models, where one is named, and with the person to be asked.

    ``emit`` gets an event for each call. Raises UsageError where a model is named and nothing is to be summed up.
    """
    if run_options.model and run_config.settings.strategy is not Strategy.SUMMARY:
        what = f"nothing is summed up by the strategy {run_config.settings.strategy.value}, so no model can write it"
        raise UsageError(what, next_step="leave -m out, or take another preset")
    if run_options.interactive:
        from compactor_cli.cli.views import check_terminal, review

        check_terminal()
        run_config = dataclasses.replace(run_config, review=review)
    run_config = _with_embeddings(run_config, run_options)
    if not (run_options.model or run_options.embedding_model) or run_options.plan:
        return run_config
    from compactor_cli.run.model_run import ModelRun, check_setup

    asked = model_config(run_options, run_config.settings)
    asked = dataclasses.replace(asked, embedding_model=run_options.embedding_model)
    check_setup(asked)
    embedding_model = "" if run_config.importance else run_options.embedding_model
    if not (run_options.model or embedding_model):
        return run_config
    asked = dataclasses.replace(asked, embedding_model=embedding_model)
    run = stack.enter_context(ModelRun(asked, emit))
    importance = run.importance() if embedding_model else run_config.importance
    return dataclasses.replace(run_config, models=asked, model_run=run, importance=importance)


def _with_embeddings(run_config: RunConfig, run_options: RunOptions) -> RunConfig:
    """The configuration with what ranks by embeddings and sends nothing: a local model, or nothing for a plan alone."""
    name = run_options.embedding_model
    if not name:
        return run_config
    if run_config.settings.keep.by != SEMANTIC:
        raise UsageError("embedding-model is about --keep semantic", next_step="add --keep semantic")
    from compactor_cli.llm.importance import LOCAL_PREFIX, EmbeddingSimilarity, local_embedder, not_asked

    if name.startswith(LOCAL_PREFIX):
        embed = local_embedder(name.removeprefix(LOCAL_PREFIX))
    elif run_config.purpose is Purpose.PLAN:
        embed = not_asked(name)
    else:
        return run_config
    return dataclasses.replace(run_config, importance=EmbeddingSimilarity(embed))


def account_for(run_config: RunConfig, console: Console, *, inputs: int) -> Mapping[str, Any] | None:
    """Print what was asked of models, or would be; the same for the report."""
    run = run_config.model_run
    if run is None:
        return None
    print_models(run, console)
    if run_config.view and run.writes and run_config.purpose is Purpose.PLAN and inputs > 1:
        from compactor_cli.cli.views import estimate_line

        sys.stdout.write(f"in all:\n{estimate_line(run.planned, run.config.model_options.model)}\n")
    spent = dataclasses.asdict(run.client.spend.spent)
    return {"model": run.name, **spent, "requests_planned": run.planned.requests}


def model_config(run_options: RunOptions, settings: Settings) -> ModelConfig:
    """The configuration of models. Raises UsageError for files that cannot be read, and for unknown tasks."""
    from compactor_cli.llm.limits import RateLimits, SpendLimits
    from compactor_cli.llm.model_calls import NO_KEYS, read_keys
    from compactor_cli.llm.model_client import Fallback, breaker_file, replies_file
    from compactor_cli.run.model_run import ModelConfig

    fallback = run_options.fallback_model
    return ModelConfig(
        model_options=_model_options(run_options, settings),
        limits=SpendLimits(
            cost_usd=run_options.max_cost, requests=run_options.max_requests, tokens_sent=run_options.max_tokens_sent
        ),
        rate_limits=RateLimits(
            concurrency=1 if run_options.interactive else max(1, run_options.llm_concurrency),
            requests_per_minute=run_options.rpm,
            tokens_per_minute=run_options.tpm,
        ),
        keys=read_keys(Path(run_options.key_file), run_options.model) if run_options.key_file else NO_KEYS,
        fallback=Fallback(model=fallback, api_base=run_options.api_base) if fallback else None,
        cache_file=replies_file() if run_options.cache else None,
        breaker_file=breaker_file(),
        resets_breaker=run_options.reset_breaker,
        redacts=run_options.redact,
    )


def _model_options(run_options: RunOptions, settings: Settings) -> ModelOptions:
    from compactor_cli.llm.model import OnFailure
    from compactor_cli.llm.model_calls import read_price
    from compactor_cli.llm.quoting import Previous
    from compactor_cli.run.model_run import model_options

    instructions, path = "", run_options.instructions
    try:
        instructions = Path(path).read_text(encoding="utf-8-sig") if path else ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        what = f"the instructions cannot be read ({reason})"
        raise UsageError(what, next_step="check the path after instructions=", place=path) from error
    return model_options(
        settings,
        model=run_options.model,
        models=_by_stage(run_options.model_for),
        api_base=run_options.api_base,
        price=read_price(run_options.price),
        previous=Previous(run_options.previous),
        on_failure=OnFailure(run_options.on_failure),
        timeout_seconds=run_options.timeout,
        max_reply_bytes=run_options.max_reply,
        instructions=instructions,
        verifies=run_options.verify_pass,
    )


def _by_stage(text: str) -> Mapping[Stage, str]:
    from compactor_cli.llm.prompts import Stage

    found: dict[Stage, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        task, equals, model = entry.partition("=")
        if not equals or not model.strip() or task.strip() not in tuple(Stage):
            advice = f"write TASK=MODEL; tasks: {', '.join(Stage)}"
            raise UsageError(f"“{entry}” names no model for a task", next_step=advice, place="model-for")
        found[Stage(task.strip())] = model.strip()
    return found


def print_models(run: ModelRun, console: Console) -> None:
    """Say what was asked and what it cost; and whatever is wrong with keys or the reply cache."""
    for warning in run.config.warnings:
        console.warn(warning)
    if run.cache and run.cache.trouble:
        console.warn(f"the reply cache: {run.cache.trouble}; replies are paid for again")
    print_spent(run.client.spend.spent, run.name, console)


def print_spent(spent: Spent, model: str, console: Console) -> None:
    """Say what was asked and what it cost."""
    if not spent.requests and not spent.cache_hits:
        return
    cost = f", ${spent.cost_usd:.4f}" if spent.cost_usd else ""
    unknown = f" ({spent.unpriced:,} replies of unknown price)" if spent.unpriced else ""
    console.done(
        f"{model}: {counted(spent.requests, 'request')} ({spent.retries:,} again, {spent.failures:,} failed),"
        f" {spent.input_tokens:,} tokens in, {spent.output_tokens:,} out{cost}{unknown};"
        f" {spent.cache_hits:,} from the cache"
    )
