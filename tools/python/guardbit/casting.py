"""Conversions of arrays between formats, and quantisation in blocks."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from html import escape
from typing import Any

from . import _core
from .arguments import checked
from .arrays import empty_codes, format_name, from_codes, library_of, output, view, writable
from .tables import Record, record


def _text(value: Any) -> str:
    """A number as the command takes it, exactly."""
    return "" if value is None else value if isinstance(value, str) else float(value).hex()


def _options(**values: Any) -> _core.CastOptions:
    options = _core.CastOptions()
    for name, value in values.items():
        setattr(options, name, value)
    return options


def _overflow(overflow: str | None, converter: str | None) -> str:
    if overflow is not None and converter is not None:
        raise ValueError("cast: a converter brings its own overflow rule; name one of overflow and converter")
    return converter or overflow or ""


@checked
def cast(
    x: Any,
    to: Any,
    *,
    rounding: str | None = None,
    converter: str | None = None,
    overflow: str | None = None,
    scale: float | str | None = None,
    seed: int | None = None,
    dtype: Any = None,
    out: Any = None,
    threads: int = 0,
    summary: bool = False,
) -> Any:
    """The array in another format, every element rounded once.

    `to`: a name (`"e4m3"`, `"bf16"`, `"e5m6:bias=20"`) or a dtype. `rounding`: nearest_even (default), nearest_away,
    toward_zero, upward, downward, stochastic, ... `converter`: how a library or an instruction converts (`"torch"`,
    `"ml_dtypes"`, `"cvt"`, or a name that `guardbit formats --converters` lists); it brings rounding and overflow.
    `overflow`: ieee (default: past the largest number is infinity, or NaN) or saturate. `scale` multiplies exactly before the
    rounding. `seed`: of stochastic rounding; element i takes the same random bits whatever the number of threads.
    `dtype`: what integers in `x` are codes of. `out`: a NumPy array of the result's type to write to.

    Returns an array of x's library, or `Codes` where that has no such type; with `summary=True` a pair of it and a dict that
    counts what happened. Raises guardbit.Error for names and values that are none, TypeError for objects that are no arrays.
    """
    to = format_name(to, "to")
    options = _options(to=to, rounding=rounding or "", overflow=_overflow(overflow, converter), scale=_text(scale),
                       seed="" if seed is None else str(seed), threads=threads)
    source = view(x, "x", dtype)
    codes = empty_codes(source.shape, to) if out is None else writable(out)
    counts = _core.cast(source, output(codes, to, "out"), options)
    result = from_codes(codes, to, library_of(x)) if out is None else out
    return (result, json.loads(counts)) if summary else result


@functools.cache
def block_formats() -> list[Record]:
    """The block formats with their parts, as `formats` has them."""
    found: list[Record] = record(json.loads(_core.formats())).block_formats
    return found


@dataclass(frozen=True)
class Blocks:
    """A tensor in a block format: elements, a scale for each block of them, and for NVFP4 one of the tensor.

    It unpacks as `codes, scales, tensor_scale`; `tensor_scale` is None where the format has none.
    """

    codes: Any
    scales: Any
    tensor_scale: float | None
    format: str
    axis: int = -1
    summary: dict[str, Any] = field(default_factory=dict, repr=False)

    def __iter__(self) -> Any:
        return iter((self.codes, self.scales, self.tensor_scale))

    def _repr_html_(self) -> str:
        counts = "".join(f"<tr><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>"
                         for name, value in self.summary.items() if isinstance(value, (int, float, str)))
        return f"<p>{escape(repr(self))}</p><table><tbody>{counts}</tbody></table>"

    def __repr__(self) -> str:
        of_tensor = "" if self.tensor_scale is None else f", tensor scale {self.tensor_scale:.6g}"
        return f"<{self.format}: elements {tuple(self.codes.shape)}, scales {tuple(self.scales.shape)}{of_tensor}>"


@checked
def quantize(
    x: Any,
    to: str,
    *,
    axis: int = -1,
    rounding: str | None = None,
    overflow: str | None = None,
    scale_rule: str | None = None,
    tensor_scale: float | str | None = None,
    seed: int | None = None,
    dtype: Any = None,
    threads: int = 0,
) -> Blocks:
    """The array in a block format: `codes, scales, tensor_scale = quantize(x, "nvfp4")`.

    `to`: mxfp8_e4m3, mxfp8_e5m2, mxfp6_e3m2, mxfp6_e2m3, mxfp4, mxint8 or nvfp4. Blocks lie along `axis`. `scale_rule`:
    exponents (OCP's, the default of MX), without_overflow (rounded up) or nearest (the default of nvfp4). `tensor_scale`, of
    nvfp4: a number, or "auto" (default): the largest magnitude over 448 * 6. x must be of a format that FP32 holds.
    """
    element, scale, _, _ = _core.parts_of_block_format(to, "to")
    options = _options(to=to, rounding=rounding or "", overflow=overflow or "", scale_rule=scale_rule or "",
                       tensor_scale=_text(tensor_scale), seed="" if seed is None else str(seed), axis=axis,
                       threads=threads)
    source = view(x, "x", dtype)
    codes = empty_codes(source.shape, element)
    scales = empty_codes(_core.scales_shape(source, to, axis), scale)
    of_tensor, counts = _core.quantize(source, to, output(codes, element, "codes"), output(scales, scale, "scales"),
                                       options)
    library = library_of(x)
    return Blocks(from_codes(codes, element, library), from_codes(scales, scale, library), of_tensor, to, axis,
                  json.loads(counts))


@checked
def dequantize(
    codes: Any,
    scales: Any = None,
    tensor_scale: float | None = None,
    *,
    format: str | None = None,
    to: Any = "fp32",
    axis: int = -1,
    rounding: str | None = None,
    threads: int = 0,
) -> Any:
    """The numbers that blocks stand for, each rounded once to `to`: `dequantize(blocks)`, or of codes and scales with a
    `format`."""
    library = library_of(codes, scales)
    if isinstance(codes, Blocks):
        blocks = codes
        library = library_of(blocks.codes)
        codes, scales, tensor_scale = blocks
        format, axis = format or blocks.format, blocks.axis
    if format is None or scales is None:
        raise ValueError("dequantize: needs codes, scales and the format, or what quantize returned")
    element, scale, _, _ = _core.parts_of_block_format(format, "format")
    to = format_name(to, "to")
    elements = view(codes, "codes", element)
    result = empty_codes(elements.shape, to)
    _core.dequantize(elements, view(scales, "scales", scale), None if tensor_scale is None else float(tensor_scale),
                     format, output(result, to, "out"),
                     _options(to=to, rounding=rounding or "", axis=axis, threads=threads))
    return from_codes(result, to, library)
