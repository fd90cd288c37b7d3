"""Matrix products, convolutions and single instructions, bit for bit as a machine computes them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from . import _core, block_scaled
from .arguments import checked
from .arrays import common_batch, empty_codes, format_name, from_codes, library_of, number_or_array, output, result_memory, to_numpy, view


@checked
def plan_of(
    a: Any,
    b: Any,
    *,
    arch: str | None = None,
    plan: str | None = None,
    like: str | None = None,
    out_dtype: Any = None,
    tf32: bool = False,
) -> str:
    """The plan by which `matmul` would multiply operands of these formats; a and b may be arrays, dtypes or names.

    `arch` is a machine (`"sm_90"`, `"cdna3"`): one ascending chain over K of the instruction that its libraries usually take.
    `plan` is a plan as `explain` prints it, `like` a row of `plans()` as LIBRARY:ARCH[:KERNEL]. Without any of them arch is
    sm_90.
    """
    if sum(x is not None for x in (arch, plan, like)) > 1:
        raise ValueError("plan: name one of arch, plan and like")
    if tf32 and (plan or like):
        raise ValueError("tf32: only with arch; a plan names its unit")
    formats = [x if isinstance(x, str) else format_name(x, name) if _is_dtype(x) else to_numpy(x, name)[1]
               for x, name in ((a, "a"), (b, "b"))]
    wanted = "" if out_dtype is None else format_name(out_dtype, "out_dtype")
    if like is not None:
        text = _core.library_plan(like, formats[0], formats[1])
    elif plan is not None:
        text = plan
    else:
        return _core.usual_plan(arch or "sm_90", formats[0], formats[1], wanted, tf32)
    return _core.with_output(text, wanted) if wanted else text


def _is_dtype(x: Any) -> bool:
    return isinstance(x, (np.dtype, type)) or type(x).__name__ == "dtype"


def _strided(codes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The codes broadcast to a shape, without a copy."""
    return codes if codes.shape == shape else np.broadcast_to(codes, shape)


@checked
def matmul(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    arch: str | None = None,
    plan: str | None = None,
    like: str | None = None,
    out_dtype: Any = None,
    alpha: float | None = None,
    beta: float | None = None,
    bias: Any = None,
    scale_a: Any = None,
    scale_b: Any = None,
    tf32: bool = False,
    sparse: bool = False,
    dtype: Any = None,
    out: Any = None,
    engine: str = "auto",
    threads: int = 0,
) -> Any:
    """alpha * a @ b + beta * c + bias, with the bits of a machine or of a library's kernel.

    Shapes are those of `numpy.matmul`: a [..., M, K], b [..., K, N], vectors too; c [..., M, N], bias [N]. `scale_a` is a
    number, [M] or [M, blocks of K], `scale_b` a number, [N] or [blocks of K, N]; they multiply the sums. `arch`, `plan`,
    `like`: see `plan_of`; a plan that splits K over the rows' tiles (stream-K) counts all rows of all matrices. `out_dtype`:
    default that of a, for 8 bits and fewer fp32 or int32. beta is 1 where c is given and nothing else is said. `sparse`: a is
    2:4 sparse, stored with its zeros. `dtype`: what integers in a and b are codes of. `out`: a NumPy array, or a tensor of
    PyTorch on the CPU, of the result's type and shape, row by row in memory. `engine`: one of `engines()`; the bits do not depend
    on it, nor on `threads`.

    Operands of MX and NVFP4 are what `quantize` returns, A with blocks along its rows and B along its columns (`axis=-2`, or weights
    transposed: `matmul(x, weight.T)`), or codes with `scale_a` and `scale_b` in E8M0 or E4M3, of as many dimensions. They go through
    one ascending chain of the block-scaled instruction of `arch` (default sm_100); the FP32 sum is multiplied by alpha and the scales of
    the tensors, beta * c and bias are added in FP32, and the result is rounded to `out_dtype` (default fp32). `plan`, `like`, `tf32` and
    `sparse` are for other products.

    Operands are read where they lie. Returns an array of a's library; a on a GPU is copied to the host and the result back.
    """
    if block_scaled.has_block_scales(a, b, scale_a, scale_b):
        for name, given in (("plan", plan is not None), ("like", like is not None), ("tf32", tf32), ("sparse", sparse)):
            if given:
                raise ValueError(f"{name}: is not taken beside block scales, whose products are chains of the block-scaled instruction of arch "
                                 "(valid: arch, out_dtype, alpha, beta, c, bias, dtype, out)")
        return block_scaled.matmul(a, b, c, scale_a, scale_b, arch=arch or "sm_100", out_dtype=out_dtype, alpha=alpha, beta=beta, bias=bias,
                                   dtype=dtype, out=out, engine=engine, threads=threads)
    (a_codes, a_format), (b_codes, b_format) = to_numpy(a, "a"), to_numpy(b, "b")
    if dtype is not None:
        a_format = b_format = format_name(dtype, "dtype")
    text = plan_of(a_format, b_format, arch=arch, plan=plan, like=like, out_dtype=out_dtype, tf32=tf32)
    for name, codes in (("a", a_codes), ("b", b_codes)):
        if codes.ndim == 0:
            raise ValueError(f"{name}: a scalar is no matrix")
    row, column = a_codes.ndim == 1, b_codes.ndim == 1
    if row:
        a_codes = a_codes[np.newaxis, :]
    if column:
        b_codes = b_codes[:, np.newaxis]
    batch = common_batch(a_codes, b_codes)
    rows, columns = a_codes.shape[-2], b_codes.shape[-1]
    if len(batch) > 0:
        entries = int(np.prod(batch))
        a_codes = _strided(a_codes, batch + a_codes.shape[-2:]).reshape(entries, *a_codes.shape[-2:])
        b_codes = _strided(b_codes, batch + b_codes.shape[-2:]).reshape(entries, *b_codes.shape[-2:])

    def like_result(x: Any, name: str) -> _core.Array | None:
        if x is None:
            return None
        codes, of = to_numpy(x, name)
        try:
            codes = np.broadcast_to(codes, (*batch, rows, columns))
        except ValueError:
            raise ValueError(f"{name}: shape {codes.shape} is not that of the product, {(*batch, rows, columns)}") from None
        return _core.Array.view(codes.reshape(-1, rows, columns) if batch else codes, of, name)

    def scale(x: Any, name: str) -> _core.Array | None:
        return None if x is None else view(number_or_array(x), name)

    arrays = _core.ProductArrays(_core.Array.view(a_codes, a_format, "a"), _core.Array.view(b_codes, b_format, "b"),
                                 like_result(c, "c"), None if bias is None else view(bias, "bias"),
                                 scale(scale_a, "scale_a"), scale(scale_b, "scale_b"), sparse)
    to = _core.plan_output(text)
    flat = (*((int(np.prod(batch)),) if batch else ()), rows, columns)
    shape = (*batch, *(() if row else (rows,)), *(() if column else (columns,)))
    codes = empty_codes(flat, to) if out is None else result_memory(out, to, shape, flat)
    _core.multiply(arrays, text, alpha, beta, engine, threads, output(codes, to, "out"))
    return from_codes(codes.reshape(shape), to, library_of(a, b)) if out is None else out


def _pair(value: Any, name: str) -> tuple[int, int]:
    pair = value if isinstance(value, (tuple, list)) else (value, value)
    if len(pair) != 2 or not all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in pair):
        raise TypeError(f"{name}: is a whole number or a pair of these")
    if not all(abs(x) < 2**31 for x in pair):
        raise ValueError(f"{name}: is out of range")
    return int(pair[0]), int(pair[1])


def _padding(padding: Any, weight: _core.Array, steps: tuple[int, int], dilation: tuple[int, int]) -> tuple[int, int]:
    """Numbers, or PyTorch's words: "valid" is none, "same" gives the result the size of x."""
    if not isinstance(padding, str):
        return _pair(padding, "padding")
    if padding not in ("valid", "same"):
        raise ValueError(f"padding: unknown word {padding!r} (valid: valid, same, numbers)")
    if padding == "valid" or len(weight.shape) != 4:
        return 0, 0
    if steps != (1, 1):
        raise ValueError("padding: same needs a stride of 1")
    both = [step * (size - 1) for step, size in zip(dilation, weight.shape[2:])]
    if any(x % 2 for x in both):
        raise ValueError("padding: same needs filters of an odd size; pad x by one zero more on the right and below")
    return both[0] // 2, both[1] // 2


@checked
def conv(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    arch: str | None = None,
    plan: str | None = None,
    like: str | None = None,
    out_dtype: Any = None,
    tf32: bool = False,
    engine: str = "auto",
    threads: int = 0,
) -> Any:
    """A convolution of two dimensions, as `torch.nn.functional.conv2d`, as an implicit matrix product.

    x [N, C, H, W], weight [O, C / groups, R, S], bias [O]; the result [N, O, P, Q]. `stride`, `padding` and `dilation` are numbers
    or pairs; padding may be "same" or "valid". K is walked as the plan's key `conv` says: by default filter rows, filter columns, then
    channels innermost, as kernels of NHWC tensors do. Memory order of x does not matter.
    """
    x_in, weight_in = view(x, "x"), view(weight, "weight")
    strides, dilations = _pair(stride, "stride"), _pair(dilation, "dilation")
    steps = _core.ConvolutionSteps(strides, _padding(padding, weight_in, strides, dilations), dilations, groups)
    text = plan_of(x_in.format, weight_in.format, arch=arch, plan=plan, like=like, out_dtype=out_dtype, tf32=tf32)
    to = _core.plan_output(text)
    codes = empty_codes(_core.convolution_shape(x_in, weight_in, steps), to)
    _core.convolve(x_in, weight_in, None if bias is None else view(bias, "bias"), steps, text, engine, threads,
                   output(codes, to, "out"))
    return from_codes(codes, to, library_of(x, weight))


@checked
def run(
    instruction: str,
    a: Any,
    b: Any,
    c: Any = None,
    *,
    arch: str,
    e: Any = None,
    a_scale: Any = None,
    b_scale: Any = None,
    negate_a: bool = False,
    negate_b: bool = False,
    ignore_c: bool = False,
    toolkit: str = "",
    engine: str = "auto",
    threads: int = 0,
) -> Any:
    """Executes one instruction of `instructions()`: a [M, K] or [T, M, K] for T executions, b [K, N], c [M, N] (default +0).

    Element types follow the instruction; unsigned words of the same width are taken as codes. `e`: positions of the stored
    values of a sparse A; `a_scale`, `b_scale`: scale factors of its blocks. `negate_a`, `negate_b`, `ignore_c`: of wgmma and
    tcgen05. `toolkit`: the ptxas version that compiled it, where it matters.
    """
    formats = json.loads(_core.operand_formats(arch, instruction, toolkit))
    operands = []
    for name, x in (("a", a), ("b", b), ("c", c), ("e", e), ("a_scale", a_scale), ("b_scale", b_scale)):
        if x is None and name not in ("a", "b"):
            continue
        codes, of = to_numpy(x, name)
        same_bits = of.startswith("uint") and codes.dtype.itemsize == _core.code_bytes(formats[name])
        operands.append(_core.Array.view(codes, formats[name] if same_bits else of, name))
    shape = _core.result_shape(arch, instruction, toolkit, operands[0], operands[1])
    codes = empty_codes(shape, formats["d"])
    _core.run(arch, instruction, toolkit, operands, negate_a, negate_b, ignore_c, engine, threads,
              output(codes, formats["d"], "out"))
    return from_codes(codes, formats["d"], library_of(a, b))
