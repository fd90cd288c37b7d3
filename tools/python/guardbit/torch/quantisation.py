"""Numbers rounded to integers with a scale and back, as training with quantised weights asks for it."""

from __future__ import annotations

from typing import Any

import torch

from .session import Session, doubt_of, elements_of

aten = torch.ops.aten


def rounded(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], scale: Any, zero_point: Any) -> Any:
    """The numbers and a mask of those within bounds; scale and zero_point are FP32 and of the input's rank."""
    x = elements_of(args[0])
    low, high = args[-2:]
    if x.dtype != torch.float32:
        return session.without_model(func, args, kwargs, "other than FP32")
    places = (x * (1 / scale)).round() + zero_point
    is_within = (places >= low) & (places <= high)
    kept = torch.where(places.isnan(), torch.tensor(float(low)), places.clamp(low, high))
    results = ((kept.trunc() - zero_point) * scale, is_within)
    return tuple(session.wrapped(result, doubt_of(args, kwargs)) for result in results)


def of_tensor(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return rounded(session, func, args, kwargs, torch.tensor(args[1], dtype=torch.float32), torch.tensor(float(args[2])))


def of_channels(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, scale, zero_point, axis = args[:4]
    shape = [-1 if d == axis % x.dim() else 1 for d in range(x.dim())]
    return rounded(session, func, args, kwargs, elements_of(scale).float().reshape(shape), elements_of(zero_point).float().reshape(shape))


def gradient(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return session.computed(aten.mul.Tensor, args, {})


Session.specials.update({
    "fake_quantize_per_tensor_affine_cachemask": of_tensor, "fake_quantize_per_channel_affine_cachemask": of_channels,
    "fake_quantize_per_tensor_affine_cachemask_backward": gradient, "fake_quantize_per_channel_affine_cachemask_backward": gradient,
})
