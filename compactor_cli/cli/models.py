"""Models: what the options say about models, made into orders; and what a run asked of them, told."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli.cli.wishes import Wishes
from compactor_cli.model.errors import UsageError
from compactor_cli.model.settings import SEMANTIC, Settings, Strategy
from compactor_cli.run.jobs import Orders, Purpose
from compactor_cli.run.row import Row

if TYPE_CHECKING:
    from contextlib import ExitStack

    from compactor_cli.cli.console import Console
    from compactor_cli.llm.estimate import Estimate
    from compactor_cli.llm.model import Asking
    from compactor_cli.llm.prompts import Stage
    from compactor_cli.llm.spend import Spent
    from compactor_cli.model.events import Listener
    from compactor_cli.run.models import ModelOrders, ModelRun


def with_models(orders: Orders, wishes: Wishes, stack: ExitStack, tell: Listener | None = None) -> Orders:
    """The orders with the line to the models, where one is asked for, and with the person who is asked.

    ``tell`` hears of each call. Raises UsageError where a model is named and nothing is to be summed up.
    """
    if wishes.model and orders.settings.strategy is not Strategy.SUMMARY:
        what = f"nothing is summed up by the strategy {orders.settings.strategy.value}, so no model can write it"
        raise UsageError(what, next_step="leave -m out, or take another preset")
    if wishes.interactive:
        from compactor_cli.cli.review import check_terminal, review

        check_terminal()
        orders = dataclasses.replace(orders, review=review)
    orders = _with_embeddings(orders, wishes)
    if not (wishes.model or wishes.embedding_model) or wishes.plan:
        return orders
    from compactor_cli.run.models import ModelRun, check_setup

    asked = dataclasses.replace(model_orders(wishes, orders.settings), embedding_model=wishes.embedding_model)
    check_setup(asked)
    embedding_model = "" if orders.importance else wishes.embedding_model
    if not (wishes.model or embedding_model):
        return orders
    asked = dataclasses.replace(asked, embedding_model=embedding_model)
    run = stack.enter_context(ModelRun(asked, tell))
    importance = run.importance() if embedding_model else orders.importance
    return dataclasses.replace(orders, models=run, importance=importance)


def _with_embeddings(orders: Orders, wishes: Wishes) -> Orders:
    """The orders with what ranks by embeddings and asks nobody else: a local model, or nothing for a mere look."""
    name = wishes.embedding_model
    if not name:
        return orders
    if orders.settings.keep.by != SEMANTIC:
        raise UsageError("--embedding-model is about --keep semantic", next_step="add --keep semantic")
    from compactor_cli.llm.importance.local import PREFIX, local
    from compactor_cli.llm.importance.meaning import Meaning, Unasked

    if name.startswith(PREFIX):
        return dataclasses.replace(orders, importance=Meaning(local(name.removeprefix(PREFIX))))
    is_look = orders.purpose is Purpose.PLAN
    return dataclasses.replace(orders, importance=Unasked(name)) if is_look else orders


def account_for(orders: Orders, console: Console, *, inputs: int) -> Mapping[str, Any] | None:
    """Tells what was asked of models, or would be; what the report says of it."""
    run = orders.models
    if run is None:
        return None
    tell_models(run, console)
    if orders.view and run.writes and orders.purpose is Purpose.PLAN and inputs > 1:
        sys.stdout.write(f"in all:\n{estimate_line(run.planned, run.orders.asking.model)}")
    return model_report(run)


def asked_line(row: Row, model: str) -> str:
    """What a model would be asked for this transcript; empty if nothing."""
    return estimate_line(row.estimate, model) if row.estimate else ""


def model_orders(wishes: Wishes, settings: Settings) -> ModelOrders:
    """The orders. Raises UsageError for files that cannot be read, and tasks that there are not."""
    from compactor_cli.llm.keys import NO_KEYS, read_keys
    from compactor_cli.llm.line import Fallback
    from compactor_cli.llm.pace import Tempo
    from compactor_cli.llm.places import breaker_file, replies_file
    from compactor_cli.llm.spend import Limits
    from compactor_cli.run.models import ModelOrders

    fallback = Fallback(model=wishes.fallback_model, api_base=wishes.api_base) if wishes.fallback_model else None
    return ModelOrders(
        asking=_asking(wishes, settings),
        limits=Limits(cost_usd=wishes.max_cost, requests=wishes.max_requests, tokens_sent=wishes.max_tokens_sent),
        tempo=Tempo(
            concurrency=1 if wishes.interactive else max(1, wishes.llm_concurrency),
            requests_per_minute=wishes.rpm,
            tokens_per_minute=wishes.tpm,
        ),
        keys=read_keys(Path(wishes.key_file), wishes.model) if wishes.key_file else NO_KEYS,
        fallback=fallback,
        cache_file=replies_file() if wishes.cache else None,
        breaker_file=breaker_file(),
        resets_breaker=wishes.reset_breaker,
        redacts=wishes.redact,
    )


def _asking(wishes: Wishes, settings: Settings) -> Asking:
    from compactor_cli.llm.model import Asking, OnFailure
    from compactor_cli.llm.prices import read_price
    from compactor_cli.llm.update import Previous

    rule = next((rule for rule in settings.prune if rule.kind == "tool-result"), None)
    given = Asking(
        model=wishes.model,
        models=_by_stage(wishes.model_for),
        api_base=wishes.api_base,
        price=read_price(wishes.price),
        previous=Previous(wishes.previous),
        on_failure=OnFailure(wishes.on_failure),
        timeout_seconds=wishes.timeout,
        max_reply_bytes=wishes.max_reply,
        template=settings.template,
        instructions=_instructions(wishes.instructions),
        verifies=wishes.verify_pass,
    )
    return dataclasses.replace(given, rule=rule) if rule else given


def _by_stage(said: str) -> Mapping[Stage, str]:
    from compactor_cli.llm.prompts import Stage

    found: dict[Stage, str] = {}
    for entry in filter(None, (part.strip() for part in said.split(","))):
        task, equals, model = entry.partition("=")
        if not equals or not model.strip() or task.strip() not in tuple(Stage):
            advice = f"write TASK=MODEL; tasks: {', '.join(Stage)}"
            raise UsageError(f"“{entry}” names no model for a task", next_step=advice, place="--model-for")
        found[Stage(task.strip())] = model.strip()
    return found


def _instructions(path: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise UsageError(f"the instructions cannot be read ({reason})", place=path) from error


def model_report(run: ModelRun) -> dict[str, Any]:
    """What the run asked of models, for the report."""
    spent = dataclasses.asdict(run.line.spend.spent)
    return {"model": run.name, **spent, "requests_planned": run.planned.requests}


def tell_models(run: ModelRun, console: Console) -> None:
    """Say what was asked and what it cost; and whatever is wrong with keys or the reply cache."""
    for warning in run.orders.keys.warnings:
        console.warn(warning)
    if run.cache and run.cache.trouble:
        console.warn(f"the reply cache: {run.cache.trouble}; replies are paid for again")
    tell_spent(run.line.spend.spent, run.name, console)


def tell_spent(spent: Spent, model: str, console: Console) -> None:
    """Say what was asked and what it cost."""
    if not spent.requests and not spent.cache_hits:
        return
    cost = f", ${spent.cost_usd:.4f}" if spent.cost_usd else ""
    unknown = f" ({spent.unpriced:,} replies of unknown price)" if spent.unpriced else ""
    console.done(
        f"{model}: {spent.requests:,} requests ({spent.retries:,} again, {spent.failures:,} failed),"
        f" {spent.input_tokens:,} tokens in, {spent.output_tokens:,} out{cost}{unknown};"
        f" {spent.cache_hits:,} from the cache"
    )


def estimate_line(estimate: Estimate, model: str) -> str:
    """What would be asked, for people."""
    cost = "price unknown" if estimate.cost_usd is None else f"about ${estimate.cost_usd:.4f}"
    return (
        f"  {model} would get {estimate.requests:,} {'request' if estimate.requests == 1 else 'requests'}:"
        f" {estimate.input_tokens:,} tokens in, {estimate.output_tokens:,} out, {cost}\n"
    )
