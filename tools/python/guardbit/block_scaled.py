"""Products of operands whose blocks of K have scales: a chain over K of a machine's block-scaled instruction."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from .arrays import Codes, empty_codes, format_name, from_codes, library_of, output, result_memory, to_numpy, view
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


def _operand(x: Any, scales: Any, axis: int, name: str, dtype: Any) -> tuple[np.ndarray, str, np.ndarray, str, int, float]:
    """Codes and scales as words with their formats, the elements of a block, the scale of the tensor."""
    of_tensor = 1.0
    if isinstance(x, Blocks):
        if scales is not None:
            raise ValueError(f"scale_{name}: {name} is of Blocks, which have scales")
        if not isinstance(x.axis, int):
            raise TypeError(f"{name}: the axis of Blocks is a whole number, not {type(x.axis).__name__}")
        if x.axis not in (axis, axis + 2):
            raise ValueError(f"{name}: its blocks lie along axis {x.axis}, and K is axis {axis}: quantize(..., axis={axis})")
        of_tensor = 1.0 if x.tensor_scale is None else x.tensor_scale
        x, scales, dtype = x.codes, x.scales, None
    elif scales is None:
        raise ValueError(f"scale_{name}: {name} has no scales, the other operand has")
    codes, element = to_numpy(x, name)
    element = element if dtype is None else format_name(dtype, "dtype")
    words, of_scales = to_numpy(scales, f"scale_{name}")
    if codes.ndim != 2 or words.ndim != 2:
        raise ValueError(f"{name}: operands with block scales and their scales have 2 dimensions")
    of_scales = _SCALES.get(of_scales, of_scales)
    k, blocks, other = codes.shape[axis], words.shape[axis], -3 - axis
    for block_format in block_formats():
        size = block_format.block_size
        if (block_format.element, block_format.scale) == (element, of_scales) and blocks == -(-k // size):
            if words.shape[other] != codes.shape[other]:
                raise ValueError(f"scale_{name}: shape {words.shape} does not fit {name}'s, {codes.shape}, with blocks of {size}")
            return codes, element, words, of_scales, size, of_tensor
    raise ValueError(f"scale_{name}: {words.shape} scales in {of_scales} fit no block format of {codes.shape} elements in {element}")


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


def _padded(words: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Filled up with zeros to whole instructions."""
    r, c = -words.shape[0] % rows, -words.shape[1] % columns
    return np.pad(words, ((0, r), (0, c))) if r or c else words


def _tiles(words: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """[tiles down, tiles across, rows, columns]"""
    return words.reshape(words.shape[0] // rows, rows, words.shape[1] // columns, columns).swapaxes(1, 2)


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
    a_codes, a_format, a_scales, of_scale, size, a_tensor = _operand(a, scale_a, -1, "a", dtype)
    b_codes, b_format, b_scales, of_b_scale, b_size, b_tensor = _operand(b, scale_b, -2, "b", dtype)
    if (of_scale, size) != (of_b_scale, b_size):
        raise ValueError(f"scale_b: blocks of {b_size} with {of_b_scale} beside A's blocks of {size} with {of_scale}")
    (rows, k), (b_rows, columns) = a_codes.shape, b_codes.shape
    if k != b_rows:
        raise ValueError(f"b: is {list(b_codes.shape)} where A is {list(a_codes.shape)}: B needs {k} rows, A's K")
    if 0 in (rows, k, columns):
        raise ValueError("a: the array is empty")
    instruction = instruction_for(arch, a_format, b_format, of_scale, size)
    to = "fp32" if out_dtype is None else format_name(out_dtype, "out_dtype")
    # One matrix for each row of the result: the row of sums times 1, which is exact.
    by_row = (rows, 1, columns)
    codes = empty_codes(by_row, to) if out is None else result_memory(out, (rows, columns), by_row)
    result = output(codes, to, "out")
    if beta is not None and c is None:
        raise ValueError("matmul: there is a beta, so c is needed")
    added = None
    if c is not None:
        c_codes, c_format = to_numpy(c, "c")
        try:
            added = _core.Array.view(np.broadcast_to(c_codes, (rows, columns)).reshape(by_row), c_format, "c")
        except ValueError:
            raise ValueError(f"c: shape {c_codes.shape} is not that of the product, {(rows, columns)}") from None
    to_every_row = None if bias is None else view(bias, "bias")
    if to_every_row is not None and tuple(to_every_row.shape) != (columns,):
        raise ValueError(f"bias: shape {tuple(to_every_row.shape)} is not {(columns,)}, a number for each column")
    # tcgen05 has no M and N in its name: 128 rows, and columns in steps of 16 up to 256.
    m, n, step = instruction.shape["m"] or 128, instruction.shape["n"] or min(256, -(-columns // 16) * 16), instruction.shape["k"]
    a_codes, a_scales = _padded(a_codes, m, step), _padded(a_scales, m, step // size)
    b_codes, b_scales = _padded(b_codes, step, n), _padded(b_scales, step // size, n)
    down, across = a_codes.shape[0] // m, b_codes.shape[1] // n

    def executions(words: np.ndarray, height: int, width: int) -> np.ndarray:
        """One operand of all executions: A's tiles repeat along the columns of D, B's along its rows."""
        tiles = np.broadcast_to(_tiles(words, height, width), (down, across, height, width))
        return np.ascontiguousarray(tiles).reshape(-1, height, width)

    sums: np.ndarray = np.zeros((down * across, m, n), np.uint32)
    for at in range(0, a_codes.shape[1], step):
        block = slice(at // size, (at + step) // size)
        operands = [
            ("a", executions(a_codes[:, at:at + step], m, step), a_format),
            ("b", executions(b_codes[at:at + step], step, n), b_format),
            ("c", sums, "fp32"),
            ("a_scale", executions(a_scales[:, block], m, step // size), of_scale),
            ("b_scale", executions(b_scales[block], step // size, n), of_scale),
        ]
        next_sums = empty_codes(sums.shape, "fp32")
        _core.run(instruction.arch, instruction.name, instruction.toolkit, [_core.Array.view(words, of, name) for name, words, of in operands],
                  False, False, False, engine, threads, output(next_sums, "fp32", "out"))
        sums = next_sums
    whole = sums.reshape(down, across, m, n).swapaxes(1, 2).reshape(down * m, across * n)[:rows, :columns]
    products = _core.ProductArrays(_core.Array.view(np.full((rows, 1, 1), 0x3F800000, np.uint32), "fp32", "one"),
                                   _core.Array.view(np.ascontiguousarray(whole).reshape(by_row), "fp32", "sums"), added, to_every_row, None, None, False)
    factor = a_tensor * b_tensor * (1.0 if alpha is None else alpha)
    _core.multiply(products, _core.with_output("simt/fma.fp32 d=fp32", to), factor, beta, "auto", threads, result)
    if out is not None:
        return out
    return from_codes(codes.reshape(rows, columns), to, library_of(*(x.codes if isinstance(x, Blocks) else x for x in (a, b))))
