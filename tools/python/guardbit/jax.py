"""Products of a machine inside JAX programs: under jit, vmap and grad."""

# This file's name hides JAX from pyright.
# pyright: reportAttributeAccessIssue=false, reportFunctionMemberAccess=false

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _core, products
from .arguments import checked
from .arrays import NUMPY, empty_codes, format_name, from_codes


def _operand(x: Any, name: str) -> Any:
    try:
        array = jnp.asarray(x)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}: JAX makes no array of {getattr(x, 'dtype', type(x).__name__)}") from None
    if array.ndim < 2:
        raise ValueError(f"{name}: a and b have at least 2 dimensions here")
    return array


@checked
def matmul(
    a: Any,
    b: Any,
    *,
    arch: str | None = None,
    plan: str | None = None,
    like: str | None = None,
    out_dtype: Any = None,
    tf32: bool = False,
    threads: int = 0,
) -> Any:
    """a @ b with the bits of a machine, as `guardbit.matmul`, where tracers may stand for the arrays.

    The product is computed on the host (jax.pure_callback), so that jitted programs run it on any backend. Its gradients are
    products of the same machine: da = g @ b.T and db = a.T @ g, each cast to the operand's type; with a `plan` they are
    computed by that plan, too.
    """
    a, b = _operand(a, "a"), _operand(b, "b")
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"b: is {list(b.shape)} where A is {list(a.shape)}: B needs {a.shape[-1]} rows, A's K")
    if 0 in a.shape or 0 in b.shape:
        raise ValueError(f"{'a' if 0 in a.shape else 'b'}: the array is empty")
    try:
        jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(f"b: batches of {b.shape[:-2]} do not fit those of a, {a.shape[:-2]}") from None
    chosen: dict[str, Any] = {"arch": arch, "plan": plan, "like": like, "tf32": tf32}
    text = products.plan_of(format_name(a.dtype, "a"), format_name(b.dtype, "b"), out_dtype=out_dtype, **chosen)

    def product(x: Any, y: Any, to: Any) -> Any:
        """x @ y in the type `to`, or that of the plan where to is None."""
        shape = (*jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])
        dtype = jnp.dtype(to) if to is not None else _dtype_of(text)

        def compute(x_there: Any, y_there: Any) -> np.ndarray:
            result: np.ndarray = products.matmul(np.asarray(x_there), np.asarray(y_there), out_dtype=dtype, threads=threads, **chosen)
            return result

        described: Any = jax.ShapeDtypeStruct
        return jax.pure_callback(compute, described(shape, dtype), x, y, vmap_method="broadcast_all")

    @jax.custom_vjp
    def forward(x: Any, y: Any) -> Any:
        return product(x, y, None)

    def keep(x: Any, y: Any) -> Any:
        return product(x, y, None), (x, y)

    def backward(kept: Any, g: Any) -> Any:
        x, y = kept
        return (_summed(product(g.astype(y.dtype), jnp.swapaxes(y, -1, -2), x.dtype), x.shape),
                _summed(product(jnp.swapaxes(x, -1, -2), g.astype(x.dtype), y.dtype), y.shape))

    forward.defvjp(keep, backward)
    return forward(a, b)


def _dtype_of(plan: str) -> Any:
    of = _core.plan_output(plan)
    nothing = from_codes(empty_codes((0,), of), of, NUMPY)
    if not isinstance(nothing, np.ndarray):
        raise ValueError(f"matmul: JAX has no type for {of}; name another out_dtype")
    return nothing.dtype


def _summed(gradient: Any, shape: tuple[int, ...]) -> Any:
    """The gradient of an operand that was broadcast over batches."""
    extra = gradient.ndim - len(shape)
    gradient = gradient.sum(axis=tuple(range(extra))) if extra else gradient
    ones = tuple(i for i, size in enumerate(shape[:-2]) if size == 1 and gradient.shape[i] != 1)
    return gradient.sum(axis=ones, keepdims=True) if ones else gradient


__all__ = ["matmul"]
