"""Scaling recipes of FP8, MX, NVFP4 and tiles on recorded tensors."""

from __future__ import annotations

from typing import Any

from . import _core
from .arguments import checked
from .reports import Report
from .traces import joined, source_of


class RecipeComparison(Report):
    """What each recipe loses, saturates and costs, and its noise; a recommendation with the numbers that support it."""


def _lengths(histories: Any) -> list[int]:
    listed = histories if isinstance(histories, (list, tuple)) else [histories]
    for length in listed:
        if isinstance(length, bool) or not isinstance(length, int):
            raise TypeError(f"amax_history: is a whole number or a list of these, not {type(length).__name__}")
        if not 1 <= length <= 1000000:
            raise ValueError(f"amax_history: {length} is out of range (valid: 1 to 1000000)")
    return list(listed)


@checked
def compare(
    tensors: Any,
    *,
    recipes: Any = "*",
    scales: Any = "0:24:8",
    role: str = "",
    layout: str = "flat",
    amax_history: int | list[int] = 1024,
    margin: float = 0,
    dtype: Any = None,
    threads: int = 0,
) -> RecipeComparison:
    """The recipes side by side on the same tensors; `tensors` as `guardbit.trace` takes them.

    `recipes`: names or patterns of names. `scales`: exponents of FP16's loss scales. `role`: wgrad, grad_out, grad_in, act, weight or
    update. `amax_history`, `margin`: of delayed scaling.
    """
    source, of = source_of(tensors, dtype, "recipes.compare")
    settings = _core.RecipeSettings()
    settings.recipes, settings.scales, settings.layout, settings.role = joined(recipes, "recipes"), joined(scales, "scales"), layout, role
    settings.histories = _lengths(amax_history)
    settings.margin, settings.threads, settings.source_format = margin, threads, of
    return RecipeComparison(_core.compare_recipes(source, settings))


__all__ = ["RecipeComparison", "compare"]
