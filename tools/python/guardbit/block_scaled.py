"""Products of operands whose blocks of K have scales: a chain over K of a machine's block-scaled instruction."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from . import _core
from .arrays import Codes, common_batch, empty_codes, format_name, from_codes, library_of, output, result_memory, to_numpy, view
from .casting import Blocks, block_formats
from .catalogue import instructions
from .tables import Record

# The scales of NVFP4 have no sign; libraries keep them as E4M3, whose positive codes are the same.
_SCALES = {"e8m0": "e8m0", "ue4m3": "ue4m3", "e4m3": "ue4m3"}


def has_block_scales(a: Any, b: Any, scale_a: Any, scale_b: Any) -> bool:
    """Whether the operands are Blocks, or codes with scales that such instructions take."""
    if isinstance(a, Blocks) or isinstance(b, Blocks):
        return True
    return all(_format_of_scales(x) is not None for x in (scale_a, scale_b))


def _format_of_scales(scales: Any) -> str | None:
    dtype = scales.format if isinstance(scales, Codes) else getattr(scales, "dtype", None)
    if dtype is None or (isinstance(dtype, np.dtype) and dtype.kind in "OSUMmcfiub"):
        return None
    try:
        return _SCALES.get(format_name(dtype))
    except (TypeError, ValueError):
        return None


class _Operand:
    """Codes [T, M, K] or [T, K, N] and scales [T, M, blocks] or [T, blocks, N] as words, with their formats."""

    def __init__(self, x: Any, scales: Any, axis: int, name: str, dtype: Any):
        self.name, self.axis, self.of_tensor = name, axis, 1.0
        if isinstance(x, Blocks):
            if scales is not None:
                raise ValueError(f"scale_{name}: {name} is of Blocks, which have scales")
            if not isinstance(x.axis, int):
                raise TypeError(f"{name}: the axis of Blocks is a whole number, not {type(x.axis).__name__}")
            self.of_tensor = 1.0 if x.tensor_scale is None else x.tensor_scale
        elif scales is None:
            raise ValueError(f"scale_{name}: {name} has no scales, the other operand has")
        codes, element = to_numpy(x.codes if isinstance(x, Blocks) else x, name)
        words, of_scales = to_numpy(x.scales if isinstance(x, Blocks) else scales, f"scale_{name}")
        self.is_vector = codes.ndim == 1
        if codes.ndim == 0 or words.ndim != codes.ndim:
            raise ValueError(f"scale_{name}: shape {words.shape} has not the dimensions of {name}, {codes.shape}: one scale for each block, "
                             "not swizzled")
        k_axis = codes.ndim - 1 if self.is_vector else codes.ndim + axis
        if isinstance(x, Blocks) and x.axis not in (k_axis, k_axis - codes.ndim):
            raise ValueError(f"{name}: its blocks lie along axis {x.axis}, and K is axis {k_axis}: quantize(..., axis={k_axis})")
        if self.is_vector:
            other = -2 if axis == -1 else -1
            codes, words = np.expand_dims(codes, other), np.expand_dims(words, other)
        self.codes, self.element = codes, element if dtype is None or isinstance(x, Blocks) else format_name(dtype, "dtype")
        self.scales, self.scale = words, _SCALES.get(of_scales, of_scales)
        self.size = self._block_size()

    def _block_size(self) -> int:
        k, blocks = self.codes.shape[self.axis], self.scales.shape[self.axis]
        for block_format in block_formats():
            size: int = block_format.block_size
            if (block_format.element, block_format.scale) == (self.element, self.scale) and blocks == -(-k // size):
                others = [(*x.shape[:-2], x.shape[-3 - self.axis]) for x in (self.codes, self.scales)]
                if others[0] != others[1]:
                    raise ValueError(f"scale_{self.name}: shape {self.scales.shape} does not fit {self.name}'s, {self.codes.shape}, "
                                     f"with blocks of {size}")
                return size
        is_half = self.element == "e2m1" and any((x.element, x.scale) == (self.element, self.scale) and blocks == -(-2 * k // x.block_size)
                                                 for x in block_formats())
        packed = "; bytes of two elements are of the type torch.float4_e2m1fn_x2" if is_half else ""
        raise ValueError(f"scale_{self.name}: {self.scales.shape} scales in {self.scale} fit no block format of {self.codes.shape} "
                         f"elements in {self.element}{packed}")

    def arrays(self, batch: tuple[int, ...]) -> tuple[_core.Array, _core.Array]:
        """Codes and scales of so many products, those that all have in common without a copy."""
        found = []
        for words, of, name in ((self.codes, self.element, self.name), (self.scales, self.scale, f"scale_{self.name}")):
            shape = words.shape[-2:]
            entries = words[np.newaxis] if words.ndim == 2 else words
            if batch and words.shape[:-2] != batch:
                entries = np.broadcast_to(words, batch + shape)
            found.append(_core.Array.view(entries.reshape(-1, *shape) if entries.ndim != 3 else entries, of, name))
        return found[0], found[1]


@functools.cache
def instruction_for(arch: str, a: str, b: str, scale: str, size: int) -> Record:
    """The machine's dense instruction for these elements and scales with a result in FP32, the one with the longest K."""
    wanted = f"{scale}, one per {size} of K"
    found = [x for x in instructions(arch)
             if (x.a, x.b, x.d, x.scales) == (a, b, "fp32", wanted) and not x.sparsity]
    if not found:
        raise ValueError(f"arch: no instruction of {arch} multiplies {a} by {b} with scales in {scale} for {size} elements of K "
                         "(valid: sm_100, sm_103, sm_120 and their aliases, for formats of MX and NVFP4)")
    best: Record = max(found, key=lambda x: x.shape["k"])
    return best


def matmul(
    a: Any,
    b: Any,
    c: Any,
    scale_a: Any,
    scale_b: Any,
    *,
    arch: str,
    out_dtype: Any,
    alpha: float | None,
    beta: float | None,
    bias: Any,
    dtype: Any,
    out: Any,
    engine: str,
    threads: int,
) -> Any:
    """One ascending chain over K in FP32, then the epilogue of a plan: alpha * sums + beta * c + bias in FP32, rounded to `out_dtype`."""
    left, right = _Operand(a, scale_a, -1, "a", dtype), _Operand(b, scale_b, -2, "b", dtype)
    if (left.scale, left.size) != (right.scale, right.size):
        raise ValueError(f"scale_b: blocks of {right.size} with {right.scale} beside A's blocks of {left.size} with {left.scale}")
    (rows, k), (b_rows, columns) = left.codes.shape[-2:], right.codes.shape[-2:]
    if k != b_rows:
        raise ValueError(f"b: is {list(right.codes.shape)} where A is {list(left.codes.shape)}: B needs {k} rows, A's K")
    batch = common_batch(left.codes, right.codes)
    count = int(np.prod(batch))
    if 0 in (rows, k, columns, count):
        raise ValueError("a: the array is empty")
    instruction = instruction_for(arch, left.element, right.element, left.scale, left.size)
    to = "fp32" if out_dtype is None else format_name(out_dtype, "out_dtype")
    shape = (*batch, *(() if left.is_vector else (rows,)), *(() if right.is_vector else (columns,)))
    # One matrix for each row of the result: the row of sums times 1, which is exact.
    by_row = (count * rows, 1, columns)
    codes = empty_codes(by_row, to) if out is None else result_memory(out, to, shape, by_row)
    result = output(codes, to, "out")
    if beta is not None and c is None:
        raise ValueError("matmul: there is a beta, so c is needed")
    added = None
    if c is not None:
        c_codes, c_format = to_numpy(c, "c")
        try:
            added = _core.Array.view(np.broadcast_to(c_codes, (*batch, rows, columns)).reshape(by_row), c_format, "c")
        except ValueError:
            raise ValueError(f"c: shape {c_codes.shape} is not that of the product, {(*batch, rows, columns)}") from None
    to_every_row = None if bias is None else view(bias, "bias")
    if to_every_row is not None and tuple(to_every_row.shape) != (columns,):
        raise ValueError(f"bias: shape {tuple(to_every_row.shape)} is not {(columns,)}, a number for each column")
    sums = empty_codes((count, rows, columns), "fp32")
    (a_codes, a_scales), (b_codes, b_scales) = left.arrays(batch), right.arrays(batch)
    _core.multiply_blocks(instruction.arch, instruction.name, instruction.toolkit, a_codes, b_codes, a_scales, b_scales, engine, threads,
                          output(sums, "fp32", "out"))
    products = _core.ProductArrays(_core.Array.view(np.broadcast_to(np.uint32(0x3F800000), (count * rows, 1, 1)), "fp32", "one"),
                                   _core.Array.view(sums.reshape(by_row), "fp32", "sums"), added, to_every_row, None, None, False)
    factor = left.of_tensor * right.of_tensor * (1.0 if alpha is None else alpha)
    _core.multiply(products, _core.with_output("simt/fma.fp32 d=fp32", to), factor, beta, "auto", threads, result)
    if out is not None:
        return out
    return from_codes(codes.reshape(shape), to, library_of(*(x.codes if isinstance(x, Blocks) else x for x in (a, b))))
