"""Recorded tensors: what formats and loss scales would lose of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _core
from .arguments import checked
from .arrays import format_name, view
from .reports import Report


def _arrays(tensors: Mapping[Any, Any], dtype: Any, prefix: str = "") -> list[_core.Array]:
    found = []
    for key, x in tensors.items():
        is_step = isinstance(key, (int, np.integer)) and not isinstance(key, bool)
        name = f"{prefix}step{key}" if is_step else f"{prefix}{key}"
        found += _arrays(x, dtype, name + "/") if isinstance(x, Mapping) else [view(x, name, dtype)]
    return found


def source_of(tensors: Any, dtype: Any, where: str) -> tuple[_core.Source, str]:
    """Files and arrays as the module takes them, and the format that files are re-read in."""
    words: list[str] = []
    arrays: list[_core.Array] = []
    alone = isinstance(tensors, (str, os.PathLike, Mapping))
    if not alone and not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{where}: {type(tensors).__name__} is no path, no dict of arrays and no list of these")
    parts = [tensors] if alone else list(tensors)
    dicts = [part for part in parts if isinstance(part, Mapping)]
    # Dicts that have names in common are the steps of one run.
    if len(dicts) == len(parts) > 1 and len(set().union(*dicts)) < sum(map(len, dicts)):
        parts = [dict(enumerate(dicts))]
    for part in parts:
        if isinstance(part, (str, os.PathLike)):
            words.append(os.fsdecode(part))
        elif isinstance(part, Mapping):
            arrays += _arrays(part, dtype)
        else:
            raise TypeError(f"{where}: {type(part).__name__} is no path and no dict of arrays")
    if not words and not arrays:
        raise ValueError(f"{where}: there are no tensors")
    return _core.Source(words, arrays), "" if dtype is None else format_name(dtype, "dtype")


def joined(values: Any, name: str) -> str:
    """A list of words or numbers as the command takes it."""
    if isinstance(values, (str, int)):
        return str(values)
    if not isinstance(values, (list, tuple, range)):
        raise TypeError(f"{name}: is a word or a list, not {type(values).__name__}")
    return ",".join(str(value) for value in values)


class Trace(Report):
    """What `trace` counted: tensors, what each format and scale loses of them, a recommendation."""


@checked
def trace(
    tensors: Any,
    *,
    formats: Any = "fp16,bf16,e4m3,e5m2",
    scales: Any = "0:32:4",
    policy: str = "pytorch",
    layout: str = "flat",
    tolerance: float = 1e-3,
    exact_product: bool = False,
    histogram: bool = False,
    dtype: Any = None,
    threads: int = 0,
) -> Trace:
    """What formats and loss scales would lose of gradients and other tensors.

    `tensors`: a dict of arrays by name (nested dicts join names by "/"), a path, folder or pattern, or a list of these. Names say
    step, rank and role as the command reads them, `"step12/w.grad"`; a key that is a number is a step, and so are dicts in a list that
    have names in common: the steps 0, 1, 2, ... `formats`: names, also of formats with scales of their own (`"nvfp4"`,
    `"e4m3_tensor"`). `scales`: exponents of the loss scales 2^k, as "FIRST:LAST:STEP" or a list. `policy`: what becomes of numbers
    too large: pytorch, nvidia, saturate or ieee. `tolerance`: the share of underflow that a safe scale may have.
    """
    source, of = source_of(tensors, dtype, "trace")
    settings = _core.TraceSettings()
    settings.formats, settings.scales, settings.policy, settings.layout = joined(formats, "formats"), joined(scales, "scales"), policy, layout
    settings.tolerance, settings.threads, settings.histogram = tolerance, threads, histogram
    settings.exact_product, settings.source_format = exact_product, of
    return Trace(_core.trace(source, settings))
