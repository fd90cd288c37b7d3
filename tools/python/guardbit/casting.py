"""Conversions of arrays between formats, and quantisation in blocks."""

from __future__ import annotations

import dataclasses
import functools
import json
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from . import _core
from .arguments import checked
from .arrays import ScaledCodes, empty_codes, format_name, from_codes, in_order, library_of, memory_order, output, to_numpy, view, writable
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


def _of_converter(error: _core.Error, converter: str | None, to: str) -> _core.Error:
    """An error about a converter, which the command names as an overflow rule, in the words of the argument."""
    begin, valid = "overflow: unknown overflow rule ", " (valid: "
    text = str(error)
    if converter is None or not text.startswith(begin):
        return error
    told, _, names = text.removeprefix(begin).partition(valid)
    converters = [name for name in names.removesuffix(")").split(", ") if name not in ("ieee", "saturate")]
    return _core.Error(f"converter: unknown converter {told} of {to}{valid}{', '.join(converters)})")


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
    `dtype`: what integers in `x` are codes of. `out`: a NumPy array, or a tensor of PyTorch
    on the CPU, of the result's type to write to.

    Returns an array of x's library, or `Codes` where that has no such type; with `summary=True` a pair of it and a dict that
    counts what happened. Raises guardbit.Error for names and values that are none, TypeError for objects that are no arrays.
    """
    to = format_name(to, "to")
    options = _options(to=to, rounding=rounding or "", overflow=_overflow(overflow, converter), scale=_text(scale),
                       seed="" if seed is None else str(seed), threads=threads)
    words, of = to_numpy(x, "x")
    # Elements in the order of the memory, where that changes neither which random bits they take nor what is told.
    is_random = rounding == "stochastic" or ".rs" in (converter or overflow or "")
    axes = None if out is not None or summary or is_random else memory_order(words)
    if axes is not None:
        words = words.transpose(axes)
    codes = empty_codes(words.shape, to) if out is None else writable(out, to)
    try:
        counts = _core.cast(_core.Array.view(words, of if dtype is None else format_name(dtype, "dtype"), "x"), output(codes, to, "out"), options)
    except _core.Error as error:
        raise _of_converter(error, converter, to) from None
    if axes is not None:
        codes = in_order(codes, axes)
    result = from_codes(codes, to, library_of(x)) if out is None else out
    return (result, json.loads(counts)) if summary else result


@functools.cache
def block_formats() -> list[Record]:
    """The block formats with their parts, as `formats` has them."""
    found: list[Record] = record(json.loads(_core.formats())).block_formats
    return found


@dataclass(frozen=True)
class Blocks(ScaledCodes):
    """A tensor in a block format: elements, a scale for each block of them, and for NVFP4 one of the tensor.

    It unpacks as `codes, scales, tensor_scale`; `tensor_scale` is None where the format has none. `T` is a matrix transposed, `mT`
    each matrix of a stack, without a copy: weights that were quantized along their rows are the B of `matmul(x, weight.T)`.
    """

    codes: Any
    scales: Any
    tensor_scale: float | None
    format: str
    axis: int = -1
    summary: dict[str, Any] = field(default_factory=dict, repr=False)

    def __iter__(self) -> Any:
        return iter((self.codes, self.scales, self.tensor_scale))

    @property
    def T(self) -> Blocks:  # noqa: N802, as NumPy calls it
        if self.scales.ndim != 2:
            raise ValueError(f"T: {self!r} is no matrix; mT transposes each of a stack")
        return self.mT

    @property
    def mT(self) -> Blocks:  # noqa: N802, as NumPy calls it
        if self.scales.ndim < 2:
            raise ValueError(f"mT: {self!r} has less than 2 dimensions")
        axis = self.axis % self.scales.ndim
        last = self.scales.ndim - 1
        across = {last: last - 1, last - 1: last}.get(axis, axis)
        codes, scales = (np.swapaxes(x, -1, -2) if isinstance(x, np.ndarray) else x.mT for x in (self.codes, self.scales))
        return dataclasses.replace(self, codes=codes, scales=scales, axis=across)

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


def _format_of(codes: Any, scales: Any) -> str:
    """The block format that has elements and scales of these types."""
    element, scale = to_numpy(codes, "codes")[1], to_numpy(scales, "scales")[1]
    for block_format in block_formats():
        # The scales of NVFP4 have no sign; libraries keep them as E4M3, whose positive codes are the same.
        if block_format.element == element and block_format.scale in (scale, f"u{scale}"):
            return str(block_format.name)
    raise ValueError(f"format: no block format has elements in {element} and scales in {scale}; name it "
                     f"(valid: {', '.join(x.name for x in block_formats())})")


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
    """The numbers that blocks stand for, each rounded once to `to`: `dequantize(blocks)`, or of codes and scales along `axis`.

    `format` is needed only where the types of codes and scales do not say it, as unsigned words do not.
    """
    library = library_of(codes, scales)
    if isinstance(codes, Blocks):
        blocks = codes
        library = library_of(blocks.codes)
        codes, scales, tensor_scale = blocks
        format, axis = format or blocks.format, blocks.axis
    if scales is None:
        raise ValueError("dequantize: needs codes and scales, or what quantize returned")
    if format is None:
        format = _format_of(codes, scales)
    element, scale, _, _ = _core.parts_of_block_format(format, "format")
    to = format_name(to, "to")
    elements = view(codes, "codes", element)
    result = empty_codes(elements.shape, to)
    _core.dequantize(elements, view(scales, "scales", scale), None if tensor_scale is None else float(tensor_scale),
                     format, output(result, to, "out"),
                     _options(to=to, rounding=rounding or "", axis=axis, threads=threads))
    return from_codes(result, to, library)
