"""Gradients of operators that move data, and losses, by the operators they are made of."""

from __future__ import annotations

from typing import Any

import torch

from .session import Session, argument_of, doubt_of, elements_of, on_cpu

aten = torch.ops.aten
LEAST_NORMAL = 2.0**-126
MEAN = 1


def unfold_backward(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Each element adds what its windows have, in order, and stores each sum."""
    gradient, shape, dim, size, step = args
    source = elements_of(gradient)
    result = torch.zeros(shape, dtype=source.dtype)
    dim = dim % max(len(shape), 1)
    for window in range(source.shape[dim] if shape else 0):
        result.narrow(dim, window * step, size).add_(source.select(dim, window).movedim(-1, dim))
    return session.given(func, args, kwargs, result, doubt_of(args, kwargs))


def padded_backward(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """reflection_pad1d_backward and others: atomics, which two terms have but one order for."""
    gradient, x, padding = args
    pad = getattr(aten, func.overloadpacket.__name__.removesuffix("_backward")).default
    numbers = torch.arange(x.numel(), dtype=torch.float64).reshape(x.shape)
    places = pad(numbers, padding).long().reshape(-1)
    source = elements_of(gradient).reshape(-1)
    if places.numel() and int(torch.bincount(places).max()) > 2:
        return session.without_model(func, args, kwargs, "atomics add what is padded with one element, in no fixed order")
    if source.dtype == torch.float32 and bool(((source != 0) & (source.abs() < LEAST_NORMAL)).any()):
        return session.without_model(func, args, kwargs, "atomics with subnormal numbers")
    result = torch.zeros(x.numel(), dtype=source.dtype).index_add_(0, places, source).reshape(x.shape)
    return session.given(func, args, kwargs, result, doubt_of(args, kwargs))


def soft_margin_loss(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, target, reduction = (argument_of(func, args, kwargs, name) for name in ("self", "target", "reduction"))
    result = session.computed(aten.mul.Tensor, (session.computed(aten.neg.default, (x,), {}), target), {})
    result = session.computed(aten.log1p.default, (session.computed(aten.exp.default, (result,), {}),), {})
    if reduction == 0:
        return result
    return session.computed(aten.sum.default if reduction == 2 else aten.mean.default, (result,), {})


def soft_margin_loss_backward(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    gradient, x, target, reduction = args
    factor = 1.0 / x.numel() if reduction == MEAN else 1.0
    exponential = session.computed(aten.exp.default, (session.computed(aten.mul.Tensor, (session.computed(aten.neg.default, (target,), {}), x), {}),), {})
    result = session.computed(aten.mul.Tensor, (session.computed(aten.mul.Tensor, (target, exponential), {}), -factor), {})
    result = session.computed(aten.div.Tensor, (result, session.computed(aten.add.Tensor, (exponential, 1.0), {})), {})
    return session.computed(aten.mul.Tensor, (result, gradient), {})


def distinct(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """unique: sorted numbers, each once."""
    x = elements_of(args[0])
    if x.is_floating_point() and bool(x.isnan().any()):
        return session.without_model(func, args, kwargs, "NaNs among the numbers")
    zeros = x[x == 0] if x.is_floating_point() else x[:0]
    if zeros.signbit().any() and not zeros.signbit().all():
        return session.without_model(func, args, kwargs, "zeros of both signs")
    return session.moved(func, args, kwargs)


def of_integers(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Exact where all operands are integers."""
    result = on_cpu(func, args, kwargs)
    if result.is_floating_point():
        return session.modelled(func, args, kwargs)
    return session.given(func, args, kwargs, result, doubt_of(args, kwargs))


def divided(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """div with a rounding mode, of integers."""
    if kwargs.get("rounding_mode") == "trunc" and not any(isinstance(x, float) or (isinstance(x, torch.Tensor) and x.is_floating_point()) for x in args):
        return of_integers(session, func, args, kwargs)
    return session.modelled(func, args, kwargs)


def powered(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not any(isinstance(x, float) or (isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())) for x in args):
        return of_integers(session, func, args, kwargs)
    return session.modelled(func, args, kwargs)


def integers_or_modelled(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if any(isinstance(x, float) or (isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())) for x in args) or kwargs.get("dtype"):
        return session.modelled(func, args, kwargs)
    return of_integers(session, func, args, kwargs)


Session.specials.update({
    "fmod": integers_or_modelled, "fmod_": integers_or_modelled, "prod": integers_or_modelled,
    "unfold_backward": unfold_backward, "reflection_pad1d_backward": padded_backward, "reflection_pad2d_backward": padded_backward,
    "reflection_pad3d_backward": padded_backward, "replication_pad1d_backward": padded_backward, "replication_pad2d_backward": padded_backward,
    "replication_pad3d_backward": padded_backward, "soft_margin_loss": soft_margin_loss, "soft_margin_loss_backward": soft_margin_loss_backward,
    "_unique2": distinct, "unique_dim": distinct, "unique_consecutive": distinct, "div": divided, "div_": divided, "pow": powered, "pow_": powered,
})
