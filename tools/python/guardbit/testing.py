"""For tests: results that must be equal in every bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from .arguments import checked
from .arrays import to_numpy
from .reports import explain


def _ordered(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes with a sign bit as integers in the order of their numbers."""
    wide = codes.astype(object) if codes.dtype.itemsize == 8 else codes.astype(np.int64)
    half = 1 << (bits - 1)
    return np.where(wide >= half, half - wide, wide)


def _numbers(codes: np.ndarray, format: str) -> np.ndarray:
    if format == "fp64":
        return codes.view(np.float64)
    if format.startswith(("int", "uint")):
        return codes.view(np.dtype(format)) if format in np.sctypeDict else codes
    result = np.empty(codes.shape, np.float32)
    _core.cast(_core.Array.view(np.ascontiguousarray(codes), format, "x"),
               _core.Array.output(result.view(np.uint32), "fp32", "out"), _core.CastOptions())
    return result


def _line(index: tuple[int, ...], x: tuple[Any, ...], y: tuple[Any, ...], distance: Any, digits: int) -> str:
    place = ", ".join(map(str, index))
    far = "" if distance is None else f", {distance} ulp apart"
    return f"  [{place}]: 0x{int(x[0]):0{digits}x} ({x[1]}) and not 0x{int(y[0]):0{digits}x} ({y[1]}){far}"


@checked
def assert_equal_bits(
    actual: Any,
    expected: Any,
    *,
    a: Any = None,
    b: Any = None,
    c: Any = None,
    any_nan: bool = False,
    most: int = 8,
    **asked: Any,
) -> None:
    """Fails unless both arrays have one format, one shape and the same codes; -0 and +0 differ.

    The failure shows the first places with codes, numbers and distances. With the operands `a` and `b` (and `c`) of a product
    it says what `explain` knows of `actual`; `asked` goes to it (alpha, beta, activation, arch, tf32). `any_nan`: all NaNs are
    equal.
    """
    (x, x_format), (y, y_format) = to_numpy(actual, "actual"), to_numpy(expected, "expected")
    problems = []
    if x_format != y_format:
        problems.append(f"actual is {x_format} and expected {y_format}")
    if x.shape != y.shape:
        problems.append(f"actual has shape {x.shape} and expected {y.shape}")
    if problems:
        raise AssertionError("; ".join(problems))
    differ = x != y
    is_float = not x_format.startswith(("int", "uint", "b1"))
    if any_nan and is_float and differ.any():
        differ &= ~(np.isnan(_numbers(x, x_format)) & np.isnan(_numbers(y, y_format)))
    count = int(np.count_nonzero(differ))
    if count == 0:
        return
    places = np.argwhere(differ)
    bits = 8 * x.dtype.itemsize
    x_there, y_there = x[differ], y[differ]
    shown = [_numbers(codes, x_format) for codes in (x_there, y_there)]
    both = ~(np.isnan(shown[0]) | np.isnan(shown[1])) if is_float else np.zeros(count, bool)
    signed = x_format not in ("e8m0", "ue4m3") and "unsigned" not in x_format
    # Codes of less than a byte have their sign elsewhere than at the top of the word.
    ordered = is_float and signed and x_format in ("fp64", "fp32", "bf16", "fp16", "e5m2", "e4m3")
    distances = np.abs(_ordered(x_there, bits) - _ordered(y_there, bits)) if ordered else None
    lines = [f"{count} of {x.size} elements differ ({x_format})"]
    if distances is not None and both.any():
        lines[0] += f", by at most {np.max(distances[both])} ulp"
    for axis, name in ((-2, "rows"), (-1, "columns")):
        if x.ndim >= 2:
            numbers = np.unique(places[:, axis])
            lines[0] += f", in {len(numbers)} of {x.shape[axis]} {name}"
    for i in range(min(most, count)):
        distance = distances[i] if distances is not None and both[i] else None
        lines.append(_line(tuple(places[i]), (x_there[i], shown[0][i]), (y_there[i], shown[1][i]), distance, bits // 4))
    if count > most:
        lines.append(f"  ... {count - most} more")
    if a is not None and b is not None:
        lines += ["explain says of actual:", str(explain(actual, a, b, c, time_limit=20, **asked))]
    raise AssertionError("\n".join(lines))


__all__ = ["assert_equal_bits"]
