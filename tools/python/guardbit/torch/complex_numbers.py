"""Complex numbers: made of lengths and angles, and multiplied, as rotary embeddings do, with their gradients; all else has no model."""

from __future__ import annotations

from typing import Any

import torch

from .ranges import on_gpu
from .session import Session, doubt_of, elements_of
from .tensor_iterator import result_strides

aten = torch.ops.aten


def parts(session: Session, x: Any, shape: Any) -> tuple[Any, Any]:
    """Real and imaginary parts, repeated to that shape."""
    whole = elements_of(x).resolve_conj().expand(shape)
    return on_gpu(session, whole.real.contiguous()), on_gpu(session, whole.imag.contiguous())


def joined(session: Session, real: Any, imaginary: Any, strides: Any, doubt: str | None) -> Any:
    whole = torch.complex(elements_of(real), elements_of(imaginary))
    laid = torch.empty_strided(whole.shape, strides, dtype=whole.dtype)
    return session.wrapped(laid.copy_(whole), doubt)


def polar(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    length, angle = args
    real, imaginary = (session.computed(aten.mul.Tensor, (length, session.computed(of_angle, (angle,), {})), {}) for of_angle in (aten.cos.default, aten.sin.default))
    return joined(session, real, imaginary, result_strides(real.shape, [length, angle]), doubt_of(args, kwargs))


def direction(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """sgn: both parts divided by the length, which is hypot's; 0 of 0."""
    x = args[0]
    real, imaginary = parts(session, x, x.shape)
    length = session.computed(aten.hypot.default, (real, imaginary), {})
    is_nothing = session.computed(aten.eq.Scalar, (length, 0), {})
    zeros = session.computed(aten.zeros_like.default, (length,), {})
    real, imaginary = (session.computed(aten.where.self, (is_nothing, zeros, session.computed(aten.div.Tensor, (part, length), {})), {}) for part in (real, imaginary))
    return joined(session, real, imaginary, result_strides(x.shape, [x]), doubt_of(args, kwargs))


def product(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """(a + bi)(c + di): a c - b d and a d + b c, the first product of each fused."""
    x, y = args
    if isinstance(y, complex):
        y = torch.tensor(y, dtype=x.dtype)
    if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)) or x.dtype != y.dtype or x.dtype not in (torch.complex64, torch.complex128):
        return session.without_model(func, args, kwargs, "complex numbers and others")
    shape = torch.broadcast_shapes(x.shape, y.shape)
    (a, b), (c, d) = parts(session, x, shape), parts(session, y, shape)
    less = session.computed(aten.neg.default, (session.computed(aten.mul.Tensor, (b, d), {}),), {})
    real = session.computed(aten.addcmul.default, (less, a, c), {})
    imaginary = session.computed(aten.addcmul.default, (session.computed(aten.mul.Tensor, (b, c), {}), a, d), {})
    return joined(session, real, imaginary, result_strides(shape, [x, y]), doubt_of(args, kwargs))


Session.specials.update({"polar": polar})
Session.of_complex.update({"mul": product, "sgn": direction})
