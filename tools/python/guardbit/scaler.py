"""Dynamic loss scalers, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _core
from .arguments import checked
from .reports import Report
from .traces import source_of


class Replay(Report):
    """What a scaler did: its scales, the steps that it skipped, what forced them, and whether a log is reproduced."""


def _text(value: Any) -> str | None:
    return None if value is None else value if isinstance(value, str) else repr(float(value))


def _settings(
    preset: str,
    init_scale: float | str | None,
    growth_factor: float | None,
    backoff_factor: float | None,
    growth_interval: int | None,
    hysteresis: int | None,
    min_scale: float | str | None,
    max_scale: float | str | None,
    alarm_skips: int,
) -> _core.ReplaySettings:
    settings = _core.ReplaySettings()
    settings.preset = preset
    settings.init_scale, settings.min_scale, settings.max_scale = _text(init_scale), _text(min_scale), _text(max_scale)
    settings.growth_factor, settings.backoff_factor = growth_factor, backoff_factor
    settings.growth_interval, settings.hysteresis, settings.alarm_skips = growth_interval, hysteresis, alarm_skips
    return settings


@checked
def replay(
    source: Any,
    *,
    preset: str = "pytorch",
    compare: bool = False,
    init_scale: float | str | None = None,
    growth_factor: float | None = None,
    backoff_factor: float | None = None,
    growth_interval: int | None = None,
    hysteresis: int | None = None,
    min_scale: float | str | None = None,
    max_scale: float | str | None = None,
    columns: Mapping[str, str] | None = None,
    mode: str = "",
    format: str = "fp16",
    dtype: Any = None,
    alarm_skips: int = 4,
) -> Replay:
    """What a scaler does of a recorded log, or of the gradients of a trace.

    `source`: a log (JSON, CSV, what wandb, Megatron-LM or TensorBoard write), or tensors as `guardbit.trace` takes them, whose
    names say the step. `preset`: pytorch, apex, ...; `compare=True`: all of them, of a trace. `columns`: what columns of a log
    are, as {"scale": "run 7 - train/scaler"}. `mode`: which run of a log that holds several. `format`: what gradients of a trace
    are stored in.
    """
    settings = _settings(preset, init_scale, growth_factor, backoff_factor, growth_interval, hysteresis, min_scale,
                         max_scale, alarm_skips)
    of_source, settings.source_format = source_of(source, dtype, "scaler.replay")
    settings.columns = [f"{key}={name}" for key, name in (columns or {}).items()]
    settings.mode, settings.format = mode, format
    return Replay(_core.replay(of_source, settings, compare))


@checked
def schedule(
    pattern: str,
    *,
    preset: str = "pytorch",
    compare: bool = False,
    init_scale: float | str | None = None,
    growth_factor: float | None = None,
    backoff_factor: float | None = None,
    growth_interval: int | None = None,
    hysteresis: int | None = None,
    min_scale: float | str | None = None,
    max_scale: float | str | None = None,
    alarm_skips: int = 4,
) -> Replay:
    """What a scaler does of given overflows: `schedule("clean*2000,overflow*3")`."""
    settings = _settings(preset, init_scale, growth_factor, backoff_factor, growth_interval, hysteresis, min_scale,
                         max_scale, alarm_skips)
    return Replay(_core.schedule(pattern, settings, compare))


__all__ = ["Replay", "replay", "schedule"]
