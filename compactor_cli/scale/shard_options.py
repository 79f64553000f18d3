"""Options: what holds for all shards of a run, as a value that can be sent to another machine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactor_cli import __version__
from compactor_cli.model.settings import Settings
from compactor_cli.presets import DEFAULT, load_preset
from compactor_cli.presets.overlay import settings_from
from compactor_cli.read.jsonl import OnInvalid
from compactor_cli.read.streams import DEFAULT_LIMITS, ReadLimits

if TYPE_CHECKING:
    from compactor_cli.run.model_run import ModelConfig


class FinishedPolicy(StrEnum):
    """What to do with a shard that was finished before."""

    SKIP = "skip"
    REDO = "redo"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardOptions:
    """How shards are compacted.

    ``archive_dir`` empty: no archive, for the input stays where it is. ``column``: of Parquet, or several, with a
    comma between; empty: the first that holds conversations. ``models``: without keys, which every process reads
    itself, from its environment or from ``key_file``.
    """

    settings: Settings = field(default_factory=Settings)
    dialect: str = ""
    on_invalid: OnInvalid = OnInvalid.FAIL
    archive_dir: str = ""
    column: str = ""
    finished: FinishedPolicy = FinishedPolicy.SKIP
    models: ModelConfig | None = None
    key_file: str = ""
    limits: ReadLimits = DEFAULT_LIMITS

    def fingerprint(self) -> str:
        """16 hex digits that differ whenever two options may give different output."""
        parts = (__version__, self.settings.fingerprint(), self.dialect, self.on_invalid, self.column, self._asked())
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def _asked(self) -> Any:
        if self.models is None:
            return None
        from compactor_cli.llm.prompts import version

        model_options = self.models.model_options
        named = ("model", "api_base", "previous", "on_failure", "template", "instructions", "verifies")
        fallback = self.models.fallback.model if self.models.fallback else ""
        stages = {stage.value: model for stage, model in model_options.models.items()}
        rule = dataclasses.asdict(model_options.rule) if model_options.rule else None
        return [
            *(getattr(model_options, name) for name in named),
            stages,
            fallback,
            rule,
            self.models.redacts,
            version(),
        ]

    def model_config(self) -> ModelConfig | None:
        """The orders for models with the keys of this machine."""
        if self.models is None or not self.key_file:
            return self.models
        from compactor_cli.llm.model_calls import read_keys

        return dataclasses.replace(self.models, keys=read_keys(Path(self.key_file), self.models.model_options.model))


def settings_of(preset: str = "", **changes: object) -> Settings:
    """Settings by names, as a configuration file has them: ``settings_of(target="16k")``. Raises `UsageError`."""
    return settings_from(changes, load_preset(preset or DEFAULT).settings, "settings")
