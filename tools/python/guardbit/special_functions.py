"""Special functions and CUDA's mathematics on arrays, bit for bit as a GPU computes them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from . import _core
from .arguments import checked
from .arrays import empty_codes, from_codes, in_order, library_of, memory_order, output, to_numpy
from .tables import Table, record


def _operand(x: Any, name: str) -> tuple[np.ndarray, str, str] | str:
    """A number as the command takes it, exactly; else an array as words, their format and its name."""
    if isinstance(x, str):
        return x
    if isinstance(x, (bool, np.bool_)):
        raise TypeError(f"{name}: is a number or an array, not {type(x).__name__}")
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    return float(x).hex() if isinstance(x, float) else (*to_numpy(x, name), name)


@checked
def function(
    name: str,
    *operands: Any,
    arch: str = "sm_90",
    compile: str = "default",
    toolkit: str = "",
    threads: int = 0,
) -> Any:
    """A function of every element, as the GPU computes it: `function("ex2.approx.ftz.f32", x)`, `function("powf", x, 2)`.

    `name`: an instruction of PTX or a function of CUDA; `functions()` lists them. Of CUDA's functions of halves a name without
    its type (`"hexp"`) means that of the first array, FP16 or BF16. Operands are arrays of one shape; an array without
    dimensions or a number counts for all elements. Elements must have the function's type, or are unsigned words of its
    width as codes; numbers are rounded to it, and may be words as the command takes them (`"0x1.8p-3"`, `"0x3f800000:fp32"`).
    `compile`: how nvcc compiled CUDA's functions: default, ftz (`-ftz=true`) or fast (`-use_fast_math`). `toolkit`: CUDA's
    version.

    Returns an array of the operands' library, of a function with two results (`"sincosf"`) a tuple of two. A NaN of FP32 is
    0x7fffffff where nothing better is known. Raises guardbit.Error for names, types, shapes and counts that do not fit.
    """
    named = [_operand(x, "xyzw"[i] if i < 4 else f"operand {i + 1}") for i, x in enumerate(operands)]
    arrays = [x[0] for x in named if not isinstance(x, str) and x[0].ndim > 0]
    axes = memory_order(*arrays) if arrays else None  # else they are copied, row by row
    views = [x if isinstance(x, str) else _core.Array.view(x[0].transpose(axes) if axes and x[0].ndim else x[0], x[1], x[2]) for x in named]
    call = _core.FunctionCall(arch, name, compile, toolkit, views)
    codes = [empty_codes(call.shape, of) for of in call.formats]
    call.run([output(c, of, "out") for c, of in zip(codes, call.formats)], threads)
    if axes:
        codes = [in_order(c, axes) for c in codes]
    results = [from_codes(c, of, library_of(*operands)) for c, of in zip(codes, call.formats)]
    return results[0] if len(results) == 1 else tuple(results)


@checked
def functions(compile: str = "default") -> Table:
    """The functions that `function` knows, with what each computes and how that is known; in another mode than default those
    of CUDA alone."""
    return Table(record(json.loads(_core.functions(compile))), ("function", "arch", "operands", "format", "meaning", "evidence"))
